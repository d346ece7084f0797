"""Trace: run a function once and keep the graph that it builds.

The function runs in lazy mode, so nothing is computed. Each Tensor that it can reach, among its arguments,
its closure and the globals that it names, stands for a placeholder meanwhile. So the graph begins at
placeholders, and it can be computed again with other numbers. Take ::

    def step(x, y):
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

Its trace holds the inputs (x, y, and the model's parameters, which are found by the name `model`), what is
written (the parameters' new values), what is returned (the loss), and the numbers that may change from call
to call (the learning rate), with all that was asked about them.

A trace holds good only while its surroundings are as they were: `surroundings.py` says what is watched. If
the function changes one of these things, as ``losses.append`` does, a compiled program could not repeat that,
and the trace is refused.
"""

from __future__ import annotations

import functools
import operator
import re
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor, TensorTuple, Value
from ..graph import Op, Pending, Spec
from ..modes import mode
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from ..stand_ins import HostArray, Number
from .surroundings import CannotTrace, Refusing, Surroundings, needs_stand_in

__all__ = ["CannotTrace", "Input", "NewState", "Surroundings", "Trace", "trace"]

#: Tensors stand for placeholders while a function is traced, so one function at a time is
#: traced. Who traces holds this lock.
one_at_a_time = threading.RLock()


class NewState(Exception):
    """An optimiser made its state in this call, so the next call will look different."""


class Argument(Op):
    """The operator of a placeholder: its numbers come with each call."""

    def __init__(self, name: str):
        self.name = name

    def compute(self, *_: Any) -> Any:
        raise CannotTrace(
            f"jit: numbers were asked for that depend on {self.name}, by .numpy(), .item(), float(), print "
            "or an `if`. They are different in each call, and are not known while the function is traced. "
            "Return the Tensor and look at it outside; to choose between numbers use ndl.where"
        )


class Draw(Argument):
    """The operator of random numbers: the host draws them for each call, from the same generator as ever."""

    def __init__(self, draw: Callable[[], Any]):
        super().__init__("random numbers")
        self.draw = draw


class Input(NamedTuple):
    """An array that the program is given in each call.

    Attributes
    ----------
    name : str
    cell : Pending
        The placeholder.
    tensor : Tensor or None
        Where it is the value of a Tensor: that Tensor.
    leaf : int or None
        Where it comes with the arguments: which of their leaves it is.
    array : numpy.ndarray or None
        Where it is an array of NumPy's: that array.
    """

    name: str
    cell: Pending
    tensor: Any
    leaf: int | None
    array: Any = None


class NumberSource(NamedTuple):
    """Where a number of the host comes from.

    Attributes
    ----------
    kind : str
        "leaf": the arguments' leaf number `key`. "attribute": that of `owner`. "item": that of the dictionary
        `owner`. "count": how often the optimiser `owner` has updated each of the parameters `key`.
    """

    kind: str
    key: Any
    owner: Any = None

    def now(self, leaves: list[Any]) -> Any:
        """The number; None where counts differ."""
        if self.kind == "leaf":
            return leaves[self.key]
        if self.kind == "attribute":
            return getattr(self.owner, self.key)
        if self.kind == "item":
            return self.owner[self.key]
        counts = {self.owner._updates.get(p, 0) for p in self.key}
        return counts.pop() if len(counts) == 1 else None


