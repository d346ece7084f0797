"""What a fresh process waits for: the first calls of a compiled step. `compiler` starts the processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from time import perf_counter

import needle as ndl
from needle.apps.models import ResNet9

from . import in_jax, in_torch
from .training import initial, mlp_step, photographs, resnet9_step, tensor, training_data

LEARNING_RATE = 1e-4
SMALL = (2, 8, 8, 2)
DEEP = (2, 8, 8, 8, 8, 8, 8, 2)
BATCH = 10
SECONDS = 10.0  # to watch a program that compiles in the background


def eager() -> float:
    """The seconds of the first call of a step that nobody compiles."""
    return _seconds(*_needle(SMALL, lambda step: step))


def needle() -> float:
    """The seconds of the first call of ``ndl.jit(step)``."""
    return _seconds(*_needle(SMALL, ndl.jit))


def jax() -> float:
    """The seconds of the first call of ``jax.jit(step)``."""
    return _seconds(*_jax(SMALL))


def resnet9(library: str, device: str, batch: int) -> float:
    """The seconds of the first step of ResNet9 with "needle", "jit" or "torch" on "cpu" or "cuda"."""
    parameters, arrays = initial(ResNet9), photographs(batch)
    if library == "torch":
        with in_torch.torch.device(device):
            step = in_torch.resnet9_step(parameters, LEARNING_RATE)
            x, y = map(in_torch.constant, arrays)
        return _seconds(step, x, y)
    place = getattr(ndl, device)()
    step = resnet9_step(parameters, LEARNING_RATE, place)
    return _seconds(ndl.jit(step) if library == "jit" else step, *(tensor(array, place) for array in arrays))


def needle_deep() -> float:
    """The seconds of the longest call of a deep network's step while it is compiled in the background."""
    return _longest(*_needle(DEEP, lambda step: ndl.jit(step, background=True)))


def jax_deep() -> float:
    """The seconds of the longest call of the same step in jax, which is the first."""
    return _longest(*_jax(DEEP))


def in_background() -> bool:
    """Whether needle can compile in the background."""
    return hasattr(ndl, "jit") and "background" in inspect.signature(ndl.jit).parameters


def _needle(sizes: tuple[int, ...], compiled: Callable) -> tuple:
    inputs, labels, weights = training_data(sizes, BATCH)
    x, y = (ndl.Tensor(a, dtype=a.dtype, requires_grad=False) for a in (inputs, labels))
    return compiled(mlp_step(weights, LEARNING_RATE)), x, y


def _jax(sizes: tuple[int, ...]) -> tuple:
    inputs, labels, weights = training_data(sizes, BATCH)
    return in_jax.mlp_step(weights, LEARNING_RATE), in_jax.constant(inputs), in_jax.constant(labels)


def _seconds(step: Callable, *args) -> float:
    start = perf_counter()
    float(step(*args).numpy() if isinstance(args[0], ndl.Tensor) else step(*args))
    return perf_counter() - start


def _longest(step: Callable, *args) -> float:
    end = perf_counter() + SECONDS
    longest = 0.0
    while perf_counter() < end:
        longest = max(longest, _seconds(step, *args))
    return longest
