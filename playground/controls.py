"""The controls of the playground: widgets, the settings they stand for, and the page's address."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import quote

import numpy as np
import streamlit as st

from needle.data import toy

from .settings import ACTIVATIONS, LIMITS, OPTIMISERS, Settings, SettingsError

__all__ = ["choose"]

RATES = ["0.00001", "0.0001", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10"]


def choose() -> tuple[Settings | None, list[str]]:
    """Draw the controls, and return the settings that they show.

    The page's address carries the settings that differ from their defaults. It is read when a session begins,
    and kept up to date from then on.

    Returns
    -------
    tuple
        The settings, or None if the controls' values cannot be used, and a sentence for each problem.
    """
    problems = [] if "dataset" in st.session_state else _read_address()
    _draw()
    try:
        settings = Settings.from_text({name: str(st.session_state[name]) for name in _FIELDS})
    except SettingsError as error:
        return None, [*problems, *error.problems.values()]
    address = settings.to_text()
    if st.query_params.to_dict() != address:
        st.query_params.from_dict(address)
    return settings, problems


def _read_address() -> list[str]:
    """Set every widget from the page's address.

    A value that cannot be used is replaced by its default. Returns a sentence for each of these.
    """
    texts = st.query_params.to_dict()
    problems: dict[str, str] = {}
    try:
        settings = Settings.from_text(texts)
    except SettingsError as error:
        problems = error.problems
        settings = Settings.from_text({name: text for name, text in texts.items() if name not in problems})
    for name in _FIELDS:
        st.session_state[name] = getattr(settings, name)
    st.session_state.hidden = ", ".join(map(str, settings.hidden))
    st.session_state.learning_rate = np.format_float_positional(settings.learning_rate, trim="-")
    return [f"In the page's address: {problem} The default is used." for problem in problems.values()]


def _draw() -> None:
    st.html(f"<style>{_thumbnails()}</style>")
    keep: dict[str, Any] = {"persist_state": "session"}  # also while another page is shown

    st.subheader("Data", anchor=False)
    st.pills("Dataset", toy.DATASETS, key="dataset", required=True, label_visibility="collapsed", **keep)
    low, high = LIMITS["noise"]
    st.slider("Noise", low, high, step=0.05, key="noise", **keep)
    left, right = st.columns(2)
    left.number_input("Points", step=50, key="points", **keep)
    right.number_input(
        "Seed", step=1, key="seed", help="Decides the data, the first weights and the batches.", **keep
    )
    low, high = LIMITS["train_share"]
    st.slider("Share used for training", low, high, step=0.1, format="percent", key="train_share", **keep)

    st.subheader("Network", anchor=False)
    st.text_input(
        "Neurons in the hidden layers",
        key="hidden",
        placeholder="none",
        help="One number for each layer: 4, 2 makes a layer of four neurons and then one of two.",
        **keep,
    )
    st.segmented_control("Activation", ACTIVATIONS, key="activation", required=True, **keep)

    st.subheader("Training", anchor=False)
    left, right = st.columns(2)
    rate = st.session_state.learning_rate
    left.selectbox(
        "Learning rate",
        RATES if rate in RATES else [*RATES, rate],
        key="learning_rate",
        accept_new_options=True,
        filter_mode="prefix",  # take what is typed, and nothing that looks like it
        help="Choose one or type your own. The training goes on with it at once.",
        **keep,
    )
    right.number_input(
        "Batch size",
        step=1,
        key="batch_size",
        help="Points in one training step. The training goes on with it at once.",
        **keep,
    )
    st.selectbox("Optimiser", OPTIMISERS, key="optimiser", **keep)


@cache
def _thumbnails() -> str:
    """CSS that puts a small picture of its points on the button of each dataset."""
    rules = [
        """
        .st-key-dataset button {
            background-position: center 6px; background-repeat: no-repeat; background-size: 40px;
            border-radius: 8px; height: 70px; min-width: 0; padding: 46px 0 0; width: 56px; }
        .st-key-dataset button p { font-size: 12.5px; }
        .st-key-activation button { min-width: 0; padding: 0 11px; }
        """
    ]
    low, high = toy.DOMAIN
    for position, dataset in enumerate(toy.DATASETS.values(), start=1):
        points, labels = dataset(110, 0.0, np.random.default_rng(0))
        at = (points - low) / (high - low) * 46
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{46 - y:.1f}" r="1.7" fill="{"#2f6fde" if label > 0 else "#e08a1e"}"/>'
            for (x, y), label in zip(at, labels, strict=True)
        )
        picture = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 46 46">{dots}</svg>'
        rules.append(
            f".st-key-dataset button:nth-of-type({position})"
            f' {{ background-image: url("data:image/svg+xml,{quote(picture)}") !important; }}'
        )
    return "".join(rules)


_FIELDS = list(Settings.__dataclass_fields__)
