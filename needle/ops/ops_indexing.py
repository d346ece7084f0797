"""Parts of Tensors, and Tensors put together: indexing, split, stack and concatenate.

These operators only move numbers, so the gradient of each is another one that moves them back. They come in
pairs: `Slice` and `ZerosButSlice`, `Take` and `ScatterAdd`, `Split` and `Stack`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ..backend_ndarray.device import common_device
from ..backend_ndarray.indexing import WHOLE, beyond, numpy_index, position, positions, sliced_length
from ..backend_ndarray.shapes import broadcast_shape, joined_shape, normal_axes, stacked_shape
from ..backend_selection import array_from_numpy, checked_index, device_of, full
from ..backend_selection import concatenate as array_concatenate
from ..backend_selection import one_hot as array_one_hot
from ..backend_selection import scatter_add as array_scatter_add
from ..backend_selection import stack as array_stack
from ..backend_selection import take as array_take
from ..backend_selection import unstack as array_unstack
from ..graph import Spec, TensorOp, TensorTupleOp, is_tensor
from .families import Movement, unbroadcast
from .ops_tuple import make_tuple

__all__ = [
    "Concatenate", "LookUp", "OneHot", "Position", "ScatterAdd", "Slice", "Split", "Stack", "Take",
    "ZerosButSlice", "concatenate", "getitem", "split", "stack",
]  # fmt: skip


class Slice(Movement):
    """A slice of each axis, or of the first ones; the gradient is zeros elsewhere."""

    def __init__(self, slices: tuple[slice, ...]):
        self.slices = slices

    def out_shape(self, shape):
        count = len(self.slices)
        if count > len(shape):
            raise ValueError(f"slice: {count} slices for the {len(shape)} axes of shape {shape}")
        lengths = [sliced_length(s, n) for s, n in zip(self.slices, shape[:count], strict=True)]
        return (*lengths, *shape[count:])

    def compute(self, a):
        return a[self.slices]

    def gradient(self, out_grad, node):
        return ZerosButSlice(self.slices, node.inputs[0].shape)(out_grad)


class ZerosButSlice(TensorOp):
    """Zeros of `shape` with the operand in a slice of it: the adjoint of what a slice was taken from."""

    def __init__(self, slices: tuple[slice, ...], shape: tuple[int, ...]):
        self.slices = slices
        self.shape = shape

    def infer(self, a):
        wanted = Slice(self.slices).out_shape(self.shape)
        if a.shape != wanted:
            raise ValueError(f"zeros but slice: the slice has shape {wanted}, the operand {a.shape}")
        return Spec(self.shape, a.dtype, a.device)

    def compute(self, a):
        out = full(self.shape, 0, dtype=a.dtype, device=device_of(a))
        out[self.slices] = a
        return out

    def gradient(self, out_grad, node):
        return Slice(self.slices)(out_grad)


class ByIndex(TensorOp):
    """An operator that picks or places elements along one axis, by an index.

    Its operands are an array and the index: whole numbers, on any device. Nobody reads them before the
    result is computed; then `checked_index` finds out where they lead. No gradient flows to the index.

    Parameters
    ----------
    axis : int
        Not below 0.
    length : int
        Length of the axis that is indexed. Numbers below 0 in the index are counted from its end.
    """

    def __init__(self, axis: int, length: int):
        self.axis = axis
        self.length = length

    def infer(self, a, index):
        return Spec(self.out_shape(a.shape, index.shape), self.out_dtype(a.dtype), a.device)

    def out_shape(self, shape: tuple[int, ...], index: tuple[int, ...]) -> tuple[int, ...]:
        """The result's shape, from those of the operands; ValueError if the operator is not for them."""
        old, new = self.lengths(index)
        behind = self.axis + len(old)
        if shape[self.axis : behind] != old:
            wanted = f"length {old[0]} along axis {self.axis}" if len(old) == 1 else f"{old} in the middle"
            raise ValueError(f"{self}: needs {wanted}, got shape {shape}")
        return (*shape[: self.axis], *new, *shape[behind:])

    def lengths(self, index: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lengths in the place of the axis before and after; `index` is the shape of the index."""
        raise NotImplementedError

    def out_dtype(self, dtype):
        """The dtype of the result."""
        return dtype


class Take(ByIndex):
    """The elements at given positions along an axis; the gradient is added up at these positions.

    The axes of the index take the place of that axis.
    """

    def lengths(self, index):
        return (self.length,), index

    def compute(self, a, index):
        self.out_shape(a.shape, index.shape)  # kernels do not check: nothing beyond the axis may be read
        return array_take(a, self.checked(a, index), self.axis)

    def checked(self, a, index):
        """The index without numbers below 0; IndexError for a number that leads beyond the axis."""
        return checked_index(index, self.length, partial(beyond, self.axis, a.shape), from_end=True)

    def gradient(self, out_grad, node):
        return ScatterAdd(self.axis, self.length)(out_grad, node.inputs[1]), None


class LookUp(Take):
    """The rows of a table with given numbers; unlike an index, these are not counted from the end."""

    def __init__(self, length: int):
        super().__init__(0, length)

    def checked(self, a, index):
        return checked_index(index, self.length, self.refusal)

    def refusal(self, lowest, highest) -> str:
        """What is said of numbers, from the lowest to the highest, that are not all in the table."""
        return f"Embedding: needs whole numbers in 0..{self.length - 1}, got {lowest}..{highest}"


class ScatterAdd(ByIndex):
    """Zeros, with elements added at given positions along an axis; the gradient takes them from there."""

    def lengths(self, index):
        return index, (self.length,)

    def out_dtype(self, dtype):
        return dtype if dtype.kind == "f" else np.dtype("int64")

    def compute(self, a, index):
        shape = self.out_shape(a.shape, index.shape)  # nothing beyond the axis may be written
        index = checked_index(index, self.length, partial(beyond, self.axis, shape), from_end=True)
        return array_scatter_add(a, index, self.axis, self.length)

    def gradient(self, out_grad, node):
        return Take(self.axis, self.length)(out_grad, node.inputs[1]), None


class Position(TensorOp):
    """Where an index points along an axis: numbers below 0 are counted from the end; a step function.

    Parameters
    ----------
    axis : int
    shape : tuple of int
        Of what is indexed.
    """

    differentiable = False

    def __init__(self, axis: int, shape: tuple[int, ...]):
        self.axis = axis
        self.shape = shape

    def infer(self, index):
        return Spec(index.shape, np.dtype("int64"), index.device)

    def compute(self, index):
        refusal = partial(beyond, self.axis, self.shape)
        return checked_index(index, self.shape[self.axis], refusal, from_end=True)


class OneHot(TensorOp):
    """For each label a row of `n` numbers: 1 at the label, 0 elsewhere; a step function."""

    differentiable = False

    def __init__(self, n: int, dtype="float32"):
        self.n = n
        self.dtype = np.dtype(dtype)

    def infer(self, labels):
        device_of(labels).empty((), self.dtype)  # raises if the device has no such dtype
        return Spec((*labels.shape, self.n), self.dtype, labels.device)

    def compute(self, labels):
        return array_one_hot(labels, self.n, self.dtype)


def as_index(numbers, device):
    """Whole numbers as an operand that needs no gradient: a Tensor, or an array or a list as a constant on
    `device`. Of a Tensor nothing is read."""
    if is_tensor(numbers):
        return numbers.detach() if numbers.requires_grad else numbers
    numbers = np.asarray(numbers)
    dtype = "float64" if numbers.dtype.kind == "f" and numbers.size else "int64"
    return TensorOp.out.make_const(array_from_numpy(numbers, dtype=dtype, device=device))


def getitem(a, index):
    """``a[index]``, with NumPy's meaning; differentiable.

    Parameters
    ----------
    a : Tensor
    index : int, slice, ``...``, None, or an array of whole numbers or booleans; or a tuple of them
        Ints drop their axis, slices keep it, None is a new axis of length 1. Arrays (NumPy's, lists or
        Tensors) of whole numbers are broadcast to one shape, which takes the place of their axes: it comes
        first if a slice, ``...`` or None separates them. A boolean array stands for ``array.nonzero()``, so
        a Tensor of booleans is computed at once, in lazy mode too: the shape depends on its numbers. A Tensor
        of whole numbers is not. Whether they fit is seen when the result is computed.

    Raises
    ------
    IndexError
        For a number beyond its axis, more indices than axes, and arrays of other numbers.
    """
    slices: list[slice] = []  # one per axis of `a` that is indexed
    shape: list[int] = []  # the result's, at first without the axes that arrays bring
    arrays: dict[int, Any] = {}  # NumPy's or Tensors, by the axis that they index
    picked: list[int] = []  # the axes that ints and arrays index
    places: list[tuple[int, int]] = []  # for each of these: its place in the index, and its place in `shape`

    for place, item in enumerate(numpy_index(index, a.shape, is_tensor)):
        axis = len(slices)
        if item is None:
            shape.append(1)
        elif item is Ellipsis:
            pass
        elif type(item) is slice:
            slices.append(item)
            shape.append(sliced_length(item, a.shape[axis]))
        else:
            picked.append(axis)
            places.append((place, len(shape)))
            if type(item) is int:
                i = position(item, axis, a.shape)
                slices.append(slice(i, i + 1))
            else:
                arrays[axis] = item if is_tensor(item) else positions(item, axis, a.shape)
                slices.append(WHOLE)
    shape += a.shape[len(slices) :]

    if not arrays or any(s != WHOLE for s in slices):
        a = Slice(tuple(slices))(a)
    if arrays:
        neighbours = places[-1][0] - places[0][0] == len(places) - 1
        place = places[0][1] if neighbours else 0
        a, axis, numbers = _merged(a, arrays, picked, neighbours)
        shape[place:place] = numbers.shape
        a = Take(axis, a.shape[axis])(a, as_index(numbers, a.device))
    return a if a.shape == (result := tuple(shape)) else a.reshape(result)


def _merged(a, arrays: dict[int, Any], picked: list[int], neighbours: bool) -> tuple:
    """Merge the axes that ints and arrays index into one: `a` reshaped, that axis, and the index along it.

    Element (i, j) of axes of lengths m and n is element i * n + j of the merged axis. Axes with an int are
    sliced to length 1 by now, so they count as index 0. If the indices are not neighbours, the merged axis
    comes first, as in NumPy.
    """
    if len(picked) == 1:
        return a, picked[0], arrays[picked[0]]
    try:
        broadcast_shape("index", *[array.shape for array in arrays.values()])
    except ValueError as error:
        raise IndexError(str(error)) from None
    if len(arrays) > 1 and any(map(is_tensor, arrays.values())):
        arrays = {axis: Position(axis, a.shape)(as_index(x, a.device)) for axis, x in arrays.items()}
    numbers: Any = None
    for axis, index in arrays.items():
        numbers = index if numbers is None else numbers * a.shape[axis] + index
    first = picked[0] if neighbours else 0
    kept = [axis for axis in range(a.ndim) if axis not in picked]
    order = (*kept[:first], *picked, *kept[first:])
    lengths = [a.shape[axis] for axis in order]
    a = a if order == tuple(range(a.ndim)) else a.permute(order)
    behind = first + len(picked)
    return (
        a.reshape((*lengths[:first], math.prod(lengths[first:behind]), *lengths[behind:])),
        first,
        numbers,
    )


class Concatenate(TensorOp):
    """One Tensor behind the other along an axis; the gradient is cut at the seams."""

    def __init__(self, axis: int = 0):
        self.axis = axis

    def infer(self, *inputs):
        shape = joined_shape(self.axis, *[x.shape for x in inputs])
        dtype = np.result_type(*{x.dtype for x in inputs})
        return Spec(shape, dtype, common_device("concatenate", inputs))

    def compute(self, *arrays):
        return array_concatenate(arrays, self.axis)

    def gradient(self, out_grad, node):
        (axis,) = normal_axes("concatenate", (self.axis,), out_grad.ndim)
        partials = []
        start = 0
        for x in node.inputs:
            stop = start + x.shape[axis]
            slices = (*[WHOLE] * axis, slice(start, stop), *[WHOLE] * (out_grad.ndim - axis - 1))
            partials.append(unbroadcast(Slice(slices)(out_grad), x) if x.requires_grad else None)
            start = stop
        return tuple(partials)


def concatenate(args, axis: int = 0):
    """Tensors one behind the other along `axis`; their other lengths must be equal.

    Parameters
    ----------
    args : sequence of Tensor, or TensorTuple
    axis : int
    """
    if is_tensor(args):
        raise TypeError("concatenate: needs a sequence of Tensors, got a Tensor; write concatenate([a, b])")
    return Concatenate(axis)(*args)


class Stack(TensorOp):
    """The Tensors of a TensorTuple, all of one shape, along a new axis; the gradient is split there."""

    def __init__(self, axis: int):
        self.axis = axis

    def infer(self, items):
        shape = stacked_shape(self.axis, *[x.shape for x in items])
        dtype = np.result_type(*{x.dtype for x in items})
        return Spec(shape, dtype, common_device("stack", items))

    def compute(self, arrays):
        return array_stack(arrays, self.axis)

    def gradient(self, out_grad, node):
        parts = Split(self.axis)(out_grad)
        return make_tuple(*map(unbroadcast, parts, node.inputs[0].specs))


def stack(args, axis: int = 0):
    """Tensors of one shape along a new axis.

    Parameters
    ----------
    args : sequence of Tensor, or TensorTuple
    axis : int
        Where the new axis is in the result.
    """
    return Stack(axis)(make_tuple(*args))


class Split(TensorTupleOp):
    """The parts along an axis, which they do not have; the gradient stacks them."""

    def __init__(self, axis: int):
        self.axis = axis

    def infer(self, a):
        (axis,) = normal_axes("split", (self.axis,), len(a.shape))
        return (Spec((*a.shape[:axis], *a.shape[axis + 1 :]), a.dtype, a.device),) * a.shape[axis]

    def compute(self, a):
        return array_unstack(a, self.axis)

    def gradient(self, out_grad, node):
        return Stack(self.axis)(out_grad)


def split(a, axis: int = 0):
    """The TensorTuple of the parts of `a` along `axis`: as many as it is long, and without that axis."""
    return Split(axis)(a)
