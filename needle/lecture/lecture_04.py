"""Lecture 04, derivatives and a scalar engine: its exercises, the usual mistakes in them, its predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from types import CodeType
from typing import Any

from .comparison import Names, order_of
from .exercises import Exercises, case, given
from .predictions import Predictions

exercises, predictions = Exercises(), Predictions()
check, ready, predict = exercises.check, exercises.ready, predictions.predict


# --- The lecture's picture ----------------------------------------------------------------------------------


def mark_step(left: Any, right: Any, f: Callable[[Any], Any], e: float, slope: float) -> Any:
    """Mark a step at 2: its two points on the curve in the left picture, and its error in the right one."""
    left.plot([-e, e], [f(2 - e) - f(2.0), f(2 + e) - f(2.0)], "o", color="#0B7A53", markersize=7)
    left.set_title(f"e = {e:.2g}: slope {slope:.8g}", loc="left", weight="bold")
    right.plot([1e-6, 1], [1e-12, 1], "--", color="#D97706")
    right.plot([10**-15.3, 1e-4], [10**0.3, 1e-11], ":", color="#D97706")
    right.text(1e-2, 1e-7, "e²", color="#B45309")
    right.text(2e-13, 3e-2, "10⁻¹⁵/e", color="#B45309")
    right.plot(e, abs(slope - 12), "o", color="#0B7A53", markersize=9)
    right.set_xticks([1e-15, 1e-10, 1e-5, 1])
    return right


# --- The numbers and the graphs of the cases ----------------------------------------------------------------


class Scalar:
    """The lecture's number that remembers, with a name for messages."""

    def __init__(self, value: float, history: Sequence[tuple[Scalar, float]] = (), name: str = ""):
        self.value = value
        self.history = history
        self.grad = 0.0
        self.name = name

    def __repr__(self) -> str:
        return f"Scalar({self.value:g})"

    def __add__(self, other: Scalar) -> Scalar:
        return Scalar(self.value + other.value, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other: Scalar) -> Scalar:
        return Scalar(self.value * other.value, [(self, other.value), (other, self.value)])


def inputs_of(node: Any) -> list[Any]:
    """What a number was computed from."""
    return [i for i, _ in node.history]


def in_order(output: Any) -> list[Any]:
    """All numbers that lead to `output`, each once and after its inputs."""
    order: dict[Any, None] = {}
    stack = [(output, False)]
    while stack:
        node, inputs_are_there = stack.pop()
        if inputs_are_there:
            order[node] = None
        elif node not in order:
            stack.append((node, True))
            stack += [(i, False) for i in reversed(inputs_of(node))]
    return list(order)


def _named(**numbers: Scalar) -> dict[str, Any]:
    for name, number in numbers.items():
        number.name = name
    return numbers


def taxi() -> dict[str, Any]:
    """The bill of the lecture: a tree."""
    base, rate, km, one, tip = map(Scalar, (4.0, 2.0, 8.0, 1.0, 0.1))
    way = rate * km
    fare = base + way
    factor = one + tip
    bill = fare * factor
    return _named(base=base, rate=rate, km=km, one=one, tip=tip, way=way, fare=fare, factor=factor, bill=bill)


def doubling() -> dict[str, Any]:
    """A number that is used twice, twice in a row."""
    a = Scalar(3.0)
    b = a + a
    c = b + b
    return _named(a=a, b=b, c=c)


def detour() -> dict[str, Any]:
    """Two ways from x to y, one longer than the other."""
    x = Scalar(3.0)
    square = x * x
    cube = square * x
    y = x + cube
    return _named(x=x, square=square, cube=cube, y=y)


def used_before() -> dict[str, Any]:
    """3 · x1 + x2, after a first walk has left 1 in both grads."""
    x1, x2, three = map(Scalar, (10.0, 20.0, 3.0))
    x1.grad = x2.grad = 1.0
    triple = three * x1
    y = triple + x2
    return _named(three=three, x1=x1, x2=x2, triple=triple, y=y)


# --- 1 The central difference -------------------------------------------------------------------------------


def cube(x):
    """x³"""
    return x * x * x


def half_of_square(x):
    """x² / 2"""
    return x * x / 2


