"""The budget of processor time: no file of the fast suite takes more than its share of the whole.

What is counted is the time that processors worked for a file's tests, in this process and in the processes
that it started and that have ended, not the time that passed: a busy machine changes only the latter. A
share of the whole suite, rather than seconds, means the same on a slow machine and on a fast one. The time in
which Numba compiles kernels is left out: the first file that needs a kernel would pay for all others.
"""

from __future__ import annotations

import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from numba.core import event

# There are some eighty files. The dearest take 8 to 9 %: all operators on the simulated GPU, and the whole
# language of the Explorer. A third above that leaves room for measuring, and for little else.
SHARE = 0.12


def processor_time() -> float:
    """Seconds that processors have worked for this process and for its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Compiling(event.Listener):
    """Adds up the processor time in which Numba compiles, in every thread."""

    def __init__(self):
        self.seconds = 0.0
        self.thread = threading.local()

    def on_start(self, event) -> None:
        self.thread.starts = [*getattr(self.thread, "starts", ()), time.thread_time()]

    def on_end(self, event) -> None:
        start = self.thread.starts.pop()
        if not self.thread.starts:  # not a function that another one calls
            self.seconds += time.thread_time() - start


def over_budget(seconds: Mapping[str, float], share: float = SHARE) -> dict[str, str]:
    """What is wrong with each file that takes more than its share: a sentence that says what to do."""
    whole = sum(seconds.values())
    return {
        file: f"{file} took {spent:.1f} s of processor time, {spent / whole:.1%} of the {whole:.0f} s of all "
        f"tests; its share is {share:.0%}. Make its tests cheaper, or mark the heavy ones with "
        "pytest.mark.slow: `make test-slow` runs those."
        for file, spent in sorted(seconds.items(), key=lambda item: -item[1])
        if spent > share * whole
    }


class Budget:
    """A pytest plugin that adds up each file's processor time and fails a run of the whole fast suite.

    A file over its share is reported like one more test of it that failed.
    """

    def __init__(self, config: pytest.Config):
        self.seconds: Counter[str] = Counter()
        self.compiling = Compiling()
        event.register("numba:compile", self.compiling)
        # Shares mean something only when all fast tests run: no file, test or marker was picked.
        picked = (
            config.option.keyword or config.option.markexpr != "not slow" or config.getoption("lf", False)
        )
        self.judges = config.args_source is config.ArgsSource.TESTPATHS and not picked

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = processor_time() - self.compiling.seconds
        result = yield
        self.seconds[item.nodeid.partition("::")[0]] += processor_time() - self.compiling.seconds - before
        return result

    def pytest_unconfigure(self) -> None:
        event.unregister("numba:compile", self.compiling)

    @pytest.hookimpl(optionalhook=True)  # pytest-xdist: a worker has ended
    def pytest_testnodedown(self, node, error) -> None:
        self.seconds.update(getattr(node, "workeroutput", {}).get("seconds", {}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):  # this is a worker of pytest-xdist
            session.config.workeroutput["seconds"] = dict(self.seconds)
        elif self.judges and not (session.shouldstop or session.shouldfail):
            for file, sentence in over_budget(self.seconds).items():
                name = f"{file}::budget"
                report = pytest.TestReport(name, (file, 0, name), {}, "failed", sentence, "call")
                session.config.hook.pytest_runtest_logreport(report=report)
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.judges:
            (file, most), *_ = self.seconds.most_common(1) or [("no file", 0.0)]
            whole = sum(self.seconds.values())
            terminalreporter.write_line(
                f"Processor time of the tests: {whole:.0f} s; most in {file} ({most / max(whole, 1e-9):.1%})."
            )
