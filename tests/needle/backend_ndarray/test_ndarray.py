"""NDArray against NumPy: views of views, what is computed from them, and every error."""

from __future__ import annotations

import itertools
import operator
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needle import backend_ndarray as nd
from needle.backend_ndarray import NDArray, elementwise

ENABLED = [device for device in nd.all_devices() if device.enabled()]
devices = pytest.mark.parametrize("device", ENABLED, ids=repr)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
TOLERANCE = {"float32": {"rtol": 1e-4, "atol": 1e-4}, "float64": {"rtol": 1e-12, "atol": 1e-12}}


def same(array: NDArray, expected: np.ndarray, **tolerance) -> None:
    """Shape, data type and values are those of a NumPy array."""
    expected = np.asarray(expected)
    assert isinstance(array, NDArray)
    assert (array.shape, array.dtype) == (expected.shape, expected.dtype)
    assert (array.ndim, array.size) == (expected.ndim, expected.size)
    np.testing.assert_allclose(array.numpy(), expected, **(tolerance or {"rtol": 0}))


# Views of views

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)
shapes_with_zeros = st.lists(st.integers(0, 3), max_size=4).map(tuple)


def reshape(draw, array, x):
    shape, left = [], x.size
    while left > 1:
        shape.append(draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= shape[-1]
    if x.size == 0:
        shape = draw(st.permutations(x.shape))
    elif shape and draw(st.booleans()):
        return array.reshape((-1, *shape[1:])), x.reshape(shape)
    return array.reshape(tuple(shape)), x.reshape(shape)


def permute(draw, array, x):
    axes = draw(st.permutations(range(x.ndim)))
    given_axes = tuple(axis - x.ndim if draw(st.booleans()) else axis for axis in axes)
    return array.permute(given_axes), x.transpose(axes)


def index(draw, array, x):
    ours, numpys = [], []
    for n in x.shape[: draw(st.integers(0, x.ndim))]:
        if n and draw(st.booleans()):
            i = draw(st.integers(-n, n - 1))
            ours.append(draw(st.sampled_from([i, np.int64(i)])))
            numpys.append(slice(i % n, i % n + 1))  # our integer index keeps its axis
        else:
            ends = st.none() | st.integers(-n - 2, n + 2)
            ours.append(slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, 3, -1, -2]))))
            numpys.append(ours[-1])
    if draw(st.booleans()):
        axes_after = draw(st.integers(0, x.ndim - len(ours)))
        ours += [..., *[slice(None, None, -1)] * axes_after]
        numpys += [..., *[slice(None, None, -1)] * axes_after]
    return array[tuple(ours)], x[tuple(numpys)] if x.ndim else x


def broadcast(draw, array, x):
    grown = tuple(draw(st.integers(1, 3)) if n == 1 else n for n in x.shape)
    new = () if x.ndim > 3 else tuple(draw(st.lists(st.integers(1, 2), max_size=1)))
    return array.broadcast_to(new + grown), np.broadcast_to(x, new + grown)


def flip(draw, array, x):
    axes = tuple(draw(st.sets(st.integers(0, x.ndim - 1)))) if x.ndim else ()
    return array.flip(axes), np.asarray(np.flip(x, axes)) if x.ndim else x


STEPS = (reshape, permute, index, broadcast, flip)


@st.composite
def views(draw, dtype="float32", device=ENABLED[0], shapes=shapes, steps=STEPS):
    """The same view of the same numbers, ours and NumPy's, through some random steps, and both bases."""
    shape = draw(shapes)
    base = np.random.default_rng(0).permutation(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    base_array = array = nd.array(base, dtype, device)
    x = base
    for step in draw(st.lists(st.sampled_from(steps), max_size=4)):
        array, x = step(draw, array, x)
    return array, x, base_array, base


any_view = views() | views("float64") | views(shapes=shapes_with_zeros) | views(device=nd.cpu_numpy())


@given(any_view)
@settings(max_examples=300)
def test_chains_of_views(pair):
    array, x, base_array, base = pair
    same(array, x)
    if x.size:
        assert (array._handle is base_array._handle) == np.shares_memory(x, base)
        for n, stride, numpys in zip(array.shape, array.strides, x.strides, strict=True):
            assert n == 1 or stride * x.itemsize == numpys


@given(any_view)
@settings(max_examples=300)
def test_compact_copies_and_casts_of_views(pair):
    array, x, *_ = pair
    compact = array.compact()
    same(compact, x)
    assert compact.is_compact()
    assert compact.offset == 0
    assert compact.strides == NDArray.compact_strides(x.shape)
    assert (compact is array) == array.is_compact()
    same(array.flat, x.reshape(-1))
    same(array.astype("int64"), x.astype("int64"))
    same(NDArray(array), x)
    same(NDArray(array, dtype="float64"), x.astype("float64"))
    np.testing.assert_array_equal(np.asarray(array), x)


@given(views(steps=(permute, index, flip)), st.data())
@settings(max_examples=300)
def test_writing_through_views(pair, data):
    array, x, base_array, base = pair
    shape = tuple(n if data.draw(st.booleans()) else 1 for n in x.shape)
    value = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape) + 100
    choice = data.draw(st.sampled_from(["scalar", "numpy", "ndarray", "view", "fill"]))
    if choice == "scalar":
        array[...] = x[...] = 7
    elif choice == "fill":
        array.fill(7)
        x[...] = 7
    elif choice == "view":  # of the other type, and flipped
        array[...] = nd.array(value, "float64").flip()
        x[...] = np.flip(value)
    else:
        array[...] = nd.array(value) if choice == "ndarray" else value
        x[...] = value
    same(base_array, base)


