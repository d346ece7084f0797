"""Exercises that check themselves, and say what went wrong.

An exercise is written as its right answer, with the cases to try it on. Below it stand the mistakes that
people make, each as the program that makes it, with the sentence that helps::

    exercises = Exercises()

    @exercises.exercise(case(3.0), case(-1.0), otherwise="Write down what comes out for 3.")
    def double(x):
        return x + x

    @double.mistake("You squared: that is `x * x`. For 2 both give 4, so try another number.")
    def squared(x):
        return x * x

`check(answer)` in a notebook finds the exercise by the answer's name. It makes fresh inputs for each case,
and calls the reader's answer and the right one. Where the two differ, it looks for the mistake that gives
what the reader's answer gave, and shows its sentence. So a hint belongs to what went wrong, not to a case.
"""

from __future__ import annotations

import linecache
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from ..modes import mode
from .comparison import Compare, exactly, is_tensor, show, shown_array, to_numpy, values

__all__ = ["Case", "Exercise", "Exercises", "WrongAnswer", "case", "given"]


KEPT = (
    "Your list is made only once: as a default, as in `order=[]`, or outside of the function. What one call "
    "puts into it is still there in the next. Make it inside the function."
)
MOST_SECONDS = 20  # for an answer, in each case
ENDLESS = "It would run for ever. Look at your loops: what brings each one nearer to its end, round by round?"
UNKNOWN = "Python does not know this name. Is it spelled right, and does a line above give it a value?"


class WrongAnswer(AssertionError):
    """An answer is not right yet. The message says for which input, and why."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this. The message alone helps; the lines of `check` would hide it.
        return [str(self)]


@dataclass(frozen=True)
class Case:
    """What an answer is called with, made anew each time.

    Attributes
    ----------
    make : function
        Gives all that the case is about, by the names that the lecture uses.
    chosen : tuple of str
        Which of these the answer gets, in order.
    program : str
        The lines that make it, for the message, where the values alone do not show what the case is.
    """

    make: Callable[[], dict[str, Any]]
    chosen: tuple[str, ...]
    program: str = ""


def case(*inputs: Any) -> Case:
    """A case of plain values: numbers, texts, arrays, or lists of them."""
    made = {str(position): value for position, value in enumerate(inputs)}
    return Case(lambda: deepcopy(made), tuple(made))


def given(make: Callable[[], dict[str, Any]], *chosen: str, program: str = "") -> Case:
    """A case that builds its inputs: `make()` returns them by name, and `chosen` are passed on.

    A message shows the lines of `program`, if there are any, as what made them.

    Examples
    --------
    >>> def v1_to_v4():
    ...     v1 = ndl.Tensor([0.0])
    ...     v2 = ndl.exp(v1)
    ...     return {"v1": v1, "v2": v2}
    >>> given(v1_to_v4, "v2", "v1")  # the answer is called with v2 and v1
    """
    return Case(make, chosen, program)


@dataclass(frozen=True)
class Outcome:
    """What a program did in a case: its result, or the exception that ended it."""

    result: Any = None
    error: BaseException | None = None


@dataclass
class Exercise:
    """A question with one right answer, and what is said of the wrong ones.

    Attributes
    ----------
    right : function
        Gives what is expected, for the same inputs.
    cases : tuple of Case
    otherwise : str
        What is said of a wrong answer that is none of the mistakes.
    compare : function
        One of `needle.lecture.comparison`.
    use : function
        How an answer is used: ``use(answer, *inputs)``. By default it is called.
    without : mapping from a function to a sentence
        What an answer may not call, and why not.
    form : str
        How messages write the use of an answer, with a {} for each input: ``"zip_with({})({}, {})"``. By
        default it is a call.
    mistakes : list of (sentence, function)
    """

    right: Callable[..., Any]
    cases: tuple[Case, ...]
    otherwise: str
    compare: Compare
    use: Callable[..., Any]
    without: Mapping[Callable, str]
    form: str = ""
    mistakes: list[tuple[str, Callable[..., Any]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the reader's function is called."""
        return self.right.__name__

    def mistake(self, sentence: str) -> Callable[[Callable], Callable]:
        """Add a mistake: the decorated program makes it, and `sentence` helps whoever made it."""

        def add(program: Callable) -> Callable:
            self.mistakes.append((sentence, program))
            return program

        return add

    def check(self, answer: Any) -> bool:
        """Try an answer on each case, in turn.

        Returns
        -------
        bool
            Whether it is right; False if it is not tried yet.

        Raises
        ------
        WrongAnswer
            At the first case in which it is wrong.
        """
        for number, asked in enumerate(self.cases, start=1):
            attempt = Attempt(self, asked, answer)
            if attempt.untried:
                return False
            if attempt.wrong:
                raise WrongAnswer(attempt.message(f"case {number} of {len(self.cases)}", self.hint(attempt)))
        return True

    def hint(self, attempt: Attempt) -> str:
        """What to say of a wrong attempt: the sentence of the mistake that does the same.

        If several do the same in this case, the one that does so in most of the cases.
        """
        if attempt.fault:
            return attempt.fault
        alike = [mistake for mistake in self.mistakes if attempt.is_like(mistake[1])]
        if not alike:
            return attempt.habit or self.otherwise
        if len(alike) > 1:
            others = [Attempt(self, asked, attempt.answer) for asked in self.cases]
            alike.sort(key=lambda mistake: -sum(other.is_like(mistake[1]) for other in others))
        return alike[0][0]


