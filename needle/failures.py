"""What an error remembers: the operator that failed and its operands. So the graph up to there can be drawn.

Every error of an operator, of a module and of reverse mode goes through `with_graph`. It stays the exception
that it was, with its message; `viz.draw_error` reads what was added.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from .backend_ndarray.indexing import index_in_words
from .graph import Node, Op, TensorOp, TensorTupleOp, find_topo_sort, is_tensor
from .modes import SCOPE, mode

# A note that Python shows below the message.
OFFER = """\
To see the graph up to here: import viz; viz.draw_error()
In a script: except Exception as error: viz.draw_error(error).save("error.svg")"""


def with_graph(error: Exception, op: Any, inputs: Sequence[Any]) -> Exception:
    """Let `error` remember what failed (an operator, a module, or a few words) and with which inputs."""
    error.op, error.inputs, error.scope = op, inputs, mode.get()[SCOPE]  # type: ignore[attr-defined]
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
    """The error of an operator that failed only when these nodes, or one before them, were computed.

    A node that was computed from constants remembers no operator. If that of such a node failed, new nodes
    stand for its operands.
    """
    op, operands = getattr(error, "op", None), getattr(error, "operands", None)
    if op is None or operands is None:
        return error
    failed = next((x for x in find_topo_sort(nodes) if x.op is op), None)
    inputs = [_constant(x) for x in operands] if failed is None else failed.inputs
    with_graph(error, op, inputs).scope = None if failed is None else failed.scope  # type: ignore[attr-defined]
    return error


def _constant(data: Any) -> Node:
    """A node that stands for an array, or for a tuple of them; they can be still to be computed."""
    several = getattr(data, "shape", None) is None
    return (TensorTupleOp if several else TensorOp).out.make_const(data)


def gradient_failed(error: Exception, node: Any, adjoint: Any) -> None:
    """Let the error of a node's `gradient` remember the node, unless an operator inside it has failed."""
    if not hasattr(error, "op"):
        _of_gradient(error, node, [adjoint, node])


def check_partials(node: Any, adjoint: Any, partials: Any) -> None:
    """Raise ValueError or TypeError unless there is a fitting partial adjoint, or None, for each input."""
    inputs = node.inputs
    if len(partials) != len(inputs):
        message = f"{node.op}.gradient: gave {len(partials)} results for {len(inputs)} operands"
        raise _of_gradient(ValueError(message), node, [adjoint, node])
    for i, partial in enumerate(partials):
        if partial is None:
            continue
        x = inputs[i]
        if not isinstance(partial, Node):
            message = f"{node.op}.gradient: result {i} is a {type(partial).__name__}, not a Tensor"
            raise _of_gradient(TypeError(message), node, [adjoint, node])
        shape = partial.shape
        if shape != x.shape:
            message = f"{node.op}.gradient: result {i} has shape {shape}, but operand {i} has shape {x.shape}"
            raise _of_gradient(ValueError(message), node, [partial, x])
        if shape is None and len(partials[i]) != len(x):  # TensorTuples
            message = f"{node.op}.gradient: result {i} and operand {i} are tuples of different lengths"
            raise _of_gradient(ValueError(message), node, [partial, x])


def _of_gradient(error: Exception, node: Any, inputs: Sequence[Any]) -> Exception:
    with_graph(error, f"{node.op}.gradient", inputs).scope = node.scope  # type: ignore[attr-defined]
    return error


def not_a_value(op: Op, inputs: Sequence[Any]) -> TypeError:
    """The error of an operand that is no Value at all."""
    index, odd = next(((i, x) for i, x in enumerate(inputs) if not isinstance(x, Node)), (0, inputs[0]))
    return TypeError(
        f"{type(op).__name__}: operand {index} is a {type(odd).__name__}, not a Tensor; "
        "wrap it: needle.Tensor(...)"
    )


def index_failed(error: Exception, value: Any, index: Any) -> None:
    """Let the error of ``value[index]`` remember that, unless an operator failed to compute the index."""
    if not hasattr(error, "op"):
        items = index if isinstance(index, tuple) else (index,)
        with_graph(error, index_in_words(index), [value, *(x for x in items if is_tensor(x))])


#: What people of other libraries look for, and what it is called here.
FROM_ELSEWHERE = {
    "view": "reshape",
    "squeeze": "reshape",
    "unsqueeze": "reshape",
    "flatten": "reshape",
    "expand": "broadcast_to",
    "dim": "ndim",
    "t": "T",
    "dot": "matmul",
    "mm": "matmul",
    "mul": "x * y",
    "sub": "x - y",
    "div": "x / y",
    "pow": "x ** y",
    "numel": "size",
    "grad_fn": "op",
    "clone": "ndl.Tensor(x)",
    "cpu": "x.to(ndl.cpu())",
    "cuda": "x.to(ndl.cuda())",
    "float": 'x.astype("float32")',
    "double": 'x.astype("float64")',
    "int": 'x.astype("int64")',
    "type": "astype",
    "requires_grad_": "x.requires_grad = True",
    "zero_grad": "optimizer.reset_grad()",
    "tolist": "x.numpy().tolist()",
}


def missing_attribute(owner: Any, name: str, instead: str | None = None) -> Any:
    """What `__getattr__` does for a name that is not there: raise, and name what is probably meant.

    Parameters
    ----------
    owner : object
    name : str
    instead : str, optional
        An attribute, or an expression, that does what the name promises. Default: the attribute that is
        spelt most like it.
    """
    if hasattr(type(owner), name):  # there is such a property, and its own code failed: let it say why
        return object.__getattribute__(owner, name)
    if instead is None and not name.startswith("__"):  # NumPy and IPython ask for many of those
        known = [x for x in dir(owner) if x.startswith("_") == name.startswith("_")]
        instead = next(iter(get_close_matches(name, known, n=1, cutoff=0.7)), None)
    hint = ""
    if instead:
        hint = f"; did you mean {instead!r}?" if instead.isidentifier() else f"; write {instead}"
    raise AttributeError(f"{type(owner).__name__} has no attribute {name!r}{hint}")
