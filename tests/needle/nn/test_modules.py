"""Modules: the tree they form, their parameters, and each layer against torch."""

from __future__ import annotations

import copy
import math
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor

DEVICES = [d for d in ndl.all_devices() if d.enabled()]


class Block(nn.Module):
    """Parameters and modules in all the places where they may be."""

    def __init__(self):
        self.last = nn.Parameter([9.0])
        self.first = nn.Linear(2, 3)
        self.parts = [nn.Linear(3, 3, bias=False), (nn.ReLU(), nn.Parameter([1.0]))]
        self.named = {"a": nn.Parameter([2.0]), "b": {"deep": nn.Linear(1, 1, bias=False)}}
        self.plain = Tensor([3.0])
        self.size = 5
        self.nothing = None
        self.text = "weight"

    def forward(self, x, scale=1):
        return self.first(x) * scale


# The tree


def test_parameters_come_in_the_order_of_their_attributes():
    block = Block()
    expected = [
        block.last,
        block.first.weight,
        block.first.bias,
        block.parts[0].weight,
        block.parts[1][1],
        block.named["a"],
        block.named["b"]["deep"].weight,
    ]
    assert isinstance(block.parameters(), list)
    assert block.parameters() == expected
    assert block.parameters() == expected


def test_parameters_are_named_by_their_paths():
    block = Block()
    named = list(block.named_parameters())
    assert [name for name, _ in named] == [
        "last",
        "first.weight",
        "first.bias",
        "parts.0.weight",
        "parts.1.1",
        "named.a",
        "named.b.deep.weight",
    ]
    assert [p for _, p in named] == block.parameters()
    model = nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.Tanh(), nn.Linear(2, 1, bias=False)))
    names = [name for name, _ in model.named_parameters()]
    assert names == ["modules.0.weight", "modules.0.bias", "modules.1.modules.1.weight"]


def test_tensors_are_no_parameters():
    block = Block()
    assert block.plain not in block.parameters()
    block.plain = nn.Parameter(block.plain)
    assert block.plain in block.parameters()


def test_shared_parameters_and_modules_come_once():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    assert model.parameters() == [shared.weight, shared.bias]
    other = nn.Linear(2, 2, bias=False)
    other.weight = shared.weight
    both = nn.Sequential(other, shared)
    assert both.parameters() == [shared.weight, shared.bias]
    names = [name for name, _ in both.named_parameters()]
    assert names == ["modules.0.weight", "modules.1.bias"]


def test_a_part_may_point_back_at_its_owner():
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    model.modules[0].owner = model
    model.modules[1].itself = [model.modules[1]]
    assert model.parameters() == [model.modules[0].weight, model.modules[0].bias]
    model.eval()
    assert not model.modules[0].training
    model.train()
    assert model.modules[1].training


def test_children_at_any_depth():
    inner = nn.Sequential(nn.Linear(1, 1), nn.Tanh())
    model = nn.Sequential(inner, nn.ReLU())
    assert model._children() == [inner, inner.modules[0], inner.modules[1], model.modules[1]]
    assert nn.ReLU()._children() == []


def test_deep_models_are_not_limited_by_recursion():
    model = nn.ReLU()
    for _ in range(3000):
        model = nn.Sequential(model)
    model.eval()
    assert model.parameters() == []
    assert len(model._children()) == 3000
    assert model.state_dict() == {}


def test_modules_shared_many_times_are_walked_once():
    model = nn.Linear(1, 1)
    for _ in range(60):  # 2 ** 60 paths lead to the innermost
        model = nn.Sequential(model, model)
    assert len(model.parameters()) == 2
    assert len(model._children()) == 60
    assert len(repr(model).splitlines()) == 121


def test_train_and_eval_reach_every_part():
    block = Block()
    parts = [block, *block._children()]
    assert len(parts) == 5
    assert all(part.training for part in parts)
    block.eval()
    assert not any(part.training for part in parts)
    assert nn.ReLU().training
    block.train()
    assert all(part.training for part in parts)


