"""The line of a page whose worker trains: without threads, turn by turn."""

from __future__ import annotations

import json
import threading
import time

import pytest

from playground.server.runs import LONGEST_REST
from playground.server.worker import Line

from .line import SMALL


class Bytes(bytes):
    """An array buffer of JavaScript, as Pyodide shows it."""

    def to_bytes(self):
        return bytes(self)


class Page:
    """The page's end of the line."""

    def __init__(self, **opening):
        self.heard = []
        self.line = Line(self.hear)
        self.say("open", **{"address": SMALL, "run": None, **opening})

    def hear(self, message):
        header = json.loads(message[4 : 4 + int.from_bytes(message[:4], "little")])
        self.heard.append((header, message))

    def say(self, what, **more):
        self.line.take(json.dumps({"do": what, **more}))

    def of(self, kind):
        return [header for header, _ in self.heard if header["kind"] == kind]

    def turns(self, until):
        for _ in range(2_000):
            if until():
                return
            time.sleep(min(self.line.turn(), 0.05))
        raise AssertionError("it never comes")

    def learns(self, epochs):
        self.say("ready")
        self.say("play")

        def has():
            self.say("ready")
            return self.of("picture")[-1:] and self.of("picture")[-1]["epochs"] >= epochs

        self.turns(has)


@pytest.fixture(autouse=True)
def no_threads(monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", lambda self: pytest.fail(f"{self.name} starts"))


def test_a_page_is_welcomed_and_gets_its_scene_at_once():
    page = Page()
    assert [header["kind"] for header, _ in page.heard] == ["welcome", "scene"]
    assert page.of("scene")[0]["settings"]["points"] == "60"


def test_it_learns_in_turns_and_rests_when_it_is_paused():
    page = Page()
    page.learns(2)
    assert page.line.turn() < 1
    page.say("pause")
    page.say("ready")
    page.turns(lambda: page.line.turn() == LONGEST_REST)  # and no sooner: a backup comes
    epochs = page.of("picture")[-1]["epochs"]
    page.line.turn()
    assert page.of("picture")[-1]["epochs"] == epochs


def test_a_command_is_done_when_it_is_taken():
    page = Page()
    page.say("set", values={"dataset": "spiral"})
    assert page.of("scene")[-1]["settings"]["dataset"] == "spiral"


def test_a_new_worker_goes_on_from_the_backup():
    page = Page()
    page.learns(3)
    page.say("pause")
    page.turns(lambda: page.of("backup") and not page.of("backup")[-1]["playing"])
    (header, message) = next(pair for pair in reversed(page.heard) if pair[0]["kind"] == "backup")
    (_, _, (size,)) = header["arrays"][0]
    start = 4 + int.from_bytes(message[:4], "little")
    again = Page(run=page.of("welcome")[0]["run"])
    assert again.of("welcome")[0]["is_lost"]
    again.line.take(Bytes(message[start : start + size]))
    again.say("ready")
    again.turns(lambda: again.of("picture"))
    assert again.of("picture")[-1]["steps"] == page.of("picture")[-1]["steps"]


@pytest.mark.parametrize("said", ["null", "[]", '{"do": "nothing"}', '{"do": []}'])
def test_nonsense_is_answered_with_a_sentence(said):
    page = Page()
    page.line.take(said)
    assert "isn't understood" in page.of("notice")[-1]["text"]
