"""Equations of the steps: an expression, then its numbers, then what comes out; as text, as HTML and as DOT.

A Tensor is not equal to its shape. So a shape stands below a name, and after ``=`` there are only numbers.
"""

from __future__ import annotations

import html
import math
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from needle.autograd import TensorTuple, Value

from .expressions import Index, Name, Term, entry_of
from .operators import RELATIONS, ZEROS_BUT
from .text import Rows, cells_of, number, rows_of, superscript

__all__ = ["Equation", "Matrix", "Piece", "Word", "adjoint_name", "equation", "joined", "partial_name"]

MOST_CELLS = 64  # numbers in one equation: of larger ones only names are written
EXPLAINED = {"@", "Σ"}  # signs of which an entry is worked out, even if all numbers are seen
# Inside an expression, the results of these are seen.
AS_NUMBERS = {"exp", "softmax", "logsoftmax", "logsumexp", "broadcast"}
WAY = " via "  # between a node and the consumer that its partial adjoint came through
# How tightly a sign binds. An operand that binds less than it must gets brackets.
WORDS, SUM, PRODUCT, POWER, ATOM = range(5)
IN_EQUATIONS = {"×": "·", "÷": "/"}


@dataclass(frozen=True)
class Word:
    """A piece of a line: a name, or signs between names.

    Attributes
    ----------
    text : str
    below : str
        What stands below it in small letters: a shape, or axes.
    bar : bool
        Whether it has a bar above it, as an adjoint has.
    after : str
        What follows without a bar.
    """

    text: str
    below: str = ""
    bar: bool = False
    after: str = ""

    def __str__(self) -> str:
        axes = f"[{self.below}]" if self.below and self.below[0] != "(" else ""
        return f"{Name(self.text, self.bar, self.after)}{axes}"

    def html(self) -> str:
        """The word, with what stands below it."""
        text = html.escape(self.text)
        text = (f'<span class="bar-above">{text}</span>' if self.bar else text) + html.escape(self.after)
        below = f"<small>{self.below}</small>"
        return f'<span class="name"><span>{text}</span>{below}</span>' if self.below else text


@dataclass(frozen=True)
class Matrix:
    """A piece of a line: the numbers of a matrix, or of a vector as a row.

    Attributes
    ----------
    rows : tuple of tuples of str
    marked : set of (row, column)
        The cells that the worked entry comes from, or goes to.
    """

    rows: Rows
    marked: frozenset[tuple[int, int]] = frozenset()

    def __str__(self) -> str:
        rows = [f"[{' '.join(row)}]" for row in self.rows]
        return rows[0] if len(rows) == 1 else f"[{' '.join(rows)}]"

    def html(self) -> str:
        """The numbers between square brackets, in a grid."""
        cells = "".join(
            f"<{tag}>{html.escape(cell)}</{tag}>"
            for r, row in enumerate(self.rows)
            for c, cell in enumerate(row)
            for tag in ("mark" if (r, c) in self.marked else "span",)
        )
        columns = f"grid-template-columns:repeat({len(self.rows[0])},auto)"
        return f'<span class="matrix" role="img" aria-label="{self}" style="{columns}">{cells}</span>'

    def lines(self) -> list[str]:
        """The numbers between square brackets, as lines of text."""
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        rows = [" ".join(map(str.rjust, row, widths)) for row in self.rows]
        if len(rows) == 1:
            return [f"[{rows[0]}]"]
        ends = [("⎡", "⎤"), *[("⎢", "⎥")] * (len(rows) - 2), ("⎣", "⎦")]
        return [f"{left}{row}{right}" for row, (left, right) in zip(rows, ends, strict=True)]


Piece = Word | Matrix
Side = tuple[Piece, ...]


