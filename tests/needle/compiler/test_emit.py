"""Machine code of generated source computes what Python does, statement by statement."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest

from needle.compiler import runtime
from needle.compiler.emit import Flat

from .plain_source import plain_source

names = map("f{}".format, itertools.count())


def both(body, **arguments):
    """Run the body of a function by Python and as machine code; what both return and leave in the arrays."""
    kinds = [Flat(x.dtype) if isinstance(x, np.ndarray) else numba.typeof(x) for x in arguments.values()]
    name, results = next(names), []
    source = f"def {name}({', '.join(arguments)}):\n" + "".join(f"    {x}\n" for x in body.splitlines())
    compiled = runtime.entry_point(runtime.compile_source(source, name), tuple(kinds))
    for function in (plain_source(source, name), compiled):
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments.values()]
        results.append([int(function(*given) or 0), *[x for x in given if isinstance(x, np.ndarray)]])
    for right, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, right, rtol=3e-7)  # the table's exp and NumPy's differ by that
    return [results[1][0], *[x.tolist() for x in results[1][1:]]]


def numbers(dtype, *values):
    return np.array(values, dtype)


def test_loops_in_loops_and_bounds_that_come_with_the_call():
    body = """
for i in range(start, stop):
    y[i] = float32(0)
    for j in range(3):
        y[i] += x[3 * i + j]
for i in range(start, start):
    y[i] = float32(9)
return 0
"""
    x, y = np.arange(12, dtype="float32"), np.full(4, 7, "float32")
    assert both(body, x=x, y=y, start=1, stop=3) == [0, x.tolist(), [7, 12, 21, 7]]


def test_more_iterations_than_are_unrolled():
    body = "for i in range(100):\n    for j in range(100):\n        y[i] += x[100 * i + j]\nreturn 0"
    both(body, x=np.ones(10_000, "float32"), y=np.zeros(100, "float32"))


@pytest.mark.parametrize("value", [-1, 0, 2.5, 3, 7, np.nan])
def test_a_check_in_the_middle_leaves_the_function(value):
    body = """
for i in range(2):
    if not (0 <= x[i] < 7 and x[i] == int64(x[i])): return 5
    y[i] = x[i]
if y[0] == 0: return 6
"""
    both(body, x=numbers("float32", 1, value), y=numbers("float32", -1, -1))


@pytest.mark.parametrize(
    "body",
    [
        "y[0] = float64(a[0]) + b[0] * float64(2)",
        "y[0] = float64(a[0] / b[0])",
        "y[0] = float64(k[1] - k[0])",
        "y[0] = float64(k[0] == 3)",
        "y[0] = -b[0]",
        "y[0] = float64(float32(0.1))",
        "y[0] = float64(-inf)",
        "k[0] = int64(b[0])",
        "k[0] = k[1]\nk[1] = int64(k[0] * 3)",
        "q[0] = bool(k[0] != 3)\nq[1] = bool(b[0] != 0)",
        "y[0] = float64(q[0])\ny[1] = float64(q[1])",
        "t = b[0] - 1\nt = t * t\ny[1] = t",
    ],
)
def test_types_and_conversions(body):
    both(
        f"{body}\nreturn 0",
        a=numbers("float32", 0.1),
        b=numbers("float64", -0.7),
        k=numbers("int32", 3, -4),
        q=numbers("bool", True, False),
        y=numbers("float64", 0, 0),
    )


def test_parts_of_an_array_and_arrays_of_its_own():
    body = """
own = local_float64(2)
behind = part(x, 2, 2)
for i in range(2):
    own[i] = behind[i] * x[i]
for i in range(2):
    behind[i] = own[1 - i]
return 0
"""
    assert both(body, x=np.arange(1.0, 5.0))[1] == [1, 2, 8, 3]


@pytest.mark.parametrize("name", ["maximum", "minimum", "exp", "relu"])
def test_functions_of_the_table(name):
    given = "x[0], x[i]" if name in ("maximum", "minimum") else "x[i]"
    body = f"for i in range(4):\n    y[i] = {name}({given})\nreturn 0"
    x = numbers("float32", 0, -1, 1, np.inf)
    both(body, x=x, y=np.zeros_like(x))


def test_a_function_that_is_called_several_times():
    source = """
def twice(a, b):
    for i in range(2):
        b[i] = a[i] + a[i]
def whole(x):
    twice(x, part(x, 2, 2))
    twice(part(x, 2, 2), part(x, 4, 2))
    return 0
"""
    x = numbers("float32", 1, 2, 0, 0, 0, 0)
    kernel = runtime.entry_point(runtime.compile_source(source, "whole"), (Flat("float32"),))
    assert kernel(x) == 0
    assert x.tolist() == [1, 2, 2, 4, 4, 8]


def test_a_quotient_is_rounded_once():
    """Nobody multiplies by a reciprocal: whole quotients stay whole, and small divisors make no infinity."""
    body = "for i in range(64):\n    y[i] = x[i] / d[0]\n    z[i] = x[i] / float32(61)\nreturn 0"
    x = np.arange(64, dtype="float32") * 61
    for divisor in (61, 1e-39):
        _, _, _, y, z = both(body, x=x, d=numbers("float32", divisor), y=x, z=x)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(y, x / np.float32(divisor))
        np.testing.assert_array_equal(z, np.arange(64))
