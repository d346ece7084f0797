"""CIFAR-10: 60,000 small photographs of ten kinds of things, 32 × 32 pixels (Krizhevsky, 2009)."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..downloads import Remote, check_md5, places, provide, unpack
from .image_dataset import ImageDataset

FOLDER = "cifar-10-batches-py"
TRAIN_BATCHES = [f"data_batch_{i}" for i in range(1, 6)]
TEST_BATCHES = ["test_batch"]
PIXELS = 3 * 32 * 32  # of an image: all red ones, all green ones, all blue ones
MAX_BYTES = 64 << 20  # of a batch; the authors' have 31 million


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
        batches = [
            read_batch(Path(base_folder) / name) for name in (TRAIN_BATCHES if train else TEST_BATCHES)
        ]
        images = np.concatenate([images for images, _ in batches]) / np.float32(255)
        super().__init__(images, np.concatenate([labels for _, labels in batches]), transforms)

    @property
    def X(self) -> np.ndarray:
        return self.images

    @property
    def y(self) -> np.ndarray:
        return self.labels

    def apply_transforms(self, x: np.ndarray) -> np.ndarray:
        """An image (3, 32, 32), changed by each transform in turn; they see it as (32, 32, 3)."""
        return super().apply_transforms(x.transpose(1, 2, 0)).transpose(2, 0, 1)


def cifar10(train: bool = True, transforms: Sequence[Callable] | None = None) -> CIFAR10Dataset:
    """CIFAR-10's 50,000 images to learn from, or its 10,000 to test with (170 MB, downloaded once).

    They are looked for, and kept, in the folder ``cifar10`` of ``NEEDLE_DATA_DIR`` or of your cache: the
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
    unpacked = [place / FOLDER for place in places("cifar10") if (place / FOLDER).is_dir()]
    folder = (
        unpacked[0] if unpacked else unpack(provide("cifar10", [ARCHIVE]) / ARCHIVE.name, FOLDER, 256 << 20)
    )
    return CIFAR10Dataset(folder, train, transforms=transforms)


ARCHIVE = Remote(
    "cifar-10-python.tar.gz",
    ["https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"],
    check=partial(check_md5, "c58f30108f718f92721af3b95e74349a"),  # as published on that site
)


def read_batch(filename: str | os.PathLike) -> tuple[np.ndarray, np.ndarray]:
    """Read one of CIFAR-10's files.

    They are pickles, and a pickle can name functions to be called. Here none is: whatever a file names is
    replaced by a note of what it was given, and the image array is built from such a note.

    Returns
    -------
    images : numpy.ndarray, uint8, shape (n, 3, 32, 32)
    labels : numpy.ndarray, int64, shape (n,)

    Raises
    ------
    ValueError
        If the file is not such a batch.
    """
    try:
        with open(filename, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        batch = _Unpickler(BytesIO(content), encoding="bytes").load()
        images = _bytes_of(_entry(batch, "data"))
        labels = _entry(batch, "labels")
        if not (isinstance(labels, list) and all(type(label) is int and 0 <= label < 10 for label in labels)):
            raise ValueError("its labels are not whole numbers from 0 to 9")
        if images.shape != (len(labels), PIXELS):
            raise ValueError(f"its {len(labels)} labels come with an array of shape {images.shape}")
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(
            f"CIFAR10Dataset: {filename} is not a batch of CIFAR-10, or is damaged "
            f"({type(error).__name__}: {error}); download it again"
        ) from None
    return images.reshape(-1, 3, 32, 32), np.array(labels, np.int64)


class _Note:
    """Stands in for what a pickle wants to be called; only notes what it is given."""

    def __init__(self, *arguments: Any):
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Dtype(_Note):
    pass


class _Reconstruct(_Note):  # an array: state is (version, shape, dtype, whether in Fortran's order, bytes)
    pass


class _FromBuffer(_Note):  # an array: arguments are bytes, dtype, shape, order
    pass


# The unpickler that is written in Python: the one in C reserves as much memory as a file claims to need.
_UNPICKLER: Any = pickle._Unpickler


class _Unpickler(_UNPICKLER):
    ADMITTED = {  # noqa: RUF012 - never changed
        ("numpy", "ndarray"): _Note,
        ("numpy", "dtype"): _Dtype,
        ("numpy.core.multiarray", "_reconstruct"): _Reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): _Reconstruct,
        ("numpy.core.numeric", "_frombuffer"): _FromBuffer,
        ("numpy._core.numeric", "_frombuffer"): _FromBuffer,
    }

    def find_class(self, module: str, name: str) -> type[_Note]:
        if (module, name) not in self.ADMITTED:
            raise ValueError(f"it asks for {module}.{name}, which no batch needs")
        return self.ADMITTED[module, name]

    def load_bytearray(self) -> None:
        """As for bytes: reads what is there, and reserves nothing beforehand."""
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(self.read(size))

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append({})
        self._put(items)

    def load_setitem(self) -> None:
        self._put([self.stack.pop(-2), self.stack.pop()])

    def load_setitems(self) -> None:
        self._put(self.pop_mark())

    def _put(self, items: list) -> None:
        """Add keys and values, which alternate, to the dict on top of the stack.

        Only text can be a key: to hash tuples in tuples, each found many times, can take for ever. For the
        same reason there are no sets.
        """
        if not all(isinstance(key, (str, bytes)) for key in items[::2]):
            raise ValueError("it has a dict with a key that is no text")
        self.stack[-1].update(zip(items[::2], items[1::2], strict=True))

    def load_set(self) -> None:
        raise ValueError("it has a set, which no batch needs")

    dispatch = _UNPICKLER.dispatch | {
        pickle.BYTEARRAY8[0]: load_bytearray,
        pickle.DICT[0]: load_dict,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
        pickle.EMPTY_SET[0]: load_set,
        pickle.FROZENSET[0]: load_set,
    }


def _entry(batch: Any, key: str) -> Any:
    """An entry of the dict; written by Python 2, its keys are bytes."""
    if not isinstance(batch, dict):
        raise ValueError(f"it holds a {type(batch).__name__}, not a dict")
    return batch[key.encode()] if key.encode() in batch else batch[key]


def _bytes_of(note: Any) -> np.ndarray:
    """The array of unsigned bytes that a note describes."""
    if isinstance(note, _Reconstruct):
        _, shape, dtype, fortran, content = note.state
    elif isinstance(note, _FromBuffer):
        content, dtype, shape, order = note.arguments
        fortran = order in ("F", b"F")
    else:
        raise ValueError("its data are no array")
    if not isinstance(dtype, _Dtype) or dtype.arguments[0] not in ("u1", b"u1"):
        raise ValueError("its data are no array of unsigned bytes")
    return np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")
