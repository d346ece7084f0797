"""Lecture 13, CUDA kernels: its puzzles, run thread by thread, the usual mistakes, and predictions."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from statistics import median
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numba import cuda, float32

from needle.backend_ndarray import device
from viz.plots.kernel_recording import Access, KernelTrace, trace_kernel
from viz.plots.kernels import kernel_trace

from .checking import Case, Exercise, Lecture, Names, given, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


# --- A launch, and what is seen of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: ``kernel[grid, block](out, …)``, with zeros of this shape as `out`.

    Attributes
    ----------
    grid, block : int or tuple of int
    shape : tuple of int
        Of `out`.
    tile : int, optional
        For a function that makes the kernel: what it is called with.
    """

    grid: Any
    block: Any
    shape: tuple[int, ...]
    tile: int = 0

    def __str__(self) -> str:
        words = []
        for size, name in ((self.grid, "block"), (self.block, "thread")):
            many = "" if size == 1 else "s"
            words.append(f"{' × '.join(map(str, size)) if isinstance(size, tuple) else size} {name}{many}")
        tile = f", tile = {self.tile}" if self.tile else ""
        return f"a launch of {' of '.join(words)}, and out of shape {self.shape}{tile}"


@dataclass
class Ran:
    """What a launch did, as far as checks look at it.

    Attributes
    ----------
    trace : KernelTrace
    returned : whatever a thread gave back
    wrong : bool
        Whether other numbers should be in `out`.
    counts : bool
        Whether it matters how often global memory is read.
    """

    trace: KernelTrace
    returned: Any
    wrong: bool = False
    counts: bool = False

    def __repr__(self) -> str:
        out = f"out = {_shown(self.out)}"
        if not self.counts:
            return out
        counted = ", ".join(f"{name} {count} times" for name, count in self.reads().items() if count)
        return f"{out}, read from global memory: {counted or 'nothing'}"

    @property
    def out(self) -> np.ndarray:
        """What is in the first array after the launch."""
        return next(iter(self.trace.arrays.values()))

    @property
    def inputs(self) -> list[str]:
        """What the kernel calls its other arrays."""
        return list(self.trace.arrays)[1:]

    def reads(self) -> dict[str, int]:
        """How often each array in global memory was read."""
        read = Counter(a.array for a in self.trace.accesses if a.kind != "write")
        return {name: read[name] for name in self.trace.arrays}

    def writes(self) -> int:
        """How often `out` was written."""
        return sum(
            a.kind != "read" and a.array not in self.inputs and _is_global(a) for a in self.trace.accesses
        )

    def homes(self) -> dict[Shape, tuple[Shape, Shape]]:
        """Which block and which thread wrote an element of `out`."""
        return {
            a.index: (a.block, a.thread)
            for a in self.trace.accesses
            if a.kind == "write" and a.array not in self.inputs and _is_global(a)
        }

    def most_written(self) -> int:
        """How many numbers of `out` one thread writes at most."""
        return max(Counter(self.homes().values()).values(), default=0)

    def longest(self) -> int:
        """How many numbers the busiest thread read between two barriers."""
        reads = (a for a in self.trace.accesses if a.kind == "read")
        return max(Counter((a.block, a.thread, a.phase) for a in reads).values(), default=0)

    def into_an_input(self) -> Access | None:
        """The first write into an array other than `out`."""
        return next((a for a in self.trace.accesses if a.kind != "read" and a.array in self.inputs), None)

    def too_soon(self) -> Access | None:
        """The first read of a place in shared memory where no thread of the block has written."""
        written = set()
        for access in self.trace.accesses:
            place = access.memory, access.index
            if not _is_global(access) and access.kind == "read" and place not in written:
                return access
            written.add(place)
        return None


Shape = tuple[int, ...]


def _is_global(access: Any) -> bool:
    return not access.array.startswith("shared ")


def _shown(numbers: np.ndarray) -> str:
    if numbers.ndim:
        return f"[{', '.join(map(_shown, numbers))}]"
    return f"{numbers:.6g}"


def run(answer: Any, launch: Launch, *arrays: np.ndarray) -> Any:
    """Run a kernel thread by thread, without a GPU; ``...`` if it is not tried yet.

    Raises
    ------
    Exception
        What a thread raised, or RuntimeError if not all threads of a block come to a barrier.
    """
    kernel = answer(launch.tile) if launch.tile else answer
    kernel = getattr(kernel, "py_func", kernel)
    if not callable(kernel):
        return kernel
    returned: list[Any] = []

    @wraps(kernel)
    def noted(*args):
        returned.append(kernel(*args))

    out = np.zeros(launch.shape, "float32")
    try:
        trace = trace_kernel(noted, launch.grid, launch.block, out, *arrays)
    except RuntimeError as error:
        raise _in_plain_words(error) from error
    if any(value is ... for value in returned):
        return ...
    given_back = next((value for value in returned if value is not None), None)
    return Ran(trace, given_back)


def _in_plain_words(error: RuntimeError) -> Exception:
    """What the tracer says of a kernel that failed, without the kernel's name."""
    cause = error.__cause__
    if not isinstance(cause, Exception):
        return RuntimeError(re.sub(r"^kernel_trace: \w+: ", "", str(error)))
    kind, words = type(cause), str(cause)
    if "_Array" in words:
        kind, words = TypeError, "you compute with a whole array"
    found = re.search(r" in line (\d+)(?:, (.*))?: ", str(error).removesuffix(str(cause)))
    # What is between quotes does not count when mistakes are compared.
    return kind(f"in line {found[1]}, '{found[2] or '…'}': {words}" if found else words)


def same_result(right: Ran, got: Any, names: Names) -> str:
    """Whether a launch wrote the right numbers, with no access out of bounds and no race."""
    if not isinstance(got, Ran):
        return f"there is {'None' if got is None else type(got).__name__} where a kernel should be"
    if got.returned is not None:
        return "your kernel gives something back"
    if refused := got.trace.refusals():
        return refused[0]
    if races := got.trace.races:
        race = races[0]
        where = f"{race.array}[{', '.join(map(str, race.index))}]"
        return f"{race.first} {where}, and {race.second} it: nothing decides who comes first (a race)"
    if access := got.into_an_input():
        return f"{access} to {access.array}, which is an input"
    if early := got.too_soon():
        where = f"{early.array}[{', '.join(map(str, early.index))}]"
        return f"{early} {where}, where no thread of its block has written: anything may lie there"
    if difference := values(right.out, got.out, names):
        return f"out: {difference}"
    if got.most_written() > right.most_written():
        return f"one thread writes {got.most_written()} numbers, and others have nothing to do"
    return ""


def same_threads(right: Ran, got: Any, names: Names) -> str:
    """As `same_result`, and each element must be written by the same thread."""
    if difference := same_result(right, got, names):
        return difference
    for (row, column), (_, (x, y, _)) in got.homes().items():
        _, (right_x, right_y, _) = right.homes()[row, column]
        if (x, y) != (right_x, right_y):
            return f"thread ({x}, {y}) writes out[{row}, {column}], and thread ({right_x}, {right_y}) should"
    return ""


