"""The generated source: what repeats itself, what is computed once, where numbers live."""

from __future__ import annotations

import re

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.compiler.names import PAGE

from .conftest import assert_close, jit


def deep(layers: int, width: int = 8):
    """A step of training of a network of equal layers."""
    np.random.seed(0)
    model = nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.Tanh())])
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(x):
        loss = (model(x) ** 2).sum()
        optimizer.reset_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def trained(layers: int, plain=True, **options):
    """The step compiled, after three steps, and the same parameters trained as it is."""
    (step, model), (plain, expected) = deep(layers), deep(layers)
    compiled = jit(step, plain, **options)
    x = ndl.Tensor(np.random.default_rng(0).normal(size=(10, 8)), dtype="float32", requires_grad=False)
    for _ in range(3):
        assert_close(compiled(x).numpy(), plain(x).numpy())
    for a, b in zip(model.parameters(), expected.parameters(), strict=True):
        assert_close(a.numpy(), b.numpy(), 1e-4)
    return compiled


def function_lines(source: str) -> list[str]:
    return re.findall(r"^def (\w+)\(", source, re.M)


@pytest.mark.parametrize("plain", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_equal_layers_share_a_function(plain):
    source = trained(6, plain=plain).source
    name, step = function_lines(source)
    assert step == "step"
    calls = len(re.findall(rf"^    {name}\(", source, re.M))
    assert calls >= 4
    assert f"# called {calls} times, for different arrays" in source


def test_two_layers_need_no_function():
    assert function_lines(trained(1, plain=True).source) == ["step"]


def test_a_line_of_a_function_is_a_statement_of_each_call():
    program = trained(6, plain=True).program
    (part,) = program.parts
    callers = [line.block for line in part.lines if line.text.startswith("    linear(")]
    several = [line.nests for line in part.lines if len(line.nests) > 1]
    assert several
    for nests in several:
        assert len(nests) == len(callers)
        assert all(nest in part.blocks[block] for nest, block in zip(nests, callers, strict=True))


def test_equal_steps_in_time_share_a_function():
    w = ndl.Tensor(np.random.default_rng(0).normal(size=(64, 64)) / 8, dtype="float32")

    def states(x):
        h, found = ndl.zeros(16, 64), []
        for t in range(6):
            h = ndl.tanh(x[t] * 0.5 + h @ w)
            found.append(h)
        return ndl.stack(found, axis=0)

    x = ndl.Tensor(np.random.default_rng(1).normal(size=(6, 16, 64)), dtype="float32")
    compiled = jit(states)
    assert_close(compiled(x).numpy(), states(x).numpy())
    name, *_ = function_lines(compiled.source)
    calls = re.findall(rf"^    {name}\(.*?\)$", compiled.source, re.M | re.S)
    assert len(calls) >= 3
    assert len({start for call in calls for start in re.findall(r"part\(x, (\d+),", call)}) >= 3


def test_parameters_have_the_names_of_their_modules_also_if_an_optimiser_asks_first():
    model = nn.Sequential(nn.Linear(2, 3, rng=0), nn.ReLU(), nn.Linear(3, 1, rng=0))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.reset_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    program = jit(step).program_for(ndl.Tensor(np.ones((4, 2))))
    assert [x.name for x in program.trace.inputs[1:]] == [
        f"model.modules.{i}.{name}" for i in (0, 2) for name in ("weight", "bias")
    ]


def test_no_line_is_longer_than_the_page():
    for line in trained(6, plain=True).source.splitlines():
        assert len(line) <= PAGE


def test_small_arrays_belong_to_the_function_and_large_ones_to_the_program():
    w = ndl.Tensor(np.ones((8, 8)), dtype="float32")
    f = jit(lambda x: ndl.tanh(x @ w) @ w)
    f(ndl.ones(4, 8))
    assert "= local(" in f.source
    assert "work" not in f.source
    f(ndl.ones(1000, 8))
    assert not any(buffer.size > 1024 for buffer in f.program.plan.local)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_local_arrays_of_each_type(dtype):
    w = ndl.Tensor(np.random.default_rng(0).normal(size=(8, 8)), dtype=dtype)
    f = ndl.jit(lambda x: ndl.tanh(x @ w) @ w)
    x = ndl.Tensor(np.random.default_rng(1).normal(size=(4, 8)), dtype=dtype)
    assert_close(f(x).numpy(), np.tanh(x.numpy() @ w.numpy()) @ w.numpy())


@pytest.mark.slow
def test_parts_that_do_the_same_are_one_function():
    weights = [
        ndl.Tensor(np.random.default_rng(i).normal(size=(256, 256)) / 16, dtype="float32") for i in range(4)
    ]

    def f(x):
        for w in weights:
            x = ndl.tanh(x @ w)
        return x

    compiled = ndl.jit(f)
    x = ndl.Tensor(np.random.default_rng(9).normal(size=(256, 256)), dtype="float32")
    assert_close(compiled(x).numpy(), f(x).numpy(), 1e-5)
    source, program = compiled.source, compiled.program
    assert "is step_1 again, for" in source
    assert len(function_lines(source)) < len(program.parts)
    assert len(set(program.compiled.values())) == len(function_lines(source))
