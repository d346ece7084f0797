"""Trace: run a function and keep the graph that it builds.

While a function is traced, operators compute nothing. Each Tensor that the function uses holds a placeholder
instead of numbers. So the graph begins at placeholders, and a program can compute it again with other
numbers. Take ::

    def layer(x):
        return relu(x @ W + b)

A call with 10 rows leaves this trace. x is an argument of the function; it finds W and b by itself ::

    inputs   x = Placeholder              (10, 2)    from the start
             W = Placeholder              (2, 8)     as soon as the operator @ takes it
             b = Placeholder              (8,)       as soon as the operator + takes it
    graph    m = MatMul(x, W)             (10, 8)
             a = EWiseAdd(m, b)           (10, 8)
             h = ReLU(a)                  (10, 8)
    result   h

The trace of a training step also notes which Tensors it writes, such as W and b, and which numbers may change
from call to call, such as the learning rate.

By the contract of `jit`, what needle's own objects hold is read anew in each call, and all else is what it
was when the function was traced. How does the trace learn what the function uses? needle's objects report it:
a Tensor when an operator takes it, a module when one of its attributes is read (each call of a module reads
some), and an optimiser when its options are read. The function's own names are looked up only to name
Tensors in the source, and to find generators of random numbers. These are noticed also among its arguments
and in modules and optimisers. A generator anywhere else is not: what it draws is frozen.
"""

from __future__ import annotations

import inspect
import linecache
import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from keyword import iskeyword
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any, NoReturn

import numpy as np

from ..autograd import Tensor, Value
from ..graph import Op, Pending, Spec
from ..init.init_basic import Draw
from ..modes import line_of_user, mode, tracing
from ..nn.module import Module, _joined, _parts
from ..optim.optimizer import Optimizer
from .stand_ins import CannotTrace, HostArray, Number, Option
from .structures import Fixed, Leaf, is_plain, leaves_of, mapped

__all__ = ["CannotTrace", "Input", "NewState", "Trace", "trace"]

#: While a function is traced, its Tensors hold placeholders instead of numbers. So one function at a time is
#: traced: the thread that traces holds this lock.
one_at_a_time = threading.RLock()


class NewState(Exception):
    """An optimiser makes its state in this call, such as Adam its means.

    There is nothing yet that a program could update. So this call runs as it is, and the next one is traced.
    """


class Placeholder(Op):
    """The operator of an input of the graph: its numbers come with each call."""

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

    def numbers(self) -> list[np.ndarray]:
        """What it holds; several arrays if it is a tuple of Tensors."""
        return [x.numpy() for x in (self.array if type(self.array) is tuple else (self.array,))]

    def __repr__(self) -> str:
        return f"constant {', '.join(np.array2string(x, threshold=20) for x in self.numbers())}"

    def compute(self) -> Any:
        return self.array


@dataclass(eq=False)
class Input:
    """An array that the program is given in each call."""

    name: str
    cell: Pending  # the placeholder
    tensor: Any  # the Tensor that holds it; None for an array of NumPy's
    leaf: int | None  # which leaf of the arguments it is; None if the function finds the Tensor by itself


def trace(
    function: Callable, arguments: Any, leaves: list[Any], leaf_names: list[str], debug: bool = False
) -> Trace:
    """Run `function` and note what it does; afterwards needle's objects are as they were.

    It runs again, up to three times in all, if it finds an argument under another name as well, or if random
    numbers were drawn meanwhile.
    `arguments` is the structure of its arguments, in which each Tensor, array or number (a leaf) is replaced
    by its position in `leaves`; see `structures.py`.

    `CannotTrace` is raised if a program could not do the same,
    `NewState` if an optimiser made its state.
    """
    shared: set[int] = set()  # leaves that the function finds by another name, too
    for _ in range(3):  # another thread may draw random numbers meanwhile, but hardly each time
        found = Trace(_names_of_tensors(function), debug)
        given = [x.value for x in leaves_of(arguments) if type(x) is Fixed]
        for x in (*_SHARED_GENERATORS, *_named_in(function).values(), *given):
            found.watch(x)
        found.run(function, arguments, leaves, leaf_names, shared)
        met = {i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x in found.input_of}
        if met == shared and all(_STATES[type(x)](x) == state for x, state in found.generators.items()):
            return found
        shared = met
    raise CannotTrace(
        "jit: the function draws random numbers by NumPy or Python. A compiled program would not draw "
        "them again; use ndl.init.rand and its like, or draw them outside and give them as an argument"
    )


