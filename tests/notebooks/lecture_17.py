"""Lecture 17: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("letters", "a row with a 1 at that place and 0 elsewhere", "same-cell",
     "e is needle.Tensor([[0. 1. 0.]])\nthe same state as the library's: True\n"),
    ("gradient-intro", "All boxes share the same ten weights", "weights",
     "3 letters: 10 weights\n100 letters: 10 weights\n"),
    ("why-vanish", "After forty letters it is so small", "vanish",
     " 0 letters back: 1.7e+00\n 1 letters back: 8.0e-01\n10 letters back: 3.1e-04\n20 letters back: "
     "1.1e-07\n40 letters back: 2.4e-14\n"),
    ("why-vanish", "Walk back by hand, with NumPy", "by-hand", "the same fifty lengths: True\n"),
    ("drag-intro", "Your gates are those of `nn.LSTMCell`", "same-lstm",
     "the same state: True and the same memory: True\n"),
    ("model-intro", "2.38 is the number to beat", "data",
     "21355 letters to learn from, 1783 new ones, 59 different\nthe letter before alone: 2.38\n"),
    ("epoch-intro", "the same text, one letter on", "parts", "'From fairest cre'\n'rom fairest crea'\n"),
    ("learned", "54,000 weights", "model", "53987 weights\n"),
    ("learned", "Let it read that line, and one that Shakespeare never wrote", "first-question",
     "Shall I compare thee to a summer's day\nAs dark and bitter as a winter's day\n"),
    ("exercise-write", "At a low temperature, nearly always the likeliest letter is drawn", "temperature",
     "0.1 [1. 0. 0.]\n1 [0.67 0.24 0.09]\n10 [0.37 0.33 0.3 ]\n"),
]  # fmt: skip

WORDS = '(lambda page: re.findall(r"[A-Za-z\']+", page))'
KNOWN = f"(lambda page: sum(w in {WORDS}(text) for w in {WORDS}(page)) / len({WORDS}(page)))"
BACK = "(lambda forget: np.array(lstm_reach(forget)))"
NUDGED = (
    "(lambda by: sum(sum(read_to_the_end(rnn, [ndl.Tensor(x.numpy() + e * (n == 45), dtype='float64') "
    "for n, x in enumerate(fifty)], None)[-1].numpy().ravel() for e in (by,)) ))"
)

TRUE = [
    ("hook", "38 sonnets", "[len(sonnets), {len(sonnet.splitlines()) for sonnet in sonnets}] == [38, {14}]"),
    ("hook", "*Shall I compare thee to a summer's da*",
     "\"Shall I compare thee to a summer's day\" in learn"),
    ("a-cell", "the last of these nine, with 4.5 percent",
     "(list(shares)[8], len(shares), round(shares['y'], 1)) == ('y', 9, 4.5)"),
    ("a-cell", "keeps every number between −1 and 1",
     "all(abs(state.numpy()).max() <= 1 for state in rnn_states)"),
    ("gradient-intro",
     "each box passes a partial adjoint to `W_ih` and another to `W_hh`, and they are added up",
     "[len(p) for node, p, _ in ndl.autograd.adjoints(h3) if node in (cell.W_ih, cell.W_hh)] == [3, 3]"),
    ("gradient-intro", "the walk from the state after two letters to `W_ih`",
     "[len(p) for node, p, _ in ndl.autograd.adjoints(h2) if node is cell.W_ih] == [2]"),
    ("gradient-intro", "The row of zeros belongs to `d`, which has not been read yet",
     "[alphabet[n] for n, row in enumerate(ndl.gradients(h2.sum(), [cell.W_ih])[0].numpy()) if not "
     "row.any()] == ['d']"),
    ("reach-intro", "some eighty letters earlier",
     "75 < 2 * np.mean([len(line) + 1 for line in text.splitlines() if line]) < 90"),
    ("reach-intro", "nudge an early letter, and ask how much the last state moves",
     f"np.allclose(({NUDGED}(1e-6) - {NUDGED}(-1e-6)) / 2e-6, "
     "ndl.gradients(rnn_states[-1].sum(), fifty)[45].numpy().sum(), rtol=1e-5)"),
    ("predict-back", "twenty letters back",
     "0.4 < (rnn_reach[20] / rnn_reach[0]) ** (1 / 20) < 0.5 and 5e-4 < 1.7 * (2 / 3) ** 20 < 2e-3"),
    ("why-vanish", "a rhyme is twice as far away", "rnn_reach[40] < 1e-13"),
    ("why-vanish", "its slope, 1 − h², which is at most 1", "[z := ndl.Tensor([0.3]), ndl.gradients(y := "
     "ndl.tanh(z), [z])[0].item(), 1 - y.item() ** 2][1:] and abs(ndl.gradients(y, [z])[0].item() - (1 - "
     "y.item() ** 2)) < 1e-6"),
    ("explode", "it can happen with large weights",
     "(lambda W: np.linalg.norm(np.linalg.matrix_power(W, 50)) > 1e6)(3 * rnn.W_hh.numpy())"),
    ("explode", "with four times as many columns", "lstm.W_hh.shape == (2, 4 * 2)"),
    ("lstm-gates-solution", "one factor per step: the forget gate",
     "[f := ndl.Tensor([0.3]), m := ndl.Tensor([2.0]), then := lstm_gates(f, f, f, f, m)[1], "
     "abs(ndl.gradients(then, [m])[0].item() - ndl.sigmoid(f).item()) < 1e-6][-1]"),
    ("drag-intro", "after 20 steps a millionth", "0.9e-6 < 0.5**20 < 1e-6"),
    ("drag-intro", "82 % after 20 steps, and 45 % after 80",
     "(round(100 * 0.99**20), round(100 * 0.99**80)) == (82, 45)"),
    ("drag-intro", "sigmoid(4) is 0.98 already", "round(1 / (1 + np.exp(-4)), 2) == 0.98"),
    ("data-intro", "At −2 the LSTM forgets faster than the RNN",
     "all(BACK(-2.0)[10:] < np.array(rnn_reach)[10:])"),
    ("data-intro", "only a few billionths are left", "1e-9 < BACK(0.0)[40] < 1e-8"),
    ("data-intro", "near which it begins by default", "abs(lstm.bias_ih.numpy()).max() < 2**-0.5"),
    ("data-intro", "From 2 on its line is almost flat",
     "all(BACK(f)[49] > 0.1 * BACK(f)[1] for f in (2.0, 4.0, 6.0))"),
    ("data-intro", "the last three sonnets", "new.split('\\n\\n')[:3] == sonnets[-3:]"),
    ("data-intro", "capitals, commas, spaces and the ends of lines count, too",
     "len(letters) == 59 and set('A, \\n') <= set(letters.letters)"),
    ("data-intro", "log 59 = 4.08", "round(float(np.log(len(letters))), 2) == 4.08"),
    ("model-intro", "the same as a one-hot row times a matrix",
     "np.allclose(poet.embedding(ndl.Tensor([[7]])).numpy()[0], np.eye(59)[[7]] @ "
     "poet.embedding.weight.numpy())"),
    ("epoch-intro", "21,355 letters", "len(learn) == 21355"),
    ("epoch-intro", "stands in 24 columns", "columns.shape[1] == 24"),
    ("epoch", "18 epochs of 56 steps", "len(range(0, len(columns) - 1, 16)) == 56 and len(on_known) == 18"),
    ("learned", "The network has learned from the line that you read",
     "\"\\nShall I compare thee to a summer's day\" in '\\n' + learn"),
    ("learned", "one that Shakespeare never wrote", "'bitter as a' not in text"),
    ("learned", "far below the count of pairs", "min(on_new[:6]) < one_letter - 0.25"),
    ("learned", "Then the two curves part", "on_new[-1] - on_known[-1] > 0.5 > abs(on_new[2] - on_known[2])"),
    ("learned", "rises a little", "2 <= np.argmin(on_new) <= 10 and on_new[-1] > min(on_new) + 0.02"),
    ("drag-temperature-intro",
     "Nobody told it what a word is, or a line, or that a line begins with a capital letter",
     "KNOWN(verse(0.5)) > 0.6 and verse(0.5).count('\\n') > 3 and np.mean([line[0].isupper() for line in "
     "verse(0.5).split('\\n') if line]) > 0.6"),
    ("drag-temperature-intro", "It writes verse", "set(verse(0.5)) <= set(letters.letters)"),
    ("quotation-intro", "Near 0 it goes around in circles",
     "len(set(WORDS(verse(0.1)))) < 0.7 * len(set(WORDS(verse(1.0))))"),
    ("quotation-intro", "Near 2 most of the words are not English",
     "KNOWN(verse(2.1)) < 0.4 < KNOWN(verse(0.5))"),
    ("yours", "a few words at a time",
     "all(5 < len(longest_quotation(verse(t), learn)) < 60 for t in (0.5, 1.0))"),
    ("rnn-cell-solution", "a layer as you know it, with a second input",
     "np.allclose(rnn_cell(x1, ndl.Tensor([[1.0, 2.0]]), cell.W_ih, cell.W_hh, ndl.init.zeros(2)).numpy(), "
     "cell(x1, ndl.Tensor([[1.0, 2.0]])).numpy())"),
]  # fmt: skip

TRUE = [
    (cell, words, x.replace("KNOWN", KNOWN).replace("WORDS", WORDS).replace("BACK", BACK))
    for cell, words, x in TRUE
]
