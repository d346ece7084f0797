"""Lecture 17, sequences: its exercises, the usual mistakes in them, its predictions, its page of verse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle as ndl
from needle.autograd import Tensor, find_topo_sort
from needle.nn import LSTMCell, RNNCell

from .checking import Case, Lecture, Names, arrays, case, derivatives, drawn, given, is_tensor, values

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


@st.composite
def tensors(draw: Any, shapes: Mapping[str, tuple[int, ...]]) -> Case:
    """Tensors of these shapes, by their names: small, so that tanh tells them apart, or too large for exp."""
    fills, size = (
        ("irregular", "signed", "falling", "zeros between"),
        draw(st.sampled_from((1 / 3, 1 / 4, 20))),
    )
    made = {name: size * draw(arrays([shape], fills)) for name, shape in shapes.items()}
    return given(lambda: {name: Tensor(numbers) for name, numbers in made.items()}, *made)


def seeded(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> Case:
    """Tensors of these shapes, by their names, of random numbers."""

    def make() -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        return {name: Tensor(rng.normal(size=shape).round(1)) for name, shape in shapes.items()}

    return given(make, *shapes)


# --- 1 A cell -----------------------------------------------------------------------------------------------


def of_cell(sizes: tuple[int, int, int]) -> dict[str, tuple[int, ...]]:
    """The shapes of a letter, a state and the weights of a cell, for (batch, inputs, hidden)."""
    rows, inputs, hidden = sizes
    return {
        "x": (rows, inputs), "h": (rows, hidden),
        "W_ih": (inputs, hidden), "W_hh": (hidden, hidden), "b": (hidden,),
    }  # fmt: skip


@lecture.exercise(
    seeded(of_cell((1, 3, 2))),
    draws=st.sampled_from([(2, 3, 4), (3, 2, 2), (2, 2, 2), (1, 3, 2), (3, 1, 2), (1, 1, 1)])
    .map(of_cell)
    .flatmap(tensors),
    number=60,
    otherwise="Add up three parts: the letter times `W_ih`, the state times `W_hh`, and `b`. Take `ndl.tanh` "
    "of the sum, once.",
    without={RNNCell.forward: "This is the library's own cell. Here you write one yourself, in one line."},
    contracts=(derivatives,),
)
def rnn_cell(x, h, W_ih, W_hh, b):
    return ndl.tanh(x @ W_ih + h @ W_hh + b)


# --- 2 Unroll -----------------------------------------------------------------------------------------------


def one_chain(expected: Any, got: Any, names: Names) -> str:
    """`values`, and a list of Tensors in which each leads to the next, and back to the letters."""
    if difference := values(expected, got, names):
        return difference
    if not isinstance(expected, list):
        return ""  # two mistakes are compared, and both gave one value
    for right, given_back in zip(expected, got, strict=True):
        wanted, reached = reached_from(right, names), reached_from(given_back, names)
        if wanted != reached:
            cut = ", ".join(name for name in wanted if name not in reached)
            return f"the numbers are right, but no gradient can walk back to {cut}"
    if links(expected) != links(got):
        return "the numbers are right, but the state that was handed on is not the one in the list"
    return ""


def reached_from(result: Any, names: Names) -> list[str]:
    """The inputs of a case that a gradient comes to from a result, by name."""
    nodes = find_topo_sort([result]) if is_tensor(result) and result.op is not None else []
    return sorted(names[id(node)] for node in nodes if id(node) in names)


def links(states: list[Any]) -> list[bool]:
    """Of two states in a row, whether the first is in the history of the second."""
    return [
        is_tensor(after) and after.op is not None and any(before is node for node in find_topo_sort([after]))
        for before, after in pairwise(states)
    ]


def spell(x, h):
    """A cell whose state is all that it has read."""
    return h + x


def fade(x, h):
    """A cell that halves its state, and adds what it reads."""
    return 0.5 * h + x


def squash(x, h):
    """A cell of Tensors, with one weight."""
    return ndl.tanh(h * 2 + x)


def count(x, h):
    """A cell of two states, that may begin with None, as those of the library."""
    return (x, 1 if h is None else h[1] + 1)


PROGRAMS: dict[Callable, str] = {
    fade: "def fade(x, h): return 0.5 * h + x",
    spell: "def spell(x, h): return h + x",
    squash: "def squash(x, h): return ndl.tanh(h * 2 + x)",
    count: "def count(x, h): return (x, 1 if h is None else h[1] + 1)",
}


def reading(cell: Callable, letters: tuple, start: Any) -> Case:
    """A cell that reads these letters, from this state on."""
    xs, as_tensors = repr(list(letters)), cell is squash

    def make() -> dict[str, Any]:
        inputs = [Tensor([x]) for x in letters] if as_tensors else list(letters)
        named = {f"x{place}": x for place, x in enumerate(inputs, start=1)} if as_tensors else {}
        return {cell.__name__: cell, "xs": inputs, "h": Tensor([start]) if as_tensors else start, **named}

    program = f"{PROGRAMS[cell]}\nxs = {f'[ndl.Tensor([x]) for x in {xs}]' if as_tensors else xs}"
    return given(make, cell.__name__, "xs", "h", program=program)


#: From 2, `fade` comes to 0 with the second of these, and stays at 2 with the fourth.
LISTS = ((1.0, 2.0, 4.0), (-1.0, 3.0), (2.0, 2.0, 5.0, 2.0), (1.0, 1.0), (7.0,), ())
LETTERS = (("a", "b"), ("v", "e", "r", "s", "e"), ("a",), ())
read_texts = st.one_of(
    st.tuples(st.just(fade), st.sampled_from(LISTS), st.sampled_from([8.0, 2.0, 0.0])),
    st.tuples(st.just(spell), st.sampled_from(LETTERS), st.sampled_from([">", ""])),
    st.tuples(
        st.just(squash), st.sampled_from([(0.5, -1.0, 2.0), (0.5, 0.5), (0.5,)]), st.sampled_from([0.25, 0.0])
    ),
    st.tuples(st.just(count), st.sampled_from(LETTERS), st.sampled_from([None, ("", 3)])),
)


@lecture.exercise(
    reading(fade, (1.0, 2.0, 4.0), 8.0),
    reading(squash, (0.5, -1.0, 2.0), 0.25),
    draws=read_texts.map(lambda parts: reading(*parts)),
    otherwise="Try `unroll(fade, [1, 2, 4], 8)` by hand: the states are 0.5 · 8 + 1 = 5, then 0.5 · 5 + 2 = "
    "4.5, then 0.5 · 4.5 + 4 = 6.25.",
    compare=one_chain,
)
def unroll(cell, xs, h):
    states = []
    for x in xs:
        h = cell(x, h)
        states.append(h)
    return states


# --- 3 How far back? ----------------------------------------------------------------------------------------


def a_sum() -> dict[str, Any]:
    """Two letters with other weights each."""
    x1, x2 = (Tensor([[1.0, 2.0]], dtype="float64") for _ in range(2))
    last = x1 * Tensor([[3.0, -4.0]]) + x2 * Tensor([[0.6, 0.8]])
    return {"last": last, "xs": [x1, x2], "x1": x1, "x2": x2}


def letters_through_a_cell(parts: tuple[int, int, int]) -> Case:
    """So many letters, of so many rows, through a cell of the library with weights of this seed."""
    number, rows, seed = parts

    def make() -> dict[str, Any]:
        rng, h = np.random.default_rng(number), None
        cell = RNNCell(3, 2, dtype="float64", rng=seed)
        xs = [Tensor(rng.normal(size=(rows, 3)), dtype="float64") for _ in range(number)]
        for x in xs:
            h = cell(x, h)
        return {"last": h, "xs": xs, **{f"x{place}": x for place, x in enumerate(xs, start=1)}}

    program = f"{number} letters of shape ({rows}, 3) through nn.RNNCell(3, 2, rng={seed})"
    return given(make, "last", "xs", program=program)


def as_list(found: Any) -> Any:
    """A list, also if it is an array of numbers."""
    return found.tolist() if isinstance(found, np.ndarray) else found


@lecture.exercise(
    given(
        a_sum, "last", "xs", program="last = x1 * ndl.Tensor([[3.0, -4.0]]) + x2 * ndl.Tensor([[0.6, 0.8]])"
    ),
    draws=st.tuples(*map(st.sampled_from, [(2, 3, 4, 1), (2, 1, 3), (0, 1, 2)])).map(letters_through_a_cell),
    number=40,
    otherwise="In the first case the gradient with respect to x1 is (3, −4), and its length is √(9 + 16) = 5.",
    use=lambda answer, *inputs: as_list(answer(*inputs)),
    without={
        Tensor.backward: "`backward` leaves gradients in the letters and the weights, and the next call adds to "
        "them. `ndl.gradients` only gives them to you."
    },
)
def reach(last, xs):
    gradients = ndl.gradients(last.sum(), xs)
    return [np.linalg.norm(gradient.numpy()) for gradient in gradients]


# --- 4 Gates ------------------------------------------------------------------------------------------------


@st.composite
def scores_and_memory(draw: Any) -> Case:
    """Four scores and the memory, each of other numbers."""
    shape = draw(st.sampled_from([(1, 2), (2, 3), (3, 3), (1, 1)]))
    seed, factor = draw(st.sampled_from(range(8))), draw(st.sampled_from([2.0, 1.0, 0.3, 100.0]))
    made = {
        name: factor * np.random.default_rng([seed, place]).normal(size=shape).round(1)
        for place, name in enumerate("ifgoc")
    }
    return given(lambda: {name: Tensor(numbers) for name, numbers in made.items()}, *made)


@lecture.exercise(
    seeded(dict.fromkeys("ifgoc", (1, 2))),
    draws=scores_and_memory(),
    number=40,
    otherwise="First the memory: c' = sigmoid(f) · c + sigmoid(i) · tanh(g). Then, with this new memory, "
    "h' = sigmoid(o) · tanh(c'). Return both, h' first.",
    without={LSTMCell.forward: "This is the library's own cell. Here you write its gates yourself."},
    contracts=(derivatives,),
)
def lstm_gates(i, f, g, o, c):
    c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g)
    return ndl.sigmoid(o) * ndl.tanh(c), c


# --- 5 It writes --------------------------------------------------------------------------------------------

TABLE = np.array(
    [[0.0, 2.0, 1.0, -1.0], [1.5, 0.0, 0.5, 2.5], [3.0, 1.0, 0.0, 2.0], [0.5, 1.0, 2.0, 0.0]], np.float64
)
TABLE.flags.writeable = False  # the scores belong to the reader


def follows(letter, state):
    """A reader of four letters, whose scores depend on the last letter alone."""
    return TABLE[int(letter)], state


def counts(letter, state):
    """A reader of three letters, whose scores depend on how many it has read, too. Its state may be 0."""
    read = 2 if state is None else state - 1
    return np.roll(TABLE[int(letter)], read)[:3], read


def remembers(letter, state):
    """A reader of four letters, whose state is a list of all that it has read."""
    read = [*([3] if state is None else state), int(letter)]
    return TABLE[read[-1]] + 2 * TABLE[read[-2]], read


def probabilities(scores, temperature):
    """The lecture's softmax with a temperature."""
    powers = np.exp((scores - scores.max()) / temperature)
    return powers / powers.sum()


