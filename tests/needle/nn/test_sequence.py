"""Recurrent networks and embeddings: how they are called, what they draw, and what they refuse."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor, find_topo_sort

DEVICES = [d for d in ndl.all_devices() if d.enabled()]
CELLS = {"RNN": (nn.RNN, nn.RNNCell, 1), "LSTM": (nn.LSTM, nn.LSTMCell, 4), "GRU": (nn.GRU, nn.GRUCell, 3)}


def random(*shape, seed=0, **kwargs):
    return Tensor(np.random.default_rng(seed).normal(size=shape), **kwargs)


def cells(network):
    return network.cells()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", CELLS)
def test_cells_draw_their_weights_in_order(name, bias):
    _, cell, gates = CELLS[name]
    np.random.seed(3)
    ours = cell(3, 4, bias=bias)
    after = np.random.rand()
    np.random.seed(3)
    width = gates * 4
    shapes = {"W_ih": (3, width), "W_hh": (4, width)} | (
        {"bias_ih": (width,), "bias_hh": (width,)} if bias else {}
    )
    assert {name: p.shape for name, p in ours.named_parameters()} == shapes
    for p in ours.parameters():  # uniform in ±1 / sqrt(hidden)
        np.testing.assert_allclose(p.numpy(), np.random.rand(*p.shape) - 0.5, rtol=3e-7, atol=1e-7)
    assert np.random.rand() == after
    assert (ours.bias_ih is None) == (ours.bias_hh is None) == (not bias)


@pytest.mark.parametrize("name", CELLS)
def test_networks_are_cells_one_on_the_other(name):
    network, cell, _ = CELLS[name]
    np.random.seed(3)
    ours = network(3, 4, num_layers=3)
    np.random.seed(3)
    expected = [cell(3, 4), cell(4, 4), cell(4, 4)]
    assert getattr(ours, f"{name.lower()}_cells") == cells(ours)
    assert all(type(c) is cell for c in cells(ours))
    for p, q in zip(ours.parameters(), [p for c in expected for p in c.parameters()], strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())
    names = [name for name, _ in ours.named_parameters()]
    assert names[:5] == [
        f"{name.lower()}_cells.{i}" for i in ("0.W_ih", "0.W_hh", "0.bias_ih", "0.bias_hh", "1.W_ih")
    ]


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("given", [True, False], ids=["state given", "no state"])
@pytest.mark.parametrize("name", CELLS)
def test_a_network_takes_the_steps_of_its_cells(name, given, layers, dtype, device, mode):
    network = CELLS[name][0](3, 4, layers, device=device, dtype=dtype)
    X = random(5, 2, 3, dtype=dtype, device=device)
    count = 2 if name == "LSTM" else 1
    shape = (layers, 2, 4)
    initial = [random(*shape, seed=i, dtype=dtype, device=device) for i in range(count)]
    state = None
    if given:
        state = tuple(initial) if count == 2 else initial[0]
    out, last = network(X, state)

    values = [a.numpy() if given else np.zeros(shape) for a in initial]
    states = [[Tensor(a[layer], dtype=dtype, device=device) for a in values] for layer in range(layers)]
    outputs = []
    for t in range(5):
        x = Tensor(X.numpy()[t], dtype=dtype, device=device)
        for layer, cell in enumerate(cells(network)):
            after = cell(x, tuple(states[layer]) if count == 2 else states[layer][0])
            states[layer] = list(after) if count == 2 else [after]
            x = states[layer][0]
        outputs.append(x.numpy())

    lasts = last if count == 2 else (last,)
    assert isinstance(last, tuple if count == 2 else Tensor)
    assert (out.shape, out.dtype, out.device) == ((5, 2, 4), dtype, device)
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(out.numpy(), outputs, **tolerance)
    for i, a in enumerate(lasts):
        assert (a.shape, a.dtype, a.device) == (shape, dtype, device)
        np.testing.assert_allclose(a.numpy(), [s[i].numpy() for s in states], **tolerance)

    out.sum().backward()
    for p in network.parameters():
        assert p.grad.shape == p.shape
        assert p.grad.dtype == dtype
    assert X.grad.shape == X.shape


@pytest.mark.parametrize("name", CELLS)
def test_without_a_state_it_is_zeros_and_the_weights_are_in_the_graph(name):
    _, cell, _ = CELLS[name]
    ours = cell(3, 4)
    x = random(2, 3)
    zeros = ndl.zeros(2, 4)
    given = ours(x, (zeros, zeros) if name == "LSTM" else zeros)
    for found, expected in zip(*[r if name == "LSTM" else (r,) for r in (ours(x), given)], strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    out = ours(x, None)
    out = out[0] if name == "LSTM" else out
    assert ours.W_hh in find_topo_sort([out])
    out.sum().backward()
    np.testing.assert_array_equal(ours.W_hh.grad.numpy(), np.zeros(ours.W_hh.shape))


@pytest.mark.parametrize("name", CELLS)
def test_plain_tensors_may_take_the_place_of_parameters(name):
    network = CELLS[name][0](3, 4)
    (cell,) = cells(network)
    x = random(2, 1, 3)
    before, _ = network(x)
    for attribute in ("W_ih", "W_hh", "bias_ih", "bias_hh"):
        setattr(cell, attribute, Tensor(getattr(cell, attribute).numpy()))
    after, _ = network(x)
    np.testing.assert_array_equal(after.numpy(), before.numpy())
    after.sum().backward()
    assert cell.W_hh.grad.shape == cell.W_hh.shape
    assert network.parameters() == []


@pytest.mark.parametrize("name", CELLS)
def test_a_state_is_carried_on(name):
    network = CELLS[name][0](3, 4, 2)
    x = random(6, 2, 3)
    whole, last = network(x)
    first, state = network(x[:2])
    second, state = network(x[2:], state)
    both = np.concatenate([first.numpy(), second.numpy()])
    np.testing.assert_allclose(both, whole.numpy(), rtol=1e-5, atol=1e-6)
    if name == "LSTM":
        (_, state), (_, last) = state, last
    np.testing.assert_allclose(state.numpy(), last.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CELLS)
def test_inputs_and_states_that_do_not_fit(name, mode):
    network, cell, _ = CELLS[name]
    rnn, one = network(3, 4, 2), cell(3, 4)
    needs = re.escape(f"{name}: needs an input of shape (time, batch, 3) with at least one time")
    for shape in [(2, 3), (0, 2, 3), (5, 2, 4)]:
        with pytest.raises(ValueError, match=f"{needs}, got {re.escape(str(shape))}"):
            rnn(Tensor(np.ones(shape)))
    for shape in [(3,), (2, 4), (1, 2, 3)]:
        with pytest.raises(ValueError, match=re.escape(f"needs an input of shape (batch, 3), got {shape}")):
            one(Tensor(np.ones(shape)))
    wrong = ndl.zeros(1, 4)  # broadcasting would accept it
    with pytest.raises(ValueError, match=r"\(2, 4\).*got \(1, 4\)"):
        one(random(2, 3), (wrong, wrong) if name == "LSTM" else wrong)
    with pytest.raises(ValueError, match=r"\(2, 5, 4\).*got \(1, 4\)"):
        rnn(random(7, 5, 3), (wrong, wrong) if name == "LSTM" else wrong)
    if name == "LSTM":
        with pytest.raises(ValueError, match=r"needs a state \(h, c\), each \(2, 4\), got \(2, 4\)"):
            one(random(2, 3), ndl.zeros(2, 4))
    with pytest.raises(ValueError, match=f"{name}: num_layers must be a whole number of at least 1, got 0"):
        network(3, 4, 0)


@pytest.mark.parametrize("name", CELLS)
def test_states_by_keyword(name):
    network, cell, _ = CELLS[name]
    rnn, one = network(3, 4), cell(3, 4)
    state, layers = random(2, 4), random(1, 2, 4)
    if name == "LSTM":
        state, layers = (state, state), (layers, layers)
    X, keyword = random(5, 2, 3), "h" if name == "LSTM" else "h0"
    np.testing.assert_array_equal(rnn(X=X, **{keyword: layers})[0].numpy(), rnn(X, layers)[0].numpy())
    ours, expected = one(X=X[0], h=state), one(X[0], state)
    ours, expected = (ours[0], expected[0]) if name == "LSTM" else (ours, expected)
    np.testing.assert_array_equal(ours.numpy(), expected.numpy())


def test_the_steps_of_an_lstm_are_few_operators(computed):
    lstm = nn.LSTM(3, 4)
    counts = []
    for time in (8, 16):
        out, _ = lstm(random(time, 2, 3))
        nodes = len(find_topo_sort([out]))
        computed.clear()
        out.sum().backward(create_graph=False)
        counts.append((nodes, len(computed)))
    (nodes, few), (same, more) = counts
    assert nodes == same < 20  # the graph does not grow with the sequence
    assert (more - few) / 8 <= 20  # for each step backwards; out of primitive operators there are 60


def test_nonlinearities():
    x = random(2, 3)
    for name, f in (("tanh", np.tanh), ("relu", lambda a: np.maximum(a, 0))):
        cell = nn.RNNCell(3, 4, nonlinearity=name)
        expected = f(x.numpy() @ cell.W_ih.numpy() + cell.bias_ih.numpy() + cell.bias_hh.numpy())
        np.testing.assert_allclose(cell(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="nonlinearity is 'tanh' or 'relu', got 'sigmoid'"):
        nn.RNN(3, 4, nonlinearity="sigmoid")


@pytest.mark.slow
def test_long_sequences_have_no_limit_of_recursion():
    rnn = nn.RNN(1, 1)
    out, _ = rnn(random(1500, 1, 1))
    out.sum().backward(create_graph=False)
    assert math.isfinite(rnn.rnn_cells[0].W_hh.grad.numpy().item())


# Embedding


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.float32, np.uint8])
def test_embedding_looks_rows_up(kind, device, mode):
    layer = nn.Embedding(5, 3, device=device)
    rows = np.array([[0, 4, 4, 1], [1, 0, 4, 2]], dtype=kind)
    weight = layer.weight.numpy()
    for x in (Tensor(rows, device=device, dtype=kind), rows, rows.tolist()):
        out = layer(x)
        assert (out.shape, out.dtype, out.device) == ((2, 4, 3), "float32", device)
        np.testing.assert_array_equal(out.numpy(), weight[rows.astype(int)])
    (out * 2).sum().backward()
    counts = np.array([2, 2, 1, 0, 3])
    np.testing.assert_array_equal(layer.weight.grad.numpy(), np.repeat(2.0 * counts[:, None], 3, axis=1))


def test_embedding_draws_its_weight():
    np.random.seed(3)
    layer = nn.Embedding(5, 3)
    np.random.seed(3)
    np.testing.assert_allclose(layer.weight.numpy(), np.random.randn(5, 3), rtol=1e-6)


@pytest.mark.parametrize("rows", [[5], [-1], [0.5], [math.nan]], ids=str)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_embedding_refuses_what_is_no_row(rows):
    with pytest.raises(IndexError, match=r"Embedding: needs whole numbers in 0\.\.4, got"):
        nn.Embedding(5, 3)(rows)


def test_embedding_of_nothing():
    assert nn.Embedding(5, 3)(np.zeros((0, 2))).shape == (0, 2, 3)
