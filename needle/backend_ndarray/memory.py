"""Storage on the processor: the memory of large arrays is kept for the next ones.

A network makes the same large arrays in each step of its training. Giving their memory back to the system and
asking for it again, page by page, would often take longer than computing what is written there.
"""

from __future__ import annotations

import atexit
import sys
from collections import defaultdict
from typing import NamedTuple
from weakref import ref

import numpy as np

LARGE = 1 << 15  # numbers from which on memory is kept; smaller arrays rarely need new pages
KEPT = 1 << 28  # bytes that may wait for another array
ALIGNMENT = 64  # bytes of a memory line, and of the longest vector instruction


class MemoryBlock(NamedTuple):
    """Memory, and where in it arrays begin: at an aligned address."""

    memory: np.ndarray
    start: int


class Loan(ref):
    """A weak reference to an array. When the array is gone, it says which block comes back."""

    __slots__ = ("block", "nbytes")

    nbytes: int
    block: MemoryBlock


class Blocks:
    """Blocks of memory that wait for another array of their size.

    Attributes
    ----------
    size : int
        The bytes of all of them, at most `KEPT`. Before there would be more, they go back to the system.
    """

    def __init__(self) -> None:
        self.size = 0
        self._waiting: dict[int, list[MemoryBlock]] = defaultdict(list)  # by size in bytes
        self._loans: dict[int, Loan] = {}  # a weak reference has to be kept, or nobody hears from it
        self._references = 0
        self.array(1, np.dtype("uint8"))  # its memory comes back at once, and `_references` is set
        self.release()

    def array(self, size: int, dtype: np.dtype) -> np.ndarray:
        """A flat array of `size` numbers, not yet written. When it is gone, its memory comes back here."""
        nbytes = size * dtype.itemsize
        try:
            block = self._waiting[nbytes].pop()
            self.size -= nbytes
        except IndexError:
            try:
                block = _new(nbytes)
            except MemoryError:
                self.release()
                block = _new(nbytes)
        array = np.ndarray(size, dtype, *block)
        loan = Loan(array, self._take_back)
        loan.nbytes, loan.block = nbytes, block
        self._loans[id(loan)] = loan
        return array

    def _take_back(self, loan: Loan) -> None:
        """Keep a block whose array is gone, unless somebody still looks at the memory."""
        nbytes, block = loan.nbytes, loan.block
        del self._loans[id(loan)], loan
        references = sys.getrefcount(block.memory)
        if not self._references:
            self._references = references  # how many there are when nobody looks
        if references > self._references or nbytes > KEPT:
            return
        if self.size + nbytes > KEPT:
            self.release()
        self._waiting[nbytes].append(block)
        self.size += nbytes

    def release(self) -> None:
        """Give all waiting blocks back to the system."""
        self._waiting.clear()
        self.size = 0


def _new(nbytes: int) -> MemoryBlock:
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    return MemoryBlock(memory, -memory.ctypes.data % ALIGNMENT)


blocks = Blocks()
# When the program ends, its modules go in any order, and nobody needs memory any more.
atexit.register(blocks._loans.clear)
