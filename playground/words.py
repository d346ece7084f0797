"""Words for a page that would take them for Markdown."""

from __future__ import annotations

import re

__all__ = ["as_text"]

# Where Markdown sees the address of a page or of a person although each sign of it is escaped.
_ADDRESS = re.compile(r"(https?(?=://)|www(?=\.)|@(?=\w))", re.IGNORECASE)
_WORD_JOINER = "\N{WORD JOINER}"  # has no width


def as_text(words: str) -> str:
    """Words that are shown as they are, whoever wrote them: no link, no picture, no formula."""
    words = _ADDRESS.sub(rf"\1{_WORD_JOINER}", words)
    return "".join(f"\\{x}" if x in r"\`*_{}[]()#+-.!|<>$:~^&" else x for x in words)
