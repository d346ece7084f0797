"""Random graphs: under `jit` they compute what they do without it.

Hypothesis draws a program, a list of short instructions, and shrinks it where it fails. A program works on a
growing list of Tensors. Its first are arguments or parameters; an instruction adds one, computed from earlier
ones, or writes to a parameter. A function runs it, takes gradients, and returns what it is told to return.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

import needle as ndl
from needle.autograd import Tensor
from needle.compiler import lower

from .conftest import assert_same, jit


class Program(NamedTuple):
    """A random program.

    Attributes
    ----------
    shapes : tuple of tuple of int
        Of the Tensors at the beginning.
    closed_over : tuple of bool
        Whether each of these is a parameter that the function closes over, and not an argument.
    dtype : str
    instructions : tuple of (str, int, int, int)
        A name, which two Tensors it is about (counted from the last one), and a number that means something
        to some of them.
    returned : tuple of int
        Which Tensors are returned, counted from the last one.
    step : bool
        Whether gradients are taken, and written to the parameters as a step of an optimiser would.
    """

    shapes: tuple
    closed_over: tuple
    dtype: str
    instructions: tuple
    returned: tuple
    step: bool


def bounded(t: Tensor) -> Tensor:
    """Numbers that stay small, however long the program is."""
    return ndl.tanh(t)


def broadcastable(a: Tensor, b: Tensor) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a.shape[::-1], b.shape[::-1], strict=False))


def matched(a: Tensor, b: Tensor) -> Tensor:
    """`b`, or a number made of it where its shape does not go with that of `a`."""
    return b if broadcastable(a, b) else b.sum() * 0.1


def product(a: Tensor, b: Tensor) -> Tensor:
    """A matrix product of the two, their shapes changed until they fit."""
    a = a.reshape((1, -1)) if a.ndim < 2 else a
    b = b.reshape((-1, 1)) if b.ndim < 2 else b
    if a.shape[-1] == b.shape[-2] and (a.ndim == 2 or b.ndim == 2):
        return bounded(a @ b)
    if a.shape[-1] == b.shape[-1] and b.ndim == 2:
        return bounded(a @ b.transpose())
    return bounded(a.transpose() @ a)


def product_with_constants(a: Tensor, n: int) -> Tensor:
    """The same number everywhere, or different ones."""
    a = a.reshape((1, -1)) if a.ndim < 2 else a
    size = (a.shape[-1], n + 1)
    numbers = np.ones(size) if n % 2 else np.linspace(-1, 1, size[0] * size[1]).reshape(size)
    return bounded(a @ Tensor(numbers, device=a.device, dtype=a.dtype, requires_grad=False))


def middle(a: Tensor, n: int) -> Tensor:
    """A slice along the last axis: a part, every second one, or backwards."""
    if not a.ndim:
        return a * 2
    some = (slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(0, 1), slice(-2, None))[n % 5]
    return a[..., some] if n % 2 else a[some]


def folded(a: Tensor, n: int) -> Tensor:
    """Two axes of a reshape: the first one, and what is left."""
    return a.reshape((a.shape[0], -1)) if a.ndim > 1 and a.size and n % 2 else a.reshape((-1,))


def summed(a: Tensor, n: int) -> Tensor:
    axes = None if not a.ndim or n % 4 == 3 else n % a.ndim
    function = (ndl.summation, ndl.mean, ndl.logsumexp)[n % 3]
    if function is ndl.mean and not a.size:
        function = ndl.summation
    return bounded(function(a, axes, keepdims=n % 5 == 1))


def largest(a: Tensor, n: int) -> Tensor:
    if not a.size:
        return a.sum()
    return (ndl.max, ndl.min)[n % 2](a, n % a.ndim if a.ndim and n % 3 else None)


def normal(a: Tensor, n: int) -> Tensor:
    if not a.ndim or not a.size:
        return a * 0.5
    if n % 3 == 0:
        return bounded(ndl.standardize(a, n % a.ndim, 0.1)[0])
    return (ndl.softmax, ndl.logsoftmax)[n % 2](a, n % a.ndim) * 0.3


def joined(a: Tensor, b: Tensor, n: int) -> Tensor:
    if a.shape == b.shape and n % 2:
        return ndl.stack([a, b], n % (a.ndim + 1))
    if a.ndim and a.ndim == b.ndim and a.shape[1:] == b.shape[1:]:
        return ndl.concatenate([a, b])
    return ndl.concatenate([a, a]) if a.ndim else ndl.stack([a, a])


def taken(a: Tensor, n: int) -> Tensor:
    if not a.ndim or not a.shape[0]:
        return a + 1
    return a[[n % a.shape[0], 0, n % a.shape[0]]]


def spread(a: Tensor, n: int) -> Tensor:
    return a.broadcast_to((2, *a.shape)) if a.size <= 60 else a


INSTRUCTIONS: dict[str, Any] = {
    "add": lambda a, b, n: a + matched(a, b),
    "subtract": lambda a, b, n: matched(a, b) - a,
    "multiply": lambda a, b, n: a * matched(a, b),
    "divide": lambda a, b, n: a / (matched(a, b) * matched(a, b) + 1),
    "scale": lambda a, b, n: a * (0.25 * (n - 3)) + 0.5,
    "power": lambda a, b, n: (a * a + 0.5) ** (0.5 * (n - 2)) * 0.2,
    "unary": lambda a, b, n: (ndl.relu, ndl.tanh, ndl.sigmoid, ndl.sin, ndl.erf, ndl.abs, ndl.gelu)[n % 7](a),
    "exp": lambda a, b, n: ndl.exp(bounded(a)) if n % 2 else ndl.log(a * a + 1),
    "where": lambda a, b, n: ndl.where(a > 0.1, a, matched(a, b)),
    "clip": lambda a, b, n: ndl.clip(a, -0.4, 0.6) if n % 2 else ndl.maximum(a, matched(a, b)),
    "sum": lambda a, b, n: summed(a, n),
    "largest": lambda a, b, n: largest(a, n),
    "normal": lambda a, b, n: normal(a, n),
    "transpose": lambda a, b, n: a.transpose() if a.ndim > 1 else a,
    "permute": lambda a, b, n: ndl.permute(a, tuple((i + n) % a.ndim for i in range(a.ndim))),
    "reshape": lambda a, b, n: folded(a, n),
    "slice": lambda a, b, n: middle(a, n),
    "take": lambda a, b, n: taken(a, n),
    "join": lambda a, b, n: joined(a, b, n),
    "spread": lambda a, b, n: spread(a, n),
    "product": lambda a, b, n: product(a, b),
    "constants": lambda a, b, n: product_with_constants(a, n),
    "plain product": lambda a, b, n: a @ b if a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] else a * 1.5,
    "detach": lambda a, b, n: a.detach(),
    "cast": lambda a, b, n: a.astype("float32").astype(a.dtype) if n % 2 else (a > 0).astype(a.dtype),
    "other types": lambda a, b, n: of_other_types(a, n),
}


def of_other_types(a: Tensor, n: int) -> Tensor:
    """What is computed from integers, or in the other precision."""
    if n % 2 and a.size:
        whole = (a * 8).astype("int64")
        return (ndl.max(whole, 0 if a.ndim else None) + ndl.abs(whole).sum()).astype(a.dtype) * 0.01
    other = a.astype("float64" if a.dtype == "float32" else "float32")
    return (ndl.tanh(other) + ndl.relu(other)).astype(a.dtype)


def run(program: Program, values: list[Tensor], parameters: list[Tensor]) -> list[Any]:
    """What the function does: the instructions, then gradients and writes."""
    values = list(values)
    for name, i, j, n in program.instructions:
        a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
        if name == "write":
            if parameters:
                p = parameters[i % len(parameters)]
                p.data = (
                    p.data * 0.5 + matched(p, b).detach().broadcast_to(p.shape) * 0.1
                    if (
                        broadcastable(p, b)
                        and all(m >= k for m, k in zip(p.shape[::-1], b.shape[::-1], strict=False))
                        and p.ndim >= b.ndim
                    )
                    else p.data * 0.75
                )
                values.append(p * 1.5)
            continue
        if name == "swap":
            if len(parameters) > 1 and parameters[0].shape == parameters[1].shape:
                parameters[0].data, parameters[1].data = parameters[1].data, parameters[0].data
            continue
        made = INSTRUCTIONS[name](a, b, n)
        values.append(made if made.size <= 200 else bounded(made.sum()))
    found: list[Any] = [values[-1 - i % len(values)] for i in program.returned]
    if program.step:
        loss = sum((v * v).sum() for v in values[-2:])
        leaves = [v for v in values[: len(program.shapes)] if v.requires_grad]
        if loss.requires_grad and leaves:
            grads = ndl.gradients(loss, leaves)
            for p, g in zip(leaves, grads, strict=True):
                if any(p is x for x in parameters):
                    plain = len(program.instructions) % 2
                    p.data = p.data - 0.1 * (g if plain else ndl.clip(g, -1, 1)).detach()
                else:
                    found.append(g)
    return found


def make(program: Program, device: Any) -> tuple[list[Tensor], list[Tensor]]:
    """The Tensors that a program begins with, and those of them that are parameters."""
    rng = np.random.default_rng(len(program.instructions))
    tensors = [
        Tensor(rng.uniform(-1, 1, shape).round(3), device=device, dtype=program.dtype)
        for shape in program.shapes
    ]
    return tensors, [t for t, inner in zip(tensors, program.closed_over, strict=True) if inner]


def check(program: Program, device: Any, plain: bool = True) -> None:
    """Three calls without `jit` and three with it: the same results, and the same parameters after each."""

    def prepared(compiled: bool) -> tuple[Any, list[Tensor], list[Tensor]]:
        tensors, parameters = make(program, device)
        arguments = [t for t, inner in zip(tensors, program.closed_over, strict=True) if not inner]

        def function(*given: Tensor) -> list[Any]:
            rest = iter(given)
            closed = iter(parameters)
            values = [next(closed) if inner else next(rest) for inner in program.closed_over]
            return run(program, values, parameters)

        return (jit(function, plain=plain) if compiled else function), arguments, parameters

    eager, their_arguments, their_parameters = prepared(False)
    compiled, our_arguments, our_parameters = prepared(True)
    # A program may be ill-conditioned: a maximum of two nearly equal numbers, differences of large ones.
    # Casts to float32 happen in either dtype.
    tolerance = 5e-4 if program.dtype == "float32" else 1e-6
    try:
        for _ in range(3):
            assert_same(compiled(*our_arguments), eager(*their_arguments), tolerance, least=1)
            assert_same(our_parameters, their_parameters, tolerance, least=1)
    except Exception:
        note(compiled.source)
        raise


some_length = st.sampled_from([1, 2, 3, 4, 5, 7])
some_shapes = st.lists(
    st.one_of(
        st.tuples(),
        st.tuples(some_length),
        st.tuples(some_length, some_length),
        st.tuples(*[some_length] * 3),
    ),
    min_size=1,
    max_size=4,
)
some_place = st.integers(0, 5)
some_instruction = st.tuples(
    st.sampled_from([*INSTRUCTIONS, "product", "plain product", "write", "write", "swap"]),
    some_place,
    some_place,
    st.integers(0, 6),
)


@st.composite
def programs(draw: Any) -> Program:
    count = draw(st.sampled_from([3, 9, 6, 12, 15, 1]))  # lists that Hypothesis draws are mostly short
    sizes = draw(some_shapes)
    if draw(st.booleans()):  # matrices that go together
        n = draw(some_length)
        sizes = [(draw(some_length), n), (n, draw(some_length)), *sizes[2:]]
    if draw(st.booleans()):
        sizes = [sizes[0], *sizes][:4]
    return Program(
        tuple(sizes),
        tuple(draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))),
        draw(st.sampled_from(["float32", "float64"])),
        tuple(draw(st.lists(some_instruction, min_size=count, max_size=count))),
        tuple(draw(st.lists(some_place, min_size=1, max_size=3))),
        draw(st.booleans()),
    )


@pytest.fixture
def small(monkeypatch):
    """Products with more than 24 multiplications go to BLAS: both kinds occur in small programs."""
    monkeypatch.setattr(lower, "SMALL", 24)
    monkeypatch.setattr(lower, "RUN", 16)


quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=60, suppress_health_check=quiet)
@given(program=programs())
def test_compiled_is_eager(small, program):
    check(program, ndl.cpu_numpy())


@pytest.mark.slow
@settings(max_examples=1000, suppress_health_check=quiet)
@given(program=programs())
def test_compiled_is_eager_1000_times(small, program):
    check(program, ndl.cpu_numpy())


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=quiet)
@given(program=programs())
def test_compiled_by_numba_is_eager(small, program):
    check(program, ndl.cpu(), plain=False)
