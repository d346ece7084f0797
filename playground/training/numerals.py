"""Numbers as people write them, in decimal digits."""

from __future__ import annotations

import math
import re

__all__ = ["decimal", "is_decimal", "whole"]


def decimal(text: str) -> float:
    """The number that a text stands for, such as -1.5 or 2e-3; ValueError if it is none, or not finite."""
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", text.strip(), re.ASCII):
        raise ValueError(text)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def is_decimal(text: str) -> bool:
    """Whether `decimal` reads a text."""
    try:
        decimal(text)
    except ValueError:
        return False
    return True


def whole(text: str) -> int:
    """The whole number that a text stands for; ValueError if it is none."""
    if not re.fullmatch(r"[+-]?\d{1,15}", text.strip(), re.ASCII):
        raise ValueError(text)
    return int(text)
