"""The values of the Explorer's language: numbers, Tensors, and lists of these; and how large they may get."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import needle as ndl
from needle import Tensor
from needle.autograd import TensorTuple, Value

from .reading import LARGEST_NUMBER

MOST_AXES = 6
LARGEST_TENSOR = 10_000  # elements. A matrix product of such Tensors takes a million multiplications at most.
MOST_ELEMENTS = 200_000  # of all Tensors together
MOST_NODES = 400
LARGEST_INTEGER = 2**53  # larger whole numbers become floating-point numbers

Number = int | float
Datum = Any  # what a piece of text can stand for: a Number, a Tensor, or a list of these


def kind_of(x: Datum) -> str:
    """What to call a value in a message."""
    return "Tensor" if isinstance(x, Tensor) else "list" if isinstance(x, list) else "number"


def whole_number(x: Datum, what: str, low: int, high: int) -> int:
    """The number `x`, if it is whole and within its limits."""
    if not isinstance(x, int) or not low <= x <= high:
        got = x if isinstance(x, (int, float)) else f"a {kind_of(x)}"
        raise ValueError(
            f"{what} takes a whole number from {low:,} to {high:,}, not {got}; write it in digits"
        )
    return x


def tensor_of(x: Datum) -> Tensor:
    """A Tensor as it is; a number or a list as a constant."""
    return x if isinstance(x, Tensor) else constant(array_of(x))


def variable(x: Datum) -> Tensor:
    """A new variable, with a gradient."""
    return Tensor.make_const(tensor_of(x), requires_grad=True)


def constant(array: np.ndarray) -> Tensor:
    """A Tensor without a gradient, on NumPy's device, so that no kernel is compiled while somebody waits."""
    return Tensor(array, device=ndl.cpu_numpy(), dtype="float32", requires_grad=False)


def array_of(x: Datum) -> np.ndarray:
    """Numbers in nested lists of equal lengths."""
    if isinstance(x, list) and any(isinstance(number, Tensor) for number in _flat(x)):
        raise TypeError("a list of Tensors is not a Tensor; join them: stack([a, b])")
    try:
        return np.array(x, dtype="float32")
    except ValueError:
        raise ValueError(
            "the rows have different lengths, so this list is not a Tensor; make them equally long"
        ) from None


def _flat(items: list) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


def filled(shape: tuple[int, ...], fill: Callable[[tuple[int, ...]], Any]) -> Tensor:
    """A new Tensor of a shape that is checked before it is filled."""
    if min(shape, default=1) < 1:
        raise ValueError(f"a shape has lengths of at least 1, not {shape}")
    check_shape(shape)
    return constant(fill(shape))


def check_shape(shape: Sequence[int]) -> None:
    """Refuse a shape that has too many axes or elements."""
    if len(shape) > MOST_AXES:
        raise ValueError(
            f"a shape of {len(shape)} axes has more axes than {MOST_AXES}, the most it may have; use fewer"
        )
    if math.prod(shape) > LARGEST_TENSOR:
        raise ValueError(
            f"a shape {tuple(shape)} has {math.prod(shape):,} elements; it may have at most "
            f"{LARGEST_TENSOR:,}, such as (100, 100)"
        )


class Budget:
    """Count nodes and elements, and compute only what stays within the limits."""

    def __init__(self, times: int = 1) -> None:
        self.most_nodes = times * MOST_NODES
        self.most_elements = times * MOST_ELEMENTS
        self.elements = 0
        self.known: set[Value] = set()

    def admit(self, values: Sequence[Value]) -> None:
        """Compute lazy nodes and all that leads to them.

        If they are too many or too large, raise ValueError before anything is computed.
        """
        new = []
        waiting = list(values)
        while waiting:
            node = waiting.pop()
            if node not in self.known:
                self.known.add(node)
                new.append(node)
                waiting += node.inputs
        if len(self.known) > self.most_nodes:
            raise ValueError(
                f"the graph would have more than {self.most_nodes:,} nodes, the most it may have; use fewer"
            )
        for node in new:
            tensors: Sequence[Any] = node.specs if isinstance(node, TensorTuple) else [node]
            for tensor in tensors:
                check_shape(tensor.shape)
                self.elements += math.prod(tensor.shape)
        if self.elements > self.most_elements:
            raise ValueError(
                f"all Tensors together would have more than {self.most_elements:,} elements, the most that "
                "they may have; use smaller ones"
            )
        for value in values:
            value.realize_cached_data()


def arithmetic(function: Callable[[Any, Any], Any], x: Number, y: Number) -> Number:
    """Combine two numbers in floating point, so that nothing can grow without bound."""
    if function is operator.matmul:
        raise TypeError("@ multiplies matrices, and these are numbers; use *")
    try:
        result = function(float(x), float(y))
    except OverflowError:
        result = math.inf
    except ZeroDivisionError:
        raise ValueError(
            "this divides by 0, which plain numbers can't; give one a name, x = 0, and see what comes out"
        ) from None
    if isinstance(result, complex):
        raise ValueError(f"({x:g}) ** {y:g} is not a real number; take the power of a positive number")
    if not abs(result) <= LARGEST_NUMBER:
        raise ValueError(
            f"the result is larger than {LARGEST_NUMBER:g}, the largest number; use smaller ones"
        )
    whole = isinstance(x, int) and isinstance(y, int) and function is not operator.truediv
    return int(result) if whole and result.is_integer() and abs(result) <= LARGEST_INTEGER else result
