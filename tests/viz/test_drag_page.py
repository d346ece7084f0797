"""Sliders below a picture as a reader drags them: in a page of their own, and in JupyterLab."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

import needle as ndl
import viz

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = ".needle-drag"
V4 = """\
import needle as ndl
import viz

def v4(v1, v2):
    v3 = ndl.exp(v1)
    return v3 * (v3 + v2)
"""
PLACES = """() => {
    const shapes = ".needle-drag :is(.node > *:not(text), .cluster > *, .edge > path)"
    return [...document.querySelectorAll(shapes)]
        .map((x) => x.getAttribute("d") ?? x.getAttribute("points") ?? x.getAttribute("cx")).join()
}"""
RUNS_OUT = """() => [...document.querySelectorAll(".needle-drag .node")].filter((node) => {
    const box = node.querySelector("path, polygon, ellipse").getBoundingClientRect()
    return [...node.querySelectorAll("text")].some((text) => {
        const { left, right } = text.getBoundingClientRect()
        return left < box.left || right > box.right
    })
}).length"""


def v4(v1, v2):
    v3 = ndl.exp(v1)
    return v3 * (v3 + v2)


def of_branches(x, w):
    if float(x.numpy()[0]) > 1.5:
        raise ValueError("x is too large")
    return x * w if float(x.numpy()[0]) > 0 else ndl.exp(x) * w + 1


def curve(e):
    figure, ax = plt.subplots(figsize=(5, 3))
    ax.plot([0, e])
    return figure


@pytest.fixture
def page_of(browser, tmp_path):
    """A function that opens a drawing with sliders as a page of its own."""
    pages, troubles = [], []

    def page_of(drag: viz.Drag, width: int = 1280, **options):
        page = browser.new_page(viewport={"width": width, "height": 800}, reduced_motion="reduce", **options)
        pages.append(page)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: request.url.startswith("http") and troubles.append(request.url))
        page.goto(drag.save(tmp_path / f"{len(pages)}.html").as_uri())
        page.locator(f"{ROOT} input").first.wait_for()
        return page

    yield page_of
    for page in pages:
        page.close()
    assert not troubles


def number_in(page, key: str) -> str:
    return page.locator(f"{ROOT} .node[data-key={key}] text").last.text_content()


def slider(page, name: str):
    return page.get_by_role("slider", name=name, exact=True)


@pytest.mark.parametrize("width", [390, 1280])
def test_values_follow_in_place(page_of, width) -> None:
    page = page_of(viz.drag(v4, v1=(-2, 2), v2=1.5, frames=41), width)
    v1, places = slider(page, "v1"), page.evaluate(PLACES)
    size = page.locator(ROOT).bounding_box()
    v1.focus()
    for key, value, output in (
        ("ArrowRight", "0.1", "[2.879]"), ("Home", "−2", "[0.2213]"), ("ArrowLeft", "−2", "[0.2213]"),
        ("End", "2", "[65.68]"),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert v1.get_attribute("aria-valuetext") == value
        assert page.locator(f"{ROOT} .value").inner_text() == value
        assert number_in(page, "n1") == f"[{value}]"
        assert number_in(page, "n5") == output
        assert page.evaluate(PLACES) == places
        assert page.evaluate(RUNS_OUT) == 0
        assert page.locator(ROOT).bounding_box() == size
    assert "41 pictures" in page.locator(f"{ROOT} .note").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_another_graph_keeps_the_sliders_where_they_are(page_of) -> None:
    page = page_of(viz.drag(of_branches, x=(-1, 1), w=(0, 2), frames=5))
    x, place = slider(page, "x"), slider(page, "x").bounding_box()
    assert page.locator(f"{ROOT} .node[data-key$=_op]").count() == 7
    x.focus()
    page.keyboard.press("End")
    assert page.locator(f"{ROOT} .node[data-key$=_op]").count() == 3
    assert slider(page, "x").bounding_box() == place
    slider(page, "w").focus()
    page.keyboard.press("End")  # they move together
    assert page.locator(f"{ROOT} .value").all_inner_texts() == ["1", "2"]


def test_an_error_is_told_in_place_and_the_sliders_go_on(page_of) -> None:
    page = page_of(viz.drag(of_branches, x=(0, 2), w=1.0, frames=5))
    x, place = slider(page, "x"), slider(page, "x").bounding_box()
    x.focus()
    page.keyboard.press("End")
    assert (
        page.get_by_role("status").inner_text() == "At x = 2 there is no picture: ValueError: x is too large."
    )
    assert x.bounding_box() == place
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("status").text_content() == ""
    assert number_in(page, "n1") == "[1]"


def test_if_there_are_too_many_each_slider_moves_alone(page_of) -> None:
    page = page_of(viz.drag(v4, v1=(-2, 2), v2=(0, 1), frames=41))
    slider(page, "v1").focus()
    page.keyboard.press("End")
    slider(page, "v2").focus()
    page.keyboard.press("End")
    assert page.locator(f"{ROOT} .value").all_inner_texts() == ["0", "1"]
    assert number_in(page, "n5") == "[2]"
    assert "One slider moves at a time" in page.locator(f"{ROOT} .note").inner_text()


def test_a_figure_can_be_dragged(page_of) -> None:
    page = page_of(viz.drag(curve, e=(1e-8, 1), frames=9), 390)
    image = page.locator(f"{ROOT} img")
    before = image.get_attribute("src")
    slider(page, "e").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(f"{ROOT} .value").inner_text() == "0.001"
    assert image.get_attribute("src") != before
    # The picture before it stays until this one is loaded.
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1000


def test_two_on_one_page_move_by_themselves(page_of, tmp_path) -> None:
    first = viz.drag(v4, v1=(-2, 2), v2=1.5, frames=5)
    second = viz.drag(lambda x: x * x, x=(0, 1), frames=5, style="d2l")
    page = page_of(first)
    page.set_content(first.html() + second.html())
    slider(page, "x").focus()
    page.keyboard.press("End")
    assert page.locator(f"{ROOT} .value").all_inner_texts() == ["0", "1"]
    slider(page, "v1").focus()
    page.keyboard.press("Home")
    assert page.locator(f"{ROOT} .value").all_inner_texts() == ["−2", "1"]
    # In this style numbers stand in the middle of their boxes.
    middles = page.evaluate("""() => [...document.querySelectorAll(".needle-drag:last-of-type .node")]
        .filter((node) => node.querySelectorAll("text").length > 1)
        .flatMap((node) => [...node.querySelectorAll("polygon, text:last-of-type")].map((x) => {
            const { left, right } = x.getBoundingClientRect()
            return (left + right) / 2
        }))""")
    assert len(middles) > 6
    assert all(abs(a - b) < 2 for a, b in zip(middles[::2], middles[1::2], strict=True))


def test_without_scripts_there_is_the_picture_at_the_start(page_of, browser, tmp_path) -> None:
    path = viz.drag(v4, v1=(-2, 2), v2=1.5, frames=3).save(tmp_path / "still.html")
    page = browser.new_page(java_script_enabled=False)
    page.goto(path.as_uri())
    assert page.get_by_role("img", name="v4, with v1 to drag").bounding_box()["width"] > 400
    page.close()


#: The kernel is busy with the first answer while all the others are asked for.
BUSY = """
import time

