"""`NDArray`: shape, strides, offset, device and a handle on flat storage.

The element at index ``(i, j, …)`` is number ``offset + i * strides[0] + j * strides[1] + …`` of the storage.
Reshape, permute, broadcast_to, slices and flip only choose other shapes, strides and offsets: they return
views, which share the storage of the array that they look at. Every such rule is in this module; a backend
sees flat buffers only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np

from .device import BackendDevice, common_device, default_device
from .scalar_functions import SCALAR_FUNCTIONS
from .shapes import (
    Axes,
    Shape,
    as_shape,
    broadcast_shape,
    check_broadcast,
    compact_strides,
    filled_shape,
    hashable_axes,
    joined_shape,
    normal_axes,
    permuted_order,
    product_shape,
    reduced_shape,
    result_dtype,
    stacked_shape,
)

DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "bool", "uint8", "int32", "int64"))


class NDArray:
    """An n-dimensional array on a device.

    Parameters
    ----------
    other : NDArray, numpy.ndarray, scalar or nested lists
        What to copy.
    device : BackendDevice, optional
        By default that of an NDArray, else `default_device()`.
    dtype : dtype or str, optional
        One of float32, float64, bool, uint8, int32, int64. By default that of an NDArray, else float32.

    Attributes
    ----------
    shape : tuple of int
    strides : tuple of int
        Steps between neighbours along each axis, in elements.
    offset : int
        Where in the storage the first element is.
    dtype : numpy.dtype
    device : BackendDevice

    Notes
    -----
    An integer index keeps its axis with length 1: ``a[0]`` of shape (3, 4) has shape (1, 4).
    ``==`` compares element by element; arrays are hashed by identity.
    """

    __slots__ = ("__weakref__", "_compact", "_handle", "device", "dtype", "offset", "shape", "strides")

    _handle: Any  # the backend's Array
    _compact: bool
    dtype: np.dtype
    shape: Shape
    strides: Shape
    offset: int
    device: BackendDevice

    __array_ufunc__ = None  # numpy.ndarray + NDArray is ours to answer
    __hash__ = object.__hash__

    def __init__(self, other: Any, device: BackendDevice | None = None, dtype: Any = None):
        if isinstance(other, NDArray):
            device = device or other.device
            dtype = other.dtype if dtype is None else dtype
        device = device or default_device()
        dtype = _supported(dtype)
        if isinstance(other, NDArray) and other.device == device:
            shape, handle = other.shape, other._copy(dtype)._handle
        else:
            values = np.asarray(other)
            if values.dtype.kind not in "biuf":
                raise TypeError(f"NDArray: needs real numbers, got {values.dtype} {other!r:.60}")
            shape, handle = values.shape, device.mod.Array(values.size, dtype)
            device.mod.from_numpy(values, handle)
        _assemble(self, handle, shape, compact_strides(shape), 0, device)

    @staticmethod
    def make(
        shape: Shape,
        strides: Shape | None = None,
        device: BackendDevice | None = None,
        handle: Any = None,
        offset: int = 0,
        dtype: Any = "float32",
    ) -> NDArray:
        """An array over existing storage `handle`, or over new storage whose numbers are yet to be written.

        Raises
        ------
        ValueError
            If the view would reach beyond its storage.
        """
        shape = as_shape(shape)
        if min(shape, default=0) < 0:
            raise ValueError(f"NDArray: lengths must not be negative, got shape {shape}")
        strides = compact_strides(shape) if strides is None else tuple(strides)
        device = device or default_device()
        if handle is None:
            handle = device.mod.Array(math.prod(shape), _supported(dtype))
        _check_bounds(shape, strides, offset, handle.size)
        return _assemble(object.__new__(NDArray), handle, shape, strides, offset, device)

    @staticmethod
    def compact_strides(shape: Shape) -> Shape:
        """The strides of a row-major array: each is the product of the lengths after it."""
        return compact_strides(tuple(shape))

    # What an array is

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def storage(self) -> Any:
        """The flat array of the backend that holds the elements; views of one another share it."""
        return self._handle

    @property
    def flat(self) -> NDArray:
        """The elements in row-major order, along one axis."""
        return self.reshape((self.size,))

    def __repr__(self) -> str:
        return f"NDArray({self.numpy()}, device={self.device})"

    def __str__(self) -> str:
        return str(self.numpy())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: an array of shape () has no axis")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"bool: the truth of an array of shape {self.shape} is not defined; use .numpy().all()"
            )
        return bool(self.numpy().item())

    # Copies

    def numpy(self) -> np.ndarray:
        """A NumPy copy."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        return self.device.mod.to_numpy(self._handle, self.shape, self.strides, self.offset)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("NDArray: NumPy cannot look at its storage; only a copy can be had")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def to(self, device: BackendDevice) -> NDArray:
        """This array on `device`: itself if it is there already, else a copy."""
        return self if device == self.device else NDArray(self, device=device)

    def astype(self, dtype: Any) -> NDArray:
        """A compact copy with another data type."""
        return self._copy(_supported(dtype))

    def is_compact(self) -> bool:
        """Whether the elements fill the whole storage in row-major order."""
        return self._compact

    def compact(self) -> NDArray:
        """This array if it is compact, else a compact copy."""
        return self if self._compact else self._copy(self.dtype)

    def _copy(self, dtype: np.dtype) -> NDArray:
        mod = self.device.mod
        out = mod.Array(self.size, dtype)
        if out.size:
            mod.compact(self._handle, out, self.shape, self.strides, self.offset)
        return _result(out, self.shape, compact_strides(self.shape), self.device)

    def _cast(self, dtype: np.dtype) -> NDArray:
        return self if self.dtype == dtype else self._copy(_supported(dtype))

    def fill(self, value: float) -> None:
        """Write `value` everywhere."""
        if self._compact:
            self.device.mod.fill(self._handle, value)
        else:
            self[...] = value

    # Views

    def _view(self, shape: Shape, strides: Shape, offset: int) -> NDArray:
        return _assemble(object.__new__(NDArray), self._handle, shape, strides, offset, self.device)

    def as_strided(self, shape: Shape, strides: Shape) -> NDArray:
        """A view with other shape and strides, from the same first element on."""
        return NDArray.make(shape, strides, self.device, self._handle, self.offset)

    def reshape(self, *shape: Any) -> NDArray:
        """The same elements, row by row, in another shape: a view where strides can express it, else a copy.

        Parameters
        ----------
        *shape : int, or one sequence of them
            One length may be -1: what is left for it.
        """
        new_shape = filled_shape(self.shape, as_shape(shape[0] if len(shape) == 1 else shape))
        if self._compact:
            return self._view(new_shape, compact_strides(new_shape), 0)
        strides = _reshaped_strides(self.shape, self.strides, new_shape)
        if strides is None:
            return self.compact().reshape(new_shape)
        return self._view(new_shape, strides, self.offset)

    def permute(self, axes: Sequence[int]) -> NDArray:
        """The axes in another order: axis `i` of the result is axis ``axes[i]`` of this array."""
        return self._view(*_permuted(self.shape, self.strides, tuple(axes)), self.offset)

    def broadcast_to(self, shape: Shape) -> NDArray:
        """Axes of length 1, and new leading axes, repeated to `shape` without a copy (stride 0)."""
        shape = as_shape(shape)
        return self._view(shape, _broadcast_strides(self.shape, self.strides, shape), self.offset)

    def flip(self, axes: Axes = None) -> NDArray:
        """The given axes (None: all) backwards."""
        order = normal_axes("flip", hashable_axes(axes), len(self.shape))
        return self[tuple(slice(None, None, -1) if i in order else slice(None) for i in range(self.ndim))]

    def pad(self, axes: Sequence[tuple[int, int]]) -> NDArray:
        """Zeros around: ``axes[i]`` is (how many before, how many after) along axis `i`."""
        if len(axes) != self.ndim or any(before < 0 or after < 0 for before, after in axes):
            raise ValueError(f"pad: shape {self.shape} needs {self.ndim} pairs of lengths >= 0, got {axes}")
        shape = tuple(n + before + after for n, (before, after) in zip(self.shape, axes, strict=True))
        out = self.device.full(shape, 0, self.dtype)
        out[tuple(slice(before, before + n) for n, (before, _) in zip(self.shape, axes, strict=True))] = self
        return out

    # Indexing

    def process_slice(self, sl: slice, dim: int) -> slice:
        """A slice of axis `dim` with start, stop and step written out, to be read as `range` reads them."""
        return slice(*sl.indices(self.shape[dim]))

    def __getitem__(self, idxs: Any) -> NDArray:
        shape, strides, offset = [], [], self.offset
        for dim, idx in enumerate(self._index_of_every_axis(idxs)):
            start, stop, step = self._bounds(idx, dim)
            length = len(range(start, stop, step))
            shape.append(length)
            strides.append(self.strides[dim] * step)
            if length:
                offset += self.strides[dim] * start
        return self._view(tuple(shape), tuple(strides), offset)

    def _index_of_every_axis(self, idxs: Any) -> list:
        """An index with its `...` and its missing axes written out."""
        full = list(idxs) if isinstance(idxs, tuple) else [idxs]
        dots = [i for i, idx in enumerate(full) if idx is Ellipsis]
        if len(dots) > 1:
            raise IndexError("index: only one ... is possible")
        missing = self.ndim - (len(full) - len(dots))
        if missing < 0:
            raise IndexError(
                f"index: {len(full) - len(dots)} indices for the {self.ndim} axes of {self.shape}"
            )
        where = slice(dots[0], dots[0] + 1) if dots else slice(len(full), None)
        full[where] = [slice(None)] * missing
        return full

    def _bounds(self, idx: Any, dim: int) -> tuple[int, int, int]:
        """Start, stop and step of the positions that an index picks along an axis."""
        length = self.shape[dim]
        if isinstance(idx, slice):
            return idx.indices(length)
        if not isinstance(idx, Integral) or isinstance(idx, bool):
            raise TypeError(
                f"index: {type(idx).__name__} on axis {dim}; an NDArray takes integers, slices and ..., "
                "anything else is for .numpy()[…]"
            )
        position = operator.index(idx)
        if not -length <= position < length:
            raise IndexError(
                f"index: {position} is outside axis {dim} of length {length} (shape {self.shape})"
            )
        return position % length, position % length + 1, 1

    def __setitem__(self, idxs: Any, other: Any) -> None:
        view = self[idxs]
        if view.size and any(
            stride == 0 and n > 1 for n, stride in zip(view.shape, view.strides, strict=True)
        ):
            raise ValueError("setitem: a broadcast array repeats its elements; write to .compact() instead")
        target = (view._handle, view.shape, view.strides, view.offset)
        mod = self.device.mod
        if isinstance(other, Real):
            if view.size:
                mod.scalar_setitem(view.size, other, *target)
            return
        if not isinstance(other, NDArray):
            other = NDArray(other, device=self.device, dtype=self.dtype)
        common_device("setitem", (self, other))
        if _without_ones(other.shape) == _without_ones(view.shape):
            other = other.reshape(view.shape)  # a[0] = row: the axis that an integer index keeps
        check_broadcast(other.shape, view.shape, "setitem")
        other = other.broadcast_to(view.shape)
        if other._handle is self._handle:
            other = other._copy(self.dtype)  # else what was just written might be read
        if view.size:
            mod.ewise_setitem(other._cast(self.dtype).compact()._handle, *target)

    # Arithmetic

    def ewise_or_scalar(self, other: Any, ewise_func: Any, scalar_func: Any) -> NDArray:
        """The result of a backend's kernels: ``ewise_func(a, b, out)`` or ``scalar_func(a, number, out)``."""
        out = NDArray.make(self.shape, device=self.device, dtype=self.dtype)
        if isinstance(other, NDArray):
            common_device("ewise_or_scalar", (self, other))
            ewise_func(self.compact()._handle, other.broadcast_to(self.shape).compact()._handle, out._handle)
        else:
            scalar_func(self.compact()._handle, other, out._handle)
        return out

    def __add__(self, other: Any) -> NDArray:
        return _zip("add", self, other)

    def __radd__(self, other: Any) -> NDArray:
        return _zip("add", other, self)

    def __sub__(self, other: Any) -> NDArray:
        return _zip("subtract", self, other)

    def __rsub__(self, other: Any) -> NDArray:
        return _zip("subtract", other, self)

    def __mul__(self, other: Any) -> NDArray:
        return _zip("multiply", self, other)

    def __rmul__(self, other: Any) -> NDArray:
        return _zip("multiply", other, self)

    def __truediv__(self, other: Any) -> NDArray:
        return _zip("divide", self, other)

    def __rtruediv__(self, other: Any) -> NDArray:
        return _zip("divide", other, self)

    def __pow__(self, other: Any) -> NDArray:
        return _zip("power", self, other)

    def __rpow__(self, other: Any) -> NDArray:
        return _zip("power", other, self)

    def __neg__(self) -> NDArray:
        return _map("negate", self)

    def maximum(self, other: Any) -> NDArray:
        """The larger of two, element by element."""
        return elementwise("maximum", self, other)

    def log(self) -> NDArray:
        """Natural logarithm."""
        return _map("log", self)

    def exp(self) -> NDArray:
        return _map("exp", self)

    def tanh(self) -> NDArray:
        return _map("tanh", self)

    # Comparisons: 0 or 1 in the data type of the operands

    def __eq__(self, other: object) -> NDArray:  # type: ignore[override]
        return _zip("eq", self, other)

    def __ne__(self, other: object) -> NDArray:  # type: ignore[override]
        return _zip("ne", self, other)

    def __lt__(self, other: Any) -> NDArray:
        return _zip("lt", self, other)

    def __le__(self, other: Any) -> NDArray:
        return _zip("le", self, other)

    def __gt__(self, other: Any) -> NDArray:
        return _zip("gt", self, other)

    def __ge__(self, other: Any) -> NDArray:
        return _zip("ge", self, other)

    # Products of matrices, and reductions

    def __matmul__(self, other: Any) -> NDArray:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> NDArray:
        return _matmul(other, self)

    def sum(self, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """Sum over one axis, several, or (None) all; of booleans and integers in int64."""
        array = self if self.dtype.kind == "f" else self._cast(np.dtype("int64"))
        return _fold("sum", "add", array, axis, keepdims)

    def max(self, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """Maximum over one axis, several, or (None) all; NaN where there is one."""
        return _fold("max", "maximum", self, axis, keepdims)

    def min(self, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """Minimum over one axis, several, or (None) all; NaN where there is one."""
        return _fold("min", "minimum", self, axis, keepdims)


def _assemble(
    array: NDArray, handle: Any, shape: Shape, strides: Shape, offset: int, device: BackendDevice
) -> NDArray:
    """Set what an array is made of."""
    array._handle = handle
    array.dtype = handle.dtype
    array.shape = shape
    array.strides = strides
    array.offset = offset
    array.device = device
    array._compact = offset == 0 and strides == compact_strides(shape) and handle.size == math.prod(shape)
    return array


def _result(handle: Any, shape: Shape, strides: Shape, device: BackendDevice) -> NDArray:
    """`_assemble` for the compact array that a kernel has written, in half the time."""
    array = object.__new__(NDArray)
    array._handle = handle
    array.dtype = handle.dtype
    array.shape = shape
    array.strides = strides
    array.offset = 0
    array.device = device
    array._compact = True
    return array


def _result_like(handle: Any, like: NDArray) -> NDArray:
    """The array that a kernel has written whose numbers lie in memory as those of `like`, a dense array."""
    array = _result(handle, like.shape, like.strides, like.device)
    array._compact = like._compact
    return array


def _is_dense(a: NDArray) -> bool:
    """Whether the elements fill the whole storage, in the row-major order of some order of the axes.

    What is computed number by number then lies in memory in the same order: a chain of such operations on
    permuted axes, as those of images whose channels come first, costs no more than on axes in their order.
    """
    return a.offset == 0 and _fill_storage(a.shape, a.strides, a._handle.size)


# Strides: what follows from shapes and strides alone is remembered.


@lru_cache(maxsize=4096)
def _fill_storage(shape: Shape, strides: Shape, size: int) -> bool:
    """Whether the axes, sorted by their strides, are those of a row-major array of `size` elements."""
    step = 1
    for stride, n in sorted(zip(strides, shape, strict=True)):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return step == size


@lru_cache(maxsize=4096)
def _broadcast_strides(shape: Shape, strides: Shape, target: Shape) -> Shape:
    """The strides with which an array reads as one of shape `target`."""
    check_broadcast(shape, target)
    new = len(target) - len(shape)
    kept = (
        stride if n == wanted else 0 for n, stride, wanted in zip(shape, strides, target[new:], strict=True)
    )
    return (0,) * new + tuple(kept)


@lru_cache(maxsize=4096)
def _permuted(shape: Shape, strides: Shape, axes: Shape) -> tuple[Shape, Shape]:
    """The shape and strides with which an array reads with its axes in another order."""
    order = permuted_order("permute", axes, shape)
    return tuple([shape[i] for i in order]), tuple([strides[i] for i in order])


@lru_cache(maxsize=4096)
def _reshaped_strides(shape: Shape, strides: Shape, new_shape: Shape) -> Shape | None:
    """The strides with which an array reads, row by row, as one of `new_shape`; None if they do not exist."""
    if 0 in shape:
        return compact_strides(new_shape)
    runs: list[tuple[int, int]] = []  # (length, stride) of axes that can be walked as one, last first
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * n, runs[-1][1])
        elif n != 1:
            runs.append((n, stride))
    left, step = 1, 1
    new_strides = []
    for n in reversed(new_shape):
        if left == 1 and n != 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_strides.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_strides))


