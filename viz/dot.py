"""Plain data to DOT, the language of Graphviz. The same graph always gives the same text."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from . import style as words
from .facts import BETWEEN_FACTS
from .graph_data import LEFT_OUT, Graph, Variable
from .layout import ARROW, Edge, Layout, Node, Point, Spacing, Title, columns_of, lay_out
from .style import FONT, LEGENDS, NAME_SIZE, SIGN_SIZE, SMALL_SIZE, TEXT_SIZE, Box, Style
from .text import Rows, elide, escape, superscript, text_width, wrap

__all__ = [
    "CUT",
    "RANKDIRS",
    "DrawnGraph",
    "Markup",
    "Statement",
    "check_rankdir",
    "matrix",
    "matrix_widths",
    "to_dot",
]

CIRCLE = 30  # points across: an operator with longer words is drawn as a wide box with round ends
MANY = (
    150  # variables: in a larger graph edges are straight and short, and the search for a layout ends early
)
LONGEST_WAY = 1000  # points of an edge's curve: Graphviz reads no longer text
FAR = 16  # columns: in a large graph, a value from farther away has no edge but is named where it is used
LONGEST_HEADER = 20  # characters: a longer name and shape stand on two lines
LONGEST_FACTS = 30  # characters: longer facts have a line of their own
LONGEST_IN_SQUARE = 9  # characters: a longer value is left out of a small square
LEGEND_COLUMN = 210  # points
USUAL_WIDTH, LARGEST_WIDTH = 1200.0, 2400.0  # points: a wider drawing goes on in rows of the usual width
PAD = 10.0  # points around a drawing
# Directions, with the arrows of rows that run forward and back.
RANKDIRS = {"LR": "→←", "RL": "←→", "TB": "↓↑", "BT": "↑↓"}
NO_BREAK = "\N{NO-BREAK SPACE}"
CUT = "✂"
PAD_X, PAD_Y = 7.0, 4.0  # points between a box and its text
# How much wider text may be than in Helvetica: where that is missing, other fonts stand in for it.
FONT_ROOM, BOLD_ROOM = 1.17, 1.22
# Which of the operands without a history stands on an operator's line: data before weights.
RANKS = {"adjoint": 1, "seed": 1, "constant": 1, "parameter": -1}


def check_rankdir(rankdir: str) -> None:
    """Raise ValueError if this is not one of `RANKDIRS`."""
    if not isinstance(rankdir, str) or rankdir not in RANKDIRS:
        raise ValueError(
            f"rankdir: needs 'LR' (left to right), 'TB' (top to bottom), 'RL' or 'BT', got {rankdir!r}"
        )


def to_dot(
    graph: Graph,
    style: Style,
    *,
    legend: bool = True,
    rankdir: str = "LR",
    width: float | None = math.inf,
    below: bool = False,
) -> str:
    """The DOT text of a graph.

    Parameters
    ----------
    graph : Graph
    style : Style
    legend : bool
        Whether to explain the colours and lines below the graph.
    rankdir : "LR", "RL", "TB" or "BT"
        From left to right (or back) with gradients below, or from top to bottom (or back) with gradients on
        the right.
    width : float or None
        In points. A drawing from left to right that would be wider goes on in a row below. With None, only a
        very wide one does.
    below : bool
        Whether all that joins a line comes from below it, the first operand too.
    """
    return DrawnGraph(graph, style, legend=legend, rankdir=rankdir, width=width, below=below).text()


class _Line(NamedTuple):
    """A line of a box as Graphviz's markup, and its size in points in the widest of the fonts."""

    markup: str
    width: float
    height: float


class Statement(NamedTuple):
    """A node or an edge in DOT."""

    subject: str
    attributes: Mapping[str, object]

    @property
    def key(self) -> str:
        return self.subject.replace(" ", "")

    def text(self) -> str:
        return _statement(self.subject, **self.attributes)


