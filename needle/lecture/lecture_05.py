"""Lecture 05, the computational graph: its exercises, the usual mistakes in them, and its predictions."""

from __future__ import annotations

from typing import Any

from .. import autograd, ops
from ..autograd import Tensor
from .comparison import graph, objects
from .exercises import Exercises, given
from .predictions import Predictions

exercises, predictions = Exercises(), Predictions()
check, ready, predict = exercises.check, exercises.ready, predictions.predict


# --- The graphs of the cases --------------------------------------------------------------------------------


def two_leaves() -> dict[str, Any]:
    """The operands of the table."""
    return {"n1": Tensor([1.0, 2.0]), "n2": Tensor([0.0, 3.0])}


def v1_to_v4() -> dict[str, Any]:
    """The example of the lecture."""
    v1 = Tensor([0], dtype="float32")
    v2 = ops.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    return {"v1": v1, "v2": v2, "v3": v3, "v4": v4, "one": Tensor([1.0])}


def square_of_x() -> dict[str, Any]:
    """A leaf that one operator takes twice."""
    x = Tensor([1.0, 2.0, 3.0])
    return {"x": x, "s": x * x, "three": Tensor([3.0, 3.0, 3.0])}


def a_twice() -> dict[str, Any]:
    """Two leaves, one of them used at two places."""
    a, b = Tensor([1.0, 2.0]), Tensor([0.0, 3.0])
    return {"a": a, "b": b, "y": a * b + a, "new_b": Tensor([1.0, 2.0])}


# --- From the table to the code -----------------------------------------------------------------------------


@exercises.exercise(
    given(two_leaves, "n1", "n2"),
    otherwise="Show `print_graph(from_the_table(a, b))`, and compare it with the table line by line.",
    compare=graph,
)
def from_the_table(n1, n2):
    """The function whose graph is the table."""
    return n1 / (ops.exp(-(n1 * n2)) + 1)


@from_the_table.mistake("What is divided, and by what? See the inputs of n7, and their order.")
def other_numerator(n1, n2):
    return n2 / (ops.exp(-(n1 * n2)) + 1)


@from_the_table.mistake("n4 is missing: the product is negated before `exp` gets it.")
def no_negation(n1, n2):
    return n1 / (ops.exp(n1 * n2) + 1)


@from_the_table.mistake(
    "Your last operator is the addition, but the table ends with the division. Where do brackets belong?"
)
def brackets_forgotten(n1, n2):
    return n1 / ops.exp(-(n1 * n2)) + 1


@from_the_table.mistake(
    "This is the quotient upside down: n1 is the first input of `EWiseDiv`, so n1 is divided by n6."
)
def upside_down(n1, n2):
    return (ops.exp(-(n1 * n2)) + 1) / n1


@from_the_table.mistake("`.numpy()` gives plain numbers: there the history ends. Return the Tensor itself.")
def as_numpy(n1, n2):
    return (n1 / (ops.exp(-(n1 * n2)) + 1)).numpy()


# --- All leaves ---------------------------------------------------------------------------------------------


@exercises.exercise(
    given(v1_to_v4, "v4"),
    given(square_of_x, "s"),
    given(a_twice, "y"),
    given(a_twice, "b"),
    otherwise="Draw this graph, mark the boxes that no arrow leads to, and compare them with your list.",
    compare=objects,
)
def leaves(output):
    """The leaves of a graph, each once, in topological order."""
    return [node for node in autograd.find_topo_sort([output]) if node.is_leaf()]


@leaves.mistake("These are all nodes. Keep only the leaves among them: those that no operator made.")
def all_nodes(output):
    return autograd.find_topo_sort([output])


@leaves.mistake(
    "These are the inputs of the last operator. They may have inputs themselves: go on from there."
)
def direct_inputs(output):
    return list(output.inputs)


@leaves.mistake("A leaf that is used twice comes twice. List each leaf once.")
def once_for_each_use(output):
    return [output] if output.is_leaf() else [leaf for i in output.inputs for leaf in once_for_each_use(i)]


@leaves.mistake("The right leaves, in the opposite order. Topological order begins at the inputs.")
def backwards(output):
    return [node for node in reversed(autograd.find_topo_sort([output])) if node.is_leaf()]


@leaves.mistake("If the output is a leaf itself, it is its own graph, so it belongs in the list.")
def without_the_output(output):
    return [node for node in autograd.find_topo_sort([output])[:-1] if node.is_leaf()]


# --- Run the graph again ------------------------------------------------------------------------------------


@exercises.exercise(
    given(v1_to_v4, "v4", "v1", "one"),
    given(a_twice, "y", "b", "new_b"),
    given(square_of_x, "s", "x", "three"),
    given(v1_to_v4, "v1", "v1", "one"),
    otherwise=(
        "Go through the nodes of this graph with pencil and paper: what is in your dictionary after each?"
    ),
    compare=graph,
)
def rerun(output, leaf, value):
    """The graph of `output`, built again with `value` in the place of `leaf`."""
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = node.op(*[new.get(i, i) for i in node.inputs])
    return new[output]


@rerun.mistake("This is the old output. It remembers the old numbers, so each node has to be computed anew.")
def unchanged(output, leaf, value):
    return output


@rerun.mistake("You run the last operator on the new value alone. The operators before it have to run, too.")
def last_operator_only(output, leaf, value):
    return output.op(*[value for _ in output.inputs])


