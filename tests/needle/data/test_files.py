"""Reading MNIST, CIFAR-10 and texts: what is right, and what hostile files do not get."""

from __future__ import annotations

import gzip
import os
import pickle
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from needle import data
from needle.data import CIFAR10Dataset, Corpus, Dictionary, MNISTDataset, batchify, get_batch
from needle.data.datasets import cifar10_dataset
from needle.data.datasets.cifar10_dataset import read_batch
from needle.data.idx import read_mnist

# MNIST


def idx(values, magic=None, shape=None) -> bytes:
    """Unsigned bytes in the IDX format."""
    values = np.asarray(values, "uint8")
    shape = values.shape if shape is None else shape
    magic = 0x0800 + len(shape) if magic is None else magic
    return struct.pack(f">{1 + len(shape)}I", magic, *shape) + values.tobytes()


IMAGES = np.arange(60, dtype="uint8").reshape(5, 3, 4) * 4
LABELS = np.array([3, 1, 4, 1, 5])


@pytest.fixture
def mnist_files(tmp_path):
    (tmp_path / "images.gz").write_bytes(gzip.compress(idx(IMAGES)))
    (tmp_path / "labels.gz").write_bytes(gzip.compress(idx(LABELS)))
    return tmp_path / "images.gz", str(tmp_path / "labels.gz")


def test_an_mnist_dataset(mnist_files):
    dataset = MNISTDataset(*mnist_files)
    assert len(dataset) == 5
    image, label = dataset[1]
    assert (image.shape, image.dtype, label) == ((3, 4, 1), np.dtype("float32"), 1)
    np.testing.assert_array_equal(image[..., 0], IMAGES[1].astype("float32") / 255)
    for index in (slice(1, 4), np.array([4, 0])):
        images, labels = dataset[index]
        np.testing.assert_array_equal(images[..., 0], IMAGES[index].astype("float32") / 255)
        np.testing.assert_array_equal(labels, LABELS[index])
    with pytest.raises(IndexError):
        dataset[5]


def test_an_mnist_dataset_with_transforms(mnist_files):
    dataset = MNISTDataset(*mnist_files, transforms=[lambda x: x[::-1], lambda x: x * 2])
    np.testing.assert_allclose(dataset[2][0][..., 0], IMAGES[2, ::-1] / 127.5, rtol=1e-6)


@pytest.mark.parametrize("which", [0, 1])
def test_an_idx_file_cut_off_anywhere(which, mnist_files):
    path = Path(mnist_files[which])
    packed = path.read_bytes()
    plain = gzip.decompress(packed)
    for damaged in [packed[:n] for n in range(len(packed))] + [
        gzip.compress(plain[:n]) for n in range(len(plain))
    ]:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"read_mnist: .*\.gz "):
            read_mnist(*mnist_files)


@pytest.mark.parametrize("shape", [(2**32 - 1,) * 3, (2**31, 1, 1), (2**20, 2**10, 2**10), (1000, 28, 28)])
def test_an_idx_file_that_claims_to_be_huge(shape, mnist_files):
    content = gzip.compress(idx(IMAGES, shape=shape))
    mnist_files[0].write_bytes(content)
    words = f"images.gz claims the sizes {shape}, but of a file of {len(content)} bytes at most "
    with pytest.raises(ValueError, match=f"{re.escape(words)}{1032 * len(content)} numbers are read"):
        read_mnist(*mnist_files)


@pytest.mark.parametrize("content", [b"", b"abc"])
def test_an_idx_file_of_no_images_of_a_huge_size(content, mnist_files):
    mnist_files[0].write_bytes(gzip.compress(struct.pack(">4I", 0x803, 0, 2**32 - 1, 2**32 - 1) + content))
    with pytest.raises(ValueError, match=r"read_mnist: .*images\.gz"):
        read_mnist(*mnist_files)


def test_an_idx_file_that_is_huge(mnist_files, monkeypatch):
    monkeypatch.setattr("needle.data.idx.MAX_BYTES", IMAGES.size - 1)
    with pytest.raises(ValueError, match=f"at most {IMAGES.size - 1} numbers are read"):
        read_mnist(*mnist_files)


def test_the_real_mnist(mnist, monkeypatch):
    monkeypatch.setenv("NEEDLE_DATA_DIR", str(mnist.parent))
    train, test = data.mnist(), data.mnist(train=False)
    assert (len(train), len(test)) == (60_000, 10_000)
    image, label = train[0]
    assert (image.shape, image.dtype, label) == ((28, 28, 1), np.dtype("float32"), 5)
    norms = [np.linalg.norm(train[i][0]) for i in (1, 42, 1000, 2000, 3000)]
    X = np.stack([train[i][0].reshape(-1) for i in (1, 42, 1000, 2000, 3000)])
    np.testing.assert_allclose(norms, np.sqrt((X**2).sum(axis=1)), rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(train[:10][0]), 27.892084, rtol=1e-6)
    np.testing.assert_array_equal(test[:5][1], [7, 2, 1, 0, 4])

    loader = data.DataLoader(train, batch_size=6000, prefetch=1)
    counts = sum(np.bincount(y.numpy().astype(int), minlength=10) for _, y in loader)
    np.testing.assert_array_equal(counts, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])


