"""The site's Explorer: its files, and a person who uses it in Chromium, under a path of a file server."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import expect

from playground.pages.explorer import ENTRIES
from playground.results.explorer import EXAMPLES, picture

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
site_explorer = import_module("site_explorer")
site_python = import_module("site_python")

START = 120_000  # milliseconds that Python may take to start on a busy machine


def test_its_choices_are_those_of_python(tmp_path: Path) -> None:
    site_explorer.add_explorer(tmp_path)
    choices = json.loads((tmp_path / "explorer" / "choices.json").read_text("utf-8"))
    assert choices["examples"] == EXAMPLES
    in_the_page = (tmp_path / "explorer" / "address.js").read_text("utf-8")
    read = re.findall(r'^ {4}(\w+): \{ otherwise: (?:"(\w+)")?', in_the_page, re.MULTILINE)
    assert [name for name, _ in read] == [entry.name for entry in ENTRIES.values()]
    assert [default for _, default in read[1:]] == [entry.default for entry in ENTRIES.values()][1:]


def test_its_files_name_no_other_host(tmp_path: Path) -> None:
    site_explorer.add_explorer(tmp_path)
    for path in (tmp_path / "explorer").iterdir():
        assert "//" not in re.sub(r"(?m)^\s*// .*|(?<=[;,{}]) // .*", "", path.read_text("utf-8")), path.name


def test_graphviz_must_be_the_one_that_is_listed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(site_python, "KEPT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"needs @viz-js/viz@[\d.]+: install Node.js"):
        site_explorer.add_drawings(tmp_path / "site")
    (version,) = (name.rpartition("@")[2] for name in site_python.FILES["npm"] if "viz" in name)
    (tmp_path / f"viz-js-viz-{version}.tgz").write_bytes(b"another one")
    with pytest.raises(SystemExit, match=r"is not the file that is listed: its sha256 differs"):
        site_explorer.add_drawings(tmp_path / "again")


# In a browser


@pytest.fixture(scope="module")
def site(site: str) -> str:
    """The address of the site, on a server that has it under a path."""
    return f"{site}/"


@pytest.fixture
def page(browser, site, request):
    """A page that can ask for the site's files, and nothing else. At the end, nothing may have gone wrong.

    A service worker would fetch the files itself: there is none where a test puts a script in a file's place.
    """
    without = "stand_in" in request.fixturenames
    context = browser.new_context(service_workers="block" if without else "allow")
    troubles = []

    def pass_on(route) -> None:
        if route.request.url.startswith(site):
            return route.continue_()
        troubles.append(f"asked for {route.request.url}")
        route.abort()

    context.route("**/*", pass_on)
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    yield context.new_page()
    context.close()
    assert troubles == []


def visit(page, site, **query) -> None:
    page.goto(f"{site}explorer/?" + "&".join(f"{name}={quote(value)}" for name, value in query.items()))


def write(page, text: str) -> None:
    page.get_by_role("textbox", name="Expression").fill(text)
    page.keyboard.press("Control+Enter")


def drawing(page, words: str):
    return page.get_by_role("group", name=re.compile(words))


def cell(page, words: str):
    return page.get_by_role("cell", name=words, exact=True)


@pytest.mark.slow
@pytest.mark.browser
def test_an_expression_its_value_its_gradient_and_its_drawings(page, site) -> None:
    visit(page, site)
    expect(page.get_by_text("Chain rule")).to_be_visible()  # before Python is there
    expect(page.get_by_role("status").first).to_have_text(re.compile("^(Python|needle) .* …$"))
    write(page, "x = 3\ny = x * x * x")  # is computed when Python is there
    drawing(page, "computational graph of y").wait_for(timeout=START)
    for words in ("y", "27", "x", "3"):
        expect(cell(page, words).first).to_be_visible()
    expect(page.locator(".gradient")).to_have_text("27")

    page.get_by_text("Gradient graph", exact=True).click()
    shown = drawing(page, "gradient graph of y")
    shown.wait_for()
    page.get_by_role("searchbox", name="Search the drawing").fill("adjoint of x")
    expect(page.locator(".count")).to_have_text(re.compile(r"\d"))
    assert parse_qs(urlsplit(page.url).query) == {"text": ["x = 3\ny = x * x * x"], "view": ["gradient"]}

    page.get_by_text("Second order", exact=True).click()
    drawing(page, r"gradient graph of x\.grad").wait_for()
    page.get_by_text("Step through", exact=True).click()
    page.get_by_text("Forward, node 1 of").wait_for()
    page.get_by_role("button", name="Next").click()
    page.get_by_text("Forward, node 2 of").wait_for()
    page.get_by_text("Memory", exact=True).click()
    page.get_by_text("y keeps alive").first.wait_for(timeout=START)

    page.go_back()
    page.get_by_text("Forward, node 1 of").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_a_mistake_is_a_sentence_with_its_place_and_a_drawing(page, site) -> None:
    visit(page, site, text="X = [[1, 2]]\nY = tanh(X) @ X\nY + <b>1</b>")
    page.get_by_text("Line 3:").wait_for(timeout=START)
    expect(page.locator("#value b, #remarks b")).to_have_count(0)
    write(page, "X = [[1, 2]]\nY = tanh(X) @ X\nY + 1")
    page.get_by_text("Line 2: matmul").wait_for()
    expect(page.locator("mark")).to_have_text("tanh(X) @ X")
    drawing(page, "graph up to @, which failed").wait_for()
    write(page, "constant(3)")
    page.get_by_text("This value is a constant").wait_for()
    page.get_by_text("Gradient graph", exact=True).click()
    page.get_by_text("A constant has no gradient.").wait_for()
    expect(page.locator("#picture")).to_be_empty()


@pytest.mark.slow
@pytest.mark.browser
def test_files_of_a_drawing_which_is_the_one_that_is_drawn_here(page, site) -> None:
    text = EXAMPLES["Matrix product"]
    visit(page, site, text=text, style="d2l", rankdir="TB", view="gradient")
    drawing(page, "gradient graph of y").wait_for(timeout=START)
    for kind, begin in [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!doctype html>")]:
        with page.expect_download() as download:
            page.get_by_role("button", name=kind.upper(), exact=True).click()
        assert download.value.suggested_filename == f"gradient.{kind}"
        file = Path(download.value.path()).read_bytes()
        assert file.startswith(begin)
        if kind == "svg":
            assert parts(file.decode()) == parts(picture(text, "gradient", "d2l", "TB").svg())


def parts(svg: str) -> tuple[list[str], ...]:
    """The words of a drawing, and its nodes, edges and frames."""
    return sorted(re.findall(r"<text [^>]*>([^<]*)", svg)), sorted(re.findall(r'data-key="([^"]*)"', svg))


# The page without Python: a script in place of its worker.

ANSWERS = """
const result = { html: '<div class="explorer">computed</div>', remarks: [], leaves: [] };
onmessage = ({ data: { id, name, given } }) => {
  if (given.text === "die") throw new Error("out of memory");
  postMessage({ working: true });
  if (given.text === "endless") return;
  postMessage({ id, answer: JSON.stringify(name === "compute" ? result : { html: `<b>${given.view}</b>` }) });
};
postMessage({ ready: true });
"""


@pytest.fixture
def stand_in(page):
    """A function that puts this script in the worker's place."""

    def put(script: str) -> None:
        answer = lambda route: route.fulfill(body=script, content_type="text/javascript")  # noqa: E731
        page.route("**/explorer/worker.js", answer)

    return put


