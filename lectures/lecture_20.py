"""Lecture 20, many machines: its exercises, the usual mistakes in them, and its predictions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

import viz
from needle import nn
from needle.autograd import Tensor
from needle.backend_ndarray.blas import one_thread
from viz.plots.look import INK, ORANGE, PALE_BLUE, PALE_GREEN, PALE_ORANGE, PAPER, QUIET
from viz.plots.sketch import Sketch

from .checking import Lecture, Names, case, kind, show, values
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
    case([7, 8], 4),
    case(list(range(12)), 4),
    otherwise="Write down which worker gets which item. Each item should go to exactly one.",
    compare=shared_out,
    use=_shares,
    form="share({}, rank, {})",
)
def share(items, rank, workers):
    """Like dealing cards: one item in each round, from item number rank on."""
    return items[rank::workers]


@share.mistake(
    "The last items go to nobody: 10 // 4 is 2, and four times 2 is 8. Let each worker take every fourth "
    "item, or let the first workers take one more."
)
def rest_forgotten(items, rank, workers):
    n = len(items) // workers
    return items[rank * n : (rank + 1) * n]


@share.mistake(
    "What is left over goes to the last worker, and the others will have to wait for it. Give one more to "
    "each of several workers instead."
)
def rest_to_the_last(items, rank, workers):
    n = len(items) // workers
    return items[rank * n : None if rank == workers - 1 else (rank + 1) * n]


@share.mistake(
    "You rounded the size up for all, so little is left for the last worker. Some should have one less, and "
    "not one worker all of the lack."
)
def rounded_up(items, rank, workers):
    n = -(-len(items) // workers)
    return items[rank * n : (rank + 1) * n]


@share.mistake("Each worker gets the same items. What each one gets depends on its `rank`.")
def the_same_for_all(items, rank, workers):
    return items[: -(-len(items) // workers)]


@share.mistake("Each worker gets the same items. What each one gets depends on its `rank`.")
def always_from_the_first(items, rank, workers):
    return items[::workers]


@share.mistake("Every worker gets all. They would all do the same work.")
def all_for_all(items, rank, workers):
    return items


@share.mistake("This is one single item. A worker gets a part of the items: `items[start::step]`, say.")
def a_single_item(items, rank, workers):
    return items[rank % len(items)]


@share.mistake("There is no such item: there are fewer items than workers. A slice may be empty.")
def no_such_item(items, rank, workers):
    if len(items) < workers:
        raise IndexError("list index out of range")
    return items[rank::workers]


@share.mistake("You begin at the item `rank` and take all that follow. Take every fourth: a step is missing.")
def without_a_step(items, rank, workers):
    return items[rank:]


@share.mistake(
    "Your parts have as many items as there are workers. There should be as many parts as workers."
)
def size_is_workers(items, rank, workers):
    return items[rank * workers : (rank + 1) * workers]


@share.mistake("`rank` is your step, but it says where a worker starts. The step is `workers`.")
def start_and_step_swapped(items, rank, workers):
    return items[workers::rank]


@share.mistake(
    "`items[a:b]` goes from a up to b. For steps of `workers` there are two colons: `items[start::step]`."
)
def one_colon(items, rank, workers):
    return items[rank:workers]


@share.mistake("Ranks begin at 0, so worker 0 begins with item 0. You begin one item earlier.")
def one_too_early(items, rank, workers):
    return items[rank - 1 :: workers]


@share.mistake("You count with four workers. There may be more or fewer: `workers` says how many.")
def always_four(items, rank, workers):
    return items[rank::4]


@share.mistake("A slice needs whole numbers, and `/` gives a float. Divide with `//`, and mind the rest.")
def floats(items, rank, workers):
    n: Any = len(items) / workers
    return items[rank * n : (rank + 1) * n]


@share.mistake(
    "The parts are lists, but the items came in an array. Cut it with a slice, and each part is an array, "
    "too."
)
def as_lists(items, rank, workers):
    return list(items[rank::workers])


# --- 2 The mean of a batch from those of its parts ----------------------------------------------------------

to_the_last_digits = partial(values, tolerance=1e-12)  # of float64: float32 has seven
ROUNDED = "The numbers are right to seven digits only: somewhere you turn them into float32. Keep their type."


@lecture.exercise(
    case([np.array([1.0, 2.0]), np.array([5.0, 6.0])], [3, 1]),
    case([np.array([6.0]), np.array([2.0]), np.array([0.0]), np.array([-4.0])], [3, 3, 2, 2]),
    case([np.array([[1.0, 0.0], [2.0, 4.0]]), np.array([[3.0, 3.0], [0.0, 1.0]])], [2, 2]),
    otherwise="Each mean stands for as many points as its size says. How large is the sum over all points?",
    compare=to_the_last_digits,
)
def average(gradients, sizes):
    """The weighted mean."""
    return sum(size * gradient for size, gradient in zip(sizes, gradients, strict=True)) / sum(sizes)


@average.mistake(
    "This is the mean of the means, and it counts every part alike. A mean over 3 points should count three "
    "times as much as a mean over 1."
)
def plain_mean(gradients, sizes):
    return sum(gradients) / len(gradients)


@average.mistake("This is the sum over all points. Divide it by the number of all points: `sum(sizes)`.")
def undivided(gradients, sizes):
    return sum(size * gradient for size, gradient in zip(sizes, gradients, strict=True))


@average.mistake(
    "The sum over all points is right. Divide it by the number of points, `sum(sizes)`, not of workers."
)
def divided_by_workers(gradients, sizes):
    return undivided(gradients, sizes) / len(sizes)


@average.mistake("This adds the means. How many points does each of them stand for?")
def added(gradients, sizes):
    return sum(gradients)


@average.mistake("You divide each mean by its size. A mean of more points should count more: multiply.")
def divided_by_size(gradients, sizes):
    return sum(gradient / size for size, gradient in zip(sizes, gradients, strict=True))


@average.mistake("Everything became one number. Average over the workers only, place by place: axis 0.")
def one_number(gradients, sizes):
    return float(np.mean(gradients))


@average.mistake("Everything became one number. Average over the workers only, place by place: axis 0.")
def one_weighted_number(gradients, sizes):
    return float(np.mean(average.right(gradients, sizes)))


@average.mistake(
    "You divide by the number of all points, but have not multiplied each mean by its own size before."
)
def not_multiplied(gradients, sizes):
    return sum(gradients) / sum(sizes)


@average.mistake(
    "`sizes` is a list, and a list cannot be multiplied place by place. Go through both lists together, with "
    "`zip`."
)
def lists_multiplied(gradients, sizes):
    return sum(gradients * sizes) / sum(sizes)


@average.mistake("Say along which axis: `axis=0` goes over the workers, and leaves the shape as it is.")
def no_axis(gradients, sizes):
    return np.average(gradients, weights=sizes)


@average.mistake("Everything was added up to one number. Average over the workers only: axis 0.")
def summed_to_one(gradients, sizes):
    return float(np.sum(average.right(gradients, sizes)))


@average.mistake(
    "`@` and `np.dot` sum over the axis before the last, and that is the workers' only if gradients are "
    "rows. Theirs is axis 0: `np.average(…, axis=0, weights=…)`, or a sum with `zip`."
)
def matrix_product(gradients, sizes):
    return np.array(sizes) / sum(sizes) @ np.array(gradients)


@average.mistake(
    "`gradients, sizes` are two lists, one after the other. `zip(gradients, sizes)` gives you pairs of a "
    "gradient and its size."
)
def without_zip(gradients, sizes):
    total = 0
    for gradient, size in gradients, sizes:
        total = total + gradient * size
    return total / sum(sizes)


@average.mistake(
    "`sizes` is broadcast along the last axis (lecture 11), so it multiplies columns, not workers. Multiply "
    "each gradient by its own size."
)
def broadcast_sizes(gradients, sizes):
    return (np.array(gradients) * sizes).sum(axis=0) / sum(sizes)


@average.mistake(ROUNDED)
def in_float32(gradients, sizes):
    return average.right(gradients, sizes).astype("float32")


@average.mistake("The numbers are right, but in a list. Return an array: add up arrays, not their numbers.")
def in_a_list(gradients, sizes):
    return average.right(gradients, sizes).tolist()


@average.mistake("There need not be four workers. Go through both lists together, with `zip`.")
def for_four_workers(gradients, sizes):
    a, b, c, d = gradients
    return average.right([a, b, c, d], sizes)


# --- 3 Which part goes on -----------------------------------------------------------------------------------

MODULO = "Past the end, count from the other end: take the number modulo `workers`, with `%`."
FOUR = "You count with four workers. There may be more or fewer: take the number modulo `workers`."
NEGATIVE = (
    "As an index of a list this happens to work, since Python counts negative ones from the end. But a "
    "part's number is 0 or more: take it modulo `workers`."
)


@lecture.exercise(
    case(2, 0, 4),
    case(2, 1, 4),
    case(3, 2, 4),
    case(0, 1, 4),
    case(1, 3, 5),
    otherwise="In round 0, worker k sends part k. Drag `step` to 1: what has just come to worker 2? It sends "
    "that next.",
)
def to_add(rank, r, workers):
    """Which part goes on in a round of adding."""
    return (rank - r) % workers


@to_add.mistake(
    "Each worker sends its own part in every round. But from round 1 on it sends what has just come, and was "
    "added to."
)
def always_its_own(rank, r, workers):
    return rank


@to_add.mistake("You count up. What comes to worker 2 in round 0 is part 1, the one *before* its own.")
def upward(rank, r, workers):
    return (rank + r) % workers


@to_add.mistake(NEGATIVE)
def below_zero(rank, r, workers):
    return rank - r


@to_add.mistake("You are one round ahead: in round 0, worker k sends its own part, k.")
def one_ahead(rank, r, workers):
    return (rank - 1 - r) % workers


@to_add.mistake(
    "In round 0, worker k sends its own part, k. You begin with the part after it, which is the rule for "
    "handing on."
)
def one_too_many(rank, r, workers):
    return (rank + 1 - r) % workers


@to_add.mistake(FOUR)
def modulo_four(rank, r, workers):
    return (rank - r) % 4


@to_add.mistake("Below zero you drop the sign. Before part 0 comes the last part: take it modulo `workers`.")
def without_the_sign(rank, r, workers):
    return abs(rank - r)


@to_add.mistake("All workers send the same part here. It depends on `rank`, too.")
def by_the_round(rank, r, workers):
    return r


@lecture.exercise(
    case(2, 0, 4),
    case(2, 1, 4),
    case(3, 0, 4),
    case(0, 2, 4),
    case(1, 3, 5),
    otherwise="Drag `step` to 3: which part is complete at worker 2? It hands that one on in round 0.",
)
def to_hand_on(rank, r, workers):
    """Which part goes on in a round of handing on."""
    return (rank + 1 - r) % workers


@to_hand_on.mistake(
    "That is the rule of the adding rounds. Now the first part to hand on is the one that is complete: after "
    "adding, worker 2 has part 3 complete."
)
def as_in_adding(rank, r, workers):
    return (rank - r) % workers


@to_hand_on.mistake("Each worker hands on the same part in every round. In round 1 it is the part that came.")
def always_the_same(rank, r, workers):
    return (rank + 1) % workers


@to_hand_on.mistake("You count up. What comes from the left is the part *before*: one less in each round.")
def counting_up(rank, r, workers):
    return (rank + 1 + r) % workers


@to_hand_on.mistake(FOUR)
def around_four(rank, r, workers):
    return (rank + 1 - r) % 4


@to_hand_on.mistake(MODULO)
def not_around(rank, r, workers):
    return rank + 1 - r


@to_hand_on.mistake(
    "You are one too low from the start: that part is not complete at this worker, it is complete two "
    "further to the left."
)
def too_low(rank, r, workers):
    return (rank - 1 - r) % workers


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


def _rings(answer: Callable, arrays: np.ndarray) -> Any:
    workers = Threads(len(arrays))
    totals = workers.run(answer, list(arrays))
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


NOT_HANDED_ON = (
    "Each worker has one complete part, and that is half of the work. In as many rounds again, the complete "
    "parts are handed on, and each is put into its place."
)


def _arrays(workers: int, numbers: int) -> np.ndarray:
    return np.stack([10.0**rank * np.arange(1, numbers + 1) for rank in range(workers)])


@lecture.exercise(
    case(_arrays(4, 8)),
    case(_arrays(4, 6)),
    case(_arrays(3, 7) / 10),
    case(_arrays(2, 4)),
    case(_arrays(5, 3)),
    case(_arrays(1, 3)),
    otherwise="Follow one part, say part 0, from worker to worker, and compare with the picture step by "
    "step.",
    compare=_around,
    use=_rings,
    form="ring_all_reduce(worker, numbers), where each worker has a row of {},",
)
def ring_all_reduce(worker, numbers):
    """The sum of all workers' numbers, on every worker."""
    parts = np.array_split(numbers.copy(), worker.size)
    right, left = (worker.rank + 1) % worker.size, (worker.rank - 1) % worker.size
    for r in range(worker.size - 1):
        worker.send(parts[to_add.right(worker.rank, r, worker.size)], right)
        parts[to_add.right(left, r, worker.size)] += worker.receive(left)
    for r in range(worker.size - 1):
        worker.send(parts[to_hand_on.right(worker.rank, r, worker.size)], right)
        parts[to_hand_on.right(left, r, worker.size)] = worker.receive(left)
    return np.concatenate(parts)


