"""The kernels that Numba compiles for the CPU against NumPy: every row, every layout, one thread and several.

New storage is filled with NaN (or the largest integer) first, so that a number that no kernel has written is
seen.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from needle import backend_ndarray as nd
from needle.backend_ndarray import NDArray, elementwise, ndarray_backend_numba_cpu, numba_kernels
from needle.backend_ndarray.ndarray_backend_numpy import quiet
from needle.backend_ndarray.scalar_functions import SCALAR_FUNCTIONS

floats = pytest.mark.parametrize("dtype", ["float32", "float64"])
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}


class Poisoned(ndarray_backend_numba_cpu.Array):
    """Storage in which whatever has not been written is noticed."""

    __slots__ = ()

    def __init__(self, size, dtype="float32"):
        super().__init__(size, dtype)
        kind = self.dtype.kind
        self.buffer.fill({"f": np.nan, "b": True}.get(kind) or np.iinfo(self.dtype).max)


@pytest.fixture(autouse=True)
def poisoned(monkeypatch):
    monkeypatch.setattr(ndarray_backend_numba_cpu, "Array", Poisoned)


class Counted:
    """In place of the lock of the threads: counts how often they are asked for."""

    def __init__(self):
        self.count = 0

    def acquire(self, blocking):
        self.count += 1
        return True

    def release(self):
        pass


@pytest.fixture
def threads(monkeypatch):
    """Threads are used for the smallest of arrays; counts how often."""
    for module in (numba_kernels, ndarray_backend_numba_cpu):
        monkeypatch.setattr(module, "PARALLEL_SIZE", 1)
    monkeypatch.setattr(numba_kernels, "_threads_work", True)
    monkeypatch.setattr(numba_kernels, "_threads", counted := Counted())
    return counted


@pytest.fixture
def long_rows(monkeypatch):
    """Rows of 16 numbers are long enough to be folded in parts."""
    monkeypatch.setattr(ndarray_backend_numba_cpu, "LONG", 8)


def ours(x: np.ndarray) -> NDArray:
    """NumPy's array as one of ours, on a copy of its memory and with the same strides and offset."""
    base = x
    while base.base is not None:
        base = base.base
    assert base.flags.c_contiguous
    base_address, address = (a.__array_interface__["data"][0] for a in (base, x))
    strides = tuple(stride // x.itemsize for stride in x.strides)
    handle = nd.array(base, x.dtype, nd.cpu())._handle
    return NDArray.make(x.shape, strides, nd.cpu(), handle, (address - base_address) // x.itemsize)


def same(array: NDArray, expected: np.ndarray, rtol: float = 0, atol: float = 0) -> None:
    expected = np.asarray(expected)
    assert (array.shape, array.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(array.numpy(), expected, rtol, atol)


# Every row with every layout

#: Views of 5040 numbers in a row.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "shape ()": lambda x: x[5:6].reshape(()),
    "one number": lambda x: x[-1:].reshape(1, 1, 1),
    "compact": lambda x: x.reshape(7, 12, 60),
    "offset": lambda x: x[7:31].reshape(4, 6),
    "transposed": lambda x: x[:15].reshape(3, 5).T,
    "transposed and large": lambda x: x.reshape(70, 72).T,
    "steps": lambda x: x.reshape(70, 72)[1::3, ::2],
    "negative steps": lambda x: x.reshape(10, 7, 72)[::-1, :, ::-2],
    "far and negative": lambda x: x.reshape(70, 72).T[::-1, ::-1],
    "permuted": lambda x: x.reshape(5, 7, 12, 12).transpose(2, 0, 3, 1),
    "six axes": lambda x: x[:720].reshape(2, 3, 1, 4, 5, 6).transpose(5, 0, 2, 4, 1, 3),
    "axes of length 1": lambda x: x[:12].reshape(1, 3, 1, 4, 1)[:, ::-1],
    "repeated rows": lambda x: np.broadcast_to(x[:65], (64, 65)),
    "repeated columns": lambda x: np.broadcast_to(x[:70, None], (70, 66)),
    "repeated in the middle": lambda x: np.broadcast_to(x[:60].reshape(6, 1, 10), (6, 9, 10)),
    "repeated and far": lambda x: np.broadcast_to(x.reshape(70, 72).T[:, None], (72, 2, 70)),
    "repeated everywhere": lambda x: np.broadcast_to(x[3:4], (3, 4)),
    "overlapping": lambda x: np.lib.stride_tricks.sliding_window_view(x[:30], 7),
}


def numbers(dtype: str) -> np.ndarray:
    """5040 of them, special ones included, at places that every layout sees."""
    x = np.random.default_rng(0).standard_normal(5040) * 3
    if np.dtype(dtype).kind == "f":
        x[3:24:3] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-30]
    return x.astype(dtype) if dtype != "uint8" else (x * 80).astype("int64").astype("uint8")


def partners(x: np.ndarray) -> list[np.ndarray]:
    """Operands to go with `x`: laid out as it is and otherwise, and such as are repeated along an axis."""
    found = [x, np.flip(x), np.flip(x).copy()]
    return [*found, x[:1], x[..., -1:]] if x.ndim else found


SOME_ROWS = [("add", "float32"), ("relu", "float32"), ("exp", "float32"), ("power", "float64")]
EVERY_ROW = [(name, "float32") for name in SCALAR_FUNCTIONS] + [("add", "int64"), ("subtract", "uint8")]
MORE_ROWS = [pytest.param(*row, marks=pytest.mark.slow) for row in EVERY_ROW if row not in SOME_ROWS]


@pytest.mark.parametrize(("name", "dtype"), SOME_ROWS + MORE_ROWS)
def test_a_row_of_the_table_with_every_layout(name, dtype):
    row = SCALAR_FUNCTIONS[name]
    values, tolerance = numbers(dtype), TOLERANCE.get(dtype, 0)
    for layout in LAYOUTS.values():
        x = layout(values)
        if row.arity == 1:
            same(elementwise(name, ours(x)), quiet.run(row.numpy, x), tolerance, 1e-30)
            continue
        for y in partners(x):
            for a, b in [(x, y), (y, x)]:
                expected = quiet.run(row.numpy, a, b).astype(dtype)
                same(elementwise(name, ours(a), ours(b)), expected, tolerance)


@pytest.mark.parametrize("name", ["subtract", "power", "lt"])
def test_a_number_as_either_operand(name):
    row, x = SCALAR_FUNCTIONS[name], numbers("float32")
    for number in (2, -1.5, 0, np.inf, np.nan, 1e300):
        y = quiet.run(np.array([number]).astype, "float32")
        for found, a, b in [
            (elementwise(name, ours(x), number), x, y),
            (elementwise(name, number, ours(x)), y, x),
        ]:
            same(found, quiet.run(row.numpy, a, b).astype("float32"), 1e-6)


@pytest.mark.parametrize("use", [operator.add, operator.mul, lambda a, b: a.maximum(b)])
@pytest.mark.parametrize(("dtype", "number"), [("uint8", 300), ("uint8", -1), ("int32", 2**31)])
def test_a_number_that_an_integer_type_cannot_hold(use, dtype, number):
    for device in (nd.cpu(), nd.cpu_numpy()):
        with pytest.raises(OverflowError, match=f"{number} does not fit into {dtype}.*astype"):
            use(nd.array([1, 2], dtype, device), number)


@pytest.mark.parametrize("device", [nd.cpu(), nd.cpu_numpy()], ids=str)
class TestWholeNumbers:
    """What whole numbers cannot hold is either answered or refused, on every device alike."""

    @pytest.mark.parametrize("number", [-1, 300])
    @pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
    def test_comparison_with_a_number_beyond_the_type(self, device, name, number):
        values = np.array([0, 7, 255], "uint8")
        array = nd.array(values, "uint8", device)
        compare = getattr(operator, name)
        np.testing.assert_array_equal(elementwise(name, array, number).numpy(), compare(values, number))
        np.testing.assert_array_equal(elementwise(name, number, array).numpy(), compare(number, values))

    def test_a_negative_power(self, device):
        array = nd.array([2, 3], "int32", device)
        for power in (
            lambda: array**-1,
            lambda: 2 ** nd.array([1, -1], "int32", device),
            lambda: array**-array,
        ):
            with pytest.raises(ValueError, match=r"power: .* fraction.*astype\('float32'\)"):
                power()
        np.testing.assert_array_equal((array**2).numpy(), [4, 9])
        np.testing.assert_array_equal(((-2) ** array).numpy(), [4, -8])


# Threads


def results() -> list[np.ndarray]:
    """What all kinds of kernels say about arrays that lie in memory in all kinds of ways."""
    x = np.random.default_rng(1).standard_normal((67, 131)).astype("float32")
    a, row, column = ours(x), ours(x[:1]), ours(x[:, :1])
    square = ours(x[:, :67])
    copied = ours(np.zeros((131, 67), "float32"))
    copied[...] = a.permute((1, 0))
    stripes = ours(np.zeros((67, 262), "float32"))
    stripes[:, ::2] = a
    tiles = ours(x[:64, :128].copy().reshape(8, 16, 8, 8))
    product = nd.empty((8, 8, 8, 8), device=nd.cpu())
    nd.cpu().matmul_tiled(tiles._handle, tiles._handle, product._handle, 64, 128, 64)
    outcomes = [
        *[a.exp(), a.permute((1, 0)).exp(), a[::2, ::-3].exp(), row.broadcast_to((3, 131)).exp()],
        *[a + a, a + 1.5, 1.5 + a, a + row, column + a, square + square.permute((1, 0)), row + a[:, ::-1]],
        *[a.sum(), a.sum(0), a.sum(1), a[:, ::-2].sum(), a[:, :5].sum(0), a.reshape(67, 1, 131).sum((0, 2))],
        *[a.permute((1, 0)).compact(), a[:, 1::2].compact(), copied, stripes, product],
    ]
    return [outcome.numpy() for outcome in outcomes]


@pytest.mark.slow
def test_threads_change_no_bit(long_rows, request):
    alone = results()
    threads = request.getfixturevalue("threads")
    together = results()
    assert threads.count > len(alone) / 2  # a single row is not divided
    for expected, found in zip(alone, together, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_sizes_around_the_one_from_which_threads_are_used(extra):
    size = numba_kernels.PARALLEL_SIZE + extra
    x = np.random.default_rng(2).standard_normal(size).astype("float32")
    a = ours(x)
    same(a + a, x + x)
    same(a + 1, x + 1)
    same(a[::-1] + a, x[::-1] + x)
    same(a.max(), x.max())
    same(a.sum(), x.astype("float64").sum().astype("float32"), 1e-5)
    same(a[::-1].compact(), x[::-1])


lengths = st.sampled_from([1, 2, 3, 8, 17, 64, 65])


@st.composite
def layouts(draw) -> np.ndarray:
    """A view of numbers that are all different: some axes permuted, cut, turned around and repeated."""
    shape = draw(st.lists(lengths, min_size=1, max_size=4).filter(lambda shape: np.prod(shape) <= 20_000))
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    x = x.transpose(draw(st.permutations(range(x.ndim))))
    x = x[tuple(slice(None, None, draw(st.sampled_from([1, 1, 1, 2, -1, -3]))) for _ in shape)]
    repeated = [draw(st.sampled_from([n, 9])) if n == 1 else n for n in x.shape]
    return np.broadcast_to(x, draw(st.sampled_from([[], [3]])) + repeated)


@pytest.mark.slow
@given(layouts(), st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_layout_with_threads(threads, long_rows, x, data):
    array = ours(x)
    same(array.compact(), x)
    same(array + array.flip(), x + np.flip(x))
    axes = tuple(data.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1)))
    same(array.sum(axes), x.astype("float64").sum(axes).astype("float32"), 1e-5)
    out = np.zeros(np.prod(x.shape, dtype=int) * 2, "float32")
    target = out[::-2].reshape(x.shape[::-1]).transpose()
    view = ours(target)
    view[...] = array
    same(view, x)
    storage = NDArray.make(out.shape, None, nd.cpu(), view._handle)
    assert storage[::2].sum().numpy() == 0  # nothing was written between


# Sums

N = 10_000_000


def tenths():
    return np.full(N, 0.1, "float32")


def random():
    return np.random.default_rng(3).random(N, "float32")


def big_and_small():
    x = np.full(N, 1e-3, "float32")
    x[::2] = 1e3
    x[1::4] *= -1
    return x


@pytest.mark.parametrize("values", [tenths, random, big_and_small])
def test_sums_of_many_numbers_keep_their_digits(values):
    x = values()
    a = ours(x)
    columns, table = x.reshape(-1, 4), ours(x).reshape(-1, 4)
    for found, summed, axis in [
        (a.sum(), x, 0),
        (a[::-1].sum(), x, 0),
        (a[::2].sum(), x[::2], 0),
        (table.sum(0), columns, 0),
        (table.sum(1), columns, 1),
        (table.permute((1, 0)).sum(1), columns, 0),
        (a.reshape(-1, 40).sum(0), x.reshape(-1, 40), 0),
        (a.reshape(2, -1).sum(1), x.reshape(2, -1), 1),
    ]:
        exact = summed.sum(axis, dtype="float64")
        scale = np.abs(summed).sum(axis, dtype="float64")
        assert np.max(np.abs(found.numpy() - exact) / scale) < 2e-6


@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 31, 100, 293, 299, 4095, 4096, 4097, 8193, 12289])
def test_rows_of_any_length(k, long_rows):
    for rows in (1, 3, 15, 16):
        x = -1 - np.random.default_rng(k).random((rows, k)).astype("float32")
        same(ours(x).sum(1), x.sum(1, dtype="float64").astype("float32"), 1e-6)
        same(ours(x).max(1), x.max(1))
        same(ours(x).max(), x.max())


