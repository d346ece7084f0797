"""Lecture 09, softmax regression and a two-layer net: exercises, usual mistakes, predictions, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import viz
from needle import ops
from needle.autograd import Tensor, gradients
from needle.init import one_hot

from .checking import Lecture, Names, given, is_tensor, kind, to_numpy, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict

SMALL = np.array([[0.0, 1.0, 2.0], [3.0, 0.5, -1.0]])
LARGE = np.array([[1000.0, 999.0, 998.0], [0.0, 1.0, 2.0]])
NEGATIVE = np.array([[-1000.0, -1001.0, -1003.0], [-2.0, 0.0, 1.0]])
TARGETS = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


def arrays(**values: Any) -> Any:
    """Makes the inputs of a case, copied from these arrays and numbers."""
    return lambda: {name: value if np.isscalar(value) else value.copy() for name, value in values.items()}


def as_array(answer: Any, *inputs: Any) -> Any:
    """What an answer gives, as an array, also if it is a list of numbers or a Tensor."""
    found = answer(*inputs)
    if isinstance(found, list) and found and not any(item is ... for item in found):
        return np.array([to_numpy(item) for item in found])
    return to_numpy(found) if is_tensor(found) else found


# --- 1 log Σ exp that never overflows -----------------------------------------------------------------------


@lecture.exercise(
    given(arrays(Z=SMALL), "Z"),
    given(arrays(Z=LARGE), "Z"),
    given(arrays(Z=NEGATIVE), "Z"),
    otherwise="For a row of three zeros it is log 3, about 1.0986. Try your function on that, then on a row "
    "with a larger score.",
    use=as_array,
)
def log_sum_exp(Z):
    """Of each row, the logarithm of the sum of exponentials."""
    return np.logaddexp.reduce(Z, axis=1)


@log_sum_exp.mistake(
    "exp(1000) is too large for a number, and exp(-1000) is 0. Subtract the largest score m of the row "
    "before you take exp. Add m after the log: a factor exp(m) inside it is as large as before."
)
def naive(Z):
    return np.log(np.exp(Z).sum(axis=1))


@log_sum_exp.mistake(
    "You took the largest score out, and that is right. Now add it again, after the logarithm."
)
def not_added_again(Z):
    return np.log(np.exp(Z - Z.max(axis=1, keepdims=True)).sum(axis=1))


@log_sum_exp.mistake(
    "You subtract the largest number of the whole array. For a row of much smaller scores, each exp is 0 "
    "then. Every row needs its own maximum."
)
def one_maximum(Z):
    return Z.max() + np.log(np.exp(Z - Z.max()).sum(axis=1))


@log_sum_exp.mistake("You sum down the columns. A row is one picture, so sum along the rows: `axis=1`.")
def columns(Z):
    return np.logaddexp.reduce(Z, axis=0)


@log_sum_exp.mistake("This is the sum of the exponentials. Its logarithm is still to be taken.")
def no_logarithm(Z):
    return np.exp(Z).sum(axis=1)


@log_sum_exp.mistake(
    "You return one number for the whole array. Each row is one picture, and gets a number of its own."
)
def one_number(Z):
    return np.logaddexp.reduce(Z, axis=None)


@log_sum_exp.mistake(
    "A row of maxima cannot be subtracted from the rows, but a column can: `keepdims=True`. Then make the "
    "result flat again: `m[:, 0]`."
)
def maxima_in_a_row(Z):
    m = Z.max(axis=1)
    return m + np.log(np.exp(Z - m).sum(axis=1))


@log_sum_exp.mistake(
    "A column plus a row makes a table. Make the column of maxima flat before you add it: `m[:, 0]`."
)
def column_added(Z):
    m = Z.max(axis=1, keepdims=True)
    return m + np.log(np.exp(Z - m).sum(axis=1))


@log_sum_exp.mistake(
    "The numbers are right, but they stand in a column. Make it flat: `[:, 0]`, or no `keepdims` in the sum."
)
def left_in_a_column(Z):
    return log_sum_exp.right(Z)[:, None]


@log_sum_exp.mistake("You add up all rows at once. Each row has its own sum: `sum(axis=1)`.")
def all_rows_summed(Z):
    m = Z.max(axis=1, keepdims=True)
    return m[:, 0] + np.log(np.exp(Z - m).sum())


@log_sum_exp.mistake(
    "You take the logarithm of each exp, and then add up. It is the other way around: first the sum, then "
    "the log."
)
def logarithm_first(Z):
    m = Z.max(axis=1, keepdims=True)
    return m[:, 0] + np.log(np.exp(Z - m)).sum(axis=1)


@log_sum_exp.mistake(
    "The factor exp(m) becomes a *term* under the logarithm: log(a · b) is log a + log b. Add m, do not "
    "multiply by it."
)
def multiplied(Z):
    m = Z.max(axis=1, keepdims=True)
    return m[:, 0] * np.log(np.exp(Z - m).sum(axis=1))


# --- 2 The loss ---------------------------------------------------------------------------------------------


def scores(array: np.ndarray, targets: np.ndarray = TARGETS, walk: bool = True) -> Any:
    """Makes the inputs of a case: scores, and the true classes as rows of 0 and 1.

    Without a `walk`, the scores need no gradient, so that only the loss is compared.
    """
    return lambda: {
        "Z": Tensor(array, requires_grad=walk),
        "targets": Tensor(targets, requires_grad=False),
    }


def _with_gradient(answer: Any, Z: Tensor, targets: Tensor) -> Any:
    """The loss and, if it is one number with a history, its gradient."""
    loss = answer(Z, targets)
    if not is_tensor(loss):
        return loss
    found = {"loss": loss}
    if loss.shape == () and getattr(loss, "op", None) is not None:
        found["gradient"] = gradients(loss, [Z])[0]
    return found


def _loss_and_gradient(expected: Any, got: Any, names: Names) -> str:
    """`values`, in words that speak of the loss."""
    if not isinstance(expected, dict):
        return values(expected, got, names)
    if not isinstance(got, dict):
        return f"it is of the type {kind(got)}, but should be a Tensor of shape ()"
    if difference := values(expected["loss"], got["loss"], names):
        return f"the loss: {difference}"
    if "gradient" in expected and "gradient" not in got:
        return "it has no history"
    return values(expected, got, names)


@lecture.exercise(
    given(scores(SMALL, walk=False), "Z", "targets"),  # its message speaks of nothing but the loss
    given(scores(SMALL), "Z", "targets"),
    given(scores(LARGE), "Z", "targets"),
    given(scores(np.zeros((1, 3)), TARGETS[:1]), "Z", "targets"),
    otherwise="For each row: `logsumexp` of the row, minus the score of the true class. Then the mean of all "
    "rows, as a Tensor of shape ().",
    use=_with_gradient,
    compare=_loss_and_gradient,
)
def softmax_loss(Z, targets):
    """The mean of -log(probability of the true class)."""
    return (ops.logsumexp(Z, axes=(1,)).sum() - (Z * targets).sum()) / Z.shape[0]


@softmax_loss.mistake("This is the sum over the pictures. Divide it by how many there are: `Z.shape[0]`.")
def total(Z, targets):
    return -(ops.logsoftmax(Z) * targets).sum()


@softmax_loss.mistake(
    "The sign is turned around: a loss is `logsumexp` minus the score of the true class, and never negative."
)
def other_sign(Z, targets):
    return (ops.logsoftmax(Z) * targets).sum() / Z.shape[0]


@softmax_loss.mistake(
    "You divide by the number of scores. The mean is over the pictures, and each picture is one row."
)
def mean_of_scores(Z, targets):
    return -(ops.logsoftmax(Z) * targets).sum() / (Z.shape[0] * Z.shape[1])


@softmax_loss.mistake(
    "`logsumexp` without `axes` takes all pictures together. Each row needs its own: `axes=(1,)`."
)
def all_together(Z, targets):
    return (ops.logsumexp(Z) - (Z * targets).sum()) / Z.shape[0]


@softmax_loss.mistake(
    "exp(1000) is too large for a number. `ndl.logsumexp` takes the largest score out first; use it instead "
    "of exp and log."
)
def overflows(Z, targets):
    return (ops.log(ops.exp(Z).sum(axes=(1,))).sum() - (Z * targets).sum()) / Z.shape[0]


@softmax_loss.mistake(
    "You subtract the scores of all classes. Multiply by `targets`: only the true one stays."
)
def all_scores(Z, targets):
    return (ops.logsumexp(Z, axes=(1,)).sum() - Z.sum()) / Z.shape[0]


@softmax_loss.mistake(
    "The number is right, but it has no history, so no gradient can walk back from it. Leave out `.numpy()`."
)
def without_history(Z, targets):
    return Tensor(softmax_loss.right(Z, targets).numpy())


@softmax_loss.mistake(
    "You make the probabilities first, and exp(1000) is too large for a number. Use `ndl.logsumexp` minus "
    "the true score: there, no probability is needed."
)
def probabilities_first(Z, targets):
    powers = ops.exp(Z)
    totals = powers.sum(axes=(1,)).reshape((Z.shape[0], 1)).broadcast_to(Z.shape)
    return -(ops.log(powers / totals) * targets).sum() / Z.shape[0]


@softmax_loss.mistake(
    "This is a number without a history, so no gradient can walk back from it. Keep Tensors up to the end, "
    "without `.numpy()` and `.item()`."
)
def a_number(Z, targets):
    return softmax_loss.right(Z, targets).item()


@softmax_loss.mistake(
    "This is one loss for each picture. Take their mean: add them up, and divide by `Z.shape[0]`."
)
def one_each(Z, targets):
    return ops.logsumexp(Z, axes=(1,)) - (Z * targets).sum(axes=(1,))


@softmax_loss.mistake(
    "The first part has one number for each picture, and `Z * targets` one for each class. Add up its rows, "
    "too: `(Z * targets).sum(axes=(1,))`."
)
def not_summed(Z, targets):
    return (ops.logsumexp(Z, axes=(1,)) - Z * targets).sum() / Z.shape[0]


@softmax_loss.mistake("The score of the true class is subtracted, and not added.")
def added(Z, targets):
    return (ops.logsumexp(Z, axes=(1,)).sum() + (Z * targets).sum()) / Z.shape[0]


@softmax_loss.mistake(
    "`targets == 1` asks whether these are the same object. Multiply by `targets` instead: all but the true "
    "score become 0."
)
def picked_by_a_mask(Z, targets):
    return (ops.logsumexp(Z, axes=(1,)) - Z[targets == 1]).sum() / Z.shape[0]


@softmax_loss.mistake(
    "This is the first part of the loss. The score of the true class is still to be subtracted."
)
def true_score_left_out(Z, targets):
    return ops.logsumexp(Z, axes=(1,)).sum() / Z.shape[0]


@softmax_loss.mistake(
    "This is the mean *probability* of the true class. The loss is −log of it: first the log of each, then "
    "the mean."
)
def mean_probability(Z, targets):
    return ops.exp((ops.logsoftmax(Z) * targets).sum(axes=(1,))).sum() / Z.shape[0]


@softmax_loss.mistake(
    "This is −log of the mean probability. Take −log for each picture first, and then the mean."
)
def mean_before_log(Z, targets):
    return -ops.log(mean_probability(Z, targets))


@softmax_loss.mistake("Here it is the other way round: Tensors say `axes=(1,)`, NumPy says `axis=1`.")
def words_of_numpy(Z, targets):
    return (Z * targets).sum(axis=1)


@softmax_loss.mistake(
    "You subtract `targets`, which only says *where* the true class is. Its score is `Z * targets`, added up "
    "along the row."
)
def targets_without_scores(Z, targets):
    return (ops.logsumexp(Z, axes=(1,)).sum() - targets.sum()) / Z.shape[0]


@softmax_loss.mistake(
    "The scores of *all* classes belong under the exp, so take `logsumexp` of `Z` itself. Only the second "
    "part, the true score, is `Z * targets`."
)
def true_scores_only(Z, targets):
    return (ops.logsumexp(Z * targets, axes=(1,)).sum() - (Z * targets).sum()) / Z.shape[0]


# --- 3 Its gradient by hand ---------------------------------------------------------------------------------


@lecture.exercise(
    given(arrays(Z=SMALL, targets=TARGETS), "Z", "targets"),
    given(arrays(Z=LARGE, targets=TARGETS), "Z", "targets"),
    given(arrays(Z=NEGATIVE[:1], targets=TARGETS[:1]), "Z", "targets"),
    otherwise="In a row of three zeros each probability is 1/3. Where the true class is, subtract 1. Then "
    "divide everything by the number of rows.",
    use=as_array,
)
def gradient_by_hand(Z, targets):
    """The gradient of the loss with respect to the scores, by the library's walk."""
    variable = Tensor(Z, dtype="float64")
    loss = softmax_loss.right(variable, Tensor(targets, dtype="float64", requires_grad=False))
    return gradients(loss, [variable])[0].numpy()


