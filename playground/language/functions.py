"""The functions of the Explorer's language: their parameters, and how each parameter is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import needle as ndl
from needle import Tensor, nn, ops

from .values import (
    LARGEST_TENSOR,
    MOST_AXES,
    Datum,
    Number,
    array_of,
    check_shape,
    filled,
    kind_of,
    tensor_of,
    variable,
    whole_number,
)

__all__ = ["FUNCTIONS", "MAKE_CONSTANTS", "Function"]

# Functions of one Tensor's elements, and the names of those that compare two Tensors.
_OF_TWO = {"max": "maximum", "min": "minimum"}


def _sizes(x: Datum) -> tuple[int, ...]:
    if len(x) == 1 and isinstance(x[0], list):
        (x,) = x
    return tuple(whole_number(size, "a shape", -1, 10**9) for size in x)


def _axis(x: Datum) -> int:
    return whole_number(x, "an axis", -MOST_AXES, MOST_AXES - 1)


def _axes(x: Datum) -> int | tuple[int, ...]:
    return tuple(map(_axis, x)) if isinstance(x, list) else _axis(x)


def _order(x: Datum) -> tuple[int, ...] | None:
    if len(x) == 1 and isinstance(x[0], list):
        (x,) = x
    return tuple(map(_axis, x)) or None


def _number(x: Datum) -> Number:
    if not isinstance(x, (int, float)):
        raise TypeError(f"a number is needed here, not a {kind_of(x)}; write it in digits")
    return x


def _several(x: Datum) -> list[Tensor]:
    if not isinstance(x, list) or not x:
        raise TypeError("a list of Tensors is needed here, such as [a, b]")
    return list(map(tensor_of, x))


def _labels(x: Datum) -> np.ndarray:
    labels = x.numpy() if isinstance(x, Tensor) else array_of(x)
    if not (labels == np.rint(labels)).all():
        raise ValueError("labels are whole numbers, such as [0, 2]")
    return np.where(np.abs(labels) < 1e6, labels, -1).astype(int)


def _classes(x: Datum) -> int:
    return whole_number(x, "the number of classes", 1, LARGEST_TENSOR)


def _as_it_is(x: Datum) -> Datum:
    return x


#: How to read a parameter, by its name. All others are Tensors.
_READERS: dict[str, Callable[[Any], Any]] = {
    "shape": _sizes,
    "axis": _axis,
    "axes": _axes,
    "order": _order,
    "slope": _number,
    "low": _number,
    "high": _number,
    "tensors": _several,
    "labels": _labels,
    "classes": _classes,
    "values": _as_it_is,
}


@dataclass(frozen=True)
class Function:
    """A function of the language.

    Parameters
    ----------
    call : callable
        Takes the arguments by their names.
    parameters : str
        Their names. ``axes=`` may be left out; ``*shape`` takes all arguments that are left.
    draws : bool
        Whether `call` takes a random generator too, as ``rng``.
    name : str
        What the function is called.
    """

    call: Callable[..., Datum]
    parameters: str
    draws: bool = False
    name: str = ""

    @property
    def usage(self) -> str:
        """How to call it, such as ``sum(a, axes=…)``."""
        return f"{self.name}({', '.join(name.replace('=', '=…') for name in self.parameters.split())})"

    @property
    def is_method(self) -> bool:
        """Whether Tensors have it as a method too."""
        return self.parameters.split()[0] in ("a", "logits", "y")

    def __call__(self, arguments: list[Datum], keywords: dict[str, Datum], rng: np.random.Generator) -> Datum:
        if self.name in _OF_TWO and len(arguments) == 2 and _are_two(*arguments):
            raise TypeError(f"{self.name} takes one Tensor; of two, write {_OF_TWO[self.name]}(a, b)")
        given: dict[str, Datum] = {}
        waiting = list(arguments)
        for parameter in self.parameters.split():
            name = parameter.strip("*=")
            if parameter.startswith("*"):
                given[name] = [keywords.pop(name)] if name in keywords else waiting
                waiting = []
            elif waiting:
                given[name] = waiting.pop(0)
            elif name in keywords:
                given[name] = keywords.pop(name)
            elif not parameter.endswith("="):
                raise TypeError(f"{self.name}: {name} is missing; write {self.usage}")
        if waiting or keywords:
            most = len(arguments) - len(waiting)
            odd = f"{most} argument{'s' * (most != 1)}, not {len(arguments)}"
            odd = f"no argument {next(iter(keywords))}" if keywords else odd
            raise TypeError(f"{self.name} takes {odd}; write {self.usage}")
        read = {name: _READERS.get(name, tensor_of)(x) for name, x in given.items()}
        return self.call(**read, rng=rng) if self.draws else self.call(**read)


def _are_two(a: Datum, b: Datum) -> bool:
    """Whether these are two values to compare, and not a value and its axes."""
    return isinstance(a, (int, float)) or isinstance(b, (float, Tensor))


def _of(function: Callable[..., Tensor], **renamed: str) -> Callable[..., Tensor]:
    """A function of needle as one of this language. `renamed` parameters have another name in needle."""

    def call(**given: Datum) -> Tensor:
        (_, first), *others = given.items()
        return function(first, **{renamed.get(name, name): x for name, x in others})

    return call


def _softmax_loss(logits: Tensor, labels: np.ndarray) -> Tensor:
    return nn.SoftmaxLoss()(logits, labels)


def _one_hot(labels: np.ndarray, classes: int) -> Tensor:
    check_shape((*labels.shape, classes))
    return ndl.init.one_hot(classes, labels, device=ndl.cpu_numpy())


def _grad(y: Tensor, x: Tensor) -> Tensor:
    for name, tensor in {"y": y, "x": x}.items():
        if not tensor.requires_grad:
            raise ValueError(
                f"grad(y, x): {name} does not require a gradient, because it is a constant; give its "
                "numbers a name, x = 2, and compute with that"
            )
    return ndl.gradients(y, [x])[0]


def _table() -> dict[str, Function]:
    each = ["exp", "log", "sqrt", "abs", "sign", "sin", "cos", "tanh", "sigmoid", "relu", "gelu", "erf"]
    along = ["summation", "mean", "max", "min", "logsumexp", "softmax"]
    table = {name: Function(_of(getattr(ops, name)), "a") for name in [*each, "logsoftmax"]}
    table |= {name: Function(_of(getattr(ops, name)), "a axes=") for name in along}
    table |= {
        "sum": table["summation"],
        "argmax": Function(_of(ops.argmax, axis="axes"), "a axis="),
        "leaky_relu": Function(_of(ops.leaky_relu), "a slope="),
        "clip": Function(_of(ops.clip), "a low= high="),
        "maximum": Function(_of(ops.maximum), "a b"),
        "minimum": Function(_of(ops.minimum), "a b"),
        "where": Function(_of(ops.where), "condition a b"),
        "matmul": Function(_of(ops.matmul), "a b"),
        "transpose": Function(_of(ops.transpose, order="axes"), "a *order"),
        "permute": Function(lambda a, order: ops.permute(a, order or ()), "a *order"),
        "reshape": Function(_of(ops.reshape), "a *shape"),
        "broadcast_to": Function(_of(ops.broadcast_to), "a *shape"),
        "stack": Function(_of(ops.stack), "tensors axis="),
        "concatenate": Function(_of(ops.concatenate), "tensors axis="),
        "softmax_loss": Function(_softmax_loss, "logits labels"),
        "grad": Function(_grad, "y x"),
        "tensor": Function(lambda values: variable(values), "values"),
        "constant": Function(lambda values: tensor_of(values).detach(), "values"),
        "detach": Function(lambda a: a.detach(), "a"),
        "ones": Function(lambda shape: filled(shape, np.ones), "*shape"),
        "zeros": Function(lambda shape: filled(shape, np.zeros), "*shape"),
        "rand": Function(lambda shape, rng: filled(shape, rng.random), "*shape", draws=True),
        "randn": Function(lambda shape, rng: filled(shape, rng.standard_normal), "*shape", draws=True),
        "one_hot": Function(_one_hot, "labels classes"),
    }
    table["Tensor"] = table["tensor"]
    return {name: replace(function, name=name) for name, function in table.items()}


#: All functions, by name.
FUNCTIONS = _table()

#: Those whose result stays a constant under a name.
MAKE_CONSTANTS = ("constant", "detach", "one_hot")
