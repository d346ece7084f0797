"""Lecture 11, strides, views and broadcasting: exercises, usual mistakes, predictions, and what cells use."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from needle.backend_ndarray import NDArray
from needle.backend_ndarray.memory import blocks
from needle.backend_ndarray.strides import window_layout
from needle.backend_ndarray.views import View

from .checking import Case, Lecture, Names, case, given, kind, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict

Shape = tuple[int, ...]
Layout = tuple[Shape, Shape, int]


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


# --- What the answers are compared with: views of the library -----------------------------------------------

CELLS = 240  # of the storage that the views of the cases look at


def _view(shape: Shape, strides: Shape, offset: int = 0) -> NDArray:
    """A view of a storage in which each cell holds its own number."""
    cells = NDArray(range(CELLS))
    return NDArray.make(tuple(shape), tuple(strides), cells.device, cells.storage, offset)


def _layout(view: NDArray) -> Layout:
    return view.shape, view.strides, view.offset


def _compact(shape: Shape) -> Shape:
    return NDArray.compact_strides(tuple(shape))


def _as_lists(found: Any) -> Any:
    """A result with lists in place of arrays, and of what `reversed`, `zip` or a generator makes."""
    if isinstance(found, np.ndarray):
        return found.tolist()
    if isinstance(found, (tuple, list, Iterator)):
        return [_as_lists(item) for item in found]
    return found


def _in_lists(answer: Callable[..., Any], *inputs: Any) -> Any:
    """What an answer gives. It need not be made of tuples: what it holds is what matters."""
    return _as_lists(answer(*inputs))


OWN = "The library does it for you here. Write it without, from shape and strides alone."


# --- 1 From an index to a cell, and back --------------------------------------------------------------------


@lecture.exercise(
    case((1, 2), (4, 1), 0),
    case((2, 1), (1, 4), 2),
    case((1, 3), (5, -1), 9),
    case((1, 0, 2), (12, 5, 2), 6),
    otherwise="Start at the offset. For each axis, walk as many steps as the index says, each as long as the "
    "stride of that axis.",
)
def cell_of(index, strides, offset):
    """The number of the cell, as the library finds it."""
    view = _view(tuple(i + 1 for i in index), strides, offset)
    return int(view[tuple(index)].numpy().item())


@cell_of.mistake("You start at cell 0. The first element is at the offset, so the walk starts there.")
def without_offset(index, strides, offset):
    return sum(i * s for i, s in zip(index, strides, strict=True))


@cell_of.mistake(
    "You take the strides from the other end. The first number of the index goes with the first stride."
)
def strides_turned_around(index, strides, offset):
    return offset + sum(i * s for i, s in zip(index, reversed(strides), strict=True))


@cell_of.mistake("You add the strides once each. How many steps you take along an axis is what `index` says.")
def one_step_each(index, strides, offset):
    return offset + sum(strides)


@cell_of.mistake("You add index and stride. Three steps of length 4 are 3 · 4 cells, so multiply the two.")
def added(index, strides, offset):
    return offset + sum(i + s for i, s in zip(index, strides, strict=True))


@cell_of.mistake("These are the walks along each axis. Add them up, and begin at the offset.")
def not_summed(index, strides, offset):
    return [i * s for i, s in zip(index, strides, strict=True)]


@cell_of.mistake("You walk along the first two axes only. An array may have any number of them: use a loop.")
def two_axes(index, strides, offset):
    return offset + index[0] * strides[0] + index[1] * strides[1]


@cell_of.mistake("4 and 1 are the strides of `a`. Other arrays have others: they come as `strides`.")
def strides_of_a(index, strides, offset):
    return offset + 4 * index[0] + index[1]


@cell_of.mistake("4 and 1 are the strides of `a`. Other arrays have others, and an offset, too.")
def strides_of_a_from_zero(index, strides, offset):
    return 4 * index[0] + index[1]


@cell_of.mistake(
    "The offset is counted once for each axis. It is where the walk starts: add it once, outside of the sum."
)
def offset_each_time(index, strides, offset):
    return sum(offset + i * s for i, s in zip(index, strides, strict=True))


@cell_of.mistake(
    "Tuples are not multiplied entry by entry. Go through both of them in a loop, or with `zip`."
)
def tuples_multiplied(index, strides, offset):
    return offset + index * strides


@cell_of.mistake(
    "This is the walk along the first axis alone. Go along all of them before you return: is the `return` "
    "inside of the loop?"
)
def first_axis_alone(index, strides, offset):
    return offset + index[0] * strides[0]


@cell_of.mistake(
    "This is the walk along the last axis alone. Add each walk to the sum so far: does your loop begin anew "
    "each time?"
)
def last_axis_alone(index, strides, offset):
    return offset + index[-1] * strides[-1]


@cell_of.mistake(
    "`for i in index` gives you the numbers of the index, not their places. Take index and strides together: "
    "`for i, s in zip(index, strides)`."
)
def number_as_place(index, strides, offset):
    return offset + sum(i * strides[i] for i in index)


@lecture.exercise(
    case(6, (3, 4)),
    case(7, (4, 3)),
    case(18, (2, 3, 4)),
    case(5, (6,)),
    case(0, (2, 2)),
    otherwise="Go from the last axis to the first. `divmod(cell, n)` gives you how many whole rows of n lie "
    "before the cell, and the place in its row.",
    use=_in_lists,
)
def index_of(cell, shape):
    """Where the library reads this cell."""
    found = np.argwhere(NDArray(range(prod(shape))).reshape(tuple(shape)).numpy() == cell)[0]
    return tuple(map(int, found))


@index_of.mistake(
    "The numbers are right, in the wrong order: you found the last axis first. Turn them around."
)
def last_first(cell, shape):
    return index_of.right(cell, shape)[::-1]


@index_of.mistake(
    "You fill the columns first. Here the last index counts fastest: divide by the length of the *last* axis "
    "first."
)
def columns_first(cell, shape):
    return tuple(map(int, np.unravel_index(cell, shape, order="F")))


@index_of.mistake(
    "You divide by the strides, but what is left over must go on to the next axis: take the remainder, `%`."
)
def without_remainder(cell, shape):
    return tuple(cell // s for s in _compact(shape))


@index_of.mistake(
    "This is right for two axes only. Go through the axes in a loop, from the last to the first."
)
def two_axes_only(cell, shape):
    return divmod(cell, shape[-1])


@index_of.mistake(
    "`shape[1]` is the last axis of a table. For any number of axes, use a loop, from the last to the first."
)
def second_axis(cell, shape):
    return divmod(cell, shape[1])


@index_of.mistake(
    "You take the remainder for each axis, but always of the same cell. After each axis go on with the "
    "quotient: `cell // n`."
)
def remainders_of_the_same(cell, shape):
    return tuple(cell % n for n in shape)


@index_of.mistake(
    "You divide by the length of the first axis. A row is as long as the *last* axis: that length comes "
    "first."
)
def first_length(cell, shape):
    return divmod(cell, shape[0])


@index_of.mistake(
    "You keep the wrong half of `divmod`. The remainder is the index along this axis, and the quotient "
    "is what "
    "goes on to the next."
)
def quotient_and_remainder_exchanged(cell, shape):
    index = []
    for n in reversed(shape):
        quotient, cell = divmod(cell, n)
        index.append(quotient)
    return index[::-1]


@index_of.mistake(
    "You keep the quotient, and it also goes on to the next axis. The index along this axis is the remainder."
)
def quotients(cell, shape):
    index = []
    for n in reversed(shape):
        cell //= n
        index.append(cell)
    return index[::-1]


@index_of.mistake(
    "You keep the remainder, and that is right. But what goes on to the next axis is the quotient, "
    "`cell // n`."
)
def remainder_goes_on(cell, shape):
    index = []
    for n in reversed(shape):
        cell %= n
        index.append(cell)
    return index[::-1]


@index_of.mistake(
    "A tuple cannot be changed, nor can you append to it. Collect the numbers in a list, and return that."
)
def appended_to_a_tuple(cell, shape):
    index = ()
    index.append(cell)  # type: ignore[attr-defined]


# --- 2 The layouts of views ---------------------------------------------------------------------------------

OFFSET_MISSING = "The offset belongs to a layout, too: return all three, also where it stays the same."
NOT_A_LIST = "A tuple cannot be changed in place. Make lists first, `list(strides)`, and change those."


def _assign(shape, strides, offset, *more):
    strides[0] = 0


@lecture.exercise(
    case((3, 4), (4, 1), 0, (1, 0)),
    case((2, 3, 4), (12, 4, 1), 5, (1, 2, 0)),
    case((2, 3, 4), (12, 4, 1), 0, (0, 2, 1)),
    otherwise="Axis i of the result is axis `axes[i]` of the array: take its length and its stride from "
    "there.",
    use=_in_lists,
    without={View.permute: OWN},
)
def permuted(shape, strides, offset, axes):
    """The layout of the library's view."""
    return _layout(_view(shape, strides, offset).permute(axes))


