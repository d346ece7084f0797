"""Reductions: one number out of many, along axes."""

from __future__ import annotations

import math
import operator
from numbers import Integral
from typing import Any

import numpy as np

from ..backend_selection import array_from_numpy, device_of, to_numpy
from .families import Reduction, check_keywords
from .ops_selection import compare

__all__ = ["ArgMax", "Max", "Min", "Summation", "argmax", "max", "mean", "min", "summation"]


class Summation(Reduction):
    """A sum along axes; the gradient is repeated along them."""

    needs_elements = False

    def out_dtype(self, a):
        return a.dtype if a.dtype.kind == "f" else np.dtype("int64")

    def compute(self, a):
        return (a if a.dtype.kind == "f" else a.astype("int64")).sum(axis=self.axes)

    def gradient(self, out_grad, node):
        return self.spread(out_grad, node.inputs[0].shape)


def summation(a, axes=None, *, keepdims=False, **misnamed):
    """The sum over `axes`: None (all), an int or a tuple. With `keepdims` they stay, with length 1."""
    check_keywords("sum", misnamed)
    op = Summation(axes)
    return op.keeping(a) if keepdims else op(a)


def mean(a, axes=None, *, keepdims=False, **misnamed):
    """The mean over `axes`; see `summation`."""
    check_keywords("mean", misnamed)
    total = summation(a, axes, keepdims=keepdims)
    return total / (a.size // total.size if total.size else math.nan)


class Max(Reduction):
    """A maximum along axes; elements that tie for it share the gradient equally."""

    def compute(self, a):
        return a.max(axis=self.axes)

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        where = compare(a, "eq", self.spread(node, a.shape))
        share = out_grad / where.sum(self.axes)  # each of several that tie
        return self.spread(share, a.shape) * where


def max(a, axes=None, *, keepdims=False, **misnamed):
    """The largest element along `axes`; see `summation`."""
    check_keywords("max", misnamed)
    op = Max(axes)
    return op.keeping(a) if keepdims else op(a)


class Min(Max):
    """A minimum along axes; elements that tie for it share the gradient equally."""

    def compute(self, a):
        return a.min(axis=self.axes)


def min(a, axes=None, *, keepdims=False, **misnamed):
    """The smallest element along `axes`; see `summation`."""
    check_keywords("min", misnamed)
    op = Min(axes)
    return op.keeping(a) if keepdims else op(a)


class ArgMax(Reduction):
    """The index of the maximum; a step function, through which no gradient flows."""

    differentiable = False

    def out_dtype(self, a):
        return np.dtype("int64")

    def compute(self, a):
        axis: Any = self.axes  # None or an int
        return array_from_numpy(to_numpy(a).argmax(axis), dtype="int64", device=device_of(a))


def argmax(a, axes=None, *, keepdims=False, **misnamed):
    """The index (int64) of the largest element along an axis, the first of several; no gradient flows.

    Parameters
    ----------
    a : Tensor
    axes : int, optional
        One axis. None: the index in row-major order among all elements.
    keepdims : bool
        Whether the axis stays, with length 1.
    """
    check_keywords("argmax", misnamed)
    if axes is not None and not isinstance(axes, Integral):
        raise TypeError(f"argmax: needs one axis, or None for all elements; got {axes!r}")
    op = ArgMax(axes if axes is None else operator.index(axes))
    return op.keeping(a) if keepdims else op(a)
