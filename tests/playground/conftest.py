"""One server and one browser for all tests of the app."""

from __future__ import annotations

import pytest

from playground.testing import chromium, find_chromium, serve


@pytest.fixture(scope="session")
def address():
    with serve() as (address, _):
        yield address


@pytest.fixture(scope="session")
def browser():
    if find_chromium() is None:
        pytest.skip("no Chromium on this machine")
    with chromium() as browser:
        yield browser
