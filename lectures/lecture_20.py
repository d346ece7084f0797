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
        title = "At the start each worker holds its own numbers"
    elif step < workers:
        title = f"Step {step} of {last}, adding: what came has {step + 1} workers' numbers"
    else:
        title = f"Step {step} of {last}, handing on: {complete} of {workers} parts are complete"
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


def shares(sentence: str, new: str) -> None:
    """Add a slip: another part of the items."""
    share.slip(sentence, "items[rank::workers]", new)


SAME = "Each worker gets the same items. What each one gets depends on its `rank`."
SHORT = "items[rank * (len(items) // workers) : (rank + 1) * (len(items) // workers)]"
shares(
    "The last items go to nobody: 10 // 4 is 2, and four times 2 is 8. Let each worker take every fourth item, or let the first workers take one more.",
    SHORT,
)
shares(
    "What is left over goes to the last worker, and the others will have to wait for it. Give one more to each of several workers instead.",
    SHORT.replace(": (", ": None if rank == workers - 1 else ("),
)
shares(
    "You rounded the size up for all, so little is left for the last worker. Some should have one less, and not one worker all of the lack.",
    "items[rank * -(-len(items) // workers) : (rank + 1) * -(-len(items) // workers)]",
)
shares(SAME, "items[: -(-len(items) // workers)]")
shares(SAME, "items[::workers]")
shares("Every worker gets all. They would all do the same work.", "items[:]")
shares(
    "This is one single item. A worker gets a part of the items: `items[start::step]`, say.",
    "items[rank % len(items)]",
)
shares(
    "You begin at the item `rank` and take all that follow. Take every fourth: a step is missing.",
    "items[rank:]",
)
shares(
    "Your parts have as many items as there are workers. There should be as many parts as workers.",
    "items[rank * workers : (rank + 1) * workers]",
)
shares(
    "`rank` is your step, but it says where a worker starts. The step is `workers`.", "items[workers::rank]"
)
shares(
    "`items[a:b]` goes from a up to b. For steps of `workers` there are two colons: `items[start::step]`.",
    "items[rank:workers]",
)
shares(
    "Ranks begin at 0, so worker 0 begins with item 0. You begin one item earlier.",
    "items[rank - 1 :: workers]",
)
shares("You count with four workers. There may be more or fewer: `workers` says how many.", "items[rank::4]")
shares(
    "A slice needs whole numbers, and `/` gives a float. Divide with `//`, and mind the rest.",
    SHORT.replace("//", "/"),
)
shares(
    "The parts are lists, but the items came in an array. Cut it with a slice, and each part is an array, too.",
    "list(items[rank::workers])",
)


# --- 2 The mean of a batch from those of its parts ----------------------------------------------------------

to_the_last_digits = partial(values, tolerance=1e-12)  # of float64: float32 has seven
ROUNDED = "The numbers are right to seven digits only: somewhere you turn them into float32. Keep their type."


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


ZIPPED = "sum(size * gradient for size, gradient in zip(sizes, gradients, strict=True))"
ONE_NUMBER = "Everything became one number. Average over the workers only, place by place: axis 0."
AXIS = "Say along which axis: `axis=0` goes over the workers, and leaves the shape as it is."
average.slip(
    "This is the mean of the means, and it counts every part alike. A mean over 3 points should count three times as much as a mean over 1.",
    (ZIPPED, "sum(gradients)"),
    ("/ sum(sizes)", "/ len(sizes)"),
)
average.slip(
    "This is the sum over all points. Divide it by the number of all points: `sum(sizes)`.",
    " / sum(sizes)",
    "",
)
average.slip(
    "The sum over all points is right. Divide it by the number of points, `sum(sizes)`, not of workers.",
    *("/ sum(sizes)", "/ len(sizes)"),
)
average.slip(
    "This adds the means. How many points does each of them stand for?",
    (ZIPPED, "sum(gradients)"),
    (" / sum(sizes)", ""),
)
average.slip(
    "You divide each mean by its size. A mean of more points should count more: multiply.",
    ("size * gradient", "gradient / size"),
    (" / sum(sizes)", ""),
)
average.slip(ONE_NUMBER, "return total / sum(sizes)", "return float(np.mean(total / sum(sizes)))")
average.slip(AXIS, "return total / sum(sizes)", "return np.average(gradients, weights=sizes)")
average.slip(
    "You divide by the number of all points, but have not multiplied each mean by its own size before.",
    ZIPPED,
    "sum(gradients)",
)
average.slip(
    "`sizes` is a list, and a list cannot be multiplied place by place. Go through both lists together, with `zip`.",
    *(ZIPPED, "sum(gradients * sizes)"),
)
average.slip(
    "`@` and `np.dot` sum over the axis before the last, and that is the workers' only if gradients are rows. Theirs is axis 0: `np.average(…, axis=0, weights=…)`, or a sum with `zip`.",
    *(ZIPPED, "np.array(sizes) @ np.array(gradients)"),
)
average.slip(
    "`gradients, sizes` are two lists, one after the other. `zip(gradients, sizes)` gives you pairs of a gradient and its size.",
    *("zip(sizes, gradients, strict=True)", "(sizes, gradients)"),
)
average.slip(
    "`sizes` is broadcast along the last axis (lecture 11), so it multiplies columns, not workers. Multiply each gradient by its own size.",
    *(ZIPPED, "(np.array(gradients) * sizes).sum(axis=0)"),
)
average.slip(ROUNDED, "return total / sum(sizes)", 'return (total / sum(sizes)).astype("float32")')
average.slip(
    "The numbers are right, but in a list. Return an array: add up arrays, not their numbers.",
    *("return total / sum(sizes)", "return (total / sum(sizes)).tolist()"),
)


