"""Exercises: what a reader is told whose answer is untried, right, wrong or broken."""

from __future__ import annotations

import time

import numpy as np
import pytest

import needle as ndl
from lectures.checking import (
    Lecture,
    WrongAnswer,
    arrays,
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
)

NO_NAMES: dict[int, str] = {}


def two_nodes():
    x = ndl.Tensor([1.0, 2.0])
    return {"x": x, "y": x * 3}


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
    return str(caught.value)


@pytest.fixture
def doubling():
    return exercise(lambda x: 2 * x, case(2), case(3))


# What `check` prints and raises


def test_an_untried_exercise_says_so_and_raises_nothing(doubling, capsys):
    _, check = doubling
    check(lambda x: ...)
    check(lambda x: [x, ...])
    untried = "answer: not tried yet. Replace the ... in the cell above, then run both cells.\n"
    assert capsys.readouterr().out == untried * 2


def test_where_marks_are_given_an_untried_exercise_gets_none(doubling, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert "not tried yet" in refusal(doubling[1], lambda x: ...)


def test_a_right_answer_says_in_how_many_cases(doubling, capsys):
    doubling[1](lambda x: x + x)
    assert capsys.readouterr().out == "answer: right, 2 of 2 cases.\n"


def test_a_wrong_answer_says_the_input_the_expected_and_the_given_answer_and_a_hint(doubling):
    assert refusal(doubling[1], lambda x: x * x).splitlines() == [
        "answer(3) is not right yet (case 2 of 2).",
        "  expected: 6",
        "  got:      9",
        "  so:       9 should be 6",
        "  hint:     Look again.",
    ]


def test_several_results_are_shown_with_their_names():
    _, check = exercise(lambda x: {"sum": 2.0 * x, "left over": [0]}, case(1))
    message = refusal(check, lambda x: {"sum": 3.0 * x, "left over": [0]})
    assert message.splitlines()[1:4] == [
        "  expected: sum: 2, left over: [0]",
        "  got:      sum: 3, left over: [0]",
        "  so:       sum: 3.0 should be 2.0",
    ]


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


def test_a_tuple_is_shown_and_called_a_tuple():
    _, check = exercise(lambda shape: (*shape, 1), case((2, 3)), case((4,)))
    assert refusal(check, lambda shape: shape).splitlines()[:3] == [
        "answer((2, 3)) is not right yet (case 1 of 2).",
        "  expected: (2, 3, 1)",
        "  got:      (2, 3)",
    ]
    assert "the type is number, but should be tuple" in refusal(check, lambda shape: 7)


def test_plain_values_are_shown_as_they_are_in_the_form_of_their_use():
    _, check = exercise(
        lambda f: lambda numbers: [f(x) for x in numbers],
        case(abs, [-1.0, 0.1 + 0.2]),
        use=lambda answer, f, numbers: answer(f)(numbers),
        form="each({})({})",
    )
    message = refusal(check, lambda f: lambda numbers: numbers)
    assert message.startswith("each(abs)([-1, 0.30000000000000004]) is not right yet (case 1 of 1).")


def test_operands_that_the_lecture_names_are_shown_and_long_arrays_cut():
    def product():
        a, b = ndl.Tensor([2.0, 3.0]), ndl.Tensor(np.arange(26.0).reshape(13, 2))
        return {"a": a, "b": b, "node": a * b}

    _, check = exercise(lambda node: node.inputs[0] + 1, given(product, "node"))
    assert refusal(check, lambda node: node * 2).splitlines()[1:6] == [
        "  where:    node = Tensor of shape (13, 2): 0, 3, 4, 9, …",
        "  where:    a = needle.Tensor([2. 3.])",
        "  where:    b = Tensor of shape (13, 2): 0, 1, 2, 3, …",
        "  expected: needle.Tensor([3. 4.])",
        "  got:      Tensor of shape (13, 2): 0, 6, 8, 18, …",
    ]


def test_a_message_shows_the_lines_that_made_a_case():
    lines = "x = ndl.Tensor([1.0, 2.0])\ny = x * 3"
    _, check = exercise(lambda y: y + 1, given(two_nodes, "y", program=lines))
    assert refusal(check, lambda y: y).splitlines()[1:4] == [
        "  made by:  x = ndl.Tensor([1.0, 2.0])",
        "            y = x * 3",
        "  where:    y = needle.Tensor([3. 6.])",
    ]


def test_a_name_that_no_exercise_has_is_told_the_names(doubling):
    lecture = Lecture()
    lecture.exercise(case(1), otherwise="")(doubling[0].right)
    with pytest.raises(LookupError, match="this lecture has the exercises answer"):
        lecture.check(refusal)


def test_a_notebook_shows_the_message_without_a_traceback(doubling):
    with pytest.raises(WrongAnswer) as caught:
        doubling[1](lambda x: x)
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_nodes_are_called_as_in_the_lecture_and_shown():
    _, check = exercise(lambda x: x * 3, given(two_nodes, "x"))
    message = refusal(check, lambda x: x)
    assert "answer(x) is not right yet" in message
    assert "where:    x = needle.Tensor([1. 2.])" in message
    assert "got:      x\n" in message


def test_an_array_of_several_lines_stays_in_its_column():
    _, check = exercise(lambda: np.eye(2), case())
    lines = refusal(check, lambda: np.ones((2, 2))).splitlines()
    assert lines[1:3] == ["  expected: array([[1., 0.],", " " * 12 + "       [0., 1.]])"]


# Mistakes


def test_a_hint_belongs_to_the_mistake_whatever_the_case(doubling):
    made, check = doubling
    made.mistake("You squared.")(lambda x: x * x)
    made.mistake("You took the number itself.")(lambda x: x)
    assert "hint:     You squared." in refusal(check, lambda x: x**2)
    assert "hint:     You took the number itself." in refusal(check, lambda x: x)
    assert "hint:     Look again." in refusal(check, lambda x: 10 * x)


def test_of_two_mistakes_that_agree_in_one_case_the_other_cases_decide():
    made, check = exercise(lambda x: 2 * x, case(1), case(3))
    made.mistake("You squared.")(lambda x: x * x)
    made.mistake("You took the number itself.")(lambda x: x)
    assert "hint:     You took the number itself." in refusal(check, lambda x: x)
    assert "hint:     You squared." in refusal(check, lambda x: x**2)


def test_a_forgotten_return_is_said_to_be_one(doubling):
    assert "Is a `return` missing?" in refusal(doubling[1], lambda x: None)


def test_an_exception_shows_the_line_of_the_answer_and_the_hint_of_the_mistake(doubling):
    made, check = doubling
    made.mistake("Numbers have no such attribute.")(lambda x: x.missing)

    def broken(x):
        y = x + 1
        return y.absent

    lines = refusal(check, broken).splitlines()
    assert lines[0] == "answer(2) stopped with an exception (case 1 of 2)."
    number = broken.__code__.co_firstlineno + 2
    assert f"  at line:  {number}: return y.absent" in lines
    assert lines[-2:] == [
        "  error:    AttributeError: 'int' object has no attribute 'absent'",
        "  hint:     Numbers have no such attribute.",
    ]


def test_habits_that_no_mistake_of_the_exercise_names_have_their_own_hints(doubling):
    _, check = doubling
    assert refusal(check, lambda x: x + ...).endswith("Write your part in its place.")
    assert "Is it spelled right" in refusal(check, lambda x: 2 * z)  # noqa: F821

    def collecting(x, seen=[]):  # noqa: B006
        seen.append(2 * x)
        return sum(seen)

    assert "`order=[]`" in refusal(check, collecting)
    assert "Look again." in refusal(check, lambda x, factors=[3]: factors[0] * x)


def test_a_tuple_is_called_so():
    _, check = exercise(lambda x: x * 2, case(np.ones(2)))
    assert "the type is tuple, but should be ndarray" in refusal(check, lambda x: (2, 2))


def test_an_exception_about_a_type_of_python_is_not_that_about_a_node():
    made, check = exercise(lambda x: x * 2, case(2))

    @made.mistake("A list has no such method.")
    def of_a_list(x):
        return [x].double()

    assert "A list has no such method." in refusal(check, lambda x: [x].twice())
    assert "Look again." in refusal(check, lambda x: x.twice())


def test_an_answer_that_never_ends_is_stopped(doubling, monkeypatch):
    monkeypatch.setattr("lectures.checking.attempt.MOST_SECONDS", 0.2)
    check = doubling[1]

    def endless(x):
        while x < 1000:
            try:
                x += 0
            except Exception:
                return 0
        return x

    *_, error, hint = refusal(check, endless).splitlines()
    assert error == "  error:    StillRunning: no answer after 0.2 seconds"
    assert "It would run for ever." in hint
    check(lambda x: 2 * x)
    time.sleep(0.3)  # nothing rings later


def test_another_exception_is_not_that_mistake(doubling):
    made, check = doubling
    made.mistake("The list has no such place.")(lambda x: [][x])
    assert "no such place" in refusal(check, lambda x: (x, x)[x + 5])
    assert "Look again." in refusal(check, lambda x: {}[x]), "another type"
    made.mistake("Convert no text.")(lambda x: int("three"))
    assert "Convert no text." in refusal(check, lambda x: int("two"))
    assert "Look again." in refusal(check, lambda x: [].remove(x)), "the same type, for another reason"


# What an answer must not do


def test_each_case_gets_fresh_inputs_and_a_changed_one_is_told():
    _, check = exercise(lambda numbers: sorted(numbers), case([3, 1]), case([2, 1]))

    def in_place(numbers):
        numbers.sort()
        return numbers

    message = refusal(check, in_place)
    assert "your answer changes its input: it was [3, 1], and is now [1, 3]" in message
    assert "Leave the inputs as they are" in message
    check(lambda numbers: sorted(numbers))


def test_a_tensor_whose_data_an_answer_overwrites_is_told_by_name():
    _, check = exercise(lambda y: y + 1, given(two_nodes, "y"))

    def overwrites(y):
        y.inputs[0].data = ndl.Tensor([7.0, 7.0])
        return y + 1

    assert "your answer changes x: it was [1. 2.], and is [7. 7.]" in refusal(check, overwrites)


def test_a_mode_that_stays_is_told_and_put_back():
    _, check = exercise(lambda: 1, case())

    kept = []

    def stays_lazy():
        kept.append(ndl.lazy())
        kept[-1].__enter__()
        return 1

    assert "another mode" in refusal(check, stays_lazy)
    assert (ndl.Tensor([1.0]) + 1).cached_data is not None


def test_random_numbers_of_everyone_are_told_and_put_back():
    _, check = exercise(lambda: 1, case())
    before = np.random.get_state()[1].copy()
    message = refusal(check, lambda: np.random.rand() and 1)
    assert "global random numbers" in message
    assert "Draw from a generator" in message
    assert (np.random.get_state()[1] == before).all()


def test_a_call_that_would_do_the_exercise_is_told_by_whatever_way_it_comes():
    why = {ndl.gradients: "Write it yourself."}
    _, check = exercise(lambda y, x: x * 0 + 3, given(two_nodes, "y", "x"), without=why)
    other_name = ndl.autograd.gradients
    message = refusal(check, lambda y, x: other_name(y, [x])[0])
    assert "your answer calls `gradients`" in message
    assert "Write it yourself." in message
    check(lambda y, x: x * 0 + 3)


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
        (1.0, float("nan"), "nan should be 1.0"),
        ("exp", "log", "they are not equal"),
        (1, None, "the type is None, but should be number"),
        (True, None, "the type is None, but should be True or False"),
        ([False], ["no"], "item 0 differs: the type is str, but should be True or False"),
    ],
)
def test_values_differ_in_words(expect, got, words):
    assert values(expect, got, NO_NAMES) == words


