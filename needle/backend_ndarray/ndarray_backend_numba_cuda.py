"""The CUDA backend: kernels in Python that Numba compiles for NVIDIA's GPUs.

A kernel is a function that thousands of threads run at once, each for numbers of its own. Threads start in
blocks, and the blocks form a grid: from ``threadIdx`` and ``blockIdx`` a thread finds out which numbers are
its own. All blocks have the same size, so there may be more threads than numbers. Therefore each kernel has a
guard: a thread without numbers does nothing. The threads of a block share a small, fast memory
(`cuda.shared`), and wait for each other at `cuda.syncthreads()`. They run in warps of 32, whose threads take
each step together and can look at each other's variables.

A GPU is fast as long as many reads of its memory are under way at once. So a thread reads four numbers before
it uses the first one, and neighbouring threads read neighbouring numbers, which the GPU fetches in one go.

Map and zip come first, then copies, parts by index, checks, reductions, rows, an optimiser's step and matrix
products, each with its kernels and the function that launches them. Last come the plans: the host makes them
from shapes and strides alone. `cuda_templates.py` tells how a function becomes a kernel, `launching.py` how a
kernel gets to the GPU, `cublas.py` what multiplies matrices. ``ndarray_backend_numpy.py`` lists what every
backend offers.

With ``NUMBA_ENABLE_CUDASIM=1`` in the environment, Numba's simulator runs the kernels in Python, without a
GPU. It starts a Python thread for each thread of a kernel, so blocks are tiny there.
"""

from __future__ import annotations

import ctypes
import math
import threading
import warnings
from builtins import zip as _zip  # here `zip` is a builder of kernels
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import cublas
from .cuda_templates import (  # noqa: F401  (the compiler asks this module for some of them)
    IDENTITY,
    SIMULATED,
    Template,
    called_by_kernels,
    filled_in,
    gpu,
    is_ours,
    names_for,
    number_type,
    scalar_function,
    sources,
    stored,
)
from .indexing import in_range
from .scalar_functions import REDUCTIONS, SCALAR_FUNCTIONS, ScalarFunction, kernel_names
from .strides import compact_strides, merged_axes
from .views import View, assemble, new_array

__device_name__ = "cuda"

Shape = tuple[int, ...]

THREADS = 4 if SIMULATED else 256  # of a block
PART = 4 * THREADS  # numbers of a block whose threads take four each
WARP = 1 if SIMULATED else 32  # threads of a block that run in step; the simulator has no such thing
WARPS = THREADS // WARP  # of a block
ALL_LANES = 0xFFFFFFFF  # every thread of a warp
MOST_BLOCKS = 65535  # along the second axis of a grid
__tile_size__ = TILE = 2 if SIMULATED else 16  # threads along a side of a square block

launch = gpu.launch


class Array:
    """Flat storage on the GPU for `size` numbers, not yet written.

    Attributes
    ----------
    address : int
        Where the first number is, as kernels take it. (In the simulator: a `Pointer`.)
    """

    __slots__ = ("_memory", "address", "dtype", "size")

    def __init__(self, size: int, dtype: Any = "float32"):
        self.dtype = dtype = np.dtype(dtype)
        self.size = size
        self.address: Any
        self.address, self._memory = gpu.allocate(size, dtype)

    def __reduce__(self):
        return _from_host, (gpu.download(self.address, self.size, self.dtype),)

    def ptr(self) -> int:
        """Address of the first number: two arrays share memory when their storage's addresses are equal."""
        return self.address.values.ctypes.data if SIMULATED else self.address

    def at(self, offset: int) -> Any:
        """The address of number `offset`."""
        return gpu.at(self.address, offset, self.dtype) if offset else self.address

    def part(self, first: int, size: int) -> Array:
        """So many of its numbers, from number `first` on, as storage of their own."""
        part = object.__new__(Array)
        part.dtype, part.size, part.address, part._memory = self.dtype, size, self.at(first), self._memory
        return part

    def whole(self) -> Any:
        """What a kernel takes that needs one of Numba's arrays."""
        return gpu.whole(self.address, self.size, self.dtype)


def _from_host(values: np.ndarray) -> Array:
    array = Array(values.size, values.dtype)
    from_numpy(values, array)
    return array


# What a `Template` fills in:
f: Any = None  # the scalar function of a row of the table
dtype: Any = None  # makes a number of the data type of the result
origin: Any = None  # the type of numbers that a kernel reads, if it is another one
wide: Any = None  # makes a number of the type of totals: int64 for whole numbers, else the same type
neutral: Any = None  # what a total begins with: f(neutral, x) is x
lowest: Any = None  # the least finite number
exp: Any = None  # as the table has them
log: Any = None
cuda: Any = None  # numba.cuda, which is imported only if something has to be compiled


def position(index, shape, strides):
    """How far element number `index`, in row-major order, lies from the first element of a view."""
    place = 0
    for axis in range(len(shape) - 1, 0, -1):
        before = index // shape[axis]
        place += (index - before * shape[axis]) * strides[axis]
        index = before
    return place + index * strides[0]


def row_start(row, shape, strides):
    """How far the first element of row number `row` lies from that of a view; a row is the last axis."""
    place = 0
    for axis in range(len(shape) - 2, 0, -1):
        before = row // shape[axis]
        place += (row - before * shape[axis]) * strides[axis]
        row = before
    return place + row * strides[0]  # of a single axis there is only row 0


# Map and zip, over numbers that lie side by side. A block takes PART of them, each of its threads four that
# are a block's width apart.


