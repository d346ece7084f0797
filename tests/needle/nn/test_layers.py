"""What layers and losses do besides their formulas: states, random numbers, dtypes, and wrong inputs."""

from __future__ import annotations

import gc
import math
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor
from needle.graph import Pending

DEVICES = [d for d in ndl.all_devices() if d.enabled()]


def random(*shape, dtype="float32", seed=0, **kwargs):
    return Tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype, **kwargs)


# What holds for all

LAYERS = {
    "Flatten": (lambda **k: nn.Flatten(), (2, 3, 4), (2, 12)),
    "Flatten of nothing": (lambda **k: nn.Flatten(), (0, 3, 4), (0, 12)),
    "GELU": (lambda **k: nn.GELU(), (2, 3), (2, 3)),
    "LeakyReLU": (lambda **k: nn.LeakyReLU(), (2, 3), (2, 3)),
    "Softmax": (lambda **k: nn.Softmax(), (2, 3), (2, 3)),
    "Residual": (lambda **k: nn.Residual(nn.Linear(3, 3, **k)), (2, 3), (2, 3)),
    "Dropout": (lambda **k: nn.Dropout(), (2, 3), (2, 3)),
    "BatchNorm1d": (lambda **k: nn.BatchNorm1d(3, **k), (4, 3), (4, 3)),
    "BatchNorm2d": (lambda **k: nn.BatchNorm2d(3, **k), (2, 3, 2, 2), (2, 3, 2, 2)),
    "LayerNorm1d": (lambda **k: nn.LayerNorm1d(3, **k), (2, 5, 3), (2, 5, 3)),
    "GroupNorm": (lambda **k: nn.GroupNorm(2, 4, **k), (2, 4, 3), (2, 4, 3)),
    "Conv": (lambda **k: nn.Conv(3, 2, 3, **k), (1, 3, 4, 5), (1, 2, 4, 5)),
    "Conv with steps": (lambda **k: nn.Conv(3, 2, 3, 2, **k), (1, 3, 4, 5), (1, 2, 2, 3)),
    "Conv that is oblong": (lambda **k: nn.Conv(3, 2, (1, 3), (2, 1), **k), (1, 3, 4, 5), (1, 2, 2, 5)),
    "MaxPool2d": (lambda **k: nn.MaxPool2d(2), (1, 2, 4, 5), (1, 2, 2, 2)),
    "MaxPool2d that is oblong": (lambda **k: nn.MaxPool2d((1, 2)), (1, 2, 4, 5), (1, 2, 4, 2)),
    "AvgPool2d": (lambda **k: nn.AvgPool2d((3, 3), 1, 1), (1, 2, 4, 5), (1, 2, 4, 5)),
}


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAYERS)
def test_shapes_dtypes_and_devices(name, dtype, device, mode):
    make, shape, expected = LAYERS[name]
    layer = make(dtype=dtype, device=device)
    for tensor in layer.state_dict().values():
        assert (tensor.dtype, tensor.device) == (dtype, device)
    x = random(*shape, dtype=dtype, device=device)
    out = layer(x)
    assert (out.shape, out.dtype, out.device) == (expected, dtype, device)
    assert out.numpy().shape == expected
    out.sum().backward()
    for tensor in (x, *layer.parameters()):
        assert (tensor.grad.shape, tensor.grad.dtype) == (tensor.shape, dtype)
    for tensor in layer.state_dict().values():
        assert tensor.dtype == dtype


WRONG = [
    (nn.BatchNorm1d(3), (2, 4), "(batch, dim) with dim 3"),
    (nn.BatchNorm1d(3), (2, 3, 1), "(batch, dim) with dim 3"),
    (nn.BatchNorm2d(3), (2, 3), "(batch, dim, height, width) with dim 3"),
    (nn.LayerNorm1d(3), (3, 1), "(..., 3)"),
    (nn.GroupNorm(2, 4), (2, 2), "(batch, 4, ...)"),
    (nn.Conv(3, 2, 3), (1, 4, 4, 3), "images of shape (batch, 3, height, width)"),
    (nn.Conv(3, 2, 3), (3, 4, 4), "images of shape (batch, 3, height, width)"),
    (nn.MaxPool2d(2), (3, 4), "images of shape (batch, channels, height, width)"),
    (nn.AvgPool2d(2), (3, 4), "images of shape (batch, channels, height, width)"),
]


@pytest.mark.parametrize(("layer", "shape", "needed"), WRONG, ids=lambda x: type(x).__name__)
def test_inputs_of_the_wrong_shape(layer, shape, needed, mode):
    with pytest.raises(
        ValueError, match=rf"^{type(layer).__name__}: needs .*{re.escape(needed)}, got"
    ) as error:
        layer(random(*shape))
    assert str(error.value).endswith(str(shape))