@given(st.data(), st.sampled_from(["float32", "float64"]))
@settings(max_examples=200)
def test_writing_to_overlapping_views(data, dtype):
    n = data.draw(st.integers(1, 6))
    x = np.arange(n * 3, dtype=dtype).reshape(n, 3)
    array = nd.array(x, dtype)
    source, target = data.draw(
        st.sampled_from(
            [
                (np.s_[:-1], np.s_[1:]),
                (np.s_[1:], np.s_[:-1]),
                (np.s_[::-1], np.s_[:]),
                (np.s_[:, ::-1], np.s_[:, :]),
                (np.s_[:1], np.s_[:]),
            ]
        )
    )
    array[target] = array[source]
    x[target] = x[source].copy()
    same(array, x)


@st.composite
def pairs_of_views(draw):
    """Two views whose shapes broadcast with each other."""
    array, x, *_ = draw(views("float32"))
    shape = tuple(n if draw(st.booleans()) else 1 for n in x.shape)[draw(st.integers(0, x.ndim)) :]
    other, y, *_ = draw(views("float32", shapes=st.just(shape), steps=(flip,)))
    return array, x, other, y


@given(pairs_of_views())
@settings(max_examples=200)
def test_elementwise_on_views(operands):
    a, x, b, y = operands
    dtype = x.dtype
    same(a + b, x + y)
    same(b - a, y - x)
    same(a * 2.5, x * dtype.type(2.5))
    same(2 - a, 2 - x)
    same(-a, -x)
    same((a / 100).exp(), np.exp(x / 100), rtol=1e-6)
    same(a >= b, (x >= y).astype(dtype))
    same(a.maximum(b), np.maximum(x, y))


@given(any_view, st.data())
@settings(max_examples=200)
def test_reductions_of_views(pair, data):
    array, x, *_ = pair
    axes = tuple(data.draw(st.sets(st.integers(0, x.ndim - 1)))) if x.ndim else ()
    negative = tuple(i - x.ndim for i in axes)
    axis = data.draw(st.sampled_from([None, axes, negative, *axes, *negative]))
    keepdims = data.draw(st.booleans())
    same(array.sum(axis, keepdims), x.sum(axis, keepdims=keepdims), rtol=1e-5)
    if x.size:
        same(array.max(axis=axis, keepdims=keepdims), x.max(axis, keepdims=keepdims))


@st.composite
def factors(draw):
    """Operands of a matrix product, with batches that broadcast, as views of any strides."""
    m, n, p = draw(st.tuples(*[st.integers(0, 4)] * 3))
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    result = []
    for rows, columns in ((m, n), (n, p)):
        own = tuple(k if draw(st.booleans()) else 1 for k in batch)[draw(st.integers(0, len(batch))) :]
        shape = (*own, rows, columns)
        order = draw(st.permutations(range(len(shape))))
        x = np.random.default_rng(1).standard_normal([shape[i] for i in order]).astype("float32")
        array, x = nd.array(x).permute(np.argsort(order)), x.transpose(np.argsort(order))
        result += flip(draw, array, x)
    return result


@given(factors())
@settings(max_examples=300)
def test_matrix_products_of_views(operands):
    a, x, b, y = operands
    same(a @ b, x @ y, **TOLERANCE["float32"])


# Making arrays


def test_data_types():
    assert nd.array([1, 2]).dtype == np.dtype("float32")
    assert NDArray(np.arange(3.0)).dtype == "float32"
    assert NDArray(np.arange(3)).dtype == "float32"
    assert NDArray(nd.array([1.0], "float64")).dtype == "float64"
    for dtype in ("float32", "float64", "bool", "uint8", "int32", "int64"):
        same(nd.array([[0, 1], [1, 0]], dtype), np.array([[0, 1], [1, 0]], dtype))
    with pytest.raises(TypeError, match=r"dtype complex128 is not supported; use one of float32, float64"):
        nd.array([1j], "complex128")
    with pytest.raises(TypeError, match="dtype float16 is not supported"):
        nd.array([1.0]).astype("float16")


