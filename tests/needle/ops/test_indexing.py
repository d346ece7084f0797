"""Indexing, iteration, split, stack and concatenate against NumPy, on every device."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import needle as ndl
from needle.autograd import Tensor, gradients

DEVICES = [d for d in ndl.all_devices() if d.enabled()]
every_device = pytest.mark.parametrize("device", DEVICES, ids=str)

X = np.random.default_rng(0).normal(size=(4, 3, 5))
FEW = np.array([0, 2, 2])
COLUMN = np.array([[1], [-1]])
HALF = X[:, 0, 0] > 0
PAIRS = X[:, :, 0] > 0

INDICES = {
    "int": 1,
    "negative int": -1,
    "numpy's int": np.int64(2),
    "array of shape ()": np.array(2),
    "slice": slice(1, 3),
    "steps": (slice(None, None, 2), slice(2, None, -1), slice(-2, -9, -2)),
    "empty slice": (slice(3, 1), slice(9, 20)),
    "ints": (0, -1, 2),
    "dots in front": (..., 0),
    "dots behind": (0, ...),
    "dots for nothing": (0, 1, ..., 2),
    "dots alone": ...,
    "nothing": (),
    "none": None,
    "nones": (None, 1, None, ..., None),
    "list": [3, 0, 0],
    "empty list": [],
    "array": FEW,
    "uint8 array": FEW.astype("uint8"),
    "array of no numbers": np.zeros((0, 2), int),
    "last axis": (..., [[1, -5], [0, 4]]),
    "two arrays": (FEW, FEW),
    "broadcast": (slice(None), FEW, COLUMN),
    "apart": (FEW, slice(None), COLUMN),
    "apart by None": (FEW, None, COLUMN),
    "dots of no axes between": (FEW, 1, ..., COLUMN),
    "int and array": (0, slice(1, None), FEW),
    "int beside array": (slice(None), 0, FEW),
    "array and steps": (FEW, slice(None, None, -1), slice(1, 4, 2)),
    "nones and array": (None, 0, None, FEW, None),
    "three arrays": (FEW, FEW[::-1], COLUMN),
    "mask": HALF,
    "mask of two axes": PAIRS,
    "mask and slice": (HALF, 1, slice(1, 3)),
    "mask and array": (HALF, slice(None), [1]),
    "dots and mask": (..., X[0] > 0),
    "mask of all": X > 0.5,
    "mask of none": np.zeros(4, bool),
    "list of booleans": [True, False, True, True],
}


def scattered(shape, index, values):
    """Zeros, to which the values are added where NumPy finds `index`."""
    zeros = np.zeros(shape)
    np.add.at(zeros, index, values)
    return zeros


def whole(index, device=None):
    """Whole numbers as an operand."""
    return Tensor(np.array(index), device=device, dtype="int64", requires_grad=False)


def refused(make, message, mode):
    """An index is refused at once; in lazy mode it is when the result is computed."""
    compute = make().numpy if mode == "lazy" else make
    with pytest.raises(IndexError, match=message):
        compute()


def check(x, index, device, ours=None):
    """Value, gradient and the gradient's gradient of ``x[index]``; `ours`: the index as it is given to us."""
    expected = x[index]
    t = Tensor(x, device=device, dtype="float64")
    out = t[index if ours is None else ours]
    assert (out.shape, out.dtype, out.device) == (expected.shape, "float64", device)
    np.testing.assert_array_equal(out.numpy(), expected)
    weights = Tensor(np.cos(np.arange(expected.size)).reshape(expected.shape), device=device, dtype="float64")
    if out is t:
        return
    (by_t,) = gradients(out, [t], weights)
    np.testing.assert_allclose(by_t.numpy(), scattered(x.shape, index, weights.numpy()), atol=1e-14)
    (by_weights,) = gradients((by_t * t).sum(), [weights])
    np.testing.assert_array_equal(by_weights.numpy(), expected)


@every_device
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_every_kind_of_index(index, device, mode):
    check(X, index, device)


@every_device
def test_tensors_as_indices(device, mode):
    few = Tensor(FEW, device=device, dtype="int64")
    check(X, (slice(None), FEW), device, (slice(None), few))
    check(X, HALF, device, Tensor(HALF, device=device, dtype="bool"))
    check(X, 2, device, Tensor(2, device=device, dtype="int32"))
    check(X, FEW, device, few.realize_cached_data())


