"""A training step on the stand-in: it copies nothing to the host, and waits for nothing."""

import numpy as np
import on_stand_in
import pytest

counts = on_stand_in.counts

import needle as ndl  # noqa: E402
from needle import nn, optim  # noqa: E402

CUDA = ndl.cuda()
rng = np.random.default_rng(0)


def training(model, optimizer, x, y, dropped=0):
    """A few steps, which upload nothing but the random numbers of so many layers of dropout."""

    def step():
        loss = nn.SoftmaxLoss()(model(x), y)
        loss.backward(create_graph=False)
        optimizer.step()
        return loss

    losses = [step()]
    downloads, waits, uploads = counts.downloads, counts.waits, counts.uploads
    losses += [step() for _ in range(3)]
    assert counts.downloads == downloads, "numbers came to the host"
    assert counts.waits == waits, "the host waited"
    assert counts.uploads == uploads + 3 * dropped
    assert losses[-1].numpy() < losses[0].numpy()


def tensor(values):
    return ndl.Tensor(values, device=CUDA, requires_grad=False)


def linear(a, b):
    return nn.Linear(a, b, device=CUDA, rng=rng)


x, y = tensor(rng.normal(size=(12, 5))), tensor(rng.integers(0, 3, 12))
model = nn.Sequential(
    linear(5, 8), nn.BatchNorm1d(8, device=CUDA), nn.ReLU(), nn.Dropout(0.1, rng=rng), linear(8, 3)
)
training(model, optim.SGD(model.parameters(), lr=0.05, momentum=0.5), x, y, dropped=1)
model = nn.Sequential(linear(5, 8), nn.Tanh(), nn.LayerNorm1d(8, device=CUDA), linear(8, 3))
training(model, optim.Adam(model.parameters(), lr=0.05, weight_decay=0.01), x, y)
tokens = tensor(rng.integers(0, 7, (12, 1)))
model = nn.Sequential(nn.Embedding(7, 8, device=CUDA), nn.Flatten(), linear(8, 3))
training(model, optim.Adam(model.parameters(), lr=0.05), tokens, y)

# A Tensor of an array that is on the GPU is copied there.
downloads, uploads = counts.downloads, counts.uploads
ndl.Tensor(x.realize_cached_data(), device=CUDA)
assert (counts.downloads, counts.uploads) == (downloads, uploads)

# A label that names no class is told when numbers come to the host, or at once if one asks for that.
wrong = tensor([0, 1, 3] * 4)
loss = nn.SoftmaxLoss()(linear(5, 3)(x), wrong)
with pytest.raises(IndexError, match=r"classes must lie in 0\.\.2 .* got 0\.0\.\.3\.0"):
    loss.numpy()
loss.numpy()  # once
CUDA.checks.at_once = True
with pytest.raises(IndexError, match=r"Embedding: needs whole numbers in 0\.\.6, got 9\.0\.\.9\.0"):
    nn.Embedding(7, 8, device=CUDA)(tensor([[9]]))
