"""Lecture 08, operators and their gradients: exercises, usual mistakes, predictions, and all operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import needle as ndl
from needle import ops
from needle.autograd import Tensor, gradients
from needle.graph import TensorOp
from needle.ops import families

from .checking import Case, Exercise, Fault, Lecture, WrongAnswer, derivatives, given, unshared
from .checking.contracts import Derivatives
from .checking.inputs import FILLS

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade

OWN = "This is the library's own rule, or its walk. The exercise is to write the rule yourself."
NUMPY = "Use `ndl.exp`, `ndl.log` and so on, not NumPy: a rule is written in Tensor operations."
TUPLE = "`node.inputs` is a tuple, also where there is one operand. Take it out: `node.inputs[0]`."

#: What people write who take `node.inputs` for the operand.
AS_IF_ONE: list[Callable] = [
    lambda out_grad, node: out_grad * node.inputs,
    lambda out_grad, node: out_grad / node.inputs,
    lambda out_grad, node: ops.exp(node.inputs),
    lambda out_grad, node: node.inputs > 0,
    lambda out_grad, node: node.inputs.shape,
    lambda out_grad, node: node.inputs**2,
]
OPERATORS: dict[str, type] = {}  # by the name of the exercise that asks for its rule


# --- The cases of a rule ------------------------------------------------------------------------------------


def filled(fill: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape, filled in one of the ways of `FILLS`."""
    return FILLS[fill](int(np.prod(shape))).reshape(shape)


def at(line: str, *operands: Any, out_grad: Any) -> Case:
    """A case for a rule: the line that makes a node of a (and b), and what came back, or how to fill it."""

    def make() -> dict[str, Any]:
        named = dict(zip("ab", map(Tensor, operands), strict=False))
        node = eval(line, {"ndl": ndl, **named})
        back = filled(out_grad, node.shape) if isinstance(out_grad, str) else out_grad
        return {**named, "out_grad": Tensor(back), "node": node}

    return given(make, "out_grad", "node", program=f"node = {line}")


SIGNED = ("signed", "counted", "irregular", "equal")
POSITIVE = ("counted", "falling")


def tried(
    choices: Sequence[tuple], fills: Sequence[str] = SIGNED, others: Sequence[str] = SIGNED
) -> SearchStrategy[Case]:
    """Cases for a rule. A choice is a line and the shapes of its operands; `others` fill the second one."""

    def make(parts: tuple) -> Case:
        (line, *shapes), *two, back = parts
        return at(line, *map(filled, two, shapes), out_grad=back)

    drawn_from = (choices, fills, others, ("signed", "irregular", "counted"))
    return st.tuples(*[st.sampled_from(list(few)) for few in drawn_from]).map(make)


def each(line: str, *calls: tuple) -> list[tuple]:
    """Choices for `tried`: what a call puts into the line, and the shapes of its operands."""
    return [(line.format(said), *shapes) for said, *shapes in calls]


class DerivativesOfRules(Derivatives):
    """As `derivatives`, with respect to what came back and the operands, but not to the `node` made of them."""

    def compare(self, attempt: Any) -> Fault | None:
        leaves = [x for x in attempt.everything.values() if x.op is None]
        return derivatives.compare(SimpleNamespace(**{**vars(attempt), "inputs": leaves}))  # type: ignore[arg-type]


def rule(
    *cases: Case, draws: SearchStrategy[Case], otherwise: str, number: int = 60
) -> Callable[[Callable], Exercise]:
    """An exercise that asks for the rule of an operator."""
    operator: Any = type(cases[0].make()["node"].op)
    library = [operator.gradient, families.Elementwise.gradient_as_tuple, TensorOp.gradient_as_tuple]
    library += [Tensor.backward, gradients, families.unbroadcast, families.sum_to, families.Reduction.spread]
    make = lecture.exercise(
        *cases,
        draws=draws,
        number=number,
        otherwise=otherwise,
        without=dict.fromkeys(library, OWN),
        contracts=(DerivativesOfRules(),),
        unless=(unshared,),  # a rule may pass on what came back, as that of a sum does
    )

    def made(right: Callable) -> Exercise:
        OPERATORS[right.__name__] = operator
        exercise = make(right)
        exercise.mistake(NUMPY)(lambda out_grad, node: out_grad * np.exp(node.inputs[0]))
        for wrong in AS_IF_ONE:
            exercise.mistake(TUPLE)(wrong)
        return exercise

    return made


