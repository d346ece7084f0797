"""Reverse mode: one walk back over the graph finds the derivative of its output with respect to every node.

The **adjoint** of a node is the derivative of the output with respect to that node, and has its shape. (If
the output is not one number: the derivative of its sum.) Take y = x * x + x:

    nodes, each after its inputs        x,  s = x * x,  y = s + x
    the same, reversed                  y,  s,  x
    at y: its own adjoint is 1          it passes 1 to s and 1 to x
    at s: the adjoint is 1              it passes 1 * x to x, twice: x is both operands
    at x: the adjoint is 1 + x + x      the sum of the partial adjoints that came back

When the walk reaches a node, it has already visited every node that uses it. So all its partial adjoints have
arrived and can be summed. That is why the order matters, and why one walk is enough.

The walk knows neither Tensors nor a single operator. It reads a node's `op`, `inputs` and `requires_grad`
(see `graph.py`), and ``op.gradient(adjoint, node)`` is the chain rule for one operator. The result is built
with operators again, so the adjoints are themselves a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from .failures import check_partials, gradient_failed
from .graph import find_topo_sort
from .modes import mode


class Adjoint(tuple):
    """What reverse mode finds at one node: the tuple (node, partials, total)."""

    __slots__ = ()

    node = property(itemgetter(0), doc="The Value whose adjoint it is.")
    partials = property(
        itemgetter(1),
        doc="""Pairs (user, partial adjoint), one for each use of the node. The user is the node that used it;
        None for the seed, which comes from outside.""",
    )
    total = property(itemgetter(2), doc="Their sum: the derivative of the output with respect to `node`.")


def walk_back(output: Any, seed: Any) -> Iterator[tuple[Any, list, Any]]:
    """Yield what an `Adjoint` is made of for every node that leads to `output`, in reverse topological order.

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
        yield node, partials, total
        if node.op is not None:
            for x, partial in zip(node.inputs, pull_back(node, total)):  # noqa: B905 - already counted
                if partial is not None and x.requires_grad:
                    partials_of.setdefault(x, []).append((node, partial))


def pull_back(node: Any, adjoint: Any) -> Sequence[Any]:
    """The chain rule at one node: its adjoint becomes a partial adjoint for each of its inputs.

    That is ``node.op.gradient(adjoint, node)``. The rest is bookkeeping: the new nodes get the scope of this
    one (see `modes.py`), the values are those with which the node was computed, even if somebody has written
    to an input since, and a gradient that does not fit its input is an error at once.
    """
    lazy, grad, scope, constants = mode.get()
    token = None if scope is node.scope else mode.set((lazy, grad, node.scope, constants))
    try:
        built = node.as_built()
        partials = node.op.gradient_as_tuple(adjoint, built)
        if built is not node:
            built.stand_in_for(node)  # derivatives of this gradient reach the node itself
        check_partials(node, adjoint, partials)
    except Exception as error:
        gradient_failed(error, node, adjoint)
        raise
    finally:
        if token is not None:
            mode.reset(token)
    return partials


def sum_node_list(node_list: Sequence[Any]) -> Any:
    """The sum of Values, as a graph: of Tensors by ``+``, of TensorTuples item by item. One Value is its own
    sum."""
    return node_list[0] if len(node_list) == 1 else node_list[0].sum_of(node_list)
