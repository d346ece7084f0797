"""Tensors: arrays that remember how they were computed.

`Value` is a node of the graph that stands for data, `Tensor` the one that people use: it has operators and
methods, and `backward`. How the graph is walked is in `reverse.py`, the operators are in `ops/`.
"""

from __future__ import annotations

import atexit
import math
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from operator import add, attrgetter
from typing import Any

import numpy as np

from . import modes, ops
from .backend_ndarray.device import common_device
from .backend_ndarray.indexing import index_in_words
from .backend_ndarray.shapes import DTYPES, python_number, result_dtype
from .backend_selection import (
    BACKEND,
    Device,
    NDArray,
    all_devices,
    array_api,
    array_from_numpy,
    cpu,
    cpu_numpy,
    cuda,
    default_device,
    to_numpy,
)
from .failures import (
    FROM_ELSEWHERE,
    compute_failed,
    index_failed,
    missing_attribute,
    not_a_value,
    operator_failed,
    pending_failed,
    with_graph,
)
from .graph import Node, Op, Pending, Spec, TensorOp, TensorTupleOp, find_topo_sort
from .modes import GRAD, SCOPE, lazy, mode, no_grad, scope, tracing
from .ops.families import gradient_dtype
from .reverse import Adjoint, sum_node_list, walk_back

__all__ = [
    "LAZY_MODE", "TENSOR_COUNTER", "Adjoint", "Op", "Spec", "Tensor", "TensorOp", "TensorTuple",
    "TensorTupleOp", "Value", "adjoints", "all_devices", "array_api", "compute_gradient_of_variables", "cpu",
    "cpu_numpy", "cuda", "default_device", "find_topo_sort", "gradients", "lazy", "no_grad", "scope",
    "sum_node_list",
]  # fmt: skip

NUMBERS = (float, int, np.bool_, np.integer, np.floating)  # what counts as a scalar operand

LAZY_MODE = False  # the default, outside of `with lazy():`
TENSOR_COUNTER = 0  # how many Values are alive


#: The attributes of a Value that say how it was computed.
HISTORY = {"op", "inputs", "line", "detached", "step_function", "_operands", "_overwritten"}