# --- 1 A gradient check of your own -------------------------------------------------------------------------


def squares(x):
    """x² at every position."""
    return x * x


def products_of_neighbours(x):
    """Two rows: the products of neighbours, and their sums."""
    return np.stack([x[1:] * x[:-1], x[1:] + x[:-1]])


def neighbours_in_a_ring(x):
    """The product of each number and the one before it; before the first one stands the last."""
    return x * np.roll(x, 1)


def total(x):
    """The sum, as a number."""
    return np.sum(x**3)


def from_a_whole(x):
    """How far each number is from 5 millionths below a whole one: there the width of the nudge shows."""
    return np.abs(x - np.round(x) + 5e-6)


def numbers(f: Callable, x: Any, out_grad: Any) -> Case:
    """A case for the gradient check; what came back is an array, or how to fill it."""

    def make() -> dict[str, Any]:
        at_x = np.array(x)
        back = filled(out_grad, np.shape(f(at_x))) if isinstance(out_grad, str) else np.array(out_grad)
        return {f.__name__: f, "x": at_x, "out_grad": back}

    return given(make, f.__name__, "x", "out_grad")


@lecture.exercise(
    numbers(squares, [1.0, 2.0, 3.0], [1.0, 10.0, 100.0]),
    numbers(products_of_neighbours, [1.0, 2.0, -1.0], [[1.0, 2.0], [3.0, -1.0]]),
    numbers(total, [[1.0, 2.0], [0.5, -1.0]], 2.0),
    draws=st.tuples(
        st.sampled_from([from_a_whole, products_of_neighbours, squares, neighbours_in_a_ring, total]),
        st.sampled_from([(2,), (2, 3), (3, 2), (4,), (2, 2, 3), (3, 3)]),
        st.sampled_from(["zeros between", "signed", "irregular", "zeros"]),
        st.sampled_from(["counted", "irregular", "signed"]),
    ).map(lambda x: numbers(x[0], filled(x[2], x[1]), x[3])),
    otherwise="Take one index, nudge only that number up and down, and print how far each result moves.",
)
def numerical(f, x, out_grad):
    slopes = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[index] = 1e-5
        moved = f(x + nudge) - f(x - nudge)
        slopes[index] = (moved * out_grad).sum() / 2e-5
    return slopes


# --- 2 exp, log, relu ---------------------------------------------------------------------------------------

SIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
CUBE = np.arange(24.0).reshape(2, 3, 4)
THREE, BACK = [0.5, -1.0, 2.0], [1.0, 10.0, -2.0]
SMALL = ((2,), (3,), (2, 2), (1, 3), (2, 1), ())


@rule(
    at("ndl.exp(a)", THREE, out_grad=BACK),
    draws=tried([("ndl.exp(a)", shape) for shape in SMALL]),
    otherwise="Which function is the derivative of exp? Its value is already there, in `node`.",
)
def exp_rule(out_grad, node):
    return out_grad * node


@rule(
    at("ndl.log(a)", [0.5, 2.0, 4.0], out_grad=BACK),
    at("ndl.log(a)", [0.001, 2.0, 4.0], out_grad=BACK),
    draws=tried([("ndl.log(a)", shape) for shape in SMALL], POSITIVE),
    otherwise="The derivative of log(a) is 1/a.",
)
def log_rule(out_grad, node):
    return out_grad / node.inputs[0]


@rule(
    at("ndl.relu(a)", [2.0, -1.0, 3.0, -0.5], out_grad=[10.0, 20.0, -30.0, -40.0]),
    draws=tried(
        [("ndl.relu(a)", shape) for shape in SMALL], ["signed", "zeros between", "irregular", "zeros"]
    ),
    otherwise="Multiply what came back by 1 where `a` is above 0, and by 0 elsewhere: by `a > 0`.",
)
def relu_rule(out_grad, node):
    return out_grad * (node.inputs[0] > 0)


# --- 3 summation, broadcast_to ------------------------------------------------------------------------------

