"""A forward and a backward pass, frame by frame, as plain data: what happens, and what can be seen.

The graph is the one that `read_gradient` finds, and the backward pass is the walk of
`needle.autograd.adjoints` behind it. Nothing else is computed, and no Tensor's `grad` is touched.
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from needle.autograd import Tensor, Value
from needle.reverse import Adjoint

from .constants import History
from .equations import Equation, adjoint_name, equation, partial_name
from .expressions import Name, Term, named, read, sum_of
from .graph_data import Graph, Variable
from .graph_reader import read_gradient
from .reasons import of_gradient, of_partial, of_seed, of_sum, of_value
from .text import counted

__all__ = ["Passes", "StepFrame", "record_passes"]

MOST_EQUATIONS = 5  # in one frame: some operators have many operands


@dataclass(frozen=True)
class StepFrame:
    """One moment of the two passes.

    Attributes
    ----------
    phase : str
        ``"forward"``; ``"sum"``, in which an adjoint becomes known; or ``"pass on"``, in which the operator
        passes it on to its operands.
    title : str
    equations : tuple of Equation
    place : int
        The place in topological order of the node that it is about.
    key : str
        The key of the variable that it is about; in the backward pass, that of an adjoint.
    marked : tuple of str
        The keys of the variables that it uses.
    more : str
        What is said of equations that are left out.
    """

    phase: str
    title: str
    equations: tuple[Equation, ...]
    place: int
    key: str
    marked: tuple[str, ...] = ()
    more: str = ""

    def said(self) -> tuple[str, ...]:
        """The equations as text, and what is said of those left out."""
        return (*map(str, self.equations), *filter(None, [self.more]))

    def in_words(self, columns: int) -> str:
        """The frame as lines of text, each of at most so many characters."""
        lines = [line for x in self.equations for line in x.lines(columns - 3)]
        return "\n   ".join([self.title, *lines, *filter(None, [self.more])])


@dataclass(frozen=True)
class Passes:
    """All frames of the two passes.

    Attributes
    ----------
    graph : Graph
        What is drawn: all of it.
    order : tuple of str
        The names of the nodes, in topological order.
    frames : tuple of StepFrame
    since : mapping of str to int
        By the key of each variable, the number of the frame in which it appears.
    """

    graph: Graph
    order: tuple[str, ...]
    frames: tuple[StepFrame, ...]
    since: Mapping[str, int]

    def appears(self, key: str) -> int:
        """The frame in which a part appears: ``n1``, ``n1_op``, ``n1->n2_op`` or ``n1_for_n2``."""
        return max(self._appears(end) for end in key.split("->"))

    def _appears(self, key: str) -> int:
        return self.since.get(key.removesuffix("_op").rpartition("_for_")[2], 0)


def record_passes(output: Tensor, names: Mapping[Value, str], *, out_grad: Tensor | None = None) -> Passes:
    """Record the forward pass to `output` and the backward pass from it.

    First comes one frame for each node in topological order. Then, in reverse order, come two for each node
    that has an adjoint: in one its partial adjoints are summed, in the other its operator makes of the sum a
    partial adjoint for each operand. If there is nothing to sum, the two are one frame.

    If `output` is lazy and not computed yet, nothing is computed: the equations show names, and shapes in
    place of numbers.
    """
    walk: list[Adjoint] = []
    graph = read_gradient(output, None, dict(names), limit=10**9, out_grad=out_grad, walk=walk)
    graph = replace(graph, groups=(), variables=tuple(replace(x, group="") for x in graph.variables))
    return _Recorder(output, names, graph, walk, out_grad is not None).record()


class _Recorder:
    """Collects the frames, one after the other."""

    def __init__(
        self, output: Tensor, names: Mapping[Value, str], graph: Graph, walk: list[Adjoint], given: bool
    ):
        self.output, self.given = output, given
        self.history = History([output], names)
        self.order = self.history.order
        self.graph = graph
        self.walk = walk
        self.keys = {node: f"n{i}" for i, node in enumerate(self.order, 1)}
        self.places = {node: i for i, node in enumerate(self.order)}
        by_key = {variable.key: variable for variable in graph.variables}
        self.names = {node: by_key[key].name for node, key in self.keys.items()}
        self.known: dict[Value, Name] = {node: Name(name) for node, name in self.names.items()}
        # By the adjoint it is for, and the consumer it came through.
        self.made: dict[tuple[str, str], list[Variable]] = defaultdict(list)
        for variable in graph.variables:
            self.made[variable.adjoint_of, variable.via].append(variable)
        boxes = [x for x in graph.variables if x.kind in ("adjoint", "seed") and x.adjoint_of]
        self.boxes = {x.adjoint_of: x.key for x in boxes}
        self.frames: list[StepFrame] = []
        self.since: dict[str, int] = {}

    def record(self) -> Passes:
        for node in self.order:
            self.forward(node)
        handed: dict[Value, list[tuple[Value, Value]]] = defaultdict(list)  # consumer -> operands, partials
        for node, partials, _ in self.walk:
            for consumer, partial in partials:
                if consumer is not None:
                    handed[consumer].append((node, partial))
        for number, adjoint in enumerate(self.walk, 1):
            arrived, given = self.sum(adjoint, number), handed[adjoint.node]
            if adjoint.total not in self.places:
                self.known[adjoint.total] = adjoint_name(self.names[adjoint.node])
            says_more = adjoint.partials[0][0] is None or len(adjoint.partials) > 1 or not given
            if says_more:
                self.add(arrived, self.of_sum(adjoint))
            if given:
                self.pass_on(adjoint, given, number, () if says_more else arrived.equations)
        order = tuple(self.names[node] for node in self.order)
        return Passes(self.graph, order, tuple(self.frames), self.since)

    def add(self, frame: StepFrame, appearing: list[str]) -> None:
        for key in appearing:
            self.since.setdefault(key, len(self.frames))
        self.frames.append(frame)

    def forward(self, node: Value) -> None:
        key, place = self.keys[node], self.places[node]
        title = f"Forward, node {place + 1} of {len(self.order)}: {self.names[node]}"
        marked = tuple(dict.fromkeys(self.keys[x] for x in self.history.inputs(node)))
        made = self.history.op(node), self.history.inputs(node)
        why = of_value(*made, node, self.known)
        written = equation(self.known[node], node, self.made_from(node), why=why)
        self.add(StepFrame("forward", title, (written,), place, key, marked), [key])

    def made_from(self, node: Value) -> Term | None:
        """What a node is computed from; None for a leaf."""
        op = self.history.op(node)
        if op is None:
            return None
        if node.op is not None:
            return read(node.as_built(), self.known, expand=True)
        inputs = self.history.inputs(node)
        if isinstance(op, str):  # an index
            shape = node.shape if isinstance(node, Tensor) else None
            return Term(op, tuple(named(x, self.known[x]) for x in inputs), shape)
        constant = type(node).make_const(node)
        constant.op, constant.inputs = op, inputs
        return read(constant, self.known)

    def of_sum(self, adjoint: Adjoint) -> list[str]:
        """The keys of the steps that sum partial adjoints, and of the sum."""
        key = self.keys[adjoint.node]
        return [*(x.key for x in self.made[key, ""]), self.boxes[key]]

    def sum(self, adjoint: Adjoint, number: int) -> StepFrame:
        """All partial adjoints of a node have arrived, and are summed."""
        node, partials, _ = adjoint
        key = self.keys[node]
        if partials[0][0] is None:
            what = "the seed"
        elif len(partials) > 1:
            what = f"sum of {len(partials)} partial adjoints"
        else:
            what = "all of it has arrived"
        title = f"{self._backward(number)}: adjoint of {self.names[node]}, {what}"
        steps = self.made[key, ""]
        made = {x.key for x in steps}
        arrived = [x.key for step in steps if step.operator for x in step.operator.operands]
        marked = tuple(dict.fromkeys(x for x in arrived if x not in made))
        written = self.equation_of_sum(adjoint)
        return StepFrame("sum", title, (written,), self.places[node], self.boxes[key], marked)

    def equation_of_sum(self, adjoint: Adjoint) -> Equation:
        """``v̄2 = v̄2 via v4 + v̄2 via v3``, or the seed."""
        node, partials, total = adjoint
        name = adjoint_name(self.names[node])
        if partials[0][0] is None:
            why = of_seed(self.output, self.known[self.output], self.given)
            return equation(name, total, None, note=" (the seed)", why=why)
        terms = [named(x, partial_name(self.names[node], self.names[user])) for user, x in partials]
        whys = [of_sum(adjoint, self.known)] if len(partials) > 1 else []
        whys += [] if self.given else [of_gradient(self.output, node, self.known)]
        summed = sum_of(terms, len(terms), terms[0].shape)
        return equation(name, total, summed, entries=False, why=" ".join(filter(None, whys)))

    def equation_of_partial(self, adjoint: Adjoint, place: int, partial: Value) -> Equation:
        """``v̄2 via v4 = v̄4 · v3``: what the gradient of a node's operator computed."""
        node, _, total = adjoint
        operand = node.inputs[place]
        name = partial_name(self.names[operand], self.names[node])
        names = ChainMap({total: adjoint_name(self.names[node])}, self.known)
        term = read(partial, names, expand=partial is not total and partial not in self.places)
        self.known.setdefault(partial, name)
        return equation(name, partial, term, why=of_partial(adjoint, place, partial, self.known))

    def pass_on(
        self, adjoint: Adjoint, handed: list[tuple[Value, Value]], number: int, before: tuple[Equation, ...]
    ) -> None:
        """A node's operator makes of the node's adjoint one partial adjoint for each operand.

        An adjoint that is not a sum has no frame of its own; its equation stands `before` the others here.
        """
        node = adjoint.node
        key = self.keys[node]
        equations, appearing, marked = [*before], [], []
        passed_on = _by_operand(node, handed)
        for place, partial in passed_on:
            equations.append(self.equation_of_partial(adjoint, place, partial))
            operand = node.inputs[place]
            for x in self.made[self.keys[operand], key]:
                appearing.append(x.key)
                if x.name:
                    marked.append(x.key)
        left_out = max(len(equations) - MOST_EQUATIONS, 0)
        more = f"… and {counted(left_out, 'more operand')}" if left_out else ""
        shown = tuple(equations[:MOST_EQUATIONS])
        to = dict.fromkeys(self.names[node.inputs[place]] for place, _ in passed_on)
        words = f" to {' and '.join(to)}" if len(to) <= 2 else ""
        title = f"{self._backward(number)}: what {self.names[node]} passes on{words}"
        frame = StepFrame("pass on", title, shown, self.places[node], self.boxes[key], tuple(marked), more)
        self.add(frame, appearing)

    def _backward(self, number: int) -> str:
        return f"Backward, node {number} of {len(self.walk)}"


def _by_operand(node: Value, handed: list[tuple[Value, Value]]) -> list[tuple[int, Value]]:
    """The place of each operand to which something was passed on, and what, in the order of the operands."""
    left = list(handed)
    found = []
    for place, x in enumerate(node.inputs):
        match = next((i for i, (operand, _) in enumerate(left) if operand is x), None)
        if match is not None:
            found.append((place, left.pop(match)[1]))
    return found
