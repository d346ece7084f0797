"""Transforms: they change an image (height, width, channels) each time it is taken from its dataset."""

from __future__ import annotations

import numpy as np

from ..backend_ndarray.device import generator

__all__ = ["RandomCrop", "RandomFlipHorizontal", "Transform"]


class Transform:
    """Changes an image. Write a subclass with ``__call__``, which takes an array and returns one."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} needs a method __call__(self, x)")


class RandomFlipHorizontal(Transform):
    """Swaps left and right of an image (height, width, channels) with probability `p`.

    Parameters
    ----------
    p : float
        Between 0 and 1.
    rng : numpy.random.Generator or int, optional
        Draws one number in [0, 1) for each image, which is flipped if that number is below `p`. An int is the
        seed of a generator. Default: NumPy's global state.
    """

    def __init__(self, p: float = 0.5, rng: np.random.Generator | int | None = None):
        if not 0 <= p <= 1:
            raise ValueError(f"RandomFlipHorizontal: p must be a probability between 0 and 1, got {p!r}")
        self.p = p
        self.rng = generator(rng)

    def __call__(self, img: np.ndarray) -> np.ndarray:
        _check_image("RandomFlipHorizontal", img)
        return img[:, ::-1] if (self.rng or np.random).random() < self.p else img


class RandomCrop(Transform):
    """Puts `padding` zeros around an image (height, width, channels), then cuts out a part of its size.

    So the image moves by up to `padding` pixels in both directions, and zeros come in from outside.

    Parameters
    ----------
    padding : int
        At least 0.
    rng : numpy.random.Generator or int, optional
        Draws two whole numbers from -padding to padding for each image: how far down and how far to the right
        the part lies. An int is the seed of a generator. Default: NumPy's global state.
    """

    def __init__(self, padding: int = 3, rng: np.random.Generator | int | None = None):
        if padding < 0:
            raise ValueError(f"RandomCrop: padding must be at least 0, got {padding!r}")
        self.padding = padding
        self.rng = generator(rng)

    def __call__(self, img: np.ndarray) -> np.ndarray:
        _check_image("RandomCrop", img)
        draw = np.random.randint if self.rng is None else self.rng.integers
        down, right = draw(low=-self.padding, high=self.padding + 1, size=2)
        rows, to_rows = _overlap(img.shape[0], int(down))
        columns, to_columns = _overlap(img.shape[1], int(right))
        part = np.zeros_like(img)
        part[to_rows, to_columns] = img[rows, columns]  # faster than making the padded image
        return part


def _overlap(length: int, shift: int) -> tuple[slice, slice]:
    """The pixels that an axis and its shifted part share: their places in the axis, and in the part."""
    return (
        slice(max(shift, 0), max(length + shift, 0)),
        slice(max(-shift, 0), max(length - shift, 0)),
    )


def _check_image(name: str, img: np.ndarray) -> None:
    if np.ndim(img) != 3:
        raise ValueError(f"{name}: needs an image (height, width, channels), got shape {np.shape(img)}")