@permuted.mistake(
    "The lengths are in the new order, but the strides are not. Each axis takes its stride along."
)
def shape_only(shape, strides, offset, axes):
    return tuple(shape[i] for i in axes), strides, offset


@permuted.mistake(
    "These are the strides of a fresh array of that shape, so of a copy. In a view each axis keeps its own."
)
def strides_of_a_copy(shape, strides, offset, axes):
    new = tuple(shape[i] for i in axes)
    return new, _compact(new), offset


@permuted.mistake(
    "You put axis i at the place `axes[i]`. It is the other way around: axis i of the result *comes from* "
    "`axes[i]`."
)
def the_inverse(shape, strides, offset, axes):
    order = [list(axes).index(i) for i in range(len(axes))]
    return tuple(shape[i] for i in order), tuple(strides[i] for i in order), offset


@permuted.mistake("You turn all axes around, whatever `axes` says. Take axis `axes[i]` for place i.")
def all_turned(shape, strides, offset, axes):
    return shape[::-1], strides[::-1], offset


@permuted.mistake("The first element stays where it is, so the offset stays, too.")
def offset_lost(shape, strides, offset, axes):
    return [shape[i] for i in axes], [strides[i] for i in axes], 0


@permuted.mistake("A layout begins with the shape, and then come the strides. You return the strides first.")
def strides_first(shape, strides, offset, axes):
    return [strides[i] for i in axes], [shape[i] for i in axes], offset


