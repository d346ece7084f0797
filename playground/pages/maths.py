"""The page on which a function of one or two numbers shows its curve, its slope and its gradient."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from ..language.expression import FUNCTIONS, ExpressionError, run
from ..language.values import constant, variable
from .address import Entry, any_text, number, one_of, write_address
from .opening import KEPT, element, open_page
from .words import as_text

__all__ = ["Computed", "compute", "page"]

MODES = {"curve": "One number, x", "surface": "Two numbers, x and y"}
EXAMPLES = {
    "curve": {
        "Parabola": "x ** 2",
        "Wave": "sin(2 * x)",
        "Sigmoid": "1 / (1 + exp(-x))",
        "Bump": "exp(-x ** 2)",
        "ReLU": "relu(x)",
        "Wave in a bump": "exp(-x ** 2 / 4) * sin(4 * x)",
        "Logarithm": "log(x)",
        "One over x": "1 / x",
    },
    "surface": {
        "Bowl": "x ** 2 + y ** 2",
        "Valley": "(1 - x) ** 2 / 4 + (y - x ** 2 / 2) ** 2",
        "Saddle": "x ** 2 - y ** 2",
        "Eggs": "sin(2 * x) * cos(2 * y)",
        "Hill and hole": "x * exp(-x ** 2 - y ** 2)",
        "Product": "x * y",
    },
}
REACHES = (1, 3, 6, 10)  # x goes from minus this to this

POINTS = {"curve": 241, "surface": 61}  # along each axis
PROBES = 3  # points at which the function is computed once more, alone
LONGEST = 300  # characters
SHOWN = 5  # digits that travel to the browser

ENTRIES = {
    "maths_mode": Entry("mode", "curve", one_of(MODES)),
    "maths_curve": Entry("f", EXAMPLES["curve"]["Wave in a bump"], any_text(LONGEST)),
    "maths_surface": Entry("g", EXAMPLES["surface"]["Valley"], any_text(LONGEST)),
    "maths_reach": Entry("range", 3, one_of(REACHES)),
    "maths_x": Entry("x", 0.5, number(-max(REACHES), max(REACHES))),
    "maths_y": Entry("y", -1.0, number(-max(REACHES), max(REACHES))),
}


class Computed(NamedTuple):
    """A function at many places, with its derivatives there.

    Attributes
    ----------
    places : array (n,)
        Along each axis, from the left.
    values : array
        (n,) for a function of x; (n, n) for one of x and y, a row for each y from below.
    slopes : tuple of arrays like `values`
        The derivatives with respect to x, and to y if there is one.
    """

    places: np.ndarray
    values: np.ndarray
    slopes: tuple[np.ndarray, ...]


def page() -> None:
    """Type a function, and see its curve and its derivative, or its map and its gradient."""
    open_page(
        "Maths",
        "Choose a function or type one, of x or of x and y. Then drag across the picture or move a slider: "
        "the slope follows.",
        ENTRIES,
    )
    st.segmented_control(
        "A function of", MODES, format_func=MODES.__getitem__, key="maths_mode", required=True, **KEPT
    )
    mode = st.session_state.maths_mode
    _choose(mode)
    _show(mode, st.session_state[f"maths_{mode}"], st.session_state.maths_reach)


def _choose(mode: str) -> None:
    """Show the function to write or choose, and how far x goes."""
    state, key, chosen = st.session_state, f"maths_{mode}", f"maths_{mode}_example"
    examples = EXAMPLES[mode]
    state[chosen] = next((name for name, function in examples.items() if function == state[key]), None)

    def take() -> None:
        if state[chosen]:
            state[key] = examples[state[chosen]]

    st.pills("Examples", examples, key=chosen, on_change=take)
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    head = "f(x) =" if mode == "curve" else "f(x, y) ="
    left.text_input(head, key=key, help=_HELP, **KEPT)
    right.segmented_control(
        "Range",
        REACHES,
        format_func=lambda reach: f"−{reach} to {reach}",
        key="maths_reach",
        required=True,
        help="From where to where x goes, and y as well",
        **KEPT,
    )


_HELP = f"""
Operators: `+ - * / **` and brackets. Functions that act on each number alone: {
    ", ".join(f"`{name}`" for name in FUNCTIONS if FUNCTIONS[name].usage == f"{name}(a)")
}; `maximum(a, b)`, `minimum(a, b)`, `where(condition, a, b)`. `pi` is a number.
"""


@st.fragment
def _show(mode: str, function: str, reach: int) -> None:
    """The picture, which moves in the browser. When it comes to rest, the address follows."""
    computed = compute(function, mode, reach)
    if isinstance(computed, str):
        st.error(as_text(computed), icon=":material/error:")
        write_address(ENTRIES)
        return
    state = st.session_state
    if not np.isfinite(computed.values).any():
        st.info("This function has no value anywhere here. Choose another range, or another function.")
    elif not np.isfinite(computed.values).all():
        st.caption("Where there is no value, such as log(x) for x below 0, there is no curve.")
    shown: dict[str, Any] = {"expression": function, "low": -reach, "high": reach}
    shown["values"] = _sendable(computed.values)
    if mode == "curve":
        (slopes,) = computed.slopes
        shown |= {
            "slopes": _sendable(slopes),
            "range": _range(computed.values),
            "slope_range": _range(slopes),
        }
        shown["start"] = _within(state.maths_x, reach)

        def rest() -> None:
            state.maths_x = _within(state.curve.place, reach)

    else:
        for name, slopes in zip("xy", computed.slopes, strict=True):
            shown[f"slopes_{name}"] = _sendable(slopes)
        shown["range"] = _heights(computed.values)
        shown["steepest"] = _heights(np.hypot(*computed.slopes))[1]
        shown["start"] = [_within(state.maths_x, reach), _within(state.maths_y, reach)]

        def rest() -> None:
            place = state.surface.place
            if isinstance(place, list) and len(place) == 2:
                state.maths_x, state.maths_y = (_within(value, reach) for value in place)

    element(mode)(key=mode, data=shown, on_place_change=rest)
    write_address(ENTRIES)


def _within(value: object, reach: int) -> float:
    """A place that is there, whatever the browser says."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return 0.0
    return round(min(max(float(value), -reach), reach), 6)


