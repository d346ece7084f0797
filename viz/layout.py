"""Where everything in a drawing stands: a layout of our own, in which the same graph always looks the same.

Think of a sheet of ruled paper. Nodes stand in **columns**, each to the right of its operands; a variable and
its adjoints share a column. The longest way through a row of the drawing is its trunk: it stands on one
straight line. What joins it at an operator comes on a line of its own, above if it is an earlier operand and
below if it is a later one, on the nearest line that is free.

Edges along a row bend between columns only, so they meet no box. Edges between rows are made of straight
pieces: down beside a column, along between two rows, and down again, each on a track of its own.

Here a drawing always runs to the right, and rows follow one another downwards; `to_page` turns it at the end.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

__all__ = ["Edge", "GroupFrame", "Layout", "Node", "NodeBox", "Spacing", "Title", "columns_of", "lay_out"]

ARROW = 6.5  # points: the length of an arrow
TRACK = 7.0  # points from one track to the next
LINE = 14.0  # points from one free line to the next
MARGIN = 9.0  # points between a frame and what is in it
ROW_MARGIN = 10.0  # … for the frame of a whole row
TITLE = 15.0  # points for the title of a frame
PORT = 9.0  # points between edges that end at the same node
MOST_WRAPS = 12  # edges from one row of a drawing to the next
MANY_USES = 4  # edges from one node: so many share a line
RESULT = 3  # times as short as other edges should an edge to a result be
ROUND = 7.0  # points in which a corner turns

Point = tuple[float, float]


class Node(NamedTuple):
    """A box or a circle that needs a place.

    Of an operator's operands, the one with the longest history stands on its line; among equals, that with
    the highest `rank`. Where edges into it are `in_order`, the first arrives at the top.
    """

    key: str
    width: float
    height: float
    row: int = 0
    group: str = ""
    is_round: bool = False
    rank: int = 0
    in_order: bool = False


class Edge(NamedTuple):
    """An edge from a node to another one, with the size of its label. Those into a node are in order."""

    tail: str
    head: str
    label: tuple[float, float] = (0.0, 0.0)


class Title(NamedTuple):
    """A frame that is wanted around a group (or a row), and the size of its title."""

    key: str
    width: float
    parent: str = ""
    row: int = 0


@dataclass(frozen=True)
class Spacing:
    """How close things stand, in points: between columns and between lines; and how wide the whole may be.

    A drawing that would be wider than is `tolerated` goes on in bands of the width `widest`, one below the
    other. With `below`, every further operand stands below the line that it joins, the first one too.
    """

    columns: float = 22.0
    lines: float = 10.0
    widest: float = math.inf
    tolerated: float = 0.0
    below: bool = False


class NodeBox(NamedTuple):
    """The middle of a node and its size, in points; y grows upwards."""

    x: float
    y: float
    width: float
    height: float
    is_round: bool = False

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        return self.y + self.height / 2

    @property
    def bottom(self) -> float:
        return self.y - self.height / 2


class GroupFrame(NamedTuple):
    """A frame around a row or a group: its box, and the middle of its title.

    Where a frame goes on in the next row of a drawing, it has no title if there is no room for it.
    """

    key: str
    left: float
    bottom: float
    right: float
    top: float
    title: Point | None


@dataclass
class Layout:
    """The places of nodes, and for each edge a Bézier curve of the third degree and the middle of its label.

    A curve ends at the tip of the edge's arrow.
    """

    places: dict[str, NodeBox] = field(default_factory=dict)
    curves: list[list[Point]] = field(default_factory=list)
    labels: list[Point] = field(default_factory=list)
    frames: list[GroupFrame] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def lay_out(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    *,
    columns: Iterable[Sequence[str]] = (),
    groups: Sequence[Title] = (),
    rows: Sequence[Title] = (),
    rankdir: str = "LR",
    spacing: Spacing = Spacing(),
) -> Layout:
    """The layout of a graph.

    Parameters
    ----------
    nodes : sequence of Node
    edges : sequence of Edge
    columns : sequences of str
        Keys of nodes that stand in one column, where the edges allow it.
    groups, rows : sequence of Title
        The frames. A group comes after the one that it is in.
    rankdir : "LR", "RL", "TB" or "BT"
    spacing : Spacing
    """
    upright = rankdir in ("TB", "BT")
    if upright:
        nodes = [x._replace(width=x.height, height=x.width) for x in nodes]
        edges = [x._replace(label=x.label[::-1]) for x in edges]
    sheet = _Sheet(nodes, edges, columns, groups, rows, rankdir, spacing)
    return sheet.to_page()


# --- Columns ------------------------------------------------------------------------------------------------


def columns_of(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    together: Iterable[Sequence[str]],
    parents: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, int]:
    """The number of each node's column.

    Every column is as far right as what is made of it allows; then what only hangs on something to its left
    moves next to that. What leads into a group stands left of all of it, and what comes out of it right.
    """
    unit = {x.key: x.key for x in nodes}
    for column in together:
        keys = [key for key in column if key in unit]
        unit.update(dict.fromkeys(keys, keys[0] if keys else ""))
    row = {x.key: x.row for x in nodes}
    after: dict[str, dict[str, int]] = {unit[x.key]: {} for x in nodes}
    steps = []
    leaving = Counter(edge.tail for edge in edges)
    arriving = Counter(edge.head for edge in edges)
    for edge in edges:
        if row[edge.tail] == row[edge.head] and unit[edge.tail] != unit[edge.head]:
            a, b = (edge.tail, edge.head)[:: -1 if row[edge.tail] % 2 else 1]
            steps.append((a, b))
            # An operator stays with its result: what has room is the edge from an operand.
            near = RESULT if leaving[edge.tail] == arriving[edge.head] == 1 else 1
            after[unit[a]][unit[b]] = after[unit[a]].get(unit[b], 0) + near
    order = _without_cycles(after)
    around = _around_groups(nodes, unit, steps, parents)
    with_groups = {
        a: dict.fromkeys(after.get(a, ()), 1) | dict.fromkeys(around.get(a, ()), 0) for a in after | around
    }
    before_cycles = sum(map(len, with_groups.values()))
    with_order = _without_cycles(with_groups)
    if sum(map(len, with_groups.values())) == before_cycles:
        order = with_order
        after = {a: {b: after.get(a, {}).get(b, 0) for b in with_groups[a]} for a in with_groups}
    before: dict[str, dict[str, int]] = {key: {} for key in after}
    for a in order:
        for b, count in after[a].items():
            before[b][a] = count
    place = dict.fromkeys(after, 0)
    loose: dict[str, bool] = {}  # whether all that is made of it, and it alone, ends loosely
    for a in reversed(order):
        place[a] = min((place[b] - 1 for b in after[a]), default=0)
        loose[a] = all(loose[b] and len(before[b]) == 1 for b in after[a])
    for a in order:
        pull = sum(before[a].values()) - sum(after[a].values())
        if before[a] and (pull > 0 or loose[a]):
            place[a] = min(place[a], max(place[b] for b in before[a]) + 1)
    numbers = {old: new for new, old in enumerate(sorted({place[x] for x in unit.values()}))}
    return {x.key: numbers[place[unit[x.key]]] for x in nodes}


def _around_groups(
    nodes: Sequence[Node],
    unit: Mapping[str, str],
    steps: Sequence[tuple[str, str]],
    parents: Mapping[str, str],
) -> dict[str, dict[str, None]]:
    """What stands left and right of each group: the start and the end of a group are points of their own."""
    group = {x.key: x.group for x in nodes}
    within: dict[str, dict[str, None]] = defaultdict(dict)
    found: dict[str, dict[str, None]] = defaultdict(dict)

    def groups_of(key: str) -> list[str]:
        chain, inner = [], group[key]
        while inner:
            chain.append(inner)
            inner = parents[inner]
        return chain

    chains = {x.key: groups_of(x.key) for x in nodes}
    for key, chain in chains.items():
        for name in chain:
            within[name][unit[key]] = None
    for a, b in steps:
        for name in chains[b]:
            if name not in chains[a] and unit[a] not in within[name]:
                found[unit[a]][f"{name} <"] = None
        for name in chains[a]:
            if name not in chains[b] and unit[b] not in within[name]:
                found[f"{name} >"][unit[b]] = None
    for name, units in within.items():
        found[f"{name} <"] |= units
        found[f"{name} >"] |= {}
        for x in units:
            found[x][f"{name} >"] = None
    return found


def _without_cycles(after: dict[str, dict[str, int]]) -> list[str]:
    """A topological order. Edges that would close a cycle are taken out of `after`."""
    state: dict[str, int] = {}
    order: list[str] = []
    for start in after:
        waiting = [(start, iter(list(after[start])))] if start not in state else []
        state.setdefault(start, 1)
        while waiting:
            a, rest = waiting[-1]
            for b in rest:
                if state.get(b) == 1:
                    del after[a][b]
                elif b not in state:
                    state[b] = 1
                    waiting.append((b, iter(list(after[b]))))
                    break
            else:
                state[a] = 2
                order.append(a)
                waiting.pop()
    return order[::-1]


# --- Lines --------------------------------------------------------------------------------------------------


class _Cell(NamedTuple):
    """A node, or an edge on its way past a column."""

    column: int
    node: str = ""
    edge: int = -1


class _Chain(NamedTuple):
    """Cells that stand on one line, and which node it joins (or leaves) on which side: above -1, below 1."""

    cells: list[_Cell]
    at: str
    side: int


class _Sheet:
    """A graph on its way to a layout. Rows run down the sheet: y grows downwards."""

    def __init__(self, nodes, edges, columns, groups, rows, rankdir, spacing):
        self.nodes: dict[str, Node] = {x.key: x for x in nodes}
        self.edges: Sequence[Edge] = edges
        self.rankdir: str = rankdir
        self.upright: bool = rankdir in ("TB", "BT")
        self.spacing: Spacing = spacing
        self.titles: dict[str, Title] = {x.key: x for x in groups}
        self.row_titles: Sequence[Title] = rows
        self.rows: list[int] = sorted({x.row for x in nodes}) or [0]
        self.column = columns_of(nodes, edges, columns, {x.key: x.parent for x in groups})
        self.last: int = max(self.column.values(), default=0)
        self.along = [i for i, edge in enumerate(edges) if self._runs_along(edge)]
        self.into: dict[str, list[int]] = defaultdict(list)
        self.out_of: dict[str, list[int]] = defaultdict(list)
        for i in self.along:
            self.into[edges[i].head].append(i)
            self.out_of[edges[i].tail].append(i)
        self.in_column: dict[tuple[int, int], list[str]] = defaultdict(list)
        for x in nodes:
            self.in_column[self.column[x.key], x.row].append(x.key)
        self.bus: dict[int, int] = {}  # edges that share the line of a longer one from the same node
        self.main: dict[str, int] = {}  # of the edges into a node, the one on its line
        self.span: dict[str, list[int]] = {}  # the first and the last column of a group
        for x in nodes:
            group = x.group
            while group:
                first, last = self.span.setdefault(group, [self.column[x.key]] * 2)
                self.span[group] = [min(first, self.column[x.key]), max(last, self.column[x.key])]
                group = self.titles[group].parent
        self.y: dict[_Cell, float] = {}  # relative to the trunk of its row
        self.extent: dict[str, tuple[float, float]] = {}  # of a group's frame: its top and its bottom
        for row in self.rows:
            _Lines(self, row).place()
        self.ports = _Ports(self)
        along = set(self.along)
        self.detours = [_Detour(self, i) for i in range(len(edges)) if i not in along]
        self.width = self.height = self.left_side = self.right_side = 0.0
        self.outside = 0
        self._set_columns()
        widest = math.inf
        if self.length > max(spacing.tolerated, spacing.widest) and not self.upright:
            widest = spacing.widest
        for _ in range(4):  # the more bands there are, the more room the ways between them take
            self._set_bands(widest)
            self._set_rows()
            too_wide = self.right_side - self.left_side - spacing.widest
            if too_wide <= 0 or widest == math.inf:
                break
            # By itself, a drawing does not go on in rows if too many edges would have to go with it.
            is_tangled = spacing.tolerated > 0 and self._most_wraps() > MOST_WRAPS
            widest = math.inf if is_tangled else max(widest - too_wide, spacing.widest / 2)

    def _runs_along(self, edge: Edge) -> bool:
        """Whether an edge runs along a row, in its direction."""
        row = self.nodes[edge.tail].row
        if row != self.nodes[edge.head].row:
            return False
        run = self.column[edge.head] - self.column[edge.tail]
        return run < 0 if row % 2 else run > 0

    def cells_past(self, i: int) -> list[_Cell]:
        """The columns that an edge passes on its way, from its head back to its tail."""
        a, b = self.column[self.edges[i].head], self.column[self.edges[i].tail]
        step = 1 if b > a else -1
        return [_Cell(column, edge=i) for column in range(a + step, b, step)]

    def heights(self, x: Node) -> list[float]:
        """The heights of the other nodes of a row in a node's column."""
        return [
            self.y[self.node_cell(key)] for key in self.in_column[self.column[x.key], x.row] if key != x.key
        ]

    def node_cell(self, key: str) -> _Cell:
        return _Cell(self.column[key], node=key)

    def around(self, group: str) -> list[str]:
        """A group and those around it, the innermost first."""
        found = []
        while group:
            found.append(group)
            group = self.titles[group].parent
        return found

    def group_of(self, cell: _Cell) -> str:
        """The innermost group that a cell lies in; for an edge, that of its ends, while it is beside them."""
        if cell.node or not self.span:
            return self.nodes[cell.node].group if cell.node else ""
        ends = self.edges[cell.edge]
        if self.nodes[ends.head].group == self.nodes[ends.tail].group:
            return self.nodes[ends.head].group
        found = [
            (len(self.around(group)), group)
            for end in (ends.head, ends.tail)
            for group in self.around(self.nodes[end].group)
            if self.span[group][0] <= cell.column <= self.span[group][1]
        ]
        return max(found, key=lambda x: x[0], default=(0, ""))[1]

    # --- Where columns and rows are

    def _set_columns(self) -> None:
        """The width of each column and of what is beside it; in which band it is; and where."""
        edges = self.edges
        count = self.last + 1
        widths = [0.0] * count
        # For arrows, labels and the borders of frames.
        before, after = [ARROW] * count, [ARROW * (len(self.rows) > 1)] * count
        before[0] = after[-1] = 0.0
        rise = [0.0] * (count + 1)  # how far edges go up or down, left of each column
        starts, ends = [0] * count, [0] * count
        for x in self.nodes.values():
            c = self.column[x.key]
            widths[c] = max(widths[c], x.width)
            label = max((self.edges[i].label[0] for i in self.into[x.key]), default=0.0)
            room = after if x.row % 2 else before
            room[c] = max(room[c], label + 12 if label else 0.0)
        for detour in self.detours:
            if not detour.arrives_above and edges[detour.number].label[0]:
                c = detour.end
                before[c] = max(before[c], edges[detour.number].label[0] + 12)
        self.label_before, self.label_after = list(before), list(after)
        for key, (first, last) in self.span.items():
            starts[first] = max(starts[first], self._nested(key, 0))
            ends[last] = max(ends[last], self._nested(key, 1))
        at_start, at_end = (TITLE, 0.0)[:: 1 if self.rankdir == "TB" else -1] if self.upright else (0.0, 0.0)
        self.start_margin, self.end_margin = MARGIN + at_start, MARGIN + at_end
        self.starts, self.ends = starts, ends
        for c in range(count):
            before[c] += starts[c] * self.start_margin
            after[c] += ends[c] * self.end_margin
        if not self.upright:
            for key, (first, last) in self.span.items():
                title = self.titles[key].width
                if first == last and len(self.rows) > 1:  # an edge may come in from above, beside the title
                    title = 2 * title + 2 * MARGIN
                within = sum(widths[first : last + 1]) + (last - first) * self.spacing.columns + 2 * MARGIN
                widths[last] += max(0.0, title - within)
        for i in self.along:
            for a, b in self.steps(i):
                rise[b.column] = max(rise[b.column], abs(self.y_at(i, a) - self.y_at(i, b)))
        tracks: dict[int, list[tuple[bool, float, _Detour]]] = defaultdict(list)
        for detour in self.detours:
            if not detour.leaves_below:
                tracks[detour.start].append((False, detour.tail_y, detour))
            if not detour.arrives_above:
                tracks[detour.end].append((True, -detour.head_y, detour))
        self.widths, self.before, self.after = widths, before, after
        self.bends = [min(self.spacing.columns + 0.14 * x, 3 * self.spacing.columns) for x in rise]
        self.tracks = {c: sorted(found, key=lambda track: track[:2]) for c, found in tracks.items()}
        self.length = sum(map(self._step, range(count)))

    def _ahead(self, column: int) -> float:
        """The room left of a column: for tracks, frames and labels."""
        tracks = len(self.tracks.get(column, ()))
        return self.before[column] + (TRACK * (tracks + 0.5) if tracks else 0.0)

    def _step(self, column: int) -> float:
        """How much longer a band is with this column."""
        return self.bends[column] + self._ahead(column) + self.widths[column] + self.after[column]

    def _cut(self, widest: float, steps: Sequence[float], crossed: Sequence[int]) -> list[tuple[int, int]]:
        """Bands of columns that are no wider than this, cut where few edges are."""
        bands = []
        first, length = 0, 0.0
        for c, step in enumerate(steps):
            length += step
            if length > widest and c > first:
                lengths = list(accumulate(steps[first:c]))
                places = [k for k in range(first + 1, c + 1) if lengths[k - first - 1] >= 0.75 * lengths[-1]]
                start = min(places, key=lambda k: (crossed[k], -k))
                bands.append((first, start - 1))
                first, length = start, sum(steps[start : c + 1])
        return [*bands, (first, len(steps) - 1)]

    def _set_bands(self, widest: float) -> None:
        """Cut the columns into as few bands of this width as there can be, all about equally long."""
        count = self.last + 1
        crossed = [0] * count
        for i in self.along:
            for _, b in self.steps(i):
                crossed[b.column] += 1
        steps = [self._step(c) for c in range(count)]
        self.bands = self._cut(widest, steps, crossed)
        low, high = self.length / len(self.bands), widest
        while len(self.bands) > 1 and high - low > 20:
            middle = (low + high) / 2
            bands = self._cut(middle, steps, crossed)
            if len(bands) > len(self.bands):
                low = middle
            else:
                high, self.bands = middle, bands
        self.left, self.right, self.middle = [0.0] * count, [0.0] * count, [0.0] * count
        self.bend = [(0.0, 0.0)] * count  # where edges bend, left of each column
        self.band = [0] * count
        self.width = 0.0
        for band, (first, last) in enumerate(self.bands):
            at = 0.0
            for c in range(first, last + 1):
                start = at
                at += self.bends[c] if c > first else 0.0
                self.bend[c] = (start, at)
                for number, (arrives, _, detour) in enumerate(self.tracks.get(c, ())):
                    track_at = at + TRACK * (number + 0.75)
                    if arrives:
                        detour.end_x = track_at
                    else:
                        detour.start_x = track_at
                at += self._ahead(c)
                self.left[c], self.right[c] = at, at + self.widths[c]
                self.middle[c] = at + self.widths[c] / 2
                at += self.widths[c] + self.after[c]
                self.band[c] = band
            self.width = max(self.width, at)

    def _nested(self, key: str, side: int) -> int:
        """How many frames begin (or end) together at this one and outside of it."""
        around = self.around(key)
        return sum(self.span[x][side] == self.span[key][side] for x in around)

    def _set_rows(self) -> None:
        """Where each row is in each band, and the channels below it."""
        self.leaving: dict[str, list[_Detour]] = defaultdict(list)
        self.arriving: dict[str, list[_Detour]] = defaultdict(list)
        for detour in self.detours:
            self.leaving[detour.tail.key].append(detour)
            self.arriving[detour.head.key].append(detour)
        for detour in self.detours:
            detour.set_ends(self)
        title = TITLE if self.row_titles and not self.upright else 0.0
        self.base: dict[tuple[int, int], float] = {}
        self.ground: dict[tuple[int, int], tuple[float, float]] = {}  # top and bottom of a row's frame
        self.channel: dict[tuple[int, int], float] = {}  # the first track of a channel
        extents: dict[tuple[int, int], tuple[float, float]] = {}

        def extend(band: int, row: int, top: float, bottom: float) -> None:
            before = extents.get((band, row), (math.inf, -math.inf))
            extents[band, row] = (min(before[0], top), max(before[1], bottom))

        for cell, y in self.y.items():
            row = self.nodes[cell.node or self.edges[cell.edge].head].row
            up, down = self.reach(cell)
            extend(self.band[cell.column], row, y - up, y + down)
        self._cut_frames()
        for (band, key), (top, bottom) in self.part.items():
            extend(band, self.titles[key].row, top, bottom)
        self.wraps = self._wraps()
        tracks = self._tracks()
        y = 0.0
        margin = ROW_MARGIN if self.row_titles else 0.0
        for band in range(len(self.bands)):
            for row in self.rows:
                if (band, row) in extents:
                    top, bottom = extents[band, row]
                    self.base[band, row] = y + margin + title - top
                    end = self.base[band, row] + bottom + margin
                    self.ground[band, row] = (y, end)
                    y = end
                self.channel[band, row] = y + TRACK
                used = tracks.get((band, row), 0)
                is_last = row == self.rows[-1] and band == len(self.bands) - 1
                y += TRACK * (used + 1) if used else 0.0 if is_last else 2 * TRACK
            y += 0.0 if band == len(self.bands) - 1 else 2 * TRACK
        self.height = y
        beside = ROW_MARGIN * bool(self.row_titles)
        wraps = self._most_wraps()
        ways = wraps + self.outside
        self.left_side = -beside - TRACK * (ways + 1 if ways else 0)
        self.right_side = self.width + beside + TRACK * (wraps + 1 if wraps else 0)

    def _cut_frames(self) -> None:
        """The top and the bottom of each frame, in each band that it reaches into."""
        self.part: dict[tuple[int, str], tuple[float, float]] = {}
        if len(self.bands) == 1:
            self.part = {(0, key): extent for key, extent in self.extent.items()}
            return

        def extend(band: int, group: str, top: float, bottom: float) -> None:
            before = self.part.get((band, group), (math.inf, -math.inf))
            self.part[band, group] = (min(before[0], top), max(before[1], bottom))

        for cell, y in self.y.items():
            if group := self.group_of(cell):
                up, down = self.reach(cell)
                extend(self.band[cell.column], group, y - up - MARGIN - TITLE, y + down + MARGIN)
        for group in reversed(self.titles):
            for band in range(len(self.bands)):
                if (band, group) in self.part and (parent := self.titles[group].parent):
                    top, bottom = self.part[band, group]
                    extend(band, parent, top - MARGIN - TITLE, bottom + MARGIN)

    def _wraps(self) -> dict[int, list[int]]:
        """The edges from each band to the next one, from the top of the sheet to its bottom."""
        wraps: dict[int, list[int]] = defaultdict(list)
        for i in self.along:
            for a, b in self.steps(i):
                if self.band[a.column] != self.band[b.column] and i not in self.bus:
                    wraps[self.band[a.column]].append(i)
        for band, edges in wraps.items():
            column = self.bands[band][1]

            def height(i: int, column: int = column) -> tuple[int, float]:
                cell = next(a for a, _ in self.steps(i) if a.column == column)
                return self.nodes[self.edges[i].head].row, self.y_at(i, cell)

            edges.sort(key=height)
        return wraps

    def _tracks(self) -> dict[tuple[int, int], int]:
        """Give each part of a detour along a channel its track; returns how many each channel has."""
        used: dict[tuple[int, int], list[tuple[float, float, int]]] = defaultdict(list)
        parts: list[tuple[tuple[int, int], float, float, _Detour, str]] = []
        outside = 0
        for detour in self.detours:
            if detour.first_channel == detour.last_channel:
                parts.append((detour.first_channel, detour.start_x, detour.end_x, detour, "both"))
                continue
            outside += 1
            detour.side_x = -ROW_MARGIN - TRACK * outside - TRACK * self._most_wraps()
            parts.append((detour.first_channel, detour.start_x, detour.side_x, detour, "first"))
            parts.append((detour.last_channel, detour.side_x, detour.end_x, detour, "last"))
        self.outside = outside

        def order(part) -> tuple[bool, float]:
            _, start, end, _, _ = part
            return (end < start, start if end < start else -start)

        for channel, start, end, detour, which in sorted(parts, key=order):
            low, high = min(start, end) - 4, max(start, end) + 4
            beside = [track for a, b, track in used[channel] if a < high and low < b]
            track = max(beside, default=-1) + 1
            used[channel].append((low, high, track))
            if which in ("first", "both"):
                detour.first_track = track
            if which in ("last", "both"):
                detour.last_track = track
        counts = {channel: 1 + max(track for *_, track in parts) for channel, parts in used.items()}
        self.wrap_track: dict[int, int] = {}
        for band, edges in self.wraps.items():
            channel = (band, self.rows[-1])
            self.wrap_track[band] = counts.get(channel, 0)
            counts[channel] = self.wrap_track[band] + len(edges)
        return counts

    def _most_wraps(self) -> int:
        return max(map(len, self.wraps.values()), default=0)

    # --- Edges

    def steps(self, i: int) -> list[tuple[_Cell, _Cell]]:
        """The cells of an edge along a row, in pairs, from left to right."""
        edge = self.edges[i]
        cells = [self.node_cell(edge.head), *self.cells_past(i), self.node_cell(edge.tail)]
        cells.sort(key=lambda cell: cell.column)
        return list(pairwise(cells))

    def y_at(self, i: int, cell: _Cell) -> float:
        """The height of an edge in a cell: at a node, where it leaves or arrives."""
        return self.y[cell] + (self.ports.offset(i, cell.node) if cell.node else 0.0)

    def way_along(self, i: int) -> _Way:
        """The way of an edge along a row, from left to right."""
        steps = self.steps(i)
        (start, _), (_, end) = steps[0], steps[-1]
        row = self.nodes[start.node].row

        def height(cell: _Cell) -> float:
            return self.base[self.band[cell.column], row] + self.y_at(i, cell)

        tail, head = self.nodes[start.node], self.nodes[end.node]
        x = self.middle[start.column] + _half_width(tail, self.ports.offset(i, tail.key))
        way = _Way((x, height(start)))
        for a, b in steps:
            if self.band[a.column] == self.band[b.column]:
                bend, straight = self.bend[b.column]
                way.line(bend, height(a))
                way.curve(straight, height(b))
            else:
                self._wrap(way, i, self.band[a.column], height(b))
        way.line(self.middle[end.column] - _half_width(head, self.ports.offset(i, head.key)), height(end))
        return way

    def _wrap(self, way: _Way, i: int, band: int, y: float) -> None:
        """Lead an edge from the end of a band to the start of the next one."""
        place, count = self.wraps[band].index(self.bus.get(i, i)), len(self.wraps[band])
        right = self.width + ROW_MARGIN + TRACK * (count - place)
        left = -ROW_MARGIN - TRACK * (place + 1)
        channel = self.channel[band, self.rows[-1]] + TRACK * (self.wrap_track[band] + count - 1 - place)
        for x, at in ((right, way.end[1]), (right, channel), (left, channel), (left, y)):
            way.line(x, at)

    def way_of_detour(self, detour: _Detour) -> _Way:
        start_band, end_band = self.band[detour.start], self.band[detour.end]
        tail_y = self.base[start_band, detour.tail.row] + detour.tail_y
        head_y = self.base[end_band, detour.head.row] + detour.head_y
        first = self.channel[detour.first_channel] + TRACK * detour.first_track
        last = self.channel[detour.last_channel] + TRACK * detour.last_track
        if detour.leaves_below:
            across = detour.start_x - self.middle[detour.start]
            way = _Way((detour.start_x, tail_y + _half_height(detour.tail, across)))
        else:
            offset = 0.35 * detour.tail.height
            way = _Way((self.middle[detour.start] - _half_width(detour.tail, offset), tail_y + offset))
            way.line(detour.start_x, tail_y + offset)
        way.line(detour.start_x, first)
        if detour.first_channel != detour.last_channel:
            way.line(detour.side_x, first)
            way.line(detour.side_x, last)
        way.line(detour.end_x, last)
        if detour.arrives_above:
            across = detour.end_x - self.middle[detour.end]
            way.line(detour.end_x, head_y - _half_height(detour.head, across))
        else:
            offset = -0.35 * detour.head.height
            way.line(detour.end_x, head_y + offset)
            way.line(self.middle[detour.end] - _half_width(detour.head, offset), head_y + offset)
        return way

    # --- The page

    def to_page(self) -> Layout:
        curves: list[list[Point]] = [[]] * len(self.edges)
        labels: list[Point] = [(0.0, 0.0)] * len(self.edges)
        for i in self.along:
            way = self.way_along(i)
            back = self.nodes[self.edges[i].head].row % 2
            curves[i] = way.points()[:: -1 if back else 1]
            labels[i] = self._label(i, curves[i][-1], 1 if back else -1)
        for detour in self.detours:
            way = self.way_of_detour(detour)
            curves[detour.number] = way.points()
            (x, y), (width, height) = way.end, self.edges[detour.number].label
            if detour.arrives_above:
                labels[detour.number] = (x + width / 2 + 4, y - ARROW - height / 2 - 3)
            else:
                labels[detour.number] = (x - ARROW - 2 - width / 2, y - height / 2 - 1)
        frames = self._frames(curves)
        left, right = self.left_side, self.right_side

        def turn(point: Point) -> Point:
            x, y = point
            if self.rankdir == "RL":
                return right - x, self.height - y
            if self.rankdir == "TB":
                return y, right - x
            if self.rankdir == "BT":
                return y, x - left
            return x - left, self.height - y

        places = {}
        for node in self.nodes.values():
            c = self.column[node.key]
            y = self.base[self.band[c], node.row] + self.y[self.node_cell(node.key)]
            size = (node.height, node.width) if self.upright else (node.width, node.height)
            places[node.key] = NodeBox(*turn((self.middle[c], y)), *size, node.is_round)
        size = (self.height, right - left) if self.upright else (right - left, self.height)
        return Layout(
            places,
            [[turn(point) for point in curve] for curve in curves],
            [turn(point) for point in labels],
            [_turned(frame, turn) for frame in frames],
            *size,
        )

    def _label(self, i: int, tip: Point, side: int) -> Point:
        """The middle of a label at the end of an edge: above it, or below it for the last of several."""
        edge = self.edges[i]
        into = self.into[edge.head]
        width, height = edge.label
        lowest = max(into, key=lambda j: self.ports.offset(j, edge.head))
        above = not (len(into) == 2 and i == lowest)
        away = height / 2 + 1
        return tip[0] + side * (ARROW + 2 + width / 2), tip[1] + (-away if above else away)

    def _frames(self, curves: Sequence[Sequence[Point]]) -> list[GroupFrame]:
        """The frames on the sheet, with the top first."""
        boxes: list[tuple[str, float, tuple[float, float, float, float]]] = []
        for title in self.row_titles:
            for band in range(len(self.bands)):
                if (band, title.row) in self.ground:
                    top, bottom = self.ground[band, title.row]
                    box = (-ROW_MARGIN, bottom, self.width + ROW_MARGIN, top)
                    boxes.append((_of_band(title.key, band), title.width, box))
        deepest = [0] * len(self.bands)
        for band, key in self.part:
            deepest[band] = max(deepest[band], len(self.around(key)))
        for key, title in self.titles.items():  # the outer ones first
            if key not in self.span:
                continue
            first, last = self.span[key]
            for band in range(self.band[first], self.band[last] + 1):
                if (band, key) not in self.part:
                    continue
                top, bottom = self.part[band, key]
                a, b = max(first, self.bands[band][0]), min(last, self.bands[band][1])
                inside = deepest[band] - len(self.around(key)) + 1  # where a band cuts frames, they nest too
                before = self.starts[a] * self.start_margin + 4 * inside
                if a == first:
                    before = (self.starts[a] - self._nested(key, 0) + 1) * self.start_margin
                after = self.ends[b] * self.end_margin + 4 * inside
                if b == last:
                    after = (self.ends[b] - self._nested(key, 1) + 1) * self.end_margin
                base = self.base[band, title.row]
                left = self.left[a] - self.label_before[a] - before
                box = (left, base + bottom, self.right[b] + self.label_after[b] + after, base + top)
                boxes.append((_of_band(key, band), title.width, box))
        pieces = np.array([c[k : k + 4] for c in curves for k in range(0, len(c) - 3, 3)]).reshape(-1, 4, 2)
        low, high = pieces.min(1), pieces.max(1)
        return [
            GroupFrame(key, *box, self._title(width, box, low, high, "_" in key)) for key, width, box in boxes
        ]

    def _title(
        self,
        width: float,
        box: tuple[float, float, float, float],
        lows: np.ndarray,
        highs: np.ndarray,
        goes_on: bool,
    ) -> Point | None:
        """The middle of a title: as far left as no piece of an edge goes through it.

        In a drawing that runs down or up, a title without room at the top of its frame stands at the bottom.
        """
        left, bottom, right, top = box
        along, across = (1, 0) if self.upright else (0, 1)
        low, high = (top, bottom) if self.upright else (left, right)
        edges = [left, right - TITLE] if self.upright else [top]
        if self.rankdir == "BT":
            edges.reverse()
        for edge in edges:
            met = (lows[:, across] < edge + TITLE) & (highs[:, across] > edge)
            met &= (lows[:, along] < high) & (highs[:, along] > low)
            taken = list(zip(lows[met, along] - 4, highs[met, along] + 4, strict=True))
            start = _first_gap(sorted(taken), low + 8, high - 8, width, from_end=self.rankdir == "RL")
            if start is not None:
                break
        else:
            if goes_on:
                return None
            edge, start = edges[0], low + 8
        middle = (start + width / 2, edge + TITLE / 2 + 1)
        return middle[::-1] if self.upright else middle

    def reach(self, cell: _Cell) -> tuple[float, float]:
        """How far a cell reaches up and down from its line."""
        if not cell.node:
            return 1.0, 1.0
        half = self.nodes[cell.node].height / 2
        labels = max((self.edges[i].label[1] for i in self.into[cell.node]), default=0.0)
        return (max(half, PORT + labels),) * 2 if labels else (half, half)


