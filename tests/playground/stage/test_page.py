"""The page as a whole: its address, its lessons, its look on every screen, and its line to the server."""

from __future__ import annotations

import base64
import os
import re
import signal
import sys
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import numpy as np
import pytest

from playground.pages import TITLES
from playground.server import messages
from playground.testing import APP, free_port, serving
from playground.training.lessons import LESSONS
from playground.training.settings import FIELDS, Settings
from playground.training.trainer import Trainer

from .page import (
    FAULTS,
    Line,
    address_now,
    address_says,
    button,
    canvas,
    choose_nothing,
    diagram,
    epochs,
    figure,
    forget,
    heard,
    hears,
    inside,
    is_backed_up,
    is_shown,
    learned,
    losses,
    number,
    open_link,
    overlap,
    painted,
    pause,
    pixels,
    place,
    play,
    query,
    same,
    says,
    select,
    shows_losses_of,
    status,
    step,
    unlike,
    until,
    visit,
    weights,
)

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_the_address_holds_everything(page, visitor, address):
    visit(page, address)
    page.get_by_role("radio", name="xor", exact=True).check(force=True)
    address_says(page, dataset="xor")
    select(page, "Activation", "relu")
    button(page, "Layer 1: one more neuron").click()
    address_says(page, activation="relu", hidden="5-2")
    button(page, "Input x₁²").click()
    select(page, "Learning rate", "0.1")
    page.get_by_role("checkbox", name="Show test points").check()
    button(page, "Blue").click()
    page.mouse.click(*place(page, 5, 5))
    button(page, "Blue").click()
    wanted = {
        "dataset": "xor",
        "activation": "relu",
        "hidden": "5-2",
        "learning_rate": "0.1",
        "inputs": "x1,x2,x1**2",
    }
    address_says(page, **wanted, test_points="on")
    until(page, lambda: "own" in query(page), "the address holds the painted point")
    page.mouse.move(0, 0)

    other = visitor()
    other.goto(address_now(page))
    is_shown(other)
    settings = heard(other, "scene")[0]["settings"]
    assert settings == heard(page, "scene")[0]["settings"]
    assert wanted.items() <= settings.items()
    for name in ("plane", "network", "loss"):
        until(page, lambda name=name: same(pixels(other, name), pixels(page, name)), f"both show one {name}")
    assert query(other) == query(page)


def test_a_link_of_tensorflow_playground_opens_here(page, address):
    link = (
        "activation=relu&regularization=L2&batchSize=20&dataset=gauss&regDataset=reg-plane&learningRate=0.1"
        "&regularizationRate=0.003&noise=15&networkShape=5,3&seed=0.71&showTestData=true&discretize=false"
        "&percTrainData=70&x=true&y=false&xTimesY=true&xSquared=false&ySquared=true&cosX=false&sinX=true"
        "&cosY=false&sinY=false&collectStats=false&problem=classification&initZero=false&hideText=false"
        "&learningRate_hide=true&playButton_hide=false"
    )
    page.goto(f"{address}/#{link}")
    is_shown(page)
    same_here = {
        "dataset": "gaussian",
        "noise": "0.15",
        "train_share": "0.7",
        "inputs": "x1,x2**2,x1*x2,sin(x1)",
        "hidden": "5-3",
        "activation": "relu",
        "learning_rate": "0.1",
        "batch_size": "20",
        "regularisation": "l2",
        "regularisation_rate": "0.003",
        "test_points": "on",
        "hide": "learning_rate",
    }
    assert query(page) == same_here
    assert "#" not in address_now(page)
    told = (
        "From the link of TensorFlow Playground: data set, noise, training share, inputs, hidden layers, "
        "activation, learning rate, batch size, regularisation, penalty rate, show test points, "
        "hidden controls. Left out: seed."
    )
    until(page, lambda: status(page) == told, "the line tells what came from there")
    assert page.locator(".status").get_attribute("data-tone") == "info"
    visit(page, address)
    page.goto(f"{address}/#problem=regression&regDataset=reg-gauss&networkShape=")  # into the open page
    says(page, "From the link of TensorFlow Playground: data set, hidden layers.")
    assert urlsplit(address_now(page)).query == "dataset=multi-gaussian&hidden="
    for link, wanted in {
        "activation=tanh&networkShape=4,99": "Hidden layers must be at most 8 layers of 1 to 32 neurons",
        "dataset=circle&tutorial=it": "what is here by default. Left out: tutorial.",
    }.items():
        page.goto("about:blank")
        page.goto(f"{address}/#{link}")
        is_shown(page)
        assert wanted in status(page)


