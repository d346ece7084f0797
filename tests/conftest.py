"""What all tests share: repeatable randomness, what they need of a machine, and the wheel."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

# jsonschema, which nbformat imports, would spend 3 s on a grammar of web addresses; no test has one checked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

import hypothesis
import numpy as np
import pytest

from playground.testing import chromium, find_chromium, find_nginx

from .jupyter import jupyterlab, open_notebook, open_notebooks  # noqa: F401, they are fixtures
from .site import served_site

ROOT = Path(__file__).parent.parent
# The files of the MNIST data set: where NEEDLE_DATA_DIR says, or beside the checkout.
MNIST = Path(os.environ.get("NEEDLE_DATA_DIR", Path(__file__).parents[2] / "shared" / "data")) / "mnist"

# The same examples on every run, and no verdict from a slow machine's clock.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of the garbage collector's rounds: it stays to the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Undo what an import of streamlit does: the kernels that tests start would show no figures."""
    os.environ.pop("MPLBACKEND", None)


@pytest.fixture(autouse=True)
def seed() -> None:
    """Start each test from the same state of NumPy's global random numbers."""
    np.random.seed(0)


@pytest.fixture
def no_gc():
    """The garbage collector rests: only what nobody refers to any more is freed."""
    gc.collect()
    gc.freeze()  # the next test need not look through all of this again
    gc.disable()
    yield
    gc.enable()


# A test that asks for one of these is skipped where it cannot be had.


def needs(name: str, is_here: bool, remedy: str) -> None:
    """Skip the tests that need what is not here, and say how to get it."""
    if not is_here:
        pytest.skip(f"needs {name}: {remedy}")


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """The module torch, with which results are compared."""
    needs("torch", find_spec("torch") is not None, "pip install torch")
    return importlib.import_module("torch")


@pytest.fixture(scope="session")
def nbgrader() -> ModuleType:
    """The module nbgrader, which hands notebooks out and grades them."""
    needs("nbgrader", find_spec("nbgrader") is not None, "pip install nbgrader")
    return importlib.import_module("nbgrader")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site, without the book, on a server that sends files."""
    own = tmp_path_factory.getbasetemp()
    with served_site(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as address:
        yield address


@pytest.fixture(scope="session")
def mpi() -> Path:
    """The program mpiexec, which starts several workers: that beside Python, or another on the path."""
    needs("mpi4py", find_spec("mpi4py") is not None, "pip install -e '.[mpi]'")
    beside = Path(sys.executable).with_name("mpiexec")
    return beside if beside.exists() else Path(shutil.which("mpiexec") or beside)


@pytest.fixture(scope="session")
def mnist() -> Path:
    """The folder with MNIST's four files."""
    needs("MNIST", MNIST.is_dir(), "set NEEDLE_DATA_DIR to a folder with mnist/ in it")
    return MNIST


@pytest.fixture(scope="session")
def nginx() -> str:
    """The program that stands before several processes of the playground."""
    needs("nginx", find_nginx() is not None, "apt install nginx-light")
    return str(find_nginx())


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium: one for all tests of a file, since playwright runs only once in a thread."""
    needs("Chromium", find_chromium() is not None, "install Chromium or Chrome")
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def context(browser):
    """Pages of one person: what one of them loaded, the next one finds in the browser's cache."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built offline from a copy that holds its sources only."""
    source = tmp_path_factory.mktemp("source")
    for name in ("needle", "viz", "lectures", "playground"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run([*command, f"--wheel-dir={target}", source], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = target.glob("*.whl")
    return path
