"""Where things stand: edges meet no box, title or label, dashes lie on no line, operands come in order."""

from __future__ import annotations

import base64
import json
import math
import random
import re
import zlib
from contextlib import nullcontext
from itertools import combinations, pairwise

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from needle.apps.models import ResNet9
from viz.dot import DrawnGraph
from viz.groups import fold
from viz.layout import Edge, Node, NodeBox, Spacing, lay_out

Rectangle = tuple[float, float, float, float]  # left, bottom, right, top


def picture_of(drawing: viz.Drawing) -> DrawnGraph:
    graph = fold(drawing.graph, drawing.opened)
    return DrawnGraph(graph, drawing.style, rankdir=drawing.rankdir, width=drawing.width, below=drawing.below)


def samples(curve: list[tuple[float, float]]) -> np.ndarray:
    """Points along a Bézier curve of the third degree, close together."""
    parts = []
    for k in range(0, len(curve) - 3, 3):
        a, b, c, d = np.array(curve[k : k + 4])
        t = np.linspace(0, 1, max(int(math.dist(a, d) / 3), 3))[:, None]
        parts.append((1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d)
    return np.concatenate(parts)


def inside(points: np.ndarray, box: Rectangle) -> bool:
    (x, y), (left, bottom, right, top) = points.T, box
    return bool(((left < x) & (x < right) & (bottom < y) & (y < top)).any())


def box_of(place: NodeBox) -> Rectangle:
    return place.left, place.bottom, place.right, place.top


def around(middle: tuple[float, float], width: float, height: float) -> Rectangle:
    x, y = middle
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def faults(picture: DrawnGraph) -> list[str]:
    """What is wrong with a drawing, in words."""
    found = []
    layout = picture.layout
    edges = [edge for edge, _ in picture.edges]
    ways = [samples(curve) for curve in layout.curves]
    titles = {x.key: x.width / 1.17 for x in picture.titles}
    words = {
        f"the title {x.key}": around(x.title, titles[x.key.partition("_")[0]], 9)
        for x in layout.frames
        if x.title
    }
    words |= {
        f"the label of {edge.tail} -> {edge.head}": around(at, edge.label[0] / 1.17, 7)
        for edge, at in zip(edges, layout.labels, strict=True)
        if edge.label[0]
    }
    things = {key: box_of(place) for key, place in layout.places.items()} | words
    boxes = np.array(list(things.values()))
    for edge, way in zip(edges, ways, strict=True):
        (left, bottom), (right, top) = way.min(0), way.max(0)
        near = (boxes[:, 0] < right) & (left < boxes[:, 2]) & (boxes[:, 1] < top) & (bottom < boxes[:, 3])
        for key in (list(things)[i] for i in np.flatnonzero(near)):
            if key not in (edge.tail, edge.head) and inside(way, things[key]):
                found.append(f"{edge.tail} -> {edge.head} meets {key}")
    for (one, a), (other, b) in combinations(layout.places.items(), 2):
        if a.left < b.right and b.left < a.right and a.bottom < b.top and b.bottom < a.top:
            found.append(f"{one} covers {other}")
    dashed = [look.get("style") == "dashed" for _, look in picture.edges]
    for i, j in ((i, j) for i in range(len(ways)) for j in range(len(ways)) if dashed[i] and not dashed[j]):
        if max(map(sum, runs(close(ways[i], ways[j])))) > 6:  # samples, three points apart
            found.append(f"{edges[i].tail} -> {edges[i].head} lies on {edges[j].tail} -> {edges[j].head}")
    for node, _ in picture.nodes.values():
        ends = [
            curve[-1][0] if picture.rankdir in ("TB", "BT") else -curve[-1][1]
            for edge, curve in zip(edges, layout.curves, strict=True)
            if edge.head == node.key and picture.nodes[edge.tail][0].row == node.row
        ]
        if node.in_order and any(a >= b for a, b in pairwise(ends)):
            found.append(f"the operands of {node.key} are out of order")
    return found


def close(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which points of one way lie on the other one."""
    near = np.zeros(len(one), bool)
    low, high = other.min(0) - 2, other.max(0) + 2
    candidates = np.flatnonzero(((low < one) & (one < high)).all(1))
    if len(candidates):
        part = one[candidates]
        other = other[((part.min(0) - 2 < other) & (other < part.max(0) + 2)).all(1)]
        if len(other):
            apart = np.abs(part[:, None] - other[None]).max(2).min(1)
            near[candidates] = apart < 1.8
    return near


def runs(together: np.ndarray) -> list[list[bool]]:
    found: list[list[bool]] = [[]]
    for x in together:
        if x:
            found[-1].append(True)
        else:
            found.append([])
    return found


def crossings(picture: DrawnGraph) -> int:
    """How often edges cross that share no node."""
    ways = [samples(curve) for curve in picture.layout.curves]
    count = 0
    for (i, (one, _)), (j, (other, _)) in combinations(enumerate(picture.edges), 2):
        if {one.tail, one.head} & {other.tail, other.head}:
            continue
        count += sum(bool(run) for run in runs(close(ways[i], ways[j])))
    return count


def random_output(seed: int) -> ndl.Tensor:
    """A random graph, with blocks in blocks, values used twice, and operands whose order matters."""
    choose = random.Random(seed)
    made = [ndl.Tensor([1.0 + i], requires_grad=i != 1) for i in range(choose.randint(2, 3))]

    def step() -> None:
        a, b = (choose.choice(made[-4:]) for _ in range(2))
        made.append(choose.choice([lambda: a / b, lambda: a - b, lambda: a * b, lambda: ndl.tanh(a)])())

    for number in range(choose.randint(2, 4)):
        with ndl.scope(f"block {number}") if choose.random() < 0.6 else nullcontext():
            step()
            with ndl.scope("inner") if choose.random() < 0.4 else nullcontext():
                for _ in range(choose.randint(1, 3)):
                    step()
    return made[-1] * made[0]


@pytest.fixture
def mlp_loss() -> ndl.Tensor:
    """The loss of a network with a penalty for large weights."""
    rng = np.random.default_rng(0)
    x = ndl.Tensor(rng.normal(size=(3, 1)), requires_grad=False)
    W1, W2 = (ndl.Tensor(rng.normal(size=shape)) for shape in ((2, 3), (1, 2)))
    return ((W2 @ ndl.relu(W1 @ x)) ** 2).sum() + 0.1 * ((W1**2).sum() + (W2**2).sum())


@pytest.fixture
def emblem(example) -> DrawnGraph:
    return picture_of(viz.draw_gradient(example.v4, names=vars(example)))


def test_the_emblem_is_drawn_without_fault(emblem) -> None:
    assert not faults(emblem)


def test_in_the_emblem_two_edges_cross_once_because_they_must(emblem) -> None:
    assert crossings(emblem) == 1


def test_in_the_emblem_boxes_are_equal_and_the_main_line_is_straight(emblem) -> None:
    places = emblem.layout.places
    boxes = [places[x.key] for x in emblem.graph.variables]
    assert len({(round(x.width, 3), round(x.height, 3)) for x in boxes}) == 1
    for key in ("n1", "n2_op", "n2", "n3_op", "n3", "n4_op"):
        assert places[key].y == pytest.approx(places["n4"].y)


@pytest.mark.parametrize("seed", [*range(5), pytest.param(5, marks=pytest.mark.slow)])
def test_random_gradients_are_drawn_without_fault(seed: int) -> None:
    assert not faults(picture_of(viz.draw_gradient(random_output(seed), names={})))


@pytest.mark.slow
@pytest.mark.parametrize("rankdir", ["LR", "RL", "TB", "BT"])
@pytest.mark.parametrize("seed", range(6, 40))
def test_more_random_gradients(seed: int, rankdir: str) -> None:
    drawing = viz.draw_gradient(random_output(seed), names={}, rankdir=rankdir)
    assert not faults(picture_of(drawing))


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_gradients_in_rows_are_drawn_without_fault(seed: int) -> None:
    picture = picture_of(viz.draw_gradient(random_output(seed), names={}, width="page"))
    assert picture.layout.width <= 750
    assert not faults(picture)


def test_resnet_fits_on_a_page() -> None:
    loss = nn.SoftmaxLoss()(ResNet9()(ndl.Tensor(np.ones((2, 3, 32, 32)))), ndl.Tensor([3, 7]))
    drawing = viz.draw_gradient(loss, depth=2, width="page")
    width, height = re.search(r'width="(\d+)pt" height="(\d+)pt"', drawing.svg()).groups()
    assert int(width) <= 750
    assert int(height) < 10_000


@pytest.mark.parametrize("width", ["wall", 0, -3.0, True, float("inf"), [1000]])
def test_a_width_that_is_none_is_refused(width, example) -> None:
    with pytest.raises(
        ValueError, match=r"width: needs a number of pixels or one of 'page', 'slide', 'phone'"
    ):
        viz.draw(example.v4, width=width)


def test_a_very_long_drawing_goes_on_in_rows_by_itself() -> None:
    y = ndl.Tensor([1.0])
    for _ in range(30):
        y = ndl.tanh(y) + 1
    picture = picture_of(viz.draw(y, names={}))
    assert picture.layout.width <= 1200
    assert not faults(picture)


def test_a_picture_of_a_given_width_stays_as_it_is() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    drawing = viz.draw(model(ndl.Tensor(np.ones((1, 2)))), width=600)
    assert "cluster_g1" in drawing.svg()
    data = re.search(r'needle-data="([^"]*)"', drawing.html())[1]
    assert json.loads(zlib.decompress(base64.b64decode(data)))["groups"] == {}


def test_frames_hold_what_is_in_them_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(2, 3, rng=rng), nn.ReLU(), nn.Residual(nn.Linear(3, 3, rng=rng)))
    picture = picture_of(viz.draw_gradient(model(ndl.Tensor(np.ones((4, 2)))), depth=9, width=10_000))
    groups = {group.key: group for group in picture.graph.groups}
    frames = {frame.key: frame for frame in picture.layout.frames}
    assert groups.keys() < frames.keys()
    for node, _ in picture.nodes.values():
        place, around_it, group = picture.layout.places[node.key], set(), node.group
        while group:
            around_it.add(group)
            group = groups[group].parent
        for key in groups:
            frame = frames[key]
            across = frame.left < place.right and place.left < frame.right
            overlap = across and frame.bottom < place.top and place.bottom < frame.top
            assert overlap == (key in around_it), (key, node.key)


def chain(count: int) -> tuple[list[Node], list[Edge]]:
    nodes = [Node(str(i), 60, 30) for i in range(count)]
    return nodes, [Edge(a.key, b.key) for a, b in pairwise(nodes)]


def test_what_follows_stands_to_the_right_on_one_line() -> None:
    layout = lay_out(*chain(5))
    places = [layout.places[str(i)] for i in range(5)]
    assert all(a.right + 10 < b.left and a.y == b.y for a, b in pairwise(places))
    assert all(len(curve) == 4 for curve in layout.curves)  # straight


def test_many_edges_from_one_node_share_a_line() -> None:
    """As from the weights of a recurrent network, which are drawn once, to its steps."""
    model = nn.RNN(3, 4)
    states, _ = model(ndl.Tensor(np.ones((6, 2, 3)), requires_grad=False))
    picture = picture_of(viz.draw(states, names={}, width=1e6))
    (weight,) = (x.key for x in picture.graph.variables if x.name.endswith("W_hh"))
    steps = [x.key for x in picture.graph.variables if x.name.startswith("t = ")]
    assert len(steps) == 6
    assert len({picture.layout.places[key].y for key in steps}) == 1
    ways = {
        edge.head: samples(curve)
        for (edge, _), curve in zip(picture.edges, picture.layout.curves, strict=True)
        if edge.tail == weight
    }
    assert ways.keys() == set(steps)
    low = [way[:, 1].min() for head, way in ways.items() if head != "x"]
    assert len({round(y, 1) for y in low}) <= 2  # the first step is beside the weights
    assert not faults(picture)


def test_what_only_helps_a_gradient_stands_beside_it(mlp_loss) -> None:
    """A transpose, say, whose operand comes from the forward graph."""
    picture = picture_of(viz.draw_gradient(mlp_loss, names={}, width=1e6))
    column = {node.key: picture.layout.places[node.key].x for node, _ in picture.nodes.values()}
    helpers = [x for x in picture.graph.variables if x.operator and x.operator.symbol == "transpose"]
    assert helpers
    for x in helpers:
        (use,) = (edge.head for edge, _ in picture.edges if edge.tail == x.key)
        between = {at for at in column.values() if column[use] < at < column[x.key]}
        assert not between


@pytest.mark.parametrize("draw", [viz.draw, viz.draw_gradient])
def test_steps_in_time_stand_side_by_side_or_in_one_box(draw) -> None:
    cell = nn.RNNCell(3, 4)
    inputs, state = [ndl.Tensor(np.ones((2, 3)), requires_grad=False) for _ in range(5)], None
    for t in range(5):
        with ndl.scope(f"t = {t + 1}"):
            state = cell(inputs[t], state)
    names = {f"x{t + 1}": x for t, x in enumerate(inputs)} | {"h": state}
    drawing = draw(state, names=names, unroll=True, width=1e6)
    shown = fold(drawing.graph, drawing.opened)
    places = picture_of(drawing).layout.places
    key = {x.name: x.key for x in shown.variables if not x.row}
    steps = [places[at] for name, at in key.items() if name.startswith("t = ")]
    assert len(steps) == 5
    assert len({step.y for step in steps[1:]}) == 1
    for t in range(2, 6):
        assert places[key[f"x{t}"]].top < steps[-1].y
    folded = draw(state, names=names, unroll=False)
    boxes = [x.name for x in fold(folded.graph, folded.opened).variables if x.kind == "group"]
    assert len(boxes) < 2 * 5


def test_a_cycle_is_drawn_all_the_same() -> None:
    nodes, edges = chain(3)
    layout = lay_out(nodes, [*edges, Edge("2", "0")])
    assert len(layout.places) == 3
    assert all(layout.curves)


@pytest.mark.parametrize("rankdir", ["LR", "RL"])
def test_a_long_chain_goes_on_in_a_row_below(rankdir: str) -> None:
    nodes, edges = chain(40)
    layout = lay_out(nodes, edges, rankdir=rankdir, spacing=Spacing(widest=500))
    assert layout.width <= 500
    assert len({round(place.y) for place in layout.places.values()}) > 6
    for edge, curve in zip(edges, layout.curves, strict=True):
        way = samples(curve)
        for key, place in layout.places.items():
            assert key in (edge.tail, edge.head) or not inside(way, box_of(place))


def test_nothing_is_no_trouble() -> None:
    assert lay_out([], []).places == {}
