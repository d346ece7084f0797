"""Lecture 09, softmax regression and a two-layer net: exercises, usual mistakes, predictions, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle as ndl
import viz
from needle import nn
from needle.autograd import Tensor, gradients

from .checking import (
    SCORES,
    Case,
    Lecture,
    Names,
    arrays,
    derivatives,
    drawn,
    given,
    is_tensor,
    kind,
    to_numpy,
    values,
)

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict

SMALL = np.array([[0.0, 1.0, 2.0], [3.0, 0.5, -1.0]])
LARGE = np.array([[1000.0, 999.0, 998.0], [0.0, 1.0, 2.0]])
TARGETS = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])

#: Tables of scores, a row for each picture: of all sizes, ten classes, too, and the largest in any place.
TABLES = st.tuples(
    arrays([(2, 3), (3, 2), (2, 4), (1, 3), (3, 3), (4, 2), (2, 10), (3, 1)], [*SCORES, "falling", "signed"]),
    st.sampled_from([0, 1, 2]),
).map(lambda x: np.roll(x[0], x[1], axis=1))
#: The true class of row i is a · i + b, as far as there are so many.
CLASSES = [(1, 0), (2, 1), (0, 0), (1, 2), (0, 1)]


def with_targets(parts: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and beside them the true classes as rows of 0 and 1."""
    scores, (a, b) = parts
    rows, classes = scores.shape
    return scores, np.eye(classes)[(a * np.arange(rows) + b) % classes]


TABLES_AND_TARGETS = st.tuples(TABLES, st.sampled_from(CLASSES)).map(with_targets)


def as_array(answer: Any, *inputs: Any) -> Any:
    """What an answer gives, as an array, also if it is a list of numbers or a Tensor."""
    found = answer(*inputs)
    if isinstance(found, list) and found and not any(item is ... for item in found):
        return np.array([to_numpy(item) for item in found])
    return to_numpy(found) if is_tensor(found) else found


# --- 1 log Σ exp that never overflows -----------------------------------------------------------------------


@lecture.exercise(
    given(lambda: {"Z": SMALL.copy()}, "Z"),
    given(lambda: {"Z": LARGE.copy()}, "Z"),
    draws=drawn(Z=TABLES),
    otherwise="For a row of three zeros it is log 3, about 1.0986. Try your function on that, then on a row "
    "with a larger score.",
    use=as_array,
    own=("logaddexp",),
)
def log_sum_exp(Z):
    m = Z.max(axis=1, keepdims=True)
    return m[:, 0] + np.log(np.exp(Z - m).sum(axis=1))