def test_a_residual_keeps_the_shape(mode):
    message = re.escape("Residual: Linear turns shape (2, 3) into (2, 1)")
    with pytest.raises(ValueError, match=message):  # broadcasting would accept it
        nn.Residual(nn.Linear(3, 1))(random(2, 3))


# Dropout


def test_dropout_keeps_where_the_random_number_says(mode):
    x = random(50, 7)
    np.random.seed(3)
    out = nn.Dropout(0.3)(x).numpy()
    after = np.random.rand()
    np.random.seed(3)
    kept = np.random.rand(50, 7) <= 0.7
    assert 0.5 < kept.mean() < 0.9
    np.testing.assert_allclose(out, np.where(kept, x.numpy() / 0.7, 0), rtol=1e-6)
    assert after == np.random.rand()


def test_dropout_in_use_draws_nothing():
    x = random(4, 4)
    np.random.seed(3)
    for layer in (nn.Dropout(0.9).eval(), nn.Dropout(0)):
        assert layer(x) is x
    after = np.random.rand()
    np.random.seed(3)
    assert after == np.random.rand()


def test_dropout_lets_the_gradient_through_where_it_keeps():
    x = random(20, 5)
    out = nn.Dropout(0.5, rng=np.random.default_rng(1))(x)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.where(out.numpy() != 0, 2, 0))
    again = nn.Dropout(0.5, rng=np.random.default_rng(1))(x)
    np.testing.assert_array_equal(again.numpy(), out.numpy())


def test_dropout_of_all_and_of_impossible_shares():
    np.testing.assert_array_equal(nn.Dropout(1)(random(3, 3)).numpy(), np.zeros((3, 3)))
    for p in (-0.1, 1.5):
        with pytest.raises(ValueError, match=f"probability of a zero, 0 to 1, got {p}"):
            nn.Dropout(p)


# Batch normalization


@pytest.mark.parametrize("shape", [(6, 3), (2, 3, 3, 1)], ids=str)
def test_running_statistics_follow_the_batches(shape, mode):
    layer = nn.BatchNorm1d(3, momentum=0.2) if len(shape) == 2 else nn.BatchNorm2d(3, momentum=0.2)
    mean, variance = np.zeros(3), np.ones(3)
    running = layer.running_mean, layer.running_var
    assert [name for name, _ in layer.named_buffers()] == ["running_mean", "running_var"]
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    axes = tuple(i for i in range(len(shape)) if i != 1)
    for seed in range(4):
        x = random(*shape, seed=seed) * 3 + 1
        layer(x)
        mean = 0.8 * mean + 0.2 * x.numpy().mean(axes)
        variance = 0.8 * variance + 0.2 * x.numpy().var(axes)  # biased
    assert (layer.running_mean, layer.running_var) == running
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.running_var.numpy(), variance, rtol=1e-5)
    for tensor in running:
        assert tensor.is_leaf()
        assert not tensor.requires_grad

    layer.eval()
    x = random(*shape, seed=9)
    spread = (slice(None), *[None] * (len(shape) - 2))
    expected = (x.numpy() - mean[spread]) / np.sqrt(variance[spread] + layer.eps)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_running_statistics_keep_no_steps(mode):
    """Steps whose results nobody asks for leave nothing behind, in lazy mode too."""
    layer = nn.BatchNorm1d(3)
    counts = []
    for seed in range(6):
        layer(random(5, 3, seed=seed))
        gc.collect()
        cells = sum(type(thing) is Pending for thing in gc.get_objects())
        counts.append((cells, ndl.autograd.TENSOR_COUNTER))
    assert len(set(counts[1:])) == 1


def test_a_lazy_step_is_not_computed_by_batch_normalization(computed):
    with ndl.lazy():
        layer = nn.BatchNorm1d(3)
        out = layer(random(5, 3))
        assert computed == []
        out.numpy()
    assert computed


def test_float32_statistics_of_float64_batches():
    layer = nn.BatchNorm1d(2)
    layer(random(4, 2, dtype="float64"))
    assert layer.running_mean.dtype == layer.running_var.dtype == "float32"


def test_groups_have_equal_sizes():
    with pytest.raises(ValueError, match="4 channels cannot form 3 groups of equal size"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ValueError, match="num_groups must be a whole number of at least 1, got 0"):
        nn.GroupNorm(0, 4)


# Convolution


def test_conv_draws_its_weight_and_then_its_bias():
    np.random.seed(3)
    layer = nn.Conv(2, 5, 3)
    after = np.random.rand()
    assert (layer.weight.shape, layer.bias.shape) == ((3, 3, 2, 5), (5,))
    np.random.seed(3)
    bound = math.sqrt(2) * math.sqrt(3 / 18)
    drawn = np.random.rand(3, 3, 2, 5) * 2 * bound - bound
    np.testing.assert_allclose(layer.weight.numpy(), drawn, rtol=3e-7, atol=2e-7)
    bound = 1 / math.sqrt(18)
    np.testing.assert_allclose(
        layer.bias.numpy(), np.random.rand(5) * 2 * bound - bound, rtol=3e-7, atol=1e-7
    )
    assert np.random.rand() == after
    assert nn.Conv(2, 5, 3, bias=False).bias is None


