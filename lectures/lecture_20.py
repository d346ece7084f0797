"""Lecture 20, many machines: its exercises, the usual mistakes in them, its pictures and its races."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from matplotlib.axes import Axes

import viz
from needle import nn
from needle.autograd import Tensor
from needle.backend_ndarray.blas import one_thread
from viz.plots.look import INK, ORANGE, PALE_BLUE, PALE_GREEN, PALE_ORANGE, PAPER, QUIET
from viz.plots.sketch import Sketch

from .checking import (
    Case,
    Lecture,
    Names,
    case,
    closely,
    drawn,
    kind,
    own_work,
    show,
    unshared,
    values,
    whole,
)
from .lecture_19 import uncover
from .team import Processes, Threads, Worker, team

__all__ = ["Threads", "check", "predict", "ready", "team"]

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


# --- What the cells use -------------------------------------------------------------------------------------


def batch(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in the plane, and whether each lies outside of a circle: the same points each time."""
    x = np.random.default_rng(0).normal(size=(rows, 2))
    return x, (np.hypot(*x.T) > 1).astype("int64")


def network(norm: bool = False) -> nn.Module:
    """A network of 2, 8 and 2 units in float64, with the same weights each time, and a BatchNorm for `norm`."""
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

WIDE, HIGH, GAP = 36, 30, 10  # points: a cell, and the room between two workers


def holdings(step: int, workers: int) -> tuple[list[list[set[int]]], list[tuple[int, int]]]:
    """What each worker holds after so many steps of a ring: of each part, whose numbers are in it.

    Also which (worker, part) have just come from the left.
    """
    held = [[{worker} for _ in range(workers)] for worker in range(workers)]
    came: list[tuple[int, int]] = []
    for number in range(step):
        adding = number < workers - 1
        which, r = (to_add, number) if adding else (to_hand_on, number - workers + 1)
        before, came = [list(parts) for parts in held], []
        for worker in range(workers):
            left = (worker - 1) % workers
            part = which.right(left, r, workers)
            held[worker][part] = before[left][part] | (before[worker][part] if adding else set())
            came.append((worker, part))
    return held, came


def draw_ring(step: int, workers: int = 4) -> Axes:
    """Draw what each worker holds after so many steps of a ring. Each column is a worker, each row a part."""
    held, came = holdings(step, workers)
    sketch = Sketch()
    for worker in range(workers):
        left = worker * (WIDE + GAP)
        sketch.text(left + WIDE / 2, -12, f"worker {worker}", anchor="center")
        for part, whose in enumerate(held[worker]):
            top, new = part * (HIGH + 6), (worker, part) in came
            full = len(whose) == workers
            fill = PALE_GREEN if full else PALE_ORANGE if new else PAPER if step else PALE_BLUE
            sketch.box(left, top, WIDE, HIGH, fill, ORANGE if new else QUIET, thick=1.8 if new else 0.9)
            words = _names(whose)
            lines = [words] if len(whose) < 3 else [words[:3], words[3:]]
            for at, line in zip((10, 21) if lines[1:] else (15,), lines, strict=True):
                sketch.text(left + WIDE / 2, top + at, line, anchor="center", bold=full)
    for worker, part in came:  # the first one has it from the last one
        y = part * (HIGH + 6) + HIGH / 2
        for end in (worker, workers) if worker == 0 else (worker,):
            sketch.line((end * (WIDE + GAP) - GAP + 1, y), (end * (WIDE + GAP) - 1, y), ORANGE, arrow=True)
    for part in range(workers):
        sketch.text(-GAP - 2, part * (HIGH + 6) + HIGH / 2, f"part {part}", anchor="right", colour=QUIET)
    sketch.line((0, 0), (workers * (WIDE + GAP), 0), alpha=0)  # every step has room for the last arrow
    doing = "adding" if step < workers else "handing on"
    title = f"Step {step} of {2 * (workers - 1)}: {doing}" if step else "Each has its own numbers"
    ax = sketch.on(None, title)
    columns = [f"worker {worker}: {', '.join(map(_names, parts))}" for worker, parts in enumerate(held)]
    ax.set_label(f"{title}. Part by part, {'; '.join(columns)}")
    return ax


def _names(workers: set[int]) -> str:
    return "+".join(map(str, sorted(workers)))