SUM = "np.exp(Z - m).sum(axis=1)"
TOO_LARGE = (
    "exp(1000) is too large for a number, and exp(-1000) is 0. Subtract the largest score m of the row "
    "before you take exp. Add m after the log: a factor exp(m) inside it is as large as before."
)
log_sum_exp.slip(TOO_LARGE, f"m[:, 0] + np.log({SUM})", "np.log(np.exp(Z).sum(axis=1))")
log_sum_exp.slip(TOO_LARGE, f"m[:, 0] + np.log({SUM})", f"np.log(np.exp(m[:, 0]) * {SUM})")
log_sum_exp.slip(
    "You took the largest score out, and that is right. Now add it again, after the logarithm.",
    "m[:, 0] + ",
    "",
)
log_sum_exp.slip(
    "You subtract the largest number of the whole array. For a row of much smaller scores, each exp is 0 "
    "then. Every row needs its own maximum.",
    *("m = Z.max(axis=1, keepdims=True)", "m = Z.max(keepdims=True)"),
)
LARGEST = "The one to subtract is the *largest* score of the row. After any other, a much larger one still overflows."
log_sum_exp.slip(LARGEST, "Z.max(axis=1, keepdims=True)", "Z[:, :1]")
log_sum_exp.slip(LARGEST, "Z.max(axis=1, keepdims=True)", "Z.min(axis=1, keepdims=True)")
log_sum_exp.slip(LARGEST, "Z.max(axis=1, keepdims=True)", "Z.mean(axis=1, keepdims=True)")
log_sum_exp.slip(
    "You sum down the columns. A row is one picture, so sum along the rows: `axis=1`.",
    ("Z.max(axis=1", "Z.max(axis=0"),
    ("m[:, 0]", "m[0]"),
    ("sum(axis=1)", "sum(axis=0)"),
)
log_sum_exp.slip(
    "This is the sum of the exponentials. Its logarithm is still to be taken.",
    *(f"m[:, 0] + np.log({SUM})", "np.exp(Z).sum(axis=1)"),
)
log_sum_exp.slip(
    "You return one number for the whole array. Each row is one picture, and gets a number of its own.",
    *(f"m[:, 0] + np.log({SUM})", "Z.max() + np.log(np.exp(Z - Z.max()).sum())"),
)
log_sum_exp.slip(
    "A row of maxima cannot be subtracted from the rows, but a column can: `keepdims=True`. Then make the "
    "result flat again: `m[:, 0]`.",
    (", keepdims=True", ""),
    ("m[:, 0]", "m"),
)
log_sum_exp.slip(
    "A column plus a row makes a table. Make the column of maxima flat before you add it: `m[:, 0]`.",
    "m[:, 0]",
    "m",
)
log_sum_exp.slip(
    "The numbers are right, but they stand in a column. Make it flat: `[:, 0]`, or no `keepdims` in the sum.",
    ("m[:, 0]", "m"),
    (".sum(axis=1)", ".sum(axis=1, keepdims=True)"),
)
log_sum_exp.slip(
    "You add up all rows at once. Each row has its own sum: `sum(axis=1)`.", ".sum(axis=1)", ".sum()"
)
log_sum_exp.slip(
    "You take the logarithm of each exp, and then add up. It is the other way around: first the sum, then "
    "the log.",
    *(f"np.log({SUM})", "np.log(np.exp(Z - m)).sum(axis=1)"),
)
log_sum_exp.slip(
    "The factor exp(m) becomes a *term* under the logarithm: log(a · b) is log a + log b. Add m, do not "
    "multiply by it.",
    *("m[:, 0] +", "m[:, 0] *"),
)


# --- 2 The loss ---------------------------------------------------------------------------------------------


def tensors(pair: tuple[np.ndarray, np.ndarray]) -> Case:
    """A case for the loss: scores that have a gradient, and targets that have none."""

    def make() -> dict[str, Any]:
        Z, targets = pair
        return {
            "Z": Tensor(Z),
            "targets": Tensor(targets, requires_grad=False),
        }

    return given(make, "Z", "targets")


@lecture.exercise(
    tensors((SMALL, TARGETS)),
    tensors((LARGE, TARGETS)),
    draws=TABLES_AND_TARGETS.map(tensors),
    number=30,
    otherwise="For each row: `logsumexp` of the row, minus the score of the true class. Then the mean of all "
    "rows, as a Tensor of shape ().",
    contracts=(derivatives,),
    without={
        nn.SoftmaxLoss.forward: "This is the library's own loss. Write it yourself, of `ndl.logsumexp`."
    },
)
def softmax_loss(Z, targets):
    true_scores = (Z * targets).sum()
    return (ndl.logsumexp(Z, axes=(1,)).sum() - true_scores) / Z.shape[0]