def _without_ones(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)


def _check_bounds(shape: Shape, strides: Shape, offset: int, size: int) -> None:
    if len(shape) != len(strides):
        raise ValueError(f"strides {strides} and shape {shape} differ in length")
    if 0 in shape:
        return
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    lowest = offset + sum(step for step in reach if step < 0)
    highest = offset + sum(step for step in reach if step > 0)
    if min((*shape, lowest)) < 0 or highest >= size:
        raise ValueError(
            f"shape {shape}, strides {strides}, offset {offset} reach from element {lowest} to {highest} "
            f"of a storage of {size}"
        )


# Data types


@lru_cache(maxsize=256)
def _supported(dtype: Any) -> np.dtype:
    found = np.dtype(DTYPES[0] if dtype is None else dtype)
    if found not in DTYPES:
        raise TypeError(f"NDArray: dtype {found} is not supported; use one of {', '.join(map(str, DTYPES))}")
    return found


@lru_cache(maxsize=256)
def _common_dtype(*dtypes: np.dtype) -> np.dtype:
    return _supported(np.result_type(*dtypes))


# Calls of a backend's kernels


def elementwise(name: str, *operands: Any) -> NDArray:
    """Apply a row of the table of scalar functions element by element, with NumPy's broadcasting.

    Parameters
    ----------
    name : str
        A key of `SCALAR_FUNCTIONS`.
    *operands : NDArray, numpy.ndarray or number
        At least one NDArray. A NumPy array beside an array of floats takes its data type.

    Raises
    ------
    TypeError
        For other operands, and for data types that the function is not defined for.
    ValueError
        For shapes that do not broadcast, and for operands on different devices.
    """
    result = _map(name, *operands) if len(operands) == 1 else _zip(name, *operands)
    if result is NotImplemented:
        kinds = ", ".join(type(operand).__name__ for operand in operands)
        raise TypeError(f"{name}: needs NDArrays (at least one) and numbers, got {kinds}")
    return result