#: Along which axes a reduction may go, and of which shape: axes of one length hide what others show.
REDUCED = [
    ("(1,)", (2, 3)), ("(0,)", (2, 3)), ("1", (2, 3)), ("(1,)", (2, 2)), ("None", (2, 3)), ("(-1,)", (2, 3)),
    ("-2", (2, 3)), ("(0, 2)", (2, 3, 4)), ("(1,)", (2, 3, 2)), ("0", (2, 2)), ("(1, 0)", (2, 3, 2)),
    ("(-1, 0)", (2, 3, 2)), ("(-2, -1)", (2, 2, 3)), ("(0,)", (1, 3)), ("(1,)", (3, 1)), ("(0,)", (3,)),
    ("None", (2, 1, 2)), ("None", ()), ("(0, 1)", (2, 2)), ("-1", (3, 3)), ("(1,)", (2, 2, 2)),
]  # fmt: skip
#: The shape that a broadcast gives, and that of the operand.
SPREAD = [
    ((2, 3), (3,)), ((2, 3), (2, 1)), ((3, 3), (3, 1)), ((2, 2, 3), (2, 1)), ((2, 3, 4), (1, 3, 1)),
    ((3, 3), (3,)), ((2, 3, 2), (3, 1)), ((2, 3, 2), (2, 1, 2)), ((2, 2, 2), (2, 1, 1)), ((2, 3), (2, 3)),
    ((2, 1), (2, 1)), ((1, 3), (3,)), ((2, 3), ()), ((2, 3), (1, 1)),
]  # fmt: skip


@rule(
    at("ndl.summation(a)", SIX, out_grad=5.0),
    at("ndl.summation(a, (0,))", SIX, out_grad=[1.0, 2.0, 3.0]),
    draws=tried(each("ndl.summation(a, {})", *REDUCED)),
    number=100,
    otherwise="Each number that went into a sum gets what came back to that sum. Which sum did it go into?",
)
def summation_rule(out_grad, node):
    (a,) = node.inputs
    axes = range(a.ndim) if node.op.axes is None else np.atleast_1d(node.op.axes) % a.ndim
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(a.shape))
    return out_grad.reshape(kept).broadcast_to(a.shape)


@rule(
    at("ndl.broadcast_to(a, (2, 3))", [1.0, 2.0, 3.0], out_grad=[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]),
    at("ndl.broadcast_to(a, (2, 3))", [[1.0], [2.0]], out_grad=[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]),
    draws=tried(each("ndl.broadcast_to(a, {})", *SPREAD)),
    number=80,
    otherwise="Where did one number of the operand go? All that came back to its copies belongs to it.",
)
def broadcast_rule(out_grad, node):
    shape = node.inputs[0].shape
    shape = (1,) * (out_grad.ndim - len(shape)) + shape
    repeated = tuple(axis for axis, n in enumerate(shape) if n == 1)
    return out_grad.sum(repeated).reshape(node.inputs[0].shape)


# --- 4 matmul -----------------------------------------------------------------------------------------------

A23, B34 = SIX, np.arange(12.0).reshape(3, 4) - 4
FLAT = [
    ((2, 3), (3, 4)), ((2, 2), (2, 2)), ((3, 2), (2, 3)), ((1, 3), (3, 2)), ((2, 3), (3, 1)), ((2, 1), (1, 3)),
]  # fmt: skip


@rule(
    at("a @ b", A23, B34, out_grad=np.arange(8.0).reshape(2, 4)),
    draws=tried([("a @ b", *shapes) for shapes in FLAT]),
    otherwise="Write the three shapes side by side. Which product of `out_grad` and `b` has the shape of `a`?",
)
def matmul_rule(out_grad, node):
    a, b = node.inputs
    return [out_grad @ b.transpose(), a.transpose() @ out_grad]


# --- 5 logsumexp --------------------------------------------------------------------------------------------


@rule(
    at("ndl.logsumexp(a)", THREE, out_grad=3.0),
    at("ndl.logsumexp(a, (1,))", [[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]], out_grad=[1.0, 10.0]),
    draws=tried(
        each("ndl.logsumexp(a, {})", *REDUCED),
        ["falling", "irregular", "huge", "all huge", "hugely negative", "equal", "far apart"],
    ),
    number=100,
    otherwise="Take the chain: log passes back 1/sum, the sum repeats that, and exp multiplies it by exp(a).",
)
def logsumexp_rule(out_grad, node):
    (a,) = node.inputs
    axes = range(a.ndim) if node.op.axes is None else np.atleast_1d(node.op.axes) % a.ndim
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(a.shape))
    return out_grad.reshape(kept) * ndl.exp(a - node.reshape(kept))


