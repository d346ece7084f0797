"""Drawings at every scale: modules as groups, open and closed, and what is repeated in short."""

from __future__ import annotations

import pickle
import random
import re
import weakref
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection
from contextlib import ExitStack
from html import unescape
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import needle as ndl
import viz
from needle import nn
from needle.apps.models import LanguageModel, ResNet9
from needle.autograd import find_topo_sort
from viz.dot import DrawnGraph
from viz.graph_data import Graph, Variable
from viz.groups import at_depth, fold, inside, twins


@pytest.fixture(autouse=True)
def seed() -> None:
    np.random.seed(0)


@pytest.fixture
def network() -> nn.Module:
    def block() -> nn.Module:
        return nn.Residual(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))

    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), block(), block(), nn.Linear(8, 1))


def shown(drawing: viz.Drawing) -> Graph:
    return fold(drawing.graph, drawing.opened)


def by_name(graph: Graph, row: int = 0) -> dict[str, Variable]:
    return {x.name: x for x in graph.variables if x.row == row}


def check_order(graph: Graph) -> None:
    """Each variable comes after its operands, and every operand and column is there."""
    seen: set[str] = set()
    for x in graph.variables:
        assert {operand.key for operand in x.operands} <= seen
        seen.add(x.key)
    assert len(seen) == len(graph.variables)
    assert {key for column in graph.columns for key in column} <= seen
    groups = {""}
    for group in graph.groups:
        assert group.parent in groups
        groups.add(group.key)
    assert {x.group for x in graph.variables} <= groups


def edges(graph: Graph) -> set[tuple[str, str]]:
    return {(operand.key, x.key) for x in graph.variables for operand in x.operands}


def check_edges(graph: Graph, opened: Collection[str]) -> None:
    """What is shown has an edge for each edge of the whole graph that is not in one box, and no other."""
    closed: dict[str, str] = {"": ""}
    for group in graph.groups:
        closed[group.key] = closed[group.parent] or ("" if group.key in opened else group.key)
    short = fold(graph, opened)
    there = {x.key for x in short.variables}
    places = {x.key: {x.key, closed[x.group]} & there for x in graph.variables}  # an output has two
    assert all(places.values())
    possible = {pair for boxes in places.values() for pair in product(boxes, boxes)}
    for before, after in edges(graph):
        pairs = set(product(places[before], places[after]))
        assert pairs & edges(short) or places[before] & places[after]
        possible |= pairs
    assert edges(short) <= possible


def scopes(node: ndl.Tensor) -> list[object]:
    found, scope = [], node.scope
    while scope is not None:
        found.append(scope.owner)
        scope = scope.outer
    return found[::-1]


def test_a_node_remembers_the_calls_of_modules_that_made_it(network) -> None:
    x = ndl.Tensor(np.ones((4, 2)))
    y = network(x)
    assert y.scope.owner is network.modules[4]
    assert y.inputs[0].inputs[0].scope.owner is network.modules[3]
    names = [[type(owner).__name__ for owner in scopes(node)] for node in find_topo_sort([y]) if node.op]
    assert names[3] == ["Sequential", "Residual", "Sequential", "Linear"]
    assert x.scope is None
    assert (y + 1).scope is None


def test_nodes_of_a_gradient_remember_the_module_that_they_are_the_gradient_of(network) -> None:
    network(ndl.Tensor(np.ones((4, 2)))).sum().backward()
    weight = network.modules[0].weight
    assert weight.grad.scope.owner is network.modules[0]


def test_a_named_block() -> None:
    x = ndl.Tensor([1.0])
    with ndl.scope("outer"):
        y = x + 1
        with ndl.scope("inner"):
            z = y * 2
    assert [scopes(node) for node in (y, z, z + 1)] == [["outer"], ["outer", "inner"], []]
    assert {group.title for group in viz.draw(z).graph.groups} == {"outer", "inner"}


def test_a_block_within_itself() -> None:
    block = ndl.scope("block")
    x = ndl.Tensor([1.0])
    with block:
        with block:
            y = x + 1
        z = y * 2
    assert [scopes(node) for node in (y, z, z + 1)] == [["block", "block"], ["block"], []]


