"""`scan`: a step of training over many batches, in one call.

A call of a compiled step takes a few microseconds before and after the computation: it asks whether the
program still fits, and makes Tensors of the results. For a small network, that is more than the computation.
Between two steps of a training, nothing changes but what the step itself changes. So `scan` asks once, and
then takes all steps: in machine code by a compiled loop, elsewhere one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import Tensor
from .background import Task, tell_if_long
from .codegen import Part
from .compiled import Compiled, jit
from .host import maker_of
from .program import Program, numba_runtime
from .structures import leaves_of, mapped
from .trace import one_at_a_time

__all__ = ["scan", "scan_is_ready"]

_compiled = functools.lru_cache(maxsize=20)(jit)


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
        What `step` returns, with a first axis that counts the steps. Numbers, True and False are stacked like
        Tensors, and a Tensor that the step changes is in it as it was after each step. Anything else, such as
        None or a text, comes once; it must be the same in all steps.

    Raises
    ------
    CannotTrace
        As for `jit`.
    TypeError, ValueError
        If `batches` are no Tensors or arrays with first axes of one length; or if a step returns what cannot
        be stacked on what came before. The steps until then count.

    Examples
    --------
    >>> losses = ndl.scan(step, X.reshape((25, 10, 2)), y.reshape((25, 10)))
    """
    count = _count_of(batches)
    compiled: Compiled = step if isinstance(step, Compiled) else _compiled(step)
    parts: list[Any] = []  # results of one step or of many, stacked
    done = 0
    while done < count:
        loop = _loop(compiled, batches, done)
        if loop is None:
            steps, found = None, compiled(*[_slice(x, done) for x in batches])
        else:
            steps, found = count - done, loop.run([x[done:] for x in batches], count - done)
        parts.append(mapped(functools.partial(_stacked, steps), found))
        form, before = (mapped(_form, part) for part in (parts[-1], parts[0]))
        if form != before:
            raise ValueError(
                f"scan: step {done} returns {form}, and those before it returned {before}, where tuples of "
                "numbers are shapes of Tensors. Results are stacked, so they need the same shapes and the "
                "same structure; what is neither Tensor nor number must be the same in all steps"
            )
        done += steps or 1
    return parts[0] if len(parts) == 1 else _concatenated(parts)


def scan_is_ready(step: Compiled, *batches: Any) -> bool:
    """Whether `scan` takes such batches in one call by now.

    It computes nothing. With ``jit(f, background=True)``, the first question is when compiling begins.
    """
    return _loop(step, batches, 0) is not None


def _loop(step: Compiled, batches: tuple, done: int) -> _Scan | _StepByStep | None:
    """The loop from batch number `done` on.

    None if there is none yet: an optimiser makes its state first, or it is compiled in the background.
    """
    program = step.program_for(*[_slice(x, done) for x in batches])
    if program is None or step.debug or not _can_scan(program):
        return None
    if program.scan is None:
        program.scan = (_StepByStep if program.is_ready_at_once else _Scan)(program)
    return program.scan if step.may_call(program.scan) else None


def _count_of(batches: tuple) -> int:
    """How many steps there are."""
    needed = "scan: needs batches that are Tensors or arrays of NumPy's, whose first axis counts the steps"
    for number, x in enumerate(batches):
        if not isinstance(x, (Tensor, np.ndarray)):
            raise TypeError(f"{needed}, got {type(x).__name__} as number {number}; use ndl.Tensor(…)")
    counts = {x.shape[0] if x.shape else 0 for x in batches}
    if len(counts) != 1 or counts == {0}:
        shapes = ", ".join(str(tuple(x.shape)) for x in batches) or "no batches"
        raise ValueError(f"{needed}, the same number in each and at least one, got {shapes}")
    return counts.pop()


def _slice(batches: Any, i: int) -> Any:
    """Batch number `i`."""
    return batches[i].detach() if isinstance(batches, Tensor) else batches[i]


