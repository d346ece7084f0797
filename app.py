"""The app's entry: its pages. Start it with ``make app`` or ``streamlit run app.py``."""

import os
from pathlib import Path

# Before NumPy is imported: the playground's matrices are so small that threads would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import streamlit as st

import playground
from playground.pages import explorer, train

ICON = Path(playground.__file__).parent / "components" / "icon.svg"

st.set_page_config(page_title="needle playground", page_icon=str(ICON), layout="wide")
st.navigation(
    [
        st.Page(train.page, title="Playground", icon=":material/hub:", url_path="train", default=True),
        st.Page(explorer.page, title="Explorer", icon=":material/account_tree:", url_path="explorer"),
    ],
    position="top",
).run()
