"""Optimisers: how parameters follow their gradients; and schedules of the learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from .autograd import Tensor, no_grad
from .backend_selection import BACKEND

__all__ = ["SGD", "Adam", "AdamW", "CosineLR", "Optimizer", "RMSProp", "Schedule", "StepLR", "WarmUp"]

#: The options that have bounds: from the first number to below the second.
_BOUNDS = {
    "lr": (0, math.inf),
    "momentum": (0, 1),
    "dampening": (0, 1),
    "beta1": (0, 1),
    "beta2": (0, 1),
    "alpha": (0, 1),
    "eps": (0, math.inf),
    "weight_decay": (0, math.inf),
}


class Optimizer:
    """What all optimisers share.

    A subclass gives its options to ``super().__init__(params, lr=lr, …)``, where they become attributes that
    may be assigned to between steps, and says in `rule` what one parameter's update is.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
        What is to be changed: ``model.parameters()``. Groups of parameters with options of their own are
        dictionaries: ``[{"params": weights, "weight_decay": 0.1}, {"params": biases}]``; an option that a
        group does not name is the optimiser's.
    **options
        Numbers by their names.

    Attributes
    ----------
    params : list of Parameter
        All of them.
    groups : list of dict
        One per group: "params", and the group's own options.
    state : dict
        For each parameter that was updated a dictionary of the Tensors that the rule remembers.
    keeps : dict of str to bool, or None
        Of a subclass: the names that its rule uses in the state, and whether each is there after any update.
        With it `load_state_dict` checks the names in a state; None, the default, lets any pass.

    Raises
    ------
    TypeError
        If `params` holds anything but Tensors of floats, or dictionaries of them.
    ValueError
        If there are no parameters, one comes twice, or an option is unknown or out of its bounds.
    """

    keeps: ClassVar[dict[str, bool] | None] = None

    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]], **options: Any):
        if isinstance(params, (Tensor, dict)):
            raise TypeError(
                f"params: needs a list of Tensors, got a single {type(params).__name__}; put it into a list"
            )
        given: list[Any] = list(params)
        if not given or not isinstance(given[0], dict):
            given = [{"params": given}]
        self._option_names = tuple(options)
        self.groups = [self._checked_group(group) for group in given]
        self.params: list[Tensor] = [p for group in self.groups for p in group["params"]]
        if not self.params:
            raise ValueError("params: there is nothing to optimise; use model.parameters()")
        if len(set(self.params)) < len(self.params):
            raise ValueError("params: a parameter comes twice; it may be in one group only, once")
        self._check_options(options)
        for name, value in options.items():
            setattr(self, name, value)
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self._updates: dict[Tensor, int] = {}  # how many there were of each parameter

    def _checked_group(self, group: Any) -> dict[str, Any]:
        if not isinstance(group, dict) or "params" not in group:
            raise TypeError('params: every group needs to be a dict such as {"params": [...], "lr": 0.1}')
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"params: needs Tensors, got a {type(p).__name__}; use model.parameters()")
            if p.dtype.kind != "f":
                raise TypeError(
                    f"params: needs Tensors of floats, got one of {p.dtype}; use .astype('float32')"
                )
        self._check_options({name: value for name, value in group.items() if name != "params"})
        return {**group, "params": params}

    def _check_options(self, options: dict[str, Any]) -> None:
        for name, value in options.items():
            if name not in self._option_names:
                raise ValueError(
                    f"{type(self).__name__}: there is no option {name!r}; "
                    f"it has {', '.join(self._option_names) or 'none'}"
                )
            if name not in _BOUNDS or (name == "dampening" and value is None):
                continue
            low, high = _BOUNDS[name]
            if not isinstance(value, Real) or not low <= float(value) < high:
                bounds = f"{low} or more" if high == math.inf else f"from {low} to below {high}"
                raise ValueError(f"{type(self).__name__}: {name} must be {bounds}, got {value!r}")

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._option_names)
        return f"{type(self).__name__}({options}), parameters: {len(self.params)}"

    def options_of(self, group: dict[str, Any]) -> dict[str, Any]:
        """The options that hold for a group: its own, and the optimiser's for the rest."""
        return {name: group.get(name, getattr(self, name)) for name in self._option_names}

    def step(self) -> None:
        """Change every parameter by its `grad`; one without a `grad` stays as it is.

        What was computed with a parameter before keeps its value from before. Where gradients wait to be
        computed (see `needle.lazy`), so does the step.
        """
        with no_grad():
            for group in self.groups:
                options = self.options_of(group)
                for p in group["params"]:
                    if p.grad is not None:
                        self._update(p, options)

    def _update(self, p: Tensor, options: dict[str, Any]) -> None:
        if p.grad.shape != p.shape:
            raise ValueError(f"step: a parameter of shape {p.shape} has a grad of shape {p.grad.shape}")
        device = p.device
        state = self.state.setdefault(p, {})
        for name, x in state.items():
            if x.device is not device:  # the parameter was moved
                state[name] = _beside(p, x)
        t = self._updates.get(p, 0) + 1
        value, grad = p.cached_data, p.grad.cached_data
        if BACKEND == "np" or value is None or grad is None or grad.dtype is not value.dtype:
            p.data = self.rule(p.detach(), p.grad.detach().astype(p.dtype), state, t, **options)
        else:  # The same rule on the arrays themselves takes half the time for small parameters.
            arrays = {name: x.realize_cached_data() for name, x in state.items()}
            p.cached_data = self.rule(value, grad, arrays, t, **options)
            for name, array in arrays.items():
                if name in state:
                    state[name].cached_data = array
                else:
                    state[name] = Tensor.make_const(array)
        self._updates[p] = t

    def rule(self, p: Any, grad: Any, state: dict[str, Any], t: int, *_: Any, **options: Any) -> Any:
        """The new value of a parameter, of its shape and dtype.

        It is given arrays or Tensors and uses nothing but operators, which both have.

        Parameters
        ----------
        p, grad : array or Tensor
            The parameter and its gradient, of the same dtype.
        state : dict of str to array or Tensor
            What is remembered for this parameter from one step to the next; empty at first.
        t : int
            Which update of this parameter it is, from 1 on.
        **options
            Those that hold for this parameter.
        """
        raise NotImplementedError(f"{type(self).__name__} has no rule; an optimiser says there what it does")

    def reset_grad(self) -> None:
        """Forget all gradients."""
        for p in self.params:
            p.grad = None

    def clip_grad_norm(self, max_norm: float = 0.25) -> float:
        """Shorten all gradients by the same factor, so that together they are not longer than `max_norm`.

        Gradients that hold infinities or NaN stay as they are; the length returned tells.

        Parameters
        ----------
        max_norm : float
            The largest length that is let through.

        Returns
        -------
        float
            The length before: the square root of the sum of the squares of all gradients' elements.

        Raises
        ------
        ValueError
            If `max_norm` is not positive.

        References
        ----------
        Pascanu, Mikolov and Bengio (2013), "On the difficulty of training recurrent neural networks".
        """
        if not max_norm > 0:
            raise ValueError(f"clip_grad_norm: max_norm must be above 0, got {max_norm!r}")
        with no_grad():
            with_grad = [p for p in self.params if p.grad is not None]
            norm = _length([p.grad for p in with_grad])
            factor = max_norm / (norm + 1e-6)
            if factor < 1 and math.isfinite(norm):
                for p in with_grad:
                    p.grad = p.grad * factor
        return norm

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on besides parameters and gradients.

        Returns
        -------
        dict
            Of dictionaries, lists, numbers, strings, None and Tensors, as `needle.save` takes it.
        """
        number = {p: i for i, p in enumerate(self.params)}
        return {
            "optimizer": type(self).__name__,
            "options": {name: getattr(self, name) for name in self._option_names},
            "groups": [{**group, "params": [number[p] for p in group["params"]]} for group in self.groups],
            "updates": [self._updates.get(p, 0) for p in self.params],
            "state": [
                {name: value.detach() for name, value in self.state.get(p, {}).items()} for p in self.params
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the optimiser stood that `state` was taken of; parameters come in the same order.

        Raises
        ------
        ValueError
            If `state` is another optimiser's or does not fit the parameters. Then nothing was changed.
        """
        parts = ("optimizer", "options", "groups", "updates", "state")
        if not isinstance(state, dict) or not set(parts) <= set(state):
            missing = sorted(set(parts) - set(state)) if isinstance(state, dict) else parts
            raise ValueError(f"load_state_dict: {', '.join(missing)} missing; is it an optimiser's?")
        if state["optimizer"] != type(self).__name__:
            raise ValueError(
                f"load_state_dict: the state of {state['optimizer']} does not fit {type(self).__name__}"
            )
        own = self._checked_groups(state["groups"])
        if not isinstance(state["options"], dict) or set(state["options"]) != set(self._option_names):
            raise ValueError(
                f"load_state_dict: got the options {_names(state['options'])}, "
                f"needed {_names(self._option_names)}"
            )
        for options in (state["options"], *own):
            self._check_options(options)
        for part in ("state", "updates"):
            if not isinstance(state[part], (list, tuple)) or len(state[part]) != len(self.params):
                got = len(state[part]) if isinstance(state[part], (list, tuple)) else "not a list of"
                raise ValueError(f"load_state_dict: got {got} parameters' {part}, needed {len(self.params)}")
        remembered = [
            self._checked_memory(i, *theirs)
            for i, theirs in enumerate(zip(state["updates"], state["state"], strict=True))
        ]

        for name, value in state["options"].items():
            setattr(self, name, value)
        self.groups = [
            {**options, "params": group["params"]} for options, group in zip(own, self.groups, strict=True)
        ]
        self._updates = {p: t for p, t in zip(self.params, state["updates"], strict=True) if t}
        self.state = {p: memory for p, memory in zip(self.params, remembered, strict=True) if memory}

    def _checked_groups(self, theirs: Any) -> list[dict[str, Any]]:
        """The groups' own options in a state, whose groups must be of the same parameters."""
        ours = [len(group["params"]) for group in self.groups]
        if not isinstance(theirs, (list, tuple)) or not all(
            isinstance(group, dict) and isinstance(group.get("params"), (list, tuple)) for group in theirs
        ):
            raise ValueError(
                f"load_state_dict: needs groups of {ours} parameters, each a dict with their numbers as "
                f'"params", got {theirs!r:.100}'
            )
        numbers = [n for group in theirs for n in group["params"]]
        if [len(group["params"]) for group in theirs] != ours or numbers != list(range(len(numbers))):
            raise ValueError(
                f"load_state_dict: groups of {[len(group['params']) for group in theirs]} parameters "
                f"do not fit {ours}"
            )
        return [{name: value for name, value in group.items() if name != "params"} for group in theirs]

    def _checked_memory(self, i: int, updates: Any, theirs: Any) -> dict[str, Tensor]:
        """What a state remembers of parameter number `i`, for this optimiser's own `state`."""
        what = f"of parameter {i}"
        if type(updates) is not int or updates < 0:
            raise ValueError(f"load_state_dict: updates {what} must be 0 or more, got {updates!r}")
        if not isinstance(theirs, dict):
            raise ValueError(f"load_state_dict: the state {what} must be a dict, got {theirs!r:.100}")
        if self.keeps is not None:
            possible = list(self.keeps) if updates else []
            needed = [name for name in possible if self.keeps[name]]
            if not set(needed) <= set(theirs) <= set(possible):
                raise ValueError(
                    f"load_state_dict: got {_names(theirs)} {what} after {updates} updates, "
                    f"needed {_names(needed or possible)}"
                )
        p = self.params[i]
        for name, value in theirs.items():
            if not isinstance(value, (Tensor, np.ndarray)) or value.dtype.kind != "f":
                raise ValueError(
                    f"load_state_dict: {name} {what} must be a Tensor of floats, got {value!r:.100}"
                )
            if value.shape != p.shape:
                raise ValueError(f"load_state_dict: {name} {what} has shape {value.shape}, needed {p.shape}")
        return {name: _beside(p, value) for name, value in theirs.items()}


