"""Lecture 12, parallel kernels: its exercises, and how they are checked.

A race shows only now and then. So a check does not wait for one: it runs a kernel in plain Python, with arrays
that note which iteration reads and writes which place. Only what is right and has no race is then compiled.
"""

from __future__ import annotations

import dis
import io
import math
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from hypothesis import strategies as st
from numba import NumbaParallelSafetyWarning, njit, prange

import viz
from needle.backend_ndarray.blas import one_thread

from .checking import (
    NUMBERS,
    Attempt,
    Case,
    Contract,
    Exercise,
    Fault,
    Lecture,
    Names,
    arrays,
    case,
    given,
    twice_the_same,
    unshared,
    untried,
    values,
)
from .recording import Note, Recording, names_looked_up, notes_of, record, what_numba_says

__all__ = ["check", "notes_of", "predict", "ready"]

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


# --- Pictures of what a kernel touches ----------------------------------------------------------------------


def touched(notes: Sequence[Note]) -> np.ndarray:
    """A table of notes, with a row per iteration and a column per place: 1 for a read, 2 for a write."""
    places = list(dict.fromkeys(place for _, _, place in notes))
    table = np.zeros((1 + max(i for i, *_ in notes), len(places)))
    for i, what, place in notes:
        column = places.index(place)
        table[i, column] = max(table[i, column], 1 + (what == "write"))
    return table


def draw_touched(notes: Sequence[Note], title: str, ax: Any) -> None:
    """Draw a table of notes: a row per iteration, a column per place, r for a read and w for a write."""
    table = touched(notes)
    viz.matrix(table, title=title, ylabel="iteration", ax=ax)
    ax.images[0].colorbar.remove()
    for text, number in zip(ax.texts, table.flat, strict=True):
        text.set_text(" rw"[int(number)])
    ax.set_xticks(range(table.shape[1]), dict.fromkeys(place for *_, place in notes), rotation=90)


def order_of_reading(kernel: Callable, n: int, *arguments: Any) -> np.ndarray:
    """When a product of a row and an n × n matrix `b` reads each number of `b`: 0, 1, 2, …"""
    a, b, out = np.ones((1, n)), np.ones((n, n)), np.zeros((1, n))
    log = record(kernel, a, b, out, *arguments).log
    first = dict.fromkeys(place for *_, root, place in log if root.name == "b")
    order = np.empty(n * n)
    order[list(first)] = np.arange(n * n)
    return order.reshape(n, n)


def draw_order(order: np.ndarray, title: str, ax: Any, scale: bool = False) -> Any:
    """Draw the order of reading, small enough to stand beside another picture on a phone."""
    viz.matrix(order, title=title, ax=ax)
    ax.set(xticks=range(0, 16, 5), yticks=range(0, 16, 5))
    if not scale:
        ax.images[0].colorbar.remove()
    return ax


# --- Machines: is a sum ever wrong, and what takes how long? ------------------------------------------------


def ever_wrong(kernel: Callable, x: np.ndarray, right: float, seconds: float = 5.0) -> bool:
    """Whether a kernel that adds up `x` gives another sum than `right`, tried again and again for a while.

    With one thread it cannot; then a line says so.
    """
    if numba.get_num_threads() == 1:
        print("(This machine gives Numba one thread only, so here you will not see it go wrong.)")
        return False
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        total = np.zeros(1)
        kernel(x, total)
        if total[0] != right:
            return True
    return False


