"""Many runs in one thread: each gets its turn, its pictures and its commands, and none can hurt another."""

from __future__ import annotations

import json
import logging
import math
import struct
import threading
import time

import numpy as np
import pytest

from playground.results.take_home import from_file, to_file
from playground.server import commands, runs
from playground.server.answers import _worker
from playground.server.runs import Run, Runs, Viewer
from playground.training.points import MOST_OWN_POINTS
from playground.training.settings import Settings
from playground.training.trainer import Trainer

SMALL = {"points": "60", "hidden": "3"}


class Page:
    """What a page does: it keeps what comes, and asks for the next picture."""

    def __init__(self, house: Runs, address=SMALL, name=None, asks=True, token=None):
        self.house = house
        self.asks = asks
        self.messages: list[dict] = []
        self.backups: list[bytes] = []
        self.came = threading.Condition()
        self.is_replaced = threading.Event()
        self.viewer = Viewer(self.take, self.is_replaced.set)
        self.run = None
        opened = threading.Event()

        def begin(run):
            self.run = run
            opened.set()

        house.open(self.viewer, address, name, begin, token)
        assert opened.wait(60)
        if asks and self.run:
            self.do("ready")

    def take(self, data, latest=None):
        (length,) = struct.unpack_from("<I", data)
        header = json.loads(data[4 : 4 + length])
        assert latest in (None, header["kind"])
        with self.came:
            if header["kind"] == "backup":
                self.backups.append(data)
                self.came.notify_all()
                return
            self.messages.append(header)
            self.came.notify_all()
        if header["kind"] == "picture" and self.asks:
            self.do("ready")

    def do(self, name, **more):
        self.house.command(self.run, self.viewer, {"do": name, **more})

    def of(self, kind):
        return [message for message in self.messages if message["kind"] == kind]

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        with self.came:
            while not condition(self):
                assert time.monotonic() < end, self.messages[-1:]
                self.came.wait(0.05)  # some conditions hold without a message

    def leave(self):
        self.house.leave(self.run, self.viewer)


@pytest.fixture(autouse=True)
def small_epochs_end_at_once(monkeypatch):
    """However busy the machine is."""
    monkeypatch.setattr(runs, "AT_ONCE", 60.0)


@pytest.fixture
def house(monkeypatch):
    """Runs whose thread is at rest again after the test."""
    house = Runs()
    yield house
    rest(house)


def rest(house):
    """Let nothing play any more, and nobody watch."""

    def stop():
        for run in house._runs.values():
            run.playing = False
            run.viewer = None
        house._runs.clear()

    settled(house, stop)


def settled(house, wish=lambda: None):
    """Wait until the thread has done this, and all that was wished before."""
    done = threading.Event()
    result = []
    house.wish(lambda: (result.append(wish()), done.set()))
    assert done.wait(60)
    return result[0]


def test_a_page_gets_a_welcome_a_scene_and_a_picture(house):
    page = Page(house, {**SMALL, "noise": "7", "foo": "1"})
    page.wait_for(lambda page: page.of("picture"))
    assert [message["kind"] for message in page.messages] == ["welcome", "scene", "picture"]
    welcome, scene, picture = page.messages
    assert welcome["run"] == page.run.id
    assert len(scene["problems"]) == 2
    assert scene["settings"]["points"] == "60"
    assert (picture["steps"], picture["playing"]) == (0, False)
    page.do("step")
    page.wait_for(lambda page: page.of("picture")[-1]["epochs"] == 1)
    assert not page.of("picture")[-1]["playing"]


def test_pictures_come_only_when_the_page_is_ready(house):
    page = Page(house, asks=False)
    page.do("play")
    time.sleep(0.1)
    settled(house)
    assert not page.of("picture")
    page.do("ready")
    page.wait_for(lambda page: page.of("picture"))
    time.sleep(0.1)
    assert len(page.of("picture")) == 1
    steps = page.of("picture")[0]["steps"]
    page.do("ready")
    page.wait_for(lambda page: len(page.of("picture")) == 2)
    assert page.of("picture")[1]["steps"] > steps


def test_the_last_picture_is_not_lost(house):
    """After a pause, the page sees the network as it stands, however late it asks."""
    page = Page(house, asks=False)
    page.do("ready")
    page.do("play")
    page.wait_for(lambda page: page.of("picture"))
    page.wait_for(lambda page: page.run.trainer.steps > page.of("picture")[0]["steps"])
    page.do("pause")
    settled(house)
    page.do("ready")
    page.wait_for(lambda page: len(page.of("picture")) == 2)
    assert page.of("picture")[-1]["steps"] == page.run.trainer.steps
    assert page.of("picture")[-1]["playing"] is False
    page.do("ready")
    settled(house)
    count = len(page.of("picture"))
    time.sleep(0.05)
    assert len(page.of("picture")) == count  # there is nothing new