def busy(*given):
    asked.append(given[2])
    time.sleep(5 if len(asked) == 1 else 0.3)
    return old(*given)

type(drag)._answer = busy
"""


def test_in_jupyterlab_the_kernel_computes(open_notebook, jupyterlab) -> None:
    page = open_notebook(
        V4, "drag = viz.drag(v4, v1=(-2, 2), v2=(0, 3), frames=3)\ndrag", reduced_motion="reduce"
    )
    v1 = slider(page, "v1")
    v1.focus()
    places = page.evaluate(PLACES)
    page.keyboard.press("ArrowRight")  # no frame was computed beforehand there
    page.locator(f"{ROOT} .node[data-key=n1] text", has_text="[0.02]").wait_for()
    assert page.locator(f"{ROOT} .value").first.inner_text() == "0.02"
    slider(page, "v2").focus()
    page.keyboard.press("PageUp")
    there = page.locator(f"{ROOT} .value").nth(1).inner_text()
    page.locator(f"{ROOT} .node text", has_text=f"[{there}]").first.wait_for()
    assert number_in(page, "n1") == "[0.02]"
    assert page.evaluate(PLACES) == places
    assert page.locator(f"{ROOT} .note").inner_text() == ""

    # Of many moves while the kernel is busy only the last one is computed.
    jupyterlab.execute(page, "asked = []; old = type(drag)._answer")
    jupyterlab.execute(page, BUSY)
    v1.focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    page.locator(f"{ROOT} .node[data-key=n1] text", has_text="[0.62]").wait_for()
    page.wait_for_timeout(500)
    assert 1 < int(jupyterlab.execute(page, "print(len(asked))")) < 10


def test_while_the_kernel_does_not_answer_the_frames_are_shown(open_notebook, tmp_path) -> None:
    page = open_notebook(V4, "viz.drag(v4, v1=(-2, 2), v2=1.5, frames=5)", reduced_motion="reduce")
    slider(page, "v1").focus()
    page.evaluate(
        """code => jupyterapp.shell.currentWidget.sessionContext.session.kernel
            .requestExecute({code}) && null""",
        f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go on')!r}): time.sleep(0.05)",
    )
    page.keyboard.press("PageUp")  # a tenth of the way, from 0 to 0.4
    page.locator(f"{ROOT} .note", has_text="computed beforehand: v1 = 0.").wait_for()
    page.keyboard.press("End")
    assert number_in(page, "n1") == "[2]"
    (tmp_path / "go on").touch()
    page.keyboard.press("ArrowLeft")
    page.locator(f"{ROOT} .node[data-key=n1] text", has_text="[1.98]").wait_for()
    assert page.locator(f"{ROOT} .note").inner_text() == ""


def test_an_exported_notebook_moves_through_frames(open_notebook, jupyterlab, browser, tmp_path) -> None:
    import nbformat
    from nbconvert import HTMLExporter

    page = open_notebook(V4, "viz.drag(v4, v1=(-2, 2), v2=1.5, frames=5)")
    slider(page, "v1").wait_for()
    jupyterlab.run(page, "docmanager:save")
    path = jupyterlab.folder / page.url.rpartition("/")[2]
    for _ in range(300):
        saved = nbformat.read(path, 4)
        if saved.cells[1].outputs:
            break
        page.wait_for_timeout(100)
    exported = tmp_path / "exported.html"
    exported.write_text(HTMLExporter().from_notebook_node(saved)[0], encoding="utf-8")
    page = browser.new_page(reduced_motion="reduce")
    page.route(
        "**/*", lambda route: route.abort() if route.request.url.startswith("http") else route.continue_()
    )
    page.goto(exported.as_uri())
    slider(page, "v1").focus()
    page.keyboard.press("End")
    assert number_in(page, "n1") == "[2]"
    page.close()
