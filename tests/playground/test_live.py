"""The real server: its page and its files, and a socket that nothing can bring down."""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from playground.results.take_home import to_file
from playground.server.live import _LONGEST
from playground.testing import APP, free_port, serve, serving
from playground.training.points import Point
from playground.training.settings import Settings
from playground.training.trainer import Trainer

from .line import get, opened, reopened

SORRY = "This page asked for something that isn't understood. Reload it."


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("live") / "log"


@pytest.fixture(scope="module")
def address(log):
    with serve(log=log) as (address, _):
        yield address


@pytest.fixture(autouse=True)
def nothing_goes_wrong(log, address):
    """Whatever a page sends, the server has nothing to say about it."""
    before = len(log.read_text())
    yield
    said = log.read_text()[before:]
    assert "Traceback" not in said, said
    assert "Error" not in said, said
    assert "failed" not in said, said


# ---- the page --------------------------------------------------------------------------------------------

TYPES = {
    "js": ("text/javascript", "application/javascript"),
    "css": ("text/css",),
    "svg": ("image/svg+xml",),
    "woff2": ("font/woff2",),
}


def test_the_page_and_everything_that_it_asks_for(address):
    status, headers, body = get(address + "/")
    assert status == 200
    assert headers.get_content_type() == "text/html"
    assert headers["Cache-Control"] == "no-cache"
    html = body.decode()
    assert "<title>needle playground</title>" in html
    waiting = [name for name in re.findall(r'(?:src|href)="([^"#:]+)"', html) if "." in name.strip("./")]
    assert "stage/main.js" in waiting
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        status, headers, body = get(f"{address}/{name}")
        assert status in (200, 204), name
        if status == 200:
            assert headers.get_content_type() in TYPES[name.rpartition(".")[2]], name
            kept = "max-age=86400" if name.endswith("woff2") else "no-cache"
            assert headers["Cache-Control"] == kept, name
        folder = name.rpartition("/")[0]
        if name.endswith(".js"):
            waiting += [
                f"{folder}/{x}" for x in re.findall(r'(?:from|import)\s*\(?"\./([^"]+)"', body.decode())
            ]
        if name.endswith(".css"):
            waiting += [f"{folder}/{x}" for x in re.findall(r'url\("?([^"):]+)"?\)', body.decode())]
    assert len(seen) > 10


def test_other_pages_are_linked_and_there(address):
    html = get(address + "/")[2].decode()
    for name in re.findall(r'<a href="([a-z]+)"', html):
        status, headers, _ = get(f"{address}/{name}")
        assert (status, headers.get_content_type()) == (200, "text/html")


@pytest.mark.parametrize(
    "path",
    ["/stage/nothing.js", "/stage/../live.py", "/stage/%2e%2e/live.py", "/stage/..%2flive.py", "/stage/"],
)
def test_nothing_else_is_served(address, path):
    with pytest.raises(urllib.error.HTTPError) as raised:
        get(address + path)
    assert raised.value.code in (400, 404)
    raised.value.close()


# ---- the socket ------------------------------------------------------------------------------------------


def test_a_reload_shows_the_same_run(address):
    with opened(address) as page:
        assert page.scene["address"] == "?points=60&hidden=3"
        page.do("step")
        page.do("step")
        while page.picture()["epochs"] < 2:
            pass
        name = page.run
    with reopened(address, name) as page:
        assert page.scene["settings"]["points"] == "60"
        assert page.picture()["epochs"] == 2
        with opened(address, {"dataset": "xor"}, name) as other:  # it is shown already
            assert other.run != name
            assert other.scene["settings"]["dataset"] == "xor"
        assert page.is_well()


def test_what_arrives_is_the_network(address):
    with opened(address) as page:
        page.do("play")
        while page.picture()["epochs"] < 3:
            pass
        page.do("pause")
        while (picture := page.picture())["playing"]:
            pass
        page.do("reset")
        while (picture := page.picture())["steps"]:
            pass
    names = {}
    at = 0
    for name, kind, shape in picture["arrays"]:
        dtype = np.dtype({"f2": "<f2", "f4": "<f4", "i1": "i1"}[kind])
        names[name] = np.frombuffer(picture["bytes"], dtype, int(np.prod(shape)), at).reshape(shape)
        at += names[name].nbytes + -names[name].nbytes % 4
    trainer = Trainer(Settings(points=60, hidden=(3,)))
    np.testing.assert_array_equal(names["weights_1"], trainer.learner.linears[0].weight.numpy())
    assert picture["figures"] == trainer.figures._asdict()


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example", "file://"]
)
def test_pages_of_other_sites_are_refused(address, origin):
    with pytest.raises((InvalidStatus, ConnectionClosed)), opened(address, origin=origin):
        pass


