"""Lecture 20, many machines: its exercises, the usual mistakes in them, its pictures and its races."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from hypothesis import strategies as st
from matplotlib.axes import Axes

import viz
from needle import nn
from needle.autograd import Tensor
from needle.backend_ndarray.blas import one_thread
from viz.plots.look import INK, ORANGE, PALE_BLUE, PALE_GREEN, PALE_ORANGE, PAPER, QUIET
from viz.plots.sketch import Sketch

from .checking import Case, Lecture, Names, case, drawn, kind, own_work, show, values
from .lecture_19 import uncover as _uncover
from .team import Processes, Threads, Worker, team

__all__ = ["Threads", "check", "predict", "ready", "team"]

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict
uncover = _uncover


# --- What the cells use -------------------------------------------------------------------------------------


def batch(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in the plane, and whether each lies outside of a circle: the same points each time."""
    x = np.random.default_rng(0).normal(size=(rows, 2))
    return x, (np.hypot(*x.T) > 1).astype("int64")


def network(norm: bool = False) -> nn.Module:
    """A network with layers of 2, 8 and 2 units, in float64: the same weights each time.

    With `norm`, there is a BatchNorm between the first layer and its ReLU.
    """
    rng = np.random.default_rng(1)
    first = nn.Linear(2, 8, rng=rng, dtype="float64")
    between = [nn.BatchNorm1d(8, dtype="float64")] if norm else []
    return nn.Sequential(first, *between, nn.ReLU(), nn.Linear(8, 2, rng=rng, dtype="float64"))


def mean_loss(model: nn.Module, x: np.ndarray, y: np.ndarray) -> Tensor:
    """The mean softmax loss of a model over some points."""
    return nn.SoftmaxLoss()(model(Tensor(x, requires_grad=False)), Tensor(y, requires_grad=False))


def flat(tensors: Sequence[Tensor]) -> np.ndarray:
    """All numbers of some Tensors in one long array."""
    return np.concatenate([x.numpy().reshape(-1) for x in tensors])


def put_back(numbers: np.ndarray, params: Sequence[Tensor]) -> None:
    """Cut a long array into gradients again, and give each parameter its own."""
    ends = np.cumsum([p.size for p in params])
    for p, end in zip(params, ends, strict=True):
        p.grad = Tensor(numbers[end - p.size : end].reshape(p.shape), dtype=p.dtype, requires_grad=False)


# --- Pictures -----------------------------------------------------------------------------------------------

WIDE, HIGH, GAP = 54, 26, 18  # points: a cell, and the room between two workers


def holdings(step: int, workers: int) -> tuple[list[list[set[int]]], list[tuple[int, int]]]:
    """What each worker holds after so many steps of a ring: of each part, whose numbers are in it.

    Also which (worker, part) have just come from the left.
    """
    held = [[{worker} for _ in range(workers)] for worker in range(workers)]
    came: list[tuple[int, int]] = []
    for number in range(step):
        adding = number < workers - 1
        which, r = (to_add, number) if adding else (to_hand_on, number - workers + 1)
        before = [[set(part) for part in parts] for parts in held]
        came = []
        for worker in range(workers):
            left = (worker - 1) % workers
            part = which.right(left, r, workers)
            held[worker][part] = before[left][part] | (before[worker][part] if adding else set())
            came.append((worker, part))
    return held, came


