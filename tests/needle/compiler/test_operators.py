"""Every operator under `jit`: forward, gradients and gradients of these equal the eager ones.

The cases are those of ``ops/test_operators.py``, which has some for each operator. The generated source runs
as plain Python, as plain Python that checks what it reads; Numba compiles one case of each operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor
from needle.graph import Op
from needle.ops import families

from ..ops.test_operators import CASES, Case, for_each_operator, naming, numbers, strided, subclasses
from .conftest import assert_close, assert_equals_eager, jit


class OperandLayout(NamedTuple):
    """A way in which an operand lies in storage.

    Attributes
    ----------
    name : str
    given : callable
        From the numbers, and `tensor`, which makes a Tensor of them, to the argument of the function.
    used : callable
        From the argument to the operand, by operators: this is compiled too.
    """

    name: str
    given: Callable[[np.ndarray, Callable], Tensor]
    used: Callable[[Any], Any]


def reversed_axes(x):
    return tuple(reversed(range(x.ndim)))


def apart(x):
    """The numbers at every second place of a larger array, along each axis."""
    larger = np.full([2 * n + 1 for n in x.shape], 9.0)
    larger[tuple(slice(1, None, 2) for _ in x.shape)] = x
    return larger


def every_second(t):
    return t[tuple(slice(1, None, 2) for _ in range(t.ndim))]


def view_every_second(t):
    """A Tensor whose array is a view with gaps."""
    view = t.realize_cached_data()[tuple(slice(1, None, 2) for _ in range(t.ndim))]
    return Tensor.make_const(view, requires_grad=True)


LAYOUTS = [
    OperandLayout("compact", lambda x, tensor: tensor(x), lambda t: t),
    OperandLayout("given transposed", lambda x, tensor: strided(tensor(x)), lambda t: t),
    OperandLayout("transposed", lambda x, tensor: tensor(x.T), lambda t: ndl.permute(t, reversed_axes(t))),
    OperandLayout("sliced", lambda x, tensor: tensor(apart(x)), lambda t: every_second(t) if t.ndim else t),
    OperandLayout("flipped", lambda x, tensor: tensor(np.flip(x)), lambda t: ndl.flip(t) if t.ndim else t),
    OperandLayout("in a larger one", lambda x, tensor: tensor(x[None]), lambda t: t[0]),
    OperandLayout(
        "given with gaps",
        lambda x, tensor: view_every_second(tensor(apart(x))) if x.ndim else tensor(x),
        lambda t: t,
    ),
]


def weights_for(out: Tensor) -> Tensor:
    """Constants that differ, so that no two adjoints are equal by chance."""
    return Tensor(
        np.linspace(1, 2, out.size).reshape(out.shape),
        device=out.device,
        dtype=out.dtype,
        requires_grad=False,
    )


def derivatives_of(case: Case, layout: OperandLayout, orders: int = 2) -> Callable:
    """A function of the operands: the result of a case, its gradients, and gradients of these."""

    def derivatives(*args: Tensor) -> list[Tensor]:
        out = case.f(*map(layout.used, args))
        found = [out]
        if out.requires_grad and orders > 0:
            first = ndl.gradients((out * weights_for(out)).sum(), args)
            found += first
            squares = sum((g * g).sum() for g in first)
            if squares.requires_grad and orders > 1:
                found += ndl.gradients(squares, args)
        return found

    return derivatives


def arguments(case: Case, layout: OperandLayout, dtype: str, device: Any, seed: int = 0) -> list[Tensor]:
    def tensor(x: np.ndarray) -> Tensor:
        return Tensor(x, device=device, dtype=dtype)

    return [layout.given(x, tensor) for x in numbers(case, seed)]


def test_no_operator_is_forgotten():
    library = {op for op in subclasses(Op) if op.__module__.startswith("needle.ops.")}
    bases = {op for op in library if op.__module__ == families.__name__}
    bases |= {ndl.ops.ops_logarithmic.Normalization, ndl.ops.ops_indexing.ByIndex}
    assert library - bases == {case.op for case in CASES}


#: A gradient of a gradient adds up many terms, some of which nearly cancel.
LOOSER = {"float32": 2e-5, "float64": 1e-11}


def check(case: Case, layout: OperandLayout, dtype: str) -> None:
    with naming(case):
        f = derivatives_of(case, layout)
        assert_equals_eager(
            f, *arguments(case, layout, dtype, ndl.cpu_numpy()), tolerance=LOOSER[dtype], plain=True
        )


@for_each_operator(CASES)
def test_compiled_is_eager(cases):
    """Each case in one layout and one dtype, which change from case to case."""
    for i, case in enumerate(cases):
        check(case, LAYOUTS[i % len(LAYOUTS)], "float64" if i % 3 else "float32")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@for_each_operator(CASES)
def test_compiled_is_eager_in_every_layout(cases, layout, dtype):
    for case in cases:
        check(case, layout, dtype)


def one_of_each() -> list[Case]:
    """A case of each operator that is small, but not empty, and compiled as a whole."""
    found: dict[type[Op], Case] = {}
    for case in CASES:
        if case.op is not ndl.ops.ToDevice and all(math.prod(shape) > 1 for shape in case.shapes):
            found.setdefault(case.op, case)
    return list(found.values())


def test_one_of_each_is_of_each():
    assert {case.op for case in CASES} - {case.op for case in one_of_each()} == {ndl.ops.ToDevice}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_compiled_by_numba_is_eager(part):
    """Many operators in one function, since it takes long to compile one."""
    cases = one_of_each()[part::4]
    functions = [derivatives_of(case, LAYOUTS[0], orders=1) for case in cases]
    args = [arguments(case, LAYOUTS[0], "float32", ndl.cpu()) for case in cases]

    def all_of_them(args: list[list[Tensor]]) -> list[list[Tensor]]:
        return [f(*some) for f, some in zip(functions, args, strict=True)]

    assert_equals_eager(all_of_them, args, tolerance=LOOSER["float32"], plain=False)


def of_several_types(x: Tensor, y: Tensor, i: Tensor) -> list[Tensor]:
    return [
        f(t) for t in (x, y, i) for f in (ndl.abs, ndl.sign, ndl.max, ndl.min, lambda t: ndl.clip(t, -1, 2))
    ]


@pytest.mark.parametrize("plain", [True, False])
def test_a_function_of_the_table_for_several_types(plain):
    """Each type has a version of its own: that for integers would cut off what is behind the point."""
    numbers = np.linspace(-2.7, 3.3, 6)
    ours, theirs = [
        [
            Tensor(numbers, device=device, dtype=t, requires_grad=False)
            for t in ("float32", "float64", "int64")
        ]
        for device in (ndl.cpu(), ndl.cpu_numpy())  # the latter needs no kernels that would be compiled, too
    ]
    compiled = jit(of_several_types, plain=plain)(*ours)
    for a, b in zip(compiled, of_several_types(*theirs), strict=True):
        assert a.dtype == b.dtype
        assert_close(a.numpy(), b.numpy())
