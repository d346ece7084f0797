"""Schedule: which loops run together, and where each number lives.

`lower.py` gives every statement loops of its own. If they ran one after the other, each would write its whole
result to memory, and the next would read it back. Here loops that run along the same axis are fused.
Take the five nests of ``relu(x @ W + b)``, whose outermost loops run over the batch:

    for i in range(10):
        for j in range(8):         matmul1[j] = 0
        for j in range(2):
            for k in range(8):     matmul1[k] += x[2 i + j] * W[8 j + k]
        for j in range(8):         add1 = matmul1[j] + b[j];  relu1 = relu(add1);  result[8 i + j] = relu1

First `simplify.cut` cuts the loop over 80 numbers into (10, 8), so that all nests are in step. Then two loops
may be fused if, in each shared buffer, iteration i of one loop touches the same elements as iteration i of
the other, and no other iteration touches them. Then the later statement reads only elements that are already
written, and overwrites none that are still to be read. This is so if both loops move through each shared
buffer by the same stride (`_in_step`). The sum over j cannot be fused with the statements after it, because
its total is known only when its loop is done. The innermost loop of a nest should move through memory from
neighbour to neighbour, so it is chosen last; hence the statement that sets `matmul1` to 0 keeps its own loop.

Once loops are joined, storage shrinks (`_contract`). `matmul1` is written and read within one iteration of i,
so it needs 8 numbers and not 80. `add1` and `relu1` live within one iteration of j as well, so they are plain
variables.
"""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .lower import Access, Buffer, Call, Nest, Shape
from .simplify import cut

__all__ = ["Loop", "LoopSchedule", "nests_in", "schedule"]


class Loop:
    """A loop, and its body: loops, and nests whose loops are all scheduled.

    Attributes
    ----------
    length : int
    body : list of Loop or Nest
    is_parallel : bool
        For a GPU: whether different threads can run its iterations, because no iteration depends on another.
    """

    def __init__(self, length: int, is_parallel: bool = False):
        self.length = length
        self.body: list[Any] = []
        self.is_parallel = is_parallel

    def nests(self) -> Iterator[Nest]:
        """All nests in it, in order."""
        yield from nests_in(self.body)


def nests_in(parts: Iterable[Any]) -> Iterator[Nest]:
    """All nests in parts of a schedule, in order."""
    for part in parts:
        if isinstance(part, Loop):
            yield from nests_in(part.body)
        else:
            yield part


# Fuse


def _alone(x: Access, axis: int, shape: Shape) -> bool:
    """Whether each iteration of loop `axis` accesses elements that no other iteration accesses."""
    stride, n = x.strides[axis], shape[axis]
    if stride <= 0 or (x.via is not None and axis_moves_index(x, axis)):
        return False
    below = x.offset % stride
    for i, (length, step) in enumerate(zip(shape, x.strides, strict=True)):
        if i == axis or not step:
            continue
        if step < 0:
            return False
        if step < stride:
            below += (length - 1) * step
        elif step % (stride * n):
            return False
    if x.via is not None and (x.step < stride or x.step % (stride * n)):
        return False  # the range of the index is not known
    return below < stride and x.offset // stride % n == 0


def axis_moves_index(x: Access, axis: int) -> bool:
    """Whether the loop `axis` changes the index of an indirect access."""
    return x.via is not None and x.via.strides[axis] != 0


def _in_step(a: Access, a_axis: int, a_shape: Shape, b: Access, b_axis: int, b_shape: Shape) -> bool:
    """Whether iteration i of two loops accesses the same elements of a buffer, and no other one does."""
    return (
        a.strides[a_axis] == b.strides[b_axis]
        and a_shape[a_axis] == b_shape[b_axis]
        and _alone(a, a_axis, a_shape)
        and _alone(b, b_axis, b_shape)
    )