@exercises.exercise(
    given(lambda: {"cube": cube, "x": 2.0, "e": 0.1}, "cube", "x", "e"),
    given(lambda: {"cube": cube, "x": -1.0, "e": 0.5}, "cube", "x", "e"),
    given(lambda: {"half_of_square": half_of_square, "x": 3.0, "e": 0.01}, "half_of_square", "x", "e"),
    otherwise=(
        "Compute it with pencil and paper for `cube` at 2 with e = 0.1: what is f(2.1), what is f(1.9), and "
        "how far apart are 2.1 and 1.9?"
    ),
)
def central_difference(f, x, e):
    """How far f moves per unit of x, from a little below to a little above."""
    return (f(x + e) - f(x - e)) / (2 * e)


@central_difference.mistake(
    "You compare with the middle, f(x), so you look to one side only. Look to both sides: from x - e to "
    "x + e."
)
def one_side(f, x, e=1e-5):
    return (f(x + e) - f(x)) / e


@central_difference.mistake(
    "You compare the middle, f(x), with one side only. Look to both sides: from x - e to x + e."
)
def other_side(f, x, e=1e-5):
    return (f(x) - f(x - e)) / e


@central_difference.mistake(
    "This is twice what it should be. From x - e to x + e the distance is not e. How far is it?"
)
def divided_by_e(f, x, e=1e-5):
    return (f(x + e) - f(x - e)) / e


@central_difference.mistake(
    "Python works from left to right: `/ 2 * e` divides by 2 and then multiplies by e. Write `/ (2 * e)`."
)
def no_brackets(f, x, e=1e-5):
    return (f(x + e) - f(x - e)) / 2 * e


@central_difference.mistake(
    "Python divides before it subtracts, so only f(x - e) is divided here. Put the difference in brackets."
)
def only_one_divided(f, x, e=1e-5):
    return f(x + e) - f(x - e) / (2 * e)


@central_difference.mistake(
    "Python divides before it subtracts. Two pairs of brackets are missing: one around the difference, and "
    "one around 2 * e."
)
def no_brackets_at_all(f, x, e=1e-5):
    return f(x + e) - f(x - e) / 2 * e


@central_difference.mistake("You divide by 2. The distance from x - e to x + e is 2 * e.")
def divided_by_two(f, x, e):
    return (f(x + e) - f(x - e)) / 2


@central_difference.mistake("You add the two. How far f moves is the *difference*: above minus below.")
def added(f, x, e):
    return (f(x + e) + f(x - e)) / (2 * e)


@central_difference.mistake("The distance is 2 *times* e; you have 2 plus e.")
def two_plus_e(f, x, e):
    return (f(x + e) - f(x - e)) / (2 + e)


@central_difference.mistake("This is how far x moves, not f. Call f at both places.")
def without_f(f, x, e):
    return ((x + e) - (x - e)) / (2 * e)


@central_difference.mistake("`f` is a function. Call it, as in `f(x + e)`, without a `*`.")
def not_called(f, x, e=1e-5):
    return f * (x + e)


@central_difference.mistake(
    "This is how far the result moves. You want how far it moves *per unit*: divide by the distance."
)
def not_divided(f, x, e=1e-5):
    return f(x + e) - f(x - e)


@central_difference.mistake("The sign is wrong: take f above minus f below.")
def turned_around(f, x, e=1e-5):
    return (f(x - e) - f(x + e)) / (2 * e)


@central_difference.mistake("You use a step of your own. Take the step that you are given, `e`.")
def own_step(f, x, e=1e-5):
    return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5


# --- 2 A product that remembers -----------------------------------------------------------------------------


class Made:
    """What an answer made of two numbers, a and b, so that it can be compared and shown.

    Attributes
    ----------
    slopes : dict
        By the name of each input in the history: its derivative, summed over the pairs.
    """

    def __init__(self, result: Any, a: Any, b: Any):
        self.value = _plain(result.value)
        names = {id(a): "a", id(b): "b"}
        self.pairs = [(names.get(id(i), f"{i!r}"), _plain(slope)) for i, slope in result.history]
        self.slopes: dict[str, Any] = {}
        for name, slope in self.pairs:
            self.slopes[name] = self.slopes[name] + slope if name in self.slopes else slope

    def __repr__(self) -> str:
        pairs = ", ".join(f"({name}, {slope!r})" for name, slope in self.pairs)
        return f"a Scalar of value {self.value!r} with the history [{pairs}]"


