"""Trace: run a function once and keep the graph that it builds.

While a function is traced, operators compute nothing (`Trace` stands in the mode's field `lazy`), and
needle's own objects say themselves that they take part: a Tensor when an operator takes it, a module when it
is called, an optimiser when it is asked for its options. A Tensor that takes part stands for a placeholder
meanwhile. So the graph begins at placeholders, and it can be computed again with other numbers. Take ::

    def layer(x):
        return relu(x @ W + b)

Its trace has the inputs x (an argument), W and b, and the graph ``ReLU(Add(MatMul(x, W), BroadcastTo(b)))``
of pending values. For a step of training it also has what is written, such as the new values of W and b, and
the numbers of the host that may change from call to call, such as the learning rate.

The contract: *A compiled function is traced once for each structure, shape, dtype and device of its
arguments. What needle's own objects hold (Tensors, modules, optimisers, schedules) is read anew in each call,
wherever the function finds them. All else that Python reads is what it was when the function was traced.*
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, CellType, FunctionType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..autograd import Tensor, Value
from ..graph import Op, Pending, Spec
from ..init.init_basic import Draw
from ..modes import line_of_user, mode
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from .stand_ins import CannotTrace, HostArray, Number, Option

__all__ = ["CannotTrace", "Input", "NewState", "Trace", "trace"]

#: Tensors stand for placeholders while a function is traced, so one function at a time is
#: traced. Who traces holds this lock.
one_at_a_time = threading.RLock()


class NewState(Exception):
    """An optimiser makes its state in this call, so the next call will look different."""


class Argument(Op):
    """The operator of a placeholder: its numbers come with each call."""

    def __init__(self, name: str):
        self.name = name

    def compute(self, *_: Any) -> NoReturn:
        raise CannotTrace(
            f"jit: numbers were asked for that depend on {self.name}, by .numpy(), .item(), float(), print "
            "or an `if`. They are different in each call, and are not known while the function is traced. "
            "Return the Tensor and look at it outside; to choose between numbers use ndl.where"
        )


class Constant(Op):
    """The operator of an array that the function makes without its inputs, such as zeros."""

    def __init__(self, array: Any):
        self.array = array

    def __repr__(self) -> str:
        return f"constant {np.array2string(self.array.numpy(), threshold=20)}"

    def compute(self) -> Any:
        return self.array


class Input(NamedTuple):
    """An array that the program is given in each call.

    Attributes
    ----------
    name : str
    cell : Pending
        The placeholder.
    tensor : Tensor or None
        The Tensor that holds it; None for an array of NumPy's.
    leaf : int or None
        Which leaf of the arguments it is; None if the function finds the Tensor by itself.
    grad : Value or None
        The gradient that the Tensor had before the call.
    """

    name: str
    cell: Pending
    tensor: Any
    leaf: int | None
    grad: Any = None


class Leaf(NamedTuple):
    """The place of a Tensor, array or number in the structure of the arguments."""

    number: int


class Outcome:
    """The place of a Tensor or number in what a function returns: which of those that it computed."""

    def __init__(self, number: int):
        self.number = number


class Same:
    """The place of a Tensor that a function returns as it came."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor


