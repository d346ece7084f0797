"""Lecture 04, derivatives and a scalar engine: its exercises, the usual mistakes in them, its picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

from hypothesis import strategies as st

from .checking import NUMBERS, Case, Lecture, case, drawn, given, graphs, order_of, own_work, program_case

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


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

    def tanh(self) -> Scalar:
        return Scalar(t := math.tanh(self.value), [(self, 1 - t * t)])


class Expression(str):
    """What a message shows as it is: Python code, or words."""

    def __repr__(self) -> str:
        return str(self)


CHANGED = Expression("a number that was there before, changed")


def untouched(nodes: Sequence[Any], run: Callable[[], Any], grad: bool = True) -> Any:
    """What `run()` gives; `CHANGED` if it changes the value, the history or the grad of one of these numbers."""

    def state() -> list[Any]:
        return [(x.value, [*x.history], x.grad if grad else 0) for x in nodes]

    before = state()
    result = run()
    return result if state() == before else CHANGED


def graph_case(*lines: str, output: str = "") -> Case:
    """A case whose graph these lines compute; the answer gets what the last one computes."""
    return program_case(lines, {"Scalar": Scalar}, output or lines[-1].split()[0])


#: The lecture's graphs: a number used twice, twice in a row; the bill of the taxi; short cuts past long ways.
DOUBLING = ("a = Scalar(3)", "b = a + a", "c = b + b")
TAXI = (
    *("base = Scalar(4)", "rate = Scalar(2)", "km = Scalar(8)", "one = Scalar(1)", "tip = Scalar(0.1)"),
    *("way = rate * km", "fare = base + way", "factor = one + tip", "bill = fare * factor"),
)
SHORT_CUTS = (
    *("a = Scalar(2)", "s = a * a", "t = s + s", "u = t + t", "v = u * s", "w = v + v", "x = w + w"),
    *("y = x * v", "z = y + y", "k = z + z", "l = k + y"),
)
drawn_graphs = graphs("Scalar({})", ["{a} * {b}", "{a} + {b}"]).map(lambda lines: graph_case(*lines))


# --- 1 The central difference -------------------------------------------------------------------------------


def cube(x):
    """x³"""
    return x * x * x


def bell(x):
    """1 / (1 + x²)"""
    return 1 / (1 + x * x)


@lecture.exercise(
    given(lambda: {"cube": cube, "x": 2.0, "e": 0.1}, "cube", "x", "e"),
    draws=drawn([cube, bell], (*NUMBERS, 1.234), [0.5, 0.1, 0.01]),
    otherwise="Compute it with pencil and paper for `cube` at 2 with e = 0.1: what is f(2.1), what is f(1.9), and "
    "how far apart are 2.1 and 1.9?",
)
def central_difference(f, x, e):
    return (f(x + e) - f(x - e)) / (2 * e)


# --- 2 By hand ----------------------------------------------------------------------------------------------


def nudged(name: str, e: float) -> float:
    """What comes out of the graph that is filled in by hand, if the number of this name is moved by e."""

    def at(n: str, value: float) -> float:
        return value + e if n == name else value

    p = at("p", at("a", 3.0) * at("b", 2.0))
    q = at("q", p + at("c", -1.0))
    return at("y", q * at("d", 4.0))


def misfilled(answer: Callable) -> Any:
    """The first number that nudging does not confirm, in words; None if it confirms them all."""
    filled = answer()
    if not isinstance(filled, dict):
        return filled if filled is ... else f"it is {article(filled)}, but should be a dictionary"
    if ... in filled.values():
        return ...
    for name in "yqdpcab":
        if not isinstance(says := filled.get(name), (int, float)):
            return f"{name!r} has no number" if name in filled else f"{name!r} is missing"
        if not math.isclose((nudged(name, 0.1) - nudged(name, -0.1)) / 0.2, says, abs_tol=1e-6):
            return f"nudge {name} by 0.1: then y does not move by {says:g} · 0.1"
    return None


@lecture.exercise(
    case(),
    use=misfilled,
    compare=lambda expected, got, names: "" if got == expected else f"{got}",
    otherwise="Follow a nudge of this number, arrow by arrow, up to y. What is it multiplied by on its way?",
)
def by_hand():
    return {"y": 1, "q": 4, "d": 5, "p": 4, "c": 4, "a": 8, "b": 12}


# --- 3 A sum and a product that remember ----------------------------------------------------------------------


def plain(x: Any) -> Any:
    """A number as it is; anything else, such as a Scalar, as a message shows it."""
    return x if isinstance(x, (int, float)) else Expression(repr(x))


def own_scalar(answer: Callable) -> Callable[..., Any]:
    """The class Scalar that an answer knows: the notebook's."""
    return getattr(answer, "__globals__", {}).get("Scalar", Scalar)


