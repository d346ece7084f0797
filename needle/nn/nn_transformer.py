"""Attention and transformers, for sequences of shape (batch, time, features).

Vaswani et al. (2017), "Attention is all you need". From top to bottom: attention itself, which has nothing
to learn; the layer that learns what to ask it; a layer of a language model, and a stack of them. Layers that
attend to another sequence are in `nn_encoder_decoder`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import init, ops
from ..autograd import Tensor
from ..backend_ndarray.device import generator
from .module import Module, check_sizes
from .nn_basic import Dropout, Identity, LayerNorm1d, Linear, ReLU, Sequential
from .nn_sequence import Embedding

#: What is added to the score of a later position. It is finite: a query that sees nothing takes a plain mean.
LATER = -float(np.finfo(np.float32).max)


def causal_mask(length: int, device=None, keys: int | None = None) -> Tensor:
    """True where a query would attend to a later position. A model that predicts must not see what follows.

    Parameters
    ----------
    length : int
        Number of queries.
    device : BackendDevice, optional
    keys : int, optional
        Number of keys; the last query stands at the position of the last key. Default:
        `length`.

    Returns
    -------
    Tensor of bool, shape (length, keys)
        True above the diagonal, which ends in the lower right corner.
    """
    keys = length if keys is None else keys
    later = np.arange(keys) > np.arange(length)[:, None] + (keys - length)
    return Tensor(later, device=device, dtype="bool", requires_grad=False)


class MultiHeadAttention(Module):
    """Each query takes a mean of all values, weighted by how well their keys match it.

    In every head, softmax(q @ k.T / sqrt(dim) + mask) @ v: the products of a query with all keys are scores,
    and the softmax turns them into weights that sum to 1. There is nothing to learn here: `AttentionLayer`
    learns q, k and v.

    Parameters
    ----------
    dropout : float
        The probability with which a weight becomes 0 in training.
    causal : bool
        Whether later positions are hidden: -float32 max is added to their scores. If there are more keys than
        queries, the queries are the last positions.
    device, dtype
        As all modules take them; this one has no parameters.
    rng : numpy.random.Generator or int, optional
        Where dropout comes from; an int is the seed of a generator. Default: NumPy's global state.
    """

    def __init__(self, *, dropout: float = 0.0, causal: bool = False, device=None, dtype="float32", rng=None):
        self.causal = causal
        self.dropout = Dropout(dropout, rng)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Any = None, causal: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """
        Parameters
        ----------
        q : Tensor, shape (batch, heads, time, dim)
        k, v : Tensor, shape (batch, heads, key_time, dim)
        mask : Tensor or array, optional
            Booleans are True where a key is hidden. Floats are added to the scores. The shape
            is (time, key_time), (batch, time, key_time) or (batch, heads, time, key_time); all sizes but the
            last may be 1, so that (batch, 1, key_time) hides padding. Where a mask hides everything from a
            key, it gets NaN.
        causal : bool, optional
            Default: what the module was made with.

        Returns
        -------
        result : Tensor, shape (batch, heads, time, dim)
        probs : Tensor, shape (batch, heads, time, key_time)
            The weights, after dropout.

        Raises
        ------
        ValueError
            If the shapes do not fit.
        TypeError
            If the mask holds neither booleans nor floats.
        """
        shapes = [x.shape for x in (q, k, v)]
        fit = all(x.ndim == 4 and x.shape[:2] == q.shape[:2] for x in (q, k, v))
        if not fit or q.shape[3] != k.shape[3] or k.shape[2] != v.shape[2]:
            raise ValueError(
                "MultiHeadAttention: needs q of shape (batch, heads, time, dim), k and v of shape (batch, "
                f"heads, key_time, dim), got {', '.join(map(str, shapes))}"
            )
        time, dim = q.shape[2:]
        scores = (q / math.sqrt(dim)) @ k.transpose()
        if mask is not None:
            scores = scores + additive(mask, scores, hidden=-math.inf)
        if self.causal if causal is None else causal:
            scores = scores + additive(causal_mask(time, scores.device, k.shape[2]), scores, hidden=LATER)
        probs = self.dropout(ops.softmax(scores))
        return probs @ v, probs


def additive(mask: Any, scores: Tensor, hidden: float) -> Tensor:
    """What to add to scores of shape (batch, heads, time, key_time) for a mask: `hidden` where it is True."""
    if not isinstance(mask, Tensor):
        mask = np.asarray(mask)
        mask = Tensor(mask, device=scores.device, dtype=mask.dtype, requires_grad=False)
    if mask.dtype.kind not in "bf":
        raise TypeError(
            f"MultiHeadAttention: a mask holds booleans (True hides) or floats (added), got {mask.dtype}"
        )
    if mask.ndim not in (2, 3, 4):
        raise ValueError(
            "MultiHeadAttention: a mask has shape (time, key_time), (batch, time, key_time) or (batch, "
            f"heads, time, key_time), got {mask.shape}"
        )
    if mask.dtype.kind == "b":
        values = [init.constant(c=c, device=scores.device, dtype=scores.dtype) for c in (hidden, 0.0)]
        mask = ops.where(mask, *values)
    if mask.ndim == 3:
        batch, time, key_time = mask.shape
        mask = mask.reshape((batch, 1, time, key_time))
    pairs = zip(reversed(mask.shape), reversed(scores.shape), strict=False)
    if not all(size in (1, there) for size, there in pairs):  # it may be repeated, the scores may not
        raise ValueError(
            f"MultiHeadAttention: a mask of shape {mask.shape} does not fit scores of shape {scores.shape}: "
            "(batch, heads, time, key_time)"
        )
    return mask.astype(scores.dtype)


class AttentionLayer(Module):
    """Attention with linear maps before and after it, for queries, keys and values.

    The features of each position are normalized and mapped to queries, keys and values of all heads. The
    results of the heads, side by side, go through another linear map.

    Parameters
    ----------
    q_features : int
        Features of the queries.
    num_head, dim_head : int
        How many heads there are, and the size of their queries, keys and values.
    k_features, v_features : int, optional
        Features of what gives the keys and the values. Default: k_features is q_features, v_features is
        k_features.
    out_features : int, optional
        Default: q_features.
    dropout, causal
        As of `MultiHeadAttention`.
    device, dtype
        Of the parameters.
    prenorm : bool
        Whether the features are normalized first.
    bias : bool
        Whether the linear maps have a bias.
    rng : numpy.random.Generator or int, optional
        Where initial weights and dropout come from; an int is the seed of a generator. Default: NumPy's
        global state.

    Attributes
    ----------
    prenorm_q, prenorm_k, prenorm_v : LayerNorm1d
        Without `prenorm`, Identity.
    q_projection, k_projection, v_projection : Linear
        To num_head * dim_head features; the first dim_head are those of the first head.
    attn : MultiHeadAttention
    out_projection : Linear
        From num_head * dim_head features.
    """

    def __init__(
        self,
        q_features: int,
        num_head: int,
        dim_head: int,
        *,
        k_features: int | None = None,
        v_features: int | None = None,
        out_features: int | None = None,
        dropout: float = 0.0,
        causal: bool = True,
        device=None,
        dtype="float32",
        prenorm: bool = True,
        bias: bool = False,
        rng=None,
    ):
        check_sizes(self, q_features=q_features, num_head=num_head, dim_head=dim_head)
        k_features = q_features if k_features is None else k_features
        v_features = k_features if v_features is None else v_features
        out_features = q_features if out_features is None else out_features
        self.num_head = num_head
        self.dim_head = dim_head
        rng = generator(rng)
        where = {"device": device, "dtype": dtype}

        def norm(features: int) -> Module:
            return LayerNorm1d(features, **where) if prenorm else Identity()

        self.prenorm_q = norm(q_features)
        self.prenorm_k = norm(k_features)
        self.prenorm_v = norm(v_features)
        inner = num_head * dim_head
        self.q_projection = Linear(q_features, inner, bias, rng=rng, **where)
        self.k_projection = Linear(k_features, inner, bias, rng=rng, **where)
        self.v_projection = Linear(v_features, inner, bias, rng=rng, **where)
        self.attn = MultiHeadAttention(dropout=dropout, causal=causal, rng=rng, **where)
        self.out_projection = Linear(inner, out_features, bias, rng=rng, **where)

    def forward(
        self,
        q: Tensor,
        k: Tensor | None = None,
        v: Tensor | None = None,
        mask: Any = None,
        causal: bool | None = None,
        return_probs: bool = False,
    ) -> Any:
        """
        Parameters
        ----------
        q : Tensor, shape (batch, time, q_features)
            The queries' positions.
        k : Tensor, shape (batch, key_time, k_features), optional
            The positions that they attend to. Default: q.
        v : Tensor, shape (batch, key_time, v_features), optional
            What they hand over. Default: k.
        mask, causal
            See `MultiHeadAttention.forward`.
        return_probs : bool
            Whether the weights of attention are returned too.

        Returns
        -------
        Tensor, shape (batch, time, out_features)
            With `return_probs` a tuple of it and the weights after dropout, shape (batch, num_head, time,
            key_time).
        """
        k = q if k is None else k
        v = k if v is None else v
        for name, x, to in (
            ("q", q, self.q_projection),
            ("k", k, self.k_projection),
            ("v", v, self.v_projection),
        ):
            if x.ndim != 3 or x.shape[2] != to.in_features:
                raise ValueError(
                    f"AttentionLayer: {name} needs shape (batch, time, {to.in_features}), got {x.shape}"
                )
        if k.shape[:2] != v.shape[:2] or k.shape[0] != q.shape[0]:
            raise ValueError(
                "AttentionLayer: q, k and v need one batch size, k and v the same number of time steps; got "
                f"{q.shape}, {k.shape} and {v.shape}"
            )
        result, probs = self.attn(
            self._heads(self.q_projection(self.prenorm_q(q))),
            self._heads(self.k_projection(self.prenorm_k(k))),
            self._heads(self.v_projection(self.prenorm_v(v))),
            mask,
            causal,
        )
        batch, time, _ = q.shape
        side_by_side = result.permute((0, 2, 1, 3)).reshape((batch, time, self.num_head * self.dim_head))
        out = self.out_projection(side_by_side)
        return (out, probs) if return_probs else out

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, time, num_head * dim_head) as (batch, num_head, time, dim_head)."""
        batch, time, _ = x.shape
        return x.reshape((batch, time, self.num_head, self.dim_head)).permute((0, 2, 1, 3))


