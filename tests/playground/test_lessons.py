"""The lessons: each can be opened, and what its right answer claims is so."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from playground.training.hints import hint
from playground.training.lessons import LESSONS
from playground.training.settings import FIELDS, HIDEABLE, Layer, Settings
from playground.training.trainer import Trainer


def settings_of(name, **others):
    settings, problems = Settings().changed({**LESSONS[name].settings, "lesson": name, **others})
    assert not problems
    return settings


def learn(settings, epochs, until=lambda trainer: False):
    trainer = Trainer(settings)
    while trainer.epochs < epochs and not trainer.trouble and not until(trainer):
        trainer.epoch()
    return trainer


def weights(trainer):
    return [linear.weight.numpy() for linear in trainer.learner.linears]


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_can_be_opened(name):
    lesson = LESSONS[name]
    settings = settings_of(name)
    assert settings.lesson == name
    assert not Trainer(settings).trouble
    assert set(settings.hide) <= set(HIDEABLE)
    for setting, text in lesson.settings.items():
        assert FIELDS[setting].write(getattr(settings, setting)) == text, setting
    assert lesson.title
    assert lesson.question.endswith("?")
    assert len(lesson.predictions) in (2, 3)
    assert len({choice for choice, _ in lesson.predictions}) == len(lesson.predictions)
    for choice, said in lesson.predictions:
        assert choice
        assert said.endswith(".")
        assert 2 <= len(re.findall(r"[.:](?= |$)", said)) <= 5
        assert len(said) < 260


@pytest.mark.slow
@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_can_be_watched(name):
    """Its curve has at least five losses to show, and no answer comes before its time."""
    trainer = learn(settings_of(name), LESSONS[name].epochs)
    assert len(trainer.losses.items()) >= 5
    assert trainer.epochs == LESSONS[name].epochs or trainer.trouble


def test_the_names_of_lessons_can_be_addresses():
    assert all(name.replace("-", "").isalpha() and name.islower() for name in LESSONS)
    assert len({lesson.title for lesson in LESSONS.values()}) == len(LESSONS)


def test_one_straight_line_leaves_three_in_ten_wrong():
    assert (
        "about three in ten test points stay wrong"
        in dict(LESSONS["straight-line"].predictions)["Yes, after some time"]
    )
    for rate in ("0.03", "0.3"):
        trainer = learn(settings_of("straight-line", learning_rate=rate), LESSONS["straight-line"].epochs)
        assert 0.25 < trainer.figures.test_error < 0.35


def test_four_neurons_part_the_corners():
    settings = settings_of("straight-line", hidden="4")
    trainer = learn(settings, 100, until=lambda x: x.figures.test_error < 0.1)
    assert trainer.figures.test_error < 0.1


def test_the_squares_replace_a_layer():
    trainer = learn(settings_of("features-or-depth"), LESSONS["features-or-depth"].epochs)
    assert trainer.figures.test_error < 0.02
    w = weights(trainer)[0].ravel()
    assert w[0] == pytest.approx(w[1], rel=0.3)  # a circle, not an ellipse


@pytest.mark.slow
def test_wrong_labels_are_learned_by_heart():
    trainer = learn(settings_of("noise"), LESSONS["noise"].epochs)
    losses = trainer.losses.items()
    tests = [test for _, (_, test) in losses]
    lowest = int(np.argmin(tests))
    assert 20 < losses[lowest][0] < 200
    assert tests[lowest] < 0.97 * tests[0]
    assert tests[-1] > 1.15 * tests[lowest]
    assert losses[-1][1][0] < 0.7 * losses[lowest][1][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "others", [{"regularisation": "l2", "regularisation_rate": "0.03"}, {"points": "1000"}], ids=str
)
def test_what_helps_against_learning_by_heart(others):
    alone, helped = (learn(settings_of("noise", **given), LESSONS["noise"].epochs) for given in ({}, others))
    rise = [x.figures.test_loss / min(test for _, (_, test) in x.losses.items()) for x in (alone, helped)]
    assert rise[1] < rise[0]
    assert helped.figures.test_loss < alone.figures.test_loss


def test_units_die():
    trainer = learn(settings_of("dead-relu"), LESSONS["dead-relu"].epochs)
    layer = trainer.activations(trainer.train[0])[1]
    assert layer.shape[1] == 2  # "the two neurons of layer 2"
    assert not layer.any()
    assert trainer.figures.train_loss > 0.2
    assert "0 for every point" in (hint(trainer) or "")
    before = weights(trainer)[0].copy()
    trainer.epoch()
    gone = [not values.any() for values in trainer.activations(trainer.train[0])[0].T]
    if any(gone):  # a dead unit's own weights do not move
        np.testing.assert_array_equal(weights(trainer)[0][:, gone], before[:, gone])


def test_a_lower_rate_keeps_units_alive():
    settings = settings_of("dead-relu", learning_rate="0.03")
    trainer = learn(settings, 100, until=lambda x: x.figures.test_error < 0.05)
    assert trainer.figures.test_error < 0.05


def test_too_large_steps_overflow():
    trainer = learn(settings_of("large-rate"), LESSONS["large-rate"].epochs)
    assert trainer.trouble.startswith("Training diverged in epoch ")
    assert 10 <= trainer.epochs == trainer.steps <= LESSONS["large-rate"].epochs  # one step in each epoch
    losses = [train for _, (train, _) in trainer.losses.items()]
    assert np.all(np.diff(losses) > 0)  # "lands farther away than it was"
    good = learn(settings_of("large-rate", learning_rate="0.03"), 20)
    assert not good.trouble
    assert good.figures.test_loss < 0.02


def test_too_large_steps_swing():
    settings = settings_of("large-rate")
    weights_of = [weights(learn(settings, epochs))[0][0, 0] for epochs in range(2, 6)]
    assert np.all(np.diff(np.sign(weights_of)) != 0)


def test_equal_neurons_stay_equal():
    trainer = learn(settings_of("zeros"), LESSONS["zeros"].epochs)
    first, last = weights(trainer)
    assert first.any()
    np.testing.assert_array_equal(first, first[:, :1].repeat(4, axis=1))
    np.testing.assert_array_equal(last, last[:1].repeat(4, axis=0))
    drawn = learn(settings_of("zeros", initialisation="glorot"), 1)
    assert np.ptp(weights(drawn)[0], axis=1).min() > 0.01


@pytest.mark.slow
def test_the_penalty_keeps_the_two_squares():
    trainer = learn(settings_of("penalty"), LESSONS["penalty"].epochs)
    sizes = dict(zip(trainer.settings.inputs, np.abs(weights(trainer)[0].ravel()), strict=True))
    squares = min(sizes.pop("x1**2"), sizes.pop("x2**2"))
    assert squares > 5 * max(sizes.values()), sizes
    assert trainer.figures.test_error < 0.05
    l2 = learn(dataclasses.replace(trainer.settings, regularisation="l2"), LESSONS["penalty"].epochs)
    others = np.delete(np.abs(weights(l2)[0].ravel()), [2, 3])
    assert others.sum() > sum(sizes.values())  # "that is what L2 does"


@pytest.mark.slow
def test_a_gradient_fades():
    trainer = learn(settings_of("deep-sigmoid"), LESSONS["deep-sigmoid"].epochs)
    assert trainer.figures.test_error > 0.3
    sizes = [np.abs(gradient).mean() for gradient in trainer.gradients()]
    assert sizes[0] < 0.05 * sizes[-1]
    tanh = learn(
        settings_of("deep-sigmoid", activation="tanh"), 100, until=lambda x: x.figures.test_error < 0.05
    )
    assert tanh.figures.test_error < 0.05


def test_lessons_set_what_they_speak_of():
    """Words of the questions that depend on settings."""
    assert settings_of("zeros").hidden == (Layer(4),)
    assert len(settings_of("penalty").inputs) == 7
    assert len(settings_of("deep-sigmoid").hidden) == 6
    assert LESSONS["deep-sigmoid"].epochs == 100
    assert settings_of("dead-relu").learning_rate == settings_of("large-rate").learning_rate == 1
    assert settings_of("straight-line").hidden == settings_of("features-or-depth").hidden == ()