def _softmax(Z, axis=1):
    powers = np.exp(Z - Z.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@gradient_by_hand.mistake(
    "The loss is a *mean* over the rows, so each row has only its share in it. Divide by the number of rows."
)
def not_divided(Z, targets):
    return _softmax(Z) - targets


@gradient_by_hand.mistake(
    "This is the way down. The gradient points up: probability minus target, and not the other way around."
)
def downhill(Z, targets):
    return (targets - _softmax(Z)) / len(Z)


@gradient_by_hand.mistake(
    "These are the probabilities. That is the gradient of `logsumexp`; the score of the true class is in the "
    "loss, too."
)
def only_softmax(Z, targets):
    return _softmax(Z) / len(Z)


@gradient_by_hand.mistake(
    "exp(1000) is too large for a number. Subtract the largest score of each row before you take exp."
)
def naive_softmax(Z, targets):
    return (np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True) - targets) / len(Z)


@gradient_by_hand.mistake("Your probabilities add up to 1 in each column. They should do so in each row.")
def by_columns(Z, targets):
    return (_softmax(Z, axis=0) - targets) / len(Z)


@gradient_by_hand.mistake("You divide by the number of scores. The mean is over the rows: `len(Z)`.")
def by_all_scores(Z, targets):
    return (_softmax(Z) - targets) / Z.size


