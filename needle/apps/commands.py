"""What every command begins with: its options, the device, and sentences instead of tracebacks."""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import needle as ndl
from needle.apps.together import run_together, said_once, started_by_mpi
from needle.parallel import Workers

__all__ = ["at_least", "command", "explained", "options", "start"]


def command(main: Callable) -> Callable:
    """A decorator of a command's function: Ctrl-C ends it with a word, not with a traceback.

    With ``--data-parallel``, it runs as one of several workers; see `needle.apps.together`.
    """

    @functools.wraps(main)
    def stoppable(argv: list[str] | None = None):
        words = sys.argv[1:] if argv is None else argv
        try:
            if any(word.startswith("--data-") and "--data-parallel".startswith(word) for word in words):
                return run_together(main, words)
            return main(argv)
        except KeyboardInterrupt:
            raise SystemExit("\nstopped") from None

    return stoppable


def at_least(low: float) -> Callable[[str], float]:
    """The ``type`` of an option: numbers of `low` or more, whole ones if `low` is an int."""
    kind, name = type(low), "whole number" if isinstance(low, int) else "number"

    def read(word: str) -> float:
        try:
            value = kind(word)
        except ValueError:
            value = math.nan
        if not low <= value < math.inf:
            raise argparse.ArgumentTypeError(f"must be a {name} of at least {low:g}, got {word}")
        return value

    return read


def program() -> str | None:
    """How the command was started, for its help. From Python 3.14 on, argparse finds that by itself."""
    spec = sys.modules["__main__"].__spec__
    return f"python -m {spec.name}" if spec and spec.name.startswith("needle.apps.") else None


def options(description: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """A parser with the options that every command has.

    Parameters
    ----------
    description : str
        The module's docstring; its first line is shown.
    **defaults
        Those of ``epochs``, ``batch_size``, ``lr`` and, if the command has them, ``weight_decay``, ``jit``
        and ``sync_batchnorm``.
    """
    parser = argparse.ArgumentParser(
        prog=program(),
        description=(description or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--epochs", type=at_least(1), help="how often to go through the data")
    parser.add_argument("--batch-size", type=at_least(1), help="examples per step")
    parser.add_argument("--lr", type=at_least(0.0), help="the learning rate")
    if "weight_decay" in defaults:
        parser.add_argument("--weight-decay", type=at_least(0.0), help="how strongly to pull weights to 0")
    if "jit" in defaults:
        parser.add_argument(
            "--jit",
            action=argparse.BooleanOptionalAction,
            help="compile the steps of the training, in the background, on the device cpu",
        )
    parser.add_argument(
        "--data-parallel",
        action="store_true",
        help="share each batch among several processes: mpiexec -n 4 python -m …",
    )
    if "sync_batchnorm" in defaults:
        parser.add_argument(
            "--sync-batchnorm",
            action="store_true",
            help="with --data-parallel: batch normalization sees the whole batch",
        )
    parser.add_argument(
        "--device", choices=["cpu", "cpu_numpy", "cuda"], default="cpu", help="where to compute"
    )
    parser.add_argument("--seed", type=at_least(0), default=0, help="the seed of all random numbers")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="PATH", help="the file in which to save the training"
    )
    parser.add_argument("--resume", action="store_true", help="go on from --checkpoint, if it is there")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(**defaults)
    return parser


def start(parser: argparse.ArgumentParser, argv: list[str] | None) -> tuple[argparse.Namespace, Any]:
    """Read a command's options, find its device, and seed NumPy's random numbers.

    Returns
    -------
    tuple
        The options as a namespace, and the device. The namespace also has `workers`: None, or with
        ``--data-parallel`` the `needle.parallel.Workers`.

    Raises
    ------
    SystemExit
        If an option is wrong, or if the device does not work on this machine. The message says why.
    """
    args = parser.parse_args(argv)
    if args.resume and args.checkpoint is None:
        parser.error("--resume needs --checkpoint PATH: the file to go on from")
    if args.data_parallel and getattr(args, "jit", False):
        parser.error(
            "--jit with --data-parallel: a compiled step cannot wait for other workers; use one of the two"
        )
    if not args.data_parallel and (processes := started_by_mpi()) > 1:
        print(
            f"MPI has started {processes} processes, but without --data-parallel each of them learns alone, "
            "from all of the data",
            file=sys.stderr,
        )
    shared_norm = getattr(args, "sync_batchnorm", None)  # None: the command has no batch normalization
    if shared_norm and not args.data_parallel:
        parser.error(
            "--sync-batchnorm needs --data-parallel; a process alone normalizes over the whole batch anyway"
        )
    args.workers = workers = None
    if args.data_parallel:
        try:
            args.workers = workers = Workers()
        except ImportError as error:
            parser.error(f"--data-parallel: {error}")
        if shared_norm is False and 1 < workers.size <= args.batch_size < 2 * workers.size:
            parser.error(
                f"--batch-size {args.batch_size}: with {workers.size} workers, some get a single "
                "item, and batch normalization makes the same of any item alone; use --sync-batchnorm, or a "
                f"--batch-size of {2 * workers.size} or more"
            )
    with explained(parser, workers):
        leads = workers is None or workers.rank == 0  # it writes the file
        if leads and args.checkpoint is not None and args.checkpoint.exists() and not args.resume:
            raise ValueError(
                f"--checkpoint: {args.checkpoint} is there already; go on from it with --resume, "
                "or name another file, or remove it"
            )
    device = getattr(ndl, args.device)()
    if not device.enabled():
        raise SystemExit(f"--device {args.device}: {device.why()}")
    with explained(parser, workers):
        np.random.seed(args.seed)
    return args, device


@contextmanager
def explained(parser: argparse.ArgumentParser, workers: Workers | None = None):
    """In this block, an error about data or options ends the command with its message.

    If several workers run the command, it ends for all of them, and the message is given once. Worker 0 goes
    first, so that the others find what it has downloaded.
    """
    error = None
    if workers is not None and workers.rank > 0:
        workers.same(None)
    try:
        yield
    except (OSError, ValueError) as caught:
        error = str(caught)
    if workers is not None and workers.rank == 0:
        workers.same(None)
    error = said_once(workers, error)
    if error is not None:
        parser.error(error)
