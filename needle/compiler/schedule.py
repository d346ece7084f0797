"""Schedule: which loops run together, and where each number lives.

`lower.py` gives every statement loops of its own. If they ran one after the other, each would write its whole
result to memory, and the next would read it back. Here loops that run along the same axis become one loop.
Take the five nests of ``relu(x @ W + b)``, whose outermost loops run over the batch:

    for i in range(10):
        for j in range(8):         matmul1[j] = 0
        for j in range(2):
            for k in range(8):     matmul1[k] += x[2 i + j] * W[8 j + k]
        for j in range(8):         add1 = matmul1[j] + b[j];  relu1 = relu(add1);  result[8 i + j] = relu1

First `simplify.cut` cuts the loop over 80 numbers into (10, 8), so that all nests are in step. Then two loops
may become one if each iteration touches what it shares with the other in the same iteration, and nobody else
does: what the later statement reads is written by then, and nothing is overwritten that is still to be read.
That holds if both walk through each shared buffer by the same stride (`_in_step`). The sum over j may not be
joined with what follows: it is known only when its loop is done. And the innermost loop of a nest, which is
to walk from neighbour to neighbour, is opened last; so what sets `matmul1` to 0 keeps a loop of its own.

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
    """A loop, and what is in it: loops and nests whose own loops are all open.

    Attributes
    ----------
    length : int
    body : list of Loop or Nest
    is_parallel : bool
        For a GPU: whether threads can take its iterations, each one, as nothing goes from one to another.
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
    """Whether an access walks along an axis of the buffer in which no other of its loops moves."""
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
        return False  # how far the index reaches is not known
    return below < stride and x.offset // stride % n == 0


def axis_moves_index(x: Access, axis: int) -> bool:
    """Whether the loop `axis` changes the number of the index."""
    return x.via is not None and x.via.strides[axis] != 0


def _in_step(a: Access, a_axis: int, a_shape: Shape, b: Access, b_axis: int, b_shape: Shape) -> bool:
    """Whether loops of two nests meet the same elements of a buffer in the same iteration, and no others."""
    return (
        a.strides[a_axis] == b.strides[b_axis]
        and a_shape[a_axis] == b_shape[b_axis]
        and _alone(a, a_axis, a_shape)
        and _alone(b, b_axis, b_shape)
    )


class _Work:
    """A nest while it is scheduled: which of its loops are still to be opened."""

    def __init__(self, nest: Nest):
        self.nest = nest
        self.left = list(range(len(nest.shape) - (3 if nest.product else 0)))
        self.loops: dict[int, Loop] = {}
        self.before: dict[_Work, list[tuple[Access, Access]]] = {}  # the nests it needs, and the accesses

    def innermost(self) -> int | None:
        """The loop that goes best inside: most of its accesses are to neighbours."""

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
        """Whether it adds up products of numbers of two matrices."""
        return self.nest.function == "multiply" and self.nest.fold == "add"

    def is_parallel(self, axis: int) -> bool:
        """Whether each iteration of a loop writes places of its own; a check writes nothing."""
        return self.nest.is_check or _alone(self.nest.out, axis, self.nest.shape)

    def fits(self, axis: int, others: Iterable[tuple[_Work, int]]) -> bool:
        """Whether its loop `axis` may be one with loops of these nests."""
        for other, other_axis in others:
            for there, here in self.before.get(other, ()):
                if not _in_step(there, other_axis, other.nest.shape, here, axis, self.nest.shape):
                    return False
        return True


class _Group:
    """Nests that share a loop, or a single nest without one; only loops of its `kind` may join."""

    def __init__(self, kind: Any, length: int | None, is_parallel: bool = False):
        self.kind = kind
        self.length = length
        self.is_parallel = is_parallel
        self.members: list[tuple[_Work, int]] = []


def _depend(works: list[_Work]) -> None:
    """Find for each nest which earlier ones it needs: those that write what it reads, and so on."""
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
            for check in checks:  # nothing that the caller sees changes before all checks are passed
                work.before.setdefault(check, []).append((check.nest.out, out))
        for x in nest.sources:
            readers[x.buffer].append((work, x))
        writers[out.buffer].append((work, out))
        if nest.is_check:
            checks.append(work)


def _just_in_time(works: list[_Work]) -> list[_Work]:
    """Put each nest right before what needs it first: what is far apart cannot share a loop."""
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
            # Last comes, and so right before it, what needs nothing itself: an initial 0.
            needed = sorted(work.before, key=lambda other: (not other.before, number[other]))
            stack.extend(other for other in reversed(needed) if other not in ordered)
    ordered.update(dict.fromkeys(works))  # what calls need
    return list(ordered)


