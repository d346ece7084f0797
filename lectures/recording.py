"""Running a kernel in plain Python, and noting what it touches.

`record` runs a kernel with arrays that note which iteration of `prange` reads and writes which place. So races,
walks through memory and passes over whole arrays are seen without waiting for what they do to a result.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import CellType, FrameType, FunctionType, SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba import prange

from .checking.attempt import codes_of
from .checking.contracts import Fault

Note = tuple[int, str, str]  # an iteration, "read" or "write", and a place


class Recording:
    """What a kernel did: which iteration touched which place, and the order of all its reads and writes."""

    def __init__(self) -> None:
        self.iteration: int | None = None
        self.loops = 0  # how often the kernel came to a prange
        self.whole = False  # whether it computed with whole arrays of its arguments
        self.product = False  # whether it let NumPy multiply matrices
        self.counted = False  # whether it let NumPy count
        self.array_sum = False  # whether an iteration added to a whole array at once
        self.follows = False  # whether arrays that NumPy computes are watched, too
        self.passes = Counter(reads=0, writes=0)  # how often NumPy went through a whole array
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
        touched = [int(places)] if np.ndim(places) == 0 else np.ravel(places).tolist()
        self.log += [(self.loops, self.iteration, what, root, place) for place in touched]

    def watched(self, array: np.ndarray, name: str = "") -> Watched:
        made = array.view(Watched)
        made.recording, made.root = self, Root(made, name)
        made.places = np.arange(array.size).reshape(array.shape)
        return made

    @property
    def shares(self) -> bool:
        """Whether an array that is made now has to be watched: all iterations will share it."""
        return self.follows or self.iteration is None

    @property
    def notes(self) -> list[Note]:
        """Reads and writes in iterations, with each place by its name."""
        return [
            (iteration, what, root.place(place) + (f" in loop {loop}" if loop > 1 else ""))
            for loop, iteration, what, root, place in self.log
            if iteration is not None
        ]

    def race(self) -> tuple[str, str] | None:
        """Two iterations that touch the same place, of which at least one writes: in words, and which array.

        None if there are none.
        """
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
                return f"iterations {one} and {other} {what} {key[1].place(key[2])}", key[1].kind
        return None

    def steps(self, name: str) -> list[int]:
        """How far it is from each place of an argument to the one that is touched next."""
        places = [place for *_, root, place in self.log if root.kind == name]
        return [abs(there - here) for here, there in pairwise(places)]

    def lines_loaded(self, cache: int = 12) -> int:
        """How many memory lines of 8 numbers are fetched, if those of the last `cache` are at hand."""
        at_hand: list[tuple[str, int]] = []
        loaded = 0
        for *_, root, place in self.log:
            line = root.kind, place // 8
            loaded += line not in at_hand
            at_hand = [*[other for other in at_hand if other != line][1 - cache :], line]
        return loaded


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
        self.recording = getattr(other, "recording", None)
        if self.recording is None:
            return
        whole = other.root.array
        first = address(self) - address(whole)
        if 0 <= first < whole.nbytes:  # another view: transposed or reshaped, say
            self.root, places = other.root, np.full(self.shape, first // self.itemsize)
            for axis, (size, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
                steps = np.arange(size) * (stride // self.itemsize)
                places = places + steps.reshape(-1, *[1] * (self.ndim - axis - 1))
            self.places = places
        elif self.recording.shares:  # a copy
            self.root, self.places = Root(self, ""), np.arange(self.size).reshape(self.shape)
        else:
            self.recording = None

    def fill(self, value: Any) -> None:
        self[...] = value

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
        recording = next((x.recording for x in inputs if isinstance(x, Watched)), None)
        if recording is not None:
            recording.passes["reads"] += len({id(x) for x in inputs if np.size(x) > 1})  # d * d reads d once
        if out is None:
            result = getattr(ufunc, method)(*map(plain, inputs), **options)
            if recording is None or np.size(result) == 1:
                return result
            recording.passes["writes"] += 1
            return recording.watched(result) if recording.shares else result
        for array in out:
            if isinstance(array, Watched) and array.recording is not None:
                array.recording.note("write", array.root, array.places)
                array.recording.array_sum |= ufunc is np.add and array is array.root.array
        getattr(ufunc, method)(*map(plain, inputs), out=tuple(map(plain, out)), **options)
        return out[0]

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        inputs = [*arguments, *options.values()]
        product = function in (np.dot, np.einsum, np.tensordot)
        _read(inputs, product, function in (np.bincount, np.histogram, np.unique))
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
    """Refuse a float as an index, which Numba does not compile."""
    if isinstance(key, float):
        raise IndexError(f"a place is a whole number, such as 2, and this is {float(key)}")


def plain(value: Any) -> Any:
    """A value with plain arrays in the place of watched ones."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return value.view(np.ndarray) if isinstance(value, Watched) else value


def address(array: np.ndarray) -> int:
    """Where the first number of an array lies."""
    return array.__array_interface__["data"][0]


class _NumPy:
    """NumPy, but an array that is made outside of an iteration is watched: all iterations share it."""

    def __init__(self, recording: Recording):
        self.recording = recording

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, (type, np.ufunc)) or not callable(found) or not self.recording.shares:
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            made = found(*arguments, **options)
            return self.recording.watched(made) if type(made) is np.ndarray else made

        return call


def names_looked_up(function: Callable) -> set[str]:
    """All names that a function and those inside it look up."""
    return {name for code in codes_of(function) for name in code.co_names}


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
        names.update({name: stand_in(names[name]) for name in names_looked_up(function) if name in names})
    return made[function]


def record(kernel: Callable, *arguments: Any, follows: bool = False) -> Recording:
    """Run a kernel in plain Python on copies of its arguments, and note what it touches.

    With `follows`, also what it does with arrays that NumPy computes of them.
    """
    recording = Recording()
    recording.follows = follows
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


def what_numba_says(error: BaseException, helps: Mapping[str, str], otherwise: str) -> Fault:
    """Why Numba cannot compile a kernel. `helps` has what helps, by the words of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "During:"))]
    types = [line for line in lines if line.startswith("NumbaTypeError: ")]
    said = [*types, *telling, type(error).__name__][0].removeprefix("NumbaTypeError: ")
    hint = next((helps[words] for words in helps if words in str(error)), otherwise)
    return Fault(f"Numba cannot compile it: {said}", hint)
