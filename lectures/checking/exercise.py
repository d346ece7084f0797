"""Exercises that check themselves, and say what went wrong.

An exercise is written as its solution, with the lecture's own example and a strategy that draws more inputs::

    lecture = Lecture(__file__)
    check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade

    @lecture.exercise(case(3.0), draws=drawn(NUMBERS), otherwise="Write down what comes out for 3.")
    def double(x):
        return x + x

The mistakes that people make stand in the TOML file beside the lecture, each with the sentence that helps, as an
edit of the solution's source. Where no edit says it, a mistake is a whole program, below the solution::

    [slips]
    double = [
        ["You squared: that is `x * x`. For 2 both give 4, so try another number.", "x + x", "x * x"],
    ]

`check(answer)` in a notebook finds the exercise by the answer's name. It calls the reader's answer and the
solution with the same inputs. Where the two differ, it looks for the smallest input for which they do, then for
the mistake that gives there what the answer gave, and shows its sentence. So a hint belongs to what went wrong.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import textwrap
import time
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from hypothesis.strategies import SearchStrategy

from ..without_numba import MISSING, edit_cells
from .attempt import Attempt, StillRunning, WrongAnswer, codes_of, outcome, plain_name
from .comparison import Compare, values
from .contracts import STANDARD, Contract
from .habits import habit
from .inputs import Case, smallest
from .marks import cells_of, seal, version
from .questions import Question, question

NUMBER = 100  # of inputs are drawn for an exercise
SAMPLE = 15  # more are drawn to find out which mistake an answer makes
SECONDS = 1  # of the processor are spent on them
ALIKE = 0.75  # of the inputs that fail: there a mistake has to do what the answer does


@dataclass
class Exercise:
    """A question with one right answer, and what is said of the wrong ones.

    Attributes
    ----------
    right : function or class
        The solution. It gives what is expected, for the same inputs.
    cases : tuple of Case
        The lecture's own examples, which come first.
    draws : strategy of Case or None
    number : int
        How many are drawn.
    otherwise : str
        What is said of a wrong answer that is none of the mistakes.
    compare : function
        One of `comparison`.
    use : function
        How an answer is used: ``use(answer, *inputs)``. By default it is called.
    without : mapping from a function to a sentence
        What an answer may not call, and why not.
    own : set of str
        What the answer may not call of a library, by plain names.
    form : str
        How messages write the use of an answer, with a {} for each input: ``"zip_with({})({}, {})"``. By
        default it is a call.
    contracts : tuple of Contract
    mistakes : list of (sentence, program)
    ran : bool
        Whether the solution has run before.
    """

    right: Callable[..., Any]
    cases: tuple[Case, ...]
    draws: SearchStrategy[Case] | None
    number: int
    otherwise: str
    compare: Compare
    use: Callable[..., Any]
    without: Mapping[Callable, str]
    own: frozenset[str]
    form: str
    contracts: tuple[Contract, ...]
    mistakes: list[tuple[str, Callable[[], Any]]] = field(default_factory=list)
    ran: bool = False

    @property
    def name(self) -> str:
        """What the reader's function is called."""
        return self.right.__name__

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Call the solution: so other solutions can use it by its name."""
        return self.right(*inputs, **options)

    def slip(self, sentence: str, *edits: str) -> None:
        """Add a mistake that is an edit of the solution's source.

        Parameters
        ----------
        sentence : str
            What helps whoever made it.
        *edits : str
            What stands in the source, exactly once, and what replaces it: ``slip("…", "a + b", "a - b")``. More
            such pairs may follow.

        Raises
        ------
        ValueError
            If what is to be replaced is not in the source, or more than once.
        """
        source = source_of(self.right)
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} stands {source.count(old)} times in\n{source}")
            source = source.replace(old, new)
        self.mistakes.append((sentence, Edited(source, self.right)))

    def mistake(self, sentence: str) -> Callable[[Any], Any]:
        """Add a mistake that is a program of its own: the decorated function or class."""

        def add(program: Any) -> Any:
            self.mistakes.append((sentence, lambda: program))
            return program

        return add

    def check(self, answer: Any) -> int:
        """Try an answer on each case, and on inputs that are drawn.

        Returns
        -------
        int
            On how many inputs it is right; 0 if it is not tried yet.

        Raises
        ------
        WrongAnswer
            With the smallest input for which it is wrong.
        """
        if self.cases and not self.ran:  # what the first call compiles is compiled before the clock runs
            self.ran = True
            first = self.cases[0].make()
            outcome(self.use, self.right, *(first[name] for name in self.cases[0].chosen))
        for number, asked in enumerate(self.cases, start=1):
            attempt = Attempt(self, asked, answer)
            if attempt.untried:
                return 0
            if attempt.wrong:
                where = f"case {number} of {len(self.cases)}"
                raise WrongAnswer(attempt.message(where, self.hint(attempt, [])))
        if self.draws is None:
            return len(self.cases)
        tried = 0
        failed: list[Attempt] = []

        def is_wrong(asked: Case) -> bool:
            nonlocal tried
            tried += 1
            if failed and isinstance(failed[-1].got.error, StillRunning):
                return asked is failed[-1].case  # do not wait for each smaller input, too
            attempt = Attempt(self, asked, answer, watch=False)
            if attempt.wrong:
                failed.append(attempt)
            return bool(attempt.wrong)

        found = smallest(self.draws, is_wrong, self.number)
        if found is None:
            return len(self.cases) + tried
        attempt = failed[-1] if failed[-1].case is found else Attempt(self, found, answer, watch=False)
        if not attempt.wrong:  # it does not always fail
            attempt = failed[0]
        hint = self.hint(attempt, failed[:8])
        raise WrongAnswer(attempt.message("the smallest input we found", hint))

    def hint(self, attempt: Attempt, failed: Sequence[Attempt]) -> str:
        """What to say of a wrong attempt: the sentence of the mistake that does the same.

        It has to do the same on most of the other inputs that fail. Of several, it is the one that does so most
        often. Other inputs are tried for about a second.
        """
        if attempt.fault:  # a mistake that breaks the same contract says it better
            tried = [(sentence, Attempt(self, attempt.case, make())) for sentence, make in self.mistakes]
            alike = [x for x in tried if x[1].fault == attempt.fault and attempt.is_like(x[1].answer)]
            alike.sort(key=lambda x: x[1].wrong != attempt.wrong)
            return alike[0][0] if alike else attempt.fault
        alike = [
            (sentence, program) for sentence, make in self.mistakes if attempt.is_like(program := make())
        ]
        end = time.process_time() + SECONDS
        others = list(takewhile(lambda other: time.process_time() < end, self.others(attempt, failed)))
        if not alike:
            return self.habit(attempt, others)
        wrong = [other for other in others if other.wrong]

        def score(program: Any) -> tuple[float, float]:
            alike_wrong = sum(other.is_like(program) for other in wrong)
            alike_right = sum(other.is_like(program) for other in others if not other.wrong)
            return alike_wrong / max(len(wrong), 1), alike_right / max(len(others) - len(wrong), 1)

        scores = [score(program) for _, program in alike]
        best = max(range(len(alike)), key=lambda place: scores[place])
        right = len(wrong) < len(others)
        if wrong and (scores[best][0] < ALIKE or (right and scores[best][1] < ALIKE)):
            return self.habit(attempt, others)
        return alike[best][0]

    def habit(self, attempt: Attempt, others: Iterable[Attempt]) -> str:
        """What helps with a mistake of any exercise, if that is what went wrong on most inputs that fail."""
        said = habit(attempt)
        if said and attempt.got.error is None:
            wrong = [habit(other) == said for other in others if other.wrong]
            said = said if sum(wrong) >= ALIKE * len(wrong) else ""
        return said or self.otherwise

    def others(self, attempt: Attempt, failed: Sequence[Attempt]) -> Iterator[Attempt]:
        """The same answer on other inputs: those that failed, and some more, unless it runs for ever."""
        yield from failed
        if not isinstance(attempt.got.error, StillRunning):
            for asked in self.samples:
                yield Attempt(self, asked, attempt.answer, watch=False)

    @cached_property
    def samples(self) -> list[Case]:
        """The cases, and some that are drawn."""
        drawn: list[Case] = []
        if self.draws is not None:
            smallest(self.draws, lambda asked: bool(drawn.append(asked)), SAMPLE)  # type: ignore[func-returns-value]
        return [*self.cases, *drawn]


class Edited:
    """A program that is made of an edited source when it is first needed."""

    def __init__(self, source: str, right: Any):
        self.source, self.right = source, right
        self.made: Any = None

    def __call__(self) -> Any:
        """The function or class that the source defines, with what its module knows."""
        if self.made is None:
            module = inspect.getmodule(self.right)
            names = dict(vars(module)) if isinstance(module, ModuleType) else dict(self.right.__globals__)
            exec(compile(self.source, f"<a slip of {self.right.__name__}>", "exec"), names)
            self.made = names[self.right.__name__]
        return self.made


@cache
def source_of(right: Any) -> str:
    """The source of a function or class, from ``def`` or ``class`` on, at the left margin."""
    source = textwrap.dedent(inspect.getsource(right))
    return source[re.search(r"(?m)^(def|class) ", source).start() :]  # type: ignore[union-attr]


def with_classes_of(answer: Any, right: Any, exercises: Collection[str]) -> Any:
    """A solution that makes objects of the notebook's own classes, where the lecture's module has its twins.

    Classes that are exercises themselves stay the lecture's: the notebook's may be a stub.
    """
    if not isinstance(answer, FunctionType) or not isinstance(right, FunctionType):
        return right
    twins = {
        name: theirs
        for code in codes_of(right)
        for name in code.co_names
        if name not in exercises
        if isinstance(ours := right.__globals__.get(name), type) and ours.__module__ == right.__module__
        if isinstance(theirs := answer.__globals__.get(name), type)
    }
    if not twins:
        return right
    return FunctionType(right.__code__, right.__globals__ | twins, right.__name__, right.__defaults__)


class Lecture:
    """The exercises of one lecture, by the names of the reader's functions, and its questions.

    Parameters
    ----------
    file : str
        The lecture's module. Its questions and slips stand beside it, in a file of the same name that ends
        with ``.toml``.
    """

    def __init__(self, file: str = ""):
        self.exercises: dict[str, Exercise] = {}
        self._being_checked: set[str] = set()
        self.number = Path(file).stem[-2:]
        beside = Path(file).with_suffix(".toml") if file else None
        written = tomllib.loads(beside.read_text(encoding="utf-8")) if beside and beside.exists() else {}
        self.slips: dict[str, list[list[str]]] = written.pop("slips", {})
        edits = written.pop("without_numba", {})
        if MISSING:
            edit_cells(edits.values())
        self.questions = {name: question(name, entries) for name, entries in written.items()}

    def exercise(
        self,
        *cases: Case,
        otherwise: str,
        draws: SearchStrategy[Case] | None = None,
        number: int = NUMBER,
        compare: Compare = values,
        use: Callable[..., Any] | None = None,
        without: Mapping[Callable, str] | None = None,
        own: Sequence[str] = (),
        form: str = "",
        contracts: Sequence[Contract] = (),
        unless: Sequence[Contract] = (),
    ) -> Callable[[Any], Exercise]:
        """Make an `Exercise` of its solution: a decorator, with the attributes of the exercise.

        The contracts of `STANDARD` hold, but for those in `unless`, and those in `contracts` hold, too. `own`
        names what an answer may not call of a library, beside the function of its own name.
        """

        def make(right: Any) -> Exercise:
            holds = tuple(contract for contract in (*STANDARD, *contracts) if contract not in unless)
            names = frozenset(map(plain_name, (*own, right.__name__)))
            called = use or (lambda answer, *inputs: answer(*inputs))
            made = Exercise(
                right, cases, draws, number, otherwise, compare, called, without or {}, names, form, holds
            )
            for sentence, *edits in self.slips.get(made.name, ()):
                made.slip(sentence, *edits)
            self.exercises[made.name] = made
            return made

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
        if name not in self.exercises:
            raise LookupError(f"check({name}): this lecture has the exercises {', '.join(self.exercises)}")
        if number := self._passes(self.exercises[name], answer):
            print(f"{name}: right, {number} of {number} cases.")
            return
        not_tried = f"{name}: not tried yet. Replace the ... in the cell above, then run both cells."
        if "NBGRADER_EXECUTION" in os.environ:  # nbgrader gives the marks to every check that does not raise
            raise WrongAnswer(not_tried)
        print(not_tried)

    def ready(self, answer: Any) -> Any:
        """The reader's answer, if it is right; otherwise the lecture's own stands in, and a line says so.

        So the end of a lecture can use what the reader built, and runs without it, too.
        """
        exercise = self.exercises[answer.__name__]
        if exercise.name in self._being_checked:
            raise RecursionError(f"ready({exercise.name}) is called by {exercise.name} itself")
        try:
            if self._passes(exercise, answer):
                return answer
        except WrongAnswer:
            pass
        print(f"{exercise.name} has not passed its check yet, so the lecture's own stands in for it.")
        return with_classes_of(answer, exercise.right, self.exercises)

    def grade(self, name: str) -> None:
        """Check the answers in the notebook that calls this, and write what passed into a file to hand in."""
        if name.strip().lower() in ("", "your name"):
            print("Write your own name between the quotation marks, and run this cell again.")
            return
        exercises: list[dict[str, Any]] = []
        for exercise in self.exercises.values():
            answer, said = sys._getframe(1).f_globals.get(exercise.name), "not tried"
            if cells := cells_of(answer):
                said = "not yet"
                with suppress(Exception):
                    said = "passed" if self._passes(exercise, answer) else "not tried"
            elif answer is not None:
                said = "left out: define it in a cell that holds Python alone, without a % line"
            kept = cells if said in ("passed", "not yet") else []
            exercises.append({"name": exercise.name, "passed": said == "passed", "cells": kept})
            print(f"{exercise.name:24}{said}")
        marks = {"lecture": self.number, "name": name, "version": version(), "exercises": exercises}
        path = Path(self.number + re.sub(r"\W+", "_", f" {name}")[:40] + ".marks.json")
        path.write_text(json.dumps({**marks, "seal": seal(marks)}, indent=1), encoding="utf-8")
        print(
            f"\nHand in {path}: it lies beside this notebook. In the list of files, right-click it: Download."
        )

    def predict(self, name: str) -> Question:
        """Ask the question of this name.

        Raises
        ------
        LookupError
            If this lecture has no such question.
        """
        if name not in self.questions:
            known = ", ".join(map(repr, self.questions))
            raise LookupError(f"predict({name!r}): this lecture has the questions {known}")
        return self.questions[name]

    def _passes(self, exercise: Exercise, answer: Any) -> int:
        self._being_checked.add(exercise.name)
        try:
            return exercise.check(answer)
        finally:
            self._being_checked.discard(exercise.name)
