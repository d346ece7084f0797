"""Training under `jit`: every module, loss and optimiser, and every model of the applications.

Two models that begin with the same numbers learn side by side, one compiled and one not. After each step they
have the same loss, parameters, buffers and states of the optimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.apps import gpt, mlp_resnet, models, simple_ml
from needle.autograd import Tensor
from needle.compiler import lower

from ...training import Training
from ..test_built_before_computed import LOSSES, MODULES, OPTIMISERS
from .conftest import assert_close, count_of, jit

#: How the names of parameters end that move every key of an attention in the same way. All scores of a
#: query then move by the same, and its softmax stays as it is: in exact arithmetic, the gradients of these
#: are 0. What is computed for them is rounding, from which Adam and RMSProp make steps as long as any.
WITHOUT_EFFECT = ("prenorm_k.bias", "k_projection.bias")

# Adam divides a gradient by its own size. Some are hardly more than rounding, such as that of a weight behind
# a GELU far on its negative side; with this `eps`, well above rounding, their steps are short.
EPS = 1e-4

# Roundings grow from step to step.
FLOAT32 = 5e-5


class Side(Training):
    """A training in which parameters without effect do not learn."""

    def __init__(self, model: nn.Module, loss_of: Callable, make: Callable[[list], optim.Optimizer]):
        super().__init__(model, loss_of, make)
        named = list(model.named_parameters())
        self.optimizer = make([p for name, p in named if not name.endswith(WITHOUT_EFFECT)])
        if isinstance(self.optimizer, optim.Adam):
            self.optimizer.eps = EPS
        self.without_effect = {name: p for name, p in named if name.endswith(WITHOUT_EFFECT)}


def assert_same_steps(
    make: Callable[[], Side], batches: list[tuple], tolerance: float, plain: bool = True, programs: int = 1
) -> None:
    """Both sides go through the batches."""
    ours, theirs = make(), make()
    compiled = jit(ours.step, plain=plain)
    step, largest = theirs.optimizer.step, []

    def watched_step() -> None:
        largest.append(largest_gradient(theirs.model))
        step()

    theirs.optimizer.step = watched_step
    for number, batch in enumerate(batches):
        loss, expected = compiled(*batch), theirs.step(*batch)
        assert_close(loss.numpy(), expected.numpy(), tolerance, f"loss {number}", least=0.1)
        found, right = ours.state(), theirs.state()
        assert found.keys() == right.keys()
        for name, x in right.items():
            assert_close(found[name], x, tolerance, f"{name} after step {number}", least=0.1)
        rounding = 1e-6 * largest[-1]
        for side in (ours, theirs):
            for name, p in side.without_effect.items():
                assert np.abs(p.grad.numpy()).max() < rounding, name
    assert count_of(compiled) == programs


def largest_gradient(model: nn.Module) -> float:
    grads = [p.grad.numpy() for p in model.parameters() if p.grad is not None]
    return max([np.abs(grad).max() for grad in grads], default=0.0)


# Every module, loss and optimiser


class Headed(nn.Module):
    """A module, and a linear layer that makes logits of shape (5, 4) out of what it returns."""

    def __init__(self, name: str):
        make, self._call = MODULES[name]
        self.module = make()
        size = self._call(self.module).size
        self.module = make()  # its random numbers begin anew
        self.head = nn.Linear(size, 20, rng=3)

    def forward(self) -> Tensor:
        return self.head(ndl.tanh(self._call(self.module)).reshape((1, -1))).reshape((5, 4))


def side_of(module: str, loss: str, optimiser: str) -> Side:
    return Side(Headed(module), lambda model: LOSSES[loss](model()), OPTIMISERS[optimiser])


@pytest.mark.parametrize("number", range(len(MODULES)), ids=list(MODULES))
def test_every_module(number):
    """Each with one loss and one optimiser, which change from module to module."""
    module = list(MODULES)[number]
    loss, optimiser = list(LOSSES)[number % len(LOSSES)], list(OPTIMISERS)[number // 2 % len(OPTIMISERS)]
    assert_same_steps(lambda: side_of(module, loss, optimiser), [()] * 3, FLOAT32)


@pytest.mark.parametrize(("loss", "optimiser"), list(zip(LOSSES, OPTIMISERS, strict=True)))
def test_every_loss_and_every_optimiser(loss, optimiser):
    assert_same_steps(lambda: side_of("Sequential", loss, optimiser), [()] * 4, FLOAT32)


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("module", MODULES)
def test_every_module_with_every_loss_and_optimiser(module, loss, optimiser):
    assert_same_steps(lambda: side_of(module, loss, optimiser), [()] * 3, FLOAT32)


# Batches as arguments, gradients clipped, learning rates that change


def small_side(**options: Any) -> Side:
    model = nn.Sequential(nn.Linear(3, 5, rng=0), nn.LayerNorm1d(5), nn.GELU(), nn.Linear(5, 4, rng=1))
    return Side(
        model,
        lambda model, x, y: nn.SoftmaxLoss()(model(x), y),
        lambda params: optim.Adam(params, lr=0.1, **options),
    )


def small_batches(count: int, rows: int = 6) -> list[tuple[Tensor, Tensor]]:
    rng = np.random.default_rng(5)
    return [
        (
            Tensor(rng.normal(size=(rows, 3)), requires_grad=False),
            Tensor(rng.integers(0, 4, rows), requires_grad=False),
        )
        for _ in range(count)
    ]


def test_batches():
    assert_same_steps(small_side, small_batches(5), FLOAT32)


def test_a_smaller_last_batch():
    batches = small_batches(3) + small_batches(1, rows=2) + small_batches(3)
    assert_same_steps(small_side, batches, FLOAT32, programs=2)


class Clipped(Side):
    def step(self, *batch: Any) -> Tensor:
        loss = self.loss_of(self.model, *batch)
        self.optimizer.reset_grad()
        loss.backward()
        self.optimizer.clip_grad_norm(0.1)
        self.optimizer.step()
        return loss


def test_clipped_gradients():
    def make():
        side = small_side()
        return Clipped(side.model, side.loss_of, OPTIMISERS["SGD"])

    assert_same_steps(make, small_batches(4), FLOAT32)


class TwoSteps(Side):
    """Two optimisers, each of half of the parameters, and two steps in one call."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        params = self.model.parameters()
        self.optimizer = optim.SGD(params[:3], lr=0.1, momentum=0.5)
        self.other = optim.Adam(params[3:], lr=0.01)

    def step(self, *batch: Any) -> Tensor:
        total: Any = 0
        for _ in range(2):
            loss = self.loss_of(self.model, *batch)
            loss.backward()
            self.optimizer.step()
            self.other.step()
            total = total + loss
        return total