@st.composite
def cases(draw):
    """A shape, and an index of NumPy's for it."""
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    kinds = draw(st.lists(st.sampled_from(["slice", "int", "array", "whole"]), max_size=len(shape)))
    sides = draw(arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=3))
    index: list = []
    for n, kind in zip(shape, kinds, strict=False):
        if kind == "int" and n:
            index.append(draw(st.integers(-n, n - 1)))
        elif kind == "array" and n:
            some = draw(st.sampled_from([sides, (1,), (1, 1), sides[-1:]]))
            index.append(draw(arrays.arrays(np.int64, some, elements=st.integers(-n, n - 1))))
        elif kind == "slice":
            index.append(draw(st.slices(n)))
        else:
            index.append(slice(None))
    if len(index) < len(shape) and draw(st.booleans()):
        index.append(...)
    for _ in range(draw(st.integers(0, 2))):
        index.insert(draw(st.integers(0, len(index))), None)
    return shape, tuple(index)


@every_device
@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_any_index(case, device):
    shape, index = case
    check(np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape), index, device)


@every_device
@settings(max_examples=50, deadline=None)
@given(mask=arrays.arrays(bool, arrays.array_shapes(max_dims=3, min_side=0, max_side=4)))
def test_any_mask(mask, device):
    check(np.random.default_rng(0).normal(size=(*mask.shape, 2)), mask, device)


@every_device
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_every_dtype(dtype, device):
    x = (X * 50).astype(dtype)
    t = Tensor(x, device=device, dtype=dtype)
    for out, expected in [
        (t[1:, 0], x[1:, 0]),
        (t[:, FEW], x[:, FEW]),
        (ndl.stack(list(t), 1), np.stack(list(x), 1)),
        (ndl.concatenate([t, t[:1]]), np.concatenate([x, x[:1]])),
    ]:
        assert out.dtype == dtype
        np.testing.assert_array_equal(out.numpy(), expected)
    added = ndl.ops.ScatterAdd(0, 2)(t, whole([1, 1, 1, 0], device))
    assert added.dtype == (dtype if t.dtype.kind == "f" else "int64")
    wide = x.astype(added.dtype)
    np.testing.assert_allclose(added.numpy(), np.stack([wide[3], wide[:3].sum(0)]), rtol=1e-6)


@every_device
def test_operands_that_are_not_compact(device):
    t = Tensor(X, device=device, dtype="float64")
    turned = t.permute((2, 0, 1))
    x = X.transpose(2, 0, 1)
    np.testing.assert_array_equal(turned[1::2, FEW].numpy(), x[1::2, FEW])
    np.testing.assert_array_equal(turned[::-1][[0, 1]].numpy(), x[::-1][[0, 1]])
    np.testing.assert_array_equal(ndl.stack([turned, turned]).numpy(), np.stack([x, x]))
    for ours, theirs in zip(ndl.split(turned[::-1], 1), np.moveaxis(x[::-1], 1, 0), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@every_device
def test_a_large_table(device):
    """Many numbers to be added in one place, and more than one block of threads."""
    n = 30 if "NUMBA_ENABLE_CUDASIM" in os.environ else 700
    rng = np.random.default_rng(1)
    table, index = rng.normal(size=(20, n)), rng.integers(0, 20, n)
    check(table, index, device)
    check(table.reshape(2, 10, n), (slice(None), index % 10), device)


def test_a_slice_and_a_split_are_views():
    if ndl.BACKEND == "np":
        pytest.skip("about NDArray")
    t = Tensor(X)
    data = t.realize_cached_data()
    parts = [t[1:, ::2], t[0], t[None, ..., -1], *ndl.split(t, 1)]
    assert all(part.realize_cached_data()._handle is data._handle for part in parts)


def test_a_later_change_of_the_index_array_changes_nothing(mode):
    t, index = Tensor(X, dtype="float64"), np.array([0, 1])
    out = t[index]
    index[:] = 3
    out.backward()
    np.testing.assert_array_equal(out.numpy(), X[:2])
    np.testing.assert_array_equal(t.grad.numpy(), scattered(X.shape, [0, 1], 1))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (4, ["4", "axis 0", "length 4"]),
        ((0, -4), ["-4", "axis 1", "length 3"]),
        ((..., [0, 5]), ["0 to 5", "axis 2", "length 5"]),
        ([0, -5], ["-5 to 0", "axis 0", "length 4"]),
        ((0, 0, 0, 0), ["4 indices", "3 axes"]),
        ((None, 0, 0, FEW, 0), ["4 indices", "3 axes"]),
        ((..., ...), ["only one ..."]),
        (1.0, ["float", "whole numbers"]),
        ([1.0], ["float64", "astype('int64')"]),
        ("a", ["str"]),
        (True, ["bool"]),
        ((FEW, [0, 1]), ["(3,)", "(2,)", "broadcast"]),
        (np.ones(3, bool), ["(3,)", "(4,)", "must be equal"]),
        (np.ones((4, 2), bool), ["(4, 2)", "(4, 3)"]),
    ],
    ids=str,
)
def test_an_index_that_does_not_fit_is_refused(index, words, mode):
    with pytest.raises(IndexError) as caught:
        Tensor(X)[index]
    for word in words:
        assert word in str(caught.value)


