"""Background: a program is compiled while its function runs as it is.

A large network takes seconds, many of them in Python. A thread that did that would hold up all others,
since only one at a time can run Python. So another process compiles. It writes the machine code to the disk,
where it belongs anyway, and this process reads it in a moment.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import sys
import threading
import weakref
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

__all__ = ["Task", "tell_if_long"]

_PER_LINE = 0.006  # seconds that LLVM takes for a line of generated source, roughly
_MANY_LINES = 800  # from which on the user is told that they are compiled: about five seconds
_MOST = 50  # tasks of the other process: Numba keeps megabytes of each, and then a fresh process comes
_turns = itertools.count(1)
_pools: dict[int, ProcessPoolExecutor] = {}  # by the number of this process: a forked one needs its own
_one_at_a_time = threading.Lock()
_ended = threading.Event()  # this process is about to end


class Task:
    """Functions that are compiled together, in the background.

    `kernels` are what this process is going to call, each with the types of its arguments; `sources` are the
    same as what the other process compiles: the arguments of `runtime.compile_source`, but for `others`, and
    the types. Each may call those before it. `error` says why they could not be compiled, and `is_told`
    whether the user knows of it.
    """

    def __init__(self, kernels: list[tuple[Any, tuple]], sources: list[tuple]):
        self.error: Exception | None = None
        self.is_told = False
        self._kernels = kernels
        self._finished = threading.Event()
        if all(_is_on_disk(kernel) for kernel, _ in kernels):
            threading.Thread(target=self.load, daemon=True).start()
            return
        future = _submit(sources)
        weakref.finalize(self, future.cancel)  # nobody compiles for a task that is gone before its turn
        future.add_done_callback(functools.partial(_load, weakref.ref(self)))

    def load(self) -> None:
        """Read the machine code from the disk; what is not there is compiled here after all."""
        try:
            for kernel, types in self._kernels:
                kernel.compile(types)
        except Exception as error:
            self.error = error
        self._finished.set()

    @property
    def is_ready(self) -> bool:
        """Whether they can be called."""
        return self._finished.is_set() and self.error is None

    def wait(self) -> None:
        """Wait until they are compiled, or cannot be."""
        self._finished.wait()


def _load(reference: weakref.ref[Task], _: Future) -> None:
    if (task := reference()) is not None and not _ended.is_set():
        task.load()


def _submit(sources: list[tuple]) -> Future:
    """Send sources to the other process."""
    with _one_at_a_time:
        if next(_turns) % _MOST == 0:
            _pools.clear()
        try:
            return _pool().submit(_compile, sources)
        except BrokenExecutor:
            _pools.clear()
            return _pool().submit(_compile, sources)


def _pool() -> ProcessPoolExecutor:
    """The other process. It starts when it is first asked for."""
    from concurrent.futures import ProcessPoolExecutor  # a browser has none
    from multiprocessing import get_context

    if os.getpid() not in _pools:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")  # the program itself is not to run there, too
        try:
            pool = _pools[os.getpid()] = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin)
            pool.submit(int)  # the process starts now
        finally:
            sys.modules["__main__"] = main
    return _pools[os.getpid()]


def _end() -> None:
    """End the other process with this one, whatever it compiles."""
    if (pool := _pools.get(os.getpid())) is not None:
        _ended.set()
        others = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for other in others:
            other.terminate()


with suppress(AttributeError):  # where a Python has no such function, a program waits at its end
    threading._register_atexit(_end)  # type: ignore[attr-defined]


def _begin() -> None:
    """What the other process does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the program
    if hasattr(os, "nice"):
        os.nice(10)  # what runs meanwhile goes first
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that asked is gone, even if it had no time to say so."""
    from multiprocessing import parent_process

    if (parent := parent_process()) is not None:
        parent.join()
    os._exit(0)


def _compile(sources: list[tuple]) -> None:
    from . import runtime

    known: dict[str, Any] = {}
    for source, name, note, types in sources:
        with suppress(Exception):  # the process that asked will find out why
            known[name] = runtime.compile_source(source, name, known, note)
            known[name].compile(types)


def _is_on_disk(kernel: Any) -> bool:
    """Whether a kernel need not be compiled."""
    file = getattr(kernel._cache, "_cache_file", None)
    return file is not None and Path(file._index_path).exists()


def tell_if_long(sources: list[tuple[str, Any]]) -> None:
    """Say so where sources, each with its kernel, are compiled while the user waits, and that takes long."""
    waiting = [source for source, kernel in sources if not kernel.overloads and not _is_on_disk(kernel)]
    lines = sum(source.count("\n") + 1 for source in waiting)
    if lines > _MANY_LINES:
        print(
            f"jit: {lines:,} lines of source are compiled now, which takes about {lines * _PER_LINE:.0f} "
            "seconds. The next time they are read from the disk, if it can be written. "
            "ndl.jit(f, background=True) runs the function as it is meanwhile.",
            file=sys.stderr,
            flush=True,
        )
