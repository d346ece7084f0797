"""Lecture 04, derivatives and a scalar engine: its exercises, the usual mistakes in them, its picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from .checking import (
    NUMBERS,
    Case,
    Lecture,
    Names,
    case,
    drawn,
    given,
    graphs,
    order_of,
    program_case,
)

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


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
    """The lecture's number that remembers."""

    def __init__(self, value: float, history: Sequence[tuple[Scalar, float]] = ()):
        self.value, self.history, self.grad = value, history, 0.0

    def __repr__(self) -> str:
        return f"Scalar({self.value:g})"

    def __add__(self, other: Scalar) -> Scalar:
        return Scalar(self.value + other.value, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other: Scalar) -> Scalar:
        return Scalar(self.value * other.value, [(self, other.value), (other, self.value)])


def graph_case(*lines: str, output: str = "") -> Case:
    """A case whose graph these lines compute; the answer gets what the last one computes."""
    return program_case(lines, {"Scalar": Scalar}, output or lines[-1].split()[0])


#: The lecture's graphs: a number that is used twice, twice in a row, and the bill of the taxi.
DOUBLING = ("a = Scalar(3)", "b = a + a", "c = b + b")
TAXI = (
    *("base = Scalar(4)", "rate = Scalar(2)", "km = Scalar(8)", "one = Scalar(1)", "tip = Scalar(0.1)"),
    *("way = rate * km", "fare = base + way", "factor = one + tip", "bill = fare * factor"),
)
drawn_graphs = graphs("Scalar({})", ["{a} * {b}", "{a} + {b}"]).map(lambda lines: graph_case(*lines))


# --- 1 The central difference -------------------------------------------------------------------------------


def cube(x):
    """x³"""
    return x * x * x


def half_of_square(x):
    """x² / 2"""
    return x * x / 2


@lecture.exercise(
    given(lambda: {"cube": cube, "x": 2.0, "e": 0.1}, "cube", "x", "e"),
    draws=drawn([cube, half_of_square], NUMBERS, [0.5, 0.1, 0.01]),
    otherwise="Compute it with pencil and paper for `cube` at 2 with e = 0.1: what is f(2.1), what is f(1.9), and "
    "how far apart are 2.1 and 1.9?",
)
def central_difference(f, x, e):
    return (f(x + e) - f(x - e)) / (2 * e)


# --- 2 A product that remembers -----------------------------------------------------------------------------


class Made:
    """What an answer made of two numbers, a and b, so that it can be compared and shown."""

    def __init__(self, result: Any, a: Any, b: Any):
        names = {id(a): "a", id(b): "b"}
        self.value = plain(result.value)
        self.pairs = [(names.get(id(i), f"{i!r}"), plain(slope)) for i, slope in result.history]

    def slopes(self) -> dict[str, Any]:
        """By the name of each input in the history: its derivative, summed over the pairs."""
        found: dict[str, Any] = {}
        for name, slope in self.pairs:
            found[name] = found[name] + slope if name in found else slope
        return found

    def __repr__(self) -> str:
        pairs = ", ".join(f"({name}, {slope!r})" for name, slope in self.pairs)
        return f"a Scalar of value {self.value!r} with the history [{pairs}]"


