"""Calls of kernels: how operations on arrays become loops over flat storage.

Each function here checks its operands, brings them to one data type, makes storage for the result and calls a
kernel of the device's backend module. Numbers that lie side by side need nothing more. For other views the
kernel is given a layout: a shape, and the strides and offset of each operand. A layout depends only on
shapes and strides, so it is cached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np

from .device import common_device
from .indexing import in_range
from .scalar_functions import SCALAR_FUNCTIONS
from .shapes import (
    Axes,
    Shape,
    broadcast_shape,
    check_broadcast,
    common_dtype,
    hashable_axes,
    joined_shape,
    normal_axes,
    number_range,
    product_shape,
    reduced_shape,
    result_dtype,
    stacked_shape,
    supported_dtype,
)
from .strides import broadcast_strides, compact_strides
from .views import View, assemble, new_array

# Copies


def copied(a: View, dtype: np.dtype) -> Any:
    """A compact copy of data type `dtype`."""
    mod = a.device.mod
    out = mod.Array(a.size, dtype)
    if out.size:
        mod.compact(a._handle, out, a.shape, a.strides, a.offset)
    return assemble(new_array(type(a)), out, a.device, a.shape, compact_strides(a.shape))


def cast(a: View, dtype: np.dtype) -> Any:
    """Convert to `dtype`; no copy if the array already has it."""
    return a if a.dtype == dtype else copied(a, supported_dtype(dtype))


def as_operand_for(a: View, values: np.ndarray) -> Any:
    """A NumPy array as an operand for `a`: on its device, and with its data type if that is a float."""
    return a.device.array(values, a.dtype if a.dtype.kind == "f" else values.dtype)


def write(a: View, values: Any) -> None:
    """Write a number or an array into all places of `a`, with broadcasting."""
    if a.size and any(stride == 0 and n > 1 for n, stride in zip(a.shape, a.strides, strict=True)):
        raise ValueError("setitem: a broadcast array repeats its elements; write to .compact() instead")
    mod = a.device.mod
    if isinstance(values, Real):
        if a.size:
            mod.scalar_setitem(a.size, values, a._handle, a.shape, a.strides, a.offset)
        return
    if not isinstance(values, View):
        values = a.device.array(values, a.dtype)
    common_device("setitem", (a, values))
    if _without_ones(values.shape) == _without_ones(a.shape):
        values = values.reshape(a.shape)  # a[0] = row: the axis that an integer index keeps
    check_broadcast(values.shape, a.shape, "setitem")
    values = values.broadcast_to(a.shape)
    if values._handle is a._handle:
        values = copied(values, a.dtype)  # else a number might be read after it was overwritten
    if a.size:
        flat = cast(values, a.dtype).compact()._handle
        mod.ewise_setitem(flat, a._handle, a.shape, a.strides, a.offset)


def _without_ones(shape: Shape) -> Shape:
    return tuple([n for n in shape if n != 1])


# One scalar function at every position


class NotAnOperand(TypeError):
    """An elementwise operation was given something that is neither an array nor a number."""


def elementwise(name: str, *operands: Any) -> Any:
    """Apply a row of the table of scalar functions element by element, with NumPy's broadcasting.

    Parameters
    ----------
    name : str
        A key of `SCALAR_FUNCTIONS`.
    *operands : NDArray, numpy.ndarray or number
        At least one NDArray. A NumPy array beside an array of floats takes its data type.

    Raises
    ------
    TypeError
        For other operands (`NotAnOperand`), and for data types that the function is not defined for.
    ValueError
        For shapes that do not broadcast, and for operands on different devices.
    """
    if len(operands) == 1:
        return _map(name, operands[0])
    a, b = operands
    if not isinstance(b, View):
        return _zip_with_number(name, a, b, True)
    if not isinstance(a, View):
        return _zip_with_number(name, b, a, False)
    if a.device is not b.device:
        common_device(name, operands)
    if a.dtype is not b.dtype or a.dtype.kind != "f":
        dtype = result_dtype(name, a, b)
        a, b = cast(a, dtype), cast(b, dtype)
        if name == "power" and dtype.kind == "i":
            _check_exponents(b.numpy())
    mod = a.device.mod
    if a.shape == b.shape and (
        (a._compact and b._compact) or (a.strides == b.strides and a.is_dense() and b.is_dense())
    ):
        shape, strides, compact = a.shape, a.strides, a._compact
        out = mod.Array(a._handle.size, a.dtype)
        mod.ZIPS[name](a._handle, b._handle, out)
    else:
        shape, strides, size, a_strides, b_strides = _zip_plan(name, a.shape, a.strides, b.shape, b.strides)
        compact = True
        out = mod.Array(size, a.dtype)
        if size:
            mod.ZIPS[name](a._handle, b._handle, out, (shape, a_strides, a.offset, b_strides, b.offset))
    # This is `assemble`, written out: most results come from here.
    result = new_array(type(a))
    result._handle, result.dtype, result.device = out, out.dtype, a.device
    result.shape, result.strides = shape, strides
    result.offset, result._compact, result.base = 0, compact, None
    return result


@lru_cache(maxsize=4096)
def _zip_plan(name: str, a_shape: Shape, a_strides: Shape, b_shape: Shape, b_strides: Shape) -> tuple:
    """Two operands' broadcast shape, its strides and size, and how to walk through each of them."""
    shape = broadcast_shape(name, a_shape, b_shape)
    a_steps = broadcast_strides(a_shape, a_strides, shape)
    b_steps = broadcast_strides(b_shape, b_strides, shape)
    return shape, compact_strides(shape), math.prod(shape), a_steps, b_steps


