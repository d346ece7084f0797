"""Rules of shapes and data types: what an operation's result will be, and the error if operands do not fit.

Arrays follow these rules when they compute, and operators when they infer a result before it is computed.
Networks ask about the same few shapes again and again, so the answers are remembered.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from .scalar_functions import SCALAR_FUNCTIONS

Shape = tuple[int, ...]
Axes = int | Sequence[int] | None


def as_shape(shape: Any) -> Shape:
    """A shape, or the length of one axis, as a tuple of Python integers."""
    if type(shape) is tuple and {int}.issuperset(map(type, shape)):
        return shape
    return (operator.index(shape),) if isinstance(shape, Integral) else tuple(map(operator.index, shape))


def hashable_axes(axes: Axes) -> int | tuple[int, ...] | None:
    """Axes as they were given, with a list made a tuple."""
    if axes is None or type(axes) is int:
        return axes
    if type(axes) is not tuple and not isinstance(axes, (Integral, Sequence)):
        raise TypeError(f"axes: needs None, an int or a tuple of ints, got {axes!r}")
    return as_shape(axes)


@lru_cache(maxsize=4096)
def normal_axes(name: str, axes: int | tuple[int, ...] | None, ndim: int) -> Shape:
    """Axes as a tuple of numbers in 0 .. ndim - 1; None means all.

    Raises
    ------
    ValueError
        For an axis out of range, and for one that is named twice.
    """
    if axes is None:
        return tuple(range(ndim))
    wanted = as_shape(axes)
    if any(not -ndim <= axis < ndim for axis in wanted):
        allowed = f"each must lie in {-ndim}..{ndim - 1}" if ndim else "there is none to name"
        raise ValueError(f"{name}: axes {axes} of an array with {ndim} axes: {allowed}")
    normal = tuple(axis % ndim for axis in wanted)
    if len(set(normal)) != len(normal):
        raise ValueError(f"{name}: axes {axes} name an axis twice")
    return normal


@lru_cache(maxsize=4096)
def broadcast_shape(name: str, *shapes: Shape) -> Shape:
    """The shape that all of these broadcast to.

    Raises
    ------
    ValueError
        If they do not broadcast.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"{name}: shapes {' and '.join(map(str, shapes))} do not broadcast: counted from the last axis, "
            "lengths must be equal or one of them 1; reshape one of the operands"
        ) from None


@lru_cache(maxsize=4096)
def reduced_shape(name: str, shape: Shape, axes: int | tuple[int, ...] | None, keepdims: bool) -> Shape:
    """`shape` without the given axes or, with `keepdims`, with length 1 there."""
    gone = normal_axes(name, axes, len(shape))
    if keepdims:
        return tuple(1 if i in gone else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in gone)


@lru_cache(maxsize=4096)
def permuted_order(name: str, axes: tuple[int, ...], shape: Shape) -> Shape:
    """The axes of a permutation as numbers in 0 .. ndim - 1.

    Raises
    ------
    ValueError
        If they do not name every axis of `shape` once.
    """
    order = normal_axes(name, axes, len(shape))
    if len(order) != len(shape):
        raise ValueError(f"{name}: axes {axes} must name each of the {len(shape)} axes of shape {shape} once")
    return order


@lru_cache(maxsize=4096)
def swapped_order(axes: tuple[int, ...] | None, ndim: int) -> Shape:
    """All axes in order, with two of them swapped: by default the last two.

    Raises
    ------
    ValueError
        If there are no such axes, or other than two.
    """
    if axes is None and ndim < 2:
        raise ValueError(f"transpose: needs 2 axes to swap, the operand has {ndim}")
    swapped = normal_axes("transpose", (-2, -1) if axes is None else axes, ndim)
    if len(swapped) != 2:
        raise ValueError(f"transpose: swaps two axes, got {axes}; permute takes any order of axes")
    order = list(range(ndim))
    first, second = swapped
    order[first], order[second] = second, first
    return tuple(order)


@lru_cache(maxsize=4096)
def joined_shape(axis: int, *shapes: Shape) -> Shape:
    """The shape of arrays joined one behind the other along `axis`.

    Raises
    ------
    ValueError
        If there are no arrays, or they differ along another axis.
    """
    if not shapes:
        raise ValueError("concatenate: needs at least one array")
    first = shapes[0]
    (axis,) = normal_axes("concatenate", (axis,), len(first))
    if any((*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) for shape in shapes):
        raise ValueError(
            f"concatenate: shapes {', '.join(map(str, dict.fromkeys(shapes)))} must be equal along every "
            f"axis but {axis}, where they are joined; reshape or slice some of them"
        )
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


@lru_cache(maxsize=4096)
def stacked_shape(axis: int, *shapes: Shape) -> Shape:
    """The shape of arrays stacked along a new axis.

    Raises
    ------
    ValueError
        If there are no arrays, or they differ in shape.
    """
    if len(set(shapes)) != 1:
        given = ", ".join(map(str, dict.fromkeys(shapes))) or "none"
        raise ValueError(f"stack: needs at least one array, and all of one shape; got shapes {given}")
    (axis,) = normal_axes("stack", (axis,), len(shapes[0]) + 1)
    return (*shapes[0][:axis], len(shapes), *shapes[0][axis:])


