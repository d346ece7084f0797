"""One picture of a training run, packed into bytes for the browser.

Streamlit carries bytes to a component without looking at them; anything else it would turn into text, which
costs more than the training. The browser's half of this format is the function `unpack` in
``components/stage/stage.js``.

A frame is: the length of the header (uint32), the header (JSON, padded with spaces to a multiple of 4 bytes),
numbers (float32), then shades (int8: -127 is -1, 127 is 1).

- numbers: the history's rows (epochs, train losses, test losses); the points' x1, x2 and label, those to
  learn from first; for each layer its weights (fan_in x fan_out) and biases;
- shades: the output over the plane, `RESOLUTION` x `RESOLUTION` from the upper left corner, then the
  activations of the hidden neurons, `THUMBNAIL` x `THUMBNAIL`, layer by layer, of each the first
  `SHOWN_NEURONS`.
"""

from __future__ import annotations

import json
import struct
from functools import lru_cache

import numpy as np

from needle.data import toy

from .trainer import Trainer, grid

__all__ = ["RESOLUTION", "SHOWN_NEURONS", "THUMBNAIL", "pack"]

RESOLUTION = 72
#: Each cell of a neuron's small picture is the middle one of 3 x 3 cells of the large picture.
THUMBNAIL = RESOLUTION // 3

#: How many neurons of a layer are drawn; the others are counted.
SHOWN_NEURONS = 8

_plane = lru_cache(maxsize=1)(grid)


def pack(trainer: Trainer, playing: bool = False) -> bytes:
    """The frame that shows a trainer as it is now.

    Parameters
    ----------
    trainer : Trainer
        The training run.
    playing : bool
        Whether more frames are to come at once; the browser then shows the speed.
    """
    *hidden, output = trainer.activations(_plane(RESOLUTION))
    shades = [output.reshape(-1)]
    for layer in hidden:
        maps = layer.reshape(RESOLUTION, RESOLUTION, -1)[1::3, 1::3, :SHOWN_NEURONS]
        shades.append(maps.transpose(2, 0, 1).reshape(-1))

    history = trainer.history.rows()
    numbers = [history.reshape(-1)]
    for part in range(2):  # points, then labels
        numbers.append(np.concatenate([trainer.train[part], trainer.test[part]]).T.reshape(-1))
    for layer in trainer.model.modules:
        linear = layer.modules[0]
        numbers += [linear.weight.numpy().reshape(-1), linear.bias.numpy().reshape(-1)]

    header = {
        "domain": toy.DOMAIN,
        "resolution": RESOLUTION,
        "thumbnail": THUMBNAIL,
        "shown": SHOWN_NEURONS,
        "layers": [2, *trainer.settings.hidden, 1],
        "activation": trainer.settings.activation,
        "history": history.shape[1],
        "train": len(trainer.train[0]),
        "test": len(trainer.test[0]),
        "steps": trainer.steps,
        "epochs": trainer.epochs,
        "figures": trainer.figures._asdict() if np.isfinite(trainer.figures).all() else None,
        "playing": playing,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    return b"".join(
        [
            struct.pack("<I", len(text)),
            text,
            np.concatenate(numbers).astype("<f4").tobytes(),
            _shade(np.concatenate(shades)).tobytes(),
        ]
    )


def _shade(values: np.ndarray) -> np.ndarray:
    """Numbers from -1 to 1 as int8; what lies outside is clipped, what is no number becomes 0."""
    return np.rint(np.nan_to_num(np.clip(values, -1, 1) * 127)).astype(np.int8)
