"""Lecture 01, functions and their laws: its exercises, the usual mistakes in them, its picture."""

from __future__ import annotations

import math
import operator
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from .checking import Lecture, Names, case, drawn, values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


# --- Looking for counterexamples ----------------------------------------------------------------------------

# Everyone sees the same tries, and nothing is left beside the notebook. A slow machine fails nothing.
settings.register_profile(
    "lecture",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=False,
    report_multiple_bugs=False,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)


def hunt(law: Callable[[], None]) -> None:
    """Run a property test, and print what Hypothesis found: "f(x=-710.0) breaks the law"."""
    set_hypothesis_home_dir(Path(tempfile.gettempdir(), "hypothesis-of-lectures"))  # it keeps what it reads
    try:
        law()
    except Exception as error:
        notes = " ".join(getattr(error, "__notes__", []))
        found = re.search(rf"{law.__name__}\(.*\)", notes, re.DOTALL)
        if found is None:  # the test itself is broken
            raise
        call = re.sub(r"\s+", " ", re.sub(r"(?<=\()\s+|,?\s+(?=\))", "", found[0]))
        stopped = f"stops with {type(error).__name__}: {error}"
        print(call, "breaks the law" if isinstance(error, AssertionError) else stopped)
    else:
        print(f"{law.__name__}: no counterexample in {settings().max_examples} tries")


# --- The picture of the two sigmoids ------------------------------------------------------------------------


def mark(ax: Axes, x: float) -> Axes:
    """Mark `x` and the largest float in a picture of the `exp` inside both sigmoids."""
    ceiling = math.log10(sys.float_info.max)
    naive, stable = ax.lines[:2]
    naive.set(linewidth=6, alpha=0.4)  # so that both can be seen where they are the same
    stable.set(linewidth=2)
    ax.axhline(ceiling, color="#C4221B", linestyle="--")
    ax.text(980, ceiling - 12, "the largest float", ha="right", va="top", color="#C4221B")
    ax.axvline(x, color="#475467", linewidth=1)
    big = "OverflowError" if -x > math.log(sys.float_info.max) else f"{math.exp(-x):.0e}"
    ax.set_title(
        f"x = {x:g}: exp(-x) is {big}, exp(-|x|) is {math.exp(-abs(x)):.0e}", loc="left", fontsize=9.5
    )
    ax.set(xlim=(-1000, 1000), ylim=(-340, 340))
    if (legend := ax.get_legend()) is not None:
        legend.remove()
    ax.text(-220, 120, "naive: exp(-x)", color="#1D5FD1")
    ax.text(-235, -240, "stable: exp(-|x|)", color="#B45309")
    return ax


# --- 1 Close ------------------------------------------------------------------------------------------------


def neighbours(parts: tuple[float, float]) -> tuple[float, float]:
    """A number, and another one so many times as far from it as is allowed."""
    x, times = parts
    x = 0.0 if times == 1.0 else x  # elsewhere, rounding decides about exactly that far
    return x, x + times * 1e-9 * max(1.0, abs(x))


SIZES = (1.0, 1e16, -1000.0, 1000.0, 0.0, 0.3, -1e16, 1e6, -5.0, 1e300)
TIMES = (2.0, 0.5, -2.0, -0.5, 1e3, -1e6, 1.3, 0.8, 1e9, 0.0, 1.0)
pairs = st.tuples(st.sampled_from(SIZES), st.sampled_from(TIMES)).map(neighbours)


@lecture.exercise(
    case(0.1 + 0.2, 0.3),
    case(1.0, 1.001),
    case(1e16, 1e16 + 2),
    case(-5.0, 5.0),
    draws=pairs.map(lambda pair: case(*pair)),
    otherwise="Write down three numbers for this case: the difference, the largest of 1, |x| and |y|, and a "
    "billionth of that.",
)
def close(x, y):
    return abs(x - y) <= 1e-9 * max(1.0, abs(x), abs(y))


# --- 2 A sigmoid for every number ---------------------------------------------------------------------------


