"""Pictures of training: what a model decides, how its loss falls, and what surface the optimisers walk on."""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap, ListedColormap, to_rgb
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from needle.autograd import Tensor
from needle.modes import no_grad

from ..drawing import check_size
from ..text import counted, number
from .look import (
    BLUE,
    COLOURS,
    FAINT,
    GREEN,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    PAPER,
    QUIET,
    RED,
    colour_bar,
    drawing,
    figure_of,
    plain,
    write_plainly,
)
from .running import as_numpy, evaluated

__all__ = ["LiveLossCurve", "decision_boundary", "live_loss_curve", "loss_curve", "loss_surface"]

GROUND = LinearSegmentedColormap.from_list("needle_ground", ["#F4B766", "#FFFFFF", "#8FB3F0"]).with_extremes(
    bad=FAINT
)


# What a model decides


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
    with drawing(ax, 5.4, 4.4) as ax:
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


# How the loss falls

Curves = Sequence[float] | Mapping[str, Sequence[float]]


def loss_curve(
    train: Any, test: Any = None, *, log: bool = False, xlabel: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw losses over the course of training.

    A loss that is nan or infinite leaves a gap with a red mark above it; so does one that is not above 0, on
    a logarithmic axis.

    Parameters
    ----------
    train : sequence of numbers, or dict from name to sequence
        Several by name compare them.
    test : the same, optional
        Drawn dashed. If `train` has, say, ten times as many, each of these stands where ten steps are over.
    log : bool
        Whether the axis of losses is logarithmic.
    xlabel : str, optional
        What is counted. Default: "epoch", or "step" if there are more than 100.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.loss_curve(train_losses, test_losses, log=True)
    >>> viz.loss_curve({"SGD": sgd_losses, "Adam": adam_losses})
    """
    return _loss_axes(train, test, log, xlabel, ax)


def _loss_axes(
    train: Any, test: Any, log: bool, xlabel: str | None, ax: Axes | None, private: bool = False
) -> Axes:
    if train is None and test is None:
        raise ValueError("loss_curve: there is nothing to draw yet; give a loss of training or of test")
    curves = _curves("train", train) if train is not None else {}
    curves = {name or "train": values for name, values in curves.items()}
    tests = _curves("test", test) if test is not None else {}
    tests = {f"{name}, test" if name else "test": values for name, values in tests.items()}
    with drawing(ax, 5.6, 3.6, private=private) as ax:
        _draw_curves(ax, curves, tests, log, xlabel)
    return ax


def _curves(name: str, given: Any) -> dict[str, np.ndarray]:
    """Curves by name; a single one has the name ""."""
    named = given if isinstance(given, Mapping) else {"": given}
    curves = {str(key): as_numpy("loss_curve", name, _numbers(values)) for key, values in named.items()}
    for key, values in curves.items():
        if values.ndim != 1 or not values.size:
            raise ValueError(
                f"loss_curve: {name}{f'[{key!r}]' if key else ''}: needs one number after the other, at "
                f"least one; got shape {values.shape}"
            )
    if not curves:
        raise ValueError(f"loss_curve: {name}: the dict is empty")
    return curves


def _numbers(values: Any) -> Any:
    """The numbers of a list, in which Tensors with one element are numbers too."""
    return [float(x) if isinstance(x, Tensor) else x for x in values] if isinstance(values, list) else values


def _draw_curves(ax: Axes, curves: dict, tests: dict, log: bool, xlabel: str | None) -> None:
    longest = max(map(len, [*curves.values(), *tests.values()]))
    if log:
        ax.set_yscale("log", nonpositive="mask")
    gone: list[float] = []
    several = len(curves) > 1
    for place, (name, values) in enumerate(curves.items()):
        gone += _draw_curve(ax, name, values, 1, COLOURS[place % len(COLOURS)], "-", log)
    train_length = max(map(len, curves.values()), default=0)
    for place, (name, values) in enumerate(tests.items()):
        colour = COLOURS[place % len(COLOURS)] if several else ORANGE
        every = train_length // len(values) if train_length % len(values) == 0 else 1
        gone += _draw_curve(ax, name, values, max(every, 1), colour, (0, (4, 1.5)), log)
    if gone:
        why = "nan, inf or not above 0" if log else "nan or inf"
        top = ax.get_xaxis_transform()
        ax.plot(
            *(sorted(set(gone)), [0.97] * len(set(gone))),
            "x",
            color=RED,
            transform=top,
            markersize=6,
            markeredgewidth=1.6,
            label=f"{why}, first at {number(int(min(gone)))}",
            zorder=4,
        )
    ax.set_title("Loss" + (" on a logarithmic axis" if log else ""))
    ax.set_xlabel(xlabel or ("step" if longest > 100 else "epoch"))
    ax.set_ylabel("loss")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=(1, 2, 5, 10), nbins=8))
    ax.grid(axis="y", which="major")
    ax.margins(x=0.02)
    if longest == 1:
        ax.set(xlim=(0.5, 1.5), xticks=[1])
    if not log and all((v[np.isfinite(v)] >= 0).all() for v in [*curves.values(), *tests.values()]):
        ax.set_ylim(bottom=0)
    if log:
        write_plainly(ax.yaxis)
    ax.legend(loc="best")


def _draw_curve(
    ax: Axes, name: str, values: np.ndarray, every: int, colour: str, style: Any, log: bool
) -> list:
    """Draw one curve; returns the places where there was nothing to draw."""
    xs = np.arange(1, len(values) + 1) * every
    there = np.isfinite(values) & ((values > 0) if log else True)
    marker = "o" if len(values) <= 30 else None
    ax.plot(
        *(xs, np.where(there, values, np.nan)),
        color=colour,
        linestyle=style,
        marker=marker,
        markersize=3.5,
        label=plain(name),
    )
    return xs[~there].tolist()


def live_loss_curve(*, log: bool = False, every: float = 0.5) -> LiveLossCurve:
    """A loss curve that grows while a model is trained.

    In a notebook the picture stands under the cell and changes in place. Elsewhere nothing is shown;
    `LiveLossCurve.draw` gives the picture afterwards.

    Parameters
    ----------
    log : bool
        As for `loss_curve`.
    every : float
        At least this many seconds lie between two pictures; drawing takes at most a tenth of the time.

    Returns
    -------
    LiveLossCurve

    Examples
    --------
    >>> with viz.live_loss_curve() as curve:
    ...     for epoch in range(20):
    ...         curve.update(train_epoch(), test_epoch())
    """
    return LiveLossCurve(log=log, every=every)


class LiveLossCurve:
    """Losses as they come in, drawn from time to time; see `live_loss_curve`.

    Attributes
    ----------
    train, test : list of float
    """

    def __init__(self, *, log: bool = False, every: float = 0.5):
        self.train: list[float] = []
        self.test: list[float] = []
        self._log, self._every = log, every
        self._next = -math.inf
        self._display: Any = None
        self._shown = 0

    def update(self, train: Any = None, test: Any = None) -> None:
        """Add a loss of training, of test, or both; the picture follows if it is time."""
        for values, new in ((self.train, train), (self.test, test)):
            if new is not None:
                values.append(float(new))
        if time.monotonic() >= self._next:
            self.show()

    def show(self) -> None:
        """Bring the picture in the notebook up to date; nothing happens without a notebook."""
        if not _in_notebook() or not (self.train or self.test):
            return
        from IPython.display import Image, display

        start = time.monotonic()
        ax = self._axes(None, private=True)
        stream = io.BytesIO()
        figure_of(ax).savefig(stream, format="png", dpi=160)
        width = round(figure_of(ax).get_size_inches()[0] * 100)
        picture = Image(data=stream.getvalue(), format="png", width=width)
        if self._display is None:
            self._display = display(picture, display_id=True)
        else:
            self._display.update(picture)
        now = time.monotonic()
        self._next = now + max(self._every, 9 * (now - start))
        self._shown = len(self.train) + len(self.test)

    def draw(self, ax: Axes | None = None) -> Axes:
        """All losses up to now, as `loss_curve` draws them."""
        return self._axes(ax)

    def _axes(self, ax: Axes | None, private: bool = False) -> Axes:
        return _loss_axes(self.train or None, self.test or None, self._log, None, ax, private)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown < len(self.train) + len(self.test):
            self.show()


def _in_notebook() -> bool:
    """Whether a front end is there that can change a picture in place."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


# The surface that an optimiser walks


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
    with drawing(ax, 5.4, 4.3) as ax:
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
