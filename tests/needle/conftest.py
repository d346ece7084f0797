"""What the library's tests share: both modes, and a count of what is computed."""

from __future__ import annotations

import pytest

import needle as ndl
from needle.graph import Op


def subclasses(cls: type) -> set[type]:
    return {cls}.union(*map(subclasses, cls.__subclasses__()))


@pytest.fixture(params=["eager", "lazy"])
def mode(request):
    """Runs the test twice: computing at once, and computing when asked."""
    with ndl.lazy(request.param == "lazy"):
        yield request.param


@pytest.fixture
def computed(monkeypatch):
    """A list to which every call of an operator's `compute` adds the operator."""
    calls = []

    def counting(compute):
        def counted(self, *arrays):
            calls.append(self)
            return compute(self, *arrays)

        return counted

    for op in subclasses(Op):
        if "compute" in vars(op):
            monkeypatch.setattr(op, "compute", counting(op.compute))
    return calls