@pytest.mark.parametrize("rows", range(1, 10))
def test_rows_of_a_part_of_a_table(rows):
    x = np.random.default_rng(rows).random((2, rows + 1, 40)).astype("float32")
    for part in (np.s_[:, 1:, 3:20], np.s_[:, rows:0:-1, 3:20], np.s_[:, 1:, 20:3:-1]):
        same(ours(x)[part].sum(2), x[part].sum(2, dtype="float64").astype("float32"), 1e-6)
        same(ours(x)[part].max(2), x[part].max(2))


def test_long_rows_that_begin_within_their_storage():
    n = 2 * ndarray_backend_numba_cpu.LONG + 77
    x = np.random.default_rng(4).standard_normal(3 * n + 10).astype("float32")
    for part in (x[7 : 7 + n], x[5 : 5 + 3 * n].reshape(3, n), x[5 : 5 + 3 * n].reshape(3, n)[1:]):
        same(ours(part).max(-1), part.max(-1))
        same(ours(part).sum(-1), part.sum(-1, dtype="float64").astype("float32"), 1e-5, 1e-4)


@pytest.mark.slow
def test_folds_of_integers():
    x = np.random.default_rng(5).integers(-(2**62), 2**62, (130, 70))
    for view in (x, x.T, x[::-1, ::2]):
        for axis in (0, 1, None):
            same(ours(view).max(axis), view.max(axis))
            same(ours(view).sum(axis), view.sum(axis))  # beyond the largest it goes on with the smallest


