"""What an error remembers: the operator that failed and its operands. So the graph up to there can be drawn.

Every error of an operator, of a module and of reverse mode goes through `with_graph`. It stays the exception
that it was, with its message; `viz.draw_error` reads what was added.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from .graph import Node, Op, TensorTupleOp, find_topo_sort
from .modes import mode

# A note that Python shows below the message.
OFFER = """\
To see the graph up to here: import viz; viz.draw_error()
In a script: except Exception as error: viz.draw_error(error).save("error.svg")"""


def with_graph(error: Exception, op: Any, inputs: Sequence[Any]) -> Exception:
    """Let `error` remember what failed (an operator, a module, or a few words) and with which inputs."""
    error.op, error.inputs, error.scope = op, inputs, mode.get()[2]  # type: ignore[attr-defined]
    if OFFER not in getattr(error, "__notes__", ()):
        error.add_note(OFFER)
    return error


def operator_failed(error: Exception, op: Op, inputs: Sequence[Any]) -> Exception:
    """The error of an operator that could not be applied to its inputs."""
    if isinstance(error, (AttributeError, TypeError)) and any(
        isinstance(x, TensorTupleOp.out) for x in inputs
    ):
        error = TypeError(f"{op}: an operand is a TensorTuple; take one of its Tensors: value[i]")
    return with_graph(error, op, inputs)


def compute_failed(error: Exception, op: Op, inputs: Sequence[Any], arrays: Sequence[Any]) -> Exception:
    """The error of an operator's `compute`: what its `infer` says of these operands, if it objects."""
    try:
        op.infer(*arrays)
    except (TypeError, ValueError) as clearer:
        error = clearer.with_traceback(None)  # a traceback would keep all that is named here alive
    except Exception:  # an `infer` that is itself wrong has nothing to add
        pass
    return operator_failed(error, op, inputs)


def pending_failed(error: Exception, nodes: Sequence[Any]) -> Exception:
    """The error of an operator that failed only when these nodes, or one before them, were computed."""
    op = getattr(error, "op", None)
    failed = next((x for x in find_topo_sort(nodes) if x.op is op is not None), None)
    if failed is not None:
        with_graph(error, op, failed.inputs).scope = failed.scope  # type: ignore[attr-defined]
    return error


def gradient_failed(error: Exception, node: Any, adjoint: Any) -> None:
    """Let the error of a node's `gradient` remember the node, unless an operator inside it has failed."""
    if not hasattr(error, "op"):
        _of_gradient(error, node, [adjoint, node])


def wrong_partials(node: Any, adjoint: Any, partials: Sequence[Any]) -> Exception:
    """What is wrong with the partial adjoints that a node's `gradient` returned."""
    name = f"{node.op}.gradient"
    if len(partials) != len(node.inputs):
        message = f"{name}: gave {len(partials)} results for {len(node.inputs)} operands"
        return _of_gradient(ValueError(message), node, [adjoint, node])
    for i, (x, partial) in enumerate(zip(node.inputs, partials, strict=True)):
        if partial is None:
            continue
        if not isinstance(partial, Node):
            message = f"{name}: result {i} is a {type(partial).__name__}, not a Tensor"
            return _of_gradient(TypeError(message), node, [adjoint, node])
        shape, wanted = getattr(partial, "shape", None), getattr(x, "shape", None)
        if shape != wanted:
            message = f"{name}: result {i} has shape {shape}, but operand {i} has shape {wanted}"
            return _of_gradient(ValueError(message), node, [partial, x])
    raise AssertionError(f"{name}: nothing is wrong with {partials}")


def _of_gradient(error: Exception, node: Any, inputs: Sequence[Any]) -> Exception:
    with_graph(error, f"{node.op}.gradient", inputs).scope = node.scope  # type: ignore[attr-defined]
    return error


def not_a_value(op: Op, inputs: Sequence[Any]) -> TypeError:
    """The error of an operand that is no Value at all."""
    index, odd = next((i, x) for i, x in enumerate(inputs) if not isinstance(x, Node))
    return TypeError(
        f"{type(op).__name__}: operand {index} is a {type(odd).__name__}, not a Tensor; "
        "wrap it: needle.Tensor(...)"
    )


def no_attribute(owner: Any, name: str, instead: str = "") -> AttributeError:
    """The error of a name that `owner` does not have: it gives `instead`, or the nearest name that it has."""
    if not instead and not name.startswith("_"):
        instead = next(iter(get_close_matches(name, [x for x in dir(owner) if x[0] != "_"], n=1)), "")
    hint = f"; did you mean {instead!r}?" if instead else ""
    return AttributeError(f"{type(owner).__name__} has no attribute {name!r}{hint}")
