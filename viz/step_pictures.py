"""The pictures of the steps: one layout, in which parts still to come are faint and the current node strong.

The drawing is laid out once. From frame to frame only colours and line widths change, so nothing moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .dot import DrawnGraph, Markup, Statement, matrix, matrix_widths
from .equations import Matrix, Piece, Word, joined
from .step_data import Passes, StepFrame
from .style import FONT, NAME_SIZE, SMALL_SIZE, TEXT_SIZE, Style
from .text import elide, escape, text_width

__all__ = ["PictureLayout", "with_faint"]

FAINT = 0.16  # the share of its colour that a part keeps which is still to come
MARGIN = 14  # points around the caption
WIDEST = 900  # points: a wider picture is cut to the part around the current node
WIDEST_BOX = 300  # points: a box farther away than this is outside of that part
SHOWN = 9  # nodes of the topological order
LINE = 18  # points from one line of the caption to the next
BELOW = 11  # points for the shape below a name
BARE_TABLE = '<table border="0" cellborder="0" cellspacing="0" cellpadding="0">'
# Graphviz stretches the columns of a line to the width of the caption: most of them are empty, at its end.
EMPTY = "<td></td>" * 80


class CaptionLine(NamedTuple):
    """A line of the caption, as Graphviz's markup, and its size in points."""

    markup: str
    width: float
    height: float


