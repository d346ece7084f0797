"""Run a CUDA kernel in Python, one thread after the other, and record what each thread reads and writes.

Nothing is compiled and no GPU is touched: the kernel's Python function is called with a `cuda` that
is based on Numba's simulator, and with arrays that record every access.

No thread can be halted in the middle of a Python function, so a thread that comes to a barrier is stopped by
an exception. When all threads of the block are there, each runs again from its start, up to the next barrier.
What it has done before is not done again: its accesses give what they gave the first time.
"""

from __future__ import annotations

import linecache
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from itertools import islice, product
from traceback import extract_tb
from types import CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from needle.autograd import Tensor

from ..text import counted
from . import without_numba

__all__ = ["KernelTrace", "Race", "ThreadAccess", "trace_kernel"]

Shape = tuple[int, ...]

MOST_THREADS = 4096
MOST_ACCESSES = 500_000
MOST_BARRIERS = 250
OWN_FILES = ("kernel_recording.py", "kernelapi.py")
VERBS = {"read": "reads", "write": "writes", "atomic": "changes"}


@dataclass(frozen=True, slots=True)
class ThreadAccess:
    """One thread reads or writes one element.

    Attributes
    ----------
    block, thread : tuple of int
        blockIdx and threadIdx, as (x, y, z).
    phase : int
        How many barriers the thread had passed.
    kind : str
        "read", "write", or "atomic", which is both at once.
    array : str
        A parameter's name, or "shared cache" for a shared array called `cache`.
    index : tuple of int
    value : number or None
        What was in the element afterwards; None if the access was refused.
    """

    block: Shape
    thread: Shape
    phase: int
    kind: str
    array: str
    index: Shape
    value: Any = field(default=None, compare=False)

    @property
    def memory(self) -> tuple[str, Shape | None]:
        """The array's name, and the block that it belongs to if it is a shared one."""
        return self.array, self.block if self.array.startswith("shared ") else None

    def __str__(self) -> str:
        return f"thread {_short(self.thread)} of block {_short(self.block)} {VERBS[self.kind]}"


@dataclass(frozen=True, slots=True)
class Race:
    """Two threads meet at an element, at least one of them writes, and no barrier orders them."""

    array: str
    index: Shape
    first: ThreadAccess
    second: ThreadAccess

    def __str__(self) -> str:
        element = f"{self.array}[{_joined(self.index)}]"
        return f"{element}: {self.first}, {self.second} it, and no barrier lies between"


@dataclass
class KernelTrace:
    """What the threads of a launch did.

    Attributes
    ----------
    name : str
    grid, block : (x, y, z)
        How many blocks, and threads in each.
    shapes : dict from str to tuple of int
        Shapes of the arrays: parameters by name, then shared arrays.
    arrays : dict from str to numpy.ndarray
        The parameters after the launch. They are copies; your own arrays stay as they are.
    accesses, out_of_bounds : list of ThreadAccess
        What was done, and what was refused (reads gave 0, writes did nothing), in the order in which it
        happened. Accesses to local arrays don't count.
    races : list of Race
        At most one for each element.
    phases : int
        The largest number of barriers that a block passed, plus 1.
    """

    name: str
    grid: Shape
    block: Shape
    shapes: dict[str, Shape] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    accesses: list[ThreadAccess] = field(default_factory=list)
    out_of_bounds: list[ThreadAccess] = field(default_factory=list)
    races: list[Race] = field(default_factory=list)
    phases: int = 1

    @property
    def blocks(self) -> list[Shape]:
        """Every blockIdx, x fastest."""
        return [(x, y, z) for z, y, x in product(*map(range, reversed(self.grid)))]

    @property
    def threads(self) -> list[Shape]:
        """Every threadIdx, x fastest."""
        return [(x, y, z) for z, y, x in product(*map(range, reversed(self.block)))]

    def count(self, kind: str, shared: bool = False) -> int:
        """How many reads or writes there were, of global or of shared memory; an atomic access is both."""
        return sum(a.kind in (kind, "atomic") and (a.memory[1] is not None) == shared for a in self.accesses)

    def traffic(self) -> list[str]:
        """How often global and shared memory was read and written, a line for each.

        Where all threads do the same, it also says how much that is for each.
        """
        threads, lines = math.prod(self.grid + self.block), []
        for memory in ("global", "shared"):
            here = [a for a in self.accesses if (a.memory[1] is not None) == (memory == "shared")]
            total, each, alike = [], [], threads > 1
            for kind in ("read", "write"):
                by = Counter((a.block, a.thread) for a in here if a.kind in (kind, "atomic"))
                total.append(counted(by.total(), kind))
                if by:
                    each.append(counted(max(by.values()), kind))
                    alike = alike and by.total() == threads * max(by.values())
            if each or memory == "global":
                line = f"{memory} memory: {' and '.join(total)}"
                lines.append(f"{line} (each thread: {' and '.join(each)})" if each and alike else line)
        return lines

    def refusals(self) -> list[str]:
        """What went out of bounds, in words."""
        said = (
            f"{a} {a.array}[{_joined(a.index)}], outside shape {self.shapes[a.array]}"
            for a in self.out_of_bounds
        )
        return [f"out of bounds: {words}" for words in dict.fromkeys(said)]

    def __str__(self) -> str:
        """Memory traffic and mistakes, in a few lines."""
        blocks, threads = math.prod(self.grid), math.prod(self.block)
        first = f"{self.name}: {counted(blocks, 'block')} of {counted(threads, 'thread')}"
        races = [f"race: {race}" for race in self.races]
        return "\n".join([first, *self.traffic(), *self.refusals(), *races])


