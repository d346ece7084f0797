"""Steps: what each frame says and shows, beside the numbers of backward(), and the files they make."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import needle as ndl
import viz
from needle import nn
from needle.graph import find_topo_sort
from viz.step_data import record_passes


def said(steps):
    return [line for frame in steps.passes.frames for line in frame.said()]


def test_the_lectures_example_says_each_number(example):
    v1, v2, v3, v4 = example.v1, example.v2, example.v3, example.v4
    steps = viz.steps(v4)
    assert said(steps) == [
        "v1 = 0",
        "v2 = exp(v1) = exp(0) = 1",
        "v3 = v2 + 1 = 1 + 1 = 2",
        "v4 = v2 · v3 = 1 · 2 = 2",
        "v̄4 = 1 (the seed)",
        "v̄2 via v4 = v̄4 · v3 = 1 · 2 = 2",
        "v̄3 via v4 = v̄4 · v2 = 1 · 1 = 1",
        "v̄3 = v̄3 via v4 = 1",
        "v̄2 via v3 = v̄3 = 1",
        "v̄2 = v̄2 via v4 + v̄2 via v3 = 2 + 1 = 3",
        "v̄1 via v2 = v̄2 · v2 = 3 · 1 = 3",
        "v̄1 = v̄1 via v2 = 3",
    ]
    assert steps.passes.order == ("v1", "v2", "v3", "v4")
    assert [node.grad for node in (v1, v2, v3, v4)] == [None] * 4


def test_what_comes_later_is_not_there_yet(example):
    v1, v2, v3, v4 = example.v1, example.v2, example.v3, example.v4
    known = record_passes(v4, {v1: "v1", v2: "v2", v3: "v3", v4: "v4"})
    names = {variable.key: variable.name for variable in known.graph.variables}
    appears = {names[key]: known.frames[frame].title for key, frame in known.since.items()}
    assert appears == {
        "v1": "Forward, node 1 of 4: v1",
        "v2": "Forward, node 2 of 4: v2",
        "v3": "Forward, node 3 of 4: v3",
        "v4": "Forward, node 4 of 4: v4",
        "adjoint of v4": "Backward, node 1 of 4: adjoint of v4, the seed",
        "of v2 via v4": "Backward, node 1 of 4: what v4 passes on to v2 and v3",
        "adjoint of v3": "Backward, node 1 of 4: what v4 passes on to v2 and v3",
        "adjoint of v2": "Backward, node 3 of 4: adjoint of v2, sum of 2 partial adjoints",
        "adjoint of v1": "Backward, node 3 of 4: what v2 passes on to v1",
    }
    total = next(frame for frame in known.frames if "sum of 2" in frame.title)
    assert {names[key] for key in total.marked} == {"of v2 via v4", "adjoint of v3"}


def test_an_edge_appears_with_the_later_one_of_its_ends(example):
    v1, v2, v3, v4 = example.v1, example.v2, example.v3, example.v4
    known = record_passes(v4, {v1: "v1", v2: "v2", v3: "v3", v4: "v4"})
    keys = {variable.name: variable.key for variable in known.graph.variables}
    assert known.appears(f"{keys['v2']}->{keys['v3']}_op") == 2
    assert known.appears(f"{keys['v2']}->{keys['v4']}_op") == 3
    assert known.appears(f"{keys['v2']}_for_{keys['v4']}") == 3


def test_each_use_of_a_variable_is_one_partial_adjoint():
    x = ndl.Tensor([3.0])
    y = x * x
    assert said(viz.steps(y))[-3:] == [
        "x̄ via y = ȳ · x = 1 · 3 = 3",
        "x̄ via y = ȳ · x = 1 · 3 = 3",
        "x̄ = x̄ via y + x̄ via y = 3 + 3 = 6",
    ]


@st.composite
def graphs(draw):
    """A Tensor computed from three leaves by a few random operators."""
    nodes = [ndl.Tensor([draw(st.integers(-3, 3)) / 2], dtype="float64") for _ in range(3)]
    for _ in range(draw(st.integers(1, 8))):
        a, b = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        operator = draw(st.sampled_from(["add", "mul", "tanh", "neg", "scalar"]))
        nodes.append(
            {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "tanh": lambda a, b: ndl.tanh(a),
             "neg": lambda a, b: -a, "scalar": lambda a, b: a * 0.5 + 1}[operator](a, b)
        )  # fmt: skip
    return nodes[-1]


def last_number(equation):
    text = equation.removesuffix(" (the seed)").rpartition(" = ")[2]
    return float(text.strip("()").replace("−", "-"))


@given(graphs())
def test_frames_follow_the_order_and_the_numbers_of_backward(output):
    order = find_topo_sort([output])
    names = {node: f"v{i}" for i, node in enumerate(order, 1)}
    known = record_passes(output, names)
    assert known.order == tuple(names.values())
    assert [f.place for f in known.frames if f.phase == "forward"] == list(range(len(order)))

    output.backward()
    adjoints = {}
    backward = [f for f in known.frames if f.phase != "forward"]
    assert [f.place for f in backward] == sorted((f.place for f in backward), reverse=True)
    for frame in backward:
        for equation in frame.said():
            if re.match(r"v̄\d+ =", equation):
                adjoints[frame.place] = equation
    visited = [i for i, node in enumerate(order) if node.grad is not None]
    assert sorted(adjoints) == visited
    for place, equation in adjoints.items():
        assert last_number(equation) == pytest.approx(order[place].grad.numpy()[0], rel=1e-3, abs=1e-3)
        if " + " in equation and "more" not in equation:
            terms = equation.split(" = ")[2].split(" + ")
            total = sum(float(term.strip("()").replace("−", "-")) for term in terms)
            assert total == pytest.approx(last_number(equation), rel=2e-3, abs=5e-3)


def test_every_part_of_the_picture_appears_in_some_frame():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = ndl.Tensor(np.ones((2, 3)), requires_grad=False)
    steps = viz.steps(nn.SoftmaxLoss()(model(x), ndl.Tensor([0, 1], requires_grad=False)))
    variables = {variable.key for variable in steps.passes.graph.variables}
    assert set(steps.passes.since) == variables
    last = len(steps) - 1
    in_picture = set(re.findall(r'data-key="([^"]+)"', html.unescape(steps.data()["svg"])))
    assert all(steps.passes.appears(key) <= last for key in in_picture)


def test_nothing_is_computed_for_a_lazy_output():
    with ndl.autograd.lazy():
        x = ndl.Tensor([2.0])
        y = ndl.exp(x)
        z = y * y
    steps = viz.steps(z)
    assert z.cached_data is None
    assert "not computed" in said(steps)[-1]


def test_a_given_adjoint_is_where_it_begins():
    x = ndl.Tensor([1.0, 2.0])
    y = x * 3
    lines = said(viz.steps(y, out_grad=ndl.Tensor([10.0, 100.0])))
    assert "ȳ = [10 100] (the seed)" in lines
    assert "x̄ via y = 3 · ȳ = 3 · [10 100] = [30 300]" in lines
    assert lines[-1] == "x̄ = x̄ via y = [30 300]"


def test_short_arrays_have_no_spaces_at_their_ends():
    x = ndl.Tensor([[-0.0639, 1.0, 0.1]])
    assert said(viz.steps(x))[0] == "x = [−0.0639 1 0.1]"


class Twice(ndl.autograd.TensorOp):
    def compute(self, a):
        return a * 2

    def gradient(self, out_grad, node):
        return out_grad * 2


def test_a_readers_own_operator_needs_no_table():
    x = ndl.Tensor([1.0])
    y = Twice()(x)
    lines = said(viz.steps(y))
    assert "y = twice(x) = twice(1) = 2" in lines
    assert "x̄ via y = 2 · ȳ = 2 · 1 = 2" in lines


def test_a_tuple_on_the_way():
    x = ndl.Tensor([[1.0, 2.0], [3.0, 4.0]])
    a, b = ndl.ops.split(x, 0)
    y = ndl.summation(a * b)
    steps = viz.steps(y)
    y.backward()
    assert "tuple of 2" in " ".join(said(steps))
    assert len(steps) > len(steps.passes.order)
    assert steps[-1].svg().startswith("<svg")


def test_what_cannot_be_stepped_through_is_refused_with_the_way_out():
    x = ndl.Tensor([1.0])
    y = x
    for _ in range(12):
        y = y + 1
    with pytest.raises(
        ValueError, match=r"13 nodes lead to this Tensor, more than limit=12; .* raise limit="
    ):
        viz.steps(y, limit=12)
    assert len(viz.steps(y, limit=13)) == 13 + 1 + 13
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        viz.steps(ndl.Tensor([1.0], requires_grad=False))
    with pytest.raises(TypeError, match="steps: needs a Tensor, got float"):
        viz.steps(1.0)
    with pytest.raises(ValueError, match=r"first\.bmp.* \.gif or \.html"):
        viz.steps(x + 1).save("first.bmp")


def test_all_pictures_are_of_one_size(example, tmp_path):
    steps = viz.steps(example.v4, style="print")
    sizes = {re.search(r'width="[^"]*" height="[^"]*"', still.svg())[0] for still in steps}
    assert len(sizes) == 1
    path = steps.save(tmp_path / "steps.gif")
    with Image.open(path) as gif:
        assert gif.n_frames == len(steps)
        assert gif.info["duration"] >= 1000
    picture = steps[2].save(tmp_path / "third.png")
    with Image.open(picture) as png:
        assert png.width > 500


@pytest.mark.parametrize("kind", ["gif", "html"])
def test_a_kind_alone_is_a_file_in_the_current_folder(example, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = viz.steps(example.v4).save(kind)
    assert str(path) == f"steps.{kind}"
    assert [file.name for file in tmp_path.iterdir()] == [f"steps.{kind}"]
    assert path.read_bytes()[:4] == {"gif": b"GIF8", "html": b"<!do"}[kind]


def test_a_wide_graph_is_shown_around_the_current_node():
    x = ndl.Tensor([1.0])
    for _ in range(40):
        x = ndl.tanh(x)
    steps = viz.steps(x)
    svg = steps[20].svg()
    assert float(re.search(r'width="([\d.]+)pt"', svg)[1]) < 1200
    assert ">n21<" in svg
    assert ">n1<" not in svg


@pytest.mark.slow
def test_an_animated_picture_keeps_the_colours_of_what_its_last_frame_does_not_show(tmp_path):
    x = ndl.Tensor([1.0])
    for _ in range(12):
        x = ndl.tanh(x)
    path = viz.steps(x, style="dark").save(tmp_path / "steps.gif")
    fill = viz.style.STYLES["dark"].boxes["output"].fill
    wanted = np.array([int(fill[i : i + 2], 16) for i in (1, 3, 5)])
    with Image.open(path) as gif:
        gif.seek(13)
        shown = np.asarray(gif.convert("RGB")).reshape(-1, 3).astype(int)
    assert (abs(shown - wanted).max(1) <= 12).sum() > 500


def test_the_page_survives_any_name(tmp_path):
    x = ndl.Tensor([1.0])
    name = "</script><b>\"'&"
    text = viz.steps(ndl.exp(x), names={name: x}).html()
    assert "</script><b>" not in text
    data = json.loads(html.unescape(re.search(r'data-needle-steps="([^"]*)"', text)[1]))
    assert data["order"][0] == name


def test_the_strip_holds_each_frame_up_to_a_cap(example):
    steps = viz.steps(example.v4)
    assert steps._repr_html_().count("<img") == len(steps)
    x = example.v1
    for _ in range(30):
        x = x + 1
    long = viz.steps(x)
    strip = long._repr_html_()
    assert strip.count("<img") == 24
    assert f"&hellip; {len(long) - 24} more frames" in strip


def test_a_frame_that_is_not_there(example):
    steps = viz.steps(example.v4)
    with pytest.raises(IndexError, match="steps: there is no frame 99; there are 10, numbered from 0"):
        steps[99]
    for index in ("a", 1.0, slice("a", None)):
        with pytest.raises(TypeError, match="steps: needs the number of a frame, or a slice like 2:5; got"):
            steps[index]
    assert [still.title for still in steps[-2:]] == [frame.title for frame in steps.passes.frames[-2:]]


@pytest.fixture
def no_graphviz(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_without_graphviz_the_equations_are_there(example, no_graphviz):
    steps = viz.steps(example.v4, names=vars(example))
    text = steps._repr_html_()
    assert "needs Graphviz" in text
    assert "v̄2 = v̄2 via v4 + v̄2 via v3 = 2 + 1 = 3" in text
    with pytest.raises(viz.CannotRender, match="needs Graphviz"):
        steps.save("steps.gif")


def test_without_graphviz_the_widget_shows_the_equations(example, no_graphviz):
    player = viz.step(example.v4, names=vars(example))
    player.frame = 9
    text = player.steps._repr_html_()
    assert "v̄1 = v̄1 via v2 = 3" in text
    data, _ = player._repr_mimebundle_()
    assert player.data == {"instead": text}
    assert data["text/html"] == text
    assert "application/vnd.jupyter.widget-view+json" in data


def test_viz_does_not_import_the_widgets_library():
    code = "import sys, viz; print('anywidget' in sys.modules, 'PIL' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_without_the_widgets_library_it_says_what_to_do():
    code = "import sys; sys.modules['anywidget'] = None; import viz; viz.step"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "`pip install anywidget`; viz.steps(output) shows the same steps without it" in done.stderr


def test_the_frame_of_the_widget_stays_within_bounds(example):
    player = viz.step(example.v4)
    seen = []
    player.observe(lambda change: seen.append(change["new"]), "frame")
    player.frame = 9
    with pytest.raises(Exception, match="frame: needs a number from 0 to 9, got 10"):
        player.frame = 10
    assert seen == [9]
    data, _ = player._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "<img" in data["text/html"]
