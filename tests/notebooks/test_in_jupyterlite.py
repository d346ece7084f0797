"""What a reader does in JupyterLite: searches, drags, steps, draws, is stopped, and comes back."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from ..jupyterlite import START, JupyterLite

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LECTURE = "05_computational_graph.ipynb"
TAKEN = ("set-up", "imports", "v1-to-v4", "draw-v4", "drag")
OWN = """\
player = viz.step(v4)
player

def halves(image):
    total = image.sum() or 1
    return {"left": image[:, :4].sum() / total, "right": image[:, 4:].sum() / total}
viz.pad(halves, shape=(8, 8))

import lectures.checking.attempt as attempt
attempt.MOST_SECONDS = 1
def from_the_table(n1, n2):
    while True:
        pass
check(from_the_table)"""


@pytest.fixture
def lite(context, site) -> JupyterLite:
    """JupyterLite with a notebook that its menu runs: cells of a lecture, and an answer that never ends."""
    page = context.new_page()
    lite = JupyterLite(page, site)
    lecture = lite.read(LECTURE)
    cells = [cell for cell in lecture.cells if cell.id in TAKEN]
    cells += [new_code_cell(source) for source in OWN.split("\n\n")]
    lite.keep("mine.ipynb", new_notebook(cells=cells, metadata=lecture.metadata))
    page.goto(f"{site}/lab/lab/index.html?path=mine.ipynb")
    lite.wait()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    return lite


def test_a_reader_uses_it_and_comes_back(lite):
    page = lite.page
    cells = lite.all_cells()
    drawing, dragged, stepper, sheet, answer = (cells.nth(index) for index in range(3, 8))

    expect(answer).to_contain_text("StillRunning: no answer after 1 second", timeout=START)
    expect(answer).to_contain_text("It would run for ever.")

    field = drawing.get_by_role("searchbox")
    field.fill("v2")
    field.press("Enter")
    expect(drawing.locator(".count")).to_have_text("1 of 1")

    slider = dragged.get_by_role("slider", name="v1")
    slider.focus()
    slider.press("End")
    expect(dragged.locator(".node text").filter(has_text="61.99")).to_be_visible()

    stepper.get_by_role("button", name="Next", exact=True).click()
    expect(stepper.locator(".count")).to_have_text("2 / 10")

    paper = sheet.locator(".needle-pad svg")
    paper.scroll_into_view_if_needed()
    box = paper.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.8, steps=3)
    page.mouse.up()
    expect(sheet.locator("li > :last-child")).to_have_text(["0%", "100%"])

    page.get_by_role("menuitem", name="File", exact=True).click()
    page.get_by_role("menuitem", name="Save Notebook").first.click()
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    page.reload()
    lite.wait()
    lite.all_cells()
    stepper.get_by_role("button", name="Next", exact=True).click()
    expect(stepper.locator(".count")).to_have_text("3 / 10")
    slider.focus()
    slider.press("Home")
    expect(dragged.locator(".node text").filter(has_text="0.1537")).to_be_visible()
    expect(field).to_be_visible()
