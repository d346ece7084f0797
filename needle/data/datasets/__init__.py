"""Datasets, one kind a file."""

from .cifar10_dataset import CIFAR10Dataset, cifar10
from .digits_dataset import digits
from .image_dataset import ImageDataset
from .mnist_dataset import MNISTDataset, mnist
from .ndarray_dataset import NDArrayDataset
from .ptb_dataset import Corpus, Dictionary, batchify, get_batch, ptb

__all__ = [
    "CIFAR10Dataset", "Corpus", "Dictionary", "ImageDataset", "MNISTDataset", "NDArrayDataset", "batchify",
    "cifar10", "digits", "get_batch", "mnist", "ptb",
]  # fmt: skip
