"""`NDArray`: an n-dimensional array on a device.

Read `strides.py` and `views.py` first: they say how a shape, strides and an offset make an array out of flat
storage. This class adds what computes. `kernel_calls.py` turns it into calls of the device's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .device import BackendDevice, all_devices, common_device, cpu, cpu_numpy, cuda, default_device
from .kernel_calls import (
    NotAnOperand,
    as_operand_for,
    cast,
    concatenate,
    copied,
    elementwise,
    matrix_product,
    reduction,
    scatter_add,
    stack,
    take,
    write,
)
from .shapes import DTYPES, Axes, Shape, as_shape, supported_dtype
from .strides import check_reach, compact_strides
from .views import View, assemble, new_array, unstack

__all__ = [
    "DTYPES", "Axes", "BackendDevice", "NDArray", "Shape", "View", "all_devices", "array", "broadcast_to",
    "concatenate", "cpu", "cpu_numpy", "cuda", "default_device", "elementwise", "empty", "exp", "flip",
    "full", "log", "maximum", "prod", "reshape", "scatter_add", "stack", "sum", "take", "tanh", "unstack",
]  # fmt: skip


def _operator(name: str) -> Callable[..., NDArray]:
    """The method for ``self + other``, from a row of the table of scalar functions."""

    def operator(self, other):
        try:
            return elementwise(name, self, other)
        except NotAnOperand:
            return NotImplemented  # now Python asks `other`

    return operator


def _reflected(name: str) -> Callable[..., NDArray]:
    """The method for ``other + self``, where `other` does not know how."""

    def reflected(self, other):
        try:
            return elementwise(name, other, self)
        except NotAnOperand:
            return NotImplemented

    return reflected


class NDArray(View):
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
    shape, strides, offset, dtype, device
        See `View`.

    Notes
    -----
    An integer index keeps its axis with length 1: ``a[0]`` of shape (3, 4) has shape (1, 4).
    ``==`` compares element by element; arrays are hashed by identity.
    """

    __slots__ = ()

    __array_ufunc__ = None  # lets NDArray handle numpy.ndarray + NDArray
    __hash__ = object.__hash__

    def __init__(self, other: Any, device: BackendDevice | None = None, dtype: Any = None):
        if isinstance(other, NDArray):
            device = device or other.device
            dtype = other.dtype if dtype is None else dtype
        device = device or default_device()
        dtype = supported_dtype(dtype)
        if isinstance(other, NDArray) and other.device == device:
            shape, handle = other.shape, copied(other, dtype)._handle
        else:
            values = np.asarray(other)
            if values.dtype.kind not in "biuf":
                raise TypeError(f"NDArray: needs real numbers, got {values.dtype} {other!r:.60}")
            shape, handle = values.shape, device.mod.Array(values.size, dtype)
            device.mod.from_numpy(values, handle)
        assemble(self, handle, device, shape, compact_strides(shape))

    def __getstate__(self) -> Any:
        """What a copy takes: the numbers of this array, and not a larger storage of which it is a part."""
        return object.__getstate__(self._without_others())

    def __copy__(self) -> NDArray:
        """The same array anew, as a view: so the owner of its storage knows that somebody else has it."""
        array = self._without_others()
        return array._view(array.shape, array.strides, array.offset)

    def _without_others(self) -> NDArray:
        return self.compact() if self._handle.size > self.size else self

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
            If it would reach beyond its storage.
        """
        shape = as_shape(shape)
        device = device or default_device()
        in_order = compact_strides(shape)
        strides = in_order if strides is None else tuple(strides)
        size = prod(shape)
        check_reach(shape, strides, offset, size if handle is None else handle.size)
        if handle is None:
            handle = device.mod.Array(size, supported_dtype(dtype))
        compact = offset == 0 and strides == in_order and handle.size == size
        return assemble(new_array(NDArray), handle, device, shape, strides, offset, compact)

    @staticmethod
    def compact_strides(shape: Shape) -> Shape:
        """The strides of a row-major array: each is the product of the lengths after it."""
        return compact_strides(tuple(shape))

    def __repr__(self) -> str:
        return f"NDArray({self.numpy()}, device={self.device})"

    def __str__(self) -> str:
        return str(self.numpy())

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
        return copied(self, supported_dtype(dtype))

    def compact(self) -> NDArray:
        """This array if it is compact, else a compact copy."""
        return self if self._compact else copied(self, self.dtype)

    def pad(self, axes: Sequence[tuple[int, int]]) -> NDArray:
        """A copy with zeros around it.

        Parameters
        ----------
        axes : sequence of (int, int)
            For each axis how many zeros come before and how many after. The two may differ:
            ``a.pad(((0, 0), (2, 0)))`` puts two columns of zeros before the first column and none after.
        """
        if len(axes) != self.ndim or any(before < 0 or after < 0 for before, after in axes):
            raise ValueError(f"pad: shape {self.shape} needs {self.ndim} pairs of lengths >= 0, got {axes}")
        padded = list(zip(self.shape, axes, strict=True))
        out = self.device.full(tuple([n + before + after for n, (before, after) in padded]), 0, self.dtype)
        out[tuple([slice(before, before + n) for n, (before, _) in padded])] = self
        return out

    # Writing

    def fill(self, value: float) -> None:
        """Write `value` everywhere."""
        if self._compact:
            self.device.mod.fill(self._handle, value)
        else:
            write(self, value)

    def __setitem__(self, idxs: Any, other: Any) -> None:
        write(self[idxs], other)

    # Arithmetic

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __pow__, __rpow__ = _operator("power"), _reflected("power")

    def __neg__(self) -> NDArray:
        return elementwise("negate", self)

    def maximum(self, other: Any) -> NDArray:
        """The larger of two, element by element."""
        return elementwise("maximum", self, other)

    def log(self) -> NDArray:
        """Natural logarithm."""
        return elementwise("log", self)

    def exp(self) -> NDArray:
        return elementwise("exp", self)

    def tanh(self) -> NDArray:
        return elementwise("tanh", self)

    # Comparisons: 0 or 1 in the data type of the operands

    __eq__ = _operator("eq")  # type: ignore[assignment]
    __ne__ = _operator("ne")  # type: ignore[assignment]
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")

    # Products of matrices, and reductions

    def __matmul__(self, other: Any) -> NDArray:
        other = as_operand_for(self, other) if isinstance(other, np.ndarray) else other
        return matrix_product(self, other) if isinstance(other, NDArray) else NotImplemented

    def __rmatmul__(self, other: Any) -> NDArray:
        return (
            matrix_product(as_operand_for(self, other), self)
            if isinstance(other, np.ndarray)
            else NotImplemented
        )

    def sum(self, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """Sum over one axis, several, or (None) all; of booleans and integers in int64."""
        array = self if self.dtype.kind == "f" else cast(self, np.dtype("int64"))
        return reduction("sum", "add", array, axis, keepdims)

    def max(self, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """Maximum over one axis, several, or (None) all; NaN if any element is NaN."""
        return reduction("max", "maximum", self, axis, keepdims)

    def min(self, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """Minimum over one axis, several, or (None) all; NaN if any element is NaN."""
        return reduction("min", "minimum", self, axis, keepdims)

    def ewise_or_scalar(self, other: Any, ewise_func: Any, scalar_func: Any) -> NDArray:
        """The result of a backend's kernels: ``ewise_func(a, b, out)`` or ``scalar_func(a, number, out)``."""
        out = NDArray.make(self.shape, device=self.device, dtype=self.dtype)
        if isinstance(other, NDArray):
            common_device("ewise_or_scalar", (self, other))
            ewise_func(self.compact()._handle, other.broadcast_to(self.shape).compact()._handle, out._handle)
        else:
            scalar_func(self.compact()._handle, other, out._handle)
        return out


