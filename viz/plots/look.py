"""The common look of all pictures that are not graphs, and the Axes that they are drawn on.

The colours are those of the drawings of graphs: blue and orange first, which every kind of colour blindness
tells apart. What a colour says, every picture also says in words, by markers or by the kind of line.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from ..text import number, superscript
from .theme import PictureFigure, settings

__all__ = [
    "COLOURS", "DIVERGING", "MARKERS", "SEQUENTIAL", "colour_bar", "colour_limit", "drawing", "figure_of",
    "framed_image", "panels", "plain", "power_of_ten", "write_plainly",
]  # fmt: skip

INK = "#101828"
QUIET = "#4F5C73"
FAINT = "#D5DAE3"
PAPER = "#FFFFFF"

BLUE = "#1D5FD1"
ORANGE = "#D97706"
GREEN = "#0B7A53"
MAGENTA = "#A8327A"
CYAN = "#2E9CC4"
GREY = "#475467"
RED = "#C4221B"  # only for what went wrong

PALE_BLUE = "#E4EEFE"
PALE_ORANGE = "#FFF1DE"
PALE_GREEN = "#DFF5EA"
PALE_RED = "#FDE8E8"
PALE_GREY = "#F3F5F8"

# For curves and classes, in this order. Markers tell similar colours apart.
COLOURS = (BLUE, ORANGE, GREEN, MAGENTA, CYAN, GREY, "#C9A20C", "#6D4AA8", "#8A5A33", "#E07A9B")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")

#: Below zero orange, zero white, above zero blue.
DIVERGING = LinearSegmentedColormap.from_list(
    "needle_diverging", ["#8A4B04", ORANGE, "#FFFFFF", BLUE, "#0F3475"]
)
#: From white to dark blue.
SEQUENTIAL = LinearSegmentedColormap.from_list("needle_sequential", ["#FFFFFF", "#8FB3F0", BLUE, "#0F3475"])

# Your own matplotlib settings do not change these pictures: what shapes them starts from matplotlib's
# defaults. Where figures are shown and how they are saved is up to you.
_SHAPES = (
    "axes", "axes3d", "boxplot", "contour", "errorbar", "figure", "font", "grid", "hatch", "hist", "image",
    "legend", "lines", "markers", "mathtext", "patch", "path", "scatter", "text", "xaxis", "xtick", "yaxis",
    "ytick",
)  # fmt: skip
_STYLE: dict[str, Any] = {
    **{key: value for key, value in mpl.rcParamsDefault.items() if key.split(".")[0] in _SHAPES},
    "axes.axisbelow": True,
    "axes.edgecolor": "#98A2B3",
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.1,
    "figure.constrained_layout.w_pad": 0.1,
    "figure.dpi": 100,
    "figure.facecolor": PAPER,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: a picture is the same everywhere
    "font.size": 9,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "text.color": INK,
    "xtick.color": QUIET,
    "xtick.labelsize": 9,
    "ytick.color": QUIET,
    "ytick.labelsize": 9,
}
_one_at_a_time = threading.RLock()  # matplotlib's settings are global


@contextmanager
def drawing(
    ax: Axes | None, width: float = 6.0, height: float = 4.0, *, private: bool = False
) -> Iterator[Axes]:
    """Draw in the common style within this block, on `ax` or on the Axes of a new figure.

    Where figures are shown (a notebook, a window) `matplotlib.pyplot` knows the new one, so that it appears
    like any other. Elsewhere it belongs to the caller alone, and goes when the Axes go.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
    width, height : float
        The size of a new figure, in inches.
    private : bool
        Whether a new figure belongs to the caller alone in any case.

    Raises
    ------
    TypeError
        If `ax` is something else.
    """
    if not isinstance(ax, Axes | None):
        raise TypeError(f"ax: needs matplotlib Axes or None, got {type(ax).__name__}")
    with _one_at_a_time, settings(_STYLE):
        figure = None
        if ax is None:
            figure = _new_figure(width, height, private)
            ax = figure.add_subplot()
        else:
            _dress(ax)
        try:
            yield ax
            if figure is not None:
                figure.draw_without_rendering()  # ticks are made when first drawn: now, in this style
        except BaseException:
            if figure is not None:
                plt.close(figure)
            raise


def panels(count: int, *, width: float = 3.6, height: float = 3.2) -> tuple[Axes, ...]:
    """Axes side by side in one figure, for pictures that belong together: give each as ``ax=`` to a picture.

    Parameters
    ----------
    count : int
    width, height : float
        The size of each, in inches.

    Returns
    -------
    tuple of matplotlib.axes.Axes

    Examples
    --------
    >>> left, right = viz.panels(2)
    >>> viz.decision_boundary(line, X, y, ax=left)
    >>> viz.decision_boundary(net, X, y, ax=right)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"panels: count: needs a whole number from 1 on, got {count!r}")
    with _one_at_a_time, settings(_STYLE):
        figure = _new_figure(count * width, height, private=False)
        figure.set_layout_engine("none")  # it would draw everything once more, which shows when you drag
        room = {"left": 0.62 / (count * width), "bottom": 0.52 / height}  # for numbers and words at the axes
        return tuple(figure.subplots(1, count, squeeze=False, gridspec_kw={"wspace": 0.35, **room})[0])


