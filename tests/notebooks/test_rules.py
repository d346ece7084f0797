"""The form that every lecture keeps: what its reader can rely on finding, and where."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import nbformat
import pytest

from lectures import checking

from .conftest import ROOT, script

REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
COLAB = REPOSITORY.replace("https://github.com", "https://colab.research.google.com/github")
COLAB += "/blob/main/notebooks"


@pytest.fixture
def text(notebook):
    """The source of each cell, by its id."""
    return {cell.id: cell.source for cell in notebook.cells}


def test_it_is_a_valid_notebook_with_ids_that_stay(notebook):
    nbformat.validate(notebook)
    ids = {cell.id for cell in notebook.cells}
    assert len(ids) == len(notebook.cells)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in ids), "it says what is in its cell"


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


def test_it_says_how_to_keep_ones_work_and_has_everyones_set_up_and_imports(text, set_up_cell):
    assert "Save a copy in Drive" in text["keep-your-work"]
    assert text["set-up"] == set_up_cell
    assert text["set-up"].count(REPOSITORY) == 1
    assert "import needle as ndl\n" in text["imports"]
    assert "import viz\n" in text["imports"]


#: What nobody says aloud, with what one would say.
RIDDLES = {
    r"\b(derivative|gradient) of \S+ by [`*$]?[A-Za-z]\d?\b": "with respect to",
    r"(?i)\bwhoever (wants|needs|does|has to)\b": "if you want",
    r"\b(whereby|thereof|hereby|wherein|therein|aforesaid)\b": "a sentence of its own",
    r"\bin order to\b": "to",
    r"\b(utili[sz]e|leverage|facilitate)": "use",
    r"\b(obviously|trivially|simply put|needless to say|it is easy to see)\b": "nothing",
    r"\bHow [^.?]*, says \w": "who does what, in this order",
    r"\bthe (former|latter)\b": "its name",
    r"\bit moves as far as it is moved\b": "nudge the output by 0.1 and it moves by 0.1",
}


def test_no_sentence_is_a_riddle(notebook, lecture):
    module = ROOT / f"lectures/lecture_{lecture.stem[:2]}.py"
    texts = {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "markdown"}
    for where, text in (texts | {module.name: module.read_text(encoding="utf-8")}).items():
        for riddle, words in RIDDLES.items():
            found = re.search(riddle, text)
            assert not found, f"{where}: {found[0]!r}; say {words!r}"


def test_cells_are_short(notebook):
    for cell in notebook.cells:
        if cell.id != "set-up":
            limit = 20 if cell.cell_type == "code" else 32
            assert len(cell.source.splitlines()) <= limit, cell.id


def test_predictions_are_asked_for_right_before_a_cell_that_answers(notebook):
    asked = [index for index, cell in enumerate(notebook.cells) if cell.source.startswith("predict(")]
    assert len(asked) >= 3
    for index in asked:
        assert "\n" not in notebook.cells[index].source
        assert notebook.cells[index + 1].cell_type == "code"
        assert not notebook.cells[index + 1].source.startswith("predict(")


def test_it_has_exercises_with_stubs_of_a_stated_size(notebook, editions):
    exercises = editions.exercises(notebook)
    assert len(exercises) >= 3
    for exercise in exercises:
        stub = notebook.cells[exercise.stub].source
        names = re.findall(r"^(?:def|class) (\w+)", stub, re.MULTILINE)
        assert len(re.findall(r"return \.\.\.  # .*\(about \d+ lines?\b", stub)) == len(names)
        checks = "\n".join(f"check({name})" for name in names)
        assert notebook.cells[exercise.check].source == checks, "no answer can be read here"
        number = f"### Exercise {1 + exercises.index(exercise)} · "
        assert number in notebook.cells[exercise.stub - 1].source


def test_every_solution_is_collapsed(notebook, editions):
    for exercise in editions.exercises(notebook):
        lines = notebook.cells[exercise.solution].source.splitlines()
        # The blank lines matter: without them, some viewers show the Markdown inside as it stands.
        assert lines[:4] == ["<details>", "<summary>Solution</summary>", "", "```python"]
        assert lines[-2:] == ["", "</details>"]


def test_the_first_exercise_comes_early(notebook, editions):
    after_set_up = next(index for index, cell in enumerate(notebook.cells) if cell.id == "imports")
    assert editions.exercises(notebook)[0].stub - after_set_up <= 8


def test_it_ends_with_three_lines_three_questions_and_the_way_on(notebook):
    last = notebook.cells[-2].source
    assert last.startswith("## In three lines\n\n1. ")
    lines, _, rest = last.partition("**Can you say it?**")
    questions, _, way_on = rest.partition("**Next:**")
    assert re.findall(r"^(\d)\. ", lines, re.MULTILINE) == ["1", "2", "3"]
    assert len(re.findall(r"<details><summary>[^<]+\?</summary>\n\n", questions)) == 3
    assert "](https://" in way_on, "the way on is a link that works in Colab, too"


def test_below_that_it_can_be_handed_in(notebook, lecture, editions):
    last = notebook.cells[-1]
    assert last.metadata["tags"] == ["marks"]
    first, *_, call = last.source.splitlines()
    assert (first, call) == (f"from lectures.lecture_{lecture.stem[:2]} import grade", 'grade("your name")')
    checks = [notebook.cells[exercise.check].source for exercise in editions.exercises(notebook)]
    names = re.findall(r"check\((\w+)\)", "\n".join(checks))
    for cell in notebook.cells:
        if cell.cell_type == "code":  # `grade` finds the answers by their names
            assert not re.search(rf"(?m)^({'|'.join(names)})\b(, \w+)* = ", cell.source), cell.id


def test_every_link_to_a_file_leads_to_one(notebook, lecture):
    for cell in notebook.cells:
        text = cell.source if cell.cell_type == "markdown" else ""
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
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


def test_the_marker_of_the_set_up_cell_is_the_folder_of_the_lectures(set_up_cell):
    """The cell knows the course's package by this folder; nothing else called needle has it."""
    assert set_up_cell.count('"lectures/checking"') == 2
    assert checking.__name__ == "lectures.checking"
    assert checking.__file__.endswith("/lectures/checking/__init__.py")


