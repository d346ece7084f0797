"""`viz.draw` of a compiled function: its graph with the fused groups, beside the lines that they became."""

from __future__ import annotations

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from needle.compiler import Compiled

from .dot import DrawnGraph, Markup, Statement
from .engines import CannotRender
from .graph_data import Graph, Group, Operand, Operator, Variable
from .picture import Picture
from .program_data import (
    Listing,
    ProgramData,
    SourceLine,
    Unit,
    called,
    program_of,
    read_program,
    read_schedule,
)
from .render import LARGEST_PNG, PNG_DPI, render, render_all, tidy_svg
from .steps import STATIC
from .style import (
    CODE_FONT,
    CODE_FONTS,
    CODE_WIDTH,
    FOLLOW,
    FONT,
    GROUP_TWINS,
    NAME_SIZE,
    SMALL_SIZE,
    Box,
    Style,
    group_box,
    style_called,
)  # fmt: skip
from .text import counted, elide, escape, text_width

__all__ = ["ProgramDrawing", "draw_program", "draw_schedule"]

# The box and the legend of each kind of unit; the box is that of a kind of variable.
KINDS = {
    "operator": ("intermediate", "operator, and where its numbers live"),
    "blas": ("group", "matrix product that BLAS computes"),
    "call": ("adjoint", "operator with its own kernel: it is not lowered"),
    "check": ("left out", "check of numbers before anything is written"),
    "input": ("leaf", "input"),
    "constant": ("constant", "constant"),
    "state": ("parameter", "state: the call updates it in place"),
    "result": ("output", "result"),
}
SAYS = {"blas": "BLAS", "call": "own kernel", "input": "input", "constant": "constant"}

CODE_SIZE = 9.0  # points
LINE = 13.0  # points from one line of source to the next
LABEL = 28.0  # points for the number of a group
GAP = 26.0  # points between the graph and the source, and between columns of source
LEAST_LINES, MOST_COLUMNS, LINES_IN_COLUMN = 60, 3, 130
MOST_STORED = 12  # arrays that became smaller
LONGEST_CODE = 104  # characters
BARE = 'border="0" cellborder="0" cellspacing="0" cellpadding="0"'  # a table
MOST_PIXELS = 20_000_000