def test_runs_share_the_thread_fairly(house):
    pages = [Page(house) for _ in range(5)]
    for page in pages:
        page.do("play")
    for page in pages:
        page.wait_for(lambda page: page.run.trainer.steps > 150)
    steps = settled(house, lambda: [page.run.trainer.steps for page in pages])
    assert min(steps) > 0.4 * max(steps), steps
    assert all(len(page.of("picture")) >= 3 for page in pages)


def test_a_page_that_is_never_ready_learns_little(house):
    """What nobody sees makes room for what is watched."""
    unseen, seen = Page(house, asks=False), Page(house)
    for page in (unseen, seen):
        page.do("play")
    seen.wait_for(lambda page: len(page.of("picture")) > 30)
    steps = settled(house, lambda: [page.run.trainer.steps for page in (unseen, seen)])
    assert 0 < steps[0] < 0.7 * steps[1], steps


def test_who_plays_goes_on_while_a_crowd_arrives(house):
    page = Page(house)
    page.do("play")
    page.wait_for(lambda page: page.of("picture"))
    done = threading.Event()
    count = len(page.of("picture"))
    for _ in range(80):
        house.wish(lambda: time.sleep(0.01), is_long=True)
    house.wish(done.set, is_long=True)
    assert done.wait(60)
    assert len(page.of("picture")) >= count + 30
    page.do("pause")
    page.wait_for(lambda page: not page.of("picture")[-1]["playing"])


def test_it_is_told_when_a_command_is_done(house, monkeypatch):
    page = Page(house, asks=False)
    settled(house)
    real, order = commands.do, []
    monkeypatch.setattr(commands, "do", lambda *given: (order.append("do"), real(*given)))
    for command in ({"do": "step"}, b"no file", {"do": "nothing"}):
        done = threading.Event()
        house.command(page.run, page.viewer, command, lambda done=done: (order.append("done"), done.set()))
        assert done.wait(60)
    assert order == ["do", "done"] * 3
    page.leave()
    left = threading.Event()
    house.command(page.run, page.viewer, {"do": "step"}, left.set)  # nobody is there any more
    assert left.wait(60)
    assert order == ["do", "done"] * 3


def test_what_somebody_does_shows_at_once_while_fifty_play(house):
    pages = [Page(house) for _ in range(50)]
    for page in pages:
        page.do("play")
    pages[-1].wait_for(lambda page: page.run.trainer.steps > 1)
    turns, real = [], Run.learn
    pictures, really = [], Run.send_picture  # each run, and the turns until then
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "learn", lambda run, seconds: (turns.append(run), real(run, seconds)))
        patch.setattr(Run, "send_picture", lambda run: (pictures.append((run, len(turns))), really(run)))
        waited = []
        for page in pages[:20]:
            settled(house)
            shown = lambda page=page: [at for run, at in pictures if run is page.run]  # noqa: E731
            count = len(shown())
            before = len(turns)
            page.do("weight", layer=1, to=0, value=0.5, **{"from": 0})
            page.wait_for(lambda _, shown=shown, count=count: len(shown()) > count)
            waited.append(shown()[count] - before)
    assert sorted(waited)[10] <= 5, waited


def test_a_command_takes_effect_within_a_turn_while_twenty_play(house):
    pages = [Page(house) for _ in range(20)]
    for page in pages:
        page.do("play")
    pages[-1].wait_for(lambda page: page.run.trainer.steps > 1)
    turns = []
    real = Run.learn

    def counted(run, seconds):
        turns.append(run)
        real(run, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "learn", counted)
        waited = []
        for page in pages[:10]:
            before = len(turns)
            waited.append(settled(house, lambda: len(turns)) - before)
            page.do("pause")
            settled(house)
            assert not page.run.playing
    assert sorted(waited)[5] <= 1
    assert max(waited) <= 2


def test_the_more_play_the_shorter_are_turns():
    assert runs.ROUND / 20 < runs.TURN
    assert min(runs.TURN, runs.ROUND / 1) == runs.TURN
    assert max(runs.SHORTEST_TURN, min(runs.TURN, runs.ROUND / 1000)) == runs.SHORTEST_TURN


