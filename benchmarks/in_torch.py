"""What the groups compare needle with, written in PyTorch as one would: see `in_numpy`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .in_numpy import Arrays, batches, playground_data, playground_orders
from .timing import torch


def constant(array: np.ndarray):
    """Return an array as this library's functions take it."""
    return torch.tensor(array)


def training_step(model, optimizer) -> Callable:
    """Forward, softmax loss, backward and update."""
    loss_of = torch.nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp_step(weights: Arrays, lr: float, optimizer: str = "SGD") -> Callable:
    """A ReLU network with softmax loss and an optimiser of torch; the biases begin at 0."""
    layers = []
    for weight in weights:
        layers += [torch.nn.Linear(*weight.shape), torch.nn.ReLU()]
        _fill(layers[-2], [weight, np.zeros(weight.shape[1], "float32")])
    model = torch.nn.Sequential(*layers[:-1])
    return training_step(model, getattr(torch.optim, optimizer)(model.parameters(), lr=lr))


def _fill(model, parameters: Arrays) -> None:
    """Give a model needle's parameters: linear weights turned, kernels with the channels first."""
    for parameter, array in zip(model.parameters(), parameters, strict=True):
        if array.ndim == 4:
            array = array.transpose(3, 2, 0, 1)
        elif array.ndim == 2 and array.shape[0] > 1:
            array = array.T
        parameter.data = torch.tensor(array.copy()).reshape(parameter.shape)


def six_operators(x: np.ndarray, y: np.ndarray) -> Callable:
    """tanh(x) * y + exp(-x) * x."""
    x, y = constant(x), constant(y)
    return lambda: torch.tanh(x) * y + torch.exp(-x) * x


def softmax(x: np.ndarray) -> Callable:
    """A softmax over rows."""
    x = constant(x)
    return lambda: torch.softmax(x, 1)


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> Callable:
    """Layer normalisation of rows."""
    x, weight, bias = constant(x), constant(weight), constant(bias)
    return lambda: torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


def attention(x: np.ndarray, parameters: Arrays, heads: int) -> Callable:
    """Causal self-attention with several heads."""
    run = attention_of(heads)
    tokens, weights = constant(x), [constant(p) for p in parameters]
    return lambda: run(tokens, weights)


def attention_of(heads: int) -> Callable:
    """The function itself, of the tokens and the weights."""

    def run(x, weights):
        wq, bq, wk, bk, wv, bv, wo, bo = weights
        batch, time, width = x.shape
        q, k, v = (
            (x @ w + b).reshape(batch, time, heads, -1).transpose(1, 2)
            for w, b in ((wq, bq), (wk, bk), (wv, bv))
        )
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, time, width) @ wo + bo

    return run


def dot_product_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Callable:
    """Attention of heads: softmax(q kᵀ / √dim) v, each of shape (batch, heads, time, dim)."""
    q, k, v = constant(q), constant(k), constant(v)
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


def cnn_step(parameters: Arrays, lr: float) -> Callable:
    """Two convolutions, each with ReLU and max pooling, and a linear layer; stochastic gradient descent."""
    layers = []
    for kernel in parameters[:4:2]:
        channels = kernel.shape[2:]
        layers += [torch.nn.Conv2d(*channels, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(*parameters[4].shape))
    _fill(model, parameters)
    return training_step(model, torch.optim.SGD(model.parameters(), lr=lr))


def resnet9_step(parameters: Arrays, lr: float) -> Callable:
    """The residual network of `needle.apps.models` for photographs of 32 x 32 pixels; Adam."""

    def block(inputs: int, outputs: int, kernel: int, stride: int):
        convolution = torch.nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2)
        return torch.nn.Sequential(convolution, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU())

    def residual(channels: int):
        return _residual(block(channels, channels, 3, 1), block(channels, channels, 3, 1))

    model = torch.nn.Sequential(
        block(3, 16, 7, 4),
        block(16, 32, 3, 2),
        residual(32),
        block(32, 64, 3, 2),
        block(64, 128, 3, 2),
        residual(128),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 128),
        torch.nn.ReLU(),
        torch.nn.Linear(128, 10),
    )
    _fill(model, parameters)
    return training_step(model, torch.optim.Adam(model.parameters(), lr=lr))


def _residual(*layers):
    """Layers to whose result their input is added."""

    class Residual(torch.nn.Sequential):  # here, because there may be no torch
        def forward(self, x):
            return x + super().forward(x)

    return Residual(*layers)


def residual_step(parameters: Arrays, lr: float) -> Callable:
    """Linear, ReLU, residual blocks of two linear layers with batch normalisation, linear; Adam."""
    weight, _, *inner, last_weight, _ = parameters
    layers = [torch.nn.Linear(*weight.shape), torch.nn.ReLU()]
    for i in range(0, len(inner), 8):
        dim, hidden = inner[i].shape
        norms = torch.nn.BatchNorm1d(hidden), torch.nn.BatchNorm1d(dim)
        linears = torch.nn.Linear(dim, hidden), torch.nn.Linear(hidden, dim)
        layers += [_residual(linears[0], norms[0], torch.nn.ReLU(), linears[1], norms[1]), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(*last_weight.shape))
    _fill(model, parameters)
    return training_step(model, torch.optim.Adam(model.parameters(), lr=lr))


def playground_epoch(trainer) -> Callable:
    """An epoch as the playground's trainer learns it, with its figures at the end; it returns the first."""
    parameters = [p.numpy() for p in trainer.model.parameters()]
    layers = []
    for weight in parameters[::2]:
        layers += [torch.nn.Linear(*weight.shape), torch.nn.Tanh()]
    model = torch.nn.Sequential(*layers)
    _fill(model, parameters)
    optimizer = torch.optim.SGD(model.parameters(), lr=trainer.settings.learning_rate)
    x, y, points, labels = (constant(array) for array in playground_data(trainer))
    orders = playground_orders(trainer)

    def quality(outputs, labels):
        wrong = (outputs > 0) != (labels > 0)
        return (0.5 * (outputs - labels) ** 2).mean().item(), wrong.float().mean().item()

    def epoch():
        order = torch.from_numpy(next(orders))
        for chosen in batches(order, trainer.settings.batch_size):
            optimizer.zero_grad()
            loss = ((model(x[chosen]) - y[chosen]) ** 2).sum() * (0.5 / len(chosen))
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            outputs = model(points)
            train, _ = [quality(outputs[part], labels[part]) for part in (slice(len(x)), slice(len(x), None))]
        return train[0]

    return epoch
