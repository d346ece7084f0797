"""What the stage shows of a training run, packed into bytes for the browser.

Streamlit passes bytes on to a component as they are. It turns anything else into text, which would take
longer than the training. The browser reads this format with the function `unpack` in
``components/stage/stage.js``.

One message holds several moments, which the browser draws one after the other, because a message costs the
browser far more than a picture. A message has four parts: the length of the header (uint32), the header
(JSON, padded with spaces to a multiple of 4 bytes), numbers (float32), shades (int8: -127 is -1, 127 is 1).

- numbers: the rows of the history (epochs, train losses, test losses); x1, x2 and label of the points, first
  those to learn from; the weights (fan_in x fan_out) and biases of each layer;
- shades: for each moment the output over the plane, `RESOLUTION` x `RESOLUTION` from the upper left corner;
  then the activations of the hidden neurons, `THUMBNAIL` x `THUMBNAIL`, layer by layer, the first
  `SHOWN_NEURONS` of each layer.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from needle.data import toy

from .trainer import Figures, Trainer, grid

__all__ = ["RESOLUTION", "SHOWN_NEURONS", "THUMBNAIL", "Moment", "capture", "pack"]

RESOLUTION = 72
THUMBNAIL = 24
#: So many neurons of a layer are drawn; the page gives the number of the others.
SHOWN_NEURONS = 8

_plane = lru_cache(maxsize=2)(grid)


class Moment(NamedTuple):
    """What changes from picture to picture: how far the training is, and the output over the plane."""

    steps: int
    epochs: int
    figures: Figures
    output: np.ndarray


def capture(trainer: Trainer) -> Moment:
    """The present moment of a training run."""
    output = _shade(trainer.predict(_plane(RESOLUTION)))
    return Moment(trainer.steps, trainer.epochs, trainer.figures, output)


def pack(trainer: Trainer, moments: Sequence[Moment] | None = None, playing: bool = False) -> bytes:
    """The message that shows a trainer as it is now, and some moments before.

    Parameters
    ----------
    trainer : Trainer
        The training run.
    moments : sequence of Moment, optional
        What to show, in order. The last one is the present. Default: only the present.
    playing : bool
        Whether more messages follow at once. The browser then shows the speed.
    """
    moments = moments or [capture(trainer)]
    history = trainer.history.rows()
    points, labels = (np.concatenate(pair) for pair in zip(trainer.train, trainer.test, strict=True))
    numbers = [history, points.T, labels, *(parameter.numpy() for parameter in trainer.model.parameters())]

    shades = [moment.output for moment in moments]
    for layer in trainer.activations(_plane(THUMBNAIL))[:-1]:
        shades.append(_shade(layer[:, :SHOWN_NEURONS].T))

    header = {
        "domain": toy.DOMAIN,
        "resolution": RESOLUTION,
        "thumbnail": THUMBNAIL,
        "shown": SHOWN_NEURONS,
        "layers": [2, *trainer.settings.hidden, 1],
        "history": history.shape[1],
        "train": len(trainer.train[0]),
        "test": len(trainer.test[0]),
        "playing": playing,
        "moments": [
            {
                "steps": moment.steps,
                "epochs": moment.epochs,
                "figures": moment.figures._asdict() if np.isfinite(moment.figures).all() else None,
            }
            for moment in moments
        ],
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    return b"".join(
        [
            struct.pack("<I", len(text)),
            text,
            *(np.ascontiguousarray(part, "<f4").tobytes() for part in numbers),
            *(np.ascontiguousarray(part).tobytes() for part in shades),
        ]
    )


def _shade(values: np.ndarray) -> np.ndarray:
    """Numbers from -1 to 1 as int8. Others are clipped, and NaN becomes 0."""
    return np.rint(np.nan_to_num(np.clip(values, -1, 1) * 127)).astype(np.int8)
