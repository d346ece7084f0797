"""Pictures that are not graphs, in one style; each is drawn on matplotlib Axes, which are returned."""

from __future__ import annotations

from .arrays import Layout, broadcast, strides
from .networks import activations, attention, filters, gradients, weights
from .training import LiveLossCurve, decision_boundary, live_loss_curve, loss_curve, loss_surface

__all__ = [
    "Layout", "LiveLossCurve", "activations", "attention", "broadcast", "decision_boundary", "filters",
    "gradients", "live_loss_curve", "loss_curve", "loss_surface", "strides", "weights",
]  # fmt: skip
