"""The player of steps as a page of its own, and as a part of another page, in a real browser."""

from __future__ import annotations

import pytest

import needle as ndl
import viz
from needle import nn

pytestmark = pytest.mark.browser

PLAYER = ".needle-steps"
EMBEDDED = "<!doctype html><meta charset='utf-8'><button>another</button>{player}"

IS_SEEN = """() => {
    const outer = document.querySelector(".needle-steps .picture").getBoundingClientRect()
    return [...document.querySelectorAll(".needle-steps svg .node:is(.current, .marked)")].every((node) => {
        const inner = node.getBoundingClientRect()
        return inner.left >= outer.left && inner.right <= outer.right
            && inner.top >= outer.top && inner.bottom <= outer.bottom
    })
}"""
RINGED = (
    """() => [...document.querySelectorAll(".needle-steps svg .node.current")].map((x) => x.dataset.key)"""
)
HEIGHT = "() => document.querySelector('.needle-steps .now').getBoundingClientRect().top"
SCALE = "() => document.querySelector('.needle-steps svg').getScreenCTM().a"
#: Waits until a scroll has come to its end.
RESTS = """() => new Promise((done) => {
    const view = document.querySelector(".needle-steps .picture")
    let [last, frames] = [null, 0]
    const look = () => {
        const now = `${view.scrollLeft},${view.scrollTop}`
        frames = now === last ? frames + 1 : 0
        last = now
        if (frames < 36) requestAnimationFrame(look)
        else done()
    }
    look()
})"""
SCROLLS = """() => {
    const view = document.querySelector(".needle-steps .picture")
    return view.scrollWidth > view.clientWidth || view.scrollHeight > view.clientHeight
}"""


