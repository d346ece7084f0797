"""What a compiled function writes: values and gradients, and what was held of them before."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor

from .conftest import assert_close, jit, tensor


@pytest.mark.parametrize(
    "hold",
    [
        lambda p: p.data,
        lambda p: p.data[1:],
        lambda p: p.data.transpose(),
        lambda p: p.data.reshape((12,)),
        lambda p: p.realize_cached_data(),
        lambda p: p.realize_cached_data()[1:],
    ],
    ids=["value", "slice", "transpose", "reshape", "array", "slice of the array"],
)
def test_what_is_held_stays(hold):
    """While one program writes, and while two write in turn."""
    p = tensor(4, 3)

    def f(x):
        p.data = p * 2
        return x + p

    g = jit(f)
    held = []
    for rows in (1, 1, 4, 1, 4, 4, 1, 1):
        value = hold(p)
        held.append((value, value.numpy()))
        g(ndl.ones(rows, 1))
        for value, then in held:
            np.testing.assert_array_equal(value.numpy(), then)


def test_a_graph_that_was_built_before_keeps_the_value():
    p = tensor(3)

    def f():
        p.data = p * 2

    g = jit(f)
    g()
    before = p.numpy()
    loss = (p * p).sum()
    g()
    assert_close(ndl.gradients(loss, [p])[0].numpy(), 2 * before)
    g()
    assert_close(ndl.gradients(loss, [p])[0].numpy(), 2 * before)


def test_results_that_are_a_parameter_s_value():
    """What is returned of a written Tensor is its value at that time."""
    p = tensor(3)

    def f():
        before = p.detach()
        p.data = p * 2
        return before, p.detach(), p * 1

    g = jit(f)
    found = []
    for _ in range(3):
        then = p.numpy()
        found.append((g(), then))
    for (before, after, again), then in found:
        np.testing.assert_array_equal(before.numpy(), then)
        np.testing.assert_array_equal(after.numpy(), then * 2)
        np.testing.assert_array_equal(again.numpy(), then * 2)


def test_two_tensors_that_share_a_value():
    a = tensor(3)
    b = tensor(3, seed=1)
    b.data = a

    def f():
        a.data = a + 1
        b.data = b * 2

    start = a.numpy()
    g = jit(f)
    g()
    assert_close(a.numpy(), start + 1)
    assert_close(b.numpy(), start * 2)
    g()
    assert_close(a.numpy(), start + 2)
    assert_close(b.numpy(), start * 4)


def test_a_tensor_takes_the_value_of_another():
    a, b = tensor(3), tensor(3, seed=1)

    def f():
        a.data = b

    g = jit(f)
    for value in range(3):
        b.data = ndl.ones(3) * value
        g()
        assert a.numpy().tolist() == [value] * 3
    a.data = ndl.ones(3) * 9
    assert b.numpy().tolist() == [2] * 3


def test_swapped_values():
    a, b = tensor(3), tensor(3, seed=1)

    def f():
        a.data, b.data = b.data, a.data

    first, second = a.numpy(), b.numpy()
    g = jit(f)
    for _ in range(3):
        g()
        first, second = second, first
        assert_close(a.numpy(), first)
        assert_close(b.numpy(), second)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("sign", ["plus", "minus"])
def test_a_parameter_is_updated_by_a_product(sign, turned):
    x = tensor(40, 40, seed=1)

    def updated(w):
        product = 0.1 * (x.transpose() @ x)
        new = w - product if sign == "minus" else product + w
        return new.transpose() if turned else new

    w = tensor(40, 40)
    expected = updated(w).numpy()

    def step():
        w.data = updated(w)

    compiled = jit(step)
    compiled()
    assert_close(w.numpy(), expected)
    assert ("add_matmul(" in compiled.source) is not turned


def test_a_written_argument():
    def f(p, x):
        p.data = p + x
        return p * 1

    g = jit(f)
    tensors = [tensor(3), tensor(3, seed=1)]
    for p in (tensors[0], tensors[0], tensors[1], tensors[0], tensors[1]):
        before = p.numpy()
        out = g(p, ndl.ones(3))
        assert_close(p.numpy(), before + 1)
        assert_close(out.numpy(), before + 1)


def test_two_programs_write_the_same_parameter():
    p = tensor(3)

    def double(x):
        p.data = p * 2
        return x + p

    def halve(x):
        p.data = p / 2
        return x - p

    f, g = jit(double), jit(halve)
    value = p.numpy()
    for function in (f, g, f, f, g, g, g, f):
        function(ndl.ones(3))
        value = value * 2 if function is f else value / 2
        assert_close(p.numpy(), value)


def test_one_program_writes_what_another_reads():
    p = tensor(3)

    def write():
        p.data = p + 1

    read, write = jit(lambda x: x * p), jit(write)
    value = p.numpy()
    for _ in range(4):
        assert_close(read(ndl.ones(3)).numpy(), value)
        write()
        value = value + 1
        assert_close(read(ndl.ones(3)).numpy(), value)


def test_grad_without_a_step():
    model = nn.Linear(3, 2, rng=0)

    def f(x):
        loss = (model(x) ** 2).sum()
        loss.backward()
        return loss

    g = jit(f)
    for seed in range(3):
        x = Tensor(np.random.default_rng(seed).normal(size=(4, 3)), requires_grad=False)
        g(x)
        found = [p.grad.numpy() for p in model.parameters()]
        f(x)
        for a, p in zip(found, model.parameters(), strict=True):
            assert_close(a, p.grad.numpy(), 1e-5)


def test_grad_of_an_argument():
    def f(x):
        (x * x).sum().backward()

    g = jit(f)
    tensors = [tensor(3), tensor(3, seed=1)]
    for x in (*tensors, *tensors):
        x.grad = None
        g(x)
        assert_close(x.grad.numpy(), 2 * x.numpy())


def test_grad_is_removed():
    x = tensor(3)

    def f():
        x.grad = None

    g = jit(f)
    for _ in range(3):
        x.grad = ndl.ones(3)
        g()
        assert x.grad is None


def test_grad_is_added_up():
    """As in a training that sums the gradients of several batches."""
    w = tensor(3)

    def f(x):
        earlier = w.grad
        (w * x).sum().backward()
        w.grad = w.grad + earlier

    w.grad = ndl.zeros(3)
    g = jit(f)
    for i in range(1, 4):
        g(ndl.ones(3))
        assert w.grad.numpy().tolist() == [i] * 3


def test_grad_that_is_added_up_from_none():
    w = tensor(3)

    def f(x):
        before = w.grad
        (w * x).sum().backward()
        if before is not None:
            w.grad = w.grad + before

    g = jit(f)
    for i in range(1, 5):
        g(ndl.ones(3))
        assert w.grad.numpy().tolist() == [i] * 3
    w.grad = None
    g(ndl.ones(3))
    assert w.grad.numpy().tolist() == [1] * 3
