"""Compiled functions in several threads."""

from __future__ import annotations

import threading
import time
from functools import partial

import numpy as np

import needle as ndl
from needle import nn, optim
from needle.compiler import CannotTrace
from needle.modes import tracing

from .conftest import assert_close, count_of, in_threads, jit, tensor


def test_threads_that_write():
    p = ndl.zeros(3, requires_grad=True)

    def f(x):
        p.data = p + x
        return p * 1

    g = jit(f)
    one = ndl.ones(3)
    g(one)

    def work():
        for _ in range(50):
            g(one)

    in_threads(*[work] * 4)
    assert p.numpy().tolist() == [201] * 3


def test_threads_with_shapes_of_their_own():
    g = jit(lambda x: (x * x).sum())
    wrong = []

    def work(n):
        x = ndl.ones(n) * n
        for _ in range(20):
            if g(x).item() != n**3:
                wrong.append(n)

    in_threads(*[partial(work, n) for n in (2, 3, 4, 5)])
    assert wrong == []
    assert count_of(g) == 4


def test_threads_that_trace_at_the_same_time():
    """They share a parameter, and one waits for the other."""
    w = tensor(3)
    found = {}

    class Signals:
        ready = threading.Barrier(4)

    def work(n):
        def f(x):
            for _ in range(20):
                x = ndl.tanh(x * w)
            return x + n

        x = ndl.ones(n, 3)
        Signals.ready.wait(60)
        found[n] = jit(f)(x).numpy()

    in_threads(*[partial(work, n) for n in range(2, 6)])
    for n, result in found.items():
        x = ndl.ones(n, 3)
        for _ in range(20):
            x = ndl.tanh(x * w)
        assert_close(result, (x + n).numpy())


def test_a_thread_that_computes_while_another_traces_is_told():
    """The numbers are away for a moment; nothing is computed wrong."""
    w = tensor(3)
    found = []

    class Signals:
        entered, done = threading.Barrier(2), threading.Barrier(2)

    def f(x):
        found = x * w
        Signals.entered.wait(60)
        Signals.done.wait(60)
        return found

    def other():
        Signals.entered.wait(60)
        try:
            (w * 2).numpy()
        except CannotTrace as error:
            found.append(error)
        Signals.done.wait(60)

    in_threads(lambda: assert_close(jit(f)(ndl.ones(3)).numpy(), w.numpy()), other)
    assert len(found) == 1


def test_two_threads_never_wait_for_each_other():
    """One runs a function as it is, which calls a compiled one that the other calls too."""
    weight = nn.Parameter(np.ones(3))
    weight.grad = ndl.ones(3)
    optimizer = optim.Adam([weight])
    predict = jit(lambda x: x * 2)
    one = ndl.ones(3)
    predict(x=one)

    class Signals:
        entered = threading.Event()

    def step(x):  # an optimiser's first step runs as it is
        if not tracing():
            Signals.entered.set()
            time.sleep(0.2)
        found = predict(x=x)
        optimizer.step()
        return found

    def other():
        Signals.entered.wait(60)
        predict(x=one)

    in_threads(lambda: jit(step)(one), other)
    assert Signals.entered.is_set()