def test_a_run_waits_for_its_page():
    house = Runs(patience=60.0)
    page = Page(house)
    page.do("step")
    settled(house)
    page.leave()
    again = Page(house, {}, page.run.id)
    assert again.run is page.run
    assert again.run.trainer.epochs == 1
    assert again.of("welcome")[0]["run"] == page.run.id
    again.leave()
    settled(house)
    page.run.left_at -= 61.0  # a minute later
    settled(house, house._forget)
    late = Page(house, SMALL, page.run.id)
    assert late.run is not page.run
    assert late.run.trainer.epochs == 0
    rest(house)


def test_a_run_that_learned_nothing_is_not_kept(house):
    page = Page(house)
    page.leave()
    settled(house)
    settled(house, house._forget)
    assert settled(house, lambda: dict(house._runs)) == {}


def test_a_run_without_a_page_stands_still(house):
    page = Page(house)
    page.do("play")
    page.wait_for(lambda page: page.run.trainer.steps > 5)
    page.leave()
    settled(house)
    steps = page.run.trainer.steps
    time.sleep(0.1)
    assert page.run.trainer.steps == steps
    assert page.run.turn_due(1) == page.run.picture_due(0) == math.inf
    again = Page(house, {}, page.run.id)
    again.wait_for(lambda page: page.run.trainer.steps > steps)  # it goes on as it was


def test_a_run_that_another_page_shows_is_not_taken_over(house):
    page = Page(house)
    page.do("step")
    settled(house)
    other = Page(house, {"dataset": "xor"}, page.run.id)
    assert other.run is not page.run
    assert other.run.trainer.settings.dataset == "xor"
    page.do("step")
    page.wait_for(lambda page: page.of("picture") and page.of("picture")[-1]["epochs"] == 2)
    other.leave()
    settled(house)
    assert page.run.viewer is page.viewer


def test_a_page_whose_line_broke_takes_its_run_over(house):
    """The server may notice a broken line only minutes later."""
    page = Page(house)
    page.do("step")
    settled(house)
    again = Page(house, name=page.run.id, token=page.of("welcome")[-1]["token"])
    assert again.run is page.run
    assert page.is_replaced.is_set()
    assert not again.is_replaced.is_set()
    page.do("reset")  # what the old line still says counts no more
    page.leave()
    settled(house)
    assert (again.run.viewer, again.run.trainer.epochs) == (again.viewer, 1)
    old = Page(house, name=page.run.id, token=page.of("welcome")[-1]["token"])  # a token is for one showing
    assert old.run is not page.run


def test_a_run_with_points_of_ones_own_is_kept(house):
    page = Page(house, {**SMALL, "dataset": "own"})
    page.do("upload", text="0,0,1\n1,1,-1")
    settled(house)
    page.leave()
    settled(house)
    back = Page(house, {}, page.run.id)
    assert back.run is page.run
    assert len(back.run.trainer.settings.own) == 2


def test_a_slow_epoch_at_a_slow_pace_takes_several_turns(page):
    page.do("set", values={"points": "400", "batch_size": "1", "pace": "10"})
    page.do("play")
    began = time.perf_counter()
    page.run.learn(0.0)
    assert page.run.trainer.epochs == 0
    assert 0 < page.run.trainer.epoch_share < 1
    assert page.run.turn_due(ahead=3) <= time.monotonic()  # it goes on at once
    for _ in range(400):
        page.run.learn(0.0)
        if page.run.trainer.epochs:
            break
    assert page.run.turn_due(ahead=1000) > time.monotonic() - (time.perf_counter() - began)
    assert page.run.trainer.epochs == 1


def test_no_page_waits_for_more_than_a_few_answers(page):
    others = threading.Event()
    _worker.submit(others.wait)
    for number in range(5):
        page.do("ask", what="script", id=number)
    said = "Wait for what you asked for before."
    assert [(header["id"], header["error"]) for header in page.headers] == [(3, said), (4, said)]
    others.set()
    _worker.submit(lambda: None).result(timeout=60)
    assert [header["id"] for header in page.headers[2:]] == [0, 1, 2]
    page.do("ask", what="script", id=7)
    _worker.submit(lambda: None).result(timeout=60)
    assert "error" not in page.headers[-1]


def test_nothing_is_made_for_a_page_that_is_gone(page):
    page.viewer.is_gone = True
    page.do("ask", what="script", id=1)
    _worker.submit(lambda: None).result(timeout=60)
    assert not page.headers