def test_pairs_of_equal_numbers_are_one_number():
    layer = nn.Conv(1, 1, (3, 3), padding=((1, 1), (1, 1)))
    assert (layer.kernel_size, layer.stride, layer.padding) == (3, 1, 1)
    pool = nn.MaxPool2d((2, 2))
    assert (pool.kernel_size, pool.stride, pool.padding) == (2, 2, 0)
    assert "Conv(in_channels=1, out_channels=1, kernel_size=(3, 5), stride=1, padding=(1, 2))" in repr(
        nn.Conv(1, 1, (3, 5))
    )
    with pytest.raises(ValueError, match=r"MaxPool2d: stride: needs .*; got 1\.5"):
        nn.MaxPool2d(2, 1.5)


def test_oblong_kernels():
    np.random.seed(0)
    layer = nn.Conv(2, 4, (3, 5))
    weight, bias = layer.weight.numpy(), layer.bias.numpy()
    np.random.seed(0)
    bound = math.sqrt(6 / (2 * 3 * 5))
    expected = np.random.rand(3, 5, 2, 4) * 2 * bound - bound
    np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-7)
    bound = 1 / math.sqrt(2 * 3 * 5)
    np.testing.assert_allclose(bias, np.random.rand(4) * 2 * bound - bound, rtol=1e-5, atol=1e-7)
    assert layer(random(1, 2, 6, 7)).shape == (1, 4, 6, 7)  # the padding keeps the size
    x = random(1, 2, 6, 7)
    for module, op in [
        (nn.Conv(2, 4, (3, 2), (2, 1), padding=((2, 0), (0, 1))), ndl.conv),
        (nn.MaxPool2d((2, 3), (1, 2), ((1, 0), (0, 1))), ndl.max_pool2d),
        (nn.AvgPool2d((3, 2), padding=(1, 0)), ndl.avg_pool2d),
    ]:
        images = x.permute((0, 2, 3, 1))
        options = {"stride": module.stride, "padding": module.padding}
        if op is ndl.conv:
            out = ndl.conv(images, module.weight, **options) + module.bias
        else:
            out = op(images, module.kernel_size, **options)
        np.testing.assert_array_equal(module(x).numpy(), out.numpy().transpose(0, 3, 1, 2))


def test_padding_on_one_side_alone():
    """A convolution that sees earlier columns only: nothing changes before what is changed."""
    layer = nn.Conv(1, 1, (1, 3), padding=((0, 0), (2, 0)))
    x = random(1, 1, 2, 6).numpy()
    changed = x.copy()
    changed[..., 4] += 1
    same = layer(Tensor(x)).numpy() == layer(Tensor(changed)).numpy()
    np.testing.assert_array_equal(same, [[[[True] * 4 + [False] * 2] * 2]])


# Losses


