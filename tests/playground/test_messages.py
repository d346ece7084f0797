"""What the server sends: a reader of the format finds in it what the trainer holds."""

from __future__ import annotations

import dataclasses
import json
import struct
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import numpy as np
import pytest

from needle import Tensor, cpu
from needle.data import toy
from playground.server import messages
from playground.server.messages import RESOLUTION, SHOWN_NEURONS, THUMBNAIL, pack
from playground.training import features
from playground.training.lessons import LESSONS
from playground.training.points import Point
from playground.training.settings import FIELDS, Layer, Settings
from playground.training.trainer import Trainer

#: The largest error of a number that is rounded to float16, as a share of it.
HALF = 2**-11


class Message(NamedTuple):
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def read(data: bytes) -> Message:
    """Take a message apart as its format says, and as strictly as a browser does."""
    (length,) = struct.unpack_from("<I", data)
    assert length % 4 == 0  # a Float32Array begins at a multiple of 4
    text = data[4 : 4 + length].decode()
    assert text.startswith("{")
    assert len(text) - len(text.rstrip(" ")) < 4
    header = json.loads(text, parse_constant=refuse)
    at, arrays = 4 + length, {}
    for name, kind, shape in header.pop("arrays"):
        dtype = np.dtype({"f2": "<f2", "f4": "<f4", "i1": "i1", "u1": "u1"}[kind])
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(data, dtype, count, at).reshape(shape)
        at += count * dtype.itemsize
        padding = -at % 4
        assert data[at : at + padding] == bytes(padding)
        at += padding
    assert at == len(data)
    return Message(header, arrays)


def picture(trainer, *args, **kwargs):
    return read(messages.picture(trainer, *args, **kwargs))


def scene(trainer, *args):
    return read(messages.scene(trainer, *args))


def lattice(resolution=RESOLUTION):
    """The places of the picture, row by row from the upper left corner, from edge to edge."""
    low, high = toy.DOMAIN
    along = np.linspace(low, high, resolution)
    return np.array([[x1, x2] for x2 in along[::-1] for x1 in along])


def middles():
    """The middles of 24 x 24 squares of the plane."""
    places = lattice().reshape(RESOLUTION, RESOLUTION, 2)[1::3, 1::3]
    return places.reshape(-1, 2)


def in_its_range(text):
    """An input's map: its values, where the largest size becomes 1."""
    values = features.evaluate(text, middles())
    return values / np.abs(values).max()


def assert_shades(shades, values):
    assert shades.dtype == np.int8
    np.testing.assert_allclose(shades / 127, np.clip(values, -1, 1), atol=0.5 / 127 + 1e-5)


# ---- the format --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", "a", "ab", "abc", "abcd", "ünï", "\ud800", '"\\', "\u2028"])
def test_a_header_of_any_length(word):
    arrays = {
        "bytes": np.arange(len(word) + 1, dtype=np.uint8),
        "none": np.empty((0, 3), np.float32),
        "shades": np.array([[-127, 0, 127]], np.int8),
        "turned": np.arange(6, dtype="f4").reshape(2, 3).T,
    }
    header, found = read(pack({"kind": "word", "word": word}, arrays))
    assert header == {"kind": "word", "word": word}
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)


def test_a_message_without_arrays():
    assert read(pack({"kind": "notice"})) == ({"kind": "notice"}, {})


def test_nothing_goes_out_that_a_browser_cannot_read():
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            pack({"value": value})


# ---- welcome -----------------------------------------------------------------------------------------------


