"""Time several ways to compute the same thing against each other, fairly.

The contenders take turns, so that a busy machine slows them alike; a figure is the median over the rounds,
and a ratio is the median of the rounds' ratios. They must agree on the result before the clock starts.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, sleep

import numpy as np

from . import THREADS

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 11
SECONDS_PER_SAMPLE = 0.01  # a sample repeats its contender until it is at least this long
#: OpenBLAS's threads keep the processors busy for 0.11 s after a product. Whoever comes next would pay.
PAUSE = 0.15 if THREADS > 1 else 0.0


@dataclass
class Case:
    """One line of the table.

    Attributes
    ----------
    name : str
    contenders : dict of str to callable
        Each computes the same and returns it as an array or a tensor; in a `stopwatch` case it returns the
        seconds that it measured itself.
    stopwatch : bool
    compared : dict of str to callable, optional
        What must agree before the clock starts. Default: the contenders.
    calls : dict of str to int
        How many of the things to be timed a contender does at once, where it is not 1.
    rate : bool
        Whether to print how many of them are done in a second, and not how long one takes.
    rounds : int
    """

    name: str
    contenders: dict[str, Callable]
    stopwatch: bool = False
    compared: dict[str, Callable] | None = None
    calls: dict[str, int] = field(default_factory=dict)
    rate: bool = False
    rounds: int = ROUNDS
    samples: dict[str, list[float]] = field(default_factory=dict)

    def run(self) -> None:
        """Fill `samples`: for each contender the seconds it took in each round."""
        repeats = {}
        if not self.stopwatch:
            self._agree()
            for name, run in self.contenders.items():
                sleep(PAUSE)
                repeats[name] = _repeats(run)
        self.samples = {name: [] for name in self.contenders}
        for _ in range(self.rounds):
            for name, run in self.contenders.items():
                if self.stopwatch:
                    seconds = run()
                else:
                    sleep(PAUSE)
                    seconds = _seconds(run, repeats[name]) / repeats[name]
                self.samples[name].append(seconds / self.calls.get(name, 1))

    def seconds(self, name: str) -> float | None:
        """The median time of a contender; None if it does not take part."""
        return median(self.samples[name]) if name in self.samples else None

    def ratio(self, name: str | None, ours: str = "needle") -> float | None:
        """How many times as long as contender `name` `ours` took; None if one of them does not take part."""
        if not {ours, name} <= self.samples.keys():
            return None
        pairs = zip(self.samples[ours], self.samples[name], strict=True)
        return median(our / other for our, other in pairs)

    def fastest(self, names: tuple[str, ...]) -> str | None:
        """The contender among `names` that took the least time; None if none of them takes part."""
        return min((name for name in names if name in self.samples), key=self.seconds, default=None)

    def remark(self) -> str:
        """What stands behind the figures in the table."""
        return ""

    def _agree(self) -> None:
        runs = self.compared or self.contenders
        results = {name: _as_numpy(run()) for name, run in runs.items()}
        first, expected = next(iter(results.items()))
        for name, result in results.items():
            agree(result, expected, f"{self.name}: {name} beside {first}")


def agree(result: np.ndarray, expected: np.ndarray, who: str) -> None:
    """Raise AssertionError unless the numbers of two libraries are the same, but for rounding."""
    # What is small beside the other numbers has fewer right digits.
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=atol, err_msg=who)


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
    for _ in range(2):  # the first calls compile
        run()
    repeats = 1
    while _seconds(run, repeats) < SECONDS_PER_SAMPLE:
        repeats *= 2
    return repeats
