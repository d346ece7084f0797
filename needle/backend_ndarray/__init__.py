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
from .kernel_calls import concatenate, elementwise, scatter_add, stack, take
from .ndarray import (
    NDArray,
    array,
    broadcast_to,
    empty,
    exp,
    flip,
    full,
    log,
    maximum,
    reshape,
    sum,
    tanh,
)
from .scalar_functions import SCALAR_FUNCTIONS, ScalarFunction
from .shapes import Shape
from .strides import window_layout
from .views import unstack

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


# What needle asks of either array library besides (see backend_selection)


def permute(array: NDArray, axes: tuple[int, ...]) -> NDArray:
    """See `NDArray.permute`."""
    return array.permute(axes)


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
    """A view of all windows of images: see `strides.window_layout`."""
    shape, strides = window_layout(array.shape, array.strides, size, stride, dilation)
    return array.as_strided(shape, strides)
