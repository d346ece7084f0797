"""The same step of training where needle is imported first, and where torch is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from statistics import median
from time import perf_counter

from .timing import Case, torch
from .training import training_step

RIVALS = ("torch 1st",)
STEPS = 50


def why_not() -> str:
    """Return why there is nothing to compare; empty if there is."""
    return "" if torch else "torch is not installed"


def cases() -> Iterator[Case]:
    """Yield the lines of this group."""
    orders = {"needle": "needle, torch", "torch 1st": "torch, needle"}
    contenders = {name: partial(in_fresh_process, order) for name, order in orders.items()}
    yield Case("training step 784-500-10, batch 128", contenders, stopwatch=True)


def in_fresh_process(order: str) -> float:
    """Import the libraries in this order in a new interpreter; the seconds that a step takes there."""
    program = f"import {order}; from benchmarks import orders; print(orders.step_seconds())"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)


def step_seconds() -> float:
    """The median over some steps, the first of which are not counted."""
    step = training_step((784, 500, 10), batch=128).contenders["needle"]
    seconds = []
    for _ in range(STEPS):
        start = perf_counter()
        step()
        seconds.append(perf_counter() - start)
    return median(seconds[STEPS // 5 :])
