"""What an answer is tried on: the lecture's own examples, and inputs that Hypothesis draws.

A `Case` makes its inputs anew each time it is asked. `case` and `given` write one down; `drawn`, `arrays` and
`graphs` are Hypothesis strategies that many exercises share. Each puts first what a message should show: 2 and
3 before 0 and 1, ordinary shapes before those with an axis of length 1. Hypothesis *shrinks* towards what
comes first, so a reader sees the simplest input for which the answer is wrong.

Everything is drawn from short lists. So a strategy shrinks in a few steps, and draws the same on each machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
from hypothesis import Phase, configuration, find, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, NoSuchExample
from hypothesis.strategies import SearchStrategy

NUMBERS = (2, 3, -1, 0.5, 5, -2, 4, 1, 0)
SHAPES = ((2, 3), (3, 2), (4,), (2, 3, 4), (4, 3, 2), (1, 3), (3, 1), (2, 1, 3), (1,))


@dataclass(frozen=True)
class Case:
    """What an answer is called with, made anew each time.

    Attributes
    ----------
    make : function
        Gives all that the case is about, by the names that the lecture uses.
    chosen : tuple of str
        Which of these the answer gets, in order.
    program : str
        The lines that make it, for the message, where the values alone do not show what the case is.
    """

    make: Callable[[], dict[str, Any]]
    chosen: tuple[str, ...]
    program: str = ""


def case(*inputs: Any) -> Case:
    """A case of plain values: numbers, texts, arrays, or lists of them."""
    made = {str(position): value for position, value in enumerate(inputs)}
    return Case(lambda: fresh(made), tuple(made))


def fresh(value: Any) -> Any:
    """A copy of a value and all that is in it. An array keeps how it lies in memory, unlike in a deep copy."""
    if isinstance(value, dict):
        return {name: fresh(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(fresh, value))
    base = value.base if isinstance(value, np.ndarray) else None
    if not isinstance(base, np.ndarray) or not base.flags.c_contiguous:
        return deepcopy(value)
    offset = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return np.ndarray(value.shape, value.dtype, base.copy().data, offset, value.strides)


def given(make: Callable[[], dict[str, Any]], *chosen: str, program: str = "") -> Case:
    """A case that builds its inputs: `make()` returns them by name, and `chosen` are passed on.

    A message shows the lines of `program`, if there are any, as what made them.

    Examples
    --------
    >>> def v1_to_v4():
    ...     v1 = ndl.Tensor([0.0])
    ...     v2 = ndl.exp(v1)
    ...     return {"v1": v1, "v2": v2}
    >>> given(v1_to_v4, "v2", "v1")  # the answer is called with v2 and v1
    """
    return Case(make, chosen, program)


def program_case(lines: Sequence[str], names: Mapping[str, Any], *chosen: str) -> Case:
    """A case whose inputs are the variables of a program, which the message shows.

    Parameters
    ----------
    lines : sequence of str
        Python statements of ours, each of which gives a variable its value.
    names : mapping
        What the lines use: classes and functions.
    *chosen : str
        The variables that the answer gets.
    """
    program = "\n".join(lines)
    code = compile(program, "<case>", "exec")

    def make() -> dict[str, Any]:
        made = dict(names)
        exec(code, made)
        return {name: value for name, value in made.items() if name not in names and name != "__builtins__"}

    return Case(make, chosen, program)


# Strategies


def drawn(*inputs: Any, **named: Any) -> SearchStrategy[Case]:
    """Cases of plain values, each drawn from a strategy, or from a list of values.

    Inputs without a name are shown as values; those with a name are called by it in messages.

    Examples
    --------
    >>> drawn([2.0, -1.0], [0.1, 0.5])
    >>> drawn(x=arrays())
    """
    names = [*map(str, range(len(inputs))), *named]
    parts = st.tuples(
        *[x if isinstance(x, SearchStrategy) else st.sampled_from(x) for x in (*inputs, *named.values())]
    )

    def make(values: tuple) -> Case:
        made = dict(zip(names, values, strict=True))
        return Case(lambda: fresh(made), tuple(names))

    return parts.map(make)


#: What an array of n numbers holds. Most tell all its places apart, by sign and size, too.
FILLS: dict[str, Callable[[int], np.ndarray]] = {
    "counted": lambda n: np.arange(2.0, n + 2),
    "signed": lambda n: np.arange(2.0, n + 2) * (-1.0) ** np.arange(n),
    "falling": lambda n: np.arange(n, 0, -1) / 2,
    "irregular": lambda n: np.random.default_rng(n).normal(size=n).round(2),
    "equal": lambda n: np.full(n, 3.0),
    "zeros between": lambda n: np.arange(1.0, n + 1) * (np.arange(n) % 3 != 1),
    "zeros": np.zeros,
    # scores, for which a careless formula overflows or loses its digits
    "huge": lambda n: np.where(np.arange(n) == n - 1, 1000.0, np.arange(n)),
    "all huge": lambda n: 1000.0 + np.arange(n),
    "hugely negative": lambda n: -1000.0 - np.arange(n),
    "far apart": lambda n: 500.0 * (np.arange(n) - n // 2),
}
PLAIN = ("counted", "signed", "falling", "irregular", "equal", "zeros between", "zeros")
SCORES = ("counted", "irregular", "huge", "all huge", "hugely negative", "far apart", "equal")

#: How an array lies in memory: a plain one, and views of larger ones.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plain": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every second": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "turned around": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
}


def arrays(
    shapes: SearchStrategy[tuple[int, ...]] | Sequence[tuple[int, ...]] = SHAPES,
    fills: Sequence[str] = PLAIN,
    layouts: Sequence[str] = ("plain",),
    dtype: str = "float64",
) -> SearchStrategy[np.ndarray]:
    """Arrays of these shapes, filled and laid out in one of these ways (`FILLS`, `LAYOUTS`)."""

    def make(parts: tuple) -> np.ndarray:
        shape, fill, layout = parts
        numbers = FILLS[fill](int(np.prod(shape))).astype(dtype).reshape(shape)
        return LAYOUTS[layout](numbers) if shape else numbers

    shape = shapes if isinstance(shapes, SearchStrategy) else st.sampled_from(list(shapes))
    return st.tuples(shape, st.sampled_from(list(fills)), st.sampled_from(list(layouts))).map(make)


def graphs(
    leaf: str,
    operators: Sequence[str],
    values: Sequence[float] = (2, 3, -1, 0.5, 2),
    most: int = 8,
    leaves: Sequence[str] = "ab",
    names: Sequence[str] = "stuvwxyz",
) -> SearchStrategy[list[str]]:
    """Programs that compute a graph, a line for each variable; the last line computes the output.

    An operand is any earlier variable: so inner nodes are shared, along ways of different length, and an
    operator may take the same node twice. Leaves may have equal values.

    Parameters
    ----------
    leaf : str
        The right side of a line that makes a leaf, with ``{}`` for its value: ``"Scalar({})"``.
    operators : sequence of str
        Right sides with ``{a}``, and ``{b}`` if they have two operands: ``"{a} * {b}"``. The first are tried
        most, and messages prefer them.
    values : sequence of float
        What leaves hold. A value that stands here twice is drawn twice as often, and so is an operator.
    most : int
        Operators in a program; there is at least one.
    leaves, names : sequences of str
        How leaves and results are called.

    Returns
    -------
    strategy of list of str
        For `program_case`. The output is what stands left in the last line: ``lines[-1].split()[0]``.
    """
    place = st.integers(0, 20)
    steps = st.lists(st.tuples(st.sampled_from(list(operators)), place, place), min_size=1, max_size=most)
    starts = st.lists(st.sampled_from(list(values)), min_size=1, max_size=len(leaves))

    def write(parts: tuple[list, list]) -> list[str]:
        start, chosen = parts
        there = list(leaves[: len(start)])
        lines = [f"{name} = {leaf.format(value)}" for name, value in zip(there, start, strict=True)]
        for name, (operator, one, other) in zip(names, chosen, strict=False):
            # 0 is the newest variable, so a shrunk program is a chain that leads to its output
            a, b = (there[-1 - place % len(there)] for place in (one, other))
            lines.append(f"{name} = {operator.format(a=a, b=b)}")
            there.append(name)
        return lines

    return st.tuples(starts, steps).map(write)


# Search


def smallest(
    strategy: SearchStrategy[Case], is_wrong: Callable[[Case], bool], number: int, shrink: bool = True
) -> Case | None:
    """The simplest case that is wrong, among `number` that are drawn; None if all are right.

    The draws are the same each time. An answer that behaves in another way when it is called again cannot
    be shrunk: then it is the case that was found first.
    """
    seen: list[Case] = []

    def condition(asked: Case) -> bool:
        wrong = is_wrong(asked)
        if wrong:
            seen.append(asked)
        return wrong

    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    fixed = settings(max_examples=number, derandomize=True, database=None, deadline=None, phases=phases)
    with _own_home():
        try:
            return find(strategy, condition, settings=fixed)
        except NoSuchExample:
            return None
        except Flaky:
            return seen[0]


@contextmanager
def _own_home() -> Iterator[None]:
    """Within this block, Hypothesis writes what it keeps beside no notebook."""
    name = "__hypothesis_home_directory"
    before = getattr(configuration, name)
    configuration.set_hypothesis_home_dir(Path(gettempdir()) / "needle-lectures")
    try:
        yield
    finally:
        configuration.set_hypothesis_home_dir(before)