@dataclass(frozen=True)
class Equation:
    """One equation, as plain data.

    Attributes
    ----------
    sides : tuple of tuples of Word and Matrix
        What stands between the signs ``=``.
    note : str
        What is said after it.
    entry : tuple of tuples of Word and Matrix
        The sides of a second equation, which shows where one entry comes from. May be empty.
    why : str
        A sentence below.
    """

    sides: tuple[Side, ...]
    note: str = ""
    entry: tuple[Side, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        lines = [" = ".join(map(_text, sides)) for sides in (self.sides, self.entry)]
        return "; ".join(filter(None, [lines[0] + self.note, self._shapes, lines[1]]))

    @property
    def _shapes(self) -> str:
        """The shapes, in words; empty if the numbers show them."""
        words = [x for side in self.sides for x in side if isinstance(x, Word) and x.below.startswith("(")]
        seen = any(isinstance(x, Matrix) for side in self.sides for x in side)
        facts = dict.fromkeys(f"{x} {x.below}" for x in words)
        return f"shapes {', '.join(facts)}" if facts and not seen else ""

    def lines(self, width: int) -> list[str]:
        """The equation as lines of text, with matrices as they are written by hand."""
        first = (*self.sides[:-1], (*self.sides[-1], Word(self.note))) if self.note else self.sides
        rest = [x for words in (self._shapes, self.why) for x in textwrap.wrap(words, width)]
        return [*_lines_of(first, width), *_lines_of(self.entry, width), *rest]

    def html(self) -> str:
        """The equation as HTML, with the second one below it."""
        line, entry = (
            " ".join(_html_of(side, "= " if i else "") for i, side in enumerate(sides))
            for sides in (self.sides, self.entry)
        )
        lines = {"entry": entry, "why": html.escape(self.why)}
        below = "".join(f'<div class="{kind}">{line}</div>' for kind, line in lines.items() if line)
        note = f'<span class="note">{html.escape(self.note)}</span>' if self.note else ""
        return f'<div class="equation">{line}{note}{below}</div>'


def equation(
    name: Name, value: Value, term: Term | None, *, note: str = "", entries: bool = True, why: str = ""
) -> Equation:
    """The equation of a node: its name, the expression, the same in numbers, and the result.

    Parameters
    ----------
    name : Name
    value : Value
        The node.
    term : Term or None
        Its expression; None for a leaf.
    note : str
    entries : bool
        Whether to work out an entry, where that explains something.
    why : str
    """
    own = Term(shape=None if isinstance(value, TensorTuple) else value.shape, name=name, value=value)
    result = _value(own)
    sides = [_named(own)]
    entry: tuple[Side, ...] = ()
    if term is not None:
        sides.append(_write(term, _named))
        has_numbers = result is not None and _fits_in_numbers(term)
        marks: Marks = {}
        if entries and own.array is not None and own.shape and own.array.size:
            entry = _entry(own, term, has_numbers, marks)
        if has_numbers and (numbers := _in_numbers(term, marks)):
            sides.append(numbers)
        if isinstance(result, Matrix):
            result = replace(result, marked=_cells(marks.get(own, ()), result))
    if result is not None:
        sides.append((result,))
    elif isinstance(value, TensorTuple):
        note += f", a tuple of {len(value)}"
    elif own.array is None:
        note += ", not computed"
    else:
        note += "".join(f"{', ' if len(sides) > 1 else ': '}{row[0]}" for row in rows_of(own.array))
    return Equation(_without_repeats(sides), note, entry, why)


Marks = dict[Term, list[Index]]  # the entries of a name in an expression that a worked entry comes from


def _cells(indices: Iterable[Index], matrix: Matrix) -> frozenset[tuple[int, int]]:
    """The cells at some indices; ``:`` stands for a whole row or column."""
    found = set()
    for index in indices:
        row, column = index if len(index) == 2 else (0, *index)
        rows = range(len(matrix.rows)) if row == ":" else [row]
        columns = range(len(matrix.rows[0])) if column == ":" else [column]
        found |= set(product(rows, columns))
    return frozenset(found)  # type: ignore[arg-type]


def _entry(own: Term, term: Term, small: bool, marks: Marks) -> tuple[Side, ...]:
    """Where one entry comes from; empty if the equation shows that already. `marks` gets what it uses."""
    shapes = {x.shape for x in term.leaves() if math.prod(x.shape or ()) != 1}
    if small and shapes <= {own.shape} and not EXPLAINED.intersection(term.signs()):
        return ()
    assert own.array is not None
    index = _telling_index(own.array)
    used: Marks = {}
    symbols, numbers = entry_of(term, index), entry_of(term, index, in_numbers=True, used=used)
    if symbols.sign.startswith("[") or not (symbols.operands or (symbols.name and symbols.name.after)):
        return ()
    marks.update(used | {own: [index]})
    sides: list[Side] = [(Word(f"entry {list(index)}"),), _write(symbols, _bare)]
    sides += [_write(numbers, _number_or_name), (Word(number(own.array[index])),)]
    return _without_repeats(sides)


def _telling_index(array: np.ndarray) -> tuple[int, ...]:
    """The entry to work out: the second number of an array; if that is 0, the first that is not."""
    index = (*[0] * (array.ndim - 1), min(1, array.shape[-1] - 1))
    if array[index] or not array.any():
        return index
    return tuple(int(i) for i in np.unravel_index((array != 0).argmax(), array.shape))


def adjoint_name(name: str) -> Name:
    """``v̄2`` for v2; a bar over the whole name, if that is more than a letter and a number."""
    if not _is_short(name):
        return Name(name, bar=True)
    return Name(unicodedata.normalize("NFC", f"{name[0]}\N{COMBINING MACRON}{name[1:]}"))


def partial_name(name: str, consumer: str) -> Name:
    """``v̄2 via v4`` for what v4 passes on to v2."""
    return replace(adjoint_name(name), after=f"{WAY}{consumer}")


def _is_short(name: str) -> bool:
    return name[:1].isalpha() and (name[1:].isdecimal() or len(name) == 1)


# Expressions as pieces


class _Written(NamedTuple):
    """Pieces, and how tightly they hold together."""

    pieces: tuple[Piece, ...]
    binds: int

    @property
    def negative(self) -> bool:
        return str(self.pieces[0]).startswith("−")


def _write(term: Term, leaf: Callable[[Term], Side]) -> Side:
    return joined(_Writer(leaf).write(term).pieces)


class _Writer:
    """Writes an expression, with brackets where they are needed; `leaf` says how a name or a number looks."""

    def __init__(self, leaf: Callable[[Term], Side]):
        self.leaf = leaf

    def write(self, term: Term, first: bool = True) -> _Written:
        sign, inner = term.sign, term.operands
        if not inner:
            pieces = self.leaf(term)
            if isinstance(pieces[0], Word) and WAY in pieces[0].after:
                return _Written(pieces, SUM)
            return _Written(pieces, PRODUCT if str(pieces[0]).startswith("−") else ATOM)
        if not sign:
            return self.write(inner[0], first)
        if sign == "Σ":
            return _Written((Word(sign, term.axes), Word(" "), *self.within(inner[0], PRODUCT)), SUM)
        if sign == "+":
            return self.sum(term)
        if sign == "−":
            return _Written((Word("−"), *self.within(inner[0], PRODUCT, first=False)), PRODUCT)
        if sign in ("×", "÷", "@") and len(inner) == 2:
            return self.product(term, first)
        if sign == "**" and len(inner) == 2:
            return self.power(term)
        if sign in RELATIONS and len(inner) == 2:
            left, right = (self.within(x, SUM) for x in inner)
            return _Written((*left, Word(f" {sign} "), *right), WORDS)
        if sign == "mask" and len(inner) == 2:
            return self.choice(self.condition(inner[1]), self.within(inner[0], SUM), (Word("0"),))
        if sign == "where" and len(inner) == 3:
            return self.choice(self.condition(inner[0]), *(self.within(x, SUM) for x in inner[1:]))
        if sign.startswith(ZEROS_BUT):
            index = sign.removeprefix(ZEROS_BUT)
            return _Written((*self.within(inner[0], SUM), Word(f" at {index}, else 0")), WORDS)
        if sign == "ᵀ" or sign[0] == "[":
            return self.with_sign(term, sign, ATOM)
        return self.call(term)

    def within(self, term: Term, binds: int, *, first: bool = True) -> tuple[Piece, ...]:
        """An operand; in brackets if it binds less than it must, or begins with − and does not come first."""
        written = self.write(term, first)
        if written.binds < binds or (written.negative and not first):
            return (Word("("), *written.pieces, Word(")"))
        return written.pieces

    def sum(self, term: Term) -> _Written:
        terms = [*_summands(term)]
        if terms[0][0] == "−":  # 1 − a rather than −a + 1
            terms.sort(key=lambda x: x[0] == "−")
        pieces: list[Piece] = []
        for sign, x in terms:
            begin = sign if not pieces and sign == "−" else f" {sign} " if pieces else ""
            operand = self.within(x, PRODUCT if sign == "−" else SUM, first=not pieces and sign == "+")
            pieces += [*([Word(begin)] if begin else []), *operand]
        return _Written(tuple(pieces), SUM)

    def product(self, term: Term, first: bool) -> _Written:
        sign = term.sign
        a, b = map(_seen, term.operands)
        same = a.sign == sign or (sign == "÷" and a.sign == "×") or a.sign == "−"
        left = self.within(a, PRODUCT if same or not a.operands else POWER, first=first)
        right = self.within(b, PRODUCT if sign == b.sign == "×" else POWER, first=False)
        return _Written((*left, Word(f" {IN_EQUATIONS.get(sign, sign)} "), *right), PRODUCT)

    def power(self, term: Term) -> _Written:
        base, exponent = term.operands
        if _is_in_operator(exponent) and float(exponent.value).is_integer() and abs(exponent.value) < 1000:
            return self.with_sign(term, superscript(int(exponent.value)), POWER)
        return _Written((*self.within(base, ATOM), Word(" ** "), *self.within(exponent, ATOM)), POWER)

    def condition(self, term: Term) -> Side:
        """A comparison as it is; any other numbers, if they are not 0."""
        if _seen(term).sign in RELATIONS:
            return self.write(term).pieces
        return (*self.within(term, SUM), Word(" ≠ 0"))

    def choice(self, condition: Side, chosen: Side, other: Side) -> _Written:
        return _Written((*chosen, Word(" where "), *condition, Word(", else "), *other), WORDS)

    def with_sign(self, term: Term, sign: str, binds: int) -> _Written:
        """The first operand with a sign after it; below a name stands the shape that comes out."""
        pieces = self.within(term.operands[0], ATOM)
        if len(pieces) == 1 and isinstance(name := pieces[0], Word):
            below = str(term.shape) if name.below else ""
            return _Written((replace(name, below=below, after=name.after + sign),), binds)
        return _Written((*pieces, Word(sign)), binds)

    def call(self, term: Term) -> _Written:
        name = Word("" if term.sign == "tuple" else term.sign.replace(" ", "_"), term.axes)
        pieces: list[Piece] = [name, Word("(")]
        for i, x in enumerate(term.operands):
            pieces += [*([Word(", ")] if i else []), *self.write(x).pieces]
        return _Written((*pieces, Word("".join(f", {word}" for word in term.more) + ")")), ATOM)


def _seen(term: Term) -> Term:
    """The part of a term that is written: an operator without a sign is not."""
    while term.operands and not term.sign:
        term = term.operands[0]
    return term


def _is_in_operator(term: Term) -> bool:
    """Whether it is a number that belongs to an operator, as the 1 in ``x + 1``."""
    return (
        term.name is None and isinstance(term.value, (int, float)) and not isinstance(term.value, np.generic)
    )


def _summands(term: Term) -> Iterator[tuple[str, Term]]:
    """The terms of a sum with their signs."""
    term = _seen(term)
    if term.sign == "+":
        for x in term.operands:
            yield from _summands(x)
    elif term.sign == "−" and term.operands:
        yield "−", term.operands[0]
    elif _is_in_operator(term) and term.value < 0:  # x − 1
        yield "−", Term(value=-term.value)
    else:
        yield "+", term


# Names and numbers as pieces


def _value(term: Term) -> Piece | None:
    """Its numbers; None if they are too many, or not known."""
    array = term.array
    if array is None:
        return None
    if array.size == 1:
        return Word(number(array.reshape(-1)[0]))
    cells = cells_of(array)
    if cells:
        return Matrix(cells)
    ((line,),) = rows_of(array) or (("",),)
    return Word(line) if line.startswith("[") else None


def _named(term: Term) -> Side:
    """A name with its shape below it."""
    if term.name is None:
        return (_value(term) or Word("constant", str(term.shape)),)
    below = str(term.shape) if term.shape and math.prod(term.shape) != 1 else ""
    return (Word(term.name.text, below, term.name.bar, term.name.after),)


def _bare(term: Term) -> Side:
    """A name without its shape."""
    return _named(replace(term, shape=()))


def _number_or_name(term: Term, marked: Iterable[Index] = ()) -> Side:
    value = _value(term)
    if isinstance(value, Matrix):
        value = replace(value, marked=_cells(marked, value))
    return (value,) if value is not None else _bare(term)


def _fits_in_numbers(term: Term) -> bool:
    """Whether all numbers of an expression are known and can be written."""
    leaves = [x for x in _as_used(term, {}).leaves() if x.value is not None]
    cells = sum(x.array.size for x in leaves if x.array is not None)
    return cells <= MOST_CELLS and all(_value(x) is not None for x in leaves)


def _in_numbers(term: Term, marks: Marks) -> Side:
    """An expression in numbers, of which those are marked that a worked entry comes from."""
    return _write(_as_used(term, marks), lambda x: _number_or_name(x, marks.get(x, ())))


def _as_used(term: Term, marks: Marks, inside: bool = False) -> Term:
    """An expression with the numbers as they are used: a transpose, or a softmax inside, is a matrix."""
    if not term.operands:
        return term
    inner = term.operands[0]
    if inside and term.array is not None and term.array.size > 1 and term.sign in AS_NUMBERS:
        value = replace(term, sign="", operands=(), axes="", more=())
        marks[value] = marks.get(term) or (marks.get(inner, []) if inner.shape == term.shape else [])
        return value
    if term.sign == "ᵀ" and inner.array is not None and not inner.operands:
        turned = Term(shape=term.shape, value=np.swapaxes(inner.array, -1, -2))
        marks[turned] = [(*index[:-2], *index[:-3:-1]) for index in marks.get(inner, ())]
        return turned
    inside = inside or bool(term.sign)
    return replace(term, operands=tuple(_as_used(x, marks, inside) for x in term.operands))


def joined(pieces: Sequence[Piece]) -> Side:
    """The same pieces, of which plain words that stand side by side are one."""
    result: list[Piece] = []
    for x in pieces:
        before = result[-1] if result else None
        if isinstance(x, Word) and isinstance(before, Word) and _is_plain(x) and _is_plain(before):
            result[-1] = Word(f"{before}{x}")
        elif x != Word(""):
            result.append(x)
    return tuple(result)


def _is_plain(word: Word) -> bool:
    return not (word.below or word.bar)


def _html_of(side: Side, begin: str) -> str:
    """A side of an equation as HTML; where a line is too short for it, it goes on before a sign."""
    parts = [begin]
    for x in side:
        if isinstance(x, Word) and _is_plain(x) and " " in x.text and not x.text.isspace():
            head, tail = map(html.escape, f"{x.text}{x.after}".split(" ", 1))
            parts[-1] += head
            parts.append(tail)
        else:
            parts[-1] += x.html()
    return f'<span class="kept">{" ".join(f"<span>{x}</span>" for x in parts if x)}</span>'


def _lines_of(sides: Sequence[Side], width: int) -> list[str]:
    """The sides of an equation as lines of text, in as many rows as they need."""
    rows: list[list[str]] = []
    for i, side in enumerate(sides):
        blocks = [[" = "]] * (i > 0) + [x.lines() if isinstance(x, Matrix) else [str(x)] for x in side]
        block = _beside(blocks)
        together = _beside([rows[-1], block]) if rows else block
        if rows and _columns(together[0]) > width:
            rows.append(block)
        else:
            rows[-1:] = [together]
    lines = [line.rstrip() for row in rows for line in row]
    return [x for line in lines for x in (textwrap.wrap(line, width) if _columns(line) > width else [line])]


def _beside(blocks: Sequence[Sequence[str]]) -> list[str]:
    """Blocks of lines side by side, with their middles at one height. All lines of a block are as long."""
    height = max(map(len, blocks))
    columns = []
    for block in blocks:
        above, wide = (height - len(block)) // 2, _columns(block[0])
        below = height - len(block) - above
        columns.append([" " * wide] * above + list(block) + [" " * wide] * below)
    return ["".join(line) for line in zip(*columns, strict=True)]


def _columns(line: str) -> int:
    """How many columns a line takes in a terminal: a bar above a letter takes none."""
    return sum(not unicodedata.combining(character) for character in line)


def _text(side: Side) -> str:
    return "".join(map(str, side))


def _without_repeats(sides: Sequence[Side]) -> tuple[Side, ...]:
    """Sides of an equation, none of which only repeats the one before it."""
    return tuple(x for i, x in enumerate(sides) if i == 0 or _text(x) != _text(sides[i - 1]))
