"""The four looks: colours that can be told apart and read, boxes where they should be, one legend."""

from __future__ import annotations

import re
import zlib
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from viz.dot import DrawnGraph
from viz.style import LEGENDS, OF_THE_PAGE, STYLES, Box
from viz.text import elide

# Colour vision without one kind of cone, as matrices on linear RGB: Machado, Oliveira and Fernandes, "A
# Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15 (2009), severity 1.0.
SIGHT = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
# Linear sRGB to CIE XYZ, and the white of D65 (IEC 61966-2-1).
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = TO_XYZ.sum(1)
READABLE = 4.5  # contrast of text, WCAG 2.2, level AA
VISIBLE = 3.0  # contrast of lines and signs, WCAG 2.2, level AA
APART = 8.0  # CIE 1976 colour difference: more than twice what is just noticeable
STYLED = pytest.mark.parametrize("style", STYLES)


def linear(color: str) -> np.ndarray:
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(color: str, sight: np.ndarray) -> np.ndarray:
    relative = TO_XYZ @ np.clip(sight @ linear(color), 0, 1) / WHITE
    f = np.where(relative > 216 / 24389, np.cbrt(relative), (24389 / 27 * relative + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: Box, other: Box, sight: np.ndarray) -> float:
    """How far the fills, or the lines, of two boxes are apart."""
    return max(
        np.linalg.norm(lab(a, sight) - lab(b, sight))
        for a, b in ((one.fill, other.fill), (one.line, other.line))
    )


def contrast(one: str, other: str) -> float:
    dark, light = sorted(TO_XYZ[1] @ linear(color) for color in (one, other))
    return (light + 0.05) / (dark + 0.05)


def outline(box: Box) -> tuple:
    return box.corners, round(box.line_width), box.dotted, box.double


def test_the_measures_are_right() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
    assert lab("#FF0000", SIGHT["full"]) == pytest.approx([53.24, 80.09, 67.20], abs=0.1)
    red, green = Box("#B00000", "#B00000"), Box("#5A6E00", "#5A6E00")
    assert difference(red, green, SIGHT["deuteranopia"]) < difference(red, green, SIGHT["full"]) / 2


@STYLED
@pytest.mark.parametrize("sight", SIGHT)
def test_kinds_stay_apart_however_one_sees_colours(style: str, sight: str) -> None:
    boxes = STYLES[style].boxes
    for one, other in combinations([kind for kind, words in LEGENDS.items() if words], 2):
        apart = difference(boxes[one], boxes[other], SIGHT[sight])
        assert outline(boxes[one]) != outline(boxes[other]) or apart >= APART, (one, other, apart)


@STYLED
def test_text_can_be_read_on_its_ground(style: str) -> None:
    look = STYLES[style]
    for kind, box in look.boxes.items():
        for ground in (box.fill, look.background):  # the latter where it is not computed yet
            for color in (look.text, look.quiet, look.gradient):
                assert contrast(color, ground) >= READABLE, (kind, color, ground)
        assert max(contrast(box.line, look.background), contrast(box.line, box.fill)) >= VISIBLE, kind
    for row in (look.forward, look.backward):
        assert contrast(row.title, row.fill) >= READABLE
        assert contrast(row.operator, look.background) >= READABLE
        assert contrast(look.quiet, row.fill) >= READABLE
        assert contrast(look.boxes["failed"].line, row.fill) >= READABLE
        for line in (look.edge, look.reuse, look.cut):
            assert contrast(line, row.fill) >= VISIBLE, line
    assert contrast(look.reuse, look.background) >= READABLE


def test_print_is_black_and_white() -> None:
    assert set(re.findall(r"#\w{6}", repr(STYLES["print"]))) == {"#000000", "#FFFFFF"}
    kinds = [kind for kind, words in LEGENDS.items() if words]
    assert len({outline(STYLES["print"].boxes[kind]) for kind in kinds}) == len(kinds)


def test_an_unknown_style_is_refused(example) -> None:
    wrong: Any
    for wrong in ("Print", "", ["dark"]):
        message = "style: needs None or one of 'needle', 'd2l', 'print', 'dark', got"
        with pytest.raises(ValueError, match=message):
            viz.draw(example.v4, style=wrong)
        with pytest.raises(ValueError, match=message):
            viz.set_style(wrong)


@pytest.fixture
def session():
    """Afterwards, pictures follow the page again."""
    yield viz.set_style
    viz.set_style(None)


def test_a_drawing_follows_the_page_unless_it_has_a_style(example, session) -> None:
    assert "light-dark(#101828,#F2F5FA)" in viz.draw(example.v4).svg()
    assert "light-dark" not in viz.draw(example.v4, style="needle").svg()
    session("dark")
    assert viz.draw(example.v4).svg() == viz.draw(example.v4, style="dark").svg()
    assert viz.draw(example.v4, style="print").style is STYLES["print"]
    assert viz.steps(example.v4).data()["scheme"] == "dark"
    session(None)
    assert viz.steps(example.v4).data()["scheme"] == ""
    assert viz.draw(example.v4).style is OF_THE_PAGE


def test_each_colour_has_one_twin_on_a_dark_page(example) -> None:
    light, dark = (re.findall(r"#\w{6}", repr(STYLES[name])) for name in ("needle", "dark"))
    assert OF_THE_PAGE.twins == dict(zip(light, dark, strict=True))
    assert len(OF_THE_PAGE.twins) == len(set(zip(light, dark, strict=True)))
    drawn = set(re.findall(r'(?:fill|stroke)="(#\w+)"', viz.draw_gradient(example.v4).svg()))
    assert drawn <= {colour.lower() for colour in OF_THE_PAGE.twins}
    # Parts of a picture that are still to come have faint colours of their own.
    for picture in viz.steps(example.v4):
        svg = picture.svg()
        drawn = set(re.findall(r'(?:fill|stroke)="(#\w+)"', svg))
        assert drawn == {colour.lower() for colour in re.findall(r"light-dark\((#\w+),", svg)} & drawn


@pytest.fixture
def mlp() -> dict[str, ndl.Tensor]:
    """The loss of a small network with a penalty for large weights, and the names of its variables."""
    rng = np.random.default_rng(0)
    x = ndl.Tensor(rng.normal(size=(2, 1)), requires_grad=False)
    W1, W2 = (ndl.Tensor(rng.normal(size=shape)) for shape in ((3, 2), (1, 3)))
    h = ndl.relu(W1 @ x)
    L = ((W2 @ h - 1) ** 2).sum()
    s = ((W1**2).sum() + (W2**2).sum()) * 0.05
    J = L + s
    return {"x": x, "W1": W1, "W2": W2, "h": h, "L": L, "s": s, "J": J}


def test_d2l_has_the_way_to_the_loss_on_one_line_and_weights_below(mlp, boxes) -> None:
    drawing = viz.draw(mlp["J"], names=mlp, style="d2l")
    found = {box.name: box for box in boxes(drawing.svg())}
    line = [(found[name].top + found[name].bottom) / 2 for name in ("x", "h", "L", "J")]
    assert line == pytest.approx(line[:1] * 4)
    assert [found[name].left for name in ("x", "h", "L", "J")] == sorted(
        found[name].left for name in ("x", "h", "L", "J")
    )
    for name in ("W1", "W2", "s"):
        assert found[name].top > line[0]
    assert found["s"].top < found["W2"].bottom  # the penalty has a line of its own
    squares = [line for line in drawing.source.splitlines() if 'shape="box"' in line and "<table" in line]
    assert not any("rounded" in line.partition("label=")[0] for line in squares)


def test_d2l_can_be_read_on_a_page(mlp) -> None:
    svg = viz.draw(mlp["J"], names=mlp, style="d2l").svg()
    width = float(re.search(r'width="([\d.]+)pt"', svg)[1])
    assert 9 * 1000 / width >= 9  # pixels: the smallest text on a page that is 1000 pixels wide


def test_d2l_keeps_adjoints_below_their_variables_in_frames_of_their_own(mlp) -> None:
    drawing = viz.draw_gradient(mlp["J"], names=mlp, style="d2l")
    picture = DrawnGraph(drawing.graph, drawing.style)
    frames = {frame.key: frame for frame in picture.layout.frames}
    assert frames["0"].bottom > frames["1"].top
    for column in drawing.graph.columns:
        one, other = (picture.layout.places[key] for key in column)
        assert one.x == pytest.approx(other.x)
        assert one.bottom > other.top


@pytest.mark.parametrize(
    ("style", "rankdir"),
    [
        pytest.param(style, way, marks=() if way == "LR" and style in ("needle", "d2l") else pytest.mark.slow)
        for style in STYLES
        for way in ("LR", "RL", "TB", "BT")
    ],
)
def test_every_way_to_go_on(style: str, rankdir: str, mlp, boxes) -> None:
    for drawing in (
        viz.draw(mlp["J"], names=mlp, style=style, rankdir=rankdir),
        viz.draw_gradient(mlp["J"], names=mlp, style=style, rankdir=rankdir),
    ):
        svg = drawing.svg()
        assert f"background:{STYLES[style].background}" in svg
        found = boxes(svg)
        first = next(box for box in found if box.name == "x")
        last = next(box for box in found if box.name == "J")
        assert {
            "LR": first.right < last.left,
            "RL": last.right < first.left,
            "TB": first.bottom < last.top,
            "BT": last.bottom < first.top,
        }[rankdir]
        for one, other in combinations(found, 2):
            assert (
                one.right < other.left
                or other.right < one.left
                or one.bottom < other.top
                or other.bottom < one.top
            ), (one.name, other.name)


def legend(drawing: viz.Drawing) -> str:
    (label,) = re.findall(r"labeljust=.*? label=<(.*?)>\];", drawing.source)
    return " ".join(re.sub(r"<[^>]*>", " ", label).split())


def test_the_legend_explains_what_occurs_and_nothing_else(example, mlp) -> None:
    v = vars(example)
    plain = legend(viz.draw(example.v4, names=v))
    assert plain == (
        "leaf: gradients flow to it intermediate output grad no gradients are shown: backward() has not run"
    )
    example.v4.backward()
    assert legend(viz.draw(example.v4, names=v)) == "leaf: gradients flow to it intermediate output"
    assert "bytes of its array" in legend(viz.draw(example.v4, names=v, show=["bytes"]))
    assert "backward() has not run" not in legend(viz.draw(mlp["J"], names=mlp, show=["value"]))
    assert "backward() has not run" not in legend(viz.draw_gradient(mlp["J"], names=mlp))
    with ndl.lazy():
        y = ndl.exp(example.v1)
    assert "not computed yet" in legend(viz.draw(y, names={"y": y}))
    cut = example.v2.detach()
    assert "cut from the graph" in legend(viz.draw(cut * example.v2, names={}))
    rng = np.random.default_rng(0)
    layers = [nn.Sequential(nn.Linear(2, 2, rng=rng), nn.ReLU()) for _ in range(5)]
    out = nn.Sequential(*layers)(ndl.Tensor(np.ones((1, 2)), requires_grad=False))
    opened = legend(viz.draw(out, names={}))
    assert "frame: what one module computes" in opened
    assert "closed group" not in opened
    assert "closed group" in legend(viz.draw(out, names={}, depth=0))
    assert "frame" not in legend(viz.draw(out, names={}, depth=0))


def test_no_gradients_are_missed_where_there_can_be_none(example) -> None:
    constant = example.v4.detach()
    assert "backward()" not in viz.draw(constant, names={}).source


def test_what_is_shown_is_what_was_asked_for(example) -> None:
    example.v4.backward()

    def drawn(**options) -> list:
        return list(viz.draw(example.v4, names=vars(example), **options).graph.variables)

    assert [x.facts for x in drawn(show=["shape", "dtype"])] == ["(1,) · float32"] * 4
    assert [x.facts for x in drawn(show="device")] == ["cpu()"] * 4 or ndl.default_device() != ndl.cpu()
    assert [x.facts for x in drawn(show={"requires_grad"})] == ["needs gradient"] * 4
    separate = viz.draw(example.v4, names=vars(example), show=["requires_grad"])
    assert "needs gradient · leaf" in separate.source
    assert not any(x.value or x.gradient for x in drawn(show=[]))
    assert all(x.gradient and not x.value for x in drawn(show=["gradient"]))
    for wrong, word in ((["values"], "'values'"), ({"z", "y", "shape"}, "'y'"), (3, "3"), ([[]], r"\[\]")):
        with pytest.raises(ValueError, match=rf"show: needs words of 'value', .*, got {word}$"):
            drawn(show=wrong)


def test_bytes_count_a_storage_once() -> None:
    x = ndl.Tensor(np.ones((10, 10)))
    y = x.reshape((100,))
    z = y.detach() * y
    facts = {
        v.name: v.facts for v in viz.draw(z, names={"x": x, "y": y, "z": z}, show=["bytes"]).graph.variables
    }
    shared = "in the storage of x"
    assert facts == {"x": "400 B", "y": shared, "n1": shared, "z": "400 B"}


def test_bytes_of_several_arrays_count_a_storage_once() -> None:
    x = ndl.Tensor(np.ones((4, 100), dtype="float32"))
    parts = ndl.ops.split(x, 0)
    cut = parts.detach()
    names = {"x": x, "parts": parts, "cut": cut}
    variables = viz.draw([parts, cut], names=names, show=["bytes"]).graph.variables
    shared = "in the storage of x"
    assert {v.name: v.facts for v in variables} == {"x": "1.6 kB", "parts": shared, "cut": shared}
    (alone,) = viz.draw(cut, names=names, show=["bytes"]).graph.variables
    assert alone.facts == "1.6 kB"


def test_where_a_tensor_was_detached_the_edge_is_cut(example, parse) -> None:
    kept = example.v2.detach()
    result = kept * example.v2
    drawing = viz.draw(result, names={**vars(example), "kept": kept})
    dot = parse(drawing.source)
    (cut,) = [(dot.labels[tail], dot.labels[head]) for tail, head, look in dot.edges if 'label="✂"' in look]
    assert cut[0].startswith("v2")
    assert cut[1].startswith("kept")
    outside = viz.draw(kept * example.v1, names={**vars(example), "kept": kept})
    assert "✂ constant, cut from v2" in outside.source
    unknown = viz.draw(kept * example.v1, names={"kept": kept})
    assert "✂ constant, detached" in unknown.source
    assert "detached: the same array" in legend(unknown)
    assert "✂ constant, detached" in viz.draw(example.v2.data.detach() * example.v1, names={}).source
    for uncut in (ndl.Tensor([1.0], requires_grad=False).detach(), ndl.exp(example.v1.detach())):
        drawn = viz.draw(uncut * example.v1, names={})
        assert [x.name for x in drawn.graph.variables if x.detached] == []
    example.v1.data = kept  # a value given to a leaf: v1 is computed from nothing, and cut from nothing
    assert "✂" not in viz.draw(example.v1 * 2, names={}).source


def test_text_of_any_kind_is_one_short_line() -> None:
    class Odd(ndl.autograd.TensorOp):
        def __init__(self, **attributes):
            vars(self).update(attributes)

        def compute(self, x):
            return x * 2

    x = ndl.Tensor(np.arange(1000.0))
    result = Odd(size=tuple(range(20)), text='<b>&"quo\\te\nnew line\\n' * 9)(x)
    result = Odd(words="العربية Ελληνικά")(result)
    names = {"n" * 200: x, '<<a<b>&"c\\d\ne\tf>>': result}
    drawing = viz.draw(result, names=names)
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", drawing.svg())
    assert max(map(len, texts)) < 60 * len("&quot;")
    assert "nnnnnnnnnnnnnnnnnnn…nnnnnnnnnn" in [text.replace("&#8230;", "…") for text in texts]
    assert "min 0, max 999" in texts
    assert any(text.startswith("&lt;&lt;a&lt;b&gt;&amp;&quot;c\\d e f&gt;&gt;") for text in texts)
    assert any("odd size=(0, 1, 2, " in text for text in texts)


@pytest.mark.parametrize("words", ["<<u>x</u>>", "a &lt; b", "\\N \\l {a|b}", "c \x00\x1b[1m \ud800"])
def test_words_are_words_wherever_they_stand(words: str) -> None:
    """In a box, in the title of a frame, in mentions of what is far away, in the title of all of it."""
    result = x = ndl.Tensor([1.0])
    with ndl.scope(words):
        for _ in range(100):
            result = ndl.exp(result) * x
    drawing = viz.draw(result, names={words: x, f"{words} y": result}, limit=1000, depth=2, width=1e6)
    seen = elide(words)
    assert drawing.title.startswith(f"computational graph of {seen} y: ")
    texts = [text.text for text in ElementTree.fromstring(drawing.svg()).findall(".//{*}text")]
    assert texts.count(f"{seen} y") == 1
    assert texts.count(seen) == 2 + len(re.findall(r"n1_for_\w+ \[", drawing.source)) > 2


def everything(drawing: viz.Drawing, path) -> bytes:
    """A PDF with its compressed parts unpacked."""
    return unpacked(drawing.save(path).read_bytes())


def unpacked(pdf: bytes) -> bytes:
    parts = [pdf]
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return b"\n".join(parts)


@STYLED
def test_a_pdf_brings_its_fonts_along(style: str, example, tmp_path) -> None:
    pdf = everything(viz.draw_gradient(example.v4, style=style), tmp_path / "graph.pdf")
    fonts = set(re.findall(rb"/FontName\s*/(\S+)", pdf))
    assert fonts
    assert len(re.findall(rb"/FontFile\d?\s", pdf)) >= len(fonts)
    assert pdf.count(b"/ToUnicode") >= len(fonts)


OUT_OF_ITS_BOX = """() => [...document.querySelectorAll("g.node")].flatMap(node => {
    const shape = node.querySelector("path, polygon, ellipse").getBBox()
    return [...node.querySelectorAll("text")].filter(text => {
        const box = text.getBBox()
        return box.x < shape.x || box.x + box.width > shape.x + shape.width
            || box.y < shape.y - 1 || box.y + box.height > shape.y + shape.height + 1
    }).map(text => text.textContent)
})"""


@pytest.mark.browser
@pytest.mark.parametrize(
    "style",
    ["needle", *[pytest.param(style, marks=pytest.mark.slow) for style in STYLES if style != "needle"]],
)
def test_a_browser_keeps_text_in_its_box_and_prints_it_as_text(style: str, mlp, browser) -> None:
    drawing = viz.draw_gradient(mlp["J"], names=mlp, style=style)
    page = browser.new_page()
    try:
        page.set_content(drawing.svg())
        page.emulate_media(media="print")
        assert page.evaluate("document.querySelectorAll('g.node text').length") > 40
        assert page.evaluate(OUT_OF_ITS_BOX) == []
        pdf = unpacked(page.pdf())
    finally:
        page.close()
    assert re.search(rb"/FontFile\d?\s", pdf)
    assert b"/ToUnicode" in pdf
