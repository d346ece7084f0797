"""What is inside a network, and the answers that a page waits for."""

from __future__ import annotations

import json
import logging
import re
import struct
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import needle as ndl
import viz
from playground.results import inside
from playground.results.inside import loss_surface
from playground.results.moving import as_gif
from playground.server.answers import ANSWERS, _worker, answer
from playground.server.runs import Viewer
from playground.training import network
from playground.training.settings import Layer, Settings
from playground.training.trainer import MOST_CHANGES, Trainer


def learn(epochs=3, **settings):
    trainer = Trainer(Settings(**{"points": 50, "hidden": (3, 2), **settings}))
    for _ in range(epochs):
        trainer.epoch()
    return trainer


@pytest.fixture
def drawn(monkeypatch):
    """What was drawn, as SVG."""
    pictures = []

    def watched(draw):
        def drawing(*args, **kwargs):
            picture = draw(*args, **kwargs)
            pictures.append(picture.svg())
            return picture

        return drawing

    for name in ("draw", "draw_gradient"):
        monkeypatch.setattr(viz, name, watched(getattr(viz, name)))
    return pictures


@pytest.fixture(scope="module")
def trainer():
    return learn()


def ask(what, trainer):
    """The answer as a page gets it: a header and its arrays."""
    sent = []
    answer(what, 7, trainer, Viewer(sent.append))
    _worker.submit(lambda: None).result(timeout=60)  # it makes one answer after the other
    (data,) = sent
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    arrays = {}
    at = 4 + length
    for name, kind, shape in header.pop("arrays"):
        arrays[name] = np.frombuffer(data, {"f4": "<f4", "u1": "u1"}[kind], int(np.prod(shape)), at)
        arrays[name] = arrays[name].reshape(shape)
        at += arrays[name].nbytes + -arrays[name].nbytes % 4
    assert header.pop("kind") == "answer"
    assert header.pop("id") == 7
    return header, arrays


@pytest.mark.parametrize("what", ["forward", "gradient"])
def test_the_graphs_have_the_names_of_the_network(what, trainer, drawn):
    inside.ANSWERS[what](trainer, trainer.learner.step)
    (svg,) = drawn
    for name in ("x", "y", "W1", "b1", "W2", "b2", "W3", "b3"):
        assert re.search(rf"\b{name}\b", svg), name
    if what == "forward":
        for title in ("Layer 1 (tanh)", "Layer 2 (tanh)", "Output (tanh)", "Loss"):
            assert title in svg


def test_groups_are_called_by_their_activation(drawn):
    trainer = learn(1, hidden=(Layer(3, "relu", 0.2, "batchnorm"), Layer(2, "sigmoid")), dataset="plane")
    inside.ANSWERS["forward"](trainer, trainer.learner.step)
    for title in ("Layer 1 (ReLU)", "Layer 2 (sigmoid)", "Output (linear)"):
        assert title in drawn[0]


def test_steps_leave_the_network_alone(trainer):
    before = [p.numpy().copy() for p in trainer.model.parameters()]
    html = inside.ANSWERS["steps"](trainer, trainer.learner.step)["html"]
    assert "W1" in html
    for p, old in zip(trainer.model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), old)


def test_the_steps_of_the_deepest_network_can_be_walked():
    trainer = Trainer(Settings(hidden=(Layer(4, "relu", 0.2, "layernorm"),) * 8, points=30))
    assert "html" in inside.ANSWERS["steps"](trainer, trainer.learner.step)


def test_nothing_is_compiled_yet():
    trainer = learn(0)
    error = inside.ANSWERS["program"](trainer, trainer.learner.step)["error"]
    assert error == "Nothing is compiled yet. Switch on “Compiled”, and play for a moment."
    assert inside.ANSWERS["passes"](trainer, trainer.learner.step)["error"] == error


def test_the_program():
    trainer = learn(0)
    step = ndl.jit(trainer.learner.step.function, debug=True)
    step(*[batch[0].detach() for batch in trainer._batches(np.arange(10), 1)])
    html = inside.ANSWERS["program"](trainer, step)["html"]
    assert "operators became" in html
    assert "def " in html
    passes = inside.ANSWERS["passes"](trainer, step)["html"]
    assert "for i in range(10):" in passes
    assert "<ins>" in passes


def test_the_program_without_loops(monkeypatch):
    """On `cpu_numpy`, the page shows the lines of NumPy."""
    monkeypatch.setattr(network, "cpu", ndl.cpu_numpy)
    trainer = learn(0)
    step = ndl.jit(trainer.learner.step.function)
    step(*[batch[0].detach() for batch in trainer._batches(np.arange(10), 1)])
    html = inside.ANSWERS["program"](trainer, step)["html"]
    assert "lines of NumPy" in html
    assert "np.tanh(" in html
    assert "np.tanh(" in inside.ANSWERS["passes"](trainer, step)["html"]


