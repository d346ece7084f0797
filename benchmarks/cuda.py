"""What a card's kernels reach of what the card can do: its bandwidth, measured by a copy, and cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter

import needle as ndl
from needle.backend_ndarray import NDArray

from .timing import Case, torch

RIVALS = ("a copy", "cuBLAS")  # the columns beside needle's
NUMBERS = 1 << 26
SIDE = 4096
LAUNCHES = 20


def why_not() -> str:
    """Say why there is nothing to measure; nothing if there is."""
    reason = ndl.cuda().why() or ("Numba's simulator is no card." if ndl.cuda().SIMULATED else "")
    return reason and f"no GPU: {reason}"


def cases() -> Iterator[Case]:
    """Yield the lines of this group; an operation is set beside a copy of the bytes it reads and writes."""
    a, b, out = (ndl.cuda().rand(NUMBERS) for _ in range(3))
    rows = a.reshape(NUMBERS // 8192, 8192)

    def copy() -> None:
        out._handle.buffer.copy_to_device(a._handle.buffer)

    def against_copy(name: str, run: Callable, arrays: float) -> Case:
        # A copy reads an array and writes one.
        rival = partial(seconds, copy, arrays / 2)
        return Case(name, {"needle": partial(seconds, run), "a copy": rival}, stopwatch=True)

    yield against_copy(f"a + b, {NUMBERS:,} numbers", lambda: a + b, 3)
    yield against_copy(f"exp(a), {NUMBERS:,} numbers", a.exp, 2)
    yield against_copy(f"a.sum(), {NUMBERS:,} numbers", a.sum, 1)
    yield against_copy("a.sum(1), rows of 8,192", lambda: rows.sum(1), 1)
    yield against_copy("a.sum(0), columns of 8,192", lambda: rows.sum(0), 1)
    yield against_copy("a.transpose() copied", lambda: rows.permute((1, 0)).compact(), 2)
    yield product()


def product() -> Case:
    """A float32 product of large matrices, with PyTorch's or CuPy's call of cuBLAS as its rival."""
    a = ndl.cuda().rand(SIDE, SIDE)
    contenders = {"needle": partial(seconds, lambda: a @ a)}
    if multiply := cublas(a):
        contenders["cuBLAS"] = partial(seconds, multiply)
    return Case(f"a @ a, {SIDE} x {SIDE}", contenders, stopwatch=True)


def cublas(a: NDArray) -> Callable | None:
    """``a @ a`` by cuBLAS; None where nothing that is installed calls it."""
    if torch and torch.cuda.is_available():
        theirs = torch.tensor(a.numpy(), device="cuda")
    else:
        try:
            import cupy
        except ImportError:
            return None
        theirs = cupy.asarray(a.numpy())
    return lambda: theirs @ theirs


def seconds(run: Callable, scale: float = 1.0) -> float:
    """The seconds that one of many launches takes, times `scale`; the card is waited for at both ends."""
    from numba import cuda

    run()
    cuda.synchronize()
    start = perf_counter()
    for _ in range(LAUNCHES):
        run()
    cuda.synchronize()
    return (perf_counter() - start) / LAUNCHES * scale
