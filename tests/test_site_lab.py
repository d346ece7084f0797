"""A lecture in the site's JupyterLite, used in Chromium where something is missing or ends."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

START = 120_000  # milliseconds that a lecture may take to open on a busy machine
KERNEL = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
RUN = f"""code => new Promise(resolve => {{
  const asked = {KERNEL}.requestExecute({{ code }});
  let said = "";
  asked.onIOPub = ({{ content }}) => said += content.text ?? content.evalue ?? "";
  asked.done.then(() => resolve(said), () => resolve(said));
}})"""

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture
def page(browser):
    context = browser.new_context()
    yield context.new_page()
    context.close()


def visit(page, site: str) -> None:
    page.goto(f"{site}/lab/lab/index.html?path=05_computational_graph.ipynb")


def wait_for_python(page) -> None:
    page.wait_for_function(f"{KERNEL}?.status === 'idle'", timeout=START)


def trouble(page, words: str):
    return page.get_by_role("alert").filter(has_text=re.compile(words))


def test_python_that_dies_is_told_and_starts_anew(page, site) -> None:
    visit(page, site)
    wait_for_python(page)
    assert (
        page.evaluate(RUN, "[bytearray(500_000_000) for _ in range(20)]") == ""
    )  # a MemoryError: it has no words
    page.evaluate(f"() => void ({RUN})('from _pyodide_core import trigger_fatal_error as die; die()')")
    told = trouble(page, "Python has stopped.*Restart Kernel.*intentionally triggered")
    told.wait_for(timeout=START)
    told.get_by_role("button", name="Close").click()
    expect(told).to_have_count(0)
    page.evaluate(f"() => {KERNEL}.restart()")
    assert page.evaluate(RUN, "import needle as ndl; print(ndl.Tensor([6]) * 7)") != ""


def test_a_browser_without_webassembly_is_told(page, site) -> None:
    page.add_init_script("WebAssembly = undefined")
    visit(page, site)
    out = trouble(page, "no WebAssembly").get_by_role("link", name="Read the lecture")
    expect(out).to_have_attribute("href", "../../book/index.html")


@pytest.mark.parametrize(
    "missing", ["undefined", "{ open() { throw new DOMException('', 'SecurityError') } }"]
)
def test_a_browser_that_keeps_nothing_is_told(page, site, missing) -> None:
    page.add_init_script(f"Object.defineProperty(window, 'indexedDB', {{ value: {missing} }})")
    visit(page, site)
    trouble(page, "keeps nothing.*download your work").wait_for(timeout=START)
    wait_for_python(page)


def test_a_full_disk_is_told(page, site) -> None:
    address = "{0.scheme}://{0.netloc}".format(urlsplit(site))
    quota = {"origin": address, "quotaSize": 1000}
    page.context.new_cdp_session(page).send("Storage.overrideQuotaForOrigin", quota)
    visit(page, site)
    trouble(page, "no room left.*free room").wait_for(timeout=START)


def test_what_was_written_is_there_after_the_page_was_hidden(page, site) -> None:
    visit(page, site)
    wait_for_python(page)
    cell = "window.jupyterapp.shell.currentWidget.content.model.cells.get(0).sharedModel"
    page.evaluate(f"() => {cell}.setSource('written here')")
    page.evaluate("""() => {
      Object.defineProperty(document, "hidden", { value: true });
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    }""")
    page.wait_for_function("!window.jupyterapp.shell.currentWidget.context.model.dirty")
    visit(page, site)
    page.get_by_text("written here").wait_for(timeout=START)


def test_a_phone_shows_the_lecture_over_its_whole_width(browser, site) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    visit(page, site)
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget && window.jupyterapp.shell.leftCollapsed", timeout=START
    )
    wait_for_python(page)
    page.wait_for_function("document.querySelector('.jp-Notebook').clientWidth > 330")
    context.close()
