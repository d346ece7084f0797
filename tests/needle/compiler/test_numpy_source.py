"""Straight-line NumPy computes what `cpu_numpy` does, and writes nothing of ours before all checks passed."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor
from needle.compiler import numpy_source
from needle.compiler.lower import Access, Buffer, Nest, lower, whole
from needle.compiler.names import Names
from needle.compiler.simplify import simplify
from needle.compiler.stand_ins import Number
from needle.graph import Op, Pending, Spec

from ..ops.test_operators import CASES, for_each_operator, naming
from .conftest import assert_close
from .test_operators import LAYOUTS, LOOSER, arguments, derivatives_of


class Written:
    """A function as NumPy source. The first operands are `kept`; the first results are their new values."""

    def __init__(self, f: Callable, *args: Tensor, names: str = "x y z v w", kept: int = 0):
        self.names = names.split()[: len(args)]
        cells = [Pending(Op(), (), Spec(x.shape, x.dtype, x.device)) for x in args]
        grads = [x.requires_grad for x in args]
        with ndl.lazy():
            found = f(*[Tensor.make_const(x, requires_grad=y) for x, y in zip(cells, grads, strict=True)])
        self.results = found if isinstance(found, (list, tuple)) else [found]
        known = dict(zip(cells, self.names, strict=True))
        low = lower([x._data for x in self.results], known, has_blas=False)
        given = [low.arrays[cell]._handle for cell in cells]
        self.outs, self.kept, steps = given[:kept], self.names[:kept], low.steps
        for i, x in enumerate([low.arrays[x._data] for x in self.results]):
            if i >= kept:
                self.outs.append(Buffer(x.size, x.dtype, f"result{i or ''}", is_ours=False))
            read = Access(x._handle, x.offset, x.strides)
            steps += [Nest("copy", x.shape, whole(self.outs[i], x.shape), [read])] * (x.size > 0)
        nests: list[Any] = simplify(steps, set(self.outs), accumulates=False)
        fresh = Names()
        for owner, x in [(nest, x) for nest in nests for x in nest.accesses]:
            if not x.buffer.name:
                x.buffer.name = fresh.numbered(owner.maker.op) if x is owner.out else fresh.unique("value")
        constants = {x.buffer for nest in nests for x in nest.accesses if x.buffer.data is not None}
        self.constants = {x.name: x.data for x in constants}
        outside = [*given[kept:], *self.outs[kept:]]
        kept_ones = [*given[:kept], *constants]
        self.part = numpy_source.write_numpy("step", nests, outside, kept_ones, {"rate": "rate"}, fresh)

    def __call__(self, *args: Tensor, **numbers: float) -> tuple[int, list[np.ndarray]]:
        """What the last of some calls returns, and the results."""
        arrays: dict[str, Any] = dict(zip(self.names, [x.numpy().reshape(-1) for x in args], strict=True))
        arrays |= numbers | {x.name: np.full(x.size, 9, x.dtype) for x in self.outs[len(self.kept) :]}
        self.part.load({name: arrays[name] for name in self.kept} | self.constants)
        for _ in range(1 if self.kept else 2):
            status = self.part(arrays)
        return status, [arrays[x.name].reshape(y.shape) for x, y in zip(self.outs, self.results, strict=True)]


def check(f: Callable, *args: Tensor, tolerance: float | None = None) -> None:
    """What is written computes what `f` does."""
    expected = f(*args)
    status, found = Written(f, *args)(*args)
    assert status == 0
    for a, b in zip(found, expected if isinstance(expected, (list, tuple)) else [expected], strict=True):
        assert a.dtype == b.dtype
        assert_close(a, b.numpy(), tolerance)


def tensor(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).normal(size=shape) * 3, device=ndl.cpu_numpy())


def whole_numbers(*numbers: int) -> Tensor:
    return Tensor(np.array(numbers), device=ndl.cpu_numpy(), dtype="int64", requires_grad=False)


def test_the_worked_example():
    args = tensor(10, 2), tensor(2, 8), tensor(8)
    source = Written(lambda x, W, b: ndl.relu(x @ W + b), *args, names="x W b").part.source
    assert f"become\n\n{textwrap.indent(source, '    ')}\nThe lines" in str(numpy_source.__doc__)


def test_a_step_writes_into_the_parameter():
    def step(W, x, rate):
        return [W - rate * (x.T @ (x @ W))]

    W, x = tensor(2, 8), tensor(10, 2)
    written = Written(lambda W, x: step(W, x, Number("rate", 0.1)), W, x, names="W x", kept=1)
    assert "    np.multiply(matmul2, rate, out=mul1)\n    np.subtract(W, mul1, " in written.part.source
    assert_close(written(W, x, rate=0.5)[1][0], step(W, x, 0.5)[0].numpy())


@for_each_operator([case for case in CASES if case.op not in (ndl.ops.ToDevice, ndl.ops.ArgMax)])
def test_operators(cases):
    for i, case in enumerate(cases):
        layout, dtype = LAYOUTS[i % len(LAYOUTS)], "float64" if i % 3 else "float32"
        args = arguments(case, layout, dtype, ndl.cpu_numpy())
        with naming(case):
            check(derivatives_of(case, layout, orders=1), *args, tolerance=LOOSER[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_data_types(dtype):
    def f(x, y):
        found = [x + y, x * y, x**2, x < y, x <= 1, ndl.where(x < y, x, y), ndl.relu(x), x / 2]
        found += [x.sum(), x.max(0), x @ y, ndl.sigmoid(x), x.astype("int64") * 2]
        return [*found, x.astype("float32"), x.astype("bool")]

    check(f, *[Tensor(np.arange(9).reshape(3, 3) % n, device=ndl.cpu_numpy(), dtype=dtype) for n in (5, 2)])


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (1, 2), (0, 1, 2)])
def test_reductions(axis):
    views = [lambda t: t, lambda t: t.transpose((0, 2)), ndl.flip, lambda t: t[1:, ::2], lambda t: t * 0 + 1]
    folds = [ndl.summation, ndl.max, ndl.logsumexp, lambda t, axis: ndl.summation(ndl.exp(t), axis)]
    check(lambda t: [fold(view(t), axis) for view in views for fold in folds], tensor(4, 3, 5))


def test_sums_of_many_numbers_and_products_of_repeated_ones():
    check(lambda t: [t.sum(), *ndl.gradients((t * t).sum(0).sum(), [t])], tensor(3000, 2), tolerance=1e-5)
    check(lambda t: ndl.broadcast_to(t.reshape((1, 3)), (4, 3)) @ ndl.ones(3, 2, device=t.device), tensor(3))


def test_infinities_and_what_is_not_a_number():
    x = Tensor([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0], device=ndl.cpu_numpy())
    check(lambda t: [ndl.relu(t), 1 / t, ndl.log(t), t - np.inf, t.max(), ndl.where(t > 0, t, 0 * t)], x)
    check(lambda t: ndl.gradients(ndl.relu(t).sum() * np.inf, [t]), x)


@pytest.mark.parametrize("shape", [(5,), (5, 3), (4, 5), (2, 5, 3), (1, 5, 1)])
def test_rows_by_an_index(shape):
    def f(x, i):
        rows = x[(slice(None),) * shape.index(5) + (i,)]
        return [rows, *ndl.gradients((rows * rows).sum(), [x])]

    check(f, tensor(*shape), whole_numbers(3, 0, 3, -1, 2, 3))
    check(f, tensor(*shape), whole_numbers(-2))


@pytest.mark.parametrize(("i", "j", "expected"), [(1, -3, 0), (3, 1, 1), (1, -4, 2)])
def test_checks(i, j, expected):
    W, indices = tensor(3, 2), (whole_numbers(0, i), whole_numbers(j))
    step = Written(lambda W, i, j: [W * 2, W[i].sum() + W[j].sum()], W, *indices, names="W i j", kept=1)
    status, [new, _] = step(W, *indices)
    assert status == expected
    assert_close(new, W.numpy() * (1 if expected else 2))
