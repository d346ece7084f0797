"""Runtime: what the generated source calls, and how it becomes machine code that is kept on disk.

The source is a plain Python function over flat arrays. `emit.py` writes its instructions, and some of what
it calls: `local`, say, which makes a small array. All else are scalar functions of the table that are no
operator of Python's. The source of ``relu(x @ W + b)`` calls one of them, `relu`, which Numba compiles.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import itertools
import math
import os
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba import njit

from ..backend_ndarray import blas
from ..backend_ndarray.disk import folder
from ..backend_ndarray.numba_kernels import THREADS, _bound, _Cache, _options
from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from .codegen import rows_in, typed
from .emit import Emitter, Flat, emitted
from .names import TYPES

_INLINE: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True}


def routines() -> dict[str, int]:
    """The addresses of BLAS's matrix products: "sgemm" for float32, "dgemm" for float64.

    Empty where NumPy's BLAS is not found; then products are loops.
    """
    library, before, behind = blas.library()
    if library is None:
        return {}
    found = {name: getattr(library, f"{before}cblas_{name}{behind}") for name in ("sgemm", "dgemm")}
    return {name: ctypes.cast(routine, ctypes.c_void_p).value or 0 for name, routine in found.items()}


f: Any = None  # in the two functions below, a row of the table as plain Python
number: Any = None  # and the type of its result


def _of_one(x):
    return number(f(x))


def _of_two(x, y):
    return number(f(x, y))


@cache
def function(name: str, dtype: str) -> Any:
    """A function that generated source calls, compiled into it.

    Parameters
    ----------
    name : str
        A row of the table.
    dtype : str
        Of its numbers.
    """
    if name in ("maximum", "minimum") and np.dtype(dtype).kind == "f":
        return partial(getattr(Emitter, name))
    row = SCALAR_FUNCTIONS[name]
    form = row.vector.get(dtype) or (_of_one if row.arity == 1 else _of_two)
    bound = _bound(form, {"f": row.python, "number": np.dtype(dtype).type}, False)
    return _kept(bound, f"needle_{name}_{dtype}", **_INLINE)


def _kept(function: Any, name: str, **options: Any) -> Any:
    """Let Numba compile a function, and keep its machine code on disk, where files can be written."""
    function = _named(function, name)
    dispatcher: Any = njit(**_options(reorder=False), **options)(function)
    with suppress(OSError, RuntimeError):
        dispatcher._cache = _NamedCache(function, dispatcher.targetctx.codegen().magic_tuple())
    return dispatcher


class _NamedCache(_Cache):
    """A cache for a function whose name says all that it is made of, also what it closes over."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple()


def _named(function: Any, name: str) -> Any:
    """The same function under another name.

    Numba tells functions apart by their names, and by numbers that begin anew in each process. Functions from
    the disk were compiled in several processes, so each needs a name of its own: otherwise the linker takes
    the first of two for both.
    """
    function = FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    function.__qualname__ = name
    return function


#: The global names of generated source, but for rows of the table.
_KNOWN: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "bool": bool}
_KNOWN |= {name: getattr(np, name) for name in TYPES}
_KNOWN |= {name: partial(getattr(Emitter, name)) for name in ("part", "plus", "matmul", "add_matmul")}
_KNOWN |= {typed("local", t): partial(Emitter.local, dtype=t) for t in (*TYPES, "bool")}

#: The functions that were compiled or loaded last, by their keys and files. Each takes some megabytes. Most
#: of that is given back when no program uses it, and it is not in here any more.
_loaded: dict[tuple, Any] = {}
_MOST_LOADED = 50


def compile_source(
    source: str, name: str = "step", others: dict[str, Any] | None = None, note: str = ""
) -> Any:
    """The function `name` in `source`, compiled; from disk if the same source was compiled before.

    Parameters
    ----------
    source : str
    name : str
    others : dict of str to compiled function, optional
        Other functions that it calls, by their names in the source.
    note : str
        The sources of those.
    """
    key = hashlib.sha256(f"{source}{note}{_versions()}".encode()).hexdigest()[:16]
    path = _file_with(source, key)
    if (key, path) in _loaded:
        return _loaded[key, path]
    names = _KNOWN | {called: function(*row) for called, row in rows_in(source).items()} | (others or {})
    node: Any
    for node in ast.parse(source).body:
        made = emitted(node, names, str(path or "<needle>"))
        if node.name == name:
            dispatcher = _kept(made, f"{name}_{key}")
        else:  # it is called several times
            names[node.name] = njit(**_options(reorder=False))(_named(made, f"{node.name}_{key}"))
    _loaded[key, path] = dispatcher
    if len(_loaded) > _MOST_LOADED:
        del _loaded[next(iter(_loaded))]
    return dispatcher


def types_of(names: Iterable[str]) -> tuple:
    """Types as Numba calls them: "int64" is a number's, "float32*" that of an array."""
    return tuple([Flat(x[:-1]) if x.endswith("*") else getattr(numba, x) for x in names])


def entry_point(compiled: Any, kinds: tuple) -> Callable:
    """The compiled function for arguments of these types, as Numba calls them.

    What `compile_source` returns would look at the types of its arguments in each call, which takes longer
    than a small kernel.
    """
    compiled.compile(kinds)
    return compiled.overloads[kinds].entry_point


# Threads


def on_one_blas_thread(kernel: Callable) -> Callable:
    """A function that calls `kernel` while BLAS uses one thread, as is best for small products."""

    def run(*arguments: Any) -> Any:
        with blas.one_thread:
            return kernel(*arguments)

    return run


def shared(
    kernel: Callable, length: int, own: dict[str, tuple[Any, int]], threads: int = THREADS
) -> Callable:
    """A function that calls `kernel` from several threads, which share its iterations.

    Parameters
    ----------
    kernel : callable
        It takes the first iteration, the one to stop before, storage that no other thread uses, and other
        arguments. It runs without Python's lock.
    length : int
        How many iterations there are.
    own : dict of str to (dtype, int)
        Data type and size of that storage.
    """
    count = min(4 * threads, length) if threads > 1 else 1
    bounds = [length * i // count for i in range(count + 1)]
    storage = [[np.empty(size, dtype) for dtype, size in own.values()] for _ in range(threads)]

    def run(*arguments: Any) -> int:
        turns = itertools.count()  # a free thread takes the next turn, since others may be slower

        def work(thread: int) -> None:
            while (turn := next(turns)) < count:
                kernel(bounds[turn], bounds[turn + 1], *storage[thread], *arguments)

        helpers = [_pool(os.getpid()).submit(work, thread) for thread in range(1, threads)]
        work(0)
        for helper in helpers:
            if not helper.cancel():  # it has begun
                helper.result()
        return 0

    return run


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The helper threads of a process. A forked process needs its own: it does not inherit threads."""
    return ThreadPoolExecutor(max(THREADS - 1, 1), "needle")


@cache
def _versions() -> str:
    files = ("runtime.py", "codegen.py", "emit.py")
    return numba.__version__ + "".join(
        hashlib.sha256((Path(__file__).parent / file).read_bytes()).hexdigest() for file in files
    )


def _file_with(source: str, key: str) -> Path | None:
    """A file with the source; Numba keeps the machine code beside it. None if no file can be written."""
    place = folder() / "compiled"
    path = place / f"step_{key}.py"
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != source:
            with tempfile.NamedTemporaryFile("w", dir=place, delete=False, encoding="utf-8") as file:
                file.write(source)
            os.replace(file.name, path)
    except OSError:
        return None
    return path
