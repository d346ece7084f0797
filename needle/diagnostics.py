"""What Numba made of a computation: the kernels that ran, their vector instructions, threads and time."""

from __future__ import annotations

import contextlib
import copy
import io
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
from .backend_selection import BACKEND

#: A function of your own is also run as plain Python, which is slow, up to this many numbers.
PYTHON_SIZE = 1 << 14

# In LLVM's code: the body of a loop that it has vectorised; a type such as <8 x float>; and a call of the C
# library, sinf or llvm.sin.v8f32. That looks like one vector instruction, but becomes eight calls of sinf.
_VECTOR_BODY = re.compile(r"^vector\.body.*?(?=^$|^})", re.MULTILINE | re.DOTALL)
_VECTOR = re.compile(r"<(\d+) x (float|double)>")
_C_LIBRARY = re.compile(
    r"call [^@\n]*@(?:llvm\.)?(a?(?:cos|sin|tan)h?|atan2|cbrt|erfc?|exp(?:10|2|m1)?|fmod|hypot|lgamma|log"
    r"(?:10|1p|2)?|powi?|tgamma)(?:f|\.\w+)*\("
)


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
    lanes : int
        How many numbers one vector instruction computes, where they are most; 1 without any.
    vectors : str
        The same in words.
    threads : int
        How many threads share the work.
    verdict : str
        Which loops they share, or why there is one thread.
    """

    name: str
    types: str
    compile_seconds: float
    lanes: int
    vectors: str
    threads: int
    verdict: str

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
    name, arguments : str
        What was diagnosed; the shapes, and the data type.
    kernels : tuple of CompiledKernel
        Those that ran, in the order of their first call.
    nanoseconds : float
        Time per number of the largest array: a median.
    reference_nanoseconds : float or None
        The same for `reference`, "NumPy" or "plain Python"; None if there was nothing to compare with.
    reference : str
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
        timed = f"  time: {self.nanoseconds:.3g} ns per number"
        if self.ratio is not None:
            timed += f", {self.ratio:.3g} × {self.reference}'s {self.reference_nanoseconds:.3g} ns"
        notes = [f"  {note}" for note in self.notes]
        return "\n".join([f"{self.name} of {self.arguments}", *map(str, self.kernels), timed, *notes])

    __repr__ = __str__


def diagnose(function: str | Callable, *shapes: Any, dtype: Any = "float32") -> Diagnosis:
    """Run something on the processor and tell what Numba made of it.

    Each kernel that ran is compiled once more, because Numba reports on a function only while it compiles it,
    not when it loads it from disk. What NumPy does for needle (large matrix products) is not a kernel.

    Parameters
    ----------
    function : str or callable
        The name of an operator or a scalar function (``"exp"``); a function of Tensors; or a function of
        NumPy arrays under `numba.njit`.
    *shapes : tuple of int, or number
        A shape stands for an array of that shape with numbers between 0.5 and 1.5, the same in each run. A
        number is passed on as it is.
    dtype : dtype or str
        float32 or float64.

    Returns
    -------
    Diagnosis
        Its times are compared with `cpu_numpy()`, or those of a function under `numba.njit` with the same
        function as plain Python, where it has at most `PYTHON_SIZE` numbers to work on.

    Raises
    ------
    TypeError
        For a function, an argument or a data type that is none of these.
    ValueError
        For an unknown name, and where needle computes with NumPy alone.
    """
    values = _values(shapes, dtype)
    arguments = f"{', '.join(map(str, shapes))}, {np.dtype(dtype)}"
    if hasattr(function, "parallel_diagnostics"):
        return _diagnose_compiled(function, values, arguments)
    ufunc = isinstance(function, np.ufunc) or hasattr(function, "ufunc")  # one of NumPy's, or vectorize's
    if ufunc or hasattr(function, "py_func") or not (isinstance(function, str) or callable(function)):
        raise TypeError(
            "diagnose: needs the name of an operator, such as 'exp', a function of Tensors, or one under "
            f"numba.njit, neither a ufunc nor a CUDA kernel; got {type(function).__name__}"
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


# Functions of Tensors: the same call on two devices


def _diagnose_needle(function: Any, values: list, dtype: Any, arguments: str) -> Diagnosis:
    name = function if isinstance(function, str) else getattr(function, "__name__", type(function).__name__)
    function = _named(function) if isinstance(function, str) else function

    def on(device: Any) -> Callable:
        operands = [Tensor(x, device=device, dtype=dtype) if isinstance(x, np.ndarray) else x for x in values]
        return lambda: function(*operands)

    run, reference = on(backend_ndarray.cpu()), on(backend_ndarray.cpu_numpy())
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
        times = _nanoseconds(size, *calls)
    kernels = tuple(_kernel_report(kernel, kind) for (_, kind), kernel in called.items())
    if not kernels:
        notes.append("None of Numba's kernels ran: NumPy did the work (matrix products: BLAS).")
    return Diagnosis(name, arguments, kernels, *times, "NumPy", tuple(notes))


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


def _kernel_report(kernel: Any, dtype: np.dtype) -> CompiledKernel:
    name = kernel.template.__name__ + (f"({kernel.row.name})" if kernel.row else "")
    why = f"needle asks for more from {backend_ndarray.cpu().PARALLEL_SIZE} numbers on"
    return _report(name, str(dtype), lambda: kernel.compiled_afresh(dtype), "" if kernel.is_parallel else why)


# Functions that the user compiled


def _diagnose_compiled(function: Any, values: list, arguments: str) -> Diagnosis:
    import numba

    name, signature = function.py_func.__name__, tuple(map(numba.typeof, values))
    # Compiled code does not look where it writes. An array too short for it would bring the process down.
    careful = function.targetoptions | {"parallel": False, "boundscheck": True}
    numba.jit(**careful)(function.py_func)(*copy.deepcopy(values))
    fresh = numba.jit(**function.targetoptions)(function.py_func)

    def compiled() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)  # the verdict says it
            fresh.compile(signature)
        return fresh

    why = "" if function.targetoptions.get("parallel") else "it was compiled without parallel=True"
    kernel = _report(name, ", ".join(map(str, signature)), compiled, why)
    notes, calls = [], [lambda: fresh(*values)]
    with backend_ndarray.cpu().Kernel.threads():
        if kernel.threads > 1 and not _threads_agree(fresh, values, kernel.threads):
            notes.append(
                f"With {kernel.threads} threads the result is not the one of a single thread: they write to "
                "the same place (a race), or each draws random numbers of its own."
            )
        size = _largest(values, fresh(*copy.deepcopy(values)))
        if size <= PYTHON_SIZE:
            calls.append(lambda: function.py_func(*values))
        else:
            notes.append(f"As plain Python it is timed up to {PYTHON_SIZE} numbers.")
        with np.errstate(all="ignore"):
            times = _nanoseconds(size, *calls)
    return Diagnosis(name, arguments, (kernel,), *times, "plain Python", tuple(notes))


def _threads_agree(function: Any, values: list, threads: int) -> bool:
    """Whether several threads compute what one does, apart from rounding; tried a few times."""
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


def _report(name: str, types: str, compiled: Callable, why_alone: str) -> CompiledKernel:
    """Compile a function and read what became of it; `why_alone` is empty if it may use threads."""
    _load_compiler()
    start = time.perf_counter()
    dispatcher = compiled()
    seconds = time.perf_counter() - start
    lanes, vectors = _vectors(dispatcher.inspect_llvm(dispatcher.signatures[0]))
    threads, verdict = (1, f"1: {why_alone}") if why_alone else _threads(dispatcher)
    return CompiledKernel(name, types, seconds, lanes, vectors, threads, verdict)


@cache
def _load_compiler() -> None:
    """Compile something: the first time Numba loads its compiler, which takes longer than most kernels."""
    import numba

    numba.jit(nopython=True, parallel=True)(lambda x: x + 1).compile((numba.float32[::1],))


def _vectors(code: str) -> tuple[int, str]:
    """How many numbers an instruction computes, from LLVM's optimised code, and that in words."""
    if calls := sorted(set(_C_LIBRARY.findall(code))):
        return 1, f"one number at a time: each needs a call of {' and '.join(calls)}"
    found = [
        (int(lanes), kind) for body in _VECTOR_BODY.findall(code) for lanes, kind in _VECTOR.findall(body)
    ]
    if not found:
        return 1, "one number at a time"
    lanes, kind = max(found)
    bits = 32 if kind == "float" else 64
    return lanes, f"{lanes} float{bits} at once ({lanes * bits}-bit vectors)"