def test_a_block_needs_a_name() -> None:
    with pytest.raises(TypeError, match=r"scope: needs a name or a module, got 3; write scope\(str"):
        ndl.scope(3)


def test_blocks_of_one_name_are_told_apart() -> None:
    y = ndl.Tensor([1.0])
    for i in (1, 1, 2):
        with ndl.scope(f"block {i}"):
            y = y * 2 + 1
    titles = [group.title for group in viz.draw(y).graph.groups if group.count == 1]
    assert titles == ["block 1, 1st call", "block 1, 2nd call", "block 2"]


def test_a_result_does_not_keep_its_model_alive(network) -> None:
    x = ndl.Tensor(np.ones((4, 2)))
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    gone = weakref.ref(model)
    with ndl.no_grad():
        y = model(x)
    size = len(pickle.dumps(network(x).detach()))
    del model
    assert gone() is None
    assert (y.scope.name, y.scope.owner, y.scope.outer.name) == ("BatchNorm1d", None, "Sequential")
    copy = pickle.loads(pickle.dumps(y))
    assert (copy.scope.owner, copy.scope.outer.owner) == ("BatchNorm1d", "Sequential")
    assert len(pickle.dumps(y)) < size + 300


def test_the_graph_of_a_model_that_is_gone_is_drawn_as_before() -> None:
    x = ndl.Tensor(np.ones((4, 2)))
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    y = model(x)
    names = {"x": x, "y": y, **dict(model.named_parameters())}
    before = viz.draw_gradient(y, names=names).source
    del model
    assert viz.draw_gradient(y, names=names).source == before


@pytest.mark.slow
@pytest.mark.parametrize("draw", [viz.draw, viz.draw_gradient])
def test_blocks_as_deep_as_one_likes(draw) -> None:
    y = ndl.Tensor([1.0])
    with ExitStack() as stack:
        for i in range(1200):
            stack.enter_context(ndl.scope(f"block {i}"))
            y = y * 2
    assert [x.name for x in shown(draw(y, names={"y": y}, depth=0)).variables][1] == "block 0"


def test_a_scope_ends_with_an_error() -> None:
    with pytest.raises(ValueError, match="needs shape"):
        nn.Linear(2, 3)(ndl.Tensor(np.ones((4, 5))))
    assert (ndl.Tensor([1.0]) + 1).scope is None


@pytest.mark.parametrize("lazy", [False, True])
def test_depth_closes_modules_to_boxes(network, lazy) -> None:
    x = ndl.Tensor(np.ones((4, 2)))
    with ndl.lazy(lazy):
        y = network(x)
    whole = by_name(shown(viz.draw(y, depth=0)))
    assert list(whole) == ["x", "Sequential", "y"]
    assert (whole["Sequential"].facts, whole["Sequential"].note) == ("(4, 2) → (4, 1)", "177 parameters")
    parts = by_name(shown(viz.draw(y, depth=1)))
    assert list(parts) == ["x", "Linear 1", "Tanh", "Residual 1", "Residual 2", "Linear 2", "y"]
    assert (parts["Residual 2"].facts, parts["Residual 2"].note) == ("(4, 8) → (4, 8)", "72 parameters")
    chain = [parts[name] for name in parts]
    assert all(after.operator.operands[0].key == before.key for before, after in pairwise(chain))
    assert y.cached_data is None if lazy else True


def test_depth_counts_the_same_in_the_gradient(network) -> None:
    x = ndl.Tensor(np.ones((4, 2)))
    y = network(x)
    graph = shown(viz.draw_gradient(y, depth=1))
    check_order(graph)
    gradient = by_name(graph, row=1)
    names = ["adjoint of y", "Linear 2", "Residual 2", "Residual 1", "Tanh", "Linear 1", "adjoint of x"]
    assert list(gradient) == names
    assert (gradient["Linear 1"].facts, gradient["Linear 1"].note) == ("(4, 8) → (4, 2)", "24 gradients")
    columns = {tuple(by_key(graph)[key].name for key in column) for column in graph.columns}
    assert {("Linear 1", "Linear 1"), ("Residual 2", "Residual 2"), ("x", "adjoint of x")} <= columns


def by_key(graph: Graph) -> dict[str, Variable]:
    return {x.key: x for x in graph.variables}


