"""What the applications share: a pass over batches, and a training that can be saved and resumed."""

from __future__ import annotations

import argparse
import functools
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import needle as ndl
from needle import nn
from needle.parallel import Workers, synchronise

__all__ = [
    "Averages",
    "Training",
    "compiled",
    "learning_step",
    "loss_module",
    "on_device_of",
    "run_epoch",
    "train_on_images",
]


class Averages(NamedTuple):
    """The result of a pass over batches.

    Attributes
    ----------
    accuracy, loss : float
        The share of targets that were predicted, and the mean loss of a target.
    batch_losses : list of float
        The loss of each batch.
    """

    accuracy: float
    loss: float
    batch_losses: list[float]


def learning_step(
    logits_of: Callable[..., Any],
    loss_fn: Callable[[ndl.Tensor, Any], ndl.Tensor],
    opt: ndl.optim.Optimizer,
    clip: float | None = None,
    workers: Workers | None = None,
) -> Callable[..., tuple]:
    """A step of training: from a batch to its logits and its mean loss. `needle.jit` can compile it.

    Parameters
    ----------
    logits_of : callable
        From inputs to logits of shape (n, classes): a model. Of a recurrent one also from a state, and to
        a pair of logits and the state after it; the step then takes and returns the state, too.
    loss_fn : callable
        From logits and targets to the mean loss.
    opt : Optimizer
    clip : float, optional
        The largest length of a step's gradients; see `Optimizer.clip_grad_norm`.
    workers : Workers, optional
        Those who share the batch. The step, with its clipping, is then that of the whole batch, while the
        logits and the loss are those of this worker's part.
    """

    def step(X: Any, y: Any, *state: Any) -> tuple:
        found = logits_of(X, *state)
        logits, *after = found if isinstance(found, tuple) else (found,)
        loss = loss_fn(logits, y)
        opt.reset_grad()
        loss.backward(create_graph=False)
        if workers is not None:
            workers.average_gradients(opt.params, weight=y.shape[0])
        if clip is not None:
            opt.clip_grad_norm(clip)
        opt.step()
        return logits, loss, *after

    return step


def compiled(step: Callable[..., tuple], args: argparse.Namespace) -> Callable[..., tuple]:
    """The step of a training, compiled in the background if the options say so."""
    return ndl.jit(step, background=True) if args.jit and args.device == "cpu" else step


def run_epoch(
    batches: Iterable,
    logits_of: Callable[[Any], ndl.Tensor],
    loss_fn: Callable[[ndl.Tensor, Any], ndl.Tensor],
    learn: Callable[..., tuple] | None = None,
    schedule: ndl.optim.Schedule | None = None,
    workers: Workers | None = None,
    batch_sizes: Sequence[int] = (),
) -> Averages:
    """Go through batches once, and learn from each if there is a step of training.

    Parameters
    ----------
    batches : iterable of pairs
        Inputs, and the targets: integers of shape (n,).
    logits_of : callable
        From inputs to logits of shape (n, classes): a model.
    loss_fn : callable
        From logits and targets to the mean loss.
    learn : callable, optional
        Takes a batch, and returns its logits and loss; see `learning_step`. Without it, the model stays as
        it is.
    schedule : Schedule, optional
        Makes a step after each batch.
    workers : Workers, optional
        Those who share each batch. The averages are then those of all their parts.
    batch_sizes : sequence of int
        With workers: how many items each batch has, of all workers together.

    Raises
    ------
    ValueError
        If there are no batches, or if `batch_sizes` does not fit them.
    """
    losses: list[float] = []
    sizes: list[float] = []
    correct: list[float] = []
    for X, y in batches:
        if learn is not None:
            logits, loss = learn(X, y)
            if schedule is not None:
                schedule.step()
        else:
            with ndl.no_grad():
                logits = logits_of(X)
                loss = loss_fn(logits, y)
        targets = np.asarray(y.numpy() if isinstance(y, ndl.Tensor) else y)
        correct.append(int(np.count_nonzero(logits.numpy().argmax(axis=1) == targets)))
        losses.append(loss.numpy().item())
        sizes.append(len(targets))
        del logits, loss  # frees the graph before the next one is built
    if not sizes:
        raise ValueError("run_epoch: there are no batches; is the data shorter than one batch?")
    if workers is not None and workers.size > 1:
        if len(batch_sizes) != len(sizes):
            raise ValueError(
                f"run_epoch: there were {len(sizes)} batches, and batch_sizes has {len(batch_sizes)} "
                "numbers; with workers, pass the `sizes` of the DataLoader"
            )
        # A batch with fewer items than workers went to all of them, and counts once.
        copies = np.array([workers.size if size < workers.size else 1 for size in batch_sizes])
        own = np.array([sizes, correct, np.multiply(sizes, losses)], np.float64)
        of_all, right, total = workers.sum(own) / copies
        sizes, correct, losses = of_all.tolist(), right.tolist(), (total / of_all).tolist()
    return Averages(sum(correct) / sum(sizes), float(np.average(losses, weights=sizes)), losses)


