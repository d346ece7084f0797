"""Compiled functions on a page: a group lights its lines, and lines light their group. In Chromium."""

from __future__ import annotations

import pytest

import viz

from ..training import compiled_step

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LIT = """(label) => [...document.querySelectorAll(".needle-program .line")].every((line) =>
    line.classList.contains("lit") === (line.closest("div").dataset.label === label))"""


@pytest.fixture(scope="module")
def step():
    return compiled_step()


@pytest.fixture
def page_of(browser, tmp_path):
    """A function that opens a picture as a page of its own."""
    pages, troubles = [], []

    def page_of(picture: viz.Picture, width: int = 1280, **options):
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        pages.append(page)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: request.url.startswith("http") and troubles.append(request.url))
        page.goto(picture.save(tmp_path / f"{len(pages)}.html").as_uri())
        if options.get("java_script_enabled", True):
            page.locator(".needle-program .line").first.wait_for()
        return page

    yield page_of
    for page in pages:
        page.close()
    assert not troubles


def said(page) -> str:
    return page.locator(".said").inner_text()


def strong(page) -> list[str]:
    return [text.split(maxsplit=1)[-1] for text in page.locator(".line.strong").all_inner_texts()]


def test_pointing_at_a_group_lights_its_lines(page_of, step) -> None:
    page = page_of(viz.draw(step))
    assert page.locator(".line.lit").count() == 0
    page.locator(".cluster[data-key=cluster_g2]").hover(position={"x": 14, "y": 30})
    assert page.evaluate(LIT, "2")
    assert said(page).startswith("group 2: loop of 10")
    page.locator(".said").hover()
    assert page.locator(".line.lit").count() == 0


def test_pointing_at_an_operator_lights_its_statement(page_of, step) -> None:
    page = page_of(viz.draw(step))
    page.locator(".node", has_text="relu1").hover()
    assert strong(page) == ["relu1[8 * i + j] = relu(add1)"]
    inside = """([line, pane]) => {
        const [a, b] = [line, pane].map((x) => document.querySelector(x).getBoundingClientRect())
        return a.top >= b.top && a.bottom <= b.bottom
    }"""
    assert page.evaluate(inside, [".line.strong", ".source"])  # it is scrolled to


def test_pointing_at_a_line_lights_its_operator_and_its_group(page_of, step) -> None:
    page = page_of(viz.draw(step))
    page.locator(".line", has_text="relu1[8 * i + j] = relu(add1)").hover()
    assert page.locator(".node.strong").get_attribute("data-key").endswith("in2")
    assert page.locator(".node.strong").text_content().strip().startswith("relu")
    assert "lit" in page.locator(".cluster[data-key=cluster_g2]").get_attribute("class")
    assert "lit" not in page.locator(".cluster[data-key=cluster_g4]").get_attribute("class")


def test_an_array_from_outside_lights_the_lines_that_name_it(page_of, step) -> None:
    page = page_of(viz.draw(step))
    page.locator(".node[data-key=in_bias_0]").hover()
    texts = page.locator(".line.strong").all_inner_texts()
    assert len(texts) >= 3  # where it is stored, where it is read, and where it is written
    assert all("bias_0" in text for text in texts)


def test_keys_go_to_a_group_and_through_its_statements(page_of, step) -> None:
    page = page_of(viz.draw(step))
    page.locator(".view").focus()
    page.keyboard.press("Tab")
    label = page.evaluate("document.activeElement.dataset.key").removeprefix("cluster_g")
    assert page.evaluate(LIT, label)
    page.keyboard.press("ArrowDown")
    first = strong(page)
    assert first
    page.keyboard.press("ArrowDown")
    assert strong(page) != first
    page.keyboard.press("Escape")
    assert page.locator(".line.lit").count() == 0


def test_a_tap_stays(page_of, step) -> None:
    page = page_of(viz.draw(step), 390, has_touch=True, is_mobile=True)
    line = page.locator(".line", has_text="relu1[8 * i + j] = relu(add1)")
    line.tap()
    assert "relu" in said(page)
    assert page.locator(".node.strong").count() == 1
    line.tap()
    assert page.locator(".node.strong").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("draw", [viz.draw, viz.draw_schedule])
def test_the_page_does_not_scroll_to_the_side(page_of, step, draw, width) -> None:
    page = page_of(draw(step), width)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    sizes = page.evaluate("""[...document.querySelectorAll(".needle-program .line, .needle-program p")]
        .map((x) => parseFloat(getComputedStyle(x).fontSize))""")
    assert min(sizes) >= 12


@pytest.mark.parametrize("width", [390, 1280])
def test_the_first_operator_is_seen_at_first(page_of, step, width) -> None:
    page = page_of(viz.draw(step), width)
    view = page.locator(".view").bounding_box()
    first = page.locator(".node", has_text="matmul1").bounding_box()
    assert view["x"] <= first["x"]
    assert first["x"] + first["width"] <= view["x"] + view["width"]


def test_all_of_the_graph_can_be_shown(page_of, step) -> None:
    page = page_of(viz.draw(step), 390)
    overflows = "document.querySelector('.view').scrollWidth > document.querySelector('.view').clientWidth"
    assert page.evaluate(overflows)
    page.get_by_role("button", name="Fit").click()
    assert not page.evaluate(overflows)


def test_before_and_after_fusion_light_each_other(page_of, step) -> None:
    page = page_of(viz.draw_schedule(step))
    before, after = page.locator(".source").all()
    before.locator(".line", has_text="= relu(add1[i])").hover()
    assert after.locator(".line.strong").all_inner_texts()[0].endswith("relu1[8 * i + j] = relu(add1)")


def test_without_scripts_there_is_an_image(page_of, step) -> None:
    page = page_of(viz.draw(step), java_script_enabled=False)
    image = page.locator("img")
    assert "loop of 10" in image.get_attribute("alt")
    assert image.bounding_box()["width"] > 600
