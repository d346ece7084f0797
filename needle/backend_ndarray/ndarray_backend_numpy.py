"""The NumPy backend: the reference, and the specification of what a backend is.

A backend is one module with

- storage: `Array`, `from_numpy`, `to_numpy`, `fill`, `compact`, `ewise_setitem`, `scalar_setitem`;
- builders: `map`, `zip` and `reduce` turn a row of the table of scalar functions into a kernel; `MAPS`,
  `ZIPS` and `REDUCES` hold the kernels by the names of their rows;
- three more kernels: `matmul`, and `gather` and `scatter_add`, which follow an index.

Kernels work on flat buffers and write into `out`, which is always compact. Without a `layout` the operands
are compact too, and a kernel is a loop over buffers. For other operands a `layout` says how to walk through
them: their strides and offset, counted in elements. A stride of 0 repeats an axis (broadcasting).
Operands have the data type of `out`, and no length is 0: `kernel_calls.py` ensures this, and checks the
user's input.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy import empty

from .memory import LARGE, blocks
from .scalar_functions import REDUCTIONS, SCALAR_FUNCTIONS, ScalarFunction, kernel_names

__device_name__ = "numpy"
__tile_size__ = 8

Shape = tuple[int, ...]


class Array:
    """Flat storage for `size` numbers, not yet written."""

    __slots__ = ("buffer", "dtype", "size")

    def __init__(self, size: int, dtype: Any = "float32"):
        self.buffer = buffer = empty(size, dtype) if size < LARGE else blocks.array(size, np.dtype(dtype))
        self.dtype = buffer.dtype
        self.size = size

    def ptr(self) -> int:
        """Address of the first number: two arrays share memory when their storage's addresses are equal."""
        return self.buffer.ctypes.data


class _Quiet(threading.local):
    """``quiet.run(f, …)`` calls `f` with NumPy's floating-point warnings off, in this call alone.

    NumPy keeps its error state in a context variable. So a context in which it is "ignore" does what
    ``np.errstate`` does, in a tenth of the time. Each thread has a context of its own, since only one at a
    time can enter it, and only once.
    """

    def __init__(self):
        self.context = contextvars.Context()
        self.context.run(np.seterr, all="ignore")

    def run(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.context.run(function, *args, **kwargs)
        except RuntimeError as error:
            if "already entered" not in str(error):
                raise
        # This thread is in the context already: a debugger or a finaliser computes while a kernel runs.
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)


quiet = _Quiet()


def _view(array: Array, shape: Shape, strides: Shape, offset: int) -> np.ndarray:
    buffer = array.buffer
    size = buffer.itemsize
    return np.ndarray(shape, array.dtype, buffer, offset * size, _in_bytes(strides, size))


@lru_cache(maxsize=4096)
def _in_bytes(strides: Shape, itemsize: int) -> Shape:
    return tuple(stride * itemsize for stride in strides)


# Storage


def from_numpy(a: np.ndarray, out: Array) -> None:
    """Copy a NumPy array, in row-major order, into `out`."""
    quiet.run(np.copyto, out.buffer, a.reshape(-1), "unsafe")


def to_numpy(a: Array, shape: Shape, strides: Shape, offset: int) -> np.ndarray:
    """A NumPy array with a copy of a view's numbers."""
    return _view(a, shape, strides, offset).copy()


def fill(out: Array, value: float) -> None:
    """Write `value` everywhere."""
    quiet.run(out.buffer.fill, value)