@devices
def test_an_array_is_always_a_copy(device):
    x = np.zeros((2, 3), "float32")
    array = nd.array(x, device=device)
    x[...] = 1
    assert array.numpy().sum() == 0
    array.numpy()[...] = 2
    assert array.numpy().sum() == 0
    twin = NDArray(array)
    twin.fill(3)
    assert array.numpy().sum() == 0


def test_the_course_finds_its_names_in_the_module_of_ndarray():
    from needle.backend_ndarray import ndarray

    functions = ["array", "empty", "full", "broadcast_to", "reshape", "maximum", "log", "exp", "tanh", "sum"]
    for name in [*functions, "flip", "NDArray", "BackendDevice", "cpu", "cuda", "cpu_numpy"]:
        assert name in ndarray.__all__
        assert getattr(ndarray, name) is getattr(nd, name)
    assert {"prod", "default_device", "all_devices"} <= {*ndarray.__all__}
    assert ndarray.prod((2, 3, 4)) == 24


def test_keywords_are_the_courses():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    array = nd.array(x)
    same(array.reshape(new_shape=(3, 2)), x.reshape(3, 2))
    same(array.reshape(3, -1), x.reshape(3, 2))
    same(array.permute(new_axes=(1, 0)), x.T)
    same(array.broadcast_to(new_shape=(1, 2, 3)), x[None])
    same(nd.reshape(array, new_shape=(6,)), x.reshape(6))
    same(nd.broadcast_to(array, new_shape=(1, 2, 3)), x[None])


def test_a_view_is_of_the_class_that_it_is_taken_from():
    class Mine(NDArray):
        pass

    mine = Mine(np.ones((2, 3)))
    results = [mine[0], mine.reshape(6), mine.permute((1, 0)), mine + 1, mine.sum(), mine @ np.ones((3, 1))]
    assert {type(array) for array in results} == {Mine}


@devices
def test_functions_of_the_module(device):
    x = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
    array = nd.array(x, device=device)
    same(nd.full((2, 1), 3.5, device=device), np.full((2, 1), 3.5, "float32"))
    assert nd.empty((3, 2), "float64", device).shape == (3, 2)
    same(nd.broadcast_to(array[:1], (3, 2)), np.broadcast_to(x[:1], (3, 2)))
    same(nd.reshape(array, (4,)), x.reshape(4))
    same(nd.maximum(array, 2), np.maximum(x, 2))
    same(nd.maximum(array, array.flip((0,))), np.maximum(x, x[::-1]))
    same(nd.log(array), np.log(x), rtol=1e-6)
    same(nd.exp(array), np.exp(x), rtol=1e-6)
    same(nd.tanh(array), np.tanh(x), rtol=1e-6)
    same(nd.sum(array, 1), x.sum(1))
    same(nd.sum(array), x.sum())
    same(nd.sum(array, axis=(0, 1), keepdims=True), x.sum(keepdims=True))
    same(nd.flip(array, (0, 1)), x[::-1, ::-1])


def test_from_one_device_to_another():
    array = nd.array([[1.0, 2.0]], "float64", nd.cpu_numpy())
    moved = array.permute((1, 0)).to(nd.cpu())
    assert moved.device == nd.cpu()
    same(moved, np.array([[1.0], [2.0]]))
    assert array.to(nd.cpu_numpy()) is array
    assert NDArray(array).device == nd.cpu_numpy()
    assert NDArray(array, device=nd.cpu()).device == nd.cpu()


def test_storage_that_is_given():
    array = nd.array(np.arange(12))
    same(NDArray.make((2, 2), strides=(4, 1), device=array.device, handle=array._handle, offset=5),
         np.array([[5, 6], [9, 10]], "float32"))  # fmt: skip
    same(array[2:].as_strided((3, 2), (1, 1)), np.array([[2, 3], [3, 4], [4, 5]], "float32"))
    assert array._handle.ptr() == array[3:]._handle.ptr()
    for shape, strides, offset in [
        ((13,), None, 0),
        ((2, 2), (10, 2), 0),
        ((2,), (-1,), 0),
        ((2,), (1,), -1),
    ]:
        with pytest.raises(ValueError, match=r"reach from element -?\d+ to \d+ of a storage of 12"):
            NDArray.make(shape, strides, array.device, array._handle, offset)
    with pytest.raises(ValueError, match="differ in length"):
        array.as_strided((2, 2), (1,))


