"""What stands behind each lecture's cells: solutions, mistakes with their sentences, questions."""

from __future__ import annotations

import ast
import re
from collections import Counter
from importlib import import_module
from types import ModuleType

import pytest

from lectures.checking import WrongAnswer
from lectures.checking.exercise import source_of

from .conftest import LECTURES


@pytest.fixture(scope="module")
def module(lecture) -> ModuleType:
    """The module with the lecture's exercises and questions."""
    return import_module(f"lectures.lecture_{lecture.stem[:2]}")


def stubs(notebook, editions):
    """The names of what the exercises ask for, in order; an exercise may ask for several short functions."""
    cells = [notebook.cells[exercise.stub].source for exercise in editions.exercises(notebook)]
    return [name for cell in cells for name in re.findall(r"^(?:def|class) (\w+)", cell, re.MULTILINE)]


class Bare(ast.NodeTransformer):
    """Leaves out what a program does not need to do the same: docstrings, annotations, decorators."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        for name, nothing in (("annotation", None), ("returns", None), ("decorator_list", [])):
            if hasattr(node, name):
                setattr(node, name, nothing)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node


def bare(source: str) -> dict[str, str]:
    """Each function and class at the left margin of a source, by name, as Python reads it."""
    parts = [x for x in ast.parse(source).body if isinstance(x, ast.FunctionDef | ast.ClassDef)]
    return {x.name: ast.unparse(Bare().visit(x)) for x in parts}


def test_the_notebook_asks_for_what_the_module_checks(module, notebook, editions):
    assert stubs(notebook, editions) == list(module.lecture.exercises)


def test_the_notebook_shows_the_solution_that_checks(module, notebook, editions):
    shown = {}
    for exercise in editions.exercises(notebook):
        shown |= bare(exercise.code)
    for name, exercise in module.lecture.exercises.items():
        assert shown[name] == bare(source_of(exercise.right))[name]


def test_each_mistake_taken_as_an_answer_gets_its_own_sentence(module):
    for name, exercise in module.lecture.exercises.items():
        assert len(exercise.mistakes) >= 3, name
        for sentence, program in exercise.mistakes:
            with pytest.raises(WrongAnswer) as caught:
                exercise.check(program())
            shown = str(caught.value)
            assert shown.endswith(f"hint:     {sentence}"), f"{name}\n{shown}"


def test_the_notebook_asks_each_question_once(module, notebook):
    asked = [
        name
        for cell in notebook.cells
        for name in re.findall(r'^predict\("(.*)"\)$', cell.source, re.MULTILINE)
    ]
    assert asked == list(module.lecture.questions)


def test_sentences_end_and_are_not_too_long(module):
    for exercise in module.lecture.exercises.values():
        for sentence in [exercise.otherwise, *(hint for hint, _ in exercise.mistakes)]:
            assert sentence.endswith((".", "?", "!")), sentence
            assert len(sentence) <= 240, sentence


def test_right_answers_stand_in_every_place_equally_often():
    """Of all questions with so many answers to choose from, by the place of the right one."""
    places: dict[int, Counter[int]] = {}
    for path in LECTURES:
        questions = import_module(f"lectures.lecture_{path.stem[:2]}").lecture.questions.values()
        for question in questions:
            marks = re.findall(r"</summary><p>([✓✗]) ", question.page)
            if marks:
                places.setdefault(len(marks), Counter())[marks.index("✓")] += 1
    for number, found in places.items():
        counts = [found[place] for place in range(number)]
        assert max(counts) - min(counts) <= max(2, sum(counts) // 4), f"of {number} answers: {counts}"