@rerun.mistake(
    "Your new nodes are computed from the old inputs. Look up what stands in for each input in your "
    "dictionary."
)
def from_old_inputs(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = node.op(*node.inputs)
    return new[output]


@rerun.mistake(
    "Some input is not in your dictionary: another leaf. It stays as it is, and `new.get(i, i)` says just "
    "that."
)
def other_leaves_forgotten(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = node.op(*[new[i] for i in node.inputs])
    return new[output]


@rerun.mistake("Every leaf gets the new value here. Only the given one changes; the others stay as they are.")
def every_leaf_changed(output, leaf, value):
    new: dict[Tensor, Tensor] = {}
    for node in autograd.find_topo_sort([output]):
        new[node] = value if node.is_leaf() else node.op(*[new[i] for i in node.inputs])
    return new[output]


@rerun.mistake("A leaf has no operator to run. Pass over the leaves as you walk.")
def leaves_not_passed_over(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        new[node] = node.op(*[new.get(i, i) for i in node.inputs])
    return new[output]


@rerun.mistake(
    "You go down each way to a node that is used twice, so your graph computes it twice. Keep new nodes in a "
    "dictionary, and look there first."
)
def each_way_again(output, leaf, value):
    if output is leaf:
        return value
    if output.is_leaf():
        return output
    return output.op(*[each_way_again(i, leaf, value) for i in output.inputs])


# --- An operator of your own --------------------------------------------------------------------------------


def _compute(operator: Any, *arrays: Any) -> Any:
    return operator().compute(*arrays)


class Square(autograd.TensorOp):
    """Squares each entry."""

    def compute(self, a):
        return a * a


square = exercises.exercise(
    given(lambda: {"x": Tensor([1.0, 2.0, 3.0]).cached_data}, "x"),
    given(lambda: {"x": Tensor([[-1.0], [0.5]]).cached_data}, "x"),
    otherwise="What is the square of each number? Compare it with what you got.",
    use=_compute,
)(Square)


@square.mistake("You doubled. For 2 that is the same as squaring, for other numbers it is not.")
class Double(autograd.TensorOp):
    def compute(self, a):
        return a + a


@square.mistake("The array comes back as it was. What do you do with it?")
class Same(autograd.TensorOp):
    def compute(self, a):
        return a


@square.mistake("`compute` gets arrays and returns an array. A Tensor is made of it afterwards.")
class TensorOfIt(autograd.TensorOp):
    def compute(self, a):
        return Tensor(a) * Tensor(a)


@square.mistake(
    "`compute` gets arrays. They have no such method, but they can be multiplied: `*` works entry by entry."
)
class Missing(autograd.TensorOp):
    def compute(self, a):
        return a.squared()


# --- Predictions --------------------------------------------------------------------------------------------

predictions.ask(
    "v4",
    "`v1` is 0. What is `v4`?",
    right="2",
    why="exp(0) is 1, plus 1 is 2, and 1 · 2 is 2.",
    replies={
        "0": "You took exp(0) for 0. But e to the power 0 is 1.",
        "1": "That is `v2`. Two steps are still to come.",
        "3": "You added at the end. The last operator multiplies: 1 · 2.",
    },
    otherwise="Go step by step: what is exp(0)? Add 1. Then multiply the two.",
)
predictions.choose(
    "inputs",
    "`v4` was made of two things. What does `v4.inputs` hold?",
    {
        "the numbers 1 and 2": "No: from a number you could not go on to where it came from.",
        "copies of `v2` and `v3`": "No: a copy would be another node, and the graph would fall apart.",
        "`v2` and `v3` themselves": "Right. It is a reference, so nothing is copied.",
        "`v1`, `v2` and `v3`": "No: only the operands of this one operator. Theirs are one step further on.",
    },
    right="`v2` and `v3` themselves",
)
predictions.choose(
    "square",
    "`s = x * x`. In its drawing, how many boxes are there, and how many arrows enter the operator?",
    {
        "2 boxes, 1 arrow": "Two boxes, yes. But × has two operands, and each has its own arrow.",
        "2 boxes, 2 arrows": "Right: x is one variable, used twice.",
        "3 boxes, 2 arrows": "No: both operands are the same x, and a variable has one box.",
    },
    right="2 boxes, 2 arrows",
)
predictions.choose(
    "one line",
    "Now the example in one line, without the names `v2` and `v3`. Will the drawing be the same as above?",
    {
        "yes: names are only for us": (
            "Names do not matter, that is true. But look at how often `exp` is written now."
        ),
        "no: it has more boxes": "Right: `exp` is written twice, so it runs twice.",
        "no: it has fewer boxes": "No: a value without a name is a node like any other.",
    },
    right="no: it has more boxes",
)
predictions.choose(
    "numpy is a copy",
    "The next cell takes `array = y.numpy()` and writes 100 into its first place. Will `y` change too?",
    {
        "yes, both show 100": "No. You may have thought of a view, as NumPy's slices are. Here it is a copy.",
        "no, `y` stays as it is": "Right: what others were computed from must not change behind their backs.",
        "an error": "No: the array is yours, and you may write into it.",
    },
    right="no, `y` stays as it is",
)
predictions.choose(
    "calls",
    "`v2 * v3` goes through `compute`, `make_from_op` and `__call__`. In which order?",
    {
        "`compute`, `make_from_op`, `__call__`": "No: first somebody has to call the operator.",
        "`__call__`, `compute`, `make_from_op`": (
            "Nearly. But first there is a new node, and the node asks for its numbers."
        ),
        "`__call__`, `make_from_op`, `compute`": "Right: called, noted in the graph, computed.",
    },
    right="`__call__`, `make_from_op`, `compute`",
)
