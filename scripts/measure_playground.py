"""Measure how live a playground is: ``python scripts/measure_playground.py --help``.

Without an address, the script serves this project's playground. With one, it measures whatever playground is
there, by the same protocol: give selectors for its canvas of the output, its epoch and its play button.

A page alone: at every repaint of the screen, the script looks at the canvas. A picture counts when it differs
from the one before. Epochs are read from the page. Times run from a click to the first picture that differs.

A class: each page has a window of its own, as people have a computer each. Where pages lie behind others in
one window, Chromium may let them paint only once a second. A timer in the page looks at the canvas ten times
a second, so no more than ten pictures a second are counted: a look at every repaint would cost nearly as much
as the painting. Nothing asks from outside while pictures are counted. All pages and the server share this
machine's cores, which is harder than a class is. The cores that other programs use meanwhile are printed,
too: figures from a busy machine say little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as app.py does

from playground.testing import chromium, serve
from playground.training.settings import Settings
from playground.training.trainer import Trainer

SPIRAL = {"dataset": "spiral", "hidden": "8-8-8-8-8-8"}
CONTROLS = ("gaussian", "xor", "simple", "diag", "split")

#: Runs in the page and keeps a list of the times at which the picture changed. It looks at each repaint, or,
#: with a pause of so many milliseconds, by a timer.
WATCH = """
([canvas, epoch, pause]) => {
  const watch = (window.watch = {changes: [], epochs: () =>
    Number(document.querySelector(epoch).textContent.replace(/[^0-9]/g, ""))});
  const small = new OffscreenCanvas(24, 24);
  const pen = small.getContext("2d", {willReadFrequently: true});
  const look = () => {
    pen.clearRect(0, 0, 24, 24);
    pen.drawImage(document.querySelector(canvas), 0, 0, 24, 24);
    return pen.getImageData(0, 0, 24, 24).data.reduce((hash, byte) => (Math.imul(hash, 31) + byte) | 0, 7);
  };
  let before = look();
  const check = () => {
    const now = look();
    if (now !== before) watch.changes.push(performance.now());
    before = now;
  };
  const repaints = () => {
    requestAnimationFrame(repaints);
    check();
  };
  if (pause) setInterval(check, pause); else repaints();
}
"""

#: Milliseconds until a page is ready: on the site, Python has to start in it.
PATIENCE = 120_000
#: Milliseconds between two looks at a page of a class.
CLASS_PAUSE = 95
#: Milliseconds that a class plays before pictures are counted: then the steps are compiled.
CLASS_WARM_UP = 6000


@dataclass
class Playground:
    """Where a playground is, and where in its page things are.

    Parameters
    ----------
    address : str
    circle, spiral : str
        What follows the address for the two cases: a 4-2 net on the circle, and 6 layers of 8 on the spiral.
    canvas, epoch, play : str
        Selectors.
    process : int, optional
        The server's process, if it is known.
    """

    address: str
    circle: str
    spiral: str
    canvas: str
    epoch: str
    play: str
    process: int | None = None


def new_context(browser):
    """A new person's browser. A page's own policy would stop playwright."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    context.set_default_timeout(PATIENCE)
    return context


def open_page(context, playground: Playground, query: str):
    """A page of the playground, and the seconds until it shows a picture and can be clicked."""
    page = context.new_page()
    began = time.perf_counter()
    page.goto(playground.address + query, wait_until="commit")
    shown = """([canvas, play]) => {
        const [c, p] = [document.querySelector(canvas), document.querySelector(play)];
        if (!c || !c.width || !p || p.disabled) return false;
        const pen = new OffscreenCanvas(8, 8).getContext("2d");
        pen.drawImage(c, 0, 0, 8, 8);
        return pen.getImageData(0, 0, 8, 8).data.some((byte) => byte);
    }"""
    page.wait_for_function(shown, arg=[playground.canvas, playground.play], polling=10)
    return page, time.perf_counter() - began


