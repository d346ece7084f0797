"""What a page asks for and waits for, such as graphs and files. They are made beside the runs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from needle.compiler import Compiled

from ..results import as_python, inside, moving, take_home
from ..training.trainer import Trainer
from .messages import pack

if TYPE_CHECKING:
    from .runs import Viewer

__all__ = ["ANSWERS", "answer", "refuse"]

_log = logging.getLogger(__name__)
_worker = ThreadPoolExecutor(1, thread_name_prefix="answers")


def answer(what: str, number: int | str, trainer: Trainer, viewer: Viewer) -> None:
    """Make an answer while the training goes on, and send it.

    Parameters
    ----------
    what : str
        A key of `ANSWERS`.
    number : int or str
        Comes back with the answer, so that the page knows its question.
    trainer : Trainer
        It goes on meanwhile.
    viewer : Viewer
        Who waits. If the page is gone when its turn comes, nothing is made.
    """
    copy, step = trainer.copy(), trainer.learner.step
    viewer.questions.add(number)

    def work() -> None:
        viewer.questions.discard(number)
        if viewer.is_gone:
            return
        try:
            header = ANSWERS[what](copy, step)
        except as_python.TooManyChanges as error:
            header = {"error": str(error)}
        except Exception:
            _log.exception("The answer %r failed.", what)
            header = {"error": "Something went wrong, so this can't be shown. Try again."}
        arrays = header.pop("arrays", None)
        viewer.send(pack({"kind": "answer", "id": number, **header}, arrays))

    if sys.platform == "emscripten":  # a browser starts no threads: the training waits for it
        work()
    else:
        _worker.submit(work)


def refuse(number: int | str, viewer: Viewer, why: str) -> None:
    """Answer with a sentence."""
    viewer.send(pack({"kind": "answer", "id": number, "error": why}))


def _file(
    suffix: str, mime: str, make: Callable[[Trainer], bytes]
) -> Callable[[Trainer, Compiled], dict[str, Any]]:
    def made(trainer: Trainer, _: Compiled) -> dict[str, Any]:
        name = f"needle-{trainer.settings.dataset}-{trainer.epochs}.{suffix}"
        return {"name": name, "mime": mime, "arrays": {"file": np.frombuffer(make(trainer), np.uint8)}}

    return made


ANSWERS: dict[str, Callable[[Trainer, Compiled], dict[str, Any]]] = {
    **inside.ANSWERS,
    "weights": _file("safetensors", "application/octet-stream", take_home.to_file),
    "script": _file("py", "text/x-python", lambda trainer: as_python.as_script(trainer).encode()),
    "notebook": _file(
        "ipynb", "application/x-ipynb+json", lambda trainer: as_python.as_notebook(trainer).encode()
    ),
    "gif": _file("gif", "image/gif", moving.as_gif),
}
