"""The pictures: what is in the SVG and where, the files, and what happens where there is no Graphviz."""

from __future__ import annotations

import builtins
import importlib.util
import os
import re
import subprocess
import sys
import threading
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from viz import engines, render


@pytest.fixture
def second_order(example) -> viz.Drawing:
    example.v4.backward()
    return viz.draw_gradient(example.v1.grad, names=vars(example))


@pytest.fixture
def network() -> viz.Drawing:
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(2, 3, rng=rng), nn.ReLU(), nn.Linear(3, 2, rng=rng))
    x = ndl.Tensor(rng.normal(size=(4, 2)), requires_grad=False)
    loss = nn.SoftmaxLoss()(model(x), ndl.Tensor([0, 1, 1, 0], requires_grad=False))
    return viz.draw_gradient(loss)


def named(boxes) -> dict:
    return {box.name: box for box in boxes if len(box.texts) > 1}


def middle(box) -> float:
    return (box.left + box.right) / 2


def test_every_node_and_edge_is_in_the_picture(example, boxes) -> None:
    drawing = viz.draw_gradient(example.v4, names=vars(example))
    svg = drawing.svg()
    graph = drawing.graph
    operators = [variable.operator for variable in graph.variables if variable.operator]
    assert len(boxes(svg)) == len(graph.variables) + len(operators)
    edges = len(operators) + sum(len(operator.operands) for operator in operators)
    assert len(re.findall(r'<g class="edge[ "]', svg)) == edges
    assert svg.count("stroke-dasharray") == 3


@pytest.mark.parametrize("picture", ["second_order", "network"])
def test_no_text_leaves_its_box_and_no_box_covers_another(picture: str, boxes, request) -> None:
    found = boxes(request.getfixturevalue(picture).svg())
    for box in found:
        for text, left, right in box.texts:
            assert box.left < left, text
            assert right < box.right, text
    for i, one in enumerate(found):
        for other in found[i + 1 :]:
            apart = (
                one.right < other.left
                or other.right < one.left
                or one.bottom < other.top
                or other.bottom < one.top
            )
            assert apart, (one.name, other.name)


def test_adjoints_stand_below_their_variables_and_run_back(example, boxes, clusters) -> None:
    svg = viz.draw_gradient(example.v4, names=vars(example)).svg()
    frames = clusters(svg)
    assert frames["forward →"].bottom < frames["gradient ←"].top
    box = named(boxes(svg))
    for name in ("v1", "v2", "v3", "v4"):
        assert middle(box[name]) == pytest.approx(middle(box[f"adjoint of {name}"]), abs=8)
        assert box[name].bottom < box[f"adjoint of {name}"].top
    columns = [middle(box[f"adjoint of v{i}"]) for i in (4, 3, 2, 1)]
    assert columns == sorted(columns, reverse=True)


def test_rows_of_the_second_order_are_in_their_order(second_order, clusters) -> None:
    frames = list(clusters(second_order.svg()).items())
    titles = ["forward →", "gradient ←", "second-order gradient →", "second-order gradient ←"]
    assert [title for title, _ in sorted(frames, key=lambda frame: frame[1].top)] == titles
    tops = [frame.top for _, frame in sorted(frames, key=lambda frame: frame[1].top)]
    bottoms = [frame.bottom for _, frame in sorted(frames, key=lambda frame: frame[1].top)]
    assert all(bottom < top for bottom, top in zip(bottoms, tops[1:], strict=False))


@pytest.mark.parametrize("depth", [2, 5, 9])
def test_the_gradient_is_below_however_many_operators_there_are(depth: int, clusters) -> None:
    rng = np.random.default_rng(depth)
    tensors = [ndl.Tensor([1.0]), ndl.Tensor([2.0])]
    for _ in range(2 * depth):
        i, j = rng.integers(len(tensors), size=2)
        tensors.append(ndl.tanh(tensors[i] * tensors[j] + tensors[-1]))
    frames = clusters(viz.draw_gradient(tensors[-1]).svg())
    assert frames["forward →"].bottom < frames["gradient ←"].top


def test_from_top_to_bottom(example, boxes, clusters) -> None:
    svg = viz.draw_gradient(example.v4, names=vars(example), rankdir="TB").svg()
    frames = clusters(svg)
    assert frames["forward ↓"].right < frames["gradient ↑"].left
    box = named(boxes(svg))
    assert box["v1"].bottom < box["v4"].top
    assert box["adjoint of v1"].bottom < box["adjoint of v4"].top


def test_the_svg_can_stand_in_a_page(example) -> None:
    svg = viz.draw(example.v4, names=vars(example)).svg()
    root = ElementTree.fromstring(svg)
    assert svg.startswith("<svg ")
    assert root.get("viewBox")
    assert root.get("role") == "img"
    assert "max-width:100%" in root.get("style")
    assert root[0].text == "computational graph of v4: 4 variables, 3 operators"
    assert not re.search(r'\bid="', svg)
    assert "<!--" not in svg