class ProgramDrawing(Picture):
    """A picture of a compiled function. It holds plain data, and nothing of the function.

    On a page, point at a group, or go to it with Tab, or tap it: its lines light up, and the other way round.
    The arrow keys go from statement to statement.

    Attributes
    ----------
    data : ProgramData
    title : str
    """

    def __init__(self, data: ProgramData, title: str, style: str | None = None):
        self.data = data
        self.title = title
        self.style = style_called(style)

    @cached_property
    def _graph(self) -> _ProgramGraph | None:
        return _ProgramGraph(self.data, self.style) if self.data.units else None

    @cached_property
    def source(self) -> str:
        """The static picture as DOT text."""
        pages = [_Columns(listing, self.style) for listing in self.data.listings]
        graph = self._graph
        left, top = (graph.layout.width + GAP, graph.layout.height) if graph else (0.0, 0.0)
        height = max(top, LEAST_LINES * LINE)
        statements = []
        for number, page in enumerate(pages):
            page.fit(height if graph or len(pages) == 1 else math.inf)
            statements += list(page.statements(number, left, top))
            left += page.width + GAP
        if self.data.stored:
            lowest = min(top - page.height for page in pages)
            statements.append(_stored(self.data, self.style, 0.0, lowest - LINE))
        if graph is not None:
            return graph.text([x.text() for x in statements])
        look = f'bgcolor="{self.style.background}", fontname="{FONT}", layout="nop2", pad="0.14"'
        lines = [f"graph [{look}];", f'node [fontname="{FONT}"];', *(x.text() for x in statements)]
        return "\n".join(["digraph {", *(f"  {line}" for line in lines), "}\n"])

    def svg(self) -> str:
        """The static picture as an ``<svg>`` element.

        Raises
        ------
        CannotRender
            If Graphviz is missing.
        """
        return self._svg

    @cached_property
    def _svg(self) -> str:
        return self._tidy(render(self.source, "svg"))

    def _tidy(self, svg: bytes) -> str:
        return tidy_svg(svg.decode(), self.title, self.style, self._twins)

    @property
    def _twins(self) -> dict[str, str]:
        return self.style.twins | GROUP_TWINS if self.style.dark else {}

    def html(self) -> str:
        """The picture as a piece of a web page that needs nothing else; without scripts it is an image.

        Raises
        ------
        CannotRender
            If Graphviz is missing.
        """
        image = base64.b64encode(self.svg().encode()).decode()
        packed = zlib.compress(json.dumps(self._for_page(), ensure_ascii=False).encode(), 9)
        css, script = ((STATIC / f"program.{kind}").read_text("utf-8") for kind in ("css", "js"))
        return (
            f"<style>{FOLLOW}\n{css}</style>"
            f'<div {self.style.attribute} data-needle-program="{base64.b64encode(packed).decode()}" '
            f'data-lm-suppress-shortcuts="true"><img alt="{html.escape(self.title)}" style="max-width:100%" '
            f'src="data:image/svg+xml;base64,{image}"></div>'
            f'<script type="module">\n{script}\nprogramsAll(document);\n</script>'
        )

    def _for_page(self) -> dict[str, Any]:
        """What the script needs."""
        graph, css = self._graph, self._css
        box = {group.label: group_box(self.style, int(group.label)) for group in self.data.groups}
        return {
            "title": self.title,
            "graph": "" if graph is None else self._tidy(render(graph.text(), "svg")),
            "listings": [
                {"title": x.title, "lines": [list(line) for line in x.lines], "marked": x.marked}
                for x in self.data.listings
            ],
            "groups": [
                {"key": x.key, "label": x.label, "title": x.title,
                 "fill": css(box[x.label].fill), "line": css(box[x.label].line)}
                for x in self.data.groups
            ],
            "units": {
                x.key: {"group": x.group, "words": x.words, "facts": _in_words(x), "name": _name(x)}
                for x in self.data.units
            },
            "stored": [list(x) for x in self.data.stored],
            "colours": {
                "ground": css(self.style.background), "ink": css(self.style.text),
                "quiet": css(self.style.quiet), "rule": css(self.style.forward.line),
                "accent": css(self.style.reuse), "code": CODE_FONTS,
            },
        }  # fmt: skip

    def _css(self, colour: str) -> str:
        twin = self._twins.get(colour, colour)
        return colour if twin == colour else f"light-dark({colour},{twin})"

    def _file(self, kind: str) -> bytes:
        if kind == "svg":
            return f"{self.svg()}\n".encode()
        if kind != "png":
            return render(self.source, kind)
        size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', self.svg())
        width, height = (float(x) / 72 for x in size.groups()) if size else (1.0, 1.0)
        dpi = min(PNG_DPI, math.sqrt(MOST_PIXELS / (width * height)), LARGEST_PNG / max(width, height))
        return render_all([self.source], "png", dpi)[0]

    def _in_words(self, error: CannotRender) -> str:
        source = "\n\n".join("\n".join(line.text for line in x.lines) for x in self.data.listings)
        return f"{error} Until then, this is {self.data.listings[-1].title}:\n\n{source}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        try:
            svg = self.svg()
        except CannotRender as error:
            return {"text/plain": self._in_words(error)}
        return {"text/html": self._repr_html_(), "image/svg+xml": svg, "text/plain": repr(self)}


def draw_program(compiled: Compiled, style: str | None = None) -> ProgramDrawing:
    """What `draw` shows of a compiled function.

    Raises
    ------
    ValueError
        If the function was not called yet.
    """
    data = read_program(program_of("draw", compiled), called(compiled))
    title = f"{data.name}, compiled: {_counts(data)}"
    listed = "; ".join(x.title for x in data.groups[:12])
    more = f"; and {len(data.groups) - 12} more" if len(data.groups) > 12 else ""
    return ProgramDrawing(data, f"{title} ({listed}{more})", style)


def draw_schedule(compiled: Compiled, *, style: str | None = None) -> ProgramDrawing:
    """Draw what fusion makes of a compiled function: its loops before, and after.

    On the left, each statement has loops of its own and an array for its result, as the operators were
    lowered. On the right, loops that run along the same axis have become one, and what lives within one
    iteration is a short row or a plain variable. Statements that end up in one loop have the same number on
    both sides. What became smaller is underlined.

    Parameters
    ----------
    compiled : Compiled
        What `needle.jit` returned; call it before, so that it is compiled.
    style : "needle", "d2l", "print", "dark" or None
        As for `draw`.

    Returns
    -------
    ProgramDrawing

    Raises
    ------
    TypeError
        If it is no compiled function.
    ValueError
        If it was not called yet.

    Examples
    --------
    >>> layer = ndl.jit(lambda x: ndl.relu(x @ W + b))
    >>> h = layer(x)
    >>> viz.draw_schedule(layer)
    """
    data = read_schedule(program_of("draw_schedule", compiled), called(compiled))
    became = "; ".join(f"{x.name}: {x.before} became {x.after}" for x in data.stored[:6])
    title = f"{data.name}, before and after fusion: {_counts(data)}"
    return ProgramDrawing(data, f"{title}{f' ({became})' if became else ''}", style)


def _counts(data: ProgramData) -> str:
    return f"{counted(data.operators, 'operator')} in {counted(len(data.groups), 'group')}"