def test_two_optimisers_and_two_steps_in_one_call():
    def make():
        side = small_side()
        return TwoSteps(side.model, side.loss_of, OPTIMISERS["Adam"])

    assert_same_steps(make, small_batches(4), FLOAT32)


class OneOfTwo(Side):
    """Only the last layer learns."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.optimizer = optim.Adam(self.model.modules[3].parameters(), lr=0.1)


def test_parameters_that_do_not_learn():
    def make():
        side = small_side()
        return OneOfTwo(side.model, side.loss_of, OPTIMISERS["Adam"])

    assert_same_steps(make, small_batches(3), FLOAT32)


def test_shared_parameters():
    """An embedding that is also the last layer."""

    class Tied(nn.Module):
        def __init__(self):
            self.embedding = nn.Embedding(6, 4, rng=0)
            self.linear = nn.Linear(4, 4, rng=1)

        def forward(self, i):
            return ndl.tanh(self.linear(self.embedding(i))) @ self.embedding.weight.transpose()

    rng = np.random.default_rng(0)
    batches = [
        tuple(Tensor(rng.integers(0, 6, 5), dtype="int64", requires_grad=False) for _ in "xy")
        for _ in range(4)
    ]
    assert_same_steps(
        lambda: Side(Tied(), lambda model, x, y: nn.SoftmaxLoss()(model(x), y), OPTIMISERS["RMSProp"]),
        batches,
        FLOAT32,
    )


class Product(nn.Module):
    """Two matrices whose gradients are products with each other: each is read before it is updated."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.a, self.b = (nn.Parameter(rng.normal(size=(6, 6))) for _ in "ab")

    def forward(self):
        return self.a @ self.b


@pytest.mark.parametrize("optimiser", ["plain", *OPTIMISERS])
def test_a_product_of_parameters(optimiser, monkeypatch):
    """By BLAS, which adds the update of a parameter to it in one go."""
    monkeypatch.setattr(lower, "SMALL", 24)
    make = {**OPTIMISERS, "plain": lambda params: optim.SGD(params, lr=0.1)}[optimiser]
    assert_same_steps(lambda: Side(Product(), lambda model: model().mean(), make), [()] * 3, FLOAT32)


def test_large_layers(monkeypatch):
    """By BLAS, which adds the gradients of weights to them."""
    monkeypatch.setattr(lower, "SMALL", 24)
    make = lambda params: optim.SGD(params, lr=0.1)  # noqa: E731
    assert_same_steps(lambda: Side(small_side().model, small_side().loss_of, make), small_batches(4), FLOAT32)
    assert_same_steps(
        lambda: Side(
            nn.Sequential(*[nn.Linear(3, 3, rng=i) for i in range(3)]),
            lambda model, x, y: (model(x) ** 2).sum(),
            make,
        ),
        small_batches(4),
        FLOAT32,
    )


