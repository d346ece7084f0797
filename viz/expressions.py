"""What a node is computed from, as an expression: read from the graph, down to the nodes that have names.

The derivative in ``v̄2 · v2`` is not looked up anywhere. Reverse mode has asked the operator's own `gradient`,
and what that built is a graph, as the forward pass is. So one reader serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from typing import Any

import numpy as np

from needle.autograd import Tensor, TensorTuple, Value
from needle.backend_selection import to_numpy
from needle.ops import Permute, Slice
from needle.ops.families import Pointwise, Reduction

from .operators import RELATIONS, in_words, parts

__all__ = ["Index", "Name", "Term", "entry_of", "read", "sum_of"]

MOST_OPERATORS = 24  # are read of one expression
MOST_TERMS = 6  # are written of a sum
INDICES = "kmnpq"  # over which sums run; but over rows it is i, and over columns j

Index = tuple[int | str, ...]


@dataclass(frozen=True)
class Name:
    """What a node is called.

    Attributes
    ----------
    text : str
    bar : bool
        Whether it stands for the adjoint of `text`, and `text` is too long to have the bar in it.
    after : str
        What follows: the way that a partial adjoint came, or the index of an entry.
    """

    text: str
    bar: bool = False
    after: str = ""

    def __str__(self) -> str:
        return f"{'adjoint of ' * self.bar}{self.text}{self.after}"


@dataclass(frozen=True, eq=False)
class Term:
    """A name, a number, or a sign with its operands.

    Attributes
    ----------
    sign : str
        How the operator is called: ``+``, ``exp``, ``ᵀ``. Empty for a name and a number, and for an operator
        that is not written: it changes axes of length 1, or the type of numbers.
    operands : tuple of Term
    shape : tuple of int or None
        None for a tuple of Tensors.
    axes : str
        Along which axes a function works.
    more : tuple of str
        Any other attributes of the operator.
    name : Name or None
        Of a term that is not expanded.
    value : Value, array or number, optional
        What it stands for, if that is known.
    op : Op, optional
        The operator that `sign` stands for.
    """

    sign: str = ""
    operands: tuple[Term, ...] = ()
    shape: tuple[int, ...] | None = ()
    axes: str = ""
    more: tuple[str, ...] = ()
    name: Name | None = None
    value: Any = None
    op: Any = None

    @cached_property
    def array(self) -> np.ndarray | None:
        """Its value; None if it is not computed, or a tuple."""
        if not isinstance(self.value, Value):
            return None if self.value is None else np.asarray(self.value)
        if isinstance(self.value, TensorTuple) or self.value.cached_data is None:
            return None
        return to_numpy(self.value.cached_data)

    def leaves(self) -> Iterator[Term]:
        """The names and numbers in it."""
        if not self.operands:
            yield self
        for x in self.operands:
            yield from x.leaves()

    def signs(self) -> Iterator[str]:
        """The signs in it."""
        if self.operands:
            yield self.sign
        for x in self.operands:
            yield from x.signs()


def read(node: Value, names: Mapping[Value, Name], *, expand: bool = False) -> Term:
    """The expression of a node: its operators, down to the nodes that have `names`.

    Of a large expression some parts are not expanded: they are called ``…``.

    Parameters
    ----------
    expand : bool
        Whether to expand `node` itself, even if it has a name.
    """
    return _Reader(names).read(node, expand)


class _Reader:
    """Reads one expression."""

    def __init__(self, names: Mapping[Value, Name]):
        self.names = names
        self.left = MOST_OPERATORS

    def read(self, node: Value, expand: bool = False) -> Term:
        if node in self.names and not expand:
            return named(node, self.names[node])
        if node.op is None:
            if isinstance(node, Tensor) and node.size == 1 and node.cached_data is not None:
                return Term(shape=node.shape, value=node)
            return named(node, Name("constant"))
        if type(node.op).__name__ == "Identity":
            return self.stand_in(node)
        self.left -= 1
        return self.expanded(node) if self.left >= 0 else named(node, Name("…"))

    def stand_in(self, node: Value) -> Term:
        """A node as it was when it was used: somebody may have written to it since."""
        (now,) = node.inputs
        if node.cached_data is now.cached_data:
            return self.read(now)
        name = self.names.get(now, Name("…"))
        return named(node, replace(name, after=f"{name.after} before the write"))

    def expanded(self, node: Value) -> Term:
        op = node.op
        operands = tuple(map(self.read, node.inputs))
        sign, scalar, attributes = parts(op)  # type: ignore[arg-type]
        if scalar is not None:
            number = Term(value=scalar)
            operands = (number, *operands) if sign == "×" else (*operands, number)
        kind = type(op).__name__
        shape = _shape(node)
        axes = ""
        if kind == "Reshape" and _without_ones(shape) == _without_ones(operands[0].shape):
            sign, attributes = "", {}
        elif kind == "BroadcastTo":
            axes, attributes = _axes_in_words(_grown(operands[0].shape, shape)), {}
            sign = "broadcast" if axes else ""
        elif kind == "Cast" and (_is_float(node) or operands[0].sign in RELATIONS):
            sign, attributes = "", {}  # the same numbers
        elif kind == "Transpose" and _swaps_the_last(op, shape):
            sign, attributes = "ᵀ", {}
        elif (
            isinstance(op, Reduction)
            or sign == "Σ"
            or kind in ("Softmax", "LogSoftmax")
            or isinstance(attributes.get("axes"), int)
        ):
            axes = _axes_in_words(_axes_of(attributes.pop("axes", None), operands[0].shape))
        more = tuple(f"{key}={in_words(x)}" for key, x in attributes.items())
        return Term(sign, operands, shape, axes, more, value=node, op=op)


def named(node: Value, name: Name) -> Term:
    """A node by its name."""
    return Term(shape=_shape(node), name=name, value=node)


def sum_of(terms: Iterable[Term], count: int, shape: tuple[int, ...] | None = ()) -> Term:
    """So many terms with + between them; of more than a few, the first."""
    shown = list(islice(terms, MOST_TERMS))
    if count > len(shown):
        shown.append(Term(name=Name(f"({count - len(shown):,} more)")))
    return shown[0] if count == 1 else Term("+", tuple(shown), shape)


def entry_of(
    term: Term, index: Index, *, in_numbers: bool = False, used: dict[Term, list[Index]] | None = None
) -> Term:
    """One entry of an expression, as an expression of entries: for X @ W it is Σ over k of X[i, k] · W[k, j].

    Parameters
    ----------
    index : tuple
        An int for each axis; or the letter over which a sum runs.
    in_numbers : bool
        Whether to write out what the letters stand for, entry by entry.
    used : dict, optional
        Gets the indices that each name in the expression is read at.
    """
    return _Entries(in_numbers, {} if used is None else used).of(term, index)


class _Entries:
    """Goes down an expression with an index."""

    def __init__(self, in_numbers: bool, used: dict[Term, list[Index]]):
        self.in_numbers, self.used = in_numbers, used
        self.letters = {*INDICES, "i", "j"}

    def of(self, term: Term, index: Index) -> Term:
        """The entry of a term. If the index has more axes than the term, the term is broadcast to them."""
        if term.shape is None:
            return term
        index = index[len(index) - len(term.shape) :]
        index = tuple([0 if n == 1 else i for n, i in zip(term.shape, index, strict=True)])
        inner = term.operands
        if not term.shape and all(x.shape == () for x in inner):
            return term
        match term.sign:
            case "" if inner:
                kept = [i for n, i in zip(term.shape, index, strict=True) if n != 1]
                shape = inner[0].shape or ()
                again = iter(kept)
                return self.of(inner[0], tuple([0 if n == 1 else next(again) for n in shape]))
            case "broadcast":
                self.used.setdefault(term, []).append(index)
                return self.of(inner[0], index)
            case "ᵀ":
                return self.of(inner[0], (*index[:-2], index[-1], index[-2]))
            case "@" if all(len(x.shape or ()) > 1 for x in inner):
                a, b = inner
                *batch, i, j = index
                return self.sum(
                    [a.shape[-1]],  # type: ignore[index]
                    ["i" if a.sign == "ᵀ" else "j" if b.sign == "ᵀ" else "k"],
                    lambda k: Term("×", (self.of(a, (*batch, i, *k)), self.of(b, (*batch, *k, j)))),
                )
            case "Σ" if inner[0].shape is not None:
                axes = _reduced(term)
                shape = inner[0].shape or ()
                return self.sum(
                    [shape[axis] for axis in axes],
                    _letters(shape, axes),
                    lambda k: self.of(inner[0], _within(shape, axes, index, k)),
                )
            case "logsumexp" if inner[0].shape:
                axes, shape = _reduced(term), inner[0].shape
                total = self.sum(
                    [shape[axis] for axis in axes],
                    _letters(shape, axes),
                    lambda k: Term("exp", (self.of(inner[0], _within(shape, axes, index, k)),)),
                )
                return Term("log", (total,))
        if isinstance(term.op, Permute):
            order = [axis % len(index) for axis in term.op.axes]
            return self.of(inner[0], tuple(index[order.index(axis)] for axis in range(len(index))))
        if isinstance(term.op, Slice) and all(isinstance(i, int) for i in index):
            places = [range(n)[part] for n, part in zip(inner[0].shape or (), term.op.slices, strict=False)]
            found = [place[i] for place, i in zip(places, index, strict=False)]  # type: ignore[index]
            return self.of(inner[0], (*found, *index[len(found) :]))
        if isinstance(term.op, Reduction) and inner[0].shape:
            axes = _reduced(term)
            row = self.slice(inner[0], _within(inner[0].shape, axes, index, [":"] * len(axes)))
            return replace(term, operands=(row,), shape=(), axes="", value=_at(term.array, index))
        if isinstance(term.op, Pointwise) or term.sign in ("+", "×"):
            return replace(term, operands=tuple(self.of(x, index) for x in inner), shape=(), value=None)
        return self.slice(term, index)

    def sum(self, lengths: Sequence[int], preferred: Sequence[str], summand: Callable[[tuple], Term]) -> Term:
        """The sum over indices: by their letters, or written out."""
        if self.in_numbers:
            return sum_of(map(summand, product(*map(range, lengths))), math.prod(lengths))
        k = tuple(0 if n == 1 else self.letter(x) for n, x in zip(lengths, preferred, strict=True))
        letters = ", ".join(i for i in k if isinstance(i, str))
        return Term("Σ", (summand(k),), axes=letters) if letters else summand(k)

    def letter(self, preferred: str) -> str:
        """A letter that no other sum has."""
        found = next((x for x in (preferred, *INDICES) if x in self.letters), "…")
        self.letters.discard(found)
        return found

    def slice(self, term: Term, index: Index) -> Term:
        """An entry of a part that is not taken apart further; or a row of it, for an index with ``:``."""
        words = f"[{', '.join(map(str, index))}]"
        value = _at(term.array, index)
        self.used.setdefault(term, []).append(index)
        shape = () if value is None else value.shape
        if term.name is not None:
            return Term(shape=shape, name=replace(term.name, after=term.name.after + words), value=value)
        if self.in_numbers and value is not None:
            return Term(shape=shape, value=value)
        return Term(words, (term,), shape, value=value)


def _at(array: np.ndarray | None, index: Index) -> np.ndarray | None:
    """The entry at an index, or a row for one with ``:``; None if there are letters in it."""
    if array is None or not all(i == ":" or isinstance(i, int) for i in index):
        return None
    place: Any = tuple([slice(None) if i == ":" else i for i in index])
    return array[place]


def _within(shape: Sequence[int], axes: Sequence[int], index: Index, inserted: Sequence) -> Index:
    """The index into an operand of `shape`: `index`, with others inserted at the `axes` that are reduced."""
    rest, new = iter(index), iter(inserted)
    return tuple([next(new) if axis in axes else next(rest) for axis in range(len(shape))])


def _letters(shape: Sequence[int], axes: Sequence[int]) -> list[str]:
    """The letters of the axes that a sum runs along: i for rows, j for columns."""
    return [
        "j" if axis and axis == len(shape) - 1 else "i" if axis >= len(shape) - 2 else "k" for axis in axes
    ]


def _reduced(term: Term) -> tuple[int, ...]:
    """The axes that a reduction runs along."""
    return _axes_of(getattr(term.op, "axes", None), term.operands[0].shape)


def _axes_of(axes: int | Sequence[int] | None, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """Axes as numbers from 0; None stands for all."""
    ndim = len(shape or ())
    given = range(ndim) if axes is None else np.atleast_1d(axes).tolist()
    return tuple(sorted(axis % ndim if ndim else axis for axis in given))


def _shape(node: Value) -> tuple[int, ...] | None:
    return node.shape if isinstance(node, Tensor) else None


def _is_float(node: Value) -> bool:
    return isinstance(node, Tensor) and node.dtype.kind == "f"


def _without_ones(shape: tuple[int, ...] | None) -> list[int]:
    return [n for n in shape or () if n != 1]


def _grown(before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> list[int]:
    """The axes that are new, or longer than they were."""
    after = after or ()
    old = (0,) * (len(after) - len(before or ())) + (before or ())
    return [axis for axis, (n, m) in enumerate(zip(old, after, strict=True)) if n != m]


def _swaps_the_last(op: Any, shape: tuple[int, ...] | None) -> bool:
    axes = getattr(op, "axes", None)
    ndim = len(shape or ())
    return axes is None or _axes_of(axes, shape) == (ndim - 2, ndim - 1)


def _axes_in_words(axes: Sequence[int]) -> str:
    """``axis 1``, ``axes 0, 1``."""
    return f"{'axis' if len(axes) == 1 else 'axes'} {', '.join(map(str, axes))}" if axes else ""
