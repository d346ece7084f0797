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


TYPED = {
    "half": {"2": "✗ Upside down.", ".50": "✓ A half.", "aa bb": "✗ Divide.", "1": "✗"},
    "many": {"4640": "✓ ", "1": "✗ Count them.", "4,640": "✓ ", "4,64": "✗ Too few.", "4 640": "✓ "},
}


@pytest.mark.parametrize("name", TYPED)
def test_a_number_is_typed_and_answered_also_with_a_comma(open_notebook, name):
    page = open_notebook(QUESTIONS, f'question("{name}", questions["{name}"])')
    question = page.locator(".needle-predict")
    box = question.get_by_role("textbox", name="Your answer")
    for typed, reply in TYPED[name].items():
        box.fill("")
        box.press_sequentially(typed)  # JupyterLab's single keys, such as a for a new cell, stay in the box
        box.press("Enter")
        question.get_by_role("status").filter(has_text=reply).wait_for()
    assert page.locator(".jp-Cell").count() == 2
