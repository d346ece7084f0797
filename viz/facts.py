"""Which facts about its variables a drawing shows: the option `show`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from .graph_data import Graph, Variable
from .text import byte_count, elide

__all__ = ["BETWEEN_FACTS", "FACTS", "in_words", "showing"]

FACTS = ("value", "gradient", "shape", "dtype", "device", "bytes", "requires_grad")
BETWEEN_FACTS = " · "


def showing(graph: Graph, facts: Collection[str] | None) -> Graph:
    """The graph with these facts about its variables, and no others.

    Parameters
    ----------
    graph : Graph
    facts : collection of str, optional
        Words of `FACTS`. By default value, gradient and shape, and the dtype if it is not float32.

    Raises
    ------
    ValueError
        For anything else.
    """
    if facts is None:
        return graph
    words = [facts] if isinstance(facts, str) or not isinstance(facts, Iterable) else list(facts)
    unknown = [word for word in words if word not in FACTS]
    if unknown:
        raise ValueError(f"show: needs words of {', '.join(map(repr, FACTS))}, got {min(unknown, key=str)!r}")
    wanted = frozenset(words)
    return replace(graph, variables=tuple(_with(x, wanted) for x in graph.variables), shown=wanted)


def _with(variable: Variable, facts: Collection[str]) -> Variable:
    value = variable.value if "value" in facts else ()
    gradient = variable.gradient if "gradient" in facts else ()
    if variable.requires_grad is None:  # not a node, but a box for others
        return replace(variable, value=value, gradient=gradient)
    return replace(variable, facts=in_words(variable, facts), value=value, gradient=gradient)


def in_words(variable: Variable, facts: Collection[str] = FACTS) -> str:
    """Some facts about a node, without its value and its gradient: ``(2, 3) · float32 · cpu() · 24 B``."""
    words = {
        "shape": variable.facts if variable.shape is None else str(variable.shape),
        "dtype": variable.dtype,
        "device": variable.device,
        "bytes": _memory(variable),
        "requires_grad": "needs gradient" if variable.requires_grad else "needs no gradient",
    }
    return BETWEEN_FACTS.join(filter(None, [word for fact, word in words.items() if fact in facts]))


def _memory(variable: Variable) -> str:
    if variable.shares:
        return f"in the storage of {elide(variable.shares, 16)}"
    return "" if variable.bytes is None else byte_count(variable.bytes)