class Attempt:
    """An answer that is tried on one case.

    Attributes
    ----------
    untried : bool
        Whether the stub's ``...`` is still there.
    wrong : str
        What is wrong, in words; "" if the answer is right in this case.
    fault : str
        What is said of an answer that does what none may do: change its inputs, say.
    habit : str
        What is said of a wrong answer if nothing else is known: that it keeps something between calls, say.
    """

    def __init__(self, exercise: Exercise, asked: Case, answer: Any):
        self.exercise = exercise
        self.answer = answer
        self.program = asked.program
        everything = asked.make()
        self.inputs = [everything[name] for name in asked.chosen]
        named = ((name, value) for name, value in everything.items() if name.isidentifier())
        self.names = {id(value): name for name, value in named if has_name(value)}
        before = {name: Snapshot(value) for name, value in everything.items()}
        state = library_state()
        kept = [(x, len(x)) for x in kept_between_calls(answer)]
        with watched(exercise.without) as called, time_limit(MOST_SECONDS):
            self.got = outcome(exercise.use, answer, *self.inputs)
        self.habit = KEPT if any(len(x) != was for x, was in kept) else ""
        if isinstance(self.got.error, NameError):
            self.habit = UNKNOWN
        if isinstance(self.got.error, StillRunning):
            self.habit = ENDLESS
        left = restore(state)
        self.untried = self.got.error is None and untried(self.got.result)
        self.expected: Any = None
        self.wrong = self.fault = ""
        if self.untried:
            return

        for name, value in everything.items():
            if change := before[name].change(value):
                what = name if name.isidentifier() else "its input"
                self.wrong = f"your answer changes {what}: {change}"
                self.fault = "Leave the inputs as they are, and make something new."
                return
        if called:
            self.wrong = f"your answer calls `{called[0].__qualname__}`"
            self.fault = exercise.without[called[0]]
            return
        if left:
            self.wrong, self.fault = left
            return

        right = outcome(exercise.use, exercise.right, *self.inputs)
        if right.error is not None:
            raise right.error
        self.expected = right.result
        if self.got.error is not None:
            self.wrong = f"{type(self.got.error).__name__}: {self.got.error}"
            if "ellipsis" in self.wrong:
                self.fault = "There is still a `...` in your answer. Write your part in its place."
        elif difference := exercise.compare(self.expected, self.got.result, self.names):
            self.wrong = difference
            if self.got.result is None:
                self.fault = "Your function gives None back. Is a `return` missing?"

    def is_like(self, program: Callable[..., Any]) -> bool:
        """Whether `program` does in this case what the answer did."""
        other = outcome(self.exercise.use, program, *self.inputs)
        if self.got.error is not None or other.error is not None:
            return pattern(self.got.error) == pattern(other.error)
        return not exactly(self.exercise.compare)(other.result, self.got.result, self.names)

    def message(self, where: str, hint: str) -> str:
        """All that is said of a wrong attempt, line by line."""
        shown = [show(value, self.names, exact=True) for value in self.inputs]
        call = self.exercise.form.format(*shown) or f"{self.exercise.name}({', '.join(shown)})"
        failed = "stopped with an exception" if self.got.error is not None else "is not right yet"
        lines = [f"{call} {failed} ({where})."]
        if self.program:
            lines.append(line("made by", self.program))
        operands = [x for value in self.inputs for x in getattr(value, "inputs", ()) if id(x) in self.names]
        for value in {id(value): value for value in [*self.inputs, *operands]}.values():
            if is_tensor(value):
                lines.append(line("where", f"{show(value, self.names)} = {shown_array(value)}"))
            elif isinstance(value, np.ndarray) and id(value) in self.names:
                lines.append(line("where", f"{self.names[id(value)]} = {value.tolist()}"))
        if self.expected is not None:
            lines.append(line("expected", show(self.expected, self.names)))
        if self.got.error is not None:
            if number_and_text := line_of(self.got.error, self.answer):
                lines.append(line("at line", "{}: {}".format(*number_and_text)))
            lines.append(line("error", self.wrong))
        else:
            if self.expected is not None:
                lines.append(line("got", show(self.got.result, self.names)))
            lines.append(line("so", self.wrong))
        return "\n".join([*lines, line("hint", hint)])


