"""Compiled programs on a GPU: the same schedule, as kernels for `ndl.cuda()`.

On the CPU one function computes everything, loop after loop. Here each loop of the schedule that stands
outermost is a kernel, and the host launches them one after the other; `kernels.py` says what threads do.
Large matrix products, and totals of very many numbers, are left to the device's own kernels or to cuBLAS. So
``relu(x @ W + b)``, for 10 rows and W of shape (2, 8), is one launch; for 512 rows and W of shape (64, 512),
cuBLAS computes the product, and one kernel all the rest.

A kernel cannot raise an error. A check that fails sets the device's mark, and kernels that come later then do
nothing. The host does not wait for a check: it looks when numbers are next copied to it (see `Checks` of the
backend).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..backend_ndarray.strides import compact_strides
from ..backend_ndarray.views import assemble, new_array
from ..backend_selection import NDArray
from .codegen import Block
from .kernels import KernelSource, compile_kernel, write_kernel
from .lower import Access, Call, Nest
from .names import by_module, wrapped
from .program import ALONE, Program, getrefcount, read_before
from .schedule import is_one_total

__all__ = ["CudaProgram"]


class Own(NamedTuple):
    """A matrix product or a long total, which is left to the device's own kernel."""

    nest: Nest
    source: str  # a comment
    blocks: list[Block]
    length: None = None  # no threads of the CPU share it

    @classmethod
    def of(cls, nest: Nest) -> Own:
        """A statement, with a comment in the place of its source."""
        about = by_module([nest])
        text = f"# {about + ': ' if about else ''}{nest.out.buffer.name}, by the device's own kernel"
        lines = wrapped("", text.split(" "), " ", "# ")
        return cls(nest, "\n".join([*lines, ""]), [Block(0, len(lines), {nest: (0, len(lines))})])


