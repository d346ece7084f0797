"""The set-up says what is missing, and how to get it, before it touches anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(os.name == "nt", reason="make and sh need a POSIX system")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a space in its name that holds just the set-up."""
    folder = tmp_path / "my checkout"
    (folder / "scripts").mkdir(parents=True)
    (folder / "bin").mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / "scripts" / "setup.sh", folder / "scripts")
    (folder / "pyproject.toml").touch()
    (folder / "constraints.txt").touch()
    for tool in ("sh", "make", "dirname"):
        (folder / "bin" / tool).symlink_to(shutil.which(tool))
    return folder


def add_python(checkout: Path, change: str) -> None:
    """Put a ``python3`` on the checkout's PATH that is ours but for ``change``, a Python statement."""
    fake = checkout / "bin" / "python3"
    fake.write_text(
        f"#!/bin/sh\nexec '{sys.executable}' -c 'import sys; {change}; exec(sys.argv[2])' \"$@\"\n"
    )
    fake.chmod(0o755)


def set_up(checkout: Path, **variables: str) -> str:
    """Return what ``make setup`` says when all that it finds is in the checkout's ``bin``; it must fail."""
    environment = {"PATH": str(checkout / "bin")} | variables
    run = subprocess.run(["make", "setup"], cwd=checkout, env=environment, capture_output=True, text=True)
    assert run.returncode != 0
    assert "Traceback" not in run.stderr
    assert not (checkout / ".venv").exists()
    return run.stderr


def test_no_python(checkout: Path) -> None:
    message = set_up(checkout)
    assert "No 'python3' that runs was found" in message
    assert "3.11 or newer" in message


def test_the_python_that_was_asked_for_is_missing(checkout: Path) -> None:
    add_python(checkout, "pass")
    assert "No 'python3.99' that runs was found" in set_up(checkout, PYTHON="python3.99")


def test_python_is_too_old(checkout: Path) -> None:
    add_python(checkout, "sys.version_info = (3, 9, 0)")
    message = set_up(checkout)
    assert "is Python 3.9; the set-up needs 3.11 or newer" in message
    assert "make PYTHON=" in message


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_python_without_what_makes_environments(checkout: Path, module: str) -> None:
    add_python(checkout, f'sys.modules["{module}"] = None')
    assert "sudo apt install python3-venv" in set_up(checkout)
