"""How the drawings look: every colour, size and word of the legend, in this one place.

The colours differ in lightness as well as in hue, and no distinction hangs on colour alone: a box also says
in words what it is, a constant has square corners, and what is not computed yet has a dashed outline.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EDGE", "FONT", "FORWARD_ROW", "GRADIENT_ROW", "INK", "KINDS", "LEGEND_ORDER", "Box", "Ink", "Row"]

# Helvetica and its metric twins: whichever of them a browser has, the text is as wide as it was laid out.
FONT = "Helvetica,Arial,Liberation Sans,Nimbus Sans,sans-serif"
NAME_SIZE = 12
TEXT_SIZE = 11
SMALL_SIZE = 9


@dataclass(frozen=True)
class Ink:
    """The colours of what is not a box."""

    background: str = "#FFFFFF"
    text: str = "#101828"
    quiet: str = "#5D6B82"
    gradient: str = "#B45309"
    bracket: str = "#98A2B3"


@dataclass(frozen=True)
class Box:
    """How one kind of variable is drawn, and what the legend says of it."""

    fill: str
    line: str
    legend: str
    corners: str = "rounded"
    line_width: float = 1.2


@dataclass(frozen=True)
class Row:
    """The ground of one row of a gradient drawing, and the operators on it."""

    fill: str
    line: str
    title: str
    operator: str


INK = Ink()
EDGE = "#7D8899"
REUSE = "#1D5FD1"  # a value from an upper row that a gradient uses again

KINDS = {
    "leaf": Box("#E4EEFE", "#1D5FD1", "leaf: gradients flow to it"),
    "parameter": Box("#F9E6F1", "#A8327A", "parameter: trained"),
    "constant": Box("#FFFFFF", "#667085", "constant: no gradient", corners=""),
    "intermediate": Box("#F3F5F8", "#98A2B3", "intermediate"),
    "output": Box("#DFF5EA", "#0B7A53", "output", line_width=1.8),
    "adjoint": Box("#FFF1DE", "#D97706", "adjoint: derivative of the output by it"),
    "partial": Box("#FFFAF2", "#D97706", "partial adjoint, or a step towards one"),
    "seed": Box("#FFDDB0", "#B45309", "seed: the output's own adjoint", line_width=1.8),
    "left out": Box("#FFFFFF", "#98A2B3", "", corners=""),
}
LEGEND_ORDER = tuple(kind for kind, box in KINDS.items() if box.legend)
NOT_COMPUTED = "not computed yet (lazy)"
REUSED = "value used again by a gradient"
MENTIONED = "small dashed box: a variable drawn elsewhere"
PASSED_ON = "passed on unchanged"

FORWARD_ROW = Row(fill="#FAFBFD", line="#D5DAE3", title="#475467", operator="#475467")
GRADIENT_ROW = Row(fill="#FFFCF6", line="#F2CE9B", title="#B45309", operator="#B45309")
