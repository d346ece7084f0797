"""Plain data to DOT, the language of Graphviz. The same graph gives the same text, character by character."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from . import style as words
from .facts import BETWEEN_FACTS
from .graph_data import LEFT_OUT, Graph, Group, Operand, Variable
from .rising import RISING
from .style import FONT, LEGENDS, NAME_SIZE, SMALL_SIZE, TEXT_SIZE, Box, Style
from .text import Rows, elide, escape, text_width, wrap

__all__ = ["BETWEEN_ROWS", "RANKDIRS", "check_rankdir", "to_dot"]

# Points across. An operator with more to say than fits inside is drawn as a wider, round-ended box.
CIRCLE = 30
# Variables. In a larger graph edges are straight and short, and the search for a layout ends earlier.
MANY = 150
# Operators on the way. In a large graph, a value from farther away has no edge: it is named where it is used.
FAR = 8
# Characters. Name and shape are put on two lines where they have more in all.
LONGEST_HEADER = 20
LONGEST_FACTS = 30  # characters: what is longer has a line of its own
LEGEND_COLUMNS = 3
# Ways to go on, with the arrows of rows that run forward, and back.
RANKDIRS = {"LR": "→←", "RL": "←→", "TB": "↓↑", "BT": "↑↓"}
CUT = "✂"
BETWEEN_ROWS = "between-rows"  # the class of the edges that lead from one row to another


def check_rankdir(rankdir: str) -> None:
    """Raise ValueError for what is no way to go on."""
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
        Whether to say, below the graph, what the colours and lines mean.
    rankdir : "LR", "RL", "TB" or "BT"
        From left to right (or back), gradients below; or from top to bottom (or back), gradients to the
        right.
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
        layout |= {"splines": "true", "esep": "+5"}
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

        Graphviz stacks the nodes of a horizontal cluster from the bottom `upwards`, in the order of the text.
        """
        groups = {group.key: group for group in self.graph.groups}
        contents: dict[str, list[str | Group]] = {"": []}  # of the row itself, and of each group

        def content(key: str) -> list[str | Group]:
            if key not in contents:
                contents[key] = []
                content(groups[key].parent).append(groups[key])
            return contents[key]

        edges: list[str] = []  # of what is in a frame: within it, an edge would draw its other end in as well
        for variable in reversed(self.graph.variables) if upwards else self.graph.variables:
            if variable.row == row:
                content(variable.group).extend(self.nodes(variable))
                (edges if variable.group else contents[""]).extend(self.edges(variable))
        return [*self.framed(contents, ""), *edges]

    def framed(self, contents: Mapping[str, Sequence[str | Group]], key: str) -> Iterator[str]:
        """What a row or a group holds, with a frame around each group."""
        for item in contents[key]:
            if isinstance(item, str):
                yield item
                continue
            if self.rises:  # a frame would stand in the way of its neighbours
                yield from self.framed(contents, item.key)
                continue
            ground = self.style.row(item.row)
            yield f"subgraph cluster_{item.key} {{"
            yield "  " + _statement(
                "graph",
                label=elide(item.title), labelloc="t", labeljust="l", style="rounded", margin=9,
                penwidth=ground.line_width, color=ground.line, fontcolor=ground.title,
                fontsize=SMALL_SIZE + 1,
            )  # fmt: skip
            yield from ("  " + line for line in self.framed(contents, item.key))
            yield "}"

    def nodes(self, variable: Variable) -> Iterator[str]:
        """A variable, the operator that made it, and mentions of operands that are far away."""
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
                yield self.edge(operand.key, to, row, **_label(operand), **_left_out(operand), **look)
        if to != variable.key:
            yield self.edge(to, variable.key, row, **look)

    def source_of_cut(self, variable: Variable) -> Variable | None:
        """What a detached variable was cut from, if there is room for an edge from it."""
        source = self.by_key.get(variable.cut_from)
        return source if source is not None and source.row == variable.row else None

    def edge(self, tail: str, head: str, row: int, **attributes) -> str:
        """An edge along its row: of a gradient row, which runs back, it is written the other way round."""
        if row:
            attributes.setdefault("color", self.style.backward.operator)
        if row % 2 == 0:
            return _statement(f"{tail} -> {head}", **attributes)
        return _statement(f"{head} -> {tail}", dir="back", **attributes)

    def accent(self, variable: Variable) -> dict[str, str]:
        """The colours of an operator that failed, and of the edges at it."""
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
        """A small box that names a variable drawn elsewhere."""
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
        if text_width(symbol, TEXT_SIZE) <= CIRCLE - 7:
            return _statement(
                key, shape="circle", width=CIRCLE / 72, fixedsize="true", style="filled", **look
            )
        width = text_width(symbol, TEXT_SIZE) + 20
        return _statement(
            key,
            shape="box",
            style="rounded,filled",
            width=width / 72,
            height=24 / 72,
            margin="0.12,0.02",
            **look,
        )

    def variable(self, variable: Variable) -> str:
        box = self.style.boxes[variable.kind]
        line = "dashed" if not variable.computed else "dotted" if box.dotted else ""
        double = {"peripheries": 2} if box.double else {}
        small = {"width": 0.2, "height": 0.2} if variable.kind == "port" else {}
        return _statement(
            variable.key,
            shape="box",
            style=",".join(filter(None, [box.corners, "filled", line])),
            fillcolor=box.fill if variable.computed else self.style.background,
            color=box.line,
            penwidth=box.line_width,
            margin="0.05,0.01" if variable.kind == "port" else "0.09,0.05",
            **small,
            **double,
            label=self.table(variable),
        )

    def table(self, variable: Variable) -> _Markup:
        lines = [*self.head(variable), *self.value_lines(variable.value, self.style.text, "")]
        lines += self.value_lines(variable.gradient, self.style.gradient, "grad")
        rows = "".join(f'<tr><td align="left">{line}</td></tr>' for line in lines)
        return _Markup(f'<table border="0" cellborder="0" cellspacing="0" cellpadding="2">{rows}</table>')

    def head(self, variable: Variable) -> list[str]:
        """Name and facts, on one line if they are short."""
        if variable.kind == "failed":
            return [
                _font(f"<b>{escape(variable.name)}</b>", size=NAME_SIZE),
                *map(escape, wrap(variable.note)),
            ]
        if variable.kind == "group":
            before, arrow, after = variable.facts.partition(" → ")
            long = arrow and len(variable.facts) > LONGEST_HEADER
            shapes = [before, f"→ {after}"] if long else [variable.facts]
            lines = [*shapes, variable.note]
            return [
                _font(f"<b>{escape(elide(variable.name))}</b>", size=NAME_SIZE),
                *[_font(escape(line), color=self.style.quiet, size=SMALL_SIZE) for line in lines if line],
            ]
        if variable.kind == "port":
            return [self.small(elide(variable.name or variable.facts))]
        name, facts, note = elide(variable.name), variable.facts, elide(variable.note)
        if variable.detached and self.source_of_cut(variable) is None:
            note = f"{CUT} {note}"
        bold = _font(f"<b>{escape(name)}</b>", size=NAME_SIZE) if name else ""
        if len(facts) > LONGEST_FACTS or BETWEEN_FACTS in facts:
            return [*_joined(bold, self.small(note)), self.small(facts)]
        facts = (" " if "shape" in self.graph.shown else BETWEEN_FACTS).join(filter(None, [facts, note]))
        parts = _joined(bold, self.small(facts))
        return parts if len(name + facts) <= LONGEST_HEADER else list(filter(None, [bold, self.small(facts)]))

    def small(self, text: str) -> str:
        return _font(escape(text), color=self.style.quiet, size=SMALL_SIZE) if text else ""

    def value_lines(self, value: Rows, color: str, word: str) -> list[str]:
        """A line of text; or a matrix between two bars, below its word."""
        if len(value) < 2:
            return [_font(escape(" ".join(filter(None, [word, *row]))), color=color) for row in value]
        return ([_font(word, color=color)] if word else []) + [self.matrix(value, color)]

    def matrix(self, value: Rows, color: str) -> str:
        # The size is fixed, for otherwise Graphviz stretches the matrix to the width of the box.
        columns = zip(*value, strict=True)
        widths = [1.15 * max(text_width(x, TEXT_SIZE) for x in column) + 8 for column in columns]
        height = TEXT_SIZE + 5
        rows = ""
        for row in value:
            cells = [
                f'<td align="right" width="{width:.0f}" height="{height}">{_text(text, color)}</td>'
                for text, width in zip(row, widths, strict=True)
            ]
            rows += f"<tr>{''.join(cells)}</tr>"
        size = f'fixedsize="true" width="{sum(widths) + 8:.0f}" height="{len(value) * height + 2}"'
        bars = f'border="1" sides="LR" color="{self.style.bracket}"'
        bars += ' cellborder="0" cellspacing="0" cellpadding="1"'
        return f"<table {bars} {size}>{rows}</table>"

    def legend(self) -> _Markup:
        """A table of what occurs in the graph, and what it means."""
        style, variables = self.style, self.graph.variables
        kinds = {variable.kind for variable in variables}
        entries = [
            (self.swatch(style.boxes[kind]), legend)
            for kind, legend in LEGENDS.items()
            if legend and kind in kinds
        ]
        if any(variable.kind == "group" and "× " in variable.name for variable in variables):
            entries.append((_text("× n", style.text), words.REPEATED))
        if self.graph.groups and not self.rises:
            frame = Box(style.background, style.forward.line, line_width=1)
            entries.append((self.swatch(frame), words.FRAME))
        if not all(variable.computed for variable in variables):
            hollow = Box(style.background, style.quiet, corners="dashed", line_width=1)
            entries.append((self.swatch(hollow), words.NOT_COMPUTED))
        operators = [v.operator for v in variables if v.row >= self.graph.forward_rows]
        if any(operator and operator.symbol == "=" for operator in operators):
            entries.append((_text("=", style.backward.operator), words.PASSED_ON))
        if self.far:
            entries.append((_text("(x)", style.quiet), words.MENTIONED))
        elif any('style="dashed"' in edge for edge in self.edges_between_rows()):
            entries.append((_text("- - -", style.reuse), words.REUSED))
        if any(variable.detached for variable in variables):
            entries.append((_text(CUT, style.cut), words.CUT))
        if "bytes" in self.graph.shown:
            entries.append((_text("B, kB", style.quiet), words.BYTES))
        if self.lacks_gradients():
            entries.append((_text("grad", style.gradient), words.NO_GRADIENTS))
        cells = [
            f'<td>{sign}</td><td align="left">{_font(escape(meaning), color=self.style.quiet)}</td>'
            for sign, meaning in entries
        ]
        rows = [cells[i : i + LEGEND_COLUMNS] for i in range(0, len(cells), LEGEND_COLUMNS)]
        gap = '<td width="8"></td>'
        table = "".join(f"<tr>{gap.join(row)}</tr>" for row in rows)
        return _Markup(f'<table border="0" cellborder="0" cellspacing="2" cellpadding="2">{table}</table>')

    def lacks_gradients(self) -> bool:
        """Whether there is no gradient where one could be: the legend says why, and no box shows zeros."""
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