@gradient_by_hand.mistake(
    "Your probabilities add up to 1 over the whole array. Each row has its own sum: `axis=1, keepdims=True`."
)
def over_the_whole_array(Z, targets):
    return (_softmax(Z, axis=None) - targets) / len(Z)


@gradient_by_hand.mistake(
    "You divide by the sum of the whole array. Each row has its own sum: `axis=1, keepdims=True`."
)
def one_sum_for_all(Z, targets):
    powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    return (powers / powers.sum() - targets) / len(Z)


@gradient_by_hand.mistake(
    "The maximum of each row, and its sum, have to stand in a column, so that every row takes its own: "
    "`keepdims=True` in both."
)
def no_column(Z, targets):
    powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1) - targets) / len(Z)


@gradient_by_hand.mistake(
    "You subtract the largest number of the whole array. For a row of much smaller scores, each exp is 0 "
    "then. Every row needs its own maximum."
)
def one_maximum_for_all(Z, targets):
    powers = np.exp(Z - Z.max())
    return (powers / powers.sum(axis=1, keepdims=True) - targets) / len(Z)


@gradient_by_hand.mistake(
    "You change only the true class. The others have a gradient, too: their probability, divided by the "
    "number of rows."
)
def true_class_only(Z, targets):
    return (_softmax(Z) - 1) * targets / len(Z)


