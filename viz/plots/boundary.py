"""What a model of two inputs decides, all over the plane."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap, ListedColormap, to_rgb

from needle.autograd import Tensor

from ..drawing import check_size
from ..text import number
from .look import COLOURS, FAINT, GREY, INK, MARKERS, PAPER, QUIET, RED, colour_bar, drawing
from .running import as_numpy, evaluated

__all__ = ["decision_boundary"]

GROUND = LinearSegmentedColormap.from_list("needle_ground", ["#F4B766", "#FFFFFF", "#8FB3F0"]).with_extremes(
    bad=FAINT
)


def decision_boundary(
    model: Callable[[Tensor], Any],
    points: Any,
    labels: Any = None,
    *,
    threshold: float = 0.0,
    resolution: int = 120,
    ax: Axes | None = None,
) -> Axes:
    """Draw what a model of two inputs decides all over the plane, and the points that it learned from.

    The model runs on a grid around the points, in evaluation mode and without a graph. Afterwards it is as
    it was before.

    Parameters
    ----------
    model : Module or callable
        Takes a Tensor of shape (n, 2), and gives one output for each point, or one logit for each class.
    points : array, shape (n, 2)
    labels : array of n numbers, optional
        The classes of the points. With one output there are two, such as 0 and 1 or -1 and 1, and the
        larger belongs where the output is above `threshold`; with k logits they are 0 to k - 1.
    threshold : float
        The output at which the decision changes: 0 for a score or a logit, 0.5 for a probability.
    resolution : int
        Steps of the grid along each axis.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.decision_boundary(model, X, y)
    >>> viz.decision_boundary(lambda x: ndl.sigmoid(model(x)), X, y, threshold=0.5)
    """
    points = as_numpy("decision_boundary", "points", points)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points) or not np.isfinite(points).all():
        strange = " with nan or inf" if not np.isfinite(points).all() else ""
        raise ValueError(
            f"decision_boundary: points: needs finite numbers of shape (n, 2), got {points.shape}{strange}"
        )
    check_size("decision_boundary: resolution", resolution, 2)
    classes = None if labels is None else as_numpy("decision_boundary", "labels", labels).reshape(-1)
    if classes is not None and len(classes) != len(points):
        raise ValueError(f"decision_boundary: {len(points)} points, but {len(classes)} labels")
    xs, ys = _grid(points, resolution)
    plane = np.stack([grid.ravel() for grid in np.meshgrid(xs, ys)], axis=1)
    outputs = evaluated("decision_boundary", model, plane)
    k = outputs.shape[1]
    names = _class_names(classes, k)
    with drawing(ax, 5.0, 4.1) as ax:
        shape = (resolution, resolution)
        if k == 1:
            _draw_score(ax, xs, ys, outputs.reshape(shape), threshold)
            ax.set_title("Decision boundary")
        else:
            _draw_regions(ax, xs, ys, outputs, shape)
            ax.set_title("Decision regions")
        _draw_points(ax, points, classes, names, k)
        ax.set(xlabel="x1", ylabel="x2", xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]), aspect="equal")
    return ax


def _grid(points: np.ndarray, resolution: int) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of a square around all points, with some room."""
    low, high = points.min(0), points.max(0)
    half = float((high - low).max()) / 2 or 1.0  # around a single place
    half = max(half, 1e-3 * float(abs(points).max())) * 1.12
    middle = (low + high) / 2
    xs, ys = (np.linspace(m - half, m + half, resolution) for m in middle)
    return xs, ys


def _class_names(classes: np.ndarray | None, k: int) -> list[float]:
    """The labels in order; ValueError if they do not fit the model's outputs."""
    if classes is None:
        return []
    names = np.unique(classes).tolist()
    if k == 1 and len(names) > 2:
        raise ValueError(
            f"decision_boundary: one output tells two classes apart, but the labels are "
            f"{', '.join(map(number, names[:8]))}; the model needs a logit for each class"
        )
    if k > 1 and not all(name in range(k) for name in names):
        raise ValueError(
            f"decision_boundary: the model has {k} logits, so labels must be 0 to {k - 1}; got "
            f"{', '.join(map(number, names[:8]))}"
        )
    return names