def _going_round(worker, parts, which, join, rounds=None, to=1, source=-1, own=False, turned=False):
    """Some rounds of the ring, as the mistakes make them."""
    n, rank = worker.size, worker.rank
    if turned:
        to, source = -to, -source
    for r in range(n - 1 if rounds is None else rounds):
        worker.send(parts[which.right(rank, r, n)], (rank + to) % n)
        place = which.right(rank if own else (rank + (1 if turned else -1)) % n, r, n)
        parts[place] = join(parts[place], worker.receive((rank + source) % n))


def _sum(mine, came):
    return mine + came


def _taken(mine, came):
    return came


def _ring(worker, numbers, adding=_sum, handing=_taken, **options):
    parts = np.array_split(numbers, worker.size)
    _going_round(worker, parts, to_add, adding, **options)
    _going_round(worker, parts, to_hand_on, handing, **options)
    return parts


@ring_all_reduce.mistake(NOT_HANDED_ON)
def not_handed_on(worker, numbers):
    parts = np.array_split(numbers, worker.size)
    _going_round(worker, parts, to_add, _sum)
    return np.concatenate(parts)


@ring_all_reduce.mistake(
    "In the adding rounds, what comes replaces what was there. Add it: `+=`, so that both are in the part."
)
def replaced_not_added(worker, numbers):
    return np.concatenate(_ring(worker, numbers, adding=_taken))


