"""What the nodes of a graph are called: as the caller says, else as the caller's variables are called."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from needle.autograd import Value
from needle.nn import Module

from .text import elide

__all__ = ["caller_names", "names_of", "values_of"]

LONGEST_NAME = 60  # characters of a name that is given
MOST_ITEMS = 1000  # of a list are looked at: nobody reads xs[1000], and a list of data can be long


def values_of(function: str, given: Value | Sequence[Value]) -> list[Value]:
    """The Tensors that were given to a `function`: one, or a list."""
    values: list = list(given) if isinstance(given, (list, tuple)) else [given]
    if not values:
        raise ValueError(f"{function}: the list is empty; give at least one Tensor")
    for value in values:
        if not isinstance(value, Value):
            raise TypeError(f"{function}: needs a Tensor or a list of Tensors, got {type(value).__name__}")
    return values


def names_of(names: Mapping[str, Value] | None, frame: FrameType) -> dict[Value, str]:
    """The names that were given; else those of the variables of the caller, in `frame`."""
    return caller_names(frame) if names is None else _given_names(names)


def _given_names(names: Mapping[str, Value]) -> dict[Value, str]:
    """The names that the caller gave, each as a line; the first one counts where a Value has several.

    Raises
    ------
    TypeError
        If `names` is not a mapping from names to Tensors.
    """
    if not isinstance(names, Mapping):
        raise TypeError(f"names: needs a dict such as {{'x': x}}, got {type(names).__name__}")
    found: dict[Value, str] = {}
    for name, value in names.items():
        if not isinstance(value, Value):
            raise TypeError(f"names: {str(name)!r} stands for a {type(value).__name__}, not for a Tensor")
        found.setdefault(value, elide(name, LONGEST_NAME))
    return found


def caller_names(frame: FrameType) -> dict[Value, str]:
    """What a function's local and global variables call Values.

    A variable counts before a parameter of a module (``0.weight``; ``model.0.weight`` where there are several
    modules), and that before an item of a list (``xs[0]``). Names with a leading underscore are not meant to
    be read, and IPython's ``_``, ``_12`` are among them.
    """
    scope = _variables(frame)
    modules = sum(isinstance(thing, Module) for thing in scope.values())
    found: dict[Value, str] = {}
    for kind in (_variable, _parameters, _items):
        for name, thing in scope.items():
            for value, full_name in kind("" if kind is _parameters and modules == 1 else name, thing):
                found.setdefault(value, full_name)
    return found


def _variables(frame: FrameType) -> dict[str, object]:
    local = frame.f_locals
    scope = {**local, **frame.f_globals, **local}  # locals come first, and hide globals
    scope = {name: x for name, x in scope.items() if name.isidentifier() and not name.startswith("_")}
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        # For a function this is a snapshot that the frame keeps: it would hold the caller's Tensors until it
        # returns.
        local.clear()
    return scope


def _variable(name: str, thing: object) -> Iterator[tuple[Value, str]]:
    if isinstance(thing, Value):
        yield thing, name


def _parameters(name: str, thing: object) -> Iterator[tuple[Value, str]]:
    if isinstance(thing, Module):
        for path, parameter in thing.named_parameters():
            yield parameter, f"{name}.{path}".removeprefix(".")


def _items(name: str, thing: object) -> Iterator[tuple[Value, str]]:
    if isinstance(thing, (list, tuple)):
        for index, item in enumerate(thing[:MOST_ITEMS]):
            if isinstance(item, Value):
                yield item, f"{name}[{index}]"
