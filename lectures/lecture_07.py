"""Lecture 07, reverse mode: what its exercises ask for, the usual mistakes in them, and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from needle import autograd, ops
from needle.autograd import Tensor, gradients
from needle.init import ones_like

from .checking import Case, Lecture, case, given, order_of

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


def v1_to_v4(at: float = 0.0) -> dict[str, Any]:
    """The example of the lecture."""
    v1 = Tensor([at], dtype="float32")
    v2 = ops.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    return {"v1": v1, "v2": v2, "v3": v3, "v4": v4}


def at_another_point() -> dict[str, Any]:
    """The example where exp is not 1, so that a forgotten factor shows."""
    return v1_to_v4(0.5)


def doubling() -> dict[str, Any]:
    """A variable used twice by one operator, twice in a row."""
    a = Tensor([1.0])
    b = a + a
    c = b + b
    return {"a": a, "b": b, "c": c}


def diamond() -> dict[str, Any]:
    """Two ways of different length from x to y; the longer one is the first operand."""
    x = Tensor([3.0])
    squared = x * x
    shifted = squared + 1
    y = shifted * x
    return {"x": x, "squared": squared, "shifted": shifted, "y": y}


def line() -> dict[str, Any]:
    """A product between two summands: whoever walks back meets a leaf before it meets the product."""
    w, x, b, c = (Tensor([number]) for number in (2.0, 3.0, 4.0, 5.0))
    y = c + w * x + b
    return {"w": w, "x": x, "b": b, "c": c, "y": y}


# --- 1 Adjoints by hand -------------------------------------------------------------------------------------


@lecture.exercise(
    case(2.0, 5.0),
    case(-1.0, 3.0),
    otherwise=(
        "Begin with 1 for q. A sum passes its adjoint on as it is; a product multiplies it by the other "
        "factor."
    ),
)
def adjoints_by_hand(a, b):
    """The adjoints of q, p, b, a in p = a · b, q = p + a, by the library."""
    x, y = Tensor([a]), Tensor([b])
    p = x * y
    q = p + x
    return [float(total.numpy()[0]) for total in (gradients(q, [q])[0], *gradients(q, [p, y, x]))]


@adjoints_by_hand.mistake(
    "How many ways lead back from q to a? There are two, and what comes along them is added."
)
def one_way_only(a, b):
    return [1.0, 1.0, a, b]


@adjoints_by_hand.mistake(
    "Look at the product again: the nudge of a factor is multiplied by the *other* factor."
)
def factors_swapped(a, b):
    return [1.0, 1.0, b, a + 1.0]


@adjoints_by_hand.mistake("These are the right numbers in another order. The exercise asks for q, p, b, a.")
def other_order(a, b):
    return [b + 1.0, a, 1.0, 1.0]


@adjoints_by_hand.mistake(
    "These are the values of the variables. An adjoint says how far q moves per unit of a nudge."
)
def the_values(a, b):
    return [a * b + a, a * b, b, a]


@adjoints_by_hand.mistake("The numbers are right. Give them back as a plain list: `[…, …, …, …]`.")
def as_an_array(a, b):
    return np.array([1.0, 1.0, a, b + 1.0])


@adjoints_by_hand.mistake("The numbers are right. Give them back as a plain list: `[…, …, …, …]`.")
def as_a_dictionary(a, b):
    return {"q": 1.0, "p": 1.0, "b": a, "a": b + 1.0}


@adjoints_by_hand.mistake("Three of four: the output `q` has an adjoint, too, the seed. It comes first.")
def without_the_output(a, b):
    return [1.0, a, b + 1.0]


@adjoints_by_hand.mistake("Only `a` and `b` are given. Write numbers, or formulas in `a` and `b`.")
def names_of_the_page(a, b):
    raise NameError("name 'q' is not defined")


# --- 2 The order --------------------------------------------------------------------------------------------


@lecture.exercise(
    given(v1_to_v4, "v1"),
    given(doubling, "c"),
    given(v1_to_v4, "v4"),
    given(diamond, "y"),
    otherwise=(
        "Draw this graph on paper with the number of uses at each node. Strike out a node that has 0, count "
        "its inputs down, and compare with your list."
    ),
    compare=order_of("consumers"),
    without={autograd.find_topo_sort: "This exercise is what `find_topo_sort` does, so write it without it."},
)
def reverse_order(output):
    """All nodes that lead to `output`, each after all its consumers."""
    return autograd.find_topo_sort([output])[::-1]


@reverse_order.mistake(
    "This is the order of the forward pass, inputs first. The backward pass goes the other way."
)
def forward_order(output):
    order: list[Tensor] = []

    def visit(node):
        if not any(node is other for other in order):
            for i in node.inputs:
                visit(i)
            order.append(node)

    visit(output)
    return order


@reverse_order.mistake(
    "You come to a node once for each way that leads to it. Remember which nodes you have seen."
)
def every_way(output):
    return [output, *(node for i in output.inputs for node in every_way(i))]


@reverse_order.mistake(
    "You list a node as soon as you meet it. But a node has to wait for all that use it: list it *after* "
    "you have "
    "been through its inputs, and turn the list around at the end."
)
def as_met(output):
    order: list[Tensor] = []

    def visit(node):
        if not any(node is other for other in order):
            order.append(node)
            for i in node.inputs:
                visit(i)

    visit(output)
    return order


@reverse_order.mistake(
    "You go level by level. But a node may be one step away along one way, and two steps along another: "
    "it has to "
    "wait for the longer one."
)
def level_by_level(output):
    order = [output]
    for node in order:
        for i in node.inputs:
            if not any(i is other for other in order):
                order.append(i)
    return order


@reverse_order.mistake("Only the output and its own inputs are there. Their inputs belong to the graph, too.")
def two_levels(output):
    return [output, *dict.fromkeys(output.inputs)]


@reverse_order.mistake(
    "You list only the output, which nobody uses. When you visit it, its inputs wait for one use less: count "
    "down, and see who is ready now."
)
def only_the_output(output):
    return [node for node, uses in count_uses(output).items() if uses == 0]


@reverse_order.mistake(
    "`b + b` uses `b` twice, and it stands in `inputs` twice. Count down once for each of the two."
)
def once_for_each_consumer(output):
    return _counting_down(output, lambda node: dict.fromkeys(node.inputs))


@reverse_order.mistake(
    "You follow the first input only. A node has others, too: count down for each of its `inputs`."
)
def first_inputs_only(output):
    order = [output]
    while order[-1].inputs:
        order.append(order[-1].inputs[0])
    return order


FROM_THE_DICTIONARY = (
    "You go through the dictionary in its own order. Go through those who are ready, and let the list of "
    "them grow: whoever reaches 0 joins it."
)


@reverse_order.mistake(FROM_THE_DICTIONARY)
def whoever_is_ready_in_passing(output):
    uses, order = count_uses(output), []
    for node in uses:
        if uses[node] == 0:
            order.append(node)
        for i in node.inputs:
            uses[i] -= 1
    return order


@reverse_order.mistake(FROM_THE_DICTIONARY)
def passing_on_before_being_ready(output):
    uses, order = count_uses(output), [output]
    for node in uses:
        for i in node.inputs:
            uses[i] -= 1
            if uses[i] == 0:
                order.append(i)
    return order


@reverse_order.mistake(
    "A node knows its `inputs`, but not who uses it. `count_uses(output)` tells you how often it is used."
)
def asks_for_consumers(output):
    return [output, *output.consumers]


@reverse_order.mistake(
    "You come to a node once for each way that leads to it: all that you meet join those who are ready. Only "
    "who has come down to 0 may join; a `...` left in a condition counts as true."
)
def everybody_joins(output):
    order, ready_now = [], [output]
    while ready_now:
        node = ready_now.pop()
        order.append(node)
        ready_now += node.inputs
    return order


@reverse_order.mistake("`inputs` is a tuple and not a function: write `node.inputs`, without brackets.")
def calls_the_inputs(output):
    return [output, *output.inputs()]


@reverse_order.mistake(
    "Python does not let a dictionary grow or shrink while a loop goes through it. Go through a copy, "
    "`list(…)`."
)
def deletes_in_the_loop(output):
    uses = count_uses(output)
    for node in uses:
        del uses[node]


def _counting_down(output, inputs):
    waits_for = count_uses(output)
    order, ready_now = [], [output]
    while ready_now:
        node = ready_now.pop()
        order.append(node)
        for i in inputs(node):
            waits_for[i] -= 1
            if waits_for[i] == 0:
                ready_now.append(i)
    return order


# --- 3 Reverse mode -----------------------------------------------------------------------------------------

WALK = "This call walks back for you. The exercise is to write the walk itself."


def _asked(make: Callable[[], dict[str, Any]], output: str, *variables: str) -> Case:
    """A case that asks for the adjoints of some variables of a graph."""

    def made() -> dict[str, Any]:
        graph = make()
        return {**graph, "its variables": [graph[name] for name in variables]}

    return given(made, output, "its variables")


@lecture.exercise(
    _asked(v1_to_v4, "v4", "v3"),
    _asked(at_another_point, "v4", "v1", "v2"),
    _asked(doubling, "c", "a"),
    _asked(diamond, "y", "x", "squared"),
    _asked(v1_to_v4, "v4", "v4", "v1"),
    _asked(line, "y", "w", "b"),
    otherwise="Print what has arrived at each node, in the order of your walk. Compare it with section 5.",
    without={Tensor.backward: WALK, gradients: WALK, autograd.adjoints: WALK},
)
def derivatives(output, variables):
    """The adjoints of `variables`, by the library's own walk."""
    return list(gradients(output, variables))


