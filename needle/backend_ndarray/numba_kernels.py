"""How a loop written in Python becomes machine code, how it is kept on disk, and how it uses threads.

A template is a function such as ::

    def map_aligned(a, out):
        for i in prange(out.size):
            out[i] = f(a[i])

The names `f`, `dtype` and `wide` in it stand for a scalar function and data types. A `Kernel` fills them in,
and lets Numba compile the loop for a data type the first time it meets that type.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from types import CellType, FunctionType
from typing import Any
from uuid import uuid4

import numba
import numpy as np
from numba import njit, types
from numba.core.caching import FunctionCache, IndexDataCacheFile

from .scalar_functions import SCALAR_FUNCTIONS, ScalarFunction

#: A loop over at least this many numbers is divided among threads. It takes some ten microseconds to wake
#: them; one thread adds fifty thousand numbers in that time.
PARALLEL_SIZE = 1 << 18


def _load_tbb() -> None:
    """Load the TBB library, which Numba prefers for its threads but does not find where `pip` installs it.

    TBB's threads sleep when there is nothing to do. Those of OpenMP try again and again to find work, unless
    the process sets OMP_WAIT_POLICY before anything loads OpenMP; `import torch` loads it. They then take the
    processor from the threads of BLAS, and a step of training takes several times as long.
    """
    with suppress(PackageNotFoundError, OSError):
        for file in files("tbb") or ():
            if file.name in ("libtbb.so.12", "tbb12.dll"):
                ctypes.CDLL(str(file.locate()))


_load_tbb()

#: How many threads there are.
THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]

# What a letter in a kernel's list of arguments stands for.
_ARGUMENTS: dict[str, Callable] = {
    "a": lambda dtype: types.Array(dtype, 1, "C"),  # flat storage
    "w": lambda dtype: types.Array(wide(dtype), 1, "C"),  # flat storage of totals
    "x": lambda dtype: types.float64 if isinstance(dtype, types.Float) else types.int64,  # a Python number
    "p": lambda dtype: types.Array(types.int64, 2, "C", readonly=True),  # lengths and strides of axes
    "i": lambda dtype: types.intp,
    "n": lambda dtype: types.Array(types.int64, 1, "C", readonly=True),  # an index: numbers of elements
}


def wide(dtype: types.Type) -> types.Type:
    """The type in which totals are kept: double precision for floating-point numbers."""
    return types.float64 if isinstance(dtype, types.Float) else dtype


class Kernel(dict):
    """The compiled versions of one kernel: ``kernel[dtype](*arguments)``.

    Parameters
    ----------
    template : callable
        The kernel as a Python function over flat arrays.
    arguments : str
        One letter per argument: a (storage), w (storage of totals), x (number), p (axes), i (integer),
        n (index).
    row : ScalarFunction, optional
        What `f` stands for in the template.
    reorder : bool
        Whether numbers may be added in another order than they come in, so that a sum has several lanes.
    parallel : bool
        Whether `prange` divides its iterations among threads.
    """

    def __init__(
        self,
        template: Callable,
        arguments: str,
        row: ScalarFunction | None = None,
        reorder: bool = False,
        parallel: bool = False,
    ):
        super().__init__()
        self.template = template
        self.arguments = arguments
        self.row = row
        self.reorder = reorder
        self.is_parallel = parallel
        self.threaded = self if parallel else Kernel(template, arguments, row, reorder, parallel=True)
        _kernels[id(self)] = self

    def __missing__(self, dtype: np.dtype) -> Callable:
        with _compiling:
            if dtype not in self:
                compiled = self._compiled(dtype)
                # Numba's dispatcher would look at the types of the arguments in every call. They are known.
                # So we call what the dispatcher calls in the end: that takes half the time.
                self[dtype] = compiled if isinstance(compiled, FunctionType) else _entry_point(compiled)
            return self[dtype]

    def compiled_afresh(self, dtype: np.dtype) -> Any:
        """Compile the version for `dtype` once more, and all that it calls, so that Numba reports on it."""
        with _compiling:
            _helper.cache_clear()
            return self._compiled(dtype, on_disk=False)

    def _compiled(self, dtype: np.dtype, on_disk: bool = True) -> Callable:
        number = numba.from_dtype(dtype)
        bound: dict[str, Any] = {"dtype": dtype.type, "wide": np.dtype(wide(number).name).type}
        if self.row:
            bound["f"] = self.row.vector.get(dtype.name, self.row.python)
        function = _bound(self.template, bound, self.reorder)
        name = self.row.name if self.row else ""
        parts = (self.template.__name__, name, dtype.name, "threads" if self.is_parallel else "")
        function.__name__ = function.__qualname__ = "_".join(filter(None, parts))
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # a debugger steps through the loop
            return function
        dispatcher = njit(**_options(self.reorder), parallel=self.is_parallel)(function)
        if on_disk and self._is_in_the_sources():
            with suppress(OSError, RuntimeError):  # no folder for a cache: it is compiled in every process
                dispatcher._cache = _Cache(function, dispatcher.targetctx.codegen().magic_tuple())
        dispatcher.compile(tuple(_ARGUMENTS[letter](number) for letter in self.arguments))
        return dispatcher

    def _is_in_the_sources(self) -> bool:
        """Whether `_sources` covers the kernel. One of your own may mean something else next time."""
        own_row = self.row and SCALAR_FUNCTIONS.get(self.row.name) is not self.row
        return not own_row and self.template.__module__.startswith(f"{__package__}.")

    def run(self, size: int, dtype: np.dtype, *arguments: Any) -> None:
        """Call the version for `dtype`, with threads if there are at least PARALLEL_SIZE numbers to compute.

        Only one caller uses the threads at a time, because Numba's simplest thread layer ends the process
        when two ask at once. A second caller works on one thread meanwhile.
        """
        if size >= PARALLEL_SIZE and _threads_work and _threads.acquire(blocking=False):
            try:
                self.threaded[dtype](*arguments)
            finally:
                _threads.release()
        else:
            self[dtype](*arguments)

    @staticmethod
    def threads() -> threading.Lock:
        """The lock to hold while Numba divides a loop among threads; see `run`."""
        return _threads

    @staticmethod
    @contextmanager
    def watch() -> Iterator[dict[tuple[int, np.dtype], Kernel]]:
        """Collect the kernels that this thread calls inside the `with` block, in the dict that it yields.

        The compiled versions are wrapped at the start and put back at the end, so calls cost nothing extra at
        other times. Other threads go on computing.
        """
        called: dict[tuple[int, np.dtype], Kernel] = {}
        watcher = threading.get_ident()

        def watched(kernel: Kernel, dtype: np.dtype, version: Callable) -> Callable:
            def call(*arguments: Any) -> None:
                if threading.get_ident() == watcher:
                    called[id(kernel), dtype] = kernel
                version(*arguments)

            return call

        with _watching:
            versions = [
                (kernel, *item) for kernel in list(_kernels.values()) for item in list(kernel.items())
            ]
            try:
                for kernel, dtype, version in versions:
                    kernel[dtype] = watched(kernel, dtype, version)
                yield called
            finally:
                for kernel, dtype, version in versions:
                    kernel[dtype] = version


_kernels: weakref.WeakValueDictionary[int, Kernel] = weakref.WeakValueDictionary()
_watching = threading.Lock()
_compiling = threading.RLock()
_threads = threading.Lock()
_threads_work = THREADS > 1


def _alone() -> None:
    """After a fork the parent's threads are gone, and some thread layers end a process that asks for them."""
    global _threads_work
    _threads_work = False
    _compiling.release()


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread compiles would wait for Numba's lock forever.
    os.register_at_fork(before=_compiling.acquire, after_in_parent=_compiling.release, after_in_child=_alone)