loss_of = softmax_loss.right
FIRST = "ndl.logsumexp(Z, axes=(1,)).sum()"
LOSS = f"({FIRST} - true_scores) / Z.shape[0]"
TRUE_ROWS = ("(Z * targets).sum()", "(Z * targets).sum(axes=(1,))")
softmax_loss.slip(
    "This is the sum over the pictures. Divide it by how many there are: `Z.shape[0]`.", " / Z.shape[0]", ""
)
softmax_loss.slip(
    "The sign is turned around: a loss is `logsumexp` minus the score of the true class, and never negative.",
    *(f"({FIRST} - true_scores)", f"(true_scores - {FIRST})"),
)
softmax_loss.slip(
    "You divide by the number of scores. The mean is over the pictures, and each picture is one row.",
    *("Z.shape[0]", "Z.size"),
)
softmax_loss.slip(
    "`logsumexp` without `axes` takes all pictures together. Each row needs its own: `axes=(1,)`.",
    *(FIRST, "ndl.logsumexp(Z)"),
)
softmax_loss.slip(
    "You go down the columns. A row is one picture, so take `logsumexp` along the rows: `axes=(1,)`.",
    *("axes=(1,)", "axes=(0,)"),
)
softmax_loss.slip(
    "exp(1000) is too large for a number. `ndl.logsumexp` takes the largest score out first; use it instead "
    "of exp and log.",
    *("ndl.logsumexp(Z, axes=(1,))", "ndl.log(ndl.exp(Z).sum(axes=(1,)))"),
)
softmax_loss.slip(
    "You subtract the scores of all classes. Multiply by `targets`: only the true one stays.",
    *("(Z * targets).sum()", "Z.sum()"),
)
softmax_loss.slip(
    "The number is right, but it has no history, so no gradient can walk back from it. Leave out `.numpy()`.",
    *(LOSS, f"ndl.Tensor(({LOSS}).numpy())"),
)
PROBABILITIES = "ndl.exp(Z) / ndl.exp(Z).sum(axes=(1,), keepdims=True)"
softmax_loss.slip(
    "You make the probabilities first, and exp(1000) is too large for a number. Use `ndl.logsumexp` minus "
    "the true score: there, no probability is needed.",
    *(LOSS, f"-(ndl.log({PROBABILITIES}) * targets).sum() / Z.shape[0]"),
)
softmax_loss.slip(
    "This is a number without a history, so no gradient can walk back from it. Keep Tensors up to the end, "
    "without `.numpy()` and `.item()`.",
    *(LOSS, f"({LOSS}).item()"),
)
softmax_loss.slip(
    "This is one loss for each picture. Take their mean: add them up, and divide by `Z.shape[0]`.",
    TRUE_ROWS,
    (LOSS, "ndl.logsumexp(Z, axes=(1,)) - true_scores"),
)
softmax_loss.slip(
    "The first part has one number for each picture, and `Z * targets` one for each class. Add up its rows, "
    "too: `(Z * targets).sum(axes=(1,))`.",
    ("(Z * targets).sum()", "Z * targets"),
    (f"({FIRST} - true_scores)", "(ndl.logsumexp(Z, axes=(1,)) - true_scores).sum()"),
)
softmax_loss.slip(
    "The score of the true class is subtracted, and not added.", "- true_scores", "+ true_scores"
)
softmax_loss.slip(
    "`targets == 1` asks whether these are the same object. Multiply by `targets` instead: all but the true "
    "score become 0.",
    *("(Z * targets).sum()", "Z[targets == 1].sum()"),
)
softmax_loss.slip(
    "This is the first part of the loss. The score of the true class is still to be subtracted.",
    *(" - true_scores", ""),
)
softmax_loss.slip(
    "This is the mean *probability* of the true class. The loss is −log of it: first the log of each, then "
    "the mean.",
    *(LOSS, "(ndl.softmax(Z) * targets).sum() / Z.shape[0]"),
)
softmax_loss.slip(
    "This is −log of the mean probability. Take −log for each picture first, and then the mean.",
    *(LOSS, "-ndl.log((ndl.softmax(Z) * targets).sum() / Z.shape[0])"),
)
softmax_loss.slip(
    "Here it is the other way round: Tensors say `axes=(1,)`, NumPy says `axis=1`.",
    *("(Z * targets).sum()", "(Z * targets).sum(axis=1)"),
)
softmax_loss.slip(
    "You subtract `targets`, which only says *where* the true class is. Its score is `Z * targets`, added up "
    "along the row.",
    *("(Z * targets).sum()", "targets.sum()"),
)
softmax_loss.slip(
    "The scores of *all* classes belong under the exp, so take `logsumexp` of `Z` itself. Only the second "
    "part, the true score, is `Z * targets`.",
    *("logsumexp(Z,", "logsumexp(Z * targets,"),
)


