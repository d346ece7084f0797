"""What the applications share: a pass over batches, and a training that a command runs, saves and resumes."""

from __future__ import annotations

import argparse
import functools
import math
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import needle as ndl
from needle import nn

__all__ = [
    "Averages",
    "Training",
    "chosen_device",
    "command",
    "explained",
    "finding_data",
    "loss_module",
    "number",
    "on_device_of",
    "options",
    "run_epoch",
    "start",
    "train_on_images",
    "whole",
]


class Averages(NamedTuple):
    """What came of a pass over batches.

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


def run_epoch(
    batches: Iterable,
    logits_of: Callable[[Any], ndl.Tensor],
    loss_fn: Callable[[ndl.Tensor, Any], ndl.Tensor],
    opt: ndl.optim.Optimizer | None = None,
    clip: float | None = None,
    schedule: ndl.optim.Schedule | None = None,
) -> Averages:
    """Go through batches once, learning from each or, without an optimiser, only looking.

    Parameters
    ----------
    batches : iterable of pairs
        Inputs, and the targets: integers of shape (n,).
    logits_of : callable
        From inputs to logits of shape (n, classes): a model.
    loss_fn : callable
        From logits and targets to the mean loss.
    opt : Optimizer, optional
        Makes a step after every batch.
    clip : float, optional
        How long the gradients of a step may be; see `Optimizer.clip_grad_norm`.
    schedule : Schedule, optional
        Is stepped with the optimiser.

    Returns
    -------
    Averages

    Raises
    ------
    ValueError
        If there are no batches.
    """
    losses: list[float] = []
    sizes: list[int] = []
    correct = 0
    for X, y in batches:
        with nullcontext() if opt is not None else ndl.no_grad():
            logits = logits_of(X)
            loss = loss_fn(logits, y)
        if opt is not None:
            opt.reset_grad()
            loss.backward(create_graph=False)
            if clip is not None:
                opt.clip_grad_norm(clip)
            opt.step()
            if schedule is not None:
                schedule.step()
        targets = np.asarray(y.numpy() if isinstance(y, ndl.Tensor) else y)
        correct += int(np.count_nonzero(logits.numpy().argmax(axis=1) == targets))
        losses.append(loss.numpy().item())
        sizes.append(len(targets))
        del logits, loss  # and with them the graph, before the next one is built
    if not sizes:
        raise ValueError("run_epoch: there are no batches; is the data shorter than one?")
    return Averages(correct / sum(sizes), float(np.average(losses, weights=sizes)), losses)


def loss_module(loss_fn: Any) -> Any:
    """A loss from its class, or the loss itself."""
    return loss_fn() if isinstance(loss_fn, type) else loss_fn


def on_device_of(model: nn.Module, X: ndl.Tensor) -> ndl.Tensor:
    """Inputs, moved to where the model's parameters, if it has any, are, and in their dtype."""
    parameters = model.parameters()
    if not parameters:
        return X
    with ndl.no_grad():
        return X.to(parameters[0].device).astype(parameters[0].dtype)


# Commands


def whole(low: int, high: float = math.inf) -> Callable[[str], int]:
    """The ``type`` of an option: whole numbers from `low` to `high`."""

    def read(word: str) -> int:
        try:
            value = int(word)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            bounds = f"of {low} or more" if high == math.inf else f"from {low} to {high}"
            raise argparse.ArgumentTypeError(f"must be a whole number {bounds}, got {word}")
        return value

    return read


