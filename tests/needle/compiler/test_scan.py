"""`scan` does what a loop over the batches does.

Most of it is compiled by Numba, so the functions are few and small.
"""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from typing import Any

import numpy as np
import pytest

import needle as ndl
from needle import jit, nn, optim
from needle.autograd import Tensor
from needle.compiler import CannotTrace
from needle.compiler.lower import SMALL
from needle.compiler.scanning import _can_scan, _Scan

from ...training import SmallTraining
from .conftest import assert_close

STEPS = 6


@pytest.fixture(params=["cpu", "cpu_numpy"])
def device(request) -> Any:
    """Where one call takes all steps: in machine code, or one after the other."""
    return getattr(ndl, request.param)()


def batches(seed: int = 0, device: Any = None) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(STEPS, 4, 2)), rng.integers(0, 2, (STEPS, 4))
    return tuple(Tensor(numbers, device=device, requires_grad=False) for numbers in (x, y))  # type: ignore


def side(make: Any = optim.SGD, **options: Any) -> SmallTraining:
    return SmallTraining(make, sizes=(2, 3, 2), **options)


def assert_scan_is_a_loop(make: Any, device: Any = None, tolerance: float = 1e-4) -> None:
    ours, theirs = make(device=device), make(device=device)
    for seed in range(2):
        x, y = batches(seed, device)
        losses = ndl.scan(ours.step, x, y)
        expected = [theirs.step(a, b).numpy() for a, b in zip(x, y, strict=True)]
        assert losses.shape == (STEPS,)
        assert losses.device == x.device
        assert_close(losses.numpy(), np.stack(expected), tolerance, least=0.1)
        found, right = ours.state(), theirs.state()
        assert found.keys() == right.keys()
        for name, value in right.items():
            assert_close(found[name], value, tolerance, name, least=0.1)
    for p in ours.optimizer.params:
        assert type(ours.optimizer._updates[p]) is int


def test_training(device):
    assert_scan_is_a_loop(side, device)


def test_a_count_of_steps_and_random_numbers(device):
    """Adam's formula depends on how many steps there were."""
    assert_scan_is_a_loop(partial(side, optim.Adam, lr=0.1, dropout=0.5), device)


class Twice(SmallTraining):
    def step(self, *batch: Any) -> Tensor:
        super().step(*batch)
        return super().step(*batch)


@pytest.mark.slow
def test_two_updates_in_one_step():
    assert_scan_is_a_loop(partial(Twice, optim.Adam, sizes=(2, 3, 2), lr=0.1))


def test_structures_of_results():
    w = Tensor([1.0, 2.0])

    def step(x, y):
        w.data = w * 0.5 + x
        return {"pair": (w * 1, x + y), "x": x, "none": None}

    x, y = (Tensor(np.random.default_rng(i).normal(size=(3, 2)), requires_grad=False) for i in range(2))
    start = w.numpy()
    found = ndl.scan(step, x, y)
    end = w.numpy()
    w.data = Tensor(start)
    loop = [step(a, b) for a, b in zip(x, y, strict=True)]
    assert_close(found["pair"][0].numpy(), np.stack([r["pair"][0].numpy() for r in loop]))
    assert_close(found["pair"][1].numpy(), np.stack([r["pair"][1].numpy() for r in loop]))
    assert_close(found["x"].numpy(), x.numpy())
    assert found["none"] is None
    assert_close(end, w.numpy())


Both = namedtuple("Both", "loss others")


def learning_step(momentum: float = 0.0) -> Any:
    """A step that returns all kinds of things."""
    p = nn.Parameter(np.array([1.0, -2.0]))
    optimizer = optim.SGD([p], lr=0.01, momentum=momentum)

    def step(x):
        loss = ((x * p) ** 2).sum()
        loss.backward(create_graph=False)
        optimizer.step()
        return Both(loss, [{"twice": (2 * loss, 3), "x": x}, 0.5, True, None, "text"])

    return step


