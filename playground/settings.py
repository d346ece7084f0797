"""What you can choose in the playground: values, their limits, and their form in the page's address."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from needle import nn, optim
from needle.data import toy

__all__ = ["ACTIVATIONS", "LIMITS", "MAX_LAYERS", "OPTIMISERS", "Settings", "SettingsError"]

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "sigmoid": nn.Sigmoid, "linear": nn.Identity}
OPTIMISERS = {"SGD": optim.SGD}

#: The lowest and highest value of every number.
LIMITS = {
    "noise": (0.0, toy.MAX_NOISE),
    "points": (10, 5000),
    "train_share": (0.1, 0.9),
    "hidden": (1, 32),  # neurons in one layer
    "learning_rate": (1e-6, 100.0),
    "batch_size": (1, 5000),
    "seed": (0, 2**32 - 1),
}
MAX_LAYERS = 8

_LABELS = {"points": "number of points", "train_share": "share to learn from", "hidden": "hidden layers"}


class SettingsError(ValueError):
    """Settings that cannot be used.

    Attributes
    ----------
    problems : dict of str to str
        For each wrong field, a sentence that says what came and what is possible.
    """

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = problems


@dataclass(frozen=True)
class Settings:
    """Everything that decides how a training goes.

    Two trainings with equal settings give equal numbers, up to rounding. The defaults are TensorFlow
    Playground's.

    Parameters
    ----------
    dataset : str
        A name in `needle.data.toy.DATASETS`.
    noise : float
        0 to 0.5.
    points : int
        How many points are made, for training and testing together.
    train_share : float
        The share of the points to learn from.
    hidden : tuple of int
        The number of neurons in each hidden layer; empty for a linear model.
    activation : str
        A name in `ACTIVATIONS`, for the hidden layers. The output always goes through tanh.
    learning_rate : float
        The step of the optimiser.
    batch_size : int
        How many points one training step looks at.
    optimiser : str
        A name in `OPTIMISERS`.
    seed : int
        Decides the points, the first weights and the order of the batches.

    Raises
    ------
    SettingsError
        If a value is of the wrong kind or outside its limits.
    """

    dataset: str = "circle"
    noise: float = 0.0
    points: int = 500
    train_share: float = 0.5
    hidden: tuple[int, ...] = (4, 2)
    activation: str = "tanh"
    learning_rate: float = 0.03
    batch_size: int = 10
    optimiser: str = "SGD"
    seed: int = 0

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        problems = {
            name: _expected(name, value) for name, value in values.items() if not _usable(name, value)
        }
        if problems:
            raise SettingsError(problems)

    @classmethod
    def from_text(cls, texts: Mapping[str, str]) -> Settings:
        """Read settings from text, such as a page's address. Missing fields get their defaults.

        Numbers look as in Python, and the hidden layers like ``4-2`` (any separator will do).

        Raises
        ------
        SettingsError
            If a value cannot be read or used. Unknown names are ignored.
        """
        values: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for name, read in _READERS.items():
            if name not in texts:
                continue
            try:
                values[name] = read(texts[name])
            except ValueError:
                problems[name] = _expected(name, texts[name])
            else:
                if not _usable(name, values[name]):
                    problems[name] = _expected(name, texts[name])
        if problems:
            raise SettingsError(problems)
        return cls(**values)

    def to_text(self) -> dict[str, str]:
        """The fields that differ from their defaults, as `from_text` reads them."""
        return {
            field.name: _text(value)
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        }


_CHOICES: dict[str, Mapping[str, Any]] = {
    "dataset": toy.DATASETS,
    "activation": ACTIVATIONS,
    "optimiser": OPTIMISERS,
}


def _usable(name: str, value: Any) -> bool:
    if name in _CHOICES:
        return isinstance(value, str) and value in _CHOICES[name]
    if name == "hidden":
        layers = isinstance(value, tuple) and len(value) <= MAX_LAYERS
        return layers and all(_within(LIMITS[name], width) for width in value)
    return _within(LIMITS[name], value)


def _within(limits: tuple[float, float], value: Any) -> bool:
    low, high = limits
    kind: Any = numbers.Integral if isinstance(low, int) else numbers.Real
    return isinstance(value, kind) and not isinstance(value, bool) and low <= value <= high


def _expected(name: str, got: Any) -> str:
    """A sentence that says what a field can be, and what came instead."""
    label = _LABELS.get(name, name.replace("_", " "))
    text = _text(got)
    shown = f'"{text if len(text) <= 30 else text[:29] + "…"}"'
    if name in _CHOICES:
        return f"The {label} must be one of {', '.join(_CHOICES[name])}, not {shown}."
    low, high = LIMITS[name]
    if name == "hidden":
        return (
            f"The {label} must be at most {MAX_LAYERS} whole numbers from {low} to {high}, "
            f"such as 4, 2, not {shown}."
        )
    if isinstance(low, int):
        return f"The {label} must be a whole number from {low:,} to {high:,}, not {shown}."
    return f"The {label} must be a number from {low:g} to {high:g}, not {shown}."


def _text(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _read_hidden(text: str) -> tuple[int, ...]:
    return tuple(int(width) for width in re.split(r"[\s,;×–-]+", text.strip())) if text.strip() else ()


_READERS = {
    field.name: {"str": str, "int": int, "float": float}.get(str(field.type), _read_hidden)
    for field in dataclasses.fields(Settings)
}
