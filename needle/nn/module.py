"""The tree of modules: a network's parts, its parameters, its state, and its text.

A module keeps Tensors and other modules as attributes, or in lists, tuples and dictionaries that are
attributes. We walk that tree in the order in which the attributes were set, so parameters always come in the
same order. If something is in the tree twice, it counts once, at its first place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np

from ..autograd import Tensor, Value, check_device, no_grad, scope
from ..failures import missing_attribute, with_graph

# The axes of images: modules have (batch, channels, height, width), operators have the channels last.
CHANNELS_LAST = (0, 2, 3, 1)
CHANNELS_FIRST = (0, 3, 1, 2)


class Parameter(Tensor):
    """A Tensor that is learned: a module finds it and an optimiser changes it.

    It is always true: ``if self.bias:`` asks whether there is a bias, which may be None instead.
    """

    __init__ = Tensor.__init__  # said again: before Python 3.11.4, help(Parameter) finds no inherited one

    def __bool__(self) -> bool:
        return True


class Module:
    """A part of a network. `forward` computes its output; attributes hold its parameters and parts.

    Attributes
    ----------
    training : bool
        True while the network learns, False while it is used. Some modules, such as `Dropout`, then behave
        differently; `train` and `eval` switch.
    """

    training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's output. A subclass writes this method."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method; write one")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            with scope(self, (*args, *kwargs.values()) if kwargs else args):
                return self.forward(*args, **kwargs)
        except Exception as error:
            inputs = [x for x in (*args, *kwargs.values()) if isinstance(x, Value)]
            if inputs and not hasattr(error, "op"):  # no operator failed: the module itself
                with_graph(error, self, inputs)
            raise

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module and all modules inside it, at any depth, each once, with the path to it. Its own path
        is ""."""
        return ((name, part) for name, part in _walk(self) if isinstance(part, Module))

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters of this module and its parts, each once, with the path to it:
        "modules.0.weight"."""
        return ((name, part) for name, part in _walk(self) if isinstance(part, Parameter))

    def parameters(self) -> list[Parameter]:
        """All parameters of this module and its parts."""
        return [parameter for _, parameter in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """All Tensors of this module and its parts that are not parameters, such as running means, each with
        its path. A Tensor with a graph behind it is a result and does not count."""
        return ((name, part) for name, part in self._named_tensors() if not isinstance(part, Parameter))

    def _named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters and buffers."""
        return ((name, part) for name, part in _walk(self) if isinstance(part, Tensor) and part.is_leaf())

    def _tensors_by_name(self) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for name, tensor in self._named_tensors():
            if name in tensors:
                raise ValueError(
                    f"{type(self).__name__}: two Tensors have the path {name!r}; rename one of them (in a "
                    "dict, the key 'a.b' has the same path as 'b' in 'a', and 1 the same as '1')"
                )
            tensors[name] = tensor
        return tensors

    def _children(self) -> list[Module]:
        """All modules inside this one, at any depth."""
        return [module for _, module in self.named_modules() if module is not self]

    def train(self) -> Self:
        """Switch this module and all modules inside it to training; returns this module."""
        return self._set_training(True)

    def eval(self) -> Self:
        """Switch this module and all modules inside it to use, not training; returns this module."""
        return self._set_training(False)

    def _set_training(self, training: bool) -> Self:
        self.training = training
        for module in self._children():
            module.training = training
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """All parameters and buffers by their paths, with their values of now.

        Later training changes the module, but not this dictionary; still, nothing is copied.

        Raises
        ------
        ValueError
            If two of them have the same path.
        """
        return {name: tensor.detach() for name, tensor in self._tensors_by_name().items()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Give parameters and buffers the values in `state`; their device and dtype stay as they are.

        Parameters
        ----------
        state : mapping from str to Tensor or array
            What `state_dict` of a module with the same parts returned.
        strict : bool
            False: skip names that only one side has. Shapes must fit in any case.

        Raises
        ------
        ValueError
            If names are missing or unexpected, or shapes differ. The message lists all of them, and the
            module stays as it was.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"load_state_dict: needs a dict of Tensors by name, got {type(state).__name__}")
        own = self._tensors_by_name()
        found = {name: state[name] for name in own if name in state}
        wrong = [
            f"mis-shaped: {name} is {own[name].shape} here and {np.shape(value)} in the state"
            for name, value in found.items()
            if np.shape(value) != own[name].shape
        ]
        if strict:
            wrong += [f"missing: {name}" for name in own if name not in state]
            wrong += [f"unexpected: {name}" for name in state if name not in own]
        if wrong:
            listed = "\n  ".join(sorted(wrong))
            raise ValueError(
                f"load_state_dict: the state does not fit this {type(self).__name__}, which stays as it was "
                f"(strict=False skips missing and unexpected names):\n  {listed}"
            )
        values = {
            name: Tensor(value, device=own[name].device, dtype=own[name].dtype)
            for name, value in found.items()
        }
        for name, value in values.items():
            own[name].data = value

    def to(self, device: Any) -> Self:
        """Move all parameters, their gradients and all buffers to `device`; returns the module.

        They stay the same Tensors, so an optimiser still knows them. It moves what it remembers of them at
        its next step.
        """
        check_device(device)
        tensors = [tensor for _, tensor in self._named_tensors()]
        with no_grad():
            moved = [tensor.to(device) for tensor in tensors]
            gradients = [None if tensor.grad is None else tensor.grad.to(device) for tensor in tensors]
        for tensor, there, gradient in zip(tensors, moved, gradients, strict=True):
            tensor.cached_data = there._data
            tensor.grad = gradient
        return self

    def __getattr__(self, name: str) -> Any:
        # Called only for what is not there.
        return missing_attribute(self, name)

    def __repr__(self) -> str:
        """The tree of modules, one on each line, with settings, counts of parameters, and shapes."""
        lines = []
        first_path: dict[int, str] = {}
        stack: list[tuple[str, str, str, Module]] = [("", "", "", self)]
        while stack:
            title, trunk, path, module = stack.pop()
            if id(module) in first_path:
                same = first_path[id(module)] or "the whole"
                lines.append(f"{title}{type(module).__name__}, the same as {same}")
                continue
            first_path[id(module)] = path
            lines.append(title + _described(module))
            parts = [(name, part) for name, part in _parts(vars(module).items()) if isinstance(part, Module)]
            for name, part in reversed(parts):
                branch, space = ("└─ ", "   ") if name == parts[-1][0] else ("├─ ", "│  ")
                stack.append((f"{trunk}{branch}{name}: ", trunk + space, _joined(path, name), part))
        return "\n".join(lines)


