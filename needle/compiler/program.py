"""Program: one trace as a function that runs.

A call of a program has three parts. First it asks whether needle's objects still have the shapes, modes and
options of the traced call (`fits`). Then it collects the arrays and numbers, and calls the compiled source.
Last it puts the results where the function would have put them. For ``layer(x) = relu(x @ W + b)`` the arrays
are those of x, which comes with the call, those of W and b, which the function finds by itself, and a new
one for the result.

Tensors that a program writes, such as parameters, have their numbers in its own storage, side by side, and
are updated in place. Somebody may still hold the value of before, as a snapshot by `state_dict` does. Then it
is theirs, and the program takes a copy for itself.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable
from math import inf, nan
from operator import itemgetter
from typing import Any

import numba
import numpy as np

from .. import autograd
from ..autograd import Tensor, Value
from ..backend_ndarray.blas import ON_ONE_THREAD
from ..backend_ndarray.kernel_calls import check_number
from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from ..backend_ndarray.strides import compact_strides
from ..backend_ndarray.views import assemble, new_array
from ..backend_selection import NDArray, default_device
from ..graph import Spec
from ..modes import SCOPE, mode
from ..nn.module import Module
from . import runtime
from .background import Task, tell_if_long
from .codegen import Names, Part, write_part
from .lower import Access, Buffer, Call, Nest, lower
from .schedule import LoopSchedule, schedule
from .simplify import simplify
from .stand_ins import Number
from .structures import Fixed, Leaf, filled, is_plain, mapped
from .trace import Input, Trace

#: What a call returns if the program does not fit: the caller looks for another one, or traces again.
AGAIN: Any = object()

_ALIGNED = 16  # numbers: storage of an array begins at a multiple of it


class Program:
    """One trace of a function, compiled.

    Parameters
    ----------
    found : Trace
    structure : tuple
        What a call's arguments have to look like; see `jit`.
    leaves : list
        The Tensors, arrays and numbers among the arguments of the traced call.

    Attributes
    ----------
    source : str
        The generated source.
    """

    on_gpu = False
    schedule_type: type[LoopSchedule] = LoopSchedule
    is_ready_at_once = False  # whether nothing is to be compiled
    has_blas = True  # whether large products are left to BLAS
    accumulates = True  # and added to what is there

    def __init__(self, found: Trace, structure: Any, leaves: list[Any]):
        self.trace = found
        self.structure = structure
        self.lock = threading.RLock()
        self.scan: Any = None  # the loop around it; see `scanning.py`
        self.begun: Task | None = None
        self.compiled: dict[str, Any] = {}  # for each part by its name, what Numba compiles
        self._kernels: list[Any] | None = None
        self._names = Names()
        self._lower(found, leaves)
        self._place()
        self._write()
        self._prepare()

    # From the trace to nests

    def _lower(self, found: Trace, leaves: list[Any]) -> None:
        names = self._names
        cells = {x.cell: names.unique(x.name) for x in found.inputs}
        cells |= {cell: names.unique("random") for cell in found.draws}
        returned = found.returned
        self.returned_numbers = [x for x in returned if not isinstance(x, Tensor)]
        self._is_number = [not isinstance(x, Tensor) for x in returned]
        self._with_grad = [x for x, g in found.grads if g is not None]
        self._without_grad = [x for x, g in found.grads if g is None]
        count = len(returned) - len(self.returned_numbers)
        outcomes = found.wanted[: count + len(self._with_grad)]
        low = lower(
            found.wanted,
            cells,
            self.has_blas and (self.on_gpu or bool(runtime.routines())),
            self.on_gpu,
        )
        steps: list[Nest | Call] = low.steps
        self._checks = {  # Numbers beside whole numbers, which may not hold them: see `check_number`
            (x.function, x.out.buffer.dtype, number.text, x.reads[-1] is number): None
            for x in steps
            if isinstance(x, Nest) and x.function in SCALAR_FUNCTIONS and x.out.buffer.dtype.kind != "f"
            for number in x.numbers
            if isinstance(number, Number)
        }

        self._inputs = [(low.arrays[x.cell]._handle, x) for x in found.inputs]
        self._draws = [(low.arrays[cell]._handle, cell.op.compute) for cell in found.draws]  # type: ignore[union-attr]
        self.results: list[tuple[Buffer, Spec]] = []
        for i, value in enumerate(outcomes):
            array = low.arrays[value]
            buffer = Buffer(array.size, array.dtype, names.unique("result" if i < count else "grad"))
            buffer.is_ours = False
            steps += _copy(array, buffer)
            self.results.append((buffer, Spec(array.shape, array.dtype, value.device)))

        #: Arguments that have to be the same Tensor in each call, because the program writes it, or because
        #: the function finds it by another name as well.
        self.bound: dict[int, Tensor] = {}
        for _, x in self._inputs:
            if x.leaf is not None and x.tensor is leaves[x.leaf]:
                self.bound[x.leaf] = x.tensor
        buffer_of = {x.cell: buffer for buffer, x in self._inputs}
        self.states: list[tuple[Tensor, Buffer]] = []
        writes = []
        for x, value in found.writes:
            array, target = low.arrays[value], buffer_of[x.cell]
            if array._handle is target and array._compact:
                continue
            if not array._handle.is_ours:  # an input, which may be written itself: read it before
                middle = Buffer(array.size, array.dtype)
                steps += _copy(array, middle)
                array = array_over(middle, array.shape, array.device)
            writes += _copy(array, target)
            if x.leaf is not None:
                self.bound[x.leaf] = leaves[x.leaf]
            self.states.append((x.tensor if x.leaf is None else leaves[x.leaf], target))
        wanted = {buffer for buffer, _ in self.results} | {buffer for _, buffer in self.states}
        self._schedule([*steps, *writes], wanted)

    def _schedule(self, steps: list[Nest | Call], wanted: set[Buffer]) -> None:
        self.nests = simplify(steps, wanted, self.accumulates)
        self.plan = schedule(self.nests, self.schedule_type)

    @property
    def _has_parts(self) -> bool:
        """Whether the source is of several functions."""
        return sum(not isinstance(segment, Call) for segment in self.plan.segments) > 1

    # Where everything is stored

    def _name(self) -> dict[Buffer, None]:
        """Name all buffers that are used, and return them."""
        used: dict[Buffer, None] = {}
        self._formulas: dict[str, str] = {}  # the formula of a Number, and its name
        for step in self.nests:
            if isinstance(step, Call):
                used |= dict.fromkeys(step.read + step.written)
                continue
            used |= dict.fromkeys(x.buffer for x in step.accesses)
            for x in step.numbers:
                if isinstance(x, Number) and x.text not in self._formulas:
                    self._formulas[x.text] = self._names.unique(x.text if x.text.isidentifier() else "number")
        makers = {
            step.out.buffer: step.maker.op
            for step in self.nests
            if isinstance(step, Nest) and step.maker is not None
        }
        for buffer in used:
            if not buffer.name:
                maker = makers.get(buffer)
                buffer.name = self._names.unique("value") if maker is None else self._names.numbered(maker)
        written = {buffer for _, buffer in self.states}
        self._given = [(buffer, x) for buffer, x in self._inputs if buffer in used and buffer not in written]
        return used

    def _place(self) -> None:
        """Give all buffers places in the program's storage."""
        used = self._name()
        self._places: dict[Buffer, tuple[str, int]] = {}  # in which storage a buffer is, and where it begins
        self._storage: dict[str, Any] = dict(runtime.routines())  # arguments that are always the same
        for kind, buffers in (
            ("state", [buffer for _, buffer in self.states]),
            ("work", [buffer for buffer in self.plan.work if buffer not in self.plan.local]),
        ):
            sizes: dict[np.dtype, int] = {}
            for buffer in buffers:
                start = sizes.get(buffer.dtype, 0)
                name = kind if buffer.dtype == np.float32 else f"{kind}_{buffer.dtype}"
                self._places[buffer] = name, start
                sizes[buffer.dtype] = start + -(-buffer.size // _ALIGNED) * _ALIGNED
            for dtype, size in sizes.items():
                name = kind if dtype == np.float32 else f"{kind}_{dtype}"
                self._storage[name] = np.zeros(size, dtype)
        if self._has_parts:  # each array is an argument, so that one function can do for several parts
            for buffer, (name, start) in self._places.items():
                self._storage[buffer.name] = self._storage[name][start : start + buffer.size]
            for name in {name for name, _ in self._places.values()}:
                del self._storage[name]
            self._places = {buffer: (buffer.name, 0) for buffer in self._places}
        self._constants = [buffer for buffer in used if buffer.data is not None]

    def _write(self) -> None:
        """Write the source of each part between calls."""
        self.parts: list[Part | Call] = []
        originals: dict[str, str] = {}  # for each form the name of the first part that has it
        segments = self.plan.segments
        several = self._has_parts
        for number, segment in enumerate(segments, start=1):
            if isinstance(segment, Call):
                self.parts.append(segment)
            else:
                name = f"step_{number}" if several else "step"
                part = write_part(name, segment, self.plan, self._places, self._formulas, self._names)
                original = originals.setdefault(part.form, name) if part.form else name
                self.parts.append(part if original == name else part.like(original))
        self.source = "\n\n".join(part.source for part in self.parts if isinstance(part, Part))
        for x in self.parts:
            if isinstance(x, Part):
                self.compiled[x.name] = self.compiled.get(x.original) or runtime.compile_source(
                    x.source, x.functions, x.name
                )

    def _compile(self) -> None:
        """Compile, unless that is done."""
        if self._kernels is None:
            own = [x for x in self.parts if isinstance(x, Part) and not x.original]
            tell_if_long([(part.source, self.compiled[part.name]) for part in own])
            self._kernels = [self._kernel(x) if isinstance(x, Part) else None for x in self.parts]

    def _kernel(self, part: Part) -> Callable:
        """The source of a part as a function of arrays and numbers by their names."""
        kernel = runtime.entry_point(self.compiled[part.name], self.types(part))
        if part.length is not None:
            kernel = runtime.shared(kernel, part.length, part.own)
        if self.calls_small_products(part):
            kernel = runtime.on_one_blas_thread(kernel)
        if len(part.arguments) < 2:
            return lambda arrays: kernel(*[arrays[name] for name in part.arguments])
        arguments = itemgetter(*part.arguments)
        return lambda arrays: kernel(*arguments(arrays))

    def calls_small_products(self, part: Part) -> bool:
        """Whether BLAS multiplies small matrices for a part."""
        return bool(part.products) and max(part.products) < ON_ONE_THREAD.stop

    def types(self, part: Part) -> tuple:
        """The types of a part's arguments, as Numba calls them."""
        bounds = [] if part.length is None else [numba.int64] * 2
        own = [flat(dtype) for dtype, _ in part.own.values()]
        kinds = part.arguments.values()
        return (*bounds, *own, *[flat(x[:-1]) if x.endswith("*") else getattr(numba, x) for x in kinds])

    def source_of(self, part: Part) -> tuple:
        """A part, as `Task` takes it."""
        return part.source, sorted(part.functions), part.name, "", self.types(part)

    @property
    def task(self) -> Task:
        """What compiles the parts in the background; it begins when it is asked for."""
        if self.begun is None:
            parts = [part for part in self.parts if isinstance(part, Part) and not part.original]
            self.begun = Task(
                [(self.compiled[x.name], self.types(x)) for x in parts], [self.source_of(x) for x in parts]
            )
        return self.begun

    # A call

    def _prepare(self) -> None:
        """Work out what each call has to fetch, and write what it has to ask."""
        found = self.trace
        self.owned: list[tuple[Tensor, Any]] = [(tensor, None) for tensor, _ in self.states]
        self._host_arrays: list[tuple[str, Any, Any]] = [  # names, leaves, and the data types that they get
            (buffer.name, x.leaf, x.cell.dtype) for buffer, x in self._given if x.tensor is None
        ]
        own = {x.tensor for _, x in self._inputs if x.leaf is None and x.tensor not in found.grad_of}
        self._own_tensors = own | {tensor for tensor, _ in self.states}
        self._fresh = [(x.name, spec.device.mod.Array, x.size, x.dtype) for x, spec in self.results]
        self._makers = [maker_of(spec) for _, spec in self.results]
        self._kept = {buffer.name: buffer.data for buffer in self._constants} | self._storage
        self.counts: dict[tuple[Any, str], list[Any]] = {}
        for optimizer, updates in found.updates.items():
            for p, t in updates.items():
                if t.text not in found.numbers:  # it has grown
                    self.counts.setdefault((optimizer, t.text), []).append(p)
        self.number_names = list(self._formulas.values())
        source, known = self._questions()
        exec(source, known)
        self.fits: Callable[[list[Any]], tuple[list[tuple[str, Any]], list[Any]] | None] = known["fits"]
        self.numbers: Callable[[list[Any]], list[Any] | None] = known["numbers"]

    def _questions(self) -> tuple[str, dict[str, Any]]:
        """The source of two functions, which each call begins with, and the objects that it names.

        All is spelled out there, because loops would take longer than the questions.

        ``fits(leaves)`` returns the arrays of Tensors, with their names, and the numbers of the host; None
        unless needle's objects are as they were when the function was traced, but for their numbers.
        ``numbers(leaves)`` returns what the formulas make of the numbers of the host; None if parameters that
        had one count of updates have several.
        """
        found, asks, taken = self.trace, list[str](), list[str]()
        known: dict[str, Any] = {"inf": inf, "nan": nan, "__owned": self.owned}
        known |= {"__array": NDArray, "__like": _is_like, "__count": _common_count}
        known |= {"__memories": _memories, "__check": check_number}

        def named(x: Any) -> str:
            """A name for an object in the source."""
            known[name := f"__{len(known)}"] = x
            return name

        def now(x: Input) -> str:
            return named(x.tensor) if x.leaf is None else f"__leaves[{x.leaf}]"

        for p, has in found.asked_grads.items():
            asks.append(f"({now(found.input_of[p])}._grad is not None) is {has}")
        for grad, owners in found.grad_of.items():
            first, *others = [f"{now(found.input_of[p])}._grad" for p in owners]
            asks += [f"{other} is {first}" for other in others]
            asks += [f"{first} is {named(grad)}"] * any(grad is tensor for tensor, _ in self.states)
        asks += [f"({now(x)}.op is not None) is {goes_on}" for x, goes_on in found.ends]
        states = [tensor for tensor, _ in self.states]
        used, own = {buffer for buffer, _ in self._given}, named(self._own_tensors)
        for buffer, x in self._inputs:
            if x.tensor is None or (x.tensor in found.grad_of and buffer not in used):
                continue
            place, looks = now(x), named(x.cell.spec)
            if x.tensor in found.grad_of:
                place = f"{now(found.input_of[found.grad_of[x.tensor][0]])}._grad"
                asks.append(f"__like({place}.realize_cached_data(), {looks})")
            elif x.leaf is not None and x.leaf not in self.bound:  # the structure says what it looks like
                asks += [f"type({place}._data) is __array", f"{place} not in {own}"]
            else:
                asks += [f"{place} is {named(self.bound[x.leaf])}"] if x.leaf is not None else []
                asks.append(f"{place}.requires_grad is {bool(x.tensor.requires_grad)}")
                kept = [f"{place}._data is __owned[{i}][1]" for i, y in enumerate(states) if y is x.tensor]
                asks.append(f"({' or '.join([*kept, f'__like({place}._data, {looks})'])})")
            taken += [f"({buffer.name!r}, {place}._data)"] * (buffer in used)
        for holder, names in found.asked.items():
            place, attributes = named(vars(holder)), found.holders[holder]
            for name in names:
                if name in attributes:
                    here, x = f"{place}[{name!r}]", attributes[name]
                    same = f"{here} is {named(x)} or " * (is_plain(x) or isinstance(x, (Module, Value)))
                    asks.append(f"({same}{here} == {named(mapped(_fixed, x))})")
                elif name == "__dict__":  # all of them, as `parameters` does
                    asks.append(f"[*{place}] == {named([*vars(holder)])}")
                elif not callable(getattr(type(holder), name, None)):  # only its class may have it
                    asks.append(f"{name!r} not in {place}")
        for optimizer in found.updates:
            state = named({p: dict(memory) for p, memory in _memories(optimizer).items()})
            asks.append(f"__memories({named(optimizer)}) == {state}")
            for name in ("params", "groups"):
                asks.append(f"{named(vars(optimizer))}[{name!r}] == {named([*vars(optimizer)[name]])}")
            for group in optimizer.groups:
                asks.append(f"len({named(group)}) == {len(group)}")
                asks.append(f"{named(group)}['params'] == {named([*group['params']])}")
        for _, holder, key, value in found.options.values():
            option = f"{named(holder)}[{key!r}]"
            asks.append(option if value and type(value) is not bool else f"{option} == {value!r}")

        texts = [*self._formulas, *[x.text for x in self.returned_numbers], *[t for _, t in self.counts]]
        words = set(re.findall(r"[^\W\d]\w*", " ".join([*texts, *[text for _, _, text, _ in self._checks]])))
        lines = []
        for name, (kind, owner, *rest) in found.numbers.items():
            if name in words and kind == "count":
                lines.append(f"{name} = __count({named(owner)}, {named(rest[0])})")
                lines.append(f"if {name} is None: return None")
            elif name in words:
                source = f"__leaves[{owner}]" if kind == "leaf" else f"{named(owner)}[{rest[0]!r}]"
                lines.append(f"{name} = {source}")
        for row, dtype, text, is_last in self._checks:
            lines.append(f"__check({row!r}, {named(dtype)}, {text}, {is_last})")
        body = "\n    ".join([*lines, f"return [{', '.join(texts)}]"])
        all_asked = "\n            and ".join(asks or ["True"])
        source = f"""def numbers(__leaves):
    {body}

def fits(__leaves):
    try:
        if not (
            {all_asked}
        ):
            return None
    except (KeyError, ValueError):  # an attribute or an option is gone, or an array of NumPy's
        return None
    __numbers = numbers(__leaves)
    return None if __numbers is None else ([{", ".join(taken)}], __numbers)
"""
        return source, known

    def refresh(self, leaves: list[Any]) -> None:
        """Compute all Tensors that come in."""
        for x in [*leaves, *self._own_tensors]:
            if isinstance(x, Tensor):
                x.realize_cached_data()

    def _now(self, x: Input, leaves: list[Any]) -> Tensor:
        """The Tensor of this call for one of the traced call."""
        return x.tensor if x.leaf is None else leaves[x.leaf]

    def run(self, leaves: list[Any]) -> Any:
        """Compute; `AGAIN` if the program does not fit."""
        with self.lock:
            found = self.fits(leaves)
            if found is None:
                return AGAIN
            if self._kernels is None:
                self._compile()
            arrays, storage = self.collect(found[0], leaves)
            numbers = found[1]
            arrays.update(zip(self.number_names, numbers, strict=False))
            self._compute(arrays)
            self.set_counts(numbers, 1)
        scope = mode.get()[SCOPE]
        outcomes = [make(x, scope) for x, make in zip(storage, self._makers, strict=True)]
        return self.finish(outcomes, numbers[len(self.number_names) :], leaves)

    def collect(
        self, taken: list[tuple[str, Any]], leaves: list[Any], steps: int = 1
    ) -> tuple[dict[str, Any], list[Any]]:
        """All arrays of a call, or of so many steps of `scan`, by their names; and the storage of results."""
        for tensor, data in self.owned:
            if tensor._data is not data or getrefcount(data) != ALONE:  # somebody else holds it, too
                del tensor, data
                self.own()
                break
        arrays, stored = self._kept.copy(), self._stored
        for name, data in taken:
            arrays[name] = stored((data if data._compact else data.compact())._handle)
        for name, leaf, dtype in self._host_arrays:
            arrays[name] = np.ascontiguousarray(leaves[leaf], dtype).reshape(-1)
        if self._draws:
            drawn = [[stored(draw()._handle) for _, draw in self._draws] for _ in range(steps)]
            for (buffer, _), numbers in zip(self._draws, zip(*drawn, strict=True), strict=True):
                arrays[buffer.name] = numbers[0] if steps == 1 else self._joined(list(numbers))
        storage = []
        for name, array, size, dtype in self._fresh:
            storage.append(array(size * steps, dtype))
            arrays[name] = stored(storage[-1])
        return arrays, storage

    # Many steps at once, for `scan`

    @functools.cached_property
    def sizes_of_step(self) -> dict[str, int]:
        """The sizes of all arrays that are others in each step, by their names."""
        found = {buffer.name: buffer.size for buffer, x in self._given if x.leaf is not None}
        return found | {buffer.name: buffer.size for buffer, _ in (*self._draws, *self.results)}

    def collected_for_steps(self, batches: list[Any], steps: int) -> tuple[dict[str, Any], list[Any], list]:
        """All arrays of so many steps, the storage of their results, and the numbers in each step."""
        found = self.fits(batches)
        assert found is not None  # it has fitted the first of them
        return *self.collect(found[0], batches, steps), self._numbers_of_steps(steps)

    def finish_steps(self, storage: list[Any], batches: list[Any], steps: int) -> Any:
        """Put the gradients of the last step where they belong, and return all results, stacked."""
        specs = [spec._replace(shape=(steps, *spec.shape)) for _, spec in self.results]
        outcomes = [maker_of(spec)(x, None) for x, spec in zip(storage, specs, strict=True)]
        return self.finish(outcomes, [], batches, lambda grad: grad[steps - 1].detach())

    def _numbers_of_steps(self, steps: int) -> list[list[Any]]:
        """The numbers in each of so many steps; their counts of updates grow."""
        names = [name for name, (kind, *_) in self.trace.numbers.items() if kind == "count"]
        if not any(name in text for text in self._formulas for name in names):
            return [self.numbers([]) or []] * steps
        before = {optimizer: dict(optimizer._updates) for optimizer, _ in self.counts}
        found: list[Any] = []
        for _ in range(steps):
            found.append(self.numbers([]))
            self.set_counts(found[-1], 1)
        for optimizer, updates in before.items():
            optimizer._updates = updates
        return found

    def set_counts(self, first: list[Any], steps: int) -> None:
        """Add so many steps to the counts of updates; `first` are the numbers of the first of them."""
        counts = first[len(first) - len(self.counts) :]
        for ((optimizer, _), params), new in zip(self.counts.items(), counts, strict=True):
            if steps != 1:
                before = optimizer._updates.get(params[0], 0)
                new = before + (new - before) * steps
            optimizer._updates.update(dict.fromkeys(params, new))

    def _stored(self, storage: Any) -> Any:
        """What a kernel gets of a backend's storage."""
        return storage.buffer

    def _joined(self, arrays: list[Any]) -> Any:
        """The arrays of several steps as one."""
        return np.concatenate(arrays)

    def _compute(self, arrays: dict[str, Any]) -> None:
        for part, kernel in zip(self.parts, self._kernels, strict=True):  # type: ignore[arg-type]
            if isinstance(part, Call):
                self._call(part, arrays)
            elif status := kernel(arrays):
                self.failed(part, status, arrays)

    def finish(
        self,
        outcomes: list[Tensor],
        numbers: list[Any],
        leaves: list[Any],
        grad_of: Callable[[Tensor], Tensor] = lambda grad: grad,
    ) -> Any:
        """Put gradients where they belong, and return what the function returns."""
        count = len(outcomes) - len(self._with_grad)
        for x, grad in zip(self._with_grad, outcomes[count:], strict=True):
            self._now(x, leaves)._grad = grad_of(grad)
        for x in self._without_grad:
            (x.tensor if x.leaf is None else leaves[x.leaf])._grad = None
        template = self.trace.template
        if type(template) is Leaf and count == 1:
            return outcomes[0]
        tensors, plain = iter(outcomes), iter(numbers)
        found = [next(plain if is_number else tensors) for is_number in self._is_number]

        def now(x: Any) -> Any:
            """The Tensor of this call for one that the function returned as it came."""
            of_traced = self.trace.input_of.get(x) if isinstance(x, Tensor) else None
            return x if of_traced is None else self._now(of_traced, leaves)

        return filled(template, found, now)

    @functools.cached_property
    def _device(self) -> Any:
        """Where the program computes: the device of the Tensors that it uses."""
        used = {buffer for step in self.nests for buffer in (*step.read, *step.written)}
        specs = [x.cell for buffer, x in self._inputs if buffer in used] + [spec for _, spec in self.results]
        return specs[0].device if specs else default_device()

    def failed(self, part: Part, status: int, arrays: dict[str, np.ndarray]) -> None:
        """Raise the error of a check."""
        check = part.checks[status - 1]
        values = self._array_of(check.reads[0].buffer, arrays)
        raise check.refusal(read_before(self.plan.lowered[check], values))  # type: ignore[misc]

    def _array_of(self, buffer: Buffer, arrays: dict[str, Any]) -> Any:
        """What `_stored` makes of a buffer's storage."""
        if buffer in self._places:
            name, start = self._places[buffer]
            return arrays[name][start : start + buffer.size]
        return arrays[buffer.name]

    def _handle(self, stored: Any) -> Any:
        """The opposite of `_stored`: the backend's storage; nothing is copied."""
        handle = object.__new__(self._device.mod.Array)
        handle.buffer, handle.dtype, handle.size = stored, stored.dtype, stored.size
        return handle

    def _call(self, call: Call, arrays: dict[str, Any]) -> None:
        """Compute an operator that is not lowered, by its own kernel."""
        device = self._device

        def handle(x: NDArray) -> Any:
            return self._handle(self._array_of(x._handle, arrays))

        def real(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(map(real, x))
            return assemble(new_array(NDArray), handle(x), device, x.shape, x.strides, x.offset, x._compact)

        found = call.op.compute(*map(real, call.operands))
        for x, result in zip(found if isinstance(found, tuple) else (found,), call.results, strict=True):
            if x.device is not device:
                device.mod.from_numpy(x.numpy(), handle(result))
            elif x.size:
                device.mod.compact(x._handle, handle(result), x.shape, x.strides, x.offset)

    def own(self) -> None:
        """See that each Tensor that is written has its numbers in the program's own storage."""
        for i, (tensor, buffer) in enumerate(self.states):
            data = tensor._data
            mine = self.owned[i][1]
            if data is mine and getrefcount(data) == ALONE + 1:  # `mine`
                continue
            name, start = self._places[buffer]
            place = self._storage[name][start : start + buffer.size]
            array = tensor.realize_cached_data().compact()
            # Where somebody holds the value of before, it is theirs now; also if another program has taken
            # the Tensor over since then.
            if mine is not None and (data is mine or getrefcount(mine) > ALONE - 1):
                mine._handle.buffer = mine._handle.buffer.copy()
            if data is not mine:
                place[:] = array._handle.buffer
            tensor._data = fresh = array_over(self._handle(place), array.shape, array.device)
            self.owned[i] = tensor, fresh


def _is_like(data: Any, spec: Spec) -> bool:
    """Whether the array of a Tensor is there, and looks as it did."""
    return type(data) is NDArray and (data.shape, data.dtype, data.device) == spec


def _memories(optimizer: Any) -> dict[Any, dict[str, Tensor]]:
    """What an optimiser remembers of its parameters; without those of which it remembers nothing."""
    return {p: memory for p, memory in optimizer.state.items() if memory}


def _fixed(x: Any, _: str) -> Any:
    """What an attribute of a module, or a part of one, is compared with."""
    return x if isinstance(x, (Module, Value)) else Fixed(x)


def _common_count(optimizer: Any, params: list[Any]) -> int | None:
    """How often an optimiser has updated these parameters; None where that differs."""
    counts = {*map(optimizer._updates.get, params)}
    return (counts.pop() or 0) if len(counts) == 1 else None


def maker_of(spec: Spec) -> Callable:
    """A function that makes the Tensor of a result from its storage, as `Tensor.make_const` does.

    It sets all attributes itself instead of calling constructors, because each call takes a noticeable part
    of a small training step.
    """
    shape, dtype, device = spec
    strides, new = compact_strides(shape), object.__new__

    def tensor_of(storage: Any, scope: Any) -> Tensor:
        array = new(NDArray)
        array._handle, array.dtype, array.device, array.shape = storage, dtype, device, shape
        array.strides, array.offset, array._compact, array.base = strides, 0, True, None
        tensor = new(Tensor)
        tensor._data, tensor.requires_grad = array, False
        if scope is not None:
            tensor.scope = scope
        autograd.TENSOR_COUNTER += 1
        return tensor

    return tensor_of


def read_before(nest: Nest, values: np.ndarray) -> np.ndarray:
    """What the first operand of a statement, as it was lowered, reads from the numbers of its buffer."""
    x = nest.reads[0]
    strides = [step * values.itemsize for step in x.strides]
    return np.ndarray(nest.shape, values.dtype, values, x.offset * values.itemsize, strides)


def flat(dtype: Any) -> Any:
    """The type of an array with one axis, as Numba calls it."""
    return numba.types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C")


def array_over(handle: Any, shape: tuple[int, ...], device: Any) -> NDArray:
    """A compact array over a backend's storage; nothing is copied."""
    return assemble(new_array(NDArray), handle, device, shape, compact_strides(shape))


def _copy(array: Any, out: Buffer) -> list[Nest]:
    write = Access(out, 0, compact_strides(array.shape))
    read = Access(array._handle, array.offset, array.strides)
    return [Nest("copy", array.shape, write, [read])] if out.size else []


class _Holder:
    data: Any = None


def _references_alone() -> int:
    """How many references `run` counts to the array of a Tensor that nobody else holds.

    They are the Tensor's, that of `owned`, a variable's and, but for newer Pythons, the counter's.
    """
    holder = _Holder()
    holder.data = object()
    for _, data in [(holder, holder.data)]:
        found = getrefcount(data)
    return found


getrefcount = sys.getrefcount
ALONE = _references_alone()
