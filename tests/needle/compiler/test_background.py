"""Compiled in the background: a function runs as it is until its program is ready, and nobody can tell."""

from __future__ import annotations

import gc
import itertools
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import needle as ndl
from needle import jit, nn, optim
from needle.autograd import Tensor
from needle.compiler import CannotTrace, background
from needle.compiler.background import Task
from needle.compiler.program import Program

from .conftest import assert_close, count_of, in_threads
from .conftest import jit as plain_jit
from .test_scan import STEPS, batches, side


class Gate:
    """A task that is ready when a test says so."""

    is_ready = False
    error: Exception | None = None
    is_told = False


@pytest.fixture
def gate(monkeypatch) -> Gate:
    """All programs are ready when this gate is; they run their source as plain Python."""
    found = Gate()
    monkeypatch.setattr(Program, "task", found)
    return found


def double(w):
    return lambda x: w * x * 2


def ran_as_it_is(result: Tensor) -> bool:
    """Whether nothing compiled made it: then it knows its operator."""
    return result.op is not None


def in_background(f):
    return plain_jit(f, background=True)


def weights(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).normal(size=shape), dtype="float32")


# While the user waits


def test_long_work_is_told(monkeypatch, capsys, folder):
    monkeypatch.setattr(background, "_MANY_LINES", 1000)
    jit(lambda x: ndl.tanh(x) - 1)(ndl.ones(7))
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(background, "_MANY_LINES", 5)
    f = jit(lambda x: ndl.tanh(x) + len("a function of its own"))
    program = f.program_for(ndl.ones(7))
    said = r"jit: \d+ lines of source are compiled now, which takes about \d+ seconds. "
    said += r"The next time they are read from the disk, if it can be written. "
    said += r"ndl.jit\(f, background=True\) runs the function as it is meanwhile.\n"
    f(ndl.ones(7))
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(said, err)
    f(ndl.ones(7))
    again = jit(f.function)
    again(ndl.ones(7))  # it is on the disk
    assert again.source == program.source
    assert capsys.readouterr() == ("", "")


# Until it is ready


def test_it_runs_as_it_is_until_the_program_is_ready(gate):
    g, x = in_background(double(weights(3))), ndl.ones(3)
    first, second = g(x), g(x)
    assert "def step" in g.source
    gate.is_ready = True
    third, fourth = g(x), g(x)
    assert [*map(ran_as_it_is, (first, second, third, fourth))] == [True, True, False, False]
    for result in (second, third, fourth):
        np.testing.assert_array_equal(result.numpy(), first.numpy())


@pytest.mark.parametrize("make", [optim.SGD, lambda p, lr: optim.SGD(p, lr, momentum=0.9), optim.Adam])
def test_a_training_goes_on_as_if_nothing_had_happened(gate, make):
    ours, theirs = (side(make, lr=0.1, dropout=0.5) for _ in range(2))
    compiled = in_background(ours.step)
    for number, (x, y) in enumerate(zip(*batches(), strict=True)):
        gate.is_ready = number >= 3
        for one in (ours, theirs):
            one.optimizer.lr = 0.1 / (number + 1)
        loss = compiled(x, y)
        assert ran_as_it_is(loss) is not gate.is_ready
        assert_close(loss.numpy(), theirs.step(x, y).numpy(), 1e-5, least=0.1)
        right = theirs.state()
        for name, value in ours.state().items():
            assert_close(value, right[name], 1e-5, f"{name} after step {number}", least=0.1)
    assert count_of(compiled) == 1


def test_a_scan_goes_on_as_if_nothing_had_happened(gate):
    """It takes one step after the other, here those of the function and then those of the program."""
    ours, theirs = side(), side()
    compiled = in_background(ours.step)
    for gate.is_ready in (False, True):
        losses = ndl.scan(compiled, *batches())
        expected = [theirs.step(*batch).numpy() for batch in zip(*batches(), strict=True)]
        assert_close(losses.numpy(), np.stack(expected), 1e-5)


