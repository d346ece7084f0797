"""Constant and random Tensors.

Common parameters: `*shape`, the sizes, one by one or as a tuple; `device` (default: `default_device()`);
`dtype`; `requires_grad`; and for random numbers `rng`, a `numpy.random.Generator` or the seed of a new one
(default: NumPy's global state, which ``numpy.random.seed`` sets).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .. import ops
from ..autograd import Tensor, check_device, no_grad
from ..backend_selection import Device, default_device
from ..graph import Spec, TensorOp


def _place(device) -> Device:
    """`device`, or the default one."""
    check_device(device)
    return device or default_device()


def _sizes(shape: tuple) -> tuple[int, ...]:
    """The sizes of ``zeros(3, 4)``, or of ``zeros((3, 4))``."""
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


class Draw(TensorOp):
    """Random numbers by ``device.rand`` or ``device.randn``: an operator without operands."""

    at_once = True  # in the order in which they are asked for

    def __init__(self, kind: str, shape: tuple[int, ...], device: Device, dtype, rng):
        self.draw = partial(getattr(device, kind), *shape, dtype=dtype, rng=rng)
        self.spec = Spec(shape, np.dtype(dtype), device)

    def infer(self):
        return self.spec

    def compute(self):
        return self.draw()


def _drawn(kind: str, shape: tuple, device, dtype, rng) -> Tensor:
    return Draw(kind, _sizes(shape), _place(device), dtype, rng)()


def rand(*shape, low=0.0, high=1.0, device=None, dtype="float32", requires_grad=False, rng=None) -> Tensor:
    """Uniform random numbers in [low, high)."""
    with no_grad():
        numbers = _drawn("rand", shape, device, dtype, rng) * float(high - low) + float(low)
    return Tensor.make_const(numbers, requires_grad=requires_grad)


def randn(*shape, mean=0.0, std=1.0, device=None, dtype="float32", requires_grad=False, rng=None) -> Tensor:
    """Normal random numbers."""
    with no_grad():
        numbers = _drawn("randn", shape, device, dtype, rng) * float(std) + float(mean)
    return Tensor.make_const(numbers, requires_grad=requires_grad)


def randb(*shape, p=0.5, device=None, dtype="bool", requires_grad=False, rng=None) -> Tensor:
    """True (1) with probability `p`, else False (0)."""
    drawn = ops.compare(rand(*shape, device=device, rng=rng), "le", p).astype(dtype)
    return Tensor.make_const(drawn, requires_grad=True) if requires_grad else drawn


def constant(*shape, c=1.0, device=None, dtype="float32", requires_grad=False) -> Tensor:
    """`c` everywhere."""
    array = _place(device).full(_sizes(shape), c, dtype=dtype)
    return Tensor.make_const(array, requires_grad=requires_grad)


def ones(*shape, device=None, dtype="float32", requires_grad=False) -> Tensor:
    """1 everywhere."""
    return constant(*shape, c=1.0, device=device, dtype=dtype, requires_grad=requires_grad)


def zeros(*shape, device=None, dtype="float32", requires_grad=False) -> Tensor:
    """0 everywhere."""
    return constant(*shape, c=0.0, device=device, dtype=dtype, requires_grad=requires_grad)


def one_hot(n, i, device=None, dtype="float32", requires_grad=False) -> Tensor:
    """For each label in `i` a row of `n` numbers: 1 at the label, 0 elsewhere.

    Parameters
    ----------
    n : int
        How many classes.
    i : Tensor or array of integers 0 to n - 1
        Labels of shape (k,); the result has shape (k, n). No gradient flows to them.

    Raises
    ------
    IndexError
        If a label is not one of 0 to n - 1.
    """
    if hasattr(i, "__needle_data__"):
        i = Tensor(i, device=device, dtype=i.dtype, requires_grad=False)
    if isinstance(i, Tensor):
        rows = ops.OneHot(n, dtype)(i if device is None else i.to(device))
        return Tensor.make_const(rows, requires_grad=True) if requires_grad else rows
    return Tensor.make_const(_place(device).one_hot(n, i, dtype=dtype), requires_grad=requires_grad)


def zeros_like(array, *, device=None, requires_grad=False) -> Tensor:
    """Zeros of the shape and dtype of `array`, on its device."""
    return zeros(*array.shape, device=device or array.device, dtype=array.dtype, requires_grad=requires_grad)


def ones_like(array, *, device=None, requires_grad=False) -> Tensor:
    """Ones of the shape and dtype of `array`, on its device."""
    return ones(*array.shape, device=device or array.device, dtype=array.dtype, requires_grad=requires_grad)