def test_notebooks_get_a_picture_and_a_line_of_text(example) -> None:
    drawing = viz.draw(example.v4, names=vars(example))
    shown = drawing._repr_mimebundle_()
    assert shown["image/svg+xml"] == drawing.svg()
    assert shown["text/plain"] == repr(drawing) == "<computational graph of v4: 4 variables, 3 operators>"


def test_files(example, tmp_path) -> None:
    drawing = viz.draw_gradient(example.v4)
    svg = drawing.save(tmp_path / "graph.svg")
    assert svg.read_text(encoding="utf-8") == drawing.svg() + "\n"
    assert drawing.save(tmp_path / "graph.PNG").read_bytes().startswith(b"\x89PNG")
    assert drawing.save(str(tmp_path / "graph.pdf")).read_bytes().startswith(b"%PDF")
    with pytest.raises(
        ValueError, match=r"cannot write 'graph.gif'; end the name in .svg, .png, .pdf or .html"
    ):
        drawing.save(tmp_path / "graph.gif")
    with pytest.raises(ValueError, match="cannot write 'graph'"):
        drawing.save(tmp_path / "graph")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.PNG", "graph.pdf", "graph.svg"]


@pytest.mark.slow
def test_a_thousand_nodes(boxes) -> None:
    x = ndl.Tensor([0.5])
    for _ in range(999):
        x = x * 1.001
    assert len(boxes(viz.draw(x, limit=1000).svg())) == 1000 + 999


