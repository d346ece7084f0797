"""Pictures of networks at work: activations and gradients by layer, weights, filters, attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from needle import nn
from needle.autograd import Tensor
from needle.autograd import gradients as gradients_of
from needle.modes import no_grad
from needle.nn import Module

from ..text import elide, number
from .charts import matrix
from .look import (
    BLUE,
    DIVERGING,
    GREY,
    INK,
    QUIET,
    RED,
    SEQUENTIAL,
    colour_bar,
    colour_limit,
    drawing,
    framed_image,
    plain,
    power_of_ten,
)
from .running import as_numpy, unchanged

__all__ = ["activations", "attention", "filters", "gradients", "weights"]

BINS = 60
MOST_LAYERS = 60  # rows of a picture of distributions


@dataclass
class _Row:
    """The numbers of one layer, and what to say about them."""

    name: str
    values: np.ndarray
    kind: str = ""
    notes: list[str] = field(default_factory=list)


# What layers compute


def activations(model: Module, x: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how the outputs of each layer are distributed when a model gets `x`.

    The model runs once, in the mode that it is in and without a graph; what that changes (running means,
    random states) is put back. Beside each distribution stand its mean and standard deviation. Red words
    tell of dead units (for a ReLU: 0 for every example) and of saturated outputs (for tanh beyond ±0.97, for
    a sigmoid closer than 0.015 to 0 or 1). Numbers far outside are drawn at the edge.

    Parameters
    ----------
    model : Module
    x : Tensor or array, or a tuple of them
        What the model is called with.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.activations(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)), X)
    """
    _check_module("activations", model)
    inputs = [_input(model, value) for value in (x if isinstance(x, tuple) else (x,))]
    rows = _observed(model, inputs)
    if not rows:
        raise ValueError("activations: no module inside computed a Tensor; there are no layers to look into")
    for row in rows:
        row.notes = _unit_notes(row)
    return _distributions(rows, "Activations by layer", "output", ax)


def _check_module(function: str, model: Any) -> None:
    if not isinstance(model, Module):
        raise TypeError(f"{function}: needs a Module, got {type(model).__name__}")


def _input(model: Module, value: Any) -> Any:
    if isinstance(value, Tensor) or not isinstance(value, (np.ndarray, list, int, float)):
        return value
    first = next(iter(model.parameters()), None)
    kwargs = {} if first is None else {"dtype": first.dtype, "device": first.device}
    return Tensor(value, requires_grad=False, **kwargs)


def _observed(model: Module, inputs: Sequence[Any]) -> list[_Row]:
    """Run the model; a row for each of its innermost modules, in the order of their first calls."""
    outputs: dict[str, list[np.ndarray]] = {}
    kinds: dict[str, str] = {}

    def observer(name: str, module: Module) -> Callable:
        forward = module.forward

        def observed(*args: Any, **kwargs: Any) -> Any:
            out = forward(*args, **kwargs)
            made = out[0] if isinstance(out, tuple) and out else out
            if isinstance(made, Tensor) and not any(made is given for given in args):
                outputs.setdefault(name, []).append(made.numpy())
                kinds[name] = type(module).__name__
            return out

        return observed

    with unchanged(model), no_grad():
        for name, module in list(model.named_modules()):
            if not module._children() and not isinstance(module, nn.Flatten):
                vars(module)["forward"] = observer(name, module)
        model(*inputs)
    rows = []
    for name, made in outputs.items():
        times = f" ×{len(made)}" if len(made) > 1 else ""
        units = 1 if made[0].ndim == 4 else -1  # channels of images, else the last axis
        by_unit = [np.moveaxis(part, units, 0).reshape(part.shape[units], -1) for part in made if part.ndim]
        same = by_unit and all(len(part) == len(by_unit[0]) for part in by_unit)
        values = (
            np.concatenate(by_unit, axis=1) if same else np.concatenate([part.ravel() for part in made])[None]
        )
        rows.append(_Row(f"{_short_path(name)} {kinds[name]}{times}".strip(), values, kinds[name]))
    return rows


def _short_path(path: str) -> str:
    """A path without the name of a Sequential's list: "2.fn.0" for "modules.2.fn.modules.0"."""
    return path.replace("modules.", "")


