"""Threads that train at the same time do not see each other's modes, values or random numbers."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import needle as ndl
from needle import autograd
from needle.autograd import Tensor


@pytest.fixture(autouse=True)
def impatient():
    """Threads take turns every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def together(*functions):
    """The results of functions that run at the same time, each in a thread of its own."""
    barrier = threading.Barrier(len(functions))

    def run(f):
        barrier.wait()
        return f()

    with ThreadPoolExecutor(len(functions)) as pool:
        return list(pool.map(run, functions))


def train(seed, lazily, steps=60):
    """The losses and final parameters of a small network; with another look at the model under `no_grad`."""
    rng = np.random.default_rng(seed)
    model = ndl.nn.Sequential(ndl.nn.Linear(2, 6, rng=rng), ndl.nn.Tanh(), ndl.nn.Linear(6, 2, rng=rng))
    optimizer = ndl.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
    X = Tensor(rng.normal(size=(10, 2)), dtype="float32", requires_grad=False)
    y = rng.integers(0, 2, size=10)
    seen = []
    with ndl.lazy(lazily):
        for _ in range(steps):
            loss = ndl.nn.SoftmaxLoss()(model(X), y)
            assert loss.requires_grad
            assert (loss.cached_data is None) is lazily
            loss.backward(create_graph=False)
            optimizer.step()
            with ndl.no_grad():
                out = model(X)
                assert out.is_leaf()
            seen += [loss.numpy(), out.numpy()]
    return [*seen, *[p.numpy() for p in model.parameters()]]


def test_two_threads_train_as_they_do_alone():
    alone = [train(1, True), train(2, False)]
    at_once = together(lambda: train(1, True), lambda: train(2, False))
    for expected, got in zip(alone, at_once, strict=True):
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(train(1, False), at_once[0], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "block", [ndl.lazy, ndl.no_grad, lambda: ndl.lazy(False)], ids=["lazy", "no_grad", "eager"]
)
def test_a_mode_holds_in_its_own_thread_only(block):
    entered, looked = threading.Event(), threading.Event()

    def mode():
        y = Tensor([1.0]) * 2
        return y.cached_data is None, y.requires_grad

    def inside():
        with block():
            entered.set()
            looked.wait(60)
            return mode()

    def outside():
        before = mode()
        entered.wait(60)
        during = mode()
        looked.set()
        return before, during

    held, (before, during) = together(inside, outside)
    assert before == during == (False, True)
    assert held == {ndl.lazy: (True, True), ndl.no_grad: (False, False)}.get(block, (False, True))
    assert mode() == (False, True)


def test_switching_modes_in_many_threads():
    def switch():
        for _ in range(200):
            with ndl.lazy():
                y = Tensor([1.0]) * 2
                assert y.cached_data is None
                with ndl.no_grad():
                    assert not (y * 2).requires_grad
                assert (y * 2).requires_grad
            assert (Tensor([1.0]) * 2).cached_data is not None
        return True

    assert together(*[switch] * 4) == [True] * 4


def test_all_values_are_counted(no_gc):
    before = autograd.TENSOR_COUNTER

    def build():
        kept = [Tensor([1.0]) * 2 for _ in range(300)]
        return len(kept)

    assert sum(together(*[build] * 4)) == 1200
    assert before == autograd.TENSOR_COUNTER


def test_threads_may_ask_for_the_same_lazy_value():
    for _ in range(5):
        x = Tensor(np.linspace(0, 1, 4), dtype="float64")
        with ndl.lazy():
            y = x
            for _ in range(100):
                y = ndl.tanh(y * y + y)
            (by_x,) = ndl.gradients(y.sum(), [x])
        results = together(*[lambda y=y, by_x=by_x: (y.numpy(), by_x.numpy())] * 4)
        for values, gradient in results:
            np.testing.assert_array_equal(values, results[0][0])
            np.testing.assert_array_equal(gradient, results[0][1])


INITIALISERS = {
    "rand": lambda rng: ndl.init.rand(3, 4, rng=rng),
    "randn": lambda rng: ndl.init.randn(3, 4, rng=rng),
    "randb": lambda rng: ndl.init.randb(3, 4, rng=rng),
    "xavier_uniform": lambda rng: ndl.init.xavier_uniform(3, 4, rng=rng),
    "xavier_normal": lambda rng: ndl.init.xavier_normal(3, 4, rng=rng),
    "kaiming_uniform": lambda rng: ndl.init.kaiming_uniform(3, 4, rng=rng),
    "kaiming_normal": lambda rng: ndl.init.kaiming_normal(3, 4, rng=rng),
    "Linear": lambda rng: ndl.nn.Linear(3, 4, rng=rng).weight,
}


@pytest.mark.parametrize("make", INITIALISERS.values(), ids=INITIALISERS)
def test_a_generator_is_independent_of_the_global_state(make):
    state = str(np.random.get_state())
    first = make(np.random.default_rng(3)).numpy()
    assert str(np.random.get_state()) == state
    np.random.seed(99)
    np.testing.assert_array_equal(make(np.random.default_rng(3)).numpy(), first)
    assert (make(np.random.default_rng(4)).numpy() != first).any()
    with_global = make(None).numpy()
    np.random.seed(99)
    np.testing.assert_array_equal(make(None).numpy(), with_global)
    assert (make(None).numpy() != with_global).any()


def test_threads_draw_from_their_own_generators():
    def draw(seed):
        rng = np.random.default_rng(seed)
        return np.stack([ndl.init.randn(5, rng=rng).numpy() for _ in range(50)])

    alone = [draw(seed) for seed in range(3)]
    at_once = together(*[lambda seed=seed: draw(seed) for seed in range(3)])
    np.testing.assert_array_equal(alone, at_once)
