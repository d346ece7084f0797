"""One server for the tests of a file."""

from __future__ import annotations

import pytest

from needle.compiler.background import _Background
from playground.testing import serve


@pytest.fixture(autouse=True)
def what_compiles(monkeypatch):
    """In this process steps run as they are: tests train many networks for a moment each.

    Returns what lets the background compile, for the test that wants it.
    """
    wanted = _Background.wanted
    monkeypatch.setattr(_Background, "wanted", lambda task: None)
    return wanted


@pytest.fixture(scope="module")
def address():
    with serve() as (address, _):
        yield address
