"""What the steps say: equations of scalars and of matrices, by their exact text and by their numbers."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import needle as ndl
import viz
from needle.autograd import TensorTuple
from viz import step_data
from viz.equations import Matrix, Word, adjoint_name, equation
from viz.expressions import Name, Term, entry_of, read


def said(output, **options):
    return [line for frame in viz.steps(output, **options).passes.frames for line in frame.said()]


def about(name, lines):
    """The one line that gives `name`."""
    (found,) = [line for line in lines if line.startswith(f"{name} = ")]
    return found


# Each sign again, in NumPy: the expression of a step is evaluated by another route than the library's.
IN_NUMPY = {
    "+": lambda term, *x: reduce(np.add, x),
    "−": lambda term, a: -a,
    "×": lambda term, a, b: a * b,
    "÷": lambda term, a, b: a / b,
    "**": lambda term, a, b: a**b,
    "@": lambda term, a, b: a @ b,
    "==": lambda term, a, b: np.equal(a, b),
    ">": lambda term, a, b: np.greater(a, b),
    "<": lambda term, a, b: np.less(a, b),
    "≥": lambda term, a, b: np.greater_equal(a, b),
    "max": lambda term, a, b: np.maximum(a, b),
    "": lambda term, a: a.reshape(term.shape),
    "reshape": lambda term, a: a.reshape(term.shape),
    "broadcast": lambda term, a: np.broadcast_to(a, term.shape),
    "ᵀ": lambda term, a: a.swapaxes(-1, -2),
    "Σ": lambda term, a: a.sum(axis=term.op.axes),
    "√": lambda term, a: np.sqrt(a),
    "exp": lambda term, a: np.exp(a),
    "log": lambda term, a: np.log(a),
    "sin": lambda term, a: np.sin(a),
    "cos": lambda term, a: np.cos(a),
    "tanh": lambda term, a: np.tanh(a),
    "sigmoid": lambda term, a: 1 / (1 + np.exp(-a)),
    "relu": lambda term, a: np.maximum(a, 0),
    "abs": lambda term, a: np.abs(a),
    "sign": lambda term, a: np.sign(a),
    "mask": lambda term, a, b: np.where(b != 0, a, 0),
    "where": lambda term, condition, a, b: np.where(condition != 0, a, b),
    "logsumexp": lambda term, a: np.log(np.exp(a).sum(axis=term.op.axes if term.axes else None)),
    "logsoftmax": lambda term, a: a - np.log(np.exp(a).sum(axis=term.op.axes, keepdims=True)),
    "softmax": lambda term, a: np.exp(a) / np.exp(a).sum(axis=term.op.axes, keepdims=True),
    "split": lambda term, a: [
        np.squeeze(x, term.op.axis) for x in np.split(a, a.shape[term.op.axis], term.op.axis)
    ],
    "stack": lambda term, items: np.stack(items, term.op.axis),
    "tuple": lambda term, *items: list(items),
    "twice": lambda term, a: 2 * a,
    "permute": lambda term, a: a.transpose(term.op.axes),
}


def evaluate(term: Term):
    if not term.operands:
        return list(term.value.numpy()) if isinstance(term.value, TensorTuple) else term.array
    operands = [evaluate(x) for x in term.operands]
    if hasattr(term.op, "slices") or hasattr(term.op, "index"):
        index = getattr(term.op, "slices", None) or term.op.index
        if not term.sign.startswith("zeros but"):
            return operands[0][index]
        zeros = np.zeros(term.shape) if term.shape else [np.zeros(x.shape) for x in term.op.specs]
        zeros[index] = operands[0]
        return zeros
    return IN_NUMPY[term.sign](term, *operands)


@pytest.fixture
def terms(monkeypatch):
    """A list that gets the name, the node and the expression of each equation of the steps."""
    found = []

    def recorded(name, value, term, **options):
        if term is not None:
            found.append((str(name), value, term))
        return equation(name, value, term, **options)

    monkeypatch.setattr(step_data, "equation", recorded)
    return found


def check(found):
    """Compare each expression, and an entry of it, with the value of its node."""
    for name, node, term in found:
        if isinstance(node, TensorTuple):
            for ours, theirs in zip(evaluate(term), node.numpy(), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=name)
            continue
        value = node.numpy()
        np.testing.assert_allclose(evaluate(term), value, rtol=1e-9, atol=1e-12, err_msg=name)
        for index in [(0,) * value.ndim, tuple(n - 1 for n in value.shape)]:
            part = entry_of(term, index, in_numbers=True)
            if all(x.array is not None for x in part.leaves()):  # all of it, and not the first few terms
                np.testing.assert_allclose(evaluate(part), value[index], rtol=1e-9, err_msg=f"{name} {index}")


def tensor(values, **options):
    return ndl.Tensor(values, dtype="float64", **options)


class Twice(ndl.autograd.TensorOp):
    def compute(self, a):
        return a * 2

    def gradient(self, out_grad, node):
        return out_grad * 2


class Product(ndl.autograd.TensorOp):
    """Its gradient takes operands as they are."""

    def compute(self, a, b):
        return a * b

    def gradient(self, out_grad, node):
        return node.inputs[1], node.inputs[0]


RNG = np.random.default_rng(1)
A, B = RNG.uniform(0.3, 1.5, (3, 2)), RNG.uniform(0.3, 1.5, (3, 2))
FUNCTIONS = {
    "sum and product": lambda a, b: (a + b) * (a * b),
    "quotient": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "numbers": lambda a, b: (a + 2) * (b * 3) / 4 - (1 - a) ** 3 + b**0.5,
    "negative": lambda a, b: -a * -b,
    "exp, log, root": lambda a, b: ndl.exp(a) * ndl.log(b) + ndl.ops.sqrt(a * b),
    "sin and cos": lambda a, b: ndl.ops.sin(a) * ndl.ops.cos(b),
    "activations": lambda a, b: ndl.tanh(a) * ndl.ops.sigmoid(b) + ndl.relu(a - b),
    "choices": lambda a, b: ndl.maximum(a, b) + ndl.where(a > b, a * a, b) + ndl.ops.abs(a - b),
    "matrices": lambda a, b: a @ b.transpose() @ a,
    "a batch of matrices": lambda a, b: a.reshape((1, 3, 2)) @ b.transpose(),
    "broadcast": lambda a, b: (a * b.sum(axes=0) + b.sum(1, keepdims=True)).reshape((2, 3)),
    "softmax": lambda a, b: ndl.ops.softmax(a) * ndl.logsumexp(b, axes=0) + ndl.logsumexp(a),
    "tuples": lambda a, b: ndl.ops.split(a, 1)[0] * ndl.stack([b[0], b[1]], 0).sum(),
    "slices": lambda a, b: a[1:] * b[:2] + a[::-2, ::-1],
    "permute": lambda a, b: (a.reshape((3, 1, 2)) * b).permute((2, 0, 1)) * 2,
    "a loss": lambda a, b: ndl.nn.SoftmaxLoss()(a * b, ndl.Tensor([0, 1, 1], requires_grad=False)),
    "an own operator": lambda a, b: Twice()(a) * b,
    "the second order": lambda a, b: ndl.gradients(ndl.tanh(a * b).sum(), [a])[0],
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_each_equation_gives_the_value_of_its_node(function, terms):
    a, b = tensor(A), tensor(B)
    y = function(a, b)
    viz.steps(y, out_grad=tensor(RNG.normal(size=y.shape)))
    assert len(terms) > 4
    check(terms)


STEPS = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a @ b,
    lambda a, b: ndl.tanh(a),
    lambda a, b: ndl.relu(a),
    lambda a, b: a.transpose(),
    lambda a, b: a * b.sum(axes=0),
    lambda a, b: a + b.sum(axes=1, keepdims=True),
    lambda a, b: 3 - a * 0.5,
]


@st.composite
def graphs(draw):
    """A Tensor computed from three leaves by a few random operators on matrices."""
    numbers = st.lists(st.integers(-4, 4), min_size=4, max_size=4)
    nodes = [tensor(np.reshape(draw(numbers), (2, 2)) / 2) for _ in range(3)]
    for _ in range(draw(st.integers(1, 7))):
        a, b = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        nodes.append(draw(st.sampled_from(STEPS))(a, b))
    return nodes[-1]


@given(graphs())
def test_equations_of_random_graphs_give_the_values(output):
    with pytest.MonkeyPatch.context() as patch:
        found = []
        patch.setattr(
            step_data,
            "equation",
            lambda name, value, term, **more: term and found.append((str(name), value, term)),
        )
        step_data.record_passes(output, {})
    check(found)


@pytest.fixture
def regression():
    """The lines of a softmax regression with a batch of 4: X (4, 3), W (3, 2), b (2,)."""

    def regression(**options):
        X = tensor([[1, 0, 2], [0, 1, 1], [2, 1, 0], [1, 1, 1]], **options)
        W, b = tensor([[1, 0], [0, 2], [-1, 1]]), tensor([0.5, -0.5])
        Y = tensor([[1, 0], [0, 1], [0, 1], [1, 0]], requires_grad=False)
        Z = X @ W + b
        loss = (ndl.logsumexp(Z, axes=1) - (Z * Y).sum(1)).sum() / 4
        names = {"X": X, "W": W, "b": b, "Y": Y, "Z": Z, "loss": loss, "P": Z.inputs[0]}
        return loss, names

    return regression


def test_a_softmax_regression(regression, terms):
    loss, names = regression()
    lines = said(loss, names=names)
    check(terms)
    assert about("P", lines) == (
        "P = X @ W = [[1 0 2] [0 1 1] [2 1 0] [1 1 1]] @ [[1 0] [0 2] [−1 1]] = [[−1 2] [−1 3] [2 2] [0 3]]; "
        "entry [0, 1] = Σ[k] X[0, k] · W[k, 1] = 1 · 0 + 0 · 2 + 2 · 1 = 2"
    )
    assert about("X̄ via P", lines).startswith("X̄ via P = P̄ @ Wᵀ = [[")
    assert "; entry [0, 1] = Σ[j] P̄[0, j] · W[1, j] = " in about("X̄ via P", lines)
    assert about("W̄ via P", lines).startswith("W̄ via P = Xᵀ @ P̄ = [[")
    assert about("b̄ via Z", lines).startswith("b̄ via Z = Σ[axis 0] Z̄ = Σ[axis 0] [[")
    assert "; entry [1] = Σ[i] Z̄[i, 1] = " in about("b̄ via Z", lines)
    assert about("Z", lines).endswith("; entry [0, 1] = P[0, 1] + b[1] = 2 + (−0.5) = 1.5")
    softmax = [line for line in lines if line.startswith("Z̄ via n") and "softmax" in line]
    assert " · softmax[axis 1](Z) = " in softmax[0]
    assert "[0] · softmax[axis 1](Z)[0, 1] = 0.25 · " in softmax[0]
    numbers = next(
        side for frame in viz.steps(loss, names=names).passes.frames for x in frame.equations
        if "softmax" in str(x) for side in x.sides[2:]
    )  # fmt: skip
    assert [x.marked for x in numbers if isinstance(x, Matrix)] == [{(0, 1)}] * 2
    assert "softmax" not in str(numbers)


def test_with_data_that_needs_no_gradient(regression, terms):
    loss, names = regression(requires_grad=False)
    lines = said(loss, names=names)
    check(terms)
    assert not [line for line in lines if line.startswith("X̄")]
    assert about("W̄ via P", lines).startswith("W̄ via P = Xᵀ @ P̄ = [[")


def test_a_tensor_is_never_equal_to_its_shape(regression):
    loss, names = regression()
    X = tensor(np.ones((20, 3)))
    for output in (loss, (X @ names["W"]).sum()):
        for frame in viz.steps(output, names={**names, "X": X}).passes.frames:
            for found in frame.equations:
                for side in found.sides:
                    if len(side) == 1 and isinstance(side[0], Word):
                        assert side[0].text[0] not in "(["
                if "X" in str(found.sides):
                    assert "×" not in str(found)


def test_a_large_product_is_explained_by_one_entry():
    X, W = tensor(np.arange(40).reshape(5, 8)), tensor(np.ones((8, 6)))
    Y = X @ W
    line = about("Y", said(Y, names={"X": X, "W": W, "Y": Y}))
    assert line == (
        "Y = X @ W, min 28, max 284; shapes Y (5, 6), X (5, 8), W (8, 6); entry [0, 1] = "
        "Σ[k] X[0, k] · W[k, 1] = 0 · 1 + 1 · 1 + 2 · 1 + 3 · 1 + 4 · 1 + 5 · 1 + (2 more) = 28"
    )
    x = tensor(np.arange(40).reshape(5, 8))
    h = ndl.tanh(x)
    lines = said(h, names={"x": x, "h": h})
    assert lines[0] == "x: min 0, max 39; shapes x (5, 8)"
    assert about("h", lines).endswith("entry [0, 1] = tanh(x[0, 1]) = tanh(1) = 0.7616")
    assert "entry [0, 1] = h̄[0, 1] · (1 − h[0, 1] · h[0, 1]) = 1 · (1 − 0.7616 · 0.7616) = 0.42" in lines[-2]


def test_an_entry_of_a_power():
    a, b = tensor(np.full((5, 5), 2)), tensor(np.full((5, 5), -3))
    y = a**b + b
    names = {"a": a, "b": b, "y": y, "p": y.inputs[0]}
    lines = said(y, names=names)
    assert about("p", lines).endswith("entry [0, 1] = a[0, 1] ** b[0, 1] = 2 ** (−3) = 0.125")
    assert about("y", lines).endswith("entry [0, 1] = p[0, 1] + b[0, 1] = 0.125 + (−3) = −2.875")


def test_a_row_of_a_reduction():
    Z = tensor(np.arange(40).reshape(8, 5) / 10)
    y = ndl.logsumexp(Z, axes=1)
    line = about("y", said(y, names={"Z": Z, "y": y}))
    numbers = "exp(0.5) + exp(0.6) + exp(0.7) + exp(0.8) + exp(0.9)"
    assert line.endswith(f"entry [1] = log(Σ[j] exp(Z[1, j])) = log({numbers}) = 2.319")


def test_the_entry_that_is_worked_out_is_not_0():
    Z = tensor([[0, 0], [0, 0], [0, 3]])
    y = Z.sum(1)
    assert about("y", said(y, names={"Z": Z, "y": y})).endswith("entry [2] = Σ[j] Z[2, j] = 0 + 3 = 3")


WRITTEN = {
    "b · (a + 1)": lambda a, b: b * (a + 1),
    "a − b": lambda a, b: a - b,
    "1 − a · b": lambda a, b: 1 - a * b,
    "a − (b + 1)": lambda a, b: a - (b + 1),
    "a − 2 + b": lambda a, b: a - 2 + b,
    "a / (a · b)": lambda a, b: a / (a * b),
    "a · b / a": lambda a, b: a * b / a,
    "a / b / a": lambda a, b: a / b / a,
    "a · b · a": lambda a, b: a * (b * a),
    "−a · b": lambda a, b: -(a * b),
    "a · (−b)": lambda a, b: a * -b,
    "a − b · a": lambda a, b: a - b * a,
    "(a + b)²": lambda a, b: (a + b) ** 2,
    "(−a)³": lambda a, b: (-a) ** 3,
    "a⁻¹": lambda a, b: a ** (-1),
    "a ** 0.5": lambda a, b: a**0.5,
    "a ** (b − 1)": lambda a, b: a ** (b - 1),
    "2 · exp(a + b)": lambda a, b: 2 * ndl.exp(a + b),
    "(a @ b)ᵀ @ a": lambda a, b: (a @ b).transpose() @ a,
    "a · (a @ b)": lambda a, b: a * (a @ b),
    "(a + b) @ a": lambda a, b: (a + b) @ a,
    "aᵀ @ (b @ a)": lambda a, b: a.transpose() @ (b @ a),
    "Σ[axis 0] (a + b)": lambda a, b: (a + b).sum(axes=0),
    "a · (Σ[axis 0] b)": lambda a, b: a * b.sum(axes=0),
    "a where a > b, else b": lambda a, b: ndl.where(ndl.ops.compare(a, "gt", b), a, b),
    "max(a, b)": lambda a, b: ndl.maximum(a, b),
    "leaky_relu(a, scalar=0.1)": lambda a, b: ndl.ops.leaky_relu(a, 0.1),
    "a[0:1, :]": lambda a, b: a[0, :],
}


@pytest.mark.parametrize(("text", "function"), WRITTEN.items())
def test_brackets_stand_where_they_are_needed(text, function):
    a, b = tensor([[1, 2], [3, 4]]), tensor([[5, 6], [7, 8]])
    node = function(a, b)
    term = read(node, {a: Name("a"), b: Name("b")}, expand=True)
    written = str(equation(Name("y"), node, term)).split(" = ")[1]
    assert written == text


def test_numbers_that_are_negative_have_brackets():
    a, b = tensor([-2.0]), tensor([-3.0])
    lines = [said(y, names={"a": a, "b": b, "y": y}) for y in (a * b, b + a, ndl.exp(a))]
    assert [about("y", x) for x in lines] == [
        "y = a · b = −2 · (−3) = 6",
        "y = b + a = −3 + (−2) = −5",
        "y = exp(a) = exp(−2) = 0.1353",
    ]


def test_the_gradient_of_relu_and_of_a_power():
    x = tensor([-1.0, 2.0])
    y = ndl.relu(x)
    z = y**3
    lines = said(z, names={"x": x, "y": y, "z": z})
    assert about("ȳ via z", lines) == "ȳ via z = z̄ · 3 · y² = [1 1] · 3 · [0 2]² = [0 12]"
    assert about("x̄ via y", lines) == (
        "x̄ via y = ȳ where y ≠ 0, else 0 = [0 12] where [0 2] ≠ 0, else 0 = [0 12]"
    )


def test_a_gradient_that_is_a_value_of_the_forward_pass():
    x, y = tensor([2.0]), tensor([3.0])
    a, b = ndl.exp(x), ndl.exp(y)
    p = Product()(a, b)
    lines = said(p, names={"a": a, "b": b, "p": p})
    assert about("p", lines) == "p = product(a, b) = product(7.389, 20.09) = 148.4"
    assert about("ā via p", lines) == "ā via p = b = 20.09"


def test_what_was_written_to_since_is_called_so(terms):
    w = tensor([2.0])
    y = w * 3
    z = y * w
    w.data = tensor([5.0])
    lines = said(z, names={"w": w, "y": y, "z": z})
    assert about("ȳ via z", lines) == "ȳ via z = z̄ · w before the write = 1 · 2 = 2"
    check(terms)


def test_an_operator_of_several_results_with_axes():
    x = tensor([[1.0, 2.0], [3.0, 5.0]])
    lines = said(ndl.standardize(x, 1)[0] * 2, names={"x": x})
    assert about("n2", lines[1:]).startswith("n2 = standardize[axis 1](x, eps=10⁻⁵), a tuple of 3")
    assert any(line.startswith("n̄2 via n3 = n̄3 at [0], else 0, a tuple of 3") for line in lines)


def test_a_large_expression_is_cut(terms):
    class Long(ndl.autograd.TensorOp):
        def compute(self, a):
            return a * 1

        def gradient(self, out_grad, node):
            for _ in range(200):
                out_grad = out_grad + node
            return out_grad

    y = Long()(tensor([2.0]))
    assert "…" in said(y)[-2]
    assert len(said(y)[-2]) < 1000


def test_names_and_matrices_as_html():
    X = tensor([[1, -2], [3, 4]])
    adjoint = equation(adjoint_name("x<y"), X, None)
    name = '<span class="name"><span><span class="bar-above">x&lt;y</span></span><small>(2, 2)</small></span>'
    cells = "<span>1</span><span>−2</span><span>3</span><span>4</span>"
    columns = 'style="grid-template-columns:repeat(2,auto)"'
    matrix = f'<span class="matrix" role="img" aria-label="[[1 −2] [3 4]]" {columns}>{cells}</span>'
    sides = [f'<span class="kept"><span>{side}</span></span>' for side in (name, f"= {matrix}")]
    assert adjoint.html() == f'<div class="equation">{" ".join(sides)}</div>'
    assert adjoint.sides[-1] == (Matrix((("1", "−2"), ("3", "4"))),)