def test_the_welcome_tells_what_the_page_is_built_from():
    header, arrays = read(messages.welcome("abc", "secret"))
    assert (header["kind"], header["run"]) == ("welcome", "abc")
    assert list(header["fields"]) == list(FIELDS)
    for name, field in header["fields"].items():
        assert field == json.loads(json.dumps(FIELDS[name].for_page()))
    assert header["regression"] == list(toy.REGRESSION)
    assert header["domain"] == [-6, 6]
    assert (header["resolution"], header["thumbnail"], header["shown"]) == (73, 24, 8)
    assert [lesson["name"] for lesson in header["lessons"]] == list(LESSONS)
    for lesson in header["lessons"]:
        texts = dict(parse_qsl(lesson["address"].removeprefix("?"), keep_blank_values=True))
        settings, problems = Settings().changed(texts)
        assert not problems
        assert settings.lesson == lesson["name"]
        assert len(lesson["prediction"]) >= 2
        assert lesson["question"].endswith("?")
    assert arrays["samples"].shape == (len(toy.DATASETS) + len(toy.REGRESSION), 110, 3)
    assert set(np.unique(arrays["samples"][: len(toy.DATASETS), :, 2])) == {-1, 1}
    assert np.abs(arrays["samples"][:, :, :2]).max() <= 6
    known = arrays["known_maps"]
    assert known.shape == (len(features.FEATURES), THUMBNAIL, THUMBNAIL)
    for text, shades in zip(features.FEATURES, known, strict=True):
        assert_shades(shades.ravel(), in_its_range(text))
    assert len(messages.welcome("abc", "secret")) < 60_000


# ---- scene -------------------------------------------------------------------------------------------------


def test_the_scene_tells_what_a_setting_changes():
    settings = Settings(
        dataset="plane",
        points=75,
        train_share=0.6,
        hidden=(Layer(12, "relu", 0.25, "batchnorm"), Layer(2)),
        inputs=("x1", "cos(x2)"),
        own=(Point(1, 2, 0.5), Point(-1, 2, -0.5)),
    )
    trainer = Trainer(settings)
    header, arrays = scene(trainer, ["A problem."])
    assert header["kind"] == "scene"
    assert header["problems"] == ["A problem."]
    assert header["settings"] == {name: FIELDS[name].write(getattr(settings, name)) for name in FIELDS}
    assert Settings().changed(header["settings"]) == (settings, [])
    assert header["address"] == (
        "?dataset=plane&points=75&train_share=0.6&own=1,2,0.5_-1,2,-0.5&inputs=x1,cos(x2)"
        "&hidden=12:relu:dropout0.25:batchnorm-2"
    )
    assert header["inputs"] == [{"text": "x1", "label": "x₁"}, {"text": "cos(x2)", "label": "cos(x2)"}]
    plain = {"dropout": 0, "normalisation": ""}
    assert header["layers"] == [
        {"neurons": 2, "title": "Inputs"},
        {
            "neurons": 12,
            "title": "Layer 1 (ReLU)",
            "activation": "relu",
            "own_activation": "relu",
            "dropout": 0.25,
            "normalisation": "batchnorm",
        },
        {"neurons": 2, "title": "Layer 2 (tanh)", "activation": "tanh", "own_activation": "", **plain},
        {"neurons": 1, "title": "Output (linear)"},
    ]
    assert header["is_regression"] is True
    assert header["most_moments"] == trainer.moments.capacity
    assert (header["train"], header["test"], header["own"]) == (46, 31, 2)
    for name, column in (("x1", 0), ("x2", 1)):
        points = np.concatenate([trainer.train[0], trainer.test[0]])[:, column]
        np.testing.assert_array_equal(arrays[name], points.astype("f4"))
    labels = np.concatenate([trainer.train[1], trainer.test[1]])
    np.testing.assert_array_equal(arrays["labels"], labels.astype("f4"))
    assert arrays["inputs_maps"].shape == (2, THUMBNAIL, THUMBNAIL)
    for text, shades in zip(settings.inputs, arrays["inputs_maps"], strict=True):
        assert_shades(shades.ravel(), in_its_range(text))


def test_an_input_that_is_0_everywhere_is_drawn_as_nothing():
    assert not scene(Trainer(Settings(inputs=("x1*0",), points=20)))[1]["inputs_maps"].any()


def test_the_address_of_the_defaults_is_empty():
    assert scene(Trainer())[0]["address"] == ""


