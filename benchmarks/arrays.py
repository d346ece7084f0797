"""Single operations, and long chains of them."""

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
    yield chain(f"{LINKS:,} times x * number", lambda x, factor: x * factor, FACTOR)
    yield chain(f"{LINKS:,} times x * array", lambda x, factor: x * factor, [FACTOR])
    yield chain(f"{LINKS:,} times (x + x) * number", lambda x, factor: (x + x) * factor, FACTOR / 2)


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


def chain(name: str, link: Callable, factor: float | list[float]) -> Case:
    """The derivative of ``link(link(… x, factor), factor)``; NumPy walks the chain twice, without a graph.

    `factor` is a number, or a list for an array that needs no gradient.
    """

    def chained(x, factor):
        for _ in range(LINKS):
            x = link(x, factor)
        return x

    def with_numpy():
        ones, number = np.ones(1, "float32"), np.asarray(factor, "float32")
        chained(ones, number)
        return chained(ones, number)

    def with_needle():
        x = ndl.Tensor([1.0])
        constant = ndl.Tensor(factor, requires_grad=False) if isinstance(factor, list) else factor
        chained(x, constant).backward(create_graph=False)
        return x.grad

    def with_torch():
        x = torch.ones(1, requires_grad=True)
        chained(x, torch.tensor(factor) if isinstance(factor, list) else factor).backward()
        return x.grad

    contenders = {"needle": with_needle, "NumPy": with_numpy} | ({"torch": with_torch} if torch else {})
    return Case(f"{name}, forward and backward", contenders)