@permuted.mistake(OFFSET_MISSING)
def without_the_offset(shape, strides, offset, axes):
    return [shape[i] for i in axes], [strides[i] for i in axes]


@permuted.mistake(NOT_A_LIST)
def permuted_in_place(shape, strides, offset, axes):
    _assign(shape, strides, offset)


@permuted.mistake("A tuple takes one number at a time between the brackets: `[shape[i] for i in axes]`.")
def indexed_by_a_tuple(shape, strides, offset, axes):
    return shape[axes], strides[axes], offset


def _every(shape, strides, offset, axis, start, step, length=None, stride=None, first=None):
    """The layout of a slice, with one of its three changes made otherwise."""
    n, s = shape[axis], strides[axis]
    lengths, steps = list(shape), list(strides)
    lengths[axis] = len(range(start, n, step)) if length is None else length(n, start, step)
    steps[axis] = s * step if stride is None else stride(s, step)
    return lengths, steps, offset + start * s if first is None else first(offset, start, s)


@lecture.exercise(
    case((3, 4), (4, 1), 0, 1, 0, 2),
    case((3, 4), (4, 1), 0, 0, 1, 1),
    case((3, 7), (7, 1), 2, 1, 1, 3),
    case((5, 4), (2, 20), 3, 0, 2, 2),
    otherwise="Three things change: the length of this axis, its stride, and the offset. Write the indices "
    "`start`, `start + step`, … on paper, and the cells below them.",
    use=_in_lists,
    without={View.__getitem__: OWN},
)
def sliced(shape, strides, offset, axis, start, step):
    """The layout of the library's view."""
    index = tuple(slice(start, None, step) if i == axis else slice(None) for i in range(len(shape)))
    return _layout(_view(shape, strides, offset)[index])