def number(low: float, below: float = math.inf, *, above: bool = False) -> Callable[[str], float]:
    """The ``type`` of an option: numbers from `low` (or only `above` it) to below another."""

    def read(word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not low <= value < below or (above and value == low):
            bounds = f"above {low}" if above else f"{low} or more"
            bounds += "" if below == math.inf else f" and below {below}"
            raise argparse.ArgumentTypeError(f"must be a number {bounds}, got {word}")
        return value

    return read


def options(description: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """A parser of the options that every command has.

    Parameters
    ----------
    description : str
        The module's docstring; its first line is shown.
    **defaults
        Those of ``epochs``, ``batch_size``, ``lr`` and, where there is one, ``weight_decay``.
    """
    parser = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--epochs", type=whole(1), help="how often to go through the data")
    parser.add_argument("--batch-size", type=whole(1), help="examples per step")
    parser.add_argument("--lr", type=number(0), help="the learning rate")
    if "weight_decay" in defaults:
        parser.add_argument("--weight-decay", type=number(0), help="how strongly weights are pulled to 0")
    parser.add_argument(
        "--device", choices=["cpu", "cpu_numpy", "cuda"], default="cpu", help="where to compute"
    )
    parser.add_argument("--seed", type=whole(0, 2**32 - 1), default=0, help="of all random numbers")
    parser.add_argument("--checkpoint", type=Path, metavar="PATH", help="a file to save the training in")
    parser.add_argument("--resume", action="store_true", help="go on from --checkpoint, if that is there")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(**defaults)
    return parser


def chosen_device(name: str) -> Any:
    """The device of that name.

    Raises
    ------
    SystemExit
        If it does not work on this machine; the sentence says why.
    """
    device = getattr(ndl, name)()
    if not device.enabled():
        raise SystemExit(f"--device {name}: {device.why()}")
    return device


def start(parser: argparse.ArgumentParser, argv: list[str] | None) -> tuple[argparse.Namespace, Any]:
    """What a command begins with: its options, checked; the device; and random numbers from the seed.

    Returns
    -------
    tuple
        The options as a namespace, and the device.
    """
    args = parser.parse_args(argv)
    if args.resume and args.checkpoint is None:
        parser.error("--resume needs --checkpoint PATH: the file to go on from")
    if args.checkpoint is not None and args.checkpoint.exists() and not args.resume:
        parser.error(
            f"--checkpoint: {args.checkpoint} is there already; go on from it with --resume, "
            "or name another file, or remove it"
        )
    device = chosen_device(args.device)
    np.random.seed(args.seed)
    return args, device


@contextmanager
def finding_data():
    """Within this block, data that is missing or does not fit ends the command with a sentence."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise SystemExit(f"the data cannot be used: {error}") from None


@contextmanager
def explained(parser: argparse.ArgumentParser):
    """Within this block, a ValueError ends the command as a wrong option does: what was asked for is not
    possible."""
    try:
        yield
    except ValueError as error:
        parser.error(str(error))


def command(main: Callable) -> Callable:
    """A decorator: Ctrl-C ends the function, and the program, with a word."""

    @functools.wraps(main)
    def stoppable(argv: list[str] | None = None):
        try:
            return main(argv)
        except KeyboardInterrupt:
            raise SystemExit("\nstopped") from None

    return stoppable


#: Options that may change from one run of a training to the next: those that it does not depend on.
_FREE = {"checkpoint", "device", "epochs", "quiet", "resume", "seed", "temperature", "top_k", "write"}


class Training:
    """A training that can be interrupted and goes on as if it had not been.

    All random numbers are NumPy's global ones, so that their state is part of the training's.

    Parameters
    ----------
    args : argparse.Namespace
        The options that `start` returned.
    model : Module
    optimizer : Optimizer, optional
    schedule_for : callable, optional
        From a number of epochs to the schedule of the learning rate for so many.
    data : str, optional
        What tells the data from other data. Default: the option ``--data``.

    Attributes
    ----------
    epoch : int
        How many epochs are done.
    planned : int
        How many epochs the training was begun for; the schedule is theirs.
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
        self.settings = {name: value for name, value in vars(args).items() if name not in _FREE}
        if data is not None:
            self.settings["data"] = data
        self.model = model
        self.optimizer = optimizer
        self._schedule_for = schedule_for
        self.epoch = 0
        self._plan(args.epochs)

    def _plan(self, epochs: int) -> None:
        self.planned = epochs
        self.schedule = None if self._schedule_for is None else self._schedule_for(epochs)

    def state_dict(self) -> dict[str, Any]:
        """All that the training depends on, as `needle.save` takes it."""
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
        """Go on where the training was that `state` was taken of.

        Raises
        ------
        ValueError
            If it is not a training's, one with other options, or one for fewer epochs than the options say.
        """
        if not isinstance(state, dict) or set(state) != set(self.state_dict()):
            raise ValueError("this is not the state of a training")
        theirs, epoch, planned = state["settings"], state["epoch"], state["planned"]
        if not isinstance(theirs, dict) or type(epoch) is not int or type(planned) is not int:
            raise ValueError("this state of a training is damaged")
        changed = [
            f"--{name.replace('_', '-')} was {theirs.get(name)}, and is {self.settings.get(name)} now"
            for name in {**theirs, **self.settings}
            if theirs.get(name) != self.settings.get(name)
        ]
        if changed:
            raise ValueError(f"this training had other options: {'; '.join(changed)}")
        if not 0 <= epoch <= planned:
            raise ValueError(f"this state of a training is damaged: {epoch} epochs of {planned}")
        if self.args.epochs > planned:
            raise ValueError(
                f"this training was begun for {planned} epochs, over which its learning rate falls; "
                f"use --epochs {planned} or fewer, or begin a new one"
            )
        try:
            self.model.load_state_dict(state["model"])
            if self.optimizer is not None:
                self.optimizer.load_state_dict(state["optimizer"])
            self._plan(planned)
            if self.schedule is not None:
                self.schedule.load_state_dict(state["schedule"])
            np.random.set_state(state["random"])
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"this state of a training is damaged: {error!r}") from None
        self.epoch = epoch

    def run(self, learn: Callable[[Any], Averages], evaluate: Callable[[], Averages]) -> dict[str, float]:
        """Learn for as many epochs as the options say, showing how far it is, and save after each.

        With ``--resume`` it first goes on from the checkpoint. Ctrl-C ends it; the checkpoint is then that
        of the last whole epoch.

        Parameters
        ----------
        learn : callable
            One epoch. It is given a function that shows progress on an iterable: ``progress(loader)``.
        evaluate : callable
            What comes of the data to test with.

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
        self._resume_or_save()
        try:
            for epoch in range(self.epoch + 1, args.epochs + 1):
                began = time.perf_counter()
                trained = learn(
                    lambda batches, epoch=epoch: tqdm(
                        batches, f"epoch {epoch}/{args.epochs}", leave=False, disable=args.quiet or None
                    )
                )
                tested = evaluate()
                self.epoch = epoch
                self._save()
                metrics = _metrics(trained, tested)
                if not args.quiet:
                    print(
                        f"epoch {epoch}/{args.epochs}  {_line(metrics)}  {time.perf_counter() - began:.1f} s"
                    )
        except KeyboardInterrupt:
            way = f"; go on with --checkpoint {args.checkpoint} --resume" if args.checkpoint else ""
            raise SystemExit(f"\nstopped after {self.epoch} of {args.epochs} epochs{way}") from None
        if not metrics:  # there was nothing left to do
            tested = evaluate()
            metrics = {"test_loss": tested.loss, "test_accuracy": tested.accuracy}
        print(f"test accuracy {metrics['test_accuracy']:.2%}, test loss {metrics['test_loss']:.4f}")
        return metrics

    def _resume_or_save(self) -> None:
        path = self.args.checkpoint
        if self.args.resume and path.exists():
            try:
                self.load_state_dict(ndl.load(path))
            except (OSError, ValueError) as error:
                raise SystemExit(f"--resume: {path}: {error}") from None
            if not self.args.quiet:
                plan = f"; the learning rate falls over {self.planned}" if self._ends_early() else ""
                print(f"going on after epoch {self.epoch}{plan}")
        elif self.args.resume:
            print(f"--resume: there is no {path} yet; beginning anew", file=sys.stderr)
            self._save()
        else:
            self._save()  # so that there is one from the first moment on, and a wrong path shows at once

    def _ends_early(self) -> bool:
        return self.schedule is not None and self.args.epochs < self.planned

    def _save(self) -> None:
        if self.args.checkpoint is None:
            return
        try:
            ndl.save(self.args.checkpoint, self.state_dict())
        except OSError as error:
            raise SystemExit(f"--checkpoint: {self.args.checkpoint} cannot be written: {error}") from None


def _metrics(trained: Averages, tested: Averages) -> dict[str, float]:
    return {
        "train_loss": trained.loss,
        "train_accuracy": trained.accuracy,
        "test_loss": tested.loss,
        "test_accuracy": tested.accuracy,
    }


def _line(metrics: dict[str, float]) -> str:
    return "  ".join(
        f"{part} loss {metrics[f'{part}_loss']:.4f} accuracy {metrics[f'{part}_accuracy']:.2%}"
        for part in ("train", "test")
    )


def train_on_images(
    args: argparse.Namespace,
    train: ndl.data.Dataset,
    test: ndl.data.Dataset,
    model: nn.Module,
    prepare: Callable[[ndl.Tensor], ndl.Tensor] = lambda images: images,
) -> dict[str, float]:
    """Train a model on labelled images by AdamW, its learning rate falling along a cosine.

    Parameters
    ----------
    args : argparse.Namespace
        The options that `start` returned.
    train, test : Dataset
        Items are an image and its label.
    model : Module
        On the device of ``args.device``.
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

    def learn(progress: Callable) -> Averages:
        model.train()
        batches = ((prepare(X), y) for X, y in progress(train_loader))
        return run_epoch(batches, model, nn.SoftmaxLoss(), optimizer, schedule=training.schedule)

    def evaluate() -> Averages:
        model.eval()
        return run_epoch(((prepare(X), y) for X, y in test_loader), model, nn.SoftmaxLoss())

    return training.run(learn, evaluate)