def test_each_depth_of_a_drawing_is_whole(network) -> None:
    y = (network(ndl.Tensor(np.ones((4, 2)))) ** 2).sum()
    graph = viz.draw_gradient(y).graph
    sizes = []
    for depth in range(5):
        part = fold(graph, at_depth(graph, depth))
        check_order(part)
        sizes.append(len(part.variables))
    assert sizes == sorted(sizes)
    assert sizes[-1] == len(graph.variables)


class Branches(nn.Module):
    """Gives each of its parts what another one of them made, or its own input, and adds up the last two."""

    def __init__(self, parts: list[tuple[int, nn.Module]]) -> None:
        self.parts = parts

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        made = [x]
        for which, part in self.parts:
            made.append(part(made[which % len(made)]))
        return made[-1] + made[-2]


SHARED = nn.Linear(2, 2)
LAYERS = st.sampled_from([lambda: nn.Linear(2, 2), nn.Tanh, lambda: SHARED]).map(lambda make: make())
MODULES = st.recursive(
    LAYERS,
    lambda part: st.lists(st.tuples(st.integers(0, 4), part), min_size=1, max_size=4).map(Branches),
    max_leaves=12,
)


@settings(max_examples=25, deadline=None)
@given(model=MODULES, data=st.data())
def test_closing_groups_loses_no_edge_and_adds_none(model, data) -> None:
    y = model(ndl.Tensor(np.ones((2, 2))))
    for graph in (viz.draw(y).graph, viz.draw_gradient(y).graph):
        keys = [group.key for group in graph.groups]
        opened = data.draw(st.sets(st.sampled_from(keys)))
        for some in (opened, *[at_depth(graph, depth) for depth in range(4)]):
            check_edges(graph, some)
            check_order(fold(graph, some))


def test_frames_hold_what_is_in_their_groups(network, boxes, clusters) -> None:
    y = network(ndl.Tensor(np.ones((4, 2))))
    svg = viz.draw(y, depth=1).svg()
    frame = clusters(svg)["Sequential"]
    within = {
        box.name
        for box in boxes(svg)
        if frame.left < box.left < box.right < frame.right and frame.top < box.top < box.bottom < frame.bottom
    }
    assert within >= {"Linear 1", "Tanh", "Residual 1", "Residual 2", "Linear 2"}
    assert not within & {"x"}


def random_module(choose: random.Random, depth: int = 0) -> nn.Module:
    kinds = ["linear", "relu", "norm"] + ["residual", "sequential"] * (depth < 3)
    kind = choose.choice(kinds)
    if kind in ("residual", "sequential"):
        parts = [random_module(choose, depth + 1) for _ in range(choose.randint(1, 3))]
        return nn.Residual(nn.Sequential(*parts)) if kind == "residual" else nn.Sequential(*parts)
    return {"linear": lambda: nn.Linear(3, 3), "relu": nn.ReLU, "norm": lambda: nn.LayerNorm1d(3)}[kind]()


def numbers(element: ElementTree.Element) -> np.ndarray:
    """The points of a shape."""
    if element.tag.endswith("ellipse"):
        cx, cy, rx, ry = (float(element.get(key)) for key in ("cx", "cy", "rx", "ry"))
        return np.array([(cx - rx, cy - ry), (cx + rx, cy + ry)])
    found = re.findall(r"-?\d+\.?\d*", element.get("d") or element.get("points"))
    return np.array(found, float).reshape(-1, 2)


