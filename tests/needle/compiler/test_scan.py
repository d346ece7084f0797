"""`scan` does what a loop over the batches does.

Most of it is compiled by Numba, so the functions are few and small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.autograd import Tensor
from needle.compiler.lower import SMALL

from ...training import SmallTraining
from .conftest import assert_close

STEPS = 6


def batches(seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    x = Tensor(rng.normal(size=(STEPS, 4, 2)), requires_grad=False)
    return x, Tensor(rng.integers(0, 2, (STEPS, 4)), requires_grad=False)


def side(make: Any = optim.SGD, **options: Any) -> SmallTraining:
    return SmallTraining(make, sizes=(2, 3, 2), **options)


def assert_scan_is_a_loop(make: Any, times: int = 2, tolerance: float = 1e-4) -> None:
    ours, theirs = make(), make()
    for seed in range(times):
        x, y = batches(seed)
        losses = ndl.scan(ours.step, x, y)
        expected = [theirs.step(a, b).numpy() for a, b in zip(x, y, strict=True)]
        assert losses.shape == (STEPS,)
        assert_close(losses.numpy(), np.stack(expected), tolerance, least=0.1)
        found, right = ours.state(), theirs.state()
        assert found.keys() == right.keys()
        for name, value in right.items():
            assert_close(found[name], value, tolerance, name, least=0.1)
    for p in ours.optimizer.params:
        assert type(ours.optimizer._updates[p]) is int


def test_training():
    assert_scan_is_a_loop(side)


def test_a_count_of_steps_and_random_numbers():
    """Adam's formula depends on how many steps there were."""
    assert_scan_is_a_loop(lambda: side(optim.Adam, lr=0.1, dropout=0.5))


class Twice(SmallTraining):
    def step(self, *batch: Any) -> Tensor:
        super().step(*batch)
        return super().step(*batch)


@pytest.mark.slow
def test_two_updates_in_one_step():
    assert_scan_is_a_loop(lambda: Twice(optim.Adam, sizes=(2, 3, 2), lr=0.1))


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


def test_a_wrong_label_in_the_middle():
    """Steps before it count, as in a loop."""
    ours, theirs = side(), side()
    x, y = batches()
    labels = y.numpy()
    labels[3, 1] = 2
    wrong = Tensor(labels, requires_grad=False)
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


def test_what_is_not_lowered():
    """The loop runs in Python then."""

    def step(x):
        return ndl.argmax(x), x * 2

    x = Tensor(np.random.default_rng(0).normal(size=(3, 4)), requires_grad=False)
    best, twice = ndl.scan(step, x)
    assert best.numpy().tolist() == x.numpy().argmax(1).tolist()
    assert_close(twice.numpy(), 2 * x.numpy())


def test_on_the_reference_device():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device=ndl.cpu_numpy(), requires_grad=False)
    found = ndl.scan(lambda x: x * 2, x)
    assert found.device == ndl.cpu_numpy()
    assert found.numpy().tolist() == [[2, 4], [6, 8]]


def test_batches_that_do_not_fit():
    step = lambda x, y: x + y  # noqa: E731
    with pytest.raises(ValueError, match=r"scan: needs batches .* got \(2, 3\), \(3, 3\)"):
        ndl.scan(step, ndl.ones(2, 3), ndl.ones(3, 3))
    with pytest.raises(ValueError, match="no batches"):
        ndl.scan(step)
    with pytest.raises(ValueError, match="scan"):
        ndl.scan(step, ndl.ones(0, 3), ndl.ones(0, 3))