@sliced.mistake(
    "The number of elements is rounded the wrong way: with `start` 0 and step 2, five elements leave three. "
    "`len(range(start, n, step))` counts them."
)
def rounded_down(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, length=lambda n, a, k: (n - a) // k)


@sliced.mistake(
    "The elements before `start` are still counted. `len(range(start, n, step))` leaves them out."
)
def start_not_left_out(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, length=lambda n, a, k: -(-n // k))


@sliced.mistake(
    "The number of elements is not right for every step. Count them with `len(range(start, n, step))`, "
    "where n "
    "is the old length."
)
def one_more_and_rounded_down(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, length=lambda n, a, k: (n - a + 1) // k)


@sliced.mistake(
    "The length of this axis has not changed. How many of `start`, `start + step`, … are below it?"
)
def length_kept(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, length=lambda n, a, k: n)


@sliced.mistake(
    "You move the offset by `start` cells. But to go to the next index along this axis is a walk of one "
    "stride: `start` strides."
)
def offset_by_start(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, first=lambda o, a, s: o + a)


@sliced.mistake("The first element is now at index `start`. So the offset has to move there.")
def offset_stays(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, first=lambda o, a, s: o)


@sliced.mistake("Your offset forgets where the view began before. Add to the old offset.")
def offset_anew(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, first=lambda o, a, s: a * s)


@sliced.mistake(
    "You multiplied the stride by `step` first, and then used it for `start`. The offset moves by *old* "
    "strides."
)
def offset_by_the_new_stride(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, first=lambda o, a, s: o + a * s * step)


@sliced.mistake(
    "The stride of this axis has not changed. If you skip elements, each step goes over `step` strides."
)
def stride_kept(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, stride=lambda s, k: s)


@sliced.mistake("The new stride is not `step` itself, but `step` times the old one.")
def stride_is_step(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, stride=lambda s, k: k)


@sliced.mistake("A step of 3 elements walks three strides: 3 times the old stride, and not 3 cells more.")
def stride_plus_step(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step, stride=lambda s, k: s + k)


@sliced.mistake(OFFSET_MISSING)
def sliced_without_the_offset(shape, strides, offset, axis, start, step):
    return _every(shape, strides, offset, axis, start, step)[:2]


@sliced.mistake("You multiply all the strides. Only along this one axis are elements skipped.")
def all_strides(shape, strides, offset, axis, start, step):
    lengths, _, first = _every(shape, strides, offset, axis, start, step)
    return lengths, [s * step for s in strides], first


@sliced.mistake("`len(shape)` is the number of axes. The old length of this axis is `shape[axis]`.")
def number_of_axes(shape, strides, offset, axis, start, step):
    return _every(
        shape, strides, offset, axis, start, step, length=lambda n, a, k: len(range(a, len(shape), k))
    )


@sliced.mistake(NOT_A_LIST)
def sliced_in_place(shape, strides, offset, axis, start, step):
    _assign(shape, strides, offset)


def _flip(shape, strides, offset, axis, first):
    steps = [-s if i == axis else s for i, s in enumerate(strides)]
    return shape, steps, first(offset, shape[axis], strides[axis])


@lecture.exercise(
    case((3, 4), (4, 1), 0, 1),
    case((3, 4), (4, 1), 5, 0),
    case((3, 4), (-4, 1), 8, 0),
    otherwise="The last element along this axis comes first now: how far is it from the old first one? And "
    "each step goes back.",
    use=_in_lists,
    without={View.flip: OWN, View.__getitem__: OWN},
)
def flipped(shape, strides, offset, axis):
    """The layout of the library's view."""
    return _layout(_view(shape, strides, offset).flip((axis,)))


@flipped.mistake(
    "The walk goes back from the old first element, and out of the array. Begin at the *last* one along this "
    "axis."
)
def still_at_the_first(shape, strides, offset, axis):
    return _flip(shape, strides, offset, axis, lambda o, n, s: o)


@flipped.mistake("One step too far: from the first of n elements to the last there are n − 1 steps.")
def one_too_far(shape, strides, offset, axis):
    return _flip(shape, strides, offset, axis, lambda o, n, s: o + n * s)


@flipped.mistake("To the last element there are n − 1 steps, and each of them is a *stride* long.")
def steps_of_one(shape, strides, offset, axis):
    return _flip(shape, strides, offset, axis, lambda o, n, s: o + n - 1)


@flipped.mistake("Your offset forgets where the view began before. Add to the old offset.")
def flipped_from_zero(shape, strides, offset, axis):
    return _flip(shape, strides, offset, axis, lambda o, n, s: (n - 1) * s)


@flipped.mistake(
    "You go on from the stride that you have turned around already, so the offset moves the wrong way. Take "
    "the old stride."
)
def by_the_new_stride(shape, strides, offset, axis):
    return _flip(shape, strides, offset, axis, lambda o, n, s: o - (n - 1) * s)


@flipped.mistake(
    "A stride of −1 goes back by one cell. Here a step is longer: change the sign of the old stride."
)
def back_by_one(shape, strides, offset, axis):
    steps = [-1 if i == axis else s for i, s in enumerate(strides)]
    return shape, steps, offset + (shape[axis] - 1) * strides[axis]


@flipped.mistake(
    "You walk by single cells: a stride of −1, and n − 1 cells to the end. Here a step is longer, so use the "
    "old stride for both."
)
def all_by_one(shape, strides, offset, axis):
    steps = [-1 if i == axis else s for i, s in enumerate(strides)]
    return shape, steps, offset + shape[axis] - 1


@flipped.mistake(OFFSET_MISSING)
def flipped_without_the_offset(shape, strides, offset, axis):
    return _flip(shape, strides, offset, axis, lambda o, n, s: o)[:2]


@flipped.mistake("Only the stride of this one axis gets another sign.")
def every_axis(shape, strides, offset, axis):
    return shape, [-s for s in strides], offset + (shape[axis] - 1) * strides[axis]


@flipped.mistake(
    "The offset is right. But each step along this axis must go back: its stride changes its sign."
)
def sign_kept(shape, strides, offset, axis):
    return shape, strides, offset + (shape[axis] - 1) * strides[axis]


@flipped.mistake(
    "You turn the list of strides around, and that exchanges the axes. Change the sign of one stride, "
    "and move "
    "the offset."
)
def list_turned_around(shape, strides, offset, axis):
    return shape, strides[::-1], offset


@flipped.mistake(
    "This is the last element of the whole array. Only one axis is turned around: go to its end."
)
def last_of_all(shape, strides, offset, axis):
    return _flip(
        shape,
        strides,
        offset,
        axis,
        lambda o, n, s: o + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)),
    )


@flipped.mistake(NOT_A_LIST)
def flipped_in_place(shape, strides, offset, axis):
    _assign(shape, strides, offset)


# --- 3 Broadcasting -----------------------------------------------------------------------------------------


@lecture.exercise(
    case((5, 1), (1, 1), (5, 3)),
    case((3,), (1,), (5, 3)),
    case((2, 3, 1), (3, 1, 1), (7, 2, 3, 5)),
    case((1, 4), (9, 2), (3, 4)),
    otherwise="Line the shape up with the new one, at the last axis. Where an axis repeats, a step along it "
    "must not move.",
    use=_in_lists,
    without={View.broadcast_to: OWN},
)
def stretched_strides(shape, strides, new_shape):
    """The strides of the library's view."""
    return _view(shape, strides).broadcast_to(new_shape).strides


def _stretch(shape, strides, new_shape, new_axis=0, stretched=lambda s: 0):
    missing = len(new_shape) - len(shape)
    steps = [
        s if n == m else stretched(s) for n, s, m in zip(shape, strides, new_shape[missing:], strict=True)
    ]
    return [new_axis] * missing + steps


@stretched_strides.mistake(
    "These are the strides of a copy, with each number written out as often as it repeats. A view repeats it "
    "by standing still: stride 0."
)
def written_out(shape, strides, new_shape):
    return _compact(new_shape)


@stretched_strides.mistake(
    "The axes of length 1 keep their strides in your answer. There is one number only along such an axis, so "
    "each step must stay on it: 0."
)
def ones_keep_theirs(shape, strides, new_shape):
    return _stretch(shape, strides, new_shape, stretched=lambda s: s)


@stretched_strides.mistake(
    "A stride of 1 goes to the next cell, and there is another number. To read the same cell again, the "
    "stride is 0."
)
def one_for_zero(shape, strides, new_shape):
    return _stretch(shape, strides, new_shape, new_axis=1, stretched=lambda s: 1)


@stretched_strides.mistake(
    "The new axes in front are missing. They repeat the whole array: stride 0 as well."
)
def new_axes_left_out(shape, strides, new_shape):
    return _stretch(shape, strides, new_shape)[len(new_shape) - len(shape) :]


@stretched_strides.mistake(
    "You line the shapes up at the front. Line them up at the *last* axis: the new axes come first."
)
def zeros_behind(shape, strides, new_shape):
    missing = len(new_shape) - len(shape)
    steps = [s if n == m else 0 for n, s, m in zip(shape, strides, new_shape, strict=False)]
    return steps + [0] * missing


@stretched_strides.mistake(
    "Everything stands still, so only one number is ever read. Only axes that repeat get 0: where the "
    "lengths "
    "are equal, the stride stays."
)
def all_zero(shape, strides, new_shape):
    return [0] * len(new_shape)


# --- 4 Which reshape must copy ------------------------------------------------------------------------------


def _verdict(expected: Any, got: Any, names: Names) -> str:
    if kind(got) != "number" or isinstance(got, float):
        return f"it is {kind(got)}, but should be True or False"
    if bool(expected) == bool(got):
        return ""
    return (
        "no stride leads through these elements, so they must be copied"
        if expected
        else "one stride leads through all elements, so a view will do"
    )


@lecture.exercise(
    case((3, 4), (4, 1)),
    case((4, 3), (1, 4)),
    case((3, 4), (8, 2)),
    case((3, 2), (4, 1)),
    case((2, 2, 3, 2), (16, 8, 2, 1)),
    case((3, 3), (-3, -1)),
    case((3, 1, 4), (4, 12, 1)),
    case((3, 4), (-4, 1)),
    case((3, 1, 2), (4, 4, 1)),
    otherwise="Write down the cells in the order in which the array reads them, row by row. Are they all the "
    "same step apart? Then one stride is enough.",
    compare=_verdict,
    without={View.reshape: OWN},
)
def must_copy(shape, strides):
    """Whether the library copies when it puts all elements along one axis."""
    view = _view(shape, strides, 100)
    return view.reshape((view.size,)).storage is not view.storage


def _without_ones(shape: Shape, strides: Shape) -> tuple[Shape, Shape]:
    lengths, steps = zip(*[(n, s) for n, s in zip(shape, strides, strict=True) if n != 1], strict=True)
    return lengths, steps


@must_copy.mistake(
    "You ask whether the array is compact. A view with gaps or backwards need not be: (8, 2) for shape "
    "(3, 4) "
    "reads every second cell, and that is one stride."
)
def is_it_compact(shape, strides):
    return tuple(strides) != _compact(shape)


@must_copy.mistake(
    "You ask whether the strides go down. They do so in (4, 1) for shape (3, 2), too, but two steps of 1 do "
    "not lead to the next row at 4."
)
def going_down(shape, strides):
    return any(s < t for s, t in pairwise(strides))


@must_copy.mistake(
    "An axis of length 1 is never walked along, so its stride does not matter. Leave such axes out first."
)
def with_axes_of_one(shape, strides):
    return any(strides[i] != shape[i + 1] * strides[i + 1] for i in range(len(shape) - 1))


@must_copy.mistake(
    "You take the length of the wrong axis. One step along an axis must lead as far as all the steps along "
    "the axis *after* it: that one's length times that one's stride."
)
def own_length(shape, strides):
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    return any(s != n * t for (n, s), (_, t) in pairwise(axes))


TWO_ONLY = (
    "You look at two axes only. Every axis must lead on to the one after it, so look at them all. Is a "
    "`return` inside of the loop?"
)


@must_copy.mistake(TWO_ONLY)
def last_two(shape, strides):
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    return axes[-2][1] != axes[-1][0] * axes[-1][1]


@must_copy.mistake(TWO_ONLY)
def first_two(shape, strides):
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    return axes[0][1] != axes[1][0] * axes[1][1]


@must_copy.mistake(TWO_ONLY)
def first_two_with_ones(shape, strides):
    return strides[0] != shape[1] * strides[1]


@must_copy.mistake(TWO_ONLY)
def last_two_with_ones(shape, strides):
    return strides[-2] != shape[-1] * strides[-1]


@must_copy.mistake(
    "You ask for the length of the last step only. It may be any, also 2 or −1, if all the steps before "
    "it fit."
)
def last_stride(shape, strides):
    return strides[-1] != 1


@must_copy.mistake(
    "You have the answers the wrong way around: True where strides can do it, False where they cannot."
)
def turned_around(shape, strides):
    return not with_axes_of_one(*_without_ones(shape, strides))


@must_copy.mistake(
    "Often one stride is enough, and then the answer is False: here four steps of 1 lead to the next row."
)
def always(shape, strides):
    return True


@must_copy.mistake(
    "Walk through this transpose, row by row: cells 0, 4, 8, and then 1. No single stride does that."
)
def never(shape, strides):
    return False


@must_copy.mistake(
    "Steps back are steps, too. Compare the strides with their signs: if all of them are negative, one "
    "negative stride reads the elements in this order."
)
def no_steps_back(shape, strides):
    return min(strides) < 0 or with_axes_of_one(*_without_ones(shape, strides))


@must_copy.mistake(
    "Four steps of 1 go forwards, but the next row begins 4 cells back. Compare the strides with their signs."
)
def without_signs(shape, strides):
    return with_axes_of_one(*_without_ones(shape, tuple(abs(s) for s in strides)))


@must_copy.mistake(
    "You pass over an axis of length 1, and so its neighbours are never compared. Leave it out *first*: then "
    "they stand side by side."
)
def passed_over(shape, strides):
    return any(
        1 not in shape[i : i + 2] and strides[i] != shape[i + 1] * strides[i + 1]
        for i in range(len(shape) - 1)
    )


@must_copy.mistake(
    "All the elements stand side by side, but in which order? A transpose reads the same cells in "
    "another one."
)
def same_cells(shape, strides):
    steps = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True))
    return bool(steps % prod(shape))