class DrawnGraph:
    """A graph in DOT, with the place of everything; see `to_dot`."""

    def __init__(
        self,
        graph: Graph,
        style: Style,
        *,
        legend: bool = True,
        rankdir: str = "LR",
        width: float | None = math.inf,
        below: bool = False,
    ):
        self.graph = graph
        self.style = style
        self.has_legend = legend
        self.rankdir = rankdir
        self.by_key = {variable.key: variable for variable in graph.variables}
        self.far = _far(graph)
        self.compact = style.rises
        self.below = below or self.compact
        self.has_short_heads = not self.compact and self.fit_heads()
        groups = [self.title(x.key, elide(x.title), SMALL_SIZE + 1, x.parent, x.row) for x in graph.groups]
        rows = [self.title(str(row), _row_title(row, rankdir), TEXT_SIZE, "", row) for row in graph.rows]
        rows = rows if len(rows) > 1 else []
        self.is_narrow = width is not None and width < 2 * LEGEND_COLUMN
        self.titles = [*groups, *rows]
        room = (USUAL_WIDTH, LARGEST_WIDTH) if width is None else (width - 2 * PAD, 0.0)
        near = (7.0, 8.0) if self.compact else (9.0, 10.0)
        spacing = Spacing(*near, *room, below=self.below)
        self.layout = self.laid_out(groups, rows, spacing)
        # Through many rows, an edge is too long for Graphviz, and for readers.
        for use, curve in zip(self.uses, self.layout.curves, strict=True):
            if any(use) and len(curve) > LONGEST_WAY:
                self.far.add(use)
        if any(len(curve) > LONGEST_WAY for curve in self.layout.curves):
            self.layout = self.laid_out(groups, rows, spacing)

    def laid_out(self, groups: Sequence[Title], rows: Sequence[Title], spacing: Spacing) -> Layout:
        """The layout of all nodes and edges, with mentions of what is far away."""
        self.lines_of: dict[str, list[_Line]] = {}
        self.nodes: dict[str, tuple[Node, dict[str, object]]] = {}
        self.edges: list[tuple[Edge, dict[str, object]]] = []
        self.uses: list[tuple[str, str]] = []  # for each edge from an operand: its key and the user's
        for variable in self.graph.variables:
            self.add_nodes(variable)
        for variable in self.graph.variables:
            self.add_edges(variable)
        self.even_out()
        return lay_out(
            [node for node, _ in self.nodes.values()],
            [edge for edge, _ in self.edges],
            columns=self.graph.columns,
            groups=groups,
            rows=rows,
            rankdir=self.rankdir,
            spacing=spacing,
        )

    @staticmethod
    def title(key: str, text: str, size: float, parent: str, row: int) -> Title:
        return Title(key, FONT_ROOM * text_width(text, size), parent, row)

    def text(self, more: Iterable[str] = (), statements: Iterable[Statement] | None = None) -> str:
        """All of it, or only these of its statements, and more lines."""
        own = self.statements() if statements is None else statements
        lines = [*self.header(), *self.frames(), *(statement.text() for statement in own), *more]
        return "\n".join(["digraph {", *["  " + line for line in lines], "}"]) + "\n"

    def header(self) -> Iterator[str]:
        look = {"bgcolor": self.style.background, "fontname": FONT, "fontsize": SMALL_SIZE}
        label = {"labelloc": "b", "labeljust": "l", "label": self.legend()} if self.has_legend else {}
        yield _statement("graph", layout="nop2", rankdir=self.rankdir, pad=PAD / 72, **look, **label)
        yield _statement("node", fontname=FONT, fontsize=TEXT_SIZE, fontcolor=self.style.text, penwidth=1.2)
        yield _statement(
            "edge",
            color=self.style.edge, arrowsize=0.65, penwidth=1.1,
            fontname=FONT, fontsize=SMALL_SIZE, fontcolor=self.style.quiet,
        )  # fmt: skip

    def frames(self) -> Iterator[str]:
        """The grounds of the rows and the frames of the open groups, as clusters without members."""
        groups = {group.key: group for group in self.graph.groups}
        for frame in self.layout.frames:
            key = frame.key.partition("_")[0]
            group = groups.get(key)
            ground = self.style.row(group.row if group else int(key))
            size = SMALL_SIZE + 1 if group else TEXT_SIZE
            look = {"style": "rounded"} if group else {"style": "rounded,filled", "fillcolor": ground.fill}
            title = elide(group.title) if group else _row_title(int(key), self.rankdir)
            label = {"label": title, "lp": _point(frame.title)} if frame.title else {"label": ""}
            yield f"subgraph cluster_{frame.key} {{"
            yield "  " + _statement(
                "graph", **label, **look,
                penwidth=ground.line_width, color=ground.line, fontcolor=ground.title, fontsize=size,
                bb=f"{frame.left:.1f},{frame.bottom:.1f},{frame.right:.1f},{frame.top:.1f}",
            )  # fmt: skip
            yield "}"

    def statements(self) -> Iterator[Statement]:
        """The nodes and the edges, each with its place."""
        for key, (node, look) in self.nodes.items():
            size = {"width": node.width / 72, "height": node.height / 72, "fixedsize": "true"}
            if key in self.lines_of:
                lines = self.lines_of[key]
                table = _table(lines, node.width - 14, centred=self.compact) if lines else ""
                look = {**look, "label": table}
            yield Statement(key, {"pos": _point(self.layout.places[key][:2]), **look, **size})
        ways = zip(self.edges, self.layout.curves, self.layout.labels, strict=True)
        for (edge, look), curve, label in ways:
            at = {"lp": _point(label)} if "label" in look else {}
            yield Statement(f"{edge.tail} -> {edge.head}", {"pos": _way(curve, look), **at, **look})

    def add_nodes(self, variable: Variable) -> None:
        """A variable, its operator, and mentions of operands that are far away."""
        self.add_variable(variable)
        if variable.operator is None:
            return
        for key in dict.fromkeys(operand.key for operand in variable.operands):
            if (key, variable.key) in self.far:
                self.add_mention(f"{key}_for_{variable.key}", self.by_key[key], variable)
        if variable.operator.symbol:
            self.add_operator(variable, variable.operator.symbol)

    def add_edges(self, variable: Variable) -> None:
        """The edges that lead to a variable, by its operator."""
        source = self.source_of_cut(variable)
        if source is not None:
            cut = {"dir": "none", "style": "dashed", "color": self.style.cut, "fontcolor": self.style.cut}
            self.add_edge(source.key, variable.key, ("", ""), label=CUT, fontsize=TEXT_SIZE + 3, **cut)
        if variable.operator is None:
            return
        to, row, accent = _entrance(variable), variable.row, self.accent(variable)
        color = {"color": self.style.backward.operator} if row else {}
        for operand in variable.operands:
            look = {"label": operand.label} if operand.label else {}
            key = operand.key
            if (key, variable.key) in self.far:
                key = f"{key}_for_{variable.key}"
            else:
                tail = self.by_key[key].row
                if tail != row and tail < self.graph.forward_rows:
                    look |= {"style": "dashed", "color": self.style.reuse}
                if key == LEFT_OUT:
                    look |= {"style": "dotted"}
            self.add_edge(key, to, (operand.key, variable.key), **(color | look | accent))
        if to != variable.key:
            self.add_edge(to, variable.key, ("", ""), **(color | accent))

    def add_edge(self, tail: str, head: str, use: tuple[str, str], **look: object) -> None:
        size = (0.0, 0.0)
        if "label" in look:
            size = (FONT_ROOM * text_width(str(look["label"]), SMALL_SIZE), SMALL_SIZE + 1.0)
        self.edges.append((Edge(tail, head, size), look))
        self.uses.append(use)

    def even_out(self) -> None:
        """Make all boxes equally wide and high, except those that are much larger."""
        boxes = [self.nodes[x.key] for x in self.graph.variables]
        if not boxes:
            return
        usual = 66.0 if self.compact else 125.0
        width = max((node.width for node, _ in boxes if node.width <= usual), default=0.0)
        least = min(node.height for node, _ in boxes)
        height = max(node.height for node, _ in boxes if node.height <= 1.35 * least)
        for node, look in boxes:
            node = node._replace(width=max(node.width, width), height=max(node.height, height))
            self.nodes[node.key] = (node, look)

    def fit_heads(self) -> bool:
        """Whether each name is short enough to have its facts on the same line."""
        heads = (self.heads(x) for x in self.graph.variables if x.kind not in ("failed", "group"))
        return all(len(head) < 2 or len("".join(head)) <= LONGEST_HEADER for head in heads)

    def source_of_cut(self, variable: Variable) -> Variable | None:
        """The variable that a detached one was cut from, if it is in the same row."""
        source = self.by_key.get(variable.cut_from)
        return source if source is not None and source.row == variable.row else None

    def accent(self, variable: Variable) -> dict[str, str]:
        """The colours of an operator that failed, and of its edges."""
        if variable.kind != "failed":
            return {}
        color = self.style.boxes["failed"].line
        return {"color": color, "fontcolor": color, "penwidth": "1.8"}

    def add_mention(self, key: str, variable: Variable, user: Variable) -> None:
        """A small box with the name of a variable that is drawn elsewhere."""
        color = self.style.reuse if variable.row != user.row else self.style.quiet
        name = "…" if variable.key == LEFT_OUT else elide(variable.name or variable.facts, 16)
        look = {"label": name, "fontsize": SMALL_SIZE, "fontcolor": color, "color": color}
        width = FONT_ROOM * text_width(name, SMALL_SIZE) + 10
        node = Node(key, width, SMALL_SIZE + 8.0, user.row, user.group, rank=-2)
        self.nodes[key] = (node, {"shape": "box", "style": "rounded,dashed", **look})

    def add_operator(self, variable: Variable, symbol: str) -> None:
        color = self.style.row(variable.row).operator
        symbol = _typeset(symbol)
        look: dict[str, object] = {"label": symbol, "fillcolor": self.style.background}
        look |= {"color": color, "fontcolor": color, **self.accent(variable)}
        text = text_width(symbol, TEXT_SIZE)
        across = CIRCLE - 4.0 if self.compact else CIRCLE
        is_round = text <= across - 7
        width, height = (across, across) if is_round else (FONT_ROOM * text + 14, 24.0)
        height = max(height, 11.0 * len(variable.operands) + 8 if len(variable.operands) > 2 else 0.0)
        shape = (
            {"shape": "circle", "style": "filled"}
            if is_round
            else {"shape": "box", "style": "rounded,filled"}
        )
        if is_round:
            width = height = max(width, height)
        if symbol in {"+", "−", "×", "÷", "="}:
            look["fontsize"] = SIGN_SIZE
        in_order = not (self.below and variable.row % 2 == 0)
        node = Node(
            f"{variable.key}_op", width, height, variable.row, variable.group, is_round, in_order=in_order
        )
        self.nodes[node.key] = (node, {**shape, **look})

    def add_variable(self, variable: Variable) -> None:
        box = self.style.boxes[variable.kind]
        line = "dashed" if not variable.computed else "dotted" if box.dotted else ""
        lines = self.lines_of[variable.key] = self.lines(variable)
        double = {"peripheries": 2} if box.double else {}
        look = {
            "shape": "box",
            "style": ",".join(filter(None, [box.corners, "filled", line])),
            "fillcolor": box.fill if variable.computed else self.style.background,
            "color": box.line,
            "penwidth": box.line_width,
            **double,
        }
        pad_x, pad_y = (4.0, 2.0) if self.compact else (PAD_X, PAD_Y)
        width = max((x.width for x in lines), default=0.0) + 2 * pad_x
        height = sum(x.height for x in lines) + 2 * pad_y
        rank = RANKS.get(variable.kind, 0)
        node = Node(
            variable.key, max(width, 24.0), max(height, 24.0), variable.row, variable.group, rank=rank
        )
        self.nodes[variable.key] = (node, look)

    def lines(self, variable: Variable) -> list[_Line]:
        lines = [*self.head(variable), *self.value_lines(variable.value, self.style.text, "")]
        return lines + self.value_lines(variable.gradient, self.style.gradient, "grad")

    def heads(self, variable: Variable) -> list[str]:
        """The name, the facts and the note, as far as there are any."""
        facts, note = variable.facts, elide(variable.note)
        if variable.detached and self.source_of_cut(variable) is None:
            note = f"{CUT} {note}"
        if not self.compact and len(facts) <= LONGEST_FACTS and BETWEEN_FACTS not in facts:
            facts = (" " if "shape" in self.graph.shown else BETWEEN_FACTS).join(filter(None, [facts, note]))
            note = ""
        return [x for x in (elide(variable.name), facts, note) if x]

    def head(self, variable: Variable) -> list[_Line]:
        """The name and the facts, on one line if they are short in the whole row."""
        name, facts = elide(variable.name), variable.facts
        short = textwrap.wrap(name, 10, break_long_words=False) if self.compact else [name]
        bold = [self.bold(part) for part in short if part]
        if variable.kind == "failed":
            return [*bold, *(_line(line, self.style.text) for line in wrap(variable.note))]
        if variable.kind == "group":
            before, arrow, after = facts.partition(" → ")
            split = arrow and len(facts) > (10 if self.compact else LONGEST_HEADER)
            shapes = [before, f"→ {after}"] if split else [facts]
            return [*bold, *[self.small(line) for line in (*shapes, elide(variable.note)) if line]]
        rest = [self.small(x) for x in self.heads(variable)[bool(name) :]]
        if not self.has_short_heads or not (bold and rest):
            return [*bold, *rest]
        gap = 2 * text_width(NO_BREAK, SMALL_SIZE)
        one, other = bold[0], rest[0]
        return [_Line(f"{one.markup}&#160;&#160;{other.markup}", one.width + gap + other.width, one.height)]

    def bold(self, text: str) -> _Line:
        width = BOLD_ROOM * text_width(text, NAME_SIZE, bold=True)
        return _Line(_font(f"<b>{escape(text)}</b>", size=NAME_SIZE), width, NAME_SIZE + 5.0)

    def small(self, text: str) -> _Line:
        return _line(text, self.style.quiet, SMALL_SIZE)

    def value_lines(self, value: Rows, color: str, word: str) -> list[_Line]:
        """A line of text, or a matrix in square brackets with its word above."""
        if self.compact and (len(value) > 1 or any(len(row[0]) > LONGEST_IN_SQUARE for row in value)):
            return []
        if len(value) < 2:
            return [_line(" ".join(filter(None, [word, *row])), color) for row in value]
        table = _Line(
            matrix(value, color, self.style.bracket),
            sum(matrix_widths(value)) + 12.0,
            len(value) * (TEXT_SIZE + 5.0) + 6.0,
        )
        return ([_line(word, color)] if word else []) + [table]

    def legend(self) -> Markup:
        """A table of everything that needs a word in this graph."""
        style, variables = self.style, self.graph.variables
        kinds = {variable.kind for variable in variables}
        later = [x.operator for x in variables if x.row >= self.graph.forward_rows and x.operator]
        frame = Box(style.background, style.forward.line, line_width=1)
        hollow = Box(style.background, style.quiet, corners="dashed", line_width=1)
        reused = any(look.get("color") == style.reuse for _, look in self.edges)
        entries = [
            *[(k in kinds, self.swatch(style.boxes[k]), word) for k, word in LEGENDS.items() if word],
            (self.graph.groups, self.swatch(frame), words.FRAME),
            (not all(x.computed for x in variables), self.swatch(hollow), words.NOT_COMPUTED),
            (any(o.symbol == "=" for o in later), _text("=", style.backward.operator), words.PASSED_ON),
            (self.far, _text("(x)", style.quiet), words.MENTIONED),
            (reused and not self.far, _text("- - -", style.reuse), words.REUSED),
            (any(x.detached for x in variables), _text(CUT, style.cut), words.CUT),
            ("bytes" in self.graph.shown, _text("B, kB", style.quiet), words.BYTES),
            (self.lacks_gradients(), _text("grad", style.gradient), words.NO_GRADIENTS),
        ]
        cells = [
            f'<td>{sign}</td><td align="left">{_font(escape(meaning), color=self.style.quiet)}</td>'
            for occurs, sign, meaning in entries
            if occurs
        ]
        columns = min(max(int(max(self.layout.width, 2 * LEGEND_COLUMN) / LEGEND_COLUMN), 1), 3)
        columns = 1 if self.is_narrow else columns
        rows = [cells[i : i + columns] for i in range(0, len(cells), columns)]
        gap = '<td width="8"></td>'
        table = "".join(f"<tr>{gap.join(row)}</tr>" for row in rows)
        return Markup(f'<table border="0" cellborder="0" cellspacing="2" cellpadding="2">{table}</table>')

    def lacks_gradients(self) -> bool:
        """Whether gradients are missing where they could be; the legend then says why."""
        variables = self.graph.variables
        return (
            "gradient" in self.graph.shown
            and any(x.requires_grad for x in variables)
            and any(x.kind == "output" for x in variables)
            and all(x.row < self.graph.forward_rows and not x.gradient for x in variables)
        )

    def swatch(self, box: Box) -> str:
        """A small picture of a box."""
        line = ",".join(filter(None, [box.corners, "dotted" if box.dotted else ""]))
        look = f'cellborder="0" color="{box.line}" bgcolor="{box.fill}"' + (
            f' style="{line}"' if line else ""
        )
        width = max(round(box.line_width), 1)
        inner = _swatch(look, width, *((22, 14) if width > 1 or box.dotted else (16, 11)))
        return _swatch(look, 1, 30, 22, inner) if box.double else inner