class Expression(str):
    """Python code that a message shows as it is."""

    def __repr__(self) -> str:
        return str(self)


A_TUPLE = Expression("a plain tuple")


def _plain(x: Any) -> Any:
    """A number as it is; anything else, such as a Scalar, as a message shows it."""
    return x if isinstance(x, (int, float)) else Expression(repr(x))


class Unmultiplied:
    """A number as it is before the lecture gives it a `*`."""


def _made(answer: Callable, a: float, b: float) -> Any:
    """What an answer makes of two numbers of its own class."""
    make = getattr(answer, "__globals__", {}).get("Scalar", Scalar)
    one, other = make(a), make(b)
    result = answer(one, other)
    if hasattr(result, "history"):
        return Made(result, one, other)
    return A_TUPLE if isinstance(result, tuple) else result


def _as_made(expected: Any, got: Any, names: Names) -> str:
    if not (isinstance(expected, Made) and isinstance(got, Made)):
        alike = type(expected) is type(got) and expected == got
        return "" if alike else f"it is {_article(got)}, but should be a Scalar"
    if got.value != expected.value:
        return f"its value is {got.value!r}, but should be {expected.value!r}"
    for name in dict.fromkeys([*got.slopes, *expected.slopes]):
        if name not in expected.slopes:
            return f"its history names {name}, which is neither a nor b itself"
        if name not in got.slopes:
            return f"{name} is not in its history"
        if got.slopes[name] != expected.slopes[name]:
            slope, right = got.slopes[name], expected.slopes[name]
            return f"its derivative with respect to {name} is {slope!r}, but should be {right!r}"
    return ""


def _article(value: Any) -> str:
    if value is None or isinstance(value, Expression):
        return f"{value}"
    return f"a plain {type(value).__name__}"


@exercises.exercise(
    case(2.0, 5.0),
    case(-3.0, 0.5),
    otherwise=(
        "You need two things: the value, and a list of two pairs, one for a and one for b. If a moves by "
        "0.1, how far does a · b move?"
    ),
    compare=_as_made,
    use=_made,
)
def multiply(a, b):
    """The product of two numbers, with its history."""
    return type(a)(a.value * b.value, [(a, b.value), (b, a.value)])


@multiply.mistake(
    "Each factor has its own value as its derivative. But if a moves by 0.1, a · b moves by 0.1 times *b*."
)
def own_value(a, b):
    return type(a)(a.value * b.value, [(a, a.value), (b, b.value)])


@multiply.mistake("That is the history of a sum. A product passes a nudge of one factor on times the other.")
def history_of_a_sum(a, b):
    return type(a)(a.value * b.value, [(a, 1.0), (b, 1.0)])


@multiply.mistake("The value is right, but it has forgotten where it came from. Give Scalar a history, too.")
def no_history(a, b):
    return type(a)(a.value * b.value)


@multiply.mistake("A plain number remembers nothing. Make a Scalar of it, with a history.")
def plain_number(a, b):
    return a.value * b.value


@multiply.mistake(
    "The history holds new Scalars where it should hold `a` and `b` themselves: a walk back would never "
    "arrive at them."
)
def values_in_the_history(a, b):
    return type(a)(a.value * b.value, [(type(a)(a.value), b.value), (type(a)(b.value), a.value)])


@multiply.mistake(
    "The pairs hold plain numbers where they should hold `a` and `b` themselves: nobody could walk on from "
    "there."
)
def plain_values_in_the_history(a, b):
    return type(a)(a.value * b.value, [(a.value, b.value), (b.value, a.value)])


@multiply.mistake(
    "The derivatives are plain numbers: take `a.value` and `b.value`. Yours are Scalars, and a walk back "
    "could not multiply by them."
)
def scalars_as_derivatives(a, b):
    return type(a)(a.value * b.value, [(a, b), (b, a)])


@multiply.mistake(
    "The value of a Scalar is a plain number. Yours is a Scalar again: multiply the values, "
    "`a.value * b.value`."
)
def scalar_as_value(a, b):
    return type(a)(type(a)(a.value * b.value), [(a, b.value), (b, a.value)])


