"""Lecture 18: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SHOWN = [
    (
        "values",
        "With *tired*, `it` looks at the dog; with *flat*, at the ball",
        "two-endings",
        "because it was tired: dog 0.96, left 0.00, ball 0.03, because 0.00\n"
        "because it was flat: dog 0.04, left 0.08, ball 0.88, because 0.00\n",
    ),
    (
        "values",
        "A query of zeros asks for nothing, and gets an even mix. The longer a query is, the more it insists",
        "longer",
        "query (0, 0): [0.25 0.25 0.25 0.25]\nquery (1, 0): [0.79 0.02 0.14 0.05]\n"
        "query (2, 0): [0.96 0.   0.03 0.  ]\nquery (4, 0): [1. 0. 0. 0.]\n",
    ),
    (
        "saturated",
        "The product of two random vectors grows like √d",
        "how-large",
        "d =    4: the product is typically  2.0, and √d is 2\n"
        "d =   64: the product is typically  7.9, and √d is 8\n"
        "d = 1024: the product is typically 32.7, and √d is 32\n",
    ),
    (
        "heads",
        "Above the diagonal there is not one",
        "leak-code",
        "[[1 0 0 0 0]\n [1 1 0 0 0]\n [1 1 1 0 0]\n [1 1 1 1 0]\n [1 1 1 1 1]]\n"
        "the same numbers as ours: True\n",
    ),
    (
        "order",
        "More heads cost nothing more to learn",
        "count-heads",
        "1 × 32 features: 4,288 numbers to learn\n4 ×  8 features: 4,288 numbers to learn\n"
        "the library's four heads: True\n",
    ),
    (
        "sorter",
        "A set goes in, and no place has a name",
        "shuffled",
        "['because', 'dog', 'ball', 'left'] the same answer: True\n",
    ),
    (
        "exercise-transformer",
        "From the sign on, there is a target at each place: the next digit of the sorted list",
        "task",
        "it reads:  [ 8  4  7  0  1  2 10  0  1  2  4  7] \nit writes:                    [0 1 2 4 7 8]\n",
    ),
    (
        "read-sorter",
        "That is how it sorts",
        "write",
        "[3, 8, 1, 6, 9, 2] → [1 2 3 6 8 9]\n"
        "more than 95 of 100 new lists are sorted without a mistake: True\n",
    ),
    (
        "pay-off",
        "Hide the 0, and it writes 2. So it does write what it looks at, and in other lists, too",
        "hide",
        "it sees all:    0\nwithout the 0:  2\n"
        "it writes the second smallest in more than 90 of 100 other lists: True\n",
    ),
]

#: The causal map of the sentence, and the map of the small transformer from the sign on.
MASKED = "nn.MultiHeadAttention(causal=True)(*[four(t) for t in (sentence_Q, sentence_K, sentence_K)])[1]"
SORTING = "maps.numpy()[0, 0, 6:]"

#: In 1,000 lists, for each place from the sign on: how often it looks most at the digit that follows.
LOOKED = (
    "(lambda t, y: (np.take_along_axis(t, model.look(model.tokens(t) + model.places(np.arange(12)), "
    "return_probs=True)[1].numpy()[:, 0, 6:].argmax(-1), axis=1) == y).mean(axis=0))"
    "(*examples(1000, np.random.default_rng(5)))"
)

#: In the pictures of the drag: whether the query, which is the last arrow, runs through a word.
THROUGH_A_WORD = (
    "[word.get_window_extent().count_contains(ax.transData.transform("
    "np.outer(np.linspace(0, 1, 60), ax.patches[-1].get_path().vertices[4])))"  # up to its tip
    " for ax in (turn(angle).figure.axes[0] for angle in range(-180, 180, 15))"
    " if not ax.figure.canvas.draw()"  # where things are is known once they are drawn
    " if not __import__('matplotlib.pyplot').pyplot.close(ax.figure) for word in ax.texts]"
)

#: The colours in the row of pixels along the horizontal axis, from its middle to its right end.
TO_THE_RIGHT = (
    "(lambda ax: (lambda page, at: page[int(len(page) - at[0, 1]), int(at[0, 0]):int(at[1, 0]) - 3, :3])"
    "((ax.figure.canvas.draw(), np.asarray(ax.figure.canvas.buffer_rgba()))[1].astype(int),"
    " ax.transData.transform([(0, 0), (ax.get_xlim()[1], 0)])))"
)

TRUE = [
    ("keys", "a row for each word", "K.shape == (4, 2)"),
    (
        "one-query",
        "which add up to 1",
        "np.isclose(weigh(np.array([2.0, 0.0]), K).sum(), 1)",
    ),
    (
        "read-map",
        "`it` looks at the dog, and so does `tired`",
        "np.argmax(all_weights, axis=1)[[6, 8]].tolist() == [1, 1]",
    ),
    (
        "read-map",
        "it looks mostly at the dog, and a little at the ball",
        "np.argsort(all_weights[2])[::-1][:2].tolist() == [1, 4]",
    ),
    (
        "read-map",
        "so their rows are even: 1/9 each",
        "all(np.allclose(all_weights[i], 1 / 9) for i in (0, 1, 3))",
    ),
    (
        "saturated",
        "its weight w moves by w(1 − w) times that",
        "(lambda s: (lambda p: np.allclose(ndl.gradients(ndl.softmax(s)[0, 1], [s])[0].numpy()[0, 1],"
        " p * (1 - p), atol=1e-5))(ndl.softmax(s).numpy()[0, 1]))(ndl.Tensor([[0.5, 1.0, -1.0]]))",
    ),
    (
        "exercise-attention",
        "a query of 1,024 numbers begins as open as a query of 16",
        "sizes[-1] == 1024 and abs(largest['divided by √d'][-1] - largest['divided by √d'][4]) < 0.05",
    ),
    (
        "exercise-attention",
        "one key takes nearly everything, and its weight hardly moves: hardly any gradient comes through",
        "largest['as they are'][-1] > 0.95 and slopes['as they are'][-1] < 0.03"
        " and slopes['divided by √d'][-1] > 0.12",
    ),
    (
        "second-way",
        "takes Tensors of shape (batch, heads, time, features)",
        "four(K).shape == (1, 1, 4, 2) and nn.MultiHeadAttention().parameters() == []",
    ),
    ("drag-intro", "Drag `angle`", f"not any({THROUGH_A_WORD})"),
    (  # matplotlib's own black stays black on a dark page
        "drag-intro",
        "The library computes the weights",
        "not any(str(word.get_color()) == 'black' for ax in turn(0).figure.axes"
        " for word in [*ax.texts, *(ax.get_legend().get_texts() if ax.get_legend() else [])])",
    ),
    (
        "drag-intro",
        "The thicker an arrow, the more its word weighs",
        "np.argmax([arrow.get_linewidth() for arrow in turn(0).figure.axes[0].patches[:4]]) == 0",
    ),
    (  # a query that is too long for the picture is seen up to the edge
        "drag-intro",
        "make the query longer",
        f"(lambda row: (row[:, 0] - row[:, 2])[-20:].max() > 100)({TO_THE_RIGHT}(plane(words, K, [6, 0])))",
    ),
    (
        "inside",
        "it lies among the values",
        "(lambda a: (a >= K.min(axis=0)).all() and (a <= K.max(axis=0)).all())"
        "(attend(rng.normal(0, 9, (500, 2)), K, K))",
    ),
    (
        "inside",
        "A query of length 0 leaves it in the middle",
        "np.allclose(attend(np.zeros((1, 2)), K, K)[0], K.mean(axis=0))",
    ),
    (
        "inside",
        "A long query that points at one word brings it close to that word",
        "np.allclose(attend(10 * K[:1], K, K)[0], K[0], atol=0.01)",
    ),
    (
        "exercise-causal",
        "Again the weights are a little softer",
        "nn.MultiHeadAttention()(*[four(t) for t in (sentence_Q, sentence_K, sentence_K)])[1].numpy().max()"
        " < np.max(all_weights)",
    ),
    (
        "exercise-causal",
        "Look at `left`: it has lost the ball",
        f"{MASKED}.numpy()[0, 0, 2, 4] == 0 and np.isclose({MASKED}.numpy()[0, 0, 2].sum(), 1)",
    ),
    (
        "exercise-causal",
        "`it` could still see the dog and the ball",
        f"({MASKED}.numpy()[0, 0, 6, [1, 4]] > 0).all()",
    ),
    (
        "exercise-causal",
        "it is the place of *tired* that has to find the dog",
        f"{MASKED}.numpy()[0, 0, 8].argmax() == 1",
    ),
    (
        "order",
        "three for queries, keys and values, and one for the answers",
        "sum(type(m).__name__ == 'Linear' for m in vars(nn.AttentionLayer(32, 1, 32)).values()) == 4",
    ),
    (
        "exercise-transformer",
        "whole numbers `tokens` of shape (batch, time)",
        "examples(1, rng)[0].shape == (1, 12)",
    ),
    (
        "transformer-solution",
        "with one layer and one head",
        "model.look.num_head == 1",
    ),
    ("train-intro", "Each step takes 64 new examples", "scores.shape == (64 * 6, 10)"),
    (
        "read-sorter",
        "The sign looks at the 0. The 0 looks at the 2, the 2 at the 4, the 4 at the 5, the 5 at the 7, and "
        "the 7 at the 9",
        "np.array([7, 2, 9, 4, 0, 5])[" + SORTING + ".argmax(axis=1)].tolist() == [0, 2, 4, 5, 7, 9]",
    ),
    (
        "read-sorter",
        "In each row, more than half of the weight lies there",
        f"({SORTING}.max(axis=1) > 0.5).all()",
    ),
    (
        "read-sorter",
        "what comes later gets exactly 0",
        f"(np.triu({SORTING}[:, 6:], 1) == 0).all()",
    ),
    (
        "pay-off",
        "At one of the last places it looks at another digit in many lists, and still writes the right one",
        f"{LOOKED}[0] > 0.95 and min({LOOKED}[3:]) < 0.85 and right > 0.95",
    ),
    ("exercise-causal", "from 8, where each word sees all, down to 0", "sentence_K.shape == (9, 2)"),
    (
        "sorter",
        "`nn.SinusoidalEncoding`",
        "nn.SinusoidalEncoding(12, 32).parameters() == [] and len(nn.Embedding(12, 32).weight) == 12",
    ),
    ("summary", "A hundred times", "(10 * 12) ** 2 == 100 * 12**2"),
]

SOFT = "    p = np.exp(s - s.max(axis=1, keepdims=True))\n    p = p / p.sum(axis=1, keepdims=True)\n"
LAYER = (
    "from needle import nn\n"
    "class Sorter(nn.Module):\n"
    "    def __init__(self, rng):\n"
    "        self.tokens = nn.Embedding(11, 32, rng=rng)\n"
    "        self.places = nn.Embedding(12, 32, rng=rng)\n"
    "        self.look = nn.AttentionLayer(32, num_head=1, dim_head=32, causal=True, rng=rng)\n"
    "        self.think = nn.Sequential(nn.LayerNorm1d(32), nn.Linear(32, 64, rng=rng), nn.ReLU(), "
    "nn.Linear(64, 32, rng=rng))\n"
    "        self.scores = nn.Linear(32, 10, rng=rng)\n"
    "    def forward(self, tokens, hidden=None):\n"
)
PLACES = "        x = self.tokens(tokens) + self.places(np.arange(tokens.shape[1]))\n"
HEADS = "def many_heads(Q, K, V, heads):\n    d, out = Q.shape[1] // heads, []\n    for h in range(heads):\n"
ONE = "        s = Q[:, c] @ K[:, c].T / np.sqrt(d)\n    " + SOFT.replace("\n    ", "\n        ", 1)

NEAR_MISSES = {
    "weights_of": [
        ("def weights_of(q, K):\n    return np.array([k @ q for k in K])", "These are the scores"),
        (
            "def weights_of(q, K):\n    e = [np.exp(k @ q) for k in K]\n    return np.array(e) / sum(e)",
            "too large for a number",
        ),
        (
            "def weights_of(q, K):\n    s = K.T @ q\n    return np.exp(s) / np.exp(s).sum()",
            "`K @ q` multiplies each row",
        ),
        (
            "def weights_of(q, K):\n    s = np.array([k @ q for k in K])\n    return s / s.sum()",
            "take exp of each first",
        ),
        (
            "def weights_of(q, K):\n    w = np.zeros(len(K))\n    w[np.argmax(K @ q)] = 1\n    return w",
            "leaves something for the others",
        ),
        (
            "def weights_of(q, K):\n    s = K @ q\n    return np.exp(s - s.max()) / sum(s)",
            "the sum of the exps",
        ),
        (
            "def weights_of(q, K):\n    s = np.array([k @ q for k in K])\n    return np.exp(s - s.max())",
            "divide by their sum",
        ),
        (
            "def weights_of(q, K):\n    s = K @ q[:, None]\n    p = np.exp(s - s.max())\n"
            "    return p / p.sum()",
            "they stand in a column",
        ),
        (
            "def weights_of(q, K):\n    s = K @ q\n    s = s / s.max()\n    p = np.exp(s)\n"
            "    return p / p.sum()",
            "*divide* by the largest score",
        ),
        (
            "def weights_of(q, K):\n    s = np.array([k @ q for k in K])\n"
            "    return np.exp(s - max(s)) / sum(np.exp(s))",
            "the sum of the same exps",
        ),
        (
            "def weights_of(q, K):\n    length = lambda v: (v**2).sum() ** 0.5\n"
            "    p = np.exp([k @ q / length(k) / length(q) for k in K])\n    return p / p.sum()",
            "only the angle counts",
        ),
    ],
    "attention": [
        ("def attention(Q, K, V):\n    s = Q @ K.T\n" + SOFT + "    return p @ V", "Divide them by √d"),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1]\n" + SOFT + "    return p @ V",
            "divide by its root",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / len(K) ** 0.5\n" + SOFT + "    return p @ V",
            "how many numbers one of them has",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n    p = np.exp(s)\n"
            "    return p / p.sum(axis=0) @ V",
            "along the rows",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n" + SOFT + "    return p",
            "multiply by V",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n    p = np.exp(s)\n"
            "    return (p / p.sum(axis=1, keepdims=True)) @ V",
            "Subtract the largest score of each row",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n    p = np.exp(s)\n"
            "    return p / p.sum(axis=1) @ V",
            "`keepdims=True`",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / 2\n" + SOFT + "    return p @ V",
            "√d only where d is 4",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / 2**0.5\n" + SOFT + "    return p @ V",
            "always divide by √2",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / V.shape[-1] ** 0.5\n" + SOFT + "    return p @ V",
            "how many numbers a *value* has",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / len(Q[0]) ** 0.5\n" + SOFT + "    return p @ V.T",
            "Leave V as it is",
        ),
        (
            "def attention(Q, K, V):\n    s = Q * K / len(Q[0]) ** 0.5\n" + SOFT + "    return p @ V",
            "entry by entry",
        ),
        (
            "def attention(Q, K, V):\n    s = np.dot(Q, K) / len(Q[0]) ** 0.5\n" + SOFT + "    return p @ V",
            "rows meet columns",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            "    p = np.exp(s - s.max(axis=0, keepdims=True))\n"
            "    return p / p.sum(axis=1, keepdims=True) @ V",
            "Take the largest of each row",
        ),
        (
            "def attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            "    p = np.exp(s - s.max(axis=1, keepdims=True))\n"
            "    return p / p.sum(axis=0, keepdims=True) @ V",
            "add up to 1 in each column",
        ),
        (
            "def attention(Q, K, V):\n    return np.array([V[np.argmax(K @ q)] for q in Q])",
            "the best match alone",
        ),
        (
            "from needle import nn\nfrom lectures.lecture_18 import four\n"
            "def attention(Q, K, V):\n"
            "    return nn.MultiHeadAttention()(four(Q), four(K), four(V))[0].numpy()[0, 0]",
            "is what you build here",
        ),
    ],
    "causal_attention": [
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            + SOFT
            + "    return p @ V",
            "Nothing is hidden",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            + SOFT
            + "    return np.tril(p) @ V",
            "*after* the softmax",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = np.tril(Q @ K.T / Q.shape[1] ** 0.5)\n"
            + SOFT
            + "    return p @ V",
            "A score of 0 is not hidden",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            "    s[np.triu_indices(len(Q))] = -np.inf\n" + SOFT + "    return p @ V",
            "hide the place itself",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            "    s[np.tril_indices(len(Q), -1)] = -np.inf\n" + SOFT + "    return p @ V",
            "what comes *before*",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            "    s = s - np.inf * np.triu(np.ones((len(Q), len(Q))), 1)\n" + SOFT + "    return p @ V",
            "Infinity times 0",
        ),
        (
            "def causal_attention(Q, K, V):\n    rows = []\n    for i in range(len(Q)):\n"
            "        s = Q[i] @ K[:i + 1].T\n        p = np.exp(s - s.max())\n"
            "        rows.append(p / p.sum() @ V[:i + 1])\n    return np.array(rows)",
            "divide the scores by √d",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n    i = np.arange(len(Q))\n"
            "    s = np.where(~(i > i[:, None]), -np.inf, s)\n" + SOFT + "    return p @ V",
            "You hide what may be seen",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            "    p = np.exp(s - s.max(axis=1, keepdims=True))\n"
            "    p[np.triu_indices(len(Q), 1)] = -np.inf\n"
            "    return p / p.sum(axis=1, keepdims=True) @ V",
            "in place of the *scores*",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1] ** 0.5\n"
            "    p = np.tril(np.exp(s))\n    return p / p.sum(axis=0) @ V",
            "add up to 1 in each column",
        ),
        (
            "def causal_attention(Q, K, V):\n    s = Q @ K.T / Q.shape[1]\n    p = np.tril(np.exp(s))\n"
            "    return p / p.sum(axis=1, keepdims=True) @ V",
            "by the *root* of d",
        ),
    ],
    "many_heads": [
        (
            HEADS
            + "        c = slice(h * d, h * d + d)\n"
            + ONE
            + "        out.append(p @ V[:, c])\n    return sum(out)",
            "You add the heads up",
        ),
        (
            HEADS
            + "        c = slice(h * d, h * d + d)\n"
            + ONE
            + "        out.append(p @ V[:, c])\n    return np.vstack(out)",
            "Side by side is `axis=1`",
        ),
        (
            HEADS
            + "        c = slice(h * d, h * d + d)\n"
            + ONE
            + "        out.append(p @ V[:, c])\n    return np.array(out)",
            "one table each",
        ),
        (
            HEADS
            + "        c = slice(h * d, h * d + d)\n"
            + ONE
            + "        out.append(p @ V)\n    return np.hstack(out)",
            "Cut V, too",
        ),
        (
            HEADS
            + "        c = slice(h, None, heads)\n"
            + ONE
            + "        out.append(p @ V[:, c])\n    return np.hstack(out)",
            "next to each other",
        ),
        (
            HEADS
            + "        c = slice(h * d, h * d + d)\n"
            + ONE.replace("sqrt(d)", "sqrt(Q.shape[1])")
            + "        out.append(p @ V[:, c])\n    return np.hstack(out)",
            "the root of the whole d",
        ),
        (
            HEADS + "        c = slice(h * d, h * d + d)\n" + ONE + "        return p @ V[:, c]",
            "the first head alone",
        ),
        (
            HEADS
            + "        c = slice(h * d, h * d + d)\n"
            + ONE
            + "        out.append(p @ V[:, c])\n    return np.stack(out, axis=1)",
            "an axis of their own",
        ),
        (
            HEADS
            + "        c = slice(h * d, h * d + d)\n"
            + ONE
            + "        out.append(p @ V[:, c])\n    return np.array(out).reshape(Q.shape)",
            "it mixes the words",
        ),
        (
            HEADS.replace("Q.shape[1] // heads", "Q.shape[1] // 2").replace("range(heads)", "range(2)")
            + "        c = slice(h * d, h * d + d)\n"
            + ONE
            + "        out.append(p @ V[:, c])\n    return np.hstack(out)",
            "There should be `heads` parts",
        ),
        (
            HEADS
            + "        c = slice(h * d, h * d + d)\n"
            + ONE.replace("K[:, c]", "K")
            + "        out.append(p @ V)\n    return np.hstack(out)",
            "Only Q is cut",
        ),
    ],
    "Sorter": [
        (
            LAYER + PLACES + "        x = x + self.look(x, hidden)\n        x = x + self.think(x)\n"
            "        return self.scores(x)",
            "is for keys",
        ),
        (
            LAYER + "        x = self.tokens(tokens) + self.places(tokens)\n"
            "        x = x + self.look(x, mask=hidden)\n        x = x + self.think(x)\n"
            "        return self.scores(x)",
            "by the *digits*",
        ),
        (
            LAYER + PLACES + "        x = self.look(x, mask=hidden)\n        x = self.think(x)\n"
            "        return self.scores(x)",
            "Both parts *replace* x",
        ),
        (
            LAYER + "        x = self.tokens(tokens)\n        x = x + self.look(x, mask=hidden)\n"
            "        x = x + self.think(x)\n        return self.scores(x)",
            "The places are missing",
        ),
        (
            LAYER + "        x = self.tokens(tokens) + self.places.weight\n"
            "        x = x + self.look(x, mask=hidden)\n        x = x + self.think(x)\n"
            "        return self.scores(x)",
            "not always 12",
        ),
        (
            LAYER
            + PLACES
            + "        x = x + self.look(x, mask=hidden)\n        return self.scores(self.think(x))",
            "The `think` *replaces* x",
        ),
        (
            LAYER + PLACES + "        x = x + self.look(x)\n        x = x + self.think(x)\n"
            "        return self.scores(x)",
            "must know what is hidden",
        ),
        (
            LAYER + PLACES + "        looked = self.look(x, mask=hidden)\n        thought = self.think(x)\n"
            "        return self.scores(x + looked + thought)",
            "has *not* changed yet",
        ),
        (  # the numbers are right, and most of the parts would never learn
            LAYER + PLACES + "        x = ndl.Tensor(x.numpy() + self.look(x, mask=hidden).numpy())\n"
            "        return self.scores(x + self.think(x))",
            "lost their history",
        ),
        (
            LAYER + PLACES + "        x = x + self.look(x.detach(), mask=hidden)\n"
            "        return self.scores(x + self.think(x)).detach()",
            "lost their history",
        ),
        (
            LAYER + "        x = self.tokens(tokens).detach() + self.places(np.arange(tokens.shape[1]))\n"
            "        x = x + self.look(x, mask=hidden)\n        return self.scores(x + self.think(x))",
            "lost their history",
        ),
        (
            LAYER + PLACES + "        x = x + self.look(x, mask=hidden)\n"
            "        return self.scores(x + self.think(x)).numpy()",
            "Return the Tensor",
        ),
        (
            LAYER + "        x = self.tokens(tokens) + self.places(tokens.shape[1])\n"
            "        x = x + self.look(x, mask=hidden)\n        return self.scores(x + self.think(x))",
            "the vector of a single place",
        ),
        (
            LAYER + PLACES + "        found = self.look(x, mask=hidden)\n"
            "        return self.scores(x + self.think(found))",
            "only what `look` has found",
        ),
    ],
}
