"""What all optimisers share: groups of parameters with their options, the step, clipping, and states."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from numbers import Real
from operator import add
from typing import Any, ClassVar

import numpy as np

from .. import ops
from ..autograd import Tensor, no_grad
from ..backend_selection import BACKEND
from ..modes import tracing

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

    A subclass passes its options on, ``super().__init__(params, lr=lr, …)``, and writes its update of one
    parameter as a method `rule`. The options become attributes; you may assign to them between steps.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
        What to train: ``model.parameters()``. Groups of parameters may have options of their own:
        ``[{"params": weights, "weight_decay": 0.1}, {"params": biases}]``. For an option that a group does
        not name, the optimiser's holds.
    **options
        Numbers by their names.

    Attributes
    ----------
    params : list of Parameter
        All of them.
    groups : list of dict
        One per group: "params", and the group's own options.
    state : dict
        For each parameter that was updated, a dictionary of the Tensors that the rule remembers.
    remembers : dict of str to bool, or None
        A subclass lists here the names that its rule remembers, with True where they are there after every
        update. `load_state_dict` checks them. None, the default, accepts any name.

    Raises
    ------
    TypeError
        If `params` holds anything but Tensors of floats, or dictionaries of them.
    ValueError
        If there are no parameters, one comes twice, or an option is unknown or out of its bounds.
    """

    remembers: ClassVar[dict[str, bool] | None] = None

    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]], **options: Any):
        if isinstance(params, (Tensor, dict)):
            raise TypeError(
                f"params: needs a list of Tensors, got a single {type(params).__name__}; put it into a list"
            )
        if not isinstance(params, Iterable):
            raise TypeError(f"params: needs Tensors, got a {type(params).__name__}; use model.parameters()")
        given: list[Any] = list(params)
        if not given or not isinstance(given[0], dict):
            given = [{"params": given}]
        self._option_names = tuple(options)
        self._options = options
        self.groups = [self._checked_group(group) for group in given]
        self.params: list[Tensor] = [p for group in self.groups for p in group["params"]]
        if not self.params:
            raise ValueError("params: there is nothing to optimise; use model.parameters()")
        if len(set(self.params)) < len(self.params):
            raise ValueError("params: a parameter comes twice; it may be in one group only, once")
        self._check_options(options)
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self._updates: dict[Tensor, int] = {}  # how often each parameter was updated

    def __getattr__(self, name: str) -> Any:
        options = self.__dict__.get("_options", {})
        if name not in options:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        trace = tracing()
        return trace.option(self, options, name) if trace else options[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__.get("_options", ()):
            object.__setattr__(self, name, value)
            return
        if trace := tracing():
            trace.refuse_option(self, name)
        self._options[name] = value

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
        trace = tracing()
        holders = {name: group if name in group else self._options for name in self._option_names}
        if trace:
            return {name: trace.option(self, holder, name) for name, holder in holders.items()}
        return {name: holder[name] for name, holder in holders.items()}

    def step(self) -> None:
        """Update every parameter that has a `grad` and requires one, and set all their gradients to None.

        So each gradient is used once: a parameter on which the next loss does not depend stays as it is, and
        of two optimisers that share a parameter, only the first moves it. If you want to look at a gradient,
        do it between `backward` and `step`.

        Results that were computed with a parameter earlier keep its earlier value. If gradients still wait to
        be computed (see `needle.lazy`), the step waits too.

        Examples
        --------
        >>> for X, y in batches:
        ...     loss_fn(model(X), y).backward()
        ...     optimizer.step()
        """
        with no_grad():
            for group in self.groups:
                options = self.options_of(group)
                for p in group["params"]:
                    if _is_due(p):
                        self._update(p, options)
        self.reset_grad()

    def _update(self, p: Tensor, options: dict[str, Any]) -> None:
        if p.grad.shape != p.shape:
            raise ValueError(f"step: a parameter of shape {p.shape} has a grad of shape {p.grad.shape}")
        device = p.device
        state = self.state.setdefault(p, {})
        for name, x in state.items():
            if x.device is not device:  # the parameter was moved
                state[name] = _beside(p, x)
        trace = tracing()
        updates = trace.updates_of(self) if trace else self._updates
        t = updates.get(p, 0) + 1
        if trace or BACKEND == "np" or p.is_pending or p.grad.is_pending or p.grad.dtype is not p.dtype:
            memory: dict[str, Any] = dict(state)
            p.data = self.rule(p.detach(), p.grad.detach().astype(p.dtype), memory, t, **options)
        else:  # on the arrays themselves the same rule takes half the time for small parameters
            memory = {name: x.realize_cached_data() for name, x in state.items()}
            value, grad = p.realize_cached_data(), p.grad.realize_cached_data()
            p.cached_data = self.rule(value, grad, memory, t, **options)
        for name, x in memory.items():
            if name not in state:
                state[name] = Tensor.make_const(x)
            elif x is not state[name]:
                state[name].cached_data = x._data if isinstance(x, Tensor) else x
        updates[p] = t

    def rule(self, p: Any, grad: Any, state: dict[str, Any], t: int, *_: Any, **options: Any) -> Any:
        """Return the new value of one parameter. A subclass writes this method.

        It gets arrays or Tensors, so it uses only what both have: operators such as ``+`` and ``**``.

        Parameters
        ----------
        p, grad : array or Tensor
            The parameter and its gradient, of the same dtype.
        state : dict of str to array or Tensor
            What the rule remembers of this parameter from one step to the next; empty at first.
        t : int
            The number of this update of the parameter, from 1 on.
        **options
            The options that hold for this parameter.

        Returns
        -------
        array or Tensor
            Of the same shape and dtype as `p`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no rule; write a method rule(self, p, grad, state, t, **options) "
            "that returns the new value of the parameter p"
        )

    def reset_grad(self) -> None:
        """Set the gradients of all parameters to None, so that no step uses them.

        `step` does it too, and `backward` replaces gradients. So a loop that takes a step after each
        `backward` need not call this method. You need it for gradients that you do not want to step by.

        Examples
        --------
        >>> loss_fn(model(X), y).backward()  # only to look at the gradients
        >>> print(model.bias.grad)
        >>> optimizer.reset_grad()
        """
        for p in self.params:
            p.grad = None

    def clip_grad_norm(self, max_norm: float = 0.25) -> float | Tensor:
        """Scale all gradients by one factor, so that the norm of all of them together is at most `max_norm`.

        Parameters that require no gradient have no part in it. If a gradient holds an infinity or NaN, all
        stay as they are; you see it from the norm returned. If gradients still wait to be computed (see
        `needle.lazy`), the scaling waits too.

        Parameters
        ----------
        max_norm : float
            The largest norm that is left as it is.

        Returns
        -------
        float, or Tensor of shape ()
            The norm before: the square root of the sum of the squares of all elements of all gradients. A
            Tensor if gradients still wait to be computed, as they do in a compiled function.

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
            with_grad = [p for p in self.params if _is_due(p)]
            if with_grad and (tracing() or any(p.grad.is_pending for p in with_grad)):
                return _clip_later(with_grad, max_norm)
            norm = _norm([p.grad for p in with_grad])
            factor = max_norm / (norm + 1e-6)
            if factor < 1 and math.isfinite(norm):
                for p in with_grad:
                    p.grad = p.grad * factor
        return norm

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next steps depend on, besides the parameters and their gradients.

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
        """Go on from where an optimiser of the same kind stood, whose parameters came in the same order.

        Parameters
        ----------
        state : dict
            What its `state_dict` returned.

        Raises
        ------
        ValueError
            If the names or shapes in `state` do not fit. The message says what came and what was needed, and
            the optimiser stays as it was.
        """
        try:
            theirs, shapes = _outline(state)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"load_state_dict: needs what an optimiser's state_dict returned, got {state!r:.100}"
            ) from None
        for part, needed in _outline(self.state_dict())[0].items():
            if theirs[part] != needed:
                raise ValueError(f"load_state_dict: {part}: got {theirs[part]}, needed {needed}")
        if not all(type(updates) is int and updates >= 0 for updates in state["updates"]):
            raise ValueError(
                f"load_state_dict: updates must be whole numbers from 0 on, got {state['updates']}"
            )
        for i, (p, updates, got) in enumerate(zip(self.params, state["updates"], shapes, strict=True)):
            names = got if self.remembers is None else self.remembers
            needed = {name: p.shape for name in names if updates and (name in got or names[name])}
            if got != needed:
                raise ValueError(
                    f"load_state_dict: state of parameter {i}, shape {p.shape}, after {updates} updates: "
                    f"got {got}, needed {needed}"
                )
        groups = [
            {**new, "params": old["params"]} for new, old in zip(state["groups"], self.groups, strict=True)
        ]
        for options in (state["options"], *groups):
            self._check_options({name: value for name, value in options.items() if name != "params"})

        remembered = {
            p: {name: _beside(p, value) for name, value in memory.items()}
            for p, memory in zip(self.params, state["state"], strict=True)
        }
        for name, value in state["options"].items():
            setattr(self, name, value)
        for group, new in zip(self.groups, groups, strict=True):  # the same dictionaries: programs watch them
            group.clear()
            group.update(new)
        self._updates = dict(zip(self.params, state["updates"], strict=True))
        self.state = remembered