# --- 5 Sliding windows --------------------------------------------------------------------------------------


def _numbered(rows: int, columns: int, view: Callable[[NDArray], NDArray] = lambda a: a) -> Any:
    """Makes an image whose pixels are numbered, and looks at it in another way."""
    return lambda: {"image": view(NDArray(np.arange(rows * columns).reshape(rows, columns)))}


def _sized(make: Callable[[], dict], size: tuple[int, int], program: str = "") -> Case:
    return given(lambda: {**make(), "size": size}, "image", "size", program=program)


def _with_memory(answer: Any, image: NDArray, size: tuple[int, int]) -> Any:
    """What an answer gives; of an array its shape, its numbers, and whose memory it looks at."""
    found = answer(image, size)
    if not isinstance(found, NDArray):
        return found
    shared = found.storage is image.storage
    return {
        "the shape": found.shape,
        "the numbers": found.numpy(),
        "the memory": "shared" if shared else "new",
    }


def _seen(expected: Any, got: Any, names: Names) -> str:
    if not isinstance(expected, dict):  # two wrong answers are compared
        return values(expected, got, names)
    if not isinstance(got, dict):
        return f"the type is {kind(got)}, but should be NDArray"
    for what in expected:
        if difference := values(expected[what], got[what], names):
            if what == "the memory":
                return "the numbers are right, but they are copies"
            return f"{what}: {difference}"
    return ""


