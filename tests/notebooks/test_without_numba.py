"""What stands in for Numba, MPI and threads where there are none. In a browser, test_lectures.py runs all."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from lectures.checking.attempt import StillRunning, clock_watched
from lectures.checking.exercise import Lecture
from lectures.team import NoMail, Threads

from .conftest import ROOT

HIDDEN = (
    "numba",
    "llvmlite",
    "tbb",
    "pygraphviz",
    "sklearn",
    "scipy",
    "safetensors",
    "psutil",
    "mpi4py",
    "torch",
    "jax",
)

HIDE = f"import sys\nsys.modules.update(dict.fromkeys({HIDDEN}))\n"


def run(program: str) -> subprocess.CompletedProcess[str]:
    clean = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    return subprocess.run(
        [sys.executable, "-c", HIDE + program],
        cwd=ROOT / "notebooks",
        env=clean,
        capture_output=True,
        text=True,
    )


def test_what_is_edited_stands_in_its_cell_and_nowhere_else(notebook, lecture, monkeypatch):
    found: list[list] = []
    monkeypatch.setattr("lectures.checking.exercise.MISSING", True)
    monkeypatch.setattr("lectures.checking.exercise.edit_cells", lambda edits: found.extend(edits))
    toml = ROOT / "lectures" / f"lecture_{lecture.stem[:2]}.toml"
    Lecture(str(toml))
    for sentence, *pairs in found:
        assert sentence.endswith((".", ":", ")"))
        cells = [
            x.id
            for x in notebook.cells
            if x.cell_type == "code" and all(old in x.source for old in pairs[::2])
        ]
        assert len(cells) == 1
        assert f"\n{cells[0]} = [" in toml.read_text(encoding="utf-8")


def test_the_packages_work():
    done = run("""
import needle as ndl, viz, lectures, playground.training.trainer
import numba
w = ndl.Tensor([2.0])
(w * w).backward()
assert w.grad.item() == 4 and ndl.jit(lambda x: x * x)(w).item() == 4
assert ndl.cpu() is ndl.cpu_numpy() and not ndl.cuda().enabled() and "Numba" in ndl.cuda().why()
assert len(ndl.data.digits()) == 1442 and numba.njit(abs)(-1) == 1
assert ndl.serialization.as_bytes({"w": w})
def kernel(cuda, out):
    cuda.atomic.add(out, 0, cuda.grid(1) + cuda.gridsize(1))
import numpy as np
assert viz.trace_kernel(kernel, 2, 4, np.zeros(1)).arrays["out"][0] == 28 + 64
""")
    assert done.returncode == 0, done.stderr


def test_an_endless_answer_is_stopped_without_a_signal():
    def endless():
        while True:
            pass

    with pytest.raises(StillRunning, match=r"no answer after 0\.1 seconds"), clock_watched(0.1, endless):
        endless()


def test_workers_take_turns_where_no_thread_starts(monkeypatch):
    monkeypatch.setattr("lectures.team.IN_TURNS", True)

    def pass_on(worker):
        worker.send(np.array([worker.rank]), (worker.rank + 1) % worker.size)
        return worker.receive((worker.rank - 1) % worker.size).item()

    threads = Threads(3)
    assert threads.run(pass_on) == [2, 0, 1]
    assert threads.sent == threads.received == [1, 1, 1]
    with pytest.raises(NoMail, match="worker 0 waits for a message from worker 2, and nobody will send one"):
        threads.run(lambda worker: worker.receive((worker.rank - 1) % worker.size))
