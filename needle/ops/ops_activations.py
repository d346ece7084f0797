"""Activations: the functions that a network puts between its linear layers."""

from __future__ import annotations

import math

from ..backend_ndarray.shapes import result_dtype
from ..backend_selection import elementwise
from ..graph import Spec
from .families import Elementwise, ElementwiseScalar, Pointwise
from .ops_arithmetic import exp
from .ops_selection import compare, mask, where

__all__ = [
    "GELU",
    "Erf",
    "LeakyReLU",
    "ReLU",
    "Sigmoid",
    "Tanh",
    "erf",
    "gelu",
    "leaky_relu",
    "relu",
    "sigmoid",
    "tanh",
]  # fmt: skip


class ReLU(Elementwise):
    """y = max(a, 0): dy = da where y > 0, else 0."""

    function = "relu"

    def gradient(self, out_grad, node):
        return mask(out_grad, node)


def relu(a):
    """max(a, 0), with slope 0 at 0."""
    return ReLU()(a)


class LeakyReLU(ElementwiseScalar):
    """y = a, times the scalar where it is negative: dy = da, times the scalar there."""

    function = "leaky_relu"

    def gradient(self, out_grad, node):
        negative = compare(node.inputs[0], "lt", 0)
        return where(negative, out_grad * self.scalar, out_grad)


def leaky_relu(a, slope=0.01):
    """`a` where it is positive, ``slope * a`` where it is negative, with slope 1 at 0."""
    return LeakyReLU(slope)(a)


class Tanh(Elementwise):
    """y = tanh(a): dy = (1 - y ** 2) * da."""

    function = "tanh"

    def gradient(self, out_grad, node):
        return out_grad * (1 - node * node)


def tanh(a):
    """The hyperbolic tangent."""
    return Tanh()(a)


class Sigmoid(Elementwise):
    """y = 1 / (1 + exp(-a)): dy = y * (1 - y) * da."""

    function = "sigmoid"

    def gradient(self, out_grad, node):
        return out_grad * (node * (1 - node))


def sigmoid(a):
    """1 / (1 + exp(-a))."""
    return Sigmoid()(a)


class Erf(Elementwise):
    """y = erf(a): dy = 2 / sqrt(pi) * exp(-a ** 2) * da."""

    function = "erf"

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        return out_grad * (exp(-(a * a)) * (2 / math.sqrt(math.pi)))


def erf(a):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t ** 2) from 0 to a."""
    return Erf()(a)


class GELU(Pointwise):
    """y = a * s(a), where s is a smooth step from 0 to 1: dy = (s(a) + a * s'(a)) * da.

    ``approximate="none"``: s is the normal distribution's cumulative function, (1 + erf(a / sqrt(2))) / 2.
    ``approximate="tanh"``: s is the sigmoid of sqrt(8 / pi) * (a + 0.044715 * a ** 3).
    """

    def __init__(self, approximate: str = "none"):
        if approximate not in ("none", "tanh"):
            raise ValueError(f'gelu: approximate is "none" or "tanh", not {approximate!r}')
        self.approximate = approximate

    def infer(self, a):
        return Spec(a.shape, result_dtype("erf", a), a.device)

    def argument(self, a):
        """The argument of the error function, or of the sigmoid, for a Tensor or an array `a`."""
        if self.approximate == "none":
            return a * math.sqrt(1 / 2)
        return (a * a * 0.044715 + 1) * a * math.sqrt(8 / math.pi)

    def compute(self, a):
        if a.dtype.kind != "f":
            a = a.astype(result_dtype("erf", a))
        if self.approximate == "none":
            return a * 0.5 * (elementwise("erf", self.argument(a)) + 1)
        return a * elementwise("sigmoid", self.argument(a))

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        if self.approximate == "none":
            step = (erf(self.argument(a)) + 1) * 0.5
            slope = exp(a * a * -0.5) * math.sqrt(0.5 / math.pi)
        else:
            step = sigmoid(self.argument(a))
            slope = step * (1 - step) * ((a * a * (3 * 0.044715) + 1) * math.sqrt(8 / math.pi))
        return out_grad * (step + a * slope)


def gelu(a, approximate: str = "none"):
    """The Gaussian error linear unit (Hendrycks and Gimpel, 2016).

    `a` times the probability that a number drawn from the standard normal distribution is smaller.

    Parameters
    ----------
    a : Tensor
    approximate : "none" or "tanh"
        "tanh": the paper's faster formula, accurate to three digits.
    """
    return GELU(approximate)(a)
