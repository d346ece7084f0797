"""Every layer and loss against torch: outputs, gradients, and gradients of gradients, with equal weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor, gradients

torch: Any = None  # the module, once a test runs: to collect this file takes no torch


@pytest.fixture(autouse=True, scope="module")
def oracle(torch):
    globals()["torch"] = torch


CPUS = [d for d in (ndl.cpu(), ndl.cpu_numpy()) if d.enabled()]

# Shapes are known by the course's names; torch keeps matrices the other way round and kernels first.
AS_TORCHS = {
    1: lambda a: a,
    2: lambda a: a.T,
    4: lambda a: a.transpose(3, 2, 0, 1),
}


def in_order(arrays: dict[str, np.ndarray], theirs) -> dict[str, np.ndarray]:
    """Our parameters (or their gradients) under torch's names, where both come in the same order."""
    found = {}
    for (name, q), a in zip(theirs.named_parameters(), arrays.values(), strict=True):
        found[name] = a.reshape(-1) if q.ndim == 1 else AS_TORCHS[a.ndim](a)
    return found


def as_they_are(arrays: dict[str, np.ndarray], theirs) -> dict[str, np.ndarray]:
    """Parameters of the same layout on both sides."""
    return dict(zip([name for name, _ in theirs.named_parameters()], arrays.values(), strict=True))


def attention(arrays: dict[str, np.ndarray], prefix: str = "") -> dict[str, np.ndarray]:
    """The parameters of an AttentionLayer; torch joins those of queries, keys and values."""
    a = {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}
    parts = ("q_projection", "k_projection", "v_projection")
    return {
        "in_proj_weight": np.concatenate([a[f"{part}.weight"].T for part in parts]),
        "in_proj_bias": np.concatenate([a[f"{part}.bias"][0] for part in parts]),
        "out_proj.weight": a["out_projection.weight"].T,
        "out_proj.bias": a["out_projection.bias"][0],
    }


def written_out(make: Callable[..., nn.Module], formula: Callable) -> Callable:
    """What builds torch's module of a formula: it takes an iterator of ours's parameters, then the inputs."""

    def build(tnn):
        class Formula(tnn.Module):
            def __init__(self):
                super().__init__()
                shapes = [p.shape for p in make(CPUS[0]).parameters()]
                self.numbers = tnn.ParameterList([torch.zeros(shape) for shape in shapes])

            def forward(self, *inputs):
                return formula(iter(self.numbers), *inputs)

        return Formula()

    return build


def normalized(p, x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], next(p), next(p))


def weighted_mean(q, k, v, later=0.0):
    """The result of attention, and its weights."""
    probs = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 - later).softmax(-1)
    return probs @ v, probs


