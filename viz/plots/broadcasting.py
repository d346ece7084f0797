"""How shapes broadcast, rule by rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from matplotlib.axes import Axes

from ..text import counted
from .cells import draw_gap, shown
from .look import (
    BLUE,
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

__all__ = ["broadcast"]

Shape = tuple[int, ...]


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
                draw_gap(sketch, x, y, SMALL_CELL, SMALL)
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