class _Work:
    """A nest that is being scheduled, with the axes whose loops are not placed yet (`left`)."""

    def __init__(self, nest: Nest):
        self.nest = nest
        self.left = list(range(len(nest.shape) - (3 if nest.product else 0)))
        self.loops: dict[int, Loop] = {}
        self.before: dict[_Work, list[tuple[Access, Access]]] = {}  # what it depends on

    def innermost(self) -> int | None:
        """The axis that is best as the innermost loop: the one along which most accesses have stride 1."""

        def score(axis: int) -> tuple[int, int]:
            points = 0
            for x in self.nest.accesses:
                step = x.strides[axis]
                points += (step == 1) - (abs(step) > 1)
                if axis_moves_index(x, axis):
                    points -= 2
            return points, axis

        return max(self.left, key=score) if self.left else None

    @property
    def is_product(self) -> bool:
        """Whether the nest is a matrix product, written as loops."""
        return self.nest.function == "multiply" and self.nest.fold == "add"

    def is_parallel(self, axis: int) -> bool:
        """Whether each iteration of a loop writes its own elements. A check writes nothing."""
        return self.nest.is_check or _alone(self.nest.out, axis, self.nest.shape)

    def fits(self, axis: int, others: Iterable[tuple[_Work, int]]) -> bool:
        """Whether its loop `axis` may be fused with these loops of other nests."""
        for other, other_axis in others:
            for there, here in self.before.get(other, ()):
                if not _in_step(there, other_axis, other.nest.shape, here, axis, self.nest.shape):
                    return False
        return True


class _Group:
    """Nests that share one loop, or a single nest without a loop. Only loops of its `kind` can join."""

    def __init__(self, kind: Any, length: int | None, is_parallel: bool = False):
        self.kind = kind
        self.length = length
        self.is_parallel = is_parallel
        self.members: list[tuple[_Work, int]] = []


def _depend(works: list[_Work]) -> None:
    """Find on which earlier nests each one depends: they write what it reads, or use what it writes."""
    readers: dict[Buffer, list] = defaultdict(list)
    writers: dict[Buffer, list] = defaultdict(list)
    checks: list[_Work] = []
    for work in works:
        nest = work.nest
        for x in nest.sources:
            for other, there in writers[x.buffer]:
                work.before.setdefault(other, []).append((there, x))
        out = nest.out
        for other, there in readers[out.buffer] + writers[out.buffer]:
            if other is not work:
                work.before.setdefault(other, []).append((there, out))
        follows_index = any(x.via is not None for x in nest.accesses)
        if not out.buffer.is_ours or follows_index:
            for check in checks:  # memory of the caller must not change before all checks have passed
                work.before.setdefault(check, []).append((check.nest.out, out))
        for x in nest.sources:
            readers[x.buffer].append((work, x))
        writers[out.buffer].append((work, out))
        if nest.is_check:
            checks.append(work)


def _just_in_time(works: list[_Work]) -> list[_Work]:
    """Order the nests so that each comes right before its first consumer: distant nests cannot be fused."""
    ordered: dict[_Work, None] = {}
    number = {work: i for i, work in enumerate(works)}
    stack = [work for work in reversed(works) if not work.nest.out.buffer.is_ours or work.nest.is_check]
    seen: set[_Work] = set()
    while stack:
        work = stack[-1]
        if work in ordered:
            stack.pop()
        elif work in seen:
            ordered[stack.pop()] = None
        else:
            seen.add(work)
            # A nest without dependences, such as an initial 0, comes last, right before its consumer.
            needed = sorted(work.before, key=lambda other: (not other.before, number[other]))
            stack.extend(other for other in reversed(needed) if other not in ordered)
    ordered.update(dict.fromkeys(works))  # nests whose results only calls read
    return list(ordered)


#: If more nests than this would share a loop, matrix products get loops of their own.
_TOGETHER = 100


