"""How the lectures check answers, and ask questions.

A lecture's module makes one `Lecture`, and its notebook takes four functions from it::

    from lectures.lecture_07 import check, grade, predict, ready

- ``check(derivative)`` checks the reader's function `derivative`. It prints that the answer is right, or
  that it is not tried yet; if it is wrong, it raises `WrongAnswer`, whose message teaches.
- ``ready(derivative)`` gives the reader's function if it is right, else the lecture's own.
- ``predict("too early")`` asks a question. The reader answers first, and then sees what is right, and
  what is wrong about each other answer.
- ``grade("Ada")`` checks all answers again, and writes what passed into a file to hand in.

What is right, and what is said of the usual mistakes, stands in the lecture's module and in the TOML file
beside it, so that no cell of the notebook gives an answer away. ``lectures/README.md`` says how to write them.
"""

from .attempt import Attempt, WrongAnswer, as_array, outcome, untried
from .comparison import (
    Names,
    closely,
    exactly,
    graph,
    is_tensor,
    kind,
    objects,
    order_of,
    show,
    to_numpy,
    values,
    whole,
)
from .contracts import (
    Contract,
    Fault,
    Unmentioned,
    derivatives,
    library_as_found,
    no_complex_step,
    own_work,
    twice_the_same,
    unchanged_inputs,
    unshared,
)
from .exercise import Exercise, Lecture
from .inputs import FILLS, NUMBERS, SCORES, SHAPES, Case, arrays, case, drawn, given, graphs, program_case

__all__ = [
    "FILLS", "NUMBERS", "SCORES", "SHAPES", "Attempt", "Case", "Contract", "Exercise", "Fault", "Lecture", "Names",
    "Unmentioned", "WrongAnswer", "arrays", "as_array", "case", "closely", "derivatives", "drawn", "exactly", "given",
    "graph", "graphs", "is_tensor", "kind", "library_as_found", "no_complex_step", "objects", "order_of", "outcome", "own_work", "program_case",
    "show", "to_numpy", "twice_the_same", "unchanged_inputs", "unshared", "untried", "values", "whole",
]  # fmt: skip