class Expression(str):
    """Python code that a message shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def plain(x: Any) -> Any:
    """A number as it is; anything else, such as a Scalar, as a message shows it."""
    return x if isinstance(x, (int, float)) else Expression(repr(x))


def made(answer: Callable, a: float, b: float | None) -> Any:
    """What an answer makes of two numbers of its own class, or of one number twice."""
    make = getattr(answer, "__globals__", {}).get("Scalar", Scalar)
    one = make(a)
    other = one if b is None else make(b)
    result = answer(one, other)
    return Made(result, one, other) if hasattr(result, "history") else result


def as_made(expected: Any, got: Any, names: Names) -> str:
    """How the Scalar that was made differs from the right one."""
    if not isinstance(got, Made):
        return f"it is {article(got)}, but should be a Scalar"
    if got.value != expected.value:
        return f"its value is {got.value!r}, but should be {expected.value!r}"
    ours, yours = expected.slopes(), got.slopes()
    for name in {**yours, **ours}:
        if name not in ours:
            return f"its history names {name}, which is neither a nor b itself"
        if name not in yours:
            return f"{name} is not in its history"
        if yours[name] != ours[name]:
            return f"its derivative with respect to {name} is {yours[name]!r}, but should be {ours[name]!r}"
    return ""


def article(value: Any) -> str:
    """A wrong kind of result, in words."""
    return f"{value}" if value is None or isinstance(value, Expression) else f"a plain {type(value).__name__}"


@lecture.exercise(
    case(2.0, 5.0),
    draws=drawn(NUMBERS, [5, 2, -3, 0.5, 0, None]),
    otherwise="You need two things: the value, and a list of two pairs, one for a and one for b. If a moves by "
    "0.1, how far does a · b move?",
    compare=as_made,
    use=made,
    form="multiply({}, {})",
)
def multiply(a, b):
    return Scalar(a.value * b.value, [(a, b.value), (b, a.value)])


# --- 3 The order --------------------------------------------------------------------------------------------


def inputs_of(node: Any) -> list[Any]:
    """What a number was computed from."""
    return [i for i, _ in node.history]


def listed(answer: Callable, output: Any) -> Any:
    """What an answer gives back; [] while its inner function still says ``return ...``."""
    result = answer(output)
    inner = [
        x for x in getattr(getattr(answer, "__code__", None), "co_consts", ()) if hasattr(x, "co_consts")
    ]
    return ... if result == [] and any(... in code.co_consts for code in inner) else result


@lecture.exercise(
    graph_case(*DOUBLING),
    graph_case(*TAXI),
    graph_case(*DOUBLING, output="a"),
    draws=drawn_graphs,
    number=250,
    use=listed,
    compare=order_of("inputs", inputs_of),
    otherwise="Draw this graph, and write down a number only when all its inputs are written down.",
)
def topological_order(output):
    order = []

    def visit(node):
        if node not in order:
            for i, _ in node.history:
                visit(i)
            order.append(node)

    visit(output)
    return order


@topological_order.mistake(
    "You go level by level, and a number that is used at two levels comes too early. Visit the inputs of a "
    "number before you write it down."
)
def level_by_level(output):
    order, level = [], [output]
    while level:
        order = level + [node for node in order if node not in level]
        level = list(dict.fromkeys(i for node in level for i, _ in node.history if i not in order))
    return order


# --- 4 The walk back ----------------------------------------------------------------------------------------


def grads(answer: Callable, output: Scalar, before: float) -> Any:
    """What a walk leaves in all grads, in the order of the graph, on a copy of it."""
    nodes = topological_order(deepcopy(output))
    for node in nodes:
        node.grad = before if not node.history else 0.0
    if answer(nodes[-1]) is ...:
        return ...
    return [round(node.grad, 6) for node in nodes]


def with_grads(asked: Case, before: float) -> Case:
    """A case of a graph, whose leaves have such a grad from an earlier walk."""
    return Case(lambda: {**asked.make(), "before": before}, (*asked.chosen, "before"), asked.program)


order = topological_order.right


@lecture.exercise(
    with_grads(graph_case(*TAXI), 0.0),
    with_grads(graph_case(*DOUBLING), 0.0),
    draws=st.tuples(drawn_graphs, st.sampled_from([0.0, 0.0, 1.0])).map(lambda x: with_grads(*x)),
    number=200,
    use=grads,
    form="backward({}), with {} in the grads of its leaves before,",
    otherwise="Print each number and its grad in the order of your walk. The output has 1. What does it pass on to "
    "its inputs?",
)
def backward(output):
    output.grad = 1.0
    for node in reversed(order(output)):
        for i, slope in node.history:
            i.grad += node.grad * slope


CLEARED = "You clear the grads first, so what an earlier walk left there is lost. Here you add to it, whatever it is."


@backward.mistake("You go to a number once for each way to it, and each time it passes on all it has so far.")
def every_way_again(output):
    waiting = [output]
    output.grad = 1.0
    for node in waiting:
        for i, slope in node.history:
            i.grad += node.grad * slope
            waiting.append(i)


ON_AT_ONCE = (
    "You walk on from a number as soon as something arrives there, and again when more arrives. Wait until all "
    "has come back: go by the order."
)


@backward.mistake(ON_AT_ONCE)
def on_at_once(output):
    output.grad = 1.0

    def walk(node):
        for i, slope in node.history:
            i.grad += node.grad * slope
            walk(i)

    walk(output)


@backward.mistake(
    "You visit each number once, but some before all has come back to them. Go by the order that you have written."
)
def as_met(output):
    output.grad = 1.0
    waiting, seen = [output], {output}
    for node in waiting:
        for i, slope in node.history:
            i.grad += node.grad * slope
            if i not in seen:
                seen.add(i)
                waiting.append(i)


# --- 5 Forward mode -----------------------------------------------------------------------------------------


class Moved:
    """What an expression of Dual numbers gave: its value and slope."""

    def __init__(self, value: Any, slope: Any):
        self.value, self.slope = value, slope

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.slope!r})"


CHANGED = Expression("a Dual that was there before")


def moved(numbers: type, expression: Expression) -> Any:
    """What an expression of ours gives with these numbers."""
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


def as_moved(expected: Any, got: Any, names: Names) -> str:
    """How the Dual that was made differs from the right one."""
    if not isinstance(got, Moved):
        return f"it is {article(got)}, but should be a {'new ' if got is CHANGED else ''}Dual"
    for what in ("value", "slope"):
        came, right = getattr(got, what), getattr(expected, what)
        if not (isinstance(came, (int, float)) and math.isclose(came, right, abs_tol=1e-9)):
            return f"its {what} is {came!r}, but should be {right!r}"
    return ""


class Dual:
    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        slope = self.slope * other.value + self.value * other.slope
        return Dual(self.value * other.value, slope)

    def tanh(self):
        t = math.tanh(self.value)
        return Dual(t, (1 - t * t) * self.slope)


_number = st.tuples(st.sampled_from(NUMBERS), st.sampled_from((1, 0, 2, -1))).map(
    lambda x: "Dual({}, {})".format(*x)
)
dual = lecture.exercise(
    case(Expression("Dual(2.0, 1.0) * Dual(5.0)")),
    case(Expression("Dual(3.0, 1.0) * Dual(3.0, 1.0)")),
    draws=st.tuples(
        st.sampled_from(["{} * {}", "({} + {}) * {}", "{} * {} * {}", "({} * {}).tanh()"]), *[_number] * 3
    )
    .map(lambda x: x[0].format(*x[1:]))
    .map(lambda text: case(Expression(text))),
    otherwise="Both factors may move at once. How far does the product move if only the first moves? If only the "
    "second does? Add the two.",
    form="{}",
    compare=as_moved,
    use=moved,
)(Dual)