def same_traffic(right: Ran, got: Any, names: Names) -> str:
    """As `same_result`, and global memory must not be used more often."""
    if difference := same_result(right, got, names):
        return difference
    for (name, count), enough in zip(got.reads().items(), right.reads().values(), strict=True):
        if count > enough:
            return f"{name} is read {count} times from global memory, where {enough} would do"
    if got.writes() > right.writes():
        return f"out is written {got.writes()} times, where {right.writes()} would do"
    return ""


def same_steps(right: Ran, got: Any, names: Names) -> str:
    """As `same_traffic`, and no thread may do the work of all while the others wait."""
    if difference := same_traffic(right, got, names):
        return difference
    if got.longest() > 2 * right.longest():
        return f"one thread reads {got.longest()} numbers in a row, while the others wait"
    return ""


def _alike(one: Any, other: Any, names: Names) -> str:
    """Whether two wrong launches went wrong in the same way; "" if so."""
    if isinstance(one, Ran) and isinstance(other, Ran):
        alike = _signs(one) == _signs(other)
    else:
        alike = type(one) is type(other)
    return "" if alike else "they are not alike"


def _signs(ran: Ran) -> tuple:
    """What tells one mistake from another."""
    if ran.returned is not None:
        return ("returned",)
    refused = {_place(ran, a) for a in ran.trace.out_of_bounds}
    raced = {_place(ran, race.first) for race in ran.trace.races}
    if refused or raced:
        return refused, raced, [(race.first.phase, race.second.kind) for race in ran.trace.races[:1]]
    if ran.into_an_input():
        return ("input",)
    if ran.wrong:
        return ("numbers", np.round(ran.out, 4).tolist())
    if ran.most_written() > 1:
        return ("one for others",)
    if ran.too_soon():
        return ("too soon",)
    reads = ran.reads()
    again = any(reads[name] for name in reads if name not in ran.inputs), ran.writes() > ran.out.size
    return [reads[name] for name in ran.inputs], *again, ran.homes(), ran.longest() > MANY


def _place(ran: Ran, access: Access) -> tuple:
    """Where something went wrong. Of shared arrays, which the reader names, it counts only whose they are."""
    if not _is_global(access):
        return "shared", any(access.block)  # an index that counts in the grid does fit in the first block
    return list(ran.trace.arrays).index(access.array), access.index, access.kind == "read"


for _compare in (same_result, same_threads, same_traffic, same_steps):
    _compare.exactly = _alike  # type: ignore[attr-defined]


def on(launch: Launch, **arrays: Any) -> Case:
    """A case: a launch, and the arrays that the kernel gets after `out`, by the names of the lecture."""

    def make() -> dict[str, Any]:
        return {"launch": launch} | {
            name: np.array(numbers, dtype="float32") for name, numbers in arrays.items()
        }

    return given(make, "launch", *arrays, program=str(launch))


def puzzle(*cases: Case, otherwise: str, compare: Callable = same_result) -> Callable[[Callable], Exercise]:
    """An exercise that asks for a kernel. The sentences for the mistakes of all puzzles are added to it."""

    def made(right: Callable) -> Exercise:
        name, arrays = right.__name__, ", ".join(cases[0].chosen[1:])
        called = f"{name}(tile)(out, {arrays})" if name in MAKERS else f"{name}(out, {arrays})"

        def use(answer: Any, *inputs: Any) -> Any:
            ran = run(answer, *inputs)
            if isinstance(ran, Ran) and answer is not right:
                ran.wrong = bool(values(run(right, *inputs).out, ran.out, {}))
            if isinstance(ran, Ran):
                ran.counts = compare in (same_traffic, same_steps)
            return ran

        make = lecture.exercise(*cases, otherwise=otherwise, compare=compare, use=use, form=called)
        exercise = make(right)
        if name not in MAKERS:
            for mistake, sentence in ANYWHERE.items():
                exercise.mistake(sentence)(_with_parameters_of(right, mistake))
        return exercise

    return made


MANY = 6  # numbers that one thread reads without a barrier
MAKERS = ("tiled_product",)  # functions that make a kernel, and are none


def gives_back(out, *arrays):
    """Returns its result, as a function would."""
    return arrays[0][0]


def takes_the_whole_array(out, *arrays):
    """NumPy's habit."""
    out[0] = arrays[0] * 2


def changes_an_input(out, *arrays):
    """One thread overwrites a number of the first input."""
    if tuple(cuda.grid(3)) == (0, 0, 0):
        arrays[0][(0,) * len(arrays[0].shape)] = 1


ONE_FOR_OTHERS = (
    "Right, but one thread does the work of others, and they have nothing to do. Leave out the loop: each "
    "thread writes one number, the one at its own index."
)
ANYWHERE = {
    gives_back: "Ten thousand threads cannot all `return` a number to you. A kernel writes into `out`: "
    "`out[…] = …`.",
    takes_the_whole_array: "You compute with a whole array. A thread computes with single numbers: `a[i]`, "
    "at an index of its own.",
    changes_an_input: "You change an input. Other threads and later kernels may still need it: write into "
    "`out` only.",
}


def _with_parameters_of(right: Callable, mistake: Callable) -> Callable:
    """A mistake of any puzzle as a kernel that has the parameters of this one."""

    @wraps(mistake)
    def kernel(out, *arrays):
        return mistake(out, *arrays)

    kernel.__signature__ = signature(right)  # type: ignore[attr-defined]
    return kernel


def look(answer: Callable) -> Axes | None:
    """Draw what a kernel of an exercise reads and writes, right or wrong, in the first of its cases.

    If it is not tried yet, the lecture's own is drawn, and a line says so.
    """
    exercise = lecture.exercises[answer.__name__]
    everything = exercise.cases[0].make()
    inputs = [everything[name] for name in exercise.cases[0].chosen]
    try:
        ran = run(answer, *inputs)
    except Exception as error:
        print(f"Nothing can be drawn: {type(error).__name__}: {error}")
        return None
    if not isinstance(ran, Ran):
        print(f"{exercise.name} has not passed its check yet, so the lecture's own stands in for it.")
        ran = run(exercise.right, *inputs)
    return kernel_trace(ran.trace, thread=_to_follow(ran.trace))


def _to_follow(trace: KernelTrace) -> tuple[Shape, Shape] | None:
    """Which thread's lines are drawn among matrices: one that shows what is x, and what is y.

    If something went wrong, it is one that did it. None where there is room for all lines.
    """
    if all(len(shape) < 2 for shape in trace.shapes.values()):
        return None
    wrong = trace.out_of_bounds or [race.second for race in trace.races]
    threads = {(a.block, a.thread) for a in wrong or trace.accesses}
    return max(threads, key=lambda at: (at[1][0] != at[1][1], at), default=None)


# --- 1 Map --------------------------------------------------------------------------------------------------


@puzzle(
    on(Launch(1, 6, (6,)), a=[0, 10, 20, 30, 37, 100]),
    on(Launch(1, 3, (3,)), a=[-40, 5, -5]),
    otherwise="Take thread 1, say: which number of `a` does it read, and where in `out` does it write?",
)
def fahrenheit(out, a):
    """Degrees Celsius to degrees Fahrenheit."""
    i = cuda.threadIdx.x
    out[i] = 1.8 * a[i] + 32


