"""Downloads, from a server of this machine: found, brought, checked, refused, and explained when offline."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import pickle
import struct
import tarfile
import threading

import numpy as np
import pooch
import pytest

from needle import data
from needle.data.datasets import cifar10_dataset, mnist_dataset, ptb_dataset
from needle.data.downloads import Remote, places, provide

FILES = {"/a.txt": b"the right text", "/wrong/a.txt": b"another text", "/b.txt": b"b" * 300_000}


def a_file(*urls, name="a.txt") -> Remote:
    """The file as it is in FILES, at other addresses."""
    return Remote(name, "sha256:" + hashlib.sha256(FILES["/" + name]).hexdigest(), urls)


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
    assert provide("set", [a_file(server.url + "/a.txt")]) == place
    assert server.asked == []
    assert (place / "a.txt").read_bytes() == b"put here by hand"


def test_what_is_missing_is_downloaded_once_with_a_progress_bar(folders, server, capfd, monkeypatch):
    said = []
    monkeypatch.setattr(pooch.get_logger(), "info", lambda words, *names: said.append(words % names))
    files = [a_file(f"{server.url}/{name}", name=name) for name in ("a.txt", "b.txt")]
    for _ in range(2):
        place = provide("set", files)
    assert place == folders[0] / "set"
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {
        "a.txt": FILES["/a.txt"],
        "b.txt": FILES["/b.txt"],
    }
    assert server.asked == ["/a.txt", "/b.txt"]
    assert [str(place / file.name) in words for file, words in zip(files, said, strict=True)] == [True, True]
    assert "300k/300k" in capfd.readouterr().err


def test_without_a_chosen_folder_the_cache_is_used(folders, server, monkeypatch):
    monkeypatch.delenv("NEEDLE_DATA_DIR")
    place = provide("set", [a_file(server.url + "/a.txt")])
    assert place == folders[1] / "set"
    assert (place / "a.txt").read_bytes() == FILES["/a.txt"]


def test_only_the_missing_file_is_downloaded(folders, server):
    place = folders[0] / "set"
    place.mkdir(parents=True)
    (place / "b.txt").write_bytes(b"mine")
    provide("set", [a_file(f"{server.url}/{name}", name=name) for name in ("a.txt", "b.txt")])
    assert server.asked == ["/a.txt"]
    assert (place / "b.txt").read_bytes() == b"mine"


def test_the_next_mirror_is_tried(folders, server):
    urls = [offline_url() + "/a.txt", *(server.url + path for path in ("/missing", "/wrong/a.txt", "/a.txt"))]
    place = provide("set", [a_file(*urls)])
    assert server.asked == ["/missing", "/wrong/a.txt", "/a.txt"]
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {"a.txt": FILES["/a.txt"]}


FAILURES = {
    "/wrong/a.txt": "what came has another checksum",
    "/missing": "404 Not Found",
    "/short/b.txt": "ChunkedEncodingError",
}


@pytest.mark.parametrize(("path", "reason"), FAILURES.items())
def test_a_download_that_fails_leaves_nothing(path, reason, folders, server):
    with pytest.raises(OSError, match=rf"a\.txt cannot be downloaded \({server.url}{path}: {reason}"):
        provide("set", [a_file(server.url + path)])
    assert list((folders[0] / "set").iterdir()) == []


def test_offline_one_sentence_says_what_to_do(folders):
    url = offline_url()
    with pytest.raises(OSError, match="cannot be downloaded") as caught:
        provide("set", [a_file(f"{url}/1", f"{url}/2")])
    assert str(caught.value) == (
        f"a.txt cannot be downloaded ({url}/1: ConnectionError; {url}/2: ConnectionError): "
        f"put it into {folders[0] / 'set'} yourself, "
        "or set NEEDLE_DATA_DIR to the folder that has set/a.txt"
    )


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
        monkeypatch.setitem(mnist_dataset.FILES, name, a_file(f"{server.url}/{name}", name=name))
    assert len(data.mnist(train=False)) == 2
    assert sorted(path.name for path in (folders[0] / "mnist").iterdir()) == sorted(small)

    # A valid file, but not the one that it should be.
    name = "t10k-labels-idx1-ubyte.gz"
    (folders[0] / "mnist" / name).unlink()
    monkeypatch.setitem(FILES, "/" + name, idx([1, 3]))
    with pytest.raises(OSError, match=rf"{name} cannot be downloaded \(.*another checksum"):
        data.mnist(train=False)
    assert not (folders[0] / "mnist" / name).exists()


def cifar10_archive(path, numbers):
    """An archive of small batches, each of one image whose pixels are all the same number."""
    with tarfile.open(path, "w:gz") as tar:
        for name, number in zip(
            cifar10_dataset.TRAIN_BATCHES + cifar10_dataset.TEST_BATCHES, numbers, strict=True
        ):
            batch = {b"data": np.full((1, 3072), number, "uint8"), b"labels": [number]}
            (path.parent / name).write_bytes(pickle.dumps(batch))
            tar.add(path.parent / name, f"{cifar10_dataset.FOLDER}/{name}")
            (path.parent / name).unlink()
    return path.read_bytes()


@pytest.fixture
def archive(tmp_path, server, monkeypatch):
    """The content of an archive like CIFAR-10's, which the server has."""
    name = cifar10_dataset.ARCHIVE.name
    monkeypatch.setitem(FILES, "/" + name, cifar10_archive(tmp_path / name, range(6)))
    monkeypatch.setattr(cifar10_dataset, "ARCHIVE", a_file(f"{server.url}/{name}", name=name))
    return FILES["/" + name]