# --- 4 An epoch of the two-layer net ------------------------------------------------------------------------


def five_pictures() -> dict[str, Any]:
    """A small net and five pictures, so that the last part of two is not full."""
    rng = np.random.default_rng(1)
    return {
        "X": rng.uniform(0, 1, (5, 4)).round(1).astype(np.float32),
        "y": np.array([0, 2, 1, 1, 2]),
        "W1": Tensor(rng.normal(0, 1, (4, 3)).round(1)),
        "W2": Tensor(rng.normal(0, 1, (3, 3)).round(1)),
        "lr": 0.5,
        "batch": 2,
    }


def one_batch() -> dict[str, Any]:
    """The same, in a single step."""
    return five_pictures() | {"lr": 0.3, "batch": 5}


INPUTS = ("X", "y", "W1", "W2", "lr", "batch")


def _epoch(X, y, W1, W2, lr, batch, *, bend=True, share=None, steps=None, W1_moves=True, last_bend=False):
    """The epoch with NumPy, its gradients by hand."""
    w1, w2 = W1.numpy().astype(float), W2.numpy().astype(float)
    for i in list(range(0, len(X), batch))[:steps]:
        inputs, labels = X[i : i + batch], y[i : i + batch]
        before = inputs @ w1
        hidden = np.maximum(0, before) if bend else before
        scores = hidden @ w2
        last = np.maximum(0, scores) if last_bend else scores
        back = (_softmax(last) - np.eye(w2.shape[1])[labels]) / (share or len(labels))
        back = back * ((scores > 0) if last_bend else 1)
        to_hidden = back @ w2.T * ((before > 0) if bend else 1)
        w1, w2 = w1 - lr * W1_moves * (inputs.T @ to_hidden), w2 - lr * (hidden.T @ back)
    return Tensor(w1, dtype="float32"), Tensor(w2, dtype="float32")