def times(ways: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """The shortest time of each way, in seconds. They take turns, so that a busy moment slows them all."""
    shortest = dict.fromkeys(ways, math.inf)
    for _ in range(rounds):
        for name, way in ways.items():
            time.sleep(0.003)  # the threads of the way before may still be looking for work
            start = time.perf_counter()
            way()
            shortest[name] = min(shortest[name], time.perf_counter() - start)
    return shortest


def ratios(ways: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """How many times as fast as the first way each one is, measured here and now."""
    shortest = times(ways, rounds)
    first = next(iter(shortest.values()))
    return {name: first / seconds for name, seconds in shortest.items()}


def blas(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two matrices by NumPy's BLAS, on one thread."""
    with one_thread:
        return a @ b


def passes(function: Callable, *arguments: Any) -> dict[str, int]:
    """How often NumPy reads and writes a whole array in a function: from end to end, each time."""
    some = [x[:1000] if isinstance(x, np.ndarray) else x for x in arguments]  # as often as with all of them
    return dict(record(function, *some, follows=True).passes)


# --- How an answer is tried ---------------------------------------------------------------------------------


class Verdict(str):
    """What is wrong with a kernel besides its numbers: a race, say. One `kind` is one mistake."""

    kind: str

    def __new__(cls, words: str, kind: str = "") -> Verdict:
        made = super().__new__(cls, words)
        made.kind = kind or words.partition(":")[0]
        return made

    def __repr__(self) -> str:
        return self.kind


def sound(expected: Any, got: Any, names: Names) -> str:
    """Whether an answer gives the right numbers, and gives them without a race and the like."""
    if isinstance(got, Verdict):
        return str(got)
    both = isinstance(expected, np.ndarray) and isinstance(got, np.ndarray)
    if both and got.dtype.kind != expected.dtype.kind:
        return f"the numbers are {got.dtype}, but should be {expected.dtype}"
    return values(expected, got, names, tolerance=1e-9)


Judge = Callable[[Recording, Recording], Verdict | None]


def judge(words: str, found: Callable[[Recording, Recording], Any]) -> Judge:
    """A judge of a kernel's recording and the right one's: these words, if something is found in them."""
    return lambda done, right: Verdict(words) if found(done, right) else None


def kernel_use(
    right: Callable, prepare: Callable[..., tuple], pick: Callable[[Recording], Any], judges: Sequence[Judge]
) -> Callable[..., Any]:
    """How a kernel is tried: in plain Python, with all its reads and writes noted.

    `prepare` makes its arguments of the case's inputs, and `pick` finds its result. A judge looks at the
    recording, and at that of the right kernel.
    """
    known: dict[tuple, Recording] = {}  # of the right kernel: many mistakes are tried on the same inputs

    def use(answer: Callable, *inputs: Any) -> Any:
        key = tuple((x.shape, x.tobytes()) if isinstance(x, np.ndarray) else repr(x) for x in inputs)
        if key not in known:
            known[key] = record(right, *prepare(*inputs))
        proper = known[key]
        if answer is right:
            return pick(proper)
        recording = record(answer, *prepare(*inputs))
        if untried(recording.result):
            return ...
        numbers = pick(recording)
        if race := recording.race():
            if recording.array_sum:
                return Verdict("an array per iteration: all of it is added, place by place")
            return Verdict(f"a race: {race[0]}", f"a race in {race[1]}")
        if values(pick(proper), numbers, {}):
            return numbers
        if any(values(x, y, {}) for x, y in zip(proper.arguments, recording.arguments, strict=True)):
            return Verdict("other inputs: the result is right, but your kernel changes what it was given")
        if keeps_a_list(answer):
            return Verdict("a list: nothing notes which iteration touches its places. Take an array")
        return next((verdict for judge in judges if (verdict := judge(recording, proper))), numbers)

    return use


def keeps_a_list(answer: Callable) -> bool:
    """Whether a kernel gives a name to a list or a dictionary that it makes."""
    code = getattr(answer, "py_func", answer).__code__
    steps = [step.opname for step in dis.get_instructions(code)]
    makes = ("BUILD_LIST", "BUILD_MAP", "BUILD_SET")
    return any(
        step in makes and "STORE_FAST" in steps[place : place + 4] and "CALL" not in steps[place : place + 4]
        for place, step in enumerate(steps)
    )


def idle(done: Recording, right: Recording) -> bool:
    """Whether one iteration does everything. With few numbers, a thread's share may be all of them."""
    iterations = {i for _, i, *_ in done.log if i is not None}
    return len(iterations) < 2 and done.arguments[0].size > 1000


no_threads = judge("one thread: there is no `prange`, so it does everything", lambda done, _: not done.loops)
one_iteration = judge("one iteration: it does everything, and the other threads wait", idle)
several_loops = judge(
    "several parallel loops: your kernel comes to a `prange` more often than it has to",
    lambda done, right: done.loops > right.loops,
)
counts_by_numpy = judge("a ready count: NumPy counts in your kernel", lambda done, _: done.counted)
no_arrays = judge(
    "an array: your kernel writes it to memory, and reads it again",
    lambda done, _: any(root.kind == "an array of its own" for *_, root, _ in done.log),
)
by_blas = judge("a ready product: NumPy multiplies matrices in your kernel", lambda done, _: done.product)


# --- Numba: an answer is compiled once ----------------------------------------------------------------------

_compiled: dict[tuple, tuple[Callable, list[Any]]] = {}


def compiled(kernel: Callable, parallel: bool = True) -> Callable:
    """A kernel under `njit`. One of the same code is compiled once, for a check and for what comes after it."""
    function: Any = getattr(kernel, "right", kernel)
    function = getattr(function, "py_func", function)
    if not hasattr(function, "__code__"):
        return njit(parallel=parallel)(function)
    uses = [function.__globals__.get(name) for name in sorted(names_looked_up(function))]
    key = (function.__code__, parallel, function.__defaults__, *map(id, uses))
    if key not in _compiled:
        _compiled[key] = njit(parallel=parallel)(function), uses
    return _compiled[key][0]


NOT_PYTHON_ALONE = (
    "Plain Python can do this, and Numba cannot. Keep to loops, numbers, arrays and simple functions."
)
#: By what Numba says of a kernel: what helps.
REFUSED = {
    "Overwrite of parallel loop index": "`i` belongs to the loop: it says which part of the work this is. "
    "Work on a number of your own: `rest = np.int64(i)`.",
    "Unsupported array index type float64": "`rest = i` is still the loop's index, which is unsigned: with a stride, "
    "Numba makes a float of it. Write `rest = np.int64(i)`, or call `to_index`.",
    "Unknown reduce instruction node": "For Numba, the total comes first: it knows `loss += d * d` and "
    "`loss = loss + d * d`, but not `loss = d * d + loss`.",
}
SHARED = (
    "A variable that the loop sets is read after it, so all threads share it. Let each iteration set what it "
    "reads; what you need after the loop is a recognised reduction, or known without the loop."
)
TWO_RESULTS = (
    "Threads do not do what plain Python does here. Does an iteration use what another one has left in a "
    "variable? Only `+=`, `-=`, `*=`, `max` and `min` may do that."
)


_warned: dict[Callable, list[str]] = {}


def run(kernel: Callable, *arguments: Any) -> tuple[Any, list[str]]:
    """What a compiled kernel returns, and what Numba has warned of when it compiled it."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = kernel(*arguments)
    lines = [str(w.message).splitlines()[0] for w in warned if w.category is NumbaParallelSafetyWarning]
    said = [re.sub(r"(Variable \w+)\.[\w.]+", r"\1", line) for line in lines]
    _warned[kernel] = _warned.get(kernel, []) + said
    return result, _warned[kernel]


def hoisted(kernel: Any) -> int:
    """How many arrays each thread makes once, before its iterations: from Numba's diagnostics."""
    with redirect_stdout(io.StringIO()) as report:
        kernel.parallel_diagnostics(level=4)
    return " ".join(report.getvalue().split()).count("is hoisted out of the parallel loop")


class Compiles(Contract):
    """Numba compiles the answer, and the kernel does what the Python function does, without a warning.

    It begins with the last of the lecture's own cases, which is large: most wrong answers fail before.
    """

    def __init__(self, prepare: Callable[..., tuple], pick: Callable[[Recording], Any], parallel: bool):
        self.prepare, self.pick, self.parallel = prepare, pick, parallel

    def compare(self, attempt: Attempt) -> Fault | None:
        """What is wrong with the compiled kernel."""
        answer, exercise = attempt.answer, attempt.exercise
        code = getattr(getattr(answer, "py_func", answer), "__code__", None)
        is_slip = code is not None and code.co_filename.startswith("<a slip of")
        if is_slip or (exercise.cases and attempt.case in exercise.cases[:-1]):
            return None
        again = Recording()
        again.arguments = list(self.prepare(*attempt.inputs))
        try:
            again.result, warned = run(compiled(answer, self.parallel), *again.arguments)
        except Exception as error:
            return what_numba_says(error, REFUSED, NOT_PYTHON_ALONE)
        if warned:
            return Fault(f"Numba warns of a race: {warned[0]}", SHARED)
        if difference := values(attempt.got.result, self.pick(again), {}):
            return Fault(
                f"plain Python gets it right, the compiled kernel does not: {difference}", TWO_RESULTS
            )
        return None


def kernel_exercise(
    prepare: Callable[..., tuple],
    pick: Callable[[Recording], Any],
    *judges: Judge,
    cases: Sequence[Case],
    draws: Any,
    otherwise: str,
    number: int = 60,
    parallel: bool = True,
    form: str = "",
) -> Callable[[Any], Exercise]:
    """An exercise that asks for a kernel.

    Numba freezes what a kernel finds outside of it, so nothing can stay from one call to the next.
    """
    return lambda right: lecture.exercise(
        *cases,
        draws=draws,
        number=number,
        otherwise=otherwise,
        compare=sound,
        use=kernel_use(right, prepare, pick, judges),
        form=form,
        contracts=(Compiles(prepare, pick, parallel),),
        unless=(twice_the_same, unshared),
    )(right)


# --- 1 Find the race ----------------------------------------------------------------------------------------


def places(answer: Callable, notes: list[Note]) -> Any:
    """The places that an answer finds, in the order of the alphabet: any order is right."""
    found = answer(notes)
    if found is ... or not isinstance(found, (list, tuple, set, dict)) or any(x is ... for x in found):
        return found
    once = [place for number, place in enumerate(found) if place not in list(found)[:number]]
    if len(once) < len(found) and sorted(once, key=str) == sorted(races.right(notes)):
        return Verdict(f"repeats: the places are right, but the list has {len(found)} items", "repeats")
    return sorted(found, key=str)


TOTAL = [(0, "read", "total[0]"), (0, "write", "total[0]"), (1, "read", "total[0]"), (1, "write", "total[0]")]
NEXT_DOOR = [
    (i, what, f"x[{place}]") for i in range(3) for what, place in (("read", i), ("read", i + 1), ("write", i))
]
SO_FAR = [
    (i, what, place)
    for i in range(2)
    for what, place in (("read", f"out[{i}]"), ("write", f"out[{i + 1}]"), ("write", "last[0]"))
]
#: Some places are alike but for an axis or a digit, and iterations that meet are not always neighbours.
drawn_notes = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 5, 12, -1]),
        st.sampled_from(["read", "write"]),
        st.sampled_from(["x[1]", "x[0]", "out[1]", "x[1, 0]", "x[10]"]),
    ),
    max_size=9,
)