@ring_all_reduce.mistake(
    "In the last rounds, complete parts come, and you add them to what is there. Put them in its place: `=`."
)
def added_again(worker, numbers):
    return np.concatenate(_ring(worker, numbers, handing=_sum))


@ring_all_reduce.mistake(
    "The totals are right, but whole arrays go around. Then each worker sends as much again for every worker "
    "more. Send one part in each round."
)
def whole_arrays(worker, numbers):
    total, passing = numbers.copy(), numbers
    for _ in range(worker.size - 1):
        worker.send(passing, (worker.rank + 1) % worker.size)
        passing = worker.receive((worker.rank - 1) % worker.size)
        total = total + passing
    return total


@ring_all_reduce.mistake(
    "A worker waits for a message that nobody sends, and in the end all wait: a deadlock. In each round, "
    "every worker sends first, and then receives."
)
def receives_first(worker, numbers):
    worker.receive((worker.rank - 1) % worker.size)


@ring_all_reduce.mistake(
    "You receive from the neighbour to whom you send. Send to the right, and receive from the left."
)
def receives_from_the_right(worker, numbers):
    return np.concatenate(_ring(worker, numbers, source=1))


@ring_all_reduce.mistake(
    "The last worker has no worker after it, so the ring is not closed. After the last comes worker 0: `% "
    "worker.size`."
)
def not_closed(worker, numbers):
    worker.send(numbers[:1], worker.rank + 1)
    worker.receive((worker.rank - 1) % worker.size)


