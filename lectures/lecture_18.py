"""Lecture 18, attention: its exercises, the usual mistakes in them, its predictions and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch

import viz
from needle.autograd import Tensor, find_topo_sort
from needle.nn import (
    AttentionLayer,
    Embedding,
    LayerNorm1d,
    Linear,
    Module,
    MultiHeadAttention,
    Parameter,
    ReLU,
    Sequential,
)
from needle.ops import softmax

from .checking import Lecture, Names, given, is_tensor, to_numpy, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


def arrays(**values: Any) -> Any:
    """Makes the inputs of a case, copied from these arrays and numbers."""
    return lambda: {
        name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()
    }


def normal(seed: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Random arrays of these shapes, with one digit after the point."""
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1, shape).round(1) for shape in shapes]


def as_array(answer: Any, *inputs: Any) -> Any:
    """What an answer gives, as an array, also if it is a list of numbers or a Tensor."""
    found = answer(*inputs)
    if isinstance(found, list) and found and not any(item is ... for item in found):
        return np.array([to_numpy(item) for item in found])
    return to_numpy(found) if is_tensor(found) else found


def _softmax(scores: np.ndarray, axis: int | None = -1) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


# --- 1 The weights of one query -----------------------------------------------------------------------------

FOUR_KEYS = np.array([[2.0, 0.4], [-1.5, 0.8], [0.3, 2.0], [-0.8, -1.6]])
THREE_KEYS = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [1.0, 1.0, 0.0]])
FAR = np.array([[500.0, 0.0], [499.0, 1.0], [-500.0, 2.0]])


@lecture.exercise(
    given(arrays(q=np.array([1.0, 0.5]), K=FOUR_KEYS), "q", "K"),
    given(arrays(q=np.array([0.5, -1.0, 0.25]), K=THREE_KEYS), "q", "K"),
    given(arrays(q=np.array([2.0, 0.0]), K=FAR), "q", "K"),
    otherwise="A query of zeros has the score 0 with each key, so each of n keys gets the weight 1/n. Try "
    "that, then a query that points where one of the keys points.",
    use=as_array,
)
def weights_of(q, K):
    """The softmax of the products of a query with all keys."""
    return _softmax(K @ q)


@weights_of.mistake(
    "These are the scores. The softmax makes weights of them: exp of each, divided by their sum."
)
def only_scores(q, K):
    return K @ q


@weights_of.mistake("exp makes all of them positive. Now divide by their sum, so that they add up to 1.")
def not_divided(q, K):
    return np.exp(K @ q)


@weights_of.mistake(
    "The largest is 1 now, and nothing overflows. But divide by their sum, so that they add up to 1."
)
def shifted_and_not_divided(q, K):
    return np.exp(K @ q - (K @ q).max())


@weights_of.mistake(
    "You divide the scores themselves by their sum. A score can be below zero, so take exp of each first."
)
def no_exp(q, K):
    return K @ q / (K @ q).sum()


@weights_of.mistake("You divide by the sum of the *scores*. Divide the exps by the sum of the exps.")
def by_the_sum_of_the_scores(q, K):
    return np.exp(K @ q - (K @ q).max()) / (K @ q).sum()


@weights_of.mistake("You divide by the sum of the *scores*. Divide the exps by the sum of the exps.")
def unshifted_by_the_sum_of_the_scores(q, K):
    return np.exp(K @ q) / (K @ q).sum()


@weights_of.mistake(
    "exp(1000) is too large for a number. Subtract the largest score from all of them before you take exp, "
    "as in lecture 09."
)
def overflows(q, K):
    return np.exp(K @ q) / np.exp(K @ q).sum()


@weights_of.mistake(
    "You multiply, but you do not add up. A score is one number for each key: the sum along its row, `K @ q`."
)
def not_summed(q, K):
    return _softmax(K * q)


@weights_of.mistake(
    "Each *row* of K is a key. `q @ K` goes down the columns; `K @ q` multiplies each row with the query."
)
def down_the_columns(q, K):
    return _softmax(q @ K)


@weights_of.mistake(
    "You give everything to the largest score. A softmax leaves something for the others: exp, then divide."
)
def winner_takes_all(q, K):
    return (K @ q == (K @ q).max()).astype(float)


@weights_of.mistake(
    "You ask which key is *nearest*. The score is the product of the two: a key that is longer gets more."
)
def by_distance(q, K):
    return _softmax(-((K - q) ** 2).sum(axis=1))


