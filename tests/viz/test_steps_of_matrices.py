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
        ("what loss passes on to n8", "loss is minus the mean over 4 rows, so each row counts −1/4."),
        (
            "what n8 passes on to n7",
            "So each number gets the adjoint of its sum, unchanged: it is copied to all places.",
        ),
        ("what n7 passes on to n4", "Only what was kept has changed n7"),
        ("what n4 passes on to Z", "exp(n4) is the softmax."),
        ("what n4 passes on to Z", "Together it is (softmax(Z) − n6) / 4: prediction minus truth."),
    ],
)
def test_a_frame_says_why(equation_of, frame: str, words: str) -> None:
    assert words in equation_of(frame).why


def test_with_scalars_only_what_an_adjoint_is_has_to_be_said(example) -> None:
    whys = [
        x.why for frame in viz.steps(example.v4, names=vars(example)).passes.frames for x in frame.equations
    ]
    assert [*filter(None, whys)] == [
        "The adjoint of a node, written with a bar, says how much v4 changes per small change of the node. "
        "Of v4 itself it is 1: the seed.",
        "v2 was used twice, in v4 and v3: what comes back from each use is added up.",
        "v1 is a leaf: this is the gradient of v4 with respect to it.",
    ]


def test_what_is_added_to_each_row_gets_the_sum_over_the_rows() -> None:
    x, b = ndl.Tensor(np.ones((4, 2))), ndl.Tensor([1.0, 2.0])
    y = (x + b).sum()
    frame = next(f for f in viz.steps(y, names={"b": b, "x": x}).passes.frames if "to x and b" in f.title)
    assert [x.why for x in frame.equations[1:]] == [
        "If a number of x grows by 1, the sum grows by 1. So it gets the adjoint of n3, unchanged.",
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


@pytest.mark.parametrize(
    ("scale", "share"), [(1, "softmax(Z) − Y"), (4, "(softmax(Z) − Y) / 4"), (0.4, "(softmax(Z) − Y) · 2.5")]
)
def test_the_parts_of_a_softmax_loss_are_prediction_minus_truth(scale: float, share: str) -> None:
    Z, Y = ndl.Tensor([[1.0, 2.0], [0.5, -1.0]]), ndl.Tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=False)
    loss = (ndl.logsumexp(Z, axes=1) - (Z * Y).sum(1)).sum() / scale
    last = viz.steps(loss, names={"Z": Z, "Y": Y}).passes.frames[-1].equations[-1]
    assert f"Together it is {share}: prediction minus truth." in last.why
    other = (ndl.logsumexp(Z, axes=1) - (Z * Y * 2).sum(1)).sum() / scale
    last = viz.steps(other, names={"Z": Z, "Y": Y}).passes.frames[-1].equations[-1]
    assert "was used twice" in last.why
    assert "prediction" not in last.why


def test_each_use_of_an_operator_is_explained_in_words() -> None:
    x, y, b = (ndl.Tensor(values) for values in ([[1.0, 2.0]] * 3, [[0.0, 1.0]] * 3, [3.0, 4.0]))
    n = x * y
    z = -(n + b)
    said = [
        equation.why
        for frame in viz.steps(z, names={"x": x, "y": y, "b": b, "n": n, "z": z}).passes.frames
        for equation in frame.equations
        if equation.why
    ]
    assert said[:5] == [
        "Entry by entry: each number of x times the one of y in the same place. y is 0 or 1 everywhere: "
        "where it is 1, the number of x stays.",
        "b is added to each row of n.",
        "The sign of each number changes.",
        "The adjoint of a node, written with a bar, says how much the sum of all numbers of z changes per "
        "small change of the node. Of z itself it is 1 for each of its numbers: the seed.",
        "If a number of n5 grows by 1, that of z falls by 1. So the sign flips.",
    ]
    factor = (
        "If a number of x grows by 1, that of n grows by the one of y in the same place: "
        "y is the derivative of n with respect to x."
    )
    assert factor in said