def matrix(
    rows: Rows, color: str, bracket: str, marked: Collection[tuple[int, int]] = (), ground: str = ""
) -> str:
    """A matrix in square brackets, as Graphviz's markup; the marked cells have a `ground`."""
    # All sizes are fixed, or Graphviz would stretch the matrix to the width of the box.
    widths = matrix_widths(rows)
    height, look = TEXT_SIZE + 5, f' bgcolor="{ground}"'
    left, right = (
        f'<td rowspan="{len(rows)}" border="1" sides="{sides}" color="{bracket}" fixedsize="true" width="4"'
        f' height="{len(rows) * height}"></td>'
        for sides in ("LTB", "RTB")
    )
    lines = [
        "".join(
            f'<td align="right" fixedsize="true" width="{width}" height="{height}"'
            f"{look if (r, c) in marked else ''}>{_text(x + NO_BREAK, color)}</td>"
            for c, (x, width) in enumerate(zip(row, widths, strict=True))
        )
        for r, row in enumerate(rows)
    ]
    lines[0] = left + lines[0] + right
    cells = "".join(f"<tr>{line}</tr>" for line in lines)
    size = f'fixedsize="true" width="{sum(widths) + 12}" height="{len(rows) * height + 2}"'
    return f'<table border="0" cellborder="0" cellspacing="0" cellpadding="0" {size}>{cells}</table>'


