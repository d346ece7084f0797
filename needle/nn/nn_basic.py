"""The modules of feed-forward networks: linear maps, activations, containers, dropout, normalization."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .. import init, ops
from ..autograd import Tensor, TensorTuple, no_grad
from ..backend_ndarray.device import generator
from .module import CHANNELS_FIRST, CHANNELS_LAST, Module, Parameter, check_sizes


class Identity(Module):
    """The input, unchanged."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Linear(Module):
    """x @ weight + bias.

    Parameters
    ----------
    in_features, out_features : int
        Inputs have shape (..., in_features), outputs (..., out_features).
    bias : bool
        Whether a bias is added.
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where the initial weights come from; an int is the seed of a generator. Default: NumPy's global state.

    Attributes
    ----------
    weight : Parameter, shape (in_features, out_features)
        Begins Kaiming uniform.
    bias : Parameter, shape (1, out_features), or None
        Begins Kaiming uniform with out_features as fan-in.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device=None, dtype="float32", rng=None
    ):
        check_sizes(self, in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        kwargs = {"device": device, "dtype": dtype, "rng": generator(rng)}
        self.weight = Parameter(init.kaiming_uniform(in_features, out_features, **kwargs))
        self.bias = (
            Parameter(init.kaiming_uniform(out_features, 1, shape=(1, out_features), **kwargs))
            if bias
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1:] != (self.in_features,):
            raise ValueError(f"Linear: needs shape (..., {self.in_features}), got {x.shape}")
        if x.ndim != 2:  # a single product of all rows is faster than one per example
            rows = x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))
            return self.forward(rows).reshape((*x.shape[:-1], self.out_features))
        out = x @ self.weight
        return out if self.bias is None else out + self.bias


class Flatten(Module):
    """(batch, ...) as (batch, everything else)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape((x.shape[0], math.prod(x.shape[1:])))


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.relu(x)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.sigmoid(x)


class GELU(Module):
    """x * Φ(x), where Φ is the distribution function of the standard normal distribution.

    Parameters
    ----------
    approximate : "none" or "tanh"
        See `needle.ops.gelu`.
    """

    def __init__(self, approximate: str = "none"):
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return ops.gelu(x, self.approximate)


class LeakyReLU(Module):
    """x where x > 0, else slope * x."""

    def __init__(self, slope: float = 0.01):
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        return ops.leaky_relu(x, self.slope)


class Softmax(Module):
    """exp(x) / sum(exp(x)) over `axes`: None (all), an int or a tuple; by default the last."""

    def __init__(self, axes: int | tuple[int, ...] | None = -1):
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return ops.softmax(x, self.axes)


