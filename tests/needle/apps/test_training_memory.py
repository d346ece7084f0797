"""From the second step of training to the last, neither Tensors nor bytes become more."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

import needle as ndl
from needle import autograd, nn, optim
from needle.backend_ndarray import memory

# What a step leaves behind shows after a few steps; a thousand are for `make test-slow`.
STEPS = [40, pytest.param(1000, marks=pytest.mark.slow)]
if "NUMBA_ENABLE_CUDASIM" in os.environ:  # one step takes the simulator about a second
    STEPS = [10]
DEVICES = [d for d in ndl.all_devices() if d.enabled()]


class Sequences(nn.Module):
    """Numbers to vectors, through an LSTM and attention, to classes."""

    def __init__(self, **kwargs):
        self.embedding = nn.Embedding(5, 4, **kwargs)
        self.lstm = nn.LSTM(4, 4, **kwargs)
        self.layer = nn.TransformerEncoderLayer(4, 2, dropout=0.1, **kwargs)
        self.out = nn.Linear(4, 5, **kwargs)

    def forward(self, x):
        hidden, _ = self.lstm(self.embedding(x))
        mixed = self.layer(hidden.permute((1, 0, 2)), causal=True)
        return self.out(mixed.max(1))


def images(device):
    np.random.seed(0)
    model = nn.Sequential(
        *[nn.Conv(1, 2, 3, device=device), nn.BatchNorm2d(2, device=device), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 4, device=device), nn.LayerNorm1d(4, device=device)],
        *[nn.GELU(), nn.Linear(4, 3, device=device)],
    )
    X, y = np.random.rand(4, 1, 4, 4), np.random.randint(3, size=4)
    return model, ndl.Tensor(X, device=device, requires_grad=False), y


def sequences(device):
    np.random.seed(0)
    return Sequences(device=device), np.random.randint(5, size=(3, 2)), np.random.randint(5, size=2)


def dense(device):
    np.random.seed(0)
    model = nn.Sequential(
        nn.Linear(2, 4, device=device),
        nn.BatchNorm1d(4, device=device),
        nn.Tanh(),
        nn.Linear(4, 2, device=device),
    )
    X, y = np.random.rand(4, 2), np.random.randint(2, size=4)
    return model, ndl.Tensor(X, device=device, requires_grad=False), y


@pytest.mark.parametrize("problem", [dense, images, sequences])
@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("steps", STEPS)
def test_many_steps(problem, device, steps, no_gc):
    model, X, y = problem(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.SoftmaxLoss()

    def step():
        loss = loss_of(model(X), y)
        loss.backward(create_graph=False)
        optimizer.step()

    def size():
        """The bytes of all arrays, and of the blocks that wait for large ones."""
        arrays = [x for x in gc.get_objects() if type(x) is device.mod.Array]
        return sum(array.size * array.dtype.itemsize for array in arrays), memory.blocks.size

    step(), step()
    tensors, before = autograd.TENSOR_COUNTER, size()
    for _ in range(steps - 2):
        step()
        assert tensors == autograd.TENSOR_COUNTER
    assert size() == before
    assert before[0] > 0
