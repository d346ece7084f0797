"""A drawing as a piece of a web page that you can pan, zoom and search, and whose groups open.

The piece holds the picture as an image, which shows where scripts do not run, and the data of
``static/drawing.js``: one picture with all groups closed, and one of the inside of each group, each laid out
once. It loads nothing else, so it works in a notebook that was saved, sent or exported, and in a page on
disk.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from .dot import CUT, to_dot
from .facts import in_words
from .graph_data import LEFT_OUT, Graph, Variable
from .graph_reader import MOST
from .groups import MOST_EDGES, at_depth, beside, inside, twins
from .render import render_all, tidy_svg
from .style import FOLLOW, FONT, Style, dark_rules
from .text import elide

__all__ = ["fragment"]

MOST_VARIABLES = (
    1000  # inside all groups together, unless limit= is higher: their layout takes a second or two
)

_STATIC = Path(__file__).parent / "static"
_MODULES = (
    "picture.js",
    "sheet.js",
    "ways.js",
    "edges.js",
    "hover.js",
    "drawing.js",
)  # each after those that it imports


def fragment(
    graph: Graph,
    picture: str,
    title: str,
    style: Style,
    *,
    legend: bool,
    rankdir: str,
    opened: Collection[str],
    fitting: bool = False,
) -> str:
    """HTML that shows a drawing: interactive with its script, an image without it.

    Parameters
    ----------
    graph : Graph
        With all its groups.
    picture : str
        The image: an ``<svg>`` element of the graph in which the groups in `opened` are open.
    title : str
    style : Style
    legend, rankdir
        As for `to_dot`.
    opened : collection of str
        The keys of the groups that are open at first.
    fitting : bool
        Whether to open only as many levels of modules as can be read in the page's width.

    Raises
    ------
    CannotRender
        If Graphviz is missing or fails.
    """
    data = {
        "title": title,
        "pictures": _pictures(graph, picture, title, style, legend, rankdir),
        "groups": _groups(graph),
        "variables": {x.key: (x.group, x.row) for x in graph.variables},
        "about": {x.key: _about(x, graph) for x in graph.variables if x.requires_grad is not None},
        "rounds": {
            x.key: [[graph.steps[key] for key in computed if key in graph.steps] for computed in x.rounds]
            for x in graph.variables
            if x.rounds and graph.steps
        },
        "uses": _uses(graph) if graph.groups else [],
        "beside": beside(graph),
        "several": MOST_EDGES,
        "rankdir": rankdir,
        "open": sorted(opened),
        "levels": _levels(graph, opened) if fitting else [],
        "colours": {
            "ground": style.css(style.background),
            "text": style.css(style.text),
            "quiet": style.css(style.quiet),
            "line": style.css(style.forward.line),
            "edge": style.css(style.edge),
            "failed": style.css(style.boxes["failed"].line),
            "cut": style.css(style.cut),
            "hover": style.css(style.boxes["intermediate"].fill),
            "accent": style.css(style.reuse),
            "back": style.css(style.backward.operator),
            "font": FONT,
        },
        "dark": dark_rules(style.twins),
    }
    packed = zlib.compress(json.dumps(data, ensure_ascii=False).encode(), 9)
    version, script = _script()
    image = base64.b64encode(picture.encode()).decode()
    return (
        f"<style>{FOLLOW}</style>"
        f'<div {style.attribute} data-needle-drawing="{version}" data-lm-suppress-shortcuts="true" '
        f'data-needle-data="{base64.b64encode(packed).decode()}">'
        f'<img alt="{html.escape(title)}" style="max-width:100%" '
        f'src="data:image/svg+xml;base64,{image}"></div>'
        f'<script type="module">\n{script}</script>'
    )


def _pictures(
    graph: Graph, picture: str, title: str, style: Style, legend: bool, rankdir: str
) -> dict[str, str]:
    """The whole with all groups closed, at the key ``""``, and the insides of groups.

    A group and its twins have one picture, at the key of the first of them. So a variable and its adjoints
    stand in one column there too. At the key "legend" is the legend for all of them; in a drawing without
    groups it is in the whole.
    """
    if not graph.groups:
        return {"": picture}
    graphs = {"": inside(graph, [""])}
    left = max(MOST_VARIABLES, graph.limit if graph.limit < MOST else 0)
    ways = _ways(graph)
    together = dict.fromkeys(twins(graph).values())
    for keys in sorted(together, key=lambda keys: min(len(ways[key]) for key in keys)):
        content = inside(graph, keys)
        if len(content.variables) <= left:
            left -= len(content.variables)
            graphs[keys[0]] = content
    sources = {key: to_dot(part, style, legend=False, rankdir=rankdir) for key, part in graphs.items()}
    if legend:
        sources["legend"] = _legend(graphs, style, rankdir)
    svgs = (tidy_svg(svg.decode(), title, style) for svg in render_all(list(sources.values()), "svg"))
    return dict(zip(sources, svgs, strict=True))


def _legend(graphs: Mapping[str, Graph], style: Style, rankdir: str) -> str:
    """The DOT text of a legend alone, for several graphs together."""
    whole = graphs[""]
    kinds = {x.kind: replace(x, operator=None) for part in graphs.values() for x in part.variables}
    known = {x.kind for x in whole.variables}
    others = [x for kind, x in kinds.items() if kind not in known]
    source = to_dot(replace(whole, variables=(*whole.variables, *others)), style, rankdir=rankdir)
    return "\n".join([*source.splitlines()[:2], "}"])  # the legend is the label of the graph


def _groups(graph: Graph) -> dict[str, dict[str, object]]:
    """What the script needs to know about each group.

    That is its title, the group around it, its row, how many variables it has, and the groups that open and
    close with it. The first of these has the picture of all of them.
    """
    size = Counter(variable.group for variable in graph.variables)
    for group in reversed(graph.groups):
        size[group.parent] += size[group.key]
    together = twins(graph)
    return {
        group.key: {
            "title": group.title, "parent": group.parent, "row": group.row,
            "size": size[group.key], "twins": together[group.key],
        }
        for group in graph.groups
    }  # fmt: skip


def _about(x: Variable, graph: Graph) -> dict[str, object]:
    """What is shown of a node on hover, beside what is in its box."""
    about: dict[str, object] = {"name": elide(x.name), "facts": in_words(x)}
    if x.numbers:
        about["numbers"] = x.numbers
    if x.shape is not None and len(x.shape) > 2:
        about["part"] = "its first matrix"
    if x.line is not None:
        about["line"] = x.line
        about["of"] = "the gradient of" if x.row >= graph.forward_rows else ""
    return about


def _uses(graph: Graph) -> list[tuple[str, str, str, str]]:
    """Each use of a variable by an operator: the variable, the user, the operand's label, the line's look.

    The script makes the edges of `fold` from them. Among them are the places where a variable was cut from
    another one.
    """
    by_key = {x.key: x for x in graph.variables}
    uses = []
    for user in graph.variables:
        for operand in user.operands:
            row = by_key[operand.key].row
            again = row != user.row and row < graph.forward_rows
            look = "again" if again else "back" if user.row else ""
            if user.kind == "failed":
                look += " failed"
            if operand.key == LEFT_OUT:
                look += " rest"
            uses.append((operand.key, user.key, operand.label, look))
        source = by_key.get(user.cut_from)
        if source is not None and source.row == user.row:
            uses.append((source.key, user.key, CUT, "cut"))
    return uses


def _levels(graph: Graph, opened: Collection[str]) -> list[list[str]]:
    """The groups that are open at each depth, up to those in `opened`."""
    levels: list[list[str]] = []
    while len(levels) < len(graph.groups) and set(levels[-1] if levels else ()) != set(opened):
        levels.append(sorted(at_depth(graph, len(levels) + 1)))
    return levels


def _ways(graph: Graph) -> dict[str, list[str]]:
    """For each group, the groups from the outermost one to itself; none for the whole."""
    ways: dict[str, list[str]] = {"": []}
    for group in graph.groups:
        ways[group.key] = [*ways[group.parent], group.key]
    return ways


@cache
def _script() -> tuple[str, str]:
    """The script and its version, so that a drawing uses the script that it came with."""
    lines = (line.strip() for name in _MODULES for line in (_STATIC / name).read_text("utf-8").splitlines())
    left_out = ("//", "import ")  # one script holds all modules
    short = "\n".join(
        line.removeprefix("export ") for line in lines if line and not line.startswith(left_out)
    )
    looks = json.dumps((_STATIC / "drawing.css").read_text("utf-8")).replace("<", "\\u003c")
    version = sha256((short + looks).encode()).hexdigest()[:8]
    return version, f'{short}\nstart("{version}", {looks});\n'