@weights_of.mistake(
    "You divide the scores by √d. That is a good idea, and section 3 is about it; here, leave it out."
)
def scaled_already(q, K):
    return _softmax(K @ q / np.sqrt(len(q)))


@weights_of.mistake(
    "You divide by the length of the query, so only its direction counts. A longer query may be surer: leave "
    "it as it is."
)
def direction_only(q, K):
    return _softmax(K @ q / np.linalg.norm(q))


@weights_of.mistake(
    "You divide by the length of the query and of each key, so only the angle counts. The score is the "
    "product as it is: a longer arrow counts more."
)
def angle_only(q, K):
    return _softmax(K @ q / np.linalg.norm(q) / np.linalg.norm(K, axis=1))


@weights_of.mistake(
    "You *divide* by the largest score. Subtract it: the gaps between the scores have to stay as they are."
)
def divided_by_the_largest(q, K):
    return _softmax(K @ q / (K @ q).max())


@weights_of.mistake(
    "You subtract the largest score in one of the two sums only. Divide the exps by the sum of the same exps."
)
def shifted_only_above(q, K):
    return np.exp(K @ q - (K @ q).max()) / np.exp(K @ q).sum()


@weights_of.mistake(
    "The weights are right, but they stand in a column. Return an array of n numbers: `K @ q`, and `q` as it "
    "came."
)
def as_a_column(q, K):
    return weights_of.right(q, K)[:, None]


# --- 2 Scaled dot-product attention -------------------------------------------------------------------------

