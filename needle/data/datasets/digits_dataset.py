"""Handwritten digits that come with the package, so nothing is downloaded.

``digits.npz`` holds the same as scikit-learn's ``load_digits``, and was made of it::

    pixels, labels = sklearn.datasets.load_digits(return_X_y=True)
    images = pixels.reshape(-1, 8, 8).astype("uint8")
    np.savez_compressed("digits.npz", images=images, labels=labels.astype("uint8"))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from .image_dataset import ImageDataset

DIGITS = Path(__file__).with_name("digits.npz")


def digits(train: bool = True, transforms: Sequence[Callable] | None = None) -> ImageDataset:
    """1,797 handwritten digits of 8 × 8 pixels, to learn from or to test with.

    They are the test set of UCI's "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak, 1998;
    CC BY 4.0, https://doi.org/10.24432/C50P49). Every fifth image of each digit is for testing, the others
    are for learning. So each digit has the same share in both parts, and the parts are always the same.

    Parameters
    ----------
    train : bool
        Whether to take the images to learn from, or those to test with.
    transforms : list of Transform, optional
        Applied to each image each time it is taken.

    Returns
    -------
    ImageDataset
        Items are an image, float32 of shape (8, 8, 1) from 0.0 (white paper) to 1.0 (ink), and its label, an
        int64 from 0 to 9.
    """
    with np.load(DIGITS) as stored:
        images = (stored["images"][..., None] / 16).astype(np.float32)
        labels = stored["labels"].astype(np.int64)
    for_test = np.zeros(len(labels), bool)
    for digit in range(10):
        for_test[np.flatnonzero(labels == digit)[4::5]] = True
    chosen = ~for_test if train else for_test
    return ImageDataset(images[chosen], labels[chosen], transforms)