# --- Practice: 6 a power and division, 7 reshape and transpose, 8 batches ---------------------------------------


def powers(*exponents: float) -> list[tuple]:
    """Powers of small arrays."""
    return each("ndl.power_scalar(a, {})", *[(n, shape) for n in exponents for shape in SMALL])


@rule(
    at("ndl.power_scalar(a, 3)", THREE, out_grad=BACK),
    at("ndl.power_scalar(a, 2)", [0.0, 4.0], out_grad=[1.0, 3.0]),
    draws=tried(powers(3, 2, 4), [*SIGNED, "zeros"]) | tried(powers(0.5, -1, 2.5, 1), POSITIVE),
    otherwise="The derivative of aⁿ is n · aⁿ⁻¹. Write it down for n = 3.",
)
def power_rule(out_grad, node):
    n = node.op.scalar
    return out_grad * n * node.inputs[0] ** (n - 1)


@rule(
    at("a / b", [6.0, 1.0, -2.0], [2.0, 4.0, 5.0], out_grad=BACK),
    draws=tried(
        [("a / b", shape, shape) for shape in SMALL],
        ["counted", "signed", "zeros between", "zeros"],
        ["signed", "falling", "irregular"],
    ),
    otherwise="Hold `b` fixed: a / b is a times 1/b. Then hold `a` fixed, and differentiate 1/b.",
)
def divide_rule(out_grad, node):
    a, b = node.inputs
    return [out_grad / b, -out_grad * a / (b * b)]


#: The new shape, and that of the operand.
RESHAPED = [
    ((6,), (2, 3)), ((2, 3), (6,)), ((3, 2), (2, 3)), ((4, 6), (2, 3, 4)), ((3, 2, 2), (4, 3)), (-1, (2, 2)),
    ((1, 2), (2,)), ((1,), ()), ((), (1, 1)),
]  # fmt: skip
#: What follows the operand, and its shape: some with several axes of one length.
SWAPPED = [
    ("", (2, 3)), (", (0, 1)", (2, 3, 4)), ("", (2, 3, 4)), (", (2, 0)", (2, 3, 4)), (", (0, -1)", (2, 3, 4)),
    (", (-3, 2)", (2, 3, 4)), (", (0, 2)", (2, 1, 3, 2)), (", (1, 3)", (2, 2, 1, 3)), (", (0, 1)", (2, 2, 2)),
    (", (0, 2)", (2, 2, 2)), (", (1, 2)", (2, 2, 2)), ("", (1, 3)),
]  # fmt: skip


@rule(
    at("ndl.reshape(a, (3, 2))", SIX, out_grad=[[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]),
    draws=tried(each("ndl.reshape(a, {})", *RESHAPED)),
    otherwise="The numbers stay in their order. Only the shape goes back to that of the operand.",
)
def reshape_rule(out_grad, node):
    return out_grad.reshape(node.inputs[0].shape)


@rule(
    at("ndl.transpose(a)", [[1.0, 2.0], [3.0, 4.0]], out_grad=[[1.0, 10.0], [100.0, 1000.0]]),
    at("ndl.transpose(a, (0, 2))", CUBE, out_grad=np.arange(24.0).reshape(4, 3, 2)),
    draws=tried(each("ndl.transpose(a{})", *SWAPPED)),
    otherwise="Two axes were swapped on the way there. Swap the same two on the way back: `node.op.axes`.",
)
def transpose_rule(out_grad, node):
    return out_grad.transpose(node.op.axes)


#: Batches of matrices: some operands lack an axis, or have length 1 there.
BATCHES = [
    ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 2)), ((2, 3, 4), (2, 4, 1)), ((2, 1, 3, 2), (3, 2, 2)),
    ((1, 3, 2), (2, 2, 3)), ((1, 1, 3, 2), (2, 2, 2, 2)), ((2, 3, 2, 2), (2, 1, 2, 3)), ((2, 2, 3, 2), (2, 2)),
    ((3, 1, 2), (2, 3)), ((2, 2, 2), (2, 2, 2)), ((2, 3), (3, 2)), ((2, 1, 1, 2), (3, 2, 1)),
    ((2, 2, 2, 1, 2), (2, 2)),
]  # fmt: skip


