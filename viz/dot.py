"""Plain data to DOT, the language of Graphviz. The same graph always gives the same text."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from . import style as words
from .facts import BETWEEN_FACTS
from .graph_data import LEFT_OUT, Graph, Group, Operand, Variable
from .rising import RISING
from .style import FONT, LEGENDS, NAME_SIZE, SMALL_SIZE, TEXT_SIZE, Box, Style
from .text import Rows, elide, escape, text_width, wrap

__all__ = ["BETWEEN_ROWS", "CUT", "RANKDIRS", "check_rankdir", "matrix", "matrix_widths", "to_dot"]

CIRCLE = 30  # points across: an operator with longer words is drawn as a wide box with round ends
MANY = (
    150  # variables: in a larger graph edges are straight and short, and the search for a layout ends early
)
FAR = 8  # operators: in a large graph, a value from farther away has no edge but is named where it is used
LONGEST_HEADER = 20  # characters: a longer name and shape stand on two lines
LONGEST_FACTS = 30  # characters: longer facts have a line of their own
MARGIN = 9  # points between a frame and what it holds …
ROOM = 16  # … and if edges lead from a gate around that
LEGEND_COLUMNS = 3
# Directions, with the arrows of rows that run forward and back.
RANKDIRS = {"LR": "→←", "RL": "←→", "TB": "↓↑", "BT": "↑↓"}
NO_BREAK = "\N{NO-BREAK SPACE}"
CUT = "✂"
BETWEEN_ROWS = "between-rows"  # the class of edges from one row to another


def check_rankdir(rankdir: str) -> None:
    """Raise ValueError if this is not one of `RANKDIRS`."""
    if not isinstance(rankdir, str) or rankdir not in RANKDIRS:
        raise ValueError(
            f"rankdir: needs 'LR' (left to right), 'TB' (top to bottom), 'RL' or 'BT', got {rankdir!r}"
        )


def to_dot(graph: Graph, style: Style, *, legend: bool = True, rankdir: str = "LR") -> str:
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
    """
    return _Dot(graph, style, legend, rankdir).text()


