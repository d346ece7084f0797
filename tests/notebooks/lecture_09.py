"""Lecture 09: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("one-table", "so that they add up to 1", "naive-softmax", "array([0.67, 0.24, 0.09])"),
    ("exercise-log-sum-exp", "from then on everything is `nan`", "thousand", "array([nan, nan, nan])"),
    (
        "exercise-loss",
        "it becomes 0, and says nothing any more",
        "likelihood",
        "product 0.36; its -log 1.02; sum of all -log p 1.02\nproduct 0.0; mean of all -log p 0.69\n",
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
        "Both gradients are 0",
        "zeros",
        "the largest entry in the gradient of W1: 0.0 and of W2: 0.0\n",
    ),
    (
        "random-start",
        "every column moves in the same way",
        "equal",
        "moved by up to 0.23; new digits wrong: 81%\nlargest difference between columns: 0.000\n",
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

#: The table after each of ten epochs at a rate, and its losses.
RATED = (
    "(lambda rate: list(__import__('itertools').accumulate(range(10), "
    "lambda table, _: table_epoch(table, X, targets, rate), initial=np.zeros((65, 10))))[1:])"
)
LOSS = f"(lambda rate: [judged(X @ table, y)[0] for table in {RATED}(rate)])"

TRUE = [
    ("title", "650 numbers", "W.size == 650"),
    ("blind", "2.30", "round(float(np.log(10)), 2) == 2.3"),
    ("exercise-loss", "The product of 1,442 numbers", "(len(many), many[0]) == (1442, 0.5)"),
    (
        "exercise-epoch",
        "so no step leads away from there",
        "not any(w.numpy().any() for w in nn_epoch(X, y, *(ndl.Tensor(w.numpy() * 0) for w in (W1, W2))))",
    ),
    ("hook", "1,442 of them to learn from, and 355 others", "(len(X), len(test_X)) == (1442, 355)"),
    ("hook", "8 × 8 pixels", "images.shape[1:3] == (8, 8)"),
    (
        "log-sum-exp-solution",
        "`ndl.logsumexp` does the same",
        "np.allclose(log_sum_exp(np.array([[1e3, 999]])), "
        "ndl.logsumexp(ndl.Tensor([[1e3, 999]]), axes=(1,)).numpy())",
    ),
    (
        "loss",
        "If p is 1, the loss is 0, and all is well. At p = 1/2 it is 0.69, and at p = 1/100 it is 4.61",
        "[round(-float(np.log(p)), 2) for p in (1, 1 / 2, 1 / 100)] == [0, 0.69, 4.61]",
    ),
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
    ("rates", "On the left it creeps", "LOSS(0.001)[-1] > 2 > 0.4 > LOSS(0.5)[-1]"),
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
        "[misread := logits.argmax(1) != test_y, ((test_y[misread] == 8).sum(), "
        "(logits[misread & (test_y == 8)].argmax(axis=1) == 1).sum()) == (6, 3)][1]",
    ),
    (
        "read-confusion",
        "No 0 and no 6 was misread",
        "not np.isin(test_y[logits.argmax(1) != test_y], (0, 6)).any()",
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

TRUE = [(cell, words, x.replace("LOSS", LOSS).replace("RATED", RATED)) for cell, words, x in TRUE]