def trace_kernel(kernel: Callable, grid: Any, block: Any, *args: Any) -> KernelTrace:
    """Run a CUDA kernel's Python function for each thread and record every access to memory.

    The kernel may be under ``@cuda.jit`` or not. For this run only, and only for the kernel and the functions
    that it calls, another `cuda` stands in for Numba's. A first parameter called `cuda` is given one too, and
    a function of `cuda` alone is taken to return the kernel.

    Numba compiles a kernel under ``@cuda.jit`` with a signature as soon as it is defined, and needs a
    GPU for that: without one, leave the signature out.

    Parameters
    ----------
    kernel : callable
    grid, block : int or tuple of up to three
        How many blocks, and threads in each: ``kernel[grid, block](*args)``.
    *args : array, Tensor or number
        Arrays are copied: what the kernel writes is in the trace.

    Returns
    -------
    KernelTrace

    Raises
    ------
    RuntimeError
        If not all threads of a block come to the same barrier, or one raises an exception.
    TypeError, ValueError
        If the launch is too large or its arguments don't fit; if the function launches a kernel instead of
        being one.

    Examples
    --------
    >>> print(viz.trace_kernel(add, 2, 4, out, a, b))
    """
    trace = KernelTrace("", _size("grid", grid), _size("block", block))
    in_block, threads = math.prod(trace.block), math.prod(trace.grid + trace.block)
    if in_block > 1024 or trace.block[2] > 64:
        most = "CUDA has at most 1,024 in a block and 64 along z; launch more blocks of fewer threads"
        raise ValueError(f"kernel_trace: block: {block!r} is {in_block:,} threads; {most}")
    if threads > MOST_THREADS:
        most = f"more than the {MOST_THREADS:,} that can be followed; launch fewer blocks on a smaller array"
        raise ValueError(f"kernel_trace: {threads:,} threads are {most}")
    cuda = _Cuda(trace)
    function, names = _with_cuda(kernel, cuda)
    if len(names) != len(args):
        listed = f"{trace.name} has the parameters ({', '.join(names)})"
        are_given = f"{counted(len(args), 'argument')} {'is' if len(args) == 1 else 'are'} given"
        raise TypeError(f"kernel_trace: {listed}, but {are_given}")
    given = cuda._arguments(names, args)
    for place in trace.blocks:
        cuda._run_block(place, lambda: function(*given))
    trace.races = list(_races(trace.accesses))
    return trace


def _size(name: str, given: Any) -> Shape:
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n > 0 for n in sizes)
    if not whole or not 1 <= len(sizes) <= 3:
        raise TypeError(f"kernel_trace: {name}: needs 1 to 3 whole numbers from 1 on, got {given!r}")
    return (*map(int, sizes), *(1,) * (3 - len(sizes)))


def _short(place: Shape) -> str:
    """(x, y, z) without zeros at its end."""
    return _joined(place).removesuffix(", 0").removesuffix(", 0")


