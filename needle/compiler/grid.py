"""Grid: which loops of a schedule become threads of a GPU.

A GPU has thousands of threads, and all run the same function, the kernel. Each outermost loop of the schedule
becomes a kernel. If its iterations do not depend on each other, the loop is parallel, and each thread takes
one iteration. If its body is just another parallel loop, each thread takes one iteration of both, and so on.
``relu(x @ W + b)``, for 10 rows and W of shape (2, 8), has such loops over i and j, so 80 threads compute it
(`taken`).

What a thread computes is a *row*, such as a row of a softmax. If the row is long, several threads compute it
together: they share the iterations of its loops. Such a loop is a `Band`, together with the loop that is its
whole body, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from .lower import Access, Nest
from .schedule import Loop, LoopSchedule, nests_in, paths

__all__ = ["Band", "Grid", "goes_across", "is_for_device", "parts_of", "taken"]

SHARED = 8  # iterations of a loop that threads share, at least
LONG = 1 << 14  # numbers of a total that one block of threads computes, at most
_MANY = 1 << 14  # rows for one thread each, at least, if neighbouring numbers are of different rows
_MOST_OF_THREAD = 256  # numbers in an array that a thread keeps for itself, at most


def taken(segment: Any) -> list[Loop]:
    """The loops whose iterations become threads: perfectly nested parallel loops, the outermost first."""
    loops = [segment] if isinstance(segment, Loop) and segment.is_parallel else []
    while loops and len(body := loops[-1].body) == 1 and isinstance(body[0], Loop) and body[0].is_parallel:
        loops.append(body[0])
    return loops


def parts_of(segment: Any) -> list[Any]:
    """The loops and nests of a row. If threads take no loops of a segment, all of it is one row."""
    loops = taken(segment)
    return loops[-1].body if loops else segment if isinstance(segment, list) else []


class Band(NamedTuple):
    """Perfectly nested loops inside a row, whose iterations threads share."""

    loops: list[Loop]
    totals: list[Nest]  # statements that reduce all numbers to one; others write an element in each iteration

    @property
    def length(self) -> int:
        """How many iterations there are."""
        return math.prod(loop.length for loop in self.loops)


@dataclass
class Grid(LoopSchedule):
    """A schedule for a GPU: each segment is one kernel."""

    on_gpu: ClassVar[bool] = True
    bands: dict[Loop, Band] = field(default_factory=dict)  # of all segments, by the first loop of each

    def add(self, part: Any) -> None:
        """Append what a part is split into, and find its bands while storage has its whole size."""
        for piece in self._split(part):
            super().add(piece)
            self.bands |= self._bands(self.segments[-1])

    def stands_alone(self, part: Any) -> bool:
        """Whether a part is a kernel of its own. Short totals are not: one block computes several."""
        return part.product if isinstance(part, Nest) else not is_one_total(part) or is_for_device(part)

    def _bands(self, segment: Any) -> dict[Loop, Band]:
        """The bands of a row; none if one thread computes it."""
        found = {part: self._band_of(part) for part in parts_of(segment) if isinstance(part, Loop)}
        bands = {part: band for part, band in found.items() if band is not None}
        loops = taken(segment)
        if not loops:
            return bands
        longest = max((band.length for band in bands.values()), default=0)
        has_rows = math.prod(x.length for x in loops) >= _MANY and goes_across(bands.values(), loops, self)
        return {} if len(bands) < len(found) or longest < SHARED or has_rows else bands

    def _band_of(self, loop: Loop) -> Band | None:
        """The nested loops, from this one inwards, that threads can share; None if they cannot share it."""
        totals = []
        for nest, around in paths([loop]):
            if not self.writes_own(nest, loop):
                moves = any(nest.out.strides[self.loops[nest].index(x)] for x in around)
                if nest.fold is None or nest.out.via is not None or moves:
                    return None
                totals.append(nest)
        loops = [loop]
        while len(body := loops[-1].body) == 1 and isinstance(body[0], Loop):
            if any(self.writes_own(nest, body[0]) == (nest in totals) for nest in nests_in([loop])):
                break
            loops.append(body[0])
        return Band(loops, totals)

    def taken_by_threads(self, segment: Any) -> tuple[list[Loop], int]:
        """The loops of a segment whose iterations become threads, and how many numbers a thread can keep."""
        shares = any(part in self.bands for part in parts_of(segment))
        return taken(segment), 1 if shares else _MOST_OF_THREAD

    def _split(self, part: Any, is_taken: bool = True) -> list[Any]:
        """Split a loop into several (loop fission), so that more threads have work.

        Iterations depend on each other only through totals, so ``for i: A; B`` is equivalent to ``for i: A``
        followed by ``for i: B``. The split pays if A is a loop over rows, because its iterations become
        threads too. Inside a row, it pays if A and B are loops, because threads then share the iterations of
        both.
        """
        if not isinstance(part, Loop):
            return [part]
        is_taken &= part.is_parallel
        several = len(part.body) > 1
        if not is_taken and several and not all(isinstance(inner, Loop) for inner in part.body):
            return [part]
        bodies: list[list[Any]] = []
        ends = True  # whether the next part begins a new loop
        for inner in part.body:
            alone = not is_taken or (_has_rows(inner) if several else bool(taken(inner)))
            pieces = self._split(inner, is_taken and alone)
            if alone:
                bodies += [[piece] for piece in pieces]
            elif ends:
                bodies.append(pieces)
            else:
                bodies[-1] += pieces
            ends = alone
        found = [Loop(part.length, body=body) for body in bodies]
        for loop in found:
            for nest in nests_in([loop]):
                self.loops[nest] = [loop if x is part else x for x in self.loops[nest]]
            loop.is_parallel = all(self.writes_own(nest, loop) for nest in nests_in([loop]))
        return found


def is_one_total(part: Any) -> bool:
    """Whether a part is a loop that only reduces many numbers to one."""
    nest, *others = nests_in([part])
    is_total = nest.fold is not None and nest.out.via is None and not any(nest.out.strides)
    return isinstance(part, Loop) and is_total and not others


def is_for_device(part: Any) -> bool:
    """Whether the device's own kernel does better: a product, or a total that needs more than one block."""
    if isinstance(part, Nest):
        return part.product
    nest = next(nests_in([part]))
    x = nest.reads[0]
    is_plain = nest.function == "copy" and isinstance(x, Access) and x.via is None
    same_type = is_plain and x.buffer.dtype == nest.out.buffer.dtype
    return same_type and is_one_total(part) and math.prod(nest.shape) > LONG


def _has_rows(part: Any) -> bool:
    """Whether a part is a parallel loop that contains loops, and not only statements."""
    loops = taken(part)
    return bool(loops) and any(isinstance(x, Loop) for x in loops[-1].body)


def goes_across(bands: Iterable[Band], loops: list[Loop], plan: LoopSchedule) -> bool:
    """Whether neighbouring numbers in memory belong to different rows, for most accesses."""
    points = 0
    for band in bands:
        for nest in nests_in([band.loops[-1]]):
            for x in nest.accesses:
                steps = {loop: abs(step) for loop, step in zip(plan.loops[nest], x.strides, strict=True)}
                along = min(steps[loop] or math.inf for loop in band.loops)
                across = min((steps[loop] or math.inf for loop in loops), default=math.inf)
                points += (across < along) - (along < across)
    return points > 0
