"""`jit`: a function of Tensors becomes a compiled program."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple, overload

import numpy as np

from ..autograd import Tensor
from ..backend_selection import BACKEND
from ..modes import GRAD, mode, tracing
from .cuda import program_type
from .explain import explain
from .program import AGAIN, Program
from .surroundings import ABSENT, same
from .trace import (
    CannotTrace,
    Leaf,
    LeafIndex,
    NewState,
    Surroundings,
    in_container,
    is_named_tuple,
    one_at_a_time,
    trace,
)

__all__ = ["CannotTrace", "Compiled", "jit"]

_MOST = 20  # programs for arguments of the same kind
_MANY = 5  # such programs, of which the user is told

_LATER: Any = object()  # in the place of a function: it comes when the result decorates it


@overload
def jit(function: Callable, *, debug: bool | None = None, background: bool | None = None) -> Compiled: ...
@overload
def jit(*, debug: bool | None = None, background: bool | None = None) -> Callable[[Callable], Compiled]: ...
def jit(function: Any = _LATER, *, debug: bool | None = None, background: bool | None = None) -> Any:
    """Compile a function of Tensors.

    The function runs once, so that its graph is known; see `compiler.trace`. From then on a program computes
    the same in one go. Where something is different than it was, such as a shape, a mode, or what a name
    stands for, the function runs once more, for another program. At the fifth program for arguments of the
    same kind there is a warning, which says what is different each time.

    A number among the arguments, or an option of an optimiser, may be another in each call; arithmetic with
    it is computed anew. Where Python compares it, there is a program for each answer. Where Python needs the
    number itself, as in ``range(n)``, ``x[n]``, ``math.cos(n)``, ``f"{n}"`` or ``n in {1, 2}``, there is a
    program for each number. Ask what it is by ``isinstance(n, int)``: ``type(n)`` is neither int nor float
    then.

    What the function does to the world outside happens when it is traced, and not in each call: what it
    prints, logs, or writes to a file. So print what it returns, or run the function as it is.

    Its results are constants. While it is traced, the Tensors that it uses hold no numbers: another thread
    that computes with them meanwhile gets an error, unless it calls a compiled function itself. Under
    ``NEEDLE_BACKEND=np`` nothing is compiled, and the function runs as it is.

    Parameters
    ----------
    function : callable
        It may be compiled already; with other options, that makes a new compiled one of the same function.
        Without a function, as in ``@ndl.jit(debug=True)``, the result is a decorator.
    debug : bool, optional
        Run the generated source as plain Python, slowly, and check each place that it reads: whether it lies
        within its array, and has been written before. For Tensors on `cpu_numpy` it always runs so.
    background : bool, optional
        Compile in the background. The function runs as it is until the program is ready, which then takes
        over. If Numba fails to compile it, there is a warning, and the function goes on as it is. Programs
        for a GPU are compiled at once all the same.

    Raises
    ------
    CannotTrace
        By the first call, also in the background, if the function does what a program could not repeat.
    TypeError
        If it is no function.
    """
    if function is _LATER:
        return functools.partial(jit, debug=debug, background=background)
    if not callable(function):
        raise TypeError(f"jit: needs a function, got {function!r}; write ndl.jit(f), or @ndl.jit above it")
    known = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(known, Compiled):
        return Compiled(function, bool(debug), bool(background))
    debug = known.debug if debug is None else debug
    background = known.background if background is None else background
    if known is not function:
        return Compiled(MethodType(known.function, function.__self__), debug, background)
    is_same = (debug, background) == (known.debug, known.background)
    return known if is_same else Compiled(known.function, debug, background)


class Compiled:
    """A function that compiles itself for the arguments that it is called with.

    Attributes
    ----------
    function : callable
        The function as it was.
    """

    def __init__(self, function: Callable, debug: bool = False, background: bool = False):
        functools.update_wrapper(self, function)
        self.function = function
        self.debug = debug
        self.background = background
        self._programs: dict[tuple, list[Program]] = {}
        self._newest: Program | None = None
        self._parameters: list[str] = _parameters(function)
        self._latest: Callable | None = None
        self._count = 0
        self._is_told = False  # that there are many programs

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._latest is not None and not kwargs and len(args) == self._count:
            result = self._latest(*args)
            if result is not AGAIN:
                return result
        return self._find(args, kwargs)

    def _find(self, args: tuple, kwargs: dict) -> Any:
        """Call the program that fits, or make one."""
        if tracing():  # another function is traced, and this one becomes part of it
            return self.function(*args, **kwargs)
        program, values = self._program(args, kwargs)
        result = self._result(program, values)
        if result is AGAIN:
            with one_at_a_time:  # no other thread traces meanwhile, or runs the program while this one writes
                if self.background:  # it may be ready by now
                    result = self._result(program, values)
                if result is AGAIN:
                    return self.function(*args, **kwargs)
        self._remember(program, args, kwargs, values)
        return result

    def _result(self, program: Program | None, values: list[Any]) -> Any:
        """What a program computes; `AGAIN` if there is none yet, or if another thread made it unfit."""
        return program.run(values) if program is not None and self.may_call(program) else AGAIN

    def may_call(self, made: Any) -> bool:
        """Whether a program or a scan is compiled, or is to be when it is called.

        In the background mode, the first time is when it begins to be compiled.
        """
        if not self.background:
            return True
        task = made.task
        if task.error is not None and not task.is_told:
            task.is_told = True
            warnings.warn(
                f"jit: {self._name} cannot be compiled, and runs as it is: {task.error}",
                RuntimeWarning,
                stacklevel=4,
            )
        return task.is_ready

    def wait(self) -> None:
        """Wait until all that has been called so far is compiled, where that happens in the background."""
        for program in [program for known in self._programs.values() for program in known]:
            for made in (program, program.scan):
                if made is not None and made.begun is not None:
                    made.begun.finished.wait()

    def program_for(self, *args: Any, **kwargs: Any) -> Program | None:
        """The program for these arguments, compiled if there is none; nothing is computed.

        None if an optimiser has yet to make its state: it does so in its first step, which is not compiled.
        """
        return self._program(args, kwargs)[0]

    def _program(self, args: tuple, kwargs: dict) -> tuple[Program | None, list[Any]]:
        if BACKEND == "np":
            return None, []
        leaves: list[Leaf] = []
        keys: list[Any] = [mode.get()[GRAD]]
        names = self._parameters + [f"argument_{i}" for i in range(len(self._parameters), len(args))]
        shaped = tuple([_taken(x, name, leaves, keys) for name, x in zip(names, args, strict=False)])
        named = {name: _taken(x, name, leaves, keys) for name, x in kwargs.items()}
        values = [leaf.value for leaf in leaves]
        # The only lock here: were there one more, two threads could wait for each other.
        with one_at_a_time:
            known = self._programs.setdefault((*keys, *kwargs), [])
            program = next((program for program in known if program.fits(values)), None)
            if program is None:
                around = Surroundings(self.function)
                around.visit((shaped, named), "arguments")
                try:
                    found = trace(self.function, shaped, named, leaves, around)
                except NewState:
                    return None, values
                program = program_type(found)(found, around, values, self.debug)
                known.insert(0, program)
                self._newest = program
                del known[_MOST:]
                if len(known) == _MANY and not self._is_told and not program.debug:
                    self._is_told = True
                    warnings.warn(
                        f"jit: {self._name} is compiled for the {_MANY}th time for arguments of the same kind"
                        f"{_difference(known[1], program)}. Each time that costs as much as the first",
                        RuntimeWarning,
                        stacklevel=4,
                    )
            return program, values

    def _remember(self, program: Any, args: tuple, kwargs: dict, values: list) -> None:
        """Try this program first the next time, if the arguments are its leaves as they come."""
        simple = not kwargs and len(args) == len(values)
        simple = simple and all(a is b for a, b in zip(args, values, strict=True))
        with one_at_a_time:
            self._latest, self._count = (program.call, len(args)) if simple else (None, 0)

    @property
    def _name(self) -> str:
        """What messages call the function."""
        return getattr(self.function, "__name__", "").replace("<lambda>", "") or "the function"

    @property
    def source(self) -> str:
        """The generated source of the program that was compiled last; empty before the first."""
        return "" if self.program is None else self.program.source

    @property
    def program(self) -> Program | None:
        """The program that was compiled last; None before the first."""
        return self._newest

    def explain(self) -> str:
        """What the compiler made of the function, in a few sentences: what is fused, what is not, and why."""
        name = self._name
        if BACKEND == "np":
            return f"{name} runs as it is: with NEEDLE_BACKEND=np, NumPy computes, and nothing is compiled."
        if self.program is None:
            return f"{name} is not compiled yet: call it once, and ask again."
        return explain(self.program, name)


def _difference(before: Program, program: Program) -> str:
    """What is different than when another program was made, and the way out; empty if that is not known."""
    way_out = "give what changes as an argument"
    then, now = before.around, program.around
    for key, place in now.watched.items():
        old = then.watched.get(key)
        is_fixed = now.bound.get(id(place.value)) is not place
        if old is not None and is_fixed and not same(old.value, place.value):
            return f", because {place.name} was {_short(old.value)} and is {_short(place.value)}: {way_out}"
    snapshots = {id(holder): snapshot for holder, snapshot, _ in then.held}
    for holder, _, name in now.held:
        old = snapshots.get(id(holder))
        if old is not None and old != holder:
            is_longer = len(old) != len(holder)
            what = f"had length {len(old)} and has {len(holder)}" if is_longer else "holds something else"
            return f", because {name} {what}: {way_out}, or keep it where the function does not reach it"
    for text, answer in program.trace.answers.items():
        old = before.trace.answers.get(text, answer)
        if not same(old, answer):
            return (
                f", because {text} was {_short(old)} and is {_short(answer)}, which Python asked for: "
                "compute with it, or see that it has few values"
            )
    return ""


def _short(value: Any) -> str:
    """A value for a message."""
    text = "not set" if value is ABSENT else repr(value)
    return text if len(text) <= 40 else f"another {type(value).__name__}"


def _parameters(function: Callable) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function in C
        return []


class _Is(NamedTuple):
    """Part of a key: this very object, which the key keeps alive."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is _Is and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _taken(value: Any, name: str, leaves: list[Leaf], keys: list[Any]) -> Any:
    """An argument with a `LeafIndex` for each Tensor, array and number in it.

    What decides whether a program fits, such as a shape, is added to `keys`.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, (Tensor, np.ndarray)):
        known = next((i for i, leaf in enumerate(leaves) if leaf.value is value), None)
        if known is not None:
            keys.append(("the same", known))
            return LeafIndex(known)
        keys += (type(value), value.shape, value.dtype)
        keys += (value.device, value.requires_grad) if isinstance(value, Tensor) else ()
    elif type(value) in (int, float):
        keys.append(type(value))
    elif type(value) in (list, tuple, dict) or is_named_tuple(value):
        keys += (type(value), len(value), *(value if type(value) is dict else ()))
        names = iter(value if type(value) is dict else range(len(value)))
        return in_container(lambda x: _taken(x, f"{name}_{next(names)}", leaves, keys), value)
    else:
        keys.append((type(value), value) if isinstance(value, (bool, str, bytes)) else _Is(value))
        return value
    leaves.append(Leaf(value, name))
    return LeafIndex(len(leaves) - 1)
