"""The playground as a person sees it: in a real browser, from a real server.

Each row of the tables in playground/README.md has a test here. What colours, widths and places mean is read
from the canvases' pixels; numbers are compared with a Trainer of this process that has the same settings.
"""

from __future__ import annotations

import ast
import base64
import io
import math
import re
import sys
from contextlib import contextmanager
from itertools import pairwise

import nbformat
import numpy as np
import pytest
from PIL import Image, ImageSequence

import needle as ndl
from needle.data import toy
from playground.pages import TITLES
from playground.server import messages
from playground.testing import APP, free_port, serving
from playground.training.lessons import LESSONS
from playground.training.settings import FIELDS, HIDEABLE, Layer, Settings
from playground.training.trainer import Trainer

from .stage import (
    BLUE,
    FAULTS,
    HEAR,
    ORANGE,
    WHITE,
    Line,
    address_says,
    begins_anew,
    button,
    canvas,
    choose_nothing,
    diagram,
    dots,
    epochs,
    figure,
    heard,
    hover_neuron,
    inside,
    is_near,
    is_shown,
    learned,
    losses,
    more,
    number,
    open_bias,
    open_link,
    overlap,
    painted,
    pause,
    pixels,
    place,
    plane,
    play,
    query,
    same,
    says,
    select,
    shaded,
    shows_losses_of,
    shows_map,
    status,
    step,
    unlike,
    until,
    visit,
    weights,
)

pytestmark = pytest.mark.browser


@pytest.fixture
def troubles():
    """What has gone wrong in the page, or left this machine. At the end of a test, nothing may have."""
    found: list[str] = []
    yield found
    assert not found


@pytest.fixture
def visitor(browser, address, troubles):
    """Opens a page of a person who was never here before; options are those of a browser's context."""
    opened = []

    def open_page(notes=False, **options):
        context = browser.new_context(**{"viewport": {"width": 1024, "height": 720}, **options})
        opened.append(context)
        context.add_init_script(HEAR)
        if not notes:
            context.add_init_script("location.host && localStorage.setItem('needle-notes', 'off')")
        watch(context, troubles)
        return context.new_page()

    yield open_page
    for context in opened:
        context.close()


def watch(context, troubles):
    own = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")
    stays = lambda url: url.startswith(own) or troubles.append(f"asked for {url}")  # noqa: E731
    context.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on("request", lambda request: stays(request.url))
    context.on("page", lambda page: page.on("websocket", lambda socket: stays(socket.url)))
    context.on(
        "response",
        lambda answer: answer.status < 400 or troubles.append(f"{answer.status} for {answer.url}"),
    )


@pytest.fixture
def page(visitor):
    return visitor()


# ---- as in TensorFlow Playground ---------------------------------------------------------------------------


def test_play_pause_step_and_reset(page, address):
    visit(page, address)
    names = ("plane", "network", "loss")
    first = {name: pixels(page, name) for name in names}
    assert (epochs(page), figure(page, "speed")) == (0, "paused")

    step(page)
    shows_losses_of(page, learned(Trainer(Settings()), 1))
    button(page, "Play").click()
    until(page, lambda: epochs(page) >= 10, "ten epochs were shown")
    until(page, lambda: "epochs/s" in figure(page, "speed"), "the speed is shown")
    for name in names:
        assert not same(pixels(page, name), first[name])

    pause(page)
    paused, picture = epochs(page), pixels(page, "plane")
    assert same(pixels(page, "plane"), picture)
    step(page)
    assert epochs(page) == paused + 1  # so nothing was learned in between

    button(page, "Reset").click(modifiers=["Shift"])
    until(page, lambda: epochs(page) == 0, "the epochs are back at 0")
    page.mouse.move(0, 0)
    for name in names:
        until(page, lambda name=name: same(pixels(page, name), first[name]), f"{name} is as it was")
    assert "weights_seed" not in query(page)

    page.keyboard.press("s")
    until(page, lambda: epochs(page) == 1, "the key s has learned for an epoch")
    page.locator("body").click(position={"x": 500, "y": 112})
    page.keyboard.press("Space")
    button(page, "Pause").wait_for()
    until(page, lambda: epochs(page) > 3, "the space bar plays")
    page.keyboard.press("Space")
    button(page, "Play").wait_for()
    page.keyboard.press("r")
    until(page, lambda: epochs(page) == 0, "the key r has reset")


def test_reset_draws_other_weights(page, address):
    visit(page, address)
    first = weights(page)
    step(page)
    button(page, "Reset").click()
    until(page, lambda: "weights_seed" in query(page), "the address holds the seed of the weights")
    begins_anew(page)
    drawn, seed = weights(page), int(query(page)["weights_seed"])
    assert not same(drawn, first)
    np.testing.assert_array_equal(drawn, Trainer(Settings(weights_seed=seed)).model.parameters()[0].numpy())
    assert "seed" not in query(page)  # the same points
    assert "the same" in button(page, "Reset").get_attribute("title")

    step(page)
    choose_nothing(page)
    page.keyboard.press("Shift+R")
    begins_anew(page)
    assert same(weights(page), drawn)
    page.keyboard.press("r")
    until(page, lambda: not same(weights(page), drawn), "the key r draws others")

    more(page)
    field = page.get_by_role("spinbutton", name="Weights seed")
    field.fill(str(seed))
    field.press("Enter")
    until(page, lambda: same(weights(page), drawn), "a seed that is typed brings its weights back")


@pytest.mark.slow
def test_a_learning_rate_counts_at_once(page, address):
    visit(page, address)
    offered = page.get_by_role("combobox", name="Learning rate").locator("option").all_inner_texts()
    assert list(map(float, offered[:-1])) == [1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]
    step(page)
    trainer = learned(Trainer(Settings()), 1)
    select(page, "Learning rate", "0.3")
    address_says(page, learning_rate="0.3")
    assert epochs(page) == 1
    step(page)
    trainer.retune(Settings(learning_rate=0.3))
    shows_losses_of(page, learned(trainer, 1))

    select(page, "Learning rate", "other")
    typed = page.get_by_role("spinbutton", name="Learning rate")
    typed.fill("0.07")
    typed.press("Enter")
    address_says(page, learning_rate="0.07")
    step(page)
    trainer.retune(Settings(learning_rate=0.07))
    shows_losses_of(page, learned(trainer, 1))

    for wrong in ("-1", "1e99"):
        select(page, "Learning rate", "other")
        typed.fill(wrong)
        typed.press("Enter")
        says(page, f"Learning rate must be a number from 0.000001 to 100, not “{wrong}”.")
        until(
            page,
            lambda: page.get_by_role("combobox", name="Learning rate").input_value() == "0.07",
            "the rate in use is shown again",
        )


@pytest.mark.slow
def test_an_activation_for_all_layers(page, address):
    visit(page, address, points="10")
    for name, title in (("relu", "ReLU"), ("sigmoid", "sigmoid"), ("linear", "linear"), ("tanh", "tanh")):
        select(page, "Activation", name)
        for layer in (1, 2):
            button(page, f"Layer {layer} ({title})").wait_for()
        trainer = Trainer(Settings(activation=name, points=10))
        hover_neuron(page, 2, 1)
        shows_map(
            page, lambda points, t=trainer: t.activations(points)[1][:, 1], f"a neuron answers as {name}"
        )
        page.mouse.move(0, 0)


@pytest.mark.slow
def test_regularisation_and_its_rate(page, address):
    visit(page, address)
    for kind in ("l1", "l2", "none"):
        select(page, "Regularisation", kind)
        select(page, "Penalty rate", "0.3")
        until(page, lambda kind=kind: query(page).get("regularisation", "none") == kind, "it is chosen")
        address_says(page, regularisation_rate="0.3")
        begins_anew(page)
        step(page, 2)
        settings = Settings(regularisation=kind, regularisation_rate=0.3)
        shows_losses_of(page, learned(Trainer(settings), 2))
    select(page, "Regularisation", "l2")
    begins_anew(page)
    step(page)
    select(page, "Penalty rate", "0.01")
    address_says(page, regularisation_rate="0.01")
    step(page)  # and another rate goes on
    trainer = learned(Trainer(Settings(regularisation="l2", regularisation_rate=0.3)), 1)
    trainer.retune(Settings(regularisation="l2", regularisation_rate=0.01))
    shows_losses_of(page, learned(trainer, 1))