class Value(Node):
    """A node of the graph that stands for data. It has all that a `Node` has, and two more.

    A copy, by `copy.copy`, `copy.deepcopy` or `pickle`, takes the numbers and not the history: it is a leaf,
    and its gradient is a constant. `requires_grad` and a subclass's own attributes stay. A lazy Value is
    computed first.

    Attributes
    ----------
    grad : Value or None
        Set by `backward`: the derivative of the output with respect to this node; None before.
    cached_data : array, tuple of arrays or None
        The data; None while it is still to be computed.
    """

    num_outputs = 1  # a name of the course
    # Whether `detach` cut it off from what needs a gradient; drawings show it. It does not hold what was cut.
    detached = False
    # The line that made it: see `modes.line_of_user`.
    line: Any = None
    # The step function, such as a comparison, that stopped all gradients on the way here.
    step_function: Op | None = None

    _grad: Any = None
    # What this node stands for: an array (for a TensorTuple: a tuple of arrays), or a Pending one.
    _data: Any = None
    # What the inputs stood for when this node was made. A later write to an input does not change it.
    _operands: Sequence = ()
    # What `op` had computed, if a write to this node has replaced it.
    _overwritten: Any = None

    def __new__(cls, *args, **kwargs):
        global TENSOR_COUNTER
        TENSOR_COUNTER += 1
        return object.__new__(cls)

    def __del__(self):
        global TENSOR_COUNTER
        TENSOR_COUNTER -= 1

    def __getstate__(self):
        """What a copy takes."""
        state = {name: x for name, x in vars(self).items() if name not in HISTORY}
        state["_data"] = self.realize_cached_data()
        if isinstance(self._grad, (Tensor, TensorTuple)):
            state["_grad"] = self._grad.detach()
        return state

    @classmethod
    def make_const(cls, data, *, requires_grad: bool = False):
        """A leaf that holds `data`: an array (for a TensorTuple: a tuple of arrays), not copied, or the data
        of another Value."""
        global TENSOR_COUNTER  # as in __new__, without a call of it
        TENSOR_COUNTER += 1
        value = object.__new__(cls)
        value._data = data._data if isinstance(data, Value) else data
        value.requires_grad = requires_grad
        lazy, _, scope, _ = mode.get()
        if lazy is not None and type(lazy) is not bool:  # a function is traced
            value._data = lazy.data_of(data)
        if scope is not None:
            value.scope = scope
        return value

    @classmethod
    def make_from_op(cls, op: Op, inputs: Sequence[Value]):
        """The node ``op(*inputs)``, computed at once or, in lazy mode, when it is asked for.

        A node that needs no gradient remembers neither `op` nor `inputs`, so that these can be freed. There
        are three exceptions: a step function of something that needs a gradient, which drawings show, a
        deferred operator, which must still be computed, and whatever is made within `remember_constants`.
        """
        lazy, grad, scope, constants = mode.get()
        operands = []  # what the inputs stand for now: arrays, or Pending ones
        requires_grad = pending = False
        try:
            for x in inputs:
                operand = x._data
                operands.append(operand)
                if grad and x.requires_grad:
                    requires_grad = True
                if type(operand) is Pending:
                    pending = True
        except AttributeError:
            raise not_a_value(op, inputs) from None

        data = None
        if (LAZY_MODE if lazy is None else lazy) or op.deferred:
            traced = lazy is not None and type(lazy) is not bool
            if traced:
                operands, pending = [lazy.data_of(x) for x in inputs], True
            if traced or not op.at_once:
                data = _deferred(op, operands, inputs)
            if data is not None:
                data.scope = scope
                if traced:
                    lazy.made(data)
        if data is None:
            arrays = _realized(operands, inputs) if pending else operands
            try:
                data = op.compute(*arrays)
            except Exception as error:
                raise compute_failed(error, op, inputs, arrays) from None

        global TENSOR_COUNTER  # as in __new__, without a call of it
        TENSOR_COUNTER += 1
        value = object.__new__(cls)
        value._data = data
        if scope is not None:
            value.scope = scope
        if modes.remembers_lines:
            value.line = modes.line_of_user(op.frames)
        if requires_grad or op.deferred or constants:
            value.op = op
            value.inputs = inputs
            value._operands = operands
            value.requires_grad = requires_grad and op.differentiable
            if not op.differentiable:
                value.step_function = op
        elif grad:
            for x in inputs:
                if x.step_function is not None:
                    value.step_function = x.step_function
        return value

    def realize_cached_data(self):
        """The data of this node, computed now if it was not before."""
        if trace := tracing():
            trace.data_of(self)
        data = self._data
        if type(data) is Pending:
            try:
                data = self._data = data.realize()
            except Exception as error:
                raise pending_failed(error, [self]) from None
        return data

    @property
    def cached_data(self):
        if trace := tracing():
            trace.data_of(self).realize()  # which says that they are not known
        data = self._data
        return data.data if type(data) is Pending else data

    @cached_data.setter
    def cached_data(self, data):
        if trace := tracing():
            trace.data_of(self)
        if self.op is not None and self._overwritten is None:
            self._overwritten = self._data
        self._data = data

    @property
    def is_pending(self) -> bool:
        """Whether the data is still to be computed."""
        return type(self._data) is Pending and self._data.operands is not None

    @property
    def grad(self):
        if trace := tracing():
            trace.asks_grad(self)
        return self._grad

    @grad.setter
    def grad(self, grad):
        if trace := tracing():
            trace.sets_grad(self)
        self._grad = grad

    def is_leaf(self) -> bool:
        """Whether no operator made this node."""
        return self.op is None

    @staticmethod
    def sum_of(values: Sequence[Value]) -> Value:
        """The sum of several Values of one kind, as a graph."""
        return reduce(add, values)

    # Writes. ``p.data = …`` changes what p stands for, not what was computed from it before.

    def as_built(self) -> Value:
        """This node as it was computed: itself, or a stand-in if it or an input was written to since."""
        for x, operand in zip(self.inputs, self._operands):  # noqa: B905 - strict=True takes twice as long
            if x._data is not operand and _written(x, operand):  # the first test saves a call
                break
        else:
            if self._overwritten is None:
                return self
        node = type(self).make_const(self._data if self._overwritten is None else self._overwritten)
        node.op, node._operands, node.requires_grad = self.op, self._operands, self.requires_grad
        node.inputs = [self.input_as_built(i) for i in range(len(self.inputs))]
        return node

    def input_as_built(self, index: int) -> Value:
        """An input as it was when this node was made: itself, or a stand-in if it was written to since."""
        x, operand = self.inputs[index], self._operands[index]
        if not _written(x, operand):
            return x
        earlier = type(x).make_const(operand, requires_grad=x.requires_grad)
        earlier.stand_in_for(x)
        return earlier

    def stand_in_for(self, node: Value) -> None:
        """Turn this copy into ``Identity(node)``, so that gradients that reach it continue to `node`."""
        self.op, self.inputs, self._operands = ops.Identity(), [node], [node._data]