@pytest.mark.parametrize(
    ("most", "use"),
    [
        (5, lambda a, row: a * a),
        (5, lambda a, row: a + row),
        (6, lambda a, row: a.sum()),
        (7, lambda a, row: a.device.full(a.shape, 1)),
        (4, lambda a, row: a.reshape((6,))),
        (5, lambda a, row: a[0, 1:]),
    ],
    ids=["multiply", "add a row", "sum", "full", "reshape", "slice"],
)
def test_an_operation_takes_few_calls_of_python_functions(most, use):
    calls = []

    def watch(frame, event, _):
        if event == "call":
            calls.append(frame.f_code.co_qualname)

    a, row = nd.cpu().ones(2, 3), nd.cpu().ones(3)
    use(a, row)  # kernels are compiled, and plans are made
    sys.setprofile(watch)
    try:
        use(a, row)
    finally:
        sys.setprofile(None)
    assert len(calls) - 1 <= most, calls  # `use` itself is one


# Faults that are not repeated: each of these was wrong in the framework whose interface this is


def test_negative_indices():
    x = np.arange(12, dtype="float32").reshape(3, 4)
    same(nd.array(x)[-1], x[-1:])
    same(nd.array(x)[-3, -4:-1], x[:1, :3])
    same(nd.array(x)[::-1, ::-2], x[::-1, ::-2])


def test_clamped_and_empty_slices():
    x = np.arange(12, dtype="float32").reshape(3, 4)
    array = nd.array(x)
    for idx in [np.s_[1:100], np.s_[-100:2], np.s_[5:9], np.s_[2:1], np.s_[:, 4:], np.s_[:0, :0]]:
        same(array[idx], x[idx])
        same(array[idx].sum(0), x[idx].sum(0))
        same(array[idx] + 1, x[idx] + 1)
    array[3:] = 5
    array[2:1] = np.zeros((0, 4))
    same(array, x)


def test_negative_axes_and_several_axes_in_reductions():
    x = np.random.randn(2, 3, 4).astype("float32")
    array = nd.array(x)
    for axis in (-1, -3, (0, 2), (-1, 0), (0, 1, 2), (2, 1), (), None):
        for keepdims in (False, True):
            same(array.sum(axis, keepdims), x.sum(axis, keepdims=keepdims), rtol=1e-5, atol=1e-6)
            same(array.max(axis, keepdims), x.max(axis, keepdims=keepdims))
    same(array.sum([0, 1]), x.sum((0, 1)), rtol=1e-5, atol=1e-6)
    assert array.sum().shape == ()
    assert array.sum(keepdims=True).shape == (1, 1, 1)


@devices
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_comparisons_with_nan(device, dtype):
    values = [1.0, 2.0, np.nan, np.inf, -np.inf]
    x, y = (np.array(side, dtype) for side in zip(*itertools.product(values, values), strict=True))
    a, b = nd.array(x, dtype, device), nd.array(y, dtype, device)
    for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        for ours, numpys in [
            ((a, b), (x, y)),
            ((a, 2), (x, 2)),
            ((2, a), (2, x)),
            ((a, np.nan), (x, np.nan)),
        ]:
            same(compare(*ours), compare(*numpys).astype(dtype))
    same(a.maximum(b), np.maximum(x, y))
    assert np.isnan(a.max().numpy())


def test_arrays_are_hashable_and_equal_element_by_element():
    a, b = nd.array([1.0, 2.0]), nd.array([1.0, 3.0])
    assert {a: "a", b: "b"}[a] == "a"
    same(a == b, np.array([1, 0], "float32"))
    assert (a == None) is False  # noqa: E711
    assert (a != "text") is True


def test_mixed_devices_are_an_error():
    a, b = nd.array([[1.0]], device=nd.cpu()), nd.array([[1.0]], device=nd.cpu_numpy())
    for name, use in [
        ("add", lambda: a + b),
        ("ge", lambda: a >= b),
        ("matmul", lambda: a @ b),
        ("setitem", lambda: a.__setitem__(0, b)),
        ("maximum", lambda: elementwise("maximum", a, b)),
    ]:
        message = rf"{name}: operands are on cpu\(\) and cpu_numpy\(\); move one .* \.to\(cpu\(\)\)"
        with pytest.raises(ValueError, match=message):
            use()
    same(a + b.to(a.device), np.array([[2.0]], "float32"))


