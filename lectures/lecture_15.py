"""Lecture 15, data and the training loop: exercises, usual mistakes in them, and what it draws."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from matplotlib.axes import Axes

import needle as ndl
import viz
from needle import nn
from needle.apps.training import run_epoch
from needle.data import DataLoader, Dataset
from needle.optim import SGD, Adam
from viz.plots.look import RED

from .checking import Case, Lecture, case, drawn, given

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict

MOOD = 0.2  # the share of songs at which mood decides, against the rule


class Ratings(NamedTuple):
    """Songs and what somebody thinks of them.

    Attributes
    ----------
    points : numpy.ndarray, shape (n, 2)
        Tempo and loudness, each from -1 to 1.
    likes : numpy.ndarray of n integers
        1 for a song that is liked, 0 for another one.
    moods : numpy.ndarray of n bools
        Where mood decided against the rule.
    """

    points: np.ndarray
    likes: np.ndarray
    moods: np.ndarray


def ratings(n: int, rng: np.random.Generator) -> Ratings:
    """Songs, liked if they are fast and loud, or slow and quiet; at one in five, mood turns it around."""
    points = rng.uniform(-1, 1, (n, 2))
    rule = (points[:, 0] * points[:, 1] > 0).astype(int)
    moods = rng.random(n) < MOOD
    return Ratings(points, np.where(moods, 1 - rule, rule), moods)


def diary(rated: Ratings) -> str:
    """The songs as lines of text: beats per minute, decibels, and yes or no."""
    tempo, loudness = np.round(120 + 60 * rated.points[:, 0]), np.round(-12 + 10 * rated.points[:, 1], 1)
    rows = zip(tempo, loudness, rated.likes, strict=True)
    return "\n".join(
        f"{beats:.0f}, {decibels:.1f}, {'yes' if like else 'no'}" for beats, decibels, like in rows
    )


# --- 1 A data set -------------------------------------------------------------------------------------------


def double(point: np.ndarray) -> np.ndarray:
    """A transform for the check."""
    return 2 * point


def plus_one(point: np.ndarray) -> np.ndarray:
    """Another one: which of the two comes first makes a difference."""
    return point + 1


class Growing:
    """A transform that differs in each call: it adds 1, then 2, then 3."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, point: np.ndarray) -> np.ndarray:
        self.calls += 1
        return point + self.calls

    def __repr__(self) -> str:
        return "growing"


TRANSFORMS: dict[str, list | None] = {
    "": None,
    "transforms = [double, plus_one, flip], which are 2 * point, point + 1 and point[::-1]": [
        *(double, plus_one, np.flip)
    ],
    "transforms = [growing], which is point + 1 in its first call, point + 2 in its second …": [Growing()],
    "transforms = [], so no transform at all": [],
}


def some_songs(shape: tuple[int, int], labels: Sequence[int], transforms: str) -> Case:
    """A case: so many songs of so many numbers, their labels, and the transforms of this description."""

    def make() -> dict[str, Any]:
        points = (np.arange(np.prod(shape)) * 7 % 11 - 4.0).reshape(shape) / 10
        likes = np.resize(np.array(labels), shape[0])
        return {"points": points, "likes": likes, "transforms": TRANSFORMS[transforms]}

    return given(make, "points", "likes", "transforms", program=transforms)


def looked_at(answer: Any, points: np.ndarray, likes: np.ndarray, transforms: Any) -> Any:
    """The length and items of a data set, after another one has been made."""
    songs = answer(points, likes, deepcopy(transforms))  # `growing` begins anew for each answer
    answer(-points, 1 - likes, [plus_one])
    length = songs.__len__()
    items = [songs[position] for position in (0, 0, len(points) - 1)]
    if length is ... or any(item is ... for item in items):
        return ...
    names = ("songs[0]", "songs[0] again", "the last item")
    return {"len(songs)": length, **dict(zip(names, items, strict=True))}


class Songs(Dataset):
    def __init__(self, points, likes, transforms=None):
        super().__init__(transforms)
        self.points, self.likes = points, likes

    def __len__(self):
        return len(self.likes)

    def __getitem__(self, index):
        return self.apply_transforms(self.points[index]), self.likes[index]


CHAIN, GROWING = list(TRANSFORMS)[1:3]
songs_exercise = lecture.exercise(
    some_songs((4, 2), (0, 1, 1, 0), ""),
    some_songs((3, 2), (1, 0), CHAIN),
    some_songs((3, 2), (0, 1), GROWING),
    draws=st.tuples(
        st.sampled_from([(4, 2), (3, 2), (2, 3), (5, 1), (1, 2)]),
        st.sampled_from([(0, 1, 1, 0), (1, 0), (1,), (3, 2, 0)]),
        st.sampled_from(list(TRANSFORMS)),
    ).map(lambda x: some_songs(*x)),
    otherwise="An item is a pair: `self.points[index]` after `self.apply_transforms`, and `self.likes[index]`.",
    use=looked_at,
    form="Songs({}, {}, {})",
)(Songs)

