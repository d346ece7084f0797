"""Lecture 13, CUDA kernels: its puzzles, run thread by thread, and what memory costs on a GPU.

A kernel runs in plain Python, with arrays that note who reads and writes what. So a check sees races and accesses
out of bounds, whatever numbers came out. `out` arrives full of nan. What is right is then compiled, as for a GPU.
"""

from __future__ import annotations

import dis
import math
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from matplotlib.axes import Axes
from numba import cuda, float32

from needle.backend_ndarray import device
from viz.plots.kernel_recording import KernelTrace, Race, ThreadAccess, trace_kernel
from viz.plots.kernels import kernel_trace

from .checking import (
    FILLS,
    Attempt,
    Case,
    Contract,
    Exercise,
    Fault,
    Lecture,
    Names,
    case,
    drawn,
    given,
    twice_the_same,
    unshared,
    values,
)
from .recording import what_numba_says
from .without_numba import MISSING

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade

Shape = tuple[int, ...]


# --- A launch, and what is seen of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: ``kernel[grid, block](out, …)``, with an `out` of this shape.

    If there is a `tile`, the kernel is what a function makes that is called with it.
    """

    grid: Any
    block: Any
    shape: Shape
    tile: int = 0

    def __str__(self) -> str:
        tile = f", tile = {self.tile}" if self.tile else ""
        return f"a launch with grid {self.grid} and block {self.block}, out of shape {self.shape}{tile}"


@dataclass
class Ran:
    """What a launch did: its trace, the kernel, and what a thread gave back. `right` is what it should have done."""

    trace: KernelTrace
    kernel: Callable
    returned: Any
    right: Ran | None = None

    def __repr__(self) -> str:
        return f"out = {_shown(self.out)}"

    @property
    def out(self) -> np.ndarray:
        """What is in the first array after the launch."""
        return next(iter(self.trace.arrays.values()))

    def in_out(self, access: ThreadAccess) -> bool:
        """Whether an access is to the first array."""
        return access.array == next(iter(self.trace.arrays))

    def reads(self) -> dict[str, int]:
        """How often each array in global memory was read."""
        read = Counter(a.array for a in self.trace.accesses if a.kind != "write")
        return {name: read[name] for name in self.trace.arrays}

    def writes(self) -> list[ThreadAccess]:
        """All that was written into `out`."""
        return [a for a in self.trace.accesses if a.kind != "read" and self.in_out(a)]

    def homes(self) -> dict[Shape, tuple[Shape, Shape]]:
        """Which block and which thread wrote an element of `out`."""
        return {a.index: (a.block, a.thread) for a in self.writes()}

    def most_written(self) -> int:
        """How many numbers of `out` one thread writes at most."""
        return _most(Counter(self.homes().values()))

    def burdens(self) -> dict[str, int]:
        """What makes threads wait for others, and how much of it there is."""
        reads = [a for a in self.trace.accesses if a.kind == "read"]
        loads = Counter((a.block, a.thread) for a in reads if not _is_shared(a.array))
        queues = Counter((a.memory, a.index) for a in self.trace.accesses if a.kind == "atomic")
        rows = Counter((a.block, a.thread, a.phase) for a in reads)
        return {
            "one thread reads {} numbers in a row": _most(rows),
            "one thread fetches {} numbers from global memory": _most(loads),
            "{} atomic changes queue up at one place": _most(queues),
        }

    def room(self) -> int:
        """How many numbers the shared arrays of a block have room for."""
        return sum(math.prod(shape) for name, shape in self.trace.shapes.items() if _is_shared(name))

    def into_an_input(self) -> ThreadAccess | None:
        """The first write into another array than `out`."""
        inputs = list(self.trace.arrays)[1:]
        return next((a for a in self.trace.accesses if a.kind != "read" and a.array in inputs), None)

    def too_soon(self) -> ThreadAccess | None:
        """The first read of a place in `out` or in shared memory where nobody has written."""
        written = set()
        for access in self.trace.accesses:
            place = access.memory, access.index
            ours = _is_shared(access.array) or self.in_out(access)
            if ours and access.kind != "write" and place not in written:
                return access
            written.add(place)
        return None

    def race(self) -> tuple[Race, str] | None:
        """The first race, and what helps: it depends on who should have come first.

        If all threads went in step, the access that comes first in its own thread would be the first of the two.
        """
        if not self.trace.races:
            return None
        race = self.trace.races[0]
        step: Counter[tuple] = Counter()
        when: dict[int, int] = {}
        writers = set()
        for access in self.trace.accesses:
            thread = access.block, access.thread
            step[thread, access.phase] += 1
            when[id(access)] = step[thread, access.phase]
            here = (access.memory, access.index) == (race.first.memory, race.index)
            if here and access.kind != "read" and access.phase == race.first.phase:
                writers.add(thread)
        if len(writers) > 1:
            return race, TWO_WRITE
        return race, READ_TOO_EARLY if when[id(race.first)] < when[id(race.second)] else WRITTEN_TOO_EARLY

    def sign(self) -> tuple:
        """What tells one mistake from another."""
        if self.returned is not None:
            return ("returned",)
        refused = {self._place(access) for access in self.trace.out_of_bounds}
        raced = {self._place(race.first) for race in self.trace.races}
        if refused or raced:
            return refused, raced, [(race.first.phase, race.second.kind) for race in self.trace.races[:1]]
        if self.into_an_input():
            return ("input",)
        if self.right and values(self.right.out, self.out, {}):
            return ("numbers", np.nan_to_num(self.out, nan=-99).round(4).tolist())
        if self.too_soon() or self.most_written() > 1:
            return bool(self.too_soon()), self.most_written() > 1
        return list(self.reads().values()), len(self.writes()), self.homes(), max(self.burdens().values()) > 6

    def _place(self, access: ThreadAccess) -> tuple:
        """Where something went wrong. Of shared arrays, which the reader names, it counts only whose they are."""
        if _is_shared(access.array):
            return "shared", any(access.block)  # an index that counts in the grid does fit in the first block
        return list(self.trace.arrays).index(access.array), access.index, access.kind == "read"


def _most(counted: Counter[Any]) -> int:
    return max(counted.values(), default=0)


def _is_shared(array: str) -> bool:
    return array.startswith("shared ")


def _shown(numbers: np.ndarray) -> str:
    return f"[{', '.join(map(_shown, numbers))}]" if numbers.ndim else f"{numbers:.6g}"


def _said(access: ThreadAccess) -> str:
    return f"{access} {access.array}[{', '.join(map(str, access.index))}]"


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

    out = np.full(launch.shape, np.nan, "float32")
    try:
        trace = trace_kernel(noted, launch.grid, launch.block, out, *arrays)
    except RuntimeError as error:
        raise _in_plain_words(error) from error
    if any(value is ... for value in returned):
        return ...
    return Ran(trace, kernel, next((value for value in returned if value is not None), None))


WHOLE = "you compute with a whole array"


def _in_plain_words(error: RuntimeError) -> Exception:
    """What the tracer says of a kernel that failed, without the kernel's name."""
    cause = error.__cause__
    if not isinstance(cause, Exception):
        return RuntimeError(re.sub(r"^kernel_trace: \w+: ", "", str(error)))
    kind, words = type(cause), str(cause)
    if "_Array" in words:
        kind, words = TypeError, WHOLE
    found = re.search(r" in line (\d+)(?:, (.*))?: ", str(error).removesuffix(str(cause)))
    # What is between quotes does not count when mistakes are compared.
    return kind(f"in line {found[1]}, '{found[2] or '…'}': {words}" if found else words)


