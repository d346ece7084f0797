"""The CUDA backend: kernels in Python that Numba compiles for NVIDIA's graphics cards.

A kernel is a function that thousands of threads run at once, each for numbers of its own. Threads start in
blocks, and the blocks form a grid: from ``threadIdx`` and ``blockIdx`` a thread finds out which numbers are
its own. All blocks have the same size, so there may be more threads than numbers. Therefore each kernel has a
guard: a thread without numbers does nothing. The threads of a block share a small, fast memory
(`cuda.shared`), and wait for each other at `cuda.syncthreads()`. They run in warps of 32, whose threads take
each step together and can look at each other's variables.

Memory and launches come first, then map and zip, copies, reductions and matrix products, each with its
kernels and the function that launches them. Last come the plans: the host makes them from shapes and strides
alone. ``ndarray_backend_numpy.py`` lists what every backend offers.

All work goes to the card's default stream. The card does it in the order in which it is asked for, from any
thread. So a kernel is launched without waiting for the one before it, and the memory of an array that is no
longer used can go to the next kernel at once. Only `to_numpy` waits.

With ``NUMBA_ENABLE_CUDASIM=1`` in the environment, Numba's simulator runs the kernels in Python, without a
card. It starts a Python thread for each thread of the kernel, so blocks are tiny there.
"""

from __future__ import annotations

import math
import threading
from builtins import zip as _zip  # here `zip` is a builder of kernels
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache, lru_cache, wraps
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config
from numba.cuda import current_context, device_array, jit

from .scalar_functions import REDUCTIONS, SCALAR_FUNCTIONS, ScalarFunction, kernel_names
from .strides import compact_strides, merged_axes

__device_name__ = "cuda"

Shape = tuple[int, ...]

SIMULATED = bool(config.ENABLE_CUDASIM)  # type: ignore[attr-defined]

THREADS = 4 if SIMULATED else 256  # of a block
BLOCKS = 2 if SIMULATED else 1 << 20  # of a grid, at most, where each thread can take several numbers
WARP = 1 if SIMULATED else 32  # threads of a block that run in step; the simulator has no such thing
ALL_LANES = 0xFFFFFFFF  # every thread of a warp
__tile_size__ = TILE = 2 if SIMULATED else 16  # threads along a side of a square block

# Numba warns about small grids. Small arrays need no larger ones, and a user who adds two cannot change that.
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # type: ignore[attr-defined]


# Memory


class Array:
    """Flat storage on the card for `size` numbers, not yet written."""

    __slots__ = ("buffer", "dtype", "size")

    def __init__(self, size: int, dtype: Any = "float32"):
        self.dtype = np.dtype(dtype)
        self.size = size
        self.buffer = unused.take(size, self.dtype)

    def __del__(self):
        if hasattr(self, "buffer"):  # there is none if memory ran out
            unused.put(self.buffer)

    def __reduce__(self):
        return _from_host, (self.buffer.copy_to_host(),)

    def ptr(self) -> int:
        """Address of the first number: two arrays share memory when their storage's addresses are equal."""
        return self.buffer.ctypes.data if SIMULATED else self.buffer.device_ctypes_pointer.value or 0


def _from_host(values: np.ndarray) -> Array:
    array = Array(values.size, values.dtype)
    from_numpy(values, array)
    return array


class Unused:
    """Memory that no array uses any more, kept for the next array of the same size and type.

    It takes longer to get memory from the card and to give it back than to run most kernels, and a training
    loop needs the same arrays in every step. When more than a quarter of the card's memory is kept, all of it
    is given back.
    """

    def __init__(self):
        self.buffers: dict[tuple, list] = {}
        self.bytes = 0
        self.limit = math.inf  # until there is an array, and with it a card to ask
        self.lock = threading.RLock()  # the garbage collector may end an Array while another one is made

    def take(self, size: int, dtype: np.dtype) -> Any:
        """A device array for `size` numbers; MemoryError if the card has no room for it."""
        with self.lock:
            if buffers := self.buffers.get((size, dtype)):
                buffer = buffers.pop()
                self.bytes -= buffer.nbytes
                return buffer
            if self.limit == math.inf:
                self.limit = current_context().get_memory_info().total / 4
        with suppress(MemoryError):
            return _allocate(size, dtype)
        self.clear()
        return _allocate(size, dtype)

    def put(self, buffer: Any) -> None:
        """Keep the memory of an array that nobody uses any more."""
        with self.lock:
            self.buffers.setdefault((buffer.size, buffer.dtype), []).append(buffer)
            self.bytes += buffer.nbytes
            if self.bytes > self.limit:
                self.clear()

    def clear(self) -> None:
        """Give all of it back to the card."""
        with self.lock:
            self.buffers.clear()
            self.bytes = 0


