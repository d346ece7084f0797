"""Selection: compare, and choose between numbers.

Where a number is not chosen its gradient is 0, even if it is infinite or NaN.
"""

from __future__ import annotations

from numbers import Real

from ..backend_ndarray.device import common_device
from ..backend_ndarray.scalar_functions import COMPARISONS
from ..backend_ndarray.shapes import broadcast_shape, python_number, result_dtype
from ..backend_selection import checked_not_zero, elementwise
from ..graph import Spec, TensorOp, is_tensor
from .families import Elementwise, ElementwiseScalar, Pointwise

__all__ = [
    "Clip", "Compare", "CompareScalar", "Mask", "Maximum", "Minimum", "NotZero", "Where", "clip", "compare",
    "mask", "maximum", "minimum", "not_zero", "where",
]  # fmt: skip


class Compare(Elementwise):
    """1 where the relation holds, else 0; a step function, through which no gradient flows."""

    differentiable = False

    def __init__(self, function: str):
        self.function = function


class CompareScalar(ElementwiseScalar):
    """1 where the relation to a number holds, else 0; a step function, through which no gradient flows."""

    differentiable = False

    def __init__(self, function: str, scalar):
        super().__init__(scalar)
        self.function = function


def compare(a, relation: str, b):
    """1 where a stands in `relation` to b, else 0, in the dtype of the operands; no gradient flows through.

    Parameters
    ----------
    a : Tensor
    b : Tensor or number
    relation : "eq", "ne", "lt", "le", "gt" or "ge"
        =, ≠, <, ≤, > or ≥.
    """
    if relation not in COMPARISONS:
        raise ValueError(
            f"compare: the relation is one of {', '.join(sorted(COMPARISONS))}, not {relation!r}"
        )
    return Compare(relation)(a, b) if is_tensor(b) else CompareScalar(relation, b)(a)


class Mask(Elementwise):
    """y = a where b is not 0, else 0: dy = da there. The masked elements may be infinite or NaN."""

    function = "mask"

    def gradient(self, out_grad, node):
        return mask(out_grad, node.inputs[1]), None


def mask(a, b):
    """`a` where `b` is not 0, else 0, even where `a` is infinite or NaN; broadcast."""
    return Mask()(a, b)


class Where(Pointwise):
    """y = a where the condition is not 0, else b: dy is da or db."""

    def infer(self, condition, a, b):
        shape = broadcast_shape("where", condition.shape, a.shape, b.shape)
        return Spec(shape, result_dtype("add", a, b), common_device("where", (condition, a, b)))

    def compute(self, condition, a, b):
        dtype = result_dtype("add", a, b)
        if condition.dtype != dtype:
            is_bool = condition.dtype == bool
            condition = (condition if is_bool else elementwise("ne", condition, 0)).astype(dtype)
        kept = elementwise("mask", a, condition)
        return elementwise("add", kept, elementwise("mask", b, elementwise("eq", condition, 0)))

    def gradient(self, out_grad, node):
        condition, a, b = node.inputs
        return (
            None,
            mask(out_grad, condition) if a.requires_grad else None,
            mask(out_grad, compare(condition, "eq", 0)) if b.requires_grad else None,
        )


def where(condition, a, b):
    """`a` where the condition is not 0, else `b`, element by element; broadcast.

    The branch not taken never touches the value or the gradient, even where it is infinite or NaN.

    Parameters
    ----------
    condition : Tensor or array
        No gradient flows to it.
    a, b : Tensor, array or number
        At least one of the three is a Tensor; the others become constants beside it.
    """
    tensor = next((x for x in (a, b, condition) if is_tensor(x)), None)
    if tensor is None:
        raise TypeError("where: at least one operand must be a Tensor; wrap one: needle.Tensor(...)")
    dtype = tensor.dtype if tensor.dtype.kind == "f" else None
    return Where()(
        _constant(condition, tensor.device, "bool"),
        _constant(a, tensor.device, dtype),
        _constant(b, tensor.device, dtype),
    )


def _constant(x, device, dtype):
    """A Tensor as it is; a number or an array as a constant."""
    if is_tensor(x):
        return x
    return TensorOp.out(x, device=device, dtype=dtype, requires_grad=False)


class Maximum(Elementwise):
    """y = max(a, b): dy is da where a is the larger, db where b is, their mean where both are.

    Where one is NaN, neither is the larger: then dy is da + db.
    """

    function = "maximum"
    loses = "lt"  # the relation to the other operand of the one that is not chosen

    def gradient(self, out_grad, node):
        a, b = node.inputs
        half = out_grad * (1 - compare(a, "eq", b) * 0.5)  # where both are the maximum, each gets half
        return tuple([
            mask(half, compare(compare(x, self.loses, other), "eq", 0)) if x.requires_grad else None
            for x, other in ((a, b), (b, a))
        ])  # fmt: skip


def maximum(a, b):
    """The larger of a and b, element by element, broadcast; NaN where one is NaN."""
    return Maximum()(a, b)


class Minimum(Maximum):
    """y = min(a, b): dy is da where a is the smaller, db where b is, their mean where both are.

    Where one is NaN, neither is the smaller: then dy is da + db.
    """

    function = "minimum"
    loses = "gt"


def minimum(a, b):
    """The smaller of a and b, element by element, broadcast; NaN where one is NaN."""
    return Minimum()(a, b)


class Clip(Pointwise):
    """y = a within `low` and `high`, either of which may be None: dy = da there, 0 beyond."""

    def __init__(self, low=None, high=None):
        self.low = low
        self.high = high

    def bounds(self) -> list[tuple[str, str, float]]:
        """For each bound: the function that applies it, the relation that holds within it, and the bound."""
        both = [("maximum", "ge", self.low), ("minimum", "le", self.high)]
        return [bound for bound in both if bound[2] is not None]

    def infer(self, a):
        spec = Spec(a.shape, a.dtype, a.device)
        for function, _, bound in self.bounds():
            spec = spec._replace(dtype=result_dtype(function, spec, bound))
        return spec

    def compute(self, a):
        for function, _, bound in self.bounds():
            a = elementwise(function, a, bound)
        return a

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        for _, relation, bound in self.bounds():
            out_grad = mask(out_grad, compare(a, relation, bound))
        return out_grad


def clip(a, low=None, high=None):
    """`a`, with elements below `low` raised to it, those above `high` lowered to it. None means no bound.

    The derivative is 1 from `low` to `high`, both included, and 0 outside.
    """
    low, high = python_number(low), python_number(high)
    for bound in (low, high):
        if bound is not None and not isinstance(bound, Real):
            raise TypeError(
                f"clip: a bound is a number or None, got a {type(bound).__name__}; for bounds that differ "
                "from element to element, use maximum and minimum"
            )
    return Clip(low, high)(a)


class NotZero(TensorOp):
    """The operand itself, which must not hold a 0: else it is an error with these words."""

    def __init__(self, refusal: str):
        self.refusal = refusal

    def infer(self, a):
        return Spec(a.shape, a.dtype, a.device)

    def compute(self, a):
        return checked_not_zero(a, self.refusal)

    def gradient(self, out_grad, node):
        return out_grad


def not_zero(a, refusal: str):
    """`a` itself; if there is a 0 in it when it is computed, a ValueError that says `refusal`."""
    return NotZero(refusal)(a)
