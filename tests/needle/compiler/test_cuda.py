"""Compiled programs on a card: on Numba's simulator, and on a card if there is one."""

from __future__ import annotations

from ..backend_ndarray.test_cuda import NEVER, passing, places

FILE = "compiler/under_cuda.py"


@places
def test_compiled_programs(place, tmp_path):
    passed = passing(place, tmp_path / "report.xml", [FILE], without=NEVER)
    assert set(passed) == {FILE}
    assert len(passed) > 30
