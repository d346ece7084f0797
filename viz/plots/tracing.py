"""Running a CUDA kernel in Python, thread by thread, and noting what each thread reads and writes.

Nothing is compiled and no graphics card is needed: the kernel's Python function runs once for each thread,
with a `cuda` that is made here in place of Numba's. One thread runs at a time, in order of its number, up to
its end or to the next barrier; when all threads of a block have come to the barrier, all go on.
"""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import math
import re
import sys
import textwrap
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import CellType, CodeType, FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from needle.autograd import Tensor

from ..text import elide

__all__ = ["Access", "KernelTrace", "Race", "refusal", "trace_kernel"]

Shape = tuple[int, ...]

MOST_THREADS = 4096
MOST_ACCESSES = 500_000
MOST_BARRIERS = 2000

# Of CUDA itself: "Technical specifications per compute capability" in NVIDIA's CUDA C++ programming guide.
MOST_IN_BLOCK = 1024  # threads
LARGEST = {"grid": (2**31 - 1, 65535, 65535), "block": (1024, 1024, 64)}


@dataclass(frozen=True, slots=True)
class Access:
    """One thread reads or writes one element.

    Attributes
    ----------
    block, thread : tuple of int
        blockIdx and threadIdx, as (x, y, z).
    phase : int
        How many barriers the block had passed.
    kind : str
        "read", "write", or "atomic", which is both at once.
    array : str
        A parameter's name, or "shared cache" for a shared array called `cache`.
    index : tuple of int
    """

    block: Shape
    thread: Shape
    phase: int
    kind: str
    array: str
    index: Shape


@dataclass(frozen=True, slots=True)
class Race:
    """Two threads meet at an element, at least one of them writes, and no barrier orders them.

    Attributes
    ----------
    array : str
    index : tuple of int
    first, second : Access
    """

    array: str
    index: Shape
    first: Access
    second: Access

    def __str__(self) -> str:
        one, other = (f"{_who(access)} {VERBS[access.kind]}" for access in (self.first, self.second))
        return f"{self.array}[{joined(self.index)}]: {one}, {other} it, and no barrier lies between"


@dataclass
class KernelTrace:
    """What the threads of a launch did.

    Attributes
    ----------
    name : str
    grid, block : (x, y, z)
        How many blocks, and threads in each.
    shapes : dict from str to tuple of int
        Of the arrays: parameters by name, then shared ones.
    arrays : dict from str to numpy.ndarray
        What the launch left in the parameters; the arrays that were given are as before.
    accesses : list of Access
        Of global and shared arrays, in the order in which they happened. Local arrays are not among them.
    out_of_bounds : list of Access
        What was refused: reads gave 0, writes did nothing.
    races : list of Race
        One for each element where there is one.
    phases : int
        The largest number of barriers that a block passed, plus 1.
    """

    name: str
    grid: Shape
    block: Shape
    shapes: dict[str, Shape] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    out_of_bounds: list[Access] = field(default_factory=list)
    races: list[Race] = field(default_factory=list)
    phases: int = 1

    @property
    def blocks(self) -> list[Shape]:
        """Every blockIdx, x fastest."""
        return _places(self.grid)

    @property
    def threads(self) -> list[Shape]:
        """Every threadIdx, x fastest."""
        return _places(self.block)

    def count(self, kind: str, shared: bool = False) -> int:
        """How many reads or writes there were, of global or of shared memory; an atomic one is both."""
        return sum(
            access.kind in (kind, "atomic") and access.array.startswith("shared ") == shared
            for access in self.accesses
        )

    def __str__(self) -> str:
        """Memory traffic and mistakes, in a few lines."""
        threads = len(self.blocks) * len(self.threads)
        lines = [
            f"{self.name}: {len(self.blocks)} block{'s' * (len(self.blocks) != 1)} of {len(self.threads)} "
            f"threads"
        ]
        for shared in (False, True):
            reads, writes = (self.count(kind, shared) for kind in ("read", "write"))
            if reads or writes or not shared:
                lines.append(
                    f"{'shared' if shared else 'global'} memory: {reads:,} reads and {writes:,} writes, "
                    f"{reads / threads:.3g} and {writes / threads:.3g} a thread"
                )
        lines += [f"out of bounds: {refusal(access, self.shapes)}" for access in self.out_of_bounds]
        lines += [f"race: {race}" for race in self.races]
        return "\n".join(lines)


