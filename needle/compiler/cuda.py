"""Compiled programs on a card: the same schedule, as kernels for `ndl.cuda()`.

On the CPU one function computes everything, loop after loop. A card has thousands of threads, but a kernel
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

- A single total of many numbers, such as a loss: one block of threads, each of which adds up some of them.
- Large matrix products: the device's own kernel, tile by tile.
- Anything else: one thread. That is slow, but right.

A kernel cannot raise an error. A check that fails leaves its number in the card's memory, kernels that come
later then do nothing, and the host looks at the end of the call, before it hands anything out.

How fast all this is on a card has not been measured: it has run on Numba's simulator. Sizes of blocks, what
counts as a long total and how much a thread keeps for itself are guesses until then. A row of a softmax or of
a layer norm is the work of one thread; a block for each row would read long rows faster.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor
from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
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
from .schedule import Loop, is_one_total, nests_in, schedule
from .simplify import simplify
from .trace import CannotTrace, Trace, without_tensors

__all__ = ["CudaProgram", "program_type"]

#: What the status of a call is while no check has failed; else it is the number of the first that did.
PASSED = 2**31 - 1

_FEW = 1 << 14  # threads; fewer go in small blocks, so that more of the card's processors have one
_SMALL_BLOCK = 64


def program_type(found: Trace) -> type[Program]:
    """The class of a program for the device on which a function computes."""
    returned: list[Any] = []
    without_tensors(found.result, returned, {x.tensor for x in found.inputs})
    values = [x._data for x in returned if isinstance(x, Tensor)] + [x for _, x in found.writes]
    values += [grad._data for _, grad in found.grads if grad is not None]
    used = set(in_order([x for x in values if type(x) is Pending], ()))
    values += [cell for cell in [*[x.cell for x in found.inputs], *found.draws] if cell in used]
    devices = {x.device for x in values}
    on_card = [device for device in devices if device.name == "cuda"]
    if on_card and len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise CannotTrace(
            f"jit: the function computes with Tensors on {names}; a program for a card computes there alone. "
            "Move all of them to one device before, with .to(device)"
        )
    return CudaProgram if on_card else Program


# The source of kernels

GUARD = "    if status[0] != PASSED: return"


class Kernel(NamedTuple):
    """The source of a kernel, and how it is launched.

    Attributes
    ----------
    name, source : str
    arguments : list of str
    functions : set of (str, str)
        What the source calls: the names of rows of the table, and data types.
    threads : int
        How many threads have something to do.
    is_block : bool
        Whether these are one block.
    checks : list of Nest
    blocks : list of Block
        Which lines compute what.
    """

    name: str
    source: str
    arguments: list[str]
    functions: set[tuple[str, str]]
    threads: int
    is_block: bool
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
    checked : int
        How many checks earlier kernels have.
    block : int
        How many threads a block has.
    """

    def __init__(self, plan: Any, numbers: dict[str, tuple[str, bool]], checked: int, block: int):
        super().__init__(plan, numbers)
        self.checked = checked
        self.block = block
        self.shared: set[np.dtype] = set()  # the data types of totals of the whole block
        self._touched: dict[str, set[Buffer]] = {"read": set(), "written": set()}

    def bounds(self, loop: Loop, shared: Loop | None) -> str:
        """What a loop runs over."""
        return str(loop.length)

    def is_total(self, nest: Nest) -> bool:
        """A thread adds in the order in which it stands."""
        return False

    def check(self, nest: Nest) -> str:
        """Leave the number of the check behind, the smallest if several fail."""
        condition, _, number = super().check(nest).rpartition(": return ")
        return f"{condition}: cuda.atomic.min(status, 0, {self.checked + int(number)})"

    # A thread for each iteration

    def write_for_threads(self, loop: Loop) -> int:
        """Write a loop whose iterations threads take; the number of threads."""
        loops = [loop]
        while len(loop.body) == 1 and isinstance(loop.body[0], Loop) and loop.body[0].is_parallel:
            loop = loop.body[0]
            loops.append(loop)
        self.letters |= {inner: letter_of(i) for i, inner in enumerate(loops)}
        count = math.prod(inner.length for inner in loops)
        letters = [self.letters[inner] for inner in loops]
        if len(loops) == 1:
            self.lines.append(f"    {letters[0]} = cuda.grid(1)")
        else:
            self.lines.append("    thread = cuda.grid(1)")
            steps = compact_strides(tuple(inner.length for inner in loops))
            shares = [
                ("thread" if step == 1 else f"thread // {step}") + (f" % {inner.length}" if number else "")
                for number, (inner, step) in enumerate(zip(loops, steps, strict=True))
            ]
            self.lines.append(f"    {', '.join(letters)} = {', '.join(shares)}")
        self.lines.append(f"    if {letters[0]} >= {loops[0].length}: return")
        about = by_module(nests_in([loops[0]]))
        fits = len(about) < PAGE - len("    # ")
        if about and fits:
            self.lines.append(f"    # {about}")
        self.commented = -1 if fits else len(loops)
        self.without_line = len(loops)
        self.write(loop.body, len(loops))
        return count

    # A block for everything

    def write_for_block(self, parts: Iterable[Loop | Nest]) -> None:
        """Write statements and totals for a single block.

        All threads compute the same, except that they share the work of a total, and that only the first one
        writes to memory.
        """
        for part in parts:
            about = by_module(nests_in([part]))
            if about and about != self._about:
                self.lines += wrapped("    # ", about.split(" "), " ", "    # ")
                self._about = about
            (nest,) = nests_in([part])
            begin = len(self.lines)
            self._wait_for(nest)
            if isinstance(part, Loop):
                statement = self._total(part, nest)
            else:
                statement = self.statement(nest)
            is_variable = nest.out.buffer in self.plan.variables or nest.refusal is not None
            first = "    " if is_variable else "    if thread == 0: "
            self.lines += wrapped(first, statement.split(", "), ", ", "        ")
            if nest.refusal is not None:
                self.lines += ["    cuda.syncthreads()", GUARD]
            self.places[nest] = begin, len(self.lines)

    def _wait_for(self, nest: Nest) -> None:
        """Let all threads arrive before one reads what another wrote, or writes what another reads."""
        read = {x.buffer for x in nest.sources} - self.plan.variables
        written = {nest.out.buffer} - self.plan.variables if nest.refusal is None else set()
        before = self._touched
        if read & before["written"] or written & before["read"]:
            self.lines.append("    cuda.syncthreads()")
            before["read"], before["written"] = set(), set()
        before["read"] |= read
        before["written"] |= written

    def _total(self, part: Loop, nest: Nest) -> str:
        """Let each thread fold some of the numbers; the statement that folds what they have."""
        loops = [loop for loop in self.plan.loops[nest] if loop is not None]
        self.letters |= {loop: letter_of(i) for i, loop in enumerate(loops)}
        letters, steps = [self.letters[loop] for loop in loops], compact_strides(nest.shape)
        dtype, count = nest.out.buffer.dtype, math.prod(nest.shape)
        fold = str(nest.fold)
        self.shared.add(dtype)
        self.lines.append(f"    share = {literal(neutral(fold, dtype), dtype)}")
        if len(loops) == 1:
            self.lines.append(f"    for {letters[0]} in range(thread, {count}, {self.block}):")
        else:
            self.lines.append(f"    for item in range(thread, {count}, {self.block}):")
            places = [
                ("item" if step == 1 else f"item // {step}") + (f" % {loop.length}" if number else "")
                for number, (loop, step) in enumerate(zip(loops, steps, strict=True))
            ]
            self.lines.append(f"        {', '.join(letters)} = {', '.join(places)}")
        value = self.value(nest, [self.operand(x, nest) for x in nest.reads], dtype.name)
        self.lines.append(f"        share = {self._folded(fold, dtype, 'share', value)}")
        self.lines.append(f"    share = {self.call(f'block_{fold}', dtype.name)}({_shares(dtype)}, share)")
        target = self.operand(nest.out, nest)
        return f"{target} = {self._folded(fold, dtype, target, 'share')}"

    def _folded(self, fold: str, dtype: np.dtype, x: str, y: str) -> str:
        return f"{x} + {y}" if fold == "add" else f"{self.call(fold, dtype.name)}({x}, {y})"