def _new_leaves(expected: Any, got: Any, names: Names) -> str:
    """The same numbers, and no more history than expected."""
    if difference := values(expected, got, names):
        return difference
    pairs = zip(("W1", "W2"), expected, got, strict=False) if kind(expected) == "list" else ()
    for name, right, given_back in pairs:
        if (getattr(right, "op", None) is None) != (getattr(given_back, "op", None) is None):
            return f"the numbers are right, but the new {name} has a history"
    return ""


@lecture.exercise(
    given(one_batch, *INPUTS),
    given(five_pictures, *INPUTS),
    compare=_new_leaves,
    otherwise="Take one part at a time: compute the loss of this part, get both gradients, and make two new "
    "Tensors from them. The next part begins with these.",
)
def nn_epoch(X, y, W1, W2, lr=0.1, batch=100):
    """One epoch; the library walks back. The mistakes below do it with NumPy."""
    for i in range(0, len(X), batch):
        inputs = Tensor(X[i : i + batch], requires_grad=False)
        true = one_hot(W2.shape[1], y[i : i + batch])
        loss = softmax_loss.right(ops.relu(inputs @ W1) @ W2, true)
        to_W1, to_W2 = gradients(loss, [W1, W2])
        W1 = Tensor(W1.numpy() - lr * to_W1.numpy())
        W2 = Tensor(W2.numpy() - lr * to_W2.numpy())
    return W1, W2


@nn_epoch.mistake(
    "This climbs uphill. The gradient points to a larger loss, so go the other way: `- lr * …`."
)
def uphill(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, -lr, batch)


@nn_epoch.mistake("The learning rate is not in it: each gradient is multiplied by `lr`.")
def no_rate(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, 1.0, batch)


@nn_epoch.mistake("Where is the ReLU? Between the two layers, all that is negative becomes 0.")
def no_bend(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, lr, batch, bend=False)


@nn_epoch.mistake("W1 stays as it was. The walk back gives you gradients of *both* layers.")
def second_layer_only(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, lr, batch, W1_moves=False)


@nn_epoch.mistake(
    "You make one step with all pictures at once. Cut them into parts of `batch` pictures, with a step for "
    "each."
)
def one_step(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, lr, len(X))


@nn_epoch.mistake("You stop after the first part. Is the `return` inside the loop?")
def first_part(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, lr, batch, steps=1)