@lecture.exercise(
    _sized(_numbered(4, 4), (3, 3)),
    _sized(_numbered(3, 5), (2, 3)),
    _sized(_numbered(5, 4, lambda a: a.permute((1, 0))), (2, 3), "image = NDArray(…).permute((1, 0))"),
    _sized(_numbered(5, 5, lambda a: a[1:, ::2]), (2, 2), "image = NDArray(…)[1:, ::2]"),
    otherwise="Element [r, c, i, j] is pixel [r + i, c + j] of the image. How far do you walk in memory if r "
    "grows by one? And if i does?",
    use=_with_memory,
    compare=_seen,
    without={window_layout: OWN},
)
def windows(image, size):
    """The library's own view of all windows."""
    pixels = image.as_strided((1, *image.shape, 1), (0, *image.strides, 0))
    shape, strides = window_layout(pixels.shape, pixels.strides, size, (1, 1), (1, 1))
    return image.as_strided(shape[1:5], strides[1:5])


def _window_shape(image, size):
    return tuple(n - m + 1 for n, m in zip(image.shape, size, strict=True))


@windows.mistake(
    "One window is missing along each axis. A window as long as the axis fits once, so there are n − h + 1."
)
def one_too_few(image, size):
    counts = tuple(n - m for n, m in zip(image.shape, size, strict=True))
    return image.as_strided(counts + tuple(size), image.strides * 2)