def to_six_digits(expected: Any, got: Any, names: Names) -> str:
    """As `values`, but a tiny number is not the same as 0."""
    if difference := values(expected, got, names, tolerance=1e-12):
        return difference
    return "" if math.isclose(expected, got, rel_tol=1e-6) else f"{got:.6g} should be {expected:.6g}"


def tiny_or_to_six_digits(expected: Any, got: Any, names: Names) -> str:
    """Whether two wrong answers are the same: it does not matter where somebody cuts x off, far out."""
    tiny = all(isinstance(x, float) and 0 < x < 1e-100 for x in (expected, got))
    return "" if tiny else to_six_digits(expected, got, names)


to_six_digits.exactly = tiny_or_to_six_digits  # type: ignore[attr-defined]
INPUTS = [2.0, 1.0, 5.0, 3.5, 8.0, 12.5, 20.0, 30.0, 50.0, 100.0, 300.0, 600.0]
INPUTS = [sign * x for x in INPUTS for sign in (1, -1)]
INPUTS += [720.0, -715.0, -720.0, -705.0, 1000.0, -1000.0, 0.25, -0.25, 1e-6, 1e5, -1e5, 1e300, -1e300, 0.0]


@lecture.exercise(
    case(2.0),
    case(-710.0),
    draws=drawn(INPUTS),
    otherwise="Compare both branches with the formula, on paper: for x = 1, and for x = -1.",
    compare=to_six_digits,
    own=("expit",),
)
def sigmoid(x):
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    e = math.exp(x)
    return e / (1 + e)


# --- 3 A law ------------------------------------------------------------------------------------------------


def good_sigmoid(x):
    return 1 / (1 + math.exp(-x))


FUNCTIONS = {
    "bell": lambda x: math.exp(-x * x),
    "always_half": lambda x: 0.5,
    "half_exp": lambda x: math.exp(x) / 2,
    "shifted_sigmoid": lambda x: good_sigmoid(x) + 5e-4,
    "good_near_0": lambda x: good_sigmoid(x) if abs(x) < 2.5 else math.tanh(x),
    "good_far_out": lambda x: math.tanh(x) if abs(x) < 2.5 else good_sigmoid(x),
    "half_plus": lambda x: 0.5 + x,
    "half_minus": lambda x: 0.5 - x,
    "slightly_shifted_sigmoid": lambda x: good_sigmoid(x) + 1e-8,
    "half_sign": lambda x: math.copysign(0.5, x),
}
for name, function in FUNCTIONS.items():  # messages call them so
    function.__name__ = name
nearly = close.right


@lecture.exercise(
    case(good_sigmoid, 2.0),
    case(math.tanh, 1.0),
    case(FUNCTIONS["always_half"], 1.0),
    draws=drawn(
        [good_sigmoid, math.tanh, math.cos, *FUNCTIONS.values()],
        (1.0, 2.0, 3.0, -1.0, 0.5, -2.0, 0.3, 4.0, 0.0),
    ),
    otherwise="Compute f(-x) and 1 - f(x) for this case by hand. Are they close?",
)
def symmetric(f, x):
    return nearly(f(-x), 1 - f(x))


# --- 4 A counterexample -------------------------------------------------------------------------------------


class Sides:
    """Both sides of the law for two numbers. Those of the lecture are not shown: any will do."""

    def __init__(self, shown: bool, x: float, y: float, z: float):
        self.left, self.right = (x + y) + z, x + (y + z)
        self.finite = math.isfinite(self.left) and math.isfinite(self.right)
        large = sum(abs(number) > 1e12 for number in (y, z))
        self.kind = self.finite and ({y, z} == {0, x}, y + z == 0, large)
        sides = f"y = {y:g}, z = {z:g}: (x + y) + z = {self.left!r}, x + (y + z) = {self.right!r}"
        self.words = sides if shown else "two sides that differ"

    def __repr__(self) -> str:
        return self.words


def both_ways(answer: Any, x: float) -> Any:
    """Both sides of the law, if the answer gives two numbers."""
    pair = answer(x)
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or ... in pair:
        return pair
    return Sides(answer is not regroup.right, x, *pair)


