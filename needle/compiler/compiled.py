"""`jit`: a function of Tensors becomes a compiled program."""

from __future__ import annotations

import copy
import functools
import inspect
import linecache
import warnings
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from types import MethodType
from typing import Any, overload

import numpy as np

from ..autograd import Tensor
from ..backend_selection import BACKEND
from ..modes import GRAD, mode, remember_lines, tracing
from ..nn.module import Module
from .cuda import CudaProgram
from .lower import in_order, pending_in
from .numpy_program import NumpyProgram
from .program import AGAIN, Program
from .stand_ins import CannotTrace
from .trace import (
    Fixed,
    Leaf,
    NewState,
    Trace,
    in_container,
    is_named_tuple,
    named_in,
    one_at_a_time,
    trace,
    without_tensors,
)

__all__ = ["CannotTrace", "Compiled", "jit"]

_MOST = 20  # programs of a function that are kept
_MANY = 5  # programs for arguments of the same kind, of which the user is told

_LATER: Any = object()  # in the place of a function: it comes when the result decorates it


@overload
def jit(
    function: Callable, *, static: Any = None, debug: bool | None = None, background: bool | None = None
) -> Compiled: ...
@overload
def jit(
    *, static: Any = None, debug: bool | None = None, background: bool | None = None
) -> Callable[[Callable], Compiled]: ...
def jit(
    function: Any = _LATER,
    *,
    static: Any = None,
    debug: bool | None = None,
    background: bool | None = None,
) -> Any:
    """Compile a function of Tensors.

    **The contract.** A compiled function is traced once for each structure, shape, dtype and device of its
    arguments. What needle's own objects hold (Tensors, modules, optimisers, schedules) is read anew in each
    call, wherever the function finds them. All else that Python reads is what it was when the function was
    traced.

    So a number or a NumPy array among the arguments may be another in each call, and so may the learning
    rate of an optimiser; a number that the function finds by a name may not. What the function does to the
    world outside, such as printing, happens when it is traced, and not in each call.

    Its results are constants. While it is traced, the Tensors that it uses hold no numbers: another thread
    that computes with them meanwhile gets an error, unless it calls a compiled function itself. Under
    ``NEEDLE_BACKEND=np`` nothing is compiled, and the function runs as it is.

    Parameters
    ----------
    function : callable
        It may be compiled already; with other options, that makes a new compiled one of the same function.
        Without a function, as in ``@ndl.jit(debug=True)``, the result is a decorator.
    static : str or sequence of str, optional
        Names of arguments that Python looks at: to branch, or as an index, an axis or a range. There is a
        program for each value of theirs.
    debug : bool, optional
        Trace anew in each call. Where the function would now do something else than in the call before, a
        warning says what, and in which of its lines.
    background : bool, optional
        Compile in the background. The function runs as it is until the program is ready, which then takes
        over. If Numba fails to compile it, there is a warning, and the function goes on as it is. Programs
        for a GPU are compiled at once all the same.

    Raises
    ------
    CannotTrace
        By the first call, also in the background, if the function does what a program could not repeat: it
        asks for the numbers of a Tensor, branches on a number that may change, or draws random numbers by
        NumPy or Python.
    TypeError
        If it is no function.
    ValueError
        If `static` names no argument.

    Examples
    --------
    >>> @ndl.jit
    ... def step(x, y):
    ...     loss = loss_fn(model(x), y)
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    """
    if function is _LATER:
        return functools.partial(jit, static=static, debug=debug, background=background)
    if not callable(function):
        raise TypeError(f"jit: needs a function, got {function!r}; write ndl.jit(f), or @ndl.jit above it")
    if debug:
        remember_lines()
    static = (static,) if isinstance(static, str) else static if static is None else tuple(static)
    known = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(known, Compiled):
        return Compiled(function, bool(debug), bool(background), static or ())
    options = (
        known.debug if debug is None else debug,
        known.background if background is None else background,
        known.static if static is None else static,
    )
    if known is not function:
        return Compiled(MethodType(known.function, function.__self__), *options)
    same = options == (known.debug, known.background, known.static)
    return known if same else Compiled(known.function, *options)