@multiply.mistake(
    "Scalars have no `*` yet: this is what you are building. Multiply their values, `a.value * b.value`."
)
def stars_before_there_are_any(a, b):
    return Unmultiplied() * Unmultiplied()  # type: ignore[operator]


PAIRS = "The history is a list of two pairs, `[(a, …), (b, …)]`: each factor with its derivative."


@multiply.mistake(PAIRS)
def no_pairs(a, b):
    return type(a)(a.value * b.value, [b.value, a.value])


@multiply.mistake("In a pair, the Scalar comes first, and the derivative second.")
def pairs_turned_around(a, b):
    return type(a)(a.value * b.value, [(b.value, a), (a.value, b)])


@multiply.mistake("The value and the history are there. Now make a Scalar of them: `Scalar(value, history)`.")
def no_scalar(a, b):
    return a.value * b.value, [(a, b.value), (b, a.value)]


@multiply.mistake("You divide where you should multiply: if a moves by 0.1, a · b moves by 0.1 times b.")
def one_over(a, b):
    return type(a)(a.value * b.value, [(a, 1 / b.value), (b, 1 / a.value)])


@multiply.mistake(PAIRS)
def no_list(a, b):
    return type(a)(a.value * b.value, {a: b.value, b: a.value})


@multiply.mistake("Only one of the factors is in the history. The product needs a pair for each.")
def only_a(a, b):
    return type(a)(a.value * b.value, [(a, b.value)])


@multiply.mistake("The history is right. The value is that of a sum; this is a product.")
def value_of_a_sum(a, b):
    return type(a)(a.value + b.value, [(a, b.value), (b, a.value)])


# --- 3 The order --------------------------------------------------------------------------------------------

_LIST_IN_A_LIST, _A_SET = ["a list"], {"a set"}


def _listed(answer: Callable, output: Any) -> Any:
    """What an answer gives back; all sets are taken for the same, and all lists with lists in them."""
    result = answer(output)
    if result == [] and _visit_is_a_stub(answer):
        return ...
    nested = isinstance(result, list) and any(isinstance(item, list) for item in result)
    return _LIST_IN_A_LIST if nested else _A_SET if isinstance(result, set) else result


def _visit_is_a_stub(answer: Callable) -> bool:
    """Whether the function inside an answer still says ``return ...``."""
    constants = getattr(getattr(answer, "__code__", None), "co_consts", ())
    return any(... in inner.co_consts for inner in constants if isinstance(inner, CodeType))


@exercises.exercise(
    given(doubling, "c"),
    given(taxi, "bill"),
    given(detour, "y"),
    given(doubling, "a"),
    use=_listed,
    otherwise="Draw this graph, and write down a number only when all its inputs are written down.",
    compare=order_of("inputs", inputs_of),
)
def topological_order(output):
    """All numbers that lead to `output`, each once and after its inputs."""
    return in_order(output)


@topological_order.mistake(
    "You come to a number once for each way that leads to it. Remember which ones you have seen, and pass "
    "over those."
)
def every_way(output):
    return [node for i in inputs_of(output) for node in every_way(i)] + [output]


@topological_order.mistake(
    "This is the order of the walk back, output first. Here the inputs come first: append a number *after* "
    "its inputs."
)
def output_first(output):
    return in_order(output)[::-1]


@topological_order.mistake(
    "You write a number down as soon as you meet it. First visit its inputs, then write it down."
)
def as_met(output):
    order: list[Any] = []

    def visit(node):
        if not any(node is other for other in order):
            order.append(node)
            for i in inputs_of(node):
                visit(i)

    visit(output)
    return order


@topological_order.mistake(
    "To turn around the order in which you meet the numbers is not enough: one that is near along one way "
    "may be far along another."
)
def as_met_turned_around(output):
    return as_met(output)[::-1]


@topological_order.mistake(
    "Only the output is there. Visit its inputs, too, each with `visit(i)`. A call of `topological_order` "
    "gives back a new list: take it, as in `order += …`, or what it found is thrown away."
)
def thrown_away(output):
    for i in inputs_of(output):
        thrown_away(i)
    return [output]


@topological_order.mistake(
    "There are lists in your list. `append` puts a whole list in as one thing; `+=` or `extend` puts in what "
    "it holds."
)
def nested(output):
    return [*(nested(i) for i in inputs_of(output)), output]