def _threads(dispatcher: Any) -> tuple[int, str]:
    """How many threads share the work of what was compiled with ``parallel=True``, and which loops."""
    import numba

    threads = numba.get_num_threads()
    if threads == 1:
        return 1, "1: Numba has no more here"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        dispatcher.parallel_diagnostics(dispatcher.signatures[0])
    # It lists the source with `for i in prange(n):-----| #3`, then how loops were nested and fused.
    loops = re.findall(r"^ *(\S.*?):?-+\| #.*?(\d+)$", said.getvalue(), re.MULTILINE)
    inner = set(re.findall(r"\+--(\d+) \(serial", said.getvalue()))
    lines = dict.fromkeys(f"`{line}`" for line, number in loops if number not in inner)
    if not lines:
        return 1, "1: Numba found no loop to divide, neither prange nor arithmetic with whole arrays"
    return threads, f"{threads} share the loop{'s' * (len(lines) > 1)} {', '.join(lines)}"


def _largest(values: list, result: Any) -> int:
    """How many numbers the largest array has."""
    results = result if isinstance(result, tuple) else (result,)
    return max(int(np.prod(getattr(value, "shape", None) or ())) for value in (*values, *results)) or 1


def _nanoseconds(size: int, *calls: Callable) -> tuple[float, float | None]:
    """The median time per number of one call or two. They take turns, so a busy moment slows both."""
    samples: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + 0.1 * len(calls)
    while len(samples[0]) < 5 or time.perf_counter() < end:
        for call, times in zip(calls, samples, strict=True):
            start = time.perf_counter()
            call()
            times.append((time.perf_counter() - start) * 1e9 / size)
    medians = [statistics.median(times) for times in samples]
    return medians[0], medians[1] if len(medians) == 2 else None