@windows.mistake(
    "The first two axes say which window, and the last two which pixel in it. Yours are the other way around."
)
def window_axes_first(image, size):
    return image.as_strided(tuple(size) + _window_shape(image, size), image.strides * 2)


@windows.mistake(
    "Your windows are turned over: rows and columns are exchanged within them. One row down in a window "
    "is as "
    "far as one row down in the image."
)
def turned_over(image, size):
    down, right = image.strides
    return image.as_strided(_window_shape(image, size) + tuple(size), (down, right, right, down))


@windows.mistake("You count on an image that is compact. This one is a view: ask it for its own `strides`.")
def as_if_compact(image, size):
    steps = _compact(image.shape)
    return image.as_strided(_window_shape(image, size) + tuple(size), steps * 2)


@windows.mistake(
    "Right numbers, but in new memory. Copy neither the windows nor the image: `image.as_strided(shape, "
    "strides)` looks at it as it is."
)
def written_out_one_by_one(image, size):
    return NDArray(by_numpy(image, size))


@windows.mistake(
    "This is a NumPy array. Make a view of the image itself: `image.as_strided(shape, strides)`."
)
def by_numpy(image, size):
    return np.lib.stride_tricks.sliding_window_view(image.numpy(), size)


@windows.mistake(
    "Your view would reach beyond the memory. Count the windows again: along an axis of n there are n − "
    "h + 1. "
    "And each step of a window is one step in the image."
)
def one_at_each_pixel(image, size):
    return image.as_strided(image.shape + tuple(size), image.strides * 2)