VERBS = {"read": "reads", "write": "writes", "atomic": "changes"}


def _who(access: Access) -> str:
    return f"thread {joined(trimmed(access.thread))} of block {joined(trimmed(access.block))}"


def trimmed(place: Shape) -> Shape:
    """(x, y, z) without trailing zeros."""
    while len(place) > 1 and place[-1] == 0:
        place = place[:-1]
    return place


def joined(index: Shape) -> str:
    return ", ".join(map(str, index))


def refusal(access: Access, shapes: dict[str, Shape]) -> str:
    """What an access out of bounds tried to do, in words."""
    return (
        f"{_who(access)} {VERBS[access.kind]} {access.array}[{joined(access.index)}], outside shape "
        f"{shapes[access.array]}"
    )


def _places(size: Shape) -> list[Shape]:
    return [(x, y, z) for z, y, x in product(*map(range, reversed(size)))]


def trace_kernel(kernel: Callable, grid: Any, block: Any, *args: Any) -> KernelTrace:
    """Run a CUDA kernel's Python function for each thread and note every access to memory.

    The kernel may be under ``@cuda.jit`` or not. Its `cuda`, global or from an enclosing function, is
    replaced for this run only, also in the functions that it calls; a first parameter called `cuda` is given
    one, and a function of `cuda` alone is taken to return the kernel. There are threadIdx, blockIdx,
    blockDim, gridDim, grid, gridsize, shared.array, local.array, syncthreads, syncwarp, threadfence and
    atomic.

    Numba compiles a kernel under ``@cuda.jit`` with a signature before anything can be traced, and needs a
    graphics card for that: without one, leave the signature out.

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
        If the launch is none, too large (for CUDA, or to be followed), or uses what there is not; if the
        function launches a kernel instead of being one.

    Examples
    --------
    >>> print(viz.trace_kernel(add, 2, 4, out, a, b))
    """
    sizes = [_size(name, given) for name, given in (("grid", grid), ("block", block))]
    threads = math.prod(sizes[0]) * math.prod(sizes[1])
    if threads > MOST_THREADS:
        raise ValueError(
            f"kernel_trace: {threads:,} threads are more than the {MOST_THREADS:,} that can be followed; "
            "launch fewer blocks on a smaller array"
        )
    cuda = _Cuda()
    function, parameters = _with_cuda(kernel, cuda)
    name = getattr(kernel, "__name__", None) or function.__name__
    trace = KernelTrace(name, sizes[0], sizes[1])
    run = _Run(trace, cuda)
    given = run.arguments(parameters, args)
    for place in trace.blocks:
        run.block(place, function, given)
    trace.races = _races(trace.accesses)
    return trace


def _size(name: str, given: Any) -> Shape:
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(sizes) <= 3 or any(
        isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1 for n in sizes
    ):
        raise TypeError(f"kernel_trace: {name}: needs 1 to 3 whole numbers from 1 on, got {given!r}")
    size = (*map(int, sizes), *(1,) * (3 - len(sizes)))
    for axis, length, most in zip("xyz", size, LARGEST[name], strict=True):
        if length > most:
            raise ValueError(
                f"kernel_trace: {name}: {given!r} is {length:,} along {axis}, where CUDA has at most {most:,}"
            )
    if name == "block" and math.prod(size) > MOST_IN_BLOCK:
        raise ValueError(
            f"kernel_trace: block: {given!r} is {math.prod(size):,} threads, and CUDA has at most "
            f"{MOST_IN_BLOCK:,} in a block; launch more blocks of fewer threads"
        )
    return size


