"""What Numba made of a computation: the kernels that ran, their vector instructions, threads and time."""

from __future__ import annotations

import copy
import linecache
import re
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from . import backend_ndarray, ops
from .autograd import Tensor, lazy, no_grad
from .backend_ndarray.llvm_loops import Loop, number_loops
from .backend_selection import BACKEND

#: Up to this many numbers a function of one's own is also run as plain Python, which is slow.
PYTHON_SIZE = 1 << 14


@dataclass(frozen=True)
class ParallelLoops:
    """What Numba's parallel report says of a function.

    Attributes
    ----------
    lines : tuple of str
        The lines of source whose loops are divided among threads.
    fused : int
        How many loops were made one with these.
    serial : int
        How many parallel loops are inside these, where one thread does each.
    reductions : tuple of str
        Variables, or functions such as `sum`, for which each thread has a total of its own.
    hoisted : int
        How many arrays are allocated once, before the loop, instead of in each iteration.
    """

    lines: tuple[str, ...]
    fused: int = 0
    serial: int = 0
    reductions: tuple[str, ...] = ()
    hoisted: int = 0

    def __str__(self) -> str:
        loops = "the loop" if len(self.lines) == 1 else f"each of {len(self.lines)} loops"
        more = [
            f"{_counted(self.fused, 'loop')} fused" if self.fused else "",
            f"{_counted(self.serial, 'inner loop')} not divided" if self.serial else "",
            f"reduced: {', '.join(self.reductions)}" if self.reductions else "",
            f"{_counted(self.hoisted, 'allocation')} hoisted" if self.hoisted else "",
        ]
        return "; ".join([f"{loops} `{'`, `'.join(self.lines)}`", *filter(None, more)])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class CompiledKernel:
    """What Numba did with one kernel, for one choice of data types.

    Attributes
    ----------
    name : str
        The function that was compiled, and what it applies: ``map_aligned(exp)``.
    types : str
        The data types it was compiled for.
    compile_seconds : float
        How long that took, with all that it calls and nothing taken from the cache on disk.
    loops : tuple of Loop
        Its innermost loops over floating-point numbers, as the compiler left them.
    threads : int
        How many threads share its work.
    parallel : ParallelLoops, or str
        What they share; or one sentence that says why there is one thread, or why more is not known.
    """

    name: str
    types: str
    compile_seconds: float
    loops: tuple[Loop, ...]
    threads: int
    parallel: ParallelLoops | str

    @property
    def lanes(self) -> int:
        """How many numbers one instruction computes, in the loop where they are most; else 1."""
        return max((loop.lanes for loop in self.loops), default=1)

    @property
    def vectors(self) -> str:
        """Whether its loops became vector instructions, in words."""
        if not self.loops:
            return "no loop over floating-point numbers"
        if self.lanes == 1:
            calls = sorted(frozenset().union(*(loop.calls for loop in self.loops)))
            return "one number at a time" + (f": each needs a call of {' and '.join(calls)}" if calls else "")
        widest = max(self.loops, key=lambda loop: loop.lanes)
        bits = widest.lanes * np.dtype(widest.dtype).itemsize * 8
        often = "" if min(loop.lanes for loop in self.loops) > 1 else "; other loops: one at a time"
        return f"{self.lanes} {widest.dtype} at once ({bits}-bit vectors){often}"

    @property
    def verdict(self) -> str:
        """Whether threads share its work, in words."""
        if isinstance(self.parallel, str):
            return f"{self.threads}: {self.parallel}"
        return f"{self.threads} share {self.parallel}"

    def __str__(self) -> str:
        return (
            f"  {self.name}, {self.types}, compiled in {self.compile_seconds:.2f} s\n"
            f"    vectors  {self.vectors}\n"
            f"    threads  {self.verdict}"
        )


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; ``print`` shows it.

    Attributes
    ----------
    name : str
        What was diagnosed.
    arguments : str
        The shapes, and the data type.
    kernels : tuple of CompiledKernel
        Those that ran, in the order of their first call.
    nanoseconds : float
        The time per number of the largest array; a median, as are the others.
    reference_nanoseconds : float or None
        The same of what it is compared with; None if there is nothing.
    reference : str
        What that is: NumPy or plain Python.
    notes : tuple of str
        What else there is to say, in sentences.
    """

    name: str
    arguments: str
    kernels: tuple[CompiledKernel, ...]
    nanoseconds: float
    reference_nanoseconds: float | None
    reference: str
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """The time as a fraction of the reference's."""
        return self.nanoseconds / self.reference_nanoseconds if self.reference_nanoseconds else None

    def __str__(self) -> str:
        timed = f"  time: {_short(self.nanoseconds)} ns per number"
        if self.ratio is not None and self.reference_nanoseconds is not None:
            timed += f", {_short(self.ratio)} × {self.reference}'s {_short(self.reference_nanoseconds)} ns"
        notes = [f"  {note}" for note in self.notes]
        return "\n".join([f"{self.name} of {self.arguments}", *map(str, self.kernels), timed, *notes])

    __repr__ = __str__


