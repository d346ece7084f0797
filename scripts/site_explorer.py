"""The Explorer's part of the site, and Graphviz for all parts that draw graphs: a step of `make_site.py`."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from playground.language.expression import MOST_CHARACTERS
from playground.results import explorer

ROOT = Path(__file__).resolve().parent.parent
BROWSER = ROOT / "browser"
PLAYGROUND = ROOT / "playground"
KEPT = ROOT / "build" / "npm"  # what was downloaded

CHOICES = {
    "examples": explorer.EXAMPLES,
    "views": explorer.VIEWS,
    "styles": explorer.STYLES,
    "directions": explorer.DIRECTIONS,
    "help": explorer.HELP,
    "adjoint": explorer.ADJOINT,
    "most_characters": MOST_CHARACTERS,
}


def add_drawings(site: Path) -> str:
    """Add what draws graphs in a browser, and brings the drawings to life; return Graphviz's place."""
    folder = site / "drawings"
    shutil.copytree(ROOT / "viz" / "static", folder / "viz")
    shutil.copy(BROWSER / "drawings.js", folder)
    shutil.copy(PLAYGROUND / "stage" / "icon.svg", folder)
    with tarfile.open(_graphviz()) as package:
        (folder / "graphviz.js").write_bytes(package.extractfile("package/dist/viz.js").read())  # type: ignore[union-attr]
    return "drawings/graphviz.js"


def add_explorer(site: Path) -> None:
    """Add the Explorer."""
    folder = site / "explorer"
    shutil.copytree(BROWSER / "explorer", folder)
    shutil.copy(PLAYGROUND / "components" / "explorer" / "explorer.css", folder / "value.css")
    (folder / "choices.json").write_text(json.dumps(CHOICES), "utf-8")


def _graphviz() -> Path:
    """Graphviz as WebAssembly, as a package of npm: the one that is listed."""
    ((name, sha256),) = json.loads((BROWSER / "files.json").read_text("utf-8"))["npm"].items()
    path = KEPT / f"{name.removeprefix('@').replace('/', '-').replace('@', '-')}.tgz"
    if not path.exists():
        npm = shutil.which("npm")
        if npm is None:
            sys.exit(
                f"The site needs {name} from npm: install Node.js (nodejs.org), which brings the program npm."
            )
        KEPT.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "pack", "--silent", name], cwd=KEPT, check=True, stdout=subprocess.DEVNULL)
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        sys.exit(f"{path} is not the file that browser/files.json lists: its sha256 differs. Remove it.")
    return path