def seeded_writing(answer: Any, read: Any, letter: int, count: int, temperature: float, seed: int) -> Any:
    """What an answer writes, with a generator of its own, as plain numbers."""
    found = as_list(answer(read, letter, count, temperature, np.random.default_rng(seed)))
    if isinstance(found, list):
        return [int(x) if isinstance(x, np.integer) else x for x in found]
    return found


@lecture.exercise(
    case(follows, 0, 12, 1.0, 5),
    draws=drawn(
        [counts, remembers, follows], (1, 2, 3, 0), (12, 8, 2, 1, 0), (0.5, 2.0, 1.0, 0.004), (5, 6, 7)
    ),
    otherwise="In each round: ask `read` for scores and the new state, turn the scores into probabilities, "
    "draw one letter with `rng.choice(len(p), p=p)`, and append it. It is the next letter to read.",
    use=seeded_writing,
    form="write({}, {}, {}, {}, np.random.default_rng({}))",
)
def write(read, letter, count, temperature, rng):
    written, state = [], None
    for _ in range(count):
        scores, state = read(letter, state)
        p = probabilities(scores, temperature)
        letter = rng.choice(len(p), p=p)
        written.append(letter)
    return written


# --- Pictures -----------------------------------------------------------------------------------------------


#: A letter, the length of its bar, and its probability.
BAR = (
    '<div style="display:flex;align-items:center;gap:8px;line-height:1.35">'
    '<code style="width:1.5em;background:none;color:inherit">{}</code>'
    '<div style="background:#2B6CB0;height:10px;width:{:.1f}%"></div><span>{:.0%}</span></div>'
)


