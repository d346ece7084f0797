"""The computational graph: operators, the nodes that they make, and the order in which to visit the nodes.

``y = a * b`` leaves a node whose `op` is a multiplication and whose `inputs` are the nodes a and b. Reverse
mode and drawings need only these two attributes.

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
    Calling it with nodes makes a new node of the graph.
    """

    differentiable = True  # False for step functions, such as a comparison: no gradient flows through them
    deferred = False  # True: computed only when asked for, in eager mode too
    at_once = False  # True: computed when it is called, in lazy mode too; such as random numbers
    frames = 3  # from where a node is made out to the line that calls the operator

    def __init_subclass__(cls):
        # People call an operator of this package by a function or a method, and their own as it is.
        cls.frames = 4 if cls.__module__.startswith("needle.ops.") else 3

    def __call__(self, *args):
        raise NotImplementedError

    def __repr__(self) -> str:
        attributes = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({attributes})"

    def infer(self, *inputs):
        """Shape, dtype and device of the result, worked out from those of the inputs without computing.

        Parameters
        ----------
        *inputs
            One per operand: an array or a `Spec`; both have a `shape`, a `dtype` and a `device`. For a
            tuple operand, a tuple of these.

        Returns
        -------
        Spec, tuple of Spec, or None
            None, the default, means "compute it to find out": such an operator is never lazy.

        Raises
        ------
        ValueError
            If the inputs do not fit. The message names the operation, the shapes and how to fix it.
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
            The adjoint of `node`: the derivative of the output with respect to `node`.
        node : Value
            A node that this operator made; `node.inputs` are its operands.

        Returns
        -------
        Value or tuple of Value
            One per input; None for an input that needs no gradient.
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

    out: Any = None  # the class Tensor; autograd.py sets it, because Tensor is defined after the operators

    def __call__(self, *args):
        return TensorOp.out.make_from_op(self, args)


class TensorTupleOp(Op):
    """An operator whose result is a tuple of Tensors."""

    out: Any = None  # the class TensorTuple

    def __call__(self, *args):
        return TensorTupleOp.out.make_from_op(self, args)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a Tensor; for modules that are imported before that class exists."""
    return isinstance(x, TensorOp.out)


class Node:
    """A node of the computational graph: the result of ``op(*inputs)``, or a leaf.

    Attributes
    ----------
    op : Op or None
        The operator that made it; None for a leaf.
    inputs : sequence of Node
        The operands of `op`, in order; empty for a leaf.
    requires_grad : bool
        Whether gradients flow to it.
    shape : tuple of int or None
        None if it stands for a tuple of arrays.
    scope : Scope or None
        The call of a module, or the named block, in which it was made. What the `gradient` of a node's
        operator makes has the scope of that node.
    """

    op: Op | None = None
    inputs: Sequence[Any] = []  # shared by all leaves and never changed; the course compares it with []
    requires_grad = False
    shape: Any = None
    scope: Any = None


class Pending:
    """A value that is not computed yet. A node and its detached copies share one.

    Until somebody asks for it, it holds the operator and its operands (arrays, or other pending values). Then
    it holds the data and lets go of these, so that they can be freed.
    """

    __slots__ = ("__weakref__", "data", "device", "dtype", "op", "operands", "scope", "shape", "spec")

    def __init__(self, op: Op, operands: Sequence, spec: Any):
        self.op: Op | None = op
        self.operands: Sequence | None = operands
        self.spec = spec  # of a tuple: one Spec for each item
        # As an array has them, so that `Tensor.shape` need not ask which of the two it stands for.
        self.shape: Any = getattr(spec, "shape", None)
        self.dtype: Any = getattr(spec, "dtype", None)
        self.device: Any = getattr(spec, "device", None)
        self.data: Any = None
        self.scope: Any = None  # as a `Node` has it

    def realize(self):
        """Compute the value and all that it needs. A loop: recursion would limit the depth of a graph."""
        stack = [self]
        while stack:
            value = stack[-1]
            op, operands = value.op, value.operands
            # Another thread may have computed it meanwhile: the data is set before the operands are released.
            if op is None or operands is None:
                stack.pop()
                continue
            waiting = [x for x in operands if type(x) is Pending and x.operands is not None]
            if waiting:
                stack.extend(waiting)
                continue
            try:
                value.data = op.compute(*[x.data if type(x) is Pending else x for x in operands])
            except Exception as error:
                # By these failures.py finds the node; a result of constants has none that remembers them.
                error.op, error.operands = op, operands  # type: ignore[attr-defined]
                raise
            value.operands = None
            value.op = None
            stack.pop()
        return self.data


def find_topo_sort(node_list: Iterable) -> list:
    """All nodes that lead to the given ones, each after its inputs.

    Depth-first post-order, inputs from left to right. A loop: recursion would hit Python's
    limit on deep graphs.

    Parameters
    ----------
    node_list : iterable of Value

    Returns
    -------
    list of Value
    """
    order: dict = {}  # an ordered set: a node with several users is popped several times, the first counts
    seen = set()
    stack = list(node_list)[::-1]
    while stack:
        node = stack[-1]
        if node not in seen:
            seen.add(node)
            stack += node.inputs[::-1]
        else:  # its inputs are in the order by now
            order[stack.pop()] = None
    return list(order)
