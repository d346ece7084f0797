"""What people do by mistake gets a message that says what came, what was needed, and the way out."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import needle as ndl
from needle import init, nn, optim
from needle.autograd import Spec, Tensor, TensorOp
from needle.backend_selection import BACKEND


def constant(*values, **kwargs):
    return Tensor(list(values), **kwargs)


MISTAKES = {
    "a device's name": (lambda: constant(1.0, device="cpu"), TypeError, ["needle.cpu()", "'cpu'"]),
    "to a device's name": (lambda: constant(1.0).to("cuda"), TypeError, ["needle.cpu()", "'cuda'"]),
    "zeros on a device's name": (lambda: init.zeros(2, device="cpu"), TypeError, ["needle.cpu()"]),
    "a tuple as an operand": (
        lambda: ndl.exp(ndl.make_tuple(constant(1.0), constant(2.0))),
        TypeError,
        ["Exp", "TensorTuple", "value[i]"],
    ),
    "a slice of a tuple": (lambda: ndl.make_tuple(constant(1.0))[0:1], TypeError, ["slice", ".tuple()"]),
    "vectors that differ": (
        lambda: Tensor(np.ones(3)) @ Tensor(np.ones(4)),
        ValueError,
        ["(3,) @ (4,)", "3 and 4"],
    ),
    "a negative length": (lambda: constant(1.0).broadcast_to((2, -1)), ValueError, ["(1,)", "(2, -1)"]),
    "one input": (lambda: ndl.gradients(constant(1.0), constant(1.0)), TypeError, ["list", "[x]"]),
    "one parameter": (lambda: optim.SGD(constant(1.0)), TypeError, ["list"]),
    "no parameters": (lambda: optim.SGD([1, 2]), TypeError, ["int", "model.parameters()"]),
    "modules in a list": (lambda: nn.Sequential([nn.ReLU()]), TypeError, ["argument 0", "list"]),
    "arrays for a loss": (
        lambda: nn.SoftmaxLoss()(np.zeros((2, 3)), Tensor([0, 1])),
        TypeError,
        ["logits", "ndarray", "needle.Tensor(logits)"],
    ),
    "a list for a loss": (lambda: nn.CrossEntropyLoss()([[1.0, 2.0]], [0]), TypeError, ["logits", "list"]),
    "an array as prediction": (lambda: nn.MSELoss()(np.zeros(2), np.zeros(2)), TypeError, ["prediction"]),
    "numbers for a loss": (lambda: nn.BCEWithLogitsLoss()(0.5, 1.0), TypeError, ["logits", "float"]),
    "half an axis": (lambda: constant(1.0).sum(1.5), TypeError, ["axes", "1.5"]),
    "complex numbers": (lambda: Tensor(np.array([1j])), TypeError, ["numbers"]),
    "an item written to": (
        lambda: constant(1.0, 2.0).__setitem__(0, 3.0),
        TypeError,
        ["x[0]", "where", ".data"],
    ),
    "a misspelt attribute": (lambda: constant(1.0).reshpae, AttributeError, ["Tensor", "'reshape'"]),
    "a name from elsewhere": (lambda: constant(1.0).unsqueeze(0), AttributeError, ["'reshape'"]),
    "a sum over axis=": (lambda: constant(1.0).sum(axis=0), TypeError, ["sum", "axis=", "axes="]),
    "a mean over dim=": (lambda: ndl.mean(constant(1.0), dim=0), TypeError, ["dim=", "axes="]),
    "an argmax over axis=": (lambda: ndl.argmax(constant(1.0), axis=0), TypeError, ["argmax", "axes="]),
    "keepdim=": (lambda: constant(1.0).sum(0, keepdim=True), TypeError, ["sum", "keepdim=", "keepdims="]),
    "a flip along axis=": (lambda: ndl.flip(constant(1.0), axis=0), TypeError, ["flip", "axes="]),
    "a transpose of dim=": (lambda: constant(1.0).transpose(dim=0), TypeError, ["transpose", "axes="]),
    "axes one by one": (lambda: constant(1.0).sum(0, 1), TypeError, ["positional"]),
    "an unknown relation": (lambda: ndl.compare(constant(1.0), "==", 1), ValueError, ["eq", "'=='"]),
    "a function as a method": (lambda: constant(1.0).clip(0, 1), AttributeError, ["ndl.clip(x)"]),
    "a product as a method": (lambda: constant(1.0).mul(2), AttributeError, ["x * y"]),
    "an attribute near none": (lambda: constant(1.0).cumsum, AttributeError, ["no attribute 'cumsum'"]),
    "a model's optimiser": (lambda: optim.SGD(nn.ReLU()), TypeError, ["ReLU", "model.parameters()"]),
    "a softmax over dim=": (lambda: ndl.softmax(constant(1.0), dim=0), TypeError, ["softmax", "axes="]),
    "the slope of a comparison": (
        lambda: ndl.compare(constant(1.0, 2.0), "lt", 1.5).sum().backward(),
        RuntimeError,
        ["CompareScalar", "'lt'", "1.5", "step function"],
    ),
    "the slope of a sign": (lambda: (ndl.sign(constant(1.0)) * 2).backward(), RuntimeError, ["Sign()"]),
}
ELSEWHERE = {
    "a value elsewhere": (
        lambda: setattr(constant(1.0), "data", constant(1.0, device=ndl.cpu_numpy())),
        ValueError,
        ["cpu()", "cpu_numpy()", ".to("],
    ),
    "an adjoint elsewhere": (
        lambda: (constant(1.0) * 2).backward(constant(1.0, device=ndl.cpu_numpy())),
        ValueError,
        ["cpu()", "cpu_numpy()", ".to("],
    ),
}


if BACKEND == "nd":  # NumPy's arrays have one device
    MISTAKES |= ELSEWHERE


@pytest.mark.parametrize(("mistake", "error", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named(mistake, error, words):
    with pytest.raises(error, match=r"\w") as caught:
        mistake()
    for word in words:
        assert word in str(caught.value)


def test_sizes_may_be_given_as_a_tuple():
    assert ndl.zeros((3, 4)).shape == ndl.zeros(3, 4).shape == (3, 4)
    assert constant(1, 2, 3, 4, 5, 6).reshape(3, 2).shape == (3, 2)


@pytest.mark.parametrize(
    ("gradient", "error", "words"),
    [
        (lambda g: g.sum(), ValueError, ["Twice().gradient", "result 0 has shape ()", "(2,)"]),
        (lambda g: g.numpy(), TypeError, ["Twice().gradient", "ndarray", "Tensor"]),
        (lambda g: (g, g), ValueError, ["Twice().gradient", "2 results for 1 operands"]),
    ],
    ids=["shape", "type", "count"],
)
def test_a_wrong_gradient_is_not_taken(gradient, error, words):
    class Twice(TensorOp):
        def compute(self, a):
            return a + a

        def gradient(self, out_grad, node):
            return gradient(out_grad)

    with pytest.raises(error, match=r"\w") as caught:
        Twice()(constant(1.0, 2.0)).backward()
    for word in words:
        assert word in str(caught.value)


def test_an_error_while_a_lazy_value_is_computed_carries_op_and_inputs():
    class Broken(TensorOp):
        def infer(self, a):
            return Spec(a.shape, a.dtype, a.device)

        def compute(self, a):
            raise ZeroDivisionError

    x = constant(1.0)
    with ndl.lazy():
        y = Broken()(x) * 2
    with pytest.raises(ZeroDivisionError) as caught:
        y.numpy()
    assert isinstance(caught.value.op, Broken)
    assert caught.value.inputs[0] is x


def test_unsigned_integers_are_subtracted_from():
    x = Tensor(np.array([3, 0], np.uint8), dtype="uint8")
    np.testing.assert_array_equal((x - 1).numpy(), np.array([2, 255], np.uint8))


def test_an_array_beside_a_tensor_keeps_its_place():
    x = constant(1.0)
    for y in (np.array([2.0]) + x, np.array([2.0]) * x):
        assert y.inputs[1] is x


def test_second_order_of_a_power_of_exponent_0():
    a, b = constant(2.0, dtype="float64"), constant(0.0, dtype="float64")
    ga, gb = ndl.gradients(a**b, [a, b])
    assert ndl.gradients(ga, [b])[0].numpy() == 0.5
    assert ndl.gradients(gb, [a])[0].numpy() == 0.5
    ndl.gradcheck(
        lambda a, b: a**b,
        constant(0.5, 2.0, 3.0).reshape((3, 1)),
        constant(-1.0, 0.0, 1.0, 2.0).reshape((1, 4)),
    )


def test_an_item_of_a_tuple_does_not_see_a_later_write():
    x = constant(1.0)
    pair = ndl.make_tuple(x, x)
    x.data = constant(5.0)
    item = pair[0]
    assert item.numpy() == 1
    assert ndl.gradients(item, [x])[0].numpy() == 1


def test_after_a_write_a_gradient_still_depends_on_the_node():
    x = constant(1.0)
    y = ndl.exp(x)
    z = y * 1
    x.data = constant(2.0)
    (g,) = ndl.gradients(z, [x])
    np.testing.assert_allclose(g.numpy(), np.e, rtol=1e-6)
    assert ndl.gradients(g, [y])[0].numpy() == 1
    np.testing.assert_allclose(ndl.gradients(g, [x])[0].numpy(), np.e, rtol=1e-6)


def test_a_lazy_tensor_in_another_dtype_is_not_computed():
    with ndl.lazy():
        x = constant(1.0) * 2
        y = Tensor(x, dtype="float64")
        assert x.cached_data is None
        assert y.dtype == "float64"
    assert y.numpy() == 2


def test_computing_while_a_kernel_runs():
    """As a debugger's watch expression or a finaliser does."""
    results = []

    def watch(frame, event, arg):
        if event == "c_call" and not results:
            results.append(None)
            results[0] = (constant(1.0) / 0).numpy()

    x = constant(1.0, 2.0)
    sys.setprofile(watch)
    try:
        y = ndl.exp(x)
    finally:
        sys.setprofile(None)
    np.testing.assert_allclose(y.numpy(), np.exp([1.0, 2.0]), rtol=1e-6)
    assert np.isinf(results[0])


def test_gradcheck_inside_no_grad():
    with ndl.no_grad():
        ndl.gradcheck(ndl.exp, constant(1.0))


def test_softmax_of_nothing():
    x = Tensor(np.ones((2, 0)))
    for mode in (True, False):
        with ndl.lazy(mode):
            assert ndl.softmax(x).numpy().shape == ndl.logsoftmax(x).numpy().shape == (2, 0)
            assert (ndl.logsumexp(x, 1).numpy() == -np.inf).all()


def test_a_tuple_of_the_wrong_length_is_no_gradient():
    class First(TensorOp):
        def compute(self, items):
            return items[0]

        def gradient(self, out_grad, node):
            return ndl.make_tuple(out_grad, out_grad)

    items = ndl.make_tuple(constant(1.0), constant(2.0), constant(3.0))
    with pytest.raises(ValueError, match=r"First\(\)\.gradient: .* tuples of different lengths"):
        First()(items).backward()


def test_gradients_take_any_iterable_of_inputs():
    x = constant(3.0)
    assert [g.numpy().item() for g in ndl.gradients(x * x, (x for _ in range(2)))] == [6.0, 6.0]