class _Dot:
    """A graph on its way to DOT."""

    def __init__(self, graph: Graph, style: Style, legend: bool, rankdir: str):
        self.graph = graph
        self.style = style
        self.has_legend = legend
        self.rankdir = rankdir
        self.by_key = {variable.key: variable for variable in graph.variables}
        self.far = _far(graph)
        self.rises = style.rises and rankdir == "LR" and len(graph.variables) <= MANY
        self.gates = [] if self.rises else _gates(graph, self.far)
        self.gated = {gate.group for gate in self.gates}
        self.gate_to = {(gate.value, user): gate for gate in self.gates for user in gate.users}

    def text(self) -> str:
        several = len(self.graph.rows) > 1
        lines = [*self.header()]
        for row in self.graph.rows:
            body = self.row(row, upwards=several and self.rankdir in ("LR", "RL"))
            lines += self.cluster(row, body) if several else body
        if several:
            lines += [*self.edges_between_rows(), *_columns(self.graph), *_spine(self.graph)]
        return "\n".join(["digraph {", *["  " + line for line in lines], "}"]) + "\n"

    def header(self) -> Iterator[str]:
        layout: dict[str, object] = {"comment": RISING} if self.rises else {}
        layout |= {"rankdir": self.rankdir, "newrank": "true", "nodesep": 0.28, "ranksep": 0.34, "pad": 0.2}
        layout |= {"splines": "true"}
        if len(self.graph.variables) > MANY:
            layout |= {"splines": "line", "nslimit": 0.05, "nslimit1": 0.5, "mclimit": 0.2}
        look = {"bgcolor": self.style.background, "fontname": FONT, "fontsize": SMALL_SIZE}
        label = {"labelloc": "b", "labeljust": "l", "label": self.legend()} if self.has_legend else {}
        yield _statement("graph", **layout, **look, **label)
        yield _statement("node", fontname=FONT, fontsize=TEXT_SIZE, fontcolor=self.style.text, penwidth=1.2)
        yield _statement(
            "edge",
            color=self.style.edge, arrowsize=0.65, penwidth=1.1,
            fontname=FONT, fontsize=SMALL_SIZE, fontcolor=self.style.quiet,
        )  # fmt: skip

    def cluster(self, row: int, body: Iterable[str]) -> list[str]:
        ground = self.style.row(row)
        look = _statement(
            "graph",
            label=_row_title(row, self.rankdir), labelloc="t", labeljust="l", style="rounded,filled",
            margin=12, penwidth=ground.line_width, fillcolor=ground.fill, color=ground.line,
            fontcolor=ground.title, fontsize=TEXT_SIZE,
        )  # fmt: skip
        return [f"subgraph cluster_{row} {{", *["  " + line for line in [look, *body]], "}"]

    def row(self, row: int, *, upwards: bool) -> list[str]:
        """The variables and operators of a row, the frames of its open groups, and the edges between them.

        In a horizontal cluster Graphviz stacks the nodes from the bottom `upwards`, in the order of the text.
        """
        groups = {group.key: group for group in self.graph.groups}
        contents: dict[str, list[str | Group]] = {"": []}  # in the row itself, and in each group

        def content(key: str) -> list[str | Group]:
            if key not in contents:
                contents[key] = []
                content(groups[key].parent).append(groups[key])
            return contents[key]

        edges: list[str] = []  # at nodes in a frame: inside it, an edge would pull its other end in as well
        for variable in reversed(self.graph.variables) if upwards else self.graph.variables:
            if variable.row == row:
                content(variable.group).extend(self.nodes(variable))
                (edges if variable.group else contents[""]).extend(self.edges(variable))
        for gate in self.gates:
            if gate.row == row:
                content(gate.group).append(self.gate(gate))
                edges.append(self.edge(gate.source, gate.key, row, dir="none"))
        return [*self.framed(contents, ""), *edges]

    def framed(self, contents: Mapping[str, Sequence[str | Group]], key: str) -> Iterator[str]:
        """The content of a row or a group, with a frame around each group in it."""
        for item in contents[key]:
            if isinstance(item, str):
                yield item
                continue
            if self.rises:  # a frame would be in the way of its neighbours
                yield from self.framed(contents, item.key)
                continue
            ground = self.style.row(item.row)
            yield f"subgraph cluster_{item.key} {{"
            yield "  " + _statement(
                "graph",
                label=elide(item.title), labelloc="t", labeljust="l", style="rounded",
                margin=ROOM if item.key in self.gated else MARGIN,
                penwidth=ground.line_width, color=ground.line, fontcolor=ground.title,
                fontsize=SMALL_SIZE + 1,
            )  # fmt: skip
            yield from ("  " + line for line in self.framed(contents, item.key))
            yield "}"

    def nodes(self, variable: Variable) -> Iterator[str]:
        """A variable, its operator, and mentions of operands that are far away."""
        yield self.variable(variable)
        if variable.operator is None:
            return
        if variable.operator.symbol:
            look = self.accent(variable) or {"color": self.style.row(variable.row).operator}
            yield self.operator(f"{variable.key}_op", variable.operator.symbol, **look)
        for key in dict.fromkeys(operand.key for operand in variable.operands):
            if (key, variable.key) in self.far:
                yield self.mention(f"{key}_for_{variable.key}", self.by_key[key], variable.row)

    def edges(self, variable: Variable) -> Iterator[str]:
        """The edges of a row that lead to a variable, by its operator."""
        source = self.source_of_cut(variable)
        if source is not None:
            cut = {"dir": "none", "style": "dashed", "color": self.style.cut, "fontcolor": self.style.cut}
            yield _statement(f"{source.key} -> {variable.key}", label=CUT, fontsize=TEXT_SIZE + 3, **cut)
        if variable.operator is None:
            return
        to, row, look = _entrance(variable), variable.row, self.accent(variable)
        for operand in variable.operands:
            if (operand.key, variable.key) in self.far:
                yield self.edge(f"{operand.key}_for_{variable.key}", to, row, **_label(operand), **look)
            elif self.by_key[operand.key].row == row:
                gate = self.gate_to.get((operand.key, variable.key))
                tail = gate.key if gate else operand.key
                yield self.edge(tail, to, row, **_label(operand), **_left_out(operand), **look)
        if to != variable.key:
            yield self.edge(to, variable.key, row, **look)

    def source_of_cut(self, variable: Variable) -> Variable | None:
        """The variable that a detached one was cut from, if it is in the same row."""
        source = self.by_key.get(variable.cut_from)
        return source if source is not None and source.row == variable.row else None

    def edge(self, tail: str, head: str, row: int, **attributes) -> str:
        """An edge along its row. A gradient row runs back, so there it is written the other way round."""
        if row:
            attributes.setdefault("color", self.style.backward.operator)
        if row % 2 == 0:
            return _statement(f"{tail} -> {head}", **attributes)
        return _statement(f"{head} -> {tail}", **({"dir": "back"} | attributes))

    def gate(self, gate: Gate) -> str:
        color = self.style.backward.operator if gate.row else self.style.edge
        return _statement(gate.key, shape="point", width=0.04, color=color)

    def accent(self, variable: Variable) -> dict[str, str]:
        """The colours of an operator that failed, and of its edges."""
        if variable.kind != "failed":
            return {}
        color = self.style.boxes["failed"].line
        return {"color": color, "fontcolor": color, "penwidth": "1.8"}

    def edges_between_rows(self) -> Iterator[str]:
        for variable in self.graph.variables:
            for operand in variable.operands:
                row = self.by_key[operand.key].row
                if row == variable.row or (operand.key, variable.key) in self.far:
                    continue
                look = {"constraint": "false", "class": BETWEEN_ROWS, "color": self.style.backward.operator}
                if row < self.graph.forward_rows:
                    look |= {"style": "dashed", "color": self.style.reuse}
                look |= _label(operand) | _left_out(operand) | self.accent(variable)
                yield _statement(f"{operand.key} -> {_entrance(variable)}", **look)

    def mention(self, key: str, variable: Variable, row: int) -> str:
        """A small box with the name of a variable that is drawn elsewhere."""
        color = self.style.reuse if variable.row != row else self.style.quiet
        name = "…" if variable.key == LEFT_OUT else elide(variable.name or variable.facts, 16)
        look = {"label": name, "fontsize": SMALL_SIZE, "fontcolor": color, "color": color}
        return _statement(
            key, shape="box", style="rounded,dashed", margin="0.06,0.02", width=0.2, height=0.2, **look
        )

    def operator(self, key: str, symbol: str, color: str, **look: str) -> str:
        look = {
            "label": symbol,
            "fillcolor": self.style.background,
            "color": color,
            "fontcolor": color,
        } | look
        width = text_width(symbol, TEXT_SIZE)
        if width <= CIRCLE - 7:
            shape = {"shape": "circle", "width": CIRCLE / 72, "fixedsize": "true", "style": "filled"}
        else:
            shape = {"shape": "box", "style": "rounded,filled", "width": (width + 20) / 72, "height": 24 / 72}
            shape |= {"margin": "0.12,0.02"}
        return _statement(key, **shape, **look)

    def variable(self, variable: Variable) -> str:
        box = self.style.boxes[variable.kind]
        line = "dashed" if not variable.computed else "dotted" if box.dotted else ""
        double = {"peripheries": 2} if box.double else {}
        return _statement(
            variable.key,
            shape="box",
            style=",".join(filter(None, [box.corners, "filled", line])),
            fillcolor=box.fill if variable.computed else self.style.background,
            color=box.line,
            penwidth=box.line_width,
            margin="0.09,0.05",
            **double,
            label=self.table(variable),
        )

    def table(self, variable: Variable) -> _Markup:
        lines = [*self.head(variable), *self.value_lines(variable.value, self.style.text, "")]
        lines += self.value_lines(variable.gradient, self.style.gradient, "grad")
        rows = "".join(f'<tr><td align="left">{line}</td></tr>' for line in lines)
        return _Markup(f'<table border="0" cellborder="0" cellspacing="0" cellpadding="2">{rows}</table>')

    def head(self, variable: Variable) -> list[str]:
        """The name and the facts, on one line if they are short."""
        name, facts, note = elide(variable.name), variable.facts, elide(variable.note)
        bold = _font(f"<b>{escape(name)}</b>", size=NAME_SIZE) if name else ""
        if variable.kind == "failed":
            return [bold, *map(escape, wrap(variable.note))]
        if variable.kind == "group":
            before, arrow, after = facts.partition(" → ")
            shapes = [before, f"→ {after}"] if arrow and len(facts) > LONGEST_HEADER else [facts]
            return [bold, *[self.small(line) for line in (*shapes, variable.note) if line]]
        if variable.detached and self.source_of_cut(variable) is None:
            note = f"{CUT} {note}"
        if len(facts) > LONGEST_FACTS or BETWEEN_FACTS in facts:
            return [*_joined(bold, self.small(note)), self.small(facts)]
        facts = (" " if "shape" in self.graph.shown else BETWEEN_FACTS).join(filter(None, [facts, note]))
        parts = _joined(bold, self.small(facts))
        return parts if len(name + facts) <= LONGEST_HEADER else list(filter(None, [bold, self.small(facts)]))

    def small(self, text: str) -> str:
        return _font(escape(text), color=self.style.quiet, size=SMALL_SIZE) if text else ""

    def value_lines(self, value: Rows, color: str, word: str) -> list[str]:
        """A line of text, or a matrix in square brackets with its word above."""
        if len(value) < 2:
            return [_font(escape(" ".join(filter(None, [word, *row]))), color=color) for row in value]
        return ([_font(word, color=color)] if word else []) + [matrix(value, color, self.style.bracket)]

    def legend(self) -> _Markup:
        """A table of everything that needs a word in this graph."""
        style, variables = self.style, self.graph.variables
        kinds = {variable.kind for variable in variables}
        later = [x.operator for x in variables if x.row >= self.graph.forward_rows and x.operator]
        frame = Box(style.background, style.forward.line, line_width=1)
        hollow = Box(style.background, style.quiet, corners="dashed", line_width=1)
        reused = any('style="dashed"' in edge for edge in self.edges_between_rows())
        entries = [
            *[(k in kinds, self.swatch(style.boxes[k]), word) for k, word in LEGENDS.items() if word],
            (self.graph.groups and not self.rises, self.swatch(frame), words.FRAME),
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
        rows = [cells[i : i + LEGEND_COLUMNS] for i in range(0, len(cells), LEGEND_COLUMNS)]
        gap = '<td width="8"></td>'
        table = "".join(f"<tr>{gap.join(row)}</tr>" for row in rows)
        return _Markup(f'<table border="0" cellborder="0" cellspacing="2" cellpadding="2">{table}</table>')

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
    # How many operators lie between here and the end of the row: a variable stands just before its first use.
    height: dict[str, int] = {}
    far = set()
    for variable in reversed(graph.variables):
        here = height.setdefault(variable.key, 0)
        for operand in variable.operands:
            if row[operand.key] == variable.row:
                height[operand.key] = max(height.get(operand.key, 0), here + 1)
    for variable in graph.variables:
        for operand in variable.operands:
            if row[operand.key] != variable.row or height[operand.key] - height[variable.key] > FAR:
                far.add((operand.key, variable.key))
    return far


class Gate(NamedTuple):
    """A small point in a frame, at which a value comes in that several operators in the frame use.

    The way of a skip connection begins there. Without it, Graphviz would lead the edge around the frame.
    """

    value: str
    source: str  # the value itself, or its gate in a frame around this one
    group: str
    row: int
    users: Collection[str]

    @property
    def key(self) -> str:
        return f"{self.value}_in_{self.group}"


def _gates(graph: Graph, far: Collection[tuple[str, str]]) -> list[Gate]:
    """The gates of a graph, each after those in the frames around it."""
    paths: dict[str, tuple[str, ...]] = {"": ()}  # the frames around each group, and its own
    for group in graph.groups:
        paths[group.key] = (*paths[group.parent], group.key)
    by_key = {x.key: x for x in graph.variables}
    users: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)  # and the frames between value and user
    for x in graph.variables:
        for operand in x.operands:
            value = by_key[operand.key]
            if value.row == x.row and (value.key, x.key) not in far:
                users[value.key][x.key] = tuple(
                    key for key in paths[x.group] if key not in paths[value.group]
                )
    gates: list[Gate] = []
    for key, all_users in users.items():
        waiting = [(key, all_users)]
        while waiting:
            source, between = waiting.pop()
            by_frame: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
            for user, path in between.items():
                if path:
                    by_frame[path[0]][user] = path
            for together in by_frame.values():
                if len(together) > 1:
                    shared = _shared([*together.values()])
                    gates.append(Gate(key, source, shared[-1], by_key[key].row, together.keys()))
                    further = {user: path[len(shared) :] for user, path in together.items()}
                    waiting.append((gates[-1].key, further))
    return gates