POINT, LABEL, LENGTH = "self.apply_transforms(self.points[index])", "self.likes[index]", "len(self.likes)"
songs_exercise.slip(
    "The transforms are not applied. Send the point, and only the point, through `self.apply_transforms(...)`.",
    *(POINT, "self.points[index]"),
)
songs_exercise.slip(
    "The label goes through the transforms, too. They change what is measured, and not whether it is liked.",
    *(LABEL, "self.apply_transforms(self.likes[index])"),
)
songs_exercise.slip(
    "An item is the point first and then its label. Yours has them the other way round.",
    *(f"{POINT}, {LABEL}", f"{LABEL}, {POINT}"),
)
songs_exercise.slip(
    "You return all points or all labels. An item is one song: take what stands at `index` from both arrays.",
    *(f"{POINT}, {LABEL}", "self.apply_transforms(self.points), self.likes"),
)
songs_exercise.slip(
    "All points at once go through the transforms, which are made for one. Take the point out first, then "
    "send it through.",
    *(POINT, "self.apply_transforms(self.points)[index]"),
)
songs_exercise.slip(
    "The transforms have run only once, when the data set was made. Let `__getitem__` send the point through "
    "them, anew each time.",
    ("= points, likes", "= [self.apply_transforms(point) for point in points], likes"),
    (POINT, "self.points[index]"),
)
songs_exercise.slip(
    "Leave the point a NumPy array. The loader makes a Tensor of all points in a batch.",
    *(POINT, f"ndl.Tensor({POINT})"),
)
songs_exercise.slip(
    "`songs[0]` gives None. Is a `return` missing in `__getitem__`?", f"return {POINT}", f"{POINT}"
)
songs_exercise.slip(
    "`len(songs)` gives None. Is a `return` missing in `__len__`?", f"return {LENGTH}", LENGTH
)
songs_exercise.slip(
    "`__len__` gives the points themselves. Return how many there are: `len(self.points)`.",
    *(LENGTH, "self.points"),
)
songs_exercise.slip(
    "This is only the point. An item is a pair: return its label, too, after a comma.", f", {LABEL}", ""
)
songs_exercise.slip(
    "`self.points.size` counts the numbers, and each song has several. `len(self.points)` counts the songs.",
    *(LENGTH, "self.points.size"),
)
songs_exercise.slip(
    "That is how many numbers each song has. `len(songs)` is the number of songs.",
    *(LENGTH, "self.points.shape[1]"),
)
songs_exercise.slip(
    "The pair as a whole goes through the transforms. Send only the point through `self.apply_transforms(...)`.",
    *(f"{POINT}, {LABEL}", "self.apply_transforms((self.points[index], self.likes[index]))"),
)


# --- 2 Batches and a transform ------------------------------------------------------------------------------


def two_epochs(answer: Any, n: int, batch_size: int, seed: int) -> Any:
    """The batches of two epochs, with one generator."""
    rng = np.random.default_rng(seed)
    epochs = [answer(n, batch_size, rng) for _ in range(2)]
    if any(parts is ... for parts in epochs):
        return ...
    if not all(isinstance(parts, (list, tuple)) for parts in epochs):
        return epochs[0]
    return [[np.atleast_1d(part) for part in parts] for parts in epochs]


@lecture.exercise(
    case(10, 4, 0),
    case(24, 4, 1),
    draws=drawn((5, 4, 7, 9, 3, 1), (2, 3, 4, 1), (0, 1, 2)),
    otherwise="Shuffle all positions once: `rng.permutation(n)`. Then cut that into slices of `batch_size`.",
    use=two_epochs,
    form="two epochs of batches({}, {}, rng), with rng = np.random.default_rng({}),",
    without={
        DataLoader.__iter__: "That is a `DataLoader` at work. Here you build what it does: shuffle the "
        "positions and cut them yourself."
    },
)
def batches(n, batch_size, rng):
    order = rng.permutation(n)
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]


CUT = "[order[start : start + batch_size] for start in range(0, n, batch_size)]"
batches.slip(
    "The songs come in their old order. Shuffle the positions first: `rng.permutation(n)`.",
    *("rng.permutation(n)", "np.arange(n)"),
)
batches.slip(
    "The last songs are left out: they do not fill a batch. Keep them as a smaller one; a slice that ends too "
    "late is simply shorter.",
    *(CUT, CUT + "[: n // batch_size]"),
)
batches.slip(
    "Some song comes twice, and another one never. Don't draw each position for itself: shuffle all of them, "
    "with `rng.permutation(n)`.",
    *("rng.permutation(n)", "rng.integers(0, n, n)"),
)
batches.slip(
    "The second epoch has the same order as the first. Use the `rng` that you are given: it goes on, while a "
    "new one with a seed begins again.",
    *("rng.permutation(n)", "np.random.default_rng(0).permutation(n)"),
)
batches.slip(
    "You shuffle the batches, and neighbours stay together in each. Shuffle the positions first, and cut then.",
    *(
        ("rng.permutation(n)", "np.arange(n)"),
        (f"return {CUT}", f"cut = {CUT}\n    rng.shuffle(cut)\n    return cut"),
    ),
)
batches.slip(
    "Positions count from 0, as everywhere in Python: of n songs, the last one stands at n − 1. "
    "`rng.permutation(n)` gives just these.",
    *("permutation(n)", "permutation(n) + 1"),
)
batches.slip(
    "The last batch is missing. Begin one at each multiple of `batch_size` below n: `range(0, n, batch_size)`.",
    *(CUT, CUT + "[:-1]"),
)
batches.slip(
    "This is only the first batch. Is the `return` inside the loop? Collect all, and return then.",
    *(CUT, "[order[:batch_size]]"),
)
batches.slip(
    "There is an empty batch at the end. Begin a batch only below n: `range(0, n, batch_size)`.",
    *("range(0, n, batch_size)", "range(0, n // batch_size * batch_size + 1, batch_size)"),
)
batches.slip(
    "You cut into `batch_size` parts. A batch *has* `batch_size` songs, however many parts that makes.",
    *(CUT, "np.array_split(order, batch_size)"),
)
EVEN = (
    "`array_split` makes parts of about the same size. A batch has `batch_size` songs, and only the last may "
    "have fewer: take slices."
)
batches.slip(EVEN, CUT, "np.array_split(order, max(1, n // batch_size))")
batches.slip(
    "A slice ends at a position, and not after so many songs: `order[start : start + batch_size]`.",
    *("start + batch_size]", "batch_size]"),
)
batches.slip(
    "`rng.shuffle` shuffles in place and returns None. `rng.permutation(n)` returns what you need.",
    *("rng.permutation(n)", "rng.shuffle(np.arange(n))"),
)


