"""Attention and the transformer: results, random draws, masks, dropout, gradients, and what they refuse."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor
from needle.gradcheck import gradcheck

DEVICES = [d for d in ndl.all_devices() if d.enabled()]
LATER = np.finfo("float32").max


def random(*shape, seed=0, **kwargs):
    return Tensor(np.random.default_rng(seed).normal(size=shape), **kwargs)


def attended(q, k, v, causal):
    """Attention place by place: (result, weights) in float64."""
    result, weights = np.zeros(q.shape[:3] + v.shape[3:]), np.zeros(q.shape[:3] + k.shape[2:3])
    offset = k.shape[2] - q.shape[2]
    for at in np.ndindex(*q.shape[:3]):
        keys = k[at[:2]]
        scores = keys @ q[at] / np.sqrt(q.shape[3])
        if causal:
            scores[max(at[2] + offset + 1, 0) :] -= LATER
        powers = np.exp(scores - scores.max())
        weights[at] = powers / powers.sum()
        result[at] = weights[at] @ v[at[:2]]
    return result, weights


def normalized(x):
    """LayerNorm1d as it begins."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def drawn_linear(rows, columns):
    bound = np.sqrt(6 / rows)
    return np.random.rand(rows, columns) * 2 * bound - bound


def drawn_bias(columns):
    bound = np.sqrt(6 / columns)
    return np.random.rand(1, columns) * 2 * bound - bound


def dropped(x, p):
    """Dropout that draws from NumPy's global state, nothing for p = 0."""
    return x * (np.random.rand(*x.shape) <= 1 - p) / (1 - p) if p else x


