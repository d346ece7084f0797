"""What is said of a compiled function, in sentences."""

from __future__ import annotations

import re

import numpy as np
import pytest

import needle as ndl
import viz
from viz.program_data import separate_source
from viz.program_words import cost_of

from ..training import compiled_step


def layer_of(rows: int = 10, inputs: int = 2, units: int = 8):
    W, b = ndl.Tensor(np.ones((inputs, units))), ndl.Tensor(np.zeros((1, units)))

    @ndl.jit
    def layer(x):
        return ndl.relu(x @ W + b)

    assert layer.program_for(ndl.Tensor(np.ones((rows, inputs)))) is layer.program
    return layer


def test_the_example() -> None:
    said, _, _ = viz.explain(layer_of()).partition("\nNumba took ")  # if it was not on disk
    assert said == (
        "layer: 3 operators became 1 loop.\n"
        "The largest loop runs 10 times and fuses 3 operators: MatMul, Add, ReLU.\n"
        "The matrix product has at most 32,768 multiplications, so that a plain loop is as fast as BLAS.\n"
        "No loop is so long that threads share it.\n"
        "Unfused, 3 arrays of 240 numbers would lie between the operators; "
        "the program keeps 1 array of 8 numbers and 2 plain variables.\n"
        "A call makes 480 operations on numbers; it reads 176 bytes and writes 320 bytes."
    )


def test_lines_of_numpy() -> None:
    f = ndl.jit(lambda x: ndl.relu(x * x + x))
    f(ndl.Tensor([1.0, -2.0], device=ndl.cpu_numpy()))
    assert viz.explain(f) == (
        "the function: 3 operators became lines of NumPy, one call each. "
        "Nothing is fused, nothing is compiled.\n"
        "A call makes 6 operations on numbers; it reads 8 bytes and writes 8 bytes."
    )
    for draw in (viz.draw, viz.draw_schedule):
        with pytest.raises(ValueError, match="no loops that could be drawn"):
            draw(f)


def test_before_the_first_call() -> None:
    @ndl.jit
    def f(x):
        return x

    assert viz.explain(f) == "f is not compiled yet: call it once, and ask again."


def test_how_long_it_took_is_said_once_it_is_known() -> None:
    W = ndl.Tensor(np.random.rand(2, 3))
    number = np.random.default_rng().random()  # so that the source is not on disk yet
    f = ndl.jit(lambda x: ndl.tanh(x @ W) * number)
    f(ndl.Tensor([[1.0, 2.0]]))
    assert re.search(r"^Numba took \d+\.\d seconds to compile it\.$", viz.explain(f), re.M)


def test_a_mask_does_not_part_the_loop_over_the_batch() -> None:
    mask = ndl.Tensor(np.triu(np.full((64, 64), -10.0), 1), dtype="float32")

    @ndl.jit
    def scores(q, k):
        return ndl.softmax(ndl.matmul(q * 2.0, ndl.transpose(k)) + ndl.where(mask < 0, mask, mask * 0.0))

    q, k = (ndl.Tensor(np.random.default_rng(i).normal(size=(8, 64, 16)), dtype="float32") for i in range(2))
    np.testing.assert_allclose(scores(q, k).numpy().sum(-1), 1, rtol=1e-5)
    assert "8 operators became 2 loops" in viz.explain(scores)


def test_large_products_go_to_blas_and_long_loops_to_threads() -> None:
    said = viz.explain(layer_of(512, 64, 512))
    assert "1 matrix product went to BLAS, because it has more than 32,768 multiplications: " in said
    assert "(512, 64) @ (64, 512)." in said
    assert "Threads share the iterations of 1 loop: Add, ReLU." in said


def test_what_is_not_lowered_is_said_with_the_reason() -> None:
    f = ndl.jit(lambda x: ndl.argmax(x * 2, 1))
    f.program_for(ndl.Tensor(np.ones((2, 3))))
    assert (
        "ArgMax was not lowered, because its compute asks for numbers, which are not known while a function "
        "is compiled; its own kernel computes between the parts of the source." in viz.explain(f)
    )
    assert "1 call of a kernel" in viz.explain(f)


def test_operators_are_named_by_their_modules() -> None:
    said = viz.explain(compiled_step())
    assert "Linear (MatMul, Add" in said
    assert "ReLU (ReLU" in said


def test_the_source_before_fusion_has_each_statement_in_loops_of_its_own() -> None:
    program = layer_of().program
    blocks = separate_source(program)
    assert [nest for nest, _ in blocks] == program.nests
    assert [line.text for _, lines in blocks for line in lines][-6:] == [
        "    # ReLU",
        "    for i in range(80):",
        "        relu1[i] = relu(add1[i])",
        "    for i in range(10):",
        "        for j in range(8):",
        "            result[8 * i + j] = relu1[8 * i + j]",
    ]


def test_costs() -> None:
    cost = cost_of(layer_of(3, 2, 4).program)
    assert cost.operations == 2 * 3 * 2 * 4 + 2 * 3 * 4
    assert (cost.bytes_read, cost.bytes_written) == (4 * (6 + 8 + 4), 4 * 12)


def test_the_lines_of_each_statement() -> None:
    program = layer_of().program
    (part,) = program.parts
    assert len(part.blocks) == 1
    shown = {nest.function: line.text.strip() for line in part.lines for nest in line.nests}
    assert shown["add"] == "add1 = matmul1[j] + b[j]"
    assert shown["relu"] == "relu1 = relu(add1)"
