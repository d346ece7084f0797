"""The app in a real browser, for tests, measurements and pictures: one server, one headless Chromium."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["chromium", "find_chromium", "serve"]

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
def serve(*options: str) -> Iterator[tuple[str, int]]:
    """Serve the app on a free port while the context lasts.

    Parameters
    ----------
    *options : str
        More options for ``streamlit run``.

    Yields
    ------
    tuple of str and int
        The app's address and the server's process id.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", "--server.headless=true", *options]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(APP.parent), os.environ.get("PYTHONPATH", "")]),
    }
    with TemporaryFile("w+") as log:
        server = subprocess.Popen(command, cwd=APP.parent, env=environment, stdout=log, stderr=log)
        try:
            if not _becomes_healthy(f"http://127.0.0.1:{port}/_stcore/health", server):
                log.seek(0)
                raise RuntimeError(f"the app's server does not answer; it said:\n{log.read()}")
            yield f"http://127.0.0.1:{port}", server.pid
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _becomes_healthy(url: str, server: subprocess.Popen, seconds: float = 60) -> bool:
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
