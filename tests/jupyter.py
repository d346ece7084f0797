"""JupyterLab as a reader has it, in a real browser, for the tests that open notebooks in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import nbformat
import pytest
from nbformat import NotebookNode

from playground.testing import free_port, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@dataclass
class JupyterLab:
    """A JupyterLab of its own: its folder of notebooks, and where it is served."""

    folder: Path
    address: str
    opened: int = 0

    def open(self, page: Page, *cells: str | NotebookNode, run: bool = True) -> None:
        """Open a new notebook with these cells, of Python if they are text, and `run` them all."""
        self.opened += 1
        name = f"{self.opened}.ipynb"
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, self.folder / name)
        self.visit(page, name)
        if run:
            self.run(page, "notebook:run-all-cells")

    def visit(self, page: Page, name: str) -> None:
        """Open a notebook that lies in the folder, and wait until its kernel is ready."""
        page.goto(f"{self.address}/doc/tree/{name}")
        page.wait_for_function(KERNEL_IS_IDLE, timeout=60_000)

    def run(self, page: Page, command: str, **arguments: str) -> None:
        """Run a command of JupyterLab, such as ``notebook:run-all-cells``."""
        run = "([command, given]) => jupyterapp.commands.execute(command, given).then(() => null)"
        page.evaluate(run, [command, arguments])

    def close(self, page: Page) -> None:
        """Close the page, then end its kernel, which would live on and keep some hundred MB.

        The page goes first: while it is busy with its kernel, it would complain.
        """
        kernel = page.evaluate(KERNEL)
        page.close()
        if kernel:
            request = Request(f"{self.address}/api/kernels/{kernel}", method="DELETE")
            urlopen(request, timeout=30).close()

    def execute(self, page: Page, code: str) -> str:
        """Execute code in the page's kernel, and return what it printed."""
        return page.evaluate(EXECUTE, code)


KERNEL_IS_IDLE = """
    window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === "idle"
"""

EXECUTE = """async code => {
    const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel
    const future = kernel.requestExecute({code})
    let printed = ""
    future.onIOPub = ({content}) => {
        printed += content.text ?? ""
        if (content.traceback) printed += content.traceback.join("\\n")
    }
    await future.done
    return printed
}"""

KERNEL = "window.jupyterapp?.shell.currentWidget?.sessionContext.session?.kernel?.id"


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterLab]:
    """JupyterLab on a free port, with settings of its own, with kernels of this Python."""
    home, folder = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("notebooks")
    settings = home / "JUPYTER_CONFIG_DIR/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    extensions = home / "JUPYTER_CONFIG_DIR/labconfig"
    extensions.mkdir()  # nbgrader's asks its server for courses, and there is none
    (extensions / "page_config.json").write_text('{"disabledExtensions": {"@jupyter/nbgrader": true}}')
    address = f"http://127.0.0.1:{free_port()}"
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": address.rpartition(":")[2],
        "ServerApp.root_dir": folder,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": "",
        "ServerApp.disable_check_xsrf": True,  # so that `close` can ask it
        "LabApp.expose_app_in_browser": True,
        "LabApp.extension_manager": "readonly",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser"]
    command += [f"--{option}={value}" for option, value in options.items()]
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    with serving(
        command, f"{address}/api", cwd=folder, environment={name: str(home / name) for name in names}
    ):
        yield JupyterLab(folder, address)


@pytest.fixture(scope="module")
def open_notebooks(browser: Browser, jupyterlab: JupyterLab) -> Callable[[], AbstractContextManager]:
    """What `open_notebook` is, for a longer time: ``with open_notebooks() as open_notebook: …``."""

    @contextmanager
    def open_notebooks() -> Iterator[Callable[..., Page]]:
        pages: list[Page] = []
        troubles: list[str] = []

        def watch(request) -> None:
            if not request.url.startswith((jupyterlab.address, "data:", "blob:")):
                troubles.append(f"asked for {request.url}")

        def open(*cells: str | NotebookNode, run: bool = True, **options) -> Page:
            page = browser.new_page(**{"viewport": {"width": 1280, "height": 1000}, **options})
            pages.append(page)
            page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("request", watch)
            jupyterlab.open(page, *cells, run=run)
            return page

        yield open
        for page in pages:
            jupyterlab.close(page)
        assert not troubles, "\n".join(troubles)

    return open_notebooks


@pytest.fixture
def open_notebook(open_notebooks) -> Iterator[Callable[..., Page]]:
    """Open a notebook with given cells in JupyterLab, run them all, and have the page.

    ``page = open_notebook("import viz", "viz.draw(x)")``; ``run=False`` only opens it; more options are the
    page's: ``color_scheme="dark"``, ``viewport={...}``. At the end, nothing may have gone wrong in a
    page, or left this machine.
    """
    with open_notebooks() as open_notebook:
        yield open_notebook
