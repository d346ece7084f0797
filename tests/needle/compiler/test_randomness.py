"""Random numbers under `jit` are those of the same calls without it."""

from __future__ import annotations

import numpy as np

import needle as ndl
from needle import nn
from needle.autograd import Tensor
from needle.compiler import CannotTrace

from .conftest import assert_close, assert_same, jit, tensor


def test_random_numbers_are_those_of_eager():
    dropout = nn.Dropout(0.3, rng=np.random.default_rng(7))
    other = nn.Dropout(0.3, rng=np.random.default_rng(7))
    g = jit(lambda x: dropout(x) + dropout(x * 2))
    x = ndl.ones(4, 5)
    for _ in range(3):
        assert_same(g(x), (other(x) + other(x * 2)).detach())


def test_random_numbers_of_the_global_generator():
    g = jit(lambda x: x + ndl.init.rand(3) * ndl.init.randn(3) + ndl.init.randb(3).astype("float32"))

    def f(x):
        return x + ndl.init.rand(3) * ndl.init.randn(3) + ndl.init.randb(3).astype("float32")

    x = tensor(3, requires_grad=False)
    found = []
    for function in (f, g):
        np.random.seed(3)
        found.append([function(x).numpy() for _ in range(3)])
    for a, b in zip(*found, strict=True):
        assert_close(a, b)


def test_a_generator_is_an_argument():
    def f(x, rng):
        return x * ndl.init.rand(3, rng=rng)

    g = jit(f)
    rngs = [np.random.default_rng(i) for i in range(2)]
    others = [np.random.default_rng(i) for i in range(2)]
    x = tensor(3, requires_grad=False)
    for i in (0, 1, 0, 1):
        assert_same(g(x, rngs[i]), f(x, others[i]))


def test_numbers_drawn_by_numpy_are_refused_or_drawn_again():
    """They would be the same in each call."""
    rng = np.random.default_rng(0)

    def f(x):
        return x + Tensor(rng.normal(size=3), requires_grad=False)

    g = jit(f)
    try:
        first, second = g(ndl.zeros(3)), g(ndl.zeros(3))
    except CannotTrace:
        return
    assert (first.numpy() != second.numpy()).any()
