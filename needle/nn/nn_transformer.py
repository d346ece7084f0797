"""Attention, and the layers of transformers, for sequences of shape (batch, time, dim).

Vaswani et al. (2017), "Attention is all you need".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import init, ops
from ..autograd import Tensor
from ..backend_ndarray.device import generator
from .module import Module, Parameter, check_sizes
from .nn_basic import GELU, Dropout, LayerNorm1d, Linear, Sequential


def causal_mask(length: int, device=None) -> Tensor:
    """True where a place would look at a later one: what attention must not see when it is to predict.

    Returns
    -------
    Tensor of bool, shape (length, length)
        True above the diagonal.
    """
    later = np.arange(length)[:, None] < np.arange(length)
    return Tensor(later, device=device, dtype="bool", requires_grad=False)


class MultiHeadAttention(Module):
    """Every place of a sequence gathers from all places of another (or the same) what is like it.

    In each head, softmax(q @ k.T / sqrt(dim / num_heads)) @ v, where q, k and v are linear maps of query, key
    and value; the heads side by side go through another linear map.

    Parameters
    ----------
    dim : int
        Features at each place; the heads share them equally.
    num_heads : int
    dropout : float
        The probability with which a weight of attention becomes 0 in training.
    bias : bool
        Whether the linear maps have a bias.
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where initial weights and dropout come from; an int is the seed of a generator. Default: NumPy's
        global state.

    Attributes
    ----------
    query, key, value, out : Linear
        From dim to dim; the first features are those of the first head.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        device=None,
        dtype="float32",
        rng=None,
    ):
        check_sizes(self, dim=dim, num_heads=num_heads)
        if dim % num_heads:
            raise ValueError(
                f"MultiHeadAttention: {num_heads} heads cannot share {dim} features equally; "
                "dim must be a multiple of num_heads"
            )
        rng = generator(rng)
        self.dim = dim
        self.num_heads = num_heads
        self.query = Linear(dim, dim, bias, device, dtype, rng)
        self.key = Linear(dim, dim, bias, device, dtype, rng)
        self.value = Linear(dim, dim, bias, device, dtype, rng)
        self.out = Linear(dim, dim, bias, device, dtype, rng)
        self.dropout = Dropout(dropout, rng)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Any = None,
        causal: bool = False,
        return_weights: bool = False,
    ) -> Any:
        """
        Parameters
        ----------
        query : Tensor, shape (batch, time, dim)
            The places that gather.
        key, value : Tensor, shape (batch, key_time, dim), optional
            The places gathered from. Default: key is query, and value is key.
        mask : Tensor or array, optional
            Of booleans: True where a place must not be looked at. Of floats: what is added to q @ k.T /
            sqrt(dim / num_heads). Its shape is (time, key_time), (batch, time, key_time) or (batch,
            num_heads, time, key_time); all but the last may be 1, so that (batch, 1, key_time) hides padding.
            A place that must not look at any gets NaN.
        causal : bool
            Whether no place looks at later ones (see `causal_mask`).
        return_weights : bool
            Whether the weights of attention are returned too.

        Returns
        -------
        Tensor, shape (batch, time, dim)
            With `return_weights` a tuple of it and the weights before dropout, shape (batch, num_heads, time,
            key_time).
        """
        key = query if key is None else key
        value = key if value is None else value
        for name, x in (("query", query), ("key", key), ("value", value)):
            if x.ndim != 3 or x.shape[2] != self.dim:
                raise ValueError(
                    f"MultiHeadAttention: {name} needs shape (batch, time, {self.dim}), got {x.shape}"
                )
        if key.shape != value.shape or key.shape[0] != query.shape[0]:
            raise ValueError(
                "MultiHeadAttention: query, key and value need one batch, key and value one time; got "
                f"{query.shape}, {key.shape} and {value.shape}"
            )
        q = self._heads(self.query(query) * math.sqrt(self.num_heads / self.dim))
        scores = q @ self._heads(self.key(key)).transpose()
        if mask is not None:
            scores = scores + _additive(mask, scores)
        if causal:
            if query.shape[1] != key.shape[1]:
                raise ValueError(
                    f"MultiHeadAttention: causal needs as many keys as queries, got {key.shape[1]} and "
                    f"{query.shape[1]}; give a mask"
                )
            scores = scores + _additive(causal_mask(key.shape[1], scores.device), scores)
        weights = ops.softmax(scores)
        gathered = self.dropout(weights) @ self._heads(self.value(value))
        out = self.out(gathered.permute((0, 2, 1, 3)).reshape(query.shape))
        return (out, weights) if return_weights else out

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, time, dim) as (batch, num_heads, time, dim / num_heads)."""
        batch, time, dim = x.shape
        return x.reshape((batch, time, self.num_heads, dim // self.num_heads)).permute((0, 2, 1, 3))


def _additive(mask: Any, scores: Tensor) -> Tensor:
    """A mask as what is added to the scores, which have shape (batch, heads, time, key_time)."""
    if not isinstance(mask, Tensor):
        mask = np.asarray(mask)
        mask = Tensor(mask, device=scores.device, dtype=mask.dtype, requires_grad=False)
    if mask.dtype.kind not in "bf":
        raise TypeError(
            f"MultiHeadAttention: a mask is of booleans (True hides) or of floats (added), got {mask.dtype}"
        )
    if mask.ndim not in (2, 3, 4):
        raise ValueError(
            "MultiHeadAttention: a mask has shape (time, key_time), (batch, time, key_time) or (batch, "
            f"num_heads, time, key_time), got {mask.shape}"
        )
    if mask.dtype.kind == "b":
        hidden, seen = (
            init.constant(c=c, device=scores.device, dtype=scores.dtype) for c in (-math.inf, 0.0)
        )
        mask = ops.where(mask, hidden, seen)
    if mask.ndim == 3:
        batch, time, key_time = mask.shape
        mask = mask.reshape((batch, 1, time, key_time))
    if not _broadcasts(mask.shape, scores.shape):
        raise ValueError(
            f"MultiHeadAttention: a mask of shape {mask.shape} does not fit scores of shape {scores.shape}: "
            "(batch, num_heads, time, key_time)"
        )
    return mask.astype(scores.dtype)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of this shape can be added to one of shape `to` without enlarging it."""
    return all(size in (1, there) for size, there in zip(reversed(shape), reversed(to), strict=False))