def _map(name: str, a: Any) -> Any:
    """`elementwise` of one array."""
    if not isinstance(a, View):
        raise _not_an_operand(name, a)
    if a.dtype.kind != "f":
        a = cast(a, result_dtype(name, a))
    mod = a.device.mod
    if a._compact or a.is_dense():
        out = mod.Array(a._handle.size, a.dtype)
        mod.MAPS[name](a._handle, out)
        return assemble(new_array(type(a)), out, a.device, a.shape, a.strides, 0, a._compact)
    out = mod.Array(a.size, a.dtype)
    if out.size:
        mod.MAPS[name](a._handle, out, (a.shape, a.strides, a.offset))
    return assemble(new_array(type(a)), out, a.device, a.shape, compact_strides(a.shape))


def _zip_with_number(name: str, array: Any, number: Any, number_last: bool) -> Any:
    """`elementwise` of an array and a number, or a NumPy array; which of them comes last."""
    if type(number) is not float and type(number) is not int:
        if isinstance(number, np.ndarray) and isinstance(array, View):
            other = as_operand_for(array, number)
            return elementwise(name, array, other) if number_last else elementwise(name, other, array)
        if isinstance(number, np.generic):
            number = number.item()
        if not isinstance(number, (float, int)):
            raise _not_an_operand(name, *((array, number) if number_last else (number, array)))
    if not isinstance(array, View):
        raise _not_an_operand(name, *((array, number) if number_last else (number, array)))
    is_float = array.dtype.kind == "f"
    if not is_float:
        array = cast(array, result_dtype(name, *((array, number) if number_last else (number, array))))
        is_float = array.dtype.kind == "f"
        if not is_float and (answer := _number_out_of_range(name, array, number, number_last)) is not None:
            return answer
    kind = type(number)  # that of a compiled function's number, which is not known yet, is another
    if is_float and (kind is int or kind is bool):
        number = float(number)
    elif not is_float and (kind is float or kind is bool):
        number = int(number)
    if not (array._compact or array.is_dense()):
        array = array.compact()
    mod = array.device.mod
    out = mod.Array(array._handle.size, array.dtype)
    if number_last:
        mod.ZIPS[name](array._handle, number, out)
    else:
        mod.ZIPS[name](number, array._handle, out)
    return assemble(new_array(type(array)), out, array.device, array.shape, array.strides, 0, array._compact)