class Trace:
    """What one run of a function showed. While it runs, it is in the place of `lazy` in `modes.mode`.

    Attributes
    ----------
    inputs : list of Input
    draws : list of Pending
        Random numbers, in the order in which they are drawn.
    writes : list of (Tensor, Pending or array)
        Tensors, and what they will hold.
    grads : list of (Tensor, Tensor or None)
        Tensors, and what their `grad` will be.
    counts : list of (Optimizer, Tensor, Number)
        How often a parameter was updated.
    answers : dict of str to object
        What was asked about Numbers; see `stand_ins`.
    numbers : dict of str to NumberSource
        The names in formulas, and where their numbers come from.
    types : dict of str to type
        The names in formulas, and what their numbers are.
    result : object
        What the function returned.
    """

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.draws: list[Pending] = []
        self.writes: list[tuple[Any, Any]] = []
        self.grads: list[tuple[Any, Any]] = []
        self.counts: list[tuple[Optimizer, Any, Any]] = []
        self.answers: dict[str, Any] = {}
        self.numbers: dict[str, NumberSource] = {}
        self.types: dict[str, type] = {}
        self.options: list[tuple[dict, str, Any]] = []  # where optimisers have options, and what is there
        self.before: dict[Optimizer, tuple[dict, dict]] = {}  # counts and states before the run
        self.old_grads: set[Any] = set()  # Tensors that had a gradient before
        self.new_grads: set[Any] = set()  # those whose gradient the function sets
        self.stepped: set[Any] = set()  # the parameters that an optimiser updated
        self.result: Any = None

    def draw(self, device: Any, kind: str, shape: tuple[int, ...], dtype: Any, rng: Any) -> Pending:
        """A placeholder for random numbers that ``device.rand`` or ``device.randn`` will draw."""
        rng = operator.index(rng) if isinstance(rng, Number) else rng  # a seed
        draw = functools.partial(getattr(device, kind), *shape, dtype=dtype, rng=rng)
        self.draws.append(Pending(Draw(draw), (), Spec(tuple(shape), np.dtype(dtype), device)))
        return self.draws[-1]

    def number(self, name: str, value: Any, source: NumberSource) -> Number:
        """What stands for a number of the host. Formulas call it by `name`, or by one like it."""
        name = re.sub(r"\W", "_", name)
        used = ("abs", "bool", "inf", "nan", "type")  # by formulas themselves
        while name in self.numbers or name in used:
            name += "_"
        self.numbers[name], self.types[name] = source, type(value)
        # One of NumPy's counts as Python's, as among the arguments.
        return Number(name, value.item() if isinstance(value, np.generic) else value, self.answers)

    def host_array(self, name: str, array: np.ndarray, leaf: int | None) -> HostArray:
        """What stands for an array of NumPy's."""
        cells: dict[Any, Pending] = {}

        def cell(dtype: Any, device: Any) -> Pending:
            dtype = np.dtype("float32" if dtype is None else dtype)
            if (dtype, device) not in cells:
                cells[dtype, device] = found = Pending(Argument(name), (), Spec(array.shape, dtype, device))
                self.inputs.append(Input(name, found, None, leaf, array))
            return cells[dtype, device]

        return HostArray(name, array, cell)


class Leaf(NamedTuple):
    """A Tensor, array or number among the arguments, and its name."""

    value: Any
    name: str


def trace(function: Callable, args: tuple, kwargs: dict, leaves: list[Leaf], around: Surroundings) -> Trace:
    """Run `function` once and note what it does; afterwards everything is as it was.

    Parameters
    ----------
    function : callable
    args, kwargs
        Its arguments, with a `LeafIndex` for each number and array of NumPy's.
    leaves : list of Leaf
        The Tensors, arrays and numbers among the arguments.
    around : Surroundings
        What the function reaches besides.

    Raises
    ------
    CannotTrace
        If a program could not do the same.
    NewState
        If an optimiser made its state.
    """
    try:
        return _trace_once(function, args, kwargs, leaves, around)
    except _Draws:  # or another thread did, as a web server's does now and then: then it won't again so soon
        return _trace_once(function, args, kwargs, leaves, around)


class _Draws(CannotTrace):
    """Somebody drew random numbers meanwhile."""


def _trace_once(
    function: Callable, args: tuple, kwargs: dict, leaves: list[Leaf], around: Surroundings
) -> Trace:
    found = Trace()
    _, grad, scope, _ = mode.get()
    drawn = around.random_states()
    restore: list[Callable[[], None]] = []
    changed = ""
    try:
        stand_ins = _replace_all(leaves, around, found, restore)
        given, as_given = [(_filled(args, stand_ins), _filled(kwargs, stand_ins)) for _ in range(2)]
        placed = [(place, place.now()) for place in around.stand_ins]
        token = mode.set((found, grad, scope, False))  # type: ignore[arg-type]
        try:
            found.result = function(*given[0], **given[1])
        finally:
            mode.reset(token)
        changed = next((place.name for place, x in placed if place.now() is not x), "")
        changed = changed or next(
            (f"{key} of an optimiser" for holder, key, x in found.options if holder.get(key) is not x), ""
        )
        for x in found.inputs:
            if x.tensor is not None and x.tensor._data is not x.cell:
                found.writes.append((x.tensor, x.tensor._data))
        without_tensors(found.result, [], ())  # it refuses results, also in a call that makes a new state
        _read_optimizers(around, found)
    finally:
        grads = [(x.tensor, x.tensor.grad) for x in found.inputs if x.tensor is not None]
        for undo in reversed(restore):
            undo()
    found.old_grads = {tensor for tensor, _ in grads if tensor.grad is not None}
    for tensor, grad_then in grads:
        if grad_then is not tensor.grad or tensor in found.stepped:
            found.new_grads.add(tensor)
            found.grads.append((tensor, grad_then))
    changed = changed or around.changed()
    if name := changed or ("" if _as_given(given, as_given) else "a container among its arguments"):
        around.restore()
        raise CannotTrace(
            f"jit: the function changes {name}, which a compiled program does not repeat; let it return what "
            "it computes, and change such things outside"
        )
    if around.random_states() != drawn:
        raise _Draws(
            "jit: the function draws random numbers by NumPy or Python. A compiled program would not draw "
            "them again; use ndl.init.rand and its like, or draw them outside and give them as an argument"
        )
    return found