def test_the_page_before_cannot_take_the_next_one_away(house):
    """Its farewell may come after the run is shown again."""
    page = Page(house)
    page.do("step")
    page.leave()
    again = Page(house, {}, page.run.id)
    assert again.run is page.run
    page.leave()
    settled(house)
    assert page.run.viewer is again.viewer


def test_an_unknown_name_gets_a_run_from_the_address(house):
    for name in ("", "nobody", "__class__", "x" * 10_000):
        page = Page(house, {**SMALL, "dataset": "xor"}, name)
        assert page.run.trainer.settings == Settings(dataset="xor", points=60, hidden=(3,))


def test_there_are_at_most_so_many(house, monkeypatch):
    monkeypatch.setattr(runs, "MOST", 3)
    pages = [Page(house) for _ in range(3)]
    assert Page(house).run is None
    pages[0].leave()  # it has nothing to come back to
    assert Page(house).run is not None
    assert Page(house).run is None
    pages[1].do("step")
    pages[1].leave()  # where it is full, even a run that waits makes room
    assert Page(house).run is not None
    assert settled(house, lambda: len(house._runs)) == 3


def test_of_runs_that_wait_the_latest_stay(house, monkeypatch):
    monkeypatch.setattr(runs, "MOST_WAITING", 2)
    pages = [Page(house) for _ in range(4)]
    for page in pages:
        page.do("step")
        page.leave()
        settled(house)
        time.sleep(0.01)
    settled(house, house._forget)
    assert settled(house, lambda: set(house._runs)) == {page.run.id for page in pages[2:]}


def test_a_mistake_of_ours_stops_only_its_run(house, monkeypatch, caplog):
    bad, good = Page(house), Page(house)
    for page in (bad, good):
        page.do("play")
    good.wait_for(lambda page: page.run.trainer.steps > 1)
    monkeypatch.setattr(bad.run.trainer, "run_for", lambda seconds: 1 / 0)
    bad.wait_for(lambda page: page.of("notice"))
    assert bad.of("notice") == [
        {
            "kind": "notice",
            "text": "Something went wrong here, and the training stands still. Reset begins again.",
            "tone": "error",
            "arrays": [],
        }
    ]
    steps = good.run.trainer.steps
    good.wait_for(lambda page: page.run.trainer.steps > steps + 5)
    assert not bad.run.playing
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "ZeroDivisionError" in caplog.text
    bad.do("reset")
    bad.do("play")
    bad.wait_for(lambda page: page.run.trainer.steps > 5)


def test_a_command_that_fails_is_logged_and_the_others_go_on(house, monkeypatch, caplog):
    page = Page(house)
    monkeypatch.setitem(commands._COMMANDS, "pause", lambda run, viewer, command: 1 / 0)
    page.do("pause")
    page.do("step")
    page.wait_for(lambda page: page.of("picture") and page.of("picture")[-1]["epochs"] == 1)
    assert "ZeroDivisionError" in caplog.text
    assert page.of("notice")[0]["text"].startswith("Something went wrong here")


def test_nothing_runs_while_nobody_watches(house, monkeypatch):
    page = Page(house)
    page.do("play")
    page.wait_for(lambda page: page.run.trainer.steps > 5)
    page.leave()
    settled(house)
    time.sleep(0.05)
    rests = []
    real = house.turn
    monkeypatch.setattr(house, "turn", lambda: rests.append(real()) or rests[-1])
    settled(house)
    page.wait_for(lambda page: rests)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1
    assert set(rests) == {runs.LONGEST_REST}


def test_a_run_that_stands_in_trouble_does_not_play(house):
    page = Page(house, {"dataset": "own"})
    page.do("play")
    page.wait_for(lambda page: page.of("picture") and page.of("picture")[-1]["trouble"])
    assert not page.run.playing
    page.do("paint", points=[[1, 1, 1], [-1, -1, -1], [2, 2, 1]])
    page.do("play")
    page.wait_for(lambda page: page.of("picture")[-1]["epochs"] > 2)
    assert not page.of("notice")


@pytest.mark.parametrize(("pace", "low", "high"), [("10", 3, 9), ("1", 1, 2)])
def test_pace(house, pace, low, high):
    page = Page(house, {**SMALL, "pace": pace})
    began = time.monotonic()
    page.do("play")
    page.wait_for(lambda page: page.run.trainer.epochs >= 1)
    time.sleep(0.5)
    look = lambda: (page.run.trainer.epochs, page.run.trainer.steps, time.monotonic())  # noqa: E731
    epochs, steps, now = settled(house, look)
    longer = max(1.0, (now - began) / 0.6)  # than that, if the machine is busy
    assert low <= epochs <= high * longer
    assert steps == 3 * epochs


