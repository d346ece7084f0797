"""NumPy itself as the array library: arrays are `numpy.ndarray`, and the one device is the processor.

With the environment variable ``NEEDLE_BACKEND=np``, needle uses this module in place of `backend_ndarray`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .backend_ndarray.device import Device, DeviceUnavailable
from .backend_ndarray.indexing import in_range
from .backend_ndarray.ndarray_backend_numpy import add_at, quiet
from .backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from .backend_ndarray.shapes import broadcast_shape, result_dtype
from .backend_ndarray.strides import window_layout

NDArray = np.ndarray


class CPUDevice(Device):
    """The processor; its arrays are NumPy's."""

    def __init__(self, name: str = "cpu"):
        super().__init__(name)

    def array(self, values: Any, dtype: Any = "float32") -> np.ndarray:
        return np.array(values, dtype)


class DisabledDevice(Device):
    """A device that NumPy does not have."""

    def why(self) -> str:
        return "With NEEDLE_BACKEND=np every array is NumPy's own, on the processor."

    def array(self, values: Any, dtype: Any = "float32") -> np.ndarray:
        raise DeviceUnavailable(
            f"{self} is not available: {self.why()} Use needle.cpu(), or NEEDLE_BACKEND=nd."
        )


_CPU = CPUDevice()
_CUDA = DisabledDevice("cuda")
_CPU_NUMPY = DisabledDevice("cpu_numpy")


def cpu() -> CPUDevice:
    """The processor, the one device that is enabled."""
    return _CPU


def cuda() -> Device:
    """A device that is not enabled."""
    return _CUDA


def cpu_numpy() -> Device:
    """A device that is not enabled: `cpu` uses NumPy's kernels already."""
    return _CPU_NUMPY


def default_device() -> CPUDevice:
    """The device of an array that names none."""
    return _CPU


def all_devices() -> list[Device]:
    """Every device, enabled or not."""
    return [_CPU, _CUDA, _CPU_NUMPY]


# What needle asks of either array library (see backend_selection)


def elementwise(name: str, *operands: Any) -> np.ndarray:
    """Apply a row of the table of scalar functions; comparisons answer 0 or 1 in the operands' data type."""
    row = SCALAR_FUNCTIONS[name]
    if any(isinstance(x, tuple) for x in operands):  # NumPy would take it for an array
        raise TypeError(f"{name}: needs arrays and numbers, got a tuple")
    dtype = result_dtype(name, *operands)
    if dtype.kind == "f":  # NumPy would compute functions of small integers in half precision
        operands = tuple(x.astype(dtype) if getattr(x, "dtype", dtype).kind in "biu" else x for x in operands)
    try:
        result = quiet.run(row.numpy, *operands)
    except ValueError:
        broadcast_shape(name, *map(np.shape, operands))  # raises a clearer error if this was the reason
        raise
    return np.asarray(result, dtype)


def array_from_numpy(array: Any, dtype: Any = None, device: Device | None = None) -> np.ndarray:
    """A copy of a NumPy array, scalar or nested lists, in its own data type unless `dtype` says otherwise."""
    return (device or _CPU).array(array, dtype)


def to_numpy(array: np.ndarray) -> np.ndarray:
    """A copy."""
    return np.array(array)


def permute(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The axes in another order: axis `i` of the result is axis ``axes[i]`` of `array`."""
    return np.transpose(array, axes)


def broadcast_to(array: np.ndarray, new_shape: tuple[int, ...]) -> np.ndarray:
    """Axes of length 1, and new leading axes, repeated to `new_shape` without a copy."""
    return np.broadcast_to(array, new_shape)


def astype(array: np.ndarray, dtype: Any) -> np.ndarray:
    """A copy with another data type."""
    return quiet.run(array.astype, dtype)


def unstack(array: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    """Views of the parts of `array` along `axis`, which they do not have."""
    first = np.moveaxis(array, axis, 0)
    return tuple([first[i, ...] for i in range(len(first))])


def stack(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Arrays side by side along a new axis."""
    return np.stack(arrays, axis)


def concatenate(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Arrays one behind the other along `axis`."""
    return np.concatenate(arrays, axis)


def checked_index(
    index: np.ndarray, length: int, refusal: Callable[[Any, Any], str], from_end: bool = False
) -> np.ndarray:
    """An index of int64 with all its numbers in ``0 .. length - 1``; see `indexing.in_range`."""
    return in_range(index, length, refusal, from_end)


def take(array: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    """Elements along `axis`: number ``index[0]``, then number ``index[1]`` and so on."""
    return np.take(array, index, axis)


def scatter_add(array: np.ndarray, index: np.ndarray, axis: int, length: int) -> np.ndarray:
    """Zeros with `length` elements along `axis`, to which those of `array` are added; see `take`."""
    dtype = array.dtype if array.dtype.kind == "f" else np.dtype("int64")
    behind = array.shape[axis + index.ndim :]
    out = np.zeros((*array.shape[:axis], length, *behind), dtype)
    if array.size:
        flat = array.astype(dtype, copy=False).reshape(-1)
        add_at(out.reshape(-1), flat, index.reshape(-1), length, math.prod(behind))
    return out


def one_hot(labels: np.ndarray, n: int, dtype: Any) -> np.ndarray:
    """For each label a row of `n` numbers: 1 at the label, 0 elsewhere; see `Device.one_hot`."""
    return _CPU.one_hot(n, labels, dtype)


def checked_not_zero(array: np.ndarray, refusal: str) -> np.ndarray:
    """`array` itself; a ValueError that says `refusal` if there is a 0 in it."""
    if not array.all():
        raise ValueError(refusal)
    return array


def _no_kernel(*operands: Any) -> None:
    """NumPy has no kernel of its own for this."""


adam = softmax_of_rows = standardized_rows = _no_kernel


def device_of(array: np.ndarray) -> Device:
    """The device where an array lives."""
    return _CPU


def full(
    shape: tuple[int, ...], fill_value: float, dtype: Any = "float32", device: Device | None = None
) -> np.ndarray:
    """An array that holds `fill_value` everywhere."""
    return (device or _CPU).full(shape, fill_value, dtype)


def windows(
    array: np.ndarray, size: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> np.ndarray:
    """A view of all windows of images: see `strides.window_layout`."""
    shape, strides = window_layout(array.shape, array.strides, size, stride, dilation)
    return np.lib.stride_tricks.as_strided(array, shape, strides)
