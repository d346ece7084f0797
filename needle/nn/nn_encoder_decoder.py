"""Transformer layers that take masks and attend to another sequence, and vectors that tell positions apart.

Sequences have shape (batch, time, dim). Attention itself and the plain stack of layers are in
`nn_transformer`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import init
from ..autograd import Tensor
from ..backend_ndarray.device import generator
from .module import Module, Parameter, check_sizes
from .nn_basic import GELU, Dropout, LayerNorm1d, Linear, Sequential
from .nn_transformer import AttentionLayer


class TransformerEncoderLayer(Module):
    """Self-attention, then two linear maps at each position. Both parts add to their input.

    With `pre_norm`, each part is x = x + f(norm(x)), which trains without a warm-up (Xiong et al. (2020), "On
    layer normalization in the transformer architecture"). Without it, each is x = norm(x + f(x)), as in the
    original paper. With ``causal=True`` it is the layer of a language model.

    Parameters
    ----------
    dim : int
        Features at each position.
    num_heads : int
        Heads of attention, which share the features equally: `dim` must be a multiple of it.
    hidden_dim : int, optional
        Features between the two linear maps. Default: 4 * dim.
    dropout : float
        The probability of a zero in the weights of attention, between the two maps, and in what a part adds.
    activation : Module, optional
        Between the two linear maps. Default: GELU().
    pre_norm : bool
        Whether each part normalizes its input, and not its result.
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where initial weights and dropout come from; an int is the seed of a generator. Default: NumPy's
        global state.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        activation: Module | None = None,
        pre_norm: bool = True,
        device=None,
        dtype="float32",
        rng=None,
    ):
        kwargs = {"device": device, "dtype": dtype}
        rng = generator(rng)
        self.pre_norm = pre_norm
        self.attention = _attention(self, dim, num_heads, dropout, rng=rng, **kwargs)
        self.attention_norm = LayerNorm1d(dim, **kwargs)
        self.feed_forward = _feed_forward(dim, hidden_dim, dropout, activation, rng=rng, **kwargs)
        self.feed_forward_norm = LayerNorm1d(dim, **kwargs)
        self.dropout = Dropout(dropout, rng)

    def forward(self, x: Tensor, mask: Any = None, causal: bool = False) -> Tensor:
        """
        Parameters
        ----------
        x : Tensor, shape (batch, time, dim)
        mask, causal
            As of `MultiHeadAttention.forward`.

        Returns
        -------
        Tensor, shape (batch, time, dim)
        """
        x = _added(self, x, self.attention_norm, lambda x: self.attention(x, mask=mask, causal=causal))
        return _added(self, x, self.feed_forward_norm, self.feed_forward)