class Sequential(Module):
    """One module after the other.

    ``network[0]`` is the first of them and ``network[:2]`` a Sequential of the first two. ``len(network)``
    and ``for module in network`` work too.

    Attributes
    ----------
    modules : tuple of Module
    """

    def __init__(self, *modules: Module):
        for i, module in enumerate(modules):
            if not isinstance(module, Module):
                raise TypeError(f"Sequential: argument {i} is a {type(module).__name__}, not a Module")
        self.modules = modules

    def __len__(self) -> int:
        return len(self.modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def __getitem__(self, index: int | slice) -> Module:
        return Sequential(*self.modules[index]) if isinstance(index, slice) else self.modules[index]

    def forward(self, x: Tensor) -> Tensor:
        for module in self.modules:
            x = module(x)
        return x


class Residual(Module):
    """fn(x) + x, so that `fn` only has to learn the change.

    He et al. (2016), "Deep residual learning for image recognition".

    Attributes
    ----------
    fn : Module
        Its output has the shape of its input.
    """

    def __init__(self, fn: Module):
        self.fn = fn

    def forward(self, x: Tensor) -> Tensor:
        out = self.fn(x)
        if out.shape != x.shape:
            raise ValueError(
                f"Residual: {type(self.fn).__name__} turns shape {x.shape} into {out.shape}; give it as many "
                "outputs as inputs, so that they can be added"
            )
        return out + x


class Dropout(Module):
    """Sets random numbers to zero while the network learns, and changes nothing when it is used.

    Each number survives with probability 1 - p and is then divided by 1 - p, so its mean stays the same.
    Srivastava et al. (2014), "Dropout: a simple way to prevent neural networks from overfitting".

    Parameters
    ----------
    p : float
        The probability of a zero, 0 to 1. With 0 nothing is drawn.
    rng : numpy.random.Generator or int, optional
        An int is the seed of a generator. Default: NumPy's global state.
    """

    def __init__(self, p: float = 0.5, rng=None):
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: p is the probability of a zero, 0 to 1, got {p}")
        self.p = p
        self._rng = generator(rng)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        keep = init.randb(*x.shape, p=1 - self.p, device=x.device, dtype=x.dtype, rng=self._rng)
        return x * (keep * (1 / (1 - self.p) if self.p < 1 else 0.0))


class _Computed(ops.Identity):
    """The same Tensor, computed when it is asked for, in lazy mode too."""

    at_once = True


class BatchNorm1d(Module):
    """Normalizes each feature over the batch, then scales and shifts it by learned numbers.

    (x - mean) / sqrt(variance + eps) * weight + bias. In training, mean and (biased) variance are those of
    the batch, and the running ones follow them: running = (1 - momentum) * running + momentum * batch. After
    `eval`, the running ones take their place. Ioffe and Szegedy (2015), "Batch normalization".

    Parameters
    ----------
    dim : int
        Inputs have shape (batch, dim).
    eps : float
        Added to the variance, so that we never divide by 0.
    momentum : float
        The weight of the newest batch in the running ones.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, shape (dim,)
        Begins with 1.
    bias : Parameter, shape (dim,)
        Begins with 0.
    running_mean : Tensor, shape (dim,)
        Begins with 0.
    running_var : Tensor, shape (dim,)
        Begins with 1.
    """

    _shape: tuple[str, ...] = ("batch", "dim")
    _standardize = staticmethod(ops.standardize)  # `needle.parallel.synchronise` puts another one there

    def __init__(self, dim: int, eps: float = 1e-5, momentum: float = 0.1, device=None, dtype="float32"):
        check_sizes(self, dim=dim)
        self.dim = dim
        self.eps = eps
        self.momentum = momentum
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))
        self.running_mean = init.zeros(dim, device=device, dtype=dtype)
        self.running_var = init.ones(dim, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != len(self._shape) or x.shape[1] != self.dim:
            raise ValueError(
                f"{type(self).__name__}: needs shape ({', '.join(self._shape)}) with dim {self.dim}, "
                f"got {x.shape}"
            )
        return self._normalized(x)

    def _normalized(self, x: Tensor) -> Tensor:
        """`x` normalized over all axes but the last, which holds the features."""
        if self.training:
            batch = self._standardize(x, tuple(range(x.ndim - 1)), self.eps)
            normal = batch[0]
            self._follow(batch)
        else:
            normal = (x - self.running_mean) / (self.running_var + self.eps) ** 0.5
        return normal * self.weight + self.bias

    def _follow(self, batch: TensorTuple) -> None:
        """Move the running mean and variance towards those of a batch: items 1 and 2 of `batch`."""
        with no_grad():
            for i, running in enumerate((self.running_mean, self.running_var), start=1):
                before: Any
                now: Any
                if batch.is_pending:  # in lazy mode, no more than one step is left waiting
                    before, now = _Computed()(running) if running.is_pending else running, batch[i]
                else:  # arrays are faster
                    before, now = running.realize_cached_data(), batch.realize_cached_data()[i]
                latest: Any = before * (1 - self.momentum) + now.reshape((self.dim,)) * self.momentum
                running.data = Tensor.make_const(latest).astype(running.dtype)


class BatchNorm2d(BatchNorm1d):
    """`BatchNorm1d` for images: normalizes each channel over the batch and all pixels.

    Inputs have shape (batch, dim, height, width); `dim` is the number of channels.
    """

    _shape = ("batch", "dim", "height", "width")

    def _normalized(self, x: Tensor) -> Tensor:
        # A convolution leaves the channels side by side in memory, so this is faster with them as last axis.
        return super()._normalized(x.permute(CHANNELS_LAST)).permute(CHANNELS_FIRST)


class LayerNorm1d(Module):
    """Normalizes each example over its last axis, then scales and shifts it by learned numbers.

    (x - mean) / sqrt(variance + eps) * weight + bias. Ba, Kiros and Hinton (2016), "Layer normalization".

    Parameters
    ----------
    dim : int
        Inputs have shape (..., dim).
    eps : float
        Added to the variance, so that we never divide by 0.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, shape (dim,)
        Begins with 1.
    bias : Parameter, shape (dim,)
        Begins with 0.
    """

    def __init__(self, dim: int, eps: float = 1e-5, device=None, dtype="float32"):
        check_sizes(self, dim=dim)
        self.dim = dim
        self.eps = eps
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1:] != (self.dim,):
            raise ValueError(f"LayerNorm1d: needs shape (..., {self.dim}), got {x.shape}")
        return ops.layer_norm(x, self.weight, self.bias, self.eps)


class GroupNorm(Module):
    """Normalizes groups of channels of each example, then scales and shifts them by learned numbers.

    With a single group it is layer normalization over all channels and pixels; with as many groups as
    channels it is instance normalization. Wu and He (2018), "Group normalization".

    Parameters
    ----------
    num_groups, num_channels : int
        Inputs have shape (batch, num_channels, ...); all groups have the same size.
    eps : float
        Added to the variance, so that we never divide by 0.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, shape (num_channels,)
        Begins with 1.
    bias : Parameter, shape (num_channels,)
        Begins with 0.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, device=None, dtype="float32"):
        check_sizes(self, num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: {num_channels} channels cannot form {num_groups} groups of equal size; "
                "num_channels must be a multiple of num_groups"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = Parameter(init.ones(num_channels, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(num_channels, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ValueError(f"GroupNorm: needs shape (batch, {self.num_channels}, ...), got {x.shape}")
        size = math.prod(x.shape[1:]) // self.num_groups
        groups = x.reshape((x.shape[0], self.num_groups, size))
        normal = ops.standardize(groups, 2, self.eps)[0].reshape(x.shape)
        per_channel = (self.num_channels, *[1] * (x.ndim - 2))
        return normal * self.weight.reshape(per_channel) + self.bias.reshape(per_channel)
