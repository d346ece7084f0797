"""Compiled programs on a GPU: the same schedule, as kernels for `ndl.cuda()`.

On the CPU one function computes everything, loop after loop. A GPU has thousands of threads, but a kernel
cannot wait for another one, so each loop of the schedule that stands outermost becomes a kernel, and the host
launches them one after the other:

- A loop whose iterations have nothing to do with each other: a thread takes each of them. Where another such
  loop is all that is inside, a thread takes a pair of iterations, and so on. Take ``relu(x @ W + b)``, with x
  of shape (10, 2) and W of shape (2, 8). Each of 80 threads computes one number of the result, and its total
  never leaves the thread::

      def step(x, W, b, result):
          thread = cuda.grid(1)
          i, j = thread // 8, thread % 8
          if i >= 10: return
          # MatMul, Add, ReLU
          matmul1 = float32(0)
          for k in range(2):
              matmul1 += x[2 * i + k] * W[8 * k + j]
          add1 = matmul1 + b[j]
          relu1 = relu(add1)
          result[8 * i + j] = relu1

- A loop over rows that are long, such as those of a softmax: many threads compute a row together. They are its
  lanes. Each lane takes every 32nd number, say, and folds its share of a total; `warp_add` then adds the
  shares up. What a row needs once, all its lanes compute. What it needs for each number, a lane keeps for the
  numbers that are its own. So the sums of the rows of x / 2 are, for 128 rows of 1,024 numbers::

      lane = cuda.threadIdx.x
      row = cuda.blockIdx.x * 8 + cuda.threadIdx.y
      ...
      share0 = float32(0)
      for j in range(lane, 1024, 32):
          div1 = x[1024 * i + j] / float32(2)
          share0 += div1
      summation1 = summation1 + warp_add(share0, 32)

  If the numbers of a row lie far apart, and rows side by side, as when columns are added up, then neighbouring
  threads take neighbouring rows: the GPU fetches neighbours in one go.
- A single total of many numbers, such as a loss: a single row of that kind.
- Matrix products and totals of very many numbers: the device's own kernels, or cuBLAS.
- Anything else: one thread. That is slow, but right.

A kernel cannot raise an error. A check that fails leaves the device's mark, and kernels that come later then do
nothing. The host does not wait: it looks when numbers are next copied to it, see `Checks` of the backend.

On an H100, six elementwise operators on 2^24 numbers took 62.7 microseconds as one kernel; jax took 53.2. At
that time a thread computed a row alone, and a softmax of 8192 rows of 1,024 numbers took 16 times as long as
torch. That is why lanes share rows now. These kernels have not been measured yet.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor
from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS, ScalarFunction
from ..backend_ndarray.strides import compact_strides
from ..backend_ndarray.views import assemble, new_array
from ..backend_selection import NDArray
from ..graph import Pending
from ..stand_ins import Number
from .calls import REFERENCES, CallWriter
from .codegen import (
    PAGE,
    TYPES,
    Block,
    Writer,
    by_module,
    function_name,
    is_of_one_iteration,
    letter_of,
    literal,
    wrapped,
)
from .lower import Access, Buffer, Call, Nest, in_order, neutral
from .program import Program, read_before
from .schedule import Band, Loop, goes_across, is_one_total, nests_in, parts_of, taken
from .trace import CannotTrace, Trace, without_tensors

__all__ = ["CudaProgram", "program_type"]


_FEW = 1 << 14  # threads; fewer go in small blocks, so that more of the GPU's processors have one
_SMALL_BLOCK = 64

#: Each lane of a warp takes so many numbers of a row, or the lanes are a whole block.
_MOST_OF_LANE = 32

#: So many numbers a lane keeps in registers, those of all arrays together.
_KEPT = 64


def program_type(found: Trace) -> type[Program]:
    """The class of a program for the device on which a function computes."""
    returned: list[Any] = []
    without_tensors(found.result, returned, {x.tensor for x in found.inputs})
    values = [x._data for x in returned if isinstance(x, Tensor)] + [x for _, x in found.writes]
    values += [grad._data for _, grad in found.grads if grad is not None]
    used = set(in_order([x for x in values if type(x) is Pending], ()))
    values += [cell for cell in [*[x.cell for x in found.inputs], *found.draws] if cell in used]
    devices = {x.device for x in values}
    on_gpu = [device for device in devices if device.name == "cuda"]
    if on_gpu and len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise CannotTrace(
            f"jit: the function computes with Tensors on {names}; a program for a GPU computes there alone. "
            "Move all of them to one device before, with .to(device)"
        )
    return CudaProgram if on_gpu else Program


# The source of kernels

GUARD = "    if mark[0] != 0: return"
GUARD_FOR_ALL = "    if cuda.syncthreads_or(mark[0] != 0): return"  # all threads of a block decide the same


class Kernel(NamedTuple):
    """The source of a kernel, and how it is launched.

    Attributes
    ----------
    name, source : str
    arguments : dict of str to str
        Their names and types.
    functions : set of (str, str)
        What the source calls: the names of rows of the table, and data types.
    blocks_of_threads : (int, int or tuple of int)
        How many blocks there are, and how many threads each has.
    checks : list of Nest
    blocks : list of Block
        Which lines compute what.
    """

    name: str
    source: str
    arguments: dict[str, str]
    functions: set[tuple[str, str]]
    grid: tuple[int, int | tuple[int, int]]
    checks: list[Nest]
    blocks: list[Block]

    @property
    def length(self) -> None:
        """No threads of the CPU share it."""


class Own(NamedTuple):
    """A matrix product or a long total, which is left to the device's own kernel.

    Attributes
    ----------
    nest : Nest
    source : str
        A comment.
    """

    nest: Nest
    source: str

    @property
    def length(self) -> None:
        """No threads of the CPU share it."""

    @property
    def blocks(self) -> list[Block]:
        """All of it, as one."""
        lines = self.source.count("\n")
        return [Block(0, lines, {self.nest: (0, lines)})]


class KernelWriter(Writer):
    """Writes the body of a kernel. What is not here is as on the CPU.

    Parameters
    ----------
    plan, numbers
        As of `Writer`.
    mod : module
        The backend.

    Attributes
    ----------
    head : list of str
        The lines that say what a thread works on.
    kept : dict of Buffer to int
        Arrays of a row, and how many numbers of them a lane has in registers.
    shared : set of dtype
        Data types of totals that a block adds up in shared memory.
    """

    def __init__(self, plan: Any, numbers: dict[str, tuple[str, bool]], mod: Any):
        super().__init__(plan, numbers)
        self.mod = mod
        self.head: list[str] = []
        self.kept: dict[Buffer, int] = {}
        self.shared: set[np.dtype] = set()
        self.lanes = 1
        self.barrier = ""
        self._total = "", ""  # how lanes fold their shares: the function, and what it is told of threads
        self._shares: dict[Nest, str] = {}  # what a lane folds its share of a total into
        self._read: dict[Buffer, set[Any]] = {}  # since the last barrier, and by which lanes; see `_place_of`
        self._written: dict[Buffer, set[Any]] = {}

    def bounds(self, loop: Loop, shared: Loop | None) -> str:
        """What a loop runs over."""
        return str(loop.length)

    def is_total(self, nest: Nest) -> bool:
        """A thread adds in the order in which it stands."""
        return False

    def check(self, nest: Nest) -> str:
        """Leave the mark."""
        condition, _, _ = super().check(nest).rpartition(": return ")
        return f"{condition}: mark[0] = 1"

    def operand(self, x: Any, nest: Nest) -> str:
        """A number that a statement reads or writes. In memory, a boolean is 0 or 1."""
        if x is nest.out and nest in self._shares:
            return self._shares[nest]
        if isinstance(x, Access) and x.buffer in self.kept:
            return f"{x.buffer.name}[s]"
        text = super().operand(x, nest)
        return f"({text} != 0)" if text.endswith("]") and x is not nest.out and _is_bool(x.buffer) else text

    def value(self, nest: Nest, operands: list[str], t: str) -> str:
        """What a statement computes."""
        text = super().value(nest, operands, t)
        return f"bool({text})" if t == "bool" and nest.fold is None else text

    def writes_memory(self, nest: Nest) -> bool:
        """Whether others can see what a statement writes."""
        return nest.refusal is None and nest.out.buffer not in self.plan.variables

    def _letters(self, loops: list[Loop], depth: int, index: str) -> str:
        """The variables of loops, made from the number of an iteration of all of them."""
        self.letters |= {loop: letter_of(depth + i) for i, loop in enumerate(loops)}
        steps = compact_strides(tuple(loop.length for loop in loops))
        parts = [
            (index if step == 1 else f"{index} // {step}") + (f" % {loop.length}" if number else "")
            for number, (loop, step) in enumerate(zip(loops, steps, strict=True))
        ]
        return f"{', '.join(self.letters[loop] for loop in loops)} = {', '.join(parts)}"

    def _in_order(self, loops: list[Loop]) -> list[Loop]:
        """Loops that threads take, so that neighbouring threads write neighbouring places."""

        def steps(loop: Loop) -> tuple[int, int]:
            found = [0, 0]
            for nest in loop.nests():
                for x in nest.accesses:
                    if x.buffer not in self.plan.variables:
                        step = abs(x.strides[self.plan.loops[nest].index(loop)])
                        found[x is not nest.out] = max(found[x is not nest.out], step)
            return found[0], found[1]

        return sorted(loops, key=steps, reverse=True)

    def _block(self, threads: int) -> int:
        """How many threads a block has, if there are so many in all."""
        return self.mod.THREADS if threads >= _FEW else min(self.mod.THREADS, _SMALL_BLOCK)

    # A thread for each iteration

    def write_for_threads(self, loops: list[Loop]) -> tuple[int, int]:
        """Write the body of loops whose iterations threads take; the grid."""
        body, loops = loops[-1].body, self._in_order(loops)
        count = math.prod(loop.length for loop in loops)
        if len(loops) == 1:
            self.head.append(f"    {self._letters(loops, 0, 'cuda.grid(1)')}")
        else:
            self.head += ["    thread = cuda.grid(1)", f"    {self._letters(loops, 0, 'thread')}"]
        self.head.append(f"    if {self.letters[loops[0]]} >= {loops[0].length}: return")
        about = by_module(nests_in(body))
        fits = len(about) < PAGE - len("    # ")
        if about and fits:
            self.lines.append(f"    # {about}")
        self.commented = -1 if fits else len(loops)
        self.without_line = len(loops)
        self.write(body, len(loops))
        block = self._block(count)
        return -(-count // block), block

    # Many threads for each row

    def write_rows(self, parts: list[Any], loops: list[Loop]) -> tuple[int, int | tuple[int, int]]:
        """Write what is in a row, for lanes that compute it together; the grid.

        All lanes compute the same, except that they share the iterations of loops, and that only the first one
        writes what there is once to memory.

        Parameters
        ----------
        parts : list of Loop or Nest
        loops : list of Loop
            The loops over rows; none if there is but one row.
        """
        bands = [self.plan.bands[part] for part in parts if isinstance(part, Loop)]
        longest = max((band.length for band in bands), default=0)
        rows, most, warp = math.prod(loop.length for loop in loops), self.mod.THREADS, self.mod.WARP
        width = 0
        if loops and goes_across(bands, loops, self.plan):
            width = _width(rows)
            self.lanes = min(_power_of_two(longest), _power_of_two(most // width + 1) // 2)
            self._total, self.barrier = ("columns", f"thread, {self.lanes}, {width}"), "syncthreads"
            first, grid = (
                f"cuda.blockIdx.x * {width} + cuda.threadIdx.x",
                (rows // width, (width, self.lanes)),
            )
        elif loops and longest <= _MOST_OF_LANE * warp:
            self.lanes = min(warp, _power_of_two(longest))
            self._total, self.barrier = ("warp", str(self.lanes)), "syncwarp"
            high = max(self._block(rows * self.lanes) // self.lanes, 1)
            first, grid = (
                f"cuda.blockIdx.x * {high} + cuda.threadIdx.y",
                (-(-rows // high), (self.lanes, high)),
            )
        else:
            self.lanes = most if bands else 1
            self._total, self.barrier = ("block", f"lane, {self.lanes}"), "syncthreads"
            first, grid = "cuda.blockIdx.x", (rows, self.lanes)
        if self.lanes > 1 or width:
            self.head.append(f"    lane = cuda.threadIdx.{'y' if width else 'x'}")
        if width:
            self.head.append(f"    thread = lane * {width} + cuda.threadIdx.x")
        if loops:
            loops = self._in_order(loops)
            self.head.append(f"    row = {first}")
            if self.barrier == "syncwarp":
                self.head.append(f"    if row >= {rows}: return")
            self.head.append(f"    {self._letters(loops, 0, 'row')}")
        self._keep(parts, loops)
        for part in parts:
            about = by_module(nests_in([part]))
            if about and about != self._about:
                self.lines += wrapped("    # ", about.split(" "), " ", "    # ")
                self._about = about
            self._wait(part, loops)
            begin = len(self.lines)
            if isinstance(part, Loop):
                self._write_band(part, self.plan.bands[part], len(loops))
                continue
            first_only = self.lanes > 1 and self.writes_memory(part)
            start = "    if lane == 0: " if first_only else "    "
            self.lines += wrapped(start, self.statement(part).split(", "), ", ", "        ")
            if part.refusal is not None:
                self.lines.append(GUARD_FOR_ALL)
            self.places[part] = begin, len(self.lines)
        return grid

    def _write_band(self, part: Loop, band: Band, depth: int) -> None:
        """Write loops whose iterations the lanes share; then they show each other their shares of totals."""
        for nest in band.totals:
            dtype = nest.out.buffer.dtype
            self._shares[nest] = name = f"share{len(self._shares)}"
            self.lines.append(f"    {name} = {literal(neutral(str(nest.fold), dtype), dtype)}")
        level, length = 2, band.length
        index = letter_of(depth) if len(band.loops) == 1 else "item"
        if any(x.buffer in self.kept for nest in part.nests() for x in nest.accesses):
            each = -(-length // self.lanes)
            self.lines.append(f"    for s in range({each}):")
            self.lines.append(
                f"        {index} = {self.lanes} * s + lane" if self.lanes > 1 else f"        {index} = s"
            )
            if each * self.lanes > length:
                self.lines.append(f"        if {index} < {length}:")
                level = 3
        elif self.lanes > 1:
            self.lines.append(f"    for {index} in range(lane, {length}, {self.lanes}):")
        else:
            self.lines.append(f"    for {index} in range({length}):")
        indent, places = "    " * level, self._letters(band.loops, depth, index)
        if len(band.loops) > 1:
            self.lines.append(f"{indent}{places}")
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
            total = f"{self.call(f'{kind}_{fold}', dtype.name)}({shown}, {threads})"
            target = self.operand(nest.out, nest)
            self.lines.append(f"    {share} = {total}")
            both = (
                f"{target} + {share}"
                if fold == "add"
                else f"{self.call(fold, dtype.name)}({target}, {share})"
            )
            start = "    if lane == 0: " if self.lanes > 1 and self.writes_memory(nest) else "    "
            self.lines.append(f"{start}{target} = {both}")

    def _place_of(self, x: Access, nest: Nest, part: Any, loops: list[Loop]) -> Any:
        """What two statements have in common that meet the same numbers in the same lane; None: no other does."""
        band = self.plan.bands.get(part)
        steps = dict(zip(self.plan.loops[nest], x.strides, strict=True))
        inside = [steps.pop(loop) for loop in band.loops] if band else []
        outside = [steps.pop(loop) for loop in loops]
        if band is None or x.via is not None or not all(inside) or any(steps.values()):
            return None
        return x.offset, *inside, *outside, *[loop.length for loop in band.loops]

    def _keep(self, parts: list[Any], loops: list[Loop]) -> None:
        """Find out which arrays the lanes can keep in registers: a lane reads what it has written itself."""
        places: dict[Buffer, set[Any]] = {}
        lengths: dict[Buffer, int] = {}
        for part in parts:
            for nest in nests_in([part]):
                for x in nest.accesses:
                    places.setdefault(x.buffer, set()).add(self._place_of(x, nest, part, loops))
                    lengths[x.buffer] = self.plan.bands[part].length if isinstance(part, Loop) else 1
        room = _KEPT
        for buffer, found in places.items():
            each = -(-lengths[buffer] // self.lanes)
            is_inside = buffer in self.plan.inside and buffer in self.plan.work
            if is_inside and len(found) == 1 and None not in found and each <= min(room, _MOST_OF_LANE):
                self.kept[buffer] = each
                room -= each

    def _wait(self, part: Any, loops: list[Loop]) -> None:
        """Let all lanes arrive before one reads what another wrote, or writes what another reads."""
        read: dict[Buffer, set[Any]] = {}
        written: dict[Buffer, set[Any]] = {}
        for nest in nests_in([part]):
            outs = [nest.out] if self.writes_memory(nest) else []
            for found, accesses in ((read, nest.sources), (written, outs)):
                for x in accesses:
                    if x.buffer not in self.plan.variables and x.buffer not in self.kept:
                        found.setdefault(x.buffer, set()).add(self._place_of(x, nest, part, loops))

        def meets(now: dict[Buffer, set[Any]], before: dict[Buffer, set[Any]]) -> bool:
            both = [places | before[buffer] for buffer, places in now.items() if buffer in before]
            return any(len(places) > 1 or None in places for places in both)

        if meets(read, self._written) or meets(written, self._written) or meets(written, self._read):
            if self.lanes > 1:
                self.lines.append(f"    cuda.{self.barrier}()")
            self._read, self._written = {}, {}
        for found, before in ((read, self._read), (written, self._written)):
            for buffer, places in found.items():
                before.setdefault(buffer, set()).update(places)


def _is_bool(buffer: Buffer) -> bool:
    return buffer.dtype == np.bool_


def _width(rows: int) -> int:
    """How many rows lie beside each other in a block: blocks have none too many, and the GPU enough blocks."""
    return max((n for n in range(1, 33) if rows % n == 0 and rows // n >= 64), default=1)


def _power_of_two(n: int) -> int:
    """The smallest power of two that is not less than `n`."""
    return 1 << (n - 1).bit_length()


def _shares_of(dtype: np.dtype) -> str:
    """What the source calls the numbers that the threads of a block show each other."""
    return "shares" if dtype == np.float32 else f"shares_{dtype}"


def write_kernel(
    name: str, segment: Any, plan: Any, formulas: dict[str, str], mod: Any, guarded: bool
) -> Kernel:
    """Write a kernel.

    Parameters
    ----------
    name : str
    segment : list of Loop or Nest, or a Loop
    plan : Schedule
    formulas : dict of str to str
        The names of Numbers by their formulas.
    mod : module
        The backend.
    guarded : bool
        Whether it does nothing if a check has failed.
    """
    parts: list[Any] = segment if isinstance(segment, list) else [segment]
    used: dict[Buffer, None] = {}
    types_of: dict[str, set[str]] = {}  # the data types in which a Number is needed
    for nest in nests_in(parts):
        used |= dict.fromkeys(x.buffer for x in nest.accesses if nest.refusal is None or x is not nest.out)
        for x in nest.numbers:
            if isinstance(x, Number):
                types_of.setdefault(x.text, set()).add(nest.out.buffer.dtype.name)
    arrays = [buffer for buffer in used if buffer not in plan.variables and not buffer.counts]
    numbers = {text: (formulas[text], len(dtypes) == 1) for text, dtypes in types_of.items()}

    writer = KernelWriter(plan, numbers, mod)
    row, loops, local = parts_of(segment), taken(segment), {}
    has_lanes = isinstance(segment, list) or any(part in plan.bands for part in row)
    grid: tuple[int, Any] = (1, 1)
    if has_lanes:
        grid, local = writer.write_rows(row, loops), writer.kept
    elif loops:
        grid = writer.write_for_threads(loops)
        local = {x: x.size for x in arrays if x.is_ours and is_of_one_iteration(x, segment, plan)}
    else:
        writer.write(parts)

    first = [f"    # {formulas[text]} is {text}" for text in types_of if text != formulas[text]]
    if guarded:
        first.append(GUARD_FOR_ALL if has_lanes and writer.checks else GUARD)
    first += writer.head
    for buffer, size in local.items():
        first.append(f"    {buffer.name} = cuda.local.array({size}, {_type(buffer.dtype)})")
    for dtype in sorted(writer.shared, key=str):
        first.append(f"    {_shares_of(dtype)} = cuda.shared.array({mod.THREADS}, {_type(dtype)})")
    arguments = {x.name: f"{mod.stored(x.dtype)}*" for x in arrays if x not in local}
    for text, dtypes in types_of.items():
        arguments[formulas[text]] = mod.stored(np.dtype(min(dtypes))) if len(dtypes) == 1 else "float64"
    if guarded:
        arguments["mark"] = "int64*"
    *others, last = arguments
    head = wrapped(f"def {name}(", [*others, f"{last}):"], ", ", "    ")
    lines = {nest: writer.places[nest] for nest in nests_in(parts)}
    blocks = [Block(0, len(writer.lines), lines).moved(len(head) + len(first))]
    source = "\n".join([*head, *first, *writer.lines]) + "\n"
    return Kernel(name, source, arguments, writer.functions, grid, writer.checks, blocks)


def _type(dtype: np.dtype) -> str:
    return "bool_" if dtype == np.bool_ else dtype.name


# What kernels call. In these templates `f` stands for a row of the table, and `number` for a data type.

f: Any = None
number: Any = None
wide: Any = None  # one that the threads of a warp can show each other
cuda: Any = None
ALL_LANES = 0xFFFFFFFF  # of a warp
WARP = 32  # threads of a block that run in step; in the simulator 1


def of_one(x):
    """A row of one number, in its data type."""
    return number(f(x))


def of_two(x, y):
    """A row of two numbers, in their data type."""
    return number(f(x, y))


def warp_total(share, lanes):
    """What neighbouring threads of a warp have, folded into one: they look at each other's variables."""
    distance = lanes // 2
    while distance > 0:
        share = f(share, cuda.shfl_xor_sync(ALL_LANES, wide(share), distance))
        distance //= 2
    return share


