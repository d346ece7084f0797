"""Rows of compiled functions on the stand-in, whose warps have 32 threads and whose blocks have 256."""

import numpy as np
import on_stand_in  # noqa: F401  (the driver of this process)

import needle as ndl
from needle import nn

CUDA = ndl.cuda()


def with_gradient(f):
    def step(x, w):
        y = (f(x) * w).sum()
        y.backward()
        gradient, x.grad = x.grad, None
        return y, gradient

    return step


def same_as_numpy(make, *shape):
    """A function of rows and its gradient are those on `cpu_numpy`."""
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape) for _ in range(2))
    found = []
    for device, compiles in ((CUDA, True), (ndl.cpu_numpy(), False)):
        step = with_gradient(make(device))
        operands = [ndl.Tensor(x, device=device), ndl.Tensor(w, device=device, requires_grad=False)]
        found.append((ndl.jit(step) if compiles else step)(*operands))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-4)


for columns in (10, 100, 1024, 1500):  # a part of a warp, a warp, as much as it keeps, a block
    same_as_numpy(lambda device: ndl.softmax, 5, columns)
    same_as_numpy(lambda device, n=columns: nn.LayerNorm1d(n, device=device), 5, columns)
same_as_numpy(lambda device: nn.BatchNorm1d(64, device=device), 100, 64)
same_as_numpy(lambda device: nn.BatchNorm2d(3, device=device), 4, 3, 6, 6)
