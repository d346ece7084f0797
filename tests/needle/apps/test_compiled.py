"""The applications' steps of training, compiled: they learn what they learn as they are.

The numbers are float64, because roundings of gradients that ought to be 0 are what Adam divides by.
"""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.apps import language_model, mlp_resnet
from needle.apps.gpt import GPT
from needle.apps.mlp_resnet import MLPResNet
from needle.apps.models import CNN, LanguageModel, ResNet9
from needle.apps.simple_ml import TwoLayers, recurrent
from needle.apps.training import learning_step
from needle.autograd import Tensor

STEPS = 10
CLASSES = 5


def images(*shape):
    rng = np.random.default_rng(1)
    return [
        (Tensor(rng.random(shape), dtype="float64", requires_grad=False), rng.integers(0, CLASSES, shape[0]))
        for _ in range(STEPS)
    ]


def words(*shape):
    rng = np.random.default_rng(1)
    draws = [rng.integers(0, CLASSES, (2, *shape)) for _ in range(STEPS)]
    return [(Tensor(X, requires_grad=False), y.reshape(-1)) for X, y in draws]


def language(kind):
    return (
        lambda: LanguageModel(3, CLASSES, 4, 1, kind, seq_len=3, dtype="float64"),
        recurrent,
        words(3, 2),
    )


def flat_gpt(model):
    return lambda X: model(X).reshape((-1, CLASSES))


#: How a model is made, what a step calls, and batches.
MODELS = {
    "TwoLayers": (lambda: TwoLayers(6, 4, CLASSES), lambda model: model, images(4, 6)),
    "MLPResNet": (lambda: MLPResNet(6, 4, 2, CLASSES), lambda model: model, images(4, 6)),
    "CNN": (lambda: CNN(4, 2, CLASSES), lambda model: model, images(3, 1, 4, 4)),
    "ResNet9": (ResNet9, lambda model: model, images(2, 3, 32, 32)[:3]),
    **{kind: language(kind) for kind in ("rnn", "lstm", "gru", "transformer")},
    "GPT": (lambda: GPT(CLASSES, 4, 4, 1, 2, dropout=0.3, dtype="float64"), flat_gpt, words(2, 4)),
}
OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.1, momentum=0.5),
    "Adam": lambda params: optim.Adam(params, lr=0.01),
    "AdamW": lambda params: optim.AdamW(params, lr=0.01, weight_decay=0.01),
}
FAST = {("TwoLayers", "SGD"), ("MLPResNet", "AdamW")}
#: Every model with one optimiser in turn, and the smallest model with all.
SLOW = [*zip(MODELS, cycle(OPTIMIZERS), strict=False), ("TwoLayers", "Adam"), ("TwoLayers", "AdamW")]


def trained(name, optimizer, device, jit):
    """The losses, and all that the model and its optimiser remember after the training."""
    make, logits_of, batches = MODELS[name]
    np.random.seed(0)
    model = make().to(device)
    for tensor in model._tensors_by_name().values():
        tensor.cached_data = Tensor(tensor.numpy(), dtype="float64", device=device).cached_data
    opt = OPTIMIZERS[optimizer](model.parameters())
    step = learning_step(logits_of(model), nn.SoftmaxLoss(), opt, clip=1.0)
    step = ndl.jit(step) if jit else step
    losses, state = [], []
    for number, (X, y) in enumerate(batches):
        opt.lr = 0.01 / (number + 1)
        _, loss, *state = step(X.to(device), Tensor(y, device=device, requires_grad=False), *state)
        losses.append(loss.numpy().item())
    found = {key: x.numpy() for key, x in model.state_dict().items()}
    for i, p in enumerate(opt.params):
        found |= {f"{key} {i}": x.numpy() for key, x in opt.state.get(p, {}).items()}
    return losses, found


@pytest.mark.parametrize(
    ("name", "optimizer", "device"),
    [
        # To compile the device's kernels of float64 would take longer than both trainings.
        *[(*pair, ndl.cpu_numpy()) for pair in sorted(FAST)],
        *[pytest.param(*case, ndl.cpu(), marks=pytest.mark.slow) for case in SLOW],
    ],
    ids=str,
)
def test_a_compiled_training_is_the_same(name, optimizer, device):
    losses, found = trained(name, optimizer, device, jit=True)
    expected, right = trained(name, optimizer, device, jit=False)
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert found.keys() == right.keys()
    for key, value in right.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-7, atol=1e-9, err_msg=key)


def run(app, *argv):
    return app.main([*SMALL[app], "--epochs", "1", "--quiet", *argv])


SMALL = {
    mlp_resnet: ["--batch-size", "200", "--hidden-dim", "8", "--num-blocks", "1"],
    language_model: ["--batch-size", "400", "--seq-len", "8", "--hidden-size", "4", "--embedding-size", "4"],
}


@pytest.mark.parametrize(
    ("argv", "how"),
    [
        (["--jit"], [{"background": True}]),
        (["--jit", "--device", "cpu_numpy"], []),  # its programs are there to be checked, and slow
        (["--no-jit"], []),
        ([], []),
    ],
)
def test_which_options_compile(argv, how, monkeypatch):
    found = []
    monkeypatch.setattr(ndl, "jit", lambda step, **options: found.append(options) or step)
    run(mlp_resnet, *argv)
    assert found == how


@pytest.mark.slow
@pytest.mark.parametrize("app", [mlp_resnet, language_model])
def test_a_command_that_compiles_gets_as_far(app, monkeypatch):
    expected = run(app)
    jit = ndl.jit
    monkeypatch.setattr(ndl, "jit", lambda step, background: jit(step))  # compiled from the first step on
    found = run(app, "--jit")
    # Sums are rounded in another order, so one image of 355 may be on the other side of a boundary.
    assert found == pytest.approx(expected, rel=1e-2, abs=0.01)
