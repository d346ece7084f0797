"""`jit`: a function of Tensors becomes a compiled program."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor
from ..backend_selection import BACKEND
from ..modes import mode, tracing
from .cuda import program_type
from .explain import explain
from .program import AGAIN, Program
from .trace import (
    CannotTrace,
    Leaf,
    NewState,
    Place,
    Surroundings,
    in_container,
    is_named_tuple,
    one_at_a_time,
    trace,
)

__all__ = ["CannotTrace", "Compiled", "jit"]

_MOST = 20  # programs for arguments of the same kind


def jit(function: Callable, *, debug: bool = False, background: bool = False) -> Compiled:
    """Compile a function of Tensors.

    The function runs once, so that its graph is known; see `compiler.trace`. From then on a program computes
    the same in one go. Where something is different than it was, such as a shape, a mode, or what a name
    stands for, the function runs once more, for another program.

    Its results are constants. While it is traced, the Tensors that it uses hold no numbers: another thread
    that computes with them meanwhile gets an error, unless it calls a compiled function itself. Under
    ``NEEDLE_BACKEND=np`` nothing is compiled, and the function runs as it is.

    Parameters
    ----------
    function : callable
    debug : bool
        Run the generated source as plain Python, slowly, and check each place that it reads: whether it lies
        within its array, and has been written before. For Tensors on `cpu_numpy` it always runs so.
    background : bool
        Compile in the background. The function runs as it is until the program is ready, which then takes
        over. If it cannot be compiled, there is a warning, and the function goes on as it is. Programs for a
        card are compiled at once all the same.
    """
    return function if isinstance(function, Compiled) else Compiled(function, debug, background)


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
        self._lock = threading.RLock()
        self._parameters: list[str] = _parameters(function)
        self._latest: Callable | None = None
        self._count = 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

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
            name = getattr(self.function, "__name__", "the function")
            warnings.warn(
                f"jit: {name} cannot be compiled, and runs as it is: {task.error}",
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
        keys: list[Any] = [mode.get()[1]]
        names = self._parameters + [f"argument_{i}" for i in range(len(self._parameters), len(args))]
        shaped = tuple([_taken(x, name, leaves, keys) for name, x in zip(names, args, strict=False)])
        named = {name: _taken(x, name, leaves, keys) for name, x in kwargs.items()}
        values = [leaf.value for leaf in leaves]
        with self._lock:
            known = self._programs.setdefault((*keys, *kwargs), [])
            program = next((program for program in known if program.fits(values)), None)
            if program is None:
                with one_at_a_time:
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
            return program, values

    def _remember(self, program: Any, args: tuple, kwargs: dict, values: list) -> None:
        """Try this program first the next time, if the arguments are its leaves as they come."""
        simple = not kwargs and len(args) == len(values)
        simple = simple and all(a is b for a, b in zip(args, values, strict=True))
        with self._lock:
            self._latest, self._count = (program.call, len(args)) if simple else (None, 0)

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
        name = getattr(self.function, "__name__", "").replace("<lambda>", "") or "the function"
        if BACKEND == "np":
            return f"{name} runs as it is: with NEEDLE_BACKEND=np, NumPy computes, and nothing is compiled."
        if self.program is None:
            return f"{name} is not compiled yet: call it once, and ask again."
        return explain(self.program, name)


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
    """An argument with a `Place` for each Tensor, array and number in it.

    What decides whether a program fits, such as a shape, is added to `keys`.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, (Tensor, np.ndarray)):
        known = next((i for i, leaf in enumerate(leaves) if leaf.value is value), None)
        if known is not None:
            keys.append(("the same", known))
            return Place(known)
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
    return Place(len(leaves) - 1)