@pytest.mark.parametrize(
    ("expect", "got"), [((1, 2.0), [np.float32(1), 2]), (np.nan, float("nan")), (1.0, 1.00001)]
)
def test_equal_values_of_other_python_types_are_right(expect, got):
    assert values(expect, got, NO_NAMES) == ""


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
    assert inputs_first([x, left, right, y], [x, left, y, right], names) == (
        "y comes before right, which is an input of it"
    )


def test_a_graph_is_compared_by_its_operators_edges_and_sharing():
    n1, n2 = ndl.Tensor([1.0]), ndl.Tensor([2.0])
    names = {id(n1): "n1", id(n2): "n2"}
    shared = n1 * n2
    expected = shared / (shared + 1)
    again = n1 * n2
    assert graph(expected, again / (again + 1), names) == ""
    assert graph(expected, again / (n1 * n2 + 1), names).endswith("yours computes it again")
    assert graph(expected, again / (again + 2), names) == (
        "AddScalar(scalar=2) stands where AddScalar(scalar=1) should be"
    )
    assert "EWiseAdd stands where" in graph(expected, again + again, names)
    assert graph(n1 / (shared + 1), again / (again + 1), names) == (
        "where n1 should be, there is the result of EWiseMul"
    )
    assert graph(expected, again / n1, names) == "n1 stands where AddScalar(scalar=1) should be"
    other = n2 * n1
    assert graph(expected, other / (other + 1), names) == "where n2 should be, there is n1"
    assert graph(n1 * n2, n1 * ndl.Tensor([2.0]), names) == "where n2 should be, there is another leaf"
    assert graph((n1 + 1) * (n1 + 1), (n3 := n1 + 1) * n3, names) == (
        "one node of yours stands for two nodes there"
    )
    assert graph(expected, 3, names) == "the type is number, but should be Tensor"


