"""Write notebooks/README.md, the table of contents, from the lectures themselves: ``make contents``.

Each lecture runs, and the picture that its cell with the tag `picture` shows is saved in docs/pictures.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
PICTURES = ROOT / "docs" / "pictures"

HEAD = """\
# Lectures

Each lecture is a notebook that answers one question. You read, predict, run, and write a few lines yourself.
Every exercise checks your answer, and tells you which mistake you made. `make lab` opens the lectures in
JupyterLab; the number of a lecture opens it in Colab. If you teach with them, read
[the page for lecturers](LECTURERS.md). [The glossary](GLOSSARY.md) says what a word means, and where it is
introduced. (`make contents` writes this page.)
"""


#: The parts of the course: the number of the first lecture, and the title.
PARTS = {
    "01": "Functions, modules, a first learner",
    "04": "Automatic differentiation",
    "11": "Arrays and speed",
    "14": "Networks",
    "19": "From a graph to machines",
}


class Lecture(NamedTuple):
    """What the table says of a lecture."""

    path: Path
    title: str
    question: str
    minutes: int
    needs: str
    goals: list[str]
    colab: str
    alt: str

    @property
    def number(self) -> str:
        """Its number, as in ``07``."""
        return self.path.stem[:2]


def read(path: Path) -> Lecture:
    """Read a lecture's title cell and its badge.

    Raises
    ------
    ValueError
        If they are not of the form that every lecture has.
    """
    notebook = nbformat.read(path, as_version=4)
    cells = {cell.id: cell.source for cell in notebook.cells}
    colab = re.search(r"\]\((https://colab[^)]+)\)$", cells["badge"])
    title = re.match(r"# \d\d · (.+)\n\n\*\*(.+\?)\*\*\n", cells["title"])
    time = re.search(r"(?m)^\*About (\d+) minutes\. You need (.+)\.\*$", cells["title"])
    goals = re.findall(r"(?m)^- (.+)[;.]$", cells["title"].partition("After this lecture you can\n\n")[2])
    if not (colab and title and time and goals):
        raise ValueError(
            f"{path.name}: its title cell needs a title, a question, goals, minutes and what it needs"
        )
    alt = notebook.cells[picture_cell(notebook)].metadata["alt"]
    return Lecture(path, title[1], title[2], int(time[1]), time[2], goals, colab[1], alt)


def picture_cell(notebook: NotebookNode) -> int:
    """Where the cell with the tag `picture` is. Its metadata say in words what the picture shows (`alt`)."""
    (place,) = [i for i, cell in enumerate(notebook.cells) if "picture" in cell.metadata.get("tags", [])]
    return place


def contents(lectures: list[Lecture]) -> str:
    """The table of contents, in Markdown."""
    parts = [HEAD]
    for lecture in lectures:
        (picture,) = [path.name for path in PICTURES.glob(f"lecture_{lecture.number}.*")] or [""]
        if lecture.number in PARTS:
            part = list(PARTS).index(lecture.number) + 1
            parts.append(f"## Part {part} · {PARTS[lecture.number]}\n")
        image = f'<img src="../docs/pictures/{picture}" width="560" alt="{html.escape(lecture.alt)}">'
        parts.append(
            f"### [{lecture.number}]({lecture.colab}) · [{lecture.title}]({lecture.path.name})\n\n"
            f"**{lecture.question}**\n\n"
            + (f"{image}\n\n" if picture else "")
            + "After it you can\n\n"
            + "".join(f"- {goal};\n" for goal in lecture.goals[:-1])
            + f"- {lecture.goals[-1]}.\n\n"
            f"About {lecture.minutes} minutes. You need {lecture.needs}.\n"
        )
    return "\n".join(parts)


#: Runs after the cell with the picture: saves what it showed, or a slider's picture at its start.
SAVE = """\
shown = list(Out.values())[-1]
shown = shown.at() if hasattr(shown, "at") else shown
if hasattr(shown, "save"):
    shown.save("{stem}.svg")
else:
    shown.figure.savefig("{stem}.png", dpi=144)
"""


def save_picture(path: Path) -> None:
    """Run a lecture up to its cell with the tag `picture`, and save what that shows."""
    notebook = nbformat.read(path, as_version=4)
    last = picture_cell(notebook)
    notebook.cells = notebook.cells[: last + 1]
    notebook.cells[last].source = notebook.cells[last].source.rstrip(";")  # which would show nothing
    save = SAVE.format(stem=(PICTURES / f"lecture_{path.stem[:2]}").as_posix())
    notebook.cells.append(nbformat.v4.new_code_cell(save))
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()


def main() -> None:
    """Run every lecture for its picture, and write the table of contents."""
    lectures = [read(path) for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    for lecture in lectures:
        print(f"lecture {lecture.number} runs for its picture", file=sys.stderr)
        save_picture(lecture.path)
    (NOTEBOOKS / "README.md").write_text(contents(lectures), encoding="utf-8")


if __name__ == "__main__":
    main()