class Trace:
    """What one run of a function showed. While it runs, this is in the place of `lazy` in `modes.mode`.

    Attributes
    ----------
    inputs : list of Input
    draws : list of Pending
        Random numbers, in the order in which they are drawn.
    writes : list of (Input, Pending)
        What Tensors will hold.
    grads : list of (Input, Tensor or None)
        What the `grad` of Tensors will be.
    grad_of : dict of Tensor to list of Tensor
        For a gradient from before the call, the Tensors whose gradient it is.
    asked_grads : dict of Tensor to bool
        Tensors whose `grad` the function reads, and whether they have one before the call.
    holders : dict of Module or Optimizer to dict
        Modules that are called and optimisers that step, with their attributes.
    options : dict of (id of a dictionary, str) to (Optimizer, dict, str, value)
        The options of optimisers that are asked for: where they are, and what was there.
    updates : dict of Optimizer to dict of Tensor to Number or int
        How often parameters were updated.
    numbers : dict of str to tuple
        The names in formulas, and where their numbers come from: ``("leaf", i)``, ``("option", dict, key)``,
        or ``("count", optimizer, parameters)``.
    operations : list of (str, code, int)
        What each operator does, and the user's line (a code object, and the instruction in it).
    result : object
        What the function returned.
    """

    def __init__(self, names: dict[Any, str], debug: bool) -> None:
        self.names = names
        self.debug = debug
        self.inputs: list[Input] = []
        self.draws: list[Pending] = []
        self.writes: list[tuple[Input, Any]] = []
        self.grads: list[tuple[Input, Any]] = []
        self.grad_of: dict[Any, list[Any]] = {}
        self.asked_grads: dict[Any, bool] = {}
        self.holders: dict[Any, dict[str, Any]] = {}
        self.options: dict[tuple[int, str], tuple[Optimizer, dict, str, Any]] = {}
        self.updates: dict[Optimizer, dict[Any, Any]] = {}
        self.states: dict[Optimizer, dict[Any, dict[str, Any]]] = {}  # of optimisers, before the run
        self.numbers: dict[str, tuple] = {}
        self.operations: list[tuple[str, Any, int]] = []
        self.result: Any = None
        self.input_of: dict[Any, Input] = {}  # by their Tensors
        self._set_grads: set[Any] = set()  # the Tensors whose `grad` is set
        self._before: list[tuple[Any, Any, Any, Any]] = []  # Tensors, and what they held before the run
        self._cells: dict[Pending, str] = {}  # all that are made while it runs, and what messages call them
        self._constants: dict[int, Pending] = {}  # by the ids of arrays

    # What needle's objects say

    def data_of(self, x: Any) -> Any:
        """The pending value for a Tensor, or for an array that the function has made: from now on it takes
        part."""
        data = x._data if isinstance(x, Value) else x
        if type(data) is Pending and data in self._cells:
            return data
        if id(data) in self._constants:
            return self._constants[id(data)]
        if isinstance(x, Tensor):
            return self._meet(x, self.names.get(x, "tensor"), None).cell
        data = data.realize() if type(data) is Pending else data
        specs = [Spec(a.shape, a.dtype, a.device) for a in (data if type(data) is tuple else (data,))]
        cell = Pending(Constant(data), (), specs if type(data) is tuple else specs[0])
        self._constants[id(data)] = cell  # the cell keeps the array, so that no id is used twice
        self._cells[cell] = ""
        return cell

    def _meet(self, tensor: Tensor, name: str, leaf: int | None) -> Input:
        """Let a Tensor that is there before the call stand for a placeholder."""
        data = tensor._data.realize() if type(tensor._data) is Pending else tensor._data
        self._before.append((tensor, data, tensor._grad, tensor._overwritten))
        cell = Pending(Argument(name), (), Spec(data.shape, data.dtype, data.device))
        found = Input(name, cell, tensor, leaf, tensor._grad)
        self.inputs.append(found)
        self.input_of[tensor] = found
        self._cells[cell] = name
        tensor._data = cell
        return found

    def made(self, cell: Pending) -> None:
        """An operator has made a pending value."""
        self._cells[cell] = ""
        if isinstance(cell.op, Draw):
            self.draws.append(cell)
        if self.debug:
            operands = ", ".join(self._text(x) for x in cell.operands or ())
            self.operations.append((f"{cell.op} of {operands}", *line_of_user(4)))

    def _text(self, cell: Pending) -> str:
        """What messages say of an operand."""
        return self._cells[cell] or (repr(cell.op) if type(cell.op) is Constant else str(cell.shape))

    def refuse_numbers(self, x: Value) -> None:
        """Somebody asks what a Tensor holds."""
        self.data_of(x).realize()

    def asks_grad(self, x: Value) -> None:
        """The function asks for the `grad` of a Tensor."""
        self.data_of(x)
        found = self.input_of.get(x)  # none if it was made in this run
        if found is not None and x not in self._set_grads and x not in self.asked_grads:
            self.asked_grads[x] = x._grad is not None
            if x._grad is not None:
                self.grad_of.setdefault(x._grad, []).append(x)
                self.names.setdefault(x._grad, f"grad_{found.name}")

    def sets_grad(self, x: Value) -> None:
        """The function sets the `grad` of a Tensor."""
        self.data_of(x)
        self._set_grads.add(x)

    def enters(self, module: Any) -> None:
        """A module is called."""
        if isinstance(module, Module) and module not in self.holders:
            vars(module).setdefault("training", module.training)  # else it is the class's
            self.holders[module] = self._kept(module)
            for path, tensor in module._named_tensors():
                self.names.setdefault(tensor, path)

    def option(self, optimizer: Optimizer, holder: dict, key: str) -> Any:
        """What stands for an option of an optimiser: a number that may change, or what each call has to find
        there again: 0, True, False or None."""
        value = holder[key]
        value = value.item() if isinstance(value, np.generic) else value
        self._note(optimizer)
        self.options[id(holder), key] = optimizer, holder, key, value
        if type(value) not in (int, float) or value == 0:
            return value
        for name, source in self.numbers.items():
            if source[0] == "option" and source[1] is holder and source[2] == key:
                return Option(name, value)
        return self._number(Option, key, value, ("option", holder, key))

    def refuse_option(self, optimizer: Optimizer, name: str) -> NoReturn:
        """The function sets an option."""
        raise CannotTrace(
            f"jit: the function sets the option {name} of {type(optimizer).__name__}, which a compiled "
            "program does not repeat; set it outside, and call the step of a schedule outside"
        )

    def updates_of(self, optimizer: Optimizer) -> dict[Any, Any]:
        """How often the optimiser has updated its parameters, as Numbers."""
        self._note(optimizer)
        return self.updates[optimizer]

    def _note(self, optimizer: Optimizer) -> None:
        if optimizer in self.updates:
            return
        by_count: dict[int, list[Any]] = {}
        for p in optimizer.params:
            by_count.setdefault(optimizer._updates.get(p, 0), []).append(p)
        self.updates[optimizer] = {}
        self.holders[optimizer] = self._kept(optimizer)
        for count, params in by_count.items():
            number = self._number(Number, "t", count, ("count", optimizer, params))
            self.updates[optimizer] |= dict.fromkeys(params, number)
        self.states[optimizer] = {p: dict(memory) for p, memory in optimizer.state.items()}
        for memory in self.states[optimizer].values():
            for name, x in memory.items():
                self.names.setdefault(x, name)

    def _number(self, kind: type[Number], name: str, value: Any, source: tuple) -> Number:
        name = re.sub(r"\W", "_", name)
        while name in self.numbers or name in ("abs", "inf", "nan"):
            name += "_"
        self.numbers[name] = source
        return kind(name, value)

    def has_made(self, x: Value) -> bool:
        """Whether a Tensor was made in this run."""
        return x not in self.input_of and type(x._data) is Pending and x._data in self._cells

    def _kept(self, holder: Any) -> dict[str, Any]:
        """The attributes of a module or an optimiser that have to be the same in each call."""
        kinds: tuple[type, ...] = (Module, Value, bool, int, float, str, type(None))
        kinds += (tuple, list, dict) if isinstance(holder, Module) else ()  # those of optimisers are compared
        return {name: x for name, x in vars(holder).items() if isinstance(x, kinds)}

    def compare_holders(self) -> None:
        """Refuse the function if it has changed an attribute of a module or an optimiser."""
        for holder, before in self.holders.items():
            for name, x in list(vars(holder).items()):
                if isinstance(x, Value) and self.has_made(x):
                    before.pop(name, None)
                elif name in before and x is not before[name]:
                    setattr(holder, name, before[name])
                    raise CannotTrace(
                        f"jit: the function changes {name} of {type(holder).__name__}, which a compiled "
                        "program does not repeat; let it return what it computes, and change that outside"
                    )

    # The arguments

    def leaf(self, number: int, value: Any, name: str, as_it_is: bool) -> Any:
        """What stands for a leaf of the arguments while the function runs.

        For a Tensor that is a copy without its history, since the function may find the Tensor itself by
        another name, and the next call has another Tensor here.
        """
        if isinstance(value, np.ndarray):
            cells: dict[Any, Pending] = {}

            def cell(dtype: Any, device: Any) -> Pending:
                if (dtype, device) not in cells:
                    cells[dtype, device] = Pending(Argument(name), (), Spec(value.shape, dtype, device))
                    self._cells[cells[dtype, device]] = name
                    self.inputs.append(Input(name, cells[dtype, device], None, number))
                return cells[dtype, device]

            return HostArray(name, value, cell)
        if not isinstance(value, Tensor):
            return self._number(Number, name, value, ("leaf", number))
        if not as_it_is:
            copied = type(value).__new__(type(value))
            vars(copied).update(vars(value), op=None, inputs=[], _operands=())
            value = copied
        self._meet(value, name, number)
        return value


