"""The steps of a softmax regression with a batch of 4: what a student can read off each frame."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from viz.equations import Matrix


@pytest.fixture(scope="module")
def steps() -> viz.Steps:
    X = ndl.Tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1.0]], requires_grad=False)
    W = ndl.Tensor([[0.5, -0.5], [0.0, 1.0], [1.0, 0.0]])
    Z = X @ W
    y = ndl.Tensor([0, 1, 1, 0], requires_grad=False)
    loss = nn.SoftmaxLoss()(Z, y)
    return viz.steps(loss, names={"X": X, "W": W, "Z": Z, "y": y, "loss": loss})


@pytest.fixture
def equation_of(steps):
    """A function that gives the last equation of the frame whose title ends with some words."""

    def equation_of(words: str):
        return next(x for x in steps.passes.frames if x.title.endswith(words)).equations[-1]

    return equation_of


def marked(equation) -> list[set[tuple[int, int]]]:
    """The marked cells of each matrix, from left to right."""
    return [set(x.marked) for side in equation.sides for x in side if isinstance(x, Matrix)]


def test_an_entry_of_a_product_is_traced_to_its_row_and_its_column(equation_of) -> None:
    product = equation_of(": Z")
    assert marked(product) == [{(0, 0), (0, 1), (0, 2)}, {(0, 1), (1, 1), (2, 1)}, {(0, 1)}]
    assert product.html().count("<mark>") == 7
    assert product.why == (
        "Row i of X meets column j of W: multiplied in pairs and summed, they give entry [i, j] of Z."
    )


def test_the_transpose_and_the_sum_over_the_batch_are_explained(equation_of) -> None:
    gradient = equation_of("what Z passes on to W")
    assert "X" + "ᵀ" in str(gradient)
    column = {(0, 1), (1, 1), (2, 1), (3, 1)}
    assert marked(gradient) == [{(0, 0), (0, 1), (0, 2), (0, 3)}, column, {(0, 1)}]
    assert "W[k, j] was used by all 4 rows" in gradient.why
    assert "summed over the rows" in gradient.why


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("node 4 of 9: n4", "In each row by itself"),
        ("node 7 of 9: n7", "What stands where n6 is not 0 is kept"),
        ("node 8 of 9: n8", "All 8 numbers are summed."),
        ("node 9 of 9: loss", "n8 is a sum over 4 rows: divided by 4 it is their mean"),
        ("what loss passes on to n8", "It is a mean over 4 rows, so each row counts 1/4."),
        ("what n8 passes on to n7", "Each number went into its sum once"),
        ("what n7 passes on to n4", "Only what was kept has changed n7"),
        ("what n4 passes on to Z", "exp(n4) is the softmax."),
    ],
)
def test_a_frame_says_why(equation_of, frame: str, words: str) -> None:
    assert words in equation_of(frame).why


def test_numbers_that_are_scalars_need_no_reasons(example) -> None:
    assert not any(x.why for frame in viz.steps(example.v4).passes.frames for x in frame.equations)


def test_what_is_added_to_each_row_gets_the_sum_over_the_rows() -> None:
    x, b = ndl.Tensor(np.ones((4, 2))), ndl.Tensor([1.0, 2.0])
    y = (x + b).sum()
    frame = next(f for f in viz.steps(y, names={"b": b, "x": x}).passes.frames if "to x and b" in f.title)
    assert [x.why for x in frame.equations[1:]] == [
        "",
        "Each number of b was used 4 times: what comes back from these is summed.",
    ]


def test_printed_frames_are_aligned_and_fit_a_terminal(steps) -> None:
    lines = str(steps).splitlines()
    assert max(map(len, lines)) <= 100
    at = lines.index("Forward, node 3 of 9: Z")
    assert lines[at + 1 : at + 5] == [
        "               ⎡1 0 2⎤   ⎡0.5 −0.5⎤   ⎡2.5 −0.5⎤",
        "   Z = X @ W = ⎢0 1 1⎥ @ ⎢  0    1⎥ = ⎢  1    1⎥",
        "               ⎢2 1 0⎥   ⎣  1    0⎦   ⎢  1    0⎥",
        "               ⎣1 1 1⎦                ⎣1.5  0.5⎦",
    ]
    at = lines.index("Backward, node 3 of 6: what n7 passes on to n4")
    opening = [unicodedata.normalize("NFC", line) for line in lines[at + 1 : at + 5]]
    shown = ["".join(x for x in line if not unicodedata.combining(x)) for line in opening]
    assert len({line.index(bracket) for line, bracket in zip(shown, "⎡⎢⎢⎣", strict=True)}) == 1
    assert str(steps[2]) in str(steps)
