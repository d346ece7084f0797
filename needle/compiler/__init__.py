"""A compiler for functions of Tensors.

Read `trace.py`, `lower.py`, `schedule.py` and `codegen.py` in this order.
"""

from __future__ import annotations

from .compiled import CannotTrace, Compiled, jit
from .scanning import scan

__all__ = ["CannotTrace", "Compiled", "jit", "scan"]
