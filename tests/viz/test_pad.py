"""A sheet to draw on: what Python sees of it, and what a reader draws in JupyterLab."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

import needle as ndl
import viz

CELLS = ".needle-pad rect:not(.cursor)"


def halves(image):
    """Where the ink is."""
    total = image.sum() or 1
    return {"left": image[:, :4].sum() / total, "right": image[:, 4:].sum() / total}


def test_the_function_gets_the_start_and_its_answers_are_shown():
    start = np.zeros((8, 8))
    start[2, 6] = 1
    sheet = viz.pad(halves, start=start, title="Left or right?")
    assert sheet.image.dtype == np.float32
    assert np.array_equal(sheet.image, start)
    page = sheet.html()
    assert page.count("<rect") == 64
    assert 'x="6" y="2" width="1" height="1" fill-opacity="1"' in page
    assert 'aria-label="Left or right?"' in page
    assert "<script" not in page
    assert page.index(">left<") < page.index(">0%<") < page.index(">right<") < page.index(">100%<")


def test_python_draws_too():
    sheet = viz.pad(halves, shape=(8, 8))
    assert not sheet.image.any()
    sheet.image[0, 0] = 1
    assert not sheet.image.any(), "image is a copy"
    sheet.image = np.eye(8)
    assert sheet.image.sum() == 8
    sheet.widget.pixels = [0.0] * 63 + [1.0]
    assert sheet.image[7, 7] == sheet.image.sum() == 1
    assert sheet.widget.said["rows"] == [("left", 0.0), ("right", 1.0)]
    sheet.image = np.zeros((8, 8))
    assert not any(sheet.widget.pixels)


@pytest.mark.parametrize("answers", [[0.1, 0.7, 0.2], np.array([0.1, 0.7, 0.2]), ndl.Tensor([0.1, 0.7, 0.2])])
def test_a_list_of_numbers_answers_0_1_2(answers):
    page = viz.pad(lambda image: answers, shape=(2, 2)).html()
    assert '<li class="most"><span>1</span>' in page
    assert page.count('class="most"') == 1


def test_the_ten_largest_answers_are_shown_in_their_order():
    sheet = viz.pad(lambda image: {i: (i * 7 % 12) / 12 for i in range(12)}, shape=(2, 2))
    shown = [int(answer) for answer, _ in sheet.widget.said["rows"]]
    assert shown == [i for i in range(12) if i * 7 % 12 >= 2]


def test_what_a_page_sends_is_bounded():
    sheet = viz.pad(halves, shape=(8, 8))
    sheet.widget.pixels = [float("nan"), -3.0, 7.0] + [0.0] * 61
    assert sheet.image.ravel()[:3].tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="reshape"):
        sheet.widget.pixels = [1.0] * 5


def test_a_function_that_fails_later_says_so_below_the_drawing():
    sheet = viz.pad(lambda image: {"share": 1 / (1 - image.max())}, shape=(2, 2))
    with np.errstate(divide="raise"):
        sheet.image = np.ones((2, 2))
        assert "FloatingPointError" in sheet.html()
        assert sheet.widget.said["rows"] == []
    sheet.image = np.zeros((2, 2))
    assert ">100%<" in sheet.html()


@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "a & b"])
def test_answers_are_text(text):
    page = viz.pad(lambda image: {text: 1}, shape=(2, 2), title=text).html()
    assert "<img" not in page
    assert "a & b" not in page


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"shape": (0, 8)}, ValueError, "at most 4,096 pixels"),
        ({"shape": (800, 800)}, ValueError, "at most 4,096 pixels"),
        ({"start": np.zeros(8)}, ValueError, r"shape \(8,\); needs \(height, width\)"),
    ],
)
def test_a_sheet_without_pixels_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        viz.pad(halves, **arguments)


@pytest.mark.parametrize("answers", [3.0, None, "seven", np.zeros((2, 2))])
def test_other_answers_are_refused_at_once(answers):
    with pytest.raises((TypeError, ValueError), match="pad: the function should return a mapping"):
        viz.pad(lambda image: answers, shape=(2, 2))


def test_an_image_of_another_shape_is_refused():
    sheet = viz.pad(halves, shape=(8, 8))
    with pytest.raises(ValueError, match=r"shape \(4, 4\), but the sheet has \(8, 8\)"):
        sheet.image = np.ones((4, 4))


@pytest.mark.slow
@pytest.mark.browser
def test_a_reader_draws_in_jupyterlab(open_notebook, jupyterlab):
    page = open_notebook(
        "import viz",
        "def halves(image):\n    total = image.sum() or 1\n"
        "    return {'left': image[:, :4].sum() / total, 'right': image[:, 4:].sum() / total}\n"
        "sheet = viz.pad(halves, shape=(8, 8))\nsheet",
    )
    paper = page.locator(".needle-pad svg")
    paper.wait_for()

    def drag(x0, y0, x1, y1):
        box = paper.bounding_box()
        page.mouse.move(box["x"] + x0 * box["width"] / 8, box["y"] + y0 * box["height"] / 8)
        page.mouse.down()
        page.mouse.move(box["x"] + x1 * box["width"] / 8, box["y"] + y1 * box["height"] / 8, steps=3)
        page.mouse.up()

    def shares(*texts):
        page.wait_for_function(
            "wanted => [...document.querySelectorAll('.needle-pad li > :last-child')]"
            ".map((x) => x.textContent).join() === wanted",
            arg=",".join(texts),
        )

    def python_sees(code, *numbers):
        for _ in range(100):  # strokes are on their way
            if (seen := jupyterlab.execute(page, f"print({code})").split()) == list(numbers):
                return
            page.wait_for_timeout(100)
        pytest.fail(f"Python sees {seen}")

    drag(6.5, 1.5, 6.5, 6.5)
    shares("0%", "100%")
    python_sees("(sheet.image[:, 6] > 0.9).sum(), sheet.image[:, :5].sum()", "6", "0.0")
    page.get_by_role("button", name="Erase").click()
    drag(6.5, 0.5, 6.5, 7.5)
    page.get_by_role("button", name="Clear").click()
    shares("0%", "0%")
    page.get_by_role("button", name="Draw").click()
    paper.focus()
    for key in ("ArrowRight", "ArrowDown", " "):
        page.keyboard.press(key)
    shares("100%", "0%")
    python_sees("sheet.image[1, 1], sheet.image.sum()", "1.0", "1.0")
    jupyterlab.execute(page, "import numpy as np; sheet.image = np.eye(8)[:, ::-1] * np.eye(8)[6]")
    shares("0%", "100%")
    expect(page.locator(CELLS).nth(8 + 6)).to_have_attribute("fill-opacity", "1", timeout=30_000)
