"""Lecture 01, functions and their laws: what its exercises ask for, usual mistakes, predictions, `hunt`."""

from __future__ import annotations

import functools
import math
import operator
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import Phase, settings
from hypothesis.configuration import set_hypothesis_home_dir

from .comparison import Names, values
from .exercises import Exercises, case
from .predictions import Predictions

exercises, predictions = Exercises(), Predictions()
check, ready, predict = exercises.check, exercises.ready, predictions.predict


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


def counterexample(law: Callable[[], None]) -> str:
    """What breaks a property, as Hypothesis found it: "f(x=-710.0) breaks the law"; "" if it found "
    "nothing."""
    set_hypothesis_home_dir(Path(tempfile.gettempdir(), "hypothesis-of-lectures"))  # it keeps what it reads
    try:
        law()
    except Exception as error:
        notes = " ".join(getattr(error, "__notes__", []))
        found = re.search(rf"{law.__name__}\(.*\)", notes, re.DOTALL)
        if found is None:  # the test itself is broken
            raise
        call = re.sub(r"\s+", " ", re.sub(r"(?<=\()\s+|,?\s+(?=\))", "", found[0]))
        return call + (
            " breaks the law"
            if isinstance(error, AssertionError)
            else f" stops with {type(error).__name__}: {error}"
        )
    return ""


def hunt(law: Callable[[], None]) -> None:
    """Run a property test, and print what Hypothesis found."""
    nothing = f"{law.__name__}: no counterexample in {settings().max_examples} tries"
    print(counterexample(law) or nothing)


# --- 1 Close ------------------------------------------------------------------------------------------------


@exercises.exercise(
    case(0.1 + 0.2, 0.3),
    case(1.0, 1.001),
    case(1e16, 1e16 + 2),
    case(1e-12, 0.0),
    case(-5.0, 5.0),
    case(-1e16, -1e16 - 2),
    otherwise=(
        "Write down three numbers for this case: the difference, the largest of 1, |x| and |y|, and a "
        "billionth of that."
    ),
)
def close(x, y):
    """Whether two numbers differ by a billionth at most, of the larger one or of 1."""
    return bool(np.abs(np.subtract(x, y)) <= 1e-9 * np.max(np.abs([1.0, x, y])))


@close.mistake("This still asks for the very same number. Allow a small difference.")
def equal(x, y):
    return x == y


@close.mistake(
    "You allow the same difference everywhere. But between 1e16 and the next number there is a gap of 2: let "
    "what you allow grow with the numbers."
)
def absolute_only(x, y):
    return abs(x - y) <= 1e-9


@close.mistake(
    "Next to 0, a billionth of the larger number is next to nothing. That is why the 1 stands in the rule."
)
def relative_only(x, y):
    return abs(x - y) <= 1e-9 * max(abs(x), abs(y))


@close.mistake(
    "-5 - 5 is -10, and -10 is smaller than anything you allow. Take the absolute value of the difference."
)
def difference_with_sign(x, y):
    return x - y <= 1e-9 * max(1.0, abs(x), abs(y))


@close.mistake("These numbers are large, too, only negative: take `abs(x)` and `abs(y)` inside `max`.")
def size_with_sign(x, y):
    return abs(x - y) <= 1e-9 * max(1.0, x, y)


@close.mistake("You say whether they differ. The question is whether they are close.")
def turned_around(x, y):
    return abs(x - y) > 1e-9 * max(1.0, abs(x), abs(y))


# --- 2 A sigmoid for every number ---------------------------------------------------------------------------


def to_twelve_digits(expected: Any, got: Any, names: Names) -> str:
    """As `values`, but 1e-9 is not the same as 0."""
    return values(expected, got, names, tolerance=1e-12)


@exercises.exercise(
    case(0.0),
    case(2.0),
    case(-2.0),
    case(-20.0),
    case(-1000.0),
    case(1000.0),
    otherwise="Compare both branches with the formula, on paper: for x = 1, and for x = -1.",
    compare=to_twelve_digits,
)
def sigmoid(x):
    """1 / (1 + e⁻ˣ), by NumPy's logarithm of a sum of exponentials."""
    return float(np.exp(-np.logaddexp(0.0, -x)))


@sigmoid.mistake(
    "For x = -1000, this asks for e to the 1000, which no float can hold. Use the other form where x is "
    "negative."
)
def one_branch(x):
    return 1 / (1 + math.exp(-x))