def draw_ring(step: int, workers: int = 4) -> Axes:
    """Draw what each worker holds after so many steps of a ring. Each column is a worker, each row a part."""
    held, came = holdings(step, workers)
    last = 2 * (workers - 1)
    sketch = Sketch()
    for worker in range(workers):
        left = worker * (WIDE + GAP)
        sketch.text(left + WIDE / 2, -12, f"worker {worker}", anchor="center", bold=True)
        for part in range(workers):
            top = part * (HIGH + 6)
            whose = held[worker][part]
            full, new = len(whose) == workers, (worker, part) in came
            fill = PALE_GREEN if full else PALE_ORANGE if new else PALE_BLUE if not step else PAPER
            words = "+".join(map(str, sorted(whose)))
            line, thick = (ORANGE, 1.8) if new else (QUIET, 0.9)
            sketch.box(left, top, WIDE, HIGH, fill, line, words=words, bold=full, thick=thick)
    for worker, part in came:
        left, y = worker * (WIDE + GAP), part * (HIGH + 6) + HIGH / 2
        sketch.line((left - GAP + 2, y), (left - 2, y), ORANGE, arrow=True)
        if worker == 0:  # it comes from the last one
            end = workers * (WIDE + GAP) - GAP
            sketch.line((end + 2, y), (end + GAP - 2, y), ORANGE, arrow=True)
    for part in range(workers):
        y = part * (HIGH + 6) + HIGH / 2
        sketch.text(-GAP - 6, y, f"part {part}", anchor="right", colour=QUIET)
    complete = sum(len(part) == workers for part in held[0])
    if step == 0:
        title = "At the start, each has its own numbers"
    elif step < workers:
        title = f"Step {step} of {last}: adding"
    else:
        title = f"Step {step} of {last}: handing on, {complete} complete"
    end = workers * (WIDE + GAP)
    sketch.line((-3 * GAP, 0), (end, 0), alpha=0)  # every step has room for arrows at both ends
    ax = sketch.on(None, title)
    cells = (
        f"worker {k}: {', '.join('+'.join(map(str, sorted(p))) for p in held[k])}" for k in range(workers)
    )
    ax.set_label(f"{title}. Part by part, {'; '.join(cells)}")
    return ax


def draw_scaling(workers: Sequence[int], speed: Sequence[float], chosen: int) -> Axes:
    """Draw how many times as fast so many workers are as one, and mark one number of them."""
    curves = {"if talking cost nothing": np.asarray(workers, float), "with the ring": np.asarray(speed)}
    there = dict(zip(workers, speed, strict=True))[chosen]
    title = f"{chosen:,} workers: {there:.3g} times as fast as one"
    (ax,) = viz.panels(1, width=4.8, height=3.5)
    ax.set_position((0.16, 0.16, 0.8, 0.73))
    viz.curve(curves, workers, log="xy", xlabel="workers", ylabel="times as fast as one", title=title, ax=ax)
    ax.plot([chosen], [there], "o", markersize=11, fillstyle="none", markeredgewidth=2, color=INK)
    ax.set_ylim(0.02, 20_000)
    return ax


def time_steps(workers: Processes | Threads, ring: Callable, seconds: Callable) -> dict[str, float]:
    """How many times as fast as one worker two and four are: on paper, then as measured here.

    A step is the product of 2,048 rows of a batch with a matrix, and the sum of 30,000 numbers over all
    workers. `seconds` gets a latency and a bandwidth that are measured with two workers first.
    """
    numbers = 30_000
    small, large = (_best(workers, 2, 0, count, ring) for count in (2, numbers))
    latency, bandwidth = small / 2, 8 * numbers / max(large - small, 1e-9)
    alone = _best(workers, 1, 2048, numbers, ring)
    found = {"1 worker": 1.0}
    for count in (2, 4):
        paper = alone / count + seconds(count, 8 * numbers, latency, bandwidth)
        found[f"{count} workers, on paper"] = alone / paper
        found[f"{count} workers, measured"] = alone / _best(workers, count, 2048, numbers, ring)
    return found


