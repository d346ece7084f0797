"""Modules for images of shape (batch, channels, height, width).

The operators underneath take the channels last, as matrix products want them; the modules move them there
and back, which copies nothing.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from .. import init, ops
from ..autograd import Tensor
from ..backend_ndarray.device import generator
from .module import CHANNELS_FIRST, CHANNELS_LAST, Module, Parameter, check_sizes


class Conv(Module):
    """The convolution (strictly: cross-correlation) of images with learned kernels, plus a bias.

    Parameters
    ----------
    in_channels, out_channels : int
        Inputs have shape (batch, in_channels, height, width), outputs (batch, out_channels, ...).
    kernel_size : int
        Height and width of a kernel (of this, stride and padding, pairs of equal numbers will do too).
    stride : int
        How far a kernel is moved from one output to the next.
    bias : bool
        Whether a bias is added.
    device, dtype
        Of the parameters.
    padding : int, optional
        How many zeros are put around an image. Default: (kernel_size - 1) // 2, which keeps height and width
        at stride 1 if the kernel size is odd.
    rng : numpy.random.Generator or int, optional
        Where the initial weights come from; an int is the seed of a generator. Default: NumPy's global state.

    Attributes
    ----------
    weight : Parameter, shape (kernel_size, kernel_size, in_channels, out_channels)
        Begins Kaiming uniform; the fan-in is the number of pixels that a kernel sees.
    bias : Parameter, shape (out_channels,), or None
        Begins uniform in ±1 / sqrt(fan-in).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        bias: bool = True,
        device=None,
        dtype="float32",
        padding: int | None = None,
        rng=None,
    ):
        check_sizes(self, in_channels=in_channels, out_channels=out_channels)
        kernel_size = _side(self, "kernel_size", kernel_size)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = _side(self, "stride", stride)
        self.padding = (kernel_size - 1) // 2 if padding is None else _side(self, "padding", padding, 0)
        area = kernel_size * kernel_size
        kwargs = {"device": device, "dtype": dtype, "rng": generator(rng)}
        self.weight = Parameter(
            init.kaiming_uniform(
                in_channels * area,
                out_channels * area,
                shape=(kernel_size, kernel_size, in_channels, out_channels),
                **kwargs,
            )
        )
        bound = 1 / math.sqrt(in_channels * area)
        self.bias = Parameter(init.rand(out_channels, low=-bound, high=bound, **kwargs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            raise ValueError(
                f"Conv: needs images of shape (batch, {self.in_channels}, height, width), got {x.shape}"
            )
        out = ops.conv(x.permute(CHANNELS_LAST), self.weight, stride=self.stride, padding=self.padding)
        return (out if self.bias is None else out + self.bias).permute(CHANNELS_FIRST)


class Pool(Module):
    """What poolings share: one number for each window of an image.

    Parameters
    ----------
    kernel_size : int
        Height and width of a window.
    stride : int, optional
        How far apart windows begin. Default: kernel_size.
    padding : int
        How many rows and columns are put around an image; at most half a window.
    """

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0):
        self.kernel_size = _side(self, "kernel_size", kernel_size)
        self.stride = self.kernel_size if stride is None else _side(self, "stride", stride)
        self.padding = _side(self, "padding", padding, 0)
        if self.padding > self.kernel_size // 2:
            raise ValueError(
                f"{type(self).__name__}: padding is at most half a window; got {self.padding} for "
                f"a kernel_size of {self.kernel_size}"
            )

    def pool(self, images: Tensor) -> Tensor:
        """The result for images with the channels last."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            needed = "images of shape (batch, channels, height, width)"
            raise ValueError(f"{type(self).__name__}: needs {needed}, got {x.shape}")
        return self.pool(x.permute(CHANNELS_LAST)).permute(CHANNELS_FIRST)


class MaxPool2d(Pool):
    """The largest number in each window; padding is never the largest. Parameters as of `Pool`."""

    def pool(self, images: Tensor) -> Tensor:
        return ops.max_pool2d(images, self.kernel_size, self.stride, self.padding)


class AvgPool2d(Pool):
    """The mean of each window; padding counts as zeros. Parameters as of `Pool`."""

    def pool(self, images: Tensor) -> Tensor:
        return ops.avg_pool2d(images, self.kernel_size, self.stride, self.padding)


def _side(module: Module, name: str, size: Any, least: int = 1) -> int:
    """A length that is the same along both axes, given as one number or as a pair of equal ones."""
    one = size[0] if isinstance(size, (tuple, list)) and len(size) == 2 and size[0] == size[1] else size
    if isinstance(one, bool) or not isinstance(one, Integral) or one < least:
        raise ValueError(
            f"{type(module).__name__}: {name} must be a whole number of at least {least}, or a pair of equal "
            f"ones, got {size!r}"
        )
    return int(one)
