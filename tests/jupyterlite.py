"""JupyterLite, the site's JupyterLab without a server, as a reader has it in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nbformat
from nbformat import NotebookNode

from .jupyter import KERNEL_IS_IDLE

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

START = 180_000  # milliseconds that Python may take to start on a busy machine
MOST = 500_000  # milliseconds that a whole lecture may take there

READ = """async name => {
    await jupyterapp.restored
    return JSON.stringify((await jupyterapp.serviceManager.contents.get(name, { content: true })).content)
}"""
KEEP = """([name, content]) => jupyterapp.serviceManager.contents
    .save(name, { type: "notebook", format: "json", content: JSON.parse(content) }).then(() => null)"""
OPEN = "path => jupyterapp.commands.execute('docmanager:open', { path }).then(() => null)"
RUN_ALL = """() => {
    jupyterapp.commands.execute("notebook:run-all-cells").then(() => { window.allHaveRun = true })
}"""
DRAW_ALL = """() => {
    const { content } = jupyterapp.shell.currentWidget
    content.notebookConfig = { ...content.notebookConfig, windowingMode: "none" }
}"""
MODEL = "() => JSON.stringify(jupyterapp.shell.currentWidget.content.model.toJSON())"


class JupyterLite:
    """JupyterLite in a page.

    Parameters
    ----------
    page : Page
    site : str
        The site's address.
    """

    def __init__(self, page: Page, site: str):
        self.page = page
        page.goto(f"{site}/lab/lab/index.html")
        page.wait_for_function("window.jupyterapp?.restored", timeout=START)

    def read(self, name: str) -> NotebookNode:
        """A notebook that lies in its list of files."""
        return nbformat.reads(self.page.evaluate(READ, name), as_version=4)

    def keep(self, name: str, notebook: NotebookNode) -> None:
        """Put a notebook into its list of files."""
        self.page.evaluate(KEEP, [name, nbformat.writes(notebook)])

    def open(self, name: str) -> None:
        """Open a notebook of this list, and wait until its kernel is ready."""
        self.page.evaluate(OPEN, name)
        self.wait()

    def wait(self) -> None:
        """Wait until the kernel of the notebook that is open is ready."""
        self.page.wait_for_function(KERNEL_IS_IDLE, timeout=START)

    def run_all(self) -> NotebookNode:
        """Run all cells, and return the notebook as it is then."""
        self.page.evaluate(RUN_ALL)
        self.page.wait_for_function("window.allHaveRun", timeout=MOST)
        return self.notebook()

    def notebook(self) -> NotebookNode:
        """The notebook that is open."""
        return nbformat.reads(self.page.evaluate(MODEL), as_version=4)

    def all_cells(self) -> Locator:
        """All cells of the notebook that is open, and not only those in sight, which JupyterLab draws."""
        self.page.evaluate(DRAW_ALL)
        return self.page.locator(".jp-Notebook-cell")
