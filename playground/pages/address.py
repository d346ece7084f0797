"""The page's address: the state of a page, under names that people can read and share.

A page says which entries its address has, by the key of each in `st.session_state`::

    ENTRIES = {
        "maths_range": Entry("range", 3, choice({1: "1", 3: "3"})),
        "maths_x": Entry("x", 0.5, number(-3, 3)),
    }

`read_address` sets the state when a session comes to the page, and `write_address` keeps the address up to
date. An address holds what differs from the defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

__all__ = ["Entry", "any_text", "number", "one_of", "read_address", "whole_number", "write_address"]

LONGEST_SHOWN = 30  # characters of a name or a value that is not possible
MOST_NAMED = 5  # unknown names


@dataclass(frozen=True)
class Entry:
    """One value of the address.

    Attributes
    ----------
    name : str
        Its name in the address.
    default : object
    read : callable
        Makes the value of a text; raises ValueError with what is possible, such as "from 1 to 3".
    write : callable
        Makes a text of the value.
    """

    name: str
    default: Any
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str


def one_of(options: Iterable[Any]) -> Callable[[str], Any]:
    """Read one of some values, by its text."""
    by_text = {str(option): option for option in options}

    def read(given: str) -> Any:
        if given not in by_text:
            raise ValueError(f"one of {', '.join(by_text)}")
        return by_text[given]

    return read


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Read a whole number from `low` to `high`."""
    return _within(int, f"a whole number from {low:,} to {high:,}", low, high)


def number(low: float, high: float) -> Callable[[str], float]:
    """Read a number from `low` to `high`."""
    return _within(float, f"a number from {low:g} to {high:g}", low, high)


def _within(kind: Callable[[str], Any], possible: str, low: float, high: float) -> Callable[[str], Any]:
    def read(given: str) -> Any:
        try:
            value = kind(given)
        except ValueError:
            raise ValueError(possible) from None
        if not low <= value <= high:  # also refuses nan
            raise ValueError(possible)
        return value

    return read


def any_text(longest: int) -> Callable[[str], str]:
    """Read any text that is not too long."""

    def read(given: str) -> str:
        if len(given) > longest:
            raise ValueError(f"at most {longest:,} characters, and there are {len(given):,}")
        return given

    return read


def read_address(entries: Mapping[str, Entry]) -> str:
    """Set the state of a page from its address, if the session has not been there yet.

    Returns
    -------
    str
        One sentence about names that the page does not have, and one about values that are not possible, in
        whose place the defaults are used; empty if there are none.
    """
    state = st.session_state
    is_first = not all(key in state for key in entries)
    problems = []
    for key, entry in entries.items():
        if key in state:
            continue
        state[key] = entry.default
        given = st.query_params.get(entry.name)
        if given is None:
            continue
        try:
            state[key] = entry.read(given)
        except ValueError as possible:
            shown = given if len(given) <= LONGEST_SHOWN else f"{given[:LONGEST_SHOWN]}…"
            problems.append(f"{entry.name}={shown} ({possible})")
    said = []
    unknown = {*st.query_params} - {entry.name for entry in entries.values()} if is_first else set()
    if unknown:
        names = ", ".join(sorted(name[:LONGEST_SHOWN] for name in unknown)[:MOST_NAMED])
        said.append(f"This page has no setting {names}.")
    if problems:
        used = "the default is used" if len(problems) == 1 else "the defaults are used"
        said.append(f"The page's address has {' and '.join(problems)}: that isn't possible, so {used}.")
    return " ".join(said)


def write_address(entries: Mapping[str, Entry]) -> None:
    """Bring the page's address up to date. It leaves out what has its default, or could not be read back.

    If a browser asks for a run before the last run's address has reached it, it still tells the one before.
    So an address is also sent if it differs from the one sent last.
    """
    address = {}
    for key, entry in entries.items():
        value = st.session_state.get(key, entry.default)
        if value in (entry.default, None):
            continue
        written = entry.write(value)
        try:
            entry.read(written)
        except ValueError:
            continue
        address[entry.name] = written
    sent = f"address with {', '.join(entries)}"
    is_there = st.query_params.to_dict() == address == st.session_state.get(sent, address)
    st.session_state[sent] = address
    if not is_there:
        st.query_params.from_dict(address)
