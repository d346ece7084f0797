"""Everything that holds of `needle` holds with plain NumPy arrays too, ``NEEDLE_BACKEND=np``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_library_passes_its_tests_on_numpy_arrays() -> None:
    tests = Path(__file__).parent / "needle"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    environment = os.environ | {"NEEDLE_BACKEND": "np"}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, env=environment, cwd=tests.parent.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