def curve(points: np.ndarray) -> np.ndarray:
    """Points along a curve of Graphviz."""
    t = np.linspace(0, 1, 20)[:, None]
    weights = np.stack([(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3])
    return np.concatenate([(weights * points[i : i + 4, None]).sum(0) for i in range(0, len(points) - 3, 3)])


def check_frames(drawing: viz.Drawing) -> int:
    """Each box is inside of the frames of its groups, and beside all others; each edge between two boxes in a
    frame is inside of it. Returns how many such edges there are."""
    svg = ElementTree.fromstring(drawing.svg())
    shapes: dict[str, dict[str, np.ndarray]] = {"node": {}, "cluster": {}, "edge": {}}
    for part in svg.iter():
        kind = part.get("class")
        if kind in shapes:
            drawn = [x for x in part.iter() if x.tag.rpartition("}")[2] in ("path", "polygon", "ellipse")]
            points = [numbers(x) for x in drawn]
            key = part.get("data-key")
            shapes[kind][key] = curve(points[0]) if kind == "edge" else np.concatenate(points)
    graph = shown(drawing)
    around: dict[str, set[str]] = {"": set()}
    for group in graph.groups:
        around[group.key] = around[group.parent] | {group.key}
    home = {x.key: around[x.group] for x in graph.variables}
    frames = {f"cluster_{group.key}": group.key for group in graph.groups}
    inside = {}
    for key, points in shapes["node"].items():
        inside[key] = home.get(key.removesuffix("_op").rpartition("_for_")[2], set())
        low, high = points.min(0), points.max(0)
        for frame, group in frames.items():
            first, last = shapes["cluster"][frame].min(0), shapes["cluster"][frame].max(0)
            if group in inside[key]:
                assert first[0] < low[0] < high[0] < last[0], (key, frame)
                assert first[1] < low[1] < high[1] < last[1], (key, frame)
            else:
                assert (high < first).any() or (low > last).any(), (key, frame)
    count = 0
    for key, points in shapes["edge"].items():
        tail, head = key.split("->")
        for group in inside[tail] & inside[head]:
            count += 1
            frame = shapes["cluster"][f"cluster_{group}"]
            out = max(*(frame.min(0) - points.min(0)), *(points.max(0) - frame.max(0)))
            assert out < 0, (key, group, out)
    return count


@pytest.mark.parametrize(
    "seeds",
    [range(2), *[pytest.param(range(i, i + 50), marks=pytest.mark.slow) for i in (2, 52)]],
    ids=str,
)
def test_all_that_a_module_computes_is_inside_of_its_frame(seeds) -> None:
    count = 0
    for seed in seeds:
        choose = random.Random(seed)
        model = nn.Sequential(*[random_module(choose) for _ in range(3)], nn.Linear(3, 3))
        y = model(ndl.Tensor(np.ones((2, 3)))).sum()
        draw = choose.choice([viz.draw, viz.draw_gradient])
        drawing = draw(
            y, depth=choose.randint(1, 5), rankdir=choose.choice(["LR", "TB"]), show=["shape"], width=1e6
        )
        count += check_frames(drawing)
    assert count


@pytest.mark.parametrize("draw", [viz.draw, viz.draw_gradient])
def test_a_skip_connection_is_inside_of_its_residual(draw) -> None:
    block = nn.Residual(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    y = nn.Sequential(nn.Linear(3, 3), block, nn.Linear(3, 3))(ndl.Tensor(np.ones((2, 3)))).sum()
    drawing = draw(y, depth=5, width=1e6)
    graph = shown(drawing)
    picture = DrawnGraph(graph, drawing.style)
    frames = {frame.key: frame for frame in picture.layout.frames}
    for residual in (group for group in graph.groups if group.title == "Residual"):
        (plus,) = (x for x in graph.variables if x.group == residual.key and x.operator.symbol == "+")
        ways = [
            curve(np.array(way))
            for (edge, _), way in zip(picture.edges, picture.layout.curves, strict=True)
            if edge.head == f"{plus.key}_op" and picture.nodes[edge.tail][0].group != residual.key
        ]
        (x, y) = max(ways, key=lambda way: np.ptp(way[:, 0])).T  # the skip is the longest
        frame = frames[residual.key]
        beside = (frame.left < x) & (x < frame.right)
        assert beside.any()
        assert ((frame.bottom < y) & (y < frame.top))[beside].all()
    assert check_frames(drawing)


def test_what_a_group_holds(network) -> None:
    y = network(ndl.Tensor(np.ones((4, 2))))
    graph = viz.draw(y).graph
    residual = next(group for group in graph.groups if group.title == "Residual 1")
    part = inside(graph, [residual.key])
    check_order(part)
    kinds = [(x.name, x.kind, x.group) for x in part.variables]
    assert kinds == [("Sequential", "group", ""), ("n12", "intermediate", "")]
    assert edges(part) == {(part.variables[0].key, part.variables[1].key)}  # the skip comes from outside


def test_what_a_group_and_its_twin_hold(network) -> None:
    """Each has what the other one has, in the same columns, and closed groups are the same everywhere."""
    graph = viz.draw_gradient(network(ndl.Tensor(np.ones((4, 2))))).graph
    titles = {group.key: group.title for group in graph.groups}
    together = twins(graph)
    for keys in together.values():
        assert len(keys) == 2
        assert titles[keys[0]] == titles[keys[1]]
        part = inside(graph, keys)
        check_order(part)
        assert {x.row for x in part.variables} == {0, 1}
    outermost = next(keys for key, keys in together.items() if titles[key] == "Sequential")
    columns = {tuple(by_key(inside(graph, outermost))[key].name for key in column)
               for column in inside(graph, outermost).columns}  # fmt: skip
    assert {("Linear 1", "Linear 1"), ("Residual 2", "Residual 2")} <= columns


def test_a_closed_group_says_the_same_inside_another(network) -> None:
    graph = viz.draw_gradient(network(ndl.Tensor(np.ones((4, 2))))).graph
    whole = {x.key: (x.facts, x.note) for x in fold(graph, at_depth(graph, 1)).variables if x.kind == "group"}
    outer = [group.key for group in graph.groups if not group.parent]
    parts = {
        x.key: (x.facts, x.note) for key in outer for x in inside(graph, [key]).variables if x.kind == "group"
    }
    assert parts == whole


def test_a_module_that_only_calls_another_shares_its_group() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

        def forward(self, x: ndl.Tensor) -> ndl.Tensor:
            return self.layers(x)

    titles = [group.title for group in viz.draw(Net()(ndl.Tensor([[1.0, 2.0]]))).graph.groups]
    assert titles == ["Net", "Linear", "ReLU"]


def test_numbers_follow_the_order_of_the_calls() -> None:
    first, second = nn.Linear(2, 3), nn.Linear(3, 1)
    x = ndl.Tensor(np.ones((4, 2)))
    second(ndl.tanh(first(x))).sum().backward()
    sizes = {x.name: x.note for x in shown(viz.draw_gradient(x.grad, depth=1)).variables if x.kind == "group"}
    assert sizes == {
        "Linear 1": "9 gradients",
        "Linear 2": "3 gradients",
    }  # the last bias does not lead there


def test_calls_of_one_module_are_told_apart() -> None:
    layer = nn.Linear(2, 2)
    y = layer(layer(ndl.Tensor([[1.0, 2.0]])))
    titles = [group.title for group in viz.draw(y).graph.groups]
    assert titles == ["Linear, 1st call", "Linear, 2nd call"]


def test_modules_that_follow_each_other_and_are_alike_are_one_box() -> None:
    blocks = [nn.Residual(nn.Sequential(nn.Linear(8, 8), nn.ReLU())) for _ in range(4)]
    y = nn.Sequential(nn.Linear(2, 8), *blocks, nn.Linear(8, 1))(ndl.Tensor(np.ones((5, 2))))
    parts = by_name(shown(viz.draw(y, depth=1)))
    assert list(parts)[1:-1] == ["Linear 1", "4 times Residual", "Linear 2"]
    assert parts["4 times Residual"].note == "288 parameters"
    assert "Residual 4" in {group.title for group in shown(viz.draw(y, depth=2)).groups}


def test_a_pattern_of_modules_is_one_box() -> None:
    layers = [part for _ in range(3) for part in (nn.Linear(8, 8), nn.ReLU())]
    y = nn.Sequential(*layers)(ndl.Tensor(np.ones((5, 8))))
    assert list(by_name(shown(viz.draw(y, depth=1))))[1:-1] == ["3 times Linear, ReLU"]


@pytest.mark.parametrize("depth", [0, 1])
def test_numbers_of_parameters_are_right_where_most_layers_are_left_out(depth) -> None:
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(60)))
    drawing = viz.draw_gradient(model(ndl.Tensor([[1.0, 2.0, 3.0]])).sum(), depth=depth)
    assert len(drawing.graph.variables) < 60
    boxes = [x for x in shown(drawing).variables if x.kind == "group"]
    for row in (0, 1):
        assert sum(box.parameters for box in boxes if box.row == row) == 60 * 12
    if depth == 0:
        assert [box.note for box in boxes] == ["720 parameters", "720 gradients"]


