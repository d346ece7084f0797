"""The network of a training, its optimiser, and the step that the two take together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import needle as ndl
from needle import Tensor, cpu, init, nn, ops, optim

from .settings import ACTIVATIONS, NORMALISATIONS, OPTIMISERS, Layer, Settings

__all__ = ["Learner", "constant", "half_squares"]


class Learner:
    """A network that learns from batches.

    Parameters
    ----------
    settings : Settings
        They decide its layers and its optimiser.

    Attributes
    ----------
    model : needle.nn.Sequential
        Layers, each a `Sequential` of a `Linear`, perhaps a normalisation, an activation and perhaps a
        `Dropout`. It maps inputs of shape (n, inputs) to outputs of shape (n, 1).
    optimizer : needle.optim.Optimizer
    step : callable
        Learns from one batch of inputs (n, inputs), labels (n, 1) and the penalty's rate (), compiled in the
        background.
    """

    def __init__(self, settings: Settings) -> None:
        self.kind = _kind(settings)
        self._dropout_rng = np.random.default_rng(0)
        self.model = _network(settings, self._dropout_rng)
        self.optimizer: Any = OPTIMISERS[settings.optimiser](
            self.model.parameters(), lr=settings.learning_rate
        )
        self._fresh = self.optimizer.state_dict()
        self.linears: list[Any] = [layer.modules[0] for layer in self.model.modules]
        penalty = _PENALTIES[settings.regularisation]
        self.step = ndl.jit(_step(self.model, self.optimizer, penalty), background=True)
        self.may_compile = False  # its trainer says when
        self._has_modes = any(layer.dropout or layer.normalisation for layer in settings.hidden)

    def fits(self, settings: Settings) -> bool:
        """Whether this is a network of such layers with such an optimiser."""
        return self.kind == _kind(settings)

    def begin(self, settings: Settings, rng: np.random.Generator) -> None:
        """Forget everything, and draw the first weights."""
        self._dropout_rng.bit_generator.state = np.random.default_rng(
            [settings.weights_seed, 3]
        ).bit_generator.state
        fresh = _network(settings, self._dropout_rng)
        for layer, hidden in zip(fresh.modules, [*settings.hidden, None], strict=True):
            _initialise(layer.modules[0], settings, hidden, rng)
        self.model.load_state_dict(fresh.state_dict())
        self.optimizer.load_state_dict(self._fresh)
        self.optimizer.lr = settings.learning_rate

    def state(self) -> dict[str, Any]:
        """All that the next steps depend on; `restore` takes it back."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "dropout": self._dropout_rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state. ValueError if it is another network's."""
        rate = self.optimizer.lr
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.optimizer.lr = rate
        self._dropout_rng.bit_generator.state = state["dropout"]

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Use the network without learning: no dropout, no batch statistics."""
        if self._has_modes:
            self.model.eval()
        try:
            with np.errstate(all="ignore"):
                yield
        finally:
            if self._has_modes:
                self.model.train()

    def outputs(self, inputs: Tensor) -> list[np.ndarray]:
        """The output of every layer."""
        results = []
        with self.in_use(), ndl.no_grad():
            for layer in self.model.modules:
                inputs = layer(inputs)
                results.append(inputs.numpy())
        return results


def half_squares(outputs: Tensor, labels: Tensor) -> Tensor:
    """The mean of ½ (output - label)²; 0 without points."""
    return ((outputs - labels) ** 2).sum() * (0.5 / max(1, labels.shape[0]))


def constant(array: np.ndarray) -> Tensor:
    """Numbers that nothing is learned about."""
    return Tensor(array, device=cpu(), dtype="float32", requires_grad=False)


_PENALTIES: dict[str, Callable[[Tensor], Tensor] | None] = {
    "none": None,
    "l1": lambda weight: ops.abs(weight).sum(),
    "l2": lambda weight: (weight**2).sum() * 0.5,
}


def _step(
    model: nn.Sequential, optimizer: optim.Optimizer, penalty: Callable[[Tensor], Tensor] | None
) -> Callable[[Tensor, Tensor, Tensor], None]:
    """A function that learns from a batch.

    What changes from step to step comes as an argument, or lies in the network and its optimiser. All else
    is what it was when the function was traced. It must reach the parameters in the same order as the script
    in `as_python`: the order decides how a program is put together, and so the last digits.
    """

    def learn(inputs: Tensor, labels: Tensor, rate: Tensor) -> None:
        loss = half_squares(model(inputs), labels)
        if penalty:
            for layer in model.modules:
                loss = loss + penalty(layer.modules[0].weight) * rate
        loss.backward(create_graph=False)
        optimizer.step()

    return learn


def _kind(settings: Settings) -> tuple:
    layers = [
        (layer.neurons, settings.activation_of(layer), layer.dropout, layer.normalisation)
        for layer in settings.hidden
    ]
    return len(settings.inputs), *layers, settings.is_regression, settings.optimiser, settings.regularisation


def _network(settings: Settings, dropout_rng: np.random.Generator) -> nn.Sequential:
    fan_in = len(settings.inputs)
    layers = []
    for hidden in settings.hidden:
        parts: list[nn.Module] = [nn.Linear(fan_in, hidden.neurons, device=cpu(), rng=0)]
        if hidden.normalisation:
            parts.append(NORMALISATIONS[hidden.normalisation](hidden.neurons, device=cpu()))
        parts.append(ACTIVATIONS[settings.activation_of(hidden)]())
        if hidden.dropout:
            parts.append(nn.Dropout(hidden.dropout, rng=dropout_rng))
        layers.append(nn.Sequential(*parts))
        fan_in = hidden.neurons
    last = nn.Identity() if settings.is_regression else nn.Tanh()
    return nn.Sequential(*layers, nn.Sequential(nn.Linear(fan_in, 1, device=cpu(), rng=0), last))


def _initialise(linear: Any, settings: Settings, hidden: Layer | None, rng: np.random.Generator) -> None:
    """Draw a layer's first weights. With Glorot's, small tanh networks learn reliably."""
    options: dict[str, Any] = {"device": cpu(), "rng": rng}
    fan_in, fan_out = linear.weight.shape
    bias = 0.0
    if settings.initialisation == "zeros":
        weight = init.zeros(fan_in, fan_out, device=cpu())
    elif settings.initialisation == "uniform":
        weight = init.rand(fan_in, fan_out, low=-0.5, high=0.5, **options)
        bias = 0.1
    elif settings.initialisation == "kaiming":
        name = settings.activation_of(hidden) if hidden else "tanh"
        weight = init.kaiming_uniform(fan_in, fan_out, name if name == "relu" else "linear", **options)
    else:
        weight = init.xavier_uniform(fan_in, fan_out, **options)
    linear.weight.data = weight
    linear.bias.data = init.constant(1, fan_out, c=bias, device=cpu())
