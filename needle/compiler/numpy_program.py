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
from .simplify import simplify

__all__ = ["NumpyProgram"]


class NumpyProgram(Program):
    """A program on `cpu_numpy`.

    Attributes
    ----------
    parts : list of NumpyPart or Call
    """

    is_ready_at_once = True
    has_blas = False  # NumPy's products take any strides
    accumulates = False

    def _schedule(self, steps: list[Nest | Call], wanted: set[Buffer]) -> None:
        self.nests = simplify(steps, wanted, self.accumulates)

    def _place(self) -> None:
        used = self._name()
        self._runs = [[*run] for _, run in groupby(self.nests, key=lambda x: isinstance(x, Call) and id(x))]
        buffers = [{x for step in run for x in (*step.read, *step.written)} for run in self._runs]
        users = Counter(x for run in buffers for x in run)
        of_calls = {x for step in self.nests if isinstance(step, Call) for x in (*step.read, *step.written)}
        states = {x for _, x in self.states}
        shared = {x for x in used if users[x] > 1} | of_calls | states
        shared -= {x for x, _ in (*self.inputs, *self.draws, *self.results)} - states
        kept = [x for x in used if x in shared and x.data is None and not x.is_iota]
        self._constants = [x for x in used if x.data is not None]
        self._kept = dict.fromkeys(kept)
        self._storage = {x.name: np.zeros(x.size, x.dtype) for x in kept}

    def _write(self) -> None:
        given = [x for x, _ in (*self.given, *self.draws, *self.results)]
        kept = [*self._kept, *self._constants]
        arrays = {x.name: x.data for x in self._constants} | self._storage
        self.parts: list[Any] = []
        for number, run in enumerate(self._runs, start=1):
            if isinstance(run[0], Call):
                self.parts.append(run[0])
                continue
            name = "step" if len(self._runs) == 1 else f"step_{number}"
            nests = [step for step in run if isinstance(step, Nest)]
            part = write_numpy(name, nests, given, kept, self.formulas, self._names)
            part.load(arrays)
            self.parts.append(part)
        self.source = "\n\n".join(x.source for x in self.parts if isinstance(x, NumpyPart))

    def compute(self, arrays: dict[str, Any]) -> None:
        """Compute one step."""
        for part in self.parts:
            if isinstance(part, Call):
                self.call(part, arrays)
            elif status := part(arrays):
                self.failed(part, status, part.names | arrays)

    def compute_steps(self, arrays: dict[str, Any], numbers: list[list[Any]]) -> None:
        """Compute one step after the other, for `scan`; the arrays are those of all steps."""
        for s, of_step in enumerate(numbers):
            own = {name: arrays[name][size * s :][:size] for name, size in self.sizes_of_step.items()}
            try:
                self.compute(arrays | own | dict(zip(self.number_names, of_step, strict=False)))
            except Exception:
                self.set_counts(numbers[0], s)  # the steps before count
                raise
