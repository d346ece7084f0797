"""One step of stochastic gradient descent of a small network, as one would write it in each library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

import needle as ndl
from needle import nn, optim

from .timing import Case, torch

LEARNING_RATE = 1e-4  # small: however often a contender runs, the loss stays comparable


def cases() -> Iterator[Case]:
    """Yield the lines of this group."""
    yield training_step((2, 8, 8, 2), batch=10)
    yield training_step((784, 100, 10), batch=100)


def training_step(sizes: tuple[int, ...], batch: int) -> Case:
    """Forward, softmax loss, backward and update of a ReLU network with layers of these sizes."""
    rng = np.random.default_rng(0)
    inputs = rng.random((batch, sizes[0]), dtype="float32")
    labels = rng.integers(sizes[-1], size=batch)
    weights = [rng.normal(0, m**-0.5, (m, n)).astype("float32") for m, n in pairwise(sizes)]
    data = (inputs, labels, weights)
    contenders = {"needle": needle_step(*data), "NumPy": numpy_step(*data)}
    if torch:
        contenders["torch"] = torch_step(*data)
    return Case(f"training step {'-'.join(map(str, sizes))}, batch {batch}", contenders)


def needle_step(inputs, labels, weights) -> Callable:
    """Return the step, written with modules and an optimiser."""
    layers: list[nn.Module] = []
    for weight in weights:
        layers += [nn.Linear(*weight.shape), nn.ReLU()]
        layers[-2].weight.data = ndl.Tensor(weight)
        layers[-2].bias.data = ndl.zeros(1, weight.shape[1])
    model = nn.Sequential(*layers[:-1])
    return needle_training(model, optim.SGD(model.parameters(), lr=LEARNING_RATE), inputs, labels)


def needle_training(model, optimizer, inputs, labels) -> Callable:
    """Return a step of training: forward, softmax loss, backward, update."""
    loss_of = nn.SoftmaxLoss()
    x = ndl.Tensor(inputs, requires_grad=False)

    def step():
        loss = loss_of(model(x), labels)
        loss.backward(create_graph=False)
        optimizer.step()
        return loss

    return step


def numpy_step(inputs, labels, weights) -> Callable:
    """Return the step with its gradient derived by hand."""
    weights = [weight.copy() for weight in weights]
    biases = [np.zeros((1, weight.shape[1]), "float32") for weight in weights]
    targets = np.eye(weights[-1].shape[1], dtype="float32")[labels]

    def step():
        activations = [inputs]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            activations.append(np.maximum(activations[-1] @ weight + bias, 0))
        logits = activations[-1] @ weights[-1] + biases[-1]

        shifted = logits - logits.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        sums = exponentials.sum(axis=1, keepdims=True)
        loss = (np.log(sums).sum() - (shifted * targets).sum()) / len(inputs)

        gradient = (exponentials / sums - targets) / len(inputs)
        for i in reversed(range(len(weights))):
            below = gradient @ weights[i].T * (activations[i] > 0) if i else None
            weights[i] -= LEARNING_RATE * (activations[i].T @ gradient)
            biases[i] -= LEARNING_RATE * gradient.sum(axis=0, keepdims=True)
            gradient = below
        return loss

    return step


def torch_step(inputs, labels, weights) -> Callable:
    """Return the step, written with modules and an optimiser."""
    layers = []
    for weight in weights:
        layer = torch.nn.Linear(*weight.shape)
        layer.weight.data = torch.tensor(weight.T).contiguous()
        layer.bias.data.zero_()
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    return torch_training(model, torch.optim.SGD(model.parameters(), lr=LEARNING_RATE), inputs, labels)


def torch_training(model, optimizer, inputs, labels) -> Callable:
    """Return the same step of training in PyTorch."""
    loss_of = torch.nn.CrossEntropyLoss()
    x, y = torch.tensor(inputs), torch.tensor(labels)

    def step():
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step
