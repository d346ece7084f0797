"""Pictures of CUDA kernels: which thread reads and writes which element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..text import counted
from .cells import fitting, in_a_cell, shown
from .kernel_recording import KernelTrace, ThreadAccess, trace_kernel
from .look import BLUE, FAINT, GREY, INK, MAGENTA, ORANGE, PALE_GREY, PALE_RED, PAPER, QUIET, RED
from .sketch import SMALL, Sketch, text_width

__all__ = ["kernel_trace"]

Shape = tuple[int, ...]
Point = tuple[float, float]
Key = tuple[str, Shape | None]  # an array's name, and the block whose it is if it is shared

CELL = 22.0  # points
BETWEEN = 18.0  # between arrays side by side
GAP = 46.0  # between memory and threads: where the lines are
MOST_LINES = 170  # with more only one thread's are drawn
MOST_LINES_OF_MATRICES = 8  # they cross other cells
MOST_PHASES = 7
MOST_DRAWN = 32  # threads side by side
MOST_IN_ROW = 24  # threads of a block, elements of a row
MOST_ROWS = 8
MOST_SAID = 3  # mistakes written out
NARROW = 260.0  # points: what fits on a telephone

LINES = {"read": BLUE, "write": ORANGE, "atomic": MAGENTA}
USED = {"read": "#D5E4FC", "write": "#FFE6C4", "atomic": "#F5D9EA"}
SHARED = "#F6ECF9"
MARGIN = 62.0  # left of everything: what a row is


def kernel_trace(
    kernel: Callable | KernelTrace,
    grid: Any = None,
    block: Any = None,
    *args: Any,
    thread: tuple[Any, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw which thread of a CUDA kernel reads and writes which element, by running it in Python.

    Time runs down: each row of threads reads from the memory above it (blue) and writes to the memory below
    it (orange; atomic changes magenta). A barrier, ``cuda.syncthreads()``, begins a new row. Threads that
    touch no memory are grey. An access outside an array is refused and drawn in red, and so is an element at
    which threads race. Of a large launch you see the first blocks, or the lines of one thread; the counts
    below are those of all threads. You need no GPU; see `trace_kernel`.

    Parameters
    ----------
    kernel : callable or KernelTrace
        Under ``@cuda.jit`` or not, or what `trace_kernel` returned.
    grid, block : int or tuple of up to three
        How many blocks, and threads in each: ``kernel[grid, block](*args)``.
    *args : array, Tensor or number
        The kernel's arguments. Arrays are not changed.
    thread : (blockIdx, threadIdx), optional
        Draw the lines of this thread only; each a number or a tuple of up to three.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> @cuda.jit
    ... def add(out, a, b):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = a[i] + b[i]
    >>> viz.kernel_trace(add, 2, 4, np.zeros(6), np.ones(6), np.ones(6))
    """
    if isinstance(kernel, KernelTrace):
        if grid is not None or block is not None or args:
            raise TypeError("kernel_trace: a KernelTrace has run already; give it alone")
        trace = kernel
    else:
        trace = trace_kernel(kernel, grid, block, *args)
    return _Picture(trace, thread).draw(ax)


def _followed(thread: Any, trace: KernelTrace) -> tuple[Shape, Shape]:
    """Block and thread as (x, y, z), if the launch has them."""
    if not isinstance(thread, (tuple, list)) or len(thread) != 2:
        raise TypeError(f"kernel_trace: thread: needs (blockIdx, threadIdx), got {thread!r}")
    found = []
    for name, given, places in zip(("block", "thread"), thread, (trace.blocks, trace.threads), strict=True):
        place = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        place += (0,) * (3 - len(place))
        if place not in places:
            raise IndexError(f"kernel_trace: thread: there is no {name} {given!r}, the last is {places[-1]}")
        found.append(place)
    return found[0], found[1]


@dataclass
class _Memory:
    """An array as it is drawn at one height: which of its rows and columns, and where."""

    key: Key
    rows: list[Shape | None]  # each an index without its last number; None is a gap
    columns: list[int | None]
    outside: list[Shape]  # indices that were refused
    used: dict[Shape, str]  # what the lines do with an element
    values: dict[Shape, Any]  # what is in an element, where that is known
    x: float = 0.0
    meet: dict[Shape, tuple[list[Point], list[Point]]] = field(default_factory=dict)
    """The way from the upper edge of the array to a cell, and from the cell to the lower edge."""

    @property
    def name(self) -> str:
        return self.key[0].removeprefix("shared ")

    @property
    def start(self) -> float:
        """Where the cells begin, right of the name."""
        return self.x + text_width(self.name, SMALL, True) + 5

    @property
    def width(self) -> float:
        return self.start - self.x + (len(self.columns) + 1.3 * len(self.outside)) * CELL