def until_it_shows(page, action) -> float:
    """Milliseconds from an action in the page to the first changed picture."""
    before = page.evaluate("() => performance.now()")
    action()
    page.wait_for_function("(before) => watch.changes.at(-1) > before", arg=before, polling=5)
    return page.evaluate("(before) => watch.changes.find((at) => at > before) - before", before)


def measure_one(browser, playground: Playground, query: str, seconds: float) -> Iterator[tuple[str, float]]:
    """The figures of one page that is alone."""
    context = new_context(browser)
    page, ready = open_page(context, playground, query)
    yield "ready (s)", ready
    page.wait_for_timeout(1500)
    page.evaluate(WATCH, [playground.canvas, playground.epoch, 0])
    play = page.locator(playground.play)
    yield "click play to first picture (ms)", until_it_shows(page, lambda: play.dispatch_event("click"))
    page.wait_for_function("watch.epochs() > 0")  # Python is there
    page.wait_for_timeout(6000)  # until the steps are compiled
    cpu, start = _cpu_seconds(playground.process), time.perf_counter()
    pictures, epochs = rates(page, seconds)
    yield "pictures/s", pictures
    yield "epochs/s", epochs
    yield "server CPU (cores)", (_cpu_seconds(playground.process) - cpu) / (time.perf_counter() - start)
    play.dispatch_event("click")  # pause, so that a changed picture is the control's doing
    page.wait_for_timeout(1000)
    delays = []
    for name in CONTROLS:
        choice = page.get_by_role("radio", name=name, exact=True)
        if choice.count():
            page.wait_for_timeout(400)
            delays.append(until_it_shows(page, lambda choice=choice: choice.dispatch_event("click")))
    if delays:
        yield "a control's effect shown: median (ms)", statistics.median(delays)
        yield "a control's effect shown: longest (ms)", max(delays)
    context.close()


def rates(page, seconds: float) -> tuple[float, float]:
    """Pictures and epochs a second."""
    state = "() => [performance.now(), watch.changes.length, watch.epochs()]"
    at0, pictures0, epochs0 = page.evaluate(state)
    page.wait_for_timeout(1000 * seconds)
    at1, pictures1, epochs1 = page.evaluate(state)
    return 1000 * (pictures1 - pictures0) / (at1 - at0), 1000 * (epochs1 - epochs0) / (at1 - at0)


def measure_class(
    browser, playground: Playground, people: int, seconds: float
) -> Iterator[tuple[str, float]]:
    """Pages of a whole class, each in a window of its own: each plays, and then each is paused."""
    contexts = [new_context(browser) for _ in range(people)]
    opened = [open_page(context, playground, playground.circle) for context in contexts]
    pages = [page for page, _ in opened]
    yield "ready: longest (s)", max(ready for _, ready in opened)
    for page in pages:
        page.evaluate(WATCH, [playground.canvas, playground.epoch, CLASS_PAUSE])
        page.locator(playground.play).dispatch_event("click")
    pages[0].wait_for_timeout(CLASS_WARM_UP)
    state = "() => [performance.now(), watch.changes.length, watch.epochs()]"
    before = [page.evaluate(state) for page in pages]
    (busy, own), start = busy_seconds(playground.process), time.perf_counter()
    pages[0].wait_for_timeout(1000 * seconds)
    took = time.perf_counter() - start
    cores = [
        (now - then) / took for now, then in zip(busy_seconds(playground.process), (busy, own), strict=True)
    ]
    after = [page.evaluate(state) for page in pages]
    shares = [
        (1000 * (p1 - p0) / (t1 - t0), 1000 * (e1 - e0) / (t1 - t0))
        for (t0, p0, e0), (t1, p1, e1) in zip(before, after, strict=True)
    ]
    yield "pictures/s each: fewest", min(pictures for pictures, _ in shares)
    yield "pictures/s each: median", statistics.median(pictures for pictures, _ in shares)
    yield "epochs/s each: fewest", min(epochs for _, epochs in shares)
    yield "epochs/s each: most", max(epochs for _, epochs in shares)
    yield "CPU of the browser and the server (cores)", cores[1]
    yield "CPU of other programs (cores)", cores[0] - cores[1]
    paused = """([play, epoch]) => new Promise((done) => {
        const began = performance.now();
        document.querySelector(play).click();
        let [last, since] = [watch.epochs(), performance.now()];
        const check = () => {
          if (watch.epochs() !== last) [last, since] = [watch.epochs(), performance.now()];
          if (performance.now() - since > 700) done(since - began); else requestAnimationFrame(check);
        };
        check();
    })"""
    delays = [page.evaluate(paused, [playground.play, playground.epoch]) for page in pages]
    yield "pause until the epoch stands still: longest (s)", max(delays) / 1000
    for context in contexts:
        context.close()


