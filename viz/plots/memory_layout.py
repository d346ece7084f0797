"""How a view reads memory: shape, strides and offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from needle.autograd import Tensor
from needle.backend_ndarray import NDArray

from ..text import counted, elide, number
from .cells import CELL, draw_gap, fitting, in_a_cell, shown
from .look import BLUE, FAINT, INK, ORANGE, PALE_BLUE, PALE_ORANGE, PAPER, QUIET
from .sketch import BODY, SMALL, Sketch, text_width

__all__ = ["MemoryLayout", "strides"]

Shape = tuple[int, ...]

MOST_MEMORY = 40  # cells of memory drawn
MEMORY_ROW = 20  # cells of memory in a line
MOST_ALONG = 8  # elements drawn along the last two axes
MOST_PANELS = 4  # matrices drawn of an array with more axes


@dataclass(frozen=True)
class MemoryLayout:
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
    def of(cls, array: Any) -> MemoryLayout:
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


def _numpy_layout(array: np.ndarray) -> MemoryLayout:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"strides: needs an array of numbers, got dtype {array.dtype}")
    owner, size = _owner(array), array.itemsize
    if any(n % size for n in (*array.strides, owner.nbytes)) or not owner.flags.forc:
        raise ValueError(
            f"strides: this view does not look at one block of {array.dtype}; draw a copy of it: array.copy()"
        )
    offset = (_address(array) - _address(owner)) // size if array.size else 0
    strides = tuple(step // size for step in array.strides)
    return MemoryLayout(array.shape, strides, offset, owner.ravel(order="K").view(array.dtype))


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
    layout = MemoryLayout.of(array)
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


def _draw_elements(sketch: Sketch, layout: MemoryLayout, chosen: Shape | None) -> tuple[float, float]:
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
                    draw_gap(sketch, x, y, CELL)
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


def _step(layout: MemoryLayout, axis: int, arrow: str = "↓") -> str:
    """How far a step along an axis leads in memory."""
    return f"axis {axis} {arrow} {layout.strides[axis]:+d}".replace("  ", ": ").replace("-", "−")


def _element(sketch: Sketch, x: float, y: float, layout: MemoryLayout, position: int, here: bool) -> None:
    fill, line = (PALE_ORANGE, ORANGE) if here else (PALE_BLUE, BLUE)
    sketch.box(
        x, y, CELL, CELL, fill, line, thick=1.8 if here else 0.8, layer=3 if here else 2, gid="element"
    )
    value, at = in_a_cell(layout.storage[position]), f"@{position}"
    sketch.text(x + CELL / 2, y + CELL / 2 - 4, value, anchor="center", size=fitting(value, BODY))
    sketch.text(x + CELL / 2, y + CELL - 6, at, anchor="center", size=fitting(at, 5.5), colour=QUIET)


def _draw_memory(
    sketch: Sketch, layout: MemoryLayout, chosen: Shape | None, top: float
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
            draw_gap(sketch, x, y, CELL)
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