# ---- the surface of the loss -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{}, {"hidden": (Layer(4, "relu", 0.3, "batchnorm"),)}, {"dataset": "plane"}]
)
def test_the_path_ends_at_the_loss_of_now(settings):
    trainer = learn(6, **settings)
    before = [p.numpy().copy() for p in trainer.model.parameters()]
    xs, ys, losses, path = loss_surface(trainer)
    assert losses.shape == (len(ys), len(xs))
    np.testing.assert_array_equal(path[-1], [0, 0])
    assert len(path) == len(trainer.moments.items()) + 1
    for column, along in zip(path.T, (xs, ys), strict=True):
        assert along[0] < column.min()
        assert column.max() < along[-1]
        assert (np.diff(along) > 0).all()
    for p, old in zip(trainer.model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), old)
    # Between the four places around the end of the path, the surface is about the loss of now, …
    column, row = np.searchsorted(xs, 0), np.searchsorted(ys, 0)
    around = losses[row - 1 : row + 1, column - 1 : column + 1]
    slack = np.ptp(around) + 1e-3
    assert around.min() - slack <= trainer.figures.train_loss <= around.max() + slack
    # … and at each place it is the loss with these weights.
    flat = np.concatenate([old.ravel() for old in before])
    walked = [np.concatenate([state["model"][name].numpy().ravel() for name,
    _ in trainer.model.named_parameters()])
              for _, state in trainer.moments.items()]  # fmt: skip
    first, second = np.linalg.svd(np.array(walked, float) - flat, full_matrices=False)[2][:2]
    moved = (flat + xs[3] * first + ys[20] * second).astype("f4")
    at = 0
    for p, old in zip(trainer.model.parameters(), before, strict=True):
        p.data = ndl.Tensor(
            moved[at : at + old.size].reshape(old.shape), dtype="float32", requires_grad=False
        )
        at += old.size
    points, labels = trainer.train
    expected = np.mean((trainer.predict(points) - labels) ** 2) / 2
    assert losses[20, 3] == pytest.approx(expected, rel=1e-5)


def test_the_end_of_the_path_is_the_loss_of_now_exactly(monkeypatch):
    """On a grid that has (0, 0) among its places."""
    trainer = learn(4)
    monkeypatch.setattr(np, "linspace", lambda low, high, count: np.array([low, 0.0, high]))
    monkeypatch.setattr(inside, "_SIDE", 3)
    assert loss_surface(trainer)[2][1, 1] == pytest.approx(trainer.figures.train_loss, rel=1e-6)


def test_there_is_no_path_yet():
    for trainer in (learn(0), learn(1)):
        assert "no path yet" in inside.ANSWERS["surface"](trainer, trainer.learner.step)["error"]


# ---- answers -----------------------------------------------------------------------------------------------


def test_an_answer_is_about_the_moment_of_its_question():
    trainer = learn(3)
    header, arrays = ask("surface", trainer)
    assert set(header) == {"axes"}
    assert arrays["loss"].shape == (25, 25)
    np.testing.assert_array_equal(arrays["path"][-1], [0, 0])
    assert len(header["axes"]["xs"]) == 25
    for what, kind, suffix in (("weights", "octet", "safetensors"), ("script", "python", "py")):
        header, arrays = ask(what, trainer)
        assert header["name"] == f"needle-circle-3.{suffix}"
        assert kind in header["mime"]
        assert arrays["file"].dtype == np.uint8
    assert b"needle playground" in ask("script", trainer)[1]["file"].tobytes()


@pytest.mark.parametrize("what", [what for what in ANSWERS if what != "steps"])
def test_an_empty_plane_has_answers(what, caplog):
    header, _ = ask(what, Trainer(Settings(dataset="own", hidden=(2,))))
    assert header
    if what in ("forward", "gradient", "gif"):
        assert "something went wrong" not in header.get("error", "")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR], caplog.text


def test_too_many_changes_are_told_in_a_sentence():
    trainer = learn(1)
    trainer.changes = [(0, "batch_size", 5)] * (MOST_CHANGES + 1)
    header, _ = ask("script", trainer)
    assert header["error"].startswith("This run was changed by hand more than 500 times")


def test_a_failure_is_logged_and_told(monkeypatch, caplog):
    monkeypatch.setitem(ANSWERS, "gif", lambda trainer, step: 1 / 0)
    said = "Something went wrong, so this can't be shown. Try again."
    assert ask("gif", learn(0))[0] == {"error": said}
    assert "ZeroDivisionError" in caplog.text


# ---- the moving picture ------------------------------------------------------------------------------------


def test_the_gif_has_a_frame_for_each_moment():
    trainer = learn(4, noise=0.2)
    trainer.travel(2)
    trainer.travel(None)
    image = Image.open(BytesIO(as_gif(trainer.copy())))
    assert (image.format, image.size, image.n_frames) == ("GIF", (320, 320), 5)
    assert image.info["loop"] == 0
    image.seek(4)
    assert image.info["duration"] == 2000
    shades = np.asarray(image.convert("RGB")).astype(int)
    blue = shades[..., 2] - shades[..., 0]  # +1 is blue, -1 orange
    low, high = -6, 6
    along = np.linspace(low, high, 320)
    places = np.array([[x1, x2] for x2 in along[::-1][::40] for x1 in along[::40]])
    outputs = trainer.predict(places)
    clear = np.abs(outputs) > 0.4
    agrees = (blue[::40, ::40].ravel() > 0) == (outputs > 0)
    assert agrees[clear].mean() > 0.9
