"""Pictures of live objects: the computational graph and the gradient graph of any Tensor, and all else that a
lecture draws."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from needle import modes
from needle.nn import Module

from .drag import Drag, drag
from .drawing import MODELS, PROGRAMS, Drawing, draw, draw_gradient
from .engines import CannotRender, in_browser
from .errors import draw_error
from .pad import Pad, pad
from .picture import Picture
from .steps import COMPILED, Steps, steps
from .style import set_style

if TYPE_CHECKING:
    from .kept import memory
    from .plots import (
        activations,
        attention,
        bars,
        broadcast,
        curve,
        decision_boundary,
        filters,
        gradients,
        images,
        kernel_trace,
        live_loss_curve,
        loss_curve,
        loss_surface,
        matrix,
        module_tree,
        panels,
        strides,
        trace_kernel,
        weights,
    )
    from .program_picture import draw_schedule
    from .program_words import explain
    from .step_widget import step

__all__ = [
    "CannotRender", "Drag", "Drawing", "Pad", "Picture", "Steps", "activations", "attention", "bars",
    "broadcast", "curve", "decision_boundary", "drag", "draw", "draw_error", "draw_gradient",
    "draw_schedule", "explain", "filters", "gradients", "images", "in_browser", "kernel_trace",
    "live_loss_curve", "loss_curve", "loss_surface", "matrix", "memory", "module_tree", "pad", "panels",
    "set_style", "step", "steps", "strides", "trace_kernel", "weights",
]  # fmt: skip

modes.remember_lines()

# Pictures that need matplotlib or the compiler, and the widget, are imported on their first use.
_WHERE = dict.fromkeys(set(__all__) - set(globals()), ".plots") | {
    "draw_schedule": ".program_picture",
    "explain": ".program_words",
    "memory": ".kept",
    "step": ".step_widget",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_WHERE[name], __name__), name)
    return value


def _draw_modules(model: Module, depth: int | None) -> Picture:
    return import_module(".plots.modules", __name__).module_picture(model, depth)


def _draw_program(compiled: Any, style: str | None) -> Picture:
    return import_module(".program_picture", __name__).draw_program(compiled, style)


def _steps_of_program(function: str, compiled: Any, limit: int, style: str | None) -> Steps:
    return import_module(".program_steps", __name__).program_steps(function, compiled, limit, style)


MODELS.append(_draw_modules)
PROGRAMS.append(_draw_program)
COMPILED.append(_steps_of_program)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