OWN = {
    MultiHeadAttention.forward: "`nn.MultiHeadAttention` is what you build here. Write it yourself; "
    "the lecture compares the two afterwards."
}
Q, K, V = normal(0, (3, 4), (5, 4), (5, 2))
SQUARE = normal(1, (4, 4), (4, 4), (4, 4))
LOUD = [np.array([[1500.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.eye(2)]


@lecture.exercise(
    given(arrays(Q=Q, K=K, V=V), "Q", "K", "V"),
    given(arrays(Q=SQUARE[0], K=SQUARE[1], V=SQUARE[2]), "Q", "K", "V"),
    given(arrays(Q=LOUD[0], K=LOUD[1], V=LOUD[2]), "Q", "K", "V"),
    without=OWN,
    otherwise="A row of zeros in Q gives the plain mean of the rows of V. Try that with one query, then with "
    "two.",
    use=as_array,
)
def attention(Q, K, V):
    """softmax(Q Kᵀ / √d) V."""
    return _softmax(Q @ K.T / np.sqrt(Q.shape[1])) @ V


@attention.mistake("The scores are as large as in section 1. Divide them by √d before the softmax.")
def unscaled(Q, K, V):
    return _softmax(Q @ K.T) @ V


@attention.mistake("You divide by d. The scores grow like √d, so divide by its root: `np.sqrt(Q.shape[1])`.")
def by_d(Q, K, V):
    return _softmax(Q @ K.T / Q.shape[1]) @ V


@attention.mistake("You multiply by √d, which makes the scores even larger. Divide.")
def times_root(Q, K, V):
    return _softmax(Q @ K.T * np.sqrt(Q.shape[1])) @ V


@attention.mistake(
    "You take the root of how many keys there are. d is how many numbers one of them has: `Q.shape[1]`."
)
def root_of_the_count(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(len(K))) @ V


@attention.mistake(
    "You take the root of how many queries there are. d is how many numbers one of them has: `Q.shape[1]`."
)
def root_of_the_queries(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(len(Q))) @ V


@attention.mistake(
    "Your weights add up to 1 in each column. Each *row* belongs to one query, so sum along the rows: "
    "`axis=1, keepdims=True`."
)
def by_columns(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(Q.shape[1]), axis=0) @ V


@attention.mistake(
    "All your weights together add up to 1. Each query has weights of its own: `axis=1, keepdims=True`."
)
def over_the_table(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(Q.shape[1]), axis=None) @ V


@attention.mistake("These are the weights. The result is a mean of the *values*: multiply by V.")
def only_weights(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(Q.shape[1]))


@attention.mistake("You average the keys. The keys only say how well they match; what is handed over is V.")
def keys_averaged(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(Q.shape[1])) @ K


@attention.mistake("The softmax is missing: your weights can be below zero, and do not add up to 1.")
def no_softmax(Q, K, V):
    return Q @ K.T / np.sqrt(Q.shape[1]) @ V


@attention.mistake("These are exps, and no weights yet. Divide each row by its sum, so that it adds up to 1.")
def exps_only(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    return np.exp(scores - scores.max(axis=1, keepdims=True)) @ V


@attention.mistake(
    "You divide by √d after the softmax. Then the weights no longer add up to 1: scale the *scores*."
)
def scaled_too_late(Q, K, V):
    return _softmax(Q @ K.T) / np.sqrt(Q.shape[1]) @ V


@attention.mistake(
    "exp of a large score is too large for a number. Subtract the largest score of each row before you take "
    "exp."
)
def naive_powers(Q, K, V):
    powers = np.exp(Q @ K.T / np.sqrt(Q.shape[1]))
    return powers / powers.sum(axis=1, keepdims=True) @ V


@attention.mistake(
    "You subtract the largest score of the whole table. In a row of much smaller scores, each exp is 0 then. "
    "Each row needs its own maximum."
)
def one_maximum(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    powers = np.exp(scores - scores.max())
    return powers / powers.sum(axis=1, keepdims=True) @ V


@attention.mistake("Multiply each row of Q with each *row* of K: `Q @ K.T`. Without `.T`, rows meet columns.")
def not_transposed(Q, K, V):
    return _softmax(Q @ K / np.sqrt(Q.shape[1])) @ V


@attention.mistake(
    "The maximum and the sum of each row have to stand in a column, so that every row takes its own: "
    "`keepdims=True`."
)
def no_column(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    powers = np.exp(scores - scores.max(axis=1))
    return powers / powers.sum(axis=1) @ V


@attention.mistake("The table has a row for each key. It should have a row for each query: `Q @ K.T`.")
def other_way_round(Q, K, V):
    return _softmax(K @ Q.T / np.sqrt(Q.shape[1])) @ V


@attention.mistake(
    "Your weights add up to 1 in each column. Each *row* belongs to one query, so sum along the rows: "
    "`axis=1, keepdims=True`."
)
def sums_of_columns(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=0) @ V


@attention.mistake(
    "You subtract the largest score of each *column*, so the scores of a row lose different amounts. Take "
    "the largest of each row: `axis=1, keepdims=True`."
)
def maxima_of_columns(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    powers = np.exp(scores - scores.max(axis=0))
    return powers / powers.sum(axis=1, keepdims=True) @ V


@attention.mistake(
    "You take the root of how many numbers a *value* has. The scores grow with the numbers of a query: "
    "`Q.shape[1]`."
)
def root_of_the_values(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(V.shape[1])) @ V


@attention.mistake("You divide by 2, which is √d only where d is 4. For any d it is `np.sqrt(Q.shape[1])`.")
def always_two(Q, K, V):
    return _softmax(Q @ K.T / 2) @ V


@attention.mistake("You always divide by √2. d is how many numbers a query has: `np.sqrt(Q.shape[1])`.")
def always_root_of_two(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(2)) @ V


@attention.mistake(
    "`*` multiplies entry by entry. A score is the sum of such products, for each query and key: `Q @ K.T`."
)
def entry_by_entry(Q, K, V):
    return _softmax(Q * K / np.sqrt(Q.shape[1])) @ V


@attention.mistake("Multiply each row of Q with each *row* of K: `Q @ K.T`. Without `.T`, rows meet columns.")
def dot_not_transposed(Q, K, V):
    return _softmax(np.dot(Q, K) / np.sqrt(Q.shape[1])) @ V


@attention.mistake("Leave V as it is, without `.T`: each weight of a row belongs to a *row* of V.")
def values_transposed(Q, K, V):
    return _softmax(Q @ K.T / np.sqrt(Q.shape[1])) @ V.T


@attention.mistake(
    "You take the value of the best match alone. The softmax leaves something for the others: average all "
    "values with its weights."
)
def best_match(Q, K, V):
    return V[(Q @ K.T).argmax(axis=1)]


# --- 3 The causal mask --------------------------------------------------------------------------------------

FIVE = normal(2, (5, 4), (5, 4), (5, 3))
ALONE = normal(3, (1, 2), (1, 2), (1, 2))
THREE = normal(4, (3, 3), (3, 3), (3, 3))


def _later(Q: np.ndarray) -> np.ndarray:
    return np.arange(len(Q)) > np.arange(len(Q))[:, None]


def _scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    return Q @ K.T / np.sqrt(Q.shape[1])


@lecture.exercise(
    given(arrays(Q=FIVE[0], K=FIVE[1], V=FIVE[2]), "Q", "K", "V"),
    given(arrays(Q=THREE[0], K=THREE[1], V=THREE[2]), "Q", "K", "V"),
    given(arrays(Q=ALONE[0], K=ALONE[1], V=ALONE[2]), "Q", "K", "V"),
    without=OWN,
    otherwise="The first place sees only itself, so the first row of the result is the first row of V. The "
    "last place sees all, so the last row is the one without a mask.",
    use=as_array,
)
def causal_attention(Q, K, V):
    """Attention in which each place sees only itself and what comes before it."""
    return _softmax(np.where(_later(Q), -np.inf, _scores(Q, K))) @ V


@causal_attention.mistake("Nothing is hidden here: the first place still sees all. Mask the scores first.")
def no_mask(Q, K, V):
    return _softmax(_scores(Q, K)) @ V


@causal_attention.mistake(
    "You hide what comes *before*, so the last place sees only itself. Hide where the key's place is greater "
    "than the query's."
)
def wrong_side(Q, K, V):
    return _softmax(np.where(_later(Q).T, -np.inf, _scores(Q, K))) @ V


@causal_attention.mistake(
    "You hide the place itself, too, so nothing is left for the first one. Hide only what comes later: `>` "
    "and not `>=`, or `k=1` in `np.triu`."
)
def itself_too(Q, K, V):
    hidden = np.arange(len(Q)) >= np.arange(len(Q))[:, None]
    return _softmax(np.where(hidden, -np.inf, _scores(Q, K))) @ V


@causal_attention.mistake(
    "You set weights to 0 *after* the softmax, so a row no longer adds up to 1. Hide the scores, and the "
    "softmax shares out everything among the rest."
)
def after_the_softmax(Q, K, V):
    return np.where(_later(Q), 0.0, _softmax(_scores(Q, K))) @ V


@causal_attention.mistake("A score of 0 is not hidden: exp(0) is 1. Put `-np.inf` there, and exp gives 0.")
def score_of_zero(Q, K, V):
    return _softmax(np.where(_later(Q), 0.0, _scores(Q, K))) @ V


@causal_attention.mistake(
    "Infinity times 0 is nan, so a mask times −∞ spoils what it should leave alone. Choose instead: "
    "`np.where(later, -np.inf, scores)`."
)
def times_infinity(Q, K, V):
    return _softmax(_scores(Q, K) + _later(Q) * -np.inf) @ V


@causal_attention.mistake("You add 1 to the hidden scores, or take 1 away. Put `-np.inf` there.")
def minus_one(Q, K, V):
    return _softmax(_scores(Q, K) - _later(Q)) @ V


@causal_attention.mistake("The mask is right. Now divide the scores by √d, as in Exercise 2.")
def forgot_root(Q, K, V):
    return _softmax(np.where(_later(Q), -np.inf, Q @ K.T)) @ V


@causal_attention.mistake("These are the weights, well masked. Multiply them by V.")
def masked_weights(Q, K, V):
    return _softmax(np.where(_later(Q), -np.inf, _scores(Q, K)))


@causal_attention.mistake(
    "You hide the place just before, too, or show one too many: the edge of the mask is one step off. The "
    "place itself is seen, and the next one is not."
)
def one_step_off(Q, K, V):
    return _softmax(np.where(_later(Q) & (np.eye(len(Q), k=1) == 0), -np.inf, _scores(Q, K))) @ V


@causal_attention.mistake(
    "You hide what may be seen, and show what comes later. `np.where(later, -np.inf, scores)` puts −∞ where "
    "`later` is True."
)
def the_rest_hidden(Q, K, V):
    return _softmax(np.where(_later(Q), _scores(Q, K), -np.inf)) @ V


@causal_attention.mistake(
    "The −∞ comes too late: you put it in place of the exps. Put it in place of the *scores*, and exp makes "
    "0 of it."
)
def after_exp(Q, K, V):
    scores = _scores(Q, K)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    powers = np.where(_later(Q), -np.inf, powers)
    return powers / powers.sum(axis=1, keepdims=True) @ V


@causal_attention.mistake(
    "The mask is right, but your weights add up to 1 in each column. Each *row* belongs to one query: "
    "`axis=1, keepdims=True`."
)
def masked_columns(Q, K, V):
    return _softmax(np.where(_later(Q), -np.inf, _scores(Q, K)), axis=0) @ V


@causal_attention.mistake("The mask is right. But divide the scores by the *root* of d, as in Exercise 2.")
def masked_by_d(Q, K, V):
    return _softmax(np.where(_later(Q), -np.inf, Q @ K.T / Q.shape[1])) @ V


# --- 4 Heads ------------------------------------------------------------------------------------------------

TWO_HEADS = normal(5, (3, 4), (3, 4), (3, 4))
SIX_WIDE = normal(6, (2, 6), (4, 6), (4, 6))


def _attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    return _softmax(_scores(Q, K)) @ V


def _parts(heads: int, *wide: np.ndarray) -> Any:
    return zip(*(np.split(x, heads, axis=1) for x in wide), strict=True)


@lecture.exercise(
    given(arrays(Q=TWO_HEADS[0], K=TWO_HEADS[1], V=TWO_HEADS[2], heads=2), "Q", "K", "V", "heads"),
    given(arrays(Q=SIX_WIDE[0], K=SIX_WIDE[1], V=SIX_WIDE[2], heads=3), "Q", "K", "V", "heads"),
    given(arrays(Q=SIX_WIDE[0], K=SIX_WIDE[1], V=SIX_WIDE[2], heads=2), "Q", "K", "V", "heads"),
    without=OWN,
    otherwise="With heads=1 it is Exercise 2. With two heads, the left half of the result depends on nothing "
    "but the left halves of Q, K and V.",
    use=as_array,
)
def many_heads(Q, K, V, heads):
    """Attention for each part of the features by itself, and the results side by side."""
    return np.concatenate([_attend(*part) for part in _parts(heads, Q, K, V)], axis=1)


@many_heads.mistake("This is a single head. Cut the columns of Q, K and V into `heads` parts first.")
def one_head(Q, K, V, heads):
    return _attend(Q, K, V)


@many_heads.mistake("You add the heads up. Put them side by side, so that each keeps its own answer.")
def added_up(Q, K, V, heads):
    return sum(_attend(*part) for part in _parts(heads, Q, K, V))


@many_heads.mistake(
    "You take the mean of the heads. Put them side by side, so that each keeps its own answer."
)
def averaged(Q, K, V, heads):
    return added_up(Q, K, V, heads) / heads


@many_heads.mistake("You put the heads below one another. Side by side is `axis=1`.")
def below_one_another(Q, K, V, heads):
    return np.concatenate([_attend(*part) for part in _parts(heads, Q, K, V)])


@many_heads.mistake(
    "You keep the heads apart, one table each. Put them side by side: `np.concatenate(…, axis=1)`."
)
def kept_apart(Q, K, V, heads):
    return np.stack([_attend(*part) for part in _parts(heads, Q, K, V)])


@many_heads.mistake(
    "You cut the rows. A row is a word, and each head sees all of them; cut the columns: `axis=1`."
)
def rows_cut(Q, K, V, heads):
    return np.concatenate([_attend(*p) for p in zip(*(np.split(x, heads) for x in (Q, K, V)), strict=True)])


@many_heads.mistake(
    "You took each second column, or each third. A head gets columns that stand next to each other: the "
    "first d / heads, and so on."
)
def interleaved(Q, K, V, heads):
    parts = [_attend(Q[:, i::heads], K[:, i::heads], V[:, i::heads]) for i in range(heads)]
    return np.concatenate(parts, axis=1)


@many_heads.mistake(
    "`reshape(heads, …)` cuts the rows, so words get mixed. Cut the columns: `np.split(Q, heads, axis=1)`."
)
def reshaped(Q, K, V, heads):
    parts = (x.reshape(heads, len(x), -1) for x in (Q, K, V))
    return np.concatenate([_attend(*part) for part in zip(*parts, strict=True)], axis=1)


@many_heads.mistake(
    "Each head divides by the root of *its own* size, d / heads. You take the root of the whole d."
)
def root_of_the_whole(Q, K, V, heads):
    more = np.sqrt(heads)
    return np.concatenate([_attend(q / more, k, v) for q, k, v in _parts(heads, Q, K, V)], axis=1)


@many_heads.mistake("Only Q and K are cut: each head still hands over all of V. Cut V, too.")
def values_whole(Q, K, V, heads):
    return np.concatenate([_attend(q, k, V) for q, k in _parts(heads, Q, K)], axis=1)


@many_heads.mistake("Only Q is cut. Each head needs its part of all three: cut K and V, too.")
def queries_cut(Q, K, V, heads):
    return np.concatenate([_attend(q, K, V) for q in np.split(Q, heads, axis=1)], axis=1)


@many_heads.mistake("This is the first head alone. Gather the answers of all heads, side by side.")
def first_head(Q, K, V, heads):
    return next(_attend(*part) for part in _parts(heads, Q, K, V))


@many_heads.mistake(
    "You cut into two parts, or into parts of `heads` columns. There should be `heads` parts, of d / heads "
    "columns each."
)
def parts_of_so_many_columns(Q, K, V, heads):
    return many_heads.right(Q, K, V, Q.shape[1] // heads)


@many_heads.mistake(
    "`np.stack` gives the heads an axis of their own. `np.concatenate(…, axis=1)` puts them side by side."
)
def stacked_in_between(Q, K, V, heads):
    return np.stack([_attend(*part) for part in _parts(heads, Q, K, V)], axis=1)


@many_heads.mistake(
    "Heads that lie below one another do not come side by side by `reshape`: it mixes the words. Use "
    "`np.concatenate(…, axis=1)`."
)
def below_and_reshaped(Q, K, V, heads):
    return np.concatenate([_attend(*part) for part in _parts(heads, Q, K, V)]).reshape(len(Q), -1)


# --- 5 A small transformer ----------------------------------------------------------------------------------

TOKENS = np.array([[7, 2, 9, 4, 0, 5, 10, 0, 2, 4, 5, 7], [3, 8, 1, 6, 9, 2, 10, 1, 2, 3, 6, 8]])
HIDE_ONE = np.zeros((12, 12), bool)
HIDE_ONE[9, 5] = True


def _scores_of(answer: Any, tokens: np.ndarray, hidden: Any) -> Any:
    """What a new network of this class says; its parameters are always the same."""
    return answer(np.random.default_rng(0))(tokens, hidden)


def _with_a_way_back(expected: Any, got: Any, names: Names) -> str:
    """`values`, and a Tensor from which a gradient comes to every parameter."""
    if difference := values(expected, got, names):
        return difference
    wanted, reached = (
        sum(isinstance(node, Parameter) for node in find_topo_sort([result])) for result in (expected, got)
    )
    if reached < wanted:
        return f"the numbers are right, but the gradient comes to {reached} of the {wanted} parameters only"
    return ""


_with_a_way_back.exactly = values  # type: ignore[attr-defined]  # the same mistake, wherever the way is cut


class Sorter(Module):
    """Reads digits, then writes them again in order: for each place, ten scores for what comes next."""

    def __init__(self, rng):
        self.tokens = Embedding(11, 32, rng=rng)
        self.places = Embedding(12, 32, rng=rng)
        self.look = AttentionLayer(32, num_head=1, dim_head=32, causal=True, rng=rng)
        self.think = Sequential(LayerNorm1d(32), Linear(32, 64, rng=rng), ReLU(), Linear(64, 32, rng=rng))
        self.scores = Linear(32, 10, rng=rng)

    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        x = x + self.look(x, mask=hidden)
        x = x + self.think(x)
        return self.scores(x)

    def start(self, tokens):
        return self.tokens(tokens) + self.places(np.arange(tokens.shape[1]))


sorter = lecture.exercise(
    given(arrays(tokens=TOKENS[:, :7], hidden=None), "tokens", "hidden"),
    given(arrays(tokens=TOKENS, hidden=None), "tokens", "hidden"),
    given(arrays(tokens=TOKENS, hidden=HIDE_ONE), "tokens", "hidden"),
    otherwise="Go through it line by line: the sum of two embeddings, then look, then think, each added to "
    "what it got, and the scores at the end.",
    compare=_with_a_way_back,
    use=_scores_of,
    form="Sorter(rng)({}, {})",
)(Sorter)


@sorter.mistake("The places are missing. Add `self.places(np.arange(…))` to the tokens' vectors.")
class NoPlaces(Sorter):
    def start(self, tokens):
        return self.tokens(tokens)


@sorter.mistake(
    "The number of places is not always 12: while it writes, the sequence is shorter. Take `tokens.shape[1]`."
)
class AlwaysTwelve(Sorter):
    def start(self, tokens):
        return self.tokens(tokens) + self.places(np.arange(12))


@sorter.mistake(
    "`tokens.shape[0]` and `len(tokens)` say how many sequences there are. The places go along each of them: "
    "`tokens.shape[1]`."
)
class PlacesOfTheBatch(Sorter):
    def start(self, tokens):
        return self.tokens(tokens) + self.places(np.arange(len(tokens)))


@sorter.mistake(
    "You look the places up by the *digits*. They go by place: 0, 1, 2, … up to the time, with `np.arange`."
)
class PlacesByDigits(Sorter):
    def start(self, tokens):
        return self.tokens(tokens) + self.places(tokens)


@sorter.mistake("The second argument of `look` is for keys. Say what yours is: `self.look(x, mask=hidden)`.")
class MaskAsKeys(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        x = x + self.look(x, hidden)
        return self.scores(x + self.think(x))


@sorter.mistake("The `look` *replaces* x. Add what it finds: `x = x + self.look(…)`.")
class LookReplaces(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.look(self.start(tokens), mask=hidden)
        return self.scores(x + self.think(x))


@sorter.mistake("The `think` *replaces* x. Add what it finds: `x = x + self.think(x)`.")
class ThinkReplaces(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        return self.scores(self.think(x + self.look(x, mask=hidden)))


@sorter.mistake("Both parts *replace* x. Each should add to what it got: `x = x + …`.")
class BothReplace(Sorter):
    def forward(self, tokens, hidden=None):
        return self.scores(self.think(self.look(self.start(tokens), mask=hidden)))


@sorter.mistake(
    "`think` gets what `look` has *not* changed yet. It should get the sum: x after the first step."
)
class SideBySide(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        return self.scores(x + self.look(x, mask=hidden) + self.think(x))


@sorter.mistake("You think before you look. It is the other way round: first gather, then work on it.")
class ThinkFirst(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        x = x + self.think(x)
        return self.scores(x + self.look(x, mask=hidden))


@sorter.mistake("`look` must know what is hidden: `self.look(x, mask=hidden)`.")
class MaskForgotten(Sorter):
    def forward(self, tokens, hidden=None):
        return super().forward(tokens)


@sorter.mistake("`think` is missing: after the look, each place works on what it has found.")
class NoThinking(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        return self.scores(x + self.look(x, mask=hidden))


@sorter.mistake("`look` is missing, so no place knows anything of the others.")
class NoLooking(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        return self.scores(x + self.think(x))


@sorter.mistake("These are the 32 features of each place. `self.scores` makes ten scores of them.")
class NoScores(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        x = x + self.look(x, mask=hidden)
        return x + self.think(x)


@sorter.mistake("Return the scores as they are: the loss takes the softmax of them itself.")
class SoftmaxTwice(Sorter):
    def forward(self, tokens, hidden=None):
        return softmax(super().forward(tokens, hidden))


@sorter.mistake("You multiply the two embeddings. Add them.")
class Multiplied(Sorter):
    def start(self, tokens):
        return self.tokens(tokens) * self.places(np.arange(tokens.shape[1]))


@sorter.mistake(
    "`self.places(n)` is the vector of a single place. Look up one for each: `self.places(np.arange(n))`."
)
class OnePlace(Sorter):
    def start(self, tokens):
        return self.tokens(tokens) + self.places(tokens.shape[1])


@sorter.mistake(
    "`think` gets only what `look` has found. Add that to x first, and let `think` work on the sum."
)
class ThinksOfTheLook(Sorter):
    def forward(self, tokens, hidden=None):
        x = self.start(tokens)
        return self.scores(x + self.think(self.look(x, mask=hidden)))


@sorter.mistake(
    "Your numbers have lost their history, so not every part can learn. Stay with Tensors, and leave out "
    "`detach` and `.numpy()`."
)
class NoWayBack(Sorter):
    def forward(self, tokens, hidden=None):
        return super().forward(tokens, hidden).detach()


@sorter.mistake("This is an array of NumPy's, and nothing could be learned. Return the Tensor.")
class AsAnArray(Sorter):
    def forward(self, tokens, hidden=None):
        return super().forward(tokens, hidden).numpy()


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


def four(x: Any) -> Tensor:
    """A table of shape (time, features) as the library wants it: (batch, heads, time, dim)."""
    return Tensor(np.asarray(x)[None, None], dtype="float64")