# --- What every kernel has to keep --------------------------------------------------------------------------

READ_TOO_EARLY = (
    "One thread reads what another one may not have written yet. Between the write and the read, all threads "
    "must come to a barrier."
)
WRITTEN_TOO_EARLY = (
    "One thread already writes where another one may still have to read what was there before. When they have "
    "read, let all come to a barrier, and only then write."
)
TWO_WRITE = (
    "Several threads write to one place, and the last one wins, whichever that is. Which index gives each of "
    "them a place of its own?"
)
EVERYONE = (
    "All threads of a block must come to each barrier, also those with nothing to do. So no thread may return "
    "before it, and it must not stand in an `if` that some of them skip."
)
NUMBERS_ONLY = (
    "Python runs this, but Numba cannot compile it for a GPU. A kernel has numbers, single places of arrays, "
    "`if`, loops and `math`: no lists, and no functions of NumPy for arrays."
)
#: By what Numba says of a kernel: what helps.
REFUSED = {
    "shared.array": "How large a shared array is must be known when the kernel is compiled. Write a number, or "
    "a name from around the kernel, such as `tile`.",
    "Untyped global name": "A function that a kernel calls must be for the GPU, too: put "
    "`@cuda.jit(device=True)` above it, or write its lines into the kernel.",
}