def _written(value: Value, operand) -> bool:
    """Whether the data of `value` was replaced since `operand` was recorded."""
    data = value._data
    return data is not operand and not (type(operand) is Pending and operand.data is data)


def _realized(operands: Sequence, inputs: Sequence[Value]) -> list:
    try:
        return [x.realize() if type(x) is Pending else x for x in operands]
    except Exception as error:
        raise pending_failed(error, inputs) from None


def _deferred(op: Op, operands: Sequence, inputs: Sequence[Value]) -> Pending | None:
    """A Pending ``op(*operands)``; None if the operator cannot say beforehand what comes out."""
    try:
        spec = op.infer(*[x.spec if type(x) is Pending else x for x in operands])
    except Exception as error:
        raise operator_failed(error, op, inputs) from None
    return None if spec is None else Pending(op, operands, spec)


class TensorTuple(Value):
    """A tuple of Tensors as one node, for operators with several results."""

    @cached_property
    def specs(self) -> Sequence[Spec]:
        """Shape, dtype and device of each Tensor; nothing is computed."""
        items = self._data.spec if type(self._data) is Pending else self._data
        return [Spec(x.shape, x.dtype, x.device) for x in items]

    def __len__(self) -> int:
        return len(self.specs)

    def __getitem__(self, index: int):
        try:
            return ops.tuple_get_item(self, index)
        except Exception as error:
            index_failed(error, self, index)
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

    @staticmethod
    def sum_of(values: Sequence[Value]) -> Value:
        return ops.sum_tuples(values)

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
        Where the values live. Default: the device of `array` if it has one, else `default_device()`.
    dtype : str or numpy.dtype, optional
        Default: the dtype of `array` if it is a Tensor or an NDArray, else float32
        (under ``NEEDLE_BACKEND=np``: the dtype that NumPy chooses for `array`).
    requires_grad : bool
        Whether gradients flow to it. Default: True.
    """

    # Tell NumPy to leave ``ndarray + tensor`` to Tensor; it would make an array of Tensors.
    __array_ufunc__ = None

    def __init__(self, array, *, device=None, dtype=None, requires_grad: bool = True):
        self.requires_grad = requires_grad
        scope = mode.get()[SCOPE]
        if scope is not None:
            self.scope = scope
        if modes.remembers_lines:
            self.line = modes.line_of_user(2)
        check_device(device)
        data: Any
        if isinstance(array, Tensor):
            with no_grad():
                data = array.to(device or array.device).astype(dtype or array.dtype)
        elif hasattr(array, "__needle_data__"):
            data = array.__needle_data__(dtype, device or default_device())
        elif BACKEND == "nd" and isinstance(array, NDArray):
            data = NDArray(array, device=device, dtype=dtype)
        else:
            data = array_from_numpy(_as_numpy(array), dtype=dtype, device=device or default_device())
        trace = tracing()
        self._data = trace.data_of(data) if trace else data._data if isinstance(data, Tensor) else data

    # What it is. Nothing here computes a lazy Tensor.

    shape = property(attrgetter("_data.shape"), doc="The length of each axis, a tuple of int.")
    dtype = property(attrgetter("_data.dtype"), doc="The type of the elements, a numpy.dtype.")

    device = property(
        attrgetter("_data.device") if BACKEND == "nd" else lambda self: default_device(),
        doc="Where the values live, such as ``needle.cpu()``.",
    )

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._data.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._data.shape)

    def __len__(self) -> int:
        """The length of the first axis."""
        if not self.shape:
            raise TypeError("len: a Tensor of shape () has no axis")
        return self.shape[0]

    # Its values

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array (a copy)."""
        return to_numpy(self.realize_cached_data())

    def item(self) -> float:
        """The number in a Tensor with one element, as a Python number."""
        if self.size != 1:
            raise ValueError(f"item: needs one element, shape {self.shape} has {self.size}; use .numpy()")
        return self.numpy().item()

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False:
            raise ValueError("Tensor: NumPy cannot share its storage, so copy=False is not possible")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        """Of a Tensor with one element: whether it is not 0."""
        if self.size != 1:
            raise ValueError(
                f"bool: the truth of a Tensor of shape {self.shape} is not defined; to ask whether there "
                "is one: `is not None`; about its elements: .numpy().any() or .numpy().all()"
            )
        return bool(self.numpy().item())

    def __contains__(self, number) -> bool:
        """Whether an element is equal to `number`."""
        return bool((self.numpy() == (number.numpy() if isinstance(number, Tensor) else number)).any())

    def __format__(self, spec: str) -> str:
        """``f"{loss:.3f}"``: the format of the number in a Tensor with one element."""
        return format(self.item(), spec) if spec else str(self)

    def __repr__(self) -> str:
        return f"needle.Tensor({np.array2string(self.numpy(), prefix='needle.Tensor(')})"

    # The same values elsewhere

    @property
    def data(self) -> Tensor:
        """The value as a constant, without history. Assigning to it replaces the value and leaves the graph
        as it is.

        What was computed before the assignment, and gradients of it, keep the value from before. The new
        value has the same shape; leading axes of length 1 may be missing. It has the same dtype, except that
        under ``NEEDLE_BACKEND=np``, where few numbers come as float32, a float32 Tensor converts it.
        """
        return self.detach()

    @data.setter
    def data(self, value):
        value = value if isinstance(value, Tensor) else Tensor(value, device=self.device, dtype=self.dtype)
        common_device("data = ...", [self, value])
        if trace := tracing():
            trace.data_of(value)
        if BACKEND == "np" and self.dtype == "float32" != value.dtype:
            value = value.detach().astype(self.dtype)
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

    # Its gradient

    def backward(self, out_grad: Tensor | None = None, create_graph: bool = True) -> None:
        """Set `grad` on every node that leads to this one and requires it: the derivative of this Tensor with
        respect to that node.

        Gradients of an earlier call are replaced, not added to. A node that does not lead to this one keeps
        the gradient it had; an optimiser's `step` and `reset_grad` set gradients to None. Two nodes may share
        one gradient: after ``c = a + b``, `a.grad` is `b.grad`.

        Parameters
        ----------
        out_grad : Tensor of this Tensor's shape, optional
            The vector of the vector-Jacobian product. Default: ones.
        create_graph : bool
            True: gradients stay connected to the graph and can be differentiated or drawn.
            False: gradients are constants, and all memory is free as soon as this Tensor is.

        Raises
        ------
        RuntimeError
            If this Tensor does not require a gradient.
        ValueError
            If `out_grad` has another shape or is on another device.
        """
        if create_graph:
            compute_gradient_of_variables(self, out_grad)
        else:
            with no_grad():
                compute_gradient_of_variables(self, out_grad)

    # Arithmetic. A number is an attribute of the operator, anything else an operand; see `_operand`.

    def __add__(self, other):
        if isinstance(other, Tensor):
            return ops.EWiseAdd()(self, other)
        if isinstance(other, NUMBERS):
            return ops.AddScalar(other)(self)
        return NotImplemented if (other := _operand(other, self)) is None else ops.add(self, other)

    def __radd__(self, other):
        if isinstance(other, NUMBERS):
            return ops.AddScalar(other)(self)
        return NotImplemented if (other := _operand(other, self)) is None else ops.add(other, self)

    def __mul__(self, other):
        if isinstance(other, Tensor):
            return ops.EWiseMul()(self, other)
        if isinstance(other, NUMBERS):
            return ops.MulScalar(other)(self)
        return NotImplemented if (other := _operand(other, self)) is None else ops.multiply(self, other)

    def __rmul__(self, other):
        if isinstance(other, NUMBERS):
            return ops.MulScalar(other)(self)
        return NotImplemented if (other := _operand(other, self)) is None else ops.multiply(other, self)

    def __sub__(self, other):
        if isinstance(other, NUMBERS) and self.dtype.kind not in ("b", "u"):  # these have no -other
            return ops.AddScalar(-python_number(other))(self)
        other = _operand(other, self, "subtract")
        return NotImplemented if other is None else self + _negated(other, self)

    def __rsub__(self, other):
        if isinstance(other, NUMBERS):
            return ops.AddScalar(other)(_negated(self, python_number(other)))
        other = _operand(other, self, "subtract")
        return NotImplemented if other is None else other + _negated(self, other)

    def __truediv__(self, other):
        if isinstance(other, NUMBERS):
            return ops.DivScalar(other)(self)
        return NotImplemented if (other := _operand(other, self)) is None else ops.divide(self, other)

    def __rtruediv__(self, other):
        return (
            NotImplemented if (other := _operand(other, self, "divide")) is None else ops.divide(other, self)
        )

    def __pow__(self, other):
        if isinstance(other, NUMBERS):
            return ops.PowerScalar(other)(self)
        return NotImplemented if (other := _operand(other, self)) is None else ops.power(self, other)

    def __rpow__(self, other):
        return NotImplemented if (other := _operand(other, self, "power")) is None else ops.power(other, self)

    def __matmul__(self, other):
        if isinstance(other, Tensor):
            return ops.matmul(self, other)
        return NotImplemented if (other := _operand(other, self)) is None else ops.matmul(self, other)

    def __rmatmul__(self, other):
        return NotImplemented if (other := _operand(other, self)) is None else ops.matmul(other, self)

    def matmul(self, other) -> Tensor:
        """See `needle.ops.matmul`."""
        return self @ other

    __neg__ = ops.negate
    __abs__ = ops.abs

    # Comparisons are Tensors of booleans. == and != are different: they ask whether it is the same Tensor, so
    # that Tensors can be found in lists and dictionaries. For equal elements: ``ndl.compare(a, "eq", b)``.

    def __lt__(self, other) -> Tensor:
        return _compared(self, "lt", other)

    def __le__(self, other) -> Tensor:
        return _compared(self, "le", other)

    def __gt__(self, other) -> Tensor:
        return _compared(self, "gt", other)

    def __ge__(self, other) -> Tensor:
        return _compared(self, "ge", other)

    # Functions of needle.ops as methods: ``x.exp()`` is ``ndl.exp(x)``.

    exp, log, sqrt, abs, relu, sigmoid, tanh = (
        ops.exp, ops.log, ops.sqrt, ops.abs, ops.relu, ops.sigmoid, ops.tanh,
    )  # fmt: skip
    sum, mean, max, min, argmax = ops.summation, ops.mean, ops.max, ops.min, ops.argmax
    reshape, broadcast_to, permute, transpose = ops.reshape, ops.broadcast_to, ops.permute, ops.transpose

    @property
    def T(self) -> Tensor:
        """The last two axes swapped."""
        return ops.transpose(self)

    # Parts

    def __getitem__(self, index) -> Tensor:
        """A part, with NumPy's meaning of `index`; see `needle.ops.getitem`."""
        try:
            return ops.getitem(self, index)
        except Exception as error:
            index_failed(error, self, index)
            raise

    def __iter__(self):
        """The parts along the first axis, one by one."""
        if not self.shape:
            raise TypeError("iteration: a Tensor of shape () has no axis; .numpy().item() is its number")
        return iter(ops.split(self, 0))

    def __setitem__(self, index, value) -> None:
        raise TypeError(
            f"x{index_in_words(index)} = ...: a Tensor is not changed in place, since what was computed from "
            "it would no longer fit; make a new one: ndl.where(condition, a, b) is differentiable, and a "
            "leaf takes a new value by x.data = array"
        )

    def __getattr__(self, name: str):
        # Called only when normal lookup fails; raises AttributeError.
        is_function = name in ops.__all__ and not isinstance(getattr(ops, name), type)
        function = f"ndl.{name}(x)" if is_function else None
        return missing_attribute(self, name, FROM_ELSEWHERE.get(name, function))