def _shares(dtype: np.dtype) -> str:
    """What the source calls the numbers that the threads of a block show each other."""
    return "shares" if dtype == np.float32 else f"shares_{dtype}"


def write_kernel(
    name: str, segment: list[Any] | Loop, plan: Any, formulas: dict[str, str], checked: int, block: int
) -> Kernel:
    """Write a kernel.

    Parameters
    ----------
    name : str
    segment : list of Loop or Nest, or a Loop
    plan : Schedule
    formulas : dict of str to str
        The names of Numbers by their formulas.
    checked : int
        How many checks earlier kernels have.
    block : int
        How many threads a block has.
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

    writer = KernelWriter(plan, numbers, checked, block)
    local: list[Buffer] = []
    threads = 1
    if isinstance(segment, list) or is_one_total(segment):
        if any(isinstance(part, Loop) for part in parts):
            threads = block
        writer.write_for_block(parts)
    elif segment.is_parallel:
        threads = writer.write_for_threads(segment)
        local = [x for x in arrays if x.is_ours and is_of_one_iteration(x, segment, plan)]
    else:
        writer.write(parts)
    is_block = threads == 1 or not (isinstance(segment, Loop) and segment.is_parallel)

    first = [
        f"    {formulas[text]} = {next(iter(dtypes))}({formulas[text]})"
        + ("" if text == formulas[text] else f"  # {text}")
        for text, dtypes in types_of.items()
        if len(dtypes) == 1
    ]
    if any("thread" in line for line in writer.lines) and is_block:
        first.append("    thread = cuda.threadIdx.x")
    for buffer in local:
        first.append(f"    {buffer.name} = cuda.local.array({buffer.size}, {_type(buffer.dtype)})")
    for dtype in sorted(writer.shared, key=str):
        first.append(f"    {_shares(dtype)} = cuda.shared.array({block}, {_type(dtype)})")
    if checked:
        first.append(GUARD)
        if threads > 1 and is_block and writer.checks:
            first.append("    cuda.syncthreads()")
    arguments = [x.name for x in arrays if x not in local] + [formulas[text] for text in types_of]
    if checked or writer.checks:
        arguments.append("status")
    head = wrapped(f"def {name}(", [*arguments[:-1], f"{arguments[-1]}):"], ", ", "    ")
    lines = {nest: writer.places[nest] for nest in nests_in(parts)}
    blocks = [Block(0, len(writer.lines), lines).moved(len(head) + len(first))]
    source = "\n".join([*head, *first, *writer.lines]) + "\n"
    return Kernel(name, source, arguments, writer.functions, threads, is_block, writer.checks, blocks)


def _type(dtype: np.dtype) -> str:
    return "bool_" if dtype == np.bool_ else dtype.name


# What kernels call


class _Type:
    """A data type for the simulator, which runs kernels in Python: it converts what NumPy's own refuses."""

    def __init__(self, name: str):
        self.dtype = np.dtype(name)

    def __call__(self, x: Any) -> Any:
        return np.asarray(x).astype(self.dtype)[()]


