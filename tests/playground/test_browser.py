"""The app as a person sees it: in a real browser, from a real server."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser

#: A number that stands for a canvas's picture.
PICTURE = """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.reduce(
    (hash, byte) => (Math.imul(hash, 31) + byte) | 0, 7)"""


@pytest.fixture
def page(context, address):
    """A fresh page; at the end, nothing may have gone wrong in it or left this machine."""
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 800})
    troubles = []
    page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    own = (address, address.replace("http", "ws", 1), "data:", "blob:")
    page.on(
        "request", lambda request: request.url.startswith(own) or troubles.append(f"asked for {request.url}")
    )
    yield page
    page.close()
    assert not troubles


def visit(page, address, query=""):
    page.goto(f"{address}/{query}")
    canvas(page, "plane").wait_for()
    button(page, "Reset").wait_for()
    until(page, lambda: figure(page, "accuracy") != "–", "figures are shown")
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(300)


def canvas(page, name):
    return page.locator(f"canvas[data-canvas={name}]")


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def figure(page, name):
    return page.locator(f"[data-figure={name}]").inner_text()


def epochs(page):
    return int(figure(page, "epochs").replace(",", ""))


def until(page, condition, what, seconds=30):
    for _ in range(seconds * 20):
        if condition():
            return
        page.wait_for_timeout(50)
    pytest.fail(f"still not so after {seconds} s: {what}")


def test_play_pause_and_reset(page, address):
    visit(page, address)
    names = ("plane", "network", "loss")
    first = {name: canvas(page, name).evaluate(PICTURE) for name in names}
    assert epochs(page) == 0
    assert figure(page, "speed") == "paused"

    button(page, "Play").click()
    until(page, lambda: epochs(page) >= 3, "three epochs were shown")
    for name in names:
        assert canvas(page, name).evaluate(PICTURE) != first[name]

    button(page, "Pause").click()
    button(page, "Play").wait_for()
    until(page, lambda: figure(page, "speed") == "paused", "the speed says paused")
    paused, picture = epochs(page), canvas(page, "plane").evaluate(PICTURE)
    page.wait_for_timeout(500)
    assert epochs(page) == paused
    assert canvas(page, "plane").evaluate(PICTURE) == picture

    button(page, "Step").click()
    until(page, lambda: epochs(page) == paused + 1, "one epoch more was shown")

    button(page, "Reset").click()
    until(page, lambda: epochs(page) == 0, "the epochs are back at 0")
    page.mouse.move(0, 0)
    for name in names:
        assert canvas(page, name).evaluate(PICTURE) == first[name]


@pytest.mark.slow
def test_the_canvases_stay_whatever_is_clicked(page, address):
    visit(page, address)
    canvas(page, "plane").evaluate("canvas => { canvas.mark = 'the first one' }")
    for name in ("Play", "xor", "Pause", "Play", "circle", "Reset", "Step"):
        page.get_by_role("radio" if name in ("xor", "circle") else "button", name=name, exact=True).click()
        page.wait_for_timeout(200)
        assert canvas(page, "plane").evaluate("canvas => canvas.mark") == "the first one"


@pytest.mark.slow
def test_the_output_is_the_colour_of_its_class(page, address):
    visit(page, address, "?dataset=simple&hidden=&points=300")
    button(page, "Play").click()
    until(page, lambda: float(figure(page, "accuracy").removesuffix(" %")) > 95, "it has learned", seconds=60)
    button(page, "Pause").click()
    button(page, "Play").wait_for()
    left, right = canvas(page, "plane").evaluate(
        """canvas => [0.15, 0.95].map((share) => [...canvas.getContext("2d").getImageData(
            share * canvas.width, 0.03 * canvas.height, 1, 1).data])"""
    )
    assert left[2] > left[0] + 50  # blue on the left, where the label is +1
    assert right[0] > right[2] + 50  # orange on the right


@pytest.mark.slow
def test_options_of_the_browser_change_the_picture_at_once(page, address):
    visit(page, address, "?points=60")
    for option, name in (("test", "plane"), ("discrete", "plane"), ("log", "loss")):
        before = canvas(page, name).evaluate(PICTURE)
        box = page.locator(f"[data-option={option}]")
        box.check()
        until(page, lambda name=name, before=before: canvas(page, name).evaluate(PICTURE) != before, option)
        box.uncheck()
        until(page, lambda name=name, before=before: canvas(page, name).evaluate(PICTURE) == before, option)


def test_hovering_a_neuron_shows_its_map_and_a_control_other_points(page, address):
    visit(page, address)
    before = canvas(page, "plane").evaluate(PICTURE)
    canvas(page, "network").scroll_into_view_if_needed()
    box = canvas(page, "network").bounding_box()
    title = page.locator("[data-note=map]")
    assert title.inner_text() == "Output"
    page.mouse.move(box["x"] + 45, box["y"] + 20 + (box["height"] - 20) / 2 - 20)
    until(page, lambda: title.inner_text() == "Input x₁", "the first input is shown")
    assert canvas(page, "plane").evaluate(PICTURE) != before
    assert page.locator("[data-note=network]").inner_text() == "Input x₁"
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    until(page, lambda: title.inner_text() == "Output", "the output is shown again")
    assert canvas(page, "plane").evaluate(PICTURE) == before

    page.get_by_role("radio", name="spiral").click()
    until(page, lambda: canvas(page, "plane").evaluate(PICTURE) != before, "other points are shown")
    until(page, lambda: page.url.endswith("?dataset=spiral"), "the address names the dataset")


@pytest.mark.slow
def test_words_for_a_number_of_layers_get_a_message(page, address):
    visit(page, address)
    layers = page.get_by_role("textbox", name="Neurons in the hidden layers")
    layers.fill("four")
    layers.press("Enter")
    page.get_by_text('such as 4, 2, not "four".').wait_for()
    layers.fill("5")
    layers.press("Enter")
    page.get_by_text('not "four".').wait_for(state="detached")
    until(page, lambda: page.url.endswith("?hidden=5"), "the address names the layer")


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["fast", "-1", "1e999"])
def test_a_learning_rate_that_cannot_be_used_gets_a_message(page, address, typed):
    visit(page, address)
    rate = page.get_by_role("combobox", name="Learning rate")
    rate.fill(typed)
    rate.press("Enter")
    page.get_by_text(f'The learning rate must be a number from 1e-06 to 100, not "{typed}".').wait_for()
    assert button(page, "Play").is_disabled()


@pytest.mark.slow
def test_the_gradient_graph_is_drawn_and_can_be_used(page, address):
    visit(page, address)
    page.get_by_role("radio", name="Gradient graph").click()
    view = page.get_by_role("group", name=re.compile("^gradient graph of loss"))
    view.wait_for()
    assert view.bounding_box()["width"] > 500
    page.get_by_role("button", name="Open all").click()
    page.get_by_role("searchbox").fill("adjoint of loss")
    page.get_by_text("1 found").wait_for()

    button(page, "Play").click()  # the network learns on, and the drawing stays as it is
    until(page, lambda: epochs(page) >= 3, "three epochs were shown")
    assert page.get_by_role("searchbox").input_value() == "adjoint of loss"
    button(page, "Close all").wait_for()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    "width", [360, *[pytest.param(width, marks=pytest.mark.slow) for width in (700, 1280, 1800)]]
)
def test_nothing_is_cut_off_or_overlaps(page, address, width):
    page.set_viewport_size({"width": width, "height": 900})
    visit(page, address, "?hidden=8-8-8-8-8-8")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    boxes = [canvas(page, name).bounding_box() for name in ("plane", "network", "loss")]
    boxes += [box.bounding_box() for box in page.locator("[data-figure]").all()]
    for i, a in enumerate(boxes):
        assert a["x"] >= 0
        assert a["x"] + a["width"] <= width
        for b in boxes[i + 1 :]:
            beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            above = a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]
            assert beside or above


@pytest.mark.slow
def test_two_people_do_not_disturb_each_other(browser, page, address):
    visit(page, address)
    other = browser.new_page()
    visit(other, address, "?dataset=xor")
    button(other, "Play").click()
    until(other, lambda: epochs(other) >= 2, "the other page learns")
    assert epochs(page) == 0
    assert page.url.endswith("/")
    other.close()