def _name(unit: Unit) -> str:
    """The name in the source, of an array from outside or one that is left behind."""
    return unit.words if unit.key.startswith(("in_", "out_")) else ""


def _in_words(unit: Unit) -> str:
    """What is said of a unit below its name."""
    said = SAYS.get(unit.kind, "")
    if unit.kind == "state" and not unit.group:
        said = "state"
    if unit.kind == "result":
        said = "put in .grad" if unit.words.startswith("grad") else "returned"
    between = "; " if unit.kind in ("blas", "call") else " "
    return between.join(filter(None, [said, unit.facts]))


class _ProgramGraph(DrawnGraph):
    """The graph in DOT: boxes of units, in the frames of their groups."""

    def __init__(self, data: ProgramData, style: Style):
        self.data = data
        self.unit = {unit.key: unit for unit in data.units}
        self.fused = {group.key: group for group in data.groups}
        variables = tuple(
            Variable(
                x.key,
                x.words,
                KINDS[x.kind][0],
                operator=Operator("", tuple(map(Operand, x.operands))) if x.operands else None,
                group=x.group,
            )
            for x in data.units
        )
        used = {x.group for x in data.units}
        groups = tuple(Group(x.key, x.title) for x in data.groups if x.key in used)
        super().__init__(Graph(variables, groups=groups), style, rankdir="TB")

    def lines(self, variable: Variable) -> list:
        unit = self.unit[variable.key]
        first = self.bold(elide(unit.words, 28))
        if unit.module:
            module = self.small(unit.module)
            gap = 2 * CODE_SIZE / 2
            first = first._replace(
                markup=f"{first.markup}&#160;&#160;{module.markup}", width=first.width + gap + module.width
            )
        words = [x for part in _in_words(unit).split("; ") for x in [elide(part, 34)] if x]
        return [first, *map(self.small, words)]

    def add_variable(self, variable: Variable) -> None:
        super().add_variable(variable)
        unit = self.unit[variable.key]
        node, look = self.nodes[variable.key]
        if unit.kind == "operator":
            look = {**look, "fillcolor": self.style.background}
        if unit.kind == "check":
            look = {**look, "style": "filled,dashed"}
        self.nodes[variable.key] = (node, look)

    def frames(self) -> Iterator[str]:
        """The frames of the groups, each in its colour."""
        for frame in self.layout.frames:
            if frame.title and frame.title[1] < frame.bottom + SMALL_SIZE + 5:
                frame = frame._replace(bottom=frame.title[1] - SMALL_SIZE - 3)  # room below the boxes
            group = self.fused[frame.key.partition("_")[0]]
            box = group_box(self.style, int(group.label))
            x, y = frame.title or (0.0, 0.0)
            at = f', label="{group.title}", lp="{x:.1f},{y:.1f}"'
            yield (
                f'subgraph cluster_{frame.key} {{ graph [style="rounded,filled", fillcolor="{box.fill}", '
                f'color="{box.line}", fontcolor="{box.line}", fontsize="{SMALL_SIZE + 1}", penwidth="1.2"'
                f"{at if frame.title else ''}, "
                f'bb="{frame.left:.1f},{frame.bottom:.1f},{frame.right:.1f},{frame.top:.1f}"]; }}'
            )

    def legend(self) -> Markup:
        """What the boxes are."""
        kinds = {unit.kind for unit in self.data.units}
        rows = "".join(
            f"<tr><td>{self.swatch(self._box(kind))}</td>"
            f'<td align="left"><font color="{self.style.quiet}">{escape(word)}</font></td></tr>'
            for kind, (_, word) in KINDS.items()
            if kind in kinds
        )
        return Markup(f'<table border="0" cellborder="0" cellspacing="2" cellpadding="2">{rows}</table>')

    def _box(self, kind: str) -> Box:
        box = self.style.boxes[KINDS[kind][0]]
        return Box(self.style.background, box.line, box.corners) if kind == "operator" else box


