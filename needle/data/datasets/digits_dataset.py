"""Handwritten digits that come with scikit-learn, so nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from .image_dataset import ImageDataset


def digits(train: bool = True, transforms: Sequence[Callable] | None = None) -> ImageDataset:
    """1,797 handwritten digits of 8 × 8 pixels, to learn from or to test with.

    They are the test set of UCI's "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak, 1998).
    Every fifth image of each digit is for testing, the others are for learning. So each digit has the same
    share in both parts, and the parts are always the same.

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
    # `sklearn.datasets.load_digits` reads the same file, but to import it takes longer than a small training.
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("digits: they come with scikit-learn; install it: pip install scikit-learn")
    numbers = np.loadtxt(Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    images = (numbers[:, :-1].reshape(-1, 8, 8, 1) / 16).astype(np.float32)
    labels = numbers[:, -1].astype(np.int64)
    for_test = np.zeros(len(labels), bool)
    for digit in range(10):
        for_test[np.flatnonzero(labels == digit)[4::5]] = True
    chosen = ~for_test if train else for_test
    return ImageDataset(images[chosen], labels[chosen], transforms)
