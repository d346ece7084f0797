"""Stochastic gradient descent against its formulas, and against torch where the formulas agree."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor
from needle.nn import Parameter

VARIANTS = [(0.0, 0.0), (0.9, 0.0), (0.0, 0.1), (0.9, 0.1), (0.5, 0.01)]


def parameters():
    rng = np.random.default_rng(0)
    return [Parameter(rng.normal(size=shape), dtype="float64") for shape in [(3, 2), (1, 2), ()]]


def loss_of(params, module=ndl):
    w, b, s = params
    return (module.tanh(w + b) * s).sum() + (b * b * b).sum() + s * s


def gradient_by_hand(values):
    w, b, s = values
    t = np.tanh(w + b)
    by_sum = (1 - t**2) * s
    return [by_sum, by_sum.sum(axis=0, keepdims=True) + 3 * b**2, t.sum() + 2 * s]


@pytest.mark.parametrize(("momentum", "weight_decay"), VARIANTS)
def test_sgd_follows_its_formula(momentum, weight_decay, mode):
    params = parameters()
    optimizer = ndl.optim.SGD(params, lr=0.1, momentum=momentum, weight_decay=weight_decay)
    values = [p.numpy() for p in params]
    velocity = [np.zeros(p.shape) for p in params]
    for step in range(10):
        optimizer.lr = 0.1 / (1 + step)  # may change while learning
        loss_of(params).backward(create_graph=False)
        optimizer.step()
        for i, g in enumerate(gradient_by_hand(values)):
            decayed = g + weight_decay * values[i]
            velocity[i] = momentum * velocity[i] + (1 - momentum) * decayed
            values[i] = values[i] - 0.1 / (1 + step) * velocity[i]
    for p, expected in zip(params, values, strict=True):
        np.testing.assert_allclose(p.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_sgd_against_torch(momentum, weight_decay):
    torch = pytest.importorskip("torch", reason="torch, the oracle, is not installed")
    params = parameters()
    theirs = [torch.tensor(p.numpy(), requires_grad=True) for p in params]
    ours = ndl.optim.SGD(params, lr=0.05, momentum=momentum, weight_decay=weight_decay)
    # torch's first velocity is the whole gradient, ours the dampened one: it begins at 0 as the formula says.
    other = torch.optim.SGD(theirs, lr=0.05, momentum=momentum, dampening=momentum, weight_decay=weight_decay)
    if momentum:
        for q in theirs:
            other.state[q]["momentum_buffer"] = torch.zeros_like(q)
    for _ in range(10):
        loss_of(params).backward(create_graph=False)
        ours.step()
        other.zero_grad()
        loss_of(theirs, torch).backward()
        other.step()
    for p, q in zip(params, theirs, strict=True):
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize(("momentum", "weight_decay"), VARIANTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_keeps_dtype_and_leaves(dtype, momentum, weight_decay, mode):
    p = Parameter([1.0, 2.0], dtype=dtype)
    optimizer = ndl.optim.SGD([p], lr=0.1, momentum=momentum, weight_decay=weight_decay)
    for create_graph in (True, False):
        (p * p).backward(create_graph=create_graph)
        optimizer.step()
        assert p.dtype == dtype
        assert p.realize_cached_data().dtype == dtype
        assert p.is_leaf()
        assert p.requires_grad
    # Nothing of the graph of the gradients is kept.
    assert all(u.is_leaf() and not u.requires_grad for u in optimizer.u.values())


def test_reset_grad_forgets_and_step_passes_over():
    p, q = Parameter([1.0]), Parameter([2.0])
    optimizer = ndl.optim.SGD([p, q], lr=1.0, weight_decay=0.5)
    (p * 3).backward()
    optimizer.step()
    assert p.numpy() == 1 - (3 + 0.5)
    assert q.numpy() == 2  # it has no gradient, so it stays
    optimizer.reset_grad()
    assert p.grad is None
    optimizer.step()
    assert p.numpy() == -2.5


def test_parameters_may_come_from_an_iterator():
    p, q = Parameter([1.0]), Parameter([2.0])
    optimizer = ndl.optim.SGD(iter([p, q]), lr=1.0)
    assert optimizer.params == [p, q]
    for _ in range(2):
        (p * q).backward()
        optimizer.step()
    assert (p.numpy().item(), q.numpy().item()) == (-2.0, 2.0)


def test_the_defaults_are_the_courses():
    p = Parameter([1.0])
    optimizer = ndl.optim.SGD([p])
    assert isinstance(optimizer, ndl.optim.Optimizer)
    assert (optimizer.lr, optimizer.momentum, optimizer.weight_decay) == (0.01, 0.0, 0.0)
    with pytest.raises(NotImplementedError):
        ndl.optim.Optimizer([p]).step()


def test_earlier_graphs_do_not_see_a_step(mode):
    p = Parameter([3.0])
    before = p * p
    (p * 1).backward()
    ndl.optim.SGD([p], lr=1.0).step()
    assert p.numpy() == 2
    before.backward()
    assert p.grad.numpy() == 6
    assert isinstance(before, Tensor)
    assert before.numpy() == 9