def test_drawings_in_threads_are_the_same_as_alone(example) -> None:
    drawings = [viz.draw_gradient(example.v4, names=vars(example)) for _ in range(4)]
    alone = viz.draw_gradient(example.v4, names=vars(example)).svg()
    threads = [threading.Thread(target=drawing.svg) for drawing in drawings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {drawing.svg() for drawing in drawings} == {alone}


def test_rendering_says_nothing_on_the_terminal(example, capfd) -> None:
    viz.draw_gradient(example.v4).svg()
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def no_dot(tmp_path, monkeypatch) -> None:
    """A machine that does not have the program `dot`, but the package pygraphviz."""
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def no_pygraphviz(monkeypatch) -> None:
    """A machine that does not have the package pygraphviz."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "pygraphviz" else find_spec(name, *rest),
    )


@pytest.fixture
def install_dot(tmp_path, monkeypatch):
    """A function that installs a program `dot` with this text, the only one on PATH."""

    def install(program: str) -> None:
        folder = tmp_path / "programs"
        folder.mkdir()
        (folder / "dot").write_text(program)
        (folder / "dot").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setattr(engines, "_hung", set())

    return install


def test_without_graphviz_a_sentence_and_the_source_are_shown(
    example, no_dot, no_pygraphviz, tmp_path
) -> None:
    drawing = viz.draw(example.v4)
    shown = drawing._repr_mimebundle_()
    assert list(shown) == ["text/plain"]
    assert "pip install pygraphviz" in shown["text/plain"]
    assert drawing.source in shown["text/plain"]
    for attempt in (drawing.svg, lambda: drawing.save(tmp_path / "graph.png")):
        with pytest.raises(viz.CannotRender, match="pip install pygraphviz"):
            attempt()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("error")
def test_without_dot_pygraphviz_draws(example, no_dot, boxes) -> None:
    assert len(boxes(viz.draw_gradient(example.v4, names=vars(example)).svg())) == 16


# Graphviz's `dot`, as far as it is called, made of the package pygraphviz.
DOT = """#!{python}
import sys
with open({log!r}, "a") as log:
    print(*sys.argv[1:], file=log)
engine, kind = sys.argv[1:]
from pygraphviz import AGraph
graph = AGraph(string=sys.stdin.read())
sys.stdout.buffer.write(graph.draw(format=kind.removeprefix("-T"), prog="nop2"))
"""


def test_an_installed_dot_is_used(example, install_dot, no_pygraphviz, tmp_path) -> None:
    log = tmp_path / "calls"
    install_dot(DOT.format(python=sys.executable, log=str(log)))
    svg = viz.draw_gradient(example.v4, names=vars(example)).svg()
    assert svg.count("data-key") > 20
    assert log.read_text().splitlines() == ["-Knop2 -Tsvg"]


def test_a_drawing_for_the_package_graphviz(example, install_dot, no_pygraphviz, tmp_path) -> None:
    install_dot(DOT.format(python=sys.executable, log=str(tmp_path / "calls")))
    drawing = viz.draw_gradient(example.v4)
    assert drawing.graphviz.source == drawing.source
    assert drawing.graphviz.pipe("svg").count(b"<g ") > 20
    assert list(drawing.graphviz._repr_mimebundle_()) == ["image/svg+xml"]


def test_a_layout_that_takes_too_long_is_given_up(example, monkeypatch) -> None:
    monkeypatch.setattr(engines, "LONGEST", -0.999)
    monkeypatch.setattr(engines, "_hung", {os.environ["PATH"]})
    with pytest.raises(viz.CannotRender, match=r"pygraphviz found no layout within 0 seconds.*too many"):
        viz.draw(example.v4).svg()


def test_a_dot_that_hangs_is_stopped(example, install_dot, no_pygraphviz, monkeypatch) -> None:
    monkeypatch.setattr(engines, "LONGEST", 0.2)
    install_dot("#!/bin/sh\nexec /bin/sleep 600\n")
    with pytest.raises(viz.CannotRender, match=r"dot found no layout within 0 seconds.*too many edges"):
        viz.draw(example.v4).svg()


def test_a_dot_that_hangs_is_not_called_again(example, install_dot, monkeypatch) -> None:
    run = subprocess.run

    def hangs(command, **options):
        if command[0] != "dot":
            return run(command, **options)
        raise subprocess.TimeoutExpired(command, options["timeout"])

    install_dot("")
    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.warns(UserWarning, match=r"^dot found no layout within 20 .*pygraphviz draws instead\.$"):
        assert viz.draw_gradient(example.v4).svg().count("data-key") > 20
    with warnings.catch_warnings(action="error"):
        assert viz.draw(example.v4).svg().count("data-key") > 7


def test_many_graphs_need_few_calls_of_dot(monkeypatch) -> None:
    calls = []
    with_dot = engines._with_dot
    monkeypatch.setattr(engines, "_with_dot", lambda *given: calls.append(given) or with_dot(*given))
    names = [f"digraph_{i}" for i in range(30)]
    sources = [f'digraph {{ {name} [pos="0,0", label="<?xml {name}"]; }}' for name in names]
    for name, picture in zip(names, render.render_all(sources, "svg"), strict=True):
        assert set(re.findall(r"digraph_\d+", picture.decode())) == {name}
    assert len(calls) <= (os.cpu_count() or 1)


def test_a_failure_of_graphviz_is_told() -> None:
    with pytest.raises(viz.CannotRender, match=r"pygraphviz could not draw this graph: .*Invalid Input"):
        engines._with_pygraphviz("svg", ["digraph { a -> ; }"])


BROKEN = "#!/bin/sh\necho no plugins >&2\nexit 1\n"


def test_a_broken_dot_is_no_harm_where_pygraphviz_is(example, install_dot) -> None:
    install_dot(BROKEN)
    with pytest.warns(UserWarning, match="dot could not draw this graph: no plugins. .* pygraphviz draws"):
        assert viz.draw(example.v4).svg().count("data-key") > 7


@pytest.mark.parametrize(("program", "why"), [(BROKEN, "no plugins"), ("", "Exec format error")])
def test_a_broken_dot_is_told_where_it_is_all(program, why, example, install_dot, no_pygraphviz) -> None:
    install_dot(program)
    with pytest.raises(viz.CannotRender, match=f"dot could not draw this graph: .*{why}"):
        viz.draw(example.v4).svg()


def test_frames_come_in_the_order_of_the_text() -> None:
    """So that a picture is the same file in every run: Graphviz goes by addresses in memory."""
    sources = []
    for k in range(9):
        names = [f"{'x' * (7 * i * k % 50)}{i}" for i in range(12)]
        boxes = [
            f'subgraph cluster_{name} {{ graph [bb="0,0,9,9"]; n{i} [pos="{i}00,9"]; }}\n'
            for i, name in enumerate(names)
        ]
        sources.append(f"digraph {{ {''.join(boxes)} }}")
    for source, svg in zip(sources, render.render_all(sources, "svg"), strict=True):
        drawn = re.findall(r"<title>(cluster_\w+)", svg.decode())
        assert drawn == re.findall(r"cluster_\w+", source)


def test_a_pdf_is_the_same_file_at_any_time(example, tmp_path) -> None:
    pdf = viz.draw(example.v4).save(tmp_path / "graph.pdf").read_bytes()
    assert re.findall(rb"\(D:(\d+)", pdf) == [b"19700101000000"]


def test_importing_viz_is_light() -> None:
    heavy = {"matplotlib", "streamlit", "numba", "pygraphviz", "IPython"}
    program = f"import sys, viz; print(sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names() -> None:
    assert viz.__all__ == sorted(viz.__all__)
    assert all(hasattr(viz, name) for name in viz.__all__)
    assert not set(viz.__all__) & set(dir(builtins))


def test_streamlit_shows_a_drawing(tmp_path):
    AppTest = pytest.importorskip("streamlit.testing.v1", reason="streamlit is not installed").AppTest

    def app():
        import streamlit as st

        import needle as ndl
        import viz

        x = ndl.Tensor([1.0])
        st.write(viz.draw(x * x), unsafe_allow_html=True)
        st.image(viz.draw(x * x).svg())

    shown = AppTest.from_function(app).run(timeout=30)
    assert not shown.exception
    html, _image = shown.main.children.values()
    assert "data:image/svg+xml;base64," in html.proto.body


def test_a_png_too_large_to_be_read_is_refused(tmp_path) -> None:
    y = ndl.Tensor([1.0])
    for _ in range(500):
        y = y + 1
    drawing = viz.draw(y, limit=1000, width=100)
    with pytest.raises(ValueError, match=r"a PNG would need [\d,]+ x [\d,]+ pixels.*\.svg"):
        drawing.save(tmp_path / "chain.png")