@ring_all_reduce.mistake(
    "Worker 0 has no worker −1 at its left, so the ring is not closed. Before the first comes the last: `% "
    "worker.size`."
)
def not_closed_at_the_left(worker, numbers):
    worker.send(numbers[:1], (worker.rank + 1) % worker.size)
    worker.receive(worker.rank - 1)


@ring_all_reduce.mistake(
    "One round of adding too many: what comes in round `worker.size - 1` has your own numbers in it already."
)
def one_round_too_many(worker, numbers):
    parts = np.array_split(numbers, worker.size)
    _going_round(worker, parts, to_add, _sum, rounds=worker.size)
    _going_round(worker, parts, to_hand_on, _taken)
    return np.concatenate(parts)


@ring_all_reduce.mistake(
    "One round too many of both kinds: `worker.size - 1` rounds are enough, since you have your own part."
)
def one_round_too_many_of_both(worker, numbers):
    return np.concatenate(_ring(worker, numbers, rounds=worker.size))


@ring_all_reduce.mistake(
    "One round is missing: with four workers, a part has to be handed over three times until it is complete."
)
def one_round_missing(worker, numbers):
    return np.concatenate(_ring(worker, numbers, rounds=worker.size - 2))


WRONG_PLACE = (
    "What comes is put into the place of the part that you have just sent. It is the part that your *left* "
    "neighbour sent in this round: ask `{}(left, …)`."
)