def _beside(array: NDArray, values: np.ndarray) -> NDArray:
    """A NumPy array as an operand for `array`: on its device, and with its data type if that is a float."""
    return NDArray(values, array.device, array.dtype if array.dtype.kind == "f" else values.dtype)


def _map(name: str, a: NDArray) -> NDArray:
    if not isinstance(a, NDArray):
        return NotImplemented
    if a.dtype.kind != "f":
        a = a._cast(result_dtype(name, a))
    mod = a.device.mod
    if a._compact or _is_dense(a):
        out = mod.Array(a._handle.size, a.dtype)
        mod.MAPS[name](a._handle, out)
        return _result_like(out, a)
    out = mod.Array(a.size, a.dtype)
    if out.size:
        mod.MAPS[name](a._handle, out, (a.shape, a.strides, a.offset))
    return _result(out, a.shape, compact_strides(a.shape), a.device)


def _zip(name: str, a: Any, b: Any) -> NDArray:
    if not (isinstance(a, NDArray) and isinstance(b, NDArray)):
        return _zip_number(name, a, b)
    if a.device is not b.device:
        common_device(name, (a, b))
    if a.dtype is not b.dtype or a.dtype.kind != "f":
        dtype = result_dtype(name, a, b)
        a, b = a._cast(dtype), b._cast(dtype)
        if name == "power" and dtype.kind == "i":
            _check_exponents(b.numpy())
    mod = a.device.mod
    if a.shape == b.shape and (
        (a._compact and b._compact) or (a.strides == b.strides and _is_dense(a) and _is_dense(b))
    ):
        out = mod.Array(a._handle.size, a.dtype)
        mod.ZIPS[name](a._handle, b._handle, out)
        return _result_like(out, a)
    shape, strides, size, a_strides, b_strides = _zip_plan(name, a.shape, a.strides, b.shape, b.strides)
    out = mod.Array(size, a.dtype)
    if size:
        mod.ZIPS[name](a._handle, b._handle, out, (shape, a_strides, a.offset, b_strides, b.offset))
    return _result(out, shape, strides, a.device)


