"""Live pictures in a page of the app: drawings that you can open and search, steps that play."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import streamlit as st

from ..results.explorer import as_html
from .opening import is_dark

__all__ = ["Drawn", "HasHtml", "show"]

# Words have the page's own font in pictures too, in the room that they have in any other. A figure's ground,
# which matplotlib draws first, is the page's.
_FONT = """
.picture { --needle-font: var(--st-font); }
.picture .needle-steps, .picture svg { font-family: inherit; }
.picture #patch_1 path { fill: none !important; }
"""
_PLAYGROUND = Path(__file__).parents[1]
_SCRIPTS = (_PLAYGROUND / "stage" / "html.js", _PLAYGROUND / "components" / "picture" / "picture.js")


class HasHtml(Protocol):
    """Anything that can write itself as HTML: a `viz.Drawing`, or steps."""

    def html(self) -> str:
        """A piece of a page that needs no other file."""


@dataclass(frozen=True)
class Drawn:
    """A picture of `viz` that is drawn once, however often the page runs.

    Attributes
    ----------
    picture : viz.Picture
    text : str
        The picture as a piece of a page.
    """

    picture: Any
    text: str

    @classmethod
    def of(cls, picture: Any) -> Drawn:
        """Draw a picture."""
        return cls(picture, as_html(picture))

    def html(self) -> str:
        """A piece of a page that needs no other file."""
        return self.text


@cache
def _component() -> Callable[..., object]:
    # In the page itself and not in an iframe, so that it grows when something in it opens.
    return st.components.v2.component(
        "needle_picture",
        html='<div class="picture"></div>',
        css=_FONT,
        js="".join(script.read_text("utf-8") for script in _SCRIPTS),
        isolate_styles=False,
    )


def show(picture: HasHtml, key: str) -> None:
    """Show a live picture.

    When the page runs again with the same picture, the picture stays as the user left it.

    Parameters
    ----------
    picture : HasHtml
        A drawing, or steps. Its scripts run in the page, so it must come from `viz`.
    key : str
        The name of the element in the page.

    Raises
    ------
    viz.CannotRender
        If Graphviz is missing.
    """
    theme = "dark" if is_dark() else "light"
    _component()(key=key, data=f'<div data-theme="{theme}">{picture.html()}</div>')