def _shared(paths: Sequence[Sequence[str]]) -> list[str]:
    """What all paths begin with."""
    together = takewhile(lambda keys: len(set(keys)) == 1, zip(*paths, strict=False))
    return [keys[0] for keys in together]


def _columns(graph: Graph) -> Iterator[str]:
    """A variable and its adjoints stand in one column."""
    for column in graph.columns:
        yield f"{{ rank=same; {'; '.join(column)}; }}"


def _spine(graph: Graph) -> Iterator[str]:
    """Invisible points that put the rows in order, from top to bottom.

    Graphviz orders clusters as it likes, so that the fewest edges cross. The points stand in a column where
    the rows begin, each with an edge to its row, so that any other order has more crossings.
    """
    points = {row: f"spine{row}" for row in graph.rows}
    for row, point in points.items():
        keys = [variable.key for variable in graph.variables if variable.row == row]
        yield _statement(point, shape="point", style="invis", width=0.01, label="")
        yield _statement(f"{point} -> {keys[-1] if row % 2 else keys[0]}", style="invis")
    yield f"{{ rank=same; {' -> '.join(points.values())} [style=invis]; }}"


def _entrance(variable: Variable) -> str:
    """The node that edges to a variable lead to: its operator, or the box of a closed group."""
    return f"{variable.key}_op" if variable.operator and variable.operator.symbol else variable.key


