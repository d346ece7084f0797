"""Lecture 05, the computational graph: its exercises, the usual mistakes in them, and its predictions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle as ndl
from needle import autograd
from needle.autograd import Tensor

from .checking import Case, Lecture, Names, arrays, given, graph, graphs, is_tensor, objects, program_case

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


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


#: The lecture's example; a leaf that one operator takes twice; a leaf at two places; three, and two equal products.
V1_TO_V4 = ("v1 = Tensor([0.0])", "v2 = ndl.exp(v1)", "v3 = v2 + 1", "v4 = v2 * v3")
SQUARE_OF_X = ("x = Tensor([1.0, 2.0, 3.0])", "s = x * x")
THREE_LEAVES = (
    *("a = Tensor([1.0, 2.0])", "b = Tensor([0.0, 3.0])", "c = Tensor([2.0, 0.5])"),
    *("s = a * b", "t = a * b", "y = s / (t + c)"),
)
A_CONSTANT = ("a = Tensor([2.0])", "c = Tensor([3.0], requires_grad=False)", "y = a * c")
EIGHT_STEPS = ("v0 = Tensor([0.5])", *[f"v{i} = -v{i - 1}" for i in range(1, 9)])
A_TWICE = ("a = Tensor([1.0, 2.0])", "b = Tensor([0.0, 3.0])", "y = a * b + a")
OPERATORS = ["{a} * {b}", "{a} + {b}", "ndl.tanh({a})", "{a} + 1", "{a} / {b}", "-{a}", "{a} * 3"]
drawn_graphs = graphs("Tensor([{}])", OPERATORS, leaves="abc")


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


# --- All leaves ---------------------------------------------------------------------------------------------


a_twice = graph_case(*A_TWICE)


@lecture.exercise(
    graph_case(*V1_TO_V4),
    graph_case(*SQUARE_OF_X),
    a_twice,
    graph_case(*A_TWICE, output="b"),
    graph_case(*THREE_LEAVES),
    graph_case(*A_CONSTANT),
    graph_case(*EIGHT_STEPS),
    replace(a_twice, make=cache(a_twice.make)),  # the very same nodes at each call
    draws=drawn_graphs.map(lambda lines: graph_case(*lines)),
    otherwise="Draw this graph, mark the boxes that no arrow leads to, and compare them with your list. "
    "Does `find_topo_sort` get a list, `[output]`?",
    compare=in_any_order,
)
def leaves(output):
    return [node for node in ndl.autograd.find_topo_sort([output]) if node.is_leaf()]


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
    """What an answer gives for `value`, after it ran the graph with another one, of another leaf if there is one."""
    there = [node for node in autograd.find_topo_sort([output]) if node.is_leaf() and node is not leaf]
    answer(output, [*there, leaf][0], another)
    return answer(output, leaf, value)


@lecture.exercise(
    replacing(graph_case(*V1_TO_V4), "v1"),
    replacing(graph_case(*A_TWICE), "b"),
    replacing(graph_case(*SQUARE_OF_X), "x"),
    replacing(graph_case(*THREE_LEAVES), "b"),
    replacing(graph_case(*V1_TO_V4, output="v1"), "v1"),
    replacing(graph_case(*EIGHT_STEPS), "v0"),
    draws=st.tuples(drawn_graphs, st.sampled_from([0, 1, 2])).map(replacing_some),
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
