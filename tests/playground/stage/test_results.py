"""What the page shows of a training: its output, its losses, its past, its inside; and what you take home."""

from __future__ import annotations

import ast
import base64
import io
import math
import re
from itertools import pairwise

import nbformat
import numpy as np
import pytest
from PIL import Image, ImageSequence

import needle as ndl
from playground.training.settings import Settings
from playground.training.trainer import Trainer

from .page import (
    BLUE,
    FAULTS,
    ORANGE,
    address_says,
    button,
    canvas,
    choose_nothing,
    diagram,
    dots,
    epochs,
    figure,
    heard,
    inside,
    is_near,
    learned,
    losses,
    more,
    number,
    open_link,
    painted,
    pixels,
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
    until,
    visit,
    weights,
)

pytestmark = pytest.mark.browser


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


@pytest.mark.slow
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
    painted(page)
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
def test_what_follows_a_drag_along_the_curve_is_not_overtaken_by_it(page, address):
    page.add_init_script(LATE)
    visit(page, address)
    step(page, 3)
    box = canvas(page, "loss").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 5, box["y"] + 30, steps=5)
    page.mouse.up()
    button(page, "Step").click()
    until(page, lambda: epochs(page) == 1, "it goes on from the beginning")
    assert heard(page, "picture")[1]["epochs"].tolist() == [0, 1]


#: A browser that is busy: of a drag, the moments that it thins out come late.
LATE = """
const soon = setTimeout;
window.setTimeout = (call, delay, ...given) => soon(call, delay === 50 ? 1000 : delay, ...given);
"""


@pytest.mark.slow
def test_a_diverged_network_says_so(page, address):
    visit(page, address, dataset="plane", learning_rate="10", activation="linear")
    button(page, "Play").click()
    says(page, "Training diverged in epoch ")
    assert "Choose a learning rate below 10 and press Reset." in status(page)
    button(page, "Play").wait_for()
    painted(page)
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
@pytest.mark.parametrize("size", [(1024, 768), (1440, 900), (390, 844)])
def test_play_stays_in_sight_while_you_look_inside(visitor, address, size):
    page = visitor(viewport=dict(zip(("width", "height"), size, strict=True)), has_touch=size[0] < 500)
    visit(page, address)
    place_ = button(page, "Play").bounding_box()
    button(page, "Look inside").click()
    page.get_by_role("group", name=re.compile("^computational graph")).wait_for()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    until(page, lambda: inside(page.locator(".transport").bounding_box(), *size), "it is in sight")
    assert page.evaluate(FAULTS) == []
    free = page.locator(".inside-place").bounding_box()
    assert free["y"] + free["height"] <= page.locator(".transport").bounding_box()["y"]
    button(page, "Step").click()
    until(page, lambda: epochs(page) == 1, "an epoch is over")
    page.get_by_role("tab", name="Histograms").click()
    play(page, lambda: epochs(page) > 5, "it plays")
    page.evaluate("scrollTo(0, 0)")
    until(page, lambda: button(page, "Play").bounding_box() == place_, "Play is back at its place")


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
    page.get_by_role("tab", name="Pass by pass").click()
    player = page.locator(".inside-place .needle-steps")
    player.get_by_role("button", name="Last frame").click()
    assert player.locator(".title").inner_text() == "Source"
    assert "return 0" in player.locator(".page:visible").inner_text()


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
    other.locator("[data-file=run]").set_input_files({**bad, "buffer": b"x" * 2_000_001})
    says(other, "This file is larger than 2 MB: it is no run of the playground.")
    other.locator("[data-file=run]").set_input_files(file)
    says(other, "This run goes on after epoch 4.")
    address_says(other, dataset="xor", hidden="4")
    shows_losses_of(other, trainer)
    step(other)
    shows_losses_of(other, learned(trainer, 1))
