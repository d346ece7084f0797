"""Arrays as a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd import Tensor
from ..data_basic import Dataset, owned


class NDArrayDataset(Dataset):
    """Arrays of equal length; item i is the tuple of their elements i.

    Parameters
    ----------
    *arrays : array_like or Tensor
        At least one.

    Raises
    ------
    ValueError
        If the lengths differ.
    """

    def __init__(self, *arrays: Any):
        super().__init__()
        self.arrays = tuple([a.numpy() if isinstance(a, Tensor) else np.asarray(a) for a in arrays])
        shapes = [array.shape for array in self.arrays]
        if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
            raise ValueError(
                f"NDArrayDataset: needs arrays of one length, got {', '.join(map(str, shapes)) or 'none'}"
            )

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: Any) -> tuple:
        """Copies of the arrays' elements at a number, a slice or an array of numbers."""
        return tuple([owned(array[index]) for array in self.arrays])

    def take(self, indices: np.ndarray) -> Sequence[np.ndarray]:
        """Take several items at once."""
        return self[indices]
