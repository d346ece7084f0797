"""People who open the playground's page, each with a browser of their own.

The playground as a person sees it: in a real browser, from a real server. Everything that a person can do on
the page has a test here. What colours, widths and places mean is read from the canvases' pixels;
numbers are compared with a Trainer of this process that has the same settings.

Some tests, of each kind of thing, run on the site's page as well: there Python runs in the browser.
"""

from __future__ import annotations

import pytest

from playground.testing import serve

from .page import HEAR

ON_THE_SITE = """
    play_pause_step_and_reset, a_learning_rate_counts_at_once, optimisers_and_schedules,
    a_lecturer_hides_controls_and_copies_the_link,
    data_controls, points_are_painted_and_erased, points_are_uploaded,
    inputs_go_on_and_off, layers_and_neurons_by_plus_and_minus, a_clicked_link_and_bias_can_be_changed,
    an_own_expression_is_an_input,
    the_address_holds_everything, a_link_of_tensorflow_playground_opens_here, a_lesson_asks_and_answers,
    a_phone_keeps_the_picture_free,
    travel_along_the_loss_curve, graphs_are_drawn, steps_are_walked, histograms_live,
    the_loss_surface_shows_the_path, take_home_and_import,
"""


def pytest_generate_tests(metafunc):
    if "address" in metafunc.fixturenames:
        is_there_too = f" {metafunc.function.__name__.removeprefix('test_')}," in ON_THE_SITE
        where = ["app", *([pytest.param("site", marks=pytest.mark.slow)] if is_there_too else [])]
        if metafunc.module.__name__.endswith("test_site"):
            where = ["site"]
        metafunc.parametrize("address", where, indirect=True, scope="module")


@pytest.fixture(scope="module")
def address(request):
    if request.param == "site":
        yield request.getfixturevalue("site") + "/playground"
    else:
        with serve() as (address, _):
            yield address


@pytest.fixture
def troubles():
    """What has gone wrong in the page, or left this machine. At the end of a test, nothing may have."""
    found: list[str] = []
    yield found
    assert not found


@pytest.fixture
def visitor(browser, address, troubles):
    """Opens a page of a person who was never here before; options are those of a browser's context."""
    opened = []

    def open_page(notes=False, **options):
        usual = {"viewport": {"width": 1024, "height": 720}, "bypass_csp": True}  # it would stop playwright
        context = browser.new_context(**{**usual, **options})
        opened.append(context)
        context.set_default_timeout(60_000)  # Python may have to start in the page
        context.add_init_script(HEAR)
        if not notes:
            context.add_init_script("location.host && localStorage.setItem('needle-notes', 'off')")
        watch(context, troubles)
        return context.new_page()

    yield open_page
    for context in opened:
        context.close()


def watch(context, troubles):
    own = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")
    stays = lambda url: url.startswith(own) or troubles.append(f"asked for {url}")  # noqa: E731
    context.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on("request", lambda request: stays(request.url))
    context.on("page", lambda page: page.on("websocket", lambda socket: stays(socket.url)))
    context.on(
        "response",
        lambda answer: answer.status < 400 or troubles.append(f"{answer.status} for {answer.url}"),
    )


@pytest.fixture
def page(visitor):
    return visitor()
