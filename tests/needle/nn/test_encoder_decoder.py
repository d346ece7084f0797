"""Encoder and decoder layers, their attention with masks, places in a sequence, and what they refuse."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor

DEVICES = [d for d in ndl.all_devices() if d.enabled()]


def random(*shape, seed=0, **kwargs):
    return Tensor(np.random.default_rng(seed).normal(size=shape), **kwargs)


def test_the_parameters_are_those_of_linear_modules():
    layer = nn.TransformerDecoderLayer(4, 2)
    shapes = {name: tensor.shape for name, tensor in layer.state_dict().items()}
    linear = {"weight": (4, 4), "bias": (1, 4)}
    expected = {}
    for attention, norm in (("attention", "attention_norm"), ("memory_attention", "memory_norm")):
        for part in ("q", "k", "v", "out"):
            expected |= {f"{attention}.{part}_projection.{name}": shape for name, shape in linear.items()}
        expected |= {f"{norm}.weight": (4,), f"{norm}.bias": (4,)}
    expected |= {"feed_forward.modules.0.weight": (4, 16), "feed_forward.modules.0.bias": (1, 16)}
    expected |= {"feed_forward.modules.3.weight": (16, 4), "feed_forward.modules.3.bias": (1, 4)}
    expected |= {"feed_forward_norm.weight": (4,), "feed_forward_norm.bias": (4,)}
    assert shapes == expected
    assert list(shapes) == list(expected)


def attention_of(**kwargs):
    """The attention of an encoder layer, with two heads of two features."""
    return nn.TransformerEncoderLayer(4, 2, **kwargs).attention


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_are_shares_of_what_may_be_seen(dtype, device, mode):
    attention = attention_of(dtype=dtype, device=device)
    x = random(2, 5, 4, dtype=dtype, device=device)
    out, weights = attention(x, causal=True, return_probs=True)
    assert (out.shape, weights.shape) == ((2, 5, 4), (2, 2, 5, 5))
    assert out.dtype == weights.dtype == dtype
    assert out.device == weights.device == device
    np.testing.assert_allclose(weights.numpy().sum(-1), np.ones((2, 2, 5)), rtol=1e-6)
    np.testing.assert_array_equal(np.triu(weights.numpy(), 1), np.zeros((2, 2, 5, 5)))
    assert (np.tril(weights.numpy() > 0).sum((-1, -2)) == 15).all()
    out.sum().backward()
    assert all(np.isfinite(p.grad.numpy()).all() for p in attention.parameters())
    np.testing.assert_array_equal(attention(x, causal=True).numpy(), out.numpy())


def test_no_place_learns_of_later_ones(mode):
    layer = nn.TransformerEncoderLayer(4, 2, dtype="float64")
    x = random(1, 5, 4, dtype="float64")
    changed = x.numpy()
    changed[:, 3:] += 7
    before, after = (layer(Tensor(a, dtype="float64"), causal=True).numpy() for a in (x.numpy(), changed))
    np.testing.assert_allclose(after[:, :3], before[:, :3], rtol=1e-12)
    assert (np.abs(after[:, 3:] - before[:, 3:]) > 1e-3).any(axis=-1).all()


HIDDEN = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]], dtype=bool)


@pytest.mark.parametrize(
    "mask",
    [
        HIDDEN,
        np.broadcast_to(HIDDEN, (2, 4, 3)),
        np.broadcast_to(HIDDEN, (2, 1, 4, 3)),
        np.where(HIDDEN, -np.inf, 0),
        Tensor(HIDDEN, dtype="bool"),
        Tensor(np.where(HIDDEN, -math.inf, 0.0), dtype="float32"),
        HIDDEN.tolist(),
    ],
    ids=["2 axes", "3 axes", "4 axes", "added", "Tensor", "added Tensor", "list"],
)
def test_masks_of_all_kinds_hide_the_same(mask, mode):
    attention = attention_of(dtype="float64")
    q, k = random(2, 4, 4, dtype="float64"), random(2, 3, 4, seed=1, dtype="float64")
    _, free = attention(q, k, return_probs=True)
    _, weights = attention(q, k, mask=mask, return_probs=True)
    seen = np.where(HIDDEN, 0, free.numpy())
    assert weights.dtype == "float64"
    np.testing.assert_allclose(weights.numpy(), seen / seen.sum(-1, keepdims=True), rtol=1e-12)


def test_padding_is_hidden_for_each_example():
    attention = nn.TransformerEncoderLayer(4, 1).attention
    padding = np.array([[False, False, True], [False, True, True]])
    _, weights = attention(random(2, 3, 4), mask=padding[:, None, :], return_probs=True)
    np.testing.assert_array_equal(weights.numpy() == 0, np.broadcast_to(padding[:, None, None], (2, 1, 3, 3)))


def test_a_place_that_may_look_at_nothing_is_not_a_number():
    attention = nn.TransformerEncoderLayer(4, 1).attention
    mask = np.array([[True, True], [False, True]])
    out = attention(random(1, 2, 4), mask=mask).numpy()
    assert np.isnan(out[0, 0]).all()
    assert np.isfinite(out[0, 1]).all()


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, r"q needs shape \(batch, time, 4\), got \(2, 4\)", {"q": (2, 4)}),
        (ValueError, r"k needs shape \(batch, time, 4\), got \(2, 3, 5\)", {"k": (2, 3, 5)}),
        (ValueError, r"one batch.*got \(2, 3, 4\), \(1, 3, 4\) and \(1, 3, 4\)", {"k": (1, 3, 4)}),
        (ValueError, r"the same number of time steps; got", {"v": (2, 2, 4)}),
        (ValueError, r"a mask of shape \(2, 2\) does not fit .* \(2, 2, 3, 3\)", {"mask": HIDDEN[:2, :2]}),
        (ValueError, r"a mask has shape .*, got \(3,\)", {"mask": HIDDEN[0]}),
        (TypeError, "booleans .* or floats .*, got int64", {"mask": np.ones((3, 3), dtype="int64")}),
    ],
)  # fmt: skip
def test_attention_to_what_does_not_fit(error, message, arguments, mode):
    attention = attention_of()
    shapes = {"q": (2, 3, 4)} | arguments
    given = {name: random(*x) if isinstance(x, tuple) else x for name, x in shapes.items()}
    with pytest.raises(error, match=message):
        attention(**given)


def test_heads_share_the_features():
    with pytest.raises(ValueError, match="3 heads cannot share 4 features equally"):
        nn.TransformerEncoderLayer(4, 3)
    with pytest.raises(ValueError, match="num_heads must be a whole number of at least 1, got 0"):
        nn.TransformerDecoderLayer(4, 0)


@pytest.mark.parametrize("shape", [(2, 1, 3), (1, 3, 3, 3), (4, 3)])
def test_a_mask_does_not_enlarge_the_scores(shape):
    for layer_input in (random(1, 3, 4), random(1, 1, 4)):
        with pytest.raises(ValueError, match=r"a mask of shape .* does not fit scores of shape \(1, 2, "):
            attention_of()(layer_input, mask=np.zeros(shape, bool))


def test_dropout_is_in_every_part_and_only_in_training():
    x = random(2, 3, 4)
    for layer, inputs in [
        (attention_of(dropout=0.5), (x,)),
        (nn.TransformerEncoderLayer(4, 2, dropout=0.5), (x,)),
        (nn.TransformerDecoderLayer(4, 2, dropout=0.5), (x, x)),
    ]:
        first, second = layer(*inputs).numpy(), layer(*inputs).numpy()
        assert (first != second).any()
        layer.eval()
        first, second = layer(*inputs).numpy(), layer(*inputs).numpy()
        np.testing.assert_array_equal(first, second)
    parts = [
        m.p for m in nn.TransformerEncoderLayer(4, 2, dropout=0.25)._children() if isinstance(m, nn.Dropout)
    ]
    assert parts == [0.25] * 3


def test_a_generator_makes_layers_and_dropout_repeatable():
    def outputs(seed):
        layer = nn.TransformerEncoderLayer(4, 2, dropout=0.5, rng=np.random.default_rng(seed))
        return [layer(random(2, 3, 4)).numpy() for _ in range(2)]

    np.random.seed(0)
    first = outputs(5)
    after = np.random.rand()
    np.testing.assert_array_equal(outputs(5), first)
    assert (outputs(6)[0] != first[0]).any()
    np.random.seed(0)
    assert np.random.rand() == after


def test_the_layer_of_a_language_model_learns(mode):
    """To say which number comes next in 0, 1, 2, 3, 0, 1 …: a few steps are enough."""
    rng = np.random.default_rng(0)
    embedding = nn.Embedding(4, 8, rng=rng)
    places = nn.LearnedEncoding(6, 8, rng=rng)
    layer, head = nn.TransformerEncoderLayer(8, 2, rng=rng), nn.Linear(8, 4, rng=rng)
    model = [embedding, places, layer, head]
    loss_of = nn.CrossEntropyLoss()
    optimizer = ndl.optim.SGD([p for m in model for p in m.parameters()], lr=0.1)
    rows = (np.arange(6) + np.arange(4)[:, None]) % 4
    losses = []
    for _ in range(20):
        logits = head(layer(places(embedding(rows)), causal=True))
        loss = loss_of(logits, (rows + 1) % 4)
        loss.backward(create_graph=False)
        optimizer.step()
        losses.append(loss.numpy().item())
    assert losses[-1] < 0.2 < 1 < losses[0]


# Places


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dim", [6, 5])
def test_sines_and_cosines_of_places(dim, dtype, device, mode):
    layer = nn.SinusoidalEncoding(7, dim, dtype=dtype, device=device)
    assert layer.parameters() == []
    table = [
        [(math.cos if i % 2 else math.sin)(t / 10000 ** ((i - i % 2) / dim)) for i in range(dim)]
        for t in range(7)
    ]
    assert list(layer.state_dict()) == ["table"]
    assert (layer.table.dtype, layer.table.device) == (dtype, device)
    np.testing.assert_allclose(layer.table.numpy(), table, rtol=1e-6, atol=1e-7)
    x = random(2, 4, dim, dtype=dtype, device=device)
    np.testing.assert_allclose(layer(x).numpy(), x.numpy() + table[:4], rtol=1e-5, atol=1e-6)


def test_learned_places_learn_where_they_were_used(mode):
    layer = nn.LearnedEncoding(5, 3, rng=np.random.default_rng(0))
    assert layer.parameters() == [layer.table]
    assert layer.table.shape == (5, 3)
    assert 0 < np.abs(layer.table.numpy()).max() < 0.1
    x = random(2, 4, 3)
    out = layer(x)
    np.testing.assert_allclose(out.numpy(), x.numpy() + layer.table.numpy()[:4], rtol=1e-6)
    out.sum().backward()
    np.testing.assert_array_equal(layer.table.grad.numpy(), [[2] * 3] * 4 + [[0] * 3])


@pytest.mark.parametrize("make", [nn.SinusoidalEncoding, nn.LearnedEncoding])
def test_places_beyond_the_longest_sequence(make):
    needed = re.escape(f"{make.__name__}: needs shape (batch, time, 3) with at most 5 time steps")
    for shape in [(1, 6, 3), (1, 5, 1), (3,)]:
        with pytest.raises(ValueError, match=f"{needed}, got {re.escape(str(shape))}"):
            make(5, 3)(random(*shape))
