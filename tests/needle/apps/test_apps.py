"""The applications: their networks, passes over data, and commands that save and resume."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import needle as ndl
from needle import autograd, nn, optim
from needle.apps import cnn, gpt, language_model, mlp_resnet, models, simple_ml, text, training
from needle.autograd import Tensor

ROOT = Path(__file__).parents[3]


SONNETS = text.SONNETS


@pytest.fixture(autouse=True)
def few_sonnets(tmp_path_factory, monkeypatch):
    """The commands learn only the first six sonnets: here none of them has to learn well."""
    path = tmp_path_factory.getbasetemp() / "few_sonnets.txt"
    path.write_text("\n\n".join(SONNETS.read_text(encoding="utf-8").split("\n\n")[:6]), encoding="utf-8")
    monkeypatch.setattr(text, "SONNETS", path)
    return path


# Passes over images


def images(n=23, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2, 4, 4)).astype("float32"), rng.integers(0, 3, size=n)


def image_model(seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(32, 3, rng=rng, dtype=dtype), nn.Dropout(0.5))


def loader(X, y, batch_size=10):
    return ndl.data.DataLoader(ndl.data.NDArrayDataset(X, y), batch_size)


def values(model):
    return [p.numpy() for p in model.parameters()]


@pytest.mark.parametrize("loss_fn", [nn.SoftmaxLoss, nn.SoftmaxLoss(), nn.CrossEntropyLoss])
def test_evaluation_is_the_mean_over_images(loss_fn, mode):
    X, y = images()
    model = image_model()
    before = values(model)
    accuracy, loss = simple_ml.evaluate_cifar10(model, loader(X, y), loss_fn)
    logits = model(Tensor(X)).numpy()  # in one piece, though batches have 10, 10 and 3
    assert accuracy == (logits.argmax(axis=1) == y).mean()
    np.testing.assert_allclose(loss, nn.SoftmaxLoss()(Tensor(logits), y).numpy(), rtol=1e-6)
    assert not model.training
    for p, value in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), value)
        assert p.grad is None


def test_an_epoch_is_one_step_per_batch(mode):
    X, y = images()
    model, twin = image_model(), image_model()
    opt = optim.Adam(model.parameters(), lr=0.1)
    np.random.seed(3)
    accuracy, loss = simple_ml.epoch_general_cifar10(loader(X, y), model, opt=opt)
    assert model.training

    other = optim.Adam(twin.parameters(), lr=0.1)
    np.random.seed(3)
    losses, correct = [], 0
    for start in (0, 10, 20):
        part = slice(start, start + 10)
        logits = twin(Tensor(X[part]))
        batch_loss = nn.SoftmaxLoss()(logits, y[part])
        correct += (logits.numpy().argmax(axis=1) == y[part]).sum()
        losses.append(batch_loss.numpy().item())
        other.reset_grad()
        batch_loss.backward()
        other.step()
    np.testing.assert_allclose(loss, np.average(losses, weights=[10, 10, 3]), rtol=1e-6)
    assert accuracy == correct / 23
    for a, b in zip(values(model), values(twin), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_training_on_images_returns_the_last_epochs_figures():
    X, y = images()
    model = image_model()
    first = simple_ml.train_cifar10(model, loader(X, y), lr=0.01)
    later = simple_ml.train_cifar10(model, loader(X, y), n_epochs=30, lr=0.01, optimizer=optim.SGD)
    assert later[1] < first[1]
    with pytest.raises(ValueError, match="n_epochs must be 1 or more, got 0"):
        simple_ml.train_cifar10(model, loader(X, y), n_epochs=0)


@pytest.mark.parametrize("pass_over", [simple_ml.train_cifar10, simple_ml.evaluate_cifar10])
def test_training_and_evaluating_seed_numpy_with_4(pass_over):
    """As in the course: dropout, the order of the images and what is drawn next are the same each time."""
    X, y = images()
    results = []
    for seed in (0, 1):
        np.random.seed(seed)
        batches = ndl.data.DataLoader(ndl.data.NDArrayDataset(X, y), 10, shuffle=True)
        results.append((*pass_over(image_model(), batches), np.random.rand()))
    assert results[0] == results[1]
    np.random.seed(4)
    np.random.permutation(23)
    assert (results[0][2] == np.random.rand()) == (pass_over is simple_ml.evaluate_cifar10)


def test_images_are_moved_to_the_model():
    X, y = images()
    model = image_model(dtype="float64").to(ndl.cpu_numpy())
    accuracy, loss = simple_ml.train_cifar10(model, loader(X, y))
    assert {(p.device, p.dtype) for p in model.parameters()} == {(ndl.cpu_numpy(), np.dtype("float64"))}
    assert 0 <= accuracy <= 1
    assert loss > 0


def test_a_model_without_parameters_is_evaluated():
    X, y = images()
    accuracy, _ = simple_ml.evaluate_cifar10(nn.Flatten(), loader(X, y))
    assert accuracy == (X.reshape(23, -1).argmax(axis=1) == y).mean()


def test_no_batches_are_a_mistake():
    with pytest.raises(ValueError, match="there are no batches"):
        simple_ml.evaluate_cifar10(image_model(), [])


# Passes over text


def language_batches(rows=26, columns=3, vocabulary=5):
    rng = np.random.default_rng(0)
    return rng.integers(0, vocabulary, size=(rows, columns)).astype("float32")


def language_net(seq_model="rnn", vocabulary=5, dtype="float32"):
    np.random.seed(7)
    return models.LanguageModel(4, vocabulary, 6, seq_model=seq_model, seq_len=10, dtype=dtype)


@pytest.mark.parametrize("seq_model", ["rnn", "lstm", "gru"])
def test_the_hidden_state_is_carried(seq_model, mode):
    """Evaluating in parts of 10, 10 and 5 steps comes to the same as in one piece."""
    data = language_batches()
    model = language_net(seq_model)
    accuracy, loss = simple_ml.evaluate_ptb(model, data, seq_len=10)
    whole, targets = ndl.data.get_batch(data, 0, 25)
    logits, _ = model(whole)
    np.testing.assert_allclose(loss, nn.SoftmaxLoss()(logits, targets).numpy(), rtol=1e-5)
    assert accuracy == (logits.numpy().argmax(axis=1) == targets.numpy()).mean()


def test_gradients_are_not_carried():
    """A step of training is that of its own part, begun with the state of the part before as a constant."""
    data = language_batches(rows=21)
    model, twin = language_net("lstm"), language_net("lstm")
    opt, other = optim.SGD(model.parameters(), lr=1.0), optim.SGD(twin.parameters(), lr=1.0)
    simple_ml.epoch_general_ptb(data, model, seq_len=10, opt=opt, clip=0.2)
    state = None
    for start in (0, 10):
        X, y = ndl.data.get_batch(data, start, 10)
        logits, (h, c) = twin(X, state)
        state = (h.data, c.data)
        nn.SoftmaxLoss()(logits, y).backward()
        assert other.clip_grad_norm(0.2) > 0.2
        other.step()
    for a, b in zip(values(model), values(twin), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_training_on_text_learns_and_keeps_nothing(no_gc):
    data = np.tile(np.arange(5.0), 40)[: 4 * 50].reshape(4, 50).T  # what follows is certain
    model = language_net()
    first = simple_ml.train_ptb(model, data, seq_len=10, lr=0.5)
    alive = autograd.TENSOR_COUNTER
    later = simple_ml.train_ptb(model, data, seq_len=10, n_epochs=15, lr=0.5, clip=5.0)
    assert alive == autograd.TENSOR_COUNTER
    assert later[1] < 0.5 * first[1]
    accuracy, loss = simple_ml.evaluate_ptb(model, data, seq_len=10)
    assert accuracy > 0.9
    assert loss < first[1]


# The residual network


def test_a_residual_block():
    np.random.seed(0)
    block = mlp_resnet.ResidualBlock(6, 4, norm=nn.LayerNorm1d, drop_prob=0.0)
    first, norm, relu, dropout, second, norm2 = block.modules[0].fn.modules
    assert [type(m) for m in (relu, dropout)] == [nn.ReLU, nn.Dropout]
    x = Tensor(np.random.randn(3, 6))
    expected = ndl.relu(x + norm2(second(ndl.relu(norm(first(x))))))
    np.testing.assert_allclose(block(x).numpy(), expected.numpy(), rtol=1e-6)


def test_the_residual_network():
    model = mlp_resnet.MLPResNet(12, hidden_dim=8, num_blocks=2, num_classes=4)
    blocks = 2 * ((8 * 4 + 4) + 2 * 4 + (4 * 8 + 8) + 2 * 8)
    assert sum(p.size for p in model.parameters()) == (12 * 8 + 8) + blocks + (8 * 4 + 4)
    assert model(Tensor(np.ones((3, 12)))).shape == (3, 4)
    assert len([m for m in model._children() if isinstance(m, nn.BatchNorm1d)]) == 4


def test_an_epoch_reseeds_and_says_the_error():
    X, y = images()
    X = X.reshape(23, 32)
    results = []
    for seed in (0, 1):
        np.random.seed(5)
        model = mlp_resnet.MLPResNet(32, 8, 1, 3)
        np.random.seed(seed)  # of no effect: dropout draws after the seed 4
        results.append(
            mlp_resnet.epoch(loader(X, y), model, optim.SGD(model.parameters(), lr=0.1))
            + mlp_resnet.epoch(loader(X, y), model)
        )
        assert not model.training
    assert results[0] == results[1]
    logits = model(Tensor(X)).numpy()
    error, loss = results[1][2:]
    np.testing.assert_allclose(error, (logits.argmax(axis=1) != y).mean(), rtol=1e-12)
    parts = [slice(0, 10), slice(10, 20), slice(20, 23)]  # each batch counts alike
    losses = [nn.SoftmaxLoss()(Tensor(logits[part]), y[part]).numpy() for part in parts]
    np.testing.assert_allclose(loss, np.mean(losses), rtol=1e-5)


def mnist_loader(folder, part, batch_size):
    names = [f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"]
    dataset = ndl.data.MNISTDataset(*[folder / name for name in names])
    return ndl.data.DataLoader(dataset, batch_size)


def test_the_courses_figures(mnist):
    np.random.seed(1)
    result = mlp_resnet.epoch(mnist_loader(mnist, "t10k", 150), mlp_resnet.MLPResNet(784, 10))
    np.testing.assert_allclose(result, (0.9164, 4.137814), rtol=1e-5)


@pytest.mark.slow
def test_the_courses_figures_of_an_epoch(mnist):
    np.random.seed(1)
    batches, model = mnist_loader(mnist, "train", 250), mlp_resnet.MLPResNet(784, 5)
    opt = optim.Adam(model.parameters(), lr=0.01, weight_decay=0.1)
    np.testing.assert_allclose(mlp_resnet.epoch(batches, model, opt), (0.675267, 1.84043), rtol=1e-3)


@pytest.mark.slow
def test_the_courses_training(mnist):
    result = mlp_resnet.train_mnist(250, 2, optim.SGD, 0.001, 0.01, 100, data_dir=str(mnist))
    # Differences of rounding grow a thousandfold in this network: its batch norms divide by tiny deviations.
    np.testing.assert_allclose(result, (0.4875, 1.462595, 0.3245, 1.049429), rtol=1e-2)


def test_train_mnist_needs_an_epoch():
    with pytest.raises(ValueError, match="epochs must be 1 or more"):
        mlp_resnet.train_mnist(epochs=0)


# Networks


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_resnet9(dtype):
    model = models.ResNet9(device=ndl.cpu_numpy(), dtype=dtype)
    assert sum(p.size for p in model.parameters()) == 431_946
    out = model(Tensor(np.random.randn(2, 3, 32, 32), device=ndl.cpu_numpy(), dtype=dtype))
    assert (out.shape, out.dtype, out.device) == ((2, 10), np.dtype(dtype), ndl.cpu_numpy())
    out.sum().backward(create_graph=False)
    assert all(p.grad.shape == p.shape for p in model.parameters())


def test_the_small_cnn():
    model = models.CNN(8, channels=4)
    assert model(Tensor(np.random.randn(2, 1, 8, 8))).shape == (2, 10)
    with pytest.raises(ValueError, match="side must be a multiple of 4"):
        models.CNN(10)
    X = Tensor(np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5))
    np.testing.assert_array_equal(cnn.channels_first(X).numpy(), X.numpy().transpose(0, 3, 1, 2))


@pytest.mark.parametrize("seq_model", ["rnn", "lstm", "gru", "transformer"])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_language_models(seq_model, dtype, mode):
    np.random.seed(0)
    model = models.LanguageModel(8, 7, 6, num_layers=2, seq_model=seq_model, seq_len=5, dtype=dtype)
    X = Tensor(np.random.randint(0, 7, size=(5, 3)), dtype="float32", requires_grad=False)
    logits, h = model(X)
    assert (logits.shape, logits.dtype) == ((15, 7), np.dtype(dtype))
    if seq_model == "transformer":
        assert h.shape == (5, 3, 8)  # carried along, and not used
    else:
        state = h if isinstance(h, tuple) else (h,)
        assert [x.shape for x in state] == [(2, 3, 6)] * (2 if seq_model == "lstm" else 1)
    # Rows are times: logits of the first times do not depend on what comes later.
    changed = X.numpy()
    changed[-1] = (changed[-1] + 1) % 7
    later, _ = model(Tensor(changed, requires_grad=False), None)
    np.testing.assert_allclose(later.numpy()[:12], logits.numpy()[:12], rtol=1e-5, atol=1e-6)
    assert not np.allclose(later.numpy()[12:], logits.numpy()[12:])
    logits.sum().backward(create_graph=False)
    assert all(p.grad is not None for p in model.parameters())


def test_the_kind_of_a_language_model_must_be_known():
    with pytest.raises(ValueError, match="no seq_model 'RNN'; use rnn, lstm, gru or transformer"):
        models.LanguageModel(4, 5, 6, seq_model="RNN")


def test_a_language_model_needs_two_axes():
    with pytest.raises(ValueError, match=r"x must have shape \(seq_len, batch\), got \(3,\)"):
        models.LanguageModel(4, 5, 6)(Tensor([0, 1, 2]))


def test_a_gpt_sees_what_came_before_only():
    model = gpt.GPT(7, context=6, dim=8)
    X = np.random.randint(0, 7, size=(2, 6))
    changed = X.copy()
    changed[:, 4] = (changed[:, 4] + 1) % 7
    a, b = model(Tensor(X)).numpy(), model(Tensor(changed)).numpy()
    assert a.shape == (2, 6, 7)
    np.testing.assert_allclose(a[:, :4], b[:, :4], rtol=1e-5, atol=1e-6)
    assert not np.allclose(a[:, 4:], b[:, 4:])


def test_generating():
    model = gpt.GPT(7, context=4, dim=8, dropout=0.5)
    start = [1, 2, 3, 4, 5, 6]  # longer than what it sees
    greedy = model.generate(start, 5, temperature=0)
    assert greedy[:6] == start
    assert len(greedy) == 11
    assert all(0 <= i < 7 for i in greedy)
    assert model.training  # as it was, though nothing was dropped meanwhile
    assert model.generate(start, 5, top_k=1) == greedy
    model.eval()
    for i in range(6, 11):
        logits = model(Tensor([greedy[i - 4 : i]])).numpy()[0, -1]
        assert logits.argmax() == greedy[i]
    draws = [model.generate([0], 8, rng=rng) for rng in (np.random.default_rng(0), 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    with pytest.raises(TypeError, match="rng"):
        model.generate([0], 1, rng="0")
    hot = model.generate([0], 60, temperature=50.0, top_k=3, rng=np.random.default_rng(0))
    assert len(set(hot)) > 3  # any three, after different beginnings
    for bad in ({"start": []}, {"temperature": -1.0}, {"top_k": 0}):
        with pytest.raises(ValueError, match="generate"):
            model.generate(**{"start": [0], "length": 1, **bad})


def test_generating_leaves_the_mode_as_it_was_on_an_error():
    model = gpt.GPT(7, context=4, dim=8)
    with pytest.raises((IndexError, ValueError)):
        model.generate([7], 1)  # there are 0 to 6
    assert model.training
    assert model.layers[0].training


def test_draws_have_the_softmaxs_shares():
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    rng = np.random.default_rng(0)

    def shares(*options):
        found = np.bincount([gpt._drawn(logits, *options, rng) for _ in range(4000)], minlength=4)
        return found / 4000

    np.testing.assert_allclose(shares(1.0, None), [0.5, 0.3, 0.15, 0.05], atol=0.03)
    np.testing.assert_allclose(shares(1.0, 2), [0.625, 0.375, 0, 0], atol=0.03)
    squares = np.array([0.25, 0.09, 0.0225, 0.0025])
    np.testing.assert_allclose(shares(0.5, 9), squares / squares.sum(), atol=0.03)


# Texts


def test_characters():
    letters = text.Characters("banana\n")
    assert letters.letters == "\nabn"
    assert letters.encode("nab").tolist() == [3, 1, 2]
    assert letters.decode([3, 1, 2]) == "nab"
    assert len(letters) == 4
    with pytest.raises(ValueError, match="'o' does not occur"):
        letters.encode("box")


def test_the_sonnets():
    sonnets = SONNETS.read_text(encoding="utf-8").strip().split("\n\n")
    assert {len(sonnet.split("\n")) for sonnet in sonnets} == {14}
    letters, train, test = text.read(SONNETS)
    assert len(sonnets) > 30
    assert letters.decode(np.concatenate([train, test])) == SONNETS.read_text(encoding="utf-8")
    assert 0.09 < len(test) / (len(train) + len(test)) < 0.11
    assert max(map(ord, letters.letters)) < 128


def test_guessing_by_frequency():
    train, test = np.array([0, 0, 0, 1]), np.array([0, 2])
    expected = -(np.log(4 / 7) + np.log(1 / 7)) / 2
    np.testing.assert_allclose(text.frequency_loss(train, test), expected, rtol=1e-12)


def test_windows_overlap_by_half():
    dataset = gpt.windows(np.arange(11), 4)
    assert [x.tolist() for x, _ in dataset] == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7], [6, 7, 8, 9]]
    assert all((y == x + 1).all() for x, y in dataset)
    with pytest.raises(ValueError, match="a text of 4 characters"):
        gpt.windows(np.arange(4), 4)


def test_a_text_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match=r"missing\.txt cannot be read"):
        text.read(tmp_path / "missing.txt")
    (tmp_path / "empty.txt").touch()
    with pytest.raises(ValueError, match=r"empty\.txt is empty"):
        text.read(tmp_path / "empty.txt")


def test_texts_are_told_apart():
    prints = {text.fingerprint("ab", np.array(x), np.array(y)) for x, y in ([[0], [1]], [[0, 1], []])}
    assert len(prints | {text.fingerprint("ab", np.array([0]), np.array([1]))}) == 2
    assert text.fingerprint("ac", np.array([0]), np.array([1])) not in prints


# Commands

SMALL = {
    simple_ml: ["--batch-size", "200", "--hidden-dim", "16"],
    mlp_resnet: ["--batch-size", "200", "--hidden-dim", "16", "--num-blocks", "1"],
    cnn: ["--batch-size", "200", "--channels", "2"],
    language_model: ["--batch-size", "20", "--hidden-size", "8", "--embedding-size", "8"],
    gpt: ["--batch-size", "64", "--context", "16", "--dim", "8", "--num-layers", "1", "--write", "0"],
}
every = pytest.mark.parametrize("app", SMALL, ids=[app.__name__.rpartition(".")[2] for app in SMALL])


def but_slow_for(*apps):
    """Runs a test with some applications, all but the first of them in `make test-slow`."""
    marks = [(), *[pytest.mark.slow] * (len(apps) - 1)]
    names = [app.__name__.rpartition(".")[2] for app in apps]
    found = [
        pytest.param(app, marks=mark, id=name) for app, mark, name in zip(apps, marks, names, strict=True)
    ]
    return pytest.mark.parametrize("app", found)


def run(app, *argv, device="cpu_numpy"):
    return app.main([*SMALL[app], "--quiet", "--device", device, *map(str, argv)])


@but_slow_for(mlp_resnet, simple_ml, cnn, language_model, gpt)
def test_a_resumed_training_is_bit_identical(app, tmp_path, capsys):
    """One run of three epochs; one that is stopped in its second, and goes on from its checkpoint."""
    whole, parts = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors"
    metrics = run(app, "--epochs", 3, "--checkpoint", whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.Training, "run", interrupted(training.Training.run, during_epoch=2))
        with pytest.raises(SystemExit, match="stopped after 1 of 3 epochs; go on with --checkpoint"):
            run(app, "--epochs", 3, "--checkpoint", parts)
    np.random.seed(99)  # and other random numbers were drawn meanwhile
    assert run(app, "--epochs", 3, "--checkpoint", parts, "--resume", "--seed", 5) == metrics
    assert whole.read_bytes() == parts.read_bytes()
    assert f"test accuracy {metrics['test_accuracy']:.2%}" in capsys.readouterr().out


def interrupted(run_, during_epoch):
    """`Training.run`, stopped by Ctrl-C when an epoch has gone half its way."""

    def run_until(self, learn, evaluate):
        def learn_half(progress):
            def half(batches):
                batches = list(progress(batches))
                yield from batches[: len(batches) // 2]
                raise KeyboardInterrupt

            return learn(half if self.epoch + 1 == during_epoch else progress)

        return run_(self, learn_half, evaluate)

    return run_until


def test_resnet9_learns_photographs_with_flips_and_crops(monkeypatch):
    rng = np.random.default_rng(0)

    class Photographs(ndl.data.CIFAR10Dataset):
        def __init__(self, n, transforms=None):
            images = rng.random((n, 3, 32, 32), dtype="float32")
            ndl.data.ImageDataset.__init__(self, images, rng.integers(0, 10, size=n), transforms)

    used = []

    def cifar10(train=True, transforms=None):
        used.append(transforms)
        return Photographs(20 if train else 10, transforms)

    monkeypatch.setattr(ndl.data, "cifar10", cifar10)
    metrics = run(cnn, "--data", "cifar10", "--epochs", 1)
    assert [type(t).__name__ for t in used[0]] == ["RandomFlipHorizontal", "RandomCrop"]
    assert used[1] is None
    assert np.isfinite(metrics["test_loss"])


def test_a_language_model_of_words(monkeypatch, tmp_path):
    (tmp_path / "train.txt").write_text("the cat sat on the mat\n" * 60)
    (tmp_path / "test.txt").write_text("the cat sat on the mat\n" * 10)
    monkeypatch.setattr(ndl.data, "ptb", lambda: ndl.data.Corpus(tmp_path))
    options = ["--data", "ptb", "--batch-size", 4, "--seq-len", 8, "--lr", 0.02, "--model", "transformer"]
    metrics = run(language_model, *options, "--epochs", 6)
    assert metrics["train_loss"] < np.log(6) / 2
    assert metrics["test_loss"] < np.log(6) / 2


def test_a_text_of_ones_own(tmp_path, capsys):
    (tmp_path / "my.txt").write_text("abc" * 400, encoding="utf-8")
    run(gpt, "--data", tmp_path / "my.txt", "--epochs", 20, "--write", 9, "--temperature", 0, "--lr", 0.02)
    written = capsys.readouterr().out.splitlines()[-1]
    assert written == "abcabcabc"


@every
def test_every_command_says_what_it_can(app, capsys):
    with pytest.raises(SystemExit) as ended:
        app.main(["--help"])
    assert ended.value.code == 0
    words = capsys.readouterr().out
    assert "--checkpoint" in words
    assert app.__doc__.split("\n")[0] in " ".join(words.split())


def test_the_networks_are_shown_with_the_commands_that_train_them(capsys):
    models.main([])
    words = capsys.readouterr().out
    assert "ResNet9: 431,946 parameters" in words
    commands = dict(re.findall(r"^(\w+), trained by: python -m needle\.apps\.(.*)$", words, re.MULTILINE))
    assert list(commands) == list(models.NETWORKS)
    models.main(["gru"])
    app, *options = commands["gru"].split()
    assert capsys.readouterr().out.startswith(f"gru, trained by: python -m needle.apps.{app}")
    assert app == "language_model"
    assert run(language_model, *options, "--epochs", 1)["train_loss"] < 5
    with pytest.raises(SystemExit) as ended:
        models.main(["perceptron"])
    assert ended.value.code == 2


def test_the_two_layers_learn_by_nn_epoch(tmp_path):
    """On digits, in the order of the examples, as `nn_epoch` alone does it."""
    path = tmp_path / "x"
    metrics = run(simple_ml, "--epochs", 3, "--seed", 4, "--checkpoint", path)
    X, y = ndl.data.digits()[:]
    np.random.seed(4)
    W1 = Tensor(np.random.randn(64, 16) / 4, device=ndl.cpu_numpy())
    W2 = Tensor(np.random.randn(16, 10) / np.sqrt(10), device=ndl.cpu_numpy())
    for _ in range(3):
        W1, W2 = simple_ml.nn_epoch(X.reshape(len(X), -1), y, W1, W2, lr=0.2, batch=200)
    state = ndl.load(path)["model"]
    np.testing.assert_allclose(state["W1"].numpy(), W1.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state["W2"].numpy(), W2.numpy(), rtol=1e-4, atol=1e-5)
    assert metrics["train_loss"] < 2


def test_a_finished_training_is_tested_only(tmp_path):
    path = tmp_path / "x.safetensors"
    metrics = run(mlp_resnet, "--epochs", 1, "--checkpoint", path)
    again = run(mlp_resnet, "--epochs", 1, "--checkpoint", path, "--resume")
    assert again == {name: value for name, value in metrics.items() if name.startswith("test")}
    elsewhere = run(mlp_resnet, "--epochs", 1, "--checkpoint", path, "--resume", device="cpu")
    np.testing.assert_allclose(elsewhere["test_loss"], metrics["test_loss"], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simple_ml", "mlp_resnet", "cnn", "language_model", "gpt", "models"])
def test_help_says_how_to_start_the_command(name):
    command = [sys.executable, "-m", f"needle.apps.{name}", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.match(rf"usage: \S*python\S* -m needle.apps.{name} ", shown)


def test_progress_is_shown(capsys):
    mlp_resnet.main([*SMALL[mlp_resnet], "--epochs", "1", "--device", "cpu_numpy"])
    assert "epoch 1/1  train loss" in capsys.readouterr().out


BAD_COMMANDS = [
    (mlp_resnet, "--epochs 0", "--epochs: must be a whole number of at least 1, got 0"),
    (mlp_resnet, "--epochs many", "--epochs: must be a whole number of at least 1, got many"),
    (mlp_resnet, "--batch-size 0", "--batch-size: must be a whole number of at least 1, got 0"),
    (mlp_resnet, "--lr -1", "--lr: must be a number of at least 0, got -1"),
    (mlp_resnet, "--lr nan", "--lr: must be a number of at least 0, got nan"),
    (mlp_resnet, "--weight-decay inf", "--weight-decay: must be a number of at least 0, got inf"),
    (mlp_resnet, "--seed -1", "--seed: must be a whole number of at least 0, got -1"),
    (mlp_resnet, "--seed 4294967296", "Seed must be between 0 and 2**32 - 1"),
    (mlp_resnet, "--num-blocks -1", "--num-blocks: must be a whole number of at least 0, got -1"),
    (mlp_resnet, "--hidden-dim 0", "--hidden-dim: must be a whole number of at least 2, got 0"),
    (simple_ml, "--hidden-dim 0", "--hidden-dim: must be a whole number of at least 1, got 0"),
    (cnn, "--channels 0", "--channels: must be a whole number of at least 1, got 0"),
    (language_model, "--seq-len 0", "--seq-len: must be a whole number of at least 1, got 0"),
    (language_model, "--hidden-size 0", "--hidden-size: must be a whole number of at least 1, got 0"),
    (language_model, "--embedding-size 0", "--embedding-size: must be a whole number of at least 1"),
    (language_model, "--num-layers 0", "--num-layers: must be a whole number of at least 1, got 0"),
    (language_model, "--clip 0", "--clip: must be a number of at least 1e-06, got 0"),
    (gpt, "--context 0", "--context: must be a whole number of at least 1, got 0"),
    (gpt, "--num-layers 0", "--num-layers: must be a whole number of at least 1, got 0"),
    (gpt, "--dim 30", "30"),
    (gpt, "--dropout 2", "Dropout: p is the probability of a zero, 0 to 1, got 2.0"),
    (gpt, "--temperature -1", "--temperature: must be a number of at least 0, got -1"),
    (gpt, "--top-k 0", "--top-k: must be a whole number of at least 1, got 0"),
    (gpt, "--write -1", "--write: must be a whole number of at least 0, got -1"),
    (gpt, f"--data {os.devnull}", "is empty; there is nothing to learn from it"),
    (language_model, f"--data {os.devnull}", "is empty; there is nothing to learn from it"),
    (mlp_resnet, "--resume", "--resume needs --checkpoint PATH"),
    (mlp_resnet, "--device gpu", "invalid choice: 'gpu'"),
]


@pytest.mark.parametrize(("app", "line", "words"), BAD_COMMANDS)
def test_wrong_options_are_explained(app, line, words, capsys):
    with pytest.raises(SystemExit) as ended:
        app.main(line.split())
    assert ended.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_a_checkpoint_is_not_overwritten_unasked(tmp_path, capsys):
    path = tmp_path / "x.safetensors"
    run(simple_ml, "--epochs", 1, "--checkpoint", path)
    before = path.read_bytes()
    with pytest.raises(SystemExit) as ended:
        run(simple_ml, "--epochs", 1, "--checkpoint", path)
    assert ended.value.code == 2
    assert "go on from it with --resume, or name another file, or remove it" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_options_of_writing_may_change(tmp_path, capsys):
    path = tmp_path / "x"
    run(gpt, "--epochs", 1, "--checkpoint", path)
    run(
        gpt, "--epochs", 1, "--checkpoint", path, "--resume", "--write", 7, "--temperature", 0.5, "--top-k", 3
    )
    assert capsys.readouterr().out.count("by frequency alone") == 2


@pytest.mark.parametrize("app", [gpt, language_model])
def test_another_text_is_refused(app, tmp_path):
    """Under the same name; under another name the same text will do."""
    path, mine, copy = tmp_path / "x", tmp_path / "my.txt", tmp_path / "copy.txt"
    mine.write_text("abcdefgh" * 600)
    copy.write_text("abcdefgh" * 600)
    run(app, "--epochs", 1, "--checkpoint", path, "--data", mine)
    run(app, "--epochs", 1, "--checkpoint", path, "--data", copy, "--resume")
    mine.write_text("hgfedcba" * 600)
    with pytest.raises(SystemExit, match=r"--data was the text .*, and is the text .* now"):
        run(app, "--epochs", 1, "--checkpoint", path, "--data", mine, "--resume")


@but_slow_for(mlp_resnet, gpt)
def test_the_schedule_is_that_of_the_epochs_planned(app, tmp_path):
    """Stopping earlier on purpose, and going on later, changes nothing; more than was planned is refused."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    metrics = run(app, "--epochs", 3, "--checkpoint", whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.Training, "run", interrupted(training.Training.run, during_epoch=2))
        with pytest.raises(SystemExit, match="stopped after 1 of 3 epochs"):
            run(app, "--epochs", 3, "--checkpoint", parts)
    run(app, "--epochs", 2, "--checkpoint", parts, "--resume")
    assert run(app, "--epochs", 3, "--checkpoint", parts, "--resume") == metrics
    assert whole.read_bytes() == parts.read_bytes()
    with pytest.raises(
        SystemExit, match=r"begun for 3 epochs, .* use --epochs 3 or fewer, or begin a new one"
    ):
        run(app, "--epochs", 4, "--checkpoint", parts, "--resume")