def _short(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def diagnose(function: str | Callable, *shapes: Any, dtype: Any = "float32") -> Diagnosis:
    """Run something on the processor and tell what Numba made of it.

    Each kernel that ran is compiled once more, afresh, since Numba tells nothing of what it took from the
    disk. What NumPy does for needle (large matrix products) is not a kernel and not among them.

    Parameters
    ----------
    function : str or callable
        One of: the name of an operator or a scalar function (``"exp"``); a function of Tensors; a kernel of
        the device (``ndl.cpu().ewise_add``), whose arguments are flat storage, the last one for the
        output; a function of NumPy arrays compiled by ``numba.njit``.
    *shapes : tuple of int, or number
        A shape stands for an array of that shape with numbers between 0.5 and 1.5, the same in each run. A
        number is passed on as it is.
    dtype : dtype or str
        float32 or float64.

    Returns
    -------
    Diagnosis
        Its times compare with `cpu_numpy()`, or, for a compiled function, with it as plain Python where that
        has at most `PYTHON_SIZE` numbers to do.

    Raises
    ------
    TypeError
        For a function or an argument that is none of these, and other data types.
    ValueError
        For an unknown name, for kernels of other devices, and where needle computes with NumPy alone.
    """
    values = _values(shapes, dtype)
    arguments = f"{', '.join(map(str, shapes))}, {np.dtype(dtype)}"
    if hasattr(function, "parallel_diagnostics"):
        return _diagnose_compiled(function, values, arguments)
    if hasattr(function, "py_func"):
        raise ValueError(
            "diagnose: reads what Numba compiled for the processor; a graphics card's kernel can be timed, "
            "between two calls of numba.cuda.synchronize()"
        )
    if isinstance(function, np.ufunc) or hasattr(function, "ufunc"):
        raise TypeError(
            "diagnose: cannot read a NumPy ufunc; give the name of an operator, such as 'exp', or a function "
            "under numba.njit"
        )
    if BACKEND != "nd":
        raise ValueError(f"diagnose: NEEDLE_BACKEND={BACKEND} computes with NumPy alone; nothing is compiled")
    return _diagnose_needle(function, values, dtype, arguments)


def _values(shapes: tuple, dtype: Any) -> list:
    """Numbers as they are, and an array for each shape."""
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise TypeError(f"diagnose: dtype {dtype} must be float32 or float64")
    if not any(isinstance(shape, tuple) for shape in shapes):
        raise TypeError(f"diagnose: needs at least one shape, such as (1000, 1000), got {shapes}")
    rng = np.random.default_rng(0)
    values: list[Any] = []
    for shape in shapes:
        if not isinstance(shape, (tuple, int, float)):
            raise TypeError(f"diagnose: needs shapes (tuples) and numbers, got {type(shape).__name__}")
        values.append(np.asarray(rng.random(shape) + 0.5, dtype) if isinstance(shape, tuple) else shape)
    return values


# Functions of Tensors and kernels of the device: the same call on two devices


def _runs(function: Any, values: list, dtype: Any) -> tuple[str, list[Callable]]:
    """The name of a function, and calls that compute it with Numba and with NumPy."""
    devices = [backend_ndarray.cpu(), backend_ndarray.cpu_numpy()]
    if not isinstance(function, str) and not callable(function):
        raise TypeError(f"diagnose: needs a function or the name of one, got {type(function).__name__}")
    module = str(getattr(function, "__module__", ""))
    if module == devices[0].mod.__name__:
        name = next((key for key, value in vars(devices[0].mod).items() if value is function), "")
        runs = [_kernel_run(device.mod, name, values) for device in devices]
        runs[1]()  # a kernel trusts its caller; NumPy's raises an exception for what does not fit
        return name, runs
    if module.startswith(f"{backend_ndarray.__name__}.ndarray_backend_"):
        raise ValueError(
            f"diagnose: needs a kernel of {devices[0]}, such as cpu().ewise_add, got one of {module}; what "
            "other devices run can be timed, but not read"
        )
    name = function if isinstance(function, str) else getattr(function, "__name__", type(function).__name__)
    function = _named(function) if isinstance(function, str) else function
    return name, [_tensor_run(function, values, device, dtype) for device in devices]


def _named(name: str) -> Callable:
    """The operator or, where there is none, the scalar function of that name."""
    operators = {key for key in ops.__all__ if key.islower()}
    if name in operators:
        return getattr(ops, name)
    if name in backend_ndarray.SCALAR_FUNCTIONS:
        return lambda *operands: backend_ndarray.elementwise(
            name, *(x.realize_cached_data() if isinstance(x, Tensor) else x for x in operands)
        )
    known = ", ".join(sorted(operators | backend_ndarray.SCALAR_FUNCTIONS.keys()))
    raise ValueError(f"diagnose: there is no operator or scalar function {name!r}, but {known}")


def _kernel_run(mod: Any, name: str, values: list) -> Callable:
    """A call of a backend's kernel on flat storage."""
    elementwise = name.startswith(("ewise_", "scalar_")) and not name.endswith("setitem")
    if not elementwise and not name.startswith(("reduce_", "matmul")):
        raise ValueError("diagnose: of a device's kernels, ewise_…, scalar_…, reduce_… and matmul can be run")
    sizes = {value.size for value in values if isinstance(value, np.ndarray)}
    if elementwise and len(sizes) > 1:
        raise ValueError(f"diagnose: {name} needs storage of one size, `out` included, got {sorted(sizes)}")
    operands = []
    for value in values:
        if isinstance(value, np.ndarray):
            storage = mod.Array(value.size, value.dtype)
            mod.from_numpy(value, storage)
            operands.append(storage)
        else:
            operands.append(value)
    return lambda: getattr(mod, name)(*operands)


def _tensor_run(function: Callable, values: list, device: Any, dtype: Any) -> Callable:
    """A call of a function of Tensors on a device."""
    operands = [
        Tensor(value, device=device, dtype=dtype) if isinstance(value, np.ndarray) else value
        for value in values
    ]
    return lambda: function(*operands)


def _diagnose_needle(function: Any, values: list, dtype: Any, arguments: str) -> Diagnosis:
    name, (run, reference) = _runs(function, values, dtype)
    notes, calls = [], [run]
    with lazy(False), no_grad():
        size = _largest(values, run())  # now all that it needs is compiled, and can be watched
        try:
            reference()
            calls.append(reference)
        except ValueError as error:  # it uses arrays of its own, which are on the other device
            notes.append(f"Not compared with NumPy: {error}")
        with backend_ndarray.cpu().Kernel.watch() as called:
            run()
        seconds = _medians(*calls)
    kernels = tuple(_kernel_report(kernel, kind) for (_, kind), kernel in called.items())
    if not kernels:
        notes.append("No kernel of Numba's ran: NumPy did the work (matrix products: BLAS).")
    return Diagnosis(name, arguments, kernels, *_per_number(seconds, size), "NumPy", tuple(notes))


def _kernel_report(kernel: Any, dtype: np.dtype) -> CompiledKernel:
    import numba

    _warm_up()
    start = time.perf_counter()
    version = kernel.compiled_afresh(dtype)
    seconds = time.perf_counter() - start
    name = kernel.template.__name__ + (f"({kernel.row.name})" if kernel.row else "")
    if kernel.is_parallel:
        threads, parallel = _shared(version)
    elif numba.get_num_threads() == 1:
        threads, parallel = 1, "Numba has no more here"
    else:
        threads, parallel = 1, f"needle asks for more from {backend_ndarray.cpu().PARALLEL_SIZE} numbers on"
    return CompiledKernel(name, str(dtype), seconds, _loops(version), threads, parallel)


# Functions that the user compiled


def _diagnose_compiled(function: Any, values: list, arguments: str) -> Diagnosis:
    import numba

    _warm_up()
    # Compiled code does not look where it writes. An array too short for it would bring the process down.
    careful = function.targetoptions | {"parallel": False, "boundscheck": True}
    numba.jit(**careful)(function.py_func)(*copy.deepcopy(values))
    fresh = numba.jit(**function.targetoptions)(function.py_func)
    signature = tuple(map(numba.typeof, values))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)  # said below, in other words
        fresh.compile(signature)
    seconds = time.perf_counter() - start
    if function.targetoptions.get("parallel"):
        threads, parallel = _shared(fresh)
    else:
        threads, parallel = 1, "it was compiled without parallel=True"
    name = function.py_func.__name__
    kernel = CompiledKernel(name, ", ".join(map(str, signature)), seconds, _loops(fresh), threads, parallel)
    notes, calls = [], [lambda: fresh(*values)]
    with backend_ndarray.cpu().Kernel.threads():
        if threads > 1 and not _threads_agree(fresh, values, threads):
            notes.append(
                f"With {threads} threads the result is not the one of a single thread: they write to the "
                "same place (a race), or each draws random numbers of its own."
            )
        size = _largest(values, fresh(*copy.deepcopy(values)))
        if size <= PYTHON_SIZE:
            calls.append(lambda: function.py_func(*values))
        else:
            notes.append(f"As plain Python it is timed up to {PYTHON_SIZE} numbers.")
        with np.errstate(all="ignore"):
            timed = _medians(*calls)
    return Diagnosis(name, arguments, (kernel,), *_per_number(timed, size), "plain Python", tuple(notes))


