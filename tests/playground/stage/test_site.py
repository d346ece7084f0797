"""The playground on the site, where Python runs in the browser: how it starts, and what can go wrong."""

from __future__ import annotations

import pytest

from .page import button, epochs, figure, is_backed_up, is_shown, pause, play, status, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FORBIDDEN = """for (const name of ["sessionStorage", "localStorage"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException("forbidden", "SecurityError"); } });
}"""


def titles(page):
    return [text.replace("\u00a0", " ") for text in page.locator(".head .title").all_inner_texts()]


def test_the_page_is_there_before_python_and_play_is_remembered(visitor, address):
    page = visitor(bypass_csp=False)  # nothing that the page does is forbidden to it
    page.goto(f"{address}/")
    until(page, lambda: figure(page, "train_loss") == "0.5922", "the network is shown")
    assert not page.evaluate("Boolean(heard.picture)")
    button(page, "Play").click()
    page.wait_for_timeout(1500)  # longer than a choice usually waits for its answer
    page.get_by_role("radio", name="Spiral").dispatch_event("click")
    if not page.evaluate("Boolean(heard.picture)"):
        assert status(page).endswith("… Then it plays.")
        assert button(page, "Pause").is_visible()
    until(page, lambda: epochs(page) > 3, "it plays", seconds=90)
    until(page, lambda: "dataset=spiral" in page.url, "what was chosen counts")
    assert not page.locator(".loading").is_visible()


def test_any_address_is_shown_before_python(visitor, address):
    page = visitor(service_workers="block")
    page.route("**/pyodide/**", lambda route: None)  # it never comes
    page.goto(f"{address}/?dataset=spiral&hidden=3-8:relu&bogus=1&points=1e9&inputs=x1,max(x1,x2)")
    until(page, lambda: titles(page) == ["Layer 1 (tanh)", "Layer 2 (ReLU)", "Output (tanh)"], "its layers")
    assert page.get_by_role("radio", name="spiral", exact=True).is_checked()
    assert page.get_by_role("button", name="Input max(x1,x2)").get_attribute("aria-pressed") == "true"
    assert figure(page, "train_loss") == "–"
    assert page.locator("[data-note=counts]").inner_text() == "250 to learn from, 250 to test"
    page.get_by_role("button", name="Network: one fewer layer").click()
    until(page, lambda: titles(page) == ["Layer 1 (tanh)", "Output (tanh)"], "a choice is shown, too")
    page.get_by_role("radio", name="plane", exact=True).dispatch_event("click")
    until(page, lambda: titles(page)[-1] == "Output (linear)", "and other data")


def test_another_address_of_the_page_keeps_python(visitor, address):
    page = visitor()
    visit(page, address)
    play(page, lambda: epochs(page) > 3, "it learns")
    page.evaluate("worker.isTheFirst = true")
    for lesson in ("One straight line", "All neurons alike"):
        button(page, "Lessons").click()
        page.get_by_role("link", name=lesson).click()
        until(page, lambda: epochs(page) == 0 and status(page).startswith("Press Play"), "it begins")
        assert not page.locator("#lessons").is_visible()
        play(page, lambda: epochs(page) > 3, "it learns")
    page.go_back()
    until(page, lambda: "lesson=straight-line" in page.url and epochs(page) == 0, "the lesson before")
    page.get_by_role("link", name="Leave").click()
    until(page, lambda: not page.locator(".lesson").is_visible(), "the lesson is over")
    assert "?" not in page.url
    assert page.evaluate("worker.isTheFirst")


def test_a_browser_without_webassembly_is_told(visitor, address):
    page = visitor()
    page.add_init_script("Object.defineProperty(window, 'WebAssembly', { value: undefined })")
    page.goto(f"{address}/")
    until(page, lambda: "needs WebAssembly" in status(page), "it says so")


def test_a_window_that_keeps_nothing_learns(visitor, address):
    page = visitor(notes=True)
    page.add_init_script(FORBIDDEN)
    visit(page, address)
    play(page, lambda: epochs(page) > 3, "it learns")


def test_what_could_not_be_loaded_is_asked_for_again(visitor, address, troubles):
    page = visitor(service_workers="block")
    page.route("**/python/playground.js", lambda route: route.abort())
    page.goto(f"{address}/")
    until(page, lambda: status(page).startswith("Python could not be loaded"), "it says so")
    troubles.clear()
    page.unroute("**/python/playground.js")
    button(page, "Start again").click()
    until(page, lambda: page.evaluate("Boolean(heard.picture)"), "Python is there", seconds=90)


def test_a_reload_goes_on_from_the_backup(visitor, address):
    page = visitor()
    visit(page, address, dataset="xor")
    play(page, lambda: epochs(page) > 3, "it learns")
    is_backed_up(page)
    before = epochs(page), figure(page, "train_loss")
    page.evaluate("heard = {}")
    page.reload()
    until(page, lambda: epochs(page) > 3, "it is shown")
    assert (epochs(page), figure(page, "train_loss")) == before
    assert not page.evaluate("Boolean(heard.picture)")  # by what the page has kept
    is_shown(page)
    assert (epochs(page), figure(page, "train_loss")) == before
    visit(page, address, dataset="gaussian")  # another address is another run
    assert epochs(page) == 0


def test_a_worker_that_dies_loses_nothing(visitor, address, troubles):
    page = visitor()
    visit(page, address)
    play(page, lambda: epochs(page) > 3, "it learns")
    is_backed_up(page)
    before = epochs(page), figure(page, "train_loss")
    page.evaluate("worker.postMessage('what no page says')")
    until(page, lambda: status(page).startswith("Python stopped"), "it says so")
    troubles.clear()
    button(page, "Start again").click()
    until(page, lambda: status(page).startswith("This run goes on"), "the run is back", seconds=90)
    assert (epochs(page), figure(page, "train_loss")) == before
    button(page, "Play").click()
    until(page, lambda: epochs(page) > before[0], "it goes on")
    pause(page)