class Kernel(Contract):
    """A launch does nothing that it must not do, and no more than the right kernel does.

    Parameters
    ----------
    threads : bool
        Whether each element must be written by the very thread that the right kernel lets write it.
    traffic : bool
        Whether memory must not be used more often.
    barriers : int
        How many more than in the right kernel there may be, if `traffic` counts.
    """

    def __init__(self, threads: bool = False, traffic: bool = False, barriers: int = 2):
        self.threads, self.traffic, self.barriers = threads, traffic, barriers
        self.compiled: dict[Any, Fault | None] = {}  # of each answer: what Numba says of it

    def after(self, attempt: Attempt, was: Any) -> Fault | None:
        """What went wrong in a launch, whatever its numbers."""
        words, ran = str(attempt.got.error or ""), attempt.got.result
        if WHOLE in words:
            return Fault(words, "A thread computes with single numbers: `a[i]`, at an index of its own.")
        if "syncthreads" in words:
            return Fault(words, EVERYONE)
        if not isinstance(ran, Ran):
            return None
        for part in not_on_a_gpu(ran.kernel):
            return Fault(f"your kernel has {part}, which is nothing for a GPU", NUMBERS_ONLY)
        if ran.returned is not None:
            return Fault(
                "your kernel gives something back",
                "Ten thousand threads cannot all `return` a number to you. A kernel writes into `out`: "
                "`out[…] = …`.",
            )
        for refused in ran.trace.refusals():
            return Fault(
                refused,
                "An index goes past the end of an array. Which threads have no number there? Each read and "
                "each write must be behind a guard.",
            )
        if found := ran.race():
            race, hint = found
            return Fault(
                f"{_said(race.first)}, and {race.second} it: nothing decides who comes first (a race)", hint
            )
        if access := ran.into_an_input():
            return Fault(
                f"{_said(access)}, which is an input",
                "Other threads and later kernels may still need it. Write into `out` only.",
            )
        if access := ran.too_soon():
            return Fault(
                f"{_said(access)}, where nobody has written yet",
                "Anything may lie there, in `out` as in shared memory. Write to a place first, with `=`.",
            )
        return None

    def compare(self, attempt: Attempt) -> Fault | None:
        """What a kernel that gives the right numbers does besides."""
        ran, right = attempt.got.result, attempt.expected
        if ran.most_written() > right.most_written():
            return Fault(
                f"one thread writes {ran.most_written()} numbers, and others have nothing to do",
                "Right, but one thread does the work of others. Leave out the loop: each thread writes one "
                "number, the one at its own index.",
            )
        if self.threads:
            for place, (_, (x, y, _)) in ran.homes().items():
                _, (right_x, right_y, _) = right.homes()[place]
                if (x, y) != (right_x, right_y):
                    return Fault(
                        f"thread ({x}, {y}) writes out{[*place]}, and thread ({right_x}, {right_y}) should",
                        "The numbers are right, but other threads should have them. Let x count along a row, "
                        "`out[y, x]`: neighbours in x are then neighbours in memory, too.",
                    )
        if self.traffic and (fault := self._cost(ran, right)):
            return fault
        if ran.kernel.__code__.co_filename.startswith("<a slip of"):
            return None
        if attempt.answer not in self.compiled:
            dimensions = [x.ndim for x in ran.trace.arrays.values()]
            self.compiled[attempt.answer] = not_compiled(ran.kernel, dimensions)
        return self.compiled[attempt.answer]

    def _cost(self, ran: Ran, right: Ran) -> Fault | None:
        for (name, count), enough in zip(ran.reads().items(), right.reads().values(), strict=True):
            if count > enough:
                return Fault(
                    f"{name} is read {count} times from global memory, where {enough} would do",
                    "Right, but the same numbers are fetched again and again. Let one thread fetch each of "
                    "them into shared memory, and read them there.",
                )
        if len(ran.writes()) > len(right.writes()):
            return Fault(
                f"out is written {len(ran.writes())} times, where {len(right.writes())} would do",
                "Global memory is slow: write a number once, when it is done.",
            )
        if ran.room() > 2 * right.room():
            return Fault(
                f"each block has room for {ran.room()} numbers in shared memory, where {right.room()} would do",
                "Every block has a shared memory of its own, and it is small. Count its places within the "
                "block, and not in the grid.",
            )
        burdens = [(what, n, 2 * right.burdens()[what]) for what, n in ran.burdens().items()]
        burdens += [("there are {} barriers", ran.trace.phases - 1, right.trace.phases - 1 + self.barriers)]
        for what, number, most in burdens:
            if number > most:
                return Fault(
                    f"{what.format(number)}, and the others wait",
                    "Right, but the work is not shared. Let many threads do a little in each round, and not "
                    "one thread a lot, or one after the other.",
                )
        return None


