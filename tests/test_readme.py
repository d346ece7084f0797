"""The README's example runs and prints what it says; what it links to exists."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()

# A python block, and the text block with its output where one follows.
EXAMPLES = re.findall(r"```python\n(.*?)```\n(?:\n*```text\n(.*?)```)?", README, flags=re.DOTALL)
LINKS = re.findall(r"(?:\]\(|src=\")([^)\"#]+)", README)


def test_the_example_prints_what_the_readme_says() -> None:
    assert len(EXAMPLES) >= 2
    namespace: dict[str, object] = {}  # one reader, top to bottom
    for code, expected in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), namespace)
        assert printed.getvalue() == expected


@pytest.mark.parametrize("link", [link for link in LINKS if "://" not in link])
def test_a_link_into_the_repository_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_readme_names_only_commands_that_exist() -> None:
    named = set(re.findall(r"^(?:\$ )?make ([a-z-]+)", README, flags=re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert {"app", "test"} <= named <= targets
