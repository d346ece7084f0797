"""What every answer has to keep, whatever the exercise asks for.

A contract looks at an attempt before the answer is called, after it, and once more when its result is known to
be right. Each of the three may name a `Fault`. `STANDARD` holds for every exercise that does not say
``unless=(…,)``; `derivatives` is for exercises that promise a gradient.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from needle import autograd
from needle.autograd import Tensor, gradients
from needle.modes import mode

from .attempt import Attempt, library_of, names_in, names_used, outcome, within_reach
from .comparison import is_tensor, show, to_numpy


class Fault(NamedTuple):
    """What is wrong with an answer, and what helps."""

    wrong: str
    hint: str


class Contract:
    """Something that an answer has to keep."""

    def before(self, attempt: Attempt) -> Any:
        """What has to be known before the answer is called."""

    def after(self, attempt: Attempt, was: Any) -> Fault | None:
        """What is wrong, whatever the answer gave back."""

    def compare(self, attempt: Attempt) -> Fault | None:
        """What is wrong with a result that compares equal to the expected one."""


class UnchangedInputs(Contract):
    """Inputs, and all else that the case is about, stay as they are."""

    def before(self, attempt: Attempt) -> dict[str, Snapshot]:
        return {name: Snapshot(value) for name, value in attempt.everything.items()}

    def after(self, attempt: Attempt, was: dict[str, Snapshot]) -> Fault | None:
        for name in attempt.everything:
            if change := was[name].change():
                what = name if name.isidentifier() else "its input"
                return Fault(
                    f"your answer changes {what}: {change}",
                    "Leave the inputs as they are, and make something new.",
                )
        return None


class OwnWork(Contract):
    """The answer does the work itself, and does not call what an exercise forbids."""

    def after(self, attempt: Attempt, was: Any) -> Fault | None:
        if not attempt.called or attempt.untried:
            return None
        first = attempt.called[0]
        if isinstance(first, str):
            return Fault(f"your answer calls {first}", "Write it yourself: then you know what is in it.")
        return Fault(f"your answer calls `{first.__qualname__}`", attempt.exercise.without[first])


class Unmentioned(Contract):
    """The answer and the reader's helpers mention none of these names (see `plain_name`), and nothing of a library.

    It says so whatever an answer gives back, as `own` cannot: that looks at what is called, and not at attributes.
    """

    def __init__(self, fault: Fault, names: Collection[str], library: str | None = None):
        self.fault = fault
        self.names = names
        self.library = library

    def after(self, attempt: Attempt, was: Any) -> Fault | None:
        codes, named = within_reach(attempt.answer)
        is_named = not names_used(codes).isdisjoint(self.names)
        is_called = any(library_of(value) == self.library for value in named)
        return self.fault if is_named or is_called else None


class LibraryAsFound(Contract):
    """The modes of the library and NumPy's random state are left as they were."""

    def before(self, attempt: Attempt) -> tuple[Any, ...]:
        return mode.get(), autograd.LAZY_MODE, np.random.get_state()

    def after(self, attempt: Attempt, was: tuple[Any, ...]) -> Fault | None:
        modes, is_lazy, random = was
        modes_now, random_now = (mode.get(), autograd.LAZY_MODE), np.random.get_state()
        mode.set(modes)
        autograd.LAZY_MODE = is_lazy
        np.random.set_state(random)
        if modes_now != (modes, is_lazy):
            return Fault(
                "your answer leaves the library in another mode, lazy or without gradients",
                "Leave the library as you found it: `with ndl.lazy():` ends where its block ends.",
            )
        if not same(random, random_now):
            return Fault(
                "your answer draws from NumPy's global random numbers, so others would get other ones",
                "Draw from a generator: the one that you are given, or `np.random.default_rng(0)`.",
            )
        return None


