"""The repository's address stands in one place, and one command changes it everywhere."""

from __future__ import annotations

import re
import shutil
import subprocess

import nbformat
import pytest

from .conftest import ROOT, script


@pytest.fixture(scope="module")
def address():
    """The module scripts/address.py."""
    return script("address")


def tracked(pattern: str) -> set[str]:
    """The files under version control whose text has `pattern` in it."""
    found = subprocess.run(["git", "grep", "-lF", pattern], cwd=ROOT, capture_output=True, text=True)
    return set(found.stdout.splitlines())


def test_the_command_reaches_every_file_that_names_the_repository(address, tmp_path):
    holders = tracked(address.address())
    for name in holders:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changed = address.write("ada/loops", tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in changed} == holders
    for path in changed:
        text = path.read_text(encoding="utf-8")
        assert address.address() not in text
        assert "placeholder" not in text
        assert "ada/loops" in text
        if path.suffix == ".ipynb":
            nbformat.validate(nbformat.reads(text, as_version=4))
    assert address.address(tmp_path) == "ada/loops"
    assert address.write(address.address(), tmp_path) == changed, "and back again"
    for path in changed:
        before = (ROOT / path.relative_to(tmp_path)).read_text(encoding="utf-8")
        assert path.read_text(encoding="utf-8") == re.sub(address.PLACEHOLDER, "", before)


@pytest.mark.parametrize(
    "wrong", ["", "ada", "https://github.com/ada/loops", "ada/loops/x", "a da/loops", "../x"]
)
def test_what_is_no_address_is_refused(address, tmp_path, wrong):
    with pytest.raises(ValueError, match="should be owner/name"):
        address.write(wrong, tmp_path)
