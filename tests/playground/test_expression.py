"""The Explorer's language: what it computes, what it refuses and why."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import needle as ndl
import viz
from playground.language.expression import FUNCTIONS, ExpressionError, run
from playground.results.explorer import EXAMPLES

from .hostile import HOSTILE

REPOSITORY = Path(__file__).parents[2]


def value(text):
    return run(text).value.numpy()


def gradients(result):
    result.backward()
    return {name: x.grad.numpy().tolist() for name, x in result.leaves.items()}


def refusal(text):
    with pytest.raises(ExpressionError, match=r"^line ") as caught:
        run(text)
    return caught.value


# What it computes


def test_v1_to_v4_and_the_gradient_of_the_gradient():
    result = run(EXAMPLES["One value, two paths"])
    assert result.name == "v4"
    assert result.value.item() == 2
    assert gradients(result) == {"v1": 3}
    (second,) = ndl.gradients(result.names["v1"].grad, [result.names["v1"]])
    assert second.item() == 5


def test_the_chain_rule():
    result = run(EXAMPLES["Chain rule"])
    assert result.value.item() == 49
    assert gradients(result) == {"w": 42, "x": 28, "b": 14}


def test_what_is_used_twice():
    result = run(EXAMPLES["Adjoints add up"])
    assert result.value.item() == 12
    assert gradients(result) == {"a": 4}
    assert result.names["b"].grad.item() == 2


def test_a_matrix_product():
    result = run(EXAMPLES["Matrix product"])
    assert result.value.item() == 166
    assert gradients(result) == {"X": [[10, 24], [22, 52]], "W": [[76, 28], [108, 40]]}


def test_the_softmax_loss_is_that_of_the_library():
    result = run(EXAMPLES["Softmax loss"])
    short = run("Z = [[2, 1, 0], [0, 3, 1]]\nsoftmax_loss(Z, [0, 2])")
    np.testing.assert_allclose(result.value.numpy(), short.value.numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradients(result)["Z"], gradients(short)["Z"], atol=1e-7)
    logits = np.array([[2, 1, 0], [0, 3, 1]])
    right = logits[[0, 1], [0, 2]]
    np.testing.assert_allclose(result.value.item(), np.mean(np.log(np.exp(logits).sum(1)) - right), rtol=1e-6)


def test_xor_by_relu():
    assert value(EXAMPLES["XOR with ReLU"]).tolist() == [0, 1, 1, 0]


def test_two_layers_with_a_penalty():
    result = run(EXAMPLES["Network with weight decay"])
    x, y = np.array([[1, 2]]), 1
    W1, W2 = np.array([[0.5, -1, 1], [1, 0.5, -0.5]]), np.array([[1], [2], [-1]])
    error = np.maximum(x @ W1, 0) @ W2 - y
    J = (error**2).sum() / 2 + 0.05 * ((W1**2).sum() + (W2**2).sum())
    np.testing.assert_allclose(result.value.item(), J, rtol=1e-6)
    np.testing.assert_allclose(gradients(result)["W2"], np.maximum(x @ W1, 0).T @ error + 0.1 * W2, rtol=1e-5)


def test_a_loop_unrolls_and_numbers_what_a_name_stood_for():
    result = run(EXAMPLES["A loop in time"])
    h = 0.0
    for x in (1, 0, 2):
        h = np.tanh(0.5 * x + 0.8 * h)
    np.testing.assert_allclose(result.value.item(), h, rtol=1e-6)
    assert result.name == "h"
    assert set(result.names) == {"x", "w", "u", "h", "h₀", "h₁", "h₂"}
    assert set(result.leaves) == {"w", "u", "h₀"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_has_gradients_and_can_be_drawn(name):
    result = run(EXAMPLES[name])
    result.backward()
    assert result.leaves
    assert all(x.grad is not None for x in result.leaves.values())
    assert f"<b>{result.name}</b>" in viz.draw(result.value, names=result.names).source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2", 3),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("7 / 2", 3.5),
        ("2 ** -1", 0.5),
        ("(1 + 2) * -3", -9),
        ("[1, 2] + [3, 4]", [4, 6]),
        ("[1, 2] * 3", [3, 6]),
        ("x = [1, 2]; y = x; x += 1; y", [1, 2]),
        ("x = [1, 2]; x -= 1; x *= 4; x /= 2; x **= 2; x", [0, 4]),
        ("a, [b, c] = 1, (2, 3); stack([c, b, a])", [3, 2, 1]),
        ("a = b = 2; a * b", 4),
        ("x = [[1, 2], [3, 4]]; x.T", [[1, 3], [2, 4]]),
        ("x = [[1, 2], [3, 4]]; x[0, ::-1]", [2, 1]),
        ("x = [[1, 2], [3, 4]]; x[:, -1]", [2, 4]),
        ("x = [1, 2, 3]; (1 < x) * x", [0, 2, 3]),
        ("x = [1, 2, 3]; x <= [3, 2, 1]", [True, True, False]),
        ("sum([[1, 2], [3, 4]], axes=0)", [4, 6]),
        ("sum([[1, 2], [3, 4]], axes=(0, 1))", 10),
        ("[[1, 2], [3, 4]] @ [1, 1]", [3, 7]),
        ("x = [1, 2, 3, 4]; x.reshape(2, 2).sum(1)", [3, 7]),
        ("x = [1, 2, 3, 4]; x.reshape((2, -1)).transpose(0, 1)", [[1, 3], [2, 4]]),
        ("where([1, 0], [1, 2], [3, 4])", [1, 4]),
        ("clip([1, 5], high=3)", [1, 3]),
        ("clip([1, 5], 2)", [2, 5]),
        ("argmax([[1, 5], [7, 2]], axis=1)", [1, 0]),
        ("one_hot([1, 0], 2)", [[0, 1], [1, 0]]),
        ("concatenate([[1], [2, 3]])", [1, 2, 3]),
        ("x = 3; grad(x ** 2, x)", 6),
        ("x = 3; g = grad(x ** 3, x); grad(g, x)", 18),
        ("x = 0\nfor i in range(4):\n    for j in range(2):\n        x = x + i * j\nx", 6),
        ("x = [5, 6, 7]\ns = 0\nfor i in range(3):\n    s = s + x[i]\ns", 18),
        ("x = (  # a comment with a ' and a λ\n    1 +\n    2)", 3),
        ("x = 1\r\nx + 1\r\n", 2),
    ],
)  # fmt: skip
def test_values(text, expected):
    assert value(text).tolist() == expected


@pytest.mark.parametrize("name", sorted({name for name in FUNCTIONS if FUNCTIONS[name].parameters == "a"}))
def test_functions_of_one_tensor_are_those_of_needle_and_methods_too(name):
    function = ndl.Tensor.detach if name == "detach" else getattr(ndl, name)
    expected = function(ndl.Tensor([[0.5, 1], [2, 3]], device=ndl.cpu_numpy())).numpy()
    np.testing.assert_array_equal(value(f"{name}([[0.5, 1], [2, 3]])"), expected)
    np.testing.assert_array_equal(value(f"x = [[0.5, 1], [2, 3]]\nx.{name}()"), expected)


def test_numbers_with_a_name_have_a_gradient():
    text = "a = 2\nb = [1, 2] * 3 + ones(2)\nc, d = 2, (1, 1)\ne = tensor([1, 1]) * 1\nsum(a*b*c*d*e*5)"
    assert set(run(text).leaves) == {"a", "b", "c", "d"}
    assert gradients(run(text))["b"] == [20, 20]


@pytest.mark.parametrize(
    "constant",
    ["constant([1, 2])", "constant([1, 2]) * 2 + [0, 1]", "a.detach()", "detach(a) + 1", "one_hot([1], 2)[0]"]
    + ["a < 2", "[1, 2] < 2", "(a < 2) * [1, 2]", "argmax([1, 2])", "(a * 3).detach().exp()"],
)
def test_what_is_said_to_be_a_constant_stays_one(constant):
    result = run(f"a = [1, 2]\nc = {constant}\nc * a")
    assert set(result.leaves) == {"a"}
    assert not result.names["c"].requires_grad


def test_what_still_has_a_name_gets_no_other():
    swapped = "a, b, x = 1, 2, 3\nfor i in range(50):\n  for j in range(50):\n    x = a; x = b\nx * a"
    assert set(run(swapped).names) == {"a", "b", "x", "x₀", "result"}


def test_a_value_without_gradient_has_no_leaves():
    result = run("x = [1, 2]\nx < 2")
    assert result.leaves == {}
    with pytest.raises(ExpressionError, match="result is a constant and has no gradient"):
        result.backward()


def test_random_numbers_are_the_same_each_time():
    text = "randn(2, 3) + rand(3)"
    assert value(text).tolist() == value(text).tolist()
    assert value(text).tolist() != run(text, seed=1).value.numpy().tolist()
    assert value("rand(100).max()") <= 1 <= value("randn(1000).max()")


def test_a_gradient_beyond_the_limits_is_refused_before_it_is_computed():
    sums = "for i in range(50):\n    y = y + x[i]\n"
    result = run(f"x = ones(10000)\ny = 0\n{sums}{sums}")
    with pytest.raises(
        ExpressionError, match=r"^line 5.*all Tensors together would have more than 1,000,000"
    ):
        result.backward()
    assert result.names["x"].grad is None


# What it refuses


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        pytest.param(reason, text, id=f"{reason:.20}-{i}")
        for reason in HOSTILE
        for i, text in enumerate(HOSTILE[reason])
    ],
)
def test_a_hostile_text_is_refused_with_the_reason(reason, text):
    error = refusal(text)
    assert reason in error.reason
    assert 1 <= error.line <= max(text.count("\n") + 1, 61)
    assert 1 <= error.column < error.end_column
    assert len(error.reason) < 700


def test_hostile_texts_cost_neither_time_nor_memory_nor_the_process():
    assert sum(map(len, HOSTILE.values())) > 500
    script = """
        import tracemalloc
        from playground.language.expression import ExpressionError, run
        from hostile import HOSTILE

        run("x = ones(2, 2); sum(exp(x @ x))").backward()  # what is imported and built once
        tracemalloc.start()
        for text in (text for texts in HOSTILE.values() for text in texts):
            try:
                run(text)
            except ExpressionError:
                pass
        print(tracemalloc.get_traced_memory()[1])
    """
    code = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]\n{dedent(script)}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=True
    )
    assert int(done.stdout) < 30e6


def test_a_position_is_that_of_what_is_wrong():
    error = refusal("x = [[1, 2]]\ny = 3 * (x @ x)  # too wide")
    line = "y = 3 * (x @ x)"
    assert error.line == 2
    assert line[error.column - 1 : error.end_column - 1] == "x @ x"
    assert str(error).startswith("line 2, column 10: matmul: (1, 2) @ (1, 2)")


def test_an_operator_that_fails_leaves_the_graph_up_to_there():
    error = refusal("X = [[1, 2]]\nY = tanh(X)\nZ = Y @ X")
    assert isinstance(error.failure.op, ndl.ops.MatMul)
    assert list(error.failure.inputs) == [error.names["Y"], error.names["X"]]
    assert error.names["Y"].inputs[0] is error.names["X"]
    assert error.names["Y"].cached_data is not None
    assert "matmul" in viz.draw_error(error.failure, names=error.names).title


def test_an_error_keeps_nothing_but_what_is_named():
    error = refusal("X = [[1, 2]]\nX @ X")
    assert error.failure.__traceback__ is None
    assert refusal("1 +").failure is None


def test_close_names_are_proposed():
    assert "did you mean weight?" in refusal("weight = 1\nwieght + 1").reason
    assert "did you mean softmax?" in refusal("softmx([1, 2])").reason


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("np.exp(2)", "all functions are there without it"),
        ("math.pi", "all functions are there without it"),
        ("ln(3)", "the natural logarithm is log(x)"),
        ("tan(1)", "sin(x) / cos(x)"),
        ("e", "exp(1)"),
        ("x = 1\nx.grad", "the gradient of y with respect to x is grad(y, x)"),
        ("x = 1\nx.backward()", "the gradients of the last line are shown anyway"),
        ("x = [1, 2]\nx.shape", "the drawing shows it"),
        ("dot([1, 2], [3, 4])", "a @ b"),
        ("max(1, 2)", "maximum(a, b)"),
        ("exp(1, 2)", "takes 1 argument, not 2; write exp(a)"),
        ("x = ", "something is missing at the end of the line"),
        ("x = 1 y = 2", "“y = 2” doesn't fit here"),
        ("f(x) = x ** 2", "you can't define functions"),
        ("√2", "sqrt(x)"),
    ],
)
def test_what_people_bring_along_has_a_way_out(text, way_out):
    assert way_out in refusal(text).reason


def test_pi_is_a_number():
    np.testing.assert_allclose(run("sin(pi / 6)").value.numpy(), 0.5, rtol=1e-6)
    assert run("pi = 3\npi").value.item() == 3


@settings(max_examples=400)
@given(st.text(max_size=300) | st.text("xy12()[],.=+-*@/<> \n:_'#forinrangexp", max_size=80))
def test_any_text_has_a_value_or_is_refused(text):
    with suppress(ExpressionError):
        assert isinstance(run(text).value, ndl.Tensor)


WORDS = [
    *["x", "y", "x = ", "y = ", "1", "2.5", "0", "1e30", "+", "-", "*", "/", "**", "@", "<", ",", "(", ")"],
    *["[", "]", "[1, 2]", "[[1, 2], [3, 4]]", "for i in range(3):", "\n", "\n    ", "; ", ".sum()", ".T"],
    *["[0]", "[1:]", ":", "i", "axes=", "a=", "# ", *[f"{name}(" for name in FUNCTIONS]],
]  # fmt: skip


@settings(max_examples=600)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map("".join))
@pytest.mark.filterwarnings("error")
def test_words_of_the_language_in_any_order_have_a_value_or_are_refused(text):
    with suppress(ExpressionError):
        result = run("x = [1, 2]\ny = [[1, 2], [3, 4]]\n" + text)
        result.backward()
        assert all(x.grad.shape == x.shape for x in result.leaves.values())


# The same programs, in numpy


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply, "@": np.matmul}
UNARY = {
    "tanh({})": np.tanh,
    "relu({})": lambda x: np.maximum(x, 0),
    "sin({})": np.sin,
    "-({})": np.negative,
    "({}).T": np.transpose,
    "({})[::-1, :]": lambda x: x[::-1],
    "({}) / 2": lambda x: x / 2,
    "({}) ** 2": lambda x: x**2,
    "abs({})": np.abs,
    "softmax({})": softmax,
    "broadcast_to(sum({}, axes=0), 2, 2)": lambda x: np.broadcast_to(x.sum(0), (2, 2)),
    "reshape({}, 4).reshape(2, -1)": lambda x: x,
    "sigmoid({})": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip
NAMES = ("A", "B", "C")

terms = st.recursive(
    st.sampled_from(NAMES),
    lambda inner: (
        st.tuples(st.sampled_from(list(UNARY)), inner)
        | st.tuples(st.sampled_from(list(BINARY)), inner, inner)
    ),
    max_leaves=6,
)
statements = st.tuples(st.sampled_from(["=", "+=", "*="]), st.sampled_from(NAMES), terms)
programs = st.lists(statements | st.tuples(st.just("for"), st.integers(0, 3), statements), max_size=4)
matrices = st.lists(st.integers(-3, 3), min_size=4, max_size=4)


def as_text(thing):
    match thing:
        case str():
            return thing
        case ("for", count, statement):
            return f"for i in range({count}):\n    {as_text(statement)}"
        case (("=" | "+=" | "*=") as sign, name, term):
            return f"{name} {sign} {as_text(term)}"
        case (template, inner):
            return template.format(as_text(inner))
        case (sign, left, right):
            return f"({as_text(left)} {sign} {as_text(right)})"
    raise AssertionError(thing)


def compute(term, names):
    match term:
        case str():
            return names[term]
        case (template, inner):
            return UNARY[template](compute(inner, names))
        case (sign, left, right):
            return BINARY[sign](compute(left, names), compute(right, names))
    raise AssertionError(term)


def carry_out(statement, names):
    match statement:
        case ("for", count, inner):
            for _ in range(count):
                carry_out(inner, names)
        case (sign, name, term):
            result = compute(term, names)
            names[name] = result if sign == "=" else BINARY[sign[0]](names[name], result)


@settings(max_examples=200)
@given(st.tuples(matrices, matrices, matrices), programs, terms)
@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
def test_programs_give_the_numbers_that_numpy_gives(numbers, program, last):
    arrays = [np.array(matrix, dtype="float32").reshape(2, 2) for matrix in numbers]
    lines = [f"{name} = {array.tolist()}" for name, array in zip(NAMES, arrays, strict=True)]
    text = "\n".join([*lines, *map(as_text, program), as_text(last)])
    names = dict(zip(NAMES, arrays, strict=True))
    for statement in program:
        carry_out(statement, names)
    expected = compute(last, names)
    if not np.abs([expected, *names.values()]).max() < 1e4:  # beyond it, float32 keeps too little of a sine
        return
    np.testing.assert_allclose(value(text), expected, rtol=1e-3, atol=1e-3)


def test_the_language_of_the_docstring_is_the_language():
    text = re.search(r"::\n\n(.*?)\n\n", run.__doc__, re.DOTALL)[1]
    assert run(dedent(text)).leaves.keys() == {"X", "W"}


def test_a_power_may_be_written_with_a_caret():
    assert value("x = 3\n2 * x^2 + 1").item() == 19
    assert value("-2^2").item() == value("-2**2").item() == -4
    assert value("2^3^2").item() == 2 ** (3**2)
    assert value("x = 3\nx ^= 2\nx").item() == 9


def test_after_a_caret_an_error_is_still_told_where_it_is():
    for text, column, end in (
        ("1^2 + nothing", 7, 14),
        ("1**2 + nothing", 8, 15),
        ("2^2^nothing + 1", 5, 12),
    ):
        with pytest.raises(ExpressionError) as caught:
            run(text)
        assert (caught.value.column, caught.value.end_column) == (column, end)
    with pytest.raises(ExpressionError, match=r"^line 2, column 5: "):
        run("x = 2^3\nx^2 x")
