"""The CPU backend: loops in Python that Numba compiles to machine code and divides among threads.

The loops come first, as templates: map and zip over numbers that lie side by side, the same with strides,
then reductions, copies and matrix products. The builders follow: they turn a row of the table of scalar
functions into a kernel. Last come the plans, which depend on shapes and strides only and are made once.
``ndarray_backend_numpy.py`` lists what every backend offers.

A `Kernel` compiles a template and fills in `f`, `dtype` and `wide`. In the version for one thread, `prange`
is `range`. In the other version threads share its iterations: no two of them may write to the same place, and
a variable that is set inside the loop is private to its iteration. The index is unsigned there. Numba turns
the sum of an unsigned and a signed integer into a float, so an index is made signed before it meets strides.
"""

from __future__ import annotations

import math
from builtins import zip as _zip  # here `zip` is a builder of kernels
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba import prange

from . import ndarray_backend_numpy as numpy_backend
from .blas import ON_ONE_THREAD, one_thread
from .ndarray_backend_numpy import Array, fill, from_numpy, scalar_setitem, to_numpy  # noqa: F401
from .numba_kernels import PARALLEL_SIZE, THREADS, Kernel
from .scalar_functions import REDUCTIONS, SCALAR_FUNCTIONS, ScalarFunction, kernel_names
from .strides import compact_strides, merged_axes

__device_name__ = "numba_cpu"
__tile_size__ = 8

Shape = tuple[int, ...]

# The `Kernel` that compiles a template fills these in:
f: Any = None  # the scalar function of a row of the table
dtype: Any = None  # the data type of the numbers
wide: Any = None  # the data type of their totals


# Map and zip: one loop over numbers that lie side by side. The compiler turns it into vector instructions.


def map_aligned(a, out):
    """out = f(a)"""
    for i in prange(out.size):
        out[i] = f(a[i])


def zip_aligned(a, b, out):
    """out = f(a, b)"""
    for i in prange(out.size):
        out[i] = f(a[i], b[i])


def zip_number_last(a, number, out):
    """out = f(a, number)"""
    b = dtype(number)
    for i in prange(out.size):
        out[i] = f(a[i], b)


def zip_number_first(number, b, out):
    """out = f(number, b)"""
    a = dtype(number)
    for i in prange(out.size):
        out[i] = f(a, b[i])


# The same with strides. `axes` has a line per axis: its length, then the step of each operand. The start of a
# row is worked out once; along the row, a step is added each time. A step of 0 repeats a number:
# broadcasting.


def position(index, axes, stop, operand):
    """The place of element number `index` of the first `stop` axes: its index along each, times the step."""
    place = 0  # without axes, element number 0 is the only one
    for axis in range(stop - 1, 0, -1):
        length = axes[axis, 0]
        place += index % length * axes[axis, operand]
        index //= length
    return place + index * axes[0, operand]


def count(axes, stop):
    """How many elements the first axes have, up to number `stop`."""
    size = 1
    for axis in range(stop):
        size *= axes[axis, 0]
    return size


def map_row(a, start, step, z):
    """z = f(a), along a row"""
    if step == 1:
        x = a[start : start + z.size]
        for j in range(z.size):
            z[j] = f(x[j])
    else:
        for j in range(z.size):
            z[j] = f(a[start + j * step])


