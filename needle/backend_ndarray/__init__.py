"""n-dimensional arrays on devices: the default array library of needle.

Read in this order: `shapes.py` and `strides.py` (rules), `indexing.py` and `views.py` (an array as a way to
look at flat storage), `ndarray.py` and `kernel_calls.py` (arithmetic), `scalar_functions.py` (the one table
of functions), `ndarray_backend_numpy.py` (what a device's backend module has to offer).
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

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
from .kernel_calls import (
    adam,
    checked_index,
    checked_not_zero,
    concatenate,
    elementwise,
    one_hot,
    scatter_add,
    softmax_of_rows,
    stack,
    standardized_rows,
    take,
)
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
    "SCALAR_FUNCTIONS", "BackendDevice", "Device", "DeviceUnavailable", "NDArray", "ScalarFunction",
    "adam", "all_devices", "array", "array_from_numpy", "astype", "broadcast_to", "checked_index",
    "checked_not_zero", "concatenate", "cpu", "cpu_numpy", "cuda", "default_device", "device_of",
    "elementwise", "empty", "exp", "flip", "full", "log", "maximum", "one_hot", "permute", "reshape",
    "scatter_add", "softmax_of_rows", "stack", "standardized_rows", "sum", "take", "tanh", "to_numpy",
    "unstack", "windows",
]  # fmt: skip


# What needle asks of either array library besides (see backend_selection)

astype = NDArray.astype
permute = NDArray.permute
to_numpy = NDArray.numpy
device_of = attrgetter("device")  # the device where an array lives


def array_from_numpy(array: Any, dtype: Any = None, device: BackendDevice | None = None) -> NDArray:
    """A new array from a NumPy array, scalar or nested lists; float32 unless `dtype` says otherwise."""
    return NDArray(array, device=device, dtype=dtype)


def windows(array: NDArray, size: Shape, stride: Shape, dilation: Shape) -> NDArray:
    """A view of all windows of images: see `strides.window_layout`."""
    shape, strides = window_layout(array.shape, array.strides, size, stride, dilation)
    return array.as_strided(shape, strides)
