"""What stands for the numbers and NumPy arrays of the host while a function is traced.

A learning rate, a count of updates or a number among the arguments may be another one in the next call. So it
is a `Number`: arithmetic with it builds a formula, which each call computes anew. An array of NumPy's is a
`HostArray`: it can become a Tensor, and nothing else. In ``relu(x @ W + n * b)``, n would be a `Number`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..autograd import Tensor

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}


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
    __array_ufunc__ = None  # scalars of NumPy's leave arithmetic to this class

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
        dtype = "float32" if dtype is None else dtype
        return (Tensor.make_const(device.full((), 0, dtype)) + self).astype(dtype)

    def _compared(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Tensor) else self._refused()  # a Tensor knows what to do

    __lt__ = __le__ = __gt__ = __ge__ = _compared

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise CannotTrace(
            f"jit: Python asks what {self.text} is, to branch on it, or to use it as an index, an axis, a "
            "range or a text. It may be another number in each call. If it takes few values, name the "
            f'argument in static=, as in ndl.jit(f, static="{self.text}"): then there is a program for each. '
            "An option of an optimiser cannot be named there: branch on it outside"
        )


class Option(Number):
    """A number among the options of an optimiser that is not 0, which each call makes sure of."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


def _arithmetic(symbol: str, function: Callable) -> tuple[Callable, Callable]:
    """The methods for ``number + other`` and ``other + number``."""

    def formula(*operands: Any) -> Any:
        operands = tuple([x.item() if isinstance(x, np.generic) else x for x in operands])
        if not all(isinstance(x, (int, float)) for x in operands):
            return NotImplemented
        a, b = [x.text if isinstance(x, Number) else f"({x!r})" for x in operands]
        values = [x.value if isinstance(x, Number) else x for x in operands]
        return Number(f"({a} {symbol} {b})", function(*values))

    return formula, lambda self, other: formula(other, self)


for _name, _symbol in _SYMBOLS.items():
    _forward, _backward = _arithmetic(_symbol, getattr(operator, _name))
    setattr(Number, f"__{_name}__", _forward)
    setattr(Number, f"__r{_name}__", _backward)


def _refuse(kind: Any, real: dict[str, Any]) -> None:
    """Let a stand-in refuse all else that the real thing can do."""
    for name in real.keys() - {*vars(kind), "__new__", "__getattribute__"}:
        setattr(kind, name, kind._refused if callable(real[name]) else property(kind._refused))


_refuse(Number, {**vars(int), **vars(float), **dict.fromkeys(("__array__", "__reduce_ex__", "__str__"), str)})


class HostArray:
    """An array of NumPy's among the arguments, whose numbers come anew with each call.

    Its shape is known, and `cell` makes of a dtype and a device the placeholder for a Tensor that holds it.
    """

    __slots__ = ("cell", "dtype", "name", "ndim", "shape", "size")

    def __init__(self, name: str, array: np.ndarray, cell: Callable):
        self.name = name
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size
        self.cell = cell

    def __needle_data__(self, dtype: Any, device: Any) -> Any:
        """What a Tensor of this array holds."""
        return self.cell(np.dtype("float32" if dtype is None else dtype), device)

    def __len__(self) -> int:
        return len(np.broadcast_to(0, self.shape))

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise CannotTrace(
            f"jit: the numbers of the array {self.name} are others in each call, so what NumPy or Python "
            f"computes from it would be frozen; make a Tensor of it, ndl.Tensor({self.name}), and compute "
            "with that"
        )

    def _operation(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Tensor) else self._refused()  # a Tensor knows what to do

    def __array_function__(self, function: Any, *_: Any) -> Any:
        """What NumPy's functions ask first; losses ask for the shape of labels."""
        return self.shape if function is np.shape else self._refused()

    __add__ = __sub__ = __mul__ = __truediv__ = __pow__ = __matmul__ = _operation
    __lt__ = __le__ = __gt__ = __ge__ = _operation


_refuse(HostArray, dict(vars(np.ndarray)))