def _replace_all(leaves: list[Leaf], around: Surroundings, found: Trace, restore: list) -> list[Any]:
    """Put placeholders where the function finds its Tensors, numbers and arrays.

    Returns what stands for the leaves; how to put everything back is added to `restore`.
    """
    for tensor, name in around.tensors.items():
        _replace(tensor, name, None, found, restore)
    stand_ins: list[Any] = []
    for i, (value, name) in enumerate(leaves):
        if isinstance(value, Value):
            if value not in around.tensors and all(value is not x.tensor for x in found.inputs):
                _replace(value, name, i, found, restore)
            stand_ins.append(value)
        elif isinstance(value, np.ndarray):
            stand_ins.append(found.host_array(name, value, i))
        else:
            stand_ins.append(found.number(name, value, NumberSource("leaf", i)))
    for place in around.stand_ins:
        restore.append(functools.partial(place.put, place.value))
        place.put(_stand_in(place.value, place.name, found))
    for number, optimizer in enumerate(around.optimizers):
        _replace_options(optimizer, f"optimizer{number or ''}", found, restore)
    return stand_ins


def _stand_in(value: Any, name: str, found: Trace) -> Any:
    """What stands for it then."""
    if isinstance(value, np.ndarray):
        return found.host_array(name, value, None)
    if isinstance(value, tuple):
        return in_container(lambda x: _stand_in(x, name, found) if needs_stand_in(x) else x, value)
    return Refusing(value, name)


def _as_given(now: Any, then: Any) -> bool:
    """Whether containers among the arguments still hold what they held."""
    if type(now) is type(then) and isinstance(now, (list, tuple)):
        return len(now) == len(then) and all(map(_as_given, now, then))
    if type(now) is type(then) and isinstance(now, dict):
        return [*now] == [*then] and all(map(_as_given, now.values(), then.values()))
    return now is then


class LeafIndex(NamedTuple):
    """Where a leaf was taken from the arguments."""

    number: int


def _filled(value: Any, leaves: list[Any]) -> Any:
    """Arguments with something in the place of each leaf."""
    if isinstance(value, LeafIndex):
        return leaves[value.number]
    return in_container(lambda x: _filled(x, leaves), value)


