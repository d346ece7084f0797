"""The checking helper: what a reader is told about an exercise that is untried, right, wrong or broken."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle.lecture import WrongAnswer, case, check

x = ndl.Tensor([1.0, 2.0])
y = x * 3


def refuse(exercise, *cases, **options):
    with pytest.raises(WrongAnswer) as caught:
        check(exercise, *cases, **options)
    return str(caught.value)


def double(number):
    return 2 * number


def untried(*inputs):
    return ...


def test_an_untried_exercise_says_so_and_raises_nothing(capsys):
    check(untried, case(3, expect=6))
    assert capsys.readouterr().out.startswith("untried: not tried yet.")


def test_an_answer_left_half_open_is_untried_too(capsys):
    def half(number):
        return number, ...

    check(half, case(3, expect=[3, 4]))
    assert "not tried yet" in capsys.readouterr().out


def test_a_right_answer_says_in_how_many_cases(capsys):
    check(double, case(3, expect=6), case(x, expect=ndl.Tensor([2.0, 4.0])))
    check(double, case("ab", expect="abab"))
    assert capsys.readouterr().out == "double: right, 2 of 2 cases.\ndouble: right, 1 of 1 cases.\n"


def test_a_wrong_answer_says_the_input_the_expected_and_the_given_answer_and_the_hint():
    message = refuse(double, case(2, expect=4), case(3, expect=9, hint="three threes"))
    assert message.splitlines() == [
        "double(3) is not right yet (case 2 of 2).",
        "  expected: 9",
        "  got:      6",
        "  so:       6 should be 9",
        "  hint:     three threes",
    ]


def test_a_named_tensor_is_called_by_its_name_and_shown():
    message = refuse(double, case(x, expect=y))
    assert "double(x) is not right yet" in message
    assert f"where:    x = {x!r}" in message
    assert "expected: y" in message
    assert "at index 0, 2.0 should be 3.0" in message


@pytest.mark.parametrize(
    ("expect", "got", "words"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), "the shape is (3, 2), but should be (2, 3)"),
        (np.eye(2), np.ones((2, 2)), "at index (0, 1), 1.0 should be 0.0"),
        ([x, y], [x], "the length is 1, but should be 2"),
        ([x, y], [y, x], "item 0 differs: at index 0, 3.0 should be 1.0"),
        (x, x.numpy(), "the type is ndarray, but should be Tensor"),
        (x, None, "is a `return` missing?"),
        (1.0, float("nan"), "nan should be 1.0"),
        ("exp", "log", "they are not equal"),
    ],
)
def test_the_difference_is_put_in_words(expect, got, words):
    assert words in refuse(lambda: got, case(expect=expect))


def test_the_tolerance_can_be_chosen(capsys):
    check(lambda: 1.01, case(expect=1.0), tolerance=0.1)
    assert "right" in capsys.readouterr().out
    refuse(lambda: 1.01, case(expect=1.0), tolerance=0.001)


def test_equal_answers_of_other_python_types_are_right(capsys):
    check(lambda: (1, np.float32(2.0)), case(expect=[1.0, 2]))
    check(lambda: float("nan"), case(expect=np.nan))
    assert capsys.readouterr().out == "<lambda>: right, 1 of 1 cases.\n" * 2


def test_an_exception_of_the_reader_passes_through_after_the_input_is_named(capsys):
    def broken(number):
        return number.missing

    with pytest.raises(AttributeError, match="missing"):
        check(broken, case(3, expect=6, hint="numbers have no such attribute"))
    assert capsys.readouterr().out.splitlines() == [
        "broken(3) raised an exception (case 1 of 1).",
        "  expected: 6",
        "  hint:     numbers have no such attribute",
    ]


def test_a_notebook_shows_the_message_without_the_frames_of_the_helper():
    with pytest.raises(WrongAnswer) as caught:
        check(double, case(3, expect=9))
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_an_array_of_several_lines_stays_in_its_column():
    lines = refuse(lambda: np.ones((2, 2)), case(expect=np.eye(2))).splitlines()
    assert lines[1:3] == ["  expected: array([[1., 0.],", " " * 12 + "       [0., 1.]])"]
