"""A compiler for functions of Tensors.

Read `trace.py`, `lower.py`, `simplify.py`, `schedule.py` and `codegen.py` in this order: a function becomes a
graph, loops, fewer loops, fused loops, and source. `program.py` puts them together and says what each call
does, and `runtime.py` makes machine code of the source. On `cpu_numpy`, `numpy_source.py` takes the place of
the last two steps.
"""

from __future__ import annotations

from .compiled import CannotTrace, Compiled, jit
from .scanning import scan, scan_is_ready

__all__ = ["CannotTrace", "Compiled", "jit", "scan", "scan_is_ready"]
