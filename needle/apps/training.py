"""What the applications share: a pass over batches, and a training that a command runs, saves and resumes."""

from __future__ import annotations

import argparse
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
    "finding_data",
    "loss_module",
    "on_device_of",
    "options",
    "run_epoch",
    "start",
    "train_on_images",
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
    """Inputs, moved to where the model's parameters are, and in their dtype."""
    like = model.parameters()[0]
    with ndl.no_grad():
        return X.to(like.device).astype(like.dtype)


# Commands


def options(description: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """A parser of the options that every command has.

    Parameters
    ----------
    description : str
        The module's docstring; its first line is shown.
    **defaults
        Those of ``epochs``, ``batch_size``, ``lr`` and ``weight_decay``.
    """
    parser = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--epochs", type=int, help="how often to go through the data")
    parser.add_argument("--batch-size", type=int, help="examples per step")
    parser.add_argument("--lr", type=float, help="the learning rate")
    parser.add_argument("--weight-decay", type=float, help="how strongly weights are pulled to 0")
    parser.add_argument(
        "--device", choices=["cpu", "cpu_numpy", "cuda"], default="cpu", help="where to compute"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers")
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
    for name in ("epochs", "batch_size"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be 1 or more, got {getattr(args, name)}")
    if args.resume and args.checkpoint is None:
        parser.error("--resume needs --checkpoint PATH: the file to go on from")
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


#: Options that may change from one run of a training to the next.
_FREE = {"checkpoint", "device", "epochs", "quiet", "resume", "seed"}


class Training:
    """A training that can be interrupted and goes on as if it had not been.

    All random numbers are NumPy's global ones, so that their state is part of the training's.

    Parameters
    ----------
    args : argparse.Namespace
        The options that `start` returned.
    model : Module
    optimizer : Optimizer
    schedule : Schedule, optional

    Attributes
    ----------
    epoch : int
        How many epochs are done.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        model: nn.Module,
        optimizer: ndl.optim.Optimizer,
        schedule: ndl.optim.Schedule | None = None,
    ):
        self.args = args
        self.settings = {name: value for name, value in vars(args).items() if name not in _FREE}
        self.model = model
        self.optimizer = optimizer
        self.schedule = schedule
        self.epoch = 0

    def state_dict(self) -> dict[str, Any]:
        """All that the training depends on, as `needle.save` takes it."""
        return {
            "settings": self.settings,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "epoch": self.epoch,
            "random": np.random.get_state(legacy=False),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the training was that `state` was taken of.

        Raises
        ------
        ValueError
            If it is not a training's, or one with other options.
        """
        if not isinstance(state, dict) or set(state) != set(self.state_dict()):
            raise ValueError("this is not the state of a training")
        theirs = state["settings"]
        changed = [
            f"--{name.replace('_', '-')} was {theirs.get(name)}, and is {self.settings.get(name)} now"
            for name in {**theirs, **self.settings}
            if theirs.get(name) != self.settings.get(name)
        ]
        if changed:
            raise ValueError(f"this training had other options: {'; '.join(changed)}")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        self.epoch = state["epoch"]
        np.random.set_state(state["random"])

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
            except ValueError as error:
                raise SystemExit(f"--resume: {path}: {error}") from None
            if not self.args.quiet:
                print(f"going on after epoch {self.epoch}")
        elif self.args.resume:
            print(f"--resume: there is no {path} yet; beginning anew", file=sys.stderr)
            self._save()
        else:
            self._save()  # so that there is one from the first moment on, and a wrong path shows at once

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
    schedule = ndl.optim.CosineLR(optimizer, args.epochs * len(train_loader))

    def learn(progress: Callable) -> Averages:
        model.train()
        batches = ((prepare(X), y) for X, y in progress(train_loader))
        return run_epoch(batches, model, nn.SoftmaxLoss(), optimizer, schedule=schedule)

    def evaluate() -> Averages:
        model.eval()
        return run_epoch(((prepare(X), y) for X, y in test_loader), model, nn.SoftmaxLoss())

    return Training(args, model, optimizer, schedule).run(learn, evaluate)