# Inputs that are drawn


def test_of_the_inputs_for_which_an_answer_is_wrong_the_simplest_is_shown(capsys):
    _, check = exercise(lambda x: abs(x), case(3), draws=drawn([2, 5, -7, -1, 0]))
    message = refusal(check, lambda x: x)
    assert message.startswith("answer(-7) is not right yet (the smallest input we found).")
    check(lambda x: max(x, -x))
    assert capsys.readouterr().out == "answer: right, 6 of 6 cases.\n", "each of the five was drawn once"


def test_a_program_is_shrunk_to_its_telling_lines():
    programs = graphs("float({})", ["{a} + {b}", "{a} * {b}"])
    draws = programs.map(lambda lines: program_case(lines, {"float": float}, lines[-1].split()[0]))
    _, check = exercise(lambda x: x, case(1.0), draws=draws)
    assert "made by:  a = float(2)\n            s = a + a\n" in refusal(check, lambda x: min(x, 3.0))


def test_a_hint_has_to_fit_the_inputs_that_fail():
    made, check = exercise(lambda x: x * x, case(2), draws=drawn([3, 4, 5, 6]))
    made.mistake("You added 6.")(lambda x: x * x if x == 2 else x + 6)
    assert "hint:     You added 6." in refusal(check, lambda x: 4 if x == 2 else 6 + x)
    assert "hint:     Look again." in refusal(check, lambda x: 4 if x == 2 else x * 3), (
        "9 for 3, but 12 for 4"
    )


