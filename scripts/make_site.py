"""Make the site: the playground, the lectures and the book, as one folder of files: ``make site``.

    python scripts/make_site.py [--output build/site] [--pyodide ADDRESS or FOLDER] [--run 05 07]

Any web server sends it, under any path; Python runs in the reader's browser, by Pyodide. `browser/files.json`
lists what comes from elsewhere, each file with its sha256.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from make_book import faults
from site_front import build_front, keep_for_later
from site_lab import build_lab

ROOT = Path(__file__).resolve().parent.parent
BROWSER = ROOT / "browser"
FILES = json.loads((BROWSER / "files.json").read_text("utf-8"))
PYODIDE = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/"  # where Pyodide itself says that its files are


def copy_pyodide(folder: Path, site: Path) -> None:
    """Copy Pyodide's files, each of which must be the one that is listed."""
    target = site / "pyodide"
    target.mkdir(parents=True)
    for name, sha256 in FILES["pyodide"].items():
        copy_checked(folder / name, target / name, sha256)


def build_wheel(target: Path) -> Path:
    """Build our own wheel."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(target), str(ROOT)], check=True)
    (wheel,) = target.glob("*.whl")
    return wheel


def get_wheels(target: Path) -> list[Path]:
    """Have pip fetch the wheels that are listed, each of which must be the one that is listed."""
    listed = FILES["wheels"]
    kept = ROOT / "build" / "wheels"
    missing = ["{}=={}".format(*name.split("-")) for name in listed if not (kept / name).exists()]
    if missing:
        pure = ["--platform=any", "--abi=none", "--implementation=py", "--python-version=3.12"]
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *pure]
        subprocess.run([*fetch, "--dest", str(kept), *missing], check=True)
    for name, sha256 in listed.items():
        copy_checked(kept / name, target / name, sha256)
    return [target / name for name in listed]


def copy_checked(source: Path, target: Path, sha256: str) -> None:
    """Copy a file, if it is the one that is meant."""
    data = source.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        sys.exit(f"{source} is not the file that browser/files.json lists: its sha256 differs.")
    target.write_bytes(data)


def build_book(site: Path, run: list[str]) -> None:
    """Make the book, and copy its pages."""
    book = ROOT / "build" / "book"
    command = [sys.executable, str(ROOT / "scripts" / "make_book.py"), "--output", str(book)]
    subprocess.run([*command, *(["--run", *run] if run else [])], check=True)
    shutil.copytree(book / "html", site / "book")


def main() -> None:
    """Write the site into a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site", help="folder to write into")
    given = os.environ.get("PYODIDE") or PYODIDE
    parser.add_argument("--pyodide", default=given, help="Pyodide's address, or a folder with its files")
    parser.add_argument("--run", nargs="*", default=[], metavar="NUMBER", help="in the book, run only these")
    options = parser.parse_args()
    site: Path = options.output
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)

    address = options.pyodide
    if not address.startswith(("http://", "https://")):
        copy_pyodide(Path(address), site)
        address = "pyodide/"
    python = site / "python"
    python.mkdir()
    shutil.copy(BROWSER / "python.js", python)
    wheel = build_wheel(python)
    about = {"pyodide": address, "wheel": f"python/{wheel.name}"}
    (site / "site.json").write_text(json.dumps(about), "utf-8")
    build_lab(site, address, [wheel, *get_wheels(python)])
    build_book(site, options.run)
    build_front(site)
    broken = list(faults(site, left_out=("lab", "pyodide")))
    if broken:
        sys.exit("\n".join([*broken, "The site has broken links."]))
    keep_for_later(site)
    print(site / "index.html")


if __name__ == "__main__":
    main()
