"""Exercises: what a reader is told whose answer is untried, right, wrong or broken."""

from __future__ import annotations

import time
from functools import lru_cache, partial
from textwrap import indent
from types import SimpleNamespace

import numpy as np
import pytest

import needle as ndl
from lectures.checking import (
    Lecture,
    WrongAnswer,
    arrays,
    as_array,
    case,
    derivatives,
    drawn,
    given,
    graph,
    graphs,
    objects,
    order_of,
    program_case,
    unshared,
    values,
    whole,
)

LINES = "x = ndl.Tensor([1.0, 2.0])\ny = x * 3"


def two_nodes():
    x = ndl.Tensor([1.0, 2.0])
    return {"x": x, "y": x * 3}


def product():
    a, b = ndl.Tensor([2.0, 3.0]), ndl.Tensor(np.arange(26.0).reshape(13, 2))
    return {"a": a, "b": b, "node": a * b}


def exercise(right, *cases, **options):
    """The exercise with this right answer, by the name `answer`, and its check."""
    lecture = Lecture()
    right.__name__ = "answer"
    made = lecture.exercise(*cases, otherwise="Look again.", **options)(right)

    def check(answer):
        answer.__name__ = "answer"
        lecture.check(answer)

    return made, check


def refusal(check, answer):
    with pytest.raises(WrongAnswer) as caught:
        check(answer)
    assert caught.value._render_traceback_() == [str(caught.value)], "a notebook shows the message alone"
    return str(caught.value)


def hint(check, answer):
    """The last line alone: another may quote the answer's source."""
    return refusal(check, answer).splitlines()[-1]


def defined(source, name="answer", **known):
    """The function of this name that a cell of a notebook defines."""
    namespace = {"np": np, "partial": partial, "lru_cache": lru_cache, "__name__": "answers"} | known
    exec(source, namespace)
    return namespace[name]


@pytest.fixture
def doubling():
    return exercise(lambda x: 2 * x, case(2), case(3))


# What `check` prints and raises


def test_untried_and_right_answers_are_said_to_be_so_and_only_wrong_ones_raise(doubling, capsys, monkeypatch):
    made, check = doubling
    check(lambda x: ...)
    check(lambda x: [x, ...])
    check(lambda x: x + x)
    untried = "answer: not tried yet. Replace the ... in the cell above, then run both cells.\n"
    assert capsys.readouterr().out == untried * 2 + "answer: right, 2 of 2 cases.\n"
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert "not tried yet" in refusal(check, lambda x: ...), "it gets no marks"
    lecture = Lecture()
    lecture.exercise(case(1), otherwise="")(made.right)
    with pytest.raises(LookupError, match="this lecture has the exercises answer"):
        lecture.check(refusal)