def test_cifar10_is_downloaded_and_unpacked_once(archive, folders, server):
    for _ in range(2):
        assert data.cifar10(train=False).y.tolist() == [5]
        assert data.cifar10().y.tolist() == [0, 1, 2, 3, 4]
    assert server.asked == ["/" + cifar10_dataset.ARCHIVE.name]
    assert sorted(path.name for path in (folders[0] / "cifar10").iterdir()) == [
        cifar10_dataset.FOLDER,
        cifar10_dataset.ARCHIVE.name,
    ]
    (folders[0] / "cifar10" / cifar10_dataset.ARCHIVE.name).unlink()  # from now on the folder is enough
    assert data.cifar10(train=False).y.tolist() == [5]


@pytest.mark.parametrize("where", [0, 1])
def test_an_archive_that_is_there_is_only_unpacked(where, archive, folders, server):
    place = folders[where] / "cifar10"
    place.mkdir(parents=True)
    (place / cifar10_dataset.ARCHIVE.name).write_bytes(archive)
    assert data.cifar10(train=False).y.tolist() == [5]
    (place / cifar10_dataset.FOLDER / "data_batch_2").unlink()  # as if somebody had stopped it halfway
    assert data.cifar10().y.tolist() == [0, 1, 2, 3, 4]
    assert server.asked == []


def test_an_archive_with_another_checksum_is_never_unpacked(archive, folders, server, tmp_path):
    place = folders[0] / "cifar10"
    place.mkdir(parents=True)
    path = place / cifar10_dataset.ARCHIVE.name
    other = cifar10_archive(path, range(1, 7))
    FILES["/" + path.name] = other  # neither what is there nor what the server has is right
    with pytest.raises(OSError, match="another checksum"):
        data.cifar10(train=False)
    assert [p.name for p in place.iterdir()] == [path.name]
    FILES["/" + path.name] = archive
    assert data.cifar10(train=False).y.tolist() == [5]  # the right one takes its place
    assert path.read_bytes() == archive


def test_where_the_data_sets_come_from():
    files = [*mnist_dataset.FILES.values(), cifar10_dataset.ARCHIVE, *ptb_dataset.FILES]
    assert len(files) == 7
    for file in files:
        assert all(url.startswith("https://") for url in file.urls)
        kind, digits = file.checksum.split(":")
        assert len(bytes.fromhex(digits)) == {"md5": 16, "sha256": 32}[kind]


@pytest.mark.parametrize(
    ("bring", "module", "name"),
    [(data.cifar10, cifar10_dataset, "ARCHIVE"), (data.ptb, ptb_dataset, "FILES")],
)
def test_other_data_sets_when_offline(bring, module, name, monkeypatch):
    offline = Remote("the-file", "md5:" + "0" * 32, [offline_url()])
    monkeypatch.setattr(module, name, offline if name == "ARCHIVE" else [offline])
    with pytest.raises(OSError, match="the-file cannot be downloaded"):
        bring()
