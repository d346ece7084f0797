"""Program: one trace as a function that runs.

A call of a program has three parts. First it asks whether everything is as it was when the function was
traced: the shapes, the modules, the numbers that were compared. Then it collects the arrays and calls the
compiled source. Last it puts the results where the function would have put them. The source of these parts,
the function `call`, is written out like that of the computation, so that nothing is done that a program does
not need.

Tensors that a program writes, such as parameters, have their numbers in its own storage, side by side, and
are updated in place. Somebody may still hold the value of before, as a snapshot by `state_dict` does. Then it
is theirs, and the program takes a copy for itself.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from ..autograd import Tensor
from ..backend_ndarray.blas import ON_ONE_THREAD
from ..backend_ndarray.strides import compact_strides
from ..backend_ndarray.views import assemble, new_array
from ..backend_selection import NDArray, default_device
from ..graph import Spec
from ..stand_ins import Number
from . import runtime
from .background import Source, Task, tell_if_long
from .calls import AGAIN, REFERENCES, CallWriter
from .codegen import Names, Part, write_part
from .lower import Access, Buffer, Call, Nest, lower
from .schedule import schedule
from .simplify import simplify
from .trace import Input, Surroundings, Trace, one_at_a_time, with_tensors, without_tensors

_ALIGNED = 16  # numbers: storage of an array begins at a multiple of it


class Program:
    """One trace of a function, compiled.

    Attributes
    ----------
    call : callable
        From the leaves of the arguments to the result; `AGAIN` where it is to be asked whether the program
        `fits`.
    source : str
        The generated source.
    """

    call_writer = CallWriter
    on_gpu = False

    def __init__(self, found: Trace, around: Surroundings, leaves: list[Any], debug: bool = False):
        self.trace = found
        self.around = around
        self.lock = threading.RLock()
        self.scan: Any = None  # the loop around it; see `scanning.py`
        self.begun: Task | None = None
        self.compiled: dict[str, Any] = {}  # for each part by its name, what Numba compiles
        self._is_compiled = False
        self._names = Names()
        self._lower(found)
        self.debug = debug or self._device.name == "cpu_numpy"
        self._place()
        self._write()
        self.owned: list[tuple[Tensor, Any]] = [(tensor, None) for tensor, _ in self.states]
        self.fixed = self._closed_over()
        self.fixed_data: list[Any] = [x.tensor._data for _, x in self.fixed]
        self._writer = self.call_writer(self, leaves)
        self.call, self._asks = self._writer.call, self._writer.asks

    # From the trace to nests

    def _lower(self, found: Trace) -> None:
        names = self._names
        cells = {x.cell: names.unique(x.name) for x in found.inputs}
        cells |= {cell: names.unique("random") for cell in found.draws}
        self.returned: list[Any] = []  # the Tensors and Numbers in it, in the order of their places
        self._input_of = {x.tensor: x for x in found.inputs if x.tensor is not None}
        self._template = without_tensors(found.result, self.returned, self._input_of)
        self.returned_numbers = [x for x in self.returned if isinstance(x, Number)]
        returned: list[Tensor] = [x for x in self.returned if not isinstance(x, Number)]
        grads = [(p, g) for p, g in found.grads if g is not None]
        self._with_grad = [p for p, _ in grads]
        self._without_grad = [p for p, g in found.grads if g is None]
        outcomes = [x._data for x in returned] + [g._data for _, g in grads]
        has_blas = self.on_gpu or bool(runtime.routines())
        low = lower(outcomes + [value for _, value in found.writes], cells, has_blas, self.on_gpu)
        steps: list[Nest | Call] = low.steps

        self._inputs = [(low.arrays[x.cell]._handle, x) for x in found.inputs]
        self._draws = [(low.arrays[cell]._handle, cell.op.draw) for cell in found.draws]  # type: ignore[union-attr]
        self.results: list[tuple[Buffer, Any]] = []  # with the value's `Spec`
        for i, value in enumerate(outcomes):
            array = low.arrays[value]
            buffer = Buffer(array.size, array.dtype, names.unique("result" if i < len(returned) else "grad"))
            buffer.is_ours = False
            steps += _copy(array, buffer)
            device = value.device
            self.results.append((buffer, Spec(array.shape, array.dtype, device)))

        buffer_of = {x.tensor: buffer for buffer, x in self._inputs if x.tensor is not None}
        self.states: list[tuple[Tensor, Buffer]] = []
        writes = []
        for tensor, value in found.writes:
            array, target = low.arrays[value], buffer_of[tensor]
            if array._handle is target and array._compact:
                continue
            if not array._handle.is_ours:  # an input, which may be written itself: read it before
                middle = Buffer(array.size, array.dtype)
                steps += _copy(array, middle)
                array = _compact_array(middle, array.shape, array.device)
            writes += _copy(array, target)
            self.states.append((tensor, target))
        wanted = {buffer for buffer, _ in self.results} | {buffer for _, buffer in self.states}
        self._schedule([*steps, *writes], wanted)

    def _schedule(self, steps: list[Nest | Call], wanted: set[Buffer]) -> None:
        self.nests = simplify(steps, wanted, accumulates=not self.on_gpu)
        self.plan = schedule(self.nests, self.on_gpu)

    @property
    def _has_parts(self) -> bool:
        """Whether the source is of several functions."""
        return sum(not isinstance(segment, Call) for segment in self.plan.segments) > 1

    # Where everything is stored

    def _place(self) -> None:
        """Name all buffers, and give them places in the program's storage."""
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
        written = {buffer for _, buffer in self.states}
        self._given = [(buffer, x) for buffer, x in self._inputs if buffer in used and buffer not in written]
        self._constants = [buffer for buffer in used if buffer.data is not None]

    def _write(self) -> None:
        """Write the source of each part between calls."""
        names = [buffer.name for buffer, _ in [*self._given, *self._draws]]
        names += [buffer.name for buffer in self._constants] + [buffer.name for buffer, _ in self.results]
        self.parts: list[Part | Call] = []
        originals: dict[str, str] = {}  # for each form the name of the first part that has it
        segments = self.plan.segments
        several = self._has_parts
        for number, segment in enumerate(segments, start=1):
            if isinstance(segment, Call):
                self.parts.append(segment)
            else:
                name = f"step_{number}" if several else "step"
                part = write_part(name, segment, self.plan, self._places, names, self._formulas, self._names)
                original = originals.setdefault(part.form, name) if part.form and not self.debug else name
                self.parts.append(part if original == name else part.like(original))
        self.source = "\n\n".join(part.source for part in self.parts if isinstance(part, Part))
        if not self.debug:
            for x in self.parts:
                if isinstance(x, Part):
                    self.compiled[x.name] = self.compiled.get(x.original) or runtime.compile_source(
                        x.source, x.functions, x.name
                    )

    def _compile(self) -> None:
        """Compile, unless that is done, and give the kernels to `call`."""
        own = [x for x in self.parts if isinstance(x, Part) and x.name in self.compiled and not x.original]
        tell_if_long([(part.source, self.compiled[part.name]) for part in own])
        for part in self.parts:
            if isinstance(part, Part):
                self._writer.give(part, self._kernel(part))
        self._is_compiled = True

    def _kernel(self, part: Part) -> Callable:
        """The source of a part as a function."""
        if not self.debug:
            kernel = runtime.entry_point(self.compiled[part.name], self.types(part))
            if part.length is not None:
                kernel = runtime.shared(kernel, part.length, part.own)
            return runtime.on_one_blas_thread(kernel) if self.calls_small_products(part) else kernel
        earlier = self.parts[: self.parts.index(part)]
        known = {name for other in earlier if isinstance(other, Part) for name in other.arguments}
        if any(isinstance(other, Call) for other in earlier):  # a call may have written
            known |= set(self._storage)
        unwritten = {self._places[buffer][0] for buffer in self.plan.work if buffer in self._places}
        unwritten |= {buffer.name for buffer, _ in self.results}
        plain = runtime.plain_source(
            part.source, part.functions, part.name, unwritten - known | set(part.own)
        )
        return plain if part.length is None else runtime.shared(plain, part.length, part.own, threads=1)

    def calls_small_products(self, part: Part) -> bool:
        """Whether BLAS multiplies small matrices for a part."""
        return bool(part.products) and max(part.products) < ON_ONE_THREAD.stop

    def types(self, part: Part) -> tuple:
        """The types of a part's arguments, as Numba calls them."""
        known = {name: numba.typeof(x) for name, x in self._storage.items()}
        buffers = [buffer for buffer, _ in (*self._given, *self._draws, *self.results)] + self._constants
        known |= {buffer.name: flat(buffer.dtype) for buffer in buffers}
        known |= dict.fromkeys(part.whole, numba.int64)
        bounds = [] if part.length is None else [numba.int64] * 2
        own = [flat(dtype) for dtype, _ in part.own.values()]
        return (*bounds, *own, *[known.get(name, numba.float64) for name in part.arguments])

    @property
    def task(self) -> Task:
        """What compiles the parts in the background; it begins when it is asked for."""
        if self.begun is None:
            parts = [part for part in self.parts if isinstance(part, Part) and part.name in self.compiled]
            parts = [part for part in parts if not part.original]
            sources = [source_of(part, self.types(part)) for part in parts]
            self.begun = Task(sources, [(self.compiled[x.name], x.types) for x in sources])
        return self.begun

    # A call

    def fits(self, leaves: list[Any]) -> bool:
        """Whether everything that matters is as it was when the function was traced."""
        with one_at_a_time:
            self.refresh(leaves)
            return self._asks(*leaves) is not AGAIN

    def refresh(self, leaves: list[Any]) -> None:
        """Compute all Tensors that come in, and take the arrays of those that are closed over."""
        for value in [*leaves, *[self._current(x) for _, x in self._given if x.leaf is None]]:
            if isinstance(value, Tensor):
                value.realize_cached_data()
        self.fixed_data[:] = [x.tensor.realize_cached_data() for _, x in self.fixed]

    def _current(self, x: Input) -> Any:
        """The Tensor or array that is closed over, as it is now."""
        value = x.tensor if x.tensor is not None else x.array
        bound = self.around.bound.get(id(value))
        if bound is None or (x.tensor is not None and x.tensor in self._state_tensors):
            return value
        if isinstance(bound.holder, Tensor):
            owner = self._input_of.get(bound.holder)
            return bound.now() if owner is None or owner.leaf is not None else self._current(owner).grad
        return bound.now()

    def _numbers(self, leaves: list[Any]) -> dict[str, Any]:
        return {name: source.now(leaves) for name, source in self.trace.numbers.items()}

    @functools.cached_property
    def _state_tensors(self) -> set[Any]:
        return {tensor for tensor, _ in self.states}

    def _closed_over(self) -> list[tuple[Buffer, Input]]:
        """The Tensors that are closed over, only read, and always the same."""
        return [
            (buffer, x)
            for buffer, x in self._given
            if x.leaf is None and x.tensor is not None and id(x.tensor) not in self.around.bound
        ]

    def run(self, leaves: list[Any]) -> Any:
        """Compute; `AGAIN` if the program does not fit."""
        with one_at_a_time:
            self.refresh(leaves)
            if not self._is_compiled:
                self._compile()
            return self.call(*leaves)

    def finish(
        self,
        outcomes: list[Tensor],
        leaves: list[Any],
        grad_of: Callable[[Tensor], Tensor] = lambda grad: grad,
    ) -> Any:
        """Put gradients where they belong, and return what the function returns."""
        grads = outcomes[len(outcomes) - len(self._with_grad) :]
        for p, grad in zip(self._with_grad, grads, strict=True):
            self._now(p, leaves).grad = grad_of(grad)
        for p in self._without_grad:
            self._now(p, leaves).grad = None
        return with_tensors(self._template, outcomes, lambda tensor: self._now(tensor, leaves))

    def _now(self, tensor: Tensor, leaves: list[Any]) -> Any:
        """The Tensor of this call for one of the traced call."""
        x = self._input_of[tensor]
        return leaves[x.leaf] if x.leaf is not None else self._current(x)

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

    def _array_of(self, buffer: Buffer, arrays: dict[str, np.ndarray]) -> np.ndarray:
        if buffer in self._places:
            name, start = self._places[buffer]
            return arrays[name][start : start + buffer.size]
        return arrays[buffer.name]

    def _compute(self, call: Call, arrays: dict[str, np.ndarray]) -> None:
        """Compute an operator that is not lowered, by its own kernel."""

        def real(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(map(real, x))
            handle = _handle(self._array_of(x._handle, arrays), self._device)
            return assemble(
                new_array(NDArray), handle, self._device, x.shape, x.strides, x.offset, x._compact
            )

        found = call.op.compute(*map(real, call.operands))
        for array, result in zip(found if isinstance(found, tuple) else (found,), call.results, strict=True):
            target = self._array_of(result._handle, arrays)
            target[:] = array.numpy().reshape(-1)

    def own(self) -> None:
        """See that each Tensor that is written has its numbers in the program's own storage."""
        for i, (tensor, buffer) in enumerate(self.states):
            data = tensor._data
            mine = self.owned[i][1]
            if data is mine and sys.getrefcount(data) == REFERENCES + 1:  # `mine`
                continue
            name, start = self._places[buffer]
            place = self._storage[name][start : start + buffer.size]
            array = tensor.realize_cached_data().compact()
            # Where somebody holds the value of before, it is theirs now; also if another program has taken
            # the Tensor over since then.
            if mine is not None and (data is mine or sys.getrefcount(mine) > REFERENCES - 1):
                mine._handle.buffer = mine._handle.buffer.copy()
            if data is not mine:
                place[:] = array._handle.buffer
            tensor._data = fresh = _real_array(place, array.shape, array.device)
            self.owned[i] = tensor, fresh


@functools.cache
def _formula(text: str) -> Any:
    return compile(text, "<formula>", "eval")


def evaluate(text: str, values: dict[str, Any]) -> Any:
    """The value of a Number's formula; see `stand_ins`. It is made by the library, of arithmetic alone."""
    return eval(_formula(text), {"inf": math.inf, "nan": math.nan}, values)


def numbers_of(value: Any, dtype: Any) -> np.ndarray:
    """The numbers of a Tensor or of an array of NumPy's, in row-major order."""
    if isinstance(value, Tensor):
        return value.realize_cached_data().compact()._handle.buffer
    return np.ascontiguousarray(value, dtype).reshape(-1)


def read_before(nest: Nest, values: np.ndarray) -> np.ndarray:
    """What the first operand of a statement, as it was lowered, reads from the numbers of its buffer."""
    x = nest.reads[0]
    strides = [step * values.itemsize for step in x.strides]
    return np.ndarray(nest.shape, values.dtype, values, x.offset * values.itemsize, strides)


def source_of(part: Part, types: tuple) -> Source:
    """A part, to be compiled for arguments of these types."""
    return Source(part.source, sorted(part.functions), part.name, "", types)


def flat(dtype: Any) -> Any:
    """The type of an array with one axis, as Numba calls it."""
    return numba.types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C")


def _handle(values: np.ndarray, device: Any) -> Any:
    """The backend's storage over an array of NumPy's; nothing is copied."""
    handle = object.__new__(device.mod.Array)
    handle.buffer, handle.dtype, handle.size = values, values.dtype, values.size
    return handle


def _real_array(values: np.ndarray, shape: tuple[int, ...], device: Any) -> NDArray:
    return assemble(new_array(NDArray), _handle(values, device), device, shape, compact_strides(shape))


def make_tensor(values: np.ndarray, spec: Spec) -> Tensor:
    """A constant over an array of NumPy's; nothing is copied."""
    return Tensor.make_const(_real_array(values, spec.shape, spec.device))


def _compact_array(buffer: Buffer, shape: tuple[int, ...], device: Any) -> NDArray:
    return assemble(new_array(NDArray), buffer, device, shape, compact_strides(shape))


def _copy(array: Any, out: Buffer) -> list[Nest]:
    write = Access(out, 0, compact_strides(array.shape))
    read = Access(array._handle, array.offset, array.strides)
    return [Nest("copy", array.shape, write, [read])] if out.size else []
