"""Points from files and addresses: what is read, what is said of the rest, and by which line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from playground.training.points import (
    MOST_OWN_POINTS,
    Point,
    PointsError,
    after_difference,
    check_points,
    difference,
    from_csv,
    read_points,
    write_points,
)

TWO = (Point(1.5, -2, -1), Point(-3, 0.25, 1))
NUMBERS = "2 points, “-1” orange and “1” blue."
WORDS = "2 points, “no” orange and “yes” blue."

CSV = {
    "commas": ("1.5,-2,-1\n-3,0.25,1", TWO, NUMBERS),
    "semicolons": ("1.5;-2;-1\n-3;.25;1\n", TWO, NUMBERS),
    "tabs": ("1.5\t-2\t-1\n-3\t0.25\t1\n", TWO, NUMBERS),
    "a header": ("x1,x2,label\n1.5,-2,-1\n-3,0.25,1", TWO, NUMBERS),
    "CRLF": ("x1,x2,label\r\n1.5,-2,-1\r\n-3,0.25,1\r\n", TWO, NUMBERS),
    "CR": ("1.5,-2,-1\r-3,0.25,1\r", TWO, NUMBERS),
    "a mark of UTF-8": ("\ufeff1.5,-2,-1\n-3,0.25,1", TWO, NUMBERS),
    "quotes": ('"1.5","-2","no"\n"-3","0.25","yes"', TWO, WORDS),
    "empty lines": ("\n1.5,-2,-1\n\n  \n-3,0.25,1\n,,\n", TWO, NUMBERS),
    "spaces": (" 1.5 , -2 , no \n -3 , 0.25 , yes ", TWO, WORDS),
    "exponents": ("15e-1,-2,no\n-3,2.5E-1,yes", TWO, WORDS),
    "0 and 1": ("1.5,-2,0\n-3,0.25,1", TWO, "2 points, “0” orange and “1” blue."),
    "by size": ("1.5,-2,9\n-3,0.25,10", TWO, "2 points, “9” orange and “10” blue."),
    "equal numbers": (
        "1,1,1\n2,2,1.0\n3,3,+1",
        (Point(1, 1, 1), Point(2, 2, 1), Point(3, 3, 1)),
        "3 points.",
    ),
    "one class": ("1.5,-2,1", (Point(1.5, -2, 1),), "1 point."),
    "one class below": ("1.5,-2,0", (Point(1.5, -2, -1),), "1 point."),
    "one word": ("1.5,-2,yes", (Point(1.5, -2, 1),), "1 point."),
    "many numbers": (
        "1,1,0.5\n2,2,-1\n3,3,0",
        (Point(1, 1, 0.5), Point(2, 2, -1), Point(3, 3, 0)),
        "3 points.",
    ),
    "large numbers": (
        "1,1,5\n2,2,-10\n3,3,0",
        (Point(1, 1, 0.5), Point(2, 2, -1), Point(3, 3, 0)),
        "3 points, labels divided by 10.",
    ),
    "whole numbers that are no classes": (
        "1,1,10\n1,1,20\n1,1,20\n1,1,40",
        (Point(1, 1, 0.25), Point(1, 1, 0.5), Point(1, 1, 0.5), Point(1, 1, 1)),
        "4 points, labels divided by 40.",
    ),
    "large labels": (
        "1.5,-2,1000001\n-3,0.25,1000002",
        TWO,
        "2 points, “1000001” orange and “1000002” blue.",
    ),
    "close labels": (
        "1.5,-2,0.1234567\n-3,0.25,.1234568",
        TWO,
        "2 points, “0.1234567” orange and “0.1234568” blue.",
    ),
    "one 0": ("1.5,-2,-0\n-3,0.25,0.0", (Point(1.5, -2, -1), Point(-3, 0.25, -1)), "2 points."),
    "a large divisor": (
        "1,1,0.5\n2,2,-10000005\n3,3,0",
        (Point(1, 1, 0), Point(2, 2, -1), Point(3, 3, 0)),
        "3 points, labels divided by 10000005.",
    ),
    "edges": ("-6,6,no\n6,-6,yes", (Point(-6, 6, -1), Point(6, -6, 1)), WORDS),
    "four digits": ("1.23456789,0,no\n0,0,yes", (Point(1.2346, 0, -1), Point(0, 0, 1)), WORDS),
    "hostile words": (
        "1.5,-2,<b>\n-3,0.25,</script>",
        (Point(1.5, -2, 1), Point(-3, 0.25, -1)),
        "2 points, “</script>” orange and “<b>” blue.",
    ),
}


@pytest.mark.parametrize("name", CSV)
def test_csv(name):
    text, points, said = CSV[name]
    assert from_csv(text) == (points, said)


@pytest.mark.parametrize(
    "text",
    [
        "0,0,a\n120,50,b\n60,100,a",
        "7,7,1",
        "7,0,1\n7,1,0",
        "1e99,0,1\n-1e99,0,0",
        "99999999999999999999e99,99999999999999999999e99,1\n0,0,0",
        "6.0001,0,1",
        "1e-99,1e-99,1\n7,1e-99,1",
    ],
)
def test_points_outside_the_plane_are_shifted_and_scaled(text):
    points, said = from_csv(text)
    assert said.endswith(" They were shifted and scaled to fit the plane.")
    check_points(points)
    read_points(write_points(points))
    places = np.array(points)[:, :2]
    given = np.array([[float(x) for x in line.split(",")[:2]] for line in text.splitlines()])
    with np.errstate(all="ignore"):
        ratio = np.ptp(places, axis=0) * np.ptp(given, axis=0)[::-1]  # both axes alike
    np.testing.assert_allclose(ratio[0], ratio[1], rtol=1e-3)


def test_shifted_points_fill_the_plane():
    points, _ = from_csv("0,0,a\n120,50,b\n60,100,a")
    assert points == (Point(-5.4, -4.5, -1), Point(5.4, 0, 1), Point(0, 4.5, -1))


HOSTILE_FILES = {
    "empty": ("", "The file holds no points. Each row needs x1, x2 and a label, such as 1.5,-2,1."),
    "blank": ("\n \r\n\t\n", "The file holds no points."),
    "only a header": ("x1,x2,label\n", "The file holds no points."),
    "two columns": ("1,2\n", "Line 1 needs x1, x2 and a label, such as 1.5,-2,1, not “1,2”."),
    "four columns": ("1,2,1\n1,2,3,4", "Line 2 needs"),
    "a word for a place": ("1,2,1\n1,b,1", "Line 2 needs x1, x2 and a label, such as 1.5,-2,1, not “1,b,1”."),
    "lines are counted in the file": ("x,y,z\n\n1,2,1\n\nNaN,2,1", "Line 5 needs"),
    "no label": ("1,2,1\n1,2,", "Line 2 needs"),
    "a blank label": ("1,2,1\n1,2,  ", "Line 2 needs"),
    "NaN": ("1,2,1\nnan,2,1", "Line 2 needs"),
    "infinity": ("1,2,1\n1,inf,1", "Line 2 needs"),
    "too huge": ("1,2,1\n1,1e999,1", "Line 2 needs"),
    "too many digits": ("1,2,1\n1," + "9" * 400 + ",1", "Line 2 needs"),
    "hexadecimal": ("1,2,1\n0x10,1,1", "Line 2 needs"),
    "underscores": ("1,2,1\n1_0,1,1", "Line 2 needs"),
    "digits of another script": ("1,2,1\n١,1,1", "Line 2 needs"),
    "three words": (
        "1,2,a\n1,2,b\n1,2,c",
        "The file has 3 classes (a, b, c). Keep the rows of two (−1 and 1, or 0 and 1), or give numbers to "
        "learn, such as 0.25 (regression).",
    ),
    "three classes in digits": (
        "1,2,0\n1,3,1\n1,4,2\n" * 5,
        "The file has 3 classes (0, 1, 2). Keep the rows",
    ),
    "three classes around 0": ("1,2,-1\n1,3,0\n1,4,1\n" * 2, "The file has 3 classes (-1, 0, 1). Keep"),
    "ten classes": (
        "".join(f"1,2,{i % 10}.0\n" for i in range(30)),
        "The file has 10 classes (0, 1, 2, …). Keep",
    ),
    "long names of classes": (
        "".join(f"1,2,{'abc'[i] * 99}\n" for i in range(3)),
        "The file has 3 classes (aaaaaaaaaaaa, bbbbbbbbbbbb, cccccccccccc). Keep",
    ),
    "words and numbers": ("1,2,a\n1,2,1\n1,2,2", "Line 1 has the label “a”; other lines have numbers."),
    "NaN as a label": ("1,2,1\n1,2,nan", "Line 2 has the label “nan”; other lines have numbers."),
    "a label that is missing": ("1,2,1\n1,2,-1\n\n1,2,?", "Line 4 has the label “?”; other lines"),
    "another separator": ("1,2,1\n1;2;1", "Line 2 needs"),
    "binary": ("\x00\x01\x02\ufffd\x7f" * 50, "The file holds no points."),
    "binary after a point": ("1,2,1\n\x00\x01,\ufffd,\x7f", "Line 2 needs"),
    "a picture": ("\ufffdPNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00", "Line"),
    "HTML": ("<html>\n<body onload=alert(1)>", "Line 2 needs"),
    "too large": ("1,2,1\n" * 200_000, "The file has 1,200,000 characters; at most 1,000,000 are read."),
    "too many rows": ("1,2,1\n" * 5001, "The file has 5,001 rows; at most 5,000 points are read."),
    "a huge field": ("1,2,1\n" + "x" * 200_000, "This is no CSV file: field larger than field limit"),
    "an open quote": ('1,2,1\n"1,2,1\n1,2,1', "Line 2 needs"),
    "long rows are cut": ("1,2,1\n" + "1," * 300, "Line 2 needs"),
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_what_holds_no_points_is_told_by_its_line(name):
    text, said = HOSTILE_FILES[name]
    with pytest.raises(PointsError) as raised:
        from_csv(text)
    assert str(raised.value).startswith(said), str(raised.value)
    assert len(str(raised.value)) < 180


def test_as_many_points_as_fit():
    points, said = from_csv("1,2,1\n" * MOST_OWN_POINTS)
    assert len(points) == MOST_OWN_POINTS
    assert said == "5,000 points."


fields = st.one_of(
    st.sampled_from(["1", "-2.5", "nan", "a", "", " ", '"', "1e50", "0", "x1"]), st.text(max_size=4)
)
rows = st.lists(fields, min_size=1, max_size=4).map(",".join)


@given(st.one_of(st.text(max_size=60), st.lists(rows, max_size=5).map("\n".join)))
@hypothesis_settings(max_examples=40)
def test_any_text_gives_points_or_a_sentence(text):
    try:
        points, said = from_csv(text)
    except PointsError:
        return
    check_points(points)
    assert said.endswith(".")
    assert read_points(write_points(points)) == points


# ---- addresses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("", ()),
        ("1,2,1", (Point(1, 2, 1),)),
        ("1.5,-2,-1_-3,0.25,1", TWO),
        ("1.5,-2,-1;-3,.25,1 ", TWO),
        ("_1.5,-2,-1__-3,0.25,1_", TWO),
        ("0.00001,1e-1,0.99999", (Point(0, 0.1, 1),)),
    ],
)
def test_the_text_of_an_address(text, points):
    assert read_points(text) == points


def test_the_text_of_points():
    assert write_points(()) == ""
    assert write_points((*TWO, Point(0.00004, 5.99999, 0.12345))) == "1.5,-2,-1_-3,0.25,1_0,6,0.1235"


HOSTILE_ADDRESSES = [
    "1", "1,2", "1,2,3,4", "a,b,c", ",,", "1,2,1_", "7,0,1", "0,-6.1,1", "0,0,1.1", "0,0,-2", "nan,0,1",
    "0,inf,1",
    "1e999,0,1", "1e-999,0,1", "0x1,0,1", "1_0,0,1,1", "٣,0,1", "1,2,1&1,2,1", "1,2,1" * 1000, "<script>",
    "\x00",
    "\ud800,1,1", "1,2,1_" * 5001, "9" * 100_000, "(1,2,1)", "1,2,True", "--1,2,1", "1,2,1/0",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE_ADDRESSES, ids=lambda text: ascii(text)[:20])
def test_text_that_is_no_points(text):
    if text == "1,2,1_":  # what a person leaves at the end does no harm
        assert read_points(text) == (Point(1, 2, 1),)
        return
    with pytest.raises(ValueError, match=re.compile(".?")):
        read_points(text)


SOME = tuple(Point(i, -i, 1) for i in range(4))


@pytest.mark.parametrize(
    ("after", "gone", "came"),
    [
        (SOME, [], ()),
        ((*SOME, *SOME[:2]), [], SOME[:2]),
        (SOME[:1] + SOME[2:], [1], ()),
        ((), [0, 1, 2, 3], ()),
        ((SOME[0], SOME[3], SOME[1]), [1, 2], (SOME[1],)),
        (TWO, [0, 1, 2, 3], TWO),
    ],
)
def test_the_difference_of_points(after, gone, came):
    assert difference(SOME, after) == (gone, came)
    assert after_difference(SOME, gone, came) == after


@given(*[st.lists(st.sampled_from(SOME), max_size=8).map(tuple)] * 2)
def test_any_difference_of_points(before, after):
    assert after_difference(before, *difference(before, after)) == after


def test_a_difference_of_other_points():
    for gone in ([4], [-1], ["0"], [None]):
        with pytest.raises(ValueError, match=re.escape(str(gone))):
            after_difference(SOME, gone, ())
    with pytest.raises(ValueError, match="5001 points"):
        after_difference(SOME, [], SOME[:1] * 4997)


@pytest.mark.parametrize("bad", [(7, 0, 1), (0, 0, 2), (float("nan"), 0, 1), (0, float("inf"), 1)])
def test_points_are_checked(bad):
    check_points(TWO)
    with pytest.raises(ValueError, match="3 points"):
        check_points((*TWO, Point(*bad)))
    with pytest.raises(ValueError, match="5001 points"):
        check_points(TWO[:1] * 5001)