# --- 3 Which part goes on -----------------------------------------------------------------------------------

FOUR = "You count with four workers. There may be more or fewer: take the number modulo `workers`."
NEGATIVE = "As an index of a list this happens to work, since Python counts negative ones from the end. But a part's number is 0 or more: take it modulo `workers`."

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


def adds(sentence: str, new: str) -> None:
    """Add a slip: another part."""
    to_add.slip(sentence, "(rank - r) % workers", new)


adds(
    "Each worker sends its own part in every round. But from round 1 on it sends what has just come, and was added to.",
    "rank",
)
adds(
    "You count up. What comes to worker 2 in round 0 is part 1, the one *before* its own.",
    "(rank + r) % workers",
)
adds(NEGATIVE, "rank - r")
adds("You are one round ahead: in round 0, worker k sends its own part, k.", "(rank - 1 - r) % workers")
adds(
    "In round 0, worker k sends its own part, k. You begin with the part after it, which is the rule for handing on.",
    "(rank + 1 - r) % workers",
)
adds(FOUR, "(rank - r) % 4")
adds(
    "Below zero you drop the sign. Before part 0 comes the last part: take it modulo `workers`.",
    "abs(rank - r)",
)
adds("All workers send the same part here. It depends on `rank`, too.", "r")


@lecture.exercise(
    case(2, 0, 4),
    case(2, 1, 4),
    draws=places,
    otherwise="Drag `step` to 3: which part is complete at worker 2? It hands that one on in round 0.",
)
def to_hand_on(rank, r, workers):
    return (rank + 1 - r) % workers


def hands_on(sentence: str, new: str) -> None:
    """Add a slip: another part."""
    to_hand_on.slip(sentence, "(rank + 1 - r) % workers", new)


hands_on(
    "That is the rule of the adding rounds. Now the first part to hand on is the one that is complete: after adding, worker 2 has part 3 complete.",
    "(rank - r) % workers",
)
hands_on(
    "Each worker hands on the same part in every round. In round 1 it is the part that came.",
    "(rank + 1) % workers",
)
hands_on(
    "You count up. What comes from the left is the part *before*: one less in each round.",
    "(rank + 1 + r) % workers",
)
hands_on(FOUR, "(rank + 1 - r) % 4")
hands_on(
    "Past the end, count from the other end: take the number modulo `workers`, with `%`.", "rank + 1 - r"
)
hands_on(
    "You are one too low from the start: that part is not complete at this worker, it is complete two further to the left.",
    "(rank - 1 - r) % workers",
)


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


