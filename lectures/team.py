"""Workers that send each other numbers: processes where MPI is installed, threads elsewhere.

A program for workers is a function of a `Worker`, which knows its rank and the mail. All workers run the same
function at the same time::

    def greet(worker):
        worker.send(np.array([worker.rank]), (worker.rank + 1) % worker.size)
        return worker.receive((worker.rank - 1) % worker.size)

    Threads(4).run(greet)  # what each of them returned, by rank

`Threads` are the workers of exercises. Each waits for mail, and once all of them wait nobody ever will send
any: that is noticed at once, so a mistake becomes a sentence and not a notebook that hangs. `Processes` are
real ones, on the engines of ipyparallel, and mpi4py carries their mail. `team` gives the better of the two.
"""

from __future__ import annotations

import atexit
import copy
import ctypes
import os
import pickle
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import invalidate_caches, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["NoMail", "Processes", "Threads", "Worker", "team"]

PACKAGES = ("ipyparallel", "mpi4py", "mpich")  # what `Processes` need; the last one brings MPI itself
MOST_SECONDS = 20  # that a process waits for a message
MOST_SECONDS_TO_START = 60
ITEMS = object()
IN_TURNS = sys.platform == "emscripten"  # see `Threads.in_turns`


class NoMail(RuntimeError):
    """A worker waits for a message that nobody sends."""


@dataclass(frozen=True)
class Worker:
    """One of several workers, as its program sees it.

    Attributes
    ----------
    rank : int
        Its number, from 0 on.
    size : int
        How many workers there are.
    send : function
        ``send(numbers, to)`` puts a copy of an array into the mail for worker `to`, and goes on at once.
    receive : function
        ``receive(source)`` waits for the next array from worker `source`, and returns it.
    """

    rank: int
    size: int
    send: Callable[[Any, int], None]
    receive: Callable[[int], np.ndarray]


# --- Threads ------------------------------------------------------------------------------------------------


class Threads:
    """Workers that are threads of this process. They share its memory, but what they send is copied.

    Parameters
    ----------
    size : int
        How many workers.

    Attributes
    ----------
    sent, received : list of int
        How many numbers each worker has sent and received in the last run.
    """

    processes = False

    def __init__(self, size: int, why: str = ""):
        self.size = size
        self.why = why
        self.post = Post(size)

    def __repr__(self) -> str:
        because = f", since {self.why}" if self.why else ""
        kind = "played one after another in this process" if IN_TURNS else "each a thread of this process"
        return f"{self.size} workers, {kind}{because}."

    @property
    def sent(self) -> list[int]:
        return [self.post.sent[rank] for rank in range(self.size)]

    @property
    def received(self) -> list[int]:
        return [self.post.received[rank] for rank in range(self.size)]

    def run(self, function: Callable[..., Any], items: Any = ITEMS) -> list[Any]:
        """Run a function on all workers at once.

        Parameters
        ----------
        function : callable
            Gets a `Worker`, and its item if there are any.
        items : sequence, optional
            One for each worker. With fewer items, only so many workers run.

        Returns
        -------
        list
            What each worker returned, by rank.

        Raises
        ------
        NoMail
            If a worker waits for a message that nobody will send.
        """
        arguments = [()] * self.size if items is ITEMS else [(item,) for item in items]
        self.post = post = Post(len(arguments))
        if IN_TURNS:
            return self.in_turns(function, arguments)
        results: list[Any] = [None] * len(arguments)
        errors: dict[int, BaseException] = {}

        def work(rank: int) -> None:
            worker = Worker(rank, post.size, partial(post.send, rank), partial(post.receive, rank))
            try:
                results[rank] = function(worker, *arguments[rank])
            except BaseException as error:
                errors[rank] = error
            finally:
                post.done(rank)

        threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(post.size)]
        for thread in threads:
            thread.start()
        try:
            post.wait_for_all()
        finally:  # somebody may have interrupted us: end what still runs
            post.close()
            if not post.wait_for_all(seconds=1.0):  # these have no mail to wait for: they compute
                for rank in post.running:
                    _interrupt(threads[rank])
                post.wait_for_all(seconds=1.0)
        waited = [errors[rank] for rank in sorted(errors) if isinstance(errors[rank], NoMail)]
        broken = [errors[rank] for rank in sorted(errors) if not isinstance(errors[rank], NoMail)]
        for error in [*broken, *waited]:  # where one breaks off, others wait for it in vain
            raise error
        return results

    def in_turns(self, function: Callable[..., Any], arguments: list[tuple]) -> list[Any]:
        """Run a function on one worker after the other, where there are no threads.

        No function can be halted in its middle. So a worker whose mail is not there yet is stopped by an exception,
        and starts again later: what it has sent before is not sent again, and it receives once more what it has
        received.
        """
        post, results = self.post, [None] * len(arguments)
        came: list[list[np.ndarray]] = [[] for _ in arguments]
        ended: set[int] = set()
        while len(ended) < post.size:
            before = post.sent.total(), post.received.total(), len(ended)
            for rank in set(range(post.size)) - ended:
                calls = Counter(sent=0, received=0)

                def send(numbers: Any, to: int, rank: int = rank, calls: Counter = calls) -> None:
                    calls["sent"] += 1
                    if calls["sent"] > post.letters[rank]:
                        post.send(rank, numbers, to)

                def receive(source: int, rank: int = rank, calls: Counter = calls) -> np.ndarray:
                    calls["received"] += 1
                    if calls["received"] > len(came[rank]):
                        came[rank].append(post.take(rank, source))
                    return came[rank][calls["received"] - 1].copy()

                with suppress(_NotYet):
                    results[rank] = function(
                        Worker(rank, post.size, send, receive), *copy.deepcopy(arguments[rank])
                    )
                    ended.add(rank)
                    post.done(rank)
            if before == (post.sent.total(), post.received.total(), len(ended)):
                raise NoMail(post.look())
        return results

    def stop(self) -> None:
        """Nothing is left running."""


