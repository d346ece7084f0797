"""Reverse mode: gradients, gradients of gradients, the contract of `adjoints`, and graphs of any depth."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import needle as ndl
from needle import autograd
from needle.autograd import (
    Tensor,
    adjoints,
    compute_gradient_of_variables,
    find_topo_sort,
    gradients,
    sum_node_list,
)
from needle.graph import Op, TensorOp, TensorTupleOp
from needle.modes import remember_constants


def leaf(values, dtype="float64") -> Tensor:
    return Tensor(values, dtype=dtype)


def constant(values, dtype="float64") -> Tensor:
    return Tensor(values, dtype=dtype, requires_grad=False)


# backward


def test_grad_is_none_until_backward(mode):
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    assert x.grad is None
    assert y.grad is None
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])
    np.testing.assert_array_equal(y.grad.numpy(), 1)


def test_backward_sets_grad_on_every_node_on_the_way(mode):
    x, c = leaf([1.0, 2.0]), constant([3.0, 4.0])
    product = x * c
    result = ndl.exp(product)
    beside = x * 5
    result.backward()
    np.testing.assert_array_equal(result.grad.numpy(), [1, 1])
    np.testing.assert_allclose(product.grad.numpy(), np.exp([3, 8]), rtol=1e-15)
    np.testing.assert_allclose(x.grad.numpy(), [3, 4] * np.exp([3, 8]), rtol=1e-15)
    assert c.grad is None
    assert beside.grad is None


def test_backward_replaces_what_was_there(mode):
    x = leaf([3.0])
    y = x * x
    y.backward()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6])
    (x * 7).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [7])


def test_backward_of_an_array_is_that_of_its_sum(mode):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (x**3).backward()
    np.testing.assert_array_equal(x.grad.numpy(), 3 * x.numpy() ** 2)


def test_backward_from_a_given_adjoint(mode):
    x = leaf([1.0, 2.0, 3.0])
    for out_grad in (constant([1.0, 0.0, -2.0]), np.array([1.0, 0.0, -2.0]), [1.0, 0.0, -2.0]):
        (x * x).backward(out_grad)
        np.testing.assert_array_equal(x.grad.numpy(), [2, 0, -12])


def test_the_given_adjoint_is_part_of_the_graph(mode):
    x, v = leaf([3.0]), leaf([5.0])
    (x * x).backward(v)
    (by_v,) = gradients(x.grad, [v])
    np.testing.assert_array_equal(by_v.numpy(), [6])
    y = x * x
    y.backward(v, create_graph=False)
    assert not x.grad.requires_grad
    assert not y.grad.requires_grad
    assert y.grad is not v


def test_backward_on_the_leaf_itself():
    x = leaf([3.0])
    x.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: constant([1.0]),
        lambda: leaf([1.0]).detach(),
        lambda: constant([1.0]) * 2,
        lambda: ndl.compare(leaf([1.0]), "gt", 0),
    ],
    ids=["constant", "detached", "of constants", "a step function"],
)
def test_backward_on_a_constant_is_refused(make, mode):
    with pytest.raises(RuntimeError, match=r"does not require a gradient|no gradient flows through Compare"):
        make().backward()
    with ndl.no_grad():
        made_under_no_grad = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match="no_grad"):
        made_under_no_grad.backward()


@pytest.mark.parametrize(
    "out_grad", [1.0, [1.0], np.ones((1, 2)), np.ones(3)], ids=["()", "(1,)", "(1, 2)", "(3,)"]
)
def test_a_given_adjoint_of_another_shape_is_refused(out_grad, mode):
    with pytest.raises(ValueError, match=r"out_grad has shape \(.*\), the output has shape \(2,\)"):
        (leaf([1.0, 2.0]) * 2).backward(leaf(out_grad))


def test_a_given_adjoint_that_is_no_array_is_refused():
    with pytest.raises(TypeError, match="out_grad is a str, not a Tensor"):
        leaf([1.0]).backward("1")


# create_graph


def test_gradients_stay_connected(mode):
    x = leaf([2.0])
    (x**3).backward()
    assert x.grad.requires_grad
    assert not x.grad.is_leaf()
    assert x in find_topo_sort([x.grad])
    x.grad.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [12])
    x.grad.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6])


def test_the_graph_of_a_gradient_reuses_the_nodes_of_the_forward_graph(mode):
    x = leaf([2.0])
    y = ndl.exp(x)
    z = y * x
    y.numpy(), z.numpy()  # computing changes nothing in the graph
    z.backward()
    nodes = find_topo_sort([x.grad])
    assert {x, y} <= set(nodes)
    assert not any(isinstance(node.op, ndl.ops.Identity) for node in nodes)


def test_without_create_graph_gradients_are_constants(mode):
    x = leaf([2.0])
    y = x**3
    hidden = y * 2
    hidden.backward(create_graph=False)
    np.testing.assert_array_equal(x.grad.numpy(), [24])
    for node in (x, y, hidden):
        assert node.grad.is_leaf()
        assert node.grad.op is None
        assert node.grad.inputs == []
        assert not node.grad.requires_grad
    assert hidden.requires_grad
    assert not y.is_leaf()
    (after,) = gradients(x * 2, [x])
    np.testing.assert_array_equal(after.numpy(), [2])
    (after,) = gradients(x * x, [x])
    assert after.requires_grad


def test_v1_to_v4(mode):
    v1 = leaf(0.0)
    v2 = ndl.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    assert v4.numpy() == 2
    v4.backward()
    assert [v.grad.numpy().item() for v in (v4, v3, v2, v1)] == [1, 1, 3, 3]
    v1.grad.backward()
    assert v1.grad.numpy() == 5
    v1.grad.backward()
    assert v1.grad.numpy() == 9


@pytest.mark.parametrize(("a", "b"), [(6.0, 0.0), (2.0, -3.0)])
def test_second_order_by_two_variables(a, b, mode):
    x2, x3 = leaf([a]), leaf([b])
    y = x2 * x2 + x2 * x3
    y.backward()
    by_x2, by_x3 = x2.grad, x3.grad
    by_x2.backward()
    by_x2_x2, by_x2_x3 = x2.grad, x3.grad
    assert y.numpy() == a * a + a * b
    assert by_x2.numpy() == 2 * a + b
    assert by_x3.numpy() == a
    assert by_x2_x2.numpy() == 2
    assert by_x2_x3.numpy() == 1


# gradients


def test_gradients_leave_grad_alone(mode):
    x = leaf([1.0, 2.0])
    y = x * x
    z = ndl.exp(y)
    by_x, by_y, by_z = gradients(z, [x, y, z])
    assert (x.grad, y.grad, z.grad) == (None, None, None)
    np.testing.assert_array_equal(by_z.numpy(), [1, 1])
    np.testing.assert_allclose(by_y.numpy(), np.exp([1, 4]), rtol=1e-15)
    np.testing.assert_allclose(by_x.numpy(), [2, 4] * np.exp([1, 4]), rtol=1e-15)
    x.grad = before = constant([7.0, 7.0])
    gradients(z, [x], out_grad=constant([0.0, 1.0]))
    assert x.grad is before


def test_gradients_by_what_has_no_part_in_it_are_zeros(mode):
    x, y = leaf([1.0, 2.0]), Tensor(np.ones((2, 3)), dtype="float32")
    by_y, by_x, by_y_again = gradients((x * x).sum(), [y, x, y])
    np.testing.assert_array_equal(by_x.numpy(), [2, 4])
    for zeros in (by_y, by_y_again):
        assert (zeros.shape, zeros.dtype, zeros.device) == (y.shape, y.dtype, y.device)
        np.testing.assert_array_equal(zeros.numpy(), np.zeros((2, 3)))
    # Through a step function alone nothing flows.
    (by_x,) = gradients((y * 2).sum() + ndl.compare(x, "gt", 1.5).sum(), [x])
    np.testing.assert_array_equal(by_x.numpy(), [0, 0])


def test_gradients_by_a_constant_are_refused(mode):
    x, c = leaf([1.0]), constant([2.0])
    for unknown in (c, x.detach(), ndl.compare(x, "gt", 0)):
        with pytest.raises(RuntimeError, match="input 1 does not require a gradient"):
            gradients(x * c, [x, unknown])


def test_gradients_under_no_grad_are_constants(mode):
    x = leaf([3.0])
    y = x * x
    with ndl.no_grad():
        (by_x,) = gradients(y, [x])
    assert by_x.is_leaf()
    assert not by_x.requires_grad
    assert by_x.numpy() == 6


def test_constants_remember_their_operators_only_within_remember_constants(mode):
    x, c = leaf([[3.0, 2.0]]), constant([[1.0], [4.0]])
    y = c @ x
    with remember_constants():
        kept = c.transpose()
        (by_x,) = gradients(y, [x])
    assert isinstance(kept.op, ndl.ops.Transpose)
    assert kept.inputs == (c,)
    assert not kept.requires_grad
    assert not by_x.requires_grad
    assert [type(node.op).__name__ for node in find_topo_sort([by_x])].count("Transpose") == 1
    for forgets in (c.transpose(), *gradients(y, [x])):
        assert forgets.op is None
        assert forgets.inputs == []


def test_compute_gradient_of_variables_sets_grad():
    x, v = leaf([1.0, 2.0]), constant([10.0, 100.0])
    compute_gradient_of_variables(x * x, v)
    np.testing.assert_array_equal(x.grad.numpy(), [20, 400])


def test_sum_node_list():
    nodes = [leaf([1.0]), leaf([2.0]), leaf([4.0])]
    assert sum_node_list(nodes[:1]) is nodes[0]
    total = sum_node_list(nodes)
    assert total.numpy() == 7
    assert isinstance(total.op, ndl.ops.EWiseAdd)
    pairs = [ndl.make_tuple(leaf([1.0]), leaf([2.0])) for _ in range(3)]
    assert sum_node_list(pairs[:1]) is pairs[0]
    assert [t.numpy().item() for t in sum_node_list(pairs)] == [3, 6]


# adjoints


def test_adjoints_come_in_reverse_topological_order_with_their_partials(mode):
    v1 = leaf(0.0)
    v2 = ndl.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    found = list(adjoints(v4))
    assert [a.node for a in found] == [v4, v3, v2, v1]
    by_node = {a.node: a for a in found}

    ((consumer, seed),) = by_node[v4].partials
    assert consumer is None
    assert seed is by_node[v4].total
    assert seed.is_leaf()
    assert not seed.requires_grad
    assert seed.numpy() == 1

    ((consumer, partial),) = by_node[v3].partials
    assert consumer is v4
    assert partial is by_node[v3].total  # one partial is the total

    assert {consumer for consumer, _ in by_node[v2].partials} == {v3, v4}
    assert sorted(partial.numpy().item() for _, partial in by_node[v2].partials) == [1, 2]
    total = by_node[v2].total
    assert isinstance(total.op, ndl.ops.EWiseAdd)
    assert set(total.inputs) == {partial for _, partial in by_node[v2].partials}
    assert total.numpy() == 3

    ((consumer, partial),) = by_node[v1].partials
    assert consumer is v2
    assert partial is by_node[v1].total
    for node in (v1, v2, v3, v4):
        assert node.grad is None


def test_one_partial_for_each_use(mode):
    x = leaf([3.0])
    square = x * x
    (first, second) = list(adjoints(square))
    assert first.node is square
    assert [consumer for consumer, _ in second.partials] == [square, square]
    assert [partial.numpy().item() for _, partial in second.partials] == [3, 3]
    assert second.total.numpy() == 6
    (_, sum_of_three) = list(adjoints(ndl.add(x, x)))
    assert len(sum_of_three.partials) == 2


def test_adjoints_skip_what_needs_no_gradient(mode):
    x, c = leaf([3.0]), constant([2.0])
    doubled = c * 2
    y = x * doubled
    assert [a.node for a in adjoints(y)] == [y, x]


def test_nothing_is_computed_for_a_constant(mode):
    x, c, seed = leaf([3.0]), constant([2.0]), constant([1.0])
    for y, expected in ((x * c, [2, None]), (c * x, [None, 2]), (x / c, [0.5, None])):
        partials = y.op.gradient_as_tuple(seed, y)
        assert [None if p is None else p.numpy().item() for p in partials] == expected
    by_constant, by_x = (c / x).op.gradient_as_tuple(seed, c / x)
    assert by_constant is None
    assert by_x.numpy().item() == pytest.approx(-2 / 9, rel=1e-6)


def test_adjoints_of_a_tuple(mode):
    x = leaf([3.0])
    pair = ndl.fused_add_scalars(x, 1, 2)
    y = pair[0] * pair[1]
    found = {a.node: a for a in adjoints(y)}
    assert [consumer.op.index for consumer, _ in found[pair].partials] == [1, 0]
    assert [t.numpy().item() for t in found[pair].total] == [5, 4]
    assert found[x].total.numpy() == 9


def test_the_adjoint_that_is_passed_is_the_seed():
    x, v = leaf([3.0]), leaf([5.0])
    (first, second) = list(adjoints(x * x, v))
    assert first.total is v
    assert second.total.numpy() == 30


# find_topo_sort


def test_topological_order_is_post_order_with_inputs_left_to_right():
    a1, b1 = leaf([[0.88, 0.2]]), leaf([[0.17, 0.5]])
    threefold, fourfold = 3 * a1, 4 * b1
    square, product = threefold * a1, fourfold * a1
    total, negative = square + product, -a1
    result = total + negative
    expected = [a1, threefold, square, b1, fourfold, product, total, negative, result]
    assert find_topo_sort([result]) == expected
    difference = 3 * a1 * a1 + 4 * b1 * a1 - a1
    np.testing.assert_allclose(
        [node.numpy() for node in find_topo_sort([difference])],
        [node.numpy() for node in expected],
        rtol=1e-15,
    )


def test_topological_order_of_several_nodes():
    x, y = leaf([1.0]), leaf([2.0])
    a, b = x * 2, y + x
    assert find_topo_sort([a, b]) == [x, a, y, b]
    assert find_topo_sort([b, a]) == [y, x, b, a]
    assert find_topo_sort([a, x, a]) == [x, a]
    assert find_topo_sort([]) == []


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=25))
def test_topological_order_is_that_of_the_recursive_definition(pairs):
    nodes = [leaf(0.0), leaf(1.0)]
    for i, j in pairs:
        nodes.append(nodes[i % len(nodes)] + nodes[j % len(nodes)])
    order = []

    def visit(node):
        if node not in order:
            for x in node.inputs:
                visit(x)
            order.append(node)

    visit(nodes[-1])
    assert find_topo_sort([nodes[-1]]) == order


# Depth


def alive() -> int:
    return autograd.TENSOR_COUNTER


@pytest.mark.slow
def test_a_chain_of_100_000_nodes(mode):
    gc.collect()
    before = alive()
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = y * -1.0 + 0.0
    y.backward()
    assert y.numpy() == 1
    assert x.grad.numpy() == 1
    assert len(find_topo_sort([y])) == 100_001
    del y  # the whole chain at once
    x.grad = None
    del x
    gc.collect()
    assert alive() == before


def test_a_lazy_chain_that_is_never_computed_is_freed(no_gc):
    before = alive()
    with ndl.lazy(), ndl.no_grad():
        y = leaf(1.0)
        for _ in range(100_000):
            y = y + 1.0
    del y
    assert alive() == before


# Broadcasting


PAIRS = [
    ((2, 3), (3,)),
    ((2, 3), (1, 3)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((4, 1, 3), (2, 1)),
    ((1,), (5,)),
    ((0, 3), (3,)),
]


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize(
    ("f", "by_a", "by_b"),
    [
        (lambda a, b: a + b, lambda a, b: 1 + 0 * (a + b), lambda a, b: 1 + 0 * (a + b)),
        (lambda a, b: a - b, lambda a, b: 1 + 0 * (a + b), lambda a, b: -1 + 0 * (a + b)),
        (lambda a, b: a * b, lambda a, b: b + 0 * a, lambda a, b: a + 0 * b),
        (lambda a, b: a / b, lambda a, b: 1 / b + 0 * a, lambda a, b: -a / b**2),
    ],
    ids="+-*/",
)
def test_implicit_broadcasting_gives_gradients_of_the_inputs_shapes(f, by_a, by_b, shapes, mode):
    def sum_to(partial, shape):
        partial = partial.sum(axis=tuple(range(partial.ndim - len(shape))))
        return partial.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True).reshape(shape)

    rng = np.random.default_rng(0)
    a, b = (rng.uniform(1, 2, shape) for shape in shapes)
    x, y = leaf(a), leaf(b)
    f(x, y).backward()
    for gradient, expected in ((x.grad, by_a(a, b)), (y.grad, by_b(a, b))):
        gradient_of = a if gradient is x.grad else b
        assert gradient.shape == gradient_of.shape
        np.testing.assert_allclose(gradient.numpy(), sum_to(expected, gradient_of.shape), rtol=1e-14)


# Mixed dtypes


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        lambda a, b: a**b,
        lambda a, b: a @ b,
        lambda a, b: ndl.maximum(a, b),
        lambda a, b: ndl.exp(a) * b.sum(),
        lambda a, b: a.astype("float64") * b,
        lambda a, b: ndl.make_tuple(a, b)[0] * b,
        lambda a, b: (a * b).astype("float32").sum(),
    ],
)
@pytest.mark.parametrize("create_graph", [True, False])
def test_a_gradient_has_the_dtype_of_its_tensor(f, create_graph, mode):
    a, b = leaf([[1.0, 2.0], [3.0, 4.0]], "float32"), leaf([[1.5, 1.25], [2.5, 0.5]], "float64")
    out = f(a, b)
    out.backward(create_graph=create_graph)
    for node in (out, a, b):
        assert node.grad.dtype == node.dtype
        assert node.grad.realize_cached_data().dtype == node.dtype
        assert node.grad.shape == node.shape
    a64 = leaf(a.numpy(), "float64")
    (expected,) = gradients(f(a64, b), [a64])
    np.testing.assert_allclose(a.grad.numpy(), expected.numpy(), rtol=2e-6)


def test_a_given_adjoint_takes_the_dtype_of_the_output(mode):
    x = leaf([1.0, 2.0], "float32")
    x.sum().backward(constant(3.0, "float64"))
    assert x.grad.dtype == "float32"
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])


# Tuples


def test_a_tuple_has_a_length_items_and_a_sum(mode):
    x = leaf([1.0, 2.0])
    pair = ndl.fused_add_scalars(x, 1, 2)
    assert len(pair) == 2
    assert isinstance(pair.tuple(), tuple)
    np.testing.assert_array_equal([t.numpy() for t in pair.tuple()], [[2, 3], [3, 4]])
    np.testing.assert_array_equal([t.numpy() for t in pair], [[2, 3], [3, 4]])
    np.testing.assert_array_equal(pair[-1].numpy(), pair[1].numpy())
    np.testing.assert_array_equal(pair.numpy(), [[2, 3], [3, 4]])
    total = pair + ndl.make_tuple(x, x * 10)
    np.testing.assert_array_equal([t.numpy() for t in total], [[3, 5], [13, 24]])
    (total[0] * total[1]).backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * (11 * x.numpy() + 2) + 11 * (2 * x.numpy() + 1))


def test_tuples_of_different_lengths_do_not_add():
    x = leaf([1.0])
    with pytest.raises(ValueError, match="lengths 2 and 1 differ"):
        ndl.make_tuple(x, x) + ndl.make_tuple(x)
    with pytest.raises(TypeError, match="unsupported operand"):
        ndl.make_tuple(x, x) + (x, x)


def test_a_detached_tuple_is_constant(mode):
    x = leaf([1.0])
    detached = ndl.fused_add_scalars(x, 1, 2).detach()
    assert detached.op is None
    assert detached.inputs == []
    assert not detached.requires_grad
    assert [t.numpy().item() for t in detached] == [2, 3]
    assert not detached[0].requires_grad


def test_what_is_packed_comes_out_itself():
    x, y = leaf([1.0]), leaf([2.0])
    pair = ndl.make_tuple(x, y)
    assert pair[0] is x
    assert pair[1] is y


class Pieces(TensorTupleOp):
    """A vector as a tuple of its numbers."""

    def __init__(self, n):
        self.n = n

    def infer(self, a):
        return tuple([ndl.autograd.Spec((1,), a.dtype, a.device)] * self.n)

    def compute(self, a):
        return tuple([a[i : i + 1] for i in range(self.n)])

    def gradient(self, out_grad, node):
        return Whole()(out_grad)


class Whole(TensorOp):
    """A tuple of numbers as a vector."""

    def infer(self, items):
        return ndl.autograd.Spec((len(items),), items[0].dtype, items[0].device)

    def compute(self, items):
        out = ndl.backend_selection.full((len(items),), 0, dtype=items[0].dtype)
        for i, item in enumerate(items):
            out[i : i + 1] = item
        return out

    def gradient(self, out_grad, node):
        return Pieces(len(node.inputs[0]))(out_grad)


def test_the_gradient_of_all_items_is_linear_in_their_number(mode, computed):
    def cost(n):
        x = leaf(np.arange(1.0, n + 1))
        pieces = Pieces(n)(x)
        total = sum_node_list([pieces[i] * pieces[i] for i in range(n)])
        total.numpy()
        computed.clear()
        (by_x,) = gradients(total, [x])
        np.testing.assert_array_equal(by_x.numpy(), 2 * x.numpy())
        # A tuple op that is computed works on all n items, so it counts n times.
        return sum(n if isinstance(op, TensorTupleOp) else 1 for op in computed)

    costs = [cost(n) for n in (10, 20, 40, 80)]
    assert costs[2] - costs[1] == 2 * (costs[1] - costs[0])
    assert costs[3] - costs[2] == 2 * (costs[2] - costs[1])


def test_an_item_that_is_not_used_gets_zeros(mode):
    x = leaf([1.0, 2.0, 3.0])
    pieces = Pieces(3)(x)
    (by_x,) = gradients(pieces[1] * pieces[1] * pieces[1], [x])
    np.testing.assert_array_equal(by_x.numpy(), [0, 12, 0])
    (again,) = gradients(by_x, [x])
    np.testing.assert_array_equal(again.numpy(), [0, 12, 0])


# Operators of students


class Cube(TensorOp):
    """Without `infer`; `wrap` says in what its gradient comes."""

    def __init__(self, wrap=lambda partial: partial):
        self.wrap = wrap

    def compute(self, a):
        return a * a * a

    def gradient(self, out_grad, node):
        (a,) = node.inputs
        return self.wrap(out_grad * 3 * a * a)


@pytest.mark.parametrize(
    "wrap", [lambda p: p, lambda p: (p,), lambda p: [p]], ids=["Tensor", "tuple", "list"]
)
def test_an_operator_without_infer(wrap, mode):
    x = leaf([1.0, 2.0])
    out = Cube(wrap)(x * 1) + 1
    assert out.shape == (2,)
    np.testing.assert_array_equal(out.numpy(), [2, 9])
    out.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 12])
    x.grad.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6, 12])
    assert isinstance(Cube(wrap).gradient_as_tuple(x, Cube()(x)), tuple)


class Product(TensorOp):
    """Two operands, one of which may not need its gradient."""

    def compute(self, a, b):
        return a * b

    def gradient(self, out_grad, node):
        return [out_grad * node.inputs[1], None]


def test_none_in_place_of_a_gradient_that_is_not_needed(mode):
    x, c = leaf([3.0]), constant([4.0])
    (by_x,) = gradients(Product()(x, c), [x])
    assert by_x.numpy() == 4
    assert len(Product().gradient_as_tuple(x, Product()(x, c))) == 2


class Broken(TensorOp):
    def compute(self, a):
        raise ArithmeticError("this operator is broken")


def test_an_operator_that_fails_is_carried_by_its_exception(mode):
    hidden = leaf([1.0]) * 2
    with pytest.raises(ArithmeticError, match="this operator is broken") as caught:
        Broken()(hidden)
    assert isinstance(caught.value.op, Broken)
    assert caught.value.inputs[0] is hidden


def test_an_operator_must_say_what_it_does():
    with pytest.raises(NotImplementedError):
        Op()(leaf([1.0]))
    with pytest.raises(NotImplementedError):
        TensorOp()(leaf([1.0]))

    class NoGradient(TensorOp):
        def compute(self, a):
            return a

    with pytest.raises(NotImplementedError):
        NoGradient()(leaf([1.0])).backward()


# The truth of a Tensor


def test_no_tensor_is_asked_whether_it_is_true_or_how_long_it_is(monkeypatch, mode):
    def refuse(self):
        raise AssertionError("a Tensor decided where the program goes")

    monkeypatch.setattr(Tensor, "__bool__", refuse, raising=False)
    monkeypatch.setattr(Tensor, "__len__", refuse, raising=False)
    monkeypatch.setattr(ndl.TensorTuple, "__bool__", refuse, raising=False)
    monkeypatch.setattr(ndl.NDArray, "__bool__", refuse) if ndl.BACKEND == "nd" else None

    model = ndl.nn.Sequential(
        ndl.nn.Linear(3, 4), ndl.nn.ReLU(), ndl.nn.Linear(4, 4), ndl.nn.Tanh(), ndl.nn.Linear(4, 2)
    )
    optimizer = ndl.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    X, y = Tensor(np.zeros((5, 3)), dtype="float32"), np.zeros(5, int)
    for create_graph in (True, False):
        loss = ndl.nn.SoftmaxLoss()(model(X), y)
        loss.backward(create_graph=create_graph)
        optimizer.step()
        optimizer.reset_grad()
    pair = ndl.fused_add_scalars(loss, 0, 0)
    out = ndl.maximum(pair[0], pair[1]) ** loss + ndl.logsumexp(model(X)) + ndl.max(model(X)) + 0 * loss
    gradients(gradients(out, model.parameters())[0], model.parameters())
    ndl.ones_like(out), ndl.zeros_like(out), ndl.init.one_hot(3, Tensor([0.0, 1.0]))
    out.data = Tensor(out)
    ndl.gradcheck(lambda a: a * a, Tensor(0.0), order=1)
    assert "needle.Tensor(0.0" not in repr(out.detach())


# Random graphs: all shapes broadcast with each other, all values stay moderate, all functions but two are
# smooth. A recipe is built with needle and with torch: `m.of` is the module, `m.turn` transposes a matrix.

OURS = SimpleNamespace(of=ndl, turn=ndl.transpose)


def wide(a):
    return a.broadcast_to((2, 3))


OPS = {
    "add": lambda a, b, m: a + b,
    "subtract": lambda a, b, m: a - b,
    "multiply": lambda a, b, m: m.of.tanh(a) * b,
    "divide": lambda a, b, m: a / (b * b + 1),
    "power": lambda a, b, m: (a * a + 0.5) ** m.of.tanh(b),
    "numbers": lambda a, b, m: 5 - a / 2 + 1 / (b * b + 2),
    "root": lambda a, b, m: (a * a + 1) ** 0.5,
    "exp": lambda a, b, m: m.of.exp(m.of.sigmoid(a)),
    "log": lambda a, b, m: m.of.log(a * a + 1),
    "relu": lambda a, b, m: m.of.relu(a - 0.3),
    "maximum": lambda a, b, m: m.of.maximum(a, b),
    "softmax": lambda a, b, m: m.of.softmax(wide(a), -1),
    "logsumexp": lambda a, b, m: m.of.logsumexp(wide(a), 1).reshape((2, 1)),
    "sum": lambda a, b, m: wide(a).sum(0).reshape((1, 3)) / 2,
    "matmul": lambda a, b, m: (wide(a) @ m.turn(wide(b))) @ wide(b) / 4,
}
KINKED = {"relu", "maximum"}

SHAPES = [(), (1,), (3,), (2, 1), (1, 3), (2, 3)]


def recipes(names):
    """Leaves of some shapes, then operators that are applied to any earlier results."""
    step = st.tuples(st.sampled_from(sorted(names)), st.integers(0, 99), st.integers(0, 99))
    return st.tuples(
        st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3),
        st.lists(step, min_size=1, max_size=6),
        st.integers(0, 10**6),
    )


def numbers(recipe):
    shapes, _, seed = recipe
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def build(recipe, leaves, m):
    results = list(leaves)
    for name, i, j in recipe[1]:
        results.append(OPS[name](results[i % len(results)], results[j % len(results)], m))
    out = results[-1].sum()
    for x in leaves:  # every leaf has a part in it, and a second derivative
        out = out + (x * x * x).sum()
    return out


@given(recipes(OPS))
@settings(max_examples=100)
def test_lazy_is_eager_on_random_graphs(recipe):
    def run(lazily):
        with ndl.lazy(lazily):
            leaves = [leaf(x, "float32") for x in numbers(recipe)]
            out = build(recipe, leaves, OURS)
            first = gradients(out, leaves)
            second = gradients(sum_node_list([(g * g).sum() for g in first]), leaves)
            results = [out, *first, *second]
            specs = [(t.shape, t.dtype) for t in results]
            assert all((t.cached_data is None) is lazily for t in results)
            values = [t.numpy() for t in results]
        assert specs == [(v.shape, v.dtype) for v in values]
        return values

    for eager, lazy in zip(run(False), run(True), strict=True):
        np.testing.assert_array_equal(eager, lazy)


@given(recipes(set(OPS) - KINKED))
@settings(max_examples=50)
def test_random_graphs_against_central_differences(recipe):
    ndl.gradcheck(lambda *leaves: build(recipe, leaves, OURS), *[leaf(x) for x in numbers(recipe)], order=1)


@given(recipe=recipes(OPS))
@settings(max_examples=100)
def test_random_graphs_against_torch(recipe, torch):
    ours = [leaf(x) for x in numbers(recipe)]
    theirs = [torch.tensor(x, requires_grad=True) for x in numbers(recipe)]
    out = build(recipe, ours, OURS)
    expected = build(recipe, theirs, SimpleNamespace(of=torch, turn=torch.t))
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-12)

    first = gradients(out, ours)
    expected_first = torch.autograd.grad(expected, theirs, create_graph=True)
    second = gradients(sum_node_list([(g * g).sum() for g in first]), ours)
    expected_second = torch.autograd.grad(sum((g * g).sum() for g in expected_first), theirs)
    for got, want in zip([*first, *second], [*expected_first, *expected_second], strict=True):
        want = want.detach().numpy()
        # Sums of terms of both signs: what cancels leaves the rounding of the largest.
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-11 * max(1, np.abs(want).max()))
