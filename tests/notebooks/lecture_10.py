"""Lecture 10: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

BOTH = "Both were computed just now."
STATED = "PyTorch is not installed here. Its numbers are those that version 2.13 gave."


def same(call: str) -> str:
    """Whether `beside` finds the same digits in every row, …"""
    return f"all(row[-1] for row in {call}.rows)"


def same_without_torch(call: str) -> str:
    """… and also where PyTorch is not installed."""
    hide = "__import__('unittest.mock').mock.patch('lectures.lecture_10.find_spec', lambda name: None)"
    told = f"{same(call)} and 'not installed' in {call}.note"
    return f"(lambda hidden: [hidden.start(), {told}, hidden.stop()])({hide})[1]"


CALLS = {
    "mean-beside": ("hook", "put their results side by side", "beside('mean', in_needle, in_torch)"),
    "square": ("square-intro", "The square is 49", "beside('square', square_needle, square_torch)"),
    "in-parts": (
        "missing-explained",
        "the gradient of a sum is the sum of the gradients",
        "beside('parts', parts_needle, parts_torch)",
    ),
    "matrices-beside": (
        "matrices-draw-intro",
        "All three say the same",
        "beside('matrices', matrices_needle, matrices_torch, "
        "dict(zip(['gradient of X', 'gradient of W'], matrix_gradients(A, B))))",
    ),
    "vector-jacobian": (
        "jacobian-intro",
        "v times the Jacobian, a row times a table: a weighted sum of its rows",
        "beside('seed', seed_needle, seed_torch, "
        "{'gradient of x': np.array([1, 10, 100]) @ np.array([[3, 2], [1, 1], [0, 6]])})",
    ),
    "seven-compare": (
        "seven-backward",
        "your seven equations beside both libraries",
        "beside('seven', seven_needle, seven_torch, "
        "seven_equations(*(v.numpy() for v in (x, y, W1, W2)), 0.1))",
    ),
    "loop-beside": (
        "habits",
        "step for step",
        "beside('training', lambda: ends(train_in_needle(*moons)), lambda: ends(train_in_torch(*moons)))",
    ),
}

SHOWN = [("network-intro", "Three passes, and all 3,000 entries are right", "passes", "(3, True)")]

TRUE = [
    *((cell, words, same(call)) for cell, words, call in CALLS.values()),
    *((cell, words, same_without_torch(call)) for cell, words, call in CALLS.values()),
    (
        "hook",
        "The only difference is one word",
        "[x.replace('torch', 'ndl') for x in in_torch.__code__.co_names]"
        " == list(in_needle.__code__.co_names)",
    ),
    (
        "hook",
        "Where PyTorch is not installed, it says so",
        "beside('mean', in_needle, in_torch).note in "
        f"({STATED!r}, {BOTH!r}) and (find_spec('torch') is None) == "
        f"(beside('mean', in_needle, in_torch).note == {STATED!r})",
    ),
    (
        "square-intro",
        "Your three derivatives stand in the first column",
        "[row[1] for row in beside('square', square_needle, square_torch).rows] == ['49', '42', '28', '14']"
        " and gradients_by_hand(2.0, 3.0, 1.0) == [42, 28, 14]",
    ),
    ("first-habit", "unless you say `requires_grad=False`", "ndl.Tensor([1.0]).requires_grad"),
    ("first-habit", "you have to say it in both", "not ndl.ones(2).requires_grad"),
    (
        "first-habit",
        "nothing takes part unless you say",
        "find_spec('torch') is None or not torch.tensor([1.0]).requires_grad",
    ),
    (
        "accumulate",
        "Needle **replaces** it",
        "[r[1:3] for r in beside('twice', lambda: run_twice(ndl.Tensor(1.0)), twice_torch).rows]"
        " == [('9', '9'), ('6', '6'), ('6', '12')]",
    ),
    (
        "missing-explained",
        "up the other side and back again",
        "(t := both['PyTorch'])[3] < 0.01 and max(t[4:]) > 9 and min(t[8:]) < 0.01 and len(t) == 40",
    ),
    ("missing-explained", "`optimizer.zero_grad()`", "both['needle'][-1] < 1e-6"),
    (
        "missing-explained",
        "each step follows the sum of all gradients so far",
        "[w := 0.0, g := 0.0] and np.allclose([((w - 3) ** 2, g := g + 2 * (w - 3), w := w - 0.1 * g)[0] "
        "for _ in range(40)], both['PyTorch'], atol=2e-3)",
    ),
    (
        "matrices-task",
        "the sum of the squares of all entries of `Y`",
        "beside('matrices', matrices_needle, matrices_torch).rows[0][1] == '166'",
    ),
    (
        "matrices-draw-intro",
        "the two transposes",
        "len(re.findall(r'transpose|>T<', viz.draw_gradient(Y, out_grad=2 * Y.detach()).source)) >= 2",
    ),
    ("jacobian-intro", "If it is three,", "len(outputs_of(np.array([2.0, 3.0]))) == 3"),
    (
        "jacobian-task",
        "leaves `x.grad` alone",
        "[q := ndl.Tensor([1.0]), ndl.gradients(q * q, [q])][0].grad is None",
    ),
    (
        "drag-intro",
        "adds λ W to the gradient of each weight",
        "find_spec('torch') is None or [w := torch.tensor([2.0], requires_grad=True), "
        "(0 * w).sum().backward(), torch.optim.SGD([w], lr=1.0, weight_decay=0.1).step(), "
        "abs(w.item() - 1.8) < 1e-6][-1]",
    ),
    (
        "drag-intro",
        "needle's has the same",
        "[w := ndl.nn.Parameter([2.0]), (0 * w).sum().backward(), "
        "ndl.optim.SGD([w], lr=1.0, weight_decay=0.1).step(), abs(w.item() - 1.8) < 1e-6][-1]",
    ),
    ("loop-intro", "twenty steps", "len(train_in_torch(*moons) if find_spec('torch') else [0] * 20) == 20"),
    ("loop-intro", "a hundred points", "len(points) == 100"),
    (
        "train-in-needle-solution",
        "`zero_grad()` is called `reset_grad()`",
        "all(hasattr(ndl.optim.SGD([ndl.Tensor([1.0])], lr=0.1), n) for n in ('reset_grad', 'step'))",
    ),
    ("habits", "a copy", "not np.shares_memory((q := ndl.Tensor([1.0])).numpy(), q.numpy())"),
    (
        "habits",
        "the same memory",
        "find_spec('torch') is None or "
        "np.shares_memory((t := torch.tensor([1.0])).detach().numpy(), t.detach().numpy())",
    ),
]

TRAIN = (
    "def train_in_needle(points, target, W1, W2):\n    losses = []\n"
    "    X, W1, W2 = ndl.Tensor(points), ndl.Tensor(W1), ndl.Tensor(W2)\n"
    "    for _ in range(20):\n        loss = (({hidden} @ W2 - ndl.Tensor(target)) ** 2).{end}()\n"
    "        loss.backward()\n        W1.data = W1.data {sign} 0.1 * W1.grad.data\n"
    "        W2.data = W2.data {sign} 0.1 * W2.grad.data\n        losses.append({seen})\n    return losses"
)


NETWORK = (
    "def seven_equations(x, y, W1, W2, lam):\n    h = np.tanh(x @ W1)\n    do = {do}\n    dh = {dh}\n"
    "    dz = dh * (1 - h**2)\n    return dict(dJ_dL=1.0, dJ_ds=1.0, dJ_do=do, dJ_dh=dh, dJ_dz=dz, "
    "dJ_dW1={dW1}, dJ_dW2={dW2})"
)


def a_network(**changed: str) -> str:
    """The seven equations written out, with something changed in them."""
    usual = {
        "do": "h @ W2 - y",
        "dh": "do @ W2.T",
        "dW1": "x.T @ dz + lam * W1",
        "dW2": "h.T @ do + lam * W2",
    }
    return NETWORK.format(**usual | changed)


def a_loop(**changed: str) -> str:
    """The loop written out, with something changed in it."""
    usual = {"hidden": "ndl.tanh(X @ W1)", "end": "mean", "sign": "-", "seen": "loss.item()"}
    return TRAIN.format(**usual | changed)


NEAR_MISSES = {
    "gradients_by_hand": [
        (
            "def gradients_by_hand(w, x, b):\n    y = w * x + b\n    return y * x, y * w, y",
            "The 2 of the square",
        ),
        ("def gradients_by_hand(w, x, b):\n    s = 2 * (b + w * x)\n    return [w * s, x * s, s]", "In w x"),
        ("def gradients_by_hand(w, x, b):\n    return [x, w, 1]", "The square around it is missing"),
        (
            "def gradients_by_hand(w, x, b):\n    u = w @ x + b\n    return [2 * u * x, 2 * u * w, 2 * u]",
            "has nothing to multiply",
        ),
        (
            "def gradients_by_hand(w, x, b):\n    u = (w * x).sum() + b\n"
            "    return [2 * u * x, 2 * u * w, 2 * u]",
            "know no `sum` and no `backward()`",
        ),
        ("def gradients_by_hand(w, x, b):\n    return (w * x + b) ** 2", "That is the value of L"),
        (
            "def gradients_by_hand(w, x, b):\n    L = (w * x + b) ** 2\n    L.backward()\n    return w.grad",
            "Here *you* are the library",
        ),
        (
            "def gradients_by_hand(w, x, b):\n    s = 2 * (w * x + b)\n    return s * x, s * w, s * b",
            "b is inside the square, too",
        ),
        (
            "def gradients_by_hand(w, x, b):\n    s = 2 * (w * x + b)\n    return s * x, s * w",
            "Three are asked for",
        ),
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
        (
            "def jacobian(f, x):\n    f(x).backward(ndl.ones(f(x).shape[0]))\n    return x.grad",
            "the sum of all rows",
        ),
        ("def jacobian(f, x):\n    return ndl.gradients(f(x), [x])", "the sum of all rows"),
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
        (a_network(do="(h @ W2 - y) ** 2 / 2"), "That is L itself"),
        (a_network(dh="W2.T"), "what comes back to it"),
        (a_network(dh="do @ W2"), "times its other factor *transposed*"),
        (a_network(dW1="dz.T @ x + lam * W1"), "transpose x and put it in front"),
        (a_network(dW2="h * do + lam * W2"), "transpose h and put it in front"),
        (
            a_network(dW1="x.T @ dz + lam / 2 * W1**2", dW2="h.T @ do + lam / 2 * W2**2"),
            "that of λ/2 · w² is λ w",
        ),
    ],
    "train_in_needle": [
        (a_loop(sign="+"), "This climbs"),
        (a_loop(sign="- 10 *"), "ten times as long"),
        (a_loop(hidden="X @ W1"), "Where is tanh?"),
        (a_loop(end="sum"), "and not their sum"),
        (a_loop().replace("    return", "        return"), "Is the `return` inside the loop?"),
        (
            a_loop(hidden="np.tanh(points @ W1.numpy())").replace("loss.b", "loss.item().b"),
            "does not know this word",
        ),
        (
            a_loop(seen="((ndl.tanh(X @ W1) @ W2 - ndl.Tensor(target)) ** 2).mean().item()"),
            "*after* each step",
        ),
        (a_loop().replace("        loss.backward()\n", ""), "`grad` is None until"),
        (a_loop(seen="loss"), "but they are Tensors"),
        (a_loop().replace("W1.data = ", "_ = "), "Only one of the two"),
        (a_loop().replace("W1.data = ", "_ = ").replace("W2.data = ", "_ = "), "no weight moves"),
    ],
}
