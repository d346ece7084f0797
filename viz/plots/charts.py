"""Simple pictures of results: curves, bars, matrices, and images with their labels and predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter

from ..text import counted, number
from .look import (
    BLUE,
    COLOURS,
    DIVERGING,
    INK,
    MARKERS,
    PAPER,
    QUIET,
    RED,
    SEQUENTIAL,
    colour_bar,
    colour_limit,
    drawing,
    framed_image,
    plain,
    write_plainly,
)
from .running import as_numpy

__all__ = ["bars", "curve", "images", "matrix"]

MOST_TICKS = 9  # up to so many places on a logarithmic axis have a tick each


def curve(
    values: Any,
    x: Any = None,
    *,
    log: str = "",
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw numbers over other numbers: an error over a step, nodes alive over time, seconds over sizes.

    Numbers that are not finite are left out; on a logarithmic axis, those that are not above 0 as well.

    Parameters
    ----------
    values : sequence of numbers, or dict from name to sequence
    x : sequence of numbers, optional
        As many. Default: 0, 1, 2, …
    log : "", "x", "y" or "xy"
        Which axes are logarithmic.
    xlabel, ylabel, title : str
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.curve(errors, steps, log="xy", xlabel="e", ylabel="error of the central difference")
    >>> viz.curve({"sum_loss": alive, "detached": alive_detached}, xlabel="step", ylabel="nodes alive")
    """
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f'curve: log: needs "", "x", "y" or "xy", got {log!r}')
    named = values if isinstance(values, Mapping) else {"": values}
    if not named:
        raise ValueError("curve: the dict is empty")
    curves = {str(name): as_numpy("curve", "values", numbers) for name, numbers in named.items()}
    places = None if x is None else as_numpy("curve", "x", x)
    for name, numbers in curves.items():
        if numbers.ndim != 1 or (places is not None and numbers.shape != places.shape):
            wanted = "" if places is None else f" as many as in x, shape {places.shape};"
            raise ValueError(
                f"curve: {name or 'values'}: needs one number after the other,{wanted} got {numbers.shape}"
            )
    with drawing(ax, 5.0, 3.3) as ax:
        for place, (name, numbers) in enumerate(curves.items()):
            xs = np.arange(len(numbers)) if places is None else places
            there = np.isfinite(numbers) & np.isfinite(xs)
            there &= (numbers > 0) | ("y" not in log)
            there &= (xs > 0) | ("x" not in log)
            ax.plot(
                *(xs, np.where(there, numbers, np.nan)),
                color=COLOURS[place % len(COLOURS)],
                marker=MARKERS[place % len(MARKERS)] if len(numbers) <= 40 else None,
                markersize=3.5,
                label=plain(name),
            )
        ax.set(
            xscale="log" if "x" in log else "linear",
            yscale="log" if "y" in log else "linear",
            xlabel=xlabel,
            ylabel=ylabel,
        )
        if places is None and "x" not in log:  # numbers of steps or epochs
            ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=(1, 2, 5, 10)))
        elif "x" in log and 0 < len(ticks := _ticks(places)) <= MOST_TICKS:
            ax.set_xticks(ticks, [number(tick) for tick in ticks])
            ax.xaxis.set_minor_formatter(NullFormatter())
        elif "x" in log:
            write_plainly(ax.xaxis)
        if "y" in log:
            write_plainly(ax.yaxis)
        ax.set_title(title)
        ax.grid(axis="both" if "x" in log else "y")
        if len(curves) > 1 or "" not in curves:
            ax.legend(loc="best")
    return ax


def _ticks(places: np.ndarray | None) -> list[float]:
    """All places on a logarithmic axis, if they are few and far enough apart; none otherwise."""
    if places is None:
        return []
    there = sorted({float(place) for place in places if 0 < place < math.inf})
    apart = all(1.5 * one <= other for one, other in pairwise(there))
    return there if apart and there and there[-1] < 1e6 and there[0] >= 1e-3 else []


