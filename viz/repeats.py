"""Parts in a row that are alike: the layers of a network, the steps of a loop."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .graph_data import Graph, Group, Variable
from .groups import FoldedBox, topological, twins, with_boxes
from .text import elide

__all__ = ["with_repeats"]

FEWEST = 3  # two parts that are alike are drawn one by one
LARGE = 40  # variables: a summary of a larger graph leaves out the middle of a loop …
LONG = 8  # … with this many rounds or more
MANY = 150  # variables: a summary of a larger graph leaves out the middle of every repeat
LONGEST_PERIOD = 48  # parts: longer patterns are not found; and so many rounds are no coincidence


def with_repeats(graph: Graph, *, summary: bool = False) -> Graph:
    """The graph with the repeats in it, at every level of its groups.

    Three or more groups that are alike become a group of their own: "3 times Residual". Only the forward
    graph is searched: what is together there is together in its gradient.

    Parameters
    ----------
    graph : Graph
    summary : bool
        Whether to keep only the first and the last round of a long loop in a large graph, and of every repeat
        in a very large one. One variable of the kind "group", which cannot be opened, stands for the others.
    """
    found = _Repeats(graph)
    for parent, row in found.levels:  # which grows on the way
        for run, period in _runs(_in_order(found.parts(parent, row))):
            groups = [part.group for part in run if part.group]
            if any(group.first != group.key for group in groups):
                continue  # as in the row that they are twins to
            in_groups = len(groups) == len(run)
            if in_groups:
                found.put_around(groups, _title(run, period), len(run) // period)
            if summary and len(run) > _most_rounds(len(graph.variables), in_groups=in_groups) * period:
                found.shorten(run[period:-period], period)
        found.levels += [(x.key, row) for x in found.children[parent, row] if x.key not in found.gone]
    return found.applied()


def _most_rounds(size: int, *, in_groups: bool) -> float:
    """How many rounds a summary keeps, in a graph of a `size`. Groups can be closed instead."""
    if size > MANY:
        return FEWEST
    return LONG - 1 if size > LARGE and not in_groups else math.inf


class _Repeats:
    """What is found: the groups to put around others, and the boxes to put in place of what is left out."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.groups = {group.key: group for group in graph.groups}
        self.twins = {key: [self.groups[twin] for twin in keys] for key, keys in twins(graph).items()}
        self.levels = [("", row) for row in graph.rows if row < graph.forward_rows]
        self.children: dict[tuple[str, int], list[Group]] = defaultdict(list)  # by the group around, and row
        for group in graph.groups:
            self.children[group.parent, group.row].append(group)
        self.direct: dict[tuple[str, int], list[Variable]] = defaultdict(list)
        self.within: dict[str, list[Variable]] = defaultdict(list)
        for x in graph.variables:
            self.direct[x.group, x.row].append(x)
            key = x.group
            while key:
                self.within[key].append(x)
                key = self.groups[key].parent
        self.repeats: dict[str, Group] = {}
        self.around: dict[str, str] = {}  # by the key of a group: the repeat that it is in
        self.boxes: dict[str, FoldedBox] = {}
        self.gone: set[str] = set()  # groups in these boxes

    def parts(self, parent: str, row: int) -> list[_Part]:
        """The variables and groups directly in a group."""
        groups = [_Part(x.key, x, self.within[x.key]) for x in self.children[parent, row]]
        return [_Part(x.key, None, [x]) for x in self.direct[parent, row]] + groups

    def put_around(self, groups: Sequence[Group], title: str, count: int) -> None:
        """Put groups, and in each other row their twins, into a group."""
        first = f"r{len(self.repeats) + 1}"
        made: dict[int, str] = {}
        for x in (twin for group in groups for twin in self.twins[group.key]):
            if x.row not in made:
                made[x.row] = key = f"r{len(self.repeats) + 1}"
                self.repeats[key] = Group(key, title, x.parent, x.row, title, count, first)
            self.around[x.key] = made[x.row]

    def shorten(self, parts: Sequence[_Part], period: int) -> None:
        """Put parts into a box, and their gradients into one in each other row."""
        row = parts[0].variables[0].row
        outer = parts[0].group.parent if parts[0].group else parts[0].variables[0].group
        twins = {x.key for part in parts if part.group for x in self.twins[part.key]}
        where = {x.row: x.key for x in self.twins.get(outer, ())}
        where |= {self.groups[key].row: self.around[key] for key in twins & self.around.keys()}
        inside = {x.key for key in twins for x in self.within[key]}
        inside |= {x.key for part in parts for x in part.variables}
        beside = {x.key for x in self.twins[outer]} if outer else {""}
        held: dict[int, list[Variable]] = defaultdict(list)
        sums: dict[str, list[Variable]] = defaultdict(list)  # over all rounds, by the variable of the adjoint
        for x in self.graph.variables:
            if x.key in inside or (x.group in beside and self._is_gradient(x, inside)):
                inside.add(x.key)
                held[x.row].append(x)
            elif (
                x.group in beside
                and x.kind == "partial"
                and not x.via
                and x.operands
                and x.operands[-1].key in inside
            ):
                sums[x.adjoint_of].append(x)
        number = {x.key: i // period for i, part in enumerate(parts) for x in part.variables}
        for there, variables in held.items():
            note = f"each: {_each(parts[:period])}" if there == row else "their gradients"
            rounds: list[list[str]] = [[] for _ in range(len(parts) // period)]
            for x in variables:
                at = number.get(x.key, number.get(x.via, number.get(x.adjoint_of)))
                if at is not None:
                    number[x.key] = at
                    rounds[at].append(x.key)
            title = _title_of_rest(parts, period)
            self._add(FoldedBox(title, where.get(there, ""), variables, note, tuple(map(tuple, rounds))))
        for variables in sums.values():
            self._add(FoldedBox(_more(len(variables)), variables[0].group, variables, "each: +"))
        self.gone |= twins

    def _add(self, box: FoldedBox) -> None:
        self.boxes[f"m{len(self.boxes) + 1}"] = box

    def _is_gradient(self, x: Variable, inside: Collection[str]) -> bool:
        """Whether reverse mode computed `x` at what is in a box: as its adjoint, or on the way from it."""
        return x.adjoint_of in inside or (x.kind != "adjoint" and x.via in inside)

    def applied(self) -> Graph:
        """The graph with all that was found."""
        groups: dict[str, Group] = {}
        for group in self.graph.groups:
            outer = self.around.get(group.key, group.parent)
            if outer in self.repeats:
                groups.setdefault(outer, self.repeats[outer])  # before the first group in it
            if group.key not in self.gone and (group.parent in groups or not group.parent):
                groups[group.key] = replace(group, parent=outer)
        return with_boxes(replace(self.graph, groups=tuple(groups.values())), self.boxes)


@dataclass(eq=False)
class _Part:
    """A variable or a group, among its neighbours."""

    key: str
    group: Group | None
    variables: list[Variable]

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each variable of this part, by key."""
        return {x.key: i for i, x in enumerate(self.variables)}

    @cached_property
    def uses(self) -> list[str]:
        """Keys of the variables of other parts that it uses, once for each use."""
        return [key for x in self.variables for key in _operands(x) if key not in self.places]

    @cached_property
    def look(self) -> tuple:
        """What another part must have in common with this one to be like it, apart from what they use."""
        label = re.sub(r"\d+", "#", self.group.label) if self.group else ""
        return (label, *[(_look(x), *[self.places.get(key) for key in _operands(x)]) for x in self.variables])


def _operands(x: Variable) -> list[str]:
    return [operand.key for operand in x.operands]


def _look(x: Variable) -> tuple:
    if x.operator is None:
        return (x.kind, x.shape)
    symbol = x.operator.symbol
    if symbol.startswith("["):  # an index, which counts the rounds
        symbol = re.sub(r"\d+", "#", symbol)
    return (symbol, x.shape)


def _in_order(parts: list[_Part]) -> list[_Part]:
    """Each part after those that it uses."""
    number = {key: i for i, part in enumerate(parts) for key in part.places}
    order = topological([{number[key] for key in part.uses if key in number} for part in parts])
    return [parts[i] for i in order]


def _runs(parts: Sequence[_Part]) -> Iterator[tuple[Sequence[_Part], int]]:
    """The longest runs of a repeated pattern, each with the length of the pattern."""
    part_of = {key: i for i, part in enumerate(parts) for key in part.places}
    numbers: dict[tuple, int] = {}
    look = [numbers.setdefault(part.look, len(numbers)) for part in parts]

    def alike(start: int, i: int, j: int) -> bool:
        """Whether part j repeats part i, in the run that begins at `start`."""
        if look[i] != look[j]:
            return False
        for a, b in zip(parts[i].uses, parts[j].uses, strict=True):
            before, now = part_of.get(a, -1), part_of.get(b, -1)
            if before < start:  # from outside the run; so is `now`, unless it is a round back
                if now - (j - i) >= start:
                    return False
            elif now - before != j - i or parts[before].places[a] != parts[now].places[b]:
                return False
        return True

    start = 0
    while start < len(parts):
        longest, period = 0, 0
        for p in range(1, min(LONGEST_PERIOD, (len(parts) - start) // FEWEST) + 1):
            if look[start] != look[start + p]:
                continue
            end = start
            while end + p < len(parts) and alike(start, end, end + p):
                end += 1
            rounds = (end - start) // p + 1
            if rounds >= FEWEST and rounds * p > longest:
                longest, period = rounds * p, p
            if rounds > LONGEST_PERIOD:
                break
        if longest:
            yield parts[start : start + longest], period
        start += longest or 1


def _title(run: Sequence[_Part], period: int) -> str:
    """The title of groups that are alike: "3 times Residual", or "t = 2 … 9"."""
    return _range(run, period) or f"{len(run) // period:,} times {_each(run[:period])}"


def _title_of_rest(run: Sequence[_Part], period: int) -> str:
    """The title of the rounds between the first and the last: "98 more of these", or "t = 3 … 8"."""
    return _range(run, period) or _more(len(run) // period)


def _more(count: int) -> str:
    return f"{count:,} more of these"


def _range(run: Sequence[_Part], period: int) -> str:
    """From the first title to the last, if they count.

    "t = 1 › Cell" to "t = 9 › Cell" are "t = 1 … 9 › Cell".
    """
    titles = [part.group.label if part.group else "" for part in run]
    if period > 1 or titles[0] == titles[-1]:
        return ""
    numbers = [re.findall(r"\d+|\D+", title) for title in (titles[0], titles[-1])]
    differ = [i for i, (one, other) in enumerate(zip(*numbers, strict=False)) if one != other]
    if len(differ) == 1 and len(numbers[0]) == len(numbers[1]):
        numbers[0][differ[0]] += f" … {numbers[1][differ[0]]}"
        return "".join(numbers[0])
    return f"{titles[0]} … {titles[-1]}"


def _each(parts: Sequence[_Part]) -> str:
    """What one round consists of: its groups and its operators."""
    names = [part.group.label if part.group else _symbol(part.variables[0]) for part in parts]
    return elide(", ".join(filter(None, names)), 40)


def _symbol(x: Variable) -> str:
    return x.operator.symbol if x.operator else ""
