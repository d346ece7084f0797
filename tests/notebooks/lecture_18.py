"""Lecture 18: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SHOWN: list = []
TRUE: list = []
NEAR_MISSES: dict = {}