def spread(size: int) -> int:
    """How many blocks take `size` numbers."""
    return -(-size // PART)


def map_aligned(a, out, n):
    """out = f(a)"""
    i = cuda.blockIdx.x * PART + cuda.threadIdx.x
    if i + 3 * THREADS < n:
        x0, x1, x2, x3 = a[i], a[i + THREADS], a[i + 2 * THREADS], a[i + 3 * THREADS]
        out[i] = dtype(f(x0))
        out[i + THREADS] = dtype(f(x1))
        out[i + 2 * THREADS] = dtype(f(x2))
        out[i + 3 * THREADS] = dtype(f(x3))
    else:
        for j in range(i, min(i + PART, n), THREADS):
            out[j] = dtype(f(a[j]))


def zip_aligned(a, b, out, n):
    """out = f(a, b); either operand may be a number"""
    i = cuda.blockIdx.x * PART + cuda.threadIdx.x
    if i + 3 * THREADS < n:
        x0, x1 = left(a, i), left(a, i + THREADS)
        x2, x3 = left(a, i + 2 * THREADS), left(a, i + 3 * THREADS)
        y0, y1 = right(b, i), right(b, i + THREADS)
        y2, y3 = right(b, i + 2 * THREADS), right(b, i + 3 * THREADS)
        out[i] = dtype(f(x0, y0))
        out[i + THREADS] = dtype(f(x1, y1))
        out[i + 2 * THREADS] = dtype(f(x2, y2))
        out[i + 3 * THREADS] = dtype(f(x3, y3))
    else:
        for j in range(i, min(i + PART, n), THREADS):
            out[j] = dtype(f(left(a, j), right(b, j)))


def item(array, i):
    """Number `i` of an array."""
    return array[i]


def same(number, i):
    """A number that is an operand itself."""
    return number


left = right = item  # how `zip_aligned` reads its operands


def fill_aligned(out, number, n):
    """out = number"""
    i = cuda.blockIdx.x * PART + cuda.threadIdx.x
    for j in range(i, min(i + PART, n), THREADS):
        out[j] = number


# The same with strides. The last axis lies along the blocks, and rows of it one below the other: a thread
# takes one column of four rows. So it works out where a row begins, which takes a division only from the
# third axis on. A stride of 0 repeats a number: broadcasting.


def rows_of(shape: Shape) -> tuple:
    """How a grid covers rows: its blocks, their threads, and the number of rows."""
    length, rows = shape[-1], math.prod(shape[:-1])
    across = min(THREADS, power_of_two(length))
    down = THREADS // across
    return (-(-length // across), min(-(-rows // (4 * down)), MOST_BLOCKS)), (across, down), rows


def map_strided(a, out, shape, a_strides, out_strides, rows):
    """out = f(a)"""
    last, step = len(shape) - 1, cuda.blockDim.y
    j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    a_column, out_column = j * a_strides[last], j * out_strides[last]
    if j < shape[last]:
        for row in range(cuda.blockIdx.y * 4 * step + cuda.threadIdx.y, rows, cuda.gridDim.y * 4 * step):
            if row + 3 * step < rows:
                x0 = a[row_start(row, shape, a_strides) + a_column]
                x1 = a[row_start(row + step, shape, a_strides) + a_column]
                x2 = a[row_start(row + 2 * step, shape, a_strides) + a_column]
                x3 = a[row_start(row + 3 * step, shape, a_strides) + a_column]
                out[row_start(row, shape, out_strides) + out_column] = dtype(f(x0))
                out[row_start(row + step, shape, out_strides) + out_column] = dtype(f(x1))
                out[row_start(row + 2 * step, shape, out_strides) + out_column] = dtype(f(x2))
                out[row_start(row + 3 * step, shape, out_strides) + out_column] = dtype(f(x3))
            else:
                for r in range(row, rows, step):
                    x = a[row_start(r, shape, a_strides) + a_column]
                    out[row_start(r, shape, out_strides) + out_column] = dtype(f(x))


def zip_strided(a, b, out, shape, a_strides, b_strides, rows):
    """out = f(a, b)"""
    last, step = len(shape) - 1, cuda.blockDim.y
    n = shape[last]
    j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    a_column, b_column = j * a_strides[last], j * b_strides[last]
    if j < n:
        for row in range(cuda.blockIdx.y * 4 * step + cuda.threadIdx.y, rows, cuda.gridDim.y * 4 * step):
            if row + 3 * step < rows:
                x0 = a[row_start(row, shape, a_strides) + a_column]
                x1 = a[row_start(row + step, shape, a_strides) + a_column]
                x2 = a[row_start(row + 2 * step, shape, a_strides) + a_column]
                x3 = a[row_start(row + 3 * step, shape, a_strides) + a_column]
                y0 = b[row_start(row, shape, b_strides) + b_column]
                y1 = b[row_start(row + step, shape, b_strides) + b_column]
                y2 = b[row_start(row + 2 * step, shape, b_strides) + b_column]
                y3 = b[row_start(row + 3 * step, shape, b_strides) + b_column]
                out[row * n + j] = dtype(f(x0, y0))
                out[(row + step) * n + j] = dtype(f(x1, y1))
                out[(row + 2 * step) * n + j] = dtype(f(x2, y2))
                out[(row + 3 * step) * n + j] = dtype(f(x3, y3))
            else:
                for r in range(row, rows, step):
                    x, y = (
                        a[row_start(r, shape, a_strides) + a_column],
                        b[row_start(r, shape, b_strides) + b_column],
                    )
                    out[r * n + j] = dtype(f(x, y))


def fill_strided(out, number, shape, strides, rows):
    """out = number"""
    last, step = len(shape) - 1, cuda.blockDim.y
    j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if j < shape[last]:
        for row in range(cuda.blockIdx.y * 4 * step + cuda.threadIdx.y, rows, cuda.gridDim.y * 4 * step):
            for r in range(row, min(row + 4 * step, rows), step):
                out[row_start(r, shape, strides) + j * strides[last]] = number


def map(row: ScalarFunction) -> Callable:
    """The kernel ``out = row(a)``; layout: ``(shape, strides, offset)``."""
    aligned = Template(map_aligned, "sai", row)
    strided = Template(map_strided, "sapppi", row)

    def run(a: Array, out: Array, layout: tuple | None = None) -> None:
        n = out.size
        if layout is None:
            launch(aligned[out.dtype], spread(n), THREADS, a.address, out.address, n)
        else:
            shape, strides, offset = layout
            plan = merged_axes(shape, strides, compact_strides(shape))
            blocks, threads, rows = rows_of(plan[0])
            kernel = strided.version(out.dtype, (len(plan[0]),))
            launch(kernel, blocks, threads, a.at(offset), out.address, *plan, rows)

    return run


def zip(row: ScalarFunction) -> Callable:
    """The kernel ``out = row(a, b)``; layout: ``(shape, a_strides, a_offset, b_strides, b_offset)``.

    Without a layout either operand may be a Python number.
    """
    aligned = Template(zip_aligned, "aaai", row)
    number_last = Template(zip_aligned, "axai", row, right=same)
    number_first = Template(zip_aligned, "xaai", row, left=same)
    strided = Template(zip_strided, "aaapppi", row)

    def run(a: Any, b: Any, out: Array, layout: tuple | None = None) -> None:
        n, dtype = out.size, out.dtype
        if layout is not None:
            shape, a_strides, a_offset, b_strides, b_offset = layout
            plan = merged_axes(shape, a_strides, b_strides)
            blocks, threads, rows = rows_of(plan[0])
            kernel = strided.version(dtype, (len(plan[0]),))
            launch(kernel, blocks, threads, a.at(a_offset), b.at(b_offset), out.address, *plan, rows)
        elif not isinstance(b, Array):
            launch(number_last[dtype], spread(n), THREADS, a.address, _number(b, dtype), out.address, n)
        elif not isinstance(a, Array):
            launch(number_first[dtype], spread(n), THREADS, _number(a, dtype), b.address, out.address, n)
        else:
            launch(aligned[dtype], spread(n), THREADS, a.address, b.address, out.address, n)

    return run


# Copies, on the GPU and between the GPU and the host. A copy is a map that changes nothing but, perhaps, the
# data type.

_copy_aligned = Template(map_aligned, "sai", IDENTITY)
_copy_strided = Template(map_strided, "sapppi", IDENTITY)
_fill_aligned = Template(fill_aligned, "axi")
_fill_strided = Template(fill_strided, "axppi")

COPY_TILE = 2 if SIMULATED else 32
COPY_ROWS = 1 if SIMULATED else 8  # of threads
COPY_PITCH = COPY_TILE + 1


def copy_tiles(a, out, outer, a_outer, out_outer, shape, a_strides, out_strides):
    """out = a, for matrices that are dense along columns in `a` and along rows in `out`.

    A copy number by number would either read or write places that lie far apart. So a block reads a tile
    column by column into shared memory, and writes it row by row. A row of the tile has one place more than
    it needs: then neighbours in a column lie in different banks of the memory, and can be read at once.
    """
    tile = cuda.shared.array((COPY_TILE, COPY_PITCH), origin)
    height, width = shape
    matrix, top, left = corner(cuda.blockIdx.x, height, width, COPY_TILE, COPY_TILE)
    a_start = position(matrix, outer, a_outer)
    out_start = position(matrix, outer, out_outer)
    x = cuda.threadIdx.x
    for y in range(cuda.threadIdx.y, COPY_TILE, COPY_ROWS):
        row, column = top + x, left + y
        if row < height and column < width:
            tile[x, y] = a[a_start + row * a_strides[0] + column * a_strides[1]]
    cuda.syncthreads()
    for y in range(cuda.threadIdx.y, COPY_TILE, COPY_ROWS):
        row, column = top + y, left + x
        if row < height and column < width:
            out[out_start + row * out_strides[0] + column * out_strides[1]] = dtype(tile[y, x])


def corner(block, height, width, tall, broad):
    """The matrix that a block works on, and the first row and column of its tile, `tall` times `broad`.

    The tiles of all matrices are numbered, because a grid's second and third length cannot exceed 65535.
    """
    across, down = (width + broad - 1) // broad, (height + tall - 1) // tall
    row_of_tiles = block // across
    return row_of_tiles // down, row_of_tiles % down * tall, block % across * broad


_copy_tiles = Template(copy_tiles, "sapppddd")


def copy(a: Array, out: Array, shape: Shape, a_strides: Shape, a_offset: int, strides: Shape, offset: int):
    """Copy a view of `a` into a view of `out`, on the GPU. Their data types may differ."""
    outer, inner, size = _copy_plan(shape, a_strides, strides)
    source, target, kinds = a.at(a_offset), out.at(offset), (out.dtype, (len(outer[0]),), a.dtype)
    if inner is not None:
        (height, width), *_ = inner
        tiles = size // (height * width) * -(-height // COPY_TILE) * -(-width // COPY_TILE)
        kernel = _copy_tiles.version(*kinds)
        launch(kernel, tiles, (COPY_TILE, COPY_ROWS), source, target, *outer, *inner)
    elif outer[1:] == ((1,), (1,)):
        launch(_copy_aligned.version(*kinds), spread(size), THREADS, source, target, size)
    else:
        blocks, threads, rows = rows_of(outer[0])
        launch(_copy_strided.version(*kinds), blocks, threads, source, target, *outer, rows)


def from_numpy(a: np.ndarray, out: Array) -> None:
    """Copy a NumPy array, in row-major order, into `out`."""
    if out.size:
        with np.errstate(all="ignore"):
            values = np.ascontiguousarray(a.reshape(-1).astype(out.dtype, copy=False))
        gpu.upload(values, out.address)


def to_numpy(a: Array, shape: Shape, strides: Shape, offset: int) -> np.ndarray:
    """A NumPy array with a copy of a view's numbers; it waits until all earlier work is done."""
    size = math.prod(shape)
    if strides != compact_strides(shape):
        gathered = Array(size, a.dtype)
        compact(a, gathered, shape, strides, offset)
        a, offset = gathered, 0
    values = gpu.download(a.at(offset), size, a.dtype).reshape(shape)
    checks.look()
    return values


def fill(out: Array, value: float) -> None:
    """Write `value` everywhere."""
    launch(
        _fill_aligned[out.dtype], spread(out.size), THREADS, out.address, _number(value, out.dtype), out.size
    )


def compact(a: Array, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write a view's numbers in row-major order into `out`, which may have another data type."""
    copy(a, out, shape, strides, offset, compact_strides(shape), 0)


def ewise_setitem(a: Array, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write compact `a` into the view of `out`."""
    copy(a, out, shape, compact_strides(shape), 0, strides, offset)


def scalar_setitem(size: int, value: float, out: Array, shape: Shape, strides: Shape, offset: int) -> None:
    """Write `value` everywhere in the view of `out`."""
    shape, strides = merged_axes(shape, strides)
    blocks, threads, rows = rows_of(shape)
    kernel = _fill_strided.version(out.dtype, (len(shape),))
    launch(kernel, blocks, threads, out.at(offset), _number(value, out.dtype), shape, strides, rows)


# Parts that an index names. If several of its numbers are the same, several threads add to one place. They
# add atomically: no addition interrupts another. Their order is left to chance, and so is the last digit of a
# sum of floats.


def gather_numbers(a, out, index, size, count, n, inner):
    """out[o, j, i] = a[o, index[j], i]"""
    place = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
    if place < size:
        row = place // inner
        start = (row // count * n + index[row % count]) * inner
        out[place] = a[start + place % inner]


def add_numbers(a, out, index, size, count, n, inner):
    """out[o, index[j], i] += a[o, j, i]"""
    place = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
    if place < size:
        row = place // inner
        start = (row // count * n + index[row % count]) * inner
        cuda.atomic.add(out, start + place % inner, a[place])


_gather = Template(gather_numbers, "aaniiii")
_scatter_add = Template(add_numbers, "aAniiii")


def gather(a: Array, out: Array, index: Array, n: int, inner: int) -> None:
    """``out[o, j, i] = a[o, index[j], i]``; ``n = a.shape[1]``, `inner` is the length of the last axis."""
    sizes = (out.size, index.size, n, inner)
    launch(
        _gather[out.dtype], -(-out.size // THREADS), THREADS, a.address, out.address, index.address, *sizes
    )


def scatter_add(a: Array, out: Array, index: Array, n: int, inner: int) -> None:
    """``out[o, index[j], i] += a[o, j, i]``; ``n = out.shape[1]``, `inner` is the length of the last axis."""
    sizes = (a.size, index.size, n, inner)
    kernel = _scatter_add[out.dtype]
    launch(kernel, -(-a.size // THREADS), THREADS, a.address, out.whole(), index.address, *sizes)


# Checks of numbers on the GPU, such as labels that may name no class. To ask at once, the host would have to
# wait for the GPU in each step of a training. So a kernel leaves a mark if something is wrong, and the host
# looks at it when it waits for numbers anyway.


class Checks:
    """The checks whose outcome the host has not seen yet.

    Attributes
    ----------
    at_once : bool
        Whether the host waits for each check. Then an error is raised where it was made, which helps to find
        it; otherwise it is raised when numbers are next copied to the host.
    """

    MOST = 256  # checks that wait, with the numbers that they are about

    def __init__(self) -> None:
        self.at_once = False
        self._waiting: list[Callable[[], Any]] = []
        self._mark: Array | None = None
        self._lock = threading.RLock()

    def mark(self) -> Array:
        """A number that a kernel sets to 1 if something is wrong."""
        with self._lock:
            if self._mark is None:
                self._mark = Array(1, "int64")
                fill(self._mark, 0)
            return self._mark

    def add(self, again: Callable[[], Any]) -> None:
        """Note a check that was launched. `again` repeats it on the host, and raises the error."""
        with self._lock:
            self._waiting.append(again)
        if self.at_once or len(self._waiting) >= self.MOST:
            self.look()

    def look(self) -> None:
        """Raise the error of the first check that failed. The host waits for the GPU if there are any."""
        if not self._waiting:
            return
        with self._lock:
            waiting, self._waiting = self._waiting, []
            mark = self.mark()
            if not gpu.download(mark.address, 1, mark.dtype)[0]:
                return
            fill(mark, 0)
        for again in waiting:
            again()
        raise IndexError("cuda(): an index led beyond its axis; its numbers have been overwritten since")


checks = Checks()


def synchronize() -> None:
    """Wait until the GPU has done all that it was asked for; raise the error of a check that failed."""
    gpu.synchronize()
    checks.look()


def mark_outside(index, out, mark, size, length, from_end):
    """out = index, counted from 0 on; marks numbers that are not in ``0 .. length - 1``"""
    place = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
    if place < size:
        i = np.int64(index[place])
        outside = origin(i) != index[place]  # it is not whole
        if from_end and i < 0:
            i += length
        if i < 0 or i >= length or outside:
            mark[0] = 1
            i = np.int64(0)  # so that no kernel reads or writes elsewhere
        out[place] = i


def mark_zero(a, mark, size):
    """Marks that a number is 0."""
    place = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
    if place < size and a[place] == 0:
        mark[0] = 1


def one_hot_rows(labels, out, size, n):
    """out[i, j] = 1 if labels[i] is j, else 0"""
    place = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
    if place < size:
        out[place] = dtype(labels[place // n] == place % n)


_mark_outside = Template(mark_outside, "snniii")
_mark_zero = Template(mark_zero, "ani")
_one_hot = Template(one_hot_rows, "naii")


def checked_index(index: Any, length: int, refusal: Callable, from_end: bool) -> Any:
    """See `kernel_calls.checked_index`: the error comes later, and until then a wrong number is 0."""
    return _checked(index, length, from_end, lambda: in_range(index.numpy(), length, refusal, from_end))


def _checked(index: Any, length: int, from_end: bool, again: Callable[[], Any]) -> Any:
    given, out, mark = index.compact()._handle, Array(index.size, "int64"), checks.mark()
    kernel = _mark_outside.version(out.dtype, source=given.dtype)
    sizes = (index.size, length, int(from_end))
    launch(kernel, -(-index.size // THREADS), THREADS, given.address, out.address, mark.address, *sizes)
    checks.add(again)
    return assemble(new_array(type(index)), out, index.device, index.shape, compact_strides(index.shape))


def one_hot(labels: Any, n: int, dtype: Any) -> Any:
    """See `kernel_calls.one_hot`."""
    index = _checked(labels, n, False, lambda: labels.device.one_hot(n, labels.numpy(), dtype))
    shape = (*labels.shape, n)
    out = Array(math.prod(shape), dtype)
    blocks = -(-out.size // THREADS)
    launch(_one_hot[out.dtype], blocks, THREADS, index._handle.address, out.address, out.size, n)
    return assemble(new_array(type(labels)), out, labels.device, shape, compact_strides(shape))


def checked_not_zero(a: Any, refusal: str) -> Any:
    """See `kernel_calls.checked_not_zero`."""

    def again() -> None:
        if not a.numpy().all():
            raise ValueError(refusal)

    given, mark = a.compact()._handle, checks.mark()
    launch(_mark_zero[a.dtype], -(-a.size // THREADS), THREADS, given.address, mark.address, a.size)
    checks.add(again)
    return a


# Reductions: many numbers become one. A thread keeps four totals, so that four reads are under way at once,
# and adds them up at the end. So no total is a sum of many numbers one after the other, and float32 totals
# stay accurate. If there are too few results to keep the GPU busy, the numbers of each are divided into
# parts, and the results of the parts are folded in turn.
#
# Where the numbers of one result are neighbours, a warp or a block takes them (`fold_along`). Where
# neighbours belong to different results, each thread walks down a column (`fold_across`). Either way the
# threads of a warp read neighbours.

ENOUGH_THREADS = 8 if SIMULATED else 2048  # for each processor of a GPU
LEAST = 2 if SIMULATED else 16  # numbers that a thread folds before there are several parts


def own_total(a, start, j, end, step, folded, folded_strides):
    """The total of a thread: of number `j`, and of every `step`-th number from there on."""
    t0 = t1 = t2 = t3 = neutral
    while j + 3 * step < end:
        x0 = a[start + position(j, folded, folded_strides)]
        x1 = a[start + position(j + step, folded, folded_strides)]
        x2 = a[start + position(j + 2 * step, folded, folded_strides)]
        x3 = a[start + position(j + 3 * step, folded, folded_strides)]
        t0, t1, t2, t3 = wide(f(t0, x0)), wide(f(t1, x1)), wide(f(t2, x2)), wide(f(t3, x3))
        j += 4 * step
    while j < end:
        t0 = wide(f(t0, a[start + position(j, folded, folded_strides)]))
        j += step
    return wide(f(wide(f(t0, t1)), wide(f(t2, t3))))


def warp_total(fold, total, lanes):
    """What so many neighbouring threads of a warp have, folded into one number; each of them gets it."""
    distance = lanes // 2
    while distance > 0:
        # They need no shared memory: the threads of a warp can look at each other's variables.
        total = fold(total, cuda.shfl_xor_sync(ALL_LANES, wide(total), distance))
        distance //= 2
    return total


def block_total(fold, totals, total, lane):
    """What all threads of a block have, folded into one number: each warp by itself, then one of each."""
    total = warp_total(fold, total, WARP)
    cuda.syncthreads()  # nobody needs the totals from before any more
    if lane % WARP == 0:
        totals[lane // WARP] = total
    cuda.syncthreads()
    total = totals[0]
    for warp in range(1, WARPS):
        total = fold(total, totals[warp])
    return total


def columns_total(fold, totals, total, thread, lanes, width):
    """What so many threads of each of `width` columns have, folded into one number, in shared memory."""
    cuda.syncthreads()
    totals[thread] = total
    half = lanes // 2
    while half > 0:  # the lower half of the rows is folded into the upper half, until one row is left
        cuda.syncthreads()
        if thread < half * width:
            totals[thread] = fold(totals[thread], totals[thread + half * width])
        half //= 2
    cuda.syncthreads()
    return totals[thread % width]


def fold_along(a, out, kept, kept_strides, folded, folded_strides, size, k, length):
    """Fold `k` numbers into each of `size`: a row of threads for each, or for each of its parts."""
    lane, lanes = cuda.threadIdx.x, cuda.blockDim.x
    i = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    total = neutral
    if i < size:
        start, first = position(i, kept, kept_strides), cuda.blockIdx.y * length
        total = own_total(a, start, first + lane, min(first + length, k), lanes, folded, folded_strides)
    if lanes > WARP:
        totals = cuda.shared.array(WARPS, wide)
        total = block_total(f, totals, total, lane)
    else:
        total = warp_total(f, total, lanes)
    if lane == 0 and i < size:
        out[i * cuda.gridDim.y + cuda.blockIdx.y] = dtype(total)


def fold_across(a, out, kept, kept_strides, folded, folded_strides, size, k, length):
    """Fold `k` numbers into each of `size`: a column of threads for each, or for each of its parts."""
    totals = cuda.shared.array(THREADS, wide)
    columns, rows = cuda.blockDim.x, cuda.blockDim.y
    i = cuda.blockIdx.x * columns + cuda.threadIdx.x
    total = neutral
    if i < size:
        start, first = position(i, kept, kept_strides), cuda.blockIdx.y * length
        end = min(first + length, k)
        total = own_total(a, start, first + cuda.threadIdx.y, end, rows, folded, folded_strides)
    thread = cuda.threadIdx.y * columns + cuda.threadIdx.x
    total = columns_total(f, totals, total, thread, rows, columns)
    if cuda.threadIdx.y == 0 and i < size:
        out[cuda.blockIdx.y * size + i] = dtype(total)


def reduce(row: ScalarFunction) -> Callable:
    """The kernel that folds `k` > 0 numbers of `a` with ``row(a, b)`` into each number of `out`.

    Layout: ``(kept_shape, kept_strides, folded_shape, folded_strides, offset)``. Without one, each `k`
    neighbours in `a` are folded.
    """
    along, across = Template(fold_along, "aappqqiii", row), Template(fold_across, "aappqqiii", row)

    def run(a: Array, out: Array, k: int, layout: tuple | None = None) -> None:
        size = out.size
        *views, offset = layout or ((size,), (k,), (k,), (1,), 0)
        plan, is_along, blocks, threads, length = _fold_plan(*views, k, gpu.gpu().processors)
        parts = blocks[1]
        target = out if parts == 1 else Array(parts * size, out.dtype)
        kernel = (along if is_along else across).version(out.dtype, (len(plan[0]), len(plan[2])))
        launch(kernel, blocks, threads, a.at(offset), target.address, *plan, size, k, length)
        if parts > 1:
            steps = (parts, 1) if is_along else (1, size)
            run(target, out, parts, ((size,), steps[:1], (parts,), steps[1:], 0))

    return run


# Rows, for softmax and its relatives and for layer normalization. A warp takes a row, or a block if the row
# is long. Its numbers stay in the threads' registers: they are read once, and the result is written once.

HELD = 0  # numbers of a row that a thread holds; filled in
LANES = 0  # threads that share a row: those of a warp or of a block; filled in
MOST_HELD = 4 if SIMULATED else 32


def row_total(fold, total):
    """What all threads of a row have, folded into one number; each of them gets it."""
    if LANES > WARP:
        return block_total(fold, cuda.shared.array(WARPS, wide), total, cuda.threadIdx.x)
    return warp_total(fold, total, WARP)


def plus(x, y):
    """The sum of two numbers."""
    return x + y


def larger(x, y):
    """The larger of two numbers, or NaN."""
    return x if x > y or x != x else y


LOGARITHM = 0  # 1 for the logarithm of softmax; filled in


def softmax_rows(a, out, rows, n):
    """out = softmax(a), row by row, or its logarithm"""
    x = cuda.local.array(HELD, wide)
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    start = row * n + cuda.threadIdx.x
    left = n - cuda.threadIdx.x if row < rows else 0  # how far the row goes on from here
    top = lowest
    for s in range(HELD):
        x[s] = a[start + s * LANES] if s * LANES < left else wide(-math.inf)
        top = larger(top, x[s])
    top = row_total(larger, top)
    total = wide(0)
    for s in range(HELD):
        power = exp(x[s] - top)
        total += power
        x[s] = x[s] - top if LOGARITHM else power
    total = row_total(plus, total)
    if LOGARITHM:
        total = log(total)
    for s in range(HELD):
        if s * LANES < left:
            out[start + s * LANES] = x[s] - total if LOGARITHM else x[s] / total


AFFINE = 0  # 1 if there are a weight and a bias; filled in


def standardize_rows(a, out, means, variances, weight, bias, scaled, rows, n, eps):
    """out = (a - mean) / sqrt(variance + eps), row by row; scaled = out * weight + bias"""
    x = cuda.local.array(HELD, wide)
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    start = row * n + cuda.threadIdx.x
    left = n - cuda.threadIdx.x if row < rows else 0
    total = wide(0)
    for s in range(HELD):
        x[s] = a[start + s * LANES] if s * LANES < left else wide(0)
        total += x[s]
    mean = row_total(plus, total) / wide(n)
    total = wide(0)
    for s in range(HELD):
        x[s] -= mean
        if s * LANES < left:
            total += x[s] * x[s]
    variance = row_total(plus, total) / wide(n)
    deviation = math.sqrt(variance + eps)
    for s in range(HELD):
        if s * LANES < left:
            y = x[s] / deviation
            out[start + s * LANES] = y
            if AFFINE:
                j = s * LANES + cuda.threadIdx.x
                scaled[start + s * LANES] = y * weight[j] + bias[j]
    if cuda.threadIdx.x == 0 and row < rows:
        means[row], variances[row] = mean, variance


_softmax = Template(softmax_rows, "aaii")
_standardize = Template(standardize_rows, "aaaaaaaiix")


def fits_rows(n: int) -> bool:
    """Whether the threads of a block can hold a row of `n` numbers."""
    return 0 < n <= MOST_HELD * THREADS


def _row_plan(shape: Shape) -> tuple:
    """How many numbers of a row each thread holds and how many threads share one, how many rows a block has
    and how its threads lie; the number of rows and their length."""
    n = shape[-1]
    lanes = WARP if n <= MOST_HELD * WARP else THREADS
    constants = {"HELD": power_of_two(-(-n // lanes)), "LANES": lanes}
    return constants, THREADS // lanes, (lanes, THREADS // lanes), math.prod(shape[:-1]), n


def softmax(a: View, logarithm: bool) -> Any:
    """Softmax of the rows of a compact array, for whose length `fits_rows`, or its logarithm."""
    constants, of_a_block, threads, rows, n = _row_plan(a.shape)
    out = Array(a.size, a.dtype)
    kernel = _softmax.version(a.dtype, **constants, LOGARITHM=int(logarithm))
    launch(kernel, -(-rows // of_a_block), threads, a._handle.address, out.address, rows, n)
    return assemble(new_array(type(a)), out, a.device, a.shape, a.strides)


def standardize(a: View, eps: float, weight: Any = None, bias: Any = None) -> Any:
    """Rows of a compact array shifted and scaled to mean 0 and variance 1; their means and variances; and, if
    there are a weight and a bias, the rows times one plus the other."""
    constants, of_a_block, threads, rows, n = _row_plan(a.shape)
    kept = (*a.shape[:-1], 1)
    affine = weight is not None
    shapes = (a.shape, kept, kept, a.shape) if affine else (a.shape, kept, kept)
    results = [Array(math.prod(shape), a.dtype) for shape in shapes]
    factors = [x._handle.address for x in (weight, bias)] if affine else [a._handle.address] * 2
    addresses = (*[x.address for x in results[:3]], *factors, results[-1].address)
    kernel = _standardize.version(a.dtype, **constants, AFFINE=int(affine))
    blocks, sizes = -(-rows // of_a_block), (rows, n, _number(eps, a.dtype))
    launch(kernel, blocks, threads, a._handle.address, *addresses, *sizes)
    made = _zip(results, shapes, strict=True)
    return tuple([assemble(new_array(type(a)), x, a.device, s, compact_strides(s)) for x, s in made])


# An optimiser's step: one kernel in place of a dozen.


def adam_step(
    p, grad, m, v, p_out, m_out, v_out, n, beta1, rest1, left1, beta2, rest2, left2, lr, eps, decay
):
    """A step of `needle.optim.Adam`. What is left of 1 comes as a number: 1 - beta, and 1 - beta ** t."""
    i = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
    if i < n:
        g = grad[i] + decay * p[i] if decay != 0 else grad[i]
        mean = beta1 * m[i] + rest1 * g
        mean_square = beta2 * v[i] + rest2 * (g * g)
        m_out[i], v_out[i] = mean, mean_square
        p_out[i] = p[i] - lr * (mean / left1) / (math.sqrt(mean_square / left2) + eps)


_adam = Template(adam_step, "aaaaaaaixxxxxxxxx")


def adam(p: View, grad: View, mean: View, mean_square: View, *numbers: float) -> Any:
    """The new parameter and its new running means, of compact arrays of floats."""
    given = [x._handle.address for x in (p, grad, mean, mean_square)]
    made = [Array(p.size, p.dtype) for _ in range(3)]
    options = [_number(x, p.dtype) for x in numbers]
    blocks = -(-p.size // THREADS)
    launch(_adam[p.dtype], blocks, THREADS, *given, *[x.address for x in made], p.size, *options)
    return tuple([assemble(new_array(type(p)), x, p.device, p.shape, p.strides) for x in made])


# Matrix products. A number of `out` needs a row of `a` and a column of `b`, and so do its neighbours. So a
# block computes a tile of `out`: step by step it loads a piece of these rows and columns into shared memory,
# and all its threads use it. cuBLAS does the same with more care, and multiplies floats where it is there.


def product_of_tiles(a, b, out, n, p):
    """One tile of `out` per block, one number of it per thread; the matrices are stored tile by tile."""
    a_tile = cuda.shared.array((TILE, TILE), wide)
    b_tile = cuda.shared.array((TILE, TILE), wide)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    within = y * TILE + x
    tiles, across = n // TILE, p // TILE
    row, column = cuda.blockIdx.x // across, cuda.blockIdx.x % across
    total = wide(0)
    for i in range(tiles):
        a_tile[y, x] = a[(row * tiles + i) * TILE * TILE + within]
        b_tile[y, x] = b[(i * across + column) * TILE * TILE + within]
        cuda.syncthreads()  # now both tiles are complete
        for k in range(TILE):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()  # no thread needs the tiles any more
    out[(row * across + column) * TILE * TILE + within] = dtype(total)


_product_of_tiles = Template(product_of_tiles, "aaaii")


def matmul_tiled(a: Array, b: Array, out: Array, m: int, n: int, p: int) -> None:
    """The matrix product of matrices that are stored tile by tile: shape (rows/t, columns/t, t, t)."""
    blocks, kernel = (m // TILE) * (p // TILE), _product_of_tiles[out.dtype]
    launch(kernel, blocks, (TILE, TILE), a.address, b.address, out.address, n, p)


DEPTH = 4 if SIMULATED else 16  # columns of `a` and rows of `b` that are in shared memory at a time
GROUP = 2 if SIMULATED else 4  # numbers that a thread reads from shared memory at once
DOWN = ACROSS = 0  # a thread computes so many rows of so many numbers; filled in
HEIGHT = WIDTH = 0  # of a tile of `out`; filled in
A_PITCH = B_PITCH = 0  # how far it is from row to row of a tile of `a` and `b`; filled in


def load(tile, side, matrix, start, across, along, width, depth):
    """Load `width` rows of `depth` numbers into the columns of a tile, and zeros beyond them."""
    thread = cuda.threadIdx.y * TILE + cuda.threadIdx.x
    k, line, down, right = thread // side, thread % side, TILE * TILE // side, 0
    if along == 1:  # neighbouring threads read neighbouring places, whichever way these go
        k, line, down, right = thread % DEPTH, thread // DEPTH, 0, TILE * TILE // DEPTH
    for _ in range(DEPTH * side // (TILE * TILE)):
        if line < width and k < depth:
            tile[k, line] = matrix[start + line * across + k * along]
        else:
            tile[k, line] = 0
        k += down
        line += right


def product(a, b, out, m, n, p, batch, a_batch, b_batch, a_strides, b_strides):
    """A thread keeps the totals of DOWN times ACROSS numbers in registers.

    It uses each number that it reads from shared memory several times. Otherwise most of the time would go
    into reading, not multiplying. GROUP of its rows and columns are neighbours, and the tiles begin at
    multiples of 16 bytes, so that the compiler lets it read GROUP numbers of float32 at once.
    """
    if SIMULATED:
        a_tile = cuda.shared.array((DEPTH, A_PITCH), wide)
        b_tile = cuda.shared.array((DEPTH, B_PITCH), wide)
    else:
        a_tile = cuda.shared.array((DEPTH, A_PITCH), wide, 16)
        b_tile = cuda.shared.array((DEPTH, B_PITCH), wide, 16)
    totals = cuda.local.array((DOWN, ACROSS), wide)
    a_column = cuda.local.array(DOWN, wide)
    b_row = cuda.local.array(ACROSS, wide)
    x, y = cuda.threadIdx.x * GROUP, cuda.threadIdx.y * GROUP
    matrix, top, left = corner(cuda.blockIdx.x, m, p, HEIGHT, WIDTH)
    a_start = position(matrix, batch, a_batch) + top * a_strides[0]
    b_start = position(matrix, batch, b_batch) + left * b_strides[1]
    for i in range(DOWN):
        for j in range(ACROSS):
            totals[i, j] = 0
    for k in range(0, n, DEPTH):
        at_a, at_b = a_start + k * a_strides[1], b_start + k * b_strides[0]
        load(a_tile, HEIGHT, a, at_a, a_strides[0], a_strides[1], m - top, n - k)
        load(b_tile, WIDTH, b, at_b, b_strides[1], b_strides[0], p - left, n - k)
        cuda.syncthreads()
        for depth in range(DEPTH):
            for i in range(DOWN):
                a_column[i] = a_tile[depth, y + i // GROUP * GROUP * TILE + i % GROUP]
            for j in range(ACROSS):
                b_row[j] = b_tile[depth, x + j // GROUP * GROUP * TILE + j % GROUP]
            for i in range(DOWN):
                for j in range(ACROSS):
                    totals[i, j] += a_column[i] * b_row[j]
        cuda.syncthreads()
    for i in range(DOWN):
        row = top + y + i // GROUP * GROUP * TILE + i % GROUP
        for j in range(ACROSS):
            column = left + x + j // GROUP * GROUP * TILE + j % GROUP
            if row < m and column < p:
                out[(matrix * m + row) * p + column] = dtype(totals[i, j])


_product = Template(product, "aaaiiipppdd")
MOST_CALLS = 64  # of cuBLAS for one product
blas: Any = None if SIMULATED else cublas  # None: our own kernel multiplies
SHARES = ((2, 2),) if SIMULATED else ((8, 4), (4, 4))  # what DOWN and ACROSS may be


def matmul(a: Array, b: Array, out: Array, m: int, n: int, p: int, layout: tuple | None = None) -> None:
    """Matrix products: (m, n) times (n, p).

    Layout: ``(batch_shape, a_strides, a_offset, b_strides, b_offset)``, where the strides are those of the
    batch axes, then of rows and columns. Without one there is a single product.
    """
    if not out.size:
        return
    batch, a_strides, a_offset, b_strides, b_offset = layout or ((), (n, 1), 0, (p, 1), 0)
    plan = merged_axes(batch, a_strides[:-2], b_strides[:-2])
    a_place, b_place, count = a.at(a_offset), b.at(b_offset), math.prod(batch)
    sizes, steps = (m, n, p), (a_strides[-2:], b_strides[-2:])
    forward = plan[1][-1] >= 0 <= plan[2][-1]  # from matrix to matrix
    few = count <= MOST_CALLS * plan[0][-1]
    if blas is not None and forward and few and blas.takes(out.dtype, sizes, *steps):
        for number, outer in enumerate(np.ndindex(plan[0][:-1])):  # a call takes a batch along one axis
            left, right = (
                sum(i * step for i, step in _zip(outer, strides, strict=False)) for strides in plan[1:]
            )
            blas.multiply(
                *(out.dtype, sizes, steps, plan[0][-1]),
                *((a.at(a_offset + left), plan[1][-1]), (b.at(b_offset + right), plan[2][-1])),
                out.at(number * plan[0][-1] * m * p),
            )
        return
    for down, across in SHARES:  # large tiles read memory least often, as long as there are enough of them
        height, width = TILE * down, TILE * across
        blocks = count * -(-m // height) * -(-p // width)
        if blocks >= gpu.gpu().processors:
            break
    constants: Any = {"DOWN": down, "ACROSS": across, "HEIGHT": height, "WIDTH": width}
    constants |= {"A_PITCH": height + GROUP, "B_PITCH": width + GROUP}
    kernel = _product.version(out.dtype, (len(plan[0]),), **constants)
    matrices = (*plan, a_strides[-2:], b_strides[-2:])
    launch(kernel, blocks, (TILE, TILE), a_place, b_place, out.address, m, n, p, *matrices)


def recorded(work: Callable[[], Any]) -> Any:
    """All that `work` launches, as a graph that is replayed; see `launching.Graph`.

    If the driver refuses, there is a warning, and to replay it is to do the work again.
    """
    try:
        if blas is not None and (library := blas.library()) is not None:
            library.prepare_to_record()
        return gpu.Graph(work)
    except RuntimeError as error:
        warnings.warn(f"cuda(): kernels are launched one by one: {error}", RuntimeWarning, stacklevel=2)
        return SimpleNamespace(replay=work)


def why_not_cublas() -> str:
    """One sentence that says why cuBLAS does not multiply matrices; empty if it does."""
    return "Numba's simulator has no cuBLAS." if SIMULATED else cublas.why_not()


def about() -> str:
    """The GPU in a line: its name, compute capability, processors, and the version of CUDA of its driver."""
    found = gpu.gpu()
    major, minor = found.capability
    return f"{found.name}, compute capability {major}.{minor}, {found.processors} processors, {found.driver}"


def try_out() -> None:
    """Run a first kernel and wait for it; an exception says what prevents it."""
    array = Array(1)
    fill(array, 1)
    if to_numpy(array, (1,), (1,), 0) != 1:
        raise RuntimeError("a kernel was launched, but did not run")


# Plans: what the host works out from shapes and strides, once


def _number(value: float, dtype: np.dtype) -> Any:
    """A Python number in an array's data type, as kernels take it."""
    if dtype == np.float32 and not SIMULATED:
        return ctypes.c_float(value).value  # one that is too large becomes an infinity
    with np.errstate(all="ignore"):
        number = np.full((), value, dtype)[()]
    return number if SIMULATED else number.item()


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
def _fold_plan(
    kept: Shape, kept_strides: Shape, folded: Shape, folded_strides: Shape, k: int, processors: int
) -> tuple:
    """The axes to keep and to fold; whether along them; blocks and their threads; the length of a part."""
    by_stride = sorted(_zip(folded, folded_strides, strict=True), key=lambda axis: -abs(axis[1]))
    kept, kept_strides = merged_axes(kept, kept_strides)
    folded, folded_strides = merged_axes(*_zip(*by_stride, strict=True)) if folded else ((1,), (1,))
    size, enough, quarter = math.prod(kept), ENOUGH_THREADS * processors, power_of_two(-(-k // 4))
    is_along = size == 1 or abs(folded_strides[-1]) <= abs(kept_strides[-1])
    if is_along:
        lanes = min(WARP, quarter)
        if 2 * size * lanes < enough and k > 8 * WARP:  # there are few rows, and they are long
            lanes = THREADS
        results, threads = THREADS // lanes, (lanes, THREADS // lanes)
    else:
        lanes = min(THREADS // min(power_of_two(size), THREADS // 2), quarter)
        results = min(power_of_two(size), THREADS // lanes)
        threads = (results, lanes)
    blocks = -(-size // results)
    parts = min(-(-enough // (blocks * math.prod(threads))), k // (lanes * LEAST), MOST_BLOCKS)
    length = -(-k // max(parts, 1) // (4 * lanes)) * 4 * lanes
    plan = (kept, kept_strides, folded, folded_strides)
    return plan, is_along, (blocks, -(-k // length)), threads, length


def power_of_two(n: int) -> int:
    """The smallest power of two that is not less than `n`."""
    return 1 << (n - 1).bit_length()


MAPS = {name: map(row) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 1}
ZIPS = {name: zip(row) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 2}
REDUCES = {name: reduce(SCALAR_FUNCTIONS[name]) for name in REDUCTIONS}
globals().update(kernel_names(MAPS, ZIPS, REDUCES))  # ewise_add, scalar_add, reduce_sum …