def test_an_answer_that_is_wrong_now_and_then_is_wrong():
    _, check = exercise(lambda x: x, case(1), draws=drawn([2, 3, 4]))
    calls = []

    def moody(x):
        calls.append(x)
        return x if len(calls) % 4 else x + 1

    assert "is not right yet" in refusal(check, moody)


def test_arrays_come_in_all_layouts():
    seen = set()
    draws = drawn(
        x=arrays([(2, 3), (3, 2)], layouts=("plain", "transposed", "every second", "turned around"))
    )
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
    namespace = {"__name__": "answers"}
    for source, sentence in (("x ** 2", "You squared."), ("-x * 3", "You took it three times")):
        exec(f"def double(x): return {source}", namespace)
        assert sentence in refusal(lecture.check, namespace["double"])
    with pytest.raises(ValueError, match=r"double: 'x' stands 3 times in"):
        made.slip("", "x", "z")


# Contracts


def test_nothing_is_kept_from_call_to_call():
    _, check = exercise(lambda x: [x], case(3))

    def collecting(x, seen=[]):  # noqa: B006
        seen.append(x)
        return list(seen)

    message = refusal(check, collecting)
    assert "right in the first call, and in the second it is not: the length is 2" in message
    assert "`order=[]`" in message


def test_a_result_is_new_and_its_parts_are_not_one():
    _, check = exercise(lambda n: [[0] * n for _ in range(n)], case(2))
    assert "item 1 and item 0 are one object" in refusal(check, lambda n: [[0] * n] * n)
    _, check = exercise(lambda x: x * 1, given(lambda: {"x": np.ones(2)}, "x"))
    assert "your result is x itself, and not a new object" in refusal(check, lambda x: x)
    _, check = exercise(lambda x: x * 1, given(lambda: {"x": np.ones(2)}, "x"), unless=(unshared,))
    check(lambda x: x)


def test_the_second_derivative_goes_through_an_answer_that_promises_it():
    def tensors():
        return {"x": ndl.Tensor([1.0, 2.0])}

    _, check = exercise(lambda x: x * x * x, given(tensors, "x"), contracts=(derivatives,))
    check(lambda x: x**3)
    assert "no derivative flows" in refusal(check, lambda x: ndl.Tensor(x.numpy() ** 3, requires_grad=False))
    assert "the derivative with respect to x is wrong" in refusal(check, lambda x: ndl.Tensor(x.numpy() ** 3))
    second = refusal(check, lambda x: x * (x * x).detach() * 3 - 2 * (x**3).detach())
    assert "no second derivative flows" in second


def test_the_work_is_ones_own():
    lecture = Lecture()
    total = lecture.exercise(case(np.array([1.0, 2.0])), otherwise="", own=("add",))(_total)
    for source, words in (
        ("return np.sum(x)", "numpy's `sum`"),
        ("return x.sum()", "numpy's `sum`"),
        ("return np.add(x[0], x[1])", "numpy's `add`"),
    ):
        namespace = {"np": np, "__name__": "answers"}
        exec(f"def _total(x): {source}", namespace)
        if "add" not in source:
            total.own = frozenset({"sum"})
        else:
            total.own = frozenset({"add"})
        assert f"your answer calls {words}" in refusal(lecture.check, namespace["_total"])


def _total(x):
    return x[0] + x[1]


def test_an_answer_that_swallows_everything_is_stopped(doubling, monkeypatch):
    monkeypatch.setattr("lectures.checking.attempt.MOST_SECONDS", 0.2)

    def endless(x):
        while True:
            try:
                x += 1
            except:  # noqa: E722
                x += 2

    assert "It would run for ever." in refusal(doubling[1], endless)


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
    ],
)
def test_habits_have_a_sentence_in_every_exercise(answer, words):
    _, check = exercise(lambda x: 2 * x, case(np.arange(1.0, 7).reshape(2, 3)))
    assert words in refusal(check, answer)
