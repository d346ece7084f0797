"""Read the files of marks that students handed in, run their answers again, and write a table.

    python scripts/read_marks.py FOLDER [--output marks.csv] [--course build/notebooks/student]

A file holds the cells of a student's answers, and says what passed. Here the cells take the place of the
stubs, and the lecture runs on a fresh kernel up to its last check. An exercise has a point if its check
passes here, whatever the file says. With ``--course``, nothing runs: the answers go into the folder
``submitted`` of a course of nbgrader's, which runs them.

The answers are programs, and they may do whatever you may do. Run this where you would run students'
programs: in a container, or in the image of your JupyterHub.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from notebook_editions import ROOT, exercises

from lectures.checking.marks import seal, version

LECTURES = {path.name[:2]: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
FILES, BYTES, ENTRIES, LETTERS = 2000, 200_000, 100, 80  # the most that is read
COLUMNS = ("student", "lecture", "points", "of", "results", "differs", "file")


class Exercise(NamedTuple):
    """An exercise of a lecture, and what a file has for it."""

    names: list[str]  # of the functions that it asks for
    stub: str  # the id of the cell to fill in
    check: str  # the id of the cell that checks it
    answer: str  # the cells that were handed in; "" for none
    claim: str  # what the file says: "passed", "not yet" or "not tried"


def plain(text: str) -> str:
    """A text that may stand in a table: printable, in one line, short, and no formula of a spreadsheet."""
    text = " ".join("".join(x if x.isprintable() else " " for x in text).split())[:LETTERS]
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def read(path: Path) -> dict[str, Any]:
    """What a file says.

    Raises
    ------
    ValueError
        If it is no file of marks, is too large, or its seal does not fit.
    """
    if path.is_symlink() or not path.is_file():
        raise ValueError("it is not a plain file")
    with path.open("rb") as file:
        data = file.read(BYTES + 1)
    if len(data) > BYTES:
        raise ValueError(f"it has more than {BYTES:,} bytes")
    try:
        marks = json.loads(data)
        json.dumps(marks, ensure_ascii=False).encode()  # half a character has no place in a notebook
    except (ValueError, RecursionError):
        raise ValueError("it is damaged: it is no JSON") from None
    if not is_marks(marks):
        raise ValueError("it is no file of marks")
    if marks["seal"] != seal(marks):
        raise ValueError("its seal does not fit: it is damaged, or was edited")
    if marks["lecture"] not in LECTURES:
        raise ValueError(f"there is no lecture {plain(marks['lecture'])}")
    if not plain(marks["name"]):
        raise ValueError("it has no name")
    return marks


def is_marks(marks: Any) -> bool:
    """Whether this has all that a file of marks has, each of its type, and no more of it than is read."""
    match marks:
        case {"lecture": str(), "name": str(), "version": str(), "seal": str(), "exercises": [*entries]}:
            return len(entries) <= ENTRIES and all(map(is_entry, entries))
    return False


def is_entry(entry: Any) -> bool:
    """The same for one exercise."""
    match entry:
        case {"name": str(), "passed": bool(), "cells": [*cells]}:
            return len(cells) <= ENTRIES and all(isinstance(cell, str) for cell in cells)
    return False


def answers(marks: dict[str, Any], notebook: NotebookNode) -> list[Exercise]:
    """The exercises of a lecture, with what was handed in for each.

    A helper may stand in a cell of its own, which comes before the answer. It is left out if the lecture has
    this cell already, or it is the answer to another exercise.
    """
    entries = {entry["name"]: entry for entry in marks["exercises"] if entry["cells"]}
    there = {cell.source.strip() for cell in notebook.cells}
    there |= {entry["cells"][-1].strip() for entry in entries.values()}
    found = []
    for exercise in exercises(notebook):
        stub, check = notebook.cells[exercise.stub], notebook.cells[exercise.check]
        names = re.findall(r"(?m)^check\((\w+)\)$", check.source)
        tried = [entries[name] for name in names if name in entries]
        helpers = [cell for entry in tried for cell in entry["cells"][:-1] if cell.strip() not in there]
        cells = dict.fromkeys([*helpers, *(entry["cells"][-1] for entry in tried)])
        passed = len(tried) == len(names) and all(entry["passed"] for entry in tried)
        claim = "passed" if passed else "not yet" if tried else "not tried"
        found.append(Exercise(names, stub.id, check.id, "\n\n\n".join(cells), claim))
    return found


def fill(notebook: NotebookNode, handed_in: list[Exercise]) -> NotebookNode:
    """A lecture, or nbgrader's edition of it, with these answers in the place of the stubs."""
    filled = deepcopy(notebook)
    places = {exercise.stub: exercise.answer for exercise in handed_in if exercise.answer}
    for cell in filled.cells:
        place = cell.metadata.get("nbgrader", {}).get("grade_id", cell.id)
        cell.source = places.get(place, cell.source)
    return filled