@dtypes
def test_reflected_operators(dtype):
    x = np.array([0.5, 2.0, 4.0], dtype)
    a = nd.array(x, dtype)
    for number in (5, 2.5, np.float32(5), np.float64(5), np.int64(3), True):
        python = number.item() if isinstance(number, np.generic) else number
        for ours, numpys in [
            (number + a, python + x), (number - a, python - x), (number * a, python * x),
            (number / a, python / x), (number**a, python**x), (a + number, x + python),
            (a - number, x - python), (a / number, x / python), (a**number, x**python),
        ]:  # fmt: skip
            same(ours, numpys, rtol=1e-6)
    for ours, numpys in [
        (x + a, x + x),
        (x - a, x - x),
        (a * x, x * x),
        (x / a, x / x),
        (x < a, (x < x).astype(dtype)),
    ]:
        same(ours, numpys)
    matrix = np.arange(9, dtype=dtype).reshape(3, 3)
    same(matrix @ nd.array(matrix, dtype), matrix @ matrix)
    same(nd.array(matrix, dtype) @ matrix, matrix @ matrix)


# Arithmetic


@devices
@dtypes
def test_division_by_zero_and_overflow_are_silent(device, dtype):
    a = nd.array([1.0, -1.0, 0.0], dtype, device)
    same(a / 0, np.array([np.inf, -np.inf, np.nan], dtype))
    same(1 / (a * -0.0), np.array([-np.inf, np.inf, -np.inf], dtype))
    same(a.log(), np.array([0, np.nan, -np.inf], dtype))
    same((a * 1e4).exp(), np.array([np.inf, 0, 1], dtype))
    same(a * 1e300 * 1e300, np.array([np.inf, -np.inf, np.nan if dtype == "float32" else 0], dtype))
    assert not np.isfinite((a * np.inf).sum().numpy())
    infinities = nd.full((1, 2), np.inf, dtype, device)
    same(infinities @ nd.array([[1], [-1]], dtype, device), np.array([[np.nan]], dtype))
    if dtype == "float32":
        same(nd.array([1e300], dtype, device), np.array([np.inf], dtype))
        a.fill(1e300)
        assert np.isinf(a.numpy()).all()
        nd.array([np.nan], "float64", device).astype("int32")


def test_numpys_error_state_is_left_alone():
    with np.errstate(divide="raise"):
        nd.array([1.0]) / 0
        with pytest.raises(FloatingPointError):
            np.array([1.0]) / 0


def test_kernels_in_many_threads():
    results = []

    def work():
        a = nd.array(np.arange(1000.0))
        for _ in range(200):
            b = (a / 0 + a.exp()).maximum(a)
        results.append(b.numpy())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result, results[0])


@dtypes
@pytest.mark.parametrize("exponent", [2, 2.0, -1, 0.5, 3, 0, 1.7])
def test_powers(dtype, exponent):
    x = np.linspace(0.5, 3, 7, dtype=dtype)
    same(nd.array(x, dtype) ** exponent, x**exponent, rtol=1e-6)
    same(nd.array(x, dtype) ** nd.full((7,), exponent, dtype), x**exponent, rtol=1e-6)


# Each row of the table is a kernel of its own for each of them.
SOME_DTYPES, EVERY_DTYPE = ["int64", "float32"], ["bool", "uint8", "int32", "int64", "float32", "float64"]
SOME_ROWS = ["add", "divide", "exp", "lt"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        *[(name, SOME_DTYPES) for name in SOME_ROWS],
        *[pytest.param(name, EVERY_DTYPE, marks=pytest.mark.slow) for name in sorted(nd.SCALAR_FUNCTIONS)],
    ],
)
def test_result_types_are_numpys(name, kinds):
    row = nd.SCALAR_FUNCTIONS[name]
    for chosen in itertools.product(kinds, repeat=row.arity):
        operands = [np.ones(2, kind) for kind in chosen]
        arrays = [nd.array(x, x.dtype) for x in operands]
        try:
            expected = row.numpy(*operands)
        except TypeError:
            with pytest.raises(TypeError, match=rf"{name}: not defined for bool"):
                elementwise(name, *arrays)
            continue
        if row.is_comparison:
            expected = expected.astype(np.result_type(*operands))
        elif expected.dtype == "int8":  # NumPy's bool ** bool
            expected = expected.astype("int64")
        elif expected.dtype == "float16":
            expected = row.numpy(*(x.astype("float64") for x in operands))
        same(elementwise(name, *arrays), expected, rtol=1e-6)


def test_a_python_number_does_not_widen_an_array():
    for kind, number, expected in [
        ("float32", 2.5, "float32"), ("float32", np.float64(2.5), "float32"), ("int64", 2, "int64"),
        ("int64", 2.5, "float64"), ("uint8", 1, "uint8"), ("bool", 1, "int64"), ("bool", True, "bool"),
    ]:  # fmt: skip
        array = nd.array([1, 0], kind)
        assert (array + number).dtype == (number + array).dtype == expected
        assert (array + nd.array([1.0, 2.0], "float64")).dtype == "float64"
    assert (nd.array([1.0]) + np.ones(1)).dtype == "float32"
    assert (nd.array([1], "int64") + np.ones(1)).dtype == "float64"