def test_gradients_of_gradients():
    """A penalty on the length of the input's gradient."""

    def loss_of(model, x, y):
        x = x + ndl.zeros(1, requires_grad=True)
        loss = nn.SoftmaxLoss()(model(x), y)
        (grad,) = ndl.gradients(loss, [x])
        return loss + (grad * grad).sum()

    assert_same_steps(lambda: Side(small_side().model, loss_of, OPTIMISERS["SGD"]), small_batches(3), FLOAT32)


# Every model of the applications


def images(channels: int, side: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(0)
    return (
        Tensor(rng.normal(size=(3, channels, side, side)), requires_grad=False),
        Tensor([1, 0, 3], requires_grad=False),
    )


def words(below: int, *shape: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(0)
    x, y = (Tensor(rng.integers(0, below, shape), dtype="int64", requires_grad=False) for _ in "xy")
    return x, y.reshape((-1,))


def rows(inputs: int) -> tuple[Tensor, Tensor]:
    return Tensor(np.random.default_rng(0).normal(size=(6, inputs)), requires_grad=False), images(1, 1)[1][
        [0, 1, 2, 2, 1, 0]
    ]


def language(kind: str) -> tuple[Callable, Callable, tuple]:
    return (
        lambda: models.LanguageModel(6, 7, 5, 1, seq_model=kind, seq_len=4),
        lambda model, x, y: nn.SoftmaxLoss()(model(x)[0], y),
        words(7, 4, 2),
    )


#: For each model: how to make it, its loss, and a batch.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable, tuple]] = {
    "TwoLayers": (lambda: simple_ml.TwoLayers(5, 8, 4), None, rows(5)),
    "MLPResNet": (lambda: mlp_resnet.MLPResNet(5, 8, 2, 4), None, rows(5)),
    "MLPResNet, layers": (lambda: mlp_resnet.MLPResNet(5, 8, 1, 4, nn.LayerNorm1d, 0.2), None, rows(5)),
    "CNN": (lambda: models.CNN(8, 4, 4), None, images(1, 8)),
    "ResNet9": (lambda: models.ResNet9(), None, images(3, 32)),
    "rnn": language("rnn"),
    "lstm": language("lstm"),
    "gru": language("gru"),
    "transformer": language("transformer"),
    "GPT": (
        lambda: gpt.GPT(7, 5, 8, 1, 2, dropout=0.1),
        lambda model, x, y: nn.SoftmaxLoss()(model(x).reshape((-1, 7)), y),
        words(7, 2, 5),
    ),
}  # type: ignore[dict-item]


def of_images(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return nn.SoftmaxLoss()(model(x), y)


def model_side(name: str, optimiser: str) -> Side:
    make, loss_of, _ = MODELS[name]
    np.random.seed(1)
    model = make()
    for part in model._children():
        if isinstance(part, nn.Dropout):
            part._rng = np.random.default_rng(2)
    side = Side(model, loss_of or of_images, OPTIMISERS[optimiser])
    # The gradient of a bias right before a BatchNorm is 0 but for roundings. Adam would divide it by itself.
    if hasattr(side.optimizer, "eps"):
        side.optimizer.eps = 1e-2
    return side


#: ResNet9 has too many numbers for plain Python, and its source is too long to be compiled in a test.
SMALL_MODELS = [name for name in MODELS if name != "ResNet9"]


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_every_model_with_every_optimiser(name, optimiser):
    """Ten steps, as plain Python."""
    batch = MODELS[name][2]
    assert_same_steps(lambda: model_side(name, optimiser), [batch] * 10, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SMALL_MODELS)), ids=SMALL_MODELS)
def test_every_model_by_numba(number):
    """Ten steps, compiled: each with one optimiser, which changes from model to model."""
    name, optimiser = SMALL_MODELS[number], list(OPTIMISERS)[number % len(OPTIMISERS)]
    batch = MODELS[name][2]
    assert_same_steps(lambda: model_side(name, optimiser), [batch] * 10, 1e-3, plain=False)


@pytest.mark.parametrize("optimiser", [pytest.param("SGD", marks=pytest.mark.slow), "Adam"])
def test_the_source_of_a_large_model(optimiser):
    side = model_side("ResNet9", optimiser)
    batch = MODELS["ResNet9"][2]
    side.step(*batch)  # the optimiser makes its state
    program = jit(side.step).program_for(*batch)
    assert "matmul(" in program.source
    compile(program.source, "<source>", "exec")
