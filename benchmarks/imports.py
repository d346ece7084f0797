"""How long the first line of a program takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

from .timing import Case


def cases() -> Iterator[Case]:
    """Yield the lines of this group."""
    libraries = {"needle": "needle", "NumPy": "numpy"} | ({"torch": "torch"} if find_spec("torch") else {})
    contenders = {name: partial(import_seconds, module) for name, module in libraries.items()}
    yield Case("import, in a fresh process", contenders, stopwatch=True)


def import_seconds(module: str) -> float:
    """The seconds that importing `module` takes in a new interpreter, whose own start is not counted."""
    program = f"from time import perf_counter as now; t = now(); import {module}; print(now() - t)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
