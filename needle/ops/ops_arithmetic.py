"""Arithmetic: ``+ - * / **``, functions of one number, and the matrix product.

The first line of an operator gives its differential dy. `gradient` reads it backwards: from `out_grad`, the
derivative of the output with respect to y, it makes the derivative with respect to each operand. That is the
vector-Jacobian product.
"""

from __future__ import annotations

import numpy as np

from ..backend_ndarray.device import common_device
from ..backend_ndarray.shapes import product_shape
from ..graph import Spec, TensorOp
from .families import Elementwise, ElementwiseScalar, unbroadcast
from .ops_selection import compare

__all__ = [
    "Abs", "AddScalar", "Cos", "DivScalar", "EWiseAdd", "EWiseDiv", "EWiseMul", "EWisePow", "Exp", "Log",
    "MatMul", "MulScalar", "Negate", "PowerScalar", "Sign", "Sin", "Sqrt", "abs", "add", "add_scalar", "cos",
    "divide", "divide_scalar", "exp", "log", "matmul", "mul_scalar", "multiply", "negate", "power",
    "power_scalar", "sign", "sin", "sqrt",
]  # fmt: skip


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
        # Nothing is computed for a constant.
        return out_grad * b if a.requires_grad else None, out_grad * a if b.requires_grad else None


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
        a, b = node.inputs
        return (
            out_grad / b if a.requires_grad else None,
            -(out_grad * node) / b if b.requires_grad else None,
        )


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
        # With respect to a the slope is b * a**(b - 1); where a = b = 0 we use a = 1, to avoid 0 ** -1.
        # With respect to b it is a**b * log(a). At a = 0 its limit is 0 for b > 0, and for b = 0 we
        # take 0, too: there we use log(1) for log(0).
        a_is_0 = compare(a, "eq", 0)
        base = a + a_is_0 * compare(b, "eq", 0)
        slope_a = b * base ** (b - 1)
        slope_b = node * log(a + a_is_0 * compare(b, "ge", 0)) if b.requires_grad else None
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


class Negate(Elementwise):
    """y = -a: dy = -da."""

    function = "negate"

    def gradient(self, out_grad, node):
        return -out_grad


def negate(a):
    """-a."""
    return Negate()(a)


class Abs(Elementwise):
    """y = abs(a): dy = sign(a) * da."""

    function = "abs"

    def gradient(self, out_grad, node):
        return out_grad * sign(node.inputs[0])


def abs(a):
    """The absolute value, with slope 0 at 0."""
    return Abs()(a)


class Sign(Elementwise):
    """1, 0 or -1 where a is positive, 0 or negative; a step function, through which no gradient flows."""

    function = "sign"
    differentiable = False


def sign(a):
    """1 where a is positive, -1 where it is negative, 0 where it is 0; no gradient flows through."""
    return Sign()(a)


class Sqrt(Elementwise):
    """y = sqrt(a): dy = da / (2 * y)."""

    function = "sqrt"

    def gradient(self, out_grad, node):
        return out_grad / (node * 2)


def sqrt(a):
    """The square root."""
    return Sqrt()(a)


class Exp(Elementwise):
    """y = exp(a): dy = y * da."""

    function = "exp"

    def gradient(self, out_grad, node):
        return out_grad * node


def exp(a):
    """The exponential function."""
    return Exp()(a)


class Log(Elementwise):
    """y = log(a): dy = da / a."""

    function = "log"

    def gradient(self, out_grad, node):
        return out_grad / node.inputs[0]


def log(a):
    """The natural logarithm."""
    return Log()(a)


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


class MatMul(TensorOp):
    """y = a @ b: dy = da @ b + a @ db, so that the adjoints are out_grad @ b.T and a.T @ out_grad."""

    def infer(self, a, b):
        dtype = np.result_type(a.dtype, b.dtype)
        return Spec(product_shape(a.shape, b.shape), dtype, common_device("matmul", (a, b)))

    def compute(self, a, b):
        return a @ b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        # Matrix products are expensive: none is computed for an operand that needs no gradient, such as data.
        return (
            unbroadcast(out_grad @ b.transpose(), a) if a.requires_grad else None,
            unbroadcast(a.transpose() @ out_grad, b) if b.requires_grad else None,
        )


def matmul(a, b):
    """The matrix product over the last two axes; axes in front are a batch and broadcast.

    A vector counts as a row on the left and as a column on the right; its axis is dropped from the result, as
    in NumPy.
    """
    a_shape, b_shape = a.shape, b.shape
    matrices = len(a_shape) > 1 and len(b_shape) > 1
    if matrices or not a_shape or not b_shape or a_shape[-1] != b_shape[-2 if len(b_shape) > 1 else 0]:
        return MatMul()(a, b)  # if the shapes do not fit, this raises the error
    rows = a.reshape((1, *a.shape)) if a.ndim == 1 else a
    columns = b.reshape((*b.shape, 1)) if b.ndim == 1 else b
    product = MatMul()(rows, columns)
    *batch, n, m = product.shape
    return product.reshape((*batch, *([n] if a.ndim > 1 else []), *([m] if b.ndim > 1 else [])))
