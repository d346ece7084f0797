"""Lecture 11, strides, views and broadcasting: exercises, usual mistakes, and what cells use."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from needle.backend_ndarray import NDArray
from needle.backend_ndarray.memory import blocks
from needle.backend_ndarray.strides import window_layout

from .checking import Case, Fault, Lecture, Names, Unmentioned, case, kind, program_case, values, whole

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade

Shape = tuple[int, ...]


# --- What the cells use -------------------------------------------------------------------------------------


def fastest(program: Callable[[], Any], runs: int = 20) -> float:
    """The seconds of the fastest of several runs. One more comes before, in which things are compiled."""
    program()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        program()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def megabytes(program: Callable[[], Any]) -> int:
    """How much memory a program asks for at its height, in whole megabytes. (It runs twice.)

    Memory that the library has kept for new arrays is given back before, so that all of it is counted.
    """
    program()
    gc.collect()
    blocks.release()
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        program()
        return round((tracemalloc.get_traced_memory()[1] - before) / 1e6)
    finally:
        if not tracing:
            tracemalloc.stop()


def tried(program: Callable[[], Any]) -> Any:
    """What a program gives, or the message with which it is refused."""
    try:
        return program()
    except ValueError as error:
        return error


# --- What answers are tried on, and how they are compared ---------------------------------------------------

#: Layouts: compact ones, and views that are transposed, turned around, stretched, full of gaps, or windows; and one
#: whose cells have larger numbers than 32 bits hold.
LAYOUTS: list[tuple[Shape, Shape, int]] = [
    ((3, 4), (4, 1), 0), ((2, 3), (3, 1), 5), ((4, 3), (1, 4), 2), ((2, 3, 4), (12, 4, 1), 5),
    ((5, 4), (2, 20), 3), ((3, 4), (-4, 1), 8), ((4, 3), (8, -2), 6), ((3, 4), (0, 1), 2), ((5,), (2,), 1),
    ((2, 3, 2, 2), (24, 8, 2, 1), 3), ((6, 3), (1, 1), 0), ((3, 3), (3, 1), 4), ((3, 1, 2), (7, 5, 2), 4),
    ((1, 3), (3, 1), 0), ((1,), (1,), 0), ((70_000, 70_000), (70_000, 1), 0)
]  # fmt: skip
#: Shapes whose axes differ, and some with equal ones, or with axes of length 1.
TABLES: list[Shape] = [
    (3, 4), (2, 3), (4, 3), (2, 3, 4), (2, 3, 2), (3, 1, 4), (2, 2, 3, 2), (2, 1, 1, 3), (3, 3), (4,), (3, 1)
]  # fmt: skip
FEW = st.sampled_from(range(5))


def of_layouts(more: Callable[..., tuple], *choices: SearchStrategy) -> SearchStrategy[Case]:
    """Cases of a layout, and of what `more` makes of its shape and of these choices."""
    return st.tuples(st.sampled_from(LAYOUTS), *choices).map(lambda x: case(*x[0], *more(x[0][0], *x[1:])))


def as_lists(found: Any) -> Any:
    """A result with lists in place of arrays, and of what `reversed`, `zip` or a generator makes."""
    if isinstance(found, np.ndarray):
        return found.tolist()
    if isinstance(found, (tuple, list, Iterator)):
        return [as_lists(item) for item in found]
    return found


def in_lists(answer: Callable[..., Any], *inputs: Any) -> Any:
    """What an answer gives. It need not be made of tuples: what it holds is what matters."""
    return as_lists(answer(*inputs))


def layouts(expected: Any, got: Any, names: Names) -> str:
    """Whether two layouts read the same cells in the same order.

    Nobody walks along an axis of length 1, so its stride may be any. In an empty view, all of them and the offset
    may.
    """
    if kind(got) != "list" or len(got) != 3 or len(expected) != 3:
        return whole(expected, got, names)
    shape, strides, offset = got
    if shape == expected[0] and kind(strides) == "list" and len(strides) == len(shape):
        empty = 0 in shape
        right = expected[1]
        strides = [r if n == 1 or empty else s for n, r, s in zip(shape, right, strides, strict=True)]
        offset = expected[2] if empty else offset
    for what, one, other in zip(
        ("shape", "strides", "offset"), expected, (shape, strides, offset), strict=True
    ):
        if difference := whole(one, other, names):
            return f"the {what}: {difference}"
    return ""


OWN = "The library does it for you here. Write it without, from shape and strides alone."


LAYOUT_NAMES = {"strides", "stridetricks", "asstrided", "ndarray", "ndindex", "arrayinterface"}
#: The answer computes with numbers alone: it uses nothing of needle, and asks no array for its layout.
from_numbers = Unmentioned(
    Fault("your answer uses the library, or the layout of an array", OWN), LAYOUT_NAMES, library="needle"
)
numbers: dict[str, Any] = {"use": in_lists, "contracts": (from_numbers,)}


# --- 1 From an index to a cell, and back --------------------------------------------------------------------


@lecture.exercise(
    case((1, 2), (4, 1), 0),
    case((1, 0, 2), (12, 5, 2), 6),
    case((56_789, 12_345), (70_000, 1), 0),
    draws=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from([5, 7, 3, 1, 10, 11, 0])).map(
        lambda x: case(index_of(x[1] % prod(x[0][0]), x[0][0]), *x[0][1:])  # type: ignore[has-type]
    ),
    otherwise="Start at the offset. For each axis, walk as many steps as the index says, each as long as the "
    "stride of that axis.",
    compare=whole,
    **numbers,
)
def cell_of(index, strides, offset):
    return offset + sum(i * s for i, s in zip(index, strides, strict=True))


@lecture.exercise(
    case(6, (3, 4)),
    case(18, (2, 3, 4)),
    draws=st.tuples(
        st.sampled_from([*TABLES, (1, 3), (5, 1), (1,), (300, 300)]), st.sampled_from([*range(24), 89_912])
    ).map(lambda x: case(x[1] % prod(x[0]), x[0])),
    otherwise="Go from the last axis to the first. `divmod(cell, n)` gives you how many whole rows of n lie "
    "before the cell, and the place in its row.",
    own=("unravel_index", "nonzero", "argwhere", "ndenumerate", "where"),
    compare=whole,
    **numbers,
)
def index_of(cell, shape):
    index = []
    for n in reversed(shape):
        cell, i = divmod(cell, n)
        index.append(i)
    return tuple(reversed(index))


# --- 2 The layouts of views ---------------------------------------------------------------------------------


def some_order(shape: Shape, number: int) -> tuple[Shape]:
    """One of the orders of the axes; 0 turns them around."""
    orders = list(permutations(range(len(shape))))[::-1]
    return (orders[number % len(orders)],)


@lecture.exercise(
    case((3, 4), (4, 1), 0, (1, 0)),
    case((2, 3, 4), (12, 4, 1), 5, (1, 2, 0)),
    draws=of_layouts(some_order, st.sampled_from(range(24))),
    otherwise="Axis i of the result is axis `axes[i]` of the array: take its length and its stride from "
    "there.",
    compare=layouts,
    **numbers,
)
def permuted(shape, strides, offset, axes):
    return [shape[i] for i in axes], [strides[i] for i in axes], offset


def some_slice(shape: Shape, axis: int, start: int, step: int) -> tuple[int, int, int]:
    """An axis, where it begins, at its end at the latest, and the step."""
    axis %= len(shape)
    return axis, min(start, shape[axis]), step


@lecture.exercise(
    case((3, 4), (4, 1), 0, 1, 0, 2),
    case((3, 7), (7, 1), 2, 1, 1, 3),
    case((5, 3), (-3, 1), 12, 0, 1, 2),
    draws=of_layouts(
        some_slice, FEW, st.sampled_from([1, 2, 0, 3, 9]), st.sampled_from([2, 1, 3, 4, 7, 1000])
    ),
    otherwise="Three things change: the length of this axis, its stride, and the offset. Write the indices "
    "`start`, `start + step`, … on paper, and the cells below them.",
    compare=layouts,
    **numbers,
)
def sliced(shape, strides, offset, axis, start, step):
    shape, strides = list(shape), list(strides)
    offset = offset + start * strides[axis]
    shape[axis] = len(range(start, shape[axis], step))
    strides[axis] = strides[axis] * step
    return shape, strides, offset


@lecture.exercise(
    case((3, 4), (4, 1), 0, 1),
    case((3, 4), (-4, 1), 8, 0),
    draws=of_layouts(lambda shape, axis: (axis % len(shape),), FEW),
    otherwise="The last element along this axis comes first now: how far is it from the old first one? And "
    "each step goes back.",
    compare=layouts,
    **numbers,
)
def flipped(shape, strides, offset, axis):
    shape, strides = list(shape), list(strides)
    offset = offset + (shape[axis] - 1) * strides[axis]
    strides[axis] = -strides[axis]
    return shape, strides, offset


# --- 3 Broadcasting -----------------------------------------------------------------------------------------


def stretched(parts: tuple) -> Case:
    """A case of such a shape and strides, whose axes of length 1 are repeated so often, below such new axes."""
    (shape, strides), times, front = parts
    repeats = iter(times)
    return case(shape, strides, (*front, *(next(repeats) if n == 1 else n for n in shape)))


@lecture.exercise(
    case((5, 1), (1, 1), (5, 3)),
    case((3,), (1,), (5, 3)),
    case((2, 3, 1), (3, 1, 1), (7, 2, 3, 5)),
    draws=st.tuples(
        st.sampled_from(
            [
                *(((5, 1), (1, 1)), ((3,), (1,)), ((1, 4), (9, 2)), ((2, 3), (3, 1)), ((2, 3, 1), (3, 1, 1))),
                *(((2, 1, 3), (3, 3, 1)), ((4, 3), (-3, 1)), ((3, 3), (1, 3)), ((1, 3, 1, 2), (6, 2, 2, 1))),
                *(((1, 1), (5, 7)), ((1,), (4,))),
            ]
        ),
        st.sampled_from([(3, 5), (5, 3), (2, 4)]),
        st.sampled_from([(), (5,), (2, 5), (3,), (2, 4, 3)]),
    ).map(stretched),
    otherwise="Line the shape up with the new one, at the last axis. Where an axis repeats, a step along it "
    "must not move.",
    compare=whole,
    **numbers,
)
def stretched_strides(shape, strides, new_shape):
    new = len(new_shape) - len(shape)
    own = zip(shape, strides, new_shape[new:], strict=True)
    return [0] * new + [stride if n == m else 0 for n, stride, m in own]


# --- 4 Which reshape must copy ------------------------------------------------------------------------------


def verdict(expected: Any, got: Any, names: Names) -> str:
    """Whether an answer says rightly that elements must be copied."""
    if not isinstance(got, (bool, np.bool)):
        return f"it is {got!r}, but should be True or False"
    if expected == got:
        return ""
    if expected:
        return "no stride leads through these elements, so they must be copied"
    return "one stride leads through all elements, so a view will do"


def built(parts: tuple) -> Case:
    """A case whose strides are built from the last to the first, each so that it fits what follows or not."""
    shape, last, ways = parts
    strides: list[int] = []
    reach = compact = last  # so far leads a walk along all that comes after
    for n, way in zip(reversed(shape), ("fits", *ways), strict=False):
        if n == 1:
            strides.append(5)
            continue
        own = strides[-1] * n if strides else last
        choices = {"fits": reach, "compact": compact, "gap": reach + 1, "short": reach - 1}
        choices |= {"back": -reach, "one": 1, "still": 0, "own length": own}
        strides.append(choices[way])
        reach, compact = n * strides[-1], n * compact
    return case(shape, tuple(reversed(strides)))


def turned(parts: tuple) -> Case:
    """A case of a compact array whose axes come in another order."""
    shape, number = parts
    strides = [prod(shape[k + 1 :]) for k in range(len(shape))]
    (order,) = some_order(shape, number)
    return case(*(tuple(x[i] for i in order) for x in (shape, strides)))


WAYS = st.sampled_from(
    ["fits", "fits", "compact", "gap", "short", "back", "still", "one", "own length", "fits"]
)


@lecture.exercise(
    case((3, 4), (4, 1)),
    case((4, 3), (1, 4)),
    case((3, 2), (4, 1)),
    case((2, 3, 2), (14, 5, 2)),
    draws=st.tuples(
        st.sampled_from(TABLES), st.sampled_from([1, 2, -1, 3, -2, 4, 0]), st.tuples(WAYS, WAYS, WAYS)
    ).map(built)
    | st.tuples(st.sampled_from([*TABLES, (1, 3), (1, 1)]), st.sampled_from(range(24))).map(turned),
    number=250,
    otherwise="Write down the cells in the order in which the array reads them, row by row. Are they all the "
    "same step apart? Then one stride is enough.",
    compare=verdict,
    **numbers,
)
def must_copy(shape, strides):
    axes = [(n, step) for n, step in zip(shape, strides, strict=True) if n != 1]
    for k in range(len(axes) - 1):
        n, step = axes[k + 1]
        if axes[k][1] != n * step:
            return True
    return False


# --- 5 Sliding windows --------------------------------------------------------------------------------------


def image_case(numbers: str, view: str, size: tuple[int, int]) -> Case:
    """A case of an image, seen through such a view, and of windows that are not larger."""
    made = eval(numbers + view, {"NDArray": NDArray})
    fitting = tuple(min(pair) for pair in zip(size, made.shape, strict=True))
    return program_case(
        [f"image = {numbers}{view}", f"size = {fitting}"], {"NDArray": NDArray}, "image", "size"
    )


def with_memory(answer: Any, image: NDArray, size: tuple[int, int]) -> Any:
    """What an answer gives; of an array its shape, its numbers, and whose memory it looks at."""
    found = answer(image, size)
    if not isinstance(found, NDArray):
        return found
    memory = "shared" if found.storage is image.storage else "new"
    return {"the shape": found.shape, "the numbers": found.numpy(), "the memory": memory}


def seen(expected: Any, got: Any, names: Names) -> str:
    """Whether an answer is a view of the same windows."""
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return (
            values(expected, got, names) if kind(expected) == kind(got) else f"it is {kind(got)}, not NDArray"
        )
    for what in expected:
        if difference := values(expected[what], got[what], names):
            copies = what == "the memory"
            return "the numbers are right, but they are copies" if copies else f"{what}: {difference}"
    return ""


FOUR = "NDArray(range(16)).reshape((4, 4))"
PIXELS = [
    *("NDArray(range(20)).reshape((4, 5))", "NDArray(range(20)).reshape((5, 4))", FOUR),
    *("NDArray(range(5)).reshape((1, 5)).broadcast_to((4, 5))", "NDArray(range(6)).reshape((2, 3))"),
]
VIEWS = ["", ".permute((1, 0))", "[1:, ::2]", "[::-1, ::-1]", "[:, ::-1]", "[1:].permute((1, 0))", "[:1]"]


@lecture.exercise(
    image_case(FOUR, "", (3, 3)),
    draws=st.tuples(
        st.sampled_from(PIXELS),
        st.sampled_from(VIEWS),
        st.sampled_from([(2, 3), (3, 2), (2, 2), (1, 2), (9, 2), (2, 1), (1, 1), (9, 9)]),
    ).map(lambda x: image_case(*x)),
    otherwise="Element [r, c, i, j] is pixel [r + i, c + j] of the image. How far do you walk in memory if r "
    "grows by one? And if i does?",
    use=with_memory,
    compare=seen,
    without={window_layout: OWN},
)
def windows(image, size):
    (height, width), (h, w) = image.shape, size
    down, right = image.strides
    shape = (height - h + 1, width - w + 1, h, w)
    return image.as_strided(shape, (down, right, down, right))
