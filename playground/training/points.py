"""Points to learn from: those that are made, and those that a person paints or uploads."""

from __future__ import annotations

import csv
import math
import re
from typing import NamedTuple

import numpy as np

from needle.data import toy

from .numerals import decimal, is_decimal

__all__ = [
    "MAKERS",
    "MOST_OWN_POINTS",
    "Point",
    "PointsError",
    "after_difference",
    "check_points",
    "difference",
    "from_csv",
    "read_points",
    "write_points",
]

#: What makes the points of each data set, by its name: those with classes, and then those with numbers.
MAKERS = {**toy.DATASETS, **toy.REGRESSION}

MOST_OWN_POINTS = 5000
MOST_BYTES = 1_000_000
#: So many different whole numbers, and on average so many points with each, look like classes.
_MOST_CLASSES = 20
_FEWEST_OF_A_CLASS = 2
_LONGEST_LABEL = 12  # in a message


class Point(NamedTuple):
    """A point of the plane, and its label: +1 or −1, or a number between for regression."""

    x1: float
    x2: float
    label: float


class PointsError(ValueError):
    """A file that holds no points."""


def read_points(text: str) -> tuple[Point, ...]:
    """Points as the page's address has them: ``1,2,1_-3,0.5,-1``. ValueError if these are none."""
    words = [word for word in re.split(r"[_\s;]+", text.strip()) if word]
    if len(words) > MOST_OWN_POINTS:
        raise ValueError(text)
    points = []
    for word in words:
        x1, x2, label = (round(decimal(part), 4) for part in word.split(","))
        points.append(Point(x1, x2, label))
    check_points(tuple(points))
    return tuple(points)


def check_points(points: tuple[Point, ...]) -> None:
    """Raise ValueError if these are too many, or if one lies outside the plane or the labels -1 to 1."""
    low, high = toy.DOMAIN
    numbers = np.array(points, dtype=float).reshape(-1, 3)
    fits = np.all((low <= numbers[:, :2]) & (numbers[:, :2] <= high)) and np.all(np.abs(numbers[:, 2]) <= 1)
    if len(points) > MOST_OWN_POINTS or not fits:
        raise ValueError(f"{len(points)} points")


def write_points(points: tuple[Point, ...]) -> str:
    """The text that `read_points` reads."""
    return "_".join(",".join(f"{round(number, 4):g}" for number in point) for point in points)


def difference(before: tuple[Point, ...], after: tuple[Point, ...]) -> tuple[list[int], tuple[Point, ...]]:
    """The places of the points that went, counted from 0, and the points that came behind the others."""
    gone, stayed = [], 0
    for place, point in enumerate(before):
        if stayed < len(after) and point == after[stayed]:
            stayed += 1
        else:
            gone.append(place)
    return gone, after[stayed:]


def after_difference(
    before: tuple[Point, ...], gone: list[int], came: tuple[Point, ...]
) -> tuple[Point, ...]:
    """The points after a `difference`. ValueError if it is not one of these points, or leaves too many."""
    places = set(gone)
    if not places <= set(range(len(before))):
        raise ValueError(gone)
    after = (*(point for place, point in enumerate(before) if place not in places), *came)
    if len(after) > MOST_OWN_POINTS:
        raise ValueError(f"{len(after)} points")
    return after