@nn_epoch.mistake(
    "The last part is left out, since it is not full. It counts as well: `range(0, len(X), batch)` reaches "
    "it, and a slice that ends too late is simply shorter."
)
def last_part_lost(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, lr, batch, steps=len(X) // batch)


@nn_epoch.mistake("Your loss is a sum over the pictures of a part. Use the mean, as in exercise 2.")
def summed(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, lr, batch, share=1)


@nn_epoch.mistake(
    "Every step begins again with the W1 and W2 that you were given. Begin with those of the step before."
)
def begins_again(X, y, W1, W2, lr=0.1, batch=100):
    start = (len(X) - 1) // batch * batch
    return _epoch(X[start:], y[start:], W1, W2, lr, batch)


@nn_epoch.mistake(
    "After `detach()` a Tensor needs no gradient, so the next part finds none. Make a new one: "
    "`ndl.Tensor(W1.numpy() - …)`."
)
def detached(X, y, W1, W2, lr=0.1, batch=100):
    return (
        gradients(ops.relu(Tensor(X) @ W1).sum(), [W1.detach()])
        if batch < len(X)
        else nn_epoch.right(X, y, W1, W2, lr, batch)
    )


@nn_epoch.mistake(
    "`one_hot(10, …)` is right for ten digits only, and the check uses three classes. `W2.shape[1]` says how "
    "many there are."
)
def ten_classes(X, y, W1, W2, lr=0.1, batch=100):
    inputs = Tensor(X[:batch], requires_grad=False)
    return softmax_loss.right(ops.relu(inputs @ W1) @ W2, one_hot(10, y[:batch]))


@nn_epoch.mistake(
    "Each new W hangs on the graph of all steps before it, and the memory fills up. Make a new leaf of its "
    "numbers: `ndl.Tensor(W1.numpy() - …)`."
)
def with_a_history(X, y, W1, W2, lr=0.1, batch=100):
    return tuple(W + 0.0 for W in nn_epoch.right(X, y, W1, W2, lr, batch))


@nn_epoch.mistake(
    "The loss needs rows of 0 and 1, and not the labels themselves: `ndl.init.one_hot(W2.shape[1], …)` makes "
    "them."
)
def labels_as_targets(X, y, W1, W2, lr=0.1, batch=100):
    return softmax_loss.right(ops.relu(Tensor(X[:batch]) @ W1) @ W2, y[:batch])


@nn_epoch.mistake(
    "The targets are those of all pictures, but the scores are those of one part. Take its labels only: "
    "`y[i : i + batch]`."
)
def labels_of_all(X, y, W1, W2, lr=0.1, batch=100):
    scores = ops.relu(Tensor(X[:batch]) @ W1) @ W2
    softmax_loss.right(scores, one_hot(W2.shape[1], y))
    return nn_epoch.right(X, y, W1, W2, lr, batch)


@nn_epoch.mistake(
    "These are NumPy arrays, and the next part needs Tensors: `W1 = ndl.Tensor(W1.numpy() - …)`."
)
def arrays_back(X, y, W1, W2, lr=0.1, batch=100):
    return tuple(W.numpy() for W in nn_epoch.right(X, y, W1, W2, lr, batch))


@nn_epoch.mistake("The ReLU stands between the two layers only. The scores may be negative.")
def bend_at_the_end(X, y, W1, W2, lr=0.1, batch=100):
    return _epoch(X, y, W1, W2, lr, batch, last_bend=True)


@nn_epoch.mistake(
    "When you ask for the gradient of W2, W1 has moved already. Get both gradients first, and then move both."
)
def one_after_the_other(X, y, W1, W2, lr=0.1, batch=100):
    for i in range(0, len(X), batch):
        part, labels = X[i : i + batch], y[i : i + batch]
        W1, _ = _epoch(part, labels, W1, W2, lr, batch)
        _, W2 = _epoch(part, labels, W1, W2, lr, batch)
    return W1, W2


# --- 5 The surest mistakes ----------------------------------------------------------------------------------

LOGITS = np.array(
    [[5.0, 4.9, 0.0], [3.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 2.0], [1.0, 0.0, 0.0], [7.0, 6.0, 6.5]]
)
LABELS = np.array([1, 1, 1, 0, 0, 2])
OTHERS = np.array(
    [[6.0, 8, 1], [5, 6, 3], [5, 9, 7], [3, 0, 1], [2, 8, 2], [8, 2, 6]]
)  # tells mistakes apart
THEIR_LABELS = np.array([1, 2, 1, 2, 2, 2])


def _as_list(found: Any) -> Any:
    return found.tolist() if isinstance(found, np.ndarray) else found


@lecture.exercise(
    given(arrays(logits=LOGITS, y=LABELS, count=2), "logits", "y", "count"),
    given(arrays(logits=OTHERS, y=THEIR_LABELS, count=3), "logits", "y", "count"),
    otherwise="First find the pictures whose largest score is not at the label. Then sort these by the "
    "probability of the digit that the net names, the largest first.",
    use=lambda answer, *inputs: _as_list(answer(*inputs)),
)
def surest_mistakes(logits, y, count):
    """Where the net is wrong and most sure, by a loop."""
    wrong = [i for i in range(len(y)) if int(np.argmax(logits[i])) != y[i]]
    return sorted(wrong, key=lambda i: -float(_softmax(logits)[i].max()))[:count]


@surest_mistakes.mistake(
    "You sort by the score. A large score says little if another one is just as large: sort by the "
    "probability, after the softmax."
)
def by_score(logits, y, count):
    wrong = np.flatnonzero(logits.argmax(axis=1) != y)
    return wrong[np.argsort(-logits[wrong].max(axis=1), kind="stable")][:count].tolist()


@surest_mistakes.mistake("These are the mistakes it is *least* sure of. Turn the order around.")
def least_sure(logits, y, count):
    wrong = np.flatnonzero(logits.argmax(axis=1) != y)
    return wrong[np.argsort(_softmax(logits)[wrong].max(axis=1), kind="stable")][:count].tolist()


@surest_mistakes.mistake(
    "There are pictures among them that the net reads correctly. Keep only the mistakes."
)
def all_pictures(logits, y, count):
    return np.argsort(-_softmax(logits).max(axis=1), kind="stable")[:count].tolist()


@surest_mistakes.mistake(
    "You count among the mistakes only. Say which pictures they are among all: the position in `y`."
)
def positions_among_the_wrong(logits, y, count):
    wrong = np.flatnonzero(logits.argmax(axis=1) != y)
    return np.argsort(-_softmax(logits)[wrong].max(axis=1), kind="stable")[:count].tolist()


@surest_mistakes.mistake("These are all mistakes, in the order of the pictures. Sort them, the surest first.")
def not_sorted(logits, y, count):
    return np.flatnonzero(logits.argmax(axis=1) != y)[:count].tolist()


@surest_mistakes.mistake("The order is right. But `count` of them are asked for, and not all.")
def too_many(logits, y, count):
    wrong = np.flatnonzero(logits.argmax(axis=1) != y)
    return wrong[np.argsort(-_softmax(logits)[wrong].max(axis=1), kind="stable")].tolist()


@surest_mistakes.mistake(
    "You sort by the probability of the *true* digit. What counts here is how sure the net is of the "
    "digit that it names."
)
def by_the_true_digit(logits, y, count):
    wrong = np.flatnonzero(logits.argmax(axis=1) != y)
    return wrong[np.argsort(-_softmax(logits)[wrong, y[wrong]], kind="stable")][:count].tolist()


@surest_mistakes.mistake("That is one position. Return a list of `count` of them: `[:count]`.")
def the_surest_only(logits, y, count):
    return surest_mistakes.right(logits, y, count)[0]


@surest_mistakes.mistake(
    "Your probabilities add up to 1 in each column. They should do so in each row: `axis=1, keepdims=True`."
)
def down_the_columns(logits, y, count):
    wrong = np.flatnonzero(logits.argmax(axis=1) != y)
    return wrong[np.argsort(-_softmax(logits, axis=0)[wrong].max(axis=1), kind="stable")][:count].tolist()


# --- Pictures -----------------------------------------------------------------------------------------------


def templates(W: np.ndarray, digits: Sequence[int] = (0, 1, 3)) -> None:
    """Draw the weights of some digits as pictures: where ink speaks for the digit, and where against it."""
    reach = float(abs(W[:64, list(digits)]).max())
    panels = viz.panels(len(digits), width=2.9, height=2.9)
    for ax, digit in zip(panels, digits, strict=True):
        viz.matrix(W[:64, digit].reshape(8, 8), title=f"weights of the {digit}", limit=reach, ax=ax)
        ax.set(xticks=[], yticks=[])
    figure = panels[0].figure
    for bar in figure.axes[len(panels) : -1]:  # one scale for all
        bar.remove()


def two_curves(history: Sequence[Sequence[float]]) -> None:
    """Draw loss and errors over the epochs: rows of train loss, train errors, test loss, test errors."""
    train_loss, train_wrong, test_loss, test_wrong = np.array(history).T
    left, right = viz.panels(2, width=4.2)
    epochs = range(1, len(history) + 1)
    for ax, what, train, test in (
        (left, "loss", train_loss, test_loss),
        (right, "wrong, in percent", 100 * train_wrong, 100 * test_wrong),
    ):
        viz.curve({"to learn from": train, "new": test}, epochs, xlabel="epoch", title=what, ax=ax)
        ax.set_ylim(bottom=0)


def confusion(true: np.ndarray, named: np.ndarray) -> None:
    """Draw how often each digit was taken for another one. What was read correctly is left out."""
    counts = np.zeros((10, 10))
    np.add.at(counts, (true, named), true != named)
    wrong = int(counts.sum())
    ax = viz.matrix(
        counts,
        title=f"{wrong} of {len(true):,} wrong: what each was taken for",
        xlabel="what the net says",
        ylabel="what it is",
    )
    ax.figure.axes[-1].remove()  # the numbers are written in the cells
    for text in ax.texts:
        if text.get_text() == "0":
            text.set_text("")
    for digit in range(10):
        ax.text(digit, digit, "·", ha="center", va="center")
