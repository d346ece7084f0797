"""Pictures of arrays: how a view reads memory, and how shapes broadcast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from needle.autograd import Tensor
from needle.backend_selection import NDArray

from ..text import counted, elide, number
from .look import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    PALE_BLUE,
    PALE_GREEN,
    PALE_GREY,
    PALE_ORANGE,
    PALE_RED,
    PAPER,
    QUIET,
    RED,
)
from .sketch import BODY, SMALL, Sketch, text_width

__all__ = ["Layout", "broadcast", "fitting", "in_a_cell", "shown", "strides"]

Shape = tuple[int, ...]

CELL = 28  # points
MOST_MEMORY = 40  # cells of memory drawn
MEMORY_ROW = 20  # cells of memory in a line
MOST_ALONG = 8  # elements drawn along the last two axes
MOST_PANELS = 4  # matrices drawn of an array with more axes


# How a view reads memory


@dataclass(frozen=True)
class Layout:
    """How an array lies in memory; everything is counted in elements.

    Attributes
    ----------
    shape, strides : tuple of int
    offset : int
        The place of the first element in the storage.
    storage : numpy.ndarray
        The whole memory that the array looks into, one element after the other.
    """

    shape: Shape
    strides: Shape
    offset: int
    storage: np.ndarray

    @classmethod
    def of(cls, array: Any) -> Layout:
        """The layout of an NDArray, a Tensor or a NumPy array."""
        if isinstance(array, Tensor):
            array = array.realize_cached_data()
        if isinstance(array, np.ndarray):
            return _numpy_layout(array)
        if isinstance(array, NDArray):
            size = array.storage.size
            flat = NDArray.make((size,), (1,), array.device, array.storage) if size else array
            return cls(array.shape, array.strides, array.offset, flat.numpy().reshape(-1))
        raise TypeError(f"strides: needs an NDArray, a Tensor or a NumPy array, got {type(array).__name__}")

    def position(self, index: Sequence[int]) -> int:
        """The place in the storage of the element at an index."""
        return self.offset + sum(i * stride for i, stride in zip(index, self.strides, strict=True))

    def uses(self) -> np.ndarray:
        """How many indices read each element of the storage."""
        positions = np.full(self.shape, self.offset)
        for axis, (length, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            steps = np.arange(length) * stride
            positions = positions + steps.reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        return np.bincount(positions.ravel(), minlength=len(self.storage))


def _numpy_layout(array: np.ndarray) -> Layout:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"strides: needs an array of numbers, got dtype {array.dtype}")
    owner, size = _owner(array), array.itemsize
    if any(n % size for n in (*array.strides, owner.nbytes)) or not owner.flags.forc:
        raise ValueError(
            f"strides: this view does not look at one block of {array.dtype}; draw a copy of it: array.copy()"
        )
    offset = (_address(array) - _address(owner)) // size if array.size else 0
    strides = tuple(step // size for step in array.strides)
    return Layout(array.shape, strides, offset, owner.ravel(order="K").view(array.dtype))


def _owner(array: np.ndarray) -> np.ndarray:
    """The array with all of the memory that a view reads."""
    base: Any = array.base
    if not isinstance(base, np.ndarray):
        base = getattr(base, "base", None)  # what as_strided puts between
    return _owner(base) if isinstance(base, np.ndarray) else array


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def strides(array: Any, index: int | Sequence[int] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw how a view reads memory: its elements above, the cells of the memory below.

    Each element shows its position in memory. Below, a cell that no index reads is pale; a cell that several
    indices read (stride 0, overlapping windows) says how many. Large arrays are drawn in part.

    Parameters
    ----------
    array : NDArray, Tensor or numpy.ndarray
        An array of any shape. Strides are counted in elements, for a NumPy array as well.
    index : int or tuple of int, optional
        Follow this element into memory, with the sum that leads there. Negative numbers count from the end.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `array` is not an array of numbers.
    ValueError
        If its memory is not one block of such numbers.
    IndexError
        If there is no such element.

    Examples
    --------
    >>> a = ndl.NDArray(range(12)).reshape((3, 4))
    >>> viz.strides(a.permute((1, 0))[1:, ::2], index=(2, 1))
    """
    layout = Layout.of(array)
    chosen = None if index is None else _checked_index(index, layout.shape)
    sketch = Sketch()
    place = _draw_elements(sketch, layout, chosen)
    between = sketch.bottom + 14  # where the arrow from an element to its cell turns
    cells = _draw_memory(sketch, layout, chosen, between + 14)
    if chosen is not None:
        position = layout.position(chosen)
        _draw_way(sketch, place, between, cells[position])
        terms = [
            f"{i}·{s}" if s >= 0 else f"{i}·({number(s)})"
            for i, s in zip(chosen, layout.strides, strict=True)
        ]
        sum_ = " + ".join([str(layout.offset), *terms])
        sketch.text(
            *(0, sketch.bottom + 16),
            f"[{', '.join(map(str, chosen))}] is at  offset + Σ index·stride = {sum_} = {position}",
            colour="#B45309",
            bold=True,
        )
    steps = str(layout.strides).replace("-", "−")
    return sketch.on(ax, f"shape {layout.shape}   strides {steps}   offset {layout.offset}")


