"""What the tests of the drawings share: the lectures' example, ways to read DOT and SVG, and JupyterLab."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import nbformat
import pytest

import needle as ndl
from playground.testing import free_port, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def example() -> SimpleNamespace:
    """v1..v4 of the lectures: v4 = exp(v1) * (exp(v1) + 1)."""
    v1 = ndl.Tensor([0.0])
    v2 = ndl.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    return SimpleNamespace(v1=v1, v2=v2, v3=v3, v4=v4)


@dataclass
class Dot:
    """DOT text, taken apart: labels by node (markup removed), and edges with their attributes."""

    labels: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Edges as pairs of labels, in the direction of the arrow, sorted."""
        return sorted((self.labels[tail], self.labels[head]) for tail, head, _ in self.edges)


@pytest.fixture
def parse():
    """A function that takes DOT text apart."""

    def parse(source: str) -> Dot:
        dot = Dot()
        for line in source.splitlines():
            edge = re.match(r"\s*(\w+) -> (\w+)(.*);$", line)
            node = re.match(r"\s*([na]\d+\w*|more) \[(.*)\];$", line)
            if edge and not edge[1].startswith("spine"):
                ends = (edge[2], edge[1]) if 'dir="back"' in edge[3] else (edge[1], edge[2])
                dot.edges.append((*ends, edge[3]))
            elif node:
                label = re.search(r'label=(?:"([^"]*)"|<(.*)>)', node[2])
                dot.nodes[node[1]] = node[2]
                if label[1] is not None:
                    dot.labels[node[1]] = label[1]
                else:
                    text = re.sub(r"</td>|&#160;", " ", label[2])
                    dot.labels[node[1]] = " ".join(re.sub(r"<[^>]*>", "", text).split())
        return dot

    return parse


@dataclass(frozen=True)
class Box:
    """A node of an SVG: what is written in it, and where it is."""

    texts: list[tuple[str, float, float]]  # text, left, right
    left: float
    right: float
    top: float
    bottom: float

    @property
    def name(self) -> str:
        return self.texts[0][0]


@pytest.fixture
def boxes():
    """A function that finds the nodes of an SVG."""

    def boxes(svg: str) -> list[Box]:
        return [_box(group) for group in _groups(svg, "node") if group.find(f".//{SVG}text") is not None]

    return boxes


@pytest.fixture
def clusters():
    """A function that finds the frames of an SVG, by title."""

    def clusters(svg: str) -> dict[str, Box]:
        return {box.name: box for box in map(_box, _groups(svg, "cluster"))}

    return clusters


def _groups(svg: str, kind: str) -> list[ElementTree.Element]:
    return [g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if g.get("class") == kind]


def _box(group: ElementTree.Element) -> Box:
    texts = []
    for text in group.iter(f"{SVG}text"):
        x, width = float(text.get("x")), float(text.get("textLength", 0))
        left = x - {"start": 0, "middle": width / 2, "end": width}[text.get("text-anchor")]
        texts.append((text.text, left, left + width))
    ellipse = group.find(f"{SVG}ellipse")
    if ellipse is not None:
        cx, cy, rx, ry = (float(ellipse.get(key)) for key in ("cx", "cy", "rx", "ry"))
        return Box(texts, cx - rx, cx + rx, cy - ry, cy + ry)
    path = group.find(f"{SVG}path")
    outline = path.get("d") if path is not None else group.find(f"{SVG}polygon").get("points")
    points = [float(number) for number in re.findall(r"-?\d+\.?\d*", outline)]
    return Box(texts, min(points[::2]), max(points[::2]), min(points[1::2]), max(points[1::2]))


@dataclass
class JupyterLab:
    """A JupyterLab of its own: its folder of notebooks, and where it is served."""

    folder: Path
    address: str
    opened: int = 0

    def open(self, page: Page, *cells: str, run: bool = True) -> None:
        """Open a new notebook with these cells of Python in a page; `run` them all, and wait for the end."""
        self.opened += 1
        name = f"{self.opened}.ipynb"
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
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


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterLab]:
    """JupyterLab on a free port, with settings of its own, with kernels of this Python."""
    home, folder = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("notebooks")
    settings = home / "JUPYTER_CONFIG_DIR/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    address = f"http://127.0.0.1:{free_port()}"
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": address.rpartition(":")[2],
        "ServerApp.root_dir": folder,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": "",
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
def notebooks(browser: Browser, jupyterlab: JupyterLab) -> Callable[[], AbstractContextManager]:
    """What the fixture `notebook` is, for a longer time: ``with notebooks() as notebook: …``."""

    @contextmanager
    def notebooks() -> Iterator[Callable[..., Page]]:
        pages: list[Page] = []
        troubles: list[str] = []

        def watch(request) -> None:
            if not request.url.startswith((jupyterlab.address, "data:", "blob:")):
                troubles.append(f"asked for {request.url}")

        def open(*cells: str, run: bool = True, **options) -> Page:
            page = browser.new_page(**{"viewport": {"width": 1280, "height": 1000}, **options})
            pages.append(page)
            page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("request", watch)
            jupyterlab.open(page, *cells, run=run)
            return page

        yield open
        for page in pages:
            page.close()
        assert not troubles

    return notebooks


@pytest.fixture
def notebook(notebooks) -> Iterator[Callable[..., Page]]:
    """Open a notebook with given cells in JupyterLab, run them all, and have the page.

    ``page = notebook("import viz", "viz.draw(x)")``; ``notebook(..., run=False)`` only opens it; more options
    are the page's: ``color_scheme="dark"``, ``viewport={...}``. At the end, nothing may have gone wrong in a
    page, or left this machine.
    """
    with notebooks() as notebook:
        yield notebook