def test_this_servers_own_pages_are_welcome(address):
    with opened(address, origin=address) as page:
        assert page.is_well()


def test_answers(address):
    with opened(address) as page:
        page.do("step")
        for number, what in enumerate(("script", "weights", "forward", "surface"), start=1):
            page.do("ask", what=what, id=number)
            answer = page.receive("answer")
            assert answer["id"] == number
        page.do("ask", what="weights", id="w")
        answer = page.receive("answer")
        (_, _, (size,)) = answer["arrays"][0]
        page.do("reset")
        page.send(answer["bytes"][:size])
        assert page.receive("notice")["text"] == "This run goes on after epoch 1."


# ---- harm ------------------------------------------------------------------------------------------------

BIG = 10**400
HELLOS = [
    "", "{", "null", "[]", "3", '"open"', "[" * 100_000, '{"do":' * 50_000, b"", b"\x00\xff" * 1000, {},
    {"do": "open"}, {"do": "play"}, {"do": "open", "address": None}, {"do": "open", "address": []},
    {"do": "open", "address": "?dataset=xor"}, {"do": "open", "run": 3}, {"do": "open", "run": None},
    {"do": "open", "run": ["a"]}, {"do": "open", "run": "x" * 100_000}, {"do": "open",
    "run": "../../etc/passwd"},
    {"do": "open", "address": {"dataset": 3, "noise": None, "own": [1, 2]}},
    {"do": "open", "address": {"dataset": "../..", "noise": "nan", "own": "1,2",
    "inputs": "__import__('os')"}},
    {"do": "open", "address": {"inputs": "sqrt((x1-0.25)**2+x2**2-0.001)", "own": "0.25,0,1"}},
    {"do": "open", "address": {"inputs": "sqrt((x1-0.25)**2-0.01)"}},
    {"do": "open", "address": {"learning_rate": "0.00000123456789012345678", "own": "1.23456789,2,1"}},
    {"do": "open", "address": {"hidden": "32:batchnorm:dropout0.123456789-" * 8, "batch_size": "1"}},
    {"do": "open", "address": {"hidden": "32:batchnorm-1:layernorm:dropout0.9", "batch_size": "1"}},
    {"do": "open", "address": {"own": "1,2,1_" * 20_000}}, {"do": "open",
    "address": {"inputs": "x1," * 50_000}},
    {"do": "open", "address": {"hidden": "(" * 50_000}}, {"do": "open", "address": {"x" * 1000: "y" * 1000}},
    {"do": "open", "address": {f"name{i}": "1" for i in range(5000)}}, {"do": "open", "address": {"": ""}},
    {"do": "open", "address": {"\ud800": "\ud800", "seed": "\x00", "dataset": "\u202e"}},
    {"do": "open", "address": {"seed": "9" * 100_000, "points": "1e5",
    "lesson": "<script>alert(1)</script>"}},
]  # fmt: skip


def test_hostile_openings_get_a_run(address):
    for hello in HELLOS:
        with opened(address, hello=hello) as page:
            assert len(page.run) == 16
            page.do("step")
            page.picture()


