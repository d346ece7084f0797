"""Time several ways to compute the same thing against each other, fairly.

The contenders take turns, so that a busy machine slows them alike; a figure is the median over the rounds,
and a ratio is the median of the rounds' ratios. They must agree on the result before the clock starts.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import numpy as np

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 11
SECONDS_PER_SAMPLE = 0.01  # a sample repeats its contender until it is at least this long


@dataclass
class Case:
    """One line of the table.

    Attributes
    ----------
    name : str
    contenders : dict of str to callable
        Among them ``needle``. Each computes the same and returns it as an array or a tensor; in a `stopwatch`
        case it returns the seconds that it measured itself.
    stopwatch : bool
    """

    name: str
    contenders: dict[str, Callable]
    stopwatch: bool = False
    samples: dict[str, list[float]] = field(default_factory=dict)

    def run(self) -> None:
        """Fill `samples`: for each contender the seconds it took in each round."""
        repeats = {}
        if not self.stopwatch:
            self._agree()
            repeats = {name: _repeats(run) for name, run in self.contenders.items()}
        self.samples = {name: [] for name in self.contenders}
        for _ in range(ROUNDS):
            for name, run in self.contenders.items():
                seconds = run() if self.stopwatch else _seconds(run, repeats[name]) / repeats[name]
                self.samples[name].append(seconds)

    def seconds(self, name: str) -> float | None:
        """The median time of a contender; None if it does not take part."""
        return median(self.samples[name]) if name in self.samples else None

    def ratio(self, name: str) -> float | None:
        """How many times as long as contender `name` needle took; None if that one does not take part."""
        if name not in self.samples:
            return None
        pairs = zip(self.samples["needle"], self.samples[name], strict=True)
        return median(needle / other for needle, other in pairs)

    def _agree(self) -> None:
        expected = _as_numpy(self.contenders["needle"]())
        # What is small beside the other numbers has fewer right digits.
        tolerance = {"rtol": 1e-3, "atol": 1e-5 * np.abs(expected).max()}
        for name, run in self.contenders.items():
            np.testing.assert_allclose(
                _as_numpy(run()), expected, **tolerance, err_msg=f"{self.name}: {name}"
            )


def _as_numpy(result) -> np.ndarray:
    if hasattr(result, "detach"):
        result = result.detach()
    return np.asarray(result.numpy() if hasattr(result, "numpy") else result)


def _seconds(run: Callable, repeats: int) -> float:
    gc.collect()
    start = perf_counter()
    for _ in range(repeats):
        run()
    return perf_counter() - start


def _repeats(run: Callable) -> int:
    """How often a sample repeats `run`."""
    repeats = 1
    while _seconds(run, repeats) < SECONDS_PER_SAMPLE:
        repeats *= 2
    return repeats
