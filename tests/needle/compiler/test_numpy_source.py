"""Straight-line NumPy computes what `cpu_numpy` does, and writes nothing of ours before all checks passed."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor
from needle.compiler import numpy_source

from ..ops.test_operators import CASES, for_each_operator, naming
from .conftest import assert_close, assert_equals_eager, jit
from .test_operators import LAYOUTS, LOOSER, arguments, derivatives_of


def tensor(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).normal(size=shape) * 3, device=ndl.cpu_numpy())


def whole_numbers(*numbers: int) -> Tensor:
    return Tensor(np.array(numbers), device=ndl.cpu_numpy(), dtype="int64", requires_grad=False)


def test_the_worked_example():
    compiled = jit(lambda x, W, b: ndl.relu(x @ W + b))
    compiled(tensor(10, 2), tensor(2, 8), tensor(8))
    source = textwrap.indent(compiled.source, "    ")
    assert f"become\n\n{source}\nThe lines" in str(numpy_source.__doc__)


def test_a_step_writes_into_the_parameter():
    W, x = tensor(2, 8), tensor(10, 2)

    def step(x, rate):
        W.data = W - rate * (x.T @ (x @ W))

    compiled = jit(step)
    for rate in (0.1, 0.5):
        expected = W.numpy() - rate * (x.numpy().T @ (x.numpy() @ W.numpy()))
        compiled(x, rate)
        assert_close(W.numpy(), expected, 1e-5)
    assert "    np.multiply(matmul2, rate, out=mul1)\n    np.subtract(W, mul1, out=W)" in compiled.source


@for_each_operator([case for case in CASES if case.op not in (ndl.ops.ToDevice, ndl.ops.ArgMax)])
def test_operators(cases):
    for i, case in enumerate(cases):
        layout, dtype = LAYOUTS[i % len(LAYOUTS)], "float64" if i % 3 else "float32"
        args = arguments(case, layout, dtype, ndl.cpu_numpy())
        with naming(case):
            assert_equals_eager(derivatives_of(case, layout, orders=1), *args, tolerance=LOOSER[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_data_types(dtype):
    def f(x, y):
        found = [x + y, x * y, x**2, x < y, x <= 1, ndl.where(x < y, x, y), ndl.relu(x), x / 2]
        found += [x.sum(), x.max(0), x @ y, ndl.sigmoid(x), x.astype("int64") * 2]
        return [*found, x.astype("float32"), x.astype("bool")]

    assert_equals_eager(
        f, *[Tensor(np.arange(9).reshape(3, 3) % n, device=ndl.cpu_numpy(), dtype=dtype) for n in (5, 2)]
    )


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (1, 2), (0, 1, 2)])
def test_reductions(axis):
    views = [lambda t: t, lambda t: t.transpose((0, 2)), ndl.flip, lambda t: t[1:, ::2], lambda t: t * 0 + 1]
    folds = [ndl.summation, ndl.max, ndl.logsumexp, lambda t, axis: ndl.summation(ndl.exp(t), axis)]
    assert_equals_eager(lambda t: [fold(view(t), axis) for view in views for fold in folds], tensor(4, 3, 5))


def test_sums_of_many_numbers_and_products_of_repeated_ones():
    assert_equals_eager(
        lambda t: [t.sum(), *ndl.gradients((t * t).sum(0).sum(), [t])], tensor(3000, 2), tolerance=1e-5
    )
    assert_equals_eager(
        lambda t: ndl.broadcast_to(t.reshape((1, 3)), (4, 3)) @ ndl.ones(3, 2, device=t.device), tensor(3)
    )


def test_infinities_and_what_is_not_a_number():
    x = Tensor([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0], device=ndl.cpu_numpy())
    assert_equals_eager(
        lambda t: [ndl.relu(t), 1 / t, ndl.log(t), t - np.inf, t.max(), ndl.where(t > 0, t, 0 * t)], x
    )
    assert_equals_eager(lambda t: ndl.gradients(ndl.relu(t).sum() * np.inf, [t]), x)


@pytest.mark.parametrize("shape", [(5,), (5, 3), (4, 5), (2, 5, 3), (1, 5, 1)])
def test_rows_by_an_index(shape):
    def f(x, i):
        rows = x[(slice(None),) * shape.index(5) + (i,)]
        return [rows, *ndl.gradients((rows * rows).sum(), [x])]

    assert_equals_eager(f, tensor(*shape), whole_numbers(3, 0, 3, -1, 2, 3))
    assert_equals_eager(f, tensor(*shape), whole_numbers(-2))


@pytest.mark.parametrize(("i", "j", "wrong"), [(1, -3, None), (3, 1, 3), (1, -4, -4)])
def test_nothing_is_written_before_all_checks_have_passed(i, j, wrong):
    W = tensor(3, 2)

    def step(i, j):
        before = W.detach()
        W.data = W * 2
        return before[i].sum() + before[j].sum()

    start, compiled = W.numpy(), jit(step)
    compiled(whole_numbers(0, 1), whole_numbers(1))
    W.data = Tensor(start, device=W.device)
    if wrong is None:
        compiled(whole_numbers(0, i), whole_numbers(j))
    else:
        with pytest.raises(IndexError, match=str(wrong)):
            compiled(whole_numbers(0, i), whole_numbers(j))
    assert_close(W.numpy(), start * (2 if wrong is None else 1))
