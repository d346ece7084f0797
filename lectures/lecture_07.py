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
check, ready, predict = lecture.check, lecture.ready, lecture.predict


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
#: The longer way is found after what lies behind `s` has its place: it has to move, too.
LADDER = ("x = Tensor([0.5])", "m = x * x", "s = m + 1", "t = s + 1", "u = t + 1", "y = s * u")


def begun_earlier(parts: tuple[list[str], bool]) -> Case:
    """A case of a graph whose leaves a and b, on demand, are computed from others: so inner nodes pass on, too."""
    lines, deeper = parts
    if deeper:
        starts = [line for line in lines if "Tensor" in line]
        lines = lines[len(starts) :]
        for name, start in [(line[0], line) for line in reversed(starts)]:
            lines = [f"leaf_{start}", f"{name} = leaf_{name} * leaf_{name}", *lines]
    return graph_case(*lines)


drawn_graphs = st.tuples(
    graphs("Tensor([{}])", ["{a} * {b}", "{a} + {b}", "{a} + 1", "ndl.tanh({a})"]), st.booleans()
).map(begun_earlier)


# --- 1 Adjoints by hand -------------------------------------------------------------------------------------


@lecture.exercise(
    case(2.0, 5.0),
    draws=drawn(NUMBERS, NUMBERS),
    otherwise="Begin with 1 for q. A sum passes its adjoint on as it is; a product multiplies it by the other "
    "factor.",
)
def adjoints_by_hand(a, b):
    return [1.0, 1.0, a, b + 1.0]


ADJOINTS = "[1.0, 1.0, a, b + 1.0]"
adjoints_by_hand.slip(
    "How many ways lead back from q to a? There are two, and what comes along them is added.",
    *("b + 1.0", "b"),
)
adjoints_by_hand.slip(
    "Look at the product again: the nudge of a factor is multiplied by the *other* factor.",
    *(ADJOINTS, "[1.0, 1.0, b, a + 1.0]"),
)
adjoints_by_hand.slip(
    "These are the right numbers in another order. The exercise asks for q, p, b, a.",
    *(ADJOINTS, "[b + 1.0, a, 1.0, 1.0]"),
)
adjoints_by_hand.slip(
    "These are the values of the variables. An adjoint says how far q moves per unit of a nudge.",
    *(ADJOINTS, "[a * b + a, a * b, b, a]"),
)
AS_A_LIST = "The numbers are right. Give them back as a plain list: `[…, …, …, …]`."
adjoints_by_hand.slip(AS_A_LIST, ADJOINTS, f"np.array({ADJOINTS})")
adjoints_by_hand.slip(AS_A_LIST, ADJOINTS, "{'q': 1.0, 'p': 1.0, 'b': a, 'a': b + 1.0}")
adjoints_by_hand.slip(
    "Three of four: the output `q` has an adjoint, too, the seed. It comes first.", "[1.0, 1.0,", "[1.0,"
)
adjoints_by_hand.slip(
    "Only `a` and `b` are given. Write numbers, or formulas in `a` and `b`.", ADJOINTS, "[q, p, b, a]"
)
adjoints_by_hand.slip(
    "You divide, and a factor may be 0. The derivative of a product by a factor is the other one: no need to divide.",
    *(ADJOINTS, "[1.0, 1.0, a * b / b, (a * b + a) / a]"),
)


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
LEVEL_BY_LEVEL = (
    "You go level by level. But a node may be one step away along one way, and two steps along another: "
    "it has to wait for the longer one."
)
FROM_THE_DICTIONARY = (
    "You go through the dictionary in its own order. Go through those who are ready, and let the list of "
    "them grow: whoever reaches 0 joins it."
)
LOOP = "while ready_now:\n        node = ready_now.pop()\n        order.append(node)\n"
reverse_order.slip(
    "This is the order of the forward pass, inputs first. The backward pass goes the other way.",
    *("return order", "return order[::-1]"),
)
reverse_order.slip(
    "You come to a node once for each way that leads to it: all that you meet join those who are ready. Only "
    "who has come down to 0 may join; a `...` left in a condition counts as true.",
    *("if waits_for[i] == 0", "if ..."),
)
reverse_order.slip(
    LEVEL_BY_LEVEL, ("if waits_for[i] == 0", "if i not in order + ready_now"), ("pop()", "pop(0)")
)
reverse_order.slip(
    "You pass over what you have met, and go on from the newest. But a node has to wait for *all* that use it.",
    *("if waits_for[i] == 0", "if i not in order + ready_now"),
)
reverse_order.slip(
    "Only the output and its own inputs are there. Their inputs belong to the graph, too.",
    *("return order", "return [output, *dict.fromkeys(output.inputs)]"),
)
reverse_order.slip(
    "You list only the output, which nobody uses. When you visit it, its inputs wait for one use less: count "
    "down, and see who is ready now.",
    *("waits_for[i] -= 1", "pass"),
)
reverse_order.slip(
    "`b + b` uses `b` twice, and it stands in `inputs` twice. Count down once for each of the two.",
    *("in node.inputs", "in dict.fromkeys(node.inputs)"),
)
reverse_order.slip(
    "You follow the first input only. A node has others, too: count down for each of its `inputs`.",
    *("in node.inputs", "in node.inputs[:1]"),
)
reverse_order.slip(
    FROM_THE_DICTIONARY,
    *(LOOP, "for node in waits_for:\n        if waits_for[node] == 0:\n            order.append(node)\n"),
)
reverse_order.slip(
    FROM_THE_DICTIONARY,
    (LOOP, "order.append(output)\n    for node in waits_for:\n"),
    ("ready_now.append(i)", "order.append(i)"),
)
reverse_order.slip(
    "A node knows its `inputs`, but not who uses it. `count_uses(output)` tells you how often it is used.",
    *("in node.inputs", "in node.consumers"),
)
reverse_order.slip(
    "The output is missing. It comes first: nobody has to pass anything on to it.",
    "return order",
    "return order[1:]",
)


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