@windows.mistake(
    "The result has four axes: which window down, which to the right, and the two within a window. Each "
    "needs "
    "a length and a stride."
)
def two_strides(image, size):
    return image.as_strided(_window_shape(image, size) + tuple(size), image.strides)


@windows.mistake(
    "These are tiles: each begins where the one before ends. Windows overlap. The next one begins one pixel "
    "further, so it has the image's own stride."
)
def tiles(image, size):
    counts = tuple(n // m for n, m in zip(image.shape, size, strict=True))
    steps = tuple(s * m for s, m in zip(image.strides, size, strict=True))
    return image.as_strided(counts + tuple(size), steps + image.strides)


@windows.mistake(
    "Within a window, one step down is as far as one row down in the image, and not 1 cell. Both "
    "strides of the "
    "image come twice."
)
def one_cell_each(image, size):
    down, right = image.strides
    return image.as_strided(_window_shape(image, size) + tuple(size), (down, right, 1, 1))


@windows.mistake(
    "Within a window, one step down is as far as one row down in the image, and not 1 cell. Both "
    "strides of the "
    "image come twice."
)
def one_cell_everywhere(image, size):
    return image.as_strided(_window_shape(image, size) + tuple(size), (1, 1, 1, 1))


@windows.mistake(
    "This has one element for each window. The pixels within the window need two more axes, `h` and "
    "`w`, with "
    "strides of their own."
)
def without_what_is_within(image, size):
    return image.as_strided(_window_shape(image, size), image.strides)
