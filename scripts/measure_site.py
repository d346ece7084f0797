"""Measure the site, beside TensorFlow Playground: ``python scripts/measure_site.py --help``.

Files come from this machine, and each page is that of a person who was never here before: nothing is kept
from an earlier visit. Bytes are counted where they leave the server. Each figure is the median of several
runs, which take turns: so whatever else this machine does meanwhile hits both playgrounds. The cores that
other programs used just before are printed, too: figures from a busy machine say little.

TensorFlow Playground is a folder of files, too, once it is built (by Node.js)::

    git clone https://github.com/tensorflow/playground && cd playground && npm install && npm run build

Then pass its folder ``dist`` as ``--reference``.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from measure_playground import SPIRAL, WATCH, Playground, busy_seconds, new_context, rates

from playground.testing import chromium

ROOT = Path(__file__).resolve().parent.parent
LECTURE = "05_computational_graph"
LOOK = 5  # seconds for which others are looked at
WARM_UP = 6000  # milliseconds that a playground plays before pictures are counted
SITE = {"canvas": "canvas[data-canvas=plane]", "epoch": "[data-figure=epochs]", "play": "[data-do=play]"}
REFERENCE = {"canvas": "#heatmap canvas", "epoch": "#iter-number", "play": "#play-pause-button"}
SPIRAL_THERE = "#dataset=spiral&networkShape=8,8,8,8,8,8"

#: What is measured, and what is wanted.
GOALS = {
    "front page readable (s)": "≤ 1",
    "playground touched (s)": "≤ 2",
    "first Play, its first epoch shown (s)": "≤ 8",
    "bytes until then (MB)": "≤ 15",
    "circle 4-2: epochs/s": "≥ 80",
    "circle 4-2: pictures/s": "≥ 50",
    "spiral 6 × 8: epochs/s": "≥ 25",
    "spiral 6 × 8: pictures/s": "≥ 50",
    "lecture opened to its first drawing (s)": "≤ 12",
    "bytes until then, lecture (MB)": "≤ 30",
}
IS_KERNEL_READY = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"


class Server(ThreadingHTTPServer):
    """Sends a folder of files, and counts the bytes."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
        self.sent = 0


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # as servers do, it keeps a connection open

    def copyfile(self, source, outputfile) -> None:
        self.server.sent += Path(source.name).stat().st_size  # type: ignore[attr-defined]
        super().copyfile(source, outputfile)

    def log_message(self, *_) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, Server]]:
    """Serve a folder while the context lasts; its address, and the server."""
    with Server(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def new_page(browser):
    """A page of a new person."""
    context = new_context(browser)
    try:
        yield context.new_page()
    finally:
        context.close()


def seconds_until(page, condition: str, given=None) -> float:
    """Seconds from the page's beginning until something is so in it."""
    page.wait_for_function(condition, arg=given, polling=20)
    return page.evaluate("performance.now() / 1000")


def front(browser, address: str) -> Iterator[tuple[str, float]]:
    """The front page, from the first moment that shows something."""
    with new_page(browser) as page:
        page.goto(address, wait_until="commit")
        painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        page.wait_for_function(f"{painted} > 0")
        yield "front page readable (s)", page.evaluate(painted) / 1000


def first_play(browser, playground: Playground, server: Server, touched: str) -> Iterator[tuple[str, float]]:
    """The first visit: until the controls answer, and until the first epoch is shown."""
    before = server.sent
    with new_page(browser) as page:
        page.goto(playground.address + playground.circle, wait_until="commit")
        yield "playground touched (s)", seconds_until(page, touched)
        page.locator(playground.play).dispatch_event("click")
        learned = "epoch => Number(document.querySelector(epoch).textContent.replace(/[^0-9]/g, '')) > 0"
        yield "first Play, its first epoch shown (s)", seconds_until(page, learned, playground.epoch)
        yield "bytes until then (MB)", (server.sent - before) / 1e6


def playing(browser, playground: Playground, seconds: float) -> Iterator[tuple[str, float]]:
    """How fast it learns, and how often this is painted."""
    for name, query in (("circle 4-2", playground.circle), ("spiral 6 × 8", playground.spiral)):
        with new_page(browser) as page:
            page.goto(playground.address + query)
            page.wait_for_timeout(1000)
            page.evaluate(WATCH, [playground.canvas, playground.epoch, 0])
            page.locator(playground.play).dispatch_event("click")
            page.wait_for_function("watch.epochs() > 0")
            page.wait_for_timeout(WARM_UP)
            pictures, epochs = rates(page, seconds)
            yield f"{name}: epochs/s", epochs
            yield f"{name}: pictures/s", pictures


def lecture(browser, address: str, server: Server) -> Iterator[tuple[str, float]]:
    """A lecture that is opened, and run as soon as its kernel is there."""
    before = server.sent
    with new_page(browser) as page:
        page.goto(f"{address}/lab/lab/index.html?path={LECTURE}.ipynb", wait_until="commit")
        page.wait_for_function(f"() => window.jupyterapp && {IS_KERNEL_READY}")
        page.evaluate("() => void jupyterapp.commands.execute('notebook:run-all-cells')")
        drawn = "document.querySelector('.jp-OutputArea svg .node')"
        yield "lecture opened to its first drawing (s)", seconds_until(page, drawn)
        yield "bytes until then, lecture (MB)", (server.sent - before) / 1e6


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site", help="folder of `make site`")
    parser.add_argument("--reference", type=Path, help="folder of TensorFlow Playground: see above")
    parser.add_argument("--times", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument(
        "--seconds", type=float, default=10, help="for which pictures are counted (default: 10)"
    )
    parser.add_argument("--without-lecture", action="store_true", help="measure the playground only")
    options = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def measure(where: str, figures: Iterator[tuple[str, float]]) -> None:
        for name, value in figures:
            found[where][name].append(value)
            print(f"{where:10} {name:42} {value:8.2f}", flush=True)

    before, _ = busy_seconds(None)
    time.sleep(LOOK)
    others = (busy_seconds(None)[0] - before) / LOOK
    with chromium() as browser:
        for _ in range(options.times):
            with served(options.site) as (address, server):
                spiral = "?" + "&".join(f"{name}={value}" for name, value in SPIRAL.items())
                here = Playground(f"{address}/playground/", "", spiral, **SITE)
                measure("site", front(browser, address))
                touched = "document.querySelector('.tiles button')"
                measure("site", first_play(browser, here, server, touched))
                measure("site", playing(browser, here, options.seconds))
                if not options.without_lecture:
                    measure("site", lecture(browser, address, server))
            if options.reference:
                with served(options.reference) as (address, server):
                    there = Playground(f"{address}/", "", SPIRAL_THERE, **REFERENCE)
                    touched = "document.querySelector('#heatmap canvas')"
                    measure("reference", first_play(browser, there, server, touched))
                    measure("reference", playing(browser, there, options.seconds))
    print(f"\n{'':42} {'site':>8} {'goal':>8} {'TensorFlow Playground':>24}")
    for name, goal in GOALS.items():
        cells = [
            f"{statistics.median(found[where][name]):.2f}" if found[where][name] else "–"
            for where in ("site", "reference")
        ]
        print(f"{name:42} {cells[0]:>8} {goal:>8} {cells[1]:>24}")
    print(f"Cores that other programs used just before: {others:.1f}")


if __name__ == "__main__":
    main()