async def raw_clients(
    address: str, people: int, seconds: float, address_of_run: dict[str, str]
) -> dict[str, float]:
    """A class without browsers: each client takes a picture, waits 12 ms as if it painted, and asks again."""
    import websockets

    start = asyncio.Event()
    results: list[tuple[float, float, float]] = []

    async def client() -> None:
        url = address.replace("http", "ws", 1) + "/live"
        async with websockets.connect(url, max_size=None, compression=None, origin=address) as socket:

            async def say(**command) -> None:
                await socket.send(json.dumps(command))

            async def picture() -> dict:
                while True:
                    message = await asyncio.wait_for(socket.recv(), 60)
                    header = json.loads(message[4 : 4 + struct.unpack("<I", message[:4])[0]])
                    if header["kind"] == "picture":
                        await asyncio.sleep(0.012)
                        await say(do="ready")
                        return header

            await say(do="open", run=None, address=address_of_run)
            await say(do="ready")
            await picture()
            await start.wait()
            await say(do="play")
            warm = time.perf_counter() + 5
            while time.perf_counter() < warm:
                first = await picture()
            began, count = time.perf_counter(), 0
            while time.perf_counter() < began + seconds:
                last, count = await picture(), count + 1
            took, asked = time.perf_counter() - began, time.perf_counter()
            await say(do="pause")
            while (await picture())["playing"]:
                pass
            epochs = last["epochs"] - first["epochs"]
            results.append((count / took, epochs / took, time.perf_counter() - asked))

    clients = [asyncio.create_task(client()) for _ in range(people)]
    await asyncio.sleep(0.5 + 0.1 * people)
    start.set()
    await asyncio.gather(*clients)
    pictures, epochs, pauses = zip(*results, strict=True)
    return {
        "pictures/s each: fewest": min(pictures),
        "epochs/s each: fewest": min(epochs),
        "epochs/s each: most": max(epochs),
        "pause: longest (s)": max(pauses),
    }