def _draw_way(
    sketch: Sketch, element: tuple[float, float], between: float, cell: tuple[float, float, bool]
) -> None:
    """Draw an arrow from an element to its cell of memory. It runs between cells, and across none."""
    (x0, y0), (x1, y1, is_first_line) = element, cell
    way = [(x0, y0), (x0, between)]
    if not is_first_line:  # round the cells above
        aside = MEMORY_ROW * CELL + 14
        way += [(aside, between), (aside, y1 - 8), (x1, y1 - 8)]
    else:
        way += [(x1, between)]
    sketch.path(way, ORANGE, thick=1.4, layer=4)
    sketch.line(way[-1], (x1, y1 - 1), ORANGE, thick=1.4, arrow=True, layer=4)


def _checked_index(index: int | Sequence[int], shape: Shape) -> Shape:
    given: tuple[Any, ...] = tuple(index) if np.iterable(index) else (index,)
    if len(given) != len(shape) or not all(
        isinstance(i, Integral) and not isinstance(i, bool) for i in given
    ):
        raise IndexError(
            f"strides: index {elide(repr(index), 40)} must be {counted(len(shape), 'whole number')}, one for "
            f"each axis of shape {shape}"
        )
    if not all(-n <= i < n for i, n in zip(given, shape, strict=True)):
        raise IndexError(f"strides: index {given} lies outside shape {shape}")
    return tuple(int(i) % n for i, n in zip(given, shape, strict=True))


def shown(length: int, most: int, keep: Iterable[int] = ()) -> list[int | None]:
    """Which of many are drawn, in order: the first, those to keep, and the last; None stands for a gap."""
    if length <= most:
        return list(range(length))
    chosen = {*range(most - 3), length - 1, *keep}
    for k in keep:
        chosen |= {k - 1, k + 1} & set(range(length))
    found: list[int | None] = []
    for i in sorted(chosen):
        if found and found[-1] is not None and i == found[-1] + 2:
            found.append(i - 1)  # a single one leaves no gap
        elif found and found[-1] is not None and i > found[-1] + 2:
            found.append(None)
        found.append(i)
    return found


def _draw_elements(sketch: Sketch, layout: Layout, chosen: Shape | None) -> tuple[float, float]:
    """Draw the elements as matrices; returns the lower right corner of the chosen one."""
    shape, ndim = layout.shape, len(layout.shape)
    if 0 in shape:
        sketch.box(0, 0, CELL * 3, CELL, words="no elements", colour=QUIET, dashed=True, size=SMALL)
        return (0, 0)
    rows, columns = (1, 1, *shape)[-2:]
    row_numbers = shown(rows, MOST_ALONG, chosen[-2:-1] if chosen and ndim > 1 else ())
    column_numbers = shown(columns, MOST_ALONG, chosen[-1:] if chosen else ())
    leading = list(product(*map(range, shape[:-2])))
    kept = [leading.index(chosen[:-2])] if chosen and ndim > 2 else []
    place, left = (0.0, 0.0), 0.0
    above = 30.0 if ndim > 2 else 16.0
    margin = text_width(_step(layout, ndim - 2), SMALL) + 10 if ndim > 1 else 0.0
    for panel in shown(len(leading), MOST_PANELS, kept):
        if panel is None:
            sketch.text(left, above + CELL * len(row_numbers) / 2, "…", size=14, colour=QUIET)
            left += 26
            continue
        if ndim > 1:
            right = left + margin - 6
            sketch.text(
                right, above + CELL / 2, _step(layout, ndim - 2), size=SMALL, colour=QUIET, anchor="right"
            )
        inner = left + (margin if ndim > 1 else 0)
        if ndim > 2:
            name = f"[{', '.join(map(str, leading[panel]))}]"
            sketch.text(inner, 6, name, bold=True)
        if ndim:
            sketch.text(inner, above - 8, _step(layout, ndim - 1, "→"), size=SMALL, colour=QUIET)
        for r, row in enumerate(row_numbers):
            for c, column in enumerate(column_numbers):
                x, y = inner + c * CELL, above + r * CELL
                if row is None or column is None:
                    _draw_gap(sketch, x, y, CELL)
                    continue
                index = (*leading[panel], row, column)[-ndim:] if ndim else ()
                position = layout.position(index)
                here = chosen == index
                _element(sketch, x, y, layout, position, here)
                if here:
                    place = (x + CELL, y + CELL)
        left = inner + len(column_numbers) * CELL + 22
    for axis in range(ndim - 2):
        sketch.text(0, -12 - 11 * (ndim - 3 - axis), _step(layout, axis, ""), size=SMALL, colour=QUIET)
    return place


