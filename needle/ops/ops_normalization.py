"""Normalisation: shift and scale numbers to mean 0 and variance 1."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

from ..backend_ndarray.shapes import hashable_axes, reduced_shape, result_dtype
from ..backend_selection import elementwise, standardized_rows
from ..graph import Spec, TensorOp, TensorTupleOp
from .ops_tuple import partials_of_items, spec_of

__all__ = ["Standardize", "StandardizeAdjoint", "standardize"]


class Standardize(TensorTupleOp):
    """(y, mean, variance) with y = (a - mean) / sqrt(variance + eps); mean and variance are those of a.

    The derivative of y is the operator `StandardizeAdjoint`; dmean = mean(da) and
    dvariance = 2 * mean((a - mean) * da).
    """

    def __init__(self, axes: int | tuple[int, ...] | None, eps: float):
        self.axes = hashable_axes(axes)
        self.eps = eps

    def infer(self, a):
        dtype = result_dtype("exp", a)
        kept = reduced_shape("standardize", a.shape, self.axes, keepdims=True)
        if 0 in a.shape and 0 not in kept:
            raise ValueError(f"standardize: shape {a.shape} has no element along axes {self.axes}")
        moment = Spec(kept, dtype, a.device)
        return Spec(a.shape, dtype, a.device), moment, moment

    def compute(self, a):
        (_, dtype, _), (kept, _, _), _ = self.infer(spec_of(a))
        a = a if a.dtype == dtype else a.astype(dtype)
        if (by_kernel := standardized_rows(a, self.axes, self.eps)) is not None:
            return by_kernel
        count = group_size(a.shape, kept)
        mean = a.sum(axis=self.axes, keepdims=True) / count
        centred = elementwise("subtract", a, mean)
        variance = elementwise("multiply", centred, centred).sum(axis=self.axes, keepdims=True) / count
        deviation = elementwise("sqrt", elementwise("add", variance, self.eps))
        return elementwise("divide", centred, deviation), mean, variance

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        y, _, variance = node.tuple()
        by_y, by_mean, by_variance = partials_of_items(out_grad)
        count = group_size(a.shape, variance.shape)
        partials = []
        if by_y is not None:
            partials.append(StandardizeAdjoint(self.axes, self.eps)(by_y, y, variance))
        if by_mean is not None:
            partials.append((by_mean / count).broadcast_to(a.shape))
        if by_variance is not None:  # (a - mean) = y * deviation
            partials.append(y * (by_variance * (variance + self.eps) ** 0.5 * (2 / count)))
        return reduce(add, partials)


class StandardizeAdjoint(TensorOp):
    """The gradient of `Standardize`: (v - mean(v) - y * mean(v * y)) / sqrt(variance + eps).

    v is the adjoint of y. It is one operator, because primitive ones would be a dozen nodes. It is linear in
    v, and its own adjoint there; y and the variance are operands as well, so that it can be differentiated
    again.
    """

    def __init__(self, axes: int | tuple[int, ...] | None, eps: float):
        self.axes = axes
        self.eps = eps

    def infer(self, v, y, variance):
        return spec_of(y)

    def compute(self, v, y, variance):
        count = group_size(y.shape, variance.shape)
        mean = v.sum(axis=self.axes, keepdims=True) / count
        likeness = elementwise("multiply", v, y).sum(axis=self.axes, keepdims=True) / count
        rest = elementwise("subtract", elementwise("subtract", v, mean), elementwise("multiply", y, likeness))
        deviation = elementwise("sqrt", elementwise("add", variance, self.eps))
        return elementwise("divide", rest, deviation)

    def gradient(self, out_grad, node):
        v, y, variance = node.inputs
        count = group_size(y.shape, variance.shape)
        shifted = variance + self.eps
        likeness = (v * y).sum(self.axes, keepdims=True)
        by_y = v * (out_grad * y).sum(self.axes, keepdims=True) + out_grad * likeness
        return (
            StandardizeAdjoint(self.axes, self.eps)(out_grad, y, variance),
            by_y * shifted**-0.5 / -count,
            (out_grad * node).sum(self.axes, keepdims=True) / (shifted * -2),
        )


def standardize(a, axes=None, eps=1e-5):
    """`a` shifted and scaled to mean 0 and variance (almost) 1 along axes.

    Parameters
    ----------
    a : Tensor
    axes : int, tuple or None
        Along which mean and variance are taken; None: all.
    eps : float
        Added to the variance, so that constants do not lead to a division by 0.

    Returns
    -------
    TensorTuple
        ((a - mean) / sqrt(variance + eps), mean, variance). The variance is the biased one, the mean of the
        squares; in mean and variance the axes stay, with length 1.

    Raises
    ------
    ValueError
        If there is no element to take the mean of.
    """
    return Standardize(axes, eps)(a)


def group_size(shape: tuple[int, ...], kept: tuple[int, ...]) -> int:
    """How many elements an array of `shape` has for each of one of shape `kept`."""
    return math.prod(shape) // math.prod(kept) if math.prod(kept) else 1