def _compared(a: Tensor, relation: str, other):
    other = other if isinstance(other, NUMBERS) else _operand(other, a)
    return NotImplemented if other is None else ops.compare(a, relation, other).astype("bool")


def check_device(device) -> None:
    """Raise TypeError if `device` is neither a device nor None."""
    if device is not None and not isinstance(device, Device):
        raise TypeError(f"device: needs a device such as needle.cpu(), got {device!r}")


def _as_numpy(array) -> np.ndarray:
    """Convert a user's input to a NumPy array of numbers."""
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
    kinds = set(map(type, array))  # no loop in Python over a long list of numbers
    return any(issubclass(kind, Tensor) for kind in kinds) or (
        any(issubclass(kind, (list, tuple)) for kind in kinds) and any(map(_holds_tensor, array))
    )


def _operand(other, tensor: Tensor, function: str = "add") -> Tensor | None:
    """`other` as an operand of a scalar function beside `tensor`; None if it is no operand.

    Numbers and arrays become constants. Beside floats they have the type of these; beside whole numbers, a
    number has the type of the result, and an array its own.
    """
    if isinstance(other, Tensor):
        return other
    if isinstance(other, NUMBERS):
        number = python_number(other)
        dtype: Any = result_dtype(function, number, tensor)
        if hasattr(number, "__needle_data__"):
            return Tensor(number, device=tensor.device, dtype=dtype, requires_grad=False)
        # By way of NumPy, which refuses a number that does not fit.
        return Tensor(np.array(number, dtype), device=tensor.device, dtype=dtype, requires_grad=False)
    if isinstance(other, (list, np.ndarray, NDArray)) or hasattr(other, "__needle_data__"):
        array = _as_numpy(other) if isinstance(other, (list, np.ndarray)) else other
        own = array.dtype if array.dtype in DTYPES else None
        dtype = tensor.dtype if tensor.dtype.kind == "f" else own
        return Tensor(array, device=tensor.device, dtype=dtype, requires_grad=False)
    return None