@pytest.mark.slow
def test_the_address_changes_seldom_and_a_browser_may_refuse(page, address):
    visit(page, address)
    page.evaluate(
        """() => { window.written = 0; const write = history.replaceState.bind(history);
            history.replaceState = (...given) => { written++; write(...given); }; }"""
    )
    noise = page.get_by_role("slider", name="Noise")
    noise.focus()
    began = page.evaluate("performance.now()")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(100)
    chosen = noise.input_value()
    address_says(page, noise=chosen)
    seconds = (page.evaluate("performance.now()") - began) / 1000
    assert page.evaluate("written") <= 2 * seconds + 1
    page.evaluate("() => { history.replaceState = () => { throw new Error('too many'); }; }")
    page.wait_for_timeout(500)
    button(page, "Layer 1: one more neuron").click()
    until(page, lambda: len(diagram(page)["neurons"][1]) == 5, "what the server says is shown all the same")
    link = page.locator("#link")
    until(
        page, lambda: link.input_value().endswith(f"?noise={chosen}&hidden=5-2"), "the link to share has it"
    )


@pytest.mark.slow
def test_absurd_addresses_are_told_quietly(page, address):
    visit(page, address, hidden="4-99", dataset="<img src=x onerror=alert(1)>", nonsense="1", points="1e9")
    line = page.locator(".status")
    assert line.get_attribute("data-tone") == "error"
    text = status(page)
    for words in (
        "Hidden layers must be at most 8 layers of 1 to 32 neurons",
        "Data set must be one of circle, xor",
        "There is no setting “nonsense”.",
        "Points must be a whole number from 10 to 5,000, not “1e9”.",
    ):
        assert words in text
    assert line.bounding_box()["height"] < 45
    assert page.locator(".status img").count() == 0
    step(page)
    shows_losses_of(page, learned(Trainer(Settings()), 1))
    for settings in (
        {"hidden": "0"},
        {"inputs": "x1,x1"},
        {"inputs": "__import__('os').system('true')"},
        {"own": "9,9,9"},
        {"learning_rate": "nan"},
        {"seed": "-1", "lesson": "none of these", "hide": "everything"},
        {"x" * 300: "y" * 3000},
    ):
        visit(page, address, **settings)
        assert line.get_attribute("data-tone") == "error"
        assert len(status(page)) > 20
        assert query(page) == {}
        assert epochs(page) == 0


@pytest.mark.slow
def test_a_lesson_asks_and_answers(page, address):
    visit(page, address)
    button(page, "Lessons").click()
    items = page.locator("#lessons").get_by_role("link")
    assert [item.locator("b").inner_text() for item in items.all()] == [one.title for one in LESSONS.values()]
    name, lesson = list(LESSONS.items())[1]
    items.nth(1).click()
    page.get_by_text(lesson.question).first.wait_for()
    is_shown(page)
    settings, problems = Settings().changed({**lesson.settings, "lesson": name})
    assert not problems
    shown = heard(page, "scene")[0]["settings"]
    assert shown == {field: FIELDS[field].write(getattr(settings, field)) for field in shown}
    bar = page.get_by_role("region", name="Lesson")
    says_so = bar.get_by_role("status")
    assert says_so.inner_text() == "Choose what you expect, and then let the network learn."
    for choice, _ in lesson.predictions:
        bar.get_by_role("button", name=choice, exact=True).click()
        assert says_so.inner_text() == f"Now let it learn: the answer comes after {lesson.epochs} epochs."
        assert bar.locator("[aria-pressed=true]").all_inner_texts() == [choice]
    play(page, lambda: epochs(page) > lesson.epochs, "the answer has come")
    next_one = list(LESSONS.values())[2]
    assert (
        says_so.inner_text() == f"✗ Not this time. {choice_of(lesson, choice)} Next lesson: {next_one.title}"
    )
    assert button(page, lesson.predictions[0][0]).is_disabled()
    assert number(figure(page, "accuracy")) > 95  # what the lesson says is so
    bar.get_by_role("link", name=f"Next lesson: {next_one.title}").click()
    page.get_by_text(next_one.question).first.wait_for()
    bar.get_by_role("link", name="Leave").click()
    is_shown(page)
    until(page, bar.is_hidden, "the lesson is left")
    assert query(page) == {}