class CudaProgram(Program):
    """A program on a GPU, with its storage. Only numbers and arrays of NumPy's come from the host.

    It takes no notice of `debug`: the simulator runs kernels as plain Python.

    Attributes
    ----------
    parts : list of KernelSource, Own or Call
        What is launched, in this order.
    """

    on_gpu = is_ready_at_once = True
    accumulates = False

    @property
    def _device(self) -> Any:
        specs = [x.cell for x in self.trace.inputs] + [spec for _, spec in self.results]
        return next(spec.device for spec in specs if spec.device.name == "cuda")

    def _write(self) -> None:
        """Write a kernel for each segment."""
        mod = self._device.mod
        guarded = any(isinstance(nest, Nest) and nest.is_check for nest in self.nests)
        self.parts: list[Any] = []
        segments = self._without_initial_values(self.plan.segments)
        for number, segment in enumerate(segments, start=1):
            name = f"step_{number}" if len(segments) > 1 else "step"
            if isinstance(segment, Call):
                self.parts.append(segment)
            elif (nest := self._by_device(segment)) is not None:
                self.parts.append(Own.of(nest))
            else:
                self.parts.append(write_kernel(name, segment, self.plan, self._formulas, mod, guarded))
        self.source = "\n\n".join(part.source for part in self.parts if not isinstance(part, Call))
        self._kernels = [compile_kernel(x, mod) if isinstance(x, KernelSource) else x for x in self.parts]

        used = {buffer.name for _, buffer in self.states}
        for part in self.parts:
            if isinstance(part, KernelSource):
                used.update(part.arguments)
            else:
                buffers = part.read + part.written if isinstance(part, Call) else part.nest.accesses
                used.update(x.buffer.name if isinstance(x, Access) else x.name for x in buffers)
        self._storage = {x.name: mod.Array(x.size, x.dtype) for x in self._places if x.name in used}
        for buffer in self._constants:
            self._storage[buffer.name] = constant = mod.Array(buffer.size, buffer.dtype)
            mod.from_numpy(buffer.data, constant)

    @staticmethod
    def _by_device(segment: Any) -> Nest | None:
        """The statement, if the device has a kernel for it: a matrix product, or a total of many numbers."""
        if isinstance(segment, Nest):
            return segment
        if not is_one_total(segment):
            return None
        (nest,) = segment.nests()
        x = nest.reads[0]
        is_plain = nest.function == "copy" and isinstance(x, Access) and x.via is None
        return nest if is_plain and x.buffer.dtype == nest.out.buffer.dtype else None

    def _without_initial_values(self, segments: list[Any]) -> list[Any]:
        """Leave out what sets a total to 0 that the device's kernel computes: it needs no initial value."""
        nests = [self._by_device(x) for x in segments if not isinstance(x, Call)]
        totals = {nest.out.buffer for nest in nests if nest is not None and not nest.product}

        def needed(part: Any) -> bool:
            return not (isinstance(part, Nest) and part.out.buffer in totals and not part.sources)

        found = [
            [x for x in segment if needed(x)] if isinstance(segment, list) else segment
            for segment in segments
        ]
        return [segment for segment in found if segment != []]

    # A call

    def _stored(self, storage: Any) -> Any:
        """What a kernel gets of a backend's storage: all of it, since kernels of the device take that."""
        return storage

    def _from_host(self, values: np.ndarray) -> Any:
        mod = self._device.mod
        array = mod.Array(values.size, values.dtype)
        mod.from_numpy(values, array)
        return array

    def _compute(self, arrays: dict[str, Any]) -> None:
        mod = self._device.mod
        arrays["mark"] = mod.checks.mark()
        for part, kernel in zip(self.parts, self._kernels or (), strict=True):
            if isinstance(part, KernelSource):
                arguments = [
                    arrays[name].address if kind.endswith("*") else mod._number(arrays[name], np.dtype(kind))
                    for name, kind in part.arguments.items()
                ]
                mod.launch(kernel, *part.grid, *arguments)
                if part.checks:
                    names = {check.reads[0].buffer.name for check in part.checks}
                    mod.checks.add(partial(self._look, part.checks, {name: arrays[name] for name in names}))
            elif isinstance(part, Own):
                self._launch_own(part.nest, arrays)
            else:
                self._call(part, arrays)

    def _launch_own(self, nest: Nest, arrays: dict[str, Any]) -> None:
        """A matrix product or a total by the device's own kernel."""
        mod, out = self._device.mod, arrays[nest.out.buffer.name]
        if not nest.product:
            (read,) = nest.reads
            views = ((1,), (1,), nest.shape, read.strides, read.offset)
            mod.REDUCES[nest.fold](arrays[read.buffer.name], out, math.prod(nest.shape), views)
            return
        a, b = nest.reads
        *batch, m, n, p = nest.shape
        left, right = a.strides[:-1], (*b.strides[:-3], *b.strides[-2:])
        layout = (tuple(batch), left, a.offset, right, b.offset)
        mod.matmul(arrays[a.buffer.name], arrays[b.buffer.name], out, m, n, p, layout)

    def _call(self, call: Call, arrays: dict[str, Any]) -> None:
        """Compute an operator that is not lowered, by its own kernel."""
        device = self._device

        def real(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(map(real, x))
            handle = arrays[x._handle.name]
            return assemble(new_array(NDArray), handle, device, x.shape, x.strides, x.offset, x._compact)

        found = call.op.compute(*map(real, call.operands))
        for array, result in zip(found if isinstance(found, tuple) else (found,), call.results, strict=True):
            target = arrays[result._handle.name]
            if array.device is not device:
                device.mod.from_numpy(array.numpy(), target)
            elif array.size:
                device.mod.compact(array._handle, target, array.shape, array.strides, array.offset)

    def _look(self, checks: list[Nest], arrays: dict[str, Any]) -> None:
        """Repeat checks on the host, and raise the error of the first that fails."""
        for check in checks:
            array, lowered = arrays[check.reads[0].buffer.name], self.plan.lowered[check]
            numbers = read_before(lowered, self._device.mod.to_numpy(array, (array.size,), (1,), 0))
            if _fails(lowered, numbers):
                raise check.refusal(numbers)  # type: ignore[misc]

    def _array(self, handle: Any, shape: tuple[int, ...]) -> NDArray:
        return assemble(new_array(NDArray), handle, self._device, shape, compact_strides(shape))

    def own(self) -> None:
        """See that each Tensor that is written has storage that nobody else uses."""
        mod = self._device.mod
        for i, (tensor, data) in enumerate(self.owned):
            if tensor._data is data and getrefcount(data) == ALONE:
                continue
            array = tensor.realize_cached_data()
            fresh = mod.Array(array.size, array.dtype)
            if array.size:
                mod.compact(array._handle, fresh, array.shape, array.strides, array.offset)
            self._kept[self.states[i][1].name] = fresh
            tensor._data = mine = self._array(fresh, array.shape)
            self.owned[i] = tensor, mine


def _fails(check: Nest, numbers: np.ndarray) -> bool:
    if check.function == "check_not_zero":
        return not numbers.all()
    _, low, stop = check.reads
    return not ((numbers >= low) & (numbers < stop) & (numbers == np.trunc(numbers))).all()
