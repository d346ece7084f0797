"""The line of a page that has no server: a web worker runs Python in the page's browser and calls this.

It has no threads. Its loop gives the turns, and passes on what the page says.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any

from . import commands
from .runs import Run, Runs, Viewer

__all__ = ["Line"]

#: Seconds between two pictures, at least: a screen shows no more of them.
PICTURE = 1 / 60


class Line:
    """What the worker calls.

    Parameters
    ----------
    post : callable
        Takes a message (bytes) to the page.
    """

    def __init__(self, post: Callable[[bytes], None]) -> None:
        self._runs = Runs(has_thread=False, picture=PICTURE)
        self._new_viewer = lambda: Viewer(lambda message, latest=None: post(message))
        self._viewer = self._new_viewer()
        self._run: Run | None = None
        self.turn = self._runs.turn
        gc.freeze()  # what was imported stays: looking through it would take a picture's time

    def take(self, said: Any) -> None:
        """Do what the page says: JSON as text, or an array buffer of JavaScript, a run to import."""
        command = json.loads(said) if isinstance(said, str) else said.to_bytes()
        is_done = False

        def done(run: Run | None = self._run) -> None:
            nonlocal is_done
            self._run, is_done = run, True

        if self._run is None or (isinstance(command, dict) and command.get("do") == "open"):
            self._open(command, done)
        else:
            self._runs.command(self._run, self._viewer, command, done)
        while not is_done:
            self._runs.do_wishes()

    def _open(self, command: Any, done: Callable[..., None]) -> None:
        """Show the run of an address, in the place of the one that was shown before."""
        if self._run:
            self._runs.leave(self._run, self._viewer)
            self._viewer = self._new_viewer()
        address, name, token = commands.opening(command)
        self._runs.open(self._viewer, address, name, done, token)
