"""Questions that are answered before the next cell shows: as HTML, and in a real browser."""

from __future__ import annotations

import re

import pytest

from lectures.checking import Lecture
from lectures.checking.questions import question

FILE = """
[sum]
question = "What does `a + a` pass back to a?"
right = "2"
answers.1 = "Each use passes back 1."
answers.2 = "Right: two uses."
answers."a & <b>" = "No."

[power]
question = "What is 2³?"
right = "8"
why = "2 · 2 · 2."
replies.6 = "That is 2 · 3."
otherwise = "Multiply three twos."
"""


@pytest.fixture
def lecture(tmp_path):
    (tmp_path / "lecture_99.toml").write_text(FILE, encoding="utf-8")
    return Lecture(str(tmp_path / "lecture_99.py"))


def test_a_name_that_is_no_question_is_told_the_names(lecture):
    words = r"predict\('product'\): this lecture has the questions 'sum', 'power'"
    with pytest.raises(LookupError, match=words):
        lecture.predict("product")


def test_what_is_right_must_be_one_of_the_answers():
    with pytest.raises(ValueError, match="'3' is none of the answers"):
        question("sum", {"question": "?", "answers": {"1": "…", "2": "…"}, "right": "3"})


def test_each_answer_is_folded_and_one_is_open_at_a_time(lecture):
    assert repr(lecture.predict("power")) == "Predict: What is 2³?", "where HTML is not shown"
    page = lecture.predict("sum")._repr_html_()
    assert re.findall(r'<details name="([^"]+)"><summary>([^<]+)', page) == [
        ("needle-predict-sum", "1"),
        ("needle-predict-sum", "2"),
        ("needle-predict-sum", "a &amp; &lt;b&gt;"),
    ]
    assert "<script" not in page
    assert "<code>a + a</code>" in page


def test_no_text_can_end_the_script():
    entries = {"question": "?", "right": "1", "why": "</script><b>", "otherwise": "</script>"}
    page = question("x", entries)._repr_html_()
    assert page.count("</script>") == 1


@pytest.fixture
def page(browser, lecture):
    """A page with both questions, as an exported notebook shows them."""
    page = browser.new_page(viewport={"width": 390, "height": 700})
    page.set_content("".join(question._repr_html_() for question in lecture.questions.values()))
    yield page
    page.close()


@pytest.mark.slow
@pytest.mark.browser
def test_in_a_page_you_choose_by_mouse_or_keys_and_read_the_reply(page):
    page.get_by_text("1", exact=True).click()
    assert page.get_by_text("Each use passes back 1.").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.get_by_text("✓ Right: two uses.").is_visible()
    assert not page.get_by_text("Each use passes back 1.").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.browser
def test_in_a_page_you_type_and_read_the_reply(page):
    box, reply = page.get_by_label("Your answer"), page.get_by_role("status")
    for typed, words in (
        ("6", "✗ That is 2 · 3."),
        (" 8.0 ", "✓ 2 · 2 · 2."),
        ("8,0", "✓ 2 · 2 · 2."),
        ("constructor", "✗ Multiply three twos."),
        ("", ""),
    ):
        box.fill(typed)
        box.press("Enter")
        assert reply.inner_text() == words
    assert not page.get_by_text("8. 2 · 2 · 2.").is_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_where_scripts_do_not_run_the_answer_is_folded(browser, lecture):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(lecture.predict("power")._repr_html_())
    assert page.get_by_role("textbox").count() == 0
    page.get_by_text("Show the answer").click()
    assert page.get_by_text("8. 2 · 2 · 2.").is_visible()
    context.close()
