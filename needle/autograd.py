"""Tensors, the graph they remember, and reverse-mode automatic differentiation.

A Tensor knows the operator that made it and its inputs: together the Tensors of a computation are a
graph. `adjoints` walks that graph from an output back to its inputs and is the one place where reverse
mode is written down; `backward` and `gradients` are a few lines on top of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, reduce
from itertools import count
from operator import add
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from . import ops
from .backend_ndarray.indexing import index_in_words
from .backend_selection import (
    BACKEND,
    Device,
    NDArray,
    array_from_numpy,
    default_device,
    full,
    to_numpy,
)
from .graph import Cell, Op, Spec, TensorOp, TensorTupleOp, find_topo_sort

__all__ = [
    "LAZY_MODE", "TENSOR_COUNTER", "Adjoint", "Op", "Spec", "Tensor", "TensorOp", "TensorTuple",
    "TensorTupleOp", "Value", "adjoints", "compute_gradient_of_variables", "find_topo_sort", "gradients",
    "lazy", "no_grad", "scope", "sum_node_list",
]  # fmt: skip

NUMBERS = (int, float, np.bool_, np.integer, np.floating)  # what counts as a scalar operand

# A note on errors of operators.
OFFER = """\
To see the graph up to here: import viz; viz.draw_error()
In a script: except Exception as error: viz.draw_error(error).save("error.svg")"""

LAZY_MODE = False  # what holds outside `with lazy():`
TENSOR_COUNTER = 0  # how many Values are alive


class Scope:
    """One call of a module, or one block with a name: nodes remember in which of them they were made.

    It does not keep the module alive, so a result that outlives its model does not hold the parameters.

    Attributes
    ----------
    name : str
        That of the block, or of the module's class.
    who : str or weak reference to a Module
        The same name, or the same object, means: the same block, or module.
    outer : Scope or None
        The call or block around it.
    number : int
        Higher than those of earlier calls and blocks.
    """

    __slots__ = ("name", "number", "outer", "who")
    numbers = count()

    def __init__(self, owner: Any, outer: Scope | None):
        self.outer = outer
        self.number = next(self.numbers)
        if isinstance(owner, str):
            self.name = owner
            self.who: str | ref = owner
        else:
            self.name = type(owner).__name__
            self.who = ref(owner)

    @property
    def owner(self) -> Any:
        """The name of the block; or the module, None once it is gone."""
        return self.who if isinstance(self.who, str) else self.who()

    def __reduce__(self):
        return Scope, (self.name, self.outer)  # a copy of a result is no copy of its model


class _Mode(NamedTuple):
    lazy: bool | None  # None: as LAZY_MODE says
    grad: bool
    scope: Scope | None = None


_mode: ContextVar[_Mode] = ContextVar("needle_mode", default=_Mode(lazy=None, grad=True))


@contextmanager
def lazy(enabled: bool = True):
    """Within this block, in this thread, only the graph is built: a value is computed when it is asked for.

    ``lazy(False)`` is the other way round: eager within the block, whatever `LAZY_MODE` says.
    """
    token = _mode.set(_mode.get()._replace(lazy=enabled))
    try:
        yield
    finally:
        _mode.reset(token)


@contextmanager
def no_grad(enabled: bool = True):
    """Within this block, in this thread, results are constants: no graph is kept.

    ``no_grad(False)`` is the other way round: the graph is kept, also inside a block of `no_grad`.
    """
    token = _mode.set(_mode.get()._replace(grad=not enabled))
    try:
        yield
    finally:
        _mode.reset(token)


class scope:  # in small letters: it is used as `lazy` and `no_grad` are
    """Within this block, in this thread, nodes remember that they belong together; drawings group them.

    Each call of a module is such a block of its own.

    Parameters
    ----------
    owner : str or Module
        What to call the block, or the module that is called.

    Examples
    --------
    >>> for t, x in enumerate(inputs, 1):
    ...     with ndl.scope(f"t = {t}"):
    ...         h = ndl.tanh(x @ W + h @ U)
    """

    __slots__ = ("owner", "token")

    def __init__(self, owner: Any):
        if not isinstance(owner, str) and not hasattr(owner, "__weakref__"):
            raise TypeError(f"scope: needs a name or a module, got {owner!r}; write scope(str(…))")
        self.owner = owner
        self.token: tuple | None = None

    def __enter__(self) -> None:
        lazy, grad, outer = _mode.get()
        # Beside the token of the block around it: a block can be within itself, as in recursion.
        self.token = _mode.set(_Mode(lazy, grad, Scope(self.owner, outer))), self.token

    def __exit__(self, *error: object) -> None:
        token, self.token = self.token  # type: ignore[misc]
        _mode.reset(token)


class Value:
    """A node of the computational graph.

    Attributes
    ----------
    op : Op or None
        The operator that made it; None for a leaf.
    inputs : sequence of Value
        The operands of `op`; empty for a leaf.
    requires_grad : bool
        Whether gradients flow to it.
    grad : Value or None
        Set by `backward`: the derivative of the output with respect to this node; None before.
    scope : Scope or None
        The call of a module, or the named block, in which it was made; of a node of a gradient graph, that
        of the node whose operator's `gradient` made it.
    """

    op: Op | None = None
    inputs: Sequence[Value] = []  # one list for all leaves: nothing is ever put into it
    num_outputs = 1
    requires_grad = False
    grad: Any = None
    scope: Scope | None = None
    # Whether `detach` cut it from what needs a gradient. Drawings say so; nothing of that is kept.
    detached = False

    # What this node stands for: an array (of a TensorTuple: a tuple of arrays), or the Cell that computes it.
    _data: Any = None
    # What the inputs stood for when this node was built. A later write to an input does not change it.
    _operands: Sequence = ()
    # What `op` had computed, where a write to this node has taken its place.
    _overwritten: Any = None

    def __new__(cls, *args, **kwargs):
        global TENSOR_COUNTER
        TENSOR_COUNTER += 1
        return object.__new__(cls)

    def __del__(self):
        global TENSOR_COUNTER
        TENSOR_COUNTER -= 1

    @classmethod
    def make_const(cls, data, *, requires_grad: bool = False):
        """A leaf that holds `data`: an array (for a TensorTuple: a tuple of arrays), not copied, or what
        a Value holds."""
        value = cls.__new__(cls)
        value._data = data._data if isinstance(data, Value) else data
        value.requires_grad = requires_grad
        if (scope := _mode.get().scope) is not None:
            value.scope = scope
        return value

    @classmethod
    def make_from_op(cls, op: Op, inputs: Sequence[Value]):
        """The node ``op(*inputs)``, computed at once or, in lazy mode, when it is asked for.

        A node that needs no gradient remembers neither `op` nor `inputs`, so that what led to it can be
        freed.
        """
        lazy, grad, scope = _mode.get()
        operands = []
        requires_grad = False
        try:
            for x in inputs:
                operands.append(x._data)
                if grad and x.requires_grad:
                    requires_grad = True
        except AttributeError:
            raise _not_a_value(op, inputs) from None

        if (LAZY_MODE if lazy is None else lazy) or op.deferred:
            data = _deferred(op, operands, inputs)
        else:
            data = _computed(op, operands, inputs)

        global TENSOR_COUNTER  # as in __new__, without a call of it
        TENSOR_COUNTER += 1
        value = object.__new__(cls)
        value._data = data
        if scope is not None:
            value.scope = scope
        if requires_grad or op.deferred:
            value.op = op
            value.inputs = inputs
            value._operands = operands
            value.requires_grad = requires_grad and op.differentiable
        return value

    def realize_cached_data(self):
        """The array of this node, computed now if it was not before."""
        data = self._data
        if type(data) is Cell:
            try:
                data = self._data = data.realize()
            except Exception as error:
                raise _with_graph_of([self], error) from None
        return data

    @property
    def cached_data(self):
        """The array of this node; None if it is lazy and not computed yet."""
        data = self._data
        return data.data if type(data) is Cell else data

    @cached_data.setter
    def cached_data(self, data):
        if self.op is not None and self._overwritten is None:
            self._overwritten = self._data
        self._data = data

    def is_leaf(self) -> bool:
        """Whether no operator made this node."""
        return self.op is None

    def _as_built(self):
        """This node; where it or an input was written to since it was built: a stand-in as it was then."""
        for x, operand in zip(self.inputs, self._operands):  # noqa: B905 - strict=True takes twice as long
            if x._data is not operand and _written(x, operand):
                break
        else:
            if self._overwritten is None:
                return self
        node = type(self).make_const(self._data if self._overwritten is None else self._overwritten)
        node.op, node._operands, node.requires_grad = self.op, self._operands, self.requires_grad
        node.inputs = [self._input_as_built(i) for i in range(len(self.inputs))]
        return node

    def _input_as_built(self, index: int) -> Value:
        """An input of this node; where it was written to since: a stand-in as it was then."""
        x, operand = self.inputs[index], self._operands[index]
        return _before_write(x, operand) if _written(x, operand) else x


def _written(value: Value, operand) -> bool:
    """Whether `value` stands for something else now than for `operand`."""
    data = value._data
    return data is not operand and not (type(operand) is Cell and operand.data is data)


def _before_write(value: Value, operand) -> Value:
    """What `value` was when it stood for `operand`, with derivative 1 with respect to `value`."""
    earlier = type(value).make_const(operand, requires_grad=value.requires_grad)
    earlier.op, earlier.inputs, earlier._operands = ops.Identity(), [value], [value._data]
    return earlier


def _computed(op: Op, operands: Sequence, inputs: Sequence[Value]):
    """``op(*operands)``, computed at once, with those operands that still wait to be computed."""
    arrays = operands
    for x in operands:
        if type(x) is Cell:
            arrays = _realized(operands, inputs)
            break
    try:
        return op.compute(*arrays)
    except Exception as error:
        raise _explained(error, op, inputs, arrays) from None


def _realized(operands: Sequence, inputs: Sequence[Value]) -> list:
    try:
        return [x.realize() if type(x) is Cell else x for x in operands]
    except Exception as error:
        raise _with_graph_of(inputs, error) from None


def _deferred(op: Op, operands: Sequence, inputs: Sequence[Value]):
    """A Cell for ``op(*operands)``; the result itself where the operator cannot say its shape beforehand."""
    try:
        spec = op.infer(*[x.spec if type(x) is Cell else x for x in operands])
    except Exception as error:
        raise _of_operator(error, op, inputs) from None
    return _computed(op, operands, inputs) if spec is None else Cell(op, operands, spec)


def _explained(error: Exception, op: Op, inputs: Sequence[Value], arrays: Sequence) -> Exception:
    """What to raise where `op` failed: what `infer` says of the operands, or `error`."""
    try:
        op.infer(*arrays)
    except (TypeError, ValueError) as clearer:
        error = clearer.with_traceback(None)  # which would lead back here, and so keep all that is named here
    except Exception:  # an `infer` that is itself at fault has nothing to say
        pass
    return _of_operator(error, op, inputs)


def _of_operator(error: Exception, op: Op, inputs: Sequence[Value]) -> Exception:
    """The error of an operator, from which the graph up to there can be drawn."""
    if isinstance(error, (AttributeError, TypeError)) and any(isinstance(x, TensorTuple) for x in inputs):
        error = TypeError(f"{op}: an operand is a TensorTuple; take one of its Tensors: value[i]")
    return with_graph(error, op, inputs)


def with_graph(error: Exception, op: Any, inputs: Sequence[Value]) -> Exception:
    """An error that remembers the operator, the module, or in words what else failed, and its inputs.

    It says how to see the graph up to there, in a note that Python shows below the message.
    """
    error.op, error.inputs, error.scope = op, inputs, _mode.get().scope  # type: ignore[attr-defined]
    if OFFER not in getattr(error, "__notes__", ()):
        error.add_note(OFFER)
    return error


def _add_graph_of_index(error: Exception, value: Value, index: Any) -> None:
    """Let the error of ``value[index]`` remember that, unless an operator failed to compute the index."""
    if not hasattr(error, "op"):
        items = index if isinstance(index, tuple) else (index,)
        with_graph(error, index_in_words(index), [value, *(x for x in items if isinstance(x, Tensor))])


def _with_graph_of(nodes: Sequence[Value], error: Exception) -> Exception:
    """The error of an operator that failed when these nodes, or one that leads to them, were computed."""
    op = getattr(error, "op", None)
    failed = next((x for x in find_topo_sort(nodes) if x.op is op is not None), None)
    if failed is None:
        return error
    with_graph(error, op, failed.inputs).scope = failed.scope  # type: ignore[attr-defined]
    return error


def _not_a_value(op: Op, inputs: Sequence) -> TypeError:
    index, odd = next((i, x) for i, x in enumerate(inputs) if not isinstance(x, Value))
    return TypeError(
        f"{type(op).__name__}: operand {index} is a {type(odd).__name__}, not a Tensor; "
        "wrap it: needle.Tensor(...)"
    )


class TensorTuple(Value):
    """A tuple of Tensors as one node, for operators with several results."""

    @cached_property
    def specs(self) -> Sequence[Spec]:
        """Shape, dtype and device of each Tensor; nothing is computed."""
        items = self._data.spec if type(self._data) is Cell else self._data
        return [Spec(x.shape, x.dtype, x.device) for x in items]

    def __len__(self) -> int:
        return len(self.specs)

    def __getitem__(self, index: int):
        try:
            return ops.tuple_get_item(self, index)
        except Exception as error:
            _add_graph_of_index(error, self, index)
            raise

    def __iter__(self):
        return iter(self.tuple())

    def tuple(self) -> Sequence[Tensor]:
        """The Tensors, one by one."""
        return tuple([self[i] for i in range(len(self))])

    def __add__(self, other):
        if not isinstance(other, TensorTuple):
            return NotImplemented
        if len(self) != len(other):
            raise ValueError(f"TensorTuple +: lengths {len(self)} and {len(other)} differ")
        return ops.make_tuple(*[a + b for a, b in zip(self, other, strict=True)])

    def detach(self) -> TensorTuple:
        """The same values as constants, without history."""
        value = TensorTuple.make_const(self)
        value.detached = self.requires_grad or self.detached
        return value

    def numpy(self) -> Sequence[np.ndarray]:
        """The values, as a tuple of NumPy arrays (copies)."""
        return tuple([to_numpy(array) for array in self.realize_cached_data()])

    def __repr__(self) -> str:
        return f"needle.TensorTuple{self.tuple()!r}"


class Tensor(Value):
    """An array that remembers how it was computed.

    Parameters
    ----------
    array : scalar, nested list, numpy.ndarray, NDArray or Tensor
        The values; they are copied.
    device : Device, optional
        Where the values live: that of `array` if it has one, else `default_device()`.
    dtype : str or numpy.dtype, optional
        By default that of `array` if it is a Tensor or an NDArray, else float32
        (under ``NEEDLE_BACKEND=np``: whatever NumPy makes of `array`).
    requires_grad : bool
        Whether gradients flow to it. Default: True.
    """

    # NumPy's operators step back, so that ``ndarray + tensor`` is a Tensor and not an array of Tensors.
    __array_ufunc__ = None

    def __init__(self, array, *, device=None, dtype=None, requires_grad: bool = True):
        self.requires_grad = requires_grad
        if (scope := _mode.get().scope) is not None:
            self.scope = scope
        check_device(device)
        if isinstance(array, Tensor):
            with no_grad():
                self._data = array.to(device or array.device).astype(dtype or array.dtype)._data
            return
        if BACKEND == "nd" and isinstance(array, NDArray):
            device, dtype = device or array.device, dtype or array.dtype
            array = to_numpy(array)
        self._data = array_from_numpy(_as_numpy(array), dtype=dtype, device=device or default_device())

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def dtype(self) -> np.dtype:
        return self._data.dtype

    @property
    def device(self):
        return self._data.device if BACKEND == "nd" else default_device()

    @property
    def ndim(self) -> int:
        return len(self._data.shape)

    @property
    def size(self) -> int:
        return math.prod(self._data.shape)

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array (a copy)."""
        return to_numpy(self.realize_cached_data())

    def item(self) -> float:
        """The one number of a Tensor with one element, as Python's."""
        if self.size != 1:
            raise ValueError(f"item: needs one element, shape {self.shape} has {self.size}; use .numpy()")
        return self.numpy().item()

    @property
    def data(self) -> Tensor:
        """The value as a constant, without history; assigning to it replaces the value and leaves the
        graph as it is.

        What was computed before the assignment, and gradients of it, keep the value from before. The new
        value has the same shape; leading axes of length 1 may be missing.
        """
        return self.detach()

    @data.setter
    def data(self, value):
        value = value if isinstance(value, Tensor) else Tensor(value, device=self.device, dtype=self.dtype)
        if value.device != self.device:
            raise ValueError(
                f"data = ...: this Tensor is on {self.device}, the new value on {value.device}; "
                f"move it: value.to({self.device})"
            )
        if value.shape != self.shape == (1,) * (self.ndim - value.ndim) + value.shape:
            value = value.detach().reshape(self.shape)
        if value.dtype != self.dtype or value.shape != self.shape:
            raise ValueError(
                f"data = ...: this Tensor is {self.dtype} of shape {self.shape}, the new value "
                f"{value.dtype} of shape {value.shape}; convert the value, or make a new Tensor"
            )
        self.cached_data = value._data

    def detach(self) -> Tensor:
        """A constant with the same value and no history; nothing is copied, nothing is computed."""
        value = Tensor.make_const(self)
        value.detached = self.requires_grad or self.detached
        return value

    def to(self, device) -> Tensor:
        """This Tensor on another device (itself if it is there already); differentiable."""
        check_device(device)
        return self if device == self.device else ops.to_device(self, device)

    def astype(self, dtype) -> Tensor:
        """This Tensor in another dtype (itself if it has it already); differentiable."""
        return self if dtype == self.dtype else ops.cast(self, dtype)

    def backward(self, out_grad: Tensor | None = None, create_graph: bool = True) -> None:
        """Set `grad` on every node that leads to this one and requires it: the derivative of this Tensor
        by that node.

        Gradients of an earlier call are replaced, not added to.

        Parameters
        ----------
        out_grad : Tensor of this Tensor's shape, optional
            The vector of the vector-Jacobian product. Default: ones.
        create_graph : bool
            True: gradients stay connected to the graph and can be differentiated or drawn.
            False: gradients are constants, and all memory is free as soon as this Tensor is.
        """
        if create_graph:
            compute_gradient_of_variables(self, out_grad)
        else:
            with no_grad():
                compute_gradient_of_variables(self, out_grad)

    def __repr__(self) -> str:
        return f"needle.Tensor({np.array2string(self.numpy(), prefix='needle.Tensor(')})"

    def __add__(self, other):
        if isinstance(other, Tensor):
            return ops.add(self, other)
        if isinstance(other, NUMBERS):
            return ops.add_scalar(self, other)
        return NotImplemented if (other := _operand(other, self)) is None else ops.add(self, other)

    def __radd__(self, other):
        if isinstance(other, NUMBERS):
            return ops.add_scalar(self, other)
        return NotImplemented if (other := _operand(other, self)) is None else ops.add(other, self)

    def __mul__(self, other):
        if isinstance(other, Tensor):
            return ops.multiply(self, other)
        if isinstance(other, NUMBERS):
            return ops.mul_scalar(self, other)
        return NotImplemented if (other := _operand(other, self)) is None else ops.multiply(self, other)

    def __rmul__(self, other):
        if isinstance(other, NUMBERS):
            return ops.mul_scalar(self, other)
        return NotImplemented if (other := _operand(other, self)) is None else ops.multiply(other, self)

    def __sub__(self, other):
        if isinstance(other, NUMBERS) and self.dtype.kind != "u":  # an unsigned integer cannot be -other
            # As a Python number: the negative of one of NumPy's unsigned ones is another number.
            return ops.add_scalar(self, -(other.item() if isinstance(other, np.generic) else other))
        return (
            NotImplemented if (other := _operand(other, self)) is None else ops.add(self, ops.negate(other))
        )

    def __rsub__(self, other):
        return other + ops.negate(self)

    def __truediv__(self, other):
        if isinstance(other, NUMBERS):
            return ops.divide_scalar(self, other)
        return NotImplemented if (other := _operand(other, self)) is None else ops.divide(self, other)

    def __rtruediv__(self, other):
        return NotImplemented if (other := _operand(other, self)) is None else ops.divide(other, self)

    def __pow__(self, other):
        if isinstance(other, NUMBERS):
            return ops.power_scalar(self, other)
        return NotImplemented if (other := _operand(other, self)) is None else ops.power(self, other)

    def __rpow__(self, other):
        return NotImplemented if (other := _operand(other, self)) is None else ops.power(other, self)

    def __matmul__(self, other):
        return NotImplemented if (other := _operand(other, self)) is None else ops.matmul(self, other)

    def __rmatmul__(self, other):
        return NotImplemented if (other := _operand(other, self)) is None else ops.matmul(other, self)

    def __neg__(self):
        return ops.negate(self)

    def __getitem__(self, index) -> Tensor:
        """A part, with NumPy's meaning of `index`; see `needle.ops.getitem`."""
        try:
            return ops.getitem(self, index)
        except Exception as error:
            _add_graph_of_index(error, self, index)
            raise

    def __len__(self) -> int:
        """The length of the first axis."""
        if not self.shape:
            raise TypeError("len: a Tensor of shape () has no axis")
        return self.shape[0]

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False:
            raise ValueError("Tensor: NumPy cannot look at its storage; only a copy can be had")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __iter__(self):
        """The parts along the first axis, one by one."""
        if not self.shape:
            raise TypeError("iteration: a Tensor of shape () has no axis; .numpy().item() is its number")
        return iter(ops.split(self, 0))

    def __contains__(self, number) -> bool:
        """Whether an element is equal to `number`."""
        return bool((self.numpy() == (number.numpy() if isinstance(number, Tensor) else number)).any())

    def __bool__(self) -> bool:
        """Of a Tensor with one element: whether it is not 0."""
        if self.size != 1:
            raise ValueError(
                f"bool: the truth of a Tensor of shape {self.shape} is not defined; to ask whether there "
                "is one: `is not None`; about its elements: .numpy().any() or .numpy().all()"
            )
        return bool(self.numpy().item())

    # Comparisons are Tensors of booleans, but for == and !=: these ask whether it is the same Tensor, so that
    # Tensors can be looked for in lists and dictionaries. `needle.compare` compares to equal as well.

    def __lt__(self, other) -> Tensor:
        return _compared(self, "lt", other)

    def __le__(self, other) -> Tensor:
        return _compared(self, "le", other)

    def __gt__(self, other) -> Tensor:
        return _compared(self, "gt", other)

    def __ge__(self, other) -> Tensor:
        return _compared(self, "ge", other)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __format__(self, spec: str) -> str:
        """``f"{loss:.3f}"``: the format of the number of a Tensor with one element."""
        return format(self.item(), spec) if spec else str(self)

    def matmul(self, other) -> Tensor:
        """See `needle.ops.matmul`."""
        return self @ other

    def sum(self, axes=None) -> Tensor:
        """The sum over `axes`: None (all), an int or a tuple."""
        return ops.summation(self, axes)

    def mean(self, axes=None) -> Tensor:
        """The mean over `axes`: None (all), an int or a tuple."""
        return ops.mean(self, axes)

    def max(self, axes=None) -> Tensor:
        """The largest element along `axes`: None (all), an int or a tuple."""
        return ops.max(self, axes)

    def min(self, axes=None) -> Tensor:
        """The smallest element along `axes`: None (all), an int or a tuple."""
        return ops.min(self, axes)

    def argmax(self, axes=None) -> Tensor:
        """The number of the largest element along an axis, or (None) among all."""
        return ops.argmax(self, axes)

    def broadcast_to(self, shape) -> Tensor:
        """The same elements repeated along axes of length 1, and along new axes in front."""
        return ops.broadcast_to(self, shape)

    def reshape(self, shape, *more: int) -> Tensor:
        """The same elements in another shape, given as a tuple or length by length; one may be -1."""
        return ops.reshape(self, (shape, *more) if more else shape)

    def transpose(self, axes=None, *more: int) -> Tensor:
        """Two axes swapped, given as a tuple or one by one; by default the last two."""
        return ops.transpose(self, (axes, *more) if more else axes)

    @property
    def T(self) -> Tensor:
        """The last two axes swapped."""
        return ops.transpose(self)

    def permute(self, axes, *more: int) -> Tensor:
        """The axes in another order, given as a tuple or one by one."""
        return ops.permute(self, (axes, *more) if more else axes)


