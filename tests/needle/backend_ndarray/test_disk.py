"""Machine code on disk: found again, made anew where it is damaged, and not kept where there is no folder."""

from __future__ import annotations

import pytest

from needle.backend_ndarray.disk import folder, kept


@pytest.fixture
def made(monkeypatch, tmp_path):
    """What was made, one entry for each time."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return []


def make(made):
    def function() -> bytes:
        made.append(b"code")
        return b"machine code"

    return function


def test_it_is_made_once_for_each_key(made):
    for key in ("a", "b", "a", "b"):
        assert kept("cuda", key, make(made)) == b"machine code"
    assert len(made) == 2
    assert len(list((folder() / "cuda").iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"half", b"\0" * 44])
def test_a_damaged_file_is_made_anew(made, damage):
    kept("cuda", "a", make(made))
    (file,) = (folder() / "cuda").iterdir()
    file.write_bytes(damage)
    assert kept("cuda", "a", make(made)) == b"machine code"
    assert kept("cuda", "a", make(made)) == b"machine code"
    assert len(made) == 2


def test_without_a_folder_nothing_is_kept(made, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    for _ in range(2):
        assert kept("cuda", "a", make(made)) == b"machine code"
    assert len(made) == 2


def test_what_cannot_be_made_leaves_nothing_behind(made):
    def fails():
        raise ValueError("no compiler")

    with pytest.raises(ValueError, match="no compiler"):
        kept("cuda", "a", fails)
    assert kept("cuda", "a", make(made)) == b"machine code"


def test_the_folder_is_the_users_unless_another_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "needle"
