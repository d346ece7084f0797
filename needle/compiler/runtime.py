"""Runtime: what the generated source calls, and how it becomes machine code that is kept on disk.

The source is a plain Python function over flat arrays. Numba compiles it, together with the few functions
here that it calls: the scalar functions of the table that are no operator of Python's, sums whose order is
free, and matrix products by BLAS. Of ``relu(x @ W + b)``, `relu` is such a function, and so is `local`, which
makes the small array for a row of the product.
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


@intrinsic
def part(context: Any, array: Any, start: Any, size: Any) -> Any:
    """``array[start : start + size]``, which Numba compiles ten times as fast as a slice."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.make_array(signature.args[0])(context, builder, arguments[0])
        result = context.make_array(signature.return_type)(context, builder)
        itemsize = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        item = context.get_constant(types.intp, itemsize)
        context.populate_array(
            result,
            data=cgutils.gep_inbounds(builder, whole.data, arguments[1]),
            shape=cgutils.pack_array(builder, [arguments[2]]),
            strides=cgutils.pack_array(builder, [item]),
            itemsize=item,
            meminfo=None,  # the whole outlives the call, so nobody counts references
        )
        return result._getvalue()

    return array(array, types.intp, types.intp), generate


def _local(dtype: Any) -> Any:
    """A function that makes a small array of a function's own.

    The compiler knows that nobody else reads or writes it. So it can keep its numbers in registers.
    """
    number_type = numba.from_dtype(np.dtype(dtype))

    @intrinsic(prefer_literal=True)
    def local(context: Any, size: Any) -> Any:
        count = size.literal_value

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            result = context.make_array(signature.return_type)(context, builder)
            number = context.get_data_type(number_type)
            with builder.goto_entry_block():
                place = builder.alloca(ir.ArrayType(number, count))
            place.align = 64
            item = context.get_constant(types.intp, context.get_abi_sizeof(number))
            context.populate_array(
                result,
                data=builder.bitcast(place, number.as_pointer()),
                shape=cgutils.pack_array(builder, [context.get_constant(types.intp, count)]),
                strides=cgutils.pack_array(builder, [item]),
                itemsize=item,
                meminfo=None,
            )
            return result._getvalue()

        return types.Array(number_type, 1, "C")(size), generate

    return local


@intrinsic
def opaque(context: Any, n: Any) -> Any:
    """`n`, of which the compiler does not know what it is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.get_value_type(types.intp)
        nothing = ir.InlineAsm(ir.FunctionType(whole, [whole]), "", "=r,0", side_effect=False)
        return builder.call(nothing, arguments)

    return types.intp(types.intp), generate


@intrinsic
def natural(context: Any, n: Any) -> Any:
    """`n`, of which the compiler then knows that it lies between 0 and 2**32.

    An index below 0 counts from the end, and a loop that looks out for such ones gets no vector instructions.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.get_value_type(types.intp)
        return builder.and_(arguments[0], ir.Constant(whole, 2**32 - 1))

    return types.intp(types.intp), generate


def _product(context: Any, builder: Any, signature: Any, arguments: Any, scale: Any, kept: float) -> Any:
    """Call BLAS: ``out = scale * (a @ b) + kept * out``; `arguments` are those of `matmul`."""
    number = context.get_data_type(signature.args[1].dtype)
    whole, flag, pointer = ir.IntType(_BLAS_BITS), ir.IntType(32), number.as_pointer()
    matrix = [pointer, whole]
    kind = ir.FunctionType(
        ir.VoidType(), [flag] * 3 + [whole] * 3 + [number, *matrix, *matrix, number, *matrix]
    )
    gemm = builder.inttoptr(arguments[0], kind.as_pointer())

    def place(array: int, start: int) -> Any:
        view = context.make_array(signature.args[array])(context, builder, arguments[array])
        return cgutils.gep_inbounds(builder, view.data, arguments[start])

    def size(i: int) -> Any:
        return arguments[i] if _BLAS_BITS == 64 else builder.trunc(arguments[i], whole)

    def turned(i: int) -> Any:
        return builder.select(arguments[i], ir.Constant(flag, 112), ir.Constant(flag, 111))

    by_rows, beta = ir.Constant(flag, 101), ir.Constant(number, kept)
    a, b, out = [place(1, 2), size(3)], [place(5, 6), size(7)], [place(9, 10), size(13)]
    sizes = [size(11), size(13), size(12)]
    builder.call(gemm, [by_rows, turned(4), turned(8), *sizes, scale, *a, *b, beta, *out])
    return context.get_dummy_value()


_WHERE = (types.intp, types.intp, types.boolean)  # where a matrix begins, how far its rows are apart, turned