ring = ring_all_reduce.slip
NEIGHBOURS = "(rank + 1) % workers, (rank - 1) % workers"
ADD = "for r in range(workers - 1):\n        worker.send(parts[adding(rank, r, workers)], right)"
COMES = "parts[adding(left, r, workers)] += worker.receive(left)"
HAND_ON = "for r in range(workers - 1):\n        worker.send(parts[handing_on(rank, r, workers)], right)"
ARRIVES = "parts[handing_on(left, r, workers)] = worker.receive(left)"
WHOLE = "np.concatenate(parts)"
NOT_HANDED_ON = "Each worker has one complete part, and that is half of the work. In as many rounds again, the complete parts are handed on, and each is put into its place."
WRONG_PLACE = "What comes is put into the place of the part that you have just sent. It is the part that your *left* neighbour sent in this round: ask `{}(left, …)`."
ring(NOT_HANDED_ON, HAND_ON, HAND_ON.replace("workers - 1)", "0)"))
ring(NOT_HANDED_ON, ARRIVES, "worker.receive(left)")
ring(
    "In the adding rounds, what comes replaces what was there. Add it: `+=`, so that both are in the part.",
    "+=",
    "=",
)
ring(
    "In the last rounds, complete parts come, and you add them to what is there. Put them in its place: `=`.",
    *(ARRIVES, ARRIVES.replace("] = ", "] += ")),
)
ring(
    "A worker waits for a message that nobody sends, and in the end all wait: a deadlock. In each round, every worker sends first, and then receives.",
    (
        ADD,
        "for r in range(workers - 1):\n        came = worker.receive(left)\n        worker.send(parts[adding(rank, r, workers)], right)",
    ),
    (COMES, "parts[adding(left, r, workers)] += came"),
)
ring(
    "You receive from the neighbour to whom you send. Send to the right, and receive from the left.",
    (COMES, COMES.replace("receive(left)", "receive(right)")),
    (ARRIVES, ARRIVES.replace("receive(left)", "receive(right)")),
)
ring(
    "The last worker has no worker after it, so the ring is not closed. After the last comes worker 0: `% worker.size`.",
    *(NEIGHBOURS, "rank + 1, (rank - 1) % workers"),
)
ring(
    "Worker 0 has no worker −1 at its left, so the ring is not closed. Before the first comes the last: `% worker.size`.",
    *(NEIGHBOURS, "(rank + 1) % workers, rank - 1"),
)
ring(
    "One round of adding too many: what comes in round `worker.size - 1` has your own numbers in it already.",
    *(ADD, ADD.replace("workers - 1)", "workers)")),
)
ring(
    "One round too many of both kinds: `worker.size - 1` rounds are enough, since you have your own part.",
    (ADD, ADD.replace("workers - 1)", "workers)")),
    (HAND_ON, HAND_ON.replace("workers - 1)", "workers)")),
)
ring(
    "One round is missing: with four workers, a part has to be handed over three times until it is complete.",
    (ADD, ADD.replace("workers - 1)", "workers - 2)")),
    (HAND_ON, HAND_ON.replace("workers - 1)", "workers - 2)")),
)
ring(WRONG_PLACE.format("adding"), COMES, COMES.replace("left, r", "rank, r"))
ring(WRONG_PLACE.format("handing_on"), ARRIVES, ARRIVES.replace("left, r", "rank, r"))
ring(
    "You send all parts before anything has come. From round 1 on, a worker sends what it has just received and added to: so send and receive in the same round.",
    *(ADD, ADD + "\n    for r in range(workers - 1):"),
)
ring(
    "You count with four workers. There may be more or fewer: `worker.size` says how many.",
    *("worker.rank, worker.size", "worker.rank, 4"),
)
ring(
    "The numbers need not divide into parts of equal length. `np.array_split` makes some parts one longer.",
    *("np.array_split", "np.split"),
)
ring(
    "The last numbers are in no part: you round the length of a part down. `np.array_split` leaves none out.",
    *("numbers.copy()", "numbers[: len(numbers) // workers * workers].copy()"),
)
ring(ROUNDED, "numbers.copy()", 'numbers.astype("float32")')
ring("You return a list of parts. Put them together again: `np.concatenate(parts)`.", WHOLE, "parts")
ring(
    "This is the mean. What is asked for is the total: nothing is divided here.", WHOLE, WHOLE + " / workers"
)
ring("You give back your own numbers. Put what you have added up into the result.", WHOLE, "numbers.copy()")
ring(
    "You send the *number* of the part. Send the part itself: `parts[adding(…)]`.",
    *(ADD, ADD.replace("parts[adding(rank, r, workers)]", "adding(rank, r, workers)")),
)
ring(
    "First what you send, then to whom: `worker.send(part, right)`.",
    *(
        "worker.send(parts[adding(rank, r, workers)], right)",
        "worker.send(right, parts[adding(rank, r, workers)])",
    ),
)
ring("Say to whom: `worker.send(part, right)`.", ADD, ADD.replace(", right)", ")"))
ring("Say from whom: `worker.receive(left)`.", COMES, COMES.replace("(left)", "()"))
ring(
    "You send to the left. Then other parts come than `adding` and `handing_on` say: send to the right, and receive from the left.",
    *(NEIGHBOURS, "(rank - 1) % workers, (rank + 1) % workers"),
)
ring(
    "In the last rounds, other parts go on than while adding: use `handing_on`.",
    ("handing_on(rank", "adding(rank"),
    ("handing_on(left", "adding(left"),
)


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