class _Lines:
    """Puts the nodes and edges of one row on lines."""

    def __init__(self, sheet: _Sheet, row: int):
        self.sheet = sheet
        self.row = row
        self.nodes = [x for x in sheet.nodes.values() if x.row == row]
        self.chains: list[_Chain] = []
        self.claimed: set[str] = set()
        self.inside: dict[str, dict[object, float]] = defaultdict(
            dict
        )  # in a group: lines of cells and groups

    def place(self) -> None:
        self._find_chains()
        cells: dict[str, dict[int, list[_Cell]]] = defaultdict(lambda: defaultdict(list))
        for number, chain in enumerate(self.chains):
            for cell in chain.cells:
                cells[self.sheet.group_of(cell)][number].append(cell)
        groups = [key for key, title in self.sheet.titles.items() if title.row == self.row]
        groups = [key for key in groups if key in self.sheet.span]
        self.owner: dict[str, int] = {}
        children: dict[str, list[str]] = defaultdict(list)
        for key in reversed(groups):
            children[self.sheet.titles[key].parent].append(key)
            self.owner[key] = min([*cells[key], *(self.owner[child] for child in children[key])])
        for key in [*reversed(groups), ""]:
            self._place_in(key, cells[key], children[key])
        offset = {"": 0.0}
        for key in groups:
            parent = self.sheet.titles[key].parent
            offset[key] = offset[parent] + self.inside[parent][key]
            top, bottom = self.sheet.extent[key]
            self.sheet.extent[key] = (top + offset[key], bottom + offset[key])
        for key in offset:
            for what, y in self.inside[key].items():
                if isinstance(what, _Cell):
                    self.sheet.y[what] = y + offset[key]
        for i, longest in self.sheet.bus.items():
            for cell in self.sheet.cells_past(i):
                if (line := cell._replace(edge=longest)) in self.sheet.y:
                    self.sheet.y[cell] = self.sheet.y[line]

    def _find_chains(self) -> None:
        sheet = self.sheet
        depth: dict[str, int] = {}
        for x in sorted(self.nodes, key=lambda x: sheet.column[x.key], reverse=bool(self.row % 2)):
            into = sheet.into[x.key]
            tails = {i: sheet.nodes[sheet.edges[i].tail] for i in into}
            if into:
                sheet.main[x.key] = max(into, key=lambda i: (depth[tails[i].key], tails[i].rank, -i))
            depth[x.key] = max((depth[tail.key] + 1 for tail in tails.values()), default=0)
        for x in self.nodes:
            self._share(x)
        for x in sorted(self.nodes, key=lambda x: (bool(sheet.out_of[x.key]), -depth[x.key])):
            if x.key not in self.claimed:  # a result, the one with the longest history first
                cells, end = self._follow(x.key)
                self._add(_Chain(cells, end, 1 if self.chains else 0))

    def _share(self, x: Node) -> None:
        """Let many edges from one node share the line of the longest, as far as they go the same way."""
        sheet = self.sheet
        edges = [i for i in sheet.out_of[x.key] if i != sheet.main[sheet.edges[i].head]]
        if len(edges) < MANY_USES:
            return
        longest = max(edges, key=lambda i: len(sheet.cells_past(i)))
        for i in edges:
            cells = sheet.cells_past(i)
            groups = [(sheet.group_of(x), sheet.group_of(x._replace(edge=longest))) for x in cells]
            if i != longest and cells and all(one == other for one, other in groups):
                sheet.bus[i] = longest

    def _add(self, chain: _Chain) -> None:
        """Keep a chain, and then those that join it, the nearest first."""
        waiting = [chain]
        for chain in waiting:
            self.chains.append(chain)
            joining = [i for cell in chain.cells if cell.node for i in self.sheet.into[cell.node]]
            joining = [i for i in joining if i != self.sheet.main[self.sheet.edges[i].head]]
            for i in sorted(joining, key=lambda i: len(self.sheet.cells_past(i))):
                edge = self.sheet.edges[i]
                if i in self.sheet.bus:
                    continue
                cells, _ = self._follow(edge.tail)
                cells = self.sheet.cells_past(i) + cells
                below = self.sheet.spacing.below and self.row % 2 == 0
                side = 1 if below or i > self.sheet.main[edge.head] else -1
                if cells:
                    waiting.append(_Chain(cells, edge.head, side))

    def _follow(self, key: str) -> tuple[list[_Cell], str]:
        """The cells from a node back along its line, to one that is on a line already, and that one."""
        cells: list[_Cell] = []
        while key not in self.claimed:
            self.claimed.add(key)
            cells.append(self.sheet.node_cell(key))
            if key not in self.sheet.main:
                return cells, ""
            i = self.sheet.main[key]
            cells += self.sheet.cells_past(i)
            key = self.sheet.edges[i].tail
        return cells, key

    def _place_in(self, group: str, cells: Mapping[int, list[_Cell]], children: Sequence[str]) -> None:
        """Give everything directly in a group its line, and the group its size."""
        sheet, lines = self.sheet, self.inside[group]
        occupied: dict[int, list[tuple[float, float]]] = defaultdict(list)
        parts: dict[int, list[tuple[object, dict[int, tuple[float, float]]]]] = defaultdict(list)
        for key in reversed(children):
            top, bottom = sheet.extent[key]
            first, last = sheet.span[key]
            parts[self.owner[key]].append((key, dict.fromkeys(range(first, last + 1), (-top, bottom))))
        for number, own in cells.items():
            parts[number] += [(cell, {cell.column: sheet.reach(cell)}) for cell in own]
        for number, own_parts in sorted(parts.items()):
            while own_parts:
                reach: dict[int, tuple[float, float]] = {}
                on_line, later = [], []
                for what, extent in own_parts:
                    if reach.keys() & extent.keys():
                        later.append((what, extent))
                    else:
                        on_line.append(what)
                        reach |= extent
                y = self._free(group, number, reach, occupied)
                for what in on_line:
                    lines[what] = y
                for column, (up, down) in reach.items():
                    occupied[column].append((y - up, y + down))
                own_parts = later
        top = min((top for column in occupied.values() for top, _ in column), default=0.0)
        bottom = max((bottom for column in occupied.values() for _, bottom in column), default=0.0)
        if group:
            top -= MARGIN
            # The title stands above everything; or beside the line on which an edge comes in from the top.
            top = min(top, -sheet.titles[group].width - 16) if sheet.upright else top - TITLE
            sheet.extent[group] = (top, bottom + MARGIN)

    def _free(self, group: str, number: int, reach: Mapping[int, tuple[float, float]], occupied) -> float:
        """The free line that is nearest to where a chain should be."""
        chain = self.chains[number]
        wanted, side = 0.0, chain.side
        own = next((cell for cell in chain.cells if self._line(cell, group) is not None), None)
        if own is not None:  # a part of it has its line already
            wanted, side = self._line(own, group) or 0.0, 0
        elif chain.at:
            wanted = self._line(self.sheet.node_cell(chain.at), group) or 0.0
        gap = self.sheet.spacing.lines
        taken = sorted(
            (top - down - gap, bottom + up + gap)
            for column, (up, down) in reach.items()
            for top, bottom in occupied.get(column, ())
        )
        below = wanted + LINE * (side != 0)
        for low, high in taken:
            if low < below < high:
                below = high
        above = wanted - LINE * (side != 0)
        for low, high in sorted(taken, key=lambda x: -x[1]):
            if low < above < high:
                above = low
        if side:
            return below if side > 0 else above
        return below if below - wanted <= wanted - above else above

    def _line(self, cell: _Cell, group: str) -> float | None:
        """The line of a cell as seen in a group; None if it has none there yet, or is not in it."""
        what: object = cell
        y = 0.0
        for inner in [*self.sheet.around(self.sheet.group_of(cell)), ""]:
            if what not in self.inside[inner]:
                return None
            y += self.inside[inner][what]
            if inner == group:
                return y
            what = inner
        return None