def _fuse(
    works: list[_Work], on_gpu: bool = False, in_thread: bool = False, apart: bool = False
) -> list[Any]:
    """Fuse loops, the outermost first, and then the loops inside each fused loop in the same way.

    Two nests can share a loop only if none of those between them needs the first and is needed by the second.
    So some nests are moved to the front first: initial values, and nests outside the largest loop whose
    results it needs (`_needed_first`).

    Parameters
    ----------
    works : list of _Work
    on_gpu : bool
        Make parallel loops the outermost ones, and fuse no loop into them that is not parallel.
    in_thread : bool
        Whether these nests are already inside a parallel loop, so that one thread computes them.
    apart : bool
        Whether matrix products stay unfused. In a long recurrent network, the code between two products then
        repeats from step to step, and `codegen.py` writes it once as a function. Fused, it would be one loop
        of a thousand lines, which Numba compiles for half a minute.
    """
    kinds = _kinds(works)
    sizes: Counter = Counter()  # how much is computed in loops of each kind
    for work in works:
        for axis in work.left:
            sizes[kinds[work, axis]] += math.prod(work.nest.shape)
    groups: list[_Group] = []
    place: dict[_Work, int] = {}
    if sizes:
        common = max(sizes, key=sizes.__getitem__)
        works = _needed_first(works, {work for work in works for a in work.left if kinds[work, a] is common})
    if not on_gpu or in_thread:
        # Initial values of totals come first, so that they do not stand between loops that may be joined.
        works = sorted(works, key=lambda work: bool(work.left or work.before))
    for work in works:
        axes, is_parallel = _may_open(work, on_gpu)
        alone = (on_gpu and not in_thread and not is_parallel) or (apart and work.is_product)
        chosen = None if alone else _joinable(work, axes, kinds, groups, place)
        if chosen is None:
            axis = max(axes, key=lambda a: (sizes[kinds[work, a]], -a), default=-1)
            length = work.nest.shape[axis] if axes else None
            groups.append(_Group(None if alone or not axes else kinds[work, axis], length, is_parallel))
            chosen = len(groups) - 1, axis
        number, axis = chosen
        groups[number].members.append((work, axis))
        groups[number].is_parallel &= is_parallel
        place[work] = number
    if not (on_gpu or apart) and any(len(group.members) > _TOGETHER for group in groups):
        return _fuse(works, apart=True)
    parts: list[Any] = []
    for group in groups:
        if group.length is None:
            parts.append(group.members[0][0].nest)
            continue
        loop = Loop(group.length, group.is_parallel)
        for work, axis in group.members:
            work.left.remove(axis)
            work.loops[axis] = loop
        inside = [work for work, _ in group.members]
        loop.body = _fuse(inside, on_gpu, in_thread or group.is_parallel)
        parts.append(loop)
    return parts


def _needed_first(works: list[_Work], sharing: set[_Work]) -> list[_Work]:
    """Move to the front the nests that a shared loop depends on, unless they depend on that loop themselves.

    In the scores of an attention, ``q @ k + mask``, the product and the sum run over a batch, the mask does
    not. If the mask stays between them, the product and the sum cannot share a loop. Computed first, it does
    not separate them. Initial values stay beside the nest that adds to them, unless that nest moves.
    """
    later: set[_Work] = set()
    for work in works:
        if work in sharing or not later.isdisjoint(work.before):
            later.add(work)
    needed: set[_Work] = set()
    for work in reversed(works):
        if work in sharing or work in needed:
            needed.update(o for o in work.before if o not in later and (o.nest.sources or work in needed))
    return sorted(works, key=lambda work: work not in needed)


def _may_open(work: _Work, on_gpu: bool) -> tuple[list[int], bool]:
    """The axes of a nest that may become its next loop, and whether GPU threads can share those loops.

    The axis that is best innermost comes last. On a GPU, parallel loops come first, so that each thread keeps
    its own total and adds to it in the loops inside.
    """
    if on_gpu and work.nest.product:
        return [], False
    parallel = [axis for axis in work.left if work.is_parallel(axis)] if on_gpu else []
    inner = work.innermost()
    outer = [axis for axis in work.left if axis != inner] or work.left
    return (parallel, True) if parallel else (outer, False)


