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
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterator
from dis import get_instructions
from io import IOBase
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor, TensorTuple, Value
from ..data import Dataset
from ..graph import Op, Pending, Spec
from ..modes import mode
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from ..optim.schedules import Schedule
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

#: How a function reads or sets a global name.
_OF_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")

#: Objects of Python's library whose attributes are all that they have.
_OPEN = (SimpleNamespace, Namespace)

#: What never changes, and is compared by its type and value.
PLAIN = (int, float, complex, str, bytes, type(None), np.generic)

#: In the place of a value: the name is not set.
ABSENT = object()

#: What `functools.lru_cache` makes of a function.
_CACHED = type(functools.lru_cache(len))

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
    grads : list of (Tensor, Pending, array or None)
        Tensors, and what their `grad` will be.
    counts : list of (Optimizer, Tensor, Number)
        How often a parameter was updated.
    answers : dict of str to object
        What was asked about Numbers; see `stand_ins`.
    numbers : dict of str to NumberSource
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
        self.numbers: dict[str, NumberSource] = {}
        self.options: list[tuple[dict, str, Any]] = []  # where optimisers have options, and what is there
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

    def number(self, name: str, value: Any, source: NumberSource) -> Number:
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


class Watched(NamedTuple):
    """A place where a function finds something, and what is there when it is traced.

    Attributes
    ----------
    holder : object
        The globals of a module, a cell of an enclosing function, what has the attribute (an object, a class,
        a module, or a Tensor with a `grad`), or a container. None if nothing else could be put there.
    key : object
        The name, index or key; None for a cell.
    value : object
        What is there; `ABSENT` if the name is not set.
    name : str
        What messages call it.
    """

    holder: Any
    key: Any
    value: Any
    name: str

    @property
    def _is_slot(self) -> bool:
        """Whether it is an attribute that is not in the holder's `__dict__`."""
        if isinstance(self.holder, Value):
            return True
        kind = getattr(type(self.holder), str(self.key), None)
        return isinstance(kind, (MemberDescriptorType, GetSetDescriptorType))

    def source(self, holder: str) -> str:
        """How a call asks what is there now, if it calls the holder so."""
        if self.key is None:
            return f"{holder}.cell_contents"
        if self._is_slot:
            return f"getattr({holder}, {self.key!r}, ABSENT)"
        return f"{holder}{'' if isinstance(self.holder, dict) else '.__dict__'}.get({self.key!r}, ABSENT)"

    def now(self) -> Any:
        """What is there now."""
        holder, key = self.holder, self.key
        if key is None:
            try:
                return holder.cell_contents
            except ValueError:  # not set yet
                return ABSENT
        if isinstance(holder, (list, deque)):
            return holder[key] if key < len(holder) else ABSENT
        if self._is_slot:
            return getattr(holder, key, ABSENT)
        return (holder if isinstance(holder, dict) else vars(holder)).get(key, ABSENT)

    def put(self, value: Any) -> None:
        """Put something there. No method of the holder's class is asked, so that nothing else happens."""
        holder, key = self.holder, self.key
        if key is None and value is ABSENT:
            del holder.cell_contents
        elif key is None:
            holder.cell_contents = value
        elif isinstance(holder, (list, deque)):
            if key < len(holder):
                holder[key] = value
        elif isinstance(holder, type) or self._is_slot:
            kind = type if isinstance(holder, type) else object
            kind.__delattr__(holder, key) if value is ABSENT else kind.__setattr__(holder, key, value)
        elif value is ABSENT:
            (holder if isinstance(holder, dict) else vars(holder)).pop(key, None)
        else:
            (holder if isinstance(holder, dict) else vars(holder))[key] = value


class Refusing:
    """Stands for something that cannot be watched while a function is traced, and refuses to be used."""

    def __init__(self, reason: str, wrapped: Any):
        self._reason = reason
        self.__wrapped__ = wrapped  # the way out for a function that remembers its results

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise CannotTrace(self._reason)

    __call__ = __iter__ = __next__ = __getattr__ = _refuse