@pytest.mark.slow
def test_regression_shows_numbers(page, address):
    visit(page, address)
    for name in toy.REGRESSION:
        page.get_by_role("radio", name=name, exact=True).check(force=True)
        page.get_by_text("Output (linear)").wait_for()
        until(page, lambda: figure(page, "accuracy") == "–", "there is no accuracy")
        trainer = Trainer(Settings(dataset=name))
        shows_losses_of(page, trainer)
        picture = plane(page)
        (points, labels), side = trainer.train, len(picture)
        chosen = np.abs(labels) > 0.2
        rows, columns = (
            ((6 - points[:, 1]) / 12 * side).astype(int),
            ((points[:, 0] + 6) / 12 * side).astype(int),
        )
        wanted = np.where(labels[:, None] < 0, ORANGE, BLUE) * (0.25 + 0.75 * np.abs(labels[:, None]))
        wanted += 255 * (0.75 - 0.75 * np.abs(labels[:, None]))
        fits = is_near(picture[rows, columns], wanted)[chosen]
        assert fits.mean() > 0.8  # some are hidden by others
        step(page, 2)
        shows_losses_of(page, learned(trainer, 2))


@pytest.mark.slow
def test_a_data_set_shows_its_points(page, address):
    visit(page, address)
    names = page.locator(".pictures label span")
    assert names.all_inner_texts()[:4] == ["Circle", "XOR", "Gaussian", "Spiral"]
    assert all(name.is_visible() for name in names.all())
    for name in [*list(toy.DATASETS)[1:], "circle"]:
        page.get_by_role("radio", name=name, exact=True).check(force=True)
        until(
            page, lambda name=name: query(page).get("dataset", "circle") == name, f"{name} is in the address"
        )
        points, labels = Trainer(Settings(dataset=name)).train
        inside = np.all(np.abs(points) < 5.9, axis=1)
        until(
            page,
            lambda points=points[inside], labels=labels[inside]: dots(page, points, labels) > 0.9,
            f"the points of {name} are shown",
        )
        assert not page.get_by_role("radio", name=name, exact=True).evaluate("radio => !radio.checked")


@pytest.mark.slow
def test_data_controls(page, address):
    visit(page, address)
    share, noise = (page.get_by_role("slider", name=name) for name in ("Training share", "Noise"))
    share.focus()
    share.press("ArrowRight")
    page.get_by_text("300 to learn from, 200 to test").wait_for()
    noise.focus()
    for _ in range(4):
        noise.press("ArrowRight")
    address_says(page, train_share="0.6", noise="0.2")
    until(
        page,
        lambda: dots(page, *Trainer(Settings(train_share=0.6, noise=0.2)).train) > 0.9,
        "points are noisy",
    )

    points = page.get_by_role("spinbutton", name="Points")
    points.fill("80")
    points.press("Enter")
    page.get_by_text("48 to learn from, 32 to test").wait_for()
    select(page, "Batch size", "1")
    address_says(page, batch_size="1", points="80")
    step(page)
    shows_losses_of(page, learned(Trainer(Settings(train_share=0.6, noise=0.2, points=80, batch_size=1)), 1))
    assert heard(page, "picture")[0]["steps"] == 48
    for wrong in ("7", "1000000", "", "2.5"):
        points.fill(wrong)
        points.press("Enter")
        says(page, f"Points must be a whole number from 10 to 5,000, not “{wrong}”.")
        assert points.input_value() == "80"  # the valid one is back
    points.fill("")
    points.press_sequentially("1e400")
    points.press("Enter")
    until(
        page, lambda: status(page) == "Points must be a whole number from 10 to 5,000.", "no text is made up"
    )
    assert points.input_value() == "80"


@pytest.mark.slow
def test_regenerate_draws_new_points(page, address):
    visit(page, address)
    step(page)
    first, before = pixels(page, "plane"), weights(page)
    button(page, "Regenerate").click()
    until(page, lambda: "seed" in query(page), "the address holds the seed")
    painted(page)
    assert epochs(page) == 1  # the network stays, and goes on
    assert same(weights(page), before)
    seed = int(query(page)["seed"])
    assert seed != 0
    until(page, lambda: dots(page, *Trainer(Settings(seed=seed)).train) > 0.9, "the seed's points are shown")
    more(page)
    page.get_by_role("spinbutton", name="Data seed").fill("0")
    page.get_by_role("spinbutton", name="Data seed").press("Enter")
    more(page)
    until(page, lambda: same(pixels(page, "plane"), first), "the same seed shows the same again")


@pytest.mark.slow
def test_inputs_go_on_and_off(page, address):
    visit(page, address)
    tiles = {
        text: button(page, f"Input {label}") for text, label in FIELDS["inputs"].for_page()["known"].items()
    }
    assert len(tiles) == 7
    for text in ("x1**2", "sin(x2)"):
        tiles[text].click()
        until(page, lambda text=text: text in query(page).get("inputs", ""), f"{text} is on")
        assert tiles[text].get_attribute("aria-pressed") == "true"
    until(page, lambda: len(weights(page)) == 4, "there are links from four inputs")
    shows_losses_of(page, Trainer(Settings(inputs=("x1", "x2", "x1**2", "sin(x2)"))))
    start = diagram(page)["links"]["1,2,0"]
    link = pixels(page, "network")
    box = canvas(page, "network").bounding_box()
    x, y = int(start[0] - box["x"]), int(start[1] - box["y"])
    assert np.any(link[y - 2 : y + 3, x] < 250)  # something is drawn where its link lies
    for text in ("x1", "x2", "x1**2"):
        tiles[text].click()
        until(page, lambda t=text: t not in query(page)["inputs"].split(","), f"{text} is off")
    tiles["sin(x2)"].click()
    says(page, "A network needs at least one input.")
    assert tiles["sin(x2)"].get_attribute("aria-pressed") == "true"


def test_two_quick_clicks_turn_on_two_inputs(page, address):
    visit(page, address, inputs="x1,maximum(x1,x2)")
    page.evaluate(
        """() => { for (const text of ["x1**2", "x2**2"])
            document.querySelector(`.tile[data-input="${text}"]`).click(); }"""
    )
    address_says(page, inputs="x1,x1**2,x2**2,maximum(x1,x2)")


def test_layers_and_neurons_by_plus_and_minus(page, address):
    visit(page, address)
    button(page, "Layer 1: one more neuron").click()
    address_says(page, hidden="5-2")
    until(page, lambda: weights(page).shape == (2, 5), "the first layer has five neurons")
    assert len(diagram(page)["neurons"][1]) == 5
    button(page, "Layer 2: one fewer neuron").click()
    address_says(page, hidden="5-1")
    assert button(page, "Layer 2: one fewer neuron").is_disabled()
    button(page, "Network: one more layer").click()
    address_says(page, hidden="5-1-1")
    shows_losses_of(page, Trainer(Settings(hidden=(5, 1, 1))))
    for layers in ("5-1", "5", ""):
        button(page, "Network: one fewer layer").click()
        address_says(page, **({"hidden": layers} if layers else {}))
    until(page, lambda: weights(page).shape == (2, 1), "there is no hidden layer")
    assert button(page, "Network: one fewer layer").is_disabled()
    button(page, "Network: one more layer").click()
    button(page, "Layer 1 (tanh)").wait_for()

    visit(page, address, hidden="32-1-1-1-1-1-1-1")
    assert button(page, "Layer 1: one more neuron").is_disabled()
    assert button(page, "Network: one more layer").is_disabled()


def test_links_tell_weights_by_width_and_colour(page, address):
    visit(page, address, hidden="", inputs="x1")
    widths = {}
    for weight in (-1.0, -0.2, 0.2, 0.6, 1.0):
        editor = open_link(page, 1, 0, 0)
        editor.fill(str(weight))
        editor.press("Enter")
        until(
            page, lambda weight=weight: weights(page)[0, 0] == np.float32(weight), f"the weight is {weight}"
        )
        choose_nothing(page)
        x, _ = diagram(page)["links"]["1,0,0"]
        box = canvas(page, "network").bounding_box()
        column = pixels(page, "network")[:, int(x - box["x"])]
        inked = column[np.max(np.abs(column - WHITE), axis=-1) > 12]
        widths[weight] = np.sum(255 - column) / np.sum(255 - (BLUE if weight > 0 else ORANGE))
        darkest = inked[np.argmin(inked.sum(axis=-1))]
        assert (darkest[2] > darkest[0]) == (weight > 0), f"the colour of {weight}"
    assert widths[0.2] * 2 < widths[0.6] < widths[1.0] / 1.5
    editor = open_link(page, 1, 0, 0)
    editor.fill("0")
    editor.press("Enter")
    until(page, lambda: weights(page)[0, 0] == 0, "the weight is 0")
    choose_nothing(page)
    x, _ = diagram(page)["links"]["1,0,0"]
    assert pixels(page, "network")[:, int(x - box["x"])].min() < 252  # a thin line is left to click
    assert widths[-0.2] == pytest.approx(widths[0.2], rel=0.1)
    assert widths[-1.0] == pytest.approx(widths[1.0], rel=0.1)