# The kernel with another `cuda`


def _with_cuda(kernel: Callable, cuda: _Cuda) -> tuple[Callable, list[str]]:
    """A function of a kernel's arguments, and the names of its parameters."""
    function = _python_function(kernel)
    if function is None:
        raise TypeError(
            f"kernel_trace: needs a kernel's Python function or what cuda.jit makes of it, got "
            f"{type(kernel).__name__}"
        )
    rebuilding = _Rebuilding(cuda)
    rebuilt = rebuilding.function(function)
    if function is kernel:  # under cuda.jit it is a kernel, however it is written
        for called in rebuilding.made.values():
            if launch := _launch_in(called):
                where = f" in {called.__name__}" * (called is not rebuilt)
                raise TypeError(
                    f"kernel_trace: {function.__name__} is no kernel but launches one, by {elide(launch, 60)}"
                    f"{where}; trace that kernel itself"
                )
    names = list(inspect.signature(rebuilt).parameters)
    if names == ["cuda"]:
        made = rebuilt(cuda)
        inner = _python_function(made)
        if inner is None:
            raise TypeError(
                f"kernel_trace: {function.__name__}(cuda) must return the kernel, got {type(made).__name__}"
            )
        return _with_cuda(inner, cuda)
    if names and names[0] == "cuda":
        return lambda *args: rebuilt(cuda, *args), names[1:]
    return rebuilt, names


def _python_function(thing: Any) -> FunctionType | None:
    """The function as it was written, also under Numba's compilers and its simulator."""
    for name in ("py_func", "fn"):
        inner = getattr(thing, name, None)
        if isinstance(inner, FunctionType):
            return inner
    return thing if isinstance(thing, FunctionType) else None


def _launch_in(function: FunctionType) -> str:
    """How a function launches a kernel, ``kernel[grid, block](...)``; empty if it is not seen to."""
    try:
        written = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError, IndexError):  # no source, or a part of a longer line
        return ""
    if not isinstance(written, ast.FunctionDef):
        return ""
    parts = (part for statement in written.body for part in ast.walk(statement))
    launches = (p for p in parts if isinstance(p, ast.Call) and isinstance(p.func, ast.Subscript))
    return next(map(ast.unparse, launches), "")


class _Rebuilding:
    """Copies of functions that see another `cuda`; the originals and their modules stay as they are."""

    def __init__(self, cuda: _Cuda):
        self.cuda = cuda
        self.made: dict[int, FunctionType] = {}

    def function(self, function: FunctionType) -> FunctionType:
        if id(function) in self.made:
            return self.made[id(function)]
        names = set(_names_in(function.__code__))
        scope = dict(function.__globals__)
        cells = tuple(CellType() for _ in function.__closure__ or ())
        copy = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        self.made[id(function)] = copy
        for name in names & scope.keys():
            scope[name] = self.value(scope[name], function)
        for new, old in zip(cells, function.__closure__ or (), strict=True):
            try:
                new.cell_contents = self.value(old.cell_contents, function)
            except ValueError:  # the enclosing function has not given it a value yet
                continue
        return copy

    def value(self, value: Any, user: FunctionType) -> Any:
        """What stands in place of a value that a kernel uses."""
        if isinstance(value, ModuleType):
            if value.__name__ == "numba.cuda" or value.__name__.startswith("numba.cuda.simulator"):
                return self.cuda
            if value.__name__ == "numba":
                return _Numba(value, self.cuda)
            return value
        inner = _python_function(value)
        if inner is not None and (inner is not value or inner.__globals__ is user.__globals__):
            return self.function(inner)
        numbas = vars(sys.modules.get("numba.cuda", SimpleNamespace()))
        for name in _Cuda.NAMES:  # from numba.cuda import grid, syncthreads
            if value is numbas.get(name, self) and name not in ("laneid", "warpsize"):  # numbers
                return getattr(self.cuda, name)
        return value


