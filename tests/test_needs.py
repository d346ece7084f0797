"""Tests that need what a machine lacks are left out, counted, and missed in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONFTEST = """
import pytest
from tests.needs import LeavesOut, Need

NEEDS = {
    "oracle": Need("an oracle", lambda: False, "go to Delphi"),
    "data": Need("data", lambda: False, "collect some", ci_can_install=False),
    "here": Need("what is here", lambda: True, ""),
}

def pytest_configure(config):
    config.pluginmanager.register(LeavesOut(NEEDS))

@pytest.fixture
def oracle(): raise AssertionError

@pytest.fixture
def data(): raise AssertionError

@pytest.fixture
def answer(oracle): return oracle

@pytest.fixture
def here(): pass
"""
TESTS = """
def test_alone(): pass
def test_with_what_is_here(here): pass
def test_with_data(data): pass
"""
MORE_TESTS = """
def test_with_an_oracle(oracle): pass
def test_with_an_oracle_through_another_fixture(answer): pass
"""


workers = pytest.mark.parametrize(
    "options",
    [[], pytest.param(["-pxdist", "-n2"], marks=pytest.mark.slow)],
    ids=["one process", "two workers"],
)


def run(folder: Path, tests: str, *options: str, **variables: str) -> subprocess.CompletedProcess:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(tests)
    environment = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST_")}
    # Hypothesis and other plugins would be loaded for a second, and none of them is used.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "/dev/null", f"--rootdir={folder}", *options, folder],
        env=environment | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
    )


@workers
def test_what_is_left_out_is_counted_and_the_rest_passes(tmp_path: Path, options: list[str]) -> None:
    result = run(tmp_path, TESTS + MORE_TESTS, *options)
    assert result.returncode == 0, result.stdout
    assert "2 passed" in result.stdout
    assert "skipped" not in result.stdout
    expected = "Tests left out: 1 that needs data (collect some); 2 that need an oracle (go to Delphi).\n"
    assert expected in result.stdout


@pytest.mark.slow
@workers
def test_ci_must_have_what_it_can_install(tmp_path: Path, options: list[str]) -> None:
    result = run(tmp_path, TESTS + MORE_TESTS, *options, CI="true")
    assert result.returncode == 1, result.stdout
    assert "(go to Delphi). In CI, that is a failure." in result.stdout
    assert run(tmp_path, TESTS, *options, CI="true").returncode == 0


@pytest.mark.slow
def test_only_tests_that_were_chosen_count(tmp_path: Path) -> None:
    assert "left out" not in run(tmp_path, TESTS + MORE_TESTS, "-k", "alone").stdout