def article(value: Any) -> str:
    """A wrong kind of result, in words."""
    return f"{value}" if value is None or isinstance(value, Expression) else f"a plain {type(value).__name__}"


def made(answer: Callable, *values: float | None) -> Any:
    """What an answer makes of numbers of its own class, a and b; None stands for the first one once more."""
    operands: list[Any] = []
    for value in values:
        make = own_scalar(answer)  # what an operand was computed from is no business of the answer
        operands.append(operands[0] if value is None else make(value, [(make(7.0), 3.0)]))
    results: Any = untouched(operands, lambda: [answer(*operands), answer(*operands)])
    result, again = (CHANGED, CHANGED) if results is CHANGED else results
    if result is None or result is ...:
        return result
    if not hasattr(result, "history"):
        return {"it is": Expression(article(result))}
    if not isinstance(result.history, (list, tuple)) or result.history is again.history != ():
        return {"it is": Expression("a Scalar whose history is not a list of its own")}
    names = {id(x): name for x, name in zip(operands[::-1], "ab"[: len(operands)][::-1], strict=True)}
    names |= {id(x.history[0][0]): f"what {name} came from" for x, name in zip(operands, "ab", strict=False)}
    found = {"value": plain(result.value)}
    for i, slope in result.history:  # of a number that comes twice, the derivatives are added up
        name = f"derivative for {names.get(id(i), repr(i))}"
        found[name] = found[name] + slope if name in found else plain(slope)
    return found


OPERANDS = drawn(NUMBERS, [5, 2, -3, 0.5, 0, None])


@lecture.exercise(
    case(2.0, 5.0),
    draws=OPERANDS,
    otherwise="You need two things: the value, and a list of two pairs. If one of the two numbers moves by 0.1, how "
    "far does the sum move?",
    use=made,
)
def __add__(self, other):
    return Scalar(self.value + other.value, [(self, 1.0), (other, 1.0)])


@lecture.exercise(
    case(2.0, 5.0),
    draws=OPERANDS,
    otherwise="You need two things: the value, and a list of two pairs, one for a and one for b. If a moves by "
    "0.1, how far does a · b move?",
    use=made,
)
def multiply(a, b):
    return Scalar(a.value * b.value, [(a, b.value), (b, a.value)])


# --- 4 The order --------------------------------------------------------------------------------------------


def inputs_of(node: Any) -> list[Any]:
    """What a number was computed from."""
    return [i for i, _ in node.history]


def listed(answer: Callable, output: Any) -> Any:
    """What an answer gives back; [] while its inner function still says ``return ...``."""
    answer(output)  # the second time, what it left behind would show
    result = untouched(topological_order(output), lambda: answer(output))
    inner = [
        x for x in getattr(getattr(answer, "__code__", None), "co_consts", ()) if hasattr(x, "co_consts")
    ]
    return ... if result == [] and any(... in code.co_consts for code in inner) else result