# The largest and the smallest


def with_nan_at(place: int, n: int, dtype: str) -> np.ndarray:
    x = np.linspace(-3, 3, n, dtype=dtype)
    x[place] = np.nan
    return x


@floats
def test_nan_wins_wherever_it_is(dtype):
    for n in (1, 2, 3, 8, 37, 64, 65, 130, 288):
        for place in range(n):
            x = with_nan_at(place, n, dtype)
            assert np.isnan(ours(x).max().numpy())  # a row
            assert np.isnan(ours(x[::-1]).max().numpy())  # a row with steps
            table = np.zeros((n, 9), dtype)  # columns
            table[:, 4] = x
            expected = np.where(np.arange(9) == 4, np.nan, 0).astype(dtype)
            same(ours(table).max(0), expected)
            assert np.isnan(ours(table[:, 3:6]).max().numpy())


@pytest.mark.parametrize("reduce", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("n", [4097, 8192, 3 * ndarray_backend_numba_cpu.LONG + 1])
def test_nan_wins_in_long_rows(reduce, n):
    out = nd.empty((1,), device=nd.cpu())
    for place in {0, 1, 4095, 4096, n // 3, n // 2, n - 2, n - 1}:
        getattr(nd.cpu(), reduce)(ours(with_nan_at(place, n, "float32"))._handle, out._handle, n)
        assert np.isnan(out.numpy())


@floats
def test_infinities_and_zeros(dtype):
    for values in itertools.product([-np.inf, np.inf, 0.0, -0.0, -1.0], repeat=3):
        x = np.array(values, dtype)
        same(ours(x).max(), x.max())
        same(ours(np.repeat(x, 9).reshape(3, 9)).max(0), np.full(9, x.max(), dtype))
        same(ours(x).sum(), quiet.run(np.sum, x))


# Copies


@pytest.mark.parametrize("width", [1, 7, 8, 63, 64, 65, 127, 129])
def test_copies_of_transposed_views(width):
    for height in (1, 8, 63, 64, 65, 130):
        x = np.arange(height * width, dtype="float32").reshape(height, width)
        for view in (x.T, x[::-1].T, x[:, ::-1].T):
            same(ours(view).compact(), view)
            out = np.full((width, height), -1, "float32")
            written = ours(out)
            written[...] = ours(view)
            same(written, view)
            column_major = ours(np.full((height, width), -1, "float32").T)
            column_major[...] = ours(np.ascontiguousarray(view))
            same(column_major, view)


@pytest.mark.parametrize("shape", [(9, 65, 10), (3, 8, 66, 5)], ids=str)
def test_copies_of_permuted_views(shape):
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    for order in itertools.permutations(range(x.ndim)):
        for view in (x.transpose(order), x.transpose(order)[::-1, 1:, ...], x[..., ::-1].transpose(order)):
            same(ours(view).compact(), view)
            base = np.full(view.shape, -1, "float32")
            target = ours(base.transpose(order))
            value = np.ascontiguousarray(view).reshape(target.shape)
            target[...] = ours(value)
            same(target, value)


@pytest.mark.parametrize("dtype", [pytest.param("bool", marks=pytest.mark.slow), "int64"])
def test_copies_of_other_types(dtype):
    x = (np.arange(66 * 70).reshape(66, 70) % 7 % 2).astype(dtype)
    for view in (x.T, x[:, ::2], x[::-1]):
        same(ours(view).compact(), view)


@pytest.mark.parametrize(
    "many", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one thread", "threads"]
)
def test_writing_what_overlaps_with_what_is_read(many, request):
    if many:
        request.getfixturevalue("threads")
    x = np.arange(130 * 130, dtype="float32").reshape(130, 130)
    for target, source in [
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-1], np.s_[1:]),
        (np.s_[:, 1:], np.s_[:, :-1]),
        (np.s_[:], np.s_[::-1]),
        (np.s_[::2, ::-1], np.s_[1::2]),
    ]:
        array, expected = ours(x), x.copy()
        array[target] = array[source]
        expected[target] = x[source]
        same(array, expected)
    array = ours(x)
    array[...] = array.permute((1, 0))
    same(array, x.T)