class Trace:
    """What a run of a function showed. During the run, it is the field `lazy` of `modes.mode`."""

    def __init__(self, names: dict[Any, str], debug: bool) -> None:
        #: What to call Tensors and modules.
        self.names = names
        #: The arrays that come with each call, also by their Tensors.
        self.inputs: list[Input] = []
        self.input_of: dict[Any, Input] = {}
        #: Random numbers, in the order in which they are drawn.
        self.draws: list[Pending] = []
        #: What Tensors will hold, and what their `grad` will be.
        self.writes: list[tuple[Input, Pending]] = []
        self.grads: list[tuple[Input, Pending | None]] = []
        #: Arguments whose `grad` the function sets; and whether they have a history, through which `backward`
        #: would go on if the function ran eagerly.
        self.ends: list[tuple[Input, bool]] = []
        #: Tensors whose `grad` of before the call is read, and whether they have one; and whose it is.
        self.asked_grads: dict[Any, bool] = {}
        self.grad_of: dict[Any, list[Any]] = {}
        #: Modules that are used and optimisers that step; and which of their attributes are asked for, with
        #: what these are, or `ABSENT`.
        self.asked: dict[Any, dict[str, Any]] = {}
        #: For the id of a dictionary and a key: these, and what stands for the option of an optimiser there.
        self.options: dict[tuple[int, str], tuple[dict, str, Any]] = {}
        #: How often parameters were updated: a Number, or a formula of it.
        self.updates: dict[Optimizer, dict[Any, Any]] = {}
        #: For the names in formulas, where the numbers come from: ("leaf", i), ("option", dictionary, key),
        #: or ("count", optimizer, parameters).
        self.numbers: dict[str, tuple] = {}
        #: What the function returned, with a `Leaf` for each Tensor and number that it computed; and these.
        self.template: Any = None
        self.returned: list[Tensor | Number] = []
        #: For `debug`: what was done, with which constants, and in which line of the user's.
        self.operations: list[tuple[str, bytes, str]] | None = [] if debug else None
        #: All pending values that take part, and what messages call them.
        self.cells: dict[Pending, str] = {}
        self._constants: dict[int, Pending] = {}  # by the ids of arrays
        self._states: dict[Optimizer, dict[Any, dict[str, Any]]] = {}  # of optimisers, before the run
        self._set_grads: set[Any] = set()  # the Tensors whose `grad` is set
        self._before: list[tuple[Any, Any, Any, Any]] = []  # Tensors, and what they held before the run
        #: By their ids, collections of modules and optimisers: whose, by which path, and what they held.
        self._contents: dict[int, tuple[Any, str, Any, Any]] = {}
        #: Generators of random numbers that the function may find, and where they stood before.
        self.generators: dict[Any, Any] = {}
        self._new_modules: set[Module] = set()  # made in the run: they may change

    def run(
        self, function: Callable, arguments: Any, leaves: list, names: list[str], shared: set[int]
    ) -> None:
        """Run the function, and note what it does."""
        _, grad, scope, _ = mode.get()
        try:
            given = [self._leaf(i, x, names[i], i in shared) for i, x in enumerate(leaves)]
            args, kwargs = mapped(lambda x, _: given[x] if type(x) is Leaf else x.value, arguments)
            token = mode.set((self, grad, scope, False))
            originals = {name: getattr(Module, name) for name in _HOOKS}
            try:
                for name, hook in _HOOKS.items():
                    setattr(Module, name, hook)
                result = function(*args, **kwargs)
            except TypeError as error:
                numbers = [name for name, (kind, *_) in self.numbers.items() if kind == "leaf"]
                if not numbers:
                    raise
                raise CannotTrace(
                    f"jit: {error}. While a function is traced, something else stands for each number among "
                    "its arguments. If Python needs the number itself, name the argument in static=, as in "
                    f'ndl.jit(f, static="{numbers[0]}")'
                ) from error
            finally:
                for name, original in originals.items():
                    setattr(Module, name, original)
                mode.reset(token)
            self.template = mapped(self._result, result)
            for optimizer, state in self._states.items():
                if any(memory.keys() != state.get(p, {}).keys() for p, memory in optimizer.state.items()):
                    raise NewState
            for x in self.inputs:
                if x.leaf is None:  # a module may have named it after an optimiser asked for its gradient
                    x.name = self.names.get(x.tensor, x.name)
                if x.tensor is not None and x.tensor._data is not x.cell:
                    self.writes.append((x, x.tensor._data))
            for x in [x for x in self.inputs if x.tensor in self._set_grads]:
                grad = x.tensor._grad
                self.grads.append((x, None if grad is None else self.data_of(grad)))
                if grad is not None and x.leaf is not None and x.tensor is not leaves[x.leaf]:
                    self.ends.append((x, leaves[x.leaf].op is not None))
            self._say_outcomes(function, result)
            for holder, path, _ in self._changed():
                is_cache = isinstance(getattr(type(holder), path, None), cached_property)
                if not is_cache or isinstance(vars(holder).get(path), (Value, Module)):
                    raise CannotTrace(
                        f"jit: the function changes {path} of {type(holder).__name__}, which a compiled "
                        "program does not repeat; let it return what it computes, and change that outside"
                    )
        finally:
            for *_, restore in [*self._changed()]:
                restore()
            for tensor, data, grad_then, overwritten in self._before:
                tensor._data, tensor._grad, tensor._overwritten = data, grad_then, overwritten
            for kept in (self._before, self._contents, self._new_modules):  # else it would keep them alive
                kept.clear()
            for optimizer, state in self._states.items():
                optimizer.state.clear()
                optimizer.state.update(state)

    # What the function is given, and what it returns

    def _leaf(self, number: int, value: Any, name: str, as_it_is: bool) -> Any:
        """What stands for a leaf of the arguments while the function runs.

        For a Tensor that is a copy without its history, since the function may find the Tensor itself by
        another name, and the next call has another Tensor here.
        """
        if isinstance(value, np.ndarray):
            shape = value.shape
            return HostArray(name, value, lambda *kind: self._input(name, Spec(shape, *kind), None, number))
        if not isinstance(value, Tensor):
            return self._number(Number, name, value, ("leaf", number))
        if not as_it_is:
            copied = type(value).__new__(type(value))
            vars(copied).update(vars(value), op=None, inputs=[], _operands=())
            value = copied
        self._meet(value, name, number)
        return value

    def _result(self, x: Any, _: str) -> Any:
        """What the template has in the place of something that the function returned."""
        if isinstance(x, Tensor) and not self._has_made(x):
            return x  # as it came
        if isinstance(x, (Tensor, Number)):
            self.returned += [x] * (not any(x is y for y in self.returned))
            return Leaf(next(i for i, y in enumerate(self.returned) if y is x))
        if x is not None and not isinstance(x, _PLAIN):
            raise CannotTrace(
                f"jit: the function returns a {type(x).__name__}; return Tensors and numbers, and lists, "
                "tuples and dictionaries of them"
            )
        return x

    @property
    def wanted(self) -> list[Any]:
        """What a program has to compute: results, gradients and what is written."""
        results = [x._data for x in self.returned if isinstance(x, Tensor)]
        gradients = [grad for _, grad in self.grads if grad is not None]
        return results + gradients + [value for _, value in self.writes]

    # Tensors

    def data_of(self, x: Any) -> Any:
        """The pending value for a Tensor, or for an array that the function has made: from now on it takes
        part."""
        data = x._data if isinstance(x, Value) else x
        if type(data) is Pending and data in self.cells:
            return data
        if id(data) in self._constants:
            return self._constants[id(data)]
        if isinstance(x, Tensor):
            return self._meet(x, self.names.get(x, "tensor"), None)
        data = data.realize() if type(data) is Pending else data
        specs = [Spec(a.shape, a.dtype, a.device) for a in (data if type(data) is tuple else (data,))]
        cell = Pending(Constant(data), (), specs if type(data) is tuple else specs[0])
        self._constants[id(data)] = cell  # the cell keeps the array, so that no id is used twice
        self.cells[cell] = ""
        return cell

    def _meet(self, tensor: Tensor, name: str, leaf: int | None) -> Pending:
        """Put a placeholder into a Tensor that was made before the call."""
        data = tensor._data.realize() if type(tensor._data) is Pending else tensor._data
        self._before.append((tensor, data, tensor._grad, tensor._overwritten))
        tensor._data = cell = self._input(name, Spec(data.shape, data.dtype, data.device), tensor, leaf)
        self.input_of[tensor] = self.inputs[-1]
        return cell

    def _input(self, name: str, spec: Spec, tensor: Tensor | None, leaf: int | None) -> Pending:
        cell = Pending(Placeholder(name), (), spec)
        self.inputs.append(Input(name, cell, tensor, leaf))
        self.cells[cell] = name
        return cell

    def _has_made(self, x: Value) -> bool:
        """Whether a Tensor was made in this run."""
        return x not in self.input_of and type(x._data) is Pending and x._data in self.cells

    def made(self, cell: Pending) -> None:
        """An operator has made a pending value."""
        self.cells[cell] = "" if self.operations is None else f"#{len(self.operations) + 1} {cell.shape}"
        if isinstance(cell.op, Draw):
            self.draws.append(cell)
        if self.operations is not None:
            operands = cell.operands or ()
            said = f"{cell.op} of {', '.join(map(self._said, operands))}"
            constants = [y.tobytes() for x in operands if type(x.op) is Constant for y in x.op.numbers()]
            constants += [b"%d" % id(x.tensor) for x in self.inputs if x.leaf is None]  # which ones are found
            self.operations.append((said, b"".join(constants), _line(*line_of_user(4))))

    def _say_outcomes(self, function: Any, result: Any) -> None:
        """Note for `debug` what is written, which gradients there are, and what is returned."""
        if self.operations is None:
            return
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        where = "its end" if code is None else _line(code, len(code.co_code) - 1)
        for end, outcomes in ((".data", self.writes), (".grad", self.grads)):
            for x, value in outcomes:
                which = b"%d" % id(x.tensor) if x.leaf is None else b""
                self.operations.append((f"{x.name}{end} = {self._said(value)}", which, where))
        said = mapped(lambda x, _: self._said(x._data if isinstance(x, Value) else x), result)
        self.operations.append((f"the result {said}", b"", where))

    def _said(self, x: Any) -> Any:
        """What messages say of an operand, or of what is returned: values have the numbers of the operations
        that made them."""
        if type(x) is not Pending:
            return x
        return self.cells.get(x) or (repr(x.op) if type(x.op) is Constant else str(x.shape))

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

    # Modules and optimisers

    def asks(self, module: Module, name: str, attributes: dict[str, Any]) -> None:
        """A module is asked for one of its attributes."""
        if self._holds(module, attributes):
            *_, before = self._contents[id(attributes)]
            for asked in [name, *attributes] if name == "__dict__" else [name]:
                if asked not in self.asked[module]:
                    self.asked[module][asked] = before.get(asked, ABSENT)
                    self._keep(module, asked, attributes.get(asked))

    def sets(self, module: Module, attributes: dict[str, Any]) -> None:
        """A module gets an attribute."""
        if attributes:
            self._holds(module, attributes)
        else:  # its first one
            self._new_modules.add(module)

    def _holds(self, module: Module, attributes: dict[str, Any]) -> bool:
        """Whether a module was there before the run. If so, it takes part from now on."""
        if module not in self.asked and module not in self._new_modules:
            attributes.setdefault("training", type(module).training)
            self.asked[module] = {}
            self._contents[id(attributes)] = module, "", attributes, _items(attributes)
            for path, part in _parts(attributes.items()):
                self.names.setdefault(part, _joined(self.names.get(module, ""), path))
        return module in self.asked

    def watch(self, x: Any) -> None:
        """Remember where a generator of random numbers stands, if it is one."""
        if type(x) in _STATES:
            self.generators.setdefault(x, _STATES[type(x)](x))

    def _keep(self, holder: Any, path: str, x: Any) -> None:
        """Remember what a list or a dictionary of a module or optimiser holds, and those in it."""
        self.watch(x)
        if isinstance(x, (dict, list, tuple)) and id(x) not in self._contents:
            self._contents[id(x)] = holder, path, x, _items(x)
            for key, y in _items(x).items():
                self._keep(holder, f"{path}.{key}", y)

    def option(self, optimizer: Optimizer, holder: dict, key: str) -> Any:
        """What stands for an option of an optimiser: a number that may change, or what each call has to find
        there again: 0, True, False or None."""
        value = holder[key]
        value = value.item() if isinstance(value, np.generic) else value
        self._note(optimizer)
        if (id(holder), key) not in self.options:
            if type(value) in (int, float) and value != 0:
                value = self._number(Option, key, value, ("option", holder, key))
            self.options[id(holder), key] = holder, key, value
        return self.options[id(holder), key][-1]

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
        attributes = vars(optimizer)
        self._contents[id(attributes)] = optimizer, "", attributes, _items(attributes)
        self.asked[optimizer] = {name: x for name, x in attributes.items() if name not in _OWN}
        for name, x in self.asked[optimizer].items():
            self._keep(optimizer, name, x)
        counts = {p: optimizer._updates.get(p, 0) for group in optimizer.groups for p in group["params"]}
        self.updates[optimizer] = {}
        for count in dict.fromkeys(counts.values()):
            params = [p for p in counts if counts[p] == count]
            number = self._number(Number, "t", count, ("count", optimizer, params))
            self.updates[optimizer] |= dict.fromkeys(params, number)
        for p in optimizer.params:  # a program asks for equal states
            optimizer.state.setdefault(p, {})
        self._states[optimizer] = {p: dict(memory) for p, memory in optimizer.state.items()}
        for memory in self._states[optimizer].values():
            for name, x in memory.items():
                self.names.setdefault(x, name)

    def _number(self, kind: type[Number], name: str, value: Any, source: tuple) -> Number:
        name = re.sub(r"\W", "_", name)
        while name in self.numbers or name in ("abs", "inf", "nan") or iskeyword(name):
            name += "_"
        self.numbers[name] = source
        return kind(name, value)

    def _changed(self) -> Iterator[tuple[Any, str, Callable]]:
        """What modules and optimisers hold otherwise than before: whose it is, its path, and its undoing."""
        for holder, path, x, before in self._contents.values():
            now = _items(x)
            for key in before | now:
                old, new = before.get(key, self), now.get(key, self)  # nothing holds the trace
                if old is not new and not (is_plain(new) and Fixed(old) == new):
                    yield holder, _joined(path, str(key)), partial(_refill, x, before)


