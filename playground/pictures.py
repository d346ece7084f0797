"""Live pictures in a page of the app: drawings that you can open and search, steps that play."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

import streamlit as st

__all__ = ["Picture", "show"]

_SCRIPT = Path(__file__).parent / "components" / "picture" / "picture.js"


class Picture(Protocol):
    """Anything that can write itself as HTML: a `viz.Drawing`, or steps."""

    def html(self) -> str:
        """A piece of a page that needs no other file."""


@cache
def _component() -> Callable[..., object]:
    # In the page itself and not in an iframe, so that it grows when something in it opens.
    return st.components.v2.component(
        "needle_picture",
        html='<div class="picture"></div>',
        js=_SCRIPT.read_text("utf-8"),
        isolate_styles=False,
    )


def show(picture: Picture, key: str) -> None:
    """Show a live picture.

    When the page runs again with the same picture, the picture stays as the user left it.

    Parameters
    ----------
    picture : Picture
        A drawing, or steps. Its scripts run in the page, so it must come from `viz`.
    key : str
        The name of the element in the page.

    Raises
    ------
    viz.CannotRender
        If Graphviz is missing.
    """
    _component()(key=key, data=picture.html())
