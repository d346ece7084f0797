"""Convolution and pooling, and their parts: windows over images, padding, dilation and flips.

Images are NHWC: (batch, height, width, channels). Convolution means here what it means in deep learning: the
kernel is not flipped. (Mathematicians call that a cross-correlation.)
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..backend_ndarray.device import common_device
from ..backend_ndarray.shapes import as_shape, hashable_axes, normal_axes, window_counts
from ..backend_selection import device_of, full
from ..backend_selection import windows as array_windows
from ..graph import Spec, TensorOp
from .families import Movement, check_keywords, unbroadcast
from .ops_indexing import ZerosButSlice
from .ops_tuple import spec_of

__all__ = [
    "Conv", "Dilate", "Flip", "Fold", "Pad", "UnDilate", "Windows", "avg_pool2d", "conv", "dilate", "flip",
    "max_pool2d", "pad", "undilate", "windows",
]  # fmt: skip

Pair = tuple[int, int]
Pairs = tuple[Pair, ...]

COLUMNS = 1 << 21  # how many numbers a convolution copies out of windows at a time, to bound its memory


class Pad(TensorOp):
    """y is a with a margin that holds `value`: dy is da with a margin of zeros."""

    def __init__(self, pairs: Pairs, value: float = 0.0):
        self.padding = pairs
        self.value = value

    def infer(self, a):
        if len(self.padding) != len(a.shape) or any(min(pair) < 0 for pair in self.padding):
            raise ValueError(
                f"pad: shape {a.shape} needs {len(a.shape)} pairs (how many before, how many after), none "
                f"below 0; got {self.padding}"
            )
        shape = tuple([before + n + after for n, (before, after) in zip(a.shape, self.padding, strict=True)])
        return Spec(shape, a.dtype, a.device)

    def inside(self, shape) -> tuple[slice, ...]:
        """The slices of the padded array where the original, of `shape`, lies."""
        return tuple([slice(before, before + n) for n, (before, _) in zip(shape, self.padding, strict=True)])

    def compute(self, a):
        out = full(self.infer(spec_of(a)).shape, self.value, dtype=a.dtype, device=device_of(a))
        out[self.inside(a.shape)] = a
        return out

    def gradient(self, out_grad, node):
        return out_grad[self.inside(node.inputs[0].shape)]


def pad(a, pairs, value=0.0):
    """`a` with a margin that holds `value`.

    Parameters
    ----------
    a : Tensor
    pairs : sequence of (int, int), one per axis
        How many elements to add before and after along that axis. The two may differ: (1, 0) pads one side
        only.
    value : float
        What the margin holds.
    """
    try:
        pairs = tuple([(operator.index(before), operator.index(after)) for before, after in pairs])
    except (TypeError, ValueError):
        raise TypeError(
            f"pad: needs a pair (how many before, how many after) per axis, got {pairs!r}"
        ) from None
    return Pad(pairs, value)(a)


def with_margins(a, pairs: Pairs):
    """`pad`, with margins that may be negative: these take elements away."""
    if any(min(pair) < 0 for pair in pairs):
        kept = [
            slice(-min(before, 0), n + min(after, 0))
            for n, (before, after) in zip(a.shape, pairs, strict=True)
        ]
        a = a[tuple(kept)]
        pairs = tuple([(max(before, 0), max(after, 0)) for before, after in pairs])
    return pad(a, pairs) if any(map(any, pairs)) else a


def cropped(a, shape: tuple[int, ...]):
    """The first elements along each axis, as many as `shape` says."""
    return a if a.shape == shape else a[tuple([slice(0, n) for n in shape])]


def along(axes, where: slice, ndim: int) -> tuple[slice, ...]:
    """An index with the slice `where` on `axes`, and everything on the others."""
    return tuple([where if i in axes else slice(None) for i in range(ndim)])


class Flip(Movement):
    """Some axes in reverse order; the gradient is reversed as well."""

    def __init__(self, axes=None):
        self.axes = hashable_axes(axes)

    def out_shape(self, shape):
        normal_axes("flip", self.axes, len(shape))
        return shape

    def compute(self, a):
        backwards = normal_axes("flip", self.axes, len(a.shape))
        return a[along(backwards, slice(None, None, -1), len(a.shape))]

    def gradient(self, out_grad, node):
        return flip(out_grad, self.axes)


def flip(a, axes=None, **misnamed):
    """The elements along the given axes (None: all) in reverse order."""
    check_keywords("flip", misnamed)
    return Flip(axes)(a)


def zeros_between(name: str, dilation: int) -> int:
    """The number of zeros after each element, checked."""
    if operator.index(dilation) < 0:
        raise ValueError(
            f"{name}: dilation is the number of zeros after each element, at least 0; got {dilation}"
        )
    return operator.index(dilation)


class Dilate(TensorOp):
    """`dilation` zeros after each element along `axes`; the gradient leaves those places out."""

    def __init__(self, axes, dilation: int):
        self.axes = hashable_axes(axes)
        self.dilation = zeros_between("dilate", dilation)

    def infer(self, a):
        wide = normal_axes("dilate", self.axes, len(a.shape))
        shape = tuple([n * (self.dilation + 1) if i in wide else n for i, n in enumerate(a.shape)])
        return Spec(shape, a.dtype, a.device)

    def compute(self, a):
        wide = normal_axes("dilate", self.axes, len(a.shape))
        slices = along(wide, slice(None, None, self.dilation + 1), len(a.shape))
        return ZerosButSlice(slices, self.infer(spec_of(a)).shape).compute(a)

    def gradient(self, out_grad, node):
        return undilate(out_grad, self.axes, self.dilation)


def dilate(a, axes, dilation: int):
    """`dilation` zeros after each element along `axes`: a length n becomes n * (dilation + 1)."""
    return Dilate(axes, dilation)(a)


class UnDilate(Movement):
    """Every (dilation + 1)-th element along `axes`; the gradient is 0 for the others."""

    def __init__(self, axes, dilation: int):
        self.axes = hashable_axes(axes)
        self.dilation = zeros_between("undilate", dilation)

    def out_shape(self, shape):
        narrow = normal_axes("undilate", self.axes, len(shape))
        return tuple([-(-n // (self.dilation + 1)) if i in narrow else n for i, n in enumerate(shape)])

    def compute(self, a):
        narrow = normal_axes("undilate", self.axes, len(a.shape))
        return a[along(narrow, slice(None, None, self.dilation + 1), len(a.shape))]

    def gradient(self, out_grad, node):
        dilated = dilate(out_grad, self.axes, self.dilation)
        return cropped(dilated, node.inputs[0].shape)


def undilate(a, axes, dilation: int):
    """Every (dilation + 1)-th element along `axes`: the inverse of `dilate`."""
    return UnDilate(axes, dilation)(a)


class Windows(Movement):
    """All windows of images, as a view: they overlap in memory. The gradient adds up the overlaps."""

    def __init__(self, size: Pair, stride: Pair = (1, 1), dilation: Pair = (1, 1)):
        self.size = size
        self.stride = stride
        self.dilation = dilation

    def out_shape(self, shape):
        if len(shape) != 4:
            raise ValueError(f"windows: needs images (batch, height, width, channels), got shape {shape}")
        n, height, width, channels = shape
        lengths = window_counts("windows", (height, width), self.size, self.stride, self.dilation)
        return (n, *lengths, *self.size, channels)

    def compute(self, a):
        self.out_shape(a.shape)
        return array_windows(a, self.size, self.stride, self.dilation)

    def gradient(self, out_grad, node):
        return Fold(node.inputs[0].shape, self.stride, self.dilation)(out_grad)


def windows(a, size, stride=1, dilation=1):
    """All windows of images, without a copy.

    Parameters
    ----------
    a : Tensor, shape (batch, height, width, channels)
    size : int or pair of int
        Height and width of a window.
    stride : int or pair of int
        Steps from a window to the next, downwards and to the right.
    dilation : int or pair of int
        Steps between neighbours within a window.

    Returns
    -------
    Tensor, shape (batch, rows of windows, windows in a row, window height, window width, channels)
    """
    return Windows(*[as_pair("windows", x) for x in (size, stride, dilation)])(a)


class Fold(TensorOp):
    """Images from windows: each window is put back where it was, and overlaps are added up."""

    def __init__(self, shape: tuple[int, ...], stride: Pair = (1, 1), dilation: Pair = (1, 1)):
        self.shape = shape
        self.stride = stride
        self.dilation = dilation

    def infer(self, a):
        return Spec(self.shape, a.dtype, a.device)

    def compute(self, a):
        out = full(self.shape, 0, dtype=a.dtype, device=device_of(a))
        n, rows, columns, height, width, channels = a.shape
        if not math.prod(a.shape):
            return out
        for i in range(height):
            for j in range(width):
                part = a[:, :, :, i : i + 1, j : j + 1].reshape((n, rows, columns, channels))
                down, right = (
                    slice(k * apart, k * apart + (count - 1) * step + 1, step)
                    for k, count, step, apart in zip(
                        (i, j), (rows, columns), self.stride, self.dilation, strict=True
                    )
                )
                out[:, down, right] = out[:, down, right] + part
        return out

    def gradient(self, out_grad, node):
        return Windows(node.inputs[0].shape[3:5], self.stride, self.dilation)(out_grad)


class Conv(TensorOp):
    """A convolution of images a with a kernel b.

    y[n, h, w, o] = sum over i, j, c of
        a[n, h * stride + i * dilation, w * stride + j * dilation, c] * b[i, j, c, o]

    It is linear in a and in b, and both adjoints are convolutions again.
    """

    def __init__(self, stride: int | Pair = 1, padding: int | Pair | Pairs = 0, dilation: int | Pair = 1):
        self.stride = as_pair("conv", stride)
        self.padding = margins("conv", padding)  # (before, after) along height and width
        self.dilation = as_pair("conv", dilation)

    def infer(self, a, b):
        if len(a.shape) != 4 or len(b.shape) != 4:
            raise ValueError(
                "conv: needs images (batch, height, width, channels in) and a kernel (height, width, "
                f"channels in, channels out), got shapes {a.shape} and {b.shape}"
            )
        if a.shape[3] != b.shape[2]:
            hint = "; are the images (batch, channels, height, width)? permute((0, 2, 3, 1)) turns them"
            raise ValueError(
                f"conv: images {a.shape} have {a.shape[3]} channels, the kernel {b.shape} expects "
                f"{b.shape[2]}{hint if a.shape[1] == b.shape[2] else ''}"
            )
        lengths = tuple(
            [before + n + after for n, (before, after) in zip(a.shape[1:3], self.padding, strict=True)]
        )
        counts = window_counts("conv", lengths, b.shape[:2], self.stride, self.dilation)
        dtype = np.result_type(a.dtype, b.dtype)
        return Spec((a.shape[0], *counts, b.shape[3]), dtype, common_device("conv", (a, b)))

    def compute(self, a, b):
        shape, dtype, _ = self.infer(spec_of(a), spec_of(b))
        (batch, rows, columns, channels), size = shape, b.shape[:2]
        if any(map(any, self.padding)):
            a = Pad(((0, 0), *self.padding, (0, 0))).compute(a)
        seen = array_windows(a, size, self.stride, self.dilation)
        width = math.prod(b.shape[:3])
        kernel = b.reshape((width, channels))
        out = full(shape, 0, dtype=dtype, device=device_of(a))
        # One matrix product per some images: each window is copied into a row of the left matrix.
        step = max(1, COLUMNS // max(rows * columns * width, 1))
        for i in range(0, batch if math.prod(shape) else 0, step):
            some = seen[i : i + step]
            product = some.reshape((some.shape[0] * rows * columns, width)) @ kernel
            out[i : i + step] = product.reshape((some.shape[0], rows, columns, channels))
        return out

    def gradient(self, out_grad, node):
        a, b = node.inputs
        return (
            unbroadcast(self.gradient_of_images(out_grad, a, b), a) if a.requires_grad else None,
            unbroadcast(self.gradient_of_kernel(out_grad, a, b), b) if b.requires_grad else None,
        )

    def gradient_of_images(self, out_grad, a, b):
        """The adjoint of a pixel: over the windows that cover it, each adjoint times the weight there.

        This is a convolution of `out_grad` with the flipped kernel. A stride of the forward pass becomes
        zeros between the elements of `out_grad`.
        """
        spread = out_grad
        around = []
        for axis in (1, 2):
            stride, dilation = self.stride[axis - 1], self.dilation[axis - 1]
            before, after = self.padding[axis - 1]
            reach = dilation * (b.shape[axis - 1] - 1)
            length = (out_grad.shape[axis] - 1) * stride + 1
            unseen = before + a.shape[axis] + after - (length + reach)  # pixels after the last window
            if stride > 1:
                spread = dilate(spread, axis, stride - 1)
            tail = spread.shape[axis] - length  # zeros that dilation puts after the last adjoint
            around.append((reach - before, reach + unseen - after - tail))
        turned = flip(b, (0, 1)).transpose((2, 3))
        spread = with_margins(spread, ((0, 0), *around, (0, 0)))
        return Conv(1, 0, self.dilation)(spread, turned)

    def gradient_of_kernel(self, out_grad, a, b):
        """The adjoint of a weight: over all windows, the pixel under the weight times the window's adjoint.

        This is a convolution of the images with `out_grad` as the kernel. Batch and channels swap places in
        it, and so do stride and dilation.
        """
        conv = Conv(self.dilation, self.padding, self.stride)
        by_kernel = conv(a.permute((3, 1, 2, 0)), out_grad.permute((1, 2, 0, 3)))
        # Pixels that no window covered would make it larger than the kernel.
        return cropped(by_kernel, (b.shape[2], *b.shape[:2], b.shape[3])).permute((1, 2, 0, 3))


def conv(a, b, stride=1, padding=1, dilation=1):
    """The convolution of images with a kernel.

    Parameters
    ----------
    a : Tensor, shape (batch, height, width, channels in)
    b : Tensor, shape (kernel height, kernel width, channels in, channels out)
    stride : int or pair of int
        Steps from a window to the next, downwards and to the right.
    padding : int, pair of int, or pair of pairs
        Zeros around each image: one number for all sides; (above and below, left and right); or
        ((above, below), (left, right)) where opposite sides differ.
    dilation : int or pair of int
        Steps between the pixels under neighbouring weights.

    Returns
    -------
    Tensor, shape (batch, rows, columns, channels out)
        With ``rows = (above + height + below - dilation * (kernel height - 1) - 1) // stride + 1``.

    Raises
    ------
    ValueError
        If channels differ, or the kernel is larger than the padded image.
    """
    return Conv(stride, padding, dilation)(a, b)


def max_pool2d(a, kernel_size, stride=None, padding=0):
    """The largest number of each window.

    Parameters
    ----------
    a : Tensor, shape (batch, height, width, channels)
    kernel_size : int or pair of int
        Height and width of a window.
    stride : int or pair of int, optional
        Steps from a window to the next. Default: `kernel_size`, so that windows do not overlap.
    padding : int, pair of int, or pair of pairs
        Rows and columns to add around the image, at most half a window; they are never the largest. Given
        as for `conv`.

    Returns
    -------
    Tensor, shape (batch, rows, columns, channels)
    """
    return pooled("max_pool2d", a, kernel_size, stride, padding, -math.inf).max((3, 4))


def avg_pool2d(a, kernel_size, stride=None, padding=0):
    """The mean of each window; the zeros of padding count. Parameters and result as for `max_pool2d`."""
    seen = pooled("avg_pool2d", a, kernel_size, stride, padding, 0.0)
    return seen.sum((3, 4)) / math.prod(seen.shape[3:5])


def pooled(name: str, a, kernel_size, stride, padding, outside: float):
    """The windows of a pooling. Beyond the image's edge they hold the number `outside`."""
    size = as_pair(name, kernel_size)
    around = pool_margins(name, padding, size)
    if any(map(any, around)):
        if a.dtype.kind != "f":
            raise TypeError(f"{name}: padding is for images of floats, got {a.dtype}; use .astype('float32')")
        a = pad(a, ((0, 0), *around, (0, 0)), outside)
    return Windows(size, as_pair(name, size if stride is None else stride))(a)