def _entry_point(dispatcher: Any) -> Callable:
    """The one compiled version of a function, as Python calls it."""
    return dispatcher.compile(dispatcher.signatures[0])  # nothing is compiled again


def _options(reorder: bool) -> dict[str, Any]:
    """What Numba may do: release the interpreter's lock, divide by 0, turn a * b + c into one instruction."""
    return {
        "nogil": True,
        "no_cfunc_wrapper": True,  # nobody calls it from C
        "error_model": "numpy",
        "fastmath": {"contract", "reassoc", "nsz"} if reorder else {"contract"},
    }


def _bound(function: Callable, names: dict[str, Any], reorder: bool) -> FunctionType:
    """`function` with `names` among its globals. What it calls, global or enclosed, is compiled."""

    def compiled(value: Any) -> Any:
        if not isinstance(value, FunctionType):
            return value
        used = {key: bound for key, bound in names.items() if key in value.__code__.co_names}
        return _helper(value, tuple(used.items()), reorder, inline=value is names.get("f"))

    known = function.__globals__ | names
    known |= {name: compiled(known[name]) for name in function.__code__.co_names if name in known}
    closure = tuple(CellType(compiled(cell.cell_contents)) for cell in function.__closure__ or ())
    return FunctionType(function.__code__, known, function.__name__, None, closure)


@cache
def _helper(function: Callable, names: tuple, reorder: bool, inline: bool) -> Callable:
    """A compiled function that kernels call. Kernels that call the same one share it.

    A loop becomes vector instructions only if the function that it calls, however long, is made part of the
    loop: `inline`.
    """
    compiled = _bound(function, dict(names), reorder)
    # Numba numbers functions from 1 in each process. When kernels from the cache call functions of the same
    # name and number, the linker takes the first one for all. Ours differ in `f`, so they get different
    # names.
    compiled.__qualname__ = f"{function.__qualname__}_{uuid4().hex}"
    # Python calls the kernels only: what they call needs no entry from Python, and compiles sooner without.
    options = _options(reorder) | {"forceinline": inline, "no_cpython_wrapper": True}
    return njit(**options)(compiled)


class _Cache(FunctionCache):
    """Numba's cache on disk, made safe to share.

    The folder is ``__pycache__`` beside the source, the user's cache folder where that cannot be written, or
    ``NUMBA_CACHE_DIR``. Numba's own index files mix data types: two processes that compile for different
    types at once may exchange their results. Here each index has one entry: one kernel, type and processor.
    """

    def __init__(self, function: FunctionType, processor: tuple):
        super().__init__(function)
        # The sources are part of the names too, because Numba writes an index before the code it points to.
        base = f"{self._impl.filename_base}-{_digest(f'{processor} {_sources()}'.encode())}"
        self._cache_file = IndexDataCacheFile(self._cache_path, base, _sources())

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        # A damaged file or a full disk must not end a lecture: a kernel that cannot be loaded is compiled
        # again. Numba reads the old index before it writes, so a damaged one is replaced first.
        try:
            yield
        except Exception:
            with suppress(Exception):
                self.flush()


@cache
def _sources() -> str:
    """A digest of all sources that kernels are made of; Numba itself looks at the kernel's own file only."""
    folder = Path(__file__).parent
    files = ("numba_kernels.py", "ndarray_backend_numba_cpu.py", "scalar_functions.py", "vector_functions.py")
    return _digest(b"".join((folder / file).read_bytes() for file in files))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
