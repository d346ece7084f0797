"""Machine code that is kept on disk, so that the next process need not compile it again."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """Where machine code is kept: ``NUMBA_CACHE_DIR`` if it is set, else the user's cache folder."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(os.path.expanduser(base)) / "needle"


def kept(kind: str, key: str, make: Callable[[], bytes]) -> bytes:
    """What `make` returns, from disk if an earlier process made it.

    Parameters
    ----------
    kind : str
        The folder.
    key : str
        All that the result depends on.
    make : callable

    Notes
    -----
    A file begins with the digest of its content. So one that is damaged, or half written, is made again. A
    folder that cannot be written, or a full disk, is no error: nothing is kept then.
    """
    path = folder() / kind / hashlib.sha256(key.encode()).hexdigest()[:32]
    with suppress(OSError):
        digest, content = (held := path.read_bytes())[:32], held[32:]
        if hashlib.sha256(content).digest() == digest:
            return content
    content = make()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=path.parent
        ) as place:  # nobody finds a file that is half written
            file = Path(place) / "file"
            file.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(file, path)
    return content
