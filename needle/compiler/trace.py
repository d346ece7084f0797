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

A trace is worth something only while its surroundings stay as they were. `Surroundings` remembers them: which
objects the function reaches, and what these hold. If the function changes one of them, as ``losses.append``
does, a compiled program could not repeat that, and the trace is refused.
"""

from __future__ import annotations

import functools
import random
import re
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from dis import get_instructions
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor, TensorTuple, Value
from ..graph import Op, Pending, Spec
from ..modes import mode
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from ..stand_ins import HostArray, Number

__all__ = ["CannotTrace", "Input", "NewState", "Surroundings", "Trace", "trace"]

_MOST = 100_000  # objects that a function may reach

#: Tensors stand for placeholders while a function is traced, so one function at a time is
#: traced. Who traces holds this lock.
one_at_a_time = threading.RLock()


#: Methods that nobody needs to name.
_CALLED_BY_LIBRARY = ("forward", "rule", "compute", "infer", "gradient")

#: Who names one of these may mean any attribute.
_ANY_ATTRIBUTE = frozenset({"getattr", "vars", "__dict__"})

_OF_OPTIMIZERS = ("groups", "params", "state", "_updates", "_option_names")


class CannotTrace(RuntimeError):
    """A function does something that a compiled program could not repeat."""


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


class Source(NamedTuple):
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
    grads : list of (Tensor, Pending, array or None)
        Tensors, and what their `grad` will be.
    counts : list of (Optimizer, Tensor, Number)
        How often a parameter was updated.
    answers : dict of str to object
        What was asked about Numbers; see `stand_ins`.
    numbers : dict of str to Source
        The names in formulas, and where their numbers come from.
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
        self.numbers: dict[str, Source] = {}
        self.before: dict[Optimizer, tuple[dict, dict]] = {}  # counts and states before the run
        self.old_grads: set[Any] = set()  # Tensors that had a gradient before
        self.new_grads: set[Any] = set()  # those whose gradient the function sets
        self.stepped: set[Any] = set()  # the parameters that an optimiser updated
        self.result: Any = None

    def draw(self, device: Any, kind: str, shape: tuple[int, ...], dtype: Any, rng: Any) -> Pending:
        """A placeholder for random numbers that ``device.rand`` or ``device.randn`` will draw."""
        draw = functools.partial(getattr(device, kind), *shape, dtype=dtype, rng=rng)
        self.draws.append(Pending(Draw(draw), (), Spec(tuple(shape), np.dtype(dtype), device)))
        return self.draws[-1]

    def number(self, name: str, value: Any, source: Source) -> Number:
        """What stands for a number of the host. Formulas call it by `name`, or by one like it."""
        name = re.sub(r"\W", "_", name)
        while name in self.numbers or name in ("bool", "inf", "nan"):  # formulas use these themselves
            name += "_"
        self.numbers[name] = source
        return Number(name, value, self.answers)

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


class Bound(NamedTuple):
    """Where a Tensor or array is found in each call; it may be another one then.

    Attributes
    ----------
    holder : object
        The globals of a module, a cell of an enclosing function, or a Tensor.
    key : str or None
        The global name; None for a cell, "grad" for a Tensor.
    """

    holder: Any
    key: str | None

    def now(self) -> Any:
        """What is there now."""
        if self.key is None:
            return self.holder.cell_contents
        return self.holder.grad if isinstance(self.holder, Value) else self.holder.get(self.key)


class Surroundings:
    """The objects that a function reaches besides its arguments, and what they hold.

    Attributes
    ----------
    tensors : dict of Tensor to str
        With the name by which each is reached.
    modules, optimizers : list
    arrays : list of (dict or list, key, str)
        Where arrays of NumPy's are held, and their names.
    held : list of (object, snapshot)
        Dictionaries and lists, and a copy of each as it was.
    names : list of (dict, str, object)
        Global names, and what they stand for.
    cells : list of (cell, str, object)
        The same for names of an enclosing function.
    sizes : list of (dict, int, str)
        How many attributes own objects have.
    attributes : list of (type or Optimizer, str, object)
        Attributes of own objects, classes and optimisers, and their values.
    bound : dict of int to Bound
        By the id of a Tensor or array: the name that stands for it, or the Tensor whose gradient it is.
    generators : list
        NumPy's generators of random numbers.
    """

    def __init__(self, function: Any):
        self.tensors: dict[Any, str] = {}
        self.modules: list[Module] = []
        self.optimizers: list[Optimizer] = []
        self.arrays: list[tuple[Any, Any, str]] = []
        self.held: list[tuple[Any, Any, str]] = []
        self.names: list[tuple[dict, str, Any]] = []
        self.cells: list[tuple[Any, str, Any]] = []
        self.bound: dict[int, Bound] = {}
        self.sizes: list[tuple[dict, int, str]] = []
        self.attributes: list[tuple[Any, str, Any]] = []
        self.generators: list[Any] = []
        self._words: set[str] = set()  # the names of attributes in all functions
        self._waiting: dict[str, list[tuple[Any, str]]] = {}  # objects whose attribute nobody named yet
        self._seen: set[int] = set()
        self._keep: list[Any] = []  # so that an id is not used twice
        self.visit(function, "")

    @property
    def reads_grad(self) -> bool:
        """Whether one of the functions names an attribute `grad`."""
        return "grad" in self._words

    def visit(self, value: Any, name: str) -> None:
        """Look at an object, and at all that it holds. A loop over a stack: nothing limits the depth."""
        stack = [(value, name)]
        while stack:
            value, name = stack.pop()
            if value is None or isinstance(value, (int, float, str, bytes, np.generic)):
                continue
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._keep.append(value)
            if len(self._seen) > _MOST:
                raise CannotTrace(
                    f"jit: the function reaches more than {_MOST:,} objects, the last by {name!r}; give it "
                    "the Tensors that it needs as arguments"
                )
            stack.extend(reversed(list(self._inside(value, name))))

    def _inside(self, value: Any, name: str) -> Iterator[tuple[Any, str]]:
        if isinstance(value, Value):
            self.tensors[value] = name
            if isinstance(value.grad, Value):
                self.bound.setdefault(id(value.grad), Bound(value, "grad"))
                yield value.grad, f"{name}.grad"
        elif isinstance(value, (list, tuple, dict)):
            yield from self._items(value, name)
        elif isinstance(value, FunctionType):
            if not _is_library(value.__module__):
                yield from self._of_function(value)
        elif isinstance(value, MethodType):
            yield value.__self__, name or "self"
            yield value.__func__, name
        elif isinstance(value, functools.partial):
            yield value.func, name
            yield value.args, name
            yield value.keywords, name
        elif isinstance(value, Optimizer):
            self.optimizers.append(value)
            yield value.groups, f"{name}.groups"
            for i, p in enumerate(value.params):
                yield p, f"{name}.params[{i}]"
                for key, x in value.state.get(p, {}).items():
                    yield x, f"{name}.{key}[{i}]"
            for key, x in vars(value).items():  # of an optimiser of one's own
                if key not in (*_OF_OPTIMIZERS, *value._option_names):
                    self.attributes.append((value, key, x))
                    yield x, f"{name}.{key}"
            yield type(value), name
        elif isinstance(value, (np.random.Generator, np.random.RandomState)):
            self.generators.append(value)
        elif isinstance(value, type):
            yield from self._of_class(value, name)
        elif isinstance(value, Module):
            self.modules.append(value)
            yield from self._items(vars(value), name)
            yield type(value), name
        elif (
            hasattr(value, "__dict__")
            and not isinstance(value, ModuleType)
            and not _is_library(type(value).__module__)
        ):
            self.sizes.append((vars(value), len(vars(value)), name))
            yield from self._attributes_of(value, name)
            yield type(value), name

    def _attributes_of(self, owner: Any, name: str) -> Iterator[tuple[Any, str]]:
        """Attributes of an own object or class, as far as one of the functions names them."""
        for key in vars(owner):
            special = key in _CALLED_BY_LIBRARY or (key.startswith("__") and key != "__init__")
            if special or key in self._words or self._words & _ANY_ATTRIBUTE:
                yield from self._attribute(owner, key, name)
            else:
                self._waiting.setdefault(key, []).append((owner, name))

    def _attribute(self, owner: Any, key: str, name: str) -> Iterator[tuple[Any, str]]:
        x, path = vars(owner)[key], f"{name}.{key}"
        function = getattr(x, "__func__", getattr(x, "fget", x)) if isinstance(owner, type) else x
        if isinstance(owner, type) and isinstance(function, FunctionType):
            yield function, path
        elif isinstance(x, np.ndarray) and not isinstance(owner, type):
            self.arrays.append((vars(owner), key, path))
        elif not isinstance(owner, type) or not key.startswith("__"):
            self.attributes.append((owner, key, x))
            yield x, path

    def _items(self, holder: Any, name: str) -> Iterator[tuple[Any, str]]:
        self.held.append((holder, _snapshot(holder), name))
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, x in items:
            path = f"{name}.{key}" if isinstance(key, str) else f"{name}[{key}]"
            if isinstance(x, np.ndarray) and not isinstance(holder, tuple):
                self.arrays.append((holder, key, path))
            else:
                yield x, path

    def _of_class(self, cls: type, name: str) -> Iterator[tuple[Any, str]]:
        if not _is_library(cls.__module__):
            yield from self._attributes_of(cls, name)
            yield from ((base, name) for base in cls.__bases__)

    def _of_function(self, function: FunctionType) -> Iterator[tuple[Any, str]]:
        code = function.__code__
        new = _attributes_in(code) - self._words
        self._words |= new
        if new & _ANY_ATTRIBUTE:
            new |= set(self._waiting)
        for word in new & set(self._waiting):
            for owner, path in self._waiting.pop(word):
                yield from self._attribute(owner, word, path)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue  # not set yet
            self.cells.append((cell, name, value))
            yield from self._named(value, name, cell, None)
        namespace = function.__globals__
        for name in _names_in(code):
            if name in namespace:
                value = namespace[name]
                if isinstance(value, ModuleType):
                    continue
                self.names.append((namespace, name, value))
                yield from self._named(value, name, namespace, name)
        for name, value in (function.__kwdefaults__ or {}).items():
            yield value, name
        yield function.__defaults__, function.__name__

    def _named(self, value: Any, name: str, holder: Any, key: Any) -> Iterator[tuple[Any, str]]:
        if isinstance(value, (Tensor, np.ndarray)):
            self.bound.setdefault(id(value), Bound(holder, key))
        if isinstance(value, np.ndarray):
            self.arrays.append((holder, key, name))
        else:
            yield value, name

    def changed(self) -> str:
        """What is not as it was: a name; "" if all is."""
        names = [(name, value, namespace.get(name)) for namespace, name, value in self.names]
        names += [(name, value, cell.cell_contents) for cell, name, value in self.cells]
        names += [(f".{key}", value, vars(owner).get(key)) for owner, key, value in self.attributes]
        for name, then, now in names:
            if not same(now, then):
                return name
        for holder, size, name in self.sizes:
            if len(holder) != size:
                return name
        return next((name for holder, then, name in self.held if holder != then), "")

    def restore(self) -> None:
        """Put things back as they were."""
        for namespace, name, value in self.names:
            namespace[name] = value
        for cell, _, value in self.cells:
            cell.cell_contents = value
        for owner, key, value in self.attributes:
            if vars(owner).get(key) is not value:
                setattr(owner, key, value)
        for holder, then, _ in self.held:
            if isinstance(holder, list):
                holder[:] = [x.value if type(x) is Exactly else x for x in then]
            elif isinstance(holder, dict):
                was = {key: x.value if type(x) is Exactly else x for key, x in then.items()}
                holder.clear()
                holder.update(was)

    def random_states(self) -> list[Any]:
        """Where generators of random numbers stand, also those of NumPy and Python that all share."""
        states = [getattr(x, "bit_generator", x) for x in self.generators]
        states = [x.state if hasattr(x, "state") else x.get_state() for x in states]
        return [_as_bytes(state) for state in (*states, np.random.get_state(), random.getstate())]


def _as_bytes(state: Any) -> Any:
    """The state of a generator, ready to be compared."""
    if isinstance(state, dict):
        return {key: _as_bytes(x) for key, x in state.items()}
    if isinstance(state, (tuple, list)):
        return [_as_bytes(x) for x in state]
    return state.tobytes() if isinstance(state, np.ndarray) else state


class Exactly:
    """Equal to the same object, and to an equal number or text of the same type: 2 is not 2.0 here."""

    __array_ufunc__ = None  # leaves ``array == exactly`` to `__eq__`
    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return other is self.value or same(other, self.value)


def _snapshot(holder: Any) -> Any:
    """A copy to compare with. What may be equal to something else is an `Exactly` in it."""

    def exactly(x: Any) -> Any:
        equals: Any = type(x).__eq__
        return x if equals is object.__eq__ or isinstance(x, str) else Exactly(x)

    if isinstance(holder, dict):
        return {key: exactly(x) for key, x in holder.items()}
    return [exactly(x) for x in holder] if isinstance(holder, list) else holder


def same(now: Any, then: Any) -> bool:
    """Whether a value is the same object, or an equal number or text of the same type."""
    return now is then or (
        type(now) is type(then) and isinstance(then, (int, float, str, bytes)) and bool(now == then)
    )


@functools.cache
def _is_library(module: str | None) -> bool:
    """Whether a function or class comes from an installed package, which closes over nothing that changes."""
    name = (module or "").partition(".")[0]
    if (module or "").startswith("needle.apps."):  # programs that use the library
        return False
    if name in ("needle", "numpy", "builtins"):
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return file.startswith(tuple({sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")}))


def _attributes_in(code: CodeType) -> set[str]:
    """The names of attributes in a function, those in functions inside it included."""
    found = set(code.co_names)
    return found.union(*[_attributes_in(x) for x in code.co_consts if isinstance(x, CodeType)])


def _names_in(code: CodeType) -> list[str]:
    """The global names that a function reads, those in functions inside it included."""
    steps = list(get_instructions(code))
    for step in steps:
        if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            raise CannotTrace(
                f"jit: the function sets the global name {step.argval}, which a compiled program does not "
                "repeat; let it return what it computes, and set the name outside"
            )
    names = [step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _names_in(constant)
    return list(dict.fromkeys(names))


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
        Its arguments, with a `Place` for each number and array of NumPy's.
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
    found = Trace()
    restore: list[Callable[[], None]] = []
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
            stand_ins.append(found.number(name, value, Source("leaf", i)))
    for holder, key, name in around.arrays:
        _replace_array(holder, key, name, found, restore)
    for number, optimizer in enumerate(around.optimizers):
        _replace_options(optimizer, f"optimizer{number or ''}", found, restore)
    _, grad, scope, _ = mode.get()
    given, as_given = [(_filled(args, stand_ins), _filled(kwargs, stand_ins)) for _ in range(2)]
    drawn = around.random_states()
    token = mode.set((found, grad, scope, False))  # type: ignore[arg-type]
    try:
        found.result = function(*given[0], **given[1])
        for x in found.inputs:
            if x.tensor is not None and x.tensor._data is not x.cell:
                found.writes.append((x.tensor, x.tensor._data))
        _read_optimizers(around, found)
    finally:
        mode.reset(token)
        grads = [(x.tensor, x.tensor.grad) for x in found.inputs if x.tensor is not None]
        for undo in reversed(restore):
            undo()
    found.old_grads = {tensor for tensor, _ in grads if tensor.grad is not None}
    for tensor, grad_then in grads:
        if grad_then is not tensor.grad:
            found.new_grads.add(tensor)
            found.grads.append((tensor, None if tensor in found.stepped else grad_then))
    if name := around.changed() or ("" if _as_given(given, as_given) else "a container among its arguments"):
        around.restore()
        raise CannotTrace(
            f"jit: the function changes {name}, which a compiled program does not repeat; let it return what "
            "it computes, and change such things outside"
        )
    if around.random_states() != drawn:
        raise CannotTrace(
            "jit: the function draws random numbers by NumPy or Python. A compiled program would not draw "
            "them again; use ndl.init.rand and its like, or draw them outside and give them as an argument"
        )
    return found


def _as_given(now: Any, then: Any) -> bool:
    """Whether containers among the arguments still hold what they held."""
    if type(now) is type(then) and isinstance(now, (list, tuple)):
        return len(now) == len(then) and all(map(_as_given, now, then))
    if type(now) is type(then) and isinstance(now, dict):
        return [*now] == [*then] and all(map(_as_given, now.values(), then.values()))
    return now is then


class Place(NamedTuple):
    """Where a leaf was taken from the arguments."""

    number: int


def _filled(value: Any, leaves: list[Any]) -> Any:
    """Arguments with something in the place of each leaf."""
    if isinstance(value, Place):
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


def _replace_array(holder: Any, key: Any, name: str, found: Trace, restore: list) -> None:
    if key is None:
        array = holder.cell_contents
        holder.cell_contents = found.host_array(name, array, None)
        restore.append(lambda: setattr(holder, "cell_contents", array))
    else:
        array = holder[key]
        holder[key] = found.host_array(name, array, None)
        restore.append(lambda: holder.__setitem__(key, array))


def _replace_options(optimizer: Optimizer, name: str, found: Trace, restore: list) -> None:
    """Let an optimiser's options and counts be Numbers."""
    options = {key: getattr(optimizer, key) for key in optimizer._option_names}
    groups = [dict(group) for group in optimizer.groups]
    counts, state = dict(optimizer._updates), {p: dict(memory) for p, memory in optimizer.state.items()}

    def number(text: str, value: Any, source: Source) -> Any:
        stand_in = found.number(text, value, source)
        if isinstance(value, bool) or not isinstance(value, (float, int)):
            found.answers[stand_in.text] = value
            return value
        return stand_in

    for key, value in options.items():
        setattr(optimizer, key, number(f"{name}_{key}", value, Source("attribute", key, optimizer)))
    for i, group in enumerate(optimizer.groups):
        for key, value in list(group.items()):
            if key != "params":
                group[key] = number(f"{name}_{key}_{i}", value, Source("item", key, group))
    by_count: dict[int, list[Any]] = {}
    for p in optimizer.params:
        by_count.setdefault(counts.get(p, 0), []).append(p)
    for i, (t, params) in enumerate(by_count.items()):
        shared = found.number(f"{name}_t{i or ''}", t, Source("count", params, optimizer))
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
