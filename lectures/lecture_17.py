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
check, ready, predict = lecture.check, lecture.ready, lecture.predict


@st.composite
def tensors(draw: Any, shapes: Mapping[str, tuple[int, ...]]) -> Case:
    """Tensors of these shapes, by their names, small enough that tanh and sigmoid tell them apart."""
    fills = ("irregular", "signed", "falling", "zeros between")
    made = {name: draw(arrays([shape], fills)) / 3 for name, shape in shapes.items()}
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
    draws=st.sampled_from([(2, 3, 4), (3, 2, 2), (2, 2, 2), (1, 2, 3), (3, 1, 2), (1, 1, 1)])
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


STEP = "ndl.tanh(x @ W_ih + h @ W_hh + b)"
rnn_cell.slip(
    "The tanh is missing. Without it, the state could grow without end from letter to letter.", "ndl.tanh", ""
)
rnn_cell.slip(
    "The old state is not in it, so the cell forgets everything. Add `h @ W_hh`.", " + h @ W_hh", ""
)
rnn_cell.slip("The letter is not in it, so the cell reads nothing. Add `x @ W_ih`.", "x @ W_ih + ", "")
rnn_cell.slip("The bias `b` is missing.", " + b", "")
rnn_cell.slip(
    "You take tanh of the letter's part only. Add up all three parts first, and then take tanh.",
    *(STEP, "ndl.tanh(x @ W_ih + b) + h @ W_hh"),
)
rnn_cell.slip(
    "You take tanh of each part. Add up all three parts first, and then take tanh once.",
    *(STEP, "ndl.tanh(x @ W_ih) + ndl.tanh(h @ W_hh) + b"),
)
rnn_cell.slip(
    "You take tanh of both parts. Add up all three first, and then take tanh once.",
    *(STEP, "ndl.tanh(x @ W_ih + b) + ndl.tanh(h @ W_hh)"),
)
rnn_cell.slip(
    "You take tanh of the two products, and add the bias after it. The bias belongs inside, too.",
    *(" + b)", ") + b"),
)
rnn_cell.slip(
    "Here the function around the sum is `ndl.tanh`. Yours keeps it from 0 to 1: that is a gate.",
    *("ndl.tanh", "ndl.sigmoid"),
)
rnn_cell.slip(
    "Here the function around the sum is `ndl.tanh`, which lets negative numbers through, too.",
    *("ndl.tanh", "ndl.relu"),
)
rnn_cell.slip("You add the state as it is. It has weights of its own: `h @ W_hh`.", "h @ W_hh", "h")
rnn_cell.slip(
    "The shapes do not fit. `x` belongs to `W_ih` (from the input to the hidden state), and `h` to `W_hh`. A "
    "letter is a row, so it stands on the left: `x @ W_ih`.",
    *(STEP, "ndl.tanh(x @ W_hh + h @ W_ih + b)"),
)
NO_HISTORY = (
    "The numbers are right, but something lost its history, so the gradient stops there. It must walk on to "
    "the weights, and to the letters before: leave out `.numpy()` and `detach`."
)
rnn_cell.slip(NO_HISTORY, STEP, f"Tensor({STEP}.numpy())")
rnn_cell.slip(NO_HISTORY, "h @ W_hh", "h.detach() @ W_hh")
rnn_cell.slip(
    "The state is a row, as the letter is, so both stand on the left of their weights: `h @ W_hh`.",
    *("h @ W_hh", "W_hh @ h"),
)
rnn_cell.slip("NumPy's tanh leaves no history, so it takes no Tensor. Use `ndl.tanh`.", "ndl.tanh", "np.tanh")
rnn_cell.slip("The new state is right. Return it alone, without the old one beside it.", STEP, f"{STEP}, h")


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


LISTS = ((1.0, 2.0, 4.0), (3.0, -1.0), (2.0, 2.0, 5.0, 2.0), (7.0,), ())
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


