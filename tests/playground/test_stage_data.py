"""The bytes for the stage: what the browser unpacks is what the trainer holds."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from needle import Tensor
from playground.settings import Settings
from playground.stage_data import RESOLUTION, SHOWN_NEURONS, THUMBNAIL, capture, pack
from playground.trainer import Trainer, grid


class Reader:
    """Takes a frame apart in the order that the format names."""

    def __init__(self, data):
        (length,) = struct.unpack_from("<I", data)
        self.header = json.loads(data[4 : 4 + length])
        self.data, self.at = data, 4 + length

    def take(self, kind, *shape):
        count = int(np.prod(shape))
        part = np.frombuffer(self.data, kind, count, self.at)
        self.at += part.nbytes
        return part.reshape(shape)

    def numbers(self, *shape):
        assert self.at % 4 == 0  # a browser's Float32Array needs it
        return self.take("<f4", *shape)

    def shades(self, *shape):
        return self.take("i1", *shape)


@pytest.mark.parametrize("hidden", [(), (4, 2), (12, 3)])
def test_a_frame_holds_everything_that_is_drawn(hidden):
    trainer = Trainer(Settings(hidden=hidden, points=75, train_share=0.6))
    for _ in range(3):
        trainer.epoch()
    frame = Reader(pack(trainer, playing=True))
    header = frame.header
    assert header["layers"] == [2, *hidden, 1]
    assert (header["train"], header["test"]) == (45, 30)
    (moment,) = header["moments"]
    assert (moment["epochs"], moment["steps"]) == (3, trainer.steps)
    assert moment["figures"] == pytest.approx(trainer.figures._asdict())
    assert header["playing"] is True

    np.testing.assert_array_equal(frame.numbers(3, header["history"]), trainer.history.rows())
    points = np.concatenate([trainer.train[0], trainer.test[0]])
    np.testing.assert_array_equal(frame.numbers(2, 75), points.T.astype(np.float32))
    np.testing.assert_array_equal(frame.numbers(75), np.concatenate([trainer.train[1], trainer.test[1]]))
    for parameter in trainer.model.parameters():
        np.testing.assert_array_equal(frame.numbers(*parameter.shape), parameter.numpy())

    output = trainer.predict(grid(RESOLUTION)).reshape(RESOLUTION, RESOLUTION)
    np.testing.assert_allclose(frame.shades(RESOLUTION, RESOLUTION) / 127, output, atol=0.5 / 127 + 1e-6)
    small = trainer.activations(grid(THUMBNAIL))
    for layer, width in zip(small, hidden, strict=False):
        for neuron in range(min(width, SHOWN_NEURONS)):
            shades = frame.shades(THUMBNAIL, THUMBNAIL) / 127
            expected = layer[:, neuron].reshape(THUMBNAIL, THUMBNAIL)
            np.testing.assert_allclose(shades, expected, atol=0.5 / 127 + 1e-6)
    assert frame.at == len(frame.data)


def test_a_frame_shows_the_moments_before_it():
    trainer = Trainer(Settings(hidden=(), points=40))
    moments, outputs = [], []
    for _ in range(3):
        trainer.epoch()
        moments.append(capture(trainer))
        outputs.append(trainer.predict(grid(RESOLUTION)))
    frame = Reader(pack(trainer, moments))
    assert [moment["epochs"] for moment in frame.header["moments"]] == [1, 2, 3]
    frame.numbers(3 * frame.header["history"] + 3 * 40 + 3)
    for output in outputs:
        np.testing.assert_allclose(frame.shades(RESOLUTION**2) / 127, output, atol=0.5 / 127 + 1e-6)
    assert frame.at == len(frame.data)


def test_what_is_no_number_is_drawn_as_nothing():
    trainer = Trainer(Settings(points=20))
    weight = trainer.model.parameters()[0]
    weight.data = Tensor(np.full(weight.shape, np.nan))
    trainer.epoch()
    frame = Reader(pack(trainer))
    assert frame.header["moments"][0]["figures"] is None
    frame.numbers(3 * frame.header["history"] + 3 * 20 + sum(p.size for p in trainer.model.parameters()))
    assert not frame.shades(RESOLUTION, RESOLUTION).any()


def test_a_frame_of_the_default_network_is_small():
    assert len(pack(Trainer())) < 20_000
