"""What helps with mistakes that people make in any exercise: each has one sentence, written once.

`habit` looks at a wrong attempt that is none of the exercise's own mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .comparison import is_tensor, kind, to_numpy, values

if TYPE_CHECKING:
    from .attempt import Attempt

#: By the text of an exception, "type: words": what helps.
ERRORS = {
    r"^StillRunning": "It would run for ever. Look at your loops: what brings each one nearer to its end, round by round?",
    r"^RecursionError": "Your function calls itself again and again. When should it stop?",
    r"ellipsis": "There is still a `...` in your answer. Write your part in its place.",
    r"^UnboundLocalError": "This name is given a value inside the function, but later than here. Give it its first value above.",
    r"^NameError": "Python does not know this name. Is it spelled right, and does a line above give it a value?",
    r"^IndexError: (list|tuple|string)": "There is no such place. The last place of a list of n items is n - 1.",
    r"^IndexError.*too many indices": "The array has fewer axes than your index has numbers.",
    r"^IndexError": "There is no such place in the array. Look at its shape, and at where your index comes from.",
    r"NoneType": "Something here is None. Does a function lack its `return`, or did you use what a method such as `append` or `sort` gives back?",
    r"is not iterable": "A single value stands where a list is needed. Which of your values is it?",
    r"is not callable": "There are brackets behind something that is no function. Is a `*` or a comma missing, or is it a plain value?",
    r"missing \d+ required positional": "A call lacks an argument. Compare it with the function's `def`.",
    r"takes \d+ positional arguments? but|takes from \d+": "A call has an argument too many. Compare it with the function's `def`.",
    r"unexpected keyword": "The function has no argument of this name. Look at its `def`.",
    r"indices must be integers|cannot be interpreted as an integer|only integer": "A whole number is needed here. `//` divides to whole numbers; `/` does not.",
    r"is not subscriptable": "This value has no places to take one from with `[…]`. Which value is it?",
    r"has no attribute": "This object has nothing of that name. What is it, and how is that called there?",
    r"could not be broadcast|cannot be broadcast|shapes .*not aligned|mismatch in its core": "The shapes do not fit together. Print both, and compare them axis by axis.",
    r"cannot reshape": "A reshape keeps all numbers: the product of the new shape has to be that of the old one.",
    r"^KeyError": "The dictionary has no such key yet.",
    r"unhashable": "Lists and arrays cannot be keys or members of a set. Use a tuple, or `id(…)`.",
    r"truth value of an array": "An `if` or `and` needs one answer, and an array has many. Compare number by number with `np.where`.",
    r"dictionary changed size|changed during iteration": "You change what the loop goes through. Loop over a copy: `list(…)`.",
    r"^ZeroDivisionError": "You divide by 0 here. Which input makes it 0?",
}  # fmt: skip


def habit(attempt: Attempt) -> str:
    """What to say of a wrong attempt, if it is a mistake of any exercise; "" if it is none."""
    if attempt.got.error is not None:
        words = f"{type(attempt.got.error).__name__}: {attempt.got.error}"
        return next((help for found, help in ERRORS.items() if re.search(found, words)), "")
    expected, got = attempt.expected, attempt.got.result
    if got is None:
        if attempt.got.printed.strip():
            return (
                "You print the result, and your function gives None back. Write `return` in place of `print`."
            )
        return "Your function gives None back. Is a `return` missing?"
    if isinstance(got, type(expected)) or (kind(got) == kind(expected)):
        return _of_numbers(expected, got)
    return _of_types(expected, got)


def _of_types(expected: Any, got: Any) -> str:
    if callable(got) and hasattr(got, "__name__"):
        return f"This is the function `{got.__name__}` itself. Call it, with brackets."
    if isinstance(got, (map, filter, zip)) or hasattr(got, "gi_frame"):
        return "This gives its items one by one, and only once. Make a list of it: `list(…)`."
    if isinstance(expected, np.ndarray) or is_tensor(expected):
        whole = type(expected).__name__
        if is_tensor(got) or isinstance(got, np.ndarray):
            return f"The numbers may be right, but this is a {type(got).__name__}. A {whole} is asked for."
        if isinstance(got, (list, tuple)):
            return f"This is a {type(got).__name__} of Python's. A {whole} is asked for."
    if isinstance(got, (list, tuple)) and len(got) == 1 and not values(expected, got[0], {}):
        return "The result is right, but it is wrapped once more. Give back what is in it."
    if isinstance(expected, (list, tuple)) and kind(got) in ("number", "ndarray"):
        return "One value comes back where several are asked for."
    return ""


#: What turns the expected numbers into those of a common mistake: what helps.
CHANGES: list[tuple[str, Callable[[np.ndarray], Any]]] = [
    ("The sign is wrong.", lambda x: -x),
    ("It is transposed: rows stand where columns should.", lambda x: x.T if x.ndim > 1 else None),
    ("The order is turned around.", lambda x: x[::-1] if x.ndim and len(x) > 1 else None),
    ("It is twice what it should be.", lambda x: 2 * x),
    ("It is half of what it should be.", lambda x: x / 2),
    ("It is one too large.", lambda x: x + 1),
    ("It is one too small.", lambda x: x - 1),
    ("It is squared once too often, or its root is missing.", lambda x: x * x),
    ("It is 1 divided by what it should be.", lambda x: 1 / x),
    ("The first one is missing.", lambda x: x[1:] if x.ndim and len(x) > 1 else None),
    ("The last one is missing.", lambda x: x[:-1] if x.ndim and len(x) > 1 else None),
    ("It is moved by one place.", lambda x: np.roll(x, 1) if x.ndim and len(x) > 2 else None),
    ("It is moved by one place.", lambda x: np.roll(x, -1) if x.ndim and len(x) > 2 else None),
]


def _of_numbers(expected: Any, got: Any) -> str:
    try:
        right, given = (np.asarray(to_numpy(x), dtype=float) for x in (expected, got))
    except (TypeError, ValueError):
        return ""
    if right.size == 0 or to_numpy(expected).dtype == bool:
        return ""
    with np.errstate(all="ignore"):
        if right.shape == given.shape and np.allclose(right, given):
            return ""  # nearly right: a square of nearly 1 would look the same
        for sentence, change in CHANGES:
            wrong = change(right)
            if (
                wrong is not None
                and wrong.shape == given.shape
                and np.allclose(wrong, given, equal_nan=False)
            ):
                return sentence
    if not np.isfinite(given).all() and np.isfinite(right).all():
        return "A number became too large, or 0 was divided by 0: there is inf or nan. Which step makes it?"
    if right.shape != given.shape and right.size == given.size:
        return f"All numbers are there, but the shape is {given.shape}. Should an axis go, stay, or change places?"
    return ""
