"""From live Tensors to plain data: reads a graph, and its gradient, into a `Graph` that holds no Tensor.

A `Graph` lists variables, each after its operands. It has one row for ordinary computation, and one more for
each time that reverse mode went over it. Forward rows run from left to right and gradient rows run back below
them, so that a variable, its adjoint, and the adjoint of that stand in one column.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from needle.autograd import Tensor, TensorTuple, Value, adjoints
from needle.backend_selection import to_numpy
from needle.graph import Op
from needle.modes import Scope, lazy, remember_constants
from needle.nn import Parameter
from needle.ops.ops_indexing import ByIndex
from needle.reverse import Adjoint

from . import operators
from .constants import History
from .graph_data import LEFT_OUT, Graph, Operand, Operator, Step, Variable
from .groups import MOST_DRAWN
from .lines import line_of
from .repeats import with_repeats
from .scopes import common_scope, grouped, parameter_names, scopes_of
from .storage import arrays_of, storage_of
from .text import LARGEST_SEARCHED, Rows, ordinal, rows_of, table_of

__all__ = ["MOST", "Failure", "read_gradient", "read_graph"]

MOST_STEPS = 60_000  # in boxes for rounds: they take a page about a megabyte
MOST = 20_000  # variables that are read of a forward graph; with its gradient, three times as many


def read_graph(outputs: Sequence[Value], names: dict[Value, str], *, limit: int | None) -> Graph:
    """Read the graph that leads to `outputs`. Nothing is computed.

    Parameters
    ----------
    outputs : sequence of Value
    names : dict from Value to str
        All other nodes are called n1, n2, … in topological order; the `grad` of a node is called after the
        node, ``v1.grad``.
    limit : int or None
        At most so many variables, those nearest to the outputs; one more says how many were left out. None:
        all that can be read in a second or so, and of what a large graph repeats the first and the last.
    """
    return _Forward(outputs, names, limit or MOST).graph(summary=limit is None)


def read_gradient(
    output: Tensor,
    wrt: Sequence[Value] | None,
    names: dict[Value, str],
    *,
    limit: int | None,
    out_grad: Tensor | None = None,
    walk: list[Adjoint] | None = None,
) -> Graph:
    """Read the graph that leads to `output`, and below it the graph of its adjoints that reverse mode builds.

    If the output is not computed yet, its adjoints are not computed either. No `grad` is touched. The list
    `walk`, if it is given, receives what reverse mode found at each node.

    Raises
    ------
    ValueError
        If `output` does not depend on a Tensor of `wrt`, or that one needs no gradient.
    RuntimeError
        If `output` needs no gradient.
    """
    # In a context of its own: a no_grad() or lazy() around the call is meant for the caller's Tensors.
    walk = [] if walk is None else walk
    return Context().run(_trace_gradient, output, wrt, names, limit, out_grad, walk)


def _trace_gradient(output, wrt, names, limit, out_grad, walk) -> Graph:
    summary, limit = limit is None, limit or 3 * MOST
    forward = _Forward([output], names, max(limit // 3, 1))
    wanted = {node for node in forward.drawn if node.requires_grad}
    if wrt is not None:
        wanted &= _leading_from(wrt, forward)
    backward = _Backward(forward)
    with lazy(output.cached_data is None), remember_constants():
        for adjoint in adjoints(output, None if out_grad is None else out_grad.detach()):
            if not wanted:
                break
            walk.append(adjoint)
            if adjoint.node in wanted and backward.size_with(adjoint) <= limit:
                backward.draw(adjoint)
            elif adjoint.node in wanted or adjoint.node not in forward.keys:
                backward.leave_out(adjoint)
            wanted.discard(adjoint.node)
    return backward.graph(limit, summary=summary)


def _leading_from(wrt: Sequence[Value], forward: _Forward) -> set[Value]:
    """The Tensors of `wrt`, and all nodes that depend on them."""
    known = set(forward.order)
    for x in wrt:
        if x not in known or not x.requires_grad:
            why = "does not require a gradient" if x in known else "does not lead to the output"
            raise ValueError(f"wrt: {forward.names.get(x, 'a Tensor')} {why}; name Tensors that do both")
    reached: set[Value] = set(wrt)
    for node in forward.order:
        if any(x in reached for x in node.inputs):
            reached.add(node)
    return reached


class Failure(Value):
    """Stands for the result of an operator that failed."""

    def __init__(self, error: BaseException):
        self.op: Any = error.op  # type: ignore[attr-defined]
        self.inputs = error.inputs  # type: ignore[attr-defined]
        self.scope = getattr(error, "scope", None)
        self.message = str(error)


class _Forward:
    """Nodes of a graph with their keys, names and rows."""

    def __init__(self, outputs: Sequence[Value], names: dict[Value, str], limit: int):
        self.outputs = list(dict.fromkeys(outputs))
        self.limit = limit
        self.history = History(self.outputs, names)
        self.order = self.history.order
        names = parameter_names(self.order) | self.history.names(names)
        near = _nearest(self.outputs, limit, self.history)
        self.drawn = [node for node in self.order if node in near]
        self.grad_of = _owners_of_gradients([*names, *self.order])
        numbered = {node: f"n{i}" for i, node in enumerate(self.order, 1)}
        self.names = _names_of_all(numbered, names, self.grad_of)
        self.keys = {node: numbered[node] for node in self.drawn}
        self.seeds = self._seeds()
        self.rows = self._rows()
        self.scopes = scopes_of(self.history, self.grad_of)

    def _seeds(self) -> set[Value]:
        """The constants with which gradients begin: each is the `grad` of an output outside the graph."""
        gradients = [node for node in self.drawn if node in self.grad_of]
        if all(node.is_leaf() for node in gradients):
            return set()
        return {node for node in gradients if node.is_leaf() and self.grad_of[node] not in self.keys}

    def _rows(self) -> dict[Value, int]:
        """A gradient is a row below its variable; any other result is as low as its lowest operand."""
        row: dict[Value, int] = {}
        for node in self.drawn:
            above = [row[x] for x in self.history.inputs(node) if x in row]
            if node in self.seeds or (node in self.grad_of and node.op is not None):
                above.append(row.get(self.grad_of[node], 0) + 1)
            row[node] = max(above, default=0)
        if len(set(row.values())) > 1:  # a constant, such as the seed, is in the row that uses it
            users: dict[Value, int] = {}
            for node in reversed(self.drawn):
                if node.op is None and not node.requires_grad:
                    row[node] = users.get(node, row[node])
                for x in self.history.inputs(node):
                    users[x] = min(users.get(x, row[node]), row[node])
        used = sorted(set(row.values()))
        return {node: used.index(r) for node, r in row.items()}

    @cached_property
    def number_of_rows(self) -> int:
        return 1 + max(self.rows.values())

    def columns(self) -> dict[str, list[str]]:
        """For each key, the keys of its column; the keys of a column share one list."""
        column = {key: [key] for key in self.keys.values()}
        for node in sorted(self.keys, key=lambda node: self.rows[node]):
            owner = self.keys.get(self.grad_of[node]) if node in self.grad_of else None
            if owner is not None and owner != self.keys[node]:
                column[owner].append(self.keys[node])
                column[self.keys[node]] = column[owner]
        return column

    @property
    def left_out(self) -> int:
        return len(self.order) - len(self.drawn)

    def variables(self) -> list[Variable]:
        return [self._variable(node) for node in self.drawn]

    def graph(self, *, summary: bool) -> Graph:
        graph = Graph(
            (*_note(self.left_out, self.limit), *self.variables()),
            columns=_distinct(self.columns()),
            left_out=self.left_out,
            limit=self.limit,
            forward_rows=self.number_of_rows,
        )
        nodes = {key: node for node, key in self.keys.items()}
        gradients = {
            key: node.grad for key, node in nodes.items() if isinstance(getattr(node, "grad", None), Tensor)
        }
        return _finished(graph, self.scopes_by_key(), nodes, gradients, summary)

    def scopes_by_key(self) -> dict[str, Scope]:
        return {key: self.scopes[node] for node, key in self.keys.items() if node in self.scopes}

    def _variable(self, node: Value) -> Variable:
        kind, note = self._kind(node)
        cut_from = self.history.cut_from(node) if kind == "constant" else None
        detached = cut_from is not None or (kind == "constant" and node.detached)
        if detached and cut_from not in self.keys:
            note += ", detached" if cut_from is None else f", cut from {self.names[cut_from]}"
        inputs = self.history.inputs(node)
        operands = [Operand(self.keys.get(x, LEFT_OUT), self._place(node, i)) for i, x in enumerate(inputs)]
        return Variable(
            self.keys[node],
            self.names[node],
            kind,
            note=note,
            operator=_operator(self.history.op(node), operands),
            row=self.rows[node],
            shape=_shape(node),
            cut_from=self.keys.get(cut_from, "") if cut_from is not None else "",
            detached=detached,
        )

    def _place(self, node: Value, index: int) -> str:
        """The place of an operand in words; if the operator failed, its shape as well."""
        if isinstance(node, Failure):
            x: Any = node.inputs[index]
            shape = f"tuple of {len(x)}" if isinstance(x, TensorTuple) else str(x.shape)
            return f"{ordinal(index)} {shape}" if len(node.inputs) > 1 else shape
        return _place(self.history.op(node), node.inputs or self.history.inputs(node), index)

    def _kind(self, node: Value) -> tuple[str, str]:
        """The kind of a node, and the word beside its name."""
        if isinstance(node, Failure):
            return "failed", node.message
        if self.history.op(node) is not None and (node.op is not None or node in self.outputs):
            if node in self.outputs:
                return "output", "output"
            return (
                "adjoint" if node in self.grad_of else "partial" if self.rows[node] else "intermediate"
            ), ""
        if node in self.seeds:
            return "seed", "seed"
        kind = "parameter" if isinstance(node, Parameter) else "leaf" if node.requires_grad else "constant"
        return kind, kind


class _Use(NamedTuple):
    """One partial adjoint: the consumer it came through, the partial itself, and the way in words."""

    consumer: Value | None
    partial: Value
    words: str


class _Backward:
    """The adjoints of a forward graph as variables, each below the variable that it belongs to.

    Every node has a box for its adjoint, even if the adjoint is a Tensor that another box stands for already:
    then an operator ``=`` says that it was passed on unchanged.
    """

    def __init__(self, forward: _Forward):
        self.forward = forward
        self.columns = forward.columns()
        self.variables: list[Variable] = []
        self.keys: dict[Value, str] = {node: forward.keys.get(node, LEFT_OUT) for node in forward.order}
        self.scopes = forward.scopes_by_key()
        self.values = {key: node for node, key in forward.keys.items()}
        self.totals: dict[Value | None, Value] = {}  # node -> its adjoint
        self.boxes: dict[Value | None, str] = {}  # node -> the key of its adjoint's box
        self.left_out = 0  # adjoints of variables that are drawn

    def size_with(self, adjoint: Adjoint) -> int:
        """How many variables there are in all, with this adjoint."""
        return len(self.forward.drawn) + len(self.variables) + max(len(self._not_drawn(adjoint.total)), 1)

    def leave_out(self, adjoint: Adjoint) -> None:
        """Count an adjoint among those that there is no room for."""
        self.keys.setdefault(adjoint.total, LEFT_OUT)
        self.left_out += adjoint.node in self.forward.keys

    def draw(self, adjoint: Adjoint) -> None:
        """Add the box of an adjoint, after the steps that compute it."""
        node, _, total = adjoint
        uses = self._uses(adjoint)
        box = self._box(adjoint)
        if total in self.keys:
            passed_on = Operator("=", (Operand(self._key(total, uses[0].consumer)),))
            key = self._append(total, replace(box, operator=passed_on, via=self._via(uses[0].consumer)))
            self._remember_scope(key, self._scope(uses[0].consumer))
        elif len(uses) == 1:
            self._add(self._not_drawn(total), box, uses[0].consumer)
        else:
            known = [use for use in uses if use.partial in self.keys]
            needed = set(self._not_drawn(total))
            for use in uses:
                if use.partial in needed and use.partial not in self.keys:
                    name = f"of {self.forward.names[node]} {use.words}"
                    part = replace(box, name=name, kind="partial", note="partial")
                    self._add(self._not_drawn(use.partial), part, use.consumer)
            self._add(self._not_drawn(total), box, None, known, self._scope_of_sum(node, uses))

        self.totals[node] = total
        self.boxes[node] = self.variables[-1].key
        self.columns[self.forward.keys[node]].append(self.boxes[node])

    def graph(self, limit: int, *, summary: bool) -> Graph:
        forward = self.forward
        left_out = forward.left_out + self.left_out
        graph = Graph(
            (*_note(left_out, limit), *forward.variables(), *self.variables),
            columns=_distinct(self.columns),
            left_out=left_out,
            limit=limit,
            forward_rows=forward.number_of_rows,
        )
        return _finished(graph, self.scopes, self.values, {}, summary)

    def _scope(self, consumer: Value | None) -> Scope | None:
        """Where the gradient of a node's operator belongs: where the node was made."""
        return None if consumer is None else self.forward.scopes.get(consumer)

    def _scope_of_sum(self, node: Value, uses: Iterable[_Use]) -> Scope | None:
        """Where the sum of a node's partial adjoints belongs.

        That is where the node was made. But if it was given to a module in which it has all its uses, as to a
        `Residual`, the sum belongs to that module.
        """
        own = self.forward.scopes.get(node)
        common = common_scope(self._scope(use.consumer) for use in uses)
        return own if common_scope([own, common]) is common else common

    def _remember_scope(self, key: str, scope: Scope | None) -> None:
        self.scopes.pop(key, None)
        if scope is not None:
            self.scopes[key] = scope

    def _uses(self, adjoint: Adjoint) -> list[_Use]:
        times = Counter(consumer for consumer, _ in adjoint.partials)
        before: Counter[Value | None] = Counter()
        uses = []
        for consumer, partial in adjoint.partials:
            words = "" if consumer is None else f"via {self.forward.names[consumer]}"
            if times[consumer] > 1:
                words += f", {ordinal(before[consumer])}"
            before[consumer] += 1
            uses.append(_Use(consumer, partial, words))
        return uses

    def _box(self, adjoint: Adjoint) -> Variable:
        node, partials, total = adjoint
        name = self.forward.names[node]
        is_seed = partials[0][0] is None
        notes = ["seed"] if is_seed else ["sum"] if len(partials) > 1 else []
        if node.is_leaf() and self.forward.number_of_rows == 1 and _same_numbers(node.grad, total):
            notes.append(f"= {name}.grad")
        row = 2 * self.forward.number_of_rows - 1 - self.forward.rows[node]
        kind, key = "seed" if is_seed else "adjoint", self.forward.keys[node]
        return Variable("", f"adjoint of {name}", kind, note=" ".join(notes), row=row, adjoint_of=key)

    def _via(self, consumer: Value | None) -> str:
        return "" if consumer is None else self.forward.keys.get(consumer, LEFT_OUT)

    def _not_drawn(self, target: Value) -> list[Value]:
        """The nodes up to `target` that are not drawn yet, each after its inputs."""
        order: dict[Value, None] = {}
        stack = [(target, False)]
        while stack:
            node, inputs_done = stack.pop()
            if inputs_done:
                order[node] = None
            elif node not in order and node not in self.keys:
                stack.append((node, True))
                stack.extend((x, False) for x in reversed(node.inputs))
        return list(order)

    def _add(
        self,
        nodes: Sequence[Value],
        last: Variable,
        consumer: Value | None,
        known: Sequence[_Use] = (),
        scope: Scope | None = None,
    ) -> None:
        """Add the steps that lead to a box, and the box itself.

        Parameters
        ----------
        consumer : Value or None
            The node whose `gradient` computed them: they take its adjoint from the box of that adjoint. None
            for a sum of partial adjoints.
        known : sequence of _Use
            Partial adjoints that are drawn already, for the sum.
        scope : Scope or None
            Where the sum belongs.
        """
        unused: dict[Value, list[_Use]] = defaultdict(list)
        for use in reversed(known):
            unused[use.partial].append(use)
        for node in nodes:
            operands = []
            for i, x in enumerate(node.inputs):
                if unused[x]:
                    use = unused[x].pop()
                    operands.append(Operand(self._key(x, use.consumer), use.words))
                else:
                    operands.append(Operand(self._key(x, consumer), _place(node.op, node.inputs, i)))
            kind = "constant" if node.op is None else "partial"
            step = Variable("", "", kind, row=last.row, adjoint_of=last.adjoint_of)
            variable = replace(last if node is nodes[-1] else step, operator=_operator(node.op, operands))
            self.keys[node] = self._append(node, replace(variable, via=self._via(consumer)))
            self._remember_scope(self.keys[node], scope if consumer is None else self._scope(consumer))

    def _key(self, x: Value, consumer: Value | None) -> str:
        """The box that `x` comes from, for a step in the gradient of `consumer`."""
        return self.boxes[consumer] if x is self.totals.get(consumer) else self.keys[x]

    def _append(self, node: Value, variable: Variable) -> str:
        """Add the variable for a node; returns its key."""
        key = f"a{len(self.variables) + 1}"
        self.variables.append(replace(variable, key=key, shape=_shape(node)))
        self.values[key] = node
        return key