def not_on_a_gpu(kernel: Any) -> Iterator[str]:
    """Lists, dictionaries, sets, and functions of NumPy that are not for single numbers."""
    made = {"BUILD_LIST": "a list", "BUILD_MAP": "a dictionary", "BUILD_SET": "a set"}
    for one, other in pairwise(dis.get_instructions(kernel)):
        if one.opname in made:
            yield made[one.opname]
        in_numpy = "GLOBAL" in one.opname and kernel.__globals__.get(one.argval) is np
        if in_numpy and not isinstance(getattr(np, other.argval, None), (np.ufunc, type, float)):
            yield f"np.{other.argval}"


def not_compiled(kernel: Callable, dimensions: Iterable[int]) -> Fault | None:
    """Why Numba cannot compile a kernel for a GPU; None if it can, or if there is nothing here to find out."""
    if MISSING:
        return None
    from numba import types
    from numba.core.errors import NumbaError

    signature = types.void(*[types.Array(float32, axes, "C") for axes in dimensions])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cuda.compile_ptx(kernel, signature, cc=(7, 5))
    except NumbaError as error:
        return what_numba_says(error, REFUSED, NUMBERS_ONLY)
    except Exception:  # without a driver, or the toolkit's compiler, some kernels cannot be compiled
        return None
    return None


def same_numbers(right: Ran, got: Any, names: Names) -> str:
    """Whether a launch wrote the right numbers."""
    if not isinstance(got, Ran):
        return f"there is {'None' if got is None else type(got).__name__} where a kernel should be"
    difference = values(right.out, got.out, names)
    return f"out: {difference}" if difference else ""


def _alike(one: Any, other: Any, names: Names) -> str:
    """Whether two wrong launches went wrong in the same way; "" if so."""
    if isinstance(one, Ran) and isinstance(other, Ran):
        return "" if one.sign() == other.sign() else "they differ"
    return "" if type(one) is type(other) else "they differ"


same_numbers.exactly = _alike  # type: ignore[attr-defined]


def on(launch: Launch, **arrays: Any) -> Case:
    """A case: a launch, and the arrays that the kernel gets after `out`, by the names of the lecture."""

    def make() -> dict[str, Any]:
        return {"launch": launch} | {name: np.array(x, dtype="float32") for name, x in arrays.items()}

    return given(make, "launch", *arrays, program=str(launch))


def drawn_on(
    launches: Sequence[Launch],
    shapes: Callable[[Launch], Mapping[str, Shape]],
    fills: Sequence[str] = ("counted", "signed", "irregular"),
) -> SearchStrategy[Case]:
    """Cases with these launches, and with arrays of the shapes that belong to a launch, filled in one of these ways."""
    arrays = len(shapes(launches[0]))

    def make(parts: tuple) -> Case:
        launch, *chosen = parts
        named = zip(shapes(launch).items(), chosen, strict=True)
        return on(
            launch, **{name: FILLS[fill](math.prod(shape)).reshape(shape) for (name, shape), fill in named}
        )

    return st.tuples(st.sampled_from(list(launches)), *[st.sampled_from(list(fills))] * arrays).map(make)


