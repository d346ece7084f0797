"""Softmax regression and a two-layer network on MNIST, with nothing but Tensors."""

from __future__ import annotations

import numpy as np

import needle as ndl
from needle.data.idx import read_mnist


def parse_mnist(image_filename: str, label_filename: str) -> tuple[np.ndarray, np.ndarray]:
    """Read images and labels in MNIST's format, gzipped.

    The format is that of http://yann.lecun.com/exdb/mnist/: big-endian, a magic number, sizes, then bytes.

    Parameters
    ----------
    image_filename, label_filename : str

    Returns
    -------
    X : numpy.ndarray, float32, shape (examples, 784)
        Pixels from 0.0 (black) to 1.0 (white).
    y : numpy.ndarray, uint8, shape (examples,)
        Digits, 0 to 9.

    Raises
    ------
    ValueError
        If a file is not in MNIST's format, is cut off, or the two do not belong together.
    """
    images, labels = read_mnist(image_filename, label_filename)
    examples, height, width = images.shape
    return images.reshape(examples, height * width).astype(np.float32) / 255, labels


def softmax_loss(Z: ndl.Tensor, y_one_hot: ndl.Tensor) -> ndl.Tensor:
    """The mean cross entropy of softmax(Z).

    Parameters
    ----------
    Z : Tensor, shape (batch, classes)
        Logits.
    y_one_hot : Tensor, shape (batch, classes)
        1 at the true class of each example, 0 elsewhere.

    Returns
    -------
    Tensor, shape ()

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    if Z.shape != y_one_hot.shape:
        raise ValueError(
            f"softmax_loss: Z has shape {Z.shape}, y_one_hot {y_one_hot.shape}; they must be equal"
        )
    return (ndl.logsumexp(Z, axes=(1,)).sum() - (Z * y_one_hot).sum()) / Z.shape[0]


def nn_epoch(
    X: np.ndarray, y: np.ndarray, W1: ndl.Tensor, W2: ndl.Tensor, lr: float = 0.1, batch: int = 100
) -> tuple[ndl.Tensor, ndl.Tensor]:
    """One epoch of stochastic gradient descent for the network relu(X @ W1) @ W2, in the order of the
    examples.

    Parameters
    ----------
    X : numpy.ndarray, shape (examples, inputs)
    y : numpy.ndarray of integers, shape (examples,)
    W1 : Tensor, shape (inputs, hidden)
    W2 : Tensor, shape (hidden, classes)
    lr : float
        The learning rate.
    batch : int
        Examples per step.

    Returns
    -------
    tuple of Tensor
        The new W1 and W2; the given ones stay as they are.
    """
    W1, W2 = ndl.Tensor(W1), ndl.Tensor(W2)
    optimizer = ndl.optim.SGD([W1, W2], lr=lr)
    for start in range(0, len(X), batch):
        inputs = ndl.Tensor(X[start : start + batch], device=W1.device, dtype=W1.dtype, requires_grad=False)
        targets = ndl.init.one_hot(W2.shape[1], y[start : start + batch], device=W1.device, dtype=W2.dtype)
        loss = softmax_loss(ndl.relu(inputs @ W1) @ W2, targets)
        loss.backward(create_graph=False)
        optimizer.step()
    return W1, W2


def loss_err(h: ndl.Tensor, y: np.ndarray) -> tuple[np.ndarray, float]:
    """The softmax loss and the share of wrong predictions of the logits `h` for the labels `y`."""
    y_one_hot = ndl.init.one_hot(h.shape[-1], y, device=h.device, dtype=h.dtype)
    return softmax_loss(h, y_one_hot).numpy(), np.mean(h.numpy().argmax(axis=1) != y)