@ring_all_reduce.mistake(WRONG_PLACE.format("adding"))
def in_the_wrong_place(worker, numbers):
    return np.concatenate(_ring(worker, numbers, own=True))


@ring_all_reduce.mistake(WRONG_PLACE.format("adding"))
def added_in_the_wrong_place(worker, numbers):
    parts = np.array_split(numbers, worker.size)
    _going_round(worker, parts, to_add, _sum, own=True)
    _going_round(worker, parts, to_hand_on, _taken)
    return np.concatenate(parts)


@ring_all_reduce.mistake(WRONG_PLACE.format("handing_on"))
def put_in_the_wrong_place(worker, numbers):
    parts = np.array_split(numbers, worker.size)
    _going_round(worker, parts, to_add, _sum)
    _going_round(worker, parts, to_hand_on, _taken, own=True)
    return np.concatenate(parts)


@ring_all_reduce.mistake(
    "You send all parts before anything has come. From round 1 on, a worker sends what it has just received "
    "and added to: so send and receive in the same round."
)
def all_sent_first(worker, numbers):
    n, rank = worker.size, worker.rank
    parts = np.array_split(numbers, n)
    for which, join in (to_add, _sum), (to_hand_on, _taken):
        for r in range(n - 1):
            worker.send(parts[which.right(rank, r, n)], (rank + 1) % n)
        for r in range(n - 1):
            place = which.right((rank - 1) % n, r, n)
            parts[place] = join(parts[place], worker.receive((rank - 1) % n))
    return np.concatenate(parts)


@ring_all_reduce.mistake(
    "You count with four workers. There may be more or fewer: `worker.size` says how many."
)
def always_four_workers(worker, numbers):
    if worker.size > worker.rank + 1:
        worker.send(numbers[:1], worker.rank + 1)
    worker.receive((worker.rank - 1) % 4)
    return numbers.copy()


@ring_all_reduce.mistake(
    "You count with four workers. There may be more or fewer: `worker.size` says how many."
)
def always_three_rounds(worker, numbers):
    return np.concatenate(_ring(worker, numbers, rounds=3))


NOT_A_MULTIPLE = (
    "The numbers need not divide into parts of equal length. `np.array_split` makes some parts one longer."
)


@ring_all_reduce.mistake(NOT_A_MULTIPLE)
def equal_parts(worker, numbers):
    np.split(numbers, worker.size)
    return ring_all_reduce.right(worker, numbers)


@ring_all_reduce.mistake(NOT_A_MULTIPLE)
def reshaped(worker, numbers):
    numbers.reshape(worker.size, -1)
    return ring_all_reduce.right(worker, numbers)


