"""What every answer has to keep, whatever the exercise asks for.

A contract looks at an attempt before the answer is called, after it, and once more when its result is known to
be right. Each of the three may name a `Fault`. `STANDARD` holds for every exercise that does not say
``unless=(…,)``; `derivatives` is for exercises that promise a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from needle.autograd import Tensor, gradients
from needle.modes import mode

from .attempt import Attempt, names_in, outcome
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
        for name, value in attempt.everything.items():
            if change := was[name].change(value):
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


class LibraryAsFound(Contract):
    """The modes of the library and NumPy's random state are left as they were."""

    def before(self, attempt: Attempt) -> tuple[Any, ...]:
        return mode.get(), np.random.get_state()

    def after(self, attempt: Attempt, was: tuple[Any, ...]) -> Fault | None:
        modes, random = was
        modes_now, random_now = mode.get(), np.random.get_state()
        mode.set(modes)
        np.random.set_state(random)
        if modes_now != modes:
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
                    return Fault(
                        f"{what} is {named} itself, and not a new object",
                        "Whoever changes one of them changes the other. Make a new one, or a copy.",
                    )
                return Fault(
                    f"{what} and item {owner} are one object",
                    "Whoever changes one of them changes the other. Make each one anew.",
                )
        return None


class TwiceTheSame(Contract):
    """Called again with inputs of the same values, the answer is as right as before."""

    def compare(self, attempt: Attempt) -> Fault | None:
        exercise = attempt.exercise
        everything = attempt.case.make()
        inputs = [everything[name] for name in attempt.case.chosen]
        again, right = (outcome(exercise.use, x, *inputs) for x in (attempt.answer, exercise.right))
        if again.error is not None:
            return Fault(f"called a second time, it raises {type(again.error).__name__}: {again.error}", KEPT)
        if wrong := exercise.compare(right.result, again.result, names_in(everything)):
            return Fault(f"it is right in the first call, and in the second it is not: {wrong}", KEPT)
        return None


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
    """What a value was, to see whether somebody changed it: its numbers or items, and a Tensor's history."""

    def __init__(self, value: Any):
        self.was = self._state(value)

    @staticmethod
    def _state(value: Any) -> Any:
        if is_tensor(value):
            history = (id(getattr(value, "op", None)), [id(i) for i in getattr(value, "inputs", ())])
            return to_numpy(value).copy(), history
        if isinstance(value, np.ndarray):
            return value.copy(), None
        if isinstance(value, Mapping):
            return {key: Snapshot._state(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [Snapshot._state(item) for item in value]
        return value

    def change(self, value: Any) -> str:
        """What changed, in words; "" if nothing did."""
        now = self._state(value)
        if same(self.was, now):
            return ""
        if isinstance(self.was, tuple) and isinstance(now, tuple) and not same(self.was[0], now[0]):
            was, is_now = np.array2string(self.was[0]), np.array2string(now[0])
            return f"it was {was}, and is {is_now}" + (", apart from rounding" if was == is_now else "")
        if isinstance(value, list) and all(isinstance(item, (int, float, str)) for item in self.was):
            return f"it was {self.was!r}, and is now {value!r}"
        return f"it is now {value!r}"


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal, to the bit."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one is other or (type(one) is type(other) and bool(one == other))


unchanged_inputs = UnchangedInputs()
own_work = OwnWork()
library_as_found = LibraryAsFound()
unshared = Unshared()
twice_the_same = TwiceTheSame()
derivatives = Derivatives()
STANDARD = (unchanged_inputs, own_work, library_as_found, unshared, twice_the_same)
