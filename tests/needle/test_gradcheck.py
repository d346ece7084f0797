"""gradcheck passes what is right and finds what is wrong, in first and in second order."""

from __future__ import annotations

import re

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor
from needle.graph import TensorOp

DEVICES = [d for d in ndl.all_devices() if d.enabled()]


def tensors(*shapes, dtype="float64"):
    rng = np.random.default_rng(0)
    return [Tensor(rng.uniform(0.5, 2, shape), dtype=dtype) for shape in shapes]


class Square(TensorOp):
    """x * x, with whatever derivative is given."""

    def __init__(self, slope):
        self.slope = slope

    def compute(self, a):
        return a * a

    def gradient(self, out_grad, node):
        return out_grad * self.slope(node.inputs[0])


def right(x):
    return x * 2


def wrong(x):
    return x * 2.001


def wrong_in_second_order(x):
    return x + x.detach()  # the value of 2x with half its slope


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (lambda x: x * x, [()]),
        (lambda x: Square(right)(x), [(2, 3)]),
        (lambda x, y: ndl.exp(x) * y, [(2, 3), (3,)]),
        (lambda x, y: x @ y, [(2, 3), (3, 2)]),
        (lambda x: x * 3, [(2,)]),
        (lambda x: ndl.compare(x, "gt", 1), [(2,)]),
        (lambda x, y: x * x, [(2,), (3,)]),
        (lambda x: ndl.logsumexp(x * 100), [(3,)]),
        (lambda x: x * 1e6, [(2,)]),
        (lambda x: x.sum(0), [(0, 2)]),
    ],
    ids=["number", "own", "two", "matmul", "linear", "constant", "unused", "sharp", "large", "empty"],
)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_what_is_right_passes(f, shapes, order, device):
    args = [Tensor(t.numpy(), device=device, dtype="float64") for t in tensors(*shapes)]
    assert ndl.gradcheck(f, *args, order=order) is True


@pytest.mark.parametrize("order", [1, 2])
def test_a_wrong_gradient_is_found(order):
    x, y = Tensor([1.5], dtype="float64"), Tensor([[1.0, 2.0], [3.0, 0.0]], dtype="float64")
    with pytest.raises(AssertionError) as caught:
        ndl.gradcheck(lambda x, y: x * Square(wrong)(y), x, y, order=order)
    found = re.fullmatch(
        r"argument 1, index \(0, 0\): expected (\S+) \(central difference\), got (\S+) \(backward\)",
        str(caught.value),
    )
    assert found
    expected, got = map(float, found.groups())
    assert got / expected == pytest.approx(1.0005, rel=1e-6)


def test_a_wrong_second_derivative_is_found():
    (x,) = tensors((2,))
    f = Square(wrong_in_second_order)
    assert ndl.gradcheck(f, x, order=1)
    with pytest.raises(
        AssertionError,
        match=r"in the gradient with respect to argument 0: argument 0, index \(0,\): expected .* got",
    ):
        ndl.gradcheck(f, x, order=2)
    with pytest.raises(AssertionError, match="in the gradient with respect to argument 0"):
        ndl.gradcheck(f, x)  # the default is two orders


def test_a_wrong_mixed_derivative_is_found():
    class Product(TensorOp):
        def compute(self, a, b):
            return a * b

        def gradient(self, out_grad, node):
            a, b = node.inputs
            return out_grad * b.detach(), out_grad * a

    x, y = tensors((2,), (2,))
    assert ndl.gradcheck(Product(), x, y, order=1)
    with pytest.raises(AssertionError, match="in the gradient with respect to argument 0: argument 1"):
        ndl.gradcheck(Product(), x, y)


def test_a_gradient_that_is_missing_is_found():
    with pytest.raises(AssertionError, match=r"argument 0, index \(0,\): expected .*, got 0 "):
        ndl.gradcheck(lambda x: x.detach() * 2, *tensors((2,)))


def test_a_third_derivative_can_be_checked_too():
    class Cube(TensorOp):
        def compute(self, a):
            return a * a * a

        def gradient(self, out_grad, node):
            (a,) = node.inputs
            return out_grad * 3 * Square(wrong_in_second_order)(a)

    (x,) = tensors((2,))
    assert ndl.gradcheck(Cube(), x, order=2)
    with pytest.raises(
        AssertionError,
        match="in the gradient with respect to argument 0: in the gradient with respect to argument 0",
    ):
        ndl.gradcheck(Cube(), x, order=3)


def test_a_gradient_of_another_shape_is_found():
    class Sum(TensorOp):
        def compute(self, a):
            return a.sum()

        def gradient(self, out_grad, node):
            return out_grad  # not spread over the elements

    with pytest.raises((AssertionError, ValueError), match=r"shape .*\(2, 3\)"):
        ndl.gradcheck(Sum(), *tensors((2, 3)))


@pytest.mark.parametrize(
    "slope", [lambda x: x * np.nan, lambda x: x * np.inf, lambda x: x * 0], ids=["nan", "inf", "0"]
)
def test_gradients_that_are_no_numbers_are_found(slope):
    with pytest.raises(AssertionError, match="argument 0"):
        ndl.gradcheck(Square(slope), *tensors((2,)))


def test_a_small_error_in_one_of_many_elements_is_found():
    mask = np.zeros((3, 4))
    mask[2, 1] = 1e-4
    with pytest.raises(AssertionError, match=r"index \(2, 1\)"):
        ndl.gradcheck(Square(lambda x: x * 2 + Tensor(mask, dtype="float64")), *tensors((3, 4)))


def test_a_swap_of_elements_is_found():
    """All outputs weigh differently: a gradient that mixes them up cannot pass."""

    class Swap(TensorOp):
        def compute(self, a):
            return ndl.backend_selection.permute(a, (1, 0))

        def gradient(self, out_grad, node):
            return out_grad

    with pytest.raises(AssertionError, match="argument 0"):
        ndl.gradcheck(Swap(), *tensors((2, 2)))


def test_the_tolerance_and_the_step_can_be_chosen():
    (x,) = tensors((2,))
    with pytest.raises(AssertionError):
        ndl.gradcheck(Square(wrong), x, order=1)
    assert ndl.gradcheck(Square(wrong), x, order=1, tol=0.01)
    with pytest.raises(AssertionError):
        ndl.gradcheck(ndl.exp, x, eps=0.5)


def test_the_arguments_are_taken_as_float64_and_never_changed():
    dtypes = set()

    def f(x):
        dtypes.add(x.dtype)
        return x * x * x

    x = Tensor([1.0, 2.0], dtype="float32")
    ndl.gradcheck(f, x)
    assert dtypes == {np.dtype("float64")}
    assert x.dtype == "float32"
    np.testing.assert_array_equal(x.numpy(), [1, 2])
    assert x.grad is None


def test_gradcheck_leaves_numpys_random_state_alone():
    state = str(np.random.get_state())
    ndl.gradcheck(lambda x: x * x, *tensors((2,)))
    assert str(np.random.get_state()) == state


def test_gradcheck_in_lazy_mode(mode):
    assert ndl.gradcheck(lambda x, y: ndl.tanh(x) / y, *tensors((2, 2), (2,)))
    with pytest.raises(AssertionError, match="argument 0"):
        ndl.gradcheck(Square(wrong), *tensors((2,)))
