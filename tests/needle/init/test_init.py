"""Initialisers: shapes, dtypes, distributions, and NumPy's random numbers in the textbook order."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import needle as ndl
from needle import init
from needle.autograd import Tensor

DEVICES = [d for d in ndl.all_devices() if d.enabled()]

FUNCTIONS = {
    "rand": lambda **kw: init.rand(2, 3, **kw),
    "randn": lambda **kw: init.randn(2, 3, **kw),
    "randb": lambda **kw: init.randb(2, 3, **kw),
    "constant": lambda **kw: init.constant(2, 3, **kw),
    "ones": lambda **kw: init.ones(2, 3, **kw),
    "zeros": lambda **kw: init.zeros(2, 3, **kw),
    "one_hot": lambda **kw: init.one_hot(3, [0, 2], **kw),
    "xavier_uniform": lambda **kw: init.xavier_uniform(2, 3, **kw),
    "xavier_normal": lambda **kw: init.xavier_normal(2, 3, **kw),
    "kaiming_uniform": lambda **kw: init.kaiming_uniform(2, 3, **kw),
    "kaiming_normal": lambda **kw: init.kaiming_normal(2, 3, **kw),
}


def test_no_initialiser_is_forgotten():
    assert {*FUNCTIONS, "ones_like", "zeros_like"} == set(init.__all__)


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize(("name", "f"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_shape_dtype_device_and_requires_grad(name, f, device):
    default = f()
    assert type(default) is Tensor
    assert default.shape == (2, 3)
    assert default.dtype == ("bool" if name == "randb" else "float32")
    assert default.device == ndl.default_device()
    assert not default.requires_grad
    assert default.is_leaf()
    other = f(device=device, dtype="float64", requires_grad=True)
    assert (other.dtype, other.device, other.requires_grad) == ("float64", device, True)
    assert other.realize_cached_data().dtype == "float64"


def test_numbers_and_empty_shapes():
    assert init.rand().shape == ()
    assert init.zeros().shape == ()
    assert init.randn(0, 3).shape == (0, 3)
    assert init.one_hot(4, []).shape == (0, 4)


def test_constants():
    np.testing.assert_array_equal(init.constant(2, 2, c=2.5).numpy(), np.full((2, 2), 2.5))
    np.testing.assert_array_equal(init.constant(3).numpy(), [1, 1, 1])
    np.testing.assert_array_equal(init.ones(3).numpy(), [1, 1, 1])
    np.testing.assert_array_equal(init.zeros(3).numpy(), [0, 0, 0])
    np.testing.assert_array_equal(ndl.ones(3).numpy(), [1, 1, 1])
    np.testing.assert_array_equal(ndl.zeros(3).numpy(), [0, 0, 0])


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_like_another_tensor(dtype, device, mode):
    a = Tensor([[1.0, 2.0]], dtype=dtype, device=device) * 2
    for f, value in ((ndl.zeros_like, 0), (ndl.ones_like, 1)):
        like = f(a)
        assert (like.shape, like.dtype, like.device) == ((1, 2), np.dtype(dtype), device)
        assert not like.requires_grad
        np.testing.assert_array_equal(like.numpy(), [[value, value]])
        assert f(a, requires_grad=True).requires_grad
        assert f(a, device=ndl.default_device()).device == ndl.default_device()
    assert mode == "eager" or a.cached_data is None


# Random numbers: NumPy's global state, drawn in float64, one call for each initialiser

UNIFORM_BOUNDS = {
    "xavier_uniform": lambda: (init.xavier_uniform(30, 20, gain=1.5), 1.5 * math.sqrt(6 / 50)),
    "kaiming_uniform": lambda: (init.kaiming_uniform(30, 20), math.sqrt(2) * math.sqrt(3 / 30)),
    "kaiming_uniform, relu": lambda: (init.kaiming_uniform(30, 20, nonlinearity="relu"), math.sqrt(6 / 30)),
}
NORMAL_STDS = {
    "xavier_normal": lambda: (init.xavier_normal(30, 20, gain=0.5), 0.5 * math.sqrt(2 / 50)),
    "kaiming_normal": lambda: (init.kaiming_normal(30, 20), math.sqrt(2 / 30)),
}

# An initialiser may round to float32 before it scales: two roundings.
ROUNDING = {"rtol": 3e-7, "atol": 1e-7}


def test_uniform_numbers_are_rand_stretched_and_shifted():
    np.random.seed(1)
    drawn = init.rand(4, 5, low=-2, high=3).numpy()
    np.random.seed(1)
    np.testing.assert_allclose(drawn, np.random.rand(4, 5) * 5 - 2, rtol=3e-7, atol=5e-7)
    np.random.seed(1)
    np.testing.assert_array_equal(
        init.rand(4, 5).numpy(), np.random.RandomState(1).rand(4, 5).astype("float32")
    )


def test_normal_numbers_are_randn_stretched_and_shifted():
    np.random.seed(1)
    drawn = init.randn(4, 5, mean=7, std=0.5).numpy()
    np.random.seed(1)
    np.testing.assert_allclose(drawn, np.random.randn(4, 5) * 0.5 + 7, rtol=3e-7)


@pytest.mark.parametrize("make", UNIFORM_BOUNDS.values(), ids=UNIFORM_BOUNDS)
def test_uniform_weights(make):
    np.random.seed(1)
    weights, bound = make()
    np.random.seed(1)
    expected = np.random.rand(30, 20) * (2 * bound) - bound
    np.testing.assert_allclose(weights.numpy(), expected, **ROUNDING)
    assert np.abs(weights.numpy()).max() <= bound


@pytest.mark.parametrize("make", NORMAL_STDS.values(), ids=NORMAL_STDS)
def test_normal_weights(make):
    np.random.seed(1)
    weights, std = make()
    np.random.seed(1)
    np.testing.assert_allclose(weights.numpy(), np.random.randn(30, 20) * std, **ROUNDING)


@pytest.mark.parametrize("name", ["xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal"])
def test_weights_of_another_shape(name):
    f = getattr(init, name)
    np.random.seed(1)
    weights = f(18, 32, shape=(3, 3, 2, 4), dtype="float64")
    assert weights.shape == (3, 3, 2, 4)
    np.random.seed(1)
    flat = f(18, 32, shape=(72,), dtype="float64")
    np.testing.assert_array_equal(weights.numpy().ravel(), flat.numpy())


def test_gains_for_other_nonlinearities():
    np.random.seed(1)
    relu = init.kaiming_normal(9, 4, dtype="float64").numpy()
    for name, gain in (("linear", 1), ("sigmoid", 1), ("tanh", 5 / 3)):
        np.random.seed(1)
        other = init.kaiming_normal(9, 4, nonlinearity=name, dtype="float64").numpy()
        np.testing.assert_allclose(other, relu / math.sqrt(2) * gain, rtol=1e-15)
    with pytest.raises(ValueError, match=r"no gain known for 'gelu'.*relu, linear, sigmoid, tanh"):
        init.kaiming_uniform(9, 4, nonlinearity="gelu")


@pytest.mark.parametrize("p", [0, 0.25, 1])
def test_random_booleans(p):
    np.random.seed(1)
    drawn = init.randb(50, 40, p=p)
    np.random.seed(1)
    np.testing.assert_array_equal(drawn.numpy(), np.random.rand(50, 40) <= p)
    assert set(init.randb(50, p=p, dtype="float32").numpy()) <= {0, 1}


# one_hot


@pytest.mark.parametrize(
    "labels",
    [
        [2, 0, 1],
        (2, 0, 1),
        np.array([2, 0, 1]),
        np.array([2, 0, 1], "uint8"),
        np.array([2.0, 0.0, 1.0]),
        Tensor([2, 0, 1]),
        Tensor([2, 0, 1], dtype="int64"),
        Tensor([1.0, -1.0, 0.0]) + 1,
    ],
    ids=["list", "tuple", "int64", "uint8", "float64", "Tensor", "int64 Tensor", "computed"],
)
def test_one_hot(labels):
    np.testing.assert_array_equal(init.one_hot(3, labels).numpy(), np.eye(3)[[2, 0, 1]])


@pytest.mark.parametrize("labels", [[3], [-1], [0.5], [0, 1, 99]], ids=str)
def test_one_hot_refuses_what_is_no_label(labels):
    with pytest.raises(IndexError, match=r"classes must lie in 0\.\.2 and be whole"):
        init.one_hot(3, labels)


def test_signatures_are_the_courses():
    def defaults(f):
        return {n: p.default for n, p in inspect.signature(f).parameters.items() if p.default is not p.empty}

    common = {"device": None, "dtype": "float32", "requires_grad": False}
    assert defaults(init.rand) == {"low": 0, "high": 1, **common, "rng": None}
    assert defaults(init.randn) == {"mean": 0, "std": 1, **common, "rng": None}
    assert defaults(init.constant) == {"c": 1, **common}
    assert defaults(init.ones) == defaults(init.zeros) == defaults(init.one_hot) == common
    assert defaults(init.randb) == {"p": 0.5, **common, "dtype": "bool", "rng": None}


def test_what_stands_for_an_rng():
    for draw in (init.rand, init.randn, init.randb):
        for seed in (0, np.int64(5)):
            expected = draw(4, rng=np.random.default_rng(int(seed))).numpy()
            np.testing.assert_array_equal(draw(4, rng=seed).numpy(), expected)
        for wrong in ("0", 0.0, True, np.random.RandomState(0)):
            with pytest.raises(TypeError, match=r"rng: needs a numpy\.random\.Generator, a seed"):
                draw(4, rng=wrong)