def puzzle(
    *cases: Case,
    draws: SearchStrategy[Case],
    otherwise: str,
    kernel: Kernel | None = None,
    number: int = 40,
) -> Callable[[Callable], Exercise]:
    """An exercise that asks for a kernel, or for a function that makes one. Nothing stays between two launches."""

    def made(right: Callable) -> Exercise:
        name, arrays = right.__name__, ", ".join(cases[0].chosen[1:])
        makes = "(tile)" if right.__code__.co_varnames[0] == "tile" else ""
        known: dict[tuple, Ran] = {}  # many mistakes are tried on the same inputs

        def use(answer: Any, launch: Launch, *inputs: np.ndarray) -> Any:
            key = (launch, *(x.tobytes() for x in inputs))
            if key not in known:
                known[key] = run(right, launch, *inputs)
            if answer is right:
                return known[key]
            ran = run(answer, launch, *inputs)
            if isinstance(ran, Ran):
                ran.right = known[key]
            return ran

        make = lecture.exercise(
            *cases,
            draws=draws,
            number=number,
            otherwise=otherwise,
            compare=same_numbers,
            use=use,
            form=f"{name}{makes}(out, {arrays})",
            contracts=(kernel or Kernel(),),
            unless=(twice_the_same, unshared),
        )
        return make(right)

    return made


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

ONE_BLOCK = [Launch(1, n, (n,)) for n in (3, 4, 2, 7, 5, 1)]


@puzzle(
    on(Launch(1, 6, (6,)), a=[0, 10, 20, 30, 37, 100]),
    draws=drawn_on(ONE_BLOCK, lambda launch: {"a": launch.shape}),
    otherwise="Take thread 1, say: which number of `a` does it read, and where in `out` does it write?",
)
def fahrenheit(out, a):
    i = cuda.threadIdx.x
    out[i] = 1.8 * a[i] + 32


# --- 2 Zip --------------------------------------------------------------------------------------------------


@puzzle(
    on(Launch(1, 6, (6,)), w=[1, 2, 3, 4, 5, 6], g=[10, -10, 0, 5, 20, -5]),
    draws=drawn_on(ONE_BLOCK, lambda launch: {"w": launch.shape, "g": launch.shape}),
    otherwise="Thread i turns knob i: from `w[i]`, take away 0.1 times `g[i]`.",
)
def descend(out, w, g):
    i = cuda.threadIdx.x
    out[i] = w[i] - 0.1 * g[i]


# --- 3 Guards -----------------------------------------------------------------------------------------------


@puzzle(
    on(Launch(1, 8, (5,)), a=[3, -1, 4, -1, 5]),
    draws=drawn_on(
        [Launch(1, block, (n,)) for block, n in [(4, 3), (8, 7), (4, 4), (2, 1), (16, 9), (3, 1)]],
        lambda launch: {"a": launch.shape},
        ("signed", "irregular", "zeros between"),
    ),
    otherwise="Threads from `a.size` on have no number: they must neither read nor write.",
)
def relu(out, a):
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = max(a[i], 0)


# --- 4 Map in two dimensions --------------------------------------------------------------------------------

#: A block that is larger than the image: in one direction, in the other, in both, in none.
IMAGES = [
    Launch(1, block, shape)
    for block, shape in [
        *[((4, 3), (2, 3)), ((4, 4), (3, 2)), ((3, 4), (2, 3)), ((4, 2), (2, 3)), ((8, 8), (2, 2))],
        *[((2, 5), (4, 2)), ((3, 2), (2, 3)), ((4, 4), (1, 3)), ((5, 3), (3, 1))],
    ]
]


@puzzle(
    on(IMAGES[0], a=[[0, 0.25, 0.5], [1, 0.75, 0]]),
    draws=drawn_on(IMAGES, lambda launch: {"a": launch.shape}),
    otherwise="Take the thread with x = 2, y = 1: which row, and which column of the image is its own?",
    kernel=Kernel(threads=True),
)
def negative(out, a):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = 1 - a[y, x]


# --- 5 Broadcast --------------------------------------------------------------------------------------------


@puzzle(
    on(IMAGES[0], a=[[1, 2, 3], [4, 5, 6]], bias=[10, 20, 30]),
    draws=drawn_on(IMAGES, lambda launch: {"a": launch.shape, "bias": launch.shape[1:]}),
    otherwise="Each row of `a` gets the same bias, number by number: column x gets `bias[x]`.",
    kernel=Kernel(threads=True),
)
def add_bias(out, a, bias):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x] + bias[x]


# --- 6 Blocks -----------------------------------------------------------------------------------------------

#: Grid, block, and how many numbers there are.
SIZES = [(2, 3, 5), (2, 8, 10), (4, 2, 7), (3, 4, 12), (5, 1, 5), (1, 4, 3), (4, 4, 9)]
STRIPS = [Launch(grid, block, (n,)) for grid, block, n in SIZES]


