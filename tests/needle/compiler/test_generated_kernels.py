"""The kernels of compiled programs, as machine code for a GPU that need not be here."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .test_training import MODELS

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("numba_cuda") and find_spec("cuda")),
    reason="needs numba-cuda: pip install 'numba-cuda[cu13]'",
)
def test_every_kernel_compiles_for_a_gpu():
    command = [sys.executable, str(HERE / "generated_ptx.py"), "rows", *MODELS]  # many have the same kernels
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    kernels = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(kernels) > 200
    for kernel in kernels:
        for ptx in kernel["ptx"]:
            # A label of type float32 is compared with a whole number, in double precision.
            if "float64" not in kernel["signature"] and "int64(" not in kernel["source"]:
                assert ".f64" not in ptx, kernel["source"]
            if "lane" in kernel["source"]:
                assert "__local_depot" not in ptx, kernel["source"]  # what a lane keeps is in registers
