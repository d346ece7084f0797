"""The page on which an expression shows its graphs."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

import viz
from viz.render import LARGEST_PNG, PNG_DPI

from ..language.expression import MOST_CHARACTERS, ExpressionError, Result
from ..results import explorer
from ..results.explorer import DIRECTIONS, EXAMPLES, STYLES, VIEWS
from . import pictures
from .address import Entry, any_text, one_of, write_address
from .opening import KEPT, is_dark, open_page
from .words import as_text

__all__ = ["page"]

_LOOK = (Path(__file__).parents[1] / "components" / "explorer" / "explorer.css").read_text("utf-8")
_STYLE = f"""
<style>
.st-key-expression textarea {{ font-family: "Source Code Pro", monospace; font-size: 0.9375rem;
    line-height: 1.5; min-height: 8.5rem; max-height: 27rem; }}
@media (max-width: 640px) {{ .stMain .stHorizontalBlock {{ row-gap: 0.5rem; }} }}
{_LOOK}</style>
"""
_ICONS = {"error": ":material/error:", "warning": ":material/all_inclusive:"}


def page() -> None:
    """Write an expression, and see its value, its gradients and their graphs."""
    open_page(
        "Explorer",
        "Write an expression or choose an example, and see its value, its gradients and their graphs.",
        ENTRIES,
    )
    st.html(_STYLE)
    state = st.session_state
    state.example = next((name for name, text in EXAMPLES.items() if text == state.expression), None)
    st.pills("Examples", EXAMPLES, key="example", help=explorer.ADJOINT, on_change=_take_example)
    left, right = st.columns(2, gap="large")
    with left:
        text = _write()
    outcome = explorer.outcome(text)
    with right:
        if isinstance(outcome, ExpressionError):
            _say("error", explorer.sentence(outcome))
            st.html(explorer.marked(outcome, text))
        else:
            st.html(explorer.table(outcome))
            for kind, words in explorer.remarks(outcome):
                _say(kind, words)
    if isinstance(outcome, Result):
        _show_views(text, outcome)
    elif outcome.failure:
        _show_error(text)
    write_address(ENTRIES)


def _say(kind: str, words: str) -> None:
    icon = {"icon": _ICONS[kind]} if kind in _ICONS else {}
    getattr(st, kind)(as_text(words), **icon)


# The text, its examples and what the address holds.

ENTRIES = {
    "expression": Entry("text", EXAMPLES["One value, two paths"], any_text(MOST_CHARACTERS)),
    "view": Entry("view", "forward", one_of(VIEWS)),
    "look": Entry("style", "auto", one_of(STYLES)),
    "direction": Entry("rankdir", "LR", one_of(DIRECTIONS)),
}


def _write() -> str:
    """Show the text to write in, and return it as it is now."""
    text = st.text_area(
        "Expression",
        key="expression",
        height="content",
        help=explorer.HELP,  # no max_chars: the page would never hear of a text that is too long
        **KEPT,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Run", icon=":material/play_arrow:", type="primary", key="run")
        st.caption("or Ctrl + Enter. The page's address keeps the text: share it.")
    return text


def _take_example() -> None:
    if st.session_state.example:
        st.session_state.expression = EXAMPLES[st.session_state.example]


# The result, drawn.


@st.fragment
def _show_views(text: str, result: Result) -> None:
    st.segmented_control("Show", VIEWS, format_func=VIEWS.__getitem__, key="view", required=True, **KEPT)
    write_address(ENTRIES)
    view, leaf = st.session_state.view, ""
    if view == "memory":  # has no other look, and no direction
        pictures.show(pictures.Drawn.of(explorer.picture(text, view)), key="picture_memory")
        return
    nothing = explorer.nothing_to_draw(result, view)
    if nothing:
        st.info(nothing)
        return
    if view == "second":
        leaf = _choose_leaf(result)
    _show(text, view, leaf)


@st.fragment
def _show_error(text: str) -> None:
    st.caption("The graph up to the operation that failed:")
    _show(text, "error")


def _choose_leaf(result: Result) -> str:
    """Let the user choose the variable whose gradient is differentiated again."""
    leaves = explorer.leaves_of(result)
    if st.session_state.get("leaf") not in leaves:
        st.session_state.leaf = leaves[0]
    st.pills(
        "Differentiate once more the gradient of", leaves, format_func=as_text, key="leaf", required=True
    )
    leaf = st.session_state.leaf
    remark = explorer.of_leaf(result, leaf)
    if remark:
        _say("caption", remark)
    return leaf


def _style() -> str:
    look = st.session_state.look
    return look if look != "auto" else "dark" if is_dark() else "needle"


@st.cache_resource(max_entries=48, show_spinner="Drawing …")
def _picture(text: str, view: str, style: str, direction: str, leaf: str) -> pictures.Drawn | Exception:
    """The graph of a text, or why there is none. Everybody who asks for the same graph shares it."""
    try:
        return pictures.Drawn.of(explorer.picture(text, view, style, direction, leaf))
    except (viz.CannotRender, ValueError) as error:  # ValueError: too many steps
        return error.with_traceback(None)


def _show(text: str, view: str, leaf: str = "") -> None:
    """Show the picture, and below it the choices of its look and its file."""
    place = st.container()
    quiet: dict[str, Any] = {"label_visibility": "collapsed", **KEPT}
    with st.container(horizontal=True, gap="small"):
        st.selectbox("Style", STYLES, format_func=STYLES.__getitem__, key="look", width=150, **quiet)
        st.selectbox(
            "Direction", DIRECTIONS, format_func=DIRECTIONS.__getitem__, key="direction", width=190, **quiet
        )
        with place:
            drawn = _picture(text, view, _style(), st.session_state.direction, leaf)
            if isinstance(drawn, Exception):
                st.warning(as_text(str(drawn)), icon=":material/image_not_supported:")
                return
            pictures.show(drawn, key=f"picture_{view}")
        for kind in _kinds(drawn.picture):
            st.download_button(
                kind.upper(),
                partial(explorer.as_file, drawn.picture, kind),
                file_name=f"{view}.{kind}",
                icon=":material/download:",
                key=f"download_{kind}",
                on_click="ignore",
            )
    write_address(ENTRIES)


def _kinds(picture: viz.Drawing | viz.Steps) -> list[str]:
    """The formats in which a picture can be saved."""
    if isinstance(picture, viz.Steps):
        return ["html"]  # a GIF would keep a processor busy for ten seconds
    points = [float(size) for size in re.findall(r'(?:width|height)="([\d.]+)pt"', picture.svg())[:2]]
    fits = max(points, default=0) * PNG_DPI / 72 <= LARGEST_PNG
    return ["svg", *(["png"] if fits else []), "pdf", "html"]
