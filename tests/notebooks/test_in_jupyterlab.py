"""Questions in JupyterLab, in a real browser."""

from __future__ import annotations

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