def choice_of(lesson, choice):
    return dict(lesson.predictions)[choice]


@pytest.mark.slow
def test_a_lesson_keeps_its_answer_until_the_reader_has_chosen(page, address):
    lesson = LESSONS["dead-relu"]
    visit(page, address, **lesson.settings, lesson="dead-relu")
    play(page, lambda: epochs(page) > lesson.epochs, "the network has stopped")
    assert "units" in heard(page, "picture")[0]["hint"]
    assert "units" not in status(page)
    right, why = lesson.predictions[0]
    button(page, right).click()
    bar = page.get_by_role("region", name="Lesson")
    bar.get_by_text(f"✓ Right. {why}").wait_for()
    until(page, lambda: "units" in status(page), "the hint is told")


@pytest.mark.slow
def test_the_last_lesson_leads_back_and_a_divergence_ends_one(page, address):
    name, last = list(LESSONS.items())[-1]
    visit(page, address, **last.settings, lesson=name)
    button(page, last.predictions[0][0]).click()
    bar = page.get_by_role("region", name="Lesson")
    play(page, lambda: "✓ Right. " in bar.inner_text(), "the answer has come")
    assert "This was the last lesson." in bar.inner_text()
    bar.get_by_role("link", name="Back to the playground").click()
    is_shown(page)
    assert query(page) == {}

    large = LESSONS["large-rate"]
    visit(page, address, **large.settings, lesson="large-rate")
    button(page, large.predictions[0][0]).click()
    button(page, "Play").click()
    bar.get_by_text("✓ Right. ").wait_for()
    assert 10 <= epochs(page) <= large.epochs
    _, curve = heard(page, "picture")
    assert len(curve["train"]) >= 10
    assert np.isfinite(curve["train"]).all()


ALL_DATA_IS_SEEN = """() => {
  const data = document.querySelector(".data");
  return data.scrollHeight <= data.clientHeight;
}"""


#: Pixels between the names of two data sets that lie side by side.
GAP_OF_NAMES = """() => {
  const shown = [...document.querySelectorAll(".pictures span")].filter((at) => at.checkVisibility());
  const names = shown.map((at) => {
    const letters = document.createRange();
    letters.selectNodeContents(at);
    return letters.getBoundingClientRect();
  });
  const gaps = names.slice(1).map((box, i) => box.left - names[i].right);
  return Math.min(...gaps.filter((gap, i) => names[i].top === names[i + 1].top));
}"""


@pytest.mark.parametrize(
    ("width", "height"),
    [
        (1024, 768),
        *[
            pytest.param(*size, marks=pytest.mark.slow)
            for size in ((1280, 720), (1366, 768), (1440, 900), (2560, 1440), (390, 844))
        ],
    ],
)
def test_nothing_is_cut_off_or_overlaps(visitor, address, width, height):
    page = visitor(viewport={"width": width, "height": height}, has_touch=width < 500)
    visit(page, address)
    assert page.evaluate(FAULTS) == []
    assert page.evaluate(GAP_OF_NAMES) >= 5
    if width > 860:
        assert page.evaluate("document.scrollingElement.scrollHeight <= innerHeight")
        assert page.evaluate(ALL_DATA_IS_SEEN)
        for what in page.locator(
            "button:visible, select:visible, canvas[data-canvas]:visible, dd:visible"
        ).all():
            assert inside(what.bounding_box(), width, height), what
    much = {
        "hidden": "8:relu:dropout0.2-8-8-8-8-8-8-8",
        "inputs": "x1,x2,x1**2+x2**2+cos(x1)",
        "points": "5000",
    }
    much |= {"schedule": "cosine", "learning_rate": "0.000001", "noise": "0.35", "regularisation": "l2"}
    visit(page, address, **much)
    button(page, "Step").click()
    until(page, lambda: heard(page, "picture")[0]["steps"] > 0, "it has learned")
    painted(page)
    assert page.evaluate(FAULTS) == []
    visit(page, address, lesson="noise", dataset="multi-gaussian")
    page.locator(".lesson button").first.click()
    painted(page)
    assert page.evaluate(FAULTS) == []
    assert page.evaluate(ALL_DATA_IS_SEEN)
    width = page.evaluate("document.body.clientWidth")  # without the place of a scrollbar
    for name in ["Lessons", "Share", "Take home", *([] if width > 860 else ["Pages"])]:
        button(page, name).click()
        menu = page.locator("[popover]:popover-open")
        until(page, lambda menu=menu: inside(menu.bounding_box(), width, height), f"all of {name} is seen")
        page.keyboard.press("Escape")