def shaken(answer: Any, size: float, one: np.ndarray, other: np.ndarray) -> Any:
    """What a transform makes of two points, and of the first once more."""
    jitter = answer(size, np.random.default_rng(5))
    answer(size + 1, np.random.default_rng(6))  # another one, that must not change the first
    return [jitter(point) for point in (one, other, one)]


class Jitter:
    def __init__(self, size, rng):
        self.size, self.rng = size, rng

    def __call__(self, point):
        return point + self.rng.normal(0, self.size, point.shape)


jitter_exercise = lecture.exercise(
    case(0.1, np.array([0.5, -0.2]), np.array([-0.9, 0.4])),
    draws=drawn(
        (2.0, 0.1, 0.5, 0.0),
        *[[np.array(point) for point in ([0.5, -0.2], [0.3, 2.0, -1.0], [4.0], [0.0, 0.0])]] * 2,
    ),
    otherwise="Draw from `self.rng`, a number for each coordinate: `self.rng.normal(0, self.size, "
    "point.shape)`. Return the point plus that.",
    use=shaken,
    form="Jitter({}, rng), called with {}, then {}, then the first again,",
)(Jitter)

NOISE = "self.rng.normal(0, self.size, point.shape)"
jitter_exercise.slip(
    "All coordinates move by the same number. Draw one for each: give `normal` the shape of the point.",
    *(", point.shape", ""),
)
jitter_exercise.slip(
    "Points need not have two numbers. Give `normal` the shape of the point: `point.shape`.",
    "point.shape",
    "2",
)
jitter_exercise.slip("This is only the noise. Add it to the point.", "point + ", "")
jitter_exercise.slip(
    "Each call gives the same noise. Draw in `__call__`, from `self.rng` itself, so that each call draws anew.",
    *("self.rng.normal", "np.random.default_rng(5).normal"),
)
jitter_exercise.slip(
    "The size is not in it: it is the standard deviation, the second argument of `normal`.",
    "self.size, p",
    "1, p",
)
FIRST_IS_MEAN = (
    "The first argument of `normal` is the mean. It is 0, so that the point moves to all sides alike."
)
jitter_exercise.slip(FIRST_IS_MEAN, NOISE, "self.rng.normal(self.size)")
jitter_exercise.slip(
    "The first argument of `normal` is the mean, and the second the standard deviation. Write the 0 before "
    "the size.",
    *("(0, ", "("),
)
jitter_exercise.slip(
    "You draw evenly from a box. Ask for normal noise: `self.rng.normal(0, self.size, point.shape)`.",
    *("normal(0,", "uniform(-self.size,"),
)
jitter_exercise.slip(
    "`normal` takes the standard deviation itself, and not its square: the size as it is.",
    *("self.size, p", "self.size**2, p"),
)
jitter_exercise.slip(
    "You multiply the point by the noise. Add it: a point at 0 should move, too.", "point +", "point *"
)


# --- 3 Train, and evaluate ----------------------------------------------------------------------------------

loss_fn = nn.SoftmaxLoss()


class Watched(nn.Module):
    """A small net that notes in which mode it runs, whether a graph is kept, and how many are kept at once."""

    def __init__(self, inputs: int, classes: int):
        self.linear = nn.Linear(inputs, classes, rng=3)
        self.modes: set[str] = set()
        self.graphs: set[str] = set()
        self.outputs: list[Any] = []
        self.most_kept = 0

    def forward(self, x: ndl.Tensor) -> Any:
        if self.kept() > 2:
            gc.collect()  # a graph has circles, so Python lets it go only when it looks for them
        self.most_kept = max(self.most_kept, self.kept())
        out = self.linear(x)
        self.outputs.append(weakref.ref(out))
        modes = {"training" if module.training else "evaluation" for module in (self, self.linear)}
        self.modes.add(modes.pop() if len(modes) == 1 else "not the same in all modules")
        self.graphs.add("kept" if out.requires_grad else "none")
        return out

    def kept(self) -> int:
        """Of how many batches the graph still exists."""
        return sum(output() is not None for output in self.outputs)

    def weights(self) -> list[float]:
        """All numbers of the net."""
        return [float(w) for p in self.parameters() for w in p.numpy().ravel()]


