"""Arithmetic, matrix multiplication, shapes and sums: each operator is its attributes and its gradient.

An operator's first line gives its differential dy. `gradient` turns it round: it is told `out_grad`, the
derivative of the output by y, and answers with the derivative by each operand (the vector-Jacobian
product).
"""

from __future__ import annotations

import math
import operator
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..backend_ndarray.shapes import (
    as_shape,
    broadcast_shape,
    check_broadcast,
    filled_shape,
    normal_axes,
    permuted_order,
    product_shape,
    result_dtype,
)
from ..backend_selection import array_from_numpy, device_of, elementwise, to_numpy
from ..backend_selection import broadcast_to as array_broadcast_to
from ..backend_selection import permute as array_permute
from ..graph import Spec, TensorOp
from .families import (
    Elementwise,
    ElementwiseScalar,
    Movement,
    Reduction,
    common_device,
    conform,
    sum_to,
)


class EWiseAdd(Elementwise):
    """y = a + b: dy = da + db."""

    function = "add"

    def gradient(self, out_grad, node):
        return out_grad, out_grad


def add(a, b):
    """a + b, broadcast."""
    return EWiseAdd()(a, b)


class AddScalar(ElementwiseScalar):
    """y = a + scalar: dy = da."""

    function = "add"

    def gradient(self, out_grad, node):
        return out_grad


def add_scalar(a, scalar):
    """a + scalar."""
    return AddScalar(scalar)(a)


class EWiseMul(Elementwise):
    """y = a * b: dy = b * da + a * db."""

    function = "multiply"

    def gradient(self, out_grad, node):
        a, b = node.inputs
        return out_grad * b, out_grad * a


def multiply(a, b):
    """a * b, element by element, broadcast."""
    return EWiseMul()(a, b)


class MulScalar(ElementwiseScalar):
    """y = a * scalar: dy = scalar * da."""

    function = "multiply"

    def gradient(self, out_grad, node):
        return out_grad * self.scalar


def mul_scalar(a, scalar):
    """a * scalar."""
    return MulScalar(scalar)(a)


class EWiseDiv(Elementwise):
    """y = a / b: dy = da / b - (y / b) * db."""

    function = "divide"

    def gradient(self, out_grad, node):
        b = node.inputs[1]
        return out_grad / b, -(out_grad * node) / b


def divide(a, b):
    """a / b, element by element, broadcast."""
    return EWiseDiv()(a, b)


class DivScalar(ElementwiseScalar):
    """y = a / scalar: dy = da / scalar."""

    function = "divide"

    def gradient(self, out_grad, node):
        return out_grad / self.scalar


def divide_scalar(a, scalar):
    """a / scalar."""
    return DivScalar(scalar)(a)


class EWisePow(Elementwise):
    """y = a ** b: dy = b * a ** (b - 1) * da + y * log(a) * db."""

    function = "power"

    def gradient(self, out_grad, node):
        a, b = node.inputs
        # The slope of a**b in a is b * a**(b - 1): 0 where b is 0, even at a = 0, where 1 stands in for a.
        # Its slope in b is a**b * log(a), with the limit 0 at a = 0: log(1) stands in for log(0).
        base = a + compare(a, "eq", 0) * compare(b, "eq", 0)
        slope_a = b * base ** (b - 1)
        slope_b = node * log(a + compare(a, "eq", 0)) if b.requires_grad else None
        return out_grad * slope_a, None if slope_b is None else out_grad * slope_b


def power(a, b):
    """a ** b, element by element, broadcast."""
    return EWisePow()(a, b)


class PowerScalar(ElementwiseScalar):
    """y = a ** scalar: dy = scalar * a ** (scalar - 1) * da."""

    function = "power"

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        if self.scalar == 0:
            return out_grad * 0
        return out_grad * (self.scalar * a ** (self.scalar - 1))


def power_scalar(a, scalar):
    """a ** scalar."""
    return PowerScalar(scalar)(a)