# ---- commands ----------------------------------------------------------------------------------------------


class Stub:
    """A viewer that keeps headers."""

    def __init__(self):
        self.run = Run(Settings(points=40, hidden=(3,)))
        self.headers = []
        self.viewer = Viewer(self.take)
        self.run.show(self.viewer, [])
        self.headers.clear()

    def take(self, data, latest=None):
        (length,) = struct.unpack_from("<I", data)
        self.headers.append(json.loads(data[4 : 4 + length]))

    def do(self, name, **more):
        commands.do(self.run, self.viewer, {"do": name, **more})

    def said(self):
        return [header["text"] for header in self.headers if header["kind"] == "notice"]


@pytest.fixture
def page():
    return Stub()


def test_set(page):
    trainer = page.run.trainer
    page.do("set", values={"learning_rate": "0.5", "noise": "x"})
    assert page.run.trainer is trainer
    assert trainer.settings.learning_rate == 0.5
    assert page.headers[-1]["problems"] == ["Noise must be a number from 0 to 0.5 (0 % to 50 %), not “x”."]
    page.do("set", values={"hidden": "5"})
    assert page.run.trainer is not trainer
    assert page.run.trainer.settings.hidden[0].neurons == 5
    assert page.headers[-1]["address"] == "?points=40&hidden=5&learning_rate=0.5"


def test_an_input_without_a_value_at_a_point_is_told(page):
    trainer = page.run.trainer
    pole = "sqrt((x1-0.25)**2+x2**2-0.001)"
    page.do("set", values={"inputs": pole})
    page.do("paint", points=[[0.25, 0, 1]])
    assert page.headers[-1]["problems"] == [
        f"Inputs: “{pole}” has no finite value at x1 = 0.25, x2 = 0; it needs one everywhere."
    ]
    assert page.headers[-1]["own"] == 0
    assert page.run.trainer is not trainer
    page.do("step")
    assert page.run.trainer.epochs == 1


def test_an_address_with_an_input_without_a_value_at_a_point(house):
    pole = "sqrt((x1-0.25)**2+x2**2-0.001)"
    page = Page(house, {"inputs": pole, "own": "0.25,0,1"})
    assert page.run.trainer.settings.inputs == ("x1", "x2")
    assert len(page.run.trainer.settings.own) == 1
    (problem,) = page.of("scene")[0]["problems"]
    assert problem.startswith("Inputs: ")


def test_paint_and_erase(page):
    page.do("paint", points=[[1, 2, 1], [3.00004, 4, -1]])
    assert page.run.trainer.settings.own == ((1, 2, 1), (3, 4, -1))
    page.do("erase", at=[1.1, 2], radius=0.5)
    assert page.run.trainer.settings.own == ((3, 4, -1),)
    page.do("paint", points=[[0, 0, 1]] * MOST_OWN_POINTS)
    assert page.said() == ["You can have at most 5,000 points of your own. Erase some first."]
    page.do("upload", text="x1,x2,label\n1,2,a\n3,4,b\n")
    assert page.run.trainer.settings.own == ((1, 2, -1), (3, 4, 1))
    assert page.run.trainer.settings.dataset == "own"
    assert page.said()[-1] == "2 points, “a” orange and “b” blue."
    page.do("upload", text="1,2")
    assert page.said()[-1].startswith("Line 1 needs x1, x2 and a label")
    assert len(page.run.trainer.settings.own) == 2


def test_edits_looks_and_travels(page):
    page.do("step")
    page.do("weight", layer=1, **{"from": 0, "to": 2}, value=0.5)
    page.do("bias", layer=2, to=0, value=-1)
    assert [what for _, what, _ in page.run.trainer.changes] == ["weight", "bias"]
    page.do("travel", epoch=0)
    assert page.run.trainer.looks_back
    page.do("travel", epoch=None)
    assert not page.run.trainer.looks_back
    page.do("look", neuron=[1, 2])
    page.do("watch", parts=["histograms"])
    page.do("ready")
    page.run.send_picture()
    picture = page.headers[-1]
    assert picture["look"] == [1, 2]
    assert "hist_1" in [name for name, _, _ in picture["arrays"]]
    page.do("look", neuron=[1, 9_999])  # of a network that was there before
    page.do("watch", parts=[])
    page.do("ready")
    page.run.send_picture()
    assert page.headers[-1]["look"] is None
    assert not page.said()