@topological_order.mistake(
    "The list is empty. Is the function inside called, with the output? And does it append to the list that "
    "you return, not to one of its own?"
)
def empty(output):
    return []


@topological_order.mistake("These are values. The list holds the Scalars themselves.")
def values_only(output):
    return [node.value for node in in_order(output)]


@topological_order.mistake("A set keeps no order. Return a list.")
def as_set(output):
    return set(in_order(output))


@topological_order.mistake(
    "A number that nobody computed has an empty history. Go through the history with a `for`, and there is "
    "nothing to do for it."
)
def of_an_empty_history(output):
    return [*of_an_empty_history(output.history[0][0]), output]


@topological_order.mistake(
    "To turn around the order in which a stack gives out the numbers is not enough: one that is near along "
    "one way may be far along another."
)
def stack_turned_around(output):
    order: list[Any] = []
    waiting = [output]
    while waiting:
        node = waiting.pop()
        if node not in order:
            order.append(node)
            waiting += inputs_of(node)
    return order[::-1]


@topological_order.mistake(
    "A history holds pairs, and you take a pair for a Scalar. Take it apart: `for i, slope in node.history`."
)
def pairs_for_numbers(output):
    order = [i for pair in output.history for i in pairs_for_numbers(pair)]
    return [*order, output]


@topological_order.mistake("A history holds pairs. You want the first of each pair only, the Scalar.")
def pairs_in_the_list(output):
    return [*output.history, output]


@topological_order.mistake(
    "A Scalar has a `value`, a `history` and a `grad`, and nothing else. Its inputs are in the history."
)
def no_such_thing(output):
    return output.inputs


@topological_order.mistake("The output belongs to its own graph: it comes last in the list.")
def without_the_output(output):
    return in_order(output)[:-1]


@topological_order.mistake(
    "Only the output and its own inputs are there. Their inputs belong to the graph, too."
)
def two_levels(output):
    return [*dict.fromkeys(inputs_of(output)), output]


@topological_order.mistake(
    "These are the output and its own inputs, and the output comes first. Go on to the inputs of the inputs, "
    "and write each down after its inputs."
)
def output_and_inputs(output):
    return [output, *inputs_of(output)]


@topological_order.mistake("These are the numbers that nobody computed. Those in between belong there, too.")
def leaves_only(output):
    return [node for node in in_order(output) if not node.history]


@topological_order.mistake(
    "A number goes on to itself, so this never ends. Call `visit` with each of its inputs: `visit(i)`."
)
def itself_again(output):
    return itself_again(output)


@topological_order.mistake(
    "You append the inputs of the output, but nobody asks what *they* were computed from. Visit them: each "
    "appends itself then."
)
def inputs_unvisited(output):
    return [*inputs_of(output), output]


@topological_order.mistake(
    "You append the inputs, each as often as it is used, and not the number itself. Append the number that "
    "is visited, once, after its inputs: each of these does the same when you visit it."
)
def inputs_as_used(output):
    return [node for i in inputs_of(output) for node in [*inputs_as_used(i), i]]


@topological_order.mistake(
    "You append a number once for each of its inputs, so one without inputs never gets in. The `append` "
    "belongs behind the loop: less far to the right."
)
def appended_in_the_loop(output):
    order: list[Any] = []

    def visit(node):
        if node not in order:
            for i in inputs_of(node):
                visit(i)
                order.append(node)

    visit(output)
    return order


@topological_order.mistake(
    "`return` ends the whole visit, and then the number itself is never appended. If one of its inputs is "
    "there already, go on with the next."
)
def return_in_the_loop(output):
    order: list[Any] = []

    def visit(node):
        for i in inputs_of(node):
            if i in order:
                return
            visit(i)
        order.append(node)

    visit(output)
    return order


# --- 4 The walk back ----------------------------------------------------------------------------------------


def _grads(answer: Callable, output: Scalar) -> Any:
    """What a walk leaves in all grads, on a copy of the graph."""
    output = deepcopy(output)
    if answer(output) is ...:
        return ...
    return {node.name: round(node.grad, 6) for node in in_order(output)}


