"""The controls of a training: buttons, menus, keys, and what explains them."""

from __future__ import annotations

import numpy as np
import pytest

from playground.training.settings import FIELDS, HIDEABLE, Settings
from playground.training.trainer import Trainer

from .page import (
    FAULTS,
    address_now,
    address_says,
    begins_anew,
    button,
    canvas,
    choose_nothing,
    epochs,
    figure,
    heard,
    hover_neuron,
    is_shown,
    learned,
    more,
    overlap,
    pause,
    pixels,
    query,
    same,
    says,
    select,
    shows_losses_of,
    shows_map,
    step,
    until,
    visit,
    weights,
)

pytestmark = pytest.mark.browser


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


@pytest.mark.slow
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


@pytest.mark.slow
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
    seen = []  # seconds and epochs

    def goes_at_its_pace():
        seen.append((page.evaluate("performance.now()") / 1000, epochs(page)))
        (then, first), (now, last) = seen[-41:][0], seen[-1]
        return now > then + 2 and 5 <= (last - first) / (now - then) <= 15

    until(page, goes_at_its_pace, "it learns ten epochs a second")


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
    assert page.evaluate("navigator.clipboard.readText()") == address_now(page)
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
    # So many that fewer moments are kept than losses.
    until(page, lambda: epochs(page) > 130, "the space bar plays", seconds=90)
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