class _Ports:
    """Where along the side of a node its edges end."""

    def __init__(self, sheet: _Sheet):
        self.offsets: dict[tuple[int, str], float] = {}
        for key, x in sheet.nodes.items():
            y = sheet.y[sheet.node_cell(key)]

            def beside(i: int, x: Node = x) -> float:
                """The height of an edge in the column next to a node."""
                edge = sheet.edges[i]
                cells = sheet.cells_past(i)
                other = edge.tail if edge.head == x.key else edge.head
                near = sheet.node_cell(other) if not cells else cells[0 if edge.head == x.key else -1]
                return sheet.y[near]

            into, out_of = sheet.into[key], sheet.out_of[key]
            main = sheet.main.get(key, -1)
            if not x.in_order:
                into = sorted(into, key=beside)
            many = len(into) > 2 and any(sheet.edges[i].label[1] for i in into)
            self._spread(into, -1 if many else main, x, 11.0 if many else PORT)
            shared = [i for i in out_of if i in sheet.bus]
            out_of = sorted(set(out_of) - set(shared), key=beside)
            straight = next((i for i in out_of if abs(beside(i) - y) < 0.5), -1)
            self._spread(out_of, straight, x, PORT)
            for i in shared:
                self.offsets[i, key] = self.offset(sheet.bus[i], key)

    def _spread(self, edges: Sequence[int], main: int, x: Node, step: float) -> None:
        middle = edges.index(main) if main in edges else (len(edges) - 1) / 2
        furthest = max(middle, len(edges) - 1 - middle)
        if furthest:
            step = min(step, (x.height / 2 - 4) / furthest)
        for place, i in enumerate(edges):
            self.offsets[i, x.key] = (place - middle) * step

    def offset(self, i: int, key: str) -> float:
        return self.offsets.get((i, key), 0.0)