class Unshared(Contract):
    """Nothing that the answer makes is an input, or stands in two places, unless the solution's does, too."""

    def compare(self, attempt: Attempt) -> Fault | None:
        allowed = sharing(attempt.everything, attempt.expected)
        for place, owner in sharing(attempt.everything, attempt.got.result).items():
            if place not in allowed:
                what = f"item {place}" if place else "your result"
                if owner.startswith("input "):
                    named = owner.removeprefix("input ")
                    named = named if named.isidentifier() else "the input"
                    return Fault(f"{what} is {named} itself, and not a new object", ANEW)
                return Fault(f"{what} and item {owner} are one object", ANEW)
        return None


class TwiceTheSame(Contract):
    """Called again, with equal inputs and then with the very same ones, the answer is as right as before."""

    def compare(self, attempt: Attempt) -> Fault | None:
        exercise = attempt.exercise
        everything = attempt.case.make()
        inputs = [everything[name] for name in attempt.case.chosen]
        programs = (attempt.answer, exercise.right, attempt.answer)
        second, right, third = (outcome(exercise.use, program, *inputs) for program in programs)
        for which, again in (("second", second), ("third", third)):
            if again.error is not None:
                what = f"{type(again.error).__name__}: {again.error}"
                return Fault(f"called a {which} time, it raises {what}", KEPT)
            if wrong := exercise.compare(right.result, again.result, names_in(everything)):
                return Fault(f"it is right in the first call, and in the {which} it is not: {wrong}", KEPT)
        one = _is_one(second.result, third.result) and not _is_one(second.result, right.result)
        if one and unshared in exercise.contracts:
            return Fault("called again with the same inputs, it gives back the very same object", ANEW)
        return None


def _is_one(a: Any, b: Any) -> bool:
    """Whether whoever changes one of them changes the other."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.may_share_memory(a, b)
    return a is b and is_changeable(a)


ANEW = "Whoever changes one of them changes the other. Make each one anew, or make a copy."
KEPT = (
    "Something stays from one call to the next: a list as a default, as in `order=[]`, or made outside of the "
    "function. Make it inside."
)


class Derivatives(Contract):
    """The derivative goes through the answer to each Tensor among the inputs, and so does the second one."""

    def compare(self, attempt: Attempt) -> Fault | None:
        leaves = [x for x in attempt.inputs if isinstance(x, Tensor) and x.requires_grad]
        results = zip(tensors_in(attempt.expected), tensors_in(attempt.got.result), strict=False)
        for right, given in results:
            for order in ("", "second "):
                if not right.requires_grad:
                    break
                if not given.requires_grad:
                    return Fault(f"no {order}derivative flows through your result", CUT)
                pairs = list(zip(leaves, through(right, leaves), through(given, leaves), strict=True))
                for leaf, expected, got in pairs:
                    one, other = to_numpy(expected), to_numpy(got)
                    if not np.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True):
                        name = show(leaf, attempt.names)
                        return Fault(f"the {order}derivative with respect to {name} is wrong", CUT)
                right, given = (added([weighed(pair[k]) for pair in pairs]) for k in (1, 2))
        return None


CUT = (
    "Something cuts the graph, such as `.numpy()`, `.detach()`, `.data` or a new Tensor made of numbers. "
    "Compute with the Tensors themselves."
)


def weighed(x: Tensor) -> Tensor:
    """The sum of a Tensor's numbers, each with a weight of its own."""
    weights = np.cos(np.arange(x.size, dtype="float64")).reshape(x.shape)
    return (x * Tensor(weights, device=x.device, dtype=x.dtype, requires_grad=False)).sum()


def added(numbers: list[Tensor]) -> Tensor:
    """The sum of Tensors of one number each; 0 if there are none."""
    total = Tensor(0.0, requires_grad=False)
    for number in numbers:
        total = total + number
    return total


