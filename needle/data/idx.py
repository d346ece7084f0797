"""IDX, the format of MNIST's files: a magic number, the sizes (all big-endian), the bytes; gzipped."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib

import numpy as np

UNSIGNED_BYTES = 0x0800  # the type in the magic number; its last byte says how many axes there are
MAX_BYTES = 256 << 20  # unpacked; MNIST's images have 47 million
MAX_RATIO = 1032  # unpacked to packed: gzip's format packs no better than this


def read_mnist(
    image_filename: str | os.PathLike, label_filename: str | os.PathLike
) -> tuple[np.ndarray, np.ndarray]:
    """Read images and their labels from two gzipped IDX files.

    The format is that of http://yann.lecun.com/exdb/mnist/.

    Returns
    -------
    images : numpy.ndarray, uint8, shape (examples, height, width)
        Pixels from 0 (black) to 255 (white).
    labels : numpy.ndarray, uint8, shape (examples,)

    Raises
    ------
    ValueError
        If a file is not in this format or is cut off, or if the two do not belong together.
    """
    images = _read_idx(image_filename, ndim=3)
    labels = _read_idx(label_filename, ndim=1)
    if len(images) != len(labels):
        raise ValueError(
            f"read_mnist: {len(images)} images in {image_filename}, but {len(labels)} labels in "
            f"{label_filename}; use two files that belong together"
        )
    return images, labels


def _read_idx(filename: str | os.PathLike, ndim: int) -> np.ndarray:
    """Read a gzipped IDX file of unsigned bytes with `ndim` axes, but check the size that it claims first."""
    magic = UNSIGNED_BYTES + ndim
    try:
        with gzip.open(filename, "rb") as file:
            header = file.read(4 + 4 * ndim)
            if len(header) < 4 + 4 * ndim or struct.unpack(">I", header[:4])[0] != magic:
                raise ValueError(
                    f"read_mnist: {filename} is not an MNIST file: it should begin with {magic:#010x}"
                )
            sizes = struct.unpack(f">{ndim}I", header[4:])
            needed = math.prod(sizes)
            packed = os.path.getsize(filename)
            limit = min(MAX_BYTES, packed * MAX_RATIO)
            if max(needed, *sizes) > limit:
                raise ValueError(
                    f"read_mnist: {filename} claims the sizes {sizes}, but of a file of {packed} bytes at "
                    f"most {limit} numbers are read; download it again"
                )
            content = file.read(needed + 1)  # one more, to reach the end, where the checksum is
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"read_mnist: {filename} is damaged ({error}); download it again") from None
    if len(content) != needed:
        raise ValueError(
            f"read_mnist: {filename} should hold {needed} bytes after its header; download it again"
        )
    return np.frombuffer(content, dtype=np.uint8).reshape(sizes)
