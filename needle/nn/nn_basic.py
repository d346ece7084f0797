"""Modules: the parts that networks are put together from.

A module holds parameters and other modules as attributes, lists, tuples or dictionaries of its own. That
tree is walked in the order in which the attributes were set, so that parameters always come in the same
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import init, ops
from ..autograd import Tensor


class Parameter(Tensor):
    """A Tensor that is learned: a module finds it and an optimiser changes it."""


class Module:
    """A part of a network: `forward` says what it computes, attributes hold its parameters and parts.

    Attributes
    ----------
    training : bool
        True while the network learns, False when it is used; some modules behave differently (see
        `train`, `eval`).
    """

    training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters of this module and its parts, each once, with the path that leads to it:
        "modules.0.weight"."""
        seen = set()
        for name, value in _walk(self):
            if isinstance(value, Parameter) and value not in seen:
                seen.add(value)
                yield name, value

    def parameters(self) -> list[Parameter]:
        """All parameters of this module and its parts."""
        return [parameter for _, parameter in self.named_parameters()]

    def _children(self) -> list[Module]:
        """All modules inside this one, at any depth."""
        return [value for _, value in _walk(self) if isinstance(value, Module) and value is not self]

    def train(self) -> None:
        """Switch this module and all inside it to training."""
        self._set_training(True)

    def eval(self) -> None:
        """Switch this module and all inside it to use."""
        self._set_training(False)

    def _set_training(self, training: bool) -> None:
        for module in (self, *self._children()):
            module.training = training


def _walk(root: Module) -> Iterator[tuple[str, Any]]:
    """Every parameter and module below `root`, depth first, with its path; shared ones as often as they
    are found."""
    stack: list[tuple[str, Any, tuple]] = [("", root, ())]
    while stack:
        path, value, above = stack.pop()
        if isinstance(value, Module):
            if value in above:
                continue  # a part that points back at its owner
            yield path, value
            items = list(vars(value).items())
            above = (*above, value)
        elif isinstance(value, Parameter):
            yield path, value
            continue
        elif isinstance(value, dict):
            items = list(value.items())
        elif isinstance(value, (list, tuple)):
            items = [(str(i), item) for i, item in enumerate(value)]
        else:
            continue
        prefix = f"{path}." if path else ""
        stack.extend((f"{prefix}{key}", item, above) for key, item in reversed(items))


class Identity(Module):
    """The input, unchanged."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Linear(Module):
    """x @ weight + bias.

    Parameters
    ----------
    in_features, out_features : int
        Inputs have shape (..., batch, in_features), outputs (..., batch, out_features).
    bias : bool
        Whether a bias is added.
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator, optional
        Where the initial weights come from. Default: NumPy's global state.

    Attributes
    ----------
    weight : Parameter, shape (in_features, out_features)
        Begins Kaiming uniform.
    bias : Parameter, shape (1, out_features), or None
        Begins Kaiming uniform with out_features as fan-in.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device=None, dtype="float32", rng=None
    ):
        self.in_features = in_features
        self.out_features = out_features
        kwargs = {"device": device, "dtype": dtype, "rng": rng}
        self.weight = Parameter(init.kaiming_uniform(in_features, out_features, **kwargs))
        self.bias = (
            Parameter(init.kaiming_uniform(out_features, 1, shape=(1, out_features), **kwargs))
            if bias
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        out = x @ self.weight
        return out if self.bias is None else out + self.bias


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.relu(x)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.sigmoid(x)


class Sequential(Module):
    """One module after the other.

    Attributes
    ----------
    modules : tuple of Module
    """

    def __init__(self, *modules: Module):
        for i, module in enumerate(modules):
            if not isinstance(module, Module):
                raise TypeError(f"Sequential: argument {i} is a {type(module).__name__}, not a Module")
        self.modules = modules

    def forward(self, x: Tensor) -> Tensor:
        for module in self.modules:
            x = module(x)
        return x


class SoftmaxLoss(Module):
    """The mean cross entropy of softmax(logits): -log(softmax(logits))[label], averaged over the batch."""

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """
        Parameters
        ----------
        logits : Tensor, shape (batch, classes)
        y : Tensor or array of integers, shape (batch,)
            The labels, 0 to classes - 1.

        Returns
        -------
        Tensor, shape ()

        Raises
        ------
        ValueError
            If the shapes do not fit.
        IndexError
            If a label is not one of 0 to classes - 1.
        """
        if logits.ndim != 2 or np.shape(y) != logits.shape[:1]:
            raise ValueError(
                "SoftmaxLoss: needs logits of shape (batch, classes) and labels of shape (batch,), "
                f"got {logits.shape} and {np.shape(y)}"
            )
        batch, classes = logits.shape
        targets = init.one_hot(classes, y, device=logits.device, dtype=logits.dtype)
        return (ops.logsoftmax(logits) * targets).sum() / -batch
