"""What stands between the brackets of ``a[…]``: read, checked, and given axis by axis.

An NDArray takes integers, slices and ``...``; an integer keeps its axis, with length 1 (`basic_index`). A
Tensor takes all that NumPy does: None, arrays of whole numbers and of booleans too (`numpy_index`).
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from .shapes import Shape

WHOLE = slice(None)
INT_AND_SLICE = frozenset((int, slice))
INT_SLICE_AND_NONE = frozenset((int, slice, type(None)))


def basic_index(index: Any, shape: Shape) -> Sequence[int | slice]:
    """The index of an NDArray of `shape` as an int or a slice for each axis, or for the first ones.

    Raises
    ------
    IndexError
        For more indices than axes, and for more than one ``...``.
    TypeError
        For anything but integers, slices and ``...``.
    """
    items = index if isinstance(index, tuple) else (index,)
    if INT_AND_SLICE.issuperset(map(type, items)) and len(items) <= len(shape):
        return items
    found = [item for item in _axis_by_axis(items, shape) if item is not Ellipsis]
    for axis, item in enumerate(found):
        if isinstance(item, bool) or not isinstance(item, (Integral, slice)):
            raise TypeError(
                f"index: {type(item).__name__} on axis {axis}; an NDArray takes integers, slices and ...; "
                "for anything else, index .numpy()"
            )
    return [item if isinstance(item, slice) else operator.index(item) for item in found]


def numpy_index(index: Any, shape: Shape, is_operand: Callable[[Any], bool] = lambda item: False) -> Sequence:
    """An index with NumPy's meaning as ints, slices, None and arrays of whole numbers.

    A ``...`` becomes the slices that it stands for. If it stands for no axis, it stays: it still keeps the
    items on either side of it apart. An array of booleans becomes the numbers of its true elements.

    Parameters
    ----------
    index : object
        What stands between the brackets.
    shape : tuple of int
        Of what is indexed.
    is_operand : callable
        Whether an item is a Tensor. One of whole numbers stays as it is: its numbers are not read.

    Raises
    ------
    IndexError
        For more indices than axes, for more than one ``...``, for arrays of other numbers, and for an array
        of booleans whose shape is not that of the axes it is for.
    """
    items = index if isinstance(index, tuple) else (index,)
    if INT_SLICE_AND_NONE.issuperset(map(type, items)) and len(items) <= len(shape):
        return items
    found: list = []
    axis = 0
    for item in _axis_by_axis([_plain(item, is_operand) for item in items], shape):
        if isinstance(item, np.ndarray) and item.dtype == bool:
            lengths = shape[axis : axis + item.ndim]
            if item.shape != lengths:
                raise IndexError(
                    f"index: an array of booleans has shape {item.shape}, the axes that it is for "
                    f"have lengths {lengths}; they must be equal"
                )
            found.extend(item.nonzero())
        else:
            found.append(item)
        axis += _axes_used(item)
    return found


def _axis_by_axis(items: Sequence, shape: Shape) -> list:
    """The items of an index with ``...`` written out as slices, unless it stands for no axis."""
    used = sum(map(_axes_used, items))
    if used > len(shape):
        raise IndexError(f"index: {used} indices for the {len(shape)} axes of shape {shape}")
    dots = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("index: only one ... is possible")
    if not dots or used == len(shape):
        return list(items)
    return [*items[: dots[0]], *[WHOLE] * (len(shape) - used), *items[dots[0] + 1 :]]


def _axes_used(item: Any) -> int:
    """How many axes an item of an index is for."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1


def _plain(item: Any, is_operand: Callable[[Any], bool]) -> Any:
    """One item of an index as an int, a slice, ``...``, None or an array of whole numbers or booleans."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if is_operand(item) and item.dtype.kind in "iu":
        return item
    if hasattr(item, "numpy"):  # a Tensor, or an NDArray
        item = item.numpy()
    array = np.asarray(item)
    if not array.size and not hasattr(item, "dtype"):
        array = array.astype(np.int64)  # an empty list: NumPy takes it for floats
    if array.dtype.kind not in "iub" or (array.dtype == bool and not array.ndim):
        kind = array.dtype if array.ndim else item.__class__.__name__
        raise IndexError(
            f"index: needs whole numbers or an array of booleans, got {kind}; "
            "convert it: .astype('int64') or .astype('bool')"
        )
    return array if array.ndim else operator.index(array.item())


# Where the items lead to


def sliced_length(s: slice, n: int) -> int:
    """How many of `n` elements are in a slice."""
    return len(range(*s.indices(n)))


def position(i: int, axis: int, shape: Shape) -> int:
    """Where along `axis` the index `i` points: from 0 on, with negative ones counted from the end."""
    n = shape[axis]
    if not -n <= i < n:
        raise IndexError(f"index: {i} is outside axis {axis} of length {n} (shape {shape})")
    return i % n


def positions(index: np.ndarray, axis: int, shape: Shape) -> np.ndarray:
    """`position` for an array of whole numbers: an array of int64, a copy."""
    return in_range(np.array(index, np.int64), shape[axis], partial(beyond, axis, shape), from_end=True)


def beyond(axis: int, shape: Shape, lowest: int, highest: int) -> str:
    """What is said of an index from `lowest` to `highest` that leads beyond an axis."""
    return f"index: {lowest} to {highest} reach beyond axis {axis} of length {shape[axis]} (shape {shape})"


def in_range(
    index: np.ndarray, length: int, refusal: Callable[[Any, Any], str], from_end: bool = False
) -> np.ndarray:
    """An index of int64 in which all numbers are in ``0 .. length - 1``.

    Parameters
    ----------
    index : numpy.ndarray
        Whole numbers, of any data type.
    length : int
        Of the axis that it is for.
    refusal : callable
        From the lowest and the highest number to the words of the error.
    from_end : bool
        Whether numbers below 0 are counted from the end of the axis.

    Raises
    ------
    IndexError
        If a number is outside of the axis, or not whole.
    """
    numbers = index if index.dtype == np.int64 else _whole(index)
    if numbers is not None:
        if highest(numbers) < length:  # there are no negative numbers, as in most cases
            return numbers
        if from_end:
            numbers = np.where(numbers < 0, numbers + length, numbers)
            if highest(numbers) < length:
                return numbers
    raise IndexError(refusal(index.min(), index.max()))


def _whole(index: np.ndarray) -> np.ndarray | None:
    """An array of numbers as int64; None if one of them is not whole."""
    with np.errstate(invalid="ignore"):  # not a number: it becomes some int64, to which it is not equal
        numbers = index.astype(np.int64)
    return numbers if index.dtype.kind != "f" or (numbers == index).all() else None


def highest(index: np.ndarray) -> int:
    """The largest number in an index of int64, where a negative one counts as enormous; -1 if it is empty."""
    return int(np.maximum.reduce(index.view(np.uint64), axis=None)) if index.size else -1


# As text


def index_in_words(index: Any) -> str:
    """An index as you would write it, ``[1:3, ::-1, ..., 5]``; of an array in it only the class."""
    return f"[{', '.join(map(_item_in_words, index if isinstance(index, tuple) else (index,)))}]"


def _item_in_words(item: Any) -> str:
    if isinstance(item, slice):
        start, stop, step = ["" if x is None else str(x) for x in (item.start, item.stop, item.step)]
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
    if hasattr(item, "shape") and not isinstance(item, np.generic):
        return type(item).__name__
    return "..." if item is Ellipsis else reprlib.repr(item)
