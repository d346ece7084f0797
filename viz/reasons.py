"""Why a step of `viz.steps` is as it is, in a sentence or two: what operators do with rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from needle.autograd import Tensor, Value
from needle.graph import Op
from needle.reverse import Adjoint

from .constants import ONE_HOT
from .expressions import Name
from .text import number

__all__ = ["of_partial", "of_value"]

Names = Mapping[Value, Name]
Sentence = Callable[[Op, Sequence[Tensor], Tensor, Sequence[str]], str]  # operator, operands, result, names


def of_value(op: Op | str | None, inputs: Sequence[Value], node: Value, names: Names) -> str:
    """What an operator does with the axes of its operands; empty where there is nothing to say."""
    return _say(VALUES, op, inputs, node, names)


def of_partial(adjoint: Adjoint, place: int, names: Names) -> str:
    """Why the operator of a node passes this on to the operand at a place."""
    node = adjoint.node
    said = _say(PARTIALS, node.op, node.inputs, node, names, place)
    operand = node.inputs[place]
    alike = isinstance(operand, Tensor) and isinstance(node, Tensor) and operand.shape == node.shape
    if said or alike or type(node.op).__name__ not in ELEMENT_BY_ELEMENT:
        return said
    used = math.prod(node.shape) // max(math.prod(operand.shape), 1)
    return f"Each number of {names[operand]} was used {used} times: what comes back from these is summed."


def _say(
    sentences: Mapping[str, Sentence],
    op: Op | str | None,
    inputs: Sequence[Value],
    node: Value,
    names: Names,
    place: int | None = None,
) -> str:
    kind = op if isinstance(op, str) else type(op).__name__
    key = f"{kind} {place}" if place is not None and kind in ("MatMul", "Conv") else kind
    tensors = [x for x in (*inputs, node) if isinstance(x, Tensor)]
    if (
        key not in sentences
        or len(tensors) <= len(inputs)
        or (kind != "DivScalar" and all(x.size == 1 for x in tensors))
    ):
        return ""
    return sentences[key](op, tensors[:-1], tensors[-1], [str(names.get(x, "it")) for x in (*inputs, node)])  # type: ignore[arg-type]


# Each gets the operator, its operands, its result, and the names of all of these, the result's last.


def _product(_op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]) -> str:
    a, b, c = names
    if min(x.ndim for x in operands) < 2:
        return ""
    return (
        f"Row i of {a} meets column j of {b}: multiplied in pairs and summed, they give entry [i, j] of {c}."
    )


def _to_the_left(_op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]) -> str:
    a, b, c = names
    if min(x.ndim for x in operands) < 2:
        return ""
    return (
        f"{a}[i, k] went into all of row i of {c}, each time multiplied by an entry of row k of {b}. So its "
        f"adjoint is row i of {c}'s adjoint times row k of {b}, summed: {b}ᵀ turns that row into a column."
    )


def _to_the_right(_op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]) -> str:
    a, b, c = names
    if min(x.ndim for x in operands) < 2:
        return ""
    rows = operands[0].shape[-2]
    return (
        f"{b}[k, j] was used by all {rows} rows: in row i it was multiplied by {a}[i, k]. So its adjoint is "
        f"column k of {a} times column j of {c}'s adjoint, summed over the rows: {a}ᵀ turns that column "
        "into a row."
    )


def _sum(op: Op, operands: Sequence[Tensor], out: Tensor, _names: Sequence[str]) -> str:
    (a,) = operands
    if out.size == 1:
        return f"All {a.size:,} numbers are summed."
    if a.ndim == 2:
        return "Each row is summed to one number." if a.shape[0] == out.size else "Each column is summed."
    return ""


def _sum_back(_op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]) -> str:
    return f"Each number went into its sum once, as it is. So each gets the adjoint of {names[-1]} as it is."


def _divided(op: Op, operands: Sequence[Tensor], out: Tensor, names: Sequence[str]) -> str:
    rows = _summed_rows(op, operands[0])
    sign = ", and the sign changes" if rows and op.scalar < 0 else ""  # type: ignore[attr-defined]
    return f"{names[0]} is a sum over {rows} rows: divided by {rows} it is their mean{sign}." if rows else ""


def _divided_back(op: Op, operands: Sequence[Tensor], out: Tensor, names: Sequence[str]) -> str:
    rows = _summed_rows(op, operands[0])
    because = f" It is a mean over {rows} rows, so each row counts 1/{rows}." if rows else ""
    by = number(op.scalar)  # type: ignore[attr-defined]
    by = f"({by})" if by.startswith("−") else by
    return f"If {names[0]} changes by 1, {names[-1]} changes by 1/{by}.{because}" if rows else ""


def _summed_rows(op: Op, operand: Tensor) -> int:
    """How many rows were summed, if it is as many as a sum is divided by; otherwise 0."""
    below: Value = operand
    if type(below.op).__name__ == "Negate":
        below = below.inputs[0]
    if type(below.op).__name__ != "Summation" or not isinstance(below.inputs[0], Tensor):
        return 0
    rows = (*below.inputs[0].shape, 1)[0]
    return rows if rows > 1 and abs(op.scalar) == rows else 0  # type: ignore[attr-defined]


def _same_for_each(words: str) -> Sentence:
    return lambda _op, _operands, _out, names: words.format(*names, out=names[-1])


VALUES: dict[str, Sentence] = {
    "MatMul": _product,
    "Conv": _same_for_each(
        "At each place of {out}, {1} is laid on a window of {0}: multiplied in pairs and summed."
    ),
    "Summation": _sum,
    "DivScalar": _divided,
    "BroadcastTo": _same_for_each("The same numbers, again and again along the new axis."),
    "LogSoftmax": _same_for_each("In each row by itself: z − log Σ exp(z). So exp of a row sums to 1."),
    "Softmax": _same_for_each("In each row by itself: exp(z) / Σ exp(z). So a row sums to 1."),
    "LogSumExp": _same_for_each("log Σ exp(z), for each row by itself."),
    "Mask": _same_for_each("What stands where {1} is not 0 is kept; all else is 0."),
    ONE_HOT: _same_for_each("A row for each label, with a 1 in the label's column."),
}
PARTIALS: dict[str, Sentence] = {
    "MatMul 0": _to_the_left,
    "MatMul 1": _to_the_right,
    "Conv 0": _same_for_each(
        "Each number of {0} lay in several windows: what comes back from these is summed."
    ),
    "Conv 1": _same_for_each(
        "{1} was laid on each window of {0}: what comes back from all of these is summed."
    ),
    "Summation": _sum_back,
    "DivScalar": _divided_back,
    "BroadcastTo": _same_for_each(
        "Each number of {0} was used several times: the adjoints of its copies are summed."
    ),
    "LogSoftmax": _same_for_each(
        "exp({out}) is the softmax. Each row gets its own adjoint, less the row's sum times the softmax."
    ),
    "LogSumExp": _same_for_each(
        "The derivative of logsumexp is softmax: each row's adjoint is shared out as the softmax says."
    ),
    "Mask": _same_for_each("Only what was kept has changed {out}: to the rest comes 0."),
    "ReLU": _same_for_each("Where {0} was above 0, its adjoint is that of {out}; elsewhere it is 0."),
    "Transpose": _same_for_each("Back to the places where the numbers came from."),
    "Permute": _same_for_each("Back to the places where the numbers came from."),
    "Reshape": _same_for_each("The same numbers, back in the shape of {0}."),
    "Slice": _same_for_each("Only the part that was taken has changed {out}: to the rest of {0} comes 0."),
}
ELEMENT_BY_ELEMENT = {"EWiseAdd", "EWiseMul", "EWiseDiv", "EWisePow", "Maximum", "Minimum", "Where"}
