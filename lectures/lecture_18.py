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

from .checking import SCORES, Case, Lecture, Names, given, is_tensor, show, to_numpy, values
from .checking.inputs import FILLS

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


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


def as_array(answer: Callable[..., Any], *inputs: Any) -> Any:
    """What an answer gives, as an array, also if it is a list of numbers or a Tensor."""
    found = answer(*inputs)
    if isinstance(found, list) and found and not any(item is ... for item in found):
        return np.array([to_numpy(item) for item in found])
    return to_numpy(found) if is_tensor(found) else found


# --- 1 The weights of one query -----------------------------------------------------------------------------

FOUR_KEYS = np.array([[2.0, 0.4], [-1.5, 0.8], [0.3, 2.0], [-0.8, -1.6]])


@lecture.exercise(
    arrays(q=np.array([1.0, 0.5]), K=FOUR_KEYS),
    draws=drawn_tables(
        *("q", "K"),
        sizes=[((d,), (n, d)) for n, d in [(2, 2), (3, 2), (2, 3), (4, 3), (3, 1), (3, 4), (1, 2), (1, 1)]],
    ),
    own=("softmax", "log_softmax"),
    otherwise="A query of zeros has the score 0 with each key, so each of n keys gets the weight 1/n. Try "
    "that, then a query that points where one of the keys points.",
    use=as_array,
)
def weights_of(q, K):
    scores = K @ q
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


weights_of.slip(
    "These are the scores. The softmax makes weights of them: exp of each, divided by their sum.",
    *("powers / powers.sum()", "scores"),
)
weights_of.slip(
    "exp makes all of them positive. Now divide by their sum, so that they add up to 1.",
    ("scores - scores.max()", "scores"),
    ("powers / powers.sum()", "powers"),
)
weights_of.slip(
    "The largest is 1 now, and nothing overflows. But divide by their sum, so that they add up to 1.",
    *("powers / powers.sum()", "powers"),
)
weights_of.slip(
    "You divide the scores themselves by their sum. A score can be below zero, so take exp of each first.",
    *("powers / powers.sum()", "scores / scores.sum()"),
)
weights_of.slip(
    "exp(1000) is too large for a number. Subtract the largest score from all of them before you take exp, as "
    "in lecture 09.",
    *("scores - scores.max()", "scores"),
)
weights_of.slip(
    "You subtract the first score. A later one may be far larger, and its exp too large for a number. Subtract "
    "the *largest*.",
    *("scores.max()", "scores[0]"),
)
weights_of.slip(
    "You subtract the largest *size*. If all scores are far below zero, every exp is 0 then. Subtract the "
    "largest score itself, also if it is below zero.",
    *("scores.max()", "np.abs(scores).max()"),
)
weights_of.slip(
    "Each *row* of K is a key. `q @ K` goes down the columns; `K @ q` multiplies each row with the query.",
    *("K @ q", "q @ K"),
)
weights_of.slip(
    "You give everything to the largest score. A softmax leaves something for the others: exp, then divide.",
    *("powers / powers.sum()", "(scores == scores.max()).astype(float)"),
)
weights_of.slip(
    "You ask which key is *nearest*. The score is the product of the two: a key that is longer gets more.",
    *("K @ q", "-((K - q) ** 2).sum(axis=1)"),
)
weights_of.slip(
    "You divide the scores by √d. That is a good idea, and section 3 is about it; here, leave it out.",
    *("K @ q", "K @ q / np.sqrt(len(q))"),
)
weights_of.slip(
    "You divide by the length of the query and of each key, so only the angle counts. The score is the product "
    "as it is: a longer arrow counts more.",
    *("K @ q", "K @ q / np.linalg.norm(q) / np.linalg.norm(K, axis=1)"),
)
weights_of.slip(
    "You *divide* by the largest score. Subtract it: the gaps between the scores have to stay as they are.",
    *("scores - scores.max()", "scores / scores.max()"),
)
weights_of.slip(
    "You subtract the largest score in one of the two sums only. Divide the exps by the sum of the same exps.",
    *("powers.sum()", "np.exp(scores).sum()"),
)


# --- 2 Scaled dot-product attention -------------------------------------------------------------------------

BUILT_HERE = {
    nn.MultiHeadAttention.forward: "`nn.MultiHeadAttention` is what you build here. Write it yourself; "
    "the lecture compares the two afterwards."
}
Q, K, V = normal(0, (3, 4), (5, 4), (5, 2))