# --- 3 Its gradient by hand ---------------------------------------------------------------------------------

BY_HAND = "Here you write the gradient yourself, with NumPy, and let no library walk back."


@lecture.exercise(
    given(lambda: {"Z": SMALL.copy(), "targets": TARGETS.copy()}, "Z", "targets"),
    given(lambda: {"Z": LARGE.copy(), "targets": TARGETS.copy()}, "Z", "targets"),
    draws=TABLES_AND_TARGETS.map(
        lambda pair: given(lambda: {"Z": pair[0].copy(), "targets": pair[1].copy()}, "Z", "targets")
    ),
    otherwise="In a row of three zeros each probability is 1/3. Where the true class is, subtract 1. Then "
    "divide everything by the number of rows.",
    use=as_array,
    without={gradients: BY_HAND, Tensor.backward: BY_HAND},
)
def gradient_by_hand(Z, targets):
    powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    return (probabilities - targets) / len(Z)


gradient_by_hand.slip(
    "The loss is a *mean* over the rows, so each row has only its share in it. Divide by the number of rows.",
    *(" / len(Z)", ""),
)
gradient_by_hand.slip(
    "This is the way down. The gradient points up: probability minus target, and not the other way around.",
    *("probabilities - targets", "targets - probabilities"),
)
gradient_by_hand.slip(
    "These are the probabilities. That is the gradient of `logsumexp`; the score of the true class is in the "
    "loss, too.",
    *(" - targets", ""),
)
gradient_by_hand.slip(
    "exp(1000) is too large for a number. Subtract the largest score of each row before you take exp.",
    *(" - Z.max(axis=1, keepdims=True)", ""),
)
gradient_by_hand.slip(LARGEST, "Z.max(axis=1, keepdims=True)", "Z[:, :1]")
gradient_by_hand.slip(LARGEST, "Z.max(axis=1, keepdims=True)", "Z.min(axis=1, keepdims=True)")
gradient_by_hand.slip(
    "Your probabilities add up to 1 in each column. They should do so in each row.",
    ("Z.max(axis=1", "Z.max(axis=0"),
    ("sum(axis=1", "sum(axis=0"),
)
gradient_by_hand.slip(
    "You divide by the number of scores. The mean is over the rows: `len(Z)`.", "len(Z)", "Z.size"
)
gradient_by_hand.slip(
    "Your probabilities add up to 1 over the whole array. Each row has its own sum: `axis=1, keepdims=True`.",
    ("Z.max(axis=1, keepdims=True)", "Z.max()"),
    ("powers.sum(axis=1, keepdims=True)", "powers.sum()"),
)
gradient_by_hand.slip(
    "You divide by the sum of the whole array. Each row has its own sum: `axis=1, keepdims=True`.",
    *("powers.sum(axis=1, keepdims=True)", "powers.sum()"),
)
IN_A_COLUMN = (
    "The maximum of each row, and its sum, have to stand in a column, so that every row takes its own: "
    "`keepdims=True` in both."
)
gradient_by_hand.slip(IN_A_COLUMN, "powers.sum(axis=1, keepdims=True)", "powers.sum(axis=1)")
gradient_by_hand.slip(IN_A_COLUMN, "Z.max(axis=1, keepdims=True)", "Z.max(axis=1)")
gradient_by_hand.slip(
    "You subtract the largest number of the whole array. For a row of much smaller scores, each exp is 0 "
    "then. Every row needs its own maximum.",
    *("Z.max(axis=1, keepdims=True)", "Z.max()"),
)
gradient_by_hand.slip(
    "You change only the true class. The others have a gradient, too: their probability, divided by the "
    "number of rows.",
    *("(probabilities - targets)", "(probabilities - 1) * targets"),
)


# --- 4 An epoch of the two-layer net ------------------------------------------------------------------------

INPUTS = ("X", "y", "W1", "W2", "lr", "batch")


