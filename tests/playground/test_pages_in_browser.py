"""The pages that move in the browser, in Chromium: while one drags, and once all has come to rest."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from playground.pages import TITLES, classifier, maths

from .stage.page import address_now, until

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def visit(page, address, name, **query):
    page.goto(f"{address}/{name}?{urlencode(query)}")
    page.get_by_role("heading", level=2).wait_for()


def link(page, title):
    return page.get_by_role("link", name=title, exact=True)


def figure(page, name):
    return float(page.locator(f"[data-say={name}]").inner_text().replace("−", "-"))


def is_laid_out(page):
    """Wait until the page's element says something."""
    page.locator("[data-say]", has_text=re.compile(r"\d")).first.wait_for()


def at(page, **entries):
    """Wait until the page's address has these entries."""

    def has_them():
        found = parse_qs(urlsplit(address_now(page)).query)
        return entries.items() <= {name: texts[0] for name, texts in found.items()}.items()

    until(page, has_them, f"the address has {entries}")


def test_a_tangent_moves(page, address):
    visit(page, address, "maths", f="sin(2 * x)", x="0")
    slider = page.get_by_role("slider", name="x", exact=True)
    slider.wait_for()
    is_laid_out(page)
    computed = maths.compute.__wrapped__("sin(2 * x)", "curve", 3)
    for place in (140, 7):
        slider.evaluate(
            "(slider, x) => { slider.value = x; slider.dispatchEvent(new Event('input')); }",
            float(computed.places[place]),
        )
        assert figure(page, "x") == pytest.approx(computed.places[place], abs=1e-3)
        assert figure(page, "value") == pytest.approx(computed.values[place], rel=1e-3)
        assert figure(page, "slope") == pytest.approx(computed.slopes[0][place], rel=1e-3)
    slider.evaluate("slider => slider.dispatchEvent(new Event('change'))")
    at(page, x=f"{computed.places[7]:.6g}")
    curve = page.get_by_role("img", name=re.compile("curve of sin"))
    box = curve.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + 100)
    assert figure(page, "x") > 1


def test_a_gradient_moves(page, address):
    visit(page, address, "maths", mode="surface", g="x * x + 3 * y", x="1", y="0")
    page.get_by_role("slider", name="y", exact=True).wait_for()
    is_laid_out(page)
    assert (figure(page, "value"), figure(page, "x"), figure(page, "y")) == (1, 2, 3)
    page.get_by_role("slider", name="x", exact=True).press("ArrowRight")
    assert figure(page, "x") == pytest.approx(2.2)
    at(page, x="1.1")


def test_a_boundary_moves_and_steps(page, address):
    visit(page, address, "classifier", gradient="True")
    slider = page.get_by_role("slider", name="w1", exact=True)
    slider.wait_for()
    is_laid_out(page)
    slider.evaluate("slider => { slider.value = -2; slider.dispatchEvent(new Event('input')); }")
    points, labels = classifier._data.__wrapped__("gaussian", 0)
    here = classifier.measure(points, labels, {"w1": -2.0, "w2": -0.5, "b": 0.0})
    assert figure(page, "loss") == pytest.approx(here.loss, abs=6e-4)
    slider.evaluate("slider => slider.dispatchEvent(new Event('change'))")
    at(page, w1="-2")
    page.get_by_role("button", name="Take one step").click()
    until(page, lambda: re.search("w2=(?!-0.5)", address_now(page)), "the address follows")
    page.wait_for_function("w => Number(w.value) > -2", arg=slider.element_handle())
    assert figure(page, "loss") < here.loss


def test_an_element_and_its_cell_of_memory(page, address):
    visit(page, address, "tensor", view="a.T")
    element = page.get_by_role("button", name="element [2, 1]: 16, at position 6")
    element.hover()
    formula = page.locator(".formula")
    assert formula.inner_text() == "[2, 1] is at position offset + Σ index · stride = 0 + 2 · 1 + 1 · 4 = 6"
    page.get_by_role("button", name="position 7: 17, read by 1 index").click()
    assert formula.inner_text().startswith("Position 7 is read by [3, 1]:")
    assert page.locator(".chosen").count() == 2
    at(page, index="3,1")
    page.keyboard.press("ArrowLeft")
    assert formula.inner_text().startswith("Position 6 is read by [2, 1]:")


def test_a_tree_of_modules(page, address):
    visit(page, address, "modules")
    page.get_by_role("img", name="Sequential: 17,962 parameters").wait_for()
    page.get_by_role("spinbutton", name="Blocks").fill("4")
    page.get_by_role("spinbutton", name="Blocks").press("Enter")
    page.get_by_role("img", name="Sequential: 22,346 parameters").wait_for()
    at(page, blocks="4")


def test_a_digit_is_learned_drawn_and_read(page, address):
    page.set_default_timeout(60_000)  # on a busy machine it learns slowly
    visit(page, address, "digits", network="layers")
    sheet = page.get_by_role("application")
    sheet.wait_for()
    page.get_by_role("button", name="Learn 5 epochs").click()
    page.get_by_text(re.compile(r"epoch 5 · reads 9\d % of")).wait_for()
    page.get_by_role("button", name="Clear").click()
    page.locator("ol li.most").first.wait_for(state="detached")
    box = sheet.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"]
    page.mouse.move(x, y + 20)
    page.mouse.down()
    page.mouse.move(x, y + box["height"] - 20, steps=8)
    page.mouse.up()
    page.locator("li.most", has_text=re.compile("^1")).wait_for()
    assert page.get_by_role("img", name=re.compile("hidden unit")).count() == 16
    page.get_by_role("button", name="Start again").click()
    page.get_by_text("It has learned nothing yet").wait_for()
    page.get_by_text("epoch 0").wait_for()