@lecture.exercise(
    arrays(Q=Q, K=K, V=V),
    draws=drawn_tables(
        *("Q", "K", "V"),
        sizes=[
            ((n, d), (m, d), (m, v))
            for n, m, d, v in [
                *((2, 3, 4, 1), (3, 2, 2, 4), (2, 2, 2, 2), (3, 3, 3, 3), (4, 3, 1, 2), (1, 2, 3, 4)),
                *((2, 3, 9, 2), (3, 1, 2, 2), (1, 1, 1, 1)),
            ]
        ],
    ),
    without=BUILT_HERE,
    own=("scaled_dot_product_attention",),
    otherwise="A row of zeros in Q gives the plain mean of the rows of V. Try that with one query, then with "
    "two.",
    use=as_array,
)
def attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights @ V


attend = attention.right
SCORES_OF = "Q @ K.T / np.sqrt(Q.shape[1])"
LARGEST = "scores.max(axis=1, keepdims=True)"
SUM = "powers.sum(axis=1, keepdims=True)"
COLUMNS = (
    "Your weights add up to 1 in each column. Each *row* belongs to one query, so sum along the rows: "
    "`axis=1, keepdims=True`."
)

attention.slip(
    "The scores are as large as in section 1. Divide them by √d before the softmax.", SCORES_OF, "Q @ K.T"
)
attention.slip(
    "You divide by d. The scores grow like √d, so divide by its root: `np.sqrt(Q.shape[1])`.",
    *(SCORES_OF, "Q @ K.T / Q.shape[1]"),
)
attention.slip(
    "You take the root of how many keys there are. d is how many numbers one of them has: `Q.shape[1]`.",
    *("Q.shape[1]", "len(K)"),
)
attention.slip(
    "You take the root of how many numbers a *value* has. The scores grow with the numbers of a query: "
    "`Q.shape[1]`.",
    *("Q.shape[1]", "V.shape[1]"),
)
attention.slip(COLUMNS, (LARGEST, "scores.max(axis=0)"), (SUM, "powers.sum(axis=0)"))
attention.slip(COLUMNS, SUM, "powers.sum(axis=0)")
attention.slip(
    "All your weights together add up to 1. Each query has weights of its own: `axis=1, keepdims=True`.",
    *((LARGEST, "scores.max()"), (SUM, "powers.sum()")),
)
attention.slip(
    "These are the weights. The result is a mean of the *values*: multiply by V.", "weights @ V", "weights"
)
attention.slip(
    "You average the keys. The keys only say how well they match; what is handed over is V.",
    *("weights @ V", "weights @ K"),
)
attention.slip(
    "The softmax is missing: your weights can be below zero, and do not add up to 1.",
    f"powers / {SUM}",
    "scores",
)
attention.slip(
    "You divide by √d after the softmax. Then the weights no longer add up to 1: scale the *scores*.",
    *((SCORES_OF, "Q @ K.T"), ("weights @ V", "weights / np.sqrt(Q.shape[1]) @ V")),
)
attention.slip(
    "exp of a large score is too large for a number. Subtract the largest score of each row before you take "
    "exp.",
    *(f"scores - {LARGEST}", "scores"),
)
attention.slip(
    "You subtract the largest score of the whole table. In a row of much smaller scores, each exp is 0 then. "
    "Each row needs its own maximum.",
    *(LARGEST, "scores.max()"),
)
attention.slip(
    "Multiply each row of Q with each *row* of K: `Q @ K.T`. Without `.T`, rows meet columns.", "K.T", "K"
)
attention.slip(
    "The maximum and the sum of each row have to stand in a column, so that every row takes its own: "
    "`keepdims=True`.",
    *((LARGEST, "scores.max(axis=1)"), (SUM, "powers.sum(axis=1)")),
)


# --- 3 The causal mask --------------------------------------------------------------------------------------

FIVE = normal(2, (5, 4), (5, 4), (5, 3))


@lecture.exercise(
    arrays(Q=FIVE[0], K=FIVE[1], V=FIVE[2]),
    draws=drawn_tables(
        *("Q", "K", "V"),
        sizes=[
            ((n, d), (n, d), (n, v))
            for n, d, v in [
                (3, 2, 1),
                (2, 3, 2),
                (3, 3, 3),
                (2, 1, 1),
                (4, 2, 3),
                (3, 4, 2),
                (6, 2, 1),
                (1, 2, 2),
            ]
        ],
    ),
    without=BUILT_HERE,
    own=("scaled_dot_product_attention",),
    otherwise="The first place sees only itself, so the first row of the result is the first row of V. The "
    "last place sees all, so the last row is the one without a mask.",
    use=as_array,
)
def causal_attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    place = np.arange(len(Q))
    scores = np.where(place > place[:, None], -np.inf, scores)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights @ V


LATER = "place > place[:, None]"
HIDDEN = f"np.where({LATER}, -np.inf, scores)"
TOO_LATE = (
    "You hide too late. If a hidden score is far larger than those that are seen, the exps of these are all 0 by "
    "then. Hide the scores first, then take the largest of the row, and exp."
)