# CIFAR-10


def cifar_numbers(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 3072), dtype="uint8"), rng.integers(0, 10, n).tolist()


def python2_string(text: bytes) -> bytes:
    return b"T" + struct.pack("<i", len(text)) + text


def authors_batch(pixels, labels, dtype=b"u1", fortran=False, extra=b"") -> bytes:
    """A batch as Python 2 and the NumPy of 2009 pickled it (protocol 2), opcode by opcode."""
    content = pixels.tobytes(order="F" if fortran else "C")
    shape = b"".join(b"J" + struct.pack("<i", n) for n in pixels.shape)
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        b"cnumpy\nndarray\n" + b"K\x00\x85" + b"U\x01b" + b"\x87R"  # (ndarray, (0,), "b"), called
        b"(K\x01(" + shape + b"t"  # the state: version, shape, …
        b"cnumpy\ndtype\n" + b"U" + bytes([len(dtype)]) + dtype + b"K\x00K\x01\x87R"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + (b"\x88" if fortran else b"\x89") + python2_string(content) + b"tb"
    )  # fmt: skip
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    names = b"](" + b"".join(python2_string(b"%d.png" % i) for i in range(len(labels))) + b"e"
    return (
        b"\x80\x02}("
        + python2_string(b"batch_label") + python2_string(b"training batch 1 of 5")
        + python2_string(b"labels") + numbers
        + python2_string(b"data") + array
        + python2_string(b"filenames") + names
        + extra + b"u."
    )  # fmt: skip


