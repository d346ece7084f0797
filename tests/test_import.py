"""`import needle` stays light: what is costly is imported when it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["needle", "needle.autograd", "playground.training.trainer"])
def test_import_brings_nothing_costly(module: str) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in run.stdout.split()}
    assert {"needle", "numpy"} <= imported
    assert not imported & {"numba", "streamlit", "matplotlib", "graphviz", "IPython", "mpi4py", "torch"}
    assert not imported & {"pooch", "requests", "safetensors", "scipy", "sklearn", "tqdm"}


def test_what_not_every_program_needs_is_imported_when_it_is_first_asked_for() -> None:
    program = """
import sys, numpy
before = {*sys.modules}
import needle
later = ["needle.data", "needle.diagnostics", "needle.serialization"]
assert not {*later, "statistics", "dataclasses", "json", "gzip"} & ({*sys.modules} - before)
assert {"data", "diagnose", "load", "save"} <= {*dir(needle)}
assert needle.load is sys.modules["needle.serialization"].load
assert needle.diagnose is needle.diagnostics.diagnose
assert needle.data is sys.modules["needle.data"]
from needle import *
assert (data, diagnose, save) == (needle.data, needle.diagnose, needle.save)
assert not hasattr(needle, "date")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_tests_do_not_wait_for_a_grammar_of_web_addresses() -> None:
    """`conftest.py` keeps it away, and must do so before something imports nbformat."""
    assert sys.modules["rfc3987_syntax"] is None