def in_container(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to all that a list, a tuple or a dictionary holds; anything else stays as it is."""
    if type(value) is dict:
        return {key: function(x) for key, x in value.items()}
    if type(value) in (list, tuple):
        return type(value)([function(x) for x in value])
    return type(value)(*map(function, value)) if is_named_tuple(value) else value


def is_named_tuple(value: Any) -> bool:
    """Whether it is a tuple whose items have names."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _replace(tensor: Any, name: str, leaf: int | None, found: Trace, restore: list) -> None:
    """Let a Tensor stand for a placeholder."""
    if tensor.op is not None and not isinstance(tensor.op, Argument) and type(tensor._data) is Pending:
        tensor.realize_cached_data()
    data, grad, overwritten = tensor.realize_cached_data(), tensor.grad, tensor._overwritten
    if isinstance(tensor, TensorTuple):
        return
    cell = Pending(Argument(name), (), Spec(data.shape, data.dtype, data.device))
    found.inputs.append(Input(name, cell, tensor, leaf))
    tensor._data = cell

    def undo() -> None:
        tensor._data, tensor._overwritten = data, overwritten
        tensor.grad = grad

    restore.append(undo)


def _replace_options(optimizer: Optimizer, name: str, found: Trace, restore: list) -> None:
    """Let an optimiser's options and counts be Numbers."""
    options = {key: getattr(optimizer, key) for key in optimizer._option_names}
    groups = [dict(group) for group in optimizer.groups]
    counts, state = dict(optimizer._updates), {p: dict(memory) for p, memory in optimizer.state.items()}

    def replace(holder: dict, key: str, text: str, source: NumberSource) -> None:
        value = holder[key]
        stand_in: Any = found.number(text, value, source)
        if isinstance(value, bool) or not isinstance(value, (float, int)):
            found.answers[stand_in.text], stand_in = stand_in.value, value
        holder[key] = stand_in
        found.options.append((holder, key, stand_in))

    for key in options:
        replace(vars(optimizer), key, f"{name}_{key}", NumberSource("attribute", key, optimizer))
    for i, group in enumerate(optimizer.groups):
        for key in [key for key in group if key != "params"]:
            replace(group, key, f"{name}_{key}_{i}", NumberSource("item", key, group))
    by_count: dict[int, list[Any]] = {}
    for p in optimizer.params:
        by_count.setdefault(counts.get(p, 0), []).append(p)
    for i, (t, params) in enumerate(by_count.items()):
        shared = found.number(f"{name}_t{i or ''}", t, NumberSource("count", params, optimizer))
        for p in params:
            optimizer._updates[p] = shared  # type: ignore[assignment]

    def undo() -> None:
        for key, value in options.items():
            setattr(optimizer, key, value)
        for group, then in zip(optimizer.groups, groups, strict=True):
            group.update(then)
        optimizer._updates.clear()
        optimizer._updates.update(counts)
        # A step that remembers nothing leaves an empty memory. It makes no difference, so it may be there.
        empty: dict[Any, Any] = {p: {} for p, memory in optimizer.state.items() if not memory}
        optimizer.state.clear()
        optimizer.state.update(empty | state)

    restore.append(undo)
    found.before[optimizer] = counts, state


def _read_optimizers(around: Surroundings, found: Trace) -> None:
    """What optimisers wrote: counts, and states."""
    for optimizer in around.optimizers:
        counts, state = found.before[optimizer]
        updates: dict[Any, Any] = optimizer._updates  # of Numbers
        for p, t in updates.items():
            if t.value != counts.get(p, 0):
                found.stepped.add(p)
                found.counts.append((optimizer, p, t))
        for p, memory in optimizer.state.items():
            before = state.get(p, {})
            if set(memory) != set(before):
                raise NewState
            for name, x in memory.items():
                if x is not before[name]:
                    found.writes.append((before[name], x._data))


class Outcome:
    """The place of a Tensor in what a function returns: number `number` of those that it computed."""

    def __init__(self, number: int):
        self.number = number


class Same:
    """The place of a Tensor that a function returns as it came."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor


_PLAIN = (bool, int, float, str, bytes, type, Module, FunctionType, BuiltinFunctionType, np.generic, np.dtype)


def without_tensors(value: Any, computed: list[Any], inputs: Any) -> Any:
    """What a function returned, with an `Outcome` for each Tensor and Number that it computed."""
    if isinstance(value, Tensor) and value in inputs:
        return Same(value)
    if isinstance(value, (Tensor, Number)):
        computed.append(value)
        return Outcome(len(computed) - 1)
    if type(value) in (list, tuple, dict) or is_named_tuple(value):
        if type(value) is dict:  # a number that was hashed is known
            value = {key.known() if isinstance(key, Number) else key: x for key, x in value.items()}
        return in_container(lambda x: without_tensors(x, computed, inputs), value)
    if value is not None and not isinstance(value, _PLAIN):
        raise CannotTrace(
            f"jit: the function returns a {type(value).__name__}; return Tensors and numbers, and lists, "
            "tuples and dictionaries of them"
        )
    return value


def with_tensors(value: Any, outcomes: list[Any], now: Callable[[Tensor], Any]) -> Any:
    """What a function returns: `outcomes` in their places, and ``now(tensor)`` for a Tensor as it came."""
    if type(value) is Outcome:
        return outcomes[value.number]
    if type(value) is Same:
        return now(value.tensor)
    return in_container(lambda x: with_tensors(x, outcomes, now), value)