WRITERS = {
    "its authors": authors_batch,
    "its authors, in Fortran's order": lambda pixels, labels: authors_batch(pixels, labels, fortran=True),
    **{
        f"Python 3, protocol {protocol}": lambda pixels, labels, protocol=protocol: pickle.dumps(
            {b"data": pixels, b"labels": labels}, protocol=protocol
        )
        for protocol in (3, 4, 5)
    },
    "Python 3, with str": lambda pixels, labels: pickle.dumps({"data": pixels, "labels": labels}),
    "Python 3, a view": lambda pixels, labels: pickle.dumps(
        {"data": pixels[:, ::-1][:, ::-1], "labels": labels}
    ),
    "Python 3, in Fortran's order": lambda pixels, labels: pickle.dumps(
        {"data": np.asfortranarray(pixels), "labels": labels}
    ),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_batch_of_cifar10(write, tmp_path):
    pixels, labels = cifar_numbers(7)
    (tmp_path / "test_batch").write_bytes(write(pixels, labels))
    images, numbers = read_batch(tmp_path / "test_batch")
    np.testing.assert_array_equal(images, pixels.reshape(7, 3, 32, 32))
    np.testing.assert_array_equal(numbers, labels)
    assert (images.dtype, numbers.dtype) == (np.dtype("uint8"), np.dtype("int64"))


def test_what_the_authors_wrote_is_what_pickle_reads():
    # Else the tests here would test themselves.
    pixels, labels = cifar_numbers(3)
    for fortran in (False, True):
        batch = pickle.loads(authors_batch(pixels, labels, fortran=fortran), encoding="bytes")
        np.testing.assert_array_equal(batch[b"data"], pixels)
        assert batch[b"labels"] == labels
        assert batch[b"filenames"] == [b"0.png", b"1.png", b"2.png"]


@pytest.fixture
def cifar_folder(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for i, name in enumerate([*cifar10_dataset.TRAIN_BATCHES, *cifar10_dataset.TEST_BATCHES]):
        (folder / name).write_bytes(authors_batch(*cifar_numbers(i + 2, seed=i)))
    return folder


def test_a_cifar10_dataset(cifar_folder):
    train, test = (
        CIFAR10Dataset(cifar_folder, train=True),
        CIFAR10Dataset(str(cifar_folder), train=False, p=0.2),
    )
    assert train.X.shape == (2 + 3 + 4 + 5 + 6, 3, 32, 32)
    assert test.X.shape == (7, 3, 32, 32)
    assert (train.X.dtype, train.y.shape) == (np.dtype("float32"), (20,))
    pixels, labels = cifar_numbers(3, seed=1)
    np.testing.assert_array_equal(train.X[2:5], pixels.reshape(3, 3, 32, 32).astype("float32") / 255)
    np.testing.assert_array_equal(train.y[2:5], labels)
    image, label = train[3]
    np.testing.assert_array_equal(image, train.X[3])
    assert label == labels[1]
    assert len(train) == 20
    x, y = next(iter(data.DataLoader(train, batch_size=4)))
    assert (x.shape, y.shape) == ((4, 3, 32, 32), (4,))


def test_transforms_of_cifar10_see_height_width_channels(cifar_folder):
    plain = CIFAR10Dataset(cifar_folder, train=False)
    flipped = CIFAR10Dataset(cifar_folder, train=False, transforms=[data.RandomFlipHorizontal(1.0)])
    np.testing.assert_array_equal(flipped[2][0], plain.X[2, :, :, ::-1])
    np.testing.assert_array_equal(flipped[1:3][0], plain.X[1:3, :, :, ::-1])


def test_a_missing_batch_is_named(cifar_folder):
    (cifar_folder / "data_batch_4").unlink()
    with pytest.raises(FileNotFoundError, match="data_batch_4"):
        CIFAR10Dataset(cifar_folder, train=True)


class Evil:
    """Would write a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


BATCH = authors_batch(*cifar_numbers(2))

HUGE = b"\x8a\x08" + struct.pack("<q", 2**62)

HOSTILE = {
    "empty": (b"", "EOFError"),
    "text": (b"<html>not found</html>", "not a batch"),
    "no dict": (pickle.dumps([1, 2]), "not a batch"),
    "no data": (pickle.dumps({b"labels": [], b"more": []}), "KeyError: 'data'"),
    "no array": (pickle.dumps({b"data": b"abc", b"labels": []}), "not 0 rows of 3072 unsigned bytes"),
    "an array without its numbers": (b"\x80\x02}(U\x04datacnumpy\nndarray\nU\x06labels]u.", "not 0 rows"),
    "another type": (authors_batch(*cifar_numbers(2), dtype=b"i1"), "b'i1', not unsigned bytes"),
    "objects": (authors_batch(*cifar_numbers(2), dtype=b"O8"), "b'O8', not unsigned bytes"),
    "too few labels": (authors_batch(cifar_numbers(3)[0], [1, 2]), "not 2 rows of 3072"),
    "a label beyond": (authors_batch(cifar_numbers(2)[0], [1, 10]), "0 to 9"),
    "labels that are no numbers": (pickle.dumps({b"data": cifar_numbers(1)[0], b"labels": ["1"]}), "0 to 9"),
    "other images": (authors_batch(np.zeros((2, 784), "uint8"), [1, 2]), "not 2 rows of 3072"),
    "a shape beyond its numbers": (BATCH.replace(b"J\x02\0\0\0", b"J\xff\xff\xff\x7f"), "not a batch"),
    "an array for which there is no memory": (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + HUGE + b"\x85U\x01b\x87R.",
        "not a batch",
    ),
    "a function": (b"cbuiltins\nprint\n(S'called'\ntR.", r"asks for builtins\.print"),
    "a function of os": (b"cos\nsystem\n(S'true'\ntR.", r"asks for os\.system"),
    "another function of numpy": (b"cnumpy\nload\n.", r"asks for numpy\.load"),
    "a class to make": (b"(icollections\nCounter\n.", r"asks for collections\.Counter"),
    "an unpickler inside": (b"cnumpy.core.multiarray\nscalar\n.", r"asks for .*\.scalar"),
    "a way around": (b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.", r"ndarray\.tofile"),
    "a persistent id": (b"Pabc\n.", "persistent"),
    "bytes that are not there": (b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"abc.", "not a batch"),
    "a note where nobody looks": (b"\x80\x02}r\xff\xff\xff\xff.", "KeyError"),
    "a frame that is not there": (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"abc.", "not a batch"),
    "too long a number": (b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b".", "not a batch"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "words"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_batches(content, words, tmp_path, capfd):
    path = tmp_path / "test_batch"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read_batch(path)
    assert str(path) in str(caught.value)
    assert "download it again" in str(caught.value)
    assert "called" not in capfd.readouterr().out


def test_a_batch_that_is_too_large(tmp_path, monkeypatch):
    (tmp_path / "test_batch").write_bytes(BATCH)
    monkeypatch.setattr(cifar10_dataset, "MAX_BYTES", len(BATCH))
    assert read_batch(tmp_path / "test_batch")[0].shape == (2, 3, 32, 32)
    monkeypatch.setattr(cifar10_dataset, "MAX_BYTES", len(BATCH) - 1)
    with pytest.raises(ValueError, match=f"it has more than {len(BATCH) - 1} bytes"):
        read_batch(tmp_path / "test_batch")


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_runs_something_runs_nothing(protocol, tmp_path):
    target = tmp_path / "evil"
    pixels, labels = cifar_numbers(1)
    content = pickle.dumps({b"labels": labels, b"more": Evil(target), b"data": pixels}, protocol=protocol)
    (tmp_path / "test_batch").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"not a batch .*(asks for (posix|nt)\.mkdir|asks for _codecs|KeyError)"
    ):
        read_batch(tmp_path / "test_batch")
    assert not target.exists()
    pickle.loads(content)
    assert target.is_dir()  # it would have


def test_a_batch_cut_off_anywhere(tmp_path):
    path = tmp_path / "test_batch"
    for n in [*range(200), *range(200, len(BATCH), 97), *range(len(BATCH) - 60, len(BATCH))]:
        path.write_bytes(BATCH[:n])
        with pytest.raises(ValueError, match="test_batch is not a batch of CIFAR-10, or is damaged"):
            read_batch(path)


# Texts


def test_a_dictionary_numbers_words_as_they_come():
    dictionary = Dictionary()
    assert [dictionary.add_word(word) for word in ["b", "a", "b", "c", "a"]] == [0, 1, 0, 2, 1]
    assert dictionary.idx2word == ["b", "a", "c"]
    assert dictionary.word2idx == {"b": 0, "a": 1, "c": 2}
    assert len(dictionary) == 3


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "train.txt").write_text(" the cat sat \n the dog\n\n the end \n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("the bird sät\n", encoding="utf-8")
    return tmp_path


def test_a_corpus(texts):
    corpus = Corpus(texts)
    assert corpus.dictionary.idx2word == ["the", "cat", "sat", "<eos>", "dog", "end", "bird", "sät"]
    assert corpus.train == [0, 1, 2, 3, 0, 4, 3, 3, 0, 5, 3]
    assert corpus.test == [0, 6, 7, 3]


def test_some_lines_of_a_corpus(texts):
    corpus = Corpus(str(texts), max_lines=2)
    assert corpus.dictionary.idx2word == ["the", "cat", "sat", "<eos>", "dog", "bird", "sät"]
    assert corpus.train == [0, 1, 2, 3, 0, 4, 3]
    assert corpus.tokenize(texts / "train.txt", 1) == [0, 1, 2, 3]
    assert Corpus(texts, max_lines=0).train == []


def test_a_corpus_that_is_no_text(texts):
    (texts / "test.txt").write_bytes(b"abc\xff\xfe")
    with pytest.raises(ValueError, match=r"test\.txt is not a text in UTF-8"):
        Corpus(texts)
    (texts / "train.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"train\.txt"):
        Corpus(texts)


def test_batchify_cuts_the_alphabet_into_columns():
    batches = batchify(range(26), batch_size=4, dtype="float32")
    assert (batches.shape, batches.dtype) == ((6, 4), np.dtype("float32"))
    np.testing.assert_array_equal(batches[:, 1], [6, 7, 8, 9, 10, 11])
    np.testing.assert_array_equal(batches[0], [0, 6, 12, 18])
    assert batches.max() == 23
    for n, batch_size in [(3, 4), (3, 0), (0, 1)]:
        with pytest.raises(ValueError, match=f"{n} words cannot be cut into {batch_size} columns"):
            batchify(range(n), batch_size)


def test_get_batch_gives_the_words_that_follow():
    batches = batchify(range(24), 4)
    x, y = get_batch(batches, 1, bptt=2, dtype="float32")
    assert (x.dtype, y.dtype) == (np.dtype("float32"),) * 2
    assert not x.requires_grad
    np.testing.assert_array_equal(x.numpy(), [[1, 7, 13, 19], [2, 8, 14, 20]])
    np.testing.assert_array_equal(y.numpy(), [2, 8, 14, 20, 3, 9, 15, 21])
    x, y = get_batch(batches, 3, bptt=100)
    np.testing.assert_array_equal(x.numpy(), batches[3:5])
    np.testing.assert_array_equal(y.numpy(), batches[4:6].ravel())
    for i, bptt in [(5, 2), (-1, 2), (0, 0)]:
        with pytest.raises(ValueError, match=f"i from 0 to 4 .*of 6 rows.* got bptt={bptt} and i={i}"):
            get_batch(batches, i, bptt)


def test_the_whole_text_is_covered_by_its_batches():
    batches = batchify(range(103), 5)
    seen = np.concatenate([get_batch(batches, i, 7)[0].numpy() for i in range(0, len(batches) - 1, 7)])
    np.testing.assert_array_equal(seen, batches[:-1])


def test_ptb_from_the_data_folder(texts, monkeypatch):
    (texts / "data").mkdir()
    (texts / "ptb").mkdir()
    for name in ("train.txt", "test.txt"):
        (texts / name).rename(texts / "ptb" / name)
    monkeypatch.setenv("NEEDLE_DATA_DIR", str(texts))
    assert len(data.ptb().dictionary) == 8
    assert len(data.ptb(max_lines=1).dictionary) == 6