def test_a_clicked_link_and_bias_can_be_changed(page, address):
    visit(page, address)
    trainer = Trainer(Settings())
    weight = open_link(page, 2, 1, 0)
    assert page.locator("#editor p").inner_text() == "Layer 1, neuron 2 → Layer 2, neuron 1: weight"
    assert float(weight.input_value()) == pytest.approx(
        trainer.learner.linears[1].weight.numpy()[1, 0], abs=1e-3
    )
    weight.fill("2.5")
    weight.press("Enter")
    trainer.set_weight(2, 1, 0, 2.5)
    shows_losses_of(page, trainer)
    until(
        page, lambda: "weight +2.500" in page.locator("[data-note=network]").inner_text(), "the note says so"
    )
    bias = open_bias(page, 1, 3)
    assert page.locator("#editor p").inner_text() == "Layer 1, neuron 4: bias"
    bias.fill("-1.5")
    bias.press("Enter")
    trainer.set_bias(1, 3, -1.5)
    shows_losses_of(page, trainer)
    step(page)
    shows_losses_of(page, learned(trainer, 1))

    button(page, "Play").click()  # live: the number follows the training, and a change goes into it
    weight = open_link(page, 1, 0, 1)
    before = weight.input_value()
    until(page, lambda: weight.input_value() != before, "the number follows the training")
    weight.fill("9")
    until(page, lambda: abs(weights(page)[0, 1]) > 7, "the network has the new weight")
    until(page, lambda: epochs(page) > 1, "the training goes on")
    weight.fill("1e9")  # too much: as much as is possible
    until(page, lambda: abs(weights(page)[0, 1]) > 9e5, "the network has the largest weight")
    assert "understood" not in status(page)


def test_the_number_is_at_the_mouse_and_its_editor_leaves_the_neuron_free(page, address):
    visit(page, address)
    trainer = Trainer(Settings())
    tip = page.locator(".tip")
    x, y = diagram(page)["links"]["2,1,0"]
    page.mouse.move(x, y)
    weight = trainer.learner.linears[1].weight.numpy()[1, 0]
    until(page, lambda: tip.is_visible(), "the tip comes")
    assert number(tip.inner_text().removeprefix("weight ")) == pytest.approx(weight, abs=1e-3)
    box = tip.bounding_box()
    assert abs(box["x"] - x) < 100
    assert abs(box["y"] - y) < 60
    hover_neuron(page, 1, 3)
    bias = trainer.learner.linears[0].bias.numpy()[0, 3]
    until(page, lambda: "bias" in tip.inner_text(), "the tip tells the bias")
    assert number(tip.inner_text().removeprefix("bias ")) == pytest.approx(bias, abs=1e-3)
    page.mouse.move(5, 300)
    until(page, lambda: not tip.is_visible(), "the tip goes")

    places = diagram(page)
    half = places["size"] / 2
    for kind, ends in (
        ((1, 0, 0), [(1, 0)]), ((2, 1, 0), [(1, 1), (2, 0)]), ((3, 1, 0), [(2, 1), (3, 0)])
    ):  # fmt: skip
        open_link(page, *kind)
        editor = page.locator("#editor").bounding_box()
        for layer, index in ends:
            x, y = places["neurons"][layer][index]
            neuron = {"x": x - half, "y": y - half, "width": 2 * half, "height": 2 * half}
            assert not overlap(editor, neuron)
        page.keyboard.press("Escape")
    for layer, index in ((1, 3), (2, 0), (3, 0)):
        open_bias(page, layer, index)
        x, y = places["neurons"][layer][index]
        neuron = {"x": x - half, "y": y - half, "width": 2 * half, "height": 2 * half}
        assert not overlap(page.locator("#editor").bounding_box(), neuron)
        page.keyboard.press("Escape")


def test_more_layers_than_fit_can_be_reached(page, address):
    visit(page, address, hidden="8-8-8-8-8-8-8-8", points="10")
    output = page.get_by_text("Output (tanh)")
    frame = page.locator(".diagram-frame").bounding_box()
    seen = lambda: output.bounding_box()["x"] < frame["x"] + frame["width"] - 20  # noqa: E731
    assert not seen()
    for _ in range(3):
        if button(page, "Show the layers further right").count():
            button(page, "Show the layers further right").click()
            page.wait_for_timeout(600)
    until(page, seen, "the output is seen")
    button(page, "Back to the inputs").click()
    until(page, lambda: not seen(), "the inputs are seen again")
    visit(page, address)
    assert not page.locator("[data-do=further]").is_visible()


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
        images = page.locator(".tile img, .pictures img").evaluate_all(
            "all => all.map((image) => [image.complete, image.naturalWidth, image.src])"
        )
        assert len(images) == 7 + len(FIELDS["dataset"].choices)
        assert all(complete and width >= 48 for complete, width, _ in images)
        assert len({source for *_, source in images}) == len(images)


def test_numbers_of_16_bits_are_read(page, address):
    visit(page, address)
    bits = np.arange(65536, dtype="<u2")
    message = messages.pack({"kind": "test"}, {"numbers": bits.view(np.float16)})
    read = """async (message) => {
      const { unpack } = await import(new URL("stage/connection.js", document.baseURI).href);
      const { numbers } = unpack(Uint8Array.from(atob(message), (c) => c.charCodeAt(0)).buffer).arrays;
      const bytes = new Uint8Array(numbers.buffer);
      let text = "";
      for (const byte of bytes) text += String.fromCharCode(byte);
      return btoa(text);
    }"""
    found = base64.b64decode(page.evaluate(read, base64.b64encode(message).decode()))
    np.testing.assert_array_equal(np.frombuffer(found, "<f4"), bits.view(np.float16).astype("f4"))


def test_a_neuron_shows_its_map_large(page, visitor, address):
    settings = Settings(inputs=("x1", "x2", "sin(x1)"), points=10)
    trainer = Trainer(settings)
    visit(page, address, inputs="x1,x2,sin(x1)", points="10")
    title = page.locator("[data-note=map]")
    output = pixels(page, "plane")
    shows_map(page, trainer.predict, "the output is shown")
    for layer, index, name in ((1, 2, "Layer 1, neuron 3"), (2, 0, "Layer 2, neuron 1")):
        hover_neuron(page, layer, index)
        until(page, lambda name=name: title.inner_text() == name, f"{name} is named")
        answers = lambda points, layer=layer, index=index: trainer.activations(points)[layer - 1][:, index]  # noqa: E731
        shows_map(page, answers, f"the plane shows {name}")
        assert heard(page, "picture")[1]["focus"].size == 73**2
    button(page, "Input sin x₁").hover()
    until(page, lambda: title.inner_text() == "Input sin x₁", "the input is named")
    until(page, lambda: "focus" in heard(page, "picture")[1], "the input is shown in full resolution")
    page.mouse.move(5, 300)
    until(page, lambda: title.inner_text() == "Output", "the output is named again")
    until(page, lambda: same(pixels(page, "plane"), output), "the output is shown again")

    canvas(page, "network").focus()
    page.keyboard.press("ArrowDown")
    until(page, lambda: title.inner_text() == "Layer 1, neuron 2", "the keyboard chooses a neuron")
    shows_map(page, lambda points: trainer.activations(points)[0][:, 1], "the keyboard shows its map")
    page.keyboard.press("Escape")
    until(page, lambda: title.inner_text() == "Output", "Escape shows the output again")

    phone = visitor(has_touch=True)
    visit(phone, address, points="10")
    phone.touchscreen.tap(*diagram(phone)["neurons"][1][0])
    trainer = Trainer(Settings(points=10))
    shows_map(phone, lambda points: trainer.activations(points)[0][:, 0], "a tap shows a neuron's map")
    button(phone, "Show the output again").tap()
    shows_map(phone, trainer.predict, "the output is shown again")


