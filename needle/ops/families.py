"""The four families of operators. A family gives `infer` and `compute` once; an operator adds its gradient.

==============  =======================================================
========================================== elementwise     one scalar function at every position
add, exp, relu, ... movement        the same numbers seen through another shape              reshape,
permute, broadcast_to, ... reduction       one number out of many, along axes
summation, max contraction     sums of products                                         matmul
==============  =======================================================
==========================================
"""

from __future__ import annotations

from functools import cache
from numbers import Real

import numpy as np

from ..backend_ndarray.scalar_functions import COMPARISONS, SCALAR_FUNCTIONS
from ..backend_selection import elementwise
from ..graph import Spec, TensorOp


def result_dtype(function: str, *operands) -> np.dtype:
    """The dtype of a scalar function's result: what its NumPy form makes of an empty array of each dtype."""
    return _result_dtype(function, tuple([type(x) if isinstance(x, Real) else x.dtype for x in operands]))


@cache
def _result_dtype(function: str, types: tuple) -> np.dtype:
    samples = [
        np.empty(0, t) if isinstance(t, np.dtype) else (1.5 if issubclass(t, np.floating) else t(1))
        for t in types
    ]
    return (
        np.result_type(*samples)
        if function in COMPARISONS
        else SCALAR_FUNCTIONS[function].numpy(*samples).dtype
    )


def common_device(name: str, inputs):
    """The one device of all inputs."""
    device = inputs[0].device
    for x in inputs[1:]:
        if x.device != device:
            raise ValueError(
                f"{name}: operands are on {device} and {x.device}; move one of them: tensor.to({device})"
            )
    return device


def normalize_axes(name: str, axes, ndim: int) -> tuple[int, ...]:
    """Axes as a tuple of non-negative numbers: None means all, an int means that one, -1 the last."""
    if axes is None:
        return tuple(range(ndim))
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    for axis in given:
        if not -ndim <= axis < ndim:
            raise ValueError(
                f"{name}: axis {axis} is out of range for {ndim} dimension(s): use {-ndim} to {ndim - 1}"
            )
    normal = tuple(axis % ndim for axis in given)
    if len(set(normal)) < len(normal):
        raise ValueError(f"{name}: axes {given} name an axis twice")
    return normal


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all broadcast to: aligned at the right, sizes are equal or 1."""
    ndim = max(map(len, shapes))
    out = []
    for axis in range(-ndim, 0):
        sizes = {shape[axis] for shape in shapes if -axis <= len(shape)}
        wide = sizes - {1}
        if len(wide) > 1:
            raise ValueError(
                f"{name}: shapes {' and '.join(map(str, shapes))} do not broadcast: along axis {axis} the sizes are "
                f"{' and '.join(map(str, sorted(wide)))}; they must be equal, or one of them 1 (see reshape)"
            )
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def sum_to(a, shape: tuple[int, ...]):
    """The transpose of broadcasting `shape` to ``a.shape``: `a`, summed over the axes that broadcasting
    repeated."""
    if a.shape == shape:
        return a
    lead = len(a.shape) - len(shape)
    repeated = tuple(i for i in range(len(a.shape)) if i < lead or shape[i - lead] != a.shape[i])
    return a.sum(repeated).reshape(shape)


def conform(partial, x):
    """A partial adjoint in the shape and dtype of its operand `x`: broadcasting and type promotion undone."""
    if partial.shape != x.shape:
        partial = sum_to(partial, x.shape)
    return partial if partial.dtype == x.dtype or x.dtype.kind != "f" else partial.astype(x.dtype)


class Elementwise(TensorOp):
    """One scalar function at every position; operands of different shapes are broadcast.

    `gradient` is written as for operands of equal shapes; `gradient_as_tuple` makes its results conform.
    """

    function: str  # a row of the table in backend_ndarray/scalar_functions.py

    def infer(self, *inputs):
        name = type(self).__name__
        return Spec(
            broadcast_shapes(name, *[x.shape for x in inputs]),
            result_dtype(self.function, *self.operands(*inputs)),
            common_device(name, inputs),
        )

    def operands(self, *inputs) -> tuple:
        """What the scalar function is given: the inputs, and a scalar where the operator has one."""
        return inputs

    def compute(self, *arrays):
        return elementwise(self.function, *self.operands(*arrays))

    def gradient_as_tuple(self, out_grad, node) -> tuple:
        partials = super().gradient_as_tuple(out_grad, node)
        return tuple(
            [
                partial if partial is None else conform(partial, x)
                for x, partial in zip(node.inputs, partials, strict=True)
            ]
        )


class ElementwiseScalar(Elementwise):
    """A scalar function of an array and one number, ``op.scalar``."""

    def __init__(self, scalar):
        self.scalar = scalar.item() if isinstance(scalar, np.generic) else scalar

    def operands(self, a):
        return a, self.scalar


class Movement(TensorOp):
    """The same numbers seen through another shape, most often without a copy."""

    def infer(self, a):
        return Spec(self.out_shape(a.shape), a.dtype, a.device)

    def out_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result; ValueError for a shape that does not fit."""
        raise NotImplementedError


class Reduction(TensorOp):
    """One number out of many, along `axes`: None (all), an int or a tuple; they vanish from the shape."""

    def __init__(self, axes: int | tuple[int, ...] | None = None):
        self.axes = axes

    def infer(self, a):
        return Spec(self.kept_shape(a.shape, keep=False), a.dtype, a.device)

    def kept_shape(self, shape: tuple[int, ...], keep: bool = True) -> tuple[int, ...]:
        """`shape` with the reduced axes of size 1, or (``keep=False``) without them."""
        axes = normalize_axes(type(self).__name__, self.axes, len(shape))
        if keep:
            return tuple(1 if i in axes else n for i, n in enumerate(shape))
        return tuple(n for i, n in enumerate(shape) if i not in axes)

    def spread(self, reduced, shape: tuple[int, ...]):
        """A Tensor of the reduced shape, repeated along the reduced axes to `shape`."""
        return reduced.reshape(self.kept_shape(shape)).broadcast_to(shape)