def _is_due(p: Tensor) -> bool:
    """Whether a step updates this parameter. A frozen one may still have an old gradient."""
    return p.grad is not None and p.requires_grad


def _outline(state: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, tuple[int, ...]]]]:
    """The names in an optimiser's state, and the shapes of what it remembers of each parameter."""
    names = {
        "optimizer": state["optimizer"],
        "options": sorted(state["options"]),
        "groups of parameters": [list(group["params"]) for group in state["groups"]],
        "parameters that were updated": len(state["updates"]),
        "parameters that have a state": len(state["state"]),
    }
    return names, [{name: np.shape(x) for name, x in memory.items()} for memory in state["state"]]


def _beside(p: Tensor, value: Tensor | np.ndarray) -> Tensor:
    """`value` as a constant on the device and in the dtype of `p`."""
    with no_grad():
        tensor = value if isinstance(value, Tensor) else Tensor(value, device=p.device, dtype=p.dtype)
        return tensor.to(p.device).astype(p.dtype).detach()


def _norm(gradients: list[Tensor]) -> float:
    """The square root of the sum of the squares of all elements."""
    with np.errstate(over="ignore", invalid="ignore"):
        norm = math.sqrt(sum((g * g).sum().numpy().item() for g in gradients))
    if math.isfinite(norm):
        return norm
    # The squares of large numbers overflow. Divided by the largest number first, they do not.
    arrays = [g.numpy().astype("float64") for g in gradients]
    largest = max(np.abs(array).max(initial=0.0).item() for array in arrays)
    if not math.isfinite(largest):
        return norm
    return largest * math.sqrt(sum(np.square(array / largest).sum().item() for array in arrays))


def _clip_later(params: list[Tensor], max_norm: float) -> Tensor:
    """`Optimizer.clip_grad_norm` in operators: nothing is computed before it is asked for."""
    device = params[0].device
    gradients = [p.grad.to(device).astype("float64") for p in params]
    unit: Any = 1.0
    if any(
        p.grad.dtype == "float64" and p.grad.size for p in params
    ):  # its squares can overflow, those of float32 cannot
        largest = reduce(ops.maximum, [ops.abs(g).max() for g in gradients if g.size])
        fits = ops.compare(largest, "gt", 0) * ops.compare(largest, "lt", math.inf)
        unit = ops.where(fits, largest, 1.0)
    shares = [g / unit for g in gradients]
    norm = ops.sqrt(reduce(add, [(share * share).sum() for share in shares])) * unit
    factor = max_norm / (norm + 1e-6)
    clips = ops.compare(factor, "lt", 1) * ops.compare(norm, "lt", math.inf)
    factor = ops.where(clips, factor, 1.0)
    for p in params:
        p.grad = p.grad * factor.to(p.device).astype(p.grad.dtype)
    return norm