class _Numba:
    """The package, whose `cuda` is another."""

    def __init__(self, package: ModuleType, cuda: _Cuda):
        self._package, self.cuda = package, cuda

    def __getattr__(self, name: str) -> Any:
        return getattr(self._package, name)


def _names_in(code: CodeType) -> Iterator[str]:
    """The globals that code uses; `code.co_names` has attributes as well."""
    yield from (step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


# The launch


class _Run:
    """A launch: which thread runs, what it did, and the baton that is handed from thread to thread."""

    def __init__(self, trace: KernelTrace, cuda: _Cuda):
        self.trace = trace
        self.cuda = cuda
        self.place: tuple[Shape, Shape] = ((0, 0, 0), (0, 0, 0))
        self.phase = 0
        self.shared: list[_Array] = []  # of the block that runs
        self.shared_asked = 0  # how many the thread that runs has asked for
        self.pause: Callable[[int], None] = lambda line: None
        cuda._run = self

    def arguments(self, parameters: Sequence[str], args: Sequence[Any]) -> list[Any]:
        if len(parameters) != len(args):
            raise TypeError(
                f"kernel_trace: {self.trace.name} has the parameters ({', '.join(parameters)}), but "
                f"{len(args)} arguments are given"
            )
        given: list[Any] = []
        known: dict[int, _Array] = {}
        for name, value in zip(parameters, args, strict=True):
            if id(value) in known:  # one array under two names is one array
                given.append(known[id(value)])
                continue
            if isinstance(value, (np.ndarray, Tensor, list)) or hasattr(value, "numpy"):
                values = np.array(value.numpy() if hasattr(value, "numpy") else value)
                known[id(value)] = self.new_array(name, values)
                self.trace.arrays[name] = values
                given.append(known[id(value)])
            else:
                given.append(value)
        return given

    def new_array(self, name: str, values: np.ndarray) -> _Array:
        self.trace.shapes[name] = values.shape
        return _Array(self, name, values, np.arange(values.size).reshape(values.shape))

    def block(self, block: Shape, function: Callable, args: Sequence[Any]) -> None:
        """All threads of one block, from barrier to barrier."""
        self.shared, self.phase = [], 0
        members = [_Thread(self, block, thread, function, args) for thread in self.trace.threads]
        try:
            running = members
            while running:
                for member in running:
                    member.go_on()
                    if member.error is not None:
                        raised = f"{type(member.error).__name__}{_in_line(member.error)}: {member.error}"
                        raise RuntimeError(
                            f"kernel_trace: thread {joined(trimmed(member.thread))} of block "
                            f"{joined(trimmed(block))} raised {raised}"
                        ) from member.error
                waiting = [member for member in running if member.waits_at is not None]
                self._check_barrier(block, members, waiting)
                running = waiting
                if waiting:
                    self.phase += 1
                    self.trace.phases = max(self.trace.phases, self.phase + 1)
                if self.phase > MOST_BARRIERS:
                    raise ValueError(
                        f"kernel_trace: {self.trace.name}: more than {MOST_BARRIERS:,} barriers in a block; "
                        "does its loop end? Try it on a smaller array"
                    )
        finally:
            for member in members:
                member.abandon()

    def _check_barrier(self, block: Shape, members: list[_Thread], waiting: list[_Thread]) -> None:
        if not waiting:
            return
        lines = sorted({member.waits_at for member in waiting if member.waits_at is not None})
        if len(waiting) == len(members) and len(lines) == 1:
            return
        where = f"kernel_trace: {self.trace.name}: in block {joined(trimmed(block))}"
        if len(lines) > 1:
            raise RuntimeError(
                f"{where} threads wait at different barriers (lines {', '.join(map(str, lines))}); all "
                "threads of a block must come to the same syncthreads()"
            )
        gone = next(member for member in members if member.waits_at is None)
        raise RuntimeError(
            f"{where} {len(waiting)} of {len(members)} threads wait at syncthreads() in line {lines[0]}, but "
            f"thread {joined(trimmed(gone.thread))} ended without coming there; on a graphics card this may "
            "hang. Put the barrier outside of any `if`, and let no thread return before it"
        )

    def note(self, kind: str, array: str, index: Shape, refused: bool) -> None:
        block, thread = self.place
        access = Access(block, thread, self.phase, kind, array, index)
        (self.trace.out_of_bounds if refused else self.trace.accesses).append(access)
        if len(self.trace.accesses) + len(self.trace.out_of_bounds) > MOST_ACCESSES:
            raise ValueError(
                f"more than {MOST_ACCESSES:,} accesses to memory; launch fewer threads on a smaller array"
            )


def _in_line(error: BaseException) -> str:
    """The line of the kernel, or of a function that it calls, from which an error comes."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    where = next((place for place in reversed(frames) if place[0] != __file__), None)
    if where is None:  # the call itself failed
        return ""
    source = linecache.getline(*where).strip()
    return f" in line {where[1]}" + (f", {source}" if source else "")


class _Abandoned(BaseException):
    """Ends a thread that nobody waits for any more."""


class _Thread:
    """A thread of the launch, as a thread of Python that runs only when it is told to."""

    def __init__(self, run: _Run, block: Shape, thread: Shape, function: Callable, args: Sequence[Any]):
        self.thread = thread
        self.error: BaseException | None = None
        self.waits_at: int | None = None
        self._run, self._block = run, block
        self._asked = 0
        self._mine, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._left = False
        self._worker = threading.Thread(target=self._work, args=(function, args), daemon=True)
        self._started = False

    def _work(self, function: Callable, args: Sequence[Any]) -> None:
        self._mine.acquire()
        try:
            if not self._left:
                function(*args)
        except _Abandoned:
            pass
        except BaseException as error:
            self.error = error
        self.waits_at = None
        self._back.release()

    def go_on(self) -> None:
        """Run to the next barrier or to the end."""
        if not self._started:
            self._started = True
            self._worker.start()
        self._run.place = (self._block, self.thread)
        self._run.shared_asked = self._asked
        self._run.pause = self._pause
        self._mine.release()
        self._back.acquire()
        self._asked = self._run.shared_asked

    def _pause(self, line: int) -> None:
        self.waits_at = line
        self._back.release()
        self._mine.acquire()
        if self._left:
            raise _Abandoned

    def abandon(self) -> None:
        """Let a thread that still waits end."""
        self._left = True
        if self._started:
            self._mine.release()
            self._worker.join()


class _Array:
    """An array that notes who reads and writes it; parts of it are views that note as well."""

    def __init__(self, run: _Run, name: str, values: np.ndarray, cells: np.ndarray):
        self._run, self._name, self._values, self._cells = run, name, values, cells

    @property
    def shape(self) -> Shape:
        return self._cells.shape

    @property
    def dtype(self) -> np.dtype:
        return self._values.dtype

    @property
    def ndim(self) -> int:
        return self._cells.ndim

    @property
    def size(self) -> int:
        return self._cells.size

    @property
    def T(self) -> _Array:
        return _Array(self._run, self._name, self._values, self._cells.T)

    def reshape(self, *shape: Any) -> _Array:
        return _Array(self._run, self._name, self._values, self._cells.reshape(*shape))

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Any]:
        # Python's own way would be to go on to the first index that is refused, and none is.
        return (self[i] for i in range(len(self)))

    def _find(self, kind: str, index: Any) -> Any:
        """The cell at an index (noted), a view, or None where the index is outside."""
        try:
            found = self._cells[_plain(index)]
        except IndexError:
            numbers = tuple(index) if isinstance(index, tuple) else (index,)
            whole = all(isinstance(i, (int, np.integer)) for i in numbers)
            if not whole or len(numbers) != self._cells.ndim:
                raise IndexError(
                    f"{self._name}[{index}]: needs {self._cells.ndim} whole numbers for shape "
                    f"{self._cells.shape}"
                ) from None
            self._run.note(kind, self._name, tuple(map(int, numbers)), refused=True)
            return None
        if isinstance(found, np.ndarray) and found.ndim:
            return _Array(self._run, self._name, self._values, found)
        place = tuple(map(int, np.unravel_index(int(found), self._values.shape)))
        self._run.note(kind, self._name, place, refused=False)
        return place

    def __getitem__(self, index: Any) -> Any:
        found = self._find("read", index)
        if isinstance(found, _Array):
            return found
        return self._values.dtype.type(0) if found is None else self._values[found]

    def __setitem__(self, index: Any, value: Any) -> None:
        found = self._find("write", index)
        if isinstance(found, _Array):
            for cell in np.ndindex(found.shape):
                found[cell] = value[cell] if hasattr(value, "shape") else value
        elif found is not None:
            self._values[found] = value

    def change(self, index: Any, function: Callable[[Any], Any]) -> Any:
        """An atomic change of an element; what was there before."""
        found = self._find("atomic", index)
        if isinstance(found, _Array):
            raise TypeError(f"cuda.atomic: {self._name}: the index {index!r} must name one element")
        if found is None:
            return self._values.dtype.type(0)
        before = self._values[found]
        self._values[found] = function(before)
        return before


def _plain(index: Any) -> Any:
    """An index in which whole floats are none: NumPy would say so less clearly."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, (float, np.floating)):
            raise TypeError(f"an index must be a whole number, got {part!r}; use // instead of /")
    return index


# What kernels call


class _Cuda:
    """In place of ``numba.cuda``, for the time of a run."""

    NAMES = (
        "threadIdx", "blockIdx", "blockDim", "gridDim", "grid", "gridsize", "shared", "local", "const",
        "atomic", "syncthreads", "syncwarp", "threadfence", "threadfence_block", "threadfence_system",
        "laneid", "warpsize", "selp", "fma",
    )  # fmt: skip
    warpsize = 32
    _run: _Run

    def __init__(self) -> None:
        self.threadIdx = _Xyz(lambda: self._run.place[1])
        self.blockIdx = _Xyz(lambda: self._run.place[0])
        self.blockDim = _Xyz(lambda: self._run.trace.block)
        self.gridDim = _Xyz(lambda: self._run.trace.grid)
        self.shared = SimpleNamespace(array=self._shared_array)
        self.local = SimpleNamespace(array=self._local_array)
        self.const = SimpleNamespace(array_like=lambda array: array)
        self.atomic = _Atomic()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"cuda.{name} cannot be traced; there are {', '.join(self.NAMES)}")

    @property
    def laneid(self) -> int:
        (x, y, z), (width, height, _) = self._run.place[1], self._run.trace.block
        return (x + width * (y + height * z)) % self.warpsize

    def grid(self, ndim: int) -> Any:
        """The number of the thread among all, along one, two or three axes."""
        block, thread = self._run.place
        sizes = self._run.trace.block
        place = tuple(b * n + t for b, n, t in zip(block, sizes, thread, strict=True))
        return place[0] if ndim == 1 else place[:ndim]

    def gridsize(self, ndim: int) -> Any:
        """How many threads there are, along one, two or three axes."""
        sizes = tuple(b * n for b, n in zip(self._run.trace.grid, self._run.trace.block, strict=True))
        return sizes[0] if ndim == 1 else sizes[:ndim]

    def syncthreads(self) -> None:
        """Wait until all threads of the block are here."""
        self._run.pause(sys._getframe(1).f_lineno)

    def syncwarp(self, mask: int = 0) -> None:
        """Not traced as a barrier: only syncthreads orders accesses here."""

    def threadfence(self) -> None:
        """Nothing to do: one thread runs at a time."""

    threadfence_block = threadfence_system = threadfence

    def selp(self, condition: Any, a: Any, b: Any) -> Any:
        return a if condition else b

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return a * b + c

    def _shared_array(self, shape: Any = None, dtype: Any = "float32", **_: Any) -> _Array:
        run = self._run
        number = run.shared_asked  # a thread's n-th shared array is its block's n-th
        run.shared_asked += 1
        if number == len(run.shared):
            taken = {array._name for array in run.shared}
            name = _shared_name(sys._getframe(1), number, taken)
            run.shared.append(run.new_array(name, _zeros("shared", shape, dtype)))
        return run.shared[number]

    def _local_array(self, shape: Any = None, dtype: Any = "float32", **_: Any) -> np.ndarray:
        return _zeros("local", shape, dtype)


