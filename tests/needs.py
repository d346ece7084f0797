"""What some tests need and a machine may lack: they are left out there, and one line says how many and why.

A test says what it needs by the fixture that it asks for, such as `torch`, itself or through another fixture.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from playground.testing import find_chromium, find_nginx

# The files of the MNIST data set: where NEEDLE_DATA_DIR says, or beside the checkout.
MNIST = Path(os.environ.get("NEEDLE_DATA_DIR", Path(__file__).parents[2] / "shared" / "data")) / "mnist"


@dataclass(frozen=True)
class Need:
    """Something that a test may need: what it is called, whether it is here, and how to get it."""

    name: str
    is_here: Callable[[], bool]
    remedy: str
    ci_can_install: bool = True


# By fixture.
NEEDS = {
    "torch": Need("torch", lambda: find_spec("torch") is not None, "pip install torch"),
    "browser": Need("Chromium", lambda: find_chromium() is not None, "install Chromium or Chrome"),
    "nbgrader": Need("nbgrader", lambda: find_spec("nbgrader") is not None, "pip install nbgrader"),
    "mpi": Need("mpi4py", lambda: find_spec("mpi4py") is not None, "pip install -e '.[mpi]'"),
    "nginx": Need("nginx", lambda: find_nginx() is not None, "apt install nginx-light"),
    "mnist": Need(
        "MNIST", MNIST.is_dir, "set NEEDLE_DATA_DIR to a folder with mnist/ in it", ci_can_install=False
    ),
}


class LeavesOut:
    """A pytest plugin that leaves out the tests that need what is not here. In CI, the run fails then."""

    def __init__(self, needs: dict[str, Need] = NEEDS):
        self.missing = {fixture: need for fixture, need in needs.items() if not need.is_here()}
        self.counts: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)  # of the tests that -m and -k have chosen
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen, left_out = [], []
        for item in items:
            lacks = self.missing.keys() & getattr(item, "fixturenames", ())
            self.counts.update(lacks)
            (left_out if lacks else chosen).append(item)
        if left_out:
            items[:] = chosen
            config.hook.pytest_deselected(items=left_out)

    @pytest.hookimpl(optionalhook=True)  # pytest-xdist: every worker has collected the same tests
    def pytest_testnodedown(self, node, error) -> None:
        self.counts = Counter(getattr(node, "workeroutput", {}).get("left_out", self.counts))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):  # this is a worker of pytest-xdist
            session.config.workeroutput["left_out"] = dict(self.counts)
        elif self.fails():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def fails(self) -> bool:
        return "CI" in os.environ and any(self.missing[fixture].ci_can_install for fixture in self.counts)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.counts:
            parts = [
                f"{count:,} that need{'s' * (count == 1)} {self.missing[fixture].name} "
                f"({self.missing[fixture].remedy})"
                for fixture, count in self.counts.items()
            ]
            fails = " In CI, that is a failure." if self.fails() else ""
            terminalreporter.write_line(f"Tests left out: {'; '.join(parts)}.{fails}", red=bool(fails))
