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
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

from .dot import to_dot
from .graph_data import Graph, Operand, Operator, Variable
from .graph_reader import MOST
from .groups import at_depth, fold, inside
from .render import render_all, tidy_svg
from .style import FONT, Style

__all__ = ["fragment", "page"]

MOST_VARIABLES = (
    1000  # inside all groups together, unless limit= is higher: their layout takes a second or two
)
MOST_LINKS = 60  # between rows: if there may be more, operators in groups name what they take from other rows

_STATIC = Path(__file__).parent / "static"
_MODULES = ("picture.js", "sheet.js", "links.js", "drawing.js")  # each after those that it imports

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
html {{ background: {background}; }}
body {{ margin: 0 auto; padding: 16px; max-width: 1800px; }}
</style>
{fragment}
</html>
"""


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
        "links": _links(graph),
        "most": MOST_LINKS,
        "sideways": rankdir in ("TB", "BT"),
        "open": sorted(opened),
        "levels": _levels(graph, opened) if fitting else [],
        "colours": {
            "ground": style.background,
            "text": style.text,
            "quiet": style.quiet,
            "line": style.forward.line,
            "hover": style.boxes["intermediate"].fill,
            "accent": style.reuse,
            "back": style.backward.operator,
            "font": FONT,
        },
    }
    packed = zlib.compress(json.dumps(data, ensure_ascii=False).encode(), 9)
    version, script = _script()
    image = base64.b64encode(picture.encode()).decode()
    return (
        f'<div data-needle-drawing="{version}" data-lm-suppress-shortcuts="true" '
        f'data-needle-data="{base64.b64encode(packed).decode()}">'
        f'<img alt="{html.escape(title)}" style="max-width:100%" '
        f'src="data:image/svg+xml;base64,{image}"></div>'
        f'<script type="module">\n{script}</script>'
    )


def _pictures(
    graph: Graph, picture: str, title: str, style: Style, legend: bool, rankdir: str
) -> dict[str, str]:
    """The whole with all groups closed, at the key ``""``, and the insides of groups, at the group's key.

    At the key "legend" is the legend for all of them; in a drawing without groups it is in the whole.
    """
    if not graph.groups:
        return {"": picture}
    graphs = {"": fold(graph, ())}
    shown = {x.key for x in graphs[""].variables}
    beside = {x.key: x for x in graph.variables if x.group and x.key in shown}
    leading = _leading_out(graph, beside)
    way = _ways(graph)
    row_of = {x.key: x.row for x in graph.variables}
    named = len(_links(graph)) > MOST_LINKS
    left = max(MOST_VARIABLES, graph.limit if graph.limit < MOST else 0)
    for group in sorted(graph.groups, key=lambda group: len(way[group.key])):
        content = inside(leading, group.key)
        kinds = [beside.get(x.key, x).kind for x in content.variables]
        content = replace(content, variables=tuple(map(_of_kind, content.variables, kinds)))
        foreign = [f"in_{key}" for key, row in row_of.items() if row != group.row]
        content = _without_echoes(_alone(content, foreign, named=named))
        if len(content.variables) <= left:
            left -= len(content.variables)
            graphs[group.key] = content
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


def _leading_out(graph: Graph, keys: Collection[str]) -> Graph:
    """The graph with one more user for each result that is drawn beside its closed group.

    So each leads to a port of its group, and is not drawn again beside every group inside.
    """
    variables = [_of_kind(x, "intermediate") if x.key in keys else x for x in graph.variables]
    users = [
        Variable(f"{x.key}_beside", x.name, "port", operator=Operator("", (Operand(x.key),)), row=x.row)
        for x in graph.variables
        if x.key in keys
    ]
    return replace(graph, variables=(*variables, *users))


def _without_echoes(content: Graph) -> Graph:
    """The inside of a group without the ports of its own results that lead nowhere else."""
    uses = Counter(operand.key for x in content.variables for operand in x.operands)
    echoes = {f"out_{key}" for key, times in uses.items() if times == 1}
    kept = (x for x in content.variables if x.key not in echoes or x.key != f"out_{x.operands[0].key}")
    return replace(content, variables=tuple(kept))


def _of_kind(variable: Variable, kind: str) -> Variable:
    return replace(variable, kind=kind)


def _alone(content: Graph, foreign: Collection[str], *, named: bool) -> Graph:
    """The inside of a group without the ports for values from other rows.

    A port would be far from most of the operators that use it. Instead each operator has them `named` beside
    it, or the script draws links to them. A closed group does not say what its inside takes.
    """
    ports = {x.key: x for x in content.variables if x.key in foreign}
    variables = []
    for x in content.variables:
        if x.operator:
            operands = []
            for operand in x.operands:
                if operand.key in ports and named and x.operator.symbol:
                    name = f"{operand.key}_for_{x.key}"
                    variables.append(replace(ports[operand.key], key=name))
                    operands.append(replace(operand, key=name))
                elif operand.key not in ports:
                    operands.append(operand)
            keeps = x.operator.symbol or operands
            x = replace(x, operator=replace(x.operator, operands=tuple(operands)) if keeps else None)
        if x.key not in ports:
            variables.append(x)
    return replace(content, variables=tuple(variables))


def _groups(graph: Graph) -> dict[str, dict[str, object]]:
    """What the script needs to know about each group.

    That is its title, the group around it, how many variables it has, and the ports that edges lead to: `in`
    has, for each box that an edge can come from, the variables that it brings; `out` has the same for each
    box that an edge can go to.
    """
    ways = _ways(graph)
    home = {variable.key: variable.group for variable in graph.variables}
    size = Counter(home.values())
    for group in reversed(graph.groups):
        size[group.parent] += size[group.key]
    data: dict[str, dict] = {
        group.key: {
            "title": group.title, "parent": group.parent, "size": size[group.key],
            "in": defaultdict(list), "out": defaultdict(list),
        }
        for group in graph.groups
    }  # fmt: skip

    for user in graph.variables:
        for operand in user.operands:
            ends = {"out": ways[home[operand.key]], "in": ways[user.group]}
            pairs = zip(*ends.values(), strict=False)
            common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            seen = {"out": operand.key, "in": f"{user.key}_op"}
            beside = {end: way[common] if way[common:] else seen[end] for end, way in ends.items()}
            for end, other in (("out", "in"), ("in", "out")):
                for depth, key in enumerate(ends[end][common:]):
                    box = f"{end}_{operand.key}" if depth else beside[other]
                    if operand.key not in data[key][end][box]:
                        data[key][end][box].append(operand.key)
    return data


def _links(graph: Graph) -> list[dict[str, object]]:
    """The edges from one row to another: each end with the group around it.

    `again` marks a forward value that a gradient uses again.
    """
    by_key = {variable.key: variable for variable in graph.variables}
    links = {}
    for user in graph.variables:
        for operand in user.operands:
            value = by_key[operand.key]
            if value.row != user.row:
                links[value.key, user.key] = {
                    "from": (value.key, value.group),
                    "to": (f"{user.key}_op", user.group),
                    "again": value.row < graph.forward_rows,
                }
    return list(links.values())


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


def page(fragment: str, title: str, background: str) -> str:
    """A page of its own for a piece of HTML."""
    return _PAGE.format(fragment=fragment, title=html.escape(title), background=background)


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