@intrinsic
def matmul(
    context: Any, gemm: Any,
    a: Any, a_start: Any, a_width: Any, a_turned: Any,
    b: Any, b_start: Any, b_width: Any, b_turned: Any,
    out: Any, start: Any, m: Any, n: Any, p: Any,
) -> Any:  # fmt: skip
    """A matrix product by NumPy's own BLAS: ``out = a @ b`` for matrices in flat storage.

    `gemm` is the address of its routine. Each matrix begins at a start. Neighbours in a row lie side by side,
    and rows are `width` apart; if the matrix is `turned`, that holds for its columns. (m, n) times (n, p).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = ir.Constant(context.get_data_type(signature.args[1].dtype), 1)
        return _product(context, builder, signature, arguments, one, 0)

    whole = types.intp
    return types.none(whole, a, *_WHERE, b, *_WHERE, out, *[whole] * 4), generate


@intrinsic
def add_matmul(
    context: Any, scale: Any, gemm: Any,
    a: Any, a_start: Any, a_width: Any, a_turned: Any,
    b: Any, b_start: Any, b_width: Any, b_turned: Any,
    out: Any, start: Any, m: Any, n: Any, p: Any,
) -> Any:  # fmt: skip
    """``out += scale * (a @ b)``; the rest is as of `matmul`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        inner = types.none(*signature.args[1:])
        return _product(context, builder, inner, arguments[1:], arguments[0], 1)

    whole = types.intp
    return types.none(a.dtype, whole, a, *_WHERE, b, *_WHERE, out, *[whole] * 4), generate


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
    """maximum or minimum, of which NaN is the result where one is NaN, as one instruction of LLVM's.

    Of a comparison, as in the table, it would make no vector instructions when many numbers are folded.
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
        return _kept_helper(_plus, name, reorder=True)
    if name in ("maximum", "minimum") and np.dtype(dtype).kind == "f":
        return _extreme(name)
    row = SCALAR_FUNCTIONS[name]
    if dtype in row.vector:
        return _kept_helper(_bound(row.vector[dtype], {}, False), f"{name}_{dtype}")
    exact: Any = njit(**(_options(reorder=False) | _INLINE))(
        _named(row.python, f"needle_{name}_{dtype}_exact")
    )
    number = np.dtype(dtype).type
    forms = {1: lambda x: number(exact(x)), 2: lambda x, y: number(exact(x, y))}
    return _kept_helper(forms[row.arity], f"{name}_{dtype}")


def _kept_helper(function: Any, name: str, reorder: bool = False) -> Any:
    """Compile a function that sources call, and keep it on disk, ready to become part of them."""
    function = _named(function, f"needle_{name}")
    dispatcher: Any = njit(**(_options(reorder) | _INLINE))(function)
    with suppress(OSError, RuntimeError):
        dispatcher._cache = _HelperCache(function, dispatcher.targetctx.codegen().magic_tuple())
    return dispatcher


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


class _HelperCache(_Cache):
    """A cache for a function whose name says what it closes over."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple()


def names_for(functions: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The global names of generated source."""
    found: dict[str, Any] = {"__name__": __name__, "inf": math.inf, "nan": math.nan}
    found |= {"part": part, "opaque": opaque, "natural": natural}
    found |= {name: getattr(np, name) for name in TYPES}
    found |= {function_name(name, dtype): function(name, dtype) for name, dtype in functions}
    return found


#: Functions that were compiled or loaded last, by their keys and files. Each takes some megabytes, which are
#: given back when neither a program nor this dictionary has it any more.
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
        What it calls besides.
    note : str
        What these are made of.
    """
    functions = sorted(functions)
    key = hashlib.sha256(f"{source}{functions}{note}{_versions()}".encode()).hexdigest()[:16]
    path = _kept(source, key)
    if (key, path) in _loaded:
        return _loaded[key, path]
    names = names_for(functions) | (others or {})
    known = set(names)
    exec(compile(source, str(path or "<needle>"), "exec"), names)
    for inner in set(names) - known - {name, "__builtins__"}:  # what repeats itself in it
        names[inner] = njit(**_options(reorder=False))(_named(names[inner], f"{inner}_{key}"))
    plain = _named(names[name], f"{name}_{key}")
    dispatcher = njit(**_options(reorder=False))(plain)
    if path is not None:
        with suppress(OSError, RuntimeError):
            dispatcher._cache = _Cache(plain, dispatcher.targetctx.codegen().magic_tuple())
    _loaded[key, path] = dispatcher
    if len(_loaded) > _MOST_LOADED:
        del _loaded[next(iter(_loaded))]
    return dispatcher


def entry_point(compiled: Any, kinds: tuple) -> Callable:
    """A function for arguments of these types, as Numba calls them; it is compiled now, unless it was before.

    What `compile_source` returns looks at the types of its arguments in each call, which takes longer than a
    small kernel.
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


_helpers: ThreadPoolExecutor | None = None


def shared(
    kernel: Callable, length: int, own: dict[str, tuple[Any, int]], threads: int = THREADS
) -> Callable:
    """A function that calls `kernel`, whose iterations threads share.

    Parameters
    ----------
    kernel : callable
        Takes the first iteration, the one to stop before, storage that no other thread uses, and arguments.
        It runs without Python's lock.
    length : int
        How many iterations there are.
    own : dict of str to (dtype, int)
        Data type and size of that storage.
    """
    count = min(4 * threads, length) if threads > 1 else 1
    bounds = [length * i // count for i in range(count + 1)]
    storage = [[np.empty(size, dtype) for dtype, size in own.values()] for _ in range(threads)]

    def run(*arguments: Any) -> int:
        turns = itertools.count()  # whoever is free takes the next turn: another program may hold a processor

        def work(thread: int) -> None:
            while (turn := next(turns)) < count:
                kernel(bounds[turn], bounds[turn + 1], *storage[thread], *arguments)

        helpers = [_pool().submit(work, thread) for thread in range(1, threads)]
        work(0)
        for helper in helpers:
            if not helper.cancel():  # it has begun
                helper.result()
        return 0

    return run


def _pool() -> ThreadPoolExecutor:
    global _helpers
    if _helpers is None:
        _helpers = ThreadPoolExecutor(max(THREADS - 1, 1), "needle")
    return _helpers


def _forget_helpers() -> None:
    """A process that was forked has none of its parent's threads."""
    global _helpers
    _helpers = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


@cache
def _versions() -> str:
    files = ("runtime.py", "codegen.py")
    return numba.__version__ + "".join(
        hashlib.sha256((Path(__file__).parent / file).read_bytes()).hexdigest() for file in files
    )


def _kept(source: str, key: str) -> Path | None:
    """A file with the source, beside which Numba keeps the machine code; None if none can be written."""
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