@pytest.mark.parametrize("loss", [nn.SoftmaxLoss(), nn.CrossEntropyLoss()], ids=["softmax", "cross entropy"])
def test_a_class_that_cannot_be(loss, mode):
    logits = Tensor([[0.0, -math.inf], [-math.inf, 1.0]], dtype="float32")
    out = loss(logits, [0, 1])
    out.backward()
    assert out.numpy() == 0
    np.testing.assert_array_equal(logits.grad.numpy(), np.zeros((2, 2)))
    assert loss(logits, [0, 0]).numpy() == math.inf
    mixed = Tensor([[1.0, 2.0, -math.inf]], dtype="float64")
    out = loss(mixed, [0])
    out.backward()
    share = 1 / (1 + math.exp(-1))
    np.testing.assert_allclose(out.numpy(), -math.log(1 - share), rtol=1e-12)
    np.testing.assert_allclose(mixed.grad.numpy(), [[-share, share, 0]], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_losses_are_one_number_of_the_dtype_of_the_logits(dtype, mode):
    x = random(4, 3, dtype=dtype)
    for loss in (
        nn.SoftmaxLoss()(x, [0, 1, 2, 2]),
        nn.CrossEntropyLoss(0.1)(x, Tensor([0, 1, 2, 2], dtype="int64")),
        nn.MSELoss()(x, np.ones((4, 3))),
        nn.MSELoss()(x, Tensor(np.ones((4, 3)), dtype="int64")),
        nn.BCEWithLogitsLoss()(x, np.ones((4, 3), dtype=bool)),
        nn.BCEWithLogitsLoss()(x, Tensor(np.ones((4, 3)), dtype="float64")),
    ):
        assert (loss.shape, loss.dtype) == ((), dtype)
        assert loss.numpy() > 0


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_binary_cross_entropy_of_logits_of_any_size(device, mode):
    z = [1000.0, 1000.0, -1000.0, -1000.0, 0.0, 30.0]
    y = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    x = Tensor(z, device=device)
    loss = nn.BCEWithLogitsLoss()(x, y)
    np.testing.assert_allclose(loss.numpy(), (2000 + math.log(2) + math.exp(-30)) / 6, rtol=1e-6)
    loss.backward()
    slopes = [0, 1, 0, -1, -0.5, -math.exp(-30)]
    np.testing.assert_allclose(x.grad.numpy() * 6, slopes, rtol=1e-6, atol=1e-6)


def test_a_target_can_be_learned_too():
    x, y = random(3), random(3, seed=1)
    nn.MSELoss()(x, y).backward()
    np.testing.assert_allclose(y.grad.numpy(), -x.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("loss_of", [nn.SoftmaxLoss(), nn.CrossEntropyLoss()])
def test_a_logit_of_minus_infinity(loss_of, mode):
    """The loss is finite where another class is the label, and infinite where it is that class."""
    z = Tensor([[1.0, 2.0, -np.inf]])
    loss = loss_of(z, [0])
    np.testing.assert_allclose(loss.numpy(), np.log(1 + np.e), rtol=1e-6)
    loss.backward()
    share = np.e / (1 + np.e)
    np.testing.assert_allclose(z.grad.numpy(), [[-share, share, 0]], rtol=1e-6)
    assert loss_of(z, [2]).numpy() == np.inf


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.BCEWithLogitsLoss()], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 2), ()], ids=str)
def test_losses_refuse_what_broadcasting_would_make_wrong(loss, shape, mode):
    message = re.escape(f"{type(loss).__name__}: needs two equal shapes, got (3, 2) and {shape}")
    for target in (np.ones(shape), Tensor(np.ones(shape))):
        with pytest.raises(ValueError, match=message):
            loss(random(3, 2), target)


def test_cross_entropy_refuses_wrong_labels(mode):
    x = random(2, 3)
    with pytest.raises(ValueError, match=r"labels of shape \(\.\.\.\), got \(2, 3\) and \(3,\)"):
        nn.CrossEntropyLoss()(x, [0, 1, 1])
    with pytest.raises(ValueError, match=r"weight needs shape \(3,\), one number per class, got \(2,\)"):
        nn.CrossEntropyLoss(weight=[1, 2])(x, [0, 1])
    with pytest.raises(ValueError, match="label_smoothing is 0 to 1, got 2"):
        nn.CrossEntropyLoss(label_smoothing=2)


@pytest.mark.parametrize("given", [list, Tensor], ids=["list", "Tensor"])
@pytest.mark.parametrize(
    ("loss", "labels", "error", "message"),
    [
        (nn.SoftmaxLoss(), [0, 3], IndexError, r"classes must lie in 0\.\.2"),
        (nn.CrossEntropyLoss(), [0, 3], IndexError, r"classes must lie in 0\.\.2"),
        (nn.CrossEntropyLoss(), [0.5, 1], IndexError, r"classes must lie in 0\.\.2 and be whole"),
        (nn.CrossEntropyLoss(ignore_index=-1), [0, -100], IndexError, r"classes must lie in 0\.\.2"),
        (nn.CrossEntropyLoss(ignore_index=1), [1, 1], ValueError, "no example counts: all 2 labels are"),
        (nn.CrossEntropyLoss(weight=[1, 0, 1]), [1, 1], ValueError, "no example counts: all 2 labels are"),
    ],
)
def test_wrong_labels_are_refused_when_they_are_read(loss, labels, error, message, given, mode):
    with pytest.raises(error, match=message):
        loss(random(2, 3), given(labels)).numpy()
    if mode == "lazy" and given is Tensor:
        loss(random(2, 3), given(labels))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_labels_may_have_any_dtype_and_are_not_learned(dtype, mode):
    x, y = random(3, 3), Tensor([0, 2, 1], dtype=dtype)
    loss = nn.CrossEntropyLoss(0.1, ignore_index=2, weight=[1, 2, 3])(x, y)
    loss.backward()
    assert y.grad is None
    expected = nn.CrossEntropyLoss(0.1, weight=[1, 2, 3])(Tensor(x.numpy()[[0, 2]]), [0, 1])
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-6)


def test_ignored_examples_get_no_gradient():
    x = random(3, 2)
    nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=7)(x, [0, 7, 1]).backward()
    gradient = x.grad.numpy()
    np.testing.assert_array_equal(gradient[1], [0, 0])
    assert (gradient[[0, 2]] != 0).all()
