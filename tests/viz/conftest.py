"""What the tests of the drawings share: the lectures' example, and ways to read DOT and SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

import needle as ndl

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def example() -> SimpleNamespace:
    """v1..v4 of the lectures: v4 = exp(v1) * (exp(v1) + 1)."""
    v1 = ndl.Tensor([0.0])
    v2 = ndl.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    return SimpleNamespace(v1=v1, v2=v2, v3=v3, v4=v4)


@dataclass
class Dot:
    """DOT text, taken apart: labels by node (markup removed), and edges with their attributes."""

    labels: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Edges as pairs of labels, in the direction of the arrow, sorted."""
        return sorted((self.labels[tail], self.labels[head]) for tail, head, _ in self.edges)


@pytest.fixture
def parse():
    """A function that takes DOT text apart."""

    def parse(source: str) -> Dot:
        dot = Dot()
        for line in source.splitlines():
            edge = re.match(r"\s*(\w+) -> (\w+)(.*);$", line)
            node = re.match(r"\s*([na]\d+\w*|more) \[(.*)\];$", line)
            if edge and not edge[1].startswith("spine"):
                ends = (edge[2], edge[1]) if 'dir="back"' in edge[3] else (edge[1], edge[2])
                dot.edges.append((*ends, edge[3]))
            elif node:
                label = re.search(r'label=(?:"([^"]*)"|<(.*)>)', node[2])
                dot.nodes[node[1]] = node[2]
                if label[1] is not None:
                    dot.labels[node[1]] = label[1]
                else:
                    text = re.sub(r"</td>|&#160;", " ", label[2])
                    dot.labels[node[1]] = " ".join(re.sub(r"<[^>]*>", "", text).split())
        return dot

    return parse


@dataclass(frozen=True)
class Box:
    """A node of an SVG: what is written in it, and where it is."""

    texts: list[tuple[str, float, float]]  # text, left, right
    left: float
    right: float
    top: float
    bottom: float

    @property
    def name(self) -> str:
        return self.texts[0][0]


@pytest.fixture
def boxes():
    """A function that finds the nodes of an SVG."""

    def boxes(svg: str) -> list[Box]:
        return [_box(group) for group in _groups(svg, "node") if group.find(f".//{SVG}text") is not None]

    return boxes


@pytest.fixture
def clusters():
    """A function that finds the frames of an SVG, by title."""

    def clusters(svg: str) -> dict[str, Box]:
        return {box.name: box for box in map(_box, _groups(svg, "cluster"))}

    return clusters


def _groups(svg: str, kind: str) -> list[ElementTree.Element]:
    return [g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if g.get("class") == kind]


def _box(group: ElementTree.Element) -> Box:
    texts = []
    for text in group.iter(f"{SVG}text"):
        x, width = float(text.get("x")), float(text.get("textLength", 0))
        left = x - {"start": 0, "middle": width / 2, "end": width}[text.get("text-anchor")]
        texts.append((text.text, left, left + width))
    ellipse = group.find(f"{SVG}ellipse")
    if ellipse is not None:
        cx, cy, rx, ry = (float(ellipse.get(key)) for key in ("cx", "cy", "rx", "ry"))
        return Box(texts, cx - rx, cx + rx, cy - ry, cy + ry)
    path = group.find(f"{SVG}path")
    outline = path.get("d") if path is not None else group.find(f"{SVG}polygon").get("points")
    points = [float(number) for number in re.findall(r"-?\d+\.?\d*", outline)]
    return Box(texts, min(points[::2]), max(points[::2]), min(points[1::2]), max(points[1::2]))
