"""Exercises that check themselves: a lecture states an exercise, `check` tells the reader how it went.

An exercise is a function whose body ends in ``return ...``. The cell after it checks the function::

    check(
        double,
        case(3, expect=6),
        case(-1, expect=-2, hint="twice a negative number is negative"),
    )

- An untried exercise (it still returns ``...``) prints so, and the notebook runs on.
- A right one prints that it is right.
- A wrong one raises `WrongAnswer`, which says for which input, what was expected and what came.

Nothing here knows what a Tensor is: anything with a ``numpy()`` method is compared by its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Case", "WrongAnswer", "case", "check"]


class WrongAnswer(AssertionError):
    """An exercise's answer is not right yet. The message says for which input, and why."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this: the message alone helps; the frames of `check` would hide it.
        return [str(self)]


@dataclass(frozen=True)
class Case:
    """One input of an exercise, the answer expected for it, and a hint for whoever gets it wrong."""

    inputs: tuple[Any, ...]
    expect: Any
    hint: str = ""


def case(*inputs: Any, expect: Any, hint: str = "") -> Case:
    """The answer that an exercise should give for `inputs`.

    Parameters
    ----------
    *inputs
        What the exercise's function is called with.
    expect
        A number, text, array or Tensor, or a list of them.
    hint
        One sentence, shown when this case fails.
    """
    return Case(inputs, expect, hint)


def check(exercise: Callable[..., Any], *cases: Case, tolerance: float = 1e-4) -> None:
    """Call `exercise` on each case in turn, and say how it went.

    Parameters
    ----------
    exercise
        The reader's function. While it returns ``...`` it counts as not tried.
    *cases
        Made by `case`; the first that fails ends the check.
    tolerance
        Numbers may differ by this much, absolutely or relatively.

    Raises
    ------
    WrongAnswer
        If an answer differs from the expected one.
    Exception
        Whatever `exercise` raises passes through, after a message that says for which input.
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
    """In words, what makes `got` another answer than `expected`; "" if nothing does."""
    if _kind(expected) != _kind(got):
        missing_return = "; is a `return` missing?" if got is None else ""
        return f"a {_kind(expected)} was expected, a {_kind(got)} came{missing_return}"
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(got):
            return f"length {len(expected)} was expected, length {len(got)} came"
        for position, pair in enumerate(zip(expected, got, strict=True)):
            if difference := _difference(*pair, tolerance):
                return f"item {position} differs: {difference}"
        return ""
    if _is_numeric(expected):
        return _numeric_difference(_to_numpy(expected), _to_numpy(got), tolerance)
    return "" if expected == got else "they are not equal"


def _numeric_difference(expected: np.ndarray, got: np.ndarray, tolerance: float) -> str:
    if expected.shape != got.shape:
        return f"shape {expected.shape} was expected, shape {got.shape} came"
    right = np.isclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    if right.all():
        return ""
    if right.ndim == 0:
        return f"{got} is not {expected}"
    wrong = tuple(int(index) for index in np.argwhere(~right)[0])
    position = wrong[0] if len(wrong) == 1 else wrong
    return f"at index {position}, {got[wrong]} is not {expected[wrong]}"


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
    """By identity, the name that the notebook gave to each of its Tensors (the first one, if several)."""
    names: dict[int, str] = {}
    for name, value in namespace.items():
        if _is_tensor(value) and not name.startswith("_"):
            names.setdefault(id(value), name)
    return names


def _show(value: Any, names: dict[int, str]) -> str:
    """A Tensor that has a name is shown by it; everything else as Python shows it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_show(item, names) for item in value)}]"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return names.get(id(value)) or repr(value)


def _meanings(values: tuple[Any, ...], names: dict[int, str]) -> list[str]:
    """A line for each named Tensor, since a name alone does not say what went in."""
    return [_line("where", f"{names[id(value)]} = {value!r}") for value in values if id(value) in names]


def _line(label: str, text: str) -> str:
    return f"  {label + ':':<10}{text}".replace("\n", "\n" + " " * 12)
