"""Lecture 07, reverse mode: what its exercises ask for, the usual mistakes in them, and its predictions."""

from __future__ import annotations

from typing import Any

from .. import autograd, ops
from ..autograd import Tensor, gradients
from ..init import ones_like
from .comparison import order_of
from .exercises import Exercises, case, given
from .predictions import Predictions

exercises, predictions = Exercises(), Predictions()
check, ready, predict = exercises.check, exercises.ready, predictions.predict


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


# --- 1 Adjoints by hand -------------------------------------------------------------------------------------


@exercises.exercise(
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


# --- 2 The order --------------------------------------------------------------------------------------------


@exercises.exercise(
    given(v1_to_v4, "v1"),
    given(doubling, "c"),
    given(v1_to_v4, "v4"),
    given(diamond, "y"),
    otherwise="List the nodes of this graph on paper, each only when all that use it are listed.",
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


# --- 3 Reverse mode -----------------------------------------------------------------------------------------

WALK = "This call walks back for you. The exercise is to write the walk itself."


@exercises.exercise(
    given(v1_to_v4, "v4", "v3"),
    given(at_another_point, "v4", "v1"),
    given(doubling, "c", "a"),
    given(diamond, "y", "x"),
    given(v1_to_v4, "v4", "v4"),
    otherwise=(
        "Print what has arrived at each node, in the order of your walk, and compare it with section 6."
    ),
    without={Tensor.backward: WALK, gradients: WALK, autograd.adjoints: WALK},
)
def derivative(output, leaf):
    """The adjoint of `leaf`, by the library's own walk."""
    return gradients(output, [leaf])[0]


def _walk(output, leaf, arrive, order=lambda output: autograd.find_topo_sort([output])[::-1]):
    arrived = {output: ones_like(output)}
    for node in order(output):
        if node.op is not None and node in arrived:
            for i, partial in zip(node.inputs, node.op.gradient_as_tuple(arrived[node], node), strict=True):
                arrive(arrived, i, partial)
    return arrived[leaf]


def _add(arrived, node, partial):
    arrived[node] = arrived[node] + partial if node in arrived else partial


@derivative.mistake(
    "What arrives later replaces what came before. Where two partial adjoints arrive, add them up."
)
def replaced(output, leaf):
    return _walk(output, leaf, lambda arrived, node, partial: arrived.update({node: partial}))


@derivative.mistake("You keep only what arrives first. Where two partial adjoints arrive, add them up.")
def first_kept(output, leaf):
    return _walk(output, leaf, lambda arrived, node, partial: arrived.setdefault(node, partial))


@derivative.mistake(
    "A node passes on before all has arrived there. Walk in reverse topological order: `find_topo_sort`, "
    "reversed."
)
def too_early(output, leaf):
    return _walk(output, leaf, _add, as_met)


@derivative.mistake(
    "You follow each way by itself, with a seed of 1 at every node. What arrived at a node is what it "
    "passes on."
)
def seed_everywhere(output, leaf):
    arrived = {output: ones_like(output)}
    for node in autograd.find_topo_sort([output])[::-1]:
        if node.op is not None:
            for i, partial in zip(node.inputs, node.op.gradient_as_tuple(ones_like(node), node), strict=True):
                _add(arrived, i, partial)
    return arrived[leaf]


@derivative.mistake("This is one step back from the output. Go on from there, until you reach the leaf.")
def one_step(output, leaf):
    return output.op.gradient_as_tuple(ones_like(output), output)[-1]


@derivative.mistake(
    "You go forward, inputs first, so nothing has arrived yet when you look. Turn the order around."
)
def not_reversed(output, leaf):
    arrived = {output: ones_like(output)}
    for node in autograd.find_topo_sort([output]):
        if node.op is not None:
            for i, partial in zip(node.inputs, node.op.gradient_as_tuple(arrived[node], node), strict=True):
                _add(arrived, i, partial)
    return arrived[leaf]


# --- 4 The second derivative --------------------------------------------------------------------------------


def example(v):
    """The function of the lecture."""
    return ops.exp(v) * (ops.exp(v) + 1)


def cube(v):
    """x³; its second derivative is 6x."""
    return v * v * v


@exercises.exercise(
    given(lambda: {"example": example, "v1": Tensor([0.0])}, "example", "v1"),
    given(lambda: {"cube": cube, "two": Tensor([2.0])}, "cube", "two"),
    otherwise=(
        "First get the derivative, as a Tensor. It has a graph of its own, so differentiate it in the "
        "same way."
    ),
)
def second_derivative(f, x):
    """The derivative of the derivative."""
    (slope,) = gradients(f(x), [x])
    return gradients(slope, [x])[0]


@second_derivative.mistake(
    "This is the first derivative. It is a Tensor with a graph: differentiate it once more."
)
def only_the_first(f, x):
    return gradients(f(x), [x])[0]


@second_derivative.mistake(
    "This is the first derivative, squared. The second is the derivative *of* the first."
)
def squared(f, x):
    (slope,) = gradients(f(x), [x])
    return slope * slope


@second_derivative.mistake(
    "`gradients` gives you one Tensor for each input, in a tuple or list. You want the one in it: take "
    "item 0."
)
def still_in_its_list(f, x):
    return gradients(gradients(f(x), [x])[0], [x])


@second_derivative.mistake(
    "A detached Tensor has no history, so no gradient flows through it. Leave out `detach`."
)
def detached(f, x):
    (slope,) = gradients(f(x), [x])
    return gradients(slope.detach(), [x])[0]


# --- 5 A rule for your own operator -------------------------------------------------------------------------


def _partial(operator: Any, x: Tensor, out_grad: Tensor) -> Any:
    return operator().gradient(out_grad, operator()(x))


class Square(autograd.TensorOp):
    """Squares each entry."""

    def compute(self, a):
        return a * a

    def gradient(self, out_grad, node):
        return out_grad * 2 * node.inputs[0]


square = exercises.exercise(
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


@square.mistake("That is the rule of a sum: it passes on what came back. A square multiplies it.")
class PassedOn(Square):
    def gradient(self, out_grad, node):
        return out_grad


@square.mistake(
    "These are plain numbers without a history. Leave out `.numpy()`, and the gradient stays a graph."
)
class AsNumbers(Square):
    def gradient(self, out_grad, node):
        return 2 * node.inputs[0].numpy() * out_grad.numpy()


# --- Predictions --------------------------------------------------------------------------------------------

predictions.choose(
    "one step back",
    "`v2` is 1, `v3` is 2, and the seed is 1. Which two numbers come back to `v2` and to `v3`?",
    {
        "1 and 2": "You gave each factor its own value. But a nudge of `v2` is multiplied by `v3`.",
        "2 and 1": "Right: each factor gets the other one.",
        "1 and 1": "That is what a sum passes on. This is a product.",
        "2 and 2": "2 is the value of the product. What does a nudge of one factor do to it?",
    },
    right="2 and 1",
)
predictions.choose(
    "too early",
    "Suppose `v2` passes on as soon as its first partial adjoint has arrived, the one via `v4`. What would "
    "`v1` get, and what is right?",
    {
        "2, and 3 is right": "Right: without the way through `v3`, 1 is missing.",
        "3, and 3 is right": "No: at that moment, nothing has come through `v3`.",
        "1, and 3 is right": "1 is what comes through `v3`. The one that arrives first comes from `v4`.",
        "2, and 2 is right": "No: a nudge of `v1` also reaches the output through `v3`.",
    },
    right="2, and 3 is right",
)
predictions.ask(
    "doubling twice",
    "`b = a + a` and `c = b + b`. What is the derivative of `c` with respect to `a`?",
    right="4",
    why="A nudge of a reaches c along four ways: two to b, and from each of them two to c.",
    replies={
        "1": "A nudge of 1 moves `b` by 2, since `a` is in it twice.",
        "2": "That is how far `b` moves. And `c` is twice `b`.",
        "3": "Ways multiply here: two ways to `b`, and from there two ways on.",
    },
    otherwise="How far does b move if a moves by 1? And c, if b moves that far?",
)
predictions.choose(
    "order of the walk",
    "First comes the forward pass, node by node, then the backward pass. In which order does the backward "
    "pass "
    "visit the nodes?",
    {
        "v4, v2, v3, v1": "`v2` is an input of `v4`, that is true. But `v3` has not passed on to it yet.",
        "v1, v2, v3, v4": "That is the forward pass. Nothing has arrived at `v1` when the walk back begins.",
        "v4, v3, v2, v1": "Right. And at `v2`, two partial adjoints arrive.",
    },
    right="v4, v3, v2, v1",
)
predictions.choose(
    "needed again",
    "Which forward values will the backward pass need again?",
    {
        "none of them": "Look at the rule of the product: it multiplies by the other factor.",
        "`v2` and `v3`": "Right: the factors of the product; and `exp` needs its own result, `v2` again.",
        "all four": "Look at the rules: nobody multiplies by `v1` or by `v4`.",
        "only `v4`": "The output starts the walk, but its value is in no rule.",
    },
    right="`v2` and `v3`",
)
predictions.ask(
    "curvature",
    "Multiplied out, `v4` is exp(2 · v1) + exp(v1). Its first derivative at 0 is 3. What is its second?",
    right="5",
    why="The first derivative is 2 exp(2x) + exp(x), the second 4 exp(2x) + exp(x). At 0 that is 5.",
    replies={
        "3": "That is the first one. Each derivative of exp(2x) brings another factor of 2.",
        "2": "The inner factor 2 comes out twice, so it is 4. And exp(x) adds 1.",
        "4": "You have the 4 of exp(2x). And exp(x)?",
        "6": "The inner factors multiply: 2 · 2 = 4, and exp(x) adds 1.",
    },
    otherwise="Differentiate 2 exp(2x) + exp(x) once more, and put in 0.",
)
predictions.choose(
    "second backward",
    "`v1.grad` is 3. We call `v4.backward()` once more. What will `v1.grad` be?",
    {
        "3": "Right: the new derivative takes the place of the old one.",
        "6": "In PyTorch, yes: there gradients add up from pass to pass. Here they are replaced.",
        "5": "5 is the second derivative. But `backward()` begins at `v4` again, and not at the gradient.",
        "an error": "No: the graph is still there, and you can walk it as often as you like.",
    },
    right="3",
)