@pytest.mark.slow
def test_the_output_is_the_colour_of_its_class(page, address):
    visit(page, address, dataset="simple", hidden="", points="300")
    play(page, lambda: number(figure(page, "accuracy")) > 95, "it has learned")
    _, arrays = heard(page, "picture")
    weight, bias = arrays["weights_1"], arrays["biases_1"][0]
    shows_map(
        page, lambda points: np.tanh(points @ weight + bias)[:, 0], "the plane is the network's output", 0.1
    )
    picture = plane(page)
    assert picture[10, 20, 2] > picture[10, 20, 0] + 30  # blue on the left, where the label is +1
    assert picture[10, -20, 0] > picture[10, -20, 2] + 30  # orange on the right
    side = len(picture)
    row = side // 3
    x2 = 6 - 12 * (row + 0.5) / side
    x1 = -(bias + weight[1, 0] * x2) / weight[0, 0]
    column = int((x1 + 6) / 12 * side)
    assert picture[row, column - 2 : column + 3].mean(axis=-1).min() < 150  # the line, where the output is 0
    assert is_near(
        picture[row, [10, -10]], shaded(np.tanh([[-5.8, x2], [5.8, x2]] @ weight + bias)[:, 0])
    ).all()
    assert page.locator(".scale").inner_text().split() == ["−1", "+1"]


@pytest.mark.slow
def test_options_change_the_picture_at_once(page, address):
    visit(page, address, points="60")
    step(page, 2)
    trainer = Trainer(Settings(points=60))
    before = {name: pixels(page, name) for name in ("plane", "loss")}
    for label, name in (("Show test points", "plane"), ("Discretise", "plane"), ("Log", "loss")):
        box = page.get_by_role("checkbox", name=label)
        box.check()
        until(page, lambda name=name: not same(pixels(page, name), before[name]), label)
        if label == "Show test points":
            until(page, lambda: dots(page, *trainer.test) > 0.9, "the test points are shown")
        if label == "Discretise":
            classes = is_near(plane(page), shaded(np.array(0.8)), 6) | is_near(
                plane(page), shaded(np.array(-0.8)), 6
            )
            assert classes.mean() > 0.9
        box.uncheck()
        until(page, lambda name=name: same(pixels(page, name), before[name]), f"{label} is off again")
    assert epochs(page) == 2


@pytest.mark.slow
def test_losses_are_numbers_and_a_curve(page, address):
    visit(page, address)
    trainer = Trainer(Settings())
    history = [trainer.figures[:2]]
    for _ in range(10):
        step(page)
        history.append(learned(trainer, 1).figures[:2])
        shows_losses_of(page, trainer)
    assert number(figure(page, "accuracy")) == pytest.approx(100 * (1 - trainer.figures.test_error), abs=0.1)
    box = canvas(page, "loss").bounding_box()
    scale = page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize) / 14")
    left, right = 42 * scale, box["width"] - 8
    note = page.locator("[data-note=loss]")
    for epoch in (0, 4, 10):
        x = left + epoch / 10 * (right - left)
        page.mouse.move(box["x"] + x, box["y"] + 40)
        words = "Epoch {}: training {:.4f}, test {:.4f}".format(epoch, *history[epoch])
        found = re.compile(rf"Epoch {epoch}: training ([\d.]+), test ([\d.]+)")
        until(page, lambda found=found: found.fullmatch(note.inner_text()), words)
        told = tuple(map(float, found.fullmatch(note.inner_text()).groups()))
        assert told == pytest.approx(history[epoch], abs=2e-4)
    page.mouse.move(0, 0)
    floor, ceiling = box["height"] - 18 * scale, 6
    top = 1.06 * max(max(pair) for pair in history)
    for log in (False, True):  # the curve goes through its values
        if log:
            page.get_by_role("checkbox", name="Log").check()
            low, high = min(map(min, history)), max(map(max, history))
            bottom = math.log10(min(low, high / 2)) - 0.05
            level = lambda loss: (math.log10(loss) - bottom) / (math.log10(high) + 0.05 - bottom)  # noqa: E731, B023
        else:
            level = lambda loss: loss / top  # noqa: E731
        until(
            page,
            lambda level=level: all(
                pixels(page, "loss")[
                    round(floor - level(loss) * (floor - ceiling)) + np.arange(-2, 3),
                    round(left + epoch / 10 * (right - left)),
                ].min()
                < 110
                for epoch, (loss, _) in list(enumerate(history))[1:-1]
            ),
            "the curve goes through the losses",
        )


def test_without_test_points_there_is_no_test_loss(page, address):
    visit(page, address, dataset="own", own="1,1,1")
    box = canvas(page, "loss").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    note = page.locator("[data-note=loss]")
    until(
        page,
        lambda: re.fullmatch(r"Epoch 0: training [\d.]+, test –", note.inner_text()),
        "no test loss is told",
    )


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
    other.goto(page.url)
    is_shown(other)
    settings = heard(other, "scene")[0]["settings"]
    assert settings == heard(page, "scene")[0]["settings"]
    assert wanted.items() <= settings.items()
    for name in ("plane", "network", "loss"):
        assert same(pixels(other, name), pixels(page, name)), name
    assert query(other) == query(page)


@pytest.mark.slow
def test_a_lesson_can_hide_controls(page, address):
    visit(page, address)
    part = lambda name: page.locator(f"[data-part={name}]").first  # noqa: E731
    shown = [name for name in HIDEABLE if page.locator(f"[data-part={name}]").count()]
    assert set(HIDEABLE) - set(shown) == {"inputs"}  # tiles: they stay, and can't be clicked
    visit(page, address, hide="learning_rate,dataset,play,hidden,inputs")
    for name in ("learning_rate", "dataset", "play", "hidden"):
        assert not part(name).is_visible(), name
    for name in ("activation", "noise", "step", "paint", "take_home", "test_points"):
        assert part(name).is_visible(), name
    assert page.locator(".tile").count() == 2
    assert button(page, "Input x₁").is_disabled()
    assert page.get_by_role("button", name="one more neuron").count() == 0
    page.keyboard.press("Space")
    step(page)
    assert epochs(page) == 1  # it did not play

    visit(page, address, hide=",".join(HIDEABLE))
    assert [name for name in shown if part(name).is_visible()] == []
    assert canvas(page, "plane").is_visible()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_tooltips_and_callouts_explain(visitor, address):
    page = visitor(notes=True)
    visit(page, address)
    assert page.get_by_role("heading", level=1).inner_text() == "Train a small network in your browser"
    more(page)
    for name, field in FIELDS.items():
        label = page.locator(f"label[for={name}], label:has(#{name})").first
        if name not in ("own", "inputs", "hidden", "hide", "lesson", "dataset", "period"):
            assert label.get_attribute("title") == field.help, name
    page.keyboard.press("Escape")
    for name in ("Reset", "Play", "Step"):
        assert button(page, name).get_attribute("title")
    notes = page.locator(".note")
    assert notes.count() == 5
    for note in notes.all():
        assert note.is_visible()
        assert len(note.inner_text()) > 20
    boxes = [note.bounding_box() for note in notes.all()]
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :] if overlap(a, b)]
    covered = page.locator("[data-canvas=network], [data-canvas=plane], .legend, .tile, .head").all()
    assert not [what for what in covered for box in boxes if overlap(what.bounding_box(), box)]
    notes.nth(1).get_by_role("button", name="Close this hint").click()
    assert [note.is_visible() for note in notes.all()] == [True, False, True, True, True]
    page.reload()
    is_shown(page)
    assert [note.is_visible() for note in notes.all()] == [True, False, True, True, True]
    button(page, "Close all").click()
    assert not any(note.is_visible() for note in notes.all())
    page.reload()
    is_shown(page)
    assert not notes.first.is_visible()
    button(page, "Explain what is on this page").click()
    assert all(note.is_visible() for note in notes.all())
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("play or pause").wait_for()