MESSAGES = {
    "input, expected and given answer, hint": (
        (lambda x: 2 * x, case(2), case(3)),
        lambda x: x * x,
        ["answer(3) is not right yet (case 2 of 2).", "  expected: 6", "  got:      9"]
        + ["  so:       9 should be 6", "  hint:     Look again."],
    ),
    "several results by their names": (
        (lambda x: {"sum": 2.0 * x, "left over": [0]}, case(1)),
        lambda x: {"sum": 3.0 * x, "left over": [0]},
        ["answer(1) is not right yet (case 1 of 1).", "  expected: sum: 2, left over: [0]"]
        + ["  got:      sum: 3, left over: [0]", "  so:       sum: 3.0 should be 2.0"],
    ),
    "a tuple": (
        (lambda shape: (*shape, 1), case((2, 3))),
        lambda shape: shape,
        ["answer((2, 3)) is not right yet (case 1 of 1).", "  expected: (2, 3, 1)", "  got:      (2, 3)"],
    ),
    "names of nodes, operands, long arrays": (
        (lambda node: node.inputs[0] + 1, given(product, "node")),
        lambda node: node * 2,
        ["answer(node) is not right yet (case 1 of 1)."]
        + ["  where:    node = Tensor of shape (13, 2): 0, 3, 4, 9, …"]
        + ["  where:    a = needle.Tensor([2. 3.])", "  where:    b = Tensor of shape (13, 2): 0, 1, 2, 3, …"]
        + ["  expected: needle.Tensor([3. 4.])", "  got:      Tensor of shape (13, 2): 0, 6, 8, 18, …"],
    ),
    "the lines that made the case": (
        (lambda y: y + 1, given(two_nodes, "y", program=LINES)),
        lambda y: y,
        ["answer(y) is not right yet (case 1 of 1).", "  made by:  x = ndl.Tensor([1.0, 2.0])"]
        + ["            y = x * 3", "  where:    y = needle.Tensor([3. 6.])"],
    ),
    "an array of several lines": (
        (lambda: np.eye(2), case()),
        lambda: np.ones((2, 2)),
        ["answer() is not right yet (case 1 of 1).", "  expected: array([[1., 0.],"]
        + [" " * 12 + "       [0., 1.]])"],
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_says(name):
    asked, answer, lines = MESSAGES[name]
    assert refusal(exercise(*asked)[1], answer).splitlines()[: len(lines)] == lines


def test_plain_values_are_shown_as_they_are_in_the_form_of_their_use():
    _, check = exercise(
        lambda f: lambda numbers: [f(x) for x in numbers],
        case(abs, [-1.0, 0.1 + 0.2]),
        use=lambda answer, f, numbers: answer(f)(numbers),
        form="each({})({})",
    )
    message = refusal(check, lambda f: lambda numbers: numbers)
    assert message.startswith("each(abs)([-1, 0.30000000000000004]) is not right yet (case 1 of 1).")


def test_an_answer_may_not_take_itself_for_ready():
    lecture = Lecture()

    @lecture.exercise(case(3), otherwise="Write it yourself.")
    def double(x):
        return 2 * x

    right = double.right

    def double(x):
        return lecture.ready(double)(x)

    assert "ready(double) is called by double itself" in refusal(lecture.check, double)
    assert lecture.ready(double) is right


# Mistakes


@pytest.mark.parametrize("first", [2, 1])
def test_a_hint_belongs_to_the_mistake_whatever_the_case(first):
    """For 1, both mistakes give the same: then the other cases decide."""
    made, check = exercise(lambda x: 2 * x, case(first), case(3))
    made.mistake("You squared.")(lambda x: x * x)
    assert "half of what it should be" in hint(check, lambda x: x)
    made.mistake("You took the number itself.")(lambda x: x)
    assert "You squared." in hint(check, lambda x: x**2)
    assert "You took the number itself." in hint(check, lambda x: x)
    assert "Look again." in hint(check, lambda x: 10 * x)


def test_an_exception_shows_the_line_of_the_answer_and_the_hint_of_the_mistake(doubling):
    made, check = doubling
    made.mistake("Numbers have no such attribute.")(lambda x: x.missing)

    def broken(x):
        y = x + 1
        return y.absent

    lines = refusal(check, broken).splitlines()
    assert lines[0] == "answer(2) stopped with an exception (case 1 of 2)."
    assert f"  at line:  {broken.__code__.co_firstlineno + 2}: return y.absent" in lines
    assert lines[-2:] == [
        "  error:    AttributeError: 'int' object has no attribute 'absent'",
        "  hint:     Numbers have no such attribute.",
    ]


def test_another_exception_is_not_that_mistake(doubling):
    made, check = doubling
    for mistake, alike, other in (
        (lambda x: [][x], lambda x: [x][x + 5], lambda x: {}[x]),  # another type
        (lambda x: int("three"), lambda x: int("two"), lambda x: [].remove(x)),  # for another reason
        (lambda x: [x].double(), lambda x: [x].twice(), lambda x: x.twice()),  # of another type of Python's
    ):
        made.mistakes = [("That is it.", lambda mistake=mistake: mistake)]
        assert "That is it." in hint(check, alike)
        assert "That is it." not in hint(check, other)


ENDLESS = {
    "an exception": "while x < 9:\n  try: x += 0\n  except Exception: return 0",
    "everything": "while True:\n  try: work()\n  except: pass",
    "everything, twice": "while 1:\n  try:\n    while 1:\n      try: work()\n      except: 0\n  except: 0",
    "everything, at last": "while True:\n  try: work()\n  finally: continue",
    "everything, in a helper": "work(True)",
}


@pytest.mark.parametrize("swallowed", ENDLESS)
def test_an_answer_that_never_ends_is_stopped_whatever_it_swallows(doubling, monkeypatch, swallowed):
    monkeypatch.setattr("lectures.checking.attempt.MOST_SECONDS", 0.2)
    work = "def work(again=False):\n  while again:\n    try: work()\n    except: pass\n"
    source = work + "def answer(x):\n" + indent(ENDLESS[swallowed], "  ")
    *_, error, hint = refusal(doubling[1], defined(source)).splitlines()
    assert error == "  error:    StillRunning: no answer after 0.2 seconds"
    assert "It would run for ever." in hint
    doubling[1](lambda x: 2 * x)
    time.sleep(0.3)  # nothing rings later


# What an answer must not do


def things():
    return {"numbers": [3, 1], "box": SimpleNamespace(value=1, kept=[1], x=ndl.Tensor([1.0]))} | two_nodes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("numbers.sort()", "your answer changes numbers: it was [3, 1], and is now [1, 3]"),
        ("y.inputs[0].data = ndl.Tensor([7.0, 7.0])", "changes x: it was [1. 2.], and is [7. 7.]"),
        ("y.inputs[0].requires_grad = False", "changes x: its `requires_grad` was True, and is now False"),
        ("y.sum().backward()", "changes x: its `grad` was None, and is now needle.Tensor([3. 3.])"),
        ("box.value = 2", "changes box: its `value` was 1, and is now 2"),
        ("box.kept.append(2)", "changes box: it is now namespace("),
        ("box.x.requires_grad = False", "changes box: in it, a `requires_grad` was True, and is now False"),
        ("box.new = 2", "changes box: it is now namespace("),
    ],
)
def test_what_an_answer_changes_of_its_inputs_is_told_and_each_case_gets_fresh_ones(change, words):
    _, check = exercise(lambda y, numbers, box: 1, *[given(things, "y", "numbers", "box")] * 2)
    message = refusal(check, defined(f"def answer(y, numbers, box):\n  {change}\n  return 1", ndl=ndl))
    assert words in message
    assert "Leave the inputs as they are" in message
    check(lambda y, numbers, box: 1)


