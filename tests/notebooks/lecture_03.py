"""Lecture 03: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SHOWN = [
    ("mine-intro", "Those that stand there are not bad, but you can do better", "mine", "3"),
    (
        "how-wrong",
        "Every point stays on its side, but the scores are ten times as large",
        "ten-times",
        "(True, array([-0.15,  0.22]), array([-1.51,  2.19]))",
    ),
    ("machine", "the second is surer of itself", "loss-of-mine", "(0.53, 0.11)"),
    ("why-not", "Not one of them gets all four right", "best-line", "1"),
    ("network-intro", "With w1 = w2 = 1 and b = -0.15 it works", "network", "(0, 0)"),
    (
        "library",
        "Give them your nine numbers",
        "model",
        "(array([-0.15,  0.65,  0.65, -0.15], dtype=float32), True)",
    ),
]

TRAINER = "__import__('playground.trainer', fromlist=['Trainer']).Trainer"
SETTINGS = "__import__('playground.settings', fromlist=['Settings']).Settings"


def learned(hidden: int) -> str:
    """The share of points on the wrong side after the playground has learned for 60 epochs."""
    address = {
        "dataset": "xor",
        "points": "200",
        "hidden": f"{hidden}",
        "activation": "relu",
        "learning_rate": "0.1",
    }
    return (
        f"[(t, [t.epoch() for _ in range(60)]) for t in [{TRAINER}({SETTINGS}.from_text({address}))]]"
        "[0][0].figures.train_error"
    )


def link(hidden: int) -> str:
    """The address that the lecture links to."""
    return f"http://localhost:8501/?dataset=xor&points=200&hidden={hidden}&activation=relu&learning_rate=0.1"


TRUE = [
    ("bananas", "Somebody tasted sixty bananas", "len(points) == len(labels) == 60"),
    ("bananas", "both from 0 to 1", "points.min() >= 0 and points.max() <= 1"),
    ("exercise-errors", "A score of exactly 0 says orange", "count(on, np.zeros(4)) == 2"),
    (
        "how-wrong",
        "the scores are ten times as large",
        "np.allclose(line_score(points, *ten_times), 10 * line_score(points, *mine))",
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
    ("lamp-explained", "half of the points are wrong", "count(light, line_score(switches, 0, 0, 0)) == 30"),
    ("lamp-explained", "10,000 random lines", "len(lines) == 10_000"),
    (
        "why-not",
        "Together that is w1 + w2 + 2b as well!",
        "[np.isclose(s[0] + s[3], s[1] + s[2]) for s in [line_score(corners, 0.3, -2.0, 0.7)]][0]",
    ),
    (
        "folded-explained",
        "the dark groups, far apart before, meet at (0, 0)",
        "h[light < 0].max() < 0.04 and np.ptp(switches[light < 0]) > 0.9",
    ),
    (
        "folded-explained",
        "One light group slid onto the h1 axis, the other onto the h2 axis",
        "(h[light > 0].min(axis=1) == 0).all() and sum(h[light > 0][:, 0] > 0) == 15",
    ),
    ("library", "nine numbers", "sum(p.numpy().size for p in model.parameters()) == 9"),
    ("playground", link(2), f"0.2 < {learned(2)} < 0.3"),
    ("playground", link(3), f"{learned(3)} < 0.03"),
    (
        "summary",
        "Scores of scores are again weights times x1 and x2 plus a number",
        "[np.allclose(np.diff(line_score(np.column_stack([line_score(p, *line1), line_score(p, *line2)]),"
        " 3., 2., 1.), 2), 0) for p in [np.linspace([0., 0.], [1., 0.5], 5)]][0]",
    ),
]

SCORES = "    scores = w1 * points[:, 0] + w2 * points[:, 1] + b\n"
LOSS = "def loss(points, labels, w1, w2, b):\n" + SCORES
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
        ("def score(points, w1, w2, b):\n    points @ [w1, w2] + b", "`return` missing"),
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
        ("def errors(labels, scores):\n    return np.sum(labels != np.sign(scores))", "Its sign is 0"),
        ("def errors(labels, scores):\n    return len(labels[labels * scores < 0])", "is an error, too"),
    ],
    "loss": [
        (LOSS + "    return sum(np.log(1 + np.exp(-labels * scores)))", "Take the mean"),
        (LOSS + "    return np.mean(np.log(1 + np.exp(labels * scores)))", "The sign is wrong"),
        (LOSS + "    return np.mean(np.log(1 + np.exp(-scores)))", "The labels have no part"),
        (LOSS + "    return np.log(1 + np.exp(-labels * scores))", "one loss for each point"),
        (LOSS + "    return np.mean(np.exp(-labels * scores))", "The logarithm is missing"),
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
    ],
}
