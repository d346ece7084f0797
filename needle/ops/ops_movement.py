"""Movement: the same numbers in another shape, order, dtype or place. Most of these copy nothing."""

from __future__ import annotations

import numpy as np

from ..backend_ndarray.shapes import as_shape, check_broadcast, filled_shape, permuted_order, swapped_order
from ..backend_selection import array_from_numpy, device_of, to_numpy
from ..backend_selection import broadcast_to as array_broadcast_to
from ..backend_selection import permute as array_permute
from ..graph import Spec, TensorOp
from .families import Movement, check_keywords, gradient_dtype, sum_to

__all__ = [
    "BroadcastTo", "Cast", "Identity", "Permute", "Reshape", "ToDevice", "Transpose", "broadcast_to", "cast",
    "permute", "reshape", "to_device", "transpose",
]  # fmt: skip


class Identity(Movement):
    """The same array. It links the earlier value of a Tensor that was written to with the Tensor itself."""

    def out_shape(self, shape):
        return shape

    def compute(self, a):
        return a

    def gradient(self, out_grad, node):
        return out_grad


class Reshape(Movement):
    """Another shape for the same elements; the gradient gets the old one."""

    def __init__(self, shape):
        self.shape = as_shape(shape)

    def out_shape(self, shape):
        return filled_shape(shape, self.shape)

    def compute(self, a):
        return a.reshape(self.shape)

    def gradient(self, out_grad, node):
        return out_grad.reshape(node.inputs[0].shape)


def reshape(a, shape, *more: int):
    """The same elements in another shape, in row-major order.

    Parameters
    ----------
    a : Tensor
    shape : tuple of int, or one int after another
        One length may be -1: it is worked out from the others.
    """
    return Reshape((shape, *more) if more else shape)(a)


class BroadcastTo(Movement):
    """The same elements repeated along some axes; the gradient sums over the repeats."""

    def __init__(self, shape):
        self.shape = as_shape(shape)

    def out_shape(self, shape):
        check_broadcast(shape, self.shape)
        return self.shape

    def compute(self, a):
        return array_broadcast_to(a, self.shape)

    def gradient(self, out_grad, node):
        return sum_to(out_grad, node.inputs[0].shape)


def broadcast_to(a, shape):
    """`a` repeated along axes of length 1, and along new axes in front, to `shape`; nothing is copied."""
    return BroadcastTo(shape)(a)


class Permute(Movement):
    """The axes in another order; the gradient puts them back."""

    def __init__(self, axes):
        self.axes = as_shape(axes)

    def out_shape(self, shape):
        return tuple([shape[i] for i in permuted_order("permute", self.axes, shape)])

    def compute(self, a):
        return array_permute(a, self.axes)

    def gradient(self, out_grad, node):
        order = permuted_order("permute", self.axes, out_grad.shape)
        return out_grad.permute(tuple(sorted(range(len(order)), key=order.__getitem__)))  # the inverse


def permute(a, axes=(), *more: int, **misnamed):
    """The axes in another order, as a tuple or one by one: axis i of the result is axis ``axes[i]``."""
    check_keywords("permute", misnamed)
    return Permute((axes, *more) if more else axes)(a)


class Transpose(Movement):
    """Two axes swapped; the gradient swaps them back."""

    def __init__(self, axes: tuple[int, int] | None = None):
        self.axes = None if axes is None else as_shape(axes)

    def out_shape(self, shape):
        return tuple([shape[i] for i in swapped_order(self.axes, len(shape))])

    def compute(self, a):
        return array_permute(a, swapped_order(self.axes, len(a.shape)))

    def gradient(self, out_grad, node):
        return out_grad.transpose(self.axes)


def transpose(a, axes=None, *more: int, **misnamed):
    """Two axes swapped, given as a tuple or one by one; by default the last two."""
    check_keywords("transpose", misnamed)
    return Transpose((axes, *more) if more else axes)(a)


class Cast(TensorOp):
    """The same numbers in another dtype; the gradient comes back in the old one."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def infer(self, a):
        device_of(a).empty((), self.dtype)  # raises if the device has no such dtype
        return Spec(a.shape, self.dtype, a.device)

    def compute(self, a):
        return a.astype(self.dtype)

    def gradient(self, out_grad, node):
        return out_grad.astype(gradient_dtype(node.inputs[0]))


def cast(a, dtype):
    """The same numbers in another dtype."""
    return Cast(dtype)(a)


class ToDevice(TensorOp):
    """The same numbers on another device; the gradient comes back."""

    def __init__(self, device):
        self.device = device

    def infer(self, a):
        self.device.empty(())  # raises if the device is not enabled
        return Spec(a.shape, a.dtype, self.device)

    def compute(self, a):
        return array_from_numpy(to_numpy(a), dtype=a.dtype, device=self.device)

    def gradient(self, out_grad, node):
        return out_grad.to(node.inputs[0].device)


def to_device(a, device):
    """A copy of `a` on `device`."""
    return ToDevice(device)(a)