async def sessions_come_and_go(address: str, count: int, process: int) -> dict[str, float]:
    """Memory before and after many sessions, each of which plays for a moment, in MB."""
    figures = {}
    for done in range(count + 1):
        if done in (0, count // 2, count):
            await asyncio.sleep(2)
            figures[f"memory after {done} sessions (MB)"] = _memory(process)
        if done < count:
            await _visit(address)
    return figures


async def _visit(address: str) -> None:
    import websockets

    url = address.replace("http", "ws", 1) + "/live"
    async with websockets.connect(url, max_size=None, compression=None, origin=address) as socket:
        for command in ({"do": "open", "run": None, "address": {}}, {"do": "ready"}, {"do": "play"}):
            await socket.send(json.dumps(command))
        for _ in range(3):
            await asyncio.wait_for(socket.recv(), 60)
            await socket.send('{"do": "ready"}')


def trainer_alone(settings: Settings, seconds: float) -> dict[str, float]:
    """Epochs a second without any page: with compiled steps, and without."""
    figures = {}
    for name, how in (("eager", settings.changed({"compiled": "off"})[0]), ("compiled", settings)):
        trainer = Trainer(how)
        for _ in range(3):
            trainer.epoch()
        trainer.wait()
        trainer.epoch()
        before, began = trainer.epochs, time.perf_counter()
        while time.perf_counter() < began + seconds:
            trainer.run_for(0.01)
        figures[f"epochs/s, {name}"] = (trainer.epochs - before) / (time.perf_counter() - began)
    return figures


def _cpu_seconds(process: int | None) -> float:
    """The processor time that a process has used (Linux; NaN elsewhere)."""
    try:
        fields = _fields(process)
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _fields(process: int | str | None) -> list[str]:
    """What Linux tells of a process, from its state on."""
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()


def busy_seconds(server: int | None) -> tuple[float, float]:
    """The processor time of this machine, and that of this process, the browser and the server (Linux)."""
    try:
        spent = [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return float("nan"), float("nan")
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            parents[int(path.name)] = int(_fields(path.name)[1])
    own = {os.getpid(), *([server] if server else [])}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    busy = (sum(spent) - spent[3] - spent[4]) / os.sysconf(
        "SC_CLK_TCK"
    )  # all but idle and waiting for a disk
    return busy, sum(_cpu_seconds(process) for process in own & {*parents})


def _memory(process: int) -> float:
    """The memory of a process in MB (Linux)."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def _served(arguments: argparse.Namespace) -> Iterator[Playground]:
    selectors = {"canvas": arguments.canvas, "epoch": arguments.epoch, "play": arguments.play}
    cases = {"circle": arguments.circle, "spiral": arguments.spiral}
    if arguments.address:
        yield Playground(arguments.address.rstrip("/"), **cases, **selectors)
        return
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with serve(log=log) as (address, process):
            yield Playground(address, **cases, **selectors, process=process)
        _print("the server's log", [("tracebacks", log.read_text().count("Traceback"))])


def _print(title: str, figures) -> None:
    print(title)
    for name, value in figures:
        print(f"  {name:52} {value:9.3f}", flush=True)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", help="of another playground; default: serve this one")
    parser.add_argument("--circle", default="/", help="what follows the address for a 4-2 net on the circle")
    parser.add_argument(
        "--spiral",
        default="/?" + "&".join(f"{k}={v}" for k, v in SPIRAL.items()),
        help="the same for 6 x 8 on the spiral",
    )
    parser.add_argument("--canvas", default="canvas[data-canvas=plane]")
    parser.add_argument("--epoch", default="[data-figure=epochs]")
    parser.add_argument("--play", default="[data-do=play]")
    parser.add_argument(
        "--seconds", type=float, default=10, help="how long pictures are counted (default: 10)"
    )
    parser.add_argument("--people", default="1,2,5,10,20", help="sizes of a class; empty: none")
    parser.add_argument(
        "--parts", default="trainer,page,raw,class,memory", help="what to measure (default: %(default)s)"
    )
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    people = [int(count) for count in arguments.people.split(",") if count]
    ours = arguments.address is None
    if ours and "trainer" in parts:
        for name, settings in (("circle", Settings()), ("spiral 6 x 8", Settings().changed(SPIRAL)[0])):
            _print(f"trainer alone, {name}", trainer_alone(settings, arguments.seconds / 2).items())
    with _served(arguments) as playground:
        time.sleep(3)
        if {"page", "class"} & {*parts}:
            with chromium() as browser:
                if "page" in parts:
                    for name in ("circle", "spiral"):
                        query = getattr(playground, name)
                        _print(
                            f"one page, {name}", measure_one(browser, playground, query, arguments.seconds)
                        )
                for count in people if "class" in parts else ():
                    _print(f"{count} pages", measure_class(browser, playground, count, arguments.seconds))
        if ours and "raw" in parts:
            for count in people:
                for name, run in (("circle", {}), ("spiral 6 x 8", SPIRAL)):
                    figures = asyncio.run(raw_clients(playground.address, count, arguments.seconds, run))
                    _print(f"{count} raw clients, {name}", figures.items())
        if ours and "memory" in parts and playground.process:
            figures = asyncio.run(sessions_come_and_go(playground.address, 200, playground.process))
            _print("200 sessions, one after the other", figures.items())


if __name__ == "__main__":
    main()