def breaks(expected: Any, got: Any, names: Names) -> str:
    """Whether the two sides differ, and are numbers."""
    if not isinstance(got, Sides):
        return "it should be a list of two numbers, y and z"
    if not got.finite:
        return "a side of it is not a number that can be compared"
    return f"both sides are {got.left!r}" if got.left == got.right else ""


# Two answers fail for the same reason, whatever their numbers are.
breaks.exactly = lambda expected, got, names: "" if expected.kind == got.kind else "they differ"  # type: ignore[attr-defined]


@lecture.exercise(
    case(1.0),
    case(7.0),
    case(-0.375),
    draws=drawn((3.0, -1.0, 0.5, 5.0, -7.0, 0.1, 11.0, 1.5, -0.01, 25.0)),
    number=30,
    otherwise="Go through both sides by hand: after which addition is something lost, and after which is not?",
    compare=breaks,
    use=both_ways,
)
def regroup(x):
    return [1e20, -1e20]


# --- 5 Fold -------------------------------------------------------------------------------------------------


def append_digit(number, digit):
    return 10 * number + digit


def longer(total, x):
    return x if len(x) > len(total) else total


def twice(answer: Any, f: Any, start: Any, xs: Any) -> Any:
    """What the folded function gives for a list, and then for the list turned around."""
    folded = answer(f, start)
    first = folded(xs)
    return ... if first is ... else [first, folded(xs[::-1])]


LISTS = st.sampled_from(
    ([1.0, 2.0, 4.0, 8.0], [3.0, 1.0, 1.0, 2.0, 1.0], [2.0, 3.0], [5.0], [], [0.0, 2.0], [2.0, 0.0, -1.0])
)
WORDS = st.sampled_from((["b", "a", "b", "b", "ca"], ["ab", "c"], ["abc"], []))


@lecture.exercise(
    case(operator.sub, 10.0, [1.0, 2.0, 4.0, 8.0]),
    case(append_digit, 0.0, [1.0, 2.0, 3.0]),
    draws=drawn([operator.sub, append_digit, operator.add, operator.mul, max], [10.0, 0.0, 1.0, -2.0], LISTS)
    | drawn([operator.add, longer], ["", "x"], WORDS),
    otherwise="Follow it on paper for sub, 10 and [1, 2, 4, 8]: 10, then 10 - 1 = 9, then 9 - 2 = 7, then 3, then "
    "-5.",
    own=("reduce", "accumulate"),
    use=twice,
    form="folded = fold({}, {}), and then folded({}), and again with the list turned around,",
)
def fold(f, start):
    def folded(xs):
        total = start
        for x in xs:
            total = f(total, x)
        return total

    return folded


# --- 6 A spread that does not crash -------------------------------------------------------------------------


def map_with(f):
    return lambda xs: [f(x) for x in xs]


total = fold.right(operator.add, 0.0)
COLUMNS = (
    [1.0, 2.0, 3.0, 4.0],
    [0.0, 0.0, 3.0],
    [3.0, 1.0, 2.0, 2.0, 7.0],
    [-2.0, 5.0],
    [5.0, 5.0, 5.0],
    [7.0],
)
columns = st.tuples(
    st.sampled_from(COLUMNS), st.sampled_from((1.0, 0.1, -3.0)), st.sampled_from((0.0, 1e9, -1e6, 100.0))
).map(lambda x: [number * x[1] + x[2] for number in x[0]])


@lecture.exercise(
    case([1.0, 2.0, 3.0, 4.0]),
    case([1e9, 1e9 + 1, 1e9 + 2]),
    case([0.1, 0.1, 0.1]),
    draws=columns.map(lambda xs: case(xs)),
    otherwise="Compute the mean first. Then, for each number, its distance from the mean, squared.",
    own=("std", "var", "nanstd", "nanvar", "pstdev", "pvariance"),
)
def spread(xs):
    mean = total(xs) / len(xs)
    squares = map_with(lambda x: (x - mean) ** 2)(xs)
    return math.sqrt(total(squares) / len(xs))