def _zip_number(name: str, a: Any, b: Any) -> NDArray:
    """`_zip` of an NDArray and a number, or a NumPy array; NotImplemented for anything else."""
    array, other = (a, b) if isinstance(a, NDArray) else (b, a)
    if not isinstance(array, NDArray):
        return NotImplemented
    if type(other) is not float and type(other) is not int:
        if isinstance(other, np.ndarray):
            return _zip(name, a, _beside(a, b)) if array is a else _zip(name, _beside(b, a), b)
        if isinstance(other, np.generic):
            other = other.item()
        if not isinstance(other, (float, int)):
            return NotImplemented
    if array.dtype.kind != "f":
        array = array._cast(result_dtype(name, *((array, other) if array is a else (other, array))))
        if array.dtype.kind != "f" and (answer := _beyond(name, array, other, array is a)) is not None:
            return answer
    if not (array._compact or _is_dense(array)):
        array = array.compact()
    mod = array.device.mod
    out = mod.Array(array._handle.size, array.dtype)
    if isinstance(a, NDArray):
        mod.ZIPS[name](array._handle, other, out)
    else:
        mod.ZIPS[name](other, array._handle, out)
    return _result_like(out, array)


def _beyond(name: str, array: NDArray, number: float, number_last: bool) -> NDArray | None:
    """What comes of whole numbers and one that their type does not hold; None if it does hold it."""
    if name == "power":
        _check_exponents(number if number_last else array.numpy())
    lowest, highest = _range(array.dtype)
    if lowest <= number <= highest:
        return None
    row = SCALAR_FUNCTIONS[name]
    if row.is_comparison:  # it comes out alike for all numbers of that type
        answer = row.python(0, number) if number_last else row.python(number, 0)
        return array.device.full(array.shape, answer, array.dtype)
    raise OverflowError(
        f"{name}: {number} does not fit into {array.dtype}, which holds {lowest} to {highest}; "
        "use .astype('int64') or .astype('float64') first"
    )