class Exercises:
    """The exercises of one lecture, by the names of the reader's functions."""

    def __init__(self) -> None:
        self.by_name: dict[str, Exercise] = {}
        self._being_checked: set[str] = set()

    def exercise(
        self,
        *cases: Case,
        otherwise: str,
        compare: Compare = values,
        use: Callable[..., Any] | None = None,
        without: Mapping[Callable, str] | None = None,
        form: str = "",
    ) -> Callable[[Callable], Any]:
        """Make an `Exercise` of its right answer: a decorator, with the attributes of the exercise."""

        def make(right: Callable) -> Exercise:
            called = use or (lambda answer, *inputs: answer(*inputs))
            exercise = Exercise(right, cases, otherwise, compare, called, without or {}, form)
            self.by_name[exercise.name] = exercise
            return exercise

        return make

    def check(self, answer: Any) -> None:
        """Check the reader's answer to the exercise of this name, and print how it did.

        Raises
        ------
        WrongAnswer
            If it is wrong; also if it is not tried yet, where nbgrader gives marks.
        LookupError
            If this lecture has no exercise of this name.
        """
        name = getattr(answer, "__name__", repr(answer))
        if name not in self.by_name:
            raise LookupError(f"check({name}): this lecture has the exercises {', '.join(self.by_name)}")
        exercise = self.by_name[name]
        if self._passes(exercise, answer):
            print(f"{name}: right, {len(exercise.cases)} of {len(exercise.cases)} cases.")
            return
        not_tried = f"{name}: not tried yet. Replace the ... in the cell above, then run both cells."
        if "NBGRADER_EXECUTION" in os.environ:  # nbgrader gives the marks to every check that does not raise
            raise WrongAnswer(not_tried)
        print(not_tried)

    def ready(self, answer: Any) -> Any:
        """The reader's answer, if it is right; otherwise the lecture's own stands in, and a line says so.

        So the end of a lecture can use what the reader built, and runs without it, too.
        """
        exercise = self.by_name[answer.__name__]
        if exercise.name in self._being_checked:
            raise RecursionError(f"ready({exercise.name}) is called by {exercise.name} itself")
        try:
            if self._passes(exercise, answer):
                return answer
        except WrongAnswer:
            pass
        print(f"{exercise.name} has not passed its check yet, so the lecture's own stands in for it.")
        return exercise.right

    def _passes(self, exercise: Exercise, answer: Any) -> bool:
        self._being_checked.add(exercise.name)
        try:
            return exercise.check(answer)
        finally:
            self._being_checked.discard(exercise.name)


def line(label: str, text: str) -> str:
    """A line of a message; the lines of a longer text stay in its column."""
    return f"  {label + ':':<10}{text}".replace("\n", "\n" + " " * 12)


def kept_between_calls(answer: Any) -> list[Any]:
    """The lists and the like that a function finds again in its next call: defaults, and what is outside."""
    names = getattr(getattr(answer, "__code__", None), "co_names", ())
    outside = [getattr(answer, "__globals__", {}).get(name) for name in names]
    return [
        x for x in (*outside, *(getattr(answer, "__defaults__", None) or ())) if type(x) in (list, dict, set)
    ]


