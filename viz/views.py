"""Which view of another array an array is: the operator, or the index, that makes one out of the other.

Two arrays that share a storage look at the same row of numbers. Their shapes, strides and offsets say how:
see `needle.backend_ndarray.strides`. What is found is checked. The layout that the operator gives is the
layout of the view, so ``X[2]`` shows what ``X[2]`` is, however it was made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from needle import ops
from needle.backend_ndarray.indexing import index_in_words
from needle.backend_ndarray.strides import broadcast_strides, reshaped_strides
from needle.graph import Op

from .storage import storage_of

__all__ = ["view_of"]


def view_of(base: Any, view: Any) -> Op | str | None:
    """What makes `view` out of `base`, an array with the same storage.

    Returns
    -------
    Op, str or None
        A movement, or an index in words such as ``[:, 2]``. None if it takes several steps, or if the view
        shows numbers that `base` does not.
    """
    return _way(StridedLayout.of(base), StridedLayout.of(view))


class StridedLayout(NamedTuple):
    """Where the elements of an array are in its storage: see `needle.backend_ndarray.views`."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements; 0 along an axis of length 1, where no step is taken
    offset: int

    @classmethod
    def of(cls, array: Any) -> StridedLayout:
        if isinstance(array, np.ndarray):
            owner, _ = storage_of(array)
            strides = [step // array.itemsize for step in array.strides]
            offset = (_address(array) - _address(owner)) // array.itemsize
        elif isinstance(array, np.generic):
            strides, offset = [], 0
        else:
            strides, offset = array.strides, array.offset
        return cls.made(array.shape, strides, offset)

    @classmethod
    def made(cls, shape: Sequence[int], strides: Sequence[int], offset: int) -> StridedLayout:
        steps = [0 if n == 1 else step for n, step in zip(shape, strides, strict=True)]
        return cls(tuple(shape), tuple(steps), offset)


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def _way(base: StridedLayout, view: StridedLayout) -> Op | str | None:
    """The operator that makes one array out of another, or an index; None if it takes more than one."""
    if base == view:
        return ops.Identity()
    return _index(base, view) or (_movement(base, view) if base.offset == view.offset else None)


def _movement(base: StridedLayout, view: StridedLayout) -> Op | None:
    axes = list(range(len(base.shape)))
    if sorted(zip(*base[:2], strict=True)) == sorted(zip(*view[:2], strict=True)):
        order = []
        for axis in zip(*view[:2], strict=True):
            order.append(next(i for i in axes if i not in order and (base.shape[i], base.strides[i]) == axis))
        moved = [i for i in axes if order[i] != i]
        if len(moved) != 2:
            return ops.Permute(tuple(order))
        return ops.Transpose(None if moved == axes[-2:] else (moved[0], moved[1]))
    if math.prod(base.shape) == math.prod(view.shape):
        strides = reshaped_strides(base.shape, base.strides, view.shape)
        if strides is not None and StridedLayout.made(view.shape, strides, base.offset) == view:
            return ops.Reshape(view.shape)
    try:
        strides = broadcast_strides(base.shape, base.strides, view.shape)
    except ValueError:
        return None
    is_this = StridedLayout.made(view.shape, strides, base.offset) == view
    return ops.BroadcastTo(view.shape) if is_this else None


def _index(base: StridedLayout, view: StridedLayout) -> str | None:
    """The index, of ints and slices, that makes a part of an array: ``[2]``, ``[:, 0]``."""
    first = _place(base, view.offset)
    if first is None:
        return None
    for kept in reversed(list(combinations(range(len(base.shape)), len(view.shape)))):
        items: list[int | slice] = list(first)
        for axis, n, stride in zip(kept, *view[:2], strict=True):
            step = (base.strides[axis] and stride // base.strides[axis]) or 1
            items[axis] = _slice(first[axis], n, step, base.shape[axis])
        if _indexed(base, items) == view:
            while len(items) > 1 and items[-1] == slice(None):
                items.pop()
            return index_in_words(tuple(items))
    return None


def _place(base: StridedLayout, number: int) -> list[int] | None:
    """The index of an element, by its number in the storage; None if there is none, or no single one."""
    rest = number - base.offset
    place = [0] * len(base.shape)
    for axis in sorted(range(len(place)), key=lambda axis: -base.strides[axis]):
        if base.strides[axis] > 0:
            place[axis] = min(max(rest, 0) // base.strides[axis], base.shape[axis] - 1)
            rest -= place[axis] * base.strides[axis]
    return None if rest else place


def _slice(start: int, n: int, step: int, length: int) -> slice:
    """The slice with `n` items, written as people write it."""
    stop = start + n * step
    if step < 0:
        return slice(None if start == length - 1 else start, stop if stop >= 0 else None, step)
    end = None if stop >= length else stop
    return slice(start or None, end, None if step == 1 else step)


def _indexed(base: StridedLayout, items: Sequence[int | slice]) -> StridedLayout:
    """The layout of a part."""
    shape, strides, offset = [], [], base.offset
    for item, length, stride in zip(items, *base[:2], strict=True):
        if isinstance(item, int):
            offset += item * stride
        else:
            chosen = range(*item.indices(length))
            offset += chosen.start * stride
            shape.append(len(chosen))
            strides.append(stride * chosen.step)
    return StridedLayout.made(shape, strides, offset)
