"""Make the book, a website of all lectures with their outputs, and of the reference: a part of ``make site``.

    python scripts/make_book.py [--output build/book] [--run 05 07]

It needs no network, and neither do its pages. It fails if a lecture fails, or a link leads nowhere.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
from address import address
from make_contents import PARTS
from mdit_py_plugins.anchors.index import slugify
from nbformat import NotebookNode
from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
REPOSITORY = f"https://github.com/{address()}"
COLAB = re.compile(r"https://colab\.research\.google\.com/github/[^)\s]+/notebooks/(\d\d_\w+\.ipynb)")
HERE = re.compile(r"https://github\.com/[^)\s]+/notebooks/(README|LECTURERS|JUPYTERHUB|GLOSSARY)\.md")
OURS = re.compile(
    rf"(?:{re.escape(REPOSITORY)}|https://colab\.research\.google\.com/github/{re.escape(address())})"
    r"/(?:blob|tree)/main/([^#?]+)"
)
ELSEWHERE = re.compile(r"\]\(\.\./([\w./]+)\)")  # a link to a file of the repository that is no page
HEAD = """\
# Automatic differentiation that you can run, draw and play with

Each lecture answers one question. Here you read it, predict, drag, open drawings and step through
computations, all in your browser: you need to install nothing. To write code and have it checked, run the
lecture: the line below its title leads to a notebook in your browser, and to Colab.

[The glossary](GLOSSARY.md) says what a word means, and where it is introduced. The reference says what each
function takes and gives: [needle](reference/tensor.md), [viz](reference/viz.md). If you teach with the
lectures, read [the page for lecturers](LECTURERS.md).

"""
TREE = """\
```{{toctree}}
:hidden:
:caption: {title}

{pages}
```

"""
BESIDE = ["numba", "workers"]  # pages of `docs`, to which the repository's README links
REFERENCE = [f"reference/{name}" for name in ("tensor", "operators", "arrays", "networks", "data", "viz")]
BADGE = (
    '<a class="run" href="../lab/lab/index.html?path={name}">Run it here</a>, in your browser, or '
    '<a class="run" href="{colab}">open it in Colab</a>, to change it, and to have your answers '
    "checked. On this page, each solution is folded below its exercise."
)


def to_pages(text: str) -> str:
    """A text whose links to other texts of the course stay in the book."""
    text = HERE.sub(r"\1.md", COLAB.sub(r"\1", text))
    return re.sub(r"(?<!/)\bREADME\.md\b", "index.md", text)


def to_sections(glossary: str) -> str:
    """The glossary, each term of which links to the section that introduces it."""

    def link(row: re.Match[str]) -> str:
        place = section(nbformat.read(NOTEBOOKS / row["lecture"], as_version=4), row["term"])
        return f"{row['start']}({row['lecture']}#{place})" if place else row[0]

    row = r"(?m)^(?P<start>- \*\*(?P<term>[^*]+)\*\*: .*\[\d\d\])\((?P<lecture>[\w.]+)\)$"
    return re.sub(row, link, glossary)


def section(notebook: NotebookNode, term: str) -> str | None:
    """The anchor of the first heading below which a lecture prints a term in bold; None if there is none."""
    heading = None
    for cell in notebook.cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else []:
            if found := re.match(r"#{2,3} (.+)", line):
                heading = slugify(found[1].replace("`", ""))
            if f"**{term.lower()}**" in line.lower():
                return heading
    return None


def page_of(notebook: NotebookNode) -> NotebookNode:
    """A lecture as a page of the book.

    Its badge is a line of text, for the picture on it would come from elsewhere; links to other lectures stay
    in the book; and what only makes sense where it runs is left out.
    """
    page = nbformat.from_dict(notebook)
    for cell in page.cells:
        tags = cell.metadata.setdefault("tags", [])
        if "badge" in tags:
            link = COLAB.search(cell.source)
            cell.source = BADGE.format(colab=link[0], name=link[1])
            continue
        if cell.id in ("set-up", "keep-your-work") or {"check", "marks"} & set(tags):
            tags.append("remove-cell")
        if cell.source.startswith("predict("):
            tags.append("remove-input")
        if cell.cell_type == "markdown":
            cell.source = to_pages(cell.source)
    # A page begins with its title.
    badge = next(i for i, cell in enumerate(page.cells) if "badge" in cell.metadata.tags)
    page.cells.insert(badge + 1, page.cells.pop(badge))
    return page


def gather(source: Path, run: list[str]) -> None:
    """Write what Sphinx reads into a folder. Lectures with these numbers will run; with none, all will."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("pictures"))
    shutil.copytree(ROOT / "docs" / "pictures", source / "beside" / "pictures")
    shutil.copy(ROOT / "playground" / "stage" / "icon.svg", source)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        page = page_of(nbformat.read(path, as_version=4))
        if run and path.stem[:2] not in run:
            page.metadata["mystnb"] = {"execution_mode": "off"}
        nbformat.write(page, source / path.name)
    for path in [*NOTEBOOKS.glob("*.md"), *(ROOT / "docs" / f"{name}.md" for name in BESIDE)]:
        text = path.read_text(encoding="utf-8").replace("../docs/pictures/", "pictures/")
        if path.name == "GLOSSARY.md":
            text = to_sections(text)
        text = ELSEWHERE.sub(f"]({REPOSITORY}/blob/main/" + r"\1)", to_pages(text))
        (source / path.name).write_text(text, encoding="utf-8")
    (source / "index.md").write_text(front_page((source / "README.md").read_text("utf-8")), encoding="utf-8")
    (source / "README.md").unlink()


