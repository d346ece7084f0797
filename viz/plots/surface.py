"""The surface of a loss, and the paths of optimisers over it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap
from matplotlib.lines import Line2D

from needle.autograd import Tensor
from needle.modes import no_grad

from ..drawing import check_size
from ..text import counted, number
from .look import BLUE, COLOURS, GREEN, INK, MARKERS, ORANGE, PAPER, RED, colour_bar, drawing, plain
from .running import as_numpy

__all__ = ["loss_surface"]


def loss_surface(
    loss: Callable,
    paths: Mapping[str, Sequence] | Sequence | None = None,
    *,
    extent: tuple[float, float, float, float] | None = None,
    resolution: int = 80,
    ax: Axes | None = None,
) -> Axes:
    """Draw the contours of a loss of two numbers, and the paths that optimisers take over them.

    Parameters
    ----------
    loss : callable
        ``loss(a, b)`` of two Tensors of one shape, element by element, or of two Tensors with a single number
        each.
    paths : dict from name to sequence, or a single sequence, optional
        Each is a sequence of pairs of numbers.
    extent : (left, right, lower, upper), optional
        The part to draw. Default: around the paths; without paths -2 to 2.
    resolution : int
        Steps of the grid along each axis.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.loss_surface(lambda a, b: (1 - a) ** 2 + 100 * (b - a * a) ** 2, {"SGD": sgd, "Adam": adam})
    """
    named = {} if paths is None else dict(paths) if isinstance(paths, Mapping) else {"path": paths}
    check_size("loss_surface: resolution", resolution, 2)
    if not callable(loss):
        raise TypeError(
            f"loss_surface: needs a function loss(a, b) of two numbers, got {type(loss).__name__}"
        )
    walked = {name: _pairs(name, path) for name, path in named.items()}
    xs, ys = _extent(extent, walked, resolution)
    z = _surface(loss, xs, ys)
    with drawing(ax, 5.0, 4.0) as ax:
        _draw_surface(ax, xs, ys, z)
        for place, (name, path) in enumerate(walked.items()):
            _draw_path(ax, name, path, PATHS[place % len(PATHS)], MARKERS[place % len(MARKERS)])
        ax.set(xlabel="a", ylabel="b", xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))
        ax.set_title("Loss surface" + (f" and {counted(len(walked), 'path')} over it" if walked else ""))
        if walked:
            ax.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none")
    return ax


PATHS = (ORANGE, GREEN, COLOURS[3], INK, RED)
HILLS = LinearSegmentedColormap.from_list("needle_hills", [PAPER, "#C9DBF9", "#7FA6EC"])


def _pairs(name: str, path: Sequence) -> np.ndarray:
    rows = [as_numpy("loss_surface", f"path {name!r}", p).reshape(-1) for p in path]
    if not rows or any(row.shape != (2,) for row in rows):
        raise ValueError(f"loss_surface: path {name!r} needs pairs of numbers, at least one")
    return np.stack(rows)


def _extent(extent: Any, paths: Mapping[str, np.ndarray], resolution: int) -> tuple[np.ndarray, np.ndarray]:
    left, right, lower, upper = -2.0, 2.0, -2.0, 2.0
    if extent is not None:
        left, right, lower, upper = map(float, extent)
        if not (left < right and lower < upper):
            raise ValueError(f"loss_surface: extent: needs left < right and lower < upper, got {extent}")
    elif paths:
        points = np.concatenate(list(paths.values()))
        points = points[np.isfinite(points).all(1)]
        if not len(points):
            raise ValueError("loss_surface: the paths have no finite point; give an extent")
        low, high = points.min(0), points.max(0)
        longest = float((high - low).max())
        room = np.maximum(0.25 * (high - low), 0.1 * max(longest, 1e-3)) if longest else 2.0
        (left, lower), (right, upper) = low - room, high + room
    return np.linspace(left, right, resolution), np.linspace(lower, upper, resolution)


def _surface(loss: Callable, xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """The loss at every point of a grid, in a single call if it goes element by element."""
    grids = [grid.ravel() for grid in np.meshgrid(xs, ys)]

    def loss_at(a: Any, b: Any) -> np.ndarray:
        tensors = (Tensor(x, dtype="float64", requires_grad=False) for x in (a, b))
        return as_numpy("loss_surface", "the loss", loss(*tensors))

    with no_grad():
        z = loss_at(*grids)
        if z.shape != grids[0].shape:
            values = [loss_at(a, b) for a, b in zip(*grids, strict=True)]
            if values[0].size != 1:
                raise ValueError(
                    f"loss_surface: the loss of two numbers must be one number, got shape {values[0].shape}"
                )
            z = np.array([value.item() for value in values])
    return z.reshape(len(ys), len(xs))


def _draw_surface(ax: Axes, xs: np.ndarray, ys: np.ndarray, z: np.ndarray) -> None:
    finite = z[np.isfinite(z)]
    if not finite.size:
        raise ValueError("loss_surface: the loss is nan or inf everywhere; give another extent")
    low, high = float(finite.min()), float(finite.max())
    flat = low == high
    if flat:
        high = low + 1.0
    # Contours lie closer where the surface is flat, so that you see a long valley as well as a bowl.
    middle = 0.5 if flat else float(np.clip((np.median(finite) - low) / (high - low), 1e-3, 0.5))
    levels = low + (high - low) * np.linspace(0, 1, 15) ** (math.log(middle) / math.log(0.5))
    masked = np.ma.masked_invalid(z)
    norm = BoundaryNorm(levels, HILLS.N)
    filled = ax.contourf(xs, ys, masked, levels=levels, cmap=HILLS, norm=norm, extend="both")
    ax.contour(xs, ys, masked, levels=levels[1:-1], colors=BLUE, linewidths=0.5, alpha=0.55)
    colour_bar(
        ax,
        filled,
        "loss",
        shrink=1.0,
        pad=0.02,
        aspect=24,
        ticks=levels[::2],
        format=lambda x, _: number(float(x), 2),
    )
    row, column = np.unravel_index(np.nanargmin(np.where(np.isfinite(z), z, np.nan)), z.shape)
    ax.plot(
        xs[column], ys[row], "+", color=INK, markersize=10, markeredgewidth=1.8, label="lowest on the grid"
    )


def _draw_path(ax: Axes, name: str, path: np.ndarray, colour: str, marker: str) -> None:
    finite = np.isfinite(path).all(1)
    length = len(path) if finite.all() else int(np.argmin(finite))
    words = name if finite.all() else f"{name}, nan or inf from step {length}"
    ax.plot(*path[:length].T, color=colour, linewidth=1.4, zorder=3)
    dots: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none"}
    ax.plot(*path[:length].T, **dots, markersize=3.2, markevery=max(1, length // 40), zorder=3)
    if length:
        ends = dots | {"markersize": 8, "zorder": 4}
        ax.plot(*path[0], **ends | {"color": PAPER, "marker": "o", "markeredgecolor": colour})
        ax.plot(*path[length - 1], **ends, markeredgecolor=PAPER)
    ax.add_line(Line2D([], [], color=colour, marker=marker, markersize=5, label=plain(words)))