@exercises.exercise(
    given(taxi, "bill"),
    given(doubling, "c"),
    given(detour, "y"),
    given(used_before, "y"),
    otherwise=(
        "Print each number and its grad in the order of your walk. The output has 1. What does it pass on to "
        "its inputs?"
    ),
    use=_grads,
)
def backward(output):
    """Add to the grad of each number how far the output moves per unit of it."""
    order = in_order(output)
    came_back = {id(node): 0.0 for node in order}
    came_back[id(output)] = 1.0
    for node in reversed(order):
        node.grad += came_back[id(node)]
        for i, slope in node.history:
            came_back[id(i)] += came_back[id(node)] * slope


def _walk(output, nodes, pass_on, seed=1.0):
    output.grad = seed
    for node in nodes:
        for i, slope in node.history:
            pass_on(node, i, slope)


def _add(node, i, slope):
    i.grad += node.grad * slope


def _replace(node, i, slope):
    i.grad = node.grad * slope


@backward.mistake(
    "What comes back later replaces what came before. A number that is used twice gets two parts: write `+=`."
)
def replaced(output):
    _walk(output, in_order(output)[::-1], _replace)


@backward.mistake("This is your own derivative alone. Multiply it by what came back: the grad of the node.")
def slope_alone(output):
    def add(node, i, slope):
        i.grad += slope

    _walk(output, in_order(output)[::-1], add)


@backward.mistake(
    "You pass on what came back as it is. Multiply it by the derivative that the history holds."
)
def passed_on(output):
    def add(node, i, slope):
        i.grad += node.grad

    _walk(output, in_order(output)[::-1], add)


@backward.mistake(
    "Nothing comes back at all. The walk begins with the output: nudge it by 0.1, and it moves by 0.1, so "
    "its grad is 1."
)
def no_seed(output):
    _walk(output, in_order(output)[::-1], _add, seed=output.grad)


@backward.mistake(
    "Nothing leaves the output. What came back is in `node.grad`: multiply that by the derivative, and add "
    "it to `i.grad`."
)
def nothing_leaves(output):
    def add(node, i, slope):
        i.grad += i.grad * slope

    _walk(output, in_order(output)[::-1], add)


@backward.mistake("You multiply by the value. What came back to a node is in `node.grad`.")
def times_the_value(output):
    def add(node, i, slope):
        i.grad += node.value * slope

    _walk(output, in_order(output)[::-1], add)


@backward.mistake("You add what came back and the derivative. Multiply them.")
def plus_the_slope(output):
    def add(node, i, slope):
        i.grad += node.grad + slope

    _walk(output, in_order(output)[::-1], add)


@backward.mistake("Only the output's grad is 1. Set it before the loop: inside, each node gets it.")
def seed_everywhere(output):
    for node in reversed(in_order(output)):
        node.grad = 1.0
        for i, slope in node.history:
            i.grad += node.grad * slope


@backward.mistake("`order` is a function: call it with the output, `order(output)`.")
def order_not_called(output):
    reversed(in_order)  # type: ignore[call-overload]


@backward.mistake("`reverse()` turns a list around in place, and gives None back. Write `reversed(…)`.")
def reversed_in_place(output):
    for _ in in_order(output).reverse():  # type: ignore[func-returns-value,attr-defined]
        pass


@backward.mistake("The order is a list of Scalars. The pairs are in the history of each.")
def pairs_in_the_order(output):
    for i, slope in reversed(in_order(output)):
        i.grad += slope


@backward.mistake(
    "Only the output has passed something on. If you walk from the inputs to the output, nothing has come "
    "back yet when you look: turn the order around."
)
def not_reversed(output):
    _walk(output, in_order(output), _add)


@backward.mistake("You go to a number once for each way to it, and each time it passes on all it has so far.")
def every_way_again(output):
    waiting = [output]
    output.grad = 1.0
    for node in waiting:
        for i, slope in node.history:
            i.grad += node.grad * slope
            waiting.append(i)


@backward.mistake(
    "You walk on from a number as soon as something arrives there, and again when more arrives. Wait until "
    "all has come back: go by the order."
)
def on_at_once(output):
    output.grad = 1.0

    def walk(node):
        for i, slope in node.history:
            i.grad += node.grad * slope
            walk(i)

    walk(output)


@backward.mistake(
    "You clear the grads first, so what an earlier walk left there is lost. Here you add to it, whatever "
    "it is."
)
def cleared_first(output):
    for node in in_order(output):
        node.grad = 0.0
    _walk(output, in_order(output)[::-1], _add)