#: In the place of an attribute that only the class of a module may have.
ABSENT = object()

#: What each optimiser holds, which a program compares, computes or updates in other ways.
_OWN = ("params", "groups", "state", "_updates", "_options")

#: What a function may return besides Tensors and numbers that it computed.
_PLAIN = (bool, int, float, str, bytes, type, Module, FunctionType, BuiltinFunctionType, np.generic, np.dtype)


def _asked(module: Module, name: str) -> Any:
    """Look up an attribute of a module, and tell the trace. Only while a function is traced: it is slow."""
    if found := tracing():
        found.asks(module, name, object.__getattribute__(module, "__dict__"))
    return object.__getattribute__(module, name)


def _sets(module: Module, name: str, value: Any) -> None:
    """Set an attribute of a module, and tell the trace."""
    if found := tracing():
        found.sets(module, object.__getattribute__(module, "__dict__"))
    super(Module, module).__setattr__(name, value)


#: What modules do otherwise while a function is traced.
_HOOKS: dict[str, Callable] = {"__getattribute__": _asked, "__setattr__": _sets}


def _items(x: Any) -> dict[Any, Any]:
    """What a dictionary, a list or a tuple holds, by key or place."""
    return dict(x if isinstance(x, dict) else enumerate(x))


def _refill(x: Any, items: dict[Any, Any]) -> None:
    """Let a dictionary or a list hold what it held before."""
    x.clear()
    x.update(items) if isinstance(x, dict) else x.extend(items.values())