def test_sums_of_integers_and_booleans_count():
    same(nd.array([True, True, False], "bool").sum(), np.int64(2))
    same(nd.array([200, 200], "uint8").sum(), np.int64(400))
    same(nd.array([200, 100], "uint8").max(), np.uint8(200))


def test_ewise_or_scalar():
    a, device = nd.array([[1.0, 2.0]]), nd.cpu()
    same(a.ewise_or_scalar(a, device.ewise_add, device.scalar_add), np.array([[2, 4]], "float32"))
    same(a.ewise_or_scalar(3, device.ewise_add, device.scalar_add), np.array([[4, 5]], "float32"))


# Views


def test_an_integer_index_keeps_its_axis():
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    array = nd.array(x)
    same(array[1], x[1:2])
    same(array[1, 2, 3], x[1:2, 2:3, 3:4])
    same(array[..., 0], x[..., :1])
    same(array[0, ..., 0], x[:1, :, :1])


def test_a_value_may_lack_the_axis_that_an_index_keeps():
    x = np.zeros((2, 3), "float32")
    array = nd.array(x)
    for idx, value in [
        ((slice(None), 0), [1, 2]),
        (1, [3, 4, 5]),
        ((0, 2), 6),
        ((slice(None), 1), [[7], [8]]),
    ]:
        array[idx] = np.array(value, "float32")
        x[idx] = np.array(value, "float32").reshape(x[idx].shape)
    same(array, x)
    with pytest.raises(ValueError, match=r"setitem: shape \(3, 2\) cannot become \(2, 3\)"):
        array[...] = np.zeros((3, 2))


def test_values_are_cast_to_the_arrays_type():
    array = nd.array([0, 0], "int32")
    array[0] = 2.7
    array[1:] = nd.array([3.9])
    same(array, np.array([2, 3], "int32"))


def test_reshape_is_a_view_where_one_is_possible():
    array = nd.array(np.arange(24)).reshape(4, 6)
    assert array[1:3].reshape(12)._handle is array._handle
    assert array[::2].reshape(2, 2, 3)._handle is array._handle
    assert array.permute((1, 0)).reshape((2, 3, 4))._handle is array._handle
    assert array.permute((1, 0)).reshape(24)._handle is not array._handle
    assert array[1:3].reshape(12).strides == (1,)
    assert array[1:3].reshape(12).offset == 6


def test_broadcast_copies_nothing():
    array = nd.array([[1.0], [2.0]])
    wide = array.broadcast_to((3, 2, 1_000_000))
    assert wide.strides == (0, 1, 0)
    assert wide._handle is array._handle
    assert wide[0, 1, 999_999].numpy() == 2
    with pytest.raises(
        ValueError, match=r"a broadcast array repeats its elements; write to \.compact\(\) instead"
    ):
        wide[0, 0, 0:2] = 1


@dtypes
def test_pad(dtype):
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    array = nd.array(x, dtype)
    same(array.pad(((1, 2), (0, 1))), np.pad(x, ((1, 2), (0, 1))))
    same(array.pad(((0, 0), (0, 0))), x)
    for axes in [((1, 1),), ((1, -1), (0, 0))]:
        with pytest.raises(ValueError, match=r"pad: shape \(2, 3\) needs 2 pairs of lengths >= 0"):
            array.pad(axes)


def test_process_slice():
    array = nd.empty((4, 5))
    assert array.process_slice(slice(None, -1), 0) == slice(0, 3, 1)
    assert array.process_slice(slice(1, 100, 2), 1) == slice(1, 5, 2)


@devices
def test_scalars(device):
    array = nd.array(2.5, device=device)
    assert array.shape == array.strides == ()
    for result, expected in [
        (array, 2.5), (array + 1, 3.5), (array + array, 5), (-array, -2.5), (array.sum(), 2.5),
        (array.sum(()), 2.5), (array.max(), 2.5), (array[...], 2.5), (array[()], 2.5),
        (array.permute(()), 2.5), (array.flip(), 2.5),
    ]:  # fmt: skip
        same(result, np.float32(expected))
    same(array.reshape((1, 1)), np.array([[2.5]], "float32"))
    same(array.broadcast_to((2, 2)), np.full((2, 2), 2.5, "float32"))
    array[()] = 4
    same(array, np.float32(4))


def test_text_and_truth():
    array = nd.array([[1.0, 2.0]])
    assert repr(array) == "NDArray([[1. 2.]], device=cpu())"
    assert str(array) == "[[1. 2.]]"
    assert len(array) == 1
    assert bool(nd.array([[2.0]]))
    assert not nd.array(0)
    with pytest.raises(
        ValueError, match=r"truth of an array of shape \(1, 2\) is not defined; use \.numpy\(\)\.all"
    ):
        bool(array)
    with pytest.raises(TypeError, match=r"len: an array of shape \(\) has no axis"):
        len(nd.array(1))
    assert np.asarray(array, dtype="float64").dtype == "float64"
    with pytest.raises(ValueError, match="only a copy can be had"):
        np.asarray(array, copy=False)


