"""Pictures that are not graphs, in one style; each is drawn on matplotlib Axes, which are returned."""

from __future__ import annotations

from .attention_maps import attention
from .boundary import decision_boundary
from .broadcasting import broadcast
from .charts import bars, curve, images, matrix
from .distributions import activations, gradients
from .kernel_recording import KernelTrace, trace_kernel
from .kernels import kernel_trace
from .look import panels
from .losses import LiveLossCurve, live_loss_curve, loss_curve
from .memory_layout import MemoryLayout, strides
from .modules import module_tree
from .parameters import filters, weights
from .surface import loss_surface

__all__ = [
    "KernelTrace",
    "LiveLossCurve",
    "MemoryLayout",
    "activations",
    "attention",
    "bars",
    "broadcast",
    "curve",
    "decision_boundary",
    "filters",
    "gradients",
    "images",
    "kernel_trace",
    "live_loss_curve",
    "loss_curve",
    "loss_surface",
    "matrix",
    "module_tree",
    "panels",
    "strides",
    "trace_kernel",
    "weights",
]  # fmt: skip
