"""Schedule: which loops run together, and where each number lives.

`lower.py` gives every statement loops of its own. If they ran one after the other, each would write its whole
result to memory, and the next would read it back. Here loops that run along the same axis are fused.
Take the five nests of ``relu(x @ W + b)``, whose outermost loops run over the batch:

    for i in range(10):
        for j in range(8):         matmul1[j] = 0
        for j in range(2):
            for k in range(8):     matmul1[k] += x[2 i + j] * W[8 j + k]
        for j in range(8):         add1 = matmul1[j] + b[j];  relu1 = relu(add1);  result[8 i + j] = relu1

A nest *depends* on an earlier one that writes what it reads, or that uses what it writes (`_depend`). When
may the loops of two such nests be fused? In each buffer that both use, iteration i of one loop must touch the
same elements as iteration i of the other, and no other iteration may touch them: the loops are *in step*
(`_in_step`). Then the later statement reads only elements that are already written, and overwrites none that
the earlier one still has to read. The sum over j is not in step with the statements after it, because its
total is known only when its loop is done.

This is how `_fuse` works. It takes the nests one by one, after `_just_in_time` has sorted them: each comes
right before the first that needs it. Each joins the last group of nests that has a loop in
step with one of its own, or else begins a new group. Then it does the same with the nests inside of each
group. The innermost loop of a nest should go through memory from neighbour to neighbour, so this loop is
placed last. In the product, that is k, so j comes before it. The statement that sets `matmul1` to 0 has no
loop in step with this j, so it keeps a loop of its own.

Once loops are fused, storage shrinks (`contract`). `matmul1` is written and read within one iteration of i,
so it needs 8 numbers and not 80. `add1` and `relu1` are written and read within one iteration of j as well,
so they become plain variables.
"""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, takewhile
from typing import Any, ClassVar

from .lower import Access, Buffer, Call, Nest, Shape, in_order
from .simplify import cut

__all__ = ["Loop", "LoopSchedule", "contract", "nests_in", "with_fused_loops"]


@dataclass(eq=False)
class Loop:
    """A loop, and its body: loops, and nests whose loops are all scheduled."""

    length: int
    is_parallel: bool = False  # on a GPU: whether threads can run its iterations, which are independent
    body: list[Any] = field(default_factory=list)


def nests_in(parts: Iterable[Any]) -> Iterator[Nest]:
    """All nests in parts or segments of a schedule, in order."""
    return (nest for nest, _ in paths(parts))


def paths(parts: Iterable[Any], around: tuple[Any, ...] = ()) -> Iterator[tuple[Nest, tuple[Any, ...]]]:
    """All nests in parts or segments of a schedule, each with the loops around it, the outermost first."""
    for part in parts:
        if isinstance(part, list):
            yield from paths(part, around)
        elif isinstance(part, Loop):
            yield from paths(part.body, (*around, part))
        else:
            yield part, around


# Fuse


def _alone(x: Access, axis: int, shape: Shape) -> bool:
    """Whether each iteration of loop `axis` accesses elements that no other iteration accesses."""
    stride, n = x.strides[axis], shape[axis]
    if stride <= 0 or _moves_index(x, axis):
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


def _moves_index(x: Access, axis: int) -> bool:
    """Whether the loop `axis` changes the index of an indirect access."""
    return x.via is not None and x.via.strides[axis] != 0


def _writes_own(nest: Nest, axis: int) -> bool:
    """Whether each iteration of loop `axis` writes elements of its own. A check writes nothing."""
    return nest.is_check or _alone(nest.out, axis, nest.shape)


def _in_step(a: Access, a_axis: int, a_shape: Shape, b: Access, b_axis: int, b_shape: Shape) -> bool:
    """Whether iteration i of two loops accesses the same elements of a buffer, and no other one does."""
    if a.strides[a_axis] != b.strides[b_axis] or a_shape[a_axis] != b_shape[b_axis]:
        return False
    return _alone(a, a_axis, a_shape) and _alone(b, b_axis, b_shape)


