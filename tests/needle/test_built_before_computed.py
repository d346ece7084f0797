"""A whole training step in lazy mode: it is built before anything is computed, and then equals the eager one.

`MODULES`, `LOSSES` and `OPTIMISERS` have an entry for everything that `needle.nn` and `needle.optim` offer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.autograd import Tensor, find_topo_sort
from needle.graph import Pending

SEQUENCE = (3, 2, 4)  # (time, batch, features)
IMAGES = (2, 4, 6, 6)
BLOCKS = (2, 3, 4)  # (batch, time, features)


# The inputs are still to be computed themselves, and gradients flow to them.


def data(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(1).normal(size=shape), dtype="float32") * 1


def whole(*shape: int, below: int) -> Tensor:
    numbers = np.random.default_rng(2).integers(0, below, shape)
    return Tensor(numbers, dtype="int64", requires_grad=False) * 1


def hidden() -> Tensor:
    """A mask for attention: the last key is padding."""
    return Tensor(np.arange(3) == 2, dtype="bool", requires_grad=False).reshape((1, 1, 3))


def linear() -> nn.Linear:
    return nn.Linear(4, 4, rng=0)


#: By the name of a module: how to make one, and how to call it for one Tensor.
MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[..., Any]]] = {
    "AttentionLayer": (
        lambda: nn.AttentionLayer(4, 2, 2, dropout=0.2, bias=True, rng=0),
        lambda layer: layer(data(*BLOCKS), mask=hidden()),
    ),
    "AvgPool2d": (lambda: nn.AvgPool2d(2), lambda layer: layer(data(*IMAGES))),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), lambda layer: layer(data(5, 4))),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), lambda layer: layer(data(*IMAGES))),
    "Conv": (lambda: nn.Conv(4, 2, 3, rng=0), lambda layer: layer(data(*IMAGES))),
    "Dropout": (lambda: nn.Dropout(0.3, rng=0), lambda layer: layer(data(5, 4))),
    "Embedding": (lambda: nn.Embedding(7, 4, rng=0), lambda layer: layer(whole(3, 2, below=7))),
    "Flatten": (nn.Flatten, lambda layer: layer(data(*IMAGES))),
    "GELU": (nn.GELU, lambda layer: layer(data(5, 4))),
    "GRU": (lambda: nn.GRU(4, 3, 2, rng=0), lambda layer: layer(data(*SEQUENCE))[0]),
    "GRUCell": (lambda: nn.GRUCell(4, 3, rng=0), lambda layer: layer(data(5, 4))),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda layer: layer(data(*IMAGES))),
    "Identity": (nn.Identity, lambda layer: layer(data(5, 4))),
    "LSTM": (lambda: nn.LSTM(4, 3, 2, rng=0), lambda layer: layer(data(*SEQUENCE))[0]),
    "LSTMCell": (lambda: nn.LSTMCell(4, 3, rng=0), lambda layer: layer(data(5, 4))[0]),
    "LayerNorm1d": (lambda: nn.LayerNorm1d(4), lambda layer: layer(data(5, 4))),
    "LeakyReLU": (nn.LeakyReLU, lambda layer: layer(data(5, 4))),
    "LearnedEncoding": (lambda: nn.LearnedEncoding(5, 4, rng=0), lambda layer: layer(data(*BLOCKS))),
    "Linear": (linear, lambda layer: layer(data(5, 4))),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), lambda layer: layer(data(*IMAGES))),
    "MultiHeadAttention": (
        lambda: nn.MultiHeadAttention(dropout=0.2, causal=True, rng=0),
        lambda layer: layer(*[data(2, 2, 3, 4)] * 3, hidden())[0],
    ),
    "RNN": (lambda: nn.RNN(4, 3, 2, rng=0), lambda layer: layer(data(*SEQUENCE), data(2, 2, 3))[0]),
    "RNNCell": (lambda: nn.RNNCell(4, 3, rng=0), lambda layer: layer(data(5, 4))),
    "ReLU": (nn.ReLU, lambda layer: layer(data(5, 4))),
    "Residual": (lambda: nn.Residual(linear()), lambda layer: layer(data(5, 4))),
    "Sequential": (lambda: nn.Sequential(linear(), nn.Tanh(), linear()), lambda layer: layer(data(5, 4))),
    "Sigmoid": (nn.Sigmoid, lambda layer: layer(data(5, 4))),
    "SinusoidalEncoding": (lambda: nn.SinusoidalEncoding(5, 4), lambda layer: layer(data(*BLOCKS))),
    "Softmax": (nn.Softmax, lambda layer: layer(data(5, 4))),
    "Tanh": (nn.Tanh, lambda layer: layer(data(5, 4))),
    "Transformer": (
        lambda: nn.Transformer(4, 5, 2, num_head=2, dim_head=3, dropout=0.2, sequence_len=6, rng=0),
        lambda layer: layer(data(*SEQUENCE))[0],
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(4, 2, dropout=0.2, rng=0),
        lambda layer: layer(data(*BLOCKS), data(*BLOCKS), memory_mask=hidden()),
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(4, 2, dropout=0.2, rng=0),
        lambda layer: layer(data(*BLOCKS), mask=hidden()),
    ),
    "TransformerLayer": (
        lambda: nn.TransformerLayer(4, 2, 3, 5, dropout=0.2, rng=0),
        lambda layer: layer(data(*BLOCKS)),
    ),
}

#: From logits of shape (5, 4) to the loss.
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "BCEWithLogitsLoss": lambda logits: nn.BCEWithLogitsLoss()(logits, whole(5, 4, below=2)),
    "CrossEntropyLoss": lambda logits: nn.CrossEntropyLoss(0.1, ignore_index=1, weight=[1, 2, 3, 4])(
        logits, whole(5, below=4)
    ),
    "MSELoss": lambda logits: nn.MSELoss()(logits, data(5, 4)),
    "SoftmaxLoss": lambda logits: nn.SoftmaxLoss()(logits, whole(5, below=4)),
}

OPTIMISERS: dict[str, Callable[[list], optim.Optimizer]] = {
    "Adam": lambda params: optim.Adam(params, weight_decay=0.1),
    "AdamW": lambda params: optim.AdamW(params),
    "RMSProp": lambda params: optim.RMSProp(params, momentum=0.9, weight_decay=0.1),
    "SGD": lambda params: optim.SGD(params, momentum=0.9, weight_decay=0.1, nesterov=True),
}


def test_nothing_is_forgotten():
    modules = {name for name in nn.__all__ if isinstance(getattr(nn, name), type)} - {"Module", "Parameter"}
    assert modules == {*MODULES, *LOSSES}
    kinds = {getattr(optim, name) for name in optim.__all__}
    rules = {kind.__name__ for kind in kinds if issubclass(kind, optim.Optimizer)} - {"Optimizer"}
    assert rules == {*OPTIMISERS}


def both_ways(monkeypatch, build: Callable[[], Callable[[], list[Tensor]]]) -> None:
    """Run what `build` returns eagerly and in lazy mode, where nothing may be computed while it runs."""

    def asked(self):
        raise AssertionError(f"{self.op} is computed before anybody asks for it")

    run = build()
    eager = [x.numpy() for x in run()]
    run = build()
    with ndl.lazy(), monkeypatch.context() as patch:
        patch.setattr(Pending, "realize", asked)
        lazy = run()
    assert all(x.cached_data is None for x in lazy)
    assert len(eager) == len(lazy) > 0
    for ours, expected in zip(lazy, eager, strict=True):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-5, atol=1e-6)


def step_of(
    model: nn.Module, loss_of: Callable[[], Tensor], make: Callable[[list], optim.Optimizer], clip=math.inf
) -> list[Tensor]:
    """A training step: the loss, gradients, their norm, and what became of parameters and buffers."""
    loss = loss_of()
    loss.backward()
    results = [loss, *[x.grad for x in find_topo_sort([loss]) if x.is_leaf() and x.requires_grad]]
    if parameters := model.parameters():
        optimizer = make(parameters)
        if clip < math.inf:
            norm = optimizer.clip_grad_norm(clip)  # a float, or a Tensor in lazy mode
            results.append(norm if isinstance(norm, Tensor) else Tensor(norm))
        optimizer.step()
        results += [p.detach() for p in parameters]
        results += [x for p in parameters for x in optimizer.state[p].values()]
    return results + [x for name, x in model.named_buffers() if "running" in name]


@pytest.mark.parametrize("name", MODULES)
def test_a_step_of_each_module(name, monkeypatch):
    make, call = MODULES[name]

    def build():
        model = make()
        return lambda: step_of(model, lambda: (call(model) ** 2).mean(), optim.SGD)

    both_ways(monkeypatch, build)


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_with_each_loss(name, monkeypatch):
    def build():
        model = linear()
        return lambda: step_of(model, lambda: LOSSES[name](model(data(5, 4))), optim.SGD)

    both_ways(monkeypatch, build)


@pytest.mark.parametrize("clip", [math.inf, 0.01], ids=["as it is", "clipped"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_step_of_each_optimiser(name, clip, monkeypatch):
    def build():
        model = nn.Sequential(linear(), nn.BatchNorm1d(4), nn.Tanh(), linear())
        loss_of = lambda: nn.SoftmaxLoss()(model(data(5, 4)), whole(5, below=4))  # noqa: E731
        return lambda: step_of(model, loss_of, OPTIMISERS[name], clip)

    both_ways(monkeypatch, build)
