"""The training as a moving picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from needle.data import toy

from ..colours import BLUE, ORANGE
from ..training.trainer import Trainer

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["as_gif"]

_SIDE = 320  # pixels
_MILLISECONDS = 90  # of a frame; the last one stays longer
_STAYS = 2000
_NEGATIVE, _POSITIVE = (np.array([*bytes.fromhex(colour[1:])]) for colour in (ORANGE, BLUE))
_STRENGTH = 0.62


def as_gif(trainer: Trainer) -> bytes:
    """The output over the plane at each remembered moment, with the points, as a GIF.

    Parameters
    ----------
    trainer : Trainer
        It ends at its last moment.
    """
    low, high = toy.DOMAIN
    along = np.linspace(low, high, _SIDE // 2)
    x1, x2 = np.meshgrid(along, along[::-1])
    lattice = np.stack([x1.ravel(), x2.ravel()], axis=1)
    frames = []
    for epoch, state in trainer.moments.items() or [(trainer.epochs, trainer.state())]:
        trainer.restore(state)
        shades = trainer.predict(lattice).reshape(len(along), len(along))
        frames.append(_frame(trainer, shades, epoch))
    durations = [_MILLISECONDS] * (len(frames) - 1) + [_STAYS]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)
    return file.getvalue()


def _frame(trainer: Trainer, shades: np.ndarray, epoch: int) -> Image.Image:
    from PIL import Image, ImageDraw

    strength = _STRENGTH * np.abs(np.clip(np.nan_to_num(shades), -1, 1))[..., None]
    colours = np.where(shades[..., None] < 0, _NEGATIVE, _POSITIVE) * strength + 255 * (1 - strength)
    image = Image.fromarray(colours.astype(np.uint8)).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR)
    pen = ImageDraw.Draw(image)
    low, high = toy.DOMAIN
    for (x1, x2), label in zip(*trainer.train, strict=True):
        x, y = (x1 - low) / (high - low) * _SIDE, (high - x2) / (high - low) * _SIDE
        colour = tuple(_POSITIVE if label > 0 else _NEGATIVE)
        pen.ellipse((x - 2.5, y - 2.5, x + 2.5, y + 2.5), fill=colour, outline="white")
    pen.rectangle((0, _SIDE - 16, 96, _SIDE), fill="white")
    pen.text((4, _SIDE - 14), f"epoch {epoch:,}", fill="black")
    return image.quantize(64)