def test_another_network_while_one_learns(page, address):
    visit(page, address, "digits", network="layers")
    sheet = page.get_by_role("application")
    sheet.wait_for()
    for name, units in (("Convolution", "kernel 0"), ("Fully connected", "hidden unit 0")):
        page.get_by_role("button", name="Learn 5 epochs").click()
        page.get_by_role("button", name="Pause").wait_for()
        page.mouse.move(5, 5)  # the button's tooltip goes away
        page.get_by_role("radio", name=name).click()
        page.get_by_text("epoch 0").wait_for()
        page.get_by_role("img", name=re.compile(units)).first.wait_for()
        page.get_by_role("button", name="Learn 5 epochs").wait_for()
        sheet.wait_for()


CHANGED = {
    "explorer": {"text": "x = 4\nx ** 3"},
    "maths": {"f": "x ** 3"},
    "classifier": {"data": "moons"},
    "tensor": {"view": "a.T"},
    "modules": {"network": "recurrent"},
    "digits": {"seed": "7"},
    "": {"dataset": "xor"},
}


def test_links_lead_back_to_what_was_on_each_page(page, address):
    for name, entries in CHANGED.items():
        page.goto(f"{address}/{name}?{urlencode(entries)}")
        link(page, "Playground").wait_for()
    for name, title in {**TITLES, "": "Playground"}.items():
        to = link(page, title)
        kept = re.compile(rf"{name}\?{next(iter(CHANGED[name]))}=")
        expect(to).to_have_attribute("href", kept, timeout=30_000)
        to.click()
        at(page, **CHANGED[name])
    assert urlsplit(address_now(page)).path == "/"
    expect(link(page, "Tensor")).to_have_attribute("href", re.compile("view=a.T"))


@pytest.mark.parametrize(("title", "path"), [("Tensor", "/tensor"), ("Playground", "/")])
def test_a_page_that_speaks_holds_nobody_back(page, address, title, path):
    visit(page, address, "maths", f="x ** 2")
    assert link(page, title).evaluate("link => link.pathname") == path
    page.get_by_role("slider", name="x", exact=True).evaluate(
        """(slider, link) => {
            link.click();
            slider.value = 1;
            slider.dispatchEvent(new Event("change"));
        }""",
        link(page, title).element_handle(),
    )
    until(page, lambda: urlsplit(address_now(page)).path == path, "the link has led to its page")
    page.wait_for_timeout(1000)
    assert urlsplit(address_now(page)).path == path


def test_kept_addresses_are_told_once_a_link_has_led_to_its_page(page, address):
    visit(page, address, "maths", f="x ** 2")
    page.get_by_role("link", name="Tensor", exact=True).wait_for()
    told = page.evaluate(f"""async () => {{
        sessionStorage.setItem("needle-addresses", JSON.stringify({{ digits: "?seed=7" }}));
        const {{ tell }} = await import("/stage/addresses.js?anew");
        {CLICK}
        return await new Promise((told) => tell((name, kept) => told([location.pathname, name, kept])));
    }}""")
    assert told == ["/tensor", "kept", {"digits": "?seed=7"}]


CLICK = "[...document.querySelectorAll('a')].find((link) => link.innerText === 'Tensor').click();"

FONTS = """() => {
    const fonts = new Set();
    const look = (root) => root.querySelectorAll("*").forEach((element) => {
        if (element.shadowRoot) look(element.shadowRoot);
        const writes = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!writes || element.closest("style, script, metadata")) return;
        fonts.add(getComputedStyle(element).fontFamily.split(",")[0]);
    });
    look(document.querySelector(".stMain"));
    return [...fonts].sort();
}"""


@pytest.mark.parametrize(
    ("name", "query", "picture"),
    [
        ("explorer", {"view": "gradient"}, "svg"),
        ("explorer", {"view": "steps"}, "svg"),
        ("explorer", {"view": "memory"}, "svg"),
        ("modules", {}, "svg"),
        ("maths", {}, "svg path"),
        ("maths", {"mode": "surface"}, "svg path"),
        ("classifier", {}, "svg circle"),
        ("tensor", {}, ".matrix"),
        ("digits", {}, ".views canvas"),
    ],
)
def test_words_have_one_font_and_code_another(page, address, name, query, picture):
    visit(page, address, name, **query)
    page.locator(f"[data-testid^=stBidi] {picture}").first.wait_for()
    fonts = set(page.evaluate(FONTS))
    assert '"Source Sans"' in fonts
    assert fonts <= {'"Material Symbols Rounded"', '"Source Code Pro"', '"Source Sans"'}


def test_no_moment_is_white_on_a_dark_screen(page, address):
    page.emulate_media(color_scheme="dark")
    page.route("**/static/js/*", lambda route: route.fulfill(content_type="text/javascript", body=""))
    page.goto(f"{address}/explorer")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(20, 23, 31)"
    assert page.evaluate("__streamlit.DARK_THEME.backgroundColor") == "#14171F"


@pytest.mark.parametrize("width", [390, 1024])
@pytest.mark.parametrize("name", ["maths", "classifier", "tensor", "modules", "digits"])
def test_nothing_is_cut_off(page, address, name, width):
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, address, name)
    page.locator("[data-testid=stBidiComponentRegular], [data-testid^=stBidi]").first.wait_for()
    page.wait_for_timeout(500)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
