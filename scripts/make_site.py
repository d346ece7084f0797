"""Make the site: the playground, the lectures and the book, as one folder of files: ``make site``.

    python scripts/make_site.py [--output build/site] [--pyodide ADDRESS or FOLDER]

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

from site_explorer import add_drawings, add_explorer

ROOT = Path(__file__).resolve().parent.parent
BROWSER = ROOT / "browser"
PYODIDE = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/"  # where Pyodide itself says that its files are


def copy_pyodide(folder: Path, site: Path) -> None:
    """Copy Pyodide's files, each of which must be the one that is listed."""
    target = site / "pyodide"
    target.mkdir(parents=True)
    for name, sha256 in json.loads((BROWSER / "files.json").read_text("utf-8"))["pyodide"].items():
        data = (folder / name).read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            sys.exit(f"{folder / name} is not the file that browser/files.json lists: its sha256 differs.")
        (target / name).write_bytes(data)


def build_wheel(site: Path) -> str:
    """Build our own wheel; return its place in the site."""
    target = site / "python"
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(target), str(ROOT)], check=True)
    (wheel,) = target.glob("*.whl")
    return f"python/{wheel.name}"


def main() -> None:
    """Write the site into a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site", help="folder to write into")
    given = os.environ.get("PYODIDE") or PYODIDE
    parser.add_argument("--pyodide", default=given, help="Pyodide's address, or a folder with its files")
    options = parser.parse_args()
    site: Path = options.output
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)

    address = options.pyodide
    if not address.startswith(("http://", "https://")):
        copy_pyodide(Path(address), site)
        address = "pyodide/"
    shutil.copy(BROWSER / "python.js", (site / "python").mkdir() or site / "python")
    about = {"pyodide": address, "wheel": build_wheel(site), "graphviz": add_drawings(site)}
    add_explorer(site)
    (site / "site.json").write_text(json.dumps(about), "utf-8")
    print(site / "index.html")


if __name__ == "__main__":
    main()