def _step(layout: Layout, axis: int, arrow: str = "↓") -> str:
    """How far a step along an axis leads in memory."""
    return f"axis {axis} {arrow} {layout.strides[axis]:+d}".replace("  ", ": ").replace("-", "−")


def _element(sketch: Sketch, x: float, y: float, layout: Layout, position: int, here: bool) -> None:
    fill, line = (PALE_ORANGE, ORANGE) if here else (PALE_BLUE, BLUE)
    sketch.box(
        x, y, CELL, CELL, fill, line, thick=1.8 if here else 0.8, layer=3 if here else 2, gid="element"
    )
    value, at = in_a_cell(layout.storage[position]), f"@{position}"
    sketch.text(x + CELL / 2, y + CELL / 2 - 4, value, anchor="center", size=fitting(value, BODY))
    sketch.text(x + CELL / 2, y + CELL - 6, at, anchor="center", size=fitting(at, 5.5), colour=QUIET)


def _draw_gap(sketch: Sketch, x: float, y: float, cell: float, size: float = BODY) -> None:
    """Draw three dots in place of a cell."""
    sketch.text(x + cell / 2, y + cell / 2, "…", size=size, colour=QUIET, anchor="center")


def fitting(words: str, size: float, cell: float = CELL) -> float:
    """The largest font size, up to `size`, at which words fit into a cell."""
    return min(size, size * (cell - 3) / max(text_width(words, size), 1))


def in_a_cell(value: Any) -> str:
    """A number that fits into a cell."""
    if isinstance(value, (float, np.floating)):
        texts = [number(value, digits) for digits in (3, 2, 1)]
        return next((text for text in texts if len(text) <= 4), texts[-1])
    text = number(int(value))
    return text if len(text) <= 5 else elide(text, 5)


def _draw_memory(
    sketch: Sketch, layout: Layout, chosen: Shape | None, top: float
) -> dict[int, tuple[float, float, bool]]:
    """Draw the storage; returns the upper middle of each cell, and whether it is in the first line."""
    uses = layout.uses()
    size = len(layout.storage)
    read = int(np.count_nonzero(uses))
    many = ", some by several indices" if (uses > 1).any() else ""
    keep = [layout.position(chosen)] if chosen is not None else []
    if size and layout.offset < size:
        keep.append(layout.offset)
    places = {}
    y = top
    column = 0
    for position in shown(size, MOST_MEMORY, sorted(set(keep))):
        if column == MEMORY_ROW:
            column, y = 0, y + CELL + 30
        x = column * CELL
        column += 1
        if position is None:
            _draw_gap(sketch, x, y, CELL)
            continue
        here = bool(keep) and chosen is not None and position == keep[0]
        count = int(uses[position]) if position < len(uses) else 0
        fill = PALE_ORANGE if here else PALE_BLUE if count else PAPER
        line = ORANGE if here else BLUE if count else FAINT
        value = in_a_cell(layout.storage[position])
        sketch.box(
            *(x, y, CELL, CELL, fill, line),
            thick=1.8 if here else 0.8,
            layer=3 if here else 2 if count else 1.5,
            words=value,
            size=fitting(value, BODY),
            colour=INK if count else QUIET,
            gid="read" if count else "unread",
        )
        below = str(position)
        small = fitting(below, SMALL)
        sketch.text(x + CELL / 2, y + CELL + 6, below, size=small, colour=QUIET, anchor="center")
        if count > 1:
            sketch.text(x + CELL - 3, y + 6, f"×{count}", size=5.5, colour="#B45309", anchor="right")
        if position == layout.offset and layout.shape and 0 not in layout.shape:
            sketch.text(x + CELL / 2, y + CELL + 15, "offset", size=SMALL, colour="#B45309", anchor="center")
        places[position] = (x + CELL / 2, y, y == top)
    low = sketch.bottom + 12
    words = f"{counted(size, 'cell')}, {read:,} of them read{many}"
    sketch.text(sketch.text(0, low, "memory", bold=True) + 10, low, words, colour=QUIET)
    return places


