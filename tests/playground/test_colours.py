"""Each colour of the playground is the same wherever it is painted: by Python, by the stage, by the pages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import playground
from playground.colours import BLUE, GRADIENT, ORANGE

PLACE = Path(playground.__file__).parent


def named(sheet: str) -> dict[str, str]:
    """The colours that a style sheet names; of two, the one for light pages."""
    found = re.findall(r"--([\w-]+): (#\w{6});", (PLACE / sheet).read_text("utf-8"))
    return dict(reversed(found))


def test_python_and_style_sheets_agree() -> None:
    look = named("stage/look.css")
    assert (look["positive"], look["negative"], look["primary"]) == (BLUE, ORANGE, BLUE)
    assert named("components/shared/shared.css")["orange"] == GRADIENT
    assert named("components/explorer/explorer.css")["gradient"] == GRADIENT
    theme = tomllib.loads((PLACE.parent / ".streamlit" / "config.toml").read_text())["theme"]
    assert theme["light"]["primaryColor"].lower() == BLUE
