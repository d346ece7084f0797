"""Storage on the processor: large blocks of memory are kept for reuse.

A network makes the same large arrays in each step of its training. To give their memory back to the system
and get it anew, page by page, would often take longer than to compute what is written there.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from typing import Any, NamedTuple

import numpy as np

LARGE = 1 << 15  # numbers, from which on the C library may ask the system for pages of their own
KEPT = 1 << 28  # bytes of blocks from which on those that nobody uses are let go
TRIES = 8  # blocks of a size that are asked whether somebody uses them
ALIGNMENT = 64  # bytes of a memory line, and of the longest vector instruction


class Block(NamedTuple):
    """Memory, and where in it arrays begin: at an aligned address."""

    memory: np.ndarray
    start: int


class Blocks:
    """Blocks of memory by their size in bytes: those in use and those that wait for it.

    A block is in use as long as anyone but its queue refers to its memory: the count of references tells.

    Attributes
    ----------
    total : int
        The bytes of all blocks.
    """

    def __init__(self) -> None:
        self.total = 0
        self._queues: dict[int, deque[Block]] = defaultdict(deque)
        self._limit = KEPT
        self._unused = _next(deque([_new(1)]))[1]

    def array(self, size: int, dtype: np.dtype) -> np.ndarray:
        """A flat array of `size` numbers, not yet written. Its block is free again when the array is gone."""
        nbytes = size * dtype.itemsize
        queue = self._queues[nbytes]
        for _ in range(min(len(queue), TRIES)):
            try:
                block, references = _next(queue)
            except IndexError:  # other threads are about to ask for the others
                break
            array = np.ndarray(size, dtype, *block) if references == self._unused else None
            queue.append(block)
            if array is not None:
                return array
        if self.total + nbytes > self._limit:
            self.let_go()
            self._limit = max(KEPT, 2 * (self.total + nbytes))
        try:
            block = _new(nbytes)
        except MemoryError:
            self.let_go()
            block = _new(nbytes)
        array = np.ndarray(size, dtype, *block)
        queue.append(block)
        self.total += nbytes
        return array

    def let_go(self) -> None:
        """Give the blocks that nobody uses back to the system."""
        for nbytes, queue in list(self._queues.items()):
            for _ in range(len(queue)):
                try:
                    block, references = _next(queue)
                except IndexError:
                    break
                if references == self._unused:
                    self.total -= nbytes
                else:
                    queue.append(block)


def _next(queue: deque[Block]) -> tuple[Block, int]:
    """The first block, taken out so that no other thread finds it meanwhile, and how many refer to it."""
    block = queue.popleft()
    return block, sys.getrefcount(block.memory)


def _new(nbytes: int) -> Block:
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    return Block(memory, -memory.ctypes.data % ALIGNMENT)


blocks = Blocks()


def empty(size: int, dtype: Any) -> np.ndarray:
    """A flat array of `size` numbers, not yet written."""
    if size < LARGE:
        return np.empty(size, dtype)
    return blocks.array(size, np.dtype(dtype))
