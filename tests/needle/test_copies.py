"""Copies and pickles of Tensors, models and optimisers: they take the numbers, and not the history."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import needle as ndl
from needle import autograd, nn, optim
from needle.autograd import Tensor

DEVICES = [d for d in ndl.all_devices() if d.enabled()]
DEEP = {"deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}
deep = pytest.mark.parametrize("copied", DEEP.values(), ids=DEEP)
any_way = pytest.mark.parametrize("copied", [copy.copy, *DEEP.values()], ids=["copy", *DEEP])


class Named(nn.Parameter):
    """A Parameter with an attribute of its own."""

    def __init__(self, array, name):
        super().__init__(array)
        self.name = name


def alive() -> int:
    return autograd.TENSOR_COUNTER


def assert_leaf(x, like):
    assert type(x) is type(like)
    assert (x.op, list(x.inputs), x.requires_grad) == (None, [], like.requires_grad)
    assert (x.dtype, x.device) == (like.dtype, like.device)
    np.testing.assert_array_equal(x.numpy(), like.numpy())


def learned(model, optimizer, X):
    """Two steps, and a third gradient that still has its graph."""
    for _ in range(2):
        (model(X) ** 2).sum().backward()
        optimizer.step()
    (model(X) ** 2).sum().backward()


@any_way
@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_copy_is_a_leaf(copied, device, mode):
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device=device, dtype="float64")
    y = ndl.exp(x[:, 1]) * 2
    y.backward()
    for like in (x, y, x.detach(), y.data, x.T):
        twin = copied(like)
        assert twin is not like
        assert_leaf(twin, like)
        if like.grad is None:
            assert twin.grad is None
        else:
            assert_leaf(twin.grad, like.grad.detach())
    twin = copied(x)
    (twin * twin).sum().backward()
    twin.data = twin.data * 0
    np.testing.assert_array_equal(twin.grad.numpy(), [[2, 4], [6, 8]])
    np.testing.assert_array_equal(x.numpy(), [[1, 2], [3, 4]])
    assert x.grad.numpy()[0, 0] == 0


@any_way
def test_kinds_of_values(copied, mode):
    weight = Named([1.0, 2.0], "w")
    twin = copied(weight)
    assert_leaf(twin, weight)
    assert twin.name == "w"
    pair = ndl.make_tuple(weight * 2, weight + 1)
    again = copied(pair)
    assert (type(again), again.op, len(again)) == (ndl.TensorTuple, None, 2)
    for a, b in zip(again, pair, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert copied(Tensor([1.0]) > 0).numpy().tolist() == [True]


@deep
def test_a_model_after_backward(copied, mode):
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2, rng=1))
    empty = len(pickle.dumps(model))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    X = Tensor(np.random.default_rng(0).normal(size=(2000, 3)), requires_grad=False)
    learned(model, optimizer, X)
    twin = copied(model)
    assert len(pickle.dumps(model)) < 3 * empty  # the gradients are in it, and no batch
    for (name, p), (other, q) in zip(twin.named_parameters(), model.named_parameters(), strict=True):
        assert name == other
        assert_leaf(p, q)
        assert_leaf(p.grad, q.grad.detach())
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(twin.state_dict()[name].numpy(), value.numpy())
    learned(twin, optim.Adam(twin.parameters(), lr=0.1), X)
    assert not np.array_equal(twin[0].weight.numpy(), model[0].weight.numpy())


@deep
def test_a_model_and_its_optimiser_go_on_alike(copied, mode):
    X = Tensor(np.random.default_rng(0).normal(size=(5, 3)), requires_grad=False)
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 2, rng=1))
    model[0].bias.requires_grad = False
    optimizer = optim.SGD([{"params": model.parameters(), "lr": 0.1}], momentum=0.9)
    learned(model, optimizer, X)
    both = copied((model, optimizer))
    assert [id(p) for p in both[0].parameters()] == [id(p) for p in both[1].params]
    for pair in ((model, optimizer), both):
        learned(*pair, X)
    for p, q in zip(model.parameters(), both[0].parameters(), strict=True):
        assert_leaf(q, p)


@deep
def test_what_is_shared_stays_shared(copied, mode):
    weight = nn.Parameter([1.0, 2.0])
    layers = {"first": weight, "again": weight, "constant": weight.detach()}
    twins = copied(layers)
    assert twins["first"] is twins["again"]
    assert twins["first"] is not weight
    assert twins["constant"].realize_cached_data() is twins["first"].realize_cached_data()


@deep
def test_a_part_is_copied_without_the_rest(copied):
    part = Tensor(np.arange(100_000.0))[5:7]
    assert len(pickle.dumps(part)) < 1500
    assert copied(part).numpy().tolist() == [5, 6]


@deep
def test_a_long_history(copied, mode):
    x = y = Tensor([1.0])
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert copied(y).numpy() == 20_001
    assert copied(x).grad.numpy() == 1


def test_copies_are_counted():
    gc.collect()
    x = Tensor([1.0])
    before = alive()
    twins = [copied(x) for copied in (copy.copy, *DEEP.values())]
    assert alive() == before + 3
    del twins
    assert alive() == before


def test_numbers_are_not_copied_while_a_function_is_traced():
    if ndl.BACKEND == "nd":
        with pytest.raises(ndl.compiler.CannotTrace, match=r"depend on x"):
            ndl.jit(lambda x: copy.deepcopy(x) * 2)(Tensor([1.0]))
