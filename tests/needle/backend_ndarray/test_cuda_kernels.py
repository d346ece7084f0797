"""Every kernel of the CUDA device, as it is compiled for GPUs that need not be here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "stand_in"))
import on_stand_in

#: They hold numbers in registers, and have to go on doing so.
IN_REGISTERS = {"product", "product_of_tiles", "softmax_rows", "standardize_rows"}


@pytest.mark.slow
@pytest.mark.skipif(not on_stand_in.possible(), reason="needs numba-cuda: pip install 'numba-cuda[cu13]'")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_every_kernel_compiles_for_a_gpu(dtype):
    script = Path(__file__).parent / "cuda_kernels.py"
    result = subprocess.run(
        [sys.executable, "-W", "error", str(script), dtype], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    kernels = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(kernels) > 60
    for kernel in kernels:
        floats = set(re.findall(r"float64|float32", kernel["signature"]))
        for ptx in kernel["ptx"]:
            if floats == {"float32"} and kernel["row"] not in (
                "sin",
                "cos",
            ):  # of large angles, by CUDA's own
                assert ".f64" not in ptx, kernel
            if kernel["name"] in IN_REGISTERS:
                assert "__local_depot" not in ptx, kernel
