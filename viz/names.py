"""The Tensors that a caller gave, and their names: given in `names`, or those of the caller's variables."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

import numpy as np

from needle.autograd import Tensor, Value
from needle.backend_selection import NDArray
from needle.nn import Module

from .text import elide

__all__ = ["caller_names", "names_in", "names_of", "tensor_of", "values_of", "variables_in"]

LONGEST_NAME = 60  # characters of a name that is given
MOST_ITEMS = 1000  # are named of a list: nobody reads xs[1000], and a list of data can be long


def values_of(function: str, given: Value | Sequence[Value]) -> list[Value]:
    """The Tensors that a `function` was given: one, or a list.

    Raises
    ------
    TypeError
        If something else is among them. The message says what came, and what to do with it.
    ValueError
        If the list is empty.
    """
    values: list = list(given) if isinstance(given, (list, tuple)) else [given]
    if not values:
        raise ValueError(f"{function}: the list is empty; give at least one Tensor")
    for place, value in enumerate(values):
        if not isinstance(value, Value):
            where = f" at place {place} of the {type(given).__name__}" if value is not given else ""
            raise _not_a_tensor(function, "a Tensor or a list of Tensors", value, where)
    return values


def tensor_of(function: str, given: object, *, differentiated: bool = False) -> Tensor:
    """The one Tensor that a `function` was given; one that requires a gradient if it is `differentiated`.

    Raises
    ------
    TypeError
        If it is no Tensor.
    RuntimeError
        If it does not require the gradient that is needed.
    """
    if not isinstance(given, Tensor):
        raise _not_a_tensor(function, "a Tensor", given)
    if differentiated and not given.requires_grad:
        raise RuntimeError(
            f"{function}: this Tensor does not require a gradient: it is a constant, or made in no_grad()"
        )
    return given


def _not_a_tensor(function: str, needed: str, given: object, where: str = "") -> TypeError:
    """The error for anything but a Tensor: what came, what is needed, and the way out."""
    call = f"viz.{function.partition(':')[0]}"
    what, way = type(given).__name__, ""
    if isinstance(given, Module):
        way = f"; draw its modules with viz.draw(model), or call it: {call}(model(x))"
    elif isinstance(given, (np.ndarray, NDArray)):
        way = "; make a Tensor of it, x = ndl.Tensor(array), and give what you compute from x"
    elif isinstance(given, (list, tuple)):
        way = "; give a single Tensor, such as the sum of these"
    elif callable(given):
        way = "; call it, and give the Tensor that it returns"
    return TypeError(f"{function}: needs {needed}, got {what}{where}{way}")


def names_of(names: Mapping[str, Value] | None, frame: FrameType) -> dict[Value, str]:
    """The names that were given, or else those of the caller's variables, in `frame`."""
    return caller_names(frame) if names is None else _given_names(names)


def _given_names(names: Mapping[str, Value]) -> dict[Value, str]:
    """The names that the caller gave, each on one line; of several for one Value, the first.

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
    """The names that a function's local and global variables give to Values.

    A variable comes before a parameter of a module (``0.weight``; ``model.0.weight`` if there are several
    modules), and that before an item of a list (``xs[0]``). Names that begin with an underscore are not meant
    for readers, and IPython's ``_`` and ``_12`` are among them.
    """
    return names_in(_variables(frame))


def names_in(scope: Mapping[str, object]) -> dict[Value, str]:
    """The names that variables, by name, give to Values. See `caller_names`."""
    modules = sum(isinstance(thing, Module) for thing in scope.values())
    found: dict[Value, str] = {}
    for kind in (_variable, _parameters, _items):
        for name, thing in scope.items():
            for value, full_name in kind("" if kind is _parameters and modules == 1 else name, thing):
                found.setdefault(value, full_name)
    return found


def _variables(frame: FrameType) -> dict[str, object]:
    local = frame.f_locals
    scope = variables_in(local, frame.f_globals)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        # A function's frame keeps this snapshot until it returns, and with it the caller's Tensors.
        local.clear()
    return scope


def variables_in(local: Mapping[str, object], around: Mapping[str, object]) -> dict[str, object]:
    """Local and global variables that are meant for readers."""
    scope = {**local, **around, **local}  # locals come first, and hide globals
    return {name: x for name, x in scope.items() if name.isidentifier() and not name.startswith("_")}


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
