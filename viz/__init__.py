"""Pictures of live objects: the computational graph and the gradient graph of any Tensor."""

from __future__ import annotations

from .drawing import Drawing, draw, draw_gradient
from .errors import draw_error
from .memory import memory
from .render import CannotRender

__all__ = ["CannotRender", "Drawing", "draw", "draw_error", "draw_gradient", "memory"]
