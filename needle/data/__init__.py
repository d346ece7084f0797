"""Data to learn from: datasets, the loader that makes batches of them, and toy problems in the plane."""

from . import toy
from .data_basic import DataLoader, Dataset
from .data_transforms import RandomCrop, RandomFlipHorizontal, Transform
from .datasets import *
from .datasets import __all__ as _datasets
from .datasets import ptb_dataset

__all__ = [
    "DataLoader", "Dataset", "RandomCrop", "RandomFlipHorizontal", "Transform", "ptb_dataset",
    "toy",
    *_datasets,
]  # fmt: skip
