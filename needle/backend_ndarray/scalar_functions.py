"""The one table of scalar functions from which every backend makes its elementwise and reduction kernels.

A row gives one function twice. In plain Python, on numbers: this is its definition, and what a compiler such
as Numba turns into machine code. In NumPy, on whole arrays. Both give the same values, also for infinities
and NaN, with one exception: where IEEE arithmetic answers with an infinity or NaN (``1 / 0``, ``log(-1)``,
``exp(1000)``), plain Python raises an error, and for ``(-8) ** 0.5`` it gives a complex number. Compiled code
follows IEEE, as NumPy does.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .vector_functions import ERF_BOUND, ERF_FAR, ERF_NEAR, ERF_ONE, VECTOR_FORMS, polynomial


class ScalarFunction:
    """One row of the table.

    Attributes
    ----------
    name : str
        What operations, kernels and error messages call the function.
    python : callable
        The definition, from numbers to a number, written with operators and ``math`` alone.
    numpy : callable
        The same from arrays to an array, with broadcasting and the keyword ``out``, as NumPy's ufuncs.
    vector : mapping, optional
        The definition once more, without branches, where a compiler needs that to use vector instructions:
        for the name of a data type, a function of NumPy's scalars of that type.
    text : str
        How it is written as an expression of Python, with ``{x}`` and ``{y}`` for the operands: with an
        operator where there is one, ``{x} + {y}``, else as a call of its name, ``exp({x})``. `written` puts
        operands in.
    """

    def __init__(
        self,
        name: str,
        python: Callable,
        numpy: Any,
        vector: Mapping[str, Callable] | None = None,
        text: str = "",
    ):
        self.name = name
        self.python = python
        self.numpy = numpy
        self.vector = vector or {}
        self.text = text or f"{name}({', '.join(['{x}', '{y}'][: self.arity])})"

    def __repr__(self) -> str:
        return f"ScalarFunction({self.name!r})"

    @property
    def arity(self) -> int:
        """How many operands the function takes."""
        return self.python.__code__.co_argcount

    @property
    def operator(self) -> str:
        """The operator that `text` is written with; empty if it is a call."""
        return "" if "(" in self.text else self.text.format(x="", y="").strip()

    @property
    def is_comparison(self) -> bool:
        """Whether the function answers a question with 0 or 1."""
        return self.name in COMPARISONS


def _copied(function: Callable) -> Callable:
    """A function of two arrays with the keyword `out`, into which its result is copied."""

    def form(x, y, out=None):
        result = function(x, y)
        if out is None:
            return result
        out[...] = result
        return out

    return form


def _relu(x, out=None):
    return np.maximum(x, 0, out=out)


def _mask(x, y):
    return np.where(np.not_equal(y, 0), x, np.zeros_like(x))


def _leaky_relu(x, y):
    return np.where(np.less(x, 0), np.multiply(x, y), x)


def _erf(x, out=None):
    """NumPy has no erf: computed as in the vector form."""
    x = np.multiply(x, 1.0)  # integers become floats, and zeros keep their sign
    a = np.minimum(np.abs(x), ERF_ONE)
    square = a * a
    near, far = (
        polynomial(t, top) / polynomial(t, bottom) for t, (top, bottom) in ((square, ERF_NEAR), (a, ERF_FAR))
    )
    far = np.copysign(1 - np.exp(-square) * far, x)
    return np.positive(np.where(a < ERF_BOUND, x * near, far), out=out)


def _sigmoid(x, out=None):
    # exp sees min(x, 0) and -|x| (of integers too), so it cannot overflow.
    return np.divide(np.exp(np.minimum(x, 0)), 1 + np.exp(np.copysign(x, -1)), out=out)


COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})

SCALAR_FUNCTIONS: dict[str, ScalarFunction] = {
    row.name: row
    for row in (
        ScalarFunction("add", lambda x, y: x + y, np.add, text="{x} + {y}"),
        ScalarFunction("subtract", lambda x, y: x - y, np.subtract, text="{x} - {y}"),
        ScalarFunction("multiply", lambda x, y: x * y, np.multiply, text="{x} * {y}"),
        ScalarFunction("divide", lambda x, y: x / y, np.divide, text="{x} / {y}"),
        # The operator has short cuts for the exponents 2, 1/2 and -1 that np.power lacks.
        ScalarFunction(
            "power", lambda x, y: x**y, _copied(operator.pow), VECTOR_FORMS["power"], "{x} ** {y}"
        ),
        # The test `x != x` is true of NaN alone, and NaN wins.
        ScalarFunction("maximum", lambda x, y: x if x > y or x != x else y, np.maximum),
        ScalarFunction("minimum", lambda x, y: x if x < y or x != x else y, np.minimum),
        # Not x * (y != 0), for 0 times an infinity is not a number.
        ScalarFunction("mask", lambda x, y: x if y != 0 else 0, _copied(_mask)),
        ScalarFunction("leaky_relu", lambda x, y: x * y if x < 0 else x, _copied(_leaky_relu)),
        # NumPy compares to booleans, and is slow where it must write them into floats itself.
        ScalarFunction("eq", lambda x, y: x == y, _copied(np.equal), text="{x} == {y}"),
        ScalarFunction("ne", lambda x, y: x != y, _copied(np.not_equal), text="{x} != {y}"),
        ScalarFunction("lt", lambda x, y: x < y, _copied(np.less), text="{x} < {y}"),
        ScalarFunction("le", lambda x, y: x <= y, _copied(np.less_equal), text="{x} <= {y}"),
        ScalarFunction("gt", lambda x, y: x > y, _copied(np.greater), text="{x} > {y}"),
        ScalarFunction("ge", lambda x, y: x >= y, _copied(np.greater_equal), text="{x} >= {y}"),
        ScalarFunction("negate", lambda x: -x, np.negative, text="-{x}"),
        ScalarFunction("abs", lambda x: abs(x), np.abs),
        ScalarFunction("sign", lambda x: x if x != x else (x > 0) - (x < 0), np.sign),
        ScalarFunction("relu", lambda x: 0 if x < 0 else x, _relu),
        ScalarFunction("exp", lambda x: math.exp(x), np.exp, VECTOR_FORMS["exp"]),
        ScalarFunction("log", lambda x: math.log(x), np.log, VECTOR_FORMS["log"]),
        ScalarFunction("sqrt", lambda x: math.sqrt(x), np.sqrt),
        ScalarFunction("sin", lambda x: math.sin(x), np.sin),
        ScalarFunction("cos", lambda x: math.cos(x), np.cos),
        ScalarFunction("tanh", lambda x: math.tanh(x), np.tanh, VECTOR_FORMS["tanh"]),
        ScalarFunction("erf", lambda x: math.erf(x), _erf, VECTOR_FORMS["erf"]),
        ScalarFunction(
            "sigmoid",
            lambda x: 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x)),
            _sigmoid,
            VECTOR_FORMS["sigmoid"],
        ),
    )
}


def written(text: str, *operands: str) -> str:
    """The text of a scalar function with expressions in place of ``{x}`` and ``{y}``.

    An expression gets parentheses only where Python would read the whole in another way without them:
    ``written("{x} * {y}", "a + 1", "b * c")`` is ``(a + 1) * (b * c)``. The second pair stays, because
    floating-point numbers are multiplied in the order in which they stand.
    """
    bare = dict(zip("xy", operands, strict=False))
    chosen = {name: f"({operand})" for name, operand in bare.items()}
    meaning = _read(text.format(**chosen))
    for name, operand in bare.items():
        if _read(text.format(**chosen | {name: operand})) == meaning:
            chosen[name] = operand
    return text.format(**chosen)


def _read(expression: str) -> str:
    """What Python reads in an expression: its syntax tree."""
    return ast.dump(ast.parse(expression, mode="eval"))


#: What a reduction can fold with, associative and commutative functions, and the name of the reduction.
REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


def kernel_names(maps: dict, zips: dict, reductions: dict) -> dict[str, Callable]:
    """The names under which a backend module offers its kernels, as in the CMU 10-414/714 course.

    Parameters
    ----------
    maps, zips, reductions : dict
        Kernels by the name of their row.

    Returns
    -------
    dict
        ``ewise_exp``, ``ewise_add``, ``scalar_add``, ``scalar_mul``, ``reduce_sum`` and so on.
    """
    short = {"multiply": "mul", "divide": "div"}
    names = {f"ewise_{short.get(name, name)}": kernel for name, kernel in (maps | zips).items()}
    names |= {f"scalar_{short.get(name, name)}": kernel for name, kernel in zips.items()}
    names |= {f"reduce_{REDUCTIONS[name]}": kernel for name, kernel in reductions.items()}
    return names
