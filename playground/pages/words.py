"""Text for a page that would read it as Markdown."""

from __future__ import annotations

import re

__all__ = ["as_text"]

# Markdown makes a link of these even if every character is escaped.
_ADDRESS = re.compile(r"(https?(?=://)|www(?=\.)|@(?=\w))", re.IGNORECASE)
_WORD_JOINER = "\N{WORD JOINER}"  # has no width


def as_text(words: str) -> str:
    """Text that the page shows as it is, whoever wrote it: no link, no picture, no formula."""
    words = _ADDRESS.sub(rf"\1{_WORD_JOINER}", words)
    return "".join(f"\\{x}" if x in r"\`*_{}[]()#+-.!|<>$:~^&" else x for x in words)
