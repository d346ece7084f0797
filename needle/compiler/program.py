"""Program: one trace as a function that runs.

`Program` runs all passes: it lowers the trace, simplifies and fuses the loops, gives all arrays names and
places, and writes and compiles the source. For ``layer(x) = relu(x @ W + b)`` there are four arrays: x comes
with the call, W and b are found by the function itself, and a new one is made for the result. `host.py`
writes what a call does around the compiled source.

A program keeps the Tensors that it writes, such as parameters, in its own storage, and updates them in
place. Somebody may still hold the old array, as a snapshot by `state_dict` does. Then the numbers are copied
first, so that the snapshot does not change.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..autograd import Tensor
from ..backend_ndarray.blas import ON_ONE_THREAD
from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from ..backend_ndarray.strides import compact_strides
from ..backend_ndarray.views import assemble, new_array
from ..backend_selection import NDArray, default_device
from ..graph import Spec
from .background import Task, tell_if_long
from .codegen import Part, write_part
from .host import Host
from .lower import Access, Buffer, Call, Nest, lower, whole
from .names import Names
from .schedule import LoopSchedule, contract, with_fused_loops
from .simplify import PASSES, simplify
from .stand_ins import Number
from .trace import Trace

_ALIGNED = 16  # numbers: storage of an array begins at a multiple of it


def numba_runtime() -> Any:
    """The room that imports Numba: NumPy's programs do without it, and no browser has it."""
    from . import runtime

    return runtime


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
    passes: Sequence[Callable] = PASSES  # of `simplify`
    compute: Any = None  # subclasses define it; if it is None, the host source calls the kernels itself

    def __init__(self, found: Trace, structure: Any, leaves: list[Any]):
        self.trace = found
        self.structure = structure
        self.lock = threading.RLock()
        self.scan: Any = None  # the loop around it; see `scanning.py`
        self.begun: Task | None = None
        self.compiled: dict[str, Any] = {}  # for each part by its name, what Numba compiles
        self.kernels: list[Any] = []  # one for each part, when it is compiled
        self._names = Names()
        self._lower(found, leaves)
        self._place()
        self._write()
        self._prepare()

    def _finds_blas(self) -> bool:
        return self.on_gpu or bool(numba_runtime().routines())

    # From the trace to nests

    def _lower(self, found: Trace, leaves: list[Any]) -> None:
        names = self._names
        cells = {x.cell: names.unique(x.name) for x in found.inputs}
        cells |= {cell: names.unique("random") for cell in found.draws}
        returned = found.returned
        self.returned_numbers = [x for x in returned if not isinstance(x, Tensor)]
        self.grad_count = sum(grad is not None for _, grad in found.grads)
        count = len(returned) - len(self.returned_numbers)
        outcomes = found.wanted[: count + self.grad_count]
        low = lower(found.wanted, cells, self.has_blas and self._finds_blas(), self.on_gpu)
        steps: list[Nest | Call] = low.steps
        self.checks = {  # Numbers beside whole numbers, which may not hold them: see `check_number`
            (x.function, x.out.buffer.dtype, number.text, x.reads[-1] is number): None
            for x in steps
            if isinstance(x, Nest) and x.function in SCALAR_FUNCTIONS and x.out.buffer.dtype.kind != "f"
            for number in x.numbers
            if isinstance(number, Number)
        }

        self.inputs = [(low.arrays[x.cell]._handle, x) for x in found.inputs]
        self.draws = [(low.arrays[cell]._handle, cell.op.compute) for cell in found.draws]  # type: ignore[union-attr]
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
        for _, x in self.inputs:
            if x.leaf is not None and x.tensor is leaves[x.leaf]:
                self.bound[x.leaf] = x.tensor
        buffer_of = {x.cell: buffer for buffer, x in self.inputs}
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
        self.nests = simplify(steps, wanted, self.passes)
        self.plan = with_fused_loops(self.nests, self.schedule_type)
        contract(self.plan, self.nests)

    # Where everything is stored

    def _name(self) -> dict[Buffer, None]:
        """Name all buffers that are used, and return them."""
        used = dict.fromkeys(buffer for step in self.nests for buffer in step.buffers)
        nests = [step for step in self.nests if isinstance(step, Nest)]
        texts = dict.fromkeys(x.text for nest in nests for x in nest.numbers if isinstance(x, Number))
        #: The formula of each Number, and its name.
        self.formulas = {x: self._names.unique(x if x.isidentifier() else "number") for x in texts}
        makers = {nest.out.buffer: nest.maker.op for nest in nests if nest.maker is not None}
        for buffer in used:
            if not buffer.name:
                maker = makers.get(buffer)
                buffer.name = self._names.unique("value") if maker is None else self._names.numbered(maker)
        written = {buffer for _, buffer in self.states}
        self.given = [(buffer, x) for buffer, x in self.inputs if buffer in used and buffer not in written]
        return used

    def _place(self) -> None:
        """Give the buffers that are kept from call to call their storage."""
        used = self._name()
        kept = [buffer for _, buffer in self.states]
        kept += [buffer for buffer in self.plan.work if buffer not in self.plan.local]
        self._kept = dict.fromkeys(kept)
        constants = {buffer.name: buffer.data for buffer in used if buffer.data is not None}
        self.kept: dict[str, Any] = constants | numba_runtime().routines() | _arrays(kept)

    def _segments(self) -> list[Any]:
        """What becomes a part each: loops and nests, or a `Call`."""
        return self.plan.segments

    def _write(self) -> None:
        """Write the source of each part between calls."""
        segments = self._segments()
        several = sum(not isinstance(segment, Call) for segment in segments) > 1
        self.parts: list[Any] = []
        for number, segment in enumerate(segments, start=1):
            name = f"step_{number}" if several else "step"
            self.parts.append(segment if isinstance(segment, Call) else self._part(name, segment))
        self.source = "\n\n".join(part.source for part in self.parts if not isinstance(part, Call))

    def _part(self, name: str, segment: Any) -> Any:
        """Write the source of one part."""
        part = write_part(name, segment, self.plan, self._kept, self.formulas, self._names)
        alike = [x for x in self._own_parts() if x.form == part.form != ""]
        if alike:
            part = part.like(alike[0].name)
        known = self.compiled.get(part.original)
        self.compiled[name] = known or numba_runtime().compile_source(part.source, name)
        return part

    def _own_parts(self) -> list[Part]:
        """The parts that are not like an earlier one."""
        return [x for x in self.parts if isinstance(x, Part) and not x.original]

    def _compile(self) -> None:
        """Compile all parts."""
        tell_if_long([(part.source, self.compiled[part.name]) for part in self._own_parts()])
        self.kernels += [self._kernel(x) if isinstance(x, Part) else None for x in self.parts]

    def _kernel(self, part: Part) -> Callable:
        """The source of a part as a function of its arguments."""
        runtime = numba_runtime()
        kernel = runtime.entry_point(self.compiled[part.name], self.types(part))
        if part.length is not None:
            kernel = runtime.shared(kernel, part.length, part.own)
        return runtime.on_one_blas_thread(kernel) if self.calls_small_products(part) else kernel

    def calls_small_products(self, part: Part) -> bool:
        """Whether BLAS multiplies small matrices for a part."""
        return bool(part.products) and max(part.products) < ON_ONE_THREAD.stop

    def types(self, part: Part) -> tuple:
        """The types of a part's arguments, as Numba calls them."""
        bounds = [] if part.length is None else ["int64"] * 2
        own = [f"{dtype}*" for dtype, _ in part.own.values()]
        return numba_runtime().types_of([*bounds, *own, *part.arguments.values()])

    def source_of(self, part: Part) -> tuple:
        """A part, as `Task` takes it."""
        return part.source, part.name, "", self.types(part)

    @property
    def task(self) -> Task:
        """What compiles the parts in the background; it begins when it is asked for."""
        if self.begun is None:
            parts = self._own_parts()
            kernels = [(self.compiled[x.name], self.types(x)) for x in parts]
            self.begun = Task(kernels, [self.source_of(x) for x in parts])
        return self.begun

    # A call

    def _prepare(self) -> None:
        """Work out what each call has to fetch, and write what it has to ask."""
        found = self.trace
        self.owned: list[tuple[Tensor, Any]] = [(tensor, None) for tensor, _ in self.states]
        own = {x.tensor for _, x in self.inputs if x.leaf is None and x.tensor not in found.grad_of}
        self.own_tensors = own | {tensor for tensor, _ in self.states}
        self.counts: dict[tuple[Any, str], list[Any]] = {}
        for optimizer, updates in found.updates.items():
            for p, t in updates.items():
                if t.text not in found.numbers:  # it has grown
                    self.counts.setdefault((optimizer, t.text), []).append(p)
        self.number_names = list(self.formulas.values())
        names = Host(self).names
        self._fits: Callable[[list[Any]], bool] = names["fits"]
        self.numbers: Callable[[list[Any]], list[Any] | None] = names["numbers"]
        self.taken, self._call = names["taken"], names["call"]
        self.collect, self.finish = names["collect"], names["finish"]

    def fits(self, leaves: list[Any]) -> bool:
        """Whether it does for these arguments what the function would do now."""
        return self._fits(leaves) and self.numbers(leaves) is not None

    def refresh(self, leaves: list[Any]) -> None:
        """Compute all Tensors that come in."""
        for x in [*leaves, *self.own_tensors]:
            if isinstance(x, Tensor):
                x.realize_cached_data()

    def run(self, args: tuple, kwargs: dict) -> Any:
        """Compute; `AGAIN` if the program does not fit."""
        if not self.kernels and (leaves := self.taken(args, kwargs)) is not None:
            with self.lock:
                if not self.kernels and self.fits(leaves):
                    self._compile()
        return self._call(args, kwargs)

    def see_own(self) -> None:
        """See that the Tensors that are written have storage that nobody else holds."""
        for tensor, data in self.owned:
            if tensor._data is not data or getrefcount(data) != ALONE:
                del tensor, data
                self.own()
                return

    def draw(self, steps: int) -> list[Any]:
        """All arrays of random numbers for so many steps."""
        drawn = [[self._stored(draw()._handle) for _, draw in self.draws] for _ in range(steps)]
        return drawn[0] if steps == 1 else [self._joined(list(found)) for found in zip(*drawn, strict=True)]

    # Many steps at once, for `scan`

    def of_step(self, array: Any, start: int, size: int) -> Any:
        """Of an array of all steps, the numbers of one."""
        return array[start:][:size]

    def on_device(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """The arrays, those of NumPy's on a GPU, too."""
        return arrays

    def _stored(self, storage: Any) -> Any:
        """What a kernel gets of a backend's storage: on a GPU all of it, as kernels of the device do."""
        return storage if self.on_gpu else storage.buffer

    def _joined(self, arrays: list[Any]) -> Any:
        """The arrays of several steps as one."""
        return np.concatenate(arrays)

    @functools.cached_property
    def _device(self) -> Any:
        """Where the program computes: the device of the Tensors that it uses."""
        found: list[Any] = [x.cell for _, x in self.given] + [tensor for tensor, _ in self.states]
        found += [spec for _, spec in self.results]
        return found[0].device if found else default_device()

    def failed(self, part: Any, status: int, arrays: dict[str, np.ndarray]) -> None:
        """Raise the error of a check."""
        check = part.checks[status - 1]
        check.look(arrays[check.reads[0].buffer.name])

    def _handle(self, stored: Any) -> Any:
        """The opposite of `_stored`: the backend's storage; nothing is copied."""
        if self.on_gpu:
            return stored
        handle = object.__new__(self._device.mod.Array)
        handle.buffer, handle.dtype, handle.size = stored, stored.dtype, stored.size
        return handle

    def call(self, call: Call, arrays: dict[str, Any]) -> None:
        """Compute an operator that is not lowered, by its own kernel."""
        device = self._device

        def handle(x: NDArray) -> Any:
            return self._handle(arrays[x._handle.name])

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
            if data is mine and getrefcount(data) == ALONE + 1:  # one more: the variable `mine`
                continue
            place = self.kept[buffer.name]
            array = tensor.realize_cached_data().compact()
            # Where somebody holds the value of before, it is theirs now; also if another program has taken
            # the Tensor over since then.
            if mine is not None and (data is mine or getrefcount(mine) > ALONE - 1):
                mine._handle.buffer = mine._handle.buffer.copy()
            if data is not mine:
                place[:] = array._handle.buffer
            tensor._data = fresh = array_over(self._handle(place), array.shape, array.device)
            self.owned[i] = tensor, fresh


def _arrays(buffers: list[Buffer]) -> dict[str, np.ndarray]:
    """Zeros for each buffer by its name: side by side in memory, each in cache lines of its own."""
    found: dict[str, np.ndarray] = {}
    for dtype in {x.dtype for x in buffers}:
        alike = [x for x in buffers if x.dtype == dtype]
        starts = [0, *accumulate(-(-x.size // _ALIGNED) * _ALIGNED for x in alike)]
        whole = np.zeros(starts[-1], dtype)
        found |= {x.name: whole[start:][: x.size] for x, start in zip(alike, starts, strict=False)}
    return found


def array_over(handle: Any, shape: tuple[int, ...], device: Any) -> NDArray:
    """A compact array over a backend's storage; nothing is copied."""
    return assemble(new_array(NDArray), handle, device, shape, compact_strides(shape))


def _copy(array: Any, out: Buffer) -> list[Nest]:
    read = Access(array._handle, array.offset, array.strides)
    return [Nest("copy", array.shape, whole(out, array.shape), [read])] if out.size else []


class _Holder:
    data: Any = None


def _references_alone() -> int:
    """How many references `see_own` counts to the array of a Tensor if nobody else holds that array.

    They come from the Tensor, from `owned`, from the loop variable and, in older Pythons, from the call of
    `getrefcount` itself.
    """
    holder = _Holder()
    holder.data = object()
    for _, data in [(holder, holder.data)]:
        found = getrefcount(data)
    return found


getrefcount = sys.getrefcount
ALONE = _references_alone()
