"""Measure how much memory lectures need: ``python scripts/measure_lectures.py 05 16`` (default: all).

Each lecture runs from top to bottom on a fresh kernel, without answers to its exercises. What is printed is
the most memory that its kernel held at once, with the processes that the kernel started (Linux).
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
#: Seconds from one look at the memory to the next.
LOOK = 0.2


def peak(path: Path) -> tuple[float, float]:
    """The most memory that a lecture's kernel held, in MB, and the seconds that it ran."""
    client = NotebookClient(nbformat.read(path, as_version=4), timeout=1200, allow_errors=True)
    most, ends, begun = 0.0, threading.Event(), time.monotonic()

    def look(process: int) -> None:
        nonlocal most
        while not ends.wait(LOOK):
            most = max(most, sum(map(megabytes, family(process))))

    client.on_cell_start = lambda **_: watcher.is_alive() or watcher.start()
    watcher = threading.Thread(target=lambda: look(client.km.provisioner.pid))
    try:
        client.execute(cwd=str(path.parent))
    finally:
        ends.set()
        watcher.join()
    return most, time.monotonic() - begun


def family(process: int) -> list[int]:
    """A process and all that it has started, and they have."""
    found = [process]
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def megabytes(process: int) -> float:
    """Its share of the memory: what it shares with others counts in part."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000
    return 0.0


def main() -> None:
    """Run the lectures, and print a line for each."""
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        if not sys.argv[1:] or path.name[:2] in sys.argv[1:]:
            most, seconds = peak(path)
            print(f"{path.stem:32}{most:6.0f} MB{seconds:7.0f} s", flush=True)


if __name__ == "__main__":
    main()