def _negated(x: Tensor, other) -> Tensor:
    """-x, for ``other - x``: of whole numbers in the type of that difference, since an unsigned one has no
    negative."""
    return ops.negate(x if x.dtype.kind == "f" else x.astype(result_dtype("subtract", other, x)))


# Reverse mode for Tensors: the seed, and what is done with each adjoint


def adjoints(output: Tensor, out_grad: Tensor | None = None) -> Iterator[Adjoint]:
    """Reverse-mode automatic differentiation, node by node; see `needle.reverse`.

    Parameters
    ----------
    output : Tensor
    out_grad : Tensor of the shape of `output`, optional
        The adjoint to begin with. Default: ones, for which the totals are the derivatives of
        ``output.sum()``.

    Returns
    -------
    iterator of Adjoint
        In reverse topological order, computed one at a time as you iterate, in the mode that holds then.

    Raises
    ------
    RuntimeError
        If `output` does not require a gradient.
    ValueError
        If `out_grad` has another shape than `output`, or is on another device.
    """
    return map(Adjoint, _walk(output, out_grad))


def _walk(output: Tensor, out_grad: Tensor | None) -> Iterator[tuple]:
    """`adjoints`, as plain tuples."""
    if not output.requires_grad:
        raise RuntimeError(f"backward: {_why_no_gradient(output)}")
    if out_grad is None:
        seed = Tensor.make_const(output.device.full(output.shape, 1, gradient_dtype(output)))
    else:
        seed = _given_seed(output, out_grad)
    return walk_back(output, seed)


