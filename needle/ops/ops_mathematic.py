"""Arithmetic, matrix multiplication, shapes and sums: each operator is its attributes and its gradient.

An operator's first line gives its differential dy. `gradient` turns it round: it is told `out_grad`, the
derivative of the output by y, and answers with the derivative by each operand (the vector-Jacobian
product).
"""

from __future__ import annotations

import math

import numpy as np

from ..backend_ndarray.shapes import (
    as_shape,
    check_broadcast,
    filled_shape,
    normal_axes,
    permuted_order,
    product_shape,
)
from ..backend_selection import array_from_numpy, device_of, to_numpy
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

    def gradient(self, out_grad, node):
        a, b = node.inputs
        tie = compare(a, "eq", b) * 0.5  # where both are the maximum, each gets half
        return out_grad * (compare(a, "gt", b) + tie), out_grad * (compare(b, "gt", a) + tie)


def maximum(a, b):
    """The larger of a and b, element by element, broadcast; NaN where one is NaN."""
    return Maximum()(a, b)


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


class ReLU(Elementwise):
    """y = max(a, 0): dy = da where a > 0, else 0."""

    function = "relu"

    def gradient(self, out_grad, node):
        return out_grad * compare(node.inputs[0], "gt", 0)


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
    if a.ndim > 1 and b.ndim > 1:
        return MatMul()(a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul: {a.shape} @ {b.shape}: a number has no axis to multiply along; use *")
    n, m = a.shape[-1], b.shape[-2 if b.ndim > 1 else 0]
    if n != m:
        raise ValueError(f"matmul: {a.shape} @ {b.shape}: inner sizes {n} and {m} differ")
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
