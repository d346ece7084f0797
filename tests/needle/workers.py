"""What several workers run in tests of data-parallel training: ``mpiexec -n 2 python workers.py all OUT``.

Every worker runs each of FUNCTIONS, and worker 0 writes the arrays that it returns to a file in OUT.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

import needle as ndl
from needle import nn, optim, parallel
from needle.apps import mlp_resnet, training
from needle.apps.gpt import GPT
from needle.apps.models import LanguageModel
from needle.apps.simple_ml import recurrent, text_epoch
from needle.apps.training import learning_step, run_epoch
from needle.autograd import Tensor
from needle.parallel import Workers

# Trainings of 100 steps. With 22 items in batches of 7 the parts are uneven, and the last batch has one item.

ITEMS, BATCH, STEPS = 22, 7, 100
OPTIMIZERS = {
    "sgd": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    "adam": lambda params: optim.Adam(params, lr=0.01),
}
WHERE: dict[str, Any] = {"dtype": "float64"}


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16, **WHERE), nn.ReLU(), nn.Linear(16, 5, **WHERE))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv(1, 4, 3, **WHERE),
        nn.BatchNorm2d(4, **WHERE),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 8, **WHERE),
        nn.BatchNorm1d(8, **WHERE),
        nn.ReLU(),
        nn.Linear(8, 5, **WHERE),
    )


def transformer() -> nn.Module:
    return GPT(7, context=5, dim=8, num_layers=2, num_heads=2, **WHERE)


def lstm() -> nn.Module:
    return LanguageModel(4, 7, 8, num_layers=2, seq_model="lstm", **WHERE)


MODELS = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "transformer": transformer}


def items(name: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    if name == "transformer":
        text = rng.integers(0, 7, size=(ITEMS, 6))
        return text[:, :-1], text[:, 1:]
    shape = {"mlp": (6,), "cnn": (1, 4, 4)}[name]
    return rng.normal(size=(ITEMS, *shape)), rng.integers(0, 5, size=ITEMS)


def trained(name: str, optimizer: str, workers: Workers | None = None) -> dict[str, np.ndarray]:
    """A model after 100 steps, and the averages of its last epochs."""
    np.random.seed(0)
    model = MODELS[name]()
    if workers is not None:
        if workers.rank > 0:  # so that the test sees who takes whose values
            for p in model.parameters():
                p.data = p.data * 0
        workers.same_values(model)
        parallel.synchronise(model, workers)
    opt = OPTIMIZERS[optimizer](model.parameters())
    loss_fn = nn.SoftmaxLoss()
    losses, steps = [], 0
    if name == "lstm":  # five columns of a text
        data = np.random.default_rng(1).integers(0, 7, size=(41, 5))
        learn = learning_step(recurrent(model), loss_fn, opt, clip=0.5, workers=workers)
        while steps < STEPS:
            averages = text_epoch(data, model, 4, loss_fn, learn, dtype="float64", workers=workers)
            losses += averages.batch_losses
            steps += 10
    else:
        dataset = ndl.data.NDArrayDataset(*items(name))
        loader = ndl.data.DataLoader(dataset, BATCH, shuffle=True, dtype="float64", workers=workers)

        def logits_of(X):
            logits = model(X)
            return logits.reshape((-1, logits.shape[-1]))

        learn = learning_step(logits_of, loss_fn, opt, clip=0.5, workers=workers)
        while steps < STEPS:
            model.train()
            batches = ((X, y.reshape((-1,))) for X, y in loader)
            averages = run_epoch(
                batches, logits_of, loss_fn, learn, workers=workers, batch_sizes=loader.sizes
            )
            losses += averages.batch_losses
            steps += len(loader)
    assert steps == STEPS
    found = {key: value.numpy() for key, value in model.state_dict().items()}
    if workers is not None:
        for theirs in workers.gather(found):
            for key, value in found.items():
                np.testing.assert_array_equal(theirs[key], value)  # to the last bit
    return found | {"losses": np.array(losses), "averages": np.array(averages[:2])}


def trainings(workers: Workers | None = None) -> dict[str, np.ndarray]:
    """All models with all optimisers."""
    return {
        f"{name} {optimizer} {key}": value
        for name in MODELS
        for optimizer in OPTIMIZERS
        for key, value in trained(name, optimizer, workers).items()
    }


# Parts of a training


def means(workers: Workers) -> dict[str, np.ndarray]:
    """Gradients of several dtypes, some of which only some workers have, averaged by different weights."""
    rank = workers.rank
    params = [
        Tensor(np.zeros(shape), dtype=dtype)
        for shape, dtype in [((2, 3), "float32"), ((4,), "float64"), ((), "float32"), ((3,), "float64")]
    ]
    for step in (1, 2):  # the same buffer is used again
        params[0].grad = Tensor(np.full((2, 3), rank + step), dtype="float32")
        params[1].grad = Tensor(np.full(4, 10.0 * rank), dtype="float64") if rank == 1 else None
        params[2].grad = Tensor(rank, dtype="float32")
        params[3].grad = None
        workers.average_gradients(params, weight=rank + 1)
    assert params[3].grad is None
    assert [p.grad.dtype for p in params[:3]] == [p.dtype for p in params[:3]]
    assert [p.grad.shape for p in params[:3]] == [p.shape for p in params[:3]]
    assert workers.steps == 2
    assert workers.bytes == 2 * 8 * (6 + 4 + 1 + 3 + 4 + 1)
    assert workers.seconds > 0
    return {f"grad {i}": p.grad.numpy() for i, p in enumerate(params[:3])}


def derivatives(workers: Workers) -> dict[str, np.ndarray]:
    """The gradient that averages have, and central differences of the loss of the whole batch.

    Worker k has k + 1 rows. The loss of a part depends on the averages of all parts, in two layers.
    """
    rows = np.random.default_rng(2).normal(size=(workers.rank + 1, 3))

    def loss_of(x: Tensor, w: Tensor) -> Tensor:
        mean = parallel.average((x * w).mean(0), workers, len(rows))
        again = parallel.average((mean * mean).sum() + (x.sum(0) * w).sum(), workers, len(rows))
        return ((x * mean).sum() / len(rows)) * ndl.tanh(again) + (x * x * w).mean()

    def loss_of_batch(w: np.ndarray) -> float:
        loss = loss_of(Tensor(rows, dtype="float64"), Tensor(w, dtype="float64")).numpy()
        total, weight = workers.sum(len(rows) * np.array([loss.item(), 1.0]))
        return total / weight

    value = np.array([0.3, -0.2, 0.5])
    w = Tensor(value, dtype="float64")
    loss_of(Tensor(rows, dtype="float64"), w).backward()
    workers.average_gradients([w], weight=len(rows))
    step = 1e-5
    differences = [
        (loss_of_batch(value + step * e) - loss_of_batch(value - step * e)) / (2 * step) for e in np.eye(3)
    ]
    return {"gradient": w.grad.numpy(), "differences": np.array(differences)}


def lazily(workers: Workers) -> dict[str, np.ndarray]:
    """In lazy mode, an average at which worker 0 alone looks, and then a sum."""
    with ndl.lazy():
        mean = parallel.average(Tensor(np.full(3, float(workers.rank))), workers, 1)
        if workers.rank == 0:
            mean.numpy()
        total = workers.sum(np.ones(3))
    return {"mean": mean.numpy(), "sum": total}


def normalised(workers: Workers | None = None) -> dict[str, np.ndarray]:
    """What batch normalization makes of 7 images: results, gradients and running moments."""
    rng = np.random.default_rng(3)
    images, factors = rng.normal(size=(2, 7, 2, 3, 3))
    number = np.arange(7)
    if workers is not None:
        number = workers.share(number)
    norm = nn.BatchNorm2d(2, dtype="float64")
    norm.weight.data = Tensor([2.0, 0.5], dtype="float64")
    if workers is not None:
        parallel.synchronise(norm, workers)
    x = Tensor(images[number], dtype="float64")
    out = norm(x)
    (out * Tensor(factors[number], dtype="float64")).sum((1, 2, 3)).mean().backward()
    # This is the gradient of the mean over a part; the share of the part makes it that of the whole batch.
    found = {"out": out.numpy(), "x": x.grad.numpy() * (len(number) / 7)}
    if workers is not None:
        workers.average_gradients(norm.parameters(), weight=len(number))
        found = {key: in_order(workers, number, part) for key, part in found.items()}
    found |= {"weight": norm.weight.grad.numpy(), "bias": norm.bias.grad.numpy()}
    found |= {"mean": norm.running_mean.numpy(), "variance": norm.running_var.numpy()}
    norm.eval()
    return found | {"used": norm(Tensor(images, dtype="float64")).numpy()}


def in_order(workers: Workers, number: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The parts of all workers, put together."""
    whole = np.empty((7, *part.shape[1:]))
    for numbers, values in workers.gather((number, part)):
        whole[numbers] = values
    return whole