COMMANDS = [
    "", "x", "{", "[", "nul", "NaN", "Infinity", '{"do": NaN}', "\x00", "[" * 100_000, '{"do":' * 50_000,
    '{"do":"set","values":' + "[" * 50_000, "1" * 100_000, '{"do":"travel","epoch":' + "1" * 5000 + "}",
    '{"do":"travel","epoch":1e999}', '{"do":"travel","epoch":NaN}', '{"do":"look","neuron":[1e308,-1e308]}',
    '{"do":"step","do":"x"}', '"\\ud800"', '{"do":"\\ud800"}', "true", "3", '"play"', "[]", "{}", "[[[[]]]]",
    b"", b"\x00", b"\xff" * 100, b"PK\x03\x04" + b"\0" * 1000, b"\x80\x04" + b"\0" * 1000, b"{}" * 100,
    (10**18).to_bytes(8, "little") + b"{" * 100, b"\x02\0\0\0\0\0\0\0{}",
    np.random.default_rng(0).bytes(100_000),
    *[{"do": name} for name in ("", "__class__", "open", "set", "weight", "paint", "upload", "ask", 3, None,
    [], {})],
    *[{"do": "set", "values": values} for values in (
        None, [], 3, {"seed": 3}, {"seed": None}, {"inputs": "1/x1"}, {"inputs": "mean(x1)"},
        {"inputs": "x1" * 9999},
        {"inputs": "sqrt((x1-0.25)**2-0.01)"}, {"hidden": "33"}, {"hidden": "-" * 99999},
        {"hidden": "4:dropout1e-9"},
        {"hidden": "4:dropout0.00001"}, {"learning_rate": "0.00000123456789012345678"}, {"noise": "1e-320"},
        {"own": "1.23456789,2,1"}, {"own": "nan,nan,nan"}, {"own": "1,2,1_" * 9999}, {"points": "1e9"},
        {"": ""},
        {"seed": "\x00"}, {"\ud800": "\ud800"}, {"batch_size": "-1"}, {"hide": "all"},
        {"lesson": "__class__"},
        {"inputs": "where(x1>0," * 4 + "x1" + ",0)" * 4}, {"inputs": "maximum(x1,minimum(x2,abs(x1)))"},
        {"hidden": "8:batchnorm", "batch_size": "1", "learning_rate": "100"}, {"dataset": "own", "own": ""},
        {f"n{i}": "1" for i in range(2000)},
    )],
    *[{"do": "weight", "layer": layer, "from": 0, "to": 0, "value": value} for layer, value in (
        (0, 1), (9, 1), (-1, 1), (1.5, 1), ("1", 1), (None, 1), (10**9, 1), (1, "1"), (1, None), (1, 1e300),
        (1, [1]),
        (True, 1), (1, 999999), (2, -999999),
    )],
    *[{"do": "bias", "layer": 1, "to": to, "value": 1} for to in (-1, 99, 1.5, "0", None, [], 10**18)],
    *[{"do": "paint", "points": points} for points in (
        None, 3, "abc", [3], [[1, 2]], [[1, 2, 3, 4]], [[7, 0, 1]], [[0, 0, 9]], [[1, 2, None]], [[1, 2,
        "x"]], [{}],
        [[0, 0, 1]] * 6000, [[]], [[1e300, 0, 1]], [[0.123456789, 0, 1]],
    )],
    *[{"do": "erase", "at": at, "radius": 1} for at in (None, 3, [], [1], [1, 2, 3], ["a", "b"], "ab", {},
    [1e300, 0])],
    {"do": "erase", "at": [0, 0], "radius": -1}, {"do": "erase", "at": [0, 0], "radius": "x"},
    *[{"do": "upload", "text": text} for text in (
        None, 3, [], "", "\x00" * 1000, "100,200,1", "1,2,3,4", "nan,nan,nan", "9" * 100_000,
        "1e99,1e99,1e99\n-1,1,1",
        "1,2,1\n" * 6000, '"' * 10_000, "x" * 200_000, "1,2,a\n1,2,b\n1,2,c", "\ud800,1,1", "1,1,1\n1,1,1.0",
    )],
    *[{"do": "look", "neuron": neuron} for neuron in (3, [], [1], [1, 2, 3], "ab", {}, [None, 1], [9999,
    9999], [-1, 0])],
    *[{"do": "watch", "parts": parts} for parts in (None, 3, [3], {}, ["x"], ["histograms"], "histograms")],
    *[{"do": "travel", "epoch": epoch} for epoch in ("1", [], {}, -1, 10**5, 1e300, True, 0.5)],
    *[{"do": "ask", "what": what, "id": number} for what, number in (
        (None, 1), ([], 1), ("x", 1), ("__class__", 1), ("script", None), ("script", []), ("script", 1.5), (3,
        3),
        ("script", "x" * 1000), ("surface", -1), ("program", 0), ("gif", 2),
    )],
]  # fmt: skip