def test_calling_a_module_is_its_forward():
    block = Block()
    x = Tensor([[1.0, 2.0]], dtype="float32")
    np.testing.assert_array_equal(block(x, scale=2).numpy(), block.forward(x).numpy() * 2)


def test_a_module_without_forward_says_so():
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="Empty has no forward method"):
        Empty()(Tensor([1.0]))


def test_a_parameter_is_a_leaf_that_is_learned():
    source = Tensor([1.0, 2.0], requires_grad=False) * 2
    p = nn.Parameter(source)
    assert isinstance(p, Tensor)
    assert p.is_leaf()
    assert p.requires_grad
    assert p.inputs == []
    p.data = p - 1
    np.testing.assert_array_equal(p.numpy(), [1, 3])
    np.testing.assert_array_equal(source.numpy(), [2, 4])
    assert type(p * 2) is Tensor


# State


class Counting(nn.Module):
    """A parameter, a buffer, and a result that is neither."""

    def __init__(self):
        self.scale = nn.Parameter([1.0, 2.0])
        self.seen = ndl.zeros(3)
        self.last = None

    def forward(self, x):
        self.last = x * self.scale
        return self.last


def test_buffers_are_the_tensors_that_are_not_learned():
    model = nn.Sequential(Counting(), Block())
    model.modules[0](Tensor([1.0, 1.0]))
    assert [name for name, _ in model.named_buffers()] == ["modules.0.seen", "modules.1.plain"]
    assert [t for _, t in model.named_buffers()] == [model.modules[0].seen, model.modules[1].plain]
    assert [name for name, _ in model.modules[0].named_parameters()] == ["scale"]


def test_the_state_is_parameters_and_buffers_by_name():
    model = nn.Sequential(nn.Linear(2, 3), Counting())
    state = model.state_dict()
    assert list(state) == ["modules.0.weight", "modules.0.bias", "modules.1.scale", "modules.1.seen"]
    for tensor, own in zip(state.values(), [*model.parameters(), model.modules[1].seen], strict=True):
        assert type(tensor) is Tensor
        assert not tensor.requires_grad
        np.testing.assert_array_equal(tensor.numpy(), own.numpy())


def test_training_on_leaves_a_state_as_it_was(mode):
    model = nn.Linear(2, 1)
    state = model.state_dict()
    before = {name: tensor.numpy() for name, tensor in state.items()}
    model.weight.data = model.weight * 2 + 1
    assert (model.weight.numpy() != before["weight"]).all()
    for name, tensor in state.items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    model.load_state_dict(state)
    np.testing.assert_array_equal(model.weight.numpy(), before["weight"])
    model.weight.data = model.weight - 5
    np.testing.assert_array_equal(state["weight"].numpy(), before["weight"])


