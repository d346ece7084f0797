"""Which places attend to which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..text import elide, number
from .look import GREY, INK, QUIET, SEQUENTIAL, colour_bar, drawing, framed_image, plain
from .running import as_numpy

__all__ = ["attention"]


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
                fontsize=8,
                ha="center",
                va="center",
                color="#FFFFFF" if value > 0.6 * top else INK,
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
