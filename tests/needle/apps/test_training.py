"""Training really works: curves beside torch's, and accuracies on real data."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.apps import cnn, gpt, language_model, mlp_resnet, text
from needle.autograd import Tensor

# Curves: the same network in needle and in torch, with the same weights, learns the same batches.

STEPS = 100
BATCH = 8
CLASSES = 5


def taken(ours, theirs, torch, change=lambda array: array):
    """Let a parameter of torch's begin with the value of one of ours."""
    with torch.no_grad():
        theirs.copy_(torch.tensor(np.ascontiguousarray(change(ours.numpy()))))


def take_linear(ours, theirs, torch):
    taken(ours.weight, theirs.weight, torch, np.transpose)
    taken(ours.bias, theirs.bias, torch, np.ravel)


def mlp(torch):
    where = {"dtype": "float64"}
    ours = nn.Sequential(
        nn.Linear(6, 16, **where), nn.ReLU(), nn.Linear(16, 16, **where), nn.Tanh(), nn.Linear(16, 5, **where)
    )
    tnn = torch.nn
    theirs = tnn.Sequential(
        tnn.Linear(6, 16), tnn.ReLU(), tnn.Linear(16, 16), tnn.Tanh(), tnn.Linear(16, 5)
    ).double()
    for i in (0, 2, 4):
        take_linear(ours.modules[i], theirs[i], torch)
    inputs = np.random.default_rng(1).normal(size=(64, 6))
    return ours, ours, theirs.parameters(), theirs, inputs, "float64"


def convolutional(torch):
    where = {"dtype": "float64"}
    ours = nn.Sequential(
        nn.Conv(2, 4, 3, **where),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv(4, 6, 3, stride=2, **where),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24, 5, **where),
    )
    tnn = torch.nn
    theirs = tnn.Sequential(
        tnn.Conv2d(2, 4, 3, padding=1),
        tnn.ReLU(),
        tnn.MaxPool2d(2),
        tnn.Conv2d(4, 6, 3, stride=2, padding=1),
        tnn.ReLU(),
        tnn.Flatten(),
        tnn.Linear(24, 5),
    ).double()
    for i in (0, 3):
        taken(ours.modules[i].weight, theirs[i].weight, torch, lambda w: w.transpose(3, 2, 0, 1))
        taken(ours.modules[i].bias, theirs[i].bias, torch)
    take_linear(ours.modules[6], theirs[6], torch)
    inputs = np.random.default_rng(1).normal(size=(64, 2, 8, 8))
    return ours, ours, theirs.parameters(), theirs, inputs, "float64"


def recurrent(torch):
    embedding, lstm, linear = (
        nn.Embedding(7, 6, dtype="float64"),
        nn.LSTM(6, 8, num_layers=2, dtype="float64"),
        nn.Linear(8, 5, dtype="float64"),
    )
    tnn = torch.nn
    twins = tnn.ModuleList([tnn.Embedding(7, 6), tnn.LSTM(6, 8, num_layers=2), tnn.Linear(8, 5)]).double()
    taken(embedding.weight, twins[0].weight, torch)
    for i, cell in enumerate(lstm.lstm_cells):
        for name in ("ih", "hh"):
            taken(getattr(cell, f"W_{name}"), getattr(twins[1], f"weight_{name}_l{i}"), torch, np.transpose)
            taken(getattr(cell, f"bias_{name}"), getattr(twins[1], f"bias_{name}_l{i}"), torch)
    take_linear(linear, twins[2], torch)
    inputs = np.random.default_rng(1).integers(0, 7, size=(64, 9))

    def ours(x):  # (batch, time): the last time's output
        return linear(lstm(embedding(x.transpose()))[0][-1])

    def theirs(x):
        return twins[2](twins[1](twins[0](x.T))[0][-1])

    return nn.Sequential(embedding, lstm, linear), ours, twins.parameters(), theirs, inputs, "int64"


def transformer(torch):
    where = {"dtype": "float64"}
    embedding, linear = nn.Embedding(7, 8, **where), nn.Linear(8, 5, **where)
    layers = [nn.TransformerEncoderLayer(8, 2, 16, **where) for _ in range(2)]
    tnn = torch.nn
    twins = tnn.ModuleList(
        [
            tnn.Embedding(7, 8),
            *[
                tnn.TransformerEncoderLayer(
                    8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
                )
                for _ in range(2)
            ],
            tnn.Linear(8, 5),
        ]
    ).double()
    taken(embedding.weight, twins[0].weight, torch)
    take_linear(linear, twins[3], torch)
    for ours, theirs in zip(layers, twins[1:3], strict=True):
        attention = ours.attention
        maps = (attention.q_projection, attention.k_projection, attention.v_projection)
        for i, ours_map in enumerate(maps):
            rows = slice(8 * i, 8 * i + 8)
            taken(ours_map.weight, theirs.self_attn.in_proj_weight[rows], torch, np.transpose)
            taken(ours_map.bias, theirs.self_attn.in_proj_bias[rows], torch, np.ravel)
        take_linear(attention.out_projection, theirs.self_attn.out_proj, torch)
        first, second = [m for m in ours.feed_forward._children() if isinstance(m, nn.Linear)]
        take_linear(first, theirs.linear1, torch)
        take_linear(second, theirs.linear2, torch)
    inputs = np.random.default_rng(1).integers(0, 7, size=(64, 9))
    mask = torch.triu(torch.ones(9, 9, dtype=torch.bool), 1)

    def ours_model(x):
        out = embedding(x)
        for layer in layers:
            out = layer(out, causal=True)
        return linear(out[:, -1])

    def their_model(x):
        out = twins[0](x)
        for layer in twins[1:3]:
            out = layer(out, src_mask=mask)
        return twins[3](out[:, -1])

    ours_all = nn.Sequential(embedding, *layers, linear)
    return ours_all, ours_model, twins.parameters(), their_model, inputs, "int64"


