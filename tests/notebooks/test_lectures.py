"""Every lecture runs, with its exercises untried, solved, and answered wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import NamedTuple

import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from .claims import SHOWN, TRUE

# By lecture and exercise (the id of its stub), answers that somebody might well give.
WRONG_ANSWERS = {
    "05_computational_graph": {
        "swish": [
            "def from_the_table(n1, n2):\n    return n2 / (ndl.exp(-(n1 * n2)) + 1)",
            "def from_the_table(n1, n2):\n    return n1 / (ndl.exp(n1 * n2) + 1)",
            "def from_the_table(n1, n2):\n    return n1 / ndl.exp(-(n1 * n2)) + 1",
            "def from_the_table(n1, n2):\n    n1 / (ndl.exp(-(n1 * n2)) + 1)",
            "def from_the_table(n1, n2):\n    return (n1 / (ndl.exp(-(n1 * n2)) + 1)).numpy()",
        ],
        "leaves": [
            "def leaves(output):\n    return ndl.autograd.find_topo_sort([output])",
            "def leaves(output):\n    return list(output.inputs)",
            "def leaves(output):\n"
            "    return [output] if output.is_leaf() else sum([leaves(i) for i in output.inputs], [])",
            "def leaves(output):\n"
            "    return [n for n in reversed(ndl.autograd.find_topo_sort([output])) if n.is_leaf()]",
        ],
        "rerun": [
            "def rerun(output, leaf, value):\n    return output",
            "def rerun(output, leaf, value):\n    return output.op(*[value for _ in output.inputs])",
            "def rerun(output, leaf, value):\n"
            "    new = {leaf: value}\n"
            "    for node in ndl.autograd.find_topo_sort([output]):\n"
            "        if not node.is_leaf():\n"
            "            new[node] = node.op(*node.inputs)\n"
            "    return new[output]",
        ],
        "square": [
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a + a",
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        a * a",
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a",
        ],
    },
    "07_reverse_mode": {
        "by-hand": [
            "def adjoints_by_hand(a, b):\n    return [1.0, 1.0, a, b]",
            "def adjoints_by_hand(a, b):\n    return [1.0, 1.0, b, a + 1.0]",
            "def adjoints_by_hand(a, b):\n    return [b + 1.0, a, 1.0, 1.0]",
            "def adjoints_by_hand(a, b):\n    return b + 1.0",
        ],
        "reverse-order": [
            "def reverse_order(output):\n    return ndl.autograd.find_topo_sort([output])",
            "def reverse_order(output):\n"
            "    return [output] + [n for i in output.inputs for n in reverse_order(i)]",
            "def reverse_order(output):\n"
            "    order = [output]\n"
            "    for node in order:\n"
            "        order += [i for i in dict.fromkeys(node.inputs) if i not in order]\n"
            "    return order",
        ],
        "reverse": [
            "def derivative(output, leaf):\n"
            "    arrived = {output: ndl.ones_like(output)}\n"
            "    for node in reversed(ndl.autograd.find_topo_sort([output])):\n"
            "        if not node.is_leaf():\n"
            "            partials = node.op.gradient_as_tuple(arrived[node], node)\n"
            "            arrived |= dict(zip(node.inputs, partials))\n"
            "    return arrived[leaf]",
            "def derivative(output, leaf):\n"
            "    return output.op.gradient_as_tuple(ndl.ones_like(output), output)[-1]",
            "def derivative(output, leaf):\n    return ndl.ones_like(output)",
        ],
        "second": [
            "def second_derivative(f, x):\n    return ndl.gradients(f(x), [x])[0]",
            "def second_derivative(f, x):\n    slope = ndl.gradients(f(x), [x])[0]\n    return slope * slope",
            "def second_derivative(f, x):\n    return ndl.gradients(ndl.gradients(f(x), [x])[0], [x])",
        ],
    },
}

# Answers that raise in the reader's own code.
BROKEN_ANSWERS = {
    "05_computational_graph": {
        "rerun": ["def rerun(output, leaf, value):\n    return output.op(value)"],
        "square": [
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a.square()"
        ],
    },
    "07_reverse_mode": {
        "reverse": ["def derivative(output, leaf):\n    return output.op.gradient_as_tuple(1, output)[leaf]"],
        "second": ["def second_derivative(f, x):\n    return ndl.gradients(f(x).detach(), [x])[0]"],
    },
}


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
        shown += output.get("text", "") + "\n".join(
            [*output.get("data", {}).values(), *output.get("traceback", [])]
        )
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


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


def test_an_untried_exercise_says_so(untried, editions):
    for exercise in editions.exercises(untried.notebook):
        assert "not tried yet" in text_of(untried.notebook.cells[exercise.check])


def test_every_solution_passes_its_check(solved, notebook, editions):
    for exercise in editions.exercises(notebook):
        assert re.search(r": right, (\d) of \1 cases\.\n$", text_of(solved.notebook.cells[exercise.check]))


def test_two_runs_show_the_same_and_depend_on_no_exercise(untried, solved, editions):
    """One run has the exercises untried and the other solved: only their checks may say something else."""
    checks = {exercise.check for exercise in editions.exercises(untried.notebook)}
    for index, (one, other) in enumerate(zip(untried.notebook.cells, solved.notebook.cells, strict=True)):
        if index not in checks:
            assert text_of(one) == text_of(other), one.id


def test_nothing_shown_belongs_to_one_machine_or_one_run(solved):
    for cell in solved.notebook.cells:
        assert not re.search(r"0x[0-9a-f]{6}|site-packages|/home/|/tmp/|Warning", text_of(cell)), cell.id


def test_every_claim_quotes_its_lecture(lecture, notebook):
    sources = {cell.id: cell.source for cell in notebook.cells}
    claims = [claim[:2] for claims in (SHOWN, TRUE) for claim in claims[lecture.stem]]
    assert [(cell, words) for cell, words in claims if words not in sources.get(cell, "")] == []


def test_what_its_prose_claims_is_what_its_cells_show(lecture, untried):
    cells = {cell.id: cell for cell in untried.notebook.cells}
    for prose, words, cell, shown in SHOWN[lecture.stem]:
        assert shown_as_text(cells[cell]) == shown, f"{prose}: {words}"


def test_what_its_prose_claims_is_true(lecture, solved):
    expressions = [expression for _, _, expression in TRUE[lecture.stem]]
    cell = new_code_cell("import re, sys\n" + "\n".join(f"print(bool({x}))" for x in expressions))
    first = solved.notebook.cells[0]
    solved.client.execute_cell(cell, 0)
    solved.notebook.cells[0] = first  # the client put the executed cell in its place
    answers = text_of(cell).split("\n")
    assert [x for x, answer in zip(expressions, answers, strict=False) if answer != "True"] == [], answers


@pytest.mark.slow
def test_solved_runs_repeat_to_the_letter(solved, notebook, kernel, editions):
    with kernel(editions.solved(notebook)) as client:
        again = executed(client)
    assert [text_of(cell) for cell in again.notebook.cells] == [
        text_of(cell) for cell in solved.notebook.cells
    ]


@pytest.fixture(scope="module")
def try_answer(solved, notebook, lecture, editions):
    """Put an answer in the place of an exercise's stub, run both cells, and return the error of the check."""
    checks = {
        notebook.cells[exercise.stub].id: notebook.cells[exercise.check].source
        for exercise in editions.exercises(notebook)
    }

    def attempt(stub: str, answer: str) -> tuple[NotebookNode, str]:
        cells = [new_code_cell(answer), new_code_cell(checks[stub])]
        for cell in cells:
            solved.client.execute_cell(cell, 0)
        assert cells[0].outputs == []
        found = [output for output in cells[1].outputs if output.output_type == "error"]
        assert len(found) == 1, f"the check let this pass:\n{answer}"
        return found[0], text_of(cells[1])

    return attempt


