"""The playground for a class, without Docker: ``make class PROCESSES=4``.

Several processes behind one address. It starts them, and nginx with the configuration of ``deploy/``. A
process that ends is started again. Ctrl-C ends them all.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from playground.testing import APP, find_nginx, free_port, serving

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
#: Seconds from one look at whether all processes are there to the next.
LOOK = 0.25


@dataclass
class Class:
    """Processes of the playground behind one address.

    Attributes
    ----------
    address : str
    front : int
        The process of nginx.
    processes : list of int
        Those of the playground. When one has ended, the next one takes its place in the list.
    """

    address: str
    front: int
    processes: list[int]


@contextmanager
def serve_class(
    count: int, *, port: int | None = None, host: str = "127.0.0.1", log: Path | None = None
) -> Iterator[Class]:
    """Serve the playground by so many processes behind nginx while the context lasts.

    Parameters
    ----------
    count : int
    port : int, optional
        Where people find it. Default: any that is free.
    host : str
        The address of this machine to listen at; ``0.0.0.0`` is all of them.
    log : Path, optional
        A folder that gets what each process says.

    Raises
    ------
    RuntimeError
        If nginx is not installed or cannot listen at `host` and `port`, or something does not start. The
        message says why.
    """
    nginx = find_nginx()
    if nginx is None:
        raise RuntimeError(
            "No nginx was found, which stands before the processes. Install it (apt install nginx-light, "
            "brew install nginx), use deploy/compose.yaml, or serve one process: make app"
        )
    port = port or free_port()
    _check_free(host, port)
    hundred = _free_hundred(count)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        settings = {
            "PROCESSES": count,
            "SERVER": f"127.0.0.1:{hundred}%02d",
            "LIST": f"{folder}/servers.conf",
        }
        environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
        subprocess.run([DEPLOY / "servers.sh"], env=environment, check=True)
        text = (DEPLOY / "nginx.conf").read_text().replace("listen 8500;", f"listen {host}:{port};")
        Path(folder, "nginx.conf").write_text(text)
        Path(folder).chmod(0o711)  # nginx that root starts writes long requests there as somebody else

        ends = threading.Event()
        address = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
        house = Class(address, 0, [0] * count)
        keepers = [
            _Keeper(house, place, hundred * 100 + place + 1, ends, log and log / f"{place + 1}")
            for place in range(count)
        ]
        stack.callback(lambda: [keeper.join() for keeper in keepers])
        stack.callback(ends.set)
        for keeper in keepers:
            keeper.start()
        for keeper in keepers:
            keeper.wait()
        where = ["-p", folder, "-c", f"{folder}/nginx.conf", "-e", "stderr"]
        command = [nginx, *where, "-g", f"daemon off; pid {folder}/pid;"]
        health = f"{address}/_stcore/health"
        house.front = stack.enter_context(
            serving(command, health, cwd=Path(folder), log=log and log / "front")
        )
        yield house


class _Keeper(threading.Thread):
    """Keeps one process alive."""

    def __init__(self, house: Class, place: int, port: int, ends: threading.Event, log: Path | None) -> None:
        super().__init__(daemon=True)
        self._house, self._place, self._port, self._ends, self._log = house, place, port, ends, log
        self._begun = threading.Event()
        self._trouble: Exception | None = None

    def run(self) -> None:
        options = [f"--server.port={self._port}", "--server.address=127.0.0.1", "--server.headless=true"]
        command = [sys.executable, "-m", "streamlit", "run", str(APP), *options]
        health = f"http://127.0.0.1:{self._port}/_stcore/health"
        try:
            for begin in itertools.count(1):
                if self._ends.is_set():
                    return
                log = self._log and Path(f"{self._log}.{begin}")
                try:
                    with serving(command, health, cwd=APP.parent, log=log) as process:
                        self._house.processes[self._place] = process
                        self._begun.set()
                        while not self._ends.wait(LOOK) and _is_there(process):
                            pass
                except RuntimeError as error:
                    if begin == 1:
                        self._trouble = error
                        return
                    if not self._ends.wait(LOOK):  # it was there before: it will come up when there is time
                        print(error, file=sys.stderr)
        finally:
            self._begun.set()

    def wait(self) -> None:
        """Wait until it is there; the error if it does not start."""
        self._begun.wait()
        if self._trouble:
            raise self._trouble


def _is_there(process: int) -> bool:
    """Whether a child of ours has not ended. It is not asked for its end: `serving` does that."""
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    return False


def _check_free(host: str, port: int) -> None:
    """Make sure that the front can listen there: if another server does, it would answer in its place."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as nginx does
            probe.bind((host, port))
    except OSError as error:
        raise RuntimeError(
            f"nginx cannot listen at {host}, port {port}: {error.strerror}. Name others by --host and --port"
        ) from None


def _free_hundred(count: int) -> int:
    """A number h so that nobody listens on the ports h01, h02, … of this machine."""
    for hundred in range(86, 327):
        with ExitStack() as stack, suppress(OSError):
            for place in range(1, count + 1):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", 100 * hundred + place))
            return hundred
    raise RuntimeError(f"No {count} ports beside each other are free on this machine.")


def check_processes(parser: argparse.ArgumentParser, count: int) -> None:
    """Refuse a number of processes for which there are no ports beside each other."""
    if not 1 <= count <= 99:
        parser.error(f"--processes: from 1 to 99, not {count}")


def main() -> None:
    """Serve a class until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: one per processor")
    parser.add_argument("--port", type=int, default=8500, help="default: %(default)s")
    parser.add_argument(
        "--host", default="127.0.0.1", help="0.0.0.0 lets other machines in (default: %(default)s)"
    )
    arguments = parser.parse_args()
    check_processes(parser, arguments.processes)
    if not 1 <= arguments.port <= 65535:
        parser.error(f"--port: from 1 to 65535, not {arguments.port}")
    for name in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: all that was started is ended
        if signal.getsignal(name) is signal.SIG_DFL:  # under nohup, a closed terminal ends nothing
            signal.signal(name, lambda *_: sys.exit())
    try:
        with serve_class(arguments.processes, port=arguments.port, host=arguments.host) as house:
            number = "1 process" if arguments.processes == 1 else f"{arguments.processes} processes"
            print(f"{number} behind {house.address} (Ctrl-C ends all)", flush=True)
            while _is_there(house.front):
                time.sleep(LOOK)
            raise RuntimeError("nginx has ended, and so all has; start it again")
    except RuntimeError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
