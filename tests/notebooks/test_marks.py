"""What a reader hands in without a server: the file that `grade` writes, and what reads a folder of them."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from lectures import lecture_05
from lectures.checking.marks import seal, version

from .conftest import ROOT, script

LEAVES = lecture_05.lecture.exercises["leaves"]
HELPER = "def nodes_of(output):\n    return ndl.autograd.find_topo_sort([output])"
RIGHT = "def leaves(output):\n    return [node for node in nodes_of(output) if node.is_leaf()]"
WRONG = "def rerun(output, leaf, value):\n    return output"
SQUARE = "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a * a"
STUB = "def from_the_table(n1, n2):\n    return ..."


@pytest.fixture(scope="session")
def reading():
    """The module scripts/read_marks.py."""
    sys.path.insert(0, str(ROOT / "scripts"))
    return script("read_marks")


@pytest.fixture
def grade(tmp_path, monkeypatch):
    """Run cells and `grade` in a shell, and have the file's path."""
    monkeypatch.chdir(tmp_path)

    def graded(name, *cells):
        shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
        first = "import needle as ndl\nfrom lectures.lecture_05 import grade"
        for cell in (first, *cells, f"grade({name!r})"):
            shell.run_cell(cell).raise_error()
        return next(iter(tmp_path.glob("*.marks.json")), None)

    return graded


def marks_of(name="Ada", **entries):
    exercises = [{"name": x, "passed": passed, "cells": cells} for x, (passed, cells) in entries.items()]
    marks = {"lecture": "05", "name": name, "version": version(), "exercises": exercises}
    return {**marks, "seal": seal(marks)}


def test_an_untouched_name_is_asked_for(grade, capsys):
    assert grade("your name", RIGHT) is None
    assert "Write your own name" in capsys.readouterr().out


def test_the_file_holds_what_passed_and_the_cells(grade, capsys, reading):
    path = grade("Ada / Łu", STUB, HELPER, RIGHT, WRONG, SQUARE)
    assert path.name == "05_Ada_Łu.marks.json"
    printed = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[:4]]
    said = {"from_the_table": "not tried", "leaves": "passed", "rerun": "not yet", "Square": "passed"}
    assert dict(printed) == said
    marks = reading.read(path)
    cells = {entry["name"]: entry["cells"] for entry in marks["exercises"]}
    assert cells == {"from_the_table": [], "leaves": [HELPER, RIGHT], "rerun": [WRONG], "Square": [SQUARE]}
    notebook = nbformat.read(reading.LECTURES["05"], as_version=4)
    handed_in = reading.answers(marks, notebook)
    assert [exercise.claim for exercise in handed_in] == list(said.values())
    assert handed_in[1].answer == f"{HELPER}\n\n\n{RIGHT}"


def test_what_has_no_source_is_left_out_and_told(grade, capsys, reading):
    path = grade("Ada", f"%%time\n{RIGHT.replace('nodes_of', 'ndl.autograd.find_topo_sort')}")
    assert re.search("leaves +left out: define it in a cell that holds Python alone", capsys.readouterr().out)
    assert all(entry["cells"] == [] for entry in reading.read(path)["exercises"])


def test_another_version_is_told(reading):
    marks = {**marks_of(), "version": "0.0.9"}
    differs = reading.row("a.json", marks, [], [], "")[-2]
    assert differs == f"made with version 0.0.9, and this is {version()}"


GOOD = json.dumps(marks_of(leaves=(True, [RIGHT]))).encode()
BAD = {
    "its seal does not fit": GOOD.replace(b"true", b"false"),
    "no JSON": GOOD[:-20],
    "no JSON ": b"[" * 100_000,
    "no JSON  ": b"\xff\xfe\x00",
    "no file of marks": b"[1, 2]",
    "no file of marks ": json.dumps(marks_of(leaves=(True, [RIGHT] * 200))).encode(),
    "no file of marks  ": json.dumps(marks_of(leaves=(1, [RIGHT]))).encode(),
    "more than 200,000 bytes": GOOD + b" " * 200_000,
    "no name": json.dumps(marks_of(name="\u202e \x07")).encode(),
    "is no JSON   ": json.dumps(marks_of(name="\ud800")).encode(),
}


@pytest.mark.parametrize("words", BAD)
def test_what_is_no_good_file_is_refused(words, reading, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(BAD[words])
    with pytest.raises(ValueError, match=words.strip()):
        reading.read(path)


def test_a_bad_file_is_a_line_of_the_table(reading, tmp_path):
    (tmp_path / "=a\n.json").write_bytes(b"{}")
    (tmp_path / "b.json").symlink_to("/dev/zero")
    lines = list(reading.table(tmp_path, sorted(tmp_path.glob("*.json")), 1, None))
    assert [line[-1] for line in lines] == ["'=a .json", "b.json"]
    assert [line[-2] for line in lines] == [
        "not read: it is no file of marks",
        "not read: it is not a plain file",
    ]


def test_names_of_students_are_made_safe(reading):
    assert reading.plain("=1+1\n\u202eAda") == "'=1+1 Ada"
    names = ["../../Ada", "Ada", "ada", "..", "Łu B", "Ada"]
    assert list(reading.ids(names).values()) == ["Ada", "Ada_2", "ada_3", "student", "Łu_B"]


def write_two(folder):
    """Ada has two answers, and says so; Bob says that a wrong one passed."""
    folder.mkdir()
    ada = marks_of(leaves=(True, [HELPER, RIGHT]), Square=(True, [SQUARE]))
    bob = marks_of("Bob", leaves=(True, [RIGHT]), rerun=(True, [WRONG]))
    for name, marks in (("a", ada), ("b", bob)):
        (folder / f"{name}.json").write_text(json.dumps(marks))


def command(*options):
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/read_marks.py", *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_command_runs_the_answers_again(tmp_path):
    write_two(tmp_path / "in")
    command(tmp_path / "in")
    with (tmp_path / "in/marks.csv").open(encoding="utf-8-sig", newline="") as file:
        ada, bob = csv.DictReader(file)
    assert (ada["student"], ada["points"], ada["of"], ada["differs"]) == ("Ada", "2", "4", "")
    assert ada["results"] == "from_the_table not tried; leaves passed; rerun not tried; Square passed"
    wrong = "leaves: passed in the file, not yet here; rerun: passed in the file, not yet here"
    assert (bob["student"], bob["points"], bob["differs"]) == ("Bob", "0", wrong)


@pytest.mark.slow
@pytest.mark.usefixtures("nbgrader")
def test_nbgraders_gradebook_takes_them(tmp_path, editions):
    from .test_nbgrader import LECTURE, run

    write_two(tmp_path / "in")
    course = tmp_path / "student"
    run(tmp_path, editions.__file__, "--output", str(tmp_path))
    run(course, "-m", "nbgrader", "generate_assignment", LECTURE)
    command(tmp_path / "in", "--course", course)
    run(course, "-m", "nbgrader", "autograde", LECTURE)
    run(course, "-m", "nbgrader", "export")
    with (course / "grades.csv").open(newline="") as file:
        scores = {line["student_id"]: float(line["score"]) for line in csv.DictReader(file)}
    assert scores == {"Ada": 2, "Bob": 0}