@pytest.mark.slow
def test_first_weights_as_in_the_reference(page, address):
    visit(page, address)
    more(page)
    for choice in ("uniform", "kaiming", "zeros", "glorot"):
        select(page, "First weights", choice)
        until(
            page,
            lambda choice=choice: heard(page, "scene")[0]["settings"]["initialisation"] == choice,
            f"{choice} is chosen",
        )
        linear = Trainer(Settings(initialisation=choice)).learner.linears[0]
        until(page, lambda linear=linear: same(weights(page), linear.weight.numpy()), f"weights of {choice}")
        if choice == "uniform":
            assert np.abs(weights(page)).max() <= 0.5
            np.testing.assert_allclose(heard(page, "picture")[1]["biases_1"], 0.1, rtol=1e-6)


def test_the_pace_is_beside_play(page, address):
    visit(page, address, points="10")
    pace = page.get_by_role("combobox", name="Pace")
    assert pace.input_value() == "fastest"
    play_, box = button(page, "Play").bounding_box(), pace.bounding_box()
    assert 0 < box["x"] - (play_["x"] + play_["width"]) < 120
    pace.select_option("10")
    address_says(page, pace="10")
    button(page, "Play").click()
    until(page, lambda: epochs(page) > 0, "it plays")
    first = epochs(page)
    page.wait_for_timeout(2000)
    assert 10 <= epochs(page) - first <= 30


@pytest.mark.slow
def test_a_lecturer_hides_controls_and_copies_the_link(visitor, address):
    page = visitor(permissions=["clipboard-read", "clipboard-write"])
    visit(page, address, dataset="xor")
    button(page, "Share").click()
    menu = page.locator("#share")
    menu.get_by_text("Hide controls …").click()
    assert menu.get_by_role("checkbox").count() == len(HIDEABLE)
    for name in ("Learning rate", "Noise"):
        menu.get_by_role("checkbox", name=name, exact=True).check()
    address_says(page, dataset="xor", hide="noise,learning_rate")
    assert not page.locator("[data-part=learning_rate]").is_visible()
    button(page, "Copy link").click()
    button(page, "Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    button(page, "Show all again").click()
    until(page, lambda: "hide" not in query(page), "nothing is hidden")
    assert page.locator("[data-part=learning_rate]").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1024, 768), (1440, 900)])
def test_hidden_controls_leave_no_holes(visitor, address, size):
    page = visitor(viewport=dict(zip(("width", "height"), size, strict=True)))
    top = "play,step,reset,learning_rate,activation,regularisation,regularisation_rate,optimiser,pace"
    visit(page, address)
    before = page.locator(".status").bounding_box()["y"]
    visit(page, address, hide=f"{top},schedule,initialisation,seed,weights_seed,compiled")
    assert button(page, "More").count() == 0
    page.evaluate("document.querySelector('[data-part=epoch]').toggleAttribute('data-away', true)")
    assert page.locator(".status").bounding_box()["y"] < before - 30
    data = "dataset,train_share,noise,batch_size,points,regenerate,paint"
    visit(page, address, hide=data)
    assert page.locator(".network").bounding_box()["x"] < 30
    assert page.evaluate(FAULTS) == []


# ---- beyond it ---------------------------------------------------------------------------------------------


def test_points_are_painted_and_erased(page, address):
    visit(page, address, dataset="own")
    says(page, "Choose Blue or Orange, and paint points in the plane.")
    button(page, "Blue").click()
    page.mouse.move(*place(page, -4, 3))
    page.mouse.down()
    page.mouse.move(*place(page, -1, 3), steps=12)
    page.mouse.up()
    button(page, "Orange").click()
    for x in (1, 2, 3):
        page.mouse.click(*place(page, x, -3))
    until(
        page, lambda: query(page).get("own", "").count(",-1") == 3, "three orange points are in the address"
    )
    own = Settings().changed({"own": query(page)["own"]})[0].own
    blue, orange = ([point for point in own if point.label == label] for label in (1, -1))
    assert 5 <= len(blue) <= 9
    assert {round(point.x2) for point in blue} == {3}
    assert [(round(point.x1, 1), round(point.x2, 1)) for point in orange] == [(1, -3), (2, -3), (3, -3)]
    page.mouse.move(0, 0)
    page.get_by_role("checkbox", name="Show test points").check()
    until(page, lambda: dots(page, np.array(own)[:, :2], np.array(own)[:, 2]) == 1, "all points are shown")
    page.locator(
        "[data-note=counts]", has_text=re.compile(rf"\d+ to learn from, {len(own) // 2} to test")
    ).wait_for()

    play(page, lambda: epochs(page) >= 5, "it learns from them")
    paused = epochs(page)
    page.mouse.click(*place(page, 4, 4))
    until(page, lambda: query(page)["own"].count(",-1") == 4, "a point more")
    assert epochs(page) == paused  # painting does not begin anew
    button(page, "Erase").click()
    page.mouse.click(*place(page, 2, -3))
    until(page, lambda: query(page)["own"].count(",-1") == 3, "one is erased")
    button(page, "Clear").click()
    until(page, lambda: "own" not in query(page) or query(page)["own"] == "", "all are gone")
    assert button(page, "Clear").is_disabled()


def test_a_refused_point_vanishes(page, address):
    Line(page, say=lambda message: {"do": "set", "values": {}} if message["do"] == "paint" else message)
    visit(page, address, dataset="own", own="1,1,1")
    empty = pixels(page, "plane")
    button(page, "Blue").click()
    page.mouse.click(*place(page, -4, 3))
    page.mouse.move(0, 0)
    until(page, lambda: same(pixels(page, "plane"), empty), "the plane is as it was")


@pytest.mark.slow
def test_points_that_no_address_holds_are_told_of_once(page, address):
    remark = "The address can't hold so many points: take the run home to keep them."
    visit(page, address, own="_".join(f"{n / 30},5,1" for n in range(150)))
    assert status(page) != remark
    button(page, "Blue").click()
    page.mouse.click(*place(page, -4, 3))
    says(page, remark)
    assert page.locator(".status").get_attribute("data-tone") == "info"
    for name in ("x₁", "x₂"):
        button(page, f"Input {name}").click()
    until(page, lambda: "inputs" in query(page), "an input is off")
    says(page, "A network needs at least one input.")  # the last one stays
    says(page, remark)  # it was hidden
    until(page, lambda: status(page) != remark, "it is over")
    page.mouse.click(*place(page, -4, -3))
    until(page, lambda: heard(page, "scene")[0]["own"] == 152, "there is a point more")
    painted(page)
    assert status(page) != remark
    button(page, "Share").click()
    page.locator("#share").get_by_text(remark).wait_for()


