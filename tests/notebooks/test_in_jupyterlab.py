"""The lectures and their questions in JupyterLab, in a real browser."""

from __future__ import annotations

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUESTIONS = """\
from lectures.checking.questions import question

questions = {
    "sum": {"question": "1 + 1?", "right": "2",
            "answers": {"2": "That is right.", "11": "You joined the digits."}},
    "many": {"question": "How many?", "right": "4640", "why": "One for each.", "otherwise": "Count them.",
             "replies": {"4.64": "Too few."}},
    "half": {"question": "What is 1 / 2?", "right": "0.5", "why": "A half.", "otherwise": "Divide.",
             "replies": {"2": "Upside down."}},
}
"""

#: What a cell shows that a reader would not want to see, by cell.
TROUBLE = """() => [...document.querySelectorAll(".jp-Cell")].flatMap((cell) => {
    const seen = []
    if (cell.querySelector("[data-mime-type='application/vnd.jupyter.error']")) seen.push("an error")
    for (const image of cell.querySelectorAll(".jp-OutputArea img")) {
        if (!image.naturalWidth) seen.push("a picture that is not there")
        else if (!image.alt || image.alt === "graph") seen.push("a picture without words")
    }
    const area = cell.querySelector(".jp-OutputArea-output")
    if (area && area.scrollWidth > area.clientWidth + 1) seen.push(`it is ${area.scrollWidth} px wide`)
    return seen.map((what) => `${cell.querySelector("pre, p")?.textContent.slice(0, 60)}: ${what}`)
})"""


ALL_ARE_LOADED = """() => [...document.querySelectorAll(".jp-OutputArea img")]
    .every((image) => image.complete)"""

ALL_RAN = """() => jupyterapp.shell.currentWidget.content.widgets
    .every(({ model }) => model.type !== "code" || model.executionCount)"""


def test_a_prediction_is_made_with_the_keyboard(open_notebook):
    page = open_notebook(QUESTIONS, 'question("sum", questions["sum"])')
    question = page.locator(".needle-predict")
    replies = question.locator("details p")
    question.wait_for()
    assert replies.evaluate_all("all => all.filter((x) => x.checkVisibility()).length") == 0
    question.get_by_text("11", exact=True).focus()
    page.keyboard.press("Enter")
    question.get_by_text("✗ You joined the digits.").wait_for()
    question.get_by_text("2", exact=True).focus()
    page.keyboard.press("Enter")
    question.get_by_text("✓ That is right.").wait_for()
    assert replies.evaluate_all("all => all.filter((x) => x.checkVisibility()).length") == 1


def test_a_number_is_typed_and_answered(open_notebook):
    page = open_notebook(QUESTIONS, 'question("half", questions["half"])')
    question = page.locator(".needle-predict")
    box = question.get_by_role("textbox", name="Your answer")
    for typed, reply in (("2", "✗ Upside down."), (".50", "✓ A half."), ("aa bb", "✗ Divide."), ("1", "✗")):
        box.fill("")
        box.press_sequentially(typed)  # JupyterLab's single keys, such as a for a new cell, stay in the box
        box.press("Enter")
        question.get_by_role("status").filter(has_text=reply).wait_for()
    assert page.locator(".jp-Cell").count() == 2


def test_a_comma_may_part_the_thousands_or_begin_the_decimals(open_notebook):
    page = open_notebook(QUESTIONS, 'question("many", questions["many"])')
    question = page.locator(".needle-predict")
    box = question.get_by_role("textbox", name="Your answer")
    typed = {"4640": "✓ ", "1": "✗ Count them.", "4,640": "✓ ", "4,64": "✗ Too few.", "4 640": "✓ "}
    for text, reply in typed.items():
        box.fill(text)
        box.press("Enter")
        question.get_by_role("status").filter(has_text=reply).wait_for()


def test_a_lecture_runs_and_nothing_is_cut_off(lecture, open_notebook):
    """It runs on a phone, which is then turned into a desktop: a lecture is long, so it runs once."""
    cells = [cell for cell in nbformat.read(lecture, as_version=4).cells if cell.id != "badge"]  # from Colab
    page = open_notebook(*cells, viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    page.wait_for_function(ALL_RAN, timeout=300_000)
    all_drawn = f"document.querySelectorAll('.jp-Cell').length === {len(cells)}"
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 30_000})
        page.wait_for_function(all_drawn)  # JupyterLab draws what is in sight, and here that is everything
        page.wait_for_timeout(1000)  # the last pictures
        page.wait_for_function(ALL_ARE_LOADED)
        assert page.evaluate(TROUBLE) == []
