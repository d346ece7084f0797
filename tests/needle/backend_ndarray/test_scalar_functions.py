"""The table of scalar functions: its Python, NumPy and vector forms are the same functions."""

import ast
import itertools
import math
import operator

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.backend_ndarray import SCALAR_FUNCTIONS
from needle.backend_ndarray.ndarray_backend_numba_cpu import map_aligned, zip_aligned
from needle.backend_ndarray.ndarray_backend_numpy import MAPS, REDUCES, ZIPS, quiet
from needle.backend_ndarray.numba_kernels import Kernel
from needle.backend_ndarray.scalar_functions import COMPARISONS, REDUCTIONS, written

VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -7.25, 20.0, -20.0, 89.0, -89.0, 1e3, -1e3, 1e-3]
VALUES += [1e-30, -1e-30, 1e30, -1e30, 1e300, -1e300, 5e-324, math.pi, math.inf, -math.inf, math.nan]

rows = pytest.mark.parametrize("row", SCALAR_FUNCTIONS.values(), ids=operator.attrgetter("name"))


def plain(function, *args):
    """What plain Python answers, or None where it refuses what IEEE arithmetic answers with inf or NaN."""
    try:
        answer = function(*args)
    except (ArithmeticError, ValueError):
        return None
    return None if isinstance(answer, complex) else float(answer)


def agree(expected, got):
    if expected is None:
        return not math.isfinite(got)
    return expected == pytest.approx(got, rel=1e-12, abs=0, nan_ok=True)


def on_numpy(row, args):
    return float(quiet.run(row.numpy, *(np.array([x]) for x in args))[0])


def disagreements(row, form):
    """Where a form of a row differs from its NumPy form: [(arguments, its answer, NumPy's answer), …]."""
    answers = (
        (args, plain(form, *args), on_numpy(row, args))
        for args in itertools.product(VALUES, repeat=row.arity)
    )
    return [found for found in answers if not agree(*found[1:])]


@rows
def test_python_and_numpy_forms_agree(row):
    assert disagreements(row, row.python) == []


NAMES = {row.name: row.python for row in SCALAR_FUNCTIONS.values()}


@rows
def test_the_text_says_the_same(row):
    def evaluated(*numbers):
        return eval(row.text.format(x="x", y="y"), NAMES, dict(zip("xy", numbers, strict=False)))

    for numbers in itertools.product(VALUES, repeat=row.arity):
        assert repr(plain(evaluated, *numbers)) == repr(plain(row.python, *numbers))


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("add", ("a", "b + c"), "a + (b + c)"),
        ("add", ("a + b", "c"), "a + b + c"),
        ("subtract", ("a", "b - c"), "a - (b - c)"),
        ("multiply", ("a + 1", "b / c"), "(a + 1) * (b / c)"),
        ("multiply", ("a / 2", "-b"), "a / 2 * -b"),
        ("divide", ("a * b", "exp(c)"), "a * b / exp(c)"),
        ("power", ("a ** b", "-c"), "(a ** b) ** -c"),
        ("power", ("-2", "a ** b"), "(-2) ** a ** b"),
        ("negate", ("a ** 2",), "-a ** 2"),
        ("negate", ("a + b",), "-(a + b)"),
        ("lt", ("a < b", "c + 1"), "(a < b) < c + 1"),
        ("mask", ("a + b", "c != 0"), "mask(a + b, c != 0)"),
        ("relu", ("a if b else c",), "relu(a if b else c)"),
    ],
    ids=str,
)
def test_parentheses_stand_only_where_they_are_needed(name, operands, expected):
    assert written(SCALAR_FUNCTIONS[name].text, *operands) == expected


def expressions(names=("a", "b", "c")):
    return st.recursive(
        st.sampled_from(names),
        lambda inner: st.tuples(st.sampled_from(list(SCALAR_FUNCTIONS)), inner, inner),
        max_leaves=8,
    )


@given(expressions())
def test_an_expression_is_read_as_it_was_meant(tree):
    def texts(tree):
        """The expression as it is written, and with all parentheses."""
        if isinstance(tree, str):
            return tree, tree
        row = SCALAR_FUNCTIONS[tree[0]]
        pairs = [texts(part) for part in tree[1 : 1 + row.arity]]
        shortest = written(row.text, *(short for short, _ in pairs))
        return shortest, row.text.format(**dict(zip("xy", (f"({full})" for _, full in pairs), strict=False)))

    shortest, full = texts(tree)
    assert ast.dump(ast.parse(shortest)) == ast.dump(ast.parse(full))
    assert len(shortest) <= len(full)


@rows
def test_python_form_compiled_with_numba_agrees_with_numpy(row):
    assert disagreements(row, numba.njit(error_model="numpy")(row.python)) == []


@rows
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_the_cpu_compiles_agrees_with_numpy(row, dtype):
    """The last digits of the vector forms are the matter of test_vector_functions.py."""
    with np.errstate(all="ignore"):
        operands = np.array([*itertools.product(VALUES, repeat=row.arity)]).T.astype(dtype, "C")
        expected = row.numpy(*operands).astype(dtype)
        forms = [form for name, form in row.vector.items() if name == dtype]
        answers = [np.array([form(*numbers) for numbers in operands.T]) for form in forms]
    template, arguments = (map_aligned, "aa") if row.arity == 1 else (zip_aligned, "aaa")
    answers.append(np.empty_like(operands[0]))
    Kernel(template, arguments, row)[np.dtype(dtype)](*operands, answers[-1])
    info = np.finfo(dtype)
    for answer in answers:
        assert answer.dtype == dtype
        np.testing.assert_allclose(answer, expected, rtol=4 * info.eps, atol=2 * info.smallest_subnormal)


@rows
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpy_form_keeps_the_data_type_and_writes_into_out(row, dtype):
    operands = [np.array([0.5, 2.0, 3.0], dtype), np.array([1.0, 2.0, 4.0], dtype)][: row.arity]
    expected = row.numpy(*operands)
    out = np.empty(3, dtype)
    row.numpy(*operands, out=out)
    np.testing.assert_array_equal(out, expected)
    assert expected.dtype == ("bool" if row.is_comparison else dtype)


def test_the_table_has_a_kernel_for_every_row():
    assert set(MAPS) | set(ZIPS) == set(SCALAR_FUNCTIONS)
    assert not set(MAPS) & set(ZIPS)
    assert set(REDUCES) == set(REDUCTIONS)
    assert set(ZIPS) >= COMPARISONS


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_is_stable(dtype):
    """Right at both ends, to the last digits, and silent: warnings are errors here."""
    sigmoid = SCALAR_FUNCTIONS["sigmoid"]
    x = np.array([-1e3, -80.0, -1.0, 0.0, 1.0, 80.0, 1e3], dtype)
    got = sigmoid.numpy(x)
    expected = [
        0.0,
        math.exp(-80) / (1 + math.exp(-80)),
        1 / (1 + math.e),
        0.5,
        math.e / (1 + math.e),
        1.0,
        1.0,
    ]
    np.testing.assert_allclose(got, np.array(expected, dtype), rtol=1e-6)
    assert [sigmoid.python(float(v)) for v in x] == pytest.approx(expected, rel=1e-6)


def test_zero_has_sign_zero_and_relu_passes_nan():
    assert SCALAR_FUNCTIONS["sign"].python(-0.0) == 0
    assert math.isnan(SCALAR_FUNCTIONS["relu"].python(math.nan))
    assert math.isnan(SCALAR_FUNCTIONS["sign"].python(math.nan))