def test_without_a_schedule_more_epochs_may_follow(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    metrics = run(simple_ml, "--epochs", 2, "--checkpoint", whole)
    run(simple_ml, "--epochs", 1, "--checkpoint", parts)
    assert run(simple_ml, "--epochs", 2, "--checkpoint", parts, "--resume") == metrics
    assert whole.read_bytes() == parts.read_bytes()


def nothing(value):
    return None


DAMAGE = {
    "settings": nothing,
    "model": nothing,
    "optimizer": nothing,
    "schedule": nothing,
    "epoch": lambda epoch: "one",
    "planned": lambda planned: 0,
    "random": lambda random: [random[0] | {"state": {"key": np.zeros(3, np.uint32), "pos": 0}}],
}


@pytest.mark.parametrize("part", DAMAGE)
def test_a_damaged_checkpoint_is_a_sentence(part, tmp_path):
    path = tmp_path / "x"
    run(mlp_resnet, "--epochs", 1, "--checkpoint", path)
    state = ndl.load(path)
    ndl.save(path, state | {part: DAMAGE[part](state[part])})
    with pytest.raises(SystemExit, match=r"^--resume: .*: ") as ended:
        run(mlp_resnet, "--epochs", 1, "--checkpoint", path, "--resume")
    assert "\n" not in str(ended.value)


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(SystemExit, match=r"--resume: .*[Dd]irectory|--resume: .*denied"):
        run(mlp_resnet, "--checkpoint", tmp_path, "--resume")


def test_ctrl_c_at_any_time_is_no_traceback(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    path = tmp_path / "x"
    run(gpt, "--epochs", 1, "--checkpoint", path)
    with monkeypatch.context() as patch:
        patch.setattr(gpt.GPT, "generate", stop)  # while it writes
        with pytest.raises(SystemExit, match="stopped"):
            run(gpt, "--epochs", 1, "--checkpoint", path, "--resume", "--write", 5)
    monkeypatch.setattr(gpt, "run_epoch", stop)  # while a finished training is tested
    with pytest.raises(SystemExit, match="stopped"):
        run(gpt, "--epochs", 1, "--checkpoint", path, "--resume")


def test_checkpoints_that_do_not_fit(tmp_path):
    path = tmp_path / "x.safetensors"
    run(mlp_resnet, "--epochs", 1, "--checkpoint", path)
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="--hidden-dim was 16, and is 20 now"):
        run(mlp_resnet, "--checkpoint", path, "--resume", "--hidden-dim", 20)
    path.write_bytes(before[: len(before) // 2])
    with pytest.raises(SystemExit, match=r"--resume: .*x\.safetensors"):
        run(mlp_resnet, "--checkpoint", path, "--resume")
    ndl.save(path, {"weight": ndl.ones(2)})
    with pytest.raises(SystemExit, match="not the state of a training"):
        run(mlp_resnet, "--checkpoint", path, "--resume")
    with pytest.raises(SystemExit, match="cannot be written"):
        run(mlp_resnet, "--checkpoint", tmp_path / "no" / "such" / "folder")


def test_a_first_run_may_say_resume(tmp_path, capsys):
    run(mlp_resnet, "--epochs", 1, "--checkpoint", tmp_path / "x", "--resume")
    assert "beginning anew" in capsys.readouterr().err
    assert (tmp_path / "x").exists()


def test_a_device_that_is_not_there_says_why(monkeypatch):
    monkeypatch.setattr(type(ndl.cuda()), "why", lambda self: "There is no GPU.")
    with pytest.raises(SystemExit, match="--device cuda: There is no GPU"):
        mlp_resnet.main(["--device", "cuda"])


@pytest.mark.parametrize(
    ("app", "function"), [(mlp_resnet, "mnist"), (cnn, "mnist"), (cnn, "cifar10"), (language_model, "ptb")]
)
def test_data_that_is_not_there_is_a_sentence(app, function, monkeypatch, capsys):
    def offline(**_):
        raise OSError("it could not be downloaded")

    monkeypatch.setattr(ndl.data, function, offline)
    with pytest.raises(SystemExit):
        run(app, "--data", function)
    assert capsys.readouterr().err.endswith("error: it could not be downloaded\n")


@pytest.mark.parametrize(
    ("app", "content", "words"),
    [
        (gpt, "too short for words", "no part of 16 and one more"),
        (language_model, "too short for words", "20 columns"),
        (
            language_model,
            "ab" * 150,
            "each column needs two words or more, but there are 270 to learn from and 30",
        ),
    ],
)
def test_a_text_that_is_too_short_is_a_sentence(app, content, words, tmp_path, capsys):
    (tmp_path / "my.txt").write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit):
        run(app, "--data", tmp_path / "my.txt")
    assert words in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no GPU-free way to send Ctrl-C to a process on Windows")
def test_ctrl_c_leaves_a_checkpoint_to_go_on_from(tmp_path):
    path = tmp_path / "x.safetensors"
    command = [sys.executable, "-m", "needle.apps.mlp_resnet", "--device=cpu_numpy", f"--checkpoint={path}"]
    with subprocess.Popen(
        [*command, "--epochs=10000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores Ctrl-C, and so do its children.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            for line in process.stdout:
                if line.startswith("epoch 2/"):
                    break
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "go on with --checkpoint" in errors
    assert "Traceback" not in errors
    done = ndl.load(path)["epoch"]
    assert done >= 2
    again = subprocess.run(
        [*command, "--resume", f"--epochs={done + 1}"], capture_output=True, text=True, check=True
    )
    assert f"going on after epoch {done}" in again.stdout


# How the course's notebooks and tests import them


@pytest.mark.parametrize(
    ("folder", "package"), [("needle", "apps."), ("needle/apps", "")], ids=["apps.X", "X"]
)
def test_the_folders_may_be_on_the_path(folder, package):
    names = [path.stem for path in sorted((ROOT / "needle" / "apps").glob("[a-z]*.py"))]
    assert {"simple_ml", "mlp_resnet", "models"} <= set(names)
    program = f"import sys; sys.path.append({str(ROOT / folder)!r})\n"
    program += "".join(f"import {package}{name}\n" for name in names)
    program += (
        f"from {package}mlp_resnet import *; from {package}models import *; MLPResNet, ResNet9, epoch\n"
    )
    program += f"from {package}simple_ml import *; nn_epoch, train_ptb\n"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


UNDER_NUMPY = f"""
import sys
import numpy as np
import needle as ndl
from needle.apps import cnn, mlp_resnet, language_model, simple_ml
assert ndl.BACKEND == "np"
options = ["--quiet", "--epochs", "1"]
assert mlp_resnet.main([*options, "--hidden-dim", "16"])["train_loss"] < 3
assert simple_ml.main(options)["train_loss"] < 3
assert cnn.main([*options, "--channels", "2", "--batch-size", "200"])["train_loss"] < 3
model = {SMALL[language_model]!r}
assert language_model.main([*options, *model, "--data", sys.argv[1]])["train_loss"] < 5
print("ok")
"""


@pytest.mark.slow
def test_the_commands_run_on_numpys_arrays(few_sonnets, monkeypatch):
    monkeypatch.setenv("NEEDLE_BACKEND", "np")
    command = [sys.executable, "-W", "error", "-c", UNDER_NUMPY, few_sonnets]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.endswith("ok\n"), done.stderr
