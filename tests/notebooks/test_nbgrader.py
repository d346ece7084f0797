"""The student edition in nbgrader itself: hand it out, collect it, and grade it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nbgrader")]

LECTURE = "05_computational_graph"


def run(course: Path, *command: str) -> str:
    """Run this Python in a course's folder, and have what it printed. nbgrader calls a program beside it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path}
    done = subprocess.run(
        [sys.executable, *command], cwd=course, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def notebook(editions):
    """The lecture as it is in the repository."""
    return nbformat.read(editions.ROOT / "notebooks" / f"{LECTURE}.ipynb", as_version=4)


@pytest.fixture(scope="module")
def course(tmp_path_factory, editions, notebook):
    """The course that `make student` writes. Three students have handed in a lecture, and it is graded."""
    output = tmp_path_factory.mktemp("editions")
    course = output / "student"
    run(output, editions.__file__, "--output", str(output))
    run(course, "-m", "nbgrader", "generate_assignment", LECTURE)

    answers = [exercise.code for exercise in editions.exercises(notebook)]
    released = course / "release" / LECTURE / f"{LECTURE}.ipynb"
    for student, right in (("all", len(answers)), ("one", 1), ("none", 0)):
        handed_in = nbformat.read(released, as_version=4)
        stubs = [cell for cell in handed_in.cells if cell.metadata.get("nbgrader", {}).get("solution")]
        for stub, answer in list(zip(stubs, answers, strict=True))[:right]:
            stub.source = answer
        folder = course / "submitted" / student / LECTURE
        folder.mkdir(parents=True)
        nbformat.write(handed_in, folder / released.name)
    run(course, "-m", "nbgrader", "autograde", LECTURE)
    return course


def test_what_is_handed_out_has_the_stubs_and_no_solution(course, notebook, editions):
    released = nbformat.read(course / "release" / LECTURE / f"{LECTURE}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in released.cells)
    for exercise in editions.exercises(notebook):
        assert notebook.cells[exercise.stub].source in text
        assert exercise.code not in text


def test_each_right_answer_gets_a_point(course, notebook, editions):
    points = len(editions.exercises(notebook))
    program = (
        "from nbgrader.api import Gradebook\n"
        "with Gradebook('sqlite:///gradebook.db') as book:\n"
        "    for student in ('all', 'one', 'none'):\n"
        f"        done = book.find_submission({LECTURE!r}, student)\n"
        "        print(student, done.score, done.max_score)\n"
    )
    printed = run(course, "-c", program).splitlines()
    assert printed == [f"all {points:.1f} {points:.1f}", f"one 1.0 {points:.1f}", f"none 0.0 {points:.1f}"]


def test_points_and_notes_go_back(course):
    run(course, "-m", "nbgrader", "generate_feedback", LECTURE)
    assert (course / "feedback" / "one" / LECTURE / f"{LECTURE}.html").is_file()
    run(course, "-m", "nbgrader", "export")
    names, *rows = (course / "grades.csv").read_text().splitlines()
    assert {"student_id", "score"} <= {*names.split(",")}
    assert len(rows) == 3


def test_it_is_handed_out_and_collected_as_in_a_hub(course, tmp_path):
    exchange, home = tmp_path / "exchange", tmp_path / "home"
    home.mkdir()
    exchange.mkdir()
    exchange.chmod(0o1777)
    root = f"--Exchange.root={exchange}"
    run(course, "-m", "nbgrader", "release_assignment", LECTURE, root)
    run(home, "-m", "nbgrader", "fetch_assignment", LECTURE, "--course=needle", root)
    released = (course / "release" / LECTURE / f"{LECTURE}.ipynb").read_text()
    assert (home / LECTURE / f"{LECTURE}.ipynb").read_text() == released
    run(home, "-m", "nbgrader", "submit", LECTURE, "--course=needle", root)
    before = {path.name for path in (course / "submitted").iterdir()}
    run(course, "-m", "nbgrader", "collect", "--update", LECTURE, root)
    (student,) = {path.name for path in (course / "submitted").iterdir()} - before
    collected = course / "submitted" / student / LECTURE / f"{LECTURE}.ipynb"
    assert collected.read_text() == released
    (home / LECTURE / f"{LECTURE}.ipynb").write_text(released + "\n")
    run(home, "-m", "nbgrader", "submit", LECTURE, "--course=needle", root)
    run(course, "-m", "nbgrader", "collect", "--update", LECTURE, root)
    assert collected.read_text() == released + "\n"
