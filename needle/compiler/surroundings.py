"""Surroundings: what a compiled function finds by itself, and whether it is still as it was.

A program repeats what its function did in one call. So whatever the function reads besides its arguments, by
a name or by an attribute, has to be what it was in that call. A question that a program asks about this
before it computes is called a **guard**.

What is asked, where, and in which way: most calls go the quick way. `Compiled` remembers the program that ran
last and hands it the arguments; its function `call` begins with all guards in turn, and returns `AGAIN` at
the first that does not hold. Then, or if there are keywords, containers or flags among the arguments, the
call goes the slow way. The types, shapes, dtypes, devices and structure of the arguments are a key (`_taken`
in `compiled.py`). Under that key are the programs that were made so far, and each is asked whether it `fits`:
those are the same guards, without the computation. If none fits, the function is traced again. `CallWriter`
in `calls.py` writes the guards, each kind in a method: about the arguments (`_ask_which`, `_ask_inputs`),
about the surroundings (`_ask_surroundings`, `_ask_optimizers`), and about numbers that may change: their
types, and what Python asked about them while the function was traced (`_ask_numbers`, from `Trace.answers`).

These things are **watched**, in the function and in all functions of yours that it can reach. Where one of
them is different, the function is traced again.

- What a global name or a name of an enclosing function stands for, and the defaults of arguments. A name that
  is not set, such as `len` or another of Python's own, must stay so.
- Attributes that one of these functions names: those of your objects and classes, also in `__slots__`, of
  your modules and functions, of a `SimpleNamespace` or `argparse.Namespace`, and of objects from installed
  packages. If a function uses `getattr`, `vars` or `__dict__`, that means all attributes of your objects, and
  the data among those of your modules.
- All that modules, optimisers, schedules and data sets of this library hold.
- What is in a list, a dictionary, a set or a deque, however deep; in a `UserDict`, `UserList`, `UserString`
  or `ChainMap`; in a `MappingProxyType` or another view of a dictionary; in a `bytearray` or `array.array`.
- What Python asked about a number among the arguments or an optimiser's options. That is the answer of a
  comparison, and the number itself where it is made a text, an index, an axis or a key, or where a function
  of Python's or NumPy's computes with it.

A number that is different in each call so costs a program in each call, and the fifth warns; as an argument
it costs one. The numbers in Tensors and in NumPy's arrays are not among them: each call reads them where they
are then.

These things are **refused**, with a sentence that says what to do:

- to change what is watched, but for what a step of an optimiser updates;
- to draw random numbers by NumPy or Python;
- to use an iterator, or a function under `functools.lru_cache`, whose state nobody can see;
- to use what gives something else when it is asked again: the clocks of `time`, ``os.environ``, a file that
  is open for reading, a queue, an `Event` or `Semaphore` of threads, a `ContextVar`, a weak reference;
- to use any other container of Python or an installed package that can be written to by an index, such as a
  `WeakValueDictionary`, a `memoryview` or a table of pandas;
- an array of NumPy's that is an argument of a `functools.partial`, or in a `MappingProxyType`.

These things are **taken for constant**: modules of Python and of installed packages (``math.pi``), what their
functions and methods read by themselves (``datetime.now()``, the text of a `Path`, whether a lock is held, a
clock of a module that is imported inside the function), the state of their objects that no attribute shows
(what `ctypes` or a `NamedTemporaryFile` holds), the order of a dictionary, and the code of a function that
stays the same object. Of a number as above, ``type(n)`` is the class that stands for it, always: ask
``isinstance(n, int)``.

What a function does **to the world outside** happens when it is traced, and not in each call: what it prints,
logs, or writes to a file. So print what a compiled function returns, or run the function as it is.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import sysconfig
import time
import weakref
from argparse import Namespace
from array import array
from collections import ChainMap, UserDict, UserList, UserString, deque
from collections.abc import Iterator
from contextvars import ContextVar
from dis import get_instructions
from io import IOBase
from queue import Queue, SimpleQueue
from threading import Event, Semaphore
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor, Value
from ..data import Dataset
from ..modes import tracing
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from ..optim.schedules import Schedule

__all__ = ["ABSENT", "PLAIN", "Binding", "CannotTrace", "Refusing", "Surroundings", "same"]

_MOST = 100_000  # objects that a function may reach

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

#: Containers of Python's library that keep all they hold in attributes.
_WRAPPERS = (UserDict, UserList, UserString, ChainMap)

#: Containers whose content is compared as a whole.
_COPIED = (bytearray, array, MappingProxyType)

#: Those that can be written to by an index, and are watched.
_WRITABLE = (list, dict, deque, np.ndarray, *_WRAPPERS, *_COPIED)

_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_METHODS = (MethodType, BuiltinMethodType, MethodWrapperType)

#: What may give something else when it is asked again.
_UNSEEN = (Queue, SimpleQueue, Event, Semaphore, ContextVar, weakref.ref, weakref.WeakSet)

#: The same in the modules `time` and `os`.
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_OF_MODULES = frozenset({*_CLOCKS, *[f"{name}_ns" for name in _CLOCKS], "environ", "getenv", "urandom"})
_IN_MODULES = {id(vars(module)[name]) for module in (time, os) for name in _OF_MODULES & vars(module).keys()}

_OF_OPTIMIZERS = ("groups", "params", "state", "_updates", "_option_names")


class CannotTrace(RuntimeError):
    """A function does something that a compiled program could not repeat."""


class Binding(NamedTuple):
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
    def is_grad(self) -> bool:
        """Whether it is the gradient of a Tensor."""
        return isinstance(self.holder, Value)

    @property
    def _is_slot(self) -> bool:
        """Whether it is an attribute that is not in the holder's `__dict__`."""
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
        if self.is_grad or self._is_slot:
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
    """Stands for something that cannot be watched while a function is traced, and refuses to be used.

    For a module, it refuses only what gives something else each time. Other threads find it as it is.
    """

    def __init__(self, value: Any, name: str):
        self._value = value
        self._name = name
        if isinstance(value, _CACHED):
            self.__wrapped__ = value.__wrapped__  # the way out for a function that remembers its results

    def __getattr__(self, key: str) -> Any:
        value, is_module = self._value, isinstance(self._value, ModuleType)
        if tracing() is not None and (not is_module or key in _OF_MODULES):
            asked, name = (getattr(value, key), f"{self._name}.{key}") if is_module else (value, self._name)
            raise CannotTrace(why_refused(asked, name))
        return getattr(value, key)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """For `isinstance`: what it stands for."""
        return type(self._value)

    def __bool__(self) -> bool:
        return self.__getattr__("__bool__")() if tracing() is not None else bool(self._value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__getattr__("__call__")(*args, **kwargs)

    def __str__(self) -> str:
        return self.__getattr__("__str__")()

    def __format__(self, how: str) -> str:
        return self.__getattr__("__format__")(how)


def _passed_on(name: str) -> Any:
    """A method that `len`, `next` and their like ask for."""

    def method(self: Refusing, *args: Any) -> Any:
        try:
            return self.__getattr__(name)(*args)
        except AttributeError as error:  # as Python says it
            raise TypeError(str(error)) from None

    return method


for _name in ("iter", "next", "len", "getitem", "setitem", "delitem", "contains", "enter", "exit", "array"):
    setattr(Refusing, f"__{_name}__", _passed_on(f"__{_name}__"))


class Surroundings:
    """The objects that a function reaches besides its arguments, and what they hold.

    Attributes
    ----------
    tensors : dict of Tensor to str
        With the name by which each is reached.
    optimizers : list
    watched : dict of (int, object) to Binding
        Names and attributes, by the id of the holder and the key.
    grads : list of Binding
        Tensors that have a gradient.
    held : list of (container, snapshot, str)
        Containers, a copy of each as it was, and their names.
    sizes : list of (object, tuple of str, str)
        Own objects and classes, which attributes they have, and their names.
    stand_ins : list of Binding
        Where something else stands while the function is traced: arrays of NumPy's, and what is `Refusing`.
    bound : dict of int to Binding
        By the id of a Tensor or array: the one place where it is found. There may be another one in the next
        call. Those that are found at two places must stay the same.
    generators : list
        Generators of random numbers.
    """

    def __init__(self, function: Any):
        self.tensors: dict[Any, str] = {}
        self.optimizers: list[Optimizer] = []
        self.watched: dict[tuple[int, Any], Binding] = {}
        self.grads: list[Binding] = []
        self.held: list[tuple[Any, Any, str]] = []
        self.sizes: list[tuple[Any, tuple[str, ...], str]] = []
        self.stand_ins: list[Binding] = []
        self.bound: dict[int, Binding] = {}
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
            if not isinstance(place.holder, tuple) and needs_stand_in(value):
                if place.holder is None:
                    raise CannotTrace(why_refused(value, name))
                self.stand_ins.append(place)
                if _is_refused(value) and not isinstance(value, _CACHED):
                    continue
            if id(value) in self._seen:
                bound = self.bound.get(id(value))
                if bound is not None and not (bound.is_grad and place.is_grad):  # two Tensors may share one
                    del self.bound[id(value)]
                continue
            self._seen[id(value)] = value
            if len(self._seen) > _MOST:
                raise CannotTrace(
                    f"jit: the function reaches more than {_MOST:,} objects, the last by {name!r}; give it "
                    "the Tensors that it needs as arguments"
                )
            has_name = place.is_grad or self.watched.get((id(place.holder), place.key)) is place
            if isinstance(value, (Tensor, np.ndarray)) and has_name:
                self.bound[id(value)] = place
            stack.extend(reversed(list(self._inside(value, name))))

    def _inside(self, value: Any, name: str) -> Iterator[Binding]:
        """What an object holds: first by its kind, then the attributes of own objects."""
        kind = type(value)
        if isinstance(value, Value):
            self.tensors[value] = name
            if isinstance(value.grad, Value):
                self.grads.append(Binding(value, "grad", value.grad, f"{name}.grad"))
                yield self.grads[-1]
            return
        if isinstance(value, (Module, Schedule, Dataset, *_WRAPPERS)):  # whole: methods of libraries read it
            yield from self._items(vars(value), name)
            yield _fixed(kind, name)
            return
        if isinstance(value, Optimizer):
            yield from self._of_optimizer(value, name)
            return
        if isinstance(value, (list, tuple, dict, set, frozenset, deque, *_COPIED)):
            yield from self._items(value, name)
        elif isinstance(value, _VIEWS):
            yield _fixed(value.mapping, name)
        elif isinstance(value, FunctionType) and not _is_library(value.__module__):
            yield from self._of_function(value)
        elif isinstance(value, _METHODS):
            yield _fixed(value.__self__, name or "self")
            yield _fixed(getattr(value, "__func__", None), name)
        elif isinstance(value, (staticmethod, classmethod)):
            yield _fixed(value.__func__, name)
        elif isinstance(value, property):
            yield _fixed(value.fget, name)
        elif isinstance(value, (functools.partial, functools.partialmethod)):
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

    def _of_optimizer(self, optimizer: Optimizer, name: str) -> Iterator[Binding]:
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

    def _watch(self, holder: Any, key: Any, value: Any, name: str) -> Iterator[Binding]:
        """Watch a name or an attribute, and look at what is there."""
        place = Binding(holder, key, value, name)
        if self.watched.setdefault((id(holder), key), place) is place and value is not ABSENT:
            yield place

    def _attribute(self, owner: Any, key: str, name: str) -> Iterator[Binding]:
        """Watch an attribute, as soon as one of the functions names it."""
        if not self._is_named(owner, key):
            self._waiting.setdefault(key, []).append((owner, name))
            return
        holder = vars(owner) if isinstance(owner, (list, dict, deque)) else owner
        value = Binding(holder, key, None, "").now()
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

    def _items(self, holder: Any, name: str) -> Iterator[Binding]:
        """What a container holds."""
        if not isinstance(holder, (tuple, frozenset)):
            self.held.append((holder, _snapshot(holder), name))
        if isinstance(holder, (bytearray, array)):
            return
        is_fixed = isinstance(holder, (set, frozenset, MappingProxyType))
        is_mapping = isinstance(holder, (dict, MappingProxyType))
        for key, x in holder.items() if is_mapping else enumerate(holder):
            path = f"{name}.{key}" if isinstance(key, str) else f"{name}[{key}]"
            yield _fixed(x, path if is_mapping else name) if is_fixed else Binding(holder, key, x, path)

    def _of_function(self, function: FunctionType) -> Iterator[Binding]:
        """What a function reads by a name, and what it has of its own."""
        code = function.__code__
        new = _attributes_in(code) - self._words
        self._words |= new
        for word in sorted(self._waiting if new & _ANY_ATTRIBUTE else new & self._waiting.keys()):
            for owner, path in self._waiting.pop(word):
                yield from self._attribute(owner, word, path)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            yield from self._watch(cell, None, Binding(cell, None, None, "").now(), name)
        namespace = function.__globals__
        for name in _names_in(code):
            value = namespace.get(name, ABSENT)  # a name of Python's own, such as `len`, may be set later
            if not isinstance(value, ModuleType) or not _is_library(value.__name__):
                yield from self._watch(namespace, name, value, name)
            elif _is_refused(value):  # while it is traced; no call asks for it
                yield Binding(namespace, name, value, name)
        for key in ("__defaults__", "__kwdefaults__"):
            if getattr(function, key):
                yield from self._watch(function, key, getattr(function, key), function.__name__)
        for name in _imports_in(code):
            if not _is_library(name):
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
                Binding(owner, key, None, "").put(ABSENT)
        for holder, then, _ in self.held:
            if isinstance(then, SameContent):
                then.put_back(holder)
                continue
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


class SameContent:
    """Equal to a `bytearray`, an `array.array` or a `MappingProxyType` that holds what it was made of."""

    __slots__ = ("then",)

    def __init__(self, holder: Any):
        self.then = _snapshot(self._content(holder))

    def __eq__(self, other: object) -> bool:
        return self.then == self._content(other)

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def _content(holder: Any) -> Any:
        return dict(holder) if isinstance(holder, MappingProxyType) else bytes(memoryview(holder))

    def put_back(self, holder: Any) -> None:
        """Put the content back. A function cannot write to a `MappingProxyType`."""
        if not isinstance(holder, MappingProxyType) and self != holder:
            del holder[:]
            holder.extend(self.then) if isinstance(holder, bytearray) else holder.frombytes(self.then)


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
    if isinstance(holder, _COPIED):
        return SameContent(holder)
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


def _fixed(value: Any, name: str) -> Binding:
    """A place where nothing else can be put."""
    return Binding(None, None, value, name)


def needs_stand_in(value: Any) -> bool:
    """Whether something else stands for it while a function is traced."""
    return _first_to_replace(value) is not None


def _first_to_replace(value: Any) -> Any:
    """The value itself, or the first one in nested tuples, for which something else has to stand; or None."""
    inside = [value]
    while inside:
        x = inside.pop()
        if isinstance(x, np.ndarray) or _is_refused(x):
            return x
        inside += reversed(x) if isinstance(x, tuple) else ()
    return None


def _is_refused(value: Any) -> bool:
    """Whether nobody can see what it would give, or whether that is still the same."""
    if isinstance(value, _CACHED):
        return not _is_library(value.__module__)
    if isinstance(value, ModuleType):
        return value is time or value is os
    if isinstance(value, _UNSEEN) or id(value) in _IN_MODULES:
        return True
    if isinstance(value, _METHODS) and not isinstance(value.__self__, ModuleType):
        return _is_refused(value.__self__)
    kind = type(value)
    if not _is_library(kind.__module__):
        return False
    if isinstance(value, IOBase):
        return not value.closed and value.readable()
    return hasattr(kind, "__next__") or _is_unknown_container(value)


def _is_unknown_container(value: Any) -> bool:
    """Whether it can be written to by an index, and is none of the containers that are watched."""
    kind = type(value)
    is_other = not isinstance(value, _WRITABLE) and not kind.__module__.startswith("needle.")
    return is_other and hasattr(kind, "__setitem__") and not hasattr(kind, "__next__")


def why_refused(value: Any, name: str) -> str:
    value = _first_to_replace(value)
    name = name or getattr(value, "__name__", "it")
    if isinstance(value, _CACHED):
        return (
            f"jit: {name} remembers its results by functools.lru_cache, and a compiled program cannot watch "
            f"what it remembers; call it outside and use the result, or call {name}.__wrapped__"
        )
    if isinstance(value, np.ndarray):
        return (
            f"jit: {name} holds an array of NumPy's where it cannot be watched; give the array as an "
            "argument, or let the function read it by a name"
        )
    kind = type(value).__name__
    if _is_unknown_container(value):
        return (
            f"jit: {name} is a {kind}, and a compiled program cannot watch what is in it; take what is "
            "needed outside, and give it as an argument, or keep it in a list or a dictionary"
        )
    return (
        f"jit: {name} ({kind}) gives something else each time that it is asked, and a compiled program does "
        "not ask it again; take what it gives outside, and give it as an argument, and put into it outside "
        "what the function returns"
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
