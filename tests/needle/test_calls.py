"""Eager mode stays shallow: how many Python functions run for one product, and for one walk back.

Each call is a line that a student steps through in a debugger, and time in every small training step.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from needle import modes
from needle.autograd import Tensor


@pytest.fixture(autouse=True)
def no_lines(monkeypatch) -> None:
    """Nodes do not remember the lines that made them, as long as nobody imports viz."""
    monkeypatch.setattr(modes, "remembers_lines", False)


def calls(f) -> list[str]:
    """The functions that run in ``f()``, in order, once everything is compiled and remembered."""
    for _ in range(3):
        f()
    names: list[str] = []

    def note(frame, event, arg):
        if event == "call":
            names.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        result = f()  # kept: to free it is a call, too
    finally:
        sys.setprofile(None)
    del result
    return names[1:]  # f itself does not count


def test_a_product_is_at_most_eight_calls(no_gc):
    a, b = Tensor(np.ones((2, 3))), Tensor(np.ones((2, 3)))
    names = calls(lambda: a * b)
    assert names[:4] == ["Tensor.__mul__", "TensorOp.__call__", "Value.make_from_op", "Elementwise.compute"]
    assert len(names) <= 8, names


def test_to_remember_the_line_is_one_call_more(no_gc, monkeypatch):
    a, b = Tensor(np.ones((2, 3))), Tensor(np.ones((2, 3)))
    names = calls(lambda: a * b)
    monkeypatch.setattr(modes, "remembers_lines", True)
    assert sorted(calls(lambda: a * b)) == sorted([*names, "line_of_user"])


def test_a_walk_back_over_a_product_and_a_sum_is_at_most_sixty_calls(no_gc):
    total = (Tensor(np.ones((2, 3))) * Tensor(np.ones((2, 3)))).sum()
    names = calls(lambda: total.backward())
    assert names.count("pull_back") == 2
    assert len(names) <= 60, names
