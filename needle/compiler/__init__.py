"""A compiler for functions of Tensors.

`jit` is in `compiled.py`. A function becomes a graph (`trace.py`), the graph becomes loops (`lower.py`),
loops that nobody needs are dropped (`simplify.py`), the others are fused (`schedule.py`) and written as
source (`codegen.py`). Read these files in this order. In between, after `simplify.py`, read
`numpy_source.py`: for `cpu_numpy` it replaces the last two, and its source is the easiest. `program.py` runs
all passes, `emit.py` and `runtime.py` make machine code of the source, and `host.py` writes what each call
does.
"""

from __future__ import annotations

from .compiled import CannotTrace, Compiled, jit
from .scanning import scan, scan_is_ready

__all__ = ["CannotTrace", "Compiled", "jit", "scan", "scan_is_ready"]
