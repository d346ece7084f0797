"""Train a small network on a toy dataset, in steps small enough to watch.

It knows nothing of the app, so it works in a notebook too::

    trainer = Trainer(Settings(dataset="spiral", hidden=(16, 16)))
    while trainer.epochs < 400:
        trainer.epoch()
    trainer.figures.test_error
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import needle as ndl
from needle import Tensor, cpu, init, nn, no_grad, optim
from needle.data import toy

from .settings import ACTIVATIONS, OPTIMISERS, Settings

__all__ = ["Figures", "History", "Trainer", "grid"]

#: Settings that may change while a network learns; any other change needs a new `Trainer`.
LIVE_SETTINGS = {"learning_rate", "batch_size"}


class Figures(NamedTuple):
    """How good the network is: the mean of ½ (output - label)², and the share of points on the wrong side."""

    train_loss: float
    test_loss: float
    train_error: float
    test_error: float


class History:
    """The losses over the epochs, kept short: once there are `capacity` entries, every second one goes.

    Parameters
    ----------
    capacity : int
        The most entries to keep besides the newest, which is always there.
    """

    def __init__(self, capacity: int = 400) -> None:
        self.capacity = capacity
        self._stride = 1
        self._kept: list[tuple[float, float, float]] = []
        self._newest: tuple[float, float, float] | None = None

    def add(self, epoch: int, train_loss: float, test_loss: float) -> None:
        """Note the losses after an epoch; epochs come in order."""
        self._newest = (epoch, train_loss, test_loss)
        if epoch % self._stride:
            return
        self._kept.append(self._newest)
        if len(self._kept) > self.capacity:
            self._stride *= 2
            self._kept = [entry for entry in self._kept if entry[0] % self._stride == 0]

    def rows(self) -> np.ndarray:
        """Epochs, train losses, test losses: an array of shape (3, entries), float32."""
        entries = (
            self._kept if not self._kept or self._kept[-1] == self._newest else [*self._kept, self._newest]
        )
        return np.array(entries, dtype=np.float32).reshape(-1, 3).T


class Trainer:
    """A network, its data and its optimiser.

    The network is a `needle.nn.Sequential` of layers, each a `Sequential` of a `Linear` and its activation.
    The steps of a training are compiled in the background: after a few seconds they take far less time.
    All randomness comes from the settings' seed, in three independent streams: the data, the first weights
    and the order of the batches.

    Parameters
    ----------
    settings : Settings
        What to learn, with which network and how.

    Attributes
    ----------
    model : needle.nn.Sequential
        Maps points of shape (n, 2) to outputs of shape (n, 1) in (-1, 1); the sign is the predicted class.
    train, test : tuple of numpy.ndarray
        Points of shape (n, 2) and labels of shape (n,).
    steps, epochs : int
        Training steps and complete epochs so far.
    figures : Figures
        As they were after the last complete epoch.
    history : History
        The losses after every epoch so far, thinned.
    trouble : str or None
        Why the training stands still, in words: it has diverged, or all gradients are 0. None while it runs.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings = settings or Settings()
        data_rng, weight_rng, self._order_rng = (
            np.random.default_rng([settings.seed, stream]) for stream in range(3)
        )
        points, labels = toy.DATASETS[settings.dataset](settings.points, settings.noise, data_rng)
        self.train, self.test = toy.train_test_split(points, labels, settings.train_share, data_rng)
        self._all_points = _constant(np.concatenate([self.train[0], self.test[0]]))
        self._order = np.arange(len(self.train[0]))
        self._position = len(self._order)  # where the next batch begins in `_order`

        self.model = _network(settings, weight_rng)
        self.optimizer = OPTIMISERS[settings.optimiser](self.model.parameters(), lr=settings.learning_rate)
        self._learn_from = ndl.jit(_learning(self.model, self.optimizer), background=True)

        self.steps = self.epochs = 0
        self._speed = 0.0  # steps a second, as far as is known
        self.history = History()
        self.trouble: str | None = None
        self._measure()

    def retune(self, settings: Settings) -> bool:
        """Go on with other settings, if a running training can take them over: see `LIVE_SETTINGS`.

        Returns
        -------
        bool
            False if these settings need a new `Trainer`. Then nothing has changed.
        """
        changed = {
            field.name
            for field in dataclasses.fields(settings)
            if getattr(settings, field.name) != getattr(self.settings, field.name)
        }
        if not changed <= LIVE_SETTINGS:
            return False
        self.settings = settings
        self.optimizer.lr = settings.learning_rate
        self._speed = 0.0
        return True

    def loss(self, points: Tensor, labels: Tensor) -> Tensor:
        """The mean of ½ (output - label)², as a graph.

        Parameters
        ----------
        points : Tensor
            Shape (n, 2).
        labels : Tensor
            Shape (n, 1).
        """
        return _half_squares(self.model(points), labels)

    def graph(self, size: int = 2) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of the first few training points, and names for the Tensors on the way, to be drawn.

        Parameters
        ----------
        size : int
            How many points.

        Returns
        -------
        tuple
            The loss, and a dict of ``x`` and ``y`` (points and labels), ``W1``, ``b1``, ``h1`` (the first
            layer's weights, bias and result) and so on, ``output`` and ``loss``. Their gradients are those of
            this loss.
        """
        points, labels = self.train
        value = _constant(points[:size])
        names = {"x": value, "y": _constant(labels[:size, None])}
        for number, layer in enumerate(self.model.modules, start=1):
            weight, bias = layer.parameters()
            value = layer(value)
            names |= {f"W{number}": weight, f"b{number}": bias, f"h{number}": value}
        names["output"] = names.pop(f"h{len(self.model.modules)}")
        names["loss"] = _half_squares(value, names["y"])
        names["loss"].backward(create_graph=False)  # replaces what the last batch has left
        return names["loss"], names

    def step(self) -> None:
        """Learn from the next batch. After the last batch of an epoch, measure the figures."""
        self._learn(until=-math.inf)

    def epoch(self, at_most: float = math.inf) -> Figures:
        """Learn from the remaining batches of the current epoch, for `at_most` seconds at the longest."""
        target = self.epochs + 1
        deadline = time.perf_counter() + at_most
        while self.epochs < target and not self.trouble:
            self._learn(deadline)
            if time.perf_counter() >= deadline:
                break
        return self.figures

    def run_for(self, seconds: float) -> int:
        """Learn for about so many seconds, at least one step. Returns the number of steps."""
        deadline = time.perf_counter() + seconds
        before = self.steps
        while not self.trouble:
            self._learn(deadline)
            if time.perf_counter() >= deadline:
                break
        return self.steps - before

    def wait(self) -> None:
        """Wait until the steps are compiled that have been made so far."""
        self._learn_from.wait()

    def _learn(self, until: float) -> None:
        """Learn from the next batches of an epoch: as many as there seems to be time for, at least one."""
        if self.trouble:
            return
        began = time.perf_counter()
        if self._position >= len(self._order):
            self._order = self._order_rng.permutation(len(self._order))
            self._position = 0
        rest = self._order[self._position :]
        size = min(self.settings.batch_size, len(rest))
        steps = int(max(1, min(len(rest) // size, self._speed and self._speed * (until - began))))
        chosen = rest[: steps * size].reshape(steps, size)
        points, labels = self.train
        with np.errstate(all="ignore"):  # numbers that overflow are reported by `trouble`, in words
            ndl.scan(self._learn_from, _constant(points[chosen]), _constant(labels[chosen][:, :, None]))
        self._speed = steps / (time.perf_counter() - began)
        self.steps += steps
        self._position += chosen.size
        if self._position >= len(self._order):
            self.epochs += 1
            self._measure()

    def activations(self, points: np.ndarray | Tensor) -> list[np.ndarray]:
        """The output of every layer at some points.

        Parameters
        ----------
        points : array or Tensor
            Shape (n, 2).

        Returns
        -------
        list of numpy.ndarray
            One array of shape (n, neurons) for each layer; the last one is the network's output, (n, 1).
        """
        value = points if isinstance(points, Tensor) else _constant(points)
        results = []
        with no_grad(), np.errstate(all="ignore"):
            for layer in self.model.modules:
                value = layer(value)
                results.append(value.numpy())
        return results

    def predict(self, points: np.ndarray | Tensor) -> np.ndarray:
        """The network's output at points of shape (n, 2): shape (n,), in (-1, 1)."""
        value = points if isinstance(points, Tensor) else _constant(points)
        with no_grad(), np.errstate(all="ignore"):
            return self.model(value).numpy()[:, 0]

    def _measure(self) -> None:
        outputs = self.predict(self._all_points)
        split = len(self._order)
        train_loss, train_error = _quality(outputs[:split], self.train[1])
        test_loss, test_error = _quality(outputs[split:], self.test[1])
        self.figures = Figures(train_loss, test_loss, train_error, test_error)
        way_out = f"Choose a learning rate below {self.settings.learning_rate:g} and reset."
        if not (math.isfinite(train_loss) and math.isfinite(test_loss)):
            self.trouble = (
                f"Training diverged in epoch {self.epochs}: the loss is not a finite number. {way_out}"
            )
            return
        self.history.add(self.epochs, train_loss, test_loss)
        if train_error and np.all(np.abs(outputs[:split]) == 1):
            self.trouble = (
                f"Training has been stuck since epoch {self.epochs}: every output is exactly −1 or +1, "
                f"so all gradients are 0. {way_out}"
            )


def grid(resolution: int) -> Tensor:
    """The centres of resolution x resolution cells of the plane, row by row from the upper left corner.

    Returns
    -------
    Tensor
        Shape (resolution², 2).
    """
    low, high = toy.DOMAIN
    centres = low + (high - low) * (np.arange(resolution) + 0.5) / resolution
    x1, x2 = np.meshgrid(centres, centres[::-1])
    return _constant(np.stack([x1.ravel(), x2.ravel()], axis=1))


def _network(settings: Settings, rng: np.random.Generator) -> nn.Sequential:
    """Layers with Glorot's first weights and biases of 0: from there, small tanh networks learn reliably."""
    sizes = [2, *settings.hidden, 1]
    activations = [ACTIVATIONS[settings.activation]] * len(settings.hidden) + [nn.Tanh]
    layers = []
    for fan_in, fan_out, activation in zip(sizes, sizes[1:], activations, strict=False):
        linear = nn.Linear(fan_in, fan_out, device=cpu(), rng=rng)
        weight, bias = linear.parameters()
        weight.data = init.xavier_uniform(fan_in, fan_out, device=cpu(), rng=rng)
        bias.data = init.zeros(1, fan_out, device=cpu())
        layers.append(nn.Sequential(linear, activation()))
    return nn.Sequential(*layers)


def _learning(model: nn.Module, optimizer: optim.Optimizer) -> Callable[[Tensor, Tensor], None]:
    """A function that learns from a batch of points and their labels.

    It reaches the model and the optimiser, and not the trainer: that changes with each step, and then a
    function is traced again.
    """

    def learn(points: Tensor, labels: Tensor) -> None:
        _half_squares(model(points), labels).backward(create_graph=False)
        optimizer.step()

    return learn


def _half_squares(outputs: Tensor, labels: Tensor) -> Tensor:
    return ((outputs - labels) ** 2).sum() * (0.5 / labels.shape[0])


def _quality(outputs: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    loss = float(np.mean(0.5 * (outputs - labels) ** 2))
    return loss, float(np.mean((outputs > 0) != (labels > 0)))


def _constant(array: np.ndarray) -> Tensor:
    return Tensor(array, device=cpu(), dtype="float32", requires_grad=False)