def _joined(index: Sequence[Any]) -> str:
    return ", ".join(map(str, index))


# A kernel that sees another `cuda`


def _with_cuda(kernel: Any, cuda: _Cuda) -> tuple[Callable, list[str]]:
    """A function of a kernel's arguments, and the names of its parameters."""
    function = getattr(kernel, "py_func", kernel)
    if not isinstance(function, FunctionType):
        needed = "needs a kernel's Python function or what cuda.jit makes of it"
        raise TypeError(f"kernel_trace: {needed}, got {type(kernel).__name__}")
    cuda._trace.name = cuda._trace.name or function.__name__
    copy, names = _stand_in(function, cuda), list(signature(function).parameters)
    if names == ["cuda"]:
        return _with_cuda(copy(cuda), cuda)
    return (partial(copy, cuda), names[1:]) if names[:1] == ["cuda"] else (copy, names)


def _stand_in(value: Any, cuda: _Cuda) -> Any:
    """What a kernel sees in place of a global or enclosed value. The original stays as it is."""
    if isinstance(value, ModuleType) and value.__name__.startswith("numba"):
        return SimpleNamespace(**{**vars(value), "cuda": cuda}) if value.__name__ == "numba" else cuda
    name = getattr(value, "__name__", "")
    if name and str(getattr(value, "__module__", "")).startswith("numba.cuda"):
        return getattr(cuda, name)  # from numba.cuda import threadIdx
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType):
        return value
    cells = tuple(CellType(_stand_in(cell.cell_contents, cuda)) for cell in function.__closure__ or ())
    scope = _Scope(function.__globals__, cuda)
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)


class _Scope(dict):
    """The globals of a copied function. Python looks here, so each name is replaced when it is needed."""

    def __init__(self, names: dict[str, Any], cuda: _Cuda):
        super().__init__(print=cuda._print)
        self.names, self.cuda = names, cuda

    def __missing__(self, name: str) -> Any:
        self[name] = _stand_in(self.names[name], self.cuda)  # a KeyError leads on to what Python has built in
        return self[name]


class _Barrier(BaseException):
    """A thread has come to a barrier that it cannot pass yet, in the line that is given."""


# The launch