def map_strided(a, out, axes, a_start):
    """out = f(a), row by row"""
    last = len(axes) - 1
    n, a_step = axes[last, 0], axes[last, 1]
    for row_ in prange(out.size // n):
        row = np.int64(row_)
        map_row(a, a_start + position(row, axes, last, 1), a_step, out[row * n : row * n + n])


def zip_row(a, a_start, a_step, b, b_start, b_step, z):
    """z = f(a, b), along a row"""
    n = z.size
    if a_step == 1 and b_step == 1:
        x, y = a[a_start : a_start + n], b[b_start : b_start + n]
        for j in range(n):
            z[j] = f(x[j], y[j])
    elif a_step == 1 and b_step == 0:
        x, number = a[a_start : a_start + n], b[b_start]
        for j in range(n):
            z[j] = f(x[j], number)
    elif a_step == 0 and b_step == 1:
        number, y = a[a_start], b[b_start : b_start + n]
        for j in range(n):
            z[j] = f(number, y[j])
    else:
        for j in range(n):
            z[j] = f(a[a_start + j * a_step], b[b_start + j * b_step])


def zip_strided(a, b, out, axes, a_start, b_start):
    """out = f(a, b), row by row"""
    last = len(axes) - 1
    n, a_step, b_step = axes[last, 0], axes[last, 1], axes[last, 2]
    for row_ in prange(out.size // n):
        row = np.int64(row_)
        i = a_start + position(row, axes, last, 1)
        k = b_start + position(row, axes, last, 2)
        zip_row(a, i, a_step, b, k, b_step, out[row * n : row * n + n])


# Reductions. When a float32 total has grown large, the numbers that you add to it lose digits. So numbers are
# folded in blocks, and the results of the blocks are folded into a total in double precision.

RUN = 2048  # numbers in a block along a row
ROWS = 64  # rows in a block of columns
BAND = 4096  # columns that are folded side by side, at most


def fold_run(a, start, step, n):
    """Fold `n` numbers. Where they lie side by side, the lanes of a vector are several totals at once."""
    if step == 1:
        x = a[start : start + n]
        total = x[0]
        for j in range(1, n):
            total = f(total, x[j])
    else:
        total = a[start]
        for j in range(1, n):
            total = f(total, a[start + j * step])
    return total


def fold_four(a, out, kept, first, a_start, n):
    """Four rows at the same time: numbers come faster from four places in memory than from one."""
    last = len(kept)
    i, j = a_start + position(first, kept, last, 1), a_start + position(first + 1, kept, last, 1)
    k, m = a_start + position(first + 2, kept, last, 1), a_start + position(first + 3, kept, last, 1)
    w, x, y, z = a[i : i + n], a[j : j + n], a[k : k + n], a[m : m + n]
    total_w, total_x, total_y, total_z = w[0], x[0], y[0], z[0]
    for place in range(1, n):
        total_w, total_x = f(total_w, w[place]), f(total_x, x[place])
        total_y, total_z = f(total_y, y[place]), f(total_z, z[place])
    out[first], out[first + 1], out[first + 2], out[first + 3] = total_w, total_x, total_y, total_z


def fold_number(a, start, folded):
    """Fold all numbers that become one: rows of them, and along each row block after block."""
    last = len(folded) - 1
    n, step = folded[last, 0], folded[last, 1]
    total = wide(0)
    for row in range(count(folded, last)):
        i = start + position(row, folded, last, 1)
        for j in range(0, n, RUN):
            run = wide(fold_run(a, i + j * step, step, min(RUN, n - j)))
            total = run if row == 0 and j == 0 else f(total, run)
    return total


def fold_rows(a, out, kept, folded, a_start):
    """Each number of `out` by itself."""
    n, step = folded[0, 0], folded[0, 1]
    in_one_run = len(folded) == 1 and n <= RUN
    together = 4 if in_one_run and step == 1 else 1
    for group_ in prange((out.size + together - 1) // together):
        first = np.int64(group_) * together
        if together == 4 and first + 4 <= out.size:
            fold_four(a, out, kept, first, a_start, n)
        else:
            for i in range(first, min(first + together, out.size)):
                start = a_start + position(i, kept, len(kept), 1)
                out[i] = fold_run(a, start, step, n) if in_one_run else fold_number(a, start, folded)


def fold_band(a, start, folded, z):
    """Fold columns that lie side by side, row after row."""
    totals = np.zeros(z.size, wide)
    # Two places take turns. If max(x, y) went back to the place of x, the compiler would see that it need not
    # always be stored. It would make a branch of that, and a loop with a branch gets no vector instructions.
    block, place = np.empty(z.size, dtype), np.empty(z.size, dtype)
    rows = count(folded, len(folded))
    for row in range(rows):
        i = start + position(row, folded, len(folded), 1)
        x = a[i : i + z.size]
        if row % ROWS == 0:
            for j in range(z.size):
                block[j] = x[j]
        else:
            for j in range(z.size):
                place[j] = f(block[j], x[j])
            block, place = place, block
        if row % ROWS == ROWS - 1 or row == rows - 1:
            for j in range(z.size):
                totals[j] = f(totals[j], wide(block[j])) if row >= ROWS else block[j]
    for j in range(z.size):
        z[j] = totals[j]


def fold_columns(a, out, kept, folded, a_start, width):
    """One band of `out` after another, for axes whose kept numbers lie side by side."""
    last = len(kept) - 1
    n = kept[last, 0]
    bands = (n + width - 1) // width
    for band_ in prange(out.size // n * bands):
        line, left = np.int64(band_) // bands, np.int64(band_) % bands * width
        z = out[line * n + left : line * n + min(left + width, n)]
        fold_band(a, a_start + left + position(line, kept, last, 1), folded, z)


def fold_long(a, out, parts, a_start, n):
    """Few long rows that lie one after the other, each in parts that threads can share."""
    per_row = parts.size // out.size
    for part_ in prange(parts.size):
        part = np.int64(part_)
        row, index = part // per_row, part % per_row
        left, stop = index * n // per_row, (index + 1) * n // per_row
        total = wide(0)
        for j in range(left, stop, RUN):
            run = wide(fold_run(a, a_start + row * n + j, 1, min(RUN, stop - j)))
            total = run if j == left else f(total, run)
        parts[part] = total
    for row in range(out.size):
        out[row] = fold_run(parts, row * per_row, 1, per_row)


# Copies. If one side is read along rows and the other written along columns, going tile by tile uses so few
# memory lines at a time that they stay in the cache.

TILE = 64


def copy_row(a, a_start, a_step, out, out_start, out_step, n):
    """Copy `n` numbers."""
    if a_step == 1 and out_step == 1:
        x, z = a[a_start : a_start + n], out[out_start : out_start + n]
        for j in range(n):
            z[j] = x[j]
    else:
        for j in range(n):
            out[out_start + j * out_step] = a[a_start + j * a_step]


def copy_rows(a, out, axes, a_start, out_start):
    """Copy row by row."""
    last = len(axes) - 1
    n, a_step, out_step = axes[last, 0], axes[last, 1], axes[last, 2]
    for row_ in prange(count(axes, last)):
        row = np.int64(row_)
        i = a_start + position(row, axes, last, 1)
        k = out_start + position(row, axes, last, 2)
        copy_row(a, i, a_step, out, k, out_step, n)


def copy_band(a, a_start, a_right, out, out_start, out_down, height, width):
    """Copy `height` <= TILE rows, which are columns in `a`, tile by tile."""
    tile = np.empty((TILE, TILE), dtype)
    for left in range(0, width, TILE):
        w = min(TILE, width - left)
        for column in range(w):
            start = a_start + (left + column) * a_right
            x = a[start : start + height]
            for row in range(height):
                tile[column, row] = x[row]
        for row in range(height):
            start = out_start + row * out_down + left
            z = out[start : start + w]
            for column in range(w):
                z[column] = tile[column, row]


def copy_tiles(a, out, axes, a_start, out_start):
    """Copy numbers that have step 1 along the last axis but one in `a`, and along the last one in `out`."""
    outer = len(axes) - 2
    height, width = axes[outer, 0], axes[outer + 1, 0]
    a_right, out_down = axes[outer + 1, 1], axes[outer, 2]
    bands = (height + TILE - 1) // TILE
    for band_ in prange(count(axes, outer) * bands):
        matrix, top = np.int64(band_) // bands, np.int64(band_) % bands * TILE
        i = a_start + position(matrix, axes, outer, 1) + top
        k = out_start + position(matrix, axes, outer, 2) + top * out_down
        copy_band(a, i, a_right, out, k, out_down, min(TILE, height - top), width)


# Parts that an index names. Several of its numbers may be the same. So where threads add, they divide the
# places to add to among themselves, not the index.


def gather_rows(a, out, index, n, inner):
    """out[o, j, i] = a[o, index[j], i]"""
    for row_ in prange(out.size // inner):
        row = np.int64(row_)
        start = (row // index.size * n + index[row % index.size]) * inner
        x, z = a[start : start + inner], out[row * inner : row * inner + inner]
        for i in range(inner):
            z[i] = x[i]


def add_rows(a, out, index, n, inner):
    """out[o, index[j], i] += a[o, j, i]"""
    for outer_ in prange(out.size // (n * inner)):
        outer = np.int64(outer_)
        for j in range(index.size):
            from_, to = (outer * index.size + j) * inner, (outer * n + index[j]) * inner
            x, z = a[from_ : from_ + inner], out[to : to + inner]
            for i in range(inner):
                z[i] += x[i]


# Matrix products. A small one is done before BLAS has even looked at its operands.


def multiply(a, b, out, m, n, p, a_start, a_down, a_right, b_start, b_down, b_right):
    """Each row of `out` is a sum of rows of `b`. In this order of loops the innermost one adds neighbours."""
    for i in range(m):
        z = out[i * p : i * p + p]
        for j in range(p):
            z[j] = 0
        for k in range(n):
            number = a[a_start + i * a_down + k * a_right]
            start = b_start + k * b_down
            if b_right == 1:
                y = b[start : start + p]
                for j in range(p):
                    z[j] += number * y[j]
            else:
                for j in range(p):
                    z[j] += number * b[start + j * b_right]


def multiply_tiled(a, b, out, m, n, p, size):
    """The product of matrices stored tile by tile: a tile of `out` stays in the cache until it is done."""
    area = size * size
    for i_ in prange(m // size):
        i = np.int64(i_)
        for j in range(p // size):
            z = out[(i * (p // size) + j) * area : (i * (p // size) + j + 1) * area]
            for number in range(area):
                z[number] = 0
            for k in range(n // size):
                x = a[(i * (n // size) + k) * area : (i * (n // size) + k + 1) * area]
                y = b[(k * (p // size) + j) * area : (k * (p // size) + j + 1) * area]
                for row in range(size):
                    for inner in range(size):
                        number = x[row * size + inner]
                        for column in range(size):
                            z[row * size + column] += number * y[inner * size + column]


# Builders: each turns a row of the table into a kernel that the array calls.


def map(row: ScalarFunction) -> Callable:
    """The kernel ``out = row(a)``; layout: ``(shape, strides, offset)``."""
    aligned = Kernel(map_aligned, "aa", row)
    strided = Kernel(map_strided, "aapi", row)

    def kernel(a: Array, out: Array, layout: tuple | None = None) -> None:
        if layout is None:
            if out.size < PARALLEL_SIZE:  # what `run` would do: most calls are for small arrays
                aligned[out.dtype](a.buffer, out.buffer)
            else:
                aligned.run(out.size, out.dtype, a.buffer, out.buffer)
        else:
            shape, strides, offset = layout
            axes, far = _walk(shape, strides)
            if far:
                a, strides, offset = _repacked(a, shape, strides, offset)
                axes, _ = _walk(shape, strides)
            strided.run(_shared(out.size, axes), out.dtype, a.buffer, out.buffer, axes, offset)

    return kernel


def zip(row: ScalarFunction) -> Callable:
    """The kernel ``out = row(a, b)``; layout: ``(shape, a_strides, a_offset, b_strides, b_offset)``.

    Without a layout either operand may be a Python number.
    """
    aligned = Kernel(zip_aligned, "aaa", row)
    number_last = Kernel(zip_number_last, "axa", row)
    number_first = Kernel(zip_number_first, "xaa", row)
    strided = Kernel(zip_strided, "aaapii", row)

    def kernel(a: Any, b: Any, out: Array, layout: tuple | None = None) -> None:
        if layout is not None:
            shape, a_strides, a_offset, b_strides, b_offset = layout
            axes, far = _walk(shape, a_strides, b_strides)
            if far:
                if _is_far(a_strides):
                    a, a_strides, a_offset = _repacked(a, shape, a_strides, a_offset)
                if _is_far(b_strides):
                    b, b_strides, b_offset = _repacked(b, shape, b_strides, b_offset)
                axes, _ = _walk(shape, a_strides, b_strides)
            elif tiling := _tiling(shape, a_strides, b_strides):
                a_times, b_times, axes = tiling
                a, a_offset = _tiled(a, a_offset, *a_times) if a_times else (a, a_offset)
                b, b_offset = _tiled(b, b_offset, *b_times) if b_times else (b, b_offset)
            if out.size < PARALLEL_SIZE:  # what `run` would do: most calls are for small arrays
                strided[out.dtype](a.buffer, b.buffer, out.buffer, axes, a_offset, b_offset)
            else:
                size = _shared(out.size, axes)
                strided.run(size, out.dtype, a.buffer, b.buffer, out.buffer, axes, a_offset, b_offset)
            return
        loop = aligned
        if type(b) is Array:
            b = b.buffer
        else:
            loop = number_last
        if type(a) is Array:
            a = a.buffer
        else:
            loop = number_first
        if out.size < PARALLEL_SIZE:
            loop[out.dtype](a, b, out.buffer)
        else:
            loop.run(out.size, out.dtype, a, b, out.buffer)

    return kernel


LONG = 1 << 15  # a row of this many numbers is worth folding in parts


def reduce(row: ScalarFunction) -> Callable:
    """The kernel that folds `k` > 0 numbers of `a` with ``row(a, b)`` into each number of `out`.

    Layout: ``(kept_shape, kept_strides, folded_shape, folded_strides, offset)``. Without one, each `k`
    neighbours in `a` are folded.
    """
    by_rows = Kernel(fold_rows, "aappi", row, reorder=True)
    by_columns = Kernel(fold_columns, "aappii", row, reorder=True)
    by_parts = Kernel(fold_long, "aawii", row, reorder=True)
    # A vector instruction works on several numbers at once, each in its lane. The compiler folds a row in
    # lanes for a sum, but not for a maximum. So for a maximum a long row is seen as a table with a column per
    # lane: first its columns are folded side by side, then their results.
    in_lanes = row.name in ("add", "multiply")

    def kernel(a: Array, out: Array, k: int, layout: tuple | None = None) -> None:
        *shapes_and_strides, offset = layout or ((out.size,), (k,), (k,), (1,), 0)
        kept, folded, band, together = _fold_plan(*shapes_and_strides)
        if together and k >= 256:
            lanes = math.gcd(k, 256)
            if not in_lanes and lanes >= 32 and k >= 8 * lanes:
                parts = Array(out.size * lanes, out.dtype)
                kernel(a, parts, k // lanes, ((out.size, lanes), (k, 1), (k // lanes,), (lanes,), offset))
                kernel(parts, out, lanes)
                return
            if k >= 2 * LONG and out.size < 16:
                parts = Array(k // LONG * out.size, np.float64 if out.dtype.kind == "f" else out.dtype)
                by_parts.run(k * out.size, out.dtype, a.buffer, out.buffer, parts.buffer, offset, k)
                return
        if band:
            size = k * out.size if out.size > band else 0  # one band is nothing to share among threads
            by_columns.run(size, out.dtype, a.buffer, out.buffer, kept, folded, offset, band)
        elif out.size == 1 or k * out.size < PARALLEL_SIZE:  # what `run` would do
            by_rows[out.dtype](a.buffer, out.buffer, kept, folded, offset)
        else:
            by_rows.run(k * out.size, out.dtype, a.buffer, out.buffer, kept, folded, offset)

    return kernel


_copy_rows = Kernel(copy_rows, "aapii")
_copy_tiles = Kernel(copy_tiles, "aapii")
_gather_rows = Kernel(gather_rows, "aanii")
_add_rows = Kernel(add_rows, "aanii")
_multiply = Kernel(multiply, "aaaiiiiiiiii")
_multiply_tiled = Kernel(multiply_tiled, "aaaiiii", reorder=True)


def compact(a: Array, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write a view's numbers in row-major order into `out`, which may have another data type."""
    if a.dtype is out.dtype:
        _copy(a, out, shape, strides, offset, compact_strides(shape), 0)
    else:
        numpy_backend.compact(a, out, shape, strides, offset)


def ewise_setitem(a: Array, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write compact `a` into the view of `out`."""
    _copy(a, out, shape, compact_strides(shape), 0, strides, offset)


def _copy(a: Array, out: Array, shape: Shape, a_strides: Shape, a_offset: int, strides: Shape, offset: int):
    axes, in_tiles, size = _copy_plan(shape, a_strides, strides)
    copy = _copy_tiles if in_tiles else _copy_rows
    copy.run(_shared(size, axes), out.dtype, a.buffer, out.buffer, axes, a_offset, offset)


def gather(a: Array, out: Array, index: Array, n: int, inner: int) -> None:
    """``out[o, j, i] = a[o, index[j], i]``; ``n = a.shape[1]``, `inner` is the length of the last axis."""
    _gather_rows.run(out.size, out.dtype, a.buffer, out.buffer, index.buffer, n, inner)


def scatter_add(a: Array, out: Array, index: Array, n: int, inner: int) -> None:
    """``out[o, index[j], i] += a[o, j, i]``; ``n = out.shape[1]``, `inner` is the length of the last axis."""
    size = a.size if out.size > n * inner else 0  # of one table, nothing is shared
    _add_rows.run(size, out.dtype, a.buffer, out.buffer, index.buffer, n, inner)


SMALL = 4096  # multiplications


def matmul(a: Array, b: Array, out: Array, m: int, n: int, p: int, layout: tuple | None = None) -> None:
    """Matrix products: (m, n) times (n, p), large ones by BLAS.

    Layout: ``(batch_shape, a_strides, a_offset, b_strides, b_offset)``, where the strides are those of the
    batch axes, then of rows and columns. Without one there is a single product.
    """
    batch, a_strides, a_offset, b_strides, b_offset = layout or ((), (n, 1), 0, (p, 1), 0)
    if not batch and m * n * p <= SMALL:
        steps = (a_offset, *a_strides, b_offset, *b_strides)
        _multiply[out.dtype](a.buffer, b.buffer, out.buffer, m, n, p, *steps)
        return
    if layout is not None:
        a, a_strides, a_offset = _for_blas(a, (*batch, m, n), a_strides, a_offset)
        b, b_strides, b_offset = _for_blas(b, (*batch, n, p), b_strides, b_offset)
        layout = (batch, a_strides, a_offset, b_strides, b_offset)
    if m * n * p in ON_ONE_THREAD:
        with one_thread:
            numpy_backend.matmul(a, b, out, m, n, p, layout)
    else:
        numpy_backend.matmul(a, b, out, m, n, p, layout)


def matmul_tiled(a: Array, b: Array, out: Array, m: int, n: int, p: int) -> None:
    """The matrix product of matrices that are stored tile by tile: shape (rows/t, columns/t, t, t)."""
    sizes = (m, n, p, __tile_size__)
    _multiply_tiled.run(m * n * p, out.dtype, a.buffer, b.buffer, out.buffer, *sizes)


# Plans: how to walk through arrays, worked out from shapes and strides once, and remembered.


def _shared(size: int, axes: np.ndarray) -> int:
    """How many numbers threads can share: none if there is only one row."""
    return size if len(axes) > 1 else 0


def _lines(shape: Shape, *strides: Shape) -> np.ndarray:
    """Axes for a kernel, as few as possible: a line for each with its length and its steps."""
    lines = np.array(merged_axes(shape, *strides), np.int64).T.copy()
    lines.flags.writeable = False
    return lines


@lru_cache(maxsize=4096)
def _walk(shape: Shape, *strides: Shape) -> tuple[np.ndarray, bool]:
    """The axes, and whether it pays to repack an operand because the numbers of its rows lie far apart."""
    axes = _lines(shape, *strides)
    return axes, math.prod(shape) >= TILE * TILE and any(_is_far(steps) for steps in strides)


@lru_cache(maxsize=4096)
def _tiling(shape: Shape, a_strides: Shape, b_strides: Shape) -> tuple | None:
    """How to go through a large table of short rows that all meet the same row, as pixels meet a bias.

    A loop over few numbers is mostly overhead. So the row that is repeated is written out several times, and
    as many rows of the table count as one. The plan has (length of its row, times) or None for each operand,
    then the new axes. It is None if the operands are not such a table and row.
    """
    axes = _lines(shape, a_strides, b_strides)
    if len(axes) != 2 or tuple(axes[1, 1:]) != (1, 1) or math.prod(shape) < 4 * TILE * TILE:
        return None
    rows, n = int(axes[0, 0]), int(axes[1, 0])
    steps = tuple(axes[0, 1:])
    times = max((k for k in range(1, 1024 // n + 1) if rows % k == 0), default=1)
    if steps not in ((n, 0), (0, n)) or times == 1:
        return None
    longer = np.array([(rows // times, *(step * times for step in steps)), (n * times, 1, 1)], np.int64)
    longer.flags.writeable = False
    return (None, (n, times), longer) if steps[1] == 0 else ((n, times), None, longer)


def _tiled(a: Array, start: int, n: int, times: int) -> tuple[Array, int]:
    """A row of `n` numbers, several times one after the other, and where it starts."""
    out = Array(n * times, a.dtype)
    out.buffer.reshape(times, n)[...] = a.buffer[start : start + n]
    return out, 0


def _is_far(strides: Shape) -> bool:
    """Whether each number of a row is on another memory line (64 bytes) than the one before."""
    return abs(strides[-1]) >= 16


@lru_cache(maxsize=4096)
def _fold_plan(kept: Shape, kept_strides: Shape, folded: Shape, folded_strides: Shape) -> tuple:
    """The axes to keep and to fold; how many columns to fold side by side, 0 for going by rows; whether each
    row's numbers are neighbours, and rows follow each other."""
    kept_lines = _lines(kept, kept_strides)
    # The order of folding is free, so take the order in which the numbers lie in memory.
    folded_axes = sorted(_zip(folded, folded_strides, strict=True), key=lambda axis: -abs(axis[1]))
    folded_lines = _lines(*_zip(*folded_axes, strict=True)) if folded else _lines((), ())
    (width, step), (n, folded_step) = kept_lines[-1], folded_lines[-1]
    share = max(-(-int(width) // THREADS), 256)  # a part of the columns for each thread
    band = min(share, BAND) if width >= 8 and step == 1 else 0
    together = len(kept_lines) == len(folded_lines) == 1 and folded_step == 1 and (width == 1 or step == n)
    return kept_lines, folded_lines, band, bool(together)


@lru_cache(maxsize=4096)
def _copy_plan(shape: Shape, a_strides: Shape, out_strides: Shape) -> tuple:
    """The axes in the order in which `out` lies in memory; whether to go in tiles; how many numbers."""
    order = sorted(_zip(shape, a_strides, out_strides, strict=True), key=lambda axis: -abs(axis[2]))
    lines = _lines(*_zip(*order, strict=True)) if shape else _lines((), (), ())
    last = len(lines) - 1
    dense_in_a = int(np.argmin(abs(lines[:, 1] - 1)))
    steps = (lines[dense_in_a, 1], lines[last, 2])
    in_tiles = dense_in_a != last and steps == (1, 1) and min(lines[[dense_in_a, last], 0]) >= 8
    if in_tiles:
        others = [i for i in range(last) if i != dense_in_a]
        lines = np.ascontiguousarray(lines[[*others, dense_in_a, last]])
        lines.flags.writeable = False
    return lines, in_tiles, math.prod(shape)


def _for_blas(a: Array, shape: Shape, strides: Shape, offset: int) -> tuple:
    """Matrices whose rows or columns lie side by side, as BLAS needs them: a copy where they do not.

    An axis that repeats its numbers still does; NumPy writes it out for BLAS.
    """
    if 1 in strides[-2:] and min(strides[-2:]) > 0:
        return a, strides, offset
    return _repacked(a, shape, strides, offset)


def _repacked(a: Array, shape: Shape, strides: Shape, offset: int) -> tuple:
    """A view copied into new storage. Axes that repeat their numbers (step 0) still do."""
    own = tuple([1 if step == 0 else n for n, step in _zip(shape, strides, strict=True)])
    out = Array(math.prod(own), a.dtype)
    compact(a, out, own, strides, offset)
    new = compact_strides(own)
    return out, tuple([0 if step == 0 else n for n, step in _zip(new, strides, strict=True)]), 0


MAPS = {name: map(row) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 1}
ZIPS = {name: zip(row) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 2}
REDUCES = {name: reduce(SCALAR_FUNCTIONS[name]) for name in REDUCTIONS}
globals().update(kernel_names(MAPS, ZIPS, REDUCES))  # ewise_add, scalar_add, reduce_sum …
