"""`import needle` stays light: what is costly is imported when it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["needle", "needle.autograd", "playground.trainer"])
def test_import_brings_nothing_costly(module: str) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in run.stdout.split()}
    assert {"needle", "numpy"} <= imported
    assert not imported & {"numba", "streamlit", "matplotlib", "graphviz", "IPython", "torch"}
    assert not imported & {"pooch", "requests", "safetensors", "scipy", "sklearn", "tqdm"}