@lecture.exercise(
    case(TOTAL),
    case(NEXT_DOOR),
    case(SO_FAR),
    draws=drawn_notes.map(case),
    number=150,
    otherwise="Take one place at a time. Which iterations touch it? Is there a write among what they do? It is a "
    "race if they are two or more, and one of them writes.",
    compare=sound,
    use=places,
)
def races(notes):
    found = []
    for place in {place for _, _, place in notes}:
        touching = {i for i, _, where in notes if where == place}
        written = any(what == "write" for _, what, where in notes if where == place)
        if written and len(touching) > 1:
            found.append(place)
    return found


# --- 2 prange, right ----------------------------------------------------------------------------------------


#: Votes, and for how many parties.
elections = st.tuples(
    st.lists(st.sampled_from([0, 1, 3, 4, 2]), max_size=20), st.sampled_from([3, 5, 2, 1])
).map(lambda drawn: (np.array([vote % drawn[1] for vote in drawn[0]], np.int64), drawn[1]))


def many_votes(**more: int) -> Case:
    """So many votes that those who share a few places meet, and all but one for one party."""
    program = "\n".join(["votes = np.r_[1, np.zeros(2499, np.int64)]", *(f"{x} = {more[x]}" for x in more)])
    return given(
        lambda: {"votes": np.r_[1, np.zeros(2499, np.int64)], **more}, "votes", *more, program=program
    )


