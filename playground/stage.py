"""The live picture as a Streamlit component, and the clock that drives it.

Two components share the work: the stage, which the page itself places, and the feed, which the clock sends
again and again with new bytes. So only the bytes travel, and the stage stays whatever happens to a message.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import streamlit as st

from .frame import Moment, capture, pack
from .trainer import Trainer

__all__ = ["show"]

#: Seconds from one message to the next, the moments that a message shows, and the training before each.
TICK = 0.045
MOMENTS = 3
TRAINING = 0.010
#: Seconds that a message is given to leave: the server looks every 5 ms, and a tick drops what still waits.
SENDING = 0.006

_ASSETS = Path(__file__).parent / "components" / "stage"


@cache
def _components() -> tuple[Callable[..., object], Callable[..., object]]:
    html, css, js, feed = (
        (_ASSETS / name).read_text("utf-8") for name in ("stage.html", "stage.css", "stage.js", "feed.js")
    )
    component = st.components.v2.component
    return component("needle_stage", html=html, css=css, js=js), component("needle_feed", js=feed)


@st.cache_resource
def _spare_the_collector() -> None:
    """Streamlit collects garbage after every run: leave out what will never become garbage."""
    gc.collect()
    gc.freeze()


def show(trainer: Trainer, playing: bool, on_trouble: Callable[[], None]) -> None:
    """Draw a trainer; while it plays, train and draw again, some sixty times a second.

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
    stage, feed = _components()
    stage(key="stage")
    wanted = 1  # in the page's own run, so that what was clicked shows at once

    def tick() -> None:
        nonlocal wanted
        moments: list[Moment] = []
        while playing and len(moments) < wanted and not trainer.trouble:
            trainer.run_for(TRAINING)
            moments.append(capture(trainer))
        wanted = MOMENTS
        # One constant key: the browser keeps the element from message to message.
        feed(key="feed", data=pack(trainer, moments, playing))
        time.sleep(SENDING)
        if playing and trainer.trouble:
            on_trouble()
            st.rerun()

    st.fragment(tick, run_every=TICK if playing else None)()