def test_a_float_tensor_is_no_index():
    with pytest.raises(IndexError, match="float32"):
        Tensor(X)[Tensor([0.0, 1.0], dtype="float32")]


def test_no_index_operator_reads_or_writes_beyond_its_axis(mode):
    x = Tensor(np.ones(3))
    for index in ([3, 0, 1], [-4, 0, 1], [0, 2**40, 1]):
        for op in (ndl.ops.Take, ndl.ops.ScatterAdd):
            refused(lambda op=op, i=index: op(0, 3)(x, whole(i)), "beyond axis 0 of length 3", mode)
    with pytest.raises(ValueError, match="length 4 along axis 0"):
        ndl.ops.Take(0, 4)(x, whole([3]))
    with pytest.raises(ValueError, match="length 2 along axis 0"):
        ndl.ops.ScatterAdd(0, 4)(x, whole([0, 1]))


# A Tensor as an index


@every_device
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_a_tensor_as_an_index_is_an_operand(dtype, device, computed):
    """In lazy mode its numbers are not read before somebody asks for the result."""
    t = Tensor(X, device=device, dtype="float64")
    with ndl.lazy():
        few = Tensor(FEW, device=device, dtype=dtype, requires_grad=False) + 0
        column = Tensor(COLUMN % 3, device=device, dtype=dtype, requires_grad=False) * 1
        parts = [
            (t[few], X[FEW]),
            (t[:, few, None], X[:, FEW, None]),
            (t[0, :, few], X[0, :, FEW]),
            (t[few, :, column], X[FEW, :, COLUMN % 3]),
            (t[few, [0, 1, 1], column], X[FEW, [0, 1, 1], COLUMN % 3]),
        ]
        total = sum(part.sum() for part, _ in parts)
        total.backward()
        assert computed == []
        assert [part.shape for part, _ in parts] == [expected.shape for _, expected in parts]
    for part, expected in parts:
        np.testing.assert_array_equal(part.numpy(), expected)
    counts = scattered(X.shape, FEW, 1) + scattered(X.shape, (slice(None), FEW), 1)
    counts += scattered(X.shape, (0, slice(None), FEW), 1) + scattered(
        X.shape, (FEW, slice(None), COLUMN % 3), 1
    )
    counts += scattered(X.shape, (FEW, [0, 1, 1], COLUMN % 3), 1)
    np.testing.assert_array_equal(t.grad.numpy(), counts)


def test_no_gradient_flows_to_an_index():
    t, index = Tensor(X), whole(FEW)
    assert t[index].inputs == (t, index)
    index = Tensor(FEW, dtype="int64", requires_grad=True)
    t[index].backward()
    assert index.grad is None
    assert not t.detach()[index].requires_grad


@pytest.mark.parametrize("index", [[4], [0, -5], [[2**40]]], ids=str)
@pytest.mark.parametrize("around", [(), (slice(None), [0])], ids=["alone", "beside another"])
def test_a_tensor_that_leads_beyond_its_axis_is_refused_when_that_is_computed(index, around, mode):
    refused(lambda: Tensor(X)[whole(index), *around], r"axis 0 of length 4 \(shape \(4, 3, 5\)\)", mode)


def test_an_index_that_was_written_to_counts_as_it_was(mode):
    t, index = Tensor(X, dtype="float64"), whole([0, 1])
    out = t[index]
    index.data = whole([3, 3])
    out.backward()
    np.testing.assert_array_equal(out.numpy(), X[:2])
    np.testing.assert_array_equal(t.grad.numpy(), scattered(X.shape, [0, 1], 1))


# A Tensor as a sequence


@every_device
def test_a_tensor_is_a_sequence_of_its_first_axis(device, mode):
    t = Tensor(X, device=device, dtype="float64")
    assert len(t) == 4
    parts = list(t)
    assert [part.shape for part in parts] == [(3, 5)] * 4
    first, *_, last = t
    sum((part * i for i, part in enumerate(t)), first - last).sum().backward()
    slope = np.array([1, 1, 2, 2]).reshape(4, 1, 1) * np.ones_like(X)
    np.testing.assert_array_equal(t.grad.numpy(), slope)
    assert list(Tensor(np.ones((0, 2)))) == []
    assert [float(number.numpy()) for number in reversed(Tensor([1, 2, 3]))] == [3, 2, 1]