@pytest.mark.slow
def test_points_are_painted_by_touch(visitor, address):
    page = visitor(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit(page, address, dataset="own")
    button(page, "Controls").tap()
    button(page, "Data").tap()
    button(page, "Orange").tap()
    button(page, "Close").tap()
    page.touchscreen.tap(*place(page, 3, 3))
    until(
        page,
        lambda: query(page).get("own", "").count("_") == 0 and "own" in query(page),
        "a tap paints a point",
    )
    scrolled = page.evaluate("scrollY")
    line = page.context.new_cdp_session(page)
    along = [place(page, x, -2) for x in np.linspace(-4, 4, 20)]
    for kind, (x, y) in [("touchStart", along[0]), *(("touchMove", to) for to in along[1:])]:
        line.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    line.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    painted_points = lambda: Settings().changed({"own": query(page)["own"]})[0].own  # noqa: E731
    until(page, lambda: max([0, *(point.x1 for point in painted_points()[1:])]) > 3, "the stroke is painted")
    own = painted_points()
    assert len(own) > 10
    assert {point.label for point in own} == {-1}
    assert min(point.x1 for point in own) < -3
    assert page.evaluate("scrollY") == scrolled


@pytest.mark.slow
def test_points_are_uploaded(page, address):
    visit(page, address)

    def upload(text):
        file = {"name": "points.csv", "mimeType": "text/csv", "buffer": text.encode()}
        page.get_by_label("Upload CSV").set_input_files(file)

    upload("x1,x2,kind\n-3,2,cat\n-2,1,cat\n4,-1,dog\n5,-2.5,dog\n")
    says(page, "4 points, “cat” orange and “dog” blue.")
    address_says(page, dataset="own", own="-3,2,-1_-2,1,-1_4,-1,1_5,-2.5,1")
    page.get_by_role("checkbox", name="Show test points").check()
    points = np.array([[-3, 2], [-2, 1], [4, -1], [5, -2.5]])
    until(page, lambda: dots(page, points, [-1, -1, 1, 1]) == 1, "the points are shown")
    upload("1,2,1\n3,4\n")
    says(page, "Line 2 needs x1, x2 and a label, such as 1.5,-2,1, not “3,4”.")
    upload("")
    says(page, "The file holds no points.")
    upload("<script>alert(1)</script>,2,1\n" * 3)
    says(page, "Line 2 needs x1, x2 and a label")
    assert dots(page, points, [-1, -1, 1, 1]) == 1  # a refused file changes nothing
    upload("1000,0,1\n3000,0,0\n2000,500,1\n")
    says(page, "shifted and scaled to fit the plane")


@pytest.mark.slow
def test_an_own_expression_is_an_input(page, address):
    visit(page, address, points="10")
    field = page.get_by_role("textbox", name="An input of your own")
    field.fill("cos(x1) + x2 / 9")
    field.press("Enter")
    tile = button(page, "Input cos(x1) + x2 / 9")
    tile.wait_for()
    address_says(page, inputs="x1,x2,cos(x1) + x2 / 9")
    assert field.input_value() == ""
    tile.hover()
    until(page, lambda: heard(page, "picture")[0].get("look") == [0, 2], "the plane shows the input")
    focus = heard(page, "picture")[1]["focus"].reshape(73, 73)
    lattice = np.linspace(-6, 6, 73)
    np.testing.assert_allclose(focus, np.cos(lattice) + lattice[::-1, None] / 9, atol=1e-3)
    shows_losses_of(page, Trainer(Settings(points=10, inputs=("x1", "x2", "cos(x1) + x2 / 9"))))
    for wrong, sentence in {
        "x1 +": "Inputs:",
        "x3": "x3",
        "__import__('os')": "Inputs:",
        "x1": "1 to 12 different expressions",
        "x1 ** 999 ** 999": "Inputs:",
        "<b>x1</b>": "Inputs:",
    }.items():
        field.fill(wrong)
        field.press("Enter")
        says(page, sentence)
        assert field.input_value() == ("" if wrong == "x1" else wrong)  # stays to be mended
        assert heard(page, "scene")[0]["settings"]["inputs"] == "x1,x2,cos(x1) + x2 / 9"
    tile.click()
    tile.wait_for(state="detached")
    field.fill("x1^2 - x2")
    field.press("Enter")
    button(page, "Input x1**2 - x2").wait_for()
    assert field.input_value() == ""
    field.fill("sine(x2)")
    field.press("Enter")
    says(page, "there is no function sine; did you mean sin?")


@pytest.mark.slow
def test_a_layer_has_its_own_options(page, address):
    visit(page, address)
    button(page, "Layer 1 (tanh)").click()
    for label, choice in (("Activation", "relu"), ("Dropout", "0.2"), ("Normalisation", "batchnorm")):
        page.locator("#layer").get_by_label(label).select_option(choice)
    address_says(page, hidden="4:relu:dropout0.2:batchnorm-2")
    page.keyboard.press("Escape")
    button(page, "Layer 1 (ReLU)").wait_for()
    assert button(page, "Layer 2 (tanh)").is_visible()
    step(page, 2)
    trainer = Trainer(Settings(hidden=(Layer(4, "relu", 0.2, "batchnorm"), Layer(2))))
    shows_losses_of(page, learned(trainer, 2))
    button(page, "Layer 1: one more neuron").click()
    address_says(page, hidden="5:relu:dropout0.2:batchnorm-2")
    button(page, "Layer 1 (ReLU)").click()
    page.locator("#layer").get_by_label("Activation").select_option("")
    address_says(page, hidden="5:dropout0.2:batchnorm-2")


@pytest.mark.slow
def test_optimisers_and_schedules(page, address):
    visit(page, address)
    for optimiser in ("momentum", "adam", "rmsprop"):
        select(page, "Optimiser", optimiser)
        address_says(page, optimiser=optimiser)
        begins_anew(page)
        step(page, 2)
        shows_losses_of(page, learned(Trainer(Settings(optimiser=optimiser)), 2))
    select(page, "Optimiser", "sgd")
    begins_anew(page)
    more(page)
    period = page.get_by_role("combobox", name="Period")
    assert not period.is_visible()
    for schedule in ("steps", "cosine", "warm-up"):
        select(page, "Schedule", schedule)
        address_says(page, schedule=schedule)
        select(page, "Period", "10")
        address_says(page, period="10")
        step(page, 11)
        trainer = Trainer(Settings(schedule=schedule, period=10))
        trainer = learned(trainer, 11)
        shows_losses_of(page, trainer)
        rate = heard(page, "picture")[0]["rate"]
        assert rate == pytest.approx(trainer.learner.optimizer.lr)
        shown = page.locator("[data-status=rate]").inner_text().removeprefix("learning rate now ")
        assert float(shown) == pytest.approx(rate, rel=0.01)
        button(page, "Reset").click(modifiers=["Shift"])
        until(page, lambda: epochs(page) == 0, "the epochs are back at 0")


def test_travel_along_the_loss_curve(page, address):
    visit(page, address)
    play(page, lambda: epochs(page) >= 20, "twenty epochs were shown")
    step(page)  # to the end of an epoch
    now, first_losses = epochs(page), losses(page)
    box = canvas(page, "loss").bounding_box()
    page.mouse.move(0, 0)
    picture = pixels(page, "plane")
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + 30)
    page.mouse.move(0, 0)
    until(page, lambda: "in epoch" in page.locator("[data-note=map]").inner_text(), "the map says when")
    there = epochs(page)
    assert 0 < there < now
    said = re.fullmatch(
        rf"Looking at epoch {there:,}(?: \(([\d,]+) is not kept\))?",
        page.locator("[data-note=loss]").inner_text(),
    )
    assert said
    assert said[1] is None or number(said[1]) != there
    shows_losses_of(page, learned(Trainer(Settings()), there))
    assert not same(pixels(page, "plane"), picture)

    button(page, "Back to now").click()
    until(page, lambda: epochs(page) == now, "the present is back")
    until(page, lambda: same(pixels(page, "plane"), picture), "the picture is as it was")
    assert losses(page) == first_losses

    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 5, box["y"] + 30, steps=5)
    page.mouse.up()
    until(page, lambda: epochs(page) == 0, "a drag goes back to the beginning")
    step(page)
    page.mouse.move(0, 0)
    said = page.locator("[data-note=loss]")
    until(page, lambda: said.inner_text() == "You went on from epoch 0", "on from there, it is now")
    assert heard(page, "picture")[1]["epochs"].tolist() == [0, 1]
    shows_losses_of(page, learned(Trainer(Settings()), 1))

    assert said.evaluate("it => it.scrollWidth <= it.clientWidth")  # not cut off
    assert button(page, "Undo").get_attribute("title") == "Bring back what came after it"
    button(page, "Undo").click()
    until(page, lambda: epochs(page) == now, "all is back")
    assert losses(page) == first_losses
    assert said.inner_text() == "Loss"
    until(page, lambda: same(pixels(page, "plane"), picture), "the picture is as it was")
    assert button(page, "Undo").count() == 0