def test_a_mode_that_stays_and_random_numbers_of_everyone_are_told_and_put_back():
    _, check = exercise(lambda: 1, case())
    kept = []

    def stays_lazy():
        kept.append(ndl.lazy())
        kept[-1].__enter__()
        return 1

    assert "another mode" in refusal(check, stays_lazy)
    assert (ndl.Tensor([1.0]) + 1).cached_data is not None
    before = np.random.get_state()[1].copy()
    assert "Draw from a generator" in refusal(check, lambda: np.random.rand() and 1)
    assert (np.random.get_state()[1] == before).all()


def test_a_call_that_would_do_the_exercise_is_told_by_whatever_way_it_comes():
    why = {ndl.gradients: "Write it yourself."}
    _, check = exercise(lambda y, x: x * 0 + 3, given(two_nodes, "y", "x"), without=why)
    other_name = ndl.autograd.gradients
    message = refusal(check, lambda y, x: other_name(y, [x])[0])
    assert "your answer calls `gradients`" in message
    assert "Write it yourself." in message
    check(lambda y, x: x * 0 + 3)


OTHERS_WORK = """\
def answer(x): return np.sum(x)
def answer(x): return x.sum()
def answer(x): return np.add(*x)
def answer(x): return getattr(np, "add")(*x)
def answer(x): return vars(np)["add"](*x)
alias = np.add; answer = lambda x: alias(*x)
def answer(x, f=np.add): return f(*x)
def answer(x): from numpy import add as f; return next(map(f, x[:1], x[1:]))
def answer(x): import math; return next(map(math.fsum, [x]))
helper = lambda x: x.sum(); answer = lambda x: helper(x)
Helper = type("Helper", (), {"f": lambda x: np.sum(x)}); answer = lambda x: Helper.f(x)
f = partial(np.add, 1.0); answer = lambda x: f(x[1])
f = lru_cache(lambda *x: np.add(*x)); answer = lambda x: f(*x)
make = lambda f: lambda x: f(*x); answer = make(np.add)
"""


