"""The graphs of the network as it is now, drawn from its own Tensors when you ask for them."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

import viz

from . import pictures
from .trainer import Trainer
from .words import as_text

__all__ = ["show"]

KINDS = {
    "computational": "Computational graph",
    "gradient": "Gradient graph",
}


class _Drawn(NamedTuple):
    trainer: Trainer
    kind: str
    style: str
    epochs: int
    drawing: viz.Drawing


@st.fragment
def show(trainer: Trainer) -> None:
    """Offer the graphs, and draw the one that is chosen.

    The network learns on, and the drawing stays as it is until the user asks for it again.

    Parameters
    ----------
    trainer : Trainer
        Its network is drawn, with the loss of two of its points.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.segmented_control(
            "Graphs of this network",
            KINDS,
            format_func=KINDS.__getitem__,
            key="graph_kind",
            help="Drawn from the network's own Tensors, for the loss of two points.",
            persist_state="session",
        )
        again = kind and st.button("Draw again", icon=":material/refresh:", key="graph_again")
    if kind is None:
        return

    style = "dark" if st.context.theme.type == "dark" else "needle"
    drawn: _Drawn | None = st.session_state.get("drawn")
    if again or drawn is None or (drawn.trainer, drawn.kind, drawn.style) != (trainer, kind, style):
        drawing = _draw(trainer, kind, style)
        drawn = st.session_state.drawn = _Drawn(trainer, kind, style, trainer.epochs, drawing)
    try:
        pictures.show(drawn.drawing, key="graph")
    except viz.CannotRender as error:
        st.warning(as_text(str(error)), icon=":material/image_not_supported:")
        return
    st.caption(f"After epoch {drawn.epochs:,}, for the loss of two points. A box with a + opens.")


def _draw(trainer: Trainer, kind: str, style: str) -> viz.Drawing:
    loss, names = trainer.graph()
    if kind == "gradient":
        return viz.draw_gradient(loss, wrt=trainer.model.parameters(), names=names, style=style)
    return viz.draw(loss, names=names, style=style)
