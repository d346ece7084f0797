"""The weights of a model, and the filters of its convolutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from needle import nn
from needle.nn import Module

from .charts import matrix
from .distributions import LayerRow, distributions, short_path
from .look import DIVERGING, QUIET, colour_bar, colour_limit, drawing, framed_image
from .running import as_numpy

__all__ = ["filters", "weights"]


def weights(
    source: Any, *, image: tuple[int, int] | None = None, limit: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw weights: for a module the distribution of each parameter, for a Tensor the numbers themselves.

    Parameters
    ----------
    source : Module, Tensor or array
        A Tensor with one or two axes is drawn as a matrix, one with four as `filters`.
    image : (height, width), optional
        Draw each column of a matrix with height * width rows as an image: it shows what a linear classifier
        of images looks for.
    limit : float, optional
        The number with the darkest colour, of either sign. Default: the largest.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.weights(model)
    >>> viz.weights(W, image=(8, 8))  # W has shape (64, 10)
    """
    if isinstance(source, Module):
        if image is not None:
            raise ValueError("weights: image: needs a Tensor, such as model.weight, and not a Module")
        rows = [
            LayerRow(short_path(name), parameter.numpy().reshape(1, -1))
            for name, parameter in source.named_parameters()
        ]
        if not rows:
            raise ValueError(f"weights: {type(source).__name__} has no parameters")
        return distributions(rows, "Weights by parameter", "weight", ax)
    values = as_numpy("weights", "source", source)
    if image is not None:
        height, width = image
        if values.ndim != 2 or values.shape[0] != height * width:
            raise ValueError(
                f"weights: image={image}: needs a matrix with {height} * {width} = {height * width} rows, "
                f"got shape {values.shape}"
            )
        kernels = values.T.reshape(-1, height, width)
        return _tiles(
            kernels[None], "Weights of each output as an image", "weight", limit, ax, ("", "output")
        )
    if values.ndim == 4:
        return filters(values, ax=ax)
    if values.ndim not in (1, 2) or not values.size:
        raise ValueError(f"weights: needs one, two or four axes and at least one number, got {values.shape}")
    names = {"xlabel": "output", "ylabel": "input"} if values.ndim == 2 else {}
    return matrix(values, title=f"Weights, shape {values.shape}", what="weight", limit=limit, ax=ax, **names)


MOST_TILES = 16


def filters(source: Any, *, limit: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw the kernels of a convolution: a row for each input channel, a column for each output channel.

    Blue weights are above zero, orange ones below, on one scale for all. The kernels of a single input
    channel stand in several rows. If there are more than 16 channels, the first 16 are drawn and the title
    says so.

    Parameters
    ----------
    source : needle.nn.Conv, Tensor or array
        Weights have shape (height, width, in_channels, out_channels).
    limit : float, optional
        The number with the darkest colour. Default: the largest.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.filters(nn.Conv(1, 16, 5))
    """
    if isinstance(source, Module):
        if not isinstance(source, nn.Conv):
            raise TypeError(
                f"filters: needs a Conv, got {type(source).__name__}; give one of its parts, such as model[0]"
            )
        source = source.weight
    values = as_numpy("filters", "source", source)
    if values.ndim != 4 or not values.size:
        raise ValueError(
            f"filters: needs weights of shape (height, width, in_channels, out_channels), got {values.shape}"
        )
    height, width, inputs, outputs = values.shape
    kernels = values.transpose(2, 3, 0, 1)
    drawn = kernels[:MOST_TILES, : 64 if inputs == 1 else MOST_TILES]
    part = "" if drawn.shape[:2] == kernels.shape[:2] else f", {drawn.shape[0]} × {drawn.shape[1]} drawn"
    title = f"Filters {height} × {width}: {inputs} in, {outputs} out{part}"
    return _tiles(drawn, title, "weight", limit, ax, ("input channel", "output channel"))


def _tiles(
    kernels: np.ndarray, title: str, what: str, limit: float | None, ax: Axes | None, names: tuple[str, str]
) -> Axes:
    """Draw small images (rows, columns, height, width) in a grid, numbered."""
    rows, columns, height, width = kernels.shape
    numbers = np.arange(columns)
    wrapped = rows == 1 and columns > 5
    if wrapped:
        columns = min(8, math.ceil(math.sqrt(len(numbers) * 1.6)))
        rows = math.ceil(len(numbers) / columns)
    gap = max(1, round(0.18 * max(height, width))) if wrapped else max(1, round(0.12 * max(height, width)))
    head = 0.42 * height if wrapped else 0.0
    down, across = height + gap + head, width + gap
    inches = min(0.72, 7.0 / columns)
    reach = colour_limit(kernels, limit)
    with drawing(ax, columns * inches + 1.4, rows * inches * down / across + 1.0) as ax:
        look: dict[str, Any] = {"cmap": DIVERGING.with_extremes(bad="#D5DAE3"), "vmin": -reach, "vmax": reach}
        for place in range(kernels.shape[0] * kernels.shape[1]):
            row, column = divmod(place, columns)
            kernel = kernels[0, place] if wrapped else kernels[row, column]
            x, y = column * across, row * down + head
            shown = framed_image(ax, np.ma.masked_invalid(kernel), x, y, width, height, **look)
            if wrapped:
                ax.text(x, y - 0.12 * height, str(place), fontsize=8, color=QUIET, va="bottom")
        ax.set(
            xlim=(-gap / 2, columns * across - gap / 2),
            ylim=(rows * down - gap / 2, -gap / 2),
            aspect="equal",
        )
        ax.spines[:].set_visible(False)
        ax.set_title(title)
        ax.tick_params(length=0)
        if wrapped:
            ax.set(xticks=[], yticks=[])
            ax.set_xlabel(names[1], color=QUIET)
        else:
            ax.set_xticks([c * across + width / 2 for c in range(columns)], map(str, range(columns)))
            ax.set_yticks([r * down + head + height / 2 for r in range(rows)], map(str, range(rows)))
            ax.set(xlabel=names[1], ylabel=names[0])
            if not names[0]:
                ax.set_yticks([])
        colour_bar(ax, shown, what)
    return ax
