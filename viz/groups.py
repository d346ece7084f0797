"""Drawings at every scale: the groups of a graph, open, or closed to one box each."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from .plain import LEFT_OUT, Graph, Operand, Operator, Variable

__all__ = ["READABLE", "Box", "at_depth", "fold", "inside", "readable", "topological", "with_boxes"]

READABLE = 150  # boxes in one picture
MOST_SHAPES = 2  # of what goes into a group, or comes out of it, are written


def at_depth(graph: Graph, depth: int) -> frozenset[str]:
    """The groups that are open when modules are shown down to a depth; 0 closes the outermost ones."""
    return frozenset(key for key, level in _levels(graph).items() if level < depth)


def readable(graph: Graph) -> frozenset[str]:
    """The groups that are open when as much is shown as one can read: all of them in a small graph."""
    deepest = 1 + max(_levels(graph).values(), default=-1)
    opened = at_depth(graph, deepest)
    if len(graph.variables) <= READABLE:
        return opened
    for depth in range(deepest, 0, -1):
        opened = at_depth(graph, depth)
        if len(fold(graph, opened).variables) <= READABLE:
            return opened
    return at_depth(graph, 0)


def _levels(graph: Graph) -> dict[str, int]:
    """How many modules each group is in. A repeat is as deep as what it repeats."""
    by_key = {group.key: group for group in graph.groups}
    levels: dict[str, int] = {}
    for group in graph.groups:
        outer = by_key.get(group.parent)
        levels[group.key] = levels[group.parent] + (outer.count == 1) if outer else 0
    return levels


def fold(graph: Graph, opened: Collection[str]) -> Graph:
    """The graph with each group that is not in `opened` closed to one variable of the kind "group".

    A closed group has the group's key and title. Its facts are the shapes that go in and come out, its note
    says how many parameters it has. Groups of the result are those that are open and have a frame: a repeat
    has none, and neither has a group of one variable.
    """
    by_key = {group.key: group for group in graph.groups}
    closed: dict[str, str] = {"": ""}  # for each group: the outermost closed one that it is or is in
    for group in graph.groups:
        closed[group.key] = closed[group.parent] or ("" if group.key in opened else group.key)
    if not any(closed.values()):
        return _framed(graph)
    members: dict[str, list[Variable]] = defaultdict(list)
    for variable in graph.variables:
        if closed[variable.group]:
            members[closed[variable.group]].append(variable)
    boxes = {key: Box(by_key[key].title, by_key[key].parent, inner) for key, inner in members.items()}
    groups = tuple(group for group in graph.groups if not closed[group.key])
    return _framed(replace(with_boxes(graph, boxes), groups=groups))


def _framed(graph: Graph) -> Graph:
    """The graph without groups that need no frame."""
    size = Counter(variable.group for variable in graph.variables)
    size.update(group.parent for group in graph.groups)
    frame = {"": ""}
    for group in graph.groups:
        unframed = group.count > 1 or size[group.key] < 2
        frame[group.key] = frame[group.parent] if unframed else group.key
    groups = [
        replace(group, parent=frame[group.parent]) for group in graph.groups if frame[group.key] == group.key
    ]
    variables = [replace(x, group=frame[x.group]) if x.group else x for x in graph.variables]
    return replace(graph, variables=tuple(variables), groups=tuple(groups))


class Box(NamedTuple):
    """What one box stands for."""

    title: str
    group: str  # the key of the group that it is in
    variables: Sequence[Variable]
    note: str = ""  # by default how many parameters there are in it


def with_boxes(graph: Graph, boxes: Mapping[str, Box]) -> Graph:
    """The graph with boxes, by key, in the places of the variables that they stand for."""
    box_of = {x.key: key for key, box in boxes.items() for x in box.variables}

    def shown(key: str) -> str:
        return box_of.get(key, key)

    by_key = {x.key: x for x in graph.variables}
    used_outside: dict[str, dict[str, Variable]] = defaultdict(dict)  # by box, in the order of use
    for x in graph.variables:
        for operand in x.operator.operands if x.operator else ():
            box = box_of.get(operand.key)
            if box and box != box_of.get(x.key) and x.row == by_key[operand.key].row:
                used_outside[box][operand.key] = by_key[operand.key]
    owner = {key: column[0] for column in graph.columns for key in column[1:]}

    variables: list[Variable] = []
    drawn = set()
    for x in graph.variables:
        key = box_of.get(x.key)
        if key is None:
            variables.append(_redirected(x, shown))
            continue
        if key not in drawn:
            drawn.add(key)
            outputs = list(used_outside[key].values())
            variables.append(_box(key, boxes[key], outputs, by_key, shown, owner))
        if _is_a_result(x, owner, by_key, box_of):
            del box_of[x.key]
            came_from = Operator("", (Operand(key),))
            variables.append(replace(x, operator=came_from, group=by_key[owner[x.key]].group))
    columns = _columns_of(graph, shown, {x.key: x.row for x in variables})
    return replace(graph, variables=_in_order(variables), columns=columns)


def _is_a_result(
    x: Variable, owner: Mapping[str, str], by_key: Mapping[str, Variable], box_of: Mapping[str, str]
) -> bool:
    """Whether this is the adjoint of a leaf that is drawn by itself: its box is drawn as well, then."""
    leaf = by_key.get(owner.get(x.key, ""))
    return leaf is not None and leaf.operator is None and leaf.key not in box_of


def _redirected(x: Variable, shown: Callable[[str], str]) -> Variable:
    """A variable whose operands are what stands for them now."""
    if x.operator is None or all(shown(operand.key) == operand.key for operand in x.operator.operands):
        return x
    operands = tuple(replace(operand, key=shown(operand.key)) for operand in x.operator.operands)
    return replace(x, operator=replace(x.operator, operands=operands))


def _box(
    key: str,
    box: Box,
    outputs: Sequence[Variable],
    by_key: Mapping[str, Variable],
    shown: Callable[[str], str],
    owner: Mapping[str, str],
) -> Variable:
    """The variable that stands for several."""
    inner, row = box.variables, box.variables[0].row
    outputs = outputs or [x for x in inner if x.kind == "output"]
    operands: dict[str, None] = {}
    inputs: dict[str, Variable] = {}
    for x in inner:
        for operand in x.operator.operands if x.operator else ():
            if shown(operand.key) != key:
                operands[shown(operand.key)] = None
                inputs[operand.key] = by_key[operand.key]
    inputs = {k: x for k, x in inputs.items() if x.row == row and x.key != LEFT_OUT}
    parameters = {x.key for x in inner if x.kind == "parameter"}
    gradients = {x.key for x in inner if by_key.get(owner.get(x.key, ""), x).kind == "parameter"}
    count = sum(math.prod(by_key[k].shape or ()) for k in parameters | gradients)
    note = f"{'gradients of ' if gradients - parameters else ''}{count:,} parameter{'s' * (count != 1)}"
    return Variable(
        key,
        box.title,
        "group",
        facts=" → ".join(filter(None, [_shapes(inputs.values()), _shapes(outputs)])),
        note=box.note or (note if count else ""),
        computed=all(x.computed for x in inner),
        operator=Operator("", tuple(map(Operand, operands))) if operands else None,
        row=row,
        group=box.group,
    )


def _shapes(variables: Iterable[Variable]) -> str:
    shapes = list(dict.fromkeys(str(x.shape) for x in variables if x.shape is not None))
    rest = len(shapes) - MOST_SHAPES
    return ", ".join(shapes[:MOST_SHAPES] + ([f"{rest} more"] if rest > 0 else []))


def _columns_of(
    graph: Graph, shown: Callable[[str], str], rows: Mapping[str, int]
) -> tuple[tuple[str, ...], ...]:
    """Columns of what is shown: for each box that one in every other row with which it shares most."""
    votes: Counter[tuple[str, str]] = Counter()
    for column in graph.columns:
        keys = list(dict.fromkeys(map(shown, column)))
        votes.update(pairwise(keys))
    after: dict[str, str] = {}
    before: dict[str, str] = {}
    for (upper, lower), _ in votes.most_common():
        if rows[upper] < rows[lower] and upper not in after and lower not in before:
            after[upper], before[lower] = lower, upper
    columns = []
    for key in after:
        if key not in before:
            keys = [key]
            while keys[-1] in after:
                keys.append(after[keys[-1]])
            columns.append(tuple(keys))
    return tuple(columns)


def _in_order(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Each variable after its operands, else as they come."""
    place = {x.key: i for i, x in enumerate(variables)}
    operands = [x.operator.operands if x.operator else () for x in variables]
    order = topological([{place[x.key] for x in given if x.key in place} for given in operands])
    return tuple(variables[i] for i in order)