class Surroundings:
    """The objects that a function reaches besides its arguments, and what they hold.

    Attributes
    ----------
    tensors : dict of Tensor to str
        With the name by which each is reached.
    optimizers : list
    watched : dict of (int, object) to Watched
        Names and attributes, by the id of the holder and the key.
    grads : list of Watched
        Tensors that have a gradient.
    held : list of (container, snapshot, str)
        Containers, a copy of each as it was, and their names.
    sizes : list of (object, tuple of str, str)
        Own objects and classes, which attributes they have, and their names.
    stand_ins : list of Watched
        Where something else stands while the function is traced: arrays of NumPy's, and what is `Refusing`.
    bound : dict of int to Watched
        By the id of a Tensor or array: the one place where it is found. There may be another one in the next
        call. Those that are found at two places must stay the same.
    generators : list
        Generators of random numbers.
    """

    def __init__(self, function: Any):
        self.tensors: dict[Any, str] = {}
        self.optimizers: list[Optimizer] = []
        self.watched: dict[tuple[int, Any], Watched] = {}
        self.grads: list[Watched] = []
        self.held: list[tuple[Any, Any, str]] = []
        self.sizes: list[tuple[Any, tuple[str, ...], str]] = []
        self.stand_ins: list[Watched] = []
        self.bound: dict[int, Watched] = {}
        self.generators: list[Any] = []
        self._words: set[str] = set()  # the names of attributes in all functions
        self._waiting: dict[str, list[tuple[Any, str]]] = {}  # objects whose attribute nobody named yet
        self._seen: dict[int, Any] = {}  # by their ids; it keeps them, so that no id is used twice
        self.visit(function, "")

    @property
    def reads_grad(self) -> bool:
        """Whether one of the functions names an attribute `grad`."""
        return "grad" in self._words

    def visit(self, value: Any, name: str) -> None:
        """Look at an object, and at all that it holds. A loop over a stack: nothing limits the depth."""
        stack = [_fixed(value, name)]
        while stack:
            place = stack.pop()
            value, name = place.value, place.name
            if isinstance(value, PLAIN):
                continue
            if not isinstance(place.holder, tuple) and _needs_stand_in(value):
                if place.holder is None:
                    raise CannotTrace(_why_refused(value, name))
                self.stand_ins.append(place)
            if id(value) in self._seen:
                bound = self.bound.get(id(value))
                both = (
                    bound is not None and isinstance(bound.holder, Value) and isinstance(place.holder, Value)
                )
                if not both:  # two Tensors often share a gradient, and have another in the next call
                    self.bound.pop(id(value), None)
                continue
            self._seen[id(value)] = value
            if len(self._seen) > _MOST:
                raise CannotTrace(
                    f"jit: the function reaches more than {_MOST:,} objects, the last by {name!r}; give it "
                    "the Tensors that it needs as arguments"
                )
            if isinstance(value, (Tensor, np.ndarray)) and (
                isinstance(place.holder, Value) or self.watched.get((id(place.holder), place.key)) is place
            ):
                self.bound[id(value)] = place
            stack.extend(reversed(list(self._inside(value, name))))

    def _inside(self, value: Any, name: str) -> Iterator[Watched]:
        """What an object holds: first by its kind, then the attributes of own objects."""
        kind = type(value)
        if isinstance(value, Value):
            self.tensors[value] = name
            if isinstance(value.grad, Value):
                self.grads.append(Watched(value, "grad", value.grad, f"{name}.grad"))
                yield self.grads[-1]
            return
        if isinstance(value, (Module, Schedule, Dataset)):  # whole: methods of the library read it
            yield from self._items(vars(value), name)
            yield _fixed(kind, name)
            return
        if isinstance(value, Optimizer):
            yield from self._of_optimizer(value, name)
            return
        if isinstance(value, (list, tuple, dict, set, frozenset, deque)):
            yield from self._items(value, name)
        elif isinstance(value, FunctionType) and not _is_library(value.__module__):
            yield from self._of_function(value)
        elif isinstance(value, MethodType):
            yield _fixed(value.__self__, name or "self")
            yield _fixed(value.__func__, name)
        elif isinstance(value, (staticmethod, classmethod)):
            yield _fixed(value.__func__, name)
        elif isinstance(value, property):
            yield _fixed(value.fget, name)
        elif isinstance(value, functools.partial):
            yield _fixed(value.func, name)
            yield _fixed(value.args, name or "functools.partial")
            yield _fixed(value.keywords, name)
        elif isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
            self.generators.append(value)
        elif isinstance(value, type):
            if _is_library(value.__module__):
                return
            for base in value.__bases__:
                yield _fixed(base, name)
        elif isinstance(value, ModuleType) and _is_library(value.__name__):
            return
        if _is_own(value) and hasattr(value, "__dict__"):
            self.sizes.append((value, tuple(vars(value)), name))
        for key in (*getattr(value, "__dict__", ()), *_slots_of(kind)):
            yield from self._attribute(value, key, name)
        yield _fixed(kind, name)

    def _of_optimizer(self, optimizer: Optimizer, name: str) -> Iterator[Watched]:
        self.optimizers.append(optimizer)
        yield _fixed(optimizer.groups, f"{name}.groups")
        for i, p in enumerate(optimizer.params):
            yield _fixed(p, f"{name}.params[{i}]")
            for key, x in optimizer.state.get(p, {}).items():
                yield _fixed(x, f"{name}.{key}[{i}]")
        for key, x in vars(optimizer).items():  # of an optimiser of one's own
            if key not in (*_OF_OPTIMIZERS, *optimizer._option_names):
                yield from self._watch(optimizer, key, x, f"{name}.{key}")
        yield _fixed(type(optimizer), name)

    def _watch(self, holder: Any, key: Any, value: Any, name: str) -> Iterator[Watched]:
        """Watch a name or an attribute, and look at what is there."""
        place = Watched(holder, key, value, name)
        if self.watched.setdefault((id(holder), key), place) is place and value is not ABSENT:
            yield place

    def _attribute(self, owner: Any, key: str, name: str) -> Iterator[Watched]:
        """Watch an attribute, as soon as one of the functions names it."""
        if not self._is_named(owner, key):
            self._waiting.setdefault(key, []).append((owner, name))
            return
        holder = vars(owner) if isinstance(owner, (list, dict, deque)) else owner
        value = Watched(holder, key, None, "").now()
        method = isinstance(value, (FunctionType, staticmethod, classmethod, property))
        if method or not isinstance(owner, type) or not key.startswith("__"):
            yield from self._watch(holder, key, value, f"{name}.{key}")

    def _is_named(self, owner: Any, key: str) -> bool:
        """Whether a function may read an attribute, by its name or by the like of `getattr`."""
        special, any_attribute = key.startswith("__"), bool(self._words & _ANY_ATTRIBUTE)
        if isinstance(owner, ModuleType):
            data = not isinstance(vars(owner)[key], (FunctionType, ModuleType, type))
            return not special and (key in self._words or (any_attribute and data))
        if key in self._words or key == "__wrapped__":
            return True
        called = key in _CALLED_BY_LIBRARY or (special and key != "__init__")
        return _is_own(owner) and (any_attribute or called)

    def _items(self, holder: Any, name: str) -> Iterator[Watched]:
        """What a container holds."""
        if not isinstance(holder, (tuple, frozenset)):
            self.held.append((holder, _snapshot(holder), name))
        is_set = isinstance(holder, (set, frozenset))
        for key, x in holder.items() if isinstance(holder, dict) else enumerate(holder):
            path = f"{name}.{key}" if isinstance(key, str) else f"{name}[{key}]"
            yield _fixed(x, name) if is_set else Watched(holder, key, x, path)

    def _of_function(self, function: FunctionType) -> Iterator[Watched]:
        """What a function reads by a name, and what it has of its own."""
        code = function.__code__
        new = _attributes_in(code) - self._words
        self._words |= new
        for word in sorted(self._waiting if new & _ANY_ATTRIBUTE else new & self._waiting.keys()):
            for owner, path in self._waiting.pop(word):
                yield from self._attribute(owner, word, path)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            yield from self._watch(cell, None, Watched(cell, None, None, "").now(), name)
        namespace = function.__globals__
        for name in _names_in(code):
            value = namespace.get(name, ABSENT)  # a name of Python's own, such as `len`, may be set later
            if not isinstance(value, ModuleType) or not _is_library(value.__name__):
                yield from self._watch(namespace, name, value, name)
        for key in ("__defaults__", "__kwdefaults__"):
            if getattr(function, key):
                yield from self._watch(function, key, getattr(function, key), function.__name__)
        for name in _imports_in(code):
            yield _fixed(sys.modules.get(name), name)

    def changed(self) -> str:
        """What is not as it was: a name; "" if all is."""
        for place in self.watched.values():
            if not same(place.now(), place.value):
                return place.name
        for owner, keys, name in self.sizes:
            if tuple(vars(owner)) != keys:
                return name
        return next((name for holder, then, name in self.held if then != holder), "")

    def restore(self) -> None:
        """Put things back as they were."""
        for place in self.watched.values():
            if place.now() is not place.value:
                place.put(place.value)
        for owner, keys, _ in self.sizes:
            for key in set(vars(owner)) - set(keys):
                Watched(owner, key, None, "").put(ABSENT)
        for holder, then, _ in self.held:
            holder.clear()
            if isinstance(holder, dict):
                holder.update({key: _plain(x) for key, x in then.items()})
            else:
                add = holder.update if isinstance(holder, set) else holder.extend
                add(map(_plain, then))

    def random_states(self) -> list[Any]:
        """Where generators of random numbers stand, also those of NumPy and Python that all share."""
        shared = np.random.get_state(), random.getstate()
        return [_as_bytes(state) for state in (*map(_state_of, self.generators), *shared)]