def matrix_widths(rows: Rows) -> list[int]:
    """The width of each column of a matrix, in points."""
    columns = zip(*rows, strict=True)
    return [math.ceil(1.2 * max(text_width(x, TEXT_SIZE) for x in column)) + 8 for column in columns]


def _far(graph: Graph) -> set[tuple[str, str]]:
    """The keys of operands and results that are too far apart for an edge; none in a small graph."""
    if len(graph.variables) <= MANY:
        return set()
    row = {variable.key: variable.row for variable in graph.variables}
    nodes, results = [], []
    edges: dict[tuple[str, str], Edge] = {}
    for x in graph.variables:
        nodes.append(Node(x.key, 0, 0, x.row))
        to = _entrance(x)
        if to != x.key:
            nodes.append(Node(to, 0, 0, x.row))
            results.append(Edge(to, x.key))
        edges |= {(operand.key, x.key): Edge(operand.key, to) for operand in x.operands}
    far = {(tail, head) for tail, head in edges if row[tail] != row[head]}
    for _ in range(3):  # without some edges, others can become longer
        near = [edge for key, edge in edges.items() if key not in far]
        column = columns_of(nodes, [*near, *results], graph.columns)
        before = len(far)
        far |= {key for key, edge in edges.items() if abs(column[edge.head] - column[edge.tail]) > FAR}
        if len(far) == before:
            break
    return far


