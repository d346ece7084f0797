"""Mean and variance, and what normalisation layers do with them."""

from __future__ import annotations

import math

import numpy as np

from ..backend_ndarray.shapes import broadcast_shape, hashable_axes, reduced_shape, result_dtype
from ..backend_selection import elementwise
from ..graph import Spec, TensorOp, TensorTupleOp
from .families import common_device, conform


class Moments(TensorTupleOp):
    """y = (mean(a), variance(a)): dy = (mean(da), 2 * mean((a - mean(a)) * da))."""

    def __init__(self, axes: int | tuple[int, ...] | None = None):
        self.axes = hashable_axes(axes)

    def infer(self, a):
        spec = Spec(
            reduced_shape("moments", a.shape, self.axes, keepdims=True), result_dtype("exp", a), a.device
        )
        self.count(a.shape)
        return spec, spec

    def count(self, shape: tuple[int, ...]) -> int:
        """How many elements each mean is taken of."""
        kept = math.prod(reduced_shape("moments", shape, self.axes, keepdims=False))
        if not math.prod(shape) and kept:
            raise ValueError(
                f"moments: shape {shape} has no element along axes {self.axes} to take the mean of"
            )
        return math.prod(shape) // kept if kept else 1

    def compute(self, a):
        if a.dtype.kind != "f":
            a = a.astype(result_dtype("exp", a))
        count = self.count(a.shape)
        mean = a.sum(axis=self.axes, keepdims=True) / count
        centred = elementwise("subtract", a, mean)
        return mean, elementwise("multiply", centred, centred).sum(axis=self.axes, keepdims=True) / count

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        count = self.count(a.shape)
        by_mean, by_variance = out_grad.tuple()
        return (a - node[0]) * (by_variance * (2 / count)) + by_mean / count


def moments(a, axes=None):
    """The mean and the (biased) variance over `axes`: None (all), an int or a tuple.

    Returns
    -------
    TensorTuple
        (mean, variance); the axes stay, with length 1, so that both broadcast with `a`.
    """
    return Moments(axes)(a)


class Normalize(TensorOp):
    """y = (a - mean) / s with s = sqrt(variance + eps): dy = da / s - dmean / s - y / (2 s^2) * dvariance."""

    def __init__(self, eps: float):
        self.eps = eps

    def infer(self, a, mean, variance):
        return Spec(
            broadcast_shape("normalize", a.shape, mean.shape, variance.shape),
            np.result_type(result_dtype("divide", a, mean), variance.dtype),
            common_device("normalize", (a, mean, variance)),
        )

    def compute(self, a, mean, variance):
        deviation = elementwise("sqrt", elementwise("add", variance, self.eps))
        return elementwise("divide", elementwise("subtract", a, mean), deviation)

    def gradient(self, out_grad, node):
        a, mean, variance = node.inputs
        shifted = variance + self.eps
        by_a = out_grad * shifted**-0.5
        return (
            conform(by_a, a),
            -conform(by_a, mean) if mean.requires_grad else None,
            conform(out_grad * node, variance) / (shifted * -2) if variance.requires_grad else None,
        )


def normalize(a, mean, variance, eps=1e-5):
    """(a - mean) / sqrt(variance + eps), broadcast."""
    return Normalize(eps)(a, mean, variance)
