"""The app's entry. Start it with ``make app`` or ``streamlit run app.py``."""

import os

# Before NumPy is imported: the playground's matrices are so small that threads would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import streamlit as st

from playground import pages
from playground.server import live

app = st.App(pages.SCRIPT, routes=live.routes(), lifespan=live.lifespan)
