"""The plugin of CI that tries a test again whose process died."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).parent.parent / ".ci"
TESTS = """
import os
from pathlib import Path

def test_before(): pass

def test_that_dies():
    marks = Path(__file__).with_name("marks.txt")
    with marks.open("a") as file:
        file.write("x")
    if len(marks.read_text()) <= {times}:
        os._exit(1)

def test_after(): pass
"""


def run(folder: Path, times: int) -> subprocess.CompletedProcess:
    """Run tests of which one ends its process the first few times."""
    (folder / "test_it.py").write_text(TESTS.format(times=times))
    options = ["-c/dev/null", f"--rootdir={folder}", "-pxdist", "-phung", "-n1", "--dist=loadfile"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--max-worker-restart=1", folder],
        env=os.environ | {"PYTHONPATH": str(CI), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_a_test_whose_process_died_may_pass_in_another(tmp_path: Path) -> None:
    result = run(tmp_path, times=1)
    assert result.returncode == 0, result.stdout
    assert "3 passed, 1 rerun" in result.stdout


@pytest.mark.slow
def test_one_whose_process_dies_twice_has_failed(tmp_path: Path) -> None:
    result = run(tmp_path, times=2)
    assert result.returncode == 1
    assert "1 failed" in result.stdout
    assert "crashed while running 'test_it.py::test_that_dies'" in result.stdout
