"""The tool that makes the solved and the student edition."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook


def tagged(cell, *tags):
    cell.metadata["tags"] = list(tags)
    return cell


@pytest.fixture
def small():
    code = "```python\ndef f():\n    return 1\n```"
    solution = f"<details>\n<summary>Solution</summary>\n\n{code}\n\nOne is one.\n\n</details>"
    return new_notebook(
        cells=[
            tagged(new_markdown_cell("badge"), "badge"),
            new_markdown_cell("prose"),
            tagged(new_code_cell("def f():\n    return ..."), "exercise"),
            tagged(new_code_cell("check(f, case(expect=1))"), "check"),
            tagged(new_markdown_cell(solution), "solution"),
        ]
    )


def sources(notebook):
    return [cell.source for cell in notebook.cells]


def test_the_solved_edition_has_the_solution_in_the_place_of_the_stub(small, editions):
    before = deepcopy(small)
    solved = sources(editions.solved(small))
    assert solved.pop(2) == "def f():\n    return 1"
    assert solved == sources(small)[:2] + sources(small)[3:]
    assert small == before


def test_the_student_edition_has_no_solutions_and_no_badge_and_is_marked_for_grading(small, editions):
    student = editions.student(small)
    assert sources(student) == sources(small)[1:4]
    stub, check = [cell.metadata["nbgrader"] for cell in student.cells[1:]]
    assert (stub["solution"], stub["locked"]) == (True, False)
    assert (check["grade"], check["points"], check["locked"]) == (True, 1, True)
    assert stub["grade_id"] != check["grade_id"]


@pytest.mark.parametrize(
    ("missing", "words"),
    [(2, "without its exercise"), *[(place, "must be tagged `check` and `solution`") for place in (3, 4)]],
)
def test_a_stub_a_check_and_a_solution_belong_together(small, editions, missing, words):
    del small.cells[missing]
    with pytest.raises(ValueError, match=words):
        editions.student(small)


BLOCK = "```python\n1\n```"
TWO = f"<details><summary>Solution</summary>\n\n{BLOCK}\n\n{BLOCK}\n\n</details>"


@pytest.mark.parametrize("solution", ["return 1", "<details>return 1</details>", BLOCK, TWO])
def test_a_solution_that_is_not_one_collapsed_block_is_refused(small, editions, solution):
    small.cells[4].source = solution
    with pytest.raises(ValueError, match="its solution must be one"):
        editions.solved(small)


def test_the_command_writes_both_editions_of_every_lecture(editions, tmp_path):
    # Without the grammar of web addresses that conftest.py leaves out here, too.
    program = "import runpy, sys; sys.modules['rfc3987_syntax'] = None; sys.argv.pop(0); "
    program += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", program, editions.__file__, "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "solved"), str(tmp_path / "student")]
    lectures = {path.name for path in (editions.ROOT / "notebooks").glob("*.ipynb")}
    for edition in ("solved", "student"):
        found = (tmp_path / edition).glob("source/*/*.ipynb" if edition == "student" else "*.ipynb")
        written = {path.name: nbformat.read(path, as_version=4) for path in found}
        assert set(written) == lectures
        for notebook in written.values():
            nbformat.validate(notebook)
            text = "\n".join(sources(notebook))
            assert ("<summary>Solution</summary>" in text) == (edition == "solved")
            assert ("return ..." in text) == (edition == "student")