class Stepper(SGD):
    """An optimiser as the library's, that says by name what PyTorch's has and it has not."""

    def zero_grad(self) -> None:
        raise AttributeError("needle's optimisers have no zero_grad()")


def trained(answer: Any, points: np.ndarray, labels: np.ndarray, classes: int, batch_size: int) -> Any:
    """What an epoch of training returns, and what it leaves."""
    model = Watched(points.shape[1], classes)
    model.eval()
    loader = DataLoader(Songs(points, labels), batch_size)
    gc.freeze()  # so that `gc.collect` looks at new objects only
    try:
        loss = answer(model, loader, Stepper(model.parameters(), lr=0.5))
    finally:
        gc.unfreeze()
    if loss is ... or loss is None:
        return loss
    return {
        "loss": loss,
        "mode": " and ".join(sorted(model.modes)) or "never run",
        "weights after it": model.weights(),
        "graphs": "all kept at once" if model.most_kept > 2 else "let go, one by one",
    }


def evaluated(answer: Any, points: np.ndarray, labels: np.ndarray, classes: int, batch_size: int) -> Any:
    """What an evaluation returns, and in which mode it has run."""
    model = Watched(points.shape[1], classes)
    before = model.weights()
    found = answer(model, DataLoader(Songs(points, labels), batch_size))
    if found is ... or found is None:
        return found
    loss, right = found if isinstance(found, (tuple, list)) and len(found) == 2 else (found, "missing")
    if loss is ... or right is ...:
        return ...
    modes, graphs = (" and ".join(sorted(x)) or "never run" for x in (model.modes, model.graphs))
    what = {"loss": loss, "right": right, "mode": modes, "graph": graphs}
    return what if model.weights() == before else {**what, "the weights": "moved"}


ITSELF = "`run_epoch` is this loop, written for you. Write it yourself; afterwards you may use it."
OUTER = "With `model.training = …` you reach the net, but not the modules in it. `model.{}()` tells them all."
NINE = np.array([[2, 1], [-1, 2], [1, -2], [3, 3], [-3, -3], [0.5, 2], [-2, 0.5], [2, -0.5], [-0.5, -2]])
TO_LEARN = st.tuples(
    st.sampled_from([5, 4, 7, 9, 1]),
    st.sampled_from([2, 3]),
    st.sampled_from([(1, 0, 1, 0, 0), (0, 0, 1), (0, 1), (1,)]),
    st.sampled_from([2, 3]),
    st.sampled_from([2, 3, 4, 1, 9]),
)


def to_learn(count: int, width: int, labels: Sequence[int], classes: int, batch_size: int) -> Case:
    """A case: so many songs of so many numbers, their labels, how many scores the net gives, the batch size."""
    numbers = np.concatenate([NINE, NINE[::-1, :1]], axis=1)[:count, :width].copy()
    pattern = np.resize(labels, count)
    pattern[0] = classes - 1 if classes > 2 else pattern[0]
    return case(numbers, pattern, classes, batch_size)


@lecture.exercise(
    to_learn(5, 2, (1, 0, 1, 0, 0), 2, 2),
    to_learn(4, 2, (1, 0, 1, 0, 0), 2, 3),
    to_learn(9, 2, (1, 0, 1, 0, 0), 2, 2),
    draws=TO_LEARN.map(lambda x: to_learn(*x)),
    number=40,
    otherwise="For each batch: the loss of `model(X)`, `loss.backward()`, `optimizer.step()`. Count each batch's "
    "loss as often as it has songs.",
    use=trained,
    without={run_epoch: ITSELF},
    form="train_epoch(model, loader, optimizer) for the songs {} with the labels {}, {} scores, batches of {},",
)
def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for X, y in loader:
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


