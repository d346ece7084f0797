"""Structures: lists, tuples and dictionaries in each other, as a function takes and returns them.

A structure is taken apart into its leaves and a template, which has the number of a leaf in the place of
each. For ``layer(x)``, the template of the arguments is ``(Leaf(0),)``, and the one leaf is x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Leaf(int):
    """The place of what may be another in each call: the number of a leaf."""


class Fixed:
    """An argument, or part of one, that has to be the same in each call."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Fixed:
            return False
        a, b = self.value, other.value
        return a is b or (type(a) is type(b) and isinstance(a, _COMPARED) and a == b and repr(a) == repr(b))

    __hash__ = None  # type: ignore[assignment]


_COMPARED = (bool, int, float, complex, str, bytes, np.generic, tuple, list)


def mapped(function: Callable[[Any, str], Any], value: Any, path: str = "") -> Any:
    """The same structure, with ``function(x, path of x)`` in the place of each x that it holds."""
    kind = type(value)
    if kind is dict:
        return {key: mapped(function, x, f"{path}_{key}") for key, x in value.items()}
    if kind is list or (isinstance(value, tuple) and (kind is tuple or hasattr(kind, "_fields"))):
        keys = getattr(kind, "_fields", range(len(value)))
        items = [mapped(function, x, f"{path}_{key}") for key, x in zip(keys, value, strict=True)]
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    return function(value, path)


def filled(template: Any, leaves: list[Any], other: Callable[[Any], Any]) -> Any:
    """A template with the leaves in their places, and ``other(x)`` for all else that is in it."""
    return mapped(lambda x, _: leaves[x] if type(x) is Leaf else other(x), template)


def leaves_of(value: Any) -> list[Any]:
    """All that a structure holds, in order."""
    found: list[Any] = []
    mapped(lambda x, _: found.append(x), value)
    return found
