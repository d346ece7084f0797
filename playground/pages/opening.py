"""How a page begins, and what all pages have in common: their look, their state, their own elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from .address import Entry, read_address
from .words import as_text

__all__ = ["KEPT", "element", "is_dark", "open_page"]

_COMPONENTS = Path(__file__).parents[1] / "components"

# On a very large screen everything is larger.
_STYLE = """
<style>
@media (min-width: 1900px) { html { font-size: clamp(16px, 0.8vw, 24px); } }
.stMainBlockContainer { max-width: 94rem; padding: 0.75rem clamp(1rem, 3.5vw, 4rem) 2rem; }
.stMainBlockContainer h2 { font-size: 1.6rem; padding: 0.25rem 0 0; }
</style>
"""

#: For a widget: what was chosen stays while other widgets or another page are shown.
KEPT: dict[str, Any] = {"persist_state": "session"}


def open_page(title: str, what_to_do: str, entries: Mapping[str, Entry]) -> None:
    """Begin a page: its title, one sentence that says what to do, and its state from the address.

    If the address asks for something that isn't possible, one quiet line says so.

    Parameters
    ----------
    title, what_to_do : str
    entries : mapping from keys of the session's state to Entry
    """
    st.html(_STYLE)
    st.header(title, anchor=False)
    st.markdown(what_to_do)
    problems = read_address(entries)
    if problems:
        st.caption(as_text(problems))


def is_dark() -> bool:
    """Whether the page is dark."""
    return st.context.theme.type == "dark"


@cache
def element(name: str, css: str = "", js: str = "") -> Callable[..., Any]:
    """An element of a page that moves in the browser: ``components/<name>``, with what all of them share.

    Parameters
    ----------
    name : str
        The name of a folder with ``<name>.js`` and ``<name>.css``.
    css, js : str
        What it builds on.

    Returns
    -------
    callable
        As `st.components.v2.component` gives it: call it with ``key`` and ``data``.
    """
    for folder in ("shared", name):
        css += (_COMPONENTS / folder / f"{folder}.css").read_text("utf-8")
        js += (_COMPONENTS / folder / f"{folder}.js").read_text("utf-8")
    return st.components.v2.component(f"needle_{name}", html=f'<div class="{name}"></div>', css=css, js=js)
