"""Kernels: loops of a schedule as the source of functions that run on a GPU.

`grid.py` has chosen the loops that become threads. So ``relu(x @ W + b)``, for 10 rows and W of shape (2, 8),
has 80 threads. Each computes one number of the result, and keeps the total for it to itself::

    def step(x, W, b, result):
        thread = cuda.grid(1)
        if thread >= 80: return
        i, j = thread // 8, thread % 8
        # MatMul, Add, ReLU
        matmul1 = float32(0)
        for k in range(2):
            matmul1 += x[2 * i + k] * W[8 * k + j]
        add1 = matmul1 + b[j]
        relu1 = relu(add1)
        result[8 * i + j] = relu1

A long row is computed by several threads together, which are its *lanes*. Of the numbers in the row, each of
32 lanes takes every 32nd. If it needs a number again, it keeps it in a register. For a total, each lane adds
up its own share, and then `warp_total` adds up the shares. What the row needs only once, all lanes compute
alike. This is the mean of each of 128 rows of 1,024 numbers::

    lane = cuda.threadIdx.x
    i = cuda.blockIdx.x * 2 + cuda.threadIdx.y
    summation1 = float32(0)
    share0 = float32(0)
    for j in range(lane, 1024, 32):
        share0 += x[1024 * i + j]
    share0 = warp_total(add, share0, 32)
    summation1 = summation1 + share0
    div1 = summation1 / float32(1024)
    if lane == 0: result[i] = div1

For a still longer row, and for a single total such as a loss, the lanes are all threads of a block. If rows
lie side by side in memory, as when columns are added up, neighbouring threads take neighbouring rows, because
a GPU fetches neighbours in one go. Anything else is computed by one thread. That is slow, but right.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from ..backend_ndarray.strides import compact_strides
from .codegen import (
    Line,
    Part,
    Writer,
    head_of,
    is_of_one_iteration,
    literal,
    rows_in,
    typed,
    used_by,
)
from .grid import Band, Grid, goes_across, parts_of, taken
from .lower import Access, Buffer, Nest, neutral
from .names import PAGE, TYPES, by_module, letter_of, wrapped
from .schedule import Loop, nests_in

_FEW = 1 << 14  # threads; fewer go in small blocks, so that more of the GPU's processors have one
_SMALL_BLOCK = 64

_MOST_OF_WARP = 32  # numbers of a row for each lane; if there are more, the lanes are a block, and not a warp

# Numbers that a lane keeps in registers: of one array, or of all that are loaded; and of all that it writes.
_MOST_OF_ARRAY, _KEPT = 32, 64

GUARD = "    if mark[0] != 0: return"
GUARD_FOR_ALL = "    if cuda.syncthreads_or(mark[0] != 0): return"  # all threads of a block decide the same


@dataclass(frozen=True, eq=False)
class KernelSource(Part):
    """The source of a kernel, and how it is launched."""

    grid: tuple[int, int | tuple[int, int]] = (0, 0)  # how many blocks there are, and threads in each
    nest: Nest | None = None  # what the device's own kernel computes, in the place of one that is written


class KernelWriter(Writer):
    """Writes the body of a kernel, for a backend module `mod`."""

    plan: Grid

    def __init__(self, plan: Grid, numbers: dict[str, tuple[str, str]], mod: Any):
        super().__init__(plan, numbers)
        self.mod = mod
        self.head: list[str] = []  # the lines that say what a thread works on
        # How many numbers a lane has in registers: of an array of the row's own, which is nowhere else; and
        # of an array in memory, which the row reads several times, and loads only once.
        self.kept: dict[Buffer, int] = {}
        self.loaded: dict[Buffer, int] = {}
        self.shared: set[np.dtype] = set()  # data types of totals that a block adds up in shared memory
        self.lanes = 1
        self.barrier = ""  # what lanes call to wait for each other
        self.rest = False  # whether some lanes have no row
        self._arrived: set[Buffer] = set()  # those of `loaded` whose numbers are in registers by now
        self._total = "", ""  # how lanes fold their shares: the kind of function, and its last arguments
        self.number = ""  # the variable that counts all iterations of nested loops; see `_index`
        self._shares: dict[Nest, str] = {}  # for each total, the variable in which a lane folds its share
        self._read: set[Buffer] = set()  # the arrays that were read since the last barrier
        self._written: set[Buffer] = set()  # and those that were written

    def is_total(self, nest: Nest) -> bool:
        """A thread adds up numbers one after the other."""
        return False

    def check(self, nest: Nest) -> str:
        """Where a check fails, the kernel sets the device's mark."""
        condition, _, _ = super().check(nest).rpartition(": return ")
        return f"{condition}: mark[0] = 1"

    def operand(self, x: Any, nest: Nest) -> str:
        """The number that a statement reads or writes. In memory, a boolean is 0 or 1."""
        if x is nest.out and nest in self._shares:
            return self._shares[nest]
        buffer = x.buffer if isinstance(x, Access) else None
        if buffer in self.kept or buffer in self._arrived:
            return f"{self.register(buffer)}[s]"
        text = super().operand(x, nest)
        is_read = text.endswith("]") and x is not nest.out
        return f"({text} != 0)" if is_read and x.buffer.dtype == np.bool_ else text

    def register(self, buffer: Any) -> str:
        """What the source calls the numbers of an array that a lane has in registers."""
        return buffer.name if buffer in self.kept else f"own_{buffer.name}"

    def value(self, nest: Nest, operands: list[str], t: str) -> str:
        """What a statement computes."""
        text = super().value(nest, operands, t)
        return f"bool({text})" if t == "bool" and nest.fold is None else text

    def writes_memory(self, nest: Nest) -> bool:
        """Whether a statement writes to memory, where other threads see it."""
        return not nest.is_check and nest.out.buffer not in self.plan.variables

    def _index(self, loops: list[Loop], depth: int, name: str, number: str = "") -> list[str]:
        """Statements that compute the variables of nested loops from one number, which counts all iterations.

        Loops that go through all arrays as one long loop have one variable. If that is the only one, it is
        the number itself; otherwise the number is called `name`.
        """
        pieces: list[list[Loop]] = []
        for loop in loops:
            if pieces and self._is_one(pieces[-1][-1], loop):
                pieces[-1].append(loop)
            else:
                pieces.append([loop])
        self.letters |= dict.fromkeys(loops, "")
        self.letters |= {piece[-1]: letter_of(depth + i) for i, piece in enumerate(pieces)}
        lengths = tuple(math.prod(loop.length for loop in piece) for piece in pieces)
        letters = [self.letters[piece[-1]] for piece in pieces]
        self.number = letters[0] if len(pieces) == 1 else name
        lines = [f"{self.number} = {number}"] if number else []
        if len(pieces) > 1:
            parts = [
                (name if step == 1 else f"{name} // {step}") + (f" % {length}" if i else "")
                for i, (length, step) in enumerate(zip(lengths, compact_strides(lengths), strict=True))
            ]
            lines.append(f"{', '.join(letters)} = {', '.join(parts)}")
        return lines

    def _is_one(self, outer: Loop, inner: Loop) -> bool:
        """Whether two loops, one inside the other, go through all arrays as one long loop would."""
        for nest in nests_in([inner]):
            first, second = (self.plan.loops[nest].index(loop) for loop in (outer, inner))
            for x in nest.accesses:
                is_stored = x.buffer not in self.plan.variables and x.buffer not in self.kept
                if is_stored and x.strides[first] != x.strides[second] * inner.length:
                    return False
        return True

    def _in_order(self, loops: list[Loop]) -> list[Loop]:
        """Sort the loops that threads take, so that neighbouring threads write to neighbouring places."""

        def steps(loop: Loop) -> tuple[int, int]:
            written, read = [0], [0]
            for nest in nests_in([loop]):
                axis = self.plan.loops[nest].index(loop)
                for x in nest.accesses:
                    if x.buffer not in self.plan.variables:
                        (written if x is nest.out else read).append(abs(x.strides[axis]))
            return max(written), max(read)

        return sorted(loops, key=steps, reverse=True)

    def _block(self, threads: int) -> int:
        """How many threads a block has, if there are so many in all."""
        return self.mod.THREADS if threads >= _FEW else min(self.mod.THREADS, _SMALL_BLOCK)

    def _width(self, rows: int) -> int:
        """How many rows a block takes side by side: none may be left over, and blocks must be enough."""
        enough, most = self.mod.gpu.gpu().processors // 2, min(self.mod.THREADS, 32)
        return max((n for n in range(1, most + 1) if rows % n == 0 and rows // n >= enough), default=1)

    # A thread for each iteration

    def write_for_threads(self, loops: list[Loop]) -> tuple[int, int]:
        """Write the body of loops, of which each thread takes one iteration; return the grid."""
        body, loops = loops[-1].body, self._in_order(loops)
        count = math.prod(loop.length for loop in loops)
        lines = self._index(loops, 0, "thread", "cuda.grid(1)")
        lines.insert(1, f"if {self.number} >= {count}: return")
        self.head = [f"    {line}" for line in lines]
        about = by_module(nests_in(body))
        fits = len(about) < PAGE - len("    # ")
        if about and fits:
            self.add(f"    # {about}")
        self.commented = -1 if fits else len(loops)
        self.without_line = len(loops)
        self.write(body, len(loops))
        block = self._block(count)
        return -(-count // block), block

    # Many threads for each row

    def write_rows(self, parts: list[Any], loops: list[Loop]) -> tuple[int, int | tuple[int, int]]:
        """Write the parts of a row, for lanes that compute it together; return the grid.

        All lanes compute the same, but they share the iterations of loops. If a statement is in no loop, only
        the first lane writes its result to memory. `loops` go over the rows; there are none if there is only
        one row.
        """
        bands = [self.plan.bands[part] for part in parts if isinstance(part, Loop)]
        longest = max((band.length for band in bands), default=0)
        rows, most, warp = math.prod(loop.length for loop in loops), self.mod.THREADS, self.mod.WARP
        power, first = self.mod.power_of_two, "cuda.blockIdx.x"
        width = self._width(rows) if loops and goes_across(bands, loops, self.plan) else 1
        grid: tuple[int, int | tuple[int, int]]
        if width > 1:
            self.lanes = min(power(longest), power(most // width + 1) // 2)
            self._total, self.barrier = ("columns", f"thread, {self.lanes}, {width}"), "syncthreads"
            first += f" * {width} + cuda.threadIdx.x"
            grid = rows // width, (width, self.lanes)
        elif loops and longest <= _MOST_OF_WARP * warp:
            self.lanes = min(warp, power(longest))
            self._total, self.barrier = ("warp", str(self.lanes)), "syncwarp"
            high = max(self._block(rows * self.lanes) // self.lanes, 1)
            first += f" * {high} + cuda.threadIdx.y"
            grid = -(-rows // high), (self.lanes, high)
            self.rest = bool(rows % high)
        else:
            self.lanes = most if bands else 1
            self._total, self.barrier = ("block", "lane"), "syncthreads"
            grid = rows, self.lanes
        if width > 1:
            head = ["lane = cuda.threadIdx.y", f"thread = {width} * lane + cuda.threadIdx.x"]
        else:
            head = ["lane = cuda.threadIdx.x"] if self.lanes > 1 else []
        if loops:
            first_row, *others = self._index(self._in_order(loops), 0, "row", first)
            head.append(first_row)
            if self.rest:  # all threads of a warp have to meet, so those without a row go along
                go_along = f"{self.number}, lane = {rows - 1}, {longest}" if self.lanes > 1 else "return"
                head.append(f"if {self.number} >= {rows}: {go_along}")
            head += others
        self.head = [f"    {line}" for line in head]
        self._keep(parts, loops)
        for part in parts:
            self.comment([part], "    ")
            self._wait(part)
            if isinstance(part, Loop):
                self._write_band(part, self.plan.bands[part], len(loops))
                continue
            start = self._once(part)
            self.add(*wrapped(start, self.statement(part).split(", "), ", ", "        "), nest=part)
            if part.is_check:
                self.add(GUARD_FOR_ALL)
        return grid

    def _write_band(self, part: Loop, band: Band, depth: int) -> None:
        """Write loops whose iterations the lanes share. At the end, lanes fold their shares of totals."""
        for nest in band.totals:
            dtype = nest.out.buffer.dtype
            self._shares[nest] = name = f"share{len(self._shares)}"
            self.add(f"    {name} = {literal(neutral(str(nest.fold), dtype), dtype)}")
        places, length, lanes = self._index(band.loops, depth, "item"), band.length, self.lanes
        index, level, each = self.number, 2, -(-length // lanes)
        uses = [(x, nest) for nest in nests_in([part]) for x in nest.accesses]
        if not any(x.buffer in self.kept or x.buffer in self.loaded for x, _ in uses):
            shared = f"lane, {length}, {lanes}" if lanes > 1 else str(length)
            self.add(f"    for {index} in range({shared}):")
        else:  # number `s` of what the lane has in registers
            self.add(f"    for s in range({each}):")
            self.add(f"        {index} = {f'{lanes} * s + lane' if lanes > 1 else 's'}")
            if each * lanes > length or self.rest:
                self.add(f"        if {index} < {length}:")
                level = 3
        indent = "    " * level
        self.add(*[f"{indent}{line}" for line in places])
        depth += len(band.loops)
        self.commented, self.without_line = -1, depth + 1 - level
        for x, nest in uses:
            if x.buffer in self.loaded and x.buffer not in self._arrived:
                read = self.operand(x, nest)
                self._arrived.add(x.buffer)
                self.add(f"{indent}{self.operand(x, nest)} = {read}")
        self.write(band.loops[-1].body, depth)
        for nest in band.totals:
            dtype, fold, share = nest.out.buffer.dtype, str(nest.fold), self._shares.pop(nest)
            (kind, threads), shown = self._total, share
            if kind != "warp":
                self.shared.add(dtype)
                shown = f"{typed('shares', dtype.name)}, {share}"
            function = typed(fold, dtype.name)
            self.add(f"    {share} = {kind}_total({function}, {shown}, {threads})")
            target = self.operand(nest.out, nest)
            both = f"{target} + {share}" if fold == "add" else f"{function}({target}, {share})"
            self.add(f"{self._once(nest)}{target} = {both}")

    def _once(self, nest: Nest) -> str:
        """How a statement in no loop begins: only the first lane writes to memory."""
        return "    if lane == 0: " if self.lanes > 1 and self.writes_memory(nest) else "    "

    def _place_of(self, x: Access, nest: Nest, part: Any, loops: list[Loop]) -> Any:
        """How lanes go through an array. If two statements do so alike, a lane meets the same numbers.

        None if several lanes may meet the same number.
        """
        band = self.plan.bands.get(part)
        steps = dict(zip(self.plan.loops[nest], x.strides, strict=True))
        inside = [steps.pop(loop) for loop in band.loops] if band else []
        outside = [steps.pop(loop) for loop in loops]
        if band is None or x.via is not None or not all(inside) or any(steps.values()):
            return None
        return x.offset, *inside, *outside, *[loop.length for loop in band.loops]

    def _keep(self, parts: list[Any], loops: list[Loop]) -> None:
        """Find arrays that lanes can keep in registers, because no two lanes meet the same number."""
        places: dict[Buffer, dict[Any, None]] = defaultdict(dict)
        users: dict[Buffer, dict[Any, None]] = defaultdict(dict)
        written = {nest.out.buffer for nest in nests_in(parts)}
        for part in parts:
            for nest in nests_in([part]):
                for x in nest.accesses:
                    places[x.buffer][self._place_of(x, nest, part, loops)] = None
                    users[x.buffer][part] = None
        own = {x for x in places if x in self.plan.inside and x in self.plan.work}
        several = {x for x in places if x not in written and not x.is_iota and len(users[x]) > 1}
        for group, registers, room in ((own, self.kept, _KEPT), (several - own, self.loaded, _MOST_OF_ARRAY)):
            for buffer in [x for x in places if x in group and len(places[x]) == 1 and None not in places[x]]:
                each = -(-self.plan.bands[next(iter(users[buffer]))].length // self.lanes)
                if each <= min(room, _MOST_OF_ARRAY):
                    registers[buffer] = each
                    room -= each

    def _wait(self, part: Any) -> None:
        """Let all lanes arrive before one reads what another wrote, or writes what another reads."""
        private = self.plan.variables | self.kept.keys()
        nests = list(nests_in([part]))
        read = {x.buffer for nest in nests for x in nest.sources} - private
        written = {nest.out.buffer for nest in nests if self.writes_memory(nest)} - private
        if written & (self._read | self._written) or read & self._written:
            if self.lanes > 1:
                self.add(f"    cuda.{self.barrier}()")
            self._read, self._written = set(), set()
        self._read |= read
        self._written |= written


def write_kernel(
    name: str, segment: Any, plan: Any, given: tuple[dict, dict], mod: Any, guarded: bool
) -> KernelSource:
    """Write a kernel.

    Parameters
    ----------
    name : str
    segment : list of Loop or Nest, or a Loop
    plan : Grid
    given : pair of dict
        The names of Numbers by their formulas; and for each data type the names that kernels need, to which
        this kernel adds its own.
    mod : module
        The backend.
    guarded : bool
        Whether it does nothing if a check has failed.
    """
    formulas, by_type = given
    used, numbers = used_by(nests_in([segment]), formulas)
    arrays = [buffer for buffer in used if buffer not in plan.variables and not buffer.is_iota]
    writer = KernelWriter(plan, numbers, mod)
    row, loops = parts_of(segment), taken(segment)
    local: dict[Buffer, int] = {}  # the sizes of arrays that each thread has for itself
    has_lanes = isinstance(segment, list) or any(part in plan.bands for part in row)
    grid: tuple[int, Any] = (1, 1)
    if has_lanes:
        grid = writer.write_rows(row, loops)
        local = writer.kept
    elif loops:
        grid = writer.write_for_threads(loops)
        local = {x: x.size for x in arrays if x.is_ours and is_of_one_iteration(x, segment, plan)}
    else:
        writer.write([segment])

    first = [GUARD_FOR_ALL if has_lanes and writer.checks else GUARD] if guarded else []
    first += writer.head
    arguments = {x.name: f"{mod.stored(x.dtype)}*" for x in arrays if x not in local}
    for text, (number, dtype) in numbers.items():
        known, array = by_type.setdefault(dtype, []), typed("numbers", dtype)
        known += [number] if number not in known else []
        note = "" if text == number else f"  # {text}"
        first.append(f"    {number} = {array}[{known.index(number)}]{note}")
        arguments[array] = f"{dtype}*"
    for buffer, size in {**local, **writer.loaded}.items():
        array = buffer.name if buffer in local else writer.register(buffer)
        first.append(f"    {array} = cuda.local.array({size}, {_type(buffer.dtype)})")
    for kind in sorted(writer.shared, key=str):
        first.append(f"    {typed('shares', kind.name)} = cuda.shared.array({mod.THREADS}, {_type(kind)})")
    if guarded:
        arguments["mark"] = "int64*"
    head = head_of(name, list(arguments))
    body = [line._replace(block=0) for line in writer.lines]
    lines, blocks = [*map(Line, [*head, *first]), *body], [list(nests_in([segment]))]
    return KernelSource(name, lines, blocks, arguments, writer.checks, grid=grid)


def _type(dtype: np.dtype) -> str:
    return "bool_" if dtype == np.bool_ else dtype.name


def function_of(kernel: KernelSource, mod: Any) -> Callable:
    """The source of a kernel as a function in Python, for a backend module `mod`."""
    names: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "wide": _same}
    names |= {name: mod.number_type(np.dtype(name.rstrip("_"))) for name in TYPES}
    names |= {name: _function_of_row(*row, mod) for name, row in rows_in(kernel.source).items()}
    found: dict[str, Any] = {}
    exec(compile(kernel.source, f"<needle {kernel.name}>", "exec"), vars(mod), found)
    return mod.filled_in(found[kernel.name], names)


def _same(x):
    """What `wide` does here: a total has the type of its numbers."""
    return x


@cache
def _function_of_row(name: str, dtype: str, mod: Any) -> Callable:
    """What a kernel calls for a row of the table; the result has the type of the operands."""
    row, number = SCALAR_FUNCTIONS[name], mod.number_type(np.dtype(dtype))
    f = mod.called_by_kernels(mod.scalar_function(row, np.dtype(dtype)))
    forms: dict[int, Callable] = {1: lambda x: number(f(x)), 2: lambda x, y: number(f(x, y))}
    return forms[row.arity]


def compile_kernel(kernel: KernelSource, mod: Any) -> Any:
    """The source of a kernel as machine code."""
    key: str | None = f"{mod.sources()}\n{_source()}\n{kernel.source}"
    if not all(mod.is_ours(SCALAR_FUNCTIONS[row]) for row, _ in rows_in(kernel.source).values()):
        key = None  # a row of your own may mean something else next time
    signature = " ".join(kernel.arguments.values())
    return mod.gpu.compile(lambda: function_of(kernel, mod), signature, key)


@cache
def _source() -> str:
    return Path(__file__).read_text("utf-8")
