"""Data: datasets, the loader that makes batches of them, and toy problems in the plane."""

from . import toy
from .data_basic import DataLoader, Dataset
from .data_transforms import RandomCrop, RandomFlipHorizontal, Transform
from .datasets.cifar10_dataset import CIFAR10Dataset, cifar10
from .datasets.digits import digits
from .datasets.image_dataset import ImageDataset
from .datasets.mnist_dataset import MNISTDataset, mnist
from .datasets.ndarray_dataset import NDArrayDataset
from .datasets.ptb_dataset import Corpus, Dictionary, batchify, get_batch, ptb

__all__ = [
    "CIFAR10Dataset", "Corpus", "DataLoader", "Dataset", "Dictionary", "ImageDataset", "MNISTDataset",
    "NDArrayDataset", "RandomCrop", "RandomFlipHorizontal", "Transform", "batchify", "cifar10", "digits",
    "get_batch", "mnist", "ptb", "toy",
]  # fmt: skip