unroll.slip(
    "Each letter meets the state from the very beginning. Hand on the new state: `h = cell(x, h)`.",
    ("h = cell(x, h)", "new = cell(x, h)"),
    ("append(h)", "append(new)"),
)
unroll.slip(
    "This is only the state at the end. Return a list with the state after *each* letter.",
    *("return states", "return h"),
)
unroll.slip(
    "The state at the end stands in a list, but the others are missing. Append in the loop.",
    *("return states", "return [h]"),
)
unroll.slip(
    "Your list begins with the state before the first letter. Append *after* the cell has read a letter.",
    *("states = []", "states = [h]"),
)
unroll.slip(
    "You append before the cell reads, so each state is the one before its letter. First `h = cell(x, h)`, "
    "then append.",
    ("        states.append(h)\n", ""),
    ("h = cell", "states.append(h)\n        h = cell"),
)
unroll.slip("The letter comes first, and then the state: `cell(x, h)`.", "cell(x, h)", "cell(h, x)")
unroll.slip("You read the text from its end. Take the letters in their order.", "in xs", "in xs[::-1]")
unroll.slip(
    "The states are right, but the last stands first. Append each at the end of the list.",
    *("return states", "return states[::-1]"),
)
unroll.slip(
    "You return after the first letter. Is the `return` inside the loop?", "    return", "        return"
)
unroll.slip(
    "You collect the letters, and not the states. Append what the cell gives you.", "append(h)", "append(x)"
)
unroll.slip("Your loop stops one letter early. Go through all of `xs`: `for x in xs`.", "in xs", "in xs[:-1]")
unroll.slip(
    "You begin with `h` in place of the first letter's state. The cell reads the first letter as well: "
    "`h = cell(x, h)` for all of `xs`.",
    ("states = []", "states = [h]"),
    ("in xs", "in xs[1:]"),
)
unroll.slip("The cell takes two things: the letter and the state, `cell(x, h)`.", "cell(x, h)", "cell(x)")
unroll.slip(
    "The states have lost their history, so no gradient can walk back from letter to letter. Append what the "
    "cell gives you, without `detach`.",
    *("cell(x, h)", "cell(x, h)\n        h = h.detach() if is_tensor(h) else h"),
)
unroll.slip(
    "You call the cell twice for each letter, and hand on a state that is not the one in your list. Call it "
    "once: `h = cell(x, h)`. Then append `h`.",
    ("        states.append(h)\n", ""),
    ("h = cell", "states.append(cell(x, h))\n        h = cell"),
)
unroll.slip(
    "The cell is given None as its state. Begin with the `h` that you are given. And `append` returns None: "
    "do not put that into `h`.",
    *("states = []", "states, h = [], None"),
)


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
)
def reach(last, xs):
    gradients = ndl.gradients(last.sum(), xs)
    return [np.linalg.norm(gradient.numpy()) for gradient in gradients]


LENGTH = "np.linalg.norm(gradient.numpy())"
LENGTHS = f"[{LENGTH} for gradient in gradients]"
reach.slip(
    "You add up the entries, so positive and negative ones cancel. Take the length: `np.linalg.norm`.",
    *(LENGTH, "gradient.numpy().sum()"),
)
reach.slip(
    "This is the square of the length. `np.linalg.norm` takes the root, too.", LENGTH, f"{LENGTH} ** 2"
)
reach.slip(
    "This is the largest entry of each gradient. Take its length: `np.linalg.norm`.",
    *(LENGTH, "abs(gradient.numpy()).max()"),
)
reach.slip(
    "You add up the sizes of the entries. The length is the root of the sum of squares.",
    *(LENGTH, "abs(gradient.numpy()).sum()"),
)
reach.slip(
    "The lengths are right, but in reverse. Keep the order of the letters.", LENGTHS, LENGTHS + "[::-1]"
)
reach.slip(
    "These are the gradients themselves. Of each, return one number: its length.", LENGTHS, "gradients"
)
reach.slip(
    "These are the gradients as arrays. Of each, return one number: its length.", LENGTH, "gradient.numpy()"
)
reach.slip(
    "This is the length of the letters. Ask for the gradients: `ndl.gradients(last.sum(), xs)`.",
    *("ndl.gradients(last.sum(), xs)", "xs"),
)
reach.slip(
    "This is one length for all letters together. Each letter has a length of its own.",
    *(LENGTHS, f"sum(x**2 for x in {LENGTHS}) ** 0.5"),
)
reach.slip(
    "The lengths are right, but they are still Tensors. Of each, return a number: `.item()`.",
    *(LENGTH, "(gradient**2).sum() ** 0.5"),
)
reach.slip(
    "This is the length of the first row alone. A letter may have several rows: take the root of the sum of "
    "all squares.",
    *("gradient.numpy()", "gradient.numpy()[0]"),
)
reach.slip(
    "With a 2, `np.linalg.norm` asks something else of an array with several rows. Leave the 2 out, and it "
    "takes the root of the sum of all squares.",
    *("gradient.numpy()", "gradient.numpy(), 2"),
)
reach.slip("The first length is right. Return one for each letter.", LENGTHS, LENGTHS + "[:1]")
reach.slip(
    "You divide by the last length. Leave the lengths as they are.",
    *(LENGTH, f"{LENGTH} / np.linalg.norm(gradients[-1].numpy())"),
)


