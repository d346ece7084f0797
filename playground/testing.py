"""Pages in a real browser, for tests, measurements and pictures: a server, and one headless Chromium."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["chromium", "find_chromium", "find_nginx", "free_port", "serve", "serve_files", "serving"]

APP = Path(__file__).parents[1] / "app.py"

#: A browser that stays on this machine and in the background.
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def serve(*options: str, log: Path | None = None) -> Iterator[tuple[str, int]]:
    """Serve the app on a free port while the context lasts.

    Parameters
    ----------
    *options : str
        More options for ``streamlit run``.
    log : Path, optional
        A file that gets what the server says.

    Yields
    ------
    tuple of str and int
        The app's address and the server's process id.
    """
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", "--server.headless=true", *options]
    address = f"http://127.0.0.1:{port}"
    with serving(command, f"{address}/_stcore/health", cwd=APP.parent, log=log) as pid:
        yield address, pid


@contextmanager
def serve_files(folder: Path, path: str = "") -> Iterator[str]:
    """Serve a folder of files under a path, such as ``/teaching/needle``, while the context lasts.

    Yields
    ------
    str
        The folder's address.
    """
    with TemporaryDirectory() as root:
        place = Path(root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path:
            place.symlink_to(folder.resolve())
        port = free_port()
        command = [sys.executable, "-m", "http.server", str(port), "--bind=127.0.0.1"]
        command.append(f"--directory={root if path else folder}")
        address = f"http://127.0.0.1:{port}{path}"
        with serving(command, f"{address}/", cwd=folder):
            yield address


def free_port() -> int:
    """A port of this machine that nobody listens on.

    It lies below those that a system gives to connections, so none of them takes it before it is used.
    """
    ports = range(10_000, 32_768)
    while True:
        port = secrets.choice(ports)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def serving(
    command: Sequence[str],
    health: str,
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[int]:
    """Run a server while the context lasts; this project can be imported in it.

    Parameters
    ----------
    command : sequence of str
    health : str
        The address that answers once the server is ready.
    cwd : Path
        The folder it is started in.
    environment : mapping, optional
        Environment variables for it, besides those of this process.
    log : Path, optional
        A file that gets what it says.

    Yields
    ------
    int
        The server's process id.

    Raises
    ------
    RuntimeError
        If it ends, or does not answer within two minutes. The message holds what it said.
    """
    path = os.pathsep.join([str(APP.parent), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": path, **(environment or {})}
    with open(log, "w+") if log else TemporaryFile("w+") as said:
        server = subprocess.Popen(command, cwd=cwd, env=variables, stdout=said, stderr=said)
        try:
            if not _becomes_healthy(health, server):
                said.seek(0)
                raise RuntimeError(f"the server at {health} does not answer; it said:\n{said.read()}")
            yield server.pid
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _becomes_healthy(url: str, server: subprocess.Popen, seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return True
        except OSError:
            time.sleep(0.05)
    return False


def find_chromium() -> str | None:
    """The path of an installed Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


def find_nginx() -> str | None:
    """The path of an installed nginx, or None."""
    return shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium, through playwright, while the context lasts."""
    from playwright.sync_api import sync_playwright

    executable = find_chromium()
    if executable is None:
        raise RuntimeError("no Chromium found; install the package chromium, or Chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
