"""How an answer differs from what was expected, in words.

Each of these functions takes the expected answer and the reader's, and the names that the lecture gave to
things (by id). It returns one sentence, or "" if the answer is right. An exercise chooses one:

- `values`: the same numbers, whatever they are wrapped in the same way;
- `whole`: the same whole numbers;
- `objects`: the very same objects, in the same order;
- `order_of`: the same nodes in an order that keeps a rule, such as "inputs first";
- `graph`: the same operators, joined by the same edges.

For all of them a list may be a tuple, and a tuple a list, unless an exercise brings a comparison of its own.
Nothing here imports Tensors: whatever has ``numpy()`` is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

Names = Mapping[int, str]
Compare = Callable[[Any, Any, Names], str]

MOST_NUMBERS = 12  # of an array are shown
TOLERANCE = 1e-4  # of float32 results after a few operations; a mistake is far larger


def values(expected: Any, got: Any, names: Names, tolerance: float = TOLERANCE) -> str:
    """Whether numbers are equal up to `tolerance`, and of the same kind: number, list, array or Tensor."""
    if kind(expected) != kind(got):
        came, should = ["tuple" if isinstance(x, tuple) else kind(x) for x in (got, expected)]
        if isinstance(expected, (bool, np.bool)):
            should = "True or False"
        return f"the type is {came}, but should be {should}"
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(got):
            return f"the length is {len(got)}, but should be {len(expected)}"
        for position, pair in enumerate(zip(expected, got, strict=True)):
            if difference := values(*pair, names, tolerance):
                return f"item {position} differs: {difference}"
        return ""
    if isinstance(expected, Mapping):
        if missing := [key for key in expected if key not in got]:
            return f"{missing[0]!r} is missing"
        if extra := [key for key in got if key not in expected]:
            return f"{extra[0]!r} should not be there"
        for key in expected:
            if difference := values(expected[key], got[key], names, tolerance):
                return f"{key}: {difference}"
        return ""
    if kind(expected) in ("number", "ndarray") or is_tensor(expected):
        return _numbers(to_numpy(expected), to_numpy(got), tolerance)
    return "" if expected == got else "they are not equal"


#: To more digits than float32 has, or than a nudge finds.
closely = partial(values, tolerance=1e-12)


def whole(expected: Any, got: Any, names: Names) -> str:
    """`values` of whole numbers, in lists within lists, none of which may be a float."""
    if difference := values(expected, got, names):
        return difference
    waiting = [got]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, (list, tuple)):
            waiting += value
        elif isinstance(value, (float, np.floating)):
            return f"{value!r} is a float, but should be a whole number"
    return ""


def objects(expected: Any, got: Any, names: Names) -> str:
    """Whether these are the very same objects; in a list, also in the same order."""
    if isinstance(expected, (list, tuple)):
        if kind(got) != "list":
            return f"the type is {kind(got)}, but should be list"
        if difference := _members(expected, got, names):
            return difference
        for position, (right, given) in enumerate(zip(expected, got, strict=True)):
            if right is not given:
                return f"item {position} is {show(given, names)}, but should be {show(right, names)}"
        return ""
    if expected is got:
        return ""
    if not values(expected, got, names):
        return f"it has the same value as {show(expected, names)}, but is another object"
    return f"it is {show(got, names)}, but should be {show(expected, names)} itself"


def order_of(
    first: Literal["inputs", "consumers"], inputs: Callable[[Any], Iterable[Any]] = lambda node: node.inputs
) -> Compare:
    """Compare nodes: each must come once, after all its `inputs` or after all its consumers."""

    def compare(expected: Any, got: Any, names: Names) -> str:
        if kind(got) != "list":
            return f"the type is {kind(got)}, but should be list"
        if difference := _members(expected, got, names):
            return difference
        place = {id(node): number for number, node in enumerate(got)}
        for node in got:
            for i in inputs(node):
                too_early = (
                    place[id(i)] > place[id(node)] if first == "inputs" else place[id(i)] < place[id(node)]
                )
                if too_early and first == "inputs":
                    return f"{show(node, names)} comes before {show(i, names)}, which is an input of it"
                if too_early:
                    return f"{show(i, names)} comes before {show(node, names)}, which uses it"
        return ""

    compare.exactly = objects  # type: ignore[attr-defined]
    return compare


def exactly(compare: Compare) -> Compare:
    """How to tell whether two *wrong* answers are the same: where any order will do, the very same order."""
    return getattr(compare, "exactly", compare)


def graph(expected: Any, got: Any, names: Names) -> str:
    """Whether a Tensor has the same history: operators with their attributes, edges, and what is used twice.

    The leaves must be the very same; values are not looked at.
    """
    if not (hasattr(expected, "inputs") and hasattr(got, "inputs")):
        return values(expected, got, names)
    partner: dict[int, Any] = {}  # of each node of the expected graph: the node in its place
    pairs = [(expected, got)]
    while pairs:
        right, given = pairs.pop()
        if partner.get(id(right)) is given:
            continue
        if right.op is None:
            if right is not given:
                return f"where {show(right, names)} should be, there is {_made_by(given, names)}"
            partner[id(right)] = given
            continue
        if _operator(right) != _operator(given):
            there = _operator(given) if given.op else _made_by(given, names)
            return f"{there} stands where {_operator(right)} should be"
        if id(right) in partner:
            return f"{_made_by(right, names)} is used twice there; yours computes it again"
        partner[id(right)] = given
        if len(right.inputs) != len(given.inputs):
            return f"{_operator(right)} should have {len(right.inputs)} inputs, and has {len(given.inputs)}"
        pairs += zip(right.inputs, given.inputs, strict=True)
    if len({id(node) for node in partner.values()}) < len(partner):
        return "one node of yours stands for two nodes there"
    return ""


def _members(expected: Any, got: Any, names: Names) -> str:
    """Whether two lists have the same members, each as often, whatever their order."""
    left = [id(item) for item in expected]
    for item in got:
        if id(item) not in left:
            again = any(item is right for right in expected)
            return f"{show(item, names)} {'comes twice' if again else 'should not be there'}"
        left.remove(id(item))
    if left:
        missing = next(item for item in expected if id(item) in left)
        return f"{show(missing, names)} is missing"
    return ""


def _numbers(expected: np.ndarray, got: np.ndarray, tolerance: float) -> str:
    if expected.shape != got.shape:
        return f"the shape is {got.shape}, but should be {expected.shape}"
    if expected.dtype.kind in "iu" and got.dtype.kind in "iu":  # whole numbers are not nearly equal
        right = np.asarray(got == expected)
    else:
        right = np.isclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    if right.all():
        return ""
    if right.ndim == 0:
        return f"{digits(got)} should be {digits(expected)}"
    wrong = tuple(int(index) for index in np.argwhere(~right)[0])
    position = wrong[0] if len(wrong) == 1 else wrong
    return f"at index {position}, {digits(got[wrong])} should be {digits(expected[wrong])}"


def _operator(node: Any) -> str:
    """An operator by its class and attributes: ``AddScalar(scalar=1)``; a leaf is called so."""
    if node.op is None:
        return "a leaf"
    attributes = ", ".join(f"{name}={value!r}" for name, value in vars(node.op).items())
    return type(node.op).__name__ + (f"({attributes})" if attributes else "")


def _made_by(node: Any, names: Names) -> str:
    if id(node) in names:
        return names[id(node)]
    return f"the result of {_operator(node)}" if node.op else "another leaf"


def kind(value: Any) -> str:
    """The type of a value as a message calls it: all numbers are "number", lists and tuples "list"."""
    if isinstance(value, (bool, int, float, np.number, np.bool)):
        return "number"
    if isinstance(value, (list, tuple)):
        return "list"
    return "None" if value is None else type(value).__name__


def is_tensor(value: Any) -> bool:
    """Whether this is a Tensor, or another array that gives its numbers by ``numpy()``."""
    return callable(getattr(value, "numpy", None)) and not isinstance(value, type)


def to_numpy(value: Any) -> np.ndarray:
    """The numbers of a number, an array or a Tensor."""
    return np.asarray(value.numpy() if is_tensor(value) else value)


def show(value: Any, names: Names, exact: bool = False) -> str:
    """A value by the name that the lecture gave it, if it has one; everything else as Python shows it.

    Numbers are shortened to six digits, unless they are wanted `exact`.
    """
    if id(value) in names:
        return names[id(value)]
    if isinstance(value, (list, tuple)):
        items = ", ".join(show(item, names, exact) for item in value)
        if isinstance(value, list):
            return f"[{items}]"
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {show(item, names, exact)}" for key, item in value.items())
    if isinstance(value, np.integer):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return digits(value).removesuffix(".0") if exact else f"{value:.6g}"
    if isinstance(value, np.ndarray) and exact and value.dtype.kind == "f" and value.size <= MOST_NUMBERS:
        return show(value.tolist(), {}, exact)
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return shown_array(value)


def digits(value: Any) -> str:
    """A number with as many digits as tell it from others: 1.1, and not 1.100000023841858, of 32 bits."""
    if to_numpy(value).dtype.kind != "f":
        return str(value)
    with np.errstate(over="ignore"):
        as_single = np.float32(value)
    return str(as_single) if float(as_single) == float(value) else repr(float(value))


def shown_array(value: Any) -> str:
    """A value as Python shows it; of an array of many numbers, its shape and the first of them."""
    is_array = isinstance(value, np.ndarray) or is_tensor(value)
    if not is_array or math.prod(getattr(value, "shape", None) or ()) <= MOST_NUMBERS:
        return repr(value)
    numbers = ", ".join(f"{number:.4g}" for number in to_numpy(value).ravel()[:4].tolist())
    return f"{type(value).__name__} of shape {value.shape}: {numbers}, …"