def front_page(contents: str) -> str:
    """The table of contents as the first page, with what the column at the side lists."""
    trees = []
    lectures = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    parts = [*PARTS.items(), ("99", "")]
    for (first, title), (end, _) in pairwise(parts):
        trees.append((title, [name for name in lectures if first <= name[:2] < end]))
    trees += [("Besides", ["GLOSSARY", "LECTURERS", "JUPYTERHUB", *BESIDE]), ("Reference", REFERENCE)]
    trees = [(title, pages) for title, pages in trees if pages]
    listed = [TREE.format(title=title, pages="\n".join(pages)) for title, pages in trees]
    body = contents.partition("\n## ")
    return "".join([HEAD, "".join(listed), "\n## ", body[2]])


class Links(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, page: Path):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(found["href"])
        elif "src" in found:
            self.loads.append(found["src"])


def faults(site: Path, left_out: tuple[str, ...] = ()) -> Iterator[str]:
    """Links that lead nowhere in a site or the repository, and what a page would load from elsewhere.

    Links that lead out of the site are not looked at, nor are the pages in folders that are `left_out`.
    """
    found = (path for path in site.rglob("*.html") if path.relative_to(site).parts[0] not in left_out)
    pages = {path.resolve(): Links(path) for path in found}
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if link in page.loads:
                    yield f"{name}: loads {link}"
                elif (ours := OURS.match(link)) and not (ROOT / unquote(ours[1])).exists():
                    yield f"{name}: no such file in the repository: {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_relative_to(site.resolve()):
                continue
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                yield f"{name}: no file for the link {link}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{name}: no such place: {link}"


def main() -> None:
    """Gather the pages, let Sphinx write the site, and look for broken links."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "book", help="folder to write into")
    parser.add_argument("--run", nargs="*", default=[], metavar="NUMBER", help="run these lectures only")
    parser.add_argument("--jobs", default="auto", help="how many lectures run at once")
    given = parser.parse_args()
    numbers = [path.stem[:2] for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    if unknown := sorted(set(given.run) - set(numbers)):
        parser.error(f"--run {unknown[0]}: there is no such lecture; they are {numbers[0]} to {numbers[-1]}")
    # A page of the book has nothing but its frames, so there is more time for them than in a notebook.
    os.environ.setdefault("NEEDLE_DRAG_SECONDS", "120")
    source, site = given.output / "source", given.output / "html"
    gather(source, given.run)
    shutil.rmtree(site, ignore_errors=True)
    options = [
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-j",
        given.jobs,
        "-E",
        "-d",
        str(given.output / "doctrees"),
    ]
    if build_main([*options, str(source), str(site)]):
        parser.exit(1, "The book is not complete: see above.\n")
    broken = list(faults(site))
    if broken:
        parser.exit(1, "\n".join([*broken, "The book has broken links.\n"]))
    print(site / "index.html")


if __name__ == "__main__":
    sys.exit(main())
