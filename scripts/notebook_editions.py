"""Make the other editions of the lectures from the notebooks in `notebooks/`.

    python scripts/notebook_editions.py [--output build/notebooks]

- `solved/`: every exercise is filled in with its solution. The tests run this one.
- `student/`: the solutions are left out, and so is the badge, which leads to them. Its exercises and checks
  are marked for nbgrader, one point each. It is a course of nbgrader's: in that folder,
  `nbgrader generate_assignment 05_computational_graph` prepares a lecture to be handed out, and
  `nbgrader autograde 05_computational_graph` grades what came back.

The notebook in the repository is the only source, and holds each solution once. An exercise is three cells in
a row with the tags `exercise` (the stub, code), `check` (code) and `solution` (Markdown: a collapsed
`<details>` with one Python block in it, which replaces the whole stub).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
TRIPLE = ["exercise", "check", "solution"]
LEFT_OUT = {"solution", "badge", "marks"}  # where nbgrader collects, nobody needs a file of marks
SOLUTION = re.compile(r"<details>[^`]*```python\n(?P<code>((?!```).)*)\n```((?!```).)*</details>", re.DOTALL)


class Exercise(NamedTuple):
    """Where an exercise is in its notebook, and the code of its solution."""

    stub: int  # index of the cell to fill in
    check: int  # index of the cell that checks it
    solution: int  # index of the cell that shows the solution
    code: str


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell; [] if it has none."""
    return cell.metadata.get("tags", [])


def exercises(notebook: NotebookNode) -> list[Exercise]:
    """The exercises of a notebook, in order.

    Raises
    ------
    ValueError
        If a stub is not followed by its check and its solution, or the solution has not one Python block.
    """
    parts = [next((part for part in TRIPLE if part in tags(cell)), "") for cell in notebook.cells]
    found = []
    for stub, cell in enumerate(notebook.cells):
        if parts[stub] != "exercise":
            continue
        if parts[stub : stub + 3] != TRIPLE:
            raise ValueError(f"cell {cell.id}: the cells after it must be tagged `check` and `solution`")
        block = SOLUTION.fullmatch(notebook.cells[stub + 2].source.strip())
        if block is None:
            raise ValueError(f"cell {cell.id}: its solution must be one ```python block inside <details>")
        found.append(Exercise(stub, stub + 1, stub + 2, block["code"]))
    if len(list(filter(None, parts))) != 3 * len(found):
        raise ValueError("there is a check or a solution without its exercise")
    return found


def solved(notebook: NotebookNode) -> NotebookNode:
    """The notebook with every stub replaced by its solution."""
    edition = deepcopy(notebook)
    for exercise in exercises(notebook):
        edition.cells[exercise.stub].source = exercise.code
    return edition


def student(notebook: NotebookNode) -> NotebookNode:
    """The notebook without its solutions, the badge that leads to them and `grade`, with nbgrader's marks."""
    edition = deepcopy(notebook)
    for exercise in exercises(notebook):
        for index, graded in ((exercise.stub, False), (exercise.check, True)):
            cell = edition.cells[index]
            cell.metadata["nbgrader"] = nbgrader_marks(cell.id, graded)
    edition.cells = [cell for cell in edition.cells if not LEFT_OUT & set(tags(cell))]
    return edition


def nbgrader_marks(name: str, graded: bool) -> dict[str, object]:
    """What nbgrader reads in a cell: a place for an answer, or a check that gives a point.

    The format is version 3 of nbgrader's cell metadata.
    """
    marks = {"schema_version": 3, "grade_id": name, "task": False}
    if graded:
        return marks | {"grade": True, "locked": True, "points": 1, "solution": False}
    return marks | {"grade": False, "locked": False, "solution": True}


#: For nbgrader. What is handed out has no solutions already, and the stubs should stay in it.
COURSE = """\
c = get_config()
c.CourseDirectory.course_id = "needle"
c.ClearSolutions.enabled = False
"""

EDITIONS: dict[str, Callable[[NotebookNode], NotebookNode]] = {"solved": solved, "student": student}


def main() -> None:
    """Write both editions of every notebook, and print where they are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build" / "notebooks", help="folder to write into"
    )
    output = parser.parse_args().output
    for name, make in EDITIONS.items():
        folder = output / name
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            try:
                edition = make(nbformat.read(path, as_version=4))
            except ValueError as error:
                parser.exit(1, f"{path.name}: {error}\n")
            place = folder / "source" / path.stem if name == "student" else folder
            place.mkdir(parents=True, exist_ok=True)
            nbformat.write(edition, place / path.name)
        print(folder)
    (output / "student" / "nbgrader_config.py").write_text(COURSE, encoding="utf-8")


if __name__ == "__main__":
    main()
