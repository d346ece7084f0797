"""Kernels: loops of a schedule as the source of functions that run on a GPU.

A GPU has thousands of threads, but a kernel cannot wait for another one. So each loop of the schedule that
stands outermost becomes a kernel, in one of four ways:

- A parallel loop, whose iterations do not depend on each other: each thread takes one of them. If another
  such loop is all that is inside, a thread takes a pair of iterations, and so on. So ``relu(x @ W + b)``, for
  10 rows and W of shape (2, 8), has 80 threads. Each computes one number of the result, and its total never
  leaves the thread::

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

- A loop over long rows, such as those of a softmax: several threads, the *lanes*, compute a row together.
  What a row needs once, each of them computes. They share the loops over the row's numbers: of 32 lanes, each
  takes every 32nd number, and keeps it in registers if it is needed again. Each lane adds up its own share
  of a total, and `warp_total` adds up the shares. So the mean of each of 128 rows of 1,024 numbers is::

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

  The lanes of a longer row are all threads of a block. If rows lie side by side, as when columns are added
  up, neighbouring threads take neighbouring rows: a GPU fetches neighbours in one go.
- A single total of many numbers, such as a loss, is like a single row.
- One thread computes anything else. That is slow, but right.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from ..backend_ndarray.strides import compact_strides
from .codegen import (
    Line,
    Writer,
    function_name,
    head_of,
    is_of_one_iteration,
    joined,
    literal,
    used_by,
)
from .grid import Band, Grid, goes_across, parts_of, taken
from .lower import Access, Buffer, Nest, neutral
from .names import PAGE, TYPES, by_module, letter_of, wrapped
from .schedule import Loop, nests_in

_FEW = 1 << 14  # threads; fewer go in small blocks, so that more of the GPU's processors have one
_SMALL_BLOCK = 64

_MOST_OF_WARP = 32  # numbers of a row for each lane; if there are more, the lanes are a block, and not a warp

_MOST_OF_ARRAY, _KEPT = 32, 64  # numbers that a lane keeps in registers: of one array, and of all together

GUARD = "    if mark[0] != 0: return"
GUARD_FOR_ALL = "    if cuda.syncthreads_or(mark[0] != 0): return"  # all threads of a block decide the same


_Places = dict[Buffer, set[Any]]  # for each array, which lanes meet its numbers; see `_place_of`


class KernelSource(NamedTuple):
    """The source of a kernel, and how it is launched."""

    name: str
    lines: list[Line]
    blocks: list[list[Nest]]
    arguments: dict[str, str]  # names and types
    functions: set[tuple[str, str]]  # that the source calls: names and data types
    grid: tuple[int, int | tuple[int, int]]  # how many blocks there are, and how many threads each has
    checks: list[Nest]
    length: None = None  # no threads of the CPU share it

    @property
    def source(self) -> str:
        """The lines as one text."""
        return joined(self.lines)


class KernelWriter(Writer):
    """Writes the body of a kernel, for a backend module `mod`: what differs from the CPU."""

    plan: Grid

    def __init__(self, plan: Grid, numbers: dict[str, tuple[str, str]], mod: Any):
        super().__init__(plan, numbers)
        self.mod = mod
        self.head: list[str] = []  # the lines that say what a thread works on
        self.kept: dict[Buffer, int] = {}  # arrays of a row: how many numbers a lane has in registers
        self.shared: set[np.dtype] = set()  # data types of totals that a block adds up in shared memory
        self.lanes = 1
        self.barrier = ""  # what lanes call to wait for each other
        self.rest = False  # whether some lanes have no row; their number is then too high for all loops
        self._total = "", ""  # how lanes fold their shares: the function, and what it is told of threads
        self._by_row: dict[Buffer, int] = {}  # arrays of a row that are too long for registers: how long
        # What the source calls the number of an iteration, of a row, and of a number in a row.
        self.number = self._row = self._item = ""
        self._shares: dict[Nest, str] = {}  # what a lane folds its share of a total into
        self._read: _Places = {}  # since the last barrier
        self._written: _Places = {}

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
        if isinstance(x, Access) and x.buffer in self.kept:
            return f"{x.buffer.name}[s]" if self.kept[x.buffer] > 1 else x.buffer.name
        if isinstance(x, Access) and x.buffer in self._by_row:
            return f"{x.buffer.name}[{self._by_row[x.buffer]} * {self._row} + {self._item}]"
        text = super().operand(x, nest)
        is_read = text.endswith("]") and x is not nest.out
        return f"({text} != 0)" if is_read and x.buffer.dtype == np.bool_ else text

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
        for nest in inner.nests():
            first, second = (self.plan.loops[nest].index(loop) for loop in (outer, inner))
            for x in nest.accesses:
                is_stored = x.buffer not in self.plan.variables and x.buffer not in self.kept
                if is_stored and x.strides[first] != x.strides[second] * inner.length:
                    return False
        return True

    def _in_order(self, loops: list[Loop]) -> list[Loop]:
        """Loops that threads take, in such an order that neighbouring threads write neighbouring places."""

        def steps(loop: Loop) -> tuple[int, int]:
            written, read = [0], [0]
            for nest in loop.nests():
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
        """How many rows a block takes side by side: without a rest, and so that the GPU has enough blocks."""
        enough, most = self.mod.gpu.gpu().processors // 2, min(self.mod.THREADS, 32)
        return max((n for n in range(1, most + 1) if rows % n == 0 and rows // n >= enough), default=1)

    # A thread for each iteration

    def write_for_threads(self, loops: list[Loop]) -> tuple[int, int]:
        """Write the body of loops whose iterations threads take; the grid."""
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
        """Write what is in a row, for lanes that compute it together; the grid.

        All lanes compute the same, except that they share the iterations of loops. What there is once in a
        row, only the first lane writes to memory.

        Parameters
        ----------
        parts : list of Loop or Nest
        loops : list of Loop
            The loops over rows; none if there is but one row.
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
            self.head += ["    lane = cuda.threadIdx.y", f"    thread = {width} * lane + cuda.threadIdx.x"]
        elif self.lanes > 1:
            self.head.append("    lane = cuda.threadIdx.x")
        if loops:
            loops = self._in_order(loops)
            lines = self._index(loops, 0, "row", first)
            self._row = self.number
            if self.rest:  # all threads of a warp have to meet, so those without a row go along
                go_along = f"{self._row}, lane = {rows - 1}, {longest}" if self.lanes > 1 else "return"
                lines.insert(1, f"if {self._row} >= {rows}: {go_along}")
            self.head += [f"    {line}" for line in lines]
        self._keep(parts, loops)
        for part in parts:
            self.comment([part], "    ")
            self._wait(part, loops)
            if isinstance(part, Loop):
                self._write_band(part, self.plan.bands[part], len(loops))
                continue
            first_only = self.lanes > 1 and self.writes_memory(part)
            start = "    if lane == 0: " if first_only else "    "
            self.add(*wrapped(start, self.statement(part).split(", "), ", ", "        "), nest=part)
            if part.is_check:
                self.add(GUARD_FOR_ALL)
        return grid

    def _write_band(self, part: Loop, band: Band, depth: int) -> None:
        """Write loops whose iterations the lanes share, and then how they fold their shares of totals."""
        for nest in band.totals:
            dtype = nest.out.buffer.dtype
            self._shares[nest] = name = f"share{len(self._shares)}"
            self.add(f"    {name} = {literal(neutral(str(nest.fold), dtype), dtype)}")
        level, length = 2, band.length
        places = self._index(band.loops, depth, "item")
        self._item = index = self.number
        if any(x.buffer in self.kept for nest in part.nests() for x in nest.accesses):
            each = -(-length // self.lanes)
            if each > 1:
                place = f"{self.lanes} * s + lane" if self.lanes > 1 else "s"
                self.add(f"    for s in range({each}):", f"        {index} = {place}")
            else:
                self.add(f"    {index} = lane")
                level = 1
            if each * self.lanes > length or self.rest:
                self.add(f"{'    ' * level}if {index} < {length}:")
                level += 1
        else:
            shared = f"lane, {length}, {self.lanes}" if self.lanes > 1 else str(length)
            self.add(f"    for {index} in range({shared}):")
        indent = "    " * level
        self.add(*[f"{indent}{line}" for line in places])
        depth += len(band.loops)
        self.commented, self.without_line = -1, depth + 1 - level
        body = len(self.lines)
        self.write(band.loops[-1].body, depth)
        self.name_places(band.loops[-1], body, indent)
        for nest in band.totals:
            dtype, fold, share = nest.out.buffer.dtype, str(nest.fold), self._shares.pop(nest)
            (kind, threads), shown = self._total, share
            if kind != "warp":
                self.shared.add(dtype)
                shown = f"{_shares_of(dtype)}, {share}"
            total, function = self.call(f"{kind}_total", dtype.name), self.call(fold, dtype.name)
            self.add(f"    {share} = {total}({function}, {shown}, {threads})")
            start = "    if lane == 0: " if self.lanes > 1 and self.writes_memory(nest) else "    "
            target = self.operand(nest.out, nest)
            both = f"{target} + {share}" if fold == "add" else f"{function}({target}, {share})"
            self.add(f"{start}{target} = {both}")

    def _place_of(self, x: Access, nest: Nest, part: Any, loops: list[Loop]) -> Any:
        """What decides which lane meets a number: if it is equal for two statements, it is the same lane.

        None: another statement of the same kind may meet the number in another lane.
        """
        band = self.plan.bands.get(part)
        steps = dict(zip(self.plan.loops[nest], x.strides, strict=True))
        inside = [steps.pop(loop) for loop in band.loops] if band else []
        outside = [steps.pop(loop) for loop in loops]
        if band is None or x.via is not None or not all(inside) or any(steps.values()):
            return None
        return x.offset, *inside, *outside, *[loop.length for loop in band.loops]

    def _places(self, uses: Iterable[tuple[Access, Nest]], part: Any, loops: list[Loop]) -> _Places:
        """The places of these accesses in arrays that all lanes see."""
        found: _Places = defaultdict(set)
        for x, nest in uses:
            if x.buffer not in self.plan.variables and x.buffer not in self.kept:
                found[x.buffer].add(self._place_of(x, nest, part, loops))
        return found

    def _keep(self, parts: list[Any], loops: list[Loop]) -> None:
        """Find out which arrays lanes can keep in registers, as each reads only what it has written itself.

        What does not fit is stored row by row, whatever the order of its axes, so that neighbouring lanes
        meet neighbouring numbers.
        """
        places: _Places = defaultdict(set)
        lengths: dict[Buffer, int] = {}
        for part in parts:
            uses = [(x, nest) for nest in nests_in([part]) for x in nest.accesses]
            for buffer, found in self._places(uses, part, loops).items():
                places[buffer] |= found
                lengths[buffer] = self.plan.bands[part].length if isinstance(part, Loop) else 1
        room = _KEPT
        for buffer, found in places.items():
            each = -(-lengths[buffer] // self.lanes)
            is_inside = buffer in self.plan.inside and buffer in self.plan.work
            if not is_inside or len(found) > 1 or None in found:
                continue
            if each <= min(room, _MOST_OF_ARRAY):
                self.kept[buffer] = each
                room -= each
            elif self._total[0] != "columns":
                self._by_row[buffer] = lengths[buffer]

    def _wait(self, part: Any, loops: list[Loop]) -> None:
        """Let all lanes arrive before one reads what another wrote, or writes what another reads."""
        nests = list(nests_in([part]))
        read = self._places([(x, nest) for nest in nests for x in nest.sources], part, loops)
        outs = [(nest.out, nest) for nest in nests if self.writes_memory(nest)]
        written = self._places(outs, part, loops)

        def meets(now: _Places, before: _Places) -> bool:
            both = [places | before[buffer] for buffer, places in now.items() if buffer in before]
            return any(len(places) > 1 or None in places for places in both)

        if meets(read, self._written) or meets(written, self._written) or meets(written, self._read):
            if self.lanes > 1:
                self.add(f"    cuda.{self.barrier}()")
            self._read, self._written = {}, {}
        for found, before in ((read, self._read), (written, self._written)):
            for buffer, places in found.items():
                before[buffer] = before.get(buffer, set()) | places


def numbers_of(dtype: str) -> str:
    """What the source calls the numbers of the host that it needs in a data type; they lie in one array."""
    return "numbers" if dtype == "float32" else f"numbers_{dtype}"


def _shares_of(dtype: np.dtype) -> str:
    """What the source calls the numbers that the threads of a block show each other."""
    return "shares" if dtype == np.float32 else f"shares_{dtype}"


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
        The names of Numbers by their formulas; and, by data type, those that a kernel needs, to be added to.
    mod : module
        The backend.
    guarded : bool
        Whether it does nothing if a check has failed.
    """
    formulas, by_type = given
    parts: list[Any] = segment if isinstance(segment, list) else [segment]
    used, types = used_by(nests_in(parts))
    arrays = [buffer for buffer in used if buffer not in plan.variables and not buffer.is_iota]
    numbers = {text: (formulas[text], kind) for text, kind in types.items()}

    writer = KernelWriter(plan, numbers, mod)
    row, loops, local = parts_of(segment), taken(segment), {}
    has_lanes = isinstance(segment, list) or any(part in plan.bands for part in row)
    grid: tuple[int, Any] = (1, 1)
    if has_lanes:
        grid = writer.write_rows(row, loops)
        local = writer.kept
    elif loops:
        grid = writer.write_for_threads(loops)
        local = {x: x.size for x in arrays if x.is_ours and is_of_one_iteration(x, segment, plan)}
    else:
        writer.write(parts)

    first = [GUARD_FOR_ALL if has_lanes and writer.checks else GUARD] if guarded else []
    first += writer.head
    arguments = {x.name: f"{mod.stored(x.dtype)}*" for x in arrays if x not in local}
    for text, (number, dtype) in numbers.items():
        known = by_type.setdefault(dtype, [])
        known += [number] if number not in known else []
        note = "" if text == number else f"  # {text}"
        first.append(f"    {number} = {numbers_of(dtype)}[{known.index(number)}]{note}")
        arguments[numbers_of(dtype)] = f"{dtype}*"
    for buffer, size in local.items():
        if size > 1 or not has_lanes:
            first.append(f"    {buffer.name} = cuda.local.array({size}, {_type(buffer.dtype)})")
    for kind in sorted(writer.shared, key=str):
        first.append(f"    {_shares_of(kind)} = cuda.shared.array({mod.THREADS}, {_type(kind)})")
    if guarded:
        arguments["mark"] = "int64*"
    head = head_of(name, list(arguments))
    body = [line._replace(block=0) for line in writer.lines]
    lines, blocks = [*map(Line, [*head, *first]), *body], [list(nests_in(parts))]
    return KernelSource(name, lines, blocks, arguments, writer.functions, grid, writer.checks)


def _type(dtype: np.dtype) -> str:
    return "bool_" if dtype == np.bool_ else dtype.name


# What kernels call. In these templates `f` stands for a row of the table, and `number` for a data type.

f: Any = None
number: Any = None


def of_one(x):
    """A row of one number, in its data type."""
    return number(f(x))


def of_two(x, y):
    """A row of two numbers, in their data type."""
    return number(f(x, y))


class _Type:
    """A data type for the simulator, which runs kernels in Python: it converts what NumPy's own refuses."""

    def __init__(self, name: str):
        self.dtype = np.dtype(name)

    def __call__(self, x: Any) -> Any:
        return np.asarray(x).astype(self.dtype)[()]


class _Cuda:
    """What a function finds as `cuda` in the simulator, which puts it among the names of the kernel."""

    def __init__(self, names: dict[str, Any]):
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._names["cuda"], name)


def function_of(kernel: KernelSource, mod: Any) -> Callable:
    """The source of a kernel as a function in Python, for a backend module `mod`."""
    from numba import cuda  # importing it takes half a second, and only those wait who compile

    names: dict[str, Any] = {"__name__": __name__, "cuda": cuda, "inf": math.inf, "nan": math.nan}
    names |= {name: _Type(name.rstrip("_")) if mod.SIMULATED else getattr(np, name) for name in TYPES}
    exec(compile(kernel.source, f"<needle {kernel.name}>", "exec"), names)
    for name, dtype in kernel.functions:
        function = _device_function(name, dtype, mod)
        if mod.SIMULATED:
            function = FunctionType(function.__code__, function.__globals__ | {"cuda": _Cuda(names)})
        names[function_name(name, dtype)] = function
    return names[kernel.name]


@cache
def _device_function(name: str, dtype: str, mod: Any) -> Any:
    """A row of the table for numbers of one data type, or how lanes fold what each of them has."""
    from numba import cuda

    row = SCALAR_FUNCTIONS.get(name)
    names: dict[str, Any]
    if row is None:  # warp_total, block_total or columns_total
        names = {"wide": np.dtype(dtype).type if dtype.startswith("float") else np.int64}
        function = mod.filled_in(getattr(mod, name), names)
    else:
        number = _Type(dtype) if mod.SIMULATED else bool if dtype == "bool" else np.dtype(dtype).type
        names = {"f": mod.scalar_function(row, np.dtype(dtype)), "number": number}
        function = mod.filled_in(of_one if row.arity == 1 else of_two, names)
    return function if mod.SIMULATED else cuda.jit(device=True)(function)


def compile_kernel(kernel: KernelSource, mod: Any) -> Any:
    """The source of a kernel as machine code."""
    key: str | None = f"{mod.sources()}\n{_source()}\n{kernel.source}"
    rows = [SCALAR_FUNCTIONS[name] for name, _ in kernel.functions if name in SCALAR_FUNCTIONS]
    if not all(map(mod.is_ours, rows)):
        key = None  # a row of your own may mean something else next time
    signature = " ".join(kernel.arguments.values())
    return mod.gpu.compile(lambda: function_of(kernel, mod), signature, key)


@cache
def _source() -> str:
    return Path(__file__).read_text("utf-8")