@pytest.mark.parametrize("source", OTHERS_WORK.splitlines())
def test_the_work_is_ones_own_in_helpers_too(source):
    _, check = exercise(lambda x: x[0] + x[1], case(np.array([1.0, 2.0])), own=("sum", "add", "fsum"))
    library = "math's `fsum`" if "math" in source else "numpy's `sum`" if "sum" in source else "numpy's `add`"
    assert f"your answer calls {library}" in refusal(check, defined(source))
    check(defined("f = lru_cache(lambda x: x + 0); h = lambda x: f(x[0]) + x[1]; answer = lambda x: h(x)"))


@pytest.mark.slow
def test_a_function_of_torch_is_not_ones_own():
    torch = pytest.importorskip("torch")
    _, check = exercise(lambda x: 2.0 * x, case(1.0), own=("add",))
    for call in ("torch.ops.aten.add", "torch.add", "torch.Tensor.add"):
        source = f"def answer(x):\n  x = torch.tensor(x)\n  return float(next(map({call}, [x], [x])))"
        assert "your answer calls torch's `add`" in refusal(check, defined(source, torch=torch))


# How answers are compared


@pytest.mark.parametrize(
    ("expect", "got", "words"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), "the shape is (3, 2), but should be (2, 3)"),
        (np.eye(2), np.ones((2, 2)), "at index (0, 1), 1.0 should be 0.0"),
        ([1, 2], [1], "the length is 1, but should be 2"),
        ([1, 2], [2, 1], "item 0 differs: 2 should be 1"),
        ({"a": 1, "b": 2}, {"a": 1}, "'b' is missing"),
        ({"a": 1}, {"a": 2}, "a: 2 should be 1"),
        ({"a": 1}, {"a": 1, "c": 3}, "'c' should not be there"),
        (ndl.Tensor([1.0]), np.ones(1), "the type is ndarray, but should be Tensor"),
        ((2, 1), 7, "the type is number, but should be tuple"),
        (np.ones(2), (1, 1), "the type is tuple, but should be ndarray"),
        (1.0, float("nan"), "nan should be 1.0"),
        ("exp", "log", "they are not equal"),
        (1, None, "the type is None, but should be number"),
        (True, None, "the type is None, but should be True or False"),
        ([False], ["no"], "item 0 differs: the type is str, but should be True or False"),
        ((1, 2.0), [np.float32(1), 2], ""),
        (np.nan, float("nan"), ""),
        (1.0, 1.00001, ""),
    ],
)
def test_values_differ_in_words(expect, got, words):
    assert values(expect, got, {}) == words


@pytest.mark.parametrize("compare", [values, whole, objects, order_of("inputs", lambda node: [])])
def test_a_list_may_be_a_tuple_and_a_tuple_a_list(compare):
    assert compare([1, 2], (1, 2), {}) == compare((1, 2), [1, 2], {}) == ""
    assert as_array(lambda: (1, 2)).tolist() == as_array(lambda: [1, 2]).tolist() == [1, 2]


def test_objects_are_the_very_same():
    a, b, same_value = ndl.Tensor([1.0]), ndl.Tensor([2.0]), ndl.Tensor([1.0])
    names = {id(a): "a", id(b): "b"}
    assert objects([a, b], [a, b], names) == ""
    assert objects(a, same_value, names) == "it has the same value as a, but is another object"
    assert objects([a, b], [b, a], names) == "item 0 is b, but should be a"
    assert objects([a, b], [a, b, b], names) == "b comes twice"
    assert objects([a, b], [a], names) == "b is missing"
    assert objects([a], [a, b], names) == "b should not be there"
    assert objects([a], a, names) == "the type is Tensor, but should be list"


