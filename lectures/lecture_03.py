"""Lecture 03, a first classifier: what its exercises ask for, the usual mistakes in them, its predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .checking import Case, Lecture, arrays, case, drawn

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


SUM = "w1 * points[:, 0] + w2 * points[:, 1] + b"
COLUMNS = (
    "`points` has n rows, one for each point, so it does not fall into x1 and x2. Take its two columns: "
    "`points[:, 0]` and `points[:, 1]`."
)
score.slip(
    "A point has as many coordinates as there are weights, so the points come first: `points @ [w1, w2]`.",
    *(SUM, "np.dot([w1, w2], points) + b"),
)
score.slip(
    "The last summand is missing: without `+ b`, every line goes through the corner (0, 0).", " + b", ""
)
score.slip(
    "The weights are swapped: `w1` belongs to the first coordinate, `points[:, 0]`.",
    *(SUM, "w2 * points[:, 0] + w1 * points[:, 1] + b"),
)
score.slip(
    "`points[0]` is the first *point*. You want the first coordinate of all points, a column: `points[:, 0]`.",
    *(SUM, "w1 * points[0] + w2 * points[1] + b"),
)
score.slip(
    "This is the decision. The score is the number itself, before anybody asks for its sign.",
    "+ b",
    "+ b > 0",
)
score.slip(COLUMNS, ("return " + SUM, "x1, x2 = points\n    return w1 * x1 + w2 * x2 + b"))
score.slip(
    "You still have two numbers for each point. Add them up, and then add b once.",
    SUM,
    "points * [w1, w2] + b",
)
score.slip(
    "This is one number for all points together. Add up along each row: `axis=1`.",
    *(SUM, "(points * [w1, w2]).sum() + b"),
)
score.slip(
    "This is the score of the first point. Does the function return before the loop has ended?",
    *(SUM, f"float(({SUM})[0])"),
)
score.slip("You subtract b. Here it is added: w1 · x1 + w2 · x2 + b.", "+ b", "- b")


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


WRONG = "(scores > 0) != (labels > 0)"
errors.slip("You count the points that are right. Count the others.", "!=", "==")
errors.slip("This is the share. The exercise asks how many.", "int(np.sum", "float(np.mean")
errors.slip(
    "Scores are hardly ever equal to a label. Compare their signs: `scores > 0` with `labels > 0`.",
    *(WRONG, "scores != labels"),
)
errors.slip(
    "You count the orange points that are taken for blue. Blue ones can be taken for orange, too.",
    *(WRONG, "(scores > 0) & (labels < 0)"),
)
errors.slip(
    "You count the blue points that are taken for orange. Orange ones can be taken for blue, too.",
    *(WRONG, "(scores <= 0) & (labels > 0)"),
)
errors.slip(
    "A score of exactly 0 says orange, so for an orange point it is right. You count it as an error.",
    *(WRONG, "np.sign(scores) != labels"),
)
errors.slip(
    "A score of exactly 0 says orange, so a blue point with this score is an error, too.",
    *(WRONG, "labels * scores < 0"),
)
errors.slip("A score of exactly 0 says orange. With `>=`, yours says blue.", "scores >", "scores >=")
errors.slip(
    "You add up the distances of the signs. Where the score is 0, its sign is 0, and that is half an error.",
    *(f"np.sum({WRONG})", "np.abs(labels - np.sign(scores)).sum() // 2"),
)
errors.slip(
    "`scores > 0` is True or False, and labels are 1 or -1, so an orange label equals neither. Ask both the "
    "same: `labels > 0`.",
    *("(labels > 0)", "labels"),
)
errors.slip(
    "You stop at the first error. Is the `return` indented too far, into the `if`?",
    *(f"int(np.sum({WRONG}))", f"1 if np.any({WRONG}) else None"),
)
errors.slip(
    "You count the blue points that are right. If you wrote `… > 0 != … > 0`: Python reads that as a chain "
    "of three comparisons. Put brackets around the two on the outside.",
    *(WRONG, "(scores > 0) & (labels > 0)"),
)
errors.slip(
    "`if`, `and` and `or` take a single True or False, and this is a whole array of them. Go through the "
    "points in a loop, or compare two arrays of signs with `!=`.",
    *(WRONG, "scores > 0 and labels < 0"),
)
errors.slip(
    "These are the wrong points themselves, as True and False. How many times True?",
    f"int(np.sum({WRONG}))",
    WRONG,
)


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


EACH = "np.log(1 + np.exp(-margins))"
loss.slip(
    "This is the sum over all points. Take the mean, so that the loss does not grow with their number.",
    *("mean", "sum"),
)
loss.slip(
    "The sign is wrong: a large positive margin is good, so it needs exp(-margin).", "-margins", "margins"
)
loss.slip(
    "The labels have no part in this, so it does not matter which colour a point has. The margin is label "
    "times score.",
    *("labels * ", ""),
)
loss.slip("This is one loss for each point. A line has one loss: the mean of them.", ".mean()", "")
loss.slip(
    "The logarithm is missing: exp(-margin) alone explodes if one single point is far on the wrong side.",
    *(EACH, "np.exp(-margins)"),
)
loss.slip("The 1 is missing: log(exp(-margin)) is only -margin, and that has no bottom.", "1 + ", "")
loss.slip(
    "You take the mean of the margins, and then one loss of it. First the loss of each point, then the mean.",
    *(EACH + ".mean()", "np.log(1 + np.exp(-margins.mean()))"),
)
loss.slip(
    "You take the mean before the logarithm. The log of a mean is not the mean of the logs: first "
    "log(1 + exp(-margin)) of each point.",
    *(EACH + ".mean()", "np.log((1 + np.exp(-margins)).mean())"),
)
loss.slip(
    "`math.exp` and `math.log` take a single number. For a whole array: `np.exp` and `np.log`.",
    *("np.exp", "__import__('math').exp"),
)
loss.slip("The margin is label *times* score. You subtract one from the other.", "labels *", "labels -")
loss.slip(
    "This is the share of wrong points. It stays the same if the line moves a little; the loss must not.",
    *(EACH, "(margins < 0)"),
)


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


STACK = "np.column_stack([h1, h2])"
S1, S2 = "line_score(points, *line1)", "line_score(points, *line2)"
H1, H2 = f"np.maximum(0, {S1})", f"np.maximum(0, {S2})"
hidden.slip(
    "A line is three numbers, and a point is two. `line_score(points, *line1)` gives the bias its own place.",
    *(S1, "points @ np.array(line1)"),
)
hidden.slip(
    "`np.column_stack` takes both in one list, with square brackets: `np.column_stack([h1, h2])`.",
    *("[h1, h2]", "h1, h2"),
)
hidden.slip(
    "You add up the two scores. Each line gets a ReLU and a column of its own.",
    STACK,
    f"np.maximum(0, {S1} + {S2})",
)
hidden.slip(
    "The second line gets h1 where it needs the points: both lines look at the same points.",
    *(S2, "line_score(h1, *line2)"),
)
hidden.slip(
    "The ReLU is missing: these are the two scores, and some are negative. Cut them off at 0.",
    *((H1, S1), (H2, S2)),
)
hidden.slip(
    "The two results stand one above the other. Each should be a column: one row for each point.",
    *(STACK, "np.stack([h1, h2])"),
)
hidden.slip(
    "Python's `max` and `if` take single numbers, and these are arrays. The ReLU of an array is "
    "`np.maximum(0, a)`.",
    *(H1, f"max(0, {S1})"),
)
hidden.slip(
    "`np.max` looks for the largest number in one array. To compare each number with 0, use `np.maximum`.",
    *(H1, f"np.max(0, {S1})"),
)
hidden.slip(
    "Here is h1 alone. Each point has two new coordinates: a column for h1, and one for h2.", STACK, "h1"
)
hidden.slip(
    "`reshape` deals the numbers out row by row, so h1 and h2 get mixed. Turn rows into columns with "
    "`.T`, or use `np.column_stack`.",
    *(STACK, "np.array([h1, h2]).reshape(-1, 2)"),
)
hidden.slip(
    "You give back two arrays. Put them side by side, as columns: `np.column_stack([h1, h2])`.",
    STACK,
    "h1, h2",
)
hidden.slip(
    "`line_score` wants w1, w2 and b, and `line1` is all three in one. A star takes them out: "
    "`line_score(points, *line1)`.",
    *("*line1", "line1"),
)
hidden.slip("Only one ReLU is left: you add up the two. Each is a column of its own.", STACK, "h1 + h2")
hidden.slip(
    "You keep what is below 0. The ReLU keeps what is above: `np.maximum(0, …)`.",
    *((H1, f"np.minimum(0, {S1})"), (H2, f"np.minimum(0, {S2})")),
)
hidden.slip(
    "You turn negative scores into positive ones. The ReLU makes them 0.",
    (H1, f"abs({S1})"),
    (H2, f"abs({S2})"),
)
hidden.slip(
    "Both columns come from the first line. The second column belongs to `line2`.", "*line2", "*line1"
)
hidden.slip(
    "Your columns are in the other order: first h1, which comes from `line1`.", "[h1, h2]", "[h2, h1]"
)
hidden.slip(
    "This says only on which side of each line a point is. The ReLU also keeps how far it is from there.",
    *(STACK, f"({STACK} > 0) * 1.0"),
)
