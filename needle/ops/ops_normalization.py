"""Normalisation: shift and scale numbers to mean 0 and variance 1."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

from ..backend_ndarray.device import common_device
from ..backend_ndarray.shapes import (
    common_dtype,
    hashable_axes,
    python_number,
    reduced_shape,
    result_dtype,
)
from ..backend_selection import elementwise, standardized_rows
from ..graph import Spec, TensorOp, TensorTupleOp
from .ops_tuple import partials_of_items, spec_of

__all__ = ["LayerNorm", "Standardize", "StandardizeAdjoint", "layer_norm", "standardize"]


class Standardize(TensorTupleOp):
    """(y, mean, variance) with y = (a - mean) / sqrt(variance + eps); mean and variance are those of a.

    The derivative of y is the operator `StandardizeAdjoint`; dmean = mean(da) and
    dvariance = 2 * mean((a - mean) * da).
    """

    def __init__(self, axes: int | tuple[int, ...] | None, eps: float):
        self.axes = hashable_axes(axes)
        self.eps = python_number(eps)

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
        return self.partial(a, y, variance, *partials_of_items(out_grad))

    def partial(self, a, y, variance, by_y, by_mean, by_variance):
        """The partial adjoint of a, from those of the results; None stands for one that there is not."""
        count = group_size(a.shape, variance.shape)
        partials = []
        if by_y is not None:
            partials.append(StandardizeAdjoint(self.axes, self.eps)(by_y, y, variance))
        if by_mean is not None:
            partials.append((by_mean / count).broadcast_to(a.shape))
        if by_variance is not None:  # (a - mean) = y * deviation
            partials.append(y * (by_variance * (variance + self.eps) ** 0.5 * (2 / count)))
        return reduce(add, partials)


class LayerNorm(TensorTupleOp):
    """(y * weight + bias, y, variance), where y is a, standardized along its last axis; see `Standardize`.

    y and the variance are there because the derivative needs them.
    """

    def __init__(self, eps: float):
        self.eps = eps

    def infer(self, a, weight, bias):
        common_device("layer_norm", (a, weight, bias))
        if not a.shape or weight.shape != a.shape[-1:] or bias.shape != a.shape[-1:]:
            raise ValueError(
                f"layer_norm: weight and bias need the length of the last axis of {a.shape}, "
                f"got shapes {weight.shape} and {bias.shape}"
            )
        y, _, variance = Standardize(-1, self.eps).infer(a)
        dtype = common_dtype(y.dtype, weight.dtype, bias.dtype)
        return Spec(a.shape, dtype, a.device), y, variance

    def compute(self, a, weight, bias):
        self.infer(spec_of(a), spec_of(weight), spec_of(bias))  # kernels do not check
        if (by_kernel := standardized_rows(a, -1, self.eps, weight, bias)) is not None:
            y, _, variance, out = by_kernel
            return out, y, variance
        y, _, variance = Standardize(-1, self.eps).compute(a)
        return elementwise("add", elementwise("multiply", y, weight), bias), y, variance

    def gradient(self, out_grad, node):
        a, weight, _ = node.inputs
        _, y, variance = node.tuple()
        by_out, by_y, by_variance = partials_of_items(out_grad)
        by_weight = by_bias = None
        if by_out is not None:
            leading = tuple(range(len(a.shape) - 1))
            by_weight, by_bias = (by_out * y).sum(leading), by_out.sum(leading)
            by_y = by_out * weight if by_y is None else by_out * weight + by_y
        return Standardize(-1, self.eps).partial(a, y, variance, by_y, None, by_variance), by_weight, by_bias


def layer_norm(a, weight, bias, eps=1e-5):
    """The last axis of `a`, shifted and scaled to mean 0 and variance (almost) 1, times `weight` plus `bias`.

    Parameters
    ----------
    a : Tensor, shape (..., n)
    weight, bias : Tensor, shape (n,)
    eps : float
        Added to the variance, so that constants do not lead to a division by 0.

    Returns
    -------
    Tensor, of the shape of `a`

    Raises
    ------
    ValueError
        If the shapes do not fit.

    References
    ----------
    Ba, Kiros and Hinton (2016), "Layer normalization".
    """
    return LayerNorm(eps)(a, weight, bias)[0]


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