def _joinable(
    work: _Work, axes: list[int], kinds: dict, groups: list[_Group], place: dict[_Work, int]
) -> tuple[int, int] | None:
    """The last group whose loop a nest may join, and the axis of the nest that joins it.

    A nest may not come before its dependences. It may join the group of one only if their loops are in step.
    """
    earliest = 0
    for other in work.before:
        if other in place:
            number = place[other]
            earliest = max(
                earliest, number if work.left and groups[number].length is not None else number + 1
            )
    for number in reversed(range(earliest, len(groups))):
        axis = next((a for a in axes if kinds[work, a] == groups[number].kind), None)
        if axis is not None and work.fits(axis, groups[number].members):
            return number, axis
    return None


def _kinds(works: list[_Work]) -> dict[tuple[_Work, int], Any]:
    """Assign each loop a kind; loops that are in step, and so could be fused, have the same kind."""
    parent: dict[tuple[_Work, int], tuple[_Work, int]] = {
        (work, axis): (work, axis) for work in works for axis in work.left
    }

    def find(x: Any) -> Any:
        while parent[x] is not x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    present = set(works)
    for work in works:
        for other, pairs in work.before.items():
            if other not in present:
                continue
            for there, here in pairs:
                for a in other.left:
                    for b in work.left:
                        if there.strides[a] and _in_step(
                            there, a, other.nest.shape, here, b, work.nest.shape
                        ):
                            parent[find((work, b))] = find((other, a))
    return {x: find(x) for x in parent}


# For a GPU: which loops become threads, and which loops the threads of a block share


def taken(segment: Any) -> list[Loop]:
    """The loops whose iterations become threads: perfectly nested parallel loops, the outermost first."""
    loops = [segment] if isinstance(segment, Loop) and segment.is_parallel else []
    while loops and len(body := loops[-1].body) == 1 and isinstance(body[0], Loop) and body[0].is_parallel:
        loops.append(body[0])
    return loops


class Band(NamedTuple):
    """Perfectly nested loops inside a row, whose iterations the threads of a block share.

    Attributes
    ----------
    loops : list of Loop
    totals : list of Nest
        The statements that reduce all numbers to one. Every other statement writes its own element in each
        iteration.
    """

    loops: list[Loop]
    totals: list[Nest]

    @property
    def length(self) -> int:
        """How many iterations there are."""
        return math.prod(loop.length for loop in self.loops)


def band_of(loop: Loop, plan: LoopSchedule) -> Band | None:
    """The nested loops, from this one inwards, that threads can share; None if they cannot share this one."""
    nests, loops, totals = list(loop.nests()), [loop], []
    for nest in nests:
        if not _is_own(nest, loop, plan):
            inside = [axis for axis, x in enumerate(plan.loops[nest]) if x in _loops_in(loop)]
            if nest.fold is None or nest.out.via is not None or any(nest.out.strides[i] for i in inside):
                return None
            totals.append(nest)
    while len(body := loops[-1].body) == 1 and isinstance(body[0], Loop):
        if any(_is_own(nest, body[0], plan) == (nest in totals) for nest in nests):
            break
        loops.append(body[0])
    return Band(loops, totals)


def _is_own(nest: Nest, loop: Loop, plan: LoopSchedule) -> bool:
    """Whether each iteration of a loop writes its own elements. A check writes nothing."""
    return nest.is_check or _alone(nest.out, plan.loops[nest].index(loop), nest.shape)


def _loops_in(loop: Loop) -> list[Loop]:
    """A loop, and those inside of it."""
    return [loop, *[x for part in loop.body if isinstance(part, Loop) for x in _loops_in(part)]]


#: The number of iterations from which on threads share a loop.
SHARED = 8

#: The number of rows from which on one thread computes a row, if neighbouring numbers are of different rows.
_MANY = 1 << 14


def parts_of(segment: Any) -> list[Any]:
    """The loops and nests of a row, which a block of threads may compute together.

    A row is one iteration of the parallel loops (`taken`), such as a row of a softmax. If a segment has no
    such loops, the whole segment is one row.
    """
    if isinstance(segment, list):
        return segment
    loops = taken(segment)
    return loops[-1].body if loops else [segment] if is_one_total(segment) else []


