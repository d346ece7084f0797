"""Why a step of `viz.steps` is as it is, in a sentence or two: what operators do with rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from needle.autograd import Tensor, Value
from needle.backend_selection import to_numpy
from needle.graph import Op
from needle.reverse import Adjoint

from .expressions import Name
from .text import number

__all__ = ["of_gradient", "of_partial", "of_seed", "of_sum", "of_value"]

Names = Mapping[Value, Name]
Sentence = Callable[[Op, Sequence[Tensor], Tensor, Sequence[str]], str]  # operator, operands, result, names


def of_value(op: Op | str | None, inputs: Sequence[Value], node: Value, names: Names) -> str:
    """What an operator does with the axes of its operands; empty where there is nothing to say."""
    return _say(VALUES, op, inputs, node, names)


def of_seed(output: Tensor, name: Name, given: bool) -> str:
    """What an adjoint is, and what it is to begin with."""
    one = output.size == 1
    it = str(name) if one else f"the sum of all numbers of {name}"
    begin = f"Of {name} itself it is 1{'' if one else ' for each of its numbers'}: "
    if given:
        it, begin = f"{it}, each times its number here,", "Here it begins with the numbers you gave: "
    return (
        f"The adjoint of a node, written with a bar, says how much {it} changes per small change of the "
        f"node. {begin}the seed."
    )


def of_gradient(output: Tensor, node: Value, names: Names) -> str:
    """What the adjoint of a leaf is good for."""
    if node.op is not None or output.size > 1:
        return ""
    return f"{names[node]} is a leaf: this is the gradient of {names[output]} with respect to it."


def of_sum(adjoint: Adjoint, names: Names) -> str:
    """Why the adjoint of a node is a sum."""
    node, partials, total = adjoint
    users = [*dict.fromkeys(str(names[user]) for user, _ in partials if user is not None)]
    times = "twice" if len(partials) == 2 else f"{len(partials)} times"
    where = " and ".join(filter(None, [", ".join(users[:-1]), users[-1]]))
    said = f"{names[node]} was used {times}, in {where}: what comes back from each use is added up."
    log_sum = next((user for user, _ in partials if type(user.op).__name__ == "LogSumExp"), None)
    if log_sum is None:
        return said
    return said + _prediction_minus_truth(node, log_sum.op, adjoint, total, names)


def of_partial(adjoint: Adjoint, place: int, partial: Value, names: Names) -> str:
    """Why the operator of a node passes this on to the operand at a place."""
    node = adjoint.node
    operand = node.inputs[place]
    kind = type(node.op).__name__
    alike = isinstance(operand, Tensor) and isinstance(node, Tensor) and operand.shape == node.shape
    if not alike and kind in ELEMENT_BY_ELEMENT:
        used = math.prod(node.shape) // max(math.prod(operand.shape), 1)
        return f"Each number of {names[operand]} was used {used} times: what comes back from these is summed."
    said = _say(PARTIALS, node.op, node.inputs, node, names, place)
    if kind == "LogSoftmax":
        said += _prediction_minus_truth(operand, node.op, adjoint, partial, names)
    return said


def _prediction_minus_truth(scores: Value, op: Op, adjoint: Adjoint, result: Value, names: Names) -> str:
    """What arrives at the scores of a softmax loss, if the numbers are the ones of such a loss."""
    assert isinstance(scores, Tensor)  # not a tuple: it has a softmax
    factors = [x for user, _ in adjoint.partials if user is not None for x in user.inputs]
    others = (x for x in factors if isinstance(x, Tensor) and x is not adjoint.node and x is not scores)
    truth = next((x for x in others if x.shape == scores.shape), None)
    if truth is None or any(x.cached_data is None for x in (scores, truth, result)):
        return ""
    axes = op.axes  # type: ignore[attr-defined]
    z, y, found = (to_numpy(x.cached_data) for x in (scores, truth, result))
    powers = np.exp(z - z.max(axis=axes, keepdims=True))
    difference = powers / powers.sum(axis=axes, keepdims=True) - y
    if (y < 0).any() or not np.allclose(y.sum(axis=axes), 1) or not difference.any():
        return ""
    scale = float((difference * found).sum() / (difference**2).sum())
    if scale <= 0 or not np.allclose(found, scale * difference, rtol=1e-3, atol=1e-6):
        return ""
    written, whole = f"softmax({names[scores]}) − {names[truth]}", round(1 / scale)
    if not math.isclose(scale, 1, rel_tol=1e-4):
        divides = math.isclose(whole * scale, 1, rel_tol=1e-4)
        written = f"({written}) {f'/ {whole}' if divides else f'· {number(scale)}'}"
    return f" Together it is {written}: prediction minus truth."


def _say(
    sentences: Mapping[str, Sentence],
    op: Op | str | None,
    inputs: Sequence[Value],
    node: Value,
    names: Names,
    place: int | None = None,
) -> str:
    kind = op if isinstance(op, str) else type(op).__name__
    key = f"{kind} {place}" if f"{kind} {place}" in sentences else kind
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


def _added(_op: Op, operands: Sequence[Tensor], out: Tensor, names: Sequence[str]) -> str:
    a, b, _ = names
    shapes = [x.shape for x in operands]
    if shapes[0] == shapes[1]:
        return "Entry by entry: numbers in the same place are added."
    for small, large, name, to in ((*shapes, a, b), (*shapes[::-1], b, a)):
        if large == out.shape and len(large) == 2 and small in ((large[1],), (1, large[1]), (large[0], 1)):
            return f"{name} is added to each {'column' if small == (large[0], 1) else 'row'} of {to}."
    return ""


def _added_back(_op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]) -> str:
    a, b, c = names
    both = operands[0].shape == operands[1].shape
    grows, get = (f"{a} or of {b}", "both get") if both else (a, "it gets")
    return f"If a number of {grows} grows by 1, the sum grows by 1. So {get} the adjoint of {c}, unchanged."


def _added_back_to_the_right(_op: Op, operands: Sequence[Tensor], out: Tensor, names: Sequence[str]) -> str:
    a, b, c = names
    return "" if operands[0].shape == operands[1].shape else _added_back(_op, operands, out, (b, a, c))


def _multiplied(_op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]) -> str:
    if operands[0].shape != operands[1].shape:
        return ""
    if operands[0] is operands[1]:
        return f"Entry by entry: each number of {names[0]} times itself."
    said = f"Entry by entry: each number of {names[0]} times the one of {names[1]} in the same place."
    for x, name, other in zip(operands, names, names[1::-1], strict=False):
        if x.cached_data is not None and np.isin(to_numpy(x.cached_data), (0, 1)).all():
            return f"{said} {name} is 0 or 1 everywhere: where it is 1, the number of {other} stays."
    return said


def _multiplied_back(_op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]) -> str:
    return _factor(names[0], names[1], names[2])


def _multiplied_back_to_the_right(
    _op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]
) -> str:
    return _factor(names[1], names[0], names[2])


def _factor(one: str, other: str, out: str) -> str:
    if one == other:
        return ""
    return (
        f"If a number of {one} grows by 1, that of {out} grows by the one of {other} in the same place: "
        f"{other} is the derivative of {out} with respect to {one}."
    )


def _sum(op: Op, operands: Sequence[Tensor], out: Tensor, _names: Sequence[str]) -> str:
    (a,) = operands
    if out.size == 1:
        return f"All {a.size:,} numbers are summed."
    if a.ndim == 2:
        return "Each row is summed to one number." if a.shape[0] == out.size else "Each column is summed."
    return ""


def _sum_back(_op: Op, operands: Sequence[Tensor], out: Tensor, names: Sequence[str]) -> str:
    (a,) = operands
    copied = ": it is copied to all places"
    if a.ndim == 2 and out.size > 1:
        copied = f": it is copied {'across the row' if a.shape[0] == out.size else 'down the column'}"
    return (
        f"If a number of {names[0]} grows by 1, its sum in {names[-1]} grows by 1. So each number gets the "
        f"adjoint of its sum, unchanged{copied}."
    )


def _divided(op: Op, operands: Sequence[Tensor], out: Tensor, names: Sequence[str]) -> str:
    rows = _summed_rows(op, operands[0])
    sign = ", and the sign changes" if rows and op.scalar < 0 else ""  # type: ignore[attr-defined]
    return f"{names[0]} is a sum over {rows} rows: divided by {rows} it is their mean{sign}." if rows else ""


def _divided_back(op: Op, operands: Sequence[Tensor], _out: Tensor, names: Sequence[str]) -> str:
    rows = _summed_rows(op, operands[0])
    if not rows:
        return ""
    minus, mean = ("−", "minus the mean") if op.scalar < 0 else ("", "the mean")  # type: ignore[attr-defined]
    return (
        f"If {names[0]} changes by 1, {names[-1]} changes by {minus}1/{rows}. {names[-1]} is {mean} over "
        f"{rows} rows, so each row counts {minus}1/{rows}."
    )


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
    "EWiseAdd": _added,
    "EWiseMul": _multiplied,
    "Negate": _same_for_each("The sign of each number changes."),
    "Summation": _sum,
    "DivScalar": _divided,
    "BroadcastTo": _same_for_each("The same numbers, again and again along the new axis."),
    "LogSoftmax": _same_for_each("In each row by itself: z − log Σ exp(z). So exp of a row sums to 1."),
    "Softmax": _same_for_each("In each row by itself: exp(z) / Σ exp(z). So a row sums to 1."),
    "LogSumExp": _same_for_each("log Σ exp(z), for each row by itself."),
    "Mask": _same_for_each("What stands where {1} is not 0 is kept; all else is 0."),
    "OneHot": _same_for_each("A row for each label, with a 1 in the label's column."),
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
    "EWiseAdd 0": _added_back,
    "EWiseAdd 1": _added_back_to_the_right,
    "EWiseMul 0": _multiplied_back,
    "EWiseMul 1": _multiplied_back_to_the_right,
    "Negate": _same_for_each("If a number of {0} grows by 1, that of {out} falls by 1. So the sign flips."),
    "Exp": _same_for_each("The derivative of exp is exp itself, and that is {out}."),
    "Tanh": _same_for_each("The derivative of tanh(z) is 1 − tanh(z)², and tanh(z) is {out}."),
    "Summation": _sum_back,
    "DivScalar": _divided_back,
    "BroadcastTo": _same_for_each(
        "Each number of {0} was used several times: the adjoints of its copies are summed."
    ),
    "LogSoftmax": _same_for_each(
        "exp({out}) is the softmax. Each row gets its own adjoint, less the row's sum times the softmax."
    ),
    "LogSumExp": _same_for_each(
        "The derivative of logsumexp is softmax: exp of each number, divided by the sum of exp over its row. "
        "So each number gets the row's adjoint times its own softmax."
    ),
    "Mask": _same_for_each("Only what was kept has changed {out}: to the rest comes 0."),
    "ReLU": _same_for_each("Where {0} was above 0, its adjoint is that of {out}; elsewhere it is 0."),
    "Transpose": _same_for_each("Back to the places where the numbers came from."),
    "Permute": _same_for_each("Back to the places where the numbers came from."),
    "Reshape": _same_for_each("The same numbers, back in the shape of {0}."),
    "Slice": _same_for_each("Only the part that was taken has changed {out}: to the rest of {0} comes 0."),
}
ELEMENT_BY_ELEMENT = {"EWiseAdd", "EWiseMul", "EWiseDiv", "EWisePow", "Maximum", "Minimum", "Where"}