class _Cuda:
    """What kernels call `cuda`: for one thread at a time, with a record of what threads do."""

    def __init__(self, trace: KernelTrace):
        try:
            from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule  # other plots don't need Numba
        except ImportError:
            Dim3, FakeCUDAModule = without_numba.Dim3, without_numba.FakeCUDAModule

        self._trace = trace
        self._simulator = FakeCUDAModule(trace.grid, trace.block, 0)
        self._arrays: list[_Array] = []  # shared ones of the block that runs
        self.threadIdx, self.blockIdx = Dim3(0, 0, 0), Dim3(0, 0, 0)
        self.shared = SimpleNamespace(array=self._shared_array)
        self.local = SimpleNamespace(array=_zeros)
        self.atomic = _Atomic(self._simulator.atomic)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the simulator's: blockDim, grid, fma, … Its functions ask this object."""
        if name.startswith(("_", "cg", "syncthreads_")) or not hasattr(self._simulator, name):
            known = "threadIdx, blockIdx, grid, gridsize, shared, local, atomic, syncthreads, …"
            raise AttributeError(f"cuda.{name} cannot be traced; there are {known}")
        value = getattr(self._simulator, name)
        return MethodType(value.__func__, self) if isinstance(value, MethodType) else value

    @property
    def laneid(self) -> int:
        (x, y, z), (width, height, _) = self._place[1], self._trace.block
        return (x + width * (y + height * z)) % 32

    def syncthreads(self) -> None:
        """Wait until all threads of the block are here."""
        if self._passed == self._phase:
            raise _Barrier(sys._getframe(1).f_lineno)
        self._passed += 1

    def syncwarp(self, mask: int = 0) -> None:
        """Not traced as a barrier: only syncthreads orders accesses here."""

    def _arguments(self, names: Sequence[str], args: Sequence[Any]) -> list[Any]:
        """The kernel's arguments, arrays as copies that record. One array under two names is one array."""
        known: dict[int, Any] = {}
        for name, value in zip(names, args, strict=True):
            is_array = isinstance(value, (np.ndarray, Tensor, list)) or hasattr(value, "numpy")
            if is_array and id(value) not in known:
                values = np.array(value.numpy() if hasattr(value, "numpy") else value, order="C")
                self._trace.arrays[name] = values
                known[id(value)] = self._new_array(name, values)
        return [known.get(id(value), value) for value in args]

    def _new_array(self, name: str, values: np.ndarray) -> _Array:
        self._trace.shapes[name] = values.shape
        return _Array(self, name, values, np.arange(values.size).reshape(values.shape))

    def _run_block(self, block: Shape, call: Callable) -> None:
        """All threads of one block, from barrier to barrier."""
        self._arrays = []
        done: dict[Shape, list[Any]] = {thread: [] for thread in self._trace.threads}
        for self._phase in range(MOST_BARRIERS + 1):  # how many barriers a thread may pass
            lines = {thread: self._run_thread(block, thread, done[thread], call) for thread in done}
            self._trace.phases = max(self._trace.phases, self._phase + 1)
            where = f"kernel_trace: {self._trace.name}: in block {_short(block)}"
            ended = [thread for thread, line in lines.items() if line == 0]
            if len(ended) == len(lines):
                return
            reached = sorted({*lines.values()} - {0})
            problem = f"threads wait at different barriers (lines {_joined(reached)})"
            if ended and len(reached) == 1:
                waiting = f"{len(lines) - len(ended)} of {len(lines)} threads wait at syncthreads()"
                early = f"thread {_short(ended[0])} ended without coming there"
                problem = f"{waiting} in line {reached[0]}, but {early}"
            if ended or len(reached) > 1:
                advice = "put it outside of any `if`, let no thread return before it"
                hang = "on a GPU this may hang. All threads of a block must come to the same"
                raise RuntimeError(f"{where} {problem}; {hang} syncthreads(): {advice}")
        raise ValueError(f"{where}: more than {MOST_BARRIERS} barriers; does its loop end?")

    def _run_thread(self, block: Shape, thread: Shape, done: list[Any], call: Callable) -> int:
        """Run a thread up to the next barrier; the line in which that is, or 0 at the thread's end."""
        self._place, self._done = (block, thread), done
        self._passed = self._repeated = self._asked = 0  # barriers, accesses, shared arrays so far
        vars(self.blockIdx).update(zip("xyz", block, strict=True))
        vars(self.threadIdx).update(zip("xyz", thread, strict=True))
        try:
            call()
        except _Barrier as barrier:
            return barrier.args[0]
        except Exception as error:
            frames = [f for f in extract_tb(error.__traceback__) if not f.filename.endswith(OWN_FILES)]
            line = f" in line {frames[-1].lineno}, {frames[-1].line}".rstrip(", ") if frames else ""
            who = f"thread {_short(thread)} of block {_short(block)}"
            launches = "'function' object is not subscriptable" in str(error)
            hint = "; if this launches a kernel, trace that kernel instead" * launches
            raise RuntimeError(
                f"kernel_trace: {who} raised {type(error).__name__}{line}: {error}{hint}"
            ) from error
        return 0

    def _access(
        self, kind: str, array: str, index: Shape, act: Callable[[], Any], element: np.ndarray | None = None
    ) -> Any:
        """What `act` gives, or gave when the thread was here before; refused where there is no `element`."""
        self._repeated += 1
        if self._repeated > len(self._done):
            self._done.append(act())
            noted = self._trace.out_of_bounds if element is None else self._trace.accesses
            value = None if element is None else element[0].item()
            noted.append(ThreadAccess(*self._place, self._phase, kind, array, index, value))
            if len(noted) > MOST_ACCESSES:
                raise ValueError(f"more than {MOST_ACCESSES:,} accesses; launch fewer threads")
        return self._done[self._repeated - 1]

    def _print(self, *args: Any, **options: Any) -> None:
        """Print, but not again."""
        if self._passed == self._phase:
            print(*args, **options)

    def _shared_array(self, shape: Any, dtype: Any, **_: Any) -> _Array:
        self._asked += 1  # a thread's n-th shared array is its block's n-th
        if self._asked > len(self._arrays):
            frame, taken = sys._getframe(1), {array._name for array in self._arrays}
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            called = (f"shared {name}" for name in re.findall(r"(\w+)\s*=\s*[\w.]*shared\.array", line))
            name = next((name for name in called if name not in taken), f"shared {len(taken)}")
            self._arrays.append(self._new_array(name, _zeros(shape, dtype)))
        return self._arrays[self._asked - 1]


