"""Texts of characters for language models."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np

__all__ = ["SONNETS", "Characters", "fingerprint", "frequency_loss", "read"]

#: Sonnets by William Shakespeare (1609).
SONNETS = Path(__file__).with_name("sonnets.txt")


class Characters:
    """Gives each character of a text a number, in the order of their code points.

    Attributes
    ----------
    letters : str
        Every character of the text, once. Its place is its number.
    """

    def __init__(self, text: str):
        self.letters = "".join(sorted(set(text)))
        self._numbers = {letter: i for i, letter in enumerate(self.letters)}

    def __len__(self) -> int:
        """How many different characters there are."""
        return len(self.letters)

    def encode(self, text: str) -> np.ndarray:
        """Turn a text into numbers, int64.

        Raises
        ------
        ValueError
            If it has a character that is not among the letters.
        """
        unknown = sorted(set(text) - set(self.letters))
        if unknown:
            raise ValueError(f"Characters: {unknown[0]!r} does not occur in the text that gave the numbers")
        return np.array([self._numbers[letter] for letter in text], np.int64)

    def decode(self, numbers) -> str:
        """Turn numbers into a text."""
        return "".join(self.letters[int(i)] for i in numbers)


def read(path: str | Path, test_share: float = 0.1) -> tuple[Characters, np.ndarray, np.ndarray]:
    """Read a text file (UTF-8) as numbers, and keep its last part to test with.

    Returns
    -------
    characters : Characters
    train, test : numpy.ndarray of int64

    Raises
    ------
    ValueError
        If the file cannot be read, or is empty.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a text in UTF-8: {error}") from None
    if not text:
        raise ValueError(f"{path} is empty; there is nothing to learn from it")
    characters = Characters(text)
    numbers = characters.encode(text)
    cut = round(len(numbers) * (1 - test_share))
    return characters, numbers[:cut], numbers[cut:]


def fingerprint(vocabulary: str, *numbers: np.ndarray) -> str:
    """Tell a text from others, in a few words: the beginning of a SHA-256 of its vocabulary and numbers."""
    digest = hashlib.sha256(vocabulary.encode())
    for part in numbers:
        digest.update(f" {len(part)} ".encode() + part.astype("<i8").tobytes())
    return f"the text {digest.hexdigest()[:16]}"


def frequency_loss(train: np.ndarray, test: np.ndarray) -> float:
    """The mean cross entropy, in nats, if you guess `test` by how often each character occurs in `train`.

    Each character counts once more than it occurs, so that a new one is possible. A model that learns
    anything about sequences does better than this.
    """
    counts = Counter(train.tolist())
    kinds = len(set(train.tolist()) | set(test.tolist()))
    shares = np.array([(counts[i] + 1) / (len(train) + kinds) for i in test.tolist()])
    return float(-np.log(shares).mean())