def _compared(a: Tensor, relation: str, other):
    other = other if isinstance(other, NUMBERS) else _operand(other, a)
    return NotImplemented if other is None else ops.compare(a, relation, other).astype("bool")


def check_device(device) -> None:
    """Raise TypeError if `device` is neither a device nor None."""
    if device is not None and not isinstance(device, Device):
        raise TypeError(f"device: needs a device such as needle.cpu(), got {device!r}")


def _as_numpy(array) -> np.ndarray:
    """What a user gave as numbers, as a NumPy array of numbers."""
    if _holds_tensor(array):  # their values would make a constant, and the gradient would end there
        raise TypeError("Tensor: a list of Tensors is joined by needle.stack, which keeps their gradients")
    try:
        result = np.asarray(array)
    except ValueError as error:
        raise ValueError(f"Tensor: rows of different lengths are not an array ({error})") from None
    if result.dtype.kind not in "biuf":
        raise TypeError(f"Tensor: needs numbers, got {type(array).__name__} {array!r:.60}")
    return result


def _holds_tensor(array) -> bool:
    """Whether there is a Tensor in nested lists."""
    if not isinstance(array, (list, tuple)):
        return False
    kinds = set(map(type, array))  # a long list of numbers is gone through without a loop in Python
    return any(issubclass(kind, Tensor) for kind in kinds) or (
        any(issubclass(kind, (list, tuple)) for kind in kinds) and any(map(_holds_tensor, array))
    )


