"""Awkward names, numbers and shapes: each was computed wrongly once."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim

from .conftest import assert_close, assert_equals_eager, count_of, jit, tensor


def constant(values, dtype: str = "float32") -> ndl.Tensor:
    return ndl.Tensor(np.array(values, dtype), dtype=dtype, requires_grad=False)


@pytest.mark.parametrize("plain", [True, False])
def test_products_of_a_single_row_or_column(plain):
    f = jit(lambda a, b: (a.transpose() @ b, b.transpose() @ a), plain)
    assert_equals_eager(f.function, tensor(600, 1), tensor(600, 64, seed=1), tolerance=1e-5)
    a, b = tensor(600, 1), tensor(600, 64, seed=1)
    for found, expected in zip(f(a, b), f.function(a, b), strict=True):
        assert_close(found.numpy(), expected.numpy(), 1e-5)


def test_training_with_one_feature_and_a_large_batch():
    def training():
        W = ndl.Tensor(np.ones((1, 64)), dtype="float32")
        optimizer = optim.SGD([W], lr=1e-4)

        def step(x):
            loss = ((x @ W) ** 2).sum()
            optimizer.reset_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step, W

    (step, ours), (plain, theirs) = training(), training()
    compiled, x = ndl.jit(step), tensor(600, 1, requires_grad=False)
    for _ in range(3):
        assert_close(compiled(x).numpy(), plain(x).numpy(), 1e-5)
    assert_close(ours.numpy(), theirs.numpy(), 1e-5)


@pytest.mark.parametrize("name", ["state", "work", "start", "stop", "own_float32", "at_ij", "i15", "local"])
def test_arguments_with_names_that_the_source_uses(name):
    names: dict = {"ndl": ndl}
    exec(f"def f({name}, x): return ndl.tanh({name} @ x) * 2", names)
    assert_equals_eager(names["f"], tensor(4, 4), tensor(4, 4, seed=1))


def test_zero_and_its_negative_are_two_numbers():
    f = jit(lambda x: (1 / (x * 0.0), 1 / (x * -0.0)))
    plus, minus = f(ndl.ones(2))
    np.testing.assert_array_equal(plus.numpy(), [np.inf, np.inf])
    np.testing.assert_array_equal(minus.numpy(), [-np.inf, -np.inf])


@pytest.mark.parametrize("numbers", [[0.0, -0.0, 0.0], [-0.0, -0.0, -0.0]])
def test_constants_of_both_zeros(numbers):
    c = constant(numbers)
    f = jit(lambda x: 1 / (c * x))
    np.testing.assert_array_equal(f(ndl.ones(3)).numpy(), f.function(ndl.ones(3)).numpy())


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_constant_labels_for_classes_of_another_type(dtype):
    labels = constant([2, 2], "int64")
    f = jit(lambda: ndl.init.one_hot(4, labels, dtype=dtype))
    np.testing.assert_array_equal(f().numpy(), f.function().numpy())


def test_a_constant_that_its_new_type_cannot_hold():
    c = constant([300, 300], "int64")
    np.testing.assert_array_equal(jit(lambda: c.astype("uint8"))().numpy(), [44, 44])


def test_more_axes_than_letters():
    order = tuple(np.random.default_rng(0).permutation(16))
    assert_equals_eager(lambda x: x.permute(order) * 2, tensor(*(2,) * 16, requires_grad=False))


def test_an_error_names_what_the_operator_was_given():
    w = ndl.ones(5, 2)
    f = jit(lambda i: w[i[1:]])
    with pytest.raises(IndexError, match="1 to 50 reach beyond axis 0 of length 5"):
        f(constant([99, 50, 1], "int64"))


# Scans with numbers


def test_a_scan_over_numbers():
    rates, X = np.arange(5.0), constant(np.random.default_rng(0).normal(size=(5, 3)))
    expected = [(X.numpy()[i] * rates[i]).sum() for i in range(5)]
    first = ndl.scan(lambda rate, x: (x * rate).sum(), rates, X)
    second = ndl.scan(lambda x, rate: (x * rate).sum(), X, rates)
    np.testing.assert_allclose(first.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(second.numpy(), expected, rtol=1e-5)


def test_a_scan_that_returns_a_number():
    w = tensor(3)
    optimizer = optim.SGD([w], lr=0.25)

    def step(x):
        loss = (w * x).sum()
        optimizer.reset_grad()
        loss.backward()
        optimizer.step()
        return optimizer.lr, loss

    rates, losses = ndl.scan(step, constant(np.ones((4, 3))))
    np.testing.assert_array_equal(rates.numpy(), [0.25] * 4)
    np.testing.assert_allclose(np.diff(losses.numpy()), [-0.75] * 3, rtol=1e-5)


def test_an_option_that_is_no_number_may_change():
    class Either(optim.Optimizer):
        def __init__(self, params, way):
            super().__init__(params, way=way)

        def rule(self, p, grad, state, t, way):
            return p + grad if way == "up" else p - grad

    p = ndl.zeros(2, requires_grad=True)
    optimizer = Either([p], "up")

    @jit
    def step(x):
        (p * x).sum().backward()
        optimizer.step()

    for way, expected in (("up", 1), ("up", 2), ("down", 1)):
        optimizer.way = way
        step(ndl.ones(2))
        assert p.numpy().tolist() == [expected] * 2


def test_layers_of_a_dictionary_in_another_order_and_another_forward():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = {"a": nn.Linear(3, 3, rng=0), "b": nn.Linear(3, 3, rng=1)}

        def forward(self, x):
            for layer in self.layers.values():
                x = layer(x)
            return x

    model = Layers()
    f = jit(model)
    assert_equals_eager(f, tensor(2, 3))
    model.layers["a"] = model.layers.pop("a")
    assert_close(f(tensor(2, 3)).numpy(), model(tensor(2, 3)).numpy())
    model.forward = lambda x: x * 2
    assert f(ndl.ones(2)).numpy().tolist() == [2, 2]


def test_dictionaries_of_two_kinds_have_two_programs():
    f = jit(lambda named: named["x"] * 2)
    for given in ({"x": ndl.ones(2)}, OrderedDict(x=ndl.ones(2)), OrderedDict(x=ndl.ones(2))):
        assert f(given).numpy().tolist() == [2, 2]
    assert count_of(f) == 2


def test_a_function_that_is_dropped_leaves_nothing_behind():
    def compiled():
        weight = ndl.ones(3, 3, device=ndl.cpu_numpy())
        f = ndl.jit(lambda x: x @ weight)
        f(ndl.ones(2, 3, device=ndl.cpu_numpy()))
        return f, weakref.ref(weight)

    f, weight = compiled()
    gc.collect()
    gc.disable()
    try:
        assert weight() is not None
        del f
        assert weight() is None
    finally:
        gc.enable()