@rule(
    at("a @ b", CUBE / 10, np.arange(8.0).reshape(4, 2), out_grad=np.arange(12.0).reshape(2, 3, 2)),
    draws=tried([("a @ b", *shapes) for shapes in BATCHES]),
    number=80,
    otherwise="Print the shapes of your two products and of the operands: where they differ, an axis was "
    "broadcast.",
)
def batched_matmul_rule(out_grad, node):
    a, b = node.inputs
    fitting = []
    for partial, x in ((out_grad @ b.transpose(), a), (a.transpose() @ out_grad, b)):
        shape = (1,) * (partial.ndim - x.ndim) + x.shape
        repeated = tuple(i for i, n in enumerate(shape) if n < partial.shape[i])
        fitting.append(partial.sum(repeated).reshape(x.shape))
    return fitting


# --- The judge, and the exchange of rules -------------------------------------------------------------------


def tensor(x: Any) -> Tensor:
    """A Tensor in float64, where a nudge does not drown in rounding."""
    return Tensor(x, dtype="float64")


def judge(numerical: Callable) -> Callable[..., bool]:
    """The function `agree`, which nudges by the reader's gradient check, or else by the lecture's own.

    `agree(f, *arrays)` says whether nudging gives what the library's backward pass gives, if random numbers
    come back to the result of `f`; `agree(f, *arrays, rule=rule)`, whether it gives what this rule gives.
    """
    rng = np.random.default_rng(0)
    nudging = ready(numerical)

    def agree(f: Callable, *arrays: Any, rule: Callable | None = None) -> bool:
        tensors = [tensor(x) for x in arrays]
        out = f(*tensors)
        out_grad = tensor(rng.normal(size=out.shape))
        said = rule(out_grad, out) if rule else gradients(out, tensors, out_grad)
        for i, partial in enumerate(said if isinstance(said, (list, tuple)) else [said]):

            def moved(x: np.ndarray, i: int = i) -> np.ndarray:
                return f(*tensors[:i], tensor(x), *tensors[i + 1 :]).numpy()

            nudged = nudging(moved, tensors[i].numpy(), out_grad.numpy())
            if not np.allclose(partial.numpy(), nudged, 1e-4, 1e-4):
                return False
        return True

    return agree


def rules(*answers: Callable) -> dict[type, Callable]:
    """The reader's rules by operator. Where one is not right yet the lecture's own stands in, says a line."""
    chosen, missing = {}, []
    for answer in answers:
        exercise = lecture.exercises[answer.__name__]
        try:
            right = exercise.check(answer)
        except WrongAnswer:
            right = False
        chosen[OPERATORS[exercise.name]] = answer if right else exercise.right
        missing += [] if right else [exercise.name]
    if len(missing) == 1:
        print(f"{missing[0]} has not passed its check yet, so the lecture's own stands in for it.")
    elif missing:
        print(
            f"{', '.join(missing)} have not passed their checks yet, so the lecture's own stand in for them."
        )
    return chosen


@contextmanager
def exchanged(rules: Mapping[type, Callable]) -> Iterator[Counter[str]]:
    """Within this block, operators follow these rules. Gives the number of calls of each, by its name."""
    calls: Counter[str] = Counter()

    def counted(rule: Callable) -> Callable:
        def gradient(self: TensorOp, out_grad: Tensor, node: Tensor) -> Any:
            calls[rule.__name__] += 1
            return rule(out_grad, node)

        return gradient

    library = {operator: operator.gradient for operator in rules}  # type: ignore[attr-defined]
    try:
        for operator, rule in rules.items():
            operator.gradient = counted(rule)  # type: ignore[attr-defined]
        yield calls
    finally:
        for operator, gradient in library.items():
            operator.gradient = gradient  # type: ignore[attr-defined]


def to_try(rule: Callable) -> Sample:
    """A function of one operator, and arrays to try its rule on."""
    if rule.__name__ == "matmul_rule":
        return ops.matmul, [np.array(A23), B34]
    function = rule.__name__.removesuffix("_rule")
    longer = {"power": "power_scalar", "broadcast": "broadcast_to", "batched_matmul": "matmul"}
    return every_operator()[longer.get(function, function)]