def _best(workers: Processes | Threads, count: int, rows: int, numbers: int, ring: Callable) -> float:
    """The shortest time of a step with so many workers."""
    return max(workers.run(_timed, [(rows // count, numbers, ring)] * count))


def _timed(worker: Worker, job: tuple[int, int, Callable]) -> float:
    """Make eight steps, together with the other workers, and take the time of the third fastest."""
    rows, numbers, ring = job
    x, weights, gradient = np.ones((rows, 400)), np.ones((400, 400)), np.ones(numbers)
    found = []
    with one_thread:
        for _ in range(8):
            ring(worker, gradient[:2])  # all begin together
            start = time.perf_counter()
            if rows:
                x @ weights
            ring(worker, gradient)
            found.append(time.perf_counter() - start)
    return sorted(found)[2]


# --- 1 Share a batch ----------------------------------------------------------------------------------------


class Shares:
    """The parts of all workers."""

    def __init__(self, parts: Sequence[Any], one_of_many: bool):
        self.kinds = {kind(part) for part in parts}
        self.parts = [[show(item, {}) for item in part] for part in parts]
        self.one_of_many = one_of_many

    def __repr__(self) -> str:
        words = " ".join(f"[{', '.join(part)}]" for part in self.parts)
        return f"{words}, for example" if self.one_of_many else words


def _shares(answer: Callable, items: Any, workers: int) -> Any:
    parts = [answer(items, rank, workers) for rank in range(workers)]
    if any(part is ... for part in parts):
        return ...
    if any(part is None for part in parts):
        return None
    if not all(isinstance(part, (list, tuple, np.ndarray)) and np.ndim(part) > 0 for part in parts):
        return parts[0]
    return Shares(parts, one_of_many=answer is share.right)


def shared_out(expected: Any, got: Any, names: Names) -> str:
    """Whether each item goes to one worker, and all have about as many."""
    if not isinstance(got, Shares):
        return f"worker 0 gets {show(got, names)}, but should get a list or an array of items"
    items = sorted(item for part in expected.parts for item in part)
    given = [item for part in got.parts for item in part]
    for item in items:
        if item not in given:
            return f"{item} goes to no worker"
    for item in given:
        if given.count(item) > 1:
            return f"{item} goes to more than one worker"
    sizes = list(map(len, got.parts))
    if max(sizes) - min(sizes) > 1:
        return f"the workers have {', '.join(map(str, sizes))} items"
    if not got.kinds <= expected.kinds | {"ndarray"}:
        return (
            f"the items are in a {min(expected.kinds)}, but a part is in a {min(got.kinds - expected.kinds)}"
        )
    return ""


def _the_same_shares(expected: Any, got: Any, names: Names) -> str:
    if not (isinstance(expected, Shares) and isinstance(got, Shares)):
        return "" if repr(expected) == repr(got) else "they differ"
    return "" if (expected.parts, expected.kinds) == (got.parts, got.kinds) else "they differ"


shared_out.exactly = _the_same_shares  # type: ignore[attr-defined]


@lecture.exercise(
    case(list(range(10)), 4),
    case(np.arange(14.0).reshape(7, 2), 3),
    draws=drawn([list(range(n)) for n in (12, 5, 7, 2, 1, 9)] + [np.arange(11.0)], [4, 3, 2, 5, 1]),
    otherwise="Write down which worker gets which item. Each item should go to exactly one.",
    compare=shared_out,
    use=_shares,
    form="share({}, rank, {})",
)
def share(items, rank, workers):
    return items[rank::workers]


# --- 2 The mean of a batch from those of its parts ----------------------------------------------------------

to_the_last_digits = partial(values, tolerance=1e-12)  # of float64: float32 has seven


def parts_of(shape: tuple[int, ...], workers: int) -> list[np.ndarray]:
    """An array for each worker."""
    rng = np.random.default_rng(workers)
    return [rng.integers(-4, 9, shape).astype("float64") + rank / 3 for rank in range(workers)]


SIZES = st.sampled_from([[3, 1], [2, 2], [1, 4], [3, 2, 1], [2, 2, 3, 1], [5]])
SOME_SHAPES = st.sampled_from([(2,), (2, 2), (3,), (2, 3), (3, 2), (4, 4), (1,)])


@lecture.exercise(
    case([np.array([1.0, 2.0]), np.array([5.0, 6.0])], [3, 1]),
    case([np.array([6.0]), np.array([2.0]), np.array([0.0]), np.array([-4.0])], [3, 3, 2, 2]),
    draws=st.tuples(SOME_SHAPES, SIZES).map(lambda x: case(parts_of(x[0], len(x[1])), x[1])),
    otherwise="Each mean stands for as many points as its size says. How large is the sum over all points?",
    compare=to_the_last_digits,
    unless=(own_work,),  # `np.average` is a fair answer, and the solution says so
)
def average(gradients, sizes):
    total = sum(size * gradient for size, gradient in zip(sizes, gradients, strict=True))
    return total / sum(sizes)


# --- 3 Which part goes on -----------------------------------------------------------------------------------


turns = st.sampled_from([(r, n) for n in (4, 5, 3, 7, 2) for r in range(n)])
places = st.tuples(st.sampled_from(range(7)), turns).map(lambda x: case(x[0] % x[1][1], *x[1]))


@lecture.exercise(
    case(2, 0, 4),
    case(2, 1, 4),
    draws=places,
    otherwise="In round 0, worker k sends part k. Drag `step` to 1: what has just come to worker 2? It sends that next.",
)
def to_add(rank, r, workers):
    return (rank - r) % workers


@lecture.exercise(
    case(2, 0, 4),
    case(2, 1, 4),
    draws=places,
    otherwise="Drag `step` to 3: which part is complete at worker 2? It hands that one on in round 0.",
)
def to_hand_on(rank, r, workers):
    return (rank + 1 - r) % workers


# --- 4 A ring -----------------------------------------------------------------------------------------------


class Rings:
    """What all workers return, and what they have sent."""

    def __init__(self, totals: list[Any], workers: Threads):
        self.totals = totals
        self.sent = workers.sent
        self.ways = workers.post.ways

    def __repr__(self) -> str:
        shown = [show(x, {}) for x in self.totals]
        if len(set(shown)) == 1:
            return f"{shown[0]} on each worker; they send {', '.join(map(str, self.sent))} numbers"
        return ", ".join(f"worker {rank}: {x}" for rank, x in enumerate(shown))


def alone(answer: Callable) -> Callable:
    """A function with global lists and dictionaries of its own, as on a machine of its own."""
    if not isinstance(answer, FunctionType):
        return answer
    mentioned = {name: answer.__globals__.get(name) for name in answer.__code__.co_names}
    own = {name: deepcopy(x) for name, x in mentioned.items() if type(x) in (list, dict, set)}
    apart = answer.__globals__ | own
    return FunctionType(answer.__code__, apart, answer.__name__, answer.__defaults__, answer.__closure__)


def _rings(answer: Callable, arrays: np.ndarray) -> Any:
    workers = Threads(len(arrays))
    totals = workers.run(lambda worker, numbers: alone(answer)(worker, numbers), list(arrays))
    if any(x is ... for x in totals):
        return ...
    return None if all(x is None for x in totals) else Rings(totals, workers)


def _around(expected: Any, got: Any, names: Names) -> str:
    """Whether all have the total, by way of a ring."""
    if not isinstance(got, Rings):
        return f"the type is {kind(got)}, but should be ndarray"
    for rank, pair in enumerate(zip(expected.totals, got.totals, strict=True)):
        if difference := to_the_last_digits(*pair, names):
            return f"on worker {rank}, {difference}"
    size = len(got.totals)
    for rank, to in sorted(got.ways):
        if to != (rank + 1) % size:
            return f"the totals are right, but worker {rank} sends something to worker {to}"
    most = 2 * (size - 1) * -(-expected.totals[0].size // size)
    for rank, sent in enumerate(got.sent):
        if sent > most:
            return f"the totals are right, but worker {rank} sends {sent} numbers; {most} should do"
    least = 2 * (size - 1) * expected.totals[0].size
    if sum(got.sent) < least:
        return f"the totals are right, but only {sum(got.sent)} numbers are sent; {least} are needed"
    return ""


def _the_same_ring(expected: Any, got: Any, names: Names) -> str:
    if not (isinstance(expected, Rings) and isinstance(got, Rings)):
        return _around(expected, got, names)
    if difference := to_the_last_digits(expected.totals, got.totals, names):
        return difference
    everywhere = all(not values(expected.totals[0], total, names) for total in expected.totals)
    if everywhere and (expected.ways, expected.sent) != (got.ways, got.sent):
        return "they send other numbers"
    return ""


_around.exactly = _the_same_ring  # type: ignore[attr-defined]


def _arrays(workers: int, numbers: int) -> np.ndarray:
    return np.stack([10.0**rank * np.arange(1, numbers + 1) for rank in range(workers)])


adding, handing_on = to_add.right, to_hand_on.right


@lecture.exercise(
    case(_arrays(4, 8)),
    case(_arrays(4, 6)),
    draws=st.sampled_from([(3, 7), (2, 4), (5, 3), (1, 3), (3, 3), (6, 13)]).map(
        lambda x: case(_arrays(*x) / 10)
    ),
    otherwise="Follow one part, say part 0, from worker to worker, and compare with the picture step by step.",
    compare=_around,
    use=_rings,
    form="ring_all_reduce(worker, numbers), where each worker has a row of {},",
)
def ring_all_reduce(worker, numbers):
    rank, workers = worker.rank, worker.size
    right, left = (rank + 1) % workers, (rank - 1) % workers
    parts = np.array_split(numbers.copy(), workers)
    for r in range(workers - 1):
        worker.send(parts[adding(rank, r, workers)], right)
        parts[adding(left, r, workers)] += worker.receive(left)
    for r in range(workers - 1):
        worker.send(parts[handing_on(rank, r, workers)], right)
        parts[handing_on(left, r, workers)] = worker.receive(left)
    return np.concatenate(parts)


@ring_all_reduce.mistake(
    "The totals are right, but whole arrays go around. Then each worker sends as much again for every worker more. Send one part in each round."
)
def whole_arrays(worker, numbers):
    total, passing = numbers.copy(), numbers
    for _ in range(worker.size - 1):
        worker.send(passing, (worker.rank + 1) % worker.size)
        passing = worker.receive((worker.rank - 1) % worker.size)
        total = total + passing
    return total


@ring_all_reduce.mistake(
    "The totals are right, but everything goes through worker 0. Send to your right neighbour only."
)
def through_worker_0(worker, numbers):
    if worker.rank:
        worker.send(numbers, 0)
        return worker.receive(0)
    total = numbers + sum(worker.receive(rank) for rank in range(1, worker.size))
    for rank in range(1, worker.size):
        worker.send(total, rank)
    return total


@ring_all_reduce.mistake(
    "The totals are right, but each worker sends to all others. In a ring it talks to its right neighbour only."
)
def each_to_all(worker, numbers):
    others = [rank for rank in range(worker.size) if rank != worker.rank]
    for rank in others:
        worker.send(numbers, rank)
    return numbers + sum(worker.receive(rank) for rank in others)


BOARD: dict[int, Any] = {}


@ring_all_reduce.mistake(
    "Your workers look into each other's memory. That works with threads on one machine, and nowhere else: use `send` and `receive`."
)
def through_memory(worker, numbers):
    BOARD[worker.rank] = numbers
    for _ in range(2 * (worker.size - 1)):
        worker.send(numbers, (worker.rank + 1) % worker.size)
        worker.receive((worker.rank - 1) % worker.size)
    return sum(BOARD[rank] for rank in range(worker.size))


# --- 5 What it costs ----------------------------------------------------------------------------------------


@lecture.exercise(
    case(3, 900, 1.0, 100.0),
    case(4, 1000, 1.0, 500.0),
    draws=drawn([3, 4, 10, 8, 1], [1000, 100, 0], [1.0, 2.0, 0.0], [100.0, 500.0, 1.0]),
    otherwise="How many rounds are there? In each, one part is sent: how many bytes, and how many seconds?",
)
def seconds(workers, size, latency, bandwidth):
    message = latency + size / workers / bandwidth
    return 2 * (workers - 1) * message


# --- 6 The variance of a batch ------------------------------------------------------------------------------


def shards(parts: tuple[tuple[int, ...] | None, list[int]]) -> Case:
    """Means and variances of shards, numbers or arrays, and their sizes."""
    shape, sizes = parts
    means = parts_of(shape or (), len(sizes))
    variances = [abs(x) + 1 for x in parts_of(shape or (), len(sizes) + 1)[1:]]
    if shape is None:
        return case([float(x) for x in means], [float(x) for x in variances], sizes)
    return case(means, variances, sizes)


@lecture.exercise(
    case([1.0, 5.0], [2.0, 2.0], [4, 4]),
    case([1.0, 5.0], [2.0, 6.0], [3, 1]),
    draws=st.tuples(st.sampled_from([None, (2,), (3,), (2, 3)]), SIZES).map(shards),
    otherwise="Take two shards of two numbers, such as 0, 2 and 10, 12, and compute all of it by hand.",
)
def together(means, variances, sizes):
    mean = average(means, sizes)
    around = [v + (m - mean) ** 2 for m, v in zip(means, variances, strict=True)]
    return mean, average(around, sizes)
