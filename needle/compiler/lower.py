"""Lower: from operators on arrays to loops over flat storage.

An operator says in its `compute` how to make its result out of arrays. Here it is given arrays that hold no
numbers. They live on a device whose kernels compute nothing: they write down the loops that a real kernel
would have run. So every operator lowers itself, and strides, broadcasting, slices and reshapes are worked
out by the same code as always.

Take ``relu(x @ W + b)`` for a batch of 10 rows, with W of shape (2, 8). It becomes five *nests*, each some
loops around a single statement. A read or a write is an `Access`: a buffer, and the stride for each loop.

    loops (i 10, j 8)         matmul1[8 i + j]  = 0
    loops (i 10, j 2, k 8)    matmul1[8 i + k] += x[2 i + j] * W[8 j + k]
    loops (i 10, j 8)         add1[8 i + j]     = matmul1[8 i + j] + b[j]
    loop  (i 80)              relu1[i]          = relu(add1[i])
    loops (i 10, j 8)         result[8 i + j]   = relu1[8 i + j]

The last one writes the result where the caller will find it. A letter says how deep a loop is, so the same
axis may have another letter in the next nest. Nothing is fused yet: that is the work of `schedule.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..backend_ndarray.device import BackendDevice
from ..backend_ndarray.indexing import in_range
from ..backend_ndarray.ndarray import NDArray
from ..backend_ndarray.scalar_functions import REDUCTIONS, SCALAR_FUNCTIONS
from ..backend_ndarray.strides import compact_strides
from ..backend_ndarray.views import assemble, new_array
from ..graph import Pending, Spec

Shape = tuple[int, ...]

#: A float32 sum of more numbers than this is kept in double precision. On a GPU, where that is slow, threads
#: share a sum instead, so that each adds up few numbers.
RUN = 2048

#: A matrix product with more multiplications than this is left to BLAS, or on a GPU to cuBLAS.
SMALL = 1 << 15
SMALL_ON_GPU = 1 << 12


class Buffer:
    """Flat storage of the program: `size` numbers of one data type.

    Attributes
    ----------
    name : str
        What the source calls it.
    data : numpy.ndarray or None
        The numbers of a constant.
    value : float or None
        The number that a constant holds everywhere; then no storage is needed.
    is_ours : bool
        Whether it is the program's own: neither an argument nor a result.
    counts : bool
        Whether element number i is i, so that it needs no storage either.
    """

    def __init__(self, size: int, dtype: Any = "float32", name: str = ""):
        self.size = size
        self.dtype = np.dtype(dtype)
        self.name = name
        self.data: np.ndarray | None = None
        self.value: float | None = None
        self.is_ours = True
        self.counts = False

    def __repr__(self) -> str:
        return f"Buffer({self.name or hex(id(self))}, {self.size}, {self.dtype})"


class Access(NamedTuple):
    """Which element of a buffer a statement reads or writes: ``offset + i * strides[0] + j * strides[1] …``.

    With a `via`, the element of the buffer `via` there, times `step`, is added to that.
    """

    buffer: Buffer
    offset: int
    strides: Shape
    via: Access | None = None
    step: int = 0


class Nest:
    """Loops around one statement.

    Attributes
    ----------
    function : str
        A row of the table of scalar functions, "copy", "check" (that a number is whole and within bounds) or
        "check_not_zero".
    shape : tuple of int
        How long each loop is.
    out : Access
        What the statement writes.
    reads : list of Access, number or Number
        The operands of `function`.
    fold : str or None
        The row by which the result is folded into what `out` holds, such as "add" for a sum. None: it is
        written there.
    product : bool
        Whether it is a matrix product whose last three loops (row, inner, column) are a call of BLAS.
    maker : Maker
        The operator that it belongs to.
    refusal : callable or None
        Of a check: from its operand's numbers to the error.
    scales : list of tuple, or None
        Of a product that BLAS adds to what `out` holds: what it is multiplied by before, as ("negate",) and
        ("multiply", number). None: what `out` held does not matter.
    """

    refusal: Callable[[np.ndarray], Exception] | None = None
    scales: list[tuple] | None = None

    def __init__(
        self,
        function: str,
        shape: Shape,
        out: Access,
        reads: Sequence[Any],
        fold: str | None = None,
        product: bool = False,
        maker: Any = None,
    ):
        self.function = function
        self.shape = shape
        self.out = out
        self.reads = list(reads)
        self.fold = fold
        self.product = product
        self.maker = maker

    @property
    def accesses(self) -> list[Access]:
        """All that it reads and writes, the places that an index names included."""
        found = [self.out, *[x for x in self.reads if isinstance(x, Access)]]
        return found + [x.via for x in found if x.via is not None]

    @property
    def numbers(self) -> list[Any]:
        """The numbers that it computes with."""
        scales = [x for _, *numbers in self.scales or () for x in numbers]
        return [x for x in self.reads if not isinstance(x, Access)] + scales

    @property
    def is_check(self) -> bool:
        """Whether it computes nothing and only looks at numbers."""
        return self.refusal is not None

    @property
    def read(self) -> list[Buffer]:
        """The storage that it reads."""
        return [x.buffer for x in self.sources]

    @property
    def written(self) -> list[Buffer]:
        """The storage that it writes."""
        return [self.out.buffer]

    @property
    def sources(self) -> list[Access]:
        """All that it reads; where it folds, what it writes as well."""
        found = [x for x in self.reads if isinstance(x, Access)]
        found += [x.via for x in (*found, self.out) if x.via is not None]
        keeps = self.fold is not None and (self.scales is not None or not self.product)
        return [self.out, *found] if keeps else found

    def __repr__(self) -> str:
        def text(x: Any) -> str:
            return f"{x.buffer.name or 'buffer'}{x.offset, x.strides}" if isinstance(x, Access) else repr(x)

        sign = "=" if self.fold is None else f"{self.fold}="
        return f"{self.shape} {text(self.out)} {sign} {self.function}({', '.join(map(text, self.reads))})"


class Maker(NamedTuple):
    """The operator that nests belong to, and the call of a module in which it was used."""

    op: Any
    scope: Any


class Call:
    """An operator that cannot be lowered: it is computed by its own kernel, between parts of the program.

    Attributes
    ----------
    op : Op
    operands : list of NDArray, or of tuples of them
        Arrays of the recording device.
    results : list of NDArray
    """

    def __init__(self, op: Any, operands: Sequence[Any], results: Sequence[NDArray], maker: Maker):
        self.op = op
        self.operands = list(operands)
        self.results = list(results)
        self.maker = maker

    is_check = False

    @property
    def read(self) -> list[Buffer]:
        """The storage that it reads."""
        found = [x for operand in self.operands for x in (operand if type(operand) is tuple else (operand,))]
        return [x._handle for x in found]

    @property
    def written(self) -> list[Buffer]:
        """The storage that it writes."""
        return [x._handle for x in self.results]


class NeedsNumbers(Exception):
    """An operator's `compute` asked an array of the recording device for its numbers."""


