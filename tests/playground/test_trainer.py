"""The trainer: it learns, repeats itself for a seed, changes while it runs, travels, says what is wrong."""

from __future__ import annotations

import copy
import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest

import needle as ndl
from needle import Tensor, cpu, nn, optim
from needle.compiler import Compiled
from needle.data import toy
from playground.training import trainer as trainer_module
from playground.training.features import FeatureError
from playground.training.hints import hint
from playground.training.history import Thinned
from playground.training.points import Point, from_csv
from playground.training.settings import LIVE, VIEW, Layer, Settings
from playground.training.trainer import MOST_CHANGES, Trainer

from ..needle.compiler.conftest import jit

SMALL = Settings(points=50, hidden=(3,))


def learn(settings, epochs, enough=-1.0):
    """A trainer after so many epochs, or as soon as its test error is below `enough`."""
    trainer = Trainer(settings)
    while trainer.epochs < epochs and not trainer.figures.test_error < enough:
        trainer.epoch()
    return trainer


def numbers(trainer):
    return [p.numpy().copy() for p in trainer.model.parameters()]


def assert_same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def assert_same_run(one, two):
    assert (one.steps, one.epochs, one.figures) == (two.steps, two.epochs, two.figures)
    assert one.losses.items() == two.losses.items()
    assert_same(numbers(one), numbers(two))


# ---- learning ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3)]])
def test_circle_with_the_default_network(seed):
    assert learn(Settings(seed=seed), epochs=100, enough=0.02).figures.test_error < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_spiral_with_a_suitable_network(seed):
    settings = Settings(dataset="spiral", hidden=(16, 16), activation="relu", learning_rate=0.1, seed=seed)
    assert learn(settings, epochs=200, enough=0.05).figures.test_error < 0.05


@pytest.mark.parametrize(
    "dataset", ["diag", *[pytest.param(name, marks=pytest.mark.slow) for name in ("gaussian", "simple")]]
)
def test_a_linear_model_separates_what_a_line_can(dataset):
    assert learn(Settings(dataset=dataset, hidden=(), points=200), 60, enough=0.03).figures.test_error < 0.03


@pytest.mark.parametrize("dataset", ["plane", pytest.param("multi-gaussian", marks=pytest.mark.slow)])
def test_regression(dataset):
    settings = Settings(dataset=dataset, hidden=(8,), points=200)
    trainer = Trainer(settings)
    assert isinstance(trainer.model.modules[-1].modules[1], nn.Identity)
    assert trainer.layer_names == ["Layer 1 (tanh)", "Output (linear)"]
    before = trainer.figures.test_loss
    epochs, share = (15, 0.05) if dataset == "plane" else (150, 0.5)
    while trainer.epochs < epochs:
        trainer.epoch()
    assert trainer.figures.test_loss < share * before


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "linear"])
def test_every_activation_lowers_the_loss(activation):
    trainer = Trainer(Settings(activation=activation, dataset="gaussian", points=60))
    before = trainer.figures.train_loss
    for _ in range(5):
        trainer.epoch()
    assert trainer.figures.train_loss < before


def plain_numpy(trainer, regularisation="none", rate=0.0):
    """The weights after a step of SGD on all points, and its gradients, for one hidden layer (tanh)."""
    (w1, b1, w2, b2) = (x.astype(float) for x in numbers(trainer))
    x, y = trainer.train[0], trainer.train[1][:, None]
    hidden = np.tanh(x @ w1 + b1)
    output = np.tanh(hidden @ w2 + b2)
    d_output = (output - y) / len(x) * (1 - output**2)
    d_hidden = d_output @ w2.T * (1 - hidden**2)
    penalty = {"none": np.zeros_like, "l1": np.sign, "l2": np.array}[regularisation]
    gradients = [
        x.T @ d_hidden + rate * penalty(w1),
        d_hidden.sum(0),
        hidden.T @ d_output + rate * penalty(w2),
        d_output.sum(0),
    ]
    lr = trainer.settings.learning_rate
    return [p - lr * g for p, g in zip((w1, b1, w2, b2), gradients, strict=True)], gradients


@pytest.mark.parametrize("kind", ["none", "l1", "l2"])
def test_a_step_is_what_numpy_computes(kind):
    settings = dataclasses.replace(
        SMALL, batch_size=25, regularisation=kind, regularisation_rate=0.3, learning_rate=0.5
    )
    trainer = Trainer(settings)
    for _ in range(3):
        expected, _ = plain_numpy(trainer, kind, 0.3)
        trainer.step()
        for ours, theirs in zip(numbers(trainer), expected, strict=True):
            np.testing.assert_allclose(ours, theirs.reshape(ours.shape), rtol=1e-4, atol=1e-6)