class _Cuda:
    """What a kernel finds as `cuda` in the simulator, which puts it into the backend while a kernel runs."""

    def __init__(self, mod: Any):
        self._mod = mod

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mod.cuda, name)


def _cuda(mod: Any) -> Any:
    return _Cuda(mod) if mod.SIMULATED else mod.cuda


def compile_kernel(kernel: Kernel, mod: Any) -> Any:
    """The source as a kernel, for a backend module `mod`; it becomes machine code in its first launch.

    It is not kept on disk.
    """
    names: dict[str, Any] = {"__name__": __name__, "cuda": _cuda(mod), "PASSED": PASSED}
    names |= {"inf": math.inf, "nan": math.nan}
    names |= {name: _Type(name.rstrip("_")) if mod.SIMULATED else getattr(np, name) for name in TYPES}
    names |= {function_name(*function): _device_function(*function, mod) for function in kernel.functions}
    exec(compile(kernel.source, f"<needle {kernel.name}>", "exec"), names)
    return mod.kernel(names[kernel.name])


@cache
def _device_function(name: str, dtype: str, mod: Any) -> Callable:
    """A row of the table for numbers of one data type; "block_" and a row: what a block of threads folds."""
    number = _Type(dtype) if mod.SIMULATED else np.dtype(dtype).type
    if not name.startswith("block_"):
        f = mod.scalar_function(SCALAR_FUNCTIONS[name], np.dtype(dtype))
        if SCALAR_FUNCTIONS[name].arity == 1:
            return mod.device_function(lambda x: number(f(x)))
        return mod.device_function(lambda x, y: number(f(x, y)))
    f, cuda = _device_function(name.removeprefix("block_"), dtype, mod), _cuda(mod)
    half_of_block = mod.THREADS // 2

    def block_total(shares, share):
        thread = cuda.threadIdx.x
        cuda.syncthreads()  # nobody needs the shares of an earlier total any more
        shares[thread] = share
        half = half_of_block
        while half > 0:
            cuda.syncthreads()
            if thread < half:
                shares[thread] = f(shares[thread], shares[thread + half])
            half //= 2
        cuda.syncthreads()
        return shares[0]

    return mod.device_function(block_total)


