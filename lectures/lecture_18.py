"""Lecture 18, attention: its exercises, the usual mistakes in them, and its pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch

import needle as ndl
import viz
from needle import nn

from .checking import SCORES, Case, Lecture, Names, as_array, given, show, to_numpy, values
from .checking.inputs import FILLS

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


# --- What answers are tried on ------------------------------------------------------------------------------


def arrays(**inputs: Any) -> Case:
    """A case of these arrays and numbers, in this order."""
    return given(
        lambda: {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in inputs.items()}, *inputs
    )


def normal(seed: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Random arrays of these shapes, with one digit after the point."""
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1, shape).round(1) for shape in shapes]


def drawn_tables(*names: str, sizes: Sequence[tuple]) -> SearchStrategy[Case]:
    """Cases of tables that go together. `sizes` lists for each case the shapes, or numbers to be passed on.

    The tables hold small numbers or huge ones, so scores are equal, far apart, or largest in any place.
    """
    fills = [st.sampled_from((*SCORES, "zeros between", "signed"))] * len(names)

    def make(parts: tuple) -> Case:
        chosen, filled = parts
        inputs = {}
        for name, size, fill in zip(names, chosen, filled, strict=True):
            is_shape = isinstance(size, tuple)
            inputs[name] = FILLS[fill](int(np.prod(size))).reshape(size) if is_shape else size
        return arrays(**inputs)

    return st.tuples(st.sampled_from(list(sizes)), st.tuples(*fills)).map(make)


def sizes_of(text: str) -> list[list[int]]:
    """The sizes of some cases, a digit each: "234 31" are 2, 3, 4 and 3, 1."""
    return [[int(digit) for digit in case] for case in text.split()]


A_MODULE = "_wrapped_call_impl"  # what PyTorch calls when one of its modules is called
#: How the exercises on attention are asked.
ASKED: dict[str, Any] = {
    "use": as_array,
    "own": ("scaled_dot_product_attention", "multi_head_attention_forward", A_MODULE),
    "without": {
        nn.MultiHeadAttention.forward: "`nn.MultiHeadAttention` is what you build here. Write it yourself; "
        "the lecture compares the two afterwards."
    },
}


# --- 1 The weights of one query -----------------------------------------------------------------------------

FOUR_KEYS = np.array([[2.0, 0.4], [-1.5, 0.8], [0.3, 2.0], [-0.8, -1.6]])


@lecture.exercise(
    arrays(q=np.array([1.0, 0.5]), K=FOUR_KEYS),
    draws=drawn_tables("q", "K", sizes=[((d,), (n, d)) for n, d in sizes_of("22 32 23 43 31 34 12 11")]),
    own=("softmax", "log_softmax", "logsumexp", A_MODULE),
    without=dict.fromkeys(
        (nn.MultiHeadAttention.forward, nn.SoftmaxLoss.forward),
        "The library computes these weights for you here. Write them yourself.",
    ),
    otherwise="A query of zeros has the score 0 with each key, so each of n keys gets the weight 1/n. Try "
    "that, then a query that points where one of the keys points.",
    use=as_array,
)
def weights_of(q, K):
    scores = K @ q
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


# --- 2 Scaled dot-product attention -------------------------------------------------------------------------

Q, K, V = normal(0, (3, 4), (5, 4), (5, 2))
SIZES = sizes_of("2341 3224 2222 3333 4312 1234 2392 3122 1111")


@lecture.exercise(
    arrays(Q=Q, K=K, V=V),
    draws=drawn_tables("Q", "K", "V", sizes=[((n, d), (m, d), (m, v)) for n, m, d, v in SIZES]),
    otherwise="A row of zeros in Q gives the plain mean of the rows of V. Try one query, then two.",
    **ASKED,
)
def attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights @ V


attend = attention.right


# --- 3 The causal mask --------------------------------------------------------------------------------------

FIVE = normal(2, (5, 4), (5, 4), (5, 3))