class _Columns:
    """Source for the static picture, in columns."""

    def __init__(self, listing: Listing, style: Style):
        self.listing = listing
        self.style = style
        longest = max((len(line.text) for line in listing.lines), default=1)
        self.text_width = CODE_WIDTH * CODE_SIZE * min(longest, LONGEST_CODE) + 12
        self.columns: list[tuple[SourceLine, ...]] = [listing.lines]

    def fit(self, height: float) -> None:
        """Break the lines into columns of about this height, and leave out what has no room."""
        lines = self.listing.lines
        most = max(len(lines), 1) if height == math.inf else max(int(height / LINE) - 1, LEAST_LINES)
        columns = min(math.ceil(len(lines) / (1.3 * most)), MOST_COLUMNS)  # a little longer is no harm
        most = min(max(math.ceil(len(lines) / max(columns, 1)), 1), LINES_IN_COLUMN)
        if len(lines) > most * MOST_COLUMNS:
            left = len(lines) - most * MOST_COLUMNS + 1
            note = SourceLine(f"# … {left:,} more lines: save it as .html to see them")
            lines = (*lines[: most * MOST_COLUMNS - 1], note)
        self.columns = [lines[i : i + most] for i in range(0, len(lines), most)] or [()]

    @property
    def width(self) -> float:
        return len(self.columns) * (self.text_width + LABEL) + (len(self.columns) - 1) * GAP

    @property
    def height(self) -> float:
        return (max(map(len, self.columns)) + 1) * LINE

    def statements(self, number: int, left: float, top: float) -> Iterator[Statement]:
        """A node of DOT for each column."""
        for i, lines in enumerate(self.columns):
            width, height = self.text_width + LABEL, (len(lines) + 1) * LINE
            title = self.listing.title if not i else ""
            rows = [
                f'<tr><td colspan="2" fixedsize="true" width="{width:.0f}" height="{LINE:.0f}" align="left">'
                f'<font point-size="{SMALL_SIZE + 1}" color="{self.style.quiet}">{escape(title)} </font>'
                "</td></tr>",
                *map(self.row, lines),
            ]
            table = "".join(rows)
            label = Markup(
                f'<table border="0" cellborder="0" cellspacing="0" cellpadding="0">{table}</table>'
            )
            place = f"{left + width / 2:.1f},{top - height / 2:.1f}"
            look = {"shape": "plaintext", "fixedsize": "true", "width": width / 72, "height": height / 72}
            yield Statement(f"source{number}_{i}", {**look, "pos": place, "label": label})
            left += width + GAP

    def row(self, line: SourceLine) -> str:
        """A line of source, with the number of its group."""
        box = group_box(self.style, int(line.label)) if line.label else None
        ground = f' bgcolor="{box.fill}"' if box else ""
        height = f'fixedsize="true" height="{LINE:.0f}"'
        label = f"<b>{line.label}{line.letter}</b>"
        mark = f'<font color="{box.line}" point-size="{SMALL_SIZE}">{label}</font>' if box else ""
        code = self.code(line.text)
        return (
            f'<tr><td width="{LABEL:.0f}" {height}{ground}>{mark}</td>'
            f'<td width="{self.text_width:.0f}" {height} align="left"{ground}>{code}</td></tr>'
        )

    def code(self, text: str) -> str:
        """Source as Graphviz's markup: comments are quiet, and arrays that changed are underlined."""
        text = text if len(text) <= LONGEST_CODE else f"{text[: LONGEST_CODE - 1]}…"
        color = self.style.quiet if text.lstrip().startswith("#") else self.style.text
        pieces = re.split(rf"\b({'|'.join(map(re.escape, self.listing.marked))})\b", text)
        if not self.listing.marked:
            pieces = [text]
        written = ""
        for i, piece in enumerate(pieces):
            shown = escape(piece).replace(" ", "&#160;")
            written += f"<u>{shown}</u>" if i % 2 and shown else shown
        look = f'face="{CODE_FONT}" point-size="{CODE_SIZE:.0f}" color="{color}"'
        return f"<font {look}>{written}</font>" if written else ""


def _stored(data: ProgramData, style: Style, left: float, top: float) -> Statement:
    """What became smaller, as a table below the source."""
    rows = [
        f'<tr><td align="left"><font color="{style.text}"><b>{escape(x.name)}</b>&#160;&#160;</font></td>'
        f'<td align="left"><font color="{style.quiet}">{escape(f"{x.before} → {x.after}")}</font></td></tr>'
        for x in data.stored[:MOST_STORED]
    ]
    if len(data.stored) > MOST_STORED:
        more = f"… and {len(data.stored) - MOST_STORED} more"
        rows.append(f'<tr><td colspan="2" align="left"><font color="{style.quiet}">{more}</font></td></tr>')
    height = len(rows) * (NAME_SIZE + 5.0)
    label = Markup(
        f'<table border="0" cellborder="0" cellspacing="0" cellpadding="1">{"".join(rows)}</table>'
    )
    longest = max(text_width(f"{x.name} {x.before} {x.after}", NAME_SIZE, True) for x in data.stored)
    width = 1.1 * longest + 30
    place = f"{left + width / 2:.1f},{top - height / 2:.1f}"
    rows.append(f'<tr><td colspan="2" fixedsize="true" width="{width:.0f}" height="1"></td></tr>')
    look = {"shape": "plaintext", "width": width / 72, "height": height / 72, "fixedsize": "true"}
    return Statement("stored", {**look, "fontname": FONT, "fontsize": 10, "pos": place, "label": label})
