"""What stands for the numbers and NumPy arrays of the host while a function is traced.

A learning rate, a count of updates or a number among the arguments may be another one in the next call. So it
is a `Number`: arithmetic with it builds a formula, which each call computes anew. An array of NumPy's is a
`HostArray`: it can become a Tensor, and nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..autograd import Tensor


class CannotTrace(RuntimeError):
    """A function does something that a compiled program could not repeat."""


class Number:
    """A number of the host whose formula is known. `isinstance` takes it for the number that it stands for.

    Attributes
    ----------
    text : str
        The formula, as Python: ``"(1 - momentum)"``.
    value : float or int
        What it is in the call that is traced.
    """

    __slots__ = ("text", "value")

    def __init__(self, text: str, value: Any):
        self.text = text
        self.value = value

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What `isinstance` goes by."""
        return type(self.value)

    def __repr__(self) -> str:
        return self.text

    def __pos__(self) -> Number:
        return self

    def __neg__(self) -> Number:
        return Number(f"(-{self.text})", -self.value)

    def __abs__(self) -> Number:
        return Number(f"abs({self.text})", abs(self.value))

    def __needle_data__(self, dtype: Any, device: Any) -> Any:
        """What a Tensor of this number holds."""
        return Tensor.make_const(device.full((), 0, "float32" if dtype is None else dtype)) + self

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise CannotTrace(
            f"jit: Python asks what {self.text} is, to branch on it, or to use it as an index, an axis, a "
            "range or a text. It may be another number in each call. If it takes few values, name the "
            f'argument in static=, as in ndl.jit(f, static="{self.text}"): then there is a program for each. '
            "An option of an optimiser cannot be named there: branch on it outside"
        )

    __bool__ = __index__ = __int__ = __float__ = __round__ = __trunc__ = __floor__ = __ceil__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __hash__ = __str__ = __format__ = _refused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _refused
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refused
    __array__ = __divmod__ = __rdivmod__ = __reduce_ex__ = _refused

    def __getattr__(self, name: str) -> Any:
        if hasattr(type(self.value), name):
            self._refused()
        raise AttributeError(f"a number has no {name}")

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **_: Any) -> Any:
        """NumPy's scalars beside a number: ``np.float64(2) * n``."""
        arithmetic = _OPERATORS.get(function.__name__)
        if arithmetic is None or any(isinstance(x, np.ndarray) for x in operands):
            self._refused()
        return arithmetic(*[x.item() if isinstance(x, np.generic) else x for x in operands])


class Option(Number):
    """A number among the options of an optimiser that is not 0, which each call makes sure of."""

    __slots__ = ()

    def __bool__(self) -> bool:  # type: ignore[override]
        return True


def _arithmetic(symbol: str, function: Callable) -> tuple[Callable, Callable]:
    """The methods for ``number + other`` and ``other + number``."""

    def formula(*operands: Any) -> Any:
        operands = tuple([x.item() if isinstance(x, np.generic) else x for x in operands])
        if not all(isinstance(x, (int, float)) for x in operands):
            return NotImplemented
        known = [type(x) in (Number, Option) for x in operands]
        a, b = (x.text if has_text else f"({x!r})" for x, has_text in zip(operands, known, strict=True))
        values = [x.value if has_text else x for x, has_text in zip(operands, known, strict=True)]
        return Number(f"({a} {symbol} {b})", function(*values))

    return formula, lambda self, other: formula(other, self)


#: By the names of NumPy's functions.
_OPERATORS: dict[str, Any] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow,
}  # fmt: skip
for _symbol, _function in zip(("+", "-", "*", "/", "//", "%", "**"), _OPERATORS.values(), strict=True):
    _forward, _backward = _arithmetic(_symbol, _function)
    setattr(Number, f"__{_function.__name__}__", _forward)
    setattr(Number, f"__r{_function.__name__}__", _backward)


class HostArray:
    """An array of NumPy's among the arguments, whose numbers come anew with each call.

    Attributes
    ----------
    name : str
    shape, dtype, ndim, size
        Those of the array.
    cell : callable
        From a dtype and a device to the placeholder for a Tensor that holds the array.
    """

    def __init__(self, name: str, array: np.ndarray, cell: Callable):
        self.name = name
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size
        self.cell = cell

    def __needle_data__(self, dtype: Any, device: Any) -> Any:
        """What a Tensor of this array holds."""
        return self.cell(np.dtype("float32" if dtype is None else dtype), device)

    def __len__(self) -> int:
        return self.shape[0]

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise CannotTrace(
            f"jit: the numbers of the array {self.name} are others in each call, so what NumPy or Python "
            f"computes from it would be frozen; make a Tensor of it, ndl.Tensor({self.name}), and compute "
            "with that"
        )

    def _operation(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Tensor) else self._refused()  # a Tensor knows what to do

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """What NumPy's functions ask first: the shape is known, the numbers are not."""
        known = {np.shape: self.shape, np.ndim: self.ndim, np.size: self.size}
        return known[function] if function in known and len(args) == 1 and not kwargs else self._refused()

    __array__ = __array_ufunc__ = _refused
    __getitem__ = __iter__ = __float__ = __int__ = __bool__ = __index__ = __neg__ = __getattr__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operation
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = _operation