class _NotYet(BaseException):
    """A worker waits for mail, and the next one should go on."""


class Post:
    """The mail of workers that are threads: a box for each pair of them."""

    def __init__(self, size: int):
        self.size = size
        self.sent: Counter[int] = Counter()
        self.received: Counter[int] = Counter()
        self.letters: Counter[int] = Counter()
        self.ways: set[tuple[int, int]] = set()  # who has sent something to whom
        self._boxes: defaultdict[tuple[int, int], deque] = defaultdict(deque)
        self._changed = threading.Condition()
        self._waiting: dict[int, int] = {}  # who waits, and for whom
        self._running = set(range(size))
        self._stuck = ""
        self._closed = False

    def send(self, rank: int, numbers: Any, to: int) -> None:
        """Put a copy into the box of a worker."""
        self._check(rank, to, "sends to")
        numbers = np.array(numbers)
        with self._changed:
            if self._closed:
                raise Interrupted
            self._boxes[rank, to].append(numbers)
            self.sent[rank] += numbers.size
            self.letters[rank] += 1
            self.ways.add((rank, to))
            self._changed.notify_all()

    def receive(self, rank: int, source: int) -> np.ndarray:
        """Wait for the next message of a worker."""
        self._check(rank, source, "waits for")
        box = self._boxes[source, rank]
        with self._changed:
            self._waiting[rank] = source
            self._look()
            while not box:
                if self._closed:
                    raise Interrupted
                if self._stuck:
                    raise NoMail(self._stuck)
                self._changed.wait()
            del self._waiting[rank]
            message = box.popleft()
            self.received[rank] += message.size
            return message

    def take(self, rank: int, source: int) -> np.ndarray:
        """The next message of a worker, if it is there; otherwise this one has to wait."""
        self._check(rank, source, "waits for")
        if not self._boxes[source, rank]:
            self._waiting[rank] = source
            raise _NotYet
        self._waiting.pop(rank, None)
        return self.receive(rank, source)

    def look(self) -> str:
        """Who waits in vain, in words."""
        with self._changed:
            self._look()
        return self._stuck

    def close(self) -> None:
        """Take no more mail, and let nobody wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def done(self, rank: int) -> None:
        """A worker has ended."""
        with self._changed:
            self._running.discard(rank)
            self._look()
            self._changed.notify_all()

    @property
    def running(self) -> list[int]:
        """Who has not ended."""
        with self._changed:
            return sorted(self._running)

    def wait_for_all(self, seconds: float | None = None) -> bool:
        """Wait until all have ended, or so long. (`Thread.join` forgets a thread when it is interrupted.)"""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)

    def _look(self) -> None:
        """Whether all who have not ended wait, and have no mail."""
        mail = any(self._boxes[source, rank] for rank, source in self._waiting.items())
        if self._waiting and len(self._waiting) == len(self._running) and not mail and not self._stuck:
            rank, source = min(self._waiting.items())
            other = "other mail lies unread" if any(self._boxes.values()) else "no mail is under way"
            self._stuck = (
                f"worker {rank} waits for a message from worker {source}, and nobody will send one: {other}"
            )
            self._changed.notify_all()

    def _check(self, rank: int, other: Any, does: str) -> None:
        if isinstance(other, bool) or not isinstance(other, (int, np.integer)):
            raise TypeError(f"worker {rank} {does} a {type(other).__name__}: needs a worker's number")
        if not 0 <= other < self.size:
            raise ValueError(f"worker {rank} {does} worker {other}, but the last one is {self.size - 1}")


class Interrupted(BaseException):
    """A thread should end."""


def _interrupt(thread: threading.Thread) -> None:
    """Raise an exception in a thread, whatever it does."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Interrupted)
    )


