"""Background: a program is compiled while its function runs as it is.

Numba takes seconds, most of them in Python. A thread that did that would hold up all others, since only one
at a time can run Python. So another process compiles. It writes the machine code to the disk, where it
belongs anyway, and this process reads it in a moment.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

from . import runtime

__all__ = ["Task", "tell_if_long"]

_PER_LINE = 0.025  # seconds that Numba takes for a line of generated source, roughly
_MANY_LINES = 400  # from which on the user is told that they are compiled: about ten seconds

_pool: ProcessPoolExecutor | None = None
_one_at_a_time = threading.Lock()


def _forget() -> None:
    """Begin anew: a process that was forked has neither its parent's threads nor its processes."""
    global _pool, _one_at_a_time
    _pool, _one_at_a_time = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Task:
    """Functions that are compiled together, in the background.

    Parameters
    ----------
    kernels : list of (compiled function, types)
        What this process is going to call, and the types of its arguments.
    sources : list of tuple
        The same as what the other process compiles: the arguments of `runtime.compile_source`, without
        `others`, and the types. Each may call those before it.

    Attributes
    ----------
    error : Exception or None
        Why they could not be compiled.
    is_told : bool
        Whether the user knows of it.
    """

    def __init__(self, kernels: list[tuple[Any, tuple]], sources: list[tuple]):
        self.error: Exception | None = None
        self.is_told = False
        self._future: Future | None = None
        self._kernels = kernels
        self._finished = threading.Event()
        if all(_is_on_disk(kernel) for kernel, _ in self._kernels):
            threading.Thread(target=self.load, daemon=True).start()
        else:
            task = weakref.ref(self)  # nobody compiles for a task that was dropped before its turn came
            self._future = _submit(sources)
            self._future.add_done_callback(lambda _: _load(task()))

    def load(self) -> None:
        """Read the machine code from the disk; what is not there is compiled here after all."""
        try:
            for kernel, types in self._kernels:
                with _one_at_a_time:
                    kernel.compile(types)
        except Exception as error:
            self.error = error
        self._finished.set()

    def __del__(self) -> None:
        if self._future is not None:
            self._future.cancel()

    @property
    def is_ready(self) -> bool:
        """Whether they can be called."""
        return self._finished.is_set() and self.error is None

    def wait(self) -> None:
        """Wait until they are compiled, or cannot be."""
        self._finished.wait()


def _load(task: Task | None) -> None:
    if task is not None:
        task.load()


def _submit(sources: list[tuple]) -> Future:
    """Send sources to the other process, which is started with the first."""
    global _pool
    with _one_at_a_time:
        for _ in range(2):
            if _pool is None:
                _pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin)
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")  # the program itself is not to run there, too
            try:
                return _pool.submit(_compile, sources)
            except BrokenProcessPool:
                _pool = None
            finally:
                sys.modules["__main__"] = main
    raise AssertionError  # a fresh pool is not broken


def _begin() -> None:
    """What the other process does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the program
    if hasattr(os, "nice"):
        os.nice(10)  # what runs meanwhile goes first


def _compile(sources: list[tuple]) -> None:
    known: dict[str, Any] = {}
    for source, functions, name, note, types in sources:
        with suppress(Exception):  # the process that asked will find out why
            known[name] = runtime.compile_source(source, functions, name, known, note)
            known[name].compile(types)


def _place_on_disk(kernel: Any) -> Path | None:
    """The file that is there once a kernel is compiled; None if nothing is written to the disk."""
    file = getattr(kernel._cache, "_cache_file", None)
    return None if file is None else Path(file._index_path)


def _is_on_disk(kernel: Any) -> bool:
    """Whether a kernel need not be compiled, or could not be handed over on the disk."""
    place = _place_on_disk(kernel)
    return place is None or place.exists()


def tell_if_long(sources: list[tuple[str, Any]]) -> None:
    """Say so where sources are about to be compiled while the user waits, and that takes long.

    Parameters
    ----------
    sources : list of (str, compiled function)
    """
    waiting = [(source, kernel) for source, kernel in sources if not kernel.overloads]
    places = [_place_on_disk(kernel) for _, kernel in waiting]
    lines = sum(
        source.count("\n") + 1
        for (source, _), place in zip(waiting, places, strict=True)
        if place is None or not place.exists()
    )
    if lines > _MANY_LINES:
        later = "" if None in places else "The next time it is read from the disk. "
        print(
            f"jit: {lines:,} lines of source are compiled now, which takes about {lines * _PER_LINE:.0f} "
            f"seconds. {later}ndl.jit(f, background=True) runs the function as it is meanwhile.",
            file=sys.stderr,
            flush=True,
        )