@pytest.mark.parametrize("way", ["compiled", "first step as it is", "background", "debug", "never compiled"])
def test_each_way_stacks_the_same(monkeypatch, way):
    momentum = 0.9 if way == "first step as it is" else 0.0
    x = Tensor(np.random.default_rng(0).normal(size=(4, 2)), requires_grad=False)
    expected = [*map(learning_step(momentum), x)]
    step = jit(
        learning_step(momentum), debug=way == "debug", background=way in ("background", "never compiled")
    )
    if step.background:
        asked = iter([False, False, way == "background", False])
        monkeypatch.setattr(step, "may_call", lambda made: isinstance(made, _Scan) and next(asked))
    ran = []
    run = _Scan.run
    monkeypatch.setattr(
        _Scan, "run", lambda self, batches, count: ran.append(count) or run(self, batches, count)
    )

    loss, (inner, half, true, none, text) = found = ndl.scan(step, x)
    assert ran == {"compiled": [4], "first step as it is": [3], "background": [2]}.get(way, [])
    assert type(found) is Both
    assert type(found.others) is list
    assert type(inner["twice"]) is tuple
    twice, three = inner["twice"]
    for tensor, values in (
        (loss, [r.loss.item() for r in expected]),
        (twice, [2 * r.loss.item() for r in expected]),
        (three, [3] * 4), (half, [0.5] * 4), (true, [True] * 4),
    ):  # fmt: skip
        assert type(tensor) is Tensor
        assert tensor.shape == (4,)
        np.testing.assert_allclose(tensor.numpy(), values, rtol=1e-5)
    assert (three.dtype, half.dtype, true.dtype) == ("int64", "float64", "bool")
    np.testing.assert_array_equal(inner["x"].numpy(), x.numpy())
    assert none is None
    assert text == "text"


def test_what_no_loop_can_take():
    """A Tensor that is returned as it was then after each step, and a step that writes its batch."""
    total, fixed = ndl.zeros(2), ndl.ones(2)

    def adds(x):
        total.data = total + x
        return total, fixed

    def writes(x):
        x.data = x * 2
        return x.sum()

    totals, ones = ndl.scan(jit(adds, debug=True), ndl.ones(3, 2))
    assert totals.numpy().tolist() == [[1, 1], [2, 2], [3, 3]]
    assert ones.numpy().tolist() == [[1, 1]] * 3
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=False)
    assert ndl.scan(jit(writes, debug=True), x).numpy().tolist() == [6, 14]
    for step in (adds, writes):
        assert not _can_scan(jit(step).program_for(ndl.ones(2)))


def test_results_that_cannot_be_stacked():
    p = nn.Parameter(np.ones(2))

    def step(x):
        before = None if p.grad is None else p.grad * 1
        (p * x).sum().backward(create_graph=False)
        return {"before": before}

    said = r"step 1 returns {'before': \(2,\)}, and those before it returned {'before': None}"
    with pytest.raises(ValueError, match=said):
        ndl.scan(jit(step, debug=True), ndl.ones(5, 2))


def test_what_cannot_be_returned_is_refused_before_the_first_step():
    p = nn.Parameter(np.ones(2))
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)

    def step(x):
        ((p * x).sum()).backward()
        optimizer.step()
        return {1, 2}

    with pytest.raises(CannotTrace, match="returns a set"):
        ndl.scan(step, ndl.ones(3, 2))
    assert p.numpy().tolist() == [1, 1]


def test_arrays_of_numpy():
    total = ndl.zeros(2)

    def step(x):
        total.data = total + Tensor(x, requires_grad=False)
        return total.sum()

    x = np.arange(8, dtype="float32").reshape(4, 2)
    assert ndl.scan(step, x).numpy().tolist() == [1, 6, 15, 28]
    assert total.numpy().tolist() == [12, 16]