def check_sizes(module: Module, **sizes: Any) -> None:
    """Raise a ValueError unless these arguments of a constructor are whole numbers of at least 1."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise ValueError(
                f"{type(module).__name__}: {name} must be a whole number of at least 1, got {size!r}"
            )


def _described(module: Module) -> str:
    """One line: "Linear(in_features=2, out_features=3): 9 parameters, weight (2, 3), bias (1, 3)"."""
    settings = ", ".join(
        f"{name}={value!r}"
        for name, value in vars(module).items()
        if _is_setting(value) and not name.startswith("_") and name != "training"
    )
    own = [
        (name, part)
        for name, part in _parts(vars(module).items())
        if isinstance(part, Tensor) and part.is_leaf()
    ]
    count = sum(math.prod(parameter.shape) for parameter in module.parameters())
    details = [f"{count:,} parameter{'' if count == 1 else 's'}"] if count else []
    details += [f"{name} {part.shape}" for name, part in own if isinstance(part, Parameter)]
    buffers = [f"{name} {part.shape}" for name, part in own if not isinstance(part, Parameter)]
    details += ["not learned: " + ", ".join(buffers)] if buffers else []
    title = type(module).__name__ + (f"({settings})" if settings else "")
    return ": ".join([title, ", ".join(details)]) if details else title


def _is_setting(value: Any) -> bool:
    """A number or a str, or a tuple of them."""
    if isinstance(value, tuple) and value:
        return all(map(_is_setting, value))
    return isinstance(value, (bool, int, float, str))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _parts(
    items: Iterable[tuple[Any, Any]], around: tuple[int, ...] = ()
) -> Iterator[tuple[str, Module | Tensor]]:
    """The modules and Tensors among named items, also those inside lists, tuples and dictionaries.

    `around` holds the ids of the collections around `items`, so that one that contains itself ends.
    """
    for name, value in items:
        if isinstance(value, (Module, Tensor)):
            yield str(name), value
        elif isinstance(value, (dict, list, tuple)) and id(value) not in around:
            inside = value.items() if isinstance(value, dict) else enumerate(value)
            for path, part in _parts(inside, (*around, id(value))):
                yield f"{name}.{path}", part


def _walk(root: Module) -> Iterator[tuple[str, Module | Tensor]]:
    """`root` and every module and Tensor below it, depth first, each once, with its path."""
    seen = set()
    stack: list[tuple[str, Module | Tensor]] = [("", root)]
    while stack:
        path, part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield path, part
        if isinstance(part, Module):
            inside = [(_joined(path, name), x) for name, x in _parts(vars(part).items())]
            stack.extend(reversed(inside))
