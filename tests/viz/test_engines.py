"""Graphviz in a browser, with a stand-in for the browser's: who is asked, and what is said."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace

import pytest

import viz
from viz import engines


@pytest.fixture
def in_browser(monkeypatch):
    """A function that lets this, called with a DOT text, take the place of @viz-js/viz."""
    monkeypatch.setattr(engines, "_viz_js", None)

    def use(answer) -> list:
        asked = []

        def render(source, **options):
            asked.append(options)
            return answer(source)

        async def instance():
            return SimpleNamespace(render=render)

        asyncio.run(viz.in_browser(SimpleNamespace(instance=instance)))
        return asked

    return use


def by_pygraphviz(source: str) -> SimpleNamespace:
    """What @viz-js/viz gives, from the Graphviz of this machine."""
    return SimpleNamespace(status="success", output=engines._with_pygraphviz("svg", [source])[0].decode())


def test_a_browsers_graphviz_draws_the_same(example, in_browser, monkeypatch) -> None:
    monkeypatch.setattr(
        engines, "_hung", {os.environ["PATH"]}
    )  # so that pygraphviz draws, as for `by_pygraphviz`
    drawn = [viz.draw_gradient(example.v4, names=vars(example)).html(), viz.steps(example.v4).html()]
    asked = in_browser(by_pygraphviz)
    assert [viz.draw_gradient(example.v4, names=vars(example)).html(), viz.steps(example.v4).html()] == drawn
    assert asked == [{"engine": "nop2", "format": "svg"}] * len(asked) != []


def test_a_browser_without_it_is_told_how_to_get_it(example, monkeypatch) -> None:
    monkeypatch.setattr(engines.sys, "platform", "emscripten")
    with pytest.raises(viz.CannotRender, match=r"not here yet: `await viz\.in_browser\(address\)`"):
        viz.draw(example.v4).svg()


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_a_browser_writes_no_other_file(kind, example, in_browser, tmp_path) -> None:
    in_browser(by_pygraphviz)
    with pytest.raises(viz.CannotRender, match=rf"cannot write a graph as \.{kind}: save it as \.svg or"):
        viz.draw(example.v4).save(tmp_path / f"graph.{kind}")
    assert viz.draw(example.v4).save(tmp_path / "graph.html").exists()


def test_a_failure_in_a_browser_is_told(example, in_browser) -> None:
    in_browser(lambda source: SimpleNamespace(status="failure", errors=[SimpleNamespace(message="no room")]))
    with pytest.raises(viz.CannotRender, match="Graphviz could not draw this graph: no room"):
        viz.draw(example.v4).svg()

    def stops(source):
        raise MemoryError("out of bounds")

    in_browser(stops)
    with pytest.raises(viz.CannotRender, match="Graphviz could not draw this graph: out of bounds"):
        viz.draw(example.v4).svg()