def test_a_pause_ends_the_epoch(page):
    page.do("play")
    page.run.trainer.step()
    assert page.run.trainer.epoch_share
    page.do("pause")
    assert (page.run.trainer.epochs, page.run.trainer.epoch_share) == (1, 0)
    page.do("play")
    page.run.trainer.step()
    page.do("travel", epoch=0)
    assert page.run.trainer.looks_back
    page.do("travel", epoch=None)
    assert (page.run.trainer.epochs, page.run.trainer.epoch_share) == (2, 0)


def test_a_pause_does_not_wait_for_a_slow_epoch(page, monkeypatch):
    monkeypatch.setattr(runs, "AT_ONCE", 0.0)
    page.do("set", values={"points": "400", "batch_size": "1"})
    page.do("play")
    page.run.trainer.step()
    page.do("pause")
    assert not page.run.playing
    page.do("ready")
    page.run.send_picture()
    assert page.headers[-1]["epochs"] == 0
    assert 0 < page.headers[-1]["share"] < 1
    outputs = page.run.trainer.predict(page.run.trainer.train[0])
    loss = np.mean((outputs - page.run.trainer.train[1]) ** 2) / 2
    assert page.headers[-1]["figures"]["train_loss"] == pytest.approx(loss)  # of what the page shows


def test_undo_brings_back_what_came_later(page):
    for _ in range(3):
        page.do("step")
    page.do("travel", epoch=1)
    page.do("step")
    page.do("ready")
    page.run.send_picture()
    assert (page.headers[-1]["gone_after"], page.run.trainer.epochs) == (1, 2)
    page.do("undo")
    assert page.run.trainer.epochs == 3
    page.do("undo")  # there is nothing more
    assert page.run.trainer.epochs == 3
    assert not page.said()


def test_a_reset_draws_first_weights_or_repeats_them(page):
    first = page.run.trainer.model.parameters()[0].numpy().copy()
    points = page.run.trainer.train[0]
    page.do("step")
    page.do("reset", weights_seed="5")
    assert page.run.trainer.settings.weights_seed == 5
    np.testing.assert_array_equal(page.run.trainer.train[0], points)
    drawn = page.run.trainer.model.parameters()[0].numpy().copy()
    assert not np.array_equal(drawn, first)
    page.do("step")
    page.do("reset")
    np.testing.assert_array_equal(page.run.trainer.model.parameters()[0].numpy(), drawn)
    assert page.run.trainer.epochs == 0
    assert not page.said()


def test_other_points_keep_the_network(page):
    page.do("step")
    page.do("set", values={"seed": "5"})
    assert page.run.trainer.epochs == 1
    assert [what for _, what, _ in page.run.trainer.changes] == ["seed"]
    assert not page.said()


def test_a_reset_goes_out_of_trouble(page):
    page.run.trainer.trouble = "It diverged."
    page.run.trainer.steps = 3
    page.do("play")
    assert page.run.playing
    assert page.run.trainer.steps == 0


def test_a_file_is_a_run(page):
    trainer = Trainer(Settings(dataset="xor", points=30))
    trainer.epoch()
    commands.do(page.run, page.viewer, to_file(trainer))
    assert page.run.trainer.settings == trainer.settings
    assert page.said() == ["This run goes on after epoch 1."]
    for data in (b"", b"PK\x03\x04", to_file(trainer)[:-1]):
        commands.do(page.run, page.viewer, data)
        assert page.said()[-1].startswith("This is no run of the playground")
    assert page.run.trainer.epochs == 1