causal_attention.slip(
    "Nothing is hidden here: the first place still sees all. Mask the scores first.", HIDDEN, "scores"
)
causal_attention.slip(
    "You hide what comes *before*, so the last place sees only itself. Hide where the key's place is greater than "
    "the query's.",
    *(LATER, LATER.replace(">", "<")),
)
causal_attention.slip(
    "You hide the place itself, too, so nothing is left for the first one. Hide only what comes later: `>` and "
    "not `>=`, or `k=1` in `np.triu`.",
    *(LATER, LATER.replace(">", ">=")),
)
causal_attention.slip(
    "The edge of the mask is one step off: a place sees the one after it, too. It sees itself and what comes "
    "before, and nothing else.",
    *(LATER, LATER + " + 1"),
)
causal_attention.slip(
    "You hide what may be seen, and show what comes later. `np.where(later, -np.inf, scores)` puts −∞ where "
    "`later` is True.",
    *(HIDDEN, f"np.where({LATER}, scores, -np.inf)"),
)
causal_attention.slip(
    "You set weights to 0 *after* the softmax, so a row no longer adds up to 1. Hide the scores, and the softmax "
    "shares out everything among the rest.",
    *((HIDDEN, "scores"), ("weights @ V", f"np.where({LATER}, 0, weights) @ V")),
)
causal_attention.slip(
    TOO_LATE,
    (HIDDEN, "scores"),
    (
        "return weights",
        f"weights = np.where({LATER}, 0, weights)\n    return weights / weights.sum(axis=1)[:, None]",
    ),
)
causal_attention.slip(
    "You subtract the largest score of the whole table. In a row of much smaller scores, each exp is 0 then. Each "
    "row needs its own maximum.",
    *(LARGEST, "scores.max()"),
)
causal_attention.slip(
    "exp of a large score is too large for a number. Subtract the largest score of each row before you take exp.",
    *(f"scores - {LARGEST}", "scores"),
)
causal_attention.slip(
    "A score of 0 is not hidden: exp(0) is 1. Put `-np.inf` there, and exp gives 0.", "-np.inf", "0"
)
causal_attention.slip(
    "A number such as −100 hides only what is next to scores that are much larger. Put `-np.inf` there.",
    *("-np.inf", "-100"),
)
causal_attention.slip(
    "Infinity times 0 is nan, so a mask times −∞ spoils what it should leave alone. Choose instead: "
    "`np.where(later, -np.inf, scores)`.",
    *(HIDDEN, f"scores + ({LATER}) * -np.inf"),
)
causal_attention.slip(
    "The mask is right. Now divide the scores by √d, as in Exercise 2.", SCORES_OF, "Q @ K.T"
)


# --- 4 Heads ------------------------------------------------------------------------------------------------

TWO_HEADS = normal(5, (3, 4), (3, 4), (3, 4))


@lecture.exercise(
    arrays(Q=TWO_HEADS[0], K=TWO_HEADS[1], V=TWO_HEADS[2], heads=2),
    draws=drawn_tables(
        *("Q", "K", "V", "heads"),
        sizes=[
            ((n, d), (m, d), (m, d), heads)
            for n, m, d, heads in [
                *((2, 3, 4, 2), (2, 3, 6, 3), (2, 3, 6, 2), (3, 2, 2, 2), (2, 2, 3, 1), (3, 3, 3, 3)),
                *((6, 6, 6, 2), (2, 4, 8, 2), (1, 2, 4, 4), (1, 1, 2, 2)),
            ]
        ],
    ),
    without=BUILT_HERE,
    own=("scaled_dot_product_attention", "multi_head_attention_forward"),
    otherwise="With heads=1 it is Exercise 2. With two heads, the left half of the result depends on nothing "
    "but the left halves of Q, K and V.",
    use=as_array,
)
def many_heads(Q, K, V, heads):
    parts = [np.split(table, heads, axis=1) for table in (Q, K, V)]
    answers = [attend(q, k, v) for q, k, v in zip(*parts, strict=True)]
    return np.concatenate(answers, axis=1)


BESIDE = "np.concatenate(answers, axis=1)"
SPLIT = "np.split(table, heads, axis=1)"
ONCE_EACH = "attend(q, k, v) for q, k, v in zip(*parts, strict=True)"