def test_the_gradients_are_those_of_all_points_without_the_penalty():
    trainer = Trainer(dataclasses.replace(SMALL, regularisation="l2", regularisation_rate=1.0))
    _, (w1, _, w2, _) = plain_numpy(trainer)
    for ours, theirs in zip(trainer.gradients(), (w1, w2), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_the_figures_are_the_loss_and_the_share_of_wrong_points():
    trainer = Trainer(dataclasses.replace(SMALL, train_share=0.3, noise=0.3))
    for (points, labels), loss, error in (
        (trainer.train, trainer.figures.train_loss, trainer.figures.train_error),
        (trainer.test, trainer.figures.test_loss, trainer.figures.test_error),
    ):
        outputs = trainer.predict(points)
        assert loss == pytest.approx(np.mean((outputs - labels) ** 2) / 2, rel=1e-5)
        assert error == np.mean((outputs > 0) != (labels > 0))
    assert (len(trainer.train[0]), len(trainer.test[0])) == (15, 35)


@pytest.mark.parametrize(("batch_size", "steps"), [(1, 25), (10, 3), (25, 1), (4000, 1)])
def test_an_epoch_sees_every_point_once(batch_size, steps, monkeypatch):
    trainer = Trainer(Settings(points=50, batch_size=batch_size))
    seen = []
    batches = trainer._batches

    def watched(chosen, count):
        if trainer._is_chosen:  # before, it only asks what is compiled
            seen.extend(chosen)
        return batches(chosen, count)

    monkeypatch.setattr(trainer, "_batches", watched)
    trainer.epoch()
    assert (trainer.steps, trainer.epochs) == (steps, 1)
    assert sorted(seen) == list(range(25))
    trainer.epoch()
    assert seen[:25] != seen[25:]


def test_run_for_makes_a_step_however_short_the_time():
    trainer = Trainer(SMALL)
    assert trainer.run_for(0) == 1
    assert trainer.run_for(0.05) > 1


def test_epoch_can_be_cut_short():
    trainer = Trainer(Settings(points=1000, batch_size=1))
    trainer.epoch(at_most=0.0)
    assert (trainer.steps, trainer.epochs) == (1, 0)
    trainer.epoch()
    assert trainer.epochs == 1


# ---- the seed ----------------------------------------------------------------------------------------------


def test_equal_settings_give_equal_runs():
    settings = Settings(dataset="xor", noise=0.1, points=60, seed=5, hidden=(Layer(4, "", 0.3, "batchnorm"),))
    one, two = Trainer(settings), Trainer(settings)
    np.random.seed(123)  # NumPy's global state plays no part
    before = np.random.get_state()[1].copy()
    for _ in range(3):
        one.epoch()
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    np.random.seed(456)
    while two.epochs < 3:
        two.run_for(0)  # a single step
    assert_same_run(one, two)


def test_a_network_that_is_used_again_repeats_the_run():
    settings = Settings(points=60, optimiser="adam", hidden=(Layer(4, "", 0.3, "batchnorm"),))
    first = learn(settings, 2)
    expected = numbers(first)
    again = Trainer(settings, first)
    assert again.learner is first.learner
    again.epoch()
    again.epoch()
    assert_same(numbers(again), expected)
    assert Trainer(dataclasses.replace(settings, optimiser="sgd"), again).learner is not again.learner


def test_each_seed_decides_its_own():
    settings = Settings(noise=0.1, hidden=(Layer(4, "", 0.3),), compiled=False)
    trainer = Trainer(settings)
    others = Trainer(dataclasses.replace(settings, seed=1))
    assert not np.array_equal(trainer.train[0], others.train[0])
    assert_same(numbers(trainer), numbers(others))
    begun = Trainer(dataclasses.replace(settings, weights_seed=1))
    assert_same(trainer.train, begun.train)
    assert not np.array_equal(numbers(trainer)[0], numbers(begun)[0])
    for name in ("_order_rng", "learner"):
        one, two = (getattr(x, name) for x in (trainer, begun))
        one, two = (getattr(x, "_dropout_rng", x).random() for x in (one, two))
        assert one != two


def test_another_data_seed_keeps_the_network_and_goes_on():
    trainer = learn(SMALL, 2)
    before, moments = numbers(trainer), trainer.moments
    assert trainer.retune(dataclasses.replace(trainer.settings, seed=7))
    assert_same(trainer.train, Trainer(dataclasses.replace(SMALL, seed=7)).train)
    assert_same(numbers(trainer), before)
    assert (trainer.epochs, trainer.steps) == (2, 6)
    outputs = trainer.predict(trainer.train[0])
    assert trainer.figures.train_loss == pytest.approx(np.mean((outputs - trainer.train[1]) ** 2) / 2)
    assert [epoch for epoch, _ in moments.items()] == [2]  # the moments before belong to other points
    assert trainer.changes == [(6, "seed", 7)]
    trainer.epoch()
    assert trainer.epochs == 3


def test_the_network_does_not_change_the_data():
    one, two = Trainer(Settings(hidden=(3,))), Trainer(Settings(hidden=(8, 8), activation="relu"))
    assert_same((*one.train, *one.test), (*two.train, *two.test))


# ---- the network -------------------------------------------------------------------------------------------


def test_initialisations():
    weights = {}
    for name in ("glorot", "kaiming", "uniform", "zeros"):
        trainer = Trainer(Settings(initialisation=name, hidden=(32, 32), activation="relu"))
        weights[name] = numbers(trainer)
        biases = weights[name][1::2]
        assert all(np.all(b == np.float32(0.1 if name == "uniform" else 0)) for b in biases)
    limits = {"glorot": np.sqrt(6 / 64), "kaiming": np.sqrt(6 / 32), "uniform": 0.5}
    for name, limit in limits.items():
        inner = np.abs(weights[name][2])
        assert 0.98 * limit < inner.max() <= limit
        assert inner.mean() == pytest.approx(limit / 2, rel=0.1)
    assert not any(w.any() for w in weights["zeros"])


def test_from_zeros_the_neurons_of_a_layer_stay_alike():
    trainer = learn(Settings(initialisation="zeros", activation="sigmoid", hidden=(4,), points=50), 3)
    first = numbers(trainer)[0]
    assert first.any()
    np.testing.assert_array_equal(first, first[:, :1].repeat(4, axis=1))


def test_layers_are_as_they_are_chosen():
    hidden = (Layer(3, "relu", 0.25, "batchnorm"), Layer(2, "", 0, "layernorm"), Layer(1, "sigmoid"))
    trainer = Trainer(Settings(hidden=hidden, activation="linear", inputs=("x1", "x2", "x1*x2"), points=50))
    names = [[type(part).__name__ for part in layer.modules] for layer in trainer.model.modules]
    assert names == [
        ["Linear", "BatchNorm1d", "ReLU", "Dropout"],
        ["Linear", "LayerNorm1d", "Identity"],
        ["Linear", "Sigmoid"],
        ["Linear", "Tanh"],
    ]
    assert trainer.layer_names == ["Layer 1 (ReLU)", "Layer 2 (linear)", "Layer 3 (sigmoid)", "Output (tanh)"]
    assert [linear.weight.shape for linear in trainer.learner.linears] == [(3, 3), (3, 2), (2, 1), (1, 1)]
    trainer.epoch()
    assert trainer.epochs == 1


def test_dropout_and_batch_statistics_are_off_outside_of_learning():
    trainer = learn(Settings(hidden=(Layer(8, "", 0.5, "batchnorm"), Layer(4)), points=60), 2)
    points = trainer.train[0]
    before = numbers(trainer)
    together = trainer.predict(points)
    np.testing.assert_array_equal(together, trainer.predict(points))
    one_by_one = [trainer.predict(point[None])[0] for point in points]
    np.testing.assert_allclose(one_by_one, together, rtol=1e-5, atol=1e-6)
    trainer.gradients()
    trainer.graph()
    hint(trainer)
    assert_same(numbers(trainer), before)
    rng = trainer.learner._dropout_rng
    state = copy.deepcopy(rng.bit_generator.state)
    trainer.predict(points)
    assert rng.bit_generator.state == state
    trainer.step()
    assert rng.bit_generator.state != state  # while it learns, it drops


@pytest.mark.parametrize("normalisation", ["batchnorm", "layernorm"])
def test_a_normalisation_takes_batches_of_one_point(normalisation):
    trainer = learn(Settings(hidden=(Layer(3, "", 0, normalisation),), points=22, batch_size=10), 1)
    assert trainer.steps == 2  # of 10 points and of 1
    assert not trainer.trouble


def test_activations_end_in_the_prediction():
    trainer = Trainer(Settings(hidden=(5, 3)))
    points = np.random.default_rng(0).uniform(-6, 6, (7, 2))
    layers = trainer.activations(points)
    assert [layer.shape for layer in layers] == [(7, 5), (7, 3), (7, 1)]
    np.testing.assert_array_equal(layers[-1][:, 0], trainer.predict(points))
    assert np.abs(trainer.predict(points)).max() < 1


def test_inputs_of_ones_own():
    trainer = Trainer(Settings(inputs=("x1*x2", "maximum(x1, abs(x2))"), hidden=()))
    points = trainer.test[0]
    x, y = points.T
    w, b = numbers(trainer)
    expected = np.tanh(np.stack([x * y, np.maximum(x, np.abs(y))], axis=1) @ w + b)[:, 0]
    np.testing.assert_allclose(trainer.predict(points), expected, rtol=1e-4, atol=1e-5)


# ---- changes -----------------------------------------------------------------------------------------------

CHANGES = {
    "learning_rate": 0.5,
    "batch_size": 7,
    "regularisation_rate": 0.1,
    "schedule": "cosine",
    "period": 3,
    "compiled": False,
    "own": (Point(1, 2, 1), Point(-1, 2, -1)),
    "seed": 1,
    "pace": "10",
    "test_points": True,
    "discretise": True,
    "log_loss": True,
    "hide": ("play",),
    "lesson": "zeros",
}


def test_live_changes_keep_the_network():
    assert set(CHANGES) == LIVE | VIEW
    trainer = learn(Settings(points=50, regularisation="l2"), 1)
    before, model = numbers(trainer), trainer.model
    for name, value in CHANGES.items():
        settings = dataclasses.replace(trainer.settings, **{name: value})
        assert trainer.retune(settings)
        assert trainer.settings == settings
    assert (trainer.steps, trainer.epochs) == (3, 1)
    assert trainer.model is model
    assert_same(numbers(trainer), before)
    assert [(steps, what) for steps, what, _ in trainer.changes] == [
        (3, name) for name in CHANGES if name in LIVE - {"compiled"}
    ]
    trainer.epoch()
    assert trainer.epochs == 2
    assert trainer.steps == 3 + 4  # 26 points in batches of 7


OTHERS = {
    "weights_seed": 1, "hidden": (4,), "noise": 0.1, "dataset": "xor", "activation": "relu", "points": 99,
    "train_share": 0.4,
    "inputs": ("x1",), "initialisation": "zeros", "optimiser": "adam", "regularisation": "l1",
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_changes_need_a_new_trainer(name):
    assert set(OTHERS) | set(CHANGES) == {*Settings.__dataclass_fields__}
    trainer = Trainer()
    assert not trainer.retune(Settings(learning_rate=1.0, **{name: OTHERS[name]}))
    assert trainer.settings == Settings()
    assert trainer.learner.optimizer.lr == 0.03
    assert trainer.changes == []


def test_the_next_step_takes_the_new_rate():
    trainer = Trainer(dataclasses.replace(SMALL, batch_size=25))
    trainer.step()
    trainer.retune(dataclasses.replace(trainer.settings, learning_rate=1e-6))
    before = numbers(trainer)
    trainer.step()
    for new, old in zip(numbers(trainer), before, strict=True):
        np.testing.assert_allclose(new, old, atol=1e-5)


def test_of_several_changes_between_two_steps_the_last_counts():
    trainer = learn(SMALL, 1)
    for rate in (0.1, 0.2):
        trainer.retune(dataclasses.replace(trainer.settings, learning_rate=rate))
        trainer.set_weight(1, 0, 0, rate)
        trainer.set_weight(1, 1, 0, rate)
        trainer.set_bias(1, 0, rate)
    small = float(np.float32(0.2))
    assert trainer.changes == [
        (3, "learning_rate", 0.2),
        (3, "weight", (1, 0, 0, small)),
        (3, "weight", (1, 1, 0, small)),
        (3, "bias", (1, 0, 0, small)),
    ]


def test_changes_are_not_remembered_without_end():
    trainer = Trainer(SMALL)
    trainer.changes = [(0, "batch_size", 7)] * MOST_CHANGES
    for i in range(5):
        trainer.steps = i + 1
        trainer.set_weight(1, 0, 0, 0.5)
    assert len(trainer.changes) == MOST_CHANGES + 1


def test_painted_points_move_no_other_between_train_and_test():
    settings = Settings(dataset="own", train_share=0.3)
    points = [Point(i / 10, -i / 10, 1 if i % 2 else -1) for i in range(30)]
    trainer = Trainer(settings)
    parts = {}
    for count in range(1, 31):
        trainer.retune(dataclasses.replace(trainer.settings, own=tuple(points[:count])))
        for part in ("train", "test"):
            for x1, _ in getattr(trainer, part)[0]:
                assert parts.setdefault(x1, part) == part
    assert (len(trainer.train[0]), len(trainer.test[0])) == (9, 21)
    made = Trainer(Settings(points=40))
    before = {tuple(point) for point in made.test[0]}
    made.retune(dataclasses.replace(made.settings, own=tuple(points[:5])))
    assert {tuple(point) for point in made.test[0]} >= before
    assert len(made.train[0]) + len(made.test[0]) == 45


def test_points_can_be_painted_onto_an_empty_plane():
    trainer = Trainer(Settings(dataset="own"))
    assert trainer.trouble == "There are no points to learn from. Paint some, or choose a data set."
    assert trainer.run_for(0.01) == 0
    trainer.travel(0)  # there is no moment yet
    assert not trainer.looks_back
    trainer.retune(dataclasses.replace(trainer.settings, own=(Point(1, 1, 1),)))
    assert trainer.trouble is None
    assert hint(trainer) is None
    trainer.epoch()
    assert trainer.epochs == 1
    assert np.isnan(trainer.figures.test_loss)
    trainer.retune(dataclasses.replace(trainer.settings, own=()))
    assert "no points" in trainer.trouble


def test_a_point_where_an_input_has_no_value_changes_nothing():
    text = "sqrt((x1-0.25)**2 + x2**2 - 0.001)"
    settings = Settings(points=10, inputs=(text,), seed=1)
    trainer = learn(settings, 1)
    before, weights, state = trainer.settings, numbers(trainer), trainer.train
    with pytest.raises(FeatureError, match=r"has no finite value at x1 = 0\.25, x2 = 0"):
        trainer.retune(dataclasses.replace(settings, own=(Point(0.25, 0, 1),)))
    assert trainer.settings is before
    assert trainer.train is state
    with pytest.raises(FeatureError):
        Trainer(dataclasses.replace(settings, own=(Point(0.25, 0, 1),)), trainer)
    assert_same(numbers(trainer), weights)
    trainer.epoch()
    assert trainer.epochs == 2


def test_a_refused_point_keeps_what_came_later():
    trainer = learn(Settings(points=50, inputs=("1/(x1 - 0.25)",), hidden=(3,)), 4)
    trainer.set_weight(1, 0, 0, 0.5)
    trainer.epoch()
    before, changes = trainer.losses.items(), list(trainer.changes)
    trainer.travel(2)
    with pytest.raises(FeatureError):
        trainer.retune(dataclasses.replace(trainer.settings, own=(Point(0.25, 0, 1),)))
    assert trainer.looks_back
    assert trainer.gone_after is None
    assert trainer.losses.items() == before
    assert [epoch for epoch, _ in trainer.moments.items()] == [0, 1, 2, 3, 4, 5]
    trainer.travel(None)
    assert (trainer.epochs, trainer.changes) == (5, changes)


def test_uploaded_numbers_are_learned_by_a_linear_output():
    rng = np.random.default_rng(0)
    places = rng.uniform(-6, 6, (100, 2)).round(3)
    own, _ = from_csv("\n".join(f"{x1},{x2},{x1 + x2}" for x1, x2 in places))
    classes = Trainer(Settings(dataset="own", own=(Point(1, 1, 1), Point(-1, 1, -1)), hidden=()))
    assert classes.layer_names == ["Output (tanh)"]
    settings = dataclasses.replace(classes.settings, own=own)
    assert not classes.retune(settings)  # it needs another network
    assert len(classes.train[0]) == 1
    trainer = Trainer(settings, classes)
    assert trainer.layer_names == ["Output (linear)"]
    while trainer.epochs < 100:
        trainer.epoch()
    assert trainer.figures.test_loss < 1e-6  # tanh would bend the plane
    assert trainer.retune(dataclasses.replace(settings, own=(*own, Point(0, 0, -1))))


def test_weights_and_biases_can_be_set():
    trainer = Trainer(Settings(hidden=(3, 2), points=50))
    before = trainer.figures
    trainer.set_weight(1, 1, 2, 0.75)
    trainer.set_weight(3, 1, 0, -2.5)
    trainer.set_bias(2, 1, 0.1)
    w1, _, _, b2, w3, _ = numbers(trainer)
    assert (w1[1, 2], b2.ravel()[1], w3[1, 0]) == (0.75, np.float32(0.1), -2.5)
    assert trainer.figures != before
    trainer.epoch()
    assert trainer.epochs == 1


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("weight", (0, 0, 0)), ("weight", (3, 0, 0)), ("weight", (-1, 0, 0)), ("weight", (1, 2, 0)),
        ("weight", (1, 0, 3)), ("weight", (1, -1, 0)), ("weight", (1, 0, -1)), ("weight", (10**9, 0, 0)),
        ("bias", (0, 0)), ("bias", (3, 0)), ("bias", (1, 3)), ("bias", (2, 1)), ("bias", (1, -1)),
    ],
)  # fmt: skip
def test_bad_places_change_nothing(kind, place):
    trainer = Trainer(SMALL)
    before = numbers(trainer)
    with pytest.raises(ValueError, match=kind):
        getattr(trainer, f"set_{kind}")(*place, 1.0)
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="can't become"):
            getattr(trainer, f"set_{kind}")(1, 0, *place[2:3] and (0,), value)
    assert_same(numbers(trainer), before)
    assert trainer.changes == []


