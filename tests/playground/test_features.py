"""The network's inputs: what NumPy says of them, and everything that is refused."""

from __future__ import annotations

import numpy as np
import pytest

from needle.data import toy
from playground.results.as_python import _data, _imports
from playground.training import features
from playground.training.features import (
    FEATURES,
    FUNCTIONS,
    FeatureError,
    checked,
    evaluate,
    functions_in,
    on_grid,
)
from playground.training.settings import Settings

POINTS = np.random.default_rng(0).uniform(*toy.DOMAIN, (50, 2))

#: Each with what NumPy makes of it.
NUMPY = {
    "x1": lambda x, y: x,
    "x2": lambda x, y: y,
    "x1**2": lambda x, y: x**2,
    "x2**2": lambda x, y: y**2,
    "x1*x2": lambda x, y: x * y,
    "sin(x1)": lambda x, y: np.sin(x),
    "sin(x2)": lambda x, y: np.sin(y),
    "x1**2 + x2**2": lambda x, y: x**2 + y**2,
    "-x1 / 2": lambda x, y: -x / 2,
    "(x1 + x2) * (x1 - x2)": lambda x, y: (x + y) * (x - y),
    "2**x1": lambda x, y: 2**x,
    "1e-3*x1 + .5": lambda x, y: 1e-3 * x + 0.5,
    "x1*pi": lambda x, y: x * np.pi,
    "abs(x1) - abs(-3)*x2": lambda x, y: np.abs(x) - 3 * y,
    "cos(3*x1)": lambda x, y: np.cos(3 * x),
    "exp(-x1**2)": lambda x, y: np.exp(-(x**2)),
    "exp(1)*x1": lambda x, y: np.exp(1) * x,
    "log(abs(x1) + 1)": lambda x, y: np.log(np.abs(x) + 1),
    "maximum(x1, 0)": lambda x, y: np.maximum(x, 0),
    "minimum(x1, maximum(x2, abs(x1)))": lambda x, y: np.minimum(x, np.maximum(y, np.abs(x))),
    "relu(x1 - x2)": lambda x, y: np.maximum(x - y, 0),
    "sigmoid(x2)": lambda x, y: 1 / (1 + np.exp(-y)),
    "sign(x1)": lambda x, y: np.sign(x),
    "sqrt(x1**2 + x2**2)": lambda x, y: np.hypot(x, y),
    "tanh(x1 * x2)": lambda x, y: np.tanh(x * y),
    "where(x1 > 0, x1, x2)": lambda x, y: np.where(x > 0, x, y),
    "x1 > x2": lambda x, y: (x > y).astype(float),
    "(x1 > 0) * (x2 <= 1)": lambda x, y: (x > 0) * (y <= 1.0),
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sine(x1)", "in “sine(x1)”, there is no function sine; did you mean sin?"),
        ("x2 + sqr(x1)", "in “x2 + sqr(x1)”, there is no function sqr; did you mean sqrt?"),
    ],
)
def test_a_function_with_nearly_this_name_is_named(text, said):
    with pytest.raises(FeatureError) as raised:
        checked(text)
    assert str(raised.value) == said


def test_a_power_may_be_written_as_on_a_blackboard():
    assert checked("x1^2 + 2*x2^3") == "x1**2 + 2*x2**3"
    points = np.array([[2.0, -1.0]])
    assert evaluate(checked("-x1^2 + x2"), points) == [-5]
    assert checked("x1^2") == "x1**2"  # the input that the page offers


@pytest.mark.parametrize("text", NUMPY)
def test_an_input_is_what_numpy_says(text):
    assert checked(text) == text
    values = evaluate(text, POINTS)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, NUMPY[text](*POINTS.T), rtol=2e-5, atol=1e-5)


def test_the_page_offers_what_can_be_used():
    assert set(FEATURES) < set(NUMPY)
    assert set().union(*map(functions_in, NUMPY)) == {*FUNCTIONS}


@pytest.mark.parametrize("text", NUMPY)
def test_the_script_computes_the_same_digits(text):
    settings = Settings(inputs=(text,), points=50)
    names = {}
    exec(_imports(settings), names)
    exec(_data(settings), names)
    np.testing.assert_array_equal(names["inputs_of"](POINTS)[:, 0], evaluate(text, POINTS))


def test_many_points_and_none():
    points = np.random.default_rng(0).uniform(-6, 6, (25_001, 2))
    np.testing.assert_array_equal(evaluate("x1*x2", points)[::5000], evaluate("x1*x2", points[::5000]))
    assert evaluate("x1", np.empty((0, 2))).shape == (0,)


def test_the_plane_goes_row_by_row_from_the_upper_left_corner():
    x1, x2 = on_grid(("x1", "x2"), 3).T.reshape(2, 3, 3)
    np.testing.assert_array_equal(x1, [[-6, 0, 6]] * 3)
    np.testing.assert_array_equal(x2.T, [[6, 0, -6]] * 3)