# --- Every operator -----------------------------------------------------------------------------------------

Sample = tuple[Callable[..., Tensor], list[np.ndarray]]

#: Functions of one operand alone, and what follows the operand in a call of others.
ALONE = [
    "negate", "exp", "sin", "cos", "erf", "abs", "relu", "leaky_relu", "gelu", "sigmoid", "tanh", "softmax",
    "logsoftmax", "transpose",
]  # fmt: skip
FOLLOWED: dict[str, tuple] = {
    "add_scalar": (3.0,), "mul_scalar": (-2.5,), "divide_scalar": (4.0,), "power_scalar": (3,),
    "clip": (-1.0, 1.0), "not_zero": ("a 0",), "cast": ("float64",), "summation": (1,), "mean": (0,),
    "max": (1,), "min": (1,), "logsumexp": (1,), "broadcast_to": ((4, 2, 3),), "reshape": ((3, 2),),
    "flip": (1,), "dilate": (1, 1), "undilate": (1, 1), "pad": (((1, 0), (0, 2)),),
    "getitem": ((slice(None), [2, 0, 2]),),
}  # fmt: skip


def every_operator() -> dict[str, Sample]:
    """Each function of `needle.ops` that a gradient flows through, with arrays to try it on.

    Values stay away from kinks, ties and edges, where a derivative has two sides.
    """
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 2, (2, 3)), rng.uniform(2.5, 4, (2, 3))
    mixed = np.array([[-1.5, 0.7, 2.1], [0.4, -0.6, 1.2]])
    image, filters = rng.normal(size=(1, 4, 4, 2)), rng.normal(size=(3, 3, 2, 2))
    matrix, batch = rng.normal(size=(3, 4)), rng.normal(size=(2, 2, 3))
    above = Tensor(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), requires_grad=False)
    gates = [rng.normal(size=shape) for shape in ((2, 1, 8), (2, 8), (1, 2), (1, 2))]
    pair = ops.make_tuple

    def followed(name: str, more: tuple) -> Callable[..., Tensor]:
        return lambda x: getattr(ops, name)(x, *more)

    return {
        **{name: (getattr(ops, name), [mixed]) for name in ALONE},
        **{name: (getattr(ops, name), [a]) for name in ("log", "sqrt")},
        **{name: (followed(name, more), [mixed]) for name, more in FOLLOWED.items()},
        **{name: (getattr(ops, name), [a, b]) for name in ("add", "multiply", "divide", "power")},
        **{name: (getattr(ops, name), [a, b - 2]) for name in ("maximum", "minimum")},
        "mask": (lambda x: ops.mask(x, above), [mixed]),
        "where": (lambda x, y: ops.where(above, x, y), [a, b]),
        "to_device": (lambda x: ops.to_device(x, x.device), [a]),
        "matmul": (ops.matmul, [batch, matrix]),
        "standardize": (lambda x: ops.standardize(x, 1)[0], [mixed]),
        "layer_norm": (ops.layer_norm, [mixed, a[0], b[0]]),
        "permute": (lambda x: ops.permute(x, (2, 0, 1)), [batch]),
        "stack": (lambda x, y: ops.stack([x, y], 0), [a, b]),
        "concatenate": (lambda x, y: ops.concatenate([x, y], 1), [a, b]),
        "split": (lambda x: ops.split(x, 1)[1], [mixed]),
        "make_tuple": (lambda x, y: pair(x, y)[0] * pair(x, y)[1], [a, b]),
        "tuple_get_item": (lambda x, y: ops.tuple_get_item(pair(x, y), 1), [a, b]),
        "sum_tuples": (lambda x, y: ops.sum_tuples([pair(x, y), pair(y, x)])[0], [a, b]),
        "fused_add_scalars": (lambda x: ops.fused_add_scalars(x, 1.0, 2.0)[1], [a]),
        "windows": (lambda x: ops.windows(x, (2, 2)), [image]),
        "conv": (lambda x, w: ops.conv(x, w, 1, 1), [image, filters]),
        "avg_pool2d": (lambda x: ops.avg_pool2d(x, 2), [image]),
        "max_pool2d": (lambda x: ops.max_pool2d(x, 2), [image]),
        "lstm_steps": (lambda *x: ops.lstm_steps(*x)[0], gates),
    }