def shared(workers: Workers) -> dict[str, np.ndarray]:
    """Every item of an epoch, as the workers get it; and that worker 0 alone draws the order."""
    np.random.seed(workers.rank)
    dataset = ndl.data.NDArrayDataset(np.arange(11.0))
    loader = ndl.data.DataLoader(dataset, 5, shuffle=True, workers=workers)
    parts = [[x.numpy() for (x,) in loader] for _ in range(2)]
    afterwards = np.random.rand()
    everybody = workers.gather((parts, afterwards))
    batches = [np.sort(np.concatenate([theirs[0][1][i] for theirs in everybody])) for i in range(len(loader))]
    return {f"batch {i}": batch for i, batch in enumerate(batches)} | {
        "afterwards": np.array([theirs[1] for theirs in everybody])
    }


def buffers(workers: Workers) -> dict[str, np.ndarray]:
    """The running mean of a model after workers saw different numbers: in itself, and in a command."""
    norm = nn.BatchNorm1d(3)
    norm.running_mean.data = Tensor(np.full(3, float(workers.rank)))
    workers.average_buffers(norm)
    assert workers.steps == 0

    models = []
    begin = training.Training.__init__

    def begin_and_keep(self, args, model, *more):
        models.append(model)
        begin(self, args, model, *more)

    training.Training.__init__ = begin_and_keep  # type: ignore[method-assign]
    mlp_resnet.main(
        ["--hidden-dim", "16", "--num-blocks", "1", "--batch-size", "100", "--epochs", "1", "--data-parallel"]
    )
    state = {name: x.numpy() for name, x in models[0].state_dict().items()}
    assert any(name.endswith("running_var") for name in state)
    for theirs in workers.gather(state):
        for name, value in state.items():
            np.testing.assert_array_equal(theirs[name], value, err_msg=name)
    return {"mean": norm.running_mean.numpy()}


