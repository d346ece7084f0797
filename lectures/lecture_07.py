"""Lecture 07, reverse mode: its exercises, the usual mistakes in them, and its predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle as ndl
from needle import autograd
from needle.autograd import Tensor

from .checking import (
    NUMBERS,
    Case,
    Lecture,
    arrays,
    case,
    drawn,
    given,
    graphs,
    order_of,
    program_case,
    unshared,
)
from .checking import derivatives as differentiable

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


def count_uses(output: Tensor) -> dict[Tensor, int]:
    """How often each node that leads to `output` is used as an operand on the way to it."""
    uses = {output: 0}
    found = [output]
    for node in found:
        for i in node.inputs:
            if i not in uses:
                uses[i] = 0
                found.append(i)
            uses[i] += 1
    return uses


def in_words(partials: Sequence[tuple[Tensor | None, Tensor]], names: Mapping[Tensor, str]) -> str:
    """Partial adjoints as a sum: ``2 (via v4) + 1 (via v3)``."""
    return " + ".join(
        f"{partial.item():g} ({'seed' if via is None else 'via ' + names[via]})" for via, partial in partials
    )


# --- The graphs of the cases --------------------------------------------------------------------------------


def tensor(numbers: Any) -> Tensor:
    """A Tensor of 64-bit numbers, so that sums in another order differ by less than a mistake does."""
    return Tensor(numbers, dtype="float64")


def graph_case(*lines: str, output: str = "") -> Case:
    """A case whose graph these lines compute; the answer gets what the last one computes."""
    return program_case(lines, {"ndl": ndl, "Tensor": tensor}, output or lines[-1].split()[0])


#: The lecture's example, at 0 and where exp is not 1; a number that is used twice, twice in a row; two ways of
#: different length; and a product between two summands, so that a walk back meets a leaf before the product.
V1_TO_V4 = ("v1 = Tensor([0.0])", "v2 = ndl.exp(v1)", "v3 = v2 + 1", "v4 = v2 * v3")
ELSEWHERE = ("v1 = Tensor([0.5])", *V1_TO_V4[1:])
DOUBLING = ("a = Tensor([1.0])", "b = a + a", "c = b + b")
DIAMOND = ("x = Tensor([3.0])", "squared = x * x", "shifted = squared + 1", "y = shifted * x")
LINE = (
    *("w = Tensor([2.0])", "x = Tensor([3.0])", "b = Tensor([4.0])", "c = Tensor([5.0])"),
    "y = c + w * x + b",
)
MANY_WAYS = ("x = Tensor([1.0])", "y = x * x", *["y = y * y"] * 8)
#: The longer way is found after what lies behind `s` has its place: it has to move, too.
LADDER = ("x = Tensor([0.5])", "m = x * x", "s = m + 1", "t = s + 1", "u = t + 1", "y = s * u")


def begun_earlier(parts: tuple[list[str], bool, bool]) -> Case:
    """A case of a graph whose leaves a and b, on demand, are computed from others: so inner nodes pass on, too.

    On demand, each has two numbers: so the seed has to have the shape of the output.
    """
    lines, wide, deeper = parts
    if wide:
        lines = [line.replace("])", ", 1.5])") for line in lines]
    if deeper:
        starts = [line for line in lines if "Tensor" in line]
        lines = lines[len(starts) :]
        for name, start in [(line[0], line) for line in reversed(starts)]:
            lines = [f"leaf_{start}", f"{name} = leaf_{name} * leaf_{name}", *lines]
    return graph_case(*lines)


drawn_graphs = st.tuples(
    graphs("Tensor([{}])", ["{a} * {b}", "{a} + {b}", "{a} + 1", "ndl.tanh({a})"]),
    st.booleans(),
    st.booleans(),
).map(begun_earlier)


# --- 1 Adjoints by hand -------------------------------------------------------------------------------------


@lecture.exercise(
    case(2.0, 5.0),
    # beside 1e200 a nudge is lost, and q is too large for a number
    draws=drawn((*NUMBERS, 1e200), (*NUMBERS, 1e200)),
    otherwise="Begin with 1 for q. A sum passes its adjoint on as it is; a product multiplies it by the other "
    "factor.",
)
def adjoints_by_hand(a, b):
    return [1.0, 1.0, a, b + 1.0]


# --- 2 The order --------------------------------------------------------------------------------------------


@lecture.exercise(
    graph_case(*V1_TO_V4),
    graph_case(*DOUBLING),
    graph_case(*V1_TO_V4, output="v1"),
    draws=drawn_graphs,
    number=250,
    otherwise="Draw this graph on paper with the number of uses at each node. Strike out a node that has 0, count "
    "its inputs down, and compare with your list.",
    compare=order_of("consumers"),
    without={autograd.find_topo_sort: "This exercise is what `find_topo_sort` does, so write it without it."},
)
def reverse_order(output):
    waits_for = count_uses(output)
    order, ready_now = [], [output]
    while ready_now:
        node = ready_now.pop()
        order.append(node)
        for i in node.inputs:
            waits_for[i] -= 1
            if waits_for[i] == 0:
                ready_now.append(i)
    return order


EVERY_WAY = "You come to a node once for each way that leads to it. Remember which nodes you have seen."


@reverse_order.mistake(EVERY_WAY)
def every_way(output):
    return [output, *(node for i in output.inputs for node in every_way(i))]


@reverse_order.mistake(
    "You list a node as soon as you meet it. But a node has to wait for all that use it: list it *after* you have "
    "been through its inputs, and turn the list around at the end."
)
def as_met(output):
    order: list[Tensor] = []

    def visit(node):
        if node not in order:
            order.append(node)
            for i in node.inputs:
                visit(i)

    visit(output)
    return order


@reverse_order.mistake(
    "You sort by how far a node is from the output. When you find a longer way to a node, all that lies behind it "
    "is farther away, too: pass that on."
)
def by_distance(output):
    distance, found = {output: 0}, [output]
    for node in found:
        for i in node.inputs:
            distance[i] = max(distance.get(i, 0), distance[node] + 1)
            if i not in found:
                found.append(i)
    return sorted(distance, key=distance.get)


# --- 3 Reverse mode -----------------------------------------------------------------------------------------


def asked(graph: Case, *variables: str) -> Case:
    """A case that asks for the adjoints of some variables of a graph. Behind them come its leaves."""
    leaves = [name for name, node in graph.make().items() if node.is_leaf()]

    def make() -> dict[str, Any]:
        everything = graph.make()
        return {**everything, "its variables": [everything[name] for name in variables]}

    return Case(make, (*graph.chosen, "its variables", *leaves), graph.program)


def asked_of_some(parts: tuple[Case, list[int]]) -> Case:
    """A case that asks for variables at these places, among those that lead to the output."""
    graph, places = parts
    everything = graph.make()
    uses = count_uses(everything[graph.chosen[0]])
    there = [name for name, node in everything.items() if node in uses]
    return asked(graph, *(there[place % len(there)] for place in places))


def after_another(answer: Any, output: Tensor, variables: list[Tensor], *leaves: Tensor) -> Any:
    """What an answer gives when the same output was asked for before, in Tensors of its own."""
    before, found = answer(output, [output, *variables]), answer(output, variables)
    tensors = [x for x in found if isinstance(x, Tensor)] if isinstance(found, list) else []
    if len(autograd.find_topo_sort(tensors)) > 500:
        raise ValueError("it goes along every way back, and there are hundreds: visit each node once")
    if isinstance(found, list) and any(x is one for x in found for one in before):
        raise ValueError("called again, it gives back Tensors of the call before")
    return found


WALK = "This call walks back for you. The exercise is to write the walk itself."


@lecture.exercise(
    asked(graph_case(*V1_TO_V4), "v3"),
    asked(graph_case(*ELSEWHERE), "v1", "v2"),
    asked(graph_case(*DIAMOND), "x", "squared"),
    asked(graph_case(*LINE), "w", "b"),
    asked(graph_case(*LADDER), "x"),
    asked(graph_case(*MANY_WAYS), "x"),
    draws=st.tuples(drawn_graphs, st.lists(st.integers(0, 9), min_size=1, max_size=3)).map(asked_of_some),
    use=after_another,
    form="derivatives({}, {})",
    otherwise="Print what has arrived at each node, in the order of your walk. Compare it with section 5.",
    without=dict.fromkeys((Tensor.backward, ndl.gradients, autograd.adjoints, autograd.walk_back), WALK),
    contracts=(differentiable,),
    unless=(unshared,),  # a sum passes on the very adjoint that it got
)
def derivatives(output, variables):
    arrived = {output: ndl.ones_like(output)}
    for node in reversed(ndl.autograd.find_topo_sort([output])):
        if node.op is not None:
            partials = node.op.gradient_as_tuple(arrived[node], node)
            for i, partial in zip(node.inputs, partials, strict=True):
                arrived[i] = arrived[i] + partial if i in arrived else partial
    return [arrived[x] for x in variables]


# --- 4 The nth derivative -----------------------------------------------------------------------------------


def example(v):
    """The function of the lecture."""
    return ndl.exp(v) * (ndl.exp(v) + 1)


def cube(v):
    """x³; its derivatives are 3x², 6x, 6 and 0."""
    return v * v * v


def straight(v):
    """3x + 2; its first derivative is the same everywhere."""
    return v * 3 + 2


def wave(v):
    """A function whose derivatives never end."""
    return ndl.tanh(v) * v


def of_function(f: Any, x: Sequence[float], n: int) -> Case:
    """A case that asks for the nth derivative of f at x."""
    return given(lambda: {f.__name__: f, "x": tensor(x), "n": n}, f.__name__, "x", "n")


@lecture.exercise(
    of_function(example, [0.0], 2),
    of_function(cube, [4.0], 3),
    draws=st.tuples(
        st.sampled_from([cube, example, wave, straight]),
        st.sampled_from([[2.0], [0.5], [-1.0], [2.0, 3.0], [0.0]]),
        st.sampled_from([1, 2, 3, 4, 5]),
    ).map(lambda parts: of_function(*parts)),
    number=60,
    otherwise="First get the first derivative, as a Tensor. It has a graph, so differentiate it in the same way. "
    "Nudging is too coarse, and leaves no graph.",
    contracts=(differentiable,),
)
def nth_derivative(f, x, n):
    y = f(x)
    for _ in range(n):
        if not y.requires_grad:
            return ndl.zeros_like(x)
        (y,) = ndl.gradients(y, [x])
    return y


# --- 5 A rule for your own operator -------------------------------------------------------------------------


def applied(operator: Any, x: Tensor, out_grad: Tensor) -> Any:
    """What an operator makes of x, and what its rule makes of the adjoint of that."""
    result = operator()(x)
    partial = operator().gradient(out_grad, result)
    return ... if partial is ... else [result, partial]


def with_adjoint(x: np.ndarray, scale: float) -> Case:
    """A case of such an x, and an adjoint of its square that differs from place to place."""
    adjoint = scale * np.arange(1, x.size + 1).reshape(x.shape)
    return given(lambda: {"x": tensor(x), "out_grad": tensor(adjoint)}, "x", "out_grad")


class Square(ndl.autograd.TensorOp):
    def compute(self, a):
        return a * a

    def gradient(self, out_grad, node):
        return out_grad * 2 * node.inputs[0]


square = lecture.exercise(
    with_adjoint(np.array([3.0]), 10.0),
    draws=st.tuples(arrays(), st.sampled_from([2.0, 1.0, -0.5])).map(lambda parts: with_adjoint(*parts)),
    otherwise="Nudge x by 0.01: how far does x · x move? That, per unit of the nudge, times `out_grad`. The check "
    "shows two Tensors: x · x, and what your rule returns.",
    use=applied,
    contracts=(differentiable,),
)(Square)
