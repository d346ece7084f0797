"""What the applications share: a pass over batches, and a training that can be saved and resumed."""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import needle as ndl
from needle import nn

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
    """

    def step(X: Any, y: Any, *state: Any) -> tuple:
        found = logits_of(X, *state)
        logits, *after = found if isinstance(found, tuple) else (found,)
        loss = loss_fn(logits, y)
        opt.reset_grad()
        loss.backward(create_graph=False)
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

    Raises
    ------
    ValueError
        If there are no batches.
    """
    losses: list[float] = []
    sizes: list[int] = []
    correct = 0
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
        correct += int(np.count_nonzero(logits.numpy().argmax(axis=1) == targets))
        losses.append(loss.numpy().item())
        sizes.append(len(targets))
        del logits, loss  # frees the graph before the next one is built
    if not sizes:
        raise ValueError("run_epoch: there are no batches; is the data shorter than one batch?")
    return Averages(correct / sum(sizes), float(np.average(losses, weights=sizes)), losses)


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
    "device",
    "epochs",
    "jit",
    "quiet",
    "resume",
    "seed",
    "temperature",
    "top_k",
    "write",
}


class Training:
    """A training that can be interrupted, and then goes on as if it had not been.

    It draws all random numbers from NumPy's global state, and saves that state with the model.

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
        self.optimizer = optimizer
        self._schedule_for = schedule_for
        self.epoch = 0
        self._plan(args.epochs)

    def _plan(self, epochs: int) -> None:
        self.planned = epochs
        self.schedule = None if self._schedule_for is None else self._schedule_for(epochs)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training depends on, for `needle.save`."""
        return {
            "settings": self.settings,
            "model": self.model.state_dict(),
            "optimizer": None if self.optimizer is None else self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "epoch": self.epoch,
            "planned": self.planned,
            "random": np.random.get_state(legacy=False),
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
            np.random.set_state(state["random"])
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"this state of a training is damaged: {error!r}") from None
        self.epoch = epoch

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
                trained = learn(functools.partial(tqdm, desc=name, leave=False, disable=args.quiet or None))
                tested = evaluate()
                self.epoch = epoch
                self._save()
                if not args.quiet:
                    seconds = time.perf_counter() - began
                    print(f"{name}  {_words('train', trained)}  {_words('test', tested)}  {seconds:.1f} s")
                metrics = _metrics("train", trained) | _metrics("test", tested)
        except KeyboardInterrupt:
            way = f"; go on with --checkpoint {args.checkpoint} --resume" if args.checkpoint else ""
            raise SystemExit(f"\nstopped after {self.epoch} of {args.epochs} epochs{way}") from None
        metrics = metrics or _metrics("test", evaluate())  # where no epoch was left
        print(f"test accuracy {metrics['test_accuracy']:.2%}, test loss {metrics['test_loss']:.4f}")
        return metrics

    def _begin(self) -> None:
        """Load the checkpoint to go on from, or save a first one, so that a wrong path shows at once."""
        path = self.args.checkpoint
        if not (self.args.resume and path.exists()):
            if self.args.resume:
                print(f"--resume: there is no {path} yet; beginning anew", file=sys.stderr)
            self._save()
            return
        try:
            self.load_state_dict(ndl.load(path))
        except (OSError, ValueError) as error:
            raise SystemExit(f"--resume: {path}: {error}") from None
        if not self.args.quiet:
            ends_early = self.schedule is not None and self.args.epochs < self.planned
            plan = f"; the learning rate falls over {self.planned} epochs" if ends_early else ""
            print(f"going on after epoch {self.epoch}{plan}")

    def _save(self) -> None:
        if self.args.checkpoint is not None:
            try:
                ndl.save(self.args.checkpoint, self.state_dict())
            except OSError as error:
                raise SystemExit(f"--checkpoint: {self.args.checkpoint} cannot be written: {error}") from None


def _metrics(part: str, averages: Averages) -> dict[str, float]:
    return {f"{part}_loss": averages.loss, f"{part}_accuracy": averages.accuracy}


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
    train_loader = ndl.data.DataLoader(train, args.batch_size, shuffle=True, device=device)
    test_loader = ndl.data.DataLoader(test, 500, device=device)
    optimizer = ndl.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    training = Training(
        args, model, optimizer, lambda epochs: ndl.optim.CosineLR(optimizer, epochs * len(train_loader))
    )

    loss_fn = nn.SoftmaxLoss()
    step = compiled(learning_step(model, loss_fn, optimizer), args)

    def learn(progress: Callable) -> Averages:
        model.train()
        batches = ((prepare(X), y) for X, y in progress(train_loader))
        return run_epoch(batches, model, loss_fn, step, training.schedule)

    def evaluate() -> Averages:
        model.eval()
        return run_epoch(((prepare(X), y) for X, y in test_loader), model, loss_fn)

    return training.run(learn, evaluate)