def test_modules_of_other_shapes_are_not_alike() -> None:
    sizes = [2, 3, 4, 5, 6]
    layers = [nn.Linear(n, m) for n, m in pairwise(sizes)]
    y = nn.Sequential(*layers)(ndl.Tensor(np.ones((5, 2))))
    names = list(by_name(shown(viz.draw(y, depth=1))))
    assert names[1:-1] == ["Linear 1", "Linear 2", "Linear 3", "Linear 4"]


@pytest.mark.parametrize(
    ("uses", "alike"),
    [
        ([0, 0, 0, 0, 0], 5),
        ([0, 1, 2, 3, 4], 5),
        ([0, 0, 1, 2, 3], 5),  # each is given what the one before the last made
        ([0, 0, 0, 0, 2], 4),
        ([0, 0, 0, 2, 1], 3),
        ([0, 1, 1, 1, 1], 4),  # the first is not like those that are given what it made
    ],
)
def test_modules_are_alike_as_far_as_they_are_given_alike_things(uses, alike) -> None:
    """Each module is given what the one of that number made; 0 is the input."""
    made = [ndl.Tensor(np.ones((2, 2)))]
    for i in uses:
        made.append(nn.Linear(2, 2)(made[i]))
    assert [group.count for group in viz.draw(made).graph.groups if group.count > 1] == [alike]