def _operand(other, tensor: Tensor) -> Tensor | None:
    """`other` as an operand beside `tensor`: numbers and arrays become constants there; None if it is
    neither."""
    if isinstance(other, Tensor):
        return other
    if isinstance(other, (*NUMBERS, list, np.ndarray, NDArray)):
        kinds = "fiu" if isinstance(other, (int, np.integer)) else "f"
        dtype = tensor.dtype if tensor.dtype.kind in kinds else None
        return Tensor(other, device=tensor.device, dtype=dtype, requires_grad=False)
    return None


class Adjoint(NamedTuple):
    """What reverse mode finds at one node.

    Attributes
    ----------
    node : Value
    partials : list of (Value or None, Value)
        One partial adjoint per use of the node, with the consumer it came through (None: it is the
        output's seed).
    total : Value
        Their sum: the derivative of the output with respect to `node`.
    """

    node: Value
    partials: list[tuple[Value | None, Value]]
    total: Value


def adjoints(output: Tensor, out_grad: Tensor | None = None) -> Iterator[Adjoint]:
    """Reverse-mode automatic differentiation, node by node.

    Every node that leads to `output` and requires a gradient is visited in reverse topological order:
    when it is its turn, all its consumers have been, so that all its partial adjoints are there to be
    summed. Then its operator's `gradient` turns the sum into one partial adjoint for each of its inputs.

    Parameters
    ----------
    output : Tensor
    out_grad : Tensor of the shape of `output`, optional
        The adjoint to begin with. Default: ones, for which the totals are the derivatives of
        ``output.sum()``.

    Yields
    ------
    Adjoint

    Raises
    ------
    RuntimeError
        If `output` does not require a gradient.
    ValueError
        If `out_grad` has another shape than `output`.
    """
    if not output.requires_grad:
        raise RuntimeError(
            "backward: this Tensor does not require a gradient: it is a constant, detached or made under "
            "no_grad(), or none of the Tensors it was computed from has requires_grad=True"
        )
    if out_grad is None:
        out_grad = Tensor.make_const(full(output.shape, 1, dtype=output.dtype, device=output.device))
    else:
        given, out_grad = out_grad, _operand(out_grad, output)
        if out_grad is None:
            raise TypeError(f"backward: out_grad is a {type(given).__name__}, not a Tensor")
        if out_grad.device != output.device:
            message = (
                f"backward: out_grad is on {out_grad.device}, the output on {output.device}; "
                f"move it: out_grad.to({output.device})"
            )
            raise with_graph(ValueError(message), "backward", [output, out_grad])
        if out_grad.shape != output.shape:
            message = f"backward: out_grad has shape {out_grad.shape}, the output has shape {output.shape}"
            raise with_graph(ValueError(message), "backward", [output, out_grad])
        if output.dtype.kind == "f":
            out_grad = out_grad.astype(output.dtype)
        if not _mode.get().grad:
            out_grad = out_grad.detach()

    partials_of: dict[Value, list[tuple[Value | None, Value]]] = {output: [(None, out_grad)]}
    for node in reversed(find_topo_sort([output])):
        partials = partials_of.pop(node, None)
        if partials is None:
            continue  # it requires no gradient, or the output does not depend on it smoothly
        total = sum_node_list([partial for _, partial in partials])
        yield Adjoint(node, partials, total)
        if node.op is None:
            continue
        for x, partial in zip(node.inputs, _partials(node, total)):  # noqa: B905 - _partials has counted
            if x.requires_grad and partial is not None:
                partials_of.setdefault(x, []).append((node, partial))