class _Work:
    """A nest while its loops are placed, one after the other."""

    def __init__(self, nest: Nest):
        self.nest = nest
        self.left = list(nest.axes)  # the axes whose loops are not placed yet
        self.loops: list[Loop | None] = [None] * len(nest.shape)  # for each axis its loop, once it is placed
        #: For each nest that it depends on, pairs of accesses to the same buffer: the other's and its own.
        self.before: dict[_Work, list[tuple[Access, Access]]] = defaultdict(list)

    def innermost(self) -> int | None:
        """The axis that is best as the innermost loop: the one along which most accesses have stride 1."""

        def score(axis: int) -> tuple[int, int]:
            points = 0
            for x in self.nest.accesses:
                step = x.strides[axis]
                points += (step == 1) - (abs(step) > 1)
                if _moves_index(x, axis):
                    points -= 2
            return points, axis

        return max(self.left, key=score, default=None)

    def fits(self, axis: int, others: Iterable[tuple[_Work, int]]) -> bool:
        """Whether its loop `axis` may be fused with these loops of other nests."""
        for other, other_axis in others:
            for there, here in self.before.get(other, ()):
                if not _in_step(there, other_axis, other.nest.shape, here, axis, self.nest.shape):
                    return False
        return True


@dataclass
class _Group:
    """Nests that share a loop, each with its axis; or a single nest without a loop."""

    kind: Any  # of the loop, see `_kinds`; None if no other nest may join
    loop: Loop | None
    members: list[tuple[_Work, int]] = field(default_factory=list)


def _depend(works: list[_Work]) -> None:
    """Find on which earlier nests each one depends: they write what it reads, or use what it writes."""
    readers: dict[Buffer, list] = defaultdict(list)
    writers: dict[Buffer, list] = defaultdict(list)
    checks: list[tuple[_Work, Access]] = []
    for work in works:
        nest, out = work.nest, work.nest.out
        pairs = [(other, there, x) for x in nest.sources for other, there in writers[x.buffer]]
        pairs += [(other, there, out) for other, there in readers[out.buffer] + writers[out.buffer]]
        if not out.buffer.is_ours or any(x.via is not None for x in nest.accesses):
            # What an index picks is read, and memory of the caller is written, when all checks have passed.
            pairs += [(check, there, out) for check, there in checks]
        for other, there, here in pairs:
            work.before[other].append((there, here))
        for x in nest.sources:
            readers[x.buffer].append((work, x))
        writers[out.buffer].append((work, out))
        if nest.is_check:
            checks.append((work, out))


def _just_in_time(works: list[_Work]) -> list[_Work]:
    """Order the nests so that each comes right before the first one that needs it.

    Nests that are far apart can seldom be fused, because what lies between them depends on one of them.
    """
    number = {work: i for i, work in enumerate(works)}

    def needed(work: _Work) -> list[_Work]:
        # A nest that depends on nothing, such as an initial 0, comes last: right before its consumer.
        return sorted(work.before, key=lambda other: (not other.before, number[other]))

    last = [work for work in works if not work.nest.out.buffer.is_ours or work.nest.is_check]
    return list(dict.fromkeys([*in_order(last, needed), *works]))  # at the end, those that only calls need


#: If more nests than this would share a loop, each matrix product gets a loop of its own. A long recurrent
#: network would else be one loop of a thousand lines, which Numba compiles for half a minute. With products
#: apart, the code between them is the same in each step in time, and `codegen.py` makes it a function.
_TOGETHER = 100