@pytest.mark.slow
def test_keys_reach_everything(page, address):
    visit(page, address)
    for name in ("network", "plane", "loss"):
        assert len(canvas(page, name).get_attribute("aria-label")) > 20
    seen = []
    for _ in range(150):
        page.keyboard.press("Tab")
        name = page.evaluate(
            """() => { const at = document.activeElement; if (at.control) return at.control;
                const words = at.ariaLabel || at.labels?.[0]?.innerText || at.innerText || at.id;
                at.control = `${at.tagName} ${words}`;
                at.isReached = true; return at === document.body ? null : at.control; }"""
        )
        if name is None or (name in seen and len(seen) > 20 and name == seen[0]):
            break
        seen.append(name)
    missed = page.evaluate(
        """() => [...document.querySelectorAll("a, button, select, input, canvas[tabindex]")].filter(
            (at) => at.checkVisibility({ visibilityProperty: true }) && !at.disabled && !at.isReached
              && !(at.type === "radio" && !at.checked)).map((at) => at.outerHTML.slice(0, 120))"""
    )
    assert missed == []

    canvas(page, "network").focus()
    for key in ("ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    spoken = page.locator("[data-note=spoken]")
    until(page, lambda: "Input x₁ → Layer 1, neuron 1: weight" in spoken.text_content(), "a link is told")
    page.keyboard.press("Enter")
    page.keyboard.type("1.25")
    page.keyboard.press("Enter")
    until(page, lambda: weights(page)[0, 0] == 1.25, "the keyboard has changed a weight")

    canvas(page, "network").focus()
    page.keyboard.press("s")
    until(page, lambda: epochs(page) == 1, "s learns for an epoch")
    page.keyboard.press("Space")
    until(page, lambda: epochs(page) > 130, "the space bar plays")  # so fewer moments are kept than losses
    page.keyboard.press("Space")
    until(page, lambda: figure(page, "speed") == "paused", "it is paused")
    canvas(page, "loss").focus()
    page.keyboard.press("Home")
    until(page, lambda: epochs(page) == 0, "Home goes back to the beginning")
    for _ in range(3):  # after many epochs not each of them is kept
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(100)
    until(page, lambda: epochs(page) > 0, "the right arrow goes on")
    assert spoken.text_content().startswith("Epoch ")
    page.keyboard.press("End")
    until(page, lambda: page.locator("[data-do=now]").is_hidden(), "End goes to the present")

    button(page, "Blue").focus()
    page.keyboard.press("Space")
    canvas(page, "plane").focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    assert spoken.text_content().startswith("x₁ +2.0  x₂ +1.0  →  ")
    page.keyboard.press("Enter")
    until(page, lambda: query(page).get("own") == "2,1,1", "Enter paints a point")
    page.get_by_role("radio", name="circle", exact=True).focus()
    page.keyboard.press("ArrowRight")
    address_says(page, dataset="xor")
    button(page, "Lessons").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert "One straight line" in page.evaluate("document.activeElement.innerText")


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


@pytest.mark.slow
def test_a_diverged_network_says_so(page, address):
    visit(page, address, dataset="plane", learning_rate="10", activation="linear")
    button(page, "Play").click()
    says(page, "Training diverged in epoch ")
    assert "Choose a learning rate below 10 and press Reset." in status(page)
    button(page, "Play").wait_for()
    assert figure(page, "train_loss") == "overflowed"
    size = diagram(page)["size"]
    for layer in (1, 2, 3):  # no old picture stays
        x, y = diagram(page)["neurons"][layer][0]
        box = canvas(page, "network").bounding_box()
        column, row, half = int(x - box["x"]), int(y - box["y"]), int(size / 2) - 8
        picture = pixels(page, "network")[row - half : row + half, column - half : column + half]
        assert picture.min() > 250
    select(page, "Learning rate", "0.03")
    until(page, lambda: "learning_rate" not in query(page), "the rate is the usual one")
    button(page, "Reset").click(modifiers=["Shift"])
    until(page, lambda: "diverged" not in status(page), "the trouble is over")
    step(page, 2)
    shows_losses_of(page, learned(Trainer(Settings(dataset="plane", activation="linear")), 2))

    visit(page, address, learning_rate="10", regularisation="l2", regularisation_rate="10")
    button(page, "Play").click()
    until(
        page, lambda: re.search("diverged|Every output has been exactly", status(page)), "the trouble is told"
    )
    button(page, "Play").wait_for()


@pytest.mark.slow
def test_a_dead_network_says_so(page, address):
    visit(page, address, activation="relu", learning_rate="1", seed="2", weights_seed="2")
    play(page, lambda: "0 for every point" in status(page), "the hint comes")
    assert re.search(r"Layer [12]: \d of \d units? (is|are) 0 for every point", status(page))
    assert "a lower learning rate keeps more units alive" in status(page)
    select(page, "Learning rate", "0.03")
    button(page, "Reset").click(modifiers=["Shift"])
    until(page, lambda: "0 for every point" not in status(page), "the hint is over")


@pytest.mark.slow
def test_the_boundary_reaches_the_edge(page, address):
    visit(page, address, hidden="", points="10")
    for weights_ in ((1.0, 0.3), (0.2, -1.0)):
        for start, weight in enumerate(weights_):
            editor = open_link(page, 1, start, 0)
            editor.fill(str(weight))
            editor.press("Enter")
            until(page, lambda s=start, w=weight: weights(page)[s, 0] == np.float32(w), "the weight is set")
        choose_nothing(page)
        until(page, lambda: page.locator("[data-note=map]").inner_text() == "Output", "the output is shown")
        a, b = weights_
        picture = plane(page)
        if abs(a) < abs(b):  # flat: it leaves at the left and at the right
            picture, a, b = picture[::-1, ::-1].transpose(1, 0, 2), b, a
        side = len(picture)
        for row, x2 in ((0, 6), (side - 1, -6)):
            column = (-b * x2 / a + 6) / 12 * side
            near = picture[row, max(0, int(column) - 2) : int(column) + 3]
            assert near.mean(axis=-1).min() < 140, "no line at the edge"


@pytest.mark.slow
def test_a_steep_boundary_is_straight(page, address):
    visit(page, address, hidden="", points="10")
    for start, weight in enumerate((300.0, 100.0)):  # both neighbours of the line are exactly -1 and 1
        editor = open_link(page, 1, start, 0)
        editor.fill(str(weight))
        editor.press("Enter")
        until(page, lambda s=start, w=weight: weights(page)[s, 0] == w, "the weight is set")
    choose_nothing(page)
    until(page, lambda: page.locator("[data-note=map]").inner_text() == "Output", "the output is shown")
    picture = plane(page)
    bias = heard(page, "picture")[1]["biases_1"][0]
    side = len(picture)
    for row in range(5, side - 5, 7):
        x2 = 6 - 12 * (row + 0.5) / side
        column = (-(bias + 100 * x2) / 300 + 6) / 12 * side
        darkest = np.argmin(picture[row, int(column) - 4 : int(column) + 5].mean(axis=-1)) - 4
        assert abs(int(column) + darkest + 0.5 - column) < 1.6, row


@pytest.mark.slow
def test_graphs_are_drawn(page, address):
    visit(page, address)
    step(page)
    button(page, "Look inside").click()
    for tab, name in (
        ("From points to loss", "computational graph of loss"),
        ("The way back", "gradient graph of loss"),
    ):
        page.get_by_role("tab", name=tab, exact=True).click()
        assert "two of the training points" in page.locator(".inside-words").inner_text()
        view = page.get_by_role("group", name=re.compile(f"^{name}"))
        view.wait_for()
        assert view.bounding_box()["width"] > 500
        assert view.locator("svg").first.bounding_box()["height"] > 100
        page.get_by_role("button", name="Open all").click()
        page.get_by_role("searchbox").fill("W1")
        page.get_by_text(re.compile(r"[1-9]\d* found")).wait_for()
    button(page, "Play").click()  # the network learns on, and the drawing stays as it is
    until(page, lambda: epochs(page) >= 3, "three epochs were shown")
    assert page.get_by_role("searchbox").input_value() == "W1"
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    button(page, "Look inside").click()
    assert page.get_by_role("searchbox").count() == 0


@pytest.mark.slow
def test_steps_are_walked(page, address):
    visit(page, address, hidden="2")
    button(page, "Look inside").click()
    page.get_by_role("tab", name="Step by step").click()
    walk = page.get_by_role("group", name=re.compile("^Steps to loss and back"))
    walk.get_by_text("1 / ").wait_for()
    before = walk.inner_text()
    walk.get_by_role("button", name="Next").click()
    walk.get_by_text("2 / ").wait_for()
    walk.get_by_role("button", name="Last frame").click()
    until(page, lambda: re.search(r"(\d+) / \1\b", walk.inner_text()), "the last frame is shown")
    assert walk.inner_text() != before
    trainer = Trainer(Settings(hidden=(2,)))
    weight = trainer.learner.linears[0].weight.numpy()
    assert f"{weight[0, 0]:.4g}".replace("-", "−") in walk.inner_text()  # with the present numbers


@pytest.mark.slow
def test_histograms_live(page, address):
    visit(page, address)
    button(page, "Look inside").click()
    page.get_by_role("tab", name="Histograms").click()
    drawing = page.get_by_role("img", name=re.compile("^Histograms"))
    drawing.wait_for()
    until(page, lambda: "hist_1" in heard(page, "picture")[1], "the counts have come")
    header, arrays = heard(page, "picture")
    trainer = Trainer(Settings())
    for layer, values in enumerate(trainer.activations(trainer.train[0]), start=1):
        counts, edges = np.histogram(values, bins=24)
        assert np.abs(arrays[f"hist_{layer}"] - counts).sum() <= 4  # a value on the edge of two bins
        assert header["hist_range"][layer - 1] == pytest.approx(edges[[0, -1]], abs=1e-5)
    for layer, gradient in enumerate(trainer.gradients(), start=1):
        assert arrays[f"grad_{layer}"].sum() == gradient.size
        assert header["grad_range"][layer - 1] == pytest.approx([gradient.min(), gradient.max()], abs=1e-4)
    painted(page)
    take = "canvas => canvas.toDataURL()"
    first = drawing.evaluate(take)
    play(page, lambda: drawing.evaluate(take) != first, "they move")
    button(page, "Look inside").click()
    step(page)
    until(page, lambda: "hist_1" not in heard(page, "picture")[1], "what nobody sees is not sent")


@pytest.mark.slow
def test_the_loss_surface_shows_the_path(page, address):
    visit(page, address)
    button(page, "Look inside").click()
    page.get_by_role("tab", name="Landscape of the loss").click()
    page.get_by_text("There is no path yet. Play for a few epochs, and press Draw again.").wait_for()
    step(page, 5)
    button(page, "Draw again").click()
    drawing = page.get_by_role("img", name=re.compile("^The loss surface"))
    drawing.wait_for()
    painted(page)
    header, arrays = heard(page, "answer")
    trainer = learned(Trainer(Settings()), 5)
    assert arrays["path"].shape == (6 + 1, 2) or arrays["path"].shape == (6, 2)
    np.testing.assert_allclose(arrays["path"][-1], 0, atol=1e-6)
    xs, ys = (np.array(header["axes"][name]) for name in ("xs", "ys"))
    nearest = arrays["loss"][np.argmin(np.abs(ys)), np.argmin(np.abs(xs))]
    assert nearest == pytest.approx(trainer.figures.train_loss, rel=0.25)
    data = drawing.evaluate("canvas => canvas.toDataURL()")
    picture = np.asarray(
        Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))).convert("RGB")
    ).astype(float)
    size = len(picture) - 16
    for x, y in arrays["path"][1:]:  # the path is orange, where it should be
        column = int(8 + (x - xs[0]) / (xs[-1] - xs[0]) * size)
        row = int(8 + (ys[-1] - y) / (ys[-1] - ys[0]) * size)
        assert is_near(picture[row - 2 : row + 3, column - 2 : column + 3], ORANGE, 40).any()


