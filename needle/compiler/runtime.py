"""Runtime: what the generated source calls, and how it becomes machine code that is kept on disk.

The source is a plain Python function over flat arrays. Numba compiles it, together with the few functions
here that it calls: the scalar functions of the table that are no operator of Python's, sums whose order is
free, and matrix products by BLAS. The source of ``relu(x @ W + b)`` calls two of them: `relu`, and `local`,
which makes the small array for a row of the product.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import math
import os
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ..backend_ndarray import blas
from ..backend_ndarray.disk import folder
from ..backend_ndarray.numba_kernels import THREADS, _bound, _Cache, _options
from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from .codegen import function_name
from .names import TYPES

_INLINE: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True}


def _array(context: Any, builder: Any, kind: Any, data: Any, size: Any) -> Any:
    """An array over the `size` numbers that begin at `data`. Nobody counts the references to it."""
    result = context.make_array(kind)(context, builder)
    item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    shape, strides = cgutils.pack_array(builder, [size]), cgutils.pack_array(builder, [item])
    context.populate_array(result, data=data, shape=shape, strides=strides, itemsize=item, meminfo=None)
    return result._getvalue()


@intrinsic
def part(context: Any, array: Any, start: Any, size: Any) -> Any:
    """``array[start : start + size]``, which Numba compiles ten times as fast as a slice."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.make_array(array)(context, builder, arguments[0])
        data = cgutils.gep_inbounds(builder, whole.data, arguments[1])
        return _array(context, builder, array, data, arguments[2])

    return array(array, types.intp, types.intp), generate


