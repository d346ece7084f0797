"""The look of the drawings: every colour, every size and every word of the legend.

The colours of a style differ in lightness as well as in hue, and no distinction depends on colour alone: a
box also says in words what it is, a constant has square corners, and a variable that is not computed yet has
a dashed outline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

__all__ = [
    "CODE_FONT", "CODE_FONTS", "CODE_WIDTH", "FOLLOW", "FOLLOWS", "FONT", "GROUP_TWINS", "LEGENDS",
    "OF_THE_PAGE", "STYLES", "Box", "Row", "Style", "dark_rules", "group_box", "set_style",
    "style_called",
]  # fmt: skip

# Helvetica and its twins: in any of them, text is as wide as in the layout.
FONT = "Helvetica,Arial,Liberation Sans,Nimbus Sans,sans-serif"
# Source: as Graphviz calls its font, and as a page does. Each character is as wide as any other.
CODE_FONT = "Courier"
CODE_FONTS = "ui-monospace,Menlo,Consolas,Liberation Mono,Courier New,Courier,monospace"
CODE_WIDTH = 0.6  # of its size
NAME_SIZE = 12
TEXT_SIZE = 11
SMALL_SIZE = 9
SIGN_SIZE = 16  # of a lone + or ×, which must not look like a letter

# The legend's words for each kind of variable, in its order. A box that explains itself needs none.
LEGENDS = {
    "leaf": "leaf: gradients flow to it",
    "parameter": "parameter: trained",
    "constant": "constant: no gradient",
    "intermediate": "intermediate",
    "output": "output",
    "adjoint": "adjoint: derivative of the output with respect to it",
    "partial": "partial adjoint, or a step towards one",
    "seed": "seed: the output's own adjoint",
    "failed": "the operator that failed, and its error",
    "group": "closed group: several nodes in one box",
    "left out": "",
}
NOT_COMPUTED = "not computed yet (lazy)"
REUSED = "value used again by a gradient"
MENTIONED = "small dashed box: a variable drawn elsewhere"
PASSED_ON = "passed on unchanged"
FRAME = "frame: what one module computes"
CUT = "detached: the same array, cut from the graph; no gradient passes"
BYTES = "bytes of its array; a storage counts once"
NO_GRADIENTS = "no gradients are shown: backward() has not run"


@dataclass(frozen=True)
class Box:
    """How one kind of variable is drawn.

    Attributes
    ----------
    fill, line : str
        Colours.
    corners : "rounded" or ""
    line_width : float
        In points; use whole ones to tell lines apart.
    dotted, double : bool
        The outline.
    """

    fill: str
    line: str
    corners: str = "rounded"
    line_width: float = 1.2
    dotted: bool = False
    double: bool = False


@dataclass(frozen=True)
class Row:
    """The colours of one row of a gradient drawing, and of the operators on it."""

    fill: str
    line: str
    title: str
    operator: str
    line_width: float = 1.0


@dataclass(frozen=True)
class Style:
    """A look: the colours and outlines in a drawing.

    Attributes
    ----------
    background, text, quiet, gradient, bracket, edge : str
        The colours of the ground, of names and values, of shapes and small words, of gradients' values, of
        the brackets around a matrix, of edges.
    cut : str
        The colour of the line from a variable to its detached copy.
    reuse : str
        The colour of an edge that brings a forward value to a gradient that uses it again.
    forward, backward : Row
        The rows of ordinary computation and of gradients.
    boxes : mapping from a kind of variable (a key of `LEGENDS`) to Box
    rises : bool
        Whether results stand higher than their operands, in a drawing from left to right.
    dark : Style, optional
        What takes its place on a dark page. Without it, the look is the same on any page.
    """

    background: str
    text: str
    quiet: str
    gradient: str
    bracket: str
    edge: str
    reuse: str
    cut: str
    forward: Row
    backward: Row
    boxes: Mapping[str, Box]
    rises: bool = False
    dark: Style | None = None

    def row(self, number: int) -> Row:
        """The look of a row: ordinary computation (0), or gradients."""
        return self.backward if number else self.forward

    @cached_property
    def twins(self) -> dict[str, str]:
        """For each colour, the one on a dark page; empty if the look is the same there."""
        return dict(zip(_colours(self), _colours(self.dark), strict=True)) if self.dark else {}

    def css(self, colour: str) -> str:
        """A colour as CSS, light or dark as the element is that has it."""
        twin = self.twins.get(colour, colour)
        return colour if twin == colour else f"light-dark({colour},{twin})"

    @property
    def scheme(self) -> str:
        """Whether it is "light" or "dark" on any page; empty if it follows the page."""
        return "" if self.dark else "dark" if self.background < "#8" else "light"

    @property
    def attribute(self) -> str:
        """The attribute of an element of HTML whose content has this look."""
        return f'style="color-scheme:{self.scheme}"' if self.scheme else f'class="{FOLLOWS}"'


def dark_rules(colours: Mapping[str, str], within: str = "") -> str:
    """CSS for shapes and text of an SVG: on a dark page each colour gives way to its twin."""
    return "".join(
        f'{within}[{part}="{colour.lower()}"]{{{part}:light-dark({colour},{twin})}}'
        for colour, twin in colours.items()
        for part in ("fill", "stroke")
        if colour != twin
    )


def _colours(look: Any) -> Iterator[str]:
    """All colours in a style, in one order for all styles."""
    if isinstance(look, str):
        yield from [look] if look.startswith("#") else []
    elif isinstance(look, Mapping):
        for key in LEGENDS:
            yield from _colours(look[key])
    elif is_dataclass(look):
        for field in fields(look):
            if field.name != "dark":
                yield from _colours(getattr(look, field.name))


# Groups that are told apart by number, and by colour as well: on a light page, and on a dark one. What occurs
# in a style above has the same twin there.
_GROUPS = (
    (Box("#E4EEFE", "#1D5FD1"), Box("#14305E", "#6FA8FF")),
    (Box("#FFF1DE", "#B45309"), Box("#4A2F0B", "#FFBE6B")),
    (Box("#DFF5EA", "#0B7A53"), Box("#0C4532", "#4FD6A0")),
    (Box("#F9E6F1", "#A8327A"), Box("#4A1B3B", "#F08CC6")),
    (Box("#DDF3F6", "#0E6F8A"), Box("#0B3B45", "#5CCFE6")),
    (Box("#EAE8FB", "#5B4FCF"), Box("#2D2765", "#A79CFF")),
    (Box("#F2F2CF", "#63630C"), Box("#38380B", "#D2D25C")),
    (Box("#FEE4E2", "#C4221B"), Box("#5A1613", "#FF8A80")),
)
GROUP_TWINS = {
    colour: twin
    for light, dark in _GROUPS
    for colour, twin in ((light.fill, dark.fill), (light.line, dark.line))
}


def group_box(style: Style, number: int) -> Box:
    """The look of group number 1, 2 and so on. After eight, colours come again."""
    if style.text == "#000000":  # black and white
        return Box(style.background, style.text)
    return _GROUPS[(number - 1) % len(_GROUPS)][style.scheme == "dark"]


FOLLOWS = "needle-follows"  # a class
#: CSS: what has that class is light or dark as the page is. Notebooks and books say so in an
#: attribute: JupyterLab, Colab, Sphinx's themes, VS Code. Otherwise the reader's system decides.
FOLLOW = (
    ".needle-follows{color-scheme:light dark}"
    ":is([data-jp-theme-light=true],[theme=light],[data-theme=light],[data-vscode-theme-kind=vscode-light])"
    " .needle-follows{color-scheme:light}"
    ":is([data-jp-theme-light=false],[theme=dark],[data-theme=dark],[data-vscode-theme-kind=vscode-dark])"
    " .needle-follows{color-scheme:dark}"
)


_NEEDLE = Style(
    background="#FFFFFF",
    text="#101828",
    quiet="#4F5C73",
    gradient="#96430A",
    bracket="#98A2B3",
    edge="#7D8899",
    reuse="#1D5FD1",
    cut="#C4221B",
    forward=Row(fill="#FAFBFD", line="#D5DAE3", title="#475467", operator="#475467"),
    backward=Row(fill="#FFFCF6", line="#F2CE9B", title="#B45309", operator="#B45309"),
    boxes={
        "leaf": Box("#E4EEFE", "#1D5FD1"),
        "parameter": Box("#F9E6F1", "#A8327A"),
        "constant": Box("#FFFFFF", "#667085", corners=""),
        "intermediate": Box("#F3F5F8", "#7D8899"),
        "output": Box("#DFF5EA", "#0B7A53", line_width=1.8),
        "adjoint": Box("#FFF1DE", "#D97706", line_width=1.8),
        "partial": Box("#FFFAF2", "#D97706"),
        "seed": Box("#FFDDB0", "#B45309", line_width=1.8),
        "failed": Box("#FEE4E2", "#C4221B", corners="", line_width=2.2),
        "group": Box("#EAE8FB", "#5B4FCF", line_width=1.8),
        "left out": Box("#FFFFFF", "#7D8899", corners=""),
    },
)

# Square variables and circles for operators, after the figure of Dive into Deep Learning.
_D2L = replace(
    _NEEDLE,
    quiet="#4A5568",
    gradient="#9A4A06",
    bracket="#7D8899",
    edge="#344054",
    forward=Row(fill="#FFFFFF", line="#D5DAE3", title="#475467", operator="#344054"),
    backward=Row(fill="#FFFFFF", line="#F2CE9B", title="#9A4A06", operator="#9A4A06"),
    boxes={
        "leaf": Box("#D3E6F8", "#2B5C8A", corners=""),
        "parameter": Box("#F7DDEB", "#A8327A", corners="", line_width=1.8),
        "constant": Box("#FFFFFF", "#667085", corners=""),
        "intermediate": Box("#E2E7EF", "#667085", corners=""),
        "output": Box("#D6F0E3", "#0B7A53", corners="", line_width=2.4),
        "adjoint": Box("#FFEBD1", "#B45309", corners=""),
        "partial": Box("#FFFAF2", "#B45309", corners=""),
        "seed": Box("#FFD9A6", "#9A4A06", corners="", line_width=2.4),
        "failed": Box("#FEE4E2", "#C4221B", corners="", line_width=2.4),
        "group": Box("#E3E0FA", "#4A3FBF", corners="", line_width=2.4),
        "left out": Box("#FFFFFF", "#7D8899", corners=""),
    },
    rises=True,
)


def _outlined(corners: str, line_width: float, **outline: bool) -> Box:
    """A black and white box: kinds differ in corners, width and dots."""
    return Box("#FFFFFF", "#000000", corners, line_width, **outline)


# Black and white only, for a photocopier.
_BLACK_ON_WHITE = Row(fill="#FFFFFF", line="#000000", title="#000000", operator="#000000", line_width=0.5)
_PRINT = Style(
    background="#FFFFFF",
    text="#000000",
    quiet="#000000",
    gradient="#000000",
    bracket="#000000",
    edge="#000000",
    reuse="#000000",
    cut="#000000",
    forward=_BLACK_ON_WHITE,
    backward=_BLACK_ON_WHITE,
    boxes={
        "leaf": _outlined("rounded", 2),
        "parameter": _outlined("rounded", 3),
        "constant": _outlined("", 1),
        "intermediate": _outlined("rounded", 1),
        "output": _outlined("", 3),
        "adjoint": _outlined("rounded", 2, dotted=True),
        "partial": _outlined("rounded", 1, dotted=True),
        "seed": _outlined("", 3, dotted=True),
        "failed": _outlined("", 2, double=True),
        "group": _outlined("", 2),
        "left out": _outlined("", 1),
    },
)

_DARK = Style(
    background="#11161F",
    text="#F2F5FA",
    quiet="#AEB9CA",
    gradient="#FFBE6B",
    bracket="#7D8BA1",
    edge="#7D8BA1",
    reuse="#6FA8FF",
    cut="#FF8A80",
    forward=Row(fill="#151C27", line="#36425A", title="#C3CDDC", operator="#C3CDDC"),
    backward=Row(fill="#1E1A15", line="#6B4A1F", title="#FFBE6B", operator="#FFBE6B"),
    boxes={
        "leaf": Box("#14305E", "#6FA8FF"),
        "parameter": Box("#4A1B3B", "#F08CC6"),
        "constant": Box("#11161F", "#9AA7BC", corners=""),
        "intermediate": Box("#222B3A", "#7D8BA1"),
        "output": Box("#0C4532", "#4FD6A0", line_width=1.8),
        "adjoint": Box("#4A2F0B", "#F5A742"),
        "partial": Box("#2A1F10", "#F5A742"),
        "seed": Box("#5C3807", "#FFBE6B", line_width=1.8),
        "failed": Box("#5A1613", "#FF8A80", corners="", line_width=2.2),
        "group": Box("#2D2765", "#A79CFF", line_width=1.8),
        "left out": Box("#11161F", "#7D8BA1", corners=""),
    },
)

STYLES = {"needle": _NEEDLE, "d2l": _D2L, "print": _PRINT, "dark": _DARK}
OF_THE_PAGE = replace(_NEEDLE, dark=_DARK)
_session: Style = OF_THE_PAGE


def set_style(style: str | None) -> None:
    """Choose the look of all pictures to come.

    Until you call it, pictures follow the page: they are light on a light page and dark on a dark one, and
    they change with JupyterLab's theme. A picture that is drawn with ``style=`` has that look in any case.

    Parameters
    ----------
    style : "needle", "d2l", "print", "dark" or None
        As for `draw`; None goes back to following the page. On a page, figures of matplotlib are dark with
        "dark" and light with any other; as files they are light.

    Raises
    ------
    ValueError
        If no style has this name.
    """
    global _session
    _session = OF_THE_PAGE if style is None else style_called(style)


def style_called(name: str | None) -> Style:
    """One of `STYLES`; for None, the look that `set_style` has chosen.

    Raises
    ------
    ValueError
        If no style has this name.
    """
    if name is None:
        return _session
    if not isinstance(name, str) or name not in STYLES:
        raise ValueError(f"style: needs None or one of {', '.join(map(repr, STYLES))}, got {name!r}")
    return STYLES[name]
