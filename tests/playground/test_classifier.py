"""The classifier by hand: its loss, its accuracy and its gradient against NumPy; its steps."""

from __future__ import annotations

import numpy as np
import pytest

from needle.data import toy
from playground.pages import classifier

from .apps import address_of, run, shown, start

WEIGHTS = {"w1": 0.7, "w2": -0.4, "b": 0.3}


def loss_of(points, labels, weights):
    logits = points @ [weights["w1"], weights["w2"]] + weights["b"]
    return np.mean(np.logaddexp(0, -labels * logits)), np.mean((logits > 0) == (labels > 0))


@pytest.mark.parametrize("dataset", toy.DATASETS)
def test_the_figures_and_the_gradient(dataset):
    points, labels = classifier._data(dataset, 1)
    figures = classifier.measure(points, labels, WEIGHTS)
    loss, accuracy = loss_of(points, labels, WEIGHTS)
    assert figures.loss == pytest.approx(loss, rel=1e-5)
    assert figures.accuracy == accuracy
    for name, slope in figures.gradient.items():
        above, below = (
            loss_of(points, labels, {**WEIGHTS, name: WEIGHTS[name] + e})[0] for e in (1e-5, -1e-5)
        )
        assert slope == pytest.approx((above - below) / 2e-5, rel=1e-3, abs=1e-5)


def test_steps_go_downhill_and_reach_the_sliders():
    app = start("classifier", w1="-1.0", gradient="True")
    before = shown(app)
    app.button(key="classifier_steps_1").click()
    after = shown(run(app))
    assert after["weights"] == pytest.approx(before["next"])
    assert after["loss"] < before["loss"]
    app.button(key="classifier_steps_20").click()
    assert shown(run(app))["loss"] < after["loss"]
    assert float(address_of(app)["w1"]) == pytest.approx(shown(app)["weights"]["w1"], rel=1e-4)


@pytest.mark.parametrize("dataset", toy.DATASETS)
def test_data_that_no_line_separates_are_told_once_one_has_tried(dataset):
    points, labels = toy.DATASETS[dataset](400, 0.0, 0)
    angles = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    along = np.stack([np.cos(angles), np.sin(angles)]).T @ points.T  # for each direction, the points' places
    gaps = [line[labels > 0].min() - line[labels < 0].max() for line in along]
    assert (max(gaps) > 0) == (dataset not in classifier.TOO_HARD)
    app = start("classifier", data=dataset)
    assert not app.info
    app.button(key="classifier_steps_1").click()
    assert len(run(app).info) == (dataset in classifier.TOO_HARD)
    app.pills(key="classifier_data").select("circle" if dataset != "circle" else "xor")
    assert not run(app).info


def test_a_step_stops_at_the_end_of_a_slider():
    assert classifier.descend({"w1": 4.9}, {"w1": -1e9}, 1.0) == {"w1": 5.0}
    assert classifier.descend({"w1": 4.9}, {"w1": np.nan}, 1.0) == {"w1": 0.0}
    app = start("classifier", w1="5.0")
    assert any("end of its slider" in caption.value for caption in app.caption)


def test_other_points_and_another_dataset():
    app = start("classifier")
    first = shown(app)["points"]
    app.button(key="classifier_new").click()
    second = shown(run(app))["points"]
    app.pills(key="classifier_data").select("spiral")
    third = shown(run(app))["points"]
    assert first != second != third
    assert address_of(app) == {"data": "spiral", "seed": "1"}