def net(pictures: int, batch: int, sizes: tuple[int, int, int], lr: float = 0.5, seed: int = 1) -> Case:
    """A case of a small net and some pictures; a batch of 0 leaves `lr` and `batch` as they are by default."""

    def make() -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        pixels, hidden, classes = sizes
        return {
            "X": rng.uniform(0.1, 1, (pictures, pixels)).round(1).astype(np.float32),
            "y": rng.integers(0, classes, pictures),
            "W1": Tensor(rng.normal(0, 1, (pixels, hidden)).round(1)),
            "W2": Tensor(rng.normal(0, 1, (hidden, classes)).round(1)),
            "lr": lr,
            "batch": batch,
        }

    return given(make, *(INPUTS if batch else INPUTS[:4]))


def new_leaves(expected: Any, got: Any, names: Names) -> str:
    """The same numbers, in Tensors of the same history that need a gradient, as those do."""
    if difference := values(expected, got, names):
        return difference
    pairs = zip(("W1", "W2"), expected, got, strict=False) if kind(expected) == "list" else ()
    for name, right, given_back in pairs:
        if (getattr(right, "op", None) is None) != (getattr(given_back, "op", None) is None):
            return f"the numbers are right, but the new {name} has a history"
        if getattr(right, "requires_grad", None) != getattr(given_back, "requires_grad", None):
            return f"the numbers are right, but the next epoch will find no gradient of the new {name}"
    return ""


@lecture.exercise(
    net(5, 5, (4, 3, 3), lr=0.3),
    net(5, 2, (4, 3, 3)),
    draws=st.tuples(
        st.sampled_from([(5, 2), (4, 2), (3, 5), (7, 3), (3, 1), (5, 0), (1, 1)]),
        st.sampled_from([(4, 5, 3), (3, 2, 4), (2, 4, 2), (5, 3, 10)]),
        st.sampled_from([0.5, 1.0, 0.1]),
        st.sampled_from([1, 2, 3]),
    ).map(lambda x: net(*x[0], x[1], x[2], x[3])),
    number=30,
    compare=new_leaves,
    otherwise="Take one part at a time: compute the loss of this part, get both gradients, and make two new "
    "Tensors from them. The next part begins with these.",
)
def nn_epoch(X, y, W1, W2, lr=0.1, batch=100):
    for i in range(0, len(X), batch):
        inputs = ndl.Tensor(X[i : i + batch], requires_grad=False)
        true = ndl.init.one_hot(W2.shape[1], y[i : i + batch])
        loss = loss_of(ndl.relu(inputs @ W1) @ W2, true)
        to_W1, to_W2 = ndl.gradients(loss, [W1, W2])
        W1 = ndl.Tensor(W1.numpy() - lr * to_W1.numpy())
        W2 = ndl.Tensor(W2.numpy() - lr * to_W2.numpy())
    return W1, W2