@pytest.mark.slow
@pytest.mark.browser
def test_what_takes_too_long_is_stopped_and_the_next_is_computed(page, site, stand_in) -> None:
    stand_in(ANSWERS)
    asking = (ROOT / "browser" / "explorer" / "asking.js").read_text("utf-8")
    quick = asking.replace("LONGEST = 15", "LONGEST = 0.5")
    assert quick != asking
    page.route("**/asking.js", lambda route: route.fulfill(body=quick, content_type="text/javascript"))
    visit(page, site, text="endless")
    page.get_by_text("This took longer than 0.5 seconds, so it was stopped.").wait_for()
    write(page, "1 + 1")
    page.get_by_text("computed").wait_for()
    page.get_by_text("forward", exact=True).wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_a_worker_that_dies_is_told_and_begun_anew(page, site, stand_in) -> None:
    stand_in(ANSWERS)
    visit(page, site, text="die")
    page.get_by_text("Python stopped: ").wait_for()
    expect(page.get_by_role("link", name="other pages")).to_have_attribute("href", "../")
    page.get_by_role("textbox", name="Expression").fill("1 + 1")
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("computed").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_a_browser_without_webassembly_is_told(page, site) -> None:
    page.add_init_script("delete WebAssembly.instantiate; WebAssembly = undefined")
    visit(page, site)
    page.get_by_text("needs WebAssembly").wait_for()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_an_address_that_is_not_possible_is_told(page, site, stand_in) -> None:
    stand_in(ANSWERS)
    visit(page, site, view="constructor", rankdir="TB", text="x" * 2001)
    said = page.get_by_text("The page's address has")
    expect(said).to_contain_text("at most 2,000 characters, and there are 2,001")
    expect(said).to_contain_text("view=constructor (one of forward, gradient, second, steps, memory)")
    expect(page.get_by_role("textbox", name="Expression")).to_have_value(next(iter(EXAMPLES.values())))
    expect(page.get_by_role("combobox", name="Direction")).to_have_value("TB")


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 390, 760, 1280])
def test_nothing_is_cut_off(page, site, stand_in, width) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    stand_in(ANSWERS)
    visit(page, site)
    page.get_by_text("computed").wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
