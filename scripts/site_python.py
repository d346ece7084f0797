"""Python for the site: Pyodide, the packages that pages need, and our own wheel, in one folder.

Pyodide's own list of its packages, ``pyodide-lock.json``, is cut to what is needed here, and what comes from
PyPI and this checkout is added. So a page asks for packages by their names, the browser loads them side by
side, and Pyodide compares each with its sha256.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

ROOT = Path(__file__).resolve().parent.parent
BROWSER = ROOT / "browser"
KEPT = ROOT / "build" / "downloads"
#: What comes from npm and from PyPI, each file with its sha256.
FILES: dict[str, dict[str, str]] = json.loads((BROWSER / "files.json").read_text("utf-8"))
CORE = ("pyodide.js", "pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
#: Of Pyodide's packages; those that they need come with them.
PACKAGES = ["numpy", "matplotlib", "pillow", "micropip", "ipython", "jedi"]
#: What they could do that no page does: write time zones and PDF.
WITHOUT = {"matplotlib": {"pytz", "fonttools"}}
#: JupyterLite's kernel waits for it, and does not need it. With all that belongs to it, it has two megabytes.
EMPTY = "ssl"
#: What our wheel needs on every page. Lectures need more, and ask for it.
NEEDS = ["numpy"]
#: What fits this Pyodide. It has a folder of its own: JupyterLab would load the extension, too.
JUPYTERLITE = ("jupyterlite-core==0.6.4", "jupyterlite-pyodide-kernel==0.6.1")
PYODIDE_KERNEL = "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension"
KERNEL = ("ipykernel", "piplite", "pyodide_kernel", "widgetsnbextension-4")


def add_python(site: Path, pyodide: str) -> list[Path]:
    """Write ``pyodide`` in the site.

    Parameters
    ----------
    site : Path
    pyodide : str
        Where Pyodide's packages are: an address, from which pages take them, or a folder, which is copied.

    Returns
    -------
    list of Path
        The wheels that are not Pyodide's own: ours, and what it needs.
    """
    folder = site / "pyodide"
    folder.mkdir(parents=True)
    for name in CORE:
        (folder / name).write_bytes(from_npm("pyodide", name))
    # Few servers compress what is not text, and this is the largest file: see `service-worker.js`.
    packed = gzip.compress((folder / "pyodide.asm.wasm").read_bytes(), mtime=0)
    (folder / "pyodide.asm.wasm.gz").write_bytes(packed)

    lock = json.loads(from_npm("pyodide", "pyodide-lock.json"))
    known = lock["packages"]
    lock["packages"] = {name: known[name] for name in needed(known)}
    for entry in lock["packages"].values():
        if pyodide.startswith(("http://", "https://")):
            entry["file_name"] = f"{pyodide.rstrip('/')}/{entry['file_name']}"
        else:
            copy_checked(Path(pyodide, entry["file_name"]), folder, entry["sha256"])
    wheels = [build_wheel(folder), *get_wheels(folder), *kernel_wheels(folder)]
    wheels.append(empty_wheel(folder, EMPTY))
    for wheel in wheels:
        entry = entry_of(wheel, NEEDS if wheel == wheels[0] else [])
        lock["packages"][entry["name"].replace("_", "-")] = entry
    (folder / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")
    return wheels


def needed(known: dict[str, Any]) -> list[str]:
    """The packages of Pyodide that are needed, with those that they need, but for `WITHOUT`."""
    found: list[str] = []
    waiting = [*PACKAGES]
    while waiting:
        name = waiting.pop().replace("_", "-")
        if name not in found:
            found.append(name)
            known[name]["depends"] = [x for x in known[name]["depends"] if x not in WITHOUT.get(name, ())]
            waiting += known[name]["depends"]
    return sorted(found)


def entry_of(wheel: Path, needs: list[str]) -> dict[str, Any]:
    """What Pyodide's list says of a package, for a wheel."""
    name, version = wheel.name.split("-")[:2]
    with ZipFile(wheel) as files:
        imports = {x.partition("/")[0].removesuffix(".py") for x in files.namelist() if x.endswith(".py")}
    return {
        "name": name,
        "version": version,
        "file_name": wheel.name,
        "install_dir": "site",
        "package_type": "package",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "depends": needs,
        "imports": sorted(imports),
        "unvendored_tests": False,
    }


def build_wheel(target: Path) -> Path:
    """Build our own wheel."""
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # what was deleted since must not come along
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(target), str(ROOT)], check=True)
    (wheel,) = target.glob("needle_notebooks-*.whl")
    return wheel


def get_wheels(target: Path) -> list[Path]:
    """Have pip fetch the wheels that are listed."""
    missing = ["{}=={}".format(*name.split("-")) for name in FILES["wheels"] if not (KEPT / name).exists()]
    if missing:
        pure = ["--platform=any", "--abi=none", "--implementation=py", "--python-version=3.12"]
        fetch = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            *pure,
        ]
        subprocess.run([*fetch, "--dest", str(KEPT), *missing], check=True)
    return [copy_checked(KEPT / name, target, sha256) for name, sha256 in FILES["wheels"].items()]


def jupyterlite() -> Path:
    """The folder in which JupyterLite is installed, which pip does the first time."""
    folder = KEPT / "jupyterlite"
    if not folder.exists():
        made = KEPT / "jupyterlite.part"
        shutil.rmtree(made, ignore_errors=True)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt"]
        subprocess.run([*install, "--target", str(made), *JUPYTERLITE], cwd=ROOT, check=True)
        made.rename(folder)
    return folder


def kernel_wheels(target: Path) -> list[Path]:
    """What JupyterLite's kernel consists of, which its package brings."""
    wheels = sorted((jupyterlite() / PYODIDE_KERNEL / "static" / "pypi").glob("*.whl"))
    return [Path(shutil.copy(x, target)) for x in wheels if x.name.startswith(KERNEL)]


def empty_wheel(target: Path, name: str) -> Path:
    """A package with nothing in it."""
    wheel = target / f"{name}-0-py3-none-any.whl"
    with ZipFile(wheel, "w") as files:
        files.writestr(
            ZipInfo(f"{name}-0.dist-info/METADATA"), f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n"
        )
    return wheel


def from_npm(package: str, name: str) -> bytes:
    """A file of one of npm's packages that are listed."""
    release, sha256 = next(item for item in FILES["npm"].items() if item[0].rpartition("@")[0] == package)
    path = KEPT / f"{release.removeprefix('@').replace('/', '-').replace('@', '-')}.tgz"
    if not path.exists():
        npm = shutil.which("npm")
        if npm is None:
            sys.exit(f"The site needs {release}: install Node.js (nodejs.org), whose program npm fetches it.")
        KEPT.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "pack", "--silent", release], cwd=KEPT, check=True, stdout=subprocess.DEVNULL)
    check(path, sha256)
    with tarfile.open(path) as files:
        return files.extractfile(f"package/{name}").read()  # type: ignore[union-attr]


def copy_checked(source: Path, folder: Path, sha256: str) -> Path:
    """Copy a file, if it is the one that is meant."""
    check(source, sha256)
    return Path(shutil.copy(source, folder))


def check(path: Path, sha256: str) -> None:
    """End if a file is not the one that is meant."""
    if not path.exists():
        sys.exit(f"{path} is missing: PYODIDE names the folder of the complete release of Pyodide.")
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        sys.exit(f"{path} is not the file that is listed: its sha256 differs. Remove it.")
