"""Lecture 18: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("values", "With *tired*, `it` looks at the dog; with *flat*, at the ball", "two-endings",
     "because it was tired: dog 0.96, left 0.00, ball 0.03, because 0.00\nbecause it was flat: dog 0.04, "
     "left 0.08, ball 0.88, because 0.00\n"),
    ("values",
     "A query of zeros asks for nothing, and gets an even mix. The longer a query is, the clearer its choice",
     "longer", "query (0, 0): [0.25 0.25 0.25 0.25]\nquery (1, 0): [0.79 0.02 0.14 0.05]\nquery (2, 0): "
     "[0.96 0.   0.03 0.  ]\nquery (4, 0): [1. 0. 0. 0.]\n"),
    ("saturated", "The product of two random vectors grows like √d", "how-large",
     "d =    4: the product is typically  2.0, and √d is 2\nd =   64: the product is typically  7.9, and "
     "√d is 8\nd = 1024: the product is typically 32.7, and √d is 32\n"),
    ("heads", "Above the diagonal all numbers are 0", "leak-code",
     "[[1 0 0 0 0]\n [1 1 0 0 0]\n [1 1 1 0 0]\n [1 1 1 1 0]\n [1 1 1 1 1]]\nthe same numbers as ours: "
     "True\n"),
    ("linear-maps", "Where do queries, keys and values come from?", "four-heads",
     "the library's four heads: True\n"),
    ("layer-intro", "Take its four matrices, and three texts of five words", "same-layer",
     "the shapes of its maps: (8, 4) (8, 4) (8, 4) (4, 8)\nthe library's layer: True\n"),
    ("order", "Four heads have no more to learn than one", "count-heads",
     "1 × 32 features: 4,288 numbers to learn\n4 ×  8 features: 4,288 numbers to learn\n"),
    ("sorter", "So attention does not know in which order the words came", "shuffled",
     "['because', 'dog', 'ball', 'left'] the same answer: True\n"),
    ("exercise-transformer",
     "From the sign on, there is a target at each place: the next digit of the sorted list", "task",
     "it reads:  [ 8  4  7  0  1  2 10  0  1  2  4  7] \nit writes:                    [0 1 2 4 7 8]\n"),
    ("read-sorter", "That is how it sorts", "write", "[3, 8, 1, 6, 9, 2] → [1 2 3 6 8 9]\nmore than 95 of "
     "100 new lists are sorted without a mistake: True\n"),
    ("pay-off", "Hide the 0, and it writes 2. So it does write what it looks at, and in other lists, too",
     "hide", "it sees all:    0\nwithout the 0:  2\nit writes the second smallest in more than 90 of 100 "
     "other lists: True\n"),
]  # fmt: skip

#: The causal map of the sentence, and the map of the small transformer from the sign on.
MASKED = "nn.MultiHeadAttention(causal=True)(*[four(t) for t in (sentence_Q, sentence_K, sentence_K)])[1]"
SORTING = "maps.numpy()[0, 0, 6:]"

#: In 1,000 lists, for each place from the sign on: how often it looks most at the digit that follows.
LOOKED = (
    "(lambda t, y: (np.take_along_axis(t, model.look(model.tokens(t) + model.places(np.arange(12)), "
    "return_probs=True)[1].numpy()[:, 0, 6:].argmax(-1), axis=1) == y).mean(axis=0))"
    "(*examples(1000, np.random.default_rng(5)))"
)

TRUE = [
    ("keys", "a row for each word", "K.shape == (4, 2)"),
    ("one-query", "which add up to 1", "np.isclose(weigh(np.array([2.0, 0.0]), K).sum(), 1)"),
    ("read-map", "`it` looks at the dog, and so does `tired`",
     "np.argmax(all_weights, axis=1)[[6, 8]].tolist() == [1, 1]"),
    ("read-map", "it looks mostly at the dog, and a little at the ball",
     "np.argsort(all_weights[2])[::-1][:2].tolist() == [1, 4]"),
    ("read-map", "so their rows are even: 1/9 each",
     "all(np.allclose(all_weights[i], 1 / 9) for i in (0, 1, 3))"),
    ("saturated", "its weight w moves by w(1 − w) times that",
     "(lambda s: (lambda p: np.allclose(ndl.gradients(ndl.softmax(s)[0, 1], [s])[0].numpy()[0, 1], p * (1 "
     "- p), atol=1e-5))(ndl.softmax(s).numpy()[0, 1]))(ndl.Tensor([[0.5, 1.0, -1.0]]))"),
    ("exercise-attention", "begins with weights as even as those of a query of 16",
     "sizes[-1] == 1024 and abs(largest['divided by √d'][-1] - largest['divided by √d'][4]) < 0.05"),
    ("exercise-attention",
     "one key takes nearly everything, and its weight hardly moves: hardly any gradient comes through",
     "largest['as they are'][-1] > 0.95 and slopes['as they are'][-1] < 0.03 and slopes['divided by "
     "√d'][-1] > 0.12"),
    ("second-way", "takes Tensors of shape (batch, heads, time, features)",
     "four(K).shape == (1, 1, 4, 2) and nn.MultiHeadAttention().parameters() == []"),
    ("drag-intro", "The library computes the weights", "not any(str(word.get_color()) == 'black' for ax in "
     "turn(0).figure.axes for word in [*ax.texts, *(ax.get_legend().get_texts() if ax.get_legend() else "
     "[])])"),
    ("drag-intro", "The thicker an arrow, the more its word weighs",
     "np.argmax([arrow.get_linewidth() for arrow in turn(0).figure.axes[0].patches[:4]]) == 0"),
    ("inside", "it lies among the values", "(lambda a: (a >= K.min(axis=0)).all() and (a <= "
     "K.max(axis=0)).all())(attend(rng.normal(0, 9, (500, 2)), K, K))"),
    ("inside", "A query of length 0 leaves it in the middle",
     "np.allclose(attend(np.zeros((1, 2)), K, K)[0], K.mean(axis=0))"),
    ("inside", "A long query that points at one word brings it close to that word",
     "np.allclose(attend(10 * K[:1], K, K)[0], K[0], atol=0.01)"),
    ("exercise-causal", "Again the weights are a little softer",
     "nn.MultiHeadAttention()(*[four(t) for t in (sentence_Q, sentence_K, sentence_K)])[1].numpy().max() < "
     "np.max(all_weights)"),
    ("exercise-causal", "Look at `left`: it has lost the ball",
     "MASKED.numpy()[0, 0, 2, 4] == 0 and np.isclose(MASKED.numpy()[0, 0, 2].sum(), 1)"),
    ("exercise-causal", "`it` could still see the dog and the ball",
     "(MASKED.numpy()[0, 0, 6, [1, 4]] > 0).all()"),
    ("exercise-causal", "it is the place of *tired* that has to find the dog",
     "MASKED.numpy()[0, 0, 8].argmax() == 1"),
    ("linear-maps", "These four **linear maps** are all that attention learns",
     "len(nn.AttentionLayer(8, 1, 4, prenorm=False).parameters()) == 4"),
    ("linear-maps", "`x` has shape (batch, time, features)", "theirs.shape == (3, 5, 8)"),
    ("layer-solution", "A loop over the texts does it, too",
     "(lambda x, *W: np.allclose(attention_layer(x, *W), "
     "[attend(*[t @ w for w in W[:3]]) @ W[3] for t in x]))"
     "(*[rng.normal(0, 1, size) for size in ((2, 3, 8), (8, 4), (8, 4), (8, 4), (4, 8))])"),
    ("exercise-transformer", "whole numbers `tokens` of shape (batch, time)",
     "examples(1, rng)[0].shape == (1, 12)"),
    ("transformer-solution", "with one layer and one head", "model.look.num_head == 1"),
    ("train-intro", "Each step takes 64 new examples", "scores.shape == (64 * 6, 10)"),
    ("read-sorter", "The sign looks at the 0. The 0 looks at the 2, the 2 at the 4, the 4 at the 5, the 5 "
     "at the 7, and the 7 at the 9",
     "np.array([7, 2, 9, 4, 0, 5])[SORTING.argmax(axis=1)].tolist() == [0, 2, 4, 5, 7, 9]"),
    ("read-sorter", "In each row, more than half of the weight lies there",
     "(SORTING.max(axis=1) > 0.5).all()"),
    ("read-sorter", "what comes later gets exactly 0", "(np.triu(SORTING[:, 6:], 1) == 0).all()"),
    ("pay-off",
     "At one of the last places it looks at another digit in many lists, and still writes the right one",
     "LOOKED[0] > 0.95 and min(LOOKED[3:]) < 0.85 and right > 0.95"),
    ("exercise-causal", "from 8, where each word sees all, down to 0", "sentence_K.shape == (9, 2)"),
    ("sorter", "`nn.SinusoidalEncoding`",
     "nn.SinusoidalEncoding(12, 32).parameters() == [] and len(nn.Embedding(12, 32).weight) == 12"),
    ("summary", "A hundred times", "(10 * 12) ** 2 == 100 * 12**2"),
]  # fmt: skip

TRUE = [
    (cell, words, x.replace("MASKED", MASKED).replace("SORTING", SORTING).replace("LOOKED", LOOKED))
    for cell, words, x in TRUE
]
