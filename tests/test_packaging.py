"""The wheel, installed in an environment of its own, works outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that holds the wheel, and sees this one's other packages.

    A line in a ``.pth`` file adds this environment's packages to the search path, after the wheel's own.
    Python follows no ``.pth`` file in a folder that was added so: the editable checkout stays out.
    """
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=sys.platform != "win32")
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*pip, wheel], check=True)
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    (Path(packages) / "other_packages.pth").write_text(sysconfig.get_path("purelib"))
    return python


def run(python: Path, program: str, cwd: Path) -> str:
    """Run ``program`` in ``cwd`` and return what it printed."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run([python, "-c", program], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("package", ["needle", "viz", "lectures", "playground"])
def test_packages_come_from_the_wheel(installed: Path, package: str, tmp_path: Path) -> None:
    path = run(installed, f"import {package}; print({package}.__file__)", tmp_path)
    assert Path(path).is_relative_to(installed.parent.parent)


@pytest.mark.slow
def test_needle_computes(installed: Path, tmp_path: Path) -> None:
    program = "import needle as ndl; print(ndl.Tensor([1, 2, 3]) + 1)"
    assert run(installed, program, tmp_path) == "needle.Tensor([2. 3. 4.])"


@pytest.mark.slow
def test_viz_draws(installed: Path, tmp_path: Path) -> None:
    program = "import needle as ndl, viz; x = ndl.Tensor([1.0]); print(viz.draw(x * x).source)"
    assert "digraph" in run(installed, program, tmp_path)


def test_every_source_and_asset_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    kept = {
        path.relative_to(ROOT).as_posix()
        for package in ("needle", "viz", "lectures", "playground")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == kept


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    assert {"Name: needle-notebooks", "License-Expression: MIT", "Requires-Python: >=3.11"} <= set(lines)