class Page:
    """A page of verse, with the probabilities of one letter above it; a notebook shows it.

    Parameters
    ----------
    title, question, verse : str
    chances : mapping from a letter to its probability
    """

    def __init__(self, title: str, question: str, chances: Mapping[str, float], verse: str):
        self.title = title
        self.question = question
        self.chances = chances
        self.verse = verse

    def _repr_html_(self) -> str:
        bars = "".join(BAR.format(escape(shown(x)), max(60 * p, 0.2), p) for x, p in self.chances.items())
        return (
            '<div style="font:14px/1.5 system-ui,sans-serif;max-width:34em;color:inherit;text-align:left">'
            f'<p style="margin:4px 0"><b>{escape(self.title)}</b> · {escape(self.question)}</p>{bars}'
            '<div style="font:16px/1.5 Georgia,serif;white-space:pre-wrap;overflow-wrap:anywhere;'
            'border-left:3px solid #2B6CB0;padding:2px 12px;margin-top:10px">'
            f"{escape(self.verse)}</div></div>"
        )

    def __repr__(self) -> str:
        return f"{self.title}\n{self.verse}"


def shown(letter: str) -> str:
    """A letter as one can see it: a space and the end of a line have signs of their own."""
    return {" ": "␣", "\n": "↵"}.get(letter, letter)


def longest_quotation(verse: str, text: str) -> str:
    """The longest piece of `verse` that stands in `text`, letter for letter."""
    best = ""
    for start in range(len(verse)):
        while start + len(best) < len(verse) and verse[start : start + len(best) + 1] in text:
            best = verse[start : start + len(best) + 1]
    return best