def _walk(output, arrive, order=lambda output: autograd.find_topo_sort([output])[::-1], seed=None):
    """What has arrived at each node, if what arrives is kept by `arrive`."""
    arrived = {output: ones_like(output)}
    for node in order(output):
        if node.op is not None and node in arrived:
            passed_on = node.op.gradient_as_tuple(seed(node) if seed else arrived[node], node)
            for i, partial in zip(node.inputs, passed_on, strict=True):
                arrive(arrived, i, partial)
    return arrived


def _add(arrived, node, partial):
    arrived[node] = arrived[node] + partial if node in arrived else partial


@derivatives.mistake(
    "What arrives later replaces what came before. Where two partial adjoints arrive, add them up."
)
def replaced(output, variables):
    arrived = _walk(output, lambda arrived, node, partial: arrived.update({node: partial}))
    return [arrived[x] for x in variables]


@derivatives.mistake("You keep only what arrives first. Where two partial adjoints arrive, add them up.")
def first_kept(output, variables):
    arrived = _walk(output, lambda arrived, node, partial: arrived.setdefault(node, partial))
    return [arrived[x] for x in variables]


@derivatives.mistake(
    "A node passes on before all has arrived there. Take the order of Exercise 2, or `find_topo_sort`, "
    "reversed."
)
def too_early(output, variables):
    arrived = _walk(output, _add, as_met)
    return [arrived[x] for x in variables]


