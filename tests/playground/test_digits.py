"""The page of digits and its network: it learns, it reads, two sessions do not meet, and no thread stays."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from needle import data
from playground.pages import digits
from playground.pages.digit_reader import NETWORKS, SHEET, DigitReader, as_digit, test_digits

from .apps import run, shown, start

test_digits.__test__ = False


@pytest.mark.parametrize("network", NETWORKS)
def test_it_learns_to_read(network):
    reader = DigitReader(network)
    before = reader.accuracies[0]
    while reader.epochs < 3:
        reader.learn_for(0.2, until=3)
    assert before < 0.3 < 0.85 < reader.accuracies[-1]
    assert reader.losses == sorted(reader.losses, reverse=True)
    assert reader.progress == 3


def test_what_it_reads_is_what_its_numbers_say():
    reader = DigitReader("layers")
    image = test_digits()[0][5]
    _, first, _, last = reader.model.modules
    weights = [x.numpy().astype("float64") for x in (first.weight, first.bias, last.weight, last.bias)]
    hidden = np.maximum(image.reshape(-1) @ weights[0] + weights[1][0], 0)
    logits = hidden @ weights[2] + weights[3][0]
    reading = reader.read(image)
    np.testing.assert_allclose(reading.hidden, hidden, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(reading.shares, np.exp(logits) / np.exp(logits).sum(), rtol=1e-4)


def test_a_feature_map_is_a_convolution():
    reader = DigitReader("convolutions")
    image = test_digits()[0][5]
    padded = np.pad(image, 1)
    kernels, bias = reader.kernels(), reader.model.modules[0].bias.numpy()
    for k in range(len(kernels)):
        expected = [
            [(padded[y : y + 3, x : x + 3] * kernels[k]).sum() + bias[k] for x in range(8)] for y in range(8)
        ]
        np.testing.assert_allclose(reader.read(image).hidden[k], np.maximum(expected, 0), atol=1e-5)


def test_the_digits_are_those_of_the_data():
    images, labels = data.digits(train=False)[:]
    np.testing.assert_array_equal(test_digits()[0], images[..., 0])
    np.testing.assert_array_equal(test_digits()[1], labels)


def test_a_drawing_becomes_a_digit():
    drawing = np.zeros((SHEET, SHEET), "float32")
    assert not as_digit(drawing).any()
    drawing[4:12, 20:22] = 1  # small, and in a corner
    digit = as_digit(drawing)
    assert digit.shape == (8, 8)
    np.testing.assert_allclose(digit.sum(axis=0), [0, 0, 0, 8, 8, 0, 0, 0])
    np.testing.assert_array_equal(as_digit(np.ones((SHEET, SHEET))), np.ones((8, 8)))


def learn(app):
    app.button(key="digits_learn").click()
    run(app)
    for _ in range(200):
        if app.session_state.digits_reader.epochs >= digits.BURST:
            return run(app)
        run(app)
    pytest.fail("it does not learn")


def test_two_sessions_learn_and_leave_no_thread():
    before = threading.active_count()
    one, other = start("digits", network="layers"), start("digits", network="layers", seed="1")
    learn(one)
    assert other.session_state.digits_reader.epochs == 0
    assert one.session_state.digits_reader.accuracies[-1] > 0.85
    assert [button.key for button in one.button] == ["digits_learn", "digits_again", "digits_test"]
    one.button(key="digits_again").click()
    assert run(one).session_state.digits_reader.epochs == 0
    assert threading.active_count() <= before


def test_it_can_be_paused():
    app = start("digits", network="layers")
    app.button(key="digits_learn").click()
    run(app)
    assert app.button(key="digits_learn").label == "Pause"
    app.button(key="digits_learn").click()
    run(app)
    epochs = app.session_state.digits_reader.progress
    assert run(app).session_state.digits_reader.progress == epochs


def test_a_drawing_is_read():
    app = start("digits")
    rows = shown(app)["said"]["rows"]
    assert [name for name, _ in rows] == list("0123456789")
    assert sum(share for _, share in rows) == pytest.approx(1, abs=1e-5)
    pixels = shown(app)["pixels"]
    app.button(key="digits_test").click()
    assert shown(run(app))["pixels"] != pixels
    assert shown(app)["views"][0]["title"] == "What the network sees"


@pytest.mark.parametrize("pixels", ["", "9" * 5, "x" * SHEET**2, 3, None, "²" * SHEET**2, ["9"] * SHEET**2])
def test_what_is_no_drawing_is_left_aside(pixels):
    assert digits.read_drawing(pixels) is None


def test_a_drawing_travels_as_text():
    np.testing.assert_array_equal(digits.read_drawing("9" * SHEET**2), np.ones((SHEET, SHEET)))
