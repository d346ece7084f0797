"""A page's end of the socket, for tests of the server."""

from __future__ import annotations

import json
import struct
import time
import urllib.request
from contextlib import contextmanager

from websockets.sync.client import connect

SMALL = {"points": "60", "hidden": "3"}


class Page:
    """A page's end of the socket."""

    def __init__(self, socket):
        self.socket = socket
        self.run = None

    def send(self, message):
        self.socket.send(message if isinstance(message, (str, bytes)) else json.dumps(message))

    def do(self, name, **more):
        self.send({"do": name, **more})

    def receive(self, *kinds):
        """The header of the next message of these kinds, and its arrays as bytes."""
        deadline = time.monotonic() + 60
        while True:
            data = self.socket.recv(timeout=max(0.1, deadline - time.monotonic()))
            (length,) = struct.unpack_from("<I", data)
            header = json.loads(data[4 : 4 + length])
            if not kinds or header["kind"] in kinds:
                header["bytes"] = data[4 + length :]
                return header

    def picture(self):
        self.do("ready")
        return self.receive("picture")

    def is_well(self):
        """Whether it still gets what it asks for."""
        self.do("pause")
        self.do("set", values={"log_loss": "on"})
        while self.receive("scene")["settings"]["log_loss"] != "on":
            pass
        self.do("set", values={"log_loss": "off"})
        while self.receive("scene")["settings"]["log_loss"] != "off":
            pass
        return True


@contextmanager
def opened(address, texts=SMALL, run=None, origin=None, hello=None, cookie=None):
    url = address.replace("http", "ws") + "/live"
    headers = {"Cookie": cookie} if cookie else {}
    options = {"max_size": None, "close_timeout": 5, "proxy": None, "additional_headers": headers}
    with connect(url, origin=origin, **options) as socket:
        page = Page(socket)
        page.send(hello if hello is not None else {"do": "open", "address": texts, "run": run})
        page.welcome = page.receive("welcome")
        page.run = page.welcome["run"]
        page.scene = page.receive("scene")
        yield page


@contextmanager
def reopened(address, run):
    """A page that shows a run again, as soon as the server has noticed that the page before is gone."""
    for _ in range(100):
        with opened(address, {}, run) as page:
            if page.run == run:
                yield page
                return
        time.sleep(0.1)
    raise AssertionError(f"the run {run} is not shown again")


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status, answer.headers, answer.read()
