"""Drawings in a web page: what is in the piece of HTML, and what a person does with it in a real browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

import needle as ndl
import viz
from needle import nn
from viz import interactive

STATIC = Path(viz.__file__).parent / "static"


@pytest.fixture(scope="module")
def loss() -> ndl.Tensor:
    """Of a network with modules in modules."""
    rng = np.random.default_rng(0)
    block = nn.Sequential(nn.Linear(3, 3, rng=rng), nn.ReLU(), nn.Linear(3, 3, rng=rng))
    model = nn.Sequential(nn.Linear(2, 3, rng=rng), nn.ReLU(), nn.Residual(block), nn.Linear(3, 2, rng=rng))
    x = ndl.Tensor(rng.normal(size=(4, 2)), requires_grad=False)
    return nn.SoftmaxLoss()(model(x), ndl.Tensor([0, 1, 1, 0], requires_grad=False))


@pytest.fixture(scope="module")
def network(loss) -> viz.Drawing:
    return viz.draw(loss, names={"loss": loss}, depth=0)


@pytest.fixture(scope="module")
def gradient(loss) -> viz.Drawing:
    return viz.draw_gradient(loss, names={"loss": loss}, depth=0)


def data_of(drawing: viz.Drawing) -> dict:
    packed = re.search(r'data-needle-data="([^"]*)"', drawing.html())[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_the_piece_holds_the_picture_and_a_script(example) -> None:
    drawing = viz.draw(example.v4, names=vars(example))
    html = drawing.html()
    image = re.search(
        r'<img alt="([^"]*)" style="max-width:100%" src="data:image/svg\+xml;base64,([^"]*)">', html
    )
    assert image[1] == drawing.title
    assert base64.b64decode(image[2]).decode() == drawing.svg()
    assert html.count("<script") == html.count("</script") == 1
    assert drawing._repr_html_() == html
    assert viz.draw(example.v4, names=vars(example)).html() == html


def test_a_drawing_without_groups_is_laid_out_once(example) -> None:
    data = data_of(viz.draw(example.v4, names=vars(example)))
    assert data["groups"] == {}
    assert list(data["pictures"]) == [""]
    assert data["pictures"][""].count('data-key="v') == 0
    assert 'data-key="n1"' in data["pictures"][""]


def test_each_group_has_a_picture_of_its_inside(network) -> None:
    data = data_of(network)
    titles = {key: group["title"] for key, group in data["groups"].items()}
    assert [titles[key] for key in titles if not data["groups"][key]["parent"]] == [
        "Sequential",
        "SoftmaxLoss",
    ]
    assert set(data["pictures"]) == {"", *titles, "legend"}
    assert "parameter: trained" in data["pictures"]["legend"]  # of what is inside the groups
    whole = data["pictures"][""]
    assert "Sequential" in whole
    assert "Residual" not in whole
    outer = next(key for key, title in titles.items() if title == "Sequential")
    assert "Residual" in data["pictures"][outer]
    assert data["groups"][outer]["size"] == len([v for v in network.graph.variables if v.group]) - 5


@pytest.mark.slow
def test_levels_open_one_after_another(loss) -> None:
    data = data_of(viz.draw_gradient(loss))
    assert all(set(a) < set(b) for a, b in pairwise(data["levels"]))
    assert len(data["levels"]) > 1
    assert data["levels"][-1] == data["open"]
    assert data_of(viz.draw_gradient(loss, depth=2))["levels"] == []


def test_what_groups_hold_is_bounded(loss, monkeypatch) -> None:
    monkeypatch.setattr(interactive, "MOST_VARIABLES", 20)
    data = data_of(viz.draw(loss, depth=0))
    assert not data["groups"].keys() <= data["pictures"].keys()
    assert {key for key, group in data["groups"].items() if not group["parent"]} <= data["pictures"].keys()
    raised = data_of(viz.draw(loss, depth=0, limit=500))
    assert raised["groups"].keys() < raised["pictures"].keys()


@pytest.mark.slow
@pytest.mark.browser
def test_a_group_without_a_picture_says_how_much_it_holds(show, loss, monkeypatch) -> None:
    monkeypatch.setattr(interactive, "MOST_VARIABLES", 15)
    page = show(viz.draw(loss, depth=0).html())
    button(page, "Open Sequential").click()
    assert button(page, "Open Residual").count() == 0
    title = page.locator("[data-key]", has_text="Residual").locator("title")
    assert "10 nodes, more than this drawing holds" in title.text_content()


def test_what_a_user_wrote_is_text(tmp_path) -> None:
    x = ndl.Tensor([1.0])
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    drawing = viz.draw(x + 1, names={hostile: x, '"><b>': x + 2})
    text = drawing.save(tmp_path / "graph.html").read_text(encoding="utf-8")
    assert text.count("<script") == text.count("</script") == 1
    assert "onerror" not in text
    assert text.count("<img") == 1


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in (STATIC / name for name in [*interactive._MODULES, "drawing.css"]):
        addresses = re.findall(r"https?://[^\s\"'`]*", path.read_text("utf-8"))
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}
        assert "</script" not in path.read_text("utf-8")
        assert "@import" not in path.read_text("utf-8")


# ---- In a browser


@pytest.fixture
def show(browser, tmp_path):
    """Show HTML as a page on disk; at the end, nothing may have gone wrong in it or left this machine."""
    pages, troubles = [], []

    def show(html: str, *, width: int = 1280, ready: bool = True, **options):
        options = {"reduced_motion": "reduce", "viewport": {"width": width, "height": 800}} | options
        page = browser.new_page(**options)
        pages.append(page)
        page.on(
            "console", lambda message: message.type in ("error", "warning") and troubles.append(message.text)
        )
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request",
            lambda request: (
                request.url.startswith(("file:", "data:", "blob:")) or troubles.append(request.url)
            ),
        )
        path = tmp_path / f"{len(pages)}.html"
        path.write_text(html, encoding="utf-8")
        page.goto(path.as_uri())
        if ready:
            page.locator(".view").first.wait_for()
            page.wait_for_function(
                "() => document.querySelector('[data-needle-drawing]').shadowRoot"
                ".querySelector('.world').getAttribute('transform')"
            )
        return page

    yield show
    for page in pages:
        page.close()
    assert not troubles


READABLE = 9 / 11 - 1e-3  # the scale at which numbers of 11 points are 9 pixels high


def see_all(page) -> None:
    """Have the whole in view, even if it is small."""
    button(page, "Fit").dblclick()


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def look(page, nth=0) -> tuple[float, float, float]:
    """Where the first drawing's picture stands in its view, and how large it is drawn."""
    x, y, scale = map(float, re.findall(r"-?[\d.]+", transform(page, nth)))
    return x, y, scale


