"""Parts in a row that are alike: the layers of a network, the steps of a loop."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .graph_data import Graph, Group, Variable
from .groups import Box, topological, with_boxes
from .text import elide

__all__ = ["with_repeats"]

FEWEST = 3  # two parts that are alike are drawn one by one
LARGE = 40  # variables: a summary of a larger graph leaves out the middle of a loop …
LONG = 8  # … with this many rounds or more
MANY = 150  # variables: a summary of a larger graph leaves out the middle of every repeat
LONGEST_PERIOD = 48  # parts: longer patterns are not found
CERTAIN = 48  # rounds: so many are no coincidence, and no longer pattern is tried


def with_repeats(graph: Graph, *, summary: bool = False) -> Graph:
    """The graph with the repeats in it, at every level of its groups.

    Three or more groups that are alike become a group of their own: "Residual × 3".

    Parameters
    ----------
    graph : Graph
    summary : bool
        Whether to keep only the first and the last round of a long loop in a large graph, and of every repeat
        in a very large one. One variable of the kind "group", which cannot be opened, stands for the others.
    """
    children, direct, within = _tree(graph)
    repeats: dict[str, Group] = {}
    repeat_around: dict[str, str] = {}  # by the key of a group in it
    middles: dict[str, Box] = {}
    gone: set[str] = set()
    levels = [("", row) for row in graph.rows]
    for parent, row in levels:  # the list grows on the way
        parts = [_Part(x.key, None, [x]) for x in direct[parent, row]]
        parts += [_Part(group.key, group, within[group.key]) for group in children[parent, row]]
        for run, period in _runs(_in_order(parts)):
            where = parent
            in_groups = all(part.group for part in run)
            if in_groups:
                where = f"r{len(repeats) + 1}"
                title = _title(run, period)
                repeats[where] = Group(where, title, parent, row, title, len(run) // period)
                repeat_around.update((part.key, where) for part in run)
            if summary and len(run) > _most_rounds(len(graph.variables), in_groups=in_groups) * period:
                hidden = run[period:-period]
                variables = [x for part in hidden for x in part.variables]
                middles[f"m{len(middles) + 1}"] = Box(
                    _title(hidden, period), where, variables, f"{len(variables):,} nodes"
                )
                gone.update(part.key for part in hidden)
        levels += [(group.key, row) for group in children[parent, row] if group.key not in gone]

    groups: dict[str, Group] = {}
    for group in graph.groups:
        around = repeat_around.get(group.key, group.parent)
        if around in repeats:
            groups.setdefault(around, repeats[around])  # before the first group in it
        if group.key not in gone and (group.parent in groups or not group.parent):
            groups[group.key] = replace(group, parent=around)
    return with_boxes(replace(graph, groups=tuple(groups.values())), middles)


def _most_rounds(size: int, *, in_groups: bool) -> float:
    """How many rounds a summary keeps, in a graph of a `size`. Groups can be closed instead."""
    if size > MANY:
        return FEWEST
    return LONG - 1 if size > LARGE and not in_groups else math.inf


def _tree(graph: Graph):
    """Groups and variables, by row and the group directly around them; and all variables within a group."""
    children: dict[tuple[str, int], list[Group]] = defaultdict(list)
    parents = {}
    for group in graph.groups:
        children[group.parent, group.row].append(group)
        parents[group.key] = group.parent
    direct: dict[tuple[str, int], list[Variable]] = defaultdict(list)
    within: dict[str, list[Variable]] = defaultdict(list)
    for x in graph.variables:
        direct[x.group, x.row].append(x)
        key = x.group
        while key:
            within[key].append(x)
            key = parents[key]
    return children, direct, within


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
            if rounds > CERTAIN:
                break
        if longest:
            yield parts[start : start + longest], period
        start += longest or 1


def _title(run: Sequence[_Part], period: int) -> str:
    """The title of a run: "Residual × 3", "t = 2 … 9", or "× 98"."""
    count = len(run) // period
    titles = [part.group.label if part.group else "" for part in run]
    if not all(titles):
        return f"× {count:,}"
    if period == 1 and titles[0] != titles[-1]:
        # "t = 1 › Cell" to "t = 9 › Cell" are "t = 1 … 9 › Cell"
        numbers = [re.findall(r"\d+|\D+", title) for title in (titles[0], titles[-1])]
        differ = [i for i, (one, other) in enumerate(zip(*numbers, strict=False)) if one != other]
        if len(differ) == 1 and len(numbers[0]) == len(numbers[1]):
            numbers[0][differ[0]] += f" … {numbers[1][differ[0]]}"
            return "".join(numbers[0])
        return f"{titles[0]} … {titles[-1]}"
    return f"{elide(', '.join(titles[:period]), 40)} × {count:,}"