def _why_no_gradient(output: Tensor) -> str:
    if output.step_function is not None:
        return (
            f"no gradient flows through {output.step_function}, from which this Tensor was computed: it is a "
            "step function, whose derivative is 0 wherever there is one"
        )
    return (
        "this Tensor does not require a gradient: it is a constant, detached or made under no_grad(), or "
        "none of the Tensors it was computed from has requires_grad=True"
    )


def _given_seed(output: Tensor, given: Any) -> Tensor:
    """`given` as the adjoint of the output, if it fits."""
    out_grad = _operand(given, output)
    if out_grad is None:
        raise TypeError(f"backward: out_grad is a {type(given).__name__}, not a Tensor")
    try:
        common_device("backward", [output, out_grad])
        if out_grad.shape != output.shape:
            raise ValueError(
                f"backward: out_grad has shape {out_grad.shape}, the output has shape {output.shape}"
            )
    except ValueError as error:
        with_graph(error, "backward", [output, out_grad])
        raise
    out_grad = out_grad.astype(gradient_dtype(output))
    # Under no_grad all gradients are constants, and so is this one.
    return out_grad if mode.get()[GRAD] else out_grad.detach()


def compute_gradient_of_variables(output_tensor: Tensor, out_grad: Tensor | None = None) -> None:
    """Set `grad` on every node that leads to `output_tensor` and requires it."""
    trace = tracing()
    for node, _, total in _walk(output_tensor, out_grad):
        if trace:
            trace.sets_grad(node)
        node._grad = total