def _far(graph: Graph) -> set[tuple[str, str]]:
    """Operands and results (by key) that are too far apart for an edge; none where the graph is small."""
    if len(graph.variables) <= MANY:
        return set()
    row = {variable.key: variable.row for variable in graph.variables}
    # Operators from here to the end of the row: a variable stands just before its first use.
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


def _columns(graph: Graph) -> Iterator[str]:
    """What belongs together stands in one column."""
    for column in graph.columns:
        yield f"{{ rank=same; {'; '.join(column)}; }}"


def _spine(graph: Graph) -> Iterator[str]:
    """Upper rows above lower ones.

    Graphviz is free in the order of clusters, and takes the one that has the fewest crossings of edges. So a
    column of unseen points is put where all rows begin, with an edge from each to its row: any other order
    has more crossings.
    """
    points = {row: f"spine{row}" for row in graph.rows}
    for row, point in points.items():
        keys = [variable.key for variable in graph.variables if variable.row == row]
        yield _statement(point, shape="point", style="invis", width=0.01, label="")
        yield _statement(f"{point} -> {keys[-1] if row % 2 else keys[0]}", style="invis")
    yield f"{{ rank=same; {' -> '.join(points.values())} [style=invis]; }}"


def _entrance(variable: Variable) -> str:
    """Where edges to a variable lead: its operator; or itself, if it is a closed group."""
    return f"{variable.key}_op" if variable.operator and variable.operator.symbol else variable.key


def _label(operand: Operand) -> dict[str, str]:
    return {"label": f" {operand.label} "} if operand.label else {}


def _left_out(operand: Operand) -> dict[str, str]:
    return {"style": "dotted"} if operand.key == LEFT_OUT else {}


def _row_title(row: int, rankdir: str) -> str:
    order = row.bit_length()  # of rows 0 | 1 | 2, 3 | 4 to 7: each reverse mode adds as many as there were
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
    """A label in Graphviz's markup; any other text stands for itself."""


def _written(value: object) -> str:
    if isinstance(value, _Markup):
        return f"<{value}>"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return '"' + text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') + '"'