def test_an_empty_plane():
    header, arrays = scene(Trainer(Settings(dataset="own", hidden=())))
    assert (header["train"], header["test"], header["own"]) == (0, 0, 0)
    assert arrays["x1"].shape == arrays["labels"].shape == (0,)
    header, arrays = picture(Trainer(Settings(dataset="own", hidden=())), False, watch=["histograms"])
    assert header["figures"] == dict.fromkeys(header["figures"])
    assert "no points" in header["trouble"]
    assert arrays["epochs"].shape == arrays["train"].shape == (0,)
    assert arrays["maps"].shape == (0, THUMBNAIL, THUMBNAIL)


def test_more_points_than_an_address_holds():
    points = tuple(Point(i / 1000, 0, 1) for i in range(1000))
    said = "The address can't hold so many points: take the run home to keep them."
    header, arrays = scene(Trainer(Settings(dataset="own", own=points)))
    assert header["address"] == "?dataset=own"
    assert (header["problems"], header["remark"]) == ([], said)
    assert header["own"] == len(arrays["x1"]) == 1000


# ---- picture -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [(), (4, 2), (12, 3)], ids=str)
def test_the_picture_is_the_network(hidden):
    trainer = Trainer(Settings(hidden=hidden, points=75, inputs=("x1", "x2", "x1*x2")))
    for _ in range(3):
        trainer.epoch()
    header, arrays = picture(trainer, True, "A hint.")
    assert header["figures"] == trainer.figures._asdict()
    del header["figures"]
    assert header == {
        "kind": "picture",
        "steps": trainer.steps,
        "epochs": 3,
        "playing": True,
        "trouble": None,
        "hint": "A hint.",
        "gone_after": None,
        "share": 0,
        "mode": "compiling",
        "rate": 0.03,
        "at": None,
        "look": None,
    }
    assert list(arrays) == [
        "output",
        "maps",
        *[name for i in range(len(hidden) + 1) for name in (f"weights_{i + 1}", f"biases_{i + 1}")],
        "epochs",
        "train",
        "test",
    ]
    np.testing.assert_allclose(arrays["output"], trainer.predict(lattice()), rtol=HALF, atol=1e-6)
    shown = [layer[:, :SHOWN_NEURONS] for layer in trainer.activations(middles())[:-1]]
    assert arrays["maps"].shape == (sum(min(n, SHOWN_NEURONS) for n in hidden), THUMBNAIL, THUMBNAIL)
    for shades, values in zip(arrays["maps"], [x for layer in shown for x in layer.T], strict=True):
        assert_shades(shades.ravel(), values)
    for number, linear in enumerate(trainer.learner.linears, start=1):
        np.testing.assert_array_equal(arrays[f"weights_{number}"], linear.weight.numpy())
        np.testing.assert_array_equal(arrays[f"biases_{number}"], linear.bias.numpy().ravel())
    np.testing.assert_array_equal(arrays["epochs"], [0, 1, 2, 3])
    losses = np.array([pair for _, pair in trainer.losses.items()], "f4")
    np.testing.assert_array_equal(arrays["train"], losses[:, 0])
    np.testing.assert_array_equal(arrays["test"], losses[:, 1])


def test_the_output_reaches_from_edge_to_edge():
    trainer = Trainer(Settings(hidden=(3,)))
    output = picture(trainer, False)[1]["output"].reshape(RESOLUTION, RESOLUTION)
    corners = trainer.predict(np.array([[-6, 6], [6, 6], [-6, -6], [6, -6]], float))
    np.testing.assert_allclose(output[[0, 0, -1, -1], [0, -1, 0, -1]], corners, rtol=HALF, atol=1e-6)
    assert output[36, 36] == pytest.approx(trainer.predict(np.zeros((1, 2)))[0], rel=HALF, abs=1e-6)


def test_small_maps_show_the_middles_of_squares():
    """The middles of 24 squares that share the plane, to within a sixth of their side."""
    side = 12 / THUMBNAIL
    wanted = -6 + side * (np.arange(THUMBNAIL) + 0.5)
    found = middles().reshape(THUMBNAIL, THUMBNAIL, 2)
    np.testing.assert_allclose(found[0, :, 0], wanted, atol=side / 6 + 1e-9)
    np.testing.assert_allclose(found[::-1, 0, 1], wanted, atol=side / 6 + 1e-9)