def transform(page, nth=0) -> str:
    return page.locator(".world").nth(nth).get_attribute("transform")


BOXES = """() => [...document.querySelectorAll("[data-needle-drawing]")].flatMap(({shadowRoot}) =>
    [...shadowRoot.querySelectorAll(".view .sheet")].map((sheet) => {
        const shown = (element) => element.checkVisibility() && element.getBoundingClientRect().width > 0
        const frames = [...sheet.querySelectorAll(":scope > g > g > .frame")]
        const nodes = [...sheet.querySelectorAll(":scope > g > .node")].map(
            (node) => node.querySelector("path, polygon, ellipse"))
        return [...frames, ...nodes].filter(shown).map((element) => {
            const {x, y, right, bottom} = element.getBoundingClientRect()
            return [x, y, right, bottom]
        })
    }).filter((boxes) => boxes.length))"""


# The middle of each node that can be seen.
PLACES = """() => {
    const {shadowRoot} = document.querySelector("[data-needle-drawing]")
    const shapes = [...shadowRoot.querySelectorAll(".view .node")].map(
        (node) => [node.dataset.key, node.querySelector("path, polygon, ellipse").getBoundingClientRect()])
    return Object.fromEntries(shapes.filter(([, {width}]) => width).map(
        ([key, {x, y, width, height}]) => [key, [x + width / 2, y + height / 2]]))
}"""