class Compiled:
    """A function that compiles itself for the arguments that it is called with.

    Attributes
    ----------
    function : callable
        The function as it was.
    """

    def __init__(self, function: Callable, debug: bool, background: bool, static: tuple[str, ...]):
        functools.update_wrapper(self, function)
        self.function = function
        self.debug = debug
        self.background = background
        self.static = static
        self._programs: list[Program] = []  # the one that ran last comes first
        self._newest: Program | None = None
        self._parameters = _parameters(function)
        self._is_told = False  # that there are many programs
        if unknown := [name for name in static if name not in self._parameters]:
            raise ValueError(
                f"jit: static names {unknown[0]!r}, but {self._name} has the arguments "
                f"{', '.join(self._parameters) or '(none)'}"
            )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __deepcopy__(self, memo: dict) -> Compiled:
        """A copy of the function, which compiles itself anew."""
        function = copy.deepcopy(self.function, memo)
        return Compiled(function, self.debug, self.background, self.static)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if BACKEND == "np" or tracing():  # another function is traced, and this one becomes part of it
            return self.function(*args, **kwargs)
        structure, leaves = self._taken(args, kwargs)
        for number, program in enumerate(self._programs):
            if program.structure == structure and self.may_call(program) and not self.debug:
                result = program.run(leaves)
                if result is not AGAIN:
                    if number:
                        self._programs = [program, *[x for x in self._programs if x is not program]]
                    return result
        with one_at_a_time:  # no other thread traces meanwhile
            program_ = self._program(structure, leaves)
            if program_ is not None and self.may_call(program_):
                result = program_.run(leaves)
                if result is not AGAIN:
                    return result
            return self.function(*args, **kwargs)

    def program_for(self, *args: Any, **kwargs: Any) -> Program | None:
        """The program for these arguments, made if there is none; nothing is computed.

        None if an optimiser has yet to make its state: it does so in its first step, which is not compiled.
        """
        if BACKEND == "np":
            return None
        with one_at_a_time:
            return self._program(*self._taken(args, kwargs))

    def _program(self, structure: Any, leaves: list[Any]) -> Program | None:
        known = [program for program in self._programs if program.structure == structure]
        for program in known:
            program.refresh(leaves)
            if not self.debug and program.fits(leaves) is not None:
                return program
        arguments, names = structure[0], [name for name, _ in structure[1]]
        try:
            found = trace(self.function, arguments, leaves, names, _names_in(self.function), self.debug)
        except NewState:
            return None
        if self.debug and known and (changed := difference(known[0].trace, found)):
            warnings.warn(f"jit: {self._name} {changed}", RuntimeWarning, stacklevel=3)
        program = program_type(found)(found, structure, leaves)
        self._programs = [program, *self._programs][: 1 if self.debug else _MOST]
        self._newest = program
        if len(known) + 1 == _MANY and not self._is_told and not self.debug:
            self._is_told = True
            warnings.warn(
                f"jit: {self._name} is compiled for the {_MANY}th time for arguments of the same kind. Each "
                "time that costs as much as the first. ndl.jit(f, debug=True) says what is different",
                RuntimeWarning,
                stacklevel=3,
            )
        return program

    def may_call(self, made: Any) -> bool:
        """Whether a program or a scan is compiled, or is to be when it is called.

        In the background mode, the first question is when compiling begins.
        """
        if not self.background or made.is_ready_at_once:
            return True
        task = made.task
        if task.error is not None and not task.is_told:
            task.is_told = True
            warnings.warn(
                f"jit: {self._name} cannot be compiled, and runs as it is: {task.error}",
                RuntimeWarning,
                stacklevel=3,
            )
        return task.is_ready

    def wait(self) -> None:
        """Wait until all that has been called so far is compiled, where that happens in the background."""
        for program in self._programs:
            for made in (program, program.scan):
                if made is not None and made.begun is not None:
                    made.begun.wait()

    def _taken(self, args: tuple, kwargs: dict) -> tuple[Any, list[Any]]:
        """What decides which program may fit: the arguments with a `Leaf` for each Tensor, array and number,
        what these look like, and the mode; and the leaves."""
        leaves: list[Any] = []
        looks: list[Any] = []
        names = self._parameters
        if len(args) > len(names):
            names = names + [f"argument_{i}" for i in range(len(names), len(args))]
        static = self.static
        shaped = tuple([
            Fixed(x) if name in static else _leaves_of(x, name, leaves, looks)
            for name, x in zip(names, args, strict=False)
        ])  # fmt: skip
        named = {
            name: Fixed(x) if name in static else _leaves_of(x, name, leaves, looks)
            for name, x in kwargs.items()
        }
        return ((shaped, named), looks, mode.get()[GRAD]), leaves

    @property
    def _name(self) -> str:
        """What messages call the function."""
        return getattr(self.function, "__name__", "").replace("<lambda>", "") or "the function"

    @property
    def source(self) -> str:
        """The generated source of the program that was made last; empty before the first."""
        return "" if self._newest is None else self._newest.source

    @property
    def program(self) -> Program | None:
        """The program that was made last; None before the first."""
        return self._newest


