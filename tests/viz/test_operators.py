"""What is written in an operator's circle."""

from __future__ import annotations

import pytest

from needle import ops
from viz.operators import order_matters, symbol


@pytest.mark.parametrize(
    ("op", "sign"),
    [
        (ops.Slice((slice(1, 3), slice(None), slice(None, None, -1))), "[1:3, :, ::-1]"),
        (ops.Slice(()), "[]"),
        (ops.ZerosButSlice((slice(None, 2),), (5,)), "zeros but [:2]"),
        (ops.Minimum(), "min"),
        (ops.Sqrt(), "√"),
        (ops.LeakyReLU(0.5), "leaky relu scalar=0.5"),
        (ops.Clip(low=-1), "clip low=-1"),
        (ops.Stack(1), "stack axis=1"),
    ],
)
def test_signs(op, sign):
    assert symbol(op) == sign


def test_whether_the_order_of_operands_matters():
    assert not order_matters(ops.Minimum())
    assert order_matters(ops.Where())
