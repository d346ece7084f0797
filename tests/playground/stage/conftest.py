"""People who open the playground's page, each with a browser of their own.

The playground as a person sees it: in a real browser, from a real server. Everything that a person can do on
the page has a test here. What colours, widths and places mean is read from the canvases' pixels;
numbers are compared with a Trainer of this process that has the same settings.
"""

from __future__ import annotations

import pytest

from .page import HEAR


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
        context = browser.new_context(**{"viewport": {"width": 1024, "height": 720}, **options})
        opened.append(context)
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
