"""The rules of strides against NumPy, which knows them too; no array of ours is made."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.backend_ndarray import strides as rules

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def steps(x: np.ndarray) -> tuple[int, ...]:
    """NumPy's strides, in elements."""
    return tuple(stride // x.itemsize for stride in x.strides)


def walk(shape, strides, offset=0):
    """Where in the storage the elements are, in row-major order."""
    for index in itertools.product(*map(range, shape)):
        yield offset + sum(i * stride for i, stride in zip(index, strides, strict=True))


@given(shapes, st.data())
def test_strides_are_numpys(shape, data):
    x = np.zeros(shape, "uint8")
    strides = rules.compact_strides(shape)
    assert strides == steps(x)
    axes = tuple(data.draw(st.permutations(range(x.ndim))))
    assert rules.permuted(shape, strides, axes) == (x.transpose(axes).shape, steps(x.transpose(axes)))
    wider = (2, *[n if n > 1 else 3 for n in shape])
    ours, theirs = rules.broadcast_strides(shape, strides, wider), steps(np.broadcast_to(x, wider))
    assert list(walk(wider, ours)) == list(walk(wider, theirs))


@given(shapes, st.data())
def test_reshaped_strides_read_the_elements_in_their_order(shape, data):
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    shape, strides = rules.permuted(shape, rules.compact_strides(shape), axes)
    new_shape = tuple(data.draw(st.permutations(shape)))
    found = rules.reshaped_strides(shape, strides, new_shape)
    x = np.lib.stride_tricks.as_strided(np.zeros(99, "uint8"), shape, strides)
    if np.shares_memory(x, x.reshape(new_shape)):  # NumPy has found strides
        assert list(walk(new_shape, found)) == list(walk(shape, strides))
    else:
        assert found is None


@given(shapes, st.data())
def test_merged_axes_walk_the_same_way(shape, data):
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    back = tuple(int(axis) for axis in np.argsort(axes))
    permuted = rules.permuted(*rules.permuted(shape, rules.compact_strides(shape), axes), back)
    broadcast = tuple(data.draw(st.sampled_from([0, stride])) for stride in permuted[1])
    lengths, *merged = rules.merged_axes(shape, permuted[1], broadcast)
    assert len(lengths) <= max(len(shape), 1)
    for before, after in zip((permuted[1], broadcast), merged, strict=True):
        assert list(walk(shape, before)) == list(walk(lengths, after))


@pytest.mark.parametrize(
    ("shape", "strides", "size", "fills"),
    [
        ((2, 3), (3, 1), 6, True),
        ((3, 2), (1, 3), 6, True),
        ((2, 1, 3), (1, 7, 2), 6, True),
        ((2, 3), (3, 1), 7, False),
        ((2, 3), (0, 1), 6, False),
        ((3,), (-1,), 3, False),
        ((), (), 1, True),
    ],
    ids=str,
)
def test_fills_storage(shape, strides, size, fills):
    assert rules.fills_storage(shape, strides, size) is fills


def test_windows_are_numpys():
    x = np.arange(2 * 5 * 6 * 3, dtype="uint8").reshape(2, 5, 6, 3)
    shape, strides = rules.window_layout(x.shape, steps(x), (3, 2), (2, 1), (1, 2))
    expected = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, :, :, :, ::2]
    found = x.reshape(-1)[list(walk(shape, strides))].reshape(shape)
    np.testing.assert_array_equal(found, expected.transpose(0, 1, 2, 4, 5, 3))


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (((4, 3), (3, 1), 0), "reach from element 0 to 11 of a storage of 10"),
        (((2,), (-1,), 0), "reach from element -1 to 0"),
        (((2, -1), (1, 1), 0), r"lengths must not be negative, got shape \(2, -1\)"),
        (((2, 2), (1,), 0), "differ in length"),
    ],
    ids=str,
)
def test_a_view_stays_within_its_storage(view, message):
    rules.check_reach((3, 3), (3, 1), 1, 10)
    rules.check_reach((0, 9), (100, 100), 0, 10)  # nothing is read
    with pytest.raises(ValueError, match=message):
        rules.check_reach(*view, 10)
