"""CIFAR-10: 60,000 small photographs of ten kinds of things, 32 × 32 pixels (Krizhevsky, 2009)."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        If a file is damaged or asks for more than numbers, text and an array (see `read_batch`).
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

    The files are looked for, and kept, in the folder ``cifar10`` of ``NEEDLE_DATA_DIR`` or of your cache: the
    archive as its authors publish it, and the folder ``cifar-10-batches-py`` that is in it.

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
    """Read one of CIFAR-10's files.

    They are pickles, and a pickle can name functions to be called. Here nothing is called: a note is made of
    what the file names and of the arguments, and the image array is built from such a note.

    Returns
    -------
    images : numpy.ndarray, uint8, shape (n, 3, 32, 32)
    labels : numpy.ndarray, int64, shape (n,)

    Raises
    ------
    ValueError
        If the file is not such a batch.
    """
    content = Path(filename).read_bytes()
    try:
        batch = _Unpickler(BytesIO(content), encoding="bytes").load()
        batch = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
        pixels, labels = _array(batch["data"]), batch["labels"]
        if not (isinstance(labels, list) and all(type(label) is int and 0 <= label < 10 for label in labels)):
            raise ValueError("its labels are not whole numbers from 0 to 9")
        if pixels.shape != (len(labels), 3 * 32 * 32):
            raise ValueError(f"its {len(labels)} labels come with an array of shape {pixels.shape}")
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(
            f"CIFAR10Dataset: {filename} is not a batch of CIFAR-10, or is damaged "
            f"({type(error).__name__}: {error}); remove it, and download it again"
        ) from None
    return pixels.reshape(-1, 3, 32, 32), np.array(labels, np.int64)


@dataclass
class _Note:
    """What a pickle wants to be called, the arguments for it, and the state that the result should get."""

    name: str
    arguments: tuple
    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _array(note: Any) -> np.ndarray:
    """The array of unsigned bytes that a note describes, as NumPy 1 and NumPy 2 write it."""
    match note:
        case _Note("_reconstruct", _, (_, shape, _Note("dtype", (b"u1" | "u1", *_)), fortran, content)):
            pass
        case _Note("_frombuffer", (content, _Note("dtype", (b"u1" | "u1", *_)), shape, order)):
            fortran = order == "F"
        case _:
            raise ValueError("its data are no array of unsigned bytes")
    return np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


# The unpickler that is written in Python: the one in C reserves as much memory as a file claims to need.
_PythonUnpickler: Any = pickle._Unpickler


class _Unpickler(_PythonUnpickler):
    """Reads numbers, text, lists, tuples and dicts, and makes notes of arrays."""

    def find_class(self, module: str, name: str) -> Callable[..., _Note]:
        if not module.startswith("numpy") or name not in ("ndarray", "dtype", "_reconstruct", "_frombuffer"):
            raise ValueError(f"it asks for {module}.{name}, which no batch needs")
        return lambda *arguments: _Note(name, arguments)

    def load_bytearray(self) -> None:
        """Read what is there, and reserve nothing beforehand."""
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(self.read(size))

    def load_setitems(self) -> None:
        """Fill a dict. Only text can be a key: a tuple of tuples of tuples can take for ever to hash."""
        items = self.pop_mark()
        if not all(isinstance(key, (str, bytes)) for key in items[::2]):
            raise ValueError("it has a dict with a key that is no text")
        self.stack[-1].update(zip(items[::2], items[1::2], strict=True))

    # No sets, and no other way to fill a dict.
    dispatch = {
        code: read
        for code, read in _PythonUnpickler.dispatch.items()
        if code not in b"".join([pickle.EMPTY_SET, pickle.FROZENSET, pickle.DICT, pickle.SETITEM])
    } | {pickle.BYTEARRAY8[0]: load_bytearray, pickle.SETITEMS[0]: load_setitems}