def gradients(output: Tensor, inputs: Sequence[Tensor], out_grad: Tensor | None = None) -> list[Tensor]:
    """The derivatives of ``output.sum()`` with respect to `inputs`; no `grad` attribute is read or written.

    Parameters
    ----------
    output : Tensor
    inputs : sequence of Tensor
        Leaves, or nodes between them and `output`.
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
    TypeError
        If `inputs` is a single Tensor, or `out_grad` is not a Tensor.
    ValueError
        If `out_grad` has another shape than `output`, or is on another device.
    """
    if isinstance(inputs, Value):
        raise TypeError("gradients: inputs is a single Tensor; give a list: gradients(output, [x])")
    inputs = list(inputs)
    for i, x in enumerate(inputs):
        if not x.requires_grad:
            raise RuntimeError(
                f"gradients: input {i} does not require a gradient; make it with requires_grad=True, "
                "before what is computed from it"
            )
    wanted = set(inputs)
    found: dict[Value, Any] = {node: total for node, _, total in _walk(output, out_grad) if node in wanted}
    return [
        found[x] if x in found else Tensor.make_const(x.device.full(x.shape, 0, gradient_dtype(x)))
        for x in inputs
    ]


TensorOp.out = Tensor
TensorTupleOp.out = TensorTuple


@atexit.register
def _stop_counting() -> None:
    """When the program ends, modules go in any order, and there is nothing to count with any more."""
    Value.__del__ = lambda self: None  # type: ignore[method-assign]
