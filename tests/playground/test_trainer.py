"""The trainer: it learns, repeats itself for a seed, and says in words when it cannot go on."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import needle as ndl
from needle import Tensor, gradients
from needle.compiler.background import _Background
from needle.data import toy
from playground.settings import Settings
from playground.trainer import History, Trainer, grid


def learn(settings, epochs, enough=-1.0):
    """A trainer after so many epochs, or as soon as its test error is below `enough`."""
    trainer = Trainer(settings)
    while trainer.epochs < epochs and trainer.figures.test_error >= enough:
        trainer.epoch()
    return trainer


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2)]])
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
    trainer = learn(Settings(dataset=dataset, hidden=()), epochs=40)
    assert trainer.figures.test_error < 0.03


def test_a_linear_model_cannot_learn_xor():
    trainer = learn(Settings(dataset="xor", hidden=()), epochs=40)
    assert trainer.figures.test_error > 0.2


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "linear"])
def test_every_activation_lowers_the_loss(activation):
    trainer = Trainer(Settings(activation=activation, dataset="gaussian", points=100))
    before = trainer.figures.train_loss
    for _ in range(10):
        trainer.epoch()
    assert trainer.figures.train_loss < before


def test_equal_settings_give_equal_runs():
    settings = Settings(dataset="xor", noise=0.1, points=60, seed=5)
    one, two = Trainer(settings), Trainer(settings)
    np.random.seed(123)  # NumPy's global state plays no part
    for _ in range(3):
        one.epoch()
    np.random.seed(456)
    while two.epochs < 3:
        two.run_for(0)  # a single step: more could go on into the fourth epoch
    assert one.figures == two.figures
    np.testing.assert_array_equal(one.history.rows(), two.history.rows())
    for p, q in zip(one.model.parameters(), two.model.parameters(), strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_another_seed_gives_other_data_weights_and_order():
    one, two = Trainer(Settings(noise=0.1, seed=1)), Trainer(Settings(noise=0.1, seed=2))
    assert not np.array_equal(one.train[0], two.train[0])
    assert not np.array_equal(one.model.parameters()[0].numpy(), two.model.parameters()[0].numpy())


def test_the_network_does_not_change_the_data():
    one, two = Trainer(Settings(hidden=(3,))), Trainer(Settings(hidden=(8, 8), activation="relu"))
    np.testing.assert_array_equal(one.train[0], two.train[0])
    np.testing.assert_array_equal(one.test[1], two.test[1])


def test_the_global_state_of_numpy_is_left_alone():
    before = np.random.get_state()[1].copy()
    learn(Settings(points=20), epochs=2)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize(("batch_size", "steps"), [(1, 25), (10, 3), (25, 1), (4000, 1)])
def test_an_epoch_sees_every_point_once(batch_size, steps, monkeypatch):
    trainer = Trainer(Settings(points=50, batch_size=batch_size))
    seen = []
    scan = ndl.scan

    def watched(step, points, labels):
        seen.extend(points.numpy().reshape(-1, 2))
        return scan(step, points, labels)

    monkeypatch.setattr(ndl, "scan", watched)
    trainer.epoch()
    assert (trainer.steps, trainer.epochs) == (steps, 1)
    rows = np.array(seen)
    expected = trainer.train[0].astype(np.float32)
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], expected[np.lexsort(expected.T)])


def test_the_loss_is_half_the_mean_square_and_its_gradient_is_right():
    trainer = Trainer(Settings(points=40, hidden=(3,)))
    points, labels = trainer.train
    expected = np.mean(0.5 * (trainer.predict(points) - labels) ** 2)
    x, y = Tensor(points, dtype="float32"), Tensor(labels[:, None], dtype="float32")
    loss = trainer.loss(x, y)
    assert loss.numpy() == pytest.approx(expected, rel=1e-5)
    assert trainer.figures.train_loss == pytest.approx(expected, rel=1e-5)
    parameter = trainer.model.parameters()[0]
    (gradient,) = gradients(loss, [parameter])
    moved = parameter.numpy()
    moved[1, 2] += 1e-2
    parameter.data = Tensor(moved)
    difference = (trainer.loss(x, y).numpy() - loss.numpy()) / 1e-2
    assert gradient.numpy()[1, 2] == pytest.approx(difference, abs=2e-3)


def test_learning_rate_and_batch_size_change_without_a_new_start():
    trainer = Trainer(Settings(points=100))
    trainer.epoch()
    before = [p.numpy() for p in trainer.model.parameters()]
    assert trainer.retune(Settings(points=100, learning_rate=1e-6, batch_size=50))
    assert trainer.steps == 5
    trainer.epoch()
    assert trainer.steps == 6
    for p, old in zip(trainer.model.parameters(), before, strict=True):
        np.testing.assert_allclose(p.numpy(), old, atol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"hidden": (4,)},
        {"noise": 0.1},
        {"dataset": "xor"},
        {"activation": "relu"},
        {"points": 99},
    ],
)
def test_other_changes_need_a_new_trainer(change):
    trainer = Trainer()
    assert not trainer.retune(Settings(learning_rate=1.0, **change))
    assert trainer.settings == Settings()
    assert trainer.optimizer.lr == 0.03


def compiled_at_once(monkeypatch, **how):
    """Let trainers run the program from the first step on; without this they run as they are."""
    jit = ndl.jit
    monkeypatch.setattr(ndl, "jit", lambda function, background: jit(function, **how))


def assert_equal_trainings(ours, theirs, tolerance=1e-4):
    assert (ours.steps, ours.epochs) == (theirs.steps, theirs.epochs)
    np.testing.assert_allclose(ours.figures, theirs.figures, rtol=tolerance, atol=tolerance)
    for p, q in zip(ours.model.parameters(), theirs.model.parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(points=30),
        Settings(points=30, hidden=(), dataset="xor"),
        Settings(points=30, hidden=(3, 3, 3), activation="relu", noise=0.2, batch_size=4),
        Settings(points=30, hidden=(5,), activation="sigmoid", seed=3),
    ],
    ids=lambda settings: f"{settings.activation} {settings.hidden}",
)
def test_a_compiled_training_is_the_same(settings, monkeypatch):
    theirs = Trainer(settings)
    compiled_at_once(monkeypatch, debug=True)
    ours = Trainer(settings)
    for changes in ({}, {"learning_rate": 0.1}, {"learning_rate": 0.01, "batch_size": 7}):
        for trainer in (ours, theirs):
            assert trainer.retune(dataclasses.replace(trainer.settings, **changes))
            trainer.step()
            trainer.epoch()
        assert_equal_trainings(ours, theirs)
    programs = ours._learn_from._programs
    sizes = {settings.batch_size, 7} | {15 % size for size in (settings.batch_size, 7)} - {0}
    assert [len(known) for known in programs.values()] == [1] * len(sizes)  # a learning rate is no reason


@pytest.mark.slow
def test_a_training_that_is_compiled_meanwhile_is_the_same(what_compiles, monkeypatch):
    settings = Settings(points=70)  # 35 to learn from: the last batch of an epoch is smaller
    ours, theirs = Trainer(settings), Trainer(settings)
    for _ in range(11):
        theirs.epoch()
    monkeypatch.setattr(_Background, "wanted", what_compiles)
    ours.epoch()
    ours.wait()
    for _ in range(10):
        ours.epoch()
    assert_equal_trainings(ours, theirs)


def test_run_for_makes_a_step_however_short_the_time():
    trainer = Trainer(Settings(points=20))
    assert trainer.run_for(0) == 1
    assert trainer.run_for(0.05) > 1


def test_epoch_can_be_cut_short():
    trainer = Trainer(Settings(points=1000, batch_size=1))
    trainer.epoch(at_most=0.0)
    assert (trainer.steps, trainer.epochs) == (1, 0)
    trainer.epoch()
    assert trainer.epochs == 1


def test_a_loss_that_is_no_number_is_told_in_words_and_stops_the_training():
    trainer = Trainer(Settings(points=20, learning_rate=3.0))
    weight = trainer.model.parameters()[0]
    weight.data = Tensor(np.full(weight.shape, np.inf))
    trainer.epoch()
    assert trainer.trouble == (
        "Training diverged in epoch 1: the loss is not a finite number. "
        "Choose a learning rate below 3 and reset."
    )
    steps = trainer.steps
    trainer.epoch()
    assert trainer.run_for(0.01) == 0
    assert trainer.steps == steps
    assert np.isfinite(trainer.history.rows()).all()


def test_a_far_too_large_learning_rate_is_told_in_words():
    trainer = Trainer(Settings(learning_rate=100.0, activation="relu", hidden=(8, 8, 8)))
    for _ in range(20):
        trainer.epoch()
    assert "all gradients are 0. Choose a learning rate below 100 and reset." in trainer.trouble


def test_activations_end_in_the_prediction():
    trainer = Trainer(Settings(hidden=(5, 3)))
    points = np.random.default_rng(0).uniform(-6, 6, (7, 2))
    layers = trainer.activations(points)
    assert [layer.shape for layer in layers] == [(7, 5), (7, 3), (7, 1)]
    np.testing.assert_array_equal(layers[-1][:, 0], trainer.predict(points))
    assert np.abs(trainer.predict(points)).max() < 1


def test_grid_goes_row_by_row_from_the_upper_left_corner():
    points = grid(3).numpy().reshape(3, 3, 2)
    np.testing.assert_allclose(points[0, :, 0], [-4, 0, 4])
    np.testing.assert_allclose(points[:, 0, 1], [4, 0, -4])
    assert np.abs(grid(50).numpy()).max() < toy.DOMAIN[1]


def test_the_graph_is_the_loss_of_the_first_points():
    trainer = Trainer(Settings(hidden=(4, 2)))
    loss, names = trainer.graph(size=3)
    assert list(names) == ["x", "y", "W1", "b1", "h1", "W2", "b2", "h2", "W3", "b3", "output", "loss"]
    assert names["x"].shape == (3, 2)
    assert names["W1"] is trainer.model.parameters()[0]
    assert names["loss"] is loss
    points, labels = trainer.train
    assert loss.numpy() == pytest.approx(
        np.mean(0.5 * (trainer.predict(points[:3]) - labels[:3]) ** 2), rel=1e-5
    )


def test_history_stays_short_and_keeps_both_ends():
    history = History(capacity=10)
    for epoch in range(1001):
        history.add(epoch, 1.0 / (epoch + 1), 2.0 / (epoch + 1))
        epochs, train, test = history.rows()
        assert len(epochs) <= 11
        assert epochs[0] == 0
        assert epochs[-1] == epoch
    assert (np.diff(epochs) > 0).all()
    np.testing.assert_allclose(train, 1 / (epochs + 1), rtol=1e-6)
    np.testing.assert_allclose(test, 2 / (epochs + 1), rtol=1e-6)


def test_history_is_empty_at_first():
    assert History().rows().shape == (3, 0)


def test_the_trainer_needs_no_streamlit():
    code = "import sys, playground.trainer, playground.stage_data; print('streamlit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_graph_shows_the_gradients_of_its_own_loss():
    trainer = Trainer(Settings(hidden=(2,)))
    trainer.epoch()
    loss, names = trainer.graph()
    (expected,) = gradients(loss, [names["W1"]])
    np.testing.assert_array_equal(names["W1"].grad.numpy(), expected.numpy())
