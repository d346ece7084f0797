"""Settings: their defaults, their form in the address, and what they refuse, one sentence each."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from needle.data import toy
from playground.server.messages import _query
from playground.training.lessons import LESSONS
from playground.training.points import Point
from playground.training.settings import (
    ACTIVATIONS,
    FIELDS,
    INITIALISATIONS,
    LIVE,
    MAX_LAYERS,
    MAX_NEURONS,
    NORMALISATIONS,
    OPTIMISERS,
    SCHEDULES,
    VIEW,
    Layer,
    Settings,
    SettingsError,
)

DATASETS = [*toy.DATASETS, *toy.REGRESSION, "own"]
INPUTS = ["x1", "x2", "x1**2", "x2**2", "x1*x2", "sin(x1)", "sin(x2)", "maximum(x1, abs(x2))", "x1*0.5 + x2"]
HIDEABLE = ["play", "seed", "learning_rate", "take_home", "look_inside", "dataset"]


def numbers(name):
    field = FIELDS[name]
    return st.integers(field.low, field.high) if field.is_whole else st.floats(field.low, field.high)


def choices(name):
    return st.sampled_from(FIELDS[name].choices)


def digits(low, high):
    """Numbers with four digits after the point, as painted points have."""
    return st.integers(low * 10_000, high * 10_000).map(lambda x: x / 10_000)


layers = st.builds(
    Layer,
    st.integers(1, MAX_NEURONS),
    st.sampled_from(["", *ACTIVATIONS]),
    st.floats(0, 0.9),
    st.sampled_from(["", *NORMALISATIONS]),
)
usable = st.builds(
    Settings,
    own=st.lists(st.builds(Point, digits(-6, 6), digits(-6, 6), digits(-1, 1)), max_size=5).map(tuple),
    inputs=st.lists(st.sampled_from(INPUTS), min_size=1, max_size=5, unique=True).map(tuple),
    hidden=st.lists(layers, max_size=MAX_LAYERS).map(tuple),
    hide=st.lists(st.sampled_from(HIDEABLE), max_size=4, unique=True).map(tuple),
    **{name: numbers(name) for name, field in FIELDS.items() if field.kind == "number"},
    **{name: choices(name) for name, field in FIELDS.items() if field.kind == "choice"},
    **{name: st.booleans() for name, field in FIELDS.items() if field.kind == "switch"},
)


@given(usable, usable)
@hypothesis_settings(max_examples=25)
def test_text_and_back(settings, other):
    texts = settings.to_text()
    assert Settings().changed(texts) == (settings, [])
    every = {name: field.write(getattr(settings, name)) for name, field in FIELDS.items()}
    assert other.changed(every) == (settings, [])


@given(usable)
@hypothesis_settings(max_examples=25)
def test_the_address_and_back(settings):
    address = _query(settings.to_text())
    assert re.fullmatch(r"[!-~]*", address)
    assert dict(parse_qsl(address.removeprefix("?"), keep_blank_values=True)) == settings.to_text()


def test_the_address_is_readable():
    settings, problems = Settings().changed(
        {
            "dataset": "spiral",
            "noise": "0.15",
            "hidden": "8:relu:dropout0.2-4:batchnorm",
            "inputs": "x1,x2,x1**2,x1*x2,sin(x1)",
            "own": "1,2,1_-3.5,0.25,-1",
            "learning_rate": "0.00001",
            "hide": "play,seed",
            "test_points": "on",
        }
    )
    assert not problems
    address = _query(settings.to_text())
    assert address == (
        "?dataset=spiral&noise=0.15&own=1,2,1_-3.5,0.25,-1&inputs=x1,x2,x1**2,x1*x2,sin(x1)"
        "&hidden=8:relu:dropout0.2-4:batchnorm&learning_rate=0.00001&test_points=on&hide=play,seed"
    )


@pytest.mark.parametrize("name", LESSONS)
def test_the_addresses_of_lessons_are_readable(name):
    assert "%" not in _query({**LESSONS[name].settings, "lesson": name})


# TensorFlow Playground's, from its state.ts; there, the noise and the training share count in per cent.
TENSORFLOW = {
    "dataset": "circle",
    "noise": 0.0,
    "train_share": 0.5,
    "inputs": ("x1", "x2"),
    "hidden": (Layer(4), Layer(2)),
    "activation": "tanh",
    "learning_rate": 0.03,
    "batch_size": 10,
    "regularisation": "none",
    "regularisation_rate": 0.0,
    "test_points": False,
    "discretise": False,
    "hide": (),
}


def test_the_defaults_are_those_of_tensorflow_playground():
    assert {name: getattr(Settings(), name) for name in TENSORFLOW} == TENSORFLOW
    assert Settings().to_text() == {}


def test_each_field_has_a_setting_and_words():
    assert list(FIELDS) == list(Settings.__dataclass_fields__)
    for name, field in FIELDS.items():
        page = field.for_page()
        assert page["kind"] in ("choice", "number", "switch", "list")
        assert page["label"]
        assert page["help"].endswith(".") or name == "log_loss", page["help"]
        field.check(getattr(Settings(), name))
        assert set(page["words"]) <= set(page.get("choices", []))
        for text in page.get("offers", []):
            field.read(text)
    assert set(FIELDS) >= LIVE | VIEW
    assert not LIVE & VIEW


READ = [
    *[("dataset", name, name) for name in DATASETS],
    *[("activation", name, name) for name in ACTIVATIONS],
    *[("optimiser", name, name) for name in OPTIMISERS],
    *[("initialisation", name, name) for name in INITIALISATIONS],
    *[("schedule", name, name) for name in SCHEDULES],
    *[("lesson", name, name) for name in ("none", *LESSONS)],
    *[("regularisation", name, name) for name in ("none", "l1", "l2")],
    *[("pace", name, name) for name in ("fastest", "60", "10", "1")],
    *[(name, "on", True) for name, field in FIELDS.items() if field.kind == "switch"],
    *[(name, "off", False) for name, field in FIELDS.items() if field.kind == "switch"],
    ("dataset", " XOR ", "xor"),
    ("noise", "0.25", 0.25),
    ("noise", ".5", 0.5),
    ("noise", "1e-3", 0.001),
    ("learning_rate", "3", 3.0),
    ("learning_rate", "0.00000123456789012345678", 1.2345678901234567e-06),
    ("regularisation_rate", "0", 0.0),
    ("points", " 120 ", 120),
    ("period", "100000", 100_000),
    ("batch_size", "1", 1),
    ("train_share", "0.9", 0.9),
    ("seed", "4294967295", 2**32 - 1),
    ("own", "", ()),
    ("own", "1,2,1_-3,0.5,-1", (Point(1, 2, 1), Point(-3, 0.5, -1))),
    ("own", "1.23456789,-6,0.5", (Point(1.2346, -6, 0.5),)),
    ("inputs", "x1", ("x1",)),
    ("inputs", " x1 , sin(x1) ", ("x1", "sin(x1)")),
    ("inputs", "maximum(x1,minimum(x2,abs(x1))),x2", ("maximum(x1,minimum(x2,abs(x1)))", "x2")),
    ("hidden", "", ()),
    ("hidden", "  ", ()),
    ("hidden", "4-2", (Layer(4), Layer(2))),
    ("hidden", "4, 2", (Layer(4), Layer(2))),
    ("hidden", " 8  8;8×8 ", (Layer(8),) * 4),
    ("hidden", "8:relu:dropout0.2:batchnorm", (Layer(8, "relu", 0.2, "batchnorm"),)),
    ("hidden", "8:layernorm:tanh-1", (Layer(8, "tanh", 0.0, "layernorm"), Layer(1))),
    ("hidden", "4:dropout0.123456789", (Layer(4, "", 0.123456789),)),
    ("hidden", "4:dropout0.00001", (Layer(4, "", 0.00001),)),
    ("hide", "play, seed play", ("play", "seed")),
    ("hide", "loss,epoch,lessons,look_inside", ("loss", "epoch", "lessons", "look_inside")),
    ("inputs", "x1^2,2^x2", ("x1**2", "2**x2")),
]


@pytest.mark.parametrize(("name", "text", "value"), READ)
def test_a_value_is_read_and_written(name, text, value):
    settings, problems = Settings().changed({name: text})
    assert not problems
    assert getattr(settings, name) == value
    assert Settings().changed(settings.to_text()) == (settings, [])


ABSURD = [
    ("dataset", "ring", r"Data set must be one of circle, xor, .*, own, not “ring”\."),
    ("dataset", "", "Data set must be one of .* not “”"),
    ("activation", "swish", "Activation must be one of tanh, relu, sigmoid, linear, not “swish”"),
    ("optimiser", "magic", "Optimiser must be one of sgd, momentum, adam, rmsprop, not"),
    ("initialisation", "ones", "First weights must be one of glorot, kaiming, uniform, zeros, not"),
    ("schedule", "never", "Schedule must be one of constant, steps, cosine, warm-up, not"),
    ("regularisation", "l3", "Regularisation must be one of none, l1, l2, not “l3”"),
    ("pace", "2", "Pace must be one of fastest, 60, 10, 1, not “2”"),
    ("lesson", "__class__", "Lesson must be one of none, .* not “__class__”"),
    ("noise", "much", r"Noise must be a number from 0 to 0.5 \(0 % to 50 %\), not “much”"),
    ("noise", "nan", "Noise must be a number from"),
    ("noise", "-0.1", "Noise must be a number from"),
    ("noise", "0x1", "Noise must be a number from"),
    ("noise", "1_0", "Noise must be a number from"),
    ("noise", "٣", "Noise must be a number from"),
    ("noise", "1e-9999", "Noise must be a number from"),
    ("points", "1e3", "Points must be a whole number from 10 to 5,000, not “1e3”"),
    ("points", "9", "Points must be a whole number"),
    ("points", "999999999999", "Points must be a whole number"),
    ("points", "9" * 5000, r"Points must be a whole number from 10 to 5,000, not “9{29}…”\."),
    ("points", "²", "Points must be a whole number"),
    ("train_share", "1", "Training share must be a number from 0.1 to 0.9"),
    ("train_share", "0", "Training share must be a number"),
    ("learning_rate", "0", "Learning rate must be a number from 0.000001 to 100"),
    ("learning_rate", "inf", "Learning rate must be"),
    ("learning_rate", "1e999", "Learning rate must be"),
    ("learning_rate", "", "Learning rate must be .* not “”"),
    ("regularisation_rate", "-1", "Penalty rate must be a number from 0 to 10"),
    ("period", "0", "Rate's period must be a whole number from 1 to 100,000"),
    ("batch_size", "0", "Batch size must be a whole number from 1 to 5,000"),
    ("batch_size", "None", "Batch size must be"),
    ("seed", "-1", "Data seed must be a whole number from 0 to 4,294,967,295"),
    ("weights_seed", "1.5", "Weights seed must be a whole number from 0 to 4,294,967,295, not “1.5”"),
    ("compiled", "yes", "Compiled must be on or off, not “yes”"),
    ("test_points", "true", "Show test points must be on or off"),
    ("discretise", "1", "Discretise must be on or off"),
    ("log_loss", "", "log must be on or off"),
    ("hidden", "banana", "Hidden layers must be at most 8 layers of 1 to 32 neurons, such as 4-2 or"),
    ("hidden", "4.5", "Hidden layers must be"),
    ("hidden", "0", "Hidden layers must be"),
    ("hidden", "33", "Hidden layers must be"),
    ("hidden", "1 " * 9, "Hidden layers must be"),
    ("hidden", "9" * 5000, "Hidden layers must be .*…”"),
    ("hidden", "4:swish", "Hidden layers must be"),
    ("hidden", "4:dropout1", "Hidden layers must be"),
    ("hidden", "4:dropout-1", "Hidden layers must be"),
    ("hidden", "4:dropoutnan", "Hidden layers must be"),
    ("hidden", ":", "Hidden layers must be"),
    ("own", "1,2", "Your points must be at most 5,000 points such as 1,2,1"),
    ("own", "7,0,1", "Your points must be"),
    ("own", "1,1,2", "Your points must be"),
    ("own", "nan,0,1", "Your points must be"),
    ("own", "1e99,0,1", "Your points must be"),
    ("own", "1,2,1_" * 5001, "Your points must be"),
    ("inputs", "", "Inputs must be 1 to 12 different expressions of x1 and x2|Inputs: "),
    ("inputs", "x1,x1", "Inputs must be 1 to 12 different expressions of x1 and x2"),
    ("inputs", "x1," * 500, "Inputs must be 1 to 12"),
    ("inputs", ",".join(f"x1+{i}" for i in range(13)), "Inputs must be 1 to 12"),
    ("inputs", "x1" * 1_000_000, "Inputs must be 1 to 12"),
    ("inputs", "x1,mean(x1)", r"Inputs: in “mean\(x1\)”, use x1, x2, numbers"),
    ("inputs", "1/x1", "Inputs: “1/x1” has no finite value at x1 = 0"),
    ("hide", "everything", "There is no control “everything” to hide.$"),
    ("hide", "own", "There is no control “own” to hide"),
    ("hide", "inside", r"There is no control “inside” to hide; did you mean “look_inside”\?"),
    ("hide", "x" * 5000, "There is no control “x{29}…” to hide.$"),
    ("embed", "true", "There is no setting “embed”."),
    ("learn_rate", "1", r"There is no setting “learn_rate”; did you mean “learning_rate”\?"),
    ("Batchsize", "1", r"There is no setting “Batchsize”; did you mean “batch_size”\?"),
    ("noise", "1e400", r"Noise must be .* not “1e400”\."),
    ("inputs", "sine(x1)", r"Inputs: in “sine\(x1\)”, there is no function sine; did you mean sin\?"),
    ("", "1", "There is no setting “”."),
    ("__class__", "1", "There is no setting “__class__”."),
    ("x" * 5000, "1", "There is no setting “x{29}…”."),
    ("\ud800", "\ud800", "There is no setting"),
]


@pytest.mark.parametrize(("name", "text", "said"), ABSURD, ids=lambda x: ascii(x)[:30])
def test_what_cannot_be_used_is_told_in_a_sentence_and_the_rest_is_kept(name, text, said):
    before = Settings(noise=0.25, hidden=(Layer(3),), own=(Point(1, 1, 1),), batch_size=7)
    kept = {"seed": "5"} if name != "seed" else {"points": "55"}
    settings, problems = before.changed({name: text, **kept})
    assert settings == before.changed(kept)[0]
    (problem,) = problems
    assert re.match(said, problem), problem
    assert problem.endswith((".", "?"))
    assert len(problem) < 400


def test_one_wrong_name_leaves_the_others_hidden():
    settings, problems = Settings().changed({"hide": "play,rezet,seed,nois"})
    assert settings.hide == ("play", "seed")
    assert problems == [
        "There is no control “rezet” to hide; did you mean “reset”? "
        "There is no control “nois” to hide; did you mean “noise”?"
    ]
    _, problems = Settings().changed({"hide": ",".join(f"no{i}thing" for i in range(99))})
    assert problems[0].count("There is no control") == 3


def test_every_problem_is_told_at_once():
    settings, problems = Settings().changed({"noise": "banana", "points": "3", "seed": "7", "foo": "bar"})
    assert settings == Settings(seed=7)
    assert [problem.split()[0] for problem in problems] == ["Noise", "Points", "There"]


@given(st.dictionaries(st.sampled_from([*FIELDS, "foo"]), st.text(max_size=20), max_size=5))
@hypothesis_settings(max_examples=50)
def test_whatever_the_address_says_there_are_settings(texts):
    settings, problems = Settings().changed(texts)
    assert len(problems) <= len(texts)
    assert Settings().changed(settings.to_text()) == (settings, [])


WRONG = [
    ("points", 500.0),
    ("points", True),
    ("points", "500"),
    ("points", 10**400),
    ("noise", None),
    ("noise", float("nan")),
    ("dataset", ["circle"]),
    ("dataset", "ring"),
    ("hidden", (Layer(4.5),)),
    ("hidden", (Layer(4, "swish"),)),
    ("hidden", (Layer(4, "", -0.1),)),
    ("inputs", ()),
    ("inputs", ("x1", "y")),
    ("own", (Point(7, 0, 1),)),
    ("own", (Point(0, 0, float("nan")),)),
    ("hide", ("everything",)),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=str)
def test_values_of_the_wrong_kind(name, value):
    with pytest.raises(SettingsError) as raised:
        Settings(**{name: value})
    assert list(raised.value.problems) == [name]
    assert str(raised.value) == raised.value.problems[name]


def test_numpy_numbers_are_numbers():
    assert Settings(points=np.int64(100), noise=np.float32(0.25)).to_text() == {
        "points": "100",
        "noise": "0.25",
    }


def test_plain_numbers_of_neurons_are_layers():
    assert Settings(hidden=[3, 2]).hidden == (Layer(3), Layer(2))
    assert Settings(hidden=()).hidden == ()


def test_what_differs():
    assert Settings(seed=1, noise=0.1).different_from(Settings(seed=1)) == ["noise"]
    assert Settings(activation="relu").activation_of(Layer(3)) == "relu"
    assert Settings(activation="relu").activation_of(Layer(3, "tanh")) == "tanh"
    assert Settings(dataset="plane").is_regression
    assert not Settings(dataset="own").is_regression


def test_own_points_with_other_labels_than_those_of_two_classes_are_numbers():
    classes = (Point(1, 2, -1), Point(2, 1, 1))
    assert not Settings(dataset="own", own=classes).is_regression
    assert Settings(dataset="own", own=(*classes, Point(0, 0, 0.25))).is_regression
    assert not Settings(own=(*classes, Point(0, 0, 0.25))).is_regression  # most points have classes