# Attention


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("time", "key_time"), [(4, 4), (3, 5), (5, 3), (1, 4)])
def test_attention_is_what_it_is_place_by_place(time, key_time, causal, device, mode):
    q = random(2, 3, time, 4, device=device, dtype="float64")
    k, v = (random(2, 3, key_time, 4, seed=s, device=device, dtype="float64") for s in (1, 2))
    attention = nn.MultiHeadAttention(causal=causal, device=device)
    assert attention.parameters() == []
    result, probs = attention(q, k, v)
    assert (result.dtype, probs.dtype, probs.device) == ("float64", "float64", device)
    expected = attended(*[x.numpy() for x in (q, k, v)], causal)
    np.testing.assert_allclose(result.numpy(), expected[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(probs.numpy(), expected[1], rtol=1e-10, atol=1e-12)


def test_later_places_get_no_weight_and_a_place_that_sees_nothing_takes_the_mean():
    x = random(1, 1, 3, 4)
    _, probs = nn.MultiHeadAttention(causal=True)(x, x, x)
    assert (np.triu(probs.numpy()[0, 0], 1) == 0).all()
    k = random(1, 1, 2, 4, seed=1)
    result, probs = nn.MultiHeadAttention(causal=True)(x, k, k)  # the first query comes before both keys
    np.testing.assert_allclose(probs.numpy()[0, 0], [[0.5, 0.5], [1, 0], probs.numpy()[0, 0, 2]])
    np.testing.assert_allclose(result.numpy()[0, 0, 0], k.numpy()[0, 0].mean(0), rtol=1e-6)


def test_the_mask_of_what_comes_later():
    mask = nn.causal_mask(3)
    assert mask.dtype == bool
    assert not mask.requires_grad
    np.testing.assert_array_equal(mask.numpy(), [[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    assert nn.causal_mask(0).shape == (0, 0)
    np.testing.assert_array_equal(nn.causal_mask(2, keys=4).numpy(), [[0, 0, 0, 1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(nn.causal_mask(3, keys=1).numpy(), [[1], [1], [0]])


def test_dropout_of_the_weights_is_drawn_in_their_shape():
    q, k, v = (random(2, 3, 4, 5, seed=s) for s in range(3))
    attention = nn.MultiHeadAttention(dropout=0.25)
    np.random.seed(7)
    result, probs = attention(q, k, v)
    after = np.random.rand()
    np.random.seed(7)
    _, weights = attended(*[x.numpy() for x in (q, k, v)], causal=False)
    expected = dropped(weights, 0.25)
    assert np.random.rand() == after
    np.testing.assert_allclose(probs.numpy(), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(result.numpy(), expected @ v.numpy(), rtol=1e-4, atol=1e-6)
    attention.eval()
    np.random.seed(7)
    np.testing.assert_allclose(attention(q, k, v)[1].numpy(), weights, rtol=1e-5)
    assert np.random.rand() == np.random.RandomState(7).rand()  # nothing was drawn


def test_dropout_keeps_the_mean_of_the_weights():
    x = random(4, 8, 32, 4)
    _, probs = nn.MultiHeadAttention(dropout=0.25)(x, x, x)
    zeros = (probs.numpy() == 0).mean()
    assert abs(zeros - 0.25) < 0.01
    assert abs(probs.numpy().sum(-1).mean() - 1) < 0.01


@pytest.mark.parametrize(
    "shapes",
    [
        [(3, 4, 5)] * 3,
        [(2, 3, 4, 5), (2, 3, 4, 6), (2, 3, 4, 6)],
        [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 7, 5)],
        [(2, 3, 4, 5), (2, 1, 4, 5), (2, 1, 4, 5)],
        [(2, 3, 4, 5), (1, 3, 4, 5), (2, 3, 4, 5)],
    ],
)
def test_attention_names_the_shapes_that_do_not_fit(shapes):
    got = re.escape(", ".join(map(str, shapes)))
    with pytest.raises(ValueError, match=rf"MultiHeadAttention: needs q of shape .*, got {got}"):
        nn.MultiHeadAttention()(*[random(*shape) for shape in shapes])


# The layer of attention


def drawn_attention(x, heads, size, dropout, causal, out_features=None):
    """What AttentionLayer draws and computes for x of shape (batch, time, features)."""
    batch, time, features = x.shape
    maps = [drawn_linear(features, heads * size) for _ in range(3)]
    out = drawn_linear(heads * size, out_features or features)

    def result(x):
        q, k, v = ((normalized(x) @ w).reshape(batch, time, heads, size).transpose(0, 2, 1, 3) for w in maps)
        _, weights = attended(q, k, v, causal)
        gathered = dropped(weights, dropout) @ v
        return gathered.transpose(0, 2, 1, 3).reshape(batch, time, heads * size) @ out

    return result


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("causal", [False, True])
def test_the_attention_layers_draws_and_result(causal, dropout, device):
    x = random(2, 5, 6, device=device)
    np.random.seed(3)
    layer = nn.AttentionLayer(6, 2, 4, causal=causal, dropout=dropout, out_features=7, device=device)
    result = layer(x)
    after = np.random.rand()
    np.random.seed(3)
    expected = drawn_attention(x.numpy(), 2, 4, dropout, causal, out_features=7)(x.numpy())
    assert np.random.rand() == after
    assert (result.shape, result.device) == ((2, 5, 7), device)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_the_parameters_of_an_attention_layer():
    layer = nn.AttentionLayer(6, 2, 4, k_features=5, v_features=3, out_features=7)
    shapes = {name: p.shape for name, p in layer.named_parameters()}
    expected = {}
    for name, features in (("q", 6), ("k", 5), ("v", 3)):
        expected |= {f"prenorm_{name}.weight": (features,), f"prenorm_{name}.bias": (features,)}
    expected |= {
        f"{name}_projection.weight": (features, 8) for name, features in (("q", 6), ("k", 5), ("v", 3))
    }
    expected |= {"out_projection.weight": (8, 7)}
    assert shapes == expected
    assert isinstance(layer.attn, nn.MultiHeadAttention)
    assert layer.attn.causal
    q, k, v = random(2, 3, 6), random(2, 4, 5), random(2, 4, 3)
    assert layer(q, k, v).shape == (2, 3, 7)
    assert len(nn.AttentionLayer(6, 2, 4, bias=True).parameters()) == 14
    assert len(nn.AttentionLayer(6, 2, 4, prenorm=False).parameters()) == 4
    same_values = nn.AttentionLayer(6, 2, 4, k_features=5)
    np.testing.assert_array_equal(same_values(q, k).numpy(), same_values(q, k, k).numpy())
    out, probs = same_values(q, k, return_probs=True)
    np.testing.assert_array_equal(out.numpy(), same_values(q, k).numpy())
    assert probs.shape == (2, 2, 3, 4)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([(2, 6)], r"q needs shape (batch, time, 6), got (2, 6)"),
        ([(2, 3, 5)], r"q needs shape (batch, time, 6), got (2, 3, 5)"),
        ([(2, 3, 6), (2, 3, 5)], r"k needs shape (batch, time, 6), got (2, 3, 5)"),
        ([(2, 3, 6), (1, 3, 6)], r"got (2, 3, 6), (1, 3, 6) and (1, 3, 6)"),
        (
            [(2, 3, 6), (2, 3, 6), (2, 4, 6)],
            r"k and v the same number of time steps; got (2, 3, 6), (2, 3, 6) and (2, 4, 6)",
        ),
    ],
)
def test_the_attention_layer_names_the_shape_that_does_not_fit(shapes, words):
    with pytest.raises(ValueError, match=f"AttentionLayer: .*{re.escape(words)}"):
        nn.AttentionLayer(6, 2, 4)(*[random(*shape) for shape in shapes])


# The transformer


def drawn_layer(x, heads, size, hidden, dropout, causal):
    """What TransformerLayer draws, as a function that computes it."""
    features = x.shape[-1]
    attention = drawn_attention(x, heads, size, dropout, causal)
    w1, b1 = drawn_linear(features, hidden), drawn_bias(hidden)
    w2, b2 = drawn_linear(hidden, features), drawn_bias(features)

    def result(x):
        x = x + dropped(attention(x), dropout)
        inner = dropped(np.maximum(normalized(x) @ w1 + b1, 0), dropout)
        return x + dropped(inner @ w2 + b2, dropout)

    return result


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("causal", [False, True])
def test_the_transformer_layers_draws_and_result(causal, dropout, mode):
    x = random(2, 5, 6)
    np.random.seed(3)
    layer = nn.TransformerLayer(6, 2, 4, 7, causal=causal, dropout=dropout)
    result = layer(x).numpy()
    after = np.random.rand()
    np.random.seed(3)
    expected = drawn_layer(x.numpy(), 2, 4, 7, dropout, causal)(x.numpy())
    assert np.random.rand() == after
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_the_transformers_draws_and_result(dropout, batch_first):
    x = random(2, 5, 6).numpy()
    np.random.seed(3)
    options = {"num_head": 2, "dim_head": 4, "dropout": dropout, "batch_first": batch_first}
    model = nn.Transformer(6, 7, 2, sequence_len=9, **options)
    given = x if batch_first else x.transpose(1, 0, 2)
    result, h = model(Tensor(given))
    after = np.random.rand()
    np.random.seed(3)
    places = np.random.randn(9, 6)
    layers = [drawn_layer(x, 2, 4, 7, dropout, True) for _ in range(2)]
    expected = x + places[:5]
    for layer in layers:
        expected = layer(expected)
    assert np.random.rand() == after
    assert result.shape == h.shape == given.shape
    assert (h.numpy() == 0).all()
    result = result.numpy() if batch_first else result.numpy().transpose(1, 0, 2)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=2e-5)
    again, _ = model.eval()(Tensor(given), h)  # a state is taken, and not used
    assert again.shape == given.shape


def test_defaults_and_keywords_are_the_courses():
    def defaults(cls):
        parameters = inspect.signature(cls).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "rng"}

    where = {"device": None, "dtype": "float32"}
    assert defaults(nn.MultiHeadAttention) == {"dropout": 0.0, "causal": False} | where
    attention = {"k_features": None, "v_features": None, "out_features": None, "dropout": 0.0, "causal": True}
    assert attention.items() <= defaults(nn.AttentionLayer).items()
    assert defaults(nn.TransformerLayer) == {"dropout": 0.0, "causal": True} | where
    transformer = {"num_head": 8, "dim_head": 32, "dropout": 0.0, "causal": True}
    transformer |= {"batch_first": False, "sequence_len": 2048}
    assert defaults(nn.Transformer) == transformer | where
    assert len(nn.Transformer(4, 5, 3).layers) == 3


@pytest.mark.parametrize("causal", [False, True])
def test_what_comes_later_matters_only_without_a_mask(causal, mode):
    model = nn.Transformer(4, 8, 2, num_head=2, dim_head=3, causal=causal, batch_first=True, dtype="float64")
    x = random(1, 5, 4, dtype="float64").numpy()
    changed = x.copy()
    changed[:, 3:] += 7 * np.arange(4)  # the same number added to all features would be normalized away
    before, after = (model(Tensor(a, dtype="float64"))[0].numpy() for a in (x, changed))
    moved = np.abs(after - before).max(axis=(0, 2)) > 1e-6
    np.testing.assert_array_equal(moved, [not causal] * 3 + [True] * 2)


def test_gradients_of_the_inputs_against_central_differences():
    heads = [random(1, 2, 3, 2, seed=s) for s in range(3)]
    attention = nn.MultiHeadAttention(causal=True)
    assert gradcheck(lambda q, k, v: attention(q, k, v)[0] + (attention(q, k, v)[1] ** 2).sum(), *heads)
    layer = nn.AttentionLayer(4, 2, 3, dtype="float64")
    assert gradcheck(layer, random(2, 3, 4), random(2, 5, 4, seed=1))


def test_gradients_of_the_parameters_against_central_differences():
    model = nn.Transformer(4, 5, 2, num_head=2, dim_head=2, sequence_len=4, dtype="float64")
    x = random(3, 2, 4, dtype="float64")

    def loss():
        return (model(x)[0] ** 2).sum()

    loss().backward()
    for p in model.parameters():
        start, gradient, eps = p.detach(), p.grad.numpy(), 1e-5
        direction = np.random.normal(size=p.shape)
        ends = []
        for sign in (1, -1):
            p.data = Tensor(start.numpy() + sign * eps * direction, dtype="float64")
            ends.append(loss().numpy().item())
        p.data = start
        expected = (ends[0] - ends[1]) / (2 * eps)
        np.testing.assert_allclose((gradient * direction).sum(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("batch_first", "needed"), [(True, "batch, time"), (False, "time, batch")])
def test_a_sequence_that_is_too_long_or_has_other_features(batch_first, needed):
    model = nn.Transformer(4, 5, 1, batch_first=batch_first, sequence_len=3)
    for shape in [(4, 4, 4), (3, 3, 5), (3, 4)]:
        words = f"Transformer: needs shape ({needed}, 4) with at most 3 time steps, got {shape}"
        with pytest.raises(ValueError, match=re.escape(words)):
            model(random(*shape))


def test_a_transformer_learns_what_comes_next(mode):
    """To say which number comes next in 0, 1, 2, 3, 0, 1 …"""
    rng = np.random.default_rng(0)
    embedding, head = nn.Embedding(4, 8, rng=rng), nn.Linear(8, 4, rng=rng)
    body = nn.Transformer(8, 16, 1, num_head=2, dim_head=4, batch_first=True, sequence_len=6, rng=rng)
    rows = (np.arange(6) + np.arange(4)[:, None]) % 4
    optimizer = ndl.optim.Adam([p for m in (embedding, body, head) for p in m.parameters()], lr=0.02)
    losses = []
    for _ in range(20):
        loss = nn.CrossEntropyLoss()(head(body(embedding(rows))[0]), (rows + 1) % 4)
        loss.backward(create_graph=False)
        optimizer.step()
        losses.append(loss.numpy().item())
    assert losses[-1] < 0.2 < 1 < losses[0]


def test_a_seed_makes_layers_and_dropout_repeatable():
    def outputs(seed):
        model = nn.Transformer(4, 5, 2, num_head=2, dim_head=3, dropout=0.5, rng=seed)
        return [model(random(3, 2, 4))[0].numpy() for _ in range(2)]

    first = outputs(5)
    np.testing.assert_array_equal(outputs(5), first)
    assert (outputs(6)[0] != first[0]).any()
    assert (first[0] != first[1]).any()
