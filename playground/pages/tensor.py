"""The page on which a Tensor shows how its shape, strides and offset read one strip of memory."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import streamlit as st

from needle import NDArray

from ..language.expression import ExpressionError, run
from ..language.values import constant
from .address import Entry, any_text, write_address
from .opening import KEPT, element, open_page
from .words import as_text

__all__ = ["ViewLayout", "layout_of", "page", "read_shape"]

VIEWS = {
    "As it is": "a",
    "Transpose": "a.T",
    "Some rows": "a[1:]",
    "Every second column": "a[:, ::2]",
    "One column": "a[:, 1]",
    "Reshape": "a.reshape(2, 6)",
    "Permute and slice": "a.permute(1, 0)[1:3]",
    "Broadcast": "broadcast_to(a[0:1], 3, 4)",
    "Reshape a transpose": "a.T.reshape(2, 6)",
    "Compute": "a + 100",
}
MOST_ELEMENTS = 60  # of a
MOST_SHOWN = 240  # of the view
MOST_AXES = 4
FIRST = 10  # the first element of a, so that no value is its own position
LONGEST = 200  # characters


def read_shape(given: str) -> tuple[int, ...]:
    """A shape from a text such as ``3, 4``.

    Raises
    ------
    ValueError
        With what is possible.
    """
    try:
        shape = tuple(int(part) for part in given[:LONGEST].strip(" ()[],").split(","))
    except ValueError:
        shape = ()
    if not 1 <= len(shape) <= MOST_AXES or min(shape) < 1 or math.prod(shape) > MOST_ELEMENTS:
        raise ValueError(f"1 to {MOST_AXES} lengths with at most {MOST_ELEMENTS} elements, such as 3, 4")
    return shape


def _read_index(given: str) -> tuple[int, ...]:
    try:
        index = tuple(int(part) for part in given[:LONGEST].split(","))
    except ValueError:
        index = (-1,)
    if len(index) > 6 or not all(0 <= i < MOST_SHOWN for i in index):
        raise ValueError("whole numbers, such as 1,2")
    return index


ENTRIES = {
    "tensor_shape": Entry("shape", "3, 4", lambda given: ", ".join(map(str, read_shape(given)))),
    "tensor_view": Entry("view", "a", any_text(LONGEST)),
    "tensor_index": Entry("index", (1, 2), _read_index, lambda index: ",".join(map(str, index))),
}


class ViewLayout(NamedTuple):
    """How a view reads memory; everything is counted in elements.

    Attributes
    ----------
    shape, strides : tuple of int
    offset : int
        The position of the first element.
    storage : numpy.ndarray
        The whole memory, one cell after the other.
    uses : numpy.ndarray
        How many indices read each cell.
    is_view : bool
        Whether this is the memory of `a` itself.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: np.ndarray
    uses: np.ndarray
    is_view: bool


def page() -> None:
    """Look at an array through views, and find each element in memory."""
    open_page(
        "Tensor and strides",
        "Choose a view of the array a, then point at an element to find its cell of memory, or the other "
        "way round.",
        ENTRIES,
    )
    state = st.session_state
    state.tensor_example = next((name for name, view in VIEWS.items() if view == state.tensor_view), None)
    st.pills("Views", VIEWS, key="tensor_example", on_change=_take_example)
    left, right = st.columns([1, 3])
    shape = left.text_input(
        "Shape of a", key="tensor_shape", help=f"At most {MOST_ELEMENTS} elements", **KEPT
    )
    view = right.text_input("View", key="tensor_view", help=_HELP, **KEPT)
    try:
        layout = layout_of(read_shape(shape), view)
    except ExpressionError as error:
        _refuse(error.reason)
    except ValueError as error:
        _refuse(f"the shape needs {error}")
    else:
        _show(layout)
    write_address(ENTRIES)


_HELP = """
Slices `a[1:, ::2]`, `a[0]`, `a.T`, `a.permute(1, 0)`, `a.reshape(2, 6)`, `broadcast_to(a, 2, 3, 4)`, and
all else of the Explorer's language. `a` holds 10, 11, 12 and so on.
"""


def _take_example() -> None:
    if st.session_state.tensor_example:
        st.session_state.tensor_view = VIEWS[st.session_state.tensor_example]


def _refuse(reason: str) -> None:
    st.error(as_text(f"{reason[:1].upper()}{reason[1:].rstrip('.')}."), icon=":material/error:")


def layout_of(shape: tuple[int, ...], view: str) -> ViewLayout:
    """How a view of an array reads memory, as needle's NDArray has it.

    Parameters
    ----------
    shape : tuple of int
        Of the array a, which holds 10, 11, 12 and so on.
    view : str
        In the Explorer's language.

    Raises
    ------
    ExpressionError
        If the text isn't part of the language, or doesn't fit the shape.
    """
    a = constant(np.arange(FIRST, FIRST + math.prod(shape)).reshape(shape))
    with np.errstate(all="ignore"):
        array = run(view, given={"a": a}).value.realize_cached_data()
    if array.size > MOST_SHOWN:
        raise ExpressionError(f"this has {array.size:,} elements; the page shows at most {MOST_SHOWN}", 1, 1)
    size = array.storage.size
    storage = NDArray.make((size,), (1,), array.device, array.storage).numpy()
    positions = np.full(array.shape, array.offset)
    for places, stride in zip(np.indices(array.shape), array.strides, strict=True):
        positions = positions + places * stride
    uses = np.bincount(positions.ravel(), minlength=size)
    is_view = array.storage is a.realize_cached_data().storage
    return ViewLayout(array.shape, array.strides, array.offset, storage, uses, is_view)


@st.fragment
def _show(layout: ViewLayout) -> None:
    state = st.session_state
    strides = str(layout.strides).replace("-", "−")
    st.markdown(f"shape **{layout.shape}** · strides **{strides}** · offset **{layout.offset}**")
    st.caption(_in_words(layout))
    storage = [float(x) if math.isfinite(x) else None for x in layout.storage.tolist()]
    shown = {
        "shape": layout.shape,
        "strides": layout.strides,
        "offset": layout.offset,
        "storage": storage,
        "uses": layout.uses.tolist(),
        "start": state.tensor_index,
    }

    def rest() -> None:
        index = state.memory.index
        if isinstance(index, list) and all(isinstance(i, int) for i in index):
            state.tensor_index = tuple(index)

    element("memory")(key="memory", data=shown, on_index_change=rest)
    write_address(ENTRIES)


def _in_words(layout: ViewLayout) -> str:
    """What has happened to the memory."""
    if not layout.is_view:
        return "These numbers had to be written anew: this array has a memory of its own."
    if (layout.uses > 1).any():
        return "Nothing is copied: a stride of 0 stays at the same cell, so several indices read it."
    return "Nothing is copied: only shape, strides and offset say how the same memory is read."