@pytest.mark.slow
def test_a_phone_keeps_the_picture_free(visitor, address):
    page = visitor(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit(page, address)
    for what in (canvas(page, "plane"), button(page, "Play"), page.locator("[data-figure=epochs]")):
        assert inside(what.bounding_box(), 390, 844)
    button(page, "Play").tap()
    until(page, lambda: epochs(page) > 3, "it plays")
    before = pixels(page, "plane")
    button(page, "Controls").tap()
    sheet = page.locator("#sheet")
    until(
        page, lambda: sheet.bounding_box()["y"] + sheet.bounding_box()["height"] < 790, "the sheet has come"
    )
    map_, bar = canvas(page, "plane").bounding_box(), page.locator(".transport").bounding_box()
    assert inside(map_, 390, 844)
    assert not overlap(map_, sheet.bounding_box())
    assert not overlap(bar, sheet.bounding_box())
    until(page, lambda: not same(pixels(page, "plane"), before), "the picture goes on")
    page.get_by_role("combobox", name="Activation").select_option("sigmoid")
    address_says(page, activation="sigmoid")
    button(page, "Data").tap()
    page.get_by_role("radio", name="gaussian", exact=True).tap(force=True)
    address_says(page, dataset="gaussian")
    for control in sheet.locator("button:visible, select:visible, input:visible").all():
        control.scroll_into_view_if_needed()
        box = control.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    button(page, "Close").tap()
    until(page, lambda: not page.get_by_role("combobox", name="Activation").is_visible(), "the sheet is away")


@pytest.mark.slow
def test_dark_follows_the_system(visitor, address):
    page = visitor(color_scheme="dark")
    visit(page, address, points="10")
    dark = np.array([20, 23, 31])

    def paper():
        return [
            *map(
                int,
                re.findall(r"\d+", page.evaluate("getComputedStyle(document.documentElement).background")),
            )
        ]

    trainer = Trainer(Settings(points=10))
    assert paper()[:3] == dark.tolist()
    until(page, lambda: unlike(page, trainer.predict, dark) < 0.04, "the map fades to the dark paper")
    names = ("plane", "network", "loss")
    pictures = {name: pixels(page, name, dark) for name in names}
    for picture in pictures.values():  # letters and frames are light
        assert picture.mean(axis=-1).max() > 110
    assert np.median(pictures["loss"]) < 60
    page.emulate_media(color_scheme="light")
    until(page, lambda: paper()[:3] == [255, 255, 255], "the page is light")
    until(page, lambda: unlike(page, trainer.predict) < 0.04, "the map fades to white")
    for name in names:
        assert not same(pixels(page, name), pictures[name])
    page.emulate_media(color_scheme="dark")
    for name in names:
        until(page, lambda name=name: same(pixels(page, name, dark), pictures[name]), f"{name} is dark again")


ALL_ARE_LARGE = "all => all.every((image) => image.complete && image.naturalWidth >= 48)"


@pytest.mark.slow
def test_what_stays_as_it_is_is_no_canvas(visitor, address):
    """Browsers copy each canvas in each frame; opaque ones, which they need not mix with what lies below."""
    for scheme, paper in (("light", 255), ("dark", 20)):
        page = visitor(color_scheme=scheme)
        visit(page, address, points="10")
        names = page.locator("canvas").evaluate_all("all => all.map((canvas) => canvas.dataset.canvas)")
        assert sorted(names) == ["loss", "network", "plane"]
        corners = page.locator("canvas").evaluate_all(
            "all => all.map((canvas) => [...canvas.getContext('2d').getImageData(0, 0, 1, 1).data])"
        )
        assert all(corner[0] == paper and corner[3] == 255 for corner in corners)
        images = page.locator(".tile img, .pictures img")
        assert images.count() == 7 + len(FIELDS["dataset"].choices)
        until(page, lambda images=images: images.evaluate_all(ALL_ARE_LARGE), "all images are there")
        assert images.evaluate_all("all => new Set(all.map((image) => image.src)).size") == images.count()


def test_numbers_of_16_bits_are_read(page, address):
    visit(page, address)
    bits = np.arange(65536, dtype="<u2")
    message = messages.pack({"kind": "test"}, {"numbers": bits.view(np.float16)})
    read = """async (message) => {
      const { unpack } = await import(new URL("stage/messages.js", document.baseURI).href);
      const { numbers } = unpack(Uint8Array.from(atob(message), (c) => c.charCodeAt(0)).buffer).arrays;
      const bytes = new Uint8Array(numbers.buffer);
      let text = "";
      for (const byte of bytes) text += String.fromCharCode(byte);
      return btoa(text);
    }"""
    found = base64.b64decode(page.evaluate(read, base64.b64encode(message).decode()))
    np.testing.assert_array_equal(np.frombuffer(found, "<f4"), bits.view(np.float16).astype("f4"))


def test_a_reload_shows_the_same_run(page, address):
    visit(page, address, dataset="xor")
    step(page, 2)
    editor = open_link(page, 1, 0, 0)
    editor.fill("1.5")
    editor.press("Enter")
    until(page, lambda: weights(page)[0, 0] == 1.5, "a weight is changed")
    page.locator("#editor").wait_for(state="hidden")
    choose_nothing(page)
    painted(page)
    before = losses(page)
    run, scene = heard(page, "welcome")[0]["run"], heard(page, "scene")[0]
    page.reload()
    is_shown(page)
    assert heard(page, "welcome")[0]["run"] == run
    assert heard(page, "scene")[0]["settings"] == scene["settings"]
    assert (epochs(page), losses(page)) == (2, before)
    assert weights(page)[0, 0] == 1.5
    visit(page, address, dataset="gaussian")  # another address is another run
    assert (epochs(page), heard(page, "welcome")[0]["run"] == run) == (0, False)


@pytest.mark.slow
def test_a_broken_line_comes_back_to_its_run(page, address):
    line = Line(page)
    visit(page, address)
    step(page)
    (first,) = line.openings()
    assert (first["run"], first["token"]) == (None, None)
    welcome = heard(page, "welcome")[0]
    line.cut(code=1001)
    until(page, lambda: len(line.openings()) == 2, "the line is open again")
    again = line.openings()[1]
    assert (again["run"], again["token"]) == (welcome["run"], welcome["token"])
    assert welcome["token"] not in page.evaluate(
        "JSON.stringify([{ ...sessionStorage }, { ...localStorage }])"
    )
    until(page, lambda: status(page) != "Connecting again …", "the line is quiet")
    step(page)
    assert epochs(page) == 2
    newest = heard(page, "welcome")[0]["token"]
    line.cut(code=4000)
    says(page, "This run is shown in another tab by now.")
    button(page, "Show it here").click()
    until(page, lambda: len(line.openings()) == 3, "the button opens the line")
    assert line.openings()[2]["token"] == newest
    until(page, lambda: not status(page).startswith("This run is shown"), "the line is quiet")
    step(page)
    assert epochs(page) == 3


@pytest.mark.slow
def test_a_question_on_a_broken_line_is_answered_at_once(page, address):
    line = Line(page)
    visit(page, address)
    line.cut()
    says(page, "Connecting again …")
    button(page, "Look inside").click()
    page.locator(".inside-place").get_by_text("The connection broke. Try again in a moment.").wait_for()
    button(page, "Take home").click()
    script = page.locator("[data-take=script]")
    script.click()
    until(page, lambda: script.is_enabled() and script.inner_text() == "Python script", "the button is free")


@pytest.mark.slow
def test_a_killed_server_loses_nothing(visitor, troubles):
    port = free_port()
    address = f"http://127.0.0.1:{port}"

    @contextmanager
    def server():
        command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
        command += ["--server.address=127.0.0.1", "--server.headless=true"]
        with serving(command, f"{address}/_stcore/health", cwd=APP.parent) as process:
            yield process
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)  # it can't say goodbye

    page = visitor()
    with server():
        visit(page, address, dataset="xor", hidden="3", optimiser="adam")
        play(page, lambda: epochs(page) >= 5, "it learns")
        is_backed_up(page)
        picture, before = pixels(page, "plane"), heard(page, "picture")
    says(page, "Connecting again …")
    assert same(pixels(page, "plane"), picture)  # what was there stays
    forget(page, "picture")
    with server():  # it comes back by itself
        says(page, f"This run goes on after epoch {before[0]['epochs']:,}.")
        hears(page, "picture")
        is_where_it_was(page, before)
        assert query(page) == {"dataset": "xor", "hidden": "3", "optimiser": "adam"}
        before_steps = epochs(page)
        step(page)
        assert epochs(page) == before_steps + 1
        is_backed_up(page)
        before = heard(page, "picture")
    with server():  # a reload, since the page was not patient
        page.reload()
        is_shown(page)
        is_where_it_was(page, before)
        button(page, "Play").click()
        until(page, lambda: epochs(page) > before[0]["epochs"] + 2, "it learns")
        is_backed_up(page, steps=heard(page, "picture")[0]["steps"])
    says(page, "Connecting again …")
    forget(page, "picture")
    with server():  # it played, and goes on playing
        hears(page, "picture")
        until(page, lambda: heard(page, "picture")[0]["playing"], "it goes on")
        pause(page)
        assert epochs(page) > before[0]["epochs"] + 1
        visit(page, address, dataset="gaussian")  # another address has nothing to do with it
        assert epochs(page) == 0
        page.goto("about:blank")
    assert all("WebSocket connection" in text for text in troubles)
    troubles.clear()


