"""Workers of a lecture: what they exchange, what is said of mistakes, and that none of them stays behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from lectures import team as teams
from lectures.checking.attempt import StillRunning, time_limit
from lectures.team import NoMail, Threads, team

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def to_the_right(worker):
    worker.send(np.array([worker.rank]), (worker.rank + 1) % worker.size)
    return int(worker.receive((worker.rank - 1) % worker.size)[0])


def test_threads_pass_on_what_they_hold_and_count_it():
    threads = Threads(4)
    assert threads.run(to_the_right) == [3, 0, 1, 2]
    assert threads.sent == threads.received == [1, 1, 1, 1]
    assert Threads(1).run(to_the_right) == [0]


def test_each_worker_gets_its_item_and_there_may_be_fewer():
    got = Threads(4).run(lambda worker, item: (worker.rank, worker.size, item), "ab")
    assert got == [(0, 2, "a"), (1, 2, "b")]


def test_messages_are_copies_and_keep_their_order():
    def program(worker):
        if worker.rank == 0:
            numbers = np.zeros(2)
            for k in range(3):
                numbers[:] = k
                worker.send(numbers, 1)
            return None
        return [worker.receive(0).tolist() for _ in range(3)]

    assert Threads(2).run(program)[1] == [[0, 0], [1, 1], [2, 2]]


def waits_first(worker):
    came = worker.receive((worker.rank - 1) % worker.size)
    worker.send(came, (worker.rank + 1) % worker.size)


def waits_for_the_wrong_one(worker):
    worker.send(np.ones(2), (worker.rank + 1) % worker.size)
    worker.receive((worker.rank + 1) % worker.size)


def waits_for_one_that_has_ended(worker):
    if worker.rank == 2:
        worker.receive(1)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (waits_first, "worker 0 waits for a message from worker 3, and nobody .* no mail is under way"),
        (waits_for_the_wrong_one, "worker 0 waits for a message from worker 1, .*: other mail lies unread"),
        (waits_for_one_that_has_ended, "worker 2 waits for a message from worker 1, and nobody will send"),
    ],
)
def test_a_deadlock_is_a_sentence_at_once(program, words):
    began = time.monotonic()
    for _ in range(20):
        with pytest.raises(NoMail, match=words):
            Threads(4).run(program)
    assert time.monotonic() - began < 10


def test_who_breaks_off_is_told_and_not_those_who_wait_for_it():
    def program(worker):
        if worker.rank == 3:
            return 1 / 0
        return worker.receive(3)

    with pytest.raises(ZeroDivisionError):
        Threads(4).run(program)


@pytest.mark.parametrize(
    ("to", "error", "words"),
    [
        (4, ValueError, "worker 3 sends to worker 4, but the last one is 3"),
        (-1, ValueError, "worker 0 sends to worker -1"),
        (1.0, TypeError, "worker 0 sends to a float: needs a worker's number"),
        (True, TypeError, "sends to a bool"),
    ],
)
def test_a_message_to_nobody_is_refused(to, error, words):
    def program(worker):
        worker.send(np.ones(1), worker.rank + 1 if to == 4 else to)

    with pytest.raises(error, match=words):
        Threads(4).run(program)


def computes_for_ever(worker):
    while True:
        pass


def sends_for_ever(worker):
    while True:
        worker.send(np.ones(1), worker.rank)


def one_waits_while_the_other_computes(worker):
    if worker.rank == 0:
        worker.receive(1)
    computes_for_ever(worker)


@pytest.mark.parametrize("program", [computes_for_ever, sends_for_ever, one_waits_while_the_other_computes])
def test_threads_that_never_end_are_stopped_when_time_is_up(program):
    before = threading.active_count()
    with pytest.raises(StillRunning), time_limit(0.3):
        Threads(2).run(program)
    end = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_where_a_package_is_missing_threads_stand_in_and_say_why(monkeypatch):
    monkeypatch.setattr(teams, "find_spec", lambda name: None)
    made = team(3)
    assert repr(made) == "3 workers, each a thread of this process, since ipyparallel and mpi4py are missing."
    assert made.run(to_the_right) == [2, 0, 1]


def test_where_mpiexec_is_missing_it_is_installed_only_if_the_reader_says_so(monkeypatch):
    commands = []
    monkeypatch.setattr(teams, "find_spec", lambda name: object())
    monkeypatch.setattr(teams.shutil, "which", lambda *args, **kwargs: None)
    monkeypatch.setattr(teams.subprocess, "run", lambda command, **kwargs: commands.append(command))
    assert repr(team(2)).endswith("since the program mpiexec is missing.")
    assert commands == []
    team(2, install=True)
    assert [command[1:4] for command in commands] == [["-m", "pip", "install"]]


#: Programs in the place of mpiexec, by what is said of them. One starts two that do not know of one another.
PROGRAMS = {
    "MPI did not start them (it ended at once).": "exit 1",
    "{} belongs to another MPI than mpi4py uses.": 'shift 2\n"$@" & "$@" & wait',
}


@pytest.mark.slow
@pytest.mark.parametrize("why", PROGRAMS)
def test_where_mpiexec_does_not_do_its_work_threads_stand_in_and_say_why(mpi, monkeypatch, tmp_path, why):
    script = tmp_path / "mpiexec"
    script.write_text(f"#!/bin/sh\n{PROGRAMS[why]}\n")
    script.chmod(0o755)
    monkeypatch.setattr(teams, "mpiexec", lambda: str(script))
    made = team(2)
    assert repr(made) == f"2 workers, each a thread of this process, since {why.format(script)}"
    assert made.run(to_the_right) == [1, 0]


@pytest.mark.slow
def test_where_mpi_does_not_load_in_the_processes_threads_stand_in_and_say_why(mpi, monkeypatch, tmp_path):
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('cannot load MPI library')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert repr(team(2)).endswith("MPI did not start them (RuntimeError: cannot load MPI library).")


SCRIPT = """
import os, sys, time
import numpy as np
from lectures.team import team

