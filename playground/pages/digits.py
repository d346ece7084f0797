"""The page on which a small network learns to read digits, and then reads yours."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import streamlit as st

import viz

from ..colours import BLUE
from . import digit_reader
from .address import Entry, one_of, whole_number, write_address
from .digit_reader import NETWORKS, SHEET, DigitReader, as_digit
from .opening import KEPT, element, open_page

__all__ = ["page", "read_drawing"]

BURST = 5  # epochs
MOST_EPOCHS = 200
TRAINING = 0.1  # seconds of each picture

ENTRIES = {
    "digits_network": Entry("network", "convolutions", one_of(NETWORKS)),
    "digits_seed": Entry("seed", 0, whole_number(0, 9999)),
}


def page() -> None:
    """Let a network learn, then draw a digit for it."""
    open_page(
        "Digits",
        "Let the network learn for a few epochs, then draw a digit and see what it makes of it.",
        ENTRIES,
    )
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Network", NETWORKS, format_func=NETWORKS.__getitem__, key="digits_network", required=True, **KEPT
        )
        st.number_input(
            "Seed",
            0,
            9999,
            key="digits_seed",
            width=130,
            help="Decides the first weights and the order of the digits",
            **KEPT,
        )
    if state.get("digits_reader_of") != (state.digits_network, state.digits_seed):
        with st.spinner("Fetching the digits …"):
            _start()
    if "digits_drawing" not in state:
        state.digits_shown = 0
        _take_a_digit()
    write_address(ENTRIES)
    _learn_and_read()


@st.fragment
def _learn_and_read() -> None:
    """Learn for a moment, if that is wanted; then show how far it is and what it makes of the drawing.

    While it learns, the sheet asks again as soon as it has been answered: see ``components/digit``.
    """
    state = st.session_state
    reader: DigitReader = state.digits_reader
    if reader.epochs < state.digits_until:
        reader.learn_for(TRAINING, until=min(reader.epochs + 1, state.digits_until))
    learns = reader.epochs < state.digits_until
    is_over = reader.epochs >= MOST_EPOCHS
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Pause" if learns else f"Learn {BURST} epochs",
            key="digits_learn",
            icon=":material/pause:" if learns else ":material/play_arrow:",
            type="primary",
            on_click=_pause if learns else _learn,
            disabled=is_over,
            help="In an epoch the network sees each of 1,442 digits once",
        )
        st.button("Start again", key="digits_again", icon=":material/replay:", on_click=_start)
        st.html(_curve(reader), width="content")
    done = reader.progress - (state.digits_until - BURST) if learns else 0
    # Always there, so that nothing below moves.
    st.progress(min(max(done / BURST, 0.0), 1.0), "Learning …" if learns else "Draw, or let it learn more.")
    _read(reader, learns)


def _start() -> None:
    """A new network, as the controls say."""
    state = st.session_state
    state.digits_reader_of = (state.digits_network, state.digits_seed)
    state.digits_reader = DigitReader(*state.digits_reader_of)
    state.digits_until = 0


def _learn() -> None:
    state = st.session_state
    state.digits_until = min(state.digits_reader.epochs + BURST, MOST_EPOCHS)


def _pause() -> None:
    st.session_state.digits_until = 0


def _curve(reader: DigitReader) -> str:
    """The accuracy so far, in words and as a small curve."""
    accuracies = reader.accuracies
    right = f"{accuracies[-1]:.0%}".replace("%", " %")
    words = f"epoch <b>{reader.epochs}</b> · reads <b>{right}</b> of the test digits correctly"
    if reader.losses:
        words += f" · loss <b>{reader.losses[-1]:.3f}</b>"
    width, height = 150, 32
    points = " ".join(
        f"{2 + i * (width - 4) / max(len(accuracies) - 1, 1):.1f},{height - 2 - share * (height - 4):.1f}"
        for i, share in enumerate(accuracies)
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"><polyline '
        f'points="{points}" fill="none" stroke="{BLUE}" stroke-width="2.5"/></svg>'
    )
    curve = (
        f'<img alt="Accuracy after each epoch, now {right}" src="data:image/svg+xml,{quote(svg)}" '
        'style="margin-left:12px;vertical-align:middle">'
    )
    return f"<span>{words}{f' · reads correctly: {curve}' if reader.losses else ''}</span>"


def _read(reader: DigitReader, learns: bool) -> None:
    """The sheet to draw on, and what the network makes of the drawing."""
    state = st.session_state
    st.button(
        "Show me a test digit",
        key="digits_test",
        icon=":material/casino:",
        on_click=_take_a_digit,
        help="One that the network has not learned from",
    )
    drawing = state.digits_drawing
    image = as_digit(drawing)
    reading = reader.read(image)
    shares = reading.shares if drawing.any() else np.zeros(10)
    sheet = viz.pad(lambda _: shares, start=drawing, title="A sheet to draw a digit on")
    shown: dict[str, Any] = {
        "markup": sheet.sheet(),
        "pixels": np.round(drawing, 2).ravel().tolist(),
        "drawn": state.digits_shown,
        "said": {"rows": [(str(digit), float(share)) for digit, share in enumerate(shares)]},
        "views": _views(reader, image, reading.hidden),
        "learns": learns,
        "progress": reader.progress,  # so that each answer is a new one
    }

    def rest() -> None:
        drawn = read_drawing(state.digit.pixels)
        if drawn is not None:
            state.digits_drawing = drawn

    _sheet()(key="digit", data=shown, on_pixels_change=rest)
    if reader.epochs == 0:
        st.caption("It has learned nothing yet, so it can only guess.")


def read_drawing(pixels: object) -> np.ndarray | None:
    """The drawing that the browser has sent, a digit from 0 (paper) to 9 (ink) for each pixel; else None."""
    if not isinstance(pixels, str) or len(pixels) != SHEET**2 or not (pixels.isascii() and pixels.isdigit()):
        return None
    return np.array(list(pixels), "float32").reshape(SHEET, SHEET) / 9


@cache
def _sheet() -> Callable[..., Any]:
    """The element to draw on: viz's own sheet, and around it what the page adds."""
    script = viz.Pad.script.read_text("utf-8").removesuffix("export default { render };\n")
    return element("digit", Path(viz.Pad.look).read_text("utf-8"), script)