def _zeros(shape: Any, dtype: Any, **_: Any) -> np.ndarray:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes):
        raise ValueError(f"needs whole numbers from 1 on, got {shape!r}; dynamic shared memory is not traced")
    return np.zeros(sizes, str(dtype) if type(dtype).__module__.startswith("numba") else dtype)


class _Atomic:
    """The simulator's atomic changes, each recorded as one access. They return what was there before."""

    def __init__(self, simulator: Any):
        self.simulator = simulator

    def __getattr__(self, name: str) -> Callable:
        change = getattr(self.simulator, name)
        return lambda array, index, *values: array._at("atomic", index, lambda x: change(x, 0, *values))

    def compare_and_swap(self, array: _Array, old: Any, value: Any) -> Any:
        return self.cas(array, (0,) * array.ndim, old, value)


class _Array:
    """An array that records who reads and writes it, or a view of one; `cells` are its elements' numbers."""

    def __init__(self, cuda: _Cuda, name: str, values: np.ndarray, cells: np.ndarray):
        self._cuda, self._name, self._values, self._cells = cuda, name, values, cells
        self.shape, self.ndim, self.size, self.dtype = cells.shape, cells.ndim, cells.size, values.dtype

    @property
    def T(self) -> _Array:
        return self._view(self._cells.T)

    def reshape(self, *shape: Any) -> _Array:
        return self._view(self._cells.reshape(*shape))

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))  # Python's own way ends at an IndexError, and none comes

    def __getitem__(self, index: Any) -> Any:
        return self._at("read", index, lambda element: element[0])

    def __setitem__(self, index: Any, value: Any) -> None:
        view = self._at("write", index, lambda element: element.fill(value))
        if isinstance(view, _Array):
            for place in np.ndindex(view.shape):
                view[place] = value[place] if getattr(value, "shape", ()) else value

    def _at(self, kind: str, index: Any, act: Callable[[np.ndarray], Any]) -> Any:
        """A view; or what `act` does with the element at an index, as an array of one."""
        try:
            cell = self._cells[index]
        except IndexError:
            numbers = index if isinstance(index, tuple) else (index,)
            counts = len(numbers) == self.ndim
            if not counts or not all(isinstance(i, (int, np.integer)) for i in numbers):
                needed = f"needs {counted(self.ndim, 'whole number')} for shape {self.shape}, "
                needed += "such as `//` gives" if counts else f"got {len(numbers)}"
                raise IndexError(f"{self._name}[{_joined(numbers)}]: {needed}") from None
            zero = self.dtype.type(0)
            return self._cuda._access(kind, self._name, tuple(map(int, numbers)), lambda: zero)
        if isinstance(cell, np.ndarray):
            return self._view(cell)
        place = tuple(map(int, np.unravel_index(cell, self._values.shape)))
        element = self._values.reshape(-1)[cell : cell + 1]
        return self._cuda._access(kind, self._name, place, lambda: act(element), element)

    def _view(self, cells: np.ndarray) -> _Array:
        return _Array(self._cuda, self._name, self._values, cells)


# Races


def _races(accesses: Sequence[ThreadAccess]) -> Iterator[Race]:
    """For each element the first two accesses that clash, in the order of the first of them."""
    at: dict[tuple, dict[tuple, ThreadAccess]] = defaultdict(dict)
    for a in accesses:  # several of one kind by one thread in one phase clash with the same others as one
        at[a.memory, a.index].setdefault((a.block, a.thread, a.phase, a.kind), a)
    for ((array, _), index), there in at.items():
        if any(a.kind != "atomic" for a in there.values()):
            pairs = product((a for a in there.values() if a.kind != "read"), there.values())
            yield from islice((Race(array, index, a, b) for a, b in pairs if _clash(a, b)), 1)


def _clash(one: ThreadAccess, other: ThreadAccess) -> bool:
    unordered = one.block != other.block or (one.thread != other.thread and one.phase == other.phase)
    return unordered and not one.kind == other.kind == "atomic"