def _stacked(steps: int | None, x: Any, _: str) -> Any:
    """What so many steps returned, with a first axis that counts them; what one step returned, if None."""
    if isinstance(x, Tensor):
        return x if steps else _tensor(x.numpy()[None], x.device)
    is_number = isinstance(x, (bool, int, float, np.number, np.bool_))  # it stands for all steps
    return _tensor(np.full(steps or 1, x)) if is_number else x


def _form(x: Any, _: str) -> Any:
    """What stacked results look like: the shape of each Tensor in a step, and anything else as it is."""
    return x.shape[1:] if isinstance(x, Tensor) else x


def _concatenated(parts: list[Any]) -> Any:
    """Results of one form as one, along the first axis."""
    columns = zip(*map(leaves_of, parts), strict=True)

    def joined(first: Any, _: str) -> Any:
        column = next(columns)
        if not isinstance(first, Tensor):
            return first
        return _tensor(np.concatenate([x.numpy() for x in column]), first.device)

    return mapped(joined, parts[0])


def _tensor(values: np.ndarray, device: Any = None) -> Tensor:
    return Tensor(values, device=device, dtype=values.dtype, requires_grad=False)


def _can_scan(program: Program) -> bool:
    """Whether all steps can be taken in one call: nothing between two steps may need Python.

    In machine code, the program must also be a single function that one thread runs.
    """
    parts, found = program.parts, program.trace
    is_one = len(parts) == 1 and isinstance(parts[0], Part) and parts[0].length is None
    if not (is_one or program.is_ready_at_once):
        return False  # several functions, or threads share its iterations
    if program.bound or program.returned_numbers:
        return False  # it writes its batch, another Tensor in each step, or returns numbers of the host
    after = {x.tensor: grad is not None for x, grad in found.grads}
    if found.grad_of or any(after.get(p, has) is not has for p, has in found.asked_grads.items()):
        return False  # a step reads the gradient that the step before has left
    as_they_came = [x for x in leaves_of(found.template) if isinstance(x, Tensor)]
    if any(x not in found.input_of or found.input_of[x].leaf is None for x in as_they_came):
        return False  # it is the same Tensor after each step, with other numbers in it
    return all(kind != "leaf" for kind, *_ in found.numbers.values())


class _StepByStep:
    """The steps of a program that computes one after the other by itself: on a GPU, and on `cpu_numpy`."""

    is_ready_at_once = True
    begun: Task | None = None  # what compiles it in the background

    def __init__(self, program: Any):
        self.program = program
        #: The sizes of all arrays that are others in each step, by their names.
        self.sizes = {buffer.name: buffer.size for buffer, x in program.given if x.leaf is not None}
        self.sizes |= {buffer.name: buffer.size for buffer, _ in (*program.draws, *program.results)}

    def run(self, batches: list[Any], count: int) -> Any:
        """Compute the step for each batch, without a question between two of them."""
        program = self.program
        with one_at_a_time, program.lock:
            arrays, storage = program.collect(batches, count)
            numbers = self._numbers(count)
            self.compute(program.on_device(arrays), numbers)
            self.set_counts(numbers[0], count)
            specs = [spec._replace(shape=(count, *spec.shape)) for _, spec in program.results]
            outcomes = [maker_of(spec)(x, None) for x, spec in zip(storage, specs, strict=True)]
            first = len(outcomes) - program.grad_count
            outcomes[first:] = [grad[count - 1].detach() for grad in outcomes[first:]]  # the last step's
            return program.finish(batches, outcomes, [])

    def _numbers(self, steps: int) -> list[list[Any]]:
        """The numbers in each of so many steps; their counts of updates grow."""
        program = self.program
        names = [name for name, (kind, *_) in program.trace.numbers.items() if kind == "count"]
        if not any(name in text for text in program.formulas for name in names):
            return [program.numbers([]) or []] * steps
        before = {optimizer: dict(optimizer._updates) for optimizer, _ in program.counts}
        found: list[Any] = []
        for _ in range(steps):
            found.append(program.numbers([]))
            self.set_counts(found[-1], 1)
        for optimizer, updates in before.items():
            optimizer._updates = updates
        return found

    def set_counts(self, first: list[Any], steps: int) -> None:
        """Add so many steps to the counts of updates; `first` are the numbers of the first of them."""
        counts = self.program.counts
        numbers = first[len(first) - len(counts) :]
        for ((optimizer, _), params), new in zip(counts.items(), numbers, strict=True):
            before = optimizer._updates.get(params[0], 0)
            optimizer._updates.update(dict.fromkeys(params, before + (new - before) * steps))

    def compute(self, arrays: dict[str, Any], numbers: list[list[Any]]) -> None:
        """Compute all steps, from all arrays and the numbers of each. If one fails, those before it count."""
        program = self.program
        for s, found in enumerate(numbers):
            given = dict(zip(program.number_names, found, strict=False))
            for name, size in self.sizes.items():
                given[name] = program.of_step(arrays[name], size * s, size)
            try:
                program.compute(arrays | given)
            except Exception:
                self.set_counts(numbers[0], s)
                raise


