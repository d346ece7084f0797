"""The points: made, painted, uploaded, erased."""

from __future__ import annotations

import re

import numpy as np
import pytest

from needle.data import toy
from playground.training.settings import Settings
from playground.training.trainer import Trainer

from .page import (
    BLUE,
    ORANGE,
    Line,
    address_says,
    button,
    dots,
    epochs,
    figure,
    heard,
    is_near,
    learned,
    more,
    painted,
    pixels,
    place,
    plane,
    play,
    query,
    same,
    says,
    select,
    shows_losses_of,
    status,
    step,
    until,
    visit,
    weights,
)

pytestmark = pytest.mark.browser


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
    until(page, lambda: query(page).get("own", "") == "", "all are gone")
    assert button(page, "Clear").is_disabled()


@pytest.mark.slow
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
    button(page, "Input x₁").click()
    until(page, lambda: "inputs" in query(page), "an input is off")
    button(page, "Input x₂").click()
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
    upload("1,2,1\n" * 170_000)
    says(page, "This file is larger than 1 MB: too large for points.")
    upload("<script>alert(1)</script>,2,1\n" * 3)
    says(page, "Line 2 needs x1, x2 and a label")
    assert dots(page, points, [-1, -1, 1, 1]) == 1  # a refused file changes nothing
    upload("1000,0,1\n3000,0,0\n2000,500,1\n")
    says(page, "shifted and scaled to fit the plane")
