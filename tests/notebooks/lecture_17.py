"""Lecture 17: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SHOWN = [
    (
        "letters",
        "a row with a 1 at that place and 0 elsewhere",
        "same-cell",
        "e is needle.Tensor([[0. 1. 0.]])\nthe same state as the library's: True\n",
    ),
    ("gradient-intro", "The same ten weights", "weights", "3 letters: 10 weights\n100 letters: 10 weights\n"),
    (
        "why-vanish",
        "After forty letters it is so small",
        "vanish",
        " 0 letters back: 1.7e+00\n 1 letters back: 8.0e-01\n10 letters back: 3.1e-04\n"
        "20 letters back: 1.1e-07\n40 letters back: 2.4e-14\n",
    ),
    ("why-vanish", "Walk back by hand, with NumPy", "by-hand", "the same fifty lengths: True\n"),
    (
        "drag-intro",
        "Your gates are those of `nn.LSTMCell`",
        "same-lstm",
        "the same state: True and the same memory: True\n",
    ),
    (
        "model-intro",
        "2.38 is the number to beat",
        "data",
        "21355 letters to learn from, 1783 new ones, 59 different\nthe letter before alone: 2.38\n",
    ),
    (
        "epoch-intro",
        "the same text, one letter on",
        "parts",
        "'From fairest cre'\n'rom fairest crea'\n",
    ),
    ("learned", "54,000 weights", "model", "53987 weights\n"),
    (
        "learned",
        "So let it read that one, and one that Shakespeare never wrote",
        "first-question",
        "Shall I compare thee to a summer's day\nAs dark and bitter as a winter's day\n",
    ),
    (
        "exercise-write",
        "Cold, it always takes what it likes best",
        "temperature",
        "0.1 [1. 0. 0.]\n1 [0.67 0.24 0.09]\n10 [0.37 0.33 0.3 ]\n",
    ),
]

WORDS = '(lambda page: re.findall(r"[A-Za-z\']+", page))'
KNOWN = f"(lambda page: sum(w in {WORDS}(text) for w in {WORDS}(page)) / len({WORDS}(page)))"
BACK = "(lambda forget: np.array(lstm_reach(forget)))"
NUDGED = (
    "(lambda by: sum(sum(read_to_the_end(rnn, [ndl.Tensor(x.numpy() + e * (n == 45), dtype='float64') "
    "for n, x in enumerate(fifty)], None)[-1].numpy().ravel() for e in (by,)) ))"
)

TRUE = [
    (
        "hook",
        "38 sonnets",
        "[len(sonnets), {len(sonnet.splitlines()) for sonnet in sonnets}] == [38, {14}]",
    ),
    ("hook", "*Shall I compare thee to a summer's da*", '"Shall I compare thee to a summer\'s day" in learn'),
    (
        "a-cell",
        "the last of these nine, with 4.5 percent",
        "(list(shares)[8], len(shares), round(shares['y'], 1)) == ('y', 9, 4.5)",
    ),
    (
        "a-cell",
        "keeps every number between −1 and 1",
        "all(abs(state.numpy()).max() <= 1 for state in rnn_states)",
    ),
    (
        "gradient-intro",
        "each box passes a partial adjoint to `W_ih` and another to `W_hh`, and they are added up",
        "[len(p) for node, p, _ in ndl.autograd.adjoints(h3) if node in (cell.W_ih, cell.W_hh)] == [3, 3]",
    ),
    (
        "gradient-intro",
        "the walk from the state after two letters to `W_ih`",
        "[len(p) for node, p, _ in ndl.autograd.adjoints(h2) if node is cell.W_ih] == [2]",
    ),
    (
        "gradient-intro",
        "The row of zeros belongs to `d`, which has not been read yet",
        "[alphabet[n] for n, row in enumerate(ndl.gradients(h2.sum(), [cell.W_ih])[0].numpy()) "
        "if not row.any()] == ['d']",
    ),
    (
        "reach-intro",
        "some eighty letters earlier",
        "75 < 2 * np.mean([len(line) + 1 for line in text.splitlines() if line]) < 90",
    ),
    (
        "reach-intro",
        "nudge an early letter, and ask how much the last state moves",
        f"np.allclose(({NUDGED}(1e-6) - {NUDGED}(-1e-6)) / 2e-6, "
        "ndl.gradients(rnn_states[-1].sum(), fifty)[45].numpy().sum(), rtol=1e-5)",
    ),
    (
        "predict-back",
        "twenty letters back",
        "0.4 < (rnn_reach[20] / rnn_reach[0]) ** (1 / 20) < 0.5 and 5e-4 < 1.7 * (2 / 3) ** 20 < 2e-3",
    ),
    ("why-vanish", "a rhyme is twice as far away", "rnn_reach[40] < 1e-13"),
    (
        "why-vanish",
        "its slope, 1 − h², which is at most 1",
        "[z := ndl.Tensor([0.3]), ndl.gradients(y := ndl.tanh(z), [z])[0].item(), 1 - y.item() ** 2][1:] and "
        "abs(ndl.gradients(y, [z])[0].item() - (1 - y.item() ** 2)) < 1e-6",
    ),
    (
        "explode",
        "it can happen with large weights",
        "(lambda W: np.linalg.norm(np.linalg.matrix_power(W, 50)) > 1e6)(3 * rnn.W_hh.numpy())",
    ),
    ("explode", "with four times as many columns", "lstm.W_hh.shape == (2, 4 * 2)"),
    (
        "lstm-gates-solution",
        "one factor per step: the forget gate",
        "[f := ndl.Tensor([0.3]), m := ndl.Tensor([2.0]), then := lstm_gates(f, f, f, f, m)[1], "
        "abs(ndl.gradients(then, [m])[0].item() - ndl.sigmoid(f).item()) < 1e-6][-1]",
    ),
    ("drag-intro", "after 20 steps a millionth", "0.9e-6 < 0.5**20 < 1e-6"),
    (
        "drag-intro",
        "82 % after 20 steps, and 45 % after 80",
        "(round(100 * 0.99**20), round(100 * 0.99**80)) == (82, 45)",
    ),
    ("drag-intro", "sigmoid(4) is 0.98 already", "round(1 / (1 + np.exp(-4)), 2) == 0.98"),
    (
        "data-intro",
        "At −2 the LSTM forgets faster than the RNN",
        "all(BACK(-2.0)[10:] < np.array(rnn_reach)[10:])",
    ),
    ("data-intro", "only a few billionths are left", "1e-9 < BACK(0.0)[40] < 1e-8"),
    ("data-intro", "near which it begins by default", "abs(lstm.bias_ih.numpy()).max() < 2**-0.5"),
    ("data-intro", "From 2 on its line is almost flat", "all(BACK(f)[49] > 0.1 * BACK(f)[1] for f in (2.0, "
    "4.0, 6.0))"),
    ("data-intro", "the last three sonnets", "new.split('\\n\\n')[:3] == sonnets[-3:]"),
    (
        "data-intro",
        "capitals, commas, spaces and the ends of lines count, too",
        "len(letters) == 59 and set('A, \\n') <= set(letters.letters)",
    ),
    ("data-intro", "log 59 = 4.08", "round(float(np.log(len(letters))), 2) == 4.08"),
    (
        "model-intro",
        "the same as a one-hot row times a matrix",
        "np.allclose(poet.embedding(ndl.Tensor([[7]])).numpy()[0], "
        "np.eye(59)[[7]] @ poet.embedding.weight.numpy())",
    ),
    ("epoch-intro", "21,355 letters", "len(learn) == 21355"),
    ("epoch-intro", "stands in 24 columns", "columns.shape[1] == 24"),
    ("epoch", "18 epochs of 56 steps", "len(range(0, len(columns) - 1, 16)) == 56 and len(on_known) == 18"),
    (
        "learned",
        "It has learned from the line that you read",
        "\"\\nShall I compare thee to a summer's day\" in '\\n' + learn",
    ),
    ("learned", "one that Shakespeare never wrote", "'bitter as a' not in text"),
    ("learned", "far below the count of pairs", "min(on_new[:6]) < one_letter - 0.25"),
    ("learned", "Then the two curves part", "on_new[-1] - on_known[-1] > 0.5 > abs(on_new[2] - on_known[2])"),
    ("learned", "rises a little", "2 <= np.argmin(on_new) <= 10 and on_new[-1] > min(on_new) + 0.02"),
    (
        "drag-temperature-intro",
        "Nobody told it what a word is, or a line, or that a line begins with a capital letter",
        "KNOWN(verse(0.5)) > 0.6 and verse(0.5).count('\\n') > 3 and "
        "np.mean([line[0].isupper() for line in verse(0.5).split('\\n') if line]) > 0.6",
    ),
    ("drag-temperature-intro", "It writes verse", "set(verse(0.5)) <= set(letters.letters)"),
    (
        "quotation-intro",
        "Near 0 it goes around in circles",
        "len(set(WORDS(verse(0.1)))) < 0.7 * len(set(WORDS(verse(1.0))))",
    ),
    ("quotation-intro", "Near 2 it spells like nobody", "KNOWN(verse(2.1)) < 0.4 < KNOWN(verse(0.5))"),
    ("yours", "a few words at a time", "all(5 < len(longest_quotation(verse(t), learn)) < 60 for t in (0.5, "
    "1.0))"),
    (
        "rnn-cell-solution",
        "a layer as you know it, with a second input",
        "np.allclose(rnn_cell(x1, ndl.Tensor([[1.0, 2.0]]), cell.W_ih, cell.W_hh, "
        "ndl.init.zeros(2)).numpy(), cell(x1, ndl.Tensor([[1.0, 2.0]])).numpy())",
    ),
]  # fmt: skip

TRUE = [
    (cell, words, x.replace("KNOWN", KNOWN).replace("WORDS", WORDS).replace("BACK", BACK))
    for cell, words, x in TRUE
]

SOFT = (
    "def probabilities(scores, temperature):\n    e = np.exp(scores / temperature)\n    return e / e.sum()\n"
    "def write(read, letter, count, temperature, rng):\n    "
)

NEAR_MISSES = {
    "rnn_cell": [
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    new = ndl.tanh(x @ W_ih + h @ W_hh + b)\n"
            "    return new, h",
            "without the old one beside it",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    total = b + x @ W_ih + h @ W_hh\n"
            "    return [ndl.tanh(total)]",
            "without a list around it",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n"
            "    cell = ndl.nn.RNNCell(x.shape[1], h.shape[1], rng=0)\n"
            "    cell.W_ih.data, cell.W_hh.data = W_ih, W_hh\n"
            "    cell.bias_ih.data, cell.bias_hh.data = b, b * 0\n    return cell(x, h)",
            "copied into another cell",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    total = ndl.matmul(x, W_ih) + ndl.matmul(h, W_hh)\n"
            "    return total + b",
            "The tanh is missing",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    total = x @ W_ih\n    total = total + b\n"
            "    return ndl.tanh(total)",
            "the cell forgets everything",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    return ndl.tanh(W_ih @ x + W_hh @ h + b)",
            "shapes do not fit",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    return ndl.tanh(x @ W_ih) + ndl.tanh(h @ W_hh) + b",
            "tanh of each part",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n"
            "    return np.tanh(x.numpy() @ W_ih.numpy() + h.numpy() @ W_hh.numpy() + b.numpy())",
            "an array of NumPy's",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    return 1 / (1 + ndl.exp(-(x @ W_ih + h @ W_hh + b)))",
            "that is a gate",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    return ndl.tanh(x @ W_ih + h.detach() @ W_hh + b)",
            "The state lost its history",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n"
            "    total = x.numpy() @ W_ih.numpy() + h.numpy() @ W_hh.numpy() + b.numpy()\n"
            "    return ndl.tanh(ndl.Tensor(total))",
            "no gradient could reach the weights",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    return ndl.tanh(x @ W_ih + W_hh @ h + b)",
            "both stand on the left of their weights",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    ndl.tanh(x @ W_ih + h @ W_hh + b)",
            "Is a `return` missing?",
        ),
        (
            "def rnn_cell(x, h, W_ih, W_hh, b):\n    return ndl.tanh(h @ W_ih + x @ W_hh + b)",
            "You swapped the two matrices",
        ),
    ],
    "unroll": [
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n"
            "        states.append(cell(x, h))\n        h = cell(x, h)\n    return states",
            "You call the cell twice",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n"
            "        h = states.append(cell(x, h))\n    return states",
            "`append` returns None",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n        h = cell(x, h)\n"
            "        states = states.append(h)\n    return states",
            "on a line of its own",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n        h = cell(xs[0], h)\n"
            "        states.append(h)\n    return states",
            "Each round reads the first letter",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n        states.append(cell(x, h))\n"
            "    return states",
            "Hand on the new state",
        ),
        (
            "def unroll(cell, xs, h):\n    states = [h]\n    for x in xs:\n"
            "        states.append(cell(x, states[-1]))\n    return states",
            "the state before the first letter",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n        states.append(h)\n"
            "        h = cell(x, h)\n    return states",
            "You append before the cell reads",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n        h = cell(x, h)\n"
            "        states.append(h)\n        return states",
            "Is the `return` inside the loop?",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for n in range(len(xs) - 1):\n"
            "        h = cell(xs[n], h)\n        states.append(h)\n    return states",
            "Your loop stops one letter early",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n        h = cell(x, h)\n"
            "        if isinstance(h, ndl.Tensor):\n            h = h.detach()\n"
            "        states.append(h)\n    return states",
            "The states have lost their history",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    for x in xs:\n        h = cell(h, x)\n"
            "        states.append(h)\n    return states",
            "The letter comes first",
        ),
        (
            "def unroll(cell, xs, h):\n    from functools import reduce\n"
            "    return reduce(lambda state, x: cell(x, state), xs, h)",
            "only the state at the end",
        ),
        (
            "def unroll(cell, xs, h):\n    states = []\n    while xs:\n        h = cell(xs.pop(0), h)\n"
            "        states.append(h)\n    return states",
            "Leave the inputs as they are",
        ),
    ],
    "reach": [
        (
            "def reach(last, xs):\n    return np.linalg.norm(ndl.gradients(last.sum(), xs)[0].numpy())",
            "the first letter alone",
        ),
        (
            "def reach(last, xs):\n"
            "    return [np.linalg.norm(g.numpy()) for g in ndl.gradients(last.sum(), xs[:1])]",
            "Return one for each letter",
        ),
        (
            "def reach(last, xs):\n"
            "    return [np.sqrt((g.numpy()[0] ** 2).sum()) for g in ndl.gradients(last.sum(), xs)]",
            "the first row alone",
        ),
        (
            "def reach(last, xs):\n"
            "    return [np.linalg.norm(g.numpy(), ord=2) for g in ndl.gradients(last.sum(), xs)]",
            "Leave the 2 out",
        ),
        (
            "def reach(last, xs):\n"
            "    return [np.linalg.norm(ndl.gradients(last.sum(), xs)[0].numpy()) for x in xs]",
            "for the first letter. Take",
        ),
        (
            "def reach(last, xs):\n    last.sum().backward()\n"
            "    return [sum(x.grad.numpy().ravel()) for x in xs]",
            "positive and negative ones cancel",
        ),
        (
            "def reach(last, xs):\n    return [(g * g).sum().item() for g in ndl.gradients(last.sum(), xs)]",
            "the square of the length",
        ),
        (
            "def reach(last, xs):\n    found = ndl.gradients(last.sum(), xs[::-1])\n"
            "    return [np.sqrt((g.numpy() ** 2).sum()) for g in found]",
            "in reverse",
        ),
        (
            "def reach(last, xs):\n"
            "    return [np.linalg.norm(g.numpy(), 1) for g in ndl.gradients(last.sum(), xs)]",
            "the largest entry",
        ),
        ("def reach(last, xs):\n    return ndl.gradients(last.sum(), xs)", "the gradients themselves"),
        (
            "def reach(last, xs):\n    return [abs(g.numpy()).sum() for g in ndl.gradients(last.sum(), xs)]",
            "add up the sizes",
        ),
    ],
    "lstm_gates": [
        (
            "def lstm_gates(i, f, g, o, c):\n"
            "    c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g)\n    return o * ndl.tanh(c), c",
            "`o` is a score",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    c = ndl.sigmoid(f) * c + i * ndl.tanh(g)\n"
            "    return ndl.sigmoid(o) * ndl.tanh(c), c",
            "`i` is a score",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n"
            "    c = (1 - ndl.sigmoid(f)) * c + ndl.sigmoid(i) * ndl.tanh(g)\n"
            "    return ndl.sigmoid(o) * ndl.tanh(c), c",
            "the share that is *kept*",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n"
            "    c = ndl.tanh(ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g))\n"
            "    return ndl.sigmoid(o) * c, c",
            "Only what the cell shows goes through tanh",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n"
            "    c = ndl.sigmoid(f) * c.detach() + ndl.sigmoid(i) * ndl.tanh(g)\n"
            "    return ndl.sigmoid(o) * ndl.tanh(c), c",
            "you cut the old memory off",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n"
            "    c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g)\n"
            "    return ndl.sigmoid(o) * ndl.tanh(c), c.detach()",
            "Return it without",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    def s(z):\n"
            "        return 1 / (1 + np.exp(-z.numpy()))\n\n"
            "    c = s(f) * c.numpy() + s(i) * np.tanh(g.numpy())\n    return s(o) * np.tanh(c), c",
            "These are arrays of NumPy's",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * np.tanh(g)\n"
            "    return ndl.sigmoid(o) * np.tanh(c), c",
            "NumPy's functions take no Tensor",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n"
            "    c = ndl.sigmoid(f) @ c + ndl.sigmoid(i) @ ndl.tanh(g)\n"
            "    return ndl.sigmoid(o) @ ndl.tanh(c), c",
            "entry by entry",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n"
            "    c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g)\n"
            "    h = ndl.sigmoid(o) * ndl.tanh(c)\n    return h, h",
            "You return the state twice",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    i, f, o = (ndl.sigmoid(x) for x in (i, f, o))\n"
            "    new = f * c + i * ndl.tanh(g)\n    return o * ndl.tanh(c), new",
            "the old memory for h'",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    new = f * c + i * ndl.tanh(g)\n"
            "    return o * ndl.tanh(new), new",
            "A gate is the sigmoid of its score",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    i, f, g, o = (ndl.sigmoid(x) for x in (i, f, g, o))\n"
            "    c = f * c + i * g\n    return o * ndl.tanh(c), c",
            "The three gates take sigmoid",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g)\n"
            "    return c, ndl.sigmoid(o) * ndl.tanh(c)",
            "The memory comes first in your answer",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g)\n"
            "    return ndl.sigmoid(o) * c, c",
            "Before the memory leaves the cell",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    keep = ndl.sigmoid(f)\n"
            "    c = keep * c + (1 - keep) * ndl.tanh(g)\n    return ndl.sigmoid(o) * ndl.tanh(c), c",
            "a gate of its own",
        ),
        (
            "def lstm_gates(i, f, g, o, c):\n    c = ndl.sigmoid(f) * c + ndl.sigmoid(i) * ndl.tanh(g)\n"
            "    c = ndl.Tensor(c.numpy())\n    return ndl.sigmoid(o) * ndl.tanh(c), c",
            "The gradient stops at the new memory",
        ),
    ],
    "write": [
        (
            SOFT + "state, out = None, []\n    for letter in range(count):\n"
            "        scores, state = read(letter, state)\n"
            "        p = probabilities(scores, temperature)\n"
            "        letter = rng.choice(len(p), p=p)\n        out.append(letter)\n"
            "    return out",
            "It reads the number of the round",
        ),
        (
            SOFT + "state, out = None, []\n    for _ in range(count):\n"
            "        scores, state = read(letter, state)\n"
            "        p = probabilities(scores, temperature)\n"
            "        letter = rng.choice(len(p), 1, p=p)\n        out.append(letter)\n"
            "    return out",
            "an array with one letter",
        ),
        (
            SOFT + "state, out = None, []\n    for _ in range(count):\n"
            "        scores, state = read(letter, state)\n        letter = int(np.argmax(scores))\n"
            "        out.append(letter)\n    return out",
            "You always take the letter",
        ),
        (
            SOFT + "out = []\n    for _ in range(count):\n        scores, _state = read(letter, None)\n"
            "        p = probabilities(scores, temperature)\n        letter = rng.choice(len(p), p=p)\n"
            "        out.append(letter)\n    return out",
            "The state is not handed on",
        ),
        (
            SOFT + "state, out = None, []\n    while len(out) < count:\n"
            "        scores, state = read(letter, state)\n        p = probabilities(scores, temperature)\n"
            "        out.append(rng.choice(len(p), p=p))\n    return out",
            "It reads the first letter again and again",
        ),
        (
            SOFT + "state, out = None, []\n    for _ in range(count):\n"
            "        scores, state = read(letter, state)\n        p = probabilities(scores * temperature, "
            "1)\n        letter = rng.choice(len(p), p=p)\n        out.append(letter)\n    return out",
            "Divide: a high temperature",
        ),
        (
            SOFT + "state, out = None, [letter]\n    for _ in range(count):\n"
            "        scores, state = read(out[-1], state)\n        p = probabilities(scores, temperature)\n"
            "        out.append(rng.choice(len(p), p=p))\n    return out",
            "Only the `count` letters after it",
        ),
        (
            SOFT + "state, out = None, []\n    for _ in range(count):\n"
            "        scores, state = read(letter, state)\n        p = probabilities(scores, temperature)\n"
            "        letter = rng.choice(p)\n        out.append(letter)\n    return out",
            "p=p",
        ),
        (
            SOFT + "state, out = None, []\n    for _ in range(count):\n"
            "        scores, state = read(letter, state)\n        letter = rng.choice(len(scores), "
            "p=scores)\n        out.append(letter)\n    return out",
            "`p` has to be probabilities",
        ),
    ],
}
