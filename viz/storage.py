"""The arrays that a node holds, and the storages that these look at."""

from __future__ import annotations

import numpy as np

from needle.graph import Pending

__all__ = ["arrays_of", "storage_of"]


def storage_of(array) -> tuple[object, int]:
    """The storage that an array looks at, which other arrays can share, and its bytes."""
    if isinstance(array, (np.ndarray, np.generic)):  # NumPy's sum of everything is a bare number
        while isinstance(array.base, np.ndarray):
            array = array.base
        return array, array.nbytes
    return array.storage, array.storage.size * array.dtype.itemsize


def arrays_of(data) -> list:
    """The arrays of a node's data; none if it is lazy and not computed yet."""
    if type(data) is Pending:
        data = data.data
    return list(data) if isinstance(data, tuple) else [] if data is None else [data]