NEW_W1, NEW_W2 = [f"ndl.Tensor({W}.numpy() - lr * to_{W}.numpy())" for W in ("W1", "W2")]
SCORES_OF = "ndl.relu(inputs @ W1) @ W2"
nn_epoch.slip(
    "This climbs uphill. The gradient points to a larger loss, so go the other way: `- lr * …`.",
    ("- lr * to_W1", "+ lr * to_W1"),
    ("- lr * to_W2", "+ lr * to_W2"),
)
nn_epoch.slip(
    "The learning rate is not in it: each gradient is multiplied by `lr`.",
    ("lr * to_W1", "to_W1"),
    ("lr * to_W2", "to_W2"),
)
nn_epoch.slip(
    "Where is the ReLU? Between the two layers, all that is negative becomes 0.",
    SCORES_OF,
    "inputs @ W1 @ W2",
)
nn_epoch.slip(
    "W1 stays as it was. The walk back gives you gradients of *both* layers.",
    NEW_W1,
    "ndl.Tensor(W1.numpy())",
)
nn_epoch.slip(
    "You make one step with all pictures at once. Cut them into parts of `batch` pictures, with a step for "
    "each.",
    *("    for i in", "    batch = len(X)\n    for i in"),
)
nn_epoch.slip(
    "You stop after the first part. Is the `return` inside the loop?", "    return", "        return"
)
nn_epoch.slip(
    "The last part is left out, since it is not full. It counts as well: `range(0, len(X), batch)` reaches "
    "it, and a slice that ends too late is simply shorter.",
    *("len(X), batch)", "len(X) - batch + 1, batch)"),
)
nn_epoch.slip(
    "Your loss is a sum over the pictures of a part. Use the mean, as in exercise 2.",
    *("@ W2, true)", "@ W2, true) * inputs.shape[0]"),
)
nn_epoch.slip(
    "Every step begins again with the W1 and W2 that you were given. Begin with those of the step before.",
    ("    for i in", "    first, second = W1, W2\n    for i in"),
    (SCORES_OF, "ndl.relu(inputs @ first) @ second"),
    ("[W1, W2]", "[first, second]"),
    (NEW_W1, NEW_W1.replace("(W1.", "(first.")),
    (NEW_W2, NEW_W2.replace("(W2.", "(second.")),
)
nn_epoch.slip(
    "After `detach()` a Tensor needs no gradient, so the next part finds none. Make a new one: "
    "`ndl.Tensor(W1.numpy() - …)`.",
    (NEW_W1, "(W1 - lr * to_W1).detach()"),
    (NEW_W2, "(W2 - lr * to_W2).detach()"),
)
nn_epoch.slip(
    "`one_hot(10, …)` is right for ten digits only, and the check uses other numbers of classes. "
    "`W2.shape[1]` says how many there are.",
    *("W2.shape[1]", "10"),
)
nn_epoch.slip(
    "W2 has a row for each hidden feature and a column for each class: how many classes are there, then? "
    "`W2.shape[1]`.",
    *("W2.shape[1]", "W2.shape[0]"),
)
nn_epoch.slip(
    "Each new W hangs on the graph of all steps before it, and the memory fills up. Make a new leaf of its "
    "numbers: `ndl.Tensor(W1.numpy() - …)`.",
    (NEW_W1, "W1 - lr * to_W1"),
    (NEW_W2, "W2 - lr * to_W2"),
)
nn_epoch.slip(
    "The loss needs rows of 0 and 1, and not the labels themselves: `ndl.init.one_hot(W2.shape[1], …)` makes "
    "them.",
    *("ndl.init.one_hot(W2.shape[1], y[i : i + batch])", "y[i : i + batch]"),
)
nn_epoch.slip(
    "The targets are those of all pictures, but the scores are those of one part. Take its labels only: "
    "`y[i : i + batch]`.",
    *("y[i : i + batch]", "y"),
)
nn_epoch.slip(
    "These are NumPy arrays, and the next part needs Tensors: `W1 = ndl.Tensor(W1.numpy() - …)`.",
    ("W1 = ndl.Tensor", "W1 = "),
    ("W2 = ndl.Tensor", "W2 = "),
)
nn_epoch.slip(
    "The ReLU stands between the two layers only. The scores may be negative.",
    SCORES_OF,
    f"ndl.relu({SCORES_OF})",
)
nn_epoch.slip(
    "When you ask for the gradient of W2, W1 has moved already. Get both gradients first, and then move both.",
    *(
        "        W2 =",
        f"        (to_W2,) = ndl.gradients(loss_of({SCORES_OF}, true), [W2])\n        W2 =",
    ),
)


# --- 5 The surest mistakes ----------------------------------------------------------------------------------

LOGITS = np.array(
    [[5.0, 4.9, 0.0], [3.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 2.0], [1.0, 0.0, 0.0], [7.0, 6.0, 6.5]]
)
LABELS = np.array([1, 1, 1, 0, 0, 2])
OTHERS = np.array(
    [[6.0, 8, 1], [5, 6, 3], [5, 9, 7], [3, 0, 1], [2, 8, 2], [8, 2, 6]]
)  # tells mistakes apart
THEIR_LABELS = np.array([1, 2, 1, 2, 2, 2])