def _local(dtype: Any) -> Any:
    """A function that makes a small array of a function's own.

    The compiler knows that nobody else reads or writes it. So it can keep its numbers in registers.
    """
    kind = types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C")

    @intrinsic(prefer_literal=True)
    def local(context: Any, size: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = context.get_data_type(kind.dtype)
            with builder.goto_entry_block():
                place = builder.alloca(ir.ArrayType(number, size.literal_value))
            place.align = 64
            data = builder.bitcast(place, number.as_pointer())
            return _array(context, builder, kind, data, arguments[0])

        return kind(size), generate

    return local


@intrinsic
def opaque(context: Any, n: Any) -> Any:
    """Return `n`, but hide from the compiler which number it is: see `codegen.py`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.get_value_type(types.intp)
        nothing = ir.InlineAsm(ir.FunctionType(whole, [whole]), "", "=r,0", side_effect=False)
        return builder.call(nothing, arguments)

    return types.intp(types.intp), generate


@intrinsic
def natural(context: Any, n: Any) -> Any:
    """Return `n`, and let the compiler know that it is not negative.

    In Python, an index below 0 counts from the end. If an index may be negative, each iteration of a loop has
    to test for that, and the loop gets no vector instructions.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.get_value_type(types.intp)
        return builder.and_(arguments[0], ir.Constant(whole, 2**32 - 1))

    return types.intp(types.intp), generate


@intrinsic
def matmul(context: Any, gemm: Any, a: Any, b: Any, out: Any, sizes: Any) -> Any:
    """A matrix product by NumPy's own BLAS: ``out = a @ b`` for matrices in flat storage.

    `gemm` is the address of its routine. Of `a` and `b` we are told the storage, where the matrix begins, how
    far its rows are apart, and whether it is turned: then its columns lie side by side, and not its rows. Of
    `out` we are told the storage and where it begins. The sizes are (m, n, p), for (m, n) times (n, p).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = ir.Constant(context.get_data_type(out[0].dtype), 1)
        return _product(context, builder, signature.args, arguments, one, 0)

    return types.none(types.intp, a, b, out, sizes), generate


@intrinsic
def add_matmul(context: Any, scale: Any, gemm: Any, a: Any, b: Any, out: Any, sizes: Any) -> Any:
    """``out += scale * (a @ b)``; the rest is as of `matmul`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _product(context, builder, signature.args[1:], arguments[1:], arguments[0], 1)

    return types.none(out[0].dtype, types.intp, a, b, out, sizes), generate


def _product(context: Any, builder: Any, kinds: Any, arguments: Any, scale: Any, kept: float) -> Any:
    """Call BLAS: ``out = scale * (a @ b) + kept * out``; `arguments` are those of `matmul`."""
    number, whole, flag = context.get_data_type(kinds[3][0].dtype), ir.IntType(_BLAS_BITS), ir.IntType(32)
    a, b, out, (m, n, p) = [cgutils.unpack_tuple(builder, x) for x in arguments[1:]]

    def size(n: Any) -> Any:
        return n if _BLAS_BITS == 64 else builder.trunc(n, whole)

    def place(matrix: list[Any], kind: Any, width: Any) -> list[Any]:
        storage = context.make_array(kind[0])(context, builder, matrix[0])
        return [cgutils.gep_inbounds(builder, storage.data, matrix[1]), size(width)]

    def turned(matrix: list[Any]) -> Any:
        return builder.select(matrix[3], ir.Constant(flag, 112), ir.Constant(flag, 111))

    given = [ir.Constant(flag, 101), turned(a), turned(b), size(m), size(p), size(n), scale]  # 101: by rows
    given += [*place(a, kinds[1], a[2]), *place(b, kinds[2], b[2])]
    given += [ir.Constant(number, kept), *place(out, kinds[3], p)]
    routine = ir.FunctionType(ir.VoidType(), [x.type for x in given])
    builder.call(builder.inttoptr(arguments[0], routine.as_pointer()), given)
    return context.get_dummy_value()


def routines() -> dict[str, int]:
    """The addresses of BLAS's matrix products: "sgemm" for float32, "dgemm" for float64.

    Empty where NumPy's BLAS is not found; then products are loops.
    """
    library, before, behind = blas.library()
    if library is None:
        return {}
    found = {name: getattr(library, f"{before}cblas_{name}{behind}") for name in ("sgemm", "dgemm")}
    return {name: ctypes.cast(routine, ctypes.c_void_p).value or 0 for name, routine in found.items()}


_BLAS_BITS = 64 if "64" in blas.library()[2] else 32  # of the whole numbers that it takes


def _extreme(name: str) -> Any:
    """`maximum` or `minimum`, as an instruction of LLVM's. If one number is NaN, so is the result.

    In the table, they are comparisons. When a loop folds many numbers by a comparison, LLVM makes no vector
    instructions of it.
    """

    @intrinsic
    def extreme(context: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = context.get_value_type(x)
            kind = ir.FunctionType(number, [number, number])
            call = builder.module.declare_intrinsic(f"llvm.{name}", [number], kind)
            return builder.call(call, arguments, fastmath=("nsz",))

        return x(x, x), generate

    return extreme


def _plus(total, x):
    return total + x


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
        A row of the table, "plus" (a sum whose order is free), "local", "matmul" or "add_matmul".
    dtype : str
        Of its numbers.
    """
    if name in ("matmul", "add_matmul"):
        return matmul if name == "matmul" else add_matmul
    if name == "local":
        return _local(dtype)
    if name == "plus":
        return _kept(_plus, "needle_plus", reorder=True, **_INLINE)
    if name in ("maximum", "minimum") and np.dtype(dtype).kind == "f":
        return _extreme(name)
    row = SCALAR_FUNCTIONS[name]
    form = row.vector.get(dtype) or (_of_one if row.arity == 1 else _of_two)
    bound = _bound(form, {"f": row.python, "number": np.dtype(dtype).type}, False)
    return _kept(bound, f"needle_{name}_{dtype}", **_INLINE)


def _kept(function: Any, name: str, reorder: bool = False, **options: Any) -> Any:
    """Let Numba compile a function, and keep its machine code on disk, where files can be written."""
    function = _named(function, name)
    dispatcher: Any = njit(**_options(reorder), **options)(function)
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


def names_for(functions: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The global names of generated source."""
    found: dict[str, Any] = {"__name__": __name__, "inf": math.inf, "nan": math.nan}
    found |= {"part": part, "opaque": opaque, "natural": natural}
    found |= {name: getattr(np, name) for name in TYPES}
    found |= {function_name(name, dtype): function(name, dtype) for name, dtype in functions}
    return found


#: The functions that were compiled or loaded last, by their keys and files. Each takes some megabytes. Most
#: of that is given back when no program uses it, and it is not in here any more.
_loaded: dict[tuple, Any] = {}
_MOST_LOADED = 50


def compile_source(
    source: str,
    functions: Iterable[tuple[str, str]],
    name: str = "step",
    others: dict[str, Any] | None = None,
    note: str = "",
) -> Any:
    """The function `name` in `source`, compiled; from disk if the same source was compiled before.

    Parameters
    ----------
    source : str
    functions : iterable of (str, str)
        What it calls of what is here; see `function`.
    name : str
    others : dict of str to compiled function, optional
        Other functions that it calls, by their names in the source.
    note : str
        The sources of those.
    """
    functions = sorted(functions)
    key = hashlib.sha256(f"{source}{functions}{note}{_versions()}".encode()).hexdigest()[:16]
    path = _file_with(source, key)
    if (key, path) in _loaded:
        return _loaded[key, path]
    names = names_for(functions) | (others or {})
    known = set(names)
    exec(compile(source, str(path or "<needle>"), "exec"), names)
    for inner in set(names) - known - {name, "__builtins__"}:  # the functions that `name` calls
        names[inner] = njit(**_options(reorder=False))(_named(names[inner], f"{inner}_{key}"))
    dispatcher = _kept(names[name], f"{name}_{key}")
    _loaded[key, path] = dispatcher
    if len(_loaded) > _MOST_LOADED:
        del _loaded[next(iter(_loaded))]
    return dispatcher


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
    files = ("runtime.py", "codegen.py")
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