# --- 5 Forward mode -----------------------------------------------------------------------------------------


class Moved:
    """What an expression of Dual numbers gave: its value and slope, or anything else."""

    def __init__(self, value: Any, slope: Any):
        self.value, self.slope = value, slope

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.slope!r})"


CHANGED = Expression("a Dual that was there before")


def _moved(numbers: type, expression: Expression) -> Any:
    """What an expression gives with these numbers."""
    made: list[tuple[Any, float, float]] = []

    def make(value: float, slope: float = 0.0) -> Any:
        made.append((numbers(value, slope), value, slope))
        return made[-1][0]

    result = eval(expression, {"Dual": make})
    if result is ... or not hasattr(result, "slope"):
        return result
    if result.slope is ... or result.value is ...:
        return ...
    changed = any((number.value, number.slope) != (value, slope) for number, value, slope in made)
    return CHANGED if changed else Moved(result.value, result.slope)


def _as_moved(expected: Any, got: Any, names: Names) -> str:
    if not (isinstance(expected, Moved) and isinstance(got, Moved)):
        if type(expected) is type(got) and expected == got:
            return ""
        return f"it is {_article(got)}, but should be a {'new ' if got is CHANGED else ''}Dual"
    for what in ("value", "slope"):
        came, right = getattr(got, what), getattr(expected, what)
        if not (isinstance(came, (int, float)) and math.isclose(came, right, abs_tol=1e-9)):
            return f"its {what} is {came!r}, but should be {right!r}"
    return ""


class Dual:
    """A value, and how far it moves per unit of the one input that is nudged."""

    def __init__(self, value: float, slope: float = 0.0):
        self.value, self.slope = value, slope

    def __add__(self, other: Dual) -> Dual:
        return type(self)(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Dual) -> Any:
        moved = self.slope * other.value + self.value * other.slope
        return type(self)(self.value * other.value, moved)

    def tanh(self) -> Dual:
        t = math.tanh(self.value)
        return type(self)(t, (1 - t * t) * self.slope)


dual = exercises.exercise(
    case(Expression("Dual(2.0, 1.0) * Dual(5.0)")),
    case(Expression("Dual(3.0, 1.0) * Dual(3.0, 1.0)")),
    case(Expression("(Dual(2.0, 1.0) + Dual(1.0, 4.0)) * Dual(-1.0, 0.5)")),
    otherwise=(
        "Both factors may move at once. How far does the product move if only the first moves? If only the "
        "second does? Add the two."
    ),
    form="{}",
    compare=_as_moved,
    use=_moved,
)(Dual)


@dual.mistake(
    "You multiply the two slopes. But if only one factor moves, the other's slope is 0, and the product "
    "still moves."
)
class SlopesMultiplied(Dual):
    def __mul__(self, other):
        return Dual(self.value * other.value, self.slope * other.slope)


@dual.mistake(
    "You add the slopes, as for a sum. In a product, each is multiplied by the *other* value first."
)
class SlopesAdded(Dual):
    def __mul__(self, other):
        return Dual(self.value * other.value, self.slope + other.slope)


@dual.mistake("Only the first factor moves in your rule. The second one may move, too: add what it brings.")
class FirstFactorOnly(Dual):
    def __mul__(self, other):
        return Dual(self.value * other.value, self.slope * other.value)


@dual.mistake("Only the second factor moves in your rule. The first one may move, too: add what it brings.")
class SecondFactorOnly(Dual):
    def __mul__(self, other):
        return Dual(self.value * other.value, self.value * other.slope)


@dual.mistake("Each slope meets its own value here. It has to meet the value of the *other* factor.")
class OwnValues(Dual):
    def __mul__(self, other):
        return Dual(self.value * other.value, self.slope * self.value + other.slope * other.value)


@dual.mistake("The slope is lost: your product is a Dual with slope 0. Give it a second number.")
class NoSlope(Dual):
    def __mul__(self, other):
        return Dual(self.value * other.value)


SELF_AND_OTHER = "Inside `__mul__`, the two factors are called `self` and `other`."


@dual.mistake(SELF_AND_OTHER)
class OtherNames(Dual):
    def __mul__(self, other):
        return a * b  # type: ignore[name-defined]  # noqa: F821


