"""n-dimensional arrays on devices: the default array library of needle.

`NDArray` is shape, strides and a handle on flat storage (`ndarray.py`); a device's backend module works on
that storage (`ndarray_backend_numpy.py` is the reference). The functions here mirror the array's methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .device import (
    BackendDevice,
    Device,
    DeviceUnavailable,
    all_devices,
    cpu,
    cpu_numpy,
    cuda,
    default_device,
)
from .ndarray import Axes, NDArray, Shape, concatenate, elementwise, scatter_add, stack, take, unstack
from .scalar_functions import SCALAR_FUNCTIONS, ScalarFunction
from .shapes import window_layout

__all__ = [
    "SCALAR_FUNCTIONS",
    "BackendDevice",
    "Device",
    "DeviceUnavailable",
    "NDArray",
    "ScalarFunction",
    "all_devices",
    "array",
    "array_from_numpy",
    "astype",
    "broadcast_to",
    "concatenate",
    "cpu",
    "cpu_numpy",
    "cuda",
    "default_device",
    "device_of",
    "elementwise",
    "empty",
    "exp",
    "flip",
    "full",
    "log",
    "maximum",
    "permute",
    "reshape",
    "scatter_add",
    "stack",
    "sum",
    "take",
    "tanh",
    "to_numpy",
    "unstack",
    "windows",
]


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


def permute(array: NDArray, axes: tuple[int, ...]) -> NDArray:
    """See `NDArray.permute`."""
    return array.permute(axes)


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


# What needle asks of either array library (see backend_selection)


def array_from_numpy(array: Any, dtype: Any = None, device: BackendDevice | None = None) -> NDArray:
    """A new array from a NumPy array, scalar or nested lists; float32 unless `dtype` says otherwise."""
    return NDArray(array, device=device, dtype=dtype)


def to_numpy(array: NDArray) -> np.ndarray:
    """See `NDArray.numpy`."""
    return array.numpy()


def astype(array: NDArray, dtype: Any) -> NDArray:
    """See `NDArray.astype`."""
    return array.astype(dtype)


def device_of(array: NDArray) -> BackendDevice:
    """The device where an array lives."""
    return array.device


def windows(array: NDArray, size: Shape, stride: Shape, dilation: Shape) -> NDArray:
    """A view of all windows of images: see `shapes.window_layout`."""
    shape, strides = window_layout(array.shape, array.strides, size, stride, dilation)
    return array.as_strided(shape, strides)
