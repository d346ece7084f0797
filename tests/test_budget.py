"""The budget of processor time finds the file that takes more than its share, and fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest
from numba.core import event

from .budget import SHARE, Compiling, over_budget, processor_time

ROOT = Path(__file__).parent.parent
CONFTEST = """
from tests.budget import Budget

def pytest_configure(config):
    config.pluginmanager.register(Budget(config))
"""
CONFIGURATION = "[pytest]\ntestpaths = tests\naddopts = -m 'not slow'\nmarkers = slow\n"


def test_a_file_over_its_share_is_named_with_what_to_do() -> None:
    seconds = {f"tests/test_{i}.py": 1.0 for i in range(60)} | {"tests/test_heavy.py": 40.0}
    assert over_budget(seconds, share=0.08) == {
        "tests/test_heavy.py": "tests/test_heavy.py took 40.0 s of processor time, 40.0% of the 100 s of all "
        "tests; its share is 8%. Make its tests cheaper, or mark the heavy ones with pytest.mark.slow: "
        "`make test-slow` runs those."
    }


@pytest.mark.parametrize("speed", [0.1, 1.0, 10.0])
def test_the_speed_of_the_machine_does_not_matter(speed: float) -> None:
    seconds = {f"tests/test_{i}.py": speed for i in range(20)}
    assert over_budget(seconds, share=0.06) == {}
    assert list(over_budget(seconds | {"tests/test_3.py": 3 * speed}, share=0.06)) == ["tests/test_3.py"]


def test_what_counts_is_work_of_children_too_and_not_waiting() -> None:
    before = processor_time()
    time.sleep(0.3)
    assert processor_time() - before < 0.2
    work = "import time\nwhile time.process_time() < 0.4: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    assert processor_time() - before >= 0.4


def test_what_numba_compiles_is_left_out() -> None:
    @numba.njit
    def inner(x):
        return x * 2

    @numba.njit
    def outer(x):
        return inner(x) + 1

    compiling = Compiling()
    before = processor_time()
    with event.install_listener("numba:compile", compiling):
        assert outer(3) == 7
        compiled = compiling.seconds
        assert outer(4) == 9
    assert 0 < compiled == compiling.seconds <= processor_time() - before


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of sixteen files, one of which does nearly all the work, half of it in a process of its own."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    for i in range(15):
        (tmp_path / "tests" / f"test_{i}.py").write_text("def test(): pass\n")
    (tmp_path / "tests" / "test_heavy.py").write_text(
        "import subprocess, sys, time\n"
        "WORK = 'import time\\nend = time.process_time() + 0.2\\nwhile time.process_time() < end: pass'\n"
        "def test_here(): exec(WORK)\n"
        "def test_in_a_child(): subprocess.run([sys.executable, '-c', WORK], check=True)\n"
    )
    return tmp_path


def run(suite: Path, *options: str) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # Hypothesis and other plugins would be loaded for a second, and none of them is used.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=suite, env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "options",
    [[], pytest.param(["-pxdist", "-n2", "--dist=loadfile"], marks=pytest.mark.slow)],
    ids=["one process", "two workers"],
)
def test_a_whole_run_fails_for_a_file_over_budget(suite: Path, options: list[str]) -> None:
    result = run(suite, *options)
    assert result.returncode == 1, result.stdout
    assert "FAILED tests/test_heavy.py::budget" in result.stdout
    assert f"its share is {SHARE:.0%}" in result.stdout
    assert "1 failed, 17 passed" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [["tests/test_heavy.py"], ["-k", "heavy"], ["-m", "slow or not slow"]])
def test_a_run_of_some_tests_is_not_judged(suite: Path, options: list[str]) -> None:
    result = run(suite, *options)
    assert result.returncode == 0, result.stdout
    assert "share" not in result.stdout