def _check_exponents(exponents: Any) -> None:
    if np.min(exponents, initial=0) < 0:
        raise ValueError(
            "power: a whole number to a negative power is a fraction, which its data type does not hold; "
            "use .astype('float32') first"
        )


@lru_cache(maxsize=16)
def _range(dtype: np.dtype) -> tuple[int, int]:
    """The smallest and the largest number that a data type of whole numbers holds."""
    return (0, 1) if dtype == np.bool_ else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _fold(name: str, row: str, a: NDArray, axis: Axes, keepdims: bool) -> NDArray:
    plan = _fold_plan(name, a.shape, a.strides, hashable_axes(axis), keepdims)
    shape, strides, size, k, last, layout = plan
    mod = a.device.mod
    out = mod.Array(size, a.dtype)
    if k and size:
        mod.REDUCES[row](a._handle, out, k, None if last and a._compact else (*layout, a.offset))
    elif size and row == "add":
        mod.fill(out, 0)
    elif size:
        raise ValueError(f"{name}: shape {a.shape} has no element along axis {axis} to take the {name} of")
    return _result(out, shape, strides, a.device)


def _matmul(a: Any, b: Any) -> NDArray:
    if isinstance(a, np.ndarray):
        a = _beside(b, a)
    elif isinstance(b, np.ndarray):
        b = _beside(a, b)
    if not (isinstance(a, NDArray) and isinstance(b, NDArray)):
        return NotImplemented
    if a.device is not b.device:
        common_device("matmul", (a, b))
    if a.dtype is not b.dtype:
        dtype = _supported(np.result_type(a.dtype, b.dtype))
        a, b = a._cast(dtype), b._cast(dtype)
    shape, strides, size, mnp, batch, a_strides, b_strides = _matmul_plan(
        a.shape, a.strides, b.shape, b.strides
    )
    mod = a.device.mod
    out = mod.Array(size, a.dtype)
    if not mnp[1]:
        mod.fill(out, 0)
    elif a._compact and b._compact and not batch:
        mod.matmul(a._handle, b._handle, out, *mnp)
    elif size:
        mod.matmul(a._handle, b._handle, out, *mnp, (batch, a_strides, a.offset, b_strides, b.offset))
    return _result(out, shape, strides, a.device)


