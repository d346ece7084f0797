"""What stands for numbers and arrays of the host while a function is traced (see `needle.compiler`).

A learning rate or a count of steps is then not the number that it happens to be in this call. It is a
`Number`: arithmetic with it builds a formula, which is computed anew in each later call. Where Python must
know the number itself, to compare it or to count with it, the answer is noted: the trace is valid while the
answer stays the same. An array of NumPy's is a `HostArray`: it can become a Tensor, and nothing else, since
what NumPy computes from it would be frozen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np


class Number:
    """A number of the host whose formula is known.

    Attributes
    ----------
    text : str
        The formula, as Python: ``"1 - optimizer.momentum"``.
    value : float or int
        What it is in this call.
    answers : dict of str to (bool, int or float)
        What was asked about numbers of this trace, and the answers. All of them share the dictionary.
    """

    __slots__ = ("answers", "text", "value")

    def __init__(self, text: str, value: Any, answers: dict[str, Any]):
        self.text = text
        self.value = value
        self.answers = answers

    def __repr__(self) -> str:
        return self.text

    @property
    def python_type(self) -> type:
        """float or int."""
        return type(self.value)

    def __neg__(self) -> Number:
        return Number(f"(-{self.text})", -self.value, self.answers)

    def _answer(self, question: str, answer: Any) -> Any:
        self.answers[question] = answer
        return answer

    def __bool__(self) -> bool:
        return self._answer(f"bool({self.text})", bool(self.value))

    def __index__(self) -> int:
        return self._answer(self.text, operator.index(self.value))

    def __float__(self) -> float:
        raise TypeError(
            f"jit: {self.text} changes from call to call, so a function of Python's such as math.cos would "
            "be computed only once; use + - * / **, or compute it outside and give it as an argument"
        )

    __int__ = __round__ = __float__
    __hash__ = object.__hash__


def _text_of(number: Any) -> str:
    """A number in a formula. `inf` and `nan` are names there."""
    return (
        number.text
        if isinstance(number, Number)
        else repr(number.item() if isinstance(number, np.generic) else number)
    )


def _arithmetic(symbol: str, function: Callable) -> tuple[Callable, Callable]:
    """The methods for ``number + other`` and ``other + number``."""

    def forward(self: Number, other: Any) -> Any:
        if not isinstance(other, (Number, float, int)):
            return NotImplemented
        text = f"({self.text} {symbol} {_text_of(other)})"
        return Number(text, function(self.value, getattr(other, "value", other)), self.answers)

    def backward(self: Number, other: Any) -> Any:
        if not isinstance(other, (float, int)):
            return NotImplemented
        return Number(f"({_text_of(other)} {symbol} {self.text})", function(other, self.value), self.answers)

    return forward, backward


def _comparison(symbol: str, function: Callable) -> Callable:
    def compare(self: Number, other: Any) -> Any:
        if not isinstance(other, (Number, float, int)):
            return NotImplemented
        question = f"({self.text} {symbol} {_text_of(other)})"
        return self._answer(question, function(self.value, getattr(other, "value", other)))

    return compare


for _name, _symbol, _function in (
    ("add", "+", operator.add),
    ("sub", "-", operator.sub),
    ("mul", "*", operator.mul),
    ("truediv", "/", operator.truediv),
    ("pow", "**", operator.pow),
):
    _forward, _backward = _arithmetic(_symbol, _function)
    setattr(Number, f"__{_name}__", _forward)
    setattr(Number, f"__r{_name}__", _backward)
for _name, _symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    setattr(Number, f"__{_name}__", _comparison(_symbol, getattr(operator, _name)))

Real.register(Number)


class HostArray:
    """An array of NumPy's whose numbers come anew with each call.

    Attributes
    ----------
    name : str
    shape, dtype, ndim, size
        Those of the array.
    cell : callable
        From a dtype and a device to the placeholder of a Tensor that holds the array.
    """

    def __init__(self, name: str, array: np.ndarray, cell: Callable):
        self.name = name
        self.shape = array.shape
        self.dtype = array.dtype
        self.ndim = array.ndim
        self.size = array.size
        self.cell = cell

    def __len__(self) -> int:
        return self.shape[0]

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"jit: the numbers of the array {self.name} are different in each call, so what NumPy or Python "
            f"computes from it would be frozen; make a Tensor of it, ndl.Tensor({self.name}), and compute "
            "with that"
        )

    def _operation(self, other: Any) -> Any:
        if hasattr(other, "realize_cached_data"):  # a Tensor knows what to do
            return NotImplemented
        return self._refused()

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """What NumPy's functions ask first: the shape is known, the numbers are not."""
        if function in (np.shape, np.ndim, np.size) and not kwargs and len(args) == 1:
            return {np.shape: self.shape, np.ndim: self.ndim, np.size: self.size}[function]
        return self._refused()

    __array__ = __array_ufunc__ = _refused
    __getitem__ = __iter__ = __float__ = __int__ = __bool__ = __index__ = __neg__ = __getattr__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operation
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = _operation
