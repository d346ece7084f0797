"""Lecture 12, parallel kernels: what its exercises ask for, the usual mistakes in them, and its predictions.

A race shows only now and then. So a check does not wait for one: it runs a kernel in plain Python, with
arrays that note which iteration of `prange` reads and writes which place. `record` does that. Only what is
right and free of races is then compiled.
"""

from __future__ import annotations

import inspect
import math
import sys
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import CellType, CodeType, FrameType, FunctionType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numba
import numpy as np
from numba import njit, prange

import viz
from needle.backend_ndarray.blas import one_thread

from .checking import Lecture, Names, case, untried, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict

Note = tuple[int, str, str]  # an iteration, "read" or "write", and a place


# --- Running a kernel in plain Python, and noting what it touches -------------------------------------------


class Recording:
    """What a kernel did: which iteration touched which place, and the order of all its reads and writes."""

    def __init__(self) -> None:
        self.iteration: int | None = None
        self.loops = 0  # how often the kernel came to a prange
        self.whole = False  # whether it computed with whole arrays of its arguments
        self.product = False  # whether it let NumPy multiply matrices
        self.counted = False  # whether it let NumPy count
        self.array_sum = False  # whether an iteration added to a whole array at once
        self.log: list[tuple[int, int | None, str, Root, int]] = []
        self.result: Any = None
        self.arguments: list[Any] = []

    def prange(self, *limits: int) -> Iterator[int]:
        """What stands in for `prange`: it says which iteration runs. An inner one is not parallel."""
        if self.iteration is not None:
            yield from range(*limits)
            return
        self.loops += 1
        try:
            for self.iteration in range(*limits):
                yield self.iteration
        finally:
            self.iteration = None

    def note(self, what: str, root: Root, places: Any) -> None:
        root.find_name()
        for place in np.ravel(places).tolist():
            self.log.append((self.loops, self.iteration, what, root, place))

    def watched(self, array: np.ndarray, name: str = "") -> Watched:
        made = array.view(Watched)
        made.recording, made.root = self, Root(made, name)
        made.places = np.arange(array.size).reshape(array.shape)
        return made

    @property
    def notes(self) -> list[Note]:
        """Reads and writes in iterations, with each place by its name."""
        return [
            (iteration, what, root.place(place) + (f" in loop {loop}" if loop > 1 else ""))
            for loop, iteration, what, root, place in self.log
            if iteration is not None
        ]

    def race(self) -> Verdict | None:
        """Two iterations that touch the same place, of which at least one writes; None if there are none."""
        readers: dict[tuple, dict[int, None]] = {}
        writers: dict[tuple, dict[int, None]] = {}
        for loop, iteration, what, root, place in self.log:
            if iteration is not None:
                touched = readers if what == "read" else writers
                touched.setdefault((loop, root, place), {})[iteration] = None
        for key, writing in writers.items():
            others = {**writing, **readers.get(key, {})}
            if len(others) > 1:
                one, other = list(others)[:2]
                what = "both change" if other in writing else "touch"
                verdict = f"a race: iterations {one} and {other} {what} {key[1].place(key[2])}"
                return Verdict(verdict, f"race in {key[1].kind}")
        return None

    def steps(self, name: str) -> list[int]:
        """How far it is from each place of an argument to the one that is touched next."""
        places = [place for *_, root, place in self.log if root.kind == name]
        return [abs(there - here) for here, there in pairwise(places)]

    def lines_loaded(self, cache: int = 12) -> int:
        """How many memory lines are fetched, if those of the last `cache` are at hand."""
        return lines_loaded(((root.kind, place) for *_, root, place in self.log), cache)


INSIDE = ("__getitem__", "__setitem__", "__array_ufunc__", "__array_function__", "_read")  # of Watched


class Root:
    """An array that a kernel was given, or that it made: its name and its shape."""

    def __init__(self, array: Watched, name: str):
        self.array, self.name, self.shape = array, name, array.shape
        self.kind = name or "an array of its own"

    def find_name(self) -> None:
        """Look up what the kernel calls an array that it made."""
        frame: FrameType | None = None if self.name else sys._getframe(2)
        while not self.name and frame is not None:
            if frame.f_code.co_name not in INSIDE:
                self.name = next((key for key, value in frame.f_locals.items() if value is self.array), "")
            frame = frame.f_back

    def place(self, place: int) -> str:
        index = ", ".join(str(int(i)) for i in np.unravel_index(place, self.shape))
        return f"{self.name or 'an array'}[{index}]"


