"""The live picture as a Streamlit component, and the clock that drives it.

Two components share the work. The page places the stage once; the clock sends the feed again and again, with
new bytes. So only the bytes travel, and the stage stays even if a message gets lost.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import streamlit as st

from .stage_data import Moment, capture, pack
from .trainer import Trainer

__all__ = ["show"]

#: Seconds from one message to the next; moments in a message; seconds of training before each moment.
TICK = 0.045
MOMENTS = 3
TRAINING = 0.010
#: Seconds to wait until a message has left: the server looks every 5 ms, and the next tick drops what waits.
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
    """Make garbage collection quick, which Streamlit does after every run: leave out what lasts forever."""
    gc.collect()
    gc.freeze()


def show(trainer: Trainer, playing: bool, on_trouble: Callable[[], None]) -> None:
    """Draw a trainer; while it plays, train and draw again, some sixty times a second.

    Parameters
    ----------
    trainer : Trainer
        What to train and draw.
    playing : bool
        Whether the training goes on.
    on_trouble : callable
        Called when the training stops by itself. Then the whole page runs again.
    """
    _spare_the_collector()
    stage, feed = _components()
    stage(key="stage")
    wanted = 1  # in the page's own run, so that a click shows at once

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
