"""Lecture 05, the computational graph: its exercises, the usual mistakes in them, and its predictions."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from needle import autograd, ops
from needle.autograd import Tensor

from .checking import Lecture, Names, given, graph, is_tensor, objects

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


# --- What calls what ----------------------------------------------------------------------------------------

STEPS = {"__call__", "make_from_op", "realize_cached_data", "compute"}


def show_calls(function: Callable[[], Any]) -> Any:
    """Run ``function()``, and print each call of one of `STEPS` as it happens, indented by depth."""
    depth = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal depth
        if frame.f_code.co_name in STEPS and event in ("call", "return"):
            if event == "call":
                print("    " * depth + frame.f_code.co_qualname)
            depth += 1 if event == "call" else -1

    before = sys.getprofile()
    sys.setprofile(note)  # Python calls it at every call and every return
    try:
        return function()
    finally:
        sys.setprofile(before)


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


def three_steps_deep() -> dict[str, Any]:
    """A leaf three operators away from the output."""
    a, b = Tensor([1.0, 2.0]), Tensor([0.0, 3.0])
    return {"a": a, "b": b, "z": ops.exp(-(a * b)) * b, "new_a": Tensor([2.0, 1.0])}


# --- When two answers are the same --------------------------------------------------------------------------


def in_any_order(expected: Any, got: Any, names: Names) -> str:
    """Whether two lists hold the very same objects, each as often."""
    if isinstance(expected, list) and isinstance(got, (list, tuple)):
        expected, got = sorted(expected, key=id), sorted(got, key=id)
    if isinstance(expected, set) and isinstance(got, set):  # of two wrong answers
        return "" if expected == got else "other members"
    return objects(expected, got, names)


def history(expected: Any, got: Any, names: Names) -> str:
    """Whether a Tensor has the same history."""
    return graph(expected, got, names)


def _same_mistake(one: Any, other: Any, names: Names) -> str:
    """The same history, where a new leaf counts by its numbers: each run of an answer makes its own."""
    if not (is_tensor(one) and is_tensor(other)):
        return graph(one, other, names)
    return "" if _written_out(one, names) == _written_out(other, names) else "another history"


def _written_out(output: Tensor, names: Names) -> list[Any]:
    nodes = autograd.find_topo_sort([output])
    place = {id(node): number for number, node in enumerate(nodes)}
    return [
        (repr(node.op), [place[id(i)] for i in node.inputs])
        if node.op
        else names.get(id(node)) or node.numpy().tolist()
        for node in nodes
    ]


history.exactly = _same_mistake  # type: ignore[attr-defined]


# --- From the table to the code -----------------------------------------------------------------------------


@lecture.exercise(
    given(two_leaves, "n1", "n2"),
    otherwise="The check compares operators, not numbers. Go up the table from n7: which is the first row "
    "that is otherwise in your line?",
    compare=graph,
)
def from_the_table(n1, n2):
    """The function whose graph is the table."""
    return n1 / (ops.exp(-(n1 * n2)) + 1)


@from_the_table.mistake("What is divided, and by what? See the inputs of n7, and their order.")
def other_numerator(n1, n2):
    return n2 / (ops.exp(-(n1 * n2)) + 1)


@from_the_table.mistake(
    "Python reads `-n1 * n2` as `(-n1) * n2`. The numbers are the same, but the table negates the product: "
    "put that in brackets."
)
def negated_first(n1, n2):
    return n1 / (ops.exp(-n1 * n2) + 1)


@from_the_table.mistake(
    "Times -1 gives the same numbers, but its operator is `MulScalar`. The table says `Negate`: a `-` before "
    "the product."
)
def times_minus_one(n1, n2):
    return n1 / (ops.exp(-1 * (n1 * n2)) + 1)


@from_the_table.mistake(
    "`0 - …` gives the same numbers, but it adds 0 as well. The sign alone, `-(…)`, is one `Negate`."
)
def zero_minus(n1, n2):
    return n1 / (ops.exp(0 - n1 * n2) + 1)


@from_the_table.mistake("The inputs of n3 are n1 and n2, in this order. You wrote the product the other way.")
def other_order(n1, n2):
    return n1 / (ops.exp(-(n2 * n1)) + 1)


@from_the_table.mistake("n6 is missing: add 1 to what `exp` gives.")
def no_one(n1, n2):
    return n1 / ops.exp(-(n1 * n2))


@from_the_table.mistake(
    "Is it `exp`? Here its name is `ndl.exp`. Besides that, your function needs only `n1` and `n2`."
)
def unknown_name(n1, n2):
    raise NameError("name 'exp' is not defined")


@from_the_table.mistake("NumPy's `exp` takes arrays, and keeps no history. Write `ndl.exp`.")
def of_numpy(n1, n2):
    return n1 / (np.exp(-(n1 * n2)) + 1)


@from_the_table.mistake("`math.exp` takes one plain number, and keeps no history. Write `ndl.exp`.")
def of_math(n1, n2):
    return n1 / (math.exp(-(n1 * n2)) + 1)


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


@from_the_table.mistake("You divide n3, the product. The table divides n1: it is the first input of n7.")
def product_divided(n1, n2):
    n3 = n1 * n2
    return n3 / (ops.exp(-n3) + 1)


@from_the_table.mistake("The inputs of n3 are n1 and n2. You multiply one of them by itself.")
def squared(n1, n2):
    return n1 / (ops.exp(-(n1 * n1)) + 1)


OPERATORS = (
    "The names in the table are operators, and a sign leaves each of them behind: `/` leaves `EWiseDiv`, so "
    "write `n1 / …`. Only `Exp` has a function, `ndl.exp`."
)


@from_the_table.mistake(OPERATORS)
def operator_as_method(n1, n2):
    return n1.EWiseDiv(n2)


@from_the_table.mistake(OPERATORS)
def operator_as_function(n1, n2):
    return ops.EWiseDiv(n1, n2)  # type: ignore[call-arg]


@from_the_table.mistake(OPERATORS)
def product_as_function(n1, n2):
    return ops.EWiseMul(n1, n2)  # type: ignore[call-arg]


@from_the_table.mistake("`.numpy()` gives plain numbers: there the history ends. Return the Tensor itself.")
def as_numpy(n1, n2):
    return (n1 / (ops.exp(-(n1 * n2)) + 1)).numpy()


# --- All leaves ---------------------------------------------------------------------------------------------


@lecture.exercise(
    given(v1_to_v4, "v4"),
    given(square_of_x, "s"),
    given(a_twice, "y"),
    given(a_twice, "b"),
    otherwise="Draw this graph, mark the boxes that no arrow leads to, and compare them with your list. "
    "Does `find_topo_sort` get a list, `[output]`?",
    compare=in_any_order,
)
def leaves(output):
    """The leaves of a graph, each once."""
    return [node for node in autograd.find_topo_sort([output]) if node.is_leaf()]


@leaves.mistake(
    "These are all nodes. Keep only the leaves among them: those that no operator made. And `is_leaf()` "
    "needs its brackets."
)
def all_nodes(output):
    return autograd.find_topo_sort([output])


@leaves.mistake(
    "These are the inputs of the last operator. They may have inputs themselves: go on from there."
)
def direct_inputs(output):
    return list(output.inputs)


@leaves.mistake("You looked one step back only. Inputs have inputs, too: go on from there.")
def one_step_back(output):
    return [i for i in dict.fromkeys(output.inputs) if i.is_leaf()]


@leaves.mistake(
    "Your list is empty. A leaf is a node whose `op` is None. Do you ask `is_leaf()`, with its brackets?"
)
def empty(output):
    return []


@leaves.mistake("These are the right nodes, but in a set. A list is asked for: `[…]` instead of `{…}`.")
def in_a_set(output):
    return set(leaves.right(output))


OPS = "These are operators. The list should hold the nodes themselves: `node`, and not `node.op`."


@leaves.mistake(OPS)
def operators_of_all(output):
    return [node.op for node in autograd.find_topo_sort([output])]


@leaves.mistake(OPS)
def operators_alone(output):
    return [node.op for node in autograd.find_topo_sort([output]) if node.op]


@leaves.mistake("These are the leaves' operators, and a leaf has none. The list should hold the nodes.")
def operators_of_leaves(output):
    return [node.op for node in leaves.right(output)]


RETURN_IN_LOOP = "Your `return` stands inside the loop, so it ends at the first node. Move it to the left."


@leaves.mistake(RETURN_IN_LOOP)
def first_leaf(output):
    return leaves.right(output)[0]


@leaves.mistake(RETURN_IN_LOOP)
def list_of_the_first(output):
    return leaves.right(output)[:1]


@leaves.mistake("A leaf that is used twice comes twice. List each leaf once.")
def once_for_each_use(output):
    return [output] if output.is_leaf() else [leaf for i in output.inputs for leaf in once_for_each_use(i)]


@leaves.mistake("These are the operators' results. Keep the others: those that no operator made.")
def all_but_leaves(output):
    return [node for node in autograd.find_topo_sort([output]) if not node.is_leaf()]


@leaves.mistake(
    "Is it `find_topo_sort`? Its full name is `ndl.autograd.find_topo_sort`, and it takes a list: `[output]`."
)
def unknown_name_here(output):
    raise NameError("name 'find_topo_sort' is not defined")


@leaves.mistake("If the output is a leaf itself, it is its own graph, so it belongs in the list.")
def without_the_output(output):
    return [node for node in autograd.find_topo_sort([output])[:-1] if node.is_leaf()]


# --- Run the graph again ------------------------------------------------------------------------------------


@lecture.exercise(
    given(v1_to_v4, "v4", "v1", "one"),
    given(a_twice, "y", "b", "new_b"),
    given(square_of_x, "s", "x", "three"),
    given(three_steps_deep, "z", "a", "new_a"),
    given(v1_to_v4, "v1", "v1", "one"),
    otherwise=(
        "Go through the nodes of this graph with pencil and paper: what is in your dictionary after each?"
    ),
    compare=history,
)
def rerun(output, leaf, value):
    """The graph of `output`, built again with `value` in the place of `leaf`."""
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = node.op(*[new.get(i, i) for i in node.inputs])
    return new[output]


@rerun.mistake(
    "This is the old graph: `leaf` is still in it. Do you return the old output, or write over the entry of "
    "`leaf` in your dictionary?"
)
def unchanged(output, leaf, value):
    return output


@rerun.mistake(
    "The numbers are right, but they have no history. Call the operator itself, `node.op(*tensors)`, and not "
    "its `compute`."
)
def by_compute(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            arrays = [new.get(i, i).cached_data for i in node.inputs]
            new[node] = Tensor(node.op.compute(*arrays))
    return new[output]


@rerun.mistake("`value` is a Tensor already. Put it in as it is, not a copy of it.")
def copied(output, leaf, value):
    return rerun.right(output, leaf, Tensor(value))


STAR = "An operator takes its inputs one by one, not as a list: `node.op(*tensors)`, with the star."


@rerun.mistake(STAR)
def without_the_star(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = node.op([new.get(i, i) for i in node.inputs])
    return new[output]


@rerun.mistake(STAR)
def a_tuple_without_the_star(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = node.op(tuple(new.get(i, i) for i in node.inputs))
    return new[output]


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
    "Your new nodes are computed from the old inputs. Look up what stands in for each input in your "
    "dictionary. And take the list in its own order: then a node's inputs are there before the node."
)
def backwards(output, leaf, value):
    new = {leaf: value}
    for node in reversed(autograd.find_topo_sort([output])):
        if not node.is_leaf():
            new[node] = node.op(*[new.get(i, i) for i in node.inputs])
    return new[output]


@rerun.mistake("You go two steps back and no further. `find_topo_sort([output])` gives you all nodes.")
def two_steps_back(output, leaf, value):
    new = {leaf: value}
    for node in output.inputs:
        if not node.is_leaf():
            new[node] = node.op(*[new.get(i, i) for i in node.inputs])
    return output.op(*[new.get(i, i) for i in output.inputs]) if output.op else new.get(output, output)


@rerun.mistake(
    "The output is not in your dictionary. Does your `return` stand after the loop? And do you ask "
    "`is_leaf()`, with its brackets?"
)
def never_filled(output, leaf, value):
    return {leaf: value}[output]


@rerun.mistake("This is the first new node: your `return` stands inside the loop. Move it to the left.")
def returned_in_the_loop(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            return node.op(*[new.get(i, i) for i in node.inputs])
    return new[output]


@rerun.mistake(
    "You make a new operator, without what the old one holds: its `scalar`, say. Call the one that is there, "
    "`node.op(*tensors)`."
)
def new_operators(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = type(node.op)()(*[new.get(i, i) for i in node.inputs])
    return new[output]


@rerun.mistake(
    "Is it `find_topo_sort`? Its full name is `ndl.autograd.find_topo_sort`, and it takes a list: `[output]`."
)
def unknown_name_in_rerun(output, leaf, value):
    raise NameError("name 'find_topo_sort' is not defined")


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


@rerun.mistake("`new.get(i)` is None for a leaf that stays. Say what to take then: `new.get(i, i)`.")
def none_for_other_leaves(output, leaf, value):
    new = {leaf: value}
    for node in autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = node.op(*[new.get(i) for i in node.inputs])
    return new[output]


@rerun.mistake("This is the whole dictionary. Return only what stands there for `output`.")
def whole_dictionary(output, leaf, value):
    nodes = [node for node in autograd.find_topo_sort([output]) if not node.is_leaf()]
    return {leaf: value} | {node: rerun.right(node, leaf, value) for node in nodes}


@rerun.mistake("Every leaf gets the new value here. Only the given one changes; the others stay as they are.")
def every_leaf_changed(output, leaf, value):
    new: dict[Tensor, Tensor] = {}
    for node in autograd.find_topo_sort([output]):
        new[node] = value if node.is_leaf() else node.op(*[new[i] for i in node.inputs])
    return new[output]


@rerun.mistake(
    "A leaf has no operator to run. Pass over the leaves as you walk; where one is an input, "
    "`new.get(i, i)` gives you the leaf itself."
)
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


square = lecture.exercise(
    given(lambda: {"x": Tensor([1.0, 2.0, 3.0]).cached_data}, "x"),
    given(lambda: {"x": Tensor([[-1.0], [0.5]]).cached_data}, "x"),
    otherwise="What is the square of each number? Compare it with what you got.",
    use=_compute,
)(Square)


@square.mistake("You doubled. For 2 that is the same as squaring, for other numbers it is not.")
class Double(autograd.TensorOp):
    def compute(self, a):
        return a + a


@square.mistake("In Python a power is written `**`. The sign `^` means something else.")
class Caret(autograd.TensorOp):
    def compute(self, a):
        return a ^ 2


@square.mistake(
    "These arrays are the library's own, and NumPy cannot compute with them. The signs `*` and `**` can."
)
class ByNumPy(autograd.TensorOp):
    def compute(self, a):
        return np.square(a)


@square.mistake(
    "The numbers are right, but this is NumPy's array. Stay with the array that you got, and use `*` or `**`."
)
class AsNumPy(autograd.TensorOp):
    def compute(self, a):
        return a.numpy() ** 2


@square.mistake("Here is a list of numbers. No loop is needed: `*` works on the whole array, entry by entry.")
class EntryByEntry(autograd.TensorOp):
    def compute(self, a):
        return [entry * entry for entry in a]


OF_TENSORS = "That function takes Tensors, and `compute` gets arrays. Use the signs `*` or `**`."


@square.mistake(OF_TENSORS)
class ByPowerScalar(autograd.TensorOp):
    def compute(self, a):
        return ops.power_scalar(a, 2)


@square.mistake(OF_TENSORS)
class ByMultiply(autograd.TensorOp):
    def compute(self, a):
        return ops.multiply(a, a)


ONE_NUMBER = "Each number is squared for itself, so the shape stays. Nothing is added up: `*` alone, not `@`."


@square.mistake(ONE_NUMBER)
class Summed(autograd.TensorOp):
    def compute(self, a):
        return sum(a * a)


@square.mistake(ONE_NUMBER)
class MatrixProduct(autograd.TensorOp):
    def compute(self, a):
        return a @ a


@square.mistake("`self` is the operator. The array that it gets is `a`: multiply that.")
class OfItself(autograd.TensorOp):
    def compute(self, a):
        return self * self  # type: ignore[operator]


@square.mistake("A method gets its own object first, and then the array: `def compute(self, a)`.")
class WithoutSelf(autograd.TensorOp):
    def compute(self, a):
        raise TypeError("Square.compute() takes 1 positional argument but 2 were given")


@square.mistake("A square has one input, so `compute` gets one array: `def compute(self, a)`.")
class OfTwo(autograd.TensorOp):
    def compute(self, a):
        raise TypeError("Square.compute() missing 1 required positional argument: 'b'")


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
