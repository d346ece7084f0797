"""The shortest ways for edges, around the boxes of a drawing in which each box has its place.

A way is a line from the middle of one box to the middle of another, as if a thread were pulled tight: it goes
straight, or turns at corners of the boxes that are in between. Its corners are rounded.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["EDGE", "Place", "places_in", "with_ways"]

AWAY = 6.0  # points from a box to the corners of a way around it
CLEAR = 5.0  # points between a way and every box; the gaps between boxes are wider than both together
ROUND = 10.0  # points before and after a corner in which a way turns
ARROW = 6.5  # points: the length of an arrow
BESIDE = (26.0, 8.0)  # points: a label is so far from the end of its way, and beside it

_NODE = re.compile(r"^\s*(\w+)\s+\[(.*?)\];$", re.MULTILINE | re.DOTALL)
EDGE = re.compile(r"^\s*(\w+) -> (\w+)")

Point = tuple[float, float]


class Place(NamedTuple):
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


def places_in(laid_out: str) -> dict[str, Place]:
    """The places of the nodes in DOT text that Graphviz wrote."""
    places = {}
    for name, attributes in _NODE.findall(laid_out):
        pos = re.search(r'\bpos="([-\d.e+]+),([-\d.e+]+)"', attributes)
        size = [re.search(rf"\b{side}=([\d.]+)", attributes) for side in ("width", "height")]
        if pos and all(size) and "invis" not in attributes:
            width, height = (72 * float(found[1]) for found in size if found)
            places[name] = Place(float(pos[1]), float(pos[2]), width, height, "shape=circle" in attributes)
    return places


def with_ways(statements: Iterable[str], places: Mapping[str, Place]) -> list[str]:
    """Lines of DOT text, in which each edge between two of the places gets its way."""
    lines = list(statements)
    number = {name: i for i, name in enumerate(places)}
    boxes = np.array([(p.left, p.right, p.bottom, p.top) for p in places.values()])
    ways: dict[int, list[Point]] = {}
    at_arrow: dict[str, list[int]] = defaultdict(list)  # the edges that end at a node
    for i, line in enumerate(lines):
        if not (found := EDGE.match(line)) or not {found[1], found[2]} <= places.keys():
            continue
        tail, head = places[found[1]], places[found[2]]
        others = np.delete(boxes, [number[found[1]], number[found[2]]], axis=0)
        way = _shortest((tail.x, tail.y), (head.x, head.y), others)
        ways[i] = [_border(tail, way[1]), *way[1:-1], _border(head, way[-2])]
        if 'dir="back"' in line:
            ways[i].reverse()
        at_arrow[found[1 if 'dir="back"' in line else 2]].append(i)
    for edges in at_arrow.values():
        sides = _sides([ways[i] for i in edges])
        for i, side in zip(edges, sides, strict=True):
            begin, bracket, rest = lines[i].partition(" [")
            attributes = _drawn(lines[i], ways[i], side)
            lines[i] = f"{begin.rstrip(';')} [{attributes}{', ' + rest if bracket else '];'}"
    return lines


def _sides(ways: Sequence[Sequence[Point]]) -> list[float]:
    """On which side of each of the ways that meet in a node its label is away from the others: 1 or -1.

    Seen from the node, 1 is counterclockwise. A way alone has its label above it.
    """
    angles = [math.atan2(way[-2][1] - way[-1][1], way[-2][0] - way[-1][0]) for way in ways]
    middle = math.atan2(sum(map(math.sin, angles)), sum(map(math.cos, angles)))
    turns = [math.remainder(angle - middle, math.tau) for angle in angles]
    if max(map(abs, turns)) < 1e-6:
        return [math.copysign(1, math.cos(middle))] * len(ways)
    return [math.copysign(1, turn) for turn in turns]


def _drawn(line: str, way: list[Point], side: float) -> str:
    """The attributes of an edge that say where it goes, to its arrow, and where its label stands."""
    is_back = 'dir="back"' in line
    end, before = way[-1], way[-2]
    label = ""
    if "label=" in line:
        x, y = _towards(end, before, BESIDE[0])
        dx, dy = before[0] - end[0], before[1] - end[1]
        beside = side * BESIDE[1] / (math.hypot(dx, dy) or 1.0)
        label = f', lp="{x - dy * beside:.1f},{y + dx * beside:.1f}"'
    arrow = ""
    if 'dir="none"' not in line:
        way = [*way[:-1], _towards(end, before, ARROW)]
        arrow = f"{'s' if is_back else 'e'},{end[0]:.1f},{end[1]:.1f} "
    curve = _curve(way)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (reversed(curve) if is_back else curve))
    return f'pos="{arrow}{points}"{label}'


def _shortest(start: Point, end: Point, boxes: np.ndarray) -> list[Point]:
    """The points of a way: its start, the corners at which it turns, its end.

    Only boxes that turn out to be in the way are looked at. There are few.
    """
    met = np.zeros(len(boxes), bool)
    while True:
        way = _around(start, end, boxes[met])
        points = np.array(way)
        more = _crosses(points[:-1], points[1:], boxes).any(0) & ~met
        if not more.any():
            return way
        met |= more


def _around(start: Point, end: Point, boxes: np.ndarray) -> list[Point]:
    """Dijkstra's way along straight lines from corner to corner; a straight line if there is none."""
    corners = [
        (x, y)
        for left, right, bottom, top in boxes.tolist()
        for x in (left - AWAY, right + AWAY)
        for y in (bottom - AWAY, top + AWAY)
    ]
    points = np.array([start, end, *corners])
    lengths = np.full(len(points), np.inf)
    lengths[0] = 0
    before = np.zeros(len(points), int)
    waiting = np.ones(len(points), bool)
    while waiting[1]:
        nearest = int(np.argmin(np.where(waiting, lengths, np.inf)))
        if not np.isfinite(lengths[nearest]):
            return [start, end]
        waiting[nearest] = False
        through = lengths[nearest] + np.hypot(*(points - points[nearest]).T)
        shorter = np.flatnonzero(waiting & (through < lengths))
        here = np.broadcast_to(points[nearest], (len(shorter), 2))
        free = shorter[~_crosses(here, points[shorter], boxes).any(1)]
        lengths[free] = through[free]
        before[free] = nearest
    way = [1]
    while way[-1]:
        way.append(int(before[way[-1]]))
    return [(float(x), float(y)) for x, y in points[way[::-1]]]


