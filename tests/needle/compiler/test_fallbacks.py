"""What the compiler cannot lower is computed by its own kernel, between the parts of the source."""

from __future__ import annotations

import numpy as np

import needle as ndl
from needle.compiler import CannotTrace

from .conftest import assert_close, assert_equals_eager, jit, tensor


def test_what_is_not_lowered_is_computed_by_its_own_kernel():
    def f(x, w):
        h = ndl.tanh(x @ w)
        best = ndl.argmax(h, -1)
        mask = (ndl.init.one_hot(4, best) * h).sum()
        return best, mask * 2 + h.sum(), ndl.gradients(mask, [x, w])

    assert_equals_eager(f, tensor(5, 3), tensor(3, 4, seed=1), tolerance=1e-5)


class Cube(ndl.ops.TensorOp):
    """A student's operator, which looks at numbers."""

    def compute(self, a):
        return a.device.array(a.numpy() ** 3, a.dtype)

    def infer(self, a):
        return ndl.autograd.Spec(a.shape, a.dtype, a.device)

    def gradient(self, out_grad, node):
        return out_grad * 3 * node.inputs[0] ** 2


class Twice(ndl.ops.TensorOp):
    """A student's operator that does not say what comes out."""

    def compute(self, a):
        return a + a

    def gradient(self, out_grad, node):
        return out_grad * 2


def test_an_operator_of_one_s_own():
    def f(x):
        y = Cube()(x * 2) + 1
        return y, ndl.gradients(y.sum(), [x])

    assert_equals_eager(f, tensor(3), tolerance=1e-5)


def test_an_operator_without_infer_is_refused_or_computed():
    g = jit(lambda x: Twice()(x * 2))
    for seed in range(2):
        x = tensor(3, seed=seed)
        try:
            found = g(x)
        except CannotTrace:
            continue
        assert_close(found.numpy(), 4 * x.numpy())


def test_a_fallback_between_writes():
    p = tensor(4)

    def f(x):
        p.data = p + x
        best = ndl.argmax(p).astype("float32")
        p.data = p * 2 + best
        return best

    def expected(value, x):
        value = value + x
        best = np.float32(value.argmax())
        return value * 2 + best, best

    g = jit(f)
    value = p.numpy()
    for seed in range(3):
        x = tensor(4, seed=seed + 1, requires_grad=False)
        value, best = expected(value, x.numpy())
        assert g(x).item() == best
        assert_close(p.numpy(), value)
