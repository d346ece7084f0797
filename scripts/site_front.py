"""The first page of the site, and what all its pages share: what keeps them for a visit without a network."""

from __future__ import annotations

import hashlib
import html
import shutil
from itertools import pairwise
from pathlib import Path

from make_book import REPOSITORY
from make_contents import NOTEBOOKS, PARTS, PICTURES, Lecture, read

ROOT = Path(__file__).resolve().parent.parent
BROWSER = ROOT / "browser"
ROW = """\
    <li><i>{number}</i><div><b>{title}</b><span>{question}</span></div>
      <div><a href="book/{page}.html" aria-label="Read {title}">Read</a>
      <a href="lab/lab/index.html?path={page}.ipynb" aria-label="Run {title}">Run it here</a></div></li>
"""


def build_front(site: Path) -> None:
    """Write the front page, its pictures, and the worker that keeps what pages load."""
    shutil.copy(ROOT / "playground" / "stage" / "icon.svg", site)
    for name in ("front.css", "keep.js"):
        shutil.copy(BROWSER / name, site)
    (site / "pictures").mkdir()
    for name, picture in (
        ("playground.png",) * 2,
        ("lecture_09.png",) * 2,
        ("explorer.svg", "v1v4_gradient.svg"),
    ):
        shutil.copy(PICTURES / picture, site / "pictures" / name)
    page = (BROWSER / "front.html").read_text("utf-8")
    page = page.replace("{repository}", REPOSITORY).replace("{lectures}", "".join(lectures()))
    (site / "index.html").write_text(page, "utf-8")


def lectures() -> list[str]:
    """The lists of lectures, a list for each part of the course."""
    all_of_them = [read(path) for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    lists = []
    for (first, title), (end, _) in pairwise([*PARTS.items(), ("99", "")]):
        rows = [row(lecture) for lecture in all_of_them if first <= lecture.number < end]
        lists.append(f"  <h3>{html.escape(title)}</h3>\n  <ol>\n{''.join(rows)}  </ol>\n")
    return lists


def row(lecture: Lecture) -> str:
    """A lecture's line: what it asks, and where to read and to run it."""
    title, question = (html.escape(text.replace("`", "")) for text in (lecture.title, lecture.question))
    return ROW.format(number=lecture.number, title=title, question=question, page=lecture.path.stem)


def keep_for_later(site: Path) -> None:
    """Write the worker that keeps what pages load, named after all that the site holds: the last step."""
    names = hashlib.sha256()
    for path in sorted(x for x in site.rglob("*") if x.is_file()):
        names.update(f"{path.relative_to(site)} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    worker = (
        (BROWSER / "service-worker.js").read_text("utf-8").replace('"BUILD"', f'"{names.hexdigest()[:12]}"')
    )
    for folder in filter(Path.is_dir, (site, site / "lab")):
        shutil.copy(BROWSER / "packed.js", folder)
        (folder / "service-worker.js").write_text(worker, "utf-8")
