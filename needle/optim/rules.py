"""Optimisers: each says in its `rule` how one parameter follows its gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from ..autograd import Tensor
from ..backend_selection import NDArray, adam
from .optimizer import Optimizer


class SGD(Optimizer):
    """Stochastic gradient descent with momentum and weight decay.

    g = grad + weight_decay * p
    u <- momentum * u + (1 - dampening) * g
    p <- p - lr * u

    The velocity u begins at 0. Without momentum, u is g.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
        See `Optimizer`.
    lr : float
        The learning rate.
    momentum : float
        0 (none) to below 1.
    weight_decay : float
        The weight of an L2 penalty.
    dampening : float, optional
        Default: as large as `momentum`. Then u is a running mean of the gradients, and steps are as long as
        without momentum. With 0, as in many libraries, steps become up to 1 / (1 - momentum) times as long.
    nesterov : bool
        Whether to look ahead: p <- p - lr * (momentum * u + (1 - dampening) * g).

    References
    ----------
    Sutskever et al. (2013), "On the importance of initialization and momentum in deep learning".
    """

    remembers: ClassVar = {"u": False}
    lr: float
    momentum: float
    weight_decay: float
    dampening: float | None
    nesterov: bool

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float | None = None,
        nesterov: bool = False,
    ):
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            dampening=dampening,
            nesterov=nesterov,
        )

    def rule(self, p, grad, state, t, lr, momentum, weight_decay, dampening, nesterov):
        if weight_decay:
            grad = grad + weight_decay * p
        if momentum:
            damped = (1 - (momentum if dampening is None else dampening)) * grad
            state["u"] = u = momentum * state.get("u", 0) + damped
            grad = momentum * u + damped if nesterov else u
        return p - lr * grad


class Adam(Optimizer):
    """Steps of about the same length for every element, whether its gradients are large or small.

    It keeps running means of the gradient g and of its square, in which earlier steps count less and less:

    m <- beta1 * m + (1 - beta1) * g
    v <- beta2 * v + (1 - beta2) * g²
    m_hat = m / (1 - beta1^t)
    v_hat = v / (1 - beta2^t)
    p <- p - lr * m_hat / (sqrt(v_hat) + eps)

    t counts the updates. Both means begin at 0, so at first they are too small: m_hat and v_hat correct that.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
        See `Optimizer`.
    lr : float
        The learning rate: about how far an element moves in a step.
    beta1, beta2 : float
        How much of m and v stays from step to step, 0 to below 1.
    eps : float
        Keeps steps short where gradients are about 0.
    weight_decay : float
        The weight of an L2 penalty: g = grad + weight_decay * p. `AdamW` decays the weights themselves.

    References
    ----------
    Kingma and Ba (2015), "Adam: a method for stochastic optimization", algorithm 1.
    """

    remembers: ClassVar = {"mean": True, "mean_square": True}
    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        super().__init__(params, lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay)

    def rule(self, p, grad, state, t, lr, beta1, beta2, eps, weight_decay):
        if state and isinstance(p, NDArray):
            numbers = (beta1, 1 - beta1, 1 - beta1**t, beta2, 1 - beta2, 1 - beta2**t, lr, eps, weight_decay)
            if by_kernel := adam(p, grad, state["mean"], state["mean_square"], *numbers):
                p, state["mean"], state["mean_square"] = by_kernel
                return p
        if weight_decay:
            grad = grad + weight_decay * p
        state["mean"] = m = beta1 * state.get("mean", 0) + (1 - beta1) * grad
        state["mean_square"] = v = beta2 * state.get("mean_square", 0) + (1 - beta2) * (grad * grad)
        m_hat = m / (1 - beta1**t)
        v_hat = v / (1 - beta2**t)
        return p - lr * m_hat / (v_hat**0.5 + eps)


class AdamW(Adam):
    """Adam with decay of the weights themselves: p <- (1 - lr * weight_decay) * p before each of its steps.

    Parameters
    ----------
    params, lr, beta1, beta2, eps
        As of `Adam`.
    weight_decay : float
        The share of itself by which a parameter shrinks in a step, in units of `lr`.

    References
    ----------
    Loshchilov and Hutter (2019), "Decoupled weight decay regularization", algorithm 2.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ):
        super().__init__(params, lr, beta1, beta2, eps, weight_decay)

    def rule(self, p, grad, state, t, lr, beta1, beta2, eps, weight_decay):
        if weight_decay:
            p = (1 - lr * weight_decay) * p
        return super().rule(p, grad, state, t, lr, beta1, beta2, eps, weight_decay=0)


class RMSProp(Optimizer):
    """Steps divided by the root of the mean square of recent gradients.

    g = grad + weight_decay * p
    v <- alpha * v + (1 - alpha) * g²
    u <- momentum * u + g / (sqrt(v) + eps)
    p <- p - lr * u

    Both v and u begin at 0.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
        See `Optimizer`.
    lr : float
        The learning rate.
    alpha : float
        How much of v stays from step to step, 0 to below 1.
    eps : float
        Keeps steps short where gradients are about 0.
    momentum : float
        0 (none) to below 1.
    weight_decay : float
        The weight of an L2 penalty.

    References
    ----------
    Tieleman and Hinton (2012), "Lecture 6.5: rmsprop", Neural Networks for Machine Learning.
    """

    remembers: ClassVar = {"v": True, "u": False}
    lr: float
    alpha: float
    eps: float
    momentum: float
    weight_decay: float

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ):
        super().__init__(params, lr=lr, alpha=alpha, eps=eps, momentum=momentum, weight_decay=weight_decay)

    def rule(self, p, grad, state, t, lr, alpha, eps, momentum, weight_decay):
        if weight_decay:
            grad = grad + weight_decay * p
        state["v"] = v = alpha * state.get("v", 0) + (1 - alpha) * (grad * grad)
        u = grad / (v**0.5 + eps)
        if momentum:
            state["u"] = u = momentum * state.get("u", 0) + u
        return p - lr * u