class _Scan(_StepByStep):
    """The steps of a program in machine code: a compiled loop calls its function."""

    is_ready_at_once = False

    def __init__(self, program: Program):
        super().__init__(program)
        self.part: Part = program.parts[0]
        part = self.part
        given = {name: f"part({name}, {size} * s, {size})" for name, size in self.sizes.items()}
        given |= {name: f"{name}[s]" for name in program.number_names}
        self.source = f"""def scan(steps, {", ".join(part.arguments)}):
    for s in range(steps):
        status = {part.name}({", ".join(given.get(name, name) for name in part.arguments)})
        if status: return s * {len(part.checks) + 1} + status
    return 0
"""
        self._step = program.compiled[part.name], program.types(part)
        numbers = program.number_names  # they come in arrays, with one number for each step
        kinds = [f"{kind}*" if name in numbers else kind for name, kind in part.arguments.items()]
        runtime = numba_runtime()
        self._types = runtime.types_of(["int64", *kinds])
        self._compiled = runtime.compile_source(self.source, "scan", program.compiled, note=part.source)

    @functools.cached_property
    def _kernel(self) -> Callable:
        step, types = self._step
        tell_if_long([(self.part.source, step), (self.source, self._compiled)])
        step.compile(types)  # first: see `task`
        runtime = numba_runtime()
        kernel = runtime.entry_point(self._compiled, self._types)
        alone = self.program.calls_small_products(self.part)
        return runtime.on_one_blas_thread(kernel) if alone else kernel

    @property
    def task(self) -> Task:
        """What compiles it in the background, together with the step; it begins when it is asked for.

        The loop's machine code has a copy of the step, which may round in other places. But the linker takes
        the step itself if that is there first. So the step is always compiled first, and a loop computes the
        same as single calls.
        """
        if self.begun is None:
            loop: tuple = self.source, "scan", self.part.source, self._types
            self.begun = Task(
                [self._step, (self._compiled, self._types)], [self.program.source_of(self.part), loop]
            )
        return self.begun

    def compute(self, arrays: dict[str, Any], numbers: list[list[Any]]) -> None:
        """Compute all steps in one call."""
        program, part = self.program, self.part
        for i, name in enumerate(program.number_names):
            arrays[name] = np.array([x[i] for x in numbers], part.arguments.get(name))
        status = self._kernel(len(numbers), *[arrays[name] for name in part.arguments])
        if status:
            done, failed = divmod(status, len(part.checks) + 1)
            self.set_counts(numbers[0], done)
            for name, size in self.sizes.items():
                arrays[name] = program.of_step(arrays[name], size * done, size)
            program.failed(part, failed, arrays)