def _names(names: Any) -> str:
    return ", ".join(map(str, names)) if isinstance(names, Iterable) and names else "none"


def _beside(p: Tensor, value: Tensor | np.ndarray) -> Tensor:
    """`value` as a constant on the device and in the dtype of `p`."""
    with no_grad():
        tensor = value if isinstance(value, Tensor) else Tensor(value, device=p.device, dtype=p.dtype)
        return tensor.to(p.device).astype(p.dtype).detach()


def _length(gradients: list[Tensor]) -> float:
    """The square root of the sum of the squares of all elements."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = math.sqrt(sum((g * g).sum().numpy().item() for g in gradients))
    if math.isfinite(length):
        return length
    # Squares overflow where the elements themselves need not: in units of the largest they do not.
    arrays = [g.numpy().astype("float64") for g in gradients]
    largest = max(np.abs(array).max(initial=0.0).item() for array in arrays)
    if not math.isfinite(largest):
        return length
    return largest * math.sqrt(sum(np.square(array / largest).sum().item() for array in arrays))


class SGD(Optimizer):
    """Stochastic gradient descent with momentum and weight decay.

    With g = grad + weight_decay * p: u <- momentum * u + (1 - dampening) * g, then p <- p - lr * u.
    The velocity u begins at 0.

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
        Default: as large as `momentum`, for which u is a mean of the gradients, and a step as long as without
        momentum. 0 is what others call momentum, in steps 1 / (1 - momentum) times as long.
    nesterov : bool
        Look ahead: p <- p - lr * (momentum * u + (1 - dampening) * g).

    References
    ----------
    Sutskever et al. (2013), "On the importance of initialization and momentum in deep learning".
    """

    keeps: ClassVar = {"u": False}
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
            grad = grad + p * weight_decay
        if momentum:
            factor = 1 - (momentum if dampening is None else dampening)
            damped = grad * factor if factor != 1 else grad
            state["u"] = u = state.get("u", 0) * momentum + damped
            grad = u * momentum + damped if nesterov else u
        return p + grad * -lr


class Adam(Optimizer):
    """Steps of about the same length for every element, whatever the size of its gradients.

    With g = grad + weight_decay * p, and means in which earlier gradients count less and less,
    m of g and v of g²: p <- p - lr * m / (sqrt(v) + eps).

    Parameters
    ----------
    params : iterable of Parameter, or of dict
        See `Optimizer`.
    lr : float
        The learning rate.
    beta1, beta2 : float
        By what factor the weight of a gradient shrinks from step to step in m and in v.
    eps : float
        Keeps steps short where gradients are about 0.
    weight_decay : float
        The weight of an L2 penalty; see `AdamW` for another meaning.

    References
    ----------
    Kingma and Ba (2015), "Adam: a method for stochastic optimization", algorithm 1.
    """

    keeps: ClassVar = {"m": True, "v": True}
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
        self._betas = self._betas_now()  # those of the last step

    def step(self) -> None:
        self._follow_betas()
        super().step()

    def state_dict(self) -> dict[str, Any]:
        self._follow_betas()
        return super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._betas = self._betas_now()

    def _betas_now(self) -> list[tuple[float, float]]:
        return [(group.get("beta1", self.beta1), group.get("beta2", self.beta2)) for group in self.groups]

    def _follow_betas(self) -> None:
        """Let the means stay as they are where a beta was changed, on which the sums in the state depend."""
        now = self._betas_now()
        if now == self._betas:
            return
        for group, *betas in zip(self.groups, self._betas, now, strict=True):
            for name, old, new in zip(("m", "v"), *betas, strict=True):
                for p in group["params"]:
                    if old != new and name in self.state.get(p, {}):
                        with no_grad():
                            value = self.state[p][name] * ((1 - old) / (1 - new))
                        self.state[p][name] = value.detach()
        self._betas = now

    def rule(self, p, grad, state, t, lr, beta1, beta2, eps, weight_decay):
        if weight_decay:
            grad = grad + p * weight_decay
        return p + self._direction(grad, state, t, beta1, beta2, eps, -lr)

    def _direction(self, grad, state, t, beta1, beta2, eps, scale):
        """``scale * m / (sqrt(v) + eps)``.

        The state holds sums instead of means. A mean is the sum by the sum of the weights, which are
        1, beta, beta², …; that division is the paper's bias correction.
        """
        state["m"] = m = state.get("m", 0) * beta1 + grad
        state["v"] = v = state.get("v", 0) * beta2 + grad * grad
        m_weights = (1 - beta1**t) / (1 - beta1)
        root_of_v_weights = math.sqrt((1 - beta2**t) / (1 - beta2))
        return m / (v**0.5 + eps * root_of_v_weights) * (scale * root_of_v_weights / m_weights)


class AdamW(Adam):
    """Adam that shrinks parameters themselves: p <- (1 - lr * weight_decay) * p before each of its steps.

    Parameters
    ----------
    params, lr, beta1, beta2, eps
        Those of `Adam`.
    weight_decay : float
        By what share of itself a parameter shrinks in a step, in units of `lr`.

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
            p = p * (1 - lr * weight_decay)
        return p + self._direction(grad, state, t, beta1, beta2, eps, -lr)