def _not_an_operand(name: str, *operands: Any) -> NotAnOperand:
    kinds = ", ".join([type(operand).__name__ for operand in operands])
    return NotAnOperand(f"{name}: needs NDArrays (at least one) and numbers, got {kinds}")


def _number_out_of_range(name: str, array: Any, number: Any, number_last: bool) -> Any:
    """For an array of integers and a number outside its range: the result, or an error. None if it fits."""
    if type(number) not in (int, float, bool):
        return None  # a compiled function's, which is not known yet: its program calls `check_number`
    if name == "power" and not number_last:
        _check_exponents(array.numpy())
    row = SCALAR_FUNCTIONS[name]
    lowest, highest = number_range(array.dtype)
    if row.is_comparison and not lowest <= number <= highest:  # it is the same for all numbers of that type
        answer = row.python(0, number) if number_last else row.python(number, 0)
        return array.device.full(array.shape, answer, array.dtype)
    check_number(name, array.dtype, number, number_last)
    return None


def check_number(name: str, dtype: np.dtype, number: Any, number_last: bool) -> None:
    """Raise an error if a scalar function of integers cannot compute with this number."""
    if name == "power" and number_last:
        _check_exponents(number)
    lowest, highest = number_range(dtype)
    if not lowest <= number <= highest:
        raise OverflowError(
            f"{name}: {number} does not fit into {dtype}, which holds {lowest} to {highest}; "
            "use .astype('int64') or .astype('float64') first"
        )


def _check_exponents(exponents: Any) -> None:
    lowest = np.min(exponents, initial=0) if isinstance(exponents, np.ndarray) else exponents
    if lowest < 0:
        raise ValueError(
            "power: a whole number to a negative power is a fraction, which its data type does not hold; "
            "use .astype('float32') first"
        )


# Reductions


def reduction(name: str, row: str, a: View, axis: Axes, keepdims: bool) -> Any:
    """Fold numbers along axes into one with a row of the table of scalar functions.

    `name` is what error messages call it.
    """
    if axis is not None:
        axis = hashable_axes(axis)
    shape, strides, size, k, last, layout = _reduction_plan(name, a.shape, a.strides, axis, keepdims)
    mod = a.device.mod
    out = mod.Array(size, a.dtype)
    if k and size:
        mod.REDUCES[row](a._handle, out, k, None if last and a._compact else (*layout, a.offset))
    elif size and row == "add":
        mod.fill(out, 0)
    elif size:
        raise ValueError(f"{name}: shape {a.shape} has no element along axis {axis} to take the {name} of")
    return assemble(new_array(type(a)), out, a.device, shape, strides)


@lru_cache(maxsize=4096)
def _reduction_plan(name: str, shape: Shape, strides: Shape, axis: Any, keepdims: bool) -> tuple:
    """A reduction's shape, strides, size; how many numbers become one; whether they are those of the last
    axes; the layout."""
    axes = tuple(sorted(normal_axes(name, axis, len(shape))))
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    kept_shape, kept_strides = tuple([shape[i] for i in kept]), tuple([strides[i] for i in kept])
    folded_shape, folded_strides = tuple([shape[i] for i in axes]), tuple([strides[i] for i in axes])
    layout = (kept_shape, kept_strides, folded_shape, folded_strides)
    out_shape = reduced_shape(name, shape, axes, keepdims)
    last = kept + axes == tuple(range(len(shape)))
    return out_shape, compact_strides(out_shape), math.prod(out_shape), math.prod(folded_shape), last, layout


# Products of matrices


