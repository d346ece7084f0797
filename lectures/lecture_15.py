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
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade

MOOD = 0.2  # the share of songs at which mood decides, against the rule


class Ratings(NamedTuple):
    """Songs and what somebody thinks of them."""

    points: np.ndarray  # shape (n, 2): tempo and loudness, each from -1 to 1
    likes: np.ndarray  # 1 for a song that is liked, 0 for another one
    moods: np.ndarray  # where mood decided against the rule


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


TRANSFORMS: dict[str, list | None] = {
    "": None,
    "transforms = [double, plus_one, flip], which are 2 * point, point + 1 and point[::-1]": [
        *(double, plus_one, np.flip)
    ],
    "transforms = [growing], which is point + 1 in its first call, point + 2 in its second …": [Growing()],
    "transforms = [], so no transform at all": [],
}


def some_songs(shape: tuple[int, int], labels: Sequence[int], transforms: str, twins: bool = False) -> Case:
    """A case: songs, their labels, transforms of this description; for `twins`, first and last point are equal."""

    def make() -> dict[str, Any]:
        points = (np.arange(np.prod(shape)) * 7 % 11 - 4.0).reshape(shape) / 10
        points[-1] = points[0 if twins else -1]
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
        st.booleans(),
    ).map(lambda x: some_songs(*x)),
    otherwise="An item is a pair: `self.points[index]` after `self.apply_transforms`, and `self.likes[index]`.",
    use=looked_at,
    form="Songs({}, {}, {})",
)(Songs)


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


# --- 3 Train, and evaluate ----------------------------------------------------------------------------------

loss_fn = nn.SoftmaxLoss()


class WatchedNet(nn.Module):
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


def trained(answer: Any, points: np.ndarray, labels: np.ndarray, classes: int, batch_size: int) -> Any:
    """What an epoch of training returns, and what it leaves."""
    model = WatchedNet(points.shape[1], classes)
    model.eval()
    loader = DataLoader(Songs(points, labels), batch_size)
    optimizer = SGD(model.parameters(), lr=1 / batch_size, momentum=0.5)
    gc.freeze()  # so that `gc.collect` looks at new objects only
    try:
        loss = answer(model, loader, optimizer)
    finally:
        gc.unfreeze()
    if loss is ... or loss is None:
        return loss
    return {
        "loss": loss,
        "mode": " and ".join(sorted(model.modes)) or "never run",
        "mode after it": "training" if model.training and model.linear.training else "evaluation",
        "weights after it": model.weights(),
        "graphs": "all kept at once" if model.most_kept > 2 else "let go, one by one",
    }


def evaluated(answer: Any, points: np.ndarray, labels: np.ndarray, classes: int, batch_size: int) -> Any:
    """What an evaluation returns, and in which mode it has run."""
    model = WatchedNet(points.shape[1], classes)
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
NINE = np.array([[2, 1], [-1, 2], [1, -2], [3, 3], [-3, -3], [0.5, 2], [-2, 0.5], [2, -0.5], [-0.5, -2]])
TO_LEARN = st.tuples(
    st.sampled_from([5, 4, 7, 9, 1]),
    st.sampled_from([2, 3]),
    st.sampled_from([(1, 0, 1, 0, 0), (0, 0, 1), (0, 1), (1,)]),
    st.sampled_from([2, 3, 6]),
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


# --- 4 Early stopping ---------------------------------------------------------------------------------------

LONG = [0.9, 0.7, 0.75, 0.72, 0.74, 0.71, 0.73, 0.5, 0.55, 0.52, 0.6, 0.65, 0.7, 0.75, 0.68]
#: Losses, some of which differ by little; now and then all of them are large.
LOSSES = st.tuples(
    st.lists(st.sampled_from((0.5, 0.6, 0.4, 0.45, 0.7, 0.3999999, 2.0, 0.0)), min_size=1, max_size=9),
    st.sampled_from((1, 1, 1000)),
).map(lambda x: [round(loss * x[1], 7) for loss in x[0]])


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


# --- 5 A data set of your own -------------------------------------------------------------------------------


def tables(answer: Any, text: str, other: str) -> Any:
    """The lengths and the items of a table, and of one that is scaled like it."""
    first = answer(text)
    second = answer(other, like=first)
    lengths = [first.__len__(), second.__len__()]
    counts = [text.count("\n") + 1, other.count("\n") + 1]
    items = [[t[i] for i in [*range(n), 0]] for t, n in zip((first, second), counts, strict=True)]
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
            "75, 0.0, no\n3, -1.5, no\n3, -1.5, yes",
        ),
        ("100, -10.0, yes", "95, -12.5, no\n105, 4.0, yes", "7, 0.5, no\n120, -8.0, no\n120, -8.0, yes"),
    ),
    number=20,
    otherwise="Per column: subtract the mean, then divide by the standard deviation, `.std(axis=0)`, both of the "
    "table in `like`, or of your own if there is none.",
    use=tables,
    form="first, second = Table({0}), Table({1}, like=first)",
)(Table)


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
        share = evaluate.right(model, DataLoader(Songs(rated.points, rated.likes), len(rated.points)))[1]
        regions(model, rated, f"{name}: {share:.0%} right", ax=ax)
    return axes[0]


def two_curves(history: Any) -> Axes:
    """Draw the loss and the share right of seen songs, and those of new ones: a row for each epoch."""
    columns = np.array(history).T
    epochs = range(1, columns.shape[1] + 1)
    left, right = viz.panels(2, width=4.2)
    both = (left, "loss of seen and of new songs", 0, 1), (right, "how many are right, in percent", 1, 100)
    for ax, name, first, scale in both:
        curves = {"seen": scale * columns[first], "new": scale * columns[first + 2]}
        viz.curve(curves, epochs, log="x", xlabel="epoch", title=name, ax=ax)
    left.set_ylim(bottom=0)
    return left
