"""Lecture 03: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("mine-intro", "The ones that are there now are not bad, but you can do better", "mine", "errors: 3\n"),
    (
        "how-wrong",
        "every point stays on its side. But the scores are ten times as large",
        "ten-times",
        "each point on the same side: True\nthe first two scores: -0.151 and 0.219, then -1.51 and 2.19\n",
    ),
    ("machine", "its loss is smaller", "loss-of-mine", "your line: loss 0.53\nten times: loss 0.11\n"),
    ("why-not", "Not one of them gets all four right", "best-line", "wrong at best: 1\n"),
    (
        "network-intro",
        "With w1 = w2 = 1 and b = -0.15 it works",
        "network",
        "wrong of the 60 readings: 0\nwrong of the 4 corners: 0\n",
    ),
    ("library", "Give them your nine numbers", "model", "the same scores as yours: True\n"),
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
        "[count(labels, line_score(points, 2, w, -0.5)) for w in (1, -1)] == [21, 0] and "
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
