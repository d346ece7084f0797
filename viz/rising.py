"""A layout that rises: every result stands to the right of its operands, and higher.

Graphviz lays a drawing out from left to right; then each column moves up, in proportion to its distance from
the left. So the boxes of a column stay as far apart as they were, and a straight line stays straight.
"""

from __future__ import annotations

import re
from collections import defaultdict

from .ways import EDGE, Place, with_ways

__all__ = ["RISING", "risen"]

RISING = "rising"  # the comment in a graph that is drawn like this
GENTLEST, STEEPEST = 0.16, 0.5  # up, for each unit to the right
GAP = 22.0  # points between the frames of two rows
MARGIN, TITLE = 12.0, 20.0  # points around a row, and for its title

NODE = re.compile(r'^node "?(\w+)"? (\S+) (\S+) (\S+) (\S+) ', re.MULTILINE)
CIRCLE = re.compile(r'^\s*(\w+) \[.*shape="circle"', re.MULTILINE)
ROW = re.compile(r"^\s*subgraph cluster_(\d+) {$")


def risen(source: str, plain: str) -> str:
    """DOT text with positions for its nodes, frames and edges.

    Parameters
    ----------
    source : str
    plain : str
        The places that Graphviz gives its nodes, in the format "plain".
    """
    rows, edges = _rows_and_edges(source)
    circles = set(CIRCLE.findall(source))
    places = {}
    for name, *numbers in NODE.findall(plain):
        x, y, width, height = (72 * float(number) for number in numbers)
        places[name] = Place(x, y, width, height, name in circles)
    slope = _slope(places, edges)
    places = {name: place._replace(y=place.y + slope * place.x) for name, place in places.items()}
    frames = []
    ceiling = None
    for row, names in sorted(rows.items()):
        inside = [places[name] for name in names]
        height = max(place.top for place in inside) + MARGIN + TITLE
        drop = 0.0 if ceiling is None else height - ceiling + GAP
        places |= {name: places[name]._replace(y=places[name].y - drop) for name in names}
        top = height - drop
        ceiling = min(place.bottom for place in inside) - drop - MARGIN
        left = min(place.x - place.width / 2 for place in inside) - MARGIN
        right = max(place.x + place.width / 2 for place in inside) + MARGIN
        if len(rows) > 1:
            frames.append(
                f'subgraph cluster_{row} {{ bb="{left:.1f},{ceiling:.1f},{right:.1f},{top:.1f}"; '
                f'lp="{left + 42:.1f},{top - 12:.1f}"; }}'
            )
    positions = [f'{name} [pos="{place.x:.1f},{place.y:.1f}"];' for name, place in places.items()]
    seen = (x for x in source.rstrip().removesuffix("}").splitlines() if not ("->" in x and "invis" in x))
    return "\n".join([*with_ways(seen, places), *positions, *frames, "}"])


def _rows_and_edges(source: str) -> tuple[dict[int, list[str]], list[tuple[str, str]]]:
    """The nodes of each row, and the edges along rows, the left end first."""
    rows: dict[int, list[str]] = defaultdict(list)
    edges = []
    row = 0
    for line in source.splitlines():
        if found := ROW.match(line):
            row = int(found[1])
        elif found := EDGE.match(line):
            if "constraint" not in line and "invis" not in line:
                edges.append((found[1], found[2]))
        elif (found := re.match(r"\s*(\w+) \[", line)) and "shape=" in line and "invis" not in line:
            rows[row].append(found[1])
    return rows, edges


def _slope(places: dict[str, Place], edges: list[tuple[str, str]]) -> float:
    """The slope at which every edge rises, within limits."""
    needed = GENTLEST
    for left, right in edges:
        run, rise = places[right].x - places[left].x, places[right].y - places[left].y
        if run > 0:
            needed = max(needed, 0.1 - rise / run)
    return min(needed, STEEPEST)