def _finished(
    graph: Graph,
    scopes: Mapping[str, Scope],
    values: Mapping[str, Value],
    gradients: Mapping[str, Tensor],
    summary: bool,
) -> Graph:
    """The graph in groups, with what each variable holds, and its gradient if it has one.

    A summary keeps only the first and the last of what a large graph repeats.
    """
    whole = _counted(graph)
    graph = with_repeats(grouped(whole, scopes), summary=summary)
    if summary and not graph.groups and len(graph.variables) > MOST_DRAWN:
        return graph  # too large: a part will be drawn
    variables = [
        replace(x, gradient=_gradient_of(gradients.get(x.key)), **_description(values[x.key]))
        if x.key in values
        else x
        for x in graph.variables
    ]
    lines = {x.key: x.line for x in variables}
    variables = [replace(x, line=lines[x.via]) if x.via in lines else x for x in variables]
    return replace(graph, variables=_with_memory(variables, values), steps=_steps(graph, whole, values))


def _steps(graph: Graph, whole: Graph, values: Mapping[str, Value]) -> dict[str, Step]:
    """What is in the rounds of boxes, in words, unless that is too much for a page."""
    keys = {key for x in graph.variables for computed in x.rounds for key in computed}
    if not keys or len(keys) > MOST_STEPS:
        return {}
    names = {x.key: x.name or "…" for x in whole.variables}
    steps = {}
    for x in whole.variables:
        if x.key in keys and x.operator is not None:
            node = values[x.key]
            rows = _value_of(node) if isinstance(node, Tensor) else ()
            value = "; ".join(" ".join(row) for row in rows)
            made_of = operators.applied(x.operator.symbol, [names[y.key] for y in x.operands])
            steps[x.key] = Step(names[x.key], made_of, value)
    return steps


