"""Single operations, and a long chain of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import needle as ndl

from .timing import Case, torch

LINKS = 10_000
FACTOR = 1.0001


def cases() -> Iterator[Case]:
    """Yield the lines of this group."""
    for n in (1_000, 1_000_000):
        yield operation(f"a + b, {n:,} numbers", lambda library, a, b: a + b, (n,), (n,))
        yield operation(f"exp(a), {n:,} numbers", lambda library, a: library.exp(a), (n,))
    n = 1_000_000
    yield operation(f"tanh(a), {n:,} numbers", lambda library, a: library.tanh(a), (n,))
    m = 2048
    yield operation(f"a + row, {m} x {m}", lambda library, a, b: a + b, (m, m), (m,))
    yield operation(f"copy of a transposed, {m} x {m}", transposed_copy, (m, m))
    for axis in (0, 1):
        name = f"sum over axis {axis}, {m} x {m}"
        yield operation(name, lambda library, a, axis=axis: a.sum(axis), (m, m))
    for n in (64, 512):
        yield operation(f"a @ b, {n} x {n}", lambda library, a, b: a @ b, (n, n), (n, n))
    yield operation(
        "a + 1, one number, keeping the graph", lambda library, a: a + 1, (1,), requires_grad=True
    )
    yield chain()


def transposed_copy(library, a):
    """Return the rows of `a` as columns, side by side in memory."""
    if library is ndl:
        return a.realize_cached_data().permute((1, 0)).compact()
    return a.T.copy() if library is np else a.T.contiguous()


def operation(name: str, run: Callable, *shapes: tuple[int, ...], requires_grad: bool = False) -> Case:
    """``run(library, *arrays)`` with the same float32 arrays in each library."""
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape, dtype="float32") for shape in shapes]
    tensors = [ndl.Tensor(a, requires_grad=requires_grad) for a in arrays]
    contenders = {"needle": lambda: run(ndl, *tensors), "NumPy": lambda: run(np, *arrays)}
    if torch:
        others = [torch.tensor(a, requires_grad=requires_grad) for a in arrays]
        contenders["torch"] = lambda: run(torch, *others)
    return Case(name, contenders)


def chain() -> Case:
    """The derivative of a product of many factors; NumPy multiplies forth and back without a graph."""

    def with_numpy():
        value = gradient = np.ones(1, "float32")
        for _ in range(LINKS):
            value = value * FACTOR
        for _ in range(LINKS):
            gradient = gradient * FACTOR
        return gradient

    def product(x):
        for _ in range(LINKS):
            x = x * FACTOR
        return x

    def with_needle():
        x = ndl.Tensor([1.0])
        product(x).backward(create_graph=False)
        return x.grad

    def with_torch():
        x = torch.ones(1, requires_grad=True)
        product(x).backward()
        return x.grad

    contenders = {"needle": with_needle, "NumPy": with_numpy} | ({"torch": with_torch} if torch else {})
    return Case(f"chain of {LINKS:,} products, forward and backward", contenders)
