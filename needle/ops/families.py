"""The families of operators. A family gives `infer` once, and `compute` where it can.

- elementwise: one scalar function at every position (add, exp, relu …); `Pointwise` operators are computed
  position by position too, but by several scalar functions (clip, where, gelu);
- movement: the same numbers in another shape or order (reshape, permute, broadcast_to …);
- reduction: one number out of many, along axes (summation, max …);
- contraction: sums of products; `MatMul` and `Conv` stand alone.
"""

from __future__ import annotations

from ..backend_ndarray.device import common_device
from ..backend_ndarray.shapes import (
    broadcast_shape,
    hashable_axes,
    python_number,
    reduced_shape,
    result_dtype,
)
from ..backend_selection import elementwise
from ..graph import Spec, TensorOp


def sum_to(a, shape: tuple[int, ...]):
    """`a` summed over the axes along which `shape` was broadcast to ``a.shape``."""
    if a.shape == shape:
        return a
    new = len(a.shape) - len(shape)
    repeated = tuple([i for i, n in enumerate(a.shape) if i < new or shape[i - new] != n])
    total = a.sum(repeated)
    return total if total.shape == shape else total.reshape(shape)


def unbroadcast(partial, x):
    """A partial adjoint in the shape and dtype of its operand `x`: broadcasting and type promotion undone.

    None stays None. An operand of integers gets a partial adjoint of floats.
    """
    if partial is None:
        return None
    if partial.shape != x.shape:
        partial = sum_to(partial, x.shape)
    return partial if partial.dtype == x.dtype or x.dtype.kind != "f" else partial.astype(x.dtype)


def gradient_dtype(x):
    """The dtype of the gradient of `x`: its own for floats, a floating-point one for anything else."""
    return x.dtype if x.dtype.kind == "f" else result_dtype("exp", x)


def check_keywords(name: str, misnamed: dict) -> None:
    """Raise TypeError for keywords that have another name here: `axis` and `dim` are `axes`."""
    for keyword in misnamed:
        ours = "axes" if keyword in ("axis", "dim", "dims") else "keepdims" if keyword == "keepdim" else None
        hint = f"; write {ours}=" if ours else ""
        raise TypeError(f"{name}: there is no keyword {keyword}={hint}")


class Pointwise(TensorOp):
    """At every position a number out of those that the operands have there; shapes are broadcast.

    `gradient` is written as if the operands had equal shapes; `gradient_as_tuple` undoes the broadcasting.
    """

    def gradient_as_tuple(self, out_grad, node) -> tuple:
        partials = self.gradient(out_grad, node)
        if not isinstance(partials, (tuple, list)):
            return (partials,)  # a single operand is not broadcast
        for partial, x in zip(partials, node.inputs):  # noqa: B905 - strict=True takes twice as long
            if partial is not None and (partial.shape != x.shape or partial.dtype is not x.dtype):
                return tuple([unbroadcast(p, x) for p, x in zip(partials, node.inputs, strict=True)])
        return tuple(partials)


class Elementwise(Pointwise):
    """One scalar function at every position; operands of different shapes are broadcast."""

    function: str  # a row of the table in backend_ndarray/scalar_functions.py

    def infer(self, *inputs):
        return Spec(
            broadcast_shape(self.function, *[x.shape for x in inputs]),
            result_dtype(self.function, *self.operands(*inputs)),
            common_device(self.function, inputs),
        )

    def operands(self, *inputs) -> tuple:
        """What the scalar function is given: the inputs, and a scalar where the operator has one."""
        return inputs

    def compute(self, *arrays):
        return elementwise(self.function, *arrays)


class ElementwiseScalar(Elementwise):
    """A scalar function of an array and one number, ``op.scalar``."""

    def __init__(self, scalar):
        self.scalar = python_number(scalar)

    def operands(self, a):
        return a, self.scalar

    def compute(self, a):
        return elementwise(self.function, a, self.scalar)


class Movement(TensorOp):
    """The same numbers in another shape or order, most often without a copy."""

    def infer(self, a):
        return Spec(self.out_shape(a.shape), a.dtype, a.device)

    def out_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result; ValueError for a shape that does not fit."""
        raise NotImplementedError


class Reduction(TensorOp):
    """One number out of many, along `axes`: None (all), an int or a tuple; they vanish from the shape."""

    needs_elements = True  # False if an empty input has a result, as an empty sum is 0

    def __init__(self, axes: int | tuple[int, ...] | None = None):
        self.axes = axes if axes is None else hashable_axes(axes)

    def infer(self, a):
        shape = self.out_shape(a.shape)
        if self.needs_elements and 0 in a.shape and 0 not in shape:
            name = type(self).__name__.lower()
            raise ValueError(
                f"{name}: shape {a.shape} has no element along axes {self.axes} to take the {name} of"
            )
        return Spec(shape, self.out_dtype(a), a.device)

    def out_shape(self, shape: tuple[int, ...], keepdims: bool = False) -> tuple[int, ...]:
        """`shape` without the reduced axes, or with length 1 there."""
        return reduced_shape(type(self).__name__.lower(), shape, self.axes, keepdims)

    def out_dtype(self, a):
        """The dtype of the result."""
        return a.dtype

    def spread(self, reduced, shape: tuple[int, ...]):
        """A Tensor of the reduced shape, repeated along the reduced axes to `shape`."""
        if reduced.shape:  # a single number broadcasts as it is
            reduced = reduced.reshape(self.out_shape(shape, keepdims=True))
        return reduced.broadcast_to(shape)

    def keeping(self, a):
        """Reduce `a` and keep the reduced axes with length 1."""
        return self(a).reshape(self.out_shape(a.shape, keepdims=True))