@puzzle(
    on(Launch(3, 4, (10,)), a=[0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0, 0.5]),
    draws=drawn_on(STRIPS, lambda launch: {"a": launch.shape}, ("falling", "irregular", "zeros between")),
    otherwise="Write down for each thread of block 1 which index it computes. Blocks of four: 4, 5, 6, 7.",
    kernel=Kernel(threads=True),
)
def brighter(out, a):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < a.size:
        out[i] = min(a[i] + 0.25, 1)


# --- 7 A grid -----------------------------------------------------------------------------------------------


def whole(expected: Any, got: Any, names: Names) -> str:
    """Whether these are the right numbers, and whole ones, as a launch needs them."""
    if difference := values(expected, got, names):
        return difference
    fractions = [x for x in got if not isinstance(x, int)] if isinstance(expected[0], int) else []
    return f"a launch needs whole numbers, and {fractions[0]!r} is none" if fractions else ""


@lecture.exercise(
    case((3, 10), (4, 2)),
    draws=drawn(
        st.tuples(*[st.sampled_from([5, 4, 2, 7, 8, 64, 100, 1])] * 2),
        [(4, 2), (2, 4), (3, 3), (16, 8), (8, 16), (1, 5), (1, 1)],
    ),
    compare=whole,
    otherwise="Draw the matrix, and cut it into blocks. How many lie side by side, and how many one above the other?",
)
def grid_for(shape, block):
    rows, columns = shape
    width, height = block
    return math.ceil(columns / width), math.ceil(rows / height)


# --- 8 Shared memory ----------------------------------------------------------------------------------------


@puzzle(
    on(Launch(2, 4, (8,)), a=[1, 2, 3, 4, 5, 5, 5, 5]),
    draws=drawn_on(
        [Launch(grid, 4, (4 * grid,)) for grid in (1, 2, 3, 6)],
        lambda launch: {"a": launch.shape},
        ("counted", "falling", "zeros between"),
    ),
    otherwise="Write, wait, read: `cache[t] = a[i]`, then the barrier, then all four numbers of `cache`.",
    kernel=Kernel(traffic=True),
)
def shares(out, a):
    cache = cuda.shared.array(4, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i]
    cuda.syncthreads()
    out[i] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])


# --- 9 Sum --------------------------------------------------------------------------------------------------


@puzzle(
    on(Launch(1, 8, (1,)), a=[3, 1, 4, 1, 5, 9, 2]),
    draws=st.sampled_from([(1, 8), (2, 13), (3, 17), (2, 16), (1, 1), (6, 44)]).flatmap(
        lambda sizes: drawn_on([Launch(sizes[0], 8, sizes[:1])], lambda launch: {"a": sizes[1:]})
    ),
    otherwise="Follow one round on paper: which threads add, what do they add, and who waits for whom?",
    kernel=Kernel(traffic=True),
)
def block_sum(out, a):
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


# --- 10 Find the fault --------------------------------------------------------------------------------------


@puzzle(
    on(Launch(1, 8, (6,)), a=[1, 2, 3, 4, 5, 6]),
    draws=drawn_on(
        [Launch(grid, 8, (n,)) for grid, n in [(1, 8), (2, 13), (1, 3), (3, 17), (2, 16), (1, 1)]],
        lambda launch: {"a": launch.shape},
    ),
    otherwise="Follow one round on paper: which places does a thread read, who writes to them, and who waits for whom?",
    kernel=Kernel(traffic=True, barriers=0),
)
def running_total(out, a):
    cache = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cache[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    for step in (1, 2, 4):
        before = cache[t - step] if t >= step else 0
        cuda.syncthreads()
        cache[t] += before
        cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t]


# --- 11 Sliding sum -----------------------------------------------------------------------------------------