NOT_UNDERSTOOD = [
    None, 3, "play", [], [["do", "play"]], {}, {"do": None}, {"do": 3}, {"do": []}, {"do": {}},
    {"do": "__class__"},
    {"do": "open"}, {"do": "set"}, {"do": "set", "values": None}, {"do": "set", "values": {"seed": 3}},
    {"do": "set", "values": ["seed"]}, {"do": "weight"}, {"do": "weight", "layer": 1, "from": 0, "to": 0},
    {"do": "weight", "layer": 9, "from": 0, "to": 0, "value": 1}, {"do": "weight", "layer": 1, "from": -1,
    "to": 0,
    "value": 1}, {"do": "weight", "layer": 1.0, "from": 0, "to": 0, "value": 1}, {"do": "weight",
    "layer": True,
    "from": 0, "to": 0, "value": 1}, {"do": "weight", "layer": 1, "from": 0, "to": 0, "value": "1"},
    {"do": "weight", "layer": 1, "from": 0, "to": 0, "value": 1e300}, {"do": "weight", "layer": 1, "from": 0,
    "to": 0,
    "value": float("nan")}, {"do": "weight", "layer": 1, "from": 0, "to": 0, "value": True},
    {"do": "bias", "layer": 1, "to": 3, "value": 1}, {"do": "bias", "layer": 0, "to": 0, "value": 1},
    {"do": "bias", "layer": 10**400, "to": 0, "value": 1}, {"do": "bias", "layer": 1, "to": 0,
    "value": 10**400},
    {"do": "paint"}, {"do": "paint", "points": None}, {"do": "paint", "points": 3}, {"do": "paint",
    "points": [3]},
    {"do": "paint", "points": [[1, 2]]}, {"do": "paint", "points": [[1, 2, 1, 1]]}, {"do": "paint",
    "points": "abc"},
    {"do": "paint", "points": [[1, 2, "1"]]}, {"do": "paint", "points": [[7, 0, 1]]}, {"do": "paint",
    "points":
    [[0, 0, 2]]}, {"do": "paint", "points": [[0, float("inf"), 1]]}, {"do": "paint", "points": [None]},
    {"do": "paint", "points": [{"x1": 1}]}, {"do": "erase"}, {"do": "erase", "at": [1, 1]}, {"do": "erase",
    "at": [1],
    "radius": 1}, {"do": "erase", "at": [1, 2, 3], "radius": 1}, {"do": "erase", "at": "ab", "radius": 1},
    {"do": "erase", "at": None, "radius": 1}, {"do": "erase", "at": [1, 1], "radius": None}, {"do": "upload"},
    {"do": "upload", "text": None}, {"do": "upload", "text": ["1,2,1"]}, {"do": "look"}, {"do": "look",
    "neuron": []},
    {"do": "look", "neuron": [1]}, {"do": "look", "neuron": [1, 2, 3]}, {"do": "look", "neuron": "ab"},
    {"do": "look", "neuron": 3}, {"do": "look", "neuron": {}}, {"do": "look", "neuron": [1, -1]},
    {"do": "look", "neuron": [1.5, 1]}, {"do": "look", "neuron": [10**9, 1]}, {"do": "look", "neuron": [None,
    None]},
    {"do": "reset", "weights_seed": 3}, {"do": "reset", "weights_seed": "-1"}, {"do": "reset",
    "weights_seed": None},
    {"do": "watch"}, {"do": "watch", "parts": None}, {"do": "watch", "parts": 3}, {"do": "travel"},
    {"do": "travel", "epoch": "3"}, {"do": "travel", "epoch": float("nan")}, {"do": "travel", "epoch": 1e300},
    {"do": "travel", "epoch": []}, {"do": "ask"}, {"do": "ask", "what": "script"}, {"do": "ask", "what": None,
    "id": 1},
    {"do": "ask", "what": [], "id": 1}, {"do": "ask", "what": "__class__", "id": 1}, {"do": "ask",
    "what": "script",
    "id": None}, {"do": "ask", "what": "script", "id": []},
]  # fmt: skip


@pytest.mark.parametrize("command", NOT_UNDERSTOOD, ids=lambda command: repr(command)[:40])
def test_what_no_page_of_ours_sends_is_answered_with_a_sentence(page, command):
    page.do("step")
    before = page.run.trainer.settings, page.run.trainer.steps, page.run.trainer.changes
    commands.do(page.run, page.viewer, command)
    assert page.said() == ["This page asked for something that isn't understood. Reload it."]
    assert (page.run.trainer.settings, page.run.trainer.steps, page.run.trainer.changes) == before
    page.do("ready")
    page.run.send_picture()


def test_commands_in_trouble(page):
    """Everything a page may ask while there is nothing to learn from."""
    page.do("set", values={"dataset": "own"})
    for command in (
        {"do": "play"}, {"do": "step"}, {"do": "pause"}, {"do": "reset"}, {"do": "look", "neuron": [1, 0]},
        {"do": "watch", "parts": ["histograms"]}, {"do": "erase", "at": [1, 1], "radius": 1},
        {"do": "weight", "layer": 1, "from": 0, "to": 0, "value": 1}, {"do": "set",
        "values": {"compiled": "off"}},
        {"do": "paint", "points": []}, {"do": "ready"}, {"do": "travel", "epoch": 0},
    ):  # fmt: skip
        commands.do(page.run, page.viewer, command)
        page.run.send_picture()
    assert not page.said()
    assert not page.run.trainer.looks_back