def test_each_shape_has_a_program_of_its_own(monkeypatch):
    gates: dict[int, Gate] = {}

    def gate(program: Program) -> Gate:
        ((_, spec),) = program.results
        return gates.setdefault(spec.shape[0], Gate())

    monkeypatch.setattr(Program, "task", property(gate))
    g = in_background(double(ndl.ones(1, requires_grad=True)))
    g(ndl.ones(2)), g(ndl.ones(3))
    gates[3].is_ready = True
    assert ran_as_it_is(g(ndl.ones(2)))
    assert not ran_as_it_is(g(ndl.ones(3)))
    assert ran_as_it_is(g(ndl.ones(2)))


def test_what_has_changed_meanwhile_is_traced_again(gate):
    layer = nn.Dropout(0.5)
    w = weights(100)
    g = in_background(lambda x: layer(w * x))
    assert (g(ndl.ones(100)).numpy() == 0).any()
    layer.eval()
    gate.is_ready = True
    np.testing.assert_array_equal(g(ndl.ones(100)).numpy(), w.numpy())


def test_a_function_that_cannot_be_traced_says_so_at_once(gate):
    with pytest.raises(CannotTrace, match=r"numbers were asked for"):
        in_background(lambda x: x.numpy())(ndl.ones(3))


def test_threads_that_write(gate):
    """They call the function and the program in turn, and no write is lost."""
    p = ndl.zeros(3, requires_grad=True)

    def f(x):
        p.data = p + x
        return p * 1

    g, one = in_background(f), ndl.ones(3)

    def work():
        for number in range(60):
            gate.is_ready = gate.is_ready or number > 20
            g(one)

    in_threads(*[work] * 4)
    assert p.numpy().tolist() == [240] * 3


def test_a_thread_may_run_the_function_while_another_traces_it(gate):
    w, wrong = weights(3), []
    g = in_background(lambda x: (w * x).sum())

    def work(n):
        x = ndl.ones(n, 3)
        for _ in range(20):
            if abs(g(x).item() - n * w.numpy().sum()) > 1e-4:
                wrong.append(n)

    in_threads(*[partial(work, n) for n in range(2, 8)])
    assert wrong == []


