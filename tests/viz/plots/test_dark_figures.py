"""Figures as SVG for a page: what is light in them has a dark twin, and the figure itself stays as it was."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from viz.plots.theme import dark_twin


@pytest.fixture
def svg_of():
    """A function that gives the SVG in the HTML of a figure."""

    def svg_of(ax) -> str:
        return base64.b64decode(re.search(r'base64,([^"]*)', ax.figure._repr_html_())[1]).decode()

    yield svg_of
    viz.set_style(None)


def test_the_twin_of_white_is_the_dark_ground_and_hues_remain() -> None:
    assert dark_twin([1, 1, 1]) == pytest.approx(np.array([0x11, 0x16, 0x1F]) / 255)
    assert dark_twin([0, 0, 0]) == pytest.approx(np.array([0xF2, 0xF5, 0xFA]) / 255)
    red, green, blue = dark_twin([0.9, 0.8, 0.8])
    assert 0.4 > red > 1.1 * max(green, blue)


def test_lines_and_words_have_twins(svg_of) -> None:
    svg = svg_of(viz.curve([1.0, 2.0], xlabel="step"))
    ElementTree.fromstring(svg)
    assert "fill: #ffffff; fill: light-dark(#ffffff, #11161F)" in svg
    assert "stroke: #1d5fd1; stroke: light-dark(#1d5fd1, #6FA8FF)" in svg
    assert not re.search(r"(fill|stroke): #\w{6}(?!; \1: light-dark)", svg)


def test_what_is_black_because_nobody_chose_a_colour_has_a_twin(svg_of) -> None:
    (ax,) = viz.panels(1)
    ax.text(0.5, 0.5, "a word")
    figure = ElementTree.fromstring(svg_of(ax)).find("*[@id='figure_1']")
    assert figure.attrib["style"] == "fill: #000000; fill: light-dark(#000000, #f2f5fa)"


def test_cells_are_there_twice_and_the_figure_stays_as_it_was(svg_of) -> None:
    ax = viz.matrix(np.eye(2))
    before = ax.images[0].get_cmap(), ax.figure.get_layout_engine()
    svg = svg_of(ax)
    ElementTree.fromstring(svg)
    assert svg.count('<image class="on-light"') == svg.count('<image class="on-dark"') >= 1
    assert (ax.images[0].get_cmap(), ax.figure.get_layout_engine()) == before


def test_a_session_may_have_one_style(svg_of) -> None:
    ax = viz.matrix(np.eye(2))
    viz.set_style("print")
    light = svg_of(ax)
    viz.set_style("dark")
    dark = svg_of(ax)
    assert "light-dark" not in light + dark
    assert "fill: #ffffff" in light
    assert "fill: #ffffff" not in dark
    assert 'style="color-scheme:dark"' in ax.figure._repr_html_()


def test_words_can_be_text_of_the_page():
    tree = viz.draw(nn.Sequential(nn.Linear(2, 3, device=ndl.cpu_numpy())))
    html = tree.html(as_text=True)
    assert ">Linear</text>" in html
    assert "DejaVu" not in html
    assert f'role="img" aria-label="{tree.title}"' in html
    assert "*{" not in html  # a rule for all elements would be one for the whole page
    assert "<text" not in tree.html()