# --- Processes ----------------------------------------------------------------------------------------------


class Processes:
    """Workers that are processes of this machine: engines of ipyparallel, started by MPI.

    They end with `stop`, and in any case with the process that has started them, also while they are being
    started: one process more, a guard, waits for its end.

    Parameters
    ----------
    size : int
        How many workers.

    Raises
    ------
    ImportError
        If a package or the program mpiexec is missing.
    RuntimeError
        If the processes do not start.
    """

    processes = True

    def __init__(self, size: int):
        from numba import cloudpickle

        self.size = size
        self._pickle = cloudpickle.dumps
        self._runs = 0
        program = mpiexec()
        self._folder = tempfile.mkdtemp()
        self._guard = subprocess.Popen(
            [sys.executable, __file__, str(os.getpid()), self._folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what stops this process should not stop it, too
        )
        try:
            self._cluster = _new_cluster(size, program, self._folder)
            self._cluster.start_cluster_sync()
            atexit.register(self.stop)  # runs before ipyparallel's own, which prints
            self._client = self._cluster.connect_client_sync()
            _wait_for_all(self._client, size)
            places = self._client[:].apply_sync(_rank)
            if sorted(places) != list(range(size)):
                raise RuntimeError(f"{program} belongs to another MPI than mpi4py uses")
        except BaseException as error:  # also if somebody presses stop
            self.stop()
            if isinstance(error, Exception) and not isinstance(error, RuntimeError):
                raise RuntimeError(f"MPI did not start them ({type(error).__name__}: {error})") from error
            raise
        self._engines = [self._client[places.index(rank)] for rank in range(size)]

    def __repr__(self) -> str:
        return f"{self.size} workers, each a process of its own."

    def run(self, function: Callable[..., Any], items: Any = ITEMS) -> list[Any]:
        """Run a function on all workers at once; see `Threads.run`.

        The function travels to the other processes with all that it uses.

        Raises
        ------
        RuntimeError
            If it fails on a worker. The message says on which, and why.
        """
        if self._client is None:
            raise RuntimeError("run: the workers have stopped; run the cell again that started them")
        arguments = [()] * self.size if items is ITEMS else [(item,) for item in items]
        self._runs += 1
        sent = [
            engine.apply_async(_work, self._pickle((function, own)), len(arguments), self._runs)
            for engine, own in zip(self._engines, arguments, strict=False)
        ]
        found = [pickle.loads(result.get()) for result in sent]
        failed = [(rank, text) for rank, (text, _) in enumerate(found) if text]
        for rank, text in sorted(failed, key=lambda x: x[1].startswith(NoMail.__name__)):
            raise RuntimeError(f"worker {rank}: {text}")
        return [result for _, result in found]

    def stop(self) -> None:
        """End the processes."""
        atexit.unregister(self.stop)
        client, self._client = self._client, None
        if client is not None:
            client.close(linger=0.1)
        end_marked(self._folder)
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.stop_cluster_sync()
        self._guard.kill()
        self._guard.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    _cluster: Any = None
    _client: Any = None


def mpiexec() -> str:
    """The program that starts processes with MPI.

    A machine may have several. The best is that of an installed package, since mpi4py takes its library, too;
    then that beside this Python, then any.

    Raises
    ------
    ImportError
        If something is missing; the message says what.
    """
    missing = [package for package in PACKAGES[:2] if find_spec(package) is None]
    if missing:
        raise ImportError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    folders = [
        Path(str(package.locate_file(file))).resolve().parent
        for name in ("mpich", "openmpi")
        for package in metadata.distributions(name=name)
        for file in package.files or []
        if file.stem == "mpiexec"
    ]
    folders += [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    for path in [*map(str, folders), None]:
        if found := shutil.which("mpiexec", path=path):
            return found
    raise ImportError("the program mpiexec is missing")


def _new_cluster(size: int, mpiexec: str, folder: str) -> Any:
    """A cluster of engines, not started yet."""
    import ipyparallel
    from traitlets.config import Config

    above = Path(__file__).resolve().parents[1]  # where needle and lectures are
    config = Config()
    config.LocalControllerLauncher.environment = {MARK: folder}
    config.MPIEngineSetLauncher.mpi_cmd = [mpiexec]
    config.MPIEngineSetLauncher.environment = {
        MARK: folder,
        "PYTHONPATH": os.pathsep.join(x for x in (str(above), os.environ.get("PYTHONPATH")) if x),
        # OpenMPI asks root, as in Colab, and more workers than processors, whether they are meant.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    return ipyparallel.Cluster(
        engines="mpi", n=size, profile_dir=folder, config=config, load_profile=False, delay=0, log_level=40
    )


def _wait_for_all(client: Any, size: int) -> None:
    """Wait until all engines have come, or none will come any more.

    (ipyparallel's own wait does not always notice that they have ended.)
    """
    (engines,) = client.cluster.engines.values()
    end = time.monotonic() + MOST_SECONDS_TO_START
    while len(client.ids) < size:
        if not engines.process.is_running():
            said = [x for x in engines.get_output().splitlines() if re.match(r"\w*(Error|Exception)\b", x)]
            raise RuntimeError(f"MPI did not start them ({said[-1] if said else 'it ended at once'})")
        if time.monotonic() > end:
            raise RuntimeError(f"MPI did not start them in {MOST_SECONDS_TO_START} seconds")
        time.sleep(0.02)


def _rank() -> int:
    """On an engine: this worker's rank."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.Get_rank()


MARK = "NEEDLE_TEAM"  # in the environment of all processes of a team: by it they are found


def guard(pid: int, mark: str) -> None:
    """Wait until a process has ended, then end all processes that it has marked."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        leader = psutil.Process(pid)
        while leader.is_running() and leader.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.5)
    end_marked(mark)
    shutil.rmtree(mark, ignore_errors=True)


def end_marked(mark: str) -> None:
    """End all processes that carry this mark, and those that they start meanwhile."""
    import psutil

    for _ in range(20):
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == mark:
                    process.kill()
                    found.append(process)
        if not found:
            return
        psutil.wait_procs(found, timeout=0.5)


def _work(program: bytes, size: int, tag: int) -> bytes:
    """On an engine: run a program. Returns an error, or "", and the result."""
    from mpi4py import MPI
    from numba import cloudpickle

    world = MPI.COMM_WORLD
    under_way: list[Any] = []

    def send(numbers: Any, to: int) -> None:
        under_way.append(world.isend(np.array(numbers), to, tag))

    def receive(source: int) -> np.ndarray:
        end = time.monotonic() + MOST_SECONDS
        while not world.iprobe(source, tag):
            os.sched_yield() if hasattr(os, "sched_yield") else time.sleep(0)
            if time.monotonic() > end:
                raise NoMail(f"no message from worker {source} in {MOST_SECONDS} seconds")
        return world.recv(source=source, tag=tag)

    try:
        function, arguments = pickle.loads(program)
        result = function(Worker(world.Get_rank(), size, send, receive), *arguments)
        end = time.monotonic() + MOST_SECONDS
        while not all(request.test()[0] for request in under_way):
            if time.monotonic() > end:
                raise NoMail("a message has been sent that nobody takes out of the mail")
        return cloudpickle.dumps(("", result))
    except Exception as error:
        return pickle.dumps((f"{type(error).__name__}: {error}", None))


# --- The better of the two ----------------------------------------------------------------------------------

_last: list[Any] = []


def _installed() -> bool:
    """Whether the packages and the program are there."""
    with suppress(ImportError):
        return bool(mpiexec())
    return False


def team(size: int, install: bool = False) -> Processes | Threads:
    """So many workers: processes if MPI is installed, threads otherwise, in a browser neither. An earlier team stops.

    Parameters
    ----------
    size : int
    install : bool
        Whether to install what processes need, if it is missing.
    """
    while _last:
        _last.pop().stop()
    if IN_TURNS:
        return Threads(size, "a browser has neither threads nor processes")
    try:
        if install and not _installed():
            wanted = PACKAGES[:2] if sys.platform == "win32" else PACKAGES  # there is no mpich for it
            print(f"Installing {', '.join(wanted)}: this takes half a minute.")
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted], check=True)
            invalidate_caches()
        made: Processes | Threads = Processes(size)
    except (ImportError, RuntimeError, subprocess.CalledProcessError) as error:
        made = Threads(size, str(error))
    _last.append(made)
    return made


if __name__ == "__main__":  # the guard of a team
    guard(int(sys.argv[1]), sys.argv[2])