def _threads_agree(function: Any, values: list, threads: int) -> bool:
    """Whether several threads compute what one does, but for rounding; tried a few times."""
    import numba

    def outcome(number: int) -> list[np.ndarray]:
        arguments = copy.deepcopy(values)
        numba.set_num_threads(number)
        result = function(*arguments)
        results = result if isinstance(result, tuple) else (result,)
        return [np.asarray(value) for value in (*arguments, *results) if value is not None]

    try:
        alone = outcome(1)
        return all(
            np.allclose(one, other, rtol=1e-3, equal_nan=True)
            for _ in range(3)
            for one, other in zip(alone, outcome(threads), strict=True)
        )
    finally:
        numba.set_num_threads(threads)


# What Numba and the clock say


def _add_one(x):
    return x + 1


@cache
def _warm_up() -> None:
    """Have Numba load its compiler, which takes longer than most kernels and is no kernel's doing."""
    import numba

    numba.jit(nopython=True, parallel=True)(_add_one).compile((numba.float32[::1],))


def _loops(dispatcher: Any) -> tuple[Loop, ...]:
    return tuple(number_loops(dispatcher.inspect_llvm(dispatcher.signatures[0])))


def _shared(dispatcher: Any) -> tuple[int, ParallelLoops | str]:
    """How many threads share the work of what was compiled with ``parallel=True``, and what they share."""
    import numba

    metadata = dispatcher.overloads[dispatcher.signatures[0]].metadata
    threads = numba.get_num_threads()
    try:
        loops = _parallel_loops(metadata["parfor_diagnostics"])
    except (AttributeError, KeyError, TypeError):
        return threads, "this version of Numba does not tell which loops they share"
    if not loops.lines:
        return 1, "Numba found no loop to divide, neither prange nor arithmetic with whole arrays"
    return threads, loops


