"""Pictures that live in a page of the app: drawings that open and can be searched, steps that play."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

import streamlit as st

__all__ = ["Picture", "show"]

_SCRIPT = Path(__file__).parent / "components" / "picture" / "picture.js"


class Picture(Protocol):
    """What shows itself as HTML: a `viz.Drawing`, or the steps of one."""

    def html(self) -> str:
        """A piece of a page that needs nothing else."""


@cache
def _component() -> Callable[..., object]:
    # In the page itself, not in a frame: so it is as high as it needs to be, also after something was opened.
    return st.components.v2.component(
        "needle_picture",
        html='<div class="picture"></div>',
        js=_SCRIPT.read_text("utf-8"),
        isolate_styles=False,
    )


def show(picture: Picture, key: str) -> None:
    """Show a picture that can be used.

    While the page is run again and the picture is the same, it stays as the person left it.

    Parameters
    ----------
    picture : Picture
        A drawing, or steps. It is trusted: its scripts run in the page.
    key : str
        Of the element in the page.

    Raises
    ------
    viz.CannotRender
        If there is no Graphviz.
    """
    _component()(key=key, data=picture.html())
