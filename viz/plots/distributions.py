"""How the numbers of each layer are distributed: activations and gradients."""

from __future__ import annotations

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
from .look import BLUE, INK, QUIET, RED, drawing, plain, power_of_ten
from .running import unchanged

__all__ = ["LayerRow", "activations", "distributions", "gradients", "short_path"]


BINS = 60
MOST_LAYERS = 60  # rows of a picture of distributions


@dataclass
class LayerRow:
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
    return distributions(rows, "Activations by layer", "output", ax)


def _check_module(function: str, model: Any) -> None:
    if not isinstance(model, Module):
        raise TypeError(f"{function}: needs a Module, got {type(model).__name__}")


def _input(model: Module, value: Any) -> Any:
    if isinstance(value, Tensor) or not isinstance(value, (np.ndarray, list, int, float)):
        return value
    first = next(iter(model.parameters()), None)
    kwargs = {} if first is None else {"dtype": first.dtype, "device": first.device}
    return Tensor(value, requires_grad=False, **kwargs)


def _observed(model: Module, inputs: Sequence[Any]) -> list[LayerRow]:
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
        rows.append(LayerRow(f"{short_path(name)} {kinds[name]}{times}".strip(), values, kinds[name]))
    return rows


def short_path(path: str) -> str:
    """A path without the name of a Sequential's list: "2.fn.0" for "modules.2.fn.modules.0"."""
    return path.replace("modules.", "")


def _unit_notes(row: LayerRow) -> list[str]:
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
        `backward` has left in the parameters' `grad`, which an optimiser's `step` sets to None.
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
                "gradients: no parameter has a gradient; call loss.backward() first, and draw before "
                "optimizer.step(), which uses gradients up; or give the loss: gradients(model, loss)"
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
        row = LayerRow(short_path(name), abs(values))
        if grad is None:
            row.notes.append("no gradient")
        elif not values.any():
            row.notes.append("all 0")
        elif (share := float((values == 0).mean())) >= 0.01:
            row.notes.append(f"{share:.0%} are 0")
        rows.append(row)
    if not rows:
        raise ValueError(f"gradients: {type(model).__name__} has no parameters")
    return distributions(rows, "Gradients by parameter", "size of the gradient", ax, log=True)


# Distributions, one above the other


def distributions(rows: list[LayerRow], title: str, what: str, ax: Axes | None, log: bool = False) -> Axes:
    """Draw a histogram for each row, the first on top, each as tall as it can be, with words on its right."""
    if len(rows) > MOST_LAYERS:
        half = MOST_LAYERS // 2
        left_out = LayerRow(f"… {len(rows) - 2 * half} more", np.empty((1, 0)))
        rows = [*rows[:half], left_out, *rows[-half:]]
    shown = [row.values[np.isfinite(row.values) & ((row.values > 0) if log else True)] for row in rows]
    shown = [np.log10(values) if log else values for values in shown]
    low, high = _common_range(shown)
    names = [plain(elide(row.name, 34)) for row in rows]
    longest = max(map(len, names))
    with drawing(ax, 4.3 + 0.075 * longest, 0.75 + 0.36 * len(rows)) as ax:
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


def _summary(row: LayerRow, log: bool) -> str:
    finite = row.values[np.isfinite(row.values)]
    if not finite.size:
        return ""
    if log:
        return f"largest {number(finite.max(), 2)}"
    mean, std = float(finite.mean()), float(finite.std())
    return f"mean {number(0.0 if abs(mean) < 1e-3 * std else mean, 2)}, std {number(std, 2)}"


def _say(ax: Axes, base: float, summary: str, row: LayerRow) -> None:
    """Write on the right of a row what it is, and below in red what is wrong with it."""
    strange = int(row.values.size - np.isfinite(row.values).sum())
    notes = [*row.notes, *([f"{strange:,} nan or inf"] if strange else [])]
    for words, y, colour in ((summary, 0.48, QUIET), (", ".join(notes), 0.12, RED)):
        if words:
            ax.text(
                *(1.015, base + y, words),
                transform=ax.get_yaxis_transform(),
                color=colour,
                fontsize=8,
                va="center",
            )
