"""`viz.step`: the steps of a Tensor as a widget. Python can read, set and observe its frame."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from needle.autograd import Tensor, Value

from .engines import CannotRender
from .names import names_of
from .picture import Picture
from .steps import LIMIT, STATIC, Steps, steps_of

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        "viz.step is a widget and needs anywidget: `pip install anywidget`; viz.steps(output) shows the same "
        "steps without it"
    ) from error

__all__ = ["Stepper", "step"]


class Stepper(anywidget.AnyWidget, Picture):
    """A player of steps, for JupyterLab, VS Code and Colab; without Graphviz it shows their equations.

    Attributes
    ----------
    frame : int
        The number of the frame on show, from 0. Set it to move the picture; `observe` it to see the reader
        move.
    steps : Steps
        The same frames as pictures.
    """

    formats = Steps.formats
    _esm = STATIC / "step.js"
    _css = STATIC / "step.css"
    frame = traitlets.Int(0).tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, steps: Steps):
        self.steps = steps
        try:
            data = steps.data()
        except CannotRender as error:
            data = {"instead": steps.in_words(error)}
        super().__init__(data=data)
        self.title = steps.title

    @traitlets.validate("frame")
    def _check_frame(self, proposal):
        if not 0 <= proposal["value"] < len(self.steps):
            raise traitlets.TraitError(
                f"frame: needs a number from 0 to {len(self.steps) - 1}, got {proposal['value']}"
            )
        return proposal["value"]

    def html(self) -> str:
        """The player of `steps`."""
        return self.steps.html()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write all frames to a file, as `steps` does."""
        return self.steps.save(path)

    def __repr__(self) -> str:
        return repr(self.steps)

    def _repr_mimebundle_(self, **kwargs):
        """The widget, and a strip of its frames where widgets do not run."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        strip = self.data.get("instead") or self.steps._repr_html_()
        return {**data, "text/html": strip}, metadata


def step(
    output: Any,
    *,
    out_grad: Tensor | None = None,
    names: Mapping[str, Value] | None = None,
    rankdir: str = "LR",
    limit: int = LIMIT,
    style: str | None = None,
) -> Stepper:
    """Step through the forward pass to a Tensor and the backward pass from it, in a notebook.

    It has buttons, a slider, and keys once it has the focus: left and right, space to play, home and end;
    0 shows all of a large picture, + and − change its size. A click on a variable goes to the frame that
    computes it. Parameters and errors are those of `steps`, which gives the same frames as pictures.

    Returns
    -------
    Stepper
        A widget; its `frame` is the number of the frame on show.

    Examples
    --------
    >>> player = viz.step(v4)
    >>> player.frame = 8
    """
    known = names_of(names, sys._getframe(1))
    return Stepper(
        steps_of("step", output, known, out_grad=out_grad, rankdir=rankdir, limit=limit, style=style)
    )
