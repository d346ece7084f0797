"""The page on which a network learns."""

from __future__ import annotations

import streamlit as st

from .. import controls, graphs, stage
from ..trainer import Trainer
from ..words import as_text

__all__ = ["page"]


_STYLE = """
<style>
.st-key-feed { display: none; }
.stMainBlockContainer { max-width: 1500px; padding: 4.25rem clamp(1rem, 3.5vw, 4rem) 2rem; }
.stSidebar h3 { font-size: 1.05rem; padding: 0.25rem 0 0.5rem; }
.stSidebar [data-testid="stSidebarUserContent"] { padding-top: 1rem; }
</style>
"""


def page() -> None:
    """Choose a problem and a network, and watch it learn."""
    st.html(_STYLE)
    with st.sidebar:
        settings, problems = controls.choose()
    state = st.session_state
    state.setdefault("playing", False)
    if "trainer" not in state:
        state.trainer = Trainer(settings)
    if settings and not state.trainer.retune(settings):
        state.trainer = Trainer(settings)
    trainer = state.trainer
    playing = state.playing and settings is not None
    ready = settings is not None and not trainer.trouble

    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header("Playground", anchor=False, width="content")
        with st.container(horizontal=True, width="content", gap="small"):
            st.button(
                "Pause" if playing else "Play",
                icon=":material/pause:" if playing else ":material/play_arrow:",
                type="primary",
                key="play",
                on_click=_play,
                args=(not playing,),
                disabled=not ready,
            )
            st.button(
                "Step",
                icon=":material/skip_next:",
                key="step",
                on_click=_step,
                disabled=not ready,
                help="Learn for one epoch",
            )
            st.button("Reset", icon=":material/replay:", key="reset", on_click=_reset, help="Begin again")
    for message in [*problems, trainer.trouble]:
        if message:
            st.error(as_text(message), icon=":material/error:")
    stage.show(trainer, playing, on_trouble=_pause)
    graphs.show(trainer)


# A click between two pictures may arrive twice, so a callback sets the new state and never toggles.
def _play(playing: bool) -> None:
    st.session_state.playing = playing


def _pause() -> None:
    _play(False)


def _step() -> None:
    _pause()
    st.session_state.trainer.epoch(at_most=1.0)


def _reset() -> None:
    _pause()
    st.session_state.trainer = Trainer(st.session_state.trainer.settings)