# ---- schedules ---------------------------------------------------------------------------------------------

SCHEDULES = {
    "constant": lambda o: optim.StepLR(o, 10**9),
    "steps": lambda o: optim.StepLR(o, 3, 0.5),
    "cosine": lambda o: optim.CosineLR(o, 3),
    "warm-up": lambda o: optim.WarmUp(o, 3),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_change_the_rate_as_those_of_needle_do(name):
    trainer = Trainer(Settings(points=10, hidden=(), schedule=name, period=3, learning_rate=0.3))
    theirs = optim.SGD([Tensor([1.0])], lr=0.3)
    schedule = SCHEDULES[name](theirs)
    for _ in range(8):
        assert trainer.learner.optimizer.lr == theirs.lr
        trainer.epoch()
        schedule.step()


def test_a_schedule_chosen_later_is_where_it_would_be():
    settings = Settings(points=10, hidden=(), schedule="steps", period=2, learning_rate=0.4)
    trainer = learn(settings, 5)
    assert trainer.learner.optimizer.lr == 0.1
    trainer.retune(dataclasses.replace(settings, learning_rate=0.8))
    assert trainer.learner.optimizer.lr == 0.2
    trainer.retune(dataclasses.replace(settings, schedule="constant"))
    assert trainer.learner.optimizer.lr == 0.4
    trainer.travel(2)
    trainer.retune(dataclasses.replace(settings, schedule="steps"))
    assert trainer.learner.optimizer.lr == 0.2


@pytest.mark.slow
def test_a_rate_may_shrink_to_nothing():
    trainer = learn(Settings(points=10, hidden=(), schedule="steps", period=1), 1200)
    assert trainer.learner.optimizer.lr == 0
    assert trainer.trouble is None


# ---- moments -----------------------------------------------------------------------------------------------

FULL = Settings(
    points=50, optimiser="adam", hidden=(Layer(3, "", 0.2, "batchnorm"),), schedule="cosine", period=20
)


def test_travel_there_and_back_is_exact():
    trainer, other = Trainer(FULL), Trainer(FULL)
    for _ in range(6):
        trainer.epoch()
        other.epoch()
    trainer.step()
    other.step()
    for epoch in (2, 0, 5):
        trainer.travel(epoch)
        assert trainer.looks_back
        assert trainer.epochs == epoch
        assert_same(numbers(trainer), numbers(learn(FULL, epoch)))
    trainer.travel(None)
    assert not trainer.looks_back
    assert_same_run(trainer, other)
    for _ in range(2):
        trainer.epoch()
        other.epoch()
    assert_same_run(trainer, other)
    trainer.travel(None)  # it is there already
    assert_same_run(trainer, other)


def test_going_on_from_an_earlier_moment_forgets_what_came_later():
    trainer = learn(FULL, 6)
    trainer.set_weight(1, 0, 0, 5.0)
    trainer.retune(dataclasses.replace(FULL, learning_rate=1.0))
    trainer.epoch()
    trainer.retune(dataclasses.replace(FULL, learning_rate=FULL.learning_rate))
    trainer.travel(3)
    trainer.epoch()
    assert not trainer.looks_back
    assert trainer.changes == []
    assert_same_run(trainer, learn(FULL, 4))
    assert [epoch for epoch, _ in trainer.moments.items()] == [0, 1, 2, 3, 4]
    trainer.travel(None)
    assert trainer.epochs == 4


def test_what_came_later_can_be_brought_back():
    trainer = learn(SMALL, 6)
    trainer.step()
    assert trainer.epoch_share == pytest.approx(10 / 25)
    before, figures, losses = numbers(trainer), trainer.figures, trainer.losses.items()
    other = learn(SMALL, 6)
    other.step()
    trainer.travel(2)
    assert trainer.gone_after is None
    trainer.epoch()
    assert (trainer.gone_after, trainer.epochs) == (2, 3)
    trainer.bring_back()
    assert trainer.gone_after is None
    assert (trainer.epochs, trainer.steps, trainer.figures) == (6, other.steps, figures)
    assert trainer.losses.items() == losses
    assert [at for at, _ in trainer.moments.items()] == [at for at, _ in other.moments.items()]
    assert_same(numbers(trainer), before)
    for each in (trainer, other):
        each.epoch()
    assert_same(numbers(trainer), numbers(other))  # it goes on as if nothing had been
    assert trainer.changes == other.changes


def test_what_came_later_is_given_up_in_the_end():
    trainer = learn(SMALL, 4)
    trainer.travel(1)
    while trainer.epochs < 4:
        trainer.epoch()
        assert trainer.gone_after == 1
    trainer.epoch()
    assert trainer.gone_after is None  # the new curve has come as far
    trainer.travel(2)
    trainer.set_weight(1, 0, 0, 0.5)
    assert trainer.gone_after == 2
    trainer.retune(dataclasses.replace(trainer.settings, seed=8))
    assert trainer.gone_after is None  # it belongs to other points
    trainer.bring_back()
    assert trainer.settings.seed == 8


def test_a_setting_that_was_changed_meanwhile_counts_from_when_all_is_back():
    trainer = learn(SMALL, 4)
    trainer.travel(1)
    trainer.epoch()
    trainer.retune(dataclasses.replace(trainer.settings, learning_rate=0.5))
    trainer.bring_back()
    assert trainer.learner.optimizer.lr == 0.5
    assert trainer.changes == [(trainer.steps, "learning_rate", 0.5)]


def test_a_setting_changed_while_looking_back_counts_from_there_or_from_now():
    rate = dataclasses.replace(FULL, learning_rate=0.5)
    trainer, other = learn(FULL, 4), learn(FULL, 4)
    trainer.travel(2)
    trainer.retune(rate)
    trainer.travel(None)
    other.retune(rate)
    trainer.epoch()
    other.epoch()
    assert_same_run(trainer, other)
    assert trainer.changes == other.changes == [(12, "learning_rate", 0.5)]
    trainer.travel(2)
    trainer.epoch()
    assert trainer.changes == [(6, "learning_rate", 0.5)]
    other = learn(FULL, 2)
    other.retune(rate)
    other.epoch()
    assert_same_run(trainer, other)


@pytest.mark.parametrize("edit", [lambda x: x.set_weight(1, 0, 0, 2.0), lambda x: x.set_bias(1, 0, 2.0)])
def test_an_edit_while_looking_back_goes_on_from_there(edit):
    trainer, other = learn(FULL, 4), learn(FULL, 2)
    trainer.travel(2)
    edit(trainer)
    edit(other)
    assert not trainer.looks_back
    trainer.epoch()
    other.epoch()
    assert_same_run(trainer, other)
    assert trainer.changes == other.changes


def test_points_painted_while_looking_back_go_on_from_there():
    painted = dataclasses.replace(FULL, own=(Point(1, 1, 1), Point(1, 2, -1), Point(2, 2, 1)))
    trainer, other = learn(FULL, 4), learn(FULL, 2)
    trainer.travel(2)
    trainer.retune(painted)
    other.retune(painted)
    trainer.epoch()
    other.epoch()
    assert_same_run(trainer, other)
    assert trainer.changes == other.changes
    assert [epoch for epoch, _ in trainer.moments.items()] == [2, 3]


def test_a_moment_after_an_edit_remembers_it():
    trainer = learn(FULL, 2)
    trainer.set_weight(1, 0, 0, 2.0)
    trainer.retune(dataclasses.replace(FULL, own=(Point(1, 1, 1),)))
    changes = list(trainer.changes)
    trainer.epoch()
    trainer.travel(2)
    trainer.epoch()
    assert trainer.changes == changes
    assert [what for _, what, _ in changes] == ["weight", "own"]


def test_travel_leads_out_of_a_divergence():
    trainer = learn(Settings(points=50, dataset="plane", activation="linear"), 2)
    trainer.retune(dataclasses.replace(trainer.settings, learning_rate=100.0))
    while not trainer.trouble:
        trainer.epoch()
    assert trainer.run_for(0.01) == 0
    trainer.travel(1)
    assert trainer.trouble is None
    trainer.travel(None)
    assert trainer.trouble
    trainer.travel(1)
    trainer.retune(dataclasses.replace(trainer.settings, learning_rate=0.01))
    trainer.epoch()
    assert trainer.epochs == 2
    assert trainer.trouble is None


def test_a_copy_goes_its_own_way():
    trainer = learn(FULL, 3)
    other = trainer.copy()
    assert_same_run(trainer, other)
    before = numbers(trainer)
    other.epoch()
    other.set_weight(1, 0, 0, 5.0)
    assert_same(numbers(trainer), before)
    assert (trainer.epochs, trainer.changes) == (3, [])
    assert len(trainer.losses.items()) == len(trainer.moments.items()) == 4
    trainer.epoch()
    again = learn(FULL, 4)
    assert_same_run(trainer, again)


def test_a_copy_of_an_earlier_moment_ends_there():
    trainer = learn(FULL, 3)
    trainer.set_weight(1, 0, 0, 5.0)
    trainer.epoch()
    trainer.travel(2)
    other = trainer.copy()
    assert_same_run(other, learn(FULL, 2))
    assert other.changes == []
    assert not other.looks_back
    assert trainer.looks_back
    trainer.travel(None)
    assert trainer.epochs == 4


def test_restore_refuses_what_does_not_fit():
    trainer = learn(SMALL, 1)
    other = Trainer(Settings(points=60, hidden=(3,)))
    with pytest.raises(ValueError, match="other points"):
        trainer.restore(other.state())
    with pytest.raises(ValueError, match=r"shape|names"):
        trainer.restore(Trainer(Settings(points=50, hidden=(4,))).state())


# ---- trouble -----------------------------------------------------------------------------------------------


def test_a_loss_that_is_no_number_is_told_in_words_and_stops_the_training():
    trainer = Trainer(Settings(points=20, learning_rate=3.0))
    weight = trainer.model.parameters()[0]
    weight.data = Tensor(np.full(weight.shape, np.inf), device=cpu(), dtype="float32", requires_grad=False)
    trainer.epoch()
    assert trainer.trouble == (
        "Training diverged in epoch 1: the loss overflowed. Choose a learning rate below 3 and press Reset."
    )
    steps = trainer.steps
    trainer.epoch()
    assert trainer.run_for(0.01) == 0
    assert trainer.steps == steps
    assert all(np.isfinite(pair).all() for _, pair in trainer.losses.items())
    assert hint(trainer) is None


def test_outputs_at_the_end_of_their_range_are_told_in_words():
    trainer = Trainer(Settings(learning_rate=100.0, activation="relu", hidden=(8, 8, 8), points=100))
    for _ in range(20):
        trainer.epoch()
    assert trainer.trouble.startswith("Every output has been exactly −1 or +1 since epoch ")
    assert trainer.trouble.endswith("Choose a learning rate below 100 and press Reset.")


def test_units_that_learn_nothing_are_told():
    dead = Trainer(Settings(points=50, hidden=(3, 4), activation="relu"))
    for neuron in range(3):
        dead.set_bias(2, neuron, -100)
    assert hint(dead) == (
        "Layer 2: 3 of 4 units are 0 for every point, so they learn nothing. Press Reset for other first "
        "weights; a lower learning rate keeps more units alive."
    )
    full = Trainer(Settings(points=50, hidden=(1,), activation="sigmoid"))
    full.set_bias(1, 0, 100)
    assert hint(full) == (
        "Layer 1: 1 of 1 unit is at one end of its range for every point, so it learns nothing. Choose a "
        "lower learning rate and press Reset."
    )


def test_a_loss_that_stands_still_is_told():
    still = Trainer(Settings(points=50, hidden=(), dataset="xor", learning_rate=0.000001))
    assert hint(still) is None
    while still.epochs < 20:
        still.epoch()
    assert hint(still) == (
        "The loss stands still. More neurons, more inputs or another learning rate may help."
    )
    still.travel(0)
    assert hint(still) is None  # it speaks of the present
    noisy = learn(Settings(points=50, hidden=(), dataset="xor", learning_rate=0.000001, noise=0.4), 20)
    assert hint(noisy) == (
        "The loss stands still. Less noise than 40 %, more neurons, more inputs or another learning rate may "
        "help."
    )


@pytest.mark.slow
def test_no_advice_about_what_is_wanted():
    """Where units sleep by a penalty's will, labels are wrong, or units tell two classes apart clearly."""
    quiet = [
        Settings(activation="relu", regularisation="l1", regularisation_rate=0.03),
        Settings(noise=0.5, points=300),
        Settings(dataset="gaussian", learning_rate=1, points=100),
        Settings(dataset="plane", points=100),
    ]
    for settings in quiet:
        trainer = Trainer(settings)
        while trainer.epochs < 80:
            trainer.epoch()
            assert hint(trainer) is None, (settings, trainer.epochs)
    assert np.abs(trainer.figures.train_loss) < 0.05


def test_a_penalty_that_is_too_strong_is_told():
    trainer = learn(Settings(points=100, regularisation="l1", regularisation_rate=0.3), 60)
    assert hint(trainer) == (
        "The penalty holds the weights near 0, so the network learns nothing. Choose a lower penalty rate."
    )


def test_learning_by_heart_is_told():
    settings = Settings(noise=0.35, points=100, train_share=0.4, hidden=(8, 8), learning_rate=0.1)
    trainer = Trainer(settings)
    while not hint(trainer) and trainer.epochs < 400:
        trainer.epoch()
    told = re.fullmatch(
        r"The test loss has risen since epoch (\d+), but the training loss fell: this network learns the "
        r"noise of 35 % by heart\. Less noise, more points or L2 may help\.",
        hint(trainer),
    )
    best = min(trainer.losses.items(), key=lambda entry: entry[1][1])
    assert int(told[1]) == best[0] <= trainer.epochs - 20
    assert trainer.figures.test_loss > 1.1 * best[1][1]
    assert trainer.figures.train_loss < best[1][0]
    trainer.retune(dataclasses.replace(settings, seed=1))
    assert hint(trainer) is None  # these are other points


def test_a_few_wrong_points_among_clear_answers_are_no_trouble():
    own = tuple(Point(x, 0, 1 if x > 0 else -1) for x in (-3, -2, -1, 1, 2, 3, -4, 4, -5, 5, -1.5))
    own = (*own[:-1], Point(-1.5, 0, 1))
    trainer = Trainer(Settings(dataset="own", own=own, train_share=0.9, hidden=(), inputs=("x1",)))
    trainer.set_weight(1, 0, 0, 1000.0)
    assert 0 < trainer.figures.train_error <= 0.1
    assert trainer.trouble is None
    trainer.set_weight(1, 0, 0, -1000.0)
    assert trainer.trouble.startswith("Every output has been exactly −1 or +1 since")


# ---- compiled ----------------------------------------------------------------------------------------------


def assert_equal_trainings(ours, theirs, tolerance=1e-4):
    assert (ours.steps, ours.epochs) == (theirs.steps, theirs.epochs)
    np.testing.assert_allclose(ours.figures, theirs.figures, rtol=tolerance, atol=tolerance)
    for p, q in zip(numbers(ours), numbers(theirs), strict=True):
        np.testing.assert_allclose(p, q, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(points=30),
        Settings(points=30, hidden=(), dataset="xor", regularisation="l1", regularisation_rate=0.01),
        Settings(
            points=30, hidden=(3, Layer(3, "sigmoid", 0.2), 3), activation="relu", noise=0.2, batch_size=4
        ),
        Settings(points=30, hidden=(Layer(3, "", 0, "batchnorm"),), optimiser="momentum", dataset="plane"),
        Settings(points=30, hidden=(Layer(3, "", 0, "layernorm"),), optimiser="adam"),
    ],
    ids=lambda settings: f"{settings.optimiser} {settings.hidden}",
)
def test_a_program_does_the_same_steps(settings, monkeypatch):
    """The program, run as Python: nothing needs to be compiled to see what it does."""
    theirs = Trainer(dataclasses.replace(settings, compiled=False))
    monkeypatch.setattr(ndl, "jit", lambda function, background: jit(function))
    monkeypatch.setattr(trainer_module, "FIRST_EPOCHS", 0)
    monkeypatch.setattr(ndl.compiler, "scan_is_ready", lambda step, *batches: isinstance(step, Compiled))
    ours = Trainer(settings)
    for changes in ({}, {"learning_rate": 0.1}, {"learning_rate": 0.01, "batch_size": 7}):
        for trainer in (ours, theirs):
            assert trainer.retune(dataclasses.replace(trainer.settings, **changes))
            trainer.step()
            trainer.epoch()
        assert_equal_trainings(ours, theirs)
    assert ours.is_compiled
    sizes = {settings.batch_size, 7} | {15 % size for size in (settings.batch_size, 7)} - {0}
    programs = ours.learner.step._programs
    assert len(programs) == len(sizes)  # a learning rate is no reason for another one


