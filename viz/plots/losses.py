"""How losses fall while a model is trained: afterwards, or as they come in."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from needle.autograd import Tensor

from ..text import number
from .look import COLOURS, ORANGE, RED, drawing, figure_of, plain, write_plainly
from .running import as_numpy
from .theme import PictureFigure

__all__ = ["LiveLossCurve", "live_loss_curve", "loss_curve"]


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
    with drawing(ax, 5.0, 3.3, private=private) as ax:
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
        from IPython.display import HTML, display

        start = time.monotonic()
        figure = figure_of(self._axes(None, private=True))
        assert isinstance(figure, PictureFigure)
        picture = HTML(figure.html(whole=True))  # of one size from picture to picture
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