@dual.mistake(SELF_AND_OTHER)
class ScalarsFromAbove(Dual):
    def __mul__(self, other):
        return Scalar(1.0).slope  # type: ignore[attr-defined]


@dual.mistake(
    "`other` is a Dual, and not a plain number. Take its two parts: `other.value` and `other.slope`."
)
class OtherAsNumber(Dual):
    def __mul__(self, other):
        return Dual(self.value * other, self.slope * other)


@dual.mistake(
    "`self * other` calls `__mul__` again, and again. Multiply plain numbers, such as `self.value`."
)
class CallsItself(Dual):
    def __mul__(self, other):
        return self * other


@dual.mistake("The value comes first, and then the slope: `Dual(value, slope)`.")
class SlopeFirst(Dual):
    def __mul__(self, other):
        return Dual(self.slope * other.value + self.value * other.slope, self.value * other.value)


@dual.mistake(
    "You subtract. If both factors move, the product moves by what the first brings *plus* the rest."
)
class Subtracted(Dual):
    def __mul__(self, other):
        return Dual(self.value * other.value, self.slope * other.value - self.value * other.slope)


@dual.mistake("The two numbers are there. Now make a Dual of them: `Dual(value, slope)`.")
class Pair(Dual):
    def __mul__(self, other):
        return self.value * other.value, self.slope * other.value + self.value * other.slope


@dual.mistake("A factor may be used again later, so leave `self` and `other` as they are. Make a new Dual.")
class InPlace(Dual):
    def __mul__(self, other):
        self.slope = self.slope * other.value + self.value * other.slope
        self.value *= other.value
        return self


@dual.mistake("This is a plain number. Give back a Dual: the value, and the slope.")
class PlainNumber(Dual):
    def __mul__(self, other):
        return self.value * other.value


# --- Predictions --------------------------------------------------------------------------------------------

predictions.ask(
    "one more kilometre",
    "How much more does the ride cost if it is one kilometre longer?",
    right="2.2",
    why="The kilometre costs 2, and the driver gets a tenth of that on top.",
    replies={
        "2": "That is the kilometre itself. The tip is a tenth of everything, so it grows, too.",
        "22": "That is the whole bill. By how much does it *change*?",
        "0.2": "That is what the tip grows by. And the kilometre itself?",
        "24.2": "That is the new bill. By how much has it changed?",
        "1.1": "That is what one more *unit* of the fare costs with its tip. A kilometre is 2 of them.",
    },
    otherwise="What does the kilometre cost? And what does the tip add to that?",
)
predictions.choose(
    "best step",
    "Your central difference of x³ at 2 should be 12. Which of these steps gives the smallest error?",
    {
        "e = 10⁻¹": "Rather small already, but the curve still bends between 1.9 and 2.1. The error is 0.01.",
        "e = 10⁻⁵": "Right: the error is more than a thousand times smaller than with the others.",
        "e = 10⁻¹⁰": "Here the curve is as good as straight. But something else goes wrong: drag the step.",
        "e = 10⁻¹⁵": "That is what mathematics says. But a computer keeps only 16 digits of each number.",
    },
    right="e = 10⁻⁵",
)
predictions.choose(
    "used twice",
    "Now one number is used twice, and so is the result: `b = a + a` and `c = b + b`. What will "
    "`simple_walk(c)` write into `a.grad`?",
    {
        "2": "No: `b` passes on 2 when it is visited, and to `a` it does so more than once.",
        "4": "That is how far `c` moves if `a` moves by 1. But look at how often `b` gets into the list.",
        "8": "Right: `b` is visited twice, and each time it passes on all that it has.",
    },
    right="8",
)
predictions.choose(
    "second walk",
    "Now let `y = 3 * x1 + x2`, with the same two numbers, and walk back with `y.backward()`. What are "
    "`x1.grad` and `x2.grad`?",
    {
        "3 and 1": "These are the derivatives of the new `y`. But what was in the grads before?",
        "4 and 2": "Right: 1 + 3 and 1 + 1. The walk only adds, and nobody has cleared the grads.",
        "1 and 1": "That is what the first walk left. The second one does add something.",
        "30 and 20": "These are the two summands of `y`. A derivative says how far it *moves*.",
    },
    right="4 and 2",
)