@ring_all_reduce.mistake(
    "The last numbers are in no part: you round the length of a part down. `np.array_split` leaves none out."
)
def rest_left_out(worker, numbers):
    return ring_all_reduce.right(worker, numbers[: len(numbers) // worker.size * worker.size])


@ring_all_reduce.mistake(ROUNDED)
def rounded_on_the_way(worker, numbers):
    return np.concatenate(_ring(worker, numbers.astype("float32")))


@ring_all_reduce.mistake(
    "One worker alone has no neighbour, and needs no round: its own numbers are the total."
)
def alone_as_well(worker, numbers):
    if worker.size > 1:
        return ring_all_reduce.right(worker, numbers)
    worker.send(numbers, 0)
    return numbers + worker.receive(0)


@ring_all_reduce.mistake(
    "Your workers look into each other's memory. That works with threads on one machine, and nowhere else: "
    "use `send` and `receive`."
)
def through_memory(worker, numbers):
    send: Any = worker.send
    seen = vars(send.func.__self__).setdefault("seen", {})
    seen[worker.rank] = numbers
    while len(seen) < worker.size:
        time.sleep(0.001)
    return sum(seen[rank] for rank in range(worker.size))


@ring_all_reduce.mistake("You return a list of parts. Put them together again: `np.concatenate(parts)`.")
def left_in_parts(worker, numbers):
    return _ring(worker, numbers)


@ring_all_reduce.mistake("This is the mean. What is asked for is the total: nothing is divided here.")
def mean_of_all(worker, numbers):
    return np.concatenate(_ring(worker, numbers)) / worker.size


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
    "The totals are right, but each worker sends to all others. In a ring it talks to its right neighbour "
    "only."
)
def each_to_all(worker, numbers):
    others = [rank for rank in range(worker.size) if rank != worker.rank]
    for rank in others:
        worker.send(numbers, rank)
    return numbers + sum(worker.receive(rank) for rank in others)


@ring_all_reduce.mistake("You give back your own numbers. Put what you have added up into the result.")
def own_numbers(worker, numbers):
    return numbers.copy()


@ring_all_reduce.mistake(
    "These are your own parts, in a list. Let them go around: two loops of rounds are missing."
)
def parts_alone(worker, numbers):
    return np.array_split(numbers, worker.size)


@ring_all_reduce.mistake("You send the *number* of the part. Send the part itself: `parts[adding(…)]`.")
def number_of_the_part(worker, numbers):
    parts = np.array_split(numbers.copy(), worker.size)
    for r in range(worker.size - 1):
        worker.send(to_add.right(worker.rank, r, worker.size), (worker.rank + 1) % worker.size)
        left = (worker.rank - 1) % worker.size
        parts[to_add.right(left, r, worker.size)] += worker.receive(left)
    return np.concatenate(parts)


@ring_all_reduce.mistake("First what you send, then to whom: `worker.send(part, right)`.")
def whom_first(worker, numbers):
    to: Any = numbers
    worker.send(worker.rank, to)


@ring_all_reduce.mistake("Say to whom: `worker.send(part, right)`.")
def to_nobody(worker, numbers):
    send: Any = worker.send
    send(numbers)


@ring_all_reduce.mistake("Say from whom: `worker.receive(left)`.")
def from_nobody(worker, numbers):
    worker.send(numbers[:1], (worker.rank + 1) % worker.size)
    receive: Any = worker.receive
    receive()


@ring_all_reduce.mistake(NOT_HANDED_ON)
def thrown_away(worker, numbers):
    return np.concatenate(_ring(worker, numbers, handing=lambda mine, came: mine))


TO_THE_LEFT = (
    "You send to the left. Then other parts come than `adding` and `handing_on` say: send to the right, and "
    "receive from the left."
)


@ring_all_reduce.mistake(TO_THE_LEFT)
def the_other_way(worker, numbers):
    return np.concatenate(_ring(worker, numbers, turned=True))


@ring_all_reduce.mistake(TO_THE_LEFT)
def left_for_right(worker, numbers):
    return np.concatenate(_ring(worker, numbers, to=-1, source=1))


@ring_all_reduce.mistake("In the last rounds, other parts go on than while adding: use `handing_on`.")
def adding_twice(worker, numbers):
    parts = np.array_split(numbers, worker.size)
    _going_round(worker, parts, to_add, _sum)
    _going_round(worker, parts, to_add, _taken)
    return np.concatenate(parts)


# --- 5 What it costs ----------------------------------------------------------------------------------------


@lecture.exercise(
    case(3, 900, 1.0, 100.0),
    case(4, 1000, 1.0, 500.0),
    case(10, 1000, 0.0, 100.0),
    case(5, 0, 2.0, 100.0),
    case(1, 1000, 1.0, 500.0),
    case(8, 100, 0.0, 1.0),
    otherwise="How many rounds are there? In each, one part is sent: how many bytes, and how many seconds?",
)
def seconds(workers, size, latency, bandwidth):
    """The time of a ring."""
    return 2 * (workers - 1) * (latency + size / workers / bandwidth)


@seconds.mistake(
    "You count the rounds of adding alone. There are as many of handing on: twice `workers - 1`."
)
def adding_alone(workers, size, latency, bandwidth):
    return (workers - 1) * (latency + size / workers / bandwidth)


@seconds.mistake(
    "There are `workers - 1` rounds of each kind: a part is complete when it has met all others."
)
def as_many_rounds_as_workers(workers, size, latency, bandwidth):
    return 2 * workers * (latency + size / workers / bandwidth)


@seconds.mistake("In a round, a worker sends one part, not the whole array: `size / workers` bytes.")
def whole_array_in_each_round(workers, size, latency, bandwidth):
    return 2 * (workers - 1) * (latency + size / bandwidth)


@seconds.mistake("The latency is there in every round, for every message. Put it into the bracket.")
def one_latency(workers, size, latency, bandwidth):
    return latency + 2 * (workers - 1) * size / workers / bandwidth


@seconds.mistake(
    "Bandwidth says how many bytes go through in a second. So divide the bytes by it: more bandwidth, less "
    "time."
)
def multiplied_by_bandwidth(workers, size, latency, bandwidth):
    return 2 * (workers - 1) * (latency + size / workers * bandwidth)


@seconds.mistake("You divide the latency by the workers, too. It is there in every round, for each message.")
def latency_shared(workers, size, latency, bandwidth):
    return 2 * (workers - 1) / workers * (latency + size / bandwidth)


@seconds.mistake(
    "The latencies are right. But of the bytes, not `size` go out: in each of the `2 * (workers - 1)` rounds "
    "it is `size / workers`."
)
def bytes_once(workers, size, latency, bandwidth):
    return 2 * (workers - 1) * latency + size / bandwidth


@seconds.mistake(
    "This is one message, with the whole array. How many rounds are there, and what does a worker send in "
    "each?"
)
def one_large_message(workers, size, latency, bandwidth):
    return latency + size / bandwidth


@seconds.mistake(
    "You count each message twice. While one worker sends it, its neighbour receives it: that takes the time "
    "once."
)
def sent_and_received(workers, size, latency, bandwidth):
    return 4 * (workers - 1) * (latency + size / workers / bandwidth)


@seconds.mistake("This is the time of one round. There are twice `workers - 1` of them.")
def one_round(workers, size, latency, bandwidth):
    return latency + size / workers / bandwidth


@seconds.mistake(
    "The workers send at the same time, so a round takes as long as one message: not `workers` times as long."
)
def one_after_the_other(workers, size, latency, bandwidth):
    return 2 * (workers - 1) * workers * (latency + size / workers / bandwidth)


@seconds.mistake("The bytes are all there. What is missing is the latency of each message.")
def no_latency(workers, size, latency, bandwidth):
    return 2 * (workers - 1) * size / workers / bandwidth


WHOLE_BYTES = "You round a part to whole bytes. Take exactly one n-th of the array, `size / workers`."


@seconds.mistake(WHOLE_BYTES)
def rounded_down(workers, size, latency, bandwidth):
    return 2 * (workers - 1) * (latency + size // workers / bandwidth)


@seconds.mistake(WHOLE_BYTES)
def rounded_up_to_bytes(workers, size, latency, bandwidth):
    return 2 * (workers - 1) * (latency + -(-size // workers) / bandwidth)


# --- 6 The variance of a batch ------------------------------------------------------------------------------


@lecture.exercise(
    case([1.0, 5.0], [2.0, 2.0], [4, 4]),
    case([1.0, 5.0], [2.0, 6.0], [3, 1]),
    case([np.array([0.0, 1.0]), np.array([6.0, 1.0])], [np.array([1.0, 2.0]), np.array([4.0, 5.0])], [2, 1]),
    case([3.0, 3.0, 3.0], [1.0, 2.0, 6.0], [1, 1, 2]),
    otherwise="Take two shards of two numbers, such as 0, 2 and 10, 12, and compute all of it by hand.",
)
def together(means, variances, sizes):
    """The mean and the variance of the whole batch."""
    mean = average.right(means, sizes)
    return mean, average.right([v + (m - mean) ** 2 for m, v in zip(means, variances, strict=True)], sizes)


def _mean(xs):
    return sum(xs) / len(xs)


@together.mistake(
    "Your variance is the mean of the variances. How far the shards lie apart is missing, or it has "
    "cancelled out: add the *squared* distances of the means, weighted."
)
def variances_alone(means, variances, sizes):
    return average.right(means, sizes), average.right(variances, sizes)


@together.mistake("Every shard counts alike here. Weigh it by its size, as `average` does.")
def all_alike(means, variances, sizes):
    mean = _mean(means)
    return mean, _mean([v + (m - mean) ** 2 for m, v in zip(means, variances, strict=True)])


@together.mistake(
    "The mean is right. For the variance, shards of different sizes count alike: weigh them, too."
)
def variance_unweighted(means, variances, sizes):
    mean = average.right(means, sizes)
    return mean, _mean([v + (m - mean) ** 2 for m, v in zip(means, variances, strict=True)])


@together.mistake("The mean is right. For the variance, the variance of the means is to be weighted, too.")
def spread_unweighted(means, variances, sizes):
    mean = average.right(means, sizes)
    return mean, average.right(variances, sizes) + _mean([(m - mean) ** 2 for m in means])


@together.mistake("The mean is right. For the variance, the variance of the means is to be weighted, too.")
def numpys_variance_of_means(means, variances, sizes):
    return average.right(means, sizes), average.right(variances, sizes) + np.var(means, axis=0)


@together.mistake("Numbers may be arrays, so say along which axis: `np.average(…, axis=0, weights=sizes)`.")
def no_axis_given(means, variances, sizes):
    mean = np.average(means, weights=sizes)
    variance = np.average(variances, weights=sizes)
    return mean, variance + np.average((np.array(means) - mean) ** 2, weights=sizes)


@together.mistake("Numbers may be arrays, so say along which axis: `np.average(…, axis=0, weights=sizes)`.")
def sum_of_everything(means, variances, sizes):
    m, v, n = map(np.array, (means, variances, sizes))
    mean = (m * n).sum() / n.sum()
    return mean, ((v + (m - mean) ** 2) * n).sum() / n.sum()


@together.mistake("This is one array. Return the two one after the other: `return mean, variance`.")
def in_one_array(means, variances, sizes):
    return np.array(together.right(means, variances, sizes))


@together.mistake("The spread of the means is not squared. A variance is a mean of *squared* distances.")
def not_squared(means, variances, sizes):
    mean = average.right(means, sizes)
    return mean, average.right([v + abs(m - mean) for m, v in zip(means, variances, strict=True)], sizes)


@together.mistake(
    "You subtract the spread of the means. Seen from another place, squared distances only grow: add."
)
def subtracted(means, variances, sizes):
    mean = average.right(means, sizes)
    return mean, average.right([v - (m - mean) ** 2 for m, v in zip(means, variances, strict=True)], sizes)


@together.mistake(
    "You divide by one less than the number of points. Here a variance is a plain mean, as in `np.var`."
)
def one_less(means, variances, sizes):
    mean, variance = together.right(means, variances, sizes)
    return mean, variance * sum(sizes) / (sum(sizes) - 1)


@together.mistake("This is the mean of the squares, v + m². Subtract the square of the whole batch's mean.")
def mean_of_squares(means, variances, sizes):
    mean = average.right(means, sizes)
    return mean, average.right([v + m**2 for m, v in zip(means, variances, strict=True)], sizes)


@together.mistake("Your variance says how far the means lie apart, and forgets the variances in the shards.")
def spread_alone(means, variances, sizes):
    mean = average.right(means, sizes)
    return mean, average.right([(m - mean) ** 2 for m in means], sizes)


@together.mistake("The two are swapped: return the mean first, then the variance.")
def swapped(means, variances, sizes):
    return together.right(means, variances, sizes)[::-1]


@together.mistake("This is the variance alone. Return both: `mean, variance`.")
def variance_only(means, variances, sizes):
    return together.right(means, variances, sizes)[1]