def _take_a_digit() -> None:
    """Put the next digit of the test set on the sheet."""
    state = st.session_state
    images, _ = digit_reader.test_digits()
    state.digits_shown += 1
    image = images[37 * state.digits_shown % len(images)]
    block = SHEET // image.shape[0]
    state.digits_drawing = np.kron(image, np.ones((block, block), "float32"))


def _views(reader: DigitReader, image: np.ndarray, hidden: np.ndarray) -> list[dict[str, Any]]:
    """Small images for the page: what the network sees, what it looks for, and what it finds."""
    kernels = reader.kernels()
    weights = kernels / (np.abs(kernels).max() or 1)
    views = [{"title": "What the network sees", "images": [_image("your digit, 8 × 8 pixels", image)]}]
    if reader.network == "convolutions":
        finds = hidden / (hidden.max() or 1)
        looks = [
            _image(f"kernel {i}: blue is above 0, orange below", w, str(i)) for i, w in enumerate(weights)
        ]
        found = [_image(f"where kernel {i} fits", x, str(i)) for i, x in enumerate(finds)]
        title = "What its kernels (squares of weights that slide over the image) look for"
        views.append({"title": title, "images": looks})
        views.append({"title": "Where they find it: the feature maps", "images": found})
        return views
    most = hidden.max() or 1
    units = [
        _image(f"hidden unit {i}: its weights; its output is {x:.2f}", w, f"{x:.1f}")
        | {"strength": round(float(x / most), 3)}
        for i, (w, x) in enumerate(zip(weights, hidden, strict=True))
    ]
    title = "What its hidden units look for; the frame and the number say how much they find"
    return [*views, {"title": title, "images": units}]


def _image(name: str, values: np.ndarray, caption: str = "") -> dict[str, Any]:
    return {"name": name, "values": np.round(values, 2).tolist(), "caption": caption}
