"""What may stand between brackets: arrays and Tensors read it by the same rules, and say the same."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle import backend_ndarray as nd
from needle.backend_ndarray.indexing import basic_index, index_in_words, numpy_index

ROW = np.array([2, 0])
BOTH = pytest.mark.parametrize("make", [ndl.Tensor, nd.array], ids=["Tensor", "NDArray"])


@pytest.mark.parametrize("read", [basic_index, numpy_index])
@pytest.mark.parametrize(
    ("index", "items"),
    [
        (1, [1]),
        ((slice(1, 2), -1), [slice(1, 2), -1]),
        ((np.int64(1), ...), [1, slice(None), slice(None)]),
        ((..., np.uint8(2)), [slice(None), slice(None), 2]),
        ((), []),
    ],
    ids=str,
)
def test_items_are_given_axis_by_axis(read, index, items):
    found = list(read(index, (2, 3, 4)))
    assert found == items
    assert {type(item) for item in found} <= {int, slice}


def test_dots_for_no_axis_stay_only_where_they_keep_arrays_apart():
    assert list(basic_index((0, ..., 1), (2, 3))) == [0, 1]
    assert list(numpy_index((0, ..., 1), (2, 3))) == [0, ..., 1]


def test_booleans_become_the_numbers_of_the_true_ones():
    rows, columns = numpy_index(np.eye(3, dtype=bool)[:, ::-1], (3, 3))
    np.testing.assert_array_equal([rows, columns], [[0, 1, 2], [2, 1, 0]])


@BOTH
@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((0, 0, 0), r"index: 3 indices for the 2 axes of shape \(3, 4\)"),
        ((..., ...), r"index: only one \.\.\. is possible"),
        ((0, 4), r"index: 4 is outside axis 1 of length 4 \(shape \(3, 4\)\)"),
        (-4, r"index: -4 is outside axis 0 of length 3 \(shape \(3, 4\)\)"),
    ],
    ids=str,
)
def test_arrays_and_tensors_say_the_same(make, index, message):
    with pytest.raises(IndexError, match=message):
        make(np.zeros((3, 4)))[index]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((slice(1, 3), slice(None, None, -1), ..., 5), "[1:3, ::-1, ..., 5]"),
        (None, "[None]"),
        (np.int64(3), f"[{np.int64(3)!r}]"),
        ((ROW, ndl.Tensor(ROW), nd.array(ROW)), "[ndarray, Tensor, NDArray]"),
        (list(range(100)), "[[0, 1, 2, 3, 4, 5, ...]]"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_an_index_as_you_would_write_it(index, words):
    assert index_in_words(index) == words
