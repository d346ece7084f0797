"""How each node of a graph was made: also a constant, which remembers no operator, if its array tells.

- A lazy constant is still to be computed, so it knows its operator and its operands until then.
- A view such as ``X[0]`` looks at the storage of X. Shape, strides and offset say which part of X it is.
- A loss turns labels into ones and zeros. If a module was called with the very numbers that a constant has
  for its ones, that is where the constant comes from.
- ``a - y`` adds −y to a. A constant without a name that is −y, for a y with a name, comes from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from needle.autograd import Tensor, TensorTuple, Value
from needle.backend_selection import to_numpy
from needle.graph import Op, Pending, find_topo_sort
from needle.modes import Scope
from needle.ops import Identity, Negate, OneHot

from .storage import storage_of
from .text import LARGEST_SEARCHED
from .views import view_of

__all__ = ["History", "around", "held"]

MOST_ASKED = 8  # Tensors that share a storage with a view: hundreds of batches can share that of their data
VIEW = "view"  # in place of an operator: a view that takes several


class History:
    """All nodes that lead to some outputs, and how each was made.

    Parameters
    ----------
    outputs : sequence of Value
    named : collection of Value
        Nodes outside the graph that a constant can be made from. If one was made from another array, a new
        Tensor stands for that.

    Attributes
    ----------
    order : list of Value
        The nodes, each after those that it was made from.
    """

    def __init__(self, outputs: Sequence[Value], named: Collection[Value]):
        self.order = find_topo_sort(outputs)
        known = list(dict.fromkeys([*named, *self.order]))
        gradients = [x.grad for x in known if isinstance(x.grad, Value)]
        known += filter(_is_constant, gradients)  # among them the seed: it is the `grad` of an output
        known = [x for x in dict.fromkeys(known) if x._data is not None]
        constants = list(filter(_is_constant, known))
        self._constants = {held(x): x for x in reversed(constants)}
        self._sharing = _by_storage(constants)
        self._named = dict.fromkeys(named)
        self._uncut = {held(x): x for x in known if not _is_constant(x)}
        self._made: dict[Value, tuple[Op | str, Sequence[Value]]] = {}  # what the nodes do not say themselves
        waiting = list(filter(_is_constant, self.order))
        while waiting:
            node = waiting.pop()
            if node in self._made or self.cut_from(node) is not None:
                continue
            made = self._by_pending(node) or self._one_hot(node) or self._by_storage(node)
            if made is None and node not in self._named:
                made = self._negative(node)
            if made is not None:
                self._made[node] = made
                waiting += made[1]
        if self._made:
            self.order = self._sorted(outputs)

    def op(self, node: Value) -> Op | str | None:
        """The operator that made a node, or an index in words; None for a leaf."""
        return self._made[node][0] if node in self._made else node.op

    def inputs(self, node: Value) -> Sequence[Value]:
        """What a node was made from."""
        return self._made[node][1] if node in self._made else node.inputs

    def scope(self, node: Value) -> Scope | None:
        """Where a node was made; a constant that a module was called with was made outside of it."""
        if _is_constant(node):
            for part in around(node.scope):
                if any(x() is not None and id(_realized(x())) == held(node) for x in part.given):
                    return part.outer
        return node.scope

    def names(self, given: Mapping[Value, str]) -> dict[Value, str]:
        """The given names; a constant in the graph is called after one outside that holds the same array."""
        inside = set(self.order)
        named = {held(x): name for x, name in given.items() if _is_constant(x) and x not in inside}
        return {x: named[held(x)] for x in self.order if _is_constant(x) and held(x) in named} | dict(given)

    def cut_from(self, node: Value) -> Value | None:
        """The node whose array a constant holds without being computed from it, as after `detach`."""
        return self._uncut.get(held(node)) if _is_constant(node) else None

    def _by_pending(self, node: Value) -> tuple[Op, Sequence[Value]] | None:
        """How a lazy constant will be made."""
        data = node._data
        if type(data) is not Pending or (op := data.op) is None or (operands := data.operands) is None:
            return None
        return op, [self._constant(array, node.scope) for array in operands]

    def _constant(self, data: Any, scope: Scope | None) -> Value:
        """The constant that stands for an array, or for one to come, that was used within a scope."""
        array = _realized(data)
        if id(array) not in self._constants:
            several = getattr(array, "shape", None) is None
            node = self._constants[id(array)] = (TensorTuple if several else Tensor).make_const(array)
            node.scope = scope  # it was made there too, unless the module was called with it
            node.scope = self.scope(node)
        return self._constants[id(array)]

    def _one_hot(self, node: Value) -> tuple[Op, Sequence[Value]] | None:
        """How a module made a one among zeros for each of its labels."""
        if not isinstance(node, Tensor) or node.cached_data is None or node.shape[-1:] < (2,):
            return None
        classes = node.shape[-1]
        for array in _given(node.scope, node.size // classes):
            labels = to_numpy(array).reshape((*node.shape[:-1], 1))
            if np.array_equal(to_numpy(node.cached_data), labels == np.arange(classes)):
                return OneHot(classes, node.dtype), [self._constant(array, node.scope)]
        return None

    def _by_storage(self, node: Value) -> tuple[Op | str, Sequence[Value]] | None:
        """How a view was made from another constant."""
        array = node.cached_data
        if not isinstance(node, Tensor) or array is None or array.base is None or not node.size:
            return None
        sharing = self._sharing[_storage(node)]
        larger = sharing[: sharing.index(node)] if node in sharing else sharing
        for x in larger[:MOST_ASKED]:
            way = view_of(x.cached_data, array)
            if way is not None and not (isinstance(way, Identity) and x.cached_data.base is not None):
                return way, [x]
        if node.scope is None and id(array.base) not in self._constants and id(array.base) not in self._uncut:
            return None  # nobody knows it
        return view_of(array.base, array) or VIEW, [self._constant(array.base, node.scope)]

    def _negative(self, node: Value) -> tuple[Op, Sequence[Value]] | None:
        """How a subtraction made the negative of a constant."""
        if not isinstance(node, Tensor) or node.cached_data is None or node.size > LARGEST_SEARCHED:
            return None
        if node.dtype.kind not in "fi":
            return None
        arrays = [x.cached_data for x in self._named if isinstance(x, Tensor) and _is_constant(x)]
        arrays = [x for x in arrays if x is not None and x.shape == node.shape]
        numbers = to_numpy(node.cached_data)
        for array in [*arrays[:MOST_ASKED], *_given(node.scope, node.size)]:
            if array.shape == node.shape and numbers.any() and not (to_numpy(array) + numbers).any():
                return Negate(), [self._constant(array, node.scope)]
        return None

    def _sorted(self, outputs: Sequence[Value]) -> list[Value]:
        """As `find_topo_sort`, by these `inputs`."""
        order: dict[Value, None] = {}
        seen = set()
        stack = list(reversed(outputs))
        while stack:
            node = stack[-1]
            if node not in seen:
                seen.add(node)
                stack.extend(reversed(self.inputs(node)))
            else:
                order[stack.pop()] = None
        return list(order)


def around(scope: Scope | None) -> list[Scope]:
    """A scope and those around it, the outermost first."""
    path = []
    while scope is not None:
        path.append(scope)
        scope = scope.outer
    return path[::-1]


def _given(scope: Scope | None, size: int) -> Iterator[Any]:
    """The arrays of this size, of those that the modules around were called with and that are still there."""
    for part in around(scope):
        for given in part.given:
            data = given()
            array = data.data if type(data) is Pending else data
            if array is not None and array.size == size:
                yield array


def _realized(data: Any) -> Any:
    """The array, if it is computed; else the one to come."""
    return data.data if type(data) is Pending and data.data is not None else data


def held(node: Value) -> int:
    """The array that a node stands for, or will stand for, by its id."""
    return id(_realized(node._data))


def _is_constant(node: Value) -> bool:
    return node.op is None and not node.requires_grad


def _storage(node: Value) -> int:
    return id(storage_of(node.cached_data)[0])


def _by_storage(constants: Iterable[Value]) -> dict[int, list[Tensor]]:
    """The constants that look at each storage: first the one that is no view, then the largest."""
    sharing: dict[int, list[Tensor]] = defaultdict(list)
    for x in constants:
        if isinstance(x, Tensor) and x.cached_data is not None:
            sharing[_storage(x)].append(x)
    for same in sharing.values():
        same.sort(key=lambda x: (x.cached_data.base is not None, -x.size))
    return sharing