# Parts of arrays, and arrays put together


def unstack(a: NDArray, axis: int) -> tuple[NDArray, ...]:
    """Views of the parts of `a` along `axis`, which they do not have."""
    (axis,) = normal_axes("unstack", (axis,), len(a.shape))
    shape, strides = a.shape[:axis] + a.shape[axis + 1 :], a.strides[:axis] + a.strides[axis + 1 :]
    step = a.strides[axis]
    return tuple([a._view(shape, strides, a.offset + i * step) for i in range(a.shape[axis])])


def stack(arrays: Sequence[NDArray], axis: int = 0) -> NDArray:
    """Arrays of one device and shape, side by side along a new axis; their common data type is NumPy's."""
    shape = stacked_shape(axis, *[a.shape for a in arrays])
    strides = compact_strides(shape)
    axis %= len(shape)
    steps = [strides[axis]] * len(arrays)
    return _joined("stack", arrays, shape, strides[:axis] + strides[axis + 1 :], steps)


def concatenate(arrays: Sequence[NDArray], axis: int = 0) -> NDArray:
    """Arrays of one device, one behind the other along `axis`; their common data type is NumPy's."""
    shape = joined_shape(axis, *[a.shape for a in arrays])
    strides = compact_strides(shape)
    return _joined("concatenate", arrays, shape, strides, [a.shape[axis] * strides[axis] for a in arrays])