four = team(4)
assert four.processes, four
print(*four.run(lambda worker: os.getpid()), four._cluster.controller.pid, flush=True)
{then}
"""


def alive(pids):
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]


def python(program, **options):
    """Another Python that has begun to run a program."""
    environment = os.environ | {"PYTHONPATH": ROOT}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, text=True, **options)


def started(then):
    process = python(SCRIPT.format(then=then), stdout=subprocess.PIPE)
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    process.stdout.close()
    assert len(set(pids)) == 5
    return process, pids


def all_gone(pids):
    end = time.monotonic() + 30
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.1)
    return alive(pids) == []


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(mpi):
    process, pids = started("")
    assert process.wait(60) == 0
    assert all_gone(pids)
    process, pids = started("time.sleep(300)")
    process.kill()
    process.wait()
    assert all_gone(pids)


@pytest.mark.slow
def test_processes_end_when_the_one_that_starts_them_is_killed_meanwhile(mpi):
    """A kernel that is restarted while the cell runs has no time to end them."""
    process = python("from lectures.team import team; team(2)")
    end = time.monotonic() + 60
    leader, pids = psutil.Process(process.pid), []
    while len(pids) < 5 and process.poll() is None and time.monotonic() < end:  # some engines, too
        pids = [child.pid for child in leader.children(recursive=True)]
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert len(pids) >= 5
    assert all_gone(pids)


@pytest.mark.slow
def test_processes_that_compute_for_ever_end_when_they_should(mpi):
    made = team(2)
    assert made.processes, made
    pids = made.run(lambda worker: os.getpid())
    for engine in made._engines:
        engine.apply_async(computes_for_ever, None)
    began = time.monotonic()
    made.stop()
    assert all_gone(pids)
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_processes_do_as_threads_and_say_what_went_wrong_and_where(mpi):
    factor = 10.0

    def scaled(worker, x):
        worker.send(factor * x, (worker.rank + 1) % worker.size)
        return worker.receive((worker.rank - 1) % worker.size)

    def impatient(worker):
        teams.MOST_SECONDS = 1
        return worker.rank

    arrays = [np.full(3, rank) for rank in range(4)]
    made = team(4)
    try:
        assert made.processes, made
        assert repr(made) == "4 workers, each a process of its own."
        for count in (4, 2, 1):
            got, expected = (x.run(scaled, arrays[:count]) for x in (made, Threads(4)))
            np.testing.assert_array_equal(got, expected)
        with pytest.raises(RuntimeError, match="worker 2: ZeroDivisionError: division by zero"):
            made.run(lambda worker: 1 / (worker.rank - 2))
        made.run(impatient)
        with pytest.raises(RuntimeError, match="worker 0: NoMail: no message from worker 3 in 1 seconds"):
            made.run(waits_first)
        assert made.run(to_the_right) == [3, 0, 1, 2], "what was left in the mail is not taken for new"
    finally:
        made.stop()
    with pytest.raises(RuntimeError, match="the workers have stopped"):
        made.run(to_the_right)
