"""Compiled programs on a GPU: the same schedule, as kernels for `ndl.cuda()`.

On the CPU one function computes everything, loop after loop. Here each loop of the schedule that stands
outermost is a kernel, and the host launches them one after the other; `kernels.py` says what threads do.
Large matrix products, and totals of very many numbers, are left to the device's own kernels or to cuBLAS. So
``relu(x @ W + b)``, for 10 rows and W of shape (2, 8), is one launch; for 512 rows and W of shape (64, 512),
cuBLAS computes the product, and one kernel all the rest.

A call of a short step is some copies and one launch. The first call launches its kernels one after the other;
the second has the driver record that as a *CUDA graph*, and replays it, as do all later ones: no Python runs
between two kernels. A graph knows addresses, and not Tensors. So what comes with a call is copied to where
the graph reads it, results are copied from there to arrays of their own, and numbers of the host, such as a
learning rate, lie in an array on the GPU.

A kernel cannot raise an error. A check that fails sets the device's mark, and kernels that come later then do
nothing. The host does not wait for a check: it looks when numbers are next copied to it (see `Checks` of the
backend).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from .codegen import Line, typed
from .grid import Grid, is_for_device
from .kernels import KernelSource, compile_kernel, write_kernel
from .lower import Access, Call, Nest
from .names import by_module
from .program import ALONE, Program, array_over, getrefcount
from .schedule import Loop, nests_in
from .simplify import PASSES

__all__ = ["CudaProgram"]

_MOST_COPIED = 1 << 24  # bytes of what a call gets and makes; for more, copies take longer than a graph saves


def by_device(nest: Nest) -> KernelSource:
    """A matrix product or a long total that the device's own kernel computes; the source only says so."""
    about = by_module([nest])
    words = f"# {about + ': ' if about else ''}{nest.out.buffer.name}, by the device's own kernel"
    return KernelSource("", [Line(words, (nest,), 0)], [[nest]], {}, [], nest=nest)