@lecture.exercise(
    arrays(Q=FIVE[0], K=FIVE[1], V=FIVE[2]),
    draws=drawn_tables(
        *("Q", "K", "V"),
        sizes=[((n, d), (n, d), (n, v)) for n, d, v in sizes_of("321 232 333 211 423 342 621 122")],
    ),
    otherwise="The first place sees only itself, so the first row of the result is the first row of V. The "
    "last place sees all, so the last row is the one without a mask.",
    **ASKED,
)
def causal_attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    place = np.arange(len(Q))
    scores = np.where(place > place[:, None], -np.inf, scores)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights @ V


# --- 4 Heads ------------------------------------------------------------------------------------------------

MANY = sizes_of("2342 2363 2362 3222 2231 3333 6662 2482 1244 1122")
TWO_HEADS = normal(5, (3, 4), (3, 4), (3, 4))


@lecture.exercise(
    arrays(Q=TWO_HEADS[0], K=TWO_HEADS[1], V=TWO_HEADS[2], heads=2),
    draws=drawn_tables(
        *("Q", "K", "V", "heads"),
        sizes=[((n, d), (m, d), (m, d), heads) for n, m, d, heads in MANY],
    ),
    otherwise="With heads=1 it is Exercise 2. With two heads, the left half of the result depends on nothing "
    "but the left halves of Q, K and V.",
    **ASKED,
)
def many_heads(Q, K, V, heads):
    parts = [np.split(table, heads, axis=1) for table in (Q, K, V)]
    answers = [attend(q, k, v) for q, k, v in zip(*parts, strict=True)]
    return np.concatenate(answers, axis=1)


# --- 5 A layer ----------------------------------------------------------------------------------------------

MAPS = ("x", "W_q", "W_k", "W_v", "W_o")
LAYERS = sizes_of("23425 32243 22222 13321 31232 43112")


def layer_sizes(texts: int, time: int, features: int, d: int, v: int) -> tuple[tuple[int, ...], ...]:
    """The shapes of the texts and of the four maps, for queries of d numbers and values of v."""
    return (texts, time, features), (features, d), (features, d), (features, v), (v, features)


@lecture.exercise(
    arrays(**dict(zip(MAPS, normal(7, *layer_sizes(2, 3, 4, 2, 5)), strict=True))),
    draws=drawn_tables(*MAPS, sizes=[layer_sizes(*each) for each in LAYERS]),
    otherwise="Try one text of one word: its only weight is 1, so the result is `x @ W_v @ W_o`. Then compare two "
    "texts in one batch with each of them alone: nothing may change.",
    **ASKED,
)
def attention_layer(x, W_q, W_k, W_v, W_o):
    Q, K, V = x @ W_q, x @ W_k, x @ W_v
    scores = Q @ K.transpose(0, 2, 1) / np.sqrt(Q.shape[2])
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights = powers / powers.sum(axis=2, keepdims=True)
    return weights @ V @ W_o


# --- 6 A small transformer ----------------------------------------------------------------------------------


class Said:
    """What a network says, and the gradients that come back to its parameters from there."""

    def __init__(self, scores: ndl.Tensor, parameters: list[ndl.Tensor]):
        self.scores = scores
        weights = np.cos(np.arange(scores.size)).reshape(scores.shape)
        total = (scores * ndl.Tensor(weights, dtype=scores.dtype, requires_grad=False)).sum()
        slopes = ndl.gradients(total, parameters) if total.requires_grad else []
        self.slopes = [to_numpy(slope) for slope in slopes] or [np.zeros(p.shape) for p in parameters]

    def __repr__(self) -> str:
        return show(self.scores, {})


def said(answer: Callable[..., Any], tokens: np.ndarray, hidden: Any) -> Any:
    """What a new network of this class says; its parameters are always the same.

    It has read another text before, through a mask, and should remember neither.
    """
    network = answer(np.random.default_rng(0))
    parameters = network.parameters()
    time = min(2, tokens.shape[1])
    network(tokens[:1, :time], hiding(2, (1, 0))[:time, :time])
    scores = network(tokens, hidden)
    return Said(scores, parameters) if isinstance(scores, ndl.Tensor) else scores


