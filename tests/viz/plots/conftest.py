"""What the tests of the pictures share: that words can be read, and that nothing is left behind."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.text import Text


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    """No picture leaves a figure open or changes a setting."""
    before = dict(mpl.rcParams)
    yield
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


def words(ax: Axes) -> list[Text]:
    """Every text of a figure that is drawn."""
    found: list[Text] = []
    figure = ax.figure
    for axes in figure.axes:
        found += axes.texts
        if legend := axes.get_legend():
            found += legend.get_texts()
        if not axes.axison:
            continue
        found += [axes._left_title, axes.title, axes.xaxis.label, axes.yaxis.label]
        for along, axis in enumerate((axes.xaxis, axes.yaxis)):
            low, high = sorted(axis.get_view_interval())
            labels = axis.get_majorticklabels()
            room = 1e-6 * (high - low) if axis.get_scale() == "linear" else 0.0
            found += [label for label in labels if low - room <= label.get_position()[along] <= high + room]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


@pytest.fixture
def legible():
    """A function that fails where a text of a picture is cut off, or lies upon another one."""

    def legible(ax: Axes) -> None:
        figure = ax.figure
        figure.canvas.draw()
        extents = [(text.get_text(), text.get_window_extent()) for text in words(ax)]
        assert extents
        for what, box in extents:
            inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.x1 + 1
            assert inside, f"{what!r} is cut off"
            assert box.y1 <= figure.bbox.y1 + 1, f"{what!r} is cut off"
        for (what, box), (other, there) in itertools.combinations(extents, 2):
            across = min(box.x1, there.x1) - max(box.x0, there.x0)
            down = min(box.y1, there.y1) - max(box.y0, there.y0)
            # A text's box has room above and below its letters.
            overlap = across > 2 and down > 0.3 * min(box.height, there.height)
            assert not overlap, f"{what!r} lies upon {other!r}"

    return legible


@pytest.fixture
def texts():
    """A function that gives what is written in a picture."""
    return lambda ax: [text.get_text() for text in words(ax)]


@pytest.fixture
def drawn():
    """A function that gives the shapes of a diagram that are of one kind."""
    return lambda ax, gid: [patch for patch in ax.patches if patch.get_gid() == gid]
