"""Schedules: how the learning rate of an optimiser changes from step to step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

from .optimizer import Optimizer


class Schedule:
    """A learning rate that changes from step to step. A subclass computes it in `lr_at`.

    Call `step` after each step of the optimiser, or after each epoch if the schedule counts epochs. A group
    with a learning rate of its own follows the same schedule.

    Parameters
    ----------
    optimizer : Optimizer
        The schedule sets its `lr` from now on; the `lr` that it has now is the base.

    Attributes
    ----------
    t : int
        How often `step` was called.
    """

    def __init__(self, optimizer: Optimizer):
        if not hasattr(optimizer, "lr"):
            raise TypeError(
                f"{type(self).__name__}: needs an optimiser that has an lr, got {optimizer!r:.100}"
            )
        self.optimizer: Any = optimizer
        self._own = [i for i, group in enumerate(optimizer.groups) if "lr" in group]
        self._bases = [optimizer.lr, *(optimizer.groups[i]["lr"] for i in self._own)]
        self.t = 0
        self._set(0)

    def lr_at(self, t: int, base: float) -> float:
        """The learning rate after `t` calls of `step`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no lr_at; write a method lr_at(self, t, base) that "
            "returns the learning rate"
        )

    def step(self) -> None:
        """Go on to the next learning rate."""
        self._set(self.t + 1)
        self.t += 1

    def _set(self, t: int) -> None:
        lr, *own = [self.lr_at(t, base) for base in self._bases]
        self.optimizer.lr = lr
        for i, lr in zip(self._own, own, strict=True):
            self.optimizer.groups[i]["lr"] = lr

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule is, for `load_state_dict`. The arguments it was made with are not in it."""
        return {"t": self.t, "bases": list(self._bases)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where another schedule was, with what its `state_dict` returned.

        Raises
        ------
        ValueError
            If `state` is not a schedule's, or its optimiser had other groups. The schedule stays as it was.
        """
        if not isinstance(state, dict) or not self._fits(state.get("t"), state.get("bases")):
            raise ValueError(
                f"load_state_dict: needs t and {len(self._bases)} base learning rates, got {state!r:.100}"
            )
        self.t, self._bases = state["t"], list(state["bases"])
        self._set(self.t)

    def _fits(self, t: Any, bases: Any) -> bool:
        counts = type(t) is int and t >= 0 and isinstance(bases, Sequence) and len(bases) == len(self._bases)
        return counts and all(isinstance(base, Real) for base in bases)


class StepLR(Schedule):
    """The base, multiplied by `gamma` after every `step_size` steps.

    Parameters
    ----------
    optimizer : Optimizer
    step_size : int
        How many steps each learning rate lasts.
    gamma : float
        The factor from one learning rate to the next.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1):
        self.step_size = _positive("StepLR: step_size", step_size)
        self.gamma = gamma
        super().__init__(optimizer)

    def lr_at(self, t: int, base: float) -> float:
        return base * self.gamma ** (t // self.step_size)


class CosineLR(Schedule):
    """From the base down to `min_lr` along half a period of a cosine, and `min_lr` from there on.

    Parameters
    ----------
    optimizer : Optimizer
    steps : int
        How many steps the way down takes.
    min_lr : float
        The learning rate at the end.

    References
    ----------
    Loshchilov and Hutter (2017), "SGDR: stochastic gradient descent with warm restarts", equation 5.
    """

    def __init__(self, optimizer: Optimizer, steps: int, min_lr: float = 0.0):
        self.steps = _positive("CosineLR: steps", steps)
        self.min_lr = min_lr
        super().__init__(optimizer)

    def lr_at(self, t: int, base: float) -> float:
        share = (1 + math.cos(math.pi * min(t / self.steps, 1))) / 2
        return self.min_lr + (base - self.min_lr) * share


class WarmUp(Schedule):
    """From a small learning rate up to the base in equal steps, then what another schedule says.

    Parameters
    ----------
    optimizer : Optimizer
    steps : int
        The learning rate of the first step is base / steps, that of step number `steps` is the base.
    then : Schedule, optional
        A schedule of the same optimiser, which begins after the last of the `steps`; do not call its `step`.
        Default: the base from then on.
    """

    def __init__(self, optimizer: Optimizer, steps: int, then: Schedule | None = None):
        self.steps = _positive("WarmUp: steps", steps)
        if then is not None and then.optimizer is not optimizer:
            raise ValueError("WarmUp: `then` is a schedule of another optimiser; make it for the same one")
        self.then = then
        super().__init__(optimizer)
        if then is not None:  # which may have set other rates than the bases already
            self._bases = list(then._bases)
            self._set(self.t)

    def lr_at(self, t: int, base: float) -> float:
        if t < self.steps:
            return base * (t + 1) / self.steps
        return base if self.then is None else self.then.lr_at(t - self.steps, base)


def _positive(what: str, count: int) -> int:
    if count < 1:
        raise ValueError(f"{what} must be 1 or more, got {count}")
    return count