@fahrenheit.mistake(
    "With this loop every thread does all the work, and all write everywhere. Leave the loop out: a thread "
    "does one number, the one at its index."
)
def loops(out, a):
    for i in range(a.size):
        out[i] = 1.8 * a[i] + 32


@fahrenheit.mistake(
    "All threads write to one place, so they have the same index. What tells the threads of a block apart "
    "is `threadIdx.x`, and not `blockIdx` or `threadIdx.y`."
)
def by_block(out, a):
    i = cuda.blockIdx.x
    out[i] = 1.8 * a[i] + 32


@fahrenheit.mistake(
    "Nothing was written. `out = …` only makes a new name inside of this thread: write into the array, "
    "`out[i] = …`."
)
def names_it_out(out, a):
    i = cuda.threadIdx.x
    out = 1.8 * a[i] + 32  # noqa: F841


@fahrenheit.mistake(ONE_FOR_OTHERS)
def converts_all(out, a):
    if cuda.threadIdx.x == 0:
        for i in range(a.size):
            out[i] = 1.8 * a[i] + 32


@fahrenheit.mistake("First times 1.8, then plus 32: water freezes at 0 °C, which is 32 °F.")
def adds_first(out, a):
    i = cuda.threadIdx.x
    out[i] = 1.8 * (a[i] + 32)


@fahrenheit.mistake("You converted the index of the thread. It is where to look: the number is `a[i]`.")
def converts_the_index(out, a):
    i = cuda.threadIdx.x
    out[i] = 1.8 * i + 32


@fahrenheit.mistake("All threads read the first number. Each has its own: `a[i]`.")
def reads_the_first(out, a):
    i = cuda.threadIdx.x
    out[i] = 1.8 * a[0] + 32


@fahrenheit.mistake("`threadIdx` has three numbers, x, y and z, and is none itself. Take `cuda.threadIdx.x`.")
def without_x(out, a):
    i = cuda.threadIdx
    out[i] = 1.8 * a[i] + 32


# --- 2 Zip --------------------------------------------------------------------------------------------------


@puzzle(
    on(Launch(1, 6, (6,)), w=[1, 2, 3, 4, 5, 6], g=[10, -10, 0, 5, 20, -5]),
    on(Launch(1, 2, (2,)), w=[0.5, -2], g=[3, 1]),
    otherwise="Thread i turns knob i: from `w[i]`, take away 0.1 times `g[i]`.",
)
def descend(out, w, g):
    """A step of gradient descent."""
    i = cuda.threadIdx.x
    out[i] = w[i] - 0.1 * g[i]


@descend.mistake("This goes uphill. The gradient says which way the loss grows: take it away from `w`.")
def uphill(out, w, g):
    i = cuda.threadIdx.x
    out[i] = w[i] + 0.1 * g[i]


@descend.mistake("That is the whole gradient. Take away a tenth of it, 0.1 times `g[i]`.")
def without_rate(out, w, g):
    i = cuda.threadIdx.x
    out[i] = w[i] - g[i]


@descend.mistake(
    "The step is there, and its starting point is missing: `w[i]` minus the step. In `out` there is only 0."
)
def only_the_step(out, w, g):
    i = cuda.threadIdx.x
    out[i] = -0.1 * g[i]


@descend.mistake(
    "With this loop every thread turns all the knobs. Leave the loop out: thread i turns knob i."
)
def turns_all(out, w, g):
    for i in range(out.size):
        out[i] = w[i] - 0.1 * g[i]


@descend.mistake(ONE_FOR_OTHERS)
def turns_all_alone(out, w, g):
    if cuda.threadIdx.x == 0:
        for i in range(out.size):
            out[i] = w[i] - 0.1 * g[i]


# --- 3 Guards -----------------------------------------------------------------------------------------------


@puzzle(
    on(Launch(1, 8, (5,)), a=[3, -1, 4, -1, 5]),
    on(Launch(1, 8, (7,)), a=[-2, 7, -1, 8, 2, 6, 1]),
    on(Launch(1, 4, (4,)), a=[1, -1, 0, 2]),
    otherwise="Threads from `a.size` on have no number: they must neither read nor write.",
)
def relu(out, a):
    """What is above 0."""
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = max(a[i], 0)


@relu.mistake("There are more threads than numbers. Who has no number must do nothing: `if i < a.size:`.")
def unguarded(out, a):
    i = cuda.threadIdx.x
    out[i] = max(a[i], 0)


@relu.mistake(
    "One thread too many: indices begin at 0, so the last number has index `a.size - 1`. Ask `i < a.size`."
)
def guarded_late(out, a):
    i = cuda.threadIdx.x
    if i <= a.size:
        out[i] = max(a[i], 0)


@relu.mistake("One thread too few: the last number has index `a.size - 1`, and `i < a.size` lets it in.")
def guarded_early(out, a):
    i = cuda.threadIdx.x
    if i < a.size - 1:
        out[i] = max(a[i], 0)


@relu.mistake(
    "You ask about the number before you know that there is one. Guard the index first: `if i < a.size:`."
)
def guards_the_value(out, a):
    i = cuda.threadIdx.x
    if a[i] > 0:
        out[i] = a[i]


@relu.mistake("The write is guarded, but the read is not. Both belong inside of the `if`.")
def reads_first(out, a):
    i = cuda.threadIdx.x
    number = a[i]
    if i < a.size:
        out[i] = max(number, 0)


@relu.mistake("5 is the size of the first case only. Ask the array: `a.size`.")
def five(out, a):
    i = cuda.threadIdx.x
    if i < 5:
        out[i] = max(a[i], 0)


@relu.mistake("The guard is right. But below 0, relu is 0: take the larger one of `a[i]` and 0.")
def copies(out, a):
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = a[i]


@relu.mistake("`min` keeps what is *below* 0. relu keeps what is above: `max`.")
def smaller(out, a):
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = min(a[i], 0)


@relu.mistake(ONE_FOR_OTHERS)
def cuts_all(out, a):
    if cuda.threadIdx.x == 0:
        for i in range(a.size):
            out[i] = max(a[i], 0)


# --- 4 Map in two dimensions --------------------------------------------------------------------------------

TURNED = (
    "The numbers are right, and the threads are turned round. Let x count along a row: `out[y, x]`. "
    "Neighbours in x then meet neighbours in memory."
)
BOTH = "Two indices need two guards: `y` against the rows and `x` against the columns."
SWAPPED_GUARDS = "Rows first: `a.shape[0]` is the number of rows, so it bounds `y`; `a.shape[1]` bounds `x`."


@puzzle(
    on(Launch(1, (4, 3), (2, 3)), a=[[0, 0.25, 0.5], [1, 0.75, 0]]),
    on(Launch(1, (4, 4), (3, 2)), a=[[1, 0], [0.5, 0.25], [0, 0.75]]),
    on(Launch(1, (8, 8), (2, 2)), a=[[0, 1], [0.5, 1]]),
    otherwise="Take the thread with x = 2, y = 1: which row, and which column of the image is its own?",
    compare=same_threads,
)
def negative(out, a):
    """Bright becomes dark."""
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = 1 - a[y, x]


