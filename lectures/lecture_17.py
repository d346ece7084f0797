"""Lecture 17, sequences: its exercises, the usual mistakes in them, its predictions, its page of verse."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from needle import ops
from needle.autograd import Tensor, find_topo_sort, gradients
from needle.nn import RNNCell

from .checking import Lecture, Names, case, given, is_tensor, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


# --- 1 A cell -----------------------------------------------------------------------------------------------

CELL = ("x", "h", "W_ih", "W_hh", "b")


def weights(rows: int, inputs: int, hidden: int, seed: int) -> Any:
    """Makes the inputs of a case: letters, a state, and the weights of a cell."""

    def make() -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        shapes = ((rows, inputs), (rows, hidden), (inputs, hidden), (hidden, hidden), (hidden,))
        return {
            name: Tensor(rng.normal(size=shape).round(1)) for name, shape in zip(CELL, shapes, strict=True)
        }

    return make


def _with_history(expected: Any, got: Any, names: Names) -> str:
    """`values`, and Tensors that a gradient can walk back from."""
    if difference := values(expected, got, names):
        return difference
    several = isinstance(expected, (list, tuple))
    for right, given_back in zip(expected, got, strict=True) if several else [(expected, got)]:
        wanted, reached = _reached(right, names), _reached(given_back, names)
        if wanted != reached:
            cut = ", ".join(name for name in wanted if name not in reached)
            return f"the numbers are right, but no gradient can walk back to {cut}"
    return ""


def _reached(result: Any, names: Names) -> list[str]:
    """The inputs of a case that a gradient comes to from a result, by name."""
    nodes = find_topo_sort([result]) if is_tensor(result) and result.op is not None else []
    return sorted(names[id(node)] for node in nodes if id(node) in names)


@lecture.exercise(
    given(weights(1, 3, 2, seed=0), *CELL),
    given(weights(2, 3, 4, seed=1), *CELL),
    given(weights(2, 2, 2, seed=2), *CELL),
    otherwise="Add up three parts: the letter times `W_ih`, the state times `W_hh`, and `b`. Take `ndl.tanh` "
    "of the sum, once.",
    compare=_with_history,
)
def rnn_cell(x, h, W_ih, W_hh, b):
    """One step of an Elman network, in one line."""
    return ops.tanh(x @ W_ih + h @ W_hh + b)


@rnn_cell.mistake("The tanh is missing. Without it, the state could grow without end from letter to letter.")
def no_tanh(x, h, W_ih, W_hh, b):
    return x @ W_ih + h @ W_hh + b


@rnn_cell.mistake("The old state is not in it, so the cell forgets everything. Add `h @ W_hh`.")
def forgets(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih + b)


@rnn_cell.mistake("The letter is not in it, so the cell reads nothing. Add `x @ W_ih`.")
def blind(x, h, W_ih, W_hh, b):
    return ops.tanh(h @ W_hh + b)


@rnn_cell.mistake("The bias `b` is missing.")
def no_bias(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih + h @ W_hh)


@rnn_cell.mistake(
    "You take tanh of the letter's part only. Add up all three parts first, and then take tanh."
)
def tanh_of_the_letter(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih + b) + h @ W_hh


@rnn_cell.mistake("You take tanh of each part. Add up all three parts first, and then take tanh once.")
def tanh_of_each(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih) + ops.tanh(h @ W_hh) + b


@rnn_cell.mistake(
    "You take tanh of the two products, and add the bias after it. The bias belongs inside, too."
)
def bias_outside(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih + h @ W_hh) + b


@rnn_cell.mistake(
    "Here the function around the sum is `ndl.tanh`. Yours keeps it from 0 to 1: that is a gate."
)
def sigmoid_instead(x, h, W_ih, W_hh, b):
    return ops.sigmoid(x @ W_ih + h @ W_hh + b)


@rnn_cell.mistake("Here the function around the sum is `ndl.tanh`, which lets negative numbers through, too.")
def relu_instead(x, h, W_ih, W_hh, b):
    return ops.relu(x @ W_ih + h @ W_hh + b)


@rnn_cell.mistake("You add the state as it is. It has weights of its own: `h @ W_hh`.")
def state_as_it_is(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih + h + b)


@rnn_cell.mistake(
    "The shapes do not fit. `x` belongs to `W_ih` (from the input to the hidden state), and `h` to `W_hh`. A "
    "letter is a row, so it stands on the left: `x @ W_ih`."
)
def swapped(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_hh + h @ W_ih + b)


@rnn_cell.mistake(
    "You swapped the two matrices. `x` belongs to `W_ih` (from the input to the hidden state), and `h` to "
    "`W_hh`."
)
def swapped_state_first(x, h, W_ih, W_hh, b):
    return ops.tanh(h @ W_ih + x @ W_hh + b)


@rnn_cell.mistake(
    "These numbers have no history, so no gradient could reach the weights. Use `ndl.tanh`, and leave out "
    "`.numpy()`."
)
def as_numbers(x, h, W_ih, W_hh, b):
    return Tensor(rnn_cell.right(x, h, W_ih, W_hh, b).numpy())


@rnn_cell.mistake(
    "The state lost its history, so the gradient stops here. It must walk on to the letters before: leave "
    "out `detach`."
)
def state_detached(x, h, W_ih, W_hh, b):
    return rnn_cell.right(x, h.detach(), W_ih, W_hh, b)


@rnn_cell.mistake(
    "The state is a row, as the letter is, so both stand on the left of their weights: `h @ W_hh`."
)
def state_on_the_right(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih + W_hh @ h + b)


@rnn_cell.mistake("`*` multiplies entry by entry. A row times a matrix is `@`: `x @ W_ih`.")
def entry_by_entry(x, h, W_ih, W_hh, b):
    return ops.tanh(x * W_ih + h * W_hh + b)


@rnn_cell.mistake("NumPy's tanh leaves no history, so it takes no Tensor. Use `ndl.tanh`.")
def numpy_tanh(x, h, W_ih, W_hh, b):
    return np.tanh(x @ W_ih + h @ W_hh + b)


@rnn_cell.mistake("You take tanh of both parts. Add up all three first, and then take tanh once.")
def tanh_of_both(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih + b) + ops.tanh(h @ W_hh)


@rnn_cell.mistake("This is an array of NumPy's. Stay with Tensors: `ndl.tanh`, without `.numpy()`.")
def as_an_array(x, h, W_ih, W_hh, b):
    return rnn_cell.right(x, h, W_ih, W_hh, b).numpy()


@rnn_cell.mistake("The new state is right. Return it alone, without a list around it.")
def in_a_list(x, h, W_ih, W_hh, b):
    return [rnn_cell.right(x, h, W_ih, W_hh, b)]


@rnn_cell.mistake("The new state is right. Return it alone, without the old one beside it.")
def with_the_old(x, h, W_ih, W_hh, b):
    return rnn_cell.right(x, h, W_ih, W_hh, b), h


@rnn_cell.mistake("You take only the letter's part. Add the state's part, `h @ W_hh`, and the bias `b`.")
def the_letter_alone(x, h, W_ih, W_hh, b):
    return ops.tanh(x @ W_ih)


@rnn_cell.mistake(
    "The numbers are right, but they were copied into another cell, so no gradient reaches the weights that "
    "you were given. Multiply by these: `x @ W_ih`."
)
def in_another_cell(x, h, W_ih, W_hh, b):
    return rnn_cell.right(x, h, W_ih.detach(), W_hh.detach(), b.detach())


# --- 2 Unroll -----------------------------------------------------------------------------------------------


def _one_chain(expected: Any, got: Any, names: Names) -> str:
    """`_with_history`, and a list in which each Tensor leads to the next."""
    if difference := _with_history(expected, got, names):
        return difference
    if _links(expected) != _links(got):
        return "the numbers are right, but the state that was handed on is not the one in the list"
    return ""


def _links(states: Any) -> list[bool]:
    """Of two states in a row, whether the first is in the history of the second."""
    if not isinstance(states, (list, tuple)) or not all(map(is_tensor, states)):
        return []
    return [
        any(before is node for node in find_topo_sort([after])) if after.op is not None else False
        for before, after in pairwise(states)
    ]


FADE = "def fade(x, h): return 0.5 * h + x"
SQUASH = "def squash(x, h): return ndl.tanh(h * 2 + x)\nxs = [ndl.Tensor([z]) for z in (0.5, -1.0, 2.0)]"


def spell(x, h):
    """A cell whose state is all that it has read."""
    return h + x


def fade(x, h):
    """A cell that halves its state, and adds what it reads."""
    return 0.5 * h + x


def squash(x, h):
    """A cell of Tensors, with one weight."""
    return ops.tanh(h * 2 + x)


def three_letters() -> dict[str, Any]:
    """Three Tensors of one number, and a state."""
    x1, x2, x3 = (Tensor([number]) for number in (0.5, -1.0, 2.0))
    return {"squash": squash, "xs": [x1, x2, x3], "x1": x1, "x2": x2, "x3": x3, "h0": Tensor([0.25])}


@lecture.exercise(
    given(
        lambda: {"fade": fade, "xs": [1.0, 2.0, 4.0], "h": 8.0},
        *("fade", "xs", "h"),
        program=FADE + "\nxs = [1, 2, 4]",
    ),
    given(
        lambda: {"spell": spell, "xs": list("verse"), "h": ">"},
        *("spell", "xs", "h"),
        program="def spell(x, h): return h + x\nxs = list('verse')",
    ),
    given(three_letters, "squash", "xs", "h0", program=SQUASH),
    given(lambda: {"fade": fade, "xs": [], "h": 1.0}, *("fade", "xs", "h"), program=FADE + "\nxs = []"),
    otherwise="Try `unroll(fade, [1, 2, 4], 8)` by hand: the states are 0.5 · 8 + 1 = 5, then 0.5 · 5 + 2 = "
    "4.5, then 0.5 · 4.5 + 4 = 6.25.",
    compare=_one_chain,
)
def unroll(cell, xs, h):
    """The states after each letter."""
    states = []
    for x in xs:
        h = cell(x, h)
        states.append(h)
    return states


@unroll.mistake(
    "Each letter meets the state from the very beginning. Hand on the new state: `h = cell(x, h)`."
)
def not_handed_on(cell, xs, h):
    return [cell(x, h) for x in xs]


@unroll.mistake("This is only the state at the end. Return a list with the state after *each* letter.")
def only_the_last(cell, xs, h):
    for x in xs:
        h = cell(x, h)
    return h


@unroll.mistake("The state at the end stands in a list, but the others are missing. Append in the loop.")
def the_last_in_a_list(cell, xs, h):
    for x in xs:
        h = cell(x, h)
    return [h]


@unroll.mistake(
    "Your list begins with the state before the first letter. Append *after* the cell has read a letter."
)
def with_the_start(cell, xs, h):
    return [h, *unroll.right(cell, xs, h)]


@unroll.mistake(
    "You append before the cell reads, so each state is the one before its letter. First `h = cell(x, h)`, "
    "then append."
)
def one_too_early(cell, xs, h):
    return [h, *unroll.right(cell, xs, h)][: len(xs)]


@unroll.mistake("The letter comes first, and then the state: `cell(x, h)`.")
def other_way_round(cell, xs, h):
    return unroll.right(lambda x, state: cell(state, x), xs, h)


@unroll.mistake("You read the text from its end. Take the letters in their order.")
def backwards(cell, xs, h):
    return unroll.right(cell, xs[::-1], h)


@unroll.mistake("The states are right, but the last stands first. Append each at the end of the list.")
def last_first(cell, xs, h):
    return unroll.right(cell, xs, h)[::-1]


@unroll.mistake("You return after the first letter. Is the `return` inside the loop?")
def first_letter(cell, xs, h):
    return unroll.right(cell, xs[:1], h) if xs else None


@unroll.mistake("You collect the letters, and not the states. Append what the cell gives you.")
def the_letters(cell, xs, h):
    return list(xs)


@unroll.mistake("Your loop stops one letter early. Go through all of `xs`: `for x in xs`.")
def one_too_few(cell, xs, h):
    return unroll.right(cell, xs[:-1], h)


@unroll.mistake(
    "You begin with `h` in place of the first letter's state. The cell reads the first letter as well: "
    "`h = cell(x, h)` for all of `xs`."
)
def first_skipped(cell, xs, h):
    return [h, *unroll.right(cell, xs[1:], h)]


@unroll.mistake("The cell takes two things: the letter and the state, `cell(x, h)`.")
def without_the_state(cell, xs, h):
    return [cell(x) for x in xs]


@unroll.mistake("The cell reads one letter at a time. Call it in a loop: `for x in xs`.")
def all_at_once(cell, xs, h):
    return [cell(xs, h)]


@unroll.mistake(
    "The states have lost their history, so no gradient can walk back from letter to letter. Append what the "
    "cell gives you, without `detach`."
)
def detached(cell, xs, h):
    states = []
    for x in xs:
        h = cell(x, h)
        h = h.detach() if is_tensor(h) else h
        states.append(h)
    return states


@unroll.mistake("One list of states is enough: return it alone, without the last state beside it.")
def list_and_last(cell, xs, h):
    return unroll.right(cell, xs, h), h


@unroll.mistake(
    "You call the cell twice for each letter, and hand on a state that is not the one in your list. Call it "
    "once: `h = cell(x, h)`. Then append `h`."
)
def read_twice(cell, xs, h):
    states = []
    for x in xs:
        states.append(cell(x, h))
        h = cell(x, h)
    return states


@unroll.mistake(
    "The cell is given None as its state. Begin with the `h` that you are given. And `append` returns None: "
    "do not put that into `h`."
)
def none_as_state(cell, xs, h):
    return unroll.right(cell, xs, None)


@unroll.mistake("`append` changes the list, and returns None. Write `states.append(h)` on a line of its own.")
def append_assigned(cell, xs, h):
    states: Any = []
    for x in xs:
        h = cell(x, h)
        states = states.append(h)
    return states


@unroll.mistake("Each round reads the first letter. Take the next one each time: `for x in xs`.")
def first_again(cell, xs, h):
    return unroll.right(cell, [xs[0] for _ in xs], h)


# --- 3 How far back? ----------------------------------------------------------------------------------------


def _numbers(count: int, size: int) -> list[Tensor]:
    rng = np.random.default_rng(count)
    return [Tensor(rng.normal(size=(2, size)), dtype="float64") for _ in range(count)]


def a_sum() -> dict[str, Any]:
    """Two letters with other weights each."""
    x1, x2 = (Tensor([[1.0, 2.0]], dtype="float64") for _ in range(2))
    last = x1 * Tensor([[3.0, -4.0]]) + x2 * Tensor([[0.6, 0.8]])
    return {"last": last, "xs": [x1, x2], "x1": x1, "x2": x2}


def four_letters() -> dict[str, Any]:
    """Four letters through a cell of the library."""
    cell, xs, h = RNNCell(3, 2, dtype="float64", rng=0), _numbers(4, 3), None
    for x in xs:
        h = cell(x, h)
    return {"last": h, "xs": xs, **{f"x{number}": x for number, x in enumerate(xs, start=1)}}


def _as_list(found: Any) -> Any:
    """A list, also if it is an array of numbers."""
    return found.tolist() if isinstance(found, np.ndarray) else found


@lecture.exercise(
    given(
        a_sum,
        *("last", "xs"),
        program="last = x1 * ndl.Tensor([[3.0, -4.0]]) + x2 * ndl.Tensor([[0.6, 0.8]])",
    ),
    given(four_letters, "last", "xs", program="h = cell(x1, None), …; last = cell(x4, h)"),
    otherwise="In the first case the gradient with respect to x1 is (3, −4), and its length is √(9 + 16) = "
    "5.",
    use=lambda answer, *inputs: _as_list(answer(*inputs)),
)
def reach(last, xs):
    """The length of each gradient."""
    return [float(np.linalg.norm(gradient.numpy())) for gradient in gradients(last.sum(), xs)]


def _gradients(last, xs):
    return [gradient.numpy() for gradient in gradients(last.sum(), xs)]


@reach.mistake(
    "You add up the entries, so positive and negative ones cancel. Take the length: `np.linalg.norm`."
)
def entries_added(last, xs):
    return [float(g.sum()) for g in _gradients(last, xs)]


@reach.mistake("This is the square of the length. `np.linalg.norm` takes the root, too.")
def squared(last, xs):
    return [float((g * g).sum()) for g in _gradients(last, xs)]


@reach.mistake("This is the largest entry of each gradient. Take its length: `np.linalg.norm`.")
def largest(last, xs):
    return [float(abs(g).max()) for g in _gradients(last, xs)]


@reach.mistake("You add up the sizes of the entries. The length is the root of the sum of squares.")
def sizes_added(last, xs):
    return [float(abs(g).sum()) for g in _gradients(last, xs)]


@reach.mistake("The lengths are right, but in reverse. Keep the order of the letters.")
def reversed_order(last, xs):
    return reach.right(last, xs)[::-1]


@reach.mistake("These are the gradients themselves. Of each, return one number: its length.")
def whole_gradients(last, xs):
    return gradients(last.sum(), xs)


@reach.mistake("These are the gradients as arrays. Of each, return one number: its length.")
def whole_arrays(last, xs):
    return _gradients(last, xs)


@reach.mistake("This is the length of the letters. Ask for the gradients: `ndl.gradients(last.sum(), xs)`.")
def of_the_letters(last, xs):
    return [float(np.linalg.norm(x.numpy())) for x in xs]


@reach.mistake("This is one length for all letters together. Each letter has a length of its own.")
def all_together(last, xs):
    return float(np.linalg.norm(np.concatenate(_gradients(last, xs))))


@reach.mistake("This is the mean of the sizes. The length is the root of the sum of squares.")
def mean_size(last, xs):
    return [float(abs(g).mean()) for g in _gradients(last, xs)]


@reach.mistake("The lengths are right, but they are still Tensors. Of each, return a number: `.item()`.")
def still_tensors(last, xs):
    return [(gradient**2).sum() ** 0.5 for gradient in gradients(last.sum(), xs)]


@reach.mistake("You divide by the number of entries. A length is `np.linalg.norm`, without a mean.")
def of_the_mean(last, xs):
    return [float(np.linalg.norm(g)) / g.size for g in _gradients(last, xs)]


@reach.mistake("This is the length for the first letter alone. Return a list, with one length for each.")
def first_alone(last, xs):
    return reach.right(last, xs)[0]


@reach.mistake(
    "This is the length of the first row alone. A letter may have several rows: take the root of the sum of "
    "all squares."
)
def of_the_first_row(last, xs):
    return [float(np.linalg.norm(g[0])) for g in _gradients(last, xs)]


@reach.mistake(
    "With a 2, `np.linalg.norm` asks something else of an array with several rows. Leave the 2 out, and it "
    "takes the root of the sum of all squares."
)
def with_a_two(last, xs):
    return [float(np.linalg.norm(g, 2)) for g in _gradients(last, xs)]


@reach.mistake("The first length is right. Return one for each letter.")
def first_in_a_list(last, xs):
    return reach.right(last, xs)[:1]


@reach.mistake("Each of these is the length for the first letter. Take that of each letter's own gradient.")
def first_for_all(last, xs):
    return [reach.right(last, xs)[0] for _ in xs]


@reach.mistake("You divide by the last length. Leave the lengths as they are.")
def as_shares(last, xs):
    lengths = reach.right(last, xs)
    return [length / lengths[-1] for length in lengths]


# --- 4 Gates ------------------------------------------------------------------------------------------------

GATES = ("i", "f", "g", "o", "c")


def scores(rows: int, hidden: int, seed: int) -> Any:
    """Makes the inputs of a case: four scores and the memory, of the same shape."""

    def make() -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        return {name: Tensor(rng.normal(size=(rows, hidden)).round(1) * 2) for name in GATES}

    return make


@lecture.exercise(
    given(scores(1, 2, seed=0), *GATES),
    given(scores(2, 3, seed=1), *GATES),
    otherwise="First the memory: c' = sigmoid(f) · c + sigmoid(i) · tanh(g). Then, with this new memory, "
    "h' = sigmoid(o) · tanh(c'). Return both, h' first.",
    compare=_with_history,
)
def lstm_gates(i, f, g, o, c):
    """The state and the memory after a step."""
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def _lstm(i, f, g, o, c, keep=ops.sigmoid, write=ops.sigmoid, new=ops.tanh, show=ops.sigmoid, out=ops.tanh):
    """A step with other functions around its scores."""
    c = keep(f) * c + write(i) * new(g)
    return show(o) * out(c), c


def _as_it_is(x):
    return x


@lstm_gates.mistake("The memory comes first in your answer. Return the state h' first, then the memory c'.")
def memory_first(i, f, g, o, c):
    return lstm_gates.right(i, f, g, o, c)[::-1]


@lstm_gates.mistake("You swapped `i` and `f`: f says how much is *kept*, i how much is *written*.")
def gates_swapped(i, f, g, o, c):
    return lstm_gates.right(f, i, g, o, c)


@lstm_gates.mistake("You use the old memory for h'. The state looks at the new one: first c', then h'.")
def old_memory(i, f, g, o, c):
    return ops.sigmoid(o) * ops.tanh(c), lstm_gates.right(i, f, g, o, c)[1]


@lstm_gates.mistake("`f` is a score, and may be any number. A gate is its sigmoid: a share from 0 to 1.")
def keep_without_sigmoid(i, f, g, o, c):
    return _lstm(i, f, g, o, c, keep=_as_it_is)


@lstm_gates.mistake("The scores may be any numbers. A gate is the sigmoid of its score: a share from 0 to 1.")
def no_sigmoid(i, f, g, o, c):
    return _lstm(i, f, g, o, c, keep=_as_it_is, write=_as_it_is, show=_as_it_is)


@lstm_gates.mistake("What is written is not gated: multiply tanh(g) by sigmoid(i).")
def not_gated(i, f, g, o, c):
    return _lstm(i, f, g, o, c, write=lambda i: 1.0)


@lstm_gates.mistake("Nothing is forgotten in yours: multiply the old memory by sigmoid(f).")
def all_kept(i, f, g, o, c):
    return _lstm(i, f, g, o, c, keep=lambda f: 1.0)


@lstm_gates.mistake(
    "What is forgotten and what is written add up to 1 in yours. Here, `i` is a gate of its own."
)
def coupled(i, f, g, o, c):
    return _lstm(-f, f, g, o, c)


@lstm_gates.mistake(
    "`g` is what may be written, of either sign: it takes tanh. The three gates take sigmoid."
)
def sigmoid_everywhere(i, f, g, o, c):
    return _lstm(i, f, g, o, c, new=ops.sigmoid)


@lstm_gates.mistake("A gate is a share from 0 to 1, so it takes sigmoid. Only `g` and the memory take tanh.")
def tanh_everywhere(i, f, g, o, c):
    return _lstm(i, f, g, o, c, keep=ops.tanh, write=ops.tanh, show=ops.tanh)


@lstm_gates.mistake("Before the memory leaves the cell, it goes through tanh: sigmoid(o) · tanh(c').")
def memory_untouched(i, f, g, o, c):
    return _lstm(i, f, g, o, c, out=_as_it_is)


@lstm_gates.mistake("The output gate is missing: h' = sigmoid(o) · tanh(c').")
def always_open(i, f, g, o, c):
    return _lstm(i, f, g, o, c, show=lambda o: 1.0)


@lstm_gates.mistake("The old memory is not in it. Keep a share of it: sigmoid(f) · c.")
def nothing_kept(i, f, g, o, c):
    return _lstm(i, f, g, o, c, keep=lambda f: 0.0)


@lstm_gates.mistake("`g` is still a score. It takes tanh before it is written.")
def new_without_tanh(i, f, g, o, c):
    return _lstm(i, f, g, o, c, new=_as_it_is)


@lstm_gates.mistake("This is the state alone. Return the memory as well: the next step needs it.")
def state_only(i, f, g, o, c):
    return lstm_gates.right(i, f, g, o, c)[0]


@lstm_gates.mistake("This is the memory alone. Return the state as well, and the state first.")
def memory_only(i, f, g, o, c):
    return lstm_gates.right(i, f, g, o, c)[1]


@lstm_gates.mistake("You swapped `i` and `o`: i says how much is *written*, o how much is *shown*.")
def written_and_shown_swapped(i, f, g, o, c):
    return lstm_gates.right(o, f, g, i, c)


@lstm_gates.mistake("The output gate is a share from 0 to 1: sigmoid(o). Only `g` and the memory take tanh.")
def tanh_of_o(i, f, g, o, c):
    return _lstm(i, f, g, o, c, show=ops.tanh)


@lstm_gates.mistake("None of the sums went through a function: the gates take sigmoid, and `g` takes tanh.")
def as_they_are(i, f, g, o, c):
    return _lstm(i, f, g, o, c, keep=_as_it_is, write=_as_it_is, new=_as_it_is, show=_as_it_is)


@lstm_gates.mistake("Only the old memory goes through the forget gate. What is new has a gate of its own.")
def new_forgotten_too(i, f, g, o, c):
    c = ops.sigmoid(f) * (c + ops.sigmoid(i) * ops.tanh(g))
    return ops.sigmoid(o) * ops.tanh(c), c


@lstm_gates.mistake(
    "The gradient stops at the new memory, and this is the way that it should come back. Leave out `detach` "
    "and `.numpy()`."
)
def memory_cut(i, f, g, o, c):
    c = lstm_gates.right(i, f, g, o, c)[1].detach()
    return ops.sigmoid(o) * ops.tanh(c), c


@lstm_gates.mistake(
    "The memory that you return has no history, so no gradient could come back along it. Return it without "
    "`detach` and `.numpy()`."
)
def returned_cut(i, f, g, o, c):
    state, memory = lstm_gates.right(i, f, g, o, c)
    return state, memory.detach()


@lstm_gates.mistake("These numbers have no history, so nothing could be learned. Leave out `.numpy()`.")
def gates_as_numbers(i, f, g, o, c):
    return tuple(Tensor(x.numpy()) for x in lstm_gates.right(i, f, g, o, c))


@lstm_gates.mistake("`i` is a score, and may be any number. A gate is its sigmoid: a share from 0 to 1.")
def write_without_sigmoid(i, f, g, o, c):
    return _lstm(i, f, g, o, c, write=_as_it_is)


@lstm_gates.mistake("`o` is a score, and may be any number. A gate is its sigmoid: a share from 0 to 1.")
def show_without_sigmoid(i, f, g, o, c):
    return _lstm(i, f, g, o, c, show=_as_it_is)


@lstm_gates.mistake(
    "The forget gate is the share that is *kept*, whatever its name says: sigmoid(f) · c, without `1 -`."
)
def share_forgotten(i, f, g, o, c):
    return _lstm(i, -f, g, o, c)


@lstm_gates.mistake(
    "Only what the cell shows goes through tanh. The memory itself stays as it is: c' = sigmoid(f) · c + "
    "sigmoid(i) · tanh(g)."
)
def memory_squashed(i, f, g, o, c):
    c = ops.tanh(lstm_gates.right(i, f, g, o, c)[1])
    return ops.sigmoid(o) * c, c


@lstm_gates.mistake("You return the state twice. The second of the two is the memory, c'.")
def state_twice(i, f, g, o, c):
    return (lstm_gates.right(i, f, g, o, c)[0],) * 2


@lstm_gates.mistake("These are arrays of NumPy's. Stay with Tensors: `ndl.sigmoid` and `ndl.tanh`.")
def gates_as_arrays(i, f, g, o, c):
    return tuple(x.numpy() for x in lstm_gates.right(i, f, g, o, c))


@lstm_gates.mistake("NumPy's functions take no Tensor. Use `ndl.sigmoid` and `ndl.tanh`.")
def numpy_tanh_of_g(i, f, g, o, c):
    return np.tanh(g)


@lstm_gates.mistake(
    "A gate multiplies entry by entry, each number of the memory by its own share: `*`, not `@`."
)
def gates_as_matrices(i, f, g, o, c):
    return ops.sigmoid(f) @ c


@lstm_gates.mistake(
    "The numbers are right, but you cut the old memory off, so no gradient could come back to the letters "
    "before. Leave out `detach`."
)
def old_memory_cut(i, f, g, o, c):
    return lstm_gates.right(i, f, g, o, c.detach())


@lstm_gates.mistake("You multiply what is kept by what is written. The two are added.")
def multiplied(i, f, g, o, c):
    c = ops.sigmoid(f) * c * ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


# --- 5 It writes --------------------------------------------------------------------------------------------

TABLE = np.array(
    [[0.0, 2.0, 1.0, -1.0], [1.5, 0.0, 0.5, 2.5], [3.0, 1.0, 0.0, 2.0], [0.5, 1.0, 2.0, 0.0]], np.float64
)


def follows(letter, state):
    """A reader of four letters, whose scores depend on the last letter alone."""
    return TABLE[int(letter)], state


def counts(letter, state):
    """A reader of four letters, whose scores depend on how many it has read, too."""
    read = 1 if state is None else state + 1
    return np.roll(TABLE[int(letter)], read), read


def _seeded(answer: Any, read: Any, letter: int, count: int, temperature: float, seed: int) -> Any:
    """What an answer writes, with a generator of its own, as plain numbers."""
    found = answer(read, letter, count, temperature, np.random.default_rng(seed))
    found = _as_list(found)
    if isinstance(found, list):
        return [int(x) if isinstance(x, np.integer) else x for x in found]
    return found


@lecture.exercise(
    case(follows, 0, 12, 1.0, 5),
    case(counts, 1, 12, 0.5, 6),
    case(counts, 2, 12, 2.0, 7),
    otherwise="In each round: ask `read` for scores and the new state, turn the scores into probabilities, "
    "draw one letter with `rng.choice(len(p), p=p)`, and append it. It is the next letter to read.",
    use=_seeded,
    form="write({}, {}, {}, {}, np.random.default_rng({}))",
)
def write(read, letter, count, temperature, rng):
    """Letters, each drawn by what the reader says of those before."""
    return _write(read, letter, count, temperature, rng)


def _soft(scores, temperature):
    powers = np.exp((scores - np.max(scores)) / temperature)
    return powers / powers.sum()


def _write(read, letter, count, temperature, rng, fed_back=True, handed_on=True, draw=None):
    written: list[Any] = []
    state = None
    for _ in range(count):
        scores, after = read(letter, state)
        drawn = draw(scores) if draw else rng.choice(len(scores), p=_soft(scores, temperature))
        written.append(drawn)
        letter = drawn if fed_back else letter
        state = after if handed_on else state
    return written


@write.mistake(
    "You always take the letter with the largest score, so the same text comes each time. Draw one by chance."
)
def greedy(read, letter, count, temperature, rng):
    return _write(read, letter, count, temperature, rng, draw=np.argmax)


@write.mistake("It reads the first letter again and again. What was just written is the next letter to read.")
def not_fed_back(read, letter, count, temperature, rng):
    return _write(read, letter, count, temperature, rng, fed_back=False)


@write.mistake(
    "The state is not handed on: it begins anew with each letter. Keep what `read` returns, and pass it to "
    "the next call."
)
def not_remembered(read, letter, count, temperature, rng):
    return _write(read, letter, count, temperature, rng, handed_on=False)


@write.mistake("The temperature is not in it: `probabilities(scores, temperature)`.")
def always_one(read, letter, count, temperature, rng):
    return _write(read, letter, count, 1.0, rng)


@write.mistake("You multiply by the temperature. Divide: a high temperature makes the scores more alike.")
def upside_down(read, letter, count, temperature, rng):
    return _write(read, letter, count, 1 / temperature, rng)


@write.mistake(
    "Your list begins with the letter that was given. Only the `count` letters after it are asked for."
)
def with_the_first(read, letter, count, temperature, rng):
    return [letter, *_write(read, letter, count, temperature, rng)]


@write.mistake(
    "You append before you draw, so the list begins with the given letter and lacks the last. Draw, then "
    "append."
)
def one_behind(read, letter, count, temperature, rng):
    return [letter, *_write(read, letter, count, temperature, rng)][:count]


@write.mistake("You return after the first letter. Is the `return` inside the loop?")
def first_only(read, letter, count, temperature, rng):
    return _write(read, letter, 1, temperature, rng)


@write.mistake("This is only the last letter. Collect all of them in a list.")
def last_only(read, letter, count, temperature, rng):
    return _write(read, letter, count, temperature, rng)[-1]


@write.mistake(
    "`p` has to be probabilities: from 0 on, with the sum 1. Scores are neither: `probabilities(scores, "
    "temperature)`."
)
def scores_as_probabilities(read, letter, count, temperature, rng):
    return _write(
        read, letter, count, temperature, rng, draw=lambda scores: rng.choice(len(scores), p=scores / 1.0)
    )


@write.mistake("All letters are equally likely in yours. Give the probabilities to the draw: `p=p`.")
def all_alike(read, letter, count, temperature, rng):
    return _write(read, letter, count, temperature, rng, draw=lambda scores: rng.choice(len(scores)))


@write.mistake("One letter too many: draw `count` of them.")
def one_too_many(read, letter, count, temperature, rng):
    return _write(read, letter, count + 1, temperature, rng)


@write.mistake("You divide by the temperature twice: `probabilities` does it already.")
def divided_twice(read, letter, count, temperature, rng):
    return _write(read, letter, count, temperature**2, rng)


@write.mistake("You draw one of the probabilities. Draw a place among them: `rng.choice(len(p), p=p)`.")
def one_of_p(read, letter, count, temperature, rng):
    def draw(scores):
        p = _soft(scores, temperature)
        return rng.choice(p, p=p)

    return _write(lambda drawn, state: read(letter, state), letter, count, temperature, rng, draw=draw)


@write.mistake("`read` returns two things. Take them apart: `scores, state = read(letter, state)`.")
def not_taken_apart(read, letter, count, temperature, rng):
    scores = read(letter, None)
    return np.exp((scores - scores.max()) / temperature)


@write.mistake("Draw with the `rng` that you are given. A new generator in each round draws the same again.")
def new_generator(read, letter, count, temperature, rng):
    return _write(
        read,
        letter,
        count,
        temperature,
        rng,
        draw=lambda scores: np.random.default_rng(0).choice(len(scores), p=_soft(scores, temperature)),
    )


@write.mistake("This is an array with one letter in it. Draw a single one: `rng.choice(len(p), p=p)`.")
def drawn_as_an_array(read, letter, count, temperature, rng):
    return _write(
        read,
        letter,
        count,
        temperature,
        rng,
        draw=lambda scores: rng.choice(len(scores), 1, p=_soft(scores, temperature)),
    )


@write.mistake(
    "It reads the number of the round. Read the letter that was just written, and give the loop's own number "
    "another name: `for _ in range(count)`."
)
def number_of_the_round(read, letter, count, temperature, rng):
    written, state = [], None
    for number in range(count):
        scores, state = read(number, state)
        written.append(rng.choice(len(scores), p=_soft(scores, temperature)))
    return written


@write.mistake("`read` returns two things: first the scores, then the state. Take them apart in this order.")
def swapped_results(read, letter, count, temperature, rng):
    state = None
    for _ in range(count):
        state, scores = read(letter, state)
        letter = rng.choice(4, p=_soft(scores, temperature))
    return letter


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