def compact(a: Array, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write a view's numbers in row-major order into `out`, which may have another data type."""
    quiet.run(np.copyto, out.buffer.reshape(shape), _view(a, shape, strides, offset), "unsafe")


def ewise_setitem(a: Array, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write compact `a` into the view of `out`."""
    _view(out, shape, strides, offset)[...] = a.buffer.reshape(shape)


def scalar_setitem(size: int, value: float, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write `value` everywhere in the view of `out`."""
    quiet.run(np.copyto, _view(out, shape, strides, offset), value, "unsafe")


# Builders


def map(row: ScalarFunction) -> Callable:
    """The kernel ``out = row(a)``; layout: ``(shape, strides, offset)``."""
    function = row.numpy

    def kernel(a: Array, out: Array, layout: tuple | None = None) -> None:
        if layout is None:
            quiet.run(function, a.buffer, out=out.buffer)
        else:
            quiet.run(function, _view(a, *layout), out=out.buffer.reshape(layout[0]))

    return kernel


def zip(row: ScalarFunction) -> Callable:
    """The kernel ``out = row(a, b)``; layout: ``(shape, a_strides, a_offset, b_strides, b_offset)``.

    Without a layout either operand may be a Python number: a float beside floats, an int beside integers.
    """
    function = row.numpy

    def kernel(a: Any, b: Any, out: Array, layout: tuple | None = None) -> None:
        if layout is None:
            x = a.buffer if isinstance(a, Array) else a
            y = b.buffer if isinstance(b, Array) else b
            quiet.run(function, x, y, out=out.buffer)
        else:
            shape, a_strides, a_offset, b_strides, b_offset = layout
            x = _view(a, shape, a_strides, a_offset)
            y = _view(b, shape, b_strides, b_offset)
            quiet.run(function, x, y, out=out.buffer.reshape(shape))

    return kernel


def reduce(row: ScalarFunction) -> Callable:
    """The kernel that folds `k` > 0 numbers of `a` with ``row(a, b)`` into each number of `out`.

    Layout: ``(kept_shape, kept_strides, folded_shape, folded_strides, offset)``. Without one, each `k`
    neighbours in `a` are folded.
    """
    function = row.numpy.reduce

    def kernel(a: Array, out: Array, k: int, layout: tuple | None = None) -> None:
        if layout is None:
            quiet.run(function, a.buffer.reshape(-1, k), 1, None, out.buffer)
        else:
            kept, kept_strides, folded, folded_strides, offset = layout
            x = _view(a, kept + folded, kept_strides + folded_strides, offset)
            axes = -1 if len(folded) == 1 else tuple(range(len(kept), x.ndim))
            # NumPy 2.0's maximum.reduce(out=…) is wrong for negative strides.
            out.buffer[...] = quiet.run(function, x, axes).reshape(-1)

    return kernel


def matmul(a: Array, b: Array, out: Array, m: int, n: int, p: int, layout: tuple | None = None) -> None:
    """Matrix products: (m, n) times (n, p).

    Layout: ``(batch_shape, a_strides, a_offset, b_strides, b_offset)``, where the strides are those of the
    batch axes, then of rows and columns. Without one there is a single product.
    """
    if layout is None:
        x, y, z = a.buffer.reshape(m, n), b.buffer.reshape(n, p), out.buffer.reshape(m, p)
    else:
        batch, a_strides, a_offset, b_strides, b_offset = layout
        x = _view(a, (*batch, m, n), a_strides, a_offset)
        y = _view(b, (*batch, n, p), b_strides, b_offset)
        z = out.buffer.reshape(*batch, m, p)
    # For two matrices np.dot does the same with half the overhead.
    quiet.run(np.dot if z.ndim == 2 else np.matmul, x, y, z)


def matmul_tiled(a: Array, b: Array, out: Array, m: int, n: int, p: int) -> None:
    """The matrix product of matrices that are stored tile by tile: shape (rows/t, columns/t, t, t)."""
    t = __tile_size__
    x = a.buffer.reshape(m // t, n // t, t, t)
    y = b.buffer.reshape(n // t, p // t, t, t)
    np.einsum("ikab,kjbc->ijac", x, y, out=out.buffer.reshape(m // t, p // t, t, t))


def gather(a: Array, out: Array, index: Array, n: int, inner: int) -> None:
    """``out[o, j, i] = a[o, index[j], i]``, where `a` has `n` elements along its second axis and `inner`
    along its third.

    `index` holds numbers of int64 in ``0 .. n - 1``.
    """
    found = out.buffer.reshape(-1, index.size, inner)
    # With "raise", the default, NumPy would make a copy first.
    places = index.buffer.astype(np.intp, copy=False)  # 32 bits in a browser, where NumPy takes no others
    np.take(a.buffer.reshape(-1, n, inner), places, 1, found, "clip")


def scatter_add(a: Array, out: Array, index: Array, n: int, inner: int) -> None:
    """``out[o, index[j], i] += a[o, j, i]``, where `out` has `n` elements along its second axis.

    The rest is as for `gather`. Repeated indices accumulate.
    """
    add_at(out.buffer, a.buffer, index.buffer, n, inner)


def add_at(out: np.ndarray, a: np.ndarray, index: np.ndarray, n: int, inner: int) -> None:
    """`scatter_add` of NumPy's arrays. They have one axis: with three it would take several times as long."""
    outer = np.arange(out.size // (n * inner))
    places = (outer[:, None] * n + index)[..., None] * inner + np.arange(inner)
    np.add.at(out, places.reshape(-1), a)


MAPS = {name: map(row) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 1}
ZIPS = {name: zip(row) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 2}
REDUCES = {name: reduce(SCALAR_FUNCTIONS[name]) for name in REDUCTIONS}
globals().update(kernel_names(MAPS, ZIPS, REDUCES))  # ewise_add, scalar_add, reduce_sum …
