"""Forward and backward pass of the layers that networks are made of, and a step of a residual network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import needle as ndl
from needle import nn, optim
from needle.apps.mlp_resnet import MLPResNet

from . import in_torch
from .timing import Case, torch
from .training import needle_training

LEARNING_RATE = 1e-9  # so small that all contenders keep the same weights, however often they run


def cases() -> Iterator[Case]:
    """Yield the lines of this group."""
    yield residual_step(inputs=784, hidden=100, blocks=3, batch=100)
    yield convolution(batch=16, size=32, channels=32)
    yield long_short_term_memory(steps=32, batch=16, inputs=64, hidden=128)
    yield attention(batch=8, steps=128, width=64, heads=4)


def residual_step(inputs: int, hidden: int, blocks: int, batch: int) -> Case:
    """Forward, softmax loss, backward and Adam of the residual network of `needle.apps.mlp_resnet`."""
    rng = np.random.default_rng(0)
    x, y = rng.random((batch, inputs), dtype="float32"), rng.integers(10, size=batch)
    np.random.seed(0)
    model = MLPResNet(inputs, hidden, blocks, drop_prob=0.0)
    weights = [p.numpy().copy() for p in model.parameters()]
    step = needle_training(model, optim.Adam(model.parameters(), lr=LEARNING_RATE))
    contenders: dict[str, Callable] = {"needle": partial(step, ndl.Tensor(x, requires_grad=False), y)}
    if torch:
        step = in_torch.residual_step(weights, LEARNING_RATE)
        contenders["torch"] = partial(step, torch.tensor(x), torch.tensor(y))
    return Case(f"residual MLP {inputs}-{hidden}, {blocks} blocks, batch {batch}", contenders)


def convolution(batch: int, size: int, channels: int) -> Case:
    """A convolution with a 3 x 3 kernel and its gradients by images and kernel."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(batch, size, size, channels)).astype("float32")
    kernel = rng.normal(size=(3, 3, channels, channels)).astype("float32")
    a, b = ndl.Tensor(images), ndl.Tensor(kernel)

    def needle():
        ndl.conv(a, b, padding=1).sum().backward(create_graph=False)
        return b.grad

    contenders: dict[str, Callable] = {"needle": needle}
    if torch:
        x = torch.tensor(images.transpose(0, 3, 1, 2).copy(), requires_grad=True)
        weight = torch.tensor(kernel.transpose(3, 2, 0, 1).copy(), requires_grad=True)

        def in_torch():
            x.grad = weight.grad = None
            torch.nn.functional.conv2d(x, weight, padding=1).sum().backward()
            return weight.grad.permute(2, 3, 1, 0)

        contenders["torch"] = in_torch
    return Case(f"convolution 3x3, {channels} to {channels}, {size}x{size}, batch {batch}", contenders)


def long_short_term_memory(steps: int, batch: int, inputs: int, hidden: int) -> Case:
    """An LSTM over a sequence, and the gradients by its weights and the sequence."""
    np.random.seed(0)
    model = nn.LSTM(inputs, hidden)
    sequence = np.random.default_rng(0).normal(size=(steps, batch, inputs)).astype("float32")
    x = ndl.Tensor(sequence)

    def needle():
        model(x)[0].sum().backward(create_graph=False)
        return x.grad

    contenders: dict[str, Callable] = {"needle": needle}
    if torch:
        other, cell = torch.nn.LSTM(inputs, hidden), model.lstm_cells[0]
        for name, weight in [
            ("weight_ih_l0", cell.W_ih),
            ("weight_hh_l0", cell.W_hh),
            ("bias_ih_l0", cell.bias_ih),
            ("bias_hh_l0", cell.bias_hh),
        ]:
            getattr(other, name).data = torch.tensor(weight.numpy().T).contiguous()
        leaf = torch.tensor(sequence, requires_grad=True)

        def in_torch():
            leaf.grad = None
            other.zero_grad()
            other(leaf)[0].sum().backward()
            return leaf.grad

        contenders["torch"] = in_torch
    return Case(f"LSTM, hidden {hidden}, {steps} steps, batch {batch}", contenders)


def attention(batch: int, steps: int, width: int, heads: int) -> Case:
    """Causal self-attention with several heads, and the gradients by its weights and its input."""
    np.random.seed(0)
    model = nn.AttentionLayer(width, heads, width // heads, prenorm=False, bias=True)  # as torch's
    tokens = np.random.default_rng(0).normal(size=(batch, steps, width)).astype("float32")
    x = ndl.Tensor(tokens)

    def needle():
        model(x).sum().backward(create_graph=False)
        return x.grad

    contenders: dict[str, Callable] = {"needle": needle}
    if torch:
        leaf = torch.tensor(tokens, requires_grad=True)
        weights = [torch.tensor(p.numpy(), requires_grad=True) for p in model.parameters()]
        forward = in_torch.attention_of(heads)

        def gradient():
            leaf.grad = None
            for weight in weights:
                weight.grad = None
            forward(leaf, weights).sum().backward()
            return leaf.grad

        contenders["torch"] = gradient
    return Case(f"attention, {heads} heads, width {width}, {steps} steps, batch {batch}", contenders)