def assert_no_overlap(page) -> int:
    """No two boxes of a picture meet, and each picture within a group is in the group's frame."""
    sheets = page.evaluate(BOXES)
    for boxes in sheets:
        for (left, top, right, bottom), (x, y, u, v) in combinations(boxes, 2):
            assert right <= x + 0.5 or u <= left + 0.5 or bottom <= y + 0.5 or v <= top + 0.5
    for i, boxes in enumerate(sheets[1:], 1):
        left, top, right, bottom = np.array(boxes).T
        others = [box for other in sheets[:i] + sheets[i + 1 :] for box in other]
        assert any(
            x < left.min() and y < top.min() and right.max() < u and bottom.max() < v for x, y, u, v in others
        )
    return len(sheets)


@pytest.mark.browser
@pytest.mark.parametrize(
    "width", [360, *[pytest.param(width, marks=pytest.mark.slow) for width in (800, 1600)]]
)
def test_the_drawing_fits_the_page(show, network, tmp_path, width) -> None:
    page = show(network.save(tmp_path / "graph.html").read_text("utf-8"), width=width)
    assert not page.locator("img").is_visible()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    view = page.locator(".view").bounding_box()
    # On a phone, where all of it would be too small to read, it is the beginning that is there.
    seen = page.locator('[data-key="n1"]' if width < 400 else ".sheet").first.bounding_box()
    assert view["x"] <= seen["x"]
    assert seen["x"] + seen["width"] <= view["x"] + view["width"]
    assert seen["y"] + seen["height"] <= view["y"] + view["height"]
    assert READABLE <= look(page)[2] <= 4 / 3 + 1e-3


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.slow)])
def test_open_all_and_fit_end_where_one_can_read(show, gradient, width) -> None:
    page = show(gradient.html(), width=width)
    for name in ("Open all", "Fit"):
        button(page, name).click()
        assert look(page)[2] >= READABLE
        view = page.locator(".view").bounding_box()
        first = page.locator('[data-key="n1"]').bounding_box()
        assert view["x"] <= first["x"] < first["x"] + first["width"] <= view["x"] + view["width"]
    see_all(page)
    assert look(page)[2] < READABLE
    sheet = page.locator(".sheet").first.bounding_box()
    assert view["x"] <= sheet["x"] < sheet["x"] + sheet["width"] <= view["x"] + view["width"]


@pytest.mark.slow
@pytest.mark.browser
def test_without_scripts_the_image_shows(show, network) -> None:
    page = show(network.html(), java_script_enabled=False, ready=False)
    assert page.locator("img").bounding_box()["width"] > 300


@pytest.mark.browser
def test_groups_open_and_close(show, gradient) -> None:
    page = show(gradient.html())
    closed = page.locator(".sheet").first.bounding_box()
    assert assert_no_overlap(page) == 1
    opened = button(page, "Open Sequential").first
    assert opened.get_attribute("aria-expanded") == "false"
    opened.click()
    assert button(page, "Close Sequential").first.get_attribute("aria-expanded") == "true"
    assert button(page, "Close Sequential").count() == 2  # its gradient opens with it
    assert assert_no_overlap(page) == 3
    button(page, "Open Residual").first.click()
    assert assert_no_overlap(page) == 5
    see_all(page)
    button(page, "Open SoftmaxLoss").last.click()
    assert assert_no_overlap(page) == 7
    see_all(page)
    button(page, "Close Sequential").last.click()
    assert assert_no_overlap(page) == 3
    button(page, "Close SoftmaxLoss").first.click()
    see_all(page)
    assert page.locator(".sheet").first.bounding_box() == pytest.approx(closed, abs=0.5)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("rankdir", ["LR", pytest.param("TB", marks=pytest.mark.slow)])