# How shapes broadcast


def broadcast(*shapes: Any, ax: Axes | None = None) -> Axes:
    """Draw how shapes broadcast, rule by rule, or the axis where they fail.

    There are three rules. Shapes are aligned at the last axis. A missing axis in front counts as length 1. A
    length 1 stretches to the other length, and any other two lengths must be equal. Below, the elements of
    each array are full, and those that stretching repeats are hollow.

    Parameters
    ----------
    *shapes : tuple of int, int, or anything with a shape
        Two or more.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.broadcast((2, 3, 1), (7, 2, 1, 5))  # to (7, 2, 3, 5)
    >>> viz.broadcast((2, 3), (2, 4))  # fails, and says where
    """
    given = [_as_shape(shape) for shape in shapes]
    if len(given) < 2:
        raise ValueError(f"broadcast: needs at least two shapes, got {len(given)}")
    ndim = max(map(len, given))
    full = [(1,) * (ndim - len(shape)) + shape for shape in given]
    lengths = [sorted({shape[axis] for shape in full} - {1}) for axis in range(ndim)]
    failing = [axis for axis in range(ndim) if len(lengths[axis]) > 1]
    result = tuple(found[0] if found else 1 for found in lengths)
    sketch = Sketch()
    _draw_rules(sketch, given, full, result, failing)
    if not failing and ndim:
        _draw_stretching(sketch, given, full, result)
    names = " and ".join(map(str, given)) if len(given) == 2 else ", ".join(map(str, given))
    return sketch.on(ax, f"{names} do not broadcast" if failing else f"{names} broadcast to {result}")


def _as_shape(shape: Any) -> Shape:
    shape = getattr(shape, "shape", shape)
    shape = (shape,) if isinstance(shape, Integral) else shape
    if (
        not isinstance(shape, Sequence)
        or isinstance(shape, str)
        or not all(isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 0 for n in shape)
    ):
        raise TypeError(f"broadcast: needs shapes such as (5, 1), or arrays, got {shape!r}")
    return tuple(map(int, shape))


NUMBER = 34.0  # points: the width of a length in its box
LINE = 32.0


def _draw_rules(
    sketch: Sketch, given: list[Shape], full: list[Shape], result: Shape, failing: list[int]
) -> None:
    """Draw three tables side by side, one for each rule; the third ends in the result."""
    ndim = len(result)
    width = max(ndim * NUMBER, 118.0)
    rules = (
        "1  align at the last axis",
        "2  a missing axis counts as 1",
        "3  1 stretches, the rest is equal",
    )
    for step, rule in enumerate(rules):
        left = step * (width + 62)
        sketch.text(left, 0, rule, size=8, bold=True, colour="#475467")
        right = left + width
        for row, (shape, padded) in enumerate(zip(given, full, strict=True)):
            y = 16 + row * LINE
            for axis in range(ndim):
                x = right - (ndim - axis) * NUMBER
                missing = axis < ndim - len(shape)
                if missing and step == 0:
                    continue
                stretched = step == 2 and padded[axis] == 1 != result[axis] and axis not in failing
                wrong = step == 2 and axis in failing and padded[axis] != 1
                kind = "missing" if missing else "length"
                fill, line = PAPER if missing else PALE_BLUE, BLUE
                if stretched:
                    kind, fill, line = "stretched", PALE_ORANGE, ORANGE
                if wrong:
                    kind, fill, line = "wrong", PALE_RED, RED
                words = f"1 → {result[axis]}" if stretched else str(padded[axis])
                sketch.box(
                    *(x + 2, y, NUMBER - 4, 22, fill, line),
                    words=words,
                    size=8 if stretched else BODY + 1,
                    colour=RED if wrong else INK,
                    dashed=missing,
                    rounded=4,
                    gid=kind,
                )
        if step < 2:
            middle = 16 + (len(given) * LINE - 10) / 2
            sketch.line((right + 14, middle), (right + 46, middle), QUIET, arrow=True)
    left, y = 2 * (width + 62), 16 + len(given) * LINE
    right = left + width
    if not failing:
        sketch.line((right - max(ndim, 1) * NUMBER, y - 4), (right, y - 4), QUIET)
        for axis in range(ndim):
            x = right - (ndim - axis) * NUMBER + 2
            sketch.box(
                *(x, y + 2, NUMBER - 4, 22, PALE_GREEN, "#0B7A53"),
                words=str(result[axis]),
                size=BODY + 1,
                bold=True,
                rounded=4,
                gid="result",
            )
        if not ndim:
            sketch.text(right, y + 10, "() : one number", anchor="right", bold=True)
        return
    for axis in failing:
        there = sorted({shape[axis] for shape in full} - {1})
        place = f"axis {axis - ndim} (counted from the end)"
        none = "neither is 1" if len(there) == 2 else "none of them is 1"
        words = f"{place}: {' ≠ '.join(map(str, there))}, and {none}"
        sketch.text(right, y + 8, words, colour=RED, bold=True, size=8, anchor="right")
        y += 14


