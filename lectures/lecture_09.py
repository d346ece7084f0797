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
    as_array,
    closely,
    derivatives,
    drawn,
    given,
    kind,
    no_complex_step,
    values,
)

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade

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


# --- 1 log Σ exp that never overflows -----------------------------------------------------------------------


@lecture.exercise(
    given(lambda: {"Z": SMALL.copy()}, "Z"),
    given(lambda: {"Z": LARGE.copy()}, "Z"),
    draws=drawn(Z=st.tuples(TABLES, st.sampled_from([1, 1, 30])).map(lambda x: x[0] * x[1])),
    compare=closely,
    otherwise="For a row of three zeros it is log 3, about 1.0986. Try your function on that, then on a row "
    "with a larger score.",
    use=as_array,
    own=("logaddexp", "logaddexp2", "softmax", "logsoftmax"),
)
def log_sum_exp(Z):
    m = Z.max(axis=1, keepdims=True)
    return m[:, 0] + np.log(np.exp(Z - m).sum(axis=1))


# --- 2 The loss ---------------------------------------------------------------------------------------------


def tensors(pair: tuple[np.ndarray, np.ndarray]) -> Case:
    """A case for the loss: scores that have a gradient, and targets that have none."""

    def make() -> dict[str, Any]:
        Z, targets = pair
        return {"Z": Tensor(Z), "targets": Tensor(targets, requires_grad=False)}

    return given(make, "Z", "targets")


@lecture.exercise(
    tensors((SMALL, TARGETS)),
    tensors((LARGE, TARGETS)),
    draws=TABLES_AND_TARGETS.map(tensors),
    number=30,
    otherwise="For each row: `logsumexp` of the row, minus the score of the true class. Then the mean of all "
    "rows, as a Tensor of shape ().",
    contracts=(derivatives,),
    own=("log_softmax", "cross_entropy"),
    without={
        nn.SoftmaxLoss.forward: "This is the library's own loss. Write it yourself, of `ndl.logsumexp`."
    },
)
def softmax_loss(Z, targets):
    true_scores = (Z * targets).sum()
    return (ndl.logsumexp(Z, axes=(1,)).sum() - true_scores) / Z.shape[0]


loss_of = softmax_loss.right


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
    compare=closely,
    use=as_array,
    own=("softmax", "logsoftmax", "grad", "backward"),
    contracts=(no_complex_step,),
    without={gradients: BY_HAND, Tensor.backward: BY_HAND},
)
def gradient_by_hand(Z, targets):
    powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    return (probabilities - targets) / len(Z)


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
    read(OTHERS, THEIR_LABELS, 0),
    draws=st.tuples(
        st.sampled_from([(5, 3), (8, 4), (4, 2), (40, 10), (3, 3), (1, 2)]),
        st.sampled_from([2, 3, 1, 20]),
        st.sampled_from([0, 3, 1000, -500, 10**6]),
        st.sampled_from([1, 2, 3, 4, 5]),
    ).map(some_read),
    otherwise="First find the pictures whose largest score is not at the label. Then sort these by the "
    "probability of the digit that the net names, the largest first.",
    use=as_list,
    own=("argpartition", "partition"),
)
def surest_mistakes(logits, y, count):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    sure = powers.max(axis=1) / powers.sum(axis=1)
    wrong = np.flatnonzero(logits.argmax(axis=1) != y)
    return wrong[np.argsort(-sure[wrong])][:count].tolist()


def surest(logits: np.ndarray, y: np.ndarray) -> float:
    """The probability that belongs to the surest of the mistakes."""
    scores = logits[surest_mistakes(logits, y, 1)[0]]
    return float(1 / np.exp(scores - scores.max()).sum())


# --- Pictures -----------------------------------------------------------------------------------------------


def templates(W: np.ndarray, digits: Sequence[int] = (0, 1, 3)) -> None:
    """Draw the weights of some digits as pictures: where ink speaks for the digit, and where against it."""
    reach = float(abs(W[:64, list(digits)]).max())
    panels = viz.panels(len(digits), width=2.9, height=2.9)
    for ax, digit in zip(panels, digits, strict=True):
        viz.matrix(W[:64, digit].reshape(8, 8), title=f"weights of the {digit}", limit=reach, ax=ax)
        ax.set(xticks=[], yticks=[])
    for ax in panels[:-1]:  # one scale for all
        ax.images[0].colorbar.remove()  # type: ignore[union-attr]


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
    ax.images[0].colorbar.remove()  # type: ignore[union-attr]  # the numbers are written in the cells
    for text in ax.texts:
        if text.get_text() == "0":
            text.set_text("")
    for digit in range(10):
        ax.text(digit, digit, "·", ha="center", va="center")
