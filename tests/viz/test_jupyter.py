"""Drawings and the stepper as a reader sees them: in a notebook, in JupyterLab, in a real browser."""

from __future__ import annotations

import json
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EXAMPLE = """\
import needle as ndl
import viz

v1 = ndl.Tensor([0.0])
v2 = ndl.exp(v1)
v3 = v2 + 1
v4 = v2 * v3
"""
PLAYER = ".needle-steps"
LAST = 9


@pytest.fixture(scope="module")
def page_of_player(open_notebooks):
    with open_notebooks() as open_notebook:
        page = open_notebook(EXAMPLE, "player = viz.step(v4)\nplayer")
        page.locator(PLAYER).wait_for()
        yield page


@pytest.fixture
def player(page_of_player, jupyterlab):
    """A page with the player of v1..v4, at its first frame."""
    jupyterlab.execute(page_of_player, "player.frame = 0")
    wait_for_frame(page_of_player, 0)
    return page_of_player


def wait_for_frame(page, number):
    page.locator(f"{PLAYER} .count", has_text=f"{number + 1} / {LAST + 1}").wait_for()


def current(page):
    return page.locator(f"{PLAYER} svg .node.current text[font-weight=bold]").all_text_contents()


def python_frame(page, jupyterlab, number):
    """Wait until Python sees a frame."""
    for _ in range(300):
        if (seen := jupyterlab.execute(page, "print(player.frame)").strip()) == str(number):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"Python sees frame {seen}, not {number}")


def test_a_drawing_shows_itself(open_notebook):
    page = open_notebook(EXAMPLE, "viz.draw_gradient(v4)")
    page.get_by_text("adjoint of v1").first.wait_for()


def test_buttons_and_keys_move_the_frame_and_python_sees_it(player, jupyterlab):
    wait_for_frame(player, 0)
    assert current(player) == ["v1"]
    player.get_by_role("button", name="Next", exact=True).click()
    wait_for_frame(player, 1)
    assert current(player) == ["v2"]
    assert player.locator(f"{PLAYER} .equations").inner_text() == "v2 = exp(v1) = exp(0) = 1"
    python_frame(player, jupyterlab, 1)

    player.locator(PLAYER).focus()
    for key, frame in (
        ("ArrowRight", 2), ("ArrowLeft", 1), ("End", LAST), ("ArrowRight", LAST), ("Home", 0),
        ("ArrowLeft", 0),
    ):  # fmt: skip
        player.keyboard.press(key)
        wait_for_frame(player, frame)
    player.get_by_role("button", name="Last frame").click()
    wait_for_frame(player, LAST)
    python_frame(player, jupyterlab, LAST)
    assert player.locator(f"{PLAYER} .ahead").count() == 0


def test_python_moves_the_picture(player, jupyterlab):
    jupyterlab.execute(player, "player.frame = 7")
    wait_for_frame(player, 7)
    assert current(player) == ["adjoint of v2"]
    marked = player.locator(f"{PLAYER} svg .node.marked text[font-weight=bold]").all_text_contents()
    assert sorted(marked) == ["adjoint of v3", "of v2 via v4"]  # in the order of Graphviz's version
    assert player.locator(f"{PLAYER} .order .current").inner_text() == "v2"


def test_it_plays_pauses_and_stops_at_the_end(player):
    count = player.locator(f"{PLAYER} .count")
    player.locator(PLAYER).focus()
    player.keyboard.press(" ")
    count.filter(has_not_text=f"1 / {LAST + 1}").wait_for()
    player.get_by_role("button", name="Pause").click()
    player.get_by_role("button", name="Play").wait_for()
    stopped = count.inner_text()
    player.wait_for_timeout(2500)
    assert count.inner_text() == stopped
    player.get_by_role("combobox", name="Speed").select_option("4")
    player.get_by_role("button", name="Play").click()
    wait_for_frame(player, LAST)
    player.get_by_role("button", name="Play").wait_for()


def test_a_click_on_a_variable_and_the_slider_go_to_their_frame(player):
    player.locator(f"{PLAYER} svg [data-key=n3]").click()
    wait_for_frame(player, 2)
    player.get_by_role("slider", name="Frame").fill("8")
    wait_for_frame(player, 8)


def test_nothing_moves_from_frame_to_frame(player):
    places = []
    player.locator(PLAYER).focus()
    for frame in range(LAST + 1):
        wait_for_frame(player, frame)
        boxes = [part.bounding_box() for part in player.locator(f"{PLAYER} svg .node > text").all()]
        places.append(player.locator(f"{PLAYER} .picture").bounding_box())
        assert len(boxes) > 15
        player.keyboard.press("ArrowRight")
    assert all(place == places[0] for place in places)


def test_without_graphviz_the_equations_are_shown(open_notebook):
    missing = "import os, importlib.util as modules\nmodules.find_spec = lambda name: None"
    missing += "\nos.environ['PATH'] = '/nowhere'"
    page = open_notebook(f"{EXAMPLE}\n{missing}", "from ipywidgets import VBox\nVBox([viz.step(v4)])")
    page.locator(".widget-vbox pre").get_by_text("v̄2 = v̄2 via v4 + v̄2 via v3 = 2 + 1 = 3").wait_for()
    assert page.locator(PLAYER).count() == 0


def test_a_saved_notebook_holds_the_strip(player, jupyterlab):
    jupyterlab.run(player, "docmanager:save")
    path = jupyterlab.folder / player.url.rpartition("/")[2]
    for _ in range(300):
        outputs = json.loads(path.read_text())["cells"][1]["outputs"]
        if outputs:
            break
        player.wait_for_timeout(100)
    assert "".join(outputs[0]["data"]["text/html"]).count("<img") == LAST + 1


@pytest.mark.parametrize("width", [420, 1400])
def test_the_player_of_steps_works_without_a_widget(open_notebook, width):
    page = open_notebook(
        EXAMPLE,
        "from IPython.display import HTML\nHTML(viz.steps(v4).html())",
        viewport={"width": width, "height": 900},
    )
    page.locator(PLAYER).wait_for()
    page.locator(PLAYER).focus()
    page.keyboard.press("End")
    wait_for_frame(page, LAST)
    root = page.locator(PLAYER)
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")


def test_pictures_change_with_jupyterlabs_own_theme(open_notebook, jupyterlab):
    """Not with the reader's system, which is dark here."""
    page = open_notebook(
        EXAMPLE,
        "viz.draw(v4)",
        "viz.step(v4)",
        "viz.curve([1.0, 2.0]);",
        color_scheme="dark",
        viewport={"width": 1280, "height": 2400},
    )
    page.locator(PLAYER).wait_for()
    figure = page.locator("img[src^='data:image/svg+xml']:visible").last
    figure.wait_for()
    drawing = page.locator("[data-needle-drawing]")
    drawing.locator(".view").wait_for()
    for theme, is_dark in (("JupyterLab Light", False), ("JupyterLab Dark", True)):
        jupyterlab.run(page, "apputils:change-theme", theme=theme)
        page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(not is_dark).lower()}'")
        for picture in (drawing, page.locator(PLAYER), figure):
            for _ in range(100):  # the theme's style sheet is on its way
                if is_so := (lightness(picture) < 0.3) == is_dark:
                    break
                page.wait_for_timeout(100)
            assert is_so


def lightness(picture) -> float:
    """Of the ground of a picture, from 0 to 1."""
    with Image.open(BytesIO(picture.screenshot())) as image:
        return float(np.median(np.asarray(image.convert("L")))) / 255