@pytest.mark.slow
def test_a_training_that_is_compiled_meanwhile_is_the_same(what_compiles):
    settings = Settings(points=70)  # 35 to learn from: the last batch of an epoch is smaller
    ours, theirs = Trainer(settings), Trainer(settings)
    for _ in range(13):
        theirs.epoch()
    what_compiles()
    for _ in range(3):  # the first two are learned before anything is traced
        ours.epoch()
    ours.wait()
    for _ in range(10):
        ours.epoch()
    assert ours.changes[-1][1:] == ("compiled", True)
    assert_equal_trainings(ours, theirs)


# ---- what is remembered ------------------------------------------------------------------------------------


def test_thinned_stays_short_and_keeps_both_ends():
    kept = Thinned(10)
    assert kept.items() == []
    with pytest.raises(KeyError):
        kept.nearest(3)
    for epoch in range(1001):
        kept.add(epoch, -epoch)
        epochs = [at for at, _ in kept.items()]
        assert len(epochs) <= 11
        assert (epochs[0], epochs[-1]) == (0, epoch)
        assert epochs == sorted(set(epochs))
        steps = set(np.diff(epochs[:-1]))
        assert len(steps) <= 1
    assert kept.items()[1] == (128, -128)
    assert (kept.nearest(130), kept.nearest(-5), kept.nearest(10**9)) == (-128, 0, -1000)
    other = copy.copy(kept)
    other.cut(300)
    assert [at for at, _ in other.items()] == [0, 128, 256]
    other.add(301, 7)
    assert [at for at, _ in other.items()] == [0, 128, 256, 301]
    assert kept.items()[-1] == (1000, -1000)
    other.cut(-1)
    assert other.items() == []


