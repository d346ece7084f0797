"""Softmax and its relatives: the maximum is subtracted before `exp`, so that nothing overflows."""

from __future__ import annotations

from ..backend_ndarray.shapes import hashable_axes, normal_axes, number_range, result_dtype
from ..backend_selection import elementwise, softmax_of_rows
from ..graph import Spec, TensorOp
from .families import Reduction, check_keywords
from .ops_arithmetic import exp

__all__ = ["LogSoftmax", "LogSumExp", "Softmax", "logsoftmax", "logsumexp", "softmax"]


def shifted(a, axes, finite=False):
    """``a - top`` and ``top``, the maximum of the array `a` along `axes`, which are kept with size 1.

    An infinity less itself is NaN. With `finite`, the largest finite number is subtracted from infinity.
    """
    if a.dtype.kind != "f":
        a = a.astype(result_dtype("exp", a))  # unsigned integers have no negative differences
    if 0 in a.shape:
        return a, a.sum(axis=axes, keepdims=True)  # nothing has no maximum, and needs no shift
    top = a.max(axis=axes, keepdims=True)
    if finite:
        lowest, highest = number_range(top.dtype)
        top = elementwise("minimum", elementwise("maximum", top, lowest), highest)
    return elementwise("subtract", a, top), top


class LogSumExp(Reduction):
    """y = log(sum(exp(a))): dy = sum(softmax(a) * da)."""

    needs_elements = False

    def out_dtype(self, a):
        return result_dtype("exp", a)

    def compute(self, a):
        below, top = shifted(a, self.axes, finite=True)
        total = elementwise("exp", below).sum(axis=self.axes, keepdims=True)
        return elementwise("add", elementwise("log", total), top).reshape(self.out_shape(a.shape))

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        slope = Softmax(self.axes)
        slope._finite = True  # beside an infinity the slope is 0
        return self.spread(out_grad, a.shape) * slope(a)


def logsumexp(a, axes=None, *, keepdims=False, **misnamed):
    """log(sum(exp(a))) over `axes`: None (all), an int or a tuple. `keepdims`: they stay, with length 1."""
    check_keywords("logsumexp", misnamed)
    op = LogSumExp(axes)
    return op.keeping(a) if keepdims else op(a)


class Normalization(TensorOp):
    """Turns the elements along `axes` into a probability distribution, or into its logarithm."""

    def __init__(self, axes: int | tuple[int, ...] | None = -1):
        self.axes = hashable_axes(axes)

    def infer(self, a):
        normal_axes(type(self).__name__.lower(), self.axes, len(a.shape))
        return Spec(a.shape, result_dtype("exp", a), a.device)


class Softmax(Normalization):
    """y = exp(a) / sum(exp(a)): dy = y * (da - sum(y * da))."""

    _finite = False  # see `shifted`

    def compute(self, a):
        if not self._finite and (by_kernel := softmax_of_rows(a, self.axes, False)) is not None:
            return by_kernel
        powers = elementwise("exp", shifted(a, self.axes, self._finite)[0])
        return elementwise("divide", powers, powers.sum(axis=self.axes, keepdims=True))

    def gradient(self, out_grad, node):
        weighted = out_grad * node
        return weighted - node * weighted.sum(self.axes, keepdims=True)


def softmax(a, axes=-1, **misnamed):
    """exp(a) / sum(exp(a)) over `axes` (an int, a tuple or None: all); by default the last.

    All is NaN where the largest number is infinite: no share of infinity is known.
    """
    check_keywords("softmax", misnamed)
    return Softmax(axes)(a)


class LogSoftmax(Normalization):
    """y = log(softmax(a)): dy = da - sum(exp(y) * da)."""

    def compute(self, a):
        if (by_kernel := softmax_of_rows(a, self.axes, True)) is not None:
            return by_kernel
        below, _ = shifted(a, self.axes)
        total = elementwise("exp", below).sum(axis=self.axes, keepdims=True)
        return elementwise("subtract", below, elementwise("log", total))

    def gradient(self, out_grad, node):
        return out_grad - exp(node) * out_grad.sum(self.axes, keepdims=True)


def logsoftmax(a, axes=-1, **misnamed):
    """log(softmax(a)) over `axes` (an int, a tuple or None: all); by default the last."""
    check_keywords("logsoftmax", misnamed)
    return LogSoftmax(axes)(a)
