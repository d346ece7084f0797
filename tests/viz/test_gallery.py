"""The gallery: every picture of the lectures, each in one line, from live objects."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import viz

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_gallery.py"


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_gallery", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_lecture_with_drawings_is_there(gallery) -> None:
    chapters = {chapter[:2] for chapter, _, _ in gallery.PICTURES}
    assert chapters >= {f"{number:02}" for number in range(4, 19)}


def test_a_picture_is_one_line(gallery) -> None:
    for _, _, draw in gallery.PICTURES:
        lines = gallery.lines_of(draw).rstrip().splitlines()
        assert re.match(r" *(return )?viz\.[a-z_]+\(.*\)$", lines[-1]), draw.__name__


def test_every_function_that_draws_is_there(gallery) -> None:
    drawn = {
        name
        for _, _, draw in gallery.PICTURES
        for name in re.findall(r"viz\.(\w+)\(", gallery.lines_of(draw))
    }
    functions = {name for name in viz.__all__ if name[0].islower()}
    # The widget is there as the player that it shares with `steps`; what is live has its last state.
    others = {"step", "live_loss_curve", "trace_kernel", "set_style", "explain", "in_browser"}
    assert functions - drawn == others


@pytest.mark.slow
def test_the_gallery_is_built(gallery, tmp_path) -> None:
    page = tmp_path / "gallery.html"
    assert gallery.build(page) == len(gallery.PICTURES)
    text = page.read_text(encoding="utf-8")
    assert text.count("<figure ") == len(gallery.PICTURES)
    assert not re.search(r"(src|href)=.https?://", text)