def _joined(name: str, arrays: Sequence[NDArray], shape: Shape, strides: Shape, steps: list[int]) -> NDArray:
    """An array of `shape` into which others are written with `strides`, each a step behind the one before."""
    device = arrays[0].device
    dtype = _common_dtype(*{a.dtype for a in arrays})
    out = device.mod.Array(math.prod(shape), dtype)
    offset = 0
    for a, step in zip(arrays, steps, strict=True):
        if a.device is not device:
            common_device(name, (arrays[0], a))
        if a.size:
            device.mod.ewise_setitem(a._cast(dtype).compact()._handle, out, a.shape, strides, offset)
        offset += step
    return _result(out, shape, compact_strides(shape), device)


def take(a: NDArray, index: np.ndarray, axis: int) -> NDArray:
    """Elements of `a` along `axis`: number ``index[0]``, then number ``index[1]`` and so on.

    Parameters
    ----------
    a : NDArray
    index : numpy.ndarray of int64, with one axis
        Numbers in ``0 .. a.shape[axis] - 1``, which is not checked here.
    axis : int, not below 0
    """
    shape = (*a.shape[:axis], index.size, *a.shape[axis + 1 :])
    out = a.device.mod.Array(math.prod(shape), a.dtype)
    if out.size:
        inner = math.prod(shape[axis + 1 :])
        a.device.mod.gather(a.compact()._handle, out, index, a.shape[axis], inner)
    return _result(out, shape, compact_strides(shape), a.device)


