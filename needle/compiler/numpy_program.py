"""Compiled programs on `cpu_numpy`: straight-line NumPy, as `numpy_source.py` writes it.

Numba compiles nothing here, so a program is ready as soon as its function is traced. `scan` calls it for one
step after the other.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

import numpy as np

from .lower import Buffer, Call, Nest
from .numpy_source import NumpyPart, write_numpy
from .program import Program
from .simplify import PASSES, simplify

__all__ = ["NumpyProgram"]


class NumpyProgram(Program):
    """A program on `cpu_numpy`.

    Attributes
    ----------
    parts : list of NumpyPart or Call
    """

    is_ready_at_once = True
    has_blas = False  # NumPy's products take any strides
    passes = PASSES[:-1]

    def _schedule(self, steps: list[Nest | Call], wanted: set[Buffer]) -> None:
        self.nests = simplify(steps, wanted, self.passes)

    def _place(self) -> None:
        used, states, users = self._name(), {x for _, x in self.states}, Counter[Buffer]()
        for segment in self._segments():
            is_call = isinstance(segment, Call)
            found = {x for step in ([segment] if is_call else segment) for x in step.buffers}
            users.update([*found] * (1 + is_call))  # what a call uses is kept, too
        shared = {x for x in used if users[x] > 1 and x.is_ours and not x.is_iota}
        self._kept = dict.fromkeys(x for x in used if x in shared | states or x.data is not None)
        self.kept = {x.name: np.zeros(x.size, x.dtype) if x.data is None else x.data for x in self._kept}

    def _segments(self) -> list[Any]:
        runs = groupby(self.nests, key=lambda step: isinstance(step, Call))
        return [x for is_call, run in runs for x in (run if is_call else [[*run]])]

    def _part(self, name: str, segment: list[Nest]) -> NumpyPart:
        given = [x for x, _ in (*self.given, *self.draws, *self.results)]
        part = write_numpy(name, segment, given, self._kept, self.formulas, self._names)
        part.load(self.kept)
        return part

    def compute(self, arrays: dict[str, Any]) -> None:
        """Compute one step."""
        for part in self.parts:
            if isinstance(part, Call):
                self.call(part, arrays)
            elif status := part(arrays):
                self.failed(part, status, part.names | arrays)