def _fuse(
    works: list[_Work], on_gpu: bool = False, in_thread: bool = False, apart: bool = False
) -> list[Any]:
    """Fuse loops: the outermost first, then in the same way those inside of each fused loop.

    Each nest in turn joins the last group whose loop it may share. If there is none, it begins a new group.

    Parameters
    ----------
    works : list of _Work
    on_gpu : bool
        Place parallel loops outermost, and fuse only parallel loops with them.
    in_thread : bool
        Whether a parallel loop is around these nests already, so that one thread computes them.
    apart : bool
        Whether matrix products stay unfused.
    """
    kinds = _kinds(works)
    sizes: Counter = Counter()  # how much is computed in all loops of a kind
    for (work, _), kind in kinds.items():
        sizes[kind] += math.prod(work.nest.shape)
    if sizes:
        common = max(sizes, key=sizes.__getitem__)
        works = _needed_first(works, {work for (work, _), kind in kinds.items() if kind is common})
    if not on_gpu or in_thread:
        # Variables get their initial values first: that must not stand between loops that may be fused.
        works = sorted(works, key=lambda work: bool(work.left or work.before))
    groups: list[_Group] = []
    place: dict[_Work, int] = {}
    for work in works:
        axes, is_parallel = _may_open(work, on_gpu)
        alone = (on_gpu and not in_thread and not is_parallel) or (apart and work.nest.is_product)
        chosen = None if alone else _joinable(work, axes, kinds, groups, place)
        if chosen is None:
            axis = max(axes, key=lambda a: (sizes[kinds[work, a]], -a), default=-1)
            loop = Loop(work.nest.shape[axis], is_parallel) if axes else None
            groups.append(_Group(None if alone or not axes else kinds[work, axis], loop))
            chosen = len(groups) - 1, axis
        place[work], axis = chosen
        group = groups[place[work]]
        group.members.append((work, axis))
        if group.loop is not None:
            group.loop.is_parallel &= is_parallel
    if not (on_gpu or apart) and any(len(group.members) > _TOGETHER for group in groups):
        return _fuse(works, apart=True)
    for group in groups:
        if group.loop is not None:
            for work, axis in group.members:
                work.left.remove(axis)
                work.loops[axis] = group.loop
            inner = [work for work, _ in group.members]
            group.loop.body = _fuse(inner, on_gpu, in_thread or group.loop.is_parallel)
    return [group.loop or group.members[0][0].nest for group in groups]


