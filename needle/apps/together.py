"""Several processes run one command: only worker 0 speaks, and if one of them fails, all end, with a word."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from needle.parallel import Workers

__all__ = ["run_together", "said_once", "started_by_mpi", "watched"]

#: How long a worker that ends waits, in seconds, for the others to end as well.
PATIENCE = 3.0


def run_together(main: Callable[[list[str]], Any], argv: list[str]) -> Any:
    """Run a command as one of several workers.

    What the others than worker 0 print goes nowhere. If all workers fail, worker 0 says why. If only some do,
    the first says so and ends all workers: the others would wait for it forever.
    """
    try:
        workers = Workers()
    except ImportError:
        return main(argv)  # its options cannot be met, and it says why
    if workers.size == 1:
        if not any(rank in os.environ for _, rank in FROM_MPI):
            print("--data-parallel: this is the only worker; mpiexec -n 4 … starts four", file=sys.stderr)
        return main(argv)
    way = way_out(argv)
    dismiss = watched(workers, way) if workers.rank == 0 else lambda: None
    try:
        with contextlib.ExitStack() as stack:
            if workers.rank > 0:
                nowhere = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
                stack.enter_context(contextlib.redirect_stderr(nowhere))
            result = main(argv)
        dismiss()
        return result
    except SystemExit as end:
        dismiss()
        if not isinstance(end.code, str):
            raise  # every worker has found the same, and worker 0 has said it
        words = end.code
    except KeyboardInterrupt:
        dismiss()
        words = "\nstopped"
    except Exception:
        dismiss()
        who = f"Worker {workers.rank} of {workers.size}"
        words = f"{traceback.format_exc()}\n{who} failed, with this error, and so all are ended. {way}"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if workers.rank == 0:
        print(words, file=sys.stderr, flush=True)
    all_end = workers.all_end(PATIENCE)
    if all_end:
        raise SystemExit(1)
    if workers.rank > 0 and all_end is None:
        print(words, file=sys.stderr)
    elif workers.rank > 0:
        time.sleep(PATIENCE)  # worker 0 has said it, and ends all
    workers.abort()


#: Where `mpiexec` writes how many processes it started, and which of them this is.
FROM_MPI = (("PMI_SIZE", "PMI_RANK"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"))


def started_by_mpi() -> int:
    """How many processes `mpiexec` started, as worker 0 knows it; 1 in the other workers and without it."""
    for size, rank in FROM_MPI:
        if os.environ.get(rank) == "0":
            return int(os.environ.get(size, 1))
    return 1


def said_once(workers: Workers | None, error: str | None) -> str | None:
    """What the first worker with an error has to say; None if none has one."""
    errors = [error] if workers is None else workers.gather(error)
    return next((found for found in errors if found is not None), None)


def way_out(argv: list[str]) -> str:
    """How a command with these options goes on after it was interrupted."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--checkpoint", nargs="?")
    path = parser.parse_known_args(argv)[0].checkpoint
    if path is None:
        return "Nothing was saved; with --checkpoint PATH each epoch is, and --resume goes on from there."
    return f"Go on after the last whole epoch with --checkpoint {shlex.quote(path)} --resume."


# If a worker is killed, MPI's launcher ends all others at once, by a signal that nobody can catch. So the
# word on it has to come from outside: from a small process that worker 0 starts. It reads from a pipe. As
# long as worker 0 lives, nothing comes; when worker 0 ends, whatever way, the pipe is closed.
WATCH = """
import sys
if not sys.stdin.read():
    print(sys.argv[1], file=sys.stderr)
"""


def watched(workers: Workers, way: str) -> Callable[[], None]:
    """Start the process that says what to do if the workers are killed.

    Returns
    -------
    callable
        To be called when worker 0 knows how the command ended: then that process ends and says nothing.
    """
    words = (
        f"\nOne of the {workers.size} workers failed or was killed, and so all are ended. (A system kills "
        f"processes when memory runs out. The one that MPI names may be another.) {way}"
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WATCH, words],
        stdin=subprocess.PIPE,
        start_new_session=True,  # what ends the workers does not end it
    )

    def dismiss() -> None:
        with contextlib.suppress(OSError):
            process.communicate(b"well")

    return dismiss
