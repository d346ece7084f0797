"""The functions of `launching.py` for Numba's simulator, which runs kernels in Python, without a GPU.

It starts a Python thread for each thread of a kernel, and has a launch of its own. Memory is NumPy's here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numba import cuda

_GPU = SimpleNamespace(name="Numba's simulator", capability=(0, 0), processors=2, driver="no driver")


def gpu() -> SimpleNamespace:
    """What the simulator says of itself."""
    return _GPU


def synchronize() -> None:
    """A launch is done when it returns."""


def compile(make: Callable[[], Callable], signature: str, key: str | None) -> Any:
    """The kernel that `make` returns, for the simulator."""
    function: Any = make()
    # The simulator puts its own `cuda` among the names that a kernel sees, so `_quiet` has to see the same.
    names = function.__globals__
    names |= {"body": function, "np": np}
    return cuda.jit(FunctionType(_quiet.__code__, names, function.__name__))


def _quiet(*arguments):
    with np.errstate(all="ignore"):  # a GPU does not warn about 1 / 0 either
        body(*arguments)  # type: ignore[name-defined]  # noqa: F821


def launch(kernel: Any, blocks: Any, threads: Any, *arguments: Any) -> None:
    """Run a kernel."""
    if 0 not in (blocks if type(blocks) is tuple else (blocks,)):
        with _one_at_a_time:
            kernel[blocks, threads](*arguments)


_one_at_a_time = threading.RLock()


class NumberType:
    """A data type: it converts what NumPy's own refuses and a GPU does not."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def __call__(self, x: Any) -> Any:
        return np.asarray(x).astype(self.dtype)[()]


class Graph:
    """Work that was done before, and is done again."""

    def __init__(self, work: Callable[[], Any]):
        self.replay = work


class Pointer:
    """An address: place number `offset` of an array. No kernel reads or writes beyond the array."""

    __slots__ = ("offset", "values")

    def __init__(self, values: np.ndarray, offset: int = 0):
        self.values = values
        self.offset = offset

    def place(self, i: Any) -> int:
        """Where in the array number `i` from here is."""
        place = self.offset + int(i)
        if not 0 <= place < len(self.values):
            raise IndexError(f"a kernel leaves its array: place {place} of {len(self.values)}")
        return place

    def __getitem__(self, i: Any) -> Any:
        return self.values[self.place(i)]

    def __setitem__(self, i: Any, number: Any) -> None:
        self.values[self.place(i)] = number


def allocate(size: int, dtype: np.dtype) -> tuple[Pointer, None]:
    """Memory for numbers, not yet written; its address keeps it."""
    return Pointer(np.empty(size, dtype)), None


def release() -> None:
    """There is nothing to give back."""


def at(pointer: Pointer, offset: int, dtype: np.dtype) -> Pointer:
    """The address of number `offset` from there on."""
    return Pointer(pointer.values, pointer.offset + offset)


def upload(values: np.ndarray, pointer: Pointer) -> None:
    """Copy a NumPy array into the simulator."""
    pointer.values[pointer.offset :][: values.size] = values


def copy(source: Pointer, target: Pointer, nbytes: int) -> None:
    """Copy memory."""
    size = nbytes // source.values.itemsize
    upload(source.values[source.offset :][:size], target)


def download(pointer: Pointer, size: int, dtype: np.dtype) -> np.ndarray:
    """A NumPy array with a copy."""
    return pointer.values[pointer.offset : pointer.offset + size].copy()


def whole(pointer: Pointer, size: int, dtype: np.dtype) -> Any:
    """An array for what pointers cannot do."""
    return pointer.values