def _needed_first(works: list[_Work], sharing: set[_Work]) -> list[_Work]:
    """Move nests to the front that would stand between those that are `sharing` a loop.

    In the scores of an attention, ``q @ k + mask``, the product and the sum have a loop over the batch, but
    the nest that computes the mask has none. If it stood between the two, they could not share their loop. It
    does not depend on that loop, so it can as well come first. An initial value stays beside the nest that
    adds to it, unless that nest moves.
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
    """The axes that may become the next loop of a nest, and whether threads of a GPU can share that loop.

    The axis that is best as the innermost loop waits until it is the only one. On a GPU, parallel loops are
    placed first. Then each thread keeps a total of its own, and adds to it in the loops inside.
    """
    if on_gpu and work.nest.product:
        return [], False
    parallel = [axis for axis in work.left if _writes_own(work.nest, axis)] if on_gpu else []
    inner = work.innermost()
    outer = [axis for axis in work.left if axis != inner] or work.left
    return (parallel, True) if parallel else (outer, False)


def _joinable(
    work: _Work, axes: list[int], kinds: dict, groups: list[_Group], place: dict[_Work, int]
) -> tuple[int, int] | None:
    """The last group whose loop a nest may join, and the axis of the nest that becomes this loop.

    The nest must come after all nests that it depends on. It may join the group of such a nest only if their
    loops are in step.
    """
    needed = {place[other] for other in work.before if other in place}
    earliest = max((number + (groups[number].loop is None) for number in needed), default=0)
    for number in reversed(range(earliest, len(groups))):
        axis = next((a for a in axes if kinds[work, a] == groups[number].kind), None)
        if axis is not None and work.fits(axis, groups[number].members):
            return number, axis
    return None


def _kinds(works: list[_Work]) -> dict[tuple[_Work, int], Any]:
    """Sort the loops of nests into kinds: two loops in step are of the same kind.

    If loop a is in step with b, and b with c, then a and c are of one kind as well. A union-find does that:
    each loop points to a `parent`, and loops whose parents lead to the same root are of one kind.
    """
    parent = {x: x for x in [(work, axis) for work in works for axis in work.left]}

    def find(x: Any) -> Any:
        while parent[x] is not x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    present = set(works)
    for work in works:
        for other, pairs in work.before.items():
            for there, here in pairs if other in present else ():
                for a in [axis for axis in other.left if there.strides[axis]]:
                    for b in work.left:
                        if _in_step(there, a, other.nest.shape, here, b, work.nest.shape):
                            parent[find((work, b))] = find((other, a))
    return {x: find(x) for x in parent}


# Put it together


@dataclass
class LoopSchedule:
    """Loops in the order in which they run, and the storage of every buffer."""

    on_gpu: ClassVar[bool] = False
    #: Each segment becomes one function. It is a list of loops and nests; one long loop, whose iterations
    #: threads share; or a `Call`.
    segments: list[Any] = field(default_factory=list)
    loops: dict[Nest, list[Loop | None]] = field(default_factory=dict)  # for each axis; None if BLAS takes it
    lowered: dict[Nest, Nest] = field(default_factory=dict)  # a copy from before its loops were cut and fused
    sizes: dict[Buffer, int] = field(default_factory=dict)  # of each buffer before it was contracted
    variables: set[Buffer] = field(default_factory=set)  # those that became plain variables
    work: dict[Buffer, int] = field(default_factory=dict)  # the sizes of arrays for intermediate results
    local: set[Buffer] = field(default_factory=set)  # small ones, which a function allocates itself
    inside: set[Buffer] = field(default_factory=set)  # buffers that only one segment uses

    def add(self, part: Any) -> None:
        """Append a loop, a nest or a call; short ones in a row are one segment."""
        if isinstance(part, Call) or self.stands_alone(part):
            self.segments.append(part)
        elif self.segments and isinstance(self.segments[-1], list):
            self.segments[-1].append(part)
        else:
            self.segments.append([part])

    def writes_own(self, nest: Nest, loop: Loop) -> bool:
        """Whether each iteration of a loop around a nest writes elements of its own."""
        return _writes_own(nest, self.loops[nest].index(loop))

    def stands_alone(self, part: Any) -> bool:
        """Whether a part is a segment of its own: a long loop whose iterations write their own elements.

        Threads share its iterations.
        """
        nests = list(nests_in([part])) if isinstance(part, Loop) else []
        if any(nest.is_check or not self.writes_own(nest, part) for nest in nests):
            return False
        return sum(math.prod(x.shape) * _COSTS.get(x.function, 1) for x in nests) >= _SHARED

    def taken_by_threads(self, segment: Any) -> tuple[list[Loop], int]:
        """The loops of a segment whose iterations become threads, and how many numbers a thread can keep."""
        return [], 0


#: Approximate cost of each function, in additions.
_COSTS = dict.fromkeys(("exp", "log", "tanh", "sigmoid", "erf", "power", "sin", "cos"), 8)
_COSTS |= {"divide": 3, "sqrt": 4}

#: Threads share a loop that costs at least so many additions: to wake one takes some ten microseconds.
_SHARED = 1 << 18


def with_fused_loops(steps: list[Nest | Call], kind: type[LoopSchedule]) -> LoopSchedule:
    """Fuse loops; what differs on a GPU, the `kind` of the schedule says."""
    nests = [step for step in steps if isinstance(step, Nest)]
    plan = kind()
    plan.lowered = {nest: copy.copy(nest) for nest in nests}
    plan.sizes = {x.buffer: x.buffer.size for nest in nests for x in nest.accesses}
    cut(nests)
    for is_nest, run in groupby(steps, key=lambda step: isinstance(step, Nest)):
        for part in _fused(run, plan) if is_nest else run:  # type: ignore[arg-type]
            plan.add(part)
    return plan


def _fused(nests: Iterable[Nest], plan: LoopSchedule) -> list[Any]:
    """The loops of all nests between two calls."""
    works = [_Work(nest) for nest in nests]
    _depend(works)
    parts = _fuse(_just_in_time(works), plan.on_gpu)
    plan.loops |= {work.nest: work.loops for work in works}
    return parts


# Contract

_MOST_LOCAL = 1024  # numbers in an array that a function allocates itself, at most
_MOST_OF_FUNCTION = 8192  # numbers in all such arrays of a function, at most


def contract(plan: LoopSchedule, steps: list[Nest | Call]) -> None:
    """Contract storage: a buffer that is only used within one iteration gets room for one iteration."""
    users: dict[Buffer, dict[Nest, None]] = defaultdict(dict)
    outside: set[Buffer] = set()  # buffers that calls read or write, or that the error of a check shows
    for step in steps:
        if isinstance(step, Call):
            outside.update(step.buffers)
            continue
        outside.update(step.read if step.is_check else ())
        for x in step.buffers:
            users[x][step] = None
    paths_of: dict[Nest, tuple[Any, ...]] = {}  # for each nest its segment, and the loops around it
    for segment in plan.segments:
        if not isinstance(segment, Call):
            paths_of |= dict(paths([segment], (segment,)))
    room: dict[int, int] = defaultdict(lambda: _MOST_OF_FUNCTION)
    for buffer, nests in users.items():
        if not buffer.is_ours or buffer.data is not None or buffer.is_iota:
            continue
        common = [] if buffer in outside else _common([paths_of[nest] for nest in nests])
        segment, around = (common[0], common[1:]) if common else (None, [])
        if segment is not None:
            plan.inside.add(buffer)
        taken, most = plan.taken_by_threads(segment)
        for loop in sorted(around, key=lambda loop: loop in taken):
            if loop not in taken or buffer.size <= most * math.prod(loop.length for loop in taken):
                _drop_loop(plan, buffer, loop, nests)  # what is larger stays in memory, and threads share it
        in_array = any(nest.product or x.via is not None for nest, x in _uses(buffer, nests))
        if buffer.size == 1 and segment is not None and not in_array:
            plan.variables.add(buffer)
            continue
        plan.work[buffer] = buffer.size
        is_small = buffer.size <= min(_MOST_LOCAL, room[id(segment)])
        if isinstance(segment, list) and is_small and not plan.on_gpu:
            room[id(segment)] -= buffer.size
            plan.local.add(buffer)


def _uses(buffer: Buffer, nests: Iterable[Nest]) -> list[tuple[Nest, Access]]:
    """The accesses of nests to a buffer."""
    return [(nest, x) for nest in nests for x in nest.accesses if x.buffer is buffer]


def _common(paths: list[tuple[Any, ...]]) -> list[Any]:
    """The longest common prefix of the paths."""
    levels = zip(*paths, strict=False)
    return [level[0] for level in takewhile(lambda level: all(x is level[0] for x in level), levels)]


def _drop_loop(plan: LoopSchedule, buffer: Buffer, loop: Loop, nests: Iterable[Nest]) -> None:
    """Leave room in a buffer for one iteration of a loop, if all accesses to it are in step there."""
    uses = [(x, plan.loops[nest].index(loop), nest.shape) for nest, x in _uses(buffer, nests)]
    first, first_axis, _ = uses[0]
    stride, n = first.strides[first_axis], loop.length
    if not stride or not all(_in_step(*uses[0], *use) for use in uses):
        return
    whole = stride * n

    def shorter(x: Access, axis: int) -> Access:
        if x.buffer is not buffer:
            return x
        strides = tuple(0 if i == axis else s // n if s >= whole else s for i, s in enumerate(x.strides))
        offset = x.offset // whole * stride + x.offset % stride
        return x._replace(strides=strides, offset=offset, step=x.step // n if x.step >= whole else x.step)

    for nest in nests:
        nest.change(partial(shorter, axis=plan.loops[nest].index(loop)))
    buffer.size //= n
