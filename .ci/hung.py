"""A pytest plugin: the test that a process hung in is tried once more, in a new process.

pytest-rerunfailures tries a test again that failed. It leaves one alone whose process died, as that of a test
that hangs does (`faulthandler_timeout`), though pytest-xdist gives the rest of its file, this test too, to a
new process.
"""

from __future__ import annotations

import pytest

died: list[str] = []


@pytest.hookimpl(trylast=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport, sched) -> None:
    """Say that a test will run again, if a new process may still be started for it."""
    died.append(crashitem)
    if len(died) <= int(sched.config.option.maxworkerrestart or 0):
        report.outcome = "rerun"  # type: ignore[assignment]
