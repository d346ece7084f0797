"""A small network that learns to read handwritten digits.

It knows nothing of the app, so it works in a notebook too::

    reader = DigitReader("convolutions")
    reader.learn_for(seconds=2.0)
    reader.read(data.digits(train=False)[0][0][:, :, 0])
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import needle as ndl
from needle import Tensor, cpu, data, nn, no_grad, optim

__all__ = ["NETWORKS", "SHEET", "DigitReader", "Reading", "as_digit", "test_digits"]

NETWORKS = {"convolutions": "Convolution", "layers": "Fully connected"}

BATCH = 32
LEARNING_RATE = 0.004
CHANNELS = 8
HIDDEN = 16
SIDE = 8  # pixels of a digit
SHEET = 32  # pixels of the sheet that one draws on


class Reading(NamedTuple):
    """What a network makes of an image.

    Attributes
    ----------
    shares : array (10,)
        How probable each digit is.
    hidden : array
        After the first layer and its ReLU: a map (channels, 8, 8) for convolutions, else (units,).
    """

    shares: np.ndarray
    hidden: np.ndarray


class DigitReader:
    """A network, its optimiser, and how far it is.

    Its steps are compiled in the background: after a few seconds they take far less time.

    Parameters
    ----------
    network : str
        One of `NETWORKS`: with 8 kernels of 3 × 3 pixels, or with 16 hidden units.
    seed : int
        Decides the first weights and the order of the digits.

    Attributes
    ----------
    model : needle.nn.Sequential
        From images (n, 1, 8, 8) to logits (n, 10).
    epochs : int
        So many times it has seen every digit.
    losses : list of float
        The mean loss of each epoch.
    accuracies : list of float
        The share of the test digits that it reads rightly: at first, and after each epoch.
    """

    def __init__(self, network: str = "convolutions", seed: int = 0) -> None:
        weight_rng, self._order_rng = (np.random.default_rng([seed, stream]) for stream in range(2))
        where: dict[str, Any] = {"device": cpu(), "rng": weight_rng}
        self._first: nn.Conv | nn.Linear
        if network == "convolutions":
            self._first, features = nn.Conv(1, CHANNELS, 3, **where), CHANNELS * (SIDE // 2) ** 2
            layers = [self._first, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        else:
            self._first, features = nn.Linear(SIDE**2, HIDDEN, **where), HIDDEN
            layers = [nn.Flatten(), self._first, nn.ReLU()]
        self.network = network
        self.model = nn.Sequential(*layers, nn.Linear(features, 10, **where))
        optimizer = optim.Adam(self.model.parameters(), lr=LEARNING_RATE)
        model, loss_of = self.model, nn.SoftmaxLoss()

        def learn(images: Tensor, labels: np.ndarray) -> Tensor:
            loss = loss_of(model(images), labels)
            loss.backward(create_graph=False)
            optimizer.step()
            return loss

        self._learn = ndl.jit(learn, background=True)
        self._images, self._labels = _digits(train=True)
        self._waiting = np.zeros((0, BATCH), int)  # the batches of this epoch that are still to come
        self._losses: list[float] = []  # of the batches of this epoch
        self.losses: list[float] = []
        self.accuracies = [self._accuracy()]

    @property
    def epochs(self) -> int:
        return len(self.losses)

    @property
    def progress(self) -> float:
        """How far it is, in epochs."""
        return self.epochs + len(self._losses) * BATCH / len(self._images)

    def learn_for(self, seconds: float, until: int | None = None) -> None:
        """Learn for about so many seconds, at least one step, but no longer than until an epoch is complete.

        Parameters
        ----------
        seconds : float
        until : int, optional
            The number of the epoch with which it stops.
        """
        deadline = time.perf_counter() + seconds
        while until is None or self.epochs < until:
            self._step()
            if time.perf_counter() >= deadline:
                break

    def _step(self) -> None:
        """Learn from the next batch. A few digits are left out of each epoch, so that batches are alike."""
        if not len(self._waiting):
            count = len(self._images) // BATCH
            self._waiting = self._order_rng.permutation(len(self._images))[: count * BATCH].reshape(-1, BATCH)
        chosen, self._waiting = self._waiting[0], self._waiting[1:]
        loss = self._learn(_constant(self._images[chosen]), self._labels[chosen])
        self._losses.append(loss.item())
        if not len(self._waiting):
            self.losses.append(float(np.mean(self._losses)))
            self._losses = []
            self.accuracies.append(self._accuracy())

    def wait(self) -> None:
        """Wait until the steps are compiled that have been made so far."""
        self._learn.wait()

    def _accuracy(self) -> float:
        images, labels = _digits(train=False)
        with no_grad():
            guesses = self.model(_constant(images)).numpy().argmax(axis=1)
        return float(np.mean(guesses == labels))

    def read(self, image: np.ndarray) -> Reading:
        """What the network makes of an image of shape (8, 8), from 0 (paper) to 1 (ink)."""
        value = _constant(np.asarray(image, "float32")[None, None])
        hidden = np.zeros(0)
        with no_grad():
            for part in self.model.modules:
                value = part(value)
                if isinstance(part, nn.ReLU):
                    hidden = value.numpy()[0]
            shares = ndl.ops.softmax(value, 1).numpy()[0]
        return Reading(shares, hidden)

    def kernels(self) -> np.ndarray:
        """What the first layer looks for: the weights of each output as an image, (outputs, side, side)."""
        weight = self._first.weight.numpy()
        if self.network == "convolutions":
            return np.moveaxis(weight[:, :, 0], 2, 0)
        return weight.T.reshape(-1, SIDE, SIDE)


def as_digit(drawing: np.ndarray) -> np.ndarray:
    """A drawing as the digits of the data were made: as large as it can be, in the middle, then 8 × 8 pixels.

    Each pixel is the mean of a block, as in the "Optical Recognition of Handwritten Digits" (Alpaydin and
    Kaynak, 1998).

    Parameters
    ----------
    drawing : array (32, 32)
        From 0 (paper) to 1 (ink).
    """
    rows, columns = (np.flatnonzero((drawing > 0.3).any(axis=axis)) for axis in (1, 0))
    if not rows.size:
        return np.zeros((SIDE, SIDE), "float32")
    height, width = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
    largest = max(height, width)
    centres = (np.arange(SHEET) + 0.5) / SHEET * largest - largest / 2
    ys = np.floor(centres + rows[0] + height / 2).astype(int)
    xs = np.floor(centres + columns[0] + width / 2).astype(int)
    there = ((ys >= 0) & (ys < SHEET))[:, None] & ((xs >= 0) & (xs < SHEET))
    scaled = np.where(there, drawing[np.clip(ys, 0, SHEET - 1)[:, None], np.clip(xs, 0, SHEET - 1)], 0)
    block = SHEET // SIDE
    return scaled.reshape(SIDE, block, SIDE, block).mean(axis=(1, 3)).astype("float32")


def test_digits() -> tuple[np.ndarray, np.ndarray]:
    """The digits that no network learns from: images (n, 8, 8) and labels (n,)."""
    images, labels = _digits(train=False)
    return images[:, 0], labels


@cache
def _digits(train: bool) -> tuple[np.ndarray, np.ndarray]:
    images, labels = data.digits(train)[:]
    return np.moveaxis(images, 3, 1), labels


def _constant(array: np.ndarray) -> Tensor:
    return Tensor(array, device=cpu(), dtype="float32", requires_grad=False)