def attention_layer(p, q, k=None, v=None, heads=2, causal=True):
    k = q if k is None else k
    v = k if v is None else v
    q, k, v = normalized(p, q), normalized(p, k), normalized(p, v)
    q, k, v = ((x @ next(p)).unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    later = torch.ones(q.shape[2], k.shape[2]).triu(k.shape[2] - q.shape[2] + 1) * causal
    result, _ = weighted_mean(q, k, v, later * float(np.finfo("float32").max))
    return result.transpose(1, 2).flatten(2) @ next(p)


def course_layer(p, x, **options):
    x = x + attention_layer(p, x, **options)
    hidden = torch.relu(normalized(p, x) @ next(p) + next(p))
    return x + hidden @ next(p) + next(p)


def transformer(p, x, layers=2):
    x = x.transpose(0, 1) + next(p)[: x.shape[0]]
    for _ in range(layers):
        x = course_layer(p, x)
    return x.transpose(0, 1), torch.zeros_like(x).transpose(0, 1)


def transformer_layer(arrays: dict[str, np.ndarray], attentions: dict, norms: dict) -> dict[str, np.ndarray]:
    found = {}
    for ours, theirs in attentions.items():
        found |= {f"{theirs}.{name}": a for name, a in attention(arrays, f"{ours}.").items()}
    for ours, theirs in norms.items():
        found |= {f"{theirs}.{kind}": arrays[f"{ours}.{kind}"] for kind in ("weight", "bias")}
    for i, theirs in ((0, "linear1"), (3, "linear2")):
        found[f"{theirs}.weight"] = arrays[f"feed_forward.modules.{i}.weight"].T
        found[f"{theirs}.bias"] = arrays[f"feed_forward.modules.{i}.bias"][0]
    return found


def encoder_layer(arrays, theirs):
    norms = {"attention_norm": "norm1", "feed_forward_norm": "norm2"}
    return transformer_layer(arrays, {"attention": "self_attn"}, norms)


def decoder_layer(arrays, theirs):
    attentions = {"attention": "self_attn", "memory_attention": "multihead_attn"}
    norms = {"attention_norm": "norm1", "memory_norm": "norm2", "feed_forward_norm": "norm3"}
    return transformer_layer(arrays, attentions, norms)


@dataclass
class Case:
    """A module of ours, torch's, and inputs.

    `theirs` gets torch.nn; inputs are shapes (random numbers) or arrays (constants, such as labels).
    """

    ours: Callable[..., nn.Module]
    theirs: Callable[[Any], Any]
    inputs: tuple
    translate: Callable[[dict, Any], dict] = in_order
    call_ours: Callable = lambda module, *x: module(*x)
    call_theirs: Callable = lambda module, *x: module(*x)
    keywords: dict = field(default_factory=dict)
    twice: bool = True  # whether the second derivative is not zero everywhere

    def make(self, device) -> tuple[nn.Module, Any]:
        rng = np.random.default_rng(7)
        ours = self.ours(device)
        theirs = self.theirs(torch.nn).double()
        for p in ours.parameters():  # also those that begin as 0 or 1
            p.data = Tensor(rng.uniform(-1, 1, p.shape), dtype="float64", device=device)
        arrays = {name: p.numpy() for name, p in ours.named_parameters()}
        names = {name for name, _ in theirs.named_parameters()}
        translated = self.translate(arrays, theirs)
        assert set(translated) == names
        with torch.no_grad():
            for name, q in theirs.named_parameters():
                q.copy_(torch.tensor(translated[name]))
        return ours, theirs

    def operands(self, device):
        rng = np.random.default_rng(3)
        ours, theirs = [], []
        for x in self.inputs:
            if isinstance(x, tuple):
                a = rng.normal(size=x)
                ours.append(Tensor(a, dtype="float64", device=device))
                theirs.append(torch.tensor(a, requires_grad=True))
            else:
                ours.append(Tensor(x, dtype=x.dtype, device=device, requires_grad=False))
                theirs.append(torch.tensor(x))
        return ours, theirs


def layer(name: str, *args, **kwargs) -> Callable[..., nn.Module]:
    """A module of ours with parameters in float64."""
    return lambda device: getattr(nn, name)(*args, dtype="float64", device=device, **kwargs)


def plain(name: str, *args, **kwargs) -> Callable[..., nn.Module]:
    """A module of ours without parameters."""
    return lambda device: getattr(nn, name)(*args, **kwargs)


def images_loss(module, x, y):
    """torch wants the classes as axis 1."""
    return module(x.movedim(-1, 1), y)


LABELS = np.array([2, 0, 1, 1, 2])
SOME_LABELS = np.array([2, -100, 1, 1, -100])
WEIGHT = np.array([0.5, 2.0, 1.25])
HIDDEN = np.array([[[0, 0, 1]], [[0, 1, 1]]], dtype=bool)  # of two examples, the keys that are padding
LATER = np.triu(np.ones((4, 4), dtype=bool), 1)
OTHER_FEATURES = layer("AttentionLayer", 6, 2, 3, k_features=4, v_features=3, out_features=5)
TORCHS = {"prenorm": False, "bias": True}  # how an AttentionLayer is torch's
RNN, LSTM, GRU = "RNN", "LSTM", "GRU"

CASES = {
    "Linear": Case(layer("Linear", 3, 4), lambda t: t.Linear(3, 4), ((5, 3),)),
    "Linear of 4 axes": Case(layer("Linear", 3, 4), lambda t: t.Linear(3, 4), ((2, 1, 5, 3),)),
    "Identity": Case(plain("Identity"), lambda t: t.Identity(), ((2, 3),), twice=False),
    "Flatten": Case(plain("Flatten"), lambda t: t.Flatten(), ((2, 3, 4),), twice=False),
    "ReLU": Case(plain("ReLU"), lambda t: t.ReLU(), ((2, 3),), twice=False),
    "LeakyReLU": Case(plain("LeakyReLU", 0.2), lambda t: t.LeakyReLU(0.2), ((2, 3),), twice=False),
    "GELU": Case(plain("GELU"), lambda t: t.GELU(), ((2, 3),)),
    "GELU tanh": Case(plain("GELU", "tanh"), lambda t: t.GELU("tanh"), ((2, 3),)),
    "Tanh": Case(plain("Tanh"), lambda t: t.Tanh(), ((2, 3),)),
    "Sigmoid": Case(plain("Sigmoid"), lambda t: t.Sigmoid(), ((2, 3),)),
    "Softmax": Case(plain("Softmax"), lambda t: t.Softmax(-1), ((2, 3),)),
    "Softmax of axis 0": Case(plain("Softmax", 0), lambda t: t.Softmax(0), ((2, 3),)),
    "Sequential": Case(
        lambda device: nn.Sequential(layer("Linear", 3, 4)(device), nn.Tanh()),
        lambda t: t.Sequential(t.Linear(3, 4), t.Tanh()),
        ((5, 3),),
    ),
    "Residual": Case(
        lambda device: nn.Residual(layer("Linear", 3, 3)(device)),
        lambda t: t.Linear(3, 3),
        ((5, 3),),
        call_theirs=lambda module, x: module(x) + x,
    ),
    "Dropout": Case(lambda device: nn.Dropout().eval(), lambda t: t.Dropout().eval(), ((2, 3),), twice=False),
    "BatchNorm1d": Case(layer("BatchNorm1d", 3), lambda t: t.BatchNorm1d(3), ((5, 3),)),
    "BatchNorm2d": Case(layer("BatchNorm2d", 3), lambda t: t.BatchNorm2d(3), ((2, 3, 2, 4),)),
    "BatchNorm2d in use": Case(
        lambda device: layer("BatchNorm2d", 3)(device).eval(),
        lambda t: t.BatchNorm2d(3).eval(),
        ((2, 3, 2, 4),),
    ),
    "LayerNorm1d": Case(layer("LayerNorm1d", 4), lambda t: t.LayerNorm(4), ((2, 4),)),
    "LayerNorm1d of 3 axes": Case(layer("LayerNorm1d", 4), lambda t: t.LayerNorm(4), ((2, 3, 4),)),
    "GroupNorm": Case(layer("GroupNorm", 2, 4), lambda t: t.GroupNorm(2, 4), ((3, 4, 2, 5),)),
    "GroupNorm of 2 axes": Case(layer("GroupNorm", 2, 6), lambda t: t.GroupNorm(2, 6), ((3, 6),)),
    "Conv": Case(layer("Conv", 2, 3, 3), lambda t: t.Conv2d(2, 3, 3, padding=1), ((2, 2, 4, 5),)),
    "Conv with steps": Case(
        layer("Conv", 3, 2, 5, stride=2, bias=False),
        lambda t: t.Conv2d(3, 2, 5, stride=2, padding=2, bias=False),
        ((2, 3, 7, 6),),
    ),
    "Conv without padding": Case(
        layer("Conv", 1, 2, 2, stride=3, padding=0), lambda t: t.Conv2d(1, 2, 2, stride=3), ((1, 1, 6, 7),)
    ),
    "Conv with an oblong kernel": Case(
        layer("Conv", 2, 3, (3, 2), stride=(1, 2), padding=(1, 0)),
        lambda t: t.Conv2d(2, 3, (3, 2), stride=(1, 2), padding=(1, 0)),
        ((2, 2, 4, 5),),
    ),
    "MaxPool2d of oblong windows": Case(
        plain("MaxPool2d", (2, 3), (2, 1), (1, 0)),
        lambda t: t.MaxPool2d((2, 3), (2, 1), (1, 0)),
        ((2, 2, 5, 6),),
        twice=False,
    ),
    "AvgPool2d of oblong windows": Case(
        plain("AvgPool2d", (2, 3)), lambda t: t.AvgPool2d((2, 3)), ((2, 2, 5, 6),), twice=False
    ),
    "MaxPool2d": Case(plain("MaxPool2d", 2), lambda t: t.MaxPool2d(2), ((2, 3, 4, 5),), twice=False),
    "MaxPool2d that overlaps": Case(
        plain("MaxPool2d", 3, 2, 1), lambda t: t.MaxPool2d(3, 2, 1), ((2, 2, 5, 6),), twice=False
    ),
    "AvgPool2d": Case(plain("AvgPool2d", 2), lambda t: t.AvgPool2d(2), ((2, 3, 4, 5),), twice=False),
    "AvgPool2d that overlaps": Case(
        plain("AvgPool2d", 3, 1, 1), lambda t: t.AvgPool2d(3, 1, 1), ((2, 2, 5, 6),), twice=False
    ),
    "SoftmaxLoss": Case(plain("SoftmaxLoss"), lambda t: t.CrossEntropyLoss(), ((5, 3), LABELS)),
    "CrossEntropyLoss": Case(plain("CrossEntropyLoss"), lambda t: t.CrossEntropyLoss(), ((5, 3), LABELS)),
    "CrossEntropyLoss with all": Case(
        plain("CrossEntropyLoss", label_smoothing=0.1, weight=WEIGHT),
        lambda t: t.CrossEntropyLoss(label_smoothing=0.1, weight=torch.tensor(WEIGHT)),
        ((5, 3), SOME_LABELS),
    ),
    "CrossEntropyLoss that ignores": Case(
        plain("CrossEntropyLoss", ignore_index=1),
        lambda t: t.CrossEntropyLoss(ignore_index=1),
        ((5, 3), LABELS),
    ),
    "CrossEntropyLoss of images": Case(
        plain("CrossEntropyLoss", label_smoothing=0.2),
        lambda t: t.CrossEntropyLoss(label_smoothing=0.2),
        ((2, 2, 2, 3), np.array([[[0, 1], [-100, 2]], [[1, 1], [2, 0]]])),
        call_theirs=images_loss,
    ),
    "MSELoss": Case(plain("MSELoss"), lambda t: t.MSELoss(), ((2, 3), (2, 3))),
    "BCEWithLogitsLoss": Case(
        plain("BCEWithLogitsLoss"), lambda t: t.BCEWithLogitsLoss(), ((2, 3), np.array([[0, 1, 0.25]] * 2))
    ),
    "RNNCell": Case(layer("RNNCell", 3, 4), lambda t: t.RNNCell(3, 4), ((2, 3), (2, 4))),
    "RNNCell with relu": Case(
        layer("RNNCell", 3, 4, False, "relu"), lambda t: t.RNNCell(3, 4, False, "relu"), ((2, 3), (2, 4))
    ),
    "LSTMCell": Case(
        layer("LSTMCell", 3, 4),
        lambda t: t.LSTMCell(3, 4),
        ((2, 3), (2, 4), (2, 4)),
        call_ours=lambda cell, x, h, c: cell(x, (h, c)),
        call_theirs=lambda cell, x, h, c: cell(x, (h, c)),
    ),
    "GRUCell": Case(layer("GRUCell", 3, 4), lambda t: t.GRUCell(3, 4), ((2, 3), (2, 4))),
    "GRUCell without bias": Case(
        layer("GRUCell", 3, 4, bias=False), lambda t: t.GRUCell(3, 4, bias=False), ((2, 3), (2, 4))
    ),
    "RNN": Case(layer("RNN", 3, 4), lambda t: t.RNN(3, 4), ((5, 2, 3), (1, 2, 4))),
    "RNN of 2 layers": Case(
        layer("RNN", 3, 4, 2, nonlinearity="relu"), lambda t: t.RNN(3, 4, 2, "relu"), ((3, 2, 3), (2, 2, 4))
    ),
    "LSTM": Case(layer("LSTM", 3, 4), lambda t: t.LSTM(3, 4), ((3, 2, 3),)),
    "LSTM of 2 layers": Case(
        layer("LSTM", 3, 4, 2),
        lambda t: t.LSTM(3, 4, 2),
        ((3, 2, 3), (2, 2, 4), (2, 2, 4)),
        call_ours=lambda lstm, x, h, c: lstm(x, (h, c)),
        call_theirs=lambda lstm, x, h, c: lstm(x, (h, c)),
    ),
    "GRU": Case(layer("GRU", 3, 4, bias=False), lambda t: t.GRU(3, 4, bias=False), ((3, 2, 3),)),
    "GRU of 2 layers": Case(layer("GRU", 3, 4, 2), lambda t: t.GRU(3, 4, 2), ((3, 2, 3), (2, 2, 4))),
    "Embedding": Case(
        layer("Embedding", 5, 3),
        lambda t: t.Embedding(5, 3),
        (np.array([[0, 4, 4], [1, 0, 4]]),),
        as_they_are,
        twice=False,
    ),
    "MultiHeadAttention": Case(
        layer("MultiHeadAttention"),
        written_out(layer("MultiHeadAttention"), lambda p, q, k, v: weighted_mean(q, k, v)),
        ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 5)),
    ),
    "AttentionLayer": Case(
        OTHER_FEATURES,
        written_out(OTHER_FEATURES, attention_layer),
        ((2, 3, 6), (2, 5, 4), (2, 5, 3)),
        as_they_are,
    ),
    "AttentionLayer to everything": Case(
        layer("AttentionLayer", 6, 3, 4, causal=False),
        written_out(
            layer("AttentionLayer", 6, 3, 4), lambda p, x: attention_layer(p, x, heads=3, causal=False)
        ),
        ((2, 3, 6),),
        as_they_are,
    ),
    "AttentionLayer as torch has it": Case(
        layer("AttentionLayer", 6, 2, 3, causal=False, **TORCHS),
        lambda t: t.MultiheadAttention(6, 2, batch_first=True),
        ((2, 4, 6),),
        lambda arrays, theirs: attention(arrays),
        call_ours=lambda module, x: module(x, return_probs=True),
        call_theirs=lambda module, x: module(x, x, x, average_attn_weights=False),
    ),
    "AttentionLayer to another": Case(
        layer("AttentionLayer", 6, 3, 2, causal=False, **TORCHS),
        lambda t: t.MultiheadAttention(6, 3, batch_first=True),
        ((2, 4, 6), (2, 3, 6), (2, 3, 6)),
        lambda arrays, theirs: attention(arrays),
        call_ours=lambda module, q, k, v: module(q, k, v, mask=HIDDEN),
        call_theirs=lambda module, q, k, v: module(q, k, v, torch.tensor(HIDDEN[:, 0]))[0],
    ),
    "AttentionLayer to earlier places": Case(
        layer("AttentionLayer", 4, 1, 4, **TORCHS),
        lambda t: t.MultiheadAttention(4, 1, batch_first=True),
        ((2, 4, 4),),
        lambda arrays, theirs: attention(arrays),
        call_theirs=lambda module, x: module(x, x, x, attn_mask=torch.tensor(LATER))[0],
    ),
    "AttentionLayer with a mask that is learned": Case(
        layer("AttentionLayer", 4, 2, 2, causal=False, **TORCHS),
        lambda t: t.MultiheadAttention(4, 2, batch_first=True),
        ((2, 3, 4), (3, 3)),
        lambda arrays, theirs: attention(arrays),
        call_ours=lambda module, x, mask: module(x, mask=mask),
        call_theirs=lambda module, x, mask: module(x, x, x, attn_mask=mask)[0],
    ),
    "TransformerLayer": Case(
        layer("TransformerLayer", 6, 2, 4, 5, causal=True),
        written_out(layer("TransformerLayer", 6, 2, 4, 5), course_layer),
        ((2, 3, 6),),
        as_they_are,
    ),
    "Transformer": Case(
        layer("Transformer", 6, 5, 2, num_head=2, dim_head=3, sequence_len=7),
        written_out(layer("Transformer", 6, 5, 2, num_head=2, dim_head=3, sequence_len=7), transformer),
        ((4, 2, 6),),
        as_they_are,
    ),
    "TransformerEncoderLayer": Case(
        layer("TransformerEncoderLayer", 6, 2, 5),
        lambda t: t.TransformerEncoderLayer(6, 2, 5, 0.0, "gelu", batch_first=True, norm_first=True),
        ((2, 3, 6),),
        encoder_layer,
    ),
    "TransformerEncoderLayer as it was": Case(
        layer("TransformerEncoderLayer", 6, 2, 5, activation=nn.ReLU(), pre_norm=False),
        lambda t: t.TransformerEncoderLayer(6, 2, 5, 0.0, batch_first=True),
        ((2, 4, 6),),
        encoder_layer,
        call_ours=lambda module, x: module(x, causal=True),
        call_theirs=lambda module, x: module(x, src_mask=torch.tensor(LATER)),
    ),
    "TransformerDecoderLayer": Case(
        layer("TransformerDecoderLayer", 6, 2, 5),
        lambda t: t.TransformerDecoderLayer(6, 2, 5, 0.0, "gelu", batch_first=True, norm_first=True),
        ((2, 4, 6), (2, 3, 6)),
        decoder_layer,
        call_ours=lambda module, x, memory: module(x, memory, memory_mask=HIDDEN),
        call_theirs=lambda module, x, memory: module(
            x, memory, tgt_mask=torch.tensor(LATER), memory_key_padding_mask=torch.tensor(HIDDEN[:, 0])
        ),
    ),
    "TransformerDecoderLayer as it was": Case(
        layer("TransformerDecoderLayer", 6, 3, 5, pre_norm=False),
        lambda t: t.TransformerDecoderLayer(6, 3, 5, 0.0, "gelu", batch_first=True),
        ((2, 4, 6), (2, 3, 6)),
        decoder_layer,
        call_ours=lambda module, x, memory: module(x, memory, causal=False),
    ),
}

