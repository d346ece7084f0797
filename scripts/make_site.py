"""Make the site: the playground, the lectures and the book, as one folder of files: ``make site``.

    python scripts/make_site.py [--output build/site] [--pyodide ADDRESS or FOLDER] [--run 05 07]

Any web server sends it, under any path; Python runs in the reader's browser, by Pyodide. `browser/files.json`
lists what comes from elsewhere, each file with its sha256.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from make_book import faults
from site_explorer import add_drawings, add_explorer
from site_front import build_front, keep_for_later
from site_lab import build_lab
from site_playground import add_playground
from site_python import add_python

ROOT = Path(__file__).resolve().parent.parent
BROWSER = ROOT / "browser"
PYODIDE = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/"  # where Pyodide itself says that its files are


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
    parser.add_argument(
        "--pyodide", default=given, help="where Pyodide's packages are: an address, or a folder"
    )
    parser.add_argument("--run", nargs="*", default=[], metavar="NUMBER", help="in the book, run only these")
    parser.add_argument("--without-book", action="store_true", help="leave out the book, which takes minutes")
    options = parser.parse_args()
    site: Path = options.output
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)

    add_python(site, options.pyodide)
    add_drawings(site)
    (site / "python").mkdir()
    for name in ("python.js", "python_worker.js"):
        shutil.copy(BROWSER / name, site / "python")
    add_playground(site)
    add_explorer(site)
    build_lab(site)
    if not options.without_book:
        build_book(site, options.run)
    build_front(site)
    broken = list(faults(site, left_out=("lab", "pyodide")))
    if broken and not options.without_book:
        sys.exit("\n".join([*broken, "The site has broken links."]))
    keep_for_later(site)
    print(site / "index.html")


if __name__ == "__main__":
    main()
