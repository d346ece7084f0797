"""Lecture 05, the computational graph: its exercises, the usual mistakes in them, and its predictions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle as ndl
from needle import autograd
from needle.autograd import Tensor

from .checking import Case, Lecture, Names, arrays, given, graph, graphs, is_tensor, objects, program_case

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


def graph_case(*lines: str, output: str = "") -> Case:
    """A case whose graph these lines compute; the answer gets what the last one computes."""
    return program_case(lines, {"ndl": ndl, "Tensor": Tensor}, output or lines[-1].split()[0])


#: The lecture's example; a leaf that one operator takes twice; a leaf at two places; one three operators away.
V1_TO_V4 = ("v1 = Tensor([0.0])", "v2 = ndl.exp(v1)", "v3 = v2 + 1", "v4 = v2 * v3")
SQUARE_OF_X = ("x = Tensor([1.0, 2.0, 3.0])", "s = x * x")
A_TWICE = ("a = Tensor([1.0, 2.0])", "b = Tensor([0.0, 3.0])", "y = a * b + a")
drawn_graphs = graphs(
    "Tensor([{}])", ["{a} * {b}", "{a} + {b}", "ndl.tanh({a})", "{a} + 1", "{a} / {b}", "-{a}", "{a} * 3"]
)


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


def of_two(parts: tuple[np.ndarray, bool]) -> Case:
    """A case of two leaves of the same shape, or of one leaf twice."""
    numbers, once = parts

    def make() -> dict[str, Any]:
        n1 = Tensor(numbers)
        return {"n1": n1, "n2": n1 if once else Tensor(numbers + 1)}

    return given(make, "n1", "n2")


@lecture.exercise(
    given(lambda: {"n1": Tensor([1.0, 2.0]), "n2": Tensor([0.0, 3.0])}, "n1", "n2"),
    draws=st.tuples(arrays(), st.sampled_from([False, False, True])).map(of_two),
    number=40,
    otherwise="The check compares operators, not numbers. Go up the table from n7: which is the first row "
    "that is otherwise in your line?",
    compare=graph,
)
def from_the_table(n1, n2):
    return n1 / (ndl.exp(-(n1 * n2)) + 1)


FORMULA = "n1 / (ndl.exp(-(n1 * n2)) + 1)"
OPERATORS = (
    "The names in the table are operators, and a sign leaves each of them behind: `/` leaves `EWiseDiv`, so "
    "write `n1 / …`. Only `Exp` has a function, `ndl.exp`."
)
from_the_table.slip(
    "What is divided, and by what? See the inputs of n7, and their order.", "n1 / (", "n2 / ("
)
from_the_table.slip(
    "Python reads `-n1 * n2` as `(-n1) * n2`. The numbers are the same, but the table negates the product: "
    "put that in brackets.",
    *("-(n1 * n2)", "-n1 * n2"),
)
from_the_table.slip(
    "Times -1 gives the same numbers, but its operator is `MulScalar`. The table says `Negate`: a `-` before "
    "the product.",
    *("-(n1 * n2)", "-1 * (n1 * n2)"),
)
from_the_table.slip(
    "`0 - …` gives the same numbers, but it adds 0 as well. The sign alone, `-(…)`, is one `Negate`.",
    *("-(n1 * n2)", "0 - n1 * n2"),
)
from_the_table.slip(
    "The inputs of n3 are n1 and n2, in this order. You wrote the product the other way.",
    *("n1 * n2", "n2 * n1"),
)
from_the_table.slip("n6 is missing: add 1 to what `exp` gives.", " + 1", "")
from_the_table.slip(
    "Is it `exp`? Here its name is `ndl.exp`. Besides that, your function needs only `n1` and `n2`.",
    *("ndl.exp", "exp"),
)
from_the_table.slip("NumPy's `exp` takes arrays, and keeps no history. Write `ndl.exp`.", "ndl.exp", "np.exp")
from_the_table.slip(
    "`math.exp` takes one plain number, and keeps no history. Write `ndl.exp`.",
    *("return n1 / (ndl.exp", "import math\n    return n1 / (math.exp"),
)
from_the_table.slip("n4 is missing: the product is negated before `exp` gets it.", "-(n1 * n2)", "n1 * n2")
from_the_table.slip(
    "Your last operator is the addition, but the table ends with the division. Where do brackets belong?",
    *(FORMULA, "n1 / ndl.exp(-(n1 * n2)) + 1"),
)
from_the_table.slip(
    "This is the quotient upside down: n1 is the first input of `EWiseDiv`, so n1 is divided by n6.",
    *(FORMULA, "(ndl.exp(-(n1 * n2)) + 1) / n1"),
)
from_the_table.slip(
    "You divide n3, the product. The table divides n1: it is the first input of n7.",
    ("return", "n3 = n1 * n2\n    return"),
    (FORMULA, "n3 / (ndl.exp(-n3) + 1)"),
)
from_the_table.slip(
    "The inputs of n3 are n1 and n2. You multiply one of them by itself.", "n1 * n2", "n1 * n1"
)
from_the_table.slip(OPERATORS, FORMULA, "n1.EWiseDiv(n2)")
from_the_table.slip(OPERATORS, FORMULA, "ndl.ops.EWiseDiv(n1, n2)")
from_the_table.slip(OPERATORS, FORMULA, "ndl.ops.EWiseMul(n1, n2)")
from_the_table.slip(
    "`.numpy()` gives plain numbers: there the history ends. Return the Tensor itself.",
    *(FORMULA, f"({FORMULA}).numpy()"),
)


# --- All leaves ---------------------------------------------------------------------------------------------


@lecture.exercise(
    graph_case(*V1_TO_V4),
    graph_case(*SQUARE_OF_X),
    graph_case(*A_TWICE),
    graph_case(*A_TWICE, output="b"),
    draws=drawn_graphs.map(lambda lines: graph_case(*lines)),
    number=150,
    otherwise="Draw this graph, mark the boxes that no arrow leads to, and compare them with your list. "
    "Does `find_topo_sort` get a list, `[output]`?",
    compare=in_any_order,
)
def leaves(output):
    return [node for node in ndl.autograd.find_topo_sort([output]) if node.is_leaf()]


NODES = "ndl.autograd.find_topo_sort([output])"
LEAVES = f"[node for node in {NODES} if node.is_leaf()]"
OPS = "These are operators. The list should hold the nodes themselves: `node`, and not `node.op`."
RETURN_IN_LOOP = "Your `return` stands inside the loop, so it ends at the first node. Move it to the left."
leaves.slip(
    "These are all nodes. Keep only the leaves among them: those that no operator made. And `is_leaf()` "
    "needs its brackets.",
    *(LEAVES, NODES),
)
leaves.slip(
    "These are the inputs of the last operator. They may have inputs themselves: go on from there.",
    *(LEAVES, "list(output.inputs)"),
)
leaves.slip(
    "You looked one step back only. Inputs have inputs, too: go on from there.",
    *(NODES, "dict.fromkeys(output.inputs)"),
)
leaves.slip(
    "Your list is empty. A leaf is a node whose `op` is None. Do you ask `is_leaf()`, with its brackets?",
    *(LEAVES, "[]"),
)
leaves.slip(
    "These are the right nodes, but in a set. A list is asked for: `[…]` instead of `{…}`.",
    *(LEAVES, f"set({LEAVES})"),
)
leaves.slip(OPS, LEAVES, f"[node.op for node in {NODES}]")
leaves.slip(OPS, LEAVES, f"[node.op for node in {NODES} if node.op]")
leaves.slip(
    "These are the leaves' operators, and a leaf has none. The list should hold the nodes.",
    *("[node for", "[node.op for"),
)
leaves.slip(RETURN_IN_LOOP, LEAVES, f"{LEAVES}[0]")
leaves.slip(RETURN_IN_LOOP, LEAVES, f"{LEAVES}[:1]")
leaves.slip(
    "These are the operators' results. Keep the others: those that no operator made.",
    "if node",
    "if not node",
)
leaves.slip(
    "Is it `find_topo_sort`? Its full name is `ndl.autograd.find_topo_sort`, and it takes a list: `[output]`.",
    *("ndl.autograd.", ""),
)
leaves.slip(
    "If the output is a leaf itself, it is its own graph, so it belongs in the list.", NODES, f"{NODES}[:-1]"
)
leaves.slip(
    "Two leaves may hold equal numbers, and they are two leaves all the same. Ask for the node itself.",
    *(LEAVES, f"list({{str(node): node for node in {NODES} if node.is_leaf()}}.values())"),
)


@leaves.mistake("A leaf that is used twice comes twice. List each leaf once.")
def once_for_each_use(output):
    return [output] if output.is_leaf() else [leaf for i in output.inputs for leaf in once_for_each_use(i)]


# --- Run the graph again ------------------------------------------------------------------------------------


def replacing(asked: Case, leaf: str) -> Case:
    """A case that puts another value in the place of a leaf, and before that a third one."""

    def make() -> dict[str, Any]:
        everything = asked.make()
        numbers = everything[leaf].numpy()
        return {**everything, "value": Tensor(numbers + 2), "another": Tensor(numbers - 3)}

    return Case(make, (*asked.chosen, leaf, "value", "another"), asked.program)


def replacing_some(parts: tuple[list[str], int]) -> Case:
    """A case of a graph of which one leaf is replaced, out of those that lead to the output."""
    asked, place = graph_case(*parts[0]), parts[1]
    everything = asked.make()
    there = set(autograd.find_topo_sort([everything[asked.chosen[0]]]))
    names = [name for name, node in everything.items() if node in there and node.is_leaf()]
    return replacing(asked, names[place % len(names)])


def run_twice(answer: Callable, output: Tensor, leaf: Tensor, value: Tensor, another: Tensor) -> Any:
    """What an answer gives for `value`, after it ran the same graph with another one."""
    answer(output, leaf, another)
    return answer(output, leaf, value)


@lecture.exercise(
    replacing(graph_case(*V1_TO_V4), "v1"),
    replacing(graph_case(*A_TWICE), "b"),
    replacing(graph_case(*SQUARE_OF_X), "x"),
    replacing(graph_case(*V1_TO_V4, output="v1"), "v1"),
    draws=st.tuples(drawn_graphs, st.sampled_from([0, 1])).map(replacing_some),
    number=150,
    use=run_twice,
    form="rerun({}, {}, {})",
    otherwise="Go through the nodes of this graph with pencil and paper: what is in your dictionary after each?",
    compare=history,
)
def rerun(output, leaf, value):
    new = {leaf: value}
    for node in ndl.autograd.find_topo_sort([output]):
        if not node.is_leaf():
            new[node] = node.op(*[new.get(i, i) for i in node.inputs])
    return new[output]


IF = "        if not node.is_leaf():\n    "
NEW = "node.op(*[new.get(i, i) for i in node.inputs])"
LOOKED_UP = "[new.get(i, i) for i in node.inputs]"
STAR = "An operator takes its inputs one by one, not as a list: `node.op(*tensors)`, with the star."
FROM_OLD = "Your new nodes are computed from the old inputs. Look up what stands in for each input in your dictionary."
rerun.slip(
    "This is the old graph: `leaf` is still in it. Do you return the old output, or write over the entry of "
    "`leaf` in your dictionary?",
    *("return new[output]", "return output"),
)
rerun.slip(
    "The numbers are right, but they have no history. Call the operator itself, `node.op(*tensors)`, and not "
    "its `compute`.",
    *(NEW, "Tensor(node.op.compute(*[new.get(i, i).cached_data for i in node.inputs]))"),
)
rerun.slip(
    "`value` is a Tensor already. Put it in as it is, not a copy of it.",
    *("{leaf: value}", "{leaf: Tensor(value)}"),
)
rerun.slip(STAR, f"*{LOOKED_UP}", LOOKED_UP)
rerun.slip(STAR, f"*{LOOKED_UP}", f"tuple({LOOKED_UP})")
rerun.slip(
    "You run the last operator on the new value alone. The operators before it have to run, too.",
    *("return new[output]", "return output.op(*[value for _ in output.inputs])"),
)
rerun.slip(FROM_OLD, LOOKED_UP, "node.inputs")
rerun.slip(
    f"{FROM_OLD} And take the list in its own order: then a node's inputs are there before the node.",
    *("ndl.autograd.find_topo_sort([output])", "reversed(ndl.autograd.find_topo_sort([output]))"),
)
rerun.slip(
    "You go two steps back and no further. `find_topo_sort([output])` gives you all nodes.",
    *("ndl.autograd.find_topo_sort([output])", "[*output.inputs, output]"),
)
rerun.slip(
    "The output is not in your dictionary. Does your `return` stand after the loop? And do you ask "
    "`is_leaf()`, with its brackets?",
    *("if not node.is_leaf()", "if not node.is_leaf"),
)
rerun.slip(
    "This is the first new node: your `return` stands inside the loop. Move it to the left.",
    *(f"new[node] = {NEW}", f"return {NEW}"),
)
rerun.slip(
    "You make a new operator, without what the old one holds: its `scalar`, say. Call the one that is there, "
    "`node.op(*tensors)`.",
    *("node.op(", "type(node.op)()("),
)
rerun.slip(
    "Is it `find_topo_sort`? Its full name is `ndl.autograd.find_topo_sort`, and it takes a list: `[output]`.",
    *("ndl.autograd.", ""),
)
rerun.slip(
    "Some input is not in your dictionary: another leaf. It stays as it is, and `new.get(i, i)` says just that.",
    *("new.get(i, i)", "new[i]"),
)
rerun.slip(
    "`new.get(i)` is None for a leaf that stays. Say what to take then: `new.get(i, i)`.",
    *("new.get(i, i)", "new.get(i)"),
)
rerun.slip(
    "This is the whole dictionary. Return only what stands there for `output`.",
    *("return new[output]", "return new"),
)
rerun.slip(
    "Every leaf gets the new value here. Only the given one changes; the others stay as they are.",
    *("new.get(i, i)", "new.get(i, value)"),
)
rerun.slip(
    "A leaf has no operator to run. Pass over the leaves as you walk; where one is an input, "
    "`new.get(i, i)` gives you the leaf itself.",
    *(IF, ""),
)
rerun.slip(
    "What you noted in the last call is still there, and belongs to another value. Begin each call with a new "
    "dictionary.",
    ("value):", "value, new={}):"),
    ("new = {leaf: value}", "new[leaf] = value"),
    ("if not node.is_leaf()", "if not node.is_leaf() and node not in new"),
)


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


class Square(ndl.autograd.TensorOp):
    def compute(self, a):
        return a * a


square = lecture.exercise(
    given(lambda: {"x": Tensor([1.0, 2.0, 3.0]).cached_data}, "x"),
    draws=arrays().map(lambda x: given(lambda: {"x": Tensor(x).cached_data}, "x")),
    number=60,
    otherwise="What is the square of each number? Compare it with what you got.",
    use=lambda operator, *numbers: operator().compute(*numbers),
)(Square)

OF_TENSORS = "That function takes Tensors, and `compute` gets arrays. Use the signs `*` or `**`."
ONE_NUMBER = "Each number is squared for itself, so the shape stays. Nothing is added up: `*` alone, not `@`."
square.slip("You doubled. For 2 that is the same as squaring, for other numbers it is not.", "a * a", "a + a")
square.slip("In Python a power is written `**`. The sign `^` means something else.", "a * a", "a ^ 2")
square.slip(
    "These arrays are the library's own, and NumPy cannot compute with them. The signs `*` and `**` can.",
    *("a * a", "np.square(a)"),
)
square.slip(
    "The numbers are right, but this is NumPy's array. Stay with the array that you got, and use `*` or `**`.",
    *("a * a", "a.numpy() ** 2"),
)
square.slip(
    "Here is a list of numbers. No loop is needed: `*` works on the whole array, entry by entry.",
    *("a * a", "[entry * entry for entry in a]"),
)
square.slip(OF_TENSORS, "a * a", "ndl.power_scalar(a, 2)")
square.slip(OF_TENSORS, "a * a", "ndl.multiply(a, a)")
square.slip(ONE_NUMBER, "a * a", "sum(a * a)")
square.slip(ONE_NUMBER, "a * a", "a @ a")
square.slip("`self` is the operator. The array that it gets is `a`: multiply that.", "a * a", "self * self")
square.slip("A method gets its own object first, and then the array: `def compute(self, a)`.", "self, a", "a")
square.slip(
    "A square has one input, so `compute` gets one array: `def compute(self, a)`.", "self, a", "self, a, b"
)
square.slip("The array comes back as it was. What do you do with it?", "a * a", "a + 0")
square.slip(
    "`compute` gets arrays and returns an array. A Tensor is made of it afterwards.",
    *("a * a", "Tensor(a) * Tensor(a)"),
)
square.slip(
    "`compute` gets arrays. They have no such method, but they can be multiplied: `*` works entry by entry.",
    *("a * a", "a.squared()"),
)