def _leaves_of(value: Any, name: str, leaves: list[Any], looks: list[Any]) -> Any:
    """An argument with a `Leaf` for each Tensor, array and number; what these look like goes to `looks`."""
    if isinstance(value, Tensor):
        for i, x in enumerate(leaves):
            if x is value:
                return Leaf(i)
        data = value._data
        looks.append((name, (data.shape, data.dtype, data.device, value.requires_grad)))
    elif isinstance(value, np.ndarray):
        looks.append((name, (value.shape, value.dtype)))
    elif type(value) in (int, float) or isinstance(value, np.number):
        value = value.item() if isinstance(value, np.number) else value
        looks.append((name, type(value)))
    elif type(value) in (list, tuple, dict) or is_named_tuple(value):
        names = iter(value if type(value) is dict else range(len(value)))
        return in_container(lambda x: _leaves_of(x, f"{name}_{next(names)}", leaves, looks), value)
    else:
        return Fixed(value)
    leaves.append(value)
    return Leaf(len(leaves) - 1)


def program_type(found: Trace) -> type[Program]:
    """The class of a program for the device on which a function computes."""
    returned: list[Any] = []
    without_tensors(found.result, returned, found)
    values = [x._data for x in returned if isinstance(x, Tensor)] + [x for _, x in found.writes]
    values += [found.data_of(grad) for _, grad in found.grads if grad is not None]
    used = set(in_order(pending_in(values), lambda x: pending_in(x.operands or ())))
    values += [cell for cell in [*[x.cell for x in found.inputs], *found.draws] if cell in used]
    devices = {x.device.name: x.device for x in values}
    if "cuda" in devices and len(devices) > 1:
        names = " and ".join(sorted(map(str, devices.values())))
        raise CannotTrace(
            f"jit: the function computes with Tensors on {names}; a program for a GPU computes there alone. "
            "Move all of them to one device before, with .to(device)"
        )
    if "cuda" in devices:
        return CudaProgram
    return NumpyProgram if devices.keys() == {"cpu_numpy"} else Program


def difference(before: Trace, now: Trace) -> str:
    """What a function does that it did not do in the call before, and in which line; "" if nothing."""
    for then, again in zip_longest(before.operations, now.operations):
        if (then and then[0]) != (again and again[0]):
            code, place = (again or then)[1:]
            lines = (line for start, stop, line in code.co_lines() if start <= place < stop and line)
            line, file = next(lines, code.co_firstlineno), code.co_filename
            text = linecache.getline(file, line).strip()
            where = f"line {line}" + f" of {Path(file).name}" * Path(file).exists()  # a cell is no file
            does, did = [x[0] if x else "nothing more" for x in (again, then)]
            return (
                f"does not do what it did in the call before, at `{text}` ({where}, in {code.co_name}). "
                f"Now it computes {does}; before, it computed {did}. Without debug=True it would go on as "
                "before. Give what changes as an argument"
            )
    return ""


def _names_in(function: Any) -> dict[Any, str]:
    """The Tensors that a function finds by its names, and these; only sources and messages show them."""
    found: dict[Any, str] = {}
    for name, x in named_in(function).items():
        if isinstance(x, Tensor):
            found.setdefault(x, name)
        elif isinstance(x, Module):
            for path, tensor in x._named_tensors():
                found.setdefault(tensor, f"{name}.{path}")
        elif type(x) in (list, tuple):
            found |= {y: f"{name}[{i}]" for i, y in enumerate(x) if isinstance(y, Tensor) and y not in found}
    return found


def _parameters(function: Callable) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function in C
        return []