def as_list(answer: Any, *inputs: Any) -> Any:
    """What an answer gives, as a list."""
    found = answer(*inputs)
    return found.tolist() if isinstance(found, np.ndarray) else found


def read(logits: np.ndarray, y: np.ndarray, count: int) -> Case:
    """A case of the scores of some pictures, and their labels."""
    return given(lambda: {"logits": logits.copy(), "y": y.copy(), "count": count}, "logits", "y", "count")


def some_read(parts: tuple) -> Case:
    """A case with random scores; in each row they may all be larger by as much, which changes no probability."""
    (pictures, classes), count, raised, seed = parts
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (pictures, classes)).round(2) + raised * rng.permutation(pictures)[:, None]
    return read(logits, rng.integers(0, classes, pictures), count)


@lecture.exercise(
    read(LOGITS, LABELS, 2),
    read(OTHERS, THEIR_LABELS, 3),
    draws=st.tuples(
        st.sampled_from([(5, 3), (8, 4), (4, 2), (12, 10), (3, 3), (1, 2)]),
        st.sampled_from([2, 3, 1, 20]),
        st.sampled_from([0, 3, 1000, -500]),
        st.sampled_from([1, 2, 3, 4, 5]),
    ).map(some_read),
    otherwise="First find the pictures whose largest score is not at the label. Then sort these by the "
    "probability of the digit that the net names, the largest first.",
    use=as_list,
)
def surest_mistakes(logits, y, count):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    sure = powers.max(axis=1) / powers.sum(axis=1)
    wrong = np.flatnonzero(logits.argmax(axis=1) != y)
    return wrong[np.argsort(-sure[wrong])][:count].tolist()


CHOSEN = "wrong[np.argsort(-sure[wrong])][:count].tolist()"
SURE = "powers.max(axis=1) / powers.sum(axis=1)"
surest_mistakes.slip(
    "You sort by the score. A large score says little if another one is just as large: sort by the "
    "probability, after the softmax.",
    *(SURE, "logits.max(axis=1)"),
)
surest_mistakes.slip(
    "exp(1000) is too large for a number. Subtract the largest score of each row before you take exp.",
    *(" - logits.max(axis=1, keepdims=True)", ""),
)
surest_mistakes.slip("These are the mistakes it is *least* sure of. Turn the order around.", "-sure", "sure")
surest_mistakes.slip(
    "There are pictures among them that the net reads correctly. Keep only the mistakes.",
    *("np.flatnonzero(logits.argmax(axis=1) != y)", "np.arange(len(y))"),
)
surest_mistakes.slip(
    "You count among the mistakes only. Say which pictures they are among all: the position in `y`.",
    *(CHOSEN, "np.argsort(-sure[wrong])[:count].tolist()"),
)
surest_mistakes.slip(
    "These are all mistakes, in the order of the pictures. Sort them, the surest first.",
    *("[np.argsort(-sure[wrong])]", ""),
)
surest_mistakes.slip(
    "You take the first mistakes, and sort these. Sort all of them first, and then take `count`.",
    *(CHOSEN, "wrong[:count][np.argsort(-sure[wrong[:count]])].tolist()"),
)
surest_mistakes.slip("The order is right. But `count` of them are asked for, and not all.", "[:count]", "")
surest_mistakes.slip(
    "You sort by the probability of the *true* digit. What counts here is how sure the net is of the "
    "digit that it names.",
    *(SURE, "powers[np.arange(len(y)), y] / powers.sum(axis=1)"),
)
surest_mistakes.slip(
    "That is one position. Return a list of `count` of them: `[:count]`.", "[:count].tolist()", "[0]"
)
surest_mistakes.slip(
    "Your probabilities add up to 1 in each column. They should do so in each row: `axis=1, keepdims=True`.",
    (" - logits.max(axis=1, keepdims=True)", " - logits.max(axis=0)"),
    (SURE, "(powers / powers.sum(axis=0)).max(axis=1)"),
)


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
