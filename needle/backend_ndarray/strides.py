"""Strides: how the numbers of an array lie in memory.

Memory is one long row of numbers, the storage. The strides of an array say how far to walk in it for one step
along each axis, so element ``(i, j, …)`` is number ``offset + i * strides[0] + j * strides[1] + …``. Take
another shape, other strides or another offset, and the same numbers read as another array: nothing is copied.

These are the rules, as functions of shapes and strides alone. Networks ask about the same few shapes again
and again, so the answers are remembered.
"""

from __future__ import annotations

from functools import lru_cache

from .shapes import Shape, check_broadcast, permuted_order, window_counts


@lru_cache(maxsize=4096)
def compact_strides(shape: Shape) -> Shape:
    """The strides of a row-major array: each is the product of the lengths after it."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * shape[i]
    return tuple(strides)


@lru_cache(maxsize=4096)
def check_reach(shape: Shape, strides: Shape, offset: int, size: int) -> None:
    """Raise ValueError if a view would reach beyond its storage of `size` numbers."""
    if min(shape, default=0) < 0:
        raise ValueError(f"NDArray: lengths must not be negative, got shape {shape}")
    if len(shape) != len(strides):
        raise ValueError(f"strides {strides} and shape {shape} differ in length")
    if 0 in shape:
        return
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    lowest = offset + sum(step for step in steps if step < 0)
    highest = offset + sum(step for step in steps if step > 0)
    if lowest < 0 or highest >= size:
        raise ValueError(
            f"shape {shape}, strides {strides}, offset {offset} reach from element {lowest} to {highest} "
            f"of a storage of {size}"
        )


# Views: other strides for the same numbers


@lru_cache(maxsize=4096)
def broadcast_strides(shape: Shape, strides: Shape, new_shape: Shape) -> Shape:
    """Strides that view the array as `new_shape`: 0 along an axis that repeats it."""
    check_broadcast(shape, new_shape)
    new = len(new_shape) - len(shape)
    own = zip(shape, strides, new_shape[new:], strict=True)
    return (0,) * new + tuple([stride if n == wanted else 0 for n, stride, wanted in own])


@lru_cache(maxsize=4096)
def permuted(shape: Shape, strides: Shape, axes: Shape) -> tuple[Shape, Shape]:
    """The shape and strides of an array with its axes in another order."""
    order = permuted_order("permute", axes, shape)
    return tuple([shape[i] for i in order]), tuple([strides[i] for i in order])


@lru_cache(maxsize=4096)
def reshaped_strides(shape: Shape, strides: Shape, new_shape: Shape) -> Shape | None:
    """Strides that view the array as `new_shape`, or None if it takes a copy."""
    if 0 in shape:
        return compact_strides(new_shape)
    runs: list[tuple[int, int]] = []  # (length, stride) of axes that can be walked as one, last first
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * n, runs[-1][1])
        elif n != 1:
            runs.append((n, stride))
    left, step = 1, 1  # of the run that the new axes are cut from
    new_strides = []
    for n in reversed(new_shape):
        if left == 1 and n != 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_strides.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_strides))


def window_layout(
    shape: Shape, strides: Shape, size: Shape, stride: Shape, dilation: Shape
) -> tuple[Shape, Shape]:
    """Shape and strides with which images (batch, height, width, channels) read as their windows.

    Their axes are (batch, rows, columns, window height, window width, channels). Windows overlap, so the same
    number is read several times: it is still stored once.
    """
    counts = window_counts("windows", shape[1:3], size, stride, dilation)
    batch, down, right, channel = strides
    return (
        (shape[0], *counts, *size, shape[3]),
        (batch, down * stride[0], right * stride[1], down * dilation[0], right * dilation[1], channel),
    )


# What a loop over the numbers needs to know


@lru_cache(maxsize=4096)
def fills_storage(shape: Shape, strides: Shape, size: int) -> bool:
    """Whether some permutation of the axes makes the elements fill the whole storage in row-major order."""
    step = 1
    for stride, n in sorted(zip(strides, shape, strict=True)):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return step == size


@lru_cache(maxsize=4096)
def merged_axes(shape: Shape, *strides: Shape) -> tuple[Shape, ...]:
    """Merge axes where possible. Returns the shape, then the strides of each operand, with at least one axis.

    With fewer axes there is less arithmetic for each number. Axes of length 1 are left out. Two axes become
    one where, in every walk, a step along the first is as far as all steps along the second.
    """
    axes: list[tuple[int, ...]] = []
    for length, *steps in zip(shape, *strides, strict=True):
        if axes and all(first == length * step for first, step in zip(axes[-1][1:], steps, strict=True)):
            axes[-1] = (axes[-1][0] * length, *steps)
        elif length != 1:
            axes.append((length, *steps))
    return tuple(zip(*axes, strict=True)) if axes else ((1,),) * (1 + len(strides))