def test_adjoints_stay_in_the_columns_of_their_variables(show, loss, rankdir) -> None:
    """Also in open groups that hold other open groups."""
    drawing = viz.draw_gradient(loss, rankdir=rankdir, depth=0)
    page = show(drawing.html())
    button(page, "Open all").click()
    places = page.evaluate(PLACES)
    parameters = {x.key for x in drawing.graph.variables if x.kind == "parameter"}
    columns = [column for column in drawing.graph.columns if column[0] in parameters]
    assert len(columns) == 8
    for column in columns:
        first, *others = (places[key][rankdir == "TB"] for key in column)
        assert others == pytest.approx([first] * len(others), abs=2)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("rankdir", ["LR", "TB"])
@pytest.mark.parametrize("style", ["needle", "dark"])
def test_nothing_overlaps_with_all_groups_open(show, loss, rankdir, style) -> None:
    drawing = viz.draw_gradient(loss, rankdir=rankdir, style=style, depth=0)
    page = show(drawing.html())
    button(page, "Open all").click()
    assert assert_no_overlap(page) == 1 + len(data_of(drawing)["groups"])
    button(page, "Close all").click()
    assert assert_no_overlap(page) == 1


@pytest.mark.slow
@pytest.mark.browser
def test_a_result_is_drawn_beside_its_closed_group_or_where_it_is_made(show) -> None:
    model = nn.Sequential(nn.ReLU(), nn.Linear(2, 3))
    y = model(ndl.Tensor([[1.0, 2.0]]))
    page = show(viz.draw(y, depth=0).html())
    for opened in ("Sequential", "Linear"):
        assert page.locator("[data-key]:visible", has_text="output").count() == 1
        button(page, f"Open {opened}").click()
    assert page.locator("[data-key]:visible", has_text="output").count() == 1


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.slow)])
def test_the_legend_fits_the_page(show, gradient, width) -> None:
    page = show(gradient.html(), width=width)
    entries = [entry.bounding_box() for entry in page.locator(".legend svg").all()]
    assert len(entries) > 5
    assert max(entry["x"] + entry["width"] for entry in entries) < width - 8
    assert page.get_by_role("img", name="parameter: trained").is_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_a_level_of_modules_is_opened_as_a_whole(show, loss) -> None:
    """And the wider the page, the more of them."""
    html = viz.draw_gradient(loss).html()
    opened = [show(html, width=width).locator(".bar:visible").count() for width in (400, 1280, 4000)]
    sizes = {0}
    for level in data_of(viz.draw_gradient(loss))["levels"]:
        groups = data_of(viz.draw_gradient(loss))["groups"]
        sizes.add(sum(groups[key]["size"] > 1 for key in level))
    assert opened == sorted(opened)
    assert opened[0] < opened[-1]
    assert set(opened) <= sizes


@pytest.mark.slow
@pytest.mark.browser
def test_the_groups_open_at_a_depth_are_open_at_first(show, loss) -> None:
    page = show(viz.draw(loss, depth=1).html())
    assert button(page, "Close Sequential").count() == 1
    assert button(page, "Open Residual").is_visible()


@pytest.mark.browser
@pytest.mark.slow
def test_a_transition_ends_where_a_step_does(show, network) -> None:
    page = show(network.html(), reduced_motion="no-preference")
    button(page, "Open Sequential").click()
    page.wait_for_function("""() => document.querySelector("[data-needle-drawing]").shadowRoot
        .querySelector(".inside")?.style.opacity === "1" """)
    other = show(network.html())
    button(other, "Open Sequential").click()
    assert look(page) == pytest.approx(look(other), abs=0.1)
    assert page.evaluate(BOXES)[1][0] == pytest.approx(other.evaluate(BOXES)[1][0], abs=0.5)


@pytest.mark.slow
@pytest.mark.browser
def test_dragging_moves_and_does_not_click(show, network) -> None:
    page = show(network.html())
    x, y, scale = look(page)
    box = button(page, "Open Sequential").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 35, steps=4)
    page.mouse.up()
    assert look(page) == pytest.approx((x + 40, y + 15, scale), abs=0.1)
    assert button(page, "Open Sequential").is_visible()
    button(page, "Fit").click()
    assert look(page) == pytest.approx((x, y, scale), abs=0.1)


