"""What functions of one number answer where values are special: kinks, ties, infinities, NaN, data types."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor, gradients

DEVICES = [d for d in ndl.all_devices() if d.enabled()]
every_device = pytest.mark.parametrize("device", DEVICES, ids=str)
INF, NAN = math.inf, math.nan


def tensor(values, device, dtype="float64"):
    return Tensor(values, device=device, dtype=dtype)


def slope(f, values, device):
    """The derivative of `f`, element by element."""
    x = tensor(values, device)
    return gradients(f(x), [x])[0].numpy()


# where


@every_device
def test_the_branch_that_is_not_taken_has_no_part(device, mode):
    """sqrt(x) and log(x) where x > 0, else 0: neither NaN nor infinities come in, at any order."""
    x = tensor([4.0, 0.0, -1.0, 1.0], device)
    inside = ndl.compare(x, "gt", 0)
    for f, first, second in [
        (ndl.sqrt, [0.25, 0, 0, 0.5], [-1 / 32, 0, 0, -0.25]),
        (ndl.log, [0.25, 0, 0, 1], [-1 / 16, 0, 0, -1]),
        (lambda x: 1 / x, [-1 / 16, 0, 0, -1], [1 / 32, 0, 0, 2]),
    ]:
        # The inner `where` keeps what f's own slope would make of numbers outside: inf * 0 is NaN.
        y = ndl.where(inside, f(ndl.where(inside, x, 1)), 0)
        (by_x,) = gradients(y, [x])
        (by_by_x,) = gradients(by_x, [x])
        np.testing.assert_array_equal(by_x.numpy(), first)
        np.testing.assert_allclose(by_by_x.numpy(), second, rtol=1e-15)


@every_device
def test_where_of_infinities_and_nan(device, mode):
    condition = np.array([1, 0, 1, 0, 1, 0], bool)
    a = tensor([INF, INF, NAN, NAN, 1, 1], device)
    b = tensor([2, 2, 3, 3, -INF, NAN], device)
    y = ndl.where(condition, a, b)
    np.testing.assert_array_equal(y.numpy(), np.where(condition, a.numpy(), b.numpy()))
    by_a, by_b = gradients(y, [a, b], tensor([INF, INF, NAN, NAN, 5, 6], device))
    np.testing.assert_array_equal(by_a.numpy(), [INF, 0, NAN, 0, 5, 0])
    np.testing.assert_array_equal(by_b.numpy(), [0, INF, 0, NAN, 0, 6])


@every_device
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64"])
def test_the_condition_may_have_any_dtype(dtype, device):
    values = np.array([0, 1, 0, 2], dtype)
    expected = np.where(values != 0, [1, 2, 3, 4], -1)
    x = tensor([1, 2, 3, 4], device, "float32")
    for condition in (values, tensor(values, device, dtype)):
        y = ndl.where(condition, x, -1)
        assert y.dtype == "float32"
        np.testing.assert_array_equal(y.numpy(), expected)
    assert ndl.where(tensor([1e-300], device), x, -1).numpy().tolist() == [
        1,
        2,
        3,
        4,
    ]  # not 0, though it is 0
    np.testing.assert_array_equal(
        ndl.where(tensor(values, device, dtype), 1.5, x).numpy()[1::2], 1.5
    )  # in float32


@every_device
def test_where_makes_constants_of_numbers_and_arrays(device):
    condition = tensor([[1], [0]], device).detach()
    y = ndl.where(condition, np.array([1.0, 2.0]), -INF)
    assert y.device == device
    assert not y.requires_grad
    np.testing.assert_array_equal(y.numpy(), [[1, 2], [-INF, -INF]])
    assert ndl.where([True, False], tensor([1, 2], device, "int64"), 0).numpy().tolist() == [1, 0]


def test_where_without_a_tensor_is_refused():
    with pytest.raises(TypeError, match="at least one operand must be a Tensor"):
        ndl.where(np.ones(2, bool), 1, 2)
    with pytest.raises(ValueError, match=r"where: shapes \(2,\) and \(3,\) and \(\)"):
        ndl.where(np.ones(2, bool), Tensor(np.ones(3)), 2)


# Kinks and ties


@every_device
def test_slopes_at_kinks(device, mode):
    at = [-INF, -1, 0, 1, INF]
    np.testing.assert_array_equal(slope(ndl.relu, at, device), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(slope(ndl.abs, at, device), [-1, -1, 0, 1, 1])
    np.testing.assert_array_equal(slope(lambda x: ndl.leaky_relu(x, 0.5), at, device), [0.5, 0.5, 1, 1, 1])
    np.testing.assert_array_equal(slope(lambda x: ndl.clip(x, -1, 1), at, device), [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(slope(lambda x: ndl.minimum(x, x * 1), at, device), 1)


@every_device
def test_the_slope_of_relu_at_nan_and_of_an_infinite_adjoint(device, mode):
    x = tensor([NAN, -1, 1], device)
    y = ndl.relu(x)
    np.testing.assert_array_equal(y.numpy(), [NAN, 0, 1])
    np.testing.assert_array_equal(gradients(y, [x], tensor([2, INF, 3], device))[0].numpy(), [2, 0, 3])


@every_device
def test_a_tie_is_shared(device, mode):
    a, b = tensor([1, 2, 3], device), tensor([1, 3, 2], device)
    for f, by_a in [(ndl.minimum, [0.5, 1, 0]), (ndl.maximum, [0.5, 0, 1])]:
        first, second = gradients(f(a, b), [a, b])
        np.testing.assert_array_equal(first.numpy(), by_a)
        np.testing.assert_array_equal(second.numpy(), 1 - np.array(by_a))
    np.testing.assert_array_equal(slope(ndl.min, [2, 1, 1, 3, 1], device), [0, 1 / 3, 1 / 3, 0, 1 / 3])


# Infinities and NaN are passed on as torch passes them on, forward and backward.

SPECIAL = [-INF, -1.0, -0.0, 0.0, 2.0, INF, NAN]
PAIRS = [list(x) for x in zip(*itertools.product(SPECIAL, SPECIAL), strict=True)]
ROWS = np.array(
    [
        [1, NAN, 2], [NAN, 1, 2], [1, 2, NAN], [NAN, NAN, NAN], [INF, NAN, 1], [INF, 0, 1], [0, INF, INF],
        [-INF, INF, 1], [-INF, 0, 1], [-INF, -INF, -INF], [-INF, NAN, 0],
    ]
)  # fmt: skip


def assert_as_in_torch(torch, f, theirs, arrays, device, out_grad=3.0):
    for dtype in ("float32", "float64"):
        xs = [tensor(array, device, dtype) for array in arrays]
        ts = [torch.tensor(array, dtype=getattr(torch, dtype), requires_grad=True) for array in arrays]
        y, t = f(*xs), theirs(*ts)
        np.testing.assert_allclose(y.numpy(), t.detach().numpy(), rtol=1e-6)
        found = gradients(y, xs, tensor(np.full(y.shape, out_grad), device, dtype))
        expected = torch.autograd.grad(t, ts, torch.full_like(t, out_grad))
        for by_x, by_t in zip(found, expected, strict=True):
            np.testing.assert_allclose(by_x.numpy(), by_t.numpy(), rtol=5e-6)  # 1 - tanh² cancels digits


@every_device
@pytest.mark.parametrize("out_grad", [3.0, INF])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_the_larger_and_the_smaller_of_special_numbers(name, out_grad, device, mode, torch):
    assert_as_in_torch(torch, getattr(ndl, name), getattr(torch, name), PAIRS, device, out_grad)


@every_device
@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh", "exp", "sqrt", "erf", "clip"])
def test_functions_of_special_numbers(name, device, mode, torch):
    if name == "clip":
        for low, high in [(-1.0, 1.5), (None, 1.5), (-1.0, None)]:
            ours, theirs = (lambda x: ndl.clip(x, low, high)), (lambda x: torch.clamp(x, low, high))  # noqa: B023
            assert_as_in_torch(torch, ours, theirs, [SPECIAL], device)
    else:
        assert_as_in_torch(torch, getattr(ndl, name), getattr(torch, name), [SPECIAL], device)


@every_device
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("max", "amax"), ("min", "amin"), ("softmax", "softmax"), ("logsoftmax", "log_softmax"),
        ("logsumexp", "logsumexp"),
    ],
)  # fmt: skip
def test_rows_of_special_numbers(ours, theirs, axis, device, mode, torch):
    rows = ROWS.T.copy() if axis == 0 else ROWS
    f, g = getattr(ndl, ours), getattr(torch, theirs)
    assert_as_in_torch(torch, lambda x: f(x, axis), lambda x: g(x, axis), [rows], device)


@every_device
@pytest.mark.parametrize("place", [0, 1, 34, 68])
def test_nan_wins_wherever_it_stands(place, device, mode):
    """Several numbers of a long row are compared at once."""
    row = np.linspace(-2, 2, 69)
    row[place] = NAN
    for dtype in ("float32", "float64"):
        x = tensor(row, device, dtype)
        assert all(np.isnan(f(x).numpy()) for f in (ndl.max, ndl.min, ndl.logsumexp))
        assert np.isnan(ndl.softmax(x).numpy()).all()


@every_device
def test_the_power_of_zero_by_its_exponent(device, mode):
    """0 ** b * log(0): 0 for b above 0, and minus infinity below."""
    b = tensor([2, 0.5, 0, -1], device)
    y = tensor(np.zeros(4), device).detach() ** b
    np.testing.assert_array_equal(gradients(y, [b])[0].numpy(), [0, 0, 0, -INF])


# Precision and data types


@every_device
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_far_out(approximate, device, mode):
    x = [-1e30, -40, 0, 40, 1e3]
    np.testing.assert_array_equal(ndl.gelu(tensor(x, device), approximate).numpy(), [0, 0, 0, 40, 1e3])
    np.testing.assert_array_equal(slope(lambda x: ndl.gelu(x, approximate), x[1:], device), [0, 0.5, 1, 1])


@every_device
def test_the_approximate_gelu_is_close(device):
    x = tensor(np.linspace(-5, 5, 1001), device)
    difference = np.abs(ndl.gelu(x).numpy() - ndl.gelu(x, "tanh").numpy())
    assert 1e-5 < difference.max() < 5e-4


def test_gelu_knows_two_ways():
    with pytest.raises(ValueError, match='"none" or "tanh", not \'exact\''):
        ndl.gelu(Tensor([1.0]), "exact")


@every_device
def test_whole_numbers(device, mode):
    """They stay whole where the function allows it; bounds and slopes that are fractions make fractions."""
    x = tensor([-2, 0, 3], device, "int64")
    for y, dtype, values in [
        (ndl.abs(x), "int64", [2, 0, 3]),
        (ndl.sign(x), "int64", [-1, 0, 1]),
        (ndl.minimum(x, x + 1), "int64", [-2, 0, 3]),
        (ndl.clip(x, -1, 2), "int64", [-1, 0, 2]),
        (ndl.clip(x, high=2.5), "float64", [-2, 0, 2.5]),
        (ndl.clip(x, -1, 2.5), "float64", [-1, 0, 2.5]),
        (ndl.leaky_relu(x, 0.5), "float64", [-1, 0, 3]),
        (ndl.sqrt(x * x), "float64", [2, 0, 3]),
        (ndl.erf(x), "float64", [math.erf(-2), 0, math.erf(3)]),
        (ndl.gelu(x), "float64", [-(1 + math.erf(-(2**0.5))), 0, 1.5 * (1 + math.erf(3 / 2**0.5))]),
    ]:
        assert y.dtype == dtype
        np.testing.assert_allclose(y.numpy(), np.array(values), rtol=1e-15)
        assert y.numpy().dtype == dtype
    assert ndl.clip(x).numpy().tolist() == [-2, 0, 3]


# argmax, min


@every_device
def test_argmax(device, mode):
    x = tensor([[1, 5, 5], [NAN, 7, -INF]], device, "float32")
    for axis in (None, 0, 1, -1):
        found = ndl.argmax(x, axis)
        expected = x.numpy().argmax(axis)
        assert (found.dtype, found.shape, found.requires_grad) == ("int64", np.shape(expected), False)
        np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(x.argmax(1).numpy(), [1, 0])
    assert x.permute((1, 0)).argmax().numpy() == 1


def test_what_has_no_largest_element(mode):
    empty = Tensor(np.ones((2, 0)))
    for f in (ndl.argmax, ndl.min, ndl.max):
        with pytest.raises(ValueError, match=r"\(2, 0\) has no element along axes 1"):
            f(empty, 1)
    with pytest.raises(ValueError, match="argmax: axes 2 "):
        ndl.argmax(empty, 2)
    with pytest.raises(TypeError):
        ndl.argmax(empty, (0, 1))