def _unit_notes(row: _Row) -> list[str]:
    """What is wrong with the units of a layer, in words."""
    values = row.values
    notes: list[str] = []
    if not values.size:
        return notes
    if row.kind == "ReLU" and (dead := int((values == 0).all(1).sum())):
        notes.append(f"{dead} of {len(values)} units dead")
    if row.kind in ("Tanh", "Sigmoid"):
        saturated = abs(values) > 0.97 if row.kind == "Tanh" else abs(values - 0.5) > 0.485
        share = float(saturated.mean())
        if share >= 0.01:
            notes.append(f"{share:.0%} saturated")
    return notes


def gradients(model: Module, loss: Tensor | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw how large the gradients of each parameter are, on a logarithmic axis.

    Parameters
    ----------
    model : Module
    loss : Tensor, optional
        The loss to differentiate, ``loss_fn(model(x), y)``; no `grad` is read or written. Default: show what
        `backward` has left in the parameters' `grad`.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    RuntimeError
        If there is no `loss` and no parameter has a `grad`.

    Examples
    --------
    >>> viz.gradients(model, nn.SoftmaxLoss()(model(X), y))
    """
    _check_module("gradients", model)
    named = list(model.named_parameters())
    if loss is None:
        found = [parameter.grad for _, parameter in named]
        if not any(grad is not None for grad in found):
            raise RuntimeError(
                "gradients: no parameter has a gradient yet; call loss.backward() first, or give the loss: "
                "gradients(model, loss)"
            )
    else:
        if not isinstance(loss, Tensor):
            raise TypeError(f"gradients: loss: needs a Tensor, got {type(loss).__name__}")
        wanted = [parameter for _, parameter in named if parameter.requires_grad]
        with no_grad():
            computed = dict(zip(map(id, wanted), gradients_of(loss, wanted), strict=True))
        found = [computed.get(id(parameter)) for _, parameter in named]
    rows = []
    for (name, _), grad in zip(named, found, strict=True):
        values = np.empty((1, 0)) if grad is None else grad.numpy().reshape(1, -1)
        row = _Row(_short_path(name), abs(values))
        if grad is None:
            row.notes.append("no gradient")
        elif not values.any():
            row.notes.append("all 0")
        elif (share := float((values == 0).mean())) >= 0.01:
            row.notes.append(f"{share:.0%} are 0")
        rows.append(row)
    if not rows:
        raise ValueError(f"gradients: {type(model).__name__} has no parameters")
    return _distributions(rows, "Gradients by parameter", "size of the gradient", ax, log=True)


# Distributions, one above the other


def _distributions(rows: list[_Row], title: str, what: str, ax: Axes | None, log: bool = False) -> Axes:
    """Draw a histogram for each row, the first on top, each as tall as it can be, with words on its right."""
    if len(rows) > MOST_LAYERS:
        half = MOST_LAYERS // 2
        left_out = _Row(f"… {len(rows) - 2 * half} more", np.empty((1, 0)))
        rows = [*rows[:half], left_out, *rows[-half:]]
    shown = [row.values[np.isfinite(row.values) & ((row.values > 0) if log else True)] for row in rows]
    shown = [np.log10(values) if log else values for values in shown]
    low, high = _common_range(shown)
    names = [plain(elide(row.name, 34)) for row in rows]
    longest = max(map(len, names))
    with drawing(ax, 5.6 + 0.075 * longest, 0.75 + 0.36 * len(rows)) as ax:
        for place, (row, values) in enumerate(zip(rows, shown, strict=True)):
            base = len(rows) - 1 - place
            ax.axhline(base, color="#D5DAE3", linewidth=0.8, zorder=1)
            if values.size:
                values = np.clip(values, low, high)
                edges = _bins(float(values.min()), float(values.max()), (high - low) / BINS)
                counts, _ = np.histogram(values, edges)
                heights = 0.82 * counts / counts.max()
                ax.stairs(base + heights, edges, baseline=base, fill=True, color="#A9C4F5", zorder=2)
                ax.stairs(base + heights, edges, baseline=base, color=BLUE, linewidth=0.9, zorder=3)
                middle = float(np.median(values))
                ax.plot([middle, middle], [base, base + 0.82], color=INK, linewidth=1.1, zorder=4)
            _say(ax, base, _summary(row, log), row)
        ax.set_title(title)
        ax.set_xlabel(what + ("" if log else " (line: median)"))
        ax.set(xlim=(low, high), ylim=(-0.12, len(rows) - 0.05))
        ax.set_yticks(range(len(rows))[::-1], names)
        ax.tick_params(axis="y", length=0, labelcolor=INK)
        ax.spines["left"].set_visible(False)
        if log:
            ax.set_xlabel(f"{what} (line: median)")
            ax.xaxis.set_major_formatter(lambda x, _: power_of_ten(10**x))
            ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        for label in ax.get_yticklabels():
            label.set_verticalalignment("bottom")
    return ax


def _bins(low: float, high: float, width: float) -> np.ndarray:
    """Edges of bins of about that width. They begin and end where the numbers do: tanh has none above 1."""
    if high - low < 0.2 * width:  # all the same number, drawn as a narrow bar
        return np.array([low - 0.1 * width, high + 0.1 * width])
    return np.linspace(low, high, max(round((high - low) / width), 1) + 1)


def _common_range(values: list[np.ndarray]) -> tuple[float, float]:
    """From the lowest to the highest number in any row, but for the outermost 0.2 % of each."""
    ends = [np.quantile(v, (0.002, 0.998)) for v in values if v.size]
    low = min((float(end[0]) for end in ends), default=0.0)
    high = max((float(end[1]) for end in ends), default=1.0)
    room = 0.04 * (high - low) or 0.5 * max(abs(high), 1.0)
    return low - room, high + room


def _summary(row: _Row, log: bool) -> str:
    finite = row.values[np.isfinite(row.values)]
    if not finite.size:
        return ""
    if log:
        return f"largest {number(finite.max(), 2)}"
    mean, std = float(finite.mean()), float(finite.std())
    return f"mean {number(0.0 if abs(mean) < 1e-3 * std else mean, 2)}, std {number(std, 2)}"


def _say(ax: Axes, base: float, summary: str, row: _Row) -> None:
    """Write on the right of a row what it is, and below in red what is wrong with it."""
    strange = int(row.values.size - np.isfinite(row.values).sum())
    notes = [*row.notes, *([f"{strange:,} nan or inf"] if strange else [])]
    for words, y, colour in ((summary, 0.48, QUIET), (", ".join(notes), 0.12, RED)):
        if words:
            ax.text(
                *(1.015, base + y, words),
                transform=ax.get_yaxis_transform(),
                color=colour,
                fontsize=7,
                va="center",
            )


# Weights, filters, attention


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
            _Row(_short_path(name), parameter.numpy().reshape(1, -1))
            for name, parameter in source.named_parameters()
        ]
        if not rows:
            raise ValueError(f"weights: {type(source).__name__} has no parameters")
        return _distributions(rows, "Weights by parameter", "weight", ax)
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
    source : Conv, Tensor or array
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
                ax.text(x, y - 0.12 * height, str(place), fontsize=7, color=QUIET, va="bottom")
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


MOST_WRITTEN = 10  # places: with more, no weights are written into the cells


def attention(
    weights: Any,
    tokens: Sequence[str] | None = None,
    *,
    keys: Sequence[str] | None = None,
    head: int | None = None,
    batch: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw which places attend to which: a map for each head, a row for each place that looks.

    Parameters
    ----------
    weights : Tensor or array
            Numbers from 0 on, of shape (time, key_time), (heads, time, key_time) or (batch, heads, time,
        key_time): the second result of `needle.nn.MultiHeadAttention`.
        tokens : sequence of str, optional
        The token at each place that looks; a str is taken character by character. Default: numbers.
    keys : sequence of str, optional
        The token at each place that is looked at. Default: `tokens`, if there are as many.
    head : int, optional
        Draw a single head. Default: all.
    batch : int
        Draw this example of a batch.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> out, maps = nn.AttentionLayer(16, 4, 4)(x, return_probs=True)
    >>> viz.attention(maps, "to be or".split())
    """
    values = as_numpy("attention", "weights", weights)
    if values.ndim not in (2, 3, 4) or not values.size:
        raise ValueError(
            "attention: weights need shape (time, key_time), (heads, time, key_time) or (batch, heads, time, "
            f"key_time), got {values.shape}"
        )
    if (values < 0).any():
        raise ValueError(
            f"attention: weights are never below 0, but one is {number(float(np.nanmin(values)), 3)}; "
            "take the softmax of scores over the last axis"
        )
    if values.ndim == 4:
        values = _picked("batch", batch, values)
    maps = values[None] if values.ndim == 2 else values
    heads = list(range(len(maps)))
    if head is not None:
        maps, heads = _picked("head", head, maps)[None], [int(head) % len(maps)]
    time, key_time = maps.shape[1:]
    rows = _tokens("tokens", tokens, time)
    same = keys is None and tokens is not None and len(tokens) == key_time
    columns = _tokens("keys", tokens if same else keys, key_time)
    return _draw_maps(maps, heads, rows, columns, ax)


def _picked(name: str, index: int, values: np.ndarray) -> np.ndarray:
    if (
        isinstance(index, bool)
        or not isinstance(index, (int, np.integer))
        or not -len(values) <= index < len(values)
    ):
        raise IndexError(f"attention: {name}: needs a number from 0 to {len(values) - 1}, got {index!r}")
    return values[index]


def _tokens(name: str, tokens: Sequence[str] | None, count: int) -> list[str]:
    if tokens is None:
        step = max(1, math.ceil(count / 12))
        return [str(place) if place % step == 0 else "" for place in range(count)]
    if len(tokens) != count:
        raise ValueError(f"attention: {len(tokens)} {name} for {count} places")
    # An invisible character is drawn as a visible one.
    return [{" ": "␣", "\n": "↵"}.get(str(token)) or elide(repr(str(token))[1:-1], 12) for token in tokens]


def _draw_maps(
    maps: np.ndarray, heads: list[int], rows: list[str], columns: list[str], ax: Axes | None
) -> Axes:
    count, time, key_time = maps.shape
    across = min(count, 4)
    down = math.ceil(count / across)
    longest = max(map(len, [*rows, *columns]))
    upright = max(map(len, columns)) > 2
    cell = min(0.34, 2.2 / max(time, key_time)) if count > 1 else min(0.42, 4.0 / max(time, key_time))
    gap_x, gap_y = max(0.6, 0.18 / cell), max(0.9, 0.34 / cell)
    width, height = across * (key_time + gap_x) - gap_x, down * (time + gap_y)
    label = 0.075 * longest
    with drawing(ax, width * cell + label + 1.6, height * cell + (label if upright else 0.2) + 0.9) as ax:
        top = float(maps[np.isfinite(maps)].max(initial=0.0)) or 1.0
        for place, values in enumerate(maps):
            row, column = divmod(place, across)
            x, y = column * (key_time + gap_x), row * (time + gap_y) + (gap_y if count > 1 else 0)
            shown = framed_image(ax, values, x, y, key_time, time, cmap=SEQUENTIAL, vmin=0, vmax=top)
            if count > 1:
                ax.text(x, y - 0.08 / cell, f"head {heads[place]}", fontsize=8, weight="bold", color=GREY)
            elif max(time, key_time) <= MOST_WRITTEN:
                _write(ax, values, top)
        ax.set(xlim=(-0.05, width + 0.05), ylim=(height if count > 1 else time, -0.05), aspect="equal")
        _label_places(ax, rows, columns, (across, down, gap_x, gap_y if count > 1 else 0.0), upright)
        which = f"{count} heads" if count > 1 else f"head {heads[0]}"
        ax.set_title("Attention" if heads == [0] else f"Attention, {which}")
        colour_bar(ax, shown, "weight")
    return ax


def _write(ax: Axes, values: np.ndarray, top: float) -> None:
    for (row, column), value in np.ndenumerate(values):
        if value >= 0.005:
            ax.text(
                *(column + 0.5, row + 0.5, f"{value:.2f}"),
                fontsize=7,
                ha="center",
                va="center",
                color="#FFFFFF" if value > 0.55 * top else INK,
            )


def _label_places(
    ax: Axes, rows: list[str], columns: list[str], grid: tuple[int, int, float, float], upright: bool
) -> None:
    across, down, gap_x, gap_y = grid
    time, key_time = len(rows), len(columns)
    size = float(np.clip(8 * 12 / max(sum(map(bool, rows)), sum(map(bool, columns))), 5, 8))
    ax.set_xticks(
        [c * (key_time + gap_x) + k + 0.5 for c in range(across) for k in range(key_time)],
        [plain(word) for word in columns] * across,
        rotation=90 if upright else 0,
        fontsize=size,
    )
    ax.set_yticks(
        [r * (time + gap_y) + gap_y + k + 0.5 for r in range(down) for k in range(time)],
        [plain(word) for word in rows] * down,
        fontsize=size,
    )
    ax.tick_params(length=0, labelcolor=INK)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("is looked at", color=QUIET)
    ax.set_ylabel("looks", color=QUIET)