# Matrix products

SIZES = [
    *itertools.product([1, 3, 8], [1, 5, 8], [1, 2, 9]),
    *[(16, 16, 16), (16, 16, 17), (1, 4096, 1), (1, 4097, 1), (4096, 1, 1), (4097, 1, 1), (1, 1, 4097)],
    *[(65, 64, 63), (127, 1, 129)],
]


def factors(shape: tuple[int, ...], dtype: str) -> list[np.ndarray]:
    """A matrix in all the ways in which it may lie in memory."""
    rng = np.random.default_rng(6)

    def draw(*shape):
        return (rng.standard_normal(shape) * 4).astype("int64").astype(dtype)

    m, n = shape
    return [
        draw(m, n),
        draw(n, m).T,
        draw(m, n)[::-1],
        draw(m, n)[:, ::-1],
        draw(2 * m, 3 * n)[::2, ::3],
        np.broadcast_to(draw(n), (m, n)),
        np.broadcast_to(draw(m, 1), (m, n)),
        np.lib.stride_tricks.sliding_window_view(draw(m + n - 1), n),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_matrix_products(dtype):
    for m, n, p in SIZES if dtype == "float32" else SIZES[::5]:
        for x in factors((m, n), dtype):
            for y in factors((n, p), dtype):
                same(ours(x) @ ours(y), x @ y, 1e-6, 1e-3)  # whole numbers: exact but for very long sums


def test_batches_of_matrix_products():
    rng = np.random.default_rng(7)

    def draw(*shape):
        return rng.integers(-5, 5, shape).astype("float32")

    for x, y in [
        (draw(3, 4, 5), draw(3, 5, 2)),
        (draw(3, 4, 5), draw(5, 2)),
        (draw(4, 5), draw(3, 5, 2)),
        (draw(2, 1, 4, 5), draw(3, 5, 2)),
        (np.broadcast_to(draw(4, 5), (3, 4, 5)), np.broadcast_to(draw(3, 1, 1), (3, 5, 2))),
        (draw(3, 5, 4).transpose(0, 2, 1)[::-1], draw(2, 5, 3).transpose(2, 1, 0)),
        (draw(3, 4, 10)[..., ::-2], draw(3, 10, 2)[:, ::2]),
        (draw(3, 40, 50), np.broadcast_to(draw(50, 1), (50, 45))),
        (draw(1, 1, 1), draw(1, 1, 1)),
    ]:
        same(ours(x) @ ours(y), x @ y)


def test_products_with_infinities_and_nan():
    x = np.array([[np.inf, 0], [np.nan, 1]], "float32")
    same(ours(x) @ ours(x.T), quiet.run(np.matmul, x, x.T))
    large = np.zeros((64, 64), "float32")
    large[:2, :2] = x
    same(ours(large) @ ours(large), quiet.run(np.matmul, large, large))


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("inner", [(), (1,), (17,)])
def test_threads_share_what_an_index_names(dtype, inner, threads):
    x = np.random.default_rng(0).integers(-8, 8, (6, 9, *inner)).astype(dtype)
    index = np.random.default_rng(1).integers(0, 9, 40)
    named = nd.array(index, "int64")
    same(nd.take(ours(x), named, 1), x[:, index])
    assert threads.count == 1
    values = x[:, index]
    expected = np.zeros((6, 11, *inner), dtype)
    np.add.at(expected, (slice(None), index), values)
    same(nd.scatter_add(ours(values.copy()), named, 1, 11), expected)
    assert threads.count == 2
    same(nd.scatter_add(ours(values[:1].copy()), named, 1, 11), expected[:1])
    assert threads.count == 2  # one table is for one thread: others might add to the same place


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows", [7 * 16 * 150, 17011, 1 << 14]
)  # divided by many numbers, by none, by powers of 2
@pytest.mark.parametrize(
    "n", [3, 1025, *[pytest.param(n, marks=pytest.mark.slow) for n in (1, 16, 100, 1024)]]
)
def test_short_rows_that_meet_one_row(rows, n):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(rows, n)).astype("float32"), rng.normal(size=(3, n)).astype("float32")
    table, row = NDArray(a), NDArray(b)[1]
    np.testing.assert_array_equal((table - row).numpy(), a - b[1])
    np.testing.assert_array_equal((row - table).numpy(), b[1] - a)
    np.testing.assert_array_equal((NDArray(b[1]) - table).numpy(), b[1] - a)
