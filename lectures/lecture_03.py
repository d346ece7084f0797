"""Lecture 03, a first classifier: what its exercises ask for, the usual mistakes in them, its predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .checking import Case, Lecture, arrays, case, drawn

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


# --- The lecture's points -----------------------------------------------------------------------------------


def bananas() -> tuple[np.ndarray, np.ndarray]:
    """How yellow and how soft sixty bananas are, and which were good (1) or not (-1)."""
    points = np.random.default_rng(3).uniform(0, 1, (400, 2))
    scores = 2 * points[:, 0] - points[:, 1] - 0.4
    clear = abs(scores) > 0.12
    return points[clear][:60], np.where(scores[clear][:60] > 0, 1.0, -1.0)


def lamp() -> tuple[np.ndarray, np.ndarray]:
    """Sixty times: how two switches stood, and whether the lamp between them was on (1) or not (-1)."""
    corners = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 15, axis=0)
    points = 0.15 + 0.7 * corners + np.random.default_rng(1).normal(0, 0.06, corners.shape)
    return points.clip(0, 1), np.repeat([-1.0, 1.0, 1.0, -1.0], 15)


# --- The lecture's pictures ---------------------------------------------------------------------------------


def plane(
    ax: Any,
    points: np.ndarray,
    labels: np.ndarray,
    score: Callable[[np.ndarray], np.ndarray] | None = None,
    title: str = "",
    names: Sequence[str] = ("x1", "x2"),
) -> Any:
    """Draw points; and blue ground where a score is positive, orange where it is negative."""
    if score is not None:
        x, y = np.meshgrid(np.linspace(-0.1, 1.1, 61), np.linspace(-0.1, 1.1, 61))
        scores = score(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
        ax.contourf(x, y, scores, levels=[-1e9, 0, 1e9], colors=["#FFE3BF", "#CFE0FD"])
    ax.plot(*points[labels > 0].T, "o", color="#1D5FD1", markersize=5)
    ax.plot(*points[labels < 0].T, "s", color="#B45309", markersize=5)
    ax.set(xlabel=names[0], ylabel=names[1], xlim=(-0.1, 1.1), ylim=(-0.1, 1.1), aspect="equal")
    ax.set_title(title, loc="left", weight="bold")
    return ax


def over_margins(ax: Any, margins: np.ndarray, losses: np.ndarray) -> Any:
    """Draw the loss of one point over its margin, and its error, which jumps."""
    ax.plot(margins, losses, color="#0B7A53", label="loss")
    ax.plot([margins[0], 0, 0, margins[-1]], [1, 1, 0, 0], "--", color="#475467", label="error")
    ax.plot(0, np.log(2), "o", color="#0B7A53")
    ax.set(xlabel="margin", ylim=(-0.1, None))
    ax.grid(axis="y")
    ax.legend(frameon=False, fontsize=9)
    ax.set_title("Loss and error of one point", loc="left", weight="bold")
    return ax


# --- What is drawn ------------------------------------------------------------------------------------------

WEIGHTS = (2.0, -1.0, 3.0, 0.5, -2.0, 0.0)
BIASES = (0.5, -3.0, 2.0, 0.0)
#: Points: also two, so that rows and columns can be mistaken, and one.
points_drawn = arrays([(3, 2), (2, 2), (4, 2), (1, 2)], ["signed", "irregular", "counted", "zeros"])
lines_drawn = st.tuples(*map(st.sampled_from, (WEIGHTS, WEIGHTS, BIASES)))
THREE_POINTS = np.array([[0.0, 1.0], [0.5, 0.25], [1.0, 0.5]])
LABELS = np.array([1.0, -1.0, 1.0])
SOME_LABELS = ([1, -1, 1, -1], [-1, -1, 1, 1], [1, 1, 1, 1], [-1, -1, -1, -1], [-1, 1, 1, 1])


def labelled(parts: tuple[np.ndarray, list[int], tuple[float, float, float]]) -> Case:
    """A case of points, as many labels, and a line."""
    points, labels, line = parts
    return case(points, np.array(labels[: len(points)], dtype=float), *line)


def judged(parts: Sequence[tuple[float, float]]) -> Case:
    """A case of labels and scores, a pair for each point."""
    labels, scores = np.array(parts).T.copy()
    return case(labels, scores)


# --- 1 The score of a line ----------------------------------------------------------------------------------


@lecture.exercise(
    case(THREE_POINTS, 2.0, -1.0, 0.5),
    draws=drawn(points_drawn, WEIGHTS, WEIGHTS, BIASES),
    otherwise="Take one point, say (0.5, 0.25), and compute w1 · x1 + w2 · x2 + b by hand. Then let NumPy do it "
    "for whole columns.",
)
def score(points, w1, w2, b):
    return w1 * points[:, 0] + w2 * points[:, 1] + b


# --- 2 Errors -----------------------------------------------------------------------------------------------


@lecture.exercise(
    judged([(1, 2), (1, -0.5), (-1, 0.25), (-1, -3), (-1, 1), (1, 0.1), (1, 4), (1, 0.5)]),
    draws=st.lists(
        st.sampled_from(
            [(1.0, 2.0), (1, -2), (-1, 0.5), (-1, -3), (-1, 0), (1, 0), (1, 0.001), (-1, 40), (1, 1)]
        ),
        min_size=1,
        max_size=5,
    ).map(judged),
    otherwise="A point is wrong if its score is positive and its label is not, or the other way round.",
)
def errors(labels, scores):
    return int(np.sum((scores > 0) != (labels > 0)))


# --- 3 The loss of a line -----------------------------------------------------------------------------------

line_score = score.right


@lecture.exercise(
    case(THREE_POINTS, LABELS, 2.0, -1.0, 0.5),
    draws=st.tuples(points_drawn, st.sampled_from(SOME_LABELS), lines_drawn).map(labelled),
    otherwise="First the margins, label times score. Then log(1 + exp(-margin)) of each. Then their mean.",
)
def loss(points, labels, w1, w2, b):
    margins = labels * line_score(points, w1, w2, b)
    return np.log(1 + np.exp(-margins)).mean()


# --- 4 Two lines and a ReLU ---------------------------------------------------------------------------------


@lecture.exercise(
    # these are not the lines of the lecture: what comes out there is a prediction
    case(np.array([[0.0, 0.5], [0.5, 1.0], [1.0, 0.25]]), (2.0, 1.0, -1.0), (-1.0, 2.0, 0.25)),
    draws=drawn(points_drawn, lines_drawn, lines_drawn),
    otherwise="Get the score of all points for each of the two lines, replace what is below 0 by 0, and put the "
    "two results side by side as columns.",
)
def hidden(points, line1, line2):
    h1 = np.maximum(0, line_score(points, *line1))
    h2 = np.maximum(0, line_score(points, *line2))
    return np.column_stack([h1, h2])