#: Keeps each hint that is shown: it is gone in a moment.
KEEP_HINTS = """() => {
    const {shadowRoot} = document.querySelector("[data-needle-drawing]")
    const hint = shadowRoot.querySelector(".hint")
    window.hints = []
    new MutationObserver(() => hint.classList.contains("shown") && hints.push(hint.innerText))
        .observe(hint, {attributes: true})
}"""


@pytest.mark.browser
@pytest.mark.slow
def test_the_wheel_zooms_only_with_a_key(show, network) -> None:
    page = show(f"{network.html()}<div style='height:3000px'></div>")
    x, y, scale = look(page)
    view = page.locator(".view").bounding_box()
    at = (120, 60)
    page.mouse.move(view["x"] + at[0], view["y"] + at[1])
    page.keyboard.down("Control")
    before = transform(page)
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    expect(page.locator(".world").first).not_to_have_attribute("transform", before, timeout=30_000)
    u, v, larger = look(page)
    assert larger > 1.3 * scale
    assert ((at[0] - u) / larger, (at[1] - v) / larger) == pytest.approx(
        ((at[0] - x) / scale, (at[1] - y) / scale), abs=0.1
    )
    assert page.evaluate("scrollY") == 0

    page = show(f"{network.html()}<div style='height:3000px'></div>")
    before = look(page)
    view = page.locator(".view").bounding_box()
    page.mouse.move(view["x"] + 100, view["y"] + 60)
    page.evaluate(KEEP_HINTS)
    page.mouse.wheel(0, 120)
    page.wait_for_function("scrollY > 50")
    assert look(page) == before
    page.wait_for_function("hints.length")
    assert "scroll to zoom" in page.evaluate("hints[0]")


