"""The live picture as a Streamlit component, and the clock that drives it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache
from pathlib import Path

import streamlit as st

from .frame import pack
from .trainer import Trainer

__all__ = ["show"]

#: Seconds from one frame to the next, and how many of them are spent on training.
TICK = 0.020
TRAINING = 0.009

_ASSETS = Path(__file__).parent / "components" / "stage"


@cache
def _component() -> Callable[..., object]:
    html, css, js = ((_ASSETS / f"stage.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component("needle_stage", html=html, css=css, js=js)


@st.cache_resource
def _spare_the_collector() -> None:
    """Streamlit collects garbage after every frame: leave out what will never become garbage."""
    gc.collect()
    gc.freeze()


def show(trainer: Trainer, playing: bool, on_trouble: Callable[[], None]) -> None:
    """Draw a trainer; while it plays, train and draw again some fifty times a second.

    Parameters
    ----------
    trainer : Trainer
        What to train and draw.
    playing : bool
        Whether to go on training.
    on_trouble : callable
        Called when the training stops by itself; the whole page is then run again.
    """
    _spare_the_collector()

    def tick() -> None:
        if playing:
            trainer.run_for(TRAINING)
        # One constant key: the browser keeps its canvases from frame to frame.
        _component()(key="stage", data=pack(trainer, playing))
        if playing and trainer.trouble:
            on_trouble()
            st.rerun()

    st.fragment(tick, run_every=TICK if playing else None)()