LOSS, BACK, STEP = "loss = loss_fn(model(X), y)", "loss.backward()", "optimizer.step()"
ADD, PER_SONG = "loss.item() * len(y)", "total / len(loader.dataset)"
train_epoch.slip(
    "You take the mean over the batches, but the last batch is smaller. Multiply each loss by `len(y)`, and "
    "divide by the number of all songs.",
    *((ADD, "loss.item()"), (PER_SONG, "total / len(loader)")),
)
train_epoch.slip(
    "The net is still in evaluation mode. Say `model.train()` before the loop.", "model.train()", "pass"
)
train_epoch.slip(OUTER.format("train"), "model.train()", "model.training = True")
train_epoch.slip(
    "The weights did not move. Each batch needs both: `loss.backward()` finds the gradients, and then "
    "`optimizer.step()` moves the weights.",
    *(STEP, "pass"),
)
train_epoch.slip(
    "In the first batch there is no gradient yet when the step is made. First `loss.backward()`, and then the "
    "step.",
    *(f"{BACK}\n        {STEP}", f"{STEP}\n        {BACK}"),
)
train_epoch.slip(
    "You ask for the loss again after the step. Count the one that you walked back from: `loss.item()`.",
    *(ADD, "loss_fn(model(X), y).item() * len(y)"),
)
train_epoch.slip(
    "From this loss no way leads back to the weights. Is it the loss of `model(X)`? And is there no "
    "`ndl.no_grad()` around it? That belongs into `evaluate` only.",
    *(LOSS, f"with ndl.no_grad(): {LOSS}"),
)
train_epoch.slip(
    "That line is PyTorch's. Here each `backward()` replaces the gradients, so there is nothing to set to 0: "
    "leave it out.",
    *(LOSS, f"optimizer.zero_grad(); {LOSS}"),
)
train_epoch.slip(
    "You weigh each loss with `loader.batch_size`, but the last batch has fewer songs. Ask each for its own: "
    "`len(y)`.",
    *("len(y)", "loader.batch_size"),
)
train_epoch.slip(
    "You stop after the first batch. Is the `return` inside the loop?",
    *("    return total", "        return total"),
)
train_epoch.slip(
    "This is the loss of the last batch. Add up the losses of all songs, and take their mean.",
    *(PER_SONG, "loss.item()"),
)
train_epoch.slip(
    "This is the sum over the batches. Divide by the number of songs: `len(loader.dataset)`.",
    PER_SONG,
    "total",
)
GRAPHS = (
    "The loss is a Tensor, and with it you keep the graph of every batch (lecture 06). Add up `loss.item()`."
)
train_epoch.slip(GRAPHS, ADD, "loss * len(y)")
train_epoch.slip(GRAPHS, (ADD, "loss * len(y)"), (PER_SONG, "total.item() / len(loader.dataset)"))
train_epoch.slip(
    "One backward pass at the end makes a single step with the last batch. Take both into the loop.",
    *(
        ("        loss.backward()\n        optimizer.step()\n", ""),
        ("    return", f"    {BACK}; {STEP}\n    return"),
    ),
)
train_epoch.slip(
    "You divide by the number of batches. The losses are those of songs: `len(loader.dataset)`.",
    *(PER_SONG, "total / len(loader)"),
)
MEAN_ALREADY = (
    "Each `loss` is the mean of its batch already. Multiply it by `len(y)` before you divide by all songs."
)
train_epoch.slip(MEAN_ALREADY, ADD, "loss.item()")
train_epoch.slip(MEAN_ALREADY, (ADD, "loss.item()"), (PER_SONG, "total"))


@lecture.exercise(
    to_learn(5, 2, (1, 0, 1, 0, 0), 2, 2),
    to_learn(4, 2, (1, 0, 1, 0, 0), 2, 3),
    to_learn(9, 2, (1, 1, 0, 0), 2, 4),
    draws=TO_LEARN.map(lambda x: to_learn(*x)),
    number=60,
    otherwise="For each batch, within `with ndl.no_grad():`, compute the scores, their loss, and how often the "
    "largest score stands at the label. Add up, and divide by the number of songs.",
    use=evaluated,
    without={run_epoch: ITSELF},
    form="evaluate(model, loader) for the songs {} with the labels {}, {} scores, batches of {},",
)
def evaluate(model, loader):
    model.eval()
    total, right = 0.0, 0
    with ndl.no_grad():
        for X, y in loader:
            scores = model(X)
            total += loss_fn(scores, y).item() * len(y)
            right += int((scores.numpy().argmax(axis=1) == y.numpy()).sum())
    return total / len(loader.dataset), right / len(loader.dataset)


HITS = "int((scores.numpy().argmax(axis=1) == y.numpy()).sum())"
BOTH = "total / len(loader.dataset), right / len(loader.dataset)"
SHARE = "right / len(loader.dataset)"
NO_GRAPH = ("with ndl.no_grad()", "if True")
evaluate.slip(
    "The net is still in training mode, so dropout would still drop. Say `model.eval()` first.",
    *("model.eval()", "pass"),
)
evaluate.slip(OUTER.format("eval"), "model.eval()", "model.training = False")
evaluate.slip(
    "A graph is kept for every batch, and nobody walks back through it. Put the loop into "
    "`with ndl.no_grad():`.",
    *NO_GRAPH,
)
evaluate.slip(
    "You take the mean over the batches, but the last one is smaller, and its songs would count more. Weigh "
    "each loss with `len(y)`.",
    *((".item() * len(y)", ".item()"), (BOTH, f"total / len(loader), {SHARE}")),
)
evaluate.slip(
    "Both are means over the batches, but the last one is smaller, and its songs would count more. Add up over "
    "the songs, and divide at the end.",
    *((".item() * len(y)", ".item()"), (HITS, HITS + " / len(y)")),
    (BOTH, "total / len(loader), right / len(loader)"),
)
evaluate.slip("This is how many are right. Divide by the number of songs for the share.", SHARE, "right")
evaluate.slip(
    "The share is in percent. Leave it between 0 and 1: divide by the number of songs only.",
    SHARE,
    f"100 * {SHARE}",
)
evaluate.slip(
    "You count the songs that the net likes. Compare with the labels: how often is it right?",
    *(" == y.numpy()", ""),
)
evaluate.slip(
    "Do you count the last batch only? The line that counts belongs into the loop.", "right +=", "right ="
)
evaluate.slip("This is the share that is wrong. Asked for is the share that is right.", SHARE, f"1 - {SHARE}")
evaluate.slip(
    "First the loss, and then the share of songs that are right.", BOTH, ", ".join(BOTH.split(", ")[::-1])
)
evaluate.slip(
    "You look at the last batch only. Add up over all of them.",
    *(("total +=", "total ="), ("right +=", "right ="), (BOTH, "total / len(y), right / len(y)")),
)
evaluate.slip(
    "You stop after the first batch. Is the `return` inside the loop?", "    return", "            return"
)
evaluate.slip(
    "Two numbers are asked for: the mean loss, and the share of songs that are right.", f", {SHARE}", ""
)
evaluate.slip(
    "`argmax()` looks at the whole batch. Each row is a song and has its own largest: `axis=1`.", "axis=1", ""
)
evaluate.slip(
    "`axis=0` looks for the largest score down the columns. A song is a row: `axis=1`.", "axis=1", "axis=0"
)
evaluate.slip(
    "The share is a mean over batches, and the last one is smaller. Count with `.sum()`, divide once.",
    *((HITS, HITS + " / len(y)"), (SHARE, "right / len(loader)")),
)
ONE_SCORE = (
    "You look at one score only. It may be above 0, and another one larger still: compare all, with `argmax`."
)
evaluate.slip(ONE_SCORE, "scores.numpy().argmax(axis=1)", "(scores.numpy()[:, 1] > 0)")
evaluate.slip(
    "A net may give more than two scores. Compare all of them: `argmax(axis=1)`.",
    *("scores.numpy().argmax(axis=1)", "(scores.numpy()[:, 1] > scores.numpy()[:, 0])"),
)
evaluate.slip("The loss is still a Tensor. Add up its number: `.item()`.", ".item()", "")
evaluate.slip(
    "You compare an array with a Tensor, and they are never equal. Take the numbers: `y.numpy()`.",
    *(HITS, "int(np.sum(scores.numpy().argmax(axis=1) == y))"),
)
evaluate.slip(
    "A Tensor's `argmax` says `axes=`. It is easier with its numbers: `scores.numpy().argmax(axis=1)`.",
    *("scores.numpy().argmax", "scores.argmax"),
)


