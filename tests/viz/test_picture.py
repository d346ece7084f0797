"""All that draws gives back a picture, which shows itself and saves itself in the same way."""

from __future__ import annotations

import re

import pytest

import needle as ndl
import viz
from needle import nn


def failed() -> viz.Picture:
    try:
        nn.Linear(2, 1)(ndl.Tensor([[1.0]]))
    except ValueError as error:
        return viz.draw_error(error)


def pictures(v) -> dict[str, viz.Picture]:
    return {
        "draw": viz.draw(v.v4),
        "draw_gradient": viz.draw_gradient(v.v4),
        "draw_error": failed(),
        "draw of a model": viz.draw(nn.Linear(2, 1)),
        "steps": viz.steps(v.v4),
        "one step": viz.steps(v.v4)[0],
        "step": viz.step(v.v4),
        "memory": viz.memory(v.v4),
        "drag": viz.drag(lambda x: x * x, x=(0, 1), frames=2),
        "a plot": viz.curve([1.0, 2.0], title="growth").get_figure(),
    }


BEGINS = {"svg": b"<", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!doctype html>", "gif": b"GIF"}


def test_each_picture_has_a_title_and_says_how_it_can_be_saved(example, tmp_path) -> None:
    for name, picture in pictures(example).items():
        assert isinstance(picture, viz.Picture), name
        assert picture.title, name
        with pytest.raises(ValueError, match=r"save: cannot write 'x\.txt'; end the name in \.[^;]*html"):
            picture.save(tmp_path / "x.txt")


@pytest.mark.slow
def test_each_picture_saves_itself_in_the_formats_that_it_names(example, tmp_path) -> None:
    for name, picture in pictures(example).items():
        for kind in picture.formats:
            path = picture.save(str(tmp_path / f"{name}.{kind}"))
            assert path.read_bytes().startswith(BEGINS[kind]), (name, kind)
        page = (tmp_path / f"{name}.html").read_text("utf-8")
        assert not re.search(r"(src|href)=.https?://", page), name
        assert picture.html() in picture._repr_html_() or name in ("steps", "step"), name