def as_pair(name: str, lengths: Any, least: int = 1) -> Pair:
    """A pair (downwards, to the right), given as such or as one number for both."""
    try:
        pair = as_shape(lengths)
    except TypeError:
        pair = ()
    pair = pair * 2 if len(pair) == 1 else pair
    if len(pair) != 2 or min(pair) < least:
        raise ValueError(
            f"{name}: needs one whole number, or one downwards and one to the right, of at least {least}; "
            f"got {lengths!r}"
        )
    return pair


def margins(name: str, padding: Any) -> Pairs:
    """Padding as ((above, below), (left, right)). A single number stands for both of a pair."""
    if isinstance(padding, (tuple, list)) and any(isinstance(pair, (tuple, list)) for pair in padding):
        if len(padding) != 2:
            raise ValueError(f"{name}: needs padding ((above, below), (left, right)), got {padding!r}")
        return tuple([as_pair(f"{name}: padding", pair, least=0) for pair in padding])
    down, right = as_pair(f"{name}: padding", padding, least=0)
    return (down, down), (right, right)


def pool_margins(name: str, padding: Any, size: Pair) -> Pairs:
    """`margins` of a pooling. With more than half a window of padding, a window might hold nothing else."""
    around = margins(name, padding)
    if any(2 * max(pair) > n for pair, n in zip(around, size, strict=True)):
        raise ValueError(f"{name}: padding is at most half a window; got {padding} for a window of {size}")
    return around
