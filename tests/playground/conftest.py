"""One server for the tests of a file."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from needle import compiler
from needle.compiler import background
from playground.testing import serve


@pytest.fixture(autouse=True)
def what_compiles(monkeypatch):
    """In this process steps run as they are, and nothing is traced: tests train many networks for a moment.

    Returns what lets the background compile, for the test that wants it.
    """
    before = [
        (background, "_submit", background._submit),
        (background, "_is_on_disk", background._is_on_disk),
        (compiler, "scan_is_ready", compiler.scan_is_ready),
    ]
    monkeypatch.setattr(background, "_submit", lambda sources: Future())  # which never ends
    monkeypatch.setattr(background, "_is_on_disk", lambda kernel: False)
    monkeypatch.setattr(compiler, "scan_is_ready", lambda step, *batches: False)

    def compile_again():
        for where, name, value in before:
            monkeypatch.setattr(where, name, value)

    return compile_again


@pytest.fixture(scope="module")
def address():
    with serve() as (address, _):
        yield address


@pytest.fixture
def page(context, address):
    """A fresh page; at the end, nothing may have gone wrong in it, been missing, or left this machine."""
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    troubles = []
    page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "response", lambda answer: answer.status < 400 or troubles.append(f"{answer.status}: {answer.url}")
    )
    own = (address, address.replace("http", "ws", 1), "data:", "blob:")
    page.on(
        "request", lambda request: request.url.startswith(own) or troubles.append(f"asked for {request.url}")
    )
    yield page
    page.close()
    assert not troubles