def rule_of(inputs):
    """Labels that can be learned: of a sequence its last number, of anything else a linear map's largest."""
    if inputs.dtype.kind == "i":
        return inputs[:, -1] % CLASSES
    flat = inputs.reshape(len(inputs), -1)
    return (flat @ np.random.default_rng(2).normal(size=(flat.shape[1], CLASSES))).argmax(axis=1)


QUICK = [(mlp, "SGD")]  # the others are for `make test-slow`


@pytest.mark.parametrize(
    ("network", "rule"),
    [
        pytest.param(network, rule, marks=() if (network, rule) in QUICK else pytest.mark.slow)
        for network in (mlp, convolutional, recurrent, transformer)
        for rule in ("SGD", "Adam")
    ],
)
def test_losses_follow_torchs(network, rule, torch):
    torch.manual_seed(0)
    module, ours, their_parameters, theirs, inputs, dtype = network(torch)
    labels = rule_of(inputs)
    their_parameters = list(their_parameters)
    assert sum(p.size for p in module.parameters()) == sum(p.numel() for p in their_parameters)
    lr = 0.01 if rule == "Adam" else 0.02 if network is transformer else 0.3
    opt = getattr(optim, rule)(module.parameters(), lr=lr)
    other = getattr(torch.optim, rule)(their_parameters, lr=lr)
    loss_fn, order = nn.SoftmaxLoss(), np.random.default_rng(3)
    found, expected = [], []
    for _ in range(STEPS):
        batch = order.integers(0, len(inputs), BATCH)
        loss = loss_fn(ours(Tensor(inputs[batch], dtype=dtype, requires_grad=False)), labels[batch])
        loss.backward(create_graph=False)
        opt.step()
        found.append(loss.numpy().item())

        loss = torch.nn.functional.cross_entropy(
            theirs(torch.tensor(inputs[batch])), torch.tensor(labels[batch])
        )
        other.zero_grad()
        loss.backward()
        other.step()
        expected.append(loss.item())
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert np.mean(found[-20:]) < 0.95 * np.mean(found[:20])  # and something was learned


# Real data

quiet = ["--quiet"]


@pytest.mark.slow
def test_a_small_residual_network_reads_digits():
    small = ["--hidden-dim", "64", "--num-blocks", "1", "--epochs", "5", "--lr", "0.005"]
    assert mlp_resnet.main([*quiet, *small, "--device", "cpu_numpy"])["test_accuracy"] >= 0.95


@pytest.mark.slow
def test_the_residual_network_reads_digits():
    assert mlp_resnet.main([*quiet, "--epochs", "10"])["test_accuracy"] >= 0.97


@pytest.mark.slow
def test_the_convolutional_network_reads_digits():
    assert cnn.main([*quiet, "--epochs", "5"])["test_accuracy"] >= 0.98


@pytest.mark.slow
def test_a_network_of_linear_layers_reads_mnist(mnist, monkeypatch):
    monkeypatch.setenv("NEEDLE_DATA_DIR", str(mnist.parent))
    width = ["--hidden-dim", "512", "--num-blocks", "1", "--batch-size", "100", "--lr", "0.003"]
    metrics = mlp_resnet.main([*quiet, "--data", "mnist", "--epochs", "2", *width])
    assert metrics["test_accuracy"] >= 0.975


def test_the_spiral_is_solved():
    points, labels = ndl.data.toy.spiral(200, rng=np.random.default_rng(0))
    X, y = Tensor(points / 6, requires_grad=False), (labels > 0).astype(int)
    rng = np.random.default_rng(1)
    model = nn.Sequential(
        nn.Linear(2, 32, rng=rng), nn.Tanh(), nn.Linear(32, 32, rng=rng), nn.Tanh(), nn.Linear(32, 2, rng=rng)
    )
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    for _ in range(300):
        nn.SoftmaxLoss()(model(X), y).backward(create_graph=False)
        optimizer.step()
    assert (model(X).numpy().argmax(axis=1) == y).mean() >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("model", ["lstm", "gru"])
def test_a_recurrent_model_learns_more_than_frequencies(model):
    metrics = language_model.main([*quiet, "--model", model, "--epochs", "3"])
    _, train, test = text.read(text.SONNETS)
    shares = np.bincount(train) / len(train)
    entropy = -(shares * np.log(shares, where=shares > 0, out=np.zeros_like(shares))).sum()
    assert metrics["train_loss"] < 0.75 * entropy
    assert metrics["test_loss"] < 0.75 * text.frequency_loss(train, test)


@pytest.mark.slow
def test_a_gpt_learns_more_than_frequencies():
    metrics = gpt.main([*quiet, "--write", "0"])
    _, train, test = text.read(text.SONNETS)
    assert metrics["test_loss"] < 0.7 * text.frequency_loss(train, test)
