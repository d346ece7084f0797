"""Pictures that are not graphs, in one style; each is drawn on matplotlib Axes, which are returned."""

from __future__ import annotations

from .arrays import Layout, broadcast, strides

__all__ = ["Layout", "broadcast", "strides"]