def _partials(node: Value, total: Value) -> Sequence[Value | None]:
    """What `node` passes on to each of its inputs, as its operator's `gradient` says."""
    op: Any = node.op
    then = node._as_built()
    try:
        partials = _gradient(op, total, then, node.scope)
    except Exception as error:
        if not hasattr(error, "op"):  # no operator in it failed: the gradient itself
            _of_gradient(error, node, [total, node])
        raise
    if then is not node:  # in the new graph it is what `node` was
        then.op, then.inputs, then._operands = ops.Identity(), [node], [node._data]

    if len(partials) != len(node.inputs):
        message = f"{op}.gradient: gave {len(partials)} results for {len(node.inputs)} operands"
        raise _of_gradient(ValueError(message), node, [total, node])
    for i, x in enumerate(node.inputs):
        partial = partials[i]
        if partial is None:
            continue
        if not isinstance(partial, Value):
            message = f"{op}.gradient: result {i} is a {type(partial).__name__}, not a Tensor"
            raise _of_gradient(TypeError(message), node, [total, node])
        if isinstance(x, Tensor) and partial._data.shape != x._data.shape:
            message = (
                f"{op}.gradient: result {i} has shape {partial._data.shape}, but operand {i} has shape "
                f"{x._data.shape}"
            )
            raise _of_gradient(ValueError(message), node, [partial, x])
    return partials