class _Detour:
    """An edge that does not run along a row: down from a node, along a channel, and down to another node.

    It leaves a node below if nothing is there in its column, and arrives at one from above; or else it takes
    a track on the left of the column.
    """

    def __init__(self, sheet: _Sheet, i: int):
        self.number = i
        self.tail, self.head = (sheet.nodes[key] for key in sheet.edges[i][:2])
        self.start, self.end = sheet.column[self.tail.key], sheet.column[self.head.key]
        self.start_x = self.end_x = self.side_x = 0.0
        self.first_track = self.last_track = 0
        self.tail_y = sheet.y[sheet.node_cell(self.tail.key)]
        self.head_y = sheet.y[sheet.node_cell(self.head.key)]
        self.leaves_below = not any(y > self.tail_y for y in sheet.heights(self.tail))
        self.from_above = self.head.row > self.tail.row
        rows = sheet.rows
        self.arrival = rows[max(rows.index(self.head.row) - 1, 0)] if self.from_above else self.head.row
        self.arrives_above = self.from_above and not any(y < self.head_y for y in sheet.heights(self.head))
        self.arrives_above = self.arrives_above and self.arrival == self.tail.row

    def set_ends(self, sheet: _Sheet) -> None:
        """Find the channels, and where the edge leaves and arrives, once the columns have their places."""
        same = sheet.band[self.start] == sheet.band[self.end]
        self.first_channel = (sheet.band[self.start], self.tail.row)
        self.last_channel = self.first_channel if same else (sheet.band[self.end], self.arrival)
        if self.leaves_below:
            leaving = sheet.leaving[self.tail.key]
            leaving.sort(key=lambda x: (x.end, x.number))
            self.start_x = sheet.middle[self.start] + _spread(leaving.index(self), len(leaving), self.tail)
        if self.arrives_above:
            arriving = sheet.arriving[self.head.key]
            arriving.sort(key=lambda x: (x.start, x.number))
            self.end_x = sheet.middle[self.end] + _spread(arriving.index(self), len(arriving), self.head)


