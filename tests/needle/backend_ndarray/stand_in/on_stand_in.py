"""A pytest plugin: a GPU that is not here. Kernels are compiled to PTX for it, and the processor runs them.

``LD_LIBRARY_PATH`` has to hold the folder in which `build` put the driver, before Python starts.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import SimpleNamespace

import ptx

HERE = Path(__file__).parent


def possible() -> bool:
    """Whether this machine has what it takes: Numba's compiler for GPUs and a compiler of C."""
    return bool(find_spec("numba_cuda") and find_spec("cuda") and find_spec("cuda.bindings") and which("gcc"))


def compiled(source: Path, target: Path, *options: str) -> Path:
    """A shared library from C; once for each source."""
    if not target.exists():
        partial = target.with_suffix(f".{os.getpid()}")
        command = ["gcc", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off", f"-I{HERE}", *options]
        subprocess.run([*command, str(source), "-o", str(partial), "-lm", "-ldl"], check=True)
        partial.rename(target)
    return target


def build() -> dict[str, str]:
    """Make the driver, where build/ is; the environment in which Python finds it."""
    kernels = HERE.parents[3] / "build" / "stand_in"
    sources = b"".join((HERE / name).read_bytes() for name in ("libcuda.c", "thread.h"))
    folder = kernels / hashlib.sha256(sources).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    compiled(HERE / "libcuda.c", folder / "libcuda.so.1")
    return {"LD_LIBRARY_PATH": str(folder), "STAND_IN": str(kernels), "NUMBA_CACHE_DIR": str(kernels)}


class Counts(ctypes.Structure):
    """What the driver counts, and what can be set: see libcuda.c."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            *("live", "most", "limit", "allocations", "uploads", "downloads", "copies"),
            *("launches", "replays", "graphs", "waits", "pools"),
        )
    ]


def start(folder: Path) -> Counts:
    """Let the driver of this process run kernels, and Numba compile for it."""
    import numba.cuda.dispatcher

    from needle.backend_ndarray import launching

    numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
    launching.machine_code = lambda code, capability: code.encode() + b"\0"

    def translate(code: bytes) -> int:
        text = code.decode()
        name = hashlib.sha256((text + Path(ptx.__file__).read_text()).encode()).hexdigest()[:24]
        source = folder / f"{name}.c"
        if ".entry kernel(" not in text:
            return 0
        if not (target := folder / f"{name}.so").exists():
            source.write_text(ptx.c_source(text))
            compiled(source, target)
        kept.append(ctypes.create_string_buffer(str(target).encode()))
        return ctypes.addressof(kept[-1])

    library = ctypes.CDLL("libcuda.so.1")
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(translate)
    where = ctypes.c_void_p()
    library.stand_in(function, ctypes.byref(where))
    kept: list = [function]
    start.kept = kept
    return Counts.from_address(where.value)


if "STAND_IN" in os.environ:
    counts = start(Path(os.environ["STAND_IN"]))