def _bands(segment: Any, plan: LoopSchedule) -> dict[Loop, Band]:
    """The loops of a row whose iterations threads share; empty if one thread computes the row."""
    found = {part: band_of(part, plan) for part in parts_of(segment) if isinstance(part, Loop)}
    bands = {part: band for part, band in found.items() if band is not None}
    loops = taken(segment)
    if not loops or not bands or len(bands) < len(found):
        return bands if not loops else {}
    rows, longest = math.prod(x.length for x in loops), max(band.length for band in bands.values())
    is_alone = longest < SHARED or (rows >= _MANY and goes_across(bands.values(), loops, plan))
    return {} if is_alone else bands


def goes_across(bands: Iterable[Band], loops: list[Loop], plan: LoopSchedule) -> bool:
    """Whether neighbouring numbers in memory belong to different rows, for most accesses."""
    points = 0
    for band in bands:
        for nest in band.loops[-1].nests():
            steps = dict(zip(plan.loops[nest], range(len(nest.shape)), strict=True))
            for x in nest.accesses:
                along, across = (
                    min((abs(x.strides[steps[loop]]) or math.inf for loop in some), default=math.inf)
                    for some in (band.loops, loops)
                )
                points += (across < along) - (along < across)
    return points > 0


def _split(part: Any, plan: LoopSchedule, is_taken: bool = True) -> list[Any]:
    """Split a loop into several (loop fission), so that more threads have work.

    Iterations depend on each other only through totals, so ``for i: A; B`` is equivalent to ``for i: A``
    followed by ``for i: B``. The split pays if A is a loop over rows, because its iterations become threads
    too. Inside a row, it pays if A and B are loops, because threads then share the iterations of both.
    """
    if not isinstance(part, Loop):
        return [part]
    is_taken &= part.is_parallel
    several = len(part.body) > 1
    if not is_taken and several and not all(isinstance(inner, Loop) for inner in part.body):
        return [part]
    runs: list[list[Any]] = []
    ends = True  # whether the next part begins a new loop
    for inner in part.body:
        alone = not is_taken or (_has_rows(inner) if several else bool(taken(inner)))
        pieces = _split(inner, plan, is_taken and alone)
        if alone:
            runs += [[piece] for piece in pieces]
        elif ends:
            runs.append(pieces)
        else:
            runs[-1] += pieces
        ends = alone
    found = []
    for run in runs:
        loop = Loop(part.length)
        loop.body = run
        for nest in loop.nests():
            plan.loops[nest] = [loop if x is part else x for x in plan.loops[nest]]
        loop.is_parallel = all(_is_own(nest, loop, plan) for nest in loop.nests())
        found.append(loop)
    return found


def _has_rows(part: Any) -> bool:
    """Whether a part is a parallel loop that contains loops, and not only statements."""
    if not isinstance(part, Loop) or not part.is_parallel:
        return False
    return any(isinstance(x, Loop) for x in taken(part)[-1].body)


# Contract


