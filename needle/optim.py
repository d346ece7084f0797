"""Optimisers: how parameters follow their gradients."""

from __future__ import annotations

from collections.abc import Iterable

from .autograd import Tensor, no_grad


class Optimizer:
    """What all optimisers share.

    Parameters
    ----------
    params : iterable of Parameter
        What is to be changed: ``model.parameters()``.
    """

    def __init__(self, params: Iterable[Tensor]):
        if isinstance(params, Tensor):
            raise TypeError("params: needs a list of Tensors, got a single one; put it into a list")
        self.params = list(params)
        for p in self.params:
            if not isinstance(p, Tensor):
                raise TypeError(f"params: needs Tensors, got a {type(p).__name__}; use model.parameters()")

    def step(self) -> None:
        """Change every parameter by its `grad`; one without a `grad` stays as it is."""
        raise NotImplementedError

    def reset_grad(self) -> None:
        """Forget all gradients."""
        for p in self.params:
            p.grad = None


class SGD(Optimizer):
    """Stochastic gradient descent with (dampened) momentum and weight decay.

    u <- momentum * u + (1 - momentum) * (grad + weight_decay * p), then p <- p - lr * u.

    Parameters
    ----------
    params : iterable of Parameter
    lr : float
        The learning rate; may be assigned to between steps.
    momentum : float
        0 (none) to below 1.
    weight_decay : float
        The weight of an L2 penalty.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float = 0.01, momentum: float = 0.0, weight_decay: float = 0.0
    ):
        super().__init__(params)
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.u: dict[Tensor, Tensor] = {}

    def step(self) -> None:
        with no_grad():
            for p in self.params:
                if p.grad is None:
                    continue
                update = p.grad
                if self.weight_decay:
                    update = update + p * self.weight_decay
                if self.momentum:
                    update = update * (1 - self.momentum)
                    if p in self.u:
                        update = update + self.u[p] * self.momentum
                    self.u[p] = update = update.detach()
                p.data = p + update * -self.lr