def test_a_recurrent_network_by_time_step() -> None:
    rnn = nn.RNN(3, 4, 1)
    outputs, _ = rnn(ndl.Tensor(np.ones((6, 2, 3))))
    graph = viz.draw(outputs).graph
    titles = [group.title for group in graph.groups]
    assert titles == ["RNN", "RNNCell", "t = 1 … 6", *[f"t = {t}" for t in range(1, 7)]]
    steps = [group.key for group in graph.groups if group.title.startswith("t = ") and group.count == 1]
    assert all(any(x.group == key for x in graph.variables) for key in steps)
    assert "t = 1 … 6" in by_name(shown(viz.draw(outputs, depth=2)))
    assert {f"t = {t}" for t in range(1, 7)} <= set(by_name(shown(viz.draw(outputs, depth=3))))


@pytest.mark.parametrize("indexed", [True, False])
def test_cells_in_a_loop_of_named_blocks(indexed: bool) -> None:
    cell = nn.RNNCell(2, 4)
    whole = ndl.Tensor(np.zeros((5, 1, 2)))
    X = whole if indexed else [ndl.Tensor(np.zeros((1, 2))) for _ in range(5)]
    h = ndl.Tensor(np.zeros((1, 4)))
    for t in range(5):
        with ndl.scope(f"t = {t + 1}"):
            h = cell(X[t], h)
    drawing = viz.draw(h)
    check_order(drawing.graph)
    assert [group.title for group in drawing.graph.groups if group.count == 5] == [
        "t = 1 … 5" if indexed else "t = 1 … 5 › RNNCell"
    ]
    for depth in range(4):
        check_order(shown(viz.draw_gradient(h, depth=depth)))


def test_a_loop_in_short(parse) -> None:
    x, total = ndl.Tensor([2.0]), ndl.Tensor([0.0])
    for _ in range(100):
        total = total + x * x
    graph = shown(viz.draw(total))
    check_order(graph)
    box = by_name(graph)["98 more of these"]
    assert (box.kind, box.note) == ("group", "each: ×, +")
    assert len(graph.variables) == 7
    assert by_name(graph)["total"].value == (("[400]",),)
    assert len(shown(viz.draw_gradient(total)).variables) < 30
    assert len(viz.draw(total, limit=1000).graph.variables) == 202


@pytest.mark.parametrize("rounds", [8, 9])
def test_a_loop_in_a_large_graph_is_short_however_long(rounds) -> None:
    model = nn.Linear(2, 3)
    x, total = ndl.Tensor([[1.0, 2.0]]), ndl.Tensor([0.0])
    for _ in range(rounds):
        total = total + nn.ReLU()(model(x)).sum()
    drawing = viz.draw(total)
    assert len(drawing.graph.variables) == 15 < len(viz.draw(total, limit=1000).graph.variables)
    check_edges(drawing.graph, drawing.opened)


