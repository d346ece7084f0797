"""What README.md and CONTRIBUTING.md show runs and prints what they say; their links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXTS = {name: (ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")}
PAGES = ("README.md", "CONTRIBUTING.md", "playground/README.md", "docs/numba.md", "docs/workers.md")

# A python block, and the text block with its output where one follows.
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", flags=re.DOTALL)
LINK = re.compile(r"(?:\]\(|src=\")([^)\"#]+)")
PATH = re.compile(r"`((?:needle|viz|playground|notebooks|tests|scripts|\.ci)/[\w./]+|\w+\.(?:toml|txt|yml))`")


@pytest.mark.parametrize("name", TEXTS)
def test_examples_print_what_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = EXAMPLE.findall(TEXTS[name])
    assert len(examples) == {"README.md": 4, "CONTRIBUTING.md": 2}[name]
    namespace: dict[str, object] = {"__name__": name}  # one reader, top to bottom
    for code, expected in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), namespace)
        assert printed.getvalue() == expected


@pytest.mark.parametrize(
    ("name", "path"),
    [(name, path) for name in PAGES for path in LINK.findall((ROOT / name).read_text())],
)
def test_links_lead_somewhere(name: str, path: str) -> None:
    assert "://" in path or (ROOT / name).parent.joinpath(path).exists()


@pytest.mark.parametrize(
    ("name", "path"), [(name, path) for name in PAGES for path in PATH.findall((ROOT / name).read_text())]
)
def test_what_is_pointed_to_exists(name: str, path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", TEXTS)
def test_commands_that_are_named_exist(name: str) -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", TEXTS[name], flags=re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert named
    assert named <= targets


@pytest.mark.parametrize("package", ["needle", "viz", "lectures"])
def test_the_reading_order_names_every_file_of_the_package_and_no_other(package: str) -> None:
    text = (ROOT / package / "README.md").read_text()
    named = set(re.findall(r"`(?:\w+/)*(\w+\.py)`", text))
    folders = tuple(re.findall(r"`(\w+/)`", text))  # told of as a whole
    files = {path.relative_to(ROOT / package).as_posix() for path in (ROOT / package).rglob("*.py")}
    alike = "__init__.py", *[f"lecture_{number:02}.py" for number in range(1, 21)]  # told of as a whole
    names = {path.rpartition("/")[2] for path in files if not path.startswith(folders)} - {*alike}
    assert names - named == set(), "not in the reading order"
    assert named - {path.rpartition("/")[2] for path in files} == set(), "there is no such file"