def test_losses_and_moments_stay_few():
    trainer = learn(Settings(points=10, hidden=()), 310)
    assert 150 <= len(trainer.losses.items()) <= 302
    assert 30 <= len(trainer.moments.items()) <= 62
    assert trainer.losses.items()[-1] == (310, trainer.figures[:2])


def test_the_graph_is_the_loss_of_the_first_points():
    trainer = learn(Settings(hidden=(4, 2), points=50), 1)
    loss, names = trainer.graph(size=3)
    assert list(names) == ["x", "y", "W1", "b1", "h1", "W2", "b2", "h2", "W3", "b3", "output", "loss"]
    assert names["x"].shape == (3, 2)
    assert names["W1"] is trainer.model.parameters()[0]
    assert names["loss"] is loss
    points, labels = trainer.train
    expected = np.mean(0.5 * (trainer.predict(points[:3]) - labels[:3]) ** 2)
    assert loss.numpy() == pytest.approx(expected, rel=1e-5)
    (gradient,) = ndl.gradients(loss, [names["W1"]])
    np.testing.assert_array_equal(names["W1"].grad.numpy(), gradient.numpy())


def test_points_lie_in_the_plane():
    low, high = toy.DOMAIN
    for name in [*toy.DATASETS, *toy.REGRESSION]:
        points = Trainer(Settings(dataset=name, points=50, hidden=())).train[0]
        assert ((low <= points) & (points <= high)).all()


def test_the_trainer_needs_no_streamlit():
    modules = "playground.training.trainer, playground.server.messages"
    code = f"import sys, {modules}; print('streamlit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
