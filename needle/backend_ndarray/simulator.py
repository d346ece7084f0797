"""The functions of `launching.py` for Numba's simulator, which runs kernels in Python, without a GPU.

It starts a Python thread for each thread of a kernel, and has a launch of its own. Here an array stands for
its memory and for its address.
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


def allocate(size: int, dtype: np.dtype) -> tuple[Any, Any]:
    """An array of the simulator, not yet written, for its address and for the object that stands for it."""
    array = cuda.device_array(size, dtype)
    return array, array


def release() -> None:
    """There is nothing to give back."""


def at(array: Any, offset: int, dtype: np.dtype) -> Any:
    """The array from number `offset` on."""
    return array[offset:] if offset else array


def upload(values: np.ndarray, array: Any) -> None:
    """Copy a NumPy array into the simulator."""
    array.copy_to_device(values)


def download(array: Any, size: int, dtype: np.dtype) -> np.ndarray:
    """A NumPy array with a copy."""
    return array.copy_to_host()[:size]


def whole(array: Any, size: int, dtype: np.dtype) -> Any:
    """The array itself."""
    return array
