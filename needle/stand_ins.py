"""What stands for numbers and arrays of the host while a function is traced (see `needle.compiler`).

A learning rate or a count of steps is then not the number that it happens to be in this call. It is a
`Number`: arithmetic with it builds a formula, which is computed anew in each later call. Where Python must
know more, the answer is noted, and the trace is valid while the answer stays the same: of a comparison, that
is whether it holds; of `float`, `math.cos`, a text, an index, an axis or the key of a dictionary, it is the
number itself. An array of NumPy's is a `HostArray`: it can become a Tensor, and nothing else, since
what NumPy computes from it would be frozen.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np


class Number:
    """A number of the host whose formula is known.

    To Python it looks like the number that it stands for: ``isinstance(n, int)`` holds where it holds for
    that one, and ``n.is_integer()`` answers. Only ``type(n)`` cannot be made to.

    Attributes
    ----------
    text : str
        The formula, as Python: ``"1 - optimizer.momentum"``.
    value : float or int
        What it is in this call.
    answers : dict of str to object
        What was asked about numbers of this trace, and the answers. All of them share the dictionary.
    """

    __slots__ = ("answers", "text", "value")

    def __init__(self, text: str, value: Any, answers: dict[str, Any]):
        self.text = text
        self.value = value
        self.answers = answers

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What `isinstance` goes by. The types of the numbers in a formula are asked with each call."""
        return type(self.value)

    def __neg__(self) -> Number:
        return Number(f"(-{self.text})", -self.value, self.answers)

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        return Number(f"abs({self.text})", abs(self.value), self.answers)

    def _answer(self, question: str, answer: Any) -> Any:
        self.answers[question] = answer
        return answer

    def known(self) -> Any:
        """The number itself. The trace is then for this number alone."""
        return self._answer(self.text, self.value)

    def __bool__(self) -> bool:
        return self._answer(f"bool({self.text})", bool(self.value))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.value, name)
        self.known()
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.known(), dtype)

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: Any) -> Any:
        return getattr(function, method)(*map(_known, operands), **options)

    def __reduce__(self) -> tuple:
        """A copy is the number itself."""
        return type(self.value), (self.known(),)

    def __hash__(self) -> int:
        return hash(self.known())


def _known(value: Any) -> Any:
    return value.known() if isinstance(value, Number) else value


def _text_of(number: Any) -> str:
    """A number in a formula. `inf` and `nan` are names there."""
    if isinstance(number, Number):
        return number.text
    text = repr(float(number) if isinstance(number, float) else int(number))
    return f"({text})" if text.startswith("-") else text


def _arithmetic(symbol: str, function: Callable) -> tuple[Callable, Callable]:
    """The methods for ``number + other`` and ``other + number``."""

    def formula(self: Number, a: Any, b: Any) -> Number:
        text = f"({_text_of(a)} {symbol} {_text_of(b)})"
        a, b = getattr(a, "value", a), getattr(b, "value", b)
        result = Number(text, function(a, b), self.answers)
        if symbol == "**" and not (isinstance(a, float) and isinstance(b, int)):
            self._answer(f"type({text})", type(result.value))  # 2 ** n is an int, or a float where n < 0
        return result.known() if isinstance(result, complex) else result

    def forward(self: Number, other: Any) -> Any:
        if isinstance(other, (Number, float, int)):
            return formula(self, self, other)
        return function(self.known(), other) if isinstance(other, numbers.Number) else NotImplemented

    def backward(self: Number, other: Any) -> Any:
        if isinstance(other, (float, int)):
            return formula(self, other, self)
        return function(other, self.known()) if isinstance(other, numbers.Number) else NotImplemented

    return forward, backward


def _comparison(symbol: str, function: Callable) -> Callable:
    def compare(self: Number, other: Any) -> Any:
        if isinstance(other, (Number, float, int)):
            question = f"({self.text} {symbol} {_text_of(other)})"
            return self._answer(question, function(self.value, getattr(other, "value", other)))
        return function(self.known(), other) if isinstance(other, numbers.Number) else NotImplemented

    return compare


def _of_known(function: Callable) -> Callable:
    """A method that needs the number itself."""
    return lambda self, *others: function(self.known(), *map(_known, others))


_function: Callable[..., Any]
for _name, _symbol, _function in (
    ("add", "+", operator.add),
    ("sub", "-", operator.sub),
    ("mul", "*", operator.mul),
    ("truediv", "/", operator.truediv),
    ("floordiv", "//", operator.floordiv),
    ("mod", "%", operator.mod),
    ("pow", "**", operator.pow),
):
    _forward, _backward = _arithmetic(_symbol, _function)
    setattr(Number, f"__{_name}__", _forward)
    setattr(Number, f"__r{_name}__", _backward)
for _name, _symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    setattr(Number, f"__{_name}__", _comparison(_symbol, getattr(operator, _name)))
for _name, _function in (
    ("int", int), ("float", float), ("index", operator.index), ("invert", operator.invert),
    ("round", round), ("trunc", math.trunc), ("floor", math.floor), ("ceil", math.ceil),
    ("str", str), ("repr", repr), ("format", format),
):  # fmt: skip
    setattr(Number, f"__{_name}__", _of_known(_function))
for _name, _function in (
    ("divmod", divmod), ("and", operator.and_), ("or", operator.or_), ("xor", operator.xor),
    ("lshift", operator.lshift), ("rshift", operator.rshift),
):  # fmt: skip
    setattr(Number, f"__{_name}__", _of_known(_function))
    setattr(Number, f"__r{_name}__", _of_known(lambda b, a, f=_function: f(a, b)))


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
