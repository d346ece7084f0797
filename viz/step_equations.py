"""The equations of the steps, in names and in numbers: what a node computes, and what it passes back."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from needle.autograd import Tensor, TensorTuple, Value
from needle.backend_selection import to_numpy
from needle.graph import Op

from . import operators
from .text import LARGEST_SEARCHED, MOST_IN_A_LINE, elide, number, rows_of

__all__ = ["computed", "passed_on", "summed"]

LONGEST_TERM = 24  # characters: a longer array is written as its shape
MOST_TERMS = 6  # are written of a sum

# An operator with its operands {0}, {1}, … All others are written as calls: exp(x).
FORWARD = {
    "EWiseAdd": "{0} + {1}", "EWiseMul": "{0} · {1}", "EWiseDiv": "{0} / {1}", "EWisePow": "{0} ** {1}",
    "MatMul": "{0} @ {1}", "Negate": "−{0}", "Identity": "{0}",
    "MulScalar": "{0} · {s}", "DivScalar": "{0} / {s}", "PowerScalar": "{0} ** {s}",
}  # fmt: skip

# The partial adjoint for each operand: the adjoint {g} of the result {out}, times the local derivative.
BACKWARD = {
    "EWiseAdd": ("{g}", "{g}"),
    "AddScalar": ("{g}",),
    "EWiseMul": ("{g} · {1}", "{g} · {0}"),
    "MulScalar": ("{g} · {s}",),
    "EWiseDiv": ("{g} / {1}", "−{g} · {0} / {1}²"),
    "DivScalar": ("{g} / {s}",),
    "EWisePow": ("{g} · {1} · {0} ** ({1} − 1)", "{g} · {out} · log({0})"),
    "MatMul": ("{g} @ {1}ᵀ", "{0}ᵀ @ {g}"),
    "Negate": ("−{g}",),
    "Identity": ("{g}",),
    "Exp": ("{g} · exp({0})",),
    "Log": ("{g} / {0}",),
    "Sqrt": ("{g} / (2 · {out})",),
    "Sin": ("{g} · cos({0})",),
    "Cos": ("−{g} · sin({0})",),
    "Tanh": ("{g} · (1 − {out}²)",),
    "Sigmoid": ("{g} · {out} · (1 − {out})",),
    "Abs": ("{g} · sign({0})",),
    "ReLU": ("{g} where {0} > 0, else 0",),
    "LogSumExp": ("{g} · softmax({0})",),
    "Summation": ("{g}, repeated",),
    "BroadcastTo": ("{g}, summed",),
    "Reshape": ("{g}, reshaped back",),
    "Transpose": ("{g}, transposed back",),
    "Permute": ("{g}, its axes put back",),
    "Slice": ("{g} in its place, 0 elsewhere",),
}
BROADCASTING = {"EWiseAdd", "EWiseMul", "EWiseDiv", "EWisePow", "MatMul"}


def computed(node: Value, names: dict[Value, str]) -> str:
    """The equation of a node: ``v3 = v2 + 1 = 1 + 1 = 2``."""
    if node.op is None:
        return _equation(names[node], [], _result(node))
    pattern = _forward_pattern(node.op, len(node.inputs))
    scalar = _scalar(node.op)
    in_names = pattern.format(*(names[x] for x in node.inputs), s=scalar)
    in_numbers = pattern.format(*(_factor(x) for x in node.inputs), s=scalar)
    return _equation(names[node], [in_names, in_numbers], _result(node))


def summed(node: Value, partials: Sequence[tuple[Value | None, Value]], total: Value, names) -> str:
    """The equation of an adjoint: ``v̄2 = v̄2→4 + v̄2→3 = 2 + 1 = 3``."""
    name = _adjoint_name(names[node])
    if partials[0][0] is None:
        return _equation(name, [], _result(total)) + " (the seed)"
    left_out = len(partials) - MOST_TERMS
    shown = partials[:MOST_TERMS]
    more = [f"({left_out} more)"] if left_out > 0 else []
    terms = [_partial_name(names[node], names[consumer]) for consumer, _ in shown if consumer is not None]
    numbers = [_factor(partial) for _, partial in shown]
    if len(partials) == 1:
        return _equation(name, terms, _result(total))
    return _equation(name, [" + ".join([*terms, *more]), " + ".join([*numbers, *more])], _result(total))


def passed_on(node: Value, index: int, adjoint: Value, partial: Value, names: dict[Value, str]) -> str:
    """The equation of a partial adjoint, which a node passes on: ``v̄2→4 = v̄4 · v3 = 1 · 2 = 2``."""
    op, x = node.op, node.inputs[index]
    assert op is not None
    name = _partial_name(names[x], names[node])
    given = _adjoint_name(names[node])
    rules = BACKWARD.get(type(op).__name__, ()) if _is_known(op) else ()
    rule = rules[index] if index < len(rules) else ""
    if type(op).__name__ == "PowerScalar" and _is_known(op):
        rule = _power_rule(_scalar(op))
    if not rule or isinstance(node, TensorTuple) or _is_vector_product(node):
        return _equation(name, [f"the gradient of {operators.symbol(op)} at {given}"], _result(partial))
    if type(op).__name__ in BROADCASTING and _shape(x) != _shape(node) and not _same_rank(node):
        rule += ", summed to its shape"
    scalar = _scalar(op)
    in_names = rule.format(*(names[i] for i in node.inputs), g=given, out=names[node], s=scalar)
    in_numbers = rule.format(*map(_factor, node.inputs), g=_factor(adjoint), out=_factor(node), s=scalar)
    return _equation(name, [in_names, in_numbers], _result(partial))


def _equation(name: str, ways: Sequence[str], result: str) -> str:
    """``name = way = way = result``, without a way that only repeats its neighbour."""
    parts = [name]
    for way in ways:
        if way and way != parts[-1] and way != result and not result.startswith(f"{way}, "):
            parts.append(way)
    return " = ".join([*parts, result])


def _adjoint_name(name: str) -> str:
    """``v̄2`` for v2; words, if the name is more than a letter and a number."""
    if not _is_short(name):
        return f"adjoint of {name}"
    return unicodedata.normalize("NFC", f"{name[0]}\N{COMBINING MACRON}{name[1:]}")


def _partial_name(name: str, consumer: str) -> str:
    """``v̄2→4`` for what v4 passes on to v2; with the whole name of the consumer if the letters differ."""
    if _is_short(name) and _is_short(consumer) and name[0] == consumer[0] and consumer[1:]:
        return f"{_adjoint_name(name)}→{consumer[1:]}"
    return f"{_adjoint_name(name)} via {consumer}"


def _is_short(name: str) -> bool:
    return re.fullmatch(r"[^\W\d_]\d*", name) is not None


def _is_known(op: Op) -> bool:
    """Whether this is needle's own operator, and not your own with the same name."""
    return type(op).__module__.startswith("needle.")