MOST_BROADCAST = 7  # elements drawn along an axis
SMALL_CELL = 15.0


def _draw_stretching(sketch: Sketch, given: list[Shape], full: list[Shape], result: Shape) -> None:
    """Draw each operand at the size of the result, with hollow cells for what repeats, and the result."""
    top = sketch.bottom + 22
    left = 0.0
    for number_, (shape, padded) in enumerate([*zip(given, full, strict=True), (result, result)]):
        last = number_ == len(given)
        if number_:
            sign = "=" if last else "and"
            left += 12
            left += sketch.text(left, top + 34, sign, size=BODY, colour=QUIET) + 12
        left = _draw_block(sketch, left, top, shape, padded, result, last)


def _draw_block(
    sketch: Sketch, left: float, top: float, shape: Shape, padded: Shape, result: Shape, last: bool
) -> float:
    """Draw an array, with matrices behind each other if it has more than two axes; returns its right edge."""
    rows, columns = (1, *result)[-2:]
    own_rows, own_columns = (1, *padded)[-2:]
    row_numbers, column_numbers = (shown(n, MOST_BROADCAST) for n in (rows, columns))
    sheets, own_sheets = result[:-2], padded[:-2]
    behind = min(math.prod(sheets), 3) - 1 if sheets else 0
    own, every = math.prod(own_sheets), math.prod(sheets)
    width, height = len(column_numbers) * SMALL_CELL, len(row_numbers) * SMALL_CELL
    line = "#0B7A53" if last else BLUE
    fill = PALE_GREEN if last else "#B9D0F7"
    x0, y0 = left, top + 16 + behind * 5
    sketch.text(left, top, str(shape), bold=True, size=8, colour=line)
    for depth in range(behind, 0, -1):
        again = own < every and (depth == behind or own == 1)
        sketch.box(
            *(x0 + 5 * depth, y0 - 5 * depth, width, height),
            PAPER if again else PALE_GREY,
            ORANGE if again else line,
            dashed=again,
            layer=1 - depth / 10,
        )
    if behind:
        sketch.box(x0, y0, width, height, PAPER, "none", layer=1)
    if not width or not height:
        sketch.text(x0, y0 + 8, "empty", size=SMALL, colour=QUIET)
        width = 30
    for r, row in enumerate(row_numbers):
        for c, column in enumerate(column_numbers):
            x, y = x0 + c * SMALL_CELL, y0 + r * SMALL_CELL
            if row is None or column is None:
                _draw_gap(sketch, x, y, SMALL_CELL, SMALL)
                continue
            real = row < own_rows and column < own_columns
            sketch.box(
                *(x + 1, y + 1, SMALL_CELL - 2, SMALL_CELL - 2),
                fill if real else PAPER,
                line if real else ORANGE,
                dashed=not real,
                thick=0.8,
                gid="made" if last else "there" if real else "repeated",
            )
    right = x0 + width + 5 * behind
    if sheets:
        words = counted(own, "sheet") + (f", {every // own} times" if 0 < own < every else "")
        sketch.text(x0, y0 + height + 9, words, size=SMALL, colour=QUIET)
        right = max(right, x0 + text_width(words, SMALL))
    return max(right, left + text_width(str(shape), 8, True))
