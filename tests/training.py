"""Models that learn: what tests compile, draw, or run in two ways at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import needle as ndl
from needle import nn, optim
from needle.autograd import Tensor


class Training:
    """A model, its optimiser and a step of training.

    Parameters
    ----------
    model : Module
    loss_of : callable
        From the model and the arguments of a step to the loss.
    make : callable
        From parameters to an optimiser.
    """

    def __init__(self, model: nn.Module, loss_of: Callable, make: Callable[[list], optim.Optimizer]):
        self.model = model
        self.loss_of = loss_of
        self.optimizer = make(model.parameters())

    def step(self, *batch: Any) -> Tensor:
        loss = self.loss_of(self.model, *batch)
        self.optimizer.reset_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def numbers(self) -> list[np.ndarray]:
        """Those of the parameters."""
        return [p.numpy() for p in self.model.parameters()]

    def state(self) -> dict[str, np.ndarray]:
        """All numbers that the next step depends on."""
        found = {name: x.numpy() for name, x in self.model.state_dict().items()}
        for i, p in enumerate(self.optimizer.params):
            found |= {f"{name} {i}": x.numpy() for name, x in self.optimizer.state.get(p, {}).items()}
            found[f"updates {i}"] = np.array(self.optimizer._updates.get(p, 0))
        return found


class SmallTraining(Training):
    """A small classifier and a batch for it, `x` and `y`: the same numbers each time it is made.

    Parameters
    ----------
    make : callable
        From parameters and options to an optimiser: a class of `needle.optim` will do.
    sizes : tuple of int
        Of the input, the layers between and the output.
    between : type
        The module between two linear layers.
    dropout : float
    rows : int
        Of the batch.
    device : Device, optional
    **options
        Of the optimiser. Without `lr`, it is 0.5.
    """

    def __init__(
        self,
        make: Callable[..., optim.Optimizer] = optim.SGD,
        sizes: tuple[int, ...] = (3, 4, 2),
        between: Callable[[], nn.Module] = nn.Tanh,
        dropout: float = 0.0,
        rows: int = 5,
        device: Any = None,
        **options: Any,
    ):
        rng = np.random.default_rng(0)
        parts: list[nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            parts += [nn.Linear(inputs, outputs, rng=rng, device=device), between()]
        if dropout:
            parts.insert(2, nn.Dropout(dropout, rng=rng))
        super().__init__(
            nn.Sequential(*parts[:-1]),
            lambda model, x, y: nn.SoftmaxLoss()(model(x), y),
            lambda params: make(params, **{"lr": 0.5, **options}),
        )
        self.x = Tensor(rng.normal(size=(rows, sizes[0])), device=device, requires_grad=False)
        self.y = Tensor(np.arange(rows) % sizes[-1], device=device, requires_grad=False)


def compiled_step(make: Callable[..., optim.Optimizer] = optim.SGD) -> Any:
    """A step as a reader writes it, compiled: to draw it, or to ask it what it says of itself."""
    training = SmallTraining(make, sizes=(2, 8, 2), between=nn.ReLU, rows=10, lr=0.1)
    model, optimizer, loss_of = training.model, training.optimizer, nn.SoftmaxLoss()

    @ndl.jit
    def step(x, y):
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step.program_for(training.x, training.y)
    return step