class TransformerDecoderLayer(Module):
    """Self-attention, then attention to another sequence (the memory), then two linear maps at each position.

    It has the same parameters as `TransformerEncoderLayer`.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        activation: Module | None = None,
        pre_norm: bool = True,
        device=None,
        dtype="float32",
        rng=None,
    ):
        kwargs = {"device": device, "dtype": dtype}
        rng = generator(rng)
        self.pre_norm = pre_norm
        self.attention = _attention(self, dim, num_heads, dropout, rng=rng, **kwargs)
        self.attention_norm = LayerNorm1d(dim, **kwargs)
        self.memory_attention = _attention(self, dim, num_heads, dropout, rng=rng, **kwargs)
        self.memory_norm = LayerNorm1d(dim, **kwargs)
        self.feed_forward = _feed_forward(dim, hidden_dim, dropout, activation, rng=rng, **kwargs)
        self.feed_forward_norm = LayerNorm1d(dim, **kwargs)
        self.dropout = Dropout(dropout, rng)

    def forward(
        self, x: Tensor, memory: Tensor, mask: Any = None, memory_mask: Any = None, causal: bool = True
    ) -> Tensor:
        """
        Parameters
        ----------
        x : Tensor, shape (batch, time, dim)
        memory : Tensor, shape (batch, memory_time, dim)
            Usually the output of an encoder.
        mask, causal
            Of the self-attention, as of `MultiHeadAttention.forward`.
        memory_mask
            The mask of the attention to the memory.

        Returns
        -------
        Tensor, shape (batch, time, dim)
        """
        x = _added(self, x, self.attention_norm, lambda x: self.attention(x, mask=mask, causal=causal))
        x = _added(self, x, self.memory_norm, lambda x: self.memory_attention(x, memory, mask=memory_mask))
        return _added(self, x, self.feed_forward_norm, self.feed_forward)


def _attention(layer: Module, dim, num_heads, dropout, device, dtype, rng) -> AttentionLayer:
    """Attention with biases; `layer` normalizes, and says at each call whether later positions are hidden."""
    check_sizes(layer, dim=dim, num_heads=num_heads)
    if dim % num_heads:
        raise ValueError(
            f"{type(layer).__name__}: {num_heads} heads cannot share {dim} features equally; "
            "dim must be a multiple of num_heads"
        )
    options: dict[str, Any] = {"dropout": dropout, "causal": False, "prenorm": False, "bias": True}
    return AttentionLayer(dim, num_heads, dim // num_heads, device=device, dtype=dtype, rng=rng, **options)


def _feed_forward(dim, hidden_dim, dropout, activation, device, dtype, rng) -> Sequential:
    """Two linear maps with an activation between."""
    hidden_dim = 4 * dim if hidden_dim is None else hidden_dim
    return Sequential(
        Linear(dim, hidden_dim, device=device, dtype=dtype, rng=rng),
        GELU() if activation is None else activation,
        Dropout(dropout, rng),
        Linear(hidden_dim, dim, device=device, dtype=dtype, rng=rng),
    )


def _added(layer: Any, x: Tensor, norm: Module, f: Any) -> Tensor:
    """x plus f(x), normalized before or after."""
    if layer.pre_norm:
        return x + layer.dropout(f(norm(x)))
    return norm(x + layer.dropout(f(x)))


class SinusoidalEncoding(Module):
    """Adds a vector of sines and cosines to each position, so that the network knows where it is.

    At position t, feature 2i is sin(t / 10000 ** (2i / dim)), and feature 2i + 1 is the cosine of that angle.

    Parameters
    ----------
    max_length : int
        The longest sequence; inputs have shape (batch, time, dim).
    dim : int
    device, dtype
        Of the table.

    Attributes
    ----------
    table : Tensor, shape (max_length, dim)
    """

    def __init__(self, max_length: int, dim: int, device=None, dtype="float32"):
        check_sizes(self, max_length=max_length, dim=dim)
        self.max_length = max_length
        self.dim = dim
        feature = np.arange(dim)
        angle = np.arange(max_length)[:, None] / 10000.0 ** ((feature - feature % 2) / dim)
        table = np.where(feature % 2, np.cos(angle), np.sin(angle))
        self.table = Tensor(table, device=device, dtype=dtype, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return _with_positions(self, x)


class LearnedEncoding(Module):
    """Adds a learned vector to each position, so that the network knows where it is.

    Parameters
    ----------
    max_length : int
        The longest sequence; inputs have shape (batch, time, dim).
    dim : int
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where the initial table comes from; an int is the seed of a generator. Default: NumPy's global state.

    Attributes
    ----------
    table : Parameter, shape (max_length, dim)
        Begins normal with mean 0 and standard deviation 0.02.
    """

    def __init__(self, max_length: int, dim: int, device=None, dtype="float32", rng=None):
        check_sizes(self, max_length=max_length, dim=dim)
        self.max_length = max_length
        self.dim = dim
        self.table = Parameter(init.randn(max_length, dim, std=0.02, device=device, dtype=dtype, rng=rng))

    def forward(self, x: Tensor) -> Tensor:
        return _with_positions(self, x)


def _with_positions(module: SinusoidalEncoding | LearnedEncoding, x: Tensor) -> Tensor:
    """x plus the first rows of the table, one per position."""
    if x.ndim < 2 or x.shape[-1] != module.dim or x.shape[-2] > module.max_length:
        raise ValueError(
            f"{type(module).__name__}: needs shape (batch, time, {module.dim}) with at most "
            f"{module.max_length} time steps, got {x.shape}"
        )
    return x + module.table[: x.shape[-2]]
