"""Lecture 03, a first classifier: what its exercises ask for, the usual mistakes in them, its predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checking import Lecture, given

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


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


# --- The points of the cases --------------------------------------------------------------------------------


def three_points() -> dict[str, Any]:
    """Three points with their labels, and a line that has one of them on the wrong side."""
    points = np.array([[0.0, 1.0], [0.5, 0.25], [1.0, 0.5]])
    return {"points": points, "labels": np.array([1.0, -1.0, 1.0]), "w1": 2.0, "w2": -1.0, "b": 0.5}


def two_points() -> dict[str, Any]:
    """As many points as coordinates, so that rows and columns can be mistaken."""
    points = np.array([[0.25, 1.0], [0.75, 0.0]])
    return {"points": points, "labels": np.array([-1.0, 1.0]), "w1": -1.0, "w2": 3.0, "b": -0.5}


def some_scores() -> dict[str, Any]:
    """A mistake on either side: one blue point is taken for orange, and two orange ones for blue."""
    return {
        "labels": np.array([1.0, 1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0]),
        "scores": np.array([2.0, -0.5, 0.25, -3.0, 1.0, 0.1, 4.0, 0.5]),
    }


def all_right() -> dict[str, Any]:
    """No mistake."""
    return {"labels": np.array([1.0, -1.0]), "scores": np.array([0.2, -7.0])}


def on_the_line() -> dict[str, Any]:
    """Points that a line says nothing about."""
    return {"labels": np.array([-1.0, -1.0, 1.0]), "scores": np.zeros(3)}


# --- 1 The score of a line ----------------------------------------------------------------------------------

LINE = ("points", "w1", "w2", "b")


@lecture.exercise(
    given(three_points, *LINE),
    given(two_points, *LINE),
    otherwise=(
        "Take one point, say (0.5, 0.25), and compute w1 · x1 + w2 · x2 + b by hand. Then let NumPy do it "
        "for whole columns."
    ),
)
def score(points, w1, w2, b):
    """w1 · x1 + w2 · x2 + b of each point."""
    return points @ np.array([w1, w2]) + b


@score.mistake(
    "A point has as many coordinates as there are weights, so the points come first: `points @ [w1, w2]`."
)
def weights_first(points, w1, w2, b):
    return np.dot([w1, w2], points) + b


@score.mistake("The last summand is missing: without `+ b`, every line goes through the corner (0, 0).")
def without_b(points, w1, w2, b):
    return w1 * points[:, 0] + w2 * points[:, 1]


@score.mistake("The weights are swapped: `w1` belongs to the first coordinate, `points[:, 0]`.")
def swapped(points, w1, w2, b):
    return w2 * points[:, 0] + w1 * points[:, 1] + b


@score.mistake(
    "`points[0]` is the first *point*. You want the first coordinate of all points, a column: `points[:, 0]`."
)
def rows_for_columns(points, w1, w2, b):
    return w1 * points[0] + w2 * points[1] + b


@score.mistake("This is the decision. The score is the number itself, before anybody asks for its sign.")
def decision(points, w1, w2, b):
    return points @ np.array([w1, w2]) + b > 0


@score.mistake("This is the sign of the score. The score itself also says how far a point is from the line.")
def sign(points, w1, w2, b):
    return np.sign(points @ np.array([w1, w2]) + b)


@score.mistake(
    "You have more than one number in a row. Each point has one score, so the shape is (n,), not (n, 1)."
)
def in_a_column(points, w1, w2, b):
    return points @ np.array([[w1], [w2]]) + b


@score.mistake(
    "`points` has n rows, one for each point, so it does not fall into x1 and x2. Take its two columns: "
    "`points[:, 0]` and `points[:, 1]`."
)
def rows_unpacked(points, w1, w2, b):
    x1, x2 = points
    return w1 * x1 + w2 * x2 + b


@score.mistake("You still have two numbers for each point. Add them up, and then add b once.")
def not_added_up(points, w1, w2, b):
    return points * np.array([w1, w2]) + b


@score.mistake("b is in it twice: you add it to each of the two products, and then add these up.")
def b_twice(points, w1, w2, b):
    return (points * np.array([w1, w2]) + b).sum(axis=1)


@score.mistake("This is one number for all points together. Add up along each row: `axis=1`.")
def all_in_one(points, w1, w2, b):
    return (points * np.array([w1, w2])).sum() + b


@score.mistake("This is the score of the first point. Does the function return before the loop has ended?")
def first_point_alone(points, w1, w2, b):
    return float(points[0] @ np.array([w1, w2]) + b)


@score.mistake(
    "Python counts from 0: the first coordinate is `points[:, 0]`, and the second is `points[:, 1]`."
)
def counted_from_one(points, w1, w2, b):
    return w1 * points[:, 1] + w2 * points[:, 2] + b


@score.mistake("The numbers are right, but they are in a Python list. Make an array of it: `np.array(…)`.")
def as_list(points, w1, w2, b):
    return [float(w1 * x1 + w2 * x2 + b) for x1, x2 in points]


@score.mistake("You subtract b. Here it is added: w1 · x1 + w2 · x2 + b.")
def minus_b(points, w1, w2, b):
    return points @ np.array([w1, w2]) - b


# --- 2 Errors -----------------------------------------------------------------------------------------------


@lecture.exercise(
    given(some_scores, "labels", "scores"),
    given(all_right, "labels", "scores"),
    given(on_the_line, "labels", "scores"),
    otherwise="A point is wrong if its score is positive and its label is not, or the other way round.",
)
def errors(labels, scores):
    """How many points are on the wrong side."""
    pairs = zip(labels.tolist(), scores.tolist(), strict=True)
    return sum((value > 0) != (label > 0) for label, value in pairs)


@errors.mistake("You count the points that are right. Count the others.")
def counted_right(labels, scores):
    return int(((scores > 0) == (labels > 0)).sum())


@errors.mistake("This is the share. The exercise asks how many.")
def share(labels, scores):
    return float(((scores > 0) != (labels > 0)).mean())


@errors.mistake(
    "Scores are hardly ever equal to a label. Compare their signs: `scores > 0` with `labels > 0`."
)
def compared_with_labels(labels, scores):
    return int((scores != labels).sum())


@errors.mistake(
    "You count the orange points that are taken for blue. Blue ones can be taken for orange, too."
)
def false_blue_only(labels, scores):
    return int(((scores > 0) & (labels < 0)).sum())


@errors.mistake(
    "You count the blue points that are taken for orange. Orange ones can be taken for blue, too."
)
def false_orange_only(labels, scores):
    return int(((scores < 0) & (labels > 0)).sum())


@errors.mistake(
    "A score of exactly 0 says orange, so for an orange point it is right. You count it as an error."
)
def zero_always_wrong(labels, scores):
    return int((np.sign(scores) != labels).sum())


@errors.mistake("A score of exactly 0 says orange, so a blue point with this score is an error, too.")
def zero_never_wrong(labels, scores):
    return int((labels * scores < 0).sum())


@errors.mistake("A score of exactly 0 says orange. With `>=`, yours says blue.")
def zero_is_blue(labels, scores):
    return int(((scores >= 0) != (labels > 0)).sum())


@errors.mistake(
    "`scores > 0` is True or False, and labels are 1 or -1, so an orange label equals neither. Ask both the "
    "same: `labels > 0`."
)
def signs_with_labels(labels, scores):
    return int((labels != (scores > 0)).sum())


@errors.mistake("You look at the first point only. Is the `return` indented too far, into the loop?")
def first_point_only(labels, scores):
    return int((scores[0] > 0) != (labels[0] > 0))


@errors.mistake("You stop at the first error. Is the `return` indented too far, into the `if`?")
def stopped_at_the_first(labels, scores):
    for label, value in zip(labels, scores, strict=True):
        if (value > 0) != (label > 0):
            return 1
    return None


@errors.mistake(
    "You count the blue points that are right. If you wrote `… > 0 != … > 0`: Python reads that as a chain "
    "of three comparisons. Put brackets around the two on the outside."
)
def chained(labels, scores):
    return int(((scores > 0) & (labels > 0)).sum())


@errors.mistake(
    "`if`, `and` and `or` take a single True or False, and this is a whole array of them. Go through the "
    "points in a loop, or compare two arrays of signs with `!=`."
)
def array_as_truth(labels, scores):
    return int(bool(scores > 0) and bool(labels < 0))


@errors.mistake("These are the wrong points themselves, as True and False. How many times True?")
def not_counted(labels, scores):
    return (scores > 0) != (labels > 0)


# --- 3 The loss of a line -----------------------------------------------------------------------------------


@lecture.exercise(
    given(three_points, "points", "labels", "w1", "w2", "b"),
    given(two_points, "points", "labels", "w1", "w2", "b"),
    otherwise="First the margins, label times score. Then log(1 + exp(-margin)) of each. Then their mean.",
)
def loss(points, labels, w1, w2, b):
    """The mean of log(1 + exp(-margin))."""
    return float(np.logaddexp(0.0, -labels * score.right(points, w1, w2, b)).mean())


def _margins(points, labels, w1, w2, b):
    return labels * score.right(points, w1, w2, b)


@loss.mistake(
    "This is the sum over all points. Take the mean, so that the loss does not grow with their number."
)
def summed(points, labels, w1, w2, b):
    return np.log1p(np.exp(-_margins(points, labels, w1, w2, b))).sum()


@loss.mistake("The sign is wrong: a large positive margin is good, so it needs exp(-margin).")
def sign_forgotten(points, labels, w1, w2, b):
    return np.log1p(np.exp(_margins(points, labels, w1, w2, b))).mean()


@loss.mistake(
    "The labels have no part in this, so it does not matter which colour a point has. The margin is label "
    "times score."
)
def labels_forgotten(points, labels, w1, w2, b):
    return np.log1p(np.exp(-score.right(points, w1, w2, b))).mean()


@loss.mistake("This is one loss for each point. A line has one loss: the mean of them.")
def not_averaged(points, labels, w1, w2, b):
    return np.log1p(np.exp(-_margins(points, labels, w1, w2, b)))


@loss.mistake(
    "The logarithm is missing: exp(-margin) alone explodes if one single point is far on the wrong side."
)
def without_log(points, labels, w1, w2, b):
    return np.exp(-_margins(points, labels, w1, w2, b)).mean()


@loss.mistake("The 1 is missing: log(exp(-margin)) is only -margin, and that has no bottom.")
def without_one(points, labels, w1, w2, b):
    return -_margins(points, labels, w1, w2, b).mean()


@loss.mistake(
    "You take the mean of the margins, and then one loss of it. First the loss of each point, then the mean."
)
def mean_of_margins(points, labels, w1, w2, b):
    return float(np.log1p(np.exp(-_margins(points, labels, w1, w2, b).mean())))


@loss.mistake(
    "You take the mean before the logarithm. The log of a mean is not the mean of the logs: first "
    "log(1 + exp(-margin)) of each point."
)
def mean_before_log(points, labels, w1, w2, b):
    return float(np.log((1 + np.exp(-_margins(points, labels, w1, w2, b))).mean()))


@loss.mistake("`math.exp` and `math.log` take a single number. For a whole array: `np.exp` and `np.log`.")
def with_math(points, labels, w1, w2, b):
    return math.exp(-_margins(points, labels, w1, w2, b))


@loss.mistake("The margin is label *times* score. You subtract one from the other.")
def label_minus_score(points, labels, w1, w2, b):
    return np.log1p(np.exp(-(labels - score.right(points, w1, w2, b)))).mean()


@loss.mistake("This is the logarithm to another base. Here it is the natural one: `np.log`.")
def other_base(points, labels, w1, w2, b):
    return np.log10(1 + np.exp(-_margins(points, labels, w1, w2, b))).mean()


@loss.mistake(
    "This is the share of wrong points. It stays the same if the line moves a little; the loss must not."
)
def share_of_errors(points, labels, w1, w2, b):
    return (_margins(points, labels, w1, w2, b) < 0).mean()


# --- 4 Two lines and a ReLU ---------------------------------------------------------------------------------


def two_lines() -> dict[str, Any]:
    """Three points, and two lines that are not those of the lecture: what comes out there is a prediction."""
    points = np.array([[0.0, 0.5], [0.5, 1.0], [1.0, 0.25]])
    return {"points": points, "line1": (2.0, 1.0, -1.0), "line2": (-1.0, 2.0, 0.25)}


def other_lines() -> dict[str, Any]:
    """Two points, and lines that do not go through a corner."""
    points = np.array([[0.5, 0.25], [-1.0, 0.5]])
    return {"points": points, "line1": (1.0, 2.0, -0.5), "line2": (-2.0, -4.0, 0.25)}


def _scores(points, line1, line2):
    return [points @ np.array(line[:2]) + line[2] for line in (line1, line2)]


@lecture.exercise(
    given(two_lines, "points", "line1", "line2"),
    given(other_lines, "points", "line1", "line2"),
    otherwise=(
        "Get the score of all points for each of the two lines, replace what is below 0 by 0, and put the "
        "two results side by side as columns."
    ),
)
def hidden(points, line1, line2):
    """The two hidden coordinates of each point, by one product of matrices."""
    lines = np.array([line1, line2])
    return np.clip(points @ lines[:, :2].T + lines[:, 2], 0.0, None)


@hidden.mistake(
    "A line is three numbers, and a point is two. `line_score(points, *line1)` gives the bias its own place."
)
def points_times_line(points, line1, line2):
    return np.maximum(0, points @ np.array(line1))


@hidden.mistake(
    "`np.column_stack` takes both in one list, with square brackets: `np.column_stack([h1, h2])`."
)
def stacked_without_a_list(points, line1, line2):
    return np.column_stack(*_scores(points, line1, line2))


@hidden.mistake("You add up the two scores. Each line gets a ReLU and a column of its own.")
def scores_added(points, line1, line2):
    return np.maximum(0, sum(_scores(points, line1, line2)))


@hidden.mistake("The second line gets h1 where it needs the points: both lines look at the same points.")
def one_behind_the_other(points, line1, line2):
    h1 = np.maximum(0, _scores(points, line1, line2)[0])
    return h1[:, 0]


@hidden.mistake("The ReLU is missing: these are the two scores, and some are negative. Cut them off at 0.")
def without_relu(points, line1, line2):
    return np.column_stack(_scores(points, line1, line2))


@hidden.mistake("The two results stand one above the other. Each should be a column: one row for each point.")
def as_rows(points, line1, line2):
    return np.maximum(0, np.stack(_scores(points, line1, line2)))


@hidden.mistake(
    "Python's `max` and `if` take single numbers, and these are arrays. The ReLU of an array is "
    "`np.maximum(0, a)`."
)
def python_max(points, line1, line2):
    return [max(0, scores) for scores in _scores(points, line1, line2)]


@hidden.mistake(
    "`np.max` looks for the largest number in one array. To compare each number with 0, use `np.maximum`."
)
def largest(points, line1, line2):
    return np.max(0, _scores(points, line1, line2)[0])


@hidden.mistake("The numbers are right, but they are in Python lists. Make an array of them: `np.array(…)`.")
def as_lists(points, line1, line2):
    return np.maximum(0, np.column_stack(_scores(points, line1, line2))).tolist()


@hidden.mistake("Here is h1 alone. Each point has two new coordinates: a column for h1, and one for h2.")
def first_line_only(points, line1, line2):
    return np.maximum(0, _scores(points, line1, line2)[0])


@hidden.mistake(
    "`reshape` deals the numbers out row by row, so h1 and h2 get mixed. Turn rows into columns with "
    "`.T`, or use `np.column_stack`."
)
def reshaped(points, line1, line2):
    return np.maximum(0, np.array(_scores(points, line1, line2))).reshape(-1, 2)


@hidden.mistake("You give back two arrays. Put them side by side, as columns: `np.column_stack([h1, h2])`.")
def two_arrays(points, line1, line2):
    return tuple(np.maximum(0, scores) for scores in _scores(points, line1, line2))


@hidden.mistake(
    "You put h2 behind h1, in one long row. Side by side, as columns: `np.column_stack([h1, h2])`."
)
def end_to_end(points, line1, line2):
    return np.maximum(0, np.concatenate(_scores(points, line1, line2)))


@hidden.mistake(
    "`line_score` wants w1, w2 and b, and `line1` is all three in one. A star takes them out: "
    "`line_score(points, *line1)`."
)
def without_the_star(points, line1, line2):
    return score.right(points, line1)


@hidden.mistake("Only one ReLU is left: you add up the two. Each is a column of its own.")
def added_up(points, line1, line2):
    return sum(np.maximum(0, scores) for scores in _scores(points, line1, line2))


@hidden.mistake("You keep what is below 0. The ReLU keeps what is above: `np.maximum(0, …)`.")
def minimum(points, line1, line2):
    return np.minimum(0, np.column_stack(_scores(points, line1, line2)))


@hidden.mistake("You turn negative scores into positive ones. The ReLU makes them 0.")
def absolute(points, line1, line2):
    return abs(np.column_stack(_scores(points, line1, line2)))


@hidden.mistake("Both columns come from the first line. The second column belongs to `line2`.")
def first_line_twice(points, line1, line2):
    return np.maximum(0, np.column_stack(_scores(points, line1, line1)))


@hidden.mistake("Your columns are in the other order: first h1, which comes from `line1`.")
def other_order(points, line1, line2):
    return np.maximum(0, np.column_stack(_scores(points, line2, line1)))


@hidden.mistake(
    "This says only on which side of each line a point is. The ReLU also keeps how far it is from there."
)
def sides(points, line1, line2):
    return (np.column_stack(_scores(points, line1, line2)) > 0).astype(float)