many_heads.slip(
    "This is a single head. Cut the columns of Q, K and V into `heads` parts first.",
    BESIDE,
    "attend(Q, K, V)",
)
many_heads.slip(
    "You add the heads up. Put them side by side, so that each keeps its own answer.", BESIDE, "sum(answers)"
)
many_heads.slip(
    "You put the heads below one another. Side by side is `axis=1`.", BESIDE, "np.concatenate(answers)"
)
many_heads.slip(
    "You keep the heads apart, one table each. Put them side by side: `np.concatenate(…, axis=1)`.",
    BESIDE,
    "np.stack(answers)",
)
many_heads.slip(
    "You took each second column, or each third. A head gets columns that stand next to each other: the first "
    "d / heads, and so on.",
    *(SPLIT, "[table[:, i::heads] for i in range(heads)]"),
)
many_heads.slip(
    "`reshape(heads, …)` cuts the rows, so words get mixed. Cut the columns: `np.split(Q, heads, axis=1)`.",
    *(SPLIT, "table.reshape(heads, len(table), -1)"),
)
many_heads.slip(
    "Each head divides by the root of *its own* size, d / heads. You take the root of the whole d.",
    *("attend(q, k, v)", "attend(q / np.sqrt(heads), k, v)"),
)
many_heads.slip(
    "Only Q and K are cut: each head still hands over all of V. Cut V, too.",
    "attend(q, k, v)",
    "attend(q, k, V)",
)
many_heads.slip(
    "This is the first head alone. Gather the answers of all heads, side by side.", BESIDE, "answers[0]"
)
many_heads.slip(
    "You cut into two parts, or into parts of `heads` columns. There should be `heads` parts, of d / heads columns "
    "each.",
    *(SPLIT, "np.split(table, table.shape[1] // heads, axis=1)"),
)
many_heads.slip(
    "Heads that lie below one another do not come side by side by `reshape`: it mixes the words. Use "
    "`np.concatenate(…, axis=1)`.",
    *(BESIDE, "np.concatenate(answers).reshape(len(Q), -1)"),
)


# --- 5 A small transformer ----------------------------------------------------------------------------------


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

    It has read another text before, and should remember nothing of it.
    """
    network = answer(np.random.default_rng(0))
    parameters = network.parameters()
    network(tokens[:1, :1])
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
    number=25,
    otherwise="Go through it line by line: the sum of two embeddings, then look, then think, each added to "
    "what it got, and the scores at the end.",
    compare=as_said,
    use=said,
    form="Sorter(rng)({}, {})",
)(Sorter)

EMBEDDED = "self.tokens(tokens) + self.places(np.arange(tokens.shape[1]))"
LOOK, THINK = "x = x + self.look(x, mask=hidden)", "x = x + self.think(x)"
sorter.slip(
    "The places are missing. Add `self.places(np.arange(…))` to the tokens' vectors.",
    EMBEDDED,
    "self.tokens(tokens)",
)
sorter.slip(
    "The number of places is not always 12: while it writes, the sequence is shorter. Take `tokens.shape[1]`.",
    *("np.arange(tokens.shape[1])", "np.arange(12)"),
)
sorter.slip(
    "You look the places up by the *digits*. They go by place: 0, 1, 2, … up to the time, with `np.arange`.",
    *("np.arange(tokens.shape[1])", "tokens"),
)
sorter.slip(
    "The second argument of `look` is for keys. Say what yours is: `self.look(x, mask=hidden)`.",
    "mask=hidden",
    "hidden",
)
sorter.slip("`look` must know what is hidden: `self.look(x, mask=hidden)`.", ", mask=hidden", "")
sorter.slip(
    "The `look` *replaces* x. Add what it finds: `x = x + self.look(…)`.", "x + self.look", "self.look"
)
sorter.slip(
    "The `think` *replaces* x. Add what it finds: `x = x + self.think(x)`.", "x + self.think", "self.think"
)
sorter.slip(
    "`think` gets what `look` has *not* changed yet. It should get the sum: x after the first step.",
    *((LOOK, "before = x\n        " + LOOK), ("self.think(x)", "self.think(before)")),
)
sorter.slip(
    "`think` gets only what `look` has found. Add that to x first, and let `think` work on the sum.",
    *((LOOK, "found = self.look(x, mask=hidden)"), ("self.think(x)", "self.think(found)")),
)
sorter.slip(
    "You think before you look. It is the other way round: first gather, then work on it.",
    *(f"{LOOK}\n        {THINK}", f"{THINK}\n        {LOOK}"),
)
sorter.slip("`think` is missing: after the look, each place works on what it has found.", THINK, "pass")
sorter.slip("`look` is missing, so no place knows anything of the others.", LOOK, "pass")
sorter.slip(
    "Return the scores as they are: the loss takes the softmax of them itself.",
    *("self.scores(x)", "ndl.softmax(self.scores(x))"),
)
sorter.slip(
    "Your numbers have lost their history, so not every part can learn. Stay with Tensors, and leave out "
    "`detach` and `.numpy()`.",
    *("self.scores(x)", "self.scores(x).detach()"),
)
sorter.slip(
    "This is an array of NumPy's, and nothing could be learned. Return the Tensor.",
    "self.scores(x)",
    "self.scores(x).numpy()",
)


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
        (0, 0),
        (x, y),
        arrowstyle="-|>",
        mutation_scale=12,
        color=colour,
        linewidth=width,
        linestyle=style,
        shrinkA=0,
        shrinkB=0,
    )


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
