"""What a page can ask of its run. Anything else that arrives is answered with a sentence."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..results import take_home
from ..training.points import MOST_OWN_POINTS, Point, PointsError, from_csv
from ..training.settings import Settings, SettingsError
from .answers import ANSWERS, answer, refuse

if TYPE_CHECKING:
    from .runs import Run, Viewer

__all__ = ["do", "opening"]


#: Answers that a page waits for at the same time.
_MOST_QUESTIONS = 3


class _NotUnderstood(ValueError):
    """A command that no page of ours sends."""


class _Command(dict):
    """What a page asks for. Each of its parts may be missing, or be anything."""

    def __missing__(self, name: str) -> Any:
        raise _NotUnderstood


def opening(command: Any) -> tuple[dict[str, str], str | None, str | None]:
    """What the first command of a page says: the settings of its address, the run that it had, its token.

    Parameters
    ----------
    command : object
        It may be anything.
    """
    parts = command if isinstance(command, dict) else {}
    address = parts.get("address")
    address = address if isinstance(address, dict) else {}
    texts = {str(name): text for name, text in address.items() if isinstance(text, str)}
    run, token = (text if isinstance(text, str) else None for text in (parts.get("run"), parts.get("token")))
    return texts, run, token


def do(run: Run, viewer: Viewer, command: Any) -> None:
    """Do what a page asks for.

    Parameters
    ----------
    run : Run
    viewer : Viewer
    command : object
        What came as JSON: a dictionary whose ``do`` is one of the functions here. Bytes are a run to import.
        It may be anything.
    """
    try:
        if isinstance(command, bytes):
            _import(run, viewer, command)
            return
        name = command.get("do") if isinstance(command, dict) else None
        if not isinstance(name, str) or name not in _COMMANDS:
            raise _NotUnderstood
        _COMMANDS[name](run, viewer, _Command(command))
    except _NotUnderstood:
        run.tell("This page asked for something that isn't understood. Reload it.", "error")


def _ready(run: Run, viewer: Viewer, command: dict) -> None:
    viewer.is_ready = True


def _play(run: Run, viewer: Viewer, command: dict) -> None:
    run.play()


def _pause(run: Run, viewer: Viewer, command: dict) -> None:
    run.rest()


def _step(run: Run, viewer: Viewer, command: dict) -> None:
    run.step()


def _reset(run: Run, viewer: Viewer, command: dict) -> None:
    """Begin again, with the first weights of another seed or with the same ones."""
    texts = {"weights_seed": command["weights_seed"]} if "weights_seed" in command else {}
    settings, problems = _changed(run, texts)
    if problems:
        raise _NotUnderstood
    run.pause()
    run.reset(settings)


def _set(run: Run, viewer: Viewer, command: dict) -> None:
    run.become(*_changed(run, command["values"]))


def _changed(run: Run, texts: Any) -> tuple[Settings, list[str]]:
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise _NotUnderstood
    return run.trainer.settings.changed(texts)


def _weight(run: Run, viewer: Viewer, command: dict) -> None:
    layer, start, end = (_index(command[name]) for name in ("layer", "from", "to"))
    _edit(lambda: run.trainer.set_weight(layer, start, end, _number(command["value"])))
    run.has_news = True


def _bias(run: Run, viewer: Viewer, command: dict) -> None:
    layer, neuron = (_index(command[name]) for name in ("layer", "to"))
    _edit(lambda: run.trainer.set_bias(layer, neuron, _number(command["value"])))
    run.has_news = True


def _edit(edit: Callable[[], None]) -> None:
    try:
        edit()
    except ValueError:
        raise _NotUnderstood from None


def _paint(run: Run, viewer: Viewer, command: dict) -> None:
    settings = run.trainer.settings
    if not isinstance(command["points"], list):
        raise _NotUnderstood
    new = [Point(*(round(_number(number), 4) for number in _list(point, 3))) for point in command["points"]]
    if len(settings.own) + len(new) > MOST_OWN_POINTS:
        run.send_scene()  # without what the page has painted already
        run.tell(f"You can have at most {MOST_OWN_POINTS:,} points of your own. Erase some first.", "error")
        return
    _own(run, [*settings.own, *new])


def _erase(run: Run, viewer: Viewer, command: dict) -> None:
    x1, x2 = (_number(number) for number in _list(command["at"], 2))
    radius = _number(command["radius"])
    own = run.trainer.settings.own
    kept = [point for point in own if math.hypot(point.x1 - x1, point.x2 - x2) > radius]
    if len(kept) < len(own):
        _own(run, kept)


def _upload(run: Run, viewer: Viewer, command: dict) -> None:
    if not isinstance(command["text"], str):
        raise _NotUnderstood
    try:
        points, said = from_csv(command["text"])
    except PointsError as error:
        run.tell(str(error), "error")
        return
    run.become(dataclasses.replace(run.trainer.settings, dataset="own", own=points))
    run.tell(said)


def _own(run: Run, points: list[Point]) -> None:
    try:
        run.become(dataclasses.replace(run.trainer.settings, own=tuple(points)))
    except SettingsError:
        raise _NotUnderstood from None


def _look(run: Run, viewer: Viewer, command: dict) -> None:
    neuron = command["neuron"]
    if neuron is None:
        viewer.look = None
    else:
        layer, index = _list(neuron, 2)
        viewer.look = (_index(layer), _index(index))
    run.has_news = True


def _watch(run: Run, viewer: Viewer, command: dict) -> None:
    if not isinstance(command["parts"], list):
        raise _NotUnderstood
    viewer.watch = ("histograms",) if "histograms" in command["parts"] else ()
    run.has_news = True


def _travel(run: Run, viewer: Viewer, command: dict) -> None:
    run.rest()
    epoch = command["epoch"]
    if epoch is not None and (type(epoch) is not int or epoch < 0):
        raise _NotUnderstood
    run.trainer.travel(epoch)
    run.has_news = True


def _undo(run: Run, viewer: Viewer, command: dict) -> None:
    """Bring back what came after the moment from which the run went on."""
    run.pause()
    run.trainer.bring_back()
    run.has_news = True


def _ask(run: Run, viewer: Viewer, command: dict) -> None:
    what, number = command["what"], command["id"]
    if not isinstance(what, str) or what not in ANSWERS or not isinstance(number, (int, str)):
        raise _NotUnderstood
    if len(viewer.questions) >= _MOST_QUESTIONS:
        refuse(number, viewer, "Wait for what you asked for before.")
        return
    answer(what, number, run.trainer, viewer)


def _import(run: Run, viewer: Viewer, data: bytes) -> None:
    try:
        trainer = take_home.from_file(data, run.may_compile)
    except take_home.CannotImport as error:
        run.tell(str(error), "error")
        return
    run.take(trainer)
    run.tell(f"This run goes on after epoch {trainer.epochs:,}.")


def _list(values: Any, count: int) -> list:
    if not isinstance(values, list) or len(values) != count:
        raise _NotUnderstood
    return values


def _index(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 10_000:
        raise _NotUnderstood
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < 1e6:
        raise _NotUnderstood
    return float(value)


_COMMANDS: dict[str, Callable[[Run, Viewer, dict], None]] = {
    "ready": _ready,
    "play": _play,
    "pause": _pause,
    "step": _step,
    "reset": _reset,
    "set": _set,
    "weight": _weight,
    "bias": _bias,
    "paint": _paint,
    "erase": _erase,
    "upload": _upload,
    "look": _look,
    "watch": _watch,
    "travel": _travel,
    "undo": _undo,
    "ask": _ask,
}