def _crosses(starts: np.ndarray, ends: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Whether each straight line (rows) goes through each box (columns), or comes too close to it."""
    enter = np.zeros((len(starts), len(boxes)))
    leave = np.ones_like(enter)
    for axis in (0, 1):
        at = starts[:, axis, None]
        by = ends[:, axis, None] - at
        with np.errstate(divide="ignore", invalid="ignore"):
            low = (boxes[:, 2 * axis] - CLEAR - at) / by
            high = (boxes[:, 2 * axis + 1] + CLEAR - at) / by
        along = np.abs(by) < 1e-9  # the line runs along the other axis: it is beside the box, or not
        beside = (at <= boxes[:, 2 * axis] - CLEAR) | (at >= boxes[:, 2 * axis + 1] + CLEAR)
        enter = np.maximum(enter, np.where(along, np.where(beside, 2.0, 0.0), np.minimum(low, high)))
        leave = np.minimum(leave, np.where(along, 1.0, np.maximum(low, high)))
    return enter < leave


def _border(place: Place, towards: Point) -> Point:
    """Where a straight line from the middle of a node comes out of it."""
    dx, dy = towards[0] - place.x, towards[1] - place.y
    if place.is_round:
        share = place.width / 2 / (math.hypot(dx, dy) or 1.0)
    else:
        share = min(
            place.width / 2 / abs(dx) if dx else math.inf, place.height / 2 / abs(dy) if dy else math.inf
        )
    share = min(share, 1.0)
    return place.x + share * dx, place.y + share * dy


def _towards(a: Point, b: Point, far: float) -> Point:
    """The point so far from `a` on the line to `b`, at most in its middle."""
    return _between(a, b, min(far / (math.dist(a, b) or 1.0), 0.5))


def _between(a: Point, b: Point, share: float) -> Point:
    """The point at a share of the line from `a` to `b`."""
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def _curve(way: Sequence[Point]) -> list[Point]:
    """The way as a Bézier curve of the third degree, with its corners rounded."""
    curve = [way[0]]

    def straight_to(point: Point) -> None:
        start = curve[-1]
        curve.extend(_between(start, point, share) for share in (1 / 3, 2 / 3, 1))

    for before, corner, after in zip(way, way[1:], way[2:], strict=False):
        begin, end = _towards(corner, before, ROUND), _towards(corner, after, ROUND)
        straight_to(begin)
        curve += [_between(begin, corner, 0.5), _between(end, corner, 0.5), end]
    straight_to(way[-1])
    return curve