def loss_module(loss_fn: Any) -> Any:
    """Make a loss from its class; a loss itself stays as it is."""
    return loss_fn() if isinstance(loss_fn, type) else loss_fn


def on_device_of(model: nn.Module, X: ndl.Tensor) -> ndl.Tensor:
    """Move inputs to the device of the model's parameters, and to their dtype."""
    parameters = model.parameters()
    if not parameters:
        return X
    with ndl.no_grad():
        return X.to(parameters[0].device).astype(parameters[0].dtype)


#: Options that may change when a training goes on: it does not depend on them.
FREE_OPTIONS = {
    "checkpoint",
    "data_parallel",
    "device",
    "epochs",
    "jit",
    "quiet",
    "resume",
    "seed",
    "temperature",
    "top_k",
    "workers",
    "write",
}


class Training:
    """A training that can be interrupted, and then goes on as if it had not been.

    It draws all random numbers from NumPy's global state, and saves that state with the model. If workers
    share the training, all begin with the model of worker 0. Then each worker draws random numbers of its
    own; those of worker 0 are the same as in a training alone. Worker 0 reads and writes the checkpoint.

    Parameters
    ----------
    args : argparse.Namespace
        The options from `needle.apps.commands.start`.
    model : Module
    optimizer : Optimizer, optional
    schedule_for : callable, optional
        From a number of epochs to a schedule of the learning rate for so many.
    data : str, optional
        What tells the data from other data. Default: the option ``--data``.

    Attributes
    ----------
    epoch : int
        How many epochs are done.
    planned : int
        How many epochs the training was begun for; the schedule is made for these.
    schedule : Schedule or None
    leads : bool
        Whether this process prints and writes files: it is alone, or worker 0.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        model: nn.Module,
        optimizer: ndl.optim.Optimizer | None = None,
        schedule_for: Callable[[int], ndl.optim.Schedule] | None = None,
        data: str | None = None,
    ):
        self.args = args
        self.settings = {name: value for name, value in vars(args).items() if name not in FREE_OPTIONS}
        self.settings["data"] = data or args.data
        self.model = model
        self.workers: Workers | None = args.workers
        self.leads = self.workers is None or self.workers.rank == 0
        self.epoch = 0
        if self.workers is not None:
            self.workers.same_values(model)
            self._seed_again()
            if self.settings.get("sync_batchnorm"):
                synchronise(model, self.workers)
        self.optimizer = optimizer
        self._schedule_for = schedule_for
        self._seconds = 0.0  # that the last epoch took; the first one also compiles kernels
        self._communication = np.zeros(3)  # in the last epoch: see `Workers.counters`
        self._plan(args.epochs)

    def _plan(self, epochs: int) -> None:
        self.planned = epochs
        self.schedule = None if self._schedule_for is None else self._schedule_for(epochs)

    def _seed_again(self) -> None:
        """Give every worker but 0 random numbers of its own from here on."""
        if self.workers is not None and self.workers.rank > 0:
            seeds = np.random.SeedSequence((self.args.seed, self.workers.rank, self.epoch))
            np.random.seed(seeds.generate_state(4))

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training depends on, for `needle.save`: the same on every worker."""
        random = np.random.get_state(legacy=False)
        return {
            "settings": self.settings,
            "model": self.model.state_dict(),
            "optimizer": None if self.optimizer is None else self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "epoch": self.epoch,
            "planned": self.planned,
            "random": [random] if self.workers is None else self.workers.gather(random),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where another training stood when its `state` was taken.

        Raises
        ------
        ValueError
            If `state` is not a training's or is damaged, or if the options do not fit it: other settings, or
            more epochs than its schedule has.
        """
        if not isinstance(state, dict) or set(state) != set(self.state_dict()):
            raise ValueError("this is not the state of a training")
        try:
            settings, epoch, planned = state["settings"], state["epoch"], state["planned"]
            changed = [
                f"--{name.replace('_', '-')} was {settings.get(name)}, and is {self.settings.get(name)} now"
                for name in {**settings, **self.settings}
                if settings.get(name) != self.settings.get(name)
            ]
            if changed:
                raise ValueError(f"this training had other options: {'; '.join(changed)}")
            if epoch not in range(planned + 1):
                raise ValueError(f"this state of a training is damaged: {epoch} epochs of {planned}")
            if self.schedule is not None and self.args.epochs > planned:
                raise ValueError(
                    f"this training was begun for {planned} epochs, over which its learning rate falls; "
                    f"use --epochs {planned} or fewer, or begin a new one"
                )
            self.model.load_state_dict(state["model"])
            if self.optimizer is not None:
                self.optimizer.load_state_dict(state["optimizer"])
            self._plan(max(planned, self.args.epochs))
            if self.schedule is not None:
                self.schedule.load_state_dict(state["schedule"])
            states = state["random"]
            number, rank = (1, 0) if self.workers is None else (self.workers.size, self.workers.rank)
            if self.leads or rank < len(states):
                np.random.set_state(states[rank])
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"this state of a training is damaged: {error!r}") from None
        self.epoch = epoch
        if rank >= len(states):
            self._seed_again()
        if self.leads and number != len(states):
            print(
                f"--resume: the number of workers was {len(states)}, and is {number} now: the batches are "
                "the same, but their parts are not, nor random numbers such as those of dropout",
                file=sys.stderr,
            )

    def run(self, learn: Callable[[Any], Averages], evaluate: Callable[[], Averages]) -> dict[str, float]:
        """Train for as many epochs as the options say, and save the training after each.

        With ``--resume``, the checkpoint is loaded first. Ctrl-C ends the training; the checkpoint then has
        the last whole epoch.

        Parameters
        ----------
        learn : callable
            Trains for one epoch. It gets a function that shows progress through an iterable:
            ``progress(loader)``.
        evaluate : callable
            Evaluates the model on the data to test with.

        Returns
        -------
        dict
            The last epoch's "train_loss", "train_accuracy", "test_loss" and "test_accuracy".

        Raises
        ------
        SystemExit
            If the checkpoint cannot be used, or after Ctrl-C.
        """
        args, metrics = self.args, {}
        self._begin()
        try:
            for epoch in range(self.epoch + 1, args.epochs + 1):
                began = time.perf_counter()
                name = f"epoch {epoch}/{args.epochs}"
                hidden = args.quiet or not self.leads or None
                trained = self._learn(learn, functools.partial(tqdm, desc=name, leave=False, disable=hidden))
                tested = evaluate()
                self.epoch = epoch
                self._save()
                if self.leads and not args.quiet:
                    seconds = time.perf_counter() - began
                    print(f"{name}  {_words('train', trained)}  {_words('test', tested)}  {seconds:.1f} s")
                metrics = _metrics("train", trained) | _metrics("test", tested)
        except KeyboardInterrupt:
            path = args.checkpoint and shlex.quote(str(args.checkpoint))
            way = f"; go on with --checkpoint {path} --resume" if path else ""
            raise SystemExit(f"\nstopped after {self.epoch} of {args.epochs} epochs{way}") from None
        metrics = metrics or _metrics("test", evaluate())  # where no epoch was left
        if self.leads:
            print(f"test accuracy {metrics['test_accuracy']:.2%}, test loss {metrics['test_loss']:.4f}")
            self._say_what_communication_took()
        return metrics

    def _learn(self, learn: Callable[[Any], Averages], progress: Callable) -> Averages:
        """Train for an epoch, and note what the workers' communication takes of it."""
        if self.workers is None:
            return learn(progress)
        began, before = time.perf_counter(), self.workers.counters()
        trained = learn(progress)
        self._seconds = time.perf_counter() - began
        self._communication = self.workers.counters() - before
        self.workers.average_buffers(self.model)  # each worker's running means have followed its own parts
        return trained

    def _say_what_communication_took(self) -> None:
        steps, size, seconds = self._communication
        if self.workers is not None and self.workers.size > 1 and steps:
            print(
                f"{self.workers.size} workers: a step of the last epoch took "
                f"{_milliseconds(self._seconds / steps)}, {_milliseconds(seconds / steps)} of it for "
                f"communication of {size / steps / 1e6:.3g} MB"
            )

    def _begin(self) -> None:
        """Load the checkpoint to go on from, or save a first one, so that a wrong path shows at once."""
        path = self.args.checkpoint
        if not (self.args.resume and self._by_leader(path.exists)):
            if self.args.resume and self.leads:
                print(f"--resume: there is no {path} yet; beginning anew", file=sys.stderr)
            self._save()
            return
        try:
            self.load_state_dict(self._by_leader(lambda: ndl.load(path)))
        except (OSError, ValueError) as error:
            raise SystemExit(f"--resume: {path}: {error}") from None
        if self.leads and not self.args.quiet:
            ends_early = self.schedule is not None and self.args.epochs < self.planned
            plan = f"; the learning rate falls over {self.planned} epochs" if ends_early else ""
            print(f"going on after epoch {self.epoch}{plan}")

    def _save(self) -> None:
        if self.args.checkpoint is not None:
            state = self.state_dict()
            try:
                self._by_leader(lambda: ndl.save(self.args.checkpoint, state))
            except OSError as error:
                raise SystemExit(f"--checkpoint: {self.args.checkpoint} cannot be written: {error}") from None

    def _by_leader(self, action: Callable[[], Any]) -> Any:
        """Let worker 0 do something with files. All get what it returns, or raise its error."""
        result = error = None
        if self.leads:
            try:
                result = action()
            except (OSError, ValueError) as caught:
                error = caught
        if self.workers is not None:
            result, error = self.workers.same((result, error))
        if error is not None:
            raise error
        return result


def _metrics(part: str, averages: Averages) -> dict[str, float]:
    return {f"{part}_loss": averages.loss, f"{part}_accuracy": averages.accuracy}


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{1e3 * seconds:.0f} ms"


def _words(part: str, averages: Averages) -> str:
    return f"{part} loss {averages.loss:.4f} accuracy {averages.accuracy:.2%}"


def train_on_images(
    args: argparse.Namespace,
    train: ndl.data.Dataset,
    test: ndl.data.Dataset,
    model: nn.Module,
    prepare: Callable[[ndl.Tensor], ndl.Tensor] = lambda images: images,
) -> dict[str, float]:
    """Train a model on labelled images by AdamW, while the learning rate falls along a cosine.

    Parameters
    ----------
    args : argparse.Namespace
        The options from `needle.apps.commands.start`.
    train, test : Dataset
        Items are an image and its label.
    model : Module
        Its parameters are on the device of ``args.device``.
    prepare : callable
        From a batch of images to what the model takes.

    Returns
    -------
    dict
        The last epoch's metrics; see `Training.run`.
    """
    device = model.parameters()[0].device
    where = {"device": device, "workers": args.workers}
    train_loader = ndl.data.DataLoader(train, args.batch_size, shuffle=True, **where)
    test_loader = ndl.data.DataLoader(test, 500, **where)
    optimizer = ndl.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    training = Training(
        args, model, optimizer, lambda epochs: ndl.optim.CosineLR(optimizer, epochs * len(train_loader))
    )

    loss_fn = nn.SoftmaxLoss()
    step = compiled(learning_step(model, loss_fn, optimizer, workers=args.workers), args)

    def one_epoch(loader, progress: Callable = iter, **more) -> Averages:
        batches = ((prepare(X), y) for X, y in progress(loader))
        return run_epoch(batches, model, loss_fn, workers=args.workers, batch_sizes=loader.sizes, **more)

    def learn(progress: Callable) -> Averages:
        model.train()
        return one_epoch(train_loader, progress, learn=step, schedule=training.schedule)

    def evaluate() -> Averages:
        model.eval()
        return one_epoch(test_loader)

    return training.run(learn, evaluate)
