"""Curves, bars, matrices and images."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.text import Text

import needle as ndl
from needle import nn
from viz import plots
from viz.plots.look import RED


def test_an_error_is_drawn_over_its_step(legible) -> None:
    steps = 10.0 ** -np.arange(1, 13)
    errors = [abs(((1 + e) ** 3 - (1 - e) ** 3) / (2 * e) - 3) for e in steps]
    ax = plots.curve(errors, steps, log="xy", xlabel="e", ylabel="error", title="Central differences")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), steps)
    drawn = ax.lines[0].get_ydata()
    np.testing.assert_array_equal(drawn[~np.isnan(drawn)], [error for error in errors if error > 0])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_legend() is None
    legible(ax)


def test_curves_have_names(texts, legible) -> None:
    ax = plots.curve({"sum_loss": range(50), "detached": [1] * 50}, ylabel="nodes alive")
    assert {"sum_loss", "detached", "nodes alive"} <= set(texts(ax))
    legible(ax)


def test_pictures_stand_side_by_side(texts, legible) -> None:
    left, right = plots.panels(2)
    plots.curve([1, 2, 3], ylabel="one", ax=left)
    plots.curve([3, 2, 1], ylabel="other", ax=right)
    assert left.figure is right.figure
    assert left.get_position().x1 <= right.get_position().x0
    plots.curve([-0.25, 0.5], xlabel="x", ylabel="y", ax=(alone := plots.panels(1)[0]))
    for ax in (left, right, alone):  # a slider shows the whole figure: nothing may lie outside
        words = ax.get_tightbbox()
        assert min(words.x0, words.y0) >= 0, words
    legible(left)
    legible(right)
    with pytest.raises(ValueError, match="count: needs a whole number from 1 on, got 0"):
        plots.panels(0)


def test_ticks_are_where_the_numbers_are(texts, legible) -> None:
    sizes = plots.curve([0.1, 0.8, 6.4], [64, 128, 256], log="xy", xlabel="n", ylabel="seconds")
    assert {"64", "128", "256"} <= set(texts(sizes))
    legible(sizes)
    epochs = plots.curve({"error": [0.9, 0.4, 0.2]}, xlabel="epoch")
    epochs.figure.canvas.draw()
    assert {float(text) for text in texts(epochs) if text in "0 1 2 3"} == {0, 1, 2}
    assert "0.5" not in [label.get_text() for label in epochs.get_xticklabels()]
    near = plots.curve([1, 2, 3], [100, 101, 102], log="x")
    assert not any(label.get_text() for label in near.get_xticklabels(minor=True))
    assert {"100", "102"} <= set(texts(near))
    legible(near)


@pytest.mark.parametrize("log", [False, True])
def test_bars_say_their_numbers(log: bool, texts, legible) -> None:
    ax = plots.bars({"naive": 1.9, "tiles": 0.314159, "BLAS": 0.002}, log=log, xlabel="seconds")
    assert {"naive", "1.9", "0.314", "0.002", "seconds"} <= set(texts(ax))
    assert [bar.get_width() for bar in ax.patches] == [1.9, 0.314159, 0.002]
    legible(ax)


@pytest.mark.parametrize("seconds", [[3e-7, 2.0], [1e-9, 1e6, 40.0], [0.02, 0.03], [5.0]])
def test_ticks_of_bars_are_apart(seconds: list[float], legible) -> None:
    legible(plots.bars({f"way {i}": x for i, x in enumerate(seconds)}, log=True, xlabel="seconds"))


class Named(nn.Module):
    """A module whose parameter has a name of any kind."""

    def __init__(self, name: str):
        super().__init__()
        self.parts = {name: nn.Parameter(np.ones(2))}


@pytest.mark.parametrize(
    "name", ["$a$", *[pytest.param(name, marks=pytest.mark.slow) for name in ("$$", "$5 and $6")]]
)
@pytest.mark.parametrize(
    "draw",
    [
        lambda name: plots.curve({name: [1, 2]}),
        lambda name: plots.bars({name: 1}),
        lambda name: plots.images(np.ones((1, 3, 3)), [name]),
        lambda name: plots.images(np.ones((1, 3, 3)), ["b"], [name]),
        lambda name: plots.loss_curve({name: [1, 2]}, {name: [2, 3]}),
        lambda name: plots.loss_surface(lambda a, b: a + b, {name: [(0, 0), (1, 1)]}, resolution=2),
        lambda name: plots.attention(np.eye(1), [name], keys=["b"]),
        lambda name: plots.attention(np.eye(1), ["b"], keys=[name]),
        lambda name: plots.weights(Named(name)),
    ],
)
def test_names_are_no_formulas(draw, name: str) -> None:
    ax = draw(name)
    ax.figure.canvas.draw()
    drawn = [text._preprocess_math(text.get_text()) for text in ax.figure.findobj(Text)]
    shown = [words for words, is_formula in drawn if not is_formula]
    assert any(name in words for words in shown)


def test_a_matrix_shows_its_numbers(texts, legible) -> None:
    numbers = np.array([[1.0, -2.5, 0.0], [np.nan, 1 / 3, 12345.678]])
    ax = plots.matrix(numbers, title="Jacobian", xlabel="of x", ylabel="of y", what="slope")
    np.testing.assert_array_equal(ax.images[0].get_array().filled(np.nan), numbers)
    assert {"Jacobian", "of x", "of y", "slope", "−2.5", "0.333", "12346", "nan"} <= set(texts(ax))
    legible(ax)


@pytest.mark.parametrize("shape", [(1, 1), (10, 10), (1, 10), (10, 1), (5,), (300, 3), (2, 2000)])
def test_matrices_of_all_shapes_can_be_read(shape, legible) -> None:
    legible(plots.matrix(ndl.Tensor(np.random.default_rng(0).normal(size=shape)), ylabel="row"))


def test_images_say_what_they_are_and_what_they_were_taken_for(texts, legible) -> None:
    pictures = np.random.default_rng(0).random((12, 64))
    ax = plots.images(pictures, range(12), [*range(11), 4], shape=(8, 8), title="Digits")
    assert len(ax.images) == 12
    np.testing.assert_array_equal(ax.images[3].get_array(), pictures[3].reshape(8, 8))
    assert "4 (is 11)" in texts(ax)
    assert [text.get_text() for text in ax.texts if text.get_color() == RED] == ["4 (is 11)"]
    legible(ax)


def test_one_image(texts, legible) -> None:
    ax = plots.images(np.eye(8), 3, 5)
    assert len(ax.images) == 1
    assert "5 (is 3)" in texts(ax)
    legible(ax)


def test_images_are_told_to_those_who_do_not_see_them() -> None:
    pictures = np.zeros((2, 3, 3))
    assert plots.images(pictures, [7, 1]).figure.title == "2 images: 7, 1"
    assert plots.images(pictures[:1]).figure.title == "1 image"
    named = plots.images(pictures, [7, 1], title="Digits").figure
    assert (named.title, named.words) == ("Digits", "Digits: 2 images: 7, 1")


@pytest.mark.parametrize("shape", [(50, 4, 5), (50, 4, 5, 3), (50, 1, 4, 5), (50, 3, 4, 5)])
def test_images_come_in_several_shapes(shape, texts, legible) -> None:
    ax = plots.images(ndl.Tensor(np.random.default_rng(0).random(shape)))
    assert ax.images[0].get_array().shape[:2] == (4, 5)
    assert "(40 of 50)" in texts(ax)
    legible(ax)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plots.curve([1, 2], [1, 2, 3]), ValueError, r"as many as in x, shape \(3,\)"),
        (lambda: plots.curve([1, 2], log="z"), ValueError, "log: needs"),
        (lambda: plots.curve({}), ValueError, "empty"),
        (lambda: plots.bars([1, 2]), TypeError, "dict from names to numbers, got list"),
        (lambda: plots.bars({"a": -1}), ValueError, "finite numbers from 0 on"),
        (lambda: plots.bars({"a": 0.0}, log=True), ValueError, "finite numbers above 0"),
        (lambda: plots.matrix(np.ones((2, 2, 2))), ValueError, r"one or two axes.* got shape \(2, 2, 2\)"),
        (lambda: plots.matrix([]), ValueError, "at least one number"),
        (lambda: plots.matrix(["a"]), TypeError, "matrix: values: needs numbers"),
        (lambda: plots.images(np.ones((2, 60)), shape=(8, 8)), ValueError, "that fits; got"),
        (lambda: plots.images(np.ones((2, 3, 3)), [1]), ValueError, "2 pictures, but 1 labels"),
        (lambda: plots.images(np.ones((0, 3, 3))), ValueError, "no picture"),
    ],
)
def test_wrong_input_is_refused_with_the_reason(call, error, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_picture_says_in_words_what_it_shows():
    bars = plots.bars({"loops": 1.5, "BLAS, $2": 0.25}, xlabel="seconds", title="Two products").figure
    assert bars.words == "Two products: seconds: loops 1.5, BLAS, $2 0.25"
    assert f'alt="{bars.words}"' in bars.html()
    curve = {"train": [2, 1], "test": [3, 2]}
    assert plots.curve(curve, xlabel="epoch", ylabel="loss", title="Loss").figure.words == (
        "Loss: loss over epoch; train, test"
    )
    assert plots.curve([1, 2], xlabel="epoch").figure.words == "epoch"
    assert plots.matrix([[1, 2]], title="Counts").figure.words == "Counts"
