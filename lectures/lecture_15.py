"""Lecture 15, data and the training loop: exercises, usual mistakes, predictions, and what it draws."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

import viz
from needle import nn
from needle.apps.training import run_epoch
from needle.autograd import Tensor, no_grad
from needle.data import DataLoader, Dataset
from needle.optim import SGD, Adam
from viz.plots.look import RED

from .checking import Lecture, case, given

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


def arrays(**values: Any) -> Any:
    """Makes the inputs of a case, with copies of these arrays."""
    return lambda: {
        name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()
    }


# --- 1 A data set -------------------------------------------------------------------------------------------

POINTS = np.array([[0.5, -0.2], [-0.9, 0.4], [0.1, 0.8], [-0.3, -0.7]])
LIKES = np.array([0, 1, 1, 0])
THREE = np.array([[0.6, 0.6], [-0.8, -0.1], [0.2, -0.5]])


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


def _looked_at(answer: Any, points: Any, likes: Any, transforms: Any) -> Any:
    songs = answer(points, likes, deepcopy(transforms))  # `growing` begins anew for each answer
    length = songs.__len__()
    items = [songs[position] for position in (0, 0, len(points) - 1)]
    if length is ... or any(item is ... for item in items):
        return ...
    names = ("songs[0]", "songs[0] again", "the last item")
    return {"len(songs)": length, **dict(zip(names, items, strict=True))}


class Songs(Dataset):
    """Points and labels, item by item."""

    def __init__(self, points, likes, transforms=None):
        super().__init__(transforms)
        self.points, self.likes = points, likes

    def __len__(self):
        return len(self.likes)

    def __getitem__(self, index):
        return self.apply_transforms(self.points[index]), self.likes[index]


PLAIN = Songs  # the name stands for the exercise from here on

songs_exercise = lecture.exercise(
    given(arrays(points=POINTS, likes=LIKES, transforms=None), "points", "likes", "transforms"),
    given(
        arrays(points=THREE, likes=LIKES[:3], transforms=[double, plus_one, np.flip]),
        *("points", "likes", "transforms"),
        program="transforms = [double, plus_one, np.flip], which are 2 * point, point + 1 and point[::-1]",
    ),
    given(
        arrays(points=THREE, likes=LIKES[:3], transforms=[Growing()]),
        *("points", "likes", "transforms"),
        program="transforms = [growing], which is point + 1 in its first call, point + 2 in its second …",
    ),
    otherwise="An item is a pair: `self.points[index]` after `self.apply_transforms`, and "
    "`self.likes[index]`.",
    use=_looked_at,
    form="Songs({}, {}, {})",
)(Songs)


@songs_exercise.mistake(
    "The transforms are not applied. Send the point, and only the point, through "
    "`self.apply_transforms(...)`."
)
class WithoutTransforms(PLAIN):
    def __getitem__(self, index):
        return self.points[index], self.likes[index]


@songs_exercise.mistake(
    "The label goes through the transforms, too. They change what is measured, and not whether it is liked."
)
class LabelTransformed(PLAIN):
    def __getitem__(self, index):
        return self.apply_transforms(self.points[index]), self.apply_transforms(self.likes[index])


@songs_exercise.mistake("An item is the point first and then its label. Yours has them the other way round.")
class LabelFirst(PLAIN):
    def __getitem__(self, index):
        return self.likes[index], self.apply_transforms(self.points[index])


@songs_exercise.mistake(
    "You return all points or all labels. An item is one song: take what stands at `index` from both arrays."
)
class Everything(PLAIN):
    def __getitem__(self, index):
        return self.apply_transforms(self.points), self.likes


@songs_exercise.mistake(
    "All points at once go through the transforms, which are made for one. Take the point out first, then "
    "send it through."
)
class AllTransformed(PLAIN):
    def __getitem__(self, index):
        return self.apply_transforms(self.points)[index], self.likes[index]


@songs_exercise.mistake(
    "The transforms have run only once, when the data set was made. Let `__getitem__` send the point through "
    "them, anew each time."
)
class TransformedOnce(PLAIN):
    def __init__(self, points, likes, transforms=None):
        super().__init__(points, likes, transforms)
        self.points = [self.apply_transforms(point) for point in points]

    def __getitem__(self, index):
        return self.points[index], self.likes[index]


@songs_exercise.mistake("Leave the point a NumPy array. The loader makes a Tensor of all points in a batch.")
class PointAsTensor(PLAIN):
    def __getitem__(self, index):
        return Tensor(self.apply_transforms(self.points[index])), self.likes[index]


@songs_exercise.mistake("`songs[0]` gives None. Is a `return` missing in `__getitem__`?")
class ItemNotReturned(PLAIN):
    def __getitem__(self, index):
        return None


@songs_exercise.mistake("`len(songs)` gives None. Is a `return` missing in `__len__`?")
class LengthNotReturned(PLAIN):
    def __len__(self):
        return None


@songs_exercise.mistake(
    "`__len__` gives the points themselves. Return how many there are: `len(self.points)`."
)
class PointsAsLength(PLAIN):
    def __len__(self):
        return self.points


@songs_exercise.mistake("This is only the point. An item is a pair: return its label, too, after a comma.")
class PointOnly(PLAIN):
    def __getitem__(self, index):
        return self.apply_transforms(self.points[index])


@songs_exercise.mistake(
    "`self.points.size` counts the numbers, and each song has two. `len(self.points)` counts the songs."
)
class CountsNumbers(PLAIN):
    def __len__(self):
        return self.points.size


@songs_exercise.mistake("That is how many numbers each song has. `len(songs)` is the number of songs.")
class CountsColumns(PLAIN):
    def __len__(self):
        return self.points.shape[1]


@songs_exercise.mistake("`len(self)` asks this very method again, for ever. Ask an array: `len(self.likes)`.")
class AsksItself(PLAIN):
    def __len__(self):
        return len(self)


@songs_exercise.mistake(
    "That is the length of one data set only. Ask an array how long it is: `len(self.likes)`."
)
class AlwaysForty(PLAIN):
    def __len__(self):
        return 40


@songs_exercise.mistake(
    "The pair as a whole goes through the transforms. Send only the point through "
    "`self.apply_transforms(...)`."
)
class PairTransformed(PLAIN):
    def __getitem__(self, index):
        return self.apply_transforms((self.points[index], self.likes[index]))


@songs_exercise.mistake(
    "You call each transform with the stored point, so only the last one counts: they chain."
)
class LastTransformOnly(PLAIN):
    def __getitem__(self, index):
        point = self.points[index]
        for transform in self.transforms or ():
            point = transform(self.points[index])
        return point, self.likes[index]


@songs_exercise.mistake(
    "`self.transforms` is a list of functions, or None, so it cannot be called. "
    "`self.apply_transforms(...)` goes "
    "through it for you."
)
class ListCalled(PLAIN):
    def __getitem__(self, index):
        transforms: Any = self.transforms
        return transforms(self.points[index]), self.likes[index]


# --- 2 Batches and a transform ------------------------------------------------------------------------------


def _order(parts: Sequence[np.ndarray], n: int) -> str:
    flat = [int(i) for part in parts for i in part]
    if flat == sorted(flat):
        return "0, 1, 2, …"
    runs = [all(after == before + 1 for before, after in pairwise(part)) for part in parts if len(part) > 2]
    return "neighbours stay together" if all(runs) else "shuffled"


def _two_epochs(answer: Any, n: int, batch_size: int, rng: Any) -> Any:
    epochs = [answer(n, batch_size, rng) for _ in range(2)]
    if any(parts is ... for parts in epochs):
        return ...
    if any(parts is None for parts in epochs):
        return None
    first, second = ([np.atleast_1d(part) for part in parts] for parts in epochs)
    every = [int(i) for part in first for i in part]
    again = every == [int(i) for part in second for i in part]
    order = _order(first, n)
    songs = "none twice" if len(set(every)) == len(every) else "some twice"
    return {
        "sizes": [len(part) for part in first],
        "positions": songs if set(every) <= set(range(n)) else "not from 0 to n − 1",
        "order": order,
        "next epoch": "the same order" if again and order == "shuffled" else "another order",
    }


def _epoch(n: int, batch_size: int) -> Any:
    return given(
        lambda: {"n": n, "batch_size": batch_size, "rng": np.random.default_rng(n)}, "n", "batch_size", "rng"
    )


@lecture.exercise(
    _epoch(24, 4),
    _epoch(10, 4),
    _epoch(23, 8),
    otherwise="Shuffle all positions once: `rng.permutation(n)`. Then cut that into slices of `batch_size`.",
    use=_two_epochs,
    without={
        DataLoader.__iter__: "That is a `DataLoader` at work. Here you build what it does: shuffle the "
        "positions and cut them yourself."
    },
)
def batches(n, batch_size, rng):
    """The positions of an epoch, shuffled, in parts."""
    order = rng.permutation(n)
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]


@batches.mistake("The songs come in their old order. Shuffle the positions first: `rng.permutation(n)`.")
def in_order(n, batch_size, rng):
    return [np.arange(n)[i : i + batch_size] for i in range(0, n, batch_size)]


@batches.mistake(
    "The last songs are left out: they do not fill a batch. Keep them as a smaller one; a "
    "slice that ends too "
    "late is simply shorter."
)
def last_lost(n, batch_size, rng):
    return batches.right(n, batch_size, rng)[: n // batch_size]


@batches.mistake(
    "Some song comes twice, and another one never. Don't draw each position for itself: shuffle all of them, "
    "with `rng.permutation(n)`."
)
def drawn(n, batch_size, rng):
    draws = [0] + [0] + list(range(2, n))
    rng.shuffle(draws)
    return [draws[i : i + batch_size] for i in range(0, n, batch_size)]


@batches.mistake(
    "The second epoch has the same order as the first. Use the `rng` that you are given: it goes on, while a "
    "new one with a seed begins again."
)
def same_again(n, batch_size, rng):
    return batches.right(n, batch_size, np.random.default_rng(1))


@batches.mistake(
    "You shuffle the batches, and neighbours stay together in each. Shuffle the positions "
    "first, and cut then."
)
def batches_shuffled(n, batch_size, rng):
    parts = in_order(n, batch_size, rng)
    return [parts[i] for i in rng.permutation(len(parts))]


@batches.mistake(
    "Positions count from 0, as everywhere in Python: of n songs, the last one stands at n − 1. "
    "`rng.permutation(n)` gives just these."
)
def from_one(n, batch_size, rng):
    return [part + 1 for part in batches.right(n, batch_size, rng)]


@batches.mistake(
    "The last batch is missing. Begin one at each multiple of `batch_size` below n: "
    "`range(0, n, batch_size)`."
)
def last_batch_lost(n, batch_size, rng):
    return batches.right(n, batch_size, rng)[:-1]


@batches.mistake(
    "This is only the first batch. Is the `return` inside the loop? Collect all, and return then."
)
def first_of_them(n, batch_size, rng):
    return batches.right(n, batch_size, rng)[:1]


@batches.mistake("There is an empty batch at the end. Begin a batch only below n: `range(0, n, batch_size)`.")
def one_too_many(n, batch_size, rng):
    order = rng.permutation(n)
    return [order[i * batch_size : (i + 1) * batch_size] for i in range(n // batch_size + 1)]


@batches.mistake(
    "You cut into `batch_size` parts. A batch *has* `batch_size` songs, however many parts that makes."
)
def so_many_parts(n, batch_size, rng):
    return np.array_split(rng.permutation(n), batch_size)


EVEN = (
    "`array_split` makes parts of about the same size. A batch has `batch_size` songs, and only the last may "
    "have fewer: take slices."
)


@batches.mistake(EVEN)
def even_parts(n, batch_size, rng):
    return np.array_split(rng.permutation(n), n // batch_size)


@batches.mistake(EVEN)
def even_parts_and_one_more(n, batch_size, rng):
    return np.array_split(rng.permutation(n), -(-n // batch_size))


@batches.mistake(
    "A slice ends at a position, and not after so many songs: `order[start : start + batch_size]`."
)
def ends_at_the_size(n, batch_size, rng):
    order = rng.permutation(n)
    return [order[start:batch_size] for start in range(0, n, batch_size)]


@batches.mistake("Each song is a batch of its own here. Take slices of `batch_size` positions.")
def one_by_one(n, batch_size, rng):
    return [[i] for i in rng.permutation(n)]


@batches.mistake(
    "`rng.shuffle` shuffles in place and returns None. `rng.permutation(n)` returns what you need."
)
def shuffled_in_place(n, batch_size, rng):
    order = rng.shuffle(np.arange(n))
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]


def _shaken(answer: Any, size: float, point: np.ndarray) -> Any:
    jitter = answer(size, np.random.default_rng(5))
    return [jitter(point), jitter(point)]


class Jitter:
    """Moves a point a little, anew each time."""

    def __init__(self, size, rng):
        self.size, self.rng = size, rng

    def __call__(self, point):
        return point + self.rng.normal(0, self.size, point.shape)


STILL = Jitter  # the name stands for the exercise from here on

jitter_exercise = lecture.exercise(
    given(arrays(size=0.1, point=np.array([0.5, -0.2])), "size", "point"),
    given(arrays(size=2.0, point=np.array([-0.9, 0.4])), "size", "point"),
    otherwise="Draw from `self.rng`, a number for each coordinate: `self.rng.normal(0, self.size, "
    "point.shape)`. "
    "Return the point plus that.",
    use=_shaken,
    form="Jitter({}, rng), called twice with {},",
)(Jitter)


@jitter_exercise.mistake(
    "Both coordinates move by the same number. Draw one for each: give `normal` the shape of the point."
)
class SameForBoth(STILL):
    def __call__(self, point):
        return point + self.rng.normal(0, self.size)


@jitter_exercise.mistake("This is only the noise. Add it to the point.")
class NoiseOnly(STILL):
    def __call__(self, point):
        return self.rng.normal(0, self.size, point.shape)


@jitter_exercise.mistake(
    "Both calls give the same. Draw in `__call__`, from `self.rng` itself, so that each call draws anew."
)
class DrawnOnce(STILL):
    def __init__(self, size, rng):
        self.size, self.noise = size, rng.normal(0, size, 2)

    def __call__(self, point):
        return point + self.noise


@jitter_exercise.mistake(
    "The size is not in it: it is the standard deviation, the second argument of `normal`."
)
class OfSizeOne(STILL):
    def __call__(self, point):
        return point + self.rng.normal(0, 1, point.shape)


@jitter_exercise.mistake(
    "The first argument of `normal` is the mean. It is 0, so that the point moves to all sides alike."
)
class MeanForBoth(STILL):
    def __call__(self, point):
        return point + self.rng.normal(self.size)


@jitter_exercise.mistake(
    "The first argument of `normal` is the mean. It is 0, so that the point moves to all sides alike."
)
class WithAMean(STILL):
    def __call__(self, point):
        return point + self.rng.normal(self.size, 1, point.shape)


@jitter_exercise.mistake(
    "The first argument of `normal` is the mean, and the second the standard deviation. Write the 0 before "
    "the size."
)
class ShapeAsSize(STILL):
    def __call__(self, point):
        return point + self.rng.normal(self.size, point.shape)


@jitter_exercise.mistake("`__call__` gives None. Is a `return` missing?")
class NotReturned(STILL):
    def __call__(self, point):
        return None


@jitter_exercise.mistake(
    "You draw evenly from a box. Ask for normal noise: `self.rng.normal(0, self.size, point.shape)`."
)
class FromABox(STILL):
    def __call__(self, point):
        return point + self.rng.uniform(-self.size, self.size, point.shape)


@jitter_exercise.mistake(
    "`normal` takes the standard deviation itself, and not its square: the size as it is."
)
class AsVariance(STILL):
    def __call__(self, point):
        return point + self.rng.normal(0, self.size**2, point.shape)


@jitter_exercise.mistake("You multiply the point by the noise. Add it: a point at 0 should move, too.")
class Multiplied(STILL):
    def __call__(self, point):
        return point * self.rng.normal(0, self.size, point.shape)


# --- 3 Train, and evaluate ----------------------------------------------------------------------------------

loss_fn = nn.SoftmaxLoss()


class Watched(nn.Module):
    """A small net that notes in which mode it runs, and whether a graph is kept."""

    def __init__(self):
        self.linear = nn.Linear(2, 2, rng=3)
        self.modes: list[str] = []
        self.graphs: list[str] = []

    def forward(self, x):
        out = self.linear(x)
        modes = {"training" if module.training else "evaluation" for module in (self, self.linear)}
        self.modes.append(modes.pop() if len(modes) == 1 else "not the same in all modules")
        self.graphs.append("kept" if out.requires_grad else "none")
        return out


def _one(words: Sequence[str]) -> str:
    return words[0] if len(set(words)) == 1 else "both, in turn" if words else "never run"


def _number(found: Any) -> Any:
    return found.item() if isinstance(found, Tensor) and found.shape == () else found


class Stepper(SGD):
    """An optimiser as the library's, that says by name what PyTorch's has and it has not."""

    def zero_grad(self) -> None:
        raise AttributeError("needle's optimisers have no zero_grad()")


def _trained(answer: Any, songs: Any, batch_size: int) -> Any:
    model = Watched()
    model.eval()
    loss = answer(model, DataLoader(songs, batch_size), Stepper(model.parameters(), lr=0.5))
    if loss is ... or loss is None:
        return loss
    return {
        "loss": loss,
        "mode": _one(model.modes),
        "weights after it": [float(w) for p in model.parameters() for w in p.numpy().ravel()],
    }


def _evaluated(answer: Any, songs: Any, batch_size: int) -> Any:
    model = Watched()
    found = answer(model, DataLoader(songs, batch_size))
    if found is ... or found is None:
        return found
    loss, right = found if isinstance(found, (tuple, list)) and len(found) == 2 else (found, "missing")
    if loss is ... or right is ...:
        return ...
    return {"loss": loss, "right": right, "mode": _one(model.modes), "graph": _one(model.graphs)}


ITSELF = "`run_epoch` is this loop, written for you. Write it yourself; afterwards you may use it."
OUTER = "With `model.training = …` you reach the net, but not the modules in it. `model.{}()` tells them all."

FIVE = np.concatenate([POINTS, [[1.5, 2.0]]])


def _to_learn(batch_size: int, count: int = 5) -> Any:
    labels = np.array([1, 0, 1, 0, 0])
    return given(
        lambda: {"songs": PLAIN(3 * FIVE[:count], labels[:count]), "batch_size": batch_size},
        "songs",
        "batch_size",
    )


@lecture.exercise(
    _to_learn(2),
    _to_learn(3, 4),
    otherwise="For each batch: the loss of `model(X)`, `loss.backward()`, `optimizer.step()`. Count "
    "each batch's "
    "loss as often as it has songs.",
    use=_trained,
    without={run_epoch: ITSELF},
    form="train_epoch(model, DataLoader({}, {}), optimizer)",
)
def train_epoch(model, loader, optimizer):
    """One epoch of steps; the mean loss of a song."""
    model.train()
    total = 0.0
    for X, y in loader:
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


def _steps(model, loader, optimizer, mode=True, walk=True, step=True):
    """The losses and sizes of the batches, with parts of the loop left out."""
    if mode:
        model.train()
    found = []
    for X, y in loader:
        loss = loss_fn(model(X), y)
        if walk:
            loss.backward()
        if step:
            optimizer.step()
        found.append((loss, len(y)))
    return found


def _mean(found):
    return sum(loss.item() * n for loss, n in found) / sum(n for _, n in found)


@train_epoch.mistake(
    "You take the mean over the batches, but the last batch is smaller. Multiply each loss by `len(y)`, and "
    "divide by the number of all songs."
)
def mean_of_batches(model, loader, optimizer):
    return float(np.mean([loss.item() for loss, _ in _steps(model, loader, optimizer)]))


@train_epoch.mistake("The net is still in evaluation mode. Say `model.train()` before the loop.")
def mode_forgotten(model, loader, optimizer):
    return _mean(_steps(model, loader, optimizer, mode=False))


@train_epoch.mistake(OUTER.format("train"))
def outermost_in_training(model, loader, optimizer):
    model.training = True
    return mode_forgotten(model, loader, optimizer)


@train_epoch.mistake(
    "The weights did not move. Each batch needs both: `loss.backward()` finds the gradients, and then "
    "`optimizer.step()` moves the weights."
)
def no_step(model, loader, optimizer):
    return _mean(_steps(model, loader, optimizer, step=False))


@train_epoch.mistake(
    "In the first batch there is no gradient yet when the step is made. First "
    "`loss.backward()`, and then the step."
)
def step_too_early(model, loader, optimizer):
    model.train()
    found = []
    for X, y in loader:
        loss = loss_fn(model(X), y)
        optimizer.step()
        loss.backward()
        found.append((loss, len(y)))
    return _mean(found)


@train_epoch.mistake(
    "You ask for the loss again after the step. Count the one that you walked back from: `loss.item()`."
)
def loss_after_the_step(model, loader, optimizer):
    model.train()
    total = 0.0
    for X, y in loader:
        loss_fn(model(X), y).backward()
        optimizer.step()
        total += loss_fn(model(X), y).item() * len(y)
    return total / len(loader.dataset)


@train_epoch.mistake(
    "From this loss no way leads back to the weights. Is it the loss of `model(X)`? And is there no "
    "`ndl.no_grad()` around it? That belongs into `evaluate` only."
)
def without_a_graph(model, loader, optimizer):
    with no_grad():
        return _mean(_steps(model, loader, optimizer))


@train_epoch.mistake(
    "That line is PyTorch's. Here each `backward()` replaces the gradients, so there is nothing to set to 0: "
    "leave it out."
)
def as_in_pytorch(model, loader, optimizer):
    optimizer.zero_grad()
    return _mean(_steps(model, loader, optimizer))


@train_epoch.mistake(
    "You weigh each loss with `loader.batch_size`, but the last batch has fewer songs. Ask each for its own: "
    "`len(y)`."
)
def all_batches_full(model, loader, optimizer):
    losses = [loss.item() for loss, _ in _steps(model, loader, optimizer)]
    return sum(losses) * loader.batch_size / len(loader.dataset)


@train_epoch.mistake("You stop after the first batch. Is the `return` inside the loop?")
def first_batch(model, loader, optimizer):
    model.train()
    for X, y in loader:
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        return loss.item() * len(y) / len(loader.dataset)


@train_epoch.mistake(
    "This is the loss of the last batch. Add up the losses of all songs, and take their mean."
)
def last_loss(model, loader, optimizer):
    return _steps(model, loader, optimizer)[-1][0].item()


@train_epoch.mistake(
    "This is the sum over the batches. Divide by the number of songs: `len(loader.dataset)`."
)
def added_up(model, loader, optimizer):
    return sum(loss.item() * n for loss, n in _steps(model, loader, optimizer))


@train_epoch.mistake(
    "The loss is a Tensor, and with it you keep the graph of every batch (lecture 06). Add up `loss.item()`."
)
def tensors_added(model, loader, optimizer):
    found = _steps(model, loader, optimizer)
    return sum(loss * n for loss, n in found) / sum(n for _, n in found)


@train_epoch.mistake(
    "One backward pass at the end makes a single step with the last batch. Take both into the loop."
)
def one_step_at_the_end(model, loader, optimizer):
    found = _steps(model, loader, optimizer, walk=False, step=False)
    found[-1][0].backward()
    optimizer.step()
    return _mean(found)


@train_epoch.mistake(
    "You divide by the number of batches. The losses are those of songs: `len(loader.dataset)`."
)
def by_batches(model, loader, optimizer):
    return sum(loss.item() * n for loss, n in _steps(model, loader, optimizer)) / len(loader)


@train_epoch.mistake(
    "Each `loss` is the mean of its batch, so a small batch counts as much as a full one. "
    "Multiply it by `len(y)`."
)
def means_added(model, loader, optimizer):
    return sum(loss.item() for loss, _ in _steps(model, loader, optimizer))


@train_epoch.mistake(
    "Each `loss` is the mean of its batch already. Multiply it by `len(y)` before you divide by all songs."
)
def means_by_songs(model, loader, optimizer):
    return means_added(model, loader, optimizer) / len(loader.dataset)


NINE = np.array([[2, 1], [-1, 2], [1, -2], [3, 3], [-3, -3], [0.5, 2], [-2, 0.5], [2, -0.5], [-0.5, -2]])


@lecture.exercise(
    _to_learn(2),
    _to_learn(3, 4),
    given(
        lambda: {"songs": PLAIN(NINE.copy(), np.array([1, 1, 0, 0, 1, 0, 1, 0, 1])), "batch_size": 4},
        *("songs", "batch_size"),
    ),
    otherwise="For each batch, within `with ndl.no_grad():`, compute the scores, their loss, and how "
    "often the "
    "largest score stands at the label. Add up, and divide by the number of songs.",
    use=_evaluated,
    without={run_epoch: ITSELF},
    form="evaluate(model, DataLoader({}, {}))",
)
def evaluate(model, loader):
    """Mean loss of a song, and the share of songs that are right."""
    model.eval()
    total, right = 0.0, 0
    with no_grad():
        for X, y in loader:
            scores = model(X)
            total += loss_fn(scores, y).item() * len(y)
            right += int((scores.numpy().argmax(axis=1) == y.numpy()).sum())
    return total / len(loader.dataset), right / len(loader.dataset)


def _asked(model, loader, mode=True, graph=False, axis=1):
    """Of each batch: its loss, how many are right, and its size."""
    if mode:
        model.eval()
    found = []
    with no_grad(not graph):
        for X, y in loader:
            scores = model(X)
            guess = scores.numpy().argmax(axis=axis)
            right = int((guess == y.numpy()).sum()) if len(guess) == len(y) else 0
            found.append((loss_fn(scores, y).item(), right, len(y)))
    return found


def _both(found):
    n = sum(size for *_, size in found)
    return sum(loss * size for loss, _, size in found) / n, sum(right for _, right, _ in found) / n


@evaluate.mistake("The net is still in training mode, so dropout would still drop. Say `model.eval()` first.")
def still_training(model, loader):
    return _both(_asked(model, loader, mode=False))


@evaluate.mistake(OUTER.format("eval"))
def outermost_in_evaluation(model, loader):
    model.training = False
    return still_training(model, loader)


@evaluate.mistake(
    "A graph is kept for every batch, and nobody walks back through it. Put the loop into "
    "`with ndl.no_grad():`."
)
def with_a_graph(model, loader):
    return _both(_asked(model, loader, graph=True))


@evaluate.mistake(
    "Neither mode nor graph is as it should be: `model.eval()` first, then `with ndl.no_grad():`."
)
def neither(model, loader):
    return _both(_asked(model, loader, mode=False, graph=True))


@evaluate.mistake(
    "You take the mean over the batches, but the last one is smaller, and its songs would count more. Weigh "
    "each loss with `len(y)`."
)
def loss_of_batches(model, loader):
    found = _asked(model, loader)
    return float(np.mean([loss for loss, *_ in found])), _both(found)[1]


@evaluate.mistake(
    "Both are means over the batches, but the last one is smaller, and its songs would "
    "count more. Add up over "
    "the songs, and divide at the end."
)
def all_of_batches(model, loader):
    found = _asked(model, loader)
    return float(np.mean([loss for loss, *_ in found])), float(np.mean([r / n for _, r, n in found]))


@evaluate.mistake("This is how many are right. Divide by the number of songs for the share.")
def counted(model, loader):
    found = _asked(model, loader)
    return _both(found)[0], sum(right for _, right, _ in found)


@evaluate.mistake("The share is in percent. Leave it between 0 and 1: divide by the number of songs only.")
def in_percent(model, loader):
    loss, right = _both(_asked(model, loader))
    return loss, 100 * right


@evaluate.mistake("You count the songs that the net likes. Compare with the labels: how often is it right?")
def liked_counted(model, loader):
    return _judged(model, loader, lambda z, y: int(z.numpy().argmax(axis=1).sum()))


@evaluate.mistake("Do you count the last batch only? The line that counts belongs into the loop.")
def counted_after_the_loop(model, loader):
    found = _asked(model, loader)
    return _both(found)[0], found[-1][1] / len(loader.dataset)


@evaluate.mistake("This is the share that is wrong. Asked for is the share that is right.")
def share_wrong(model, loader):
    loss, right = _both(_asked(model, loader))
    return loss, 1 - right


@evaluate.mistake("First the loss, and then the share of songs that are right.")
def the_other_way_round(model, loader):
    return _both(_asked(model, loader))[::-1]


@evaluate.mistake("You look at the last batch only. Add up over all of them.")
def last_batch(model, loader):
    return _both(_asked(model, loader)[-1:])


@evaluate.mistake("You stop after the first batch. Is the `return` inside the loop?")
def first_batch_only(model, loader):
    model.eval()
    with no_grad():
        for X, y in loader:
            scores, n = model(X), len(loader.dataset)
            right = (scores.numpy().argmax(axis=1) == y.numpy()).sum()
            return loss_fn(scores, y).item() * len(y) / n, int(right) / n


@evaluate.mistake("Two numbers are asked for: the mean loss, and the share of songs that are right.")
def loss_only(model, loader):
    return _both(_asked(model, loader))[0]


def _judged(model, loader, hits):
    """The loss, and what `hits` counts in each batch, divided by the number of songs."""
    loss = _both(_asked(model, loader))[0]
    with no_grad():
        counts = [hits(model(X), y) for X, y in loader]
    return loss, sum(counts) / len(loader.dataset)


@evaluate.mistake(
    "`argmax()` looks at the whole batch. Each row is a song and has its own largest: `axis=1`."
)
def one_argmax(model, loader):
    return _judged(model, loader, lambda z, y: int((z.numpy().argmax() == y.numpy()).sum()))


@evaluate.mistake("`axis=0` looks for the largest score down the columns. A song is a row: `axis=1`.")
def argmax_down(model, loader):
    def hits(z, y):
        guess = z.numpy().argmax(axis=0)
        return int((guess == y.numpy()).sum()) if len(y) in (1, len(guess)) else z.numpy()[guess == y.numpy()]

    return _judged(model, loader, hits)


@evaluate.mistake(
    "A mean in each batch, divided by all songs, is too little. Count with `.sum()`, and divide once."
)
def means_counted(model, loader):
    return _judged(model, loader, lambda z, y: (z.numpy().argmax(axis=1) == y.numpy()).mean())


@evaluate.mistake(
    "The share is a mean over batches, and the last one is smaller. Count with `.sum()`, divide once."
)
def means_averaged(model, loader):
    found = _asked(model, loader)
    return _both(found)[0], float(np.mean([r / n for _, r, n in found]))


@evaluate.mistake(
    "You look at one score only. It may be above 0, and the other one larger still: compare both, with "
    "`argmax`."
)
def one_score(model, loader):
    return _judged(model, loader, lambda z, y: int(((z.numpy()[:, 1] > 0) == y.numpy()).sum()))


@evaluate.mistake("The loss is still a Tensor. Add up its number: `.item()`.")
def loss_as_tensor(model, loader):
    loss, right = _both(_asked(model, loader))
    return Tensor(loss), right


@evaluate.mistake(
    "You compare an array with a Tensor, and they are never equal. Take the numbers: `y.numpy()`."
)
def array_and_tensor(model, loader):
    return _judged(model, loader, lambda z, y: (z.numpy().argmax(axis=1) == y).sum())


@evaluate.mistake(
    "A Tensor's `argmax` says `axes=`. It is easier with its numbers: `scores.numpy().argmax(axis=1)`."
)
def words_of_numpy(model, loader):
    return _judged(model, loader, lambda z, y: z.argmax(axis=1))


# --- 4 Early stopping ---------------------------------------------------------------------------------------

#: The usual mistakes make something different of these, each its own.
LONG = [0.9, 0.7, 0.75, 0.72, 0.74, 0.71, 0.73, 0.5, 0.55, 0.52, 0.6, 0.65, 0.7, 0.75, 0.68]


@lecture.exercise(
    case(LONG, 4),
    case(LONG, 6),
    case([0.9, 0.8, 0.85, 0.7, 0.75, 0.6], 2),
    case([0.5, 0.4, 0.4, 0.4, 0.45, 0.47], 3),
    case([0.9, 0.6, 0.5, 0.55, 0.52], 4),
    case([0.4, 0.6, 0.5, 0.55, 0.45, 0.7], 3),
    otherwise="Go through the losses one by one, and keep in mind the best epoch so far. Stop in the "
    "first epoch "
    "that is `patience` epochs after the best one.",
)
def early_stop(losses, patience):
    """The best epoch, and the one after which training ends, both counted from 1."""
    best = 1
    for epoch, loss in enumerate(losses, start=1):
        if loss < losses[best - 1]:
            best = epoch
        if epoch - best == patience:
            return best, epoch
    return best, len(losses)


def _stop(losses, patience, start=1, better=lambda loss, best: loss < best):
    best, lowest, epoch = start, losses[0], start
    for epoch, loss in enumerate(losses, start=start):
        if better(loss, lowest):
            best, lowest = epoch, loss
        if epoch - best == patience:
            break
    return best, epoch


@early_stop.mistake(
    "You look at losses that come after the end. When training stops, nobody knows yet "
    "that a better epoch would "
    "follow."
)
def sees_the_future(losses, patience):
    best = int(np.argmin(losses)) + 1
    return best, min(best + patience, len(losses))


@early_stop.mistake(
    "This is the best of all epochs, and training never stops. Stop when the best is `patience` epochs ago."
)
def never_stops(losses, patience):
    return int(np.argmin(losses)) + 1, len(losses)


@early_stop.mistake(
    "You stop at the first rise. A loss goes up and down; wait until the best one is `patience` epochs ago."
)
def first_rise(losses, patience):
    return _stop(losses, 1)


@early_stop.mistake(
    "You count rises one after the other. A small fall does not help as long as the best loss is not beaten: "
    "compare with the best, and not with the one before."
)
def rises_in_a_row(losses, patience):
    best, rises, epoch = 1, 0, 1
    for epoch in range(2, len(losses) + 1):
        rises = rises + 1 if losses[epoch - 1] >= losses[epoch - 2] else 0
        best = epoch if losses[epoch - 1] < losses[best - 1] else best
        if rises == patience:
            break
    return best, epoch


@early_stop.mistake(
    "You compare with the loss before. After a rise, a small fall is no progress yet: compare with the best."
)
def better_than_before(losses, patience):
    best, epoch = 1, 1
    for epoch in range(2, len(losses) + 1):
        best = epoch if losses[epoch - 1] < losses[epoch - 2] else best
        if epoch - best == patience:
            break
    return best, epoch


@early_stop.mistake(
    "You count all epochs that were no better. Count from the best one: begin again at each new best."
)
def never_counted_anew(losses, patience):
    best, waited, epoch = 1, 0, 1
    for epoch in range(2, len(losses) + 1):
        if losses[epoch - 1] < losses[best - 1]:
            best = epoch
        else:
            waited += 1
        if waited == patience:
            break
    return best, epoch


@early_stop.mistake(
    "The first epoch is the best so far, and nothing is waited yet. Count the epochs after the best one only."
)
def first_epoch_counted(losses, patience):
    best, waited, epoch = 1, 0, 1
    for epoch, loss in enumerate(losses, start=1):
        best, waited = (epoch, 0) if loss < losses[best - 1] else (best, waited + 1)
        if waited == patience:
            break
    return best, epoch


@early_stop.mistake(
    "If training never stops early, the last epoch need not be the best. Return the best one there, too."
)
def last_is_best(losses, patience):
    best, last = _stop(losses, patience)
    return (best, last) if last - best == patience else (last, last)


@early_stop.mistake("You count from 0. The first epoch is epoch 1: `enumerate(losses, start=1)`.")
def from_zero(losses, patience):
    return _stop(losses, patience, start=0)


@early_stop.mistake("You stop an epoch too late: it ends as soon as `epoch - best` *is* the patience.")
def one_late(losses, patience):
    return _stop(losses, patience + 1)


@early_stop.mistake(
    "The same loss again is no progress. Take a new best epoch only where the loss is smaller: `<`, not `<=`."
)
def equal_is_better(losses, patience):
    return _stop(losses, patience, better=lambda loss, best: loss <= best)


@early_stop.mistake("The losses stand there, and not their epochs. Return the two numbers of the epochs.")
def losses_themselves(losses, patience):
    best, last = _stop(losses, patience)
    return losses[best - 1], losses[last - 1]


@early_stop.mistake("The patience is counted from the start, and not from the best epoch.")
def patience_from_the_start(losses, patience):
    last = min(patience, len(losses))
    return int(np.argmin(losses[:last])) + 1, last


@early_stop.mistake("First the best epoch, and then the one in which you stop.")
def turned_around(losses, patience):
    return _stop(losses, patience)[::-1]


@early_stop.mistake(
    "This is the epoch in which training stops. Return the best one, too: a pair, the best first."
)
def last_only(losses, patience):
    return _stop(losses, patience)[1]


@early_stop.mistake("This is the best epoch. Return the one in which training stops, too: a pair.")
def best_only(losses, patience):
    return _stop(losses, patience)[0]


# --- 5 A data set of your own -------------------------------------------------------------------------------


def _tables(answer: Any, text: str, other: str) -> Any:
    first = answer(text)
    second = answer(other, like=first)
    lengths = [first.__len__(), second.__len__()]
    items = [first[0], first[1], second[0]]
    if any(x is ... for x in lengths + items):
        return ...
    return {
        "len(first)": lengths[0],
        "first[0]": items[0],
        "first[1]": items[1],
        "len(second)": lengths[1],
        "second[0]": items[2],
    }


def _read(text: str) -> tuple[np.ndarray, np.ndarray]:
    rows = [line.split(",") for line in text.strip().splitlines()]
    points = np.array([[float(x) for x in row[:2]] for row in rows])
    return points, np.array([int(row[2].strip() == "yes") for row in rows])


class Table(Dataset):
    """Songs from lines of text, scaled by the mean and spread of a table."""

    def __init__(self, text, like=None):
        super().__init__()
        self.points, self.likes = _read(text)
        self.mean = like.mean if like else self.points.mean(axis=0)
        self.spread = like.spread if like else self.points.std(axis=0)

    def __len__(self):
        return len(self.likes)

    def __getitem__(self, index):
        return (self.points[index] - self.mean) / self.spread, self.likes[index]


SCALED = Table  # the name stands for the exercise from here on

table_exercise = lecture.exercise(
    case("120, -9.5, yes\n90, -4.0, no\n150, -12.0, yes\n160, -3.5, yes", "100, -8.0, no\n180, -2.0, yes"),
    case("75, -20.0, no\n125, -10.0, yes", "70, -15.0, yes\n130, -18.0, no\n95, -12.5, no"),
    otherwise="Per column: subtract the mean, then divide by the standard deviation, `.std(axis=0)`, "
    "both of the "
    "table in `like`, or of your own if there is none.",
    use=_tables,
    form="first, second = Table({0}), Table({1}, like=first)",
)(Table)


@table_exercise.mistake(
    "The numbers are as in the text. Subtract each column's mean and divide by its spread."
)
class NotScaled(SCALED):
    def __getitem__(self, index):
        return self.points[index], self.likes[index]


@table_exercise.mistake(
    "The second table takes its own mean and spread. A song must mean the same to the net "
    "in both, so take those "
    "of `like`."
)
class OwnScale(SCALED):
    def __init__(self, text, like=None):
        super().__init__(text)


@table_exercise.mistake("You take one mean for both columns. Tempo and loudness have their own: `axis=0`.")
class OneMean(SCALED):
    def __init__(self, text, like=None):
        super().__init__(text, like)
        base = like or self
        self.mean, self.spread = base.points.mean(), base.points.std()


@table_exercise.mistake("The mean is subtracted. Divide by the spread, too: `.std(axis=0)`.")
class MeanOnly(SCALED):
    def __getitem__(self, index):
        return self.points[index] - self.mean, self.likes[index]


@table_exercise.mistake("Python divides before it subtracts. Put the difference into brackets.")
class NoBrackets(SCALED):
    def __getitem__(self, index):
        return self.points[index] - self.mean / self.spread, self.likes[index]


@table_exercise.mistake("The second table takes only the mean of `like`. Take its standard deviation, too.")
class OnlyTheirMean(SCALED):
    def __init__(self, text, like=None):
        super().__init__(text, like)
        self.spread = self.points.std(axis=0)


@table_exercise.mistake(
    "You divide by the variance. Its square root is the standard deviation, `.std(axis=0)`."
)
class ByVariance(SCALED):
    def __getitem__(self, index):
        return (self.points[index] - self.mean) / self.spread**2, self.likes[index]


@table_exercise.mistake(
    "Each song is scaled by its own two numbers. Take mean and spread over all songs of a table: `axis=0`."
)
class ByRow(SCALED):
    def __getitem__(self, index):
        row = self.points[index]
        return (row - row.mean()) / row.std(), self.likes[index]


@table_exercise.mistake(
    "The new songs have a say in the mean or the spread, by which they are measured. Take those of `like` as "
    "they are."
)
class Leaky(SCALED):
    def __init__(self, text, like=None):
        super().__init__(text)
        both = np.concatenate([self.points, like.points]) if like else self.points
        self.mean, self.spread = both.mean(axis=0), both.std(axis=0)


@table_exercise.mistake(
    "This spread divides by n − 1 (`ddof=1`, the default of pandas). NumPy's `.std(axis=0)` divides by n; "
    "take that."
)
class WithOneLess(SCALED):
    def __init__(self, text, like=None):
        super().__init__(text, like)
        self.spread = (like or self).points.std(axis=0, ddof=1)


@table_exercise.mistake("The labels are the wrong way round: 1 is for yes, and 0 for no.")
class LabelsTurned(SCALED):
    def __getitem__(self, index):
        point, like = super().__getitem__(index)
        return point, 1 - like


@table_exercise.mistake(
    'All labels are 1: Python takes every word for true, also the word no. Compare: `word == "yes"`.'
)
class EveryWordIsTrue(SCALED):
    def __getitem__(self, index):
        return super().__getitem__(index)[0], 1


@table_exercise.mistake(
    "`int` makes whole numbers of digits only. For tempo and loudness take `float(word)`; for the label ask "
    "whether the word is yes."
)
class WordsToWholeNumbers(SCALED):
    def __init__(self, text, like=None):
        [int(word) for line in text.splitlines() for word in line.split(",")]


@table_exercise.mistake("All labels are 0: the word in the text has a space in front. Use `.strip()`.")
class SpaceLeft(SCALED):
    def __init__(self, text, like=None):
        super().__init__(text, like)
        self.likes = np.zeros_like(self.likes)


@table_exercise.mistake("The label is a word. The loss needs a number: 1 for yes, and 0 for no.")
class WordsAsLabels(SCALED):
    def __getitem__(self, index):
        point, like = super().__getitem__(index)
        return point, "yes" if like else "no"


@table_exercise.mistake(
    "The label is still a word, with its space. The loss needs a number: 1 for yes, 0 for no."
)
class WordsWithSpace(SCALED):
    def __getitem__(self, index):
        point, like = super().__getitem__(index)
        return point, " yes" if like else " no"


@table_exercise.mistake(
    "You stretch from the smallest to the largest number. Use mean and standard deviation."
)
class SmallestToLargest(SCALED):
    def __init__(self, text, like=None):
        super().__init__(text, like)
        base = like.points if like else self.points
        self.mean, self.spread = base.min(axis=0), np.ptp(base, axis=0)


@table_exercise.mistake(
    "You take mean and spread from the points of the other table after these were scaled, "
    "so they are 0 and 1. "
    "Keep the mean and the spread themselves."
)
class ScaledTwice(SCALED):
    def __init__(self, text, like=None):
        super().__init__(text)
        if like:
            self.mean, self.spread = 0.0, 1.0


@table_exercise.mistake(
    "Not every word is a number: see the error. Make numbers of the first two in a line only, `row[:2]`. And "
    "take lines: `text.splitlines()`; `for line in text` goes letter by letter."
)
class WordAsNumber(SCALED):
    def __init__(self, text, like=None):
        np.array([line.split(",") for line in text.splitlines()], dtype=float)


@table_exercise.mistake("The numbers are still text. Make a number of each word: `float(word)`.")
class StillText(SCALED):
    def __init__(self, text, like=None):
        np.array([line.split(",")[:2] for line in text.splitlines()]).mean(axis=0)


# --- Models and pictures ------------------------------------------------------------------------------------


def learned_by_heart(rated: Ratings) -> nn.Sequential:
    """The net of the first picture, after 200 epochs, as the lecture trains it later."""
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        *(nn.Linear(2, 64, rng=rng), nn.ReLU(), nn.Linear(64, 64, rng=rng), nn.ReLU()),
        nn.Linear(64, 2, rng=rng),
    )
    optimizer = Adam(model.parameters(), lr=0.004)
    loader = DataLoader(PLAIN(rated.points, rated.likes), 16, shuffle=True, rng=0)
    for _ in range(200):
        train_epoch.right(model, loader, optimizer)
    return model


def share_right(model: Any, rated: Ratings) -> float:
    """The share of songs that a net gets right."""
    return evaluate.right(model, DataLoader(PLAIN(rated.points, rated.likes), len(rated.points)))[1]


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
