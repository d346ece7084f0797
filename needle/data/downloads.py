"""Where data sets are found on this machine, and how they get there.

Files are looked for in the folder that the environment variable ``NEEDLE_DATA_DIR`` names (in the data set's
folder within it, then in it itself), and in your cache folder. What is in none of them is downloaded into the
first, and checked before it gets its name there.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

__all__ = ["Remote", "check_md5", "places", "provide", "unpack"]

TIMEOUT = 30  # seconds without an answer after which a mirror is given up


@dataclass(frozen=True)
class Remote:
    """A file that can be downloaded.

    Attributes
    ----------
    name : str
        Its name on this machine.
    urls : sequence of str
        Where it can be had; they are tried in this order.
    check : callable
        Takes the path of what was downloaded; raises ValueError if that is not the file.
    """

    name: str
    urls: Sequence[str]
    check: Callable[[Path], None]


def places(folder: str) -> list[Path]:
    """Where a data set may lie: in `folder` of ``NEEDLE_DATA_DIR`` (if set), there itself, in the cache's."""
    from pooch import os_cache

    chosen = os.environ.get("NEEDLE_DATA_DIR")
    own = [Path(chosen).expanduser() / folder, Path(chosen).expanduser()] if chosen else []
    return [*own, Path(os_cache("needle-notebooks")) / folder]


def provide(folder: str, files: Sequence[Remote]) -> Path:
    """The place that has all these files; those that no place has are downloaded.

    Raises
    ------
    OSError
        If a file is missing and no mirror gave it; the sentence says what was tried, and where to put the
        file by hand.
    """
    for place in places(folder):
        if all((place / file.name).is_file() for file in files):
            return place
    place = places(folder)[0]
    place.mkdir(parents=True, exist_ok=True)
    for file in files:
        if not (place / file.name).is_file():
            _download(file, place)
    return place


def _download(file: Remote, place: Path) -> None:
    """Bring a file into `place`: whole and checked, or not at all."""
    from pooch import HTTPDownloader
    from tqdm import tqdm

    failures = []
    for url in file.urls:
        with TemporaryDirectory(prefix=".download-", dir=place) as scratch:
            unchecked = Path(scratch) / file.name
            try:
                # The total is set when it is known; without one, tqdm's bar counts as none.
                with tqdm(desc=file.name, total=1, unit="B", unit_scale=True) as progress:
                    download = HTTPDownloader(progressbar=progress, chunk_size=1 << 16, timeout=TIMEOUT)
                    download(url, str(unchecked), None)
                file.check(unchecked)
            except (OSError, EOFError, ValueError, zlib.error) as error:
                failures.append(f"{url}: {_in_short(error)}")
            else:
                os.replace(unchecked, place / file.name)
                return
    raise OSError(
        f"{file.name} is missing and cannot be downloaded (tried {'; '.join(failures)}): put it into {place} "
        f"by hand, or let NEEDLE_DATA_DIR name the folder in which {place.name}/{file.name} is"
    )


def _in_short(error: Exception) -> str:
    """What went wrong; of a failed connection only its kind, for the rest of its text is for debuggers."""
    if not hasattr(error, "response"):
        return str(error)
    response = error.response
    return type(error).__name__ if response is None else f"{response.status_code} {response.reason}"


def check_md5(md5: str, path: Path) -> None:
    """Raise ValueError unless a file has this MD5 sum (for files whose authors published no better one)."""
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != md5:
        raise ValueError(f"the MD5 sum of {path.name} should be {md5}, not {found}")


def unpack(archive: Path, inside: str, max_bytes: int) -> Path:
    """Unpack a gzipped tar archive that holds one folder of files; the folder appears beside it.

    Parameters
    ----------
    archive : Path
    inside : str
        The folder's name. The archive may hold this folder and plain files in it, and nothing else.
    max_bytes : int
        No more than this is unpacked.

    Returns
    -------
    Path
        The folder: whole, or not there at all.

    Raises
    ------
    ValueError
        If the archive is damaged or too large, or holds links, or names that lead out of the folder.
    """
    target = archive.parent / inside
    with TemporaryDirectory(prefix=".unpack-", dir=archive.parent) as scratch:
        whole = Path(scratch) / inside
        whole.mkdir()
        try:
            with gzip.open(archive) as packed:
                _unpack(_AtMost(packed, max_bytes), inside, whole)
        except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
            raise ValueError(f"{archive} cannot be unpacked: {error}; download it again") from None
        os.replace(whole, target)
    return target


def _unpack(stream: _AtMost, inside: str, folder: Path) -> None:
    with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
        for member in tar:
            if member.isdir() and member.name == inside:
                continue
            # What is sparse would swell to the size that it claims.
            plain = member.isreg() and not member.issparse()
            if not plain or not re.fullmatch(rf"{re.escape(inside)}/\w[\w.-]*", member.name):
                raise ValueError(f"it holds {member.name!r}, which is no plain file in {inside}/")
            with open(folder / PurePosixPath(member.name).name, "xb") as file:
                shutil.copyfileobj(tar.extractfile(member), file)
    while stream.read(1 << 20):  # to the end, where gzip's checksum is
        pass


class _AtMost:
    """A stream that refuses to go on after `limit` bytes, whatever a small compressed file swells to."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, limit: int):
        self.stream = stream
        self.limit = limit

    def read(self, size: int) -> bytes:
        data = self.stream.read(min(size, self.limit + 1))
        self.limit -= len(data)
        if self.limit < 0:
            raise ValueError("it is larger than what it should hold")
        return data
