"""What takes Numba's place where it is not installed, as in a browser: plain Python, in one thread.

`stand_in` puts a module called numba into `sys.modules`, so that ``from numba import njit, prange`` runs, and that
what a kernel computes comes out, though slowly. What only Numba shows was recorded: `edit_cells` sees to that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

#: llvmlite is what Numba compiles with: a stand-in for Numba has none.
MISSING = find_spec("llvmlite") is None


def prange(*limits: int) -> range:
    """Numba's, in one thread."""
    return range(*limits)


def njit(function: Callable | None = None, **options: Any) -> Any:
    """The function itself, which knows its Python as what Numba makes knows it."""
    if function is None:
        return njit

    @wraps(function)
    def plain(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):  # compiled code says nothing of an overflow
            return function(*arguments)

    plain.py_func = function  # type: ignore[attr-defined]
    return plain


def stand_in() -> None:
    """Put a module called numba where Python looks for it, if Numba is not installed."""
    if not MISSING or isinstance(sys.modules.get("numba"), ModuleType):
        return
    numba, cuda = ModuleType("numba", __doc__), ModuleType("numba.cuda")
    vars(numba).update(njit=njit, prange=prange, vectorize=np.vectorize, float32=np.float32, cuda=cuda)
    vars(numba).update(get_num_threads=lambda: 1, NumbaParallelSafetyWarning=RuntimeWarning)
    vars(cuda).update(jit=njit)
    numba.__spec__ = ModuleSpec("numba", None)
    sys.modules.update({"numba": numba, "numba.cuda": cuda})


def edit_cells(edits: Iterable[list[str]]) -> None:
    """From now on, run some cells of the notebook in another way: with fewer numbers, or with what was recorded.

    Each edit is a sentence that the cell prints first, and then, as for slips, what stands in the cell and what
    takes its place.
    """

    def edited(lines: list[str]) -> list[str]:
        text = "".join(lines)
        for sentence, *pairs in edits:
            if all(old in text for old in pairs[::2]):
                for old, new in zip(pairs[::2], pairs[1::2], strict=True):
                    text = text.replace(old, new)
                text = f"print({sentence!r})\n{text}"
        return text.splitlines(keepends=True)

    if shell := getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)():
        shell.input_transformers_post.append(edited)