WALK = "This call walks back for you. The exercise is to write the walk itself."


@lecture.exercise(
    asked(graph_case(*V1_TO_V4), "v3"),
    asked(graph_case(*ELSEWHERE), "v1", "v2"),
    asked(graph_case(*DIAMOND), "x", "squared"),
    asked(graph_case(*LINE), "w", "b"),
    asked(graph_case(*LADDER), "x"),
    draws=st.tuples(drawn_graphs, st.lists(st.integers(0, 9), min_size=1, max_size=3)).map(asked_of_some),
    number=200,
    use=lambda answer, output, variables, *leaves: answer(output, variables),
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


ORDER = "reversed(ndl.autograd.find_topo_sort([output]))"
ADDED = "arrived[i] = arrived[i] + partial if i in arrived else partial"
RESULT = "[arrived[x] for x in variables]"
TOO_EARLY = "A node passes on before all has arrived there. Take the order of Exercise 2, or `find_topo_sort`, reversed."
NOT_YET = (
    "Nothing has arrived at that node yet. Do you go forward? Then turn the order around. Or do you add to "
    "an entry that is not there? What arrives first starts it."
)
NO_HISTORY = "These are numbers without a history. Return the Tensors, so that one can go on from them."
ANYWHERE = "This is all that arrived anywhere. Return a list of what arrived at each of `variables`."
derivatives.slip(
    "What arrives later replaces what came before. Where two partial adjoints arrive, add them up.",
    *(ADDED, "arrived[i] = partial"),
)
derivatives.slip(
    "You keep only what arrives first. Where two partial adjoints arrive, add them up.",
    *(ADDED, "arrived.setdefault(i, partial)"),
)
for too_early in ("as_met", "by_distance", "count_uses"):
    derivatives.slip(TOO_EARLY, ORDER, f"{too_early}(output)")
derivatives.slip(
    "You pass on a 1 at every node. The seed belongs to the output alone; any other node passes on what "
    "arrived there.",
    *("arrived[node], node", "ndl.ones_like(node), node"),
)
derivatives.slip(
    "This is one step back from the output. Go on from there, until you reach the leaves.",
    *(RESULT, "[output.op.gradient_as_tuple(ndl.ones_like(output), output)[-1] for x in variables]"),
)
derivatives.slip(NOT_YET, ORDER, "ndl.autograd.find_topo_sort([output])")
derivatives.slip(NOT_YET, ADDED, "arrived[i] += partial")
derivatives.slip(
    "`find_topo_sort` wants a list of outputs: `find_topo_sort([output])`.", "[output]", "output"
)
derivatives.slip(NO_HISTORY, RESULT, "[arrived[x].item() for x in variables]")
derivatives.slip(NO_HISTORY, RESULT, "[arrived[x].numpy() for x in variables]")
derivatives.slip(
    "Your walk came to a leaf. Its `op` is None: nothing made it, so there is no step back. Skip the leaves.",
    *("if node.op is not None", "if True"),
)
derivatives.slip(
    "You stop at the first leaf. Others may still have something to pass on: skip the leaf (`continue`), and "
    "do not stop there.",
    *("if node.op is not None:", "if node.op is None:\n            break\n        else:"),
)
derivatives.slip(
    "The seed must be a Tensor of the shape of the output: `ndl.ones_like(output)`.",
    "ndl.ones_like(output)",
    "1",
)
derivatives.slip(
    "You keep what arrives in a list. Before a node passes it on, add it up: a rule wants *one* Tensor.",
    ("ndl.ones_like(output)", "[ndl.ones_like(output)]"),
    (ADDED, "arrived.setdefault(i, []).append(partial)"),
)
derivatives.slip(ANYWHERE, RESULT, "arrived")
derivatives.slip(ANYWHERE, RESULT, "list(arrived.values())")
derivatives.slip(
    "Return a list, also for a single variable: one Tensor for each of `variables`.",
    *(RESULT, "arrived[variables[0]]"),
)


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


END = "        if not y.requires_grad:\n            return ndl.zeros_like(x)\n"
STEP = "(y,) = ndl.gradients(y, [x])"
ONE_OF_THE_LIST = (
    "`gradients` gives you a list, one Tensor for each input. Take the one out of it: `(y,) = …`."
)
HISTORY_CUT = (
    "A Tensor that is made anew, or detached, has no history, so no gradient flows through it. Go on with "
    "the Tensor you have."
)
nth_derivative.slip(
    "This is the first derivative. It is a Tensor with a graph: go on, and differentiate it again.",
    *("range(n)", "range(1)"),
)
nth_derivative.slip(
    "You differentiate twice, whatever `n` is. Put the step into a loop.", "range(n)", "range(2)"
)
nth_derivative.slip(
    "You differentiate once too often: `f(x)` itself is the start, for n = 0.", "range(n)", "range(n + 1)"
)
nth_derivative.slip("You differentiate once too few.", "range(n)", "range(n - 1)")
nth_derivative.slip(
    "This is a power of the first derivative. The second derivative is the derivative *of* the first.",
    ("range(n)", "range(1)"),
    ("return y", "return y**n"),
)
nth_derivative.slip(
    "Here the last derivative is a constant, such as the 6 of x³, and a constant does not require a gradient. Its "
    "derivative is 0: return `ndl.zeros_like(x)`.",
    *(END, ""),
)
nth_derivative.slip(ONE_OF_THE_LIST, STEP, "y = ndl.gradients(y, [x])")
nth_derivative.slip(ONE_OF_THE_LIST, (END, ""), (STEP, "y = ndl.gradients(y, [x])"))
nth_derivative.slip(
    "`gradients` gives you a list, also at the end. Return the one Tensor that is in it.",
    *("return y", "return [y]"),
)
nth_derivative.slip(HISTORY_CUT, STEP, "y = ndl.gradients(y, [x])[0].detach()")
nth_derivative.slip(HISTORY_CUT, (END, ""), (STEP, "y = ndl.gradients(y, [x])[0].detach()"))
nth_derivative.slip(
    "`gradients` wants a list of inputs: `ndl.gradients(y, [x])`.", STEP, "(y,) = ndl.gradients(y, x)"
)


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

RULE = "out_grad * 2 * node.inputs[0]"
NOT_A_LIST = "The numbers are right. There is one operand, so return the Tensor itself, not a list of it."
square.slip(
    "This is your own derivative. Multiply it by what came back, `out_grad`.", RULE, "2 * node.inputs[0]"
)
square.slip("The derivative of a² is 2a: both factors move when a moves.", RULE, "out_grad * node.inputs[0]")
square.slip("`node` is the result, a². Its operand is `node.inputs[0]`.", RULE, "out_grad * 2 * node")
square.slip(
    "The derivative of a² is 2a, and yours is 2: where is the operand, `node.inputs[0]`?",
    RULE,
    "out_grad * 2",
)
square.slip("a² is the value. The derivative of a² is 2a.", RULE, "out_grad * node.inputs[0] ** 2")
square.slip(
    "You add what came back to your own derivative. Multiply the two.", RULE, "out_grad + 2 * node.inputs[0]"
)
square.slip(NOT_A_LIST, RULE, f"[{RULE}]")
square.slip(NOT_A_LIST, RULE, f"({RULE},)")
square.slip(
    "Only `compute` has an `a`. A rule has `out_grad` and `node`, and the operand is `node.inputs[0]`.",
    *(RULE, "out_grad * 2 * a"),
)
square.slip(
    "`.data` and `detach()` cut off the history, so nobody could differentiate this again. Leave them out.",
    *(RULE, f"{RULE}.data"),
)
square.slip(
    "That is the rule of a sum: it passes on what came back. A square multiplies it.", RULE, "out_grad"
)
square.slip(
    "`node.inputs` is a tuple, also for one operand. Take the operand out: `node.inputs[0]`.",
    *(RULE, "out_grad * 2 * node.inputs"),
)
square.slip(
    "These are plain numbers without a history. Leave out `.numpy()`, and the gradient stays a graph.",
    *(RULE, "2 * node.inputs[0].numpy() * out_grad.numpy()"),
)
square.slip("`compute` was right as it stood. A square is `a * a`; `a + a` doubles.", "a * a", "a + a")
square.slip(
    "You divide by the operand, and it may be 0. The derivative of a² is 2a: no need to divide.",
    *(RULE, "out_grad * 2 * node / node.inputs[0]"),
)