@derivatives.mistake(
    "You pass on a 1 at every node. The seed belongs to the output alone; any other node passes on what "
    "arrived there."
)
def seed_everywhere(output, variables):
    arrived = _walk(output, _add, seed=ones_like)
    return [arrived[x] for x in variables]


@derivatives.mistake("This is one step back from the output. Go on from there, until you reach the leaves.")
def one_step(output, variables):
    return [output.op.gradient_as_tuple(ones_like(output), output)[-1] for _ in variables]


@derivatives.mistake(
    "Nothing has arrived at that node yet. Do you go forward? Then turn the order around. Or do you add to "
    "an entry that is not there? What arrives first starts it."
)
def not_reversed(output, variables):
    arrived = {output: ones_like(output)}
    for node in autograd.find_topo_sort([output]):
        if node.op is not None:
            for i, partial in zip(node.inputs, node.op.gradient_as_tuple(arrived[node], node), strict=True):
                _add(arrived, i, partial)
    return [arrived[x] for x in variables]


@derivatives.mistake("`find_topo_sort` wants a list of outputs: `find_topo_sort([output])`.")
def order_of_the_numbers(output, variables):
    return _walk(output, _add, lambda output: [{output: output}[x] for x in output])


@derivatives.mistake(
    "These are numbers without a history. Return the Tensors, so that one can go on from them."
)
def numbers(output, variables):
    arrived = _walk(output, _add)
    return [arrived[x].item() for x in variables]


@derivatives.mistake(
    "Your walk came to a leaf. Its `op` is None: nothing made it, so there is no step back. Skip the leaves."
)
def asks_a_leaf(output, variables):
    raise AttributeError("'NoneType' object has no attribute 'gradient_as_tuple'")


