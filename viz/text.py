"""Text in a drawing: numbers as people read them, names made safe, and the width of a line."""

from __future__ import annotations

import html
import textwrap
import unicodedata

import numpy as np

__all__ = [
    "byte_count", "cells_of", "counted", "elide", "escape", "has_known_width", "number", "ordinal", "rows_of",
    "superscript", "table_of", "text_width", "wrap",
]  # fmt: skip

MOST_IN_A_LINE = 6  # the longest vector written out
MOST_ROWS = MOST_COLUMNS = 4  # the largest matrix written out
MOST_IN_TABLE = 12  # rows, and columns
LONGEST_LINE = 44  # characters
LARGEST_SEARCHED = 100_000  # elements: of a larger array the range is not given

Rows = tuple[tuple[str, ...], ...]


def rows_of(array: np.ndarray) -> Rows:
    """An array as a few short pieces of text: rows of cells.

    A small vector is one row with one cell, ``[1 2 3]``, and so is a matrix of one row; any other small
    matrix has one cell per element. Anything larger gives its least and its greatest number, if these are
    quickly found.
    """
    if array.size == 0:
        return (("empty",),)
    cells = cells_of(array)
    if len(cells) > 1:
        return cells
    line = _in_brackets(array) if _is_small(array) else ""
    return ((line,),) if line and len(line) <= LONGEST_LINE else _range_of(array)


def cells_of(array: np.ndarray) -> Rows:
    """Each number of a small vector or matrix, row by row; empty for any other array."""
    if array.ndim not in (1, 2) or array.size == 0 or not _is_small(array):
        return ()
    return tuple(tuple(map(number, row)) for row in np.atleast_2d(array))


def table_of(array: np.ndarray) -> Rows:
    """The numbers of a matrix or a vector row by row; of a large one, its first rows and columns.

    Of an array with more axes it is the first matrix.
    """
    while array.ndim > 2:
        array = array[0] if len(array) else array.reshape(0, 0)
    if array.size == 0:
        return ()
    rows, columns = np.atleast_2d(array).shape
    part = np.atleast_2d(array)[:MOST_IN_TABLE, :MOST_IN_TABLE]
    # `number` takes as long as ten of these, and a page can hold thousands of numbers.
    if array.dtype.kind == "f":
        cells = [[f"{x:.4g}" for x in row] for row in part.tolist()]
        table = [[number(float(x)) if "e" in x else x.replace("-", "−") for x in row] for row in cells]
    else:
        table = [[number(x) for x in row] for row in part.tolist()]
    if columns > MOST_IN_TABLE:
        table = [[*row, "…"] for row in table]
    if rows > MOST_IN_TABLE:
        table.append(["…"] * len(table[0]))
    return tuple(map(tuple, table))


def _is_small(array: np.ndarray) -> bool:
    if array.ndim == 2 and array.shape[0] > 1:
        return array.shape[0] <= MOST_ROWS and array.shape[1] <= MOST_COLUMNS
    return array.size <= MOST_IN_A_LINE


def _in_brackets(array: np.ndarray) -> str:
    """All numbers on one line, with brackets around each axis; a matrix of one row is a row."""
    if array.ndim == 0:
        return number(array[()])
    if array.ndim == 2 and len(array) == 1:
        array = array[0]
    return f"[{' '.join(map(_in_brackets, array))}]"


def _range_of(array: np.ndarray) -> Rows:
    if array.size > LARGEST_SEARCHED:
        return ()
    strange = int(array.size - np.count_nonzero(np.isfinite(array)))
    if strange == array.size:
        return ((f"{strange:,} nan or inf",),)
    finite = array[np.isfinite(array)] if strange else array
    low, high = number(finite.min()), number(finite.max())
    words = f"all {low}" if low == high else f"min {low}, max {high}"
    return ((words + (f", {strange:,} nan or inf" if strange else ""),),)


def number(value, digits: int = 4) -> str:
    """A number in at most so many significant digits: ``−0.25``, ``1.2·10⁻⁸``.

    Below a million, no digits before the point are left out.
    """
    if isinstance(value, (float, np.floating)):
        whole = 10**digits <= abs(float(value)) < 1e6
        text = f"{value:.0f}" if whole else f"{value + 0.0:.{digits}g}"  # + 0.0: no "-0"
    else:
        text = str(value)
    mantissa, has_power, power = text.partition("e")
    if has_power and power.lstrip("+-").isdecimal():
        begin = {"1": "", "-1": "-"}.get(mantissa, f"{mantissa}·")
        text = f"{begin}10{superscript(int(power))}"
    return text.replace("-", "−")


def superscript(whole: int) -> str:
    """``⁻⁸`` for −8."""
    return str(whole).translate(_SUPERSCRIPTS)


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def byte_count(number: int) -> str:
    """A number of bytes in at most three significant digits: ``400 B``, ``1.2 kB`` (1 kB is 1000 B)."""
    size = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


def counted(number: int, what: str) -> str:
    """``1 node``, ``1,000 nodes``."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def ordinal(index: int) -> str:
    """1st for 0, 2nd for 1, and so on."""
    n = index + 1
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def elide(text: str, longest: int = 30) -> str:
    """One line of printable characters; a long one lacks its middle."""
    text = "".join(c if c.isprintable() else " " for c in str(text))
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return text[:head] + "…" + text[head + 1 - longest :]


def wrap(text: str, width: int = 44, most_lines: int = 5) -> list[str]:
    """A sentence in a few lines; a long one lacks its end."""
    return textwrap.wrap(elide(text, 1000), width, max_lines=most_lines, placeholder=" …")


def escape(text: str) -> str:
    """`text` for an HTML-like label of DOT, where a backslash begins an escape as well."""
    return html.escape(text).replace("\\", "\\\\")


# Widths of Helvetica in thousandths of the font size, for the characters 32 to 126 (Adobe's font metrics).
_REGULAR = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 "
    "556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 "
    "722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 "
    "500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
)
_BOLD = (
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 "
    "556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 722 778 667 778 "
    "722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556 611 556 611 556 333 611 611 278 278 "
    "556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 280 389 584"
)
_WIDTHS = [dict(enumerate(map(int, table.split()), 32)) for table in (_REGULAR, _BOLD)]
_OTHERS = {
    ord("×"): 584,
    ord("÷"): 584,
    ord("−"): 584,
    ord("…"): 1000,
    ord("Σ"): 618,
    0xA0: 278,
    ord("·"): 278,
} | dict.fromkeys(map(ord, "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"), 350)


def has_known_width(character: str) -> bool:
    """Whether `text_width` knows the width of this character, and does not guess."""
    return ord(character) in _WIDTHS[False] or ord(character) in _OTHERS


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width of a line in Helvetica, in the unit of `size`; an estimate for most of what is not ASCII."""
    widths = _WIDTHS[bold]
    return size / 1000 * sum(widths.get(ord(c)) or _OTHERS.get(ord(c)) or _estimate(c) for c in text)


def _estimate(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 1000 if unicodedata.east_asian_width(character) in "WF" else 650
