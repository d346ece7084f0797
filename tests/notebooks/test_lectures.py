"""Every lecture runs, with its exercises untried and solved, and shows a wrong answer as a message."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from typing import NamedTuple

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from lectures.checking.exercise import Edited, source_of

from ..jupyterlite import JupyterLite
from .conftest import ROOT
from .differences import MAY_DIFFER, differences


class Run(NamedTuple):
    """A notebook that was run from top to bottom, and the kernel it ran on, still there."""

    notebook: NotebookNode
    client: NotebookClient


def executed(client: NotebookClient) -> Run:
    for index, cell in enumerate(client.nb.cells):
        client.execute_cell(cell, index)
    return Run(client.nb, client)


@pytest.fixture(scope="module")
def untried(notebook, kernel) -> Iterator[Run]:
    with kernel(deepcopy(notebook)) as client:
        yield executed(client)


@pytest.fixture(scope="module")
def solved(notebook, kernel, editions) -> Iterator[Run]:
    with kernel(editions.solved(notebook)) as client:
        yield executed(client)


def text_of(cell: NotebookNode) -> str:
    """All that a cell printed or showed, drawings included, without colours."""
    shown = ""
    for output in cell.get("outputs", []):  # what a cell prints may come in several pieces
        # Data that is no text belongs to a widget: its id.
        texts = [data for data in output.get("data", {}).values() if isinstance(data, str)]
        shown += output.get("text", "") + "\n".join(texts + [*output.get("traceback", [])])
    shown = re.sub(r' data-needle-drag="[^"]*"', "", shown)  # as many frames as there was time for
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


CODE = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
WORDS = re.compile(r"""\balt=["']([^"']*)|>\s*([^<>]*[^<>\s])""")  # those of a picture, and those on a page


def seen(cell: NotebookNode) -> str:
    """All words that a cell shows, also those in drawings and widgets, and those that tell of a picture."""
    lines = []
    for output in cell.outputs:
        data = output.get("data", {})
        page = data.get("text/html", data.get("image/svg+xml"))
        if page:
            lines.append("\n".join(map("".join, WORDS.findall(CODE.sub("", page)))) + "\n")
        else:
            lines.append(output.get("text", "") + data.get("text/plain", "") + output.get("evalue", ""))
    return re.sub(r"[^\n]*\r(?!\n)", "", "".join(lines))  # a bar of progress writes its line anew


def shown_as_text(cell: NotebookNode) -> str:
    """What a cell printed, then the value of its last line, as text."""
    parts = [output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(parts)


def errors(run: Run) -> list[str]:
    return [
        f"{cell.id}: {output.ename}: {output.evalue}"
        for cell in run.notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]


def test_it_runs_with_its_exercises_untried(untried):
    assert errors(untried) == []


def test_it_runs_with_its_exercises_solved(solved):
    assert errors(solved) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", ["03", "07", "16"])
def test_lectures_on_numpys_own_arrays(number, kernel, monkeypatch):
    """These ask for no device, so they run under ``NEEDLE_BACKEND=np``, too."""
    monkeypatch.setenv("NEEDLE_BACKEND", "np")
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    with kernel(nbformat.read(path, as_version=4)) as client:
        assert errors(executed(client)) == []


def test_an_untried_exercise_says_so(untried, editions):
    for exercise in editions.exercises(untried.notebook):
        assert "not tried yet" in text_of(untried.notebook.cells[exercise.check])


def test_every_solution_passes_its_check(solved, lecture, notebook, editions):
    """These are the solutions of the lecture's module: its own tests prove that."""
    exercises = import_module(f"lectures.lecture_{lecture.stem[:2]}").lecture.exercises
    for exercise in editions.exercises(notebook):
        lines = text_of(solved.notebook.cells[exercise.check]).splitlines()
        assert len(lines) == notebook.cells[exercise.check].source.count("check(")
        for line in lines:
            right = re.search(r"(\w+): right, (\d+) of \2 cases\.$", line)
            assert right, lines
            assert int(right[2]) >= len(exercises[right[1]].cases)


STANDS_IN = re.compile(
    r"(?m)^[\w, ]+ (has|have) not passed (its check|their checks) yet, "
    r"so the lecture's own stands? in for (it|them)\.\n"
)
OWN = re.compile(r"(?m) \(the lecture's own\)$")  # stands where a right answer has "(yours)"
MEASURED = re.compile(r" *[\d,.]+ (µs|GB/s)\b,?| +(?=here|–)")  # on a GPU, and the spaces between columns


def as_if_solved(shown: str) -> str:
    """What was shown, without the words that say whose answer was used."""
    return OWN.sub(" (yours)", STANDS_IN.sub("", shown))


def test_two_runs_show_the_same_and_depend_on_no_exercise(untried, solved, editions):
    """One run has the exercises untried and the other solved: only their checks may say something else."""
    checks = {exercise.check for exercise in editions.exercises(untried.notebook)}
    for index, (one, other) in enumerate(zip(untried.notebook.cells, solved.notebook.cells, strict=True)):
        if index not in checks:
            shown = [MEASURED.sub("", as_if_solved(text_of(cell))) for cell in (one, other)]
            assert shown[0] == shown[1], one.id


def test_nothing_shown_belongs_to_one_machine_or_one_run(solved):
    traces = r"(?<![\w+/])0x[0-9a-f]{6}|site-packages|/home/|/tmp/|Warning"
    for cell in solved.notebook.cells:
        assert not re.search(traces, text_of(cell)), cell.id


def test_every_claim_quotes_its_lecture(beside, notebook):
    sources = {cell.id: cell.source for cell in notebook.cells}
    claims = [claim[:2] for claim in [*beside.SHOWN, *beside.TRUE]]
    assert [(cell, words) for cell, words in claims if words not in sources.get(cell, "")] == []


def test_what_its_prose_claims_is_what_its_cells_show(beside, untried):
    cells = {cell.id: cell for cell in untried.notebook.cells}
    for prose, words, cell, shown in beside.SHOWN:
        assert as_if_solved(shown_as_text(cells[cell])) == shown, f"{prose}: {words}"


def test_what_its_prose_claims_is_true(beside, solved):
    expressions = [expression for _, _, expression in beside.TRUE]
    cell = new_code_cell("import re, sys\n" + "\n".join(f"print(bool({x}))" for x in expressions))
    first = solved.notebook.cells[0]
    solved.client.execute_cell(cell, 0)
    solved.notebook.cells[0] = first  # the client put the executed cell in its place
    answers = text_of(cell).split("\n")
    assert [x for x, answer in zip(expressions, answers, strict=False) if answer != "True"] == [], answers


def test_a_wrong_answer_is_shown_as_a_message(lecture, untried):
    """Once on the kernel, as the reader sees it; the modules' own tests go through all mistakes."""
    exercises = import_module(f"lectures.lecture_{lecture.stem[:2]}").lecture.exercises
    name, exercise = next(iter(exercises.items()))
    sentence, made = exercise.mistakes[0]
    source = made.source if isinstance(made, Edited) else source_of(made())
    source += f"\n{name} = {made().__name__}\n{name}.__name__ = {name!r}"
    cells = [new_code_cell(source), new_code_cell(f"check({name})")]
    first = untried.notebook.cells[0]
    for cell in cells:
        untried.client.execute_cell(cell, 0)
    untried.notebook.cells[0] = first  # the client put the executed cell in its place
    (error,) = cells[1].outputs
    assert error.ename == "WrongAnswer"
    shown = text_of(cells[1])
    assert re.match(r".*(is not right yet|stopped with an exception) \(", shown), shown
    assert shown.endswith(f"hint:     {sentence}")
    assert "Traceback" not in shown


#: What a cell shows that a reader would not want to see, by cell.
TROUBLE = """() => [...document.querySelectorAll(".jp-Cell")].flatMap((cell) => {
    const seen = []
    if (cell.querySelector("[data-mime-type='application/vnd.jupyter.error']")) seen.push("an error")
    for (const image of cell.querySelectorAll(".jp-OutputArea img")) {
        if (!image.naturalWidth) seen.push("a picture that is not there")
        else if (!image.alt || image.alt === "graph") seen.push("a picture without words")
    }
    const area = cell.querySelector(".jp-OutputArea-output")
    if (area && area.scrollWidth > area.clientWidth + 1) seen.push(`it is ${area.scrollWidth} px wide`)
    return seen.map((what) => `${cell.querySelector("pre, p")?.textContent.slice(0, 60)}: ${what}`)
})"""


ALL_ARE_LOADED = """() => [...document.querySelectorAll(".jp-OutputArea img")]
    .every((image) => image.complete)"""


@pytest.mark.slow
def test_nothing_is_cut_off_in_jupyterlab(untried, open_notebook):
    """What was shown is opened again on a phone, which is then turned into a desktop."""
    cells = [cell for cell in untried.notebook.cells if cell.id != "badge"]  # which comes from Colab
    page = open_notebook(
        *cells, run=False, viewport={"width": 390, "height": 30_000}, reduced_motion="reduce"
    )
    all_drawn = f"document.querySelectorAll('.jp-Cell').length === {len(cells)}"
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 30_000})
        page.wait_for_function(all_drawn)  # JupyterLab draws what is in sight, and here that is everything
        page.wait_for_timeout(1000)  # the last pictures
        page.wait_for_function(ALL_ARE_LOADED)
        assert page.evaluate(TROUBLE) == []


