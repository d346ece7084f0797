"""Lecture 01, functions and their laws: what its exercises ask for, usual mistakes, predictions, pictures."""

from __future__ import annotations

import functools
import math
import operator
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import Phase, settings
from hypothesis.configuration import set_hypothesis_home_dir

from .checking import Lecture, Names, case, values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


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


@lecture.exercise(
    case(0.1 + 0.2, 0.3),
    case(1.0, 1.001),
    case(1e16, 1e16 + 2),
    case(1e-12, 0.0),
    case(-5.0, 5.0),
    case(-1e16, -1e16 - 2),
    case(1.001, 1.0),
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
    "1 - 1.001 is negative, and so smaller than anything you allow. Take the absolute value: `abs(x - y)`."
)
def difference_with_sign(x, y):
    return x - y <= 1e-9 * max(1.0, abs(x), abs(y))


@close.mistake(
    "You call 1 and 1.001 close, but 0.001 is far more than a billionth of 1. Is your tolerance `1e-9`, with "
    "the minus?"
)
def billion_for_billionth(x, y):
    return abs(x - y) <= 1e9 * max(1.0, abs(x), abs(y))


@close.mistake("These numbers are large, too, only negative: take `abs(x)` and `abs(y)` inside `max`.")
def size_with_sign(x, y):
    return abs(x - y) <= 1e-9 * max(1.0, x, y)


@close.mistake("You say whether they differ. The question is whether they are close.")
def turned_around(x, y):
    return abs(x - y) > 1e-9 * max(1.0, abs(x), abs(y))


# --- 2 A sigmoid for every number ---------------------------------------------------------------------------


def to_six_digits(expected: Any, got: Any, names: Names) -> str:
    """As `values`, but a tiny number is not the same as 0."""
    if difference := values(expected, got, names, tolerance=1e-9):
        return difference
    return "" if math.isclose(expected, got, rel_tol=1e-6) else f"{got:.6g} should be {expected:.6g}"


def _tiny_or_to_six_digits(expected: Any, got: Any, names: Names) -> str:
    """Whether two wrong answers are the same: it does not matter where somebody cuts x off, far out."""
    numbers = isinstance(expected, float) and isinstance(got, float)
    if numbers and 0 < expected < 1e-100 and 0 < got < 1e-100:
        return ""
    return to_six_digits(expected, got, names)


to_six_digits.exactly = _tiny_or_to_six_digits  # type: ignore[attr-defined]


@lecture.exercise(
    case(0.0),
    case(2.0),
    case(-2.0),
    case(-30.0),
    case(-1000.0),
    case(1000.0),
    case(-720.0),
    otherwise="Compare both branches with the formula, on paper: for x = 1, and for x = -1.",
    compare=to_six_digits,
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
    "You cut x off, so everything beyond gets the same value. At -30, the sigmoid is about 9e-14, and a "
    "float can hold much smaller numbers."
)
def cut_off(x):
    return 1 / (1 + math.exp(-min(max(x, -10.0), 10.0)))


@sigmoid.mistake(
    "Do you cut x off? Beyond your limit, the answer stays what it was there. Use the two forms: they need "
    "no limit."
)
def cut_off_far_out(x):
    return 1 / (1 + math.exp(-min(max(x, -500.0), 500.0)))


@sigmoid.mistake(
    "You answer 0 where `exp` overflows. At -720 the sigmoid is about 2e-313, and a float can hold that: use "
    "the other form on this side."
)
def zero_beyond(x):
    return 1 / (1 + math.exp(-x)) if x > -709 else 0.0


CANCELLED = (
    "On paper, this is the sigmoid. But here it is the difference of two numbers that are nearly equal, and "
    "most digits are lost. Use the two forms as they stand."
)