def topological(waits_for: Sequence[set[int]]) -> list[int]:
    """The numbers 0, 1, … in an order in which each comes after those it waits for; the lowest first."""
    waits_for = [set(others) for others in waits_for]
    users = defaultdict(list)
    for i, others in enumerate(waits_for):
        for j in others:
            users[j].append(i)
    ready = [i for i, others in enumerate(waits_for) if not others]
    order = []
    while ready:
        order.append(i := heapq.heappop(ready))
        for user in users[i]:
            waits_for[user].discard(i)
            if not waits_for[user]:
                heapq.heappush(ready, user)
    return order


def inside(graph: Graph, key: str) -> Graph:
    """What a group holds, as a graph of its own.

    Its groups are closed. A variable of the kind "port" stands for each variable outside that it uses (with
    the key "in_" and that variable's) and for each of its own that is used outside ("out_" and its key).
    """
    within = {key}
    for group in graph.groups:
        if group.parent in within:
            within.add(group.key)
    by_key = {x.key: x for x in graph.variables}
    mine = [x for x in graph.variables if x.group in within]
    keys = {x.key for x in mine}
    used = {
        operand.key: None
        for x in mine
        if x.operator
        for operand in x.operator.operands
        if operand.key not in keys
    }
    row = mine[0].row
    used_outside = {
        operand.key: None
        for x in graph.variables
        if x.key not in keys and x.operator and x.row == row
        for operand in x.operator.operands
        if operand.key in keys
    }
    incoming = [_port(f"in_{k}", by_key[k], row) for k in used]
    outgoing = [
        replace(_port(f"out_{k}", by_key[k], row), operator=Operator("", (Operand(k),))) for k in used_outside
    ]
    variables = [
        *incoming,
        *[_redirected(x, lambda k: f"in_{k}" if k in used else k) for x in mine],
        *outgoing,
    ]
    part = replace(
        graph,
        variables=tuple(variables),
        columns=(),
        left_out=0,
        groups=tuple(
            replace(group, parent="" if group.parent == key else group.parent)
            for group in graph.groups
            if group.key in within and group.key != key
        ),
    )
    part = replace(
        part, variables=tuple(replace(x, group="") if x.group == key else x for x in part.variables)
    )
    return fold(part, ())


def _port(key: str, x: Variable, row: int) -> Variable:
    return Variable(key, x.name, "port", facts=x.facts, computed=x.computed, row=row, shape=x.shape)