# --- 4 Early stopping ---------------------------------------------------------------------------------------

LONG = [0.9, 0.7, 0.75, 0.72, 0.74, 0.71, 0.73, 0.5, 0.55, 0.52, 0.6, 0.65, 0.7, 0.75, 0.68]
#: Losses, some of which differ by little; now and then all of them are large.
LOSSES = st.tuples(
    st.lists(st.sampled_from((0.5, 0.6, 0.4, 0.45, 0.7, 0.3999, 2.0, 0.0)), min_size=1, max_size=9),
    st.sampled_from((1, 1, 1000)),
).map(lambda x: [round(loss * x[1], 4) for loss in x[0]])


@lecture.exercise(
    case(LONG, 4),
    case(LONG, 6),
    draws=drawn(LOSSES, (2, 3, 1, 4)),
    number=150,
    otherwise="Go through the losses one by one, and keep in mind the best epoch so far. Stop in the first epoch "
    "that is `patience` epochs after the best one.",
)
def early_stop(losses, patience):
    best = 1
    for epoch, loss in enumerate(losses, start=1):
        if loss < losses[best - 1]:
            best = epoch
        if epoch - best == patience:
            return best, epoch
    return best, len(losses)


STOP, BEST = "if epoch - best == patience", "if loss < losses[best - 1]"
early_stop.slip(
    "You look at losses that come after the end. When training stops, nobody knows yet that a better epoch would "
    "follow.",
    (
        "    best = 1",
        "    best = int(np.argmin(losses)) + 1\n    return best, min(best + patience, len(losses))",
    ),
)
early_stop.slip(
    "This is the best of all epochs, and training never stops. Stop when the best is `patience` epochs ago.",
    *(STOP, "if False"),
)
early_stop.slip(
    "You stop at the first rise. A loss goes up and down; wait until the best one is `patience` epochs ago.",
    *(STOP, "if epoch > best"),
)
early_stop.slip(
    "You count rises one after the other. A small fall does not help as long as the best loss is not beaten: "
    "compare with the best, and not with the one before.",
    ("best = 1", "best, rises = 1, 0"),
    (BEST, f"rises = rises + 1 if epoch > 1 and loss >= losses[epoch - 2] else 0\n        {BEST}"),
    (STOP, "if rises == patience"),
)
early_stop.slip(
    "You compare with the loss before. After a rise, a small fall is no progress yet: compare with the best.",
    *(BEST, "if epoch > 1 and loss < losses[epoch - 2]"),
)
early_stop.slip(
    "You count all epochs that were no better. Count from the best one: begin again at each new best.",
    ("best = 1", "best, waited = 1, 0"),
    (
        "            best = epoch",
        "            best = epoch\n        elif epoch > 1:\n            waited += 1",
    ),
    (STOP, "if waited == patience"),
)
early_stop.slip(
    "The first epoch is the best so far, and nothing is waited yet. Count the epochs after the best one only.",
    *(STOP, "if epoch - (best if best > 1 else 0) == patience"),
)
early_stop.slip(
    "If training never stops early, the last epoch need not be the best. Return the best one there, too.",
    *("return best, len(losses)", "return len(losses), len(losses)"),
)
early_stop.slip(
    "You count from 0. The first epoch is epoch 1: `enumerate(losses, start=1)`.",
    ("return best, epoch", "return best - 1, epoch - 1"),
    ("return best, len(losses)", "return best - 1, len(losses) - 1"),
)
early_stop.slip(
    "You stop an epoch too late: it ends as soon as `epoch - best` *is* the patience.",
    "== patience",
    "> patience",
)
early_stop.slip(
    "The same loss again is no progress. Take a new best epoch only where the loss is smaller: `<`, not `<=`.",
    *("loss <", "loss <="),
)
early_stop.slip(
    "Every smaller loss is a better one, however little smaller it is: `<`, without anything subtracted.",
    *("losses[best - 1]:", "losses[best - 1] - 1e-3:"),
)
early_stop.slip(
    "The losses stand there, and not their epochs. Return the two numbers of the epochs.",
    ("return best, epoch", "return losses[best - 1], loss"),
    ("return best, len(losses)", "return losses[best - 1], losses[-1]"),
)
early_stop.slip(
    "First the best epoch, and then the one in which you stop.",
    *(("best, epoch\n", "epoch, best\n"), ("best, len(losses)", "len(losses), best")),
)
early_stop.slip(
    "This is the epoch in which training stops. Return the best one, too: a pair, the best first.",
    *(("best, epoch\n", "epoch\n"), ("best, len(losses)", "len(losses)")),
)
early_stop.slip(
    "This is the best epoch. Return the one in which training stops, too: a pair.",
    *(("best, epoch\n", "best\n"), ("best, len(losses)", "best")),
)


