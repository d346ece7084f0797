"""The playground's addresses on Streamlit's server: its page, its files, and the socket that shows a run."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import streamlit
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit import config
from streamlit.web.server.server_util import is_url_from_allowed_origins

from ..pages import TITLES
from ..results.take_home import MOST_BYTES
from ..training.settings import Settings
from ..training.trainer import Trainer
from . import commands
from .runs import Run, Runs, Viewer

__all__ = ["lifespan", "routes"]

_STREAMLIT = Path(streamlit.__file__).parent / "static"
#: Stands before all of Streamlit's own page, so that not even its first moment is white on a dark screen.
_HEAD = """<head>
<style>
html {{ background: {LIGHT_THEME[backgroundColor]}; color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{ html {{ background: {DARK_THEME[backgroundColor]}; }} }}
</style>
<script>window.__streamlit = {{ ...{themes}, BACKEND_BASE_URL: new URL(".", location.href).href }}</script>
<script type="module" src="stage/addresses.js"></script>"""
_COLOURS = ("primaryColor", "backgroundColor", "secondaryBackgroundColor", "textColor")
_STAGE = Path(__file__).parents[1] / "stage"
#: Characters or bytes of a message from a page: a run to import is the largest.
_LONGEST = MOST_BYTES
#: Messages to a page that wait to be sent. Of more, the oldest is dropped.
_MOST_UNSENT = 200
_TRY_AGAIN_LATER = 1013
_REPLACED = 4000

_runs = Runs()


class _Modules(StaticFiles):
    """The page's files. A browser asks whether it has the present ones: they must belong to the page."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


def routes() -> list[BaseRoute]:
    """The routes, below the path that the server is configured for."""
    base = (config.get_option("server.baseUrlPath") or "").strip("/")
    base = f"/{base}" if base else ""
    return [
        Route(f"{base}/", _page),
        Route(f"{base}/stage/font.woff2", _font),
        *[Route(f"{base}/{name}", _streamlit_page) for name in TITLES],
        Mount(f"{base}/stage", _Modules(directory=_STAGE)),
        WebSocketRoute(f"{base}/live", _live),
    ]


@asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[None]:
    """Get ready before the first person comes: import what computes, and compile the first network."""
    threading.Thread(target=_warm_up, daemon=True).start()
    yield


def _warm_up() -> None:
    trainer = Trainer(Settings())
    for _ in range(2):
        trainer.epoch()
    trainer.wait()


async def _page(_: Request) -> FileResponse:
    return FileResponse(_STAGE / "index.html", headers={"Cache-Control": "no-cache"})


async def _streamlit_page(_: Request) -> HTMLResponse:
    """Streamlit's own page, which is told the colours and where its server is.

    Otherwise it would begin in other colours, and look below the page's address first, where nothing is.
    """
    themes = {
        f"{kind.upper()}_THEME": {name: config.get_option(f"theme.{kind}.{name}") for name in _COLOURS}
        for kind in ("light", "dark")
    }
    page = (_STREAMLIT / "index.html").read_text("utf-8")
    return HTMLResponse(page.replace("<head>", _HEAD.format(**themes, themes=json.dumps(themes)), 1))


async def _font(_: Request) -> Response:
    """The font of Streamlit's own pages, so that all pages have the same."""
    found = next((_STREAMLIT / "static" / "media").glob("SourceSansVF-Upright*.woff2"), None)
    if found is None:
        return Response(status_code=204)  # the page takes the system's
    return FileResponse(found, headers={"Cache-Control": "max-age=86400"})


class _Outbox:
    """Messages that wait to be sent to a page, from any thread.

    Of a picture or a scene only the newest is sent.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Any, bytes] = {}
        self._count = 0
        self._is_there = asyncio.Event()

    def put(self, message: bytes, latest: str | None = None) -> None:
        """Send a message soon; in the place of an unsent one, if both are the `latest` of a kind."""
        self._loop.call_soon_threadsafe(self._put, message, latest)

    def _put(self, message: bytes, latest: str | None) -> None:
        self._count += 1
        self._waiting[latest or self._count] = message
        self._is_there.set()
        if len(self._waiting) > _MOST_UNSENT:  # it does not read: it is gone, or means harm
            del self._waiting[next(iter(self._waiting))]

    async def send_to(self, socket: WebSocket) -> None:
        """Send what comes, until the page is gone."""
        while True:
            await self._is_there.wait()
            first = next(iter(self._waiting))
            message = self._waiting.pop(first)
            if not self._waiting:
                self._is_there.clear()
            await socket.send_bytes(message)


async def _live(socket: WebSocket) -> None:
    origin = socket.headers.get("origin")
    if origin is not None and not is_url_from_allowed_origins(origin) and not _is_same(origin, socket):
        await socket.close(1008)
        return
    await socket.accept()
    outbox = _Outbox()
    sending = asyncio.create_task(outbox.send_to(socket))
    viewer = Viewer(outbox.put, replaced=_closing(socket))
    run: Run | None = None
    try:
        address, name, token = commands.opening(await _receive(socket))
        run = await _answer(lambda opened: _runs.open(viewer, address, name, opened, token))
        if run is None:
            await socket.close(_TRY_AGAIN_LATER, "The playground is full. Try again in a few minutes.")
            return
        while True:
            command = await _receive(socket)
            # Nothing more is read until it is done: who sends too much waits, and nobody else does.
            await _answer(functools.partial(_runs.command, run, viewer, command))
    except (WebSocketDisconnect, RuntimeError):  # Starlette's error for a socket that is closed by now
        pass
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        if run is not None:
            _runs.leave(run, viewer)


def _closing(socket: WebSocket) -> Callable[[], object]:
    """What closes a socket, from any thread, since its page has another one by now."""
    loop = asyncio.get_running_loop()

    async def close() -> None:
        with suppress(RuntimeError):  # it is closed already
            await socket.close(_REPLACED)

    return lambda: asyncio.run_coroutine_threadsafe(close(), loop)


def _is_same(origin: str, socket: WebSocket) -> bool:
    """Whether a page of this very server asks."""
    return origin.partition("://")[2] == socket.headers.get("host")


async def _receive(socket: WebSocket) -> Any:
    """What a page sends: JSON, or bytes as they are; None if it is nothing of these."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    data = message.get("text")
    if data is None:
        data = message.get("bytes") or b""
    if len(data) > _LONGEST:
        await socket.close(1009)
        raise WebSocketDisconnect(1009)
    if isinstance(data, bytes):
        return data
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


async def _answer(ask: Callable[[Callable[..., None]], None]) -> Any:
    """What the thread of the runs answers, by the function that `ask` gets."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Any] = loop.create_future()

    def set_result(value: Any) -> None:
        if not found.done():
            found.set_result(value)

    def take(value: Any = None) -> None:
        loop.call_soon_threadsafe(set_result, value)

    ask(take)
    return await found