def _parallel_loops(report: Any) -> ParallelLoops:
    """What there is to say of Numba's `ParforDiagnostics`."""
    fused = {number for numbers in report.fusion_info.values() for number in numbers}
    inner = {number for numbers in report.nested_fusion_info.values() for number in numbers}
    outer = [loop for loop in report.initial_parfors if loop.id not in fused | inner]
    # `total.2` is a variable of the function, `sum_parallel_impl__locals__…` one of a function it calls.
    names = [re.split(r"\.\d|_parallel_impl", name)[0] for loop in outer for name in loop.redvars or ()]
    own_file = report.func_ir.loc.filename
    return ParallelLoops(
        lines=tuple(dict.fromkeys(_line(loop, own_file) for loop in outer)),
        fused=len(fused),
        serial=len(inner - fused),
        reductions=tuple(dict.fromkeys(names)),
        hoisted=len(report.hoisted_allocations()),
    )


def _line(loop: Any, own_file: str) -> str:
    """The line of source that a parallel loop comes from: the caller's, if it is within NumPy's functions."""
    internal = [kind[2][1] for kind in loop.patterns if isinstance(kind, tuple) and kind[1] == "internal"]
    place = next((place for place in (loop.loc, *internal) if place.filename == own_file), loop.loc)
    return linecache.getline(place.filename, place.line).strip().rstrip(":") or f"line {place.line}"


def _largest(values: list, result: Any) -> int:
    """How many numbers the largest array has."""
    results = result if isinstance(result, tuple) else (result,)
    return max(int(np.prod(getattr(value, "shape", ()))) for value in (*values, *results)) or 1


def _medians(*calls: Callable) -> list[float]:
    """Seconds that each call takes, measured in turns, so that a busy moment of the machine is shared."""
    repeats = []
    for call in calls:
        start = time.perf_counter()
        call()
        repeats.append(max(1, int(1e-3 / max(time.perf_counter() - start, 1e-7))))
    samples: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + 0.1 * len(calls)
    while len(samples[0]) < 5 or time.perf_counter() < end:
        for call, times, number in zip(calls, samples, repeats, strict=True):
            start = time.perf_counter()
            for _ in range(number):
                call()
            times.append((time.perf_counter() - start) / number)
    return [statistics.median(times) for times in samples]


def _per_number(seconds: list[float], size: int) -> tuple[float, float | None]:
    """Nanoseconds per number, of what was diagnosed and of what it is compared with."""
    nanoseconds = [time * 1e9 / size for time in seconds]
    return nanoseconds[0], nanoseconds[1] if len(nanoseconds) == 2 else None