@sigmoid.mistake(
    "Your other form asks for e to the 1000 when x is 1000. Each form is safe on one side only: look at "
    "which."
)
def the_other_branch(x):
    e = math.exp(x)
    return e / (1 + e)


@sigmoid.mistake(
    "You have both forms, each on the side where it overflows. Swap them: `exp` should see no number above 0."
)
def branches_swapped(x):
    return math.exp(x) / (1 + math.exp(x)) if x >= 0 else 1 / (1 + math.exp(-x))


@sigmoid.mistake(
    "Look at the negative side: the numerator is `exp(x)`, and not 1. With 1 you get the sigmoid of -x."
)
def numerator_forgotten(x):
    return 1 / (1 + math.exp(-abs(x)))


@sigmoid.mistake(
    "You cut x off, so everything beyond gets the same value. At -20, the sigmoid is about 2e-9, and a "
    "float can hold much smaller numbers."
)
def cut_off(x):
    return 1 / (1 + math.exp(-min(max(x, -10.0), 10.0)))


@sigmoid.mistake("A sign is wrong: this falls where the sigmoid rises.")
def falling(x):
    return float(np.exp(-np.logaddexp(0.0, x)))


# --- 3 A law ------------------------------------------------------------------------------------------------


def logistic(x):
    return 1 / (1 + math.exp(-x))


def half(x):
    return 0.5


def bell(x):
    return math.exp(-x * x)


def half_exp(x):
    return math.exp(x) / 2


@exercises.exercise(
    case(logistic, 1.0),
    case(logistic, 2.0),
    case(math.tanh, 1.0),
    case(half, 3.0),
    case(bell, 1.0),
    case(half_exp, 1.0),
    otherwise="Compute f(-x) and 1 - f(x) for this case by hand. Are they close?",
)
def symmetric(f, x):
    """Whether f(-x) is 1 - f(x)."""
    return bool(np.isclose(f(x) + f(-x), 1.0, rtol=0, atol=1e-9))


@symmetric.mistake(
    "Too strict: `logistic` keeps the law, but its floats differ in the last digit. Compare them with "
    "`nearly`, or with a tolerance of your own."
)
def to_the_last_digit(f, x):
    return f(-x) == 1 - f(x)


@symmetric.mistake(
    "You ask for f(-x) = -f(x), which is true of tanh. The sigmoid is mirrored at a half, not at 0."
)
def odd(f, x):
    return math.isclose(f(-x), -f(x))


@symmetric.mistake("You ask for f(-x) = f(x): the same height on both sides. The law says 1 - f(x).")
def even(f, x):
    return math.isclose(f(-x), f(x))


@symmetric.mistake(
    "You look at one point, 0. This function passes there and breaks the law at x: use the x you are given."
)
def only_at_zero(f, x):
    return math.isclose(f(0.0), 0.5)


@symmetric.mistake("You ask for f(x) = 1 - f(x). Where is -x?")
def without_the_mirror(f, x):
    return math.isclose(f(x), 1 - f(x))


# --- 4 A counterexample -------------------------------------------------------------------------------------


