"""How many threads BLAS uses for a product."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import needle as ndl
from needle.backend_ndarray import blas

one_thread = blas.one_thread
of_openblas = pytest.mark.skipif(one_thread.limit is None, reason="NumPy's BLAS is not OpenBLAS")


@of_openblas
def test_one_thread_inside_and_as_many_as_before_afterwards():
    before = one_thread.count()
    with one_thread:
        assert one_thread.count() == 1
    assert one_thread.count() == before


@of_openblas
def test_the_last_one_to_leave_sets_it_back(monkeypatch):
    limits = []
    monkeypatch.setattr(one_thread, "count", lambda: 2)
    monkeypatch.setattr(one_thread, "limit", limits.append)
    with one_thread:
        with one_thread:
            pass
        assert limits == [1]
    assert limits == [1, 2]


@of_openblas
def test_an_error_inside_leaves_nothing_changed():
    before = one_thread.count()
    with pytest.raises(ZeroDivisionError), one_thread:
        _ = 1 / 0
    assert one_thread.count() == before


@pytest.mark.parametrize(("n", "limited"), [(16, 0), (100, 1), (300, 0)])
def test_products_of_medium_size_have_one_thread(n, limited, monkeypatch):
    entered = []

    @contextmanager
    def noted():
        entered.append(n)
        yield

    a = np.random.default_rng(0).normal(size=(n, n))
    x = ndl.Tensor(a, dtype="float64", device=ndl.cpu())
    monkeypatch.setattr(x.device.mod, "one_thread", noted())
    np.testing.assert_allclose((x @ x).numpy(), a @ a, atol=1e-10)
    assert len(entered) == limited