class Recorder:
    """A backend whose kernels write down loops; see `ndarray_backend_numpy.py` for what a backend offers."""

    __device_name__ = "recorder"

    def __init__(self, has_blas: bool = True, on_gpu: bool = False) -> None:
        self.has_blas = has_blas
        self.on_gpu = on_gpu
        self.steps: list[Nest | Call] = []
        self.maker: Any = None
        unary = {name: self._map(name) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 1}
        binary = {name: self._zip(name) for name, row in SCALAR_FUNCTIONS.items() if row.arity == 2}
        self.MAPS, self.ZIPS = unary, binary
        self.REDUCES = {name: self._reduce(name) for name in REDUCTIONS}
        self.Array = Buffer

    def _add(self, function: str, shape: Shape, out: Access, reads: Sequence[Any], **more: Any) -> None:
        if math.prod(shape):
            self.steps.append(Nest(function, shape, out, reads, maker=self.maker, **more))

    # Storage

    def from_numpy(self, values: np.ndarray, out: Buffer) -> None:
        out.data = np.ascontiguousarray(values, out.dtype).reshape(-1)
        bits = out.data.view(f"u{out.dtype.itemsize}")  # 0.0 is not -0.0, and NaN is NaN
        if out.size and (bits == bits[0]).all():
            out.value = out.data[0].item()

    def to_numpy(self, *_: Any) -> np.ndarray:
        raise NeedsNumbers

    def fill(self, out: Buffer, value: float) -> None:
        self._add("copy", (out.size,), _whole(out), [value])

    def compact(self, a: Buffer, out: Buffer, shape: Shape, strides: Shape, offset: int) -> None:
        self._add("copy", shape, Access(out, 0, compact_strides(shape)), [Access(a, offset, strides)])

    def ewise_setitem(self, a: Buffer, out: Buffer, shape: Shape, strides: Shape, offset: int) -> None:
        self._add("copy", shape, Access(out, offset, strides), [Access(a, 0, compact_strides(shape))])

    def scalar_setitem(
        self, size: int, value: float, out: Buffer, shape: Shape, strides: Shape, offset: int
    ) -> None:
        self._add("copy", shape, Access(out, offset, strides), [value])

    # Kernels

    def _map(self, name: str) -> Callable:
        def kernel(a: Buffer, out: Buffer, layout: Any = None) -> None:
            shape, strides, offset = layout or ((out.size,), (1,), 0)
            self._add(name, shape, Access(out, 0, compact_strides(shape)), [Access(a, offset, strides)])

        return kernel

    def _zip(self, name: str) -> Callable:
        def kernel(a: Any, b: Any, out: Buffer, layout: Any = None) -> None:
            shape, a_strides, a_offset, b_strides, b_offset = layout or ((out.size,), (1,), 0, (1,), 0)
            reads = [
                Access(x, offset, strides) if isinstance(x, Buffer) else x
                for x, offset, strides in ((a, a_offset, a_strides), (b, b_offset, b_strides))
            ]
            self._add(name, shape, Access(out, 0, compact_strides(shape)), reads)

        return kernel

    def _reduce(self, name: str) -> Callable:
        def kernel(a: Buffer, out: Buffer, k: int, layout: Any = None) -> None:
            kept, kept_strides, folded, folded_strides, offset = layout or ((out.size,), (k,), (k,), (1,), 0)
            totals = out
            if name == "add" and k > RUN and out.dtype == np.float32 and not self.on_gpu:
                totals = Buffer(out.size, "float64")
            places = Access(totals, 0, compact_strides(kept))
            self._add("copy", kept, places, [neutral(name, out.dtype)])
            write = Access(totals, 0, places.strides + (0,) * len(folded))
            read = Access(a, offset, kept_strides + folded_strides)
            self._add("copy", kept + folded, write, [read], fold=name)
            if totals is not out:
                self._add("copy", kept, Access(out, 0, places.strides), [places])

        return kernel

    def matmul(self, a: Buffer, b: Buffer, out: Buffer, m: int, n: int, p: int, layout: Any = None) -> None:
        batch, a_strides, a_offset, b_strides, b_offset = layout or ((), (n, 1), 0, (p, 1), 0)
        if not math.prod(batch):
            return
        small = SMALL_ON_GPU if self.on_gpu else SMALL
        by_blas = m * n * p > small and out.dtype.kind == "f" and self.has_blas
        if by_blas:
            a, a_strides, a_offset = self._for_blas(a, (*batch, m, n), a_strides, a_offset)
            b, b_strides, b_offset = self._for_blas(b, (*batch, n, p), b_strides, b_offset)
        *outer, down, right = compact_strides((*batch, m, p))
        write = Access(out, 0, (*outer, down, 0, right))
        left = Access(a, a_offset, (*a_strides, 0))
        right_ = Access(b, b_offset, (*b_strides[:-2], 0, *b_strides[-2:]))
        if not by_blas:
            self._add("copy", (*batch, m, p), Access(out, 0, (*outer, down, right)), [0])
        self._add("multiply", (*batch, m, n, p), write, [left, right_], fold="add", product=by_blas)

    def _for_blas(self, a: Buffer, shape: Shape, strides: Shape, offset: int) -> tuple:
        """A matrix whose rows or columns lie side by side: a copy where they do not."""
        down, right = strides[-2:]
        rows, columns = shape[-2:]
        if (right == 1 and down >= columns) or (down == 1 and right >= rows):
            return a, strides, offset
        out = Buffer(math.prod(shape), a.dtype)
        self.compact(a, out, shape, strides, offset)
        return out, compact_strides(shape), 0

    def gather(self, a: Buffer, out: Buffer, index: Any, n: int, inner: int) -> None:
        index = self._index(index)
        count = index.size
        shape = (out.size // (count * inner), count, inner)
        read = Access(a, 0, (n * inner, 0, 1), Access(index, 0, (0, 1, 0)), inner)
        self._add("copy", shape, Access(out, 0, compact_strides(shape)), [read])

    def _index(self, index: Any) -> Buffer:
        if not isinstance(index, np.ndarray):
            return index
        found = Buffer(index.size, "int64")
        self.from_numpy(index, found)
        return found

    def scatter_add(self, a: Buffer, out: Buffer, index: Any, n: int, inner: int) -> None:
        index = self._index(index)
        count = index.size
        shape = (out.size // (n * inner), count, inner)
        write = Access(out, 0, (n * inner, 0, 1), Access(index, 0, (0, 1, 0)), inner)
        self._add("copy", shape, write, [Access(a, 0, compact_strides(shape))], fold="add")

    # Checks: what an operator refuses when it sees the numbers

    def _check(self, function: str, a: NDArray, reads: list[Any], refusal: Callable) -> None:
        if a.size:
            out = Access(Buffer(1), 0, (0,) * len(a.shape))
            reads = [Access(a._handle, a.offset, a.strides), *reads]
            check = Nest(function, a.shape, out, reads, maker=self.maker)
            check.refusal = refusal
            self.steps.append(check)

    def checked_index(self, index: NDArray, length: int, refusal: Callable, from_end: bool) -> NDArray:
        """See `kernel_calls.checked_index`."""

        def error(given: np.ndarray) -> Exception:
            try:
                in_range(given, length, refusal, from_end)
            except IndexError as found:
                return found
            raise AssertionError  # the check found one

        self._check("check", index, [-length if from_end else 0, length], error)
        whole = index if index.dtype == np.int64 else index.astype("int64")
        return whole + (whole < 0) * length if from_end else whole

    def one_hot(self, labels: NDArray, n: int, dtype: Any) -> NDArray:
        """See `kernel_calls.one_hot`."""

        def error(given: np.ndarray) -> Exception:
            try:
                labels.device.one_hot(n, given, dtype)
            except IndexError as found:
                return found
            raise AssertionError

        self._check("check", labels, [0, n], error)
        whole = labels if labels.dtype == np.int64 else labels.astype("int64")
        shape = (*labels.shape, n)
        out, classes = labels.device.empty(shape, dtype), Buffer(n, "int64")
        classes.counts = True
        at_class = Access(classes, 0, (0,) * len(labels.shape) + (1,))
        at_label = Access(whole._handle, whole.offset, (*whole.strides, 0))
        self._add("eq", shape, Access(out._handle, 0, out.strides), [at_label, at_class])
        return out

    def checked_not_zero(self, a: NDArray, refusal: str) -> NDArray:
        """See `kernel_calls.checked_not_zero`."""
        self._check("check_not_zero", a, [], lambda given: ValueError(refusal))
        return a


def _whole(buffer: Buffer) -> Access:
    return Access(buffer, 0, (1,))


def neutral(name: str, dtype: np.dtype) -> float:
    """The number that changes nothing when it is folded with another by the row `name`."""
    if name in ("add", "multiply"):
        return 0 if name == "add" else 1
    if dtype.kind == "f":
        return -math.inf if name == "maximum" else math.inf
    info = np.iinfo(dtype if dtype.kind != "b" else np.uint8)
    return int(info.min if name == "maximum" else info.max)


# From a graph of pending values to nests


class Lowered(NamedTuple):
    """A graph as loops.

    Attributes
    ----------
    steps : list of Nest or Call
        In an order in which they can run.
    arrays : dict
        For each pending value the array of the recording device that stands for it.
    """

    steps: list[Nest | Call]
    arrays: dict[Any, Any]


def lower(
    wanted: Iterable[Any], names: dict[Pending, str], has_blas: bool = True, on_gpu: bool = False
) -> Lowered:
    """Write down the loops that compute the `wanted` values.

    Parameters
    ----------
    wanted : iterable of Pending or NDArray
    names : dict of Pending to str
        The values that are given, and their names. They become buffers of the same names.
    has_blas : bool
        Whether large matrix products can be left to BLAS.
    on_gpu : bool
        Whether they are for a GPU.
    """
    recorder = Recorder(has_blas, on_gpu)
    device = BackendDevice("cpu", recorder)  # type: ignore[arg-type]
    arrays: dict[Any, Any] = {}
    for cell, name in names.items():
        arrays[cell] = _array(cell.spec, device, name)
        arrays[cell]._handle.is_ours = False

    def array_of(value: Any) -> Any:
        """The recording array for an operand: a value of the graph, or a constant array."""
        if value not in arrays:  # arrays are hashed by identity
            if type(value) is tuple:
                arrays[value] = tuple(map(array_of, value))
            else:
                arrays[value] = device.array(value.numpy(), value.dtype)
        return arrays[value]

    def recorded(result: Any) -> Any:
        """What an operator computed. What it made without its operands, such as zeros, is a constant."""
        if type(result) is tuple:
            return tuple(map(recorded, result))
        return result if type(result._handle) is Buffer else array_of(result)

    for cell in in_order([x for x in wanted if type(x) is Pending], arrays):
        recorder.maker = Maker(cell.op, cell.scope)
        op: Any = cell.op
        operands = [array_of(x) for x in cell.operands or ()]
        before = len(recorder.steps)
        try:
            arrays[cell] = recorded(op.compute(*operands))
        except NeedsNumbers:
            del recorder.steps[before:]
            is_one = isinstance(cell.spec, Spec)  # and not of a tuple of arrays
            results = [_array(spec, device) for spec in ([cell.spec] if is_one else cell.spec)]
            recorder.steps.append(Call(cell.op, operands, results, recorder.maker))
            arrays[cell] = results[0] if is_one else tuple(results)
    for value in wanted:
        array_of(value)
    return Lowered(recorder.steps, arrays)


def _array(spec: Any, device: BackendDevice, name: str = "") -> NDArray:
    """An array whose numbers are given, or come from a call."""
    handle = Buffer(math.prod(spec.shape), spec.dtype, name)
    return assemble(new_array(NDArray), handle, device, spec.shape, compact_strides(spec.shape))


def in_order(wanted: list[Pending], given: Any) -> Iterator[Pending]:
    """All pending values that lead to the wanted ones, each after its operands; given ones are left out."""
    seen: set[Pending] = set(given)
    done: set[Pending] = set(given)
    stack = list(reversed(wanted))
    while stack:
        cell = stack[-1]
        if cell in done:
            stack.pop()
        elif cell in seen:
            stack.pop()
            done.add(cell)
            yield cell
        else:
            seen.add(cell)
            stack.extend(x for x in reversed(cell.operands or ()) if type(x) is Pending)
