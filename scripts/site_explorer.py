"""The Explorer's part of the site, and Graphviz for all parts that draw graphs: a step of `make_site.py`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from site_python import from_npm

from playground.language.expression import MOST_CHARACTERS
from playground.results import explorer

ROOT = Path(__file__).resolve().parent.parent
BROWSER = ROOT / "browser"
PLAYGROUND = ROOT / "playground"

CHOICES = {
    "examples": explorer.EXAMPLES,
    "views": explorer.VIEWS,
    "styles": explorer.STYLES,
    "directions": explorer.DIRECTIONS,
    "help": explorer.HELP,
    "adjoint": explorer.ADJOINT,
    "most_characters": MOST_CHARACTERS,
}


def add_drawings(site: Path) -> None:
    """Add what draws graphs in a browser, and brings the drawings to life."""
    folder = site / "drawings"
    shutil.copytree(ROOT / "viz" / "static", folder / "viz")
    shutil.copy(BROWSER / "drawings.js", folder)
    shutil.copy(PLAYGROUND / "stage" / "icon.svg", folder)
    (folder / "graphviz.js").write_bytes(from_npm("@viz-js/viz", "dist/viz.js"))


def add_explorer(site: Path) -> None:
    """Add the Explorer."""
    folder = site / "explorer"
    shutil.copytree(BROWSER / "explorer", folder)
    shutil.copy(PLAYGROUND / "components" / "explorer" / "explorer.css", folder / "value.css")
    (folder / "choices.json").write_text(json.dumps(CHOICES), "utf-8")
