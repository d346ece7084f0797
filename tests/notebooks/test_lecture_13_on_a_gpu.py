"""The last section of lecture 13: without a GPU, on Numba's simulator, and with that in place of a GPU."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import nbformat
import pytest
from numba import cuda, types

import needle as ndl
from lectures import lecture_13

ROOT = Path(__file__).parents[2]
CELLS = {cell.id: cell.source for cell in nbformat.read(ROOT / "notebooks/13_cuda_kernels.ipynb", 4).cells}
KERNELS = "import numpy as np\nfrom numba import cuda, float32\n" + CELLS["gpu-memory-kernels"]
SECTION = "\n".join(CELLS[name] for name in ("gpu-memory-code", "gpu-launch-code", "gpu-tiles-code"))
RECORDED = """\
a + b, 67,108,864 numbers                 H100
one number a thread         294 µs, 2,739 GB/s
four numbers a thread       266 µs, 3,027 GB/s
a loop over the grid        384 µs, 2,097 GB/s
These times were measured on an H100, one of NVIDIA's fastest GPUs, and not on this machine.
a + b, 1,000 numbers      H100
by Numba                 24 µs
by the driver alone     3.9 µs
by PyTorch: add(out=)   5.3 µs
These times were measured on an H100, one of NVIDIA's fastest GPUs, and not on this machine.
a @ b, 1,024² and 4,096² numbers   H100, 1,024   H100, 4,096
16 × 16 tiles, 1 a thread               298 µs     18,981 µs
64 × 64 tiles, 16 a thread              148 µs      8,500 µs
cuBLAS                                   57 µs      2,683 µs
These times were measured on an H100, one of NVIDIA's fastest GPUs, and not on this machine.
"""
NO_CUBLAS = "Numba's simulator has no cuBLAS.\n"
# The simulator takes the place of a GPU, with matrices that it gets through.
AS_IF_REAL = """
lecture.SIMULATED, lecture.NUMBERS_OF_H100 = False, lecture.NUMBERS
lecture.PRODUCTS_OF_H100 = {4: {"cuBLAS": 57e-6}}
class Context:
    get_memory_info, free = lambda self: self, 2**30
lecture.cuda.current_context = Context
"""
#: What comes before the cells of the section.
CHANGES = {
    "nothing": "",
    "a wrong kernel": "def one_number(out, a, b):\n    out[cuda.grid(1)] = 4",
    "as if real": AS_IF_REAL,
    "little memory": AS_IF_REAL.replace("2**30", "16 * 16"),
    "a failure": AS_IF_REAL + "def fail(*_): raise MemoryError('the GPU is full')\ncuda.to_device = fail",
}
PROGRAM = """
import json, sys
from unittest.mock import patch
from lectures import lecture_13 as lecture
first, changes, section = json.load(sys.stdin)
for change in changes:
    names = vars(lecture) | {"lecture": lecture, "ready": lambda kernel: kernel}
    names["tiled_product"] = lecture.lecture.exercises["tiled_product"].right
    exec(first, names)
    with patch.dict(vars(lecture)), patch.dict(vars(lecture.cuda)):
        exec(change, names)
        exec(section, names)
    print("\\f", end="")
"""


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    """What the cells of the section print on Numba's simulator after each of the changes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([KERNELS, list(CHANGES.values()), SECTION]),
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(CHANGES, done.stdout.split("\f"), strict=False))


def test_without_a_gpu_the_times_of_an_h100_are_shown(monkeypatch, capsys):
    monkeypatch.setattr(type(ndl.cuda()), "why", lambda self: "There is no GPU.")
    lecture_13.additions({})
    lecture_13.launches(None)
    lecture_13.products(lecture_13.lecture.exercises["tiled_product"].right)
    assert capsys.readouterr().out == RECORDED


@pytest.mark.slow
def test_the_simulator_runs_the_kernels_and_its_own_times_are_not_shown(shown):
    assert shown["nothing"] == RECORDED + NO_CUBLAS
    wrong = "ArithmeticError: one number a thread: these are not the numbers that NumPy gives."
    assert shown["a wrong kernel"] == f"Nothing was measured here. {wrong}\n" + RECORDED + NO_CUBLAS


@pytest.mark.slow
def test_on_a_gpu_its_times_stand_beside_those_of_the_h100(shown):
    times = re.sub(r"[\d,.]+ (µs|GB/s)", r"… \1", shown["as if real"])
    assert re.sub(" +", " ", times).splitlines() == [
        "a + b, 32 numbers H100 here",
        "one number a thread … µs, … GB/s … µs, … GB/s",
        "four numbers a thread … µs, … GB/s … µs, … GB/s",
        "a loop over the grid … µs, … GB/s … µs, … GB/s",
        "a + b, 1,000 numbers H100 here",
        "by Numba … µs … µs",
        "by the driver alone … µs –",
        "by PyTorch: add(out=) … µs –",
        "by needle: ewise_add – … µs",
        "a @ b, 1,024² and 4,096² numbers H100, 4 here, 4",
        "cuBLAS … µs –",
        "without tiles – … µs",
        "2 × 2 tiles, 1 a thread – … µs",
        "needle's own kernel – … µs",
        "Numba's simulator has no cuBLAS.",
    ]


@pytest.mark.slow
def test_a_gpu_with_little_memory_adds_fewer_numbers_and_one_that_fails_does_not_end_the_lecture(shown):
    few = "This GPU has little memory left. So 16 numbers are added, and times scaled up.\n"
    assert shown["little memory"].startswith(few)
    assert re.search(r"one number a thread +294 µs, .+ GB/s   +[\d,]+ µs, .+ GB/s", shown["little memory"])

    assert shown["a failure"].count("Nothing was measured here. MemoryError: the GPU is full\n") == 3
    assert shown["a failure"].count("and not on this machine.\n") == 3


def test_a_small_grid_is_no_reason_for_a_warning(monkeypatch, capsys):
    """Numba warns that it leaves most of a GPU idle, which it does without a GPU, too."""
    monkeypatch.setattr(type(ndl.cuda()), "why", lambda self: "")
    kernel = cuda.jit(lecture_13.product)
    with pytest.warns(match="low occupancy"):
        kernel[4, 256]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lecture_13._on_this_gpu(lambda: {"launched": kernel[5, 256] and 1.0}) == {"launched": 1.0}
    assert capsys.readouterr().out == ""


def test_a_loop_divides_before_it_begins_and_other_kernels_do_not():
    namespace: dict = {}
    exec(KERNELS, namespace)
    arrays = [types.Array(types.float32, 1, "C")] * 3
    divides = {}
    for name in ("one_number", "four_numbers", "in_a_loop"):
        try:
            code, _ = cuda.compile_ptx(namespace[name], types.void(*arrays), cc=(9, 0))
        except Exception as error:
            pytest.skip(f"no GPU toolchain here: {error}")
        divides[name] = "div." in code
    assert divides == {"one_number": False, "four_numbers": False, "in_a_loop": True}