REFUSED = {
    "has no finite value at x1 =": [
        "1/x1", "log(x1)", "sqrt(x2)", "x1**0.5", "x2**-1", "exp(exp(x1**2))", "10**(x1*20)", "1/(x1-x2)",
        "log(x1**2 + x2**2)", "x1**99", "log(x1*0)", "sqrt(-1 - x1**2)", "1/(x1-1/6)", "0**x1",
    ],
    r"use x1, x2, numbers, \+ - \* / \*\* and abs,": [
        "mean(x1)", "sum(x1)", "max(x1)", "softmax(x1)", "logsumexp(x1)", "x1 - mean(x1)", "sum(x1*x2)*x1",
        "rand(50)*x1", "randn(50)+x1", "rand(1)*x1", "ones(3)*x1", "zeros(50)+x1", "tensor([1])*x1",
        "reshape(x1, [2, 25])", "transpose(x1)", "flip(x1)", "cumsum(x1)", "norm(x1)", "detach(x1)",
        "grad(x1, x1)",
        "matmul(x1, x2)", "x1 @ x2", "x1[0]", "x1[0]*x2", "[x1, x2]", "x1.T", "x1.sum()", "x1.grad",
        "x1.data",
        "(x1, x2)", "sin(x=x1)", "stack([x1, x2])", "gather(x1, 0)", "argmax(x1)", "broadcast_to(x1, [50])",
        "eval(x1)", "open(x1)", "f(x1)", "x1(x2)",
    ],
    "has no value; use x1 and x2": [
        "x3 + x1", "y*x1", "os*x1", "np*x1", "builtins*x1", "x*x1", "sin*x1",
    ],
    "is the same everywhere; use x1 or x2 in it": ["1", "2*3", "pi", "sin(1)", "-1", "..."],
    "must be a single expression, such as x1": [
        "y = x1", "x1; x2", "x1\nx2", "x1 = 3", "x1 += 1", "for i in x1: i", "x1 # a comment", "(x1 # a\n)",
    ],
    "isn't supported here|can't be read": [
        "lambda: x1", "def f(): x1", "class A: x1", "(lambda x1: x1)(x1)", "x1 for x1 in x2",
        "[x1 for x1 in x2]",
    ],
    "in “[^”]*”, .*": [
        "__import__('os')", "x1.__class__", "().__class__", "_x1", "x1__", "'x1'", "f'{x1}'", "b'x1'",
        "import os",
        "x1 if x1 else x2", "x1 and x2", "not x1", "x1 or x2", "x1 == x2", "x1 != x2", "x1 // 2", "x1 % 2",
        "x1 & 1", "x1 | 1", "~x1", "x1 << 1", "x1 := 3", "{x1}", "{x1: x2}", "x1 is x2", "x1 in x2",
        "await x1",
        "yield x1", "x1 if", "x1 +", "(x1", "x1)", "", "  ", "x1 x2", "2x1", "1e31*x1", "9" * 50 + "*x1",
        "0x10*x1",
        "1_000*x1", "x1*1j", "٣*x1", "ｘ1", "x₁", "x1²", "x1−x2", "x1\x00", "x1\ud800", "\ufeffx1", "x1\t+1",
        "----------x1", "1/0*x1", "x1 \\\n+ 1", "assert x1", "del x1", "return x1", "None", "True*x1",
        "x1...",
        "print", "print(x1)", "exp(x1)(x2)", "@x1",
    ],
    "an expression has at most 60 characters, this one has": [
        "x1" + "+x1" * 20, "(" * 500 + "x1" + ")" * 500, "x1" * 10**6,
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [(text, said) for said, texts in REFUSED.items() for text in texts],
    ids=lambda text: ascii(text)[:25],
)
def test_what_is_no_input_is_refused_in_a_sentence(text, said, monkeypatch):
    for name in ("eval", "exec"):
        monkeypatch.setattr(f"builtins.{name}", None)
    with pytest.raises(FeatureError, match=said) as raised:
        checked(text)
    assert str(raised.value).endswith(".")
    assert len(str(raised.value)) < 300


def test_deep_brackets_are_refused():
    with pytest.raises(FeatureError):
        checked("(" * 29 + "x1" + ")" * 28)


def test_each_point_is_by_itself():
    """No input of a point depends on the other points."""
    for text in NUMPY:
        alone = [evaluate(text, point[None])[0] for point in POINTS[:3]]
        np.testing.assert_array_equal(alone, evaluate(text, POINTS)[:3])


def test_an_input_that_is_not_finite_at_a_point_is_refused_there():
    text = "sqrt((x1-0.25)**2 + x2**2 - 0.001)"  # negative in a small disc between the places of the plane
    assert checked(text) == text
    with pytest.raises(
        FeatureError, match=r"has no finite value at x1 = 0.25, x2 = 0\.? *; it needs one everywhere"
    ):
        evaluate(text, np.array([[0.0, 0.0], [0.25, 0.0]]))


def test_a_refused_input_is_not_remembered():
    features._of_grid.cache_clear()
    for _ in range(2):
        with pytest.raises(FeatureError):
            checked("1/x1")