class Maximum(Elementwise):
    """y = max(a, b): dy is da where a is the larger, db where b is, their mean where both are."""

    function = "maximum"
    wins = "gt"  # how the operand that comes out stands to the other one

    def gradient(self, out_grad, node):
        a, b = node.inputs
        tie = compare(a, "eq", b) * 0.5  # where both are the maximum, each gets half
        return out_grad * (compare(a, self.wins, b) + tie), out_grad * (compare(b, self.wins, a) + tie)


def maximum(a, b):
    """The larger of a and b, element by element, broadcast; NaN where one is NaN."""
    return Maximum()(a, b)


class Minimum(Maximum):
    """y = min(a, b): dy is da where a is the smaller, db where b is, their mean where both are."""

    function = "minimum"
    wins = "lt"


def minimum(a, b):
    """The smaller of a and b, element by element, broadcast; NaN where one is NaN."""
    return Minimum()(a, b)


class Clip(Elementwise):
    """y = a within `low` and `high`, either of which may be None: dy = da there, 0 beyond."""

    def __init__(self, low=None, high=None):
        self.low = low
        self.high = high

    def bounds(self) -> list[tuple[str, str, float]]:
        """For each bound the function that keeps to it, how what keeps to it compares, and the bound."""
        both = [("maximum", "ge", self.low), ("minimum", "le", self.high)]
        return [bound for bound in both if bound[2] is not None]

    def infer(self, a):
        spec = Spec(a.shape, a.dtype, a.device)
        for function, _, bound in self.bounds():
            spec = spec._replace(dtype=result_dtype(function, spec, bound))
        return spec

    def compute(self, a):
        for function, _, bound in self.bounds():
            a = elementwise(function, a, bound)
        return a

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        for _, relation, bound in self.bounds():
            out_grad = keep(out_grad, compare(a, relation, bound))
        return out_grad


def clip(a, low=None, high=None):
    """`a` where it lies between the numbers `low` and `high`, the nearer of them elsewhere; None: no bound.

    The slope is 1 from `low` to `high`, these included.
    """
    for bound in (low, high):
        if bound is not None and not isinstance(bound, Real):
            raise TypeError(
                f"clip: a bound is a number or None, got a {type(bound).__name__}; where each element has "
                "bounds of its own use maximum and minimum"
            )
    return Clip(low, high)(a)


class Keep(Elementwise):
    """y = a where b is not 0, else 0: dy = da there. What is not kept may be infinite or NaN."""

    function = "keep"

    def gradient(self, out_grad, node):
        return keep(out_grad, node.inputs[1]), None


def keep(a, b):
    """`a` where `b` is not 0, else 0, even where `a` is infinite or NaN; broadcast."""
    return Keep()(a, b)


class Where(Elementwise):
    """y = a where the condition is not 0, else b: dy is da or db."""

    def infer(self, condition, a, b):
        shape = broadcast_shape("where", condition.shape, a.shape, b.shape)
        return Spec(shape, result_dtype("add", a, b), common_device("where", (condition, a, b)))

    def compute(self, condition, a, b):
        dtype = result_dtype("add", a, b)
        if condition.dtype != dtype:
            is_bool = condition.dtype == bool
            condition = (condition if is_bool else elementwise("ne", condition, 0)).astype(dtype)
        kept = elementwise("keep", a, condition)
        return elementwise("add", kept, elementwise("keep", b, elementwise("eq", condition, 0)))

    def gradient(self, out_grad, node):
        condition, a, b = node.inputs
        return (
            None,
            keep(out_grad, condition) if a.requires_grad else None,
            keep(out_grad, compare(condition, "eq", 0)) if b.requires_grad else None,
        )


def where(condition, a, b):
    """`a` where the condition is not 0, else `b`, element by element; broadcast.

    The branch that is not taken has no part in value or gradient, even where it is infinite or NaN.

    Parameters
    ----------
    condition : Tensor or array
        No gradient flows to it.
    a, b : Tensor, array or number
        At least one of the three is a Tensor; the others become constants beside it.
    """
    tensor = next((x for x in (a, b, condition) if isinstance(x, TensorOp.out)), None)
    if tensor is None:
        raise TypeError("where: at least one operand must be a Tensor; wrap one: needle.Tensor(...)")
    dtype = tensor.dtype if tensor.dtype.kind == "f" else None
    return Where()(
        _constant(condition, tensor.device, "bool"),
        _constant(a, tensor.device, dtype),
        _constant(b, tensor.device, dtype),
    )


