"""Structures: lists, tuples and dictionaries in each other, as a function takes and returns them.

A structure is taken apart into its leaves and a template: the same structure with the number of each leaf in
its place. For ``layer(x)``, the template is ``([Leaf(0)], {})``, positional and named arguments, and the only
leaf is x.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np


class Leaf(int):
    """The place of what may be another in each call: the number of a leaf."""


class Fixed:
    """What has to be the same in each call: an argument, or part of one, or what a module holds.

    Plain values, arrays and collections are compared with what they were, all else by which object it is.
    """

    __slots__ = ("image", "value")
    __array_ufunc__ = None  # arrays of NumPy's leave the comparison to this class

    def __init__(self, value: Any):
        self.value, self.image = value, _image(value)

    def __eq__(self, other: object) -> bool:
        return self.image == _image(other)

    __hash__ = None  # type: ignore[assignment]


#: What `repr` says all about.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), range, np.generic, np.dtype)


def is_plain(x: Any) -> bool:
    """Whether a value stays what it is as long as it is the same object."""
    return isinstance(x, _PLAIN) or (isinstance(x, tuple) and all(map(is_plain, x)))


def _image(x: Any) -> Any:
    """What stands for a value in a comparison, also after it has been changed in place."""
    kind = type(x)
    if kind is bool or kind is str or x is None:  # most often
        return x
    if issubclass(kind, _PLAIN):
        return kind, repr(x)
    if issubclass(kind, np.ndarray):
        return kind, x.shape, x.dtype, x.tobytes()
    if issubclass(kind, (set, frozenset)):
        return kind, frozenset(map(_image, x))
    if issubclass(kind, (dict, list, tuple, slice)):
        parts = x.items() if issubclass(kind, dict) else (x.start, x.stop, x.step) if kind is slice else x
        return kind, *map(_image, parts)
    return kind, MethodType(id, x)  # methods are equal if they are of the same object


def mapped(function: Callable[[Any, str], Any], value: Any, path: str = "") -> Any:
    """The same structure, with ``function(x, path of x)`` in the place of each x that it holds."""
    kind = type(value)
    if isinstance(value, dict):
        return with_items(value, {key: mapped(function, x, f"{path}_{key}") for key, x in value.items()})
    if kind is list or (isinstance(value, tuple) and (kind is tuple or hasattr(kind, "_fields"))):
        keys = getattr(kind, "_fields", range(len(value)))
        items = [mapped(function, x, f"{path}_{key}") for key, x in zip(keys, value, strict=True)]
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    return function(value, path)


def with_items(value: dict, items: dict) -> dict:
    """A copy of a dictionary, such as a defaultdict, with these items."""
    (alike := copy.copy(value)).update(items)
    return alike


def leaves_of(value: Any) -> list[Any]:
    """All that a structure holds, in order."""
    found: list[Any] = []
    mapped(lambda x, _: found.append(x), value)
    return found
