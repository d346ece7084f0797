"""The script that keeps CI from skipping tests sees what was skipped, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "no_skips.py"
TESTS = """
import pytest

def test_that_runs(): pass

@pytest.mark.skipif(True, reason="{reason}")
def test_that_does_not(): pass

@pytest.mark.xfail(strict=True)
def test_of_a_known_fault(): assert False
"""


def judge(folder: Path, reason: str) -> subprocess.CompletedProcess:
    (folder / "test_it.py").write_text(TESTS.format(reason=reason))
    report = folder / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        "/dev/null",
        f"--rootdir={folder}",
        f"--junitxml={report}",
    ]
    # Hypothesis and other plugins would be loaded for a second, and none of them is used.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([*command, folder], check=True, capture_output=True, env=environment)
    return subprocess.run([sys.executable, SCRIPT, report], capture_output=True, text=True)


def test_a_skip_that_no_machine_imposes_is_named(tmp_path: Path) -> None:
    verdict = judge(tmp_path, "torch is not installed")
    assert verdict.returncode == 1
    assert "test_that_does_not: torch is not installed" in verdict.stderr
    assert "known_fault" not in verdict.stderr


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["no GPU", "there is no GPU here"])
def test_what_no_installation_can_give_may_be_skipped(tmp_path: Path, reason: str) -> None:
    assert judge(tmp_path, reason).returncode == 0


def test_no_report_is_no_proof(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, SCRIPT], capture_output=True).returncode == 1