def test_any_order_is_right_that_keeps_the_rule():
    x = ndl.Tensor([1.0])
    left, right = x + 1, x * 2
    y = left * right
    names = {id(x): "x", id(left): "left", id(right): "right", id(y): "y"}
    inputs_first, consumers_first = order_of("inputs"), order_of("consumers")
    for order in [x, left, right, y], [x, right, left, y]:
        assert inputs_first([x, left, right, y], order, names) == ""
        assert consumers_first([y, right, left, x], order[::-1], names) == ""
    wrong = [y, left, x, right]
    assert consumers_first([y, right, left, x], wrong, names) == "x comes before right, which uses it"
    wrong = inputs_first([x, left, right, y], [x, left, y, right], names)
    assert wrong == "y comes before right, which is an input of it"


def test_a_graph_is_compared_by_its_operators_edges_and_sharing():
    n1, n2 = ndl.Tensor([1.0]), ndl.Tensor([2.0])
    names = {id(n1): "n1", id(n2): "n2"}
    shared, again, other = n1 * n2, n1 * n2, n2 * n1
    expected, used_twice = shared / (shared + 1), "EWiseMul is used twice there"
    for right, other_one, words in (
        (expected, again / (again + 1), ""),
        (expected, again / (n1 * n2 + 1), f"the result of {used_twice}; yours computes it again"),
        (expected, again / (again + 2), "AddScalar(scalar=2) stands where AddScalar(scalar=1) should be"),
        (expected, again + again, "EWiseAdd stands where EWiseDiv should be"),
        (n1 / (shared + 1), again / (again + 1), "where n1 should be, there is the result of EWiseMul"),
        (expected, again / n1, "n1 stands where AddScalar(scalar=1) should be"),
        (expected, other / (other + 1), "where n2 should be, there is n1"),
        (shared, n1 * ndl.Tensor([2.0]), "where n2 should be, there is another leaf"),
        ((n1 + 1) * (n1 + 1), (n3 := n1 + 1) * n3, "one node of yours stands for two nodes there"),
        (expected, 3, "the type is number, but should be Tensor"),
    ):
        assert graph(right, other_one, names) == words


# Inputs that are drawn


def test_of_the_inputs_for_which_an_answer_is_wrong_the_simplest_is_shown(capsys):
    _, check = exercise(lambda x: abs(x), case(3), draws=drawn([2, 5, -7, -1, 0]))
    message = refusal(check, lambda x: x)
    assert message.startswith("answer(-7) is not right yet (the smallest input we found).")
    check(lambda x: max(x, -x))
    assert capsys.readouterr().out == "answer: right, 6 of 6 cases.\n", "each of the five was drawn once"
    programs = graphs("float({})", ["{a} + {b}", "{a} * {b}"])
    draws = programs.map(lambda lines: program_case(lines, {"float": float}, lines[-1].split()[0]))
    _, check = exercise(lambda x: x, case(1.0), draws=draws)
    assert "made by:  a = float(2)\n            s = a + a\n" in refusal(check, lambda x: min(x, 3.0))


def test_a_hint_has_to_fit_the_inputs_that_fail():
    made, check = exercise(lambda x: x * x, case(2), draws=drawn([3, 4, 5, 6]))
    made.mistake("You added 6.")(lambda x: x * x if x == 2 else x + 6)
    assert "You added 6." in hint(check, lambda x: 4 if x == 2 else 6 + x)
    assert "Look again." in hint(check, lambda x: 4 if x == 2 else x * 3), "9, but then 12"
    made.mistake("You gave back 8.")(lambda x: 8)
    assert "You gave back 8." in hint(check, lambda x: 8)
    assert "Look again." in hint(check, lambda x: x + 6), "8 in the lecture's example, but then 9"


def test_an_answer_that_is_wrong_now_and_then_is_wrong():
    _, check = exercise(lambda x: x, case(1), draws=drawn([2, 3, 4]))
    calls = []

    def moody(x):
        calls.append(x)
        return x if len(calls) % 5 else x + 1

    assert "is not right yet" in refusal(check, moody)


