"""Losses and normalisations, differentiated with respect to each of their arguments that is a Tensor.

Every function is checked at numbers that Hypothesis draws, among them many that are exactly 0 or 1, or equal:
there a guard against a value could change a derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import needle as ndl
from needle import nn
from needle.apps.simple_ml import softmax_loss
from needle.autograd import Tensor, gradients

ROW, FEATURES, SAME, IMAGE = "a row", "a number for each feature", "as the first", "images"
EPS = 0.1  # of normalisations: where all numbers are equal, a small one makes slopes steep


class Case(NamedTuple):
    """A function, its twin in torch, and the shapes of the arguments."""

    function: Callable
    torch: Callable[..., Callable] | None
    shapes: tuple[str, ...]


def labels_of(rows: int, classes: int) -> np.ndarray:
    return (np.arange(rows) * 2) % classes


def layer(make: Callable[[int], Any], training: bool = True) -> Callable:
    """A layer as a function of its input, its weight and its bias."""

    def function(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        module = make(x.shape[1])
        module.training = training
        module.weight, module.bias = weight, bias
        return module(x)

    return function


def running(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Batch norm in use, as a function of its running mean and variance, too."""
    module = nn.BatchNorm1d(x.shape[1], eps=EPS)
    module.training = False
    module.weight, module.bias, module.running_mean, module.running_var = weight, bias, mean, variance**2
    return module(x)


def cross_entropy(**options: Any) -> Callable:
    return lambda logits: nn.CrossEntropyLoss(**options)(logits, labels_of(*logits.shape))


def weighted(logits: Tensor) -> Tensor:
    return cross_entropy(weight=np.arange(logits.shape[1]) + 1.0, label_smoothing=0.2)(logits)


def torch_cross_entropy(torch: Any, **options: Any) -> Callable:
    return lambda z: torch.nn.functional.cross_entropy(z, torch.tensor(labels_of(*z.shape)), **options)


CASES = {
    "softmax_loss": Case(
        softmax_loss,
        lambda torch: lambda z, y: (torch.logsumexp(z, 1).sum() - (z * y).sum()) / len(z),
        (ROW, SAME),
    ),
    "SoftmaxLoss": Case(
        lambda z: nn.SoftmaxLoss()(z, labels_of(*z.shape)), lambda torch: torch_cross_entropy(torch), (ROW,)
    ),
    "CrossEntropyLoss": Case(cross_entropy(), lambda torch: torch_cross_entropy(torch), (ROW,)),
    "smoothed": Case(
        cross_entropy(label_smoothing=0.3),
        lambda torch: torch_cross_entropy(torch, label_smoothing=0.3),
        (ROW,),
    ),
    "weighted": Case(weighted, None, (ROW,)),
    "MSELoss": Case(nn.MSELoss(), lambda torch: torch.nn.MSELoss(), (ROW, SAME)),
    "BCEWithLogitsLoss": Case(
        nn.BCEWithLogitsLoss(), lambda torch: torch.nn.BCEWithLogitsLoss(), (ROW, SAME)
    ),
    "softmax": Case(ndl.softmax, lambda torch: lambda x: torch.softmax(x, -1), (ROW,)),
    "logsoftmax": Case(ndl.logsoftmax, lambda torch: lambda x: torch.log_softmax(x, -1), (ROW,)),
    "logsumexp": Case(lambda x: ndl.logsumexp(x, 0), lambda torch: lambda x: torch.logsumexp(x, 0), (ROW,)),
    "standardize": Case(lambda x: sum_of_all(ndl.standardize(x, -1, EPS)), None, (ROW,)),
    "BatchNorm1d": Case(
        layer(lambda dim: nn.BatchNorm1d(dim, EPS)),
        lambda torch: lambda x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, True, eps=EPS),
        (ROW, FEATURES, FEATURES),
    ),
    "BatchNorm1d in use": Case(running, None, (ROW, FEATURES, FEATURES, FEATURES, FEATURES)),
    "BatchNorm2d": Case(
        layer(lambda dim: nn.BatchNorm2d(dim, EPS)),
        lambda torch: lambda x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, True, eps=EPS),
        (IMAGE, FEATURES, FEATURES),
    ),
    "LayerNorm1d": Case(
        layer(lambda dim: nn.LayerNorm1d(dim, EPS)),
        lambda torch: lambda x, w, b: torch.nn.functional.layer_norm(x, x.shape[1:], w, b, EPS),
        (ROW, FEATURES, FEATURES),
    ),
    "GroupNorm": Case(
        layer(lambda dim: nn.GroupNorm(1, dim, EPS)),
        lambda torch: lambda x, w, b: torch.nn.functional.group_norm(x, 1, w, b, EPS),
        (IMAGE, FEATURES, FEATURES),
    ),
}


def sum_of_all(parts: Any) -> Tensor:
    """Of a result with several parts, a number on which each has its own influence."""
    return sum(((part * part).sum() * (i + 1) for i, part in enumerate(parts)), Tensor(0.0, dtype="float64"))


NUMBERS = st.sampled_from([0.0, 1.0, -1.0]) | st.floats(-3, 3).map(lambda x: round(x, 3))


@st.composite
def arguments(draw: Any, shapes: tuple[str, ...]) -> list[np.ndarray]:
    rows, features = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    known = {
        ROW: (rows, features),
        SAME: (rows, features),
        FEATURES: (features,),
        IMAGE: (rows, features, 2, 1),
    }
    return [draw(arrays.arrays("float64", known[shape], elements=NUMBERS)) for shape in shapes]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=15)
@given(data=st.data())
def test_against_central_differences(name, data):
    f, _, shapes = CASES[name]
    values = data.draw(arguments(shapes))
    ndl.gradcheck(f, *[Tensor(x, dtype="float64") for x in values], order=1)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.torch is not None])
def test_against_torch(name, torch):
    f, make_twin, shapes = CASES[name]
    twin = make_twin(torch)

    @settings(max_examples=15)
    @given(values=arguments(shapes))
    def compare(values):
        xs = [Tensor(x, dtype="float64") for x in values]
        ts = [torch.tensor(x, requires_grad=True) for x in values]
        y, t = f(*xs), twin(*ts)
        np.testing.assert_allclose(y.numpy(), t.detach().numpy(), rtol=1e-13, atol=1e-14)
        weights = np.arange(1.0, y.size + 1).reshape(y.shape)
        found = gradients(y, xs, Tensor(weights, dtype="float64"))
        expected = torch.autograd.grad(t, ts, torch.tensor(weights))
        for by_x, by_t in zip(found, expected, strict=True):
            np.testing.assert_allclose(by_x.numpy(), by_t.numpy(), rtol=1e-11, atol=1e-12)

    compare()


def test_every_loss_is_here():
    losses = {name for name in nn.__all__ if name.endswith("Loss")}
    norms = {name for name in nn.__all__ if "Norm" in name}
    assert losses | norms <= set(CASES)