@kernel_exercise(
    *(lambda votes, parties: (votes, parties), lambda done: done.result),
    *(no_threads, one_iteration, counts_by_numpy),
    cases=[case(np.array([0, 1, 0, 2, 1, 0]), 3), many_votes(parties=3)],
    draws=elections.map(lambda election: case(*election)),
    otherwise="Count the votes of one party by hand. What does your loop do for this party, iteration by "
    "iteration?",
)
def count(votes, parties):
    counts = np.zeros(parties, np.int64)
    for p in prange(parties):
        for i in range(votes.size):
            if votes[i] == p:
                counts[p] += 1
    return counts


# --- 3 Find the fault ---------------------------------------------------------------------------------------


@kernel_exercise(
    *(lambda votes, parties, helpers: (votes, parties, helpers), lambda done: done.result),
    *(no_threads, one_iteration, counts_by_numpy, several_loops),
    cases=[case(np.array([0, 1, 0, 2]), 3, 2), many_votes(parties=3, helpers=7)],
    draws=st.tuples(elections, st.sampled_from([2, 3, 1, 5])).map(lambda x: case(*x[0], x[1])),
    otherwise="Take four votes and two helpers. Which helper looks at which vote, and into whose row does it write?",
)
def tally(votes, parties, helpers):
    rows = np.zeros((helpers, parties), np.int64)
    for h in prange(helpers):
        for i in range(h, votes.size, helpers):
            rows[h, votes[i]] += 1
    return rows