@lecture.exercise(
    graph_case(*DOUBLING),
    graph_case(*TAXI),
    graph_case(*DOUBLING, output="a"),
    graph_case(*SHORT_CUTS),
    draws=drawn_graphs,
    number=150,
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


# --- 5 The walk back ----------------------------------------------------------------------------------------


def grads(answer: Callable, output: Scalar, before: float) -> Any:
    """What a walk leaves in all grads, in the order of the graph, on a copy of it."""
    nodes = topological_order(deepcopy(output))
    for node in nodes:
        node.grad = before if node is nodes[-1] or not node.history else 0.0
    result = untouched(nodes, lambda: answer(nodes[-1]), grad=False)
    return result if result is ... or result is CHANGED else [round(node.grad, 6) for node in nodes]


def with_grads(asked: Case, before: float) -> Case:
    """A case of a graph, whose output and leaves have such a grad from an earlier walk."""
    return Case(lambda: {**asked.make(), "before": before}, (*asked.chosen, "before"), asked.program)


order = topological_order.right


@lecture.exercise(
    with_grads(graph_case(*TAXI), 0.0),
    with_grads(graph_case(*DOUBLING), 0.0),
    with_grads(graph_case(*SHORT_CUTS), 0.0),
    draws=st.tuples(drawn_graphs, st.sampled_from([0.0, 0.0, 2.0])).map(lambda x: with_grads(*x)),
    number=150,
    use=grads,
    form="backward({}), with {} in its own grad and in those of the leaves before,",
    otherwise="Print each number and its grad in the order of your walk. The output has 1. What does it pass on to "
    "its inputs?",
)
def backward(output):
    output.grad = 1.0
    for node in reversed(order(output)):
        for i, slope in node.history:
            i.grad += node.grad * slope


@backward.mistake("You go to a number once for each way to it, and each time it passes on all it has so far.")
def every_way_again(output):
    waiting = [output]
    output.grad = 1.0
    for node in waiting:
        for i, slope in node.history:
            i.grad += node.grad * slope
            waiting.append(i)


@backward.mistake(
    "You walk on from a number as soon as something arrives there, and again when more arrives. Wait until all "
    "has come back: go by the order."
)
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


# --- 6 A bent step, 7 a neuron --------------------------------------------------------------------------------


@lecture.exercise(
    case(0.5),
    draws=drawn([0.5, -1, 2, 1, 0, -0.25, 800]),
    otherwise="The value is `math.tanh(x.value)`. Its derivative is 1 minus the square of that very value.",
    use=made,
    unless=(own_work,),
)
def tanh(x):
    t = math.tanh(x.value)
    return Scalar(t, [(x, 1 - t * t)])


def fired(answer: Callable, w: list[float], x: list[float], b: float) -> Any:
    """What a neuron gives, and what the walk back through it leaves in the grads of its inputs."""
    make = cache(own_scalar(answer))  # a weight may be used twice
    weights, values, bias = [make(v) for v in w], [make(v) for v in x], make(b)
    handed = [*weights], [*values]
    y = untouched([*weights, *values, bias], lambda: answer(weights, values, bias))
    if (weights, values) != handed:
        return CHANGED
    if not hasattr(y, "history"):
        return y if y is ... or y is CHANGED else Expression(article(y))
    backward.right(y)
    grads = [[i.grad for i in numbers] for numbers in (weights, values, [bias])]
    return {
        "the value": y.value,
        "grads of w": grads[0],
        "grads of x": grads[1],
        "the grad of b": grads[2][0],
    }


@lecture.exercise(
    case([0.5, -1.0], [3.0, 2.0], 0.7),
    draws=st.tuples(
        *[st.sampled_from([[0.5], [0.5, -1.0], [0.25, 0.5, -0.5], [1.0, 0.0, -0.5, 0.25], [-1, 2, 2]])] * 2,
        st.sampled_from([0.75, -0.5, 0.0]),
    ).map(lambda x: case(x[0][: len(x[1])], x[1][: len(x[0])], x[2])),
    otherwise="Write it down for two inputs: w[0] · x[0] + w[1] · x[1] + b. Then send that through `.tanh()`.",
    use=fired,
    form="neuron({}, {}, {}), where equal numbers are one Scalar,",
)
def neuron(w, x, b):
    total = b
    for weight, value in zip(w, x, strict=True):
        total = total + weight * value
    return total.tanh()


# --- 8 Forward mode -----------------------------------------------------------------------------------------


def moved(numbers: type, expression: Expression) -> Any:
    """What an expression of ours gives with these numbers."""
    made: list[tuple[Any, float, float]] = []

    def make(value: float, slope: float = 0.0) -> Any:
        made.append((numbers(value, slope), value, slope))
        return made[-1][0]

    result = eval(expression, {"Dual": make})
    if result is None or result is ...:
        return result
    if any((number.value, number.slope) != (value, slope) for number, value, slope in made):
        return {"it is": CHANGED}
    if not hasattr(result, "slope"):
        return {"it is": Expression(article(result))}
    return ... if ... in (result.slope, result.value) else {"value": result.value, "slope": result.slope}


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


_number = st.tuples(st.sampled_from((*NUMBERS, 0.1)), st.sampled_from((1, 0, 2, -1))).map(
    lambda x: "Dual({}, {})".format(*x)
)
dual = lecture.exercise(
    case(Expression("Dual(2.0, 1.0) * Dual(5.0)")),
    case(Expression("Dual(3.0, 1.0) * Dual(3.0, 1.0)")),
    draws=st.tuples(
        st.sampled_from(
            ["{} * {}", "({} + {}) * {}", "{} * {} * {}", "({} * {}).tanh()", "(lambda x: x * x)({})"]
        ),
        *[_number] * 3,
    )
    .map(lambda x: x[0].format(*x[1:]))
    .map(lambda text: case(Expression(text))),
    otherwise="Both factors may move at once. How far does the product move if only the first moves? If only the "
    "second does? Add the two.",
    form="{}",
    use=moved,
)(Dual)
