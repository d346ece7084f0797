"""Where an infinity or a NaN begins: the first operation that made one of finite numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from needle import Tensor
from needle.autograd import Value, find_topo_sort
from needle.graph import Op
from needle.ops import Elementwise
from viz.operators import applied, symbol
from viz.text import number

from .expression import Result

__all__ = ["explain"]


def explain(result: Result) -> str:
    """One sentence about the value, or else the first gradient, that is not finite; empty if all are finite.

    Parameters
    ----------
    result : Result
        With its gradients, if it has any.
    """
    names: dict[Value, str] = {x: name for name, x in result.names.items()}
    sentence = _explain(result.name, result.value, names, "it begins")
    for name, leaf in result.leaves.items():
        if not sentence and leaf.grad is not None:
            sentence = _explain(f"The gradient of {name}", leaf.grad, names, "in the backward pass it begins")
    return sentence


def _explain(subject: str, tensor: Tensor, names: Mapping[Value, str], begins: str) -> str:
    place = _first_strange(tensor)
    if place is None:
        return ""
    begin = f"{subject} holds {number(tensor.numpy()[place])}"
    origin = next(
        node
        for node in find_topo_sort([tensor])
        if _first_strange(node) is not None and all(_first_strange(x) is None for x in node.inputs)
    )
    at = _first_strange(origin) or ()
    found = origin.numpy()[at]
    if origin.op is None:  # a constant does not know where it comes from
        return f"{begin}, which is {'not a number' if np.isnan(found) else 'infinity'}."
    operation, has_zero = _operation(origin.op, origin, at, names)
    if origin in names:
        operation = f"{names[origin]} = {operation}"
    meaning = "infinity" if has_zero else "too large: 32-bit numbers end at 3.4·10³⁸"
    meaning = "not a number" if np.isnan(found) else meaning
    return f"{begin}: {begins} with {operation}, which is {number(found)} ({meaning})."


def _first_strange(tensor: Value) -> tuple[int, ...] | None:
    """The index of the first element that is not finite."""
    if not isinstance(tensor, Tensor):
        return None
    places = np.argwhere(~np.isfinite(tensor.numpy()))
    return tuple(places[0].tolist()) if len(places) else None


def _operation(op: Op, node: Tensor, place: tuple[int, ...], names: Mapping[Value, str]) -> tuple[str, bool]:
    """What was computed there, such as ``log of 0``, and whether there is a 0 in it."""
    if not isinstance(op, Elementwise):
        return applied(symbol(op), [names.get(x, "…") for x in node.inputs]), False
    operands = [np.broadcast_to(x.numpy(), node.shape)[place] for x in node.inputs]
    has_zero = 0 in [*operands, getattr(op, "scalar", 1)]
    return applied(symbol(op), [number(x) for x in operands]), has_zero
