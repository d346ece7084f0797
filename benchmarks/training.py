"""One step of stochastic gradient descent of a small network, as one would write it in each library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np

import needle as ndl
from needle import nn, optim
from needle.apps.models import ResNet9

from . import in_numpy, in_torch
from .timing import Case, torch

LEARNING_RATE = 1e-4  # small: however often a contender runs, the loss stays comparable


def cases() -> Iterator[Case]:
    """Yield the lines of this group."""
    yield training_step((2, 8, 8, 2), batch=10)
    yield training_step((784, 100, 10), batch=100)
    yield training_step((784, 500, 10), batch=128)


def training_step(sizes: tuple[int, ...], batch: int) -> Case:
    """Forward, softmax loss, backward and update of a ReLU network with layers of these sizes."""
    inputs, labels, weights = training_data(sizes, batch)
    x = ndl.Tensor(inputs, requires_grad=False)
    contenders = {
        "needle": partial(mlp_step(weights, LEARNING_RATE), x, labels),
        "NumPy": partial(in_numpy.mlp_step(weights, LEARNING_RATE), inputs, labels),
    }
    if torch:
        step = in_torch.mlp_step(weights, LEARNING_RATE)
        contenders["torch"] = partial(step, torch.tensor(inputs), torch.tensor(labels))
    return Case(step_name(sizes, batch), contenders)


def step_name(sizes: tuple[int, ...], batch: int) -> str:
    """What a line calls this step."""
    return f"training step {'-'.join(map(str, sizes))}, batch {batch}"


def training_data(sizes: tuple[int, ...], *batch: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Random inputs and labels, one for each element of `batch`, and the first weights of the layers."""
    rng = np.random.default_rng(0)
    inputs = rng.random((*batch, sizes[0]), dtype="float32")
    labels = rng.integers(sizes[-1], size=batch)
    return inputs, labels, [rng.normal(0, m**-0.5, (m, n)).astype("float32") for m, n in pairwise(sizes)]


def mlp_step(weights: list[np.ndarray], lr: float, optimizer: str = "SGD", device=None) -> Callable:
    """Return ``step(x, y)``, written with modules and an optimiser; the biases begin at 0."""

    def model() -> nn.Module:
        layers: list[nn.Module] = []
        for weight in weights:
            layers += [nn.Linear(*weight.shape, device=device), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    parameters = [p for weight in weights for p in (weight, np.zeros((1, weight.shape[1]), "float32"))]
    return step_of(model, getattr(optim, optimizer), parameters, lr)


def resnet9_step(parameters: list[np.ndarray], lr: float, device=None) -> Callable:
    """Return ``step(x, y)`` of `needle.apps.models.ResNet9` with Adam."""
    return step_of(lambda: ResNet9(device=device), optim.Adam, parameters, lr)


def photographs(batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images for ResNet9 with their labels."""
    rng = np.random.default_rng(0)
    return rng.random((batch, 3, 32, 32), dtype="float32"), rng.integers(10, size=batch)


def step_of(model: Callable[[], nn.Module], optimizer: type, parameters, lr: float) -> Callable:
    """Return ``step(x, y)`` of a model that begins with these parameters."""
    network = model()
    for parameter, array in zip(network.parameters(), parameters, strict=True):
        parameter.data = ndl.Tensor(array, device=parameter.device)
    return needle_training(network, optimizer(network.parameters(), lr=lr))


def initial(model: Callable[[], nn.Module]) -> list[np.ndarray]:
    """The first parameters of a model."""
    np.random.seed(0)
    return [p.numpy().copy() for p in model().parameters()]


def tensor(array: np.ndarray, device=None) -> ndl.Tensor:
    """Data that needs no gradient."""
    return ndl.Tensor(array, dtype=array.dtype, device=device, requires_grad=False)


def needle_training(model, optimizer) -> Callable:
    """Return a step of training: forward, softmax loss, backward, update."""
    loss_of = nn.SoftmaxLoss()

    def step(x, y):
        loss = loss_of(model(x), y)
        loss.backward(create_graph=False)
        optimizer.step()
        return loss

    return step
