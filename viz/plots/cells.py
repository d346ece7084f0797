"""What pictures made of cells share: which of many are drawn, and numbers that fit into a cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..text import elide, number
from .look import QUIET
from .sketch import BODY, Sketch, text_width

__all__ = ["CELL", "draw_gap", "fitting", "in_a_cell", "shown"]

CELL = 28  # points


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


def draw_gap(sketch: Sketch, x: float, y: float, cell: float, size: float = BODY) -> None:
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
