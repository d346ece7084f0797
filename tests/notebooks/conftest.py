"""What the tests of the lectures share: the notebooks, the editions tool, and fresh kernels."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parent.parent.parent
LECTURES = sorted((ROOT / "notebooks").glob("*.ipynb"))
RUN_EACH_TIME = {"01", "05"}  # `make test` runs these on a kernel and tries their mistakes, …
RUNS = ("test_lectures.py", "test_lecture_modules.py")  # … and `make test-slow` does so with the others


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the running of most lectures to the slow suite, and that of each with its exercises solved."""
    for item in items:
        if item.path.name in RUNS and isinstance(item, pytest.Function) and "lecture" in item.fixturenames:
            number = item.callspec.params["lecture"].stem[:2]
            if number not in RUN_EACH_TIME or "solved" in item.fixturenames:
                item.add_marker(pytest.mark.slow)


def script(name: str) -> ModuleType:
    """A module of the folder scripts, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def editions() -> ModuleType:
    """The module scripts/notebook_editions.py."""
    return script("notebook_editions")


@pytest.fixture(scope="session", params=LECTURES, ids=lambda path: path.stem)
def lecture(request: pytest.FixtureRequest) -> Path:
    """Each lecture in turn."""
    return request.param


@pytest.fixture(scope="session")
def notebook(lecture: Path) -> NotebookNode:
    """The lecture as it is in the repository."""
    return nbformat.read(lecture, as_version=4)


@pytest.fixture(scope="session")
def beside(lecture: Path) -> ModuleType:
    """What is tested of this lecture alone: the module ``lecture_<number>`` beside this file.

    SHOWN
        The cell with the words, the words, the cell that shows it, and all that this one shows.
    TRUE
        The cell with the words, the words, and an expression that is true on the lecture's kernel.

    Each claim quotes its cell, so that a sentence that changes is looked at again. A sentence that states a
    number, a count, an order, a type or "the same" belongs there.
    """
    return import_module(f".lecture_{lecture.stem[:2]}", __package__)


@pytest.fixture(scope="session")
def set_up_cell() -> str:
    """The set-up cell; another test proves that it is the same in every lecture."""
    cells = nbformat.read(LECTURES[0], as_version=4).cells
    return next(cell.source for cell in cells if cell.id == "set-up")


Kernel = Callable[..., AbstractContextManager[NotebookClient]]


@pytest.fixture(scope="session")
def kernel() -> Kernel:
    """Start a fresh kernel for a notebook: ``with kernel(notebook) as client: client.execute_cell(cell, 0)``.

    The kernel is this Python or the given one, whatever kernels the machine has registered. A cell that
    raises leaves an error among its outputs, as in JupyterLab.
    """

    @contextmanager
    def fresh(
        notebook: NotebookNode, cwd: Path = ROOT / "notebooks", python: str | Path = sys.executable
    ) -> Iterator[NotebookClient]:
        manager = AsyncKernelManager()
        manager._kernel_spec = KernelSpec(
            argv=[str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
        )
        client = NotebookClient(notebook, km=manager, timeout=300, allow_errors=True)
        with client.setup_kernel(cwd=str(cwd), cleanup_kc=True):
            yield client

    return fresh
