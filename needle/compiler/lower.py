"""Lower: from operators on arrays to loops over flat storage.

An operator says in its `compute` how to make its result out of arrays. Here it is given arrays that hold no
numbers. They live on a device whose kernels compute nothing: they write down the loops that a real kernel
would have run. So operators lower themselves, and strides, broadcasting, slices and reshapes are worked out
by the same code as always. The few operators that need the numbers themselves become a `Call`.

Take ``relu(x @ W + b)`` for a batch of 10 rows, with W of shape (2, 8). It becomes five *nests*, each some
loops around a single statement. A read or a write is an `Access`: a buffer, and the stride for each loop.

    loops (i 10, j 8)         matmul1[8 i + j]  = 0
    loops (i 10, j 2, k 8)    matmul1[8 i + k] += x[2 i + j] * W[8 j + k]
    loops (i 10, j 8)         add1[8 i + j]     = matmul1[8 i + j] + b[j]
    loop  (i 80)              relu1[i]          = relu(add1[i])
    loops (i 10, j 8)         result[8 i + j]   = relu1[8 i + j]

`program.py` adds the last one, which writes the result where the caller will find it. A letter says how deep
a loop is, so the same axis may have another letter in the next nest. Nothing is fused yet: that is the work
of `schedule.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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

#: A float32 sum of more numbers than this is added up in float64. On a GPU, where that is slow, threads
#: share a sum instead, so that each adds up few numbers.
RUN = 2048

#: A matrix product with more multiplications than this is left to BLAS, or on a GPU to cuBLAS.
SMALL = 1 << 15
SMALL_ON_GPU = 1 << 12


@dataclass(eq=False)
class Buffer:
    """Flat storage of the program: `size` numbers of one data type."""

    size: int
    dtype: Any = "float32"
    name: str = ""  # what the source calls it
    data: np.ndarray | None = None  # the numbers of a constant
    value: float | None = None  # the number that a constant holds everywhere; then it needs no storage
    is_ours: bool = True  # whether it is the program's own: neither an argument nor a result
    is_iota: bool = False  # whether element number i is i; then it needs no storage either

    def __post_init__(self) -> None:
        self.dtype = np.dtype(self.dtype)


class Access(NamedTuple):
    """Which element of a buffer a statement reads or writes: ``offset + i * strides[0] + j * strides[1] …``.

    An indirect access, such as ``weight[labels[i]]``, adds to this `step` times the number that `via` reads.
    """

    buffer: Buffer
    offset: int
    strides: Shape
    via: Access | None = None
    step: int = 0


def whole(buffer: Buffer, shape: Shape) -> Access:
    """All elements of a buffer, in order, by loops of these lengths."""
    return Access(buffer, 0, compact_strides(shape))


@dataclass(eq=False)
class Nest:
    """Loops around one statement, ``out = function(*reads)``."""

    #: A row of the table of scalar functions; "copy"; or a check: "check", that a number is whole and within
    #: bounds, or "check_not_zero".
    function: str
    shape: Shape  # how long each loop is
    out: Access
    reads: list[Any]  # accesses, numbers and `Number`s
    fold: str | None = None  # the row that combines the result with what `out` holds: "add" for ``out += …``
    product: bool = False  # whether its last three loops (row, inner, column) are a matrix product by BLAS
    maker: Any = None  # the `Maker` of it
    look: Callable[[np.ndarray], Any] | None = None  # of a check: raises its error if a number is wrong
    #: The factors of a product that BLAS adds to `out` or subtracts from it. None: it overwrites `out`.
    scales: list[Any] | None = None

    @property
    def accesses(self) -> list[Access]:
        """All that it reads and writes, the `via` of indirect accesses included."""
        found = [self.out, *[x for x in self.reads if isinstance(x, Access)]]
        return found + [x.via for x in found if x.via is not None]

    @property
    def sources(self) -> list[Access]:
        """All that it reads: also `out`, if it combines its result with what is there."""
        keeps = self.fold is not None and (self.scales is not None or not self.product)
        return self.accesses if keeps else self.accesses[1:]

    @property
    def read(self) -> list[Buffer]:
        """The storage that it reads."""
        return [x.buffer for x in self.sources]

    @property
    def written(self) -> list[Buffer]:
        """The storage that it writes."""
        return [self.out.buffer]

    @property
    def buffers(self) -> list[Buffer]:
        """All storage that it reads or writes."""
        return [x.buffer for x in self.accesses[self.is_check :]]

    @property
    def axes(self) -> range:
        """The axes that are loops: all but the last three of a product that BLAS computes."""
        return range(len(self.shape) - (3 if self.product else 0))

    @property
    def numbers(self) -> list[Any]:
        """The numbers that it computes with."""
        return [x for x in self.reads if not isinstance(x, Access)] + (self.scales or [])

    @property
    def is_check(self) -> bool:
        """Whether it only looks at numbers and writes nothing."""
        return self.look is not None

    @property
    def is_product(self) -> bool:
        """Whether it is a matrix product, by BLAS or not."""
        return self.function == "multiply" and self.fold is not None

    @property
    def is_elementwise(self) -> bool:
        """Whether it goes through whole arrays, and through all of them in the same order."""
        size, places = math.prod(self.shape), (0, self.out.strides, None, 0)
        return all(x.buffer.size == size and x[1:] == places for x in self.accesses)

    @property
    def is_copy(self) -> bool:
        """Whether it copies a whole array as it is."""
        return self.function == "copy" and len(self.accesses) == 2 and self.is_elementwise

    def change(self, changed: Callable[[Access], Access]) -> None:
        """Replace each access `x` by ``changed(x)``; of an indirect one, its `via` first."""

        def new(x: Any) -> Any:
            if not isinstance(x, Access):
                return x
            return changed(x if x.via is None else x._replace(via=new(x.via)))

        self.out, self.reads = new(self.out), [new(x) for x in self.reads]


class Maker(NamedTuple):
    """The operator that a nest belongs to, and the call of a module in which it was used."""

    op: Any
    scope: Any


@dataclass(eq=False)
class Call:
    """An operator that cannot be lowered: its own kernel computes it, between parts of the program."""

    op: Any
    operands: list[Any]  # arrays of the recording device, and tuples of them
    results: list[NDArray]
    maker: Maker
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

    @property
    def buffers(self) -> list[Buffer]:
        """All storage that it reads or writes."""
        return self.read + self.written


class NeedsNumbers(Exception):
    """An operator's `compute` asked an array of the recording device for its numbers."""