def _constant(x, device, dtype):
    """A Tensor as it is; a number or an array as a constant."""
    if isinstance(x, TensorOp.out):
        return x
    return TensorOp.out(x, device=device, dtype=dtype, requires_grad=False)


class Compare(Elementwise):
    """1 where the relation holds, else 0; a step function, through which no gradient flows."""

    differentiable = False

    def __init__(self, function: str):
        self.function = function


class CompareScalar(ElementwiseScalar):
    """1 where the relation to a number holds, else 0; a step function, through which no gradient flows."""

    differentiable = False

    def __init__(self, function: str, scalar):
        super().__init__(scalar)
        self.function = function


def compare(a, relation: str, b):
    """1 where a stands in `relation` to b, else 0, in the dtype of the operands; no gradient flows through.

    Parameters
    ----------
    a : Tensor
    b : Tensor or number
    relation : "eq", "ne", "lt", "le", "gt" or "ge"
        =, ≠, <, ≤, > or ≥.
    """
    return Compare(relation)(a, b) if isinstance(b, TensorOp.out) else CompareScalar(relation, b)(a)


class Negate(Elementwise):
    """y = -a: dy = -da."""

    function = "negate"

    def gradient(self, out_grad, node):
        return -out_grad


def negate(a):
    """-a."""
    return Negate()(a)


class Log(Elementwise):
    """y = log(a): dy = da / a."""

    function = "log"

    def gradient(self, out_grad, node):
        return out_grad / node.inputs[0]


def log(a):
    """The natural logarithm."""
    return Log()(a)


class Exp(Elementwise):
    """y = exp(a): dy = y * da."""

    function = "exp"

    def gradient(self, out_grad, node):
        return out_grad * node


def exp(a):
    """The exponential function."""
    return Exp()(a)


class Sqrt(Elementwise):
    """y = sqrt(a): dy = da / (2 * y)."""

    function = "sqrt"

    def gradient(self, out_grad, node):
        return out_grad / (node * 2)


def sqrt(a):
    """The square root."""
    return Sqrt()(a)


class Sign(Elementwise):
    """1, 0 or -1 where a is positive, 0 or negative; a step function, through which no gradient flows."""

    function = "sign"
    differentiable = False


def sign(a):
    """1 where a is positive, -1 where it is negative, 0 where it is 0; no gradient flows through."""
    return Sign()(a)


class Abs(Elementwise):
    """y = abs(a): dy = sign(a) * da."""

    function = "abs"

    def gradient(self, out_grad, node):
        return out_grad * sign(node.inputs[0])


def abs(a):
    """The absolute value, with slope 0 at 0."""
    return Abs()(a)


class Sin(Elementwise):
    """y = sin(a): dy = cos(a) * da."""

    function = "sin"

    def gradient(self, out_grad, node):
        return out_grad * cos(node.inputs[0])


def sin(a):
    """The sine."""
    return Sin()(a)


class Cos(Elementwise):
    """y = cos(a): dy = -sin(a) * da."""

    function = "cos"

    def gradient(self, out_grad, node):
        return -(out_grad * sin(node.inputs[0]))


def cos(a):
    """The cosine."""
    return Cos()(a)


class ReLU(Elementwise):
    """y = max(a, 0): dy = da where y > 0, else 0."""

    function = "relu"

    def gradient(self, out_grad, node):
        return keep(out_grad, node)


def relu(a):
    """max(a, 0), with slope 0 at 0."""
    return ReLU()(a)


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


class LeakyReLU(ElementwiseScalar):
    """y = a, times the scalar where it is negative: dy = da, times the scalar there."""

    function = "leaky_relu"

    def gradient(self, out_grad, node):
        negative = compare(node.inputs[0], "lt", 0)
        return where(negative, out_grad * self.scalar, out_grad)


def leaky_relu(a, slope=0.01):
    """`a` where it is positive, ``slope * a`` where it is negative, with slope 1 at 0."""
    return LeakyReLU(slope)(a)