costs = seconds.slip
ROUNDS, BYTES = "2 * (workers - 1) * message", "size / workers / bandwidth"
WHOLE_BYTES = "You round a part to whole bytes. Take exactly one n-th of the array, `size / workers`."
costs(
    "You count the rounds of adding alone. There are as many of handing on: twice `workers - 1`.",
    ROUNDS,
    "(workers - 1) * message",
)
costs(
    "There are `workers - 1` rounds of each kind: a part is complete when it has met all others.",
    ROUNDS,
    "2 * workers * message",
)
costs(
    "In a round, a worker sends one part, not the whole array: `size / workers` bytes.",
    BYTES,
    "size / bandwidth",
)
costs(
    "The latency is there in every round, for every message. Put it into the bracket.",
    ("latency + ", ""),
    (ROUNDS, "latency + " + ROUNDS),
)
costs(
    "Bandwidth says how many bytes go through in a second. So divide the bytes by it: more bandwidth, less time.",
    *(BYTES, "size / workers * bandwidth"),
)
costs(
    "You divide the latency by the workers, too. It is there in every round, for each message.",
    *("latency + " + BYTES, "(latency + size / bandwidth) / workers"),
)
costs(
    "The latencies are right. But of the bytes, not `size` go out: in each of the `2 * (workers - 1)` rounds it is `size / workers`.",
    ("latency + " + BYTES, "latency"),
    (ROUNDS, ROUNDS + " + size / bandwidth"),
)
costs(
    "This is one message, with the whole array. How many rounds are there, and what does a worker send in each?",
    (BYTES, "size / bandwidth"),
    (ROUNDS, "message"),
)
costs(
    "You count each message twice. While one worker sends it, its neighbour receives it: that takes the time once.",
    *(ROUNDS, "4 * (workers - 1) * message"),
)
costs("This is the time of one round. There are twice `workers - 1` of them.", ROUNDS, "message")
costs(
    "The workers send at the same time, so a round takes as long as one message: not `workers` times as long.",
    *(ROUNDS, "2 * (workers - 1) * workers * message"),
)
costs("The bytes are all there. What is missing is the latency of each message.", "latency + ", "")
costs(WHOLE_BYTES, BYTES, "size // workers / bandwidth")
costs(WHOLE_BYTES, BYTES, "-(-size // workers) / bandwidth")


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


AROUND, BOTH = "v + (m - mean) ** 2", "return mean, average(around, sizes)"
SPREAD = "The mean is right. For the variance, the variance of the means is to be weighted, too."
NO_AXIS = "Numbers may be arrays, so say along which axis: `np.average(…, axis=0, weights=sizes)`."
together.slip(
    "Your variance is the mean of the variances. How far the shards lie apart is missing, or it has cancelled out: add the *squared* distances of the means, weighted.",
    *(AROUND, "v"),
)
together.slip(
    "Every shard counts alike here. Weigh it by its size, as `average` does.",
    ("average(means, sizes)", "sum(means) / len(means)"),
    ("average(around, sizes)", "sum(around) / len(around)"),
)
together.slip(
    "The mean is right. For the variance, shards of different sizes count alike: weigh them, too.",
    *("average(around, sizes)", "sum(around) / len(around)"),
)
together.slip(SPREAD, BOTH, "return mean, average(variances, sizes) + np.var(means, axis=0)")
together.slip(
    SPREAD,
    *(BOTH, "return mean, average(variances, sizes) + sum((m - mean) ** 2 for m in means) / len(means)"),
)
together.slip(
    NO_AXIS,
    ("average(means, sizes)", "np.average(means, weights=sizes)"),
    ("average(around, sizes)", "np.average(around, weights=sizes)"),
)
together.slip(
    "This is one array. Return the two one after the other: `return mean, variance`.",
    *(BOTH, "return np.array([mean, average(around, sizes)])"),
)
together.slip(
    "The spread of the means is not squared. A variance is a mean of *squared* distances.",
    AROUND,
    "v + abs(m - mean)",
)
together.slip(
    "You subtract the spread of the means. Seen from another place, squared distances only grow: add.",
    *(AROUND, "v - (m - mean) ** 2"),
)
together.slip(
    "You divide by one less than the number of points. Here a variance is a plain mean, as in `np.var`.",
    *("average(around, sizes)", "average(around, sizes) * sum(sizes) / (sum(sizes) - 1)"),
)
together.slip(
    "This is the mean of the squares, v + m². Subtract the square of the whole batch's mean.",
    AROUND,
    "v + m**2",
)
together.slip(
    "Your variance says how far the means lie apart, and forgets the variances in the shards.",
    AROUND,
    "(m - mean) ** 2",
)
together.slip(
    "The two are swapped: return the mean first, then the variance.",
    BOTH,
    "return average(around, sizes), mean",
)
together.slip(
    "This is the variance alone. Return both: `mean, variance`.", BOTH, "return average(around, sizes)"
)