@derivatives.mistake(
    "You stop at the first leaf. Others may still have something to pass on: skip the leaf (`continue`), and "
    "do not stop there."
)
def stops_at_a_leaf(output, variables):
    arrived = {output: ones_like(output)}
    for node in autograd.find_topo_sort([output])[::-1]:
        if node.op is None:
            break
        for i, partial in zip(node.inputs, node.op.gradient_as_tuple(arrived[node], node), strict=True):
            _add(arrived, i, partial)
    return [arrived[x] for x in variables]


@derivatives.mistake("The seed must be a Tensor of the shape of the output: `ndl.ones_like(output)`.")
def a_number_as_seed(output, variables):
    arrived: dict[Tensor, Any] = {output: 1}
    for node in autograd.find_topo_sort([output])[::-1]:
        if node.op is not None:
            for i, partial in zip(node.inputs, node.op.gradient_as_tuple(arrived[node], node), strict=True):
                _add(arrived, i, partial)
    return [arrived[x] for x in variables]


@derivatives.mistake(
    "You keep what arrives in a list. Before a node passes it on, add it up: a rule wants *one* Tensor."
)
def lists_passed_on(output, variables):
    arrived = {output: [ones_like(output)]}
    for node in autograd.find_topo_sort([output])[::-1]:
        if node.op is not None:
            for i, partial in zip(node.inputs, node.op.gradient_as_tuple(arrived[node], node), strict=True):
                arrived.setdefault(i, []).append(partial)
    return [arrived[x] for x in variables]


ANYWHERE = "This is all that arrived anywhere. Return a list of what arrived at each of `variables`."


@derivatives.mistake(ANYWHERE)
def the_dictionary(output, variables):
    return _walk(output, _add)


@derivatives.mistake(ANYWHERE)
def all_the_values(output, variables):
    return list(_walk(output, _add).values())


@derivatives.mistake("Return a list, also for a single variable: one Tensor for each of `variables`.")
def one_tensor(output, variables):
    return _walk(output, _add)[variables[0]]


# --- 4 The nth derivative -----------------------------------------------------------------------------------


def example(v):
    """The function of the lecture."""
    return ops.exp(v) * (ops.exp(v) + 1)


def cube(v):
    """x³; its derivatives are 3x², 6x and 6."""
    return v * v * v


@lecture.exercise(
    given(lambda: {"example": example, "v1": Tensor([0.0]), "n": 2}, "example", "v1", "n"),
    given(lambda: {"cube": cube, "four": Tensor([4.0]), "n": 3}, "cube", "four", "n"),
    given(lambda: {"cube": cube, "half": Tensor([0.5]), "n": 1}, "cube", "half", "n"),
    otherwise=(
        "First get the first derivative, as a Tensor. It has a graph, so differentiate it in the same way. "
        "Nudging would be too coarse in float32."
    ),
)
def nth_derivative(f, x, n):
    """The derivative of the derivative of …"""
    y = f(x)
    for _ in range(n):
        (y,) = gradients(y, [x])
    return y


@nth_derivative.mistake(
    "This is the first derivative. It is a Tensor with a graph: go on, and differentiate it again."
)
def only_the_first(f, x, n):
    return gradients(f(x), [x])[0]


@nth_derivative.mistake("You differentiate twice, whatever `n` is. Put the step into a loop.")
def always_twice(f, x, n):
    return nth_derivative.right(f, x, 2)


@nth_derivative.mistake("You differentiate once too often: `f(x)` itself is the start, for n = 0.")
def once_too_often(f, x, n):
    return nth_derivative.right(f, x, n + 1)


@nth_derivative.mistake("You differentiate once too few.")
def once_too_few(f, x, n):
    return nth_derivative.right(f, x, n - 1)


@nth_derivative.mistake(
    "This is a power of the first derivative. The second derivative is the derivative *of* the first."
)
def powers(f, x, n):
    (slope,) = gradients(f(x), [x])
    return slope**n


@nth_derivative.mistake(
    "`gradients` gives you a list, one Tensor for each input. Take the one out of it: `(y,) = …`."
)
def still_in_its_list(f, x, n):
    y: Any = gradients(f(x), [x])
    for _ in range(n - 1):
        y = gradients(y, [x])
    return y


