"""What stands behind each lecture's cells: right answers, mistakes with their sentences, predictions."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

import pytest

from lectures import WrongAnswer


@pytest.fixture(scope="module")
def module(lecture) -> ModuleType:
    """The module with the lecture's exercises and predictions."""
    return import_module(f"lectures.lecture_{lecture.stem[:2]}")


def stubs(notebook, editions):
    """The names of what the exercises ask for, in order; an exercise may ask for several short functions."""
    cells = [notebook.cells[exercise.stub].source for exercise in editions.exercises(notebook)]
    return [name for cell in cells for name in re.findall(r"^(?:def|class) (\w+)", cell, re.MULTILINE)]


def test_the_notebook_asks_for_what_the_module_checks(module, notebook, editions):
    assert stubs(notebook, editions) == list(module.exercises.by_name)


def test_each_mistake_taken_as_an_answer_gets_its_own_sentence(module):
    for name, exercise in module.exercises.by_name.items():
        assert len(exercise.mistakes) >= 3, name
        for sentence, program in exercise.mistakes:
            with pytest.raises(WrongAnswer) as caught:
                exercise.check(program)
            shown = str(caught.value)
            assert shown.endswith(f"hint:     {sentence}"), f"{name}, {program.__name__}:\n{shown}"


def test_near_misses_written_otherwise_get_the_sentence_of_their_mistake(module, beside):
    for name, answers in beside.NEAR_MISSES.items():
        for source, words in answers:
            namespace: dict = {"__name__": "answers"}
            exec("import needle as ndl\nimport numpy as np\n" + source, namespace)
            with pytest.raises(WrongAnswer) as caught:
                module.exercises.by_name[name].check(namespace[name])
            hint = str(caught.value).partition("hint:")[2]
            assert words in hint, f"{source}\n{caught.value}"


def test_every_exercise_has_near_misses(module, beside):
    assert set(beside.NEAR_MISSES) == set(module.exercises.by_name)
    for answers in beside.NEAR_MISSES.values():
        assert len(answers) >= 3
        assert len({words for _, words in answers}) >= 2


def test_the_notebook_asks_each_question_once(module, notebook):
    asked = [
        name
        for cell in notebook.cells
        for name in re.findall(r'^predict\("(.*)"\)$', cell.source, re.MULTILINE)
    ]
    assert asked == list(module.predictions.by_name)


def test_sentences_end_and_are_not_too_long(module):
    for exercise in module.exercises.by_name.values():
        for sentence in [exercise.otherwise, *(hint for hint, _ in exercise.mistakes)]:
            assert sentence.endswith((".", "?", "!")), sentence
            assert len(sentence) <= 240, sentence