def test_every_exercise_has_wrong_answers(lecture, notebook, editions):
    stubs = {notebook.cells[exercise.stub].id for exercise in editions.exercises(notebook)}
    assert set(WRONG_ANSWERS[lecture.stem]) == stubs
    assert all(len(set(wrong)) >= 2 for wrong in WRONG_ANSWERS[lecture.stem].values())


def test_a_wrong_answer_fails_and_teaches(lecture, try_answer):
    for stub, wrong in WRONG_ANSWERS[lecture.stem].items():
        for answer in wrong:
            error, shown = try_answer(stub, answer)
            assert error.ename == "WrongAnswer", f"{answer}\n{shown}"
            for part in [
                r"(?m)^[\w.]+\(.+\) is not right yet \(case \d of \d\)",
                "expected: ",
                "got: ",
                "so: ",
            ]:
                assert re.search(part, shown), f"{answer}\n{shown}"
            assert "Traceback" not in shown


def test_an_answer_that_raises_says_for_which_input(lecture, try_answer):
    for stub, broken in BROKEN_ANSWERS[lecture.stem].items():
        for answer in broken:
            error, shown = try_answer(stub, answer)
            assert error.ename != "WrongAnswer"
            assert answer.splitlines()[-1].strip() in shown, "the reader's own line must be in the traceback"
            assert re.match(r"[\w.]+\(.+\) raised an exception \(case \d of \d\)\.\n", shown), shown
            assert "  expected: " in shown
