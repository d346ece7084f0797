"""What an array is, and everything that only looks at its numbers in another way.

A `View` is a shape, strides and an offset over flat storage. Reshape, permute, broadcast_to, flip and slices
choose others of these and leave the storage alone: nothing is copied, and no kernel is called. `NDArray`
(`ndarray.py`) adds what computes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .device import BackendDevice
from .indexing import WHOLE, basic_index, position
from .shapes import Axes, Shape, as_shape, filled_shape, hashable_axes, normal_axes
from .strides import (
    broadcast_strides,
    check_reach,
    compact_strides,
    fills_storage,
    permuted,
    reshaped_strides,
)


class View:
    """One way to look at flat storage: the base class of `NDArray`.

    Element ``(i, j, …)`` is number ``offset + i * strides[0] + j * strides[1] + …`` of the storage.

    Attributes
    ----------
    shape : tuple of int
    strides : tuple of int
        How far it is to the next element along each axis, in elements.
    offset : int
        Where in the storage the first element is.
    dtype : numpy.dtype
    device : BackendDevice
    base : View or None
        The array that this one is a view of, as in NumPy; None if it is no view.
    """

    __slots__ = (
        "__weakref__", "_compact", "_handle", "base", "device", "dtype", "offset", "shape", "strides",
    )  # fmt: skip

    _handle: Any  # the backend's Array
    _compact: bool
    base: View | None
    dtype: np.dtype
    shape: Shape
    strides: Shape
    offset: int
    device: BackendDevice

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def storage(self) -> Any:
        """The flat array of the backend that holds the elements; views of one another share it."""
        return self._handle

    @property
    def flat(self) -> Self:
        """The elements in row-major order, along one axis."""
        return self.reshape((self.size,))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: an array of shape () has no axis")
        return self.shape[0]

    def is_compact(self) -> bool:
        """Whether the elements fill the whole storage in row-major order."""
        return self._compact

    def is_dense(self) -> bool:
        """Whether some permutation of the axes makes the array compact.

        The result of an elementwise operation then gets the same order in memory. So a chain of them on
        permuted axes, as of images with their channels first, costs no more than usual.
        """
        return self.offset == 0 and fills_storage(self.shape, self.strides, self._handle.size)

    def compact(self) -> Self:
        """This array if it is compact, else a compact copy."""
        raise NotImplementedError  # a copy takes a kernel

    # Other views of the same storage

    def _view(self, shape: Shape, strides: Shape, offset: int) -> Self:
        handle = self._handle
        compact = offset == 0 and strides == compact_strides(shape) and handle.size == math.prod(shape)
        view = assemble(new_array(type(self)), handle, self.device, shape, strides, offset, compact)
        base = self.base
        view.base = self if base is None else base
        return view

    def as_strided(self, shape: Shape, strides: Shape) -> Self:
        """A view with any shape and strides, from the same first element on.

        Raises
        ------
        ValueError
            If it would reach beyond the storage.
        """
        shape, strides = as_shape(shape), as_shape(strides)
        check_reach(shape, strides, self.offset, self._handle.size)
        return self._view(shape, strides, self.offset)

    def reshape(self, new_shape: Any, *more: int) -> Self:
        """The same elements, row by row, in another shape: a view where strides can express it, else a copy.

        Parameters
        ----------
        new_shape : tuple of int, or int
            One length may be -1: it is inferred from the others.
        *more : int
            Lengths can also be given one by one: ``a.reshape(2, 3)``.
        """
        new_shape = filled_shape(self.shape, as_shape((new_shape, *more) if more else new_shape))
        if self._compact:
            strides: Shape | None = compact_strides(new_shape)
        else:
            strides = reshaped_strides(self.shape, self.strides, new_shape)
        if strides is None:
            return self.compact().reshape(new_shape)
        return self._view(new_shape, strides, self.offset)

    def permute(self, new_axes: Sequence[int]) -> Self:
        """The axes in another order: axis `i` of the result is axis ``new_axes[i]`` of this array."""
        return self._view(*permuted(self.shape, self.strides, tuple(new_axes)), self.offset)

    def broadcast_to(self, new_shape: Shape) -> Self:
        """Axes of length 1, and new leading axes, repeated to `new_shape` without a copy (stride 0)."""
        new_shape = as_shape(new_shape)
        return self._view(new_shape, broadcast_strides(self.shape, self.strides, new_shape), self.offset)

    def flip(self, axes: Axes = None) -> Self:
        """The elements along the given axes (None: all) in reverse order."""
        backwards = normal_axes("flip", hashable_axes(axes), len(self.shape))
        return self[tuple([slice(None, None, -1) if i in backwards else WHOLE for i in range(self.ndim)])]

    def process_slice(self, sl: slice, dim: int) -> slice:
        """A slice of axis `dim` with start, stop and step written out, to be read as `range` reads them."""
        return slice(*sl.indices(self.shape[dim]))

    def __getitem__(self, idxs: Any) -> Self:
        index = basic_index(idxs, self.shape)
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset
        for axis, item in enumerate(index):
            if isinstance(item, slice):
                start, stop, step = item.indices(shape[axis])
                length = len(range(start, stop, step))
            else:  # an integer keeps its axis
                start, length, step = position(item, axis, self.shape), 1, 1
            if length:
                offset += start * strides[axis]
            shape[axis] = length
            strides[axis] *= step
        return self._view(tuple(shape), tuple(strides), offset)


new_array = object.__new__  # a bare array, which `assemble` fills in


def assemble(
    array: Any,
    handle: Any,
    device: BackendDevice,
    shape: Shape,
    strides: Shape,
    offset: int = 0,
    compact: bool = True,
) -> Any:
    """Set what an array is made of, and return it; `compact` is what its `is_compact` will say."""
    array._handle, array.dtype, array.device = handle, handle.dtype, device
    array.shape, array.strides = shape, strides
    array.offset, array._compact, array.base = offset, compact, None
    return array


def unstack(a: View, axis: int) -> tuple:
    """One view per index along `axis`, with that axis removed."""
    (axis,) = normal_axes("unstack", (axis,), len(a.shape))
    shape, strides = a.shape[:axis] + a.shape[axis + 1 :], a.strides[:axis] + a.strides[axis + 1 :]
    step = a.strides[axis]
    return tuple([a._view(shape, strides, a.offset + i * step) for i in range(a.shape[axis])])