@pytest.fixture(scope="module")
def network() -> viz.Steps:
    """Of a network, whose picture is larger than a page both across and down."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = ndl.Tensor([[1.0, 2.0, 3.0]], requires_grad=False)
    return viz.steps(nn.SoftmaxLoss()(model(x), ndl.Tensor([0], requires_grad=False)))


@pytest.fixture
def open_page(browser, tmp_path):
    """A function that opens text as a page."""
    pages, troubles = [], []

    def open_page(text: str, width: int = 700, height: int = 700, motion: str = "reduce"):
        path = tmp_path / f"{len(pages)}.html"
        path.write_text(text, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion=motion)
        pages.append(page)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(path.as_uri())
        page.locator(PLAYER).wait_for()
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not troubles


@pytest.fixture
def page_of(open_page, tmp_path):
    """A function that opens steps as a page of their own."""

    def page_of(steps: viz.Steps, **options):
        return open_page(steps.save(tmp_path / "saved.html").read_text("utf-8"), **options)

    return page_of


def count(page) -> str:
    return page.locator(f"{PLAYER} .count").inner_text()


def test_keys_work_at_once_in_a_page_of_its_own(example, page_of) -> None:
    page = page_of(viz.steps(example.v4))
    page.keyboard.press("ArrowRight")
    assert count(page) == "2 / 10"
    page.keyboard.press("End")
    assert count(page) == "10 / 10"
    page.mouse.click(5, 600)  # beside the player
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    page.get_by_role("button", name="Pause").wait_for()


def test_a_part_of_a_page_takes_neither_the_focus_nor_the_keys(example, open_page) -> None:
    page = open_page(EMBEDDED.format(player=viz.steps(example.v4).html()))
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="another").focus()
    page.keyboard.press("ArrowRight")
    assert count(page) == "1 / 10"
    page.locator(PLAYER).focus()
    page.keyboard.press("ArrowRight")
    assert count(page) == "2 / 10"


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1000])
def test_all_of_a_step_is_always_seen(network, page_of, width) -> None:
    page = page_of(network, width=width)
    assert page.evaluate(SCROLLS)
    top = page.evaluate(HEIGHT)
    for number in range(1, len(network) + 1):
        assert count(page) == f"{number} / {len(network)}"
        assert page.evaluate(IS_SEEN), number
        assert page.evaluate(HEIGHT) == top
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    assert page.evaluate(IS_SEEN)
    page.set_viewport_size({"width": 360, "height": 640})
    page.wait_for_function(IS_SEEN)


@pytest.mark.slow
def test_the_current_node_is_seen_after_keys_in_quick_succession(page_of) -> None:
    x = ndl.Tensor([1.0])
    for _ in range(40):
        x = ndl.tanh(x)
    page = page_of(viz.steps(x), motion="no-preference")
    for keys in (["ArrowRight"] * 25, ["ArrowLeft"] * 12, ["ArrowRight", "ArrowLeft"] * 3, ["End"]):
        for key in keys:
            page.keyboard.press(key)
        page.evaluate(RESTS)
        assert page.evaluate(IS_SEEN)


@pytest.mark.slow
def test_the_operator_at_work_has_a_ring(example, page_of) -> None:
    steps = viz.steps(example.v4, names=vars(example))
    keys = {x.name: x.key for x in steps.passes.graph.variables}
    page = page_of(steps)
    for frame in steps.passes.frames:
        if frame.title.endswith("what v4 passes on to v2 and v3"):
            results = {keys["of v2 via v4"], keys["adjoint of v3"]}
            assert set(page.evaluate(RINGED)) == {keys["adjoint of v4"], *(f"{x}_op" for x in results)}
            break
        page.keyboard.press("ArrowRight")


@pytest.mark.slow
def test_fit_shows_all_of_it_and_goes_back(network, page_of) -> None:
    page = page_of(network)
    fit = page.get_by_role("button", name="Fit")
    before = page.evaluate(SCALE)
    fit.click()
    assert page.evaluate(SCALE) < before
    assert not page.evaluate(SCROLLS)
    assert fit.get_attribute("aria-pressed") == "true"
    page.keyboard.press("0")
    assert page.evaluate(SCALE) == before
    page.keyboard.press("+")
    assert page.evaluate(SCALE) == pytest.approx(1.25 * before, rel=1e-3)
    assert page.evaluate(IS_SEEN)
    page.keyboard.press("-")
    assert page.evaluate(SCALE) == pytest.approx(before, rel=1e-3)


@pytest.mark.slow
def test_a_small_picture_has_nothing_to_fit(example, page_of) -> None:
    page = page_of(viz.steps(example.v4), width=1000)
    assert not page.get_by_role("button", name="Fit").is_visible()
    page.set_viewport_size({"width": 390, "height": 700})
    page.get_by_role("button", name="Fit").wait_for()


MATRIX = """() => {
    const matrix = [...document.querySelectorAll(".needle-steps .equation .matrix")].at(-1)
    const cells = [...matrix.children].map((x) => x.getBoundingClientRect())
    return ["top", "right"].map((side) => new Set(cells.map((x) => Math.round(x[side]))).size)
}"""
FITS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.mark.slow
def test_equations_show_matrices_row_by_row_and_fit_a_phone(page_of) -> None:
    X, W = ndl.Tensor([[1.0, 0.0], [-2.0, 1.0], [0.5, 3.0]]), ndl.Tensor([[1.0, 2.0, 1.5, -1.2345]] * 2)
    adjoint = ndl.Tensor([[0.12345, -0.98765, 0.45678, -0.11111]] * 3)
    steps = viz.steps(X @ W, out_grad=adjoint, names={"X": X, "W": W})
    page = page_of(steps, width=390)
    for _ in steps:
        assert page.evaluate(FITS)
        if page.locator(f"{PLAYER} .entry").count() and page.evaluate(MATRIX) == [2, 4]:
            words = page.locator(f"{PLAYER} .entry").last.inner_text().split()
            assert words[:4] == ["entry", "[0,", "1]", "="]
            break
        page.keyboard.press("ArrowRight")
    else:
        pytest.fail("no frame shows the gradient of W")
    shape = page.locator(f"{PLAYER} .name:has-text('Xᵀ') small").bounding_box()
    name = page.locator(f"{PLAYER} .name:has-text('Xᵀ')").bounding_box()
    assert shape["y"] > name["y"] + name["height"] / 2