def _state_of(generator: Any) -> Any:
    """Where a generator of random numbers of NumPy's or Python's stands."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state()


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

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return other is self.value or same(other, self.value)

    def __hash__(self) -> int:  # for sets
        return hash(self.value)


def _plain(x: Any) -> Any:
    """What was given to `_exactly`."""
    return x.value if type(x) is Exactly else x


def _exactly(x: Any) -> Any:
    """What equals `x` alone: `x` itself, if it is not equal to anything else."""
    equals: Any = type(x).__eq__
    return x if equals is object.__eq__ or isinstance(x, str) else Exactly(x)


def _snapshot(holder: Any) -> Any:
    """A copy of a container, to compare with."""
    if isinstance(holder, dict):
        return {key: _exactly(x) for key, x in holder.items()}
    kind = next((kind for kind in (list, set, deque) if isinstance(holder, kind)), None)
    return holder if kind is None else kind(map(_exactly, holder))


def same(now: Any, then: Any) -> bool:
    """Whether a value is the same object, or an equal number or text of the same type: -0.0 is not 0.0, and
    nan is nan."""
    if now is then or type(now) is not type(then):
        return now is then
    if isinstance(then, (float, complex, np.inexact)):
        return repr(now) == repr(then)
    return isinstance(then, PLAIN) and bool(now == then)


@functools.cache
def _is_library(module: str | None) -> bool:
    """Whether a function or class comes from an installed package, which closes over nothing that changes."""
    name = (module or "").partition(".")[0]
    if (module or "").startswith("needle.apps."):  # programs that use the library
        return False
    if name in ("needle", "numpy", "builtins"):
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None:  # part of Python, or typed in by hand
        return name in sys.builtin_module_names
    return file.startswith(tuple({sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")}))


def _is_own(owner: Any) -> bool:
    """Whether all attributes of an object may matter: it is a class, or of no library's class."""
    return isinstance(owner, (type, *_OPEN)) or not _is_library(type(owner).__module__)