class RMSProp(Optimizer):
    """Steps divided by the root of the mean square of recent gradients.

    With g = grad + weight_decay * p: v <- alpha * v + (1 - alpha) * g², then
    u <- momentum * u + g / (sqrt(v) + eps) and p <- p - lr * u. Both begin at 0.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
        See `Optimizer`.
    lr : float
        The learning rate.
    alpha : float
        How much of the mean is kept from step to step.
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

    keeps: ClassVar = {"v": True, "u": False}
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
            grad = grad + p * weight_decay
        state["v"] = v = state.get("v", 0) * alpha + grad * grad * (1 - alpha)
        u = grad / (v**0.5 + eps)
        if momentum:
            state["u"] = u = state.get("u", 0) * momentum + u
        return p + u * -lr


class Schedule:
    """A learning rate that changes from step to step; a subclass says in `lr_at` how.

    Call `step` when the optimiser has made its step, or at the end of an epoch if the schedule counts those.
    The rate of a group that has one of its own changes alike.

    Parameters
    ----------
    optimizer : Optimizer
        Its `lr`, from now on, is the schedule's. What it is now is called the base.

    Attributes
    ----------
    t : int
        How many times `step` was called.
    """

    def __init__(self, optimizer: Optimizer):
        if not hasattr(optimizer, "lr"):
            raise TypeError(f"{type(self).__name__}: needs an optimiser that has an lr, got {optimizer!r}")
        self.optimizer: Any = optimizer
        self._own = [i for i, group in enumerate(optimizer.groups) if "lr" in group]
        self._bases = [optimizer.lr, *(optimizer.groups[i]["lr"] for i in self._own)]
        self.t = 0
        self._set()

    def lr_at(self, t: int, base: float) -> float:
        """The learning rate after `t` calls of `step`."""
        raise NotImplementedError(f"{type(self).__name__} has no lr_at")

    def step(self) -> None:
        """Go on to the next learning rate."""
        self.t += 1
        self._set()

    def _set(self) -> None:
        lr, *own = [self.lr_at(self.t, base) for base in self._bases]
        self.optimizer.lr = lr
        for i, lr in zip(self._own, own, strict=True):
            self.optimizer.groups[i]["lr"] = lr

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule is, for `load_state_dict`; what it was made with is not in it."""
        return {"t": self.t, "bases": list(self._bases)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the schedule was that `state` was taken of.

        Raises
        ------
        ValueError
            If `state` is not a schedule's, or of an optimiser with other groups. Then nothing was changed.
        """
        if not isinstance(state, dict) or not self._fits(state.get("t"), state.get("bases")):
            raise ValueError(
                f"load_state_dict: needs t and {len(self._bases)} base learning rates, got {state!r}"
            )
        self.t, self._bases = state["t"], list(state["bases"])
        self._set()

    def _fits(self, t: Any, bases: Any) -> bool:
        counts = type(t) is int and t >= 0 and isinstance(bases, Sequence) and len(bases) == len(self._bases)
        return counts and all(isinstance(base, Real) for base in bases)


class StepLR(Schedule):
    """The base, multiplied by `gamma` after every `step_size` steps.

    Parameters
    ----------
    optimizer : Optimizer
    step_size : int
        How many steps are made with each learning rate.
    gamma : float
        The factor from each to the next.
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
        The last learning rate.

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
        The first learning rate is base / steps, the one of step number `steps` the base.
    then : Schedule, optional
        One of the same optimiser, whose first learning rate follows; it is not stepped itself. Default: the
        base.
    """

    def __init__(self, optimizer: Optimizer, steps: int, then: Schedule | None = None):
        self.steps = _positive("WarmUp: steps", steps)
        if then is not None and then.optimizer is not optimizer:
            raise ValueError("WarmUp: the schedule that follows is another optimiser's")
        self.then = then
        super().__init__(optimizer)
        if then is not None:  # which may have set other rates than the bases already
            self._bases = list(then._bases)
            self._set()

    def lr_at(self, t: int, base: float) -> float:
        if t < self.steps:
            return base * (t + 1) / self.steps
        return base if self.then is None else self.then.lr_at(t - self.steps, base)


def _positive(what: str, count: int) -> int:
    if count < 1:
        raise ValueError(f"{what} must be 1 or more, got {count}")
    return count