def _counted(graph: Graph) -> Graph:
    """The graph, in which each parameter and its adjoints know how many numbers they have."""
    owner = {key: column[0] for column in graph.columns for key in column}
    parameters = {x.key for x in graph.variables if x.kind == "parameter"}
    variables = (
        replace(x, parameters=math.prod(x.shape or ())) if owner.get(x.key, x.key) in parameters else x
        for x in graph.variables
    )
    return replace(graph, variables=tuple(variables))


def _with_memory(variables: Sequence[Variable], values: Mapping[str, Value]) -> tuple[Variable, ...]:
    """The variables with the bytes of their storages; each storage counts at the first that has it."""
    owners: dict[int, Variable] = {}
    result = {}
    # A detached variable is never the first.
    for x in sorted(variables, key=lambda x: bool(x.cut_from)):
        node = values.get(x.key)
        storages = [] if node is None else [storage_of(array) for array in arrays_of(node.cached_data)]
        own = {id(storage): size for storage, size in storages if owners.setdefault(id(storage), x) is x}
        if storages:
            owner = owners[id(storages[0][0])]
            x = replace(x, bytes=sum(own.values()), shares="" if own else owner.name or owner.facts)
        result[x.key] = x
    return tuple(result[x.key] for x in variables)


def _same_numbers(grad: Value | None, adjoint: Value) -> bool:
    """Whether a node's `grad` equals this adjoint: it may be None, or come from another output."""
    if grad is None or grad.cached_data is None or adjoint.cached_data is None:
        return False
    return np.array_equal(to_numpy(grad.cached_data), to_numpy(adjoint.cached_data), equal_nan=True)