#: If more nests than this would share a loop, matrix products get loops of their own.
_TOGETHER = 100


def _fuse(
    works: list[_Work], on_gpu: bool = False, in_thread: bool = False, apart: bool = False
) -> list[Any]:
    """Join loops, the outermost first; what is inside each of them is fused in the same way.

    Two nests can share a loop only if none of those between them needs the first and is needed by the second.
    So nests first get out of each other's way: initial values, and what the largest loop needs from outside
    (`_needed_first`), come before the rest.

    Parameters
    ----------
    works : list of _Work
    on_gpu : bool
        Put loops outside whose iterations threads can take, and nothing into them that would prevent it.
    in_thread : bool
        Whether such a loop is already around these nests, so that one thread computes them.
    apart : bool
        Whether matrix products share no loop. What is between them then repeats from step to step of a long
        recurrent network, so that `codegen.py` writes it once; joined, it would be one loop of a thousand
        lines, which takes Numba half a minute.
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
    """Put before all others what those that share a loop need, if it does not come from that loop itself.

    In the scores of an attention, ``q @ k + mask``, the product and the sum run over a batch, the mask does
    not. If it stays between them, it ends the loop of the product, and the sum has to begin another one. Made
    first, it is in nobody's way. Initial values stay where they are, beside what adds to them, unless that
    moves.
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
    """The loops of a nest that may be opened next, and whether threads of a GPU can take their iterations.

    The one that goes best inside waits for the others. On a GPU, loops for threads come first: then a thread
    has a total of its own, and adds up what the loops inside give.
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
    """The last group whose loop a nest may share, and the loop of its own that is to be that one.

    It may not come before what it needs; into the same group only if both are in step.
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
    """Which loops run along the same axis: a name for each, the same for loops that are in step."""
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


# For a GPU: which iterations its threads take, and which of them they share


def taken(segment: Any) -> list[Loop]:
    """The loops that threads take as one: a parallel one, the one that is all that is inside, and so on."""
    loops = [segment] if isinstance(segment, Loop) and segment.is_parallel else []
    while loops and len(body := loops[-1].body) == 1 and isinstance(body[0], Loop) and body[0].is_parallel:
        loops.append(body[0])
    return loops


class Band(NamedTuple):
    """Loops in a row of numbers, each all that is inside of the one before: threads share their iterations.

    Attributes
    ----------
    loops : list of Loop
    totals : list of Nest
        The statements that fold all numbers into one. All others write a place of their own each time.
    """

    loops: list[Loop]
    totals: list[Nest]

    @property
    def length(self) -> int:
        """How many iterations there are."""
        return math.prod(loop.length for loop in self.loops)


def band_of(loop: Loop, plan: LoopSchedule) -> Band | None:
    """The loops, this one first, that threads can share; None if not even this one."""
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
    """Whether each iteration of a loop writes places of its own; a check writes nothing."""
    return nest.is_check or _alone(nest.out, plan.loops[nest].index(loop), nest.shape)


def _loops_in(loop: Loop) -> list[Loop]:
    """A loop, and those inside of it."""
    return [loop, *[x for part in loop.body if isinstance(part, Loop) for x in _loops_in(part)]]


#: Threads share the iterations of a loop if there are so many.
SHARED = 8

#: If there are so many rows that lie side by side, a thread computes each of them alone.
_MANY = 1 << 14


def parts_of(segment: Any) -> list[Any]:
    """What is in a row that many threads compute together, if they do.

    A row is one iteration of the loops that threads take (`taken`), such as a row of a softmax. Without such
    loops, all that a segment computes is one row.
    """
    if isinstance(segment, list):
        return segment
    loops = taken(segment)
    return loops[-1].body if loops else [segment] if is_one_total(segment) else []


def _bands(segment: Any, plan: LoopSchedule) -> dict[Loop, Band]:
    """The loops of a row whose iterations threads share; none if one thread is to compute it alone."""
    found = {part: band_of(part, plan) for part in parts_of(segment) if isinstance(part, Loop)}
    bands = {part: band for part, band in found.items() if band is not None}
    loops = taken(segment)
    if not loops or not bands or len(bands) < len(found):
        return bands if not loops else {}
    rows, longest = math.prod(x.length for x in loops), max(band.length for band in bands.values())
    is_alone = longest < SHARED or (rows >= _MANY and goes_across(bands.values(), loops, plan))
    return {} if is_alone else bands


