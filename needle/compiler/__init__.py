"""A compiler for functions of Tensors.

A function becomes a graph (`trace.py`), loops (`lower.py`), fewer loops (`simplify.py`), fused loops
(`schedule.py`) and source (`codegen.py`): read them in this order. For `cpu_numpy`, `numpy_source.py` takes
the place of the last two. Its source is the easiest, so read it right after `simplify.py`. `runtime.py` makes
machine code of the source, and `program.py` puts all together and says what each call does.
"""

from __future__ import annotations

from .compiled import CannotTrace, Compiled, jit
from .scanning import scan, scan_is_ready

__all__ = ["CannotTrace", "Compiled", "jit", "scan", "scan_is_ready"]
