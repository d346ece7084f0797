"""The words in an operator's circle: its sign or the name of its class, and its attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from needle.backend_ndarray.indexing import index_in_words
from needle.backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from needle.backend_selection import Device
from needle.graph import Op
from needle.nn import Module
from needle.ops import Elementwise

from .text import elide, number

__all__ = ["Parts", "applied", "in_words", "order_matters", "parts", "symbol"]

SIGNS = {
    "MatMul": "@",
    "Maximum": "max",
    "Minimum": "min",
    "Sqrt": "√",
    "LeakyReLU": "leaky relu",
    "Summation": "Σ",
    "BroadcastTo": "broadcast to",
    "MakeTensorTuple": "tuple",
    "LookUp": "look up",
    "NotZero": "not zero",
    "OneHot": "one hot",
    "ScatterAdd": "scatter add",
    "ToDevice": "to",
}
TYPESET = {"*": "×", "/": "÷", "-": "−", "!=": "≠", "<=": "≤", ">=": "≥"}  # Python's operators, in print
BETWEEN = {"+", "×", "÷", "−", "@", "**"}  # signs that stand between operands
RELATIONS = {
    TYPESET.get(row.operator, row.operator) for row in SCALAR_FUNCTIONS.values() if row.is_comparison
}
ZEROS_BUT = "zeros but "  # before the index of what is not zero
ONE_ATTRIBUTE_SAYS_ALL = {"BroadcastTo": "shape", "Reshape": "shape", "ToDevice": "device"}
ORDER_IS_FREE = {"EWiseAdd", "EWiseMul", "Maximum", "Minimum"}

LONGEST_TUPLE = 1000  # a longer one is not shown
MOST_ITEMS = 8  # of a longer tuple, only the first and the last are written


def applied(symbol: str, operands: Sequence[str]) -> str:
    """What an operator with this `symbol` computes, in a line: ``a × b``, ``a + 1``, ``exp of a``."""
    if symbol in BETWEEN and len(operands) > 1:
        return f" {symbol} ".join(operands)
    if len(operands) == 1 and (
        symbol.startswith("[") or (symbol.partition(" ")[0] in BETWEEN and " " in symbol)
    ):
        return f"{operands[0]} {symbol}"
    return f"{symbol} of {', '.join(operands)}"


def order_matters(op: Op | str) -> bool:
    """Whether swapping the operands can change the result; True for an unknown operator."""
    return type(op).__name__ not in ORDER_IS_FREE


class Parts(NamedTuple):
    """What is to be said of an operator.

    Attributes
    ----------
    sign : str
        ``×``, ``exp``: its sign, or the name of its class in small letters.
    scalar : number or None
        The number that stands beside the operand in a sign like ``+ 1``.
    attributes : dict of str to object
        All other public attributes that can be printed without computing anything.
    """

    sign: str
    scalar: Any
    attributes: dict[str, Any]


def parts(op: Op | Module) -> Parts:
    """The sign of an operator, its number and its attributes. This works for any class, your own as well."""
    name = type(op).__name__
    attributes = {key: x for key, x in vars(op).items() if not key.startswith("_") and _is_plain(x)}
    scalar = None
    sign = SIGNS.get(name, name.lower() if isinstance(op, Op) else name)
    if between := _operator(op):
        sign = TYPESET.get(between, between)
        attributes.pop("function", None)
        scalar = attributes.pop("scalar", None)
    if name in ("Slice", "ZerosButSlice") and hasattr(op, "slices"):
        attributes = {}  # the index says all
        sign = ("" if name == "Slice" else ZEROS_BUT) + index_in_words(op.slices)
    if name in ("LookUp", "NotZero", "OneHot"):
        attributes = {}  # the shapes say all, or its error does
    if name in ("TupleGetItem", "ZerosButOne") and "index" in attributes:
        sign = ("" if name == "TupleGetItem" else ZEROS_BUT) + f"[{attributes.pop('index')}]"
    return Parts(sign, scalar, attributes)


def _operator(op: Op | Module) -> str:
    """The operator of Python that an elementwise one is written with; empty if there is none."""
    row = SCALAR_FUNCTIONS.get(getattr(op, "function", "")) if isinstance(op, Elementwise) else None
    return row.operator if row else ""


def symbol(op: Op | Module | str) -> str:
    """An operator in a few characters: ``×``, ``+ 1``, ``exp``, ``Σ axes=(1,)``.

    A module keeps its name as it is, and so do the words that some errors have in place of an operator.
    """
    if isinstance(op, str):
        return elide(op, 48)
    sign, scalar, attributes = parts(op)
    if scalar is not None:
        words = in_words(scalar)
        return f"− {words[1:]}" if sign == "+" and words[0] in "-−" else f"{sign} {words}"
    name = type(op).__name__
    if name in ONE_ATTRIBUTE_SAYS_ALL:
        attribute = attributes.get(ONE_ATTRIBUTE_SAYS_ALL[name])
        return sign if attribute is None else f"{sign} {in_words(attribute)}"
    return elide(" ".join([sign, ", ".join(f"{key}={in_words(x)}" for key, x in attributes.items())]), 48)


def _is_plain(x: object) -> bool:
    """Whether it prints as it is: a lazy Tensor would be computed, and a stand-in is many numbers."""
    if isinstance(x, (tuple, list)):
        return len(x) <= LONGEST_TUPLE and all(isinstance(item, (int, float, str, np.generic)) for item in x)
    return not hasattr(x, "__needle_data__") and isinstance(
        x, (int, float, str, np.generic, np.dtype, Device)
    )


def in_words(x: object) -> str:
    """An attribute of an operator in a few characters."""
    if isinstance(x, (list, tuple)):
        items = list(map(in_words, x))
        words = ", ".join(items if len(x) <= MOST_ITEMS else [*items[:3], "…", items[-1]])
        return f"({words},)" if len(x) == 1 else f"({words})"
    return number(x, 6) if isinstance(x, (float, np.floating)) else str(x)