def _nearest(outputs: Sequence[Value], limit: int, history: History) -> set[Value]:
    """The outputs and the nodes nearest to them, `limit` in all."""
    near = set(outputs)
    queue = deque(outputs)
    while queue:
        for x in history.inputs(queue.popleft()):
            if len(near) >= limit:
                return near
            if x not in near:
                near.add(x)
                queue.append(x)
    return near


def _owners_of_gradients(nodes: Iterable[Value]) -> dict[Value, Value]:
    """For each Tensor that is the `grad` of one of `nodes`: that node."""
    owners: dict[Value, Value] = {}
    for node in nodes:
        gradient = getattr(node, "grad", None)
        if gradient is not None and gradient is not node:
            owners.setdefault(gradient, node)
    return owners


def _names_of_all(
    numbered: dict[Value, str], given: dict[Value, str], owners: dict[Value, Value]
) -> dict[Value, str]:
    """A name for every node: the given one, or that of the node whose `grad` it is, or its number."""
    taken = set(given.values())
    names = {node: number + "′" if number in taken else number for node, number in numbered.items()} | given
    for node in numbered:
        if node not in given and owners.get(node) in names:
            names[node] = f"{names[owners[node]]}.grad"
    return names


def _note(left_out: int, limit: int) -> list[Variable]:
    """The box that stands for the variables that were left out, if there are any."""
    if not left_out:
        return []
    return [
        Variable(LEFT_OUT, f"… {left_out:,} more nodes", "left out", note=f"left out: raise limit={limit}")
    ]


