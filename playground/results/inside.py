"""Inside a network: its graphs, its steps with real numbers, its compiled step, the surface of its loss.

`viz` is imported where something is drawn: in a browser that takes half a second, and who only plays should
not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from needle.compiler import Compiled
from needle.compiler.numpy_program import NumpyProgram

from ..training.network import constant
from ..training.trainer import Trainer

__all__ = ["ANSWERS", "loss_surface"]

#: Points whose loss is drawn. With more, a graph is the same and its numbers fill the page.
_POINTS = 2
_SIDE = 25  # of the grid on which the loss is computed
_NOT_COMPILED = "Nothing is compiled yet. Switch on “Compiled”, and play for a moment."
_MARGIN = 0.35  # around the path, in shares of its extent


def _forward(trainer: Trainer, step: Compiled) -> dict[str, Any]:
    import viz

    loss, names = trainer.graph(_POINTS)
    return {"html": viz.draw(loss, names=names).html()}


def _gradient(trainer: Trainer, step: Compiled) -> dict[str, Any]:
    import viz

    loss, names = trainer.graph(_POINTS)
    return {"html": viz.draw_gradient(loss, wrt=trainer.model.parameters(), names=names).html()}


def _steps(trainer: Trainer, step: Compiled) -> dict[str, Any]:
    import viz

    loss, names = trainer.graph(1)
    return {"html": viz.steps(loss, names=names).html()}


def _program(trainer: Trainer, step: Compiled) -> dict[str, Any]:
    import viz

    if step.program is None:
        return {"error": _NOT_COMPILED}
    said = f"<p>{escape(viz.explain(step))}</p>"
    source = f"<pre>{escape(step.source)}</pre>"
    if isinstance(step.program, NumpyProgram):  # there are no loops to draw
        return {"html": said + source}
    whole = f"<details><summary>Its whole source</summary>{source}</details>"
    return {"html": said + viz.draw_schedule(step).html() + whole}


def _passes(trainer: Trainer, step: Compiled) -> dict[str, Any]:
    import viz

    if step.program is None:
        return {"error": _NOT_COMPILED}
    try:
        return {"html": viz.steps(step).html()}
    except ValueError:
        return {"error": "This program is too long to walk through. With fewer layers you can."}


def _surface(trainer: Trainer, step: Compiled) -> dict[str, Any]:
    found = loss_surface(trainer)
    if found is None:
        return {"error": "There is no path yet. Play for a few epochs, and press Draw again."}
    xs, ys, losses, path = found
    words = (
        "All weights together are a point in a space of many dimensions. You see a slice through that space: "
        "the plane through the present weights that the path of the training stays closest to. The line is "
        "the path's shadow on it, so its end is where you are, and not always in the lowest place."
    )
    return {
        "axes": {"xs": xs.tolist(), "ys": ys.tolist(), "words": words},
        "arrays": {"loss": losses.astype("f4"), "path": path.astype("f4")},
    }


def loss_surface(trainer: Trainer) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The training loss on a plane through all weights, and the path of the training in that plane.

    The plane goes through the present weights, along the two principal directions of all remembered moments
    (Li et al. 2018, "Visualizing the loss landscape of neural nets", section 7).

    Returns
    -------
    tuple or None
        Coordinates xs (n,) and ys (n,), losses (n, n) with a row for each y, and the path (moments, 2), which
        ends at (0, 0). None if there are fewer than three moments.
    """
    parameters = trainer.model.parameters()
    names = [name for name, _ in trainer.model.named_parameters()]
    now = [parameter.numpy().copy() for parameter in parameters]
    states = [state["model"] for _, state in trainer.moments.items()]
    walked = np.array([np.concatenate([state[name].numpy().ravel() for name in names]) for state in states])
    here = np.concatenate([array.ravel() for array in now])
    if len(walked) < 3 or not np.isfinite(walked).all() or not np.isfinite(here).all():
        return None
    apart = (walked - here).astype(float)
    directions = np.linalg.svd(apart, full_matrices=False)[2][:2]
    path = np.vstack([apart @ directions.T, np.zeros(2)])
    low, high = path.min(axis=0), path.max(axis=0)
    room = _MARGIN * max(*(high - low), 1e-3)
    xs, ys = (np.linspace(a - room, b + room, _SIDE) for a, b in zip(low, high, strict=True))
    sizes = np.cumsum([array.size for array in now])[:-1]
    labels = trainer.train[1]
    losses = np.empty((_SIDE, _SIDE))
    for row, y in enumerate(ys):
        for column, x in enumerate(xs):
            numbers = np.split((here + x * directions[0] + y * directions[1]).astype("f4"), sizes)
            for parameter, part, array in zip(parameters, numbers, now, strict=True):
                parameter.data = constant(part.reshape(array.shape))
            outputs = trainer.learner.outputs(trainer.train_inputs)[-1][:, 0]
            losses[row, column] = np.mean(0.5 * (outputs - labels) ** 2)
    for parameter, array in zip(parameters, now, strict=True):
        parameter.data = constant(array)
    return xs, ys, losses, path


#: What a page may ask about the inside of a network. Each takes a trainer of its own and the compiled step
#: of the page's, and returns the header of an answer, perhaps with `arrays`.
ANSWERS: dict[str, Callable[[Trainer, Compiled], dict[str, Any]]] = {
    "forward": _forward,
    "gradient": _gradient,
    "steps": _steps,
    "program": _program,
    "passes": _passes,
    "surface": _surface,
}
