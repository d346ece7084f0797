"""Pictures of CUDA kernels: which thread reads and writes which element."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .arrays import shown
from .kernel_recording import Access, KernelTrace, trace_kernel
from .look import BLUE, FAINT, GREY, INK, MAGENTA, ORANGE, PALE_GREY, PALE_RED, PAPER, QUIET, RED
from .sketch import SMALL, Sketch, text_width

__all__ = ["kernel_trace"]

Shape = tuple[int, ...]
Key = tuple[str, Shape | None]  # an array's name, and the block whose it is if it is shared

CELL = 18.0  # points
GAP = 46.0  # between memory and threads: where the lines are
MOST_LINES = 170  # with more only one thread's are drawn
MOST_LINES_OF_MATRICES = 8  # they cross other cells
MOST_PHASES = 7
MOST_DRAWN = 32  # threads side by side
MOST_IN_ROW = 24  # threads of a block, elements of a row
MOST_ROWS = 8
MOST_SAID = 3  # mistakes written out

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
    below are those of all threads. You need no graphics card; see `trace_kernel`.

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


def _lines(accesses: Sequence[Access]) -> int:
    """How many lines it takes to draw them."""
    return len(set(accesses))


@dataclass
class _Memory:
    """An array as it is drawn at one height: which of its rows and columns, and where."""

    key: Key  # name, and the block whose it is if it is shared
    shape: Shape
    rows: list[int | None]
    columns: list[int | None]
    outside: list[Shape] = field(default_factory=list)  # indices that were refused
    used: dict[Shape, str] = field(default_factory=dict)  # what the lines do with an element
    x: float = 0.0
    y: float = 0.0

    @property
    def name(self) -> str:
        return self.key[0].removeprefix("shared ")

    @property
    def width(self) -> float:
        return self.start - self.x + (len(self.columns) + 1.3 * len(self.outside)) * CELL

    @property
    def start(self) -> float:
        """Where the cells begin, right of the name."""
        return self.x + text_width(self.name, SMALL, True) + 5

    @property
    def height(self) -> float:
        return len(self.rows) * CELL

    def flat(self, index: Shape) -> tuple[int, int]:
        """Row and column: all axes but the last are one."""
        row = np.ravel_multi_index(index[:-1], self.shape[:-1]) if len(index) > 1 else 0
        return int(row), index[-1] if index else 0

    def index(self, row: int, column: int) -> Shape:
        """The index of the element in a row and column: what `flat` undoes."""
        leading = np.unravel_index(row, self.shape[:-1]) if len(self.shape) > 1 else ()
        return (*map(int, leading), column) if self.shape else ()

    def at(self, index: Shape, below: bool) -> tuple[float, float] | None:
        """Where a line meets a cell, at its lower or upper edge; None where it is not drawn."""
        if index in self.outside:
            x = self.start + (len(self.columns) + 0.8 + 1.3 * self.outside.index(index)) * CELL
            return x, self.y + (CELL if below else 0)
        row, column = self.flat(index)
        if row not in self.rows or column not in self.columns:
            return None
        r, c = self.rows.index(row), self.columns.index(column)
        deep = 0.5 if len(self.rows) > 1 and 0 < r + below < len(self.rows) else float(below)
        return self.start + (c + 0.5) * CELL, self.y + (r + deep) * CELL


class _Picture:
    """A trace on its way to a sketch."""

    def __init__(self, trace: KernelTrace, thread: tuple[Any, Any] | None):
        self.trace = trace
        self.sketch = Sketch()
        self.everything = [*trace.accesses, *trace.out_of_bounds]
        self.refused = set(trace.out_of_bounds)
        self.races = {(race.first.memory, race.index) for race in trace.races}
        self.only = None if thread is None else _followed(thread, trace)
        flat = trace.block[1:] == (1, 1) and all(len(shape) < 2 for shape in trace.shapes.values())
        self.most_lines = MOST_LINES if flat else MOST_LINES_OF_MATRICES
        self.columns = min(trace.block[0], MOST_IN_ROW + 1)
        self.blocks = [self.only[0]] if self.only else self._first_blocks()
        visible = [a for a in self.everything if a.block in self.blocks]
        if self.only is None and _lines(visible) > self.most_lines:  # follow the busiest thread
            busy = Counter(a.thread for a in visible if a.block == self.blocks[0])
            self.only = (self.blocks[0], max(trace.threads, key=lambda thread: busy[thread]))
        self.busy = {(a.block, a.thread, a.phase) for a in visible}
        self.visible = visible
        self.lined = [a for a in visible if self.only in (None, (a.block, a.thread))]

    def _first_blocks(self) -> list[Shape]:
        """As many as have room, with all their lines."""
        room = max(1, MOST_DRAWN // self.columns)
        for count in range(min(room, len(self.trace.blocks)), 1, -1):
            some = self.trace.blocks[:count]
            if _lines([a for a in self.everything if a.block in some]) <= self.most_lines:
                return some
        return self.trace.blocks[:1]

    # From top to bottom: memory, threads, memory, threads, …, memory

    def draw(self, ax: Axes | None) -> Axes:
        trace, sketch = self.trace, self.sketch
        phases = shown(trace.phases, MOST_PHASES)
        self.levels = levels = [self._level(*around) for around in pairwise([None, *phases, None])]
        self._place(levels)
        heights = []
        y = 26.0
        for k, phase in enumerate(phases):
            y = self._draw_level(levels[k], y, first=k == 0)
            y += GAP if levels[k] and phase is not None else 22.0
            heights.append(y)
            if k and phase is not None:
                sketch.text(0, y + 8, "barrier", size=SMALL, colour=MAGENTA, bold=True)
            if phase is None:
                sketch.text(MARGIN, y, f"… {trace.phases - len(phases) + 1} more phases …", colour=QUIET)
                y += 22.0
                continue
            y = self._draw_threads(phase, y) + (GAP if levels[k + 1] else 12.0)
        self._draw_level(levels[-1], y, first=False)
        for k, phase in enumerate(phases):
            if phase is not None:
                self._draw_lines(phase, heights[k], levels[k], levels[k + 1])
        self._legend()
        self._say()
        blocks = f"{_times(trace.grid)} block{'s' * (trace.grid != (1, 1, 1))}"
        threads = f"{_times(trace.block)} thread{'s' * (trace.block != (1, 1, 1))}"
        return sketch.on(ax, f"{trace.name}: {blocks} of {threads}")

    def _level(self, above: int | None, below: int | None) -> list[_Memory]:
        """The memory that one phase writes and the next one reads."""
        used = {
            a.memory
            for a in self.visible
            if (a.phase == above and a.kind != "read") or (a.phase == below and a.kind == "read")
        }
        order = list(self.trace.shapes)
        keys = sorted(used, key=lambda key: (order.index(key[0]), key[1] or ()))
        return [self._memory(key, above, below) for key in keys]

    def _memory(self, key: Key, above: int | None, below: int | None) -> _Memory:
        shape = self.trace.shapes[key[0]]
        memory = _Memory(key, shape, [], [])
        touched, outside = set(), []
        for access in self.lined:
            if access.memory != key:
                continue
            here = access.phase == (below if access.kind == "read" else above)
            if access not in self.refused:
                touched.add(memory.flat(access.index))
                if here and memory.used.get(access.index, "read") == "read":
                    memory.used[access.index] = access.kind
            elif here:
                outside.append(access.index)
        rows, columns = math.prod(shape[:-1]), shape[-1] if shape else 1
        memory.rows = shown(rows, MOST_ROWS, {r for r, _ in touched} if rows > MOST_ROWS else ())
        most = MOST_IN_ROW if rows == 1 else MOST_ROWS
        memory.columns = shown(columns, most, {c for _, c in touched} if columns > most else ())
        memory.outside = list(dict.fromkeys(outside))[:3]
        return memory

    def _place(self, levels: list[list[_Memory]]) -> None:
        """Where blocks and arrays are from left to right."""
        widths = []
        for block in self.blocks:
            own = [[m for m in level if m.key[1] == block] for level in levels]
            widths.append(max(self.columns * CELL, 48.0, *(_room(memories, 10) for memories in own)) + 20)
        blocks = sum(widths) + 16 * (len(widths) - 1)
        shared_by_all = [[m for m in level if m.key[1] is None] for level in levels]
        canvas = max(blocks, *(_room(memories, 26) for memories in shared_by_all))
        x = MARGIN + (canvas - blocks) / 2
        self.left: dict[Shape, tuple[float, float]] = {}
        for block, width in zip(self.blocks, widths, strict=True):
            self.left[block] = (x, width)
            for level in levels:
                _spread([m for m in level if m.key[1] == block], x, width, 10)
            x += width + 16
        for memories in shared_by_all:
            _spread(memories, MARGIN, canvas, 26)

    def _draw_level(self, level: list[_Memory], y: float, first: bool) -> float:
        """The arrays at one height; the height below them."""
        shared = [m for m in level if m.key[1] is not None]
        common = [m for m in level if m.key[1] is None]
        for memories in (common, shared) if first else (shared, common):
            if memories:
                for memory in memories:
                    memory.y = y
                    self._draw_memory(memory)
                y += max(m.height for m in memories) + 10
        return y - 10 if level else y

    def _draw_memory(self, memory: _Memory) -> None:
        pale = PALE_GREY if memory.key[1] is None else SHARED
        self.sketch.text(memory.x, memory.y + CELL / 2, memory.name, size=SMALL, bold=True, colour=GREY)
        for r, row in enumerate(memory.rows):
            for c, column in enumerate(memory.columns):
                x, y = memory.start + c * CELL, memory.y + r * CELL
                if row is None or column is None:
                    self.sketch.text(
                        x + CELL / 2, y + CELL / 2, "…", size=SMALL, colour=QUIET, anchor="center"
                    )
                    continue
                index = memory.index(row, column)
                race = (memory.key, index) in self.races
                self.sketch.box(
                    *(x, y, CELL, CELL),
                    PALE_RED if race else USED.get(memory.used.get(index, ""), pale),
                    RED if race else "#98A2B3",
                    words=",".join(map(str, index)) or "·",
                    size=SMALL if len(index) < 2 else 5.5,
                    colour=RED if race else INK,
                    bold=race,
                    thick=1.6 if race else 0.7,
                    layer=3 if race else 2,
                    gid="race" if race else "cell",
                )
        for place, index in enumerate(memory.outside):
            x = memory.start + (len(memory.columns) + 0.3 + 1.3 * place) * CELL
            self.sketch.box(
                *(x, memory.y, CELL, CELL, PAPER, RED),
                words=",".join(map(str, index)),
                size=SMALL if len(index) < 2 else 5.5,
                colour=RED,
                dashed=True,
                gid="outside",
            )

    def _threads(self) -> tuple[list[int | None], list[int | None]]:
        """Rows (y and z as one) and columns (x) of a block's threads that are drawn."""
        across, down, deep = self.trace.block
        keep = (self.only[1][0],) if self.only else ()
        rows = (self.only[1][1] + down * self.only[1][2],) if self.only else ()
        return shown(down * deep, MOST_ROWS, rows), shown(across, MOST_IN_ROW, keep)

    def _thread_at(self, block: Shape, thread: Shape) -> tuple[float, float] | None:
        """The upper left corner of a thread, measured from the top of the row of threads."""
        rows, columns = self._threads()
        row = thread[1] + self.trace.block[1] * thread[2]
        if row not in rows or thread[0] not in columns:
            return None
        left, width = self.left[block]
        x = left + (width - len(columns) * CELL) / 2
        return x + columns.index(thread[0]) * CELL, 14 + rows.index(row) * CELL

    def _draw_threads(self, phase: int, y: float) -> float:
        """A row of blocks with their threads; the height below it."""
        rows, columns = self._threads()
        height = 14 + len(rows) * CELL + 5
        name = f"phase {phase + 1}" if self.trace.phases > 1 else "threads"
        self.sketch.text(0, y + 14 + CELL / 2, name, size=SMALL, colour=QUIET)
        for block in self.blocks:
            left, width = self.left[block]
            self.sketch.box(left, y, width, height, "#FAFBFD", "#D5DAE3", rounded=5, layer=1.6)
            number = _numbers(block, self.trace.grid)
            self.sketch.text(left + 6, y + 7, f"block {number}", size=6, colour=QUIET, ground="#FAFBFD")
            for thread in self.trace.threads:
                place = self._thread_at(block, thread)
                if place is None:
                    continue
                works = (block, thread, phase) in self.busy
                axes = 3 if self.trace.block[2] > 1 else 2 if self.trace.block[1] > 1 else 1
                followed = self.only == (block, thread)
                self.sketch.box(
                    *(place[0] + 1, y + place[1] + 1, CELL - 2, CELL - 2),
                    "#FFE3B8" if followed else "#FFFFFF" if works else PALE_GREY,
                    ORANGE if followed else GREY if works else FAINT,
                    words=",".join(map(str, thread[:axes])),
                    size=SMALL if axes == 1 else 5.5,
                    colour=INK if works else "#98A2B3",
                    rounded=7,
                    gid="busy" if works else "idle",
                )
            for c, column in enumerate(columns):
                if column is None:
                    x = left + (width - len(columns) * CELL) / 2 + c * CELL
                    self.sketch.text(x + 4, y + 14 + CELL / 2, "…", colour=QUIET, size=SMALL)
        return y + height

    def _draw_lines(self, phase: int, y: float, above: list[_Memory], below: list[_Memory]) -> None:
        """Between the threads of a phase and the memory around them; in matrices to the middle of a cell."""
        for access in dict.fromkeys(a for a in self.lined if a.phase == phase):
            refused = access in self.refused
            reads = access.kind == "read"
            memory = next((m for m in (above if reads else below) if m.key == access.memory), None)
            cell = memory.at(access.index, below=reads) if memory else None
            corner = self._thread_at(access.block, access.thread)
            if cell is None or corner is None:
                continue
            thread = (corner[0] + CELL / 2, y + corner[1] + (1 if reads else CELL - 1))
            self.sketch.line(
                *((cell, thread) if reads else (thread, cell)),
                RED if refused else LINES[access.kind],
                thick=1.1 if self.only else 0.9,
                alpha=0.9 if self.only else 0.7,
                dashed=refused,
                arrow=self.only is not None,
                layer=1.8 if self.most_lines == MOST_LINES else 4,
                gid=access.kind,
            )

    def _legend(self) -> None:
        kinds = {access.kind for access in self.lined}
        x = MARGIN
        words = {"read": "reads", "write": "writes", "atomic": "atomic changes"}
        for kind, word in words.items():
            if kind in kinds:
                self.sketch.line((x, 6), (x + 16, 6), LINES[kind], thick=1.6)
                x += 20 + self.sketch.text(x + 20, 6, word, size=8, colour=LINES[kind]) + 14
        if any(memory.key[1] is not None for level in self.levels for memory in level):
            self.sketch.box(x, 1, 10, 10, SHARED, "#98A2B3", thick=0.7)
            x += 14 + self.sketch.text(x + 14, 6, "shared", size=8, colour=QUIET) + 14
        if self.only is not None:
            block = _numbers(self.only[0], self.trace.grid)
            thread = _numbers(self.only[1], self.trace.block)
            words_ = f"lines of thread {thread} of block {block} only"
            x += self.sketch.text(x, 6, words_, size=8, colour="#B45309", bold=True) + 14
        if len(self.blocks) < len(self.trace.blocks):
            drawn = f"{len(self.blocks)} of {len(self.trace.blocks)} blocks drawn"
            self.sketch.text(x, 6, drawn, size=8, colour=QUIET)

    def _say(self) -> None:
        """Counts, and what went wrong."""
        y = self.sketch.bottom + 20
        for line in self.trace.traffic():
            self.sketch.text(0, y, line, size=8, colour=GREY)
            y += 13
        races = [f"race at {race}" for race in self.trace.races]
        for wrong, what in ((self.trace.refusals(), "out of bounds"), (races, "races")):
            more = [f"… and {len(wrong) - MOST_SAID} more {what}"] if len(wrong) > MOST_SAID else []
            for line in wrong[:MOST_SAID] + more:
                self.sketch.text(0, y, line, size=8, colour=RED, bold=line not in more)
                y += 13


def _room(memories: list[_Memory], gap: float) -> float:
    """How wide arrays side by side are. One alone has its cells, not its name, in the middle."""
    if len(memories) == 1:
        return 2 * memories[0].width - len(memories[0].columns) * CELL
    return sum(m.width + gap for m in memories) - gap


def _spread(memories: list[_Memory], left: float, width: float, gap: float) -> None:
    """Arrays side by side, in the middle of the room that there is."""
    x = left + (width - sum(m.width + gap for m in memories) + gap) / 2
    if len(memories) == 1:  # its cells in the middle, its name to the left of that
        x -= (memories[0].start - memories[0].x) / 2
    for memory in memories:
        memory.x = x
        x += memory.width + gap


def _numbers(place: Shape, size: Shape) -> str:
    """A place as one writes it where there are so many: "3", "3, 0"."""
    return ", ".join(map(str, place[: len(_times(size).split(" × "))]))


def _times(size: Shape) -> str:
    """(x, y, z) as one writes it: "4", "4 × 2"."""
    while len(size) > 1 and size[-1] == 1:
        size = size[:-1]
    return " × ".join(map(str, size))