def test_products_by_blas():
    """A step sets in Python how many threads BLAS has; the loop around it calls what is inside of that."""

    def step(x):
        loss = (x @ W).sum()
        loss.backward(create_graph=False)
        optimizer.step()
        return loss

    x = Tensor(np.random.default_rng(0).normal(size=(3, 40, 40)), requires_grad=False)
    results = []
    for run in (lambda: [step(batch).item() for batch in x], lambda: ndl.scan(step, x).numpy()):
        W = nn.Parameter(np.random.default_rng(1).normal(size=(40, 40)))
        optimizer = optim.SGD([W], lr=0.01)
        results.append(run())
    assert SMALL < 40**3
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-3)  # sums of 1,600 float32 numbers


def test_a_wrong_label_in_the_middle(device):
    """Steps before it count, as in a loop."""
    ours, theirs = side(optim.Adam, device=device), side(optim.Adam, device=device)
    x, y = batches(device=device)
    for one in (ours, theirs):
        one.step(x[0], y[0])  # makes the optimiser's state
    labels = y.numpy()
    labels[3, 1] = 2
    wrong = Tensor(labels, device=device, requires_grad=False)
    with pytest.raises(IndexError) as ours_says:
        ndl.scan(ours.step, x, wrong)
    for i in range(3):
        theirs.step(x[i], wrong[i])
    with pytest.raises(IndexError) as theirs_says:
        theirs.step(x[3], wrong[3])
    assert str(ours_says.value) == str(theirs_says.value)
    for name, value in theirs.state().items():
        assert_close(ours.state()[name], value, 1e-4, name)


def test_a_snapshot_stays():
    ours = side()
    ndl.scan(ours.step, *batches())
    snapshot = ours.model.state_dict()
    then = {name: x.numpy() for name, x in snapshot.items()}
    ndl.scan(ours.step, *batches(1))
    for name, x in snapshot.items():
        np.testing.assert_array_equal(x.numpy(), then[name])


def test_what_is_not_lowered(device):
    """The loop runs in Python then."""

    def step(x):
        return ndl.argmax(x), x * 2

    x = Tensor(np.random.default_rng(0).normal(size=(3, 4)), device=device, requires_grad=False)
    best, twice = ndl.scan(step, x)
    assert best.numpy().tolist() == x.numpy().argmax(1).tolist()
    assert_close(twice.numpy(), 2 * x.numpy())


@pytest.mark.parametrize(
    ("batches", "error", "said"),
    [
        ([ndl.ones(2, 3), ndl.ones(3, 3)], ValueError, r"scan: needs batches .* got \(2, 3\), \(3, 3\)"),
        ([ndl.ones(2), [3, 4]], TypeError, "batches that are Tensors .* got list as number 1; .* ndl.Tensor"),
        ([5], TypeError, "got int as number 0"),
        ([ndl.ones(), ndl.ones(2)], ValueError, r"whose first axis counts the steps, .* got \(\), \(2,\)"),
        ([], ValueError, "no batches"),
        ([ndl.ones(0, 3), ndl.ones(0, 3)], ValueError, "scan"),
    ],
)
def test_batches_that_do_not_fit(batches, error, said):
    with pytest.raises(error, match=said):
        ndl.scan(lambda x, y: x + y, *batches)


def test_what_is_no_function():
    with pytest.raises(TypeError, match="jit: needs a function, got 3"):
        ndl.scan(3, ndl.ones(2))


def test_a_step_that_reads_the_gradient_of_the_step_before():
    def trained(many):
        w = ndl.Tensor(np.ones(2), requires_grad=True)

        def step(x):
            before = w.grad
            loss = (w * x).sum()
            loss.backward()
            if before is not None:
                w.grad = (w.grad + before).detach()
            return loss

        many(step, ndl.Tensor(np.arange(10.0).reshape(5, 2)))
        return w.grad.numpy().tolist()

    assert trained(ndl.scan) == trained(lambda step, x: [step(x[i].detach()) for i in range(5)]) == [20, 25]
