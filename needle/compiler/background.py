"""Background: a program is compiled while its function runs as it is.

Numba takes seconds, most of them in Python. A thread that did that would hold up all others again and again,
since only one at a time can run Python. So another process compiles. It writes the machine code to the disk,
where it belongs anyway, and this process reads it in a moment.

The other process is a fresh interpreter that is sent sources and types. It never runs the program that asks
for them. Where there is no such process, or nothing can be written to the disk, the thread that waits for it
compiles after all.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from . import runtime

__all__ = ["Source", "Task", "tell_if_long"]

#: Seconds for which the other process waits for more: it needs one to start.
_IDLE = 10.0

#: Seconds for which the end of a program waits, if a thread compiles.
_PATIENCE = 1.0

#: Seconds that Numba takes for a line of generated source, roughly.
_PER_LINE = 0.025

#: Lines of source from which on the user is told that they are compiled: about ten seconds.
_MANY_LINES = 400

_PROGRAM = """
import sys
sys.path[:] = sys.argv[1:]
from needle.compiler.background import compile_what_comes
compile_what_comes()
"""


class Source(NamedTuple):
    """A function to be compiled: what `runtime.compile_source` takes, and the types of its arguments.

    It may call those before it in a list.
    """

    source: str
    functions: list[tuple[str, str]]
    name: str
    note: str
    types: tuple


class Task:
    """Functions that are compiled together, in the background.

    Nobody compiles for a task that was dropped before its turn came.

    Parameters
    ----------
    sources : list of Source
    kernels : list of compiled function
        Those of them that this process is going to call, with the types of their arguments.

    Attributes
    ----------
    finished : threading.Event
    error : Exception or None
        Why they could not be compiled.
    is_told : bool
        Whether the user knows of it.
    """

    def __init__(self, sources: list[Source], kernels: list[tuple[Any, tuple]]):
        self.sources = sources
        self.kernels = kernels
        self.finished = threading.Event()
        self.error: Exception | None = None
        self.is_told = False
        if kernels:
            _Background.wanted(self)
        else:
            self.finished.set()

    @property
    def is_ready(self) -> bool:
        """Whether they can be called."""
        return self.finished.is_set() and self.error is None

    def run(self, other: _OtherProcess | None) -> None:
        """Compile, as far as possible in the other process."""
        try:
            if other is not None and not all(_is_on_disk(kernel) for kernel, _ in self.kernels):
                other.compile(self.sources)
            for kernel, types in self.kernels:
                with _Background.in_this_process:
                    if not _Background.is_over:
                        kernel.compile(types)
        except Exception as error:
            self.error = error
        self.finished.set()


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
    places = [_place_on_disk(kernel) for _, kernel in sources]
    lines = sum(
        source.count("\n") + 1
        for (source, kernel), place in zip(sources, places, strict=True)
        if not kernel.overloads and (place is None or not place.exists())
    )
    if lines > _MANY_LINES:
        later = "" if None in places else "The next time it is read from the disk. "
        print(
            f"jit: {lines:,} lines of source are compiled now, which takes about {lines * _PER_LINE:.0f} "
            f"seconds. {later}ndl.jit(f, background=True) runs the function as it is meanwhile.",
            file=sys.stderr,
            flush=True,
        )


class _Background:
    """The one thread of a process that sees to tasks, one after the other."""

    thread: threading.Thread | None = None
    waiting: queue.SimpleQueue[weakref.ref[Task]] = queue.SimpleQueue()
    other: _OtherProcess | None = None
    starting = threading.Lock()
    in_this_process = threading.Lock()
    is_over = False

    @classmethod
    def wanted(cls, task: Task) -> None:
        """See to a task, sooner or later."""
        cls.waiting.put(weakref.ref(task))
        with cls.starting:
            if cls.thread is None:
                cls.thread = threading.Thread(target=cls.work, name="needle compiles", daemon=True)
                cls.thread.start()

    @classmethod
    def work(cls) -> None:
        while not cls.is_over:
            try:
                task = cls.waiting.get(timeout=_IDLE if cls.other else None)()
            except queue.Empty:
                cls.close()
                continue
            if task is not None:
                task.run(cls.fresh())
            del task

    @classmethod
    def fresh(cls) -> _OtherProcess | None:
        """The other process, with the environment as it is now: it may name the folder to write to."""
        if cls.other is not None and not cls.other.is_usable():
            cls.close()
        if cls.other is None and sys.executable and not getattr(sys, "frozen", False) and not cls.is_over:
            with suppress(OSError):
                cls.other = _OtherProcess()
        return cls.other

    @classmethod
    def close(cls) -> None:
        if cls.other is not None:
            cls.other.close()
            cls.other = None

    @classmethod
    def end(cls) -> None:
        """End the other process with this one, and wait for LLVM, which is about to be torn down."""
        cls.is_over = True
        cls.close()
        cls.in_this_process.acquire(timeout=_PATIENCE)

    @classmethod
    def forget(cls) -> None:
        """Begin anew: a process that was forked has neither its parent's threads nor its processes."""
        cls.thread = cls.other = None
        cls.waiting = queue.SimpleQueue()
        cls.starting, cls.in_this_process = threading.Lock(), threading.Lock()


atexit.register(_Background.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Background.forget)


class _OtherProcess:
    """A fresh interpreter that compiles what it is sent. It ends when nobody can send any more."""

    def __init__(self) -> None:
        self.environment = dict(os.environ)
        # Ctrl-C is meant for the program, not for who compiles for it.
        apart: dict[str, Any] = {"start_new_session": True}
        if os.name == "nt":
            apart = {"creationflags": subprocess.CREATE_NO_WINDOW}  # type: ignore[attr-defined]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *map(str, sys.path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **apart,
        )  # fmt: skip

    def is_usable(self) -> bool:
        return self.process.poll() is None and self.environment == os.environ

    def compile(self, sources: list[Source]) -> None:
        """Wait until the sources are compiled. If that fails, this process will find out why."""
        with suppress(OSError, ValueError):  # it has ended
            pickle.dump(sources, self.process.stdin)  # type: ignore[arg-type]
            self.process.stdin.flush()  # type: ignore[union-attr]
            self.process.stdout.read(1)  # type: ignore[union-attr]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # what nobody will read
                pipe.close()  # type: ignore[union-attr]


def compile_what_comes() -> None:
    """What the other process does: compile lists of sources, and answer each with a byte."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(10)  # what runs meanwhile goes first
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever is printed is no answer
    with suppress(EOFError, OSError):
        while True:
            sources = pickle.load(sys.stdin.buffer)
            with suppress(Exception):
                _compile(sources)
            os.write(answers, b".")


def _compile(sources: list[Source]) -> None:
    known: dict[str, Any] = {}
    for source, functions, name, note, types in sources:
        known[name] = runtime.compile_source(source, functions, name, known, note)
        known[name].compile(types)
