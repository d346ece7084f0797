"""MNIST: 70,000 handwritten digits, 28 × 28 pixels (LeCun, Cortes and Burges)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

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

FILES = {
    name: Remote(name, f"sha256:{sha256}", [f"{mirror}/{name}" for mirror in MIRRORS])
    for name, sha256 in {
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }.items()
}