def block_total(shares, share, lane, lanes):
    """What all threads of a block have, folded into one: each warp for itself, then one number of each."""
    distance = WARP // 2
    while distance > 0:
        share = f(share, cuda.shfl_xor_sync(ALL_LANES, wide(share), distance))
        distance //= 2
    cuda.syncthreads()  # nobody needs the shares of an earlier total any more
    if lane % WARP == 0:
        shares[lane // WARP] = share
    cuda.syncthreads()
    share = shares[0]
    for warp in range(1, lanes // WARP):
        share = f(share, shares[warp])
    return share


def columns_total(shares, share, thread, lanes, width):
    """What the threads of each column of a block have, folded into one, in shared memory."""
    cuda.syncthreads()
    shares[thread] = share
    half = lanes // 2
    while half > 0:
        cuda.syncthreads()
        if thread < half * width:
            shares[thread] = f(shares[thread], shares[thread + half * width])
        half //= 2
    cuda.syncthreads()
    return shares[thread % width]


_TOTALS = {"warp": warp_total, "block": block_total, "columns": columns_total}


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


def function_of(kernel: Kernel, mod: Any) -> Callable:
    """The source of a kernel as a function in Python, for a backend module `mod`."""
    from numba import cuda  # importing it takes half a second, and only those wait who compile

    names: dict[str, Any] = {"__name__": __name__, "cuda": cuda, "inf": math.inf, "nan": math.nan}
    names |= {name: _Type(name.rstrip("_")) if mod.SIMULATED else getattr(np, name) for name in TYPES}
    exec(compile(kernel.source, f"<needle {kernel.name}>", "exec"), names)
    for name, dtype in kernel.functions:
        names[function_name(name, dtype)] = function = _device_function(name, dtype, mod)
        if mod.SIMULATED:
            function.__globals__["cuda"] = _Cuda(names)
    return names[kernel.name]


@cache
def _device_function(name: str, dtype: str, mod: Any) -> Any:
    """A row of the table for numbers of one data type, or how lanes fold what each of them has with it."""
    from numba import cuda

    kind, _, fold = name.partition("_")
    if kind in _TOTALS:
        wide = np.dtype(dtype).type if dtype.startswith("float") else np.int64
        template = _TOTALS[kind]
        names = {"f": _device_function(fold, dtype, mod), "wide": wide, "WARP": mod.WARP}
    else:
        row = SCALAR_FUNCTIONS[name]
        template = of_one if row.arity == 1 else of_two
        number = _Type(dtype) if mod.SIMULATED else bool if dtype == "bool" else np.dtype(dtype).type
        names = {"f": mod.scalar_function(row, np.dtype(dtype)), "number": number}
    function = mod.filled_in(template, names)
    return function if mod.SIMULATED else cuda.jit(device=True)(function)


def compile_kernel(kernel: Kernel, mod: Any) -> Any:
    """The source of a kernel as machine code."""
    key: str | None = f"{mod._sources()}\n{_source()}\n{kernel.source}"
    names = {
        name.rpartition("_")[2] if name.partition("_")[0] in _TOTALS else name for name, _ in kernel.functions
    }
    if any(SCALAR_FUNCTIONS[name].python.__module__ != ScalarFunction.__module__ for name in names):
        key = None  # a row of your own may mean something else next time
    signature = " ".join(kernel.arguments.values())
    return mod.gpu.compile(lambda: function_of(kernel, mod), signature, key)


@cache
def _source() -> str:
    return Path(__file__).read_text("utf-8")


# A program


class CudaCallWriter(CallWriter):
    """Writes the function `call` of a program on a GPU: it asks and hands out as on the CPU."""

    program: CudaProgram

    def _compute(self) -> None:
        program = self.program
        mod = program._device.mod
        self.lines.append("with lock:")
        if program.states:
            self.lines += self.own_lines()
        given: dict[str, str] = {}
        for buffer, x in program._given:
            value = self.values[buffer]
            if x.tensor is None:
                given[buffer.name] = f"on_gpu({value})"
                self.names["on_gpu"] = lambda values: _on_gpu(values, mod)
            else:
                given[buffer.name] = value.removesuffix(".buffer")
        given |= {buffer.name: f"{self.name('draw', draw)}()._handle" for buffer, draw in program._draws}
        for i, (buffer, _) in enumerate(program.results):
            given[buffer.name] = f"result{i}"
            storage, dtype = self.name("storage", mod.Array), self.name("dtype", buffer.dtype)
            self.lines.append(f"    result{i} = {storage}({buffer.size}, {dtype})")
        numbers = {name: self.formula(text) for text, name in program._formulas.items()}
        self.lines.append(f"    program.launch({_dict(given)}, {_dict(numbers)})")


def _dict(values: dict[str, str]) -> str:
    """A dictionary as source, of expressions."""
    return f"{{{', '.join(f'{key!r}: {value}' for key, value in values.items())}}}"


def _on_gpu(values: np.ndarray, mod: Any) -> Any:
    array = mod.Array(values.size, values.dtype)
    mod.from_numpy(values, array)
    return array


class CudaProgram(Program):
    """A program on a GPU, with its storage. Only numbers and arrays of NumPy's come from the host.

    It takes no notice of `debug`: the simulator runs kernels as plain Python.

    Attributes
    ----------
    parts : list of Kernel, Own or Call
        What is launched, in this order.
    """

    call_writer = CudaCallWriter
    on_gpu = True

    @property
    def _device(self) -> Any:
        specs = [x.cell for x in self.trace.inputs] + [spec for _, spec in self.results]
        return next(spec.device for spec in specs if spec.device.name == "cuda")

    def _write(self) -> None:
        """Write a kernel for each segment."""
        mod = self._device.mod
        needed: dict[str, Buffer] = {}
        guarded = any(isinstance(nest, Nest) and nest.is_check for nest in self.nests)
        segments = self._without_initial_values(self.plan.segments)
        names = (
            [f"step_{number}" for number in range(1, len(segments) + 1)] if len(segments) > 1 else ["step"]
        )
        self.parts: list[Any] = [
            segment
            if isinstance(segment, Call)
            else Own(nest, self._comment(nest))
            if (nest := self._by_device(segment)) is not None
            else write_kernel(name, segment, self.plan, self._formulas, mod, guarded)
            for name, segment in zip(names, segments, strict=True)
        ]
        self.source = "\n\n".join(part.source for part in self.parts if not isinstance(part, Call))
        self._kernels = [compile_kernel(x, mod) if isinstance(x, Kernel) else x for x in self.parts]
        self._is_compiled = True

        named = {buffer.name: buffer for buffer in self._places}
        for part in self.parts:
            if isinstance(part, Kernel):
                needed |= {name: named[name] for name in part.arguments if name in named}
            elif isinstance(part, Own):
                needed |= {x.buffer.name: x.buffer for x in part.nest.accesses if x.buffer in self._places}
            else:
                buffers = part.read + part.written
                needed |= {x.name: x for x in buffers if x in self._places}
        needed |= {buffer.name: buffer for _, buffer in self.states}
        self._storage = {name: mod.Array(buffer.size, buffer.dtype) for name, buffer in needed.items()}
        for buffer in self._constants:
            self._storage[buffer.name] = constant = mod.Array(buffer.size, buffer.dtype)
            mod.from_numpy(buffer.data, constant)

    @staticmethod
    def _by_device(segment: Any) -> Nest | None:
        """The statement, if the device has a kernel for it: a matrix product, or a total of many numbers."""
        if isinstance(segment, Nest):
            return segment
        if not is_one_total(segment):
            return None
        (nest,) = segment.nests()
        x = nest.reads[0]
        is_plain = nest.function == "copy" and isinstance(x, Access) and x.via is None
        return nest if is_plain and x.buffer.dtype == nest.out.buffer.dtype else None

    def _without_initial_values(self, segments: list[Any]) -> list[Any]:
        """Leave out what sets a total to 0 that the device's kernel computes: it needs no initial value."""
        nests = [self._by_device(x) for x in segments if not isinstance(x, Call)]
        totals = {nest.out.buffer for nest in nests if nest is not None and not nest.product}

        def needed(part: Any) -> bool:
            return not (isinstance(part, Nest) and part.out.buffer in totals and not part.sources)

        found = [
            [x for x in segment if needed(x)] if isinstance(segment, list) else segment
            for segment in segments
        ]
        return [segment for segment in found if segment != []]

    @staticmethod
    def _comment(nest: Nest) -> str:
        about = by_module([nest])
        text = f"# {about + ': ' if about else ''}{nest.out.buffer.name}, by the device's own kernel"
        return "\n".join(wrapped("", text.split(" "), " ", "# ")) + "\n"

    # A call

    def launch(self, arrays: dict[str, Any], numbers: dict[str, Any]) -> None:
        """Compute.

        Parameters
        ----------
        arrays : dict of str to Array
            The storage of what comes in and goes out, by name.
        numbers : dict of str to number
        """
        arrays = self._storage | arrays
        mod = self._device.mod
        given = {name: x.address for name, x in arrays.items()} | {"mark": mod.checks.mark().address}
        for part, kernel in zip(self.parts, self._kernels, strict=True):
            if isinstance(part, Kernel):
                arguments = [
                    given[name] if name in given else mod._number(numbers[name], np.dtype(kind))
                    for name, kind in part.arguments.items()
                ]
                mod.launch(kernel, *part.grid, *arguments)
                if part.checks:
                    names = {check.reads[0].buffer.name for check in part.checks}
                    mod.checks.add(partial(self._look, part.checks, {name: arrays[name] for name in names}))
            elif isinstance(part, Own):
                self._launch_own(part.nest, arrays)
            else:
                self._compute(part, arrays)

    def _launch_own(self, nest: Nest, arrays: dict[str, Any]) -> None:
        """A matrix product or a total by the device's own kernel."""
        mod, out = self._device.mod, arrays[nest.out.buffer.name]
        if not nest.product:
            (read,) = nest.reads
            views = ((1,), (1,), nest.shape, read.strides, read.offset)
            mod.REDUCES[nest.fold](arrays[read.buffer.name], out, math.prod(nest.shape), views)
            return
        a, b = nest.reads
        *batch, m, n, p = nest.shape
        left, right = a.strides[:-1], (*b.strides[:-3], *b.strides[-2:])
        layout = (tuple(batch), left, a.offset, right, b.offset)
        mod.matmul(arrays[a.buffer.name], arrays[b.buffer.name], out, m, n, p, layout)

    def _compute(self, call: Call, arrays: dict[str, Any]) -> None:
        """Compute an operator that is not lowered, by its own kernel."""
        device = self._device

        def real(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(map(real, x))
            handle = arrays[x._handle.name]
            return assemble(new_array(NDArray), handle, device, x.shape, x.strides, x.offset, x._compact)

        found = call.op.compute(*map(real, call.operands))
        for array, result in zip(found if isinstance(found, tuple) else (found,), call.results, strict=True):
            target = arrays[result._handle.name]
            if array.device is not device:
                device.mod.from_numpy(array.numpy(), target)
            elif array.size:
                device.mod.compact(array._handle, target, array.shape, array.strides, array.offset)

    def _look(self, checks: list[Nest], arrays: dict[str, Any]) -> None:
        """Repeat checks on the host, and raise the error of the first that fails."""
        for check in checks:
            array, lowered = arrays[check.reads[0].buffer.name], self.plan.lowered[check]
            numbers = read_before(lowered, self._device.mod.to_numpy(array, (array.size,), (1,), 0))
            if _fails(lowered, numbers):
                raise check.refusal(numbers)  # type: ignore[misc]

    def _array(self, handle: Any, shape: tuple[int, ...]) -> NDArray:
        return assemble(new_array(NDArray), handle, self._device, shape, compact_strides(shape))

    def own(self) -> None:
        """See that each Tensor that is written has storage that nobody else uses."""
        mod = self._device.mod
        for i, (tensor, data) in enumerate(self.owned):
            if tensor._data is data and sys.getrefcount(data) == REFERENCES:
                continue
            array = tensor.realize_cached_data()
            fresh = mod.Array(array.size, array.dtype)
            if array.size:
                mod.compact(array._handle, fresh, array.shape, array.strides, array.offset)
            self._storage[self.states[i][1].name] = fresh
            tensor._data = mine = self._array(fresh, array.shape)
            self.owned[i] = tensor, mine


def _fails(check: Nest, numbers: np.ndarray) -> bool:
    if check.function == "check_not_zero":
        return not numbers.all()
    _, low, stop = check.reads
    return not ((numbers >= low) & (numbers < stop) & (numbers == np.trunc(numbers))).all()
