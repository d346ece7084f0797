"""A run in a file, which goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import needle as ndl
from needle.serialization import as_bytes

from ..training.points import Point, after_difference, read_points, write_points
from ..training.settings import FIELDS, LIVE, Settings
from ..training.trainer import MOST_CHANGES, Trainer
from .as_python import TooManyChanges

__all__ = ["CannotImport", "from_file", "to_file"]

_FORMAT = 2
MOST_BYTES = 2_000_000


class CannotImport(ValueError):
    """A file that is no run of the playground, or one that was changed."""


def to_file(trainer: Trainer) -> bytes:
    """The run as a safetensors file: the weights, and all that is needed to go on from here.

    Raises
    ------
    TooManyChanges
        If so many points came and went that `from_file` would not read the file.
    """
    state = trainer.state()
    content = {
        "playground": _FORMAT,
        "first_settings": trainer.first.to_text(),
        "settings": trainer.settings.to_text(),
        "model": state.pop("model"),
        "run": {**state, "order": np.asarray(state["order"], dtype=np.int32)},
        "changes": [[steps, what, _as_text(what, value)] for steps, what, value in trainer.short_changes()],
        "losses": np.array([[epoch, *pair] for epoch, pair in trainer.losses.items()], "f4").reshape(-1, 3),
    }
    data = as_bytes(content)
    if len(data) > MOST_BYTES:
        raise TooManyChanges(
            f"So many points came and went that this run's file would have {len(data):,} bytes; at most "
            f"{MOST_BYTES:,} are read. Take a script home instead."
        )
    return data


def from_file(data: bytes, may_compile: Callable[[], bool] = lambda: True) -> Trainer:
    """A trainer that goes on where the run in a file was.

    Parameters
    ----------
    data : bytes
    may_compile : callable, optional
        As for `Trainer`.

    Raises
    ------
    CannotImport
        If it is no such file, or if it does not fit together. The message is for the user.
    """
    if len(data) > MOST_BYTES:
        raise CannotImport(f"The file has {len(data):,} bytes; at most {MOST_BYTES:,} are read.")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        path.write_bytes(data)
        try:
            content = ndl.load(path, device=ndl.cpu())
        except (ValueError, RecursionError):
            raise CannotImport("This is no run of the playground: it isn't a safetensors file.") from None
    try:
        if content["playground"] != _FORMAT:
            raise CannotImport(
                f"This run has format {content['playground']!r:.20}; this playground reads {_FORMAT}."
            )
        trainer = Trainer(_settings(content["first_settings"]), may_compile=may_compile)
        if not trainer.retune(_settings(content["settings"])):
            raise ValueError("the first settings are not those of this run")
        _check_place(content["run"])
        trainer.restore({**content["run"], "model": content["model"]})
        trainer.changes = _read_changes(content["changes"], trainer.first.own)
        trainer.is_compiled = {what: value for _, what, value in trainer.changes}.get("compiled", False)
        with np.errstate(all="ignore"):
            _restore_losses(trainer, np.asarray(content["losses"], "f4"))
    except CannotImport:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError):
        raise CannotImport("This file isn't a run of the playground, or it was changed.") from None
    return trainer


def _settings(texts: dict[str, str]) -> Settings:
    settings, problems = Settings().changed(texts)
    if problems:
        raise CannotImport(problems[0])
    return settings


def _check_place(run: dict[str, Any]) -> None:
    """ValueError if no run can be there: so many steps and epochs, and so far in the order of the points."""
    counts = steps, epochs, position = [run[name] for name in ("steps", "epochs", "position")]
    are_whole = all(type(count) is int for count in counts)
    if not (are_whole and 0 <= epochs <= steps < 2**53 and 0 <= position <= len(run["order"])):
        raise ValueError(counts)
    if not all(updates <= steps for updates in run["optimizer"]["updates"]):
        raise ValueError("more updates than steps")


def _restore_losses(trainer: Trainer, rows: np.ndarray) -> None:
    if rows.ndim != 2 or rows.shape[1] != 3 or len(rows) > 1000 or np.any(np.diff(rows[:, 0]) <= 0):
        raise ValueError("no losses")
    trainer.losses.cut(-1)
    trainer.moments.cut(-1)
    for epoch, train, test in rows:
        trainer.losses.add(int(epoch), (float(train), float(test)))
    trainer.remember()


def _as_text(what: str, value: Any) -> Any:
    if what == "own":
        gone, came = value
        return [gone, write_points(came)]
    return FIELDS[what].write(value) if what in FIELDS else value


def _read_changes(rows: list, own: tuple[Point, ...]) -> list[tuple[int, str, Any]]:
    """The changes as they were; ValueError or TypeError if no playground has written them.

    Parameters
    ----------
    rows : list
        As in the file.
    own : tuple of Point
        The user's own points before all changes.
    """
    if len(rows) > MOST_CHANGES + 1:
        raise ValueError(len(rows))
    changes = []
    for steps, what, written in rows:
        if type(steps) is not int or steps < 0:
            raise ValueError(steps)
        value = _read_value(what, written, own)
        if what == "own":
            own = value
        changes.append((steps, what, value))
    return changes


def _read_value(what: str, written: Any, own: tuple[Point, ...]) -> Any:
    if what in ("weight", "bias"):
        layer, start, end, number = written
        if not all(type(x) is int and x >= 0 for x in (layer, start, end)) or type(number) is not float:
            raise ValueError(written)
        return layer, start, end, number
    if what not in LIVE:
        raise ValueError(what)
    if what == "own":
        gone, came = written
        return after_difference(own, gone, read_points(came))
    return FIELDS[what].read(written)
