"""The page on which a person separates two classes by hand, and gradient descent helps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

import needle as ndl
from needle import Tensor, nn
from needle.data import toy

from .address import Entry, number, one_of, whole_number, write_address
from .opening import KEPT, element, open_page

__all__ = ["BoundaryFigures", "descend", "measure", "page"]

REACH = {"w1": 5.0, "w2": 5.0, "b": 15.0}  # each slider goes from minus this to this
RATES = (0.03, 0.1, 0.3, 1.0)
POINTS = 120
NOISE = 0.1

#: Why no straight line separates the classes.
TOO_HARD = {
    "circle": "one class lies all around the other",
    "xor": "each class lies in two opposite corners",
    "spiral": "the classes wind around each other",
    "split": "one class lies on both sides of the other",
    "moons": "the two moons reach into each other",
}

ENTRIES = {
    "classifier_data": Entry("data", "gaussian", one_of(toy.DATASETS)),
    "classifier_seed": Entry("seed", 0, whole_number(0, 9999)),
    "classifier_rate": Entry("rate", 0.1, one_of(RATES)),
    "classifier_gradient": Entry("gradient", False, one_of((False, True))),
    **{
        f"classifier_{name}": Entry(name, start, number(-REACH[name], REACH[name]), "{:.5g}".format)
        for name, start in {"w1": 1.0, "w2": -0.5, "b": 0.0}.items()
    },
}


class BoundaryFigures(NamedTuple):
    """How good a boundary is: the mean cross entropy, the share of points on their side, and the gradient."""

    loss: float
    accuracy: float
    gradient: dict[str, float]


def page() -> None:
    """Move the boundary between two classes by its weights, or let gradient descent move it."""
    open_page(
        "Classifier by hand",
        "Drag the sliders until the line separates blue from orange, then let gradient descent try.",
        ENTRIES,
    )
    state = st.session_state
    st.pills("Data", toy.DATASETS, key="classifier_data", required=True, **KEPT)
    _show(*_data(state.classifier_data, state.classifier_seed))


@st.cache_data(max_entries=32, show_spinner=False)
def _data(dataset: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return toy.DATASETS[dataset](POINTS, NOISE, np.random.default_rng(seed))


@st.fragment
def _show(points: np.ndarray, labels: np.ndarray) -> None:
    """The boundary, which moves in the browser, and the steps of gradient descent."""
    state = st.session_state
    place = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for steps, label in ((1, "Take one step"), (20, "Take 20 steps")):
            st.button(
                label,
                key=f"classifier_steps_{steps}",
                icon=":material/trending_down:",
                type="primary" if steps == 1 else "secondary",
                on_click=_step,
                args=(points, labels, steps),
                help="Each step takes the learning rate times the gradient away from every weight",
            )
        st.selectbox("Learning rate", RATES, key="classifier_rate", width=130, **KEPT)
        st.toggle(
            "Show the gradient",
            key="classifier_gradient",
            help="The dashed line and the marks on the sliders show where one step would lead",
            **KEPT,
        )
        st.button("New points", key="classifier_new", icon=":material/casino:", on_click=_draw_points)
    figures = measure(points, labels, _weights())
    shown: dict[str, Any] = {"points": np.round(points, 3).tolist(), "labels": labels.tolist()}
    shown |= {"domain": toy.DOMAIN, "reach": REACH, "dataset": state.classifier_data, "weights": _weights()}
    shown |= {"loss": figures.loss, "accuracy": figures.accuracy}
    if state.classifier_gradient:
        shown["next"] = descend(_weights(), figures.gradient, state.classifier_rate)

    def rest() -> None:
        weights = state.boundary.weights
        for name in REACH:
            value = weights.get(name) if isinstance(weights, Mapping) else None
            if isinstance(value, (int, float)):
                state[f"classifier_{name}"] = _reachable(name, float(value))
        state.classifier_tried = state.classifier_data

    with place:
        element("boundary")(key="boundary", data=shown, on_weights_change=rest)
    if state.classifier_gradient:
        _tell(figures)
    if state.get("classifier_tried") == state.classifier_data in TOO_HARD:
        st.info(
            f"No straight line can win here: {TOO_HARD[state.classifier_data]}. A network bends its "
            "boundary: try the same data in the Playground.",
            icon=":material/lightbulb:",
        )
    if any(abs(value) == REACH[name] for name, value in _weights().items()):
        st.caption("A weight is at the end of its slider and stays there.")
    write_address(ENTRIES)


def _tell(figures: BoundaryFigures) -> None:
    """What one step does to each weight."""
    rate, weights = st.session_state.classifier_rate, _weights()
    lines = [
        f"{name} = {weights[name]:.4g} − {rate:g} · ({slope:.4g}) → **{weights[name] - rate * slope:.4g}**"
        for name, slope in figures.gradient.items()
    ]
    st.markdown("One step, by needle: " + "; ".join(lines).replace("-", "−"))


def _weights() -> dict[str, float]:
    return {name: float(st.session_state[f"classifier_{name}"]) for name in REACH}


def _step(points: np.ndarray, labels: np.ndarray, steps: int) -> None:
    for _ in range(steps):
        weights = _weights()
        gradient = measure(points, labels, weights).gradient
        for name, value in descend(weights, gradient, st.session_state.classifier_rate).items():
            st.session_state[f"classifier_{name}"] = value
    st.session_state.classifier_tried = st.session_state.classifier_data


def _draw_points() -> None:
    st.session_state.classifier_seed = (st.session_state.classifier_seed + 1) % 10_000


def measure(points: np.ndarray, labels: np.ndarray, weights: dict[str, float]) -> BoundaryFigures:
    """How good a boundary is, and the gradient of its loss, by needle.

    Parameters
    ----------
    points : array (n, 2)
    labels : array (n,)
        +1 or -1.
    weights : dict
        w1, w2 and b.
    """
    leaves = {
        name: Tensor([value], device=ndl.cpu_numpy(), dtype="float32") for name, value in weights.items()
    }
    x1, x2, is_positive = (
        Tensor(column, device=ndl.cpu_numpy(), dtype="float32", requires_grad=False)
        for column in (points[:, 0], points[:, 1], labels > 0)
    )
    logits = leaves["w1"] * x1 + leaves["w2"] * x2 + leaves["b"]
    loss = nn.BCEWithLogitsLoss()(logits, is_positive)
    loss.backward(create_graph=False)
    return BoundaryFigures(
        loss.item(),
        float(np.mean((logits.numpy() > 0) == (labels > 0))),
        {name: leaf.grad.item() for name, leaf in leaves.items()},
    )


def descend(weights: dict[str, float], gradient: dict[str, float], rate: float) -> dict[str, float]:
    """The weights after one step of gradient descent, as far as their sliders go."""
    return {name: _reachable(name, value - rate * gradient[name]) for name, value in weights.items()}


def _reachable(name: str, value: float) -> float:
    return min(max(value, -REACH[name]), REACH[name]) if math.isfinite(value) else 0.0