def _label(operand: Operand) -> dict[str, str]:
    return {"label": f" {operand.label} "} if operand.label else {}


def _left_out(operand: Operand) -> dict[str, str]:
    return {"style": "dotted"} if operand.key == LEFT_OUT else {}


def _row_title(row: int, rankdir: str) -> str:
    order = row.bit_length()  # rows 0 | 1 | 2, 3 | 4 to 7: each reverse mode doubles the rows
    titles = ["forward", "gradient", "second-order gradient", "third-order gradient"]
    title = titles[order] if order < len(titles) else f"gradient of order {order}"
    return f"{title} {RANKDIRS[rankdir][row % 2]}"


def _swatch(look: str, border: int, width: int, height: int, content: str = "") -> str:
    size = f'fixedsize="true" width="{width}" height="{height}"'
    return f'<table {look} border="{border}" cellspacing="0" {size}><tr><td>{content}</td></tr></table>'


def _joined(*parts: str) -> list[str]:
    """Pieces of text on one line, if there is one."""
    line = "&#160;&#160;".join(filter(None, parts))
    return [line] if line else []


def _text(text: str, color: str) -> str:
    return _font(escape(text), color=color)


def _font(text: str, **attributes: object) -> str:
    names = {"color": "color", "size": "point-size"}
    written = "".join(f' {names[key]}="{value}"' for key, value in attributes.items())
    return f"<font{written}>{text}</font>"


def _statement(subject: str, **attributes: object) -> str:
    written = ", ".join(f"{key}={_written(value)}" for key, value in attributes.items())
    return f"{subject} [{written}];" if written else f"{subject};"


class _Markup(str):
    """A label in Graphviz's markup."""


def _written(value: object) -> str:
    if isinstance(value, _Markup):
        return f"<{value}>"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return '"' + text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') + '"'
