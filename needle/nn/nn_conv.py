"""Modules for images of shape (batch, channels, height, width).

The operators underneath want the channels last, because that suits matrix products. The modules move them
there and back, which copies nothing.
"""

from __future__ import annotations

import math
from typing import Any

from .. import init, ops
from ..autograd import Tensor
from ..backend_ndarray.device import generator
from ..ops.ops_convolution import Pair, Pairs, as_pair, margins, pool_margins
from .module import CHANNELS_FIRST, CHANNELS_LAST, Module, Parameter, check_sizes


class Conv(Module):
    """The convolution (strictly: cross-correlation) of images with learned kernels, plus a bias.

    Parameters
    ----------
    in_channels, out_channels : int
        Inputs have shape (batch, in_channels, height, width), outputs (batch, out_channels, ...).
    kernel_size : int or pair of int
        Height and width of a kernel; one number for both.
    stride : int or pair of int
        How far a kernel moves from one output to the next, downwards and to the right.
    bias : bool
        Whether a bias is added.
    device, dtype
        Of the parameters.
    padding : int, pair of int or pair of pairs, optional
        Zeros around an image: one number, (above and below, left and right), or ((above, below), (left,
        right)), which may put them on one side alone. Default: (size - 1) // 2 for the height and the width
        of the kernel. If they are odd, the image keeps its size at stride 1.
    rng : numpy.random.Generator or int, optional
        Where the initial weights come from; an int is the seed of a generator. Default: NumPy's global state.

    Attributes
    ----------
    weight : Parameter, shape (kernel height, kernel width, in_channels, out_channels)
        Begins Kaiming uniform; the fan-in is kernel height * kernel width * in_channels.
    bias : Parameter, shape (out_channels,), or None
        Begins uniform in ±1 / sqrt(fan-in).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair = 1,
        bias: bool = True,
        device=None,
        dtype="float32",
        padding: int | Pair | Pairs | None = None,
        rng=None,
    ):
        check_sizes(self, in_channels=in_channels, out_channels=out_channels)
        height, width = as_pair("Conv: kernel_size", kernel_size)
        if padding is None:
            padding = ((height - 1) // 2, (width - 1) // 2)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _short((height, width))
        self.stride = _short(as_pair("Conv: stride", stride))
        self.padding = _short(margins("Conv", padding))
        area = height * width
        kwargs = {"device": device, "dtype": dtype, "rng": generator(rng)}
        self.weight = Parameter(
            init.kaiming_uniform(
                in_channels * area,
                out_channels * area,
                shape=(height, width, in_channels, out_channels),
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
    kernel_size : int or pair of int
        Height and width of a window; one number for both.
    stride : int or pair of int, optional
        How far a window moves from one to the next, downwards and to the right. Default: kernel_size, so that
        windows do not overlap.
    padding : int, pair of int or pair of pairs
        Rows and columns around an image, given as for `Conv`; on each side at most half a window.
    """

    def __init__(
        self,
        kernel_size: int | Pair,
        stride: int | Pair | None = None,
        padding: int | Pair | Pairs = 0,
    ):
        name = type(self).__name__
        size = as_pair(f"{name}: kernel_size", kernel_size)
        self.kernel_size = _short(size)
        self.stride = _short(size if stride is None else as_pair(f"{name}: stride", stride))
        self.padding = _short(pool_margins(name, padding, size))

    def pool(self, images: Tensor) -> Tensor:
        """Pool images that have the channels last."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            needed = "images of shape (batch, channels, height, width)"
            raise ValueError(f"{type(self).__name__}: needs {needed}, got {x.shape}")
        return self.pool(x.permute(CHANNELS_LAST)).permute(CHANNELS_FIRST)


class MaxPool2d(Pool):
    """The largest number of each window; padding is never the largest. Parameters as of `Pool`."""

    def pool(self, images: Tensor) -> Tensor:
        return ops.max_pool2d(images, self.kernel_size, self.stride, self.padding)


class AvgPool2d(Pool):
    """The mean of each window; padding counts as zeros. Parameters as of `Pool`."""

    def pool(self, images: Tensor) -> Tensor:
        return ops.avg_pool2d(images, self.kernel_size, self.stride, self.padding)


def _short(pair: tuple[Any, ...]) -> Any:
    """One of a pair of equal lengths, so that a module's text says kernel_size=3."""
    first, second = [_short(x) if isinstance(x, tuple) else x for x in pair]
    return first if first == second else (first, second)