@sigmoid.mistake(CANCELLED)
def one_minus_the_other(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else 1 - 1 / (1 + math.exp(x))


@sigmoid.mistake(CANCELLED)
def by_tanh(x):
    return 0.5 * (1 + math.tanh(0.5 * x))


@sigmoid.mistake("A sign is wrong: this falls where the sigmoid rises.")
def falling(x):
    return float(np.exp(-np.logaddexp(0.0, x)))


# --- 3 A law ------------------------------------------------------------------------------------------------


def good_sigmoid(x):
    return 1 / (1 + math.exp(-x))


def shifted_sigmoid(x):
    return good_sigmoid(x) + 5e-4


def always_half(x):
    return 0.5


def bell(x):
    return math.exp(-x * x)


def half_exp(x):
    return math.exp(x) / 2


@lecture.exercise(
    case(good_sigmoid, 1.0),
    case(good_sigmoid, 2.0),
    case(math.tanh, 1.0),
    case(always_half, 3.0),
    case(bell, 1.0),
    case(half_exp, 1.0),
    case(shifted_sigmoid, 1.0),
    otherwise="Compute f(-x) and 1 - f(x) for this case by hand. Are they close?",
)
def symmetric(f, x):
    """Whether f(-x) is 1 - f(x)."""
    return bool(np.isclose(f(x) + f(-x), 1.0, rtol=0, atol=1e-9))


@symmetric.mistake("Your law is True of tanh, which breaks it. Does it look at `f` at all?")
def always_true(f, x):
    return True


@symmetric.mistake("Your law is False even of `good_sigmoid`, which keeps it. Does it look at `f` at all?")
def never_true(f, x):
    return False


@symmetric.mistake(
    "Too strict: `good_sigmoid` keeps the law, but its floats differ in the last digit. Compare them with "
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
    "You look at one point, 0. `half_exp`, which is e^x / 2, passes there and breaks the law at x: use the x "
    "you are given."
)
def only_at_zero(f, x):
    return math.isclose(f(0.0), 0.5)


@symmetric.mistake("You ask for f(x) = 1 - f(x). Where is -x?")
def without_the_mirror(f, x):
    return math.isclose(f(x), 1 - f(x))


@symmetric.mistake(
    "`shifted_sigmoid` is a sigmoid plus 0.0005, so it breaks the law by a thousandth. Your tolerance is so "
    "wide that it passes: compare with `nearly`."
)
def too_wide(f, x):
    return abs(f(-x) - (1 - f(x))) < 0.1


CALL_IT = (
    "`f` is a function, and you cannot calculate with it. Call it: `f(-x)` on one side, `f(x)` on the other."
)


@symmetric.mistake(CALL_IT)
def not_called(f, x):
    return math.isclose(f, 1 - f)


@symmetric.mistake(CALL_IT)
def left_not_called(f, x):
    return abs(f - (1 - f(x))) < 1e-9


@symmetric.mistake("`nearly` compares two numbers: give it both sides of the law, with a comma between them.")
def one_side_only(f, x):
    return close.right(f(-x) - 1 + f(x))


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
        if not (math.isfinite(left) and math.isfinite(right)):
            return "not finite"
        if 0 in (y, z) and y + z == left / 2 != 0:
            return "0 and x"
        if y + z == 0:
            return "they cancel", left == right
        sizes = sorted([abs(y), abs(z)])
        return *(size > 1e12 for size in sizes), left == right

    return "" if kind(expected) == kind(got) else "they differ"


_breaks.exactly = _kind_of_failure  # type: ignore[attr-defined]


@lecture.exercise(
    case(1.0),
    case(7.0),
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
    "Your idea is right: y and z cancel. But next to your y the gap is so small that x survives on both "
    "sides. Take a larger one."
)
def too_small_to_swallow(x):
    return [1e9, -1e9]


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


@regroup.mistake("Give back y and z themselves, and not the two sums: the check does the adding.")
def the_two_sums(x):
    return [(x + 1e20) - 1e20, x + (1e20 - 1e20)]


@regroup.mistake("Give back two numbers in a list: `return [y, z]`.")
def one_number(x):
    return 1e20


# --- 5 fold -------------------------------------------------------------------------------------------------


def append_digit(number, digit):
    return 10 * number + digit


def _twice(answer: Any, f: Any, start: Any, xs: Any) -> Any:
    """What the folded function gives, called twice; a dictionary if that is not the same."""
    folded = answer(f, start)
    if folded is ...:
        return folded
    if folded is None:
        return shown_as("None", "None")  # of `fold` itself, and not of `folded`
    first = folded(xs)
    if first is ... or not values(first, second := folded(xs), {}):
        return first
    return {"first call": first, "second call": second}


def _the_same_twice(expected: Any, got: Any, names: Names) -> str:
    if isinstance(got, dict) and not isinstance(expected, dict):
        return "the same function, called again with the same list, gives something else"
    return values(expected, got, names)


@lecture.exercise(
    case(operator.sub, 10.0, [1.0, 2.0, 4.0, 8.0]),
    case(append_digit, 0.0, [1.0, 2.0, 3.0]),
    case(operator.add, 0.0, [1.0, 2.0, 3.0, 4.0]),
    case(operator.mul, 1.0, [2.0, 3.0]),
    case(operator.add, 0.0, []),
    otherwise=(
        "Follow it on paper for sub, 10 and [1, 2, 4, 8]: 10, then 10 - 1 = 9, then 9 - 2 = 7, then 3, "
        "then -5."
    ),
    compare=_the_same_twice,
    use=_twice,
    form="fold({}, {})({})",
)
def fold(f, start):
    """A function that boils a list down to one value, from the left."""
    return lambda xs: functools.reduce(f, xs, start)


@fold.mistake("Where is `start`? You begin with the first item instead, and an empty list has none.")
def without_start(f, start):
    return lambda xs: functools.reduce(f, xs)


@fold.mistake(
    "`folded` assigns to this name, so Python takes it for a name of its own, which has no value before the "
    "loop. Begin with `total = start`."
)
def without_a_value(f, start):
    def folded(xs):
        for x in xs:
            start = f(start, x)  # noqa: F823
        return start

    return folded


@fold.mistake(
    "The second call goes on where the first has ended, since `nonlocal` lets it change `start` itself. "
    "Leave `start` alone, and begin with `total = start`."
)
def goes_on(f, start):
    def folded(xs):
        nonlocal start
        for x in xs:
            start = f(start, x)
        return start

    return folded


@fold.mistake(
    "`fold` should give back a function, which is given the list later. Give back `folded`, without calling "
    "it."
)
def not_a_function(f, start):
    return start


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


@fold.mistake("`fold` itself gives None back. Is `return folded` missing at the end?")
def nothing_returned(f, start):
    return None


@fold.mistake("You have a number for each item: that is a map. A fold boils the list down to one number.")
def mapped(f, start):
    return lambda xs: [f(start, x) for x in xs]


@fold.mistake("These are all the values on the way. Only the last of them is asked for.")
def all_on_the_way(f, start):
    def folded(xs):
        way = [start]
        for x in xs:
            way.append(f(way[-1], x))
        return way

    return folded


# --- 6 A spread that does not crash -------------------------------------------------------------------------


def _real(result: Any) -> Any:
    """A complex number as what it is: which one depends on the last digits."""
    return shown_as("a complex number", "complex") if isinstance(result, complex) else result


@lecture.exercise(
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
    "A negative number to the power of 0.5 is a complex number in Python. It is the same cancellation: take "
    "the mean away first, then square."
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


def map_with(f):
    return lambda xs: [f(x) for x in xs]


CALLED_WITH_THE_LIST = "`map_with(f)` makes a function. Call that one with the list: `map_with(f)(xs)`."


@spread.mistake(CALLED_WITH_THE_LIST)
def list_in_the_wrong_call(xs):
    return map_with(abs, xs)  # type: ignore[call-arg]


@spread.mistake(CALLED_WITH_THE_LIST)
def no_list_at_all(xs):
    return math.fsum(map_with(abs))


@spread.mistake(
    "A list minus a number is an error in Python. Take the mean away from each number: `x - mean`, in a "
    "function for `map_with`."
)
def list_minus_number(xs):
    return xs - _mean(xs)