def _slots_of(cls: type) -> list[str]:
    """The attributes that own classes keep in `__slots__`."""
    own = [base for base in cls.__mro__ if not _is_library(base.__module__)]
    return [key for base in own for key, x in vars(base).items() if isinstance(x, MemberDescriptorType)]


def _fixed(value: Any, name: str) -> Watched:
    """A place where nothing else can be put."""
    return Watched(None, None, value, name)


def _needs_stand_in(value: Any) -> bool:
    """Whether something else stands for it while a function is traced."""
    inside = [value]
    while inside:
        x = inside.pop()
        if isinstance(x, np.ndarray) or _is_refused(x):
            return True
        inside += x if isinstance(x, tuple) else ()
    return False


def _is_refused(value: Any) -> bool:
    """Whether nobody can see what it would give: an iterator, or a function that remembers its results."""
    if isinstance(value, _CACHED):
        return not _is_library(value.__module__)
    kind = type(value)
    return hasattr(kind, "__next__") and _is_library(kind.__module__) and not isinstance(value, IOBase)


def _stand_in(value: Any, name: str, found: Trace) -> Any:
    """What stands for it then."""
    if isinstance(value, np.ndarray):
        return found.host_array(name, value, None)
    if isinstance(value, tuple):
        return in_container(lambda x: _stand_in(x, name, found) if _needs_stand_in(x) else x, value)
    return Refusing(_why_refused(value, name), getattr(value, "__wrapped__", None))


