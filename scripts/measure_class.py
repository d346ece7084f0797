"""Measure a whole class at one address: ``python scripts/measure_class.py --help``.

It serves the playground as `make class` does, by several processes behind nginx. Each session speaks the
page's protocol: it plays, takes a picture, waits as long as a browser paints, and asks for the next. It keeps
its backup, and comes back with it when its line breaks. In the middle, one process is killed.

All sessions run in this script, on the machine that serves them, which is harder than a class is. The cores
that other programs use meanwhile are printed, too: figures from a busy machine say little.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import secrets
import signal
import statistics
import struct
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from serve_class import Class, check_processes, serve_class
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

#: Seconds that a browser needs to paint a picture.
PAINTS = 0.012
#: Seconds from a broken line to the next try, as in the page.
PAUSE = 0.25
#: Seconds in which a class arrives, and then plays before anything is counted: meanwhile steps are compiled.
ARRIVING = 10.0
WARM_UP = 45.0
#: Seconds for which counting waits, after that, for sessions that have learned nothing yet.
MOST_WARM_UP = 60.0
#: What a session runs: most take the default, others something larger.
RUNS = ({}, {}, {"dataset": "xor"}, {"dataset": "spiral", "hidden": "8-8-8", "inputs": "x1,x2,sin(x1)"})
#: Seconds from one click of a session's to the next. It changes the learning rate, which starts nothing anew.
CLICKS = 8.0


class Session:
    """A page without a browser.

    Attributes
    ----------
    pictures : list of tuple
        (when it came, epochs) of each.
    ready : float
        Seconds from its start to its first picture.
    taken, shown : list of float
        Seconds from each change of a control until the process has told that it took it, and until a picture
        shows what it does.
    gaps : list of tuple
        Of each broken line: (when it broke, seconds to the next picture, epochs before, epochs then).
    """

    def __init__(self, address: str, settings: dict[str, str]) -> None:
        self._url = address.replace("http", "ws", 1) + "/live"
        self._options = {"origin": address, "max_size": None, "compression": None, "proxy": None}
        self._cookie = {"Cookie": f"needle={secrets.token_hex(16)}"}  # the front would give it one
        self._settings = settings
        self._run: str | None = None
        self._token: str | None = None
        self._backup: tuple[bytes, bool] | None = None
        self._plays = False
        self._asked: tuple[str, float] | None = None  # the learning rate that it chose, and when
        self._is_taken = False
        self._click: asyncio.Task | None = None
        self._next_click = float("inf")
        self._broke: tuple[float, int] | None = None
        self.pictures: list[tuple[float, int]] = []
        self.ready = float("nan")
        self.taken: list[float] = []
        self.shown: list[float] = []
        self.gaps: list[tuple[float, float, int, int]] = []

    async def live(self) -> None:
        """Open, play, click and come back, until it is cancelled."""
        began = time.perf_counter()
        while True:
            try:
                async with connect(self._url, additional_headers=self._cookie, **self._options) as socket:
                    await self._say(
                        socket, do="open", run=self._run, token=self._token, address=self._settings
                    )
                    while True:
                        await self._take(socket, await socket.recv(), began)
            except (ConnectionClosed, InvalidHandshake, OSError):
                if self._broke is None:
                    self._broke = time.perf_counter(), self.pictures[-1][1] if self.pictures else 0
                self._asked, self._is_taken = None, False
                await asyncio.sleep(PAUSE)

    async def _say(self, socket, **command) -> None:
        await socket.send(json.dumps(command))

    async def _take(self, socket, message: bytes, began: float) -> None:
        (length,) = struct.unpack_from("<I", message)
        header = json.loads(message[4 : 4 + length])
        now = time.perf_counter()
        match header["kind"]:
            case "welcome":
                self._run, self._token = header["run"], header["token"]
                if header["is_lost"] and self._backup:
                    await socket.send(self._backup[0])
                    if self._backup[1]:
                        await self._say(socket, do="play")
                await self._say(socket, do="ready")
            case "backup":
                ((_, _, (size,)),) = header["arrays"]
                self._backup = (message[4 + length :][:size], header["playing"]) if size else None
            case "scene" if self._asked and header["settings"]["learning_rate"] == self._asked[0]:
                if not self._is_taken:
                    self.taken.append(now - self._asked[1])
                self._is_taken = True
            case "picture":
                if not self.pictures:
                    self.ready = now - began
                    self._next_click = now + CLICKS * (0.5 + secrets.randbelow(100) / 100)
                if self._broke:
                    at, epochs = self._broke
                    self.gaps.append((at, now - at, epochs, header["epochs"]))
                    self._broke = None
                self.pictures.append((now, header["epochs"]))
                if self._asked and self._is_taken:
                    self.shown.append(now - self._asked[1])
                    self._asked, self._is_taken = None, False
                if not self._plays:
                    await self._say(socket, do="play")
                    self._plays = True
                if now > self._next_click and not self._asked:
                    self._next_click = now + CLICKS
                    self._click = asyncio.create_task(self._choose(socket))
                await asyncio.sleep(PAINTS)
                await self._say(socket, do="ready")

    async def _choose(self, socket) -> None:
        """Choose another learning rate, at any moment between two pictures."""
        await asyncio.sleep(secrets.randbelow(300) / 1000)
        self._asked = secrets.choice(("0.01", "0.02", "0.03", "0.05")), time.perf_counter()
        with suppress(ConnectionClosed):
            await self._say(socket, do="set", values={"learning_rate": self._asked[0]})

    @property
    def has_learned(self) -> bool:
        """Whether a picture has shown an epoch."""
        return bool(self.pictures) and self.pictures[-1][1] > 0

    def rates(self, begin: float, end: float) -> tuple[float, float]:
        """Pictures and epochs a second between two moments."""
        within = [epochs for at, epochs in self.pictures if begin <= at < end]
        learned = sum(max(0, after - before) for before, after in itertools.pairwise(within))
        return len(within) / (end - begin), learned / (end - begin)


async def measure(house: Class, people: int, seconds: float) -> list[tuple[str, str]]:
    """A class plays; then one process is killed, and the class plays on. Returns the rows of a table."""
    alone = {process: _megabytes(process) for process in house.processes}
    sessions = [Session(house.address, RUNS[number % len(RUNS)]) for number in range(people)]
    tasks = []
    for session in sessions:
        tasks.append(asyncio.create_task(session.live()))
        await asyncio.sleep(ARRIVING / people)
    await asyncio.sleep(WARM_UP)
    latest = time.perf_counter() + MOST_WARM_UP
    while time.perf_counter() < latest and not all(session.has_learned for session in sessions):
        await asyncio.sleep(0.1)

    rows = [("seconds until the first picture", _spread([session.ready for session in sessions]))]
    begin, spent = time.perf_counter(), _spent(house)
    await asyncio.sleep(seconds)
    end = time.perf_counter()
    used = {name: (after - spent[name]) / (end - begin) for name, after in _spent(house).items()}
    rates = [session.rates(begin, end) for session in sessions]
    rows += [
        ("pictures a second, each", _spread([pictures for pictures, _ in rates])),
        ("epochs a second, each", _spread([epochs for _, epochs in rates])),
        ("sessions without a picture", f"{sum(not pictures for pictures, _ in rates)}"),
        ("seconds until a control is taken", _spread([s for session in sessions for s in session.taken])),
        ("seconds until a picture shows it", _spread([s for session in sessions for s in session.shown])),
    ]
    memory = [_megabytes(process) for process in house.processes]
    more = sum(memory) - sum(alone.values())
    rows += [
        ("memory of a process, MB", _spread(memory)),
        ("the same before the class came, MB", _spread([*alone.values()])),
        ("memory for each session, MB", f"{more / people:.1f}"),
        ("memory of nginx, MB", f"{sum(map(_megabytes, _family(house.front))):.0f}"),
        *[(f"cores: {name}", f"{cores:.2f}") for name, cores in used.items()],
    ]

    killed = house.processes[0]
    os.kill(killed, signal.SIGKILL)
    at = time.perf_counter()
    await asyncio.sleep(max(10.0, seconds / 2))
    back = [(gap, before, after) for s in sessions for when, gap, before, after in s.gaps if when >= at - 1]
    late = [session.rates(time.perf_counter() - 5, time.perf_counter())[0] for session in sessions]
    others = [session for session in sessions if not any(when >= at - 1 for when, *_ in session.gaps)]
    meanwhile = [session.rates(at, at + 5)[0] for session in others]
    rows += [
        ("killed one process: sessions that were there", f"{len(back)}"),
        ("…, that began anew", f"{sum(after == 0 < before for _, before, after in back)}"),
        ("…, seconds to their next picture", _spread([gap for gap, _, _ in back])),
        ("…, epochs that they lost, in seconds of play", _spread(_lost(sessions, at))),
        ("…, pictures a second of the others, for 5 s", _spread(meanwhile)),
        ("sessions without a picture in the last 5 s", f"{sum(not pictures for pictures in late)}"),
    ]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return rows


def _lost(sessions: list[Session], at: float) -> list[float]:
    """For each session that lost its process: how long ago its last picture was where the run goes on."""
    found = []
    for session in sessions:
        for when, _, before, after in session.gaps:
            if when >= at - 1:
                earlier = [then for then, epochs in session.pictures if then < when and epochs <= after]
                found.append(when - earlier[-1] if earlier and after < before else 0.0)
    return found


def _spread(values: list[float]) -> str:
    if not values:
        return "none"
    return f"{min(values):8.2f}{statistics.median(values):8.2f}{max(values):8.2f}"


def _megabytes(process: int) -> float:
    """The memory of a process (Linux)."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _family(process: int) -> list[int]:
    """A process and its children (Linux)."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *map(int, children)]


def _spent(house: Class) -> dict[str, float]:
    """Seconds that processors have worked for each part of this, and for all else (Linux)."""
    whole = [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    parts = {
        "the playground": [child for process in house.processes for child in _family(process)],
        "nginx": _family(house.front),
        "these sessions": [os.getpid()],
    }
    spent = {name: sum(map(_seconds, processes)) for name, processes in parts.items()}
    busy = (sum(whole) - whole[3] - whole[4]) / os.sysconf("SC_CLK_TCK")
    return {**spent, "other programs": busy - sum(spent.values())}


def _seconds(process: int) -> float:
    """The processor time of a process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: one per processor")
    parser.add_argument("--seconds", type=float, default=30, help="how long is counted (default: 30)")
    arguments = parser.parse_args()
    if arguments.people < 1:
        parser.error(f"--people: at least 1, not {arguments.people}")
    check_processes(parser, arguments.processes)
    if not arguments.seconds > 0:
        parser.error(f"--seconds: more than 0, not {arguments.seconds:g}")
    with TemporaryDirectory() as folder, serve_class(arguments.processes, log=Path(folder)) as house:
        time.sleep(3)
        rows = asyncio.run(measure(house, arguments.people, arguments.seconds))
        said = "".join(path.read_text() for path in Path(folder).iterdir())
    print(
        f"{arguments.people} sessions, {arguments.processes} processes, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'':48}{'least':>8}{'median':>8}{'most':>8}")
    for name, figures in [*rows, ("tracebacks in what the processes said", str(said.count("Traceback")))]:
        print(f"{name:48}{figures if figures.startswith(' ') else figures.rjust(16)}")
    print(said[said.find("Traceback") :][:3000] if "Traceback" in said else "", end="")


if __name__ == "__main__":
    main()