def test_a_tensor_without_axes_is_no_sequence():
    for f in (len, list, iter):
        with pytest.raises(TypeError, match=r"shape \(\)"):
            f(Tensor(1.0))


def test_whether_a_number_is_in_a_tensor():
    t = Tensor([[1.0, 2.0]])
    assert 2 in t
    assert 3 not in t
    assert Tensor(1.0) in t


def test_numpy_sees_its_values():
    x = np.arange(6.0).reshape(2, 3)
    t = Tensor(x, dtype="float64")
    for array in (np.asarray(t), np.array([t, t])[1], np.array(list(t)), np.asarray(t, "float32")):
        np.testing.assert_array_equal(array, x)
    np.asarray(t)[0] = 7
    np.testing.assert_array_equal(t.numpy(), x)
    with pytest.raises(ValueError, match="copy"):
        np.array(t, copy=False)


@pytest.mark.parametrize("nested", [lambda t: [t, t], lambda t: (1, t), lambda t: [[1, 2], [3, t]]])
def test_a_list_of_tensors_is_not_made_a_constant(nested):
    for f in (Tensor, lambda x: Tensor([1.0, 2.0]) + list(x)):
        with pytest.raises(TypeError, match=r"needle\.stack"):
            f(nested(Tensor(1.0)))


def test_the_truth_of_a_tensor():
    assert Tensor([[2.0]])
    assert not Tensor(0.0)
    for empty_or_many in ([], [1.0, 1.0]):
        with pytest.raises(ValueError, match="is not None"):
            bool(Tensor(empty_or_many))


def test_the_gradient_of_an_iteration_is_one_stack(computed):
    t = Tensor(np.ones((50, 2)))
    total = sum(part.sum() for part in t)
    computed.clear()
    total.backward()
    assert sum(isinstance(op, ndl.ops.Stack) for op in computed) == 1
    assert not any(isinstance(op, ndl.ops.ZerosButSlice) for op in computed)


# Split, stack, concatenate


def test_split_of_stack_and_stack_of_split(mode):
    t = Tensor(X, dtype="float64")
    for axis in range(-3, 3):
        parts = ndl.split(t, axis)
        assert len(parts) == X.shape[axis]
        np.testing.assert_array_equal(ndl.stack(parts, axis).numpy(), X)


def test_joined_tensors_of_different_dtypes(mode):
    a, b = Tensor([1.0, 2.0], dtype="float32"), Tensor([3.0, 4.0], dtype="float64")
    for out in (ndl.concatenate([a, b]), ndl.stack([a, b])):
        assert out.dtype == "float64"
        out.backward()
        assert (a.grad.dtype, b.grad.dtype) == ("float32", "float64")


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda a, b: ndl.stack([]), "stack: needs at least one"),
        (lambda a, b: ndl.stack([a, b]), r"stack: .*one shape; .*\(2, 3\), \(2, 4\)"),
        (lambda a, b: ndl.stack([a, a], 3), r"stack: .*3.*-3\.\.2"),
        (lambda a, b: ndl.concatenate([]), "concatenate: needs at least one"),
        (lambda a, b: ndl.concatenate([a, b]), r"concatenate: .*\(2, 3\), \(2, 4\) .*axis but 0"),
        (lambda a, b: ndl.concatenate([a, b.reshape((8,))], 1), r"concatenate: .*\(8,\)"),
        (lambda a, b: ndl.concatenate([a], 2), r"concatenate: .*2.*-2\.\.1"),
        (lambda a, b: ndl.split(a, 2), r"split: .*2.*-2\.\.1"),
        (lambda a, b: ndl.ops.Slice((slice(1),) * 3)(a), "slice: 3 slices for the 2 axes"),
        (lambda a, b: ndl.ops.ZerosButSlice((slice(1),), (2, 3))(a), r"\(1, 3\), the operand \(2, 3\)"),
    ],
)
def test_what_does_not_fit_together_is_refused(f, message, mode):
    with pytest.raises(ValueError, match=message):
        f(Tensor(np.ones((2, 3))), Tensor(np.ones((2, 4))))


@pytest.mark.skipif(len(DEVICES) < 2, reason="one device cannot be mixed up")
def test_tensors_on_different_devices_are_not_joined(mode):
    a, b = (Tensor(np.ones(2), device=device) for device in DEVICES[:2])
    for f in (ndl.stack, ndl.concatenate):
        with pytest.raises(ValueError, match=r"\.to\("):
            f([a, b])