class TransformerLayer(Module):
    """Attention, then two linear maps at each position. Both parts add to their input.

    x + Dropout(AttentionLayer(x)), then x + Dropout(Linear(Dropout(ReLU(Linear(LayerNorm1d(x)))))).

    Parameters
    ----------
    q_features : int
        Features at each position, of the input and the output.
    num_head, dim_head : int
        As of `AttentionLayer`.
    hidden_size : int
        Features between the two linear maps.
    dropout : float
        The probability of a zero: in the weights of attention, between the two maps, and in what a part adds.
    causal : bool
        Whether later positions are hidden.
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where initial weights and dropout come from; an int is the seed of a generator. Default: NumPy's
        global state.
    """

    def __init__(
        self,
        q_features: int,
        num_head: int,
        dim_head: int,
        hidden_size: int,
        *,
        dropout: float = 0.0,
        causal: bool = True,
        device=None,
        dtype="float32",
        rng=None,
    ):
        rng = generator(rng)
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        self.attention = AttentionLayer(
            q_features, num_head, dim_head, dropout=dropout, causal=causal, rng=rng, **where
        )
        self.feed_forward = Sequential(
            LayerNorm1d(q_features, **where),
            Linear(q_features, hidden_size, rng=rng, **where),
            ReLU(),
            Dropout(dropout, rng),
            Linear(hidden_size, q_features, rng=rng, **where),
        )
        self.dropout = Dropout(dropout, rng)

    def forward(self, x: Tensor) -> Tensor:
        """From shape (batch, time, q_features) to the same shape."""
        x = x + self.dropout(self.attention(x))
        return x + self.dropout(self.feed_forward(x))


