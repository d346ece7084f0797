"""Lecture 10: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SHOWN = [
    ("accumulate", "the gradient of a sum is the sum of the gradients", "in-parts", "True"),
    (
        "jacobian-intro",
        "v times J: a weighted sum of the rows",
        "vector-jacobian",
        "(needle.Tensor([ 13. 612.]), array([ 13, 612]))",
    ),
    ("network-task", "each weight is used twice", "seven-compare", "[True, True]"),
]

TRUE = [
    (
        "hook",
        "First in needle, then in PyTorch",
        "all(row[-1] for row in beside('mean', in_needle, in_torch).rows)",
    ),
    (
        "mean-question",
        "One word",
        "[x.replace('torch', 'ndl') for x in in_torch.__code__.co_names]"
        " == list(in_needle.__code__.co_names)",
    ),
    (
        "square-intro",
        "the square is 49",
        "beside('square', square_needle, square_torch).rows[0][1:] == ('49', '49', True)",
    ),
    (
        "square-intro",
        "And the three derivatives?",
        "[row[1] for row in beside('square', square_needle, square_torch).rows[1:]] == ['42', '28', '14']",
    ),
    ("first-habit", "unless you say `requires_grad=False`", "ndl.Tensor([1.0]).requires_grad"),
    ("first-habit", "you have to say it", "not ndl.ones(2).requires_grad"),
    (
        "accumulate",
        "Needle **replaces** it",
        "[r[1:3] for r in beside('twice', lambda: run_twice(ndl.Tensor(1.0)), twice_torch).rows]"
        " == [('6', '6'), ('6', '12')]",
    ),
    (
        "matrices-task",
        "the sum of the squares of all entries of `Y`",
        "all(row[-1] for row in beside('matrices', matrices_needle, matrices_torch).rows)",
    ),
    (
        "matrices-draw-intro",
        "the two transposes",
        "len(re.findall(r'transpose|>T<', viz.draw_gradient(L).source)) >= 2",
    ),
    ("jacobian-intro", "If it is three,", "f(ndl.Tensor([2.0, 3.0])).shape == (3,)"),
    (
        "loop-intro",
        "the same twenty steps downhill",
        "all(row[-1] for row in beside('training', train_needle, train_torch).rows)",
    ),
    ("missing-explained", "The loss falls at first", "(t := train_without_clearing(60))[1] < t[0]"),
    ("missing-explained", "up the other side and back again", "sum(b > a for a, b in zip(t, t[1:])) > 15"),
    (
        "habits",
        "a copy",
        "not np.shares_memory((q := ndl.Tensor([1.0])).numpy(), q.numpy())",
    ),
]

NEAR_MISSES = {
    "gradients_by_hand": [
        (
            "def gradients_by_hand(w, x, b):\n    y = w * x + b\n    return y * x, y * w, y",
            "The 2 of the square",
        ),
        ("def gradients_by_hand(w, x, b):\n    s = 2 * (b + w * x)\n    return [w * s, x * s, s]", "In w·x"),
        ("def gradients_by_hand(w, x, b):\n    return [x, w, 1]", "The square around it is missing"),
        ("def gradients_by_hand(w, x, b):\n    return (w * x + b) ** 2", "Go outside in"),
    ],
    "matrix_gradients": [
        (
            "def matrix_gradients(X, W):\n    Y = np.dot(X, W)\n    return [np.dot(Y, W.T), np.dot(X.T, Y)]",
            "The 2 of the square",
        ),
        (
            "def matrix_gradients(X, W):\n    G = 2 * (X @ W)\n    return [G @ W, X @ G]",
            "The transposes are missing",
        ),
        (
            "def matrix_gradients(X, W):\n    G = 2 * (X @ W)\n    return [X.T @ G, G @ W.T]",
            "in the other order",
        ),
    ],
    "jacobian": [
        (
            "def jacobian(f, x):\n    y = f(x)\n    cols = [ndl.gradients(y, [x], ndl.Tensor(v))[0].numpy()"
            " for v in np.eye(len(y.numpy()))]\n    return np.stack(cols, axis=1)",
            "Rows and columns are swapped",
        ),
        (
            "def jacobian(f, x):\n    y = f(x)\n    v = ndl.ones_like(y)\n"
            "    return np.array([ndl.gradients(y, [x], v)[0].numpy() for _ in range(y.shape[0])])",
            "You sum over all outputs",
        ),
        (
            "def jacobian(f, x):\n    y = f(x)\n    v = np.zeros(y.shape[0])\n    v[0] = 1\n"
            "    return ndl.gradients(y, [x], ndl.Tensor(v))[0].numpy()",
            "This is one row",
        ),
    ],
    "seven_equations": [
        (
            "def seven_equations(x, y, W1, W2, lam):\n    h = np.tanh(x @ W1)\n    do = h @ W2 - y\n"
            "    dh = do @ W2.T\n    dz = dh * (1 - h * h)\n    return dict(dJ_dL=1.0, dJ_ds=1.0, dJ_do=do,"
            " dJ_dh=dh, dJ_dz=dz, dJ_dW1=x.T @ dz, dJ_dW2=h.T @ do)",
            "The weights are used twice",
        ),
        (
            "def seven_equations(x, y, W1, W2, lam):\n    h = np.tanh(x @ W1)\n    do = h @ W2 - y\n"
            "    dz = dh = do @ W2.T\n    return dict(dJ_dL=1.0, dJ_ds=1.0, dJ_do=do, dJ_dh=dh, dJ_dz=dz,"
            " dJ_dW1=x.T @ dz + lam * W1, dJ_dW2=h.T @ do + lam * W2)",
            "has to pass through tanh",
        ),
        (
            "def seven_equations(x, y, W1, W2, lam):\n    h = np.tanh(x @ W1)\n    do = h @ W2 - y\n"
            "    dh = do @ W2.T\n    dz = dh * (1 - h * h)\n    return dict(dJ_dL=1.0, dJ_ds=1.0, dJ_do=do,"
            " dJ_dh=dh, dJ_dz=dz, dJ_dW1=x.T @ dz + 2 * lam * W1, dJ_dW2=h.T @ do + 2 * lam * W2)",
            "the 2 cancels",
        ),
    ],
}
