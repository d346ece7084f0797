"""Reverse mode: one walk back over the graph finds the derivative of its output with respect to every node.

The **adjoint** of a node is the derivative of the output with respect to that node. Take y = x * x + x:

    nodes, each after its inputs        x,  s = x * x,  y = s + x
    the same, reversed                  y,  s,  x
    at y: its own adjoint is 1          it passes 1 to s and 1 to x
    at s: the adjoint is 1              it passes 1 * x to x, twice: x is both operands
    at x: the adjoint is 1 + x + x      the sum of the partial adjoints that came back

When it is a node's turn, all nodes that use it have had theirs, so its partial adjoints are complete and can
be summed. That is why the order matters, and why one walk is enough.

The walk knows neither Tensors nor a single operator. A node has `op`, `inputs` and `requires_grad` (see
`graph.py`), and ``op.gradient(adjoint, node)`` is the chain rule for one operator. What it returns is built
with operators again, so the adjoints are themselves a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .failures import gradient_failed, wrong_partials
from .graph import Node, find_topo_sort
from .modes import mode


class Adjoint(NamedTuple):
    """What reverse mode finds at one node.

    Attributes
    ----------
    node : Value
    partials : list of (Value or None, Value)
        A partial adjoint for each use of the node, after the node that used it (None for the seed, which
        comes from outside).
    total : Value
        Their sum: the derivative of the output with respect to `node`.
    """

    node: Any
    partials: list[tuple[Any, Any]]
    total: Any


def walk_back(output: Any, seed: Any) -> Iterator[Adjoint]:
    """Yield the adjoint of every node that leads to `output`, in reverse topological order.

    Parameters
    ----------
    output : Value
    seed : Value
        The adjoint of `output`, with which the walk begins.
    """
    partials_of = {output: [(None, seed)]}
    for node in reversed(find_topo_sort([output])):
        partials = partials_of.pop(node, None)
        if partials is None:  # it needs no gradient, or none came back to it
            continue
        total = partials[0][1] if len(partials) == 1 else sum_node_list([p for _, p in partials])
        yield Adjoint(node, partials, total)
        if node.op is not None:
            for x, partial in zip(node.inputs, pull_back(node, total)):  # noqa: B905 - already counted
                if x.requires_grad and partial is not None:
                    partials_of.setdefault(x, []).append((node, partial))


def pull_back(node: Any, adjoint: Any) -> Sequence[Any]:
    """The chain rule at one node: its adjoint becomes a partial adjoint for each of its inputs.

    That is ``node.op.gradient(adjoint, node)``. The rest is care: the values are those with which the node
    was computed, even if an input was written to since; the new nodes get the scope of this one; and a
    gradient of the wrong shape is an error here, not a wrong number later.
    """
    then = node.as_built()
    lazy, grad, _ = mode.get()
    token = mode.set((lazy, grad, node.scope))
    try:
        partials = node.op.gradient_as_tuple(adjoint, then)
    except Exception as error:
        gradient_failed(error, node, adjoint)
        raise
    finally:
        mode.reset(token)
    if then is not node:
        then.stand_in_for(node)

    if len(partials) != len(node.inputs):
        raise wrong_partials(node, adjoint, partials)
    for x, partial in zip(node.inputs, partials):  # noqa: B905 - counted above
        if partial is not None and not (
            isinstance(partial, Node) and getattr(partial, "shape", None) == getattr(x, "shape", None)
        ):
            raise wrong_partials(node, adjoint, partials)
    return partials


def sum_node_list(node_list: Sequence[Any]) -> Any:
    """The sum of Values, as a graph; of a single one, that one itself."""
    return node_list[0] if len(node_list) == 1 else node_list[0].sum_of(node_list)