# --- 4 A fast path ------------------------------------------------------------------------------------------


@njit
def to_index(number, shape, index):
    """The index of element `number` of an array of this shape, written into the buffer `index`."""
    rest = np.int64(number)
    for axis in range(len(shape) - 1, -1, -1):
        index[axis] = rest % shape[axis]
        rest //= shape[axis]


@njit
def place_of(index, strides):
    """Where an index is in the storage: each index times its stride."""
    place = 0
    for axis in range(len(strides)):
        place += index[axis] * strides[axis]
    return place


@njit
def is_compact(shape, strides):
    """Whether elements lie in the storage one after the other, in the order in which they are counted."""
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        if strides[axis] != step:
            return False
        step *= shape[axis]
    return True


def looks(done: Recording) -> bool:
    """Whether iterations read the strides."""
    return any(i is not None and root.kind == "strides" for _, i, _, root, _ in done.log)


slow_path = judge(
    "a slow path: the numbers lie in order here, and still each iteration works out its place",
    lambda done, right: looks(done) and not looks(right),
)


def view(a: Any, shape: Any, strides: Any) -> tuple:
    """A kernel's arguments for a view. What is not written in `out` stays nan."""
    return np.array(a, float), np.array(shape), np.array(strides), np.full(math.prod(shape), np.nan)


def strided(shape: Sequence[int], strides: Sequence[int]) -> Case:
    """A view whose storage ends with its last element."""
    end = 2 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    made = {"shape": list(shape), "strides": list(strides)}
    return given(
        lambda: {"a": np.arange(1, end) + 0.1, **made}, "a", *made, program=f"a = np.arange(1, {end}) + 0.1"
    )


VIEWS = [
    *[((3, 2), (1, 3)), ((2, 3), (3, 1)), ((4,), (2,)), ((2, 3), (0, 1)), ((2, 3), (1, 0)), ((3,), (1,))],
    *[((2, 2, 2), (1, 2, 4)), ((2, 3, 4), (12, 4, 1)), ((2, 3, 2), (2, 4, 1)), ((2, 3), (6, 2))],
    *[
        ((2, 3, 2, 3), (1, 2, 6, 12)),
        ((2, 1, 3, 2, 2), (12, 12, 4, 2, 1)),
        ((2, 2, 1, 2, 2), (8, 2, 1, 1, 4)),
    ],
    *[((2, 3), (4, 1)), ((3, 3), (1, 3)), ((1, 3), (3, 1)), ((1,), (1,)), ((1, 1), (5, 7))],
]
views = st.sampled_from(VIEWS).map(lambda parts: strided(*parts))