def _entrance(variable: Variable) -> str:
    """The node that edges to a variable lead to: its operator, or the box of a closed group."""
    return f"{variable.key}_op" if variable.operator and variable.operator.symbol else variable.key


def _row_title(row: int, rankdir: str) -> str:
    order = row.bit_length()  # rows 0 | 1 | 2, 3 | 4 to 7: each reverse mode doubles the rows
    titles = ["forward", "gradient", "second-order gradient", "third-order gradient"]
    title = titles[order] if order < len(titles) else f"gradient of order {order}"
    return f"{title} {RANKDIRS[rankdir][row % 2]}"


def _typeset(symbol: str) -> str:
    """An operator's sign as it is printed: x² for ``** 2``."""
    symbol = re.sub(r"(?<!\w)-(?=\d)", "−", symbol)
    power = re.fullmatch(r"\*\* (−?\d+)", symbol)
    if power:
        return f"x{superscript(int(power[1].replace('−', '-')))}"
    return re.sub(r"^\*\* ?", "x^", symbol) if symbol != "**" else "xʸ"


def _swatch(look: str, border: int, width: int, height: int, content: str = "") -> str:
    size = f'fixedsize="true" width="{width}" height="{height}"'
    return f'<table {look} border="{border}" cellspacing="0" {size}><tr><td>{content}</td></tr></table>'