class _Picture:
    """A trace on its way to a sketch."""

    def __init__(self, trace: KernelTrace, thread: tuple[Any, Any] | None):
        self.trace, self.sketch = trace, Sketch()
        self.everything = [*trace.accesses, *trace.out_of_bounds]
        self.refused = set(trace.out_of_bounds)
        self.races = {(race.first.memory, race.index) for race in trace.races}
        self.only = None if thread is None else _followed(thread, trace)
        self.flat = trace.block[1:] == (1, 1) and all(len(shape) < 2 for shape in trace.shapes.values())
        most_lines = MOST_LINES if self.flat else MOST_LINES_OF_MATRICES
        if self.only:
            self.blocks = [self.only[0]]
        else:  # as many as have room, with all their lines
            room = max(1, MOST_DRAWN // min(trace.block[0], MOST_IN_ROW + 1))
            self.blocks = trace.blocks[:room]
            while len(self.blocks) > 1 and len(set(self._visible())) > most_lines:
                self.blocks.pop()
        self.visible = self._visible()
        if self.only is None and len(set(self.visible)) > most_lines:  # follow the busiest thread
            busy = Counter(a.thread for a in self.visible)
            self.only = (self.blocks[0], max(trace.threads, key=lambda thread: busy[thread]))
        self.lined = [a for a in self.visible if self.only in (None, (a.block, a.thread))]
        self._choose_threads()

    def _visible(self) -> list[ThreadAccess]:
        return [a for a in self.everything if a.block in self.blocks]

    def _choose_threads(self) -> None:
        """Which rows (y and z as one) and columns (x) of a block's threads are drawn."""
        across, down, deep = self.trace.block
        keep, row = (
            ((self.only[1][0],), (self.only[1][1] + down * self.only[1][2],)) if self.only else ((), ())
        )
        self.rows, self.columns = shown(down * deep, MOST_ROWS, row), shown(across, MOST_IN_ROW, keep)
        self.corners: dict[tuple, tuple[float, float]] = {}  # of a block's thread in a phase

    # From top to bottom: memory, threads, memory, threads, …, memory

    def draw(self, ax: Axes | None) -> Axes:
        trace, sketch = self.trace, self.sketch
        phases = shown(trace.phases, MOST_PHASES)
        levels = [self._level(*around) for around in pairwise([None, *phases, None])]
        self._place(levels)
        y = 26.0 if self.only is None else 40.0
        for k, phase in enumerate(phases):
            y = self._draw_level(levels[k], y, first=k == 0)
            y += GAP if levels[k] and phase is not None else 22.0
            if phase is None:
                sketch.text(MARGIN, y, f"… {trace.phases - len(phases) + 1} more phases …", colour=QUIET)
                y += 22.0
                continue
            if k:
                sketch.text(0, y + 8, "barrier", size=SMALL, colour=MAGENTA, bold=True)
            y = self._draw_threads(phase, y) + (GAP if levels[k + 1] else 12.0)
        self._draw_level(levels[-1], y, first=False)
        for phase, above, below in zip(phases, levels[:-1], levels[1:], strict=True):
            self._draw_lines(phase, above, below)
        self._legend(any(memory.key[1] for level in levels for memory in level))
        said = self._say()
        blocks = f"{_times(trace.grid)} block{'s' * (trace.grid != (1, 1, 1))}"
        threads = f"{_times(trace.block)} thread{'s' * (trace.block != (1, 1, 1))}"
        ax = sketch.on(ax, f"{trace.name}: {blocks} of {threads}")
        words = [str(ax.get_label()), *(line for line, _ in said)]
        ax.set_label("; ".join(words))  # for those who do not see it
        return ax

    def _level(self, above: int | None, below: int | None) -> list[_Memory]:
        """The memory that one phase writes and the next one reads."""

        def here(access: ThreadAccess) -> bool:
            return access.phase == (below if access.kind == "read" else above)

        order = list(self.trace.shapes)
        keys = {a.memory for a in self.visible if here(a)}
        return [
            self._memory(key, [a for a in self.lined if here(a) and a.memory == key], above, below)
            for key in sorted(keys, key=lambda key: (order.index(key[0]), key[1] or ()))
        ]

    def _memory(
        self, key: Key, accesses: list[ThreadAccess], above: int | None, below: int | None
    ) -> _Memory:
        """An array, with what accesses do to it at this height."""
        shape = self.trace.shapes[key[0]]
        rows, columns = list(np.ndindex(shape[:-1])), shape[-1] if shape else 1
        touched = {a.index for a in self.lined if a.memory == key and a not in self.refused}
        most = MOST_IN_ROW if len(rows) == 1 else MOST_ROWS
        chosen = shown(
            len(rows), MOST_ROWS, {rows.index(i[:-1]) for i in touched} if len(rows) > MOST_ROWS else ()
        )
        return _Memory(
            key,
            [None if row is None else rows[row] for row in chosen],
            shown(columns, most, {i[-1] for i in touched} if columns > most else ()),
            list(dict.fromkeys(a.index for a in accesses if a in self.refused))[:3],
            # where an element is read and then written, its colour tells of the write
            {
                a.index: a.kind
                for a in sorted(accesses, key=lambda a: a.kind != "read")
                if a not in self.refused
            },
            self._values(key, below - 1 if above is None and below is not None else above, below),
        )

    def _values(self, key: Key, above: int | None, below: int | None) -> dict[Shape, Any]:
        """What the elements of an array hold between two phases."""
        known: dict[Shape, Any] = {}
        later: dict[Shape, ThreadAccess] = {}  # who comes to an element first, after this
        ever = [a for a in self.everything if a.memory == key and a.value is not None]
        for a in ever:
            if above is not None and a.phase <= above:
                known[a.index] = a.value
            elif a.phase == below and a.kind == "read":
                known.setdefault(a.index, a.value)
            else:
                later.setdefault(a.index, a)
        for index, a in later.items():
            if a.kind == "read":  # what is read there was there before
                known.setdefault(index, a.value)
        changed = {a.index for a in ever}
        after = np.ndenumerate(self.trace.arrays.get(key[0], np.empty(0)))
        # Where no thread comes, there is now what there was.
        return known | {index: value for index, value in after if index not in changed}

    def _place(self, levels: list[list[_Memory]]) -> None:
        """Where blocks and arrays are from left to right."""
        own = {block: [[m for m in level if m.key[1] == block] for level in levels] for block in self.blocks}
        common = [[m for m in level if m.key[1] is None] for level in levels]
        least = max(min(self.trace.block[0], MOST_IN_ROW + 1) * CELL, 48.0)
        widths = {block: max(least, *map(_room, rows)) + 20 for block, rows in own.items()}
        blocks = sum(widths.values()) + 16 * (len(widths) - 1)
        canvas = max(blocks, *map(_room, common))
        x = MARGIN + (canvas - blocks) / 2
        self.left: dict[Shape, tuple[float, float]] = {}
        for block, width in widths.items():
            self.left[block] = (x, width)
            for memories in own[block]:
                _spread(memories, x, width)
            x += width + 16
        for memories in common:
            _spread(memories, MARGIN, canvas)

    def _draw_level(self, level: list[_Memory], y: float, first: bool) -> float:
        """The arrays at one height, shared ones nearer to the threads; the height below them."""
        shared = [m for m in level if m.key[1] is not None]
        common = [m for m in level if m.key[1] is None]
        for memories in filter(None, (common, shared) if first else (shared, common)):
            for memory in memories:
                self._draw_memory(memory, y)
            y += max(len(m.rows) for m in memories) * CELL + 10
        return y - 10 if level else y

    def _draw_memory(self, memory: _Memory, top: float) -> None:
        pale = PALE_GREY if memory.key[1] is None else SHARED
        self.sketch.text(memory.x, top + CELL / 2, memory.name, size=SMALL, bold=True, colour=GREY)
        for (r, row), (c, column) in product(enumerate(memory.rows), enumerate(memory.columns)):
            x, y = memory.start + c * CELL, top + r * CELL
            if row is None or column is None:
                self.sketch.text(x + CELL / 2, y + CELL / 2, "…", size=SMALL, colour=QUIET, anchor="center")
                continue
            index = (*row, column)[: len(self.trace.shapes[memory.key[0]])]
            edge, lower = (
                x + CELL,
                top + len(memory.rows) * CELL,
            )  # inside a matrix lines keep to edges of cells
            down, away = [(edge, top), (edge, y)], [(edge, y + CELL), (edge, lower)]
            memory.meet[index] = (
                down if r else [(x + CELL / 2, top)],
                away if r < len(memory.rows) - 1 else [(x + CELL / 2, lower)],
            )
            if (memory.key, index) in self.races:
                look: dict[str, Any] = {"colour": RED, "bold": True, "thick": 1.6, "layer": 3, "gid": "race"}
                self._element(x, y, index, memory, PALE_RED, RED, **look)
            else:
                fill = USED.get(memory.used.get(index, ""), pale)
                self._element(x, y, index, memory, fill, "#98A2B3", thick=0.7, gid="cell")
        for place, index in enumerate(memory.outside):
            x = memory.start + (len(memory.columns) + 0.3 + 1.3 * place) * CELL
            memory.meet[index] = [(x + CELL / 2, top)], [(x + CELL / 2, top + CELL)]
            self._cell(x, top, index, PAPER, RED, colour=RED, dashed=True, gid="outside")

    def _element(
        self, x: float, y: float, index: Shape, memory: _Memory, fill: str, line: str, **look: Any
    ) -> None:
        """A square with what an element holds, and below it in small its index."""
        self.sketch.box(x, y, CELL, CELL, fill, line, **look)
        colour = {"colour": look.get("colour", INK), "bold": look.get("bold", False), "anchor": "center"}
        if index in memory.values:
            value = in_a_cell(memory.values[index])
            size = fitting(value, SMALL + 1, CELL)
            self.sketch.text(x + CELL / 2, y + CELL / 2 - 3, value, size=size, **colour)
        words = ",".join(map(str, index)) or "·"
        small = fitting(words, 5.5, CELL)
        self.sketch.text(x + CELL / 2, y + CELL - 5, words, size=small, **colour | {"colour": QUIET})

    def _cell(
        self, x: float, y: float, index: Shape, fill: str, line: str, side: float = CELL, **look: Any
    ) -> None:
        """A square with the numbers of an element or a thread."""
        words, size = ",".join(map(str, index)) or "·", SMALL if len(index) < 2 else 5.5
        self.sketch.box(x, y, side, side, fill, line, words=words, size=size, **look)

    def _draw_threads(self, phase: int, y: float) -> float:
        """A row of blocks with their threads; the height below it."""
        height = 14 + len(self.rows) * CELL + 5
        name = f"phase {phase + 1}" if self.trace.phases > 1 else "threads"
        self.sketch.text(0, y + 14 + CELL / 2, name, size=SMALL, colour=QUIET)
        axes = 3 if self.trace.block[2] > 1 else 2 if self.trace.block[1] > 1 else 1
        busy = {(a.block, a.thread) for a in self.visible if a.phase == phase}
        for block, (left, width) in self.left.items():
            self.sketch.box(left, y, width, height, "#FAFBFD", "#D5DAE3", rounded=5, layer=1.6)
            number = _numbers(block, self.trace.grid)
            self.sketch.text(left + 6, y + 7, f"block {number}", size=6, colour=QUIET, ground="#FAFBFD")
            start = left + (width - len(self.columns) * CELL) / 2
            for (r, row), (c, column) in product(enumerate(self.rows), enumerate(self.columns)):
                corner = (start + c * CELL + 1, y + 14 + r * CELL + 1)
                if row is None or column is None:
                    if r == 0:
                        self.sketch.text(corner[0] + 3, y + 14 + CELL / 2, "…", colour=QUIET, size=SMALL)
                    continue
                thread = (column, row % self.trace.block[1], row // self.trace.block[1])
                self.corners[phase, block, thread] = corner
                fill, line, colour = "#FFFFFF", GREY, INK
                if (block, thread) not in busy:
                    fill, line, colour = PALE_GREY, FAINT, "#98A2B3"
                if self.only == (block, thread):
                    fill, line = "#FFE3B8", ORANGE
                look: dict[str, Any] = {
                    "colour": colour,
                    "rounded": 7,
                    "gid": "busy" if (block, thread) in busy else "idle",
                }
                self._cell(*corner, thread[:axes], fill, line, side=CELL - 2, **look)
        return y + height

    def _draw_lines(self, phase: int | None, above: list[_Memory], below: list[_Memory]) -> None:
        """Between the threads of a phase and the memory around them."""
        for access in dict.fromkeys(a for a in self.lined if a.phase == phase):
            reads, refused = access.kind == "read", access in self.refused
            meet = next((m.meet for m in (above if reads else below) if m.key == access.memory), {})
            corner = self.corners.get((phase, access.block, access.thread))
            if access.index not in meet or corner is None:
                continue
            way = [*meet[access.index][1], *self._to_thread(corner)] if reads else []
            way = way or [*self._from_thread(corner), *meet[access.index][0]]
            for start, end in pairwise(way):
                last = end == way[-1]
                self.sketch.line(
                    start,
                    end,
                    RED if refused else LINES[access.kind],
                    thick=1.1 if self.only else 0.9,
                    alpha=0.9 if self.only else 0.7,
                    dashed=refused,
                    arrow=self.only is not None and last,
                    layer=1.8 if self.flat else 4,
                    gid=access.kind if last else None,
                )

    def _to_thread(self, corner: Point) -> list[Point]:
        """From above a block's threads to one of them: between the others, if it is not in the first row."""
        x, y = corner
        first = min(other for _, other in self.corners.values() if other > y - len(self.rows) * CELL)
        return [(x - 1, first - 2), (x - 1, y + 5)] if y > first else [(x + CELL / 2 - 1, y)]

    def _from_thread(self, corner: Point) -> list[Point]:
        """From one of a block's threads to below all of them."""
        x, y = corner
        last = max(other for _, other in self.corners.values() if other < y + len(self.rows) * CELL)
        if y < last:
            return [(x - 1, y + CELL - 7), (x - 1, last + CELL)]
        return [(x + CELL / 2 - 1, y + CELL - 2)]

    def _legend(self, shared: bool) -> None:
        x, kinds = MARGIN, {access.kind for access in self.lined}
        for kind, words in (("read", "reads"), ("write", "writes"), ("atomic", "atomic changes")):
            if kind in kinds:
                self.sketch.line((x, 6), (x + 16, 6), LINES[kind], thick=1.6)
                x += 34 + self.sketch.text(x + 20, 6, words, size=8, colour=LINES[kind])
        if shared:
            self.sketch.box(x, 1, 10, 10, SHARED, "#98A2B3", thick=0.7)
            x += 28 + self.sketch.text(x + 14, 6, "shared", size=8, colour=QUIET)
        if self.only is not None:
            block, thread = _numbers(self.only[0], self.trace.grid), _numbers(self.only[1], self.trace.block)
            followed = f"lines of thread {thread} of block {block} only"
            x = 14 + self.sketch.text(0, 20, followed, size=8, colour="#B45309", bold=True)
        if len(self.blocks) < len(self.trace.blocks):
            drawn = f"{len(self.blocks)} of {len(self.trace.blocks)} blocks drawn"
            self.sketch.text(x, 6 if self.only is None else 20, drawn, size=8, colour=QUIET)

    def _say(self) -> list[tuple[str, str]]:
        """Counts, and what went wrong: each line with its colour."""
        said = [(line, GREY) for line in self.trace.traffic()]
        races = [f"race at {race}" for race in self.trace.races]
        for wrong, what in ((self.trace.refusals(), "out of bounds"), (races, "race")):
            left_out = len(wrong) - MOST_SAID
            more = counted(left_out, "more race") if what == "race" else f"{left_out} more {what}"
            said += [(line, RED) for line in wrong[:MOST_SAID] + [f"… and {more}"] * (left_out > 0)]
        y, room = self.sketch.bottom + 20, max(self.sketch.right, NARROW)
        for line, colour in said:
            for k, row in enumerate(_rows(line, room, colour == RED)):
                self.sketch.text(8 * (k > 0), y, row, size=8, colour=colour, bold=colour == RED)
                y += 12
            y += 2
        return said


def _rows(line: str, room: float, bold: bool) -> list[str]:
    """The words of a line in rows that have room."""
    rows = [""]
    for word in line.split():
        longer = f"{rows[-1]} {word}".strip()
        if text_width(longer, 8, bold) <= room or not rows[-1]:
            rows[-1] = longer
        else:
            rows.append(word)
    return rows


def _room(memories: list[_Memory]) -> float:
    """How wide arrays side by side are. One alone has its cells, not its name, in the middle."""
    if len(memories) == 1:
        return 2 * memories[0].width - len(memories[0].columns) * CELL
    return sum(m.width + BETWEEN for m in memories) - BETWEEN


def _spread(memories: list[_Memory], left: float, width: float) -> None:
    """Arrays side by side, in the middle of the room that there is."""
    name = memories[0].start - memories[0].x if len(memories) == 1 else 0.0  # to the left of the middle
    x = left + (width - sum(m.width + BETWEEN for m in memories) + BETWEEN - name) / 2
    for memory in memories:
        memory.x = x
        x += memory.width + BETWEEN


def _numbers(place: Shape, size: Shape) -> str:
    """A place as one writes it where there are so many: "3", "3, 0"."""
    return ", ".join(map(str, place[: len(_times(size).split(" × "))]))


def _times(size: Shape) -> str:
    """(x, y, z) as one writes it: "4", "4 × 2"."""
    while len(size) > 1 and size[-1] == 1:
        size = size[:-1]
    return " × ".join(map(str, size))