@pytest.mark.parametrize("convert", [lambda t: t, lambda t: t.numpy()], ids=["Tensors", "arrays"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_state_goes_from_one_module_into_another(dtype, convert):
    source = nn.Sequential(nn.Linear(2, 3, dtype="float64"), nn.Linear(3, 1, bias=False, dtype="float64"))
    target = nn.Sequential(nn.Linear(2, 3, dtype=dtype), nn.Linear(3, 1, bias=False, dtype=dtype))
    parameters = target.parameters()
    target.load_state_dict({name: convert(t) for name, t in source.state_dict().items()})
    assert target.parameters() == parameters
    for p, q in zip(source.parameters(), parameters, strict=True):
        assert type(q) is nn.Parameter
        assert q.requires_grad
        assert q.dtype == dtype
        np.testing.assert_array_equal(q.numpy(), p.numpy().astype(dtype))


def test_a_state_that_does_not_fit_is_refused_as_a_whole():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    before = {name: t.numpy() for name, t in model.state_dict().items()}
    state = {name: t * 0 for name, t in model.state_dict().items()}
    del state["modules.0.bias"], state["modules.2.weight"]
    state["modules.0.weight"] = ndl.zeros(3, 2)
    state["modules.2.bias"] = np.zeros(1)
    state |= {"modules.1.slope": ndl.zeros(1), "extra": 3.0}
    with pytest.raises(ValueError, match="does not fit this Sequential, which stays as it was") as error:
        model.load_state_dict(state)
    assert str(error.value).splitlines()[1:] == [
        "  mis-shaped: modules.0.weight is (2, 3) here and (3, 2) in the state",
        "  mis-shaped: modules.2.bias is (1, 1) here and (1,) in the state",
        "  missing: modules.0.bias",
        "  missing: modules.2.weight",
        "  unexpected: extra",
        "  unexpected: modules.1.slope",
    ]
    with pytest.raises(ValueError, match="mis-shaped") as error:
        model.load_state_dict(state, strict=False)
    assert len(str(error.value).splitlines()) == 3
    with pytest.raises(TypeError, match="needs numbers"):
        model.load_state_dict(
            {"modules.0.weight": ndl.zeros(2, 3), "modules.0.bias": np.array([["a"] * 3])}, False
        )
    with pytest.raises(TypeError, match="needs a dict of Tensors by name, got list"):
        model.load_state_dict([1, 2])
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])


def test_names_of_one_side_are_passed_over_where_that_is_asked_for():
    model = nn.Linear(2, 1)
    bias = model.bias.numpy()
    model.load_state_dict({"weight": [[5.0], [6.0]], "other": [1.0]}, strict=False)
    np.testing.assert_array_equal(model.weight.numpy(), [[5], [6]])
    np.testing.assert_array_equal(model.bias.numpy(), bias)


def test_a_shared_parameter_is_in_the_state_once():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model.modules[1].weight = model.modules[0].weight
    assert list(model.state_dict()) == ["modules.0.weight"]
    model.load_state_dict({"modules.0.weight": np.eye(2)})
    np.testing.assert_array_equal(model.modules[1].weight.numpy(), np.eye(2))


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_module_moves_to_a_device(device, mode):
    model = nn.Sequential(nn.Linear(2, 3, device=DEVICES[0]), Counting(), nn.Linear(3, 1, device=DEVICES[0]))
    model.modules[0](Tensor(np.ones((1, 2)), device=DEVICES[0])).sum().backward()
    tensors = [*model.parameters(), model.modules[1].seen]
    before = [t.numpy() for t in tensors]
    by_weight = model.modules[0].weight.grad.numpy()
    assert model.to(device) is model
    assert [*model.parameters(), model.modules[1].seen] == tensors
    for tensor, values in zip(tensors, before, strict=True):
        assert tensor.device == device
        assert tensor.is_leaf()
        np.testing.assert_array_equal(tensor.numpy(), values)
    assert model.modules[0].weight.requires_grad
    assert not model.modules[1].seen.requires_grad
    gradient = model.modules[0].weight.grad
    assert gradient.device == device
    np.testing.assert_array_equal(gradient.numpy(), by_weight)
    assert model.modules[2].weight.grad is None
    x = Tensor(np.ones((1, 2)), device=device)
    out = model.modules[0](x)
    out.sum().backward()
    assert model.modules[0].weight.grad.device == device


def test_a_module_stays_where_it_is_if_the_device_cannot_be_used():
    missing = [d for d in ndl.all_devices() if not d.enabled()]
    model = nn.Linear(2, 1)
    for device in missing:
        with pytest.raises(RuntimeError, match="not available"):
            model.to(device)
    with pytest.raises(TypeError, match="device"):
        model.to("cuda")
    assert model.weight.device == model.bias.device == ndl.default_device()


# Text, and names that are not there