@puzzle(
    on(Launch(2, 4, (8,)), a=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    draws=drawn_on(
        [Launch(grid, 4, (n,)) for grid, n in [(1, 3), (2, 7), (1, 4), (2, 5), (3, 12), (1, 1), (5, 18)]],
        lambda launch: {"a": (launch.shape[0] + 2,)},
    ),
    otherwise="Write down what block 0 needs: `a[0]` to `a[5]`. Who fetches the last two?",
    kernel=Kernel(traffic=True),
)
def sliding_sum(out, a):
    cache = cuda.shared.array(6, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        cache[t] = a[i]
    if t < 2 and i + 4 < a.size:
        cache[t + 4] = a[i + 4]
    cuda.syncthreads()
    if i < out.size:
        out[i] = cache[t] + cache[t + 1] + cache[t + 2]


# --- 12 The tiled product -----------------------------------------------------------------------------------


def product(out, a, b):
    """The matrix product that takes everything from global memory."""
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        out[row, column] = total


A, B = (
    [[1, 2, 3, 4], [5, 6, 7, 8], [2, 3, 1, 4], [0, 2, 0, 2]],
    [[1, 0, 2, 0], [0, 1, 0, 2], [1, 1, 0, 0], [3, 0, 0, 1]],
)


def products_of(sizes: str) -> SearchStrategy[Case]:
    """Products of m × k and k × n matrices on tiles: each of the sizes is tile, m, k and n, a digit each."""
    return st.one_of(
        [
            drawn_on(
                [Launch((-(-n // tile), -(-m // tile)), (tile, tile), (m, n), tile)],
                lambda launch, k=k: {"a": (launch.shape[0], k), "b": (k, launch.shape[1])},  # type: ignore[misc]
            )
            for tile, m, k, n in (map(int, digits) for digits in sizes.split())
        ]
    )


@puzzle(
    on(Launch((2, 2), (2, 2), (4, 4), 2), a=A, b=B),
    draws=products_of("2246 2462 2224 3363 3633 4484 1232"),
    number=25,
    otherwise="Do the first step of block (0, 0) on paper. Which number of each tile does each thread load?",
    kernel=Kernel(traffic=True),
)
def tiled_product(tile):
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


# --- 13 Tiles that do not fit -------------------------------------------------------------------------------


@puzzle(
    on(Launch((2, 2), (2, 2), (3, 3), 2), a=[row[:3] for row in A[:3]], b=[row[:3] for row in B[:3]]),
    draws=products_of("2351 2234 2322 2223 3452 4235 2442"),
    number=25,
    otherwise="Take a thread that has no number in `out`. What does it load into the two tiles, and who needs that?",
    kernel=Kernel(traffic=True),
)
def any_product(tile):
    def product(out, a, b):
        a_tile = cuda.shared.array((tile, tile), float32)
        b_tile = cuda.shared.array((tile, tile), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0)
        for k in range(0, a.shape[1], tile):
            a_tile[y, x] = a[row, k + x] if row < a.shape[0] and k + x < a.shape[1] else 0
            b_tile[y, x] = b[k + y, column] if k + y < b.shape[0] and column < b.shape[1] else 0
            cuda.syncthreads()
            for j in range(tile):
                total += a_tile[y, j] * b_tile[j, x]
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
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
LAUNCHES_OF_H100 = {"by Numba": 24e-6, "by the driver alone": 3.9e-6, "by PyTorch: add(out=)": 5.3e-6}
WAYS = ("16 × 16 tiles, 1 a thread", "64 × 64 tiles, 16 a thread", "cuBLAS")
PRODUCTS_OF_H100 = {
    1024: dict(zip(WAYS, (298e-6, 148e-6, 57e-6), strict=True)),
    4096: dict(zip(WAYS, (18_981e-6, 8_500e-6, 2_683e-6), strict=True)),
}

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0"  # threads are Python's: few are started
NUMBERS = 32 if SIMULATED else NUMBERS_OF_H100
THREADS = 4 if SIMULATED else 256  # of a block
TILE = 2 if SIMULATED else 16


def additions(kernels: dict[str, tuple[Callable, int]]) -> None:
    """Print how long it takes to add two large arrays, and how many bytes go through memory in a second.

    Each kernel is called with `out`, `a` and `b`, and stands beside how many numbers each of its threads adds.
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
    """Print how long a launch takes that adds 1,000 numbers, one a thread: Numba's own, and `needle`'s."""

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
    """Print how long products of large matrices take: the lecture's two kernels, and ``a @ b`` of `needle`'s."""
    kernels = {"without tiles": product, f"{TILE} × {TILE} tiles, 1 a thread": tiled(TILE)}
    compiled = {name: cuda.jit(kernel) for name, kernel in kernels.items()}

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
    lines += [[row, *(in_words(x[row]) if row in x else "–" for x in columns.values())] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        print(name.ljust(widths[0]), *map(str.rjust, cells, widths[1:]), sep="   ")
    if not any(name.startswith("here") for name in columns):
        print("These times were measured on an H100, one of NVIDIA's fastest GPUs, and not on this machine.")
