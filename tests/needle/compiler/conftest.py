"""What the compiler's tests share: how a compiled function is compared with the function as it is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import needle.compiler
from needle.autograd import Tensor
from needle.compiler import Compiled, background, runtime
from needle.compiler.host import AGAIN
from needle.compiler.program import Program

from ...training import Training
from .plain_source import make_plain


def jit(f: Any, plain: bool = True, **options: Any) -> Any:
    """`ndl.jit`, whose programs run their source as plain Python: most tests do."""
    compiled = needle.compiler.jit(f, **options)
    if isinstance(compiled, Compiled) and plain:
        compiled._program = functools.partial(_plain_program, compiled)  # type: ignore[method-assign]
    return compiled


def _plain_program(compiled: Compiled, args: tuple, kwargs: dict[str, Any]) -> Program | None:
    program = Compiled._program(compiled, args, kwargs)
    if program is not None and not (program.is_ready_at_once or program.kernels):
        make_plain(program)
    return program


#: How far apart two results may be, as a share of the largest number in them: a few roundings. A compiled sum
#: adds up in another order, and a product may go by another routine.
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


@pytest.fixture(autouse=True)
def _no_program_that_fits_refuses(monkeypatch):
    """What asks whether a program fits, and the call of it, agree; else the function would run as it is."""
    run = Program.run

    def running(self, args, kwargs):
        leaves = self.taken(args, kwargs)
        fits = leaves is not None and self.fits(leaves)
        result = run(self, args, kwargs)
        assert not fits or result is not AGAIN
        return result

    monkeypatch.setattr(Program, "run", running)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """Where this test's programs are kept. Nothing is loaded yet, and no other process compiles."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(runtime, "_loaded", {})
    pools: dict = {}
    monkeypatch.setattr(background, "_pools", pools)
    yield tmp_path
    for pool in pools.values():
        pool.shutdown()


def in_threads(*work: Callable) -> None:
    """Run functions, each in a thread of its own, and wait for all of them."""
    pool = ThreadPoolExecutor(len(work))
    for begun in [pool.submit(f) for f in work]:
        begun.result(60)


def count_of(compiled: Any) -> int:
    """How many programs there are: how often the function was traced."""
    return len(compiled._programs)


def tensor(*shape: int, seed: int = 0, dtype: str = "float32", **kwargs: Any) -> Tensor:
    """Random numbers, the same for the same `seed`."""
    numbers = np.random.default_rng(seed).normal(size=shape)
    return Tensor(numbers, dtype=dtype, **kwargs)


def numbers_in(value: Any, path: str = "result") -> Iterator[tuple[str, Any]]:
    """All Tensors, arrays and numbers in nested containers, each with the path to it."""
    if isinstance(value, (list, tuple)):
        for i, x in enumerate(value):
            yield from numbers_in(x, f"{path}[{i}]")
    elif isinstance(value, dict):
        for key, x in value.items():
            yield from numbers_in(x, f"{path}[{key!r}]")
    else:
        yield path, value


def assert_same(compiled: Any, eager: Any, tolerance: float | None = None, least: float = 0) -> None:
    """The same structure, and in it Tensors of the same shape, dtype and device, with the same numbers."""
    ours, theirs = list(numbers_in(compiled)), list(numbers_in(eager))
    assert [path for path, _ in ours] == [path for path, _ in theirs]
    for (path, a), (_, b) in zip(ours, theirs, strict=True):
        assert type(a) is type(b), path
        if not isinstance(b, Tensor):
            assert a == b, path
            continue
        assert (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device), path
        assert_close(a.numpy(), b.numpy(), tolerance, path, least)


def assert_close(
    a: np.ndarray, b: np.ndarray, tolerance: float | None = None, path: str = "", least: float = 0
) -> None:
    """The same up to roundings; where one has an infinity or is not a number, so is the other.

    Parameters
    ----------
    tolerance : float, optional
        As a share of the largest number.
    path : str
        What it is, for the message.
    least : float
        Count the largest number as at least that: where large numbers nearly cancel, that is what rounded.
    """
    if b.dtype.kind != "f":
        np.testing.assert_array_equal(a, b, err_msg=path)
        return
    share = TOLERANCE[b.dtype.name] if tolerance is None else tolerance
    finite = b[np.isfinite(b)]
    largest = np.abs(finite).max(initial=max(least, 1e-30))
    np.testing.assert_allclose(a, b, rtol=share, atol=share * min(largest, 1e30), err_msg=path)


def assert_same_training(ours: Training, theirs: Training) -> None:
    """Their parameters are the same."""
    for a, b in zip(ours.numbers(), theirs.numbers(), strict=True):
        assert_close(a, b, 1e-5)


def assert_equals_eager(f: Callable, *args: Any, tolerance: float | None = None, plain: bool = True) -> Any:
    """``jit(f)`` computes what `f` does, when it is traced and in the call after that; returns what it
    compiled to."""
    expected = f(*args)
    compiled = jit(f, plain)
    for _ in range(2):
        try:
            assert_same(compiled(*args), expected, tolerance)
        except Exception as error:
            error.add_note(compiled.source)
            raise
    return compiled
