"""`python -m benchmarks cuda`, with tiny arrays and without a GPU: in each row, all compute the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import needle as ndl
from benchmarks import __main__ as benchmarks
from benchmarks import cuda

ROOT = Path(__file__).parent.parent
PARTS = ("arrays", "products", "formulas", "networks", "resnet9")


@pytest.fixture
def tiny(monkeypatch):
    """``tiny(*omitted)`` returns the table of tiny arrays on the processor; NumPy stands in for CuPy."""
    monkeypatch.setattr(cuda, "SECONDS", 0.0)
    monkeypatch.setattr(ndl.cpu().mod, "blas", "a library to do without", raising=False)
    found = cuda.libraries(ndl.cpu())
    found["CuPy"] = cuda.Library(np, np.asarray, np.asarray, lambda result: None)

    def table(*omitted: str) -> cuda.Table:
        taken = {name: library for name, library in found.items() if name not in omitted}
        monkeypatch.setattr(cuda, "libraries", lambda device: taken)
        return cuda.Table(ndl.cpu(), largest=4)

    return table


def run(table: cuda.Table, part: str) -> dict[str, cuda.Row]:
    """Run the rows of a part; none may fail."""
    rows = {row.name: row for row in getattr(table, part)()}
    for row in rows.values():
        row.rounds = 1
        row.run()
        assert row.failures == {}, row.name
        assert row.samples.keys() == row.contenders.keys() >= {"needle"}
    return rows


@pytest.mark.parametrize("part", ["arrays", "products"])
def test_operations_of_arrays_are_those_of_cupy(tiny, part):
    for name, row in run(tiny("jit", "torch"), part).items():
        assert "CuPy" in row.samples or name == "… of Tensors"
        assert ("own kernel" in row.samples) == (part == "products")


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_every_row_computes_what_torch_computes(torch, tiny, part):
    """ResNet9 is not compiled: on the processor that takes minutes."""
    for name, row in run(tiny("jit") if part == "resnet9" else tiny(), part).items():
        assert "torch" in row.samples or name == "… of Tensors"


ON_THE_SIMULATOR = """
import needle as ndl
from benchmarks import cuda

cuda.SECONDS = 0.0
table = cuda.Table(ndl.cuda(), largest=2)
for rows in (table.arrays, table.products, table.formulas, table.networks):
    for row in rows():
        row.rounds = 1
        row.run()
        assert not row.failures, (row.name, row.failures)
        print(row.name, *row.samples, sep=", ")
"""


@pytest.mark.slow
def test_every_row_runs_on_the_simulator():
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", ON_THE_SIMULATOR]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()
    assert len(names) > 25
    assert any(name.startswith("training step 2-2-2-2, batch 2, Adam, needle, jit") for name in names)


def test_a_table_is_printed_and_a_failure_is_told_below_its_row(tiny, monkeypatch, capsys):
    table = tiny("jit", "torch")
    shapes = [(2, 3)]
    row = table.operation("a row", shapes, lambda m, a: m.exp(a), lambda m, a: a.sum(5), work=16)
    wrong = table.operation("a wrong row", shapes, lambda m, a: m.exp(a), lambda m, a: a + 1.0)
    for part in PARTS:
        monkeypatch.setattr(
            table, part, {"arrays": lambda: [row], "products": lambda: [wrong]}.get(part, list)
        )
    monkeypatch.setattr(cuda, "Table", lambda device: table)
    monkeypatch.setattr(cuda, "why_not", lambda: "")
    assert benchmarks.main(["cuda"]) is None
    out = capsys.readouterr().out
    assert f"numba {numba.__version__}" in out
    first, failure, second, difference = out.splitlines()[-4:]
    assert first.split()[:7] == ["a", "row", *"-----"]  # and then NumPy's figure
    assert failure.startswith("    needle: ")
    assert "axes 5" in failure
    assert second.split()[:3] == ["a", "wrong", "row"]
    assert second.rstrip().endswith("x")  # it is timed all the same
    assert difference.startswith("    needle: AssertionError: ")
    assert "not the numbers of CuPy" in difference


def test_without_a_gpu_a_sentence_says_why(monkeypatch, capsys):
    monkeypatch.setattr(ndl.cuda(), "why", lambda: "There is no NVIDIA driver here.")
    assert benchmarks.main(["cuda"]) is None
    assert capsys.readouterr().out.endswith("\ncuda: no GPU: There is no NVIDIA driver here.\n")


def test_help_names_the_groups(capsys):
    assert benchmarks.main(["--help"]) is None
    out = capsys.readouterr().out
    for name, group in benchmarks.GROUPS.items():
        assert f"  {name} " in out
        assert group.__doc__.splitlines()[0] in out


def test_needle_multiplies_by_its_own_kernel_and_then_as_before():
    blas = object()
    kernels = SimpleNamespace(blas=blas)
    with cuda.without_cublas(kernels):
        assert kernels.blas is None
    assert kernels.blas is blas


def test_the_device_is_waited_for_as_it_asks():
    waited = []
    device = SimpleNamespace(synchronize=lambda: waited.append("the device"))
    cuda.waiting_for(device)("a result")
    assert waited == ["the device"]