@negative.mistake(TURNED)
def x_down(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[0] and y < a.shape[1]:
        out[x, y] = 1 - a[x, y]


@negative.mistake("There are more threads than pixels, in both directions. " + BOTH)
def unguarded_image(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    out[y, x] = 1 - a[y, x]


@negative.mistake("The columns have no guard. " + BOTH)
def rows_guarded(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0]:
        out[y, x] = 1 - a[y, x]


@negative.mistake("The rows have no guard. " + BOTH)
def columns_guarded(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[1]:
        out[y, x] = 1 - a[y, x]


@negative.mistake(SWAPPED_GUARDS)
def guards_swapped(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = 1 - a[y, x]


@negative.mistake("`or` lets in threads that fit in one direction only. Both must fit: `and`.")
def either(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] or x < a.shape[1]:
        out[y, x] = 1 - a[y, x]


@negative.mistake("`a.size` counts all pixels. " + BOTH)
def guarded_by_size(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.size and y < a.size:
        out[y, x] = 1 - a[y, x]


@negative.mistake("Below black there is nothing. Take the pixel away from 1: white, 1, becomes 0.")
def minus(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = -a[y, x]


@negative.mistake("This image is copied. In its negative, bright becomes dark: 1 minus the pixel.")
def copied(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x]


@negative.mistake(ONE_FOR_OTHERS)
def whole_rows(out, a):
    y = cuda.threadIdx.y
    if cuda.threadIdx.x == 0 and y < a.shape[0]:
        for x in range(a.shape[1]):
            out[y, x] = 1 - a[y, x]


# --- 5 Broadcast --------------------------------------------------------------------------------------------


@puzzle(
    on(Launch(1, (4, 3), (2, 3)), a=[[1, 2, 3], [4, 5, 6]], bias=[10, 20, 30]),
    on(Launch(1, (4, 4), (3, 2)), a=[[1, 2], [3, 4], [5, 6]], bias=[100, 200]),
    on(Launch(1, (4, 4), (3, 3)), a=[[0, 0, 0], [1, 1, 1], [2, 2, 2]], bias=[1, 2, 3]),
    otherwise="Each row of `a` gets the same bias, number by number: column x gets `bias[x]`.",
    compare=same_threads,
)
def add_bias(out, a, bias):
    """A bias for each column."""
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x] + bias[x]


@add_bias.mistake("You chose the bias by the row. There is one for each column: `bias[x]`.")
def bias_of_the_row(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x] + bias[y]


@add_bias.mistake("`bias` has one axis, so it takes one index: the column, `bias[x]`.")
def bias_of_two_axes(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x] + bias[y, x]


@add_bias.mistake("All columns get the first bias. Column x gets `bias[x]`.")
def first_bias(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x] + bias[0]


@add_bias.mistake("There are more threads than numbers here, too. " + BOTH)
def bias_unguarded(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    out[y, x] = a[y, x] + bias[x]


@add_bias.mistake("The rows have no guard. " + BOTH)
def bias_columns_guarded(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[1]:
        out[y, x] = a[y, x] + bias[x]


@add_bias.mistake("The columns have no guard. " + BOTH)
def bias_rows_guarded(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0]:
        out[y, x] = a[y, x] + bias[x]


@add_bias.mistake(SWAPPED_GUARDS)
def bias_guards_swapped(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = a[y, x] + bias[x]


@add_bias.mistake(TURNED)
def bias_turned(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[0] and y < a.shape[1]:
        out[x, y] = a[x, y] + bias[y]


@add_bias.mistake(
    "With this loop each thread goes through its whole row. It has one number only, at `[y, x]`."
)
def bias_loops(out, a, bias):
    y = cuda.threadIdx.y
    if y < a.shape[0]:
        for x in range(a.shape[1]):
            out[y, x] = a[y, x] + bias[x]


@add_bias.mistake(ONE_FOR_OTHERS)
def adds_alone(out, a, bias):
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        for y in range(a.shape[0]):
            for x in range(a.shape[1]):
                out[y, x] = a[y, x] + bias[x]


# --- 6 Blocks -----------------------------------------------------------------------------------------------

TEN = [0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0, 0.5]
NUMBER_IN_GRID = (
    "Before block b there are b whole blocks: `cuda.blockIdx.x * cuda.blockDim.x` threads. Add the "
    "thread's own number."
)


@puzzle(
    on(Launch(3, 4, (10,)), a=TEN),
    on(Launch(2, 8, (10,)), a=TEN),
    on(Launch(4, 2, (7,)), a=TEN[3:]),
    otherwise="Write down for each thread of block 1 which index it computes. Blocks of four: 4, 5, 6, 7.",
)
def brighter(out, a):
    """A quarter brighter, at most 1."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < a.size:
        out[i] = min(a[i] + 0.25, 1)


@brighter.mistake(
    "The threads of every block begin again at 0, so all blocks do the same numbers. " + NUMBER_IN_GRID
)
def threads_only(out, a):
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = min(a[i] + 0.25, 1)


@brighter.mistake("Thread 1 of block 0 and thread 0 of block 1 meet. " + NUMBER_IN_GRID)
def block_plus_thread(out, a):
    i = cuda.blockIdx.x + cuda.threadIdx.x
    if i < a.size:
        out[i] = min(a[i] + 0.25, 1)


@brighter.mistake("The last block has threads without a number: guard the index, `if i < a.size:`.")
def blocks_unguarded(out, a):
    i = cuda.grid(1)
    out[i] = min(a[i] + 0.25, 1)


@brighter.mistake(
    "You multiplied the wrong one: `threadIdx * blockDim` jumps from thread to thread. " + NUMBER_IN_GRID
)
def factors_of_the_other(out, a):
    i = cuda.threadIdx.x * cuda.blockDim.x + cuda.blockIdx.x
    if i < a.size:
        out[i] = min(a[i] + 0.25, 1)


@brighter.mistake("Not every launch has blocks of four: ask `cuda.blockDim.x`.")
def blocks_of_four(out, a):
    i = cuda.blockIdx.x * 4 + cuda.threadIdx.x
    if i < a.size:
        out[i] = min(a[i] + 0.25, 1)


@brighter.mistake(
    "`gridDim` is the number of blocks. What you need is the number of threads in one: `cuda.blockDim.x`."
)
def size_of_the_grid(out, a):
    i = cuda.blockIdx.x * cuda.gridDim.x + cuda.threadIdx.x
    if i < a.size:
        out[i] = min(a[i] + 0.25, 1)


@brighter.mistake(
    "The indices are right. But nothing is brighter than 1: take the smaller one of the sum and 1."
)
def too_bright(out, a):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] + 0.25


@brighter.mistake("`max` takes the larger one, so all is at least 1. Nothing may be brighter than 1: `min`.")
def at_least_one(out, a):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = max(a[i] + 0.25, 1)


@brighter.mistake(ONE_FOR_OTHERS)
def brightens_all(out, a):
    if cuda.grid(1) == 0:
        for i in range(a.size):
            out[i] = min(a[i] + 0.25, 1)


# --- 7 Shared memory ----------------------------------------------------------------------------------------

ONCE_EACH = (
    "The numbers are right, but every thread fetches all four from global memory. Put them into `cache`, "
    "each by one thread, and add up there."
)


@puzzle(
    on(Launch(2, 4, (8,)), a=[1, 2, 3, 4, 5, 5, 5, 5]),
    on(Launch(3, 4, (12,)), a=[0, 0, 0, 1, 2, 0, 2, 0, 1, 1, 3, 5]),
    otherwise="Write, wait, read: `cache[t] = a[i]`, then the barrier, then all four numbers of `cache`.",
    compare=same_traffic,
)
def shares(out, a):
    """Each number as a share of its block's total."""
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    cuda.syncthreads()
    out[i] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake(
    "Who is first reads what the others have not written yet. Put `cuda.syncthreads()` between writing and "
    "reading."
)
def no_barrier(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    out[i] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake(
    "The cache has room for one block, and each block has its own. So its index is `t`, the number within "
    "the block, and not `i`."
)
def cache_by_grid(out, a):
    cache = cuda.shared.array(4, float32)
    i = cuda.grid(1)
    cache[i] = a[i]
    cuda.syncthreads()
    out[i] = cache[i] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake(ONCE_EACH)
def without_cache(out, a):
    i = cuda.grid(1)
    first = cuda.blockIdx.x * 4
    out[i] = a[i] / (a[first] + a[first + 1] + a[first + 2] + a[first + 3])


@shares.mistake(ONCE_EACH)
def without_cache_in_a_loop(out, a):
    i, total = cuda.grid(1), 0
    for k in range(4):
        total += a[cuda.blockIdx.x * 4 + k]
    out[i] = a[i] / total


@shares.mistake(
    "The number of this thread is in the cache already: take `cache[t]`, and spare a read of `a`."
)
def reads_its_own_again(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    cuda.syncthreads()
    out[i] = a[i] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake(
    "All blocks take the first four numbers. Those of this block begin where its first thread is: `a[i]`."
)
def first_four(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[t]
    cuda.syncthreads()
    out[i] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake("This is the total. The share of a thread is its own number, divided by that.")
def totals(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    cuda.syncthreads()
    out[i] = cache[0] + cache[1] + cache[2] + cache[3]


@shares.mistake(
    "Only thread 0 comes to the barrier, and there it waits for the others. All threads of a block must "
    "come: take `syncthreads()` out of the `if`."
)
def barrier_for_one(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    if t == 0:
        cuda.syncthreads()
    out[i] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake("`out` has one place for each thread of the whole grid, so its index is `i`.")
def writes_by_thread(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    cuda.syncthreads()
    out[t] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake(
    "The barrier comes too early. First everybody writes into the cache, then all wait, and then they read."
)
def waits_before_writing(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cuda.syncthreads()
    cache[t] = a[i]
    out[i] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake(
    "Each thread has a cache of its own here, with nothing but its own number in it. One that the block "
    "shares comes from `cuda.shared.array(4, float32)`."
)
def cache_of_its_own(out, a):
    cache = cuda.local.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    cuda.syncthreads()
    out[i] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])


@shares.mistake(ONE_FOR_OTHERS)
def divides_all(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    cuda.syncthreads()
    if t == 0:
        total = cache[0] + cache[1] + cache[2] + cache[3]
        for k in range(4):
            out[i + k] = cache[k] / total


# --- 8 Sum --------------------------------------------------------------------------------------------------

EVERYONE = (
    "All threads of a block must come to each barrier, also those with nothing to add. So no thread may "
    "return before it, and it must not stand in the `if`."
)
ALL_IN_OUT = (
    "All threads of a block add to one place of `out`, and they overwrite each other's sums. Add up in the "
    "cache, in rounds, and write once for each block."
)


@puzzle(
    on(Launch(1, 8, (1,)), a=[3, 1, 4, 1, 5, 9, 2]),
    on(Launch(2, 8, (2,)), a=[1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50]),
    on(Launch(3, 8, (3,)), a=[1] * 17),
    otherwise="Follow one round on paper: which threads add, what do they add, and who waits for whom?",
    compare=same_steps,
)
def block_sum(out, a):
    """The sum of each block's numbers."""
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(
    "A round begins before the last one has ended. Every round needs a barrier at its end: put "
    "`cuda.syncthreads()` into the loop, outside of the `if`."
)
def rounds_without_barrier(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(
    "Right, but thread 0 adds all eight while seven wait. Share the work: in each round, half of the threads "
    "add one number each."
)
def one_adds_all(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for k in range(8):
            total += cache[k]
        out[cuda.blockIdx.x] = total


@block_sum.mistake(EVERYONE)
def barrier_inside(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
            cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(
    "The last block has more threads than numbers. Such a thread still has its place in the cache: it puts a "
    "0 there."
)
def ragged_unguarded(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake("All eight threads write the sum to one place. One is enough: `if t == 0:`.")
def everybody_writes(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake("All blocks write to `out[0]`. Each has a place of its own: `out[cuda.blockIdx.x]`.")
def one_place(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[0] = cache[0]


@block_sum.mistake(
    "Right, but the threads queue up at one place in global memory. Add up in the cache, and write once for "
    "each block."
)
def atomically(out, a):
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(out, cuda.blockIdx.x, a[i])


@block_sum.mistake(
    "One round is missing: after the steps 4 and 2 there are still two numbers left. Go on to 1."
)
def stops_early(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(
    "Too many threads add. With step 4, threads 0 to 3 have a partner, four places further on, and nobody "
    "else: `if t < step:`."
)
def all_add(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(EVERYONE)
def leaves_early(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i >= a.size:
        return
    cache[t] = a[i]
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(
    "You begin to add before all have put their number into the cache. Before the loop there must be a "
    "barrier, too."
)
def no_first_barrier(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(
    "The threads without a number leave their place in the cache as it is, and on a GPU anything may lie "
    "there. Let them put a 0 there."
)
def ragged_empty(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(
    "Only block 0 has a thread with i = 0. The first thread of *each* block writes: `if t == 0:`."
)
def first_of_the_grid(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if i == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake("`i < step` holds in block 0 only. Each block has its own rounds: ask `t < step`.")
def adds_in_the_first_block(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if i < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(
    "`out` has one place for each block, so the place is the number of the block: `out[cuda.blockIdx.x]`."
)
def writes_by_grid(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[i] = cache[0]


@block_sum.mistake("A thread's own number is lost here. Add the other one to it: `+=`.")
def moves_only(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (4, 2, 1):
        if t < step:
            cache[t] = cache[t + step]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@block_sum.mistake(ALL_IN_OUT)
def all_in_out(out, a):
    i = cuda.grid(1)
    if i < a.size:
        out[cuda.blockIdx.x] += a[i]


@block_sum.mistake(ALL_IN_OUT)
def all_in_out_unguarded(out, a):
    out[cuda.blockIdx.x] += a[cuda.grid(1)]


# --- 9 Sliding sum ------------------------------------------------------------------------------------------

NINE = [1, 2, 3, 4, 5, 6, 7, 8, 9]
TOO_NARROW = (
    "`i < out.size` is too narrow a guard for the loading: the last numbers of `a` are needed, too. Ask "
    "`i < a.size` there."
)


@puzzle(
    on(Launch(2, 4, (8,)), a=[*NINE, 10]),
    on(Launch(2, 4, (7,)), a=NINE),
    on(Launch(2, 4, (5,)), a=[5, 1, 2, 10, 4, 3, 6]),
    otherwise="Write down what block 0 needs: `a[0]` to `a[5]`. Who fetches the last two?",
    compare=same_traffic,
)
def sliding_sum(out, a):
    """Each number and the two after it."""
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(
    "Right, but each thread fetches three numbers from global memory, and its neighbours fetch two of them "
    "again. Put them into `cache` first."
)
def from_global_memory(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + a[i + 1] + a[i + 2]


@sliding_sum.mistake(
    "The last two threads of a block need two numbers that belong to nobody in it. Let threads 0 and 1 fetch "
    "one more each: `a[i + 4]`."
)
def nobody_fetches_the_rest(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(
    "You read what your neighbours write, so wait for them: `cuda.syncthreads()` between the two."
)
def slides_without_barrier(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[i + 4]
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(
    "The second number that threads 0 and 1 fetch needs a guard of its own: `i + 4 < a.size`."
)
def rest_unguarded(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if t < 2:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake("`out` is shorter than `a` by two. The write needs the guard `i < out.size`.")
def write_unguarded(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < a.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake("`out` is shorter than `a` by two. The write needs the guard `i < out.size`.")
def write_without_any_guard(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(
    "The place in the cache is one of 0 to 5: counted within the block, `t`, not in the grid, `i`."
)
def slides_by_grid(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[i] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[i + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[i] + cache[i + 1] + cache[i + 2]


@sliding_sum.mistake(TOO_NARROW)
def loads_too_little(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < out.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < out.size:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(TOO_NARROW)
def first_loads_too_little(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < out.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(
    "`i < 2` holds in block 0 only. The first two threads of *each* block fetch a second number: `t < 2`."
)
def first_block_fetches_the_rest(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if i < 2:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(
    "All blocks take `a[4]` and `a[5]` as their two extra numbers. Count in the grid: `a[i + 4]`."
)
def rest_of_the_first_block(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[t + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(
    "A thread that has nothing to write must still come to the barrier. No `return` before it: put each "
    "access behind an `if` of its own."
)
def returns_before_the_barrier(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i >= out.size:
        return
    cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake(
    "All four threads fetch a second number, two places further on. Some numbers are fetched twice, and two "
    "threads write to one place. Only the last two places are still empty: `if t < 2`, with `i + 4`."
)
def all_fetch_two(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if i + 2 < a.size:
        cache[t + 2] = a[i + 2]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake("The cache is too small. A block of four needs six numbers: four, and two more.")
def cache_of_four(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


@sliding_sum.mistake("These are sums of two. Each window has three numbers: `t`, `t + 1` and `t + 2`.")
def sums_of_two(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1]


# --- 10 The tiled product -----------------------------------------------------------------------------------


def product(out, a, b):
    """The matrix product that takes everything from global memory."""
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        out[row, column] = total


TILES_STAY = (
    "Every step loads the same tiles. Tiles of `a` move to the right with k, `a[row, k + x]`, tiles of `b` "
    "down, `b[k + y, column]`."
)
IN_A_TILE = (
    "A tile has only `tile` rows and columns. Inside of it, places are counted within the block, by `y` and "
    "`x`; `row` and `column` count in the whole matrices."
)
A, B = (
    [[1, 2, 3, 4], [5, 6, 7, 8], [2, 3, 1, 4], [0, 2, 0, 2]],
    [[1, 0, 2, 0], [0, 1, 0, 2], [1, 1, 0, 0], [3, 0, 0, 1]],
)


@puzzle(
    on(Launch((2, 2), (2, 2), (4, 4), 2), a=A, b=B),
    on(
        Launch((1, 2), (2, 2), (4, 2), 2),
        a=[[*row, 1, -1] for row in A],
        b=[[1, 2], [3, 4], [0, 1], [1, 0], [2, 2], [5, 1]],
    ),
    on(Launch((1, 1), (4, 4), (4, 4), 4), a=B, b=A),
    otherwise="Do the first step of block (0, 0) on paper. Which number of each tile does each thread load?",
    compare=same_traffic,
)
def tiled_product(tile):
    """A kernel for the matrix product that reads each tile once per block."""

    def product(out, a, b):
        a_tile = cuda.shared.array((tile, tile), float32)
        b_tile = cuda.shared.array((tile, tile), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0)
        for k in range(0, a.shape[1], tile):
            a_tile[y, x] = a[row, k + x]
            b_tile[y, x] = b[k + y, column]
            cuda.syncthreads()
            for j in range(tile):
                total += a_tile[y, j] * b_tile[j, x]
            cuda.syncthreads()
        out[row, column] = total

    return product


def _loads(a_tile, b_tile, a, b, x, y, row, column, k):
    a_tile[y, x] = a[row, k + x]
    b_tile[y, x] = b[k + y, column]


def _multiplies(a_tile, b_tile, x, y, row, column, tile):
    total = float32(0)
    for j in range(tile):
        total += a_tile[y, j] * b_tile[j, x]
    return total


def _writes(out, x, y, row, column, total):
    out[row, column] = total


def _with_tiles(
    load: Callable = _loads,
    multiply: Callable = _multiplies,
    write: Callable = _writes,
    first: bool = True,
    second: bool = True,
) -> Callable:
    """A function like `tiled_product` that loads, multiplies or writes otherwise, or leaves out barriers."""

    def make(tile):
        def product(out, a, b):
            a_tile = cuda.shared.array((tile, tile), float32)
            b_tile = cuda.shared.array((tile, tile), float32)
            x, y = cuda.threadIdx.x, cuda.threadIdx.y
            column, row = cuda.grid(2)
            total = float32(0)
            for k in range(0, a.shape[1], tile):
                load(a_tile, b_tile, a, b, x, y, row, column, k)
                if first:
                    cuda.syncthreads()
                total += multiply(a_tile, b_tile, x, y, row, column, tile)
                if second:
                    cuda.syncthreads()
            write(out, x, y, row, column, total)

        return product

    return make


@tiled_product.mistake(
    "A thread that has finished a step already loads the next tiles, while others still read these. A "
    "second barrier belongs after the inner loop."
)
def no_second_barrier(tile):
    return _with_tiles(second=False)(tile)


@tiled_product.mistake(
    "You multiply before all threads have loaded their numbers. A barrier belongs between loading and the "
    "inner loop."
)
def no_barrier_after_loading(tile):
    return _with_tiles(first=False)(tile)


@tiled_product.mistake(
    "Right, but every thread takes its row and its column from global memory. Let a thread load one number "
    "of each tile, and read the tiles."
)
def untiled(tile):
    return product


@tiled_product.mistake(TILES_STAY)
def tiles_stay(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[row, x]
        b_tile[y, x] = b[y, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(TILES_STAY)
def tiles_of_out(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[row, column]
        b_tile[y, x] = b[row, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(
    "All threads of a row load the same number of `a`, the one in column k. In a tile, each loads a number "
    "of its own: x columns further right in `a`, y rows further down in `b`."
)
def loads_without_own_place(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[row, k]
        b_tile[y, x] = b[k, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(
    "x counts to the right, and y counts down. So in `a` you go from column k to `k + x`, and in `b` from "
    "row k to `k + y`."
)
def loads_x_and_y_swapped(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[row, k + y]
        b_tile[y, x] = b[k + x, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(
    "`a` is right. In `b`, k goes down, and so does y: thread (x, y) loads `b[k + y, column]`."
)
def b_by_x(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[row, k + x]
        b_tile[y, x] = b[k + x, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(
    "`b` is right. In `a`, k goes to the right, and so does x: thread (x, y) loads `a[row, k + x]`."
)
def a_by_y(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[row, k + y]
        b_tile[y, x] = b[k + y, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(
    "k already counts numbers: 0, tile, 2 · tile. Multiplied by `tile` once more, it runs off the matrix."
)
def k_times_tile(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[row, k * tile + x]
        b_tile[y, x] = b[k * tile + y, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(IN_A_TILE)
def multiplies_by_the_grid(tile):
    def multiply(a_tile, b_tile, x, y, row, column, tile):
        total = float32(0)
        for j in range(tile):
            total += a_tile[row, j] * b_tile[j, column]
        return total

    return _with_tiles(multiply=multiply)(tile)


@tiled_product.mistake(IN_A_TILE)
def multiplies_by_the_matrices(tile):
    def product(out, a, b):
        a_tile = cuda.shared.array((tile, tile), float32)
        b_tile = cuda.shared.array((tile, tile), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0)
        for k in range(0, a.shape[1], tile):
            _loads(a_tile, b_tile, a, b, x, y, row, column, k)
            cuda.syncthreads()
            for j in range(tile):
                total += a_tile[row, k + j] * b_tile[k + j, column]
            cuda.syncthreads()
        out[row, column] = total

    return product


@tiled_product.mistake(IN_A_TILE)
def loads_by_the_grid(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[row, column] = a[row, k + x]
        b_tile[row, column] = b[k + y, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(
    "The tiles are right. But a thread needs a whole row of `a_tile` and a whole column of `b_tile`: add "
    "`a_tile[y, j] * b_tile[j, x]` for all j below `tile`."
)
def one_number_of_each_tile(tile):
    def multiply(a_tile, b_tile, x, y, row, column, tile):
        return a_tile[y, x] * b_tile[y, x]

    return _with_tiles(multiply=multiply)(tile)


@tiled_product.mistake(
    "The tiles are right, and then you go down `a_tile` and along `b_tile`. It is the other way round: "
    "`a_tile[y, j]` and `b_tile[j, x]`."
)
def multiplies_turned(tile):
    def multiply(a_tile, b_tile, x, y, row, column, tile):
        total = float32(0)
        for j in range(tile):
            total += a_tile[j, y] * b_tile[x, j]
        return total

    return _with_tiles(multiply=multiply)(tile)


@tiled_product.mistake("The numbers are right, but the product lies on its side: write `out[row, column]`.")
def out_turned(tile):
    def write(out, x, y, row, column, total):
        out[column, row] = total

    return _with_tiles(write=write)(tile)


@tiled_product.mistake(
    "All blocks write to the first tile of `out`. In the whole product, a thread's place is `[row, column]`."
)
def out_of_the_first_tile(tile):
    def write(out, x, y, row, column, total):
        out[y, x] = total

    return _with_tiles(write=write)(tile)


@tiled_product.mistake(
    "Right, but you write to `out` in every step. Global memory is slow: write once, after the last step."
)
def writes_in_each_step(tile):
    def product(out, a, b):
        a_tile = cuda.shared.array((tile, tile), float32)
        b_tile = cuda.shared.array((tile, tile), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0)
        for k in range(0, a.shape[1], tile):
            _loads(a_tile, b_tile, a, b, x, y, row, column, k)
            cuda.syncthreads()
            total += _multiplies(a_tile, b_tile, x, y, row, column, tile)
            out[row, column] = total
            cuda.syncthreads()

    return product


@tiled_product.mistake(
    "This is what the last step adds. `total` must keep what the steps before have added: set it to 0 once, "
    "before the loop over k, and use `+=`."
)
def last_step_only(tile):
    def product(out, a, b):
        a_tile = cuda.shared.array((tile, tile), float32)
        b_tile = cuda.shared.array((tile, tile), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        for k in range(0, a.shape[1], tile):
            _loads(a_tile, b_tile, a, b, x, y, row, column, k)
            cuda.syncthreads()
            total = _multiplies(a_tile, b_tile, x, y, row, column, tile)
            cuda.syncthreads()
        out[row, column] = total

    return product


@tiled_product.mistake(
    "All blocks load from the first rows and columns. Row and column of a block's tiles come from the grid: "
    "`row` and `column`."
)
def first_rows(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[y, k + x]
        b_tile[y, x] = b[k + y, x]

    return _with_tiles(load)(tile)


@tiled_product.mistake(
    "The tile of `b` lies on its side. Thread (x, y) loads `b[k + y, column]` to its own place, `[y, x]`."
)
def b_turned(tile):
    def load(a_tile, b_tile, a, b, x, y, row, column, k):
        a_tile[y, x] = a[row, k + x]
        b_tile[x, y] = b[k + y, column]

    return _with_tiles(load)(tile)


@tiled_product.mistake(
    "You add up in `out`, and every `+=` reads and writes global memory. Add up in `total`, and write once, "
    "at the end."
)
def adds_up_in_out(tile):
    def product(out, a, b):
        a_tile = cuda.shared.array((tile, tile), float32)
        b_tile = cuda.shared.array((tile, tile), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        for k in range(0, a.shape[1], tile):
            _loads(a_tile, b_tile, a, b, x, y, row, column, k)
            cuda.syncthreads()
            for j in range(tile):
                out[row, column] += a_tile[y, j] * b_tile[j, x]
            cuda.syncthreads()

    return product


@tiled_product.mistake(
    "Only one tile is multiplied. Go on through the whole row of `a`: `for k in range(0, a.shape[1], tile):`."
)
def one_tile(tile):
    def product(out, a, b):
        a_tile = cuda.shared.array((tile, tile), float32)
        b_tile = cuda.shared.array((tile, tile), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0)
        _loads(a_tile, b_tile, a, b, x, y, row, column, 0)
        cuda.syncthreads()
        for j in range(tile):
            total += a_tile[y, j] * b_tile[j, x]
        out[row, column] = total

    return product


@tiled_product.mistake(
    "k must go from tile to tile, in steps of `tile`: `range(0, a.shape[1], tile)`. Yours runs off the "
    "matrix."
)
def in_steps_of_one(tile):
    def product(out, a, b):
        a_tile = cuda.shared.array((tile, tile), float32)
        b_tile = cuda.shared.array((tile, tile), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0)
        for k in range(a.shape[1]):
            _loads(a_tile, b_tile, a, b, x, y, row, column, k)
            cuda.syncthreads()
            for j in range(tile):
                total += a_tile[y, j] * b_tile[j, x]
            cuda.syncthreads()
        out[row, column] = total

    return product


# --- On a GPU -----------------------------------------------------------------------------------------------

#: Seconds that were measured on an H100.
NUMBERS_OF_H100 = 2**26  # of each array that was added
ADDITIONS_OF_H100 = {
    "one number a thread": 294e-6,
    "four numbers a thread": 266e-6,
    "a loop over the grid": 384e-6,
}
LAUNCHES_OF_H100 = {
    "by Numba": 24e-6,
    "by the driver alone": 3.9e-6,
    "by PyTorch: add(out=)": 5.3e-6,
}
PRODUCTS_OF_H100 = {
    1024: {
        "16 × 16 tiles, 1 a thread": 298e-6,
        "64 × 64 tiles, 16 a thread": 148e-6,
        "cuBLAS": 57e-6,
    },
    4096: {
        "16 × 16 tiles, 1 a thread": 18_981e-6,
        "64 × 64 tiles, 16 a thread": 8_500e-6,
        "cuBLAS": 2_683e-6,
    },
}

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0"  # threads are Python's: few are started
NUMBERS = 32 if SIMULATED else NUMBERS_OF_H100
THREADS = 4 if SIMULATED else 256  # of a block
TILE = 2 if SIMULATED else 16


def additions(kernels: dict[str, tuple[Callable, int]]) -> None:
    """Print how long it takes to add two large arrays, and how many bytes go through memory in a second.

    Parameters
    ----------
    kernels : dict from a name to a pair
        A kernel that is called with `out`, `a` and `b`, and how many numbers each of its threads adds.
    """

    def measure() -> dict[str, float]:
        size, seconds = NUMBERS, {}
        while not SIMULATED and 16 * size > cuda.current_context().get_memory_info().free:
            size //= 2
        if size < NUMBERS:
            print(f"This GPU has little memory left. So {size:,} numbers are added, and times scaled up.")
        a, b = (cuda.to_device(np.full(size, number, "float32")) for number in (1, 2))
        for name, (kernel, each) in kernels.items():
            out = cuda.to_device(np.zeros(size, "float32"))
            launch = cuda.jit(kernel)[size // (each * THREADS), THREADS]
            seconds[name] = seconds_each(lambda: launch(out, a, b)) * NUMBERS / size  # noqa: B023
            _expect(name, out.copy_to_host(), 3)
        return seconds

    def in_words(seconds: float) -> str:
        gigabytes = 12 * NUMBERS_OF_H100 / 1e9  # three arrays, four bytes a number
        return f"{_microseconds(seconds)}, {gigabytes / seconds:,.0f} GB/s"

    title = f"a + b, {NUMBERS_OF_H100:,} numbers"
    _print_table(title, {"H100": ADDITIONS_OF_H100, "here": _on_this_gpu(measure)}, in_words)


def launches(kernel: Callable) -> None:
    """Print how long a launch takes that adds 1,000 numbers: Numba's own, and `needle`'s.

    Parameters
    ----------
    kernel : callable
        It is called with `out`, `a` and `b`, and each of its threads adds one number.
    """

    def measure() -> dict[str, float]:
        size = min(NUMBERS, 1000)
        out, a, b = (cuda.to_device(np.ones(size, "float32")) for _ in range(3))
        x, y, z = (device.cuda().Array(size) for _ in range(3))
        compiled, add = cuda.jit(kernel), device.cuda().ewise_add
        return {
            "by Numba": seconds_each(lambda: compiled[-(-size // THREADS), THREADS](out, a, b)),
            "by needle: ewise_add": seconds_each(lambda: add(x, y, z)),
        }

    columns = {"H100": LAUNCHES_OF_H100, "here": _on_this_gpu(measure)}
    _print_table("a + b, 1,000 numbers", columns, _microseconds)


def products(tiled: Callable) -> None:
    """Print how long products of large matrices take: the lecture's two kernels, and ``a @ b`` of `needle`'s.

    Parameters
    ----------
    tiled : callable
        ``tiled(tile)`` makes the kernel with tiles of this size.
    """
    compiled = {
        "without tiles": cuda.jit(product),
        f"{TILE} × {TILE} tiles, 1 a thread": cuda.jit(tiled(TILE)),
    }

    def measure(side: int) -> dict[str, float]:
        rng, seconds = np.random.default_rng(0), {}
        # Sums of small whole numbers are exact, so all ways must give the very same.
        x, y = (rng.integers(-3, 4, (side, side)).astype("float32") for _ in range(2))
        some = slice(None, None, side // 4)  # the rows that are compared: NumPy would need seconds for all
        a, b = cuda.to_device(x), cuda.to_device(y)
        for name, kernel in compiled.items():
            out = cuda.to_device(np.zeros_like(x))
            launch = kernel[(side // TILE, side // TILE), (TILE, TILE)]
            seconds[name] = seconds_each(lambda: launch(out, a, b))  # noqa: B023
            _expect(name, out.copy_to_host()[some], x[some] @ y)
        name = "needle's own kernel" if device.cuda().why_not_cublas() else "cuBLAS"
        a, b = device.cuda().array(x), device.cuda().array(y)
        seconds[name] = seconds_each(lambda: a @ b)
        _expect(name, (a @ b).numpy()[some], x[some] @ y)
        return seconds

    columns = {f"H100, {side:,}": seconds for side, seconds in PRODUCTS_OF_H100.items()}
    for side in PRODUCTS_OF_H100:
        columns[f"here, {side:,}"] = _on_this_gpu(lambda: measure(4 if SIMULATED else side))  # noqa: B023
    _print_table("a @ b, 1,024² and 4,096² numbers", columns, _microseconds)
    if device.cuda().enabled() and (why_not := device.cuda().why_not_cublas()):
        print(why_not)


def seconds_each(launch: Callable[[], object]) -> float:
    """How many seconds one of many launches takes: the median of five bursts.

    A launch does not wait for the GPU. So we wait for it before a burst, and after it.
    """

    def burst(launches: int) -> float:
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(launches):
            launch()
        cuda.synchronize()
        return (time.perf_counter() - start) / launches

    launch()  # the first one compiles
    once = burst(1)
    many = min(1 + int(0.02 / once), 1000)
    return once if once > 0.1 else median(burst(many) for _ in range(5))


def _expect(name: str, result: np.ndarray, expected: np.ndarray | int) -> None:
    if not np.all(result == expected):
        raise ArithmeticError(f"{name}: these are not the numbers that NumPy gives.")


def _on_this_gpu(measure: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The seconds that were measured here; none without a GPU, or if it fails: then a sentence says why."""
    if not device.cuda().enabled():
        return {}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Grid size")  # that a grid is small: some are meant to be
            seconds = measure()
    except Exception as error:  # whatever is wrong with the GPU, the lecture goes on
        print(f"Nothing was measured here. {type(error).__name__}: {error}")
        return {}
    return {} if SIMULATED else seconds


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.{int(seconds < 1e-5)}f} µs"


def _print_table(title: str, columns: dict[str, dict[str, float]], in_words: Callable[[float], str]) -> None:
    """Print seconds, a column for each place where they were measured, if anything was measured there."""
    columns = {name: seconds for name, seconds in columns.items() if seconds}
    rows = dict.fromkeys(row for seconds in columns.values() for row in seconds)
    lines = [[title, *columns]]
    for row in rows:
        lines.append(
            [row, *(in_words(seconds[row]) if row in seconds else "–" for seconds in columns.values())]
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        print(name.ljust(widths[0]), *map(str.rjust, cells, widths[1:]), sep="   ")
    if not any(name.startswith("here") for name in columns):
        print("These times were measured on an H100, one of NVIDIA's fastest GPUs, and not on this machine.")