def test_the_text_of_a_module_is_its_tree():
    model = nn.Sequential(
        nn.Linear(20, 50), nn.ReLU(), nn.Sequential(nn.Linear(50, 2, bias=False), Counting()), nn.Tanh()
    )
    assert repr(model).splitlines() == [
        "Sequential: 1,152 parameters",
        "├─ modules.0: Linear(in_features=20, out_features=50): "
        "1,050 parameters, weight (20, 50), bias (1, 50)",
        "├─ modules.1: ReLU",
        "├─ modules.2: Sequential: 102 parameters",
        "│  ├─ modules.0: Linear(in_features=50, out_features=2): 100 parameters, weight (50, 2)",
        "│  └─ modules.1: Counting: 2 parameters, scale (2,), not learned: seen (3,)",
        "└─ modules.3: Tanh",
    ]


def test_the_text_of_modules_that_are_met_again():
    shared = nn.Linear(1, 1, bias=False)
    model = nn.Sequential(shared, shared)
    model.itself = model
    assert repr(model).splitlines() == [
        "Sequential: 1 parameter",
        "├─ modules.0: Linear(in_features=1, out_features=1): 1 parameter, weight (1, 1)",
        "├─ modules.1: Linear, the same as modules.0",
        "└─ itself: Sequential, the same as the whole",
    ]


def test_a_misspelt_name_is_told_the_nearest():
    model = nn.Linear(2, 3)
    for wrong, right in [
        ("wieght", "weight"),
        ("bais", "bias"),
        ("paramters", "parameters"),
        ("In_features", "in_features"),
    ]:
        with pytest.raises(
            AttributeError, match=rf"^Linear has no attribute '{wrong}'; did you mean '{right}'\?$"
        ):
            getattr(model, wrong)
    with pytest.raises(AttributeError, match=r"^Linear has no attribute 'zzz'$"):
        _ = model.zzz
    assert not hasattr(model, "wieght")
    assert getattr(model, "wieght", 3) == 3


def test_a_property_that_fails_is_not_called_misspelt():
    class Broken(nn.Module):
        @property
        def width(self):
            return self.wdith_of_input

    with pytest.raises(AttributeError, match="wdith_of_input"):
        _ = Broken().width


def test_a_module_can_be_copied():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    twin = copy.copy(model)
    assert twin.modules is model.modules
    assert twin.parameters() == model.parameters()


# Linear


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_shapes_of_linear(dtype, device):
    layer = nn.Linear(3, 4, device=device, dtype=dtype)
    assert (layer.in_features, layer.out_features) == (3, 4)
    assert (layer.weight.shape, layer.bias.shape) == ((3, 4), (1, 4))
    for p in (layer.weight, layer.bias):
        assert type(p) is nn.Parameter
        assert (p.dtype, p.device) == (np.dtype(dtype), device)
    for shape in [(2, 3), (1, 3), (0, 3), (5, 2, 3), (3,)]:
        x = Tensor(np.ones(shape), dtype=dtype, device=device)
        out = layer(x)
        assert out.shape[-1] == 4
        expected = x.numpy() @ layer.weight.numpy() + layer.bias.numpy()[0]
        assert out.shape == expected.shape
        np.testing.assert_allclose(
            out.numpy(), expected, rtol=1e-6 if dtype == "float32" else 1e-14, atol=1e-6
        )


def test_linear_without_bias():
    layer = nn.Linear(3, 4, bias=False)
    assert layer.bias is None
    assert layer.parameters() == [layer.weight]
    x = Tensor(np.eye(3), dtype="float32")
    np.testing.assert_array_equal(layer(x).numpy(), layer.weight.numpy())


@pytest.mark.parametrize("bias", [True, False])
def test_linear_draws_its_weight_and_then_its_bias(bias):
    np.random.seed(3)
    layer = nn.Linear(7, 5, bias=bias)
    after = np.random.rand()
    np.random.seed(3)
    bound = math.sqrt(2) * math.sqrt(3 / 7)
    # An initialiser may round to float32 before it scales: two roundings.
    np.testing.assert_allclose(
        layer.weight.numpy(), np.random.rand(7, 5) * 2 * bound - bound, rtol=3e-7, atol=1e-7
    )
    if bias:
        bound = math.sqrt(2) * math.sqrt(3 / 5)
        drawn = (np.random.rand(5, 1) * 2 * bound - bound).reshape(1, 5)
        np.testing.assert_allclose(layer.bias.numpy(), drawn, rtol=3e-7, atol=2e-7)
    assert np.random.rand() == after