def _line(code: Any, place: int) -> str:
    """A line of the user, in words."""
    lines = (line for start, stop, line in code.co_lines() if start <= place < stop and line)
    line, file = next(lines, code.co_firstlineno), Path(code.co_filename)
    where = f"line {line}" + f" of {file.name}" * file.exists()  # a cell of a notebook is no file
    return f"`{linecache.getline(code.co_filename, line).strip()}` ({where}, in {code.co_name})"


#: Where generators of random numbers stand; and those that all of NumPy and Python share.
_STATES: dict[type, Callable] = {
    np.random.Generator: lambda x: str(x.bit_generator.state),
    np.random.RandomState: lambda x: str(x.get_state(legacy=False)),
    random.Random: lambda x: hash(x.getstate()),
}
_SHARED_GENERATORS = np.random.get_state.__self__, random.getstate.__self__  # type: ignore[attr-defined]


def _names_of_tensors(function: Any) -> dict[Any, str]:
    """The Tensors and modules that a function finds by its names, and these: only sources and messages show
    them. What is in a module is named when it takes part."""
    found: dict[Any, str] = {}
    for name, x in _named_in(function).items():
        named = {f"{name}[{i}]": y for i, y in enumerate(x)} if type(x) in (list, tuple) else {name: x}
        for path, y in named.items():
            if isinstance(y, (Tensor, Module)):
                found.setdefault(y, path)
    return found


def _named_in(function: Any) -> dict[str, Any]:
    """What a function finds by the names in it: global ones, and those of functions around it."""
    try:
        found = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # it is no function of Python's, or a name has no value yet
        return {}
    return {**found.globals, **found.nonlocals}