def processors(workers: Workers) -> dict[str, np.ndarray]:
    """How many threads each worker uses."""
    import numba

    return {"threads": np.array(workers.gather(numba.get_num_threads()))}


FUNCTIONS = (trainings, means, derivatives, lazily, normalised, shared, buffers, processors)


# Trainings that end badly: mlp_resnet with a worker that fails


def failing(kind: str, rank: int, step: int, argv: list[str]) -> None:
    """Train, but at that step something happens to that worker (-1: to every worker)."""
    average = Workers.average_gradients
    seen = 0

    def average_or_fail(self, params, weight):
        nonlocal seen
        seen += 1
        if seen == step and rank in (-1, self.rank):
            if kind == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("this worker was made to fail")
        average(self, params, weight)

    Workers.average_gradients = average_or_fail  # type: ignore[method-assign]
    mlp_resnet.main(argv)


def killed_in_a_write(number: int, argv: list[str]) -> None:
    """Train, but worker 0 is killed when half of a checkpoint is written: the `number`-th."""
    import builtins

    real_open, written = builtins.open, 0

    def open_or_die(file, mode="r", *args, **kwargs):
        nonlocal written
        opened = real_open(file, mode, *args, **kwargs)
        if str(file).endswith(".part"):
            written += 1
            if written == number:
                write = opened.write

                class Half:
                    def __enter__(self):
                        return self

                    def __exit__(self, *_):
                        opened.close()

                    def write(self, content):
                        write(content[: len(content) // 2])
                        opened.flush()
                        os.kill(os.getpid(), signal.SIGKILL)

                return Half()
        return opened

    builtins.open = open_or_die
    mlp_resnet.main(argv)


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    if name == "failing":
        failing(rest[0], int(rest[1]), int(rest[2]), rest[3:])
    elif name == "killed_in_a_write":
        killed_in_a_write(int(rest[0]), rest[1:])
    else:
        for run in FUNCTIONS:
            group = Workers()
            arrays = run(group)
            if group.rank == 0:
                np.savez(Path(rest[0]) / f"{run.__name__}.npz", **arrays)