def from_csv(text: str) -> tuple[tuple[Point, ...], str]:
    """The points in a CSV file: x1, x2 and a label in each row; a first row of names is skipped.

    Two different labels become −1 and +1, in their order. More than two must be numbers, and not just a few
    whole ones, as of classes; they are scaled so that the largest size is 1. Coordinates that don't fit the
    plane are shifted and scaled, both alike.

    Returns
    -------
    tuple
        The points, and a sentence that says what was made of the file.

    Raises
    ------
    PointsError
        If the file is too large, or a row holds no point. The message names the line.
    """
    if len(text) > MOST_BYTES:
        raise PointsError(f"The file has {len(text):,} characters; at most {MOST_BYTES:,} are read.")
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")  # by which some programs mark UTF-8
    dialect = next((sign for sign in (",", ";", "\t") if sign in text.partition("\n")[0]), ",")
    try:
        rows = [
            (line, row)
            for line, row in enumerate(csv.reader(text.splitlines(), delimiter=dialect), 1)
            if any(word.strip() for word in row)
        ]
    except csv.Error as error:
        raise PointsError(f"This is no CSV file: {error}.") from None
    if rows and not is_decimal(rows[0][1][0]):
        del rows[0]
    if not rows:
        raise PointsError("The file holds no points. Each row needs x1, x2 and a label, such as 1.5,-2,1.")
    if len(rows) > MOST_OWN_POINTS:
        raise PointsError(f"The file has {len(rows):,} rows; at most {MOST_OWN_POINTS:,} points are read.")
    places, labels = [], []
    for line, row in rows:
        if len(row) != 3 or not all(map(is_decimal, row[:2])) or not row[2].strip():
            shown = ",".join(row)[:40]
            raise PointsError(f"Line {line} needs x1, x2 and a label, such as 1.5,-2,1, not “{shown}”.")
        places.append([float(row[0]), float(row[1])])
        labels.append(row[2].strip())
    numbers = [is_decimal(label) for label in labels]
    if any(numbers) and not all(numbers):  # such as nan or ? for a label that is missing
        line, row = rows[numbers.index(False)]
        label = row[2].strip()
        raise PointsError(
            f"Line {line} has the label “{label:.20}”; other lines have numbers. Make them alike."
        )
    if all(numbers):
        labels = [_shortest(float(label)) for label in labels]  # 1 and 1.0 are the same label
    places, note = _fitted(places)
    values, classes = _labels(labels)
    points = tuple(
        Point(round(x1, 4), round(x2, 4), round(label, 4))
        for (x1, x2), label in zip(places, values, strict=True)
    )
    count = "1 point" if len(points) == 1 else f"{len(points):,} points"
    return points, f"{count}{classes}.{note}"


def _shortest(number: float) -> str:
    """The shortest text that is this number and no other: 1, 0.5, 1e+20. There is one 0."""
    return repr(number + 0.0).removesuffix(".0")


def _labels(labels: list[str]) -> tuple[list[float], str]:
    kinds = sorted(set(labels), key=lambda x: (float(x), x) if is_decimal(x) else (math.inf, x))
    if len(kinds) <= 2:
        low = kinds[0]
        if len(kinds) == 1:
            sign = -1.0 if is_decimal(low) and float(low) <= 0 else 1.0
            return [sign] * len(labels), ""
        return [
            -1.0 if x == low else 1.0 for x in labels
        ], f", “{kinds[0][:20]}” orange and “{kinds[1][:20]}” blue"
    if not all(map(is_decimal, kinds)) or _are_classes(kinds, labels):
        names = ", ".join(kind[:_LONGEST_LABEL] for kind in kinds[:3]) + (", …" if kinds[3:] else "")
        raise PointsError(
            f"The file has {len(kinds):,} classes ({names}). Keep the rows of two (−1 and 1, or 0 and 1), or "
            "give numbers to learn, such as 0.25 (regression)."
        )
    values = [float(x) for x in labels]
    largest = max(1.0, *map(abs, values))
    return [x / largest for x in values], f", labels divided by {_shortest(largest)}" if largest > 1 else ""


def _are_classes(kinds: list[str], labels: list[str]) -> bool:
    """Whether labels count classes: a few whole numbers, and each comes often."""
    are_whole = all(float(kind).is_integer() for kind in kinds)
    return are_whole and len(kinds) <= _MOST_CLASSES and len(labels) >= _FEWEST_OF_A_CLASS * len(kinds)


def _fitted(places: list[list[float]]) -> tuple[list[list[float]], str]:
    low, high = toy.DOMAIN
    if all(low <= x <= high for place in places for x in place):
        return places, ""
    lows, highs = ([f(column) for column in zip(*places, strict=True)] for f in (min, max))
    middle = [(a + b) / 2 for a, b in zip(lows, highs, strict=True)]
    scale = 0.9 * high / (max(b - m for b, m in zip(highs, middle, strict=True)) or 1.0)
    moved = [[(x - m) * scale for x, m in zip(place, middle, strict=True)] for place in places]
    return moved, " They were shifted and scaled to fit the plane."
