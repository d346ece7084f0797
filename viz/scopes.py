"""From calls of modules to groups: which variables belong together, and what their groups are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from needle.autograd import Value
from needle.modes import Scope
from needle.nn import Module, Parameter

from .constants import History, around
from .graph_data import Graph, Group
from .text import elide, ordinal

__all__ = ["common_scope", "grouped", "parameter_names", "scopes_of"]


def scopes_of(history: History, owners: Mapping[Value, Value]) -> dict[Value, Scope]:
    """The scope of each node that has one.

    That is the call in which it was made. A parameter or a buffer was made before any call: it belongs to the
    innermost call around all its uses. A sum of partial adjoints belongs to the node whose gradient it is.

    Parameters
    ----------
    history : History
        The nodes of a graph.
    owners : mapping from Value to Value
        For a Tensor that is a node's `grad`: that node.
    """
    uses: dict[Value, list[Scope | None]] = defaultdict(list)
    found: dict[Value, Scope] = {}
    for node in history.order:
        scope = history.scope(node) or (found.get(owners[node]) if node in owners else None)
        if scope is not None:
            found[node] = scope
        for x in history.inputs(node):
            if x.scope is None and x.op is None:
                uses[x].append(scope)
    for x, scopes in uses.items():
        common = common_scope(scopes)
        if common is not None and (isinstance(x, Parameter) or _holds(common, x)):
            found[x] = common
    return found


def parameter_names(nodes: Iterable[Value]) -> dict[Value, str]:
    """What the models that computed the nodes call their parameters: ``0.weight``.

    Where there are several models with parameters, the class of each comes first, with its number among those
    of its class: ``Linear 2.weight``. A model that is gone names nothing.
    """
    models: dict[int, Module] = {}
    for scope in dict.fromkeys(node.scope for node in nodes):
        model = next((x.owner for x in around(scope) if isinstance(x.owner, Module)), None)
        if model is not None:
            models[id(model)] = model
    learning = [model for model in models.values() if model.parameters()]
    classes = [type(model).__name__ for model in learning]
    names: dict[Value, str] = {}
    for i, (model, name) in enumerate(zip(learning, classes, strict=True)):
        number = f" {classes[: i + 1].count(name)}" if classes.count(name) > 1 else ""
        prefix = f"{name}{number}." if len(learning) > 1 else ""
        for path, parameter in model.named_parameters():
            names.setdefault(parameter, f"{prefix}{path}")
    return names


def common_scope(scopes: Iterable[Scope | None]) -> Scope | None:
    """The innermost scope that is around all of these."""
    paths = [around(scope) for scope in dict.fromkeys(scopes)]
    common = None
    for level in zip(*paths, strict=False):
        if any(scope is not level[0] for scope in level):
            break
        common = level[0]
    return common


def _holds(scope: Scope | None, x: Value) -> bool:
    """Whether the module that was called, or one around it, has `x` as an attribute."""
    return any(
        isinstance(outer.owner, Module) and any(x is part for part in vars(outer.owner).values())
        for outer in around(scope)
    )


def grouped(graph: Graph, scopes: Mapping[str, Scope]) -> Graph:
    """The graph with its variables in groups.

    A module that only calls another one, and computes nothing itself, shares a group with it.

    Parameters
    ----------
    graph : Graph
    scopes : mapping from str to Scope
        By key of a variable.
    """
    if not scopes:
        return graph
    children: dict[Scope | None, dict[Scope, None]] = defaultdict(dict)
    for scope in scopes.values():
        part: Scope | None = scope
        while part is not None and part not in children[part.outer]:
            children[part.outer][part] = None
            part = part.outer
    with_variables = set(scopes.values())
    labels: dict[Scope, str] = {}
    place: dict[Scope, Scope] = {}  # for scopes that share a group: the innermost of them
    titles: dict[Scope, str] = {}
    waiting: list[tuple[Scope | None, Scope | None]] = [(None, None)]  # a scope, and the group around it
    parents: dict[Scope, Scope | None] = {}
    while waiting:
        outer, group = waiting.pop()
        calls = sorted(children[outer], key=lambda scope: scope.number)
        for scope in calls:
            chain = [scope]
            while chain[-1] not in with_variables and len(children[chain[-1]]) == 1:
                chain += children[chain[-1]]
            for part in chain:
                place[part] = chain[-1]
            labels[chain[-1]] = _label(chain)
            parents[chain[-1]] = group
            waiting.append((chain[-1], chain[-1]))
        titles |= _numbered([(place[scope], scope.who) for scope in calls], labels)

    keys: dict[tuple[Scope | None, int], str] = {}
    first: dict[Scope, str] = {}
    groups: list[Group] = []

    def key_of(scope: Scope | None, row: int) -> str:
        new = []
        outer = scope
        while outer is not None and (outer, row) not in keys:
            new.append(outer)
            outer = parents[outer]
        for part in reversed(new):
            parent = keys.get((parents[part], row), "")
            keys[part, row] = key = f"g{len(keys) + 1}"
            of = first.setdefault(part, key)
            groups.append(Group(key, titles[part], parent, row, labels[part], first=of))
        return keys.get((scope, row), "")

    variables = tuple(
        replace(x, group=key_of(place[scopes[x.key]], x.row)) if x.key in scopes else x
        for x in graph.variables
    )
    return replace(graph, variables=variables, groups=tuple(groups))


def _label(chain: Sequence[Scope]) -> str:
    """The name of scopes that share a group: ``MLP › Linear``. A Sequential among them is not mentioned."""
    names = [scope.name for scope in chain]
    telling = [name for name in names if name != "Sequential"] or names[:1]
    return " › ".join(elide(name) for name in dict.fromkeys(telling))


def _numbered(scopes: Sequence[tuple[Scope, object]], labels: Mapping[Scope, str]) -> dict[Scope, str]:
    """The titles of neighbours; numbers tell apart modules with the same name, and calls of one module."""
    alike: dict[str, dict[str | int, list[Scope]]] = defaultdict(lambda: defaultdict(list))
    for scope, who in scopes:
        alike[labels[scope]][who if isinstance(who, str) else id(who)].append(scope)
    titles = {}
    for label, owners in alike.items():
        for number, calls in enumerate(owners.values(), 1):
            title = f"{label} {number}" if len(owners) > 1 else label
            for call, scope in enumerate(calls):
                titles[scope] = f"{title}, {ordinal(call)} call" if len(calls) > 1 else title
    return titles