# A program


class CudaCallWriter(CallWriter):
    """Writes the function `call` of a program on a card: it asks and hands out as on the CPU."""

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
                given[buffer.name] = f"on_card({value})"
                self.names["on_card"] = lambda values: _on_card(values, mod)
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


def _on_card(values: np.ndarray, mod: Any) -> Any:
    array = mod.Array(values.size, values.dtype)
    mod.from_numpy(values, array)
    return array


class CudaProgram(Program):
    """A program on a card, with its storage. Only numbers and arrays of NumPy's come from the host.

    It takes no notice of `debug`: the simulator runs kernels as plain Python.

    Attributes
    ----------
    parts : list of Kernel, Own or Call
        What is launched, in this order.
    """

    call_writer = CudaCallWriter

    @property
    def _device(self) -> Any:
        specs = [x.cell for x in self.trace.inputs] + [spec for _, spec in self.results]
        return next(spec.device for spec in specs if spec.device.name == "cuda")

    def _schedule(self, steps: list[Any], wanted: set[Buffer]) -> None:
        self.nests = simplify(steps, wanted, accumulates=False)
        self.plan = schedule(self.nests, on_card=True)

    def _write(self) -> None:
        """Write a kernel for each segment."""
        mod = self._device.mod
        self.parts: list[Any] = []
        self.checks: list[Nest] = []
        needed: dict[str, Buffer] = {}
        several = len(self.plan.segments) > 1
        for number, segment in enumerate(self.plan.segments, start=1):
            part = self._part(segment, f"step_{number}" if several else "step", mod.THREADS)
            self.parts.append(part)
            if isinstance(part, Kernel):
                self.checks += part.checks
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
        self._status = mod.Array(1, "int32") if self.checks else None

    def _part(self, segment: Any, name: str, block: int) -> Any:
        if isinstance(segment, Call):
            return segment
        if isinstance(segment, Nest):
            return Own(segment, self._comment(segment))
        if not isinstance(segment, list) and is_one_total(segment):
            (nest,) = segment.nests()
            if nest.function == "copy" and isinstance(nest.reads[0], Access) and nest.reads[0].via is None:
                return Own(nest, self._comment(nest))
        return write_kernel(name, segment, self.plan, self._formulas, len(self.checks), block)

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
        if self._status is not None:
            self._device.mod.fill(self._status, PASSED)
            arrays["status"] = self._status
        self._launch(arrays, {name: x.buffer for name, x in arrays.items()} | numbers)
        self._look(len(self.checks), arrays)

    def _launch(self, arrays: dict[str, Any], given: dict[str, Any]) -> None:
        """Launch everything, and wait for nothing but operators that need numbers on the host."""
        mod = self._device.mod
        passed = 0
        for part, kernel in zip(self.parts, self._kernels, strict=True):
            if isinstance(part, Kernel):
                arguments = [given[name] for name in part.arguments]
                threads = mod.THREADS if part.threads >= _FEW else min(mod.THREADS, _SMALL_BLOCK)
                if part.is_block:
                    mod.launch(kernel, 1, part.threads, *arguments)
                else:
                    mod.launch(kernel, -(-part.threads // threads), threads, *arguments)
                passed += len(part.checks)
            elif isinstance(part, Own):
                self._launch_own(part.nest, arrays)
            else:
                self._look(passed, arrays)
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

    def _look(self, passed: int, arrays: dict[str, Any]) -> None:
        """Raise the error of the first check that failed, of so many; it waits until the kernels are done."""
        if not passed:
            return
        mod = self._device.mod
        status = int(mod.to_numpy(self._status, (1,), (1,), 0)[0])
        if status != PASSED:
            check = self.checks[status - 1]
            given = arrays[check.reads[0].buffer.name]
            values = mod.to_numpy(given, (given.size,), (1,), 0)
            raise check.refusal(read_before(self.plan.lowered[check], values))  # type: ignore[misc]

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