# --- 5 A data set of your own -------------------------------------------------------------------------------


def tables(answer: Any, text: str, other: str) -> Any:
    """The lengths and the items of a table, and of one that is scaled like it."""
    first = answer(text)
    second = answer(other, like=first)
    lengths = [first.__len__(), second.__len__()]
    counts = [text.count("\n") + 1, other.count("\n") + 1]
    items = [[table[index] for index in range(n)] for table, n in zip((first, second), counts, strict=True)]
    if any(x is ... for x in [*lengths, *items[0], *items[1]]):
        return ...
    found: dict[str, Any] = {}
    for name, length, rows in zip(("first", "second"), lengths, items, strict=True):
        found |= {f"len({name})": length, **{f"{name}[{i}]": row for i, row in enumerate(rows)}}
    return found


class Table(Dataset):
    def __init__(self, text, like=None):
        super().__init__()
        rows = [line.split(",") for line in text.splitlines()]
        self.points = np.array([[float(number) for number in row[:2]] for row in rows])
        self.likes = [int(row[2].strip() == "yes") for row in rows]
        self.mean = like.mean if like else self.points.mean(axis=0)
        self.spread = like.spread if like else self.points.std(axis=0)

    def __len__(self):
        return len(self.likes)

    def __getitem__(self, index):
        return (self.points[index] - self.mean) / self.spread, self.likes[index]


table_exercise = lecture.exercise(
    case("120, -9.5, yes\n90, -4.0, no\n150, -12.0, yes\n160, -3.5, yes", "100, -8.0, no\n180, -2.0, yes"),
    case("75, -20.0, no\n125, -10.0, yes", "70, -15.0, yes\n130, -18.0, no\n95, -12.5, no"),
    draws=drawn(
        (
            "100, -8.0, no\n180, -2.0, yes",
            "90, 3.5, yes\n61, -4.0, yes\n150, -12.0, no",
            "75, 0.0, no\n3, -1.5, no",
        ),
        ("100, -10.0, yes", "95, -12.5, no\n105, 4.0, yes", "7, 0.5, no\n120, -8.0, no\n120, -8.0, yes"),
    ),
    number=20,
    otherwise="Per column: subtract the mean, then divide by the standard deviation, `.std(axis=0)`, both of the "
    "table in `like`, or of your own if there is none.",
    use=tables,
    form="first, second = Table({0}), Table({1}, like=first)",
)(Table)

