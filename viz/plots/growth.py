"""The picture of `viz.memory`: how the bytes of a graph grow from node to node."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
from matplotlib.axes import Axes

from ..text import byte_count, elide
from .look import BLUE, COLOURS, CYAN, GREEN, GREY, INK, MAGENTA, ORANGE, QUIET, drawing, figure_of, plain
from .theme import PictureFigure

__all__ = ["GRADIENTS", "LEAVES", "PARAMETERS", "draw_growth"]

PARAMETERS, LEAVES, GRADIENTS, OTHERS = "parameters", "leaves", "gradients", "others"
LOOKS = {PARAMETERS: MAGENTA, LEAVES: GREY, GRADIENTS: ORANGE, OTHERS: "#98A2B3"}
FREE = [BLUE, GREEN, CYAN, *COLOURS[6:]]  # of the other groups, the largest first
MOST_GROUPS = 7
MOST_BARS = 100  # of more nodes, several share a bar
LONGEST_LINE = 48  # characters of the title
MOST_NAMED = 14  # so many nodes are called by name
UNITS = {1: "bytes", 1e3: "kB", 1e6: "MB", 1e9: "GB", 1e12: "TB"}


class Counted(Protocol):
    """A node, or an array that is kept for one, with its bytes and its group."""

    name: str
    group: str
    bytes: int


def draw_growth(title: str, kept: Sequence[Any]) -> PictureFigure:
    """Draw one bar for each node, as high as all that is kept once it is computed, stacked by group."""
    with drawing(None, 5.0, 4.1, private=True) as ax:
        _draw(ax, kept)
        ax.set_title("\n".join(textwrap.wrap(plain(title), LONGEST_LINE)))
        handles, labels = ax.get_legend_handles_labels()
        figure_of(ax).legend(handles[::-1], labels[::-1], loc="outside lower left", ncols=2)
    return cast(PictureFigure, figure_of(ax))


def _draw(ax: Axes, kept: Sequence[Counted]) -> None:
    size = Counter[str]()
    for row in kept:
        size[row.group] += row.bytes
    largest = [group for group, _ in size.most_common(MOST_GROUPS)]
    group_of = {group: group if group in largest else OTHERS for group in size}
    groups = sorted(dict.fromkeys(group_of.values()), key=lambda group: _order(group, size))
    free = iter(FREE)
    colours = {group: LOOKS.get(group) or next(free) for group in groups}

    ends = np.unique(np.linspace(1, len(kept), min(len(kept), MOST_BARS)).astype(int))
    steps = np.array([0, *ends])
    total = sum(size.values())
    unit = max(x for x in UNITS if x <= max(total, 1))
    below = np.zeros(len(ends))
    few = len(ends) <= MOST_NAMED
    for group in groups:
        grown = np.cumsum([row.bytes * (group_of[row.group] == group) for row in kept])[ends - 1] / unit
        words = f"{elide(group, 24)}: {byte_count(round(grown[-1] * unit))}"
        look: dict[str, Any] = {"color": colours[group], "label": plain(words)}
        if few:
            ax.bar(steps[:-1] + 0.5, grown, 0.8, below, edgecolor="white", linewidth=0.8, **look)
        else:
            ax.stairs(below + grown, steps, baseline=below, fill=True, **look)
        below = below + grown
    if not few:
        ax.stairs(below, steps, baseline=None, color=INK, linewidth=1.8)
    _mark_backward(ax, kept)
    if few:
        ax.set_xticks(steps[:-1] + 0.5, [plain(elide(row.name, 16)) for row in kept], rotation=30, ha="right")
    else:
        ax.set_xlabel("nodes, in the order in which they were computed")
    ax.set_xlim(0, len(kept))
    ax.set_ylim(0, 1.14 * total / unit or 1)
    ax.set_ylabel(f"kept alive ({UNITS[unit]})")
    ax.grid(axis="y")


def _order(group: str, size: Counter[str]) -> tuple[int, int]:
    """From the bottom of the stack: what is there before, what is computed, the gradients."""
    place = {PARAMETERS: 0, LEAVES: 1, OTHERS: 3, GRADIENTS: 4}.get(group, 2)
    return place, -size[group]


def _mark_backward(ax: Axes, kept: Sequence[Counted]) -> None:
    """A line between the forward graph and its gradients, if there are any."""
    start = next((i for i, row in enumerate(kept) if row.group == GRADIENTS), None)
    if start is None:
        return
    ax.axvline(start, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    for x, side, words in ((start, "right", "forward →"), (start, "left", "backward →")):
        shift = {"right": -4, "left": 4}[side]
        ax.annotate(
            words, (x, 1), (shift, -3), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha=side, va="top", color=QUIET, fontsize=9,
        )  # fmt: skip