def draw_buckets(there: Sequence[float], takes: Sequence[float], finish: Callable) -> Axes:
    """Draw a backward pass of eight layers, and below it the rings of its buckets: each layer takes 3 ms."""
    sketch, scale, rings = Sketch(), 5.0, []  # points for a millisecond
    sketch.text(0, 0, "backward pass, from layer 8 to layer 1")
    for layer in range(8):
        sketch.box(scale * 3 * layer, 10, scale * 3, 24, PALE_BLUE, words=str(8 - layer))
    sketch.text(0, 50, "rings of the buckets", ground=PAPER)
    for k, (start, duration) in enumerate(zip(there, takes, strict=True), start=1):
        end = finish(there[:k], takes[:k])
        rings.append(f"bucket {k} from {end - duration:.2f} to {end:.2f}")
        sketch.line((scale * start, 34), (scale * start, 62), ORANGE, dashed=True)
        sketch.box(scale * (end - duration), 62, scale * duration, 24, PALE_ORANGE, ORANGE, words=str(k))
    for tick in range(0, 50, 10):
        sketch.line((scale * tick, 86), (scale * tick, 91))
        sketch.text(scale * tick, 100, f"{tick} ms" if tick else "0", anchor="center", colour=QUIET)
    title = f"{len(there)} bucket{'s' * (len(there) > 1)}: done after {end:.1f} ms"
    ax = sketch.on(None, title)
    ax.set_label(f"{title}. The backward pass takes {there[-1]:g} ms; {'; '.join(rings)}")
    return ax


def draw_scaling(workers: Sequence[int], speed: Sequence[float], chosen: int) -> Axes:
    """Draw how many times as fast so many workers are as one, and mark one number of them."""
    curves = {"if talking cost nothing": np.asarray(workers, float), "with the ring": np.asarray(speed)}
    there = dict(zip(workers, speed, strict=True))[chosen]
    title = f"{chosen:,} workers: {there:.3g} times as fast as one"
    (ax,) = viz.panels(1, width=3.4, height=3.4)
    ax.set_position((0.22, 0.16, 0.74, 0.73))
    viz.curve(curves, workers, log="xy", xlabel="workers", ylabel="times as fast as one", title=title, ax=ax)
    ax.plot([chosen], [there], "o", markersize=11, fillstyle="none", markeredgewidth=2, color=INK)
    ax.set_ylim(0.02, 20_000)
    return ax