class Transformer(Module):
    """A stack of `TransformerLayer`, after a learned vector for each position is added to the input.

    It takes and returns the same as `RNN`, so you can swap one for the other. It has no state.

    Parameters
    ----------
    embedding_size : int
        Features at each position, of the input and the output.
    hidden_size : int
        Features between the two linear maps of a layer.
    num_layers : int
    num_head, dim_head, dropout, causal
        As of `TransformerLayer`.
    device, dtype
        Of the parameters.
    batch_first : bool
        Whether sequences have shape (batch, time, embedding_size) and not (time, batch, embedding_size).
    sequence_len : int
        The longest sequence.
    rng : numpy.random.Generator or int, optional
        Where initial weights and dropout come from; an int is the seed of a generator. Default: NumPy's
        global state.

    Attributes
    ----------
    embedding : Embedding
        The learned vectors, for the positions 0 to sequence_len - 1.
    layers : list of TransformerLayer
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        num_layers: int,
        *,
        num_head: int = 8,
        dim_head: int = 32,
        dropout: float = 0.0,
        causal: bool = True,
        device=None,
        dtype="float32",
        batch_first: bool = False,
        sequence_len: int = 2048,
        rng=None,
    ):
        rng = generator(rng)
        where: dict[str, Any] = {"device": device, "dtype": dtype, "rng": rng}
        self.batch_first = batch_first
        self.sequence_len = sequence_len
        self.embedding = Embedding(sequence_len, embedding_size, **where)
        self.layers = [
            TransformerLayer(
                embedding_size, num_head, dim_head, hidden_size, dropout=dropout, causal=causal, **where
            )
            for _ in range(num_layers)
        ]

    def forward(self, x: Tensor, h: Any = None) -> tuple[Tensor, Tensor]:
        """
        Parameters
        ----------
        x : Tensor, shape (time, batch, embedding_size)
            With `batch_first` (batch, time, embedding_size).
        h
            Not used.

        Returns
        -------
        x : Tensor
            The output of the last layer, in the shape of the input.
        h : Tensor
            Zeros, in the same shape.

        Raises
        ------
        ValueError
            If the shape is another, or the sequence longer than `sequence_len`.
        """
        time_axis = 1 if self.batch_first else 0
        features = self.embedding.embedding_dim
        if x.ndim != 3 or x.shape[2] != features or x.shape[time_axis] > self.sequence_len:
            needed = "batch, time" if self.batch_first else "time, batch"
            raise ValueError(
                f"Transformer: needs shape ({needed}, {features}) with at most {self.sequence_len} time "
                f"steps, got {x.shape}"
            )
        if not self.batch_first:
            x = x.permute((1, 0, 2))
        x = x + self.embedding(np.arange(x.shape[1]))
        for layer in self.layers:
            x = layer(x)
        if not self.batch_first:
            x = x.permute((1, 0, 2))
        return x, init.zeros_like(x)