class CudaProgram(Program):
    """A program on a GPU, with its storage. Only numbers and arrays of NumPy's come from the host.

    It takes no notice of `debug`: the simulator runs kernels as plain Python.

    Attributes
    ----------
    parts : list of KernelSource or Call
        What is launched, in this order.
    """

    on_gpu = is_ready_at_once = True
    schedule_type = Grid
    passes = PASSES[:-1]

    def _write(self) -> None:
        """Write and compile a kernel for each segment, and make the arrays that they share."""
        mod = self._device.mod
        self._by_type: dict[str, list[str]] = {}  # numbers of the host, by the type in which they are needed
        self._guarded = any(nest.is_check for nest in self.nests)
        super()._write()
        self.kernels = [None if isinstance(x, Call) or x.nest else compile_kernel(x, mod) for x in self.parts]

        used = {buffer.name for _, buffer in self.states}
        for part in self.parts:
            step = part if isinstance(part, Call) else part.nest
            used.update(part.arguments if step is None else [x.name for x in step.buffers])
        self.kept = {x.name: mod.Array(x.size, x.dtype) for x in self._kept if x.name in used}
        for dtype, names in self._by_type.items():
            self.kept[typed("numbers", dtype)] = mod.Array(len(names), dtype)
        for x in {x for step in self.nests for x in step.buffers if x.data is not None}:
            self.kept[x.name] = constant = mod.Array(x.size, x.dtype)
            mod.from_numpy(x.data, constant)

    def _part(self, name: str, segment: Any) -> KernelSource:
        if not isinstance(segment, list) and is_for_device(segment):
            return by_device(next(nests_in([segment])))
        numbers = self.formulas, self._by_type
        return write_kernel(name, segment, self.plan, numbers, self._device.mod, self._guarded)

    def _segments(self) -> list[Any]:
        """The segments of the plan, without initial values for the device's own totals, which need none."""
        loops = [x for x in self.plan.segments if isinstance(x, Loop) and is_for_device(x)]
        totals = {nest.out.buffer for nest in nests_in(loops)}

        def is_needed(x: Any) -> bool:
            return not (isinstance(x, Nest) and x.out.buffer in totals and not x.sources)

        found = [[*filter(is_needed, x)] if isinstance(x, list) else x for x in self.plan.segments]
        return [segment for segment in found if segment != []]

    # A call

    def _prepare(self) -> None:
        """Decide what each call copies: what comes from the host; for a graph, all that may lie elsewhere."""
        super()._prepare()
        mod, buffers = self._device.mod, [buffer for buffer, _ in (*self.given, *self.draws, *self.results)]
        grads = self.trace.grad_of
        stays = {x.name for x, y in self.given if y.leaf is None and y.tensor not in grads}
        moving = [x for x in buffers if x.name not in stays]
        is_small = sum(x.size * x.dtype.itemsize for x in moving) <= _MOST_COPIED
        has_calls = any(isinstance(part, Call) for part in self.parts)
        self._has_graph = is_small and not has_calls and len(self.parts) > len(moving) + 1
        from_host = {buffer.name for buffer, x in self.given if x.tensor is None}
        copied = [x for x in moving if self._has_graph or x.name in from_host]
        self._inside = {x.name: mod.Array(x.size, x.dtype) for x in copied}
        self._outgoing = [x.name for x, _ in self.results if x.name in self._inside]
        self._graph: Any = None
        self._addresses: list[Any] = []  # of all arrays, in the call before

    def compute(self, arrays: dict[str, Any]) -> None:
        """Compute one step."""
        mod = self._device.mod
        for dtype, names in self._by_type.items():
            mod.from_numpy(np.array([arrays[name] for name in names]), arrays[typed("numbers", dtype)])
        for name, inside in self._inside.items():
            if name not in self._outgoing:
                self._copy(arrays[name], inside)
        used = arrays | self._inside | {"mark": mod.checks.mark()}
        for name in self.number_names:
            del used[name]
        self._replay(used) if self._has_graph else self._launch(used)
        for name in self._outgoing:
            self._copy(self._inside[name], arrays[name])
        for part in self.parts:
            if not isinstance(part, Call) and part.checks:
                looked_at = {check.reads[0].buffer.name for check in part.checks}
                mod.checks.add(partial(self._look, part.checks, {x: arrays[x] for x in looked_at}))

    def _replay(self, arrays: dict[str, Any]) -> None:
        """Replay the graph of all launches, if all arrays lie where they lay in the call before.

        The first call launches one kernel after the other, since all of them must have run before a graph is
        made. So does a call that finds a Tensor of the function at another place.
        """
        addresses = [x.address for x in arrays.values()]
        if addresses != self._addresses:
            self._addresses, self._graph = addresses, None
            self._launch(arrays)
            return
        if self._graph is None:
            self._graph = self._device.mod.recorded(partial(self._launch, arrays))
        self._graph.replay()

    def _joined(self, arrays: list[Any]) -> Any:
        size = arrays[0].size
        whole = self._device.mod.Array(size * len(arrays), arrays[0].dtype)
        for i, x in enumerate(arrays):
            self._copy(x, whole.part(size * i, size))
        return whole

    def of_step(self, array: Any, start: int, size: int) -> Any:
        """Of an array of all steps, the numbers of one."""
        return array.part(start, size)

    def on_device(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """The arrays, those of NumPy's on the GPU, too."""
        return {name: self._joined([x]) if isinstance(x, np.ndarray) else x for name, x in arrays.items()}

    def _copy(self, source: Any, target: Any) -> None:
        mod = self._device.mod
        if isinstance(source, np.ndarray):
            mod.from_numpy(source, target)
        elif target.size:
            mod.gpu.copy(source.address, target.address, target.size * target.dtype.itemsize)

    def _launch(self, arrays: dict[str, Any]) -> None:
        """Launch one kernel after the other."""
        mod = self._device.mod
        for part, kernel in zip(self.parts, self.kernels or (), strict=True):
            if isinstance(part, Call):
                self.call(part, arrays)
            elif part.nest is not None:
                self._by_device(part.nest, arrays)
            else:
                mod.launch(kernel, *part.grid, *[arrays[name].address for name in part.arguments])

    def _by_device(self, nest: Nest, arrays: dict[str, Any]) -> None:
        """A matrix product or a total by the device's own kernel."""
        mod, reads = self._device.mod, [x for x in nest.reads if isinstance(x, Access)]
        *given, out = [arrays[x.buffer.name] for x in (*reads, nest.out)]
        if nest.product:  # the batch axes of its nest come before those of the matrices
            (a, b), (*batch, m, n, p) = reads, nest.shape
            layout = tuple(batch), a.strides[:-1], a.offset, (*b.strides[:-3], *b.strides[-2:]), b.offset
            mod.matmul(*given, out, m, n, p, layout)
        else:
            views = (1,), (1,), nest.shape, reads[0].strides, reads[0].offset
            mod.REDUCES[nest.fold](*given, out, math.prod(nest.shape), views)

    def _look(self, checks: list[Nest], arrays: dict[str, Any]) -> None:
        """Repeat checks on the host, and raise the error of the first that fails."""
        for check in checks:
            array = arrays[check.reads[0].buffer.name]
            if not isinstance(array, np.ndarray):
                array = self._device.mod.to_numpy(array, (array.size,), (1,), 0)
            check.look(array)  # type: ignore[misc]

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
            self.kept[self.states[i][1].name] = fresh
            tensor._data = mine = array_over(fresh, array.shape, array.device)
            self.owned[i] = tensor, mine