class Shown:
    """A result that messages call by its name, and that equals another of this name."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shown) and self.name == other.name

    __hash__ = None  # type: ignore[assignment]


def shown_as(name: str, kind: str) -> Shown:
    """A result called `name`; messages say that its type is `kind`."""
    return type(kind, (Shown,), {})(name)


TWO_SIDES_THAT_DIFFER = Shown("two sides that differ")


def _both_ways(answer: Any, x: float) -> Any:
    pair = answer(x)
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or ... in pair:
        return pair
    y, z = pair
    return {"y": y, "z": z, "(x + y) + z": (x + y) + z, "x + (y + z)": x + (y + z)}


def _breaks(expected: Any, got: Any, names: Names) -> str:
    """Whether the two sides differ, and are numbers."""
    if not isinstance(got, dict):
        return "it should be a list of two numbers, y and z"
    *_, left, right = got.values()
    if not (math.isfinite(left) and math.isfinite(right)):
        return "a side of it is not a number that can be compared"
    return f"both sides are {float(left)!r}" if left == right else ""


def _kind_of_failure(expected: Any, got: Any, names: Names) -> str:
    """Whether two answers fail for the same reason, whatever their numbers."""

    def kind(found: Any) -> Any:
        if not isinstance(found, dict):
            return "no pair"
        y, z, left, right = found.values()
        sizes = sorted([abs(y), abs(z)])
        return math.isfinite(left) and math.isfinite(right), *(size > 1e12 for size in sizes), left == right

    return "" if kind(expected) == kind(got) else "they differ"


_breaks.exactly = _kind_of_failure  # type: ignore[attr-defined]


@exercises.exercise(
    case(1.0),
    case(1000.0),
    case(-0.375),
    otherwise="Go through both sides by hand: after which addition is something lost, and after which is "
    "not?",
    compare=_breaks,
    use=_both_ways,
)
def regroup(x):
    """Any two numbers will do that make the sides differ, so there is nothing to compare with."""
    return TWO_SIDES_THAT_DIFFER


@regroup.mistake(
    "Such additions are exact, or nearly. Think of 1e16 + 1: make x vanish beside a number that is far "
    "larger."
)
def small(x):
    return [1.0, 2.0]


@regroup.mistake(
    "x vanishes beside the large number on both sides. On one side it must survive: what if z takes away "
    "again what y has added?"
)
def both_large(x):
    return [1e20, 1e20]


@regroup.mistake(
    "One large number swallows x on both sides. Add a second large one that cancels the first: on one side "
    "it does so before x comes."
)
def one_large(x):
    return [1e20, 1.0]


@regroup.mistake(
    "Infinities and NaN break many laws, and say little about them. Find y and z among ordinary numbers."
)
def infinite(x):
    return [math.inf, -math.inf]


@regroup.mistake("Give back two numbers in a list: `return [y, z]`.")
def one_number(x):
    return 1e20


# --- 5 zip_with ---------------------------------------------------------------------------------------------


def _tidy(result: Any) -> Any:
    """An iterator as what it is: no two of them are equal."""
    if hasattr(result, "__next__"):
        return shown_as(f"a {type(result).__name__} object", type(result).__name__)
    return result


def _apply(answer: Any, f: Any, *inputs: Any) -> Any:
    made = answer(*f) if isinstance(f, tuple) else answer(f)
    return made if made is ... else _tidy(made(*inputs))


@exercises.exercise(
    case(operator.sub, [10.0, 20.0, 30.0], [1.0, 2.0, 3.0]),
    case(operator.mul, [2.0, 3.0], [5.0, 7.0]),
    case(max, [1.0, -1.0], [0.0, 0.0]),
    case(operator.add, [], []),
    otherwise=(
        "The first item of the result is f of the first of xs and the first of ys. Is yours? Then look at "
        "the second."
    ),
    use=_apply,
    form="zip_with({})({}, {})",
)
def zip_with(f):
    """A function that applies f to two lists, item by item."""
    return lambda xs, ys: list(map(f, xs, ys))


@zip_with.mistake("f gets the two items the wrong way round: x comes first, then y.")
def other_way_round(f):
    return lambda xs, ys: [f(y, x) for x, y in zip(xs, ys, strict=True)]


@zip_with.mistake(
    "You combine each x with each y. The lists go side by side, as the two halves of a zip: `zip(xs, ys)`."
)
def each_with_each(f):
    return lambda xs, ys: [f(x, y) for x in xs for y in ys]


@zip_with.mistake(
    "This stops after the first pair: a `return` inside the loop ends the function. Collect first, return at "
    "the end."
)
def first_pair_only(f):
    return lambda xs, ys: next((f(x, y) for x, y in zip(xs, ys, strict=True)), None)


@zip_with.mistake(
    "f takes two numbers, and you give it one pair. Take the pair apart: `for x, y in zip(xs, ys)`."
)
def pair_as_one(f):
    return lambda xs, ys: [f(pair) for pair in zip(xs, ys, strict=True)]


@zip_with.mistake(
    "`map` gives the numbers one by one, when somebody asks for them. Make a list of them: `list(...)`."
)
def lazy(f):
    return lambda xs, ys: map(f, xs, ys)


@zip_with.mistake("These are the pairs themselves. Apply f to each of them.")
def pairs(f):
    return lambda xs, ys: list(zip(xs, ys, strict=True))


@zip_with.mistake(
    "`zip_with(f)` should give back a function, which is given the lists later. Give back the inner "
    "function, without calling it."
)
def not_a_function(f):
    return [f]


# --- 6 fold -------------------------------------------------------------------------------------------------


def append_digit(number, digit):
    return 10 * number + digit


def _fold(answer: Any, f: Any, start: Any, xs: Any) -> Any:
    return _apply(answer, (f, start), xs)


@exercises.exercise(
    case(operator.sub, 10.0, [1.0, 2.0, 4.0, 8.0]),
    case(append_digit, 0.0, [1.0, 2.0, 3.0]),
    case(operator.add, 0.0, [1.0, 2.0, 3.0, 4.0]),
    case(operator.mul, 1.0, [2.0, 3.0]),
    case(operator.add, 0.0, []),
    otherwise=(
        "Follow it on paper for sub, 10 and [1, 2, 4, 8]: 10, then 10 - 1 = 9, then 9 - 2 = 7, then 3, "
        "then -5."
    ),
    use=_fold,
    form="fold({}, {})({})",
)
def fold(f, start):
    """A function that boils a list down to one value, from the left."""
    return lambda xs: functools.reduce(f, xs, start)


@fold.mistake("Where is `start`? You begin with the first item instead, and an empty list has none.")
def without_start(f, start):
    return lambda xs: functools.reduce(f, xs)


@fold.mistake("f gets its two numbers the wrong way round: first what you have so far, then the next item.")
def item_first(f, start):
    return lambda xs: functools.reduce(lambda total, x: f(x, total), xs, start)


@fold.mistake("You come from the right, and the exercise comes from the left: 10 - 1 is the first step.")
def from_the_right(f, start):
    def folded(xs):
        return f(xs[0], folded(xs[1:])) if len(xs) else start

    return folded


@fold.mistake("You begin with the last item. For append_digit, which is 10 · total + x, that gives 321.")
def backwards(f, start):
    return lambda xs: functools.reduce(f, xs[::-1], start)


@fold.mistake(
    "This stops after the first item: a `return` inside the loop ends the function. Return after the loop."
)
def stops_early(f, start):
    return lambda xs: f(start, xs[0]) if xs else None


@fold.mistake(
    "`start` comes back as it was. `f(total, x)` gives a new value and changes nothing: keep it, `total = "
    "...`."
)
def nothing_kept(f, start):
    return lambda xs: start


@fold.mistake(
    "In each step you begin again with `start`, so only the last item counts. Go on from what you have so "
    "far."
)
def always_from_start(f, start):
    return lambda xs: f(start, xs[-1]) if xs else start


@fold.mistake("These are all the values on the way. Only the last of them is asked for.")
def all_on_the_way(f, start):
    def folded(xs):
        way = [start]
        for x in xs:
            way.append(f(way[-1], x))
        return way

    return folded


# --- 7 A spread that does not crash -------------------------------------------------------------------------


def _real(result: Any) -> Any:
    """A complex number as what it is: which one depends on the last digits."""
    return shown_as("a complex number", "complex") if isinstance(result, complex) else result


@exercises.exercise(
    case([1.0, 2.0, 3.0, 4.0]),
    case([5.0, 5.0, 5.0]),
    case([0.1, 0.1, 0.1]),
    case([1e9, 1e9 + 1, 1e9 + 2]),
    case([7.0]),
    otherwise="Compute the mean first. Then, for each number, its distance from the mean, squared.",
    use=lambda answer, xs: _real(answer(xs)),
)
def spread(xs: Sequence[float]) -> float:
    """The standard deviation, by NumPy."""
    return float(np.std(xs))


def _mean(xs):
    return math.fsum(xs) / len(xs)


def _one_pass(xs):
    total = squares = 0.0
    for x in xs:
        total, squares = total + x, squares + x * x
    return squares / len(xs) - (total / len(xs)) ** 2


@spread.mistake(
    "This is the same difference of two large numbers that nearly cancel. Take the mean away first, then "
    "square."
)
def as_before(xs):
    return math.sqrt(_one_pass(xs))


@spread.mistake(
    "A negative number to the power of 0.5 is a complex number in Python. It is the same cancellation: "
    "take the "
    "mean away first, then square."
)
def complex_root(xs):
    return _one_pass(xs) ** 0.5


@spread.mistake(
    "Now the crash is gone, and the wrong number is still there: near 1e9, the squares have lost what you "
    "look for. Take the mean away first, then square."
)
def crash_hidden(xs):
    return math.sqrt(max(0.0, _one_pass(xs)))


@spread.mistake("This is the mean of the squares. Take its square root at the end.")
def root_forgotten(xs):
    return float(np.var(xs))


@spread.mistake(
    "You divide by n - 1. Statisticians do that for a sample, but here we divide by n. With one number, you "
    "divide by 0."
)
def divided_by_less(xs):
    if len(xs) < 2:
        raise ZeroDivisionError
    return float(np.std(xs, ddof=1))


@spread.mistake("You forgot to divide by the number of values before you take the root.")
def not_divided(xs):
    return float(np.std(xs)) * math.sqrt(len(xs))


@spread.mistake("Without the squares, what lies below the mean cancels what lies above it.")
def not_squared(xs):
    return 0.0


@spread.mistake(
    "This is the mean of the distances. Square each distance first, and take the root at the end."
)
def mean_distance(xs):
    return _mean([abs(x - _mean(xs)) for x in xs])


# --- Predictions --------------------------------------------------------------------------------------------

predictions.choose(
    "1e16 + 1",
    "A float has room for about 16 digits. What is `1e16 + 1 - 1e16`?",
    {
        "1.0": "On paper, yes. But 1e16 + 1 has 17 digits, so it is rounded before the subtraction.",
        "0.0": "Right. 1e16 + 1 is rounded back to 1e16: the 1 is gone.",
        "2.0": "The gap between 1e16 and the next float is 2, that is true. But 1 lies in the middle of the "
        "gap, and rounding goes down here.",
        "an error": "Floats do not complain. They round, silently, after every operation.",
    },
    right="0.0",
)
predictions.choose(
    "ship it",
    "All seven values looked right. Will Hypothesis find a number for which `naive_sigmoid` fails?",
    {
        "no": "So thought everyone who shipped it. Look at what `exp` gets when x is very negative.",
        "yes, a large positive one": "There exp(-x) becomes 0, and 1 / (1 + 0) is 1. No harm is done.",
        "yes, a very negative one": "Right: exp(-x) grows beyond what a float can hold.",
        "yes, close to 0": "exp is at its gentlest there: exp(0) is 1.",
    },
    right="yes, a very negative one",
)
predictions.choose(
    "always below 1",
    "The sigmoid of mathematics never reaches 1. Does yours, for some number below 100?",
    {
        "no, it is always below 1": "On paper. But what is the float nearest to 1 - 1e-40?",
        "yes, it gives exactly 1": "Right: near 1, floats are about 1e-16 apart, and the rest is rounded "
        "away.",
        "yes, it even gives more than 1": "No: it divides 1 by at least 1, and rounding does not go past 1.",
    },
    right="yes, it gives exactly 1",
)
predictions.choose(
    "which law",
    "Three laws from school. Which one breaks for floats, even for numbers between -1000 and 1000?",
    {
        "x + y = y + x": "This one holds: both sides round the very same sum.",
        "(x + y) + z = x + (y + z)": "Right: the two sides round at different places.",
        "max(x, max(y, z)) = max(max(x, y), z)": "This one holds: `max` picks one of its numbers, and "
        "rounds nothing.",
    },
    right="(x + y) + z = x + (y + z)",
)
predictions.choose(
    "two sums",
    "The same ten thousand numbers, added from the left and from the right. How do the two sums compare?",
    {
        "they are equal": "They would be, if addition were associative. Each step rounds something else.",
        "they differ a little": "Right, and neither is the true one.",
        "one is far off": "No: each step loses less than one part in 10¹⁵. But it does lose something.",
    },
    right="they differ a little",
)
predictions.choose(
    "not compiled",
    "`twice_neg` calls `neg` and `mul`, which are plain Python functions. We compile `twice_neg` alone. What "
    "happens when we call it?",
    {
        "it works": "Then Numba would have to compile functions that nobody gave it. It knows them only as "
        "names.",
        "it works, but slowly": "Numba has no slow way: what it compiles, it compiles completely.",
        "an error": "Right: a compiled function cannot call Python objects, and `mul` is one.",
    },
    right="an error",
)
predictions.choose(
    "the wrong back",
    "One of the five backs is wrong, although all of them are right at x = 1. Which one?",
    {
        "log": "The derivative of log(x) is 1 / x. That is what it says.",
        "exp": "exp is its own derivative. That is what it says.",
        "inv": "Right: the derivative of 1 / x is -1 / x², and at x = 1 nobody sees the square.",
        "relu": "For positive x, relu(x) is x, and its derivative is 1. That is what it says.",
        "sigmoid": "σ(x) (1 - σ(x)) is the derivative of the sigmoid. That is what it says.",
    },
    right="inv",
)
predictions.choose(
    "equal numbers",
    "The spread of equal numbers is 0. What does `quick_spread` give for some list of equal numbers?",
    {
        "exactly 0, always": "For [5, 5, 5], yes. But the mean of the squares and the square of the mean are "
        "rounded apart.",
        "a tiny number, at worst": "If the rounding goes up. But what if it goes down, and you take the "
        "root?",
        "an error": "Right: the difference can come out a little below 0, and a negative number has no real "
        "root.",
    },
    right="an error",
)