def trace(
    function: Callable,
    arguments: Any,
    leaves: list[Any],
    leaf_names: list[str],
    names: dict[Any, str],
    debug: bool = False,
) -> Trace:
    """Run `function` once and note what it does; afterwards needle's objects are as they were.

    Parameters
    ----------
    function : callable
    arguments : (tuple, dict)
        With a `Leaf` for each Tensor, number and array of NumPy's.
    leaves : list
        These.
    leaf_names : list of str
    names : dict of Tensor to str
        What to call Tensors that the function finds by itself.
    debug : bool
        Whether to note all operations.

    Raises
    ------
    CannotTrace
        If a program could not do the same.
    NewState
        If an optimiser made its state.
    """

    def run(twice: set[int]) -> Trace:
        found = Trace(dict(names), debug)
        _run(found, function, arguments, leaves, leaf_names, twice)
        return found

    for _ in range(2):  # another thread may draw meanwhile, but hardly twice in such a short time
        drawn = _random_states(function)
        found = run(set())
        if _random_states(function) == drawn:
            break
    else:
        raise CannotTrace(
            "jit: the function draws random numbers by NumPy or Python. A compiled program would not draw "
            "them again; use ndl.init.rand and its like, or draw them outside and give them as an argument"
        )
    twice = {i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x in found.input_of}
    return run(twice) if twice else found  # the function finds an argument by another name, too


