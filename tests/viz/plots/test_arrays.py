"""Strides and broadcasting: the pictures say what NumPy does."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from matplotlib.patches import FancyArrowPatch

import needle as ndl
from viz import plots

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4)


def twelve() -> ndl.NDArray:
    return ndl.NDArray(np.arange(12)).reshape((3, 4))


def memory_of(ax, drawn) -> tuple[set[str], set[str]]:
    """The numbers in cells of memory that are read, and in those that are not; both by position."""
    ys = {p.get_y() for kind in ("read", "unread") for p in drawn(ax, kind)}
    labels = {}
    for text in ax.texts:
        x, y = text.get_position()
        labels[round(x, 1), round(y, 1)] = text.get_text()
    found = []
    for kind in ("read", "unread"):
        centres = {
            (round(p.get_x() + p.get_width() / 2, 1), p.get_y() + p.get_height()) for p in drawn(ax, kind)
        }
        found.append({labels[x, round(y + 6, 1)] for x, y in centres})
    assert ys
    return found[0], found[1]


VIEWS = {
    "permute": (lambda a: a.permute((1, 0)), (4, 3), (1, 4), 0),
    "slice with step": (lambda a: a[1:, ::2], (2, 2), (4, 2), 4),
    "negative step": (lambda a: a[:, ::-1], (3, 4), (4, -1), 3),
    "broadcast": (lambda a: a[:, 0].broadcast_to((3, 5)), (3, 5), (4, 0), 0),
    "as_strided": (lambda a: a.as_strided((5, 4), (2, 1)), (5, 4), (2, 1), 0),
    "reshape": (lambda a: a.reshape((2, 6)), (2, 6), (6, 1), 0),
}


@pytest.mark.parametrize("view", VIEWS)
def test_the_picture_of_a_view_shows_the_cells_that_it_reads(view: str, texts, drawn, legible) -> None:
    make, shape, strides, offset = VIEWS[view]
    array = make(twelve())
    ax = plots.strides(array, tuple(n - 1 for n in array.shape))
    assert f"shape {shape}   strides {strides}   offset {offset}".replace("-", "−") in texts(ax)
    read, unread = memory_of(ax, drawn)
    assert read == {str(int(x)) for x in array.numpy().ravel()}  # the numbers are their own positions
    assert read | unread == set(map(str, range(12)))
    assert len(drawn(ax, "element")) == array.size
    legible(ax)


def test_an_index_is_followed_to_its_cell_with_the_sum(texts, legible) -> None:
    ax = plots.strides(twelve()[::-1], (-1, 2))
    assert "[2, 2] is at  offset + Σ index·stride = 8 + 2·(−4) + 2·1 = 2" in texts(ax)
    legible(ax)


@pytest.mark.parametrize(
    ("shape", "index"), [((3, 4), (1, 2)), ((3, 4), (0, 0)), ((6, 6), (4, 5)), ((2, 3, 4), (1, 0, 2))]
)
def test_the_way_to_a_cell_crosses_no_cell_and_no_word(shape, index, drawn) -> None:
    ax = plots.strides(np.arange(math.prod(shape)).reshape(shape), index)
    ax.figure.canvas.draw()
    boxes = [x.get_window_extent() for kind in ("element", "read") for x in drawn(ax, kind)]
    boxes += [text.get_window_extent() for text in ax.texts]
    lines = [x for x in ax.patches if isinstance(x, FancyArrowPatch)]
    assert len(lines) >= 3
    for line in lines:
        (x0, y0), (x1, y1) = (ax.transData.transform(x) for x in line._posA_posB)
        left, right, low, high = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
        for box in boxes:
            inside = left < box.x1 - 2 and right > box.x0 + 2 and low < box.y1 - 2 and high > box.y0 + 2
            assert not inside


def test_a_cell_that_several_indices_read_says_how_many(texts) -> None:
    assert texts(plots.strides(twelve()[:, 0].broadcast_to((3, 5)))).count("×5") == 3
    assert not any(text.startswith("×") for text in texts(plots.strides(twelve())))


def indices(shape) -> st.SearchStrategy[tuple]:
    """Numbers and slices for the first axes, and dots, so that NumPy gives a view and no number."""
    basic = hnp.basic_indices(shape, allow_newaxis=False, allow_ellipsis=False)
    return basic.map(lambda index: (*(index if isinstance(index, tuple) else (index,)), ...))


@settings(max_examples=60)
@given(st.data())
def test_the_layout_of_a_view_is_numpys(data) -> None:
    shape = data.draw(SHAPES)
    base = np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)
    view = base[data.draw(indices(shape))]
    view = view.transpose(data.draw(st.permutations(range(view.ndim))))
    layout = plots.MemoryLayout.of(view)
    assert layout.shape == view.shape
    assert layout.strides == tuple(step // 4 for step in view.strides)
    for index in np.ndindex(view.shape):
        assert layout.storage[layout.position(index)] == view[index]
    assert layout.uses().sum() == view.size
    assert set(np.flatnonzero(layout.uses())) == {int(x) for x in view.ravel()}


@settings(max_examples=40)
@given(st.data())
def test_needles_views_and_numpys_read_the_same_elements(data) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    index = data.draw(indices(shape))[:-1]
    # An integer keeps its axis in needle: for NumPy a slice of length 1 does.
    slices = tuple(slice(i % n, i % n + 1) if isinstance(i, int) else i for i, n in zip(index, shape))  # noqa: B905
    values = np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)
    ours, theirs = plots.MemoryLayout.of(ndl.NDArray(values)[index]), plots.MemoryLayout.of(values[slices])
    assert ours.shape == theirs.shape
    positions = [[layout.position(i) for i in np.ndindex(layout.shape)] for layout in (ours, theirs)]
    assert positions[0] == positions[1]


@pytest.mark.parametrize(
    ("array", "note"),
    [
        (np.zeros((0, 3)), "no elements"),
        (np.array(7.0), "7"),
        (np.arange(5000).reshape(50, 100), "…"),
        (np.arange(24).reshape(2, 3, 4), "[1]"),
        (np.arange(120).reshape(2, 3, 4, 5), "[1, 2]"),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), "axis 0 ↓ +1"),
        (ndl.Tensor(np.arange(6.0).reshape(2, 3)), "axis 0 ↓ +3"),
        (np.arange(4) > 1, "1"),
        (np.array([1e30, -np.inf, np.nan, 123456.7]), "nan"),
        (np.arange(10**9, 10**9 + 3), "10…00"),
    ],
)
def test_arrays_of_every_kind_are_drawn(array, note: str, texts, legible) -> None:
    ax = plots.strides(array)
    assert note in texts(ax)
    legible(ax)
    assert len(ax.patches) < 800


def test_memory_that_another_object_holds_is_drawn() -> None:
    layout = plots.MemoryLayout.of(np.frombuffer(bytes(range(12)), dtype="uint8")[2::3])
    assert layout.storage.tolist() == list(range(12))
    assert [layout.storage[layout.position((i,))] for i in range(4)] == [2, 5, 8, 11]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plots.strides([1, 2]), TypeError, "needs an NDArray, a Tensor or a NumPy array, got list"),
        (lambda: plots.strides(np.array(["a"])), TypeError, "array of numbers"),
        (lambda: plots.strides(np.zeros(6, "f4,i2")["f0"]), ValueError, "draw a copy of it: array.copy"),
        (lambda: plots.strides(np.zeros((2, 3)), (1,)), IndexError, "must be 2 whole numbers"),
        (lambda: plots.strides(np.zeros((2, 3)), (1, 3)), IndexError, "outside shape"),
        (lambda: plots.strides(np.zeros(3), 1.5), IndexError, "index 1.5 must be 1 whole number, one for"),
        (lambda: plots.strides(np.zeros(3), True), IndexError, "index True must be 1 whole number"),
        (lambda: plots.strides(np.zeros(3), "a"), IndexError, "index 'a' must be 1 whole number"),
        (
            lambda: plots.strides(np.zeros((2, 3)), slice(2)),
            IndexError,
            "index slice.* must be 2 whole numbers",
        ),
        (lambda: plots.strides(np.zeros(3), ax="here"), TypeError, "ax: needs matplotlib Axes"),
        (lambda: plots.broadcast((1, 2)), ValueError, "at least two shapes"),
        (lambda: plots.broadcast((1, -2), (3,)), TypeError, "needs shapes such as"),
        (lambda: plots.broadcast("ab", (3,)), TypeError, "needs shapes such as"),
    ],
)
def test_wrong_input_is_refused_with_the_reason(call, error, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "shapes",
    [((5, 1), (5, 3)), ((3,), (5, 3)), ((2, 3, 1), (7, 2, 1, 5)), ((4, 1), (3,), (1, 1)), ((), (2,))],
)
def test_the_lectures_shapes_broadcast(shapes, texts, drawn, legible) -> None:
    ax = plots.broadcast(*shapes)
    result = np.broadcast_shapes(*shapes)
    assert any(text.endswith(f"broadcast to {result}") for text in texts(ax))
    assert len(drawn(ax, "result")) == len(result)
    assert not drawn(ax, "wrong")
    legible(ax)


def test_repeated_cells_are_hollow_and_counted(drawn) -> None:
    ax = plots.broadcast((5, 1), (5, 3))
    assert len(drawn(ax, "there")) == 5 + 15
    assert len(drawn(ax, "repeated")) == 10
    assert len(drawn(ax, "made")) == 15


def test_a_refusal_names_the_axis(texts, drawn, legible) -> None:
    ax = plots.broadcast((2, 3), (2, 4))
    assert "(2, 3) and (2, 4) do not broadcast" in texts(ax)
    assert any(re.search("axis -1 .*3 ≠ 4, and neither is 1", text) for text in texts(ax))
    assert len(drawn(ax, "wrong")) == 2
    legible(ax)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4), min_size=2, max_size=3))
def test_the_picture_says_what_numpy_says(shapes) -> None:
    ax = plots.broadcast(*shapes)
    titles = [text.get_text() for text in ax.texts if "broadcast" in text.get_text()]
    try:
        result = np.broadcast_shapes(*shapes)
    except ValueError:
        assert titles[0].endswith("do not broadcast")
        assert [patch for patch in ax.patches if patch.get_gid() == "wrong"]
    else:
        assert titles[0].endswith(f"broadcast to {result}")


def test_arrays_stand_for_their_shapes(texts) -> None:
    ax = plots.broadcast(ndl.Tensor(np.ones((2, 1))), np.ones(3))
    assert "(2, 1) and (3,) broadcast to (2, 3)" in texts(ax)
