"""Pictures of compiled functions: the groups and their lines, and the loops before and after fusion."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from base64 import b64decode

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn

from ..training import compiled_step


def layer_of(rows: int = 10, inputs: int = 2, units: int = 8):
    W, b = ndl.Tensor(np.ones((inputs, units))), ndl.Tensor(np.zeros((1, units)))

    @ndl.jit
    def layer(x):
        return ndl.relu(x @ W + b)

    layer.program_for(ndl.Tensor(np.ones((rows, inputs))))
    return layer


def units(picture) -> dict:
    return {unit.key: unit for unit in picture.data.units}


def lines_of(picture, word: str) -> list:
    return [line for line in picture.data.listings[-1].lines if word in line.text]


def test_the_example_is_one_group_of_three_operators() -> None:
    picture = viz.draw(layer_of())
    assert picture.title == "layer, compiled: 3 operators in 1 group (1: loop of 10)"
    assert [(x.kind, x.words, x.facts) for x in picture.data.units if x.group] == [
        ("operator", "@", "matmul1: 8 of 80 numbers"),
        ("operator", "+", "add1: a variable"),
        ("operator", "relu", "relu1: a variable"),
        ("result", "result", "(10, 8)"),
    ]
    assert {x.words: x.facts for x in picture.data.units if not x.group} == {
        "x": "(10, 2)", "W": "(2, 8)", "b": "(1, 8)"
    }  # fmt: skip
    found = units(picture)
    (add,) = [x for x in found.values() if x.words == "+"]
    assert [found[x].words for x in add.operands] == ["@", "b"]


def test_each_statement_knows_its_operator_and_its_group() -> None:
    picture = viz.draw(layer_of())
    found = units(picture)
    (line,) = lines_of(picture, "relu1 = ")
    assert [found[key].words for key in line.units] == ["relu"]
    assert line.label == "1"
    assert [line.label for line in lines_of(picture, "def ")] == [""]
    assert "\n".join(line.text for line in picture.data.listings[0].lines) == layer_of().source.rstrip("\n")


def test_units_come_after_their_operands_and_lines_have_units() -> None:
    for compiled in (layer_of(), compiled_step()):
        picture = viz.draw(compiled)
        seen: set[str] = set()
        for unit in picture.data.units:
            assert seen.issuperset(unit.operands), unit
            seen.add(unit.key)
        named = {key for line in picture.data.listings[0].lines for key in line.units}
        assert named <= seen
        assert {x.key for x in picture.data.units if x.kind == "operator"} <= named


def test_a_step_of_training() -> None:
    picture = viz.draw(compiled_step())
    kinds = {unit.kind for unit in picture.data.units}
    assert {"operator", "check", "input", "state", "result"} <= kinds
    updated = [x.words for x in picture.data.units if x.kind == "state" and x.group]
    assert sorted(updated) == ["bias_0", "bias_2", "weight_0", "weight_2"]
    assert any(x.words == "× lr" for x in picture.data.units)
    assert {"Linear", "ReLU", "SoftmaxLoss"} <= {x.module for x in picture.data.units}


def test_what_only_fills_an_array_belongs_to_the_loop_that_goes_on() -> None:
    picture = viz.draw(compiled_step())
    for name in ("summation3", "summation4"):
        labels = {line.label for line in lines_of(picture, f"{name}[") if line.units}
        assert len(labels) <= 2  # its sum, and what uses it
        fill, total = [line.label for line in lines_of(picture, f"{name}[")][:2]
        assert fill == total


def test_products_of_blas_calls_and_threads_are_told_apart() -> None:
    picture = viz.draw(layer_of(512, 64, 512))
    assert [x.kind for x in picture.data.units if x.words == "@"] == ["blas"]
    assert [x.title for x in picture.data.groups] == ["1: BLAS", "2: loop of 512, threads share it"]
    f = ndl.jit(lambda x: ndl.argmax(x * 2, 1))
    f.program_for(ndl.Tensor(np.ones((2, 3))))
    picture = viz.draw(f)
    (call,) = [x for x in picture.data.units if x.kind == "call"]
    assert call.words.startswith("argmax")
    assert [units(picture)[key].words for key in call.operands] == ["× 2"]
    assert "own kernel" in picture.source
    assert [line.text for line in lines_of(picture, "kernel")] == ["# ArgMax, by its own kernel"]


def test_the_schedule_before_and_after() -> None:
    picture = viz.draw_schedule(layer_of())
    assert picture.title.startswith("layer, before and after fusion: 3 operators in 1 group (")
    before, after = picture.data.listings
    assert [tuple(x) for x in picture.data.stored] == [
        ("matmul1", "an array (10, 8)", "a row of 8"),
        ("add1", "an array (10, 8)", "a plain variable"),
        ("relu1", "an array (10, 8)", "a plain variable"),
    ]
    assert before.marked == after.marked == ("matmul1", "add1", "relu1")
    assert sum("for i" in line.text for line in before.lines) == 5
    assert sum("for i" in line.text for line in after.lines) == 1
    letters = [{line.letter: line.units for line in x.lines if line.units} for x in (before, after)]
    assert letters[0] == letters[1]
    assert list(letters[0]) == ["a", "b", "c", "d"]
    assert "<u>matmul1</u>[8" in picture.source


def test_what_is_not_compiled_yet_is_said_kindly() -> None:
    @ndl.jit
    def f(x):
        return x

    for draw in (viz.draw, viz.draw_schedule):
        with pytest.raises(ValueError, match=r"f is not compiled yet.* Call it once, as f\(…\), and draw it"):
            draw(f)
    with pytest.raises(TypeError, match=r"draw_schedule: needs a function that ndl.jit returned, got int"):
        viz.draw_schedule(3)


def test_a_function_that_computes_nothing_has_a_picture_too() -> None:
    f = ndl.jit(lambda x: x)
    f.program_for(ndl.Tensor([1.0]))
    assert viz.draw(f).title.startswith("the function, compiled: 0 operators in 0 groups")
    assert viz.explain(f).startswith("the function: there is nothing to compute.")
    for picture in (viz.draw(f), viz.draw_schedule(f)):
        assert "<svg" in picture.svg()


def test_pictures_of_all_styles_are_made_of_the_same_data() -> None:
    layer = layer_of()
    for style in ("needle", "d2l", "print", "dark"):
        picture = viz.draw(layer, style=style)
        colours = set(re.findall(r"#[0-9A-F]{6}", picture.source))
        assert style != "print" or colours == {"#FFFFFF", "#000000"}
        assert picture.source == viz.draw(layer, style=style).source


def test_long_source_stays_usable() -> None:
    model = nn.Sequential(*[part for _ in range(8) for part in (nn.Linear(8, 8), nn.ReLU())])
    f = ndl.jit(lambda x: (model(x) ** 2).sum().backward())
    f.program_for(ndl.Tensor(np.ones((4, 8))))
    picture = viz.draw(f)
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', picture.svg())
    assert float(size[1]) < 6000
    assert float(size[2]) < 6000
    assert len(picture.data.listings[0].lines) > 150


def test_source_keeps_its_indentation_in_the_image() -> None:
    svg = viz.draw(layer_of()).svg()
    (line,) = re.findall(r"<text [^>]*monospace[^>]*>([^<]*)relu1 = relu\(add1\)</text>", svg) or re.findall(
        r"<text [^>]*monospace[^>]*>([^<]*relu1[^<]*relu\(add1\))</text>", svg
    )
    assert line.count("&#160;") >= 12


def test_the_page_holds_the_picture_and_what_the_script_needs() -> None:
    picture = viz.draw(layer_of())
    page = picture.html()
    assert f'alt="{picture.title}"' in page
    packed = re.search(r'data-needle-program="([^"]+)"', page)[1]
    data = json.loads(zlib.decompress(b64decode(packed)))
    assert [group["label"] for group in data["groups"]] == ["1"]
    assert 'data-key="cluster_g1"' in data["graph"]
    assert "light-dark(" in data["groups"][0]["fill"]
    assert set(picture._repr_mimebundle_()) == {"text/html", "image/svg+xml", "text/plain"}
    assert repr(picture) == f"<{picture.title}>"


def test_without_graphviz_there_is_the_source(monkeypatch) -> None:
    def render(*_):
        raise viz.CannotRender("Graphviz is missing.")

    picture = viz.draw(layer_of())
    monkeypatch.setattr("viz.program_picture.render", render)
    (said,) = picture._repr_mimebundle_().values()
    assert said.startswith("Graphviz is missing. Until then, this is the generated source:\n\ndef step(")


def test_an_operator_that_several_loops_share_counts_once() -> None:
    f = ndl.jit(lambda x: x / ndl.logsumexp(x * 2, axes=(0,)).reshape((1, 3)).broadcast_to((4, 3)))
    f.program_for(ndl.Tensor(np.ones((4, 3))))
    count = int(re.search(r"^the function: (\d+) operators", viz.explain(f))[1])
    for picture in (viz.draw(f), viz.draw_schedule(f)):
        assert f": {count} operators in" in picture.title


@pytest.mark.slow
def test_it_is_saved_in_all_formats(tmp_path) -> None:
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!doctype html>"}
    for picture in (viz.draw(layer_of()), viz.draw_schedule(layer_of())):
        for kind, begin in begins.items():
            assert picture.save(tmp_path / f"x.{kind}").read_bytes().startswith(begin)


@pytest.mark.slow
def test_viz_needs_no_compiler_before_it_draws_one() -> None:
    code = "import sys, viz; sys.exit('numba' in sys.modules or 'needle.compiler' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