class PictureLayout:
    """The drawing of the two passes, with the position of everything in it."""

    def __init__(self, passes: Passes, style: Style, rankdir: str):
        self.passes = passes
        self.style = style
        self.picture = DrawnGraph(passes.graph, style, legend=False, rankdir=rankdir)
        self.right, self.top = self.picture.layout.width, self.picture.layout.height
        self.captions = [[*self._lines(frame)] for frame in passes.frames]
        longest = max(line.width for lines in self.captions for line in lines) + 2 * MARGIN
        self.width = min(max(self.right, longest), max(WIDEST, longest))
        self.statements = list(self.picture.statements())
        self.across = {key: place.x for key, place in self.picture.layout.places.items()}
        self.faint: dict[str, dict[str, object]] = {}  # by key, the look of a part that is still to come
        # One line more is for the order of the nodes.
        self.height = LINE + MARGIN + max(sum(line.height for line in lines) for lines in self.captions)

    def source_of(self, number: int) -> str:
        """The DOT text of one frame, with its caption."""
        frame = self.passes.frames[number]
        left = self._window(number, frame)
        within = self._within(left)
        shown = [self._shown(x, number, frame) for x in self.statements if x.key in within]
        view = self._view(left) if self.width < self.right else []
        return self.picture.text([*view, self._caption(number, frame, left)], shown)

    def _window(self, number: int, frame: StepFrame) -> float:
        """The left edge of the part that is shown: the step is in its middle, or else the current node."""
        fresh = [x.key for x in self.statements if self.passes.appears(x.key) == number]
        keys = [frame.key, *frame.marked, *(end for key in fresh for end in key.split("->"))]
        places = [self.across[key] for key in keys if key in self.across] or [0.0]
        middle = (min(places) + max(places)) / 2
        if max(places) - min(places) > self.width - WIDEST_BOX:
            middle = self.across.get(frame.key, 0.0)
        return max(min(middle - self.width / 2, self.right - self.width), 0.0)

    def _within(self, left: float) -> set[str]:
        """The nodes and edges that reach into the part that is shown."""
        right = left + self.width
        inside = {key for key, x in self.across.items() if left - WIDEST_BOX < x < right + WIDEST_BOX}
        reaching = set()
        for x in self.statements:
            ends = [self.across[end] for end in x.key.split("->")]
            if min(ends) < right and max(ends) > left:
                reaching |= {x.key, *x.key.split("->")}
        return inside | reaching

    def _view(self, left: float) -> list[str]:
        """The part that is shown; points in the corners, or else the picture would shrink to it."""
        # Graphviz moves the picture, with its caption, to where x and y are not negative.
        height = self.top + MARGIN + self.height
        size = f"{self.width + 2 * MARGIN:.0f},{height + 2 * MARGIN:.0f}"
        view = f'graph [viewport="{size},1,{left + self.width / 2:.1f},{height / 2:.1f}"];'
        return [view] + [
            f'corner{i} [shape=point, style=invis, width=0.01, label="", pos="{x},{y}"];'
            for i, (x, y) in enumerate([(0, 0), (self.right, self.top)])
        ]

    def _shown(self, part: Statement, number: int, frame: StepFrame) -> Statement:
        """A node or an edge as it looks in a frame."""
        key, look = part.key, part.attributes
        appears = self.passes.appears(key)
        if appears > number:
            if key not in self.faint:
                self.faint[key] = self._faint(part)
            return Statement(part.subject, self.faint[key])
        if "->" in key:
            more: dict[str, object] = {"penwidth": 2.6} if appears == number else {}
        elif key == frame.key or (key.endswith("_op") and appears == number):
            strong = self.style.row(int(frame.phase != "forward")).operator
            more = {"penwidth": 4 if key == frame.key else 2.6, "color": strong}
        else:
            more = {"penwidth": 2.8} if key in frame.marked else {}
        return Statement(part.subject, {**look, **more})

    def _faint(self, part: Statement) -> dict[str, object]:
        """The same look in colours near the background's; in a box, only the name can be read."""
        ground = self.style.background
        look: dict[str, object] = {"color": self.style.edge if "->" in part.key else self.style.text}
        for name, value in {**look, **part.attributes}.items():
            if isinstance(value, Markup):
                value = Markup(re.sub(r'(<(?:font|table) [^>]*color=")#\w+', rf"\g<1>{ground}", value))
            elif isinstance(value, str) and value.startswith("#"):
                value = _mixed(value, ground, FAINT)
            look[name] = value
        return look | {"fontcolor": _mixed(self.style.text, ground, 3 * FAINT)}

    def _lines(self, frame: StepFrame) -> Iterator[CaptionLine]:
        """The caption: what happens, and the equations."""
        quiet, ink = self.style.quiet, self.style.text
        yield self._line([Word(frame.title)], quiet)
        for x in frame.equations:
            yield from self._wrapped([*_between(x.sides), Word(x.note)], ink)
            yield from self._wrapped(_between(x.entry), quiet)
            yield from self._wrapped([Word(f"{word} ") for word in x.why.split()], quiet)
        if frame.more:
            yield self._line([Word(frame.more)], quiet)

    def _wrapped(self, pieces: Sequence[Piece], color: str) -> Iterator[CaptionLine]:
        """Pieces in as many lines as they need."""
        line: list[Piece] = []
        for x in pieces:
            if line and sum(map(_width, [*line, x])) > WIDEST - 2 * MARGIN:
                yield self._line(joined(line), color)
                line = []
            line.append(x)
        if line:
            yield self._line(joined(line), color)

    def _line(self, pieces: Sequence[Piece], color: str) -> CaptionLine:
        width, height = sum(map(_width, pieces)), max(map(_height, pieces))
        if len(pieces) == 1:
            return CaptionLine(self._piece(pieces[0], color), width, height)
        cells = "".join(f'<td width="{_width(x):.0f}">{self._piece(x, color)}</td>' for x in pieces)
        return CaptionLine(f"{BARE_TABLE}<tr>{cells}{EMPTY}</tr></table>", width, height)

    def _piece(self, piece: Piece, color: str) -> str:
        if isinstance(piece, Matrix):
            ground = self.style.boxes["leaf"].fill
            table = matrix(piece.rows, color, self.style.bracket, piece.marked, ground)
            return f'<font point-size="{TEXT_SIZE}">{table}</font>'
        text = escape(piece.text).replace(" ", "&#160;")
        text = f"<o>{text}</o>" if piece.bar else text
        text = f'<font color="{color}">{text}{escape(piece.after).replace(" ", "&#160;")}</font>'
        if not piece.below:
            return text
        small = f'<font color="{self.style.quiet}" point-size="{SMALL_SIZE - 1}">{escape(piece.below)}</font>'
        # As much stands above the name as below it, so that names and signs are on one line.
        return (
            f'{BARE_TABLE}<tr><td height="{BELOW}"></td></tr><tr><td>{text}</td></tr>'
            f'<tr><td height="{BELOW}" valign="top">{small}</td></tr></table>'
        )

    def _order(self, frame: StepFrame) -> str:
        """The topological order around the current node, which is bold."""
        words = [escape(f"{i} {elide(name, 16)}") for i, name in enumerate(self.passes.order, 1)]
        names = [f'<font color="{self.style.quiet}">{word}</font>' for word in words]
        first = max(min(frame.place - SHOWN // 2, len(names) - SHOWN), 0)
        names[frame.place] = f'<font color="{self.style.text}"><b>{words[frame.place]}</b></font>'
        shown = names[first : first + SHOWN]
        before, after = ["…"] * (first > 0), ["…"] * (first + SHOWN < len(names))
        return "&#160; ".join(["<font>order</font>", *before, *shown, *after])

    def _caption(self, number: int, frame: StepFrame, left: float) -> str:
        """The words below the drawing: a node of one size, so that all pictures have the same size."""
        lines = self.captions[number]
        order = f'<font color="{self.style.quiet}" point-size="{SMALL_SIZE + 1}">{self._order(frame)}</font>'
        blank = self.height - LINE - MARGIN - sum(line.height for line in lines)
        lines = [*lines, CaptionLine("", 0, blank), CaptionLine(order, 0, LINE)]
        rows = "".join(
            f'<tr><td align="left" height="{line.height:.0f}">{line.markup}</td></tr>' for line in lines
        )
        rows += f'<tr><td width="{self.width:.0f}"></td></tr>'
        x, y = left + self.width / 2, -MARGIN - self.height / 2
        return (
            f"caption [shape=plaintext, fixedsize=true, width={self.width / 72:.3f}, "
            f'height={self.height / 72:.3f}, pos="{x:.1f},{y:.1f}", fontsize={NAME_SIZE}, '
            f'fontname="{FONT}", label=<{BARE_TABLE}{rows}</table>>];'
        )


def _between(sides: Sequence[Sequence[Piece]]) -> list[Piece]:
    """The pieces of an equation, with = between its sides."""
    return [x for i, side in enumerate(sides) for x in ([Word(" = ")] * (i > 0) + [*side])]


def _width(piece: Piece) -> float:
    if isinstance(piece, Matrix):
        return sum(matrix_widths(piece.rows)) + 12
    text = 1.1 * text_width(piece.text + piece.after, NAME_SIZE)
    return max(text, 1.1 * text_width(piece.below, SMALL_SIZE))


def _height(piece: Piece) -> float:
    if isinstance(piece, Matrix):
        return len(piece.rows) * (TEXT_SIZE + 5) + 8
    return LINE + (2 * BELOW if piece.below else 0)


def with_faint(style: Style) -> dict[str, str]:
    """For each colour of a picture, the one on a dark page; also of what is faint."""
    if style.dark is None:
        return {}
    grounds = style.background, style.dark.background
    faint = {
        _mixed(color, grounds[0], share): _mixed(twin, grounds[1], share)
        for color, twin in style.twins.items()
        for share in (FAINT, 3 * FAINT)
    }
    return style.twins | faint


def _mixed(color: str, ground: str, share: float) -> str:
    """A mixture of a share of one colour with a ground."""
    pairs: Sequence[tuple[int, int]] = [
        (int(color[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02X}" for a, b in pairs)
