"""Running a model for a picture, without leaving a trace in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from needle.autograd import Tensor
from needle.modes import no_grad
from needle.nn import Module

__all__ = ["as_numpy", "evaluated", "unchanged"]


def as_numpy(function: str, name: str, values: Any, dtype: Any = float) -> np.ndarray:
    """A user's numbers as a NumPy array; TypeError if they are not numbers."""
    values = (
        values.numpy() if isinstance(values, Tensor) else values
    )  # an error of its own is not ours to hide
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{function}: {name}: needs numbers, got {type(values).__name__}") from None


@contextmanager
def unchanged(model: Any) -> Iterator[None]:
    """After this block a model's mode, parameters, gradients, buffers and randomness are as before.

    For a callable that is not a Module, this restores only NumPy's global random state.
    """
    parts = [part for _, part in model.named_modules()] if isinstance(model, Module) else []
    tensors = [*model.parameters(), *(b for _, b in model.named_buffers())] if parts else []
    own = [(part, dict(vars(part))) for part in parts]
    held = [(tensor, tensor._data, tensor.grad) for tensor in tensors]
    generators = {
        id(value): value
        for part in parts
        for value in vars(part).values()
        if isinstance(value, np.random.Generator)
    }
    states = [(generator, generator.bit_generator.state) for generator in generators.values()]
    legacy = np.random.get_state()
    try:
        yield
    finally:
        for part, attributes in own:
            vars(part).clear()
            vars(part).update(attributes)
        for tensor, data, grad in held:
            tensor.cached_data, tensor.grad = data, grad
        for generator, state in states:
            generator.bit_generator.state = state
        np.random.set_state(legacy)


def evaluated(function: str, model: Callable, points: np.ndarray) -> np.ndarray:
    """The outputs (n, k) of a model for points (n, d), in evaluation mode and without a graph."""
    kwargs: dict[str, Any] = {"dtype": "float32", "requires_grad": False}
    if isinstance(model, Module) and model.parameters():
        first = model.parameters()[0]
        kwargs |= {"dtype": first.dtype, "device": first.device}
    with unchanged(model), no_grad():
        if isinstance(model, Module):
            model.eval()
        outputs = as_numpy(function, "what the model returns", model(Tensor(points, **kwargs)))
    if outputs.shape == (len(points),):
        outputs = outputs[:, None]
    if outputs.ndim != 2 or len(outputs) != len(points) or not outputs.shape[1]:
        raise ValueError(
            f"{function}: for {len(points)} points the model gave shape {outputs.shape}; it has to give "
            f"({len(points)},), ({len(points)}, 1) or, with a logit for each class, ({len(points)}, classes)"
        )
    return outputs
