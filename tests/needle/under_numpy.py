"""What holds with NumPy's own arrays only; `test_backend_numpy.py` runs it under ``NEEDLE_BACKEND=np``."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor, gradients


def test_the_arrays_are_numpys():
    assert ndl.BACKEND == "np"
    assert ndl.NDArray is np.ndarray
    assert ndl.array_api is np
    assert type(Tensor([1.0]).realize_cached_data()) is np.ndarray
    for f in (lambda x: x + 1, lambda x: x.sum(0), lambda x: ndl.compare(x, "gt", 0), lambda x: x.sum() * 2):
        assert type(f(Tensor([[1.0, 2.0]])).realize_cached_data()) is np.ndarray


def test_devices():
    assert ndl.default_device() == ndl.cpu()
    assert ndl.cpu().enabled()
    assert [d for d in ndl.all_devices() if d.enabled()] == [ndl.cpu()]
    for device in (ndl.cuda(), ndl.cpu_numpy()):
        assert not device.enabled()
        with pytest.raises(RuntimeError, match="NEEDLE_BACKEND"):
            Tensor([1.0], device=device)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool"])
def test_a_tensor_keeps_the_dtype_of_its_array(dtype):
    array = np.array([0, 1], dtype)
    for t in (Tensor(array), Tensor(Tensor(array)), ndl.nn.Parameter(array), Tensor(array).detach()):
        assert t.dtype == dtype
        assert t.numpy().dtype == dtype
        np.testing.assert_array_equal(t.numpy(), array)
    assert Tensor(array, dtype="float32").dtype == "float32"
    assert Tensor(array, dtype="float64").dtype == "float64"


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (3, "int64"),
        (3.0, "float64"),
        (True, "bool"),
        ([1, 2], "int64"),
        ([1, 2.5], "float64"),
        (np.float32(1), "float32"),
    ],
    ids=str,
)
def test_numbers_and_lists_have_numpys_dtype(values, dtype):
    assert Tensor(values).dtype == dtype
    np.testing.assert_array_equal(Tensor(values).numpy(), values)


def test_initialisers_make_float32():
    for t in (ndl.init.rand(2), ndl.init.randn(2), ndl.ones(2), ndl.zeros(2), ndl.init.one_hot(2, [0, 1])):
        assert t.dtype == "float32"
    assert ndl.nn.Linear(2, 2).weight.dtype == "float32"


def test_dtypes_of_results(mode):
    whole, half, double = Tensor([1, 2]), Tensor([1, 2], dtype="float32"), Tensor([1.0, 2.0])
    for out, dtype in [
        (whole + whole, "int64"),
        (whole * 2, "int64"),
        (whole / 2, "float64"),
        (whole / whole, "float64"),
        (whole + 0.5, "float64"),
        (ndl.relu(whole), "int64"),
        (ndl.exp(whole), "float64"),
        (half + 1.5, "float32"),
        (half * np.float64(2), "float32"),
        (np.float64(2) * half, "float32"),
        (half + np.ones(2), "float32"),
        (half / 3, "float32"),
        (half**2, "float32"),
        (half + double, "float64"),
        (half * whole, "float64"),
        (whole.sum(), "int64"),
        (half.sum(), "float32"),
        (ndl.logsoftmax(half), "float32"),
    ]:
        assert out.dtype == dtype
        assert out.numpy().dtype == dtype


def test_gradients_of_integers(mode):
    x2, x3 = Tensor([6]), Tensor([0])
    y = x2 * x2 + x2 * x3
    y.backward()
    by_x2, by_x3 = x2.grad, x3.grad
    by_x2.backward()
    found = [t.numpy() for t in (y, by_x2, by_x3, x2.grad, x3.grad)]
    assert [a.tolist() for a in found] == [[36], [12], [6], [2], [1]]
    assert found[0].dtype == "int64"
    assert {a.dtype for a in found[1:]} == {np.dtype("float64")}  # a slope is no whole number


def test_the_seed_has_the_dtype_of_the_output_where_that_is_a_float():
    for dtype, slope in {"float64": "float64", "float32": "float32", "int64": "float64"}.items():
        x = Tensor(np.ones(2, dtype))
        (by_x,) = gradients(x * x, [x])
        assert by_x.dtype == slope


def numerical_gradient(f, args, i, eps=1e-5):
    """As the course's tests compute it: by writing into the array."""
    gradient = np.zeros(args[i].shape)
    for j in range(args[i].size):
        args[i].realize_cached_data().flat[j] += eps
        above = float(f(*args).numpy().sum())
        args[i].realize_cached_data().flat[j] -= 2 * eps
        below = float(f(*args).numpy().sum())
        args[i].realize_cached_data().flat[j] += eps
        gradient.flat[j] = (above - below) / (2 * eps)
    return gradient


def test_gradients_against_the_courses_numerical_ones():
    args = [Tensor(np.random.randn(3, 4)), Tensor(np.random.randn(4, 2)), Tensor(5 + np.random.randn(3, 2))]

    def f(a, b, c):
        return ndl.exp(ndl.relu(a @ b) / c) + ndl.log(c).sum() ** 2

    out = f(*args)
    partials = gradients(out, args)
    for i, partial in enumerate(partials):
        np.testing.assert_allclose(partial.numpy(), numerical_gradient(f, args, i), rtol=1e-7, atol=1e-8)


def test_the_tensor_shows_integers_as_they_are():
    assert str(Tensor([1, 2, 3])) == "needle.Tensor([1 2 3])"


def test_a_write_into_float32_converts():
    """Most numbers that name no dtype are float64 here, and so would be refused."""
    p = ndl.nn.Parameter(ndl.init.rand(2))
    for value, numbers in [
        (Tensor([1.5, 2.5]), [1.5, 2.5]),
        (Tensor([3, 4]), [3, 4]),
        (Tensor([True, False]), [1, 0]),
        (np.array([5.0, 6.0]), [5, 6]),
        (Tensor([4.5, 5.5]) - Tensor([True, False]), [3.5, 5.5]),
    ]:
        p.data = value
        assert p.dtype == p.numpy().dtype == "float32"
        np.testing.assert_array_equal(p.numpy(), numbers)


def test_edits_do_not_reach_the_array_it_was_made_from():
    source = np.ones(3)
    t = Tensor(source)
    t.realize_cached_data()[0] = 7
    t.numpy()[1] = 7
    np.testing.assert_array_equal(source, [1, 1, 1])
    np.testing.assert_array_equal(t.numpy(), [7, 1, 1])
