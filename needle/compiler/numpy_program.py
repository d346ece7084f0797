"""Compiled programs on `cpu_numpy`: straight-line NumPy, as `numpy_source.py` writes it.

Nothing is compiled here, so the first call is as fast as the others, and it runs where there is no Numba.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

import numpy as np

from .lower import Buffer, Call, Nest
from .numpy_source import NumpyPart, write_numpy
from .program import Program, read_before
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
        users: Counter[Buffer] = Counter()  # in how many of these runs
        for run in self._runs:
            users.update({buffer for step in run for buffer in (*step.read, *step.written)})
        of_calls = {x for step in self.nests if isinstance(step, Call) for x in (*step.read, *step.written)}
        from_outside = {x for x, _ in (*self.inputs, *self.draws, *self.results)}
        states = {x for _, x in self.states}
        kept = [x for x in used if x in states or ((users[x] > 1 or x in of_calls) and x not in from_outside)]
        self._constants = [x for x in kept if x.data is not None]
        kept = [x for x in kept if x.data is None and not x.is_iota]
        self._places = {x: (x.name, 0) for x in kept}
        self._storage = {x.name: np.zeros(x.size, x.dtype) for x in kept}

    def _write(self) -> None:
        arguments = [*self.given, *self.draws, *self.results]
        places: dict[Buffer, str | None] = {x: x.name for x, _ in arguments} | dict.fromkeys(self._places)
        self.parts: list[Any] = []
        self._names_of: dict[str, dict[str, Any]] = {}
        for number, run in enumerate(self._runs, start=1):
            if isinstance(run[0], Call):
                self.parts.append(run[0])
                self.kernels.append(None)
                continue
            name = "step" if len(self._runs) == 1 else f"step_{number}"
            nests = [step for step in run if isinstance(step, Nest)]
            part = write_numpy(name, nests, places, self.formulas)
            function, self._names_of[name] = part.function(self._storage)
            self.parts.append(part)
            self.kernels.append(function)
        self.source = "\n\n".join(x.source for x in self.parts if isinstance(x, NumpyPart))

    def failed(self, part: Any, status: int, arrays: dict[str, np.ndarray]) -> None:
        """Raise the error of a check."""
        check = part.checks[status - 1]
        name = check.reads[0].buffer.name
        values = arrays[name] if name in arrays else self._names_of[part.name][name].reshape(-1)
        raise check.refusal(read_before(check, values))
