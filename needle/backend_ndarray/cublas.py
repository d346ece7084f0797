"""cuBLAS, NVIDIA's library that multiplies matrices, as BLAS does on the processor.

It comes with the CUDA toolkit, with PyTorch and with CuPy; ``pip install nvidia-cublas`` (for CUDA 12:
``nvidia-cublas-cu12``) brings it alone. Where it is missing, our own kernel multiplies, tile by tile.

cuBLAS stores matrices column by column, and we row by row. What we call C is for it the transpose of C. So we
ask for the transpose of ``A @ B``, which is ``B.T @ A.T``: nothing has to be copied.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from .cuda_templates import gpu
from .shapes import Shape

_AS_IT_IS, _TRANSPOSED = 0, 1
_LETTERS = {"float32": ("S", ctypes.c_float), "float64": ("D", ctypes.c_double)}
_LARGEST = 2**31 - 1  # sizes are ints of C
_WORKSPACE = 32 << 20  # bytes, as its manual recommends


@cache
def library() -> Any:
    """The library and a handle for its calls; None if it cannot be used, see `why_not`."""
    return _library()[0]


@cache
def why_not() -> str:
    """One sentence that says why cuBLAS does not multiply; empty if it does."""
    return _library()[1]


@cache
def _library() -> tuple[Any, str]:
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        found = load_nvidia_dynamic_lib("cublas").abs_path
        # PyDLL keeps Python's lock during a call, which is short. So one handle serves all threads.
        lib = ctypes.PyDLL(found)
        handle, status = _handle_of(lib)
        if status:  # perhaps the pool has left it no memory
            gpu.release()
            handle, status = _handle_of(lib)
        if status:
            raise RuntimeError(f"cublasCreate returned {status}; is {found} older or newer than the driver?")
    except Exception as error:  # whatever is wrong with it, our own kernel multiplies
        first = str(error).strip().partition("\n")[0].rstrip(".")
        return (
            None,
            f"cuBLAS is not here ({first}): pip install nvidia-cublas, or nvidia-cublas-cu12 for CUDA 12.",
        )
    return _Cublas(lib, handle), ""


def _handle_of(lib: Any) -> tuple[ctypes.c_void_p, int]:
    """What a call takes to find the library's own data, and a status."""
    handle = ctypes.c_void_p()
    return handle, lib.cublasCreate_v2(ctypes.byref(handle))


class _Cublas:
    """The functions of the library that we call, with the types of their arguments."""

    def __init__(self, lib: Any, handle: ctypes.c_void_p):
        self.lib = lib
        self.default = handle
        self.recording: Any = None
        self.one, self.each = {}, {}  # by data type: a product, and a product for each matrix of a batch
        operation = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int]
        for dtype, (letter, number) in _LETTERS.items():
            factor, matrix, step = ctypes.POINTER(number), [ctypes.c_void_p, ctypes.c_int], ctypes.c_longlong
            one = getattr(lib, f"cublas{letter}gemm_v2")
            one.argtypes = [*operation, factor, *matrix, *matrix, factor, *matrix]
            each = getattr(lib, f"cublas{letter}gemmStridedBatched")
            each.argtypes = [
                *operation,
                factor,
                *matrix,
                step,
                *matrix,
                step,
                factor,
                *matrix,
                step,
                ctypes.c_int,
            ]
            factors = ctypes.byref(number(1)), ctypes.byref(number(0))
            self.one[np.dtype(dtype)], self.each[np.dtype(dtype)] = (one, *factors), (each, *factors)

    @property
    def handle(self) -> ctypes.c_void_p:
        """What a call takes: another one while launches are recorded, for those go to another stream."""
        is_recording = gpu.is_recording()  # type: ignore[attr-defined]  # the simulator has no cuBLAS
        return self.recording if is_recording else self.default

    def prepare_to_record(self) -> None:
        """Make the other handle, with memory of its own: the library must not allocate any then."""
        if self.recording is None:
            handle, status = _handle_of(self.lib)
            place, self._memory = gpu.allocate(_WORKSPACE, np.dtype("uint8"))
            workspace = ctypes.c_void_p(place), ctypes.c_size_t(_WORKSPACE)  # type: ignore[arg-type]
            stream = ctypes.c_void_p(int(gpu.recording_stream()))  # type: ignore[attr-defined]
            status = status or self.lib.cublasSetStream_v2(handle, stream)
            status = status or self.lib.cublasSetWorkspace_v2(handle, *workspace)
            if status:
                raise RuntimeError(f"cuBLAS: a handle for graphs returned {status}")
            self.recording = handle


def operand(shape: Shape, strides: Shape) -> tuple[int, int] | None:
    """How cuBLAS reads a matrix: whether as its transpose, and how far it is from one row to the next.

    Of a transpose, the rows are the columns. None if neither its rows nor its columns lie side by side.
    """
    (rows, columns), (down, right) = shape, strides
    if (right == 1 or columns == 1) and (down >= max(columns, 1) or rows == 1):
        return _AS_IT_IS, max(down if rows > 1 else columns, 1)
    if (down == 1 or rows == 1) and (right >= max(rows, 1) or columns == 1):
        return _TRANSPOSED, max(right if columns > 1 else rows, 1)
    return None


def takes(dtype: np.dtype, sizes: Shape, a_strides: Shape, b_strides: Shape) -> bool:
    """Whether cuBLAS multiplies matrices, (m, n) times (n, p): those of floats that lie row by row or column
    by column."""
    m, n, p = sizes
    if dtype.name not in _LETTERS or library() is None:
        return False
    left, right = operand((m, n), a_strides), operand((n, p), b_strides)
    return left is not None and right is not None and max(*sizes, left[1], right[1]) <= _LARGEST


def multiply(
    dtype: np.dtype, sizes: Shape, strides: tuple[Shape, Shape], count: int, a: tuple, b: tuple, out: int
) -> None:
    """``out = a @ b``, for each matrix of a batch; `takes` has to say that it can be done.

    Parameters
    ----------
    dtype : numpy.dtype
    sizes : (m, n, p)
        (m, n) times (n, p).
    strides : pair of tuple
        Of the rows and columns of a, and of those of b.
    count : int
        How many matrices there are.
    a, b : (int, int)
        The address, and how far it is to the next matrix.
    out : int
        The address of the result, which lies row by row, matrix by matrix.
    """
    m, n, p = sizes
    cublas = library()
    (as_a, a_row), (as_b, b_row) = operand((m, n), strides[0]), operand((n, p), strides[1])  # type: ignore[misc]
    kinds = (cublas.handle, as_b, as_a, p, m, n)
    if count == 1:
        gemm, one, zero = cublas.one[dtype]
        status = gemm(*kinds, one, b[0], b_row, a[0], a_row, zero, out, p)
    else:
        gemm, one, zero = cublas.each[dtype]
        status = gemm(*kinds, one, b[0], b_row, b[1], a[0], a_row, a[1], zero, out, p, m * p, count)
    if status:
        raise RuntimeError(f"cuBLAS: a product of {(m, n)} and {(n, p)}, {count} times, returned {status}")