def _distinct(columns: dict[str, list[str]]) -> tuple[tuple[str, ...], ...]:
    """The columns with more than one box."""
    return tuple({tuple(column): None for column in columns.values() if len(column) > 1})


def _operator(op: Op | str | None, operands: Iterable[Operand]) -> Operator | None:
    return None if op is None else Operator(operators.symbol(op), tuple(operands))


def _place(op: Op | str | None, inputs: Sequence[Value], index: int) -> str:
    """The place of an operand in words, if it matters."""
    if isinstance(op, ByIndex):
        return "index" if index else ""
    return ordinal(index) if len(inputs) > 1 and op and operators.order_matters(op) else ""


def _shape(node: Value) -> tuple[int, ...] | None:
    return node.shape if isinstance(node, Tensor) else None  # a TensorTuple has several


def _description(node: Value) -> dict[str, Any]:
    """A Value as fields of a Variable. Nothing is computed."""
    if isinstance(node, Failure):
        return {}
    computed = node.cached_data is not None
    known: dict[str, Any] = {"computed": computed, "requires_grad": node.requires_grad}
    if isinstance(node, TensorTuple):
        return {"facts": f"tuple of {len(node)}", **known}
    assert isinstance(node, Tensor)
    facts = f"{node.shape}" if node.dtype == "float32" else f"{node.shape} {node.dtype}"
    known |= {"facts": facts, "dtype": str(node.dtype), "device": str(node.device)}
    return {**known, "value": _value_of(node), "numbers": _numbers_of(node), "line": line_of(node)}


def _gradient_of(gradient: Tensor | None) -> Rows:
    if gradient is None:
        return ()
    return _value_of(gradient) if gradient.cached_data is not None else (("not computed",),)


def _numbers_of(tensor: Tensor) -> Rows:
    array = tensor.cached_data
    if array is None or math.prod(array.shape) > LARGEST_SEARCHED:
        return ()
    return table_of(to_numpy(array))


def _value_of(tensor: Tensor) -> Rows:
    array = tensor.cached_data
    if array is None:
        return ()
    return () if math.prod(array.shape) > LARGEST_SEARCHED else rows_of(to_numpy(array))
