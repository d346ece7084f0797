"""Settings: their defaults, their form as text, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.data import toy
from playground.settings import ACTIVATIONS, LIMITS, MAX_LAYERS, OPTIMISERS, Settings, SettingsError


def numbers(name):
    low, high = LIMITS[name]
    return st.integers(low, high) if isinstance(low, int) else st.floats(low, high)


usable = st.builds(
    Settings,
    dataset=st.sampled_from(sorted(toy.DATASETS)),
    hidden=st.lists(numbers("hidden"), max_size=MAX_LAYERS).map(tuple),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    optimiser=st.sampled_from(sorted(OPTIMISERS)),
    **{name: numbers(name) for name in LIMITS if name != "hidden"},
)


@given(usable)
def test_text_and_back(settings):
    assert Settings.from_text(settings.to_text()) == settings


def test_only_what_differs_becomes_text():
    assert Settings().to_text() == {}
    changed = Settings(dataset="xor", hidden=(), noise=0.1)
    assert changed.to_text() == {"dataset": "xor", "hidden": "", "noise": "0.1"}


@pytest.mark.parametrize(
    ("text", "hidden"),
    [("4-2", (4, 2)), ("4, 2", (4, 2)), (" 8  8 8 ", (8, 8, 8)), ("3", (3,)), ("", ()), ("  ", ())],
)
def test_hidden_layers_are_read_with_any_separator(text, hidden):
    assert Settings.from_text({"hidden": text}).hidden == hidden


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("dataset", "ring", 'The dataset must be one of circle, xor, .* not "ring"'),
        ("dataset", "", 'The dataset must be one of .* not ""'),
        ("activation", "swish", "The activation must be one of tanh, relu, sigmoid, linear"),
        ("optimiser", "Adam", "The optimiser must be one of SGD"),
        ("noise", "much", 'The noise must be a number from 0 to 0.5, not "much"'),
        ("noise", "nan", "The noise must be a number"),
        ("noise", "-0.1", "The noise must be a number"),
        ("points", "1e3", "The number of points must be a whole number from 10 to 5,000"),
        ("points", "9", "The number of points must be"),
        ("points", "999999999999", "The number of points must be"),
        ("train_share", "1", "The share to learn from must be a number from 0.1 to 0.9"),
        ("learning_rate", "0", "The learning rate must be a number from 1e-06 to 100"),
        ("learning_rate", "inf", "The learning rate must be"),
        ("learning_rate", "", 'The learning rate must be .* not ""'),
        ("batch_size", "0", "The batch size must be a whole number from 1 to 5,000"),
        ("batch_size", "None", "The batch size must be"),
        ("seed", "-1", "The seed must be a whole number from 0 to 4,294,967,295"),
        ("hidden", "banana", "at most 8 whole numbers from 1 to 32, such as 4, 2"),
        ("hidden", "4.5", "The hidden layers must be"),
        ("hidden", "-4", "The hidden layers must be"),
        ("hidden", "0", "The hidden layers must be"),
        ("hidden", "33", "The hidden layers must be"),
        ("hidden", "1 " * 9, "The hidden layers must be"),
        ("hidden", "9" * 5000, "The hidden layers must be .{80,140}…"),
    ],
)
def test_text_that_cannot_be_used(name, text, message):
    with pytest.raises(SettingsError, match=message) as raised:
        Settings.from_text({name: text})
    assert list(raised.value.problems) == [name]


def test_every_problem_is_told_at_once():
    with pytest.raises(SettingsError) as raised:
        Settings.from_text({"noise": "banana", "points": "3", "seed": "7"})
    assert set(raised.value.problems) == {"noise", "points"}
    assert all(sentence in str(raised.value) for sentence in raised.value.problems.values())


def test_unknown_names_are_ignored():
    assert Settings.from_text({"embed": "true"}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("points", 500.0),
        ("points", True),
        ("points", "500"),
        ("points", 10**400),
        ("noise", None),
        ("noise", float("nan")),
        ("dataset", ["circle"]),
        ("hidden", [4, 2]),
        ("hidden", (4, 2.5)),
        ("hidden", 4),
    ],
)
def test_values_of_the_wrong_kind(name, value):
    with pytest.raises(SettingsError) as raised:
        Settings(**{name: value})
    assert list(raised.value.problems) == [name]


def test_numpy_numbers_are_numbers():
    assert Settings(points=np.int64(100), noise=np.float32(0.25)).points == 100