def _of_gradient(error: Exception, node: Value, inputs: Sequence[Value]) -> Exception:
    """The error of the `gradient` of a node's operator, from which the graph up to there can be drawn."""
    with_graph(error, f"{node.op}.gradient", inputs).scope = node.scope  # type: ignore[attr-defined]
    return error


def _gradient(op: Any, total: Value, node: Value, scope: Scope | None) -> Sequence[Value | None]:
    """The operator's `gradient`, whose nodes remember the scope of the node that they differentiate."""
    mode = _mode.get()
    if mode.scope is scope or not mode.grad:
        return op.gradient_as_tuple(total, node)
    token = _mode.set(_Mode(mode.lazy, mode.grad, scope))
    try:
        return op.gradient_as_tuple(total, node)
    finally:
        _mode.reset(token)


def sum_node_list(node_list: Sequence[Value]) -> Value:
    """The sum of Values, as a graph; of a single one, that one itself."""
    if len(node_list) == 1:
        return node_list[0]
    if isinstance(node_list[0], TensorTuple):
        return ops.sum_tuples(node_list)
    return reduce(add, node_list)


def compute_gradient_of_variables(output_tensor: Tensor, out_grad: Tensor | None = None) -> None:
    """Set `grad` on every node that leads to `output_tensor` and requires it."""
    for node, _, total in adjoints(output_tensor, out_grad):
        node.grad = total


