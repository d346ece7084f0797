"""One server for all tests of the app."""

from __future__ import annotations

import pytest

from playground.testing import serve


@pytest.fixture(scope="session")
def address():
    with serve() as (address, _):
        yield address