@pytest.mark.parametrize("look", [(0, 1), (1, 0), (1, 11), (2, 2), (3, 0)])
def test_a_neuron_in_full(look):
    trainer = Trainer(Settings(hidden=(12, 3), inputs=("x1", "x1*x2"), points=30))
    header, arrays = picture(trainer, False, look=look)
    assert header["look"] == list(look)
    layer, neuron = look
    levels = [features.on_grid(trainer.settings.inputs, RESOLUTION), *trainer.activations(lattice())]
    np.testing.assert_allclose(arrays["focus"], levels[layer][:, neuron], rtol=HALF, atol=1e-6)


def test_modes_and_moments():
    trainer = Trainer(Settings(points=30, compiled=False))
    for _ in range(3):
        trainer.epoch()
    assert picture(trainer, False)[0]["mode"] == "eager"
    trainer.travel(1)
    header, arrays = picture(trainer, False)
    assert (header["at"], header["epochs"]) == (1, 1)
    np.testing.assert_array_equal(arrays["epochs"], [0, 1, 2, 3])  # the curve stays whole
    trainer.retune(dataclasses.replace(trainer.settings, schedule="steps", period=1))
    assert picture(trainer, False)[0]["rate"] == 0.015


@pytest.mark.parametrize("dataset", ["circle", "plane"])
def test_histograms_count_all_points(dataset):
    trainer = Trainer(Settings(hidden=(5, 3), points=75, train_share=0.6, dataset=dataset))
    trainer.epoch()
    header, arrays = picture(trainer, True, watch=["histograms"])
    layers = trainer.activations(trainer.train[0])
    gradients = trainer.gradients()
    for name, values, ranges in (("hist", layers, "hist_range"), ("grad", gradients, "grad_range")):
        assert len(header[ranges]) == 3
        for number, (array, (low, high)) in enumerate(zip(values, header[ranges], strict=True), start=1):
            counts = arrays[f"{name}_{number}"]
            assert counts.shape == (24,)
            assert counts.sum() == array.size
            assert (low, high) == pytest.approx((array.min(), array.max()), rel=1e-5)
            middle = low + (high - low) / 2
            assert abs(counts[:12].sum() - np.sum(array < middle)) <= 1
    assert "hist_1" not in picture(trainer, True)[1]


def test_histograms_of_nearly_equal_numbers():
    trainer = Trainer(Settings(hidden=(4,), points=50, activation="sigmoid"))
    for neuron in range(4):
        trainer.set_bias(1, neuron, 12.0)  # almost 1, some a digit below
    arrays = picture(trainer, True, watch=["histograms"])[1]
    assert arrays["hist_1"].sum() == 4 * 25


HUGE = Settings(hidden=(4, 4), activation="relu", points=30, dataset="plane")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, 3e38, 1e-42, -0.0])
def test_numbers_that_are_none_break_nothing(value):
    trainer = Trainer(HUGE)
    for linear in trainer.learner.linears:
        linear.weight.data = Tensor(
            np.full(linear.weight.shape, value), device=cpu(), dtype="float32", requires_grad=False
        )
    trainer.epoch()
    header, arrays = picture(trainer, True, look=(1, 0), watch=["histograms"])
    assert arrays["output"].shape == (RESOLUTION**2,)
    assert not np.isinf(arrays["output"]).any()
    assert arrays["maps"].shape == (8, THUMBNAIL, THUMBNAIL)
    assert bool(header["trouble"]) == (not np.isfinite(value) or abs(value) > 1)
    if header["trouble"]:
        assert None in header["figures"].values() or abs(value) < np.inf
    scene(trainer)


def test_what_is_no_number_is_drawn_as_nothing():
    trainer = Trainer(Settings(points=20))
    weight = trainer.model.parameters()[0]
    weight.data = Tensor(np.full(weight.shape, np.nan), device=cpu(), dtype="float32", requires_grad=False)
    trainer.epoch()
    header, arrays = picture(trainer, True)
    assert header["figures"]["train_loss"] is None
    assert not arrays["maps"].any()


def test_a_picture_of_the_default_network_is_small():
    assert len(messages.picture(Trainer(), True)) < 16_000