# Errors


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda a: a @ nd.empty((5, 2)), ValueError, r"matmul: \(3, 4\) @ \(5, 2\): .* 4 and 5 differ$"),
        (lambda a: a @ nd.empty((5, 4)), ValueError, r"4 and 5 differ; did you mean b\.transpose\(\)\?$"),
        (lambda a: a @ nd.empty((3, 2)), ValueError, r"4 and 3 differ; did you mean a\.transpose\(\)\?$"),
        (lambda a: a @ nd.empty((4,)), ValueError, r"matmul: \(3, 4\) @ \(4,\): both need at least 2 axes"),
        (lambda a: nd.empty((2, 3, 4)) @ nd.empty((3, 4, 1)), ValueError, r"\(2,\) and \(3,\) do not"),
        (lambda a: a @ 3, TypeError, r"unsupported operand"),
        (lambda a: a + "x", TypeError, r"unsupported operand"),
        (lambda a: a + nd.empty((4, 3)), ValueError, r"add: shapes \(3, 4\) and \(4, 3\) do not broadcast"),
        (lambda a: elementwise("exp", "x"), TypeError, r"exp: needs NDArrays \(at least one\) .* got str"),
        (lambda a: elementwise("add", 1, 2), TypeError, r"add: needs NDArrays .* got int, int"),
        (lambda a: elementwise("add", a, 1j), TypeError, r"add: needs NDArrays .* got NDArray, complex"),
        (lambda a: a.maximum(None), TypeError, r"maximum: needs NDArrays .* got NDArray, NoneType"),
        (lambda a: a.reshape((5, 2)), ValueError, r"reshape: the 12 elements of shape \(3, 4\) .* \(5, 2\)"),
        (lambda a: a.reshape((-1, 5)), ValueError, r"reshape: the 12 elements"),
        (lambda a: a.reshape((-1, -1)), ValueError, r"reshape: the 12 elements"),
        (lambda a: a.reshape((-3, -4)), ValueError, r"reshape: the 12 elements"),
        (lambda a: nd.empty((0, 3)).reshape((-1, 0)), ValueError, r"reshape: the 0 elements"),
        (lambda a: a.permute((0,)), ValueError, r"axes \(0,\) must name each of the 2 axes"),
        (lambda a: a.permute((0, 0)), ValueError, r"permute: axes \(0, 0\) name an axis twice"),
        (lambda a: a.permute((0, 2)), ValueError, r"permute: axes \(0, 2\) .*each must lie in -2\.\.1"),
        (lambda a: a.sum(2), ValueError, r"sum: axes 2 of an array with 2 axes: each must lie in -2\.\.1"),
        (lambda a: a.sum((0, -2)), ValueError, r"sum: axes \(0, -2\) name an axis twice"),
        (lambda a: a.max((0, 5)), ValueError, r"max: axes \(0, 5\)"),
        (lambda a: a[:0].max(0), ValueError, r"max: shape \(0, 4\) has no element along axis 0"),
        (lambda a: a[:0].max(), ValueError, r"max: shape \(0, 4\) has no element along axis None"),
        (lambda a: a.flip((0, 3)), ValueError, r"flip: axes \(0, 3\)"),
        (lambda a: a.broadcast_to((4, 4)), ValueError, r"broadcast_to: .*\(3, 4\) cannot become \(4, 4\)"),
        (lambda a: a.broadcast_to((4,)), ValueError, r"broadcast_to: shape \(3, 4\) cannot become \(4,\)"),
        (lambda a: a[3], IndexError, r"index: 3 is outside axis 0 of length 3 \(shape \(3, 4\)\)"),
        (lambda a: a[0, -5], IndexError, r"index: -5 is outside axis 1 of length 4"),
        (lambda a: a[0, 0, 0], IndexError, r"index: 3 indices for the 2 axes of shape \(3, 4\)"),
        (lambda a: a[..., ...], IndexError, r"index: only one \.\.\. is possible"),
        (lambda a: a[[0, 1]], TypeError, r"index: list on axis 0; an NDArray takes integers, slices"),
        (lambda a: a[:, None], TypeError, r"index: NoneType on axis 1"),
        (lambda a: a[True], TypeError, r"index: bool on axis 0"),
        (lambda a: a[1.0], TypeError, r"index: float on axis 0"),
    ],
)  # fmt: skip
def test_errors_name_the_operation_what_came_and_the_way_out(use, error, message):
    with pytest.raises(error, match=message):
        use(nd.array(np.zeros((3, 4))))