# ---- backups ---------------------------------------------------------------------------------------------


def backups(page):
    """What the page could bring to another server: (the trainer or None, whether it played) each time."""
    found = []
    for data in page.backups:
        (length,) = struct.unpack_from("<I", data)
        header = json.loads(data[4 : 4 + length])
        ((_, _, (size,)),) = header["arrays"]
        found.append((from_file(data[4 + length :][:size]) if size else None, header["playing"]))
    return found


def test_another_process_goes_on_from_a_backup(house, monkeypatch):
    monkeypatch.setattr(runs, "BACKUP", 0.0)
    page = Page(house)
    page.do("step")
    page.wait_for(lambda page: page.backups)
    page.do("set", values={"learning_rate": "0.1"})
    page.wait_for(lambda page: len(page.backups) == 2)
    (after_step, _), (newest, playing) = backups(page)
    assert (after_step.steps, after_step.settings.learning_rate, playing) == (3, 0.03, False)
    other = Runs()
    again = Page(other, name=page.run.id)
    assert again.of("welcome")[0]["is_lost"]
    done = threading.Event()
    other.command(again.run, again.viewer, to_file(newest), done.set)
    assert done.wait(60)
    again.do("play")
    again.wait_for(lambda page: page.of("picture") and page.of("picture")[-1]["steps"] > 3)
    assert again.of("notice")[0]["text"] == "This run goes on after epoch 1."
    assert again.run.trainer.settings.learning_rate == 0.1
    again.wait_for(lambda page: page.backups and backups(page)[-1][1])
    rest(other)


def test_a_page_that_knows_its_run_brings_nothing(house):
    page = Page(house)
    page.do("step")
    settled(house)
    page.leave()
    again = Page(house, name=page.run.id)
    new = Page(house)
    twin = Page(house, name=page.run.id)  # a duplicated tab
    assert [other.of("welcome")[0]["is_lost"] for other in (page, again, new, twin)] == [False] * 4
    again.wait_for(lambda page: page.backups)  # it may be another document, which has none


def test_backups_come_once_a_second_and_only_of_what_changes(house, monkeypatch):
    monkeypatch.setattr(runs, "BACKUP", 0.3)
    page = Page(house)
    page.do("look", neuron=[1, 0])
    time.sleep(0.1)
    assert not page.backups  # the address has all of it
    page.do("play")
    began = time.monotonic()
    page.wait_for(lambda page: page.run.trainer.steps > 1000)
    page.do("pause")
    settled(house)
    page.wait_for(lambda page: page.backups and not backups(page)[-1][1])
    time.sleep(0.4)
    assert 1 <= len(page.backups) <= 3 + (time.monotonic() - began) / 0.3
    trainer, playing = backups(page)[-1]
    assert (trainer.steps, playing) == (page.run.trainer.steps, False)
    count = len(page.backups)
    page.do("look", neuron=[1, 1])
    page.do("travel", epoch=0)  # an earlier moment is only looked at
    time.sleep(0.4)
    assert len(page.backups) == count
    page.do("reset")
    page.wait_for(lambda page: len(page.backups) > count)
    assert backups(page)[-1] == (None, False)


def test_backups_that_take_long_come_less_often_where_many_play(house, monkeypatch):
    monkeypatch.setattr(runs, "BACKUP", 0.0)
    page = Page(house)
    page.do("step")
    page.wait_for(lambda page: page.backups)
    run = page.run
    real, made = runs.messages.backup, []

    def slow(*given):
        made.append(given)
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return real(*given)

    monkeypatch.setattr(runs.messages, "backup", slow)
    page.do("play")
    began = time.monotonic()
    page.wait_for(lambda page: len(made) >= 4)
    assert time.monotonic() - began > 2 * 0.05 / runs.BACKUPS  # three pauses, less the first
    page.do("pause")
    settled(house)
    run._backed_up = None
    assert run.backup_due(20.0) - run._backed_up_at == pytest.approx(20 * run._backup_took)
    assert run._backup_took >= 0.05


def test_a_run_that_is_too_large_keeps_its_last_backup(house, monkeypatch, caplog):
    monkeypatch.setattr(runs, "BACKUP", 0.0)
    page = Page(house)
    page.do("step")
    page.wait_for(lambda page: page.backups)
    monkeypatch.setattr("playground.results.take_home.MOST_BYTES", 100)
    page.do("step")
    page.wait_for(lambda page: page.of("picture")[-1]["epochs"] == 2)
    settled(house)
    assert len(page.backups) == 1
    assert not caplog.records
