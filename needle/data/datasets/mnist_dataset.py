"""MNIST: 70,000 handwritten digits, 28 × 28 pixels (LeCun, Cortes and Burges)."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ..downloads import Remote, provide
from ..idx import read_mnist
from .image_dataset import ImageDataset


class MNISTDataset(ImageDataset):
    """Images and labels from two gzipped files in MNIST's format.

    Item i is ``(image, label)``: float32 of shape (height, width, 1) from 0.0 (black) to 1.0 (white), and a
    uint8. A slice or an array of numbers in place of i gives several, along a new first axis.

    Parameters
    ----------
    image_filename, label_filename : str or path
    transforms : list of Transform, optional
        Applied to each image each time it is taken.

    Raises
    ------
    ValueError
        If a file is damaged or not in MNIST's format, or if the two do not belong together.
    """

    def __init__(
        self,
        image_filename: str | os.PathLike,
        label_filename: str | os.PathLike,
        transforms: Sequence[Callable] | None = None,
    ):
        images, labels = read_mnist(image_filename, label_filename)
        super().__init__(images[..., None], labels, transforms)


def mnist(train: bool = True, transforms: Sequence[Callable] | None = None) -> MNISTDataset:
    """MNIST's 60,000 digits to learn from, or its 10,000 to test with (12 MB, downloaded once).

    The files are looked for, and kept, in the folder ``mnist`` of ``NEEDLE_DATA_DIR`` or of your cache.

    Parameters
    ----------
    train : bool
    transforms : list of Transform, optional

    Returns
    -------
    MNISTDataset
        Items are an image, float32 of shape (28, 28, 1) in 0..1, and its label, 0 to 9.

    Raises
    ------
    OSError
        If the files are not there and cannot be downloaded.
    """
    part = "train" if train else "t10k"
    names = [f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"]
    folder = provide("mnist", [FILES[name] for name in names])
    return MNISTDataset(folder / names[0], folder / names[1], transforms)


MIRRORS = [
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
]


def _check_unpacked(sha256: str, path: Path) -> None:
    """Mirrors pack the same bytes differently, so the checksum is that of what a file unpacks to."""
    digest = hashlib.sha256()
    with gzip.open(path) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    if digest.hexdigest() != sha256:
        raise ValueError(f"it unpacks to something else than MNIST's {path.name}")


# SHA-256 of the unpacked files.
FILES = {
    name: Remote(name, [f"{mirror}/{name}" for mirror in MIRRORS], check=partial(_check_unpacked, sha256))
    for name, sha256 in {
        "train-images-idx3-ubyte.gz": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte.gz": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte.gz": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte.gz": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    }.items()
}
