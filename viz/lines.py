"""Which line of a program made a node, for what a drawing shows on hover."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import needle
from needle.autograd import Value

from .graph_data import Line

__all__ = ["line_of"]

# What makes nodes, and runs cells, but is no user's program.
_OURS = (str(Path(__file__).parent), str(Path(needle.__file__).parent))
LONGEST = 200  # characters


def line_of(node: Value) -> Line | None:
    """The line that made a node; None if it was made before `import viz`, or by no user's program."""
    if node.line is None:
        return None
    code, instruction = node.line
    file = code.co_filename
    if file.startswith(_OURS) or str(Path("/IPython/core")) in file:
        return None
    lines = (line for begin, end, line in code.co_lines() if begin <= instruction < end)
    number = next(lines, None) or code.co_firstlineno
    text = linecache.getline(file, number, None).strip()
    return Line(_called(file), number, text[:LONGEST])


def _called(file: str) -> str:
    """The name of a file; of a notebook's cell, its number."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    label = shell.compile.format_code_name(file) if shell is not None else None
    return " ".join(label).lower().replace("cell in", "cell ") if label else Path(file).name