SCALED, YES = "(self.points[index] - self.mean) / self.spread", 'int(row[2].strip() == "yes")'
MEAN, SPREAD = (
    "like.mean if like else self.points.mean(axis=0)",
    "like.spread if like else self.points.std(axis=0)",
)
READ = "[[float(number) for number in row[:2]] for row in rows]"
table_exercise.slip(
    "The numbers are as in the text. Subtract each column's mean and divide by its spread.",
    *(SCALED, "self.points[index]"),
)
table_exercise.slip(
    "The second table takes its own mean and spread. A song must mean the same to the net in both, so take those "
    "of `like`.",
    *((MEAN, "self.points.mean(axis=0)"), (SPREAD, "self.points.std(axis=0)")),
)
table_exercise.slip(
    "You take one mean for both columns. Tempo and loudness have their own: `axis=0`.",
    *(("mean(axis=0)", "mean()"), ("std(axis=0)", "std()")),
)
table_exercise.slip(
    "The mean is subtracted. Divide by the spread, too: `.std(axis=0)`.", " / self.spread", ""
)
table_exercise.slip(
    "Python divides before it subtracts. Put the difference into brackets.",
    *(SCALED, "self.points[index] - self.mean / self.spread"),
)
table_exercise.slip(
    "You divide by the variance. Its square root is the standard deviation, `.std(axis=0)`.", ".std(", ".var("
)
table_exercise.slip(
    "Each song is scaled by its own two numbers. Take mean and spread over all songs of a table: `axis=0`.",
    *(SCALED, "(self.points[index] - self.points[index].mean()) / self.points[index].std()"),
)
table_exercise.slip(
    "The new songs have a say in the mean or the spread, by which they are measured. Take those of `like` as "
    "they are.",
    (MEAN, "np.concatenate([self.points, like.points] if like else [self.points]).mean(axis=0)"),
    (SPREAD, "np.concatenate([self.points, like.points] if like else [self.points]).std(axis=0)"),
)
table_exercise.slip(
    "This spread divides by n − 1 (`ddof=1`, the default of pandas). NumPy's `.std(axis=0)` divides by n; take that.",
    *("std(axis=0)", "std(axis=0, ddof=1)"),
)
table_exercise.slip("The labels are the wrong way round: 1 is for yes, and 0 for no.", '== "yes"', '!= "yes"')
table_exercise.slip(
    'All labels are 1: Python takes every word for true, also the word no. Compare: `word == "yes"`.',
    *(YES, "int(bool(row[2].strip()))"),
)
table_exercise.slip(
    "`int` makes whole numbers of digits only. For tempo and loudness take `float(word)`; for the label ask "
    "whether the word is yes.",
    *(READ, "[[int(number) for number in row] for row in rows]"),
)
table_exercise.slip(
    "All labels are 0: the word in the text has a space in front. Use `.strip()`.", ".strip()", ""
)
WORD = "The label is a word. The loss needs a number: 1 for yes, and 0 for no."
table_exercise.slip(WORD, YES, "row[2].strip()")
table_exercise.slip(WORD, YES, "row[2]")
table_exercise.slip(
    "You stretch from the smallest to the largest number. Use mean and standard deviation.",
    *(("self.points.mean(axis=0)", "self.points.min(axis=0)"), ("self.points.std(", "np.ptp(self.points, ")),
)
NO_NUMBER = (
    "Not every word is a number: see the error. Make numbers of the first two in a line only, `row[:2]`. And "
    "take lines: `text.splitlines()`; `for line in text` goes letter by letter."
)
table_exercise.slip(NO_NUMBER, "row[:2]", "row")
table_exercise.slip(
    "The numbers are still text. Make a number of each word: `float(word)`.", "float(number)", "number"
)


# --- Models and pictures ------------------------------------------------------------------------------------


def learned_by_heart(rated: Ratings) -> nn.Sequential:
    """The net of the first picture, after 200 epochs, as the lecture trains it later."""
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        *(nn.Linear(2, 64, rng=rng), nn.ReLU(), nn.Linear(64, 64, rng=rng), nn.ReLU()),
        nn.Linear(64, 2, rng=rng),
    )
    optimizer = Adam(model.parameters(), lr=0.004)
    loader = DataLoader(Songs(rated.points, rated.likes), 16, shuffle=True, rng=0)
    for _ in range(200):
        train_epoch.right(model, loader, optimizer)
    return model


def share_right(model: Any, rated: Ratings) -> float:
    """The share of songs that a net gets right."""
    return evaluate.right(model, DataLoader(Songs(rated.points, rated.likes), len(rated.points)))[1]


def regions(model: Any, rated: Any, title: str = "", *, ax: Axes | None = None, moods: bool = False) -> Axes:
    """Draw where a net says "liked", and songs: liked ones as orange squares, the others as blue dots.

    With `moods`, a ring stands around each song at which mood decided.
    """
    ax = viz.panels(1, width=4.2, height=3.8)[0] if ax is None else ax
    ax = viz.decision_boundary(model, rated.points, rated.likes, resolution=80, ax=ax)
    colours: Any = ax.collections[0]
    legend: Any = ax.get_legend()
    colours.colorbar.remove()
    legend.remove()
    if moods:
        x, y = rated.points[rated.moods].T
        ax.scatter(x, y, s=110, facecolors="none", edgecolors=RED, linewidths=1.4, zorder=4)
    ticks = (-1, -0.5, 0, 0.5, 1)
    ax.set(xlabel="tempo", ylabel="loudness", anchor="W", xticks=ticks, yticks=ticks)
    ax.set_title(title, loc="left", weight="bold", fontsize=10)
    return ax


def before_and_after(model: Any, pairs: Sequence[tuple[str, Ratings]]) -> Axes:
    """Draw the same net beside several sets of songs, each with the share that it gets right."""
    axes = viz.panels(len(pairs), width=3.7, height=3.9)
    for ax, (name, rated) in zip(axes, pairs, strict=True):
        regions(model, rated, f"{name}: {share_right(model, rated):.0%} right", ax=ax)
    return axes[0]


def two_curves(history: Any) -> Axes:
    """Draw loss and share right over the epochs, of seen and of new songs.

    Each row of the history has the loss and the share right of seen songs, then those of new ones.
    """
    columns = np.array(history).T
    epochs = range(1, columns.shape[1] + 1)
    left, right = viz.panels(2, width=4.2)
    for ax, name, first, scale in (
        (left, "loss of seen and of new songs", 0, 1),
        (right, "how many are right, in percent", 1, 100),
    ):
        curves = {"seen": scale * columns[first], "new": scale * columns[first + 2]}
        viz.curve(curves, epochs, log="x", xlabel="epoch", title=name, ax=ax)
    left.set_ylim(bottom=0)
    return left
