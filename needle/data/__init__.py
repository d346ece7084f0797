"""Data: toy problems in the plane."""

from . import toy

__all__ = ["toy"]
