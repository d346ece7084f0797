"""Tuples of Tensors as nodes of the graph: packing, taking one out, and operators with several results."""

from __future__ import annotations

from functools import reduce
from operator import add

from ..backend_ndarray.shapes import python_number, result_dtype
from ..backend_selection import device_of, elementwise, full
from ..graph import Spec, TensorOp, TensorTupleOp

__all__ = [
    "FusedAddScalars", "MakeTensorTuple", "TupleGetItem", "ZerosButOne", "fused_add_scalars", "make_tuple",
    "sum_tuples", "tuple_get_item",
]  # fmt: skip


def spec_of(x) -> Spec:
    """Shape, dtype and device of an array, or of a value not computed yet."""
    return Spec(x.shape, x.dtype, x.device)


def zeros_like_spec(x):
    """An array of zeros with the shape, dtype and device of `x`."""
    return full(x.shape, 0, dtype=x.dtype, device=device_of(x))


class MakeTensorTuple(TensorTupleOp):
    """Tensors as one TensorTuple; the gradient takes it apart."""

    def infer(self, *inputs):
        return tuple(map(spec_of, inputs))

    def compute(self, *arrays):
        return arrays

    def gradient(self, out_grad, node):
        return tuple([out_grad[i] for i in range(len(node.inputs))])


def make_tuple(*a):
    """The Tensors `a` as one TensorTuple."""
    return MakeTensorTuple()(*a)


class TupleGetItem(TensorOp):
    """One Tensor out of a TensorTuple; the gradient is zeros but for that one."""

    def __init__(self, index: int):
        self.index = index

    def infer(self, items):
        return spec_of(items[self.index])

    def compute(self, arrays):
        return arrays[self.index]

    def gradient(self, out_grad, node):
        return ZerosButOne(self.index, node.inputs[0].specs)(out_grad)


def tuple_get_item(value, index: int):
    """The Tensor at `index` of a TensorTuple; of one made by `make_tuple`, that very Tensor."""
    index = python_number(index)
    if not isinstance(index, int):
        raise TypeError(f"tuple_get_item: needs an int, got {index!r}; .tuple() can be sliced")
    length = len(value)
    if not -length <= index < length:
        raise IndexError(f"tuple_get_item: index {index} is out of range for a TensorTuple of {length}")
    index %= length
    if isinstance(value.op, MakeTensorTuple):
        return value.input_as_built(index)
    return TupleGetItem(index)(value)


class ZerosButOne(TensorTupleOp):
    """A tuple of zeros with the operand at one index: the adjoint of a tuple from which one item was taken.

    When all items of a long tuple are taken one by one, these tuples are never computed: `sum_tuples` reads
    their operands instead, so that the work grows with the length and not with its square.
    """

    deferred = True

    def __init__(self, index: int, specs):
        self.index = index
        self.specs = specs

    def infer(self, a):
        return self.specs

    def compute(self, a):
        return tuple([a if i == self.index else zeros_like_spec(x) for i, x in enumerate(self.specs)])

    def gradient(self, out_grad, node):
        return out_grad[self.index]


def partials_of_items(out_grad) -> list:
    """The adjoint of each item of a tuple; None for an item that was not used."""
    if isinstance(out_grad.op, ZerosButOne):
        return [out_grad.inputs[0] if i == out_grad.op.index else None for i in range(len(out_grad))]
    return list(out_grad.tuple())


def sum_tuples(tuples):
    """The sum of TensorTuples of one length, item by item."""
    specs = tuples[0].specs
    items: list[list] = [[] for _ in specs]
    for value in tuples:
        if isinstance(value.op, ZerosButOne):
            items[value.op.index].append(value.inputs[0])
        else:
            for i in range(len(specs)):
                items[i].append(value[i])
    zeros = TensorOp.out.make_const
    return make_tuple(
        *[reduce(add, x) if x else zeros(zeros_like_spec(spec)) for x, spec in zip(items, specs, strict=True)]
    )


class FusedAddScalars(TensorTupleOp):
    """y = (a + c0, a + c1): dy = (da, da)."""

    def __init__(self, c0, c1):
        self.c0 = python_number(c0)
        self.c1 = python_number(c1)

    def infer(self, a):
        return tuple([Spec(a.shape, result_dtype("add", a, c), a.device) for c in (self.c0, self.c1)])

    def compute(self, a):
        return elementwise("add", a, self.c0), elementwise("add", a, self.c1)

    def gradient(self, out_grad, node):
        return out_grad[0] + out_grad[1]


def fused_add_scalars(x, c0, c1):
    """The TensorTuple (x + c0, x + c1)."""
    return FusedAddScalars(c0, c1)(x)