class Recorder:
    """A backend whose kernels write down loops; see `ndarray_backend_numpy.py` for what a backend offers."""

    __device_name__ = "recorder"
    Array = Buffer

    def __init__(self, has_blas: bool = True, on_gpu: bool = False) -> None:
        self.has_blas = has_blas
        self.on_gpu = on_gpu
        self.steps: list[Nest | Call] = []
        self.maker: Any = None
        kernels = {name: self._elementwise(name, row.arity) for name, row in SCALAR_FUNCTIONS.items()}
        self.MAPS = {name: kernels[name] for name, row in SCALAR_FUNCTIONS.items() if row.arity == 1}
        self.ZIPS = {name: kernels[name] for name, row in SCALAR_FUNCTIONS.items() if row.arity == 2}
        self.REDUCES = {name: self._reduce(name) for name in REDUCTIONS}

    def _add(self, function: str, shape: Shape, out: Access, reads: list[Any], **more: Any) -> None:
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
        self._add("copy", (out.size,), whole(out, (out.size,)), [value])

    def compact(self, a: Buffer, out: Buffer, shape: Shape, strides: Shape, offset: int) -> None:
        self._add("copy", shape, whole(out, shape), [Access(a, offset, strides)])

    def ewise_setitem(self, a: Buffer, out: Buffer, shape: Shape, strides: Shape, offset: int) -> None:
        self._add("copy", shape, Access(out, offset, strides), [whole(a, shape)])

    def scalar_setitem(
        self, size: int, value: float, out: Buffer, shape: Shape, strides: Shape, offset: int
    ) -> None:
        self._add("copy", shape, Access(out, offset, strides), [value])

    # Kernels

    def _elementwise(self, name: str, arity: int) -> Callable:
        def kernel(*given: Any) -> None:
            operands, out = given[:arity], given[arity]
            layout = given[arity + 1 :] and given[-1]
            shape, *places = layout or ((out.size,), *((1,), 0) * arity)
            reads = [
                Access(x, offset, strides) if isinstance(x, Buffer) else x
                for x, strides, offset in zip(operands, places[::2], places[1::2], strict=True)
            ]
            self._add(name, shape, whole(out, shape), reads)

        return kernel

    def _reduce(self, name: str) -> Callable:
        def kernel(a: Buffer, out: Buffer, k: int, layout: Any = None) -> None:
            kept, kept_strides, folded, folded_strides, offset = layout or ((out.size,), (k,), (k,), (1,), 0)
            totals = out
            if name == "add" and k > RUN and out.dtype == np.float32 and not self.on_gpu:
                totals = Buffer(out.size, "float64")
            places = whole(totals, kept)
            self._add("copy", kept, places, [neutral(name, out.dtype)])
            write = places._replace(strides=places.strides + (0,) * len(folded))
            read = Access(a, offset, kept_strides + folded_strides)
            self._add("copy", kept + folded, write, [read], fold=name)
            if totals is not out:
                self._add("copy", kept, whole(out, kept), [places])

        return kernel

    def matmul(self, a: Buffer, b: Buffer, out: Buffer, m: int, n: int, p: int, layout: Any = None) -> None:
        batch, a_strides, a_offset, b_strides, b_offset = layout or ((), (n, 1), 0, (p, 1), 0)
        small = SMALL_ON_GPU if self.on_gpu else SMALL
        by_blas = m * n * p > small and out.dtype.kind == "f" and self.has_blas
        left, right = Access(a, a_offset, a_strides), Access(b, b_offset, b_strides)
        if by_blas:
            left, right = self._for_blas(left, (*batch, m, n)), self._for_blas(right, (*batch, n, p))
        left = left._replace(strides=(*left.strides, 0))
        right = right._replace(strides=(*right.strides[:-2], 0, *right.strides[-2:]))
        places = whole(out, (*batch, m, p))
        if not by_blas:
            self._add("copy", (*batch, m, p), places, [0])
        *outer, down, across = places.strides
        write = places._replace(strides=(*outer, down, 0, across))
        self._add("multiply", (*batch, m, n, p), write, [left, right], fold="add", product=by_blas)

    def _for_blas(self, x: Access, shape: Shape) -> Access:
        """The matrices as BLAS can read them: if neither rows nor columns are contiguous, a copy."""
        (down, right), (rows, columns) = x.strides[-2:], shape[-2:]
        if (right == 1 and down >= columns) or (down == 1 and right >= rows):
            return x
        out = Buffer(math.prod(shape), x.buffer.dtype)
        self.compact(x.buffer, out, shape, x.strides, x.offset)
        return whole(out, shape)

    def gather(self, a: Buffer, out: Buffer, index: Buffer, n: int, inner: int) -> None:
        shape = (out.size // (index.size * inner), index.size, inner)
        self._add("copy", shape, whole(out, shape), [_rows(a, index, n, inner)])

    def scatter_add(self, a: Buffer, out: Buffer, index: Buffer, n: int, inner: int) -> None:
        shape = (out.size // (n * inner), index.size, inner)
        self._add("copy", shape, _rows(out, index, n, inner), [whole(a, shape)], fold="add")

    # Checks: what an operator refuses when it sees the numbers

    def _check(self, function: str, a: NDArray, reads: list[Any], refuse: Callable) -> None:
        nothing = Access(Buffer(1), 0, (0,) * len(a.shape))
        shape, size = a.shape, a.dtype.itemsize
        offset, strides = size * a.offset, [size * step for step in a.strides]

        def look(numbers: np.ndarray) -> None:
            refuse(np.ndarray(shape, numbers.dtype, numbers, offset, strides))

        self._add(function, a.shape, nothing, [Access(a._handle, a.offset, a.strides), *reads], look=look)

    def checked_index(self, index: NDArray, length: int, refusal: Callable, from_end: bool) -> NDArray:
        """See `kernel_calls.checked_index`."""
        bounds = [-length if from_end else 0, length]
        self._check("check", index, bounds, lambda x: in_range(x, length, refusal, from_end))
        found = index if index.dtype == np.int64 else index.astype("int64")
        return found + (found < 0) * length if from_end else found

    def one_hot(self, labels: NDArray, n: int, dtype: Any) -> NDArray:
        """See `kernel_calls.one_hot`."""
        device = labels.device
        self._check("check", labels, [0, n], lambda x: device.one_hot(n, x, dtype))
        found = labels if labels.dtype == np.int64 else labels.astype("int64")
        shape = (*labels.shape, n)
        out, classes = device.empty(shape, dtype), Buffer(n, "int64")
        classes.is_iota = True
        at_class = Access(classes, 0, (0,) * len(labels.shape) + (1,))
        at_label = Access(found._handle, found.offset, (*found.strides, 0))
        self._add("eq", shape, whole(out._handle, shape), [at_label, at_class])
        return out

    def checked_not_zero(self, a: NDArray, refusal: str) -> NDArray:
        """See `kernel_calls.checked_not_zero`."""

        def refuse(numbers: np.ndarray) -> None:
            if not numbers.all():
                raise ValueError(refusal)

        self._check("check_not_zero", a, [], refuse)
        return a


def _rows(a: Buffer, index: Buffer, n: int, inner: int) -> Access:
    """Rows that an index picks: `a` has groups of `n` rows, and each row has `inner` numbers."""
    return Access(a, 0, (n * inner, 0, 1), Access(index, 0, (0, 1, 0)), inner)


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
    """A graph as loops."""

    steps: list[Nest | Call]  # in an order in which they can run
    arrays: dict[Any, Any]  # for each pending value the array of the recording device that stands for it


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

    for cell in in_order(pending_in(wanted), lambda cell: pending_in(cell.operands or ()), arrays):
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


def in_order(wanted: Iterable[Any], operands_of: Callable[[Any], list[Any]], given: Any = ()) -> list[Any]:
    """What the wanted values need, operands first (a topological order), without the given ones."""
    done: dict[Any, None] = dict.fromkeys(given)
    seen = set(done)
    stack = list(wanted)[::-1]
    while stack:
        x = stack[-1]
        if x in done:
            stack.pop()
        elif x in seen:
            done[stack.pop()] = None
        else:
            seen.add(x)
            stack.extend(reversed(operands_of(x)))
    return list(done)[len(given) :]


def pending_in(values: Iterable[Any]) -> list[Pending]:
    """The values that are not computed yet."""
    return [x for x in values if type(x) is Pending]