class _Way:
    """A way under construction: straight lines with round corners, and curves that begin and end level."""

    def __init__(self, start: Point):
        self.parts: list[tuple[bool, Point]] = [(False, start)]  # whether a curve leads there

    @property
    def end(self) -> Point:
        return self.parts[-1][1]

    def line(self, x: float, y: float) -> None:
        (is_curve, end), last = self.parts[-1], len(self.parts) - 1
        if math.dist(end, (x, y)) < 0.05:
            return
        if last and not is_curve:
            before = self.parts[-2][1]
            level = max(abs(before[1] - end[1]), abs(end[1] - y)) < 0.05
            upright = max(abs(before[0] - end[0]), abs(end[0] - x)) < 0.05
            if level or upright:
                self.parts.pop()
        self.parts.append((False, (x, y)))

    def curve(self, x: float, y: float) -> None:
        if abs(self.end[1] - y) < 0.05:
            self.line(x, y)
        else:
            self.parts.append((True, (x, y)))

    def points(self) -> list[Point]:
        """The way as one Bézier curve of the third degree."""
        curve = [self.parts[0][1]]

        def straight_to(point: Point) -> None:
            start = curve[-1]
            if math.dist(start, point) > 0.05:
                curve.extend(_between(start, point, share) for share in (1 / 3, 2 / 3, 1))

        for number, (is_curve, point) in enumerate(self.parts[1:], 1):
            if is_curve:
                x, y = curve[-1]
                curve += [((x + point[0]) / 2, y), ((x + point[0]) / 2, point[1]), point]
                continue
            after = self.parts[number + 1] if number + 1 < len(self.parts) else (True, point)
            if after[0]:
                straight_to(point)
                continue
            before = self.parts[number - 1][1]
            turn = min(ROUND, math.dist(before, point) / 2, math.dist(point, after[1]) / 2)
            begin = _between(point, before, turn / (math.dist(before, point) or 1))
            finish = _between(point, after[1], turn / (math.dist(point, after[1]) or 1))
            straight_to(begin)
            curve += [_between(begin, point, 0.55), _between(finish, point, 0.55), finish]
        return curve