def goes_across(bands: Iterable[Band], loops: list[Loop], plan: LoopSchedule) -> bool:
    """Whether numbers that lie side by side belong to different rows, and not to one."""
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
    """A loop as several, so that more threads have something to do.

    Nothing goes from one iteration to another but totals. So ``for i: A; B`` may as well be ``for i: A``, and
    then ``for i: B``. That pays if A is a loop over rows: its iterations are then taken by threads, too. In a
    row, it pays if A and B are loops, as threads then share the iterations of both.
    """
    if not isinstance(part, Loop):
        return [part]
    is_taken &= part.is_parallel
    several = len(part.body) > 1
    if not is_taken and several and not all(isinstance(inner, Loop) for inner in part.body):
        return [part]
    runs: list[list[Any]] = []
    ends = True  # whether what comes next goes into a loop of its own
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
    """Whether a part is a loop over rows, and not just one over numbers."""
    if not isinstance(part, Loop) or not part.is_parallel:
        return False
    return any(isinstance(x, Loop) for x in taken(part)[-1].body)


# Contract


class LoopSchedule:
    """Loops in the order in which they run, and where every number lives.

    Attributes
    ----------
    segments : list of list, Loop or Call
        What one function computes: a list of loops and nests; a long loop by itself, whose iterations threads
        can share; or an operator that is computed by its own kernel.
    loops : dict of Nest to list of Loop
        The loop for each axis of a nest; None for the axes that BLAS takes.
    variables : set of Buffer
        Those that are plain variables.
    work : dict of Buffer to int
        The size of each array that holds numbers on the way.
    local : set of Buffer
        Those of these arrays that are small and belong to one function alone.
    inside : set of Buffer
        What only one segment uses.
    bands : dict of Loop to Band
        On a GPU: the loops of rows that threads compute together.
    lowered : dict of Nest to Nest
        For each nest, what it was before its loops were cut and joined. Drawings show both.
    sizes : dict of Buffer to int
        How many numbers each buffer held then.
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
        """Put a loop, a nest or a call behind what is there."""
        alone = not self.goes_to_block(part) if self.on_gpu else self.can_share(part)
        if isinstance(part, Call) or alone:
            self.segments.append(part)
        elif self.segments and isinstance(self.segments[-1], list):
            self.segments[-1].append(part)
        else:
            self.segments.append([part])

    def goes_to_block(self, part: Any) -> bool:
        """Whether a block of threads computes it: a statement without loops, or a total that is not long."""
        if isinstance(part, Loop):
            return is_one_total(part) and math.prod(next(part.nests()).shape) <= LONG
        return isinstance(part, Nest) and not part.product

    def can_share(self, part: Any) -> bool:
        """Whether threads can share the iterations of a loop, and whether that pays.

        Each iteration must write places of its own, so no total may run through them.
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
    """Whether all that a loop does is to fold many numbers into one."""
    if not isinstance(loop, Loop):
        return False
    nest, *others = loop.nests()
    return not others and nest.fold is not None and nest.out.via is None and not any(nest.out.strides)


#: On a GPU, a total of more numbers than this is the work of several blocks.
LONG = 1 << 14

#: About how long a function takes, in additions.
_COSTS = dict.fromkeys(("exp", "log", "tanh", "sigmoid", "erf", "power", "sin", "cos"), 8)
_COSTS |= {"divide": 3, "sqrt": 4}

#: A loop of so many additions is shared among threads: to wake one takes some ten microseconds.
_SHARED = 1 << 18


def schedule(steps: list[Nest | Call], on_gpu: bool = False) -> LoopSchedule:
    """Join loops and shrink storage."""
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


#: An array of so many numbers can be a function's own, and so many all of these together.
_MOST_LOCAL = 1024
_MOST_OF_FUNCTION = 8192

#: On a GPU, so many numbers may a thread keep in an array of its own.
_MOST_OF_THREAD = 256


def _contract(plan: LoopSchedule, steps: list[Nest | Call]) -> None:
    """Make the storage of what lives within one iteration as small as that."""
    users: dict[Buffer, list[tuple[Nest, Access]]] = defaultdict(list)
    outside: set[Buffer] = set()  # what calls read and write
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
    """What all paths begin with."""
    common: list[Any] = []
    for loops in zip(*paths, strict=False):
        if any(loop is not loops[0] for loop in loops):
            break
        common.append(loops[0])
    return common


def _drop_loop(plan: LoopSchedule, buffer: Buffer, loop: Loop, users: dict) -> None:
    """Leave the axis out along which a loop walks through a buffer, if all that use it do so in step."""
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
