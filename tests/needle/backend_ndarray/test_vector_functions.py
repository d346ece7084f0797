"""The vector functions: precise everywhere, exact at special values, and compiled to vector instructions."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.backend_ndarray import SCALAR_FUNCTIONS
from needle.backend_ndarray.ndarray_backend_numba_cpu import map_aligned, zip_aligned, zip_number_last
from needle.backend_ndarray.numba_kernels import Kernel
from needle.backend_ndarray.vector_functions import VECTOR_FORMS

INF, NAN = math.inf, math.nan
INTEGERS = {"float32": np.uint32, "float64": np.uint64}
WIDER = {"float32": np.float64, "float64": np.longdouble}
# On some systems longdouble is float64, whose own functions may be wrong by a unit.
ULPS = {"float32": 2, "float64": 2 if np.finfo(np.longdouble).nmant > 52 else 3}

#: The functions once more, for numbers with more digits.
EXACT = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-abs(x))),
}

#: Where a function changes its formula, or its value stops being normal or finite.
TURNING_POINTS = [
    0.0,
    1e-30,
    0.35,
    0.46875,
    0.5**0.5,
    0.625,
    1.0,
    2**0.5,
    6.0,
    9.0,
    17.0,
    19.1,
    37.0,
    87.34,
    88.72,
    103.97,
]
TURNING_POINTS += [104.0, 708.4, 709.78, 745.13, 746.0, INF]

SPECIAL = {
    "exp": [(NAN, NAN), (INF, INF), (-INF, 0), (0.0, 1), (-0.0, 1), (1e30, INF), (-1e30, 0)],
    "log": [(NAN, NAN), (INF, INF), (-INF, NAN), (0.0, -INF), (-0.0, -INF), (1, 0), (-1, NAN), (-1e-40, NAN)],
    "tanh": [(NAN, NAN), (INF, 1), (-INF, -1), (0.0, 0.0), (-0.0, -0.0), (1e30, 1), (-1e30, -1)],
    "sigmoid": [(NAN, NAN), (INF, 1), (-INF, 0), (0.0, 0.5), (-0.0, 0.5), (1e30, 1), (-1e30, 0)],
}

dtypes = pytest.mark.parametrize("dtype", list(WIDER))
functions = pytest.mark.parametrize("name", list(EXACT))


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@cache
def kernel(template, row):
    return Kernel(template, {map_aligned: "aa", zip_aligned: "aaa", zip_number_last: "axa"}[template], row)


def compiled(name, x):
    out = np.empty_like(x)
    kernel(map_aligned, SCALAR_FUNCTIONS[name])[x.dtype](x, out)
    return out


def mistaken(name, x, got):
    """Where `got` is not f(x): [(x, got, f(x), units in the last place between them), …]."""
    exact = EXACT[name](x.astype(WIDER[x.dtype.name]))
    right = exact.astype(x.dtype)
    units = np.abs(got - exact) / np.spacing(np.abs(right))
    same = (got == right) | (np.isnan(got) & np.isnan(right))
    wrong = ~same & ~(units <= ULPS[x.dtype.name] + (name == "tanh") / 2)
    return [*zip(x[wrong][:5], got[wrong], exact[wrong], units[wrong], strict=False)]


def patterns(dtype, step):
    """Every step-th number there is, and all the neighbours of the turning points."""
    integer = INTEGERS[dtype]
    bits = np.arange(0, 2 ** np.iinfo(integer).bits, step, dtype=integer)
    middles = np.array(TURNING_POINTS, dtype).view(integer)[:, None]
    near = (middles + np.arange(-500, 500).astype(integer)).reshape(-1)
    return np.concatenate([bits, near, near | integer(1 << np.iinfo(integer).bits - 1)]).view(dtype)


@functions
@pytest.mark.parametrize("step", [2**16, pytest.param(2**10, marks=pytest.mark.slow)])
def test_float32_is_precise(name, step):
    x = patterns("float32", step)
    assert mistaken(name, x, compiled(name, x)) == []


@functions
@pytest.mark.parametrize("step", [2**50, pytest.param(2**46, marks=pytest.mark.slow)])
def test_float64_is_precise(name, step):
    draw = np.random.default_rng(3)
    ranges = [draw.uniform(-bound, bound, 2**64 // step // 3) for bound in (0.01, 1, 10, 100, 750)]
    x = np.concatenate([patterns("float64", step), *ranges])
    assert mistaken(name, x, compiled(name, x)) == []


@functions
@dtypes
def test_special_values_are_exact(name, dtype):
    x, expected = np.array(SPECIAL[name], dtype).T.copy()
    for got in (compiled(name, x), np.array([VECTOR_FORMS[name][dtype](v) for v in x])):
        np.testing.assert_array_equal(got, expected)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


@functions
@dtypes
def test_they_are_plain_python_too(name, dtype):
    """The same values to a rounding (compiled, a * b + c may be rounded once), of the same type."""
    x = np.concatenate([np.linspace(-110, 110, 301), np.geomspace(1e-44, 1e38, 101)]).astype(dtype)
    got = [VECTOR_FORMS[name][dtype](v) for v in x]
    assert {type(v) for v in got} == {x.dtype.type}
    assert mistaken(name, x, np.array(got)) == []


@functions
@given(numbers=st.lists(st.floats(width=32), min_size=1))
def test_any_numbers(name, numbers):
    with np.errstate(all="ignore"):
        for dtype in WIDER:
            x = np.array(numbers, dtype)
            assert mistaken(name, x, compiled(name, x)) == []


@dtypes
def test_erf_is_precise(dtype):
    """Compiled, in plain Python and as NumPy's form, against the C library's."""
    x = patterns(dtype, {"float32": 2**14, "float64": 2**46}[dtype])
    x = np.concatenate([x, np.linspace(-7, 7, 100_001).astype(dtype)])
    exact = np.array([math.erf(v) for v in x])
    some = x[::50]
    answers = [(compiled("erf", x), exact), (SCALAR_FUNCTIONS["erf"].numpy(x), exact)]
    answers.append((np.array([VECTOR_FORMS["erf"][dtype](v) for v in some]), exact[::50]))
    for got, expected in answers:
        assert got.dtype == dtype
        right = expected.astype(dtype)
        number = ~np.isnan(right)
        np.testing.assert_array_equal(np.isnan(got), ~number)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(right[number]))
        units = np.abs(got - expected)[number] / np.spacing(np.abs(right[number]))
        assert units.max() <= 5


def test_the_tails_of_sigmoid_are_denormal_numbers():
    x = np.array([-88, -100, -103, -105], "float32")
    assert compiled("sigmoid", x).tolist() == np.exp(x.astype("float64")).astype("float32").tolist()
    assert 0 < compiled("sigmoid", x)[2] < np.finfo("float32").smallest_normal


@dtypes
@pytest.mark.parametrize("exponent", [2, 3, -1, 0.5, 0, 1, -2, 2.5, INF, -INF, NAN])
def test_powers_are_those_of_ieee_arithmetic(dtype, exponent):
    x = patterns(dtype, 2 ** (8 * np.dtype(dtype).itemsize - 12))
    x[np.isnan(x)] = NAN  # C has another 0th power for the "signalling" ones
    row = SCALAR_FUNCTIONS["power"]
    # The exponent is an array since NumPy has for 0.5 alone the square root, which is NaN at -infinity.
    exact = np.power(x.astype(WIDER[dtype]), np.full(x.size, exponent, WIDER[dtype]))
    expected = exact.astype(dtype)
    with_number, with_array = np.empty_like(x), np.empty_like(x)
    kernel(zip_number_last, row)[x.dtype](x, float(exponent), with_number)
    kernel(zip_aligned, row)[x.dtype](x, np.full_like(x, exponent), with_array)
    for got in (with_number, with_array):
        finite = np.isfinite(expected) & np.isfinite(got)
        np.testing.assert_array_equal(got[~finite], expected[~finite])
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(expected[got == 0]))
        units = np.abs(got[finite] - exact[finite]) / np.spacing(np.abs(expected[finite]))
        assert units.max(initial=0) <= ULPS[dtype]


# Vector instructions


def instructions(template, row, dtype):
    """The compiled kernel, in LLVM's language."""
    function = kernel(template, row).compiled_afresh(np.dtype(dtype))
    (code,) = function.inspect_llvm().values()
    return code