@kernel_exercise(
    *(view, lambda done: done.arguments[3], slow_path, no_threads, one_iteration),
    cases=[strided((3, 2), (1, 3)), strided((2, 3), (3, 1)), strided((11, 10, 12), (1, 11, 110))],
    draws=views,
    otherwise="Take the view by hand: which number of `a` belongs to element 1? `to_index` gives its index, and "
    "`place_of` where that is.",
    form="negate({}, {}, {}, out)",
)
def negate(a, shape, strides, out):
    if is_compact(shape, strides):
        for i in prange(out.size):
            out[i] = -a[i]
    else:
        for i in prange(out.size):
            index = np.empty(len(shape), np.int64)
            to_index(i, shape, index)
            out[i] = -a[place_of(index, strides)]


# --- 5 A strided sum ----------------------------------------------------------------------------------------


def rows_of(a: Any, shape: Any, strides: Any) -> tuple:
    """A kernel's arguments for the sum of each row of a view."""
    return *view(a, shape, strides)[:3], np.full(math.prod(shape[:-1]), np.nan)


@kernel_exercise(
    *(rows_of, lambda done: done.arguments[3], no_threads, one_iteration, several_loops),
    cases=[strided((2, 3), (3, 1)), strided((3, 2), (1, 3)), strided((40, 30, 2), (1, 40, 1200))],
    draws=views,
    otherwise="Take the second case: which places of `a` does row 0 add up? Where does row 1 begin, and how far is "
    "it from one number to the next?",
    form="sum_rows({}, {}, {}, out)",
)
def sum_rows(a, shape, strides, out):
    for row in prange(out.size):
        index = np.empty(len(shape) - 1, np.int64)
        to_index(row, shape[:-1], index)
        first = place_of(index, strides[:-1])
        total = 0.0
        for k in range(shape[-1]):
            total += a[first + k * strides[-1]]
        out[row] = total


# --- 6 The order of loops, and tiles ------------------------------------------------------------------------


def jumps(recording: Recording, right: Recording) -> Verdict | None:
    """Whether the numbers that are touched one after the other do not lie one after the other."""

    def share(done: Recording, name: str) -> float:
        steps = done.steps(name)
        return sum(step > 1 for step in steps) / max(len(steps), 1)

    for name in ("out", "b"):
        if share(recording, name) > max(0.4, share(right, name)):
            words = f"jumps: most steps through `{name}` go to another row; neighbours are one place apart"
            return Verdict(words, f"jumps in {name}")
    return None


def factors(m: int, n: int, p: int, *size: int) -> Case:
    """Matrices of m × n and n × p numbers."""
    a, b = np.arange(1.0, m * n + 1).reshape(m, n), np.arange(n * p).reshape(n, p) % 7 - 2.0
    return case(a, b, *size)


#: Of two matrices, and of a tile, which may or may not divide them.
SIZES = [(2, 7, 3, 2), (3, 4, 6, 2), (3, 6, 4, 3), (2, 5, 7, 3), (5, 3, 4, 2), (4, 3, 2, 1), (2, 4, 4, 2)]
SIZES += [(2, 3, 2, 5), (1, 4, 3, 2), (3, 3, 3, 3), (2, 1, 4, 2)]


def product(a: np.ndarray, b: np.ndarray, *size: int) -> tuple:
    """A kernel's arguments for a product."""
    return a, b, np.zeros((a.shape[0], b.shape[1])), *size