BackendDevice.array_type = NDArray


# Functions, as the course has them


def array(a: Any, dtype: Any = "float32", device: BackendDevice | None = None) -> NDArray:
    """A new array that holds `a`: a scalar, nested lists, a NumPy array or an NDArray."""
    return NDArray(a, device=device, dtype=dtype)


def empty(shape: Shape, dtype: Any = "float32", device: BackendDevice | None = None) -> NDArray:
    """An array whose numbers are yet to be written."""
    return (device or default_device()).empty(shape, dtype)


def full(
    shape: Shape, fill_value: float, dtype: Any = "float32", device: BackendDevice | None = None
) -> NDArray:
    """An array that holds `fill_value` everywhere."""
    return (device or default_device()).full(shape, fill_value, dtype)


def broadcast_to(array: NDArray, new_shape: Shape) -> NDArray:
    """See `NDArray.broadcast_to`."""
    return array.broadcast_to(new_shape)


def reshape(array: NDArray, new_shape: Shape) -> NDArray:
    """See `NDArray.reshape`."""
    return array.reshape(new_shape)


def maximum(a: NDArray, b: Any) -> NDArray:
    """See `NDArray.maximum`."""
    return a.maximum(b)


def log(a: NDArray) -> NDArray:
    """See `NDArray.log`."""
    return a.log()


def exp(a: NDArray) -> NDArray:
    """See `NDArray.exp`."""
    return a.exp()


def tanh(a: NDArray) -> NDArray:
    """See `NDArray.tanh`."""
    return a.tanh()


def sum(a: NDArray, axis: Axes = None, keepdims: bool = False) -> NDArray:
    """See `NDArray.sum`."""
    return a.sum(axis=axis, keepdims=keepdims)


def flip(a: NDArray, axes: Axes = None) -> NDArray:
    """See `NDArray.flip`."""
    return a.flip(axes)