@lru_cache(maxsize=4096)
def filled_shape(shape: Shape, new_shape: Shape) -> Shape:
    """`new_shape` with the length that is left in the place of a -1.

    Raises
    ------
    ValueError
        If an array of `shape` has more or fewer elements.
    """
    size, known = math.prod(shape), math.prod(n for n in new_shape if n != -1)
    filled = new_shape
    if new_shape.count(-1) == 1 and known:
        filled = tuple(size // known if n == -1 else n for n in new_shape)
    if any(n < 0 for n in filled) or math.prod(filled) != size:
        raise ValueError(
            f"reshape: the {size} elements of shape {shape} do not fit into shape {new_shape}; its lengths "
            f"must multiply to {size}, and one of them may be -1"
        )
    return filled


@lru_cache(maxsize=4096)
def check_broadcast(shape: Shape, new_shape: Shape, name: str = "broadcast_to") -> None:
    """Raise ValueError if `shape` does not broadcast to `new_shape`."""
    new = len(new_shape) - len(shape)
    if (
        new < 0
        or min(new_shape, default=0) < 0
        or any(n not in (1, wanted) for n, wanted in zip(shape, new_shape[new:], strict=True))
    ):
        raise ValueError(
            f"{name}: shape {shape} cannot become {new_shape}: counted from the last axis, each length "
            "must be equal or 1; reshape it first"
        )


@lru_cache(maxsize=4096)
def product_shape(a: Shape, b: Shape) -> Shape:
    """The shape of a matrix product.

    Raises
    ------
    ValueError
        If the matrices do not fit, or the batch axes in front of them do not broadcast.
    """
    if not a or not b:
        raise ValueError(f"matmul: {a} @ {b}: a number has no axis to multiply along; use *")
    if len(a) < 2 or len(b) < 2:
        n, rows = a[-1], b[-2 if len(b) > 1 else 0]
        if n != rows:
            raise ValueError(f"matmul: {a} @ {b}: inner sizes {n} and {rows} differ")
        raise ValueError(f"matmul: {a} @ {b}: both need at least 2 axes; .reshape can add one")
    (m, n), (rows, p) = a[-2:], b[-2:]
    if n != rows:
        hint = "; did you mean b.transpose()?" if n == p else ""
        hint = hint or ("; did you mean a.transpose()?" if m == rows else "")
        raise ValueError(f"matmul: {a} @ {b}: inner sizes {n} and {rows} differ{hint}")
    return (*broadcast_shape("matmul", a[:-2], b[:-2]), m, p)


@lru_cache(maxsize=4096)
def window_counts(name: str, lengths: Shape, size: Shape, stride: Shape, dilation: Shape) -> Shape:
    """How many windows of `size` fit along axes of the given lengths; each argument has an entry per axis.

    A window begins at every `stride`-th element, and from there on sees every `dilation`-th.

    Raises
    ------
    ValueError
        If not even one fits.
    """
    reach = tuple([step * (n - 1) + 1 for n, step in zip(size, dilation, strict=True)])
    if any(n < needed for n, needed in zip(lengths, reach, strict=True)):
        raise ValueError(
            f"{name}: a window of {' x '.join(map(str, reach))} does not fit into "
            f"{' x '.join(map(str, lengths))}; use a smaller one, or padding"
        )
    return tuple([(n - needed) // step + 1 for n, needed, step in zip(lengths, reach, stride, strict=True)])


# Data types

DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "bool", "uint8", "int32", "int64"))


@lru_cache(maxsize=256)
def supported_dtype(dtype: Any) -> np.dtype:
    """A data type of NDArrays; float32 for None.

    Raises
    ------
    TypeError
        If it is none of `DTYPES`.
    """
    found = np.dtype(DTYPES[0] if dtype is None else dtype)
    if found not in DTYPES:
        raise TypeError(f"NDArray: dtype {found} is not supported; use one of {', '.join(map(str, DTYPES))}")
    return found


@lru_cache(maxsize=256)
def common_dtype(*dtypes: np.dtype) -> np.dtype:
    """The data type that NumPy finds for numbers of all these types."""
    return supported_dtype(np.result_type(*dtypes))


@lru_cache(maxsize=16)
def number_range(dtype: np.dtype) -> tuple[float, float]:
    """The smallest and the largest number that a data type holds, infinities aside."""
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return (0, 1) if dtype == np.bool_ else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


# What NumPy's functions make of smaller types, and what ours make in its place.
_WIDER = {np.dtype("float16"): np.dtype("float64"), np.dtype("int8"): np.dtype("int64")}


def python_number(number: Any) -> Any:
    """A number of NumPy's as a Python number, which never widens the data type of an array beside it."""
    return number.item() if isinstance(number, np.generic) else number


def result_dtype(name: str, *operands: Any) -> np.dtype:
    """The data type of a scalar function's result.

    This is NumPy's rule, in which a Python number does not widen an array, with two exceptions. Where
    NumPy makes half precision of small integers, or int8 of booleans, it is float64 or int64 here.
    Comparisons answer in the type that they compare in.

    Parameters
    ----------
    name : str
        A key of `SCALAR_FUNCTIONS`.
    *operands : number, or anything with a `dtype`

    Raises
    ------
    TypeError
        If the function is not defined for these types.
    """
    types: list[Any] = [getattr(x, "dtype", None) or x.__class__ for x in operands]
    return _result_dtype(name, *types)


@lru_cache(maxsize=4096)
def _result_dtype(name: str, *types: Any) -> np.dtype:
    samples = [np.ones(1, kind) if isinstance(kind, np.dtype) else kind(1) for kind in types]
    row = SCALAR_FUNCTIONS[name]
    try:
        dtype = np.result_type(*samples) if row.is_comparison else row.numpy(*samples).dtype
    except TypeError:
        given = " and ".join(getattr(kind, "__name__", str(kind)) for kind in types)
        raise TypeError(f"{name}: not defined for {given}; use .astype('float32') first") from None
    return dtype if dtype in types else _WIDER.get(dtype, dtype)