# --- 4 Gates ------------------------------------------------------------------------------------------------


def of_gates(shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """The shapes of four scores and the memory: all are the same."""
    return dict.fromkeys(("i", "f", "g", "o", "c"), shape)


@st.composite
def scores_and_memory(draw: Any) -> Case:
    """Four scores and the memory, each of other numbers."""
    shape = draw(st.sampled_from([(1, 2), (2, 3), (3, 3), (1, 1)]))
    seed, factor = draw(st.sampled_from(range(8))), draw(st.sampled_from([2.0, 1.0, 0.3]))
    made = {
        name: factor * np.random.default_rng([seed, place]).normal(size=shape).round(1)
        for place, name in enumerate("ifgoc")
    }
    return given(lambda: {name: Tensor(numbers) for name, numbers in made.items()}, *made)


@lecture.exercise(
    seeded(of_gates((1, 2))),
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


MEMORY = "c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g)"
STATES = "ndl.sigmoid(o) * ndl.tanh(c), c"
lstm_gates.slip(
    "The memory comes first in your answer. Return the state h' first, then the memory c'.",
    *(STATES, "c, ndl.sigmoid(o) * ndl.tanh(c)"),
)
lstm_gates.slip(
    "You swapped `i` and `f`: f says how much is *kept*, i how much is *written*.",
    *(MEMORY, "c = ndl.sigmoid(i) * c + ndl.sigmoid(f) * ndl.tanh(g)"),
)
lstm_gates.slip(
    "You use the old memory for h'. The state looks at the new one: first c', then h'.",
    ("c = ndl", "new = ndl"),
    ("tanh(c), c", "tanh(c), new"),
)
lstm_gates.slip(
    "`f` is a score, and may be any number. A gate is its sigmoid: a share from 0 to 1.",
    "ndl.sigmoid(f)",
    "f",
)
lstm_gates.slip(
    "`i` is a score, and may be any number. A gate is its sigmoid: a share from 0 to 1.",
    "ndl.sigmoid(i)",
    "i",
)
lstm_gates.slip(
    "`o` is a score, and may be any number. A gate is its sigmoid: a share from 0 to 1.",
    "ndl.sigmoid(o)",
    "o",
)
lstm_gates.slip("What is written is not gated: multiply tanh(g) by sigmoid(i).", "ndl.sigmoid(i) * ", "")
lstm_gates.slip(
    "Nothing is forgotten in yours: multiply the old memory by sigmoid(f).", "ndl.sigmoid(f) * ", ""
)
lstm_gates.slip(
    "What is forgotten and what is written add up to 1 in yours. Here, `i` is a gate of its own.",
    *("ndl.sigmoid(i)", "(1 - ndl.sigmoid(f))"),
)
lstm_gates.slip(
    "`g` is what may be written, of either sign: it takes tanh. The three gates take sigmoid.",
    *("ndl.tanh(g)", "ndl.sigmoid(g)"),
)
lstm_gates.slip(
    "A gate is a share from 0 to 1, so it takes sigmoid. Only `g` and the memory take tanh.",
    ("ndl.sigmoid(f)", "ndl.tanh(f)"),
    ("ndl.sigmoid(i)", "ndl.tanh(i)"),
    ("ndl.sigmoid(o)", "ndl.tanh(o)"),
)
lstm_gates.slip(
    "Before the memory leaves the cell, it goes through tanh: sigmoid(o) · tanh(c').", "ndl.tanh(c)", "c"
)
lstm_gates.slip("The output gate is missing: h' = sigmoid(o) · tanh(c').", "ndl.sigmoid(o) * ", "")
lstm_gates.slip("`g` is still a score. It takes tanh before it is written.", "ndl.tanh(g)", "g")
lstm_gates.slip(
    "This is the state alone. Return the memory as well: the next step needs it.", "tanh(c), c", "tanh(c)"
)
CUT_OFF = (
    "The numbers are right, but a memory lost its history, so no gradient could come back along it to the "
    "letters before. Leave out `detach` and `.numpy()`."
)
lstm_gates.slip(CUT_OFF, "tanh(c), c", "tanh(c), c.detach()")
lstm_gates.slip(CUT_OFF, ") * c +", ") * c.detach() +")
lstm_gates.slip(
    "The forget gate is the share that is *kept*, whatever its name says: sigmoid(f) · c, without `1 -`.",
    *("ndl.sigmoid(f)", "(1 - ndl.sigmoid(f))"),
)
lstm_gates.slip(
    "A gate multiplies entry by entry, each number of the memory by its own share: `*`, not `@`.",
    *("ndl.sigmoid(f) * c", "ndl.sigmoid(f) @ c"),
)


# --- 5 It writes --------------------------------------------------------------------------------------------

TABLE = np.array(
    [[0.0, 2.0, 1.0, -1.0], [1.5, 0.0, 0.5, 2.5], [3.0, 1.0, 0.0, 2.0], [0.5, 1.0, 2.0, 0.0]], np.float64
)


def follows(letter, state):
    """A reader of four letters, whose scores depend on the last letter alone."""
    return TABLE[int(letter)], state


def counts(letter, state):
    """A reader of four letters, whose scores depend on how many it has read, too."""
    read = 2 if state is None else state + 1
    return np.roll(TABLE[int(letter)], read), read


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
        [counts, remembers, follows], (1, 2, 3, 0), (12, 8, 2, 1, 0), (0.5, 2.0, 1.0, 0.2), (5, 6, 7)
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


DRAW = "letter = rng.choice(len(p), p=p)"
write.slip(
    "You always take the letter with the largest score, so the same text comes each time. Draw one by chance.",
    *(DRAW, "letter = p.argmax()"),
)
write.slip(
    "It reads the first letter again and again. What was just written is the next letter to read.",
    (DRAW, DRAW.replace("letter", "new")),
    ("append(letter)", "append(new)"),
)
write.slip(
    "The state is not handed on: it begins anew with each letter. Keep what `read` returns, and pass it to "
    "the next call.",
    *("read(letter, state)", "read(letter, None)"),
)
write.slip(
    "The state begins with None, and not with a number: `read` makes the first state itself.",
    "[], None",
    "[], 0",
)
write.slip(
    "The temperature is not in it: `probabilities(scores, temperature)`.",
    "(scores, temperature)",
    "(scores, 1)",
)
write.slip(
    "You multiply by the temperature. Divide: a high temperature makes the scores more alike.",
    *("(scores, temperature)", "(scores, 1 / temperature)"),
)
write.slip(
    "Your list begins with the letter that was given. Only the `count` letters after it are asked for.",
    *("written, state = []", "written, state = [letter]"),
)
write.slip(
    "You append before you draw, so the list begins with the given letter and lacks the last. Draw, then "
    "append.",
    ("        written.append(letter)\n", ""),
    ("        scores, state", "        written.append(letter)\n        scores, state"),
)
write.slip(
    "You return after the first letter. Is the `return` inside the loop?", "    return", "        return"
)
write.slip("This is only the last letter. Collect all of them in a list.", "return written", "return letter")
write.slip(
    "`p` has to be probabilities: from 0 on, with the sum 1. Scores are neither: `probabilities(scores, "
    "temperature)`.",
    *("probabilities(scores, temperature)", "scores"),
)
write.slip("All letters are equally likely in yours. Give the probabilities to the draw: `p=p`.", ", p=p", "")
write.slip("One letter too many: draw `count` of them.", "range(count)", "range(count + 1)")
write.slip(
    "You divide by the temperature twice: `probabilities` does it already.",
    *("(scores, temperature)", "(scores / temperature, temperature)"),
)
write.slip(
    "Draw with the `rng` that you are given. A new generator in each round draws the same again.",
    *("rng.choice", "np.random.default_rng(0).choice"),
)
write.slip(
    "It reads the number of the round. Read the letter that was just written, and give the loop's own number "
    "another name: `for _ in range(count)`.",
    *("for _ in", "for letter in"),
)


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