# Tested without torch, which has no such modules.
WITHOUT_TORCH = {"LearnedEncoding", "SinusoidalEncoding"}


def test_no_layer_is_forgotten():
    modules = {name for name in nn.__all__ if name not in ("Module", "Parameter", "causal_mask")}
    assert modules == {name.split(" ")[0] for name in CASES} | WITHOUT_TORCH


def tensors_of(result) -> list:
    """The Tensors in a result, which may be a tuple of tuples."""
    if isinstance(result, tuple):
        return [x for part in result for x in tensors_of(part)]
    return [result]


def run(case: Case, device) -> tuple[SimpleNamespace, SimpleNamespace]:
    """Outputs, and a sum of them with weights, as a number to differentiate; ours and torch's."""
    ours, theirs = case.make(device)
    xs, xs_ = case.operands(device)
    outputs = tensors_of(case.call_ours(ours, *xs))
    outputs_ = tensors_of(case.call_theirs(theirs, *xs_))
    rng = np.random.default_rng(11)
    weights = [rng.normal(size=out.shape) for out in outputs]
    total, total_ = 0, 0
    for out, out_, w in zip(outputs, outputs_, weights, strict=True):
        total = total + (out * Tensor(w, dtype="float64", device=device)).sum()
        total_ = total_ + (out_ * torch.tensor(w)).sum()
    return (
        SimpleNamespace(module=ours, inputs=[x for x in xs if x.requires_grad], outputs=outputs, total=total),
        SimpleNamespace(
            module=theirs, inputs=[x for x in xs_ if x.requires_grad], outputs=outputs_, total=total_
        ),
    )