def _draw_score(ax: Axes, xs: np.ndarray, ys: np.ndarray, z: np.ndarray, threshold: float) -> None:
    finite = z[np.isfinite(z)]
    reach = float(abs(finite - threshold).max()) if finite.size else 0.0
    reach = reach or 1.0
    mesh = ax.pcolormesh(
        *(xs, ys, np.ma.masked_invalid(z)),
        cmap=GROUND,
        vmin=threshold - reach,
        vmax=threshold + reach,
        shading="nearest",
        rasterized=True,
    )
    if finite.size and finite.min() < threshold < finite.max():
        ax.contour(xs, ys, np.ma.masked_invalid(z), levels=[threshold], colors=INK, linewidths=1.6)
    bar = colour_bar(ax, mesh, "output", shrink=0.86, pad=0.02, aspect=24)
    bar.ax.axhline(threshold, color=INK, linewidth=1.6)
    if finite.size < z.size:
        _note(ax, f"grey: nan or inf ({z.size - finite.size:,} of {z.size:,})", RED)


def _draw_regions(ax: Axes, xs: np.ndarray, ys: np.ndarray, outputs: np.ndarray, shape: tuple) -> None:
    k = outputs.shape[1]
    region = np.argmax(np.where(np.isnan(outputs), -np.inf, outputs), axis=1).reshape(shape)
    pale = ListedColormap([_paler(colour) for _, colour in zip(range(k), cycle(COLOURS), strict=False)])
    norm = BoundaryNorm(np.arange(k + 1) - 0.5, k)
    mesh = ax.pcolormesh(xs, ys, region, cmap=pale, norm=norm, shading="nearest", rasterized=True)
    for one in range(k):
        inside = (region == one).astype(float)
        if 0 < inside.sum() < inside.size:
            ax.contour(xs, ys, inside, levels=[0.5], colors=GREY, linewidths=0.9)
    bar = colour_bar(ax, mesh, "class", shrink=0.86, pad=0.02, aspect=24, ticks=range(k))
    bar.ax.tick_params(length=0)
    strange = int((~np.isfinite(outputs)).any(1).sum())
    if strange:
        _note(ax, f"nan or inf at {strange:,} of {len(outputs):,} places", RED)


def _draw_points(ax: Axes, points: np.ndarray, classes: np.ndarray | None, names: list, k: int) -> None:
    size = float(np.clip(4000 / len(points), 12, 36))
    look: dict[str, Any] = {"s": size, "linewidths": 0.6, "edgecolors": PAPER, "zorder": 3}
    if classes is None:
        ax.scatter(*points.T, color=INK, **look)
        return
    for place, name in enumerate(names):
        # With a single output the larger label is blue, like the ground above the threshold.
        below = k == 1 and (place == 0 if len(names) == 2 else name <= 0)
        kind = int(below) if k == 1 else int(name)
        ax.scatter(
            *points[classes == name].T,
            color=COLOURS[kind % len(COLOURS)],
            marker=MARKERS[kind % len(MARKERS)],
            label="label " * (name == names[0]) + number(int(name) if float(name).is_integer() else name),
            **look,
        )
    if len(names) <= 3:  # the colour bar tells the rest
        ax.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=len(names),
            handletextpad=0.1,
            columnspacing=0.8,
            borderpad=0,
        )


def _paler(colour: str) -> tuple[float, ...]:
    return tuple(0.38 * part + 0.62 for part in to_rgb(colour))


def _note(ax: Axes, words: str, colour: str = QUIET) -> None:
    """A line under the title, at the upper edge of the picture."""
    ax.text(
        *(0.98, 0.98, words),
        transform=ax.transAxes,
        ha="right",
        va="top",
        color=colour,
        fontsize=8,
        zorder=6,
        bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 2},
    )