class Watched(np.ndarray):
    """An array that notes each read and write of its numbers."""

    recording: Recording | None
    root: Root
    places: np.ndarray

    def __array_finalize__(self, other: Any) -> None:
        self.recording = None  # what NumPy makes of it is not watched

    def __getitem__(self, key: Any) -> Any:
        whole_number(key)
        whole = self.view(np.ndarray)  # asking this one leaves no notes
        found = whole[plain(key)]
        if self.recording is None:
            return found
        places = self.places[plain(key)]
        if isinstance(found, np.ndarray) and np.shares_memory(found, whole):
            part = found.view(Watched)
            part.recording, part.root, part.places = self.recording, self.root, places
            return part
        self.recording.note("read", self.root, places)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        whole_number(key)
        if self.recording is not None:
            self.recording.note("write", self.root, self.places[plain(key)])
        self.view(np.ndarray)[plain(key)] = plain(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        _read(inputs, product=ufunc is np.matmul)
        if out is None:
            return getattr(ufunc, method)(*map(plain, inputs), **options)
        for array in out:
            if isinstance(array, Watched) and array.recording is not None:
                array.recording.note("write", array.root, array.places)
                array.recording.array_sum |= ufunc is np.add and array is array.root.array
        getattr(ufunc, method)(*map(plain, inputs), out=tuple(map(plain, out)), **options)
        return out[0]

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        inputs = [*arguments, *options.values()]
        _read(inputs, function in (np.dot, np.einsum, np.tensordot), function is np.bincount)
        return function(*map(plain, arguments), **{key: plain(value) for key, value in options.items()})


def _read(inputs: Sequence[Any], product: bool, counted: bool = False) -> None:
    """Note that these were read from end to end, perhaps to multiply matrices or to count."""
    for array in inputs:
        if isinstance(array, Watched) and array.recording is not None:
            array.recording.note("read", array.root, array.places)
            array.recording.whole |= array.size > 1
            array.recording.product |= product
            array.recording.counted |= counted


def whole_number(key: Any) -> None:
    if isinstance(key, float):
        raise IndexError(f"a place is a whole number, such as 2, and this is {float(key)}")


def plain(value: Any) -> Any:
    """A value with plain arrays in the place of watched ones."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return value.view(np.ndarray) if isinstance(value, Watched) else value


MAKERS = ("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "arange")


class _NumPy:
    """NumPy, but an array that is made outside of an iteration is watched: all iterations share it."""

    def __init__(self, recording: Recording):
        self.recording = recording

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name not in MAKERS or self.recording.iteration is not None:
            return found
        return lambda *arguments, **options: self.recording.watched(found(*arguments, **options))


def _names(code: CodeType) -> set[str]:
    """All names that a function and those inside it look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _watching(kernel: Any, recording: Recording, known: dict[Any, Any] | None = None) -> Any:
    """A kernel as plain Python whose `prange` and NumPy take notes, and so do the functions that it calls."""
    made = {} if known is None else known

    def stand_in(value: Any) -> Any:
        if value is prange:
            return recording.prange
        if value is np:
            return _NumPy(recording)
        if value is numba:
            return SimpleNamespace(**{**vars(numba), "prange": recording.prange})
        beside = isinstance(value, FunctionType) and value.__module__ == function.__module__
        return _watching(value, recording, made) if beside or hasattr(value, "py_func") else value

    function = getattr(kernel, "py_func", kernel)
    if not isinstance(function, FunctionType):
        return function
    if function not in made:
        code, names = function.__code__, dict(function.__globals__)
        closure = tuple(CellType(stand_in(cell.cell_contents)) for cell in function.__closure__ or ())
        made[function] = FunctionType(code, names, function.__name__, function.__defaults__, closure)
        names.update({name: stand_in(names[name]) for name in _names(code) if name in names})
    return made[function]


def record(kernel: Callable, *arguments: Any) -> Recording:
    """Run a kernel in plain Python on copies of its arguments, and note what it touches."""
    recording = Recording()
    names = list(inspect.signature(getattr(kernel, "py_func", kernel)).parameters)
    names += [f"argument {number}" for number in range(len(names), len(arguments))]
    copies = [
        recording.watched(value.copy(), name) if isinstance(value, np.ndarray) else value
        for value, name in zip(arguments, names, strict=False)
    ]
    recording.result = plain(_watching(kernel, recording)(*copies))
    recording.arguments = [plain(value) for value in copies]
    return recording


def notes_of(kernel: Callable, *arguments: Any) -> list[Note]:
    """What each iteration of a kernel reads and writes: ``(0, "read", "total[0]")``, and so on, in order."""
    return record(kernel, *arguments).notes


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


def lines_loaded(touches: Any, cache: int, line: int = 8) -> int:
    """How many memory lines of `line` numbers are fetched, if the last `cache` of them stay at hand."""
    at_hand: OrderedDict[tuple, None] = OrderedDict()
    loaded = 0
    for name, place in touches:
        key = (name, place // line)
        if key in at_hand:
            at_hand.move_to_end(key)
            continue
        loaded += 1
        at_hand[key] = None
        if len(at_hand) > cache:
            at_hand.popitem(last=False)
    return loaded


def order_of_reading(kernel: Callable, n: int, *arguments: Any) -> np.ndarray:
    """When a product of a row and an n × n matrix `b` reads each number of `b`: 0, 1, 2, …"""
    a, b, out = np.ones((1, n)), np.ones((n, n)), np.zeros((1, n))
    log = record(kernel, a, b, out, *arguments).log
    first = dict.fromkeys(place for *_, root, place in log if root.name == "b")
    order = np.empty(n * n)
    order[list(first)] = np.arange(n * n)
    return order.reshape(n, n)


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


def blas(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two matrices by NumPy's BLAS, on one thread."""
    with one_thread:
        return a @ b


def ratios(ways: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """How many times as fast as the first way each one is, measured here and now."""
    shortest = times(ways, rounds)
    first = next(iter(shortest.values()))
    return {name: first / seconds for name, seconds in shortest.items()}


class _Counted(np.ndarray):
    """An array that counts how often NumPy goes through it, or through what was computed from it."""

    count: dict[str, int]

    def __array_finalize__(self, other: Any) -> None:
        self.count = getattr(other, "count", {"reads": 0, "writes": 0})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [x.view(np.ndarray) if isinstance(x, _Counted) else x for x in inputs]
        self.count["reads"] += len({id(x) for x in inputs if np.size(x) > 1})  # d * d reads d once
        result = getattr(ufunc, method)(*arrays, **options)
        if np.size(result) == 1:
            return result
        self.count["writes"] += 1
        made = result.view(_Counted)
        made.count = self.count
        return made


def passes(function: Callable, *arguments: Any) -> dict[str, int]:
    """How often NumPy reads and writes a whole array in a function: from end to end, each time."""
    count = {"reads": 0, "writes": 0}
    counted = []
    for x in arguments:
        own = x.view(_Counted) if isinstance(x, np.ndarray) else x
        if isinstance(own, _Counted):
            own.count = count
        counted.append(own)
    function(*counted)
    return count


# --- How an answer is tried ---------------------------------------------------------------------------------


class Verdict(str):
    """What is wrong with a kernel besides its numbers: a race, say. One `kind` is one mistake."""

    kind: str

    def __new__(cls, words: str, kind: str = "") -> Verdict:
        made = super().__new__(cls, words)
        made.kind = kind or words
        return made

    def __repr__(self) -> str:
        return self.partition(":")[0]


def sound(expected: Any, got: Any, names: Names) -> str:
    """Whether an answer gives the right numbers, and gives them without a race and the like."""
    if isinstance(expected, Verdict) and isinstance(got, Verdict):
        return "" if expected.kind == got.kind else "another verdict"
    if isinstance(got, Verdict):
        return str(got)
    return "another verdict" if isinstance(expected, Verdict) else values(expected, got, names)


_compiled: WeakKeyDictionary[Callable, dict[bool, Callable]] = WeakKeyDictionary()


def compiled(kernel: Callable, parallel: bool = True) -> Callable:
    """A kernel under `njit`. The same kernel is compiled once, for a check and for what comes after it."""
    function = getattr(kernel, "py_func", kernel)
    versions = _compiled.setdefault(function, {})
    if parallel not in versions:
        versions[parallel] = njit(parallel=parallel)(function)
    return versions[parallel]


def _what_numba_says(error: BaseException) -> str:
    """The line of a message that says what is the matter."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and not line.startswith(("Failed in", "During:"))]
    telling = [line for line in lines if line.startswith("NumbaTypeError: ")] or telling
    return telling[0].removeprefix("NumbaTypeError: ") if telling else type(error).__name__


WORDS_OF_NUMBA = (  # each tells one mistake from the others
    "Overwrite of parallel loop index",
    "Unsupported array index type float64",
    "Unknown reduce instruction node",
)
Judge = Callable[[Recording, Recording], Verdict | None]


_right: dict[tuple, Recording] = {}


def recorded_right(name: str, prepare: Callable[..., tuple], *inputs: Any) -> Recording:
    """The recording of the right kernel for these inputs: they are the same again and again."""
    key = (name, *(x.tobytes() if isinstance(x, np.ndarray) else repr(x) for x in inputs))
    if key not in _right:
        _right[key] = record(lecture.exercises[name].right, *prepare(*inputs))
    return _right[key]


def kernel_use(
    name: str,
    prepare: Callable[..., tuple],
    pick: Callable[[Recording], Any],
    *judges: Judge,
    parallel: bool = True,
) -> Callable[..., Any]:
    """How a kernel is tried: in plain Python with all its reads and writes noted; if right, compiled as well.

    `prepare` makes its arguments of the case's inputs, and `pick` finds its result. A judge looks at the
    recording, and at that of the right kernel.
    """

    def use(answer: Callable, *inputs: Any) -> Any:
        proper = recorded_right(name, prepare, *inputs)
        if answer is lecture.exercises[name].right:
            return pick(proper)
        recording = record(answer, *prepare(*inputs))
        if untried(recording.result):
            return ...
        numbers = pick(recording)
        if verdict := recording.race():
            if recording.array_sum:
                return Verdict("an array per iteration: all of it is added, place by place", "array sum")
            return verdict
        if values(pick(proper), numbers, {}):
            return numbers
        if any(values(x, y, {}) for x, y in zip(proper.arguments, recording.arguments, strict=True)):
            return Verdict("other inputs: the result is right, but your kernel changes what it was given")
        for judge in judges:
            if verdict := judge(recording, proper):
                return verdict
        again = Recording()
        again.arguments = list(prepare(*inputs))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                again.result = compiled(answer, parallel)(*again.arguments)
        except Exception as error:
            said = _what_numba_says(error)
            known = next((words for words in WORDS_OF_NUMBA if words in said), "")
            return Verdict(f"no kernel: Numba cannot compile it, {said!r}", f"no kernel {known}")
        if difference := values(numbers, pick(again), {}):
            words = f"two results: plain Python gets it right, the compiled kernel does not; {difference}"
            return Verdict(words, "two results")
        return numbers

    return use


def no_threads(recording: Recording, right: Recording) -> Verdict | None:
    """Whether no iteration was divided among threads."""
    if not recording.loops:
        return Verdict("one thread: there is no `prange`, so it does everything")
    if len({iteration for _, iteration, *_ in recording.log} - {None}) < 2:
        return Verdict("one iteration: it does everything, and the other threads wait", "idle threads")
    return None


def several_loops(recording: Recording, right: Recording) -> Verdict | None:
    """Whether the threads were called more often than the right kernel calls them."""
    if recording.loops <= right.loops:
        return None
    words = f"{recording.loops} parallel loops: that is how often your kernel comes to a `prange`"
    return Verdict(words, "several loops")


# --- 1 Find the race ----------------------------------------------------------------------------------------


def _places(answer: Callable, notes: list[Note]) -> Any:
    """The places that an answer finds, in the order of the alphabet: any order is right."""
    found = answer(notes)
    if found is ... or not isinstance(found, (list, tuple, set, dict)) or any(x is ... for x in found):
        return found
    once = [place for number, place in enumerate(found) if place not in list(found)[:number]]
    if len(once) < len(found) and sorted(once, key=str) == sorted(races.right(notes)):
        return Verdict(f"repeats: the places are right, but the list has {len(found)} items", "repeats")
    return sorted(found, key=str)


MENDED = [(0, "write", "out[0]"), (0, "write", "out[0]"), (1, "read", "x[0]"), (1, "write", "out[1]")]
READERS = [(i, "read", "x[0]") for i in range(3)] + [(i, "write", f"out[{i}]") for i in range(3)]
TOTAL = [(0, "read", "total[0]"), (0, "write", "total[0]"), (1, "read", "total[0]"), (1, "write", "total[0]")]
NEXT_DOOR = [
    *[(0, "read", "x[0]"), (0, "read", "x[1]"), (0, "write", "x[0]")],
    *[(1, "read", "x[1]"), (1, "read", "x[2]"), (1, "write", "x[1]")],
    *[(2, "read", "x[2]"), (2, "read", "x[3]"), (2, "write", "x[2]")],
]


SO_FAR = [
    *[(0, "read", "out[0]"), (0, "write", "out[1]"), (0, "write", "last[0]")],
    *[(1, "read", "out[1]"), (1, "write", "out[2]"), (1, "write", "last[0]")],
]


@lecture.exercise(
    case(TOTAL),
    case(NEXT_DOOR),
    case(SO_FAR),
    case(READERS),
    case(MENDED),
    otherwise=(
        "Take one place at a time. Which iterations touch it? Is there a write among what they do? It is a "
        "race if they are two or more, and one of them writes."
    ),
    compare=sound,
    use=_places,
)
def races(notes):
    """The places that several iterations touch, of which at least one writes."""
    found = []
    for place in dict.fromkeys(place for _, _, place in notes):
        touching = {i for i, _, where in notes if where == place}
        written = any(what == "write" for _, what, where in notes if where == place)
        if written and len(touching) > 1:
            found.append(place)
    return found


def _grouped(notes, is_race):
    found = []
    for place in dict.fromkeys(place for _, _, place in notes):
        here = [(i, what) for i, what, where in notes if where == place]
        if is_race(here):
            found.append(place)
    return found


@races.mistake(
    "Several iterations may *read* the same place: it stays as it is, whoever comes first. It takes a write "
    "to make a race."
)
def without_a_write(notes):
    return _grouped(notes, lambda here: len({i for i, _ in here}) > 1)


@races.mistake(
    "You look for two that write. One is enough: if iteration 0 reads what iteration 1 writes, it matters "
    "who comes first."
)
def two_writers(notes):
    return _grouped(notes, lambda here: len({i for i, what in here if what == "write"}) > 1)


@races.mistake(
    "You compare a note with the next one only. Between two iterations that meet at a place there may be "
    "other notes."
)
def next_notes_only(notes):
    met = [p for (i, a, p), (j, b, q) in pairwise(notes) if i != j and p == q and "write" in (a, b)]
    return list(dict.fromkeys(met))


@races.mistake(
    "You look for a read that comes before a write. Iterations may run in any order, so a write before a "
    "read is as bad, and so are two writes."
)
def read_before_write(notes):
    met = [
        p
        for n, (i, a, p) in enumerate(notes)
        for j, b, q in notes[n:]
        if i != j and p == q and (a, b) == ("read", "write")
    ]
    return list(dict.fromkeys(met))


@races.mistake(
    "Within one iteration everything happens in order. A place is in danger only if *another* iteration "
    "touches it, too: count iterations, not notes."
)
def notes_counted(notes):
    return _grouped(notes, lambda here: len(here) > 1 and any(what == "write" for _, what in here))


@races.mistake("These are all places that are written. One owner may write as often as it likes.")
def all_written(notes):
    return _grouped(notes, lambda here: any(what == "write" for _, what in here))


@races.mistake("Each place should be in your list once, however often it is touched.")
def with_repeats(notes):
    found = races.right(notes)
    return [place for _, _, place in notes if place in found]


@races.mistake("Say *where* the race is: the places, as text like `'total[0]'`. You give the iterations.")
def the_iterations(notes):
    found = races.right(notes)
    return sorted({i for i, _, place in notes if place in found})


@races.mistake("Two iterations that both write are a race, too, even if nobody reads.")
def a_reader_and_a_writer(notes):
    return _grouped(
        notes, lambda here: any(i != j and {a, b} == {"read", "write"} for i, a in here for j, b in here)
    )


@races.mistake("One race is in your list, and there are more. Does your `return` stand inside the loop?")
def the_first_only(notes):
    return races.right(notes)[:1]


@races.mistake(
    "Give each place as it stands in the notes, with its index: `'total[0]'`. Iterations may share an array, "
    "as long as each has places of its own in it."
)
def the_arrays(notes):
    return list(dict.fromkeys(place.partition("[")[0] for place in races.right(notes)))


@races.mistake("That is a text. Return a list, also for a single place: `['total[0]']`.")
def a_text(notes):
    return ", ".join(races.right(notes))


@races.mistake("Return a list of the places, and not only whether there are any.")
def yes_or_no(notes):
    return bool(races.right(notes))


# --- 2 prange, right ----------------------------------------------------------------------------------------


def by_bincount(recording: Recording, right: Recording) -> Verdict | None:
    """Whether NumPy counted."""
    return Verdict("a ready count: NumPy counts in your kernel") if recording.counted else None


@lecture.exercise(
    case(np.array([0, 1, 0, 2, 1, 0]), 3),
    case(np.array([3, 3, 0, 1, 3, 0, 3, 1, 4]), 5),
    case(np.array([3, 1]), 5),
    otherwise=(
        "Count the votes of one party by hand. What does your loop do for this party, iteration by iteration?"
    ),
    compare=sound,
    use=kernel_use(
        *("count", lambda votes, parties: (votes, parties), lambda done: done.result),
        *(no_threads, by_bincount),
    ),
)
def count(votes, parties):
    """How many votes each party has."""
    counts = np.zeros(parties, np.int64)
    for p in prange(parties):
        for i in range(votes.size):
            if votes[i] == p:
                counts[p] += 1
    return counts


@count.mistake(
    "Two votes for the same party are two iterations that change the same number. Turn it around: let an "
    "iteration own a *party*, and look at all votes."
)
def an_iteration_per_vote(votes, parties):
    counts = np.zeros(parties, np.int64)
    for i in prange(votes.size):
        counts[votes[i]] += 1
    return counts


@count.mistake(
    "Right, but on one thread. Which of your loops may be a `prange`, so that no two iterations meet?"
)
def on_one_thread(votes, parties):
    counts = np.zeros(parties, np.int64)
    for vote in votes:
        counts[vote] += 1
    return counts


@count.mistake(
    "There is a `prange`, but nothing to share: the counting is not divided among its iterations. Give each "
    "iteration a party of its own."
)
def in_one_iteration(votes, parties):
    counts = np.zeros(parties, np.int64)
    for _ in prange(1):
        for vote in votes:
            counts[vote] += 1
    return counts


@count.mistake(
    "Your total goes on from party to party. Set it to 0 for each party, or count in `counts[p]` right away."
)
def one_total_for_all(votes, parties):
    counts, total = np.zeros(parties, np.int64), 0
    for p in prange(parties):
        for vote in votes:
            total += vote == p
        counts[p] = total
    return counts


@count.mistake("Each vote counts 1, whichever party it is for. You add up the parties' numbers.")
def adds_the_party(votes, parties):
    counts = np.zeros(parties, np.int64)
    for p in prange(parties):
        for i in range(votes.size):
            if votes[i] == p:
                counts[p] += votes[i]
    return counts


@count.mistake("Every party gets at most one vote: `=` replaces what was there, and `+=` adds to it.")
def replaces(votes, parties):
    counts = np.zeros(parties, np.int64)
    for p in prange(parties):
        for i in range(votes.size):
            if votes[i] == p:
                counts[p] = 1
    return counts


@count.mistake("Every party gets every vote. Count a vote only if it is for this party: `votes[i] == p`.")
def all_votes(votes, parties):
    counts = np.zeros(parties, np.int64)
    for p in prange(parties):
        for _ in range(votes.size):
            counts[p] += 1
    return counts


@count.mistake("`bincount` counts all votes, and here it does so in every iteration. Count them yourself.")
def counted_by_numpy(votes, parties):
    counts = np.zeros(parties, np.int64)
    for p in prange(parties):
        counts[p] = np.bincount(votes, minlength=parties)[p]
    return counts


@count.mistake(
    "Numba does know `counts += …` with whole arrays as a reduction. But then each vote makes an array, and "
    "adds to every party. Let an iteration own a *party*, and look at all votes."
)
def an_array_per_vote(votes, parties):
    counts = np.zeros(parties, np.int64)
    for i in prange(votes.size):
        one = np.zeros(parties, np.int64)
        one[votes[i]] = 1
        counts += one
    return counts


@count.mistake(
    "Your `prange` goes through as many parties as there are votes. It should be `prange(parties)`."
)
def as_many_parties_as_votes(votes, parties):
    counts = np.zeros(parties, np.int64)
    for p in prange(min(votes.size, parties)):
        for i in range(votes.size):
            if votes[i] == p:
                counts[p] += 1
    return counts


@count.mistake("Only party 0 is counted. Does your `return` stand inside the loop?")
def returns_too_early(votes, parties):
    counts = np.zeros(parties, np.int64)
    for p in prange(parties):
        counts[p] = (votes == p).sum()
        return counts


@count.mistake("The last party has no votes. `prange(parties)` already ends before `parties`.")
def without_the_last(votes, parties):
    counts = np.zeros(parties, np.int64)
    for p in prange(parties - 1):
        for i in range(votes.size):
            if votes[i] == p:
                counts[p] += 1
    return counts


# --- 3 A fast path ------------------------------------------------------------------------------------------


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


def slow_path(recording: Recording, right: Recording) -> Verdict | None:
    """Whether iterations work out places where elements lie one after the other."""

    def looks(done: Recording) -> bool:
        return any(i is not None and root.kind == "strides" for _, i, _, root, _ in done.log)

    if looks(recording) and not looks(right):
        return Verdict(
            "a slow path: the numbers lie in order here, and still each iteration works out its place"
        )
    return None


def _view(a: Any, shape: Any, strides: Any) -> tuple:
    return np.array(a, float), np.array(shape), np.array(strides), np.zeros(math.prod(shape))


@lecture.exercise(
    case([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2], [1, 3]),
    case([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3], [3, 1]),
    case([1.0, 2.0, 3.0], [2, 3], [0, 1]),
    case([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 2, 2], [1, 2, 4]),
    otherwise=(
        "Take the view by hand: which number of `a` belongs to element 1? `to_index` gives its index, and "
        "`place_of` where that is."
    ),
    compare=sound,
    use=kernel_use("negate", _view, lambda done: done.arguments[3], slow_path, no_threads),
    form="negate({}, {}, {}, out)",
)
def negate(a, shape, strides, out):
    """out = -a, for a view of `a` with these strides."""
    if is_compact(shape, strides):
        for i in prange(out.size):
            out[i] = -a[i]
    else:
        for i in prange(out.size):
            index = np.empty(len(shape), np.int64)
            to_index(i, shape, index)
            out[i] = -a[place_of(index, strides)]


@negate.mistake(
    "All iterations write into one and the same buffer. Make it *inside* the loop: then each iteration has "
    "its own."
)
def one_buffer(a, shape, strides, out):
    index = np.empty(len(shape), np.int64)
    if is_compact(shape, strides):
        for i in prange(out.size):
            out[i] = -a[i]
    else:
        for i in prange(out.size):
            to_index(i, shape, index)
            out[i] = -a[place_of(index, strides)]


@negate.mistake("You always take the fast path. It is right only if `is_compact(shape, strides)`.")
def always_fast(a, shape, strides, out):
    for i in prange(out.size):
        out[i] = -a[i]


@negate.mistake(
    "The numbers are right, but there is no fast path yet. Ask `is_compact(shape, strides)` once, before "
    "the loop."
)
def always_slow(a, shape, strides, out):
    for i in prange(out.size):
        index = np.empty(len(shape), np.int64)
        to_index(i, shape, index)
        out[i] = -a[place_of(index, strides)]


@negate.mistake("Your two paths are the wrong way round: the fast one is for the compact view.")
def wrong_way_round(a, shape, strides, out):
    if not is_compact(shape, strides):
        for i in prange(out.size):
            out[i] = -a[i]
    else:
        for i in prange(out.size):
            index = np.empty(len(shape), np.int64)
            to_index(i, shape, index)
            out[i] = -a[place_of(index, strides)]


@negate.mistake(
    "The strides belong to `a`, not to `out`. Element `i` goes to `out[i]`, and comes from the place that "
    "its index has in `a`."
)
def strides_of_the_result(a, shape, strides, out):
    if is_compact(shape, strides):
        for i in prange(out.size):
            out[i] = -a[i]
    else:
        for i in range(out.size):
            index = np.empty(len(shape), np.int64)
            to_index(i, shape, index)
            out[place_of(index, strides)] = -a[i % a.size]


@negate.mistake(
    "`out` is still full of zeros. `out = …` only gives that name to another array: write into this one, "
    "`out[i] = …`."
)
def nothing_written(a, shape, strides, out):
    return None


@negate.mistake(
    "The buffer holds floats, so the place is one, too. Ask for whole numbers: "
    "`np.empty(len(shape), np.int64)`."
)
def buffer_of_floats(a, shape, strides, out):
    for i in prange(out.size):
        index = np.empty(len(shape))
        to_index(i, shape, index)
        out[i] = -a[place_of(index, strides)]


NO_RESULT = (
    "`to_index` gives nothing back: it writes into a buffer, its third input. Make one inside the loop, then "
    "call `to_index(i, shape, index)` on a line of its own."
)


@negate.mistake(NO_RESULT)
def nothing_given_back(a, shape, strides, out):
    for i in prange(out.size):
        index = np.empty(len(shape), np.int64)
        index = to_index(i, shape, index)
        out[i] = -a[place_of(index, strides)]


@negate.mistake(NO_RESULT)
def without_a_buffer(a, shape, strides, out):
    for i in prange(out.size):
        index = to_index(i, shape)  # type: ignore[call-arg]  # that is the mistake
        out[i] = -a[place_of(index, strides)]


@negate.mistake("An array has as many axes as its shape has numbers. The buffer needs `len(shape)` places.")
def buffer_of_two(a, shape, strides, out):
    if is_compact(shape, strides):
        for i in prange(out.size):
            out[i] = -a[i]
    else:
        for i in prange(out.size):
            index = np.empty(2, np.int64)
            to_index(i, shape, index)
            out[i] = -a[place_of(index, strides)]


@negate.mistake(
    "This is right for two axes. A view may have three: `to_index` and `place_of` know any number."
)
def two_axes_only(a, shape, strides, out):
    if is_compact(shape, strides):
        for i in prange(out.size):
            out[i] = -a[i]
    else:
        for row in prange(shape[0]):
            for column in range(shape[1]):
                out[row * shape[1] + column] = -a[row * strides[0] + column * strides[1]]


@negate.mistake(
    "The view has `out.size` elements. `a` may have fewer, when a stride is 0: let your loops run up to "
    "`out.size`."
)
def as_long_as_the_storage(a, shape, strides, out):
    if is_compact(shape, strides):
        for i in prange(a.size):
            out[i] = -a[i]
    else:
        for i in prange(a.size):
            index = np.empty(len(shape), np.int64)
            to_index(i, shape, index)
            out[i] = -a[place_of(index, strides)]


@negate.mistake(
    "Shape and strides have changed places: `to_index` needs the shape, and `place_of` the strides."
)
def shape_for_strides(a, shape, strides, out):
    for i in prange(out.size):
        index = np.empty(len(shape), np.int64)
        to_index(i, strides, index)
        out[i] = -a[place_of(index, shape)]


@negate.mistake("Your numbers have the right places, but they should be negative: `-a[…]`.")
def copies(a, shape, strides, out):
    for i in prange(out.size):
        index = np.empty(len(shape), np.int64)
        if is_compact(shape, strides):
            out[i] = a[i]
        else:
            to_index(i, shape, index)
            out[i] = a[place_of(index, strides)]


@negate.mistake(
    "`i` belongs to the loop: it says which part of the work this is. You divide it away, and then it no "
    "longer says where to write. Work on a number of your own."
)
def overwrites_the_loop_index(a, shape, strides, out):
    compact = is_compact(shape, strides)
    for i in prange(out.size):
        if compact:
            out[i] = -a[i]
        else:
            place = 0
            for axis in range(len(shape) - 1, -1, -1):
                place += i % shape[axis] * strides[axis]
                i //= shape[axis]
            out[i] = -a[place]


STILL_THE_INDEX = (
    "`rest = i` is still the loop's index, only by another name. It must not be overwritten, and it is "
    "unsigned: with a stride, Numba makes a float of it. Write `rest = np.int64(i)`, or call `to_index`."
)


@negate.mistake(STILL_THE_INDEX)
def the_index_by_another_name(a, shape, strides, out):
    if is_compact(shape, strides):
        for i in prange(out.size):
            out[i] = -a[i]
    else:
        for i in prange(out.size):
            place, rest = 0, i
            for axis in range(len(shape) - 1, -1, -1):
                place += rest % shape[axis] * strides[axis]
                rest //= shape[axis]
            out[i] = -a[place]


@negate.mistake(STILL_THE_INDEX)
def unsigned_like_the_index(a, shape, strides, out):
    compact = is_compact(shape, strides)
    for i in prange(out.size):
        if compact:
            out[i] = -a[i]
        else:
            place = 0
            rest = i
            for axis in range(len(shape) - 1, -1, -1):
                place += rest % shape[axis] * strides[axis]
                rest //= shape[axis]
            out[i] = -a[place]


@negate.mistake("Right, but on one thread: write `prange` in the place of `range`, in both paths.")
def on_one_thread_only(a, shape, strides, out):
    if is_compact(shape, strides):
        for i in range(out.size):
            out[i] = -a[i]
    else:
        for i in range(out.size):
            index = np.empty(len(shape), np.int64)
            to_index(i, shape, index)
            out[i] = -a[place_of(index, strides)]


# --- 4 The order of loops, and tiles ------------------------------------------------------------------------


def jumps(recording: Recording, right: Recording) -> Verdict | None:
    """Whether the numbers that are touched one after the other do not lie one after the other."""
    for name in ("out", "b"):
        steps = recording.steps(name)
        if steps and sum(step > 1 for step in steps) > 0.4 * len(steps):
            words = f"jumps: most steps through `{name}` go to another row; neighbours are one place apart"
            return Verdict(words, f"jumps in {name}")
    return None


def by_blas(recording: Recording, right: Recording) -> Verdict | None:
    """Whether NumPy multiplied matrices."""
    return Verdict("a ready product: NumPy multiplies matrices in your kernel") if recording.product else None


LOOPS = "NumPy calls BLAS for `@`, and this lecture ends with BLAS. Here, write the loops yourself."


def _matrices(m: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(1.0, m * n + 1).reshape(m, n), np.arange(n * p).reshape(n, p) % 7 - 2.0


def _product(a: np.ndarray, b: np.ndarray, *size: int) -> tuple:
    return a, b, np.zeros((a.shape[0], b.shape[1])), *size


def naive(a, b, out):
    """out = a @ b, as the formula says it."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


@lecture.exercise(
    case(*_matrices(2, 3, 4)),
    case(*_matrices(5, 6, 9)),
    otherwise=(
        "Keep the innermost line as it is in `naive`, and only change the order of the three loops above it."
    ),
    compare=sound,
    use=kernel_use(
        *("by_rows", _product, lambda done: done.arguments[2]),
        *(by_blas, no_threads, several_loops, jumps),
    ),
    form="by_rows({}, {}, out)",
)
def by_rows(a, b, out):
    """out = a @ b: each row of `out` is a sum of rows of `b`."""
    for i in prange(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


@by_rows.mistake(
    "This is still the order of `naive`: the innermost loop goes down a column of `b`. Which index must run "
    "fastest, so that `b[k, j]` goes along a row?"
)
def still_naive(a, b, out):
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


@by_rows.mistake(
    "Now `i` runs fastest, and it goes down the columns of `out` and `a`. Let the last index of both `b` and "
    "`out` run fastest."
)
def columns_of_out(a, b, out):
    for j in prange(b.shape[1]):
        for k in range(a.shape[1]):
            for i in range(a.shape[0]):
                out[i, j] += a[i, k] * b[k, j]


@by_rows.mistake(
    "Every `k` adds to all of `out`, so two threads meet there. Let the threads share the rows of `out`: "
    "`i` is the one for `prange`."
)
def threads_share_k(a, b, out):
    for k in prange(a.shape[1]):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


@by_rows.mistake("The order is right. Now let threads share the rows: `prange` in the outermost loop.")
def rows_on_one_thread(a, b, out):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


@by_rows.mistake(
    "The threads are woken again and again, each time for a little work. Put the `prange` outermost, where "
    "it is met once."
)
def prange_inside(a, b, out):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in prange(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


@by_rows.mistake("Only the last `k` is left: `=` replaces, where each `k` should add its part with `+=`.")
def only_the_last(a, b, out):
    for i in prange(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] = a[i, k] * b[k, j]


@by_rows.mistake("All iterations write into one and the same row. Make it *inside* the loop over `i`.")
def one_row_for_all(a, b, out):
    row = np.zeros(b.shape[1])
    for i in prange(a.shape[0]):
        row[:] = 0
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                row[j] += a[i, k] * b[k, j]
        out[i] = row


@by_rows.mistake(
    "`out` is still full of zeros. Nothing is returned here: add to its places, `out[i, j] += …`."
)
def no_row_written(a, b, out):
    return None


@by_rows.mistake(LOOPS)
def ready_product(a, b, out):
    out[:] = a @ b


def too_many_lines(recording: Recording, right: Recording) -> Verdict | None:
    """Whether a tile does not stay at hand."""
    needed, loaded = right.lines_loaded(), recording.lines_loaded()
    if loaded <= 1.5 * needed:
        return None
    words = f"{loaded} memory lines: your walk fetches so many, with 12 at hand; by tiles it is {needed}"
    walk = jumps(recording, right)
    if walk and walk.kind == "jumps in out":
        return Verdict(words, "rows innermost")
    return Verdict(words, "no tiles" if loaded > 8 * needed else "tiles that come back")


def threads_there(recording: Recording, right: Recording) -> Verdict | None:
    """Whether there is a parallel loop."""
    return Verdict("threads: there is a `prange`") if recording.loops else None


def rows_in_tiles(recording: Recording, right: Recording) -> Verdict | None:
    """Whether the innermost loop goes along the rows of `b`."""
    steps = recording.steps("b")
    if steps and sum(step == 1 for step in steps) > 0.4 * len(steps):
        return Verdict("rows: inside a tile, most steps through `b` go along a row")
    return None


def other_tiles(recording: Recording, right: Recording) -> Verdict | None:
    """Whether a tile of t × t numbers of `b` is left before all is done that it is needed for."""
    t = recording.arguments[3]
    read = [np.unravel_index(place, root.shape) for *_, root, place in recording.log if root.kind == "b"]
    walk = [(int(k) // t, int(j) // t) for k, j in read]
    changes = 1 + sum(here != there for here, there in pairwise(walk))
    if not walk or changes == len(set(walk)):
        return None
    return Verdict(
        f"other tiles: there are {len(set(walk))} of {t} by {t} numbers, and you begin {changes}",
        "other tiles",
    )


@lecture.exercise(
    case(*_matrices(6, 16, 16), 8),
    case(*_matrices(4, 7, 11), 4),
    otherwise=(
        "Two loops choose a tile of `b`: they start at 0 and go in steps of `t`. Inside, `j` and `k` stay "
        "in that tile, while `i` goes through all rows."
    ),
    compare=sound,
    use=kernel_use(
        *("by_tiles", _product, lambda done: done.arguments[2]),
        *(by_blas, threads_there, too_many_lines, rows_in_tiles, other_tiles),
        parallel=False,
    ),
    form="by_tiles({}, {}, out, {})",
)
def by_tiles(a, b, out, t):
    """out = a @ b, with all that one tile of `b` is needed for before the next."""
    for j0 in range(0, b.shape[1], t):
        for k0 in range(0, a.shape[1], t):
            for i in range(a.shape[0]):
                for j in range(j0, min(j0 + t, b.shape[1])):
                    for k in range(k0, min(k0 + t, a.shape[1])):
                        out[i, j] += a[i, k] * b[k, j]


@by_tiles.mistake(LOOPS)
def ready_tiles(a, b, out, t):
    out[:] = np.dot(a, b)


def _tiled(a, b, out, tiles, rows_first=False):
    """Products whose tiles are chosen by `tiles(n, p)`; with the rows outermost, if so wanted."""
    chosen = tiles(a.shape[1], b.shape[1])
    rows = range(a.shape[0])
    walk = (
        ((tile, i) for i in rows for tile in chosen)
        if rows_first
        else ((tile, i) for tile in chosen for i in rows)
    )
    for (js, ks), i in walk:
        for j in js:
            for k in ks:
                out[i, j] += a[i, k] * b[k, j]


@by_tiles.mistake(
    "Nearly every step fetches a new line: by the time the next row of `out` needs a line again, it is gone. "
    "Choose a tile first, with `j0` *and* `k0`, and go through the rows inside."
)
def without_tiles(a, b, out, t):
    _tiled(a, b, out, lambda n, p: [(range(p), range(n))])


@by_tiles.mistake(
    "You choose tiles, but anew for each row: `i` is outermost, so no tile is still at hand when the next "
    "row needs it. Put both loops over tiles outside of `i`."
)
def rows_outermost(a, b, out, t):
    def tiles(n, p):
        return [
            (range(j, min(j + t, p)), range(k, min(k + t, n))) for j in range(0, p, t) for k in range(0, n, t)
        ]

    _tiled(a, b, out, tiles, rows_first=True)


@by_tiles.mistake(
    "Inside a tile, your `i` runs fastest: it goes down the columns of `a` and `out`, and each step is "
    "another line. Put `i` around `j` and `k`, just inside the two loops that choose the tile."
)
def rows_innermost(a, b, out, t):
    for j0 in range(0, b.shape[1], t):
        for k0 in range(0, a.shape[1], t):
            for j in range(j0, min(j0 + t, b.shape[1])):
                for k in range(k0, min(k0 + t, a.shape[1])):
                    for i in range(a.shape[0]):
                        out[i, j] += a[i, k] * b[k, j]


NO_THREADS = (
    "No threads here: then you see what tiles do on their own. Write `range` in the place of `prange`."
)


@by_tiles.mistake(NO_THREADS)
def threads_share_tiles(a, b, out, t):
    for j0 in prange(0, b.shape[1], t):
        naive(a, b[:, j0 : j0 + t], out[:, j0 : j0 + t])


@by_tiles.mistake(NO_THREADS)
def threads_meet_in_out(a, b, out, t):
    for k0 in prange(0, a.shape[1], t):
        naive(a[:, k0 : k0 + t], b[k0 : k0 + t], out)


@by_tiles.mistake(
    "Inside a tile you go by rows. That is fast, but then you will not see what the tiles do on their own. "
    "Keep `k` innermost, as in `naive`."
)
def rows_inside_tiles(a, b, out, t):
    for j0 in range(0, b.shape[1], t):
        for k0 in range(0, a.shape[1], t):
            for i in range(a.shape[0]):
                for k in range(k0, min(k0 + t, a.shape[1])):
                    for j in range(j0, min(j0 + t, b.shape[1])):
                        out[i, j] += a[i, k] * b[k, j]


@by_tiles.mistake(
    "Your tiles have another size than `t` by `t`. Leave `t` as it comes, and go in steps of it."
)
def always_eight(a, b, out, t):
    for j0 in range(0, b.shape[1], 8):
        for k0 in range(0, a.shape[1], 8):
            for i in range(a.shape[0]):
                for j in range(j0, min(j0 + 8, b.shape[1])):
                    for k in range(k0, min(k0 + 8, a.shape[1])):
                        out[i, j] += a[i, k] * b[k, j]


@by_tiles.mistake(
    "`out` is still full of zeros. Nothing is returned here: add to its places, `out[i, j] += …`."
)
def no_tile_written(a, b, out, t):
    return None


@by_tiles.mistake(
    "The last tile may be narrower: 11 columns are 4 + 4 + 3. End at `min(j0 + t, …)`, and the same for `k`."
)
def past_the_edge(a, b, out, t):
    for j0 in range(0, b.shape[1], t):
        for k0 in range(0, a.shape[1], t):
            for i in range(a.shape[0]):
                for j in range(j0, j0 + t):
                    for k in range(k0, k0 + t):
                        out[i, j] += a[i, k] * b[k, j]


@by_tiles.mistake(
    "Only the tiles on the diagonal are there. Each tile of columns meets each tile of rows: two loops."
)
def diagonal_only(a, b, out, t):
    _tiled(
        a, b, out, lambda n, p: [(range(s, min(s + t, p)), range(s, min(s + t, n))) for s in range(0, p, t)]
    )


@by_tiles.mistake(
    "Your tiles overlap, so products are added several times. The loops over tiles go in steps of `t`."
)
def overlapping(a, b, out, t):
    _tiled(
        *(a, b, out),
        lambda n, p: [(range(j, min(j + t, p)), range(k, min(k + t, n))) for j in range(p) for k in range(n)],
    )


@by_tiles.mistake(
    "The narrow tiles at the end are missing: `7 // 4` is 1, and 3 are left over. Let `range(0, n, t)` "
    "choose where tiles begin, and end at `min(j0 + t, …)`."
)
def whole_tiles_only(a, b, out, t):
    _tiled(
        *(a, b, out),
        lambda n, p: [
            (range(j, j + t), range(k, k + t)) for j in range(0, p - t + 1, t) for k in range(0, n - t + 1, t)
        ],
    )


@by_tiles.mistake(
    "A tile gives only a part of each sum. With `=`, the next tile replaces what the last one gave: "
    "write `+=`."
)
def tiles_replaced(a, b, out, t):
    for k0 in range(0, a.shape[1], t):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                total = 0.0
                for k in range(k0, min(k0 + t, a.shape[1])):
                    total += a[i, k] * b[k, j]
                out[i, j] = total


@by_tiles.mistake("Tiles along `k` must add up: with `=`, only the last product is left. Write `+=`.")
def replaced(a, b, out, t):
    for j in range(b.shape[1]):
        for k in range(a.shape[1]):
            for i in range(a.shape[0]):
                out[i, j] = a[i, k] * b[k, j]


@by_tiles.mistake(
    "Only the first tile is there: `range(j0, t)` ends at `t`, and the tile ends at `j0 + t`. The same "
    "holds for `k`."
)
def ends_at_t(a, b, out, t):
    _tiled(
        *(a, b, out),
        lambda n, p: [
            (range(j, min(t, p)), range(k, min(t, n))) for j in range(0, p, t) for k in range(0, n, t)
        ],
    )


# --- 5 A fused kernel ---------------------------------------------------------------------------------------


def several_passes(recording: Recording, right: Recording) -> Verdict | None:
    """Whether there are several loops where one will do."""
    if recording.loops <= right.loops:
        return None
    return Verdict(f"{recording.loops} loops: each one goes through all numbers", "several passes")


def whole_arrays(recording: Recording, right: Recording) -> Verdict | None:
    """Whether whole arrays were computed with."""
    words = "whole arrays: your kernel computes with them, one operation after the other"
    return Verdict(words) if recording.whole else None


def arrays_made(recording: Recording, right: Recording) -> Verdict | None:
    """Whether the kernel has an array of its own."""
    words = "an array: your kernel writes it to memory, and reads it again"
    made = any(root.kind == "an array of its own" for *_, root, _ in recording.log)
    return Verdict(words) if made else None


@lecture.exercise(
    case(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.0, 4.0]), 2.0, -1.0),
    case(np.array([-1.0, 0.5, 3.0, 2.0]), np.array([0.0, 2.0, 1.0, -2.0]), 0.5, 3.0),
    otherwise=(
        "Take the first case by hand: write down `d` for each of the three numbers, then the three totals."
    ),
    compare=sound,
    use=kernel_use(
        "loss_and_slopes",
        lambda *inputs: inputs,
        lambda done: done.result.tolist() if isinstance(done.result, np.ndarray) else done.result,
        whole_arrays,
        no_threads,
        several_passes,
        arrays_made,
    ),
)
def loss_and_slopes(x, y, w, b):
    """The mean of the squares of d = w·x + b - y, and its derivatives with respect to w and to b."""
    loss = by_w = by_b = 0.0
    for i in prange(x.size):
        d = w * x[i] + b - y[i]
        loss += d * d
        by_w += d * x[i]
        by_b += d
    return loss / x.size, 2 * by_w / x.size, 2 * by_b / x.size


def _totals(x, y, w, b):
    loss = by_w = by_b = 0.0
    for i in prange(x.size):
        d = w * x[i] + b - y[i]
        loss += d * d
        by_w += d * x[i]
        by_b += d
    return loss, by_w, by_b


@loss_and_slopes.mistake(
    "This is NumPy's way: each operation goes through a whole array. Write one loop, in which `d` is a "
    "single number."
)
def with_whole_arrays(x, y, w, b):
    d = w * x + b - y
    return (d * d).mean(), 2 * (d * x).mean(), 2 * d.mean()


@loss_and_slopes.mistake(
    "The three totals lie in an array, and all threads change it. Take three plain variables, one for each: "
    "Numba recognises `+=` on them as reductions."
)
def totals_in_an_array(x, y, w, b):
    totals = np.zeros(3)
    for i in prange(x.size):
        d = w * x[i] + b - y[i]
        totals[0] += d * d
        totals[1] += d * x[i]
        totals[2] += d
    return totals[0] / x.size, 2 * totals[1] / x.size, 2 * totals[2] / x.size


@loss_and_slopes.mistake(
    "Right, but each loop reads `x` from memory again. Add up all three totals in one loop."
)
def three_loops(x, y, w, b):
    loss = by_w = by_b = 0.0
    for i in prange(x.size):
        loss += (w * x[i] + b - y[i]) ** 2
    for i in prange(x.size):
        by_w += (w * x[i] + b - y[i]) * x[i]
    for i in prange(x.size):
        by_b += w * x[i] + b - y[i]
    return loss / x.size, 2 * by_w / x.size, 2 * by_b / x.size


@loss_and_slopes.mistake(
    "Right, but on one thread. The totals are recognised reductions, so the loop may be a `prange`."
)
def without_threads(x, y, w, b):
    loss = by_w = by_b = 0.0
    for i in range(x.size):
        d = w * x[i] + b - y[i]
        loss += d * d
        by_w += d * x[i]
        by_b += d
    return loss / x.size, 2 * by_w / x.size, 2 * by_b / x.size


@loss_and_slopes.mistake(
    "Right, but your kernel makes an array. Nobody needs `d` again after its iteration: let it be a plain "
    "variable."
)
def array_of_differences(x, y, w, b):
    d, loss, by_w, by_b = np.empty(x.size), 0.0, 0.0, 0.0
    for i in prange(x.size):
        d[i] = w * x[i] + b - y[i]
        loss += d[i] * d[i]
        by_w += d[i] * x[i]
        by_b += d[i]
    return loss / x.size, 2 * by_w / x.size, 2 * by_b / x.size


@loss_and_slopes.mistake(
    "Your `d` is y − (w·x + b). Its square is the same, but both slopes change their sign."
)
def other_sign(x, y, w, b):
    loss, by_w, by_b = _totals(x, y, w, b)
    return loss / x.size, -2 * by_w / x.size, -2 * by_b / x.size


@loss_and_slopes.mistake("The slopes lack their 2: the derivative of d² is 2 · d, times the derivative of d.")
def without_the_two(x, y, w, b):
    loss, by_w, by_b = _totals(x, y, w, b)
    return loss / x.size, by_w / x.size, by_b / x.size


@loss_and_slopes.mistake("These are sums. The loss is a mean: divide by `x.size`, the slopes as well.")
def without_the_mean(x, y, w, b):
    loss, by_w, by_b = _totals(x, y, w, b)
    return loss, 2 * by_w, 2 * by_b


@loss_and_slopes.mistake(
    "Numba does know `totals += …` with whole arrays as a reduction. But then each iteration makes an array. "
    "Take three plain variables."
)
def array_of_totals(x, y, w, b):
    totals = np.zeros(3)
    for i in prange(x.size):
        d = w * x[i] + b - y[i]
        totals += np.array([d * d, 2 * d * x[i], 2 * d])
    return totals / x.size


@loss_and_slopes.mistake(
    "For Numba, the total comes first: it knows `loss += d * d` and `loss = loss + d * d`, but not "
    "`loss = d * d + loss`."
)
def total_last(x, y, w, b):
    loss = by_w = by_b = 0.0
    for i in prange(x.size):
        d = w * x[i] + b - y[i]
        loss = d * d + loss
        by_w += d * x[i]
        by_b += d
    return loss / x.size, 2 * by_w / x.size, 2 * by_b / x.size


@loss_and_slopes.mistake(
    "That is the loss alone. Return three numbers: the loss, the slope for `w`, that for `b`."
)
def the_loss_alone(x, y, w, b):
    return loss_and_slopes.right(x, y, w, b)[0]


@loss_and_slopes.mistake("Only the first number is counted. Does your `return` stand inside the loop?")
def first_number_only(x, y, w, b):
    d = w * x[0] + b - y[0]
    return d * d / x.size, 2 * d * x[0] / x.size, 2 * d / x.size


@loss_and_slopes.mistake("Your `d` has no `b`: it is w·x + b − y.")
def without_b(x, y, w, b):
    return loss_and_slopes.right(x, y, w, 0.0)


OTHER_ORDER = "Right numbers, other order: the loss, then the slope for `w`, then that for `b`."


@loss_and_slopes.mistake(OTHER_ORDER)
def loss_last(x, y, w, b):
    loss, by_w, by_b = loss_and_slopes.right(x, y, w, b)
    return by_w, by_b, loss


@loss_and_slopes.mistake(OTHER_ORDER)
def slopes_swapped(x, y, w, b):
    loss, by_w, by_b = _totals(x, y, w, b)
    return loss / x.size, 2 * by_b / x.size, 2 * by_w / x.size


@loss_and_slopes.mistake("Only the last number is left in your totals: `=` replaces, and `+=` adds.")
def last_number_only(x, y, w, b):
    d = w * x[-1] + b - y[-1]
    for _ in prange(1):
        loss, by_w, by_b = d * d, d * x[-1], d
    return loss / x.size, 2 * by_w / x.size, 2 * by_b / x.size


@loss_and_slopes.mistake("When `w` moves, `d` moves by `x[i]`: the slope for `w` adds up `d * x[i]`.")
def without_x(x, y, w, b):
    loss, _, by_b = _totals(x, y, w, b)
    return loss / x.size, 2 * by_b / x.size, 2 * by_b / x.size


# --- What Numba cannot compile ------------------------------------------------------------------------------


def only_in_python(right: Callable) -> Callable:
    """A kernel that Numba cannot compile."""

    def call_plain_python(*arguments):
        return right(*arguments)

    return call_plain_python


def changes_its_inputs(right: Callable) -> Callable:
    """A kernel that gives the right result, and spoils its first array."""

    def call_and_spoil(first, *arguments):
        result = right(first, *arguments)
        first[...] = 0
        return result

    return call_and_spoil


for _exercise in (count, negate, by_rows, by_tiles, loss_and_slopes):
    _exercise.mistake("Leave the arrays that you are given as they are: others may still need them.")(
        changes_its_inputs(_exercise.right)
    )
    _exercise.mistake(
        "As plain Python this is right, but the line above says what Numba cannot compile. Keep to loops, "
        "numbers, arrays and the simpler functions of NumPy."
    )(only_in_python(_exercise.right))
