"""Parts of Tensors, and Tensors put together: indexing, split, stack and concatenate.

These operators only move numbers, so the gradient of each is another one that moves them back. They come in
pairs: `Slice` and `ZerosButSlice`, `Take` and `ScatterAdd`, `Split` and `Stack`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backend_ndarray.device import common_device
from ..backend_ndarray.indexing import WHOLE, highest, numpy_index, position, positions, sliced_length
from ..backend_ndarray.shapes import broadcast_shape, joined_shape, normal_axes, stacked_shape
from ..backend_selection import concatenate as array_concatenate
from ..backend_selection import device_of, full
from ..backend_selection import scatter_add as array_scatter_add
from ..backend_selection import stack as array_stack
from ..backend_selection import take as array_take
from ..backend_selection import unstack as array_unstack
from ..graph import Spec, TensorOp, TensorTupleOp, is_tensor
from .families import Movement, unbroadcast
from .ops_tuple import make_tuple

__all__ = [
    "Concatenate", "ScatterAdd", "Slice", "Split", "Stack", "Take", "ZerosButSlice", "concatenate",
    "getitem", "split", "stack",
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

    Parameters
    ----------
    index : numpy.ndarray of int64, with one axis
        Numbers in ``0 .. length - 1``.
    axis : int
        Not below 0.
    length : int
        Length of the axis that is indexed.
    """

    def __init__(self, index: np.ndarray, axis: int, length: int):
        if highest(index) >= length:
            raise IndexError(f"index: {index} reaches beyond an axis of length {length}")
        self.index = index
        self.axis = axis
        self.length = length

    def infer(self, a):
        return Spec(self.out_shape(a.shape), self.out_dtype(a.dtype), a.device)

    def out_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result; ValueError if the axis has not the length that the index is for."""
        old, new = self.lengths()
        if len(shape) <= self.axis or shape[self.axis] != old:
            raise ValueError(f"{self}: needs length {old} along axis {self.axis}, got shape {shape}")
        return (*shape[: self.axis], new, *shape[self.axis + 1 :])

    def lengths(self) -> tuple[int, int]:
        """The length along the axis before and after."""
        raise NotImplementedError

    def out_dtype(self, dtype):
        """The dtype of the result."""
        return dtype


class Take(ByIndex):
    """The elements at given positions along an axis; the gradient is added up at these positions."""

    def lengths(self):
        return self.length, self.index.size

    def compute(self, a):
        self.out_shape(a.shape)  # kernels do not check: nothing beyond the axis may be read
        return array_take(a, self.index, self.axis)

    def gradient(self, out_grad, node):
        return ScatterAdd(self.index, self.axis, self.length)(out_grad)


class ScatterAdd(ByIndex):
    """Zeros, with elements added at given positions along an axis; the gradient takes them from there."""

    def lengths(self):
        return self.index.size, self.length

    def out_dtype(self, dtype):
        return dtype if dtype.kind == "f" else np.dtype("int64")

    def compute(self, a):
        self.out_shape(a.shape)  # kernels do not check: nothing beyond the axis may be written
        return array_scatter_add(a, self.index, self.axis, self.length)

    def gradient(self, out_grad, node):
        return Take(self.index, self.axis, self.length)(out_grad)


def getitem(a, index):
    """``a[index]``, with NumPy's meaning; differentiable.

    Parameters
    ----------
    a : Tensor
    index : int, slice, ``...``, None, or an array of whole numbers or booleans; or a tuple of them
        Ints drop their axis, slices keep it, None is a new axis of length 1. Arrays (NumPy's, lists or
        Tensors) of whole numbers are broadcast to one shape, which takes the place of their axes: it comes
        first if a slice, ``...`` or None separates them. A boolean array stands for ``array.nonzero()``. A
        Tensor in an index is computed at once, in lazy mode too.

    Raises
    ------
    IndexError
        For a number beyond its axis, more indices than axes, and arrays of other numbers.
    """
    slices: list[slice] = []  # one per axis of `a` that is indexed
    shape: list[int] = []  # the result's, at first without the axes that arrays bring
    arrays: dict[int, np.ndarray] = {}  # by the axis that they index
    picked: list[int] = []  # the axes that ints and arrays index
    places: list[tuple[int, int]] = []  # for each of these: its place in the index, and its place in `shape`

    for place, item in enumerate(numpy_index(index, a.shape)):
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
                arrays[axis] = positions(item, axis, a.shape)
                slices.append(WHOLE)
    shape += a.shape[len(slices) :]

    if not arrays or any(s != WHOLE for s in slices):
        a = Slice(tuple(slices))(a)
    if arrays:
        neighbours = places[-1][0] - places[0][0] == len(places) - 1
        place = places[0][1] if neighbours else 0
        a, axis, numbers = _merged(a, arrays, picked, neighbours)
        shape[place:place] = numbers.shape
        a = Take(numbers.reshape(-1), axis, a.shape[axis])(a)
    return a if a.shape == (result := tuple(shape)) else a.reshape(result)


def _merged(a, arrays: dict[int, np.ndarray], picked: list[int], neighbours: bool) -> tuple:
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
    numbers: Any = 0
    for axis in picked:
        if axis in arrays:
            numbers = numbers * a.shape[axis] + arrays[axis]
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
