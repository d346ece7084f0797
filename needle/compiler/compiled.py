"""`jit`: a function of Tensors becomes a compiled program."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from ..autograd import Tensor
from ..backend_selection import BACKEND
from ..modes import GRAD, mode, remember_lines, tracing
from .cuda import CudaProgram
from .host import AGAIN
from .lower import in_order, pending_in
from .numpy_program import NumpyProgram
from .program import Program
from .stand_ins import CannotTrace
from .structures import Fixed, Leaf, mapped
from .trace import NewState, Trace, one_at_a_time, trace

__all__ = ["CannotTrace", "Compiled", "jit"]

_MOST = 20  # programs of a function that are kept
_MANY = 5  # programs for arguments of the same kind, of which the user is told, as of the last one kept


def jit(
    function: Any = ...,
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
    rate of an optimiser; a number that the function finds by a name may not. Other arguments are compared:
    plain values and collections by what they hold, all else by which object it is. What the function does to
    the world outside, such as printing, happens when it is traced, and not in each call. Generators of random
    numbers by NumPy and Python are noticed where the function finds them by name, among its arguments, and in
    modules and optimisers; what any other one draws is frozen.

    Its results are constants, and `backward` ends at its arguments: what these were computed from gets no
    gradient. It writes parameters in place, so another thread that reads one meanwhile may see half a step.
    While it is traced, the Tensors that it uses hold no numbers: another thread that computes with them
    meanwhile gets an error, unless it calls a compiled function itself. Under ``NEEDLE_BACKEND=np`` nothing
    is compiled, and the function runs as it is.

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
    static = (static,) if isinstance(static, str) else static if static is None else tuple(static)
    if function is ...:
        return functools.partial(jit, static=static, debug=debug, background=background)
    if not callable(function):
        raise TypeError(f"jit: needs a function, got {function!r}; write ndl.jit(f), or @ndl.jit above it")
    if debug:
        remember_lines()
    inner = getattr(function, "__func__", function)  # of a method, too
    known: Any = inner.options if isinstance(inner, Compiled) else ((), False, False)
    given = (static, debug, background)
    options: Any = tuple([old if new is None else new for old, new in zip(known, given, strict=True)])
    if isinstance(inner, Compiled):
        if inner is function and options == known:
            return function
        function = inner.function if inner is function else MethodType(inner.function, function.__self__)
    return Compiled(function, *options)


class Compiled:
    """A function that compiles itself for the arguments that it is called with.

    Attributes
    ----------
    function : callable
        The function as it was.
    static, debug, background
        The options of `jit`.
    """

    def __init__(self, function: Callable, static: tuple[str, ...], debug: bool, background: bool):
        functools.update_wrapper(self, function)
        self.function = function
        self.static, self.debug, self.background = self.options = static, debug, background
        self._programs: list[Program] = []  # the one that was used last comes first
        try:
            self._parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):  # a function in C
            self._parameters = []
        if unknown := [name for name in static if name not in self._parameters]:
            raise ValueError(
                f"jit: static names {unknown[0]!r}, but {self._name} has the arguments "
                f"{', '.join(self._parameters) or '(none)'}"
            )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> tuple:
        return Compiled, (self.function, *self.options)  # a copy compiles itself anew

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if BACKEND == "np" or tracing():  # another function is traced, and this one becomes part of it
            return self.function(*args, **kwargs)
        for number, program in enumerate(() if self.debug else self._programs):
            if not self.background or self.may_call(program):
                result = program.run(args, kwargs)
                if result is not AGAIN:
                    if number:
                        self._programs = [program, *[x for x in self._programs if x is not program]]
                    return result
        new = self.program_for(*args, **kwargs)
        result = new.run(args, kwargs) if new is not None and self.may_call(new) else AGAIN
        if result is AGAIN:
            with one_at_a_time:  # no other thread traces meanwhile
                return self.function(*args, **kwargs)
        return result

    def program_for(self, *args: Any, **kwargs: Any) -> Program | None:
        """The program for these arguments, made if there is none; nothing is computed.

        None if an optimiser has yet to make its state: it does so in its first step, which is not compiled.
        """
        if BACKEND == "np":
            return None
        with one_at_a_time:
            return self._program(args, kwargs)

    def _program(self, args: tuple, kwargs: dict[str, Any]) -> Program | None:
        structure, leaves = self._taken(args, kwargs)
        known = [program for program in self._programs if program.taken(args, kwargs) is not None]
        for program in known:
            program.refresh(leaves)
        fitting = [program for program in known if program.fits(leaves)]
        if fitting and not self.debug:
            return fitting[0]
        arguments, looks, _ = structure
        try:
            found = trace(self.function, arguments, leaves, [name for name, _ in looks], self.debug)
        except NewState:
            return None
        if self.debug and fitting:
            self._tell(difference(fitting[0].trace, found))
        elif len(known) + 1 == _MANY or len(self._programs) + 1 == _MOST:
            self._tell(
                f"is compiled for time number {len(self._programs) + 1}, each as costly as the first. "
                "ndl.jit(f, debug=True) says what is different, where the arguments look the same; and an "
                "argument that is no Tensor, array or number has to be the same object in each call"
            )
        if cut := [x.name for x, goes_on in found.ends if goes_on]:
            self._tell(
                f"gives {' and '.join(cut)} a gradient, but not the Tensors from which that was computed "
                "before the call. Compute it in the function, or give it detached"
            )
        program = program_type(found)(found, structure, leaves)
        self._programs = [program, *self._programs][: 1 if self.debug else _MOST]
        return program

    def _tell(self, what: str) -> None:
        if what:
            warnings.warn(f"jit: {self._name} {what}", RuntimeWarning, stacklevel=4)

    def may_call(self, made: Any) -> bool:
        """Whether a program or a scan is compiled, or is to be when it is called.

        In the background mode, the first question is when compiling begins.
        """
        if not self.background or made.is_ready_at_once:
            return True
        task = made.task
        if task.error is not None and not task.is_told:
            task.is_told = True
            self._tell(f"cannot be compiled, and runs as it is: {task.error}")
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

        def place(x: Any, name: str) -> Any:
            if isinstance(x, Tensor):
                for i, known in enumerate(leaves):
                    if known is x:
                        return Leaf(i)
                data = x._data
                look: Any = data.shape, data.dtype, data.device, x.requires_grad
            elif isinstance(x, np.ndarray):
                look = x.shape, x.dtype
            elif type(x) in (int, float) or isinstance(x, np.number):
                x = x.item() if isinstance(x, np.number) else x
                look = type(x)
            else:
                return Fixed(x)
            leaves.append(x)
            looks.append((name, look))
            return Leaf(len(leaves) - 1)

        def placed(x: Any, name: str) -> Any:
            return Fixed(x) if name in self.static else mapped(place, x, name)

        names = self._parameters
        if len(args) > len(names):
            names = names + [f"argument_{i}" for i in range(len(names), len(args))]
        positional = [*map(placed, args, names)]
        named = {name: placed(x, name) for name, x in kwargs.items()}
        return ((positional, named), looks, mode.get()[GRAD]), leaves

    @property
    def _name(self) -> str:
        """What messages call the function."""
        return getattr(self.function, "__name__", "").replace("<lambda>", "") or "the function"

    @property
    def program(self) -> Program | None:
        """The program that was used last; None before the first."""
        return self._programs[0] if self._programs else None

    @property
    def source(self) -> str:
        """The generated source of this program; empty before the first."""
        return self._programs[0].source if self._programs else ""


def program_type(found: Trace) -> type[Program]:
    """The class of a program for the device on which a function computes."""
    cells = in_order(pending_in(found.wanted), lambda cell: pending_in(cell.operands or ())) or found.cells
    devices = {x.device.name: x.device for x in (*cells, *found.draws) if x.device is not None}
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
    """What a function would now do that it did not do before, by its lines; "" if nothing."""
    for (*then, _), (*again, where) in zip(before.operations or (), now.operations or (), strict=False):
        if then != again:
            return (
                f"does not do what it did in the call before, at {where}. Now it computes {again[0]}; "
                f"before, it computed {then[0]}. Without debug=True it would go on as before. Give what "
                "changes as an argument"
            )
    return ""
