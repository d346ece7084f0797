"""`scan`: a step of training over many batches, in one call of machine code.

A call of a compiled step takes a few microseconds before and after the computation: it asks whether the
program still fits, and makes Tensors of the results. For a small network that is more than the computation.
Between two steps of a training nothing changes but what the step itself changes. So one function calls the
step for each batch, and asks once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numba
import numpy as np

from ..autograd import Tensor
from ..graph import Spec
from . import runtime
from .background import Task, tell_if_long
from .codegen import Part
from .compiled import Compiled, jit
from .program import Program, flat, make_tensor
from .trace import Same, in_container, is_named_tuple, one_at_a_time

__all__ = ["scan", "scan_is_ready"]

_compiled: WeakKeyDictionary[Any, Compiled] = WeakKeyDictionary()


def scan(step: Callable, *batches: Any) -> Any:
    """Call ``step(x, y, …)`` for each batch in turn, and return the results, stacked.

    It does what this loop does, without a return to Python between the steps::

        results = [step(*batch) for batch in zip(*batches)]

    Parameters
    ----------
    step : callable
        A function of Tensors, or what `jit` made of it. With ``jit(f, background=True)``, the steps are taken
        one by one until the loop around them is compiled.
    *batches : Tensor or numpy.ndarray
        Their first axis counts the steps: ``step`` is called with ``batches[0][i]`` and so on.

    Returns
    -------
    Tensor, or a structure of them
        What `step` returns, with a first axis that counts the steps: as for `jit`, that may be lists, tuples
        and dictionaries in each other. Numbers, True and False are stacked like Tensors, and a Tensor that
        the step changes is in it as it was after each step. Anything else, such as None or a text, comes
        once; it must be the same in all steps.

    Raises
    ------
    CannotTrace
        If `step` does what a program could not repeat, or returns what `jit` refuses.
    TypeError
        If something among `batches` is neither a Tensor nor an array of NumPy's.
    ValueError
        If there is no step, or the first axes have different lengths; or if a step returns what cannot be
        stacked on what came before. The steps until then count.

    Examples
    --------
    >>> losses = ndl.scan(step, X.reshape((25, 10, 2)), y.reshape((25, 10)))
    """
    count = _count_of(batches)
    if not isinstance(step, Compiled):
        if step not in _compiled:
            _compiled[step] = jit(step)
        step = _compiled[step]
    parts: list[Any] = []
    form: Any = None  # of what a step returns
    done = 0
    while done < count:
        loop = _loop(step, batches, done)
        if loop is None:
            parts.append(_each(_alone, step(*[_slice(x, done) for x in batches])))
            length = 1
        else:
            length = count - done
            found = loop.run([x[done:] for x in batches], length)
            parts.append(_each(functools.partial(_repeated, count=length), found))
        form = _form(parts[0]) if form is None else form
        if _form(parts[-1]) != form:
            raise ValueError(
                f"scan: step {done} returns {_form(parts[-1])}, and those before it returned {form}, where "
                "tuples of numbers are shapes of Tensors. Results are stacked, so they need the same shapes "
                "and the same structure; what is neither Tensor nor number must be the same in all steps"
            )
        done += length
    return parts[0] if len(parts) == 1 else _joined(parts)


def scan_is_ready(step: Compiled, *batches: Any) -> bool:
    """Whether `scan` takes such batches in one call by now.

    It computes nothing. With ``jit(f, background=True)``, the first question is when compiling begins.

    Parameters
    ----------
    step : Compiled
    *batches : Tensor or numpy.ndarray
        As for `scan`.
    """
    return _loop(step, batches, 0) is not None


def _loop(step: Compiled, batches: tuple, done: int) -> _Scan | None:
    """The compiled loop from batch number `done` on.

    None if there is none yet: an optimiser makes its state first, or it is compiled in the background.
    """
    program = step.program_for(*[_slice(x, done) for x in batches])
    if program is None or step.debug or not _can_scan(program):
        return None
    loop = _Scan.of(program)
    return loop if step.may_call(loop) else None


def _count_of(batches: tuple) -> int:
    """How many steps there are."""
    needed = "Tensors or arrays of NumPy's, whose first axis counts the steps"
    for number, x in enumerate(batches):
        if not isinstance(x, (Tensor, np.ndarray)):
            way_out = "; make one of it by ndl.Tensor(…)" if isinstance(x, (list, tuple)) else ""
            raise TypeError(
                f"scan: needs batches that are {needed}, got {type(x).__name__} as number {number}{way_out}"
            )
    shapes = ", ".join(str(tuple(x.shape)) for x in batches) or "no batches"
    if not batches or any(len(x.shape) == 0 for x in batches):
        raise ValueError(f"scan: needs batches that are {needed}, got {shapes}")
    lengths = [x.shape[0] for x in batches]
    if len(set(lengths)) > 1:
        said = " and ".join(map(str, dict.fromkeys(lengths)))
        raise ValueError(
            f"scan: needs batches with first axes of the same length, which counts the steps, got {said} "
            f"in {shapes}"
        )
    if lengths[0] == 0:
        raise ValueError(f"scan: needs batches for at least one step, got none in {shapes}")
    return lengths[0]


def _slice(batches: Any, i: int) -> Any:
    """Batch number `i`."""
    part = batches[i]
    return part.detach() if isinstance(part, Tensor) else part


def _can_scan(program: Program) -> bool:
    """Whether the program is a single function, all of whose numbers are known before the first step."""
    parts, found = program.parts, program.trace
    if len(parts) != 1 or not isinstance(parts[0], Part) or parts[0].length is not None:
        return False  # several functions, or threads share its iterations
    if program.has_bound_leaves or program.returned_numbers:
        return False  # it writes its batch, which is another Tensor in each step
    same: list[Any] = []  # Tensors that are returned as they come
    _each(lambda x: same.append(x.tensor) if type(x) is Same else None, program.template)
    if any(x not in found.input_of or found.input_of[x].leaf is None for x in same):
        return False  # it is the same Tensor after each step, with other numbers in it
    return all(kind != "leaf" for kind, *_ in found.numbers.values())


class _Scan:
    """The loop around the step of a program."""

    is_ready_at_once = False

    def __init__(self, program: Program):
        self.program = program
        self.begun: Task | None = None
        self.part: Part = program.parts[0]  # type: ignore[assignment]
        part = self.part
        sizes = program.sizes_of_step
        self.numbers = set(program.number_names)
        given = [
            f"part({name}, {sizes[name]} * s, {sizes[name]})"
            if name in sizes
            else f"{name}[s]"
            if name in self.numbers
            else name
            for name in part.arguments
        ]
        self.source = "\n".join(
            [
                f"def scan(steps, {', '.join(part.arguments)}):",
                "    for s in range(steps):",
                f"        status = {part.name}({', '.join(given)})",
                f"        if status: return s * {len(part.checks) + 1} + status",
                "    return 0",
                "",
            ]
        )
        self._compiled = runtime.compile_source(self.source, [], "scan", program.compiled, note=part.source)
        inner = zip(part.arguments, program.types(part), strict=True)
        self._types = (numba.int64, *[flat(str(x)) if name in self.numbers else x for name, x in inner])

    @classmethod
    def of(cls, program: Program) -> _Scan:
        """The loop for a program, made once."""
        if program.scan is None:
            program.scan = cls(program)
        return program.scan

    @functools.cached_property
    def _kernel(self) -> Callable:
        step = self.program.compiled[self.part.name]
        tell_if_long([(self.part.source, step), (self.source, self._compiled)])
        step.compile(self.program.types(self.part))  # first: see `task`
        kernel = runtime.entry_point(self._compiled, self._types)
        alone = self.program.calls_small_products(self.part)
        return runtime.on_one_blas_thread(kernel) if alone else kernel

    @property
    def task(self) -> Task:
        """What compiles it in the background, together with the step; it begins when it is asked for.

        The loop's machine code has a copy of the step, which may round in other places: the linker takes the
        step itself if that is there first. So it always is, and a loop does what single calls do.
        """
        if self.begun is None:
            step = self.program.compiled[self.part.name], self.program.types(self.part)
            loop: tuple = self.source, [], "scan", self.part.source, self._types
            self.begun = Task(
                [step, (self._compiled, self._types)], [self.program.source_of(self.part), loop]
            )
        return self.begun

    def run(self, batches: list[Any], count: int) -> Any:
        """Call the step for each batch."""
        program = self.program
        with one_at_a_time, program.lock:
            arrays = program.collected(batches, count)
            for buffer, _ in program.results:
                arrays[buffer.name] = np.empty(buffer.size * count, buffer.dtype)
            numbers = program.numbers_of_steps(count)
            for i, name in enumerate(program.number_names):
                arrays[name] = np.array([x[i] for x in numbers], self.part.arguments.get(name))
            status = self._kernel(count, *[arrays[name] for name in self.part.arguments])
            done, failed = divmod(status, len(self.part.checks) + 1) if status else (count, 0)
            program.set_counts(numbers[0], done)
            if status:
                for name, size in program.sizes_of_step.items():
                    arrays[name] = arrays[name][size * done :][:size]
                program.failed(self.part, failed, arrays)
            outcomes = [
                make_tensor(arrays[buffer.name], Spec((count, *spec.shape), spec.dtype, spec.device))
                for buffer, spec in program.results
            ]
            return program.finish(outcomes, [], batches, lambda grad: grad[count - 1].detach())


def _each(function: Callable, value: Any) -> Any:
    """Apply a function to all that is in nested containers."""
    if type(value) in (list, tuple, dict) or is_named_tuple(value):
        return in_container(lambda x: _each(function, x), value)
    return function(value)


def _alone(value: Any) -> Any:
    """What one step returns, as the result of a scan over this step alone."""
    if isinstance(value, Tensor):
        return _from_numpy(value.numpy()[None], value.device)
    return _repeated(value, 1)


def _repeated(value: Any, count: int) -> Any:
    """What a program returns for `count` steps: a number stands for all of them."""
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return _from_numpy(np.full(count, value))
    return value


def _form(value: Any) -> Any:
    """What stacked results look like: the shape of each Tensor in a step, and anything else as it is."""
    return _each(lambda x: x.shape[1:] if isinstance(x, Tensor) else x, value)


def _joined(parts: list[Any]) -> Any:
    """Results of one form as one, along the first axis."""
    first = parts[0]
    if isinstance(first, Tensor):
        return _from_numpy(np.concatenate([x.numpy() for x in parts]), first.device)
    if type(first) is dict:
        return {key: _joined([part[key] for part in parts]) for key in first}
    if isinstance(first, (list, tuple)):
        columns = zip(*parts, strict=True)
        return in_container(lambda _: _joined(list(next(columns))), first)
    return first


def _from_numpy(values: np.ndarray, device: Any = None) -> Tensor:
    return Tensor(values, device=device, dtype=values.dtype, requires_grad=False)