class LoopSchedule:
    """Loops in the order in which they run, and the storage of every buffer.

    Attributes
    ----------
    segments : list of list, Loop or Call
        Each segment becomes one function. It is a list of loops and nests; one long loop, whose iterations
        threads share; or an operator that its own kernel computes.
    loops : dict of Nest to list of Loop
        The loop for each axis of a nest; None for the axes that BLAS takes.
    variables : set of Buffer
        The buffers that became plain variables.
    work : dict of Buffer to int
        The size of each array for intermediate results.
    local : set of Buffer
        Small arrays in `work` that only one function uses: it allocates them itself.
    inside : set of Buffer
        Buffers that only one segment uses.
    bands : dict of Loop to Band
        On a GPU: for each loop inside a row that threads share, its band.
    lowered : dict of Nest to Nest
        For each nest, a copy from before its loops were split and fused. Drawings show both.
    sizes : dict of Buffer to int
        The size of each buffer before it was contracted.
    on_gpu : bool
        Whether it is for a GPU: then each segment is one kernel launch.
    """

    def __init__(self, on_gpu: bool = False) -> None:
        self.on_gpu = on_gpu
        self.lowered: dict[Nest, Nest] = {}
        self.sizes: dict[Buffer, int] = {}
        self.segments: list[Any] = []
        self.loops: dict[Nest, list[Loop | None]] = {}
        self.variables: set[Buffer] = set()
        self.work: dict[Buffer, int] = {}
        self.local: set[Buffer] = set()
        self.inside: set[Buffer] = set()
        self.bands: dict[Loop, Band] = {}

    def add(self, part: Any) -> None:
        """Append a loop, a nest or a call."""
        alone = not self.goes_to_block(part) if self.on_gpu else self.can_share(part)
        if isinstance(part, Call) or alone:
            self.segments.append(part)
        elif self.segments and isinstance(self.segments[-1], list):
            self.segments[-1].append(part)
        else:
            self.segments.append([part])

    def goes_to_block(self, part: Any) -> bool:
        """Whether one block of threads computes a part: a statement without loops, or a short total."""
        if isinstance(part, Loop):
            return is_one_total(part) and math.prod(next(part.nests()).shape) <= LONG
        return isinstance(part, Nest) and not part.product

    def can_share(self, part: Any) -> bool:
        """Whether threads can share the iterations of a loop, and the loop is long enough for that to pay.

        Each iteration must write its own elements, so the loop may not compute a total.
        """
        if not isinstance(part, Loop):
            return False
        work = 0
        for nest in part.nests():
            axis = self.loops[nest].index(part)
            if nest.is_check or not _alone(nest.out, axis, nest.shape):
                return False
            work += math.prod(nest.shape) * _COSTS.get(nest.function, 1)
        return work >= _SHARED


def is_one_total(loop: Any) -> bool:
    """Whether a loop only reduces many numbers to one."""
    if not isinstance(loop, Loop):
        return False
    nest, *others = loop.nests()
    return not others and nest.fold is not None and nest.out.via is None and not any(nest.out.strides)


#: On a GPU, several blocks compute a total of more numbers than this.
LONG = 1 << 14

#: Approximate cost of each function, in additions.
_COSTS = dict.fromkeys(("exp", "log", "tanh", "sigmoid", "erf", "power", "sin", "cos"), 8)
_COSTS |= {"divide": 3, "sqrt": 4}

#: The cost, in additions, from which on threads share a loop: waking a thread takes some ten microseconds.
_SHARED = 1 << 18


def schedule(steps: list[Nest | Call], on_gpu: bool = False) -> LoopSchedule:
    """Fuse loops and contract storage."""
    plan = LoopSchedule(on_gpu)
    run: list[Nest] = []

    def finish() -> None:
        works = [_Work(nest) for nest in run]
        _depend(works)
        parts = _fuse(_just_in_time(works), on_gpu)
        for work in works:
            plan.loops[work.nest] = [work.loops.get(axis) for axis in range(len(work.nest.shape))]
        for part in parts:
            for piece in _split(part, plan) if on_gpu else [part]:
                plan.add(piece)
        run.clear()

    nests = [step for step in steps if isinstance(step, Nest)]
    plan.lowered = {nest: copy.copy(nest) for nest in nests}
    plan.sizes = {x.buffer: x.buffer.size for nest in nests for x in nest.accesses}
    cut(nests)
    for step in steps:
        if isinstance(step, Call):
            finish()
            plan.add(step)
        else:
            run.append(step)
    finish()
    if on_gpu:
        for segment in plan.segments:
            plan.bands |= _bands(segment, plan)
    _contract(plan, steps)
    return plan


#: The largest array that a function allocates itself, and the limit for all such arrays of a function.
_MOST_LOCAL = 1024
_MOST_OF_FUNCTION = 8192

#: On a GPU, the largest array that a thread keeps for itself.
_MOST_OF_THREAD = 256


