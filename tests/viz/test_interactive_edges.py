"""The page and the static drawing say the same, whatever groups are open.

Random graphs are drawn, and clicks open and close random groups. The boxes and edges that can be seen in
Chromium, read from where they are on the screen, are those of `fold`; and each box is inside of the frames of
its open groups, and of no other.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

import needle as ndl
import viz
from needle.modes import lazy
from viz.graph_data import LEFT_OUT, Graph
from viz.groups import beside, fold, twins

# What can be seen: boxes by key, and edges with the box at each end, the label, and whether it is dashed.
# An end is at the box whose border is nearest.
SEEN = """() => {
    const {shadowRoot} = document.querySelector("[data-needle-drawing]")
    const seen = (selector) => [...shadowRoot.querySelectorAll(`.view ${selector}`)]
        .filter((element) => element.checkVisibility({opacityProperty: true}))
        .filter((element) => element.getClientRects().length)
    const shapes = "ellipse, path, polygon, polyline"
    const nodes = seen(".node").map((node) => {
        const own = [...node.querySelectorAll(shapes)].filter((shape) => !shape.closest(".sign"))
        const boxes = own.map((shape) => shape.getBoundingClientRect())
        const [left, top] = ["left", "top"].map((side) => Math.min(...boxes.map((box) => box[side])))
        const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...boxes.map((box) => box[side])))
        const round = node.querySelector("ellipse") !== null
        return {key: node.dataset.key, round, left, right, top, bottom}
    })
    const away = ([x, y], {left, right, top, bottom, round}) => {
        const [cx, cy] = [(left + right) / 2, (top + bottom) / 2]
        if (round) return Math.abs(Math.hypot(x - cx, y - cy) - (right - left) / 2)
        const [dx, dy] = [Math.abs(x - cx) - (right - left) / 2, Math.abs(y - cy) - (bottom - top) / 2]
        return dx > 0 && dy > 0 ? Math.hypot(dx, dy) : Math.abs(Math.max(dx, dy))
    }
    const onScreen = (element, x, y) => {
        const at = new DOMPoint(x, y).matrixTransform(element.getScreenCTM())
        return [at.x, at.y]
    }
    const corners = (arrow) => (arrow.getAttribute("points") ?? "0,0").trim().split(" ")
        .map((pair) => onScreen(arrow, ...pair.split(",").map(Number)))
    const apart = ([x, y], [u, v]) => Math.hypot(x - u, y - v)
    const edges = seen(".edge").flatMap((edge) => {
        const line = edge.querySelector("path")
        const arrow = edge.querySelector("polygon, .arrow")
        const length = line.getTotalLength()
        const along = Array.from({length: 41}, (_, i) => {
            const {x, y} = line.getPointAtLength(length * i / 40)
            return onScreen(line, x, y)
        })
        const points = arrow ? corners(arrow) : [along.at(-1)] // a cut has none
        if (apart(along[0], points[0]) < apart(along.at(-1), points[0])) along.reverse()
        const tip = points.reduce((a, b) => apart(b, along.at(-1)) > apart(a, along.at(-1)) ? b : a)
        const ends = [along[0], tip].map((point) => {
            const near = nodes.map((node) => [away(point, node), node.key]).sort((a, b) => a[0] - b[0])
            return near[0][0] < 4 ? near[0][1] : `nothing, ${near[0]}`
        })
        const over = nodes.filter(({key, left, right, top, bottom}) => !ends.includes(key) && along.some(
            ([x, y]) => left + 2 < x && x < right - 2 && top + 2 < y && y < bottom - 2))
        const text = edge.querySelector("text")?.textContent.trim() ?? ""
        const dashed = getComputedStyle(line).strokeDasharray !== "none"
        return [{ends, text, dashed, over: over.map(({key}) => key)}]
    })
    const frames = seen("[data-frame]").map((frame) => {
        const {left, right, top, bottom} = frame.querySelector(".frame").getBoundingClientRect()
        const around = nodes.filter((node) =>
            node.left > left && node.right < right && node.top > top && node.bottom < bottom)
        const beside = nodes.filter((node) =>
            node.right < left || node.left > right || node.bottom < top || node.top > bottom)
        const cut = nodes.filter((node) => !around.includes(node) && !beside.includes(node))
        return {group: frame.dataset.frame, holds: around.map(({key}) => key), cuts: cut.map(({key}) => key)}
    })
    return {nodes: nodes.map(({key}) => key), edges, frames}
}"""


def expected(graph: Graph) -> tuple[Counter, Counter]:
    """The boxes of a graph, and its edges as they are drawn."""
    nodes, edges = Counter(), Counter()
    row = {x.key: x.row for x in graph.variables}
    for x in graph.variables:
        has_operator = x.operator is not None and bool(x.operator.symbol)
        into = f"{x.key}_op" if has_operator else x.key
        nodes.update({x.key, into})
        if has_operator:
            edges[into, x.key, "", False] += 1
        for operand in x.operands:
            again = row[operand.key] != x.row and row[operand.key] < graph.forward_rows
            edges[operand.key, into, operand.label, again or operand.key == LEFT_OUT] += 1
        if row.get(x.cut_from) == x.row:
            edges[x.cut_from, x.key, "✂", True] += 1
    return nodes, edges


def held(graph: Graph, opened: set[str]) -> dict[str, set[str]]:
    """What the frame of each open group holds, if the groups around it are open too."""
    around = {"": ()}
    for group in graph.groups:
        around[group.key] = (*around[group.parent], group.key)
    frames = {key: set() for key in opened if opened.issuperset(around[key])}
    home = {x.key: x.group for x in graph.variables}
    outside = beside(graph)
    for x in fold(graph, opened).variables:
        path = around[x.key][:-1] if x.key in around else around[home[x.key]]
        closed = [i for i, key in enumerate(path) if key not in opened]
        if closed:  # it is drawn beside its group
            path = () if outside[x.key] else path[: closed[0]]
        for key in path:
            has_operator = x.operator is not None and x.operator.symbol
            frames[key].update({x.key, f"{x.key}_op" if has_operator else x.key})
    return frames


class Maker:
    """Makes random graphs: blocks in blocks, loops, values used twice, operands whose order matters."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.made = [ndl.Tensor([float(i)], requires_grad=i != 1) for i in range(self.random.randint(2, 4))]
        self.left = self.random.randint(4, 11)

    def value(self) -> ndl.Tensor:
        return self.random.choice(self.made[-5:] if self.random.random() < 0.7 else self.made)

    def step(self) -> None:
        self.left -= 1
        a, b = self.value(), self.value()
        kind = self.random.choice(["÷", "−", "−", "÷", "+", "×", "tanh", "exp", "stack", "itself", "cut"])
        if kind == "stack":
            parts = [self.value() for _ in range(self.random.randint(2, 6))]
            self.made.append(ndl.ops.summation(ndl.ops.stack(parts, 0), axes=(0,)))
            return
        self.made.append({
            "÷": lambda: a / b, "−": lambda: a - b, "+": lambda: a + b, "×": lambda: a * b,
            "tanh": lambda: ndl.ops.tanh(a), "exp": lambda: ndl.ops.exp(a), "itself": lambda: a / a,
            "cut": lambda: a.detach() * a,
        }[kind]())  # fmt: skip

    def block(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            if self.left <= 0:
                return
            chance = self.random.random()
            if depth < 3 and chance < 0.4:
                with ndl.scope(self.random.choice("fgh")):
                    self.block(depth + 1)
            elif depth < 3 and chance < 0.5:
                x, y = self.value(), self.value()
                for _ in range(self.random.randint(3, 4)):
                    with ndl.scope("layer"):
                        x = ndl.ops.tanh(x - y) if chance < 0.45 else x / y
                    self.left -= 1
                self.made.append(x)
            else:
                self.step()

    def output(self) -> ndl.Tensor:
        self.block(0)
        while self.left > 0:
            self.block(0)
        if self.random.random() < 0.7:
            return self.made[-1] - self.made[-2]
        with ndl.scope("last"):
            return self.made[-1] / self.made[-2]


def random_drawing(seed: int) -> viz.Drawing:
    with lazy():
        maker = Maker(seed)
        output = maker.output()
        draw = viz.draw_gradient if seed % 3 and output.requires_grad else viz.draw
        return draw(
            output, depth=0, legend=False, rankdir=maker.random.choice(["LR", "LR", "LR", "TB", "RL"])
        )


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page(viewport={"width": 1600, "height": 1200}, reduced_motion="reduce")
    yield page
    page.close()


def check(page, drawing: viz.Drawing, opened: set[str]) -> None:
    seen = page.evaluate(SEEN)
    nodes, edges = expected(fold(drawing.graph, opened))
    assert Counter(seen["nodes"]) == nodes
    assert Counter((*edge["ends"], edge["text"], edge["dashed"]) for edge in seen["edges"]) == edges
    assert not [edge for edge in seen["edges"] if edge["over"]]
    assert {frame["group"]: set(frame["holds"]) for frame in seen["frames"]} == held(drawing.graph, opened)
    assert not [frame for frame in seen["frames"] if frame["cuts"]]


def check_walk(page, drawing: viz.Drawing, chance: random.Random, clicks: int) -> None:
    """Click on groups that can be seen, and look each time."""
    page.set_content(drawing.html())
    page.wait_for_function(
        "() => document.querySelector('[data-needle-drawing]').shadowRoot"
        "?.querySelector('.world').getAttribute('transform')"
    )
    together = twins(drawing.graph)
    opened: set[str] = set()
    check(page, drawing, opened)
    buttons = page.locator("[data-toggle]:visible")
    for _ in range(clicks):
        keys = buttons.evaluate_all(
            "all => all.map(({dataset, ariaExpanded}) => [dataset.toggle, ariaExpanded])"
        )
        if not keys:
            return
        closed = [key for key, expanded in keys if expanded == "false"]
        key = chance.choice(closed if closed and chance.random() < 0.75 else [key for key, _ in keys])
        page.locator(f'[data-toggle="{key}"]:visible').dispatch_event("click")
        opened ^= set(together[key])
        check(page, drawing, opened)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("seeds", [range(2), range(2, 62)], ids=str)
def test_what_is_seen_is_what_fold_says(page, seeds) -> None:
    for seed in seeds:
        try:
            check_walk(page, random_drawing(seed), random.Random(seed), 5)
        except (AssertionError, viz.CannotRender) as error:
            error.add_note(f"of random_drawing({seed})")
            raise
