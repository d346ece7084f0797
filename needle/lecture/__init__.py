"""What a lecture is made of besides its prose: exercises that check themselves, and predictions.

A notebook imports the two functions of its own lecture::

    from needle.lecture.lecture_07 import check, predict

- ``predict("too early")`` asks a question. The reader answers first, and then sees what is right, and
  what is wrong about each other answer.
- ``check(derivative)`` checks the reader's function `derivative`. It prints that the answer is right, or
  that it is not tried yet; if it is wrong, it raises `WrongAnswer`, whose message teaches.

What is asked, what is right, and what is said of the usual mistakes stand in ``lecture_07.py``, so that no
cell of the notebook gives an answer away. `exercises` says how to write an exercise, and `predictions` how to
write a question.
"""

from .exercises import WrongAnswer

__all__ = ["WrongAnswer"]