@nth_derivative.mistake("`gradients` gives you a list, also at the end. Return the one Tensor that is in it.")
def returned_in_its_list(f, x, n):
    return [nth_derivative.right(f, x, n)]


@nth_derivative.mistake(
    "A Tensor that is made anew, or detached, has no history, so no gradient flows through it. Go on with "
    "the Tensor you have."
)
def detached(f, x, n):
    (slope,) = gradients(f(x), [x])
    return gradients(slope.detach(), [x])[0]


# --- 5 A rule for your own operator -------------------------------------------------------------------------


def _partial(operator: Any, x: Tensor, out_grad: Tensor) -> Any:
    partial = operator().gradient(out_grad, operator()(x))
    if isinstance(partial, Tensor) and partial.shape == x.shape:
        right = np.allclose(partial.numpy(), 2 * x.numpy() * out_grad.numpy())
        if right and not any(node is x for node in autograd.find_topo_sort([partial])):
            raise ValueError("the numbers are right, but no way leads back from them to x")
    return partial


class Square(autograd.TensorOp):
    """Squares each entry."""

    def compute(self, a):
        return a * a

    def gradient(self, out_grad, node):
        return out_grad * 2 * node.inputs[0]


square = lecture.exercise(
    given(lambda: {"x": Tensor([3.0]), "out_grad": Tensor([1.0])}, "x", "out_grad"),
    given(lambda: {"x": Tensor([-1.0, 0.5]), "out_grad": Tensor([2.0, 10.0])}, "x", "out_grad"),
    otherwise="Nudge x by 0.01: how far does x · x move? That, per unit of the nudge, times `out_grad`.",
    use=_partial,
)(Square)


@square.mistake("This is your own derivative. Multiply it by what came back, `out_grad`.")
class OutGradForgotten(Square):
    def gradient(self, out_grad, node):
        return 2 * node.inputs[0]


@square.mistake("The derivative of a² is 2a: both factors move when a moves.")
class OneFactorMoves(Square):
    def gradient(self, out_grad, node):
        return out_grad * node.inputs[0]


@square.mistake("`node` is the result, a². Its operand is `node.inputs[0]`.")
class ResultTaken(Square):
    def gradient(self, out_grad, node):
        return out_grad * 2 * node


@square.mistake("The derivative of a² is 2a, and yours is 2: where is the operand, `node.inputs[0]`?")
class WithoutTheOperand(Square):
    def gradient(self, out_grad, node):
        return out_grad * 2


@square.mistake("a² is the value. The derivative of a² is 2a.")
class ValueTaken(Square):
    def gradient(self, out_grad, node):
        return out_grad * node.inputs[0] ** 2


@square.mistake("You add what came back to your own derivative. Multiply the two.")
class Added(Square):
    def gradient(self, out_grad, node):
        return out_grad + 2 * node.inputs[0]


@square.mistake("The numbers are right. There is one operand, so return the Tensor itself, not a list of it.")
class InAList(Square):
    def gradient(self, out_grad, node):
        return [out_grad * 2 * node.inputs[0]]


@square.mistake(
    "Only `compute` has an `a`. A rule has `out_grad` and `node`, and the operand is `node.inputs[0]`."
)
class NameOfTheOther(Square):
    def gradient(self, out_grad, node):
        raise NameError("name 'a' is not defined")


@square.mistake(
    "`.data` and `detach()` cut off the history, so nobody could differentiate this again. Leave them out."
)
class WithoutHistory(Square):
    def gradient(self, out_grad, node):
        return out_grad * 2 * node.inputs[0].data


@square.mistake("That is the rule of a sum: it passes on what came back. A square multiplies it.")
class PassedOn(Square):
    def gradient(self, out_grad, node):
        return out_grad


@square.mistake("`node.inputs` is a tuple, also for one operand. Take the operand out: `node.inputs[0]`.")
class TupleTaken(Square):
    def gradient(self, out_grad, node):
        return out_grad * 2 * node.inputs


@square.mistake(
    "These are plain numbers without a history. Leave out `.numpy()`, and the gradient stays a graph."
)
class AsNumbers(Square):
    def gradient(self, out_grad, node):
        return 2 * node.inputs[0].numpy() * out_grad.numpy()
