"""What `kernel_recording` needs of Numba's CUDA simulator, where Numba is not installed, as in a browser.

It has what kernels use most: indices, sizes, and atomic changes, which return what was there before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

__all__ = ["Dim3", "FakeCUDAModule"]


class Dim3:
    """An index or a size, with x, y and z."""

    def __init__(self, x: int, y: int, z: int):
        self.x, self.y, self.z = x, y, z

    def __repr__(self) -> str:
        return f"Dim3({self.x}, {self.y}, {self.z})"

    def __iter__(self) -> Iterator[int]:
        return iter((self.x, self.y, self.z))


class FakeCUDAModule:
    """What a kernel calls `cuda`, but for what `kernel_recording` does itself."""

    warpsize = 32
    threadIdx: Dim3
    blockIdx: Dim3

    def __init__(self, grid: tuple[int, ...], block: tuple[int, ...], shared: int):
        self.gridDim, self.blockDim = Dim3(*grid), Dim3(*block)
        self.const = SimpleNamespace(array_like=lambda array: array)
        self.atomic = _Atomic()

    def grid(self, axes: int) -> Any:
        """The place of this thread among all threads."""
        places = [
            block * width + thread
            for block, width, thread in zip(self.blockIdx, self.blockDim, self.threadIdx, strict=True)
        ]
        return places[0] if axes == 1 else tuple(places[:axes])

    def gridsize(self, axes: int) -> Any:
        """How many threads there are."""
        sizes = [blocks * width for blocks, width in zip(self.gridDim, self.blockDim, strict=True)]
        return sizes[0] if axes == 1 else tuple(sizes[:axes])

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a · b + c."""
        return a * b + c

    def selp(self, a: Any, b: Any, c: Any) -> Any:
        """One of two, without a branch."""
        return b if a else c

    def threadfence(self) -> None:
        """One thread runs after the other: there is nothing to wait for."""

    threadfence_block = threadfence_system = threadfence


def _changed(change: Any) -> Any:
    def act(self: Any, array: Any, index: Any, *values: Any) -> Any:
        before = array[index]
        array[index] = change(before, *values)
        return before

    return act


class _Atomic:
    add = _changed(lambda old, value: old + value)
    sub = _changed(lambda old, value: old - value)
    max = _changed(
        lambda old, value: old if math.isnan(value) else value if math.isnan(old) else max(old, value)
    )
    min = _changed(
        lambda old, value: old if math.isnan(value) else value if math.isnan(old) else min(old, value)
    )
    and_ = _changed(lambda old, value: old & value)
    or_ = _changed(lambda old, value: old | value)
    xor = _changed(lambda old, value: old ^ value)
    exch = _changed(lambda old, value: value)
    cas = _changed(lambda old, expected, value: value if old == expected else old)
