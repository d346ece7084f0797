"""Where data sets lie on this machine, and how they get there.

Files are looked for in the folder that the environment variable ``NEEDLE_DATA_DIR`` names (first in the data
set's own folder inside it), then in your cache folder. What is missing is downloaded into the first of these
by `pooch <https://www.fatiando.org/pooch>`_. It gets its name there only if its checksum is right.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Remote", "find", "places", "provide", "retrieve"]


class Remote(NamedTuple):
    """A file that can be downloaded: its name on this machine, its checksum (``"md5:…"``), its addresses."""

    name: str
    checksum: str
    urls: Sequence[str]


def places(folder: str) -> list[Path]:
    """Where a data set may lie: in `folder` of ``NEEDLE_DATA_DIR`` (if set), there itself, in the cache's."""
    from pooch import os_cache

    chosen = os.environ.get("NEEDLE_DATA_DIR")
    own = [Path(chosen).expanduser() / folder, Path(chosen).expanduser()] if chosen else []
    return [*own, Path(os_cache("needle-notebooks")) / folder]


def find(folder: str, names: Sequence[str]) -> Path | None:
    """The first place that has all these files, or None."""
    return next((p for p in places(folder) if all((p / name).is_file() for name in names)), None)


def provide(folder: str, files: Sequence[Remote]) -> Path:
    """The place that has all these files. What no place has is downloaded.

    Raises
    ------
    OSError
        If a file is missing and cannot be downloaded; see `retrieve`.
    """
    place = find(folder, [file.name for file in files])
    if place is None:
        place = places(folder)[0]
        for file in files:
            if not (place / file.name).is_file():
                retrieve(file, place)
    return place


def retrieve(file: Remote, place: Path, processor: Any = None) -> None:
    """Download a file, unless it is there with the right checksum, and let `processor` unpack it.

    Raises
    ------
    OSError
        If no address gives the file. The message names them all, and says where you can put the file
        yourself.
    """
    import pooch

    failures = []
    for url in file.urls:
        try:
            pooch.retrieve(url, file.checksum, file.name, place, processor, progressbar=True)
            return
        except (OSError, ValueError) as error:
            failures.append(f"{url}: {_in_short(error)}")
    raise OSError(
        f"{file.name} cannot be downloaded ({'; '.join(failures)}): put it into {place} yourself, or set "
        f"NEEDLE_DATA_DIR to the folder that has {place.name}/{file.name}"
    )


def _in_short(error: Exception) -> str:
    """What went wrong, in a few words: what requests and pooch say of it is longer."""
    if not isinstance(error, OSError):
        return "what came has another checksum"
    if not hasattr(error, "response"):
        return str(error)
    response = error.response
    return type(error).__name__ if response is None else f"{response.status_code} {response.reason}"
