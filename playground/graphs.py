"""The graphs of the network as it is now, drawn from its own tensors when they are asked for."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import NamedTuple

import streamlit as st

import viz

from .trainer import Trainer

__all__ = ["show"]

KINDS = {
    "computational": "Computational graph",
    "gradient": "Gradient graph",
}

_STYLE = """
<style>
.needle-graph {
  background: white;
  border: 1px solid rgba(128, 136, 150, .35);
  border-radius: 10px;
  max-height: 720px;
  overflow: auto;
}
.needle-graph img { display: block; max-width: none; }
</style>
"""


class _Drawn(NamedTuple):
    trainer: Trainer
    kind: str
    epochs: int
    svg: str


@st.fragment
def show(trainer: Trainer) -> None:
    """Offer the graphs, and draw the one that is chosen.

    A drawing stays as it is while the network learns on, until it is asked for again.

    Parameters
    ----------
    trainer : Trainer
        Whose network is drawn: the loss of two points of its data.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.segmented_control(
            "Graphs of this network",
            KINDS,
            format_func=KINDS.__getitem__,
            key="graph_kind",
            help="Drawn from the network's own tensors, for the loss of two points.",
            persist_state="session",
        )
        again = kind and st.button("Draw again", icon=":material/refresh:", key="graph_again")
    if kind is None:
        return

    drawn: _Drawn | None = st.session_state.get("drawn")
    if again or drawn is None or drawn.trainer is not trainer or drawn.kind != kind:
        try:
            drawn = st.session_state.drawn = _Drawn(trainer, kind, trainer.epochs, _draw(trainer, kind))
        except viz.CannotRender as error:
            st.warning(str(error), icon=":material/image_not_supported:")
            return
    picture = b64encode(drawn.svg.encode()).decode()  # as an image: st.html would strip an <svg> element
    st.html(
        f'{_STYLE}<div class="needle-graph" tabindex="0">'
        f'<img alt="{KINDS[kind]}" src="data:image/svg+xml;base64,{picture}"></div>'
    )
    st.caption(f"After epoch {drawn.epochs:,}, for the loss of two points. Scroll to see all of it.")


def _draw(trainer: Trainer, kind: str) -> str:
    loss, names = trainer.graph()
    if kind == "gradient":
        drawing = viz.draw_gradient(loss, wrt=trainer.model.parameters(), names=names)
    else:
        drawing = viz.draw(loss, names=names)
    # Points become pixels: three quarters of the size, and the letters are as large as the page's small ones.
    return re.sub(r'\b(width|height)="([\d.]+)pt"', r'\1="\2"', drawing.svg(), count=2)