@pytest.mark.slow
@pytest.mark.browser
def test_two_fingers_zoom_and_one_moves(show, network) -> None:
    page = show(network.html(), has_touch=True)
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *xs: float) -> None:
        points = [{"x": x, "y": 120, "id": i} for i, x in enumerate(xs)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    scale = look(page)[2]
    touch("touchStart", 200)
    touch("touchStart", 200, 260)
    for i in range(1, 6):
        touch("touchMove", 200 - 6 * i, 260 + 6 * i)
    touch("touchEnd")
    x, y, larger = look(page)
    assert larger == pytest.approx(2 * scale, rel=0.1)
    touch("touchStart", 200)
    for i in range(1, 6):
        touch("touchMove", 200 - 10 * i)
    touch("touchEnd")
    assert look(page) == pytest.approx((x - 50, y, larger), abs=1)


@pytest.mark.browser
def test_the_keyboard_does_all_of_it(show, network) -> None:
    page = show(network.html())
    first = look(page)
    page.locator(".view").focus()
    page.keyboard.press("+")
    assert look(page)[2] == pytest.approx(1.3 * first[2], abs=0.01)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("-")
    assert look(page)[2] == pytest.approx(first[2], abs=0.01)
    assert look(page)[0] < first[0]
    page.keyboard.press("0")
    assert look(page) == pytest.approx(first, abs=0.1)
    page.keyboard.press("Tab")  # to the first variable, and on to the first group
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert button(page, "Close Sequential").is_visible()
    page.keyboard.press("Space")  # the focus is on the title now
    assert button(page, "Open Sequential").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("relu")
    assert page.locator(".count").inner_text() != ""


LIT = """() => {
    const {shadowRoot} = document.querySelector("[data-needle-drawing]")
    const lit = [...shadowRoot.querySelectorAll(".node.lit, .edge.lit")].map(({dataset}) => dataset.key)
    return [lit.sort(), shadowRoot.querySelector(".choosing .node:not(.lit)").checkVisibility()]
}"""


@pytest.mark.slow
@pytest.mark.browser
def test_the_pointer_and_the_keyboard_show_all_about_a_node(show, example) -> None:
    page = show(viz.draw(example.v4, names=vars(example)).html())
    about = page.locator(".about")
    page.locator('[data-key="n3"]').hover()
    assert about.inner_text().split("\n")[0] == "v3 (1,) · float32 · cpu() · 4 B · needs gradient"
    assert about.locator("td").all_inner_texts() == ["2"]
    assert "v3 = v2 + 1" in about.inner_text()
    assert re.search(r"conftest.py, line \d+", about.inner_text())
    near = ["n2", "n3", "n3_op", "n4", "n4_op"]
    edges = ["n2->n3_op", "n3->n4_op", "n3_op->n3", "n4_op->n4"]
    assert page.evaluate(LIT)[0] == sorted(near + edges)
    box = about.bounding_box()
    assert 0 <= box["x"] < box["x"] + box["width"] <= 1280
    page.mouse.move(2, 2)
    assert about.is_hidden()
    assert page.locator(".lit").count() == 0
    page.locator(".view").focus()
    page.keyboard.press("Tab")
    assert "Tensor([0.0])" in about.inner_text()  # the leaf v1
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert "v3 = v2 + 1" in about.inner_text()
    page.keyboard.press("ArrowLeft")
    assert "v2 = ndl.exp(v1)" in about.inner_text()


@pytest.mark.slow
@pytest.mark.browser
def test_what_repeats_is_opened_at_any_round(show, example) -> None:
    y = example.v1
    for _ in range(100):
        y = (y + 1) * 1.5
    page = show(viz.draw_gradient(y, names={}).html())
    forward, back = page.locator("[data-rounds]").all()
    about = page.locator(".about")
    forward.click()
    assert about.locator("tr").all_inner_texts() == [
        "n4\t= n3 + 1\t= [2.5]", "n5\t= n4 × 1.5\t= [3.75]"
    ]  # fmt: skip
    assert "of 98" in about.inner_text()
    page.keyboard.type("3")  # the number was marked
    assert about.locator("tr").all_inner_texts()[1].startswith("n9\t= n8 × 1.5\t")
    button(page, "Last").click()
    assert about.locator("input").input_value() == "98"
    assert about.locator("tr").all_inner_texts()[1].startswith("n199\t= n198 × 1.5\t")
    page.keyboard.press("Escape")
    assert about.is_hidden()
    back.focus()
    page.keyboard.press("Enter")
    page.keyboard.type("98")
    assert about.locator("tr").all_inner_texts()[0].startswith("adjoint of n199\t= ")
    page.mouse.click(*(page.locator(".view").bounding_box()[side] + 5 for side in "xy"))
    assert about.is_hidden()


@pytest.mark.slow
@pytest.mark.browser
def test_a_tap_shows_what_hovering_does(show, example) -> None:
    page = show(viz.draw(example.v4, names=vars(example)).html(), width=390, has_touch=True)
    page.locator('[data-key="n2"]').tap()
    assert "v2 = ndl.exp(v1)" in page.locator(".about").inner_text()
    page.locator("input").first.tap()
    page.locator(".view").tap(position={"x": 3, "y": 3})
    assert page.locator(".about").is_hidden()


@pytest.mark.slow
@pytest.mark.browser
def test_a_matrix_is_shown_as_a_table(show) -> None:
    x = ndl.Tensor(np.arange(600).reshape(20, 30))
    with ndl.scope("block"):
        y = x * 1
    page = show(viz.draw(y, depth=0, names={"x": x}).html())
    page.locator('[data-key="n1"]').hover()
    cells = page.locator(".about tr").first.locator("td").all_inner_texts()
    assert cells == [*map(str, range(12)), "…"]
    assert page.locator(".about tr").count() == 13
    assert set(page.evaluate(LIT)[0]) >= {"n1", "g1"}


@pytest.mark.slow
@pytest.mark.browser
def test_searching_opens_what_hides_and_goes_there(show, network) -> None:
    page = show(network.html(), width=700)
    field = page.get_by_role("searchbox")
    field.fill("parameter (1, 3)")
    assert page.locator(".count").inner_text() == "3 found"
    assert page.locator(".rings .hiding").count() == 1  # around the closed Sequential
    assert button(page, "Close Sequential").count() == 0 or not button(page, "Close Sequential").is_visible()
    view = page.locator(".view").bounding_box()
    for i in range(3):
        field.press("Enter")
        assert page.locator(".count").inner_text() == f"{i + 1} of 3"
        ring = page.locator(".rings .current").bounding_box()
        assert view["x"] - 8 <= ring["x"]
        assert ring["x"] + ring["width"] <= view["x"] + view["width"] + 8
    assert button(page, "Close Residual").is_visible()
    assert_no_overlap(page)
    field.press("Shift+Enter")
    assert page.locator(".count").inner_text() == "2 of 3"
    field.fill("no such thing")
    assert page.locator(".count").inner_text() == "none"
    field.press("Escape")
    assert page.locator(".count").inner_text() == ""
    assert page.locator(".rings rect").count() == 0


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(("text", "found"), [("loss", 2), ("(4, 2) constant", 2), ("mask", 1)])
def test_names_shapes_and_operators_are_found(show, network, text, found) -> None:
    page = show(network.html())
    page.get_by_role("searchbox").fill(text)
    assert page.locator(".count").inner_text() == f"{found} found"


@pytest.mark.slow
@pytest.mark.browser
def test_drawings_on_one_page_do_not_disturb_each_other(show, network, example) -> None:
    plain = viz.draw(example.v4).html()
    page = show("<h1>Two and one</h1>" + network.html() + network.html() + plain + network.html())
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-needle-drawing]')].every("
        "({shadowRoot}) => shadowRoot?.querySelector('.world')?.hasAttribute('transform'))"
    )
    assert page.locator(".view").count() == 4
    button(page, "Open Sequential").nth(1).click()
    assert [len(page.locator(".view").nth(i).locator(".sheet").all()) for i in range(4)] == [1, 2, 1, 1]
    assert page.locator("[data-do=all]:visible").count() == 3  # there is nothing to open in the plain one