@st.cache_data(max_entries=64, show_spinner=False)
def compute(function: str, mode: str, reach: int) -> Computed | str:
    """Compute a function and its derivatives by needle, at many places at once.

    Parameters
    ----------
    function : str
        In the Explorer's language, with x, or x and y.
    mode : "curve" or "surface"
    reach : int
        x and y go from minus this to this.

    Returns
    -------
    Computed or str
        Or what is wrong with the function, in one sentence.
    """
    places = np.linspace(-reach, reach, POINTS[mode])
    grids = [places] if mode == "curve" else [grid.ravel() for grid in np.meshgrid(places, places)]
    try:
        values, slopes = _at(function, grids)
        for i in np.linspace(0, values.size - 1, PROBES).astype(int):
            alone, _ = _at(function, [grid[i : i + 1] for grid in grids])
            if not np.allclose(alone, values[i], rtol=1e-3, atol=1e-5, equal_nan=True):
                raise ValueError(
                    "this mixes the values at several places; use functions of each number alone, like exp(x)"
                )
    except ExpressionError as error:
        reason = error.reason
    except ValueError as error:
        reason = str(error)
    else:
        shape = (places.size,) * len(grids)
        return Computed(places, values.reshape(shape), tuple(slope.reshape(shape) for slope in slopes))
    return f"{reason[:1].upper()}{reason[1:].rstrip('.')}."


def _at(function: str, grids: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """A function at some places, and its derivatives with respect to each argument."""
    arguments = {name: variable(constant(grid)) for name, grid in zip("xy", grids, strict=False)}
    shape = grids[0].shape
    with np.errstate(all="ignore"):
        result = run(function, given=arguments)
        if result.value.shape not in (shape, ()):
            raise ValueError(
                f"at {shape[0]:,} places this gives numbers of shape {result.value.shape}; it should give "
                "one number for each place"
            )
        if result.value.requires_grad:
            result.backward()
    values = np.broadcast_to(result.value.numpy(), shape)
    slopes = [np.zeros(shape) if x.grad is None else x.grad.numpy() for x in arguments.values()]
    return values, [np.where(np.isnan(values), np.nan, slope) for slope in slopes]


def _sendable(values: np.ndarray) -> list[Any]:
    """Numbers for the browser, in a few digits; None for those that are not finite."""
    if values.ndim > 1:
        return [_sendable(row) for row in values]
    return [float(f"{x:.{SHOWN}g}") if math.isfinite(x) else None for x in values.tolist()]


def _heights(values: np.ndarray) -> tuple[float, float]:
    """The lowest and the highest height of a map; a tenth of the places may be higher."""
    finite = values[np.isfinite(values)]
    low, high = (float(np.quantile(finite, share)) for share in (0, 0.9)) if finite.size else (0.0, 1.0)
    return low, high if high > low else low + 1


def _range(values: np.ndarray) -> tuple[float, float]:
    """From where to where a picture goes: all values, but for few that are very far from the others."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    inner = np.quantile(finite, [0.04, 0.96])
    room = float(inner[1] - inner[0])
    if high - low > 4 * room > 0:
        low, high = max(low, float(inner[0]) - room / 2), min(high, float(inner[1]) + room / 2)
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room
