"""Edges go the shortest way around boxes, and end at the borders of their nodes."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import needle as ndl
import viz
from viz.render import lay_out
from viz.ways import CLEAR, Place, places_in, with_ways

LEFT, RIGHT = Place(0, 0, 40, 20), Place(300, 0, 30, 30, is_round=True)


def way_of(statement: str) -> list[tuple[float, float]]:
    """The points of an edge, its arrow's tip at the end where it points to."""
    (pos,) = re.findall(r'pos="([^"]*)"', statement)
    arrow, points = [], []
    for word in pos.split():
        kind, _, rest = word.rpartition("e,") if word.startswith("e,") else word.rpartition("s,")
        (arrow if kind or word[0] in "es" else points).append(tuple(map(float, rest.split(","))))
    return points + arrow


def samples(points: list[tuple[float, float]]) -> np.ndarray:
    """Points along a Bézier curve of the third degree."""
    t = np.linspace(0, 1, 30)[:, None]
    bits = [np.array(points[i : i + 4]) for i in range(0, len(points) - 3, 3)]
    return np.concatenate(
        [
            (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
            for a, b, c, d in bits
        ]
    )


def test_a_free_way_is_straight_and_ends_at_the_borders() -> None:
    (edge,) = with_ways(["a -> b [color=red];"], {"a": LEFT, "b": RIGHT})
    way = way_of(edge)
    assert way[0] == (20, 0)
    assert way[-1] == (285, 0)  # the tip of the arrow, at the circle
    assert {y for _, y in way} == {0}
    assert edge.endswith("color=red];")


def test_a_way_goes_around_a_box_on_its_shorter_side() -> None:
    box = Place(150, 10, 60, 60)  # reaches from -20 to 40
    (edge,) = with_ways(["a -> b;"], {"a": LEFT, "b": RIGHT, "box": box})
    low = samples(way_of(edge))[:, 1].min()
    assert -20 - 12 < low < -20 - CLEAR + 2


def test_an_arrow_that_points_back_is_at_the_tail() -> None:
    (edge,) = with_ways(['b -> a [dir="back"];'], {"a": LEFT, "b": RIGHT})
    assert 'pos="s,285.0,0.0 ' in edge
    (edge,) = with_ways(['a -> b [dir="none"];'], {"a": LEFT, "b": RIGHT})
    assert way_of(edge)[-1] == (285, 0)
    assert "e," not in edge


def test_other_lines_stay_as_they_are() -> None:
    lines = ["digraph {", 'a [label="x -> y"];', "a -> c;", "}"]
    assert with_ways(lines, {"a": LEFT, "b": RIGHT}) == lines


def test_labels_of_edges_that_meet_stand_on_their_outer_sides() -> None:
    places = {"a": Place(0, 60, 40, 20), "b": Place(0, -60, 40, 20), "op": RIGHT}
    edges = with_ways(['a -> op [label="1st"];', 'b -> op [label="2nd"];'], places)
    (_, above), (_, below) = [re.search(r'lp="([^,]*),([^"]*)"', edge).groups() for edge in edges]
    assert float(above) > 12  # the ways are within 9 points of the middle here
    assert float(below) < -12


@st.composite
def scattered(draw) -> dict[str, Place]:
    """Boxes in the cells of a grid, with room between them."""
    cells = draw(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=20))
    size = st.integers(10, 70)
    return {
        f"n{i}": Place(100 * x, 80 * y, draw(size), min(draw(size), 56)) for i, (x, y) in enumerate(cells)
    }


@given(scattered())
def test_no_way_touches_a_box_that_is_not_its_own(places: dict[str, Place]) -> None:
    for (a, _), (b, _) in pairwise(places.items()):
        (edge,) = with_ways([f'{a} -> {b} [dir="none"];'], places)
        x, y = samples(way_of(edge)).T
        for name, box in places.items():
            if name not in (a, b):
                inside = (box.left < x) & (x < box.right) & (box.bottom < y) & (y < box.top)
                assert not inside.any(), (name, edge)


@pytest.mark.parametrize("style", ["needle", "d2l"])
def test_dashed_edges_strike_through_no_box(style: str) -> None:
    rng = np.random.default_rng(0)
    X, W1, W2 = (ndl.Tensor(rng.random(shape)) for shape in [(3, 4), (4, 5), (5, 2)])
    J = ((ndl.relu(X @ W1) @ W2) ** 2).sum() + 0.1 * ((W1**2).sum() + (W2**2).sum())
    laid_out = lay_out(viz.draw_gradient(J, style=style).source)
    places = places_in(laid_out)
    assert len(places) > 80
    between = re.findall(r"(\w+) -> (\w+)\s*\[([^;]*class=\"?between-rows[^;]*)\];", laid_out)
    assert len(between) > 5
    for tail, head, attributes in between:
        x, y = samples(way_of(attributes.replace("\\\n", ""))).T
        for name, box in places.items():
            if name not in (tail, head):
                inside = (box.left < x) & (x < box.right) & (box.bottom < y) & (y < box.top)
                assert not inside.any(), (tail, head, name)
                assert math.isfinite(x.sum())
