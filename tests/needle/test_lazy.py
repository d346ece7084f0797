"""Lazy mode: a training step is built without computing; asked for a value, each node is computed once."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor, gradients
from needle.backend_selection import NDArray
from needle.graph import TensorOp


def problem(rng_seed=0):
    """A small network, its optimiser and data, the same each time."""
    rng = np.random.default_rng(rng_seed)
    model = ndl.nn.Sequential(
        ndl.nn.Linear(2, 5, rng=rng),
        ndl.nn.Tanh(),
        ndl.nn.Linear(5, 4, rng=rng),
        ndl.nn.ReLU(),
        ndl.nn.Linear(4, 2, rng=rng),
    )
    X = Tensor(rng.normal(size=(12, 2)), dtype="float32", requires_grad=False)
    y = (rng.random(12) > 0.5).astype(int)
    return model, X, y


def step(model, optimizer, X, y, create_graph=False):
    loss = ndl.nn.SoftmaxLoss()(model(X), y)
    loss.backward(create_graph=create_graph)
    optimizer.step()
    return loss


@pytest.mark.parametrize("create_graph", [True, False])
@pytest.mark.parametrize("options", [{}, {"momentum": 0.9, "weight_decay": 0.1}], ids=["plain", "momentum"])
def test_a_training_step_is_built_without_computing(create_graph, options, computed):
    model, X, y = problem()
    parameters = model.parameters()
    before = [p.numpy() for p in parameters]
    optimizer = ndl.optim.SGD(parameters, lr=0.5, **options)
    computed.clear()
    with ndl.lazy():
        losses = [step(model, optimizer, X, y, create_graph) for _ in range(3)]
        losses[-1].backward(create_graph=create_graph)
        shapes = [(p.shape, p.dtype, p.device, p.grad.shape, p.grad.dtype) for p in parameters]
        total = (losses[-1].detach() + losses[0].data).shape
    assert computed == []
    assert all(p.cached_data is None for p in parameters)
    assert shapes == [(a.shape, a.dtype, X.device, a.shape, a.dtype) for a in before]
    assert total == ()

    after = [p.numpy() for p in parameters]
    assert computed
    assert all(np.abs(a - b).max() > 1e-4 for a, b in zip(after, before, strict=True))


def test_what_is_not_asked_for_is_not_computed(computed):
    x = Tensor([1.0, 2.0])
    with ndl.lazy():
        a = ndl.exp(x)
        b = ndl.log(x)
        (a * 2).numpy()
    assert [type(op).__name__ for op in computed] == ["Exp", "MulScalar"]
    assert a.cached_data is not None
    assert b.cached_data is None
    assert b.shape == (2,)
    repr(b)
    assert b.cached_data is not None


def test_each_node_is_computed_once(computed):
    x = Tensor([0.5, 0.25])
    with ndl.lazy():
        y = ndl.tanh(x)
        for _ in range(30):  # 2**30 paths lead back to x
            y = y * y + y
        out = y.sum()
        (by_x,) = gradients(out, [x])
    assert computed == []
    out.numpy()
    assert len(computed) == 1 + 60 + 1
    by_x.numpy()
    count = len(computed)
    assert len({id(op) for op in computed}) == count
    out.numpy(), by_x.numpy(), y.numpy(), y.detach().numpy()
    assert len(computed) == count


def test_forward_values_are_shared_by_forward_and_backward(computed):
    x = Tensor([1.0])
    with ndl.lazy():
        y = ndl.exp(x)
        y.backward()
    x.grad.numpy()
    y.numpy()
    assert [type(op).__name__ for op in computed].count("Exp") == 1


class Probe(TensorOp):
    """Adds 1 and keeps a weak reference to every array it makes."""

    def __init__(self, made):
        self.made = made

    def infer(self, a):
        return ndl.autograd.Spec(a.shape, a.dtype, a.device)

    def compute(self, a):
        out = a + 1
        self.made.append(weakref.ref(out))
        return out

    def gradient(self, out_grad, node):
        return out_grad


def living(made):
    return sum(ref() is not None for ref in made)


@pytest.mark.skipif(NDArray is np.ndarray, reason="NumPy answers a + 1 of shape () with a scalar")
def test_weak_references_see_arrays():
    made = []
    with ndl.lazy():
        y = Probe(made)(Tensor([1.0]))
    y.numpy()
    assert living(made) == 1
    del y
    assert living(made) == 0


def test_the_memory_of_a_chain_is_let_go_when_it_is_computed(no_gc):
    made = []
    with ndl.lazy(), ndl.no_grad():
        y = Tensor([1.0])
        for _ in range(100):
            y = Probe(made)(y)
    assert made == []
    assert y.numpy() == 101
    assert len(made) == 100
    assert living(made) == 1
    del y
    assert living(made) == 0


def test_a_chain_of_writes_is_let_go_when_it_is_computed(no_gc):
    made = []
    p = Tensor([1.0], requires_grad=True)
    with ndl.lazy():
        for _ in range(50):
            p.data = Probe(made)(p.data)
    assert p.numpy() == 51
    assert living(made) == 1


def test_a_graph_that_can_be_differentiated_keeps_its_arrays(no_gc):
    made = []
    with ndl.lazy():
        y = Tensor([1.0])
        for _ in range(10):
            y = Probe(made)(y)
    y.numpy()
    assert living(made) == 10
    del y
    assert living(made) == 0


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="plain", marks=pytest.mark.slow),
        pytest.param({"momentum": 0.9, "weight_decay": 0.01}, id="momentum"),
    ],
)
def test_200_lazy_steps_are_200_eager_ones(options):
    def train(lazily, ask_every):
        model, X, y = problem()
        optimizer = ndl.optim.SGD(model.parameters(), lr=0.2, **options)
        losses = []
        with ndl.lazy(lazily):
            for i in range(200):
                loss = step(model, optimizer, X, y)
                losses.append(loss.numpy() if i % ask_every == 0 else loss)
        losses = [loss.numpy() if isinstance(loss, Tensor) else loss for loss in losses]
        return [np.array(losses), *[p.numpy() for p in model.parameters()]]

    eager = train(False, 1)
    assert eager[0][-1] < 0.5 * eager[0][0]  # it learns
    for ask_every in (1, 7, 1000):
        for a, b in zip(eager, train(True, ask_every), strict=True):
            np.testing.assert_array_equal(a, b)


def test_modes_mix_within_one_graph(computed):
    x = Tensor([2.0], dtype="float64")
    with ndl.lazy():
        a = x * 3
    b = a + 1  # eager: computes a
    assert a.cached_data is not None
    with ndl.lazy():
        c = b * x
        c.backward()
    assert c.cached_data is None
    c.backward()
    assert x.grad.numpy() == 3 * 2 + 7
    assert c.numpy() == 14


def test_an_operator_without_infer_is_computed_at_once(computed):
    class Double(TensorOp):
        def compute(self, a):
            computed.append("Double")
            return a * 2

    with ndl.lazy():
        y = Double()(Tensor([1.0]) + 1)
        assert [op if isinstance(op, str) else type(op).__name__ for op in computed] == [
            "AddScalar",
            "Double",
        ]
        assert y.cached_data is not None
        z = y + 1
        assert z.cached_data is None
    assert z.numpy() == 5