def _forward_pattern(op: Op, operands: int) -> str:
    name = type(op).__name__
    symbol = operators.symbol(op).replace("{", "{{").replace("}", "}}")
    if _is_known(op):
        if name in FORWARD:
            return FORWARD[name]
        if name in ("AddScalar", "CompareScalar"):
            return "{0} " + symbol
        if name == "Compare":
            return "{0} " + symbol + " {1}"
        if name in ("TupleGetItem", "Slice"):
            return "{0}" + symbol
    sign, _, attributes = symbol.partition(" (" if " (" in symbol else " ")
    attributes = f"({attributes}" if attributes and " (" in symbol else attributes
    arguments = ", ".join([*("{" + str(i) + "}" for i in range(operands)), *filter(None, [attributes])])
    return f"{sign.replace(' ', '_')}({arguments})"


def _power_rule(exponent: str) -> str:
    if exponent == "2":
        return "{g} · 2 · {0}"
    return "{g} · {s} · {0} ** ({s} − 1)"


def _scalar(op: Op) -> str:
    scalar = getattr(op, "scalar", "")
    return _in_brackets(number(scalar)) if isinstance(scalar, (int, float, np.generic)) else ""


def _shape(node: Value) -> tuple[int, ...] | None:
    return node.shape if isinstance(node, Tensor) else None


def _same_rank(node: Value) -> bool:
    """Whether this is a product of two plain matrices, where no operand is broadcast."""
    return type(node.op).__name__ == "MatMul" and all(len(_shape(x) or ()) == 2 for x in node.inputs)


def _is_vector_product(node: Value) -> bool:
    return type(node.op).__name__ == "MatMul" and any(len(_shape(x) or ()) < 2 for x in node.inputs)


def _factor(value: Value) -> str:
    """A value within an equation: a number, a short array, or else the shape."""
    if isinstance(value, TensorTuple):
        return f"tuple of {len(value)}"
    assert isinstance(value, Tensor)
    if value.cached_data is None:
        return _size(value)
    return _in_brackets(_short(to_numpy(value.cached_data)) or _size(value))


def _result(value: Value) -> str:
    """A value at the end of an equation: a long array is written as its shape and range."""
    if isinstance(value, TensorTuple):
        return f"tuple of {len(value)}"
    assert isinstance(value, Tensor)
    if value.cached_data is None:
        return f"{_size(value)}, not computed"
    array = to_numpy(value.cached_data)
    if short := _short(array):
        return short
    known = rows_of(array.ravel()) if MOST_IN_A_LINE < array.size <= LARGEST_SEARCHED else ()
    return _size(value) + (f", {known[0][0]}" if known else "")


def _size(tensor: Tensor) -> str:
    """A shape in place of a factor: ``2×3``."""
    return "×".join(map(str, tensor.shape)) if len(tensor.shape) > 1 else f"{tensor.size} numbers"


def _short(array: np.ndarray) -> str:
    """An array on a short line; empty if it is too long."""
    if array.size == 1:
        return number(array.reshape(-1)[0].item() if array.dtype.kind != "f" else array.reshape(-1)[0])
    if array.size > LONGEST_TERM:
        return ""
    text = np.array2string(array, precision=3, max_line_width=10_000, separator=" ")
    text = re.sub(r"(?<=\[) +| +(?=\])", "", re.sub(r"\s+", " ", text))
    text = re.sub(r"(\d)\.(?= |\])", r"\1", text)
    return text if len(text) <= LONGEST_TERM else ""


def _in_brackets(text: str) -> str:
    """A factor; a negative number is in brackets."""
    return f"(−{text[1:]})" if text.startswith("-") else elide(text, LONGEST_TERM)
