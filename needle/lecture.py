"""Exercises that check themselves: a lecture poses an exercise, and `check` tells you how your answer did.

An exercise is a function whose body ends in ``return ...``. The cell after it checks the function::

    check(
        double,
        case(3, expect=6),
        case(-1, expect=-2, hint="twice a negative number is negative"),
    )

- If the exercise is untried (it still returns ``...``), `check` says so, and the notebook runs on.
- If the answer is right, `check` says so.
- If it is wrong, `check` raises `WrongAnswer`. The message names the input, the expected answer and yours.

Nothing here knows what a Tensor is: `check` compares the numbers of anything that has a ``numpy()`` method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Case", "WrongAnswer", "case", "check"]


class WrongAnswer(AssertionError):
    """An answer is not right yet. The message says for which input, and why."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this. The message alone helps; the lines of `check` would hide it.
        return [str(self)]


@dataclass(frozen=True)
class Case:
    """One input of an exercise, the expected answer, and a hint for a wrong one."""

    inputs: tuple[Any, ...]
    expect: Any
    hint: str = ""


def case(*inputs: Any, expect: Any, hint: str = "") -> Case:
    """The answer that an exercise should give for `inputs`.

    Parameters
    ----------
    *inputs
        What `check` calls the exercise's function with.
    expect
        A number, text, array or Tensor, or a list of them.
    hint
        One sentence, shown when this case fails.
    """
    return Case(inputs, expect, hint)


def check(exercise: Callable[..., Any], *cases: Case, tolerance: float = 1e-4) -> None:
    """Call `exercise` on each case in turn, and say how the answers did.

    Parameters
    ----------
    exercise
        The reader's function. As long as it returns ``...`` it counts as not tried.
    *cases
        Made by `case`. The check ends at the first that fails.
    tolerance
        Numbers may differ by this much, absolutely or relatively.

    Raises
    ------
    WrongAnswer
        If an answer differs from the expected one.
    Exception
        Anything that `exercise` raises, after a message that names the input.
    """
    name = getattr(exercise, "__qualname__", repr(exercise)).rpartition("<locals>.")[2]
    names = _names_of_tensors(getattr(exercise, "__globals__", {}))
    for number, asked in enumerate(cases, start=1):
        call = f"{name}({', '.join(_show(value, names) for value in asked.inputs)})"
        report = [*_meanings(asked.inputs, names), _line("expected", _show(asked.expect, names))]
        hint = [_line("hint", asked.hint)] if asked.hint else []
        try:
            got = exercise(*asked.inputs)
        except Exception:
            print("\n".join([f"{call} raised an exception (case {number} of {len(cases)}).", *report, *hint]))
            raise
        if _untried(got):
            print(f"{name}: not tried yet. Replace the ... in the cell above, then run both cells.")
            return
        if difference := _difference(asked.expect, got, tolerance):
            headline = f"{call} is not right yet (case {number} of {len(cases)})."
            report += [_line("got", _show(got, names)), _line("so", difference), *hint]
            raise WrongAnswer("\n".join([headline, *report]))
    print(f"{name}: right, {len(cases)} of {len(cases)} cases.")


def _untried(answer: Any) -> bool:
    return answer is ... or (isinstance(answer, (list, tuple)) and any(item is ... for item in answer))


def _difference(expected: Any, got: Any, tolerance: float) -> str:
    """Say in words how `got` differs from `expected`; "" if it does not."""
    if _kind(expected) != _kind(got):
        missing_return = "; is a `return` missing?" if got is None else ""
        return f"the type is {_kind(got)}, but should be {_kind(expected)}{missing_return}"
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(got):
            return f"the length is {len(got)}, but should be {len(expected)}"
        for position, pair in enumerate(zip(expected, got, strict=True)):
            if difference := _difference(*pair, tolerance):
                return f"item {position} differs: {difference}"
        return ""
    if _is_numeric(expected):
        return _numeric_difference(_to_numpy(expected), _to_numpy(got), tolerance)
    return "" if expected == got else "they are not equal"


def _numeric_difference(expected: np.ndarray, got: np.ndarray, tolerance: float) -> str:
    if expected.shape != got.shape:
        return f"the shape is {got.shape}, but should be {expected.shape}"
    right = np.isclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    if right.all():
        return ""
    if right.ndim == 0:
        return f"{got} should be {expected}"
    wrong = tuple(int(index) for index in np.argwhere(~right)[0])
    position = wrong[0] if len(wrong) == 1 else wrong
    return f"at index {position}, {got[wrong]} should be {expected[wrong]}"


def _kind(value: Any) -> str:
    if isinstance(value, (bool, int, float, np.number, np.bool)):
        return "number"
    if isinstance(value, (list, tuple)):
        return "list"
    return type(value).__name__


def _is_numeric(value: Any) -> bool:
    return _kind(value) == "number" or isinstance(value, np.ndarray) or _is_tensor(value)


def _is_tensor(value: Any) -> bool:
    return callable(getattr(value, "numpy", None)) and not isinstance(value, type)


def _to_numpy(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if _is_tensor(value) else value)


def _names_of_tensors(namespace: dict[str, Any]) -> dict[int, str]:
    """The name that the notebook gave to each of its Tensors, by id; the first name, if there are several."""
    names: dict[int, str] = {}
    for name, value in namespace.items():
        if _is_tensor(value) and not name.startswith("_"):
            names.setdefault(id(value), name)
    return names


def _show(value: Any, names: dict[int, str]) -> str:
    """A Tensor by its name, if it has one; everything else as Python shows it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_show(item, names) for item in value)}]"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return names.get(id(value)) or repr(value)


def _meanings(values: tuple[Any, ...], names: dict[int, str]) -> list[str]:
    """A line with the value of each named Tensor, since its name alone does not say what went in."""
    return [_line("where", f"{names[id(value)]} = {value!r}") for value in values if id(value) in names]


def _line(label: str, text: str) -> str:
    return f"  {label + ':':<10}{text}".replace("\n", "\n" + " " * 12)