def as_said(expected: Any, got: Any, names: Names) -> str:
    """Whether the scores are the same, and the gradients, too."""
    if not isinstance(got, Said):
        return f"the type is {type(got).__name__}, but should be Tensor"
    if difference := values(expected.scores, got.scores, names):
        return difference
    pairs = list(zip(expected.slopes, got.slopes, strict=True))
    wrong = sum(not np.allclose(*pair, rtol=1e-3, atol=1e-4) for pair in pairs)
    missing = f"{wrong} of the {len(pairs)} parameters get another gradient, or none"
    return f"the numbers are right, but {missing}" if wrong else ""


# the same mistake, wherever the way back is cut
as_said.exactly = lambda expected, got, names: values(expected.scores, got.scores, names)  # type: ignore[attr-defined]

TEXT = np.array([[7, 2, 9, 4, 0, 5, 10, 0, 2, 4, 5, 7], [3, 8, 1, 6, 9, 2, 10, 1, 2, 3, 6, 8]])
THREE_TEXTS = np.concatenate([TEXT, TEXT[:1, ::-1]])


def hiding(time: int, *pairs: tuple[int, int]) -> np.ndarray:
    """A mask that hides from one place another, for some pairs of places."""
    hidden = np.zeros((time, time), bool)
    for place, other in pairs:
        hidden[place, other] = True
    return hidden


def some_text(parts: tuple) -> Case:
    """A case of some texts of this length, in which each place may not see what lies so far back, if anything."""
    texts, time, back = parts
    pairs = [(place, place - back) for place in range(time) if back and place >= back]
    return arrays(tokens=THREE_TEXTS[texts, :time], hidden=hiding(time, *pairs) if back else None)


class Sorter(nn.Module):
    def __init__(self, rng):
        self.tokens = nn.Embedding(11, 32, rng=rng)  # ten digits and the sign
        self.places = nn.Embedding(12, 32, rng=rng)
        self.look = nn.AttentionLayer(32, num_head=1, dim_head=32, causal=True, rng=rng)
        self.think = nn.Sequential(
            nn.LayerNorm1d(32), nn.Linear(32, 64, rng=rng), nn.ReLU(), nn.Linear(64, 32, rng=rng)
        )
        self.scores = nn.Linear(32, 10, rng=rng)

    def forward(self, tokens, hidden=None):
        x = self.tokens(tokens) + self.places(np.arange(tokens.shape[1]))
        x = x + self.look(x, mask=hidden)
        x = x + self.think(x)
        return self.scores(x)


sorter = lecture.exercise(
    arrays(tokens=TEXT[:, :7], hidden=None),
    arrays(tokens=TEXT, hidden=None),
    arrays(tokens=TEXT, hidden=hiding(12, (9, 5))),
    draws=st.tuples(
        st.sampled_from([[0, 1], [2, 0, 1], [1]]),
        st.sampled_from([3, 7, 12, 2, 1]),
        st.sampled_from([0, 1, 2]),
    ).map(some_text),
    number=12,
    otherwise="Go through it line by line: the sum of two embeddings, then look, then think, each added to "
    "what it got, and the scores at the end.",
    compare=as_said,
    use=said,
    form="Sorter(rng)({}, {})",
)(Sorter)


# --- Pictures -----------------------------------------------------------------------------------------------

BLUE, ORANGE, GREEN, INK = "#1D5FD1", "#D97706", "#0B7A53", "#101828"
NAMES_AT = 2.65  # how far from the middle the words stand: beyond a query of length 2, wherever it points


