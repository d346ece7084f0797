"""The book: a site made of the lectures, that needs no network and has no broken link."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.inventory import InventoryFile

import needle as ndl
import viz

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
make_book = import_module("make_book")
sys.path.insert(0, str(ROOT / "docs"))
book = import_module("conf")


@pytest.fixture(scope="module")
def address(site):
    """Where the site is served."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = partial(Quiet, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The book, in which one lecture has run."""
    output = tmp_path_factory.mktemp("book")
    command = [
        sys.executable,
        ROOT / "scripts/make_book.py",
        "--output",
        output,
        "--run",
        "07",
        "--jobs",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return output / "html"


def test_a_broken_link_and_a_request_are_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<a href="other.html#there">1</a> <a href="other.html#not">2</a> <a href="gone.html">3</a>'
        '<a href="https://example.org">4</a> <img src="https://example.org/x.png"> <img src="gone.png">'
        f'<a href="{make_book.REPOSITORY}/tree/main/needle/nn">5</a> '
        f'<a href="{make_book.REPOSITORY}/blob/main/gone.py">6</a>'
    )
    (tmp_path / "other.html").write_text(
        '<p id="there"></p> <script src="https://example.org/x.js"></script>'
    )
    assert sorted(make_book.faults(tmp_path)) == [
        "index.html: loads https://example.org/x.png",
        "index.html: no file for the link gone.html",
        "index.html: no file for the link gone.png",
        f"index.html: no such file in the repository: {make_book.REPOSITORY}/blob/main/gone.py",
        "index.html: no such place: other.html#not",
        "other.html: loads https://example.org/x.js",
    ]


def test_an_unknown_lecture_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["make_book.py", "--output", str(tmp_path), "--run", "7"])
    with pytest.raises(SystemExit):
        make_book.main()
    assert "--run 7: there is no such lecture; they are 01 to " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_links_to_other_lectures_stay_in_the_book():
    colab = "https://colab.research.google.com/github/somebody/course/blob/main/notebooks/05_computational_graph.ipynb"
    contents = "https://github.com/somebody/course/blob/main/notebooks/README.md"
    text = f"[05]({colab}), [all]({contents}), [code](https://github.com/somebody/course)"
    assert make_book.to_pages(text) == (
        "[05](05_computational_graph.ipynb), [all](index.md), [code](https://github.com/somebody/course)"
    )


def test_the_glossary_names_where_each_term_is_introduced():
    text = (ROOT / "notebooks/GLOSSARY.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^- \*\*(.+?)\*\*: .+\. \[(\d\d)\]\((.+)\)$", text)
    assert len(rows) == text.count("\n- ") > 40
    assert [term for term, *_ in rows] == sorted((term for term, *_ in rows), key=str.lower)
    lectures = {path.name: path for path in (ROOT / "notebooks").glob("*.ipynb")}
    for term, number, name in rows:
        assert name.startswith(number)
        assert f"**{term.lower()}**" in lectures[name].read_text(encoding="utf-8").lower(), term
    assert {name for *_, name in rows} >= set(lectures) - {
        "08_operators.ipynb"
    }  # which has rules, no new terms


def test_a_term_of_the_glossary_links_to_the_section_that_introduces_it():
    term = "- **seed**: where the walk begins. [07](07_reverse_mode.ipynb)"
    linked = term.replace(".ipynb", ".ipynb#1--the-adjoint-of-a-variable")
    assert make_book.to_sections(term) == linked
    unknown = term.replace("seed", "sowing")
    assert make_book.to_sections(unknown) == unknown


def written(formula):
    """A formula, as a page of the book has it."""
    page = SimpleNamespace(body=[])
    with pytest.raises(nodes.SkipNode):
        book.visit_math(page, nodes.math_block(formula, formula))
    return "".join(page.body)


def test_formulas_stand_below_each_other():
    rows = re.findall("<mtr>.*?</mtr>", written(r"\begin{aligned} m &= 1 \\ v &= \tfrac{1}{2} \end{aligned}"))
    assert len(rows) == 2
    assert all(row.count("<mtd") == 2 for row in rows)
    assert "<mfrac>" in rows[1]


@pytest.mark.parametrize("unknown", [r"\Big\lfloor", "&"])
def test_a_formula_that_cannot_be_written_ends_the_book(unknown):
    with pytest.raises(ExtensionError, match=r"does not know .* in this formula: a .* b"):
        written(f"a {unknown} b")


@pytest.mark.slow
def test_every_lecture_has_its_page_in_its_part(site):
    front = (site / "index.html").read_text(encoding="utf-8")
    lectures = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    assert lectures
    side = front.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    assert re.findall(r'href="(\d\d_\w+)\.html"', side) == lectures
    for title in list(make_book.PARTS.values())[:2]:
        assert f"{title}</span>" in side
    for name in lectures:
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert re.search(rf'<a class="run" href="https://colab[^"]+/{name}\.ipynb">', page)
        assert "Save a copy in Drive" not in page


@pytest.mark.slow
def test_a_lecture_has_its_pictures_once(site):
    page = (site / "07_reverse_mode.html").read_text(encoding="utf-8")
    assert page.count("data-needle-drag=") == 1
    assert "widget-state" not in page


@pytest.mark.slow
def test_the_reference_has_every_public_name(site):
    with open(site / "objects.inv", "rb") as file:
        kinds = InventoryFile.load(file, "", lambda _, name: name)
    names = {name for kind, found in kinds.items() if kind.startswith("py:") for name in found}
    last = {name.rpartition(".")[2] for name in names}
    modules = {
        "autograd",
        "backend_ndarray",
        "backend_selection",
        "data",
        "init",
        "nn",
        "ops",
        "optim",
        "parallel",
    }
    settings = {"BACKEND", "array_api"}
    families = {
        "Elementwise",
        "ElementwiseScalar",
        "Movement",
        "Pointwise",
        "Reduction",
    }  # operators' base classes
    assert set(ndl.__all__) - modules - settings - families <= last
    assert {f"viz.{name}" for name in viz.__all__} <= names
    for module in (ndl.nn, ndl.init, ndl.optim, ndl.parallel):
        assert set(module.__all__) <= last
    for page in (site / "reference").glob("*.html"):
        name_as_type = r"<strong>\w+</strong> \((?:<em>[\w, ]+</em>)+<em>,</em>\)"
        assert not re.search(name_as_type, page.read_text(encoding="utf-8")), page.name


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_lecture_moves_in_the_browser(address, browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    troubles = []
    page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    own = (address, "data:", "blob:")
    page.on("request", lambda asked: asked.url.startswith(own) or troubles.append(asked.url))
    page.goto(f"{address}/07_reverse_mode.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    question = page.locator(".needle-predict").first
    question.locator("summary").first.click()
    assert question.locator("details[open] p").first.is_visible()

    drag = page.locator(".needle-drag").first
    before = drag.inner_text()
    drag.get_by_role("slider").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('.needle-drag').innerText !== before", arg=before
    )

    steps = page.locator(".needle-steps").first
    steps.get_by_role("button", name="Next").click()
    steps.get_by_text("2 / 10").wait_for()
    page.locator("details", has_text="Solution").first.locator("summary").click()
    assert page.get_by_text("def adjoints_by_hand(a, b):").nth(1).is_visible()

    page.goto(f"{address}/search.html?q=adjoint")
    page.get_by_role("link", name="07 · Reverse mode").first.wait_for()
    context.close()
    assert troubles == []
