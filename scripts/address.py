"""Write the repository's address wherever it stands: badges, set-up cells, links, the package's metadata.

    make address TO=owner/name

The address now in use is the one in `pyproject.toml`. Until the repository is public, that is a placeholder,
and lines say so where it matters; they go when another address is written.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOLDERS = ["pyproject.toml", "CITATION.cff", "README.md", "notebooks/*.ipynb", "notebooks/*.md"]

#: A line that says so, and the empty one after it in a text.
PLACEHOLDER = r"(?m)^.*\bnot public yet\b.*\n\n?"


def address(root: Path = ROOT) -> str:
    """The repository's owner and name, as in ``owner/name``."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"].removeprefix("https://github.com/")


def write(new: str, root: Path = ROOT) -> list[Path]:
    """Write another address in the place of the present one.

    Returns
    -------
    list of Path
        The files that changed.

    Raises
    ------
    ValueError
        If `new` is not of the form ``owner/name``.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+", new):
        raise ValueError(f"the address is {new!r}, but should be owner/name, as in ada/needle-notebooks")
    old = address(root)
    changed = []
    for path in sorted(path for pattern in HOLDERS for path in root.glob(pattern)):
        before = path.read_text(encoding="utf-8")
        after = before.replace(f"github.com/{old}", f"github.com/{new}")
        after = after.replace(
            f"colab.research.google.com/github/{old}", f"colab.research.google.com/github/{new}"
        )
        if new != old:
            after = re.sub(PLACEHOLDER, "", after)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed.append(path)
    return changed


def main() -> None:
    """Change the address, and print which files hold it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("to", metavar="owner/name", help="the repository's new address")
    try:
        for path in write(parser.parse_args().to):
            print(path.relative_to(ROOT))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
