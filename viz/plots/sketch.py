"""Diagrams of boxes, arrows and words, placed by hand in points, so that the words fit the boxes.

A diagram knows its size before there is a figure, and a new figure gets exactly this size. On Axes of another
size everything shrinks or grows together, the words too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.textpath import TextPath

from .look import INK, QUIET, drawing, figure_of

__all__ = ["Sketch", "text_width"]

MARGIN = 10  # points around everything
BODY = 9
SMALL = 7
TITLE = 11


@lru_cache(maxsize=4096)
def text_width(words: str, size: float = BODY, bold: bool = False) -> float:
    """The width of a line of text in points."""
    if not words.strip():
        return 0.0
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    hinted = 1.05  # fitted to pixels, letters are a little wider than their outlines
    return hinted * TextPath((0, 0), words, size=size, prop=font).get_extents().x1


class Sketch:
    """A diagram, in points from the upper left corner: x to the right, y down."""

    def __init__(self) -> None:
        self._drawn: list[tuple[float, Callable[[Axes, float], object]]] = []
        self._left = self._top = float("inf")
        self._right = self._bottom = float("-inf")

    @property
    def right(self) -> float:
        """The right edge of all that is there so far; 0 if there is nothing."""
        return max(self._right, 0.0)

    @property
    def bottom(self) -> float:
        """The lower edge of all that is there so far; 0 if there is nothing."""
        return max(self._bottom, 0.0)

    def _reach(self, left: float, top: float, right: float, bottom: float) -> None:
        self._left, self._top = min(self._left, left), min(self._top, top)
        self._right, self._bottom = max(self._right, right), max(self._bottom, bottom)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str = "none",
        line: str = QUIET,
        *,
        words: str = "",
        size: float = BODY,
        colour: str = INK,
        bold: bool = False,
        dashed: bool = False,
        thick: float = 0.9,
        rounded: float = 0.0,
        layer: float = 2.0,
        gid: str | None = None,
    ) -> None:
        """A box with its upper left corner at (x, y), with words in its middle."""
        self._reach(x, y, x + width, y + height)
        look: dict[str, Any] = {
            "facecolor": fill,
            "edgecolor": line,
            "linewidth": thick,
            "linestyle": (0, (3, 2)) if dashed else "-",
            "zorder": layer,
            "gid": gid,
        }

        def draw(ax: Axes, scale: float) -> None:
            styled = {**look, "linewidth": thick * scale}
            if rounded:
                shape = f"round,pad=0,rounding_size={rounded}"
                ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, **styled))
            else:
                ax.add_patch(Rectangle((x, y), width, height, **styled))

        self._drawn.append((layer, draw))
        if words:
            self.text(
                x + width / 2, y + height / 2, words, size=size, colour=colour, bold=bold, anchor="center"
            )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = BODY,
        colour: str = INK,
        bold: bool = False,
        anchor: str = "left",
        ground: str | None = None,
        layer: float = 5.0,
    ) -> float:
        """A line of text with its middle at height y, that begins at x (or has its middle or its end there).

        Returns
        -------
        float
            Its width.
        """
        width = text_width(words, size, bold)
        left = x - {"left": 0.0, "center": width / 2, "right": width}[anchor]
        self._reach(left, y - 0.7 * size, left + width, y + 0.7 * size)

        def draw(ax: Axes, scale: float) -> None:
            text = ax.text(
                *(x, y, words),
                fontsize=size * scale,
                color=colour,
                weight="bold" if bold else "normal",
                ha=anchor,
                va="center_baseline",
                zorder=layer,
                parse_math=False,
            )
            if ground:
                text.set_bbox({"facecolor": ground, "edgecolor": "none", "pad": 1.2 * scale})

        self._drawn.append((layer, draw))
        return width

    def line(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        colour: str = QUIET,
        *,
        thick: float = 0.9,
        arrow: bool = False,
        bend: float = 0.0,
        dashed: bool = False,
        alpha: float = 1.0,
        layer: float = 1.0,
        gid: str | None = None,
    ) -> None:
        """A line, with an `arrow` at its end; `bend` makes it round."""
        (x0, y0), (x1, y1) = start, end
        self._reach(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))

        def draw(ax: Axes, scale: float) -> None:
            ax.add_patch(
                FancyArrowPatch(
                    start,
                    end,
                    arrowstyle="-|>" if arrow else "-",
                    mutation_scale=7 * scale,
                    connectionstyle=f"arc3,rad={bend}",
                    shrinkA=0,
                    shrinkB=0,
                    color=colour,
                    linewidth=thick * scale,
                    linestyle=(0, (3, 2)) if dashed else "-",
                    alpha=alpha,
                    zorder=layer,
                    gid=gid,
                    capstyle="butt" if arrow else "projecting",
                    joinstyle="miter",
                )
            )

        self._drawn.append((layer, draw))

    def path(
        self,
        points: Sequence[tuple[float, float]],
        colour: str = QUIET,
        *,
        thick: float = 0.9,
        layer: float = 1.0,
    ) -> None:
        """Straight lines from point to point."""
        for start, end in pairwise(points):
            self.line(start, end, colour, thick=thick, layer=layer)

    def on(self, ax: Axes | None, title: str) -> Axes:
        """Draw it all, with a title above, on Axes or on a new figure of its own size."""
        self.text(
            self._left if self._drawn else 0,
            (self._top if self._drawn else 0) - 16,
            title,
            size=TITLE,
            bold=True,
        )
        width = self._right - self._left + 2 * MARGIN
        height = self._bottom - self._top + 2 * MARGIN
        own = ax is None
        with drawing(ax, width / 72, height / 72) as ax:
            if own:
                figure_of(ax).set_layout_engine("none")
                ax.set_position((0, 0, 1, 1))
            scale = min(ax.bbox.width / width, ax.bbox.height / height) * 72 / figure_of(ax).dpi
            ax.set_axis_off()
            ax.set_label(title)  # for those who do not see it
            ax.set_xlim(self._left - MARGIN, self._right + MARGIN)
            ax.set_ylim(self._bottom + MARGIN, self._top - MARGIN)
            ax.set_aspect("equal")
            for _, draw in self._drawn:
                draw(ax, scale)
        return ax