unused = Unused()


def _allocate(size: int, dtype: np.dtype) -> Any:
    try:
        return device_array(size, dtype)
    except Exception as error:
        if "OUT_OF_MEMORY" not in str(error):
            raise
        free, total = current_context().get_memory_info()
        raise MemoryError(
            f"cuda(): no memory for {_readable(size * dtype.itemsize)}, {size} numbers of type {dtype}; "
            f"{_readable(free)} of the card's {_readable(total)} are free. Delete arrays that you no longer "
            "need, take smaller batches, or use needle.cpu()."
        ) from error


def _readable(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


# Compiling and launching


def kernel(function: Callable) -> Any:
    """`function` as a kernel. Numba compiles it the first time that it meets some types of arguments."""
    if not SIMULATED:
        return jit(function)

    @wraps(function)
    def quiet(*arguments):
        with np.errstate(all="ignore"):  # a card does not warn about 1 / 0 either
            function(*arguments)

    return jit(quiet)


def device_function(function: Callable) -> Callable:
    """`function` as one that kernels can call."""
    return function if SIMULATED else jit(device=True)(function)


def launch(kernel: Any, blocks: int, threads: int | tuple[int, ...], *arguments: Any) -> None:
    """Start a kernel on a grid of `blocks` blocks of `threads` threads, and do not wait for it."""
    if blocks:  # a driver refuses an empty grid
        with one_at_a_time:
            kernel[blocks, threads](*arguments)


# The simulator runs one kernel at a time.
one_at_a_time: Any = threading.RLock() if SIMULATED else nullcontext()


def spread(kernel: Any, size: int, *arguments: Any) -> None:
    """Launch a kernel whose threads divide `size` numbers among themselves."""
    launch(kernel, min(-(-size // THREADS), BLOCKS), THREADS, *arguments)


def scalar_function(row: ScalarFunction, dtype: np.dtype) -> Callable:
    """The function of a row, to be called by a kernel for numbers of type `dtype`.

    The simulator runs a kernel in Python, which raises an exception where IEEE arithmetic gives an infinity
    or NaN. So it uses NumPy's form there, on one number at a time.
    """
    if SIMULATED:
        return row.numpy
    return device_function(WITHOUT_DOUBLES.get(row.name, row.python) if dtype == np.float32 else row.python)


def _sigmoid(x):
    one = np.float32(1)
    return one / (one + math.exp(-x)) if x >= 0 else math.exp(x) / (one + math.exp(x))


def _sign(x):
    return x if x != x else np.float32((x > 0) - (x < 0))


#: Numba computes the sum of a whole number and a float32 in float64, which is slow on most cards. Rows of the
#: table in which that happens have another version here.
WITHOUT_DOUBLES = {"sigmoid": _sigmoid, "sign": _sign}


@device_function
def position(index, shape, strides):
    """How far element number `index`, in row-major order, lies from the first element of a view."""
    place = 0
    for axis in range(len(shape) - 1, 0, -1):
        before = index // shape[axis]
        place += (index - before * shape[axis]) * strides[axis]
        index = before
    return place + index * strides[0]


# Map and zip. If the grid has n threads, each takes every n-th number. So neighbouring threads always read
# and write neighbouring places, and the card does that in one go. With strides, the place of a number has to
# be worked out first.


def map(row: ScalarFunction) -> Callable:
    """The kernel ``out = row(a)``; layout: ``(shape, strides, offset)``."""

    @cache
    def kernels(dtype: np.dtype) -> tuple:
        f = scalar_function(row, dtype)

        @kernel
        def aligned(a, out):
            for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
                out[i] = f(a[i])

        @kernel
        def strided(a, out, shape, strides, offset):
            for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
                out[i] = f(a[offset + position(i, shape, strides)])

        return aligned, strided

    def run(a: Array, out: Array, layout: tuple | None = None) -> None:
        aligned, strided = kernels(out.dtype)
        if layout is None:
            spread(aligned, out.size, a.buffer, out.buffer)
        else:
            shape, strides, offset = layout
            spread(strided, out.size, a.buffer, out.buffer, *merged_axes(shape, strides), offset)

    return run


def zip(row: ScalarFunction) -> Callable:
    """The kernel ``out = row(a, b)``; layout: ``(shape, a_strides, a_offset, b_strides, b_offset)``.

    Without a layout either operand may be a Python number.
    """

    @cache
    def kernels(dtype: np.dtype) -> tuple:
        f = scalar_function(row, dtype)

        @kernel
        def aligned(a, b, out):
            for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
                out[i] = f(a[i], b[i])

        @kernel
        def number_last(a, number, out):
            for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
                out[i] = f(a[i], number)

        @kernel
        def number_first(number, b, out):
            for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
                out[i] = f(number, b[i])

        @kernel
        def strided(a, b, out, shape, a_strides, b_strides, a_offset, b_offset):
            for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
                x = a[a_offset + position(i, shape, a_strides)]
                y = b[b_offset + position(i, shape, b_strides)]
                out[i] = f(x, y)

        return aligned, number_last, number_first, strided

    def run(a: Any, b: Any, out: Array, layout: tuple | None = None) -> None:
        aligned, number_last, number_first, strided = kernels(out.dtype)
        if layout is not None:
            shape, a_strides, a_offset, b_strides, b_offset = layout
            plan = merged_axes(shape, a_strides, b_strides)
            spread(strided, out.size, a.buffer, b.buffer, out.buffer, *plan, a_offset, b_offset)
        elif not isinstance(b, Array):
            spread(number_last, out.size, a.buffer, _number(b, out.dtype), out.buffer)
        elif not isinstance(a, Array):
            spread(number_first, out.size, _number(a, out.dtype), b.buffer, out.buffer)
        else:
            spread(aligned, out.size, a.buffer, b.buffer, out.buffer)

    return run


# Copies, on the card and between the card and the host


@kernel
def fill_aligned(out, value):
    """out = value"""
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = value


@kernel
def fill_strided(out, value, size, shape, strides, offset):
    """out = value, everywhere in a view of `out`."""
    for i in range(cuda.grid(1), size, cuda.gridsize(1)):
        out[offset + position(i, shape, strides)] = value


@kernel
def copy_aligned(a, out, size, a_offset, out_offset):
    """out = a, for numbers that lie side by side."""
    for i in range(cuda.grid(1), size, cuda.gridsize(1)):
        out[out_offset + i] = a[a_offset + i]


@kernel
def copy_strided(a, out, size, shape, a_strides, out_strides, a_offset, out_offset):
    """out = a, for views."""
    for i in range(cuda.grid(1), size, cuda.gridsize(1)):
        out[out_offset + position(i, shape, out_strides)] = a[a_offset + position(i, shape, a_strides)]


COPY_TILE = 2 if SIMULATED else 32
COPY_ROWS = 1 if SIMULATED else 8  # of threads
COPY_PITCH = COPY_TILE + 1


@kernel
def copy_tiles(a, out, outer, a_outer, out_outer, shape, a_strides, out_strides, a_offset, out_offset):
    """out = a, for matrices that are dense along columns in `a` and along rows in `out`.

    A copy number by number would either read or write places that lie far apart. So a block reads a tile
    column by column into shared memory, and writes it row by row. A row of the tile has one place more than
    it needs: then neighbours in a column lie in different banks of the memory, and can be read at once.
    """
    tile = cuda.shared.array((COPY_TILE, COPY_PITCH), a.dtype)
    height, width = shape
    matrix, top, left = corner(cuda.blockIdx.x, height, width, COPY_TILE)
    a_start = a_offset + position(matrix, outer, a_outer)
    out_start = out_offset + position(matrix, outer, out_outer)
    x = cuda.threadIdx.x
    for y in range(cuda.threadIdx.y, COPY_TILE, COPY_ROWS):
        row, column = top + x, left + y
        if row < height and column < width:
            tile[x, y] = a[a_start + row * a_strides[0] + column * a_strides[1]]
    cuda.syncthreads()
    for y in range(cuda.threadIdx.y, COPY_TILE, COPY_ROWS):
        row, column = top + y, left + x
        if row < height and column < width:
            out[out_start + row * out_strides[0] + column * out_strides[1]] = tile[y, x]


@device_function
def corner(block, height, width, side):
    """The matrix that a block works on, and the first row and column of its tile.

    The tiles of all matrices are numbered, because a grid's second and third length cannot exceed 65535.
    """
    across, down = (width + side - 1) // side, (height + side - 1) // side
    row_of_tiles = block // across
    return row_of_tiles // down, row_of_tiles % down * side, block % across * side


def copy(a: Array, out: Array, shape: Shape, a_strides: Shape, a_offset: int, strides: Shape, offset: int):
    """Copy a view of `a` into a view of `out`, on the card. Their data types may differ."""
    outer, inner, size = _copy_plan(shape, a_strides, strides)
    if inner is not None:
        (height, width), *_ = inner
        tiles = size // (height * width) * -(-height // COPY_TILE) * -(-width // COPY_TILE)
        threads = (COPY_TILE, COPY_ROWS)
        launch(copy_tiles, tiles, threads, a.buffer, out.buffer, *outer, *inner, a_offset, offset)
    elif outer[1:] == ((1,), (1,)):
        spread(copy_aligned, size, a.buffer, out.buffer, size, a_offset, offset)
    else:
        spread(copy_strided, size, a.buffer, out.buffer, size, *outer, a_offset, offset)


def from_numpy(a: np.ndarray, out: Array) -> None:
    """Copy a NumPy array, in row-major order, into `out`."""
    if out.size:
        with np.errstate(all="ignore"):
            values = np.ascontiguousarray(a.reshape(-1).astype(out.dtype, copy=False))
        out.buffer.copy_to_device(values)


def to_numpy(a: Array, shape: Shape, strides: Shape, offset: int) -> np.ndarray:
    """A NumPy array with a copy of a view's numbers; it waits until all earlier work is done."""
    size = math.prod(shape)
    if size != a.size or offset or strides != compact_strides(shape):
        gathered = Array(size, a.dtype)
        compact(a, gathered, shape, strides, offset)
        a = gathered
    return a.buffer.copy_to_host().reshape(shape)


def fill(out: Array, value: float) -> None:
    """Write `value` everywhere."""
    if out.size:
        spread(fill_aligned, out.size, out.buffer, _number(value, out.dtype))


def compact(a: Array, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write a view's numbers in row-major order into `out`, which may have another data type."""
    if SIMULATED and a.dtype.kind == "f" and out.dtype.kind != "f":
        from_numpy(to_numpy(a, shape, strides, offset), out)  # Python cannot turn NaN into an integer
        return
    copy(a, out, shape, strides, offset, compact_strides(shape), 0)


def ewise_setitem(a: Array, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write compact `a` into the view of `out`."""
    copy(a, out, shape, compact_strides(shape), 0, strides, offset)


def scalar_setitem(size: int, value: float, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write `value` everywhere in the view of `out`."""
    plan = merged_axes(shape, strides)
    spread(fill_strided, size, out.buffer, _number(value, out.dtype), size, *plan, offset)


# Parts that an index names. If several of its numbers are the same, several threads add to one place. They
# add atomically: no addition interrupts another. Their order is left to chance, and so is the last digit of a
# sum of floats.


@kernel
def gather_numbers(a, out, index, count, n, inner):
    """out[o, j, i] = a[o, index[j], i]"""
    for place in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        row = place // inner
        start = (row // count * n + index[row % count]) * inner
        out[place] = a[start + place % inner]


@kernel
def add_numbers(a, out, index, count, n, inner):
    """out[o, index[j], i] += a[o, j, i]"""
    for place in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        row = place // inner
        start = (row // count * n + index[row % count]) * inner
        cuda.atomic.add(out, start + place % inner, a[place])


def gather(a: Array, out: Array, index: Array, n: int, inner: int) -> None:
    """``out[o, j, i] = a[o, index[j], i]``; ``n = a.shape[1]``, `inner` is the length of the last axis."""
    spread(gather_numbers, out.size, a.buffer, out.buffer, index.buffer, index.size, n, inner)


def scatter_add(a: Array, out: Array, index: Array, n: int, inner: int) -> None:
    """``out[o, index[j], i] += a[o, j, i]``; ``n = out.shape[1]``, `inner` is the length of the last axis."""
    spread(add_numbers, a.size, a.buffer, out.buffer, index.buffer, index.size, n, inner)


# Reductions. The threads of a block form a table of `width` columns: a column of threads folds the numbers
# that become one number of `out`. Each thread folds a few of them for itself. Then the lower half of the
# table is folded into the upper half, and so on, until a single row is left. If there are too many numbers
# for a block, they are divided into parts. The results of the parts are rows of an array, which is folded in
# turn. So no total is a sum of many numbers one after the other, and float32 totals stay accurate.

SHARE = 4 if SIMULATED else 64  # numbers that a thread folds, at most


def reduce(row: ScalarFunction) -> Callable:
    """The kernel that folds `k` > 0 numbers of `a` with ``row(a, b)`` into each number of `out`.

    Layout: ``(kept_shape, kept_strides, folded_shape, folded_strides, offset)``. Without one, each `k`
    neighbours in `a` are folded.
    """

    @cache
    def compiled(dtype: np.dtype) -> Any:
        f = scalar_function(row, dtype)
        number = _total_type(dtype)

        @kernel
        def fold(a, out, kept, kept_strides, folded, folded_strides, offset, size, k, length, width):
            totals = cuda.shared.array(THREADS, number)
            thread = cuda.threadIdx.x
            rows = THREADS // width
            row, column = thread // width, thread % width
            groups = (size + width - 1) // width
            part, group = cuda.blockIdx.x // groups, cuda.blockIdx.x % groups
            i = group * width + column
            first, end = part * length, min(part * length + length, k)
            filled = min(rows, end - first)  # rows of threads that have something to fold

            if i < size and row < filled:
                start = offset + position(i, kept, kept_strides)
                total = number(a[start + position(first + row, folded, folded_strides)])
                j = first + row + rows
                while j + 3 * rows < end:  # four at a time, to wait for memory only once
                    x0 = number(a[start + position(j, folded, folded_strides)])
                    x1 = number(a[start + position(j + rows, folded, folded_strides)])
                    x2 = number(a[start + position(j + 2 * rows, folded, folded_strides)])
                    x3 = number(a[start + position(j + 3 * rows, folded, folded_strides)])
                    total = f(total, f(f(x0, x1), f(x2, x3)))
                    j += 4 * rows
                while j < end:
                    total = f(total, number(a[start + position(j, folded, folded_strides)]))
                    j += rows
                totals[thread] = total
            cuda.syncthreads()

            half = rows // 2
            while half > 0 and half * width >= WARP:
                if row < half and row + half < filled:
                    totals[thread] = f(totals[thread], totals[thread + half * width])
                cuda.syncthreads()
                half //= 2
            if thread < max(width, WARP):
                total = totals[thread]
                # The threads of a warp need no shared memory: they can look at each other's variables.
                while half > 0:
                    other = cuda.shfl_down_sync(ALL_LANES, total, half * width)
                    if row + half < filled:
                        total = f(total, other)
                    half //= 2
                if thread < width and i < size:
                    out[part * size + i] = total

        return fold

    def run(a: Array, out: Array, k: int, layout: tuple | None = None) -> None:
        *views, offset = layout or ((out.size,), (k,), (k,), (1,), 0)
        plan, width = _fold_plan(*views, k)
        length = THREADS // width * SHARE
        parts = -(-k // length)
        target = out if parts == 1 else Array(parts * out.size, out.dtype)
        blocks = parts * -(-out.size // width)
        sizes = (out.size, k, length, width)
        launch(compiled(out.dtype), blocks, THREADS, a.buffer, target.buffer, *plan, offset, *sizes)
        if parts > 1:
            run(target, out, parts, ((out.size,), (1,), (parts,), (out.size,), 0))

    return run


# Matrix products. A number of `out` needs a row of `a` and a column of `b`, and so do its neighbours. So a
# block computes a tile of `out`: step by step it loads a piece of these rows and columns into shared memory,
# and all its threads use it.


@cache
def _product_of_tiles(dtype: np.dtype) -> Any:
    number = _total_type(dtype)

    @kernel
    def product(a, b, out, n, p):
        """One tile of `out` per block, one number of it per thread; the matrices are stored tile by tile."""
        a_tile = cuda.shared.array((TILE, TILE), number)
        b_tile = cuda.shared.array((TILE, TILE), number)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        within = y * TILE + x
        tiles, across = n // TILE, p // TILE
        row, column = cuda.blockIdx.x // across, cuda.blockIdx.x % across
        total = number(0)
        for i in range(tiles):
            a_tile[y, x] = a[(row * tiles + i) * TILE * TILE + within]
            b_tile[y, x] = b[(i * across + column) * TILE * TILE + within]
            cuda.syncthreads()  # now both tiles are complete
            for k in range(TILE):
                total += a_tile[y, k] * b_tile[k, x]
            cuda.syncthreads()  # no thread needs the tiles any more
        out[(row * across + column) * TILE * TILE + within] = total

    return product


def matmul_tiled(a: Array, b: Array, out: Array, m: int, n: int, p: int) -> None:
    """The matrix product of matrices that are stored tile by tile: shape (rows/t, columns/t, t, t)."""
    blocks = (m // TILE) * (p // TILE)
    launch(_product_of_tiles(out.dtype), blocks, (TILE, TILE), a.buffer, b.buffer, out.buffer, n, p)


DEPTH = 3 if SIMULATED else 16  # columns of `a` and rows of `b` that are in shared memory at a time


@cache
def _product(dtype: np.dtype, each: int) -> Any:
    """The kernel in which a thread computes `each` times `each` numbers.

    It keeps their totals in registers, and uses each number that it reads from shared memory `each` times.
    Otherwise most of the time would go into reading, not multiplying.
    """
    number = _total_type(dtype)
    side = TILE * each
    pitch = side + 1  # a place more than it needs, as in `copy_tiles`

    @device_function
    def load(tile, matrix, start, across, along, width, depth):
        """Load `width` rows of `depth` numbers into the columns of a tile, and zeros beyond them."""
        for i in range(cuda.threadIdx.y * TILE + cuda.threadIdx.x, DEPTH * side, TILE * TILE):
            if along == 1:  # neighbouring threads read neighbouring places, whichever way these go
                k, line = i % DEPTH, i // DEPTH
            else:
                k, line = i // side, i % side
            if line < width and k < depth:
                tile[k, line] = matrix[start + line * across + k * along]
            else:
                tile[k, line] = 0

    @kernel
    def product(a, b, out, m, n, p, batch, a_batch, b_batch, a_strides, b_strides, a_offset, b_offset):
        a_tile = cuda.shared.array((DEPTH, pitch), number)
        b_tile = cuda.shared.array((DEPTH, pitch), number)
        totals = cuda.local.array((each, each), number)
        a_column = cuda.local.array(each, number)
        b_row = cuda.local.array(each, number)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        matrix, top, left = corner(cuda.blockIdx.x, m, p, side)
        a_start = a_offset + position(matrix, batch, a_batch) + top * a_strides[0]
        b_start = b_offset + position(matrix, batch, b_batch) + left * b_strides[1]
        for i in range(each):
            for j in range(each):
                totals[i, j] = 0
        for k in range(0, n, DEPTH):
            load(a_tile, a, a_start + k * a_strides[1], a_strides[0], a_strides[1], m - top, n - k)
            load(b_tile, b, b_start + k * b_strides[0], b_strides[1], b_strides[0], p - left, n - k)
            cuda.syncthreads()
            for depth in range(DEPTH):
                for i in range(each):
                    a_column[i] = a_tile[depth, y + TILE * i]
                    b_row[i] = b_tile[depth, x + TILE * i]
                for i in range(each):
                    for j in range(each):
                        totals[i, j] += a_column[i] * b_row[j]
            cuda.syncthreads()
        for i in range(each):
            for j in range(each):
                row, column = top + y + TILE * i, left + x + TILE * j
                if row < m and column < p:
                    out[(matrix * m + row) * p + column] = totals[i, j]

    return product


EACH = (2, 1) if SIMULATED else (8, 4, 2)
ENOUGH = 4 if SIMULATED else 128  # blocks for all processors of a card


def matmul(a: Array, b: Array, out: Array, m: int, n: int, p: int, layout: tuple | None = None) -> None:
    """Matrix products: (m, n) times (n, p).

    Layout: ``(batch_shape, a_strides, a_offset, b_strides, b_offset)``, where the strides are those of the
    batch axes, then of rows and columns. Without one there is a single product.
    """
    batch, a_strides, a_offset, b_strides, b_offset = layout or ((), (n, 1), 0, (p, 1), 0)
    for each in EACH:  # large tiles read memory least often, as long as there are enough of them
        side = TILE * each
        blocks = math.prod(batch) * -(-m // side) * -(-p // side)
        if blocks >= ENOUGH:
            break
    plan = merged_axes(batch, a_strides[:-2], b_strides[:-2])
    rest = (*plan, a_strides[-2:], b_strides[-2:], a_offset, b_offset)
    launch(_product(out.dtype, each), blocks, (TILE, TILE), a.buffer, b.buffer, out.buffer, m, n, p, *rest)


def try_out() -> None:
    """Run a first kernel and wait for it; an exception says what prevents it."""
    array = Array(1)
    fill(array, 1)
    if to_numpy(array, (1,), (1,), 0) != 1:
        raise RuntimeError("a kernel was launched, but did not run")


# Plans: what the host works out from shapes and strides, once


def _number(value: float, dtype: np.dtype) -> Any:
    """A Python number in an array's data type, as kernels take it."""
    with np.errstate(all="ignore"):
        number = np.full((), value, dtype)[()]
    return bool(number) if dtype == np.bool_ else number


def _total_type(dtype: np.dtype) -> type:
    """The type of totals: int64 for whole numbers, the same type for floats, as float64 is slow."""
    return dtype.type if dtype.kind == "f" else np.int64


@lru_cache(maxsize=4096)
def _copy_plan(shape: Shape, a_strides: Shape, out_strides: Shape) -> tuple:
    """How to copy between two views: axes outside of tiles, the two axes of tiles or None, and how many."""
    size = math.prod(shape)
    in_order = sorted(_zip(shape, a_strides, out_strides, strict=True), key=lambda axis: -abs(axis[2]))
    axes = list(_zip(*merged_axes(*_zip(*in_order, strict=True)), strict=True)) if shape else []
    last = len(axes) - 1
    dense = min(range(len(axes)), key=lambda i: abs(axes[i][1]) or math.inf, default=0)
    if dense >= last or abs(axes[last][1]) <= 1 or min(axes[dense][0], axes[last][0]) < COPY_TILE:
        return merged_axes(*_zip(*axes, strict=True)) if axes else ((1,), (1,), (1,)), None, size
    outer = [axis for i, axis in enumerate(axes) if i not in (dense, last)] or [(1, 1, 1)]
    return tuple(_zip(*outer, strict=True)), tuple(_zip(axes[dense], axes[last], strict=True)), size


@lru_cache(maxsize=4096)
def _fold_plan(kept: Shape, kept_strides: Shape, folded: Shape, folded_strides: Shape, k: int) -> tuple:
    """The axes to keep and to fold, and how many columns a block of threads has."""
    by_stride = sorted(_zip(folded, folded_strides, strict=True), key=lambda axis: -abs(axis[1]))
    kept, kept_strides = merged_axes(kept, kept_strides)
    folded, folded_strides = merged_axes(*_zip(*by_stride, strict=True)) if folded else ((1,), (1,))
    rows = min(THREADS, _power_of_two(-(-k // 8)))
    if abs(kept_strides[-1]) < abs(folded_strides[-1]):
        # Neighbours in memory go to different numbers of `out`: so the threads of a warp read neighbours.
        rows = min(rows, THREADS // min(32, THREADS, _power_of_two(kept[-1])))
    return (kept, kept_strides, folded, folded_strides), THREADS // rows


def _power_of_two(n: int) -> int:
    """The smallest power of two that is not less than `n`."""
    return 1 << (n - 1).bit_length()


MAPS = {name: map(row) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 1}
ZIPS = {name: zip(row) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 2}
REDUCES = {name: reduce(SCALAR_FUNCTIONS[name]) for name in REDUCTIONS}
globals().update(kernel_names(MAPS, ZIPS, REDUCES))  # ewise_add, scalar_add, reduce_sum …
