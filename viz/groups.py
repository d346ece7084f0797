"""Drawings at every scale: each group of a graph is open, or closed to one box."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from .graph_data import LEFT_OUT, Graph, Operand, Operator, Variable

__all__ = [
    "MOST_DRAWN",
    "MOST_EDGES",
    "FoldedBox",
    "at_depth",
    "beside",
    "fold",
    "inside",
    "readable",
    "topological",
    "twins",
    "with_boxes",
]

READABLE = 64  # boxes in one picture …
READABLE_PATH = 20  # … of which at most so many in a row: two or three screens
MOST_DRAWN = 1000  # boxes: their layout takes a second or two
MOST_EDGES = 3  # from one box to one operator
MOST_SHAPES = 2  # are written of those that go into a group or come out


def at_depth(graph: Graph, depth: int) -> frozenset[str]:
    """The groups that are open when modules are shown down to a depth; at 0 the outermost are closed."""
    return frozenset(key for key, level in _levels(graph).items() if level < depth)


def readable(graph: Graph) -> frozenset[str]:
    """The groups that are open when as much is shown as can be read: all of them in a small graph."""
    levels = _levels(graph)
    outermost = sum(not group.parent and not group.row for group in graph.groups)
    for depth in range(1 + max(levels.values(), default=0), 0, -1):
        opened = at_depth(graph, depth)
        shown = fold(graph, opened)
        if len(shown.variables) <= READABLE and _longest_path(shown) <= READABLE_PATH:
            return opened
    return at_depth(graph, 0 if outermost > 1 else 1)


def _longest_path(graph: Graph) -> int:
    """The length of the longest chain of variables in ordinary computation."""
    length: dict[str, int] = {}
    for x in graph.variables:
        if x.row < graph.forward_rows:
            length[x.key] = 1 + max((length.get(operand.key, 0) for operand in x.operands), default=0)
    return max(length.values(), default=0)


def _levels(graph: Graph) -> dict[str, int]:
    """How many modules are around each group. A repeat is as deep as its parts, unless they count: t = 1, …

    A module without modules around it or in it counts as a part: a layer or a loss beside networks.
    """
    labels: dict[str, list[str]] = defaultdict(list)
    for group in graph.groups:
        labels[group.parent].append(group.label)
    repeats = {group.key for group in graph.groups if group.count > 1}
    alike = {key for key in repeats if len(set(labels[key])) < len(labels[key])}
    levels: dict[str, int] = {}
    for group in graph.groups:
        if group.parent:
            levels[group.key] = levels[group.parent] + (group.parent not in alike)
        else:
            levels[group.key] = 0 if group.key in labels else 1
    return levels


def fold(graph: Graph, opened: Collection[str]) -> Graph:
    """The graph with each group that is not in `opened` closed to one variable of the kind "group".

    A closed group keeps the group's key and title. Its facts are the shapes that go in and come out, and its
    note says how many parameters it has. The groups that are left are open and have a frame; a repeat has
    none, and neither has a group of one variable.
    """
    return _framed(_closed(graph, opened))


def _closed(graph: Graph, opened: Collection[str]) -> Graph:
    """The graph with each group that is not in `opened` closed to one variable."""
    by_key = {group.key: group for group in graph.groups}
    closed: dict[str, str] = {"": ""}  # for each group: the outermost closed one around it, or itself
    for group in graph.groups:
        closed[group.key] = closed[group.parent] or ("" if group.key in opened else group.key)
    members: dict[str, list[Variable]] = defaultdict(list)
    for variable in graph.variables:
        if closed[variable.group]:
            members[closed[variable.group]].append(variable)
    boxes = {key: FoldedBox(by_key[key].title, by_key[key].parent, inner) for key, inner in members.items()}
    groups = tuple(group for group in graph.groups if not closed[group.key])
    return replace(with_boxes(graph, boxes) if boxes else graph, groups=groups)


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


class FoldedBox(NamedTuple):
    """A box, and the variables that it stands for."""

    title: str
    group: str  # the key of the group around it
    variables: Sequence[Variable]
    note: str = ""  # by default the number of its parameters
    rounds: tuple[tuple[str, ...], ...] = ()  # as in `Variable`


def with_boxes(graph: Graph, boxes: Mapping[str, FoldedBox]) -> Graph:
    """The graph with boxes, by key, in place of the variables that they stand for."""
    box_of = {x.key: key for key, box in boxes.items() for x in box.variables}
    by_key = {x.key: x for x in graph.variables}
    owner = {key: column[0] for column in graph.columns for key in column[1:]}
    stays = {
        key: outside
        for key, outside in beside(graph).items()
        if key in box_of and (by_key[key].kind == "output" or owner[key] not in box_of)
    }

    def shown(key: str) -> str:
        return key if key in stays else box_of.get(key, key)

    used_outside: dict[str, dict[str, Variable]] = defaultdict(dict)  # by box, in the order of use
    for x in graph.variables:
        for operand in x.operands:
            box = box_of.get(operand.key)
            if box and box != box_of.get(x.key) and x.row == by_key[operand.key].row:
                used_outside[box][operand.key] = by_key[operand.key]

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
            outputs += [v for v in boxes[key].variables if v.key in stays and v.key not in used_outside[key]]
            variables.append(_box(key, boxes[key], outputs, by_key, shown))
        if x.key in stays:
            came_from = Operator("", (Operand(key),))
            where = "" if stays[x.key] else boxes[key].group
            variables.append(replace(x, operator=came_from, group=where))
    columns = _columns_of(graph, shown, {x.key: x.row for x in variables})
    return replace(graph, variables=_in_order(variables), columns=columns)


def beside(graph: Graph) -> dict[str, bool]:
    """The variables that are drawn beside the closed group that holds them, and whether outside all groups.

    These are the outputs, and outside all groups the adjoints of leaves that are outside too.
    """
    leaves = {x.key for x in graph.variables if not x.operator and not x.group}
    adjoints = {key for column in graph.columns if column[0] in leaves for key in column[1:]}
    return {x.key: x.key in adjoints for x in graph.variables if x.kind == "output" or x.key in adjoints}


def _redirected(x: Variable, shown: Callable[[str], str]) -> Variable:
    """The variable with the boxes of its operands; many operands in the same box become one edge."""
    if x.operator is None or all(shown(operand.key) == operand.key for operand in x.operands):
        return x
    times = Counter(shown(operand.key) for operand in x.operands)
    operands: dict[object, Operand] = {}
    for i, operand in enumerate(x.operands):
        key = shown(operand.key)
        if key != operand.key and times[key] > MOST_EDGES:
            operands[key] = Operand(key, f"{times[key]} times")
        else:
            operands[i] = replace(operand, key=key)
    return replace(x, operator=replace(x.operator, operands=tuple(operands.values())))


def _box(
    key: str,
    box: FoldedBox,
    outputs: Sequence[Variable],
    by_key: Mapping[str, Variable],
    shown: Callable[[str], str],
) -> Variable:
    """The variable that stands for those in a box."""
    inner, row = box.variables, box.variables[0].row
    own = {x.key for x in inner}
    operands: dict[str, None] = {}
    inputs: dict[str, Variable] = {}
    for x in inner:
        for operand in x.operands:
            if operand.key not in own:
                operands[shown(operand.key)] = None
                inputs[operand.key] = by_key[operand.key]
    inputs = {k: x for k, x in inputs.items() if x.row == row and x.key != LEFT_OUT}
    count = sum(x.parameters for x in inner)
    note = f"{count:,} {'gradient' if row else 'parameter'}{'s' * (count != 1)}"
    return Variable(
        key,
        box.title,
        "group",
        facts=" → ".join(filter(None, [_shapes(inputs.values()), _shapes(outputs)])),
        note=box.note or (note if count else ""),
        computed=any(x.computed for x in inner),
        operator=Operator("", tuple(map(Operand, operands))) if operands else None,
        row=row,
        group=box.group,
        parameters=count,
        rounds=box.rounds,
    )


def _shapes(variables: Iterable[Variable]) -> str:
    shapes = list(dict.fromkeys(str(x.shape) for x in variables if x.shape is not None))
    rest = len(shapes) - MOST_SHAPES
    return ", ".join(shapes[:MOST_SHAPES] + ([f"{rest} more"] if rest > 0 else []))


def _columns_of(
    graph: Graph, shown: Callable[[str], str], rows: Mapping[str, int]
) -> tuple[tuple[str, ...], ...]:
    """The columns of boxes: each box with the one in every other row that shares most variables with it."""
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
    """Each variable after its operands, and else in the given order."""
    place = {x.key: i for i, x in enumerate(variables)}
    order = topological([{place[o.key] for o in x.operands if o.key in place} for x in variables])
    return tuple(variables[i] for i in order)


def topological(waits_for: Sequence[set[int]]) -> list[int]:
    """The numbers 0, 1, … ordered so that each comes after those that it waits for; the lowest first."""
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
    return order + sorted(set(range(len(waits_for))) - set(order))  # these wait for each other


def twins(graph: Graph) -> dict[str, tuple[str, ...]]:
    """For each group, the groups of the same call of a module in all rows, itself among them.

    A module has one group in the forward graph and one in the gradient; so has a repeat.
    """
    together: dict[str, list[str]] = defaultdict(list)
    for group in graph.groups:
        together[group.first].append(group.key)
    return {key: tuple(keys) for keys in together.values() for key in keys}


def inside(graph: Graph, keys: Collection[str]) -> Graph:
    """The content of a group and of its twins as a graph of its own, in which all groups are closed.

    It holds the boxes that `fold` shows directly in these groups when everything around them is open, and the
    edges between them. At ``[""]`` it is the whole with all groups closed.
    """
    parents = {group.key: group.parent for group in graph.groups}
    around = {""}
    for key in keys:
        while key:
            around.add(key)
            key = parents[key]
    within = set(keys)
    for group in graph.groups:
        if group.parent in within:
            within.add(group.key)
    members = {x.key for x in graph.variables if x.group in within}
    near = set(members)  # with what they use and what uses them: a closed group shows the shapes of both
    for x in graph.variables:
        operands = {operand.key for operand in x.operands}
        if x.key in members:
            near |= operands
        elif not members.isdisjoint(operands):
            near.add(x.key)
    columns = tuple(column for column in graph.columns if not members.isdisjoint(column))
    near |= {key for column in columns for key in column}
    part = replace(graph, variables=tuple(_among(x, near) for x in graph.variables if x.key in near))
    part = replace(part, columns=columns)
    whole = _closed(part, around)
    shown = {x.key: x for x in whole.variables if x.group in keys}

    together: dict[str, set[str]] = defaultdict(set)
    for x in shown.values():
        together[x.group].add(x.key)
    variables = [replace(_among(x, together[x.group]), group="") for x in shown.values()]
    columns = tuple(tuple(key for key in column if key in shown) for column in whole.columns)
    return replace(
        graph,
        variables=tuple(variables),
        columns=tuple(column for column in columns if len(column) > 1),
        groups=(),
    )


def _among(x: Variable, keys: Collection[str]) -> Variable:
    """The variable with those of its operands that are among `keys`."""
    if x.operator is None or all(operand.key in keys for operand in x.operands):
        return x
    operands = tuple(operand for operand in x.operands if operand.key in keys)
    keeps = x.operator.symbol or operands
    return replace(x, operator=replace(x.operator, operands=operands) if keeps else None)
