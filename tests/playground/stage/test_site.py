"""The playground on the site, where Python runs in the browser: how it starts, and what can go wrong."""

from __future__ import annotations

import pytest

from .page import button, epochs, figure, is_backed_up, is_shown, pause, play, status, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FORBIDDEN = """for (const name of ["sessionStorage", "localStorage"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException("forbidden", "SecurityError"); } });
}"""


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
    page.reload()
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