def scatter_add(a: NDArray, index: np.ndarray, axis: int, length: int) -> NDArray:
    """Zeros with `length` elements along `axis`, to which those of `a` are added: the transpose of `take`.

    Of booleans and integers in int64, as `sum`.
    """
    a = a if a.dtype.kind == "f" else a._cast(np.dtype("int64"))
    shape = (*a.shape[:axis], length, *a.shape[axis + 1 :])
    out = a.device.full(shape, 0, a.dtype)
    if a.size:
        inner = math.prod(shape[axis + 1 :])
        a.device.mod.scatter_add(a.compact()._handle, out._handle, index, length, inner)
    return out


# What those calls need to know besides data: all of it follows from shapes and strides, and is remembered.


@lru_cache(maxsize=4096)
def _zip_plan(name: str, a_shape: Shape, a_strides: Shape, b_shape: Shape, b_strides: Shape) -> tuple:
    """Two operands' broadcast shape, its strides and size, and how both walk through it."""
    shape = broadcast_shape(name, a_shape, b_shape)
    a_steps = _broadcast_strides(a_shape, a_strides, shape)
    b_steps = _broadcast_strides(b_shape, b_strides, shape)
    return shape, compact_strides(shape), math.prod(shape), a_steps, b_steps


@lru_cache(maxsize=4096)
def _fold_plan(name: str, shape: Shape, strides: Shape, axis: Axes, keepdims: bool) -> tuple:
    """A reduction's shape, strides, size; how many become one, and if along the last axes; the layout."""
    axes = tuple(sorted(normal_axes(name, axis, len(shape))))
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    layout = tuple(tuple(lengths[i] for i in some) for some in (kept, axes) for lengths in (shape, strides))
    out_shape = reduced_shape(name, shape, axis, keepdims)
    last = kept + axes == tuple(range(len(shape)))
    return out_shape, compact_strides(out_shape), math.prod(out_shape), math.prod(layout[2]), last, layout


@lru_cache(maxsize=4096)
def _matmul_plan(a_shape: Shape, a_strides: Shape, b_shape: Shape, b_strides: Shape) -> tuple:
    """A matrix product's shape, strides, size; (m, n, p); the batch axes, how both walk through them."""
    shape = product_shape(a_shape, b_shape)
    (m, n), p, batch = a_shape[-2:], b_shape[-1], shape[:-2]
    a_steps = _broadcast_strides(a_shape, a_strides, (*batch, m, n))
    b_steps = _broadcast_strides(b_shape, b_strides, (*batch, n, p))
    return shape, compact_strides(shape), math.prod(shape), (m, n, p), batch, a_steps, b_steps


BackendDevice.array_type = NDArray