def bars(
    values: Mapping[str, float],
    *,
    log: bool = False,
    xlabel: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw named numbers as bars with the number at each: the seconds that several ways take, side by side.

    Parameters
    ----------
    values : dict from name to a number from 0 on
    log : bool
        Whether the axis is logarithmic.
    xlabel, title : str
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.bars({"naive": 1.9, "tiles": 0.31, "BLAS": 0.002}, log=True, xlabel="seconds")
    """
    if not isinstance(values, Mapping) or not values:
        raise TypeError(
            f"bars: needs a dict from names to numbers, got {type(values).__name__} {values!r:.40}"
        )
    names = list(map(str, values))
    numbers = as_numpy("bars", "values", list(values.values()))
    fits = numbers.ndim == 1 and np.isfinite(numbers).all() and (numbers >= 0).all()
    if not fits or (log and not numbers.all()):
        raise ValueError(
            f"bars: needs finite numbers {'above' if log else 'from'} 0{' on' * (not log)}, got {values}"
        )
    with drawing(ax, 5.0, 0.9 + 0.34 * len(names)) as ax:
        ax.barh([plain(name) for name in names], numbers, height=0.62, color=BLUE)
        if log:
            ax.set_xscale("log")
            ax.set_xlim(left=10 ** math.floor(math.log10(numbers.min()) - 0.3))
        for place, value in enumerate(numbers):
            look: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            ax.annotate(number(value, 3), (value, place), fontsize=8, color=INK, **look)
        low, high = ax.get_xlim()
        ax.set_xlim(right=high * (high / low) ** 0.12 if log else numbers.max() * 1.14 or 1.0)
        if log:
            write_plainly(ax.xaxis)
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0, labelcolor=INK)
        ax.set_xlabel(xlabel)
        ax.set_title(title)
        said = ", ".join(f"{name} {number(value, 3)}" for name, value in zip(names, numbers, strict=True))
        ax.set_label(": ".join(filter(None, (xlabel, said))))
    return ax


MOST_WRITTEN = 10  # rows and columns: with more, no numbers are written into the cells
SMALLEST = 5.0  # points: smaller numbers are not written


def matrix(
    values: Any,
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    what: str = "",
    limit: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix as coloured cells: a Jacobian, a table of errors. Blue is above zero, orange below.

    Parameters
    ----------
    values : Tensor or array
        Of shape (rows, columns), or (columns,) for a single row. Numbers that are not finite are grey.
    title, xlabel, ylabel : str
    what : str
        What the numbers are; it stands beside the scale of colours.
    limit : float, optional
        The number with the darkest colour, of either sign. Default: the largest.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.matrix(jacobian, title="Jacobian of X @ W", xlabel="element of X", ylabel="element of X @ W")
    """
    numbers = as_numpy("matrix", "values", values)
    if numbers.ndim not in (1, 2) or not numbers.size:
        raise ValueError(f"matrix: needs one or two axes and at least one number, got shape {numbers.shape}")
    numbers = np.atleast_2d(numbers)
    rows, columns = numbers.shape
    scale = 3.7 / max(rows, columns)  # inches: cells are nearly square, and neither edge is extreme
    reach, below = colour_limit(numbers, limit), bool((numbers < 0).any())
    with drawing(ax, max(columns * scale, 2.2) + 1.5, max(rows * scale, 1.0) + 0.9) as ax:
        mesh = ax.imshow(
            np.ma.masked_invalid(numbers),
            cmap=(DIVERGING if below else SEQUENTIAL).with_extremes(bad="#D5DAE3"),
            vmin=-reach if below else 0,
            vmax=reach,
            interpolation="nearest",
            aspect="auto" if min(rows, columns) * 12 < max(rows, columns) else "equal",
        )
        colour_bar(ax, mesh, what)
        written = [number(x, 3) for x in numbers.astype(float).flat]
        size = min(9.0, 95 * scale / max(map(len, written)))  # points, so that it fits into a cell
        if max(rows, columns) <= MOST_WRITTEN and size >= SMALLEST:
            for (row, column), words in zip(np.ndindex(numbers.shape), written, strict=True):
                dark = (0.4 if below else 0.6) * reach < abs(numbers[row, column]) < math.inf
                colour = PAPER if dark else INK
                ax.text(column, row, words, fontsize=size, color=colour, ha="center", va="center")
        ax.spines[:].set_visible(False)
        ax.set_title(title)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.set_xticks(range(0, columns, max(1, math.ceil(columns / 10))))
        ax.set_yticks(range(0, rows, max(1, math.ceil(rows / 10))))
        if max(rows, columns) <= MOST_WRITTEN:  # white cells side by side
            ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
            ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
            ax.grid(which="minor")
            ax.set_axisbelow(False)
            ax.tick_params(which="minor", length=0)
    return ax


MOST_IMAGES = 40


def images(
    pictures: Any,
    labels: Any = None,
    predictions: Any = None,
    *,
    shape: tuple[int, int] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw images side by side, each with its label; a wrong prediction is red and says what it should be.

    If there are more than 40 images, the first 40 are drawn and the title says so.

    Parameters
    ----------
    pictures : Tensor or array
        Of shape (n, height, width), (n, height, width, 1 or 3) or (n, 1 or 3, height, width); a single
        picture may be (height, width). With one colour the largest number is darkest; with three, numbers
        are from 0 to 1.
    labels : sequence of n, optional
    predictions : sequence of n, optional
        What a model takes them for.
    shape : (height, width), optional
        The size of a picture, if `pictures` are rows of numbers, (n, height * width).
    title : str
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> wrong = predictions != y
    >>> viz.images(X[wrong], y[wrong], predictions[wrong], shape=(8, 8))
    """
    values = _as_images(as_numpy("images", "pictures", pictures), shape)
    count, height, width = values.shape[:3]
    captions = []
    for name, given in (("labels", labels), ("predictions", predictions)):
        listed = [None] * count
        if given is not None:
            listed = np.atleast_1d(given.numpy() if hasattr(given, "numpy") else given).tolist()
        if len(listed) != count:
            raise ValueError(f"images: {count} pictures, but {len(listed)} {name}")
        captions.append(listed)
    drawn = min(count, MOST_IMAGES)
    columns = min(drawn, 10)
    rows = math.ceil(drawn / columns)
    gap, head = 0.16 * width, 0.38 * width * (labels is not None or predictions is not None) + 0.08 * width
    across, down = width + gap, height + head
    finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.array([0.0, 1.0])
    low, high = float(finite.min()), float(finite.max())
    inches = min(0.85, 8.0 / columns)
    if drawn < count:
        title = f"{title}{' ' * bool(title)}({drawn} of {count:,})"
    with drawing(ax, max(columns * inches, 1.6) + 0.3, rows * inches * down / across + 0.5) as ax:
        written = []
        for place in range(drawn):
            row, column = divmod(place, columns)
            x, y = column * across, row * down + head
            framed_image(ax, values[place], x, y, width, height, cmap="gray_r", vmin=low, vmax=high)
            words, colour = _caption(captions[0][place], captions[1][place])
            ax.text(x, y - 0.07 * width, plain(words), fontsize=8, color=colour, va="bottom")
            written.append(words)
        ax.set(xlim=(-gap / 2, columns * across - gap / 2), ylim=(rows * down + gap / 2, 0), aspect="equal")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title(title)
        ax.set_label(": ".join(x for x in (counted(drawn, "image"), ", ".join(filter(None, written))) if x))
    return ax


def _as_images(values: np.ndarray, shape: tuple[int, int] | None) -> np.ndarray:
    if shape is not None and values.ndim == 2 and values.shape[1] == shape[0] * shape[1]:
        return values.reshape(-1, *shape)
    if shape is None and values.ndim == 2:
        values = values[None]
    if values.ndim == 4 and values.shape[1] == 1:
        values = values[:, 0]
    elif values.ndim == 4 and values.shape[1] == 3:
        values = np.moveaxis(values, 1, 3)
    elif values.ndim == 4 and values.shape[3] == 1:
        values = values[..., 0]
    if values.ndim == 3 or (values.ndim == 4 and values.shape[3] == 3):
        if not values.size:
            raise ValueError("images: there is no picture to draw")
        return np.clip(values, 0, 1) if values.ndim == 4 else values
    raise ValueError(
        f"images: needs shape (n, height, width), (n, height, width, 1 or 3), (n, 1 or 3, height, width), or "
        f"rows of numbers and shape=(height, width) that fits; got {values.shape} and shape={shape}"
    )


def _caption(label: Any, prediction: Any) -> tuple[str, str]:
    """The words above an image, and their colour."""
    if prediction is None:
        return ("" if label is None else str(label)), QUIET
    if label is None or label == prediction:
        return str(prediction), QUIET
    return f"{prediction} (is {label})", RED