def test_max_of_nothing_into_nothing_is_no_error():
    same(nd.empty((0, 4)).max(1), np.empty((0,), "float32"))
    same(nd.empty((0, 4)).sum(0), np.zeros(4, "float32"))
    same(nd.empty((2, 0)) @ nd.empty((0, 3)), np.zeros((2, 3), "float32"))


# Arrays put together, and parts that an index names


def different_strides(device, dtype):
    """NumPy's arrays of shape (3, 4) with different strides, and ours."""
    x = np.arange(12).reshape(3, 4).astype(dtype)
    a = nd.array(x, dtype, device)
    return [
        (x, a),
        (x[::-1, ::-1], a[::-1, ::-1]),
        (x.reshape(4, 3).T, a.reshape((4, 3)).permute((1, 0))),
        (np.broadcast_to(x[:1], (3, 4)), a[0].broadcast_to((3, 4))),
    ]


@devices
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_arrays_put_together(dtype, device):
    theirs, ours = zip(*different_strides(device, dtype), strict=True)
    for axis in (0, 1, -1):
        same(nd.concatenate(ours, axis), np.concatenate(theirs, axis))
        same(nd.stack(ours, axis), np.stack(theirs, axis))
    empty = nd.empty((3, 0), dtype, device)
    same(nd.concatenate([empty, ours[1], empty], 1), theirs[1])
    assert nd.stack([empty]).shape == (1, 3, 0)
    wider = nd.array(np.ones((3, 4)), "float64", device)
    same(nd.concatenate([ours[0], wider]), np.concatenate([theirs[0], np.ones((3, 4))]))


@devices
def test_parts_along_an_axis_are_different_strides(device):
    for x, a in different_strides(device, "float32"):
        for axis in (0, 1, -1):
            parts = nd.unstack(a, axis)
            assert all(part._handle is a._handle for part in parts)
            for part, expected in zip(parts, np.moveaxis(x, axis, 0), strict=True):
                same(part, expected)


@devices
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_take_and_its_transpose(dtype, device):
    for x, a in different_strides(device, dtype):
        for index in (np.array([2, 0, 2, 2, 1]), np.array([[2, 0, 1], [2, 2, 1]]).T, np.array(1)):
            named = nd.array(index, "int64", device)
            for axis in (0, 1):
                taken = nd.take(a, named, axis)
                same(taken, x.take(index, axis))
                total = np.zeros((3, 4), dtype if np.dtype(dtype).kind == "f" else "int64")
                np.add.at(total, (slice(None),) * axis + (index,), x.take(index, axis))
                same(nd.scatter_add(taken, named, axis, x.shape[axis]), total)
        nothing = nd.array([], "int64", device)
        assert nd.take(a, nothing, 1).shape == (3, 0)
        assert nd.scatter_add(nd.take(a, nothing, 1), nothing, 1, 2).numpy().tolist() == [[0, 0]] * 3


@devices
def test_min(device):
    for x, a in different_strides(device, "float32"):
        same(a.min(), x.min())
        same(a.min(1, keepdims=True), x.min(1, keepdims=True))
        same(a.min((0,)), x.min(0))
    assert np.isnan(nd.array([1, np.nan, 0], device=device).min().numpy())


@devices
@pytest.mark.parametrize("axes", [(0, 3, 1, 2), (1, 0, 2, 3), (3, 2, 1, 0), (0, 1, 2, 3)])
def test_numbers_stay_in_the_order_in_which_they_lie(device, axes):
    values = np.random.default_rng(0).normal(size=(2, 3, 1, 4))
    a = NDArray(values, device=device, dtype="float64").permute(axes)
    b = NDArray(values * 2, device=device, dtype="float64").permute(axes)
    x = values.transpose(axes)
    for found, expected in [(-a, -x), (a + b, 3 * x), (a * 2, 2 * x), (1 - a, 1 - x), (a.exp(), np.exp(x))]:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-15)
        assert found.strides == a.strides
        assert found.is_compact() == a.is_compact()
        np.testing.assert_allclose(found.compact().numpy(), expected, rtol=1e-15)
        np.testing.assert_allclose(found.reshape((-1,)).numpy(), expected.reshape(-1), rtol=1e-15)
        np.testing.assert_allclose(found.sum(axis=1).numpy(), expected.sum(axis=1), rtol=1e-12)
    part = a[:, 1:]  # does not fill the storage
    np.testing.assert_array_equal((part * 2).numpy(), 2 * x[:, 1:])
    other = NDArray(x, device=device, dtype="float64")  # the same numbers, row by row
    np.testing.assert_array_equal((a - other).numpy(), x - x)