def close(actual, expected):
    expected = expected.detach().numpy() if isinstance(expected, torch.Tensor) else expected
    assert actual.shape == expected.shape
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12 * scale)


@pytest.mark.parametrize("device", CPUS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients(name, device, mode):
    case = CASES[name]
    ours, theirs = run(case, device)
    for out, out_ in zip(ours.outputs, theirs.outputs, strict=True):
        assert (out.dtype, out.device) == ("float64", device)
        close(out.numpy(), out_)
    ours.total.backward()
    theirs.total.backward()
    for x, x_ in zip(ours.inputs, theirs.inputs, strict=True):
        close(x.grad.numpy(), x_.grad)
    by_parameters = {name: p.grad.numpy() for name, p in ours.module.named_parameters()}
    translated = case.translate(by_parameters, theirs.module)
    for name, q in theirs.module.named_parameters():
        close(translated[name], q.grad)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.twice])
def test_gradients_of_gradients(name):
    """Of the squares of the gradients, which depend on the outputs' second derivatives."""
    case = CASES[name]
    # torch's fast attention has no second derivative
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        ours, theirs = run(case, CPUS[0])
    parameters, parameters_ = ours.module.parameters(), list(theirs.module.parameters())
    first = gradients(ours.total, [*ours.inputs, *parameters])
    squares = sum((g * g).sum() for g in first)
    squares.backward()
    first_ = torch.autograd.grad(theirs.total, [*theirs.inputs, *parameters_], create_graph=True)
    sum((g * g).sum() for g in first_).backward()
    for x, x_ in zip(ours.inputs, theirs.inputs, strict=True):
        close(x.grad.numpy(), x_.grad)
    by_parameters = {
        name: np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        for name, p in ours.module.named_parameters()
    }
    translated = case.translate(by_parameters, theirs.module)
    for name, q in theirs.module.named_parameters():
        close(translated[name], np.zeros(q.shape) if q.grad is None else q.grad)
