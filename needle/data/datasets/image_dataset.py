"""Images with labels, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..data_basic import Dataset, owned


class ImageDataset(Dataset):
    """Images and their labels; an item is ``(image, label)``.

    Parameters
    ----------
    images : numpy.ndarray, shape (n, height, width, channels)
        Floats stay as they are. Bytes, 0 to 255, become float32 from 0.0 to 1.0 when an item is taken.
    labels : numpy.ndarray, shape (n,)
    transforms : list of Transform, optional
        Applied to each image each time it is taken.
    """

    def __init__(self, images: np.ndarray, labels: np.ndarray, transforms: Sequence[Callable] | None = None):
        super().__init__(transforms)
        self.images = images
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Any) -> tuple[np.ndarray, Any]:
        """Copies of an image and its label; of several, stacked, for a slice or an array of numbers."""
        images, labels = self.images[index], owned(self.labels[index])
        images = images / np.float32(255) if images.dtype == np.uint8 else owned(images)
        if not self.transforms or not len(images):
            return images, labels
        if np.ndim(labels) == 0:
            return self.apply_transforms(images), labels
        return np.stack([self.apply_transforms(image) for image in images]), labels

    def take(self, indices: np.ndarray) -> Sequence[np.ndarray]:
        """Take several items at once."""
        return self[indices]