def test_hostile_commands_hurt_nobody(address):
    assert len(HELLOS) + len(COMMANDS) > 150
    with opened(address) as bystander, opened(address) as page:
        bystander.do("play")
        steps = bystander.picture()["steps"]
        for number, command in enumerate(COMMANDS):
            page.send(command)
            if number % 10 == 0:
                page.do("play")
                page.picture()
                page.do("step")
        page.do("reset")
        assert page.is_well()
        page.picture()
        assert bystander.picture()["steps"] > steps
        assert bystander.picture()["playing"]


def test_what_is_not_understood_is_answered(address):
    with opened(address) as page:
        for command in ("{", {"do": "look", "neuron": []}, {"do": "erase", "at": [1], "radius": 1}):
            page.send(command)
            notice = page.receive("notice")
            assert (notice["text"], notice["tone"]) == (SORRY, "error")


@pytest.mark.parametrize("message", ["x" * (_LONGEST + 1), b"x" * (_LONGEST + 1)], ids=["text", "bytes"])
def test_messages_that_are_too_long_end_the_connection(address, message):
    with opened(address) as bystander, opened(address) as page:
        page.send(message)
        with pytest.raises(ConnectionClosed) as raised:
            list(page.socket)
        assert raised.value.rcvd.code == 1009
        assert bystander.is_well()


def test_what_comes_behind_a_file_waits_for_it(address):
    trainer = learned(3, Settings(points=60, hidden=(3,)))
    with opened(address) as page:
        page.send(to_file(trainer))
        page.do("step")
        while (picture := page.picture())["epochs"] < 4:
            pass
        assert picture["epochs"] == 4


@pytest.mark.slow
def test_a_page_that_sends_without_end_keeps_nobody_waiting(address):
    points = np.random.default_rng(0).uniform(-6, 6, (5000, 2))
    own = tuple(Point(round(x1, 4), round(x2, 4), 1.0) for x1, x2 in points.tolist())
    file = to_file(learned(1, Settings(dataset="own", own=own)))  # takes long to read

    def flood(page):
        with suppress(ConnectionClosed):
            for _ in range(500):
                page.send(file)

    with opened(address) as page, ThreadPoolExecutor(1) as thread:
        sending = thread.submit(flood, page)
        page.receive("notice")
        began = time.monotonic()
        with opened(address) as other:
            assert other.picture()["epochs"] == 0
            assert other.is_well()
        assert time.monotonic() < began + 5
        assert not sending.done()  # it waits, too
        page.socket.close()


def learned(epochs, settings):
    trainer = Trainer(settings)
    for _ in range(epochs):
        trainer.epoch()
    return trainer


def test_pages_that_go_away_at_any_moment(address):
    url = address.replace("http", "ws") + "/live"
    for talk in ([], ["{"], [json.dumps({"do": "open"})], [json.dumps({"do": "open"}), '{"do":"play"}'] * 2):
        with connect(url, proxy=None, close_timeout=5) as socket:
            for message in talk:
                socket.send(message)
    with opened(address) as page:
        assert page.is_well()


# ---- a new server ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_after_a_restart_the_address_brings_a_run_back(tmp_path):
    names = []
    for restart in range(2):
        log = tmp_path / f"log{restart}"
        known = names[0] if names else None
        with serve(log=log) as (address, _), opened(address, {"dataset": "xor", "seed": "7"}, known) as page:
            names.append(page.run)
            assert page.scene["settings"]["dataset"] == "xor"
            assert page.scene["settings"]["seed"] == "7"
            page.do("step")
            assert page.is_well()
        assert "Traceback" not in log.read_text()
    assert names[0] != names[1]


@pytest.mark.slow
def test_below_another_path(tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", "--server.headless=true", "--server.baseUrlPath=some/where"]
    address = f"http://127.0.0.1:{port}/some/where"
    with serving(command, f"{address}/_stcore/health", cwd=APP.parent, log=tmp_path / "log"):
        assert b"needle playground" in get(f"{address}/")[2]
        assert get(f"{address}/stage/main.js")[0] == 200
        with opened(address) as page:
            assert page.is_well()