def through(output: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    """The derivative of the weighed output with respect to each leaf."""
    return gradients(weighed(output), leaves)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All Tensors in a result."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def sharing(everything: Mapping[str, Any], result: Any) -> dict[str, str]:
    """Where a result holds an object that stands elsewhere, too: its place, and the other place."""
    owners = {id(value): f"input {name}" for name, value in everything.items() if is_changeable(value)}
    shared: dict[str, str] = {}
    visited: set[int] = set()

    def visit(value: Any, place: str) -> None:
        if is_changeable(value):
            if id(value) in owners:
                shared[place] = owners[id(value)]
                return
            owners[id(value)] = place
        if id(value) in visited:
            return
        visited.add(id(value))
        items: Any = ()
        if isinstance(value, Mapping):
            items = value.items()
        elif isinstance(value, (list, tuple)):
            items = enumerate(value)
        for key, item in items:
            visit(item, f"{place}[{key!r}]" if place else f"{key!r}")

    visit(result, "")
    return shared


def is_changeable(value: Any) -> bool:
    """Whether a value can be changed in place, so that it matters who else holds it."""
    return isinstance(value, (list, dict, set, np.ndarray)) or is_tensor(value)


class Snapshot:
    """What a value was, and all that it holds, to see whether somebody changed them.

    Of an array that is its numbers, of a list or a mapping its items, of another object its attributes. A Tensor
    has numbers, a history, a ``grad``, and may want one.
    """

    def __init__(self, value: Any):
        self.value = value
        self.was: dict[int, tuple[Any, dict[Any, Any]]] = {}
        waiting = [value]
        while waiting:
            part = waiting.pop()
            if id(part) not in self.was and (parts := parts_of(part)) is not None:
                self.was[id(part)] = part, parts
                waiting += [held for key, held in parts.items() if key != NUMBERS]

    def change(self) -> str:
        """What changed, in words; "" if nothing did."""
        for part, was in self.was.values():
            if same(was, now := parts_of(part) or {}):
                continue
            key = next((key for key in was if key in now and not same(was[key], now[key])), None)
            if key == NUMBERS:
                old, new = np.array2string(was[key]), np.array2string(now[key])
                return f"it was {old}, and is {new}" + (", apart from rounding" if old == new else "")
            if isinstance(key, str) and not isinstance(part, Mapping) and key != HISTORY:
                whose = "its" if part is self.value else "in it, a"
                return f"{whose} `{key}` was {was[key]!r}, and is now {now[key]!r}"
            plain = isinstance(part, list) and all(isinstance(x, (int, float, str)) for x in was.values())
            before = f"was {[*was.values()]}, and " if plain and part is self.value else ""
            return f"it {before}is now {self.value!r}"
        return ""


NUMBERS, HISTORY = "the numbers", "the history"


def parts_of(value: Any) -> dict[Any, Any] | None:
    """What a value holds, by place or name; None if it holds nothing that can be changed in place."""
    if isinstance(value, np.ndarray):
        return {NUMBERS: value.copy()}
    if is_tensor(value):
        history = (id(getattr(value, "op", None)), *map(id, getattr(value, "inputs", ())))
        named = {name: getattr(value, name, None) for name in ("requires_grad", "grad")}
        return {NUMBERS: to_numpy(value).copy(), HISTORY: history, **named}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, (type, ModuleType, FunctionType)) or not hasattr(value, "__dict__"):
        return None
    return dict(vars(value))


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal, to the bit. What can be changed has a state of its own."""
    if one is other:
        return True
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and not is_tensor(one) and bool(one == other)


unchanged_inputs = UnchangedInputs()
#: A complex step is a nudge that would be right to the last digit.
no_complex_step = Unmentioned(
    Fault("your answer nudges by a complex number", "Write the derivatives as formulas."), {"imag"}
)
own_work = OwnWork()
library_as_found = LibraryAsFound()
unshared = Unshared()
twice_the_same = TwiceTheSame()
derivatives = Derivatives()
STANDARD = (unchanged_inputs, own_work, library_as_found, unshared, twice_the_same)
