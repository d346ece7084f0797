"""CIFAR-10: 60,000 small photographs of ten kinds of things, 32 × 32 pixels (Krizhevsky, 2009)."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..downloads import Remote, find, places, retrieve
from .image_dataset import ImageDataset

FOLDER = "cifar-10-batches-py"
TRAIN_BATCHES = [f"data_batch_{i}" for i in range(1, 6)]
TEST_BATCHES = ["test_batch"]
ARCHIVE = Remote(
    "cifar-10-python.tar.gz",
    "md5:c58f30108f718f92721af3b95e74349a",  # as published by the authors
    ["https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"],
)
MAX_BYTES = 64 << 20  # of one batch; a real one has 31 million
ARRAYS = {  # what a pickled array names: NumPy 1 calls its inner module "core", NumPy 2 "_core"
    "numpy.ndarray", "numpy.dtype",
    "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct",
    "numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer",
}  # fmt: skip


class CIFAR10Dataset(ImageDataset):
    """CIFAR-10 in the authors' format, "python version".

    Item i is ``(image, label)``: float32 of shape (3, 32, 32) from 0.0 to 1.0, and an int64 from 0 to 9. A
    slice or an array of numbers in place of i gives several, along a new first axis.

    Parameters
    ----------
    base_folder : str or path
        The folder with the files ``data_batch_1`` … ``data_batch_5`` and ``test_batch``.
    train : bool
        Whether to take the 50,000 images to learn from, or the 10,000 to test with.
    p : float
        Not used; the course's framework has it.
    transforms : list of Transform, optional
        Applied to each image each time it is taken, as an image of shape (32, 32, 3).

    Attributes
    ----------
    X : numpy.ndarray, float32, shape (n, 3, 32, 32)
    y : numpy.ndarray, int64, shape (n,)

    Raises
    ------
    ValueError
        If a file is not a batch of CIFAR-10 (see `read_batch`).
    """

    def __init__(
        self,
        base_folder: str | os.PathLike,
        train: bool,
        p: float = 0.5,
        transforms: Sequence[Callable] | None = None,
    ):
        names = TRAIN_BATCHES if train else TEST_BATCHES
        images, labels = zip(*[read_batch(Path(base_folder) / name) for name in names], strict=True)
        super().__init__(np.concatenate(images) / np.float32(255), np.concatenate(labels), transforms)

    @property
    def X(self) -> np.ndarray:
        return self.images

    @property
    def y(self) -> np.ndarray:
        return self.labels

    def apply_transforms(self, x: np.ndarray) -> np.ndarray:
        """Change an image (3, 32, 32) by each transform in turn; they see it as (32, 32, 3)."""
        return super().apply_transforms(x.transpose(1, 2, 0)).transpose(2, 0, 1)


def cifar10(train: bool = True, transforms: Sequence[Callable] | None = None) -> CIFAR10Dataset:
    """CIFAR-10's 50,000 images to learn from, or its 10,000 to test with (170 MB, downloaded once).

    The files are looked for, and kept, in the folder ``cifar10`` of ``NEEDLE_DATA_DIR`` or of your cache.

    Parameters
    ----------
    train : bool
    transforms : list of Transform, optional

    Returns
    -------
    CIFAR10Dataset
        Items are an image, float32 of shape (3, 32, 32) in 0..1, and its label, 0 to 9.

    Raises
    ------
    OSError
        If the files are not there and cannot be downloaded.
    """
    batches = [f"{FOLDER}/{name}" for name in TRAIN_BATCHES + TEST_BATCHES]
    place = find("cifar10", batches)
    if place is None:
        from pooch import Untar

        place = find("cifar10", [ARCHIVE.name]) or places("cifar10")[0]
        retrieve(ARCHIVE, place, Untar(batches, extract_dir="."))
    return CIFAR10Dataset(place / FOLDER, train, transforms=transforms)


def read_batch(filename: str | os.PathLike) -> tuple[np.ndarray, np.ndarray]:
    """Read one of CIFAR-10's files: a pickle, which may call what builds NumPy's arrays, and nothing else.

    Returns
    -------
    images : numpy.ndarray, uint8, shape (n, 3, 32, 32)
    labels : numpy.ndarray, int64, shape (n,)

    Raises
    ------
    ValueError
        If the file is damaged, too large, or holds anything but such a batch.
    """
    with open(filename, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    try:
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        batch = _Unpickler(BytesIO(content), encoding="bytes").load()
        batch = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
        pixels, labels = batch["data"], batch["labels"]
        if not (isinstance(labels, list) and all(type(label) is int and 0 <= label < 10 for label in labels)):
            raise ValueError("its labels are not whole numbers from 0 to 9")
        rows = (np.uint8, (len(labels), 3 * 32 * 32))
        if not isinstance(pixels, np.ndarray) or (pixels.dtype, pixels.shape) != rows:
            raise ValueError(f"its data are not {len(labels)} rows of 3072 unsigned bytes")
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(
            f"CIFAR10Dataset: {filename} is not a batch of CIFAR-10, or is damaged "
            f"({type(error).__name__}: {error}); remove it, and download it again"
        ) from None
    return pixels.reshape(-1, 3, 32, 32), np.array(labels, np.int64)


# The unpickler that is written in Python: the one in C reserves as much memory as a file claims to need.
class _Unpickler(pickle._Unpickler):
    """Looks up what pickled arrays need, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in ARRAYS:
            raise ValueError(f"it asks for {module}.{name}, which no batch needs")
        if name == "dtype":
            return _unsigned_bytes
        return super().find_class(module.replace(".core.", "._core."), name)


def _unsigned_bytes(kind: Any, *_: Any) -> np.dtype:
    """The one data type that a batch's array may have: an array of objects could point anywhere."""
    if kind not in ("u1", b"u1"):
        raise ValueError(f"its data are of type {kind!r}, not unsigned bytes")
    return np.dtype("u1", copy=True)