def test_what_cannot_be_compiled_is_told_once(gate):
    g = in_background(double(weights(3)))
    expected = g(ndl.ones(3)).numpy()
    gate.error = ValueError("no such instruction")
    with pytest.warns(RuntimeWarning, match="cannot be compiled, and runs as it is: no such instruction"):
        g(ndl.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(g(ndl.ones(3)).numpy(), expected)


# Who compiles


def dispatchers(compiled) -> list:
    return [kernel for program in compiled._programs for kernel in program.compiled.values()]


def test_another_process_that_ends_before_its_time(folder, monkeypatch):
    """Then this process compiles after all, and the next task has another process."""
    monkeypatch.setattr(background, "_compile", _end)
    g, x = jit(double(weights(5)), background=True), ndl.ones(5)
    g(x)
    g.wait()
    assert not ran_as_it_is(g(x))
    monkeypatch.undo()
    h = jit(lambda x: x * 7, background=True)
    h(x)
    h.wait()
    assert not ran_as_it_is(h(x))


def _end(sources: list) -> None:
    os._exit(1)


def test_the_other_process_is_replaced_before_it_has_grown_large(folder, monkeypatch):
    monkeypatch.setattr(background, "_MOST", 2)
    monkeypatch.setattr(background, "_turns", itertools.count(1))
    processes = []
    for _ in range(4):
        background._submit([]).result()
        processes.append(background._pool().submit(os.getpid).result())
    first, second, third, fourth = processes
    assert first != second == third != fourth


def test_a_program_that_is_gone_is_not_compiled(monkeypatch):
    futures = []

    def submit(sources):
        futures.append(Future())
        return futures[-1]

    monkeypatch.setattr(background, "_submit", submit)
    monkeypatch.setattr(background, "_is_on_disk", lambda kernel: False)
    kernel = SimpleNamespace(compile=lambda types: None)
    kept, dropped = Task([(kernel, ())], [("kept",)]), Task([(kernel, ())], [("dropped",)])
    for future in futures:
        assert not future.cancelled()
    del dropped
    gc.collect()
    assert [future.cancelled() for future in futures] == [False, True]
    futures[0].set_result(None)
    kept.wait()
    assert kept.is_ready


def plain():
    return double(weights(3)), (ndl.ones(3),)


def adam_step():
    one = side(optim.Adam, lr=0.1, dropout=0.5)
    x, y = batches()
    return one.step, (x[0].detach(), y[0].detach())


def over_threads():
    w = weights(1)
    return lambda x: ndl.tanh(x * w) + ndl.exp(-x), (ndl.ones(400_000),)


def of_numpy():
    table = np.arange(12, dtype="float64").reshape(4, 3)
    w = weights(3)
    return lambda x, n: (Tensor(table, dtype="float32") * w * x) ** 2 + n, (np.ones(3), 3)


@pytest.mark.parametrize(
    "make", [plain, *[pytest.param(x, marks=pytest.mark.slow) for x in (adam_step, over_threads, of_numpy)]]
)
def test_another_process_compiles_and_this_one_reads(make, folder):
    f, arguments = make()
    g = jit(f, background=True)
    assert ran_as_it_is(g(*arguments))
    g(*arguments)  # Adam has made its state in the first
    g.wait()
    assert not ran_as_it_is(g(*arguments))
    for kernel in dispatchers(g):
        assert len(kernel.overloads) == 1  # the types were those of the call
        assert kernel.stats.cache_hits
        assert not kernel.stats.cache_misses


@pytest.mark.slow
@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_a_scan(make, folder):
    ours, theirs = (side(make, lr=0.1, dropout=0.5) for _ in range(2))
    compiled = jit(ours.step, background=True)
    for seed in range(3):
        x, y = batches(seed)
        losses = ndl.scan(compiled, x, y)
        expected = [theirs.step(*batch).numpy() for batch in zip(x, y, strict=True)]
        assert losses.shape == (STEPS,)
        assert_close(losses.numpy(), np.stack(expected), 1e-4, least=0.1)
        compiled.wait()
    (program,) = compiled._programs
    kernel = program.scan._compiled
    assert len(kernel.overloads) == 1
    assert not kernel.stats.cache_misses


# The end of a process

SCRIPT = """
import sys, time
print("once")
import needle as ndl
g = ndl.jit(lambda x: ndl.tanh(x * {number}), background=True)
g(ndl.ones(3))
time.sleep({seconds})
"""


@pytest.mark.parametrize("seconds", [0, pytest.param(1.5, marks=pytest.mark.slow)])
def test_a_program_ends_while_something_is_compiled(folder, tmp_path, seconds):
    """It neither waits nor prints, its main module runs once, and the other process ends with it."""
    path = tmp_path / "program.py"
    path.write_text(SCRIPT.format(number=1.5, seconds=seconds))
    found = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", str(path)],
        capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (found.returncode, found.stdout, found.stderr) == (0, "once\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_a_forked_process_compiles_on_its_own(folder):
    code = (
        "import os, needle as ndl\n"
        "g = ndl.jit(lambda x: x * 3.5 - 1, background=True); g(ndl.ones(3))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    h = ndl.jit(lambda x: x * 2.5 - 1, background=True); h(ndl.ones(3))\n"
        "    os._exit(0 if h.program.begun._finished.wait(60) and h(ndl.ones(3)).numpy()[0] == 1.5 else 1)\n"
        "assert g.program.begun._finished.wait(60)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert found.stdout == "0\n", found.stderr
