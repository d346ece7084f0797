"""BLAS, the library that multiplies matrices for NumPy, and how many threads it uses."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from functools import cache
from typing import Any

import numpy as np

#: A product of so many multiplications has one thread. The threads of BLAS wait for each other, trying again
#: and again: that takes as long as it saves, and many times as long where other programs use the processors,
#: too. To smaller products OpenBLAS itself gives one thread.
ON_ONE_THREAD = range((1 << 18) + 1, 1 << 24)


@cache
def library() -> tuple[Any, str, str]:
    """The library in which NumPy's BLAS is, and what its names begin and end with.

    It is NumPy's and no other: the threads of two libraries would take the processors from each other.
    """
    library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    for before, behind in itertools.product(("scipy_", ""), ("64_", "", "$NEWLAPACK$ILP64", "$NEWLAPACK")):
        if hasattr(library, f"{before}cblas_sgemm{behind}"):
            return library, before, behind
    return None, "", ""


class _OneThread:
    """``with one_thread:`` BLAS uses one thread.

    The number of BLAS's threads holds for the whole process. So of several Python threads that are inside at
    the same time, the first sets it and the last sets it back.
    """

    def __init__(self) -> None:
        blas, before, behind = library()
        self.count = getattr(blas, f"{before}openblas_get_num_threads{behind}", lambda: 1)
        self.limit = getattr(blas, f"{before}openblas_set_num_threads{behind}", None)
        self.lock = threading.Lock()
        self.inside = 0

    def __enter__(self) -> None:
        if self.limit is not None:  # else it is not OpenBLAS
            with self.lock:
                self.inside += 1
                if self.inside == 1:
                    self.earlier = self.count()
                    self.limit(1)

    def __exit__(self, *error: object) -> None:
        if self.limit is not None:
            with self.lock:
                self.inside -= 1
                if not self.inside:
                    self.limit(self.earlier)


one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_thread.__init__)  # type: ignore[misc]  # the others are not there