def plane(
    words: Sequence[str],
    keys: Any,
    query: Sequence[float] | None = None,
    weights: Any = None,
    answer: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw keys as arrows in the plane, the query that looks for them, and the mean that it gets.

    A query that is longer than the plane goes over its edge.
    """
    (ax,) = viz.panels(1, width=4.6, height=4.4) if ax is None else (ax,)
    shares = [0.4] * len(words) if weights is None else np.asarray(weights)
    halo = [patheffects.withStroke(linewidth=3, foreground="white")]
    for word, (x, y), share in zip(words, np.asarray(keys), shares, strict=True):
        ax.add_patch(_arrow(x, y, BLUE, 1 + 4 * float(share)))
        out = NAMES_AT / np.hypot(x, y)
        ax.text(
            out * x, out * y, word, ha="center", va="center", color=BLUE, weight="bold", path_effects=halo
        )
    if query is not None:
        if np.any(query):
            ax.add_patch(_arrow(query[0], query[1], ORANGE, 2.5, "dashed"))
        ax.plot([], [], "--", color=ORANGE, linewidth=2.5, label="query")
    if answer is not None:
        ax.plot(*answer, "D", color=GREEN, markersize=9, label="answer")
    if query is not None:
        ax.legend(loc="lower right", facecolor="white", edgecolor="none", framealpha=1, labelcolor=INK)
    ax.axhline(0, color="#D5DAE3", linewidth=0.8, zorder=0)
    ax.axvline(0, color="#D5DAE3", linewidth=0.8, zorder=0)
    ax.set(xlim=(-3.3, 3.3), ylim=(-3.3, 3.3), aspect="equal", xlabel="lives", ylabel="is a thing")
    ax.set(xticks=range(-3, 4), yticks=range(-3, 4))
    ax.set_anchor("N")
    title = "Four words and their keys" if query is None else "Query, keys and answer"
    ax.set_title(title, loc="left", weight="bold")
    return ax


def _arrow(x: float, y: float, colour: str, width: float, style: str = "solid") -> FancyArrowPatch:
    """An arrow from (0, 0) to (x, y)."""
    return FancyArrowPatch(
        (0, 0), (x, y), arrowstyle="-|>", mutation_scale=12, color=colour, linewidth=width, linestyle=style,
        shrinkA=0, shrinkB=0,
    )  # fmt: skip


def look(words: Sequence[str], keys: Any, query: Sequence[float], weights: Any, answer: Any) -> Axes:
    """Draw a query among keys, and its weights as bars."""
    left, right = viz.panels(2, width=4.2, height=3.9)
    plane(words, keys, query, weights, answer, ax=left)
    shares = [float(share) for share in weights]
    right.barh(range(len(words)), shares, color=BLUE, height=0.62)
    for place, share in enumerate(shares):
        right.text(share + 0.02, place, f"{share:.2f}", va="center", color=INK)
    right.set(xlim=(0, 1.15), yticks=range(len(words)), xlabel="weight")
    right.set_yticklabels(words)
    right.invert_yaxis()
    right.set_title("Its weights", loc="left", weight="bold")
    return right


def sentence() -> tuple[list[str], np.ndarray, np.ndarray]:
    """The words of the lecture's sentence, what each one asks for, and what each one offers."""
    words = ["the", "dog", "left", "the", "ball", "because", "it", "was", "tired"]
    asks = {"left": (2.0, 1.0), "ball": (-2.0, 1.0), "because": (-2.0, 1.0), "it": (2.0, 0.0)}
    asks |= {"was": (1.0, 0.5), "tired": (2.5, 0.0)}
    offers = dict(zip(("dog", "left", "ball", "because"), FOUR_KEYS.tolist(), strict=True))
    queries, keys = (np.array([of.get(word, (0.0, 0.0)) for word in words]) for of in (asks, offers))
    return words, queries, keys


def four(x: Any) -> ndl.Tensor:
    """A table of shape (time, features) as the library wants it: (batch, heads, time, dim)."""
    return ndl.Tensor(np.asarray(x)[None, None], dtype="float64")
