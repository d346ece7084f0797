"""With the garbage collector off: training keeps nothing alive but the parameters."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import needle as ndl
from needle import autograd
from needle.apps import simple_ml
from needle.autograd import Tensor

STEPS = 200


def alive() -> int:
    return autograd.TENSOR_COUNTER


def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(8, 4)).astype("float32"), rng.integers(0, 3, size=8)


def network():
    rng = np.random.default_rng(1)
    return ndl.nn.Sequential(
        ndl.nn.Linear(4, 6, rng=rng),
        ndl.nn.ReLU(),
        ndl.nn.Linear(6, 6, rng=rng),
        ndl.nn.Sigmoid(),
        ndl.nn.Linear(6, 3, rng=rng),
    )


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "weight_decay": 0.1}], ids=str)
def test_training_is_flat(options, mode, no_gc):
    start = alive()
    X, y = data()
    model = network()
    optimizer = ndl.optim.SGD(model.parameters(), lr=0.1, **options)
    counts = []
    for _ in range(STEPS):
        loss = ndl.nn.SoftmaxLoss()(model(Tensor(X, requires_grad=False)), y)
        loss.backward(create_graph=False)
        optimizer.step()
        if mode == "lazy":
            loss.numpy(), [p.numpy() for p in model.parameters()]
        del loss
        counts.append(alive())
    assert counts == [counts[0]] * STEPS
    del model, optimizer
    assert alive() == start


def test_nn_epoch_is_flat(no_gc):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(STEPS, 4)).astype("float32"), rng.integers(0, 3, size=STEPS)
    W1, W2 = ndl.init.randn(4, 5, rng=rng), ndl.init.randn(5, 3, rng=rng)
    before = alive()
    counts = []

    class CountingArray(np.ndarray):
        """Notes how many Tensors are alive whenever a batch is taken from it."""

        def __getitem__(self, index):
            counts.append(alive())
            return np.asarray(self)[index]

    new = simple_ml.nn_epoch(X.view(CountingArray), y, W1, W2, lr=0.1, batch=1)
    assert len(counts) == STEPS
    assert max(counts[2:]) == counts[2]
    assert alive() - before == len(new)  # the new weights, without gradients


def test_loss_err_leaves_nothing(no_gc):
    X, y = data()
    h = Tensor(X @ np.ones((4, 3), "float32"))
    before = alive()
    simple_ml.loss_err(h, y)
    assert alive() == before


def test_the_graph_goes_with_its_output(no_gc, mode):
    X, y = data()
    model = network()
    before = alive()
    loss = ndl.nn.SoftmaxLoss()(model(Tensor(X)), y)
    assert alive() > before + 10
    del loss
    assert alive() == before


def test_constant_gradients_hold_no_graph(no_gc, mode):
    x = Tensor([1.0, 2.0])
    hidden = ndl.exp(x)
    out = (hidden * hidden).sum()
    out.backward(create_graph=False)
    assert hidden.grad is not None
    references = [weakref.ref(out), weakref.ref(hidden)]
    del out, hidden
    assert [r() for r in references] == [None, None]
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * np.array([1.0, 2.0])), rtol=1e-6)


def test_gradients_let_go_of_what_they_do_not_need(no_gc):
    """A gradient knows the graph, but the graph does not know the gradient: no cycle."""
    x = Tensor([1.0, 2.0])
    before = alive()
    (by_x,) = ndl.gradients(ndl.exp(x * x), [x])
    assert alive() > before + 1
    del by_x
    assert alive() == before


def test_gradcheck_is_flat(no_gc):
    before = alive()
    ndl.gradcheck(lambda a: (a * a * a).sum(), Tensor([1.0, 2.0]))
    assert alive() == before