def _between(a: Point, b: Point, share: float) -> Point:
    """The point at a share of the line from `a` to `b`."""
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def _half_width(x: Node, across: float) -> float:
    """How far a node reaches to the side, at a height above or below its middle."""
    return math.sqrt(max((x.width / 2) ** 2 - across**2, 0.0)) if x.is_round else x.width / 2


def _half_height(x: Node, across: float) -> float:
    return math.sqrt(max((x.height / 2) ** 2 - across**2, 0.0)) if x.is_round else x.height / 2


def _of_band(key: str, band: int) -> str:
    return f"{key}_{band + 1}" if band else key


def _first_gap(taken, low: float, high: float, width: float, *, from_end: bool) -> float | None:
    """Where a piece fits between what is taken, if anywhere."""
    if from_end:
        flipped = sorted((-b, -a) for a, b in taken)
        start = _first_gap(flipped, -high, -low, width, from_end=False)
        return None if start is None else -start - width
    start = low
    for a, b in taken:
        if a < start + width and b > start:
            start = b
    return start if start + width <= high else None


def _turned(frame: GroupFrame, turn) -> GroupFrame:
    (x0, y0), (x1, y1) = turn((frame.left, frame.bottom)), turn((frame.right, frame.top))
    return GroupFrame(
        frame.key, min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1), frame.title and turn(frame.title)
    )


def _spread(place: int, count: int, x: Node) -> float:
    step = min(12.0, x.width * 0.6 / max(count - 1, 1))
    return (place - (count - 1) / 2) * step
