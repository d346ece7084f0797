"""What is compiled is kept on disk: a later process reads it, and a damaged file costs only time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor
from needle.compiler import runtime

#: Functions of the same types that a linker could mistake for one another.
FUNCTIONS = {
    "twice": lambda x: (ndl.relu(x * 2)).sum(),
    "more": lambda x: (ndl.sign(x) + 3).sum(),
    "less": lambda x: (ndl.abs(x) - 5).sum(),
}
NUMBERS = np.linspace(-1, 1, 6, dtype="float32")
EXPECTED = {"twice": 2 * 1.8, "more": 18.0, "less": 3.6 - 30}

SCRIPT = """
import sys
import numpy as np
import needle as ndl
sys.path.insert(0, sys.argv[1])
from test_disk import FUNCTIONS, NUMBERS, hits
for name in sys.argv[2:]:
    compiled = ndl.jit(FUNCTIONS[name])
    print(name, compiled(ndl.Tensor(NUMBERS)).item(), hits(compiled))
"""


def hits(compiled) -> int:
    """How many parts of its programs were read from disk."""
    kernels = [k for p in compiled._programs for k in p.compiled.values()]
    return sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)


def in_another_process(folder: Path, *names: str) -> list[tuple[str, float, int]]:
    """Each function's name, its result, and how much of it came from disk."""
    here = str(Path(__file__).parent)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, here, *names], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    lines = [line.split() for line in run.stdout.splitlines()]
    return [(name, float(result), int(count)) for name, result, count in lines]


def test_another_process_reads_what_this_one_compiled(folder):
    for name, f in FUNCTIONS.items():
        compiled = ndl.jit(f)
        assert compiled(Tensor(NUMBERS)).item() == pytest.approx(EXPECTED[name], abs=1e-5)
        assert hits(compiled) == 0
    found = in_another_process(folder, *FUNCTIONS)
    assert found == [(name, pytest.approx(EXPECTED[name], abs=1e-5), 1) for name in FUNCTIONS]


@pytest.mark.slow
def test_what_several_processes_compiled_goes_together(folder):
    for name in FUNCTIONS:
        assert in_another_process(folder, name) == [(name, pytest.approx(EXPECTED[name], abs=1e-5), 0)]
    for names in (list(FUNCTIONS), list(FUNCTIONS)[::-1]):
        found = in_another_process(folder, *names)
        assert found == [(name, pytest.approx(EXPECTED[name], abs=1e-5), 1) for name in names]


def test_a_new_jit_reads_it_too(folder):
    for count in (0, 1, 1):
        runtime._loaded.clear()
        compiled = ndl.jit(FUNCTIONS["more"])
        assert compiled(Tensor(NUMBERS)).item() == 18
        assert hits(compiled) == count


def test_what_is_loaded_is_loaded_once(folder):
    """Machine code stays in memory for good, so a network that is made again and again must not add to it."""
    kernels = set()
    for _ in range(3):
        compiled = ndl.jit(FUNCTIONS["less"])
        assert compiled(Tensor(NUMBERS)).item() == pytest.approx(EXPECTED["less"], abs=1e-5)
        kernels |= {*compiled.program.compiled.values()}
    assert len(kernels) == 1


def test_the_oldest_of_what_is_loaded_goes(folder, monkeypatch):
    monkeypatch.setattr(runtime, "_MOST_LOADED", 2)
    for name in (*FUNCTIONS, *FUNCTIONS):
        assert ndl.jit(FUNCTIONS[name])(Tensor(NUMBERS)).item() == pytest.approx(EXPECTED[name], abs=1e-5)
        assert len(runtime._loaded) <= 2


@pytest.mark.parametrize("damage", ["cut", "overwritten", "empty", "of another"])
def test_a_damaged_file(folder, damage):
    for name in ("more", "less"):
        ndl.jit(FUNCTIONS[name])(Tensor(NUMBERS))
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 6
    for path in files:
        content = path.read_bytes()
        if damage == "of another":  # the source of a program changed; what is compiled is that of the old one
            path.write_bytes(content.replace(b"return 0", b"return 7") if path.suffix == ".py" else content)
        else:
            changed = {"cut": content[: len(content) // 2], "overwritten": b"?" * len(content), "empty": b""}
            path.write_bytes(changed[damage])
    runtime._loaded.clear()
    for name in ("more", "less"):
        assert ndl.jit(FUNCTIONS[name])(Tensor(NUMBERS)).item() == pytest.approx(EXPECTED[name], abs=1e-5)


def test_a_file_in_the_place_of_the_folder(folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "file"))
    assert ndl.jit(FUNCTIONS["more"])(Tensor(NUMBERS)).item() == 18
