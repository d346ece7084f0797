"""Downloads, from a server of this machine: found, brought, checked, refused, and explained when offline."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import struct
import threading
from functools import partial

import numpy as np
import pooch
import pytest

from needle import data
from needle.data.datasets import cifar10_dataset, mnist_dataset, ptb_dataset
from needle.data.downloads import Remote, check_md5, places, provide

FILES = {"/a.txt": b"the right text", "/wrong/a.txt": b"another text", "/b.txt": b"b" * 300_000}


@pytest.fixture
def server(monkeypatch):
    """A server of FILES; `asked` lists what it was asked for. /short/… breaks off in the middle."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            path = self.path.removeprefix("/short")
            if path not in FILES:
                self.send_error(404)
                return
            content = FILES[path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content if path == self.path else content[: len(content) // 2])

        def log_message(self, *args):
            pass

    asked: list[str] = []
    monkeypatch.setenv("no_proxy", "*")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.asked = asked
        running.url = f"http://127.0.0.1:{running.server_port}"
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """NEEDLE_DATA_DIR and the user's cache, both below `tmp_path`."""
    monkeypatch.setenv("NEEDLE_DATA_DIR", str(tmp_path / "chosen"))
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    return tmp_path / "chosen", tmp_path / "cache" / "needle-notebooks"


def is_right(path):
    if path.read_bytes() != FILES["/a.txt"]:
        raise ValueError("it is another text")


def anything(path):
    pass


def offline_url() -> str:
    """An address of this machine where nobody listens."""
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as closed:
        return f"http://127.0.0.1:{closed.server_port}"


def test_places(folders, monkeypatch):
    chosen, cache = folders
    assert places("mnist") == [chosen / "mnist", chosen, cache / "mnist"]
    monkeypatch.setenv("NEEDLE_DATA_DIR", "")
    assert places("mnist") == [cache / "mnist"]
    monkeypatch.setenv("NEEDLE_DATA_DIR", "~/data")
    assert "~" not in str(places("mnist")[0])


@pytest.mark.parametrize("where", [0, 1])
def test_what_is_there_is_not_downloaded(where, folders, server):
    place = folders[where] / "set"
    place.mkdir(parents=True)
    (place / "a.txt").write_bytes(b"put here by hand")
    assert provide("set", [Remote("a.txt", [server.url + "/a.txt"], is_right)]) == place
    assert server.asked == []
    assert (place / "a.txt").read_bytes() == b"put here by hand"


def test_what_is_missing_is_downloaded_once_with_a_progress_bar(folders, server, capfd):
    files = [
        Remote("a.txt", [server.url + "/a.txt"], is_right),
        Remote("b.txt", [server.url + "/b.txt"], anything),
    ]
    for _ in range(2):
        place = provide("set", files)
    assert place == folders[0] / "set"
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {
        "a.txt": FILES["/a.txt"],
        "b.txt": FILES["/b.txt"],
    }
    assert server.asked == ["/a.txt", "/b.txt"]
    shown = capfd.readouterr().err
    assert "a.txt" in shown
    assert "300k/300k" in shown


def test_without_a_chosen_folder_the_cache_is_used(folders, server, monkeypatch):
    monkeypatch.delenv("NEEDLE_DATA_DIR")
    place = provide("set", [Remote("a.txt", [server.url + "/a.txt"], is_right)])
    assert place == folders[1] / "set"
    assert (place / "a.txt").read_bytes() == FILES["/a.txt"]


def test_only_the_missing_file_is_downloaded(folders, server):
    place = folders[0] / "set"
    place.mkdir(parents=True)
    (place / "b.txt").write_bytes(b"mine")
    provide("set", [Remote(name, [f"{server.url}/{name}"], anything) for name in ("a.txt", "b.txt")])
    assert server.asked == ["/a.txt"]
    assert (place / "b.txt").read_bytes() == b"mine"


def test_the_next_mirror_is_tried(folders, server):
    urls = [offline_url() + "/a.txt", *(server.url + path for path in ("/missing", "/wrong/a.txt", "/a.txt"))]
    place = provide("set", [Remote("a.txt", urls, is_right)])
    assert server.asked == ["/missing", "/wrong/a.txt", "/a.txt"]
    assert [path.name for path in place.iterdir()] == ["a.txt"]
    is_right(place / "a.txt")


FAILURES = {
    "/wrong/a.txt": "it is another text",
    "/missing": "404 Not Found",
    "/short/b.txt": "ChunkedEncodingError",
}


@pytest.mark.parametrize(("path", "reason"), FAILURES.items())
def test_a_download_that_fails_leaves_nothing(path, reason, folders, server):
    with pytest.raises(OSError, match=f"tried {server.url}{path}: {reason}"):
        provide("set", [Remote("a.txt", [server.url + path], is_right)])
    assert list((folders[0] / "set").iterdir()) == []


def test_offline_one_sentence_says_what_to_do(folders):
    url = offline_url()
    with pytest.raises(OSError, match="cannot be downloaded") as caught:
        provide("set", [Remote("a.txt", [f"{url}/1", f"{url}/2"], is_right)])
    assert str(caught.value) == (
        "a.txt is missing and cannot be downloaded "
        f"(tried {url}/1: ConnectionError; {url}/2: ConnectionError): "
        f"put it into {folders[0] / 'set'} by hand, "
        "or let NEEDLE_DATA_DIR name the folder in which set/a.txt is"
    )


def test_an_md5_sum(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    check_md5("900150983cd24fb0d6963f7d28e17f72", tmp_path / "x")
    with pytest.raises(ValueError, match=f"MD5 sum of x should be {'0' * 32}, not 900150983cd24fb0"):
        check_md5("0" * 32, tmp_path / "x")


def idx(values) -> bytes:
    values = np.asarray(values, "uint8")
    return gzip.compress(
        struct.pack(f">{1 + values.ndim}I", 0x0800 + values.ndim, *values.shape) + values.tobytes()
    )


def test_mnist_is_downloaded_and_checked(folders, server, monkeypatch):
    small = {
        "t10k-images-idx3-ubyte.gz": idx(np.arange(8).reshape(2, 2, 2)),
        "t10k-labels-idx1-ubyte.gz": idx([1, 2]),
    }
    for name, content in small.items():
        monkeypatch.setitem(FILES, "/" + name, content)
        check = partial(mnist_dataset._check_unpacked, hashlib.sha256(gzip.decompress(content)).hexdigest())
        monkeypatch.setitem(mnist_dataset.FILES, name, Remote(name, [f"{server.url}/{name}"], check))
    assert len(data.mnist(train=False)) == 2
    assert sorted(path.name for path in (folders[0] / "mnist").iterdir()) == sorted(small)

    # Not what it should be, though a valid file; and no gzip at all.
    name = "t10k-labels-idx1-ubyte.gz"
    for content, reason in [(idx([1, 3]), "unpacks to something else"), (b"<html>", "Not a gzipped file")]:
        (folders[0] / "mnist" / name).unlink(missing_ok=True)
        monkeypatch.setitem(FILES, "/" + name, content)
        with pytest.raises(OSError, match=rf"{name} is missing and cannot be downloaded \(.*{reason}"):
            data.mnist(train=False)
        assert not (folders[0] / "mnist" / name).exists()


def test_where_the_data_sets_come_from():
    files = [*mnist_dataset.FILES.values(), cifar10_dataset.ARCHIVE, *ptb_dataset.FILES]
    assert len(files) == 7
    for file in files:
        assert all(url.startswith("https://") for url in file.urls)
        assert isinstance(file.check, partial)


@pytest.mark.parametrize(
    ("bring", "module", "name"),
    [(data.cifar10, cifar10_dataset, "ARCHIVE"), (data.ptb, ptb_dataset, "FILES")],
)
def test_other_data_sets_when_offline(bring, module, name, monkeypatch):
    offline = Remote("the-file", [offline_url()], anything)
    monkeypatch.setattr(module, name, offline if name == "ARCHIVE" else [offline])
    with pytest.raises(OSError, match="the-file is missing and cannot be downloaded"):
        bring()