def stores_vectors(code, dtype):
    real, lanes = {"float32": ("float", 4), "float64": ("double", 2)}[dtype]
    return any(int(found) >= lanes for found in re.findall(rf"store <(\d+) x {real}>", code))


def calls(code):
    """The functions called once per number."""
    found = re.findall(r"call (?:\w+ )*?(?:float|double) @([\w.]+)\(", code)
    return {name for name in found if not name.startswith("llvm.vector")}


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        name if name in EXACT else pytest.param(name, marks=pytest.mark.slow)
        for name in sorted(SCALAR_FUNCTIONS.keys() - {"power", "sin", "cos"})
    ],
)
def test_every_lane_of_a_vector_is_used(name, dtype):
    row = SCALAR_FUNCTIONS[name]
    code = instructions(map_aligned if row.arity == 1 else zip_aligned, row, dtype)
    assert stores_vectors(code, dtype)
    libm = {call for call in calls(code) if re.search("erf|exp|log|tanh|pow|sin|cos", call)}
    assert libm == set()


@dtypes
def test_a_power_is_chosen_before_the_loop(dtype):
    code = instructions(zip_number_last, SCALAR_FUNCTIONS["power"], dtype)
    assert stores_vectors(code, dtype)
    assert re.search(r"call[^\n]*<\d+ x (float|double)> @llvm.sqrt", code)


def test_the_detector_sees_a_call():
    assert re.search("sin", " ".join(calls(instructions(map_aligned, SCALAR_FUNCTIONS["sin"], "float32"))))