def test_arrays_come_in_all_layouts():
    seen = set()
    layouts = ("plain", "transposed", "every second", "turned around")
    draws = drawn(x=arrays([(2, 3), (3, 2)], layouts=layouts))
    _, check = exercise(lambda x: x.sum(), case(np.ones(1)), draws=draws)
    check(lambda x: seen.add(tuple(np.sign(x.strides)) + (x.flags.c_contiguous,)) or x.sum())
    assert {(1, 1, True), (1, 1, False), (1, -1, False)} <= seen


# Slips


def double(x):
    y = x + x
    return y


def test_a_slip_is_an_edit_of_the_solution():
    lecture = Lecture()
    made = lecture.exercise(case(3), case(2), otherwise="Look again.")(double)
    made.slip("You squared.", "x + x", "x * x")
    made.slip("You took it three times, and gave it back turned.", "x + x", "3 * x", "return y", "return -y")
    for result, sentence in (("x ** 2", "You squared."), ("-x * 3", "You took it three times")):
        answer = defined(f"def double(x): return {result}", "double")
        assert sentence in refusal(lecture.check, answer)
    with pytest.raises(ValueError, match=r"double: 'x' stands 3 times in"):
        made.slip("", "x", "z")


# Contracts


KEPT = {
    "in the second it is not: the length is 2": "seen.append(x[0]); return list(seen)",
    "in the third it is not: the length is 2": "s = ids.setdefault(id(x), []); s.append(x[0]); return s[:]",
    "it gives back the very same object": "return ids.setdefault(id(x), [x[0]])",
}


@pytest.mark.parametrize("words", KEPT)
def test_nothing_is_kept_from_call_to_call(words):
    _, check = exercise(lambda x: [x[0]], case([3]))
    assert words in refusal(check, defined(f"ids = {{}}\ndef answer(x, seen=[]): {KEPT[words]}"))


def test_a_result_is_new_and_its_parts_are_not_one():
    _, check = exercise(lambda n: [[0] * n for _ in range(n)], case(2))
    assert "item 1 and item 0 are one object" in refusal(check, lambda n: [[0] * n] * n)
    one = given(lambda: {"x": np.ones(2)}, "x")
    _, check = exercise(lambda x: x * 1, one)
    assert "your result is x itself, and not a new object" in refusal(check, lambda x: x)
    exercise(lambda x: x * 1, one, unless=(unshared,))[1](lambda x: x)


def test_the_second_derivative_goes_through_an_answer_that_promises_it():
    tensors = given(lambda: {"x": ndl.Tensor([1.0, 2.0])}, "x")
    _, check = exercise(lambda x: x * x * x, tensors, contracts=(derivatives,))
    check(lambda x: x**3)
    assert "no derivative flows" in refusal(check, lambda x: ndl.Tensor(x.numpy() ** 3, requires_grad=False))
    assert "the derivative with respect to x is wrong" in refusal(check, lambda x: ndl.Tensor(x.numpy() ** 3))
    second = refusal(check, lambda x: x * (x * x).detach() * 3 - 2 * (x**3).detach())
    assert "no second derivative flows" in second


# Habits


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: print(x), "Write `return` in place of `print`."),
        (lambda x: None, "Is a `return` missing?"),
        (lambda x: (2 * x).tolist(), "A ndarray is asked for."),
        (lambda x: -2 * x, "The sign is wrong."),
        (lambda x: 2 * x.T, "It is transposed"),
        (lambda x: 4 * x, "It is twice what it should be."),
        (lambda x: 2 * x + 1, "It is one too large."),
        (lambda x: 2 * x / 0, "there is inf or nan"),
        (lambda x: 2 * x.ravel(), "the shape is (6,)"),
        (lambda x: x[7], "There is no such place"),
        (lambda x: np.copy, "This is the function `copy` itself."),
        (lambda x: x.reshape(5), "A reshape keeps all numbers"),
        (lambda x: x + ..., "Write your part in its place."),
        (lambda x: 2 * z, "Is it spelled right"),  # noqa: F821
    ],
)
def test_habits_have_a_sentence_in_every_exercise(answer, words):
    _, check = exercise(lambda x: 2 * x, case(np.arange(1.0, 7).reshape(2, 3)))
    assert words in refusal(check, answer)