def is_where_it_was(page, before):
    header, arrays = before
    until(page, lambda: epochs(page) == header["epochs"], "the epoch is the same")
    now, present = heard(page, "picture")
    assert [now[name] for name in ("steps", "epochs", "figures")] == [
        header[name] for name in ("steps", "epochs", "figures")
    ]
    for name in arrays:
        np.testing.assert_array_equal(present[name], arrays[name])


@pytest.mark.slow
def test_two_tabs_are_independent(page, address):
    visit(page, address)
    other = page.context.new_page()
    visit(other, address, dataset="xor")
    button(other, "Play").click()
    until(other, lambda: epochs(other) >= 2, "the other page learns")
    assert (epochs(page), query(page)) == (0, {})
    select(page, "Activation", "relu")
    address_says(page, activation="relu")
    assert query(other) == {"dataset": "xor"}
    page.bring_to_front()
    step(page)
    shows_losses_of(page, learned(Trainer(Settings(activation="relu")), 1))
    with page.context.expect_page() as opened:  # a duplicated tab has the same session storage
        page.evaluate("window.open(location.href, '_blank')")
    twin = opened.value
    is_shown(twin)
    assert heard(twin, "welcome")[0]["run"] != heard(page, "welcome")[0]["run"]
    assert epochs(page) == 1


@pytest.mark.slow
def test_every_page_opens_without_a_fault(page, address):
    visit(page, address)
    pages = page.get_by_role("navigation", name="Pages")
    assert pages.get_by_role("link").all_inner_texts() == ["Playground", *TITLES.values()]
    for name, title in TITLES.items():
        pages.get_by_role("link", name=title, exact=True).click()
        until(page, lambda name=name: urlsplit(address_now(page)).path == f"/{name}", f"{title} is there")
        page.get_by_role("heading", level=2).wait_for()
        page.locator("[data-testid=stStatusWidget]").wait_for(state="detached")
        assert page.locator("[data-testid=stException]").count() == 0
        page.get_by_role("link", name="Playground").first.click()
        is_shown(page)
        assert urlsplit(address_now(page)).path == "/"