class TransformerEncoderLayer(Module):
    """Self-attention, then two linear maps at each place; each adds to what is there.

    With `pre_norm`, x = x + f(norm(x)) for each of the two, which trains without a warm-up (Xiong et al.
    (2020), "On layer normalization in the transformer architecture"); without, x = norm(x + f(x)), as in the
    original. With ``causal=True`` it is the layer of a language model.

    Parameters
    ----------
    dim : int
        Features at each place.
    num_heads : int
        Of the attention; `dim` is a multiple of it.
    hidden_dim : int, optional
        Features between the two linear maps. Default: 4 * dim.
    dropout : float
        The probability of a zero in the weights of attention, between the two maps, and in what is added.
    activation : Module, optional
        Between the two linear maps. Default: GELU().
    pre_norm : bool
        Where the normalization stands.
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
        self.attention = MultiHeadAttention(dim, num_heads, dropout, rng=rng, **kwargs)
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
            See `MultiHeadAttention.forward`.

        Returns
        -------
        Tensor, shape (batch, time, dim)
        """
        x = _added(self, x, self.attention_norm, lambda x: self.attention(x, mask=mask, causal=causal))
        return _added(self, x, self.feed_forward_norm, self.feed_forward)


class TransformerDecoderLayer(Module):
    """Self-attention, then attention to another sequence (the memory), then two linear maps at each place.

    Parameters are those of `TransformerEncoderLayer`.
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
        self.attention = MultiHeadAttention(dim, num_heads, dropout, rng=rng, **kwargs)
        self.attention_norm = LayerNorm1d(dim, **kwargs)
        self.memory_attention = MultiHeadAttention(dim, num_heads, dropout, rng=rng, **kwargs)
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
            Most often what an encoder made.
        mask, causal
            Of the self-attention; see `MultiHeadAttention.forward`.
        memory_mask
            The mask of the attention to the memory.

        Returns
        -------
        Tensor, shape (batch, time, dim)
        """
        x = _added(self, x, self.attention_norm, lambda x: self.attention(x, mask=mask, causal=causal))
        x = _added(self, x, self.memory_norm, lambda x: self.memory_attention(x, memory, mask=memory_mask))
        return _added(self, x, self.feed_forward_norm, self.feed_forward)


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
    """x and what `f` makes of it, normalized before or after."""
    if layer.pre_norm:
        return x + layer.dropout(f(norm(x)))
    return norm(x + layer.dropout(f(x)))


class SinusoidalEncoding(Module):
    """Adds to each place a vector of sines and cosines that tells where it is.

    At place t, feature 2i is sin(t / 10000 ** (2i / dim)), and feature 2i + 1 the cosine of the same angle.

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
        return _with_places(self, x)


class LearnedEncoding(Module):
    """Adds to each place a vector of its own, which is learned.

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
        return _with_places(self, x)


def _with_places(module: SinusoidalEncoding | LearnedEncoding, x: Tensor) -> Tensor:
    """x plus the first rows of the table, one for each place."""
    if x.ndim < 2 or x.shape[-1] != module.dim or x.shape[-2] > module.max_length:
        raise ValueError(
            f"{type(module).__name__}: needs shape (batch, time, {module.dim}) with at most "
            f"{module.max_length} times, got {x.shape}"
        )
    return x + module.table[: x.shape[-2]]