def naive(a, b, out):
    """out = a @ b, as the formula says it."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


@kernel_exercise(
    *(product, lambda done: done.arguments[2], by_blas, no_threads, several_loops, no_arrays, jumps),
    cases=[factors(2, 3, 4), factors(5, 6, 9), factors(1000, 2, 3)],
    draws=st.sampled_from(SIZES).map(lambda size: factors(*size[:3])),
    otherwise="Keep the innermost line as it is in `naive`, and only change the order of the three loops above it.",
    form="by_rows({}, {}, out)",
)
def by_rows(a, b, out):
    for i in prange(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


def along_rows(done: Recording, right: Recording) -> bool:
    """Whether the innermost loop goes along the rows of `b`; in small tiles, most steps are 1 anyway."""
    steps, t = done.steps("b"), done.arguments[3]
    return 2 < t < done.arguments[1].shape[1] and sum(step == 1 for step in steps) > 0.4 * len(steps)


def other_tiles(recording: Recording, right: Recording) -> Verdict | None:
    """Whether a tile of t × t numbers of `b` is left before all is done that it is needed for."""
    t = recording.arguments[3]
    read = [np.unravel_index(place, root.shape) for *_, root, place in recording.log if root.kind == "b"]
    walk = [(int(k) // t, int(j) // t) for k, j in read]
    begun = 1 + sum(here != there for here, there in pairwise(walk))
    if not walk or begun == len(set(walk)):
        return None
    words = f"other tiles: there are {len(set(walk))} of {t} by {t} numbers, and you begin one {begun} times"
    return Verdict(words, f"{begun} tiles")


@kernel_exercise(
    *(product, lambda done: done.arguments[2]),
    *(by_blas, judge("threads: there is a `prange`", lambda done, _: done.loops), other_tiles),
    *(judge("rows: inside a tile, most steps through `b` go along a row", along_rows), jumps),
    cases=[factors(6, 16, 16, 8), factors(4, 7, 11, 4)],
    draws=st.sampled_from(SIZES).map(lambda size: factors(*size)),
    number=30,
    otherwise="Two loops choose a tile of `b`: they start at 0 and go in steps of `t`. Inside, `j` and `k` stay "
    "in that tile, while `i` goes through all rows.",
    parallel=False,
    form="by_tiles({}, {}, out, {})",
)
def by_tiles(a, b, out, t):
    for j0 in range(0, b.shape[1], t):
        for k0 in range(0, a.shape[1], t):
            for i in range(a.shape[0]):
                for j in range(j0, min(j0 + t, b.shape[1])):
                    for k in range(k0, min(k0 + t, a.shape[1])):
                        out[i, j] += a[i, k] * b[k, j]


# --- 7 A fused kernel ---------------------------------------------------------------------------------------


whole_arrays = judge(
    "whole arrays: your kernel computes with them, one operation after the other", lambda done, _: done.whole
)


def as_list(done: Recording) -> Any:
    """What a kernel returned, also if it is an array."""
    return done.result.tolist() if isinstance(done.result, np.ndarray) else done.result


def points(parts: tuple[np.ndarray, float, float, float]) -> Case:
    """Points beside a line, as drawn."""
    x, step, w, b = parts
    return case(x, 2 * x[::-1] - step, float(w), float(b))


def many_points() -> dict[str, Any]:
    """So many that each thread has a lot of them."""
    x = np.linspace(-1, 1, 3000)
    return {"x": x, "y": 2 * x - 1 + x**2, "w": 2.0, "b": -1.0}


@kernel_exercise(
    *(lambda x, y, w, b: (x, y, float(w), float(b)), as_list),
    *(whole_arrays, no_threads, one_iteration, several_loops, no_arrays),
    cases=[
        case(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.0, 4.0]), 2.0, -1.0),
        case(np.array([-1.0, 0.5, 3.0, 2.0]), np.array([0.0, 2.0, 1.0, -2.0]), 0.5, 3.0),
        given(many_points, *"xywb", program="x = np.linspace(-1, 1, 3000)\ny = 2 * x - 1 + x**2"),
    ],
    draws=st.tuples(
        arrays([(3,), (2,), (4,), (7,), (1,)], ["counted", "signed", "irregular", "zeros between"]),
        *(st.sampled_from(NUMBERS) for _ in range(3)),
    ).map(points),
    otherwise="Take the first case by hand: write down `d` for each of the three numbers, then the three totals.",
)
def loss_and_slopes(x, y, w, b):
    loss = by_w = by_b = 0.0
    for i in prange(x.size):
        d = w * x[i] + b - y[i]
        loss += d * d
        by_w += d * x[i]
        by_b += d
    return loss / x.size, 2 * by_w / x.size, 2 * by_b / x.size