def matrix_product(a: View, b: View) -> Any:
    """``a @ b``; leading axes are batches of matrices, and broadcast."""
    if a.device is not b.device:
        common_device("matmul", (a, b))
    if a.dtype is not b.dtype:
        dtype = common_dtype(a.dtype, b.dtype)
        a, b = cast(a, dtype), cast(b, dtype)
    shape, strides, size, mnp, batch, a_strides, b_strides = _product_plan(
        a.shape, a.strides, b.shape, b.strides
    )
    mod = a.device.mod
    out = mod.Array(size, a.dtype)
    if not mnp[1]:
        mod.fill(out, 0)
    elif a._compact and b._compact and not batch:
        mod.matmul(a._handle, b._handle, out, *mnp)
    elif size:
        mod.matmul(a._handle, b._handle, out, *mnp, (batch, a_strides, a.offset, b_strides, b.offset))
    return assemble(new_array(type(a)), out, a.device, shape, strides)


@lru_cache(maxsize=4096)
def _product_plan(a_shape: Shape, a_strides: Shape, b_shape: Shape, b_strides: Shape) -> tuple:
    """A matrix product's shape, strides, size; (m, n, p); the batch axes, and how to walk through each
    operand."""
    shape = product_shape(a_shape, b_shape)
    (m, n), p, batch = a_shape[-2:], b_shape[-1], shape[:-2]
    a_steps = broadcast_strides(a_shape, a_strides, (*batch, m, n))
    b_steps = broadcast_strides(b_shape, b_strides, (*batch, n, p))
    return shape, compact_strides(shape), math.prod(shape), (m, n, p), batch, a_steps, b_steps


# What takes several kernels, unless a device has one of its own for it. Then the caller gets None.


def softmax_of_rows(a: View, axes: Any, logarithm: bool) -> Any:
    """Softmax along the last axis, or its logarithm, by one kernel."""
    return _by_rows("softmax", a, axes, logarithm)


def standardized_rows(a: View, axes: Any, eps: float, *affine: View) -> Any:
    """The last axis shifted and scaled to mean 0 and variance 1; the mean and the variance; by one kernel.

    `affine` are a weight and a bias for each number of a row. With them, their product and sum come last.
    """
    if any(x.dtype is not a.dtype for x in affine):
        return None
    return _by_rows("standardize", a, axes, eps, *[x.compact() for x in affine])


def _by_rows(name: str, a: View, axes: Any, *options: Any) -> Any:
    kernel = getattr(a.device.mod, name, None)
    if kernel is None or a.dtype.kind != "f" or not a.size or not a.shape:
        return None
    if axes not in (-1, len(a.shape) - 1, (-1,), (len(a.shape) - 1,)) or not a.device.mod.fits_rows(
        a.shape[-1]
    ):
        return None
    return kernel(a.compact(), *options)


def adam(p: View, grad: View, mean: View, mean_square: View, *numbers: float) -> Any:
    """The new values of a parameter and of its two running means, by one kernel; see `needle.optim.Adam`."""
    arrays = (p, grad, mean, mean_square)
    kernel = getattr(p.device.mod, "adam", None)
    if kernel is None or not all(isinstance(x, View) and x.dtype is p.dtype and x._compact for x in arrays):
        return None
    return kernel(*arrays, *numbers)


# Joining arrays; gather and scatter


def stack(arrays: Sequence[View], axis: int = 0) -> Any:
    """Arrays of one device and shape, side by side along a new axis; their common data type is NumPy's."""
    shape = stacked_shape(axis, *[a.shape for a in arrays])
    strides = compact_strides(shape)
    axis %= len(shape)
    steps = [strides[axis]] * len(arrays)
    return _joined("stack", arrays, shape, strides[:axis] + strides[axis + 1 :], steps)


def concatenate(arrays: Sequence[View], axis: int = 0) -> Any:
    """Arrays of one device, one behind the other along `axis`; their common data type is NumPy's."""
    shape = joined_shape(axis, *[a.shape for a in arrays])
    strides = compact_strides(shape)
    return _joined("concatenate", arrays, shape, strides, [a.shape[axis] * strides[axis] for a in arrays])