def test_a_misfit_input_names_the_shapes(mode):
    for shape in [(2, 3), (3,), (2, 4, 3), ()]:
        with pytest.raises(ValueError, match=re.escape(f"Linear: needs shape (..., 4), got {shape}")):
            nn.Linear(4, 5)(Tensor(np.ones(shape)))


# Small layers


def test_sequential_can_be_looked_into():
    layers = [nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)]
    model = nn.Sequential(*layers)
    assert list(model.modules) == layers
    assert model.modules[1] is layers[1]
    x = Tensor([[1.0, 2.0]], dtype="float32")
    np.testing.assert_array_equal(model(x).numpy(), layers[2](layers[1](layers[0](x))).numpy())
    assert nn.Sequential()(x) is x


def test_sequential_is_a_sequence():
    layers = [nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)]
    model = nn.Sequential(*layers)
    assert (len(model), list(model), model[-1]) == (3, layers, layers[2])
    part = model[1:]
    assert type(part) is nn.Sequential
    assert list(part) == layers[1:]
    with pytest.raises(IndexError):
        model[3]


def test_modules_by_name():
    inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model = nn.Sequential(inner, nn.Residual(inner))
    assert list(model.named_modules()) == [
        ("", model),
        ("modules.0", inner),
        ("modules.0.modules.0", inner[0]),
        ("modules.0.modules.1", inner[1]),
        ("modules.1", model[1]),
    ]


def test_paths_that_collide_are_refused():
    model = nn.Module()
    model.parts = {"a.b": nn.Parameter([1.0]), "a": {"b": nn.Parameter([2.0])}}
    for use in (model.state_dict, lambda: model.load_state_dict({})):
        with pytest.raises(ValueError, match=r"two Tensors have the path 'parts\.a\.b'"):
            use()
    assert len(model.parameters()) == 2


def test_a_list_that_contains_itself():
    model = nn.Module()
    model.parts = [nn.Parameter([1.0])]
    model.parts.append(model.parts)
    assert list(model.state_dict()) == ["parts.0"]
    assert "1 parameter" in repr(model)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Linear(0, 3), "Linear: in_features must be a whole number of at least 1, got 0"),
        (lambda: nn.Linear(3, -1), "Linear: out_features .* got -1"),
        (lambda: nn.Linear(3, 2.0), "Linear: out_features .* got 2.0"),
        (lambda: nn.RNN(3, 0), "RNN: hidden_size .* got 0"),
        (lambda: nn.LSTMCell(-1, 2), "LSTMCell: input_size .* got -1"),
        (lambda: nn.Embedding(0, 2), "Embedding: num_embeddings .* got 0"),
        (lambda: nn.BatchNorm2d(0), "BatchNorm2d: dim .* got 0"),
        (lambda: nn.LayerNorm1d((2, 3)), r"LayerNorm1d: dim .* got \(2, 3\)"),
        (lambda: nn.LearnedEncoding(0, 2), "LearnedEncoding: max_length .* got 0"),
        (lambda: nn.Conv(0, 1, 3), "Conv: in_channels .* got 0"),
        (
            lambda: nn.Conv(1, 1, 0),
            "Conv: kernel_size: needs one whole number, or one .*, of at least 1; got 0",
        ),
        (lambda: nn.Conv(1, 1, 3, stride=0), "Conv: stride: .* got 0"),
        (lambda: nn.Conv(1, 1, 3, padding="same"), "Conv: padding: .* of at least 0; got 'same'"),
        (lambda: nn.Conv(1, 1, (3, 2, 1)), r"Conv: kernel_size: .* got \(3, 2, 1\)"),
        (lambda: nn.Conv(1, 1, 3, padding=(1, -2)), r"Conv: padding: .* got \(1, -2\)"),
        (lambda: nn.Conv(1, 1, 3, padding=((1, 2),)), r"Conv: needs padding .*, got \(\(1, 2\),\)"),
        (lambda: nn.Conv(1, 1, 3, padding=((1, 2), (0, -1))), r"Conv: padding: .* got \(0, -1\)"),
        (lambda: nn.AvgPool2d(2, padding=-1), "AvgPool2d: padding: .* got -1"),
        (lambda: nn.MaxPool2d("2"), "MaxPool2d: kernel_size: .* got '2'"),
        (lambda: nn.MaxPool2d(3, padding=2), "MaxPool2d: padding is at most half a window; got 2"),
    ],
)
def test_sizes_that_make_no_sense(make, words):
    with pytest.raises(ValueError, match=words):
        make()


