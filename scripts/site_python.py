"""Python for the site: Pyodide, the packages that pages need, and our own wheel, in one folder.

Pyodide's own list of its packages, ``pyodide-lock.json``, is cut to those that a page has unpacked: it asks
for them by their names, the browser loads them side by side, and Pyodide compares each with its sha256. What
else a lecture's kernel needs is plain Python: it lies in one file with the standard library, and is imported
from there. All is compiled.
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
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen
from zipfile import ZipFile, ZipInfo

ROOT = Path(__file__).resolve().parent.parent
BROWSER = ROOT / "browser"
KEPT = ROOT / "build" / "downloads"
#: What comes from npm and from PyPI, each file with its sha256.
FILES: dict[str, dict[str, str]] = json.loads((BROWSER / "files.json").read_text("utf-8"))
CORE = ("pyodide.js", "pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
#: Of Pyodide's packages; those that they need come with them.
PACKAGES = ["numpy", "matplotlib", "pillow", "micropip", "ipython"]
#: What they could do that no page does: write time zones and PDF, and guess from a program what comes next.
WITHOUT = {"matplotlib": {"pytz", "fonttools"}, "ipython": {"jedi"}}
#: The packages that pages have unpacked: they bring programs and fonts, or show their lines.
UNPACKED = (
    *("numpy", "pillow", "sqlite3", "needle-notebooks"),
    *("matplotlib", "contourpy", "cycler", "kiwisolver", "matplotlib-pyodide"),
    *("packaging", "pyparsing", "python-dateutil", "six"),
)
#: The standard library, and what a lecture's kernel has in its place.
LIBRARY, KERNEL_LIBRARY = "python_stdlib.zip", "python_kernel.zip"
#: What our wheel needs on every page. Lectures need more, and ask for it.
NEEDS = ["numpy"]
#: What fits this Pyodide. It has a folder of its own: JupyterLab would load the extension, too.
JUPYTERLITE = ("jupyterlite-core==0.6.4", "jupyterlite-pyodide-kernel==0.6.1")
PYODIDE_KERNEL = "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension"
KERNEL = ("ipykernel", "piplite", "pyodide_kernel", "widgetsnbextension-4")


def add_python(site: Path, pyodide: str) -> None:
    """Write ``pyodide`` in the site.

    Parameters
    ----------
    site : Path
    pyodide : str
        Where Pyodide's packages are: a folder, or an address.
    """
    folder = site / "pyodide"
    folder.mkdir(parents=True)
    for name in CORE:
        (folder / name).write_bytes(from_npm("pyodide", name))
    pack(folder / "pyodide.asm.wasm")
    lock = json.loads(from_npm("pyodide", "pyodide-lock.json"))
    entries = {name: lock["packages"][name] for name in needed(lock["packages"])}
    lock["packages"] = {}
    write_lock(folder, lock)

    with TemporaryDirectory() as made:
        parts = Path(made)
        shutil.copy(folder / LIBRARY, parts)
        for entry in entries.values():
            copy_checked(get_package(pyodide, entry["file_name"]), parts, entry["sha256"])
        entries["needle-notebooks"] = entry_of(build_wheel(parts))
        copy_wheels(parts)
        compile_all(parts, folder)
        for name in UNPACKED:
            wheel = Path(shutil.move(parts / entries[name]["file_name"], folder))
            needs = [x for x in entries[name]["depends"] if x in UNPACKED]
            sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
            lock["packages"][name] = entries[name] | {"depends": needs, "sha256": sha256}
        shutil.copy(parts / LIBRARY, folder)
        join(sorted(parts.iterdir()), parts / KERNEL_LIBRARY)
        pack(parts / KERNEL_LIBRARY)
        shutil.move(parts / f"{KERNEL_LIBRARY}.gz", folder)
    write_lock(folder, lock)


def pack(path: Path) -> None:
    """Write a compressed copy beside a file, for `packed.js`."""
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def write_lock(folder: Path, lock: dict[str, Any]) -> None:
    """Write Pyodide's list of its packages."""
    (folder / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")


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


def get_package(pyodide: str, name: str) -> Path:
    """One of Pyodide's packages, from a folder, or from an address, which is asked the first time."""
    if not pyodide.startswith(("http://", "https://")):
        return Path(pyodide, name)
    path = KEPT / name
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with urlopen(f"{pyodide.rstrip('/')}/{name}") as answer:
            path.write_bytes(answer.read())
    return path


def compile_all(parts: Path, pyodide: Path) -> None:
    """Let Pyodide itself compile wheels: its bytecode is that of another Python than this."""
    node = shutil.which("node")
    if node is None:
        sys.exit("The site needs Node.js (nodejs.org): its program node compiles what pages load.")
    scripts = ROOT / "scripts"
    program = [scripts / "run_in_pyodide.mjs", pyodide, scripts / "compile_in_pyodide.py", parts]
    subprocess.run([node, *program], check=True)


def join(archives: list[Path], target: Path) -> None:
    """Write the files of several archives into one, which is compressed as a whole."""
    folders: set[str] = set()
    with ZipFile(target, "w") as joined:
        for path in archives:
            with ZipFile(path) as archive:
                for file in archive.infolist():
                    folders |= {f"{folder}/" for folder in Path(file.filename).parents[:-1]}
                    joined.writestr(ZipInfo(file.filename), archive.read(file))
        # Python finds a package without `__init__` only by its folder.
        for folder in sorted(folders - {*joined.namelist()}):
            joined.writestr(ZipInfo(folder), b"")


def entry_of(wheel: Path) -> dict[str, Any]:
    """What Pyodide's list says of a package, for our wheel."""
    name, version = wheel.name.split("-")[:2]
    with ZipFile(wheel) as files:
        imports = {x.partition("/")[0].removesuffix(".py") for x in files.namelist() if x.endswith(".py")}
    return {
        "name": name,
        "version": version,
        "file_name": wheel.name,
        "install_dir": "site",
        "package_type": "package",
        "depends": NEEDS,
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


def copy_wheels(target: Path) -> None:
    """Copy what a kernel consists of: the listed wheels, which pip fetches, and JupyterLite's own."""
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
    for name, sha256 in FILES["wheels"].items():
        copy_checked(KEPT / name, target, sha256)
    for wheel in (jupyterlite() / PYODIDE_KERNEL / "static" / "pypi").glob("*.whl"):
        if wheel.name.startswith(KERNEL):
            shutil.copy(wheel, target)


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