def outcome(program: Callable[..., Any], *inputs: Any) -> Outcome:
    """Call a program, and keep what it did. NumPy's warnings would only hide what the check says."""
    try:
        with np.errstate(all="ignore"):
            return Outcome(result=program(*inputs))
    except (Exception, StillRunning) as error:
        return Outcome(error=error)


class StillRunning(BaseException):
    """An answer has not come to an end. What it catches itself are mistakes, and not this."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Within this block, raise `StillRunning` after so many seconds. Windows and threads know no limit."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise StillRunning(f"no answer after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pattern(error: BaseException | None) -> tuple[type, str]:
    """What two exceptions of the same mistake have in common: all but the names and numbers in them.

    Types that Python itself brings stay: it matters whether a list was called, or None taken apart.
    """
    own = "'(?!(?:NoneType|list|tuple|dict|set|str|function)')[^']*'"
    return type(error), re.sub(rf"{own}|\d+", "", str(error))


def untried(result: Any) -> bool:
    """Whether a result still has a ``...`` of the stub in it."""
    return result is ... or (isinstance(result, (list, tuple)) and any(item is ... for item in result))


def has_name(value: Any) -> bool:
    """Whether messages call a value by its name: numbers and texts are shown themselves."""
    return not isinstance(value, (bool, int, float, complex, str, bytes, tuple, type(None)))


class Snapshot:
    """What a value was, to see whether somebody changed it: its numbers or items, and a Tensor's history."""

    def __init__(self, value: Any):
        self.was = self._state(value)

    @staticmethod
    def _state(value: Any) -> Any:
        if is_tensor(value):
            history = (id(getattr(value, "op", None)), [id(i) for i in getattr(value, "inputs", ())])
            return to_numpy(value).copy(), history
        if isinstance(value, np.ndarray):
            return value.copy(), None
        if isinstance(value, Mapping):
            return {key: Snapshot._state(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [Snapshot._state(item) for item in value]
        return value

    def change(self, value: Any) -> str:
        """What changed, in words; "" if nothing did."""
        now = self._state(value)
        if same(self.was, now):
            return ""
        if isinstance(self.was, tuple) and isinstance(now, tuple) and not same(self.was[0], now[0]):
            was, is_now = np.array2string(self.was[0]), np.array2string(now[0])
            return f"it was {was}, and is {is_now}" + (", apart from rounding" if was == is_now else "")
        if isinstance(value, list) and all(isinstance(item, (int, float, str)) for item in self.was):
            return f"it was {self.was!r}, and is now {value!r}"
        return f"it is now {value!r}"


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal, to the bit."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one is other or (type(one) is type(other) and bool(one == other))


def library_state() -> tuple[Any, ...]:
    """What an answer could leave changed behind: the modes, and NumPy's random state."""
    return mode.get(), np.random.get_state()


def restore(state: tuple[Any, ...]) -> tuple[str, str] | None:
    """Put the library back as it was. If something had changed: what, and what to do instead."""
    was, random = state
    now, random_now = mode.get(), np.random.get_state()
    mode.set(was)
    np.random.set_state(random)
    if now != was:
        wrong = "your answer leaves the library in another mode, lazy or without gradients"
        return wrong, "Leave the library as you found it: `with ndl.lazy():` ends where its block ends."
    if not same(random, random_now):
        wrong = "your answer draws from NumPy's global random numbers, so others would get other ones"
        return wrong, "Draw from a generator: the one that you are given, or `np.random.default_rng(0)`."
    return None


@contextmanager
def watched(functions: Iterable[Callable]) -> Iterator[list[Callable]]:
    """Within this block, note which of these functions are called, by whatever name."""
    codes = {getattr(function, "__code__", None): function for function in functions}
    called: list[Callable] = []
    if not codes:
        yield called
        return

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code in codes:
            called.append(codes[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before)


def line_of(error: BaseException, answer: Any) -> tuple[int, str] | None:
    """The last line of the reader's own module that an error came through: its number and its text."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__name__") == getattr(answer, "__module__", None):
            text = linecache.getline(frame.f_code.co_filename, trace.tb_lineno).strip()
            found = (trace.tb_lineno, text) if text else None
        trace = trace.tb_next
    return found