def _why_refused(value: Any, name: str) -> str:
    name = name or getattr(value, "__name__", "it")
    if isinstance(value, _CACHED):
        return (
            f"jit: {name} remembers its results by functools.lru_cache, and a compiled program cannot watch "
            f"what it remembers; call it outside and use the result, or call {name}.__wrapped__"
        )
    if hasattr(type(value), "__next__"):
        return (
            f"jit: {name} gives something else each time that it is asked, and a compiled program does not "
            "ask it again; take what it gives outside, and give it as an argument"
        )
    return (
        f"jit: {name} holds an array of NumPy's where it cannot be watched; give the array as an argument, "
        "or let the function read it by a name"
    )


def _attributes_in(code: CodeType) -> set[str]:
    """The names of attributes in a function, those in functions inside it included."""
    found = set(code.co_names)
    return found.union(*[_attributes_in(x) for x in code.co_consts if isinstance(x, CodeType)])


def _names_in(code: CodeType) -> list[str]:
    """The global names that a function reads or sets, those in functions inside it included."""
    names = [step.argval for step in get_instructions(code) if step.opname in _OF_NAMES]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _names_in(constant)
    return list(dict.fromkeys(names))


def _imports_in(code: CodeType) -> set[str]:
    """The modules that a function imports, functions inside it included."""
    found = {step.argval for step in get_instructions(code) if step.opname == "IMPORT_NAME"}
    return found.union(*[_imports_in(x) for x in code.co_consts if isinstance(x, CodeType)])


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
        _read_optimizers(around, found)
    finally:
        grads = [(x.tensor, x.tensor.grad) for x in found.inputs if x.tensor is not None]
        for undo in reversed(restore):
            undo()
    found.old_grads = {tensor for tensor, _ in grads if tensor.grad is not None}
    for tensor, grad_then in grads:
        if grad_then is not tensor.grad:
            found.new_grads.add(tensor)
            found.grads.append((tensor, None if tensor in found.stepped else grad_then))
    changed = changed or around.changed()
    if name := changed or ("" if _as_given(given, as_given) else "a container among its arguments"):
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


def _replace_options(optimizer: Optimizer, name: str, found: Trace, restore: list) -> None:
    """Let an optimiser's options and counts be Numbers."""
    options = {key: getattr(optimizer, key) for key in optimizer._option_names}
    groups = [dict(group) for group in optimizer.groups]
    counts, state = dict(optimizer._updates), {p: dict(memory) for p, memory in optimizer.state.items()}

    def replace(holder: dict, key: str, text: str, source: NumberSource) -> None:
        value = holder[key]
        stand_in: Any = found.number(text, value, source)
        if isinstance(value, bool) or not isinstance(value, (float, int)):
            found.answers[stand_in.text] = stand_in = value
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
