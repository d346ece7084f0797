"""Lecture 03: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SHOWN = [
    ("mine-intro", "Those that stand there are not bad, but you can do better", "mine", "errors: 3\n"),
    (
        "how-wrong",
        "every point stays on its side. But the scores are ten times as large",
        "ten-times",
        "each point on the same side: True\nthe first two scores: -0.151 and 0.219, then -1.51 and 2.19\n",
    ),
    ("machine", "pays less", "loss-of-mine", "your line: loss 0.53\nten times: loss 0.11\n"),
    ("why-not", "Not one of them gets all four right", "best-line", "wrong at best: 1\n"),
    (
        "network-intro",
        "With w1 = w2 = 1 and b = -0.15 it works",
        "network",
        "wrong of the 60 readings: 0\nwrong of the 4 corners: 0\n",
    ),
    (
        "library",
        "Give them your nine numbers",
        "model",
        "the same scores as yours: True\n",
    ),
]

PARSE = "__import__('urllib.parse', fromlist=['parse'])"
TRAINER = "__import__('playground.training.trainer', fromlist=['Trainer']).Trainer"
SETTINGS = "__import__('playground.training.settings', fromlist=['Settings']).Settings"


def settings(hidden: int) -> str:
    """What the playground reads from the link."""
    return f"{SETTINGS}().changed(dict({PARSE}.parse_qsl({PARSE}.urlsplit('{link(hidden)}').query)))[0]"


def learned(hidden: int) -> str:
    """The share of points on the wrong side after the playground has learned for 60 epochs."""
    return (
        f"[(t, [t.epoch() for _ in range(60)]) for t in [{TRAINER}({settings(hidden)})]]"
        "[0][0].figures.train_error"
    )


def link(hidden: int) -> str:
    """The address that the lecture links to."""
    return f"http://localhost:8501/?dataset=xor&points=200&hidden={hidden}&activation=relu&learning_rate=0.1&seed=1"


TRUE = [
    ("bananas", "Somebody tasted sixty bananas", "len(points) == len(labels) == 60"),
    ("bananas", "both from 0 to 1", "points.min() >= 0 and points.max() <= 1"),
    ("exercise-errors", "A score of exactly 0 says orange", "count(on, np.zeros(4)) == 2"),
    (
        "how-wrong",
        "the scores are ten times as large",
        "np.allclose(line_score(points, *ten_times), 10 * line_score(points, *mine))",
    ),
    ("how-wrong", "where log is the natural logarithm", "np.isclose(losses[40], np.log(2))"),
    (
        "drag-intro",
        "one of the three is enough to get rid of all errors",
        "[count(labels, line_score(points, 2, w, -0.5)) for w in (1, -1)] == [21, 0]",
    ),
    (
        "drag-intro",
        "one of the three is enough to get rid of all errors",
        "all(count(labels, line_score(points, w, 1, -0.5)) and count(labels, line_score(points, 2, 1, w))"
        " for w in np.linspace(-2, 2, 201))",
    ),
    (
        "machine",
        "The line (1, -1, 0) has few errors, so its loss goes down",
        "line_loss(points, labels, 10, -10, 0) < line_loss(points, labels, 1, -1, 0)",
    ),
    (
        "machine",
        "it would go up: try the line that the sliders began with, (2, 1, -0.5)",
        "line_loss(points, labels, 20, 10, -5) > line_loss(points, labels, 2, 1, -0.5)",
    ),
    ("machine", "every loss is log(2)", "np.isclose(line_loss(points, labels, 0, 0, 0), np.log(2))"),
    (
        "race-explained",
        "ten times your numbers may win",
        "line_loss(points, labels, 40, -20, -8) < machine(points, labels)[1][-1]",
    ),
    ("loss-explained", "the loss is nearly 0", "np.log1p(np.exp(-4)) < 0.02"),
    (
        "race-explained",
        "The machine has no errors, and a small loss",
        "[count(labels, line_score(points, *a)) == 0 and b[-1] < 0.05"
        " for a, b, _ in [machine(points, labels)]][0]",
    ),
    ("race-explained", "four of five tries were wasted", "machine(points, labels)[2] == 60"),
    ("lamp-explained", "The machine kept nothing", "kept == 0 and not machine(switches, light)[0].any()"),
    (
        "lamp-explained",
        "all 30 light points are wrong",
        "count(light, line_score(switches, 0, 0, 0)) == sum(light > 0) == 30",
    ),
    ("lamp-explained", "10,000 random lines", "len(lines) == 10_000"),
    (
        "why-not",
        "Together that is w1 + w2 + 2b as well!",
        "[np.isclose(s[0] + s[3], s[1] + s[2]) for s in [line_score(corners, 0.3, -2.0, 0.7)]][0]",
    ),
    (
        "folded-explained",
        "all 30 squares lie on top of each other",
        "not h[light < 0].any() and len(h[light < 0]) == 30 and np.ptp(switches[light < 0]) > 0.9",
    ),
    (
        "folded-explained",
        "One light group slid onto the h1 axis, the other onto the h2 axis",
        "(h[light > 0].min(axis=1) == 0).all() and sum(h[light > 0][:, 0] > 0) == 15",
    ),
    ("library", "nine numbers", "sum(p.numpy().size for p in model.parameters()) == 9"),
    (
        "network-intro",
        "a score of scores would only be a score again",
        "np.allclose(line_score(np.column_stack([line_score(corners, *line1), line_score(corners, *line2)]),"
        " 3., 2., 1.), line_score(corners, 1., -1., 0.))",
    ),
    (
        "playground",
        "the same net there: two inputs, two ReLUs, one output",
        "[[layer.neurons for layer in s.hidden] == [2] and s.activation == 'relu' and s.dataset == 'xor'"
        f" for s in [{settings(2)}]][0]",
    ),
    ("playground", link(2), f"0.2 < {learned(2)} < 0.3"),
    ("playground", link(3), f"{learned(3)} < 0.03"),
    (
        "summary",
        "Scores of scores are again weights times x1 and x2 plus a number",
        "[np.allclose(np.diff(line_score(np.column_stack([line_score(p, *line1), line_score(p, *line2)]),"
        " 3., 2., 1.), 2), 0) for p in [np.linspace([0., 0.], [1., 0.5], 5)]][0]",
    ),
]

ERRORS = "def errors(labels, scores):\n    n = 0\n    for s, t in zip(scores, labels):\n"
SCORES = "    scores = w1 * points[:, 0] + w2 * points[:, 1] + b\n"
LOSS = "def loss(points, labels, w1, w2, b):\n" + SCORES
SCORE = "def score(points, w1, w2, b):\n    return points @ [w1, w2] + b\n"
HIDDEN = (
    "def hidden(points, line1, line2):\n    out = []\n    for w1, w2, b in (line1, line2):\n    " + SCORES
)

NEAR_MISSES = {
    "score": [
        ("def score(points, w1, w2, b):\n    return points @ np.array([w1, w2])", "goes through the corner"),
        ("def score(points, w1, w2, b):\n    return w1 * points[0] + w2 * points[1] + b", "a column"),
        ("def score(points, w1, w2, b):\n    x2, x1 = points.T\n    return w1 * x1 + w2 * x2 + b", "swapped"),
        (
            "def score(points, w1, w2, b):\n    x1, x2 = points.T\n    return x1 * w1 + x2 * w2 + b >= 0",
            "the decision",
        ),
        ("def score(points, w1, w2, b):\n    return np.dot([w1, w2], points) + b", "the points come first"),
        ("def score(points, w1, w2, b):\n    points @ [w1, w2] + b", "`return` missing"),
        ("def score(points, w1, w2, b):\n    return (points @ [w1, w2] + b)[:, None]", "the shape is (n,)"),
        ("def score(points, w1, w2, b):\n    (x1, x2) = points\n    return x1 * w1 + x2 * w2 + b", "columns"),
        ("def score(points, w1, w2, b):\n    return points * [w1, w2] + b", "two numbers for each point"),
        (
            "def score(points, w1, w2, b):\n    out = []\n    for x1, x2 in points:\n"
            "        out.append(b + w1 * x1 + w2 * x2)\n    return out",
            "np.array",
        ),
        (
            "def score(points, w1, w2, b):\n    return w1 * points[:, 0] + w2 * points[:, 1] + ...",
            "still a `...`",
        ),
    ],
    "errors": [
        ("def errors(labels, scores):\n    return (np.sign(scores) == labels).sum()", "Count the others"),
        ("def errors(labels, scores):\n    return np.mean(labels * scores < 0)", "This is the share"),
        (
            "def errors(labels, scores):\n    return sum(1 for a, b in zip(labels, scores) if a != b)",
            "Compare their signs",
        ),
        ("def errors(labels, scores):\n    return sum(scores[labels == -1] > 0)", "orange points"),
        ("def errors(labels, scores):\n    return labels * scores < 0", "How many times True"),
        (
            "def errors(labels, scores):\n    return np.sum(labels != np.sign(scores))",
            "for an orange point it is right",
        ),
        (
            "def errors(labels, scores):\n    return np.sum(labels * scores <= 0)",
            "for an orange point it is right",
        ),
        (ERRORS + "        if (s > 0) != (t > 0):\n            n += 1\n        return n", "into the loop"),
        (
            ERRORS + "        if (s > 0) != (t > 0):\n            n += 1\n            return n",
            "into the `if`",
        ),
        (ERRORS + "        n += bool(s > 0 != t > 0)\n    return n", "as a chain"),
        ("def errors(labels, scores):\n    return sum(labels != (scores > 0))", "Ask both the same"),
        (
            "def errors(labels, scores):\n    if scores > 0 and labels < 0:\n        return 1\n    return 0",
            "a whole array of them",
        ),
        ("def errors(labels, scores):\n    return len(labels[labels * scores < 0])", "is an error, too"),
    ],
    "loss": [
        (LOSS + "    return sum(np.log(1 + np.exp(-labels * scores)))", "Take the mean"),
        (LOSS + "    return np.mean(np.log(1 + np.exp(labels * scores)))", "The sign is wrong"),
        (LOSS + "    return np.mean(np.log(1 + np.exp(-scores)))", "The labels have no part"),
        (LOSS + "    return np.log(1 + np.exp(-labels * scores))", "one loss for each point"),
        (LOSS + "    return np.mean(np.exp(-labels * scores))", "The logarithm is missing"),
        (LOSS + "    return np.log(1 + np.exp(-np.mean(labels * scores)))", "the mean of the margins"),
        (LOSS + "    return np.log(np.mean(1 + np.exp(-labels * scores)))", "mean of the logs"),
        ("import math\n" + LOSS + "    return math.log(1 + math.exp(-labels * scores))", "`np.exp`"),
        (LOSS + "    margins = labels - scores\n    return np.mean(np.log(1 + np.exp(-margins)))", "*times*"),
        (LOSS + "    margins = ...\n    return np.log(1 + np.exp(-margins)).mean()", "still a `...`"),
    ],
    "hidden": [
        (HIDDEN + "        out.append(scores)\n    return np.array(out).T", "The ReLU is missing"),
        (
            HIDDEN + "        out.append(np.where(scores > 0, scores, 0))\n    return np.array(out)",
            "one row for each point",
        ),
        (HIDDEN + "        out.append(np.abs(scores))\n    return np.array(out).T", "The ReLU makes them 0"),
        (
            HIDDEN + "        out.append(scores * (scores < 0))\n    return np.array(out).T",
            "keep what is below 0",
        ),
        ("def hidden(points, line1, line2):\n    return np.maximum(0, points @ line1)", "three numbers"),
        (
            HIDDEN + "        out.append(np.maximum(0, scores))\n    return np.column_stack(*out)",
            "with square brackets",
        ),
        (
            HIDDEN + "        out.append(scores)\n    return np.maximum(0, out[0] + out[1])",
            "a column of its own",
        ),
        (HIDDEN + "        points = np.maximum(0, scores)\n    return points", "the same points"),
        (HIDDEN + "        out.append(max(0, scores))\n    return np.array(out).T", "np.maximum(0, a)"),
        (HIDDEN + "        out.append(np.maximum(scores, 0))\n    return out[0], out[1]", "column_stack"),
        (HIDDEN + "        out.append(np.maximum(scores, 0))\n    return np.hstack(out)", "behind h1"),
        (
            HIDDEN + "        out.append(np.maximum(scores, 0))\n    return np.array(out).reshape(-1, 2)",
            "get mixed",
        ),
        (HIDDEN + "        out.append(np.max(0, scores))\n    return np.array(out).T", "use `np.maximum`"),
        (
            SCORE + "def hidden(points, line1, line2):\n    return np.maximum(0, score(points, line1))",
            "A star",
        ),
    ],
}
