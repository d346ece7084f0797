"""The form that every lecture keeps: what its reader can rely on finding, and where."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import nbformat
import pytest

from needle import lecture as checking

REPOSITORY = "https://github.com/needle-notebooks/needle-notebooks"
COLAB = "https://colab.research.google.com/github/needle-notebooks/needle-notebooks/blob/main/notebooks"


@pytest.fixture
def text(notebook):
    """The source of each cell, by its id."""
    return {cell.id: cell.source for cell in notebook.cells}


def test_it_is_a_valid_notebook_with_ids_that_stay(notebook):
    nbformat.validate(notebook)
    ids = Counter(cell.id for cell in notebook.cells)
    assert ids.most_common(1)[0][1] == 1
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in ids), (
        "an id says what its cell is about"
    )


def test_it_is_stored_without_outputs(notebook):
    """So that predictions are made before the answer is seen, and a stored picture is never out of date.

    ``jupyter nbconvert --clear-output --inplace notebooks/*.ipynb`` removes them.
    """
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_it_is_stored_as_jupyter_writes_it(lecture, notebook):
    assert lecture.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"


def test_a_badge_opens_it_in_colab(notebook, lecture):
    first = notebook.cells[0]
    assert first.metadata["tags"] == ["badge"]
    assert first.source.endswith(f"({COLAB}/{lecture.name})")


def test_the_question_comes_first_then_the_goals(notebook, lecture):
    title, question, *_ = notebook.cells[1].source.split("\n\n")
    assert title.startswith(f"# {lecture.stem[:2]} · ")
    assert re.fullmatch(r"\*\*[^*]+\?\*\*", question)
    goals = notebook.cells[1].source.partition("After this lecture you can\n\n")[2]
    assert goals.count("\n- ") >= 2


def test_it_says_how_to_keep_ones_work(text):
    assert "Save a copy in Drive" in text["keep-your-work"]


def test_its_set_up_cell_is_everyones(text, set_up_cell):
    assert text["set-up"] == set_up_cell
    assert text["set-up"].count(REPOSITORY) == 1


def test_it_imports_the_library_and_never_rebuilds_it(text):
    assert "import needle as ndl\n" in text["imports"]
    assert "import viz\n" in text["imports"]


def test_cells_are_short(notebook):
    for cell in notebook.cells:
        if cell.id != "set-up":
            limit = 20 if cell.cell_type == "code" else 32
            assert len(cell.source.splitlines()) <= limit, cell.id


def test_predictions_are_asked_for_right_before_a_cell_that_answers(notebook):
    asked = [index for index, cell in enumerate(notebook.cells) if "> **Predict.**" in cell.source]
    assert len(asked) >= 3
    assert all(notebook.cells[index + 1].cell_type == "code" for index in asked)
    assert all(notebook.cells[index].source.splitlines()[-1].startswith("> ") for index in asked)


def test_it_has_exercises_with_stubs_of_a_stated_size(notebook, editions):
    exercises = editions.exercises(notebook)
    assert len(exercises) >= 3
    for exercise in exercises:
        assert re.search(r"return \.\.\.  # .*\(about \d+ lines?\b", notebook.cells[exercise.stub].source)
        assert "\ncheck(\n" in "\n" + notebook.cells[exercise.check].source
        assert notebook.cells[exercise.stub - 1].source.startswith("### ")


def test_every_solution_is_collapsed(notebook, editions):
    for exercise in editions.exercises(notebook):
        lines = notebook.cells[exercise.solution].source.splitlines()
        # The blank lines matter: without them, some viewers show the Markdown inside as it stands.
        assert lines[:4] == ["<details>", "<summary>Solution</summary>", "", "```python"]
        assert lines[-2:] == ["", "</details>"]


def test_it_ends_with_three_lines_and_a_link_that_leads_on(notebook, lecture):
    last = notebook.cells[-1].source
    assert last.startswith("## In three lines\n\n1. ")
    assert re.findall(r"^(\d)\. ", last, re.MULTILINE) == ["1", "2", "3"]
    way_on = last.partition("**Next:**")[2]
    assert way_on
    assert re.findall(r"\]\((?!http)", way_on), "the way on begins with a link to a file"


def test_every_link_to_a_file_leads_to_one(notebook, lecture):
    for cell in notebook.cells:
        for target in re.findall(
            r"\]\((?!https?:)([^)#]+)", cell.source if cell.cell_type == "markdown" else ""
        ):
            assert (lecture.parent / target).is_file(), f"{cell.id}: {target}"
        for name in re.findall(re.escape(COLAB) + r"/([^)]+)", cell.source):
            assert (lecture.parent / name).is_file(), f"{cell.id}: {name}"


def test_its_code_is_clean_with_the_solutions_filled_in(notebook, editions, lecture, tmp_path):
    path = tmp_path / lecture.name
    nbformat.write(editions.solved(notebook), path)
    root = lecture.parent.parent
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--config", root / "pyproject.toml", path]
        done = subprocess.run(ruff, capture_output=True, text=True, cwd=root)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_marker_of_the_set_up_cell_is_the_checking_module(set_up_cell):
    """The cell knows the course's package by this file; a module of that name must be there."""
    assert '"lecture.py"' in set_up_cell
    assert checking.__name__ == "needle.lecture"
    assert checking.__file__.endswith("lecture.py")