def _contract(plan: LoopSchedule, steps: list[Nest | Call]) -> None:
    """Contract storage: a buffer that is live within one iteration only gets room for one iteration."""
    users: dict[Buffer, list[tuple[Nest, Access]]] = defaultdict(list)
    outside: set[Buffer] = set()  # buffers that calls read or write
    for step in steps:
        if isinstance(step, Call):
            outside.update(step.written, step.read)
            continue
        if step.is_check:
            outside.update(step.read)  # the error shows the numbers
        for x in step.accesses:
            users[x.buffer].append((step, x))
    paths: dict[int, tuple[Any, ...]] = {}  # for each nest its segment, and the loops around it
    for segment in plan.segments:
        if not isinstance(segment, Call):
            paths |= _paths(segment if isinstance(segment, list) else [segment], (segment,))
    room: dict[int, int] = defaultdict(lambda: _MOST_OF_FUNCTION)
    for buffer, uses in users.items():
        if not buffer.is_ours or buffer.data is not None or buffer.counts:
            continue
        common = [] if buffer in outside else _common([paths[id(nest)] for nest, _ in uses])
        segment, around = (common[0], common[1:]) if common else (None, [])
        if segment is not None:
            plan.inside.add(buffer)
        if plan.on_gpu:
            outer = taken(segment)
            inner = [loop for loop in around if loop not in outer]
            for loop in inner:
                _drop_loop(plan, buffer, loop, users)
            most = 1 if any(part in plan.bands for part in parts_of(segment)) else _MOST_OF_THREAD
            if buffer.size > most * math.prod(loop.length for loop in outer):
                around = []  # it stays in the GPU's memory, or threads share it
            else:
                around = outer
        for loop in around:
            _drop_loop(plan, buffer, loop, users)
        in_array = any(nest.product or x.via is not None for nest, x in users[buffer])
        if buffer.size == 1 and segment is not None and not in_array:
            plan.variables.add(buffer)
            continue
        plan.work[buffer] = buffer.size
        is_small = buffer.size <= min(_MOST_LOCAL, room[id(segment)])
        if isinstance(segment, list) and is_small and not plan.on_gpu:
            room[id(segment)] -= buffer.size
            plan.local.add(buffer)


def _paths(parts: list[Any], around: tuple[Any, ...]) -> dict[int, tuple[Any, ...]]:
    """The loops around each nest, the outermost first, behind `around`."""
    found: dict[int, tuple[Any, ...]] = {}
    for part in parts:
        if isinstance(part, Loop):
            found |= _paths(part.body, (*around, part))
        elif isinstance(part, Nest):
            found[id(part)] = around
    return found


def _common(paths: list[tuple[Any, ...]]) -> list[Any]:
    """The longest common prefix of the paths."""
    common: list[Any] = []
    for loops in zip(*paths, strict=False):
        if any(loop is not loops[0] for loop in loops):
            break
        common.append(loops[0])
    return common


def _drop_loop(plan: LoopSchedule, buffer: Buffer, loop: Loop, users: dict) -> None:
    """Remove from a buffer the axis along which a loop moves, if all accesses to the buffer are in step."""
    uses = users[buffer]
    places = []
    for nest, x in uses:
        axis = plan.loops[nest].index(loop)
        places.append((nest, x, axis))
    first_nest, first, first_axis = places[0]
    stride, n = first.strides[first_axis], loop.length
    if not stride or not all(
        _in_step(first, first_axis, first_nest.shape, x, axis, nest.shape) for nest, x, axis in places
    ):
        return
    whole = stride * n

    def shorter(x: Access, axis: int) -> Access:
        strides = tuple(0 if i == axis else s // n if s >= whole else s for i, s in enumerate(x.strides))
        offset = x.offset // whole * stride + x.offset % stride
        return x._replace(strides=strides, offset=offset, step=x.step // n if x.step >= whole else x.step)

    for nest, x, axis in places:
        new = shorter(x, axis)
        if nest.out is x:
            nest.out = new
        nest.reads = [new if y is x else y for y in nest.reads]
        for y in (nest.out, *nest.reads):
            if isinstance(y, Access) and y.via is x:
                changed = y._replace(via=new)
                if nest.out is y:
                    nest.out = changed
                nest.reads = [changed if z is y else z for z in nest.reads]
    buffer.size //= n
    users[buffer] = [
        (nest, y)
        for nest in {id(nest): nest for nest, _, _ in places}.values()
        for y in nest.accesses
        if y.buffer is buffer
    ]