@pytest.mark.slow
def test_the_compiled_switch_and_its_program(page, address):
    visit(page, address)
    mode = page.locator("[data-status=mode]")
    button(page, "Play").click()
    until(page, lambda: mode.inner_text() == "compiled", "steps are compiled", seconds=120)
    more(page)
    page.get_by_role("checkbox", name="Compiled").uncheck()
    until(page, lambda: mode.inner_text() == "eager", "steps run operator by operator")
    now = epochs(page)
    until(page, lambda: epochs(page) > now, "it goes on")
    page.get_by_role("checkbox", name="Compiled").check()
    until(page, lambda: mode.inner_text() == "compiled", "steps are compiled again", seconds=120)
    page.keyboard.press("Escape")
    button(page, "Pause").click()
    button(page, "Look inside").click()
    page.get_by_role("tab", name="Compiled program").click()
    page.get_by_text("operators became").wait_for()
    page.get_by_text("Its whole source").click()
    source = page.locator(".inside-place details pre").inner_text()
    assert "def " in source
    ast.parse(source)


@pytest.mark.slow
def test_take_home_and_import(page, visitor, address, tmp_path):
    visit(page, address, dataset="xor", hidden="4")
    step(page, 4)
    trainer = learned(Trainer(Settings(dataset="xor", hidden=(4,))), 4)

    def take(name):
        button(page, "Take home").click()
        with page.expect_download(timeout=60_000) as started:
            page.get_by_role("button", name=name).click()
        path = tmp_path / started.value.suggested_filename
        started.value.save_as(path)
        page.locator("#take-home").wait_for(state="hidden")
        return path

    with Image.open(take("Picture (PNG)")) as image:
        picture = np.asarray(image.convert("RGB")).astype(float)
    assert picture.shape[1] > 800
    map_ = picture[:, -24 - canvas(page, "plane").evaluate("canvas => canvas.width") :]
    for colour in (BLUE, ORANGE):  # dots
        assert is_near(map_, colour, 6).sum() > 200
    with Image.open(take("GIF of the training")) as gif:
        frames = [np.asarray(frame.convert("RGB")).astype(float) for frame in ImageSequence.Iterator(gif)]
    assert len(frames) == 5
    assert all(np.abs(a - b).mean() > 0.1 for a, b in pairwise(frames))

    path = take("Python script")
    assert path.name == "needle-xor-4.py"
    compile(path.read_text(), path.name, "exec")
    notebook = nbformat.read(take("Notebook"), as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            compile(
                "\n".join(x for x in cell.source.splitlines() if not x.startswith(("%", "!"))), "cell", "exec"
            )

    file = take("Weights and settings")
    content = ndl.load(file, device=ndl.cpu())
    assert content["settings"] == {"dataset": "xor", "hidden": "4"}
    for name, tensor in trainer.model.state_dict().items():
        np.testing.assert_allclose(content["model"][name].numpy(), tensor.numpy(), atol=1e-5)

    other = visitor()
    visit(other, address)
    bad = {"name": "bad.safetensors", "mimeType": "application/octet-stream", "buffer": b"no such thing"}
    other.locator("[data-file=run]").set_input_files(bad)
    says(other, "This is no run of the playground")
    other.locator("[data-file=run]").set_input_files(file)
    says(other, "This run goes on after epoch 4.")
    address_says(other, dataset="xor", hidden="4")
    shows_losses_of(other, trainer)
    step(other)
    shows_losses_of(other, learned(trainer, 1))


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
    assert query(page) == {}
    assert bar.is_hidden()


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


def test_a_reload_shows_the_same_run(page, address):
    visit(page, address, dataset="xor")
    step(page, 2)
    editor = open_link(page, 1, 0, 0)
    editor.fill("1.5")
    editor.press("Enter")
    until(page, lambda: weights(page)[0, 0] == 1.5, "a weight is changed")
    page.locator("#editor").wait_for(state="hidden")
    choose_nothing(page)
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
def test_a_new_server_goes_on(visitor, troubles):
    port = free_port()
    address = f"http://127.0.0.1:{port}"

    @contextmanager
    def server():
        command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
        command += ["--server.address=127.0.0.1", "--server.headless=true"]
        with serving(command, f"{address}/_stcore/health", cwd=APP.parent):
            yield

    page = visitor()
    with server():
        visit(page, address, dataset="xor", hidden="3")
        step(page)
        picture = pixels(page, "plane")
        first = heard(page, "welcome")[0]["run"]
    says(page, "Connecting again …")
    assert same(pixels(page, "plane"), picture)  # what was there stays
    with server():
        until(page, lambda: heard(page, "welcome")[0]["run"] != first, "there is a new run")
        until(page, lambda: status(page) != "Connecting again …", "the line is quiet")
        assert query(page) == {"dataset": "xor", "hidden": "3"}
        until(page, lambda: epochs(page) == 0, "the new run is shown")
        step(page)
        shows_losses_of(page, learned(Trainer(Settings(dataset="xor", hidden=(3,))), 1))
        page.goto("about:blank")
    assert all("WebSocket connection" in text for text in troubles)
    troubles.clear()


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
    links = page.get_by_role("navigation", name="Pages").get_by_role("link")
    assert links.all_inner_texts() == ["Playground", *TITLES.values()]
    for name, title in TITLES.items():
        visit(page, address)
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=title, exact=True).click()
        page.wait_for_url(re.compile(rf"{address}/{name}(\?.*)?$"), wait_until="commit")
        page.get_by_role("heading", level=2).first.wait_for()
        page.locator("[data-testid=stStatusWidget]").wait_for(state="detached")
        assert page.locator("[data-testid=stException]").count() == 0
        page.get_by_role("link", name="Playground").first.click()
        page.wait_for_url(re.compile(rf"{address}/(\?.*)?$"), wait_until="commit")
        canvas(page, "plane").wait_for()
