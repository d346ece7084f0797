"""The app without a browser: every control, playing, and what is said about values that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import viz
from playground import pictures

APP = Path(__file__).parents[2] / "app.py"


def start(**address):
    app = AppTest.from_file(str(APP), default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    return run(app)


def run(app):
    app.run()
    assert not app.exception
    return app


@pytest.fixture
def app():
    return start()


def trainer(app):
    return app.session_state.trainer


def messages(app):
    """What is said to be wrong, as it is read: without the signs that keep it from being Markdown."""
    return [re.sub(r"\\(.)", r"\1", error.value) for error in app.error]


CONTROLS = {
    "dataset": lambda app: app.pills(key="dataset").select("xor"),
    "noise": lambda app: app.slider(key="noise").set_value(0.25),
    "points": lambda app: app.number_input(key="points").set_value(120),
    "train_share": lambda app: app.slider(key="train_share").set_value(0.8),
    "hidden": lambda app: app.text_input(key="hidden").set_value("6 3"),
    "activation": lambda app: app.segmented_control(key="activation").select("relu"),
    "learning_rate": lambda app: app.selectbox(key="learning_rate").select("0.3"),
    "batch_size": lambda app: app.number_input(key="batch_size").set_value(7),
    "seed": lambda app: app.number_input(key="seed").set_value(42),
}
CHOSEN = {
    "dataset": "xor",
    "noise": 0.25,
    "points": 120,
    "train_share": 0.8,
    "hidden": (6, 3),
    "activation": "relu",
    "learning_rate": 0.3,
    "batch_size": 7,
    "seed": 42,
}


def test_all_controls_reach_the_trainer_and_the_address(app):
    for change in CONTROLS.values():
        change(app)
    run(app)
    assert {name: getattr(trainer(app).settings, name) for name in CONTROLS} == CHOSEN
    assert set(app.query_params) == set(CONTROLS)
    assert not messages(app)


SOON = ("dataset", "learning_rate")  # a new trainer, and the trainer as it is


@pytest.mark.parametrize(
    "name", [name if name in SOON else pytest.param(name, marks=pytest.mark.slow) for name in CONTROLS]
)
def test_every_control_reaches_the_trainer_and_the_address(app, name):
    before = trainer(app)
    CONTROLS[name](app)
    run(app)
    assert getattr(trainer(app).settings, name) == CHOSEN[name]
    assert list(app.query_params) == [name]
    kept = name in ("learning_rate", "batch_size")
    assert (trainer(app) is before) == kept
    assert not messages(app)


def test_the_optimiser_is_offered(app):
    assert app.selectbox(key="optimiser").options == ["SGD"]
    assert trainer(app).settings.optimiser == "SGD"


def test_the_address_sets_the_controls():
    app = start(dataset="spiral", hidden="8-8", learning_rate="0.05", seed="3", noise="0.1")
    settings = trainer(app).settings
    assert (settings.dataset, settings.hidden, settings.learning_rate) == ("spiral", (8, 8), 0.05)
    assert app.text_input(key="hidden").value == "8, 8"
    assert app.selectbox(key="learning_rate").value == "0.05"
    assert app.slider(key="noise").value == 0.1
    assert not messages(app)


UNUSABLE = [
    ("noise", "banana", "The noise must be a number"),
    ("points", "1e99", "The number of points must be a whole number"),
    ("dataset", "<script>", "The dataset must be one of"),
    ("hidden", "999", "The hidden layers must be"),
    ("seed", "-5", "The seed must be"),
    ("learning_rate", "nan", "The learning rate must be"),
    ("optimiser", "magic", "The optimiser must be one of SGD"),
]


def test_of_an_address_all_that_cannot_be_used_is_told():
    app = start(**{name: value for name, value, _ in UNUSABLE}, batch_size="20")
    found = messages(app)
    for _, _, said in UNUSABLE:
        assert any(said in message for message in found), found
    settings = trainer(app).settings
    assert settings == type(settings)(batch_size=20)
    assert list(app.query_params) == ["batch_size"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [UNUSABLE[0], *[pytest.param(*case, marks=pytest.mark.slow) for case in UNUSABLE[1:]]],
)
def test_an_address_that_cannot_be_used_is_told_and_gives_the_default(name, value, said):
    app = start(**{name: value, "batch_size": "20"})
    (message,) = messages(app)
    assert said in message
    assert message.startswith("In the page's address:")
    settings = trainer(app).settings
    assert getattr(settings, name) == getattr(type(settings)(), name)
    assert settings.batch_size == 20
    assert list(app.query_params) == ["batch_size"]
    assert not messages(run(app))


BAD_VALUES = {
    "no points": (lambda app: app.number_input(key="points").set_value(0), "The number of points must be"),
    "too many points": (lambda app: app.number_input(key="points").set_value(10**9), "from 10 to 5,000"),
    "negative seed": (lambda app: app.number_input(key="seed").set_value(-1), "The seed must be"),
    "empty batch": (lambda app: app.number_input(key="batch_size").set_value(0), "The batch size must be"),
    "words as layers": (lambda app: app.text_input(key="hidden").set_value("four"), 'not "four"'),
    "endless layers": (
        lambda app: app.text_input(key="hidden").set_value("8 " * 500),
        "at most 8 whole numbers",
    ),
}


@pytest.mark.parametrize(
    "case",
    [
        case if case in ("too many points", "words as layers") else pytest.param(case, marks=pytest.mark.slow)
        for case in BAD_VALUES
    ],
)
def test_a_value_that_cannot_be_used_is_told_and_the_last_network_stays(app, case):
    spoil, said = BAD_VALUES[case]
    before = trainer(app)
    spoil(app)
    run(app)
    (message,) = messages(app)
    assert said in message
    assert trainer(app) is before
    assert app.button(key="play").disabled
    assert not app.query_params


def test_play_pause_step_and_reset(app):
    assert app.button(key="play").label == "Play"
    assert trainer(app).steps == 0

    app.button(key="play").click()
    run(app)
    assert app.button(key="play").label == "Pause"
    assert trainer(app).steps > 0

    app.button(key="play").click()
    run(app)
    assert app.button(key="play").label == "Play"
    steps = trainer(app).steps
    assert trainer(run(app)).steps == steps

    epochs = trainer(app).epochs
    app.button(key="step").click()
    run(app)
    assert trainer(app).epochs == epochs + 1
    assert not app.session_state.playing

    app.button(key="reset").click()
    run(app)
    assert trainer(app).steps == 0


def test_a_change_while_playing_plays_on(app):
    app.button(key="play").click()
    run(app)
    app.pills(key="dataset").select("gaussian")
    run(app)
    assert app.button(key="play").label == "Pause"
    assert trainer(app).settings.dataset == "gaussian"
    assert trainer(app).steps > 0


def test_training_that_cannot_go_on_is_told_and_pauses():
    app = start(hidden="8-8-8", activation="relu", learning_rate="100")
    app.button(key="play").click()
    for _ in range(100):
        run(app)
        if trainer(app).trouble:
            break
    assert messages(run(app)) == [trainer(app).trouble]
    assert app.button(key="play").label == "Play"
    assert app.button(key="play").disabled
    assert app.button(key="step").disabled
    app.button(key="reset").click()
    run(app)
    assert not messages(app)
    assert not app.button(key="play").disabled


def test_text_of_the_address_is_no_markdown():
    (error,) = start(dataset="[a](//b.c)").error
    assert r"\[a\]\(//b\.c\)" in error.value


def test_why_there_is_no_picture_is_no_markdown(app, monkeypatch):
    def show(*_, **__):
        raise viz.CannotRender("no [dot](//b.c)")

    monkeypatch.setattr(pictures, "show", show)
    app.segmented_control(key="graph_kind").select("computational")
    (warning,) = run(app).warning
    assert warning.value == r"no \[dot\]\(//b\.c\)"


@pytest.mark.parametrize("kind", [pytest.param("computational", marks=pytest.mark.slow), "gradient"])
def test_the_graphs_are_drawn_when_asked_for(app, kind):
    assert "drawn" not in app.session_state
    app.segmented_control(key="graph_kind").select(kind)
    run(app)
    drawn = app.session_state.drawn
    assert drawn.kind == kind
    assert "W1" in drawn.drawing.svg()
    assert "tanh" in drawn.drawing.svg()
    assert app.caption[0].value.startswith("After epoch 0,")
    assert run(app).session_state.drawn is drawn

    app.button(key="step").click()
    run(app)
    app.button(key="graph_again").click()
    run(app)
    assert app.caption[0].value.startswith("After epoch 1,")
    assert app.session_state.drawn.drawing.source != drawn.drawing.source