def test_the_set_up_cell_is_folded_to_its_title(notebook):
    cell = next(cell for cell in notebook.cells if cell.id == "set-up")
    assert cell.source.startswith("# @title ")  # Colab
    assert cell.metadata["cellView"] == "form"
    assert cell.metadata["jupyter"] == {"source_hidden": True}  # JupyterLab and VS Code


def test_it_has_one_picture_for_the_table_of_contents(notebook):
    shown = [cell for cell in notebook.cells if "picture" in cell.metadata.get("tags", [])]
    assert [cell.cell_type for cell in shown] == ["code"]
    assert len(shown[0].metadata["alt"].split()) >= 12, "it says what the picture shows"


def test_the_table_of_contents_says_what_the_lectures_say():
    """``make contents`` writes it anew."""
    contents = script("make_contents")
    lectures = [contents.read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    assert (ROOT / "notebooks/README.md").read_text(encoding="utf-8") == contents.contents(lectures)
    for lecture in lectures:
        assert list((ROOT / "docs/pictures").glob(f"lecture_{lecture.number}.*")), lecture.number


def test_the_guide_for_lecturers_names_each_exercise_and_its_minutes(notebook, lecture):
    guide = (ROOT / "notebooks/LECTURERS.md").read_text(encoding="utf-8")
    (row,) = [line for line in guide.splitlines() if f"]({lecture.name})" in line]
    text = "\n".join(cell.source for cell in notebook.cells)
    minutes = re.search(r"About (\d+) minutes", text)[1]
    assert f"| {minutes} |" in row
    names = re.findall(r"(?m)^### Exercise \d+ · (.+?)(?: \(a stretch\))?$", text)
    places = [row.find(f"*{name}") for name in names]
    assert -1 not in places
    assert places == sorted(places)