def _line(text: str, color: str, size: float = TEXT_SIZE) -> _Line:
    return _Line(_font(escape(text), color=color, size=size), FONT_ROOM * text_width(text, size), size + 5.0)


def _table(lines: Iterable[_Line], width: float, *, centred: bool) -> Markup:
    side = "center" if centred else "left"
    rows = "".join(f'<tr><td align="{side}">{line.markup}</td></tr>' for line in lines)
    size = f'width="{width:.0f}"'
    return Markup(f'<table border="0" cellborder="0" cellspacing="0" cellpadding="2" {size}>{rows}</table>')


def _point(point: Sequence[float]) -> str:
    return ",".join(f"{x:.1f}" for x in point)


def _way(curve: Sequence[Point], look: Mapping[str, object]) -> str:
    """The way of an edge in DOT, with the arrow at its end."""
    if look.get("dir") == "none":
        return " ".join(map(_point, curve))
    end, before = curve[-1], curve[-2]
    share = ARROW / (math.dist(end, before) or 1.0)
    neck = tuple(a + share * (b - a) for a, b in zip(end, before, strict=True))
    return " ".join([f"e,{_point(end)}", *map(_point, [*curve[:-1], neck])])


def _text(text: str, color: str) -> str:
    return _font(escape(text), color=color)


def _font(text: str, **attributes: object) -> str:
    names = {"color": "color", "size": "point-size"}
    written = "".join(f' {names[key]}="{value}"' for key, value in attributes.items())
    return f"<font{written}>{text}</font>"


def _statement(subject: str, **attributes: object) -> str:
    written = ", ".join(f"{key}={_written(value)}" for key, value in attributes.items())
    return f"{subject} [{written}];" if written else f"{subject};"


class Markup(str):
    """A label in Graphviz's markup."""


def _written(value: object) -> str:
    if isinstance(value, Markup):
        return f"<{value}>"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return '"' + text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') + '"'
