"""The words in an operator's circle: its sign or the name of its class, and its attributes."""

from __future__ import annotations

import numpy as np

from needle.backend_ndarray.indexing import index_in_words
from needle.backend_selection import Device
from needle.graph import Op
from needle.nn import Module

from .text import elide

__all__ = ["order_matters", "symbol"]

SIGNS = {
    "EWiseAdd": "+",
    "EWiseMul": "×",
    "EWiseDiv": "÷",
    "EWisePow": "**",
    "MatMul": "@",
    "Negate": "−",
    "Maximum": "max",
    "Minimum": "min",
    "Sqrt": "√",
    "LeakyReLU": "leaky relu",
    "Summation": "Σ",
    "BroadcastTo": "broadcast to",
    "MakeTensorTuple": "tuple",
    "ZerosButOne": "zeros but one",
    "ScatterAdd": "scatter add",
    "ToDevice": "to",
}
SIGNS_WITH_SCALAR = {"AddScalar": "+", "MulScalar": "×", "DivScalar": "÷", "PowerScalar": "**"}
RELATIONS = {"eq": "==", "ne": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥"}
ONE_ATTRIBUTE_SAYS_ALL = {"BroadcastTo": "shape", "Reshape": "shape", "ToDevice": "device"}
ORDER_IS_FREE = {"EWiseAdd", "EWiseMul", "Maximum", "Minimum"}

LONGEST_TUPLE = 1000  # a longer one is not shown
MOST_ITEMS = 8  # of a longer tuple, only the first and the last are written


def order_matters(op: Op) -> bool:
    """Whether swapping the operands can change the result; True for an unknown operator."""
    return type(op).__name__ not in ORDER_IS_FREE


def symbol(op: Op | Module | str) -> str:
    """An operator in a few characters: ``×``, ``+ 1``, ``exp``, ``Σ axes=(1,)``.

    This works for any class, your own as well: its name in small letters, then its public attributes. A
    module keeps its name as it is, and so do the words that some errors have in place of an operator.
    """
    if isinstance(op, str):
        return elide(op, 48)
    name = type(op).__name__
    attributes = {key: x for key, x in vars(op).items() if not key.startswith("_") and _is_plain(x)}
    if name in SIGNS_WITH_SCALAR and "scalar" in attributes:
        scalar = _short(attributes["scalar"])
        if name == "AddScalar" and scalar.startswith("-"):
            return f"− {scalar[1:]}"
        return f"{SIGNS_WITH_SCALAR[name]} {scalar}"
    if name in ("Compare", "CompareScalar"):
        sign = RELATIONS.get(str(attributes.get("function")), "?")
        return f"{sign} {_short(attributes['scalar'])}" if "scalar" in attributes else sign
    if name == "TupleGetItem" and "index" in attributes:
        return f"[{attributes['index']}]"
    if name in ("Slice", "ZerosButSlice") and hasattr(op, "slices"):
        return elide(("" if name == "Slice" else "zeros but ") + index_in_words(op.slices), 48)
    sign = SIGNS.get(name, name.lower() if isinstance(op, Op) else name)
    if name in ONE_ATTRIBUTE_SAYS_ALL:
        attribute = attributes.get(ONE_ATTRIBUTE_SAYS_ALL[name])
        return sign if attribute is None else f"{sign} {_short(attribute)}"
    return elide(" ".join([sign, ", ".join(f"{key}={_short(x)}" for key, x in attributes.items())]), 48)


def _is_plain(x: object) -> bool:
    """Whether printing it computes nothing: an operator's attribute may be a lazy Tensor."""
    if isinstance(x, (tuple, list)):
        return len(x) <= LONGEST_TUPLE and all(isinstance(item, (int, float, str, np.generic)) for item in x)
    return isinstance(x, (int, float, str, np.generic, np.dtype, Device))


def _short(x: object) -> str:
    if isinstance(x, (list, tuple)):
        items = list(map(_short, x))
        words = ", ".join(items if len(x) <= MOST_ITEMS else [*items[:3], "…", items[-1]])
        return f"({words},)" if len(x) == 1 else f"({words})"
    return f"{x:.6g}" if isinstance(x, (float, np.floating)) else str(x)