@pytest.mark.slow
@pytest.mark.browser
def test_the_page_and_the_drawing_keep_their_styles(show, network) -> None:
    style = (
        "<style>* { font-size: 40px !important; color: red } button, svg { display: none !important }</style>"
    )
    page = show(f"{style}<p>text</p><button hidden>page</button>{network.html()}")
    assert page.locator(".tools").bounding_box()["height"] < 60
    assert page.locator(".view svg").is_visible()
    assert page.locator("p").evaluate("p => getComputedStyle(p).fontFamily") == show(
        f"<p>text</p>{network.html()}"
    ).locator("p").evaluate("p => getComputedStyle(p).fontFamily")


@pytest.mark.slow
@pytest.mark.browser
def test_the_drawing_follows_the_width_of_the_page(show, gradient) -> None:
    page = show(gradient.html(), width=1280)
    wide, before = look(page)[2], transform(page)
    page.set_viewport_size({"width": 380, "height": 800})
    expect(page.locator(".world").first).not_to_have_attribute("transform", before, timeout=30_000)
    assert look(page)[2] < wide
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.slow
@pytest.mark.browser
def test_on_paper_the_whole_picture_shows(show, network) -> None:
    page = show(network.html())
    page.emulate_media(media="print")
    assert page.locator("img").is_visible()
    assert not page.locator(".view").is_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_in_jupyterlab_a_drawing_lives_on_in_the_saved_notebook(open_notebook, jupyterlab) -> None:
    page = open_notebook(
        "import needle as ndl, viz\nfrom needle import nn\n"
        "model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())\n"
        "viz.draw(model(ndl.Tensor([[1.0, 2.0]])), depth=0)"
    )
    button(page, "Open Sequential").click()
    button(page, "Close Sequential").wait_for()
    page.get_by_role("searchbox").fill("dd")  # a shortcut of the notebook, were it not for the field
    assert page.locator(".count").inner_text() == "none"
    assert page.locator(".jp-CodeCell").count() == 1
    jupyterlab.run(page, "docmanager:save")
    page.wait_for_timeout(500)
    jupyterlab.visit(page, f"{jupyterlab.opened}.ipynb")
    button(page, "Open Sequential").click()
    button(page, "Close Sequential").wait_for()