def _joined(name: str, arrays: Sequence[View], shape: Shape, strides: Shape, steps: list[int]) -> Any:
    """An array of `shape` into which others are written with `strides`, `step` elements after each other."""
    device = arrays[0].device
    dtype = common_dtype(*{a.dtype for a in arrays})
    out = device.mod.Array(math.prod(shape), dtype)
    offset = 0
    for a, step in zip(arrays, steps, strict=True):
        if a.device is not device:
            common_device(name, arrays)
        if a.size:
            device.mod.ewise_setitem(cast(a, dtype).compact()._handle, out, a.shape, strides, offset)
        offset += step
    return assemble(new_array(type(arrays[0])), out, device, shape, compact_strides(shape))


def checked_index(index: Any, length: int, refusal: Callable[[Any, Any], str], from_end: bool = False) -> Any:
    """An index of int64 with all its numbers in ``0 .. length - 1``; see `indexing.in_range`.

    It is `index` itself if that is one already. Kernels do not check: what they follow comes from here. A
    backend whose arrays hold no numbers yet has a `checked_index` of its own, and so for the functions below.
    """
    if by_kernel := getattr(index.device.mod, "checked_index", None):
        return by_kernel(index, length, refusal, from_end)
    given = index.numpy()
    found = in_range(given, length, refusal, from_end)
    return index if found is given else index.device.array(found, np.int64)


def take(a: View, index: View, axis: int) -> Any:
    """Elements of `a` along `axis`: number ``index[0]``, then number ``index[1]`` and so on.

    Parameters
    ----------
    a : NDArray
    index : NDArray of int64
        Numbers in ``0 .. a.shape[axis] - 1``, which is not checked here. Its axes take the place of `axis`.
    axis : int, not below 0
    """
    shape = (*a.shape[:axis], *index.shape, *a.shape[axis + 1 :])
    out = a.device.mod.Array(math.prod(shape), a.dtype)
    if out.size:
        inner = math.prod(a.shape[axis + 1 :])
        a.device.mod.gather(a.compact()._handle, out, _numbers(index, a), a.shape[axis], inner)
    return assemble(new_array(type(a)), out, a.device, shape, compact_strides(shape))


def scatter_add(a: View, index: View, axis: int, length: int) -> Any:
    """Zeros with `length` elements along `axis`, to which those of `a` are added: the transpose of `take`.

    The result for booleans and integers is of int64, as that of `sum`.
    """
    a = a if a.dtype.kind == "f" else cast(a, np.dtype("int64"))
    behind = a.shape[axis + len(index.shape) :]
    out = a.device.full((*a.shape[:axis], length, *behind), 0, a.dtype)
    if a.size:
        numbers, inner = _numbers(index, a), math.prod(behind)
        a.device.mod.scatter_add(a.compact()._handle, out._handle, numbers, length, inner)
    return out


def _numbers(index: View, a: View) -> Any:
    """The numbers of an index in a row, on the device of `a`."""
    return (index if index.device is a.device else a.device.array(index, np.int64)).compact()._handle


def one_hot(labels: Any, n: int, dtype: Any) -> Any:
    """For each label a row of `n` numbers: 1 at the label, 0 elsewhere. See `Device.one_hot`, which refuses
    a label that is not one of 0 to n - 1."""
    if by_kernel := getattr(labels.device.mod, "one_hot", None):
        return by_kernel(labels, n, dtype)
    return labels.device.one_hot(n, labels.numpy(), dtype)


def checked_not_zero(a: Any, refusal: str) -> Any:
    """`a` itself; a ValueError that says `refusal` if there is a 0 in it."""
    if by_kernel := getattr(a.device.mod, "checked_not_zero", None):
        return by_kernel(a, refusal)
    if not a.numpy().all():
        raise ValueError(refusal)
    return a