def time_steps(workers: Processes | Threads, ring: Callable, seconds: Callable) -> Any:
    """Bars to uncover: how many times as fast as one worker two and four are, on paper and as measured here.

    A step is the product of 2,048 rows of a batch with a matrix, and the sum of 30,000 numbers over all
    workers. `seconds` gets a latency and a bandwidth that are measured with two workers first.
    """

    def best(count: int, rows: int, numbers: int = 30_000) -> float:
        return max(workers.run(_timed, [(rows // count, numbers, ring)] * count))

    small, large, alone = best(2, 0, 2), best(2, 0), best(1, 2048)
    latency, bandwidth = small / 2, 8 * 30_000 / max(large - small, 1e-9)
    found = {"1 worker": 1.0}
    for count in (2, 4):
        paper = alone / count + seconds(count, 8 * 30_000, latency, bandwidth)
        found[f"{count} workers, on paper"] = alone / paper
        found[f"{count} workers, measured"] = alone / best(count, 2048)
    return uncover(found, "times as fast as one worker")


def _timed(worker: Worker, job: tuple[int, int, Callable]) -> float:
    """Make eight steps, together with the other workers, and take the time of the third fastest."""
    rows, numbers, ring = job
    x, weights, gradient = np.ones((rows, 400)), np.ones((400, 400)), np.ones(numbers)
    found = []
    with one_thread:
        for _ in range(8):
            ring(worker, gradient[:2])  # all begin together
            start = time.perf_counter()
            x @ weights
            ring(worker, gradient)
            found.append(time.perf_counter() - start)
    return sorted(found)[2]


# --- 1 Share a batch ----------------------------------------------------------------------------------------


def _shares(answer: Callable, items: Any, workers: int) -> Any:
    """The parts of all workers; None if one is None."""
    parts = [answer(items, rank, workers) for rank in range(workers)]
    return None if any(part is None for part in parts) else parts


def shared_out(expected: Any, got: Any, names: Names) -> str:
    """Whether each item goes to one worker, and all have about as many."""
    for part in got or [got]:
        if not isinstance(part, (list, tuple, np.ndarray)) or np.ndim(part) == 0:
            return f"a worker gets {show(part, names)}, but should get a list or an array of items"
    items, given = ([show(item, {}) for part in parts for item in part] for parts in (expected, got))
    for item in sorted(items):
        if (times := given.count(item)) != items.count(item):
            return f"{item} goes to {'more than one' if times else 'no'} worker"
    sizes = list(map(len, got))
    if max(sizes) - min(sizes) > 1:
        return f"the workers have {', '.join(map(str, sizes))} items"
    wrong = {kind(part) for part in got} - {kind(expected[0]), "ndarray"}
    return f"the items are in a {kind(expected[0])}, but a part is in a {min(wrong)}" if wrong else ""


shared_out.exactly = values  # type: ignore[attr-defined]


@lecture.exercise(
    case(list(range(10)), 4),
    case(np.arange(14.0).reshape(7, 2), 3),
    draws=drawn(
        [[5 * k % 13 for k in range(n)] for n in (12, 5, 7, 2, 1, 9)] + [[4, 4, 7, 1, 4], np.arange(11.0)],
        [4, 3, 2, 5, 1],
    ),
    otherwise="Write down which worker gets which item. Each item should go to exactly one.",
    compare=shared_out,
    use=_shares,
    form="share({}, rank, {})",
)
def share(items, rank, workers):
    return items[rank::workers]


# --- 2 The mean of a batch from those of its parts ----------------------------------------------------------


def parts_of(shape: tuple[int, ...], workers: int) -> list[np.ndarray]:
    """An array for each worker; the first and the fourth are equal."""
    made = [np.random.default_rng(seed).integers(-4, 9, shape) + seed / 3 for seed in range(3)]
    return [made[rank % 3] for rank in range(workers)]


SIZES = st.sampled_from([[3, 1], [2, 2], [1, 4], [3, 2, 1], [2, 2, 3, 1], [5]])
SOME_SHAPES = st.sampled_from([(2,), (2, 2), (3,), (2, 3), (3, 2), (4, 4), (1,)])


@lecture.exercise(
    case([np.array([1.0, 2.0]), np.array([5.0, 6.0])], [3, 1]),
    case([np.array([6.0]), np.array([2.0]), np.array([0.0]), np.array([-4.0])], [3, 3, 2, 2]),
    draws=st.tuples(SOME_SHAPES, SIZES).map(lambda x: case(parts_of(x[0], len(x[1])), x[1])),
    otherwise="Each mean stands for as many points as its size says. How large is the sum over all points?",
    compare=closely,
    unless=(own_work, unshared),  # `np.average` is a fair answer, and the solution says so
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
    compare=whole,
    otherwise="In round 0, worker k sends part k. Drag `step` to 1: what has just come to worker 2? It sends that next.",
)
def to_add(rank, r, workers):
    return (rank - r) % workers


@lecture.exercise(
    case(2, 0, 4),
    case(2, 1, 4),
    draws=places,
    compare=whole,
    otherwise="Drag `step` to 3: which part is complete at worker 2? It hands that one on in round 0.",
)
def to_hand_on(rank, r, workers):
    return (rank + 1 - r) % workers


# --- 4 A ring -----------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """What all workers return, what they have sent, to whom, and how many numbers nobody received."""

    results: list[Any]
    sent: list[int]
    ways: set[tuple[int, int]]
    unread: int

    def __repr__(self) -> str:
        shown = [show(x, {}) for x in self.results]
        if len(set(shown)) == 1:
            return f"{shown[0]} on each worker; they send {', '.join(map(str, self.sent))} numbers"
        return ", ".join(f"worker {rank}: {x}" for rank, x in enumerate(shown))


def copies_of(answer: Callable) -> Callable[[], Callable]:
    """What makes copies of a function, each with its own copy of all that it uses, as on another machine."""
    with suppress(Exception):  # not all can be copied, and not without Numba
        from numba import cloudpickle

        cloudpickle.loads(packed := cloudpickle.dumps(answer))
        return partial(cloudpickle.loads, packed)
    return lambda: answer


def at_once(answer: Callable, items: Sequence[Any]) -> Any:
    """Let as many workers as there are items run an answer, each with its own."""
    workers, copy = Threads(len(items)), copies_of(answer)
    with warnings.catch_warnings(action="ignore"):
        results = workers.run(lambda worker, item: copy()(worker, item), list(items))
    if any(x is ... for x in results):
        return ...
    unread = sum(workers.sent) - sum(workers.received)
    return None if all(x is None for x in results) else Ran(results, workers.sent, workers.post.ways, unread)


def everywhere(expected: Any, got: Any, names: Names) -> str:
    """Whether each worker returns what it should, and sends something: the others cannot know it otherwise."""
    if not isinstance(got, Ran):
        return f"the type is {kind(got)}, but should be {kind(expected.results[0])}"
    for rank, pair in enumerate(zip(expected.results, got.results, strict=True)):
        if difference := closely(*pair, names):
            return f"on worker {rank}, {difference}"
    silent = set(range(len(got.results))) - {rank for rank, _ in got.ways}
    if expected.ways and silent:
        return f"worker {min(silent)} sends nothing, so no other can know what it has"
    if got.unread:
        return f"{got.unread} of the numbers that were sent are never received, so the next program gets them"
    return ""


def _around(expected: Any, got: Any, names: Names) -> str:
    """Whether all have the total, by way of a ring."""
    if difference := everywhere(expected, got, names):
        return difference
    size = len(got.results)
    for rank, to in sorted(got.ways):
        if to != (rank + 1) % size:
            return f"the totals are right, but worker {rank} sends to worker {to}, not to the right"
    numbers = expected.results[0].size
    most, least = 2 * (size - 1) * -(-numbers // size), 2 * (size - 1) * numbers
    for rank, sent in enumerate(got.sent):
        if sent > most:
            return f"the totals are right, but worker {rank} sends {sent} numbers; {most} should do"
    if sum(got.sent) < least:
        return f"the totals are right, but only {sum(got.sent)} numbers are sent; {least} are needed"
    return ""


def _exactly(expected: Any, got: Any, names: Names) -> str:
    if not (isinstance(expected, Ran) and isinstance(got, Ran)):
        return everywhere(expected, got, names)
    if difference := closely(expected.results, got.results, names):
        return difference
    right = all(not values(expected.results[0], result, names) for result in expected.results)
    return (
        "they send other numbers" if right and (expected.ways, expected.sent) != (got.ways, got.sent) else ""
    )


everywhere.exactly = _around.exactly = _exactly  # type: ignore[attr-defined]


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
    use=at_once,
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


# --- 5 A fault to find --------------------------------------------------------------------------------------

ring = ring_all_reduce.right


@lecture.exercise(
    case([np.array([1.0, 5.0]), np.array([3.0]), np.array([8.0]), np.array([])]),
    draws=st.tuples(
        st.sampled_from([(2, 0), (0, 1), (1, 2), (1, 0, 0), (0, 3, 2), (9, 2, 1), (4, 0, 1, 0, 2), (3,)]),
        st.sampled_from([1.0, 0.5, 0.0]),
    ).map(lambda x: case([x[1] * (2.0 * np.arange(n) + (rank - 1) ** 2) for rank, n in enumerate(x[0])])),
    otherwise="Write down what each worker brings to the ring, and what all of it adds up to.",
    compare=everywhere,
    use=at_once,
    form="mean_of_all(worker, losses), where the workers have {},",
)
def mean_of_all(worker, losses):
    total, count = ring(worker, np.array([losses.sum(), len(losses)]))
    return total / count


# --- 6 What it costs ----------------------------------------------------------------------------------------


@lecture.exercise(
    case(3, 900, 1.0, 100.0),
    case(4, 1000, 1.0, 500.0),
    draws=drawn([3, 4, 10, 8, 1], [1000, 100, 0], [1.0, 2.0, 0.0], [100.0, 500.0, 1.0]),
    otherwise="How many rounds are there? In each, one part is sent: how many bytes, and how many seconds?",
)
def seconds(workers, size, latency, bandwidth):
    message = latency + size / workers / bandwidth
    return 2 * (workers - 1) * message


@lecture.exercise(
    case([12, 24], [10.8, 10.8]),
    draws=st.lists(
        st.tuples(st.sampled_from([4, 1, 10, 0, -8]), st.sampled_from([3, 1, 8, 20])), min_size=1, max_size=5
    ).map(lambda x: case(np.abs(np.cumsum([gap for gap, _ in x])).tolist(), [time for _, time in x])),
    otherwise="Write down for one bucket after the other when its ring begins, and when it ends.",
)
def finish(there, takes):
    end = 0
    for start, duration in zip(there, takes, strict=True):
        end = max(end, start) + duration
    return end


# --- 7 The variance of a batch ------------------------------------------------------------------------------


def shards(parts: tuple[tuple[int, ...] | None, list[int], float]) -> Case:
    """Means and variances of shards, numbers or arrays, and their sizes; the means may be far from 0."""
    shape, sizes, far = parts
    make = float if shape is None else np.array
    means, others = (parts_of(shape or (), len(sizes) + k) for k in (0, 1))
    return case([make(x + far) for x in means], [make(abs(x) + 1) for x in others[1:]], sizes)


@lecture.exercise(
    case([1.0, 5.0], [2.0, 2.0], [4, 4]),
    case([1.0, 5.0], [2.0, 6.0], [3, 1]),
    draws=st.tuples(st.sampled_from([None, (2,), (2, 3)]), SIZES, st.sampled_from([0, 1e7])).map(shards),
    unless=(unshared,),
    otherwise="Take two shards of two numbers, such as 0, 2 and 10, 12, and compute all of it by hand.",
)
def together(means, variances, sizes):
    mean = average(means, sizes)
    around = [v + (m - mean) ** 2 for m, v in zip(means, variances, strict=True)]
    return mean, average(around, sizes)