RANDOM = {
    "Linear": lambda rng: nn.Linear(3, 4, rng=rng),
    "Conv": lambda rng: nn.Conv(1, 2, 3, rng=rng),
    "RNN": lambda rng: nn.RNN(3, 3, 2, rng=rng),
    "LSTM": lambda rng: nn.LSTM(3, 3, 2, rng=rng),
    "GRU": lambda rng: nn.GRU(3, 3, 2, rng=rng),
    "Embedding": lambda rng: nn.Embedding(3, 4, rng=rng),
    "LearnedEncoding": lambda rng: nn.LearnedEncoding(3, 4, rng=rng),
    "AttentionLayer": lambda rng: nn.AttentionLayer(4, 2, 3, rng=rng),
    "TransformerLayer": lambda rng: nn.TransformerLayer(4, 2, 3, 5, rng=rng),
    "Transformer": lambda rng: nn.Transformer(4, 5, 2, rng=rng),
    "TransformerEncoderLayer": lambda rng: nn.TransformerEncoderLayer(4, 2, rng=rng),
    "TransformerDecoderLayer": lambda rng: nn.TransformerDecoderLayer(4, 2, rng=rng),
}


@pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM)
def test_an_int_as_rng_is_the_seed_of_one_generator(make):
    before = np.random.get_state()[1].tolist()
    for seed in (0, 5):
        ours, expected = make(seed).parameters(), make(np.random.default_rng(seed)).parameters()
        for p, q in zip(ours, expected, strict=True):
            np.testing.assert_array_equal(p.numpy(), q.numpy())
    assert np.random.get_state()[1].tolist() == before
    with pytest.raises(TypeError, match=r"rng: needs a numpy\.random\.Generator, a seed .* got str"):
        make("0")


def test_the_rng_of_dropout():
    x = Tensor(np.ones((4, 5)))
    ours, expected = nn.Dropout(rng=0), nn.Dropout(rng=np.random.default_rng(0))
    for _ in range(2):  # seeded once, not at each call
        np.testing.assert_array_equal(ours(x).numpy(), expected(x).numpy())
    with pytest.raises(TypeError, match="rng: needs"):
        nn.Dropout(rng=1.5)


def test_a_parameter_is_true_whatever_its_numbers():
    """So that ``if self.bias:`` asks whether there is one; the numbers of other Tensors are asked for."""
    with_bias, without = nn.Linear(2, 3), nn.Linear(2, 3, bias=False)
    assert with_bias.bias
    assert not without.bias
    assert nn.Parameter([0.0])
    assert not Tensor([0.0])
    with pytest.raises(ValueError, match="truth"):
        bool(Tensor([0.0, 1.0]))


def test_identity_is_its_input():
    x = Tensor([1.0])
    assert nn.Identity()(x) is x