def _shared_name(frame: FrameType, number: int, taken: set[str]) -> str:
    """What the kernel calls a shared array, read from the line that makes it; else its number."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    called = [f"shared {name}" for name in re.findall(r"(?:^|;)\s*(\w+)\s*=\s*[\w.]*shared\.array", line)]
    return next((name for name in called if name not in taken), f"shared {number}")


def _zeros(kind: str, shape: Any, dtype: Any) -> np.ndarray:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes):
        raise ValueError(
            f"cuda.{kind}.array: needs a shape of whole numbers from 1 on, got {shape!r} (the size of "
            "dynamic shared memory is not known here)"
        )
    return np.zeros(sizes, np.dtype(str(dtype) if type(dtype).__module__.startswith("numba") else dtype))


class _Xyz:
    """Where the thread that runs is, or how large something is, along each axis."""

    def __init__(self, place: Callable[[], Shape]):
        self._place = place

    @property
    def x(self) -> int:
        return self._place()[0]

    @property
    def y(self) -> int:
        return self._place()[1]

    @property
    def z(self) -> int:
        return self._place()[2]


class _Atomic:
    """Changes of an element that no other thread can come into; each returns what was there before."""

    def add(self, array: _Array, index: Any, value: Any) -> Any:
        return array.change(index, lambda old: old + value)

    def sub(self, array: _Array, index: Any, value: Any) -> Any:
        return array.change(index, lambda old: old - value)

    def max(self, array: _Array, index: Any, value: Any) -> Any:
        return array.change(index, lambda old: max(old, value))

    def min(self, array: _Array, index: Any, value: Any) -> Any:
        return array.change(index, lambda old: min(old, value))

    def exch(self, array: _Array, index: Any, value: Any) -> Any:
        return array.change(index, lambda old: value)

    def cas(self, array: _Array, index: Any, expected: Any, value: Any) -> Any:
        return array.change(index, lambda old: value if old == expected else old)


# Races


def _races(accesses: Sequence[Access]) -> list[Race]:
    """For each element the first two accesses that clash, in the order of the first of them."""
    at: dict[tuple, list[Access]] = defaultdict(list)
    for access in accesses:
        own_block = access.block if access.array.startswith("shared ") else None
        at[access.array, access.index, own_block].append(access)
    found = []
    for (array, index, _), there in at.items():
        clash = _first_clash(there)
        if clash is not None:
            found.append(Race(array, index, *clash))
    return found


def _first_clash(accesses: list[Access]) -> tuple[Access, Access] | None:
    # Many accesses of one kind by one thread in one phase clash with the same others as a single one.
    kinds = list({(a.block, a.thread, a.phase, a.kind): a for a in accesses}.values())
    changing = [a for a in kinds if a.kind != "read"]
    if not any(a.kind == "write" for a in changing) and len(changing) == len(kinds):
        return None  # only atomic ones
    for one in changing:
        for other in kinds:
            if (one.block, one.thread) == (other.block, other.thread):
                continue
            if one.kind == other.kind == "atomic":
                continue
            if one.block == other.block and one.phase != other.phase:
                continue
            return (one, other)
    return None
