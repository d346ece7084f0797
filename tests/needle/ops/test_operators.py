"""Every operator: values and gradients against NumPy, central differences and torch, on every device.

`CASES` has at least one case for each Op subclass of the library; `test_no_operator_is_forgotten` proves it.
A test takes all cases of one operator: to start a test costs more than most cases do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor
from needle.graph import Op, Pending, Spec, TensorOp, TensorTupleOp
from needle.ops import families

DEVICES = [d for d in ndl.all_devices() if d.enabled()]


@dataclass(frozen=True)
class Case:
    """One way to use an operator: `f` gets Tensors of `shapes` with values between `low` and `high`."""

    op: type[Op]
    f: Callable
    shapes: tuple
    numpy: Callable
    torch: Callable | None = None  # gets the module torch, then its tensors
    low: float = -2.0
    high: float = 2.0


def np_softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def np_logsumexp(x, axis):
    return np.log(np.exp(x).sum(axis=axis))


def every(axes, step, ndim):
    """An index of every `step`-th element along `axes`."""
    axes = (axes,) if isinstance(axes, int) else axes
    return tuple(slice(None, None, step if i in [axis % ndim for axis in axes] else 1) for i in range(ndim))


def np_dilate(x, axes, dilation):
    axes = [axis % x.ndim for axis in ((axes,) if isinstance(axes, int) else axes)]
    out = np.zeros([n * (dilation + 1) if i in axes else n for i, n in enumerate(x.shape)])
    out[every(tuple(axes), dilation + 1, x.ndim)] = x
    return out


def both(x):
    return x if isinstance(x, tuple) else (x, x)


def np_windows(x, size, stride=1, dilation=1):
    (down, right), apart = both(stride), both(dilation)
    reach = [step * (n - 1) + 1 for n, step in zip(size, apart, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, (1, 2))
    return seen[:, ::down, ::right, :, :: apart[0], :: apart[1]].transpose(0, 1, 2, 4, 5, 3)


def np_pooled(x, outside, kernel_size, stride=None, padding=0):
    down, right = both(padding)
    x = np.pad(x, ((0, 0), (down, down), (right, right), (0, 0)), constant_values=outside)
    return np_windows(x, both(kernel_size), stride or kernel_size)


def np_standardize(x, axes, eps):
    mean = x.mean(axes, keepdims=True) if x.size else x.sum(axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axes, keepdims=True) if x.size else mean
    return (x - mean) / np.sqrt(variance + eps), mean, variance


def np_layer_norm(x, weight, bias):
    y, _, variance = np_standardize(x, -1, 0.1)
    return y * weight + bias, y, variance


def np_lstm(x, W, h, c):
    steps = []
    for now in x:
        s_i, s_f, s_g, s_o = np.split(now + h @ W, 4, axis=1)
        i, f, g, o = 1 / (1 + np.exp(-s_i)), 1 / (1 + np.exp(-s_f)), np.tanh(s_g), 1 / (1 + np.exp(-s_o))
        c = f * c + i * g
        h = o * np.tanh(c)
        steps.append((h, c, i, f, g, o))
    return [np.stack(item) for item in zip(*steps, strict=True)]


def np_conv(a, b, padding, stride=1, dilation=1):
    seen = np_windows(np_pooled(a, 0, 1, 1, padding)[..., 0, 0, :], b.shape[:2], stride, dilation)
    return np.einsum("nrshwc,hwco->nrso", seen, b)


np_erf = np.vectorize(math.erf, otypes="d")


def whole(index, x):
    """Whole numbers as an operand beside `x`."""
    return Tensor(np.array(index, int), dtype="int64", device=x.device, requires_grad=False)


def zeros_but_slice(x, slices, shape):
    zeros = np.zeros(shape, x.dtype)
    zeros[slices] = x
    return zeros


def scatter_add(x, index, axis, length):
    zeros = np.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
    np.add.at(zeros, (*[slice(None)] * axis, np.array(index, int)), x)
    return zeros


def binary(op, f, numpy, torch, **kwargs):
    """Equal shapes, scalars, empty arrays and all ways of broadcasting."""
    shapes = [
        ((3, 4), (3, 4)),
        ((3, 4), (4,)),
        ((3, 1), (1, 4)),
        ((), (2, 3)),
        ((2, 3), ()),
        ((), ()),
        ((5,), (2, 1, 5)),
        ((1,), (3,)),
        ((0, 3), (0, 3)),
        ((0, 3), (1, 3)),
        ((1, 1), (1, 1)),
        ((2, 3, 1), (7, 2, 1, 5)),
    ]
    return [Case(op, f, pair, numpy, torch, **kwargs) for pair in shapes]


def unary(op, f, numpy, torch, **kwargs):
    return [Case(op, f, (shape,), numpy, torch, **kwargs) for shape in [(3, 4), (), (1,), (2, 0), (2, 1, 3)]]


def with_scalar(op, f, **kwargs):
    return [Case(op, f, (shape,), f, lambda torch, x: f(x), **kwargs) for shape in [(3, 4), (), (0,)]]


RELATIONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}

CASES = [
    *binary(ndl.ops.EWiseAdd, ndl.add, np.add, lambda torch, a, b: a + b),
    *binary(ndl.ops.EWiseAdd, lambda a, b: a - b, np.subtract, lambda torch, a, b: a - b),
    *binary(ndl.ops.EWiseMul, ndl.multiply, np.multiply, lambda torch, a, b: a * b),
    *binary(ndl.ops.EWiseDiv, ndl.divide, np.divide, lambda torch, a, b: a / b, low=0.5),
    *binary(ndl.ops.EWisePow, ndl.power, np.power, lambda torch, a, b: a**b, low=0.3),
    *binary(ndl.ops.Maximum, ndl.maximum, np.maximum, lambda torch, a, b: torch.maximum(a, b)),
    *binary(ndl.ops.Minimum, ndl.minimum, np.minimum, lambda torch, a, b: torch.minimum(a, b)),
    *with_scalar(ndl.ops.AddScalar, lambda x: x + 3),
    *with_scalar(ndl.ops.AddScalar, lambda x: x - 1.5),
    *with_scalar(ndl.ops.AddScalar, lambda x: 5 - x),
    *with_scalar(ndl.ops.MulScalar, lambda x: x * -2.5),
    *with_scalar(ndl.ops.DivScalar, lambda x: x / 4),
    *with_scalar(ndl.ops.EWiseDiv, lambda x: 1 / x, low=0.5),
    *with_scalar(ndl.ops.EWisePow, lambda x: 2**x),
    *[
        case
        for exponent in (0, 1, 2, 3, -1, 0.5, -1.5)
        for case in with_scalar(ndl.ops.PowerScalar, lambda x, exponent=exponent: x**exponent, low=0.4)
    ],
    *with_scalar(ndl.ops.PowerScalar, lambda x: x**3),
    *[
        case
        for name, np_name in RELATIONS.items()
        for case in binary(
            ndl.ops.Compare,
            lambda a, b, name=name: ndl.compare(a, name, b) * a,
            lambda a, b, np_name=np_name: getattr(np, np_name)(a, b) * a,
            lambda torch, a, b, name=name: getattr(torch, name)(a, b) * a,
        )
    ],
    *unary(
        ndl.ops.CompareScalar,
        lambda x: ndl.compare(x, "gt", 0.1) * x,
        lambda x: (x > 0.1) * x,
        lambda torch, x: (x > 0.1) * x,
    ),
    *unary(ndl.ops.Negate, ndl.negate, np.negative, lambda torch, x: -x),
    *unary(ndl.ops.Log, ndl.log, np.log, lambda torch, x: torch.log(x), low=0.3),
    *unary(ndl.ops.Exp, ndl.exp, np.exp, lambda torch, x: torch.exp(x)),
    *unary(ndl.ops.ReLU, ndl.relu, lambda x: np.maximum(x, 0), lambda torch, x: torch.relu(x)),
    *unary(ndl.ops.Tanh, ndl.tanh, np.tanh, lambda torch, x: torch.tanh(x)),
    *unary(ndl.ops.Sigmoid, ndl.sigmoid, lambda x: 1 / (1 + np.exp(-x)), lambda torch, x: torch.sigmoid(x)),
    *unary(ndl.ops.Sqrt, ndl.sqrt, np.sqrt, lambda torch, x: torch.sqrt(x), low=0.2),
    *unary(ndl.ops.Sign, lambda x: ndl.sign(x) * x, np.abs, lambda torch, x: torch.abs(x)),
    *unary(ndl.ops.Abs, ndl.abs, np.abs, lambda torch, x: torch.abs(x)),
    *unary(ndl.ops.Sin, ndl.sin, np.sin, lambda torch, x: torch.sin(x)),
    *unary(ndl.ops.Cos, ndl.cos, np.cos, lambda torch, x: torch.cos(x)),
    *unary(ndl.ops.Erf, ndl.erf, np_erf, lambda torch, x: torch.erf(x), low=-3),
    *unary(
        ndl.ops.GELU,
        ndl.gelu,
        lambda x: x * (1 + np_erf(x / np.sqrt(2).astype(x.dtype))) / 2,
        lambda torch, x: torch.nn.functional.gelu(x),
    ),
    *unary(
        ndl.ops.GELU,
        lambda x: ndl.gelu(x, "tanh"),
        lambda x: x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
        lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
    ),
    *[
        case
        for slope in (0.01, 0, -0.5, 3)
        for case in unary(
            ndl.ops.LeakyReLU,
            lambda x, slope=slope: ndl.leaky_relu(x, slope),
            lambda x, slope=slope: np.where(x < 0, slope * x, x),
            lambda torch, x, slope=slope: torch.where(x < 0, slope * x, x),
        )
    ],
    *[
        case
        for low, high in [(-0.7, 0.9), (None, 1), (0, None), (None, None), (1, -1)]
        for case in unary(
            ndl.ops.Clip,
            lambda x, low=low, high=high: ndl.clip(x, low, high) * 2,
            lambda x, low=low, high=high: (
                np.minimum(np.maximum(x, -np.inf if low is None else low), np.inf if high is None else high)
                * 2
            ),
            lambda torch, x, low=low, high=high: x * 2 if low is high else torch.clamp(x, low, high) * 2,
        )
    ],
    *binary(
        ndl.ops.Mask,
        lambda a, b: ndl.ops.mask(a * a, ndl.compare(b, "gt", 0)),
        lambda a, b: a * a * (b > 0),
        lambda torch, a, b: a * a * (b > 0),
    ),
    *binary(
        ndl.ops.Where,
        lambda a, b: ndl.where(ndl.compare(a, "gt", 0.1), a * a, b),
        lambda a, b: np.where(a > 0.1, a * a, b),
        lambda torch, a, b: torch.where(a > 0.1, a * a, b),
    ),
    *unary(ndl.ops.Identity, ndl.ops.Identity(), lambda x: x, lambda torch, x: x * 1),
    *unary(
        ndl.ops.Cast,
        lambda x: ndl.cast(ndl.cast(x, "float32"), "float64"),
        lambda x: x.astype("float32").astype("float64"),
        lambda torch, x: x.float().double(),
    ),
    *[
        Case(
            ndl.ops.ToDevice,
            lambda x, d=d: ndl.to_device(x, d),
            (shape,),
            lambda x: x,
            lambda torch, x: x * 1,
        )
        for d in DEVICES
        for shape in [(2, 3), (), (0,)]
    ],
    *[
        Case(
            ndl.ops.Permute,
            lambda x, axes=axes: ndl.permute(x, axes),
            (shape,),
            lambda x, axes=axes: np.transpose(x, axes),
            lambda torch, x, axes=axes: torch.permute(x, axes),
        )
        for shape, axes in [
            ((2, 3, 4), (2, 0, 1)),
            ((2, 3, 4), (-1, 0, -2)),
            ((), ()),
            ((3,), (0,)),
            ((0, 2), (1, 0)),
            ((2, 3, 4, 5), (3, 1, 0, 2)),
        ]
    ],
    *[
        Case(
            ndl.ops.Transpose,
            lambda x, axes=axes: ndl.transpose(x, axes),
            (shape,),
            lambda x, axes=axes: np.swapaxes(x, *(axes or (-1, -2))),
            lambda torch, x, axes=axes: torch.swapaxes(x, *(axes or (-1, -2))),
        )
        for shape, axes in [
            ((2, 3), None),
            ((2, 3, 4), None),
            ((2, 3, 4), (0, 1)),
            ((2, 3, 4), (-1, 0)),
            ((0, 2), None),
        ]
    ],
    *[
        Case(
            ndl.ops.Reshape,
            lambda x, new=new: ndl.reshape(x, new),
            (shape,),
            lambda x, new=new: np.reshape(x, new),
            lambda torch, x, new=new: torch.reshape(x, new if isinstance(new, tuple) else (new,)),
        )
        for shape, new in [
            ((2, 3), (3, 2)),
            ((2, 3), (-1,)),
            ((2, 3), 6),
            ((), (1, 1)),
            ((1, 1), ()),
            ((0, 3), (3, 0)),
            ((4,), (2, -1)),
        ]
    ],
    *[
        Case(
            ndl.ops.BroadcastTo,
            lambda x, new=new: ndl.broadcast_to(x, new),
            (shape,),
            lambda x, new=new: np.broadcast_to(x, new),
            lambda torch, x, new=new: torch.broadcast_to(x, new),
        )
        for shape, new in [
            ((3,), (2, 3)),
            ((3, 1), (3, 4)),
            ((), (2, 2)),
            ((1, 3), (5, 2, 3)),
            ((2, 3), (2, 3)),
            ((1,), (0,)),
            ((1,), (1,)),
        ]
    ],
    *[
        Case(
            op,
            lambda x, f=f, axes=axes: f(x, axes),
            (shape,),
            lambda x, g=g, axes=axes: g(x, axes),
            torch_form,
        )
        for op, f, g, torch_name in [
            (ndl.ops.Summation, ndl.summation, lambda x, axes: np.sum(x, axis=axes), "sum"),
            (ndl.ops.Summation, ndl.mean, lambda x, axes: np.mean(x, axis=axes), "mean"),
            (ndl.ops.Max, ndl.max, lambda x, axes: np.max(x, axis=axes), "amax"),
            (ndl.ops.Min, ndl.min, lambda x, axes: np.min(x, axis=axes), "amin"),
            (ndl.ops.LogSumExp, ndl.logsumexp, np_logsumexp, "logsumexp"),
            (ndl.ops.Softmax, ndl.softmax, np_softmax, None),
        ]
        for shape, axes in [
            ((2, 3), None),
            ((2, 3), 0),
            ((2, 3), (1,)),
            ((2, 3, 4), (0, 2)),
            ((2, 3, 4), -1),
            ((2, 3, 4), (-1, 0)),
            ((), None),
            ((1,), 0),
            ((2, 3), (0, 1)),
            ((3, 1, 2), (1,)),
            ((2, 0, 3), 2),
            ((2, 0, 3), (0, 2)),
        ]
        for torch_form in [
            None
            if torch_name is None
            else lambda torch, x, name=torch_name, axes=axes: getattr(torch, name)(
                x, tuple(range(x.ndim)) if axes is None else axes
            )
        ]
    ],
    *[
        Case(
            ndl.ops.ArgMax,
            lambda x, axes=axes: ndl.cast(ndl.argmax(x, axes), str(x.dtype)),
            (shape,),
            lambda x, axes=axes: x.argmax(axes).astype(x.dtype),
        )
        for shape, axes in [((3, 4), None), ((3, 4), 0), ((2, 3, 2), -2), ((), None), ((0, 2), 1)]
    ],
    *[
        Case(
            ndl.ops.Softmax,
            ndl.softmax,
            (s,),
            lambda x: np_softmax(x, -1),
            lambda torch, x: torch.softmax(x, -1),
        )
        for s in [(2, 3), (4,)]
    ],
    *[
        Case(
            ndl.ops.LogSoftmax,
            ndl.logsoftmax,
            (shape,),
            lambda x: np.log(np_softmax(x, -1)),
            lambda torch, x: torch.log_softmax(x, -1),
        )
        for shape in [(2, 3), (4,), (2, 3, 2), (0, 3)]
    ],
    *[
        Case(ndl.ops.MatMul, lambda a, b: a @ b, pair, np.matmul, lambda torch, a, b: a @ b)
        for pair in [
            ((2, 3), (3, 4)),
            ((1, 1), (1, 1)),
            ((5, 2, 3), (5, 3, 2)),
            ((5, 2, 3), (3, 2)),
            ((2, 3), (5, 3, 2)),
            ((4, 1, 2, 3), (5, 3, 2)),
            ((0, 3), (3, 2)),
            ((2, 0), (0, 3)),
            ((3,), (3,)),
            ((3,), (3, 2)),
            ((2, 3), (3,)),
            ((2, 4, 3), (3,)),
            ((3,), (2, 3, 4)),
        ]
    ],
    *[
        Case(
            ndl.ops.Conv,
            lambda a, b, keys=keys: ndl.conv(a, b, **keys),
            ((n, *size, 2), (*kernel, 2, 3)),
            lambda a, b, keys=keys: np_conv(a, b, **keys),
            lambda torch, a, b, keys=keys: torch.nn.functional.conv2d(
                a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), **keys
            ).permute(0, 2, 3, 1),
        )
        for n, size, kernel, keys in [
            (2, (5, 4), (3, 3), {"padding": 1}),
            (1, (3, 3), (3, 3), {"padding": 0}),
            (1, (3, 3), (2, 2), {"padding": 1, "stride": 2}),
            (1, (5, 6), (3, 3), {"padding": 1, "stride": 2}),
            (1, (6, 5), (2, 2), {"padding": 0, "stride": 3}),  # pixels that no window sees
            (1, (4, 4), (1, 1), {"padding": 1}),  # windows that see zeros alone
            (1, (6, 7), (3, 2), {"padding": 1, "dilation": 2}),
            (1, (7, 8), (2, 3), {"padding": 2, "stride": 2, "dilation": 2}),
            (0, (3, 3), (2, 2), {"padding": 0}),
            (1, (7, 6), (2, 3), {"padding": (2, 1), "stride": (2, 3), "dilation": (3, 1)}),
            (1, (6, 7), (3, 3), {"padding": (0, 1), "stride": (1, 2)}),
        ]
    ],
    *[
        Case(
            ndl.ops.Pad,
            lambda x, pairs=pairs: ndl.pad(x, pairs, 0.5),
            (shape,),
            lambda x, pairs=pairs: np.pad(x, pairs, constant_values=0.5) if pairs else x,
            lambda torch, x, pairs=pairs: torch.nn.functional.pad(
                x, [n for pair in reversed(pairs) for n in pair], value=0.5
            ),
        )
        for shape, pairs in [
            ((2, 3), ((0, 1), (2, 0))),
            ((3,), ((0, 0),)),
            ((), ()),
            ((0, 2), ((1, 1), (0, 0))),
        ]
    ],
    *[
        Case(
            ndl.ops.Flip,
            lambda x, axes=axes: ndl.flip(x, axes),
            (shape,),
            lambda x, axes=axes: np.flip(x, axes),
            lambda torch, x, axes=axes: torch.flip(
                x, tuple(range(x.ndim)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
            ),
        )
        for shape, axes in [((2, 3), 0), ((2, 3), (0, -1)), ((2, 1, 3), None), ((0, 2), 0), ((), None)]
    ],
    *[
        Case(
            op,
            lambda x, f=f, axes=axes, d=d: f(x, axes, d),
            (shape,),
            lambda x, g=g, axes=axes, d=d: g(x, axes, d),
        )
        for op, f, g in [
            (ndl.ops.Dilate, ndl.dilate, np_dilate),
            (ndl.ops.UnDilate, ndl.undilate, lambda x, axes, d: x[every(axes, d + 1, x.ndim)]),
        ]
        for shape, axes, d in [
            ((2, 3), 0, 1),
            ((2, 3), (0, 1), 2),
            ((3, 4), (-1,), 0),
            ((2, 5, 3, 2), (1, 2), 3),
            ((0, 2), (0,), 1),
        ]
    ],
    *[
        Case(
            op,
            lambda x, f=f, size=size, keys=keys: f(x, size, **keys),
            (shape,),
            lambda x, g=g, size=size, keys=keys: g(np_windows(x, size, **keys)),
        )
        for shape, size, keys in [
            ((2, 4, 5, 2), (2, 2), {"stride": 2}),
            ((1, 4, 5, 2), (3, 2), {}),
            ((1, 6, 7, 1), (2, 3), {"stride": 3, "dilation": 2}),
            ((1, 6, 7, 1), (2, 3), {"stride": (2, 1), "dilation": (1, 2)}),
            ((0, 3, 3, 1), (2, 2), {}),
        ]
        for op, f, g in [
            (ndl.ops.Windows, ndl.windows, lambda x: x),
            (ndl.ops.Fold, lambda x, *a, **k: ndl.windows(x, *a, **k) ** 2, lambda x: x**2),
        ]
    ],
    *[
        Case(
            ndl.ops.Windows,
            lambda x, f=f, keys=keys: f(x, **keys),
            ((2, 5, 6, 2),),
            lambda x, keys=keys, f=f, g=g: g(np_pooled(x, -np.inf if g is np.max else 0, **keys), (3, 4)),
            lambda torch, x, f=f, keys=keys: getattr(torch.nn.functional, f.__name__)(
                x.permute(0, 3, 1, 2), **keys
            ).permute(0, 2, 3, 1),
        )
        for f, g in [(ndl.max_pool2d, np.max), (ndl.avg_pool2d, np.mean)]
        for keys in [
            {"kernel_size": 2},
            {"kernel_size": 3, "stride": 1, "padding": 1},
            {"kernel_size": (2, 4), "stride": 3, "padding": 1},
            {"kernel_size": (2, 3)},
            {"kernel_size": (1, 4), "stride": (3, 2), "padding": (0, 2)},
        ]
    ],
    *[
        Case(
            op,
            lambda x, f=f, axes=axes: f(ndl.standardize(x, axes, 0.1)),
            (shape,),
            lambda x, f=f, axes=axes: f(np_standardize(x, axes, 0.1)),
        )
        for shape, axes in [((3, 4), 0), ((2, 3, 4), (0, 2)), ((2, 3), None), ((1, 3), 0), ((0, 0), 0)]
        for op, f in [
            (ndl.ops.Standardize, lambda items: items[0]),
            (ndl.ops.Standardize, lambda items: items[1] * items[2]),
            (ndl.ops.StandardizeAdjoint, lambda items: items[0] * items[0] * items[2] + items[1]),
        ]
    ],
    *[
        Case(
            ndl.ops.LayerNorm,
            lambda *args, f=f: f(ndl.ops.LayerNorm(0.1)(*args)),
            (shape, shape[-1:], shape[-1:]),
            lambda x, weight, bias, f=f: f(np_layer_norm(x, weight, bias)),
        )
        for shape, f in [
            ((3, 4), lambda items: items[0]),
            ((2, 1, 3), lambda items: items[0] * items[0] * items[2] + items[1]),
            ((1,), lambda items: items[0]),
        ]
    ],
    *[
        Case(
            ndl.ops.StandardizeAdjoint,
            ndl.ops.StandardizeAdjoint(axes, 0.1),
            ((3, 4), (3, 4), kept),
            lambda v, y, variance, axes=axes: (
                (v - v.mean(axes, keepdims=True) - y * (v * y).mean(axes, keepdims=True))
                / np.sqrt(variance + 0.1)
            ),
            low=0.5,
        )
        for axes, kept in [(0, (1, 4)), (1, (3, 1)), (None, (1, 1))]
    ],
    *[
        Case(
            ndl.ops.LSTMSteps,
            lambda *args, f=f: f(ndl.lstm_steps(*args)),
            ((time, batch, 8), (2, 8), (batch, 2), (batch, 2)),
            lambda *args, f=f: f(np_lstm(*args)),
        )
        for time, batch, f in [
            (3, 1, lambda items: items[0]),
            (2, 1, lambda items: items[1]),
            (1, 2, lambda items: items[0] * items[2] + items[3]),
            (2, 1, lambda items: items[1] * items[4] - items[5]),
        ]
    ],
    *[
        Case(ndl.ops.Slice, f, ((4, 3, 5),), f, lambda torch, x, f=f: f(x))
        for f in (
            lambda x: x[1:3],
            lambda x: x[:, -2:, ::2],
            lambda x: x[..., 3],
            lambda x: x[-1, None, :, 1:1],
            lambda x: x[0, 1, 2] * x[2, 1, 0],
            lambda x: (x[1:] - x[:-1]) * x[:3],
        )
    ],
    *[
        Case(
            ndl.ops.ZerosButSlice,
            lambda x, slices=slices, shape=shape: ndl.ops.ZerosButSlice(slices, shape)(x) * 2,
            (part,),
            lambda x, slices=slices, shape=shape: zeros_but_slice(x, slices, shape) * 2,
        )
        for slices, shape, part in [
            ((slice(1, 3), slice(None, None, -2)), (4, 5), (2, 3)),
            ((slice(0, 0), slice(None)), (4, 5), (0, 5)),
            ((slice(-1, None),), (3,), (1,)),
        ]
    ],
    *[
        Case(ndl.ops.Take, f, ((4, 3, 5),), f, lambda torch, x, f=f: f(x))
        for f in (
            lambda x: x[[0, 2, 2, -1]],
            lambda x: x[:, [1]] * x[:, [2]],
            lambda x: x[np.arange(4), :, [[0], [4]]],
            lambda x: x[np.array([], int), 1],
        )
    ],
    Case(
        ndl.ops.Take,
        lambda x: x[1:, whole([[0], [-1]], x)],
        ((4, 3, 5),),
        lambda x: x[1:, [[0], [-1]]],
        lambda torch, x: x[1:, [[0], [-1]]],
    ),
    Case(
        ndl.ops.Position,
        lambda x: x[whole([-1, 0], x), :, whole([[3], [-2]], x)],
        ((4, 3, 5),),
        lambda x: x[[-1, 0], :, [[3], [-2]]],
        lambda torch, x: x[[-1, 0], :, [[3], [-2]]],
    ),
    *[
        Case(
            ndl.ops.LookUp,
            lambda x, i=index: ndl.ops.LookUp(4)(x, whole(i, x)),
            ((4, 3),),
            lambda x, i=index: x[np.array(i, int)],
            lambda torch, x, i=index: x[torch.tensor(i, dtype=torch.long)],
        )
        for index in ([[0, 2, 2], [3, 0, 1]], [], 1)
    ],
    Case(
        ndl.ops.OneHot,
        lambda x: ndl.ops.OneHot(3, x.dtype)(ndl.compare(x, "gt", 0)) * x.reshape((2, 3, 1)),
        ((2, 3),),
        lambda x: np.eye(3)[(x > 0) * 1] * x[..., None],
        lambda torch, x: torch.eye(3, dtype=x.dtype)[(x > 0) * 1] * x[..., None],
    ),
    Case(
        ndl.ops.NotZero,
        lambda x: ndl.ops.not_zero(x, "no") * x,
        ((2, 3),),
        lambda x: x * x,
        lambda torch, x: x * x,
    ),
    *[
        Case(
            ndl.ops.ScatterAdd,
            lambda x, i=index, axis=axis: ndl.ops.ScatterAdd(axis, 3)(x, whole(i, x)),
            (shape,),
            lambda x, i=index, axis=axis: scatter_add(x, i, axis, 3),
        )
        for shape, index, axis in [
            ((4,), [2, 0, 2, 2], 0),
            ((2, 3, 4), [1, 1, 0], 1),
            ((0, 2), [], 0),
            ((2, 0), [0, 1], 0),
        ]
    ],
    *[
        Case(
            ndl.ops.Stack,
            lambda *args, axis=axis: ndl.stack(args, axis),
            shapes,
            lambda *args, axis=axis: np.stack(args, axis),
            lambda torch, *args, axis=axis: torch.stack(args, axis),
        )
        for shapes, axis in [
            (((2, 3),) * 3, 0),
            (((2, 3),) * 2, 1),
            (((2, 3),) * 2, -1),
            (((),) * 2, 0),
            (((2, 0),), 1),
        ]
    ],
    *[
        Case(
            ndl.ops.Split,
            lambda x, axis=axis: (lambda parts: parts[0] * parts[-1] + parts[1])(ndl.split(x, axis)),
            (shape,),
            lambda x, axis=axis: (lambda parts: parts[0] * parts[-1] + parts[1])(np.moveaxis(x, axis, 0)),
            lambda torch, x, axis=axis: (lambda parts: parts[0] * parts[-1] + parts[1])(x.unbind(axis)),
        )
        for shape, axis in [((3, 4), 0), ((2, 3, 2), 1), ((4, 3), -1), ((2,), 0), ((2, 0, 3), 0)]
    ],
    *[
        Case(
            ndl.ops.Concatenate,
            lambda *args, axis=axis: ndl.concatenate(args, axis) ** 2,
            shapes,
            lambda *args, axis=axis: np.concatenate(args, axis) ** 2,
            lambda torch, *args, axis=axis: torch.cat(args, axis) ** 2,
        )
        for shapes, axis in [
            (((2, 3), (1, 3), (4, 3)), 0),
            (((2, 3, 1), (2, 3, 2)), -1),
            (((2, 0), (2, 3)), 1),
            (((3,),), 0),
        ]
    ],
    Case(
        ndl.ops.FusedAddScalars,
        lambda x: (lambda pair: pair[0] * pair[1])(ndl.fused_add_scalars(x, 1, 2)),
        ((2, 3),),
        lambda x: (x + 1) * (x + 2),
        lambda torch, x: (x + 1) * (x + 2),
    ),
    Case(
        ndl.ops.TupleGetItem,
        lambda x: ndl.fused_add_scalars(x * x, 1, 2)[-1],
        ((2, 3),),
        lambda x: x * x + 2,
        lambda torch, x: x * x + 2,
    ),
    Case(
        ndl.ops.ZerosButOne,
        lambda x: ndl.fused_add_scalars(x, 1, 2)[0] ** 3,
        ((2,),),
        lambda x: (x + 1) ** 3,
        lambda torch, x: (x + 1) ** 3,
    ),
    Case(
        ndl.ops.MakeTensorTuple,
        lambda x, y: (ndl.make_tuple(x, y) + ndl.make_tuple(y, x))[0] * x,
        ((2, 3), (2, 3)),
        lambda x, y: (x + y) * x,
        lambda torch, x, y: (x + y) * x,
    ),
]


def case_id(case: Case) -> str:
    return f"{case.op.__name__}-{'-'.join('x'.join(map(str, s)) or '()' for s in case.shapes)}"


def for_each_operator(cases: list[Case]) -> pytest.MarkDecorator:
    """Runs a test for each operator, with the list of its cases."""
    by_operator: dict[str, list[Case]] = {}
    for case in cases:
        by_operator.setdefault(case.op.__name__, []).append(case)
    return pytest.mark.parametrize("cases", by_operator.values(), ids=by_operator)


@contextmanager
def naming(case: Case):
    """Let a failure say which of the operator's cases it is about."""
    try:
        yield
    except Exception as error:
        error.add_note(f"The case is {case_id(case)}, number {CASES.index(case)} of CASES.")
        raise


