"""The diagram of the network: inputs, layers, neurons and links."""

from __future__ import annotations

import numpy as np
import pytest

from playground.training.settings import FIELDS, Layer, Settings
from playground.training.trainer import Trainer

from .page import (
    BLUE,
    ORANGE,
    WHITE,
    address_says,
    button,
    canvas,
    choose_nothing,
    diagram,
    epochs,
    forget,
    heard,
    hears,
    hover_neuron,
    learned,
    number,
    open_bias,
    open_link,
    overlap,
    painted,
    pixels,
    query,
    same,
    says,
    shows_losses_of,
    shows_map,
    status,
    step,
    until,
    visit,
    weights,
)

pytestmark = pytest.mark.browser


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


@pytest.mark.slow
def test_two_quick_clicks_turn_on_two_inputs(page, address):
    visit(page, address, inputs="x1,maximum(x1,x2)")
    page.evaluate(
        """() => { for (const text of ["x1**2", "x2**2"])
            document.querySelector(`.tile[data-input="${text}"]`).click(); }"""
    )
    address_says(page, inputs="x1,x1**2,x2**2,maximum(x1,x2)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Input x₁²", {"inputs": "x1,x2,x1**2"}),
        ("Layer 1: one more neuron", {"hidden": "5-2"}),
        ("Network: one fewer layer", {"hidden": "4"}),
    ],
)
def test_a_press_counts_though_the_server_answers_meanwhile(page, address, name, wanted):
    visit(page, address)
    box = button(page, name).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    forget(page, "scene")
    page.get_by_role("combobox", name="Activation").evaluate(
        "list => { list.value = 'relu'; list.dispatchEvent(new Event('change')); }"
    )
    hears(page, "scene")
    page.mouse.up()
    address_says(page, activation="relu", **wanted)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    page.keyboard.type("9")  # takes the place of the number, as it does before any training
    assert weight.input_value() == "9"
    until(page, lambda: abs(weights(page)[0, 1]) > 7, "the network has the new weight")
    until(page, lambda: epochs(page) > 1, "the training goes on")
    weight.fill("1e9")  # too much: as much as is possible
    until(page, lambda: abs(weights(page)[0, 1]) > 9e5, "the network has the largest weight")
    assert "understood" not in status(page)


@pytest.mark.slow
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


LEFT = "document.querySelector('.diagram-frame').scrollLeft"
#: Where the button that leads further right scrolls to.
FURTHER = """() => {
  const { scrollLeft, scrollWidth, clientWidth } = document.querySelector(".diagram-frame");
  return Math.min(scrollLeft + clientWidth / 2, scrollWidth - clientWidth);
}"""


@pytest.mark.slow
def test_more_layers_than_fit_can_be_reached(page, address):
    visit(page, address, hidden="8-8-8-8-8-8-8-8", points="10")
    output = page.get_by_text("Output (tanh)")
    frame = page.locator(".diagram-frame").bounding_box()
    seen = lambda: output.bounding_box()["x"] < frame["x"] + frame["width"] - 20  # noqa: E731
    assert not seen()
    for _ in range(3):
        if button(page, "Show the layers further right").count():
            there = page.evaluate(FURTHER)
            button(page, "Show the layers further right").click()
            until(page, lambda there=there: page.evaluate(LEFT) == pytest.approx(there, abs=1), "it is there")
            painted(page)
    until(page, seen, "the output is seen")
    button(page, "Back to the inputs").click()
    until(page, lambda: not seen(), "the inputs are seen again")
    visit(page, address)
    assert not page.locator("[data-do=further]").is_visible()


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
    until(page, lambda: looks_at(page) == [0, 2], "the plane shows the input")
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
        forget(page, "scene")
        field.press("Enter")
        hears(page, "scene")
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


def looks_at(page):
    return heard(page, "picture")[0].get("look")


@pytest.mark.slow
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
        until(page, lambda at=[layer, index]: looks_at(page) == at, f"{name} comes in full resolution")
        answers = lambda points, layer=layer, index=index: trainer.activations(points)[layer - 1][:, index]  # noqa: E731
        shows_map(page, answers, f"the plane shows {name}")
        assert heard(page, "picture")[1]["focus"].size == 73**2
    button(page, "Input sin x₁").hover()
    until(page, lambda: title.inner_text() == "Input sin x₁", "the input is named")
    until(page, lambda: looks_at(page) == [0, 2], "the input is shown in full resolution")
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