def run(
    notebook: NotebookNode, number: str, handed_in: list[Exercise], seconds: int
) -> tuple[list[str], str]:
    """Run a lecture with these answers.

    Returns
    -------
    results : list of str
        "passed", "not yet" or "not tried", for each exercise.
    why : str
        What ended the lecture early; "" if nothing did.
    """
    filled = fill(notebook, handed_in)
    passed: set[str] = set()
    checks = [exercise.check for exercise in handed_in]
    manager = AsyncKernelManager()
    manager._kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
    )
    client = NotebookClient(
        filled, km=manager, timeout=seconds, allow_errors=True, shutdown_kernel="immediate"
    )
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    # There, a check of what is not tried raises, too.
    settings = os.environ | {"PYTHONPATH": path, "NBGRADER_EXECUTION": "autograde"}
    why = ""
    with TemporaryDirectory() as folder, client.setup_kernel(cwd=folder, env=settings):
        try:
            for index, cell in enumerate(filled.cells):
                if cell.id in checks:  # an answer may have taken the name by mistake
                    cell.source = f"from lectures.lecture_{number} import check\n\n{cell.source}"
                client.execute_cell(cell, index)
                if cell.id in checks and all(x.output_type != "error" for x in cell.outputs):
                    passed.add(cell.id)
                if cell.id == checks[-1]:
                    break
        except CellTimeoutError:
            why = f"the cell `{cell.id}` ran for {seconds} seconds, and ended it"
        except DeadKernelError:
            why = f"the cell `{cell.id}` ended the kernel"
    results = ["passed" if x.check in passed else "not yet" if x.answer else "not tried" for x in handed_in]
    return results, why


def row(
    file: str, marks: dict[str, Any], handed_in: list[Exercise], results: list[str], why: str
) -> list[Any]:
    """A line of the table."""
    told = [
        (", ".join(exercise.names), exercise.claim, result)
        for exercise, result in zip(handed_in, results, strict=True)
    ]
    differs = [
        f"{name}: {claim} in the file, {result} here" for name, claim, result in told if claim != result
    ]
    known = {name for exercise in handed_in for name in exercise.names}
    if other := sorted({entry["name"] for entry in marks["exercises"]} - known):
        differs.append(plain(f"no exercises of this lecture: {', '.join(other)}"))
    if marks["version"] != version():
        differs.append(plain(f"made with version {marks['version']}, and this is {version()}"))
    return [
        plain(marks["name"]),
        marks["lecture"],
        results.count("passed"),
        len(results),
        "; ".join(f"{name} {result}" for name, _, result in told),
        "; ".join([*filter(None, [why]), *differs]),
        file,
    ]


def ids(names: list[str]) -> dict[str, str]:
    """For each student's name a name of a folder, and no two get the same."""
    found: dict[str, str] = {}
    for name in names:
        short = re.sub(r"\W+", "_", plain(name)).strip("_")[:40] or "student"
        taken = [x.casefold() for other, x in found.items() if other != name]
        free = (x for x in [short, *(f"{short}_{number}" for number in range(2, FILES + 2))])
        found.setdefault(name, next(x for x in free if x.casefold() not in taken))
    return found


def hand_on(course: Path, student: str, number: str, handed_in: list[Exercise]) -> None:
    """Write a submission into a course of nbgrader's.

    Raises
    ------
    FileNotFoundError
        If the lecture has not been handed out there.
    """
    stem = LECTURES[number].stem
    released = nbformat.read(course / "release" / stem / f"{stem}.ipynb", as_version=4)
    folder = course / "submitted" / student / stem
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(fill(released, handed_in), folder / f"{stem}.ipynb")


def table(folder: Path, files: list[Path], seconds: int, course: Path | None) -> Iterator[list[Any]]:
    """The lines of the table, one for each file; those that cannot be read say why."""
    notebooks = {number: nbformat.read(path, as_version=4) for number, path in LECTURES.items()}
    best: dict[tuple[str, str], list[Exercise]] = {}
    for path in files:
        file = plain(str(path.relative_to(folder)))
        try:
            marks = read(path)
        except (ValueError, OSError) as error:
            yield ["", "", "", "", "", f"not read: {getattr(error, 'strerror', None) or error}", file]
            continue
        number = marks["lecture"]
        handed_in = answers(marks, notebooks[number])
        if course is None:
            results, why = run(notebooks[number], number, handed_in, seconds)
        else:
            results, why = [exercise.claim for exercise in handed_in], "not run here"
            claims = [
                [x.claim for x in found].count("passed")
                for found in (best.get((marks["name"], number), []), handed_in)
            ]
            if claims[1] >= claims[0]:
                best[marks["name"], number] = handed_in
        yield row(file, marks, handed_in, results, why)
    if course is not None:
        student = ids([name for name, _ in best])
        for (name, number), handed_in in best.items():
            hand_on(course, student[name], number, handed_in)


def main() -> None:
    """Read a folder, print the table, and write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the files are, also in folders below it")
    parser.add_argument("--output", type=Path, help="the table to write; default: FOLDER/marks.csv")
    parser.add_argument(
        "--course", type=Path, help="write them for nbgrader, into this course, and run nothing"
    )
    parser.add_argument("--seconds", type=int, default=300, help="the most that a cell may run")
    given = parser.parse_args()
    files = sorted(given.folder.rglob("*.json"))
    if not files or len(files) > FILES:
        parser.error(
            f"there are {len(files):,} files of marks in {given.folder}; one to {FILES:,} can be read"
        )
    output = given.output or given.folder / "marks.csv"
    with output.open("w", newline="", encoding="utf-8-sig") as out:  # so that spreadsheets see it is UTF-8
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        try:
            for line in table(given.folder, files, given.seconds, given.course):
                writer.writerow(line)
                student, lecture, points, of, results, differs, file = line
                print(f"{student or file:24} {lecture:3} {points}/{of} {results}", flush=True)
                if differs:
                    print(f"{'':28} {differs}", flush=True)
        except FileNotFoundError as error:
            parser.exit(1, f"{error.filename} is not there: run `nbgrader generate_assignment` first\n")
    print(output)


if __name__ == "__main__":
    main()
