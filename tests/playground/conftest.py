"""One server for the tests of a file."""

from __future__ import annotations

import pytest

from playground.testing import serve


@pytest.fixture(scope="module")
def address():
    with serve() as (address, _):
        yield address
