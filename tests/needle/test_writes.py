"""Writing to a Tensor, detaching it, computing without a graph: what was built before keeps its values."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor, find_topo_sort, gradients


def leaf(values) -> Tensor:
    return Tensor(values, dtype="float64")


# data = ...


def test_a_write_replaces_the_value_and_leaves_the_graph(mode):
    x = leaf([1.0, 2.0])
    y = x * 3
    op, inputs = y.op, y.inputs
    y.data = leaf([7.0, 8.0])
    np.testing.assert_array_equal(y.numpy(), [7, 8])
    assert (y.op, y.inputs, y.requires_grad) == (op, inputs, True)
    x.data = [5.0, 6.0]
    np.testing.assert_array_equal(x.numpy(), [5, 6])
    x.data = np.array([9.0, 10.0])
    np.testing.assert_array_equal(x.numpy(), [9, 10])
    assert x.is_leaf()
    assert x.requires_grad


def test_a_write_takes_the_value_and_not_the_tensor(mode):
    x, y = leaf([1.0]), leaf([2.0])
    x.data = y * 3
    y.data = leaf([100.0])
    assert x.numpy() == 6
    assert x.is_leaf()
    x.data = x.data
    assert x.numpy() == 6
    x.data = x
    assert x.numpy() == 6


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Tensor([1.0, 2.0], dtype="float32"), ["float64 of shape (2,)", "float32 of shape (2,)"]),
        (Tensor([1, 2], dtype="int64"), ["float64 of shape (2,)", "int64 of shape (2,)"]),
        (leaf([1.0]), ["(2,)", "(1,)"]),
        (leaf(1.0), ["(2,)", "()"]),
        (leaf([[1.0, 2.0]]), ["(2,)", "(1, 2)"]),
        (np.ones(3), ["(2,)", "(3,)"]),
    ],
    ids=["float32", "int64", "(1,)", "()", "(1, 2)", "array"],
)
def test_a_write_of_another_dtype_or_shape_is_refused(value, words, mode):
    x = leaf([3.0, 4.0])
    with pytest.raises(ValueError, match="data = ") as caught:
        x.data = value
    for word in words:
        assert word in str(caught.value)
    np.testing.assert_array_equal(x.numpy(), [3, 4])


def test_a_write_may_leave_out_leading_axes_of_length_1(mode):
    """As a vector for the bias of a layer, which is a row."""
    for shape in [(1, 2), (1, 1, 2)]:
        x = leaf(np.zeros(shape))
        x.data = leaf([3.0, 4.0])
        assert x.shape == shape
        assert x.is_leaf()
        np.testing.assert_array_equal(x.numpy(), np.reshape([3, 4], shape))
    with pytest.raises(ValueError, match=r"shape \(2, 1\), the new value float64 of shape \(2,\)"):
        leaf([[1.0], [2.0]]).data = leaf([3.0, 4.0])


def test_nodes_that_were_built_before_keep_the_old_value(mode):
    x = leaf([3.0])
    before = x * x
    x.data = leaf([100.0])
    after = x * x
    assert before.numpy() == 9
    assert after.numpy() == 10_000
    before.backward()
    assert x.grad.numpy() == 6
    after.backward()
    assert x.grad.numpy() == 200


def test_each_node_keeps_the_value_of_its_time(mode):
    x = leaf([0.0])
    nodes = []
    for i in range(1, 6):
        x.data = leaf([float(i)])
        nodes.append(x**2)
    assert [node.numpy().item() for node in nodes] == [1, 4, 9, 16, 25]
    assert [gradients(node, [x])[0].numpy().item() for node in nodes] == [2, 4, 6, 8, 10]
    total = nodes[0] + nodes[1] * nodes[2]
    (by_x,) = gradients(total, [x])
    assert by_x.numpy() == 2 * 1 + 4 * 9 + 4 * 6  # each use of x at its own value


@pytest.mark.parametrize("create_graph", [True, False])
@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (ndl.exp, np.exp),
        (ndl.tanh, lambda a: 1 - np.tanh(a) ** 2),
        (ndl.log, lambda a: 1 / a),
        (lambda a: a / (a + 1), lambda a: 1 / (a + 1) ** 2),
        (lambda a: ndl.maximum(a, 1.5 + 0 * a) * a, lambda a: np.where(a > 1.5, 2 * a, 1.5)),
        (lambda a: ndl.logsumexp(a) + 0 * a, lambda a: 2 * np.exp(a) / np.exp(a).sum()),
        (lambda a: a.reshape((1, 2)) @ a.reshape((2, 1)) + 0 * a, lambda a: 4 * a),
    ],
)
def test_operators_differentiate_where_they_were_built(f, slope, create_graph, mode):
    x = leaf([1.0, 2.0])
    out = f(x)
    x.data = leaf([50.0, 60.0])
    out.backward(create_graph=create_graph)
    np.testing.assert_allclose(x.grad.numpy(), slope(np.array([1.0, 2.0])), rtol=1e-14, atol=1e-15)


def test_second_order_after_a_write(mode):
    x = leaf([2.0])
    y = ndl.exp(x) * x
    x.data = leaf([100.0])
    y.backward()
    first = x.grad
    np.testing.assert_allclose(first.numpy(), np.exp(2) * 3, rtol=1e-15)
    first.backward()
    second = x.grad
    np.testing.assert_allclose(second.numpy(), np.exp(2) * 4, rtol=1e-15)
    second.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(2) * 5, rtol=1e-15)


def test_second_order_with_writes_between_all_steps(mode):
    x = leaf([2.0])
    y = x**4
    x.data = leaf([-1.0])
    (first,) = gradients(y, [x])
    x.data = leaf([-2.0])
    (second,) = gradients(first, [x])
    x.data = leaf([-3.0])
    (third,) = gradients(second, [x])
    x.data = leaf([-4.0])
    assert [t.numpy().item() for t in (y, first, second, third)] == [16, 32, 48, 48]


def test_a_gradient_is_a_function_of_the_forward_nodes_after_a_write_too(mode):
    """The slope of exp is exp itself, the very node: differentiated by that node it is 1."""
    for write in (False, True):
        x = leaf([2.0])
        hidden = ndl.exp(x)
        if write:
            x.data = leaf([100.0])
        (slope,) = gradients(hidden, [x])
        by_hidden, by_x = gradients(slope, [hidden, x])
        assert by_hidden.numpy() == 1
        np.testing.assert_allclose(by_x.numpy(), np.exp([2.0]), rtol=1e-15)


def test_an_intermediate_node_that_is_written_to(mode):
    x = leaf([1.0])
    hidden = ndl.exp(x)
    before = hidden * hidden
    hidden.data = leaf([10.0])
    after = hidden * hidden
    np.testing.assert_allclose(before.numpy(), np.exp(2), rtol=1e-15)
    assert after.numpy() == 100
    (by_x,) = gradients(before, [x])
    np.testing.assert_allclose(by_x.numpy(), 2 * np.exp(2), rtol=1e-15)
    # The later use is that of 10, but exp is differentiated as it was computed.
    by_hidden, by_x = gradients(after, [hidden, x])
    assert by_hidden.numpy() == 20
    np.testing.assert_allclose(by_x.numpy(), 20 * np.exp(1), rtol=1e-15)
    (again,) = gradients(by_x, [x])
    np.testing.assert_allclose(again.numpy(), 2 * np.exp(2) + 20 * np.exp(1), rtol=1e-15)


def test_a_node_that_is_written_to_twice_remembers_what_was_computed(mode):
    x = leaf([1.0])
    hidden = ndl.exp(x)
    hidden.data = leaf([10.0])
    hidden.data = leaf([20.0])
    (by_x,) = gradients(hidden * 1, [x])
    np.testing.assert_allclose(by_x.numpy(), np.exp(1), rtol=1e-15)
    assert hidden.numpy() == 20


def test_writing_cached_data_is_writing_data(mode):
    x = leaf([3.0])
    y = x * x
    x.cached_data = leaf([5.0]).realize_cached_data()
    assert x.numpy() == 5
    assert y.numpy() == 9
    (by_x,) = gradients(y, [x])
    assert by_x.numpy() == 6


def test_writing_between_steps_of_gradient_descent(mode):
    x = leaf([1.0])
    for _ in range(5):
        ((x - 3) ** 2).sum().backward()
        x.data = x - 0.25 * x.grad
    np.testing.assert_allclose(x.numpy(), 3 - 2 * 0.5**5, rtol=1e-15)
    assert x.is_leaf()


# detach


def test_a_detached_tensor_is_a_constant_leaf_at_once(mode):
    x = leaf([1.0, 2.0])
    y = x * 3
    for detached in (y.detach(), y.data):
        assert type(detached) is Tensor
        assert detached.op is None
        assert detached.inputs == []
        assert detached.is_leaf()
        assert not detached.requires_grad
        assert (detached.shape, detached.dtype, detached.device) == (y.shape, y.dtype, y.device)
        np.testing.assert_array_equal(detached.numpy(), [3, 6])
        assert find_topo_sort([detached]) == [detached]
    with pytest.raises(RuntimeError, match="detached"):
        (y.detach() * 2).backward()
    (by_x,) = gradients(y * y.detach(), [x])
    np.testing.assert_array_equal(by_x.numpy(), [9, 18])


def test_detaching_copies_nothing():
    x = leaf([1.0])
    assert x.detach().realize_cached_data() is x.realize_cached_data()


def test_a_lazy_detach_computes_nothing_and_shares_the_result(computed):
    x = leaf([1.0, 2.0])
    with ndl.lazy():
        y = ndl.exp(x)
        detached = y.detach().detach()
        assert computed == []
        assert detached.cached_data is None
        z = detached + 1
    assert computed == []
    z.realize_cached_data()
    assert [type(op).__name__ for op in computed] == ["Exp", "AddScalar"]
    y.realize_cached_data()
    detached.realize_cached_data()
    assert len(computed) == 2
    assert y.cached_data is detached.cached_data


def test_writing_to_a_detached_tensor_does_not_change_the_original(mode):
    x = leaf([3.0])
    y = x * x
    detached = y.detach()
    detached.data = leaf([100.0])
    assert detached.numpy() == 100
    assert y.numpy() == 9
    y.backward()
    assert x.grad.numpy() == 6
    of_leaf = x.detach()
    of_leaf.data = leaf([100.0])
    assert x.numpy() == 3
    assert (x * x).numpy() == 9


def test_writing_to_the_original_does_not_change_a_detached_tensor(mode):
    x = leaf([3.0])
    y = x * x
    of_leaf, of_node = x.detach(), y.detach()
    x.data = leaf([100.0])
    y.data = leaf([100.0])
    assert of_leaf.numpy() == 3
    assert of_node.numpy() == 9


# no_grad


def test_without_gradients_no_graph_is_kept(mode):
    x = leaf([1.0, 2.0])
    with ndl.no_grad():
        y = ndl.exp(x * 2)
        pair = ndl.fused_add_scalars(x, 1, 2)
    for value in (y, pair):
        assert value.op is None
        assert value.inputs == []
        assert not value.requires_grad
    np.testing.assert_allclose(y.numpy(), np.exp([2, 4]), rtol=1e-15)
    np.testing.assert_array_equal(pair[1].numpy(), [3, 4])
    assert x.requires_grad
    assert leaf([1.0]).requires_grad


def test_no_grad_ends_with_its_block():
    x = leaf([1.0])
    with ndl.no_grad():
        with ndl.no_grad():
            pass
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    with pytest.raises(KeyError), ndl.no_grad():
        raise KeyError
    assert (x * 2).requires_grad


def test_lazy_ends_with_its_block():
    def is_lazy():
        return (leaf([1.0]) * 2).cached_data is None

    assert not is_lazy()
    with ndl.lazy():
        assert is_lazy()
        with ndl.lazy(False):
            assert not is_lazy()
        with ndl.no_grad():
            assert is_lazy()
        assert is_lazy()
    assert not is_lazy()
    with pytest.raises(KeyError), ndl.lazy():
        raise KeyError
    assert not is_lazy()


def test_lazy_mode_can_be_assigned(monkeypatch):
    monkeypatch.setattr(ndl.autograd, "LAZY_MODE", True)
    x = leaf([1.0])
    y = x * 2
    assert y.cached_data is None
    with ndl.lazy(False):
        assert (x * 2).cached_data is not None
    y.backward()
    assert x.grad.cached_data is None
    assert x.grad.numpy() == 2
    monkeypatch.setattr(ndl.autograd, "LAZY_MODE", False)
    assert (x * 2).cached_data is not None
    with ndl.lazy():
        assert (x * 2).cached_data is None
