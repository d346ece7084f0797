"""What a computational graph is made of: operators, values not computed yet, and the topological order.

Nothing here knows a concrete operator or the Tensor class; both are built on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Spec(NamedTuple):
    """What is known of an array before it is computed."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any


class Op:
    """An operator: what comes out (`infer`), how to compute it (`compute`), and its derivative (`gradient`).

    An operator is a small object that keeps its attributes (a scalar, axes, a shape) on the instance.
    Calling it with Values builds a node of the computational graph.
    """

    differentiable = True  # False: the result depends on its inputs in steps, as a comparison does
    deferred = False  # True: computed only when asked for, in eager mode too

    def __call__(self, *args):
        raise NotImplementedError

    def __repr__(self) -> str:
        attributes = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({attributes})"

    def infer(self, *inputs):
        """Shape, dtype and device of the result, from the inputs' alone.

        Parameters
        ----------
        *inputs
            One thing per operand that has a `shape`, a `dtype` and a `device`: an array or a `Spec`
            (for a tuple operand: a tuple of such things).

        Returns
        -------
        Spec, tuple of Spec, or None
            None, the default, says "compute it to find out": such an operator is never lazy.

        Raises
        ------
        ValueError
            If the inputs do not fit. The message names the operation, the shapes and the way out.
        """
        return None

    def compute(self, *args):
        """The result, from arrays: `NDArray`, or `numpy.ndarray` under ``NEEDLE_BACKEND=np``."""
        raise NotImplementedError(f"{type(self).__name__} has no compute method")

    def gradient(self, out_grad, node):
        """The partial adjoint of each input, as Tensors.

        Written in Tensor operations only, so that the gradient is itself a graph: it can be drawn, kept
        lazy and differentiated again.

        Parameters
        ----------
        out_grad : Value
            The adjoint of `node`: the derivative of the output by `node`.
        node : Value
            A node that this operator made; `node.inputs` are its operands.

        Returns
        -------
        Value or tuple of Value
            One per input. None may stand in the place of an input that needs no gradient.
        """
        raise NotImplementedError(f"{type(self).__name__} has no gradient method")

    def gradient_as_tuple(self, out_grad, node) -> tuple:
        """`gradient`, always as a tuple, one entry per input."""
        partials = self.gradient(out_grad, node)
        if isinstance(partials, tuple):
            return partials
        return tuple(partials) if isinstance(partials, list) else (partials,)


class TensorOp(Op):
    """An operator whose result is one Tensor."""

    out: Any = None  # the class of the result: set where Tensor is defined

    def __call__(self, *args):
        return TensorOp.out.make_from_op(self, args)


class TensorTupleOp(Op):
    """An operator whose result is a tuple of Tensors."""

    out: Any = None  # the class of the result: set where TensorTuple is defined

    def __call__(self, *args):
        return TensorTupleOp.out.make_from_op(self, args)


class Cell:
    """A value to be computed when it is first asked for, shared by all nodes that stand for it.

    It holds the operator and its operands (arrays, or other cells) until it is computed, and only the
    data after: a computed cell lets go of what it was computed from.
    """

    __slots__ = ("data", "op", "operands", "spec")

    def __init__(self, op: Op, operands: Sequence, spec: Any):
        self.op: Op | None = op
        self.operands: Sequence | None = operands
        self.spec = spec
        self.data: Any = None

    @property
    def shape(self):
        return self.spec.shape

    @property
    def dtype(self):
        return self.spec.dtype

    @property
    def device(self):
        return self.spec.device

    def realize(self):
        """Compute the value and all it needs, without recursion."""
        stack = [self]
        while stack:
            cell = stack[-1]
            op, operands = cell.op, cell.operands
            if (
                op is None or operands is None
            ):  # computed by now; the data is set before the operands are let go
                stack.pop()
                continue
            waiting = [x for x in operands if type(x) is Cell and x.operands is not None]
            if waiting:
                stack.extend(waiting)
                continue
            try:
                cell.data = op.compute(*[x.data if type(x) is Cell else x for x in operands])
            except Exception as error:
                error.op = op  # type: ignore[attr-defined]
                raise
            cell.operands = None
            cell.op = None
            stack.pop()
        return self.data


def find_topo_sort(node_list: Iterable) -> list:
    """All nodes that lead to the given ones, each after its inputs.

    The order is depth-first post-order with inputs taken left to right. It is found without recursion, so
    the depth of a graph is not limited.

    Parameters
    ----------
    node_list : iterable of Value

    Returns
    -------
    list of Value
    """
    order: dict = {}
    seen = set()
    stack = list(reversed(list(node_list)))
    while stack:
        node = stack[-1]
        if node not in seen:
            seen.add(node)
            stack.extend(reversed(node.inputs))
        else:  # its inputs are in the order by now
            order[stack.pop()] = None
    return list(order)
