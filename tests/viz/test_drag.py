"""Sliders below a picture: which stops they have, and what the frames show that are computed beforehand."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import zlib

import matplotlib.pyplot as plt
import numpy as np
import pytest

import needle as ndl
import viz
import viz.frames
from viz.drag import Drag
from viz.sliders import Slider, slider_of


def v4(v1, v2=1.0):
    v3 = ndl.exp(v1)
    return v3 * (v3 + v2)


def of_branches(x):
    return x * x if float(x.numpy()[0]) > 0 else x + 1.0


def failing(x):
    if float(x.numpy()[0]) > 1:
        raise ValueError("x is too large.")
    return x * x


def line(e):
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.plot([0, e])
    return figure


def slider(given) -> Slider:
    return slider_of("x", given)


def texts(data, places: str) -> list[str]:
    return data["frames"][places][1]


def nodes_of(svg: str) -> dict[str, str]:
    """The content of each node of an SVG, by key."""
    return dict(re.findall(r'<g class="node" data-key="(\w+)">(.*?)\n</g>', svg, re.S))


@pytest.mark.parametrize(
    ("given", "first", "last", "start", "count"),
    [
        ((-2, 2), "−2", "2", "0", 201),
        ((0, 1, 0.333), "0", "1", "0.333", 202),
        ((0.5, 3.7), "0.5", "3.7", "2.1", 161),
        ((1000, 1002), "1000", "1002", "1001", 201),
        ((1e-8, 1), "10⁻⁸", "1", "0.0001", 161),
        ((0.001, 1), "0.001", "1", "0.01", 61),
        (range(1, 11), "1", "10", "1", 10),
        ([0.5, 2, 8], "0.5", "8", "0.5", 3),
        (["relu", "tanh"], "relu", "tanh", "relu", 2),
        (np.linspace(0, 1, 5), "0", "1", "0", 5),
    ],
)
def test_a_range_has_stops_that_one_can_read(given, first, last, start, count) -> None:
    labels = slider(given).labels
    assert (labels[0], labels[-1], labels[slider(given).start], len(labels)) == (first, last, start, count)
    assert len(set(labels)) == count


def test_a_slider_over_decades_takes_as_many_steps_in_each() -> None:
    stops = np.array(slider((1e-6, 1)).stops)
    assert [np.sum((stops >= 10.0**k) & (stops < 10.0 ** (k + 1))) for k in range(-6, 0)] == [20] * 6
    assert slider((0.01, 1)).labels[:3] == ["0.01", "0.015", "0.02"]  # two decades are not many


def test_few_stops_are_spread_evenly_and_have_the_start_and_the_ends() -> None:
    some = slider((-2, 2, 0.5))
    assert [some.labels[i] for i in some.few(5)] == ["−2", "−1", "0", "0.5", "1", "2"]
    assert slider(range(1, 5)).few(5) == [0, 1, 2, 3]


def test_whole_numbers_of_a_range_stay_whole() -> None:
    assert all(type(stop) is int for stop in slider(range(3)).stops)
    assert all(type(stop) is float for stop in slider((0, 3)).stops)
    assert slider(3.0) is slider("relu") is slider(None) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((2, -2), r"drag: v1: the range goes from low to high, so \(2, -2\) is empty"),
        ((0, 1, 2), "drag: v1: the start 2 is not between 0 and 1"),
        ((0, 1, 2, 3), r"drag: v1: needs \(low, high\) or .* write a list"),
        ((0, np.inf), r"drag: v1: needs \(low, high\)"),
        ([1.0], "drag: v1: a slider needs 2 to 1,000 stops, each once"),
        ([1.0, None], "drag: v1: the stops of a slider are numbers or words"),
        (1.5, r"drag: there is nothing to drag; give a range, such as v1=\(-2, 2\)"),
    ],
)
def test_what_is_no_slider_gets_a_way_out(given, message) -> None:
    with pytest.raises(ValueError, match=message):
        viz.drag(v4, v1=given)


def test_frames_of_one_graph_share_one_picture_and_hold_its_numbers() -> None:
    data = viz.drag(v4, v1=(-2, 2), v2=1.5, frames=5).data()
    assert len(data["pictures"]) == 1
    assert list(data["frames"]) == ["0", "50", "100", "150", "200"]
    nodes = data["pictures"][0]["nodes"]
    assert dict(zip([key for key, _ in nodes], texts(data, "100"), strict=True))["n1"] == "[0]"
    assert texts(data, "200")[:2] == ["[2]", "[7.389]"]  # v1, v3
    # The boxes have room for the widest number of each place, and frames have their numbers in that order.
    markup = data["pictures"][0]["markup"]
    written = {key: re.findall(r">([^<>]+)</text>", content)[-1] for key, content in nodes_of(markup).items()}
    shown = zip(*(texts(data, places) for places in data["frames"]), strict=True)
    for (key, _), column in zip(nodes, shown, strict=True):
        assert written[key].replace("&#8722;", "−") in column
        assert len(written[key]) >= max(map(len, column)) - 1  # "1" is as wide as "7", but "." is narrow


def test_numbers_of_matrices_and_gradients_have_their_places() -> None:
    weight = ndl.Tensor([[1.0, 2.0], [3.0, 4.0]])

    def loss(w):
        y = (weight * w).sum()
        y.backward(create_graph=False)
        return y

    drag = viz.drag(loss, w=(0, 2), gradient=False, frames=2)
    (picture,) = drag.data()["pictures"]
    counts = dict(picture["nodes"])
    shown = texts(drag.data(), "100")
    assert sum(counts.values()) == len(shown)
    assert shown[: counts["n1"]] == ["1", "2", "3", "4", "grad", "1", "1", "1", "1"]
    for key, content in nodes_of(picture["markup"]).items():
        if key in counts:  # as many texts end each box
            end = re.findall(r"<text [^>]*>([^<]*)</text>", content)[-counts[key] :]
            assert [not re.search(r"\d", x) for x in end] == [x == "grad" for x in end]


def test_a_small_square_leaves_out_the_same_numbers_in_each_frame() -> None:
    def y(x):
        large = x * 12345.678
        return large * ndl.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=False)

    drag = viz.drag(y, x=(0.001, 0.1), gradient=False, frames=3, style="d2l")
    data = drag.data()
    (picture,) = data["pictures"]
    kept = dict(picture["nodes"])
    assert set(kept) == {"n1", "n2"}
    for _, shown in data["frames"].values():
        assert len(shown) == 2
    for key, content in nodes_of(picture["markup"]).items():
        if key in kept:
            assert re.search(r">\[[\d.]+\]</text>$", content)


def test_variables_are_called_as_in_the_function() -> None:
    outside = ndl.Tensor([2.0])

    def y(x):
        inner = x * outside
        return inner + x

    source = viz.drag(y, x=(0, 1)).at(x=1).source
    assert all(f"<b>{name}</b>" in source for name in ("x", "inner", "outside", "y", "adjoint of inner"))
    assert outside.numpy() == y(ndl.Tensor([0.0])).numpy() + 2.0  # the closure is as it was


def test_another_graph_has_another_picture() -> None:
    data = viz.drag(of_branches, x=(-1, 1), frames=5).data()
    assert [data["frames"][place][0] for place in data["frames"]] == [0, 0, 0, 1, 1]
    assert len(data["pictures"]) == 2


def test_an_error_is_told_and_the_other_values_work() -> None:
    drag = viz.drag(failing, x=(0, 2), frames=3)
    data = drag.data()
    assert data["frames"]["200"] == [-1, ["At x = 2 there is no picture: ValueError: x is too large."]]
    assert data["frames"]["100"][0] == 0
    at_start = viz.drag(failing, x=(0, 2, 2), frames=2)
    assert "ValueError: x is too large" in at_start.html()
    with pytest.raises(ValueError, match="x is too large"):
        drag.at(x=1.5)


def test_what_fails_everywhere_fails_at_once() -> None:
    with pytest.raises(NameError, match="missing"):
        viz.drag(lambda x: missing * x, x=(0, 1))  # noqa: F821
    with pytest.raises(
        TypeError, match=r"drag: the function returned 3\.0, of type float; it needs to return"
    ):
        viz.drag(lambda x: 3.0, x=(0, 1))
    with pytest.raises(TypeError, match="drag: the function takes v1, v2; you gave v1, v3"):
        viz.drag(v4, v1=(0, 1), v3=2.0)
    with pytest.raises(TypeError, match="drag: needs a function that draws, got Tensor"):
        viz.drag(ndl.Tensor([1.0]), v1=(0, 1))


def test_a_picture_gets_plain_numbers_and_a_graph_gets_tensors() -> None:
    seen = []

    def picture(e, n):
        seen.append((type(e), type(n)))
        return line(e)

    viz.drag(picture, e=(0, 1), n=range(2))
    assert seen[-1] == (float, int)

    def graph(x, n):
        seen.append((type(x), type(n)))
        return x * n

    viz.drag(graph, x=(0, 1), n=range(1, 3))
    assert seen[-1] == (ndl.Tensor, int)


def test_a_figure_is_an_image_and_is_not_left_open() -> None:
    before = plt.get_fignums()
    data = viz.drag(line, e=(0, 1), frames=3).data()
    assert list(data["frames"].values()) == [[0, []], [1, []], [2, []]]
    assert all(picture["markup"].startswith("<img ") for picture in data["pictures"])
    assert plt.get_fignums() == before
    axes = viz.drag(lambda e: line(e).axes[0].plot([0, e]), e=(0, 1), frames=1)
    assert axes.data()["pictures"][0]["markup"].startswith("<img ")


def test_any_picture_can_be_dragged() -> None:
    def memory(n):
        x = ndl.Tensor(np.ones(n))
        return viz.memory(x, names={"x": x})

    data = viz.drag(memory, n=range(1, 4)).data()
    assert ["8 B" in picture["markup"] for picture in data["pictures"]] == [False, True, False]
    own = viz.drag(lambda x: viz.draw(x * x, style="dark"), x=(0, 1), frames=2)
    assert own.data()["colours"]["ground"] == own.at().style.background


def test_several_sliders_move_together_if_there_is_room_and_else_alone() -> None:
    few = viz.drag(v4, v1=(-2, 2), v2=(0, 1), frames=3).data()
    assert (few["together"], len(few["frames"])) == (True, 9)
    assert "9 pictures that were computed beforehand: 3 values of v1 times 3 values of v2." in few["note"]
    many = viz.drag(v4, v1=(-2, 2), v2=(0, 1), frames=41).data()
    assert (many["together"], len(many["frames"])) == (False, 81)
    assert "One slider moves at a time" in many["note"]
    assert all("100" in places.split(",") for places in many["frames"])


def test_as_many_frames_as_there_is_time_for() -> None:
    drag = viz.drag(v4, v1=[x / 8 for x in range(60)])
    assert len(drag.data(seconds=1e-9)["frames"]) == 4
    assert len(drag.data(seconds=1e9)["frames"]) == 60


def frames_with(seconds: str) -> subprocess.CompletedProcess[str]:
    """Print how many frames there are with these seconds in the environment."""
    code = "import viz; print(len(viz.drag(lambda x: x * x, x=[i / 8 for i in range(60)]).data()['frames']))"
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NEEDLE_DRAG_SECONDS": seconds},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(("seconds", "frames"), [("1e-9", 4), ("1e9", 60)])
def test_the_environment_says_how_much_time_there_is(seconds, frames) -> None:
    done = frames_with(seconds)
    assert done.stdout == f"{frames}\n", done.stderr


@pytest.mark.parametrize("seconds", ["2 min", "-5", "nan"])
def test_seconds_that_cannot_be_are_named(seconds) -> None:
    *_, sentence = frames_with(seconds).stderr.splitlines()
    assert sentence == (
        f"ValueError: NEEDLE_DRAG_SECONDS is '{seconds}': give a number of seconds, such as 120, or unset it"
    )


def test_a_kernel_answers_with_numbers_and_lays_out_only_what_is_new(monkeypatch) -> None:
    drag = viz.drag(of_branches, x=(0.5, 1), frames=1)
    album = drag._beforehand(1.0)
    ways = []
    monkeypatch.setattr(viz.frames, "render_all", lambda sources, kind: ways.append(sources))
    answer = drag._answer(album, {"number": 7, "places": [3]})
    assert (answer["number"], answer["pictures"], answer["frame"][0]) == (7, {}, 0)
    assert answer["frame"][1][0] == f"[{drag.sliders[0].labels[3]}]"
    assert ways == []
    with pytest.raises(ValueError, match="there are no such places"):
        drag._answer(album, {"number": 8, "places": [9999]})
    with pytest.raises(ValueError, match="invalid literal"):
        drag._answer(album, {"number": 8, "places": ["print(1)"]})


def test_the_widget_answers_what_it_is_asked() -> None:
    drag = viz.drag(lambda x: x * x if 0.2 < float(x.numpy()[0]) < 0.8 else x + 1.0, x=(0, 2), frames=2)
    sent = []
    drag.widget.send = sent.append
    drag.widget._handle_custom_msg({"number": 1, "places": [50]}, [])
    (answer,) = sent
    assert answer["frame"][0] == 1
    assert "<svg" in answer["pictures"][1]["markup"]
    drag.widget.close()


def unpacked(page: str) -> dict:
    packed = re.search(r'data-needle-drag="([^"]*)"', page)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_it_saves_itself_as_a_page(tmp_path) -> None:
    drag = viz.drag(v4, v1=(-2, 2), frames=5)
    page = drag.save(tmp_path / "x.html").read_text("utf-8")
    assert unpacked(page) == json.loads(json.dumps(drag.data()))
    assert 'alt="v4, with v1 to drag"' in page  # where scripts do not run
    assert not re.search(r"(src|href)=.https?://", page)
    assert len(page) < 60_000
    with pytest.raises(ValueError, match=r"save: cannot write 'x.png'; .*drag.at\(v1=…\).save"):
        drag.save(tmp_path / "x.png")


def test_it_shows_itself_with_and_without_a_widget(monkeypatch) -> None:
    drag = viz.drag(v4, v1=(-2, 2), frames=3)
    data, _ = drag._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= set(data)
    drag.widget.close()
    assert repr(drag) == "<v4, with v1 to drag>"
    monkeypatch.setitem(sys.modules, "anywidget", None)
    alone = viz.drag(v4, v1=(-2, 2), frames=3)
    assert isinstance(alone, Drag)
    assert set(alone._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_at_gives_the_picture_to_save(tmp_path) -> None:
    drag = viz.drag(v4, v1=(-2, 2), v2=(0, 1))
    assert drag.at(v1=1.004).graph.variables[0].value == (("[1]",),)
    assert drag.at().save(tmp_path / "x.svg").exists()
    with pytest.raises(ValueError, match="v1: needs a number from −2 to 2, got 5"):
        drag.at(v1=5)
    with pytest.raises(TypeError, match="at: there is no slider 'v7'"):
        drag.at(v7=5)