def _run(
    found: Trace, function: Callable, arguments: Any, leaves: list, names: list[str], twice: set[int]
) -> None:
    """Fill in a trace."""
    _, grad, scope, _ = mode.get()
    try:
        given = [found.leaf(i, x, names[i], i in twice) for i, x in enumerate(leaves)]
        args, kwargs = filled(arguments, given)
        token = mode.set((found, grad, scope, False))
        try:
            found.result = function(*args, **kwargs)
        except TypeError as error:
            if any(kind == "leaf" for kind, *_ in found.numbers.values()):
                error.add_note(
                    "While a function is compiled, something else stands for each number among its "
                    'arguments. If Python needs the number itself, name it: ndl.jit(f, static="name")'
                )
            raise
        finally:
            mode.reset(token)
        without_tensors(found.result, [], found)  # it refuses what a program cannot return
        for optimizer, state in found.states.items():
            if any(memory.keys() != state.get(p, {}).keys() for p, memory in optimizer.state.items()):
                raise NewState
        for x in found.inputs:
            if x.tensor is not None and x.tensor._data is not x.cell:
                found.writes.append((x, x.tensor._data))
            if x.tensor in found._set_grads:
                found.grads.append((x, x.tensor._grad))
        found.compare_holders()
    finally:
        for tensor, data, grad_then, overwritten in found._before:
            tensor._data, tensor._grad, tensor._overwritten = data, grad_then, overwritten
        found._before.clear()
        for optimizer, state in found.states.items():
            optimizer.state.clear()
            optimizer.state.update(state)


def _random_states(function: Any) -> list[str]:
    """Where generators of random numbers stand: those that all of NumPy and Python share, and those that the
    function finds by its names."""
    found = [x.bit_generator.state for x in named_in(function).values() if isinstance(x, np.random.Generator)]
    return [str(found), str(np.random.get_state(legacy=False)), str(hash(random.getstate()))]


def named_in(function: Any) -> dict[str, Any]:
    """What a function finds by the names in it: global ones, and those of functions around it."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    found = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    return found | {name: cell.cell_contents for name, cell in cells if cell != CellType()}


# Structures of arguments and results


class Fixed:
    """An argument, or part of one, that belongs to the structure: it has to be the same in each call."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Fixed:
            return False
        a, b = self.value, other.value
        return a is b or (type(a) is type(b) and isinstance(a, _COMPARED) and a == b and repr(a) == repr(b))

    __hash__ = None  # type: ignore[assignment]


_COMPARED = (bool, int, float, complex, str, bytes, np.generic, tuple, list)


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


def filled(value: Any, leaves: list[Any]) -> Any:
    """Arguments with something in the place of each leaf."""
    if type(value) is Leaf:
        return leaves[value.number]
    if type(value) is Fixed:
        return value.value
    return in_container(lambda x: filled(x, leaves), value)


_PLAIN = (bool, int, float, str, bytes, type, Module, FunctionType, BuiltinFunctionType, np.generic, np.dtype)


def without_tensors(value: Any, computed: list[Any], found: Trace) -> Any:
    """What a function returned, with an `Outcome` for each Tensor and Number that it computed."""
    if isinstance(value, Tensor) and not found.has_made(value):
        return Same(value)
    if isinstance(value, Tensor) or type(value) in (Number, Option):
        computed.append(value)
        return Outcome(len(computed) - 1)
    if type(value) in (list, tuple, dict) or is_named_tuple(value):
        return in_container(lambda x: without_tensors(x, computed, found), value)
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
