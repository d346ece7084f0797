"""Several processes of the playground behind one address, as `make class` starts them."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

from playground.results.take_home import from_file
from playground.testing import free_port

from .line import get, opened
from .stage.page import HEAR, address_now, is_backed_up, pause

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nginx")]

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "serve_class.py"
sys.path.insert(0, str(SCRIPT.parent))
serve_class, measure_class = map(import_module, ("serve_class", "measure_class"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("class")


@pytest.fixture(scope="module")
def house(folder, nginx):
    with serve_class.serve_class(3, log=folder) as house:
        yield house
    for path in folder.iterdir():
        said = path.read_text()
        assert "Traceback" not in said, said
        assert "emerg" not in said, said
    assert not any(map(is_there, [house.front, *house.processes]))


def is_there(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def cookie():
    return f"needle={secrets.token_hex(16)}"


def port_of(process):
    """The port of a process behind the front; None if it has ended."""
    command = Path(f"/proc/{process}/cmdline")
    found = re.search(r"--server.port=(\d+)", command.read_text() if command.exists() else "")
    return found and found[1]


def place_of(house, person):
    """Which of the processes serves a person."""
    with opened(house.address, cookie=person) as page:
        for place, process in enumerate(house.processes):
            with opened(f"http://127.0.0.1:{port_of(process)}", run=page.run) as other:
                if not other.welcome["is_lost"]:
                    return place
    raise AssertionError("no process knows the run")


def people_of_all(house, count):
    """The cookies of so many people at each process, once all processes are there."""
    end = time.monotonic() + 120
    while not all(map(port_of, house.processes)):
        assert time.monotonic() < end
        time.sleep(0.1)
    people = {place: [] for place in range(len(house.processes))}
    while min(map(len, people.values())) < count:
        person = cookie()
        people[place_of(house, person)].append(person)
    return [person for some in people.values() for person in some[:count]]


def test_who_comes_without_a_cookie_gets_one(house):
    cookies = [get(house.address)[1]["Set-Cookie"] for _ in range(2)]
    names = {cookie.partition(";")[0] for cookie in cookies}
    assert len(names) == 2
    assert all(name.startswith("needle=") and len(name) == 39 for name in names)
    assert all("HttpOnly" in cookie for cookie in cookies)


def test_a_cookie_leads_to_the_same_process_and_all_of_them_have_people(house):
    people = [cookie() for _ in range(40)]
    knows = []  # for each person, which of the others' runs their process knows
    runs = []
    for person in people:
        with opened(house.address, cookie=person) as page:
            page.do("step")
            page.picture()
            runs.append(page.run)
    for asked, person in enumerate(people):
        if asked >= 10 and len(set(knows)) == 3:
            break
        known = []
        for number, run in enumerate(runs):
            with opened(house.address, run=run, cookie=person) as page:
                if not page.welcome["is_lost"]:
                    known.append(number)
        knows.append(tuple(known))
    assert all(number in known for number, known in enumerate(knows))
    parts = set(knows)
    assert len(parts) == 3
    assert sum(map(len, parts)) == 40  # each run is known to one process only
    assert min(map(len, parts)) >= 3


def test_a_page_of_another_site_is_refused_behind_the_front_too(house):
    with opened(house.address, origin=house.address, cookie=cookie()) as page:
        assert page.is_well()
    with pytest.raises(Exception, match=r"403|1008"), opened(house.address, origin="https://evil.example"):
        pass


def test_a_killed_process_is_replaced_and_its_people_go_on(house):
    people = people_of_all(house, 3)
    kept = []
    for person in people:
        with opened(house.address, cookie=person) as page:
            page.do("step")
            backup = page.receive("backup")
            ((_, _, (size,)),) = backup["arrays"]
            kept.append((page.run, backup["bytes"][:size]))
    killed, *others = house.processes
    os.kill(killed, signal.SIGKILL)
    began = time.monotonic()
    lost = 0
    for person, (run, backup) in zip(people, kept, strict=True):
        with opened(house.address, run=run, cookie=person) as page:  # nobody sees an error
            if page.welcome["is_lost"]:
                lost += 1
                page.send(backup)
            while (picture := page.picture())["epochs"] != 1:
                pass
            assert picture["steps"] == from_file(backup).steps
    assert lost == 3
    while house.processes[0] == killed or not is_there(house.processes[0]):
        assert time.monotonic() < began + 120
        time.sleep(0.1)
    assert house.processes[1:] == others


def test_big_files_and_unknown_addresses(house):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"{house.address}/stage/nothing.js")
    with opened(house.address, cookie=cookie()) as page:
        page.send(b"x" * 1_900_000)
        assert "isn't a safetensors file" in page.receive("notice")["text"]


@pytest.mark.browser
def test_a_browser_goes_on_at_another_process(house, context):
    page = context.new_page()
    page.add_init_script(HEAR)
    page.goto(f"{house.address}/?dataset=xor&hidden=3")
    epochs = page.locator("[data-figure=epochs]")
    play = page.locator("[data-do=play]")
    play.click()
    learned = "document.querySelector('[data-figure=epochs]').textContent.length > 2"
    page.wait_for_function(learned, timeout=90_000)
    pause(page)
    is_backed_up(page)
    before = epochs.inner_text(), page.locator("[data-figure=train_loss]").inner_text()
    for process in list(house.processes):
        os.kill(process, signal.SIGKILL)
    page.get_by_text("This run goes on after epoch").wait_for(timeout=60_000)
    assert (epochs.inner_text(), page.locator("[data-figure=train_loss]").inner_text()) == before
    assert "dataset=xor" in address_now(page)
    page.locator("[data-do=step]").click()
    page.wait_for_function(
        "(before) => document.querySelector('[data-figure=epochs]').textContent !== before", arg=before[0]
    )
    page.close()


@pytest.mark.browser
def test_streamlits_pages_work_behind_the_front(house, context):
    page = context.new_page()
    page.goto(f"{house.address}/explorer")
    page.get_by_role("textbox").first.wait_for(timeout=60_000)  # what the script on the server has put there
    page.close()


def test_a_whole_class_is_measured(house, monkeypatch):
    for name, seconds in (("ARRIVING", 1.0), ("WARM_UP", 2.0), ("CLICKS", 1.0)):
        monkeypatch.setattr(measure_class, name, seconds)
    names = iter([person.partition("=")[2] for person in people_of_all(house, 4)])
    monkeypatch.setattr(measure_class.secrets, "token_hex", lambda size: next(names))
    with ThreadPoolExecutor(1) as thread:  # the browser of this file has the loop of this one
        rows = dict(thread.submit(asyncio.run, measure_class.measure(house, 12, 4)).result())
    least, median, most = map(float, rows["pictures a second, each"].split())
    assert 0 < least <= median <= most < 100
    assert float(rows["epochs a second, each"].split()[1]) > 0
    assert rows["sessions without a picture"] == "0"
    assert float(rows["seconds until a control is taken"].split()[2]) < 5
    assert float(rows["seconds until a picture shows it"].split()[2]) < 10
    assert float(rows["cores: the playground"]) > 0.05
    assert int(rows["killed one process: sessions that were there"]) == 4
    assert rows["…, that began anew"] == "0"
    assert float(rows["…, epochs that they lost, in seconds of play"].split()[2]) < 4


def command(port, *words, **options):
    words = [sys.executable, SCRIPT, "--processes=1", f"--port={port}", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, **pipes, **options)


def children_of(process):
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def test_a_port_that_is_taken_is_said(house):
    port = house.address.rpartition(":")[2]
    process = command(port)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.terminate()  # and with it all that it has started
    assert process.returncode == 1
    assert out == ""
    assert f"cannot listen at 127.0.0.1, port {port}: Address already in use. Name others by --host" in err
    assert "Traceback" not in err


def test_another_address_of_this_machine_may_be_served_and_nothing_goes_on_without_the_front():
    port = free_port()
    process = command(port, "--host=127.0.0.2")
    try:
        assert process.stdout.readline().startswith(f"1 process behind http://127.0.0.2:{port} ")
        assert get(f"http://127.0.0.2:{port}/_stcore/health")[2] == b"ok"
        children = children_of(process)
        (front,) = [child for child in children if "nginx" in Path(f"/proc/{child}/cmdline").read_text()]
        assert len(children) == 2
        os.kill(front, signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        process.terminate()
    assert "nginx has ended" in err
    assert not any(map(is_there, children))


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT"])
def test_a_closed_terminal_and_ctrl_c_end_all(name):
    """A terminal sends its signal to all that was started from it. nginx takes SIGHUP for something else."""
    port = free_port()
    process = command(port, start_new_session=True)
    try:
        assert process.stdout.readline().startswith("1 process behind ")
        children = children_of(process)
        os.killpg(process.pid, getattr(signal, name))
        _, err = process.communicate(timeout=60)
    finally:
        process.terminate()
    assert err == ""
    assert not any(map(is_there, children))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--people=0"], "--people: at least 1, not 0"),
        (["--processes=0"], "--processes: from 1 to 99, not 0"),
        (["--seconds=0"], "--seconds: more than 0, not 0"),
    ],
)
def test_a_class_that_cannot_be_measured_is_refused(options, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["measure_class.py", *options])
    with pytest.raises(SystemExit):
        measure_class.main()
    assert words in capsys.readouterr().err