def gradients(output: Tensor, inputs: Sequence[Tensor], out_grad: Tensor | None = None) -> list[Tensor]:
    """The derivatives of ``output.sum()`` with respect to `inputs`; no `grad` attribute is read or written.

    Parameters
    ----------
    output : Tensor
    inputs : sequence of Tensor
        Leaves or nodes on the way.
    out_grad : Tensor of the shape of `output`, optional
        The vector of the vector-Jacobian product. Default: ones.

    Returns
    -------
    list of Tensor
        One per input, of its shape, connected to the graph (constants under `no_grad`). Zeros where
        `output` does not depend on the input.

    Raises
    ------
    RuntimeError
        If `output` or an input does not require a gradient.
    """
    if isinstance(inputs, Value):
        raise TypeError("gradients: inputs is a single Tensor; give a list: gradients(output, [x])")
    for i, x in enumerate(inputs):
        if not x.requires_grad:
            raise RuntimeError(
                f"gradients: input {i} does not require a gradient; make it with requires_grad=True, "
                "before what is computed from it"
            )
    wanted = set(inputs)
    found: dict[Value, Any] = {node: total for node, _, total in adjoints(output, out_grad) if node in wanted}
    return [
        found[x] if x in found else Tensor.make_const(full(x.shape, 0, dtype=x.dtype, device=x.device))
        for x in inputs
    ]


TensorOp.out = Tensor
TensorTupleOp.out = TensorTuple
