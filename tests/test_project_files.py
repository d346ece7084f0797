"""The files that hosts and editors look for start what `make` and `.ci/run` do, and say nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_notebook, new_output

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_workflow_only_starts_ci_run_and_begins_with_the_oldest_python() -> None:
    (job,) = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert f">={job['strategy']['matrix']['python'][0]}" == PROJECT["requires-python"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with our hooks, the tools of this Python, and nothing in it."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for name in (".pre-commit-config.yaml", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


def hooks(checkout: Path) -> subprocess.CompletedProcess[str]:
    subprocess.run(["git", "add", "*.py", "*.ipynb", ".pre-commit-config.yaml"], cwd=checkout, check=True)
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--all-files"],
        cwd=checkout,
        env=os.environ | {"PRE_COMMIT_HOME": str(checkout / "cache")},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_hooks_mend_code_and_strip_notebooks(checkout: Path) -> None:
    cell = new_code_cell("1+1", id="sum", execution_count=3)
    cell.outputs = [new_output("execute_result", {"text/plain": "2"}, execution_count=3)]
    lecture = checkout / "notebooks" / "00_sum.ipynb"
    lecture.parent.mkdir()
    nbformat.write(new_notebook(cells=[cell]), lecture)
    (checkout / "module.py").write_text('"""A module."""\nimport os\nx = [1,2]\n')

    first = hooks(checkout)
    assert first.returncode == 1, first.stdout
    assert (checkout / "module.py").read_text() == '"""A module."""\n\nx = [1, 2]\n'
    (stripped,) = nbformat.read(lecture, as_version=4).cells
    assert (stripped.source, stripped.outputs, stripped.execution_count) == ("1 + 1", [], None)
    again = hooks(checkout)
    assert again.returncode == 0, again.stdout


def test_the_citation_says_what_pyproject_says() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {author["name"] for author in citation["authors"]} == {a["name"] for a in PROJECT["authors"]}
    assert citation["abstract"] == PROJECT["description"]
    assert citation["keywords"] == PROJECT["keywords"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]


def test_the_changelog_keeps_to_its_headings() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert releases[0] == "Unreleased"
    kinds = re.findall(r"^### (.+)$", text, flags=re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_dev_container_sets_up_as_everyone_does() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    target = container["postCreateCommand"].removeprefix("make ")
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