def softmax_loss_by_hand(logits, y):
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_softmax = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -log_softmax[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("labels", [np.array, list, Tensor, lambda y: Tensor(y, dtype="int64")])
def test_softmax_loss(labels, device, mode):
    logits = np.random.default_rng(0).normal(size=(6, 4)) * 5
    y = np.array([0, 3, 1, 1, 2, 0])
    given = labels(y).to(device) if isinstance(labels(y), Tensor) else labels(y)
    x = Tensor(logits, dtype="float64", device=device)
    loss = nn.SoftmaxLoss()(x, given)
    assert loss.shape == ()
    assert (loss.dtype, loss.device) == ("float64", device)
    np.testing.assert_allclose(loss.numpy(), softmax_loss_by_hand(logits, y), rtol=1e-13)
    loss.backward()
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(x.grad.numpy(), (softmax - np.eye(4)[y]) / 6, rtol=1e-12, atol=1e-15)


def test_softmax_loss_of_huge_logits():
    x = Tensor([[1e9, 0.0], [-1e9, 0.0]], dtype="float32")
    loss = nn.SoftmaxLoss()(x, [0, 1])
    loss.backward()
    assert loss.numpy() == 0
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((2, 2)))


@pytest.mark.parametrize("y", [[0, 2], [0, -1], [0.5, 0]], ids=str)
def test_softmax_loss_refuses_what_is_no_label(y):
    with pytest.raises(IndexError, match=r"classes must lie in 0\.\.1 and be whole"):
        nn.SoftmaxLoss()(Tensor(np.ones((2, 2))), y)


@pytest.mark.parametrize(
    ("shape", "y"),
    [((3, 2), [0]), ((3, 2), [0, 1]), ((2, 2), [[0, 1], [1, 0]]), ((2,), [1]), ((2,), 1), ((1, 2), 1)],
    ids=str,
)
def test_softmax_loss_refuses_labels_of_another_shape(shape, y, mode):
    """Broadcasting would make a wrong loss of them."""
    shapes = re.escape(f"got {shape} and {np.shape(y)}")
    for labels in (y, np.array(y), Tensor(y)):
        with pytest.raises(ValueError, match=rf"\(batch, classes\) and labels of shape \(batch,\), {shapes}"):
            nn.SoftmaxLoss()(Tensor(np.ones(shape)), labels)


def test_layers_against_torch(mode, torch):
    rng = np.random.default_rng(0)
    ours = nn.Sequential(
        nn.Linear(4, 5, rng=rng, dtype="float64"),
        nn.ReLU(),
        nn.Linear(5, 6, rng=rng, dtype="float64"),
        nn.Tanh(),
        nn.Linear(6, 5, rng=rng, bias=False, dtype="float64"),
        nn.Sigmoid(),
        nn.Identity(),
        nn.Linear(5, 3, rng=rng, dtype="float64"),
    )
    theirs = torch.nn.Sequential(
        torch.nn.Linear(4, 5),
        torch.nn.ReLU(),
        torch.nn.Linear(5, 6),
        torch.nn.Tanh(),
        torch.nn.Linear(6, 5, bias=False),
        torch.nn.Sigmoid(),
        torch.nn.Identity(),
        torch.nn.Linear(5, 3),
    ).double()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        q.data = torch.tensor(p.numpy().T if p.shape[0] > 1 else p.numpy()[0])

    X, y = rng.normal(size=(7, 4)), rng.integers(0, 3, size=7)
    x, x_ = Tensor(X, dtype="float64"), torch.tensor(X, requires_grad=True)
    loss = nn.SoftmaxLoss()(ours(x), y)
    expected = torch.nn.CrossEntropyLoss()(theirs(x_), torch.tensor(y))
    loss.backward()
    expected.backward()
    np.testing.assert_allclose(loss.numpy(), expected.item(), rtol=1e-13)
    np.testing.assert_allclose(x.grad.numpy(), x_.grad.numpy(), rtol=1e-11, atol=1e-15)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        gradient = p.grad.numpy().T if p.shape[0] > 1 else p.grad.numpy()[0]
        np.testing.assert_allclose(gradient, q.grad.numpy(), rtol=1e-11, atol=1e-15)