def figure_of(ax: Axes) -> Figure:
    """The figure that Axes are in, even if they are in a subfigure."""
    figure = ax.get_figure()
    while not isinstance(figure, Figure):
        assert figure is not None
        figure = figure.get_figure()
    return figure


def colour_bar(
    ax: Axes,
    mappable: ScalarMappable,
    label: str,
    *,
    shrink: float = 0.9,
    pad: float = 0.03,
    aspect: float = 20,
    **look: Any,
) -> Colorbar:
    """Draw a bar beside Axes that says what the colours in them mean."""
    bar = figure_of(ax).colorbar(mappable, ax=ax, shrink=shrink, pad=pad, aspect=aspect, **look)
    bar.ax.set_ylabel(label)
    bar.outline.set_visible(False)
    bar.ax.tick_params(color=QUIET, labelcolor=QUIET)
    return bar


def colour_limit(values: np.ndarray, limit: float | None = None) -> float:
    """The number with the darkest colour on a scale around 0: the `limit`, or the largest that is finite."""
    if limit is None:
        limit = float(abs(values[np.isfinite(values)]).max(initial=0.0))
    return limit or 1.0


def framed_image(
    ax: Axes, values: np.ndarray, x: float, y: float, width: float, height: float, **look: Any
) -> AxesImage:
    """Draw an array as coloured cells in a thin frame, with its upper left corner at (x, y)."""
    ax.add_patch(
        Rectangle((x, y), width, height, fill=False, edgecolor="#98A2B3", linewidth=0.6, clip_on=False)
    )
    return ax.imshow(values, extent=(x, x + width, y + height, y), interpolation="nearest", **look)


def write_plainly(axis: Axis) -> None:
    """Ticks on a logarithmic axis: 0.01, 1, 100; or 0.5, 1, 2 if it is short; or 10⁻⁸, 10⁻⁴, 10⁰."""
    low, high = axis.get_view_interval()
    if not low > 0:
        return
    if high < 100 * low:
        near, far = LogLocator(subs=(1, 2, 3, 5, 7)), LogLocator(subs=(1, 2, 5))
        axis.set_major_locator(far if high > 12 * low else near if high > 4 * low else MaxNLocator(nbins=6))
    else:
        axis.set_major_locator(LogLocator(numticks=9))
    plain = low > 5e-5 and high < 2e5
    axis.set_major_formatter(lambda x, _: f"{x:.12f}".rstrip("0").rstrip(".") if plain else power_of_ten(x))
    axis.set_minor_formatter(NullFormatter())


def power_of_ten(x: float) -> str:
    """A tick on an axis over many powers of ten."""
    power = math.log10(x)
    return f"10{superscript(round(power))}" if abs(power - round(power)) < 1e-6 else number(x, 2)


def plain(words: str) -> str:
    """Words to be shown as they are: otherwise a pair of dollar signs would turn them into a formula."""
    return words.replace("$", r"\$")


def _new_figure(width: float, height: float, private: bool) -> Figure:
    if private or mpl.get_backend().lower() in _SILENT:
        figure = PictureFigure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure
    return plt.figure(figsize=(width, height), layout="constrained", FigureClass=PictureFigure)


# Backends that show nothing: a figure that pyplot knows would only stay in memory.
_SILENT = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}


def _dress(ax: Axes) -> None:
    """Give the caller's Axes the style that new ones have."""
    ax.set_facecolor(PAPER)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(color=mpl.rcParams["axes.edgecolor"], linewidth=0.8)
    ax.tick_params(color=QUIET, labelcolor=QUIET, labelsize=9)
    ax.set_axisbelow(True)
