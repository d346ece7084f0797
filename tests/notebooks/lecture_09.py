"""Lecture 09: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

EPOCH = (
    "def nn_epoch(X, y, W1, W2, lr=0.1, batch=100):\n"
    "    for i in range(0, len(X), {step}):\n"
    "        T = ndl.init.one_hot(W2.shape[1], y[i:i + {step}])\n"
    "        Z = {scores}\n"
    "        loss = (ndl.logsumexp(Z, axes=(1,)).sum() - (Z * T).sum()) / {share}\n"
    "        g1, g2 = ndl.gradients(loss, [W1, W2])\n"
    "        W1, W2 = (W1 - {rate} * g1).detach(), (W2 - {rate} * g2).detach()\n"
    "        W1, W2 = ndl.Tensor(W1.numpy()), ndl.Tensor(W2.numpy())\n"
    "    {indent}return W1, W2"
)


def an_epoch(**changed: str) -> str:
    """An epoch written out, with something changed in it."""
    usual = {
        "step": "batch",
        "scores": "ndl.relu(ndl.Tensor(X[i:i + batch]) @ W1) @ W2",
        "share": "Z.shape[0]",
        "rate": "lr",
        "indent": "",
    }
    return EPOCH.format(**usual | changed)


SHOWN = [
    ("one-table", "so that they add up to 1", "naive-softmax", "array([0.67, 0.24, 0.09])"),
    (
        "exercise-log-sum-exp",
        "from then on everything is `nan`",
        "thousand",
        "array([nan, nan, nan])",
    ),
    ("table-intro", "a table of 650 numbers", "table", "((1442, 65), (355, 65), 650)"),
    ("blind", "a loss above 2.30 is worse than knowing nothing", "start", "'2.30'"),
    (
        "exercise-gradient",
        "1/6, 1/6 and −1/3",
        "library-gradient",
        "targets\n[[0. 1. 0.]\n [0. 0. 1.]]\n"
        "probabilities\n[[0.665 0.245 0.09 ]\n [0.333 0.333 0.333]]\n"
        "gradient\n[[ 0.333 -0.378  0.045]\n [ 0.167  0.167 -0.333]]\n",
    ),
    (
        "it-reads",
        "95 of 100 are right",
        "learn-to-read",
        "digits it learned from: loss 0.22, 4.3% wrong\nnew digits: loss 0.23, 5.1% wrong\n",
    ),
    (
        "exercise-epoch",
        "Both gradients are 0.",
        "zeros",
        "the largest entry in the gradient of W1: 0.0 and of W2: 0.0\n",
    ),
    (
        "two-curves",
        "hardly falls after epoch 10",
        "train",
        "epoch 10: loss 0.14, 3.7% wrong; new: loss 0.16, 5.4% wrong\n"
        "epoch 30: loss 0.06, 1.1% wrong; new: loss 0.13, 3.7% wrong\n"
        "<PictureFigure size 840x320 with 2 Axes>",
    ),
    ("exercise-mistakes", "It is nearly certain, and wrong", "surest-code", "'99%'"),
]

#: The table after each of ten epochs at a rate, its losses, and the softmax of scores.
RATED = (
    "(lambda rate: list(__import__('itertools').accumulate(range(10), "
    "lambda table, _: table_epoch(table, X, targets, rate), initial=np.zeros((65, 10))))[1:])"
)
LOSS = f"(lambda rate: [judged(X @ table, y)[0] for table in {RATED}(rate)])"
SOFT = "(lambda z: (lambda e: e / e.sum(axis=1, keepdims=True))(np.exp(z - z.max(axis=1, keepdims=True))))"

TRUE = [
    ("hook", "1,442 of them to learn from, and 355 others", "(len(X), len(test_X)) == (1442, 355)"),
    ("hook", "8 × 8 pixels", "images.shape[1:3] == (8, 8)"),
    (
        "log-sum-exp-solution",
        "`ndl.logsumexp` does the same",
        "np.allclose(log_sum_exp(np.array([[1e3, 999]])), "
        "ndl.logsumexp(ndl.Tensor([[1e3, 999]]), axes=(1,)).numpy())",
    ),
    ("title", "650 numbers", "W.size == 650"),
    (
        "loss",
        "If p is 1, the loss is 0, and all is well. At p = 1/2 it is 0.69, and at p = 1/100 it is 4.61",
        "[round(-float(np.log(p)), 2) for p in (1, 1 / 2, 1 / 100)] == [0, 0.69, 4.61]",
    ),
    ("blind", "2.30", "round(float(np.log(10)), 2) == 2.3"),
    (
        "by-hand-solution",
        "minus what it should have said",
        "np.allclose(gradient_by_hand(Z.numpy(), T.numpy()), Z.grad.numpy(), atol=1e-6)",
    ),
    ("learn", "the last one has 42", "len(X) % 100 == 42"),
    (
        "drag-intro",
        "the left side of the 3 is orange",
        "(lambda left: left(3).mean() < -0.05 and left(8).mean() > left(3).mean())"
        "(lambda digit: W[:64, digit].reshape(8, 8)[2:7, 1:3])",
    ),
    ("it-reads", "A blind guess gets 10", "0.08 < np.mean(test_y == 0) < 0.12"),
    (
        "drag-intro",
        "the ring of the 0 and its hole",
        "W[:64, 0].reshape(8, 8)[3:5, 3:5].max() < 0 < W[:64, 0].reshape(8, 8)[3:5, 2].min()",
    ),
    (
        "rates",
        "On the left it creeps",
        "LOSS(0.001)[-1] > 2 > 0.4 > LOSS(0.5)[-1]",
    ),
    ("rates", "lands far above a blind guess", "sum(loss > 2.3 for loss in LOSS(30)) in (2, 3, 4)"),
    ("rates", "the loss jumps about", "max(LOSS(30)) > 2 * max(LOSS(0.5))"),
    ("rates", "nine of ten digits are right", "judged(test_X @ RATED(0.001)[-1], test_y)[1] < 0.11"),
    ("rates", "nine of ten are right, too", "judged(test_X @ RATED(30)[-1], test_y)[1] < 0.12"),
    ("two-curves", "2,400 numbers", "W1.numpy().size + W2.numpy().size == 2400"),
    ("two-curves", "the net reads 96 of 100 new digits", "round(100 - 100 * history[-1][3]) == 96"),
    (
        "two-curves",
        "13 of 355 wrong, or 18",
        "(np.sum(logits.argmax(1) != test_y), np.sum((test_X @ W).argmax(1) != test_y)) == (13, 18)",
    ),
    (
        "two-curves",
        "On what the net has seen it keeps falling, to 0.06",
        "history[-1][0] < history[9][0] / 2 and history[-1][2] > history[9][2] / 1.3",
    ),
    (
        "read-confusion",
        "6 of the 13 are eights, and 3 of these were taken for a 1",
        "((test_y[wrong] == 8).sum(), (logits[wrong & (test_y == 8)].argmax(axis=1) == 1).sum()) == (6, 3)",
    ),
    ("read-confusion", "No 0 and no 6 was misread", "not np.isin(test_y[wrong], (0, 6)).any()"),
    (
        "exercise-mistakes",
        "the pictures that cost most at a learning rate of 30",
        "(lambda p: p.max(axis=1)[p.argmax(axis=1) != y].max() > 0.99)(SOFT(X @ RATED(30)[-1]))",
    ),
    ("mnist-intro", "785 rows, and 7,850 numbers", "(28 * 28 + 1) * 10 == 7850"),
    (
        "nn-epoch-solution",
        "`nn_epoch` in `needle.apps.simple_ml` does the same",
        "np.allclose(__import__('needle.apps.simple_ml').apps.simple_ml.nn_epoch(X, y, W1, W2)[0].numpy(), "
        "nn_epoch(X, y, W1, W2)[0].numpy(), atol=1e-5)",
    ),
    ("look-at-them", "watch the bars", "max(reads(pad.image), key=reads(pad.image).get) == '2'"),
]

TRUE = [
    (cell, words, x.replace("LOSS", LOSS).replace("SOFT", SOFT).replace("RATED", RATED))
    for cell, words, x in TRUE
]

QUIET = "    with np.errstate(all='ignore'):\n        "

NEAR_MISSES = {
    "log_sum_exp": [
        (
            "def log_sum_exp(Z):\n    m = Z.max(axis=1)\n"
            "    return np.log(np.sum(np.exp(Z - m[:, None]), axis=1))",
            "Now add it again",
        ),
        (
            "def log_sum_exp(Z):\n" + QUIET + "return np.log(sum(np.exp(Z[:, j]) for j in range(3)))",
            "exp(1000) is too large",
        ),
        (
            "def log_sum_exp(Z):\n    m = np.max(Z)\n"
            + QUIET
            + "return m + np.log(np.exp(Z - m).sum(axis=-1))",
            "its own maximum",
        ),
        (
            "def log_sum_exp(Z):\n    m = Z.max(axis=0)\n    return m + np.log(np.exp(Z - m).sum(axis=0))",
            "down the columns",
        ),
        (
            "def log_sum_exp(Z):\n    m = np.amax(Z, 1)\n    return np.log(np.exp(Z - m).sum(1)) + m",
            "a column can: `keepdims=True`",
        ),
        (
            "def log_sum_exp(Z):\n    m = Z.max(1)[:, None]\n    return np.log(np.exp(Z - m).sum(1)) + m",
            "A column plus a row",
        ),
        (
            "def log_sum_exp(Z):\n    m = Z.max(1)[:, None]\n"
            "    return np.log(np.exp(Z - m).sum(1, keepdims=True)) + m",
            "stand in a column",
        ),
        (
            "def log_sum_exp(Z):\n    m = Z.max(1, keepdims=True)\n"
            "    return np.log(np.exp(m) * np.exp(Z - m).sum(1, keepdims=True))[:, 0]",
            "a factor exp(m) inside it",
        ),
        (
            "def log_sum_exp(Z):\n    m = Z.max(1)\n    return m * np.log(np.exp(Z - m[:, None]).sum(1))",
            "do not multiply by it",
        ),
        (
            "def log_sum_exp(Z):\n    m = Z.max(1, keepdims=True)\n    return m[:, 0] + np.log(...)",
            "still a `...`",
        ),
    ],
    "softmax_loss": [
        (
            "def softmax_loss(Z, targets):\n    return (ndl.logsumexp(Z, axes=(1,)) "
            "- (Z * targets).sum(axes=(1,))).sum()",
            "This is the sum over the pictures",
        ),
        (
            "def softmax_loss(Z, targets):\n    each = (Z * targets).sum(axes=(1,)) - "
            "ndl.logsumexp(Z, axes=(1,))\n    return each.sum() / Z.shape[0]",
            "The sign is turned around",
        ),
        (
            "def softmax_loss(Z, targets):\n    return ndl.logsumexp(Z) / Z.shape[0] "
            "- (Z * targets).sum() / Z.shape[0]",
            "`logsumexp` without `axes`",
        ),
        (
            "def softmax_loss(Z, targets):\n    z = Z.numpy()\n"
            "    each = np.logaddexp.reduce(z, axis=1) - (z * targets.numpy()).sum(1)\n"
            "    return ndl.Tensor(each.mean())",
            "it has no history",
        ),
        (
            "def softmax_loss(Z, targets):\n    z = Z.numpy()\n"
            "    each = np.logaddexp.reduce(z, axis=1) - (z * targets.numpy()).sum(1)\n"
            "    return each.mean()",
            "a number without a history",
        ),
        ("def softmax_loss(Z, targets):\n    ndl.logsumexp(Z, axes=(1,))", "Is a `return` missing?"),
        (
            "def softmax_loss(Z, targets):\n    return ndl.logsumexp(Z, axes=(1,)) "
            "- (Z * targets).sum(axes=(1,))",
            "one loss for each picture",
        ),
        (
            "def softmax_loss(Z, targets):\n    t = (Z * targets).sum()\n"
            "    return (t + ndl.logsumexp(Z, axes=(1,)).sum()) / Z.shape[0]",
            "subtracted, and not added",
        ),
        (
            "def softmax_loss(Z, targets):\n    e = ndl.exp(Z)\n"
            "    p = e / e.sum(axes=(1,), keepdims=True).broadcast_to(Z.shape)\n"
            "    return -ndl.log((p * targets).sum(axes=(1,))).sum() / Z.shape[0]",
            "exp(1000) is too large",
        ),
        (
            "def softmax_loss(Z, targets):\n    e = ndl.exp(Z)\n"
            "    p = e / e.sum(axes=(1,), keepdims=True).broadcast_to(Z.shape)\n"
            "    return (p * targets).sum() / Z.shape[0]",
            "the mean *probability*",
        ),
        (
            "def softmax_loss(Z, targets):\n    true = (Z * targets).sum(axis=1)\n"
            "    return (ndl.logsumexp(Z, axes=(1,)) - true).mean()",
            "Tensors say `axes=(1,)`",
        ),
        (
            "def softmax_loss(Z, targets):\n"
            "    return (ndl.logsumexp(Z, axes=(1,)) - targets.sum(axes=(1,))).mean()",
            "only says *where*",
        ),
        (
            "def softmax_loss(Z, targets):\n    true = Z * targets\n"
            "    return (ndl.logsumexp(true, axes=(1,)) - true.sum(axes=(1,))).mean()",
            "take `logsumexp` of `Z` itself",
        ),
    ],
    "gradient_by_hand": [
        (
            "def gradient_by_hand(Z, targets):\n    e = np.exp(Z - Z.max(1)[:, None])\n"
            "    return e / e.sum(1)[:, None] - targets",
            "Divide by the number of rows",
        ),
        (
            "def gradient_by_hand(Z, targets):\n    e = np.exp(Z - Z.max(1)[:, None])\n"
            "    return -(e / e.sum(1)[:, None] - targets) / Z.shape[0]",
            "This is the way down",
        ),
        (
            "def gradient_by_hand(Z, targets):\n"
            + QUIET
            + "e = np.exp(Z)\n        return (e / e.sum(1)[:, None] - targets) / Z.shape[0]",
            "exp(1000) is too large",
        ),
        (
            "def gradient_by_hand(Z, targets):\n    e = np.exp(Z - Z.max(1)[:, None])\n"
            "    return (e / e.sum() - targets) / Z.shape[0]",
            "Each row has its own sum",
        ),
        (
            "def gradient_by_hand(Z, targets):\n    e = np.exp(Z - Z.max(1))\n"
            "    return (e / e.sum(1) - targets) / Z.shape[0]",
            "`keepdims=True` in both",
        ),
        (
            "def gradient_by_hand(Z, targets):\n    e = np.exp(Z - Z.max(1)[:, None])\n"
            "    return (e / e.sum(1)[:, None] * targets - targets) / len(Z)",
            "The others have a gradient, too",
        ),
    ],
    "nn_epoch": [
        (an_epoch(rate="-lr"), "This climbs uphill"),
        (an_epoch(scores="ndl.Tensor(X[i:i + batch]) @ W1 @ W2"), "Where is the ReLU?"),
        (an_epoch(indent="    "), "Is the `return` inside the loop?"),
        (an_epoch(share="1"), "Your loss is a sum"),
        (
            an_epoch().replace("ndl.Tensor(W1.numpy()), ndl.Tensor(W2.numpy())", "W1.detach(), W2.detach()"),
            "After `detach()` a Tensor needs no gradient",
        ),
        (
            an_epoch().replace("one_hot(W2.shape[1]", "one_hot(10"),
            "`W2.shape[1]` says how many",
        ),
        (
            an_epoch().replace(".detach()", "").replace("    W1, W2 = ndl.Tensor(W1.numpy()), ", "    _ = "),
            "Make a new leaf of its numbers",
        ),
        (an_epoch().replace("y[i:i + batch]", "y"), "The targets are those of all pictures"),
        (an_epoch(scores="ndl.relu(ndl.relu(ndl.Tensor(X[i:i + batch]) @ W1) @ W2)"), "may be negative"),
        (
            an_epoch().replace("ndl.Tensor(W1.numpy()), ndl.Tensor(W2.numpy())", "W1.numpy(), W2.numpy()"),
            "These are NumPy arrays",
        ),
        (
            "def nn_epoch(X, y, W1, W2, lr=0.1, batch=100):\n    return W1, W2",
            "Take one part at a time",
        ),
    ],
    "surest_mistakes": [
        (
            "def surest_mistakes(logits, y, count):\n"
            "    wrong = [i for i in range(len(y)) if logits[i].argmax() != y[i]]\n"
            "    return sorted(wrong, key=lambda i: logits[i].max(), reverse=True)[:count]",
            "You sort by the score",
        ),
        (
            "def surest_mistakes(logits, y, count):\n    e = np.exp(logits)\n"
            "    p = (e / e.sum(1)[:, None]).max(1)\n"
            "    return sorted(range(len(y)), key=lambda i: -p[i])[:count]",
            "that the net reads correctly",
        ),
        (
            "def surest_mistakes(logits, y, count):\n    e = np.exp(logits)\n"
            "    p = (e / e.sum(1)[:, None]).max(1)\n"
            "    wrong = [i for i in range(len(y)) if logits[i].argmax() != y[i]]\n"
            "    return sorted(wrong, key=lambda i: p[i])[:count]",
            "*least* sure",
        ),
        (
            "def surest_mistakes(logits, y, count):\n    e = np.exp(logits)\n    p = e / e.sum(1)[:, None]\n"
            "    wrong = [i for i in range(len(y)) if logits[i].argmax() != y[i]]\n"
            "    return sorted(wrong, key=lambda i: -p[i, y[i]])[:count]",
            "of the *true* digit",
        ),
        (
            "def surest_mistakes(logits, y, count):\n    e = np.exp(logits)\n    p = e / e.sum(0)\n"
            "    wrong = [i for i in range(len(y)) if logits[i].argmax() != y[i]]\n"
            "    return sorted(wrong, key=lambda i: -p[i].max())[:count]",
            "in each column",
        ),
    ],
}