@pytest.mark.parametrize("rounds", [20, 39])
def test_a_loop_in_a_small_graph_is_whole(rounds) -> None:
    y = ndl.Tensor([1.0])
    for _ in range(rounds):
        y = y * 1.01
    assert len(shown(viz.draw(y)).variables) == rounds + 1


def test_by_default_no_more_is_open_than_one_can_read() -> None:
    model = nn.Sequential(*(nn.Residual(nn.Sequential(nn.Linear(2, 2), nn.ReLU())) for _ in range(5)))
    drawing = viz.draw_gradient(model(ndl.Tensor([[1.0, 2.0]])).sum())
    assert len(shown(drawing).variables) <= 64 < len(drawing.graph.variables)
    assert any(x.kind == "group" for x in shown(drawing).variables)


def test_networks_beside_each_other_are_closed_if_their_parts_are_too_many() -> None:
    networks = [nn.Sequential(*(nn.Linear(n, n + 1) for n in range(1, last))) for last in range(14, 19)]
    x = ndl.Tensor([[1.0]])
    drawing = viz.draw(sum((network(x).sum() for network in networks), x))
    assert {f"Sequential {n}" for n in range(1, 6)} <= set(by_name(shown(drawing)))
    assert len(shown(drawing).variables) == 16


@pytest.mark.slow
def test_ten_thousand_nodes_in_short() -> None:
    y = ndl.Tensor([1.0])
    for _ in range(10_000):
        y = y * 1.0001
    assert len(shown(viz.draw(y)).variables) == 4
    assert len(shown(viz.draw_gradient(y)).variables) == 8
    assert unescape(viz.draw(y).svg()).count("9,998 more of these") == 1


def test_a_title_says_that_not_all_is_drawn() -> None:
    x = y = ndl.Tensor([1.0])
    for _ in range(1200):
        y = y * 1.0
    assert re.fullmatch(
        r"<computational graph of y, in part: \d\d? variables, \d\d? operators>", repr(viz.draw(y))
    )
    assert repr(viz.draw(y, limit=5)) == "<computational graph of y, in part: 5 variables, 5 operators>"
    assert repr(viz.draw(x + 1)) == "<computational graph: 2 variables, 1 operator>"


def test_what_is_not_repeated_is_cut_at_the_limit() -> None:
    y = ndl.Tensor(np.ones((1, 1)))
    for n in np.random.randint(1, 30, 1500):
        y = y.reshape((1,) * n)
    graph = shown(viz.draw(y))
    assert graph.left_out > 0
    assert len(graph.variables) == 1001


@pytest.mark.slow
def test_resnet9_at_depth_1() -> None:
    loss = nn.SoftmaxLoss()(ResNet9()(ndl.Tensor(np.zeros((2, 3, 32, 32)))), ndl.Tensor([1, 2]))
    for drawing in (viz.draw(loss, depth=1), viz.draw_gradient(loss, depth=1)):
        graph = shown(drawing)
        check_order(graph)
        check_edges(drawing.graph, drawing.opened)
        assert {"Residual 1", "Residual 2", "Linear 1", "SoftmaxLoss"} <= set(by_name(graph))
        assert len(graph.variables) <= 27  # the labels are one of them


@pytest.mark.parametrize(
    "kind",
    [*[pytest.param(kind, marks=pytest.mark.slow) for kind in ("rnn", "lstm", "gru")], "transformer"],
)
def test_language_models_fold(kind) -> None:
    model = LanguageModel(8, 20, 16, 4, kind)
    out, _ = model(ndl.Tensor(np.zeros((12, 2))))
    graph = viz.draw_gradient(out.sum()).graph
    for depth in range(5):
        check_order(fold(graph, at_depth(graph, depth)))
        check_edges(graph, at_depth(graph, depth))


@pytest.mark.parametrize("depth", [-1, 1.5, True, "1"])
def test_a_depth_that_is_none(depth) -> None:
    with pytest.raises(ValueError, match="depth: needs a whole number of at least 0"):
        viz.draw(ndl.Tensor([1.0]), depth=depth)