class GELU(Elementwise):
    """y = a * s(a) with a step s that is smoothed: dy = (s(a) + a * s'(a)) * da.

    ``approximate="none"``: s is the normal distribution's cumulative function, (1 + erf(a / sqrt(2))) / 2.
    ``approximate="tanh"``: s is the sigmoid of sqrt(8 / pi) * (a + 0.044715 * a ** 3).
    """

    def __init__(self, approximate: str = "none"):
        if approximate not in ("none", "tanh"):
            raise ValueError(f'gelu: approximate is "none" or "tanh", not {approximate!r}')
        self.approximate = approximate

    @property
    def function(self):  # type: ignore[override]
        return "erf" if self.approximate == "none" else "sigmoid"

    def argument(self, a):
        """What the error function, or the sigmoid, is taken of: for a Tensor or an array `a`."""
        if self.approximate == "none":
            return a * math.sqrt(1 / 2)
        return (a * a * 0.044715 + 1) * a * math.sqrt(8 / math.pi)

    def compute(self, a):
        if a.dtype.kind != "f":
            a = a.astype(result_dtype(self.function, a))
        step = elementwise(self.function, self.argument(a))
        return a * step if self.approximate == "tanh" else a * 0.5 * (step + 1)

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
        "tanh": the formula that the paper gives for a faster computation, right to three digits.
    """
    return GELU(approximate)(a)


class Identity(Movement):
    """The same array. It stands where the earlier value of a Tensor that was written to is meant."""

    def out_shape(self, shape):
        return shape

    def compute(self, a):
        return a

    def gradient(self, out_grad, node):
        return out_grad


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
        return out_grad.permute(tuple(sorted(range(len(order)), key=order.__getitem__)))


def permute(a, axes):
    """The axes in another order: axis i of the result is axis ``axes[i]`` of `a`."""
    return Permute(axes)(a)


class Transpose(Movement):
    """Two axes swapped; the gradient swaps them back."""

    def __init__(self, axes: tuple[int, int] | None = None):
        self.axes = None if axes is None else as_shape(axes)

    def order(self, ndim: int) -> list[int]:
        """All axes, with the two of this transpose swapped."""
        if self.axes is None and ndim < 2:
            raise ValueError(f"transpose: needs 2 axes to swap, the operand has {ndim}")
        axes = normal_axes("transpose", (-2, -1) if self.axes is None else self.axes, ndim)
        if len(axes) != 2:
            raise ValueError(f"transpose: swaps two axes, got {self.axes}; permute takes any order of axes")
        order = list(range(ndim))
        order[axes[0]], order[axes[1]] = axes[1], axes[0]
        return order

    def out_shape(self, shape):
        return tuple([shape[i] for i in self.order(len(shape))])

    def compute(self, a):
        return array_permute(a, tuple(self.order(len(a.shape))))

    def gradient(self, out_grad, node):
        return out_grad.transpose(self.axes)


def transpose(a, axes=None):
    """Two axes swapped; by default the last two."""
    return Transpose(axes)(a)


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


def reshape(a, shape):
    """The same elements in another shape, in row-major order; one size may be -1."""
    return Reshape(shape)(a)


class BroadcastTo(Movement):
    """The same elements repeated along some axes; the gradient sums over the repetitions."""

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
    """Repeated along axes of size 1, and along new axes in front, to `shape`; no element is copied."""
    return BroadcastTo(shape)(a)


class Summation(Reduction):
    """A sum along axes; the gradient is copied along them."""

    needs_elements = False

    def out_dtype(self, a):
        return a.dtype if a.dtype.kind == "f" else np.dtype("int64")

    def compute(self, a):
        return (a if a.dtype.kind == "f" else a.astype("int64")).sum(axis=self.axes)

    def gradient(self, out_grad, node):
        return self.spread(out_grad, node.inputs[0].shape)


def summation(a, axes=None):
    """The sum over `axes`: None (all), an int or a tuple."""
    return Summation(axes)(a)


def mean(a, axes=None):
    """The mean over `axes`: None (all), an int or a tuple."""
    total = summation(a, axes)
    return total / (a.size // total.size if total.size else math.nan)


class Max(Reduction):
    """A maximum along axes; the elements that are the maximum share the gradient equally."""

    def compute(self, a):
        return a.max(axis=self.axes)

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        where = compare(a, "eq", self.spread(node, a.shape))
        share = out_grad / where.sum(self.axes)  # elements that are the maximum together share its gradient
        return self.spread(share, a.shape) * where


def max(a, axes=None):
    """The largest element along `axes`: None (all), an int or a tuple."""
    return Max(axes)(a)


class Min(Max):
    """A minimum along axes; the elements that are the minimum share the gradient equally."""

    def compute(self, a):
        return a.min(axis=self.axes)


def min(a, axes=None):
    """The smallest element along `axes`: None (all), an int or a tuple."""
    return Min(axes)(a)


class ArgMax(Reduction):
    """Where the maximum is; a step function, through which no gradient flows."""

    differentiable = False

    def out_dtype(self, a):
        return np.dtype("int64")

    def compute(self, a):
        axis: Any = self.axes  # None or an int
        return array_from_numpy(to_numpy(a).argmax(axis), dtype="int64", device=device_of(a))


def argmax(a, axes=None):
    """The number (int64) of the largest element along an axis, the first of several; no gradient.

    Parameters
    ----------
    a : Tensor
    axes : int, optional
        One axis. None: the number in row-major order among all elements.
    """
    if axes is not None and not isinstance(axes, Integral):
        raise TypeError(f"argmax: needs one axis, or None for all elements; got {axes!r}")
    return ArgMax(axes if axes is None else operator.index(axes))(a)


class MatMul(TensorOp):
    """y = a @ b: dy = da @ b + a @ db, so that the adjoints are out_grad @ b.T and a.T @ out_grad."""

    def infer(self, a, b):
        dtype = np.result_type(a.dtype, b.dtype)
        return Spec(product_shape(a.shape, b.shape), dtype, common_device("matmul", (a, b)))

    def compute(self, a, b):
        return a @ b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        # A matrix product is dear: none is computed for an operand that needs no gradient, as input data.
        return (
            conform(out_grad @ b.transpose(), a) if a.requires_grad else None,
            conform(a.transpose() @ out_grad, b) if b.requires_grad else None,
        )


def matmul(a, b):
    """The matrix product over the last two axes; axes in front are a batch and broadcast.

    A vector counts as a row on the left and as a column on the right; its axis is dropped from the result, as
    in NumPy.
    """
    matrices = a.ndim > 1 and b.ndim > 1
    if matrices or not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        return MatMul()(a, b)  # what does not fit is an error of the operator, which knows its operands
    rows = a.reshape((1, *a.shape)) if a.ndim == 1 else a
    columns = b.reshape((*b.shape, 1)) if b.ndim == 1 else b
    product = MatMul()(rows, columns)
    *batch, n, m = product.shape
    return product.reshape((*batch, *([n] if a.ndim > 1 else []), *([m] if b.ndim > 1 else [])))


class ToDevice(TensorOp):
    """The same numbers on another device; the gradient comes back."""

    def __init__(self, device):
        self.device = device

    def infer(self, a):
        self.device.empty(())  # an error if the device is not enabled
        return Spec(a.shape, a.dtype, self.device)

    def compute(self, a):
        return array_from_numpy(to_numpy(a), dtype=a.dtype, device=self.device)

    def gradient(self, out_grad, node):
        return out_grad.to(node.inputs[0].device)


def to_device(a, device):
    """A copy of `a` on `device`."""
    return ToDevice(device)(a)


class Cast(TensorOp):
    """The same numbers in another dtype; the gradient comes back in the old one."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def infer(self, a):
        device_of(a).empty((), self.dtype)  # an error if there are no such arrays
        return Spec(a.shape, self.dtype, a.device)

    def compute(self, a):
        return a.astype(self.dtype)

    def gradient(self, out_grad, node):
        return out_grad.astype(node.inputs[0].dtype)


def cast(a, dtype):
    """The same numbers in another dtype."""
    return Cast(dtype)(a)