every_operator = for_each_operator(CASES)
every_device = pytest.mark.parametrize("device", DEVICES, ids=str)
# To compile a kernel takes longer than all tests of it; those of float32 are compiled for other tests anyway.
every_dtype_and_device = pytest.mark.parametrize(
    ("dtype", "device"),
    [
        pytest.param(dtype, device, marks=() if dtype == usual else pytest.mark.slow, id=f"{dtype}-{device}")
        for device in DEVICES
        for usual in ["float64" if ndl.BACKEND == "np" or device == ndl.cpu_numpy() else "float32"]
        for dtype in ("float32", "float64")
    ],
)


def numbers(case: Case, seed: int = 0) -> list[np.ndarray]:
    """Values that differ, also between operands, and are not 0: away from the kinks of max and relu."""
    rng = np.random.default_rng(seed)
    sizes = [int(np.prod(shape)) for shape in case.shapes]
    grid = np.linspace(case.low, case.high, 2 * (sum(sizes) // 2) + 2)  # an even count: 0 is not among them
    values = np.split(rng.permutation(grid)[: sum(sizes)], np.cumsum(sizes)[:-1])
    return [v.reshape(shape) for v, shape in zip(values, case.shapes, strict=True)]


def tensors(case: Case, device, dtype="float64") -> list[Tensor]:
    return [Tensor(x, device=device, dtype=dtype) for x in numbers(case)]


def strided(t: Tensor) -> Tensor:
    """The same leaf, its axes laid out in memory in reverse order."""
    axes = tuple(reversed(range(t.ndim)))
    flipped = Tensor(t.numpy().transpose(axes), device=t.device, dtype=t.dtype)
    view = ndl.backend_selection.permute(flipped.realize_cached_data(), axes)
    return Tensor.make_const(view, requires_grad=True)


def subclasses(cls: type) -> set[type]:
    return {cls}.union(*map(subclasses, cls.__subclasses__()))


def test_no_operator_is_forgotten():
    families_and_bases = {Op, TensorOp, TensorTupleOp, families.Elementwise, families.ElementwiseScalar}
    families_and_bases |= {families.Pointwise, families.Movement, families.Reduction}
    families_and_bases |= {ndl.ops.ops_logarithmic.Normalization, ndl.ops.ops_indexing.ByIndex}
    library = {op for op in subclasses(Op) if op.__module__.startswith("needle.")}
    # The compiler's placeholders, random numbers, and the operators over several processes and of a module.
    beside = (".compiler.", ".parallel", ".init.", ".nn.")
    ours = {op for op in library if not any(part in op.__module__ for part in beside)} - families_and_bases
    assert ours == {case.op for case in CASES}
    assert all(op in vars(ndl.ops).values() for op in ours)


@every_dtype_and_device
@every_operator
def test_value(cases, dtype, device):
    for case in cases:
        with naming(case):
            args = [x.astype(dtype) for x in numbers(case)]
            with np.errstate(all="ignore"):
                expected = case.numpy(*args)
            for make in (lambda t: t, strided):
                out = case.f(*[make(Tensor(x, device=device, dtype=dtype)) for x in args])
                assert out.shape == expected.shape
                assert out.device == device or case.op is ndl.ops.ToDevice
                assert out.dtype == dtype or case.op is ndl.ops.Cast
                # A few roundings of the dtype's precision, in the order of each library's own sums.
                np.testing.assert_allclose(
                    out.numpy(),
                    expected,
                    rtol=2e-6 if dtype == "float32" else 1e-13,
                    atol=1e-6 if dtype == "float32" else 1e-13,
                )


# To differences in float64, rounding to float32 is a step function.
SMOOTH_CASES = [c for c in CASES if c.op is not ndl.ops.Cast]
# Of second derivatives there are as many as the square of the number of elements.
SMALL_CASES = [c for c in SMOOTH_CASES if sum(map(math.prod, c.shapes)) <= 60]
LARGE_CASES = [c for c in SMOOTH_CASES if c not in SMALL_CASES]


def test_small_cases_are_of_every_operator():
    assert {case.op for case in SMALL_CASES} == {case.op for case in SMOOTH_CASES}


# Elsewhere they are compared with NumPy's in each run, and with central differences in the slow one.
on_numpy = pytest.mark.parametrize(
    "device",
    [
        device
        if ndl.BACKEND == "np" or device == ndl.cpu_numpy()
        else pytest.param(device, marks=pytest.mark.slow)
        for device in DEVICES
    ],
    ids=str,
)


@on_numpy
@for_each_operator(SMALL_CASES)
def test_gradients_are_those_of_central_differences(cases, device):
    for case in cases:
        with naming(case):
            ndl.gradcheck(case.f, *tensors(case, device))


@pytest.mark.slow
@every_device
@for_each_operator(LARGE_CASES)
def test_gradients_of_large_cases_are_those_of_central_differences(cases, device):
    for case in cases:
        with naming(case):
            ndl.gradcheck(case.f, *tensors(case, device))


@pytest.mark.skipif(ndl.BACKEND != "nd", reason="NumPy has one device")
@every_device
@pytest.mark.parametrize("nth", [0, pytest.param(-1, marks=pytest.mark.slow)], ids=["first", "last"])
@for_each_operator([c for c in SMALL_CASES if all(map(math.prod, c.shapes))])
def test_first_and_second_derivatives_are_those_on_numpy(cases, nth, device):
    """What is right on NumPy by central differences is right on a device that is too slow for them."""

    def derivatives(case, device):
        args = tensors(case, device)
        out = case.f(*args)
        if not out.requires_grad:
            return [out]
        weights = Tensor(np.linspace(1, 2, out.size).reshape(out.shape), device=out.device)
        first = ndl.gradients((out * weights).sum(), args)
        squares = sum((g * g).sum() for g in first)
        return [out, *first, *(ndl.gradients(squares, args) if squares.requires_grad else [])]

    with naming(cases[nth]):
        expected = derivatives(cases[nth], ndl.cpu_numpy())
        for found, right in zip(derivatives(cases[nth], device), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-11, atol=1e-11)


@every_device
@every_operator
def test_gradients_of_strided_operands(cases, device):
    def gradients(case, make):
        args = [make(t) for t in tensors(case, device)]
        out = case.f(*args)
        return [g.numpy() for g in (ndl.gradients(out, args) if out.requires_grad else args)]

    for case in cases:
        with naming(case):
            for plain, view in zip(gradients(case, lambda t: t), gradients(case, strided), strict=True):
                np.testing.assert_allclose(plain, view, rtol=1e-12, atol=1e-12)


@every_device
@every_operator
def test_lazy_is_eager_and_infer_says_what_compute_does(cases, device, computed):
    for case in cases:
        with naming(case):
            args = tensors(case, device)
            eager = case.f(*args)
            computed.clear()
            with ndl.lazy():
                out = case.f(*args)
                if out.requires_grad:
                    grads = ndl.gradients(out, args)
                spec = Spec(out.shape, out.dtype, out.device)
                assert computed == []
                assert out.cached_data is None or not args or isinstance(out._data, Pending) is False
            assert (eager.shape, eager.dtype, eager.device) == spec
            np.testing.assert_array_equal(out.numpy(), eager.numpy())
            assert (out.realize_cached_data().shape, out.realize_cached_data().dtype) == spec[:2]
            if eager.requires_grad:
                for lazy, expected in zip(grads, ndl.gradients(eager, args), strict=True):
                    assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
                    np.testing.assert_array_equal(lazy.numpy(), expected.numpy())


# torch has no softmax over several axes, and refuses some reductions of nothing.
TORCH_CASES = [c for c in CASES if c.torch and all(np.prod(shape) for shape in c.shapes)]


@every_dtype_and_device
@for_each_operator(TORCH_CASES)
def test_gradients_are_those_of_torch(cases, dtype, device, torch):
    for case in cases:
        with naming(case):
            args = [x.astype(dtype) for x in numbers(case)]
            theirs = [torch.tensor(x, requires_grad=True) for x in args]
            expected = case.torch(torch, *theirs)
            ours = [Tensor(x, device=device, dtype=dtype) for x in args]
            out = case.f(*ours)
            weights = np.random.default_rng(1).normal(size=out.shape).astype(dtype)
            tolerance = {"rtol": 1e-5, "atol": 2e-6} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-12}
            np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), **tolerance)
            expected.backward(torch.tensor(weights))
            if out.requires_grad:
                out.backward(Tensor(weights, device=out.device, dtype=dtype))
            for mine, other in zip(ours, theirs, strict=True):
                got = np.zeros(mine.shape) if mine.grad is None else mine.grad.numpy()
                want = np.zeros(mine.shape) if other.grad is None else other.grad.numpy()
                np.testing.assert_allclose(got, want, **tolerance)