#: What the set-up cell says there, and nowhere else.
IN_BROWSER = "This page computes in your browser, with NumPy: no Numba, no threads."
WIDGET = ".jp-OutputArea-output:not(.jp-RenderedHTML) :is(.needle-drag .sheet > :not(style), .needle-pad svg)"


@pytest.fixture(scope="module")
def in_jupyterlite(lecture, editions, context, site) -> Iterator[tuple[NotebookNode, JupyterLite]]:
    """The lecture that was run from top to bottom in a browser, with its exercises solved."""
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    lite = JupyterLite(page, site)
    lite.keep(lecture.name, editions.solved(lite.read(lecture.name)))
    lite.open(lecture.name)
    yield lite.run_all(), lite
    page.close()
    assert troubles == []


@pytest.mark.browser
@pytest.mark.slow
def test_in_jupyterlite_it_shows_the_same(solved, in_jupyterlite, lecture, editions):
    """A cell that differs is listed with the reason, and none that does not."""
    number = lecture.stem[:2]
    written = tomllib.loads((ROOT / "lectures" / f"lecture_{number}.toml").read_text("utf-8"))
    edits = {cell: edit[0] for cell, edit in written.get("without_numba", {}).items()}
    says_first = {"set-up": IN_BROWSER, **edits}
    differing = []
    for here, there in zip(solved.notebook.cells, in_jupyterlite[0].cells, strict=True):
        if there.cell_type == "code":
            assert there.execution_count, there.id
            said = f"{says_first[here.id]}\n" if here.id in says_first else ""
            assert seen(there).startswith(said), there.id
            if seen(there) != said + seen(here):
                differing.append(here.id)
            failed = [cell for cell in (here, there) if any("ename" in x for x in cell.outputs)]
            assert len(failed) != 1, failed
    expected = [cell.id for cell in solved.notebook.cells if cell.id in differences(number)]
    measured = MAY_DIFFER.get(number, [])
    assert [cell for cell in differing if cell not in measured] == expected


@pytest.mark.browser
@pytest.mark.slow
def test_in_jupyterlite_its_drawings_and_widgets_are_there(in_jupyterlite):
    run, lite = in_jupyterlite
    cells = lite.all_cells()
    for index, cell in enumerate(run.cells):
        data = [output.get("data", {}) for output in cell.get("outputs", [])]
        widgets = sum("application/vnd.jupyter.widget-view+json" in x for x in data)
        drawings = sum("<svg" in x.get("text/html", "") for x in data)
        for asked, shown in (
            (widgets, WIDGET),
            (drawings and not widgets, "svg .node"),
            (any("image/png" in x for x in data), "img"),
        ):
            if asked:
                expect(cells.nth(index).locator(f".jp-OutputArea {shown}").first).to_be_visible()
